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
_MOST_READ = 1000


def repository_id(objects: Objects, policies: TreePolicies, places: Iterable[str | None]) -> str | None:
    """Return the first id that the policy at any of some commits names; None if none does.

    A policy that is not even TOML names what all do that are, and are in its history.

    Raises:
        UndecidedError: git failed, an object is missing, these name several, or they are too many.
    """
    for place in dict.fromkeys(places):
        found = policy_at(objects, policies, place)
        if found.id is not None:
            return found.id
        named = None if found.fault is None or place is None else _readable_id(objects, policies, place)
        if named is not None:
            return named
    return None


def repository_of(objects: Objects, policies: TreePolicies, asked: CheckOptions) -> str | None:
    """Return the id of the repository for the branch that gets a change; None if nothing names one.

    It is empty where only the default branch may name one, and that is not known.

    Raises:
        UndecidedError: as above.
    """
    named = repository_id(objects, policies, [asked.branch, asked.policy_from, asked.default or None])
    return "" if named is None and asked.default == "" else named


def policy_at(objects: Objects, policies: TreePolicies, place: str | None) -> FoundPolicy:
    """Return the policy of a commit; absent where there is none."""
    header = None if place is None else objects.header(place + "^{tree}")
    return FoundPolicy() if header is None else policies.at(policies.key(header.oid))


def _readable_id(objects: Objects, policies: TreePolicies, place: str) -> str | None:
    """Return the one id that the policies before a commit name, those inside a push too."""
    keys = dict[Key, None]()
    for commit in commits_at(objects.repository, place, [CONFIG_FILE.raw, PYPROJECT_FILE.raw]):
        header = objects.header(commit + "^{tree}")
        if header is not None:
            keys[policies.key(header.oid)] = None
    named = {policies.at(key).id for key in list(keys)[:_MOST_READ]} - {None}
    if len(named) > 1 or len(keys) > _MOST_READ:
        raise UndecidedError(
            f"the policy of {place[:SHORT_OID]} cannot be read, and those before it name several "
            "repositories, or are too many to read",
            "let an administrator push a policy that can be read",
        )
    return next(iter(named), None)
