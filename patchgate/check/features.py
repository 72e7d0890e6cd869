"""The table of the features that take part in a check, by name and module.

The module of a feature is small: it is imported whenever a change is judged, and imports the rest when it is
needed. What it gathers is in `Case.facts` under the feature's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
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
from patchgate.values import dataclass

# The feature's name in `Case.facts`, its module, and the functions of that module that are called, each with
# the arguments of its caller.
FEATURES = (
    ("components", "patchgate.components.judging", ("gather", "gather_all", "with_landing", "with_push")),
    ("placeholders", "patchgate.placeholders.judging", ("watch", "gather")),
    ("approvals", "patchgate.approvals.apply_approvals", ("apply_approvals",)),
)
# Name, the feature whose facts it needs, the module with its `examine`; these run after the core gates.
GATES = (
    ("contracts", "components", "patchgate.components.contracts"),
    ("drift", "components", "patchgate.components.drift"),
    ("placeholders", "placeholders", "patchgate.placeholders.placeholder_gate"),
)
# Commits made in a worktree are checked against the intents of that worktree.
_WORK = "patchgate.intents.worktree_intents"


@dataclass(frozen=True, slots=True)
class FactSources:
    """What a feature gathers its facts from.

    `declaring` is the policy that declares components; `known` is the one before it, where it is new; `own`
    is the new policy of the change, where that judges it too. Without a `reading` every tracked file is
    judged as if it were new.
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
    """What a feature has gathered about a change."""

    def concerns(self, gate: str) -> bool:
        """Return whether a gate has anything to examine."""
        ...


class WorktreeScope(Protocol):
    """The intents that bind the work in a worktree."""

    @property
    def profile(self) -> Profile:
        """The profile that judges its commits."""
        ...

    @property
    def counts_lines(self) -> bool:
        """Whether the added lines of a change matter to it."""
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
        """Check a pending change against the declared scope."""
        ...


class ScopedCommits(Protocol):
    """Commits that were made in this worktree under its intents."""

    @property
    def binds(self) -> bool:
        """Whether an intent binds them."""
        ...

    @property
    def counts_lines(self) -> bool:
        """Whether their added lines matter to it."""
        ...

    @property
    def ids(self) -> Mapping[str, tuple[str, ...]]:
        """Those commits, each with the intents that its trailers name."""
        ...

    def check_scope(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        controls: Set[RepoPath],
        objects: Objects,
    ) -> ChangeVerdict:
        """Check one of them against its intent."""
        ...


def feature_functions(what: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Import the features that have a function; yield each feature's name and that function.

    `with_landing` adds to the report of a branch update what its commits do together. `with_push` adds to the
    verdicts of a push what it does to its branches. `apply_approvals` applies approvals to a report.
    """
    for name, module, parts in FEATURES:
        if what in parts:
            yield name, getattr(import_module(module), what)


def watched(policy: Policy, profiles: Sequence[Profile]) -> list[tuple[Watch, Glance]]:
    """List which lines the features must see under a policy."""
    found = (watch(policy, profiles) for _, watch in feature_functions("watch"))
    return [each for each in found if each is not None]


def gather_facts(scene: FactSources) -> dict[str, Facts]:
    """Gather the facts of every feature about a change."""
    found = ((name, gather(scene)) for name, gather in feature_functions("gather"))
    return {name: facts for name, facts in found if facts is not None}


def gather_tree_facts(objects: Objects, files: Sequence[FileChange], policy: Policy) -> dict[str, Facts]:
    """Gather the facts that need a whole tree of these files."""
    found = ((name, gather(objects, files, policy)) for name, gather in feature_functions("gather_all"))
    return {name: facts for name, facts in found if facts is not None}


def worktree_scope(repository: Repository) -> WorktreeScope | None:
    """Find the intents that bind the work in a worktree, and renew their lease; None: no intent."""
    return cast("WorktreeScope | None", import_module(_WORK).find_scope_gate(repository))


def examiner(module: str) -> Callable[[Any], Iterable[Finding]]:
    """Make a gate's function, which imports its module when it is called with a `Case`."""

    def examine(case: Any) -> Iterable[Finding]:
        return cast("Iterable[Finding]", import_module(module).examine(case))

    return examine
