"""The intents of a worktree as what binds a pending change (`check.features.Work`)."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.intents.commits import Here, active_here, profile_under, touch, with_scope
from patchgate.policy.policy import Policy, Profile
from patchgate.report.verdict import ChangeVerdict


@dataclass(frozen=True, slots=True)
class IntentWork:
    """The work that the intents of a worktree declare."""

    here: Here

    @property
    def profile(self) -> Profile:
        """The profile of agents, where an intent binds."""
        return profile_under(self.here)

    def hold(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        objects: Objects,
        controls: Set[RepoPath],
        copied: Sequence[RepoPath] = (),
    ) -> ChangeVerdict:
        """Check a pending change against the intents, as `with_scope` does."""
        return with_scope(verdict, policy, profile, self.here, objects, controls, copied=copied)


def work_here(repository: Repository) -> IntentWork | None:
    """Find the intents of this worktree, and renew their leases; None where there is none."""
    here = active_here(repository)
    touch(repository, here)
    return None if here is None else IntentWork(here)
