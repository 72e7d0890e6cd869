"""Gitignore patterns, literal prefixes, patterns of refs: made to answer for 100,000 paths at little cost.

Decides which pattern of a list matches a path first. Git is the reference: whatever matches a folder matches
everything beneath it; `?` and classes take one byte. The patterns become one tree over path components, which
is walked once for each folder; nothing backtracks over components, so hostile names cost linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from sys import maxsize

from patchgate.git.path import bounded, fold
from patchgate.policy.glob_syntax import PatternError, Segment, readings

__all__ = ["PatternError", "PatternSet", "PrefixSet"]

_NONE = maxsize
_MAX_FOLDERS = 50_000
# Real folders are shorter. Paths of 4,096 bytes, one folder for every second byte, would fill the memory.
_MAX_REMEMBERED = 512


class _RegexMatcher:
    """Components that only a regular expression can match; compiled when first asked."""

    __slots__ = ("_compiled", "_indexes", "_sources")

    def __init__(self) -> None:
        self._sources: list[str] = []
        self._indexes: list[int] = []
        self._compiled: re.Pattern[str] | None = None

    def add(self, source: str, index: int) -> None:
        self._sources.append(source)
        self._indexes.append(index)

    def find(self, name: str) -> int:
        """Find the first that matches; alternatives are tried in their order, the empty group names one."""
        if self._compiled is None:
            self._compiled = re.compile("|".join(rf"{each}\Z()" for each in self._sources), re.DOTALL)
        found = self._compiled.match(name)
        return self._indexes[found.lastindex - 1] if found and found.lastindex else _NONE


class _Node:
    """One place in the tree of patterns: which names end a pattern here, and which lead further.

    A node that `stays` was reached by `**/`: it is in force for every folder below, too. One that `has_ends`
    is where some pattern ends.
    """

    __slots__ = (
        *("_any", "_exact", "_expressions", "_globs", "_heads", "_is_exact", "_named", "_tails"),
        *("deep", "has_ends", "stays"),
    )

    def __init__(self, is_exact: bool, stays: bool = False) -> None:
        self._is_exact = is_exact
        self.stays = stays
        self.has_ends = False
        self.deep: _Node | None = None
        self._named: dict[str, _Node] = {}
        self._globs: dict[str, tuple[re.Pattern[str], _Node]] = {}
        self._any = _NONE
        self._exact: dict[str, int] = {}
        # `*suffix` by the last character, then by length; `prefix*rest` by the first, then by length.
        self._tails: dict[str, dict[int, dict[str, int]]] = {}
        self._heads: dict[str, dict[int, dict[str, list[tuple[str, int]]]]] = {}
        # By the first character where it is known, else under "".
        self._expressions: dict[str, _RegexMatcher] = {}

    def step(self, segment: Segment) -> _Node:
        """Go on to the node behind a folder, making it where there is none."""
        if segment.is_any_depth:
            if self.stays:
                return self
            self.deep = self.deep or _Node(self._is_exact, stays=True)
            return self.deep
        name = segment.plain
        if name is not None and (self._is_exact or name == segment.written):
            return self._named.setdefault(name, _Node(self._is_exact))
        if segment.written not in self._globs:
            own = "" if self._is_exact else re.escape(segment.written) + "|"
            compiled = re.compile(f"(?:{own}{segment.expression})\\Z", re.DOTALL)
            self._globs[segment.written] = (compiled, _Node(self._is_exact))
        return self._globs[segment.written][1]

    def end(self, segment: Segment, index: int) -> None:
        """Let the pattern `index` end with this component; indexes come in ascending order."""
        self.has_ends = True
        if not self._is_exact:
            self._exact.setdefault(segment.written, index)
        if segment.plain is not None:
            self._exact.setdefault(segment.plain, index)
            return
        affixes = segment.affixes
        if affixes is None:
            first = segment.pieces[0]
            key = first[0] if isinstance(first, str) else ""
            self._expressions.setdefault(key, _RegexMatcher()).add(segment.expression, index)
            return
        before, after = affixes
        if before:
            heads = self._heads.setdefault(before[0], {}).setdefault(len(before), {})
            heads.setdefault(before, []).append((after, index))
        elif after:
            tails = self._tails.setdefault(after[-1], {}).setdefault(len(after), {})
            tails.setdefault(after, index)
        else:
            self._any = min(self._any, index)

    def find(self, name: str) -> int:
        """Find the lowest index of the patterns that end with this name."""
        best = self._exact.get(name, _NONE)
        best = min(best, self._any)
        first, last = name[:1], name[-1:]
        if last in self._tails:
            for length, tails in self._tails[last].items():
                best = min(best, tails.get(name[-length:], _NONE))
        if first in self._heads:
            for length, heads in self._heads[first].items():
                for after, index in heads.get(name[:length], ()):
                    if len(name) >= length + len(after) and name.endswith(after):
                        best = min(best, index)
                        break
        if self._expressions:
            for key in (first, ""):
                if key in self._expressions:
                    best = min(best, self._expressions[key].find(name))
        return best

    def nodes_behind(self, name: str) -> Iterator[_Node]:
        """Yield the nodes that a folder of this name leads to."""
        if name in self._named:
            yield self._named[name]
        for compiled, node in self._globs.values():
            if compiled.match(name):
                yield node


class _FolderMatcher:
    """What holds in one folder: the lowest index that matched it or a parent, and the nodes in force."""

    __slots__ = ("enders", "index", "nodes", "resting")

    def __init__(self, index: int, nodes: tuple[_Node, ...]) -> None:
        self.index = index
        self.nodes = nodes
        self.enders = tuple(node for node in nodes if node.has_ends)
        lasting = tuple(node for node in nodes if node.stays)
        # What holds in a folder below whose name says nothing to any pattern: nearly every folder.
        self.resting: _FolderMatcher = self if lasting == nodes else _FolderMatcher(index, lasting)

    def find(self, name: str) -> int:
        """Find the lowest index for a child of this folder."""
        best = self.index
        for node in self.enders:
            found = node.find(name)
            best = min(best, found)
        return best

    def below(self, name: str) -> _FolderMatcher:
        """Go into the folder of this name."""
        index = self.find(name)
        behind = [further for node in self.nodes for further in node.nodes_behind(name)]
        if not behind and index == self.index:
            return self.resting
        deep = [node.deep for node in behind if node.deep is not None]
        return _FolderMatcher(index, tuple(dict.fromkeys([*self.resting.nodes, *behind, *deep])))


class PatternSet:
    """Gitignore patterns without negation, in their order; those that are not `exact` match more, never less:

    - `dir/` also matches a file named `dir`;
    - a component with a class or an escape also matches its own text: `[id].tsx` is a name in Next.js;
    - folded, a pattern also matches where it does so after both sides went through `patchgate.git.path.fold`,
      where `?` and classes take one character; a byte that is not UTF-8 is one.

    Unchanging to its callers; it remembers up to 50,000 folders that it met, so one set serves one thread.

    Args:
        patterns: the patterns.
        folded: case and normal forms say nothing: for what denies, where a match too many is the safe answer.
        exact: git's answer and no match more: for what allows.

    Raises:
        PatternError: a pattern can match nothing or is not supported; `position` says which.
    """

    __slots__ = ("_bytewise", "_folded", "_folders", "_has_negated", "_root", "patterns")

    def __init__(self, patterns: Sequence[str], *, folded: bool, exact: bool = False) -> None:
        self.patterns = tuple(patterns)
        self._folded = folded
        # What folding may lose of git's answer: where one character is not one byte, and `[!a]` for an A.
        self._bytewise: PatternSet | None = None
        self._has_negated = any("[!" in each or "[^" in each for each in self.patterns)
        root = _Node(exact)
        for index, pattern in enumerate(self.patterns):
            try:
                # One character for each byte.
                text = pattern if folded else pattern.encode("utf-8", "surrogateescape").decode("latin-1")
                found = readings(text, folded, exact)
            except PatternError as error:
                raise PatternError(str(error), index) from None
            for segments in found:
                node = root
                for segment in segments[:-1]:
                    node = node.step(segment)
                node.end(segments[-1], index)
        self._root = _FolderMatcher(_NONE, (root,) if root.deep is None else (root, root.deep))
        self._folders = {"": self._root}

    def __bool__(self) -> bool:
        """Tell whether there is any pattern."""
        return bool(self.patterns)

    def match(self, path: bytes) -> int | None:
        """Find the first pattern of the list that matches the path or a folder above it, if any."""
        path = bounded(path)
        best = self._find(fold(path) if self._folded else path.decode("latin-1"))
        if self._folded and (self._has_negated or not path.isascii()) and self.patterns:
            if self._bytewise is None:
                self._bytewise = PatternSet(self.patterns, folded=False)
            best = min(best, self._bytewise._find(path.decode("latin-1")))
        return None if best == _NONE else best

    def _find(self, text: str) -> int:
        above, _, name = text.rpartition("/")
        folder = self._folders.get(above) or self._enter(above)
        best = folder.index
        for node in folder.enders:
            found = node.find(name)
            best = min(best, found)
        return best

    def _enter(self, path: str) -> _FolderMatcher:
        """Walk to a folder from the nearest one above that is remembered, remembering those on the way."""
        if len(self._folders) >= _MAX_FOLDERS:
            self._folders = {"": self._root}
        # Only what may be remembered is cut at each folder: of a long path that would be a long text each.
        near = path if len(path) <= _MAX_REMEMBERED else path[: _MAX_REMEMBERED + 1].rpartition("/")[0]
        deeper = path[len(near) + 1 :] if near else path
        unknown: list[str] = []
        while (folder := self._folders.get(near)) is None:
            unknown.append(near)
            near = near.rpartition("/")[0]
        for each in reversed(unknown):
            folder = folder.below(each.rpartition("/")[2])
            self._folders[each] = folder
        for name in deeper.split("/") if deeper else ():
            folder = folder.below(name)
        return folder


class PrefixSet:
    """Literal folders or files, anchored at the root: `runs` is `runs/`, and never `runs_evil`.

    Slashes at the ends and `.` components say nothing; a prefix of nothing else is the whole repository.
    """

    __slots__ = ("_folded", "_indexes", "_longest", "prefixes")

    def __init__(self, prefixes: Sequence[str], *, folded: bool) -> None:
        self.prefixes = tuple(prefixes)
        self._folded = folded
        self._indexes: dict[str, int] = {}
        for index, prefix in enumerate(self.prefixes):
            bare = "/".join(part for part in prefix.split("/") if part not in {"", "."})
            key = fold(bare.encode("utf-8", "surrogateescape")) if folded else bare
            self._indexes.setdefault(key, index)
        self._longest = max(map(len, self._indexes), default=-1)

    def __bool__(self) -> bool:
        """Tell whether there is any prefix."""
        return bool(self.prefixes)

    def match(self, path: bytes) -> int | None:
        """Find the first prefix of the list that is the path or a folder above it; None if none is."""
        path = bounded(path)
        text = fold(path) if self._folded else path.decode("utf-8", "surrogateescape")
        best = min(self._indexes.get("", _NONE), self._indexes.get(text, _NONE))
        position = text.find("/")
        while 0 <= position <= self._longest:
            best = min(best, self._indexes.get(text[:position], _NONE))
            position = text.find("/", position + 1)
        return None if best == _NONE else best


def matches_ref(refs: Sequence[str], name: str) -> bool:
    """Tell whether a ref's full name is one of these, or fits a pattern among them."""
    return any(_fits(ref, name) for ref in refs)


def _fits(ref: str, name: str) -> bool:
    first, *rest = ref.split("*")
    if not rest:
        return ref == name
    if not name.startswith(first):
        return False
    position = len(first)
    for part in rest[:-1]:
        position = name.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return len(name) - position >= len(rest[-1]) and name.endswith(rest[-1])
