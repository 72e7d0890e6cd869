"""The status of a tree's components: each compared with its baseline, at the cost of what changed.

Reads the tree of `HEAD` under its policy, and writes the text of `baseline status`. The gates decide what is
drift and what is fresh; `component_output` has the JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from patchgate.check.gate import at_policy_level
from patchgate.components.attestations import CAPTURED, KIND, Attestation, VerifiedNotes, find_attestations
from patchgate.components.baseline_file import Baseline, Hashes, hashes
from patchgate.components.component_cache import (
    ComponentCache,
    Equal,
    FactsCache,
    key_of,
    key_of_declaration,
    key_of_entries,
)
from patchgate.components.component_names import ComponentNames
from patchgate.components.drift import examine_state
from patchgate.components.drift_comparison import compare
from patchgate.components.drift_gathering import state_of
from patchgate.components.staleness import LastVerified, describe, examine
from patchgate.components.staleness_gathering import RecordedComponent, StalenessFacts, contract_dependencies
from patchgate.errors import UsageError
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.git.tree_view import TreePaths, TreeView
from patchgate.ledger.ledger import iso
from patchgate.policy.component import BASELINES, NONE_DECLARED, Component
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.settings import ComponentSettings
from patchgate.policy.tree_policies import TreePolicies, require_usable
from patchgate.report import wording
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding
from patchgate.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One component in a tree.

    `baseline` is the entry of its baseline in the tree, or None; `hashes` are those that the baseline records
    of contract, tests and implementation; `findings` are those of drift, at the levels of their rules;
    `unknown` are the names in its contract that mean no component.
    """

    component: Component
    baseline: Entry | None
    hashes: Hashes
    dependencies: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    is_equal: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def has_drifted(self) -> bool:
        """Whether there is a baseline and the files differ from it."""
        return self.baseline is not None and not self.is_equal

    @property
    def recorded(self) -> RecordedComponent | None:
        """The component with its baseline, for staleness; None if there is no baseline."""
        if self.baseline is None or not self.baseline.is_file:
            return None
        return RecordedComponent(self.component, self.baseline, self.dependencies, self.unknown)


def component_statuses(
    objects: Objects,
    tree: str,
    policy: Policy,
    paths: TreePaths,
    cache: ComponentCache,
    ids: Collection[str] | None = None,
    settled: Collection[str] = (),
) -> list[ComponentStatus]:
    """Compare the components of a tree with their baselines, sorted by id.

    Args:
        tree: the id of the tree.
        policy: declares the components.
        ids: the components to read; None means all.
        settled: those that are not checked for drift; they count as equal.

    Raises:
        UndecidedError: an object is missing.
    """
    components = policy.components
    asked = [components[name] for name in components.ids if ids is None or name in ids]
    wanted = [(tree, path) for component in asked for path in (component.baseline.raw, *component.folders)]
    entries = iter(paths.entries(wanted))
    all_ids = key_of(list(components.ids))
    found: list[ComponentStatus] = []
    unknown: list[tuple[int, str]] = []
    for component in asked:
        baseline = next(entries)
        here = [next(entries) for _ in component.folders]
        places = key_of_entries((b"", *component.folders), (baseline, *here))
        key = key_of("equal", all_ids, key_of_declaration(component), places)
        equal = cache.equal(key) if baseline is not None else None
        if equal is None:
            unknown.append((len(found), key))
        known = equal or Equal(Hashes(), ())
        found.append(
            ComponentStatus(
                component=component,
                baseline=baseline,
                hashes=known.hashes,
                dependencies=known.dependencies,
                is_equal=equal is not None,
                unknown=known.unknown,
            )
        )
    if unknown:
        _compare_uncached(TreeView(objects, tree), policy, cache, found, unknown, settled)
    return found


def _compare_uncached(
    view: TreeView,
    policy: Policy,
    cache: ComponentCache,
    found: list[ComponentStatus],
    unknown: Iterable[tuple[int, str]],
    settled: Collection[str],
) -> None:
    """Compare the components that are not cached; those equal to their baseline are added to the cache."""
    names = ComponentNames(policy.components.ids)
    with FactsCache.of(view.objects.repository) as facts:
        for index, key in unknown:
            component = found[index].component
            needs, lost = contract_dependencies(component, names, view, facts)
            known = replace(found[index], dependencies=needs, unknown=lost, is_equal=True)
            if component.id not in settled:
                state = state_of(component, view)
                raised, recorded = tuple(examine_state(state)), state.recorded
                known = replace(known, findings=raised, is_equal=False)
                if isinstance(recorded, Baseline):
                    same = compare(state.files, recorded).is_equal
                    known = replace(known, hashes=hashes(recorded), is_equal=same)
                if known.is_equal and not raised:
                    cache.keep_equal(key, Equal(known.hashes, needs, lost))
            found[index] = known


