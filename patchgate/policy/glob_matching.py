"""Match paths against gitignore patterns and literal prefixes, and refs against globs.

Git is the reference: a pattern that matches a folder matches everything in it; `?` and classes match one
byte. `literal_index` finds the few patterns that could match, and `gitignore_pattern` matches them in linear
time, so 100,000 paths and hostile names are cheap.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from sys import maxsize
from typing import TYPE_CHECKING
from unicodedata import is_normalized, normalize

from patchgate.git.path import bounded, fold, fold_simply
from patchgate.policy.glob_syntax import Fold, PatternError, Segment, readings
from patchgate.policy.literal_index import ASCII, FOLDED_ASCII, LiteralIndex, best_checks

if TYPE_CHECKING:
    from patchgate.policy.gitignore_pattern import TimedPatterns

__all__ = ["PatternError", "PatternSet", "PrefixSet", "with_folder"]

_NONE = maxsize
_MAX_SPECS = 1_000
# How patterns end that match everything below a folder.
_BELOW = re.compile(r"(?:(?:/\*{2,})+(?:/\*)?|/\*)/? *\Z")


def with_folder(pattern: str) -> str:
    """Let a pattern of everything below a folder match its name, too: of a submodule or a symlink there.

    Not where the last part of that name has a star: `*/**` does not match the files beside the folders.
    """
    below = _BELOW.search(pattern)
    folder = pattern[: below.start()] if below is not None else ""
    last = folder.rpartition("/")[2]
    if not last or "*" in last:
        return pattern
    if folder.endswith(" ") and (len(folder) - len(folder[:-1].rstrip("\\"))) % 2:
        # At the end of a pattern a blank counts only with a backslash.
        folder = f"{folder[:-1]}\\ "
    return folder if "/" in folder else f"/{folder}"


def _folds_one_by_one(text: str, folded: str) -> bool:
    """Return whether each character surely folds to one: case folding alone never makes a text shorter."""
    return len(text) == len(folded) == len(text.casefold()) and is_normalized("NFC", text)


class PatternSet:
    """Gitignore patterns without negation, in order. Without `exact` they match more than git, never less:

    - `dir/` also matches a file named `dir`;
    - a component with a class or an escape also matches its literal text: `[id].tsx` is a name in Next.js;
    - folded, a pattern also matches if it does after `patchgate.git.path.fold` on both sides, where `?` and
      classes match one character, before folding or after it; a byte that is not UTF-8 counts as one.

    An index of literal texts finds the patterns that could match; only these run, as a `pathspec.PathSpec`.
    Few paths get that far, and the first one that does imports pathspec (50 ms). Results are cached, so use
    a set in one thread only.

    Args:
        patterns: the patterns.
        folded: ignore case and normal forms: for denials, where matching too much is safe.
        exact: match exactly as git does: for permissions.
        fold_by: how it is folded; None: only read by characters, and not by bytes.

    Raises:
        PatternError: a pattern can match nothing or is not supported; `position` is its index.
    """

    __slots__ = (
        *("_folded", "_has_negated", "_index", "_is_exact", "_other_index", "_others", "_readings"),
        *("_specs", "patterns"),
    )

    def __init__(
        self, patterns: Sequence[str], *, folded: bool, exact: bool = False, fold_by: Fold | None = fold
    ) -> None:
        self.patterns = tuple(patterns)
        self._folded = folded
        self._is_exact = exact
        # Matches that folding can lose: by bytes, by characters as they are (`[!a]` for an A), and by those
        # that do not fold to one.
        self._others: tuple[PatternSet, PatternSet, PatternSet] | None = None
        self._has_negated = any("[!" in each or "[^" in each for each in self.patterns)
        self._readings: list[list[list[Segment]]] = []
        for index, pattern in enumerate(self.patterns):
            try:
                # One character for each byte.
                text = pattern if folded else pattern.encode("utf-8", "surrogateescape").decode("latin-1")
                self._readings.append(readings(text, fold_by if folded else None, exact))
            except PatternError as error:
                raise PatternError(str(error), index) from None
        self._index = self._make_index(FOLDED_ASCII if folded else ASCII)
        self._other_index: LiteralIndex | None = None
        self._specs: dict[frozenset[int], tuple[TimedPatterns, list[int]]] = {}

    def __bool__(self) -> bool:
        """Whether there is any pattern."""
        return bool(self.patterns)

    def match(self, path: bytes) -> int | None:
        """Return the index of the first pattern that matches the path or a parent folder, if any.

        Raises:
            UndecidedError: the patterns of this process have taken too long (`gitignore_pattern`).
        """
        if not self.patterns:
            return None
        path = bounded(path)
        if not self._folded:
            return self._find(path.decode("latin-1"))
        folded, text = fold(path), path.decode("utf-8", "surrogateescape")
        found = [self._find(folded)]
        is_simple = path.isascii() or _folds_one_by_one(text, folded)
        if self._has_negated or not path.isascii():
            if self._others is None:
                self._others = (
                    PatternSet(self.patterns, folded=False),
                    PatternSet(self.patterns, folded=True, fold_by=None),
                    PatternSet(self.patterns, folded=True, fold_by=fold_simply),
                )
            bytewise, literal, simple = self._others
            found += (bytewise._find(path.decode("latin-1")), literal._find(text))
            if not is_simple:
                found += (simple._find(fold_simply(path, with_ignored=each)) for each in (True, False))
        return min((each for each in found if each is not None), default=None)

    def _find(self, text: str) -> int | None:
        text = text.removeprefix("/")
        index = self._index
        if not text.isascii():
            # The characters that a class matches are known for ASCII only.
            if self._other_index is None:
                self._other_index = self._make_index("")
            index = self._other_index
        suspects = index.find(text)
        return self._ask(suspects, text) if suspects else None

    def _make_index(self, characters: str) -> LiteralIndex:
        return LiteralIndex(
            [
                check
                for segments in found
                for check in best_checks(segments, characters, is_exact=self._is_exact)
            ]
            for found in self._readings
        )

    def _ask(self, suspects: frozenset[int], text: str) -> int | None:
        """Run the patterns that could match."""
        asked = self._specs.get(suspects)
        if asked is None:
            from patchgate.policy.gitignore_pattern import TimedPatterns

            if len(self._specs) >= _MAX_SPECS:
                self._specs.clear()
            # The last pattern of a spec decides; here it is the first of the list.
            positions = sorted(suspects, reverse=True)
            made = TimedPatterns([self._readings[each] for each in positions], is_exact=self._is_exact)
            asked = made, positions
            self._specs[suspects] = asked
        spec, positions = asked
        found = spec.find(text)
        return None if found is None else positions[found]


class PrefixSet:
    """Literal folders or files from the root: `runs` matches `runs/a`, but never `runs_evil`.

    Outer slashes and `.` components are ignored; a prefix of only these is the whole repository.
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
        """Whether there is any prefix."""
        return bool(self.prefixes)

    def match(self, path: bytes) -> int | None:
        """Return the index of the first prefix that is the path or a parent folder; None if none is."""
        path = bounded(path)
        text = fold(path) if self._folded else path.decode("utf-8", "surrogateescape")
        best = min(self._indexes.get("", _NONE), self._indexes.get(text, _NONE))
        position = text.find("/")
        while 0 <= position <= self._longest:
            best = min(best, self._indexes.get(text[:position], _NONE))
            position = text.find("/", position + 1)
        return None if best == _NONE else best


def matches_ref(refs: Sequence[str], name: str) -> bool:
    """Check whether the full name of a ref is in the list or matches a glob in it, in any normal form."""
    return _matches(tuple(refs), normalize("NFC", name))


@lru_cache(maxsize=4_096)
def _matches(refs: tuple[str, ...], name: str) -> bool:
    # A push asks the same of each of its refs several times, and a pushed list may be long.
    return any(_fits(parts, name) for parts in _parted(refs))


@lru_cache(maxsize=16)
def _parted(refs: tuple[str, ...]) -> list[list[str]]:
    return [normalize("NFC", ref).split("*") for ref in refs]


def _fits(parts: Sequence[str], name: str) -> bool:
    first, *rest = parts
    if not rest:
        return first == name
    if not name.startswith(first):
        return False
    position = len(first)
    for part in rest[:-1]:
        position = name.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return len(name) - position >= len(rest[-1]) and name.endswith(rest[-1])
