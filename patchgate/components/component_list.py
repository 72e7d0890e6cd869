"""The list of components (`component list`) and the graph of their dependencies (`component graph`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from patchgate.components.baseline_status import component_statuses
from patchgate.components.component_cache import ComponentCache, FactsCache, facts_at
from patchgate.components.component_names import (
    ComponentNames,
    How,
    find_cycles,
    is_across,
    resolve_dependencies,
)
from patchgate.components.contract_facts import ContractFacts
from patchgate.components.drift_gathering import files_of
from patchgate.components.policy_tree import index_tree, tree_to_capture
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.tree_view import TreePaths, TreeView
from patchgate.policy.component import Component, Components, Role
from patchgate.report.json import as_text
from patchgate.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class ContractFileState:
    """A component's contract file in the tree; `version` is None if no version can be read.

    `state` is readable, unreadable (not JSON, or of another shape), missing, or not-a-file.
    """

    path: str
    state: str
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ListedComponent:
    """One component in the list; `tests` and `implementation` are numbers of files."""

    id: str
    parent: str | None
    contract: ContractFileState
    tests: int
    implementation: int
    has_baseline: bool


@dataclass(frozen=True, slots=True)
class Dependency:
    """One dependency of a contract: `name` as written, `to` the component that it means, or None.

    `how` is the matching step. `is_external`: whether it is listed in `external_dependencies`.
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
    """The component tree and the dependencies; groups are parents that are not components."""

    content: str
    parents: dict[str, str | None]
    groups: tuple[str, ...]
    dependencies: tuple[Dependency, ...]
    cycles: tuple[tuple[str, ...], ...]


def list_components(repository: Repository) -> tuple[str, tuple[ListedComponent, ...]]:
    """List the components of the index (bare: of `HEAD`), sorted by id, with the name of that tree.

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: something cannot be read.
    """
    with Objects(repository) as objects, FactsCache.of(repository) as cache:
        content = index_tree(repository, objects)
        components = content.components
        return content.name, tuple(
            _list_component(components[each], content.view, cache) for each in components.ids
        )


def build_graph(repository: Repository) -> ComponentGraph:
    """Build the graph of the components of the index (bare: of `HEAD`).

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: something cannot be read.
    """
    with Objects(repository) as objects, FactsCache.of(repository) as cache:
        content = index_tree(repository, objects)
        components = content.components
        found = list(_dependencies(components, content.view, cache))
    needs: dict[str, set[str]] = {each: set() for each in components.ids}
    for edge in found:
        if edge.to is not None:
            needs[edge.source].add(edge.to)
    circles = find_cycles({name: sorted(others) for name, others in needs.items()})
    parents = {each: components[each].parent for each in components.ids}
    return ComponentGraph(
        content=content.name,
        parents=parents,
        groups=tuple(sorted({each for each in parents.values() if each is not None} - parents.keys())),
        dependencies=tuple(
            replace(edge, is_in_cycle=any({edge.source, edge.to} <= each.members for each in circles))
            for edge in found
        ),
        cycles=tuple(each.path for each in circles),
    )


def changed_components(repository: Repository) -> frozenset[str]:
    """Find the components of the index that have no baseline, or differ from it.

    Raises:
        UsageError: there is no working tree.
        ConfigError: the policy there cannot be used.
        UndecidedError: something cannot be read.
    """
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        content = tree_to_capture(repository, objects, store, from_disk=False)
        with ComponentCache.of(repository) as cache:
            found = component_statuses(objects, content.tree, content.policy, TreePaths(objects), cache)
    return frozenset(each.component.id for each in found if each.baseline is None or each.has_drifted)


def affected_part(graph: ComponentGraph, changed: Collection[str]) -> ComponentGraph:
    """Return the part of a graph that some components affect: what depends on them, and what contains them.

    A change of a child affects its parents, because their tests run again with it.
    """
    above: dict[str, set[str]] = {name: set() for name in graph.parents}
    for edge in graph.dependencies:
        if edge.to is not None:
            above[edge.to].add(edge.source)
    for name, parent in graph.parents.items():
        if parent in graph.parents:
            above[name].add(parent)
    found, waiting = set(changed), list(changed)
    while waiting:
        new = above[waiting.pop()] - found
        found |= new
        waiting += new
    parents = {name: parent for name, parent in graph.parents.items() if name in found}
    return replace(
        graph,
        parents=parents,
        groups=tuple(each for each in graph.groups if each in parents.values()),
        dependencies=tuple(each for each in graph.dependencies if each.source in found),
        cycles=tuple(each for each in graph.cycles if found.issuperset(each)),
    )


def _list_component(component: Component, view: TreeView, cache: FactsCache) -> ListedComponent:
    numbers = Counter(role for role, _ in files_of(component, view).values())
    state, facts = _read_contract(component, view, cache)
    version = facts.version if facts is not None else None
    return ListedComponent(
        id=component.id,
        parent=component.parent,
        contract=ContractFileState(as_text(component.contract), state, version),
        tests=numbers[Role.TESTS],
        implementation=numbers[Role.IMPLEMENTATION],
        has_baseline=view.entry(component.baseline.raw) is not None,
    )


def _read_contract(
    component: Component, view: TreeView, cache: FactsCache
) -> tuple[str, ContractFacts | None]:
    facts = facts_at(view, component.contract, cache)
    if facts is None:
        return "missing" if view.entry(component.contract.raw) is None else "not-a-file", None
    return "readable" if facts.is_readable else "unreadable", facts


def _dependencies(components: Components, view: TreeView, cache: FactsCache) -> Iterator[Dependency]:
    names = ComponentNames(components.ids)
    for source in components.ids:
        _, facts = _read_contract(components[source], view, cache)
        if facts is None:
            continue
        for reference, resolved in resolve_dependencies(facts, names):
            if resolved is None:
                yield Dependency(source, reference.name)
            else:
                across = is_across(components, source, resolved.id)
                yield Dependency(source, reference.name, resolved.id, resolved.how, is_across=across)
        yield from (Dependency(source, each.name, is_external=True) for each in facts.externals)
