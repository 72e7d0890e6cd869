"""Read `lefthook.yml` as commands of the policy: the commands and jobs of pre-commit and pre-push."""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.commands.importing.documents import Value, is_true, items_of, mapping_of, text_of, texts_of
from patchgate.commands.importing.draft import DraftWriter, ImportDraft, Key, Surroundings
from patchgate.commands.importing.known_tools import keys_of
from patchgate.commands.importing.path_patterns import patterns_of_globs
from patchgate.commands.importing.shell_words import read_command_line

NAMES = (
    *("lefthook.yml", "lefthook.yaml", "lefthook.json"),
    *(".lefthook.yml", ".lefthook.yaml", ".lefthook.json"),
)
_OCCASIONS = {"pre-commit": "commit", "pre-push": "push", "pre-merge-commit": "commit"}
_PLACEHOLDERS = {
    "{staged_files}": True,
    "{push_files}": True,
    **dict.fromkeys(("{all_files}", "{files}", "{cmd}", "{lefthook_job_name}"), False),
    **{f"{{{number}}}": False for number in range(10)},
}
"""What stands for names of files in a command line, and whether they are the changed ones."""
_OTHER_HOOK = "patchgate runs commands at a commit and at a push only"


def read_lefthook(document: Mapping[str, Value], name: str, around: Surroundings) -> ImportDraft:
    """Read the document of a `lefthook.yml`.

    Args:
        document: its values.
        name: of the file.
        around: the repository.
    """
    out = DraftWriter(name)
    for key in ("extends", "remotes"):
        if key in document:
            out.leave_out(key, "it names other files, which are not read")
    for hook, each in document.items():
        occasion = _OCCASIONS.get(hook)
        # A setting of lefthook itself has none of these keys.
        table = mapping_of(each)
        jobs = [(job, mapping_of(keys)) for job, keys in mapping_of(table.get("commands")).items()]
        unnamed = (mapping_of(job) for job in items_of(table.get("jobs")))
        jobs += [(text_of(job.get("name")), job) for job in unnamed]
        for job, keys in jobs:
            what = f"{hook} {job or text_of(keys.get('run'))[:40]}".strip()
            if occasion is None:
                out.leave_out(what, _OTHER_HOOK)
            else:
                _Job(what, job, keys, table, out).add(occasion, around)
        for script in mapping_of(table.get("scripts")):
            out.leave_out(f"{hook} {script}", "it is a script of lefthook's folder; write it as a command")
    return out.draft


class _Job:
    """One command or job of a hook; `table` is that of the hook, whose `glob` and the like it inherits."""

    def __init__(
        self,
        what: str,
        name: str,
        keys: Mapping[str, Value],
        table: Mapping[str, Value],
        out: DraftWriter,
    ) -> None:
        self._what = what
        self._name = name
        self._keys = keys
        self._inherited = {**table, **keys}
        self._out = out

    def add(self, occasion: str, around: Surroundings) -> None:
        keys = self._keys
        if "group" in keys or "script" in keys:
            self._leave_out("a group of jobs, or a script: write them as commands")
            return
        if is_true(keys.get("interactive")) or is_true(keys.get("use_stdin")):
            self._leave_out("it wants a terminal or the input of the hook, and a command gets neither")
            return
        line = read_command_line(text_of(keys.get("run")), _PLACEHOLDERS)
        if line is None:
            self._leave_out("its `run` is empty, or asks for files other than the changed ones")
            return
        root = text_of(self._inherited.get("root")).strip("/").removeprefix("./")
        files, exclude = self._patterns("glob", root), self._patterns("exclude", root)
        if files is None or exclude is None:
            key = "glob" if files is None else "exclude"
            self._leave_out(f"its `{key}` cannot be written as patterns of paths")
            return
        env = {name: text_of(value) for name, value in mapping_of(keys.get("env")).items()}
        more: dict[str, Key] = {
            "files": files,
            "exclude": exclude,
            "root": root,
            "env": env,
            "on": (occasion,),
        }
        made = keys_of(line.words, around, takes_files=line.takes_files, root=root)
        self._out.add(self._name or line.words[0], made | more, self._what)
        for key in ("skip", "only"):
            if key in keys:
                self._out.notes.append(f"{self._what}: its `{key}` is not taken over")

    def _leave_out(self, why: str) -> None:
        self._out.leave_out(self._what, why)

    def _patterns(self, key: str, root: str) -> tuple[str, ...] | None:
        """Translate globs, which lefthook matches in the path below the root."""
        found = patterns_of_globs(texts_of(self._inherited.get(key)), crosses_folders=True)
        if found is None or not root:
            return found
        return tuple(f"/{root}{each}" if each.startswith("/") else each for each in found)
