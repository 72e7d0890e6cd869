"""Which `[governance] id` names the repository, so that an approval from another one does not count.

Whoever may push to a branch without an id could give it any: then that of the policy that judges counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.pushes import commits_at
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import FoundPolicy, Key, TreePolicies
from patchgate.report.wording import SHORT_OID

# Different policies that are read where the newest one cannot be.
_MOST_READ = 100


def repository_id(objects: Objects, policies: TreePolicies, places: Iterable[str | None]) -> str | None:
    """Return the first id that the policy at any of some commits names; None if none does.

    A policy that cannot be read names what the newest one before it does that can be.

    Raises:
        UndecidedError: git failed, an object is missing, or too many policies cannot be read.
    """
    for place in dict.fromkeys(places):
        found = policy_at(objects, policies, place)
        if found.fault is not None and place is not None:
            found = _readable(objects, policies, place)
        if found.id is not None:
            return found.id
    return None


def repository_of(objects: Objects, policies: TreePolicies, asked: CheckOptions) -> str | None:
    """Return the id of the repository for the branch that gets a change; None if nothing names one.

    Raises:
        UndecidedError: as above.
    """
    return repository_id(objects, policies, [asked.branch, asked.policy_from, asked.default])


def policy_at(objects: Objects, policies: TreePolicies, place: str | None) -> FoundPolicy:
    """Return the policy of a commit; absent where there is none."""
    header = None if place is None else objects.header(place + "^{tree}")
    return FoundPolicy() if header is None else policies.at(policies.key(header.oid))


def _readable(objects: Objects, policies: TreePolicies, place: str) -> FoundPolicy:
    """Return the newest policy that a commit had and that can be read; absent if there is none."""
    seen = set[Key]()
    for commit in commits_at(objects.repository, place, [CONFIG_FILE.raw, PYPROJECT_FILE.raw]):
        header = objects.header(commit + "^{tree}")
        key = policies.key(header.oid) if header is not None else (None, None)
        if key in seen:
            continue
        if len(seen) == _MOST_READ:
            raise UndecidedError(
                f"the last {_MOST_READ} policies of {place[:SHORT_OID]} cannot be read, so it is not known "
                "which repository this is",
                "let an administrator push a policy that can be read",
            )
        seen.add(key)
        found = policies.at(key)
        if found.policy is not None:
            return found
    return FoundPolicy()
