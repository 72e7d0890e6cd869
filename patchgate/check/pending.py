"""Check what is not committed yet: the index, or the working tree.

Also the pending receipt, which pre-commit writes so that one commit is not judged twice, and the patch ids in
a JSON report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate import __version__
from patchgate.check.features import WorktreeScope, worktree_scope
from patchgate.check.judging_policy import PolicySides, is_control, judge_reading
from patchgate.check.policy_lookup import (
    CheckOptions,
    detail_for,
    history_root,
    main_line_policy,
    requested_policy,
)
from patchgate.check.profiles import find_agent_variable, judged_profiles
from patchgate.errors import UndecidedError
from patchgate.git.change_sources import (
    LoadedChange,
    PendingBase,
    is_merging,
    pending_base,
    read_staged,
    read_worktree,
)
from patchgate.git.diff import Detail
from patchgate.git.model import NO_MODE, Change, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, Key, TreePolicies, built_in
from patchgate.report.verdict import Report
from patchgate.report.wording import SHORT_OID
from patchgate.storage.atomic_write import write_atomically
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.git.private_store import PrivateStore

_NAME = "patchgate-pending"
_QUIET = "patchgate-quiet"
_MERGING = "patchgate-merging"
_KIND = slice(0, 3)


def check_pending(
    repository: Repository, asked: CheckOptions, *, whole_tree: bool = False, heads: Sequence[str] = ()
) -> Report:
    """Judge what is staged, or (with `whole_tree`) everything in the working tree.

    Where this worktree has intents, the change is checked against them, under the agent profile.

    Args:
        heads: what is being merged, where git names it in a hook's environment only.

    Raises:
        PatchgateError: it could not even be read.
    """
    if not (whole_tree or heads or asked.in_full or is_merging(repository)):
        with Objects(repository) as objects:
            base = pending_base(repository, objects)
            return _pending(repository, objects, base, asked, partial(read_staged, repository, objects, base))
    # 5 ms to import: only where git must write something to answer.
    from patchgate.git.private_store import PrivateStore

    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        base = pending_base(repository, objects, store, heads)
        if whole_tree:
            read = partial(read_worktree, repository, objects, base, store=store)
        else:
            read = partial(read_staged, repository, objects, base)
        report = _pending(repository, objects, base, asked, read)
        return with_id_of_change(repository, store, report) if asked.in_full else report


def check_contents(
    repository: Repository, asked: CheckOptions, contents: Mapping[RepoPath, bytes | None]
) -> Report:
    """Judge what some files would change if they had these contents (None: no file), as `check_pending` does.

    Raises:
        PatchgateError: it could not even be read.
    """
    # Imported here: only the hooks of agents ask before a file is written.
    from patchgate.git.private_store import PrivateStore
    from patchgate.git.proposed_contents import read_contents

    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        base = pending_base(repository, objects)
        read = partial(read_contents, repository, objects, base, contents, store=store)
        return _pending(repository, objects, base, asked, read)


def pending_change(repository: Repository, objects: Objects, store: PrivateStore | None = None) -> Change:
    """Read what the next commit touches, without its lines; of a merge, what it does itself.

    The message, a verification and the hooks all use this as what an intent must allow.

    Args:
        store: where a merge is made, through which `objects` reads; None if nothing is being merged.

    Raises:
        UndecidedError: HEAD or the index cannot be read.
    """
    return read_staged(repository, objects, pending_base(repository, objects, store), Detail()).change


def _pending(
    repository: Repository,
    objects: Objects,
    base: PendingBase,
    asked: CheckOptions,
    read: Callable[[Detail], LoadedChange],
) -> Report:
    policies = TreePolicies(objects)
    heads = _policies_of_heads(objects, policies, base)
    before = requested_policy(objects, policies, asked) or next(
        (each for each in heads if not each.is_absent), FoundPolicy()
    )
    place, is_first, is_borrowed = asked.place or "HEAD", False, False
    if base.commit is None:
        from patchgate.git.revisions import has_commits

        is_first = not (history_root(objects, asked) or has_commits(repository))
        beside = main_line_policy(objects, policies) if before.is_absent else None
        if beside is not None:
            before, place, is_borrowed = beside[0], beside[1][:SHORT_OID], True
    work = worktree_scope(repository)
    profile, reason = _profile_of(asked, work, before.policy)
    in_full = asked.in_full or (work is not None and work.counts_lines)
    profiles = judged_profiles(profile, reason)
    detail = detail_for([before.policy or built_in()], *profiles, in_full=in_full)

    reading = read(detail)
    after = policies.at(_key_after(objects, policies, base.tree, reading))
    both = [policy for policy in (before.policy, after.policy) if policy]
    needed = detail_for(both, *profiles, in_full=in_full)
    if not detail.covers(needed) or (after.policy is not None and after.policy is not before.policy):
        reading = read(needed)
    branches = asked.branch_of(before.tree) if base.heads and before.tree is not None else {}
    rules = PolicySides(
        before,
        after,
        place=place,
        is_first=is_first,
        is_borrowed=is_borrowed,
        hooks_named=any(map(policies.names_patchgate, (base.tree, *branches, *reading.parents))),
        base=policies.at(policies.key(base.tree)),
        parents=tuple(heads) if len(heads) > 1 else (),
        branches=branches,
        landing=(before,) if branches else (),
    )
    verdict = judge_reading(reading, rules, profile, objects, reason)
    if work is not None:
        policy = before.policy or after.policy or built_in()
        controls = frozenset(file.path for file in reading.change.files if is_control(file.path, rules))
        verdict = work.check_scope(verdict, policy, profile, objects, controls, reading.copied)
    return Report((verdict,), repository.limits)


def _profile_of(
    asked: CheckOptions, work: WorktreeScope | None, policy: Policy | None
) -> tuple[Profile, str]:
    """Choose the profile of the next commit; with it why it is an agent's, or nothing."""
    if asked.profile is not None:
        return asked.profile, asked.profile_reason
    if work is not None and work.profile is Profile.AGENT:
        return Profile.AGENT, "an intent binds this worktree"
    variable = find_agent_variable(asked.environ, policy)
    return (Profile.COMMIT, "") if variable is None else (Profile.AGENT, variable)


