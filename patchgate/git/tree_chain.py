"""Prove trees well-formed without reading them: each from the tree before it and what git says has changed.

The tree that a change makes of a known one is computed and hashed. If its id is that of the new tree, the new
tree has these very bytes, so it has the form that git writes, and what git says is all that has changed.
"""

from __future__ import annotations

import hashlib
from binascii import a2b_hex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from patchgate.errors import UndecidedError
from patchgate.git.model import MalformedTreeError, TreeObject, tree_rows
from patchgate.git.objects import Objects

Record = tuple[bytes, bytes, bytes, bytes, bytes]
"""A raw record in git's words: both modes with a blank between, both object ids, status, path."""

_MOST_BYTES = 24 << 20
_MOST_OPEN = 16 << 20
# What a folder takes besides its bytes.
_OPEN_COSTS = 500
_READ_AT_ONCE = 4 << 20
# How many bytes the changes of one commit may copy; an added name takes the time of so many bytes for each.
_MOST_COPIED = 32 << 20
_INSERTION = 50
_FOLDER = b"40000 "


def _depth(folder: _Folder) -> int:
    return len(folder.line)


class _Folder:
    """A folder of the tree that the chain is at: its object, and its place in the one above it.

    `line` is the folder and all above it. `oid` is None where the tree has no such folder, as of `turn`.
    `is_free` is whether no two names in it may be one; false where nobody has asked.
    """

    __slots__ = ("is_free", "line", "name", "oid", "row", "text", "turn", "up")

    def __init__(self, up: _Folder | None, name: bytes) -> None:
        self.up = up
        self.name = name
        self.line: tuple[_Folder, ...] = (self,) if up is None else (self, *up.line)
        self.row = _FOLDER + name + b"\0"
        self.turn = 0
        self.oid: bytes | None = None
        self.text = b""
        self.is_free = False

    def become(self, oid: bytes | None, text: bytes) -> None:
        """Be another tree object."""
        self.oid, self.text, self.is_free = oid, text, False


