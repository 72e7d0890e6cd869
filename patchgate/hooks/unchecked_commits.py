"""Commits that no hook checked on their branch: the next hook checks and reports them.

They have no receipt, are on no remote, were not there at install, and are not in the ledger for this branch.
An accepted one gets its receipt; the rest is reported once and recorded. The reported tip of each branch is
stored, so that the next commit asks neither the ledger nor git.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from patchgate.check.commits import judge_commits
from patchgate.check.hook_decision import ApprovalSources, add_receipts, blocks, with_approvals
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import PatchgateError
from patchgate.git.commit_lists import Commit
from patchgate.git.new_commits import unpublished_commits
from patchgate.git.quoting import first_of
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.ledger.receipts import AnnouncedTips, Receipts, settled
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Report, Verdict
from patchgate.report.wording import count

_MOST = 500
_NAMED = 5
# Up to this size, the fast path reads the ledger itself.
_MOST_READ_FAST = 256 << 10
_RECORDED = frozenset({"skipped", "observed", "unjudged"})


def report_unchecked(
    repository: Repository, tip: str | None, branch: str | None, asked: Callable[[], CheckOptions]
) -> tuple[str, ...]:
    """Check the unchecked commits below the tip of a branch; return warnings, and refuse nothing.

    Args:
        repository: the repository.
        tip: the tip of the branch; None if it has no commit.
        branch: its full name; None if HEAD is detached.
        asked: returns the options of the check; called only if there is something to check.
    """
    try:
        return _report(repository, tip, branch, asked)
    except PatchgateError as error:
        return (f"earlier commits could not be checked: {error.message}",)


def _report(
    repository: Repository, tip: str | None, branch: str | None, asked: Callable[[], CheckOptions]
) -> tuple[str, ...]:
    receipts = Receipts(repository.common_dir)
    announced = AnnouncedTips(repository.common_dir)
    if tip is None or (branch is not None and announced.covers(branch, tip, receipts)):
        return ()
    ledger = Ledger(repository.common_dir)
    recorded = list(_recorded(ledger))
    # The hook that gave a commit its receipt has reported what is below it; but skipped or observed commits
    # may have been reported on another branch.
    if not recorded and receipts.has(tip):
        if branch is not None and ledger.size() > _MOST_READ_FAST:
            announced.record(branch, tip)
        return ()
    answered = {commit for commit, ref in recorded if ref == branch}
    fresh = _fresh(repository, tip, receipts, answered)
    report = judge_commits(repository, fresh, asked()) if fresh else Report(())
    report = with_approvals(repository, report, ApprovalSources(local=True))
    warnings: list[str | None] = [*add_receipts(receipts, report.changes)]
    bad = [each for each in report.changes if each.verdict is not Verdict.ACCEPTED]
    refused = [each for each in bad if blocks(each, branch)]
    for kind, changes in (("unjudged", refused), ("observed", [each for each in bad if each not in refused])):
        if changes:
            commits = [each.source.commit for each in changes]
            warnings.append(ledger.record(kind, {"ref": branch, "commits": commits}))
    if branch is not None and not any(warnings):
        announced.record(branch, tip)
    if refused:
        warnings.append(_message(refused))
    return tuple(warning for warning in warnings if warning)


def _fresh(repository: Repository, tip: str, receipts: Receipts, answered: set[str]) -> list[Commit]:
    """List the unchecked commits up to a tip, parents first."""
    found = unpublished_commits(repository, tip, settled(repository.common_dir), _MOST)
    known = answered | receipts.commits() if found else answered
    return [each for each in found if each.oid not in known and each.oid not in repository.shallow]


def _recorded(ledger: Ledger) -> Iterator[tuple[str, str | None]]:
    """Read which commits are in the ledger, and for which branch; damage only causes a second report."""
    for event in ledger.find_events(_RECORDED):
        commits, ref = event.about.get("commits"), event.about.get("ref")
        listed = commits if isinstance(commits, list) else ()
        for commit in (event.about.get("commit"), *listed):
            if isinstance(commit, str):
                yield commit, ref if isinstance(ref, str) else None


def _message(changes: list[ChangeVerdict]) -> str:
    rules = sorted({each.rule for change in changes for each in change.findings if each.level is Level.ERROR})
    named = first_of(changes, _NAMED, lambda change: str(change.source.commit)[:12])
    verb = "was" if len(changes) == 1 else "were"
    return (
        f"{count(len(changes), 'earlier commit')} {verb} not checked by a hook, and would be refused "
        f"({named}: {', '.join(rules) or 'undecided'}): fix before the push; "
        f"details: git patchgate check {str(changes[0].source.commit)[:12]}"
    )
