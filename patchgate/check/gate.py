"""The table of the gates, in their order, and the function that runs them.

A gate that raises makes the verdict undecided. Only here is every exception caught.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from patchgate.check import content, denied_paths, governance, shape, unsafe_paths
from patchgate.check.case import Case
from patchgate.check.features import GATES, examiner
from patchgate.errors import PatchgateError
from patchgate.git.path import RepoPath
from patchgate.policy.policy import Policy, Profile
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, GateOutcome, Outcome
from patchgate.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate: its name, when it applies, and its function."""

    name: str
    examine: Callable[[Case], Iterable[Finding]]
    applies: Callable[[Case], bool] = lambda case: bool(case.change.files)


def _of_feature(name: str, feature: str, module: str) -> Gate:
    """Make a feature's gate; its module is imported where it applies: 5 ms, and most commits need none."""

    def applies(case: Case) -> bool:
        facts = case.facts.get(feature)
        return facts is not None and facts.concerns(name)

    return Gate(name, examiner(module), applies)


ORDER: tuple[Gate, ...] = (
    # A merge without changes can still bring together what no parent has.
    Gate("paths", unsafe_paths.examine, lambda case: bool(case.change.files or case.merged)),
    Gate("policy", denied_paths.examine),
    Gate("content", content.examine, content.applies),
    Gate("shape", shape.examine, lambda case: bool(case.change.files) or case.links is not None),
    Gate("governance", governance.examine, governance.applies),
    *(_of_feature(*each) for each in GATES),
)


MOST_FINDINGS = 100_000
"""So many findings has a gate of one change, and on a server and in CI a whole push; one takes 700 bytes."""
_KEPT = 1_000
_TOO_MANY = f"it has more than {MOST_FINDINGS:,} findings"

GateResults = tuple[tuple[GateOutcome, ...], tuple[Finding, ...]]


def judge(case: Case, order: tuple[Gate, ...] = ORDER) -> GateResults:
    """Run every gate; return their outcomes, and all findings in the order of gates and paths."""
    outcomes: list[GateOutcome] = []
    findings: list[Finding] = []
    for gate in order:
        outcome, found = _run_gate(gate, case)
        outcomes.append(outcome)
        findings.extend(found)
    return tuple(outcomes), tuple(findings)


def _run_gate(gate: Gate, case: Case) -> tuple[GateOutcome, list[Finding]]:
    found: list[Finding] = []
    try:
        if not gate.applies(case):
            return GateOutcome(gate.name, Outcome.NOT_APPLICABLE), []
        for finding in gate.examine(case):
            said = at_policy_level(case.policy, case.profile, finding)
            if said is not None:
                found.append(said)
            if len(found) > MOST_FINDINGS:
                return GateOutcome(gate.name, Outcome.UNDECIDED, _TOO_MANY), found[:_KEPT]
    except PatchgateError as error:
        return GateOutcome(gate.name, Outcome.UNDECIDED, error.message), found
    except Exception as error:  # noqa: BLE001 - a crash of ours must refuse, not pass; it is named in the verdict
        reason = f"the gate {gate.name} failed ({type(error).__name__}); this is a fault of patchgate"
        # Imported here: only for a fault.
        import traceback

        trace = "".join(traceback.format_exception(error))
        # The findings of a gate that crashed are not reliable.
        return GateOutcome(gate=gate.name, outcome=Outcome.UNDECIDED, reason=reason, trace=trace), []
    failed = any(finding.level is Level.ERROR for finding in found)
    return GateOutcome(gate.name, Outcome.FAIL if failed else Outcome.PASS), found


def join_results(results: GateResults, *others: GateResults) -> GateResults:
    """Join the results under several policies or profiles, without duplicates.

    A gate that one of them left undecided stays so beside an error, which may be approved.
    """
    rank = [Outcome.NOT_APPLICABLE, Outcome.PASS, Outcome.FAIL, Outcome.NOT_RUN, Outcome.UNDECIDED]
    outcomes, findings = results
    for more_outcomes, more_findings in others:
        # Of two errors at one place with other reasons both are shown: an approval allows both.
        errors = {(_place(each), each.message) for each in findings if each.level is Level.ERROR}
        said = set(map(_place, findings))
        findings += tuple(
            each
            for each in more_findings
            if (
                (_place(each), each.message) not in errors
                if each.level is Level.ERROR
                else _place(each) not in said
            )
        )
        outcomes = tuple(
            max(pair, key=lambda each: rank.index(each.outcome))
            for pair in zip(outcomes, more_outcomes, strict=True)
        )
    return outcomes, findings


def _place(finding: Finding) -> tuple[str, RepoPath | None, int | None]:
    return finding.rule, finding.path, finding.line


def at_policy_level(policy: Policy, profile: Profile, finding: Finding) -> Finding | None:
    """Give a finding the level that the policy has for its rule; None if the rule is off.

    Where a gate made a finding less severe than its rule, it stays so unless the policy names the rule.
    """
    level = policy.level(finding.rule, profile)
    if level is None:
        return None
    if level is finding.level or "suppressed" in finding.details:
        return finding
    weights = list(Level)
    is_less = weights.index(finding.level) > max(map(weights.index, (level, finding.definition.level)))
    if is_less and finding.rule not in policy.config.rules:
        return finding
    return replace(finding, level=level)
