"""What is one piece of work, and what is somebody else's: commits, files, what was dirty before.

Its own are the commits that the ledger, the reflog of its worktree, or a trailer against which nothing speaks
shows as such; of a merge only what it did itself. Where the commit that the intent began on is gone (amended,
reset, rebased), whatever differs from there is the work's too, but for what other commits touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchgate.check.judging_policy import controls_of
from patchgate.check.pending import pending_change
from patchgate.git.change_sources import merge_heads
from patchgate.git.diff import Detail
from patchgate.git.history import Commit, Walk, commits_not_in
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
from patchgate.verify.analyze import AnalysedTree, AnalysisContext
from patchgate.verify.verification_result import ExternalCommit


@dataclass(frozen=True, slots=True)
class IntentChanges:
    """What an intent's own commits touch, with what is staged; `external` are the others in the range.

    `copied` are those of the others that carry its trailer all the same.
    `is_rewritten`: the commit that the intent began on is no part of the history that is looked at.
    """

    touched: frozenset[RepoPath]
    controls: frozenset[RepoPath]
    external: tuple[ExternalCommit, ...] = ()
    copied: tuple[ExternalCommit, ...] = ()
    is_rewritten: bool = False


def attribute_changes(
    context: AnalysisContext, intent: Intent, after: AnalysedTree, *, with_staged: bool
) -> IntentChanges:
    """Find out what is the intent's own, from the commit that it began on up to what is verified.

    Args:
        after: a commit, or what is staged on top of one (None: the branch has none yet).
        with_staged: whether what is staged now belongs to it too.

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
        # Of a commit that was there before, and was amended, only what is new in it.
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
    """Tell whether what an intent began on is no part of a history any more."""
    if intent.base is None or tip == intent.base:
        return False
    return tip is None or not is_ancestor(repository, intent.base, tip)


def _split_commits(
    repository: Repository, intent: Intent, tip: str | None, *, with_staged: bool
) -> tuple[list[IntentCommit], list[IntentCommit]]:
    """List the commits since an intent began: its own, and the others.

    Those that a merge is about to bring belong to the range as they will when it is committed.
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
    """Name the commits that are an intent's own.

    Those that the ledger saw made under it; of those that it saw made under none, what the reflog of the
    worktree shows as made there since, and what names the intent in its trailer and no remote has.
    """
    makers = recorded_intents(repository)
    made = frozenset(each.oid for each in listed if intent.id in makers.get(each.oid, ()))
    rest = [each for each in listed if each.oid not in makers]
    shown = _in_reflog(repository, intent, rest) if rest else []
    named = [each.oid for each in rest if intent.id in each.ids and each.oid not in shown]
    unpublished = {each.oid for each in commits_not_in(repository, named, _base(intent), "--remotes")}
    return made | _without_replays(repository, intent, tip, shown, made) | unpublished.intersection(named)


def _in_reflog(repository: Repository, intent: Intent, among: Sequence[IntentCommit]) -> list[str]:
    """Name what the reflog of the worktree shows as made since, but for what names another of its intents."""
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
    """Leave out what a rebase made anew of a commit from before the intent."""
    if not shown or tip is None:
        return frozenset(shown)
    replaced = replays(repository, BranchUpdate("", intent.base, tip), shown)
    return frozenset(oid for oid in shown if oid not in replaced or replaced[oid] in made)


def _read_commits(
    repository: Repository, commits: Sequence[IntentCommit]
) -> Iterator[tuple[Sequence[FileChange], str, str, Objects]]:
    """Read what commits changed themselves: the files, the trees before and after, and who reads those."""
    if not commits:
        return
    plain = [Commit(each.oid, each.tree, each.parents, True) for each in commits]
    with Walk(repository, plain) as walk:
        for commit, reading in walk.read(plain, Detail()):
            yield reading.change.files, walk.base_of(commit), commit.tree, walk.objects


def changed_paths(context: AnalysisContext, before: str, after: str) -> list[RepoPath]:
    """Name every file that differs between two trees, both sides of a rename."""
    flags = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
    raw = context.repository.output("diff-tree", *flags, before, after, variables=context.store.variables)
    return [RepoPath.from_git(name) for name in raw.split(b"\0") if name]


def still_dirty(objects: Objects, intent: Intent, tree: str) -> tuple[RepoPath, ...]:
    """Name the files that were changed before the intent began, and are in a tree just as they were then.

    What a tree still has as the intent's own base has it was never committed, so it is none of them.
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
    """Make the tree that an intent began on, with files in it that were changed before and are so in a tree.

    Raises:
        UndecidedError: the files do not fit that tree.
    """
    entry = context.objects.entry
    files = [FileChange(path, entry(intent.tree, path.raw), entry(tree, path.raw)) for path in dirty]
    return resulting_tree(context.objects, intent.tree, files, context.store.write).tree
