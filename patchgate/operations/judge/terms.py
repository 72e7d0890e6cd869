"""The terms of a judgement: what was asked about it, which policy that means, and how much must be read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from patchgate.change.quoting import printable
from patchgate.declared.policy import Policy, Profile
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.diff import Detail, Glance, Watch
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.operations.judge.policies import Found, Policies, usable

if TYPE_CHECKING:
    from patchgate.operations.judge.made_commits import Making

TRUST_KEY = "patchgate.trustRef"


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked about how to judge; None leaves it to the change.

    `policy_from` is a revision whose policy counts, `policy` one that is not in the repository yet.
    `fallback` is a revision whose policy counts for commits before which there was none: what comes to a
    branch with a policy is judged by one. `making` are the commits that are made under the intents of this
    worktree.
    """

    policy_from: str | None = None
    profile: Profile | None = None
    policy: Policy | None = None
    fallback: str | None = None
    making: Making | None = None


def asked_policy(objects: Objects, policies: Policies, asked: Asked) -> Found | None:
    """Read the policy of `--policy-from REV`.

    Raises:
        UsageError: there is no such revision.
        ConfigError: its policy cannot be used.
    """
    if asked.policy is not None:
        return Found(asked.policy)
    if asked.policy_from is None:
        return None
    header = objects.header(asked.policy_from + "^{tree}") if _is_name(asked.policy_from) else None
    if header is None:
        raise UsageError("unknown revision for --policy-from", "name a commit, a branch or a tag")
    found = policies.at(policies.key(header.oid))
    if found.fault is not None:
        raise found.fault
    return replace(found, tree=header.oid)


def policy_of_analyses(
    repository: Repository, objects: Objects, before: str | None = None
) -> tuple[Policy, str]:
    """Find the policy whose analyses count, and say which revision's it is: the trusted ref's, else HEAD's.

    Args:
        before: the tree that a change is compared with; its policy comes before that of HEAD, unless it names
            no analysis, as before the first.

    Raises:
        ConfigError: it cannot be used.
        UndecidedError: it cannot be read.
    """
    from patchgate.git.sources import pending_base

    policies = Policies(objects)
    asked = trusted(repository)
    found = asked_policy(objects, policies, asked)
    if found is None and before is not None:
        found = policies.at(policies.key(before))
        if found.fault is None and (found.policy is None or not found.policy.config.analyses):
            found = None
    if found is None:
        found = policies.at(policies.key(pending_base(repository, objects).policy_tree))
    return usable(found), asked.policy_from or "HEAD"


def trusted(repository: Repository) -> Asked:
    """Read which ref's policy this repository trusts above all (`install --trust-ref REF`), if any.

    Raises:
        UndecidedError: that ref is not here.
    """
    # A child costs a millisecond, and most repositories trust no ref; install writes to this very file.
    try:
        with open(os.path.join(repository.common_dir, "config"), "rb") as file:
            if b"trustref" not in file.read().lower():
                return Asked()
    except OSError:
        pass
    done = repository.git("config", "--get", TRUST_KEY, answers=(0, 1))
    ref = os.fsdecode(done.out.rstrip(b"\n"))
    if done.code != 0 or not ref:
        return Asked()
    if repository.git("show-ref", "--verify", "--quiet", "--", ref, answers=(0, 1)).code != 0:
        remote, _, name = ref.removeprefix("refs/remotes/").partition("/")
        hint = (
            f"git fetch {remote} {name}" if ref.startswith("refs/remotes/") else f"git config {TRUST_KEY} REF"
        )
        raise UndecidedError(
            f"the policy is taken from {printable(ref)}, and there is no such ref here", printable(hint)
        )
    return Asked(policy_from=ref)


def tree_named(objects: Objects, revision: str) -> tuple[str, str | None] | None:
    """Find the tree that a revision names, and the commit if it names one; None where it names neither."""
    if not revision or not _is_name(revision):
        return None
    commit = objects.header(revision + "^{commit}")
    tree = objects.header((commit.oid if commit else revision) + "^{tree}")
    return (tree.oid, commit.oid if commit else None) if tree else None


def _is_name(revision: str) -> bool:
    return not revision.startswith("-") and "\n" not in revision and "\0" not in revision


def detail_for(judging: Sequence[Policy], *profiles: Profile) -> Detail:
    """Say how much has to be read for these policies, under one profile or several."""
    watched: list[tuple[Watch, Glance]] = [
        (policy.content.suspects, policy.content.may_suspect) for policy in judging if policy.content
    ]
    for policy in judging:
        if any(policy.judges_placeholders(profile) for profile in profiles):
            # Most commits are judged without them.
            from patchgate.operations.judge.placeholders import may_suspect, suspects

            markers = policy.markers
            watched.append((partial(suspects, markers), partial(may_suspect, markers)))
    watch, glance = _joined(watched)
    return Detail(
        lines=any(policy.needs_lines(profile) for policy in judging for profile in profiles),
        sizes=any(policy.needs_sizes(profile) for policy in judging for profile in profiles),
        watch=watch,
        glance=glance,
    )


def _joined(watched: Sequence[tuple[Watch, Glance]]) -> tuple[Watch, Glance] | tuple[None, None]:
    """Join what several rules watch for; None where nothing is watched for."""
    if len(watched) < 2:
        return watched[0] if watched else (None, None)

    def watch(lines: Sequence[bytes]) -> list[int]:
        return sorted({index for suspects, _ in watched for index in suspects(lines)})

    def glance(text: bytes, start: int, stop: int) -> bool:
        return any(may_suspect(text, start, stop) for _, may_suspect in watched)

    return watch, glance
