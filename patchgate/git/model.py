"""A change as the difference of two trees, file by file; the format of trees; folders above paths.

Defines the shape of a change, how exact renames are paired, the change id, and which bytes are a valid
tree. Of a change's origin it has only a label, and it knows no policy.
"""

from __future__ import annotations

import hashlib
import operator
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Generic, TypeVar

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import quote_path
from patchgate.values import dataclass, field

REGULAR = "100644"
EXECUTABLE = "100755"
SYMLINK = "120000"
GITLINK = "160000"
NO_MODE = "000000"


class Status(StrEnum):
    """What happened to one file, as the report calls it."""

    ADDED = "added"
    DELETED = "deleted"
    MODIFIED = "modified"
    RENAMED = "renamed"
    TYPE_CHANGED = "type-changed"
    MODE_CHANGED = "mode-changed"


@dataclass(frozen=True, slots=True)
class Entry:
    """One side of a file: its mode (six octal digits, as git writes it) and the full object id in hex."""

    mode: str
    oid: str

    @property
    def is_file(self) -> bool:
        """Return whether this is a regular file, executable or not."""
        return self.mode in {REGULAR, EXECUTABLE}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the resulting file that the change adds: its number from 1, and its bytes without the LF."""

    number: int
    text: bytes


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path of a change.

    `old` is None if the path is added, `new` where it is deleted. Line counts are None for binary
    files and where they were not requested; `size` is the new blob's size in bytes, None if not requested.
    `watched` has the added lines that some content rule may object to, `link_target` what a new
    symlink points to.
    """

    path: RepoPath
    old: Entry | None
    new: Entry | None
    added_lines: int | None = None
    removed_lines: int | None = None
    n_hunks: int = 0
    binary: bool = False
    size: int | None = None
    watched: tuple[Line, ...] = ()
    link_target: bytes | None = None

    @property
    def status(self) -> Status:
        """Return what happened, without regard to renames."""
        if self.old is None:
            return Status.ADDED
        if self.new is None:
            return Status.DELETED
        if self.old.mode[:3] != self.new.mode[:3]:
            return Status.TYPE_CHANGED
        if self.old.oid == self.new.oid:
            return Status.MODE_CHANGED
        return Status.MODIFIED

    def with_size(self, size: int) -> FileChange:
        """Copy it with a size; `dataclasses.replace` costs four times as much, and ranges have many files."""
        return FileChange(
            path=self.path,
            old=self.old,
            new=self.new,
            added_lines=self.added_lines,
            removed_lines=self.removed_lines,
            n_hunks=self.n_hunks,
            binary=self.binary,
            size=size,
            watched=self.watched,
            link_target=self.link_target,
        )

    @property
    def has_new_content(self) -> bool:
        """Return whether the file has new content: added, changed, or formerly a symlink."""
        if self.new is None or not self.new.is_file:
            return False
        return self.old is None or not self.old.is_file or self.old.oid != self.new.oid

    @property
    def is_removed(self) -> bool:
        """Return whether the old file is gone: removed, or replaced by something of another type."""
        return self.status in {Status.DELETED, Status.TYPE_CHANGED}

    @property
    def is_introduced(self) -> bool:
        """Return whether the name is new in the resulting tree."""
        return self.old is None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a change came from.

    `kind` is staged, worktree, commit, merge, patch, edits or another format of a patch, all, message, ref or
    range. `commit` is the commit judged, `base_commit` the commit whose tree is the base, `ref` the full name
    of the ref that would bring it, or the range as the user wrote it; None if there is none. `parents` are
    the commits that a merge joins, also one under way or one that a host would make; none of another change.
    """

    kind: str
    commit: str | None = None
    base_commit: str | None = None
    ref: str | None = None
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Everything that differs between the tree `base` and the tree `after` (full object ids).

    `files` is sorted by the path's bytes; a path occurs once. `renames` maps a new path to the old one.
    """

    base: str
    after: str
    files: tuple[FileChange, ...]
    renames: Mapping[RepoPath, RepoPath] = field(default_factory=dict)

    @classmethod
    def of(cls, base: str, after: str, files: Iterable[FileChange], empty_blob: str = "") -> Change:
        """Build a change: sort the files, pair the exact renames (`empty_blob` is never paired)."""
        ordered = tuple(sorted(files, key=lambda file: file.path.raw))
        return cls(base, after, ordered, pair_renames(ordered, empty_blob))


def pair_renames(files: Iterable[FileChange], empty_blob: str) -> dict[RepoPath, RepoPath]:
    """Pair deletions with additions of the same blob and mode, in path order, each used once."""
    gone: dict[Entry, list[RepoPath]] = {}
    arrived: list[FileChange] = []
    for file in files:
        if file.new is None and file.old is not None and file.old.oid != empty_blob:
            gone.setdefault(file.old, []).append(file.path)
        elif file.old is None:
            arrived.append(file)
    if not gone:
        return {}
    for paths in gone.values():
        paths.sort(reverse=True)
    pairs: dict[RepoPath, RepoPath] = {}
    for file in sorted(arrived, key=lambda each: each.path):
        if file.new is not None and gone.get(file.new):
            pairs[file.path] = gone[file.new].pop()
    return pairs


