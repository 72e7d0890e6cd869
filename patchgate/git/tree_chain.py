"""Prove trees well-formed without reading them: each from the tree before it and what git says has changed.

The tree that a change makes of a known one is computed and hashed. If its id is that of the new tree, the new
tree has these very bytes, so it has the form that git writes, and what git says is all that has changed.
"""

from __future__ import annotations

import hashlib
from binascii import a2b_hex
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.model import MalformedTreeError, TreeObject, tree_rows
from patchgate.git.objects import Objects

Record = tuple[bytes, bytes, bytes, bytes, bytes]
"""A raw record in git's words: both modes with a blank between, both object ids, status, path."""

_MOST_BYTES = 48 << 20
_READ_AT_ONCE = 4 << 20
# How many bytes the changes of one commit may copy; an added name takes the time of so many bytes for each.
_MOST_COPIED = 32 << 20
_INSERTION = 50
_FOLDER = b"40000 "


class TreeChain:
    """Knows the bytes of the last trees of a walk, by their binary ids, up to a limit in bytes."""

    def __init__(self, object_format: str) -> None:
        self._hash: Callable[[bytes], hashlib._Hash] = getattr(hashlib, object_format)
        self._width = self._hash(b"").digest_size
        self._known: dict[bytes, bytes] = {}
        self._size = 0

    def learn(self, objects: Objects, wanted: Iterable[bytes]) -> None:
        """Read those of some trees that are not known; one that git would not write so stays unknown."""
        missing = [each.hex() for each in wanted if each not in self._known]
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
                self._keep({a2b_hex(oid): raw})

    def is_known(self, oid: bytes) -> bool:
        """Return whether a tree is known, so well-formed."""
        return oid in self._known

    def follow(
        self, objects: Objects, old: str, new: str, records: Sequence[Record]
    ) -> Mapping[bytes, bytes] | None:
        """Apply changes of regular files to a tree; None unless that gives the new tree.

        Args:
            objects: reads the trees that are not known.
            old: the id of the tree.
            new: that of the other one.
            records: what differs.

        Returns:
            The bytes of the changed folders, by their paths. None also where that would take long.
        """
        root = self._read(objects, a2b_hex(old))
        if root is None:
            return None
        texts, before = {b"": root}, dict[bytes, bytes | None]()
        left = _MOST_COPIED
        for modes, old_oid, new_oid, status, path in records:
            folder, _, name = path.rpartition(b"/")
            if folder not in texts and not self._open(objects, texts, before, folder):
                return None
            text = texts[folder]
            left -= len(text) * (_INSERTION if status == b"A" else 1)
            if left < 0:
                return None
            # Where such bytes are in another place too, the hash differs.
            row = name + b"\0"
            if status == b"M":
                texts[folder] = text.replace(row + a2b_hex(old_oid), row + a2b_hex(new_oid), 1)
            elif status == b"D":
                texts[folder] = text.replace(modes[:6] + b" " + row + a2b_hex(old_oid), b"", 1)
            else:
                texts[folder] = self._inserted(text, modes[7:] + b" " + row + a2b_hex(new_oid), name)
        return texts if self._close(texts, before, a2b_hex(new)) else None

    def _read(self, objects: Objects, oid: bytes) -> bytes | None:
        if oid not in self._known:
            self.learn(objects, [oid])
        return self._known.get(oid)

    def _open(
        self, objects: Objects, texts: dict[bytes, bytes], before: dict[bytes, bytes | None], folder: bytes
    ) -> bool:
        """Add a folder and those above it to the open ones, a new one as empty; false if one is unknown."""
        waiting = []
        while folder not in texts:
            waiting.append(folder)
            folder = folder.rpartition(b"/")[0]
        for each in reversed(waiting):
            above, _, name = each.rpartition(b"/")
            row = _FOLDER + name + b"\0"
            parent = texts[above]
            at = parent.find(row)
            if at < 0:
                texts[each], before[each] = b"", None
                continue
            at += len(row)
            oid = before[each] = parent[at : at + self._width]
            text = self._known.get(oid) or self._read(objects, oid)
            if text is None:
                return False
            texts[each] = text
        return True

    def _close(self, texts: dict[bytes, bytes], before: Mapping[bytes, bytes | None], new: bytes) -> bool:
        """Enter each open folder in the one above it, the deepest first; return whether the root is `new`."""
        make = self._hash
        made: dict[bytes, bytes] = {}
        for folder in sorted(texts, key=len, reverse=True):
            text = texts[folder]
            oid = make(b"tree %d\0" % len(text) + text).digest()
            made[oid] = text
            if not folder:
                if oid != new:
                    return False
                break
            above, _, name = folder.rpartition(b"/")
            was, row = before[folder], name + b"\0"
            if was is None:
                if not text:
                    return False
                texts[above] = self._inserted(texts[above], _FOLDER + row + oid, name + b"/")
            elif text:
                texts[above] = texts[above].replace(row + was, row + oid, 1)
            else:
                # Git keeps no empty folder.
                texts[above] = texts[above].replace(_FOLDER + row + was, b"", 1)
        self._keep(made)
        return True

    def _keep(self, trees: Mapping[bytes, bytes]) -> None:
        known = self._known
        self._size += sum([len(text) for oid, text in trees.items() if oid not in known])
        known.update(trees)
        while self._size > _MOST_BYTES:
            self._size -= len(known.pop(next(iter(known))))

    def _inserted(self, text: bytes, row: bytes, key: bytes) -> bytes:
        """Add a row to a tree, in git's order: a folder sorts as if its name ended in a slash."""
        rows = tree_rows(text, self._width)
        place = bisect_left([each + b"/" if kind == b"40000" else each for kind, each, _ in rows], key)
        at = sum([len(kind) + len(each) for kind, each, _ in rows[:place]]) + place * (self._width + 2)
        return text[:at] + row + text[at:]

    def is_free_of_collisions(self, oid: bytes) -> bool:
        """Return whether a tree is known, and no two names in it may be the same on some file system."""
        text = self._known.get(oid)
        return text is not None and not self.has_collision(text)

    def has_collision(self, text: bytes) -> bool:
        """Return whether names of a tree may be the same on some file system; any other than ASCII may."""
        together = b"\0".join([name for _, name, _ in tree_rows(text, self._width)])
        return not together.isascii() or len(set(together.lower().split(b"\0"))) != together.count(b"\0") + 1
