"""The commits of a push from before the first policy of a repository: no rule of it refuses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.check.judging_policy import BUILT_IN
from patchgate.check.protected_refs import RefRules
from patchgate.check.push_commits import NewCommits
from patchgate.git.pushes import NOTES, RefUpdate, first_parents_at
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, Outcome
from patchgate.report.wording import SHORT_OID, count
from patchgate.values import dataclass, replace

_PAST = "from before the first policy"
_NAMED = 5


@dataclass(frozen=True, slots=True)
class CommitsBeforePolicy:
    """The commits of a push that are from before the first policy, and those that add it.

    `roots` are those without a parent and a policy: another branch's policy may have judged them.
    """

    commits: frozenset[str] = frozenset()
    adding: tuple[str, ...] = ()
    roots: frozenset[str] = frozenset()


def commits_before_policy(
    repository: Repository,
    terms: RefRules,
    news: NewCommits,
    commits: Mapping[str, str | None],
    updates: Sequence[RefUpdate],
) -> CommitsBeforePolicy:
    """Find the commits of a push from before the first policy; none if there may be a policy already.

    Those are the ancestors of the commit that adds the policy, on the first-parent line of a ref, as far as
    only the built-in rules judged them. Invariants and undecided gates still refuse.

    Args:
        commits: the commit of each object; None if it has none, or is not here.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    if not news.commits or not terms.is_before_policy(updates):
        return CommitsBeforePolicy()
    tips = dict.fromkeys(commits.get(each.new or "") for each in updates if not each.ref.startswith(NOTES))
    found = [_adding(repository, terms, news, tip) for tip in tips if tip is not None]
    adding = tuple(dict.fromkeys(each for each in found if each is not None))
    past = frozenset(oid for each in adding for oid in _ancestors(news, each))
    roots = (oid for oid in past if not news.commits[oid].parents)
    return CommitsBeforePolicy(past, adding, frozenset(oid for oid in roots if terms.has_no_policy(oid)))


def allow_commits_before_policy(
    past: CommitsBeforePolicy, changes: Sequence[ChangeVerdict]
) -> tuple[list[ChangeVerdict], tuple[str, ...]]:
    """Return the verdicts of a push, with the commits before the policy accepted, and a note about them.

    A commit that has a policy, or an ancestor with one, is not from before: a merge can bring both.
    """
    ruled = {change.source.commit for change in changes if change.policy.origin != BUILT_IN} - past.roots
    found: list[ChangeVerdict] = []
    spared: list[ChangeVerdict] = []
    number = 0
    for change in changes:
        is_past = change.source.commit in past.commits and change.source.commit not in ruled
        is_spared = is_past and any(not _stays(each) for each in change.findings)
        number += is_past
        spared += [change] if is_spared else []
        found.append(_spared(change) if is_spared else change)
    return found, (_line(spared, number, past.adding),) if spared else ()


def _adding(repository: Repository, terms: RefRules, news: NewCommits, tip: str) -> str | None:
    """Find the oldest new commit of the first-parent line with a policy; None if it does not add it."""
    before: str | None = tip
    while before is not None and (commit := news.commits.get(before)) is not None:
        before = commit.parents[0] if commit.parents else None
    if before == tip:
        return None
    touching = first_parents_at(repository, tip, before, (CONFIG_FILE.raw, PYPROJECT_FILE.raw))
    oldest = next((oid for oid in touching if not terms.has_no_policy(oid)), None)
    if oldest is None or oldest not in news.commits:
        return None
    parents = news.commits[oldest].parents
    return oldest if not parents or terms.has_no_policy(parents[0]) else None


def _ancestors(news: NewCommits, commit: str) -> set[str]:
    """List the new ancestors of a commit, without the commit."""
    found: set[str] = set()
    waiting = list(news.commits[commit].parents)
    while waiting:
        oid = waiting.pop()
        if oid in news.commits and oid not in found:
            found.add(oid)
            waiting.extend(news.commits[oid].parents)
    return found


def _spared(change: ChangeVerdict) -> ChangeVerdict:
    """Remove from a verdict the findings that are not invariants."""
    kept = tuple(each for each in change.findings if _stays(each))
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


def _line(spared: Sequence[ChangeVerdict], number: int, adding: Sequence[str]) -> str:
    rules = _rules(spared)
    more = f" and {len(rules) - _NAMED} more rules" if len(rules) > _NAMED else ""
    named = " and ".join(oid[:SHORT_OID] for oid in adding[:_NAMED])
    return (
        f"{len(spared):,} of {count(number, 'commit')} {_PAST} ({named}) would not pass "
        f"({', '.join(rules[:_NAMED])}{more}); they are not refused"
    )
