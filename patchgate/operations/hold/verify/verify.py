"""Verify: did it get worse, and was it this piece of work?

Decides what is compared with what (with an intent the tree that it began on; without one `--base`, HEAD or
the first parent), gathers what the answer follows from, and puts it to `gates.verification`, which decides.
The analyses and limits are those of the policy that was there before, never those of what is verified. Only
the runs of the analyses, and the digest of an intent's before-report, are kept; nothing else is written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchgate.change.path import RepoPath
from patchgate.change.quoting import printable
from patchgate.declared.policy import Policy
from patchgate.errors import UndecidedError, UsageError
from patchgate.gates.verification import Question, decide
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.operations.hold.verify.analyses import Around, runs_of
from patchgate.operations.hold.verify.content import STAGED, WORKTREE, Analysed, analysis_policy, source_of
from patchgate.operations.judge.intents import active_here
from patchgate.verdict.comparison import Comparison, TreeRuns
from patchgate.verdict.verification import Verification
from patchgate.verdict.wording import SHORT_OID

if TYPE_CHECKING:
    from patchgate.declared.intent import Intent

_MOST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be verified: None of `revision` is what is staged, of `intent` the one of this worktree."""

    revision: str | None = None
    intent: str | None = None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """What every verification of one command shares; `objects` reads through `store`."""

    repository: Repository
    objects: Objects
    store: PrivateStore
    policy: Policy
    around: Around


def verify(repository: Repository, asked: Asked, around: Around) -> Verification:
    """Verify what is staged, or a commit.

    Args:
        around: what only a mouth knows; what it tells progress to is called about once a second.

    Raises:
        UsageError: what was asked contradicts itself, or names nothing; no analysis is named.
        UndecidedError: the repository, an intent or a scratch tree cannot be read.
    """
    if asked.base is not None and asked.intent is not None:
        raise UsageError(
            "--base and --intent exclude each other", "an intent has its own base: leave one of them out"
        )
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        policy = analysis_policy(repository, objects)
        scene = Scene(repository, objects, store, policy, around)
        after = source_of(repository, objects, store, _what(asked.revision))
        intent = _intent(scene, asked, after)
        if intent is not None:
            return held_against(scene, intent, after, with_staged=asked.revision is None)
        before = _before(scene, asked, after)
        policy = analysis_policy(repository, objects, before)
        return compared(replace(scene, policy=policy), before, after)


def _what(revision: str | None) -> str:
    if revision is None or revision == STAGED:
        return STAGED
    if revision == WORKTREE:
        raise UsageError(
            "what is verified is staged, or a commit", "git add what you mean, then git patchgate verify"
        )
    return revision


def _intent(scene: Scene, asked: Asked, after: Analysed) -> Intent | None:
    if asked.base is not None:
        return None
    if asked.intent is not None:
        from patchgate.operations.hold.verify.intent import named_intent

        return named_intent(scene.repository, asked.intent)
    here = active_here(scene.repository)
    if here is None:
        return None
    from patchgate.operations.hold.verify.intent import intent_here

    return intent_here(here, lambda: _touched(scene, asked, after))


def _touched(scene: Scene, asked: Asked, after: Analysed) -> Sequence[RepoPath]:
    """Name the files by which one of several intents is chosen: those that are staged, or of the commit."""
    if asked.revision is None:
        from patchgate.operations.hold.verify.work import staged_paths

        return staged_paths(scene.repository, scene.objects, scene.store)
    return _differing(scene, first_parent(scene, after).tree, after.tree)


def _before(scene: Scene, asked: Asked, after: Analysed) -> Analysed:
    """Find what a change without an intent is compared with.

    Raises:
        UsageError: there is no such revision.
        UndecidedError: the history is cut off there.
    """
    if asked.base is not None:
        if asked.base in {STAGED, WORKTREE}:
            raise UsageError(f"unknown revision {asked.base} for --base", "name a commit, a branch or a tag")
        return source_of(scene.repository, scene.objects, scene.store, asked.base)
    if asked.revision is None:
        return head_of(scene, after)
    return first_parent(scene, after)


def head_of(scene: Scene, after: Analysed) -> Analysed:
    """Find what a staged tree comes on top of: HEAD's, or the empty one where there is no commit yet."""
    if after.commit is None:
        return Analysed(scene.objects.empty_tree, None)
    return source_of(scene.repository, scene.objects, scene.store, after.commit)


def first_parent(scene: Scene, after: Analysed) -> Analysed:
    """Find what a commit comes on top of: its first parent's tree, or the empty one of a root commit.

    Raises:
        UsageError: it is no commit.
        UndecidedError: its parents were left out of this clone.
    """
    if after.commit is None:
        raise UsageError(
            f"{after.tree[:SHORT_OID]} is a tree, and has no parent", "name a commit, or give --base REV"
        )
    if after.commit in scene.repository.shallow:
        raise UndecidedError(
            f"the parents of {after.commit[:SHORT_OID]} are cut off: this clone is shallow",
            "git fetch --deepen=50, or name what to compare with: --base REV",
        )
    if scene.objects.header(after.commit + "^1") is None:
        return Analysed(scene.objects.empty_tree, None)
    return source_of(scene.repository, scene.objects, scene.store, after.commit + "^1")


