"""Compute the tree that a change results in, and check the format of the trees that it adds and replaces.

Git trusts that trees are sorted and have each name once, so a change is what git reports only if every tree
on its way has that format. Nothing is written (unlike `git write-tree`), and unchanged folders are not
read. Git's own `fsck` would read the whole repository.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.diff import RAW, Detail, DiffReader, read_difference
from patchgate.git.model import (
    TREE_MODE,
    Descent,
    Entry,
    FileChange,
    MalformedTreeError,
    folders_above,
    print_tree,
)
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.git.repository import Repository, finish
from patchgate.values import dataclass, field, replace

Listing = tuple[bytes, ...]
"""The names in one folder."""


@dataclass(frozen=True, slots=True)
class ResultTree:
    """The tree that a change results in, and the folders of it that the change touches (by their path)."""

    tree: str
    folders: dict[bytes, Listing]


def resulting_tree(
    objects: Objects,
    base: str,
    files: Iterable[FileChange],
    keep: Callable[[str, bytes], object] | None = None,
) -> ResultTree:
    """Compute the tree `base` with `files` applied to it.

    Args:
        keep: is called with every new tree object (its kind and content), to write it to a private store.

    Raises:
        UndecidedError: the files do not fit the base (a file where a folder is), so the index is damaged.
    """
    touched: dict[bytes, Entry | None] = {file.path.raw: file.new for file in files}
    folders: dict[bytes, Listing] = {}
    if not touched:
        return ResultTree(base, folders)
    made: str | None = None
    for folder_path, folder in reversed(list(_opened(objects, base, touched).items())):
        for name, entry in folder.here.items():
            if name in folder.below and name in folder.entries:
                raise UndecidedError("the index has a file and a folder of the same name", "run git status")
            folder.entries[name] = entry
        folders[folder_path] = tuple(folder.entries)
        made = None
        if folder.entries:
            content = print_tree(folder.entries)
            if keep is not None:
                keep("tree", content)
            made = objects.hash("tree", content)
        if folder.above is not None and made is not None:
            folder.above.entries[folder_path.rpartition(b"/")[2]] = Entry(TREE_MODE, made)
    return ResultTree(made or objects.empty_tree, folders)


@dataclass(slots=True)
class _OpenedFolder:
    """One folder that the change touches: its old entries, the new ones, its changed subfolders."""

    above: _OpenedFolder | None
    entries: dict[bytes, Entry]
    here: dict[bytes, Entry] = field(default_factory=dict)
    below: set[bytes] = field(default_factory=set)


def _opened(
    objects: Objects, base: str, touched: Mapping[bytes, Entry | None]
) -> Mapping[bytes, _OpenedFolder]:
    """Open the folders above the touched paths, parents first, and enter the paths.

    Not by recursion: git accepts a path of 2,000 folders.
    """

    def enter(above: _OpenedFolder | None, folder_path: bytes) -> _OpenedFolder:
        assert above is not None
        name = folder_path.rpartition(b"/")[2]
        above.below.add(name)
        old = above.entries.pop(name, None)
        is_folder = old is not None and old.mode == TREE_MODE
        return _OpenedFolder(above, dict(objects.tree(old.oid)) if old is not None and is_folder else {})

    opened = Descent(_OpenedFolder(None, dict(objects.tree(base))), enter)
    for path, entry in touched.items():
        folder_path, _, name = path.rpartition(b"/")
        folder = opened.at(folder_path)
        if entry is not None:
            folder.here[name] = entry
        else:
            folder.entries.pop(name, None)
    return opened.known


_MOST_KEPT = 100_000
_MISSING = ""
FOLDERS = ("-r", "-t")
"""The options by which diff-tree lists folders too."""


@dataclass(frozen=True, slots=True)
class ChangedFolders:
    """The folders in which two trees differ: the path of each, its tree before and after (None: not there).

    `origin` describes where the second tree is from, `is_past` is whether it is history from before the
    policy.
    """

    origin: str
    folders: Sequence[tuple[bytes, str | None, str | None]]
    is_past: bool = False

    @classmethod
    def of(cls, origin: str, old: str, new: str, records: Iterable[FileChange]) -> ChangedFolders:
        """Take the records of folders between two trees, which do not include the root."""
        below = (
            (each.path.raw, each.old.oid if each.old else None, each.new.oid if each.new else None)
            for each in records
        )
        return cls(origin, [(b"", old, new), *below] if old != new else [])

    def joined(self, other: ChangedFolders) -> ChangedFolders:
        """Add the folders in which another tree differs."""
        return replace(self, folders=[*self.folders, *other.folders])


class TreeCheck:
    """Checks trees, each once, and lists the folders above new names on the way."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        # An old side may have an older form, so it does not count as checked for a new one.
        self._old: set[str] = {objects.empty_tree}
        self._new: set[str] = {objects.empty_tree}

    def listings(
        self, changes: Sequence[tuple[ChangedFolders, Sequence[FileChange]]]
    ) -> list[dict[bytes, Listing]]:
        """Check what some changes touch; list for each the resulting tree's folders above every new name.

        Each tree must have the form that git writes; one that is replaced may have an older form.

        Raises:
            MalformedTreeError: one has another form; the message names it and its path.
            UndecidedError: one is missing, or not a tree.
        """
        wanted = [_wanted(touched, files) for touched, files in changes]
        listed = {oid for each in wanted for oid in each.values()}
        # The error of a malformed tree says what is wrong with it.
        names = self._check([touched for touched, _ in changes], listed)
        for touched, _ in changes:
            self._check_empty(touched)
        if _MISSING in listed:
            raise UndecidedError("a tree does not match its diff", "run git fsck")
        return [{folder: names[oid] for folder, oid in each.items()} for each in wanted]

    def _check(self, touched: Sequence[ChangedFolders], listed: Collection[str]) -> dict[str, Listing]:
        """Read the trees that were not read before; return the names in those of `listed`."""
        origins: dict[str, tuple[ChangedFolders, bytes]] = {}
        new: set[str] = set()
        past: set[str] = set()
        for each in touched:
            for path, before, after in each.folders:
                if after is not None and (after in listed or after not in self._new):
                    origins.setdefault(after, (each, path))
                    (past if each.is_past else new).add(after)
                if before is not None and before not in self._old and before not in self._new:
                    origins.setdefault(before, (each, path))
        names: dict[str, Listing] = {}
        try:
            for tree in self._objects.trees(list(origins)):
                if tree.oid in new or tree.oid in past:
                    tree.require_current_form(is_past=tree.oid not in new)
                if tree.oid in listed:
                    names[tree.oid] = tree.names
        except MalformedTreeError as error:
            raise error.at(_where(*origins[error.oid])) from None
        if len(self._old) + len(self._new) > _MOST_KEPT:
            self._old, self._new = {self._objects.empty_tree}, {self._objects.empty_tree}
        self._new |= new
        self._old |= origins.keys() - new
        return names

    def _check_empty(self, touched: ChangedFolders) -> None:
        """Refuse an empty folder whose name is not allowed; git lists only files."""
        for path, old, new in touched.folders:
            if new == self._objects.empty_tree and old is None and path and faults(RepoPath(path)):
                fault = "it is an empty folder, and its name is not allowed"
                raise MalformedTreeError(new, fault, _where(touched, path))


