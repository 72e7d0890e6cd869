"""Jobs in the forms that CI engines read: matrices for GitHub Actions, a child pipeline for GitLab, and JSON.

Sources: GitHub, “Usage limits” and `jobs.<job_id>.strategy.matrix`; GitLab, CI/CD YAML syntax, `needs`,
`stages` and `trigger:include`. A JSON document is valid YAML.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patchgate.components.component_list import ComponentGraph
from patchgate.components.component_output import graph_json, graph_schema
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.git.revisions import head_commit
from patchgate.report.schema import Schema, Shape, about, maybe
from patchgate.runs.ci_jobs import CiJob, CiPlan, plan_jobs
from patchgate.runs.phases import Phase
from patchgate.storage.record import Json

FOLDER = "patchgate-jobs"
"""Where the jobs of a pipeline put what they hand on: events, and what they staged as a patch."""
MOST_IN_MATRIX = 256
MOST_NEEDS = 50
MERGE = "merge"
_NOTHING = "every component is as its baseline records it"


def write_jobs(
    repository: Repository, whole: ComponentGraph, graph: ComponentGraph, form: str
) -> tuple[str, Sequence[str]]:
    """Write the jobs of the components of a graph as `github`, `gitlab` or `json`; return also the warnings.

    Args:
        whole: all components.
        graph: the part of it that gets jobs.
        form: the format.

    Raises:
        UsageError: components need each other in a cycle; as JSON, `jobs` is null then.
        UndecidedError: HEAD cannot be read.
    """
    if form == "json" and whole.cycles:
        return graph_json(graph, {"jobs": None}), ()
    with Objects(repository) as objects:
        commit = head_commit(objects) or ""
    plan = plan_jobs(whole, graph.parents.keys(), commit)
    if form == "json":
        return graph_json(graph, {"jobs": _plain(plan)}), ()
    if form == "github":
        return json.dumps(list(github_matrices(plan))) + "\n", github_limits(plan)
    return json.dumps(gitlab_pipeline(plan), indent=2) + "\n", gitlab_limits(plan)


def _plain(plan: CiPlan) -> Json:
    waves = [
        [
            {
                "name": job.name,
                "component": job.component,
                "phase": job.phase.value,
                "needs": list(job.needs),
                "file": job.file,
            }
            for job in wave
        ]
        for wave in plan.waves
    ]
    return {"run": plan.run, "waves": waves}


def json_schema() -> Schema:
    """Build the JSON Schema of `component graph --format json`."""
    job: Shape = {
        "name": str,
        "component": str,
        "phase": Phase,
        "needs": about([str], "names of jobs of earlier waves"),
        "file": about(str, "for its files; sorts by wave"),
    }
    jobs = about(maybe({"run": str, "waves": [[job]]}), "null: components need each other in a cycle")
    return graph_schema({"jobs": jobs})


def github_matrices(plan: CiPlan) -> Iterator[Mapping[str, Json]]:
    """Return a matrix for each wave; a wave that is too long for one is continued in the next."""
    for wave in plan.waves:
        for start in range(0, len(wave), MOST_IN_MATRIX):
            jobs = wave[start : start + MOST_IN_MATRIX]
            yield {
                "include": [
                    {"component": job.component, "phase": job.phase.value, "run": plan.run, "file": job.file}
                    for job in jobs
                ]
            }


def github_limits(plan: CiPlan) -> list[str]:
    """Say which waves need more than one matrix."""
    return [
        f"wave {number} has {len(wave)} jobs, and a matrix of GitHub has at most {MOST_IN_MATRIX}: "
        "the rest is in the next matrix"
        for number, wave in enumerate(plan.waves, 1)
        if len(wave) > MOST_IN_MATRIX
    ]


def gitlab_pipeline(plan: CiPlan) -> Mapping[str, Any]:
    """Return a child pipeline: a stage for each wave, a job for each component, and a job that merges all.

    A job that needs more jobs than GitLab allows has no `needs`: it waits for all earlier stages.
    """
    stages = [f"wave-{number}" for number in range(1, len(plan.waves) + 1)]
    pipeline: dict[str, Any] = {"stages": [*stages, MERGE]}
    for wave, stage in zip(plan.waves, stages, strict=True):
        for job in wave:
            made: dict[str, Any] = {
                "stage": stage,
                "script": [_script(plan.run, job)],
                "artifacts": {"when": "always", "paths": [f"{FOLDER}/"]},
            }
            if len(job.needs) <= MOST_NEEDS:
                made["needs"] = list(job.needs)
            pipeline[job.name] = made
    if not plan.waves:
        return {**pipeline, MERGE: {"stage": MERGE, "script": [f"echo {shlex.quote(_NOTHING)}"]}}
    lines = (
        *_receive(),
        f"git patchgate run merge {FOLDER}/*.jsonl",
        f"git patchgate run show {plan.run} --format events >{plan.run}.jsonl",
        f"git diff --cached --binary HEAD >{plan.run}.patch",
    )
    pipeline[MERGE] = {
        "stage": MERGE,
        "when": "always",
        "script": ["\n".join(lines)],
        "artifacts": {"paths": [f"{plan.run}.jsonl", f"{plan.run}.patch"]},
    }
    return pipeline


def gitlab_limits(plan: CiPlan) -> list[str]:
    """Say which jobs need more jobs than GitLab allows."""
    return [
        f"{job.name} needs {len(job.needs)} jobs, and GitLab allows {MOST_NEEDS}: "
        "it waits for all jobs of the earlier waves"
        for wave in plan.waves
        for job in wave
        if len(job.needs) > MOST_NEEDS
    ]


def _script(run: str, job: CiJob) -> str:
    """Write what a job does; each word is quoted for the shell."""
    component, phase, file = (
        shlex.quote(each) for each in (job.component, job.phase.value, f"{FOLDER}/{job.file}")
    )
    before = [*_receive(), f"git patchgate run merge -q {FOLDER}/*.jsonl"] if job.needs else []
    lines = [
        f"mkdir -p {FOLDER}",
        *before,
        "base=$(git write-tree) code=0",
        f"git patchgate run start {component} --phase {phase} --run {run} || code=$?",
        f"git patchgate run show {run} --format events >{file}.jsonl",
        f'git diff --cached --binary "$base" >{file}.patch',
        "exit $code",
    ]
    return "\n".join(lines)


def _receive() -> list[str]:
    """Write how a job gets the files of earlier jobs: their patches sort by wave."""
    return [f"git apply --index --allow-empty {FOLDER}/*.patch"]