def _policies_of_heads(objects: Objects, policies: TreePolicies, base: PendingBase) -> list[FoundPolicy]:
    """Read the policies of HEAD and of what is being merged into it, HEAD's first."""
    found = [policies.at(policies.key(base.policy_tree))]
    for commit in base.heads[1:]:
        tree = objects.header(commit + "^{tree}")
        if tree is not None:
            found.append(policies.at(policies.key(tree.oid)))
    return found


def _key_after(objects: Objects, policies: TreePolicies, base: str, reading: LoadedChange) -> Key:
    """Name the policy that the change leaves, without the resulting tree being in the repository."""
    root: dict[bytes, Entry | None] = {**objects.tree(base)}
    root.update(reading.root)
    return policies.key_of(root.get(CONFIG_FILE.raw), root.get(PYPROJECT_FILE.raw))


def leave_pending(
    repository: Repository, change: Change, *, status: str, head: str, branch: str, policy: tuple[str, str]
) -> str | None:
    """Leave a pending receipt in this worktree; return a warning where it could not be written.

    The shim of reference-transaction compares its bytes in sh with what git commits in the end:

        patchgate.pending/2 VERSION accepted|told TREE
        HEAD-OID BRANCH
        POLICY-SPEC BLOB                    (- - where HEAD's own policy judged: HEAD pins it)
        the raw bytes of a pinned `git diff-index --cached --raw -z`, built from the change that was judged

    TREE is the tree that git writes for this change. The bytes of the difference are not enough: git can keep
    a malformed tree beside the index and commit it, and show no difference. `told` is a refusal that is only
    reported here (observed, or on a draft ref): it passes, and gets no receipt.

    Args:
        status: `accepted` or `told`.
        head: HEAD's commit, zeroes where it is unborn.
        branch: the full name of the branch that HEAD names.
        policy: a revision and path, and the blob that was read there; `-` and `-` for HEAD's own.
    """
    result = f"patchgate.pending/2 {__version__} {status} {change.after}\n"
    header = f"{result}{head} {branch}\n{policy[0]} {policy[1]}\n"
    body = os.fsencode(header) + raw_diff(change, repository.zero_oid)
    try:
        write_atomically(_place(repository), body, mode=0o600)
    except OSError as error:
        drop_pending(repository)
        return f"the pending receipt could not be written ({error.strerror}); the commit is judged again"
    return None


