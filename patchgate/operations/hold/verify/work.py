"""What is one piece of work, and what is somebody else's: commits, files, what was dirty before.

Decides which commits since the intent began are its own (they carry its trailer, or the ledger saw them made
under it), which files those and what is staged touch, and which of them are control files. Of a merge only
what it did itself counts: what it brings in belongs to whoever made that. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from patchgate.change.model import FileChange
from patchgate.change.path import RepoPath
from patchgate.declared.intent import Intent
from patchgate.git.diff import Detail
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.operations.judge.intents import controls_of, made_by
from patchgate.verdict.verification import ExternalCommit


@dataclass(frozen=True, slots=True)
class Work:
    """What an intent's own commits touch, with what is staged; `external` are the others in the range."""

    touched: frozenset[RepoPath]
    controls: frozenset[RepoPath]
    external: tuple[ExternalCommit, ...] = ()


def work_of(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    intent: Intent,
    tip: str | None,
    *,
    with_staged: bool,
) -> Work:
    """Find out what is the intent's own, from the commit that it began on up to `tip`.

    Args:
        objects: reads through `store`.
        tip: a commit; None where the branch has none yet.
        with_staged: whether what is staged now belongs to it too.

    Raises:
        UndecidedError: the history or the index cannot be read.
    """
    touched: set[RepoPath] = set()
    controls: set[RepoPath] = set()
    external: list[ExternalCommit] = []
    if tip is not None and tip != intent.base:
        external = _committed(repository, intent, tip, touched, controls)
    if with_staged:
        before, after, paths = _staged(repository, objects, store)
        touched.update(paths)
        controls.update(controls_of(objects, before, after, paths))
    return Work(frozenset(touched), frozenset(controls), tuple(external))


def _committed(
    repository: Repository, intent: Intent, tip: str, touched: set[RepoPath], controls: set[RepoPath]
) -> list[ExternalCommit]:
    from patchgate.git.history import Commit, Walk
    from patchgate.git.intent_commits import commits_with_ids
    from patchgate.git.pushes import is_ancestor

    listed = commits_with_ids(repository, tip, intent.base)
    made = made_by(repository, intent.id) if listed else frozenset()
    own = [each for each in listed if intent.id in each.ids or each.oid in made]
    if own:
        is_rewritten = intent.base is not None and not is_ancestor(repository, intent.base, tip)
        commits = [Commit(each.oid, each.tree, each.parents, True) for each in own]
        with Walk(repository, commits) as walk:
            for commit, reading in walk.read(commits, Detail()):
                files: Sequence[FileChange] = reading.change.files
                if is_rewritten:
                    # Of a commit that was there before, and was amended, only what is new in it.
                    files = [
                        each for each in files if walk.objects.entry(intent.tree, each.path.raw) != each.new
                    ]
                paths = [file.path for file in files]
                touched.update(paths)
                controls.update(controls_of(walk.objects, walk.base_of(commit), commit.tree, paths))
    mine = {each.oid for each in own}
    return [ExternalCommit(each.oid, each.subject) for each in listed if each.oid not in mine]


def staged_paths(repository: Repository, objects: Objects, store: PrivateStore) -> tuple[RepoPath, ...]:
    """Name the files that differ between HEAD and what is staged; in a merge, what it did itself."""
    return tuple(_staged(repository, objects, store)[2])


def _staged(
    repository: Repository, objects: Objects, store: PrivateStore
) -> tuple[str, str, Sequence[RepoPath]]:
    from patchgate.git.sources import pending_base, staged

    reading = staged(repository, objects, pending_base(repository, objects, store), Detail())
    return reading.change.base, reading.change.after, [file.path for file in reading.change.files]


def still_dirty(objects: Objects, intent: Intent, tree: str) -> tuple[RepoPath, ...]:
    """Name the files that were changed before the intent began, and are in a tree just as they were then.

    What a tree still has as the intent's own base has it was never committed, so it is none of them.
    """
    found = []
    for path, oid in sorted(intent.dirty.items()):
        now, base = (objects.entry(each, path.raw) for each in (tree, intent.tree))
        is_as_then = (None if now is None else now.oid) == oid
        if is_as_then and now != base:
            found.append(path)
    return tuple(found)