def change_id(
    change: Change, *, parents: Sequence[str] = (), unchanged: Iterable[tuple[str, RepoPath | None]] = ()
) -> str:
    """Compute the id that survives a rebase: SHA-256 over each file's path, modes and object ids.

    A side that is missing is written as mode 000000 and an object id of zeroes.

    Args:
        parents: of a merge: the files are only what it changes itself, and it is judged at other paths too.
            So its tree and what it joins are a part of the id.
        unchanged: what refuses it for what it does not change, each a rule and a line, and a path. Then its
            tree is a part of the id, too.
    """
    digest = hashlib.sha256(b"patchgate.change/1\n")
    unchanged = list(unchanged)
    if parents or unchanged:
        digest.update(f"{'merge' if parents else 'tree'} {change.after}\n".encode("ascii"))
    digest.update("".join(f"parent {each}\n" for each in parents).encode("ascii"))
    for file in change.files:
        present = file.old or file.new
        nothing = Entry(NO_MODE, "0" * len(present.oid if present else ""))
        old, new = file.old or nothing, file.new or nothing
        digest.update(file.path.raw + f"\0{old.mode} {old.oid} {new.mode} {new.oid}\n".encode("ascii"))
    for what, raw in sorted({(what, b"" if path is None else path.raw) for what, path in unchanged}):
        digest.update(raw + f"\0unchanged {what}\n".encode("ascii"))
    return f"sha256:{digest.hexdigest()}"


TREE_MODE = "040000"
_MODES = {
    mode.lstrip("0").encode("ascii"): mode for mode in (TREE_MODE, REGULAR, EXECUTABLE, SYMLINK, GITLINK)
}
# Git wrote this mode in 2005, fsck accepts it, and such commits are in histories that are still pushed.
_GROUP_WRITABLE = b"100664"
# Hosts wrote this mode until about 2012; fsck warns of it, and every reader takes it for a folder.
_PADDED_FOLDER = b"040000"
_ENTRY = {size: re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{%d})" % size, re.DOTALL) for size in (20, 32)}
_HINT = (
    "git fsck lists malformed trees; make the commit again from its files: "
    "git reset --mixed HEAD~1, git add -A, git commit"
)


class MalformedTreeError(UndecidedError):
    """A tree object that readers may interpret differently; `oid` names it, `fault` says what is wrong."""

    def __init__(self, oid: str, fault: str, where: str = "") -> None:
        super().__init__(f"the tree {oid[:12]}{where and f' ({where})'} is malformed: {fault}", _HINT)
        self.oid = oid
        self.fault = fault

    def at(self, where: str) -> MalformedTreeError:
        """Return the same error with the path of the tree."""
        return MalformedTreeError(self.oid, self.fault, where)


