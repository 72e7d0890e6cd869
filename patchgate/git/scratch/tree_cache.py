"""The whole trees that are cached for a repository, and updated from one patch to the next.

It is reused only if the last use ended well, with every file as git wrote it, and what conversions depend on
is unchanged. The file that says so is in the user's repository, and is removed during use: after a kill the
tree is made again elsewhere, because a command that still runs may write to the old one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping

from patchgate.errors import UndecidedError
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.scratch.checkout import (
    Checkout,
    Marks,
    changed_folders,
    let_time_pass,
    mark_folders,
    restore_folders,
)
from patchgate.git.scratch.temporary_folders import records_folder, remove, translate_errors
from patchgate.git.scratch_record import identity_of
from patchgate.storage.filesystem import FaultPoints, flush_folder
from patchgate.storage.lock import acquire
from patchgate.values import replace

_PLACE = re.compile(r"place-[0-9a-f]{16}")
_HOME = re.compile(r"[0-9a-f]{32}")
_CONVERSIONS = r"^(core\.(autocrlf|eol|symlinks|checkroundtripencoding|precomposeunicode)|filter\..*)$"
_MOST_BYTES = 1 << 16
_FORMAT = 1


MOST_TREES = 4
"""So many trees of a repository may be in use at once; a second is made when the first is used."""


def cache_folder_of(repository: Repository, cache: str, number: int = 0) -> str:
    """Return the folder of a cached tree: `<cache>/trees/<hash of the common dir, and the number>`.

    It contains `lock` (locked while the tree is used), `origin.json` (which repository and folder), `index`
    and `folders` of the tree as it was left, and the tree: `place-…/tree`.
    """
    return os.path.join(cache, "trees", _name_of(os.path.realpath(repository.common_dir), number))


def _name_of(common_dir: str, number: int) -> str:
    return _hash(f"{common_dir}\0{number}" if number else common_dir)


def _hash(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]


class CachedTree:
    """The cached tree of a repository, for the owner of its lock.

    Raises:
        UndecidedError: its folder belongs to something else.
    """

    def __init__(self, repository: Repository, store: PrivateStore, home: str, tree: str) -> None:
        self._repository = repository
        self._home = home
        self._state = os.path.join(
            records_folder(repository), f"tree-{_hash(os.path.realpath(home))[:16]}.json"
        )
        self._folders = os.path.join(home, "folders")
        self._variables = store.variables
        self._tree = tree
        self._marks: Marks = {}
        self._identity: tuple[int, int] | None = None
        self._own_index: list[int] = []
        self._conversions = _conversions(repository)
        _record_owner(repository, home)
        self.checkout = self._at("")

    def _at(self, place: str) -> Checkout:
        root = os.path.join(self._home, place, "tree")
        index = os.path.join(self._home, "index")
        return Checkout(
            repository=self._repository,
            root=root,
            index=index,
            spare=self._home,
            variables=self._variables,
            tree=self._tree,
        )

    def prepare(self) -> None:
        """Make the tree ready, updated or made again, and mark it as in use.

        Raises:
            UndecidedError: git could not write it, or an old one cannot be removed.
        """
        found = self._last_state()
        # From here on no file says that the tree is clean.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._state)
            flush_folder(os.path.dirname(self._state), FaultPoints())
        if found is None or not self._is_updated(*found):
            self._make_tree()

    def mark(self) -> None:
        """Mark the folders, and let the clock advance, so that every later change is detected."""
        self._marks = mark_folders(os.fsencode(self.checkout.root), self._marks)
        let_time_pass(os.path.join(self._home, "probe"))
        # git reads files again that are as new as its index; none is, because the clock has advanced.
        os.utime(self.checkout.index)
        self._own_index = _stamp(self.checkout.index)

    def restore_files(self) -> None:
        """Restore the tracked files, and leave the other files that a command wrote.

        A new attributes file is removed, because it would change what git writes.

        Raises:
            OSError: a folder cannot be restored.
            UndecidedError: git failed, or a command wrote to the index outside the tree.
        """
        if _stamp(self.checkout.index) != self._own_index:
            raise UndecidedError(
                "a command wrote outside the scratch tree", "let it write only inside its working directory"
            )
        root = os.fsencode(self.checkout.root)
        restore_folders(root, self._marks, self.checkout.names_in_index, b".gitattributes")
        self.checkout.write()
        self._own_index = _stamp(self.checkout.index)

    def reset_tree(self) -> None:
        """Restore the tree and record that; if this fails, the next use makes it again."""
        with contextlib.suppress(OSError, UndecidedError, RecursionError):
            root = os.fsencode(self.checkout.root)
            if not self.is_there() or _stamp(self.checkout.index) != self._own_index:
                return
            # First what does not belong, as in `restore_files`.
            self._remove_beside()
            restore_folders(root, self._marks, self.checkout.names_in_index)
            if self.checkout.touched():
                self.checkout.write()
                if self.checkout.touched():
                    return
            self._marks = mark_folders(root, self._marks)
            self._record_state()

    def is_there(self) -> bool:
        """Return whether the tree is still the same folder."""
        return self._identity is not None and identity_of(self.checkout.root) == self._identity

    def detach(self, root: str) -> None:
        """Move the tree to `root`; the next use makes another."""
        os.rename(self.checkout.root, root)
        self.checkout = replace(self.checkout, root=root)

    def _last_state(self) -> tuple[str, Marks] | None:
        """Find the tree of the last use; None if it is not recorded as clean."""
        state = _read_json(self._state)
        if state is None or state.get("format") != _FORMAT or state.get("home") != self._home:
            return None
        place = state.get("place")
        if not isinstance(place, str) or not _PLACE.fullmatch(place):
            return None
        self._identity = identity_of(os.path.join(self._home, place, "tree"))
        now = self._described(place)
        if any(state.get(key) != value for key, value in now.items()):
            return None
        try:
            with open(self._folders, "rb") as file:
                return place, _read_marks(file.read())
        except (OSError, ValueError):
            return None

    def _described(self, place: str) -> dict[str, object]:
        """Return what must not have changed since the last use."""
        return {
            "format": _FORMAT,
            "home": self._home,
            "place": place,
            "tree": list(self._identity or ()),
            "index": _stamp(os.path.join(self._home, "index")),
            "folders": _stamp(self._folders),
            "conversions": self._conversions,
        }

    def _is_updated(self, place: str, marks: Marks) -> bool:
        """Update the tree; return False if it must be made again."""
        self.checkout = self._at(place)
        try:
            # Later writes by a surviving command or another program: names, then contents. A file
            # that was overwritten in place changes no folder's times.
            with self.checkout.touched_meanwhile() as touched:
                if changed_folders(os.fsencode(self.checkout.root), marks):
                    return False
                # git would not write files again if only their attributes changed.
                is_converted_anew = any(
                    path.name == b".gitattributes" for path in self.checkout.moved_names()
                )
                if touched() or is_converted_anew:
                    return False
            self.checkout.move()
        except UndecidedError:
            return False
        self._marks = marks
        return True

    def _make_tree(self) -> None:
        """Remove the old tree, and check the new one out."""
        for name in os.listdir(self._home):
            if name in {"lock", "origin.json"}:
                continue
            path = os.path.join(self._home, name)
            if identity_of(path) is None:
                os.unlink(path)
            elif not remove(path):
                raise UndecidedError(
                    f"cannot remove an old scratch tree: {printable(path)}",
                    "a command left files of another user there: remove that folder as that user",
                )
        place = f"place-{secrets.token_hex(8)}"
        self.checkout = self._at(place)
        os.mkdir(os.path.dirname(self.checkout.root), 0o700)
        os.mkdir(self.checkout.root)
        self._identity = identity_of(self.checkout.root)
        self.checkout.write()
        self._marks = mark_folders(os.fsencode(self.checkout.root), {})

    def _remove_beside(self) -> None:
        """Remove `.git`, and what a command wrote next to the tree (such as a worktree)."""
        root = self.checkout.root
        above = os.path.dirname(root)
        for path in [os.path.join(root, ".git"), *(os.path.join(above, name) for name in os.listdir(above))]:
            if path == root:
                continue
            if os.path.lexists(path) and identity_of(path) is None:
                os.unlink(path)
            elif not remove(path):
                raise OSError(f"{path!r} cannot be removed")

    def _record_state(self) -> None:
        place = os.path.basename(os.path.dirname(self.checkout.root))
        _replace(self._folders, _print_marks(self._marks))
        _replace(self._state, json.dumps(self._described(place)).encode("ascii"))


def sweep_cached_trees(cache: str) -> list[str]:
    """Remove the cached trees of deleted repositories; return those that could not be removed."""
    stuck: list[str] = []
    with contextlib.suppress(OSError):
        trees = os.path.join(cache, "trees")
        for name in os.listdir(trees):
            home = os.path.join(trees, name)
            if not _HOME.fullmatch(name) or not _is_orphan(home):
                continue
            with (
                contextlib.suppress(OSError, UndecidedError),
                acquire(os.path.join(home, "lock"), timeout_seconds=0),
            ):
                if _is_orphan(home) and not remove(home):
                    stuck.append(home)
    return stuck


def _is_orphan(home: str) -> bool:
    """Return whether a folder has the cached tree of a deleted repository."""
    origin = _read_json(os.path.join(home, "origin.json"))
    if origin is None or origin.get("folder") != _inode(home):
        return False
    whose = origin.get("common_dir")
    if not isinstance(whose, str) or "\0" in whose:
        return False
    if os.path.basename(home) not in {_name_of(whose, number) for number in range(MOST_TREES)}:
        return False
    return not os.path.lexists(whose)


def _record_owner(repository: Repository, home: str) -> None:
    """Record whose tree this is; a folder of another owner is not touched."""
    file = os.path.join(home, "origin.json")
    whose = {"common_dir": os.path.realpath(repository.common_dir), "folder": _inode(home)}
    if _read_json(file) == whose:
        return
    if any(name != "lock" for name in os.listdir(home)):
        raise UndecidedError(
            f"{printable(home)} is not the folder of this repository's scratch tree",
            "move it away: it was copied, or something else wrote there",
        )
    _replace(file, json.dumps(whose).encode("ascii"))


def _inode(folder: str) -> int | None:
    """Return the inode of a folder; its device number may change after a restart."""
    identity = identity_of(folder)
    return identity[1] if identity else None


def _conversions(repository: Repository) -> str:
    """Hash what the bytes of a checkout depend on besides the tree: config, and `info/attributes`."""
    found = repository.git("config", "-z", "--get-regexp", _CONVERSIONS, answers=(0, 1)).out
    with (
        contextlib.suppress(OSError),
        open(os.path.join(repository.common_dir, "info", "attributes"), "rb") as file,
    ):
        found += b"\0\0" + file.read()
    return hashlib.sha256(found).hexdigest()


def _stamp(path: str) -> list[int]:
    """Identify a file and its last write: a program cannot set the time of its change (ctime)."""
    try:
        found = os.lstat(path)
    except OSError:
        return []
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def _read_json(path: str) -> Mapping[str, object] | None:
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _replace(path: str, content: bytes) -> None:
    """Write a file atomically, unflushed: after a power cut its stamp does not match."""
    with translate_errors("cannot write the state of the scratch tree"):
        spare = f"{path}.{secrets.token_hex(8)}"
        with open(spare, "wb") as file:
            file.write(content)
        os.rename(spare, path)


def _print_marks(marks: Marks) -> bytes:
    return b"".join(b"%d %d %d %d " % mark + folder + b"\0" for folder, mark in sorted(marks.items()))


def _read_marks(raw: bytes) -> Marks:
    found: Marks = {}
    for record in raw.split(b"\0")[:-1]:
        mode, inode, names, itself, folder = record.split(b" ", 4)
        found[folder] = (int(mode), int(inode), int(names), int(itself))
    return found
