"""Which files of a change a command gets, and the argument lists that name them.

Imports only what is quick, for the fast path needs it as well: patterns of the usual forms are matched here,
the others by `glob_matching` and pathspec, whose import takes 50 ms.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Protocol

    from patchgate.git.model import FileChange
    from patchgate.git.path import RepoPath

    Matcher = Callable[[bytes], bool]

    class FilesOfCommand(Protocol):
        """What is read here of the settings of a command."""

        @property
        def command(self) -> tuple[str, ...]: ...
        @property
        def root(self) -> str: ...
        @property
        def files(self) -> tuple[str, ...]: ...
        @property
        def exclude(self) -> tuple[str, ...]: ...
        @property
        def jobs(self) -> int: ...


FILES = "{files}"
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-")


def files_of(changes: Iterable[FileChange]) -> tuple[RepoPath, ...]:
    """Choose the files for `{files}`: added or changed, and regular files afterwards.

    A deleted file does not exist; a symlink could lead a tool that writes out of the scratch tree; a gitlink
    is a folder of another repository.
    """
    return tuple(file.path for file in changes if file.new is not None and file.new.is_file)


def quick_matcher(pattern: str) -> Matcher | None:
    """Return a function that matches a pattern of a usual form as git does; None for any other form.

    The forms are `name`, `dir/`, `a/b`, `a/b/`, `a/**`, `a/*.py`, `a/**/*.py` and `**/*.py`.
    """
    head, star, ending = pattern.rpartition("*")
    if not star:
        return _literal(pattern)
    if not set(ending) <= _LETTERS:
        return None
    if not ending:
        folder = head.removesuffix("/*")
        return _literal(f"/{folder.lstrip('/')}/") if head.endswith("/*") and folder else None
    above, slash, rest = head.rpartition("/")
    is_deep = above == "**" or above.endswith("/**") or not head
    above = above.removesuffix("**").removesuffix("/") if is_deep else above
    above = above.removeprefix("/")
    if rest or not (slash or is_deep) or not (_is_plain(above) or not above):
        return None
    prefix, end = f"{above}/".encode() if above else b"", ending.encode()

    def match(path: bytes) -> bool:
        names = path[len(prefix) :].split(b"/")
        return path.startswith(prefix) and any(
            name.endswith(end) for name in (names if is_deep else names[:1])
        )

    return match


def _literal(pattern: str) -> Matcher | None:
    """Match a name at any depth, or a path from the root; a folder with everything in it."""
    bare = pattern.removeprefix("/").removesuffix("/")
    if not _is_plain(bare):
        return None
    is_anchored = "/" in bare or pattern.startswith("/")
    folder = f"/{bare}/".encode()
    # A file has no slash after its name.
    after = b"" if pattern.endswith("/") else b"/"

    def match(path: bytes) -> bool:
        whole = b"/" + path + after
        return whole.startswith(folder) if is_anchored else folder in whole

    return match


def _is_plain(path: str) -> bool:
    return all(_LETTERS.issuperset(part) and part not in {"", ".", ".."} for part in path.split("/"))


class CommandFiles:
    """Which paths a command is for: below its `root`, by its `files` and `exclude`.

    Args:
        is_quick: whether patterns of other than the usual forms are an error.

    Raises:
        ValueError: there is such a pattern.
    """

    __slots__ = ("_endings", "_excluded", "_other", "_prefix", "_takes_all")

    def __init__(self, settings: FilesOfCommand, *, is_quick: bool = False) -> None:
        self._prefix = f"{settings.root}/".encode() if settings.root else b""
        self._takes_all = not settings.files
        endings = [
            each for each in settings.files if each[:2] == "*." and each[2:] and _LETTERS.issuperset(each[2:])
        ]
        self._endings = tuple(each[1:].encode() for each in endings)
        self._other = _matcher([each for each in settings.files if each not in endings], is_quick)
        self._excluded = _matcher(settings.exclude, is_quick)

    @property
    def endings(self) -> tuple[bytes, ...] | None:
        """The endings of the paths that it can be for; None if these do not decide."""
        return None if self._takes_all or self._other is not None else self._endings

    def match(self, path: bytes) -> bool:
        """Whether the command is for this path."""
        if not path.startswith(self._prefix):
            return False
        is_ours = self._takes_all or path.endswith(self._endings)
        if not (is_ours or (self._other is not None and self._other(path))):
            return False
        return self._excluded is None or not self._excluded(path)


def _matcher(patterns: Sequence[str], is_quick: bool) -> Matcher | None:
    if not patterns:
        return None
    usual = [quick_matcher(each) for each in patterns]
    matchers = [each for each in usual if each is not None]
    if len(matchers) == len(usual):
        return lambda path: any(match(path) for match in matchers)
    if is_quick:
        raise ValueError
    from patchgate.policy.glob_matching import PatternSet

    found = PatternSet(patterns, folded=False, exact=True)
    return lambda path: found.match(path) is not None


def matching_files(settings: FilesOfCommand, files: Iterable[RepoPath]) -> tuple[RepoPath, ...]:
    """Choose the files that a command is for, sorted as bytes."""
    chosen = CommandFiles(settings)
    return tuple(sorted((path for path in files if chosen.match(path.raw)), key=lambda path: path.raw))


def needs_files(settings: FilesOfCommand) -> bool:
    """Check whether a command uses `{files}`, so that it has nothing to do without files."""
    return FILES in settings.command


def expand(
    settings: FilesOfCommand, files: Iterable[RepoPath], words: Sequence[str] | None = None
) -> list[bytes]:
    """Make the argument list of a command; `{files}` is replaced by the paths, sorted as bytes.

    Each path is relative to the command's root and begins with `./`, so that no name is an option (`-x`), a
    file of arguments (`@x`) or a command (`+x`).

    Args:
        files: below the command's root.
        words: another command of it, like `fix`; None: its command.
    """
    return expand_names(settings, [path.raw for path in files], words)


def expand_names(
    settings: FilesOfCommand, files: Iterable[bytes], words: Sequence[str] | None = None
) -> list[bytes]:
    """Make the argument list of a command for files that are bytes; see `expand`."""
    paths = _relative(settings, files)
    argv: list[bytes] = []
    for word in settings.command if words is None else words:
        argv += paths if word == FILES else [word.encode()]
    return argv


def batches(settings: FilesOfCommand, files: Sequence[RepoPath], most_bytes: int) -> Iterator[list[RepoPath]]:
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
    for path, name in zip(files, _relative(settings, [path.raw for path in files]), strict=True):
        length += len(name) + 9
        if part and (length > most_bytes or len(part) >= share):
            yield part
            part, length = [], words + len(name) + 9
        part.append(path)
    yield part


def _relative(settings: FilesOfCommand, files: Iterable[bytes]) -> list[bytes]:
    skipped = len(settings.root.encode()) + 1 if settings.root else 0
    return [b"./" + raw[skipped:] for raw in sorted(files)]