@dataclass(frozen=True, slots=True)
class TreeObject:
    """One tree object whose entries have one meaning: sorted, no name twice.

    `rows` has mode, name and object id of each entry, as they are in the object.
    """

    oid: str
    rows: Sequence[tuple[bytes, bytes, bytes]]

    @classmethod
    def parse(cls, raw: bytes, oid: str) -> TreeObject:
        """Read a tree object: entries of `mode SP name NUL oid`.

        Raises:
            MalformedTreeError: it is damaged, not sorted as git sorts, or has a name twice.
        """
        size = len(oid) // 2
        rows = tree_rows(raw, size)
        if sum(len(mode) + len(name) for mode, name, _ in rows) + len(rows) * (size + 2) != len(raw):
            raise MalformedTreeError(oid, "an entry is incomplete, or has an invalid mode or name")
        folders = {mode for mode in {mode for mode, _, _ in rows} if _mode(mode) == TREE_MODE}
        keys = [name + b"/" if mode in folders else name for mode, name, _ in rows]
        if len({name for _, name, _ in rows}) != len(rows):
            raise MalformedTreeError(oid, f"it contains {_twice(rows)} twice")
        if not all(map(operator.lt, keys, islice(keys, 1, None))):
            raise MalformedTreeError(oid, "its entries are not sorted")
        return cls(oid, rows)

    @property
    def names(self) -> tuple[bytes, ...]:
        """The names of its entries, in git's order."""
        return tuple([name for _, name, _ in self.rows])

    def entries(self) -> dict[bytes, Entry]:
        """The entries by their names; modes as git reads them."""
        return {name: Entry(_mode(mode), oid.hex()) for mode, name, oid in self.rows}

    def require_current_form(self, *, is_past: bool = False) -> None:
        """Refuse what git no longer writes.

        Args:
            is_past: whether the tree is from before the policy, where a folder may have the mode `040000`.

        Raises:
            MalformedTreeError: a mode is not written as git writes it, or an object id is all zeroes.
        """
        odd = {mode for mode, _, _ in self.rows} - _MODES.keys() - {_GROUP_WRITABLE}
        odd -= {_PADDED_FOLDER} if is_past else set()
        if odd:
            raise MalformedTreeError(self.oid, f"it contains the mode {min(odd).decode('ascii')}")
        nothing = bytes(len(self.oid) // 2)
        for _, name, oid in self.rows:
            if oid == nothing:
                raise MalformedTreeError(self.oid, f"{quote_path(name)} has an object id of zeroes")


def tree_rows(raw: bytes, width: int) -> list[tuple[bytes, bytes, bytes]]:
    """List mode, name and binary object id of what is an entry in the bytes of a tree; nothing is checked.

    Args:
        width: how many bytes an object id has.
    """
    # One expression is ten times as fast as a loop: some folders have thousands of names.
    return _ENTRY[width].findall(raw)


def _twice(rows: Sequence[tuple[bytes, bytes, bytes]]) -> str:
    seen: set[bytes] = set()
    for _, name, _ in rows:
        if name in seen:
            return quote_path(name)
        seen.add(name)
    return "a name"


def index_info(entries: Iterable[tuple[RepoPath, Entry]]) -> bytes:
    """Write entries as `git update-index -z --index-info` reads them: names may be any bytes."""
    return b"".join(
        f"{entry.mode} {entry.oid}\t".encode("ascii") + path.raw + b"\0" for path, entry in entries
    )


def staged_records(listed: bytes) -> Iterator[tuple[RepoPath, Entry, str]]:
    """Read what `git ls-files -z --stage` lists: the path, the entry and the stage of each record."""
    for record in listed.split(b"\0")[:-1]:
        about, _, name = record.partition(b"\t")
        mode, oid, stage = about.decode("ascii").split(" ")
        yield RepoPath.from_git(name), Entry(mode, oid), stage


def parse_tree(raw: bytes, oid: str) -> dict[bytes, Entry]:
    """Read the entries of a tree object by their names.

    Raises:
        MalformedTreeError: it is damaged, not sorted as git sorts, or has a name twice.
    """
    return TreeObject.parse(raw, oid).entries()


def _mode(mode: bytes) -> str:
    """Read a mode as git does (`canon_mode`): trees of old repositories have 100664, git writes 100644."""
    known = _MODES.get(mode)
    if known is not None:
        return known
    number = int(mode, 8)
    if stat.S_ISREG(number):
        return EXECUTABLE if number & stat.S_IXUSR else REGULAR
    if stat.S_ISLNK(number):
        return SYMLINK
    return TREE_MODE if stat.S_ISDIR(number) else GITLINK


def print_tree(entries: Mapping[bytes, Entry]) -> bytes:
    """Write a tree object, entries in git's order: a folder sorts as if its name ended in a slash."""

    def order(item: tuple[bytes, Entry]) -> bytes:
        return item[0] + (b"/" if item[1].mode == TREE_MODE else b"")

    return b"".join(
        entry.mode.lstrip("0").encode("ascii") + b" " + name + b"\0" + bytes.fromhex(entry.oid)
        for name, entry in sorted(entries.items(), key=order)
    )


MAX_FOLDER_BYTES = 64 << 20
"""How many bytes the names of all folders above some paths may have. 100,000 usual folders have 6 MB."""

_Value = TypeVar("_Value")


class Descent(Generic[_Value]):
    """Computes a value for each folder from the value of the folder above it, each folder once.

    A path of 4,096 bytes has up to 2,047 folders above it, so a loop over all folders of all paths would
    handle thousands of bytes for each byte of the input. Here the cost grows with the number of different
    folders.

    Args:
        root: the value of the repository's root, whose name is empty.
        step: returns the value of a folder, from its parent's value and its path.
    """

    __slots__ = ("_bytes", "_step", "known")

    def __init__(self, root: _Value, step: Callable[[_Value, bytes], _Value]) -> None:
        self.known: dict[bytes, _Value] = {b"": root}
        self._step = step
        self._bytes = 0

    def at(self, folder: bytes) -> _Value:
        """Compute the value of a folder once.

        Raises:
            UndecidedError: the names of all folders have more than `MAX_FOLDER_BYTES`.
        """
        new: list[bytes] = []
        while folder not in self.known:
            self._bytes += len(folder)
            if self._bytes > MAX_FOLDER_BYTES:
                raise UndecidedError(
                    f"the folders above the changed files have names of more than {MAX_FOLDER_BYTES:,} bytes",
                    "nest folders less deep, or change fewer files at once",
                )
            new.append(folder)
            folder = folder.rpartition(b"/")[0]
        value = self.known[folder]
        while new:
            folder = new.pop()
            value = self.known[folder] = self._step(value, folder)
        return value


def folders_above(paths: Iterable[RepoPath]) -> set[bytes]:
    """List the folders above some paths; the root (empty) is one of them, unless there is no path.

    Raises:
        UndecidedError: their names have more than `MAX_FOLDER_BYTES`.
    """
    descent: Descent[None] = Descent(None, lambda above, folder: None)
    is_empty = True
    for path in paths:
        is_empty = False
        descent.at(path.parent)
    return set() if is_empty else set(descent.known)
