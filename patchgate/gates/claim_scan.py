"""The bounded scan for placeholders: the files that a claim is about, then others, within caps.

Decides which files are read, in which order and how far, and what is said of those that are not. It does not
decide what a placeholder is (`gates.placeholder_text`), which files a claim is about, how a file is read
(a `Snapshot`), or whether what was seen is enough (`gates.claims`).

The order is that of the tiers, inside a tier that of the paths: no order of the input changes an answer. All
tiers are read to their end, so that every place is told; the fallback only where they show none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from patchgate.change.path import RepoPath
from patchgate.declared.claims import suffix_test
from patchgate.declared.markers import Markers
from patchgate.declared.settings import ClaimsSettings
from patchgate.gates.placeholder_text import matches_in, text_of
from patchgate.verdict.claim import Candidate, Place, Scan, Skipped, Tier, Unscanned

HEAVY_FOLDERS = frozenset(
    b"venv env node_modules bower_components jspm_packages vendor site-packages __pycache__ __pypackages__ "
    b"build _build dist target out htmlcov coverage CVS".split()
)
"""Folders that hold what was made or fetched: besides the hidden ones they are no part of the fallback."""

_ORDER = {tier: position for position, tier in enumerate(Tier)}
# Names of the fallback that are taken at once: their sizes are asked together, the clock between them.
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Looked:
    """What is known of a path before it is read: its `size` in bytes as stored, or else its `fault`.

    `fault` is MISSING (nothing there, or a folder), SYMLINK (it, or a folder above it) or OUTSIDE (a gitlink
    or below one, in `.git`).
    """

    size: int | None = None
    fault: Unscanned | None = None


class Snapshot(Protocol):
    """One tree that does not change while it is scanned: the index, a commit, the working tree."""

    def look(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, Looked]:
        """Tell of every path what is known without reading it."""
        ...

    def read(self, path: RepoPath, most: int) -> bytes:
        """Read the first `most` bytes, no more than there are, of a path that has no fault.

        Raises:
            UndecidedError: it cannot be read, or is no longer as it was when it was looked at.
        """
        ...

    def tracked(self, suffixes: tuple[str, ...]) -> Generator[RepoPath, None, None]:
        """Yield the tracked files by their paths' bytes, lazily; it is closed where the scan ends early.

        It may leave out what has none of the suffixes and what lies in a folder that `is_passed_by`.
        """
        ...

    def left_out(self) -> Mapping[Unscanned, int]:
        """Count what `tracked` left out by itself, as far as it was asked."""
        ...


@dataclass(frozen=True, slots=True)
class Caps:
    """How much is read at most, inclusive: files, bytes of all, bytes of one; and which names are text."""

    max_files: int
    max_total_bytes: int
    max_file_bytes: int
    suffixes: tuple[str, ...]


def caps_of(settings: ClaimsSettings) -> Caps:
    """Take the caps from the config; one file has no more room than all."""
    total = settings.contradiction_scan_max_total_bytes
    return Caps(
        settings.contradiction_scan_max_files,
        total,
        min(settings.contradiction_scan_max_file_bytes, total),
        settings.contradiction_scan_allowed_suffixes,
    )


def is_passed_by(folder: bytes) -> bool:
    """Tell whether the fallback passes by what lies in a folder: it, or one above it, is hidden or heavy."""
    return bool(folder) and any(
        part.startswith(b".") or part in HEAVY_FOLDERS or part.endswith(b".egg-info")
        for part in folder.split(b"/")
    )


def _never() -> bool:
    return False


def scan(
    snapshot: Snapshot,
    candidates: Iterable[Candidate],
    caps: Caps,
    markers: Markers,
    is_over: Callable[[], bool] = _never,
) -> Scan:
    """Scan the candidates, tier by tier, and then, where they show no placeholder, other tracked files.

    Args:
        snapshot: the tree that is judged.
        candidates: in any order; the first tier that names a file owns it.
        is_over: whether the time is up; asked before each file is read.

    Raises:
        UndecidedError: what was there could not be read.
    """
    owned = _owned(candidates)
    looked = snapshot.look([each.path for each in owned if each.path is not None])
    reading = _Reading(snapshot, caps, markers, is_over)
    skipped: list[Skipped] = []
    for candidate in owned:
        reason = reading.attempt(candidate, looked)
        if reason is not None:
            skipped.append(Skipped(candidate, reason))
    counts = Counter(each.tier for each in owned)
    passed_by: Counter[Unscanned] = Counter()
    used_fallback = not (reading.places or reading.timed_out) and reading.has_room()
    if used_fallback:
        before = reading.files
        passed_by.update(_fallback(reading, snapshot, {each.path for each in owned}))
        passed_by.update(snapshot.left_out())
        counts[Tier.FALLBACK] = reading.files - before
    return Scan(
        tuple(reading.scanned),
        caps.max_total_bytes - reading.room,
        tuple(skipped),
        {reason: passed_by[reason] for reason in Unscanned if passed_by[reason]},
        {tier: counts[tier] for tier in Tier},
        tuple(reading.places),
        used_fallback,
        reading.timed_out,
    )


def _owned(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Put the candidates in order, each file once."""

    def place(each: Candidate) -> tuple[int, bool, bytes, str]:
        return _ORDER[each.tier], each.path is None, each.path.raw if each.path else b"", each.given

    owned: dict[RepoPath | str, Candidate] = {}
    for candidate in sorted(candidates, key=place):
        owned.setdefault(candidate.given if candidate.path is None else candidate.path, candidate)
    return list(owned.values())


