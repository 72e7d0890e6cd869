"""The way over all tracked files: which of them the fallback reads, and what is counted of the others.

Decides which folders are passed by, and how little is done for what is: the names are sorted, so the end of a
folder is found by halving, and 500,000 files under `vendor/` cost a few hundred comparisons. How the names
are listed it does not decide, nor how many files are read (`placeholders.claims.claim_scan`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence

from patchgate.placeholders.claims.claim import Unscanned

HEAVY_FOLDERS = frozenset(
    b"venv env node_modules bower_components jspm_packages vendor site-packages __pycache__ __pypackages__ "
    b"build _build dist target out htmlcov coverage CVS".split()
)
"""Folders that hold what was made or fetched: besides the hidden ones they are no part of the fallback."""


def is_passed_by(folder: bytes) -> bool:
    """Tell whether the fallback passes by what lies in a folder: it, or one above it, is hidden or heavy."""
    return bool(folder) and any(map(_is_out, folder.split(b"/")))


def _is_out(name: bytes) -> bool:
    return name.startswith(b".") or name in HEAVY_FOLDERS or name.endswith(b".egg-info")


def _same(record: bytes) -> bytes:
    return record


class Walk:
    """One way over all tracked files; `left_out` counts what was passed by so far.

    Args:
        is_allowed: tells of a name whether its suffix is one of text.
        known: names of files that somebody else reads and counts.
        is_excluded: tells of a name whether the config leaves it out; None: of none.
    """

    def __init__(
        self,
        is_allowed: Callable[[bytes], bool],
        known: Collection[bytes] = (),
        is_excluded: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.left_out: Counter[Unscanned] = Counter()
        self._is_allowed = is_allowed
        self._is_excluded = is_excluded
        self._known = frozenset(known)
        self._sorted = sorted(self._known)

    def over(
        self, pieces: Iterable[Sequence[bytes]], name_of: Callable[[bytes], bytes] = _same
    ) -> Generator[bytes, None, None]:
        """Yield the records that are worth reading, each name once.

        Args:
            pieces: records, some at a time, in the order of their names' bytes.
            name_of: gives the name of a record.
        """
        folder, above, last = b"", None, None
        for records in pieces:
            at = 0
            while at < len(records):
                record = records[at]
                name = name_of(record)
                here = name.rpartition(b"/")[0]
                if here != folder:
                    folder, above = here, _passed_by(here)
                if above is not None:
                    # `0` comes after `/`: what is called more than the folder itself does not lie in it.
                    end = bisect_left(records, above + b"0", lo=at, key=name_of)
                    counted = self._known_among(records, at, end, above, name_of)
                    self.left_out[Unscanned.EXCLUDED] += end - at - counted
                    at = end
                    continue
                at += 1
                if name == last or name in self._known:
                    continue
                last = name
                if not self._is_allowed(name):
                    self.left_out[Unscanned.SUFFIX] += 1
                elif self._is_excluded is not None and self._is_excluded(name):
                    self.left_out[Unscanned.EXCLUDED] += 1
                else:
                    yield record

    def _known_among(
        self,
        records: Sequence[bytes],
        start: int,
        stop: int,
        folder: bytes,
        name_of: Callable[[bytes], bytes],
    ) -> int:
        """Count the records between two places, all of one folder, that somebody else counts."""
        first = bisect_left(self._sorted, folder + b"/")
        found = 0
        for name in self._sorted[first : bisect_left(self._sorted, folder + b"0", lo=first)]:
            place = bisect_left(records, name, start, stop, key=name_of)
            found += place < stop and name_of(records[place]) == name
        return found


def _passed_by(folder: bytes) -> bytes | None:
    """Give the highest folder, of one and those above it, that is passed by; its names end before `<it>0`."""
    parts = folder.split(b"/") if folder else []
    for count, name in enumerate(parts, start=1):
        if _is_out(name):
            return b"/".join(parts[:count])
    return None
