"""A command of the user's: in which order commands run, what `{files}` stands for; which analyses there are.

Decides the argument list that comes of a command and the files of a change, and the digest by which two
declarations of analyses are known to be the same. Does not run anything, nor look for a program (`commands`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from patchgate.policy.validators import FILES

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.git.path import RepoPath
    from patchgate.policy.settings import AnalysisSettings, CommandSettings

# A tool may take what begins so for an option, a file of arguments (ruff, javac) or an order (vim).
_SPECIAL = (b"-", b"@", b"+")
FORM = "patchgate.analyses/1"


def ordered_commands(commands: Mapping[str, CommandSettings]) -> list[tuple[str, CommandSettings]]:
    """List commands as they run: all lint commands, then all tests, each as they stand in the config."""
    return sorted(commands.items(), key=lambda named: named[1].kind != "lint")


def files_of(changes: Iterable[FileChange]) -> tuple[RepoPath, ...]:
    """Choose the files that a command is asked to look at: added or changed, and regular afterwards.

    What is deleted is not there any more; a symlink could lead a tool that writes out of the scratch tree; a
    gitlink is a folder of another repository.
    """
    return tuple(file.path for file in changes if file.new is not None and file.new.is_file)


def needs_files(settings: CommandSettings) -> bool:
    """Tell whether a command names the files that it looks at, so that without any it has nothing to do."""
    return FILES in settings.command


def expand(settings: CommandSettings, files: Iterable[RepoPath]) -> list[bytes]:
    """Make the argument list of a command, `{files}` replaced by the paths in the order of their bytes.

    A path that a tool could take for something else, since it begins with `-`, `@` or `+`, gets `./` before
    it.
    """
    paths = [b"./" + raw if raw.startswith(_SPECIAL) else raw for raw in sorted(path.raw for path in files)]
    words: list[bytes] = []
    for word in settings.command:
        words += paths if word == FILES else [word.encode()]
    return words


def analyses_digest(analyses: Mapping[str, AnalysisSettings]) -> str:
    """Give the digest of some analyses, `sha256:…`; their order is no part of it."""
    lines = [f"{canonical_text(name, analyses[name])}\n" for name in sorted(analyses)]
    text = f"{FORM}\n" + "".join(lines)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical_text(name: str, settings: AnalysisSettings) -> str:
    """Write one analysis as one line of canonical JSON, in ASCII."""
    # Loaded here: who only asks for the tool of a command writes no JSON.
    import json

    plain = {
        "name": name,
        "command": list(settings.command),
        "format": settings.format,
        "timeout": float(settings.timeout),
        "env": dict(settings.env),
        "required_tools": list(settings.required_tools),
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))
