"""Verify: did quality drop, and did this change cause it?

Compares with the tree that an intent began on; without an intent, with the merge base with `--base`, HEAD or
the first parent. The analyses and limits are those of the policy before the change. Only the runs of the
analyses and the digest of the before-report of an intent are stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.check.judging_policy import controls_of
from patchgate.commands.analysis_results import AnalysisComparison, AnalysisOutcome, TreeRuns
from patchgate.errors import DamagedIntentError, UndecidedError, UsageError
from patchgate.git.file_history import find_renames
from patchgate.git.model import TREE_MODE
from patchgate.git.path import RepoPath
from patchgate.git.pushes import common_ancestor
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.git.tree_view import TreeView
from patchgate.intents.intent import Intent
from patchgate.intents.intent_status import hooks_missing
from patchgate.intents.scope import check_scope
from patchgate.intents.stored_intents import current_moment
from patchgate.intents.worktree_intents import baselines_in_scope
from patchgate.report.wording import SHORT_OID, safe
from patchgate.values import replace
from patchgate.verify.analysis_runner import AnalysisEnvironment
from patchgate.verify.analyze import (
    REVISION,
    STAGED,
    WORKTREE,
    AnalysedTree,
    AnalysisContext,
    VerifyOptions,
    analysis_policy,
    keep_intents_alive,
    open_context,
)
from patchgate.verify.attribution import attribute_changes, changed_paths, still_dirty, tree_with_dirty_files
from patchgate.verify.checked_intent import (
    check_validity,
    choose_intent,
    describe_unused_intent,
    predates_intent,
    record_before_report,
)
from patchgate.verify.regressions import compare
from patchgate.verify.suppression_abuse import has_functional_code, has_grown
from patchgate.verify.verification_reasons import VerificationReason
from patchgate.verify.verification_result import ExternalCommit, VerificationResult
from patchgate.verify.verification_verdict import VerificationInputs, damaged_intent, decide

_MOST_SHOWN = 60
_MOST_NAMED = 5
_CUT_OFF = (
    "this clone is shallow and has no common ancestor: the comparison is with --base itself; "
    "run git fetch --unshallow to find the merge base"
)


def verify(
    repository: Repository, asked: VerifyOptions, environment: AnalysisEnvironment
) -> VerificationResult:
    """Verify what is staged, or a commit.

    Args:
        environment: what only the command line knows; its progress callback is called about once a second.

    Raises:
        UsageError: the options contradict each other or name nothing; no analysis is declared.
        UndecidedError: the repository, an intent or a scratch tree cannot be read.
    """
    if asked.base is not None and asked.intent is not None:
        raise UsageError(
            "--base and --intent cannot be used together", "an intent has its own base: remove one of them"
        )
    if asked.revision == STAGED:
        asked = replace(asked, revision=None)
    if asked.revision == WORKTREE:
        raise UsageError(
            "verify checks what is staged, or a commit", "git add your changes, then git patchgate verify"
        )
    # Under an intent the scope is reported even if no analysis is declared.
    with open_context(repository, environment) as context:
        after = context.find_tree(asked.revision or STAGED, f"{REVISION}, or {STAGED}")
        if asked.base is not None:
            return _verify_since(context, asked.base, after)
        if asked.revision is not None and after.commit is None:
            # A tree without a commit has no history, so its scope is unknown.
            raise UsageError(
                f"{after.tree[:SHORT_OID]} is a tree, which has no parent",
                "name a commit" if asked.intent else "name a commit, or give --base REV",
            )
        try:
            intent = choose_intent(context, asked, after)
        except DamagedIntentError as error:
            return damaged_intent(error)
        warnings: tuple[str, ...] = ()
        if intent is not None:
            if asked.revision is None or not predates_intent(context, intent, after):
                found = verify_against_intent(context, intent, after, with_staged=asked.revision is None)
                return replace(found, warnings=(*found.warnings, *_missing_hooks(context, intent)))
            warnings = (describe_unused_intent(asked, intent, after),)
        before = head_of(context, after) if asked.revision is None else first_parent(context, after)
        policy = analysis_policy(context.objects, before)
        return compare_trees(replace(context, policy=policy), before, after, warnings)


def _missing_hooks(context: AnalysisContext, intent: Intent) -> tuple[str, ...]:
    """Warn if no hook checks the commits of this worktree against its intent."""
    if intent.git_dir != context.repository.git_dir:
        return ()
    return tuple(
        f"{intent.id}: {each}" for each in hooks_missing(context.repository, context.environment.environ)
    )


def _verify_since(context: AnalysisContext, name: str, after: AnalysedTree) -> VerificationResult:
    """Compare with the merge base of a revision, by the analyses and limits of that revision.

    Like `git diff A...B` (git-diff): later commits of the revision do not matter. Without a common ancestor,
    the comparison is with the revision itself.

    Raises:
        UsageError: there is no such revision.
        UndecidedError: git failed.
    """
    if name in {STAGED, WORKTREE}:
        raise UsageError(f"unknown revision {name} for --base", f"name {REVISION}")
    base = context.find_tree(name, REVISION)
    before = base
    warnings: tuple[str, ...] = ()
    if base.commit is not None and after.commit is not None:
        common = common_ancestor(context.repository, base.commit, after.commit)
        if common is not None:
            before = context.find_tree(common)
        elif context.repository.shallow:
            warnings = (_CUT_OFF,)
    context = replace(context, policy=analysis_policy(context.objects, base))
    return replace(compare_trees(context, before, after, warnings), base=before.commit)


def head_of(context: AnalysisContext, after: AnalysedTree) -> AnalysedTree:
    """Return the tree below what is staged: that of HEAD, or the empty tree without a commit."""
    if after.commit is None:
        return AnalysedTree(context.objects.empty_tree, None)
    return context.find_tree(after.commit)


def first_parent(context: AnalysisContext, after: AnalysedTree) -> AnalysedTree:
    """Return the tree below a commit: that of its first parent, or the empty tree for a root commit.

    Raises:
        UndecidedError: its parents are missing in this shallow clone.
    """
    assert after.commit is not None
    if after.commit in context.repository.shallow:
        raise UndecidedError(
            f"the parents of {after.commit[:SHORT_OID]} are missing: this clone is shallow",
            "git fetch --deepen=50, or choose what to compare with: --base REV",
        )
    if context.objects.header(after.commit + "^1") is None:
        return AnalysedTree(context.objects.empty_tree, None)
    return context.find_tree(after.commit + "^1")


def compare_trees(
    context: AnalysisContext, before: AnalysedTree, after: AnalysedTree, warnings: tuple[str, ...] = ()
) -> VerificationResult:
    """Compare two trees without an intent: everything that got worse counts for the change."""
    sides = context.runs(before), context.runs(after)
    return decide(replace(_gather_inputs(context, before, after, sides), warnings=warnings))


def verify_against_intent(
    context: AnalysisContext, intent: Intent, after: AnalysedTree, *, with_staged: bool
) -> VerificationResult:
    """Compare a tree with the start of an intent, and check the work against its declaration.

    Args:
        with_staged: `after` is what is staged, which belongs to the work like its commits.

    Raises:
        UndecidedError: the history cannot be read.
    """
    repository = context.repository
    context = replace(context, environment=keep_intents_alive(repository, [intent], context.environment))
    if context.objects.header(intent.tree + "^{tree}") is None:
        raise UndecidedError(
            f"the tree that {printable(intent.id, _MOST_SHOWN)} began on is missing",
            f"git patchgate intent clear {intent.id}, then declare it again",
        )
    work = attribute_changes(context, intent, after, with_staged=with_staged)
    dirty = still_dirty(context.objects, intent, after.tree)
    before = AnalysedTree(intent.tree, intent.base)
    unnamed = _no_analysis(context)
    sides = (None, None) if unnamed else (context.runs(before), context.runs(after))
    # The current time: the analyses may have taken longer than the remaining time.
    standing = check_validity(repository, intent, context.policy, current_moment(), sides[0])
    warnings: tuple[str, ...] = ()
    if sides[0] is not None and not (standing.faults or standing.unverified):
        warnings = record_before_report(repository, intent, sides[0])
    along = baselines_in_scope(
        intent.scope, context.policy.components, work.touched, TreeView(context.objects, after.tree)
    )
    inputs = replace(
        _gather_inputs(context, before, after, sides),
        intent=intent,
        faults=standing.faults,
        unverified=(*unnamed, *standing.unverified),
        scope=check_scope(intent.scope, work.touched, work.controls, frozenset(dirty), along=along),
        external_commits=work.external,
        dirty=dirty,
    )
    if not (standing.faults or standing.unverified):
        inputs, unknown = _compare_with_start(context, inputs, intent)
        warnings = (*warnings, *unknown)
    inputs = replace(
        inputs,
        warnings=(
            *(_not_descended(intent, after) if work.is_rewritten else ()),
            *(_copied_trailers(intent, work.copied) if work.copied else ()),
            *warnings,
        ),
    )
    return decide(inputs)


def _compare_with_start(
    context: AnalysisContext, inputs: VerificationInputs, intent: Intent
) -> tuple[VerificationInputs, tuple[str, ...]]:
    """Find what is new since the declaration, if there are findings in files that were dirty before.

    Returns:
        The inputs, and a warning if that is unknown: then all findings there count for the work.
    """
    compared, after = inputs.comparison, inputs.after
    if compared is None or after is None or not after.is_evaluated:
        return inputs, ()
    named = {path for each in compared.new for path in each.paths} | {each.path for each in compared.worsened}
    if not any(path in named and intent.scope.covers(path) for path in inputs.dirty):
        return inputs, ()
    why: str | None = None
    try:
        tree = tree_with_dirty_files(context, intent, inputs.dirty, after.tree)
        begun = context.runs(AnalysedTree(tree, intent.base))
        if begun.is_evaluated:
            return replace(inputs, since=_comparison(context, begun, after)), ()
        why = next(run.reason for run in begun.runs.values() if run.outcome is AnalysisOutcome.NOT_EVALUATED)
    except UndecidedError as error:
        why = error.message
    what = f"it is unknown what was found before in the files that were changed before {intent.id} began"
    return inputs, (f"{what}, so all findings there count as new: {safe(why or 'the analyses failed')}",)


def _no_analysis(context: AnalysisContext) -> tuple[VerificationReason, ...]:
    """Return the reason if the policy declares no analysis."""
    if context.policy.config.analyses:
        return ()
    try:
        analysis_policy(context.objects)
    except UsageError as error:
        return (VerificationReason(error.message, error.hint or ""),)
    return ()


def _copied_trailers(intent: Intent, commits: Sequence[ExternalCommit]) -> tuple[str, ...]:
    """Warn about commits that have the trailer of an intent but do not belong to it."""
    shown = first_of(commits, _MOST_NAMED, lambda each: each.oid[:SHORT_OID])
    why = "made elsewhere or under another intent, and do not count as its work"
    return (f"these commits have the trailer of {intent.id}, but were {why}: {shown}",)


def _not_descended(intent: Intent, after: AnalysedTree) -> tuple[str, ...]:
    """Warn that the verified commit is not based on the start of the intent."""
    tip = "this branch" if after.commit is None else after.commit[:SHORT_OID]
    said = f"{tip} does not contain {str(intent.base)[:SHORT_OID]}, where {intent.id} began"
    return (f"{said}: every difference counts as its work, except files that other commits touch",)


def _comparison(context: AnalysisContext, before: TreeRuns, after: TreeRuns) -> AnalysisComparison:
    moved = find_renames(context.repository, before.tree, after.tree, context.store.variables)
    return compare(before, after, context.policy.config.thresholds, moved)


def _gather_inputs(
    context: AnalysisContext,
    before: AnalysedTree,
    after: AnalysedTree,
    sides: tuple[TreeRuns, TreeRuns] | tuple[None, None],
) -> VerificationInputs:
    """Gather the inputs of both kinds of verification."""
    settings = context.policy.config.verify
    comparison = None if sides[0] is None else _comparison(context, *sides)
    suppressed = comparison is not None and bool(comparison.suppressed)
    listed = tuple(
        RepoPath.from_git(name.encode("utf-8", "surrogateescape")) for name in settings.suppressions
    )
    entry = context.objects.entry
    changed = tuple(path for path in listed if entry(before.tree, path.raw) != entry(after.tree, path.raw))
    more = tuple(path for path in changed if _has_grown(context, path, before.tree, after.tree))
    has_code = bool(more or suppressed) and _touches_code(context, before.tree, after.tree, frozenset(listed))
    return VerificationInputs(
        before=sides[0],
        after=sides[1],
        comparison=comparison,
        same_tree=before.tree == after.tree,
        changed=changed,
        grown=more,
        has_code=has_code,
        strictness=settings.strictness,
        preexisting=settings.preexisting,
    )


def _has_grown(context: AnalysisContext, path: RepoPath, before: str, after: str) -> bool:
    old, new = (context.objects.entry(tree, path.raw) for tree in (before, after))
    if (new is not None and not new.is_file) or _is_behind_a_link(context, path, after):
        # A symlink, a folder, a submodule: what a tool reads there is unknown.
        return True
    was, now = (context.objects.read(each.oid) if each and each.is_file else None for each in (old, new))
    return has_grown(was, now)


def _is_behind_a_link(context: AnalysisContext, path: RepoPath, tree: str) -> bool:
    """Check whether a parent of a path is not a folder."""
    above = (context.objects.entry(tree, folder) for folder in path.parents() if folder)
    return any(entry is not None and entry.mode != TREE_MODE for entry in above)


def _touches_code(context: AnalysisContext, before: str, after: str, baselines: frozenset[RepoPath]) -> bool:
    touched = changed_paths(context, before, after)
    controls = controls_of(context.objects, before, after, touched)
    return has_functional_code(touched, baselines, controls)
