"""`claim`: check what a verifier said against the files, and record the result.

Decides the order (policy, whether a scan could change anything, files, scan, record), and which files a claim
is about, tier by tier: those that were given, else those from intents, git and the ledger. The record has
counts and locations, and no content.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.ledger.adjudications import KIND, AdjudicationRecord, read_adjudications
from patchgate.ledger.ledger import Event, Ledger
from patchgate.placeholders.claims.claim import (
    Adjudication,
    Candidate,
    Claim,
    ClaimOutcome,
    ScanResult,
    Skipped,
    SkipReason,
    Tier,
)
from patchgate.placeholders.claims.claim_decision import decide, needs_scan
from patchgate.placeholders.claims.claim_json import telemetry
from patchgate.placeholders.claims.claim_scan import Snapshot, caps_of, scan
from patchgate.placeholders.claims.claim_source import (
    ClaimSource,
    IndexSource,
    SourceOptions,
    open_source,
    use_worktree_if_unstaged,
)
from patchgate.placeholders.claims.snapshots import path_forms
from patchgate.policy.placeholder_markers import Markers
from patchgate.policy.settings import ClaimsSettings
from patchgate.report.wording import safe
from patchgate.values import dataclass, replace

RECORD = "the record of earlier attempts"
_DEFAULT_SOURCE = SourceOptions()
_UNSTAGED = "files that the claim names are not staged: the working tree was read instead of the index"


@dataclass(frozen=True, slots=True)
class Candidates:
    """The files that a claim is about. `unread` are those whose names are not known; `warnings` say why."""

    files: tuple[Candidate, ...]
    unread: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()


def possible_paths(repository: Repository, claim: Claim) -> frozenset[RepoPath]:
    """List every path of high priority that a claim may name, in each possible form."""
    texts = (*claim.deliverables, *claim.changed_files, *claim.prior_changed_files)
    forms = (path_forms(text, repository.work_tree) for text in texts)
    return frozenset(path for each in forms for path in (each.literal, each.plain) if path is not None)


def find_candidates(source: ClaimSource, snapshot: Snapshot, claim: Claim, now: Moment) -> Candidates:
    """Find all files that a claim is about, with the tier of each.

    Raises:
        UndecidedError: an intent or the content cannot be read.
    """
    given = (
        (Tier.CANONICAL, claim.deliverables),
        (Tier.CURRENT, claim.changed_files),
        (Tier.PRIOR, claim.prior_changed_files),
        (Tier.EVIDENCE, claim.evidence_files),
    )
    found = [*_given_files(source.repository, snapshot, given)]
    if not claim.changed_files:
        found += [
            Candidate(Tier.CURRENT, path, safe(path.quoted)) for path in find_current_files(source, now)
        ]
    if claim.prior_changed_files or not claim.subject:
        return Candidates(tuple(found))
    prior, fault = find_prior_files(source.repository, claim.subject)
    found += [Candidate(Tier.PRIOR, path, safe(path.quoted)) for path in prior]
    if fault is None:
        return Candidates(tuple(found))
    unread = Skipped(Candidate(Tier.PRIOR, None, RECORD), SkipReason.UNREADABLE)
    warning = f"{RECORD} (the ledger) is damaged: {safe(fault)}; run git patchgate log --verify"
    return Candidates(tuple(found), (unread,), (warning,))


def resolve_given(source: ClaimSource, texts: Sequence[str]) -> tuple[RepoPath, ...]:
    """Resolve a list of paths for the record; what leads nowhere is left out.

    Raises:
        UndecidedError: the content cannot be read.
    """
    with source.snapshot() as snapshot:
        found = _given_files(source.repository, snapshot, [(Tier.CURRENT, texts)])
        return tuple(dict.fromkeys(each.path for each in found if each.path is not None))


def find_current_files(source: ClaimSource, now: Moment) -> tuple[RepoPath, ...]:
    """Find the files that this attempt changed and did not remove.

    Where this worktree has active intents whose work can be in the source: what differs from where they
    began, staged or not. Otherwise: what is staged, changed in the working tree, or changed by the
    revision. What was already changed when an intent was declared counts only after it is committed.

    Raises:
        UndecidedError: an intent, or the content, cannot be read.
    """
    here = ScopeGate(source.repository, now).here
    if here is not None and here.fault is not None:
        raise here.fault
    paths: dict[RepoPath, None] = {}
    intents = [] if here is None else [each for each in here.active if source.may_follow(each.base)]
    for intent in intents:
        for content in [source, source.on_disk()] if isinstance(source, IndexSource) else [source]:
            paths |= dict.fromkeys(_changed_since(content, intent))
    if not intents and source.before is not None:
        paths |= dict.fromkeys(file.path for file in source.changes_since(source.before) if file.new)
    return tuple(paths)


def _changed_since(content: ClaimSource, intent: Intent) -> Iterator[RepoPath]:
    """Find what differs from the tree where an intent began, except what was already changed then."""
    files = content.changes_since(intent.tree)
    dirt = intent.unchanged_dirt(files)
    if dirt:
        dirt &= {file.path for file in content.changes_since(content.committed)}
    yield from (file.path for file in files if file.new and file.path not in dirt)


def find_prior_files(repository: Repository, subject: str) -> tuple[tuple[RepoPath, ...], str | None]:
    """Find the files that earlier attempts of a subject changed and whose verdict passed, from the ledger.

    The second value says what is wrong with the ledger, or is None. A last line that a crash cut short is
    fine.
    """
    ledger = Ledger(repository.common_dir)
    events: list[Event] = []
    fault = None
    try:
        for number, line in enumerate(ledger.lines(), start=1):
            if not isinstance(line, Event):
                fault = fault or (None if line.torn else f"line {number} {line.message}")
            elif line.kind == KIND:
                events.append(line)
    except OSError as error:
        fault = error.strerror or "no reason given"
    passed = (
        each
        for each in read_adjudications(events)
        if each.subject == subject and each.outcome == ClaimOutcome.PASSED.value
    )
    return tuple(dict.fromkeys(chain.from_iterable(each.changed_files for each in passed))), fault


def _given_files(
    repository: Repository, snapshot: Snapshot, lists: Iterable[tuple[Tier, Sequence[str]]]
) -> Iterator[Candidate]:
    """Yield the file that each given text names; both files where two forms of the name exist."""
    forms = [
        (tier, safe(text), path_forms(text, repository.work_tree)) for tier, texts in lists for text in texts
    ]
    unsure = {path for _, _, each in forms if each.literal for path in (each.literal, each.plain) if path}
    known = snapshot.inspect(sorted(unsure)) if unsure else {}
    existing = {path for path, each in known.items() if each.fault is None}
    for tier, text, each in forms:
        if each.literal is not None and each.literal in existing:
            yield Candidate(tier, each.literal, text)
            if each.plain not in existing:
                continue
        yield Candidate(tier, each.plain, text)


def record(repository: Repository, adjudication: Adjudication, changed: Iterable[RepoPath]) -> str | None:
    """Add an adjudication to the ledger; return None, or the text of a warning.

    Args:
        changed: the files of a passed verdict; they become earlier work of its subject.
    """
    claim = adjudication.claim
    recorded = AdjudicationRecord(
        outcome=adjudication.outcome.value,
        subject=claim.subject,
        reason_code=claim.reason_code,
        is_placeholder_claim=adjudication.is_placeholder_claim,
        samples=adjudication.scan_result.samples,
        changed_files=tuple(changed),
        **telemetry(adjudication),
    )
    return Ledger(repository.common_dir).record(KIND, recorded.about())


def adjudicate(
    repository: Repository,
    claim: Claim,
    options: SourceOptions = _DEFAULT_SOURCE,
    now: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Adjudication:
    """Decide what becomes of a verdict, and record it.

    Args:
        options: where the files are read.
        now: seconds since the epoch, for the time of intents; None: the current time.
        clock: monotonic seconds, for the time limit of the scan.

    Raises:
        UsageError: there is no such revision, no index or no working tree.
        ConfigError: the policy cannot be used.
        UndecidedError: the source cannot be read: conflicts, a damaged index, a missing tree object.
    """
    moment = Moment(time.time() if now is None else now)
    with Objects(repository) as objects:
        source, policy = open_source(repository, objects, options)
        settings = policy.config.claims
        seen: ScanResult | None = None
        warnings: tuple[str, ...] = ()
        if needs_scan(claim, settings):
            work = use_worktree_if_unstaged(source, possible_paths(repository, claim))
            seen, warnings = _scan_files(work, claim, settings, moment, clock)
            if work is not source:
                source, warnings = work, (*warnings, _UNSTAGED)
        found = decide(claim, seen, settings, source.read_from, warnings)
        changed, not_recorded = _changed_files(source, found, moment)
    not_written = record(repository, found, changed)
    more = tuple(each for each in (not_recorded, not_written) if each)
    return replace(found, warnings=(*found.warnings, *more))


def _scan_files(
    source: ClaimSource, claim: Claim, settings: ClaimsSettings, now: Moment, clock: Callable[[], float]
) -> tuple[ScanResult, tuple[str, ...]]:
    end = clock() + settings.contradiction_scan_timeout_seconds
    with source.snapshot() as snapshot:
        candidates = find_candidates(source, snapshot, claim, now)
        counting = {each.path for each in candidates.files if each.tier.is_high_priority}
        seen = scan(
            snapshot,
            candidates.files,
            caps_of(settings),
            Markers(settings.markers, source.repository.expression_time),
            lambda: clock() >= end,
            unstaged=source.staged_differently([path for path in counting if path is not None]),
            is_excluded=_exclusion_test(settings),
        )
    return replace(seen, skipped=(*seen.skipped, *candidates.unread)), candidates.warnings


def _exclusion_test(settings: ClaimsSettings) -> Callable[[bytes], bool] | None:
    """Build the function that says whether `claims.exclude` leaves a name out of the fallback."""
    if not settings.exclude:
        return None
    from patchgate.policy.glob_matching import PatternSet

    excluded = PatternSet(settings.exclude, folded=False, exact=True)
    return lambda name: excluded.match(name) is not None


def _changed_files(
    source: ClaimSource, found: Adjudication, now: Moment
) -> tuple[tuple[RepoPath, ...], str | None]:
    """Find the files of a passed verdict, for later ones of its subject; else say why they are not known."""
    claim = found.claim
    # They are looked up by subject.
    if found.outcome is not ClaimOutcome.PASSED or claim.subject is None:
        return (), None
    try:
        work = use_worktree_if_unstaged(source, possible_paths(source.repository, claim))
        if claim.changed_files:
            return resolve_given(work, claim.changed_files), None
        return find_current_files(work, now), None
    except UndecidedError as error:
        return (), f"the changed files were not recorded: {error.message}"