def leave_merge(repository: Repository, change: Change, head: str, branch: str, other: str) -> None:
    """Leave the pending receipt of a clean merge whose commits have all been judged; it may be lost.

        patchgate.merging/1 VERSION TREE
        HEAD-OID BRANCH OTHER-OID

    Args:
        head: HEAD's commit, the first parent.
        branch: the full name of the branch that HEAD names.
        other: the second parent.
    """
    body = f"patchgate.merging/1 {__version__} {change.after}\n{head} {branch} {other}\n"
    with suppress(OSError):
        write_atomically(Path(repository.git_dir, _MERGING), os.fsencode(body), mode=0o600)


def drop_pending(repository: Repository) -> None:
    """Remove what an earlier commit left."""
    for name in (_NAME, _QUIET, _MERGING):
        with suppress(OSError):
            Path(repository.git_dir, name).unlink(missing_ok=True)


def leave_quiet(repository: Repository) -> None:
    """Mark for the commit-msg shim that the policy has no message rules, so that it ends in sh."""
    with suppress(OSError):
        write_atomically(Path(repository.git_dir, _QUIET), f"{__version__}\n".encode(), mode=0o600)


def raw_diff(change: Change, zero_oid: str) -> bytes:
    """Write a change as `git diff-tree -r --raw -z --no-renames --no-abbrev` does."""
    return b"".join(_record(file, zero_oid) for file in change.files)


def _record(file: FileChange, zero_oid: str) -> bytes:
    nothing = Entry(NO_MODE, zero_oid)
    old, new = file.old or nothing, file.new or nothing
    if file.old is None:
        status = "A"
    elif file.new is None:
        status = "D"
    else:
        status = "M" if old.mode[_KIND] == new.mode[_KIND] else "T"
    about = f":{old.mode} {new.mode} {old.oid} {new.oid} {status}\0"
    return about.encode("ascii") + file.path.raw + b"\0"


def _place(repository: Repository) -> Path:
    return Path(repository.git_dir, _NAME)


def with_ids_of_commits(repository: Repository, report: Report) -> Report:
    """Add the patch ids of commits; a merge gets that of its own changes.

    A commit whose parent this clone lacks has none, and neither has a merge that changes what git merges
    again.
    """
    commits = [
        each.source.commit
        for each in report.changes
        if each.source.kind == "commit"
        and each.source.commit
        and each.source.commit not in repository.shallow
    ]
    # 5 ms to import: only for a report that a program reads.
    from patchgate.git.private_store import PrivateStore, patch_id_of, patch_ids_of

    try:
        known = patch_ids_of(repository, commits)
    except UndecidedError:
        return report
    changes = []
    for each in report.changes:
        found = known.get(each.source.commit or "")
        if each.source.kind == "merge" and each.change.files:
            with PrivateStore(repository) as store, suppress(UndecidedError):
                found = patch_id_of(repository, store, each.change.files)
        changes.append(replace(each, patch_id=found))
    return replace(report, changes=tuple(changes))


def with_id_of_change(repository: Repository, store: PrivateStore, report: Report) -> Report:
    """Add the patch id of the only change, whose objects may be in the private store."""
    from patchgate.git.private_store import patch_id_of

    (verdict,) = report.changes
    try:
        known = patch_id_of(repository, store, verdict.change.files)
    except UndecidedError:
        return report
    return replace(report, changes=(replace(verdict, patch_id=known),))
