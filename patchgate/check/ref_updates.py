"""Judge what an update of a branch adds: each commit against its parent.

Not judged again: a value that the branch had, and commits with a receipt. Only reported: commits that a
remote has already, or that were fetched into this branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from patchgate.check.commits import judge_commits
from patchgate.check.features import ScopedCommits, feature_functions
from patchgate.check.policy_lookup import CheckOptions, history_root
from patchgate.errors import PatchgateError
from patchgate.git.commit_lists import Commit, require_parents
from patchgate.git.new_commits import (
    BranchUpdate,
    arriving_tips,
    attribute_to_fetch,
    find_new_commits,
    had_value,
)
from patchgate.git.objects import Objects
from patchgate.git.quoting import first_of, in_shell, printable
from patchgate.git.repository import Repository
from patchgate.ledger.receipts import Receipts, settled
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.verdict import ChangeVerdict, Report, Verdict
from patchgate.report.wording import SHORT_OID, count
from patchgate.values import dataclass, replace

_UPSTREAM_LOOKED_AT = 200
_NAMED = 3


@dataclass(frozen=True, slots=True)
class JudgedCommits:
    """What needs no check: commits with a receipt, the tips at install, what comes from a remote."""

    receipts: Receipts
    settled: Sequence[str] = ()
    arriving: Sequence[str] = ()

    @classmethod
    def at(cls, repository: Repository, lines: bytes = b"") -> JudgedCommits:
        """Read the receipts of a repository, and which lines of a transaction come from a remote."""
        arriving = arriving_tips(repository, lines) if lines else ()
        return cls(Receipts(repository.common_dir), settled(repository.common_dir), arriving)


def judge_update(
    repository: Repository,
    update: BranchUpdate,
    known: JudgedCommits,
    asked: Callable[[], CheckOptions],
    is_fetch: Callable[[], bool],
    scoped_commits: Callable[[BranchUpdate, Sequence[str]], ScopedCommits | None] = lambda update, fresh: (
        None
    ),
) -> Report:
    """Judge what one update of a branch adds.

    Args:
        repository: where it happens.
        update: the branch and its values.
        known: what needs no check.
        asked: returns the options; called only where there is something to judge.
        is_fetch: returns whether a fetch is running; called only where a branch is created.
        scoped_commits: returns which of the commits without a receipt are made here under an intent.

    Raises:
        PatchgateError: it could not be read.
    """
    if had_value(repository, update):
        return Report(())
    brought = find_new_commits(repository, update, known.settled, known.arriving)
    if update.old is None and brought.own and is_fetch():
        brought = attribute_to_fetch(repository, update, brought)
    report = judge_without_receipt(
        repository, brought.own, known, asked, update.old, lambda fresh: scoped_commits(update, fresh)
    )
    for _, with_landing in feature_functions("with_landing"):
        report = with_landing(repository, update, len(brought.own), report, asked)
    changes = tuple(_under(change, update.ref) for change in report.changes)
    warnings = [*report.warnings]
    if brought.upstream:
        warnings += _upstream_note(repository, brought.upstream, known, asked)
    if brought.fetched:
        branch = update.ref.removeprefix("refs/heads/")
        name = printable(branch)
        warnings.append(
            f"{name} brings {count(len(brought.fetched), 'commit')} by a fetch, not judged "
            f"({_names(brought.fetched)}): git patchgate check {in_shell(f'HEAD..{branch}', 'BRANCH')}"
        )
    return Report(changes, tuple(warnings))


def judge_without_receipt(
    repository: Repository,
    commits: Sequence[Commit],
    known: JudgedCommits,
    asked: Callable[[], CheckOptions],
    over: str | None,
    scoped_commits: Callable[[Sequence[str]], ScopedCommits | None] = lambda fresh: None,
) -> Report:
    """Judge those commits of a list that have no receipt.

    Args:
        repository: where they are.
        commits: parents first.
        known: what needs no check.
        asked: returns the options.
        over: the commit that they come on top of; where nothing before a commit had a policy, this one's
            counts, and a receipt from before does not.
        scoped_commits: returns which of those without a receipt are made here under an intent.
    """
    fresh = {commit.oid for commit in commits if not known.receipts.has(commit.oid)}
    unanswered = [commit.oid for commit in commits if commit.oid in fresh]
    if over is not None and len(fresh) < len(commits):
        fresh |= _under_no_policy(repository, commits, over)
    judged = [commit for commit in commits if commit.oid in fresh]
    if not judged:
        return Report(())
    terms = asked()
    firsts = _firsts(repository, judged, over, terms)
    terms = replace(terms, fallback=over, firsts=firsts, scoped_commits=scoped_commits(unanswered))
    return judge_commits(repository, require_parents(repository, judged), terms)


def _firsts(
    repository: Repository, commits: Sequence[Commit], over: str | None, asked: CheckOptions
) -> frozenset[str]:
    """Find the root commits that are the first of the repository, also an amended one."""
    roots = [commit for commit in commits if not commit.parents]
    if not roots:
        return frozenset()
    from patchgate.git.revisions import FirstCommit

    with Objects(repository) as objects:
        first = FirstCommit(repository, over, history_root(objects, asked))
    firsts = [each.oid for each in roots if first.matches(each.oid, each.tree)]
    # Of several that come at once only one can be.
    return frozenset(firsts[:1])


def _under_no_policy(repository: Repository, commits: Sequence[Commit], over: str) -> set[str]:
    """Find the commits before which there was no policy, where there is one now."""
    with Objects(repository) as objects:
        policies = TreePolicies(objects)

        def is_absent(commit: str) -> bool:
            header = objects.header(commit + "^{tree}")
            return header is None or policies.at(policies.key(header.oid)).is_absent

        if is_absent(over):
            return set()
        known = cache(is_absent)
        return {commit.oid for commit in commits if all(known(parent) for parent in commit.parents)}


def _under(change: ChangeVerdict, ref: str) -> ChangeVerdict:
    return replace(change, source=replace(change.source, ref=ref))


def _names(commits: Sequence[Commit]) -> str:
    """Name the last commits of a list."""
    return first_of(commits[::-1], _NAMED, lambda commit: commit.oid[:SHORT_OID])


def _upstream_note(
    repository: Repository, commits: Sequence[Commit], known: JudgedCommits, asked: Callable[[], CheckOptions]
) -> list[str]:
    """Name the commits of a remote that break the policy here; the user need not fix them."""
    looked_at = [
        commit
        for commit in commits[-_UPSTREAM_LOOKED_AT:]
        if commit.oid not in repository.shallow and not known.receipts.has(commit.oid)
    ]
    if not looked_at:
        return []
    try:
        report = judge_commits(repository, looked_at, asked())
    except PatchgateError as error:
        # What is only reported never stops git: in a partial clone objects are missing.
        return [f"{count(len(looked_at), 'commit')} of a remote could not be judged here: {error.message}"]
    bad = [change for change in report.changes if change.verdict is not Verdict.ACCEPTED]
    if not bad:
        return []
    rules = sorted(
        {finding.rule for change in bad for finding in change.findings if finding.level == "error"}
    )
    named = first_of(bad, _NAMED, lambda change: str(change.source.commit)[:12])
    said = f"{count(len(bad), 'commit')} of a remote would not be accepted here"
    return [f"{said} ({named}: {', '.join(rules) or 'undecided'}); you need not fix them"]
