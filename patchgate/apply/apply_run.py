"""One attempt while it runs, and what is recorded of it: the ledger's event, report, review and feedback.

A verdict is shown and saved in the same form, without secrets.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from patchgate.apply import review
from patchgate.apply.attempt_records import AttemptRecord, TouchedFile, events_of, find, record
from patchgate.apply.evidence import Evidence
from patchgate.apply.retries import Chain, open_chain, plan_retry, refuse_meanwhile, reload_chain
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import EndedAttempt, PatchgateError, name_attempt
from patchgate.git.path import RepoPath
from patchgate.git.quoting import exact_text, quote_path
from patchgate.git.repository import Repository
from patchgate.git.staging import refresh_index
from patchgate.git.transaction import WrittenFiles, pending_transactions
from patchgate.intents.budget import is_spent
from patchgate.ledger.ledger import Ledger
from patchgate.ledger.masking import Masks
from patchgate.patches.check_patch import PatchVerdict, forget
from patchgate.patches.git_apply import PatchId
from patchgate.patches.patch_model import Patch
from patchgate.patches.patch_parser import parse
from patchgate.patches.path_selection import list_named_paths
from patchgate.patches.proposals import PATCH
from patchgate.policy.settings import ApplySettings
from patchgate.report.json import document
from patchgate.report.rules import Level
from patchgate.report.verdict import (
    Attempt,
    ChangeVerdict,
    Detail,
    Finding,
    Fix,
    GateOutcome,
    Outcome,
    Report,
    Retry,
    Verdict,
)
from patchgate.storage.filesystem import FaultPoints
from patchgate.values import dataclass, field, replace

KINDS = ("lint", "test")
_SECRET = "secret"


def mask_secrets(verdict: ChangeVerdict, masks: Masks) -> ChangeVerdict:
    """Mask secrets in the findings and gates of a verdict."""
    return replace(
        verdict,
        gates=tuple(_gate(each, masks) for each in verdict.gates),
        context_gates=tuple(_gate(each, masks) for each in verdict.context_gates),
        findings=tuple(_finding(each, masks) for each in verdict.findings),
    )


def _gate(gate: GateOutcome, masks: Masks) -> GateOutcome:
    return gate if gate.reason is None else replace(gate, reason=masks.text(gate.reason))


def _finding(finding: Finding, masks: Masks) -> Finding:
    excerpt = finding.excerpt
    # The line of a `secret` is never shown, and its fingerprint must be the one that a check gives.
    if excerpt is not None and finding.rule != _SECRET:
        excerpt = masks.raw(excerpt)
    return replace(
        finding,
        message=masks.text(finding.message),
        hint=None if finding.hint is None else masks.text(finding.hint),
        details={key: _detail(value, masks) for key, value in finding.details.items()},
        notes=tuple(masks.text(note) for note in finding.notes),
        fix=_fix(finding.fix, masks),
        excerpt=excerpt,
    )


def _detail(value: Detail, masks: Masks) -> Detail:
    if isinstance(value, str):
        return masks.text(value)
    if isinstance(value, Mapping):
        return {key: _detail(item, masks) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_detail(item, masks) for item in value]
    return value


def _fix(fix: Fix | None, masks: Masks) -> Fix | None:
    """Leave out a fix whose text contains a secret: masked, it would fix nothing."""
    if fix is None or fix.replace_with is None or masks.text(fix.replace_with) == fix.replace_with:
        return fix
    return None


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """What to apply, and how.

    `raw` is what is sent, in the format `kind`; `repair` as for `judge_patch`. `only` reduces a patch to
    paths, as given with `--only`. `run_dir` is the folder of the evidence, absolute. `is_fine_if_applied`: a
    patch that is already applied is not an error. `run` names the work of a run that asks for it, and
    `may_touch` the only paths that the patch may then change.
    """

    raw: bytes
    asked: CheckOptions
    kind: str = PATCH
    repair: bool | None = None
    base: str | None = None
    only: tuple[str, ...] = ()
    retry_of: str | None = None
    run_dir: str | None = None
    is_dry_run: bool = False
    with_index: bool = False
    is_fine_if_applied: bool = False
    keeps_scratch: bool = False
    run: str | None = None
    may_touch: Callable[[RepoPath], bool] | None = None

    @property
    def again(self) -> tuple[str, ...]:
        """The arguments that a retry needs as well."""
        given = [] if self.repair is None else ["--repair" if self.repair else "--no-repair"]
        given += ["--index"] if self.with_index else []
        given += [] if self.base is None else ["--base", self.base]
        return (*given, *(word for path in self.only for word in ("--only", _typed(path))))


def _typed(path: str) -> str:
    """Write a path so that it can be typed: as it is, or quoted as by git if it is not exact text."""
    raw = path.encode("utf-8", "surrogateescape")
    return exact_text(raw) or quote_path(raw)


@dataclass(frozen=True, slots=True)
class ApplyEnvironment:
    """What the caller provides: the environment of commands, a folder for caches, a report of progress.

    `report_progress` gets what runs and for how many seconds. `clock` gives seconds since the epoch. `faults`
    are the numbered fault points of the write. `before_write` is called before anything is written, and stops
    that with an exception. `landing` is entered before the write, and left when its result is recorded.
    """

    environ: Mapping[str, str]
    cache: str
    report_progress: Callable[[str, float], None] = lambda what, seconds: None
    clock: Callable[[], float] = time.time
    chance: Callable[[int], bytes] = os.urandom
    faults: FaultPoints | None = None
    before_write: Callable[[], None] = lambda: None
    landing: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True)
class CommandResults:
    """What the commands said: gates `lint` and `test`, findings, each run for the review, warnings.

    `kept` is the path of a scratch tree that was kept, `tree` the tree in it if it was a whole one.
    """

    gates: tuple[GateOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    runs: tuple[review.CommandRun, ...] = ()
    warnings: tuple[str, ...] = ()
    kept: str | None = None
    tree: str | None = None


@dataclass(slots=True)
class ApplyRun:
    """One attempt while it runs: its request, and what is known so far of its chain and commands."""

    repository: Repository
    request: ApplyRequest
    environment: ApplyEnvironment
    ledger: Ledger
    chain: Chain
    candidate: bytes
    evidence: Evidence
    began: float
    kind: str = PATCH
    is_as_sent: bool = True
    results: CommandResults = field(default_factory=CommandResults)
    warnings: list[str] = field(default_factory=list)
    limit: int = ApplySettings().max_attempts

    @property
    def sha256(self) -> str:
        """The digest of the candidate."""
        return hashlib.sha256(self.candidate).hexdigest()

    def initial_record(self) -> AttemptRecord:
        """Build the record that holds for any outcome; undecided until more is known."""
        return AttemptRecord(
            attempt=self.evidence.id,
            chain=self.chain.id_with(self.evidence.id),
            retry_of=self.chain.retry_of,
            number=self.chain.number,
            verdict=Verdict.UNDECIDED.value,
            applied=False,
            counts=False,
            dry_run=self.request.is_dry_run,
            kind=self.kind,
            patch_sha256=self.sha256,
            dir=self.evidence.dir,
            work_tree=self.repository.work_tree,
            temp_path=self.results.kept,
            run=self.request.run,
        )

    def adopt(self, judged: PatchVerdict) -> None:
        """Go on with the diff that was made of what was sent; the evidence keeps both.

        Raises:
            UndecidedError: it cannot be written.
        """
        self.kind = judged.kind
        if judged.candidate != self.candidate:
            self.evidence.replace_candidate(self.candidate, judged.candidate)
            self.candidate, self.is_as_sent = judged.candidate, False

    def join_chain(self, verdict: ChangeVerdict) -> None:
        """Find the chain that the attempt belongs to if `--retry-of` was not given."""
        if self.chain.first is None:
            paths = {file.path for file in verdict.change.files} or set(list_named_paths(self.candidate))
            self.chain = open_chain(
                self.ledger,
                self.repository.work_tree,
                self.environment.clock(),
                (self.sha256, verdict.patch_id),
                paths,
                run=self.request.run,
            )

    def recheck_chain(self) -> Finding | None:
        """Read the chain again, and report what now prevents this attempt."""
        if self.chain.first is None:
            return None
        # The journal of a write remains until the ledger has its event, so journals are read first.
        unrecorded = [each.note for each in pending_transactions(self.repository) if each.state == "landed"]
        self.chain = reload_chain(self.ledger, self.chain)
        return refuse_meanwhile(self.ledger, self.chain, self.limit, unrecorded)

    def look_before_writing(self) -> Finding | None:
        """Check, under the locks of the write, that the caller still wants it and the chain allows it."""
        self.environment.before_write()
        return self.recheck_chain()


def add_history_finding(verdict: ChangeVerdict, finding: Finding) -> ChangeVerdict:
    """Add the finding of other attempts that stops this one."""
    undecided = finding.definition.undecided
    reason = f"{finding.rule}: {finding.message}" if undecided else None
    gate = GateOutcome("retry", Outcome.UNDECIDED if undecided else Outcome.FAIL, reason)
    return replace(verdict, gates=(*verdict.gates, gate), findings=(finding, *verdict.findings))


def record_result(run: ApplyRun, verdict: ChangeVerdict, landing: WrittenFiles | None) -> Report:
    """Record the result of the attempt, and save its evidence."""
    retry = None
    if _counts(run, verdict):
        verdict, retry = _after_refusal(run, verdict)
    evidence, applied = run.evidence, landing is not None
    report = Report(
        (mask_secrets(verdict, evidence.masks),),
        run.repository.limits,
        attempt=Attempt(
            id=evidence.id,
            dir=evidence.dir,
            applied=applied,
            fallback_reason=None if applied else verdict.fallback_reason,
            temp_path=run.results.kept,
        ),
        retry=retry,
    )
    about = build_record(run, verdict, applied=applied)
    unrecorded = record(run.ledger, about)
    if landing is not None:
        _finish(run, landing, verdict, is_recorded=unrecorded is None)
    warnings = (*run.results.warnings, *run.warnings, unrecorded, _keep(run, about, report))
    masked = tuple(evidence.masks.text(each) for each in warnings if each)
    return replace(report, warnings=(*report.warnings, *masked))


def _after_refusal(run: ApplyRun, verdict: ChangeVerdict) -> tuple[ChangeVerdict, Retry | None]:
    """Read the chain again, and say what may be sent next.

    This makes the attempt's number and its last line correct.
    """
    run.join_chain(verdict)
    overtaken = run.recheck_chain()
    if overtaken is not None and overtaken.definition.undecided:
        run.warnings.append(overtaken.message)
        return verdict, None
    if overtaken is not None and overtaken.rule not in {each.rule for each in verdict.findings}:
        verdict = add_history_finding(verdict, overtaken)
    if verdict.fallback_reason == "duplicate-patch":
        # Nothing is wrong with the patch: the finding says what to do.
        return verdict, None
    if any(map(is_spent, verdict.findings)):
        return verdict, None
    asked = run.request
    retry = plan_retry(run.chain, run.evidence.id, limit=run.limit, kind=run.kind, also=asked.again)
    return verdict, retry


def _finish(run: ApplyRun, landing: WrittenFiles, verdict: ChangeVerdict, *, is_recorded: bool) -> None:
    """Finish a write, unless its journal must remain for the next command that writes."""
    paths = [file.path for file in verdict.change.files]
    for path in paths:
        forget(run.repository, path)
    if is_recorded or find(run.ledger, run.evidence.id) is not None:
        landing.finish()
    if run.request.with_index:
        refresh_index(run.repository, paths)


def _counts(run: ApplyRun, verdict: ChangeVerdict) -> bool:
    """Return whether the retry rule counts a verdict: a refusal for more than what failed before."""
    if run.request.is_dry_run or verdict.verdict is not Verdict.REJECTED:
        return False
    return any(each.level is Level.ERROR and each.rule != "failed-before" for each in verdict.findings)


def _keep(run: ApplyRun, about: AttemptRecord, report: Report) -> str | None:
    summary = review.AttemptSummary(
        record=about,
        seconds=time.monotonic() - run.began,
        limit=run.limit,
        commands=run.results.runs,
        only=run.request.only,
        is_as_sent=run.is_as_sent,
    )
    is_refused = report.verdict is Verdict.REJECTED
    return run.evidence.keep(
        document(report),
        review.review(report, summary),
        review.feedback(report, has_next=run.request.run is None),
        events_of(run.ledger, run.evidence.id) if is_refused else None,
    )


def build_record(run: ApplyRun, verdict: ChangeVerdict, *, applied: bool) -> AttemptRecord:
    """Build the record of an attempt that was judged."""
    decisive = verdict.decisive
    errors = [finding.rule for finding in verdict.findings if finding.level is Level.ERROR]
    files = verdict.change.files
    return replace(
        run.initial_record(),
        verdict=verdict.verdict.value,
        applied=applied,
        counts=_counts(run, verdict),
        patch_id=verdict.patch_id,
        base=verdict.change.base,
        after=verdict.change.after,
        policy=verdict.policy.digest,
        stage=decisive.definition.stage.value if decisive else None,
        code=decisive.definition.code if decisive else None,
        rules=tuple(dict.fromkeys(errors)),
        n_hunks=verdict.n_hunks,
        added_lines=sum(file.added_lines or 0 for file in files),
        removed_lines=sum(file.removed_lines or 0 for file in files),
        files=tuple(TouchedFile(file.path, file.old, file.new) for file in files)
        or tuple(TouchedFile(path, None, None) for path in list_named_paths(run.candidate)),
        fallback_reason=None if applied else verdict.fallback_reason,
    )


def record_failure(run: ApplyRun, error: Exception) -> None:
    """Record that an attempt could not be judged; the caller raises the error again.

    From then on the error names the attempt (`errors.ended_attempt`).
    """
    evidence = run.evidence
    name_attempt(error, EndedAttempt(evidence.id, evidence.dir, run.results.kept))
    known = error if isinstance(error, PatchgateError) else None
    patch = parse(run.candidate) if run.kind == PATCH else None
    counts = patch if isinstance(patch, Patch) else None
    about = replace(
        run.initial_record(),
        patch_id=_patch_id(run),
        n_hunks=counts.n_hunks if counts else None,
        added_lines=counts.added_lines if counts else None,
        removed_lines=counts.removed_lines if counts else None,
        fallback_reason=known.kind if known else PatchgateError.kind,
    )
    record(run.ledger, about)
    message = known.sentence if known else f"patchgate itself failed ({type(error).__name__})"
    said = f"undecided: {message}"
    text = f"# {evidence.id}: undecided\n\n{review.code_block(said)}\n"
    body = {"kind": about.fallback_reason, "message": said, "hint": None}
    evidence.keep({"schema": "patchgate.error/1", "error": body, "attempt": None}, text, text)


def _patch_id(run: ApplyRun) -> str | None:
    """Ask git for the id of the candidate; None if it is not a patch, or git fails."""
    if run.kind != PATCH:
        return None
    try:
        with PatchId(run.repository, run.candidate) as asked:
            return asked.read()
    except PatchgateError:
        return None
