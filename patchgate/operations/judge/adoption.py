"""What a push brings from before the first policy: one line reports it, and it refuses nothing.

Decides which commits those are (the ancestors of the commit that adds the policy, on the first-parent line of
a ref, as far as nothing but the built-in rules judged them) and what refuses all the same: invariants, and
whatever is undecided. Where a policy may be there already nothing is let go: `RefTerms.is_before_policy`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchgate.git.pushes import NOTES, RefUpdate
from patchgate.operations.judge.cases import BUILT_IN
from patchgate.operations.judge.push_news import News
from patchgate.operations.judge.ref_terms import RefTerms
from patchgate.verdict.rules import Level
from patchgate.verdict.verdict import ChangeVerdict, Finding, Outcome
from patchgate.verdict.wording import SHORT_OID, count

_PAST = "from before the first policy"
_NAMED = 5


def with_past(
    terms: RefTerms,
    news: News,
    commits: Mapping[str, str | None],
    updates: Sequence[RefUpdate],
    changes: Sequence[ChangeVerdict],
) -> tuple[list[ChangeVerdict], tuple[str, ...]]:
    """Give the verdicts of a push, in which the past refuses nothing, and the line that reports it.

    Args:
        commits: the commit that each object stands for; None where it is none, or not here.
        changes: the verdicts on refs and commits.
    """
    unruled = _unruled(changes)
    if not unruled or not terms.is_before_policy(updates):
        return list(changes), ()
    past: set[str] = set()
    first: dict[str, None] = {}
    for update in updates:
        tip = commits.get(update.new or "")
        adding = _adding(terms, news, tip, unruled) if tip and not update.ref.startswith(NOTES) else None
        if adding is not None:
            first[adding] = None
            past |= _ancestors(news, adding) & unruled
    let_go: list[ChangeVerdict] = []
    found = []
    for change in changes:
        spared = _spared(change) if change.source.commit in past else change
        if spared is not change:
            let_go.append(change)
        found.append(spared)
    return found, (_line(let_go, len(past), list(first)),) if let_go else ()


def _unruled(changes: Sequence[ChangeVerdict]) -> set[str]:
    """Name the commits that only the built-in rules judged, for no policy is before them or in them."""
    judged = [(change.source.commit, change.policy.origin) for change in changes if change.source.commit]
    ruled = {commit for commit, origin in judged if origin != BUILT_IN}
    return {commit for commit, _ in judged if commit is not None} - ruled


def _adding(terms: RefTerms, news: News, tip: str, unruled: set[str]) -> str | None:
    """Find the oldest commit of the first-parent line that has a policy; None where it does not add it."""
    found = None
    oid: str | None = tip
    while oid is not None and (commit := news.commits.get(oid)) is not None:
        if oid not in unruled:
            found = oid
        oid = commit.parents[0] if commit.parents else None
    if found is None:
        return None
    parents = news.commits[found].parents
    is_first = not parents or parents[0] in unruled or terms.has_no_policy(parents[0])
    return found if is_first else None


def _ancestors(news: News, commit: str) -> set[str]:
    """Name the new commits that a commit reaches, itself left out."""
    found: set[str] = set()
    waiting = list(news.commits[commit].parents)
    while waiting:
        oid = waiting.pop()
        if oid in news.commits and oid not in found:
            found.add(oid)
            waiting.extend(news.commits[oid].parents)
    return found


def _spared(change: ChangeVerdict) -> ChangeVerdict:
    """Leave out of a verdict what is no invariant; the very same verdict where it says nothing else."""
    kept = tuple(each for each in change.findings if _stays(each))
    if len(kept) == len(change.findings):
        return change
    failing = {each.definition.gate for each in kept if each.level is Level.ERROR}
    rules = ", ".join(_rules([change]))
    gates = tuple(
        replace(gate, outcome=Outcome.NOT_APPLICABLE, reason=f"{_PAST}: {rules}")
        if gate.outcome is Outcome.FAIL and gate.gate not in failing
        else gate
        for gate in change.gates
    )
    return replace(change, findings=kept, gates=gates)


def _stays(finding: Finding) -> bool:
    return finding.definition.invariant or finding.definition.undecided


def _rules(changes: Sequence[ChangeVerdict]) -> list[str]:
    return sorted({each.rule for change in changes for each in change.findings if not _stays(each)})


def _line(let_go: Sequence[ChangeVerdict], number: int, first: Sequence[str]) -> str:
    rules = _rules(let_go)
    more = f" and {len(rules) - _NAMED} more rules" if len(rules) > _NAMED else ""
    named = " and ".join(oid[:SHORT_OID] for oid in first[:_NAMED])
    return (
        f"{len(let_go):,} of {count(number, 'commit')} {_PAST} ({named}) would not pass "
        f"({', '.join(rules[:_NAMED])}{more}); the past is not refused"
    )