class TreeChain:
    """Knows the bytes of the last trees of a walk, by their binary ids: up to a limit in bytes, and as many
    from before those.

    Most commits follow the one before them, so the folders of the last tree stay open. With `keeps` false, as
    for a line without merges, no other tree is kept that was made.
    """

    def __init__(self, object_format: str) -> None:
        self._hash: Callable[[bytes], hashlib._Hash] = getattr(hashlib, object_format)
        self._width = self._hash(b"").digest_size
        self._known: dict[bytes, bytes] = {}
        self._before: dict[bytes, bytes] = {}
        self._size = 0
        self._turn = 0
        self._open_size = 0
        self._root = _Folder(None, b"")
        self._folders = {b"": self._root}
        self.keeps = True

    def learn(self, objects: Objects, wanted: Iterable[bytes]) -> None:
        """Read those of some trees that are not known; one that git would not write so stays unknown."""
        missing = [each.hex() for each in wanted if not self.is_known(each)]
        while missing:
            try:
                read = objects.read_some(missing, _READ_AT_ONCE, "tree")
            except UndecidedError:
                return
            # One that is larger than the limit stays unknown.
            missing = missing[len(read) or 1 :]
            for oid, raw in read.items():
                try:
                    TreeObject.parse(raw, oid).require_current_form()
                except MalformedTreeError:
                    continue
                if (known := a2b_hex(oid)) not in self._known:
                    self._known[known] = raw
                    self._size += len(raw)
            self._forget()

    def is_known(self, oid: bytes) -> bool:
        """Return whether a tree is known, so well-formed."""
        return oid in self._known or oid in self._before

    def follow(self, objects: Objects, old: str, new: str, records: Sequence[Record]) -> bool:
        """Apply changes of regular files to a tree; return whether that gives the new tree.

        It is false also where that would take long.

        Args:
            objects: reads the trees that are not known.
            old: the id of the tree.
            new: that of the other one.
            records: what differs.
        """
        # Trees may differ in what git does not compare: `100664`.
        if not records or not self._start(objects, a2b_hex(old)):
            return False
        texts: dict[_Folder, bytes] = {}
        added: list[tuple[_Folder, bytes]] = []
        left = _MOST_COPIED
        for modes, old_oid, new_oid, status, path in records:
            place, _, name = path.rpartition(b"/")
            folder = self._folders.get(place)
            if folder is None or folder.turn != self._turn:
                folder = self._open(objects, place)
                if folder is None:
                    return False
            text = texts.get(folder, folder.text)
            left -= len(text) * (_INSERTION if status == b"A" else 1)
            if left < 0:
                return False
            # Where such bytes are in another place too, the hash differs.
            row = name + b"\0"
            if status == b"M":
                text = text.replace(row + a2b_hex(old_oid), row + a2b_hex(new_oid), 1)
            elif status == b"D":
                text = text.replace(modes[:6] + b" " + row + a2b_hex(old_oid), b"", 1)
            else:
                text = self._inserted(text, modes[7:] + b" " + row + a2b_hex(new_oid), name)
                added.append((folder, name))
            texts[folder] = text
        return self._move(texts, added, a2b_hex(new))

    def expect(self, objects: Objects, old: str, places: Iterable[bytes]) -> None:
        """Open folders of a tree, from which it goes on, with few questions to git."""
        if not self._start(objects, a2b_hex(old)):
            return
        levels: dict[int, set[bytes]] = {}
        for each in places:
            place = each
            while place and place not in (level := levels.setdefault(place.count(b"/"), set())):
                level.add(place)
                place = place.rpartition(b"/")[0]
        for depth in sorted(levels):
            if self._open_size > _MOST_OPEN:
                return
            found = [self._look_up(place) for place in levels[depth] if not self._is_open(place)]
            self.learn(objects, [oid for oid in found if oid is not None])
            for place in levels[depth]:
                self._open(objects, place)

    def _start(self, objects: Objects, oid: bytes) -> bool:
        """Be at a tree; return whether it could be read."""
        if self._open_size > _MOST_OPEN:
            self._open_size = 0
            self._root = _Folder(None, b"")
            self._folders = {b"": self._root}
        if self._root.oid == oid:
            return True
        text = self._read(objects, oid)
        if text is None:
            return False
        self._root.become(oid, text)
        self._turn += 1
        self._root.turn = self._turn
        return True

    def _read(self, objects: Objects, oid: bytes) -> bytes | None:
        self.learn(objects, [oid])
        return self._bytes_of(oid)

    def _bytes_of(self, oid: bytes) -> bytes | None:
        text = self._known.get(oid)
        return self._before.get(oid) if text is None else text

    def _is_open(self, place: bytes) -> bool:
        folder = self._folders.get(place)
        return folder is not None and folder.turn == self._turn

    def _look_up(self, place: bytes) -> bytes | None:
        """Find the id of a folder in the one above it; None if that is not open, or has none."""
        above, _, name = place.rpartition(b"/")
        if not self._is_open(above):
            return None
        text, row = self._folders[above].text, _FOLDER + name + b"\0"
        at = text.find(row) + len(row)
        return text[at : at + self._width] if at >= len(row) else None

    def _open(self, objects: Objects, place: bytes) -> _Folder | None:
        """Open a folder of the tree and those above it, one that it does not have as empty; None if one is
        unknown.
        """
        waiting = []
        while not self._is_open(place):
            waiting.append(place)
            place = place.rpartition(b"/")[0]
        for each in reversed(waiting):
            if self._open_size > _MOST_BYTES:
                return None
            oid = self._look_up(each)
            folder = self._folders.get(each)
            if folder is None:
                above, _, name = each.rpartition(b"/")
                folder = self._folders[each] = _Folder(self._folders[above], name)
                self._open_size += _OPEN_COSTS + 8 * len(folder.line)
            if folder.oid != oid:
                text = b"" if oid is None else self._read(objects, oid)
                if text is None:
                    return None
                self._open_size += len(text) - len(folder.text)
                folder.become(oid, text)
            folder.turn = self._turn
            place = each
        return self._folders[place]

    def _move(self, texts: dict[_Folder, bytes], added: list[tuple[_Folder, bytes]], new: bytes) -> bool:
        """Enter each changed folder in the one above it, the deepest first; be at the tree that this makes,
        if it is `new`.
        """
        make = self._hash
        oids, folders = [], next(iter(texts)).line if texts else (self._root,)
        if len(texts) > 1:
            every = dict.fromkeys(chain.from_iterable([each.line for each in texts]))
            folders = tuple(sorted(every, key=_depth, reverse=True))
        for folder in folders:
            text = texts[folder]
            oid = make(b"tree %d\0" % len(text) + text).digest()
            oids.append(oid)
            up, was = folder.up, folder.oid
            if up is None:
                break
            around = texts.get(up, up.text)
            if was is None:
                if not text:
                    return False
                texts[up] = self._inserted(around, folder.row + oid, folder.name + b"/")
                added.append((up, folder.name))
            elif text:
                texts[up] = around.replace(folder.row + was, folder.row + oid, 1)
            else:
                # Git keeps no empty folder.
                texts[up] = around.replace(folder.row + was, b"", 1)
        if oids[-1] != new:
            return False
        known = self._known
        for folder, oid in zip(folders, oids, strict=True):
            text = folder.text = texts[folder]
            folder.oid = oid if text or folder.up is None else None
            if self.keeps and oid not in known:
                known[oid] = text
                self._size += len(text)
        self._forget()
        for folder, name in added:
            self._open_size += len(name) + self._width + 8
            # The other names are known to differ. A match in an object id makes us compare all of them.
            same = b" %b\0" % name.lower()
            folder.is_free = folder.is_free and folder.text.lower().count(same) == 1
        return True

    def is_free_above(self, path: bytes) -> bool:
        """Return whether in no folder above a path of the tree two names may be one on some file system."""
        for folder in self._folders[path.rpartition(b"/")[0]].line:
            if not folder.is_free:
                if self.has_collision(folder.text):
                    return False
                folder.is_free = True
        return True

    def _forget(self) -> None:
        """Forget the older trees if there are enough newer ones."""
        if self._size > _MOST_BYTES:
            self._before, self._known, self._size = self._known, {}, 0

    def _inserted(self, text: bytes, row: bytes, key: bytes) -> bytes:
        """Add a row to a tree, in git's order: a folder sorts as if its name ended in a slash."""
        rows = tree_rows(text, self._width)
        place = bisect_left([each + b"/" if kind == b"40000" else each for kind, each, _ in rows], key)
        at = sum([len(kind) + len(each) for kind, each, _ in rows[:place]]) + place * (self._width + 2)
        return text[:at] + row + text[at:]

    def is_free_of_collisions(self, oid: bytes) -> bool:
        """Return whether a tree is known, and no two names in it may be the same on some file system."""
        text = self._bytes_of(oid)
        return text is not None and not self.has_collision(text)

    def has_collision(self, text: bytes) -> bool:
        """Return whether names of a tree may be the same on some file system; any other than ASCII may."""
        together = b"\0".join([name for _, name, _ in tree_rows(text, self._width)])
        return not together.isascii() or len(set(together.lower().split(b"\0"))) != together.count(b"\0") + 1
