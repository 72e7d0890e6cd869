"""The check of what is not committed yet: the index, or everything in the working tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchgate.check.cases import Rules, is_control, judge_reading
from patchgate.check.features import work_here
from patchgate.check.terms import Asked, asked_policy, detail_for, known_history, policy_beside
from patchgate.git.diff import Detail
from patchgate.git.model import Change, Entry
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.git.sources import Base, Reading, is_merging, pending_base, staged, worktree
from patchgate.policy.control import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policies import Found, Key, Policies, built_in
from patchgate.policy.policy import Profile
from patchgate.report.verdict import Report
from patchgate.report.wording import SHORT_OID

if TYPE_CHECKING:
    from patchgate.git.private import PrivateStore


def check_pending(
    repository: Repository, asked: Asked, *, whole_tree: bool = False, heads: Sequence[str] = ()
) -> Report:
    """Judge what is staged, or (with `whole_tree`) everything in the working tree.

    Where this worktree has intents, the change is held against them, by the profile of agents.

    Args:
        heads: what is being merged, where git names it in a hook's environment only.

    Raises:
        PatchgateError: it could not even be read.
    """
    if not (whole_tree or heads or asked.in_full or is_merging(repository)):
        with Objects(repository) as objects:
            base = pending_base(repository, objects)
            return _pending(repository, objects, base, asked, None)
    # 5 ms to import: only where git must write something to answer.
    from patchgate.check.patch_ids import with_id_of_change
    from patchgate.git.private import PrivateStore

    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        base = pending_base(repository, objects, store, heads)
        report = _pending(repository, objects, base, asked, store if whole_tree else None)
        return with_id_of_change(repository, store, report) if asked.in_full else report


def pending_change(repository: Repository, objects: Objects, store: PrivateStore | None = None) -> Change:
    """Read what the next commit touches, without its lines; of a merge, what it does itself.

    The one answer to what an intent must allow, for the message and for a verification as for the hooks.

    Args:
        store: where a merge is made, through which `objects` reads; None where nothing is being merged.

    Raises:
        UndecidedError: HEAD or the index cannot be read.
    """
    return staged(repository, objects, pending_base(repository, objects, store), Detail()).change


def _pending(
    repository: Repository, objects: Objects, base: Base, asked: Asked, store: PrivateStore | None
) -> Report:
    policies = Policies(objects)
    heads = _policies_of_heads(objects, policies, base)
    before = asked_policy(objects, policies, asked) or next(
        (each for each in heads if not each.is_absent), Found()
    )
    place, is_first, is_borrowed = asked.place or "HEAD", False, False
    if base.commit is None:
        from patchgate.git.roots import has_commits

        is_first = not (known_history(objects, asked) or has_commits(repository))
        beside = policy_beside(objects, policies) if before.is_absent else None
        if beside is not None:
            before, place, is_borrowed = beside[0], beside[1][:SHORT_OID], True
    work = work_here(repository)
    profile = asked.profile or (Profile.COMMIT if work is None else work.profile)
    detail = detail_for([before.policy or built_in()], profile, in_full=asked.in_full)

    def read(detail: Detail) -> Reading:
        if store is not None:
            return worktree(repository, objects, base, detail, store)
        return staged(repository, objects, base, detail)

    reading = read(detail)
    after = policies.at(_key_after(objects, policies, base.tree, reading))
    both = [policy for policy in (before.policy, after.policy) if policy]
    needed = detail_for(both, profile, in_full=asked.in_full)
    if not detail.covers(needed) or (after.policy is not None and after.policy is not before.policy):
        reading = read(needed)
    rules = Rules(
        before,
        after,
        place=place,
        is_first=is_first,
        is_borrowed=is_borrowed,
        hooks_named=policies.names_patchgate(base.tree),
        base=policies.at(policies.key(base.tree)),
        is_lost=len(heads) > 1 and any(not each.is_absent for each in heads),
    )
    verdict = judge_reading(reading, rules, profile, objects)
    if work is not None:
        policy = before.policy or after.policy or built_in()
        controls = frozenset(file.path for file in reading.change.files if is_control(file.path, rules))
        verdict = work.hold(verdict, policy, profile, objects, controls, reading.copied)
    return Report((verdict,), repository.limits)


def _policies_of_heads(objects: Objects, policies: Policies, base: Base) -> list[Found]:
    """Read the policies of HEAD and of what is being merged into it, HEAD's first."""
    found = [policies.at(policies.key(base.policy_tree))]
    for commit in base.heads[1:]:
        tree = objects.header(commit + "^{tree}")
        if tree is not None:
            found.append(policies.at(policies.key(tree.oid)))
    return found


def _key_after(objects: Objects, policies: Policies, base: str, reading: Reading) -> Key:
    """Name the policy that the change leaves, without the resulting tree being in the repository."""
    root: dict[bytes, Entry | None] = {**objects.tree(base)}
    root.update(reading.root)
    return policies.key_of(root.get(CONFIG_FILE.raw), root.get(PYPROJECT_FILE.raw))
