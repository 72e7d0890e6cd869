"""Follow the symlinks of a tree as a kernel does, through links and `..`.

Decides whether a link leaves the repository. A name that is not in the tree counts as a folder, so a link to
something that does not exist yet is judged by its text. Each link is followed twice: with names as they are,
and as a case-insensitive file system finds them. Every walk is bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.model import GITLINK, SYMLINK, Entry
from patchgate.git.objects import Objects
from patchgate.git.path import fold, is_git_alias
from patchgate.git.tree_view import TreeView, differing_links
from patchgate.values import dataclass

LONGEST_TARGET = 4096
# Linux: MAXSYMLINKS.
_MOST_HOPS = 40
_TOO_FAR = f"leads through more than {_MOST_HOPS} symlinks, or in a circle"
_MOST_STEPS = 2_000_000
_MOST_STEPS_OF_ALL = 10_000_000
_MOST_TREES = 4
_AT_ONCE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Route:
    """The result of following a link: why it leaves the repository (None: it does not), and the paths on its
    way.
    """

    escape: str | None
    passed: frozenset[bytes]


class Links:
    """Follows links in one tree; lookups are cached, and the total of steps is bounded."""

    def __init__(self, view: TreeView, targets: Mapping[str, bytes | None]) -> None:
        """Take a tree, and targets of links by object id (None: longer than a path can be)."""
        self._view = view
        self._targets = dict(targets)
        self._entries: dict[bytes, Entry | None] = {}
        self._folded: dict[bytes, dict[str, bytes]] = {}
        self._steps = 0

    def follow(self, path: bytes) -> Route:
        """Follow the link at a path.

        Raises:
            UndecidedError: an object is missing, or the links of this change take too many steps.
        """
        exact = self._walk(path, is_folding=False)
        folding = self._walk(path, is_folding=True)
        return Route(exact.escape or folding.escape, exact.passed | folding.passed)

    def _walk(self, path: bytes, *, is_folding: bool) -> Route:
        folders = path.split(b"/")[:-1]
        rest: list[bytes] = [path.rpartition(b"/")[2]]
        passed: set[bytes] = set()
        hops = 0
        while rest:
            self._count_step()
            part = rest.pop()
            if part in {b"", b"."}:
                continue
            if part == b"..":
                if not folders:
                    return Route("leaves the repository", frozenset(passed))
                folders.pop()
                continue
            if is_git_alias(part):
                return Route("leads into .git", frozenset(passed))
            here, entry = self._look_up(b"/".join(folders), part, is_folding=is_folding)
            passed.add(here)
            if entry is not None and entry.mode == GITLINK:
                return Route("leads into a submodule", frozenset(passed))
            if entry is None or entry.mode != SYMLINK:
                folders.append(here.rpartition(b"/")[2])
                continue
            hops += 1
            if hops > _MOST_HOPS:
                return Route(_TOO_FAR, frozenset(passed))
            target = self._target(entry.oid)
            fault = _fault(target)
            if fault is not None or target is None:
                return Route(fault, frozenset(passed))
            rest.extend(reversed(target.split(b"/")))
        return Route(None, frozenset(passed))

    def _count_step(self) -> None:
        self._steps += 1
        objects = self._view.objects
        objects.link_steps += 1
        if self._steps > _MOST_STEPS:
            raise UndecidedError(
                "following the symlinks of this tree takes too many steps", "make the targets shorter"
            )
        if objects.link_steps > _MOST_STEPS_OF_ALL and objects.repository.has_limits:
            raise UndecidedError(
                "following the symlinks for each of these commits takes too many steps",
                "push fewer commits at once",
            )

    def _look_up(self, folder: bytes, name: bytes, *, is_folding: bool) -> tuple[bytes, Entry | None]:
        path = folder + b"/" + name if folder else name
        if path not in self._entries:
            self._entries[path] = self._view.entry(path)
        entry = self._entries[path]
        if entry is not None or not is_folding:
            return path, entry
        if folder not in self._folded:
            self._folded[folder] = {fold(each): each for each in self._view.names(folder)}
        found = self._folded[folder].get(fold(name), name)
        return (path, None) if found == name else self._look_up(folder, found, is_folding=False)

    def _target(self, oid: str) -> bytes | None:
        if oid not in self._targets:
            self._targets.update(read_targets(self._view.objects, [oid]))
        return self._targets[oid]


def _fault(target: bytes | None) -> str | None:
    """Return what is wrong with a target, by its text alone."""
    if target is None:
        return f"has a target of more than {LONGEST_TARGET} bytes"
    if not target or b"\0" in target:
        return "has a target that names nothing"
    if target.startswith(b"/"):
        return "has an absolute target"
    return "has a backslash in its target" if b"\\" in target else None


def read_targets(objects: Objects, oids: Collection[str]) -> dict[str, bytes | None]:
    """Read the targets of links, by their object ids; None for one that is longer than a path can be.

    Raises:
        UndecidedError: an object is missing, or not a blob.
    """
    sizes = objects.sizes(oids)
    found: dict[str, bytes | None] = {oid: None for oid, size in sizes.items() if size > LONGEST_TARGET}
    missing: Sequence[str] = [oid for oid in sizes if oid not in found]
    while missing:
        read = objects.read_some(missing, _AT_ONCE_BYTES, "blob")
        found.update(read)
        missing = missing[len(read) :]
    return found


def list_links(view: TreeView, over: Mapping[bytes, Entry | None]) -> dict[bytes, Entry]:
    """List every symlink of a tree with its overlay; reads the whole tree, in one git child, the first time.

    Raises:
        UndecidedError: git failed.
    """
    found = dict(_links_of(view.objects, view.tree))
    for path, entry in over.items():
        found.pop(path, None)
        if entry is not None and entry.mode == SYMLINK:
            found[path] = entry
    return found


def _links_of(objects: Objects, tree: str) -> dict[bytes, Entry]:
    """List the symlinks of a tree: of a later one what differs, so that many commits list it once."""
    known = objects.links
    if tree not in known:
        if known:
            near = next(reversed(known))
            found = dict(known[near])
            for path in differing_links(objects, tree, near):
                found.pop(path, None)
                entry = objects.entry(tree, path)
                if entry is not None and entry.mode == SYMLINK:
                    found[path] = entry
        else:
            found = {}
            for record in objects.list_tree(tree).split(b"\0"):
                if record.startswith(b"120000 "):
                    about, _, path = record.partition(b"\t")
                    found[path] = Entry(SYMLINK, about.rpartition(b" ")[2].decode("ascii"))
        while len(known) >= _MOST_TREES:
            del known[next(iter(known))]
        known[tree] = found
    return known[tree]
