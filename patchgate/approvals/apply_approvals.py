"""Apply approvals to a verdict, and decide which refusals can be approved.

An error whose rule is not an invariant, in a change that is or can become a commit, becomes a note where an
approval of this change under this policy names its rule. Nothing else changes: undecided gates, invariants,
the rules of patches and of git, messages, refs and the verdict id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchgate.git.objects import Objects
from patchgate.git.quoting import in_shell, printable
from patchgate.report.rules import Level, Stage
from patchgate.report.verdict import (
    OWNER_RULE,
    ChangeVerdict,
    Finding,
    GateOutcome,
    Json,
    Outcome,
    Report,
    Verdict,
)
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.approvals.grants import Grant
    from patchgate.check.hook_decision import ApprovalSources
    from patchgate.git.repository import Repository

LOCAL, PUSH = "local", "push"
_COMMIT = re.compile(r"[0-9a-f]{12,64}")
GATE = "approvals"
_KINDS = frozenset({"staged", "worktree", "commit", "merge"})
# These are about a text, a message or an intent, not about the change that an approval is for.
_OUT_OF_REACH = frozenset(
    {Stage.PARSE, Stage.GIT_CHECK, Stage.APPLY, Stage.MESSAGE, Stage.SCOPE, Stage.VERIFY}
)


def may_be_approved(change: ChangeVerdict, finding: Finding) -> bool:
    """Return whether a maintainer may approve a finding of a change."""
    rule = finding.definition
    # The id of a change without files is that of every other one.
    is_bound = change.source.kind in _KINDS and bool(change.change.files)
    return is_bound and not rule.invariant and rule.stage not in _OUT_OF_REACH


def errors_of(change: ChangeVerdict) -> list[Finding]:
    """List the findings that refuse a change."""
    return [finding for finding in change.findings if finding.level is Level.ERROR]


def undecided_gates(change: ChangeVerdict) -> list[GateOutcome]:
    """List the gates that could not judge a change: an unchecked change cannot be approved."""
    wanting = {Outcome.UNDECIDED, Outcome.NOT_RUN}
    return [gate for gate in (*change.gates, *change.context_gates) if gate.outcome in wanting]


def _rules_in_question(change: ChangeVerdict) -> frozenset[str]:
    """List the rules that refuse a change; none if no approval can help."""
    errors = errors_of(change)
    owned = {OWNER_RULE} if change.owned and change.lands_on else set[str]()
    is_in_question = any(may_be_approved(change, finding) for finding in errors)
    return frozenset({each.rule for each in errors} | owned if is_in_question else owned)


def apply_approvals(repository: Repository, report: Report, sources: ApprovalSources) -> Report:
    """Find the approvals for what a report refuses, apply them, and ask for those of owners.

    It costs nothing if nothing is refused, and no path has owners. Why an approval does not count is a
    warning. What stays refused names the owners that CODEOWNERS has.
    """
    refusing = [_rules_in_question(change) for change in report.changes]
    has_owners = bool(report.lands_on) or any(change.owned for change in report.changes)
    if report.verdict is not Verdict.REJECTED and not has_owners:
        return report
    from patchgate.approvals.grants import find_grants
    from patchgate.approvals.owners import name_code_owners, require_owners

    grants: Sequence[Sequence[Grant]] = [()] * len(report.changes)
    with Objects(repository) as objects:
        if any(refusing):
            grants, warnings = find_grants(objects, report.changes, refusing, sources)
            report = apply_grants(report, grants)
            report = replace(report, warnings=(*report.warnings, *warnings)) if warnings else report
        if has_owners:
            report = require_owners(objects, report, grants, sources)
        return name_code_owners(objects, report)


def apply_grants(report: Report, grants: Sequence[Sequence[Grant]]) -> Report:
    """Apply to each change of a report the approvals that count for it."""
    changes = tuple(
        _apply_to(change, mine) if mine else change
        for change, mine in zip(report.changes, grants, strict=True)
    )
    return replace(report, changes=changes)


def _apply_to(change: ChangeVerdict, grants: Sequence[Grant]) -> ChangeVerdict:
    about = (change.change_id, change.policy.digest)
    # Signed approvals come before those of this machine.
    grants = sorted(
        (each for each in grants if (each.statement.change_id, each.statement.policy) == about),
        key=lambda each: not each.signed,
    )
    used: list[Grant] = []
    findings: list[Finding] = []
    fixed: set[str] = set()
    for finding in change.findings:
        helping = _grants_for(change, finding.rule, grants)
        if not helping or finding.level is not Level.ERROR or not may_be_approved(change, finding):
            findings.append(finding)
            continue
        findings.append(_approved(finding, helping[0]))
        fixed.add(finding.definition.gate)
        used += [grant for grant in helping if grant not in used]
    if not used:
        return change
    refusing = {each.definition.gate for each in findings if each.level is Level.ERROR}
    gates = tuple(
        replace(gate, outcome=Outcome.PASS)
        if gate.outcome is Outcome.FAIL and gate.gate in fixed - refusing
        else gate
        for gate in change.gates
    )
    reason = "; ".join(f"{', '.join(each.statement.rules)} {_words(each)}" for each in used)
    return replace(
        change,
        findings=tuple(findings),
        gates=gates,
        context_gates=(*change.context_gates, GateOutcome(GATE, Outcome.PASS, reason)),
    )


def _grants_for(change: ChangeVerdict, rule: str, grants: Sequence[Grant]) -> list[Grant]:
    """Choose an approval of a rule for each protected branch that gets a change; none if one has none."""
    mine = [grant for grant in grants if rule in grant.statement.rules]
    if not change.lands_on:
        return mine[:1]
    found = [next((each for each in mine if each.counts_for(ref.ref)), None) for ref in change.lands_on]
    return [] if None in found else list(dict.fromkeys(filter(None, found)))


def _approved(finding: Finding, grant: Grant) -> Finding:
    about: dict[str, Json] = {"by": grant.by, "reason": grant.statement.reason, "signed": grant.signed}
    return replace(
        finding,
        level=Level.NOTE,
        message=f"{finding.message}; {_words(grant)}",
        hint=None,
        fix=None,
        details={**finding.details, "approved": about},
    )


def _words(grant: Grant) -> str:
    how = "signed" if grant.signed else "on this machine, until the push"
    return f"approved by {printable(grant.by)} ({how}): {printable(grant.statement.reason)}"


def approve_command(
    repository: Repository,
    report: Report,
    *,
    place: str,
    policy_from: str | None = None,
    profile: str | None = None,
) -> str | None:
    """Return the command that approves what a report refuses; None if it cannot be approved.

    Several changes are approved one by one: the command names the first. Under the agent profile there is no
    command: the agent would read it, and run it. Commits are named by whole ids: two may begin alike.

    Args:
        report: what remains refused after `apply_approvals`.
        place: `LOCAL`, where an approval without a signature counts, or `PUSH` (pre-push, pre-receive),
            where only a signed one does.
        policy_from: the revision of `--policy-from`; without it, the change names its policy.
        profile: the profile of `--profile`, if any.
    """
    refused = [change for change in report.changes if change.verdict is not Verdict.ACCEPTED]
    if not refused or any(each.profile == "agent" for each in refused):
        return None
    if any(each.verdict is Verdict.UNDECIDED or undecided_gates(each) for each in refused):
        return None
    refused = [change for change in refused if change.source.kind not in {"ref", "range"}]
    errors = [(change, each) for change in refused for each in errors_of(change)]
    if not refused:
        return None
    if not all(each.rule == OWNER_RULE or may_be_approved(change, each) for change, each in errors):
        return None
    asked: list[str] = []
    judged_by = policy_from or _judged_by(repository, refused[0])
    refs = {str(ref) for _, each in errors if each.rule == OWNER_RULE and (ref := each.details["ref"])}
    places = refused[0].lands_on
    if refused[0].source.kind == "merge" and len(places) == 1 and places[0].ref is not None:
        # It is judged beside the branch that gets it, whoever's policy judges.
        refs.add(places[0].ref)
    is_signed = place == PUSH or bool(refs)
    if is_signed and not refs and len(places) == 1 and places[0].ref is not None:
        # It is for no other branch, whose rules may differ.
        refs.add(places[0].ref)
    for key, text in (
        ("--policy-from", judged_by),
        ("--profile", profile),
        ("--for", min(refs, default=None)),
        ("--repository", refused[0].repository_for(places[0]) if is_signed and places else None),
    ):
        asked += [key, in_shell(text, "...")] if text else []
    words = ["git patchgate approve", _name(refused[0]), *asked, '--reason "..."']
    return " ".join([*words, "--sign"] if is_signed else words)


def _judged_by(repository: Repository, change: ChangeVerdict) -> str | None:
    """Name the commit whose policy judged a commit at a push: of a merge, or where it is not its parent."""
    place, is_merge = change.policy.origin.rpartition(":")[0], change.source.kind == "merge"
    is_named = is_merge or change.policy.tree is not None
    if change.source.commit is None or not is_named or not _COMMIT.fullmatch(place):
        return None
    if not is_merge and (change.source.base_commit or "").startswith(place):
        return None
    with Objects(repository) as objects:
        found = objects.header(place + "^{commit}")
    # A ref may be named like the beginning of an id.
    return found.oid if found is not None and found.oid.startswith(place) else place


def _name(change: ChangeVerdict) -> str:
    source = change.source
    if source.commit is not None:
        return source.commit
    if source.kind == "worktree":
        return change.change_id.removeprefix("sha256:")[:16]
    return "@staged"
