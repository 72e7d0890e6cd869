"""The bounded scan for placeholders: the files that a claim is about, then other tracked files, within caps.

Decides which files are read, in which order and how far, which tracked files are skipped, and the reason for
each file that was not read. Not: what a placeholder is, which files a claim is about, how a file is read (a
`Snapshot`), whether enough was scanned (`claim_decision`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Protocol

from patchgate.git.path import RepoPath
from patchgate.placeholders.claims.claim import (
    Candidate,
    PlaceholderLocation,
    ScanResult,
    Skipped,
    SkipReason,
    Tier,
)
from patchgate.placeholders.empty_functions import no_timeout
from patchgate.placeholders.placeholder_matches import find_matches, to_utf8
from patchgate.policy.claims_settings import suffix_test
from patchgate.policy.placeholder_markers import Markers
from patchgate.policy.settings import ClaimsSettings
from patchgate.values import dataclass

HEAVY_FOLDERS = frozenset(
    b"venv env node_modules bower_components jspm_packages vendor site-packages __pycache__ __pypackages__ "
    b"build _build dist target out htmlcov coverage CVS".split()
)
"""Folders with generated or downloaded files; the fallback skips them and hidden folders."""


def _is_excluded_name(name: bytes) -> bool:
    return name.startswith(b".") or name in HEAVY_FOLDERS or name.endswith(b".egg-info")


class FallbackFilter:
    """Selects the tracked files that the fallback scans; `skipped` counts the others so far.

    Args:
        is_allowed: returns whether a name has a suffix of text files.
        known: names of files that the tiers read and count.
        is_excluded: returns whether the config leaves a name out; None: it leaves out nothing.
    """

    def __init__(
        self,
        is_allowed: Callable[[bytes], bool],
        known: Collection[bytes] = (),
        is_excluded: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.skipped: Counter[SkipReason] = Counter()
        self._is_allowed = is_allowed
        self._is_excluded = is_excluded
        self._known = frozenset(known)
        self._sorted = sorted(self._known)

    def select(
        self, pieces: Iterable[Sequence[bytes]], name_of: Callable[[bytes], bytes] = bytes
    ) -> Generator[bytes, None, None]:
        """Yield the records to scan, each name once.

        Args:
            pieces: records in batches, in the order of their names' bytes.
            name_of: returns the name of a record.
        """
        folder, above, last = b"", None, None
        for records in pieces:
            at = 0
            while at < len(records):
                record = records[at]
                name = name_of(record)
                here = name.rpartition(b"/")[0]
                if here != folder:
                    folder, above = here, excluded_folder(here)
                if above is not None:
                    # `0` comes after `/`, so this is the end of the folder's own entries.
                    end = bisect_left(records, above + b"0", lo=at, key=name_of)
                    counted = self._known_among(records, at, end, above, name_of)
                    self.skipped[SkipReason.EXCLUDED] += end - at - counted
                    at = end
                    continue
                at += 1
                if name == last or name in self._known:
                    continue
                last = name
                if not self._is_allowed(name):
                    self.skipped[SkipReason.SUFFIX] += 1
                elif self._is_excluded is not None and self._is_excluded(name):
                    self.skipped[SkipReason.EXCLUDED] += 1
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
        """Count the records between two positions, all of one folder, that the tiers count."""
        first = bisect_left(self._sorted, folder + b"/")
        found = 0
        for name in self._sorted[first : bisect_left(self._sorted, folder + b"0", lo=first)]:
            place = bisect_left(records, name, start, stop, key=name_of)
            found += place < stop and name_of(records[place]) == name
        return found


def excluded_folder(folder: bytes) -> bytes | None:
    """Return the highest folder, of this one and its parents, that is skipped: hidden, or heavy."""
    parts = folder.split(b"/") if folder else []
    for count, name in enumerate(parts, start=1):
        if _is_excluded_name(name):
            return b"/".join(parts[:count])
    return None


_ORDER = {tier: position for position, tier in enumerate(Tier)}
# Paths that are inspected together, and names of the fallback that are read at once; the clock is read
# between batches.
_AT_ONCE = 400
_BATCH = 64
# Where a file of high priority was skipped for one of these, no budget is left for the fallback.
_BUDGET_REASONS = frozenset({SkipReason.CAP, SkipReason.TOO_LARGE})


@dataclass(frozen=True, slots=True)
class PathInfo:
    """What is known about a path before it is read: its `size` in bytes as stored, or its `fault`.

    `fault` is MISSING (nothing there, or a folder), SYMLINK (it, or a folder above it), OUTSIDE (a gitlink or
    below one, or in `.git`) or UNREADABLE.
    """

    size: int | None = None
    fault: SkipReason | None = None


class Snapshot(Protocol):
    """One tree: the index, a commit, the working tree."""

    def inspect(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, PathInfo]:
        """Look up every path without reading it.

        Raises:
            UndecidedError: the tree itself cannot be read.
        """
        ...

    def read(self, path: RepoPath, most: int) -> bytes | None:
        """Read at most `most` bytes from the beginning of a path that was inspected and has no fault.

        None: it cannot be read, or it changed after it was inspected.
        """
        ...

    def tracked(self, selection: FallbackFilter) -> Generator[RepoPath, None, None]:
        """Yield the tracked files that a filter selects, lazily; closed when the scan ends.

        Raises:
            UndecidedError: they cannot be listed.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScanCaps:
    """The limits of a scan, inclusive: files, bytes in total, bytes of one file; and the suffixes of text."""

    max_files: int
    max_total_bytes: int
    max_file_bytes: int
    suffixes: tuple[str, ...]


