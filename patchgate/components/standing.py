"""How the components of a whole tree stand: each beside its baseline, at the cost of what has changed.

Decides which components have to be looked at: those whose declaration, baseline or folders are not what was
once found equal. What differs is said by the gate `drift`; when a component was verified, in `staleness`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from patchgate.components.baseline import Baseline, Hashes, hashes
from patchgate.components.component_cache import (
    ComponentCache,
    Equal,
    key_of,
    key_of_declaration,
    key_of_entries,
)
from patchgate.components.contract_cache import FactsCache
from patchgate.components.drift import examine_state
from patchgate.components.drift_comparison import compare
from patchgate.components.drift_gathering import state_of
from patchgate.components.names import Names
from patchgate.components.staleness_gathering import WithBaseline, needs_of
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.tree_paths import TreePaths
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import BASELINES, Component
from patchgate.policy.policy import Policy
from patchgate.policy.settings import ComponentSettings
from patchgate.report.verdict import Finding


@dataclass(frozen=True, slots=True)
class Standing:
    """One component in a tree.

    `baseline` is what the tree holds there, None where nothing; `hashes` are those that the baseline records
    of contract, tests and implementation; `findings` are those of drift, at the levels of their rules;
    `unknown` are the names in its contract that mean no component.
    """

    component: Component
    baseline: Entry | None
    hashes: Hashes
    dependencies: tuple[str, ...]
    findings: tuple[Finding, ...]
    is_equal: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def has_drifted(self) -> bool:
        """Tell whether its files are not what its baseline records; a baseline that is there, that is."""
        return self.baseline is not None and not self.is_equal

    @property
    def recorded(self) -> WithBaseline | None:
        """What can be asked for its age; None where there is no baseline."""
        if self.baseline is None or not self.baseline.is_file:
            return None
        return WithBaseline(self.component, self.baseline, self.dependencies, self.unknown)


def standings(
    objects: Objects,
    tree: str,
    policy: Policy,
    paths: TreePaths,
    cache: ComponentCache,
    ids: Collection[str] | None = None,
    settled: Collection[str] = (),
) -> list[Standing]:
    """Look at the components of a tree, sorted by id.

    Args:
        tree: the id of the tree.
        policy: declares the components.
        ids: the components that are asked for; None: all.
        settled: those of which drift is not asked; they count as equal.

    Raises:
        UndecidedError: an object is missing.
    """
    components = policy.components
    asked = [components[name] for name in components.ids if ids is None or name in ids]
    wanted = [(tree, path) for component in asked for path in (component.baseline.raw, *component.folders)]
    entries = iter(paths.entries(wanted))
    all_ids = key_of(list(components.ids))
    found: list[Standing] = []
    unknown: list[tuple[int, str]] = []
    for component in asked:
        baseline = next(entries)
        here = [next(entries) for _ in component.folders]
        places = key_of_entries((b"", *component.folders), (baseline, *here))
        key = key_of("equal", all_ids, key_of_declaration(component), places)
        equal = cache.equal(key) if baseline is not None else None
        if equal is None:
            unknown.append((len(found), key))
            found.append(Standing(component, baseline, Hashes(), (), ()))
        else:
            known = equal.dependencies, (), True, equal.unknown
            found.append(Standing(component, baseline, equal.hashes, *known))
    if unknown:
        _look(TreeView(objects, tree), policy, cache, found, unknown, settled)
    return found


def _look(
    view: TreeView,
    policy: Policy,
    cache: ComponentCache,
    found: list[Standing],
    unknown: Iterable[tuple[int, str]],
    settled: Collection[str],
) -> None:
    """Look at the components of which nothing is known; what is equal to its baseline is remembered."""
    names = Names(policy.components.ids)
    with FactsCache.of(view.objects.repository) as facts:
        for index, key in unknown:
            component, baseline = found[index].component, found[index].baseline
            needs, lost = needs_of(component, names, view, facts)
            if component.id in settled:
                found[index] = Standing(component, baseline, Hashes(), needs, (), True, lost)
                continue
            state = state_of(component, view)
            raised = list(examine_state(state))
            same = isinstance(state.recorded, Baseline) and compare(state.files, state.recorded).is_equal
            recorded = hashes(state.recorded) if isinstance(state.recorded, Baseline) else Hashes()
            if same and not raised:
                cache.keep_equal(key, Equal(recorded, needs, lost))
            found[index] = Standing(component, baseline, recorded, needs, tuple(raised), same, lost)


def alike(
    paths: TreePaths, tree: str, before: str, policy: Policy, known: Mapping[str, ComponentSettings]
) -> set[str]:
    """Name the components that are in two trees the very same: declaration, baseline and folders.

    Args:
        known: how the components were declared before.

    Raises:
        UndecidedError: an object is missing.
    """
    components = policy.components
    same = [name for name in components.ids if components[name].settings == known.get(name)]
    wanted = [
        (name, path) for name in same for path in (components[name].baseline.raw, *components[name].folders)
    ]
    sides = [paths.entries([(side, path) for _, path in wanted]) for side in (tree, before)]
    unlike = {name for (name, _), new, old in zip(wanted, *sides, strict=True) if new != old}
    return set(same) - unlike


def strays(paths: TreePaths, tree: str, policy: Policy) -> list[RepoPath]:
    """List what lies among the baselines of a tree and is no component's.

    Raises:
        UndecidedError: an object is missing.
    """
    components = policy.components
    known = {components[name].baseline.raw for name in components.ids}
    names = paths.names(tree, BASELINES.rstrip(b"/"))
    return [RepoPath(BASELINES + name) for name in sorted(names) if BASELINES + name not in known]
