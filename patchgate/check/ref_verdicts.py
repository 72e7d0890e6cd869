"""The verdict on the move of a ref: what a protected one may not lose, and what nobody could judge."""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.check.judging_policy import reference
from patchgate.check.protected_refs import RefRules
from patchgate.check.refs import GATE, RefMove, examine, show_ref
from patchgate.git.model import Change, Source
from patchgate.git.pushes import BRANCHES, TAGS, RefUpdate, type_of
from patchgate.git.quoting import in_shell
from patchgate.policy.policy import Decision, Profile
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome
from patchgate.values import replace

_REPLACEMENTS = "refs/replace/"


def judge_move(terms: RefRules, update: RefUpdate, reason: str | None = None) -> ChangeVerdict | None:
    """Judge the move of a ref; None if nothing is wrong.

    Args:
        reason: why what it gets could not be judged, where something else has found that out.
    """
    reason = reason or _not_judged(terms, update)
    findings: list[Finding] = []
    if update.old is not None and update.old != update.new:
        protection = terms.protection_of(update)
        keeps = update.new is None or _keeps(terms, update)
        if protection is not None:
            findings = _findings(terms, update, protection, keeps is not False)
            if keeps is None:
                lost = f"whether {str(update.old)[:12]} would be lost"
                reason = reason or f"this clone is shallow, so it is not known {lost}"
        elif terms.governing.fault is not None and (update.new is None or not keeps):
            fault = terms.governing.fault.in_one_line
            reason = reason or f"the policy that names the protected refs cannot be read: {fault}"
    if update.new is not None and terms.is_unseen(update.ref) and terms.is_governed(update):
        reason = reason or _not_seen(terms, update)
    if not findings and reason is None:
        return None
    return verdict_on_ref(terms, update, reason, findings)


def verdict_on_ref(
    terms: RefRules, update: RefUpdate, reason: str | None, findings: Sequence[Finding] = ()
) -> ChangeVerdict:
    """Make the verdict on a ref: rejected by an error, undecided with a reason."""
    is_failed = any(finding.level is Level.ERROR for finding in findings)
    outcome = Outcome.FAIL if is_failed else Outcome.UNDECIDED if reason else Outcome.PASS
    empty = terms.objects.empty_tree
    return ChangeVerdict(
        change=Change.of(empty, empty, ()),
        source=Source("ref", ref=update.ref),
        profile=Profile.COMMIT.value,
        policy=reference(terms.governing.policy, terms.governing.place, Profile.COMMIT),
        gates=(GateOutcome(GATE, outcome, None if is_failed else reason),),
        findings=tuple(findings),
    )


def with_verdict_on_ref(
    terms: RefRules,
    changes: Sequence[ChangeVerdict],
    update: RefUpdate,
    gates: Sequence[GateOutcome],
    findings: Sequence[Finding],
    context_gates: Sequence[GateOutcome] = (),
) -> list[ChangeVerdict]:
    """Add findings to the verdict on a ref, or make one."""
    found = list(changes)
    ref = update.ref
    index = next(
        (n for n, each in enumerate(found) if each.source.kind == "ref" and each.source.ref == ref), None
    )
    verdict = verdict_on_ref(terms, update, None) if index is None else found.pop(index)
    verdict = replace(
        verdict,
        gates=(*verdict.gates, *gates),
        context_gates=(*verdict.context_gates, *context_gates),
        findings=(*verdict.findings, *findings),
    )
    found.insert(0 if index is None else index, verdict)
    return found


def _findings(terms: RefRules, update: RefUpdate, protection: Decision | bool, keeps: bool) -> list[Finding]:
    decision = protection if isinstance(protection, Decision) else None
    is_here = terms.commits.get(update.old or "") is not None
    move = RefMove(
        ref=update.ref, old=update.old, new=update.new, keeps=keeps, is_here=is_here, decision=decision
    )
    found = []
    for finding in examine(move):
        level = terms.governing.policy.level(finding.rule, Profile.COMMIT)
        if level is not None:
            found.append(replace(finding, level=level))
    return found


def _keeps(terms: RefRules, update: RefUpdate) -> bool | None:
    """Return whether the new commit contains the old one; None if a shallow history hides it."""
    old, new = terms.commits.get(update.old or ""), terms.commits.get(update.new or "")
    if update.ref.startswith(TAGS):
        return False
    if old is not None and new is not None and terms.reaches(new, old):
        return True
    return None if terms.repository.shallow and new is not None else False


def _not_seen(terms: RefRules, update: RefUpdate) -> str | None:
    old, name = update.old or "", terms.destination.name
    if type_of(terms.objects, old) is not None:
        return None
    fetch = f"git fetch {in_shell(name, 'REMOTE')}"
    return f"{show_ref(update.ref)} has {old[:12]} at {name}, which is not here: {fetch}"


def _not_judged(terms: RefRules, update: RefUpdate) -> str | None:
    """Say why the new commits of a ref cannot be judged; None if they can."""
    if update.new is None:
        return None
    if update.ref.startswith(_REPLACEMENTS):
        # Its own commits are judged, and git shows them in the place of others (git-replace).
        replaced = show_ref(update.ref)
        return f"{replaced} would make git show one object instead of another: leave it out"
    commit = terms.commits.get(update.new)
    if commit == update.new or (commit is not None and not update.ref.startswith(BRANCHES)):
        return None
    if commit is not None:
        return f"{show_ref(update.ref)} would point to a tag, and a branch points to a commit: leave it out"
    kind = type_of(terms.objects, update.new)
    if kind is None:
        return f"{show_ref(update.ref)} would get {update.new[:12]}, which is incomplete here: run git fsck"
    return f"{show_ref(update.ref)} would point to a {kind}, but only commits can be judged: leave it out"