def caps_of(settings: ClaimsSettings) -> ScanCaps:
    """Read the caps from the config; the cap of one file is at most that of all."""
    total = settings.contradiction_scan_max_total_bytes
    return ScanCaps(
        max_files=settings.contradiction_scan_max_files,
        max_total_bytes=total,
        max_file_bytes=min(settings.contradiction_scan_max_file_bytes, total),
        suffixes=settings.contradiction_scan_allowed_suffixes,
    )


def scan(
    snapshot: Snapshot,
    candidates: Iterable[Candidate],
    caps: ScanCaps,
    markers: Markers,
    is_time_up: Callable[[], bool] = no_timeout,
    *,
    unstaged: Collection[RepoPath] = (),
    is_excluded: Callable[[bytes], bool] | None = None,
) -> ScanResult:
    """Scan the candidates, tier by tier, and, where they have no placeholder, other tracked files.

    Args:
        snapshot: the tree to scan.
        candidates: in order within a tier; a file belongs to the first tier that names it.
        is_time_up: called before, in and after each file, and never again once it has returned True.
        unstaged: files with different contents in the index and the working tree; those of high priority are
            not read.
        is_excluded: returns whether the fallback leaves a name out; None: it leaves out nothing.

    Raises:
        UndecidedError: the tree cannot be read; a file that cannot be read is UNREADABLE.
    """
    owned = _in_order(candidates)
    run = _ScanRun(snapshot=snapshot, caps=caps, markers=markers, is_time_up=is_time_up)
    inspected = run.inspect([each.path for each in owned if each.path is not None])
    skipped: list[Skipped] = []
    for candidate in owned:
        reason = run.scan_file(candidate, inspected, unstaged if candidate.tier.is_high_priority else ())
        if reason is not None:
            skipped.append(Skipped(candidate, reason))
    counts = Counter(each.tier for each in owned)
    left_out: Counter[SkipReason] = Counter()
    is_spent = any(
        each.reason in _BUDGET_REASONS and each.candidate.tier.is_high_priority for each in skipped
    )
    used_fallback = not run.placeholders and not is_spent and not run.is_time_up()
    if used_fallback:
        before = run.files
        known = [each.path.raw for each in owned if each.path is not None]
        left_out = _scan_fallback(run, snapshot, FallbackFilter(run.is_allowed, known, is_excluded))
        counts[Tier.FALLBACK] = run.files - before
    return ScanResult(
        scanned=tuple(run.scanned),
        total_bytes=caps.max_total_bytes - run.bytes_left,
        skipped=tuple(skipped),
        fallback_skipped={reason: left_out[reason] for reason in SkipReason if left_out[reason]},
        source_counts={tier: counts[tier] for tier in Tier},
        placeholders=tuple(run.placeholders),
        used_fallback=used_fallback,
        timed_out=run.timed_out,
    )