class _Reading:
    """What was read so far, and what may still be."""

    def __init__(self, snapshot: Snapshot, caps: Caps, markers: Markers, is_over: Callable[[], bool]) -> None:
        self.scanned: list[Candidate] = []
        self.places: list[Place] = []
        self.files = 0
        self.room = caps.max_total_bytes
        self.timed_out = False
        self.suffixes = caps.suffixes
        self.is_allowed = suffix_test(caps.suffixes)
        self._snapshot = snapshot
        self._caps = caps
        self._markers = markers
        self._is_over = is_over

    def has_room(self) -> bool:
        """Tell whether no cap forbids to read another file."""
        return self.files < self._caps.max_files and self.room > 0

    def is_over(self) -> bool:
        """Tell whether the time is up; once it is, it stays so."""
        self.timed_out = self.timed_out or self._is_over()
        return self.timed_out

    def attempt(self, candidate: Candidate, looked: Mapping[RepoPath, Looked]) -> Unscanned | None:
        """Scan a file, and tell why it was not scanned whole; None: it was."""
        path = candidate.path
        if path is None:
            return Unscanned.OUTSIDE
        known = looked.get(path, Looked())
        if known.fault is not None or known.size is None:
            return known.fault or Unscanned.MISSING
        if not self.is_allowed(path.raw):
            return Unscanned.SUFFIX
        if self.files >= self._caps.max_files:
            return Unscanned.CAP
        if self.is_over():
            return Unscanned.TIMEOUT
        size = known.size
        if not candidate.tier.is_high_priority:
            if size > self._caps.max_file_bytes:
                return Unscanned.TOO_LARGE
            if size > self.room:
                return Unscanned.CAP
        cut = Unscanned.TOO_LARGE if size > self._caps.max_total_bytes else Unscanned.CAP
        most = min(size, self.room)
        if size and not most:
            return cut
        return self._read(candidate, path, size, most) or (cut if most < size else None)

    def _read(self, candidate: Candidate, path: RepoPath, size: int, most: int) -> Unscanned | None:
        content = self._snapshot.read(path, most)[:most] if most else b""
        self.files += 1
        self.room -= len(content)
        text = text_of(content, len(content) == size)
        if len(content) < size and text is not None:
            # What a line says is not known before its end.
            text = text[: text.rfind(b"\n") + 1]
        for match in matches_in(text, path.raw, self._markers) if text else ():
            self.places.append(Place(candidate.tier, path, match.line, match.rule, match.marker))
        if len(content) < most:
            return Unscanned.MISSING
        if most < size:
            return None
        if text is None:
            return Unscanned.BINARY
        self.scanned.append(candidate)
        return None


def _fallback(reading: _Reading, snapshot: Snapshot, owned: set[RepoPath | None]) -> Counter[Unscanned]:
    """Scan the tracked files that no tier named until a cap or the time ends it, and count the others."""
    passed_by: Counter[Unscanned] = Counter()
    with closing(snapshot.tracked(reading.suffixes)) as tracked:
        folder, is_out = b"", False
        last: RepoPath | None = None
        while reading.has_room() and (names := list(islice(tracked, _BATCH))):
            if reading.is_over():
                break
            wanted: list[RepoPath] = []
            for path in names:
                if path == last or path in owned:
                    continue
                last = path
                if path.parent != folder:
                    folder = path.parent
                    is_out = is_passed_by(folder)
                if is_out:
                    passed_by[Unscanned.EXCLUDED] += 1
                elif not reading.is_allowed(path.raw):
                    passed_by[Unscanned.SUFFIX] += 1
                else:
                    wanted.append(path)
            looked = snapshot.look(wanted) if wanted else {}
            for path in wanted:
                reason = reading.attempt(Candidate(Tier.FALLBACK, path), looked)
                if reason is not None:
                    passed_by[reason] += 1
                if reason in {Unscanned.CAP, Unscanned.TIMEOUT} or not reading.has_room():
                    return passed_by
    return passed_by
