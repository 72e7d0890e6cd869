"""Commands of the config: when they run and in which order, their files, their arguments, their digests.

Decides which files of a change a command gets, and the argument lists that name them. Two declarations are
equal if their digests are. Does not run anything or look for programs (`commands` does).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.policy.validators import FILES

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.git.path import RepoPath
    from patchgate.policy.command_settings import CommandSettings, Occasion
    from patchgate.policy.glob_matching import PatternSet
    from patchgate.policy.run_validators import PhaseName

FORM = "patchgate.analyses/1"
# A pattern for the end of a name: matched without pathspec, whose import takes 50 ms.
_ENDING = re.compile(r"\*\.[A-Za-z0-9_.+-]+")


def ordered_commands(
    commands: Mapping[str, CommandSettings], occasion: Occasion = "apply"
) -> list[tuple[str, CommandSettings]]:
    """List the commands of an occasion in the order they run: linters and formatters, then all tests.

    Each is in config order. Authors are left out: they write patches, and only a run starts them.
    """
    checks = [each for each in commands.items() if each[1].kind != "author" and occasion in each[1].on]
    return sorted(checks, key=lambda named: named[1].kind == "test")


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


class CommandFiles:
    """Which paths a command is for: below its `root`, by its `files` and `exclude`."""

    __slots__ = ("_endings", "_excluded", "_other", "_prefix", "_takes_all")

    def __init__(self, settings: CommandSettings) -> None:
        self._prefix = f"{settings.root}/".encode() if settings.root else b""
        self._takes_all = not settings.files
        endings = [each for each in settings.files if _ENDING.fullmatch(each)]
        self._endings = tuple(each[1:].encode() for each in endings)
        self._other = _patterns([each for each in settings.files if each not in endings])
        self._excluded = _patterns(settings.exclude)

    @property
    def endings(self) -> tuple[bytes, ...] | None:
        """The endings of the paths that it can be for; None if these do not decide."""
        return None if self._takes_all or self._other is not None else self._endings

    def match(self, path: bytes) -> bool:
        """Whether the command is for this path."""
        if not path.startswith(self._prefix):
            return False
        is_ours = self._takes_all or path.endswith(self._endings)
        if not (is_ours or (self._other is not None and self._other.match(path) is not None)):
            return False
        return self._excluded is None or self._excluded.match(path) is None


def _patterns(patterns: Sequence[str]) -> PatternSet | None:
    if not patterns:
        return None
    from patchgate.policy.glob_matching import PatternSet

    return PatternSet(patterns, folded=False, exact=True)


def matching_files(settings: CommandSettings, files: Iterable[RepoPath]) -> tuple[RepoPath, ...]:
    """Choose the files that a command is for, sorted as bytes."""
    chosen = CommandFiles(settings)
    return tuple(sorted((path for path in files if chosen.match(path.raw)), key=lambda path: path.raw))


def needs_files(settings: CommandSettings) -> bool:
    """Check whether a command uses `{files}`, so that it has nothing to do without files."""
    return FILES in settings.command


def expand(
    settings: CommandSettings, files: Iterable[RepoPath], words: Sequence[str] | None = None
) -> list[bytes]:
    """Make the argument list of a command; `{files}` is replaced by the paths, sorted as bytes.

    Each path is relative to the command's root and begins with `./`, so that no name is an option (`-x`), a
    file of arguments (`@x`) or a command (`+x`).

    Args:
        files: below the command's root.
        words: another command of it, like `fix`; None: its command.
    """
    paths = _relative(settings, files)
    argv: list[bytes] = []
    for word in settings.command if words is None else words:
        argv += paths if word == FILES else [word.encode()]
    return argv


def batches(
    settings: CommandSettings, files: Sequence[RepoPath], most_bytes: int
) -> Iterator[list[RepoPath]]:
    """Divide the files into parts whose argument lists fit, at least `jobs` of them.

    Args:
        most_bytes: how long the arguments of one list may be, each with the 9 bytes that it costs besides.
    """
    if not needs_files(settings) or not files:
        yield list(files)
        return
    words = sum(len(word.encode()) + 9 for word in settings.command)
    share = -(-len(files) // settings.jobs)
    part: list[RepoPath] = []
    length = words
    for path, name in zip(files, _relative(settings, files), strict=True):
        length += len(name) + 9
        if part and (length > most_bytes or len(part) >= share):
            yield part
            part, length = [], words + len(name) + 9
        part.append(path)
    yield part


def _relative(settings: CommandSettings, files: Iterable[RepoPath]) -> list[bytes]:
    skipped = len(settings.root.encode()) + 1 if settings.root else 0
    return [b"./" + raw[skipped:] for raw in sorted(path.raw for path in files)]


def analyses_digest(analyses: Mapping[str, CommandSettings]) -> str:
    """Return the digest of analyses, `sha256:…`; their order does not matter."""
    lines = [f"{canonical_text(name, analyses[name])}\n" for name in sorted(analyses)]
    text = f"{FORM}\n" + "".join(lines)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical_text(name: str, settings: CommandSettings) -> str:
    """Write what an analysis depends on as one line of canonical JSON, in ASCII.

    Keys that are newer than `[commands.NAME] on` are left out where they say nothing: the digests of older
    intents stay.
    """
    # Imported here: most callers write no JSON.
    import json

    plain = {
        "name": name,
        "command": list(settings.command),
        "format": settings.output,
        "timeout": float(settings.timeout),
        "env": dict(settings.env),
        "required_tools": list(settings.required_tools),
        **_written({"files": settings.files, "exclude": settings.exclude, "root": settings.root}),
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _written(keys: Mapping[str, str | tuple[str, ...]]) -> dict[str, str | list[str]]:
    return {name: value if isinstance(value, str) else list(value) for name, value in keys.items() if value}