def _in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort the candidates by tier, each file once."""
    owned: dict[RepoPath | str, Candidate] = {}
    for candidate in sorted(candidates, key=lambda each: _ORDER[each.tier]):
        owned.setdefault(candidate.given if candidate.path is None else candidate.path, candidate)
    return list(owned.values())


class _ScanRun:
    """The state of a scan: what was read, and what the caps still allow."""

    def __init__(
        self, snapshot: Snapshot, caps: ScanCaps, markers: Markers, is_time_up: Callable[[], bool]
    ) -> None:
        self.scanned: list[Candidate] = []
        self.placeholders: list[PlaceholderLocation] = []
        self.files = 0
        self.bytes_left = caps.max_total_bytes
        self.timed_out = False
        self.is_allowed = suffix_test(caps.suffixes)
        self._snapshot = snapshot
        self._caps = caps
        self._markers = markers
        self._is_over = is_time_up

    def is_time_up(self) -> bool:
        """Return whether the time is up; once True, it stays True."""
        self.timed_out = self.timed_out or self._is_over()
        return self.timed_out

    def inspect(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, PathInfo]:
        """Inspect paths until the time is up."""
        inspected: dict[RepoPath, PathInfo] = {}
        for start in range(0, len(paths), _AT_ONCE):
            if self.is_time_up():
                break
            inspected |= self._snapshot.inspect(paths[start : start + _AT_ONCE])
        return inspected

    def scan_file(
        self,
        candidate: Candidate,
        inspected: Mapping[RepoPath, PathInfo],
        unstaged: Collection[RepoPath] = (),
    ) -> SkipReason | None:
        """Scan a file; return why it was not scanned whole, or None."""
        path = candidate.path
        if path is None:
            return SkipReason.OUTSIDE
        known = inspected.get(path)
        if known is None:
            return SkipReason.TIMEOUT
        if path in unstaged and known.fault in {None, SkipReason.MISSING}:
            return SkipReason.UNSTAGED
        if known.fault is not None or known.size is None:
            return known.fault or SkipReason.MISSING
        if not self.is_allowed(path.raw):
            return SkipReason.SUFFIX
        size, is_minor = known.size, not candidate.tier.is_high_priority
        if is_minor and size > self._caps.max_file_bytes:
            return SkipReason.TOO_LARGE
        if self.files >= self._caps.max_files:
            return SkipReason.CAP
        if self.is_time_up():
            return SkipReason.TIMEOUT
        if is_minor and size > self.bytes_left:
            return SkipReason.CAP
        cut = SkipReason.TOO_LARGE if size > self._caps.max_total_bytes else SkipReason.CAP
        most = min(size, self.bytes_left)
        if size and not most:
            return cut
        return self._read(candidate, path, size, most) or (cut if most < size else None)

    def _read(self, candidate: Candidate, path: RepoPath, size: int, most: int) -> SkipReason | None:
        content = self._snapshot.read(path, most) if most else b""
        if content is None:
            return SkipReason.UNREADABLE
        content = content[:most]
        self.files += 1
        self.bytes_left -= len(content)
        text = to_utf8(content, len(content) == size)
        if len(content) < size and text is not None:
            # The last line may be cut off.
            text = text[: text.rfind(b"\n") + 1]
        for match in find_matches(text, path.raw, self._markers, self.is_time_up) if text else ():
            place = PlaceholderLocation(
                tier=candidate.tier, path=path, line=match.line, rule=match.rule, marker=match.marker
            )
            self.placeholders.append(place)
        if self.is_time_up():
            return SkipReason.TIMEOUT
        if len(content) < most:
            return SkipReason.UNREADABLE
        if most < size:
            return None
        if text is None:
            return SkipReason.BINARY
        self.scanned.append(candidate)
        return None


def _scan_fallback(run: _ScanRun, snapshot: Snapshot, selection: FallbackFilter) -> Counter[SkipReason]:
    """Scan the files that a filter selects until one has a placeholder, or until a cap or the time ends it.

    Returns how many were skipped, by reason; the file that a cap left unread is one of them.
    """
    left_out: Counter[SkipReason] = Counter()
    with closing(snapshot.tracked(selection)) as tracked:
        is_ended = False
        while not is_ended and (paths := list(islice(tracked, _BATCH))):
            inspected = run.inspect(paths)
            for path in paths:
                reason = run.scan_file(Candidate(Tier.FALLBACK, path), inspected)
                if reason is not None:
                    left_out[reason] += 1
                is_ended = reason in {SkipReason.CAP, SkipReason.TIMEOUT} or bool(run.placeholders)
                if is_ended:
                    break
    return left_out + selection.skipped
