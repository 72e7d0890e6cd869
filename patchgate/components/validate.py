"""Validate components of the index: some, all, or those that the staged change touches.

Decides which contracts and baselines are checked, by the policy in the index; the report is bound to the
whole tree. The gates `contracts` and `drift` make the findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from patchgate.check.case import Case
from patchgate.check.gate import Gate, at_policy_level, judge
from patchgate.check.judging_policy import BUILT_IN, reference
from patchgate.components.component_cache import FactsCache
from patchgate.components.component_facts import ContractsView
from patchgate.components.contract_gathering import (
    changed_declarations,
    contracts_of_change,
    contracts_of_tree,
)
from patchgate.components.contracts import examine_contracts
from patchgate.components.drift import examine_state
from patchgate.components.drift_gathering import state_of
from patchgate.components.policy_tree import PolicyTree, head_tree, index_tree, resolve_components
from patchgate.errors import ConfigError, UsageError
from patchgate.git.model import Change, Source
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.policy.component import Component
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import built_in
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Finding, Report
from patchgate.values import dataclass


@dataclass(frozen=True, slots=True)
class Validated:
    """The report, and its scope: the name of the tree, how many contracts were validated, and how
    many components were compared with their baselines.

    `is_touched` is False if nothing was checked, because no staged file touches a component.
    """

    report: Report
    content: str
    declares: bool
    is_touched: bool
    contracts: int
    baselines: int


def validate(
    repository: Repository, ids: Sequence[str], *, everything: bool = False, fail_fast: bool = False
) -> Validated:
    """Validate some components, all, or (without either) those that are touched: contracts, then drift.

    Args:
        ids: components by their exact ids.
        everything: all of them.
        fail_fast: stop at the first error.

    Raises:
        UsageError: there is no such component, or no index.
        ConfigError: the policy of the index cannot be used.
        UndecidedError: the index has conflicts, or an object is missing.
    """
    if ids and everything:
        raise UsageError("ID and --all exclude each other", "use one of them")
    with Objects(repository) as objects:
        content = index_tree(repository, objects)
        view = _view(content, ids, everything)
        recorded = _with_baselines(content, view, ids, everything)
        policy, profile = content.policy, Profile.COMMIT
        has_ended = False
        compared: list[str] = []

        def until(found: Iterable[Finding]) -> Iterator[Finding]:
            nonlocal has_ended
            for finding in () if has_ended else found:
                yield finding
                said = at_policy_level(policy, profile, finding)
                if fail_fast and said is not None and said.level is Level.ERROR:
                    has_ended = True
                    return

        after = content.view.tree if content.staged is None else content.staged.after
        change = Change(objects.empty_tree, after, ())
        contracts = () if view is None else examine_contracts(view, policy)
        drift = _drift(content, recorded, compared)
        gates = (
            Gate("contracts", lambda case: until(contracts), lambda case: view is not None),
            Gate("drift", lambda case: until(drift), lambda case: bool(recorded)),
        )
        outcomes, findings = judge(Case(change, policy, profile, has_budgets=False), gates)
        about = reference(policy, content.name if policy.file else BUILT_IN, profile)
        verdict = ChangeVerdict(change, Source("all"), profile.value, about, outcomes, findings)
    # Counts the existing contracts among those that were validated or checked for budgets.
    facts = [] if view is None else [view.facts.get(name) for name in view.asked | view.tests.keys()]
    return Validated(
        report=Report((verdict,), repository.limits),
        content=content.name,
        declares=bool(content.components),
        is_touched=view is not None or bool(recorded),
        contracts=sum(each is not None for each in facts),
        baselines=len(compared),
    )


def _with_baselines(
    content: PolicyTree, view: ContractsView | None, ids: Sequence[str], everything: bool
) -> list[Component]:
    """Choose the components to compare with their baselines: those that are asked for and have one."""
    components = content.components
    asked = set(components.ids) if everything else set(ids)
    if not asked and view is not None:
        asked |= view.asked
    if not (everything or ids) and content.staged is not None:
        touched = [file.path for file in content.staged.files]
        asked |= components.affected_by(touched).keys()
    found = [components[name] for name in components.ids if name in asked]
    return [each for each in found if content.view.entry(each.baseline.raw) is not None]


def _drift(content: PolicyTree, components: Sequence[Component], compared: list[str]) -> Iterator[Finding]:
    for component in components:
        compared.append(component.id)
        yield from examine_state(state_of(component, content.view))


def _view(content: PolicyTree, ids: Sequence[str], everything: bool) -> ContractsView | None:
    policy, view, repository = content.policy, content.view, content.view.objects.repository
    where = "" if content.staged is None else content.place
    chosen = [component.id for component in resolve_components(content.components, ids, where)]
    with FactsCache.of(repository) as cache:
        if everything or chosen:
            return contracts_of_tree(policy, view, cache, None if everything else chosen)
        if content.staged is None:
            raise UsageError("a bare repository has no index", "name components, or add --all")
        otherwise = changed_declarations(policy, _before(repository, view.objects))
        return contracts_of_change(policy, view, content.staged.files, cache, otherwise)


def _before(repository: Repository, objects: Objects) -> Policy:
    """Return the policy of `HEAD`; one that cannot be used declares nothing, so all of the index is new."""
    try:
        return head_tree(repository, objects).policy
    except ConfigError:
        return built_in()
