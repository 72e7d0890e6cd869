"""The features that take part in judging: the pipeline knows each by its name and its module alone.

The module of a feature is small, and is imported when a change is judged; what it needs beyond that it
imports where it has something to do. What it gathers is in `Case.facts` under the feature's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from patchgate.git.change_sources import LoadedChange
from patchgate.git.diff import Glance, Watch
from patchgate.git.model import Change, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.policy.policy import Policy, Profile
from patchgate.report.verdict import ChangeVerdict, Finding

# The name under which a case has the facts, the module, and in what it takes part: functions of that module,
# with the arguments of the function here that asks them.
FEATURES = (
    ("components", "patchgate.components.judging", ("gather", "gather_all", "with_landing", "with_push")),
    ("placeholders", "patchgate.placeholders.judging", ("watch", "gather")),
    ("approvals", "patchgate.approvals.apply_approvals", ("apply_approvals",)),
)
# Name, the feature whose facts it looks at, the module with its `examine`; asked after the core gates.
GATES = (
    ("contracts", "components", "patchgate.components.contracts"),
    ("drift", "components", "patchgate.components.drift"),
    ("placeholders", "placeholders", "patchgate.placeholders.placeholder_gate"),
)
# What a worktree declared about its work binds what is made in it.
_WORK = "patchgate.intents.worktree_intents"


@dataclass(frozen=True, slots=True)
class FactSources:
    """What a feature may gather its facts from.

    `declaring` is the policy of before that declares, `known` the one before that where it is itself new;
    `own` the policy that the change brings, where it is judged by that as well. Without a `reading` every
    tracked file is judged as if it were new.
    """

    objects: Objects
    change: Change
    policy: Policy
    profile: Profile
    declaring: Policy
    known: Policy | None = None
    own: Policy | None = None
    reading: LoadedChange | None = None


class Facts(Protocol):
    """What a feature has gathered of a change."""

    def concerns(self, gate: str) -> bool:
        """Tell whether a gate has anything to look at."""
        ...


class WorktreeScope(Protocol):
    """What binds what is made in a worktree."""

    @property
    def profile(self) -> Profile:
        """The profile by which its commits are judged."""
        ...

    def check_scope(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        objects: Objects,
        controls: Set[RepoPath],
        copied: Sequence[RepoPath] = (),
    ) -> ChangeVerdict:
        """Check a pending change against what was declared."""
        ...


class ScopedCommits(Protocol):
    """Commits that are made in this worktree under what it declared."""

    @property
    def binds(self) -> bool:
        """Whether anything binds them."""
        ...

    @property
    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """Those commits, each with what its trailers name."""
        ...

    def check_scope(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        controls: Set[RepoPath],
        objects: Objects,
    ) -> ChangeVerdict:
        """Check one of them against what binds it."""
        ...


def feature_functions(what: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Import the features that take part in something; yield the name of each with its function for that.

    Those that take part in `with_landing` add to the report on an update of a branch what its commits do
    together; those in `with_push` add to the verdicts of a push what it makes of its branches;
    those in `apply_approvals` let exceptions count that somebody made from what a report refuses.
    """
    for name, module, parts in FEATURES:
        if what in parts:
            yield name, getattr(import_module(module), what)


def watched(policy: Policy, profiles: Sequence[Profile]) -> list[tuple[Watch, Glance]]:
    """Tell which lines the features have to see under a policy."""
    found = (watch(policy, profiles) for _, watch in feature_functions("watch"))
    return [each for each in found if each is not None]


def gather_facts(scene: FactSources) -> dict[str, Facts]:
    """Gather the facts of every feature that a change concerns."""
    found = ((name, gather(scene)) for name, gather in feature_functions("gather"))
    return {name: facts for name, facts in found if facts is not None}


def gather_tree_facts(objects: Objects, files: Sequence[FileChange], policy: Policy) -> dict[str, Facts]:
    """Gather what can be told only of a whole tree of these files."""
    found = ((name, gather(objects, files, policy)) for name, gather in feature_functions("gather_all"))
    return {name: facts for name, facts in found if facts is not None}


def worktree_scope(repository: Repository) -> WorktreeScope | None:
    """Find what binds the work in a worktree, and note that something is done there; None: nothing binds."""
    return cast("WorktreeScope | None", import_module(_WORK).find_scope_gate(repository))


def examiner(module: str) -> Callable[[Any], Iterable[Finding]]:
    """Name a gate's function, which is given a `Case`, without importing its module yet."""

    def examine(case: Any) -> Iterable[Finding]:
        return cast("Iterable[Finding]", import_module(module).examine(case))

    return examine
