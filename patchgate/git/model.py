"""A change: what would be different between two trees, file by file.

Decides the shape of a change, how exact renames are paired, and the change id. It knows nothing of where
a change came from beyond a label, and nothing of policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from patchgate.git.path import RepoPath

REGULAR = "100644"
EXECUTABLE = "100755"
SYMLINK = "120000"
GITLINK = "160000"
NO_MODE = "000000"


class Status(StrEnum):
    """What happened to one file, in the words of the report."""

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
        """Tell whether this is a regular file, executable or not."""
        return self.mode in {REGULAR, EXECUTABLE}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the resulting file that the change adds: its number from 1, and its bytes without the LF."""

    number: int
    text: bytes


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path of a change.

    `old` is None where the path is added, `new` where it is deleted. Line counts are None for binary
    files and where nobody asked for them; `size` is the new blob's size in bytes, None where not asked.
    `watched` holds the added lines that some content rule may object to, `link_target` what a new
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
        """Say what happened, without regard to renames."""
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
            self.path,
            self.old,
            self.new,
            self.added_lines,
            self.removed_lines,
            self.n_hunks,
            self.binary,
            size,
            self.watched,
            self.link_target,
        )

    @property
    def has_new_content(self) -> bool:
        """Tell whether a file's content arrives: added, changed, or made of what was a symlink's text."""
        if self.new is None or not self.new.is_file:
            return False
        return self.old is None or not self.old.is_file or self.old.oid != self.new.oid

    @property
    def goes(self) -> bool:
        """Tell whether what was there no longer is: removed, or replaced by something of another type."""
        return self.status in {Status.DELETED, Status.TYPE_CHANGED}

    @property
    def is_introduced(self) -> bool:
        """Tell whether the name itself is new in the resulting tree."""
        return self.old is None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a change came from.

    `kind` is staged, worktree, commit, merge, patch, edits, all, message, ref or range. `commit` is the
    commit judged, `base_commit` the commit whose tree is the base, `ref` the full name of the ref that would
    bring it, or the range as it was asked for; None where there is none.
    """

    kind: str
    commit: str | None = None
    base_commit: str | None = None
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Everything that would be different between the tree `base` and the tree `after` (full object ids).

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


def change_id(change: Change) -> str:
    """Compute the id that survives a rebase: SHA-256 over each file's path, modes and object ids.

    A side that is missing is written as mode 000000 and an object id of zeroes.
    """
    digest = hashlib.sha256(b"patchgate.change/1\n")
    for file in change.files:
        present = file.old or file.new
        nothing = Entry(NO_MODE, "0" * len(present.oid if present else ""))
        old, new = file.old or nothing, file.new or nothing
        digest.update(file.path.raw + f"\0{old.mode} {old.oid} {new.mode} {new.oid}\n".encode("ascii"))
    return f"sha256:{digest.hexdigest()}"
