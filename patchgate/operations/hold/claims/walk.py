"""A passage over all tracked files that passes by whole folders, and counts what it passed by.

Decides how little is done for a file that the scan would not read; which these are `gates.claim_scan` and the
suffixes say. The records are sorted, so a folder's end in a piece of them is found by halving: 500,000 files
under `vendor/` cost a few hundred comparisons.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Generator
from contextlib import closing

from patchgate.declared.claims import suffix_test
from patchgate.gates.claim_scan import is_passed_by
from patchgate.git.listing import Records, name_of
from patchgate.verdict.claim import Unscanned


class Walk:
    """One passage; `left_out` counts what was passed by so far.

    Args:
        suffixes: of names that are worth reading.
        known: names that somebody else has counted.
    """

    def __init__(self, suffixes: tuple[str, ...], known: Collection[bytes]) -> None:
        self.left_out: Counter[Unscanned] = Counter()
        self._is_allowed = suffix_test(suffixes)
        self._known = known

    def over(self, pieces: Records) -> Generator[bytes, None, None]:
        """Yield the records that are worth reading; the pieces are closed with it."""
        folder, above = b"", None
        with closing(pieces):
            for records in pieces:
                at = 0
                while at < len(records):
                    record = records[at]
                    name = name_of(record)
                    here = name.rpartition(b"/")[0]
                    if here != folder:
                        folder, above = here, _passed_by(here)
                    if above is not None:
                        end = bisect_left(records, above + b"0", lo=at, key=name_of)
                        self.left_out[Unscanned.EXCLUDED] += end - at - self._counted(records, at, end)
                        at = end
                        continue
                    at += 1
                    if self._is_allowed(name):
                        yield record
                    elif name not in self._known:
                        self.left_out[Unscanned.SUFFIX] += 1

    def _counted(self, records: list[bytes], start: int, stop: int) -> int:
        """Count the records between two places that somebody else has counted."""
        places = ((bisect_left(records, name, start, stop, key=name_of), name) for name in self._known)
        return sum(place < stop and name_of(records[place]) == name for place, name in places)


def _passed_by(folder: bytes) -> bytes | None:
    """Give the highest folder, of one and those above it, that is passed by; its names end before `<it>0`."""
    if not is_passed_by(folder):
        return None
    parts = folder.split(b"/")
    paths = (b"/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return next(path for path in paths if is_passed_by(path))
