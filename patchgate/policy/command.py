"""Commands of the config: their order, the files for `{files}`, the digest of the analyses.

Decides the argument list of a command for the files of a change. Two declarations of analyses are equal if
their digests are. Does not run anything or look for programs (`commands` does).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from patchgate.policy.validators import FILES

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.git.path import RepoPath
    from patchgate.policy.run_validators import PhaseName
    from patchgate.policy.settings import AnalysisSettings, CommandSettings

# A tool may read such an argument as an option, a file of arguments (ruff, javac) or a command (vim).
_SPECIAL = (b"-", b"@", b"+")
FORM = "patchgate.analyses/1"


def ordered_commands(commands: Mapping[str, CommandSettings]) -> list[tuple[str, CommandSettings]]:
    """List the commands for a patch in the order they run: all lint commands, then all tests.

    Each kind is in config order. Authors are left out: they write patches, and only a run starts them.
    """
    checks = [each for each in commands.items() if each[1].kind != "author"]
    return sorted(checks, key=lambda named: named[1].kind != "lint")


def author_of(
    commands: Mapping[str, CommandSettings], phase: PhaseName
) -> tuple[str, CommandSettings] | None:
    """Return the author of a phase, with its name; None if the phase has none."""
    return next((each for each in commands.items() if each[1].phase == phase), None)


def files_of(changes: Iterable[FileChange]) -> tuple[RepoPath, ...]:
    """Choose the files for `{files}`: added or changed, and regular files afterwards.

    A deleted file does not exist; a symlink could lead a tool that writes out of the scratch tree; a gitlink
    is a folder of another repository.
    """
    return tuple(file.path for file in changes if file.new is not None and file.new.is_file)


def needs_files(settings: CommandSettings) -> bool:
    """Check whether a command uses `{files}`, so that it has nothing to do without files."""
    return FILES in settings.command


def expand(settings: CommandSettings, files: Iterable[RepoPath]) -> list[bytes]:
    """Make the argument list of a command; `{files}` is replaced by the paths, sorted as bytes.

    A path that begins with `-`, `@` or `+` gets the prefix `./`, so that a tool does not misread it.
    """
    paths = [b"./" + raw if raw.startswith(_SPECIAL) else raw for raw in sorted(path.raw for path in files)]
    words: list[bytes] = []
    for word in settings.command:
        words += paths if word == FILES else [word.encode()]
    return words


def analyses_digest(analyses: Mapping[str, AnalysisSettings]) -> str:
    """Return the digest of analyses, `sha256:…`; their order does not matter."""
    lines = [f"{canonical_text(name, analyses[name])}\n" for name in sorted(analyses)]
    text = f"{FORM}\n" + "".join(lines)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical_text(name: str, settings: AnalysisSettings) -> str:
    """Write one analysis as one line of canonical JSON, in ASCII."""
    # Imported here: most callers write no JSON.
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
