"""The components of a content, as lists and graphs show them: their files, contracts and dependencies.

Decides what is known of each component, and which dependency means which component. Judges nothing: that a
contract is wrong or a dependency missing is told by `validate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchgate.components.content import Content, index_content
from patchgate.components.contract_cache import FactsCache, facts_at
from patchgate.components.contract_facts import ContractFacts
from patchgate.components.dependencies import cycles, is_across, resolved_dependencies
from patchgate.components.drift_gathering import files_of
from patchgate.components.names import How, Names
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component, Components, Role
from patchgate.report.json_paths import as_text


@dataclass(frozen=True, slots=True)
class ContractState:
    """What a component's contract is in the tree; `version` is None where it says none that can be read.

    `state` is readable, unreadable (not JSON, or of another shape), missing, or not-a-file.
    """

    path: str
    state: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """One component in the list; `tests` and `implementation` are numbers of files."""

    id: str
    parent: str | None
    contract: ContractState
    tests: int
    implementation: int
    has_baseline: bool


@dataclass(frozen=True, slots=True)
class Dependency:
    """One dependency of a contract: `name` as it is written, `to` the component that it means (None: none).

    `how` is the step by which the name was found. `is_external` is whether it stands among the external ones.
    """

    source: str
    name: str
    to: str | None = None
    how: How | None = None
    is_external: bool = False
    is_across: bool = False
    is_in_cycle: bool = False


@dataclass(frozen=True, slots=True)
class ComponentGraph:
    """The component tree and what the contracts depend on; groups are parents that are no components."""

    content: str
    parents: dict[str, str | None]
    groups: tuple[str, ...]
    dependencies: tuple[Dependency, ...]
    cycles: tuple[tuple[str, ...], ...]


def listed(repository: Repository) -> tuple[str, tuple[Listed, ...]]:
    """List the components of the index (bare: of `HEAD`), sorted by id, and say which content that is.

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: something cannot be read.
    """
    with Objects(repository) as objects, FactsCache.of(repository) as cache:
        content = index_content(repository, objects)
        components = content.components
        return content.name, tuple(_listed(components[each], content.view, cache) for each in components.ids)


def component_graph(repository: Repository) -> ComponentGraph:
    """Find how the components of the index (bare: of `HEAD`) are related.

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: something cannot be read.
    """
    with Objects(repository) as objects, FactsCache.of(repository) as cache:
        content = index_content(repository, objects)
        return _graph(content, cache)


def _listed(component: Component, view: TreeView, cache: FactsCache) -> Listed:
    numbers = Counter(role for role, _ in files_of(component, view).values())
    state, facts = _contract(component, view, cache)
    return Listed(
        component.id,
        component.parent,
        ContractState(as_text(component.contract), state, facts.version if facts is not None else None),
        numbers[Role.TESTS],
        numbers[Role.IMPLEMENTATION],
        view.entry(component.baseline.raw) is not None,
    )


def _contract(component: Component, view: TreeView, cache: FactsCache) -> tuple[str, ContractFacts | None]:
    facts = facts_at(view, component.contract, cache)
    if facts is None:
        return "missing" if view.entry(component.contract.raw) is None else "not-a-file", None
    return "readable" if facts.is_readable else "unreadable", facts


def _graph(content: Content, cache: FactsCache) -> ComponentGraph:
    components = content.components
    names = Names(components.ids)
    found: list[Dependency] = []
    for each in components.ids:
        _, facts = _contract(components[each], content.view, cache)
        if facts is not None:
            found += _dependencies(each, facts, names, components)
    needs: dict[str, set[str]] = {each: set() for each in components.ids}
    for edge in found:
        if edge.to is not None:
            needs[edge.source].add(edge.to)
    circles = cycles({name: sorted(others) for name, others in needs.items()})
    knots = [each.members for each in circles]
    parents = {each: components[each].parent for each in components.ids}
    return ComponentGraph(
        content.name,
        parents,
        tuple(sorted({each for each in parents.values() if each is not None} - parents.keys())),
        tuple(_marked(each, knots) for each in found),
        tuple(each.path for each in circles),
    )


def _dependencies(
    source: str, facts: ContractFacts, names: Names, components: Components
) -> list[Dependency]:
    found = []
    for reference, resolved in resolved_dependencies(facts, names):
        if resolved is None:
            found.append(Dependency(source, reference.name))
            continue
        across = is_across(components, source, resolved.id)
        found.append(Dependency(source, reference.name, resolved.id, resolved.how, is_across=across))
    return found + [Dependency(source, each.name, is_external=True) for each in facts.externals]


def _marked(edge: Dependency, knots: Sequence[frozenset[str]]) -> Dependency:
    return replace(edge, is_in_cycle=any({edge.source, edge.to} <= each for each in knots))