def unchanged_components(
    paths: TreePaths, tree: str, before: str, policy: Policy, known: Mapping[str, ComponentSettings]
) -> set[str]:
    """Return the components that are identical in two trees: declaration, baseline and folders.

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


def orphaned_baselines(paths: TreePaths, tree: str, policy: Policy) -> list[RepoPath]:
    """List the files in the baselines folder of a tree that belong to no component.

    Raises:
        UndecidedError: an object is missing.
    """
    components = policy.components
    known = {components[name].baseline.raw for name in components.ids}
    names = paths.names(tree, BASELINES.rstrip(b"/"))
    return [RepoPath(BASELINES + name) for name in sorted(names) if BASELINES + name not in known]


@dataclass(frozen=True, slots=True)
class BaselineStatus:
    """One component: its status, when it was verified (None without a baseline), and its findings.

    `results` are from the newest run of its tests on what its baseline records, as far as notes and the
    ledger of this machine know one.
    """

    status: ComponentStatus
    verified: LastVerified | None
    findings: tuple[Finding, ...]
    results: Attestation | None = None


@dataclass(frozen=True, slots=True)
class BaselineStatuses:
    """The components of a commit; `orphans` are files among the baselines that belong to no component."""

    commit: str
    now: float
    window: int
    components: tuple[BaselineStatus, ...]
    orphans: tuple[RepoPath, ...]

    @property
    def findings(self) -> list[Finding]:
        """All findings, in the order of the components."""
        return [finding for each in self.components for finding in each.findings]

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(finding.level is Level.ERROR for finding in self.findings)


def baselines_of_head(repository: Repository, now: float) -> BaselineStatuses:
    """Read the status of every component of `HEAD`, under its policy.

    Args:
        repository: a bare one is fine, it has a `HEAD`.
        now: seconds since the epoch.

    Raises:
        UsageError: there is no commit yet.
        ConfigError: its policy cannot be used.
        UndecidedError: git failed, or objects are missing.
    """
    with Objects(repository) as objects:
        head, root = objects.headers(["HEAD^{commit}", "HEAD^{tree}"])
        if head is None or root is None:
            raise UsageError("there is no commit yet, so there is no baseline", "commit first")
        policies = TreePolicies(objects)
        policy = require_usable(policies.at(policies.key(root.oid)))
        paths = TreePaths(objects)
        with ComponentCache.of(repository) as cache:
            found = component_statuses(objects, root.oid, policy, paths, cache)
            recorded = [each for status in found if (each := status.recorded) is not None]
            staleness = StalenessFacts(objects, paths, cache, policy)
            notes = VerifiedNotes(objects, now)
            verified = staleness.verified(head.oid, root.oid, recorded, notes)
        oids = {each.component.id: each.baseline.oid for each in recorded}
        results = find_attestations(repository, notes, oids, kinds=(KIND, CAPTURED))
        by_id = {each.component: each for each in verified}
        statuses: list[BaselineStatus] = []
        for status in found:
            name = status.component.id
            levels = (at_policy_level(policy, Profile.COMMIT, finding) for finding in status.findings)
            drift = [finding for finding in levels if finding is not None]
            if (known := by_id.get(name)) is not None:
                drift += examine(known, policy, now, has_drifted=status.has_drifted)
            statuses.append(BaselineStatus(status, known, tuple(drift), results.get(name)))
        return BaselineStatuses(
            commit=head.oid,
            now=now,
            window=policy.config.baselines.staleness_window_days,
            components=tuple(statuses),
            orphans=tuple(orphaned_baselines(paths, root.oid, policy)),
        )


def status_text(baselines: BaselineStatuses) -> list[str]:
    """Write the status as lines of text, safe for a terminal."""
    lines = [line for each in baselines.components for line in _component_lines(each, baselines)]
    for path in baselines.orphans:
        shown = wording.show_path(path)
        lines.append(f"{shown} belongs to no declared component: git rm {path.in_shell}")
    number = wording.count(len(baselines.components), "component")
    found = wording.count_levels(baselines.findings) or "no findings"
    return [*lines, f"{number}: {found}" if baselines.components else NONE_DECLARED]


def _test_results(found: Attestation) -> str:
    """Describe the newest test run that passed on the recorded files: counts and time."""
    at = f"on {iso(found.seconds)} ({'note' if found.where == 'note' else 'ledger'})"
    if found.tests is None:
        return f"its tests passed {at}; the command reported no counts"
    names = [
        name for name in ("passed", "failed", "errors", "skipped") if name != "errors" or found.tests[name]
    ]
    return f"tests: {', '.join(f'{found.tests[name]} {name}' for name in names)} {at}"


def _component_lines(each: BaselineStatus, baselines: BaselineStatuses) -> Iterator[str]:
    status = each.status
    name = status.component.id
    if each.verified is None:
        yield (
            f"{name}: no baseline"
            if status.baseline is None
            else f"{name}: its baseline is not a regular file"
        )
    else:
        drift = "drifted" if status.has_drifted else "no drift"
        age = describe(each.verified, baselines.window, baselines.now, has_drifted=status.has_drifted)
        yield f"{name}: {drift}; {wording.safe(age)}"
    if status.hashes != Hashes():
        yield f"  {status.hashes.shown}"
    if each.results is not None:
        yield f"  {_test_results(each.results)}"
    for finding in each.findings:
        yield f"  {finding.level.value}[{finding.rule}]: {wording.safe(finding.message)}"
        place = wording.show_place(finding)
        if place:
            yield f"    --> {place}"
        for note in finding.notes:
            yield f"    {wording.safe(note)}"
        hint = wording.hint_of(finding)
        if hint:
            yield f"    help: {wording.safe(hint)}"
