"""`claim`: hold what a verifier said against the files, and remember what became of it.

Decides the order: the policy, whether a scan could change anything, the files, the scan, the record. What a
claim is, what follows from a scan (`placeholders.claims.claims`) and how it is told are others'.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.intents.intent import Moment
from patchgate.placeholders.claims.claim import Adjudication, Claim, ClaimOutcome, Scan
from patchgate.placeholders.claims.claim_scan import caps_of, scan
from patchgate.placeholders.claims.claims import decide, needs_scan
from patchgate.placeholders.claims.judged import Asked, JudgedContent, content_of_work, judged_of
from patchgate.placeholders.claims.record import record
from patchgate.placeholders.claims.tiers import candidates_of, current_files, paths_given, paths_named
from patchgate.policy.markers import Markers
from patchgate.policy.settings import ClaimsSettings

__all__ = ["Asked", "adjudicate"]

_HERE = Asked()
_UNSTAGED = "files that the claim names are not staged, so the working tree was read instead of the index"


def adjudicate(
    repository: Repository,
    claim: Claim,
    asked: Asked = _HERE,
    now: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Adjudication:
    """Decide what becomes of a verdict, and record it.

    Args:
        asked: where the files are read.
        now: seconds since the epoch, for the time of intents; None: this moment.
        clock: seconds from any beginning, for the time that a scan may take.

    Raises:
        UsageError: there is no such revision, no index or no working tree.
        ConfigError: the policy cannot be used.
        UndecidedError: what is judged cannot be read: conflicts, a damaged index, a folder's missing object.
    """
    moment = Moment(time.time() if now is None else now)
    with Objects(repository) as objects:
        judged, policy = judged_of(repository, objects, asked)
        settings = policy.config.claims
        seen: Scan | None = None
        warnings: tuple[str, ...] = ()
        if needs_scan(claim, settings):
            work = content_of_work(judged, paths_named(repository, claim))
            seen, warnings = _scanned(work, claim, settings, moment, clock)
            if work is not judged:
                judged, warnings = work, (*warnings, _UNSTAGED)
        found = decide(claim, seen, settings, judged.read_from, warnings)
        changed, doubt = _changed(judged, found, moment)
    told = record(repository, found, changed)
    return replace(found, warnings=(*found.warnings, *(each for each in (doubt, told) if each)))


def _scanned(
    judged: JudgedContent, claim: Claim, settings: ClaimsSettings, now: Moment, clock: Callable[[], float]
) -> tuple[Scan, tuple[str, ...]]:
    end = clock() + settings.contradiction_scan_timeout_seconds
    with judged.snapshot() as snapshot:
        candidates = candidates_of(judged, snapshot, claim, now)
        counting = {each.path for each in candidates.files if each.tier.is_high_priority}
        seen = scan(
            snapshot,
            candidates.files,
            caps_of(settings),
            Markers(settings.markers, judged.repository.expression_time),
            lambda: clock() >= end,
            unstaged=judged.in_two_versions([path for path in counting if path is not None]),
            is_excluded=_excluded(settings),
        )
    return replace(seen, skipped=(*seen.skipped, *candidates.unread)), candidates.warnings


def _excluded(settings: ClaimsSettings) -> Callable[[bytes], bool] | None:
    """Give the function that tells whether the config leaves a name out of the fallback."""
    if not settings.exclude:
        return None
    from patchgate.policy.patterns import PatternSet

    excluded = PatternSet(settings.exclude, folded=False, exact=True)
    return lambda name: excluded.match(name) is not None


def _changed(
    judged: JudgedContent, found: Adjudication, now: Moment
) -> tuple[tuple[RepoPath, ...], str | None]:
    """Find the files of a passed verdict, for later ones of its subject; or say why they are not known."""
    claim = found.claim
    if found.outcome is not ClaimOutcome.PASSED:
        return (), None
    if claim.subject is None:
        # Nobody would ever ask for them.
        return (), None
    try:
        work = content_of_work(judged, paths_named(judged.repository, claim))
        if claim.changed_files:
            return paths_given(work, claim.changed_files), None
        return current_files(work, now), None
    except UndecidedError as error:
        return (), f"the changed files are not on record: {error.message}"
