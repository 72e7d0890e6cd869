"""The facts about components that the gates `contracts` and `drift` judge.

Gathered before the gates run (`components.judging`); the gates read nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchgate.components.baseline_file import Recorded
from patchgate.components.contract_facts import ContractFacts
from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.policy.component import Component, Components, Role
from patchgate.policy.policy import Policy

if TYPE_CHECKING:
    from patchgate.check.case import Case


@dataclass(frozen=True, slots=True)
class ComponentState:
    """One component as it is in a tree, beside its baselines.

    Args:
        component: as the policy declares it.
        files: its files in the tree that is judged, with their roles.
        recorded: the baseline that this tree holds; None where there is none.
        before: the baseline of the tree before the change; None where there was none.
        changed: the component's paths (and its baseline's) that the change touches; empty where a tree is
            looked at, not a change.
        texts: contents by blob oid: of the contracts and tests that differ from what is recorded, and of what
            the change replaces of them, where it matters.
        capture: what a capture of this tree would write; None where nobody asked, since the change does not
            touch the baseline.
        written: the bytes of the baseline that this tree holds; None where nobody asked, or there is none.
        is_merge: the change is that of a merge, which brings more than it touches itself.
        unclaimed: what a baseline records, lies in the tree, and is no file of the component: its declaration
            left it out since.
        old: what stood before at each path of `changed`; None where nothing did.
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
        """The component's files in the tree before the change, by the declaration of now."""
        found = {path: each for path, each in self.files.items() if path not in self.old}
        for path, entry in self.old.items():
            role = self.component.role(path)
            if entry is not None and role is not None:
                found[path] = (role, entry)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class ContractsView:
    """The contracts of a tree, as far as those that are validated need them.

    Args:
        components: all components of the policy.
        asked: the ids of those whose contracts are validated.
        facts: the facts of the contracts, None where the tree holds no such file: of every component where
            any is asked, else of those with `tests`.
        not_files: the components whose contract is something else than a regular file, with what it is.
        externals: of every external that an asked contract names, whether the tree has it.
        tests: of each component whose budgets are held against its tests, their contents by path.
        empty_globs: of each component whose patterns are looked at, those that match no file of the tree.
        shared: files that several components claim, with the ids.
        owners: of each dependency that is no component and lies in the files of exactly one, that one.
        modules: names that may have been meant by an external or unknown dependency (for "did you mean").
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
    """Everything that a case holds of components.

    Args:
        faults: by gate, why its part could not be read.
        declared: the policy that declares the components; None: the one that judges.
        undeclared: the baselines that stay of components which the change declares no longer.
    """

    states: tuple[ComponentState, ...] = ()
    contracts: ContractsView | None = None
    faults: Mapping[str, str] = field(default_factory=dict)
    declared: Policy | None = None
    undeclared: Mapping[str, RepoPath] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case) -> ComponentFacts | None:
        """Give those of a case; None where the change is near none."""
        found = case.facts.get("components")
        return found if isinstance(found, cls) else None

    def concerns(self, gate: str) -> bool:
        """Tell whether a gate has anything to look at."""
        if gate == "contracts":
            return self.contracts is not None or gate in self.faults
        return bool(self.states or self.undeclared or gate in self.faults)

    def require(self, gate: str) -> None:
        """Insist that everything that a gate looks at could be read.

        Raises:
            UndecidedError: it could not.
        """
        if gate in self.faults:
            raise UndecidedError(self.faults[gate])
