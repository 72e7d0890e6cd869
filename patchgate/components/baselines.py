"""How the baselines of `HEAD` stand: what has drifted, what is stale, what belongs to no component.

Decides what is looked at (the tree of `HEAD` under its own policy) and the words of it for people. What is
drift and what is fresh is decided in the gates; the form for programs in `baselines_document`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from patchgate.check.gate import levelled
from patchgate.components.baseline import Hashes
from patchgate.components.component_cache import ComponentCache
from patchgate.components.staleness import LastVerified, describe, examine
from patchgate.components.staleness_gathering import Staleness
from patchgate.components.standing import Standing, standings, strays
from patchgate.components.verifications import CAPTURED, KIND, Verification, verifications
from patchgate.errors import UsageError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.git.tree_paths import TreePaths
from patchgate.ledger.since import iso
from patchgate.policy.component import NONE_DECLARED
from patchgate.policy.policies import Policies, usable
from patchgate.policy.policy import Policy, Profile
from patchgate.report import wording
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding


@dataclass(frozen=True, slots=True)
class Told:
    """One component: how it stands, when it was verified (None: it has no baseline), all that is found.

    `results` are those of the newest run of its tests on what its baseline records, as far as notes and the
    ledger of this machine know one.
    """

    standing: Standing
    verified: LastVerified | None
    findings: tuple[Finding, ...]
    results: Verification | None = None


@dataclass(frozen=True, slots=True)
class Baselines:
    """The components of a commit; `strays` lie among the baselines and are no component's."""

    commit: str
    now: float
    window: int
    components: tuple[Told, ...]
    strays: tuple[RepoPath, ...]

    @property
    def findings(self) -> list[Finding]:
        """Everything that was found, in the order of the components."""
        return [finding for each in self.components for finding in each.findings]

    @property
    def has_errors(self) -> bool:
        """Tell whether anything that was found refuses."""
        return any(finding.level is Level.ERROR for finding in self.findings)


def baselines_of_head(repository: Repository, now: float) -> Baselines:
    """Look at every component of `HEAD`, by the policy that it holds.

    Args:
        repository: where to look; a bare one has a `HEAD` too.
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
        policies = Policies(objects)
        policy = usable(policies.at(policies.key(root.oid)))
        paths = TreePaths(objects)
        with ComponentCache.of(repository) as cache:
            found = standings(objects, root.oid, policy, paths, cache)
            recorded = [each for standing in found if (each := standing.recorded) is not None]
            staleness = Staleness(objects, paths, cache, policy)
            verified = staleness.verified(head.oid, root.oid, recorded, now)
        oids = {each.component.id: each.baseline.oid for each in recorded}
        results = verifications(repository, objects, oids, now, kinds=(KIND, CAPTURED))
        by_id = {each.component: each for each in verified}
        window = policy.config.baselines.staleness_window_days
        told = tuple(
            replace(
                _told(each, by_id.get(each.component.id), policy, now), results=results.get(each.component.id)
            )
            for each in found
        )
        return Baselines(head.oid, now, window, told, tuple(strays(paths, root.oid, policy)))


def _told(standing: Standing, verified: LastVerified | None, policy: Policy, now: float) -> Told:
    drift = (
        said
        for finding in standing.findings
        if (said := levelled(policy, Profile.COMMIT, finding)) is not None
    )
    has_drifted = standing.has_drifted
    aged = () if verified is None else examine(verified, policy, now, has_drifted=has_drifted)
    return Told(standing, verified, (*drift, *aged))


def text(baselines: Baselines) -> list[str]:
    """Write it for people, as lines; nothing in them is foreign to a terminal."""
    lines: list[str] = []
    for told in baselines.components:
        lines += _component_lines(told, baselines)
    for path in baselines.strays:
        shown = wording.show_path(path)
        lines.append(f"{shown} belongs to no declared component: git rm {shown}")
    number = wording.count(len(baselines.components), "component")
    if not baselines.components:
        lines.append(NONE_DECLARED)
    else:
        lines.append(f"{number}: {wording.count_levels(baselines.findings) or 'no findings'}")
    return lines


def _results(found: Verification) -> str:
    """Say how the tests ended that passed last on what is recorded, and when they ran."""
    at = f"on {iso(found.seconds)} (by {'a note' if found.where == 'note' else 'the ledger'})"
    if found.tests is None:
        return f"its tests passed {at}; their command told no numbers"
    return f"tests: {', '.join(f'{number} {name}' for name, number in _in_order(found.tests))} {at}"


def _in_order(tests: Mapping[str, int]) -> list[tuple[str, int]]:
    """Give the numbers of a run in their usual order; errors only where there are any."""
    return [
        (name, tests[name])
        for name in ("passed", "failed", "errors", "skipped")
        if name != "errors" or tests[name]
    ]


def _component_lines(told: Told, baselines: Baselines) -> Iterator[str]:
    standing = told.standing
    name = standing.component.id
    if told.verified is None:
        yield f"{name}: no baseline" if standing.baseline is None else f"{name}: its baseline is no file"
    else:
        drift = "drifted" if standing.has_drifted else "no drift"
        age = describe(told.verified, baselines.window, baselines.now, has_drifted=standing.has_drifted)
        yield f"{name}: {drift}; {wording.safe(age)}"
    if standing.hashes != Hashes():
        yield f"  {standing.hashes.shown}"
    if told.results is not None:
        yield f"  {_results(told.results)}"
    for finding in told.findings:
        yield f"  {finding.level.value}[{finding.rule}]: {wording.safe(finding.message)}"
        place = wording.show_place(finding)
        if place:
            yield f"    --> {place}"
        for note in finding.notes:
            yield f"    {wording.safe(note)}"
        hint = wording.hint_of(finding)
        if hint:
            yield f"    help: {wording.safe(hint)}"
