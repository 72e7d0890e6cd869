"""Attribute changes to an intent or to others: commits, files, what was dirty before.

Commits belong to the intent by the ledger, the reflog of its worktree, or an undisputed trailer; of a merge
only its own changes count. If the base commit of the intent is gone (amended, reset, rebased), every
difference from it counts too, except files that other commits touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchgate.check.judging_policy import controls_of
from patchgate.check.pending import pending_change
from patchgate.git.change_sources import merge_heads
from patchgate.git.commit_lists import Commit, commits_not_in
from patchgate.git.diff import Detail
from patchgate.git.history import Walk
from patchgate.git.intent_commits import IntentCommit, commits_with_ids, replays
from patchgate.git.model import FileChange
from patchgate.git.new_commits import BranchUpdate
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.pushes import is_ancestor
from patchgate.git.refs import commits_made_in
from patchgate.git.repository import Repository
from patchgate.git.trees import resulting_tree
from patchgate.intents.intent import Intent
from patchgate.intents.intent_commits import recorded_intents
from patchgate.intents.stored_intents import StoredIntents, is_foreign
from patchgate.values import dataclass
from patchgate.verify.analyze import AnalysedTree, AnalysisContext
from patchgate.verify.verification_result import ExternalCommit


@dataclass(frozen=True, slots=True)
class IntentChanges:
    """What the commits of an intent touch, with what is staged; `external` are the other commits.

    `copied` are the external commits that have its trailer.
    `is_rewritten`: the base commit of the intent is not in the verified history.
    """

    touched: frozenset[RepoPath]
    controls: frozenset[RepoPath]
    external: tuple[ExternalCommit, ...] = ()
    copied: tuple[ExternalCommit, ...] = ()
    is_rewritten: bool = False


def attribute_changes(
    context: AnalysisContext, intent: Intent, after: AnalysedTree, *, with_staged: bool
) -> IntentChanges:
    """Find the changes of an intent, from its base commit to what is verified.

    Args:
        after: a commit, or what is staged on top of one (None: the branch has no commit yet).
        with_staged: whether what is staged belongs to it too.

    Raises:
        UndecidedError: the history or the index cannot be read.
    """
    repository, objects = context.repository, context.objects
    touched: set[RepoPath] = set()
    controls: set[RepoPath] = set()

    def touch(before: str, result: str, paths: Sequence[RepoPath], reader: Objects = objects) -> None:
        touched.update(paths)
        controls.update(controls_of(reader, before, result, paths))

    is_rewritten = _is_rewritten(repository, intent, after.commit)
    own, others = _split_commits(repository, intent, after.commit, with_staged=with_staged)
    for files, base, tree, reader in _read_commits(repository, own):
        # Of an amended older commit only the new part counts.
        mine = [
            file.path
            for file in files
            if not is_rewritten or reader.entry(intent.tree, file.path.raw) != file.new
        ]
        touch(base, tree, mine, reader)
    if with_staged:
        change = pending_change(repository, objects, context.store)
        touch(change.base, change.after, [file.path for file in change.files])
    if is_rewritten:
        theirs = {file.path for files, *_ in _read_commits(repository, others) for file in files}
        left = [path for path in changed_paths(context, intent.tree, after.tree) if path not in theirs]
        touch(intent.tree, after.tree, left)
    external = tuple(ExternalCommit(each.oid, each.subject) for each in others)
    named = {each.oid for each in others if intent.id in each.ids}
    copied = tuple(each for each in external if each.oid in named)
    return IntentChanges(frozenset(touched), frozenset(controls), external, copied, is_rewritten)


def _is_rewritten(repository: Repository, intent: Intent, tip: str | None) -> bool:
    """Check whether the base commit of an intent is no longer in the history."""
    if intent.base is None or tip == intent.base:
        return False
    return tip is None or not is_ancestor(repository, intent.base, tip)


def _split_commits(
    repository: Repository, intent: Intent, tip: str | None, *, with_staged: bool
) -> tuple[list[IntentCommit], list[IntentCommit]]:
    """List the commits since an intent began: its own, and the others.

    The commits of a pending merge are included.
    """
    tips = [] if tip is None or tip == intent.base else [tip]
    tips += merge_heads(repository) if with_staged else []
    if not tips:
        return [], []
    listed = commits_with_ids(repository, tips, _base(intent))
    mine = _own_commits(repository, intent, tip, listed) if listed else frozenset()
    return [each for each in listed if each.oid in mine], [each for each in listed if each.oid not in mine]


def _base(intent: Intent) -> list[str]:
    return [] if intent.base is None else [intent.base]


def _own_commits(
    repository: Repository, intent: Intent, tip: str | None, listed: Sequence[IntentCommit]
) -> frozenset[str]:
    """Return the commits of an intent.

    These are the commits that the ledger recorded under it. Of those that it recorded under none: the commits
    in the reflog of the worktree since, and unpublished commits with the trailer of the intent.
    """
    makers = recorded_intents(repository)
    made = frozenset(each.oid for each in listed if intent.id in makers.get(each.oid, ()))
    rest = [each for each in listed if each.oid not in makers]
    shown = _in_reflog(repository, intent, rest) if rest else []
    named = [each.oid for each in rest if intent.id in each.ids and each.oid not in shown]
    unpublished = {each.oid for each in commits_not_in(repository, named, _base(intent), "--remotes")}
    return made | _without_replays(repository, intent, tip, shown, made) | unpublished.intersection(named)


def _in_reflog(repository: Repository, intent: Intent, among: Sequence[IntentCommit]) -> list[str]:
    """Return the commits in the reflog of the worktree since, except those that name another intent."""
    place = repository.git_dir if is_foreign(intent, repository) else intent.git_dir
    since = commits_made_in(place, intent.declared.wall)
    shown = [each for each in among if each.oid in since]
    if not shown:
        return []
    others = {each.id for each in StoredIntents(repository.common_dir).of(intent.git_dir)} - {intent.id}
    return [each.oid for each in shown if intent.id in each.ids or others.isdisjoint(each.ids)]


def _without_replays(
    repository: Repository, intent: Intent, tip: str | None, shown: Sequence[str], made: frozenset[str]
) -> frozenset[str]:
    """Remove commits that a rebase replayed from before the intent."""
    if not shown or tip is None:
        return frozenset(shown)
    replaced = replays(repository, BranchUpdate("", intent.base, tip), shown)
    return frozenset(oid for oid in shown if oid not in replaced or replaced[oid] in made)


def _read_commits(
    repository: Repository, commits: Sequence[IntentCommit]
) -> Iterator[tuple[Sequence[FileChange], str, str, Objects]]:
    """Yield the changes of commits: files, trees before and after, and the reader of these trees."""
    if not commits:
        return
    plain = [Commit(each.oid, each.tree, each.parents) for each in commits]
    with Walk(repository, plain) as walk:
        for commit, reading in walk.read(plain, Detail()):
            yield reading.change.files, walk.base_of(commit), commit.tree, walk.objects


def changed_paths(context: AnalysisContext, before: str, after: str) -> list[RepoPath]:
    """Return every file that differs between two trees, both sides of a rename."""
    flags = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
    raw = context.repository.output("diff-tree", *flags, before, after, variables=context.store.variables)
    return [RepoPath.from_git(name) for name in raw.split(b"\0") if name]


def still_dirty(objects: Objects, intent: Intent, tree: str) -> tuple[RepoPath, ...]:
    """Return the files that were changed before the intent began and are unchanged in a tree since.

    A file that is still as in the base of the intent was never committed, so it is not one of them.
    """
    found = []
    for path in sorted(intent.dirty):
        now, base = (objects.entry(each, path.raw) for each in (tree, intent.tree))
        if now != base and intent.is_as_before(path, None if now is None else now.oid):
            found.append(path)
    return tuple(found)


def tree_with_dirty_files(
    context: AnalysisContext, intent: Intent, dirty: Sequence[RepoPath], tree: str
) -> str:
    """Write the tree that an intent began on, with its files that were dirty before.

    Raises:
        UndecidedError: the files do not fit that tree.
    """
    entry = context.objects.entry
    files = [FileChange(path, entry(intent.tree, path.raw), entry(tree, path.raw)) for path in dirty]
    return resulting_tree(context.objects, intent.tree, files, context.store.write).tree
