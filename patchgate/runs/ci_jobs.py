"""The jobs that take components through a run on several machines, in waves: pure.

A job is `run start COMPONENT --phase PHASE`. A component is one job; a parent whose children have jobs has a
second one, for its integration. Each wave needs only those before it. The engine of the CI schedules.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from graphlib import TopologicalSorter

from patchgate.components.component_list import ComponentGraph
from patchgate.runs.phases import Phase, Schedule, Scheduling
from patchgate.values import dataclass

_DIGITS = 12


@dataclass(frozen=True, slots=True)
class CiJob:
    """One job: it takes a component through all phases up to one; `needs` are the jobs that come before."""

    component: str
    phase: Phase
    needs: tuple[str, ...]
    wave: int

    @property
    def name(self) -> str:
        """The name of the job; no engine has a word with a colon."""
        return f"{self.component}:{self.phase.value}"

    @property
    def file(self) -> str:
        """The name of its files, without a suffix: they sort by wave."""
        return f"{self.wave:03}-{self.component}-{self.phase.value}"


@dataclass(frozen=True, slots=True)
class CiPlan:
    """The jobs of one run, wave by wave; jobs of one wave need nothing of each other.

    `run` is the id of the run that they share; it depends on the commit and the jobs alone.
    """

    run: str
    waves: tuple[tuple[CiJob, ...], ...]


def plan_jobs(graph: ComponentGraph, ids: Collection[str], commit: str) -> CiPlan:
    """Plan the jobs of some components of a graph.

    Args:
        graph: what the components need of each other.
        ids: those that get jobs; the others count as done.
        commit: the id of the commit that the jobs check out.

    Raises:
        UsageError: components need each other in a cycle.
    """
    needs: dict[str, set[str]] = {name: set() for name in graph.parents}
    for edge in graph.dependencies:
        if edge.to is not None:
            needs[edge.source].add(edge.to)
    # It refuses cycles as `run start` does.
    Schedule(phases={}, needs=needs, parents=graph.parents, scheduling=Scheduling.PHASED, most=1)
    before = _needs_of_jobs(graph.parents, needs, ids)
    waves: list[tuple[CiJob, ...]] = []
    sorter = TopologicalSorter(before)
    sorter.prepare()
    while ready := sorted(sorter.get_ready()):
        waves.append(
            tuple(
                CiJob(name, phase, tuple(sorted(_name(each) for each in before[name, phase])), len(waves) + 1)
                for name, phase in ready
            )
        )
        sorter.done(*ready)
    return CiPlan(_run_id(commit, waves), tuple(waves))


_Job = tuple[str, Phase]


def _needs_of_jobs(
    parents: Mapping[str, str | None], needs: Mapping[str, set[str]], ids: Collection[str]
) -> dict[_Job, set[_Job]]:
    """Say which jobs there are, and which of the others each of them needs."""
    children: dict[str, list[str]] = {}
    for name in ids:
        children.setdefault(parents[name] or "", []).append(name)
    first, last = {}, {}
    for name in ids:
        is_parent = name in parents.values()
        first[name] = Phase.INTEGRATION if is_parent and name not in children else Phase.IMPLEMENTATION
        last[name] = Phase.INTEGRATION if is_parent else Phase.IMPLEMENTATION
    found: dict[_Job, set[_Job]] = {}
    for name in ids:
        found[name, first[name]] = {(other, first[other]) for other in needs[name] if other in first}
        if name in children:
            found[name, last[name]] = {(name, first[name])} | {(each, last[each]) for each in children[name]}
    return found


def _name(job: _Job) -> str:
    return f"{job[0]}:{job[1].value}"


def _run_id(commit: str, waves: list[tuple[CiJob, ...]]) -> str:
    jobs = [[job.name, *job.needs] for wave in waves for job in wave]
    digest = hashlib.sha256(f"{commit}\n{json.dumps(jobs)}".encode("ascii")).hexdigest()
    return f"r-{digest[:_DIGITS]}"
