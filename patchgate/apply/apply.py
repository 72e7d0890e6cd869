"""Apply: a patch is judged, tried, and written whole or not at all; whatever comes of it leaves its evidence.

Decides the order: the judgement, the retry rule and duplicates, the commands of the policy in a scratch tree,
the transaction, the record. Nothing is written to the working tree before all of it has passed. How each step
is done is its own module's.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import ExitStack
from dataclasses import replace

from patchgate.apply.attempts import is_known
from patchgate.apply.duplicates import find_duplicate
from patchgate.apply.evidence import open_evidence
from patchgate.apply.landing import Landed, find_obstacles, land_judged
from patchgate.apply.recording import (
    Course,
    Place,
    Request,
    conclude,
    record_failure,
    record_of,
    stopped,
)
from patchgate.apply.retries import (
    after_judging,
    before_judging,
    find_chain,
)
from patchgate.apply.run_dir import require_outside
from patchgate.apply.trying import Surroundings, try_commands
from patchgate.errors import UsageError
from patchgate.git.repository import Repository
from patchgate.intents.commits import active_here, touch
from patchgate.ledger.ledger import Ledger
from patchgate.ledger.masking import Masks
from patchgate.patches.narrowing import narrow, paths_to_keep, readings
from patchgate.patches.patch import parse
from patchgate.patches.patches import Judged, judging
from patchgate.report.json import plain_json
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import (
    ChangeVerdict,
    Finding,
    GateOutcome,
    Outcome,
    Report,
    Verdict,
)


def apply(repository: Repository, request: Request, place: Place) -> Report:
    """Judge a patch, try it, and write it to the working tree whole or not at all.

    Raises:
        UsageError: the request cannot be meant so; nothing was judged and nothing is left.
        UndecidedError: it could not be judged, or its evidence could not be kept; nothing was written.
    """
    if repository.work_tree is None:
        raise UsageError("a bare repository has no files for the patch", "use check --patch --base REV")
    began = time.monotonic()
    place = _under_intents(repository, place)
    ledger = Ledger(repository.common_dir)
    damaged = ledger.require_writable()
    chain = find_chain(ledger, request.retry_of)
    candidate = _narrowed(request)
    digest = hashlib.sha256(candidate).hexdigest()
    require_outside(repository, request.run_dir)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(place.clock()))
    opened = open_evidence(
        repository.common_dir,
        candidate,
        chance=place.chance,
        is_known=is_known(ledger),
        at=at,
        about={
            "kind": request.kind,
            "patch_sha256": digest,
            "chain": chain.first,
            "retry_of": chain.retry_of,
            "work_tree": plain_json(repository.work_tree),
        },
        run_dir=request.run_dir,
        masks=Masks([place.environ]),
    )
    with opened as evidence:
        course = Course(repository, request, place, ledger, chain, candidate, evidence, began)
        try:
            report = _judged_and_landed(course)
        except UsageError:
            evidence.discard()
            raise
        except Exception as error:  # whatever it is, the attempt is on record, and the error names it
            record_failure(course, error)
            raise
        return replace(report, warnings=(*report.warnings, *([damaged] if damaged else [])))


def _under_intents(repository: Repository, place: Place) -> Place:
    """Let what goes on keep the leases of this worktree's intents: a command may outlast one."""
    if active_here(repository) is None:
        return place

    def tell(what: str, seconds: float) -> None:
        touch(repository, active_here(repository))
        place.tell(what, seconds)

    return replace(place, tell=tell)


def _narrowed(request: Request) -> bytes:
    """Take from a patch what `--only` names."""
    if not request.only:
        return request.raw
    wanted = [readings(text) for text in request.only]
    parsed = parse(request.raw)
    if isinstance(parsed, tuple):
        # It is refused as a whole, with its own faults.
        return request.raw
    return narrow(parsed, paths_to_keep(parsed, wanted))


def _judged_and_landed(course: Course) -> Report:
    repository, request, place = course.repository, course.request, course.place
    with (
        judging(
            repository,
            course.candidate,
            request.asked,
            base=request.base,
            kind=request.kind,
            lands=True,
            now=place.clock(),
        ) as judged,
        ExitStack() as shield,
    ):
        if judged.policy is not None:
            course.limit = judged.policy.config.apply.max_attempts
        verdict = _with_history(course, judged)
        landed = Landed()
        is_new = not any(finding.rule == "duplicate-patch" for finding in verdict.findings)
        if verdict.verdict is Verdict.ACCEPTED and is_new and verdict.change.files:
            around = Surroundings(
                place.environ, place.cache, place.tell, request.keeps_scratch, place.clock()
            )
            # Cheap, before the commands take their time; under the lock it is asked again.
            if (overtaken := course.ask_again()) is not None:
                return conclude(course, stopped(verdict, overtaken), None)
            landed = find_obstacles(repository, judged, with_index=request.with_index)
            if not landed.gates:
                course.tried = try_commands(repository, judged, course.evidence, around)
            verdict = _adding(
                verdict,
                (*course.tried.gates, *landed.gates),
                (*course.tried.findings, *landed.findings),
            )
            if verdict.verdict is Verdict.ACCEPTED:
                landed = land_judged(
                    repository,
                    judged,
                    note=record_of(course, verdict, applied=True).note(),
                    with_index=request.with_index,
                    writes=not request.is_dry_run,
                    shield=shield,
                    tried=course.tried.tree,
                    faults=place.faults,
                    last_look=course.ask_again,
                )
                course.warnings.extend(landed.warnings)
                verdict = _adding(verdict, landed.gates, landed.findings)
        return conclude(course, verdict, landed.landing)


def _adding(
    verdict: ChangeVerdict, gates: tuple[GateOutcome, ...], findings: tuple[Finding, ...]
) -> ChangeVerdict:
    return replace(verdict, gates=(*verdict.gates, *gates), findings=(*verdict.findings, *findings))


def _with_history(course: Course, judged: Judged) -> ChangeVerdict:
    """Add what earlier attempts mean for this one."""
    verdict = judged.verdict
    digest = course.sha256
    course.join(verdict)
    refusal = before_judging(course.chain, course.candidate, course.request.kind, course.limit)
    if refusal is None:
        duplicate = find_duplicate(
            course.repository,
            judged.objects,
            judged.store,
            course.ledger,
            tree=judged.footing.tree,
            patch=judged.patch,
            patch_id=verdict.patch_id,
            patch_sha256=digest,
        )
        if duplicate is not None:
            return _already(verdict, duplicate, is_fine=course.request.is_fine_if_applied)
        refusal = after_judging(course.chain, verdict, course.candidate)
    return verdict if refusal is None else stopped(verdict, refusal)


def _already(verdict: ChangeVerdict, duplicate: Finding, *, is_fine: bool) -> ChangeVerdict:
    """Say that a patch is there already; that it does not fit any more is nothing else.

    Where that is fine, what else is wrong with it stays: a patch that the policy denies by now is not
    accepted, though nothing would be written.
    """
    if not is_fine:
        gates = (GateOutcome("parse", Outcome.PASS), GateOutcome("retry", Outcome.FAIL))
        return replace(verdict, gates=gates, findings=(duplicate,))
    others = [
        gate for gate in verdict.gates if gate.gate != "git_check" and gate.outcome is not Outcome.NOT_RUN
    ]
    kept = [each for each in verdict.findings if each.definition.stage is not Stage.GIT_CHECK]
    return replace(
        verdict,
        gates=(*others, GateOutcome("retry", Outcome.PASS)),
        findings=(replace(duplicate, level=Level.NOTE), *kept),
    )
