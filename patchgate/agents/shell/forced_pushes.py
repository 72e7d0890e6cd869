"""Which protected refs a forced push would move, as far as this clone knows; pre-push asks again."""

from __future__ import annotations

from patchgate.agents.shell.git_words import ForcedPush
from patchgate.check.policy_lookup import trusted_options
from patchgate.check.protected_refs import Destination, RefRules
from patchgate.git.new_commits import current_branch
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, peel, remote_of
from patchgate.git.repository import Repository


def protected_refs_of(repository: Repository, push: ForcedPush) -> list[str]:
    """List the protected refs that a push names, by their full names; for all branches, the default one.

    Raises:
        PatchgateError: the policy or the refs cannot be read.
    """
    remote = remote_of(repository, push.remote or "origin")
    with Objects(repository) as objects:
        rules = RefRules(
            repository=repository,
            objects=objects,
            destination=Destination(remote.shown, remote.default, remote.had),
            commits=peel(objects, remote.had.values()),
            asked=trusted_options(repository),
        )
        if push.refs is None:
            named = list(dict.fromkeys([*remote.had, remote.default or f"{BRANCHES}main"]))
        else:
            named = [_full(repository, ref) for ref in push.refs]
        return [ref for ref in named if ref and rules.is_protected(ref)]


def _full(repository: Repository, ref: str) -> str:
    """Write the name of a ref in full; an empty one is the branch that is checked out."""
    if not ref:
        return current_branch(repository) or ""
    return ref if ref.startswith("refs/") else BRANCHES + ref
