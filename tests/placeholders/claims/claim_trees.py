"""A tree in memory for the scan, which notes what was asked of it; and short ways to name candidates."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from patchgate.git.path import RepoPath
from patchgate.placeholders.claims.claim import Candidate, ScanResult, SkipReason, Tier
from patchgate.placeholders.claims.claim_scan import FallbackFilter, PathInfo, ScanCaps, scan
from patchgate.policy.placeholder_markers import Markers

MARKERS = Markers()
TODO = b"# TODO: write this\n"
CLEAN = b"All is written.\n"
PIECE = 3
"""So few names are listed at a time that a folder lies in several pieces."""
ROOMY = ScanCaps(80, 2_500_000, 300_000, (".md", ".txt", ".py"))


@dataclass
class Tree:
    """Files by name, faults by name; what has a fault is tracked too."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    faults: Mapping[str, SkipReason] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    was_listed: bool = False
    was_closed: bool = False
    listed: int = 0

    def inspect(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, PathInfo]:
        return {each: self._looked(str(each)) for each in paths}

    def _looked(self, name: str) -> PathInfo:
        if name in self.faults:
            return PathInfo(fault=self.faults[name])
        if name not in self.files:
            return PathInfo(fault=SkipReason.MISSING)
        return PathInfo(len(self.files[name]))

    def read(self, path: RepoPath, most: int) -> bytes | None:
        content = self.files[str(path)]
        assert 0 < most <= len(content)
        self.asked.append((str(path), most))
        return content[:most]

    def tracked(self, selection: FallbackFilter) -> Generator[RepoPath, None, None]:
        self.was_listed = True
        try:
            yield from map(RepoPath, selection.select(self._pieces()))
        finally:
            self.was_closed = True

    def _pieces(self) -> Iterator[list[bytes]]:
        names = sorted(name.encode() for name in {*self.files, *self.faults})
        for start in range(0, len(names), PIECE):
            piece = names[start : start + PIECE]
            self.listed += len(piece)
            yield piece

    @property
    def read_names(self) -> list[str]:
        return [name for name, _ in self.asked]


def named(tier: Tier, *names: str) -> list[Candidate]:
    return [Candidate(tier, RepoPath(name.encode()), name) for name in names]


def canonical(*names: str) -> list[Candidate]:
    return named(Tier.CANONICAL, *names)


def current(*names: str) -> list[Candidate]:
    return named(Tier.CURRENT, *names)


def prior(*names: str) -> list[Candidate]:
    return named(Tier.PRIOR, *names)


def evidence(*names: str) -> list[Candidate]:
    return named(Tier.EVIDENCE, *names)


def scanned(
    tree: Tree, candidates: Sequence[Candidate], caps: ScanCaps = ROOMY, markers: Markers = MARKERS
) -> ScanResult:
    return scan(tree, candidates, caps, markers)


def names(found: ScanResult) -> list[str]:
    """Name the files that were scanned whole, in their order."""
    return [str(each.path) for each in found.scanned]


def skips(found: ScanResult) -> dict[str, SkipReason]:
    """Say why candidates were not scanned."""
    return {str(each.candidate.path or each.candidate.given): each.reason for each in found.skipped}


def places(found: ScanResult) -> list[str]:
    """Write the places as `path:line`."""
    return [f"{each.path}:{each.line}" for each in found.placeholders]
