"""Which `[governance] id` names the repository, so that an approval from another one does not count.

Whoever may push to a branch without an id could give it any: then that of the policy that judges counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from patchgate.git.objects import Objects
from patchgate.git.pushes import commits_at
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies

# Commits whose policy is read where the newest one cannot be.
_MOST_READ = 100


def repository_id(objects: Objects, policies: TreePolicies, places: Iterable[str | None]) -> str | None:
    """Return the first id that the policy at any of some commits names; None if none does.

    A policy that cannot be read names what the newest one before it does that can be.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    for place in dict.fromkeys(places):
        found = policy_at(objects, policies, place)
        if found.fault is not None and place is not None:
            found = _readable(objects, policies, place)
        if found.id is not None:
            return found.id
    return None


def policy_at(objects: Objects, policies: TreePolicies, place: str | None) -> FoundPolicy:
    """Return the policy of a commit; absent where there is none."""
    header = None if place is None else objects.header(place + "^{tree}")
    return FoundPolicy() if header is None else policies.at(policies.key(header.oid))


def _readable(objects: Objects, policies: TreePolicies, place: str) -> FoundPolicy:
    earlier = commits_at(objects.repository, place, [CONFIG_FILE.raw, PYPROJECT_FILE.raw])
    found = (policy_at(objects, policies, each) for each in earlier[:_MOST_READ])
    return next((each for each in found if each.policy is not None), FoundPolicy())