def compared(scene: Scene, before: Analysed, after: Analysed) -> Verification:
    """Compare two trees without an intent: everything that got worse is the change's own."""
    sides = _runs(scene, before), _runs(scene, after)
    comparison = _comparison(scene, *sides)
    return decide(_question(scene, before, after, sides, comparison))


def held_against(scene: Scene, intent: Intent, after: Analysed, *, with_staged: bool) -> Verification:
    """Compare a tree with the one that an intent began on, and hold the work against what was declared.

    Args:
        with_staged: `after` is what is staged, which belongs to the work as its commits do.

    Raises:
        UndecidedError: the history cannot be read.
    """
    from patchgate.gates.scope import check_scope
    from patchgate.ledger.intents import present
    from patchgate.operations.hold.verify.intent import capture, standing_of, touching
    from patchgate.operations.hold.verify.work import still_dirty, work_of

    repository, objects = scene.repository, scene.objects
    touch = touching(repository, intent, present)
    touch()

    def tell(what: str, seconds: float) -> None:
        touch()
        scene.around.tell(what, seconds)

    scene = replace(scene, around=replace(scene.around, tell=tell))
    if objects.header(intent.tree + "^{tree}") is None:
        raise UndecidedError(
            f"the tree that {printable(intent.id, _MOST_SHOWN)} began on is not here",
            f"git patchgate intent clear {intent.id}, then declare the work anew",
        )
    work = work_of(repository, objects, scene.store, intent, after.commit, with_staged=with_staged)
    dirty = still_dirty(objects, intent, after.tree)
    before = Analysed(intent.tree, intent.base)
    sides = _runs(scene, before), _runs(scene, after)
    comparison = _comparison(scene, *sides)
    # Now, not when it began: the analyses may have taken longer than the time that was left.
    standing = standing_of(repository, intent, scene.policy, present(), sides[0])
    warnings: tuple[str, ...] = ()
    if not (standing.faults or standing.unverified):
        warnings = capture(repository, intent, sides[0])
    question = replace(
        _question(scene, before, after, sides, comparison),
        intent=intent,
        faults=standing.faults,
        unverified=standing.unverified,
        scope=check_scope(intent.scope, work.touched, work.controls, dirty),
        external_commits=work.external,
        dirty=dirty,
        warnings=(*_off_the_line(scene, intent, after), *warnings),
    )
    return decide(question)


def _off_the_line(scene: Scene, intent: Intent, after: Analysed) -> tuple[str, ...]:
    """Say where what is verified does not come on top of what the intent began on."""
    if intent.base is None or after.commit in {None, intent.base}:
        return ()
    from patchgate.git.pushes import is_ancestor

    if is_ancestor(scene.repository, intent.base, str(after.commit)):
        return ()
    after_base = f"{str(after.commit)[:SHORT_OID]} does not contain {intent.base[:SHORT_OID]}"
    return (f"{after_base}, on which {intent.id} began: what others did in between is compared too",)


def _runs(scene: Scene, analysed: Analysed) -> TreeRuns:
    runs = runs_of(
        scene.repository,
        scene.objects,
        scene.store,
        analysed.tree,
        scene.policy.config.analyses,
        scene.around,
        commit=analysed.commit,
    )
    assert runs is not None
    return runs


def _comparison(scene: Scene, before: TreeRuns, after: TreeRuns) -> Comparison:
    from patchgate.gates.regressions import compare
    from patchgate.git.renames import renames

    moved = renames(scene.repository, before.tree, after.tree, scene.store.variables)
    return compare(before, after, scene.policy.config.thresholds, moved)


def _question(
    scene: Scene,
    before: Analysed,
    after: Analysed,
    sides: tuple[TreeRuns, TreeRuns],
    comparison: Comparison,
) -> Question:
    """Put together what both kinds of verification ask."""
    settings = scene.policy.config.verify
    listed = tuple(RepoPath.from_git(name.encode("utf-8", "surrogateescape")) for name in settings.baselines)
    grown = tuple(path for path in listed if _has_grown(scene, path, before.tree, after.tree))
    has_code = bool(grown or comparison.suppressed) and _has_code(scene, before.tree, after.tree, listed)
    return Question(
        before=sides[0],
        after=sides[1],
        comparison=comparison,
        same_tree=before.tree == after.tree,
        grown=grown,
        has_code=has_code,
        strictness=settings.strictness,
    )


def _has_grown(scene: Scene, path: RepoPath, before: str, after: str) -> bool:
    old, new = (scene.objects.entry(tree, path.raw) for tree in (before, after))
    if old == new:
        return False
    from patchgate.gates.abuse import grown

    was, now = (scene.objects.read(each.oid) if each and each.is_file else None for each in (old, new))
    return grown(was, now)


def _has_code(scene: Scene, before: str, after: str, baselines: Collection[RepoPath]) -> bool:
    from patchgate.gates.abuse import has_functional_code

    return has_functional_code(_differing(scene, before, after), baselines)


def _differing(scene: Scene, before: str, after: str) -> list[RepoPath]:
    """Name every file that differs between two trees, both sides of a rename."""
    flags = ("-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
    raw = scene.repository.output("diff-tree", *flags, before, after, variables=scene.store.variables)
    return [RepoPath.from_git(name) for name in raw.split(b"\0") if name]
