"""Read lint-staged's config, in `package.json` or a file of its own, as commands of the policy.

A config that is a program (`lint-staged.config.js`) is not read.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.commands.importing.documents import Value, is_list, mapping_of, texts_of
from patchgate.commands.importing.draft import DraftWriter, ImportDraft, Surroundings
from patchgate.commands.importing.known_tools import keys_of
from patchgate.commands.importing.path_patterns import patterns_of_globs
from patchgate.commands.importing.shell_words import read_command_line

PACKAGE = "package.json"
NAMES = (".lintstagedrc", ".lintstagedrc.json", ".lintstagedrc.yaml", ".lintstagedrc.yml", PACKAGE)
PROGRAMS = tuple(
    f"{name}.{ending}"
    for name in ("lint-staged.config", ".lintstagedrc")
    for ending in ("js", "mjs", "cjs", "ts", "mts", "cts")
)


def read_lint_staged(document: Mapping[str, Value], name: str, around: Surroundings) -> ImportDraft:
    """Read the document of a config of lint-staged, or a `package.json`.

    Args:
        document: its values.
        name: of the file.
        around: the repository.
    """
    out = DraftWriter(name)
    table = mapping_of(document.get("lint-staged")) if name.rpartition("/")[2] == PACKAGE else document
    for glob, tasks in table.items():
        files = patterns_of_globs([glob], crosses_folders=False)
        if files is None:
            out.leave_out(glob, "it cannot be written as patterns of paths")
            continue
        if not (isinstance(tasks, str) or is_list(tasks)):
            out.leave_out(glob, "its tasks are neither a command line nor a list of them")
            continue
        for task in texts_of(tasks):
            if task.split()[:2] == ["git", "add"]:
                out.leave_out(f"{glob} {task}", "a fix is staged by git patchgate fix")
                continue
            line = read_command_line(task, {})
            if line is None:
                out.leave_out(f"{glob} {task}", "it is not a command line")
                continue
            keys = keys_of(line.words, around, takes_files=True)
            program = next((word for word in line.words if word not in {"npx", "--"}), line.words[0])
            wanted = () if files in {("*",), ("**/*",)} else files
            out.add(program.rpartition("/")[2], keys | {"files": wanted, "on": ("commit",)}, f"{glob} {task}")
    return out.draft