def _wanted(touched: ChangedFolders, files: Iterable[FileChange]) -> dict[bytes, str]:
    """Map the folders above new names to their resulting trees."""
    after = {path: new for path, _, new in touched.folders}
    found: dict[bytes, str] = {}
    # The neighbours of a path that is too long are not compared: it is refused anyway.
    new_paths = (file.path for file in files if file.is_introduced and not file.path.is_too_long)
    for folder in folders_above(new_paths):
        found[folder] = after.get(folder) or _MISSING
    return found


def _where(touched: ChangedFolders, path: bytes) -> str:
    return f"{f'folder {RepoPath(path).quoted}' if path else 'root folder'} of {touched.origin}"


def folders_between(
    repository: Repository,
    old: str,
    new: str,
    origin: str,
    variables: Mapping[str, str] | None = None,
) -> ChangedFolders:
    """List the folders in which two trees differ.

    Raises:
        UndecidedError: git failed.
    """
    with repository.child("diff-tree", *FOLDERS, *RAW, old, new, variables=variables) as child:
        child.close_input()
        reader = DiffReader(child, has_folders=True)
        reader.records()
        finish(child, "diff-tree")
    return ChangedFolders.of(origin, old, new, reader.take_folders())


def entries_at(objects: Objects, trees: Iterable[str], path: bytes) -> dict[str, Entry]:
    """Find the entry at one path of each of many trees; those without one are left out.

    Git reads the trees, so that a root folder of many names costs little.

    Raises:
        UndecidedError: git failed, or a tree is missing.
    """
    stdin = "".join(f"{objects.empty_tree} {tree}\n" for tree in trees).encode("ascii")
    flags = ("--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
    named = f":(top,literal){os.fsdecode(path)}"
    raw = objects.repository.output(
        "diff-tree", "--stdin", *flags, "--", named, stdin=stdin, variables=objects.variables
    )
    found: dict[str, Entry] = {}
    tree = ""
    for line in raw.splitlines():
        words = line.decode("ascii", "replace").split(" ")
        if line.startswith(b":"):
            found[tree] = Entry(words[1], words[3])
        else:
            tree = words[1]
    return found


def compare_trees(objects: Objects, before: str, after: str) -> dict[RepoPath, FileChange]:
    """Map the paths in which two trees differ; a file that moves is removed and added.

    Raises:
        UndecidedError: git failed.
    """
    files, _ = read_difference(objects.repository, objects, ("diff-tree", "-r"), [before, after], Detail())
    return {file.path: file for file in files}
