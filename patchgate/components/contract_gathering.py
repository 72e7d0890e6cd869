"""Gather the contracts that a change touches, and what their checks need from the tree.

A change validates the contracts that it touches, those that depend on them, and those that name something
that it removes. So a change of only the implementation reads no contract, and a new finding appears with the
change that causes it. `components.contracts` makes the findings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from patchgate.components.component_cache import FactsCache, facts_at
from patchgate.components.component_facts import ContractsView
from patchgate.components.component_names import ComponentNames, Resolved, resolve_dependencies
from patchgate.components.contract_facts import ContractFacts, Reference
from patchgate.components.external_dependencies import ExternalDependencies, ends_of, parts_of
from patchgate.git.model import GITLINK, SYMLINK, FileChange
from patchgate.git.path import RepoPath
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component, Components, Role, anchored, literal_start, outermost
from patchgate.policy.glob_matching import PatternSet
from patchgate.policy.policy import Policy

_KINDS = {SYMLINK: "a symlink", GITLINK: "a submodule"}
# Tests written by hand are smaller; for larger ones, budgets are not checked. Python's are
# parsed, at about a second for each MiB.
_MOST_TESTS = 16 << 20
_MOST_PYTHON = 4 << 20
_MOST_SUGGESTIONS = 2000


def shared_files(
    components: Components, view: TreeView, ids: Collection[str]
) -> dict[RepoPath, tuple[str, ...]]:
    """Find the files that some components share with others, each with all that claim it.

    Raises:
        UndecidedError: an object is missing.
    """
    if not ids:
        return {}
    starts = sorted((folder, name) for name in components.ids for folder in components[name].folders)
    found: dict[RepoPath, tuple[str, ...]] = {}
    for place in outermost({each for name in ids for each in _meetings(components[name], starts)}):
        for path in view.below(place):
            claims = tuple(component.id for component, _ in components.claims(path))
            if len(claims) > 1 and any(name in ids for name in claims):
                found[path] = claims
    return found


def _meetings(component: Component, starts: list[tuple[bytes, str]]) -> Iterator[bytes]:
    """Yield the folders that can contain files of a component and of another one."""
    for folder in component.folders:
        for above in {*RepoPath(folder).parents(), folder}:
            at = bisect_left(starts, (above, ""))
            while at < len(starts) and starts[at][0] == above:
                if starts[at][1] != component.id:
                    yield folder
                    break
                at += 1
        inside = folder + b"/" if folder else b""
        at = bisect_left(starts, (inside, ""))
        while at < len(starts) and starts[at][0].startswith(inside):
            if starts[at][1] != component.id:
                yield starts[at][0]
            at += 1


def contracts_of_change(
    policy: Policy,
    view: TreeView,
    files: Sequence[FileChange],
    cache: FactsCache,
    otherwise: Collection[str] = (),
) -> ContractsView | None:
    """Gather what a change can have broken; None if that is nothing.

    Args:
        policy: declares the components.
        view: the tree that the change results in.
        files: what it touches.
        otherwise: the components whose declaration changed (`changed_declarations`).

    Raises:
        UndecidedError: an object is missing.
    """
    gatherer = _Gatherer(policy, view, cache)
    gatherer.change(files)
    gatherer.declared(otherwise)
    return gatherer.found()


def contracts_of_tree(
    policy: Policy, view: TreeView, cache: FactsCache, ids: Collection[str] | None = None
) -> ContractsView | None:
    """Gather all contracts of a tree; None if there is none.

    Args:
        policy: declares the components.
        ids: the components whose contracts are validated; None is all.

    Raises:
        UndecidedError: an object is missing.
    """
    every = policy.components.ids
    gatherer = _Gatherer(policy, view, cache)
    gatherer.whole(every if ids is None else sorted(set(ids).intersection(every)))
    return gatherer.found()


def changed_declarations(policy: Policy, before: Policy) -> set[str]:
    """Return the components whose declaration changed or was removed."""
    declared, known = policy.config.components, before.config.components
    if policy.config.baselines.source_roots != before.config.baselines.source_roots:
        # Every external dependency may now be somewhere else.
        return {*declared, *known}
    return {name for name in {*declared, *known} if declared.get(name) != known.get(name)}


class _Gatherer:
    """Collects a view; each path of the tree is read once."""

    def __init__(self, policy: Policy, view: TreeView, cache: FactsCache) -> None:
        self._components = policy.components
        self._roots = policy.config.baselines.source_roots
        self._view = view
        self._cache = cache
        self._names = ComponentNames(self._components.ids)
        self._externals = ExternalDependencies(self._roots, view)
        self._facts: dict[str, ContractFacts | None] = {}
        self._not_files: dict[str, str] = {}
        self._asked: set[str] = set()
        self._owners: dict[str, str | None] = {}
        self._tests: dict[str, Mapping[RepoPath, bytes]] = {}
        self._empty_globs: dict[str, tuple[str, ...]] = {}
        self._shared: dict[RepoPath, tuple[str, ...]] = {}

    def whole(self, ids: Iterable[str]) -> None:
        for name in ids:
            component = self._components[name]
            self._asked.add(name)
            self._ask_budgets(component)
            self._ask_globs(component, component.globs)
        self._shared.update(shared_files(self._components, self._view, self._asked))

    def change(self, files: Sequence[FileChange]) -> None:
        touched: set[str] = set()
        tested: set[str] = set()
        gone: dict[str, list[RepoPath]] = {}
        for file in files:
            claims = self._components.claims(file.path)
            for component, role in claims:
                if role is Role.CONTRACT:
                    touched.add(component.id)
                elif role is Role.TESTS:
                    tested.add(component.id)
                if file.new is None:
                    gone.setdefault(component.id, []).append(file.path)
            if len(claims) > 1 and file.old is None:
                self._shared[file.path] = tuple(component.id for component, _ in claims)
        self.whole(touched)
        for name in tested - touched:
            self._ask_budgets(self._components[name])
        for name, paths in gone.items():
            component = self._components[name]
            matched = [each for each in component.globs if any(_matches(each[1], path) for path in paths)]
            self._ask_globs(component, matched)
        if touched:
            self._asked.update(self._dependents(touched, self._names))
        if any(file.is_removed for file in files):
            self._asked.update(self._bereft(files))

    def declared(self, otherwise: Collection[str]) -> None:
        """Add components with a changed or removed declaration, their children and their dependents."""
        if not otherwise:
            return
        ids = self._components.ids
        self.whole(name for name in ids if {name, *self._components.ancestors(name)} & set(otherwise))
        self._asked.update(self._dependents(otherwise, ComponentNames({*ids, *otherwise})))
        # A module of no component may belong to one now.
        self._asked.update(
            name for name in ids if any(self._owner(each) in otherwise for each in self._unknown(name))
        )

    def found(self) -> ContractsView | None:
        if not (self._asked or self._tests or self._empty_globs or self._shared):
            return None
        externals: dict[str, bool] = {}
        owners: dict[str, str] = {}
        if self._asked:
            # A cycle can pass through any of them.
            for name in self._components.ids:
                self._facts_of(name)
            outside = {each for name in self._asked for each in self._outside(name)}
            externals = {each: self._externals.has(each) for each in sorted(outside)}
            unknown = {each for name in self._asked for each in self._unknown(name) if externals[each]}
            owners = {each: owner for each in sorted(unknown) if (owner := self._owner(each)) is not None}
        missing = [name for name, is_there in externals.items() if not is_there]
        modules = sorted({like for name in missing for like in self._externals.like(name)})
        return ContractsView(
            components=self._components,
            asked=frozenset(self._asked),
            facts=dict(sorted(self._facts.items())),
            not_files=self._not_files,
            externals=externals,
            tests=self._tests,
            empty_globs=self._empty_globs,
            shared=dict(sorted(self._shared.items())),
            modules=tuple(modules[:_MOST_SUGGESTIONS]),
            owners=owners,
        )

    def _facts_of(self, name: str) -> ContractFacts | None:
        if name in self._facts:
            return self._facts[name]
        path = self._components[name].contract
        facts = self._facts[name] = facts_at(self._view, path, self._cache)
        if facts is None:
            entry = self._view.entry(path.raw)
            if entry is not None:
                self._not_files[name] = _KINDS.get(entry.mode, "not a regular file")
            elif self._view.exists(path.raw):
                self._not_files[name] = "a folder"
        return facts

    def _needs(self, name: str, names: ComponentNames) -> tuple[tuple[Reference, Resolved | None], ...]:
        facts = self._facts_of(name)
        return resolve_dependencies(facts, names) if facts is not None else ()

    def _outside(self, name: str) -> list[str]:
        """List the names in a contract that are not components: externals, and unmatched dependencies."""
        facts = self._facts_of(name)
        return [] if facts is None else [*(each.name for each in facts.externals), *self._unknown(name)]

    def _unknown(self, name: str) -> list[str]:
        """List the dependencies of a contract that match no component."""
        return [each.name for each, found in self._needs(name, self._names) if found is None]

    def _owner(self, name: str) -> str | None:
        """Find the one component that owns the file of a name; None if there is none, or several."""
        if name not in self._owners:
            found = {owner for place in self._externals.places(name) for owner in self._claiming(place)}
            self._owners[name] = min(found) if len(found) == 1 else None
        return self._owners[name]

    def _claiming(self, place: bytes) -> set[str]:
        """Return the components whose a file is; of a folder those that meet there, or the one holding it."""
        if self._view.entry(place) is not None:
            return {component.id for component, _ in self._components.claims(RepoPath(place))}
        path = RepoPath(place)
        near: set[str] = set()
        holds = False
        for name in self._components.ids:
            for folder in self._components[name].folders:
                is_above = not folder or path.is_within(folder)
                if is_above or RepoPath(folder).is_within(place):
                    near.add(name)
                    holds = holds or is_above
        if len(near) != 1:
            return near
        (component,) = (self._components[name] for name in near)
        # A folder that it shares is not owned by it.
        is_its = holds and any(component.role(each) is not None for each in self._view.below(place))
        return near if is_its else set()

    def _dependents(self, touched: Collection[str], names: ComponentNames) -> set[str]:
        return {
            name
            for name in self._components.ids
            if any(each is not None and each.id in touched for _, each in self._needs(name, names))
        }

    def _bereft(self, files: Sequence[FileChange]) -> set[str]:
        """Find the components whose contracts name something that the change removes."""
        old = {file.path.raw: file.old for file in files}
        before = ExternalDependencies(self._roots, self._view.with_overlay(old))
        gone = [file for file in files if file.is_removed]
        # If a symlink is removed, names with other endings are lost too.
        has_links = any(file.old is not None and not file.old.is_file for file in gone)
        parts = frozenset(part for file in gone for part in parts_of(file.path.raw))

        def is_lost(name: str) -> bool:
            if not has_links and parts.isdisjoint(ends_of(name)):
                return False
            return not self._externals.has(name) and before.has(name)

        return {name for name in self._components.ids if any(map(is_lost, self._outside(name)))}

    def _ask_globs(self, component: Component, globs: Iterable[tuple[Role, str]]) -> None:
        empty = tuple(
            glob
            for _, glob in globs
            if not any(_matches(glob, path) for path in self._view.below(literal_start(glob)))
        )
        if empty:
            self._empty_globs[component.id] = tuple(dict.fromkeys(empty))

    def _ask_budgets(self, component: Component) -> None:
        facts = self._facts_of(component.id)
        if facts is None or not facts.budgets:
            return
        found: dict[RepoPath, str] = {}
        for role, glob in component.globs:
            if role is Role.TESTS:
                for path, entry in self._view.below(literal_start(glob)).items():
                    if entry.is_file and component.role(path) is Role.TESTS:
                        found[path] = entry.oid
        objects = self._view.objects
        sizes = objects.sizes(found.values())
        python = sum(sizes[oid] for path, oid in found.items() if path.raw.endswith(b".py"))
        if python <= _MOST_PYTHON and sum(sizes[oid] for oid in found.values()) <= _MOST_TESTS:
            self._tests[component.id] = {path: objects.read(found[path]) for path in sorted(found)}


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> PatternSet:
    return PatternSet([anchored(glob)], folded=False)


def _matches(glob: str, path: RepoPath) -> bool:
    return _compiled(glob).match(path.raw) is not None
