"""Whether a tree has an external dependency of a contract: a dotted module, or a path.

Both are searched below the source roots. Symlinks within the tree are followed; anything in a submodule
counts as present, since it cannot be read. Names that leave the repository match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchgate.git.model import GITLINK, SYMLINK
from patchgate.git.tree_view import TreeView

_MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_SUFFIXES = (b".py", b".pyi")
# Deeper names and longer chains of symlinks match nothing.
_MOST_PARTS = 40
_MOST_LINKS = 8
_MOST_LETTERS = 1000
_MOST_TARGET = 4096
_MOST_NAMES = 300
_IN_SUBMODULE = b"\0"


class ExternalDependencies:
    """The modules and paths of one tree, under the source roots of its policy."""

    def __init__(self, roots: Sequence[str], view: TreeView) -> None:
        self._view = view
        self._roots = [_inside(root.encode("utf-8", "surrogateescape")) or b"" for root in roots]
        self._known: dict[str, bool] = {}
        self._folders: dict[bytes, bytes | None] = {b"": b""}

    def has(self, name: str) -> bool:
        """Return whether the tree has a module or path of that name.

        Raises:
            UndecidedError: an object is missing.
        """
        if name not in self._known:
            self._known[name] = any(self._is_there(place) for place in self._places(name))
        return self._known[name]

    def places(self, name: str) -> Iterator[bytes]:
        """Yield the real paths in the tree of a name, without those in a submodule."""
        for path in self._places(name):
            if self._is_there(path):
                above, _, last = path.rpartition(b"/")
                folder = self._folder(path, 0)
                place = _joined(self._folder(above, 0) or b"", last) if folder is None else folder
                if place and not place.startswith(_IN_SUBMODULE):
                    yield place

    def like(self, name: str) -> Iterator[str]:
        """Yield the names next to the first missing part of a name: what may have been meant."""
        is_path = "/" in name or _MODULE.fullmatch(name) is None
        mark = "/" if is_path else "."
        parts = [part for part in name.split(mark) if part]
        if not parts or len(parts) > _MOST_PARTS or len(name) > _MOST_LETTERS:
            return
        for root in self._roots:
            for length in range(len(parts) - 1, -1, -1):
                inner = "/".join(parts[:length]).encode("utf-8", "surrogateescape")
                place = self._folder(_inside(_joined(root, inner)) or b"", 0)
                if place is not None and (length == 0 or place != b""):
                    yield from self._beside(place, parts[:length], mark)
                    break

    def _beside(self, folder: bytes, above: Sequence[str], mark: str) -> Iterator[str]:
        if folder == _IN_SUBMODULE:
            return
        for raw in self._view.names(folder)[:_MOST_NAMES]:
            name = raw.decode("utf-8", "surrogateescape")
            if mark == ".":
                name = name.removesuffix(".pyi").removesuffix(".py")
                if _MODULE.fullmatch(name) is None or "." in name or name == "__init__":
                    continue
            yield mark.join([*above, name])

    def _places(self, name: str) -> Iterator[bytes]:
        """Yield the possible paths of a name."""
        if len(name) > _MOST_LETTERS or name.startswith("/"):
            return
        path = _inside(name.encode("utf-8", "surrogateescape"))
        if not path:
            return
        module = name.replace(".", "/").encode("utf-8") if _MODULE.fullmatch(name) else None
        for root in self._roots:
            yield _joined(root, path)
            if module is not None:
                yield _joined(root, module)
                yield from (_joined(root, module + suffix) for suffix in _SUFFIXES)

    def _is_there(self, path: bytes) -> bool:
        above, _, name = path.rpartition(b"/")
        folder = self._folder(above, 0)
        if folder is None:
            return False
        return folder == _IN_SUBMODULE or self._view.exists(_joined(folder, name))

    def _folder(self, folder: bytes, links: int) -> bytes | None:
        """Resolve the symlinks of a folder's path; None if there is no such folder."""
        if folder not in self._folders:
            if folder.count(b"/") >= 2 * _MOST_PARTS or links > _MOST_LINKS:
                return None
            above, _, name = folder.rpartition(b"/")
            inside = self._folder(above, links)
            self._folders[folder] = (
                inside if inside in {None, _IN_SUBMODULE} else self._step(inside, name, links)
            )
        return self._folders[folder]

    def _step(self, above: bytes | None, name: bytes, links: int) -> bytes | None:
        place = _joined(above or b"", name)
        entry = self._view.entry(place)
        if entry is None:
            return place if self._view.exists(place) else None
        if entry.mode == GITLINK:
            return _IN_SUBMODULE
        objects = self._view.objects
        if entry.mode != SYMLINK or objects.sizes([entry.oid])[entry.oid] > _MOST_TARGET:
            return None
        target = objects.read(entry.oid)
        aim = None if target.startswith(b"/") else _inside(target, above or b"")
        return None if aim is None else self._folder(aim, links + 1)


def ends_of(name: str) -> frozenset[bytes]:
    """Return the last parts of the paths that a name may mean; for a module without its suffix."""
    path = _inside(name.encode("utf-8", "surrogateescape")) if len(name) <= _MOST_LETTERS else None
    if not path:
        return frozenset()
    last = path.rpartition(b"/")[2]
    return frozenset({last, last.rpartition(b".")[2]} if _MODULE.fullmatch(name) else {last})


def parts_of(path: bytes) -> frozenset[bytes]:
    """Return the parts of a path in which `ends_of` can meet it: with their suffixes, and without."""
    parts = path.split(b"/")
    return frozenset({*parts, *(parts[-1].removesuffix(suffix) for suffix in _SUFFIXES)})


def _inside(path: bytes, start: bytes = b"") -> bytes | None:
    """Normalise a path from the root; None if it leaves the repository or is not a path."""
    parts = start.split(b"/") if start else []
    for part in path.split(b"/"):
        if b"\0" in part or b"\n" in part:
            return None
        if part == b"..":
            if not parts:
                return None
            parts.pop()
        elif part not in {b"", b"."}:
            parts.append(part)
    return b"/".join(parts) if len(parts) <= _MOST_PARTS else None


def _joined(above: bytes, name: bytes) -> bytes:
    return above + b"/" + name if above and name else above or name
