"""The facts about components that the gates `contracts` and `drift` judge.

Gathered before the gates run (`components.judging`); the gates read nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from patchgate.components.baseline_file import Recorded
from patchgate.components.contract_facts import ContractFacts
from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.policy.component import Component, Components, Role
from patchgate.policy.policy import Policy
from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.check.case import Case


@dataclass(frozen=True, slots=True)
class ComponentState:
    """One component in a tree, with its baselines.

    Args:
        component: as the policy declares it.
        files: its files in the judged tree, with their roles.
        recorded: the baseline in this tree; None if there is none.
        before: the baseline in the tree before the change; None if there was none.
        changed: the component's paths (and its baseline's) that the change touches; empty if a tree is
            checked, not a change.
        texts: contents by blob oid: of the contracts and tests that differ from the baseline, and of
            their old versions in the change, if needed.
        capture: what a capture of this tree would write; None if the change does not
            touch the baseline.
        written: the bytes of the baseline in this tree; None if not needed, or there is none.
        is_merge: the change is that of a merge, which brings more than it touches itself.
        unclaimed: recorded files that are in the tree, but no longer in the component: the declaration
            excludes them now.
        old: the entry before the change at each path of `changed`; None if there was none.
    """

    component: Component
    files: Mapping[RepoPath, tuple[Role, Entry]]
    recorded: Recorded | None
    before: Recorded | None = None
    changed: frozenset[RepoPath] = frozenset()
    texts: Mapping[str, bytes] = field(default_factory=dict)
    capture: bytes | None = None
    written: bytes | None = None
    is_merge: bool = False
    unclaimed: frozenset[RepoPath] = frozenset()
    old: Mapping[RepoPath, Entry | None] = field(default_factory=dict)

    @property
    def touches_tests(self) -> bool:
        """Whether the change itself touches a test of the component."""
        return any(self.component.role(path) is Role.TESTS for path in self.changed)

    @property
    def files_before(self) -> dict[RepoPath, tuple[Role, Entry]]:
        """The component's files in the tree before the change, by the current declaration."""
        found = {path: each for path, each in self.files.items() if path not in self.old}
        for path, entry in self.old.items():
            role = self.component.role(path)
            if entry is not None and role is not None:
                found[path] = (role, entry)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class ContractsView:
    """The contracts of a tree that validation needs.

    Args:
        components: all components of the policy.
        asked: the ids of the components whose contracts are validated.
        facts: the facts of the contracts, None if the tree has no such file: of every component if
            `asked` is not empty, else of those with `tests`.
        not_files: the components whose contract is not a regular file, with what it is.
        externals: for every external dependency of an asked contract, whether the tree has it.
        tests: for each component whose budgets are checked, the contents of its tests by path.
        empty_globs: for each component whose patterns are checked, those that match no file of the tree.
        shared: files that several components claim, with the ids.
        owners: for each dependency that is not a component but a file of exactly one, that component.
        modules: candidates for "did you mean", for external and unknown dependencies.
    """

    components: Components
    asked: frozenset[str]
    facts: Mapping[str, ContractFacts | None]
    not_files: Mapping[str, str] = field(default_factory=dict)
    externals: Mapping[str, bool] = field(default_factory=dict)
    tests: Mapping[str, Mapping[RepoPath, bytes]] = field(default_factory=dict)
    empty_globs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shared: Mapping[RepoPath, tuple[str, ...]] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComponentFacts:
    """All facts about components in a case.

    Args:
        faults: by gate, why its facts could not be read.
        declared: the policy that declares the components; None means the judging policy.
        undeclared: the remaining baselines of components that the change no longer declares.
    """

    states: tuple[ComponentState, ...] = ()
    contracts: ContractsView | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    declared: Policy | None = None
    undeclared: Mapping[str, RepoPath] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case) -> ComponentFacts | None:
        """Return the facts in a case; None if the change concerns no component."""
        found = case.facts.get("components")
        return found if isinstance(found, cls) else None

    def concerns(self, gate: str) -> bool:
        """Return whether a gate has anything to check."""
        if gate == "contracts":
            return self.contracts is not None or gate in self.faults
        return bool(self.states or self.undeclared or gate in self.faults)

    def require(self, gate: str) -> None:
        """Require that everything that a gate checks could be read.

        Raises:
            UndecidedError: something could not be read.
        """
        if gate in self.faults:
            raise UndecidedError(self.faults[gate])
