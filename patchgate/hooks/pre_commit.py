"""pre-commit and pre-merge-commit: check what git is about to commit, and leave a pending receipt.

reference-transaction, which sees parent and commit, checks the rest: budgets and intents while commits are
replayed, and a change that restores a path as it was before HEAD (an amend looks like any commit here). For
those, and with an intent in this worktree, no receipt is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.check.hook_decision import HookDecision, decide
from patchgate.check.pending import check_pending, drop_pending, leave_merge, leave_pending, leave_quiet
from patchgate.check.policy_lookup import CheckOptions, trusted_options
from patchgate.check.ref_updates import JudgedCommits, judge_without_receipt
from patchgate.git.change_sources import merge_heads
from patchgate.git.commit_lists import commits_not_in
from patchgate.git.new_commits import commits_merged_in, current_branch
from patchgate.git.objects import Objects
from patchgate.git.operations import is_replaying
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.hooks.recovery_steps import forget_shown, recovery_of_commit, remember_shown
from patchgate.hooks.unchecked_commits import report_unchecked
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.ledger.ledger import Ledger
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, Json, Report, Verdict
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.check.change_commands import CommandOptions

_SCOPE = frozenset({"scope-unexpected", "scope-forbidden"})
_AT_THE_END = frozenset({"max-files", "max-added-lines"}) | _SCOPE
_BY_PATH = frozenset({"deny-prefix", "deny-pattern", "outside-allow-roots"}) | _SCOPE


def judge_commit(
    repository: Repository,
    hook: str,
    environ: Mapping[str, str],
    heads: Sequence[str] = (),
    *,
    leaves: bool = True,
    commands: Callable[[], CommandOptions] | None = None,
) -> HookDecision:
    """Check what is staged, and the commits that a merge brings.

    Args:
        hook: `pre-commit` or `pre-merge-commit`, for the ledger.
        environ: the environment of the hook.
        heads: the merged commits, if git names them in the environment only.
        leaves: whether the reference-transaction hook follows, which uses the pending receipt and checks the
            rest; under a framework it does not.
        commands: how the commands of the policy are run; called only if it has some for a commit.

    Raises:
        PatchgateError: it could not be read.
    """
    asked = replace(trusted_options(repository), environ=environ)
    drop_pending(repository)
    forget_shown(repository)
    branch = current_branch(repository)
    report = check_pending(repository, asked, heads=heads)
    (staged,) = report.changes
    is_merge = staged.source.kind == "merge"
    if is_merge:
        report = _with_merged(repository, report, heads, asked)
    elif leaves and staged.verdict is Verdict.REJECTED and _is_for_later(repository, staged):
        return HookDecision(Report((), report.warnings), stops=False)
    judged = decide(repository, hook, report, branch)
    if commands is not None and staged.policy.runs and not judged.stops:
        judged = _run_commands(repository, hook, judged, branch, commands(), heads, asked)
    report, stops = judged.report, judged.stops
    # Only the transaction sees which commits an intent binds. Read again: one may have been declared
    # while this was judged.
    here = ScopeGate(repository).here
    leaves_receipt = leaves and not (here is not None and here.has_any) and not staged.profile_reason
    if leaves_receipt and not staged.policy.judges_messages:
        leave_quiet(repository)
    warnings: tuple[str, ...] = ()
    if leaves_receipt and branch is not None and not stops:
        warnings += _leave(repository, report, heads, asked, branch)
    warnings += report_unchecked(repository, staged.source.base_commit, branch, lambda: asked)
    if leaves and not stops:
        # 8 ms to import: a refusal need not wait for them.
        from patchgate.hooks.fast.renewal import renew_at_head

        renew_at_head(repository)
    report = replace(report, warnings=(*report.warnings, *warnings))
    if leaves and not stops and (staged.policy.refuses_messages or _says_anything(report)):
        remember_shown(repository, report, begins=True)
    return HookDecision(
        replace(report, recovery=recovery_of_commit(repository, hook)) if stops else report, stops
    )


def _run_commands(
    repository: Repository,
    hook: str,
    judged: HookDecision,
    branch: str | None,
    options: CommandOptions,
    heads: Sequence[str],
    asked: CheckOptions,
) -> HookDecision:
    """Run the commands of a commit on the tree that it results in, after its gates have passed."""
    # Imported here: most policies have no commands.
    from patchgate.check.change_commands import run_on_staged, with_answers

    *others, staged = judged.report.changes
    found = run_on_staged(repository, options, asked, change=staged.change, heads=heads)
    if not found.answers:
        return judged
    report = replace(judged.report, changes=(*others, with_answers(staged, found.answers)))
    warnings = tuple(each for answer in found.answers for each in answer.warnings)
    report = replace(report, warnings=(*report.warnings, *warnings))
    if report.verdict is judged.report.verdict:
        return HookDecision(report, judged.stops)
    return decide(repository, hook, report, branch)


def _says_anything(report: Report) -> bool:
    return bool(report.warnings) or any(change.findings for change in report.changes)


def skip_commit(repository: Repository, hook: str, reason: str, *, is_alone: bool) -> tuple[str, ...]:
    """Skip the check of a commit; return warnings of the ledger.

    Args:
        is_alone: no reference-transaction hook follows to record the skip with its commit.
    """
    drop_pending(repository)
    if not is_alone:
        return ()
    branch = current_branch(repository)
    about: dict[str, Json] = {"hook": hook, "reason": reason, "ref": branch, "commits": []}
    warning = Ledger(repository.common_dir).record("skipped", about)
    return (warning,) if warning else ()


def record_skipped_commands(
    repository: Repository, hook: str, reason: str, names: Sequence[str]
) -> tuple[str, ...]:
    """Record which commands a commit skipped, so that the push runs them; return warnings of the ledger."""
    branch = current_branch(repository)
    about: dict[str, Json] = {
        "hook": hook,
        "reason": reason,
        "ref": branch,
        "commits": [],
        "commands": list(names),
    }
    from patchgate.check.push_commands import add_skipped

    warning = Ledger(repository.common_dir).record("skipped", about)
    return tuple(filter(None, (warning, add_skipped(repository.common_dir, names))))


def _with_merged(repository: Repository, report: Report, heads: Sequence[str], asked: CheckOptions) -> Report:
    known = JudgedCommits.at(repository)
    commits = commits_merged_in(repository, [*heads, *merge_heads(repository)], known.settled)
    merged = judge_without_receipt(repository, commits, known, lambda: asked, "HEAD")
    return replace(report, changes=(*merged.changes, *report.changes))


def _is_for_later(repository: Repository, staged: ChangeVerdict) -> bool:
    """Whether the reference-transaction hook decides about everything that was refused."""
    errors = [finding for finding in staged.findings if finding.level is Level.ERROR]
    left = (
        [finding for finding in errors if finding.rule not in _AT_THE_END]
        if is_replaying(repository)
        else errors
    )
    if not left:
        return True
    return all(finding.rule in _BY_PATH for finding in left) and _takes_back(repository, staged, left)


def _takes_back(repository: Repository, staged: ChangeVerdict, findings: Sequence[Finding]) -> bool:
    """Whether everything refused restores a path as it was before HEAD, which an amend may do."""
    becomes = {file.path: file.new for file in staged.change.files}
    with Objects(repository) as objects:
        before = objects.header("HEAD^1^{tree}")
        tree = objects.empty_tree if before is None else before.oid
        paths = [finding.path for finding in findings]
        return all(
            path is not None and path in becomes and objects.entry(tree, path.raw) == becomes[path]
            for path in paths
        )


def _leave_merge(
    repository: Repository, report: Report, heads: Sequence[str], asked: CheckOptions, branch: str
) -> None:
    """Leave the pending receipt of a merge, if the transaction has nothing else to judge or to report.

    It judges what the merge itself changes, reports commits of a remote, gives receipts to commits that have
    none, and compares components.
    """
    staged = report.changes[-1]
    other = [*heads] or merge_heads(repository)
    head = staged.source.base_commit
    if head is None or len(other) != 1 or len(report.changes) > 1 or staged.change.files:
        return
    if report.verdict is not Verdict.ACCEPTED or _says_anything(report):
        return
    if staged.policy.refuses_messages or asked.policy_from is not None:
        return
    known = JudgedCommits.at(repository)
    brought = commits_not_in(repository, other, [head, *known.settled])
    if not all(known.receipts.has(commit.oid) for commit in brought):
        return
    with Objects(repository) as objects:
        policies = TreePolicies(objects)
        for commit in (head, *other):
            tree = objects.header(commit + "^{tree}")
            found = None if tree is None else policies.at(policies.key(tree.oid))
            if found is None or found.fault is not None or (found.policy and found.policy.config.components):
                return
    leave_merge(repository, staged.change, head, branch, other[0])


def _leave(
    repository: Repository, report: Report, heads: Sequence[str], asked: CheckOptions, branch: str
) -> tuple[str, ...]:
    change = report.changes[-1]
    if change.source.kind == "merge":
        _leave_merge(repository, report, heads, asked, branch)
        return ()
    status = "accepted" if report.verdict is Verdict.ACCEPTED else "told"
    if change.policy.refuses_messages:
        # The message is not written yet, and `commit -n` would bypass commit-msg.
        return ()
    policy = ("-", "-")
    if asked.policy_from is not None:
        # The origin is REF:FILE; FILE was read from the object that REF pointed to.
        file = change.policy.origin.removeprefix(f"{asked.place}:")
        naming = ("rev-parse", "--quiet", "--verify", f"{asked.policy_from}:{file}")
        blob = repository.git(*naming, answers=ANY_CODE)
        if blob.code != 0:
            return ()
        policy = (change.policy.origin, blob.out.decode("ascii").strip())
    head = change.source.base_commit or repository.zero_oid
    warning = leave_pending(repository, change.change, status=status, head=head, branch=branch, policy=policy)
    return (warning,) if warning else ()
