"""What commands run on: the tree that a change results in, its changed files, and the tree before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from patchgate.git.model import TREE_MODE, Change, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.policy.command_files import CommandFiles, files_of, matching_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.values import dataclass, field, replace

_MOST_LINES = 1 << 26


@dataclass(slots=True)
class CommandTarget:
    """The tree that a change results in; `objects` reads through `store`, which has what is not in git.

    `commit` is the commit of HEAD for a command that runs git. `is_merge`: the change is what a merge itself
    does. The tree is written only if a command needs all of it.
    """

    objects: Objects
    store: PrivateStore
    change: Change
    commit: str | None
    is_merge: bool = False
    _new: dict[bytes, Entry | None] = field(default_factory=dict)
    _tree: str | None = None
    _moved: dict[RepoPath, RepoPath] | None = None

    def __post_init__(self) -> None:
        self._new = {file.path.raw: file.new for file in self.change.files}
        if self.is_merge:
            # Its result has more than its own change, and was written when it was read.
            self._tree = self.change.after

    @property
    def repository(self) -> Repository:
        """The repository of the change."""
        return self.objects.repository

    def entry(self, path: bytes) -> Entry | None:
        """Return the entry of a path in the resulting tree."""
        if path in self._new:
            return self._new[path]
        return self.objects.entry(self.change.after if self.is_merge else self.change.base, path)

    def base_entry(self, path: bytes) -> Entry | None:
        """Return the entry of a path in the tree before."""
        return self.objects.entry(self.change.base, path)

    def tree(self) -> str:
        """Return the resulting tree; its objects are written to the private store.

        Raises:
            UndecidedError: the change does not fit its base.
        """
        if self._tree is None:
            # Imported here: a change of few files needs no tree.
            from patchgate.git.trees import resulting_tree

            made = resulting_tree(self.objects, self.change.base, self.change.files, self.store.write)
            self._tree = made.tree
        return self._tree

    def moved(self) -> Mapping[RepoPath, RepoPath]:
        """Return the renamed files, new path to old path; those that were edited too.

        Raises:
            UndecidedError: git failed.
        """
        if self._moved is None:
            self._moved = dict(self.change.renames)
            if any(file.new is None for file in self.change.files) and any(
                file.old is None for file in self.change.files
            ):
                from patchgate.git.file_history import find_renames

                trees = self.change.base, self.tree()
                self._moved |= find_renames(self.repository, *trees, self.store.variables)
        return self._moved

    def before(self) -> CommandTarget:
        """Return the tree before as a target, with the same files under their old names."""
        moved = self.moved()
        old: dict[RepoPath, FileChange] = {}
        for file in self.change.files:
            path = moved.get(file.path, file.path)
            entry = self.base_entry(path.raw)
            if file.new is not None and entry is not None:
                old[path] = FileChange(path, None, entry)
        change = Change(self.change.base, self.change.base, tuple(old.values()))
        return replace(self, change=change, is_merge=False, _tree=self.change.base, _moved={})

    def concerns(self, settings: CommandSettings) -> bool:
        """Whether the change has something for a command: a file that it is for, deleted or not.

        A merge that changes no file itself results in a new tree all the same.
        """
        if self.is_merge and settings.scope == "tree":
            return True
        chosen = CommandFiles(settings)
        return any(chosen.match(file.path.raw) for file in self.change.files)

    def files(self, settings: CommandSettings) -> tuple[RepoPath, ...]:
        """List the added and changed files that a command is for."""
        return matching_files(settings, files_of(self.change.files))

    def needed(self, settings: CommandSettings) -> tuple[list[RepoPath], list[str]]:
        """List the files that a command needs besides, and what it needs and the tree does not have."""
        found: list[RepoPath] = []
        missing: list[str] = []
        for name in settings.needs:
            path = name.encode()
            entry = self.entry(path)
            if entry is None and not any(each.startswith(path + b"/") for each in self._new):
                missing.append(name)
            elif entry is not None and entry.mode != TREE_MODE:
                found.append(RepoPath(path))
            else:
                found += self._below(path)
        return found, missing

    def _below(self, folder: bytes) -> list[RepoPath]:
        """List the files in a folder of the resulting tree."""
        before = self.objects.entry(self.change.after if self.is_merge else self.change.base, folder)
        paths = set(_paths_in(self.objects, before.oid, folder)) if before is not None else set[bytes]()
        for path, entry in self._new.items():
            if path.startswith(folder + b"/"):
                (paths.discard if entry is None else paths.add)(path)
        return [RepoPath(path) for path in sorted(paths)]

    def seen(self, paths: Iterable[RepoPath]) -> list[tuple[str, str, str]]:
        """List what a command sees of some files: path, mode and object id."""
        listed = []
        for path in paths:
            entry = self.entry(path.raw)
            if entry is not None:
                listed.append((path.raw.decode("utf-8", "surrogateescape"), entry.mode, entry.oid))
        return listed

    def lines(self) -> Callable[[RepoPath], Sequence[bytes] | None]:
        """Return a function that gives the lines of a file of the resulting tree; None if there is none."""

        def lines_of(path: RepoPath) -> Sequence[bytes] | None:
            entry = self.entry(path.raw)
            if entry is None or not entry.is_file:
                return None
            return self.objects.read(entry.oid, _MOST_LINES).split(b"\n")

        return lines_of


def _paths_in(objects: Objects, tree: str, folder: bytes) -> Iterable[bytes]:
    for name, entry in objects.tree(tree).items():
        path = folder + b"/" + name
        if entry.mode == TREE_MODE:
            yield from _paths_in(objects, entry.oid, path)
        else:
            yield path
