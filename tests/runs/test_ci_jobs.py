"""Jobs of components for CI engines: waves, needs, limits, and valid by the engines' published schemas."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]

from patchgate.components.component_list import ComponentGraph, Dependency, affected_part
from patchgate.components.component_names import How
from patchgate.errors import UsageError
from patchgate.runs.ci_jobs import CiPlan, plan_jobs
from patchgate.runs.ci_pipelines import (
    MOST_IN_MATRIX,
    MOST_NEEDS,
    github_limits,
    github_matrices,
    gitlab_limits,
    gitlab_pipeline,
)
from tests.component_world import capture, contract, declared
from tests.runs.test_runs import World
from tests.schemas import require_valid
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

RUNS_PAGE = (Path(__file__).parent.parent.parent / "docs" / "runs.md").read_text(encoding="utf-8")
COMMIT = "1" * 40


def graph(needs: dict[str, list[str]], **parents: str) -> ComponentGraph:
    """Build a graph of components and what each needs."""
    return ComponentGraph(
        content="index",
        parents={name: parents.get(name) for name in sorted(needs)},
        groups=(),
        dependencies=tuple(
            Dependency(name, each, each, How.EXACT) for name, others in needs.items() for each in others
        ),
        cycles=(),
    )


def planned(whole: ComponentGraph, *ids: str) -> CiPlan:
    return plan_jobs(whole, ids or tuple(whole.parents), COMMIT)


def names(plan: CiPlan) -> list[list[str]]:
    return [[job.name for job in wave] for wave in plan.waves]


SIX = graph(
    {"base": [], "left": ["base"], "right": ["base"], "top": ["left", "right"], "other": [], "child": []},
    child="top",
)


def test_a_component_is_in_the_wave_after_what_it_needs() -> None:
    assert names(planned(SIX)) == [
        ["base:implementation", "child:implementation", "other:implementation"],
        ["left:implementation", "right:implementation"],
        ["top:implementation"],
        ["top:integration"],
    ]
    (last,) = planned(SIX).waves[-1]
    assert last.needs == ("child:implementation", "top:implementation")


def test_a_parent_without_a_child_in_the_plan_is_one_job() -> None:
    assert names(planned(SIX, "top", "left")) == [["left:implementation"], ["top:integration"]]


def test_a_child_that_needs_its_parent_comes_between_its_two_jobs() -> None:
    whole = graph({"top": [], "child": ["top"]}, child="top")
    assert names(planned(whole)) == [["top:implementation"], ["child:implementation"], ["top:integration"]]


def test_a_change_affects_what_depends_on_it_and_what_contains_it() -> None:
    assert list(affected_part(SIX, {"base"}).parents) == ["base", "left", "right", "top"]
    assert list(affected_part(SIX, {"child"}).parents) == ["child", "top"]
    assert list(affected_part(SIX, {"other"}).parents) == ["other"]
    assert list(affected_part(SIX, set()).parents) == []


def test_components_in_a_cycle_have_no_jobs() -> None:
    with pytest.raises(UsageError, match="these components depend on each other: a -> b -> a"):
        planned(graph({"a": ["b"], "b": ["a"]}))


def test_the_same_commit_and_jobs_have_the_same_run() -> None:
    assert planned(SIX).run == planned(SIX).run
    assert re.fullmatch("r-[0-9a-f]{12}", planned(SIX).run)
    others = {planned(SIX, "base").run, plan_jobs(SIX, ["base"], "2" * 40).run, planned(SIX).run}
    assert len(others) == 3


def test_a_wave_that_is_too_long_for_github_is_continued_in_the_next_matrix() -> None:
    whole = graph({f"c{number:03}": [] for number in range(MOST_IN_MATRIX + 1)})
    plan = planned(whole)
    assert [len(matrix["include"]) for matrix in github_matrices(plan)] == [256, 1]  # type: ignore[arg-type]
    assert github_limits(plan) == [
        "wave 1 has 257 jobs, and a matrix of GitHub has at most 256: the rest is in the next matrix"
    ]


def test_a_job_that_needs_too_many_for_gitlab_waits_for_the_earlier_stages() -> None:
    many = [f"c{number:03}" for number in range(MOST_NEEDS + 1)]
    plan = planned(graph({**{name: [] for name in many}, "all": many, "most": many[:-1]}))
    pipeline = gitlab_pipeline(plan)
    assert "needs" not in pipeline["all:implementation"]
    assert len(pipeline["most:implementation"]["needs"]) == MOST_NEEDS
    assert gitlab_limits(plan) == [
        "all:implementation needs 51 jobs, and GitLab allows 50: it waits for all jobs of the earlier waves"
    ]


# What is printed.


def require_engine(schema: str, document: object, folder: Path) -> None:
    """Check a document by the schema that an engine publishes."""
    file = folder / "document.json"
    file.write_text(json.dumps(document))
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def documented(name: str) -> dict[str, Any]:
    """Return a workflow of the page."""
    found = re.search(rf"<!-- {name} -->\n```yaml\n(.*?)\n```", RUNS_PAGE, re.DOTALL)
    assert found is not None
    # YAML 1.1 reads the key `on` as true.
    workflow: dict[Any, Any] = yaml.safe_load(found[1])
    workflow["on"] = workflow.pop(True)
    return workflow


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path, has_author=False, has_code=True)


def printed(repo: Repo, *arguments: str) -> Any:
    answer = repo.cli("component", "graph", *arguments)
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out)


def test_the_matrices_are_valid_in_the_workflow_of_the_page(world: World, tmp_path: Path) -> None:
    matrices = printed(world.repo, "--format", "github")
    workflow = documented("workflow")
    require_engine("vendor.github-workflows", workflow, tmp_path)
    waves = [name for name in workflow["jobs"] if name.startswith("wave-")]
    (plan,) = (step["run"] for step in workflow["jobs"]["plan"]["steps"] if step.get("id") == "plan")
    assert f"-le {len(waves)} " in plan
    for index, name in enumerate(waves):
        matrix = workflow["jobs"][name]["strategy"]["matrix"]
        assert matrix == f"${{{{ fromJSON(needs.plan.outputs.waves)[{index}] }}}}"
        workflow["jobs"][name]["strategy"]["matrix"] = matrices[index]
    require_engine("vendor.github-workflows", workflow, tmp_path)
    assert matrices[1]["include"][0] == {
        "component": "left",
        "phase": "implementation",
        "run": matrices[0]["include"][0]["run"],
        "file": "002-left-implementation",
    }


def test_the_job_of_the_page_is_valid_and_gives_the_shell_nothing_but_variables(tmp_path: Path) -> None:
    workflow = documented("job")
    require_engine("vendor.github-workflows", workflow, tmp_path)
    given = documented("workflow")["jobs"]["wave-1"]["with"]
    assert workflow["on"]["workflow_call"]["inputs"].keys() == given.keys()
    for step in workflow["jobs"]["component"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_matrices_are_one_line_for_the_output_of_a_job(world: World) -> None:
    answer = world.repo.cli("component", "graph", "--format", "github")
    assert answer.out.count("\n") == 1
    assert answer.out.endswith("]\n")


def test_the_child_pipeline_is_valid_and_needs_only_jobs_that_it_has(world: World, tmp_path: Path) -> None:
    pipeline = printed(world.repo, "--format", "gitlab")
    require_engine("vendor.gitlab-ci", pipeline, tmp_path)
    assert yaml.safe_load(json.dumps(pipeline)) == pipeline
    jobs = {name: job for name, job in pipeline.items() if name not in {"stages", "merge"}}
    stages = pipeline["stages"]
    for job in jobs.values():
        assert all(stages.index(jobs[need]["stage"]) < stages.index(job["stage"]) for need in job["needs"])


def test_only_what_a_change_affects_has_a_job(world: World, tmp_path: Path) -> None:
    config = (world.repo.path / "patchgate.toml").read_text()
    world.repo.commit(capture(world.repo, config))
    assert printed(world.repo, "--format", "github", "--changed") == []
    pipeline = printed(world.repo, "--format", "gitlab", "--changed")
    require_engine("vendor.gitlab-ci", pipeline, tmp_path)
    assert pipeline["merge"]["script"] == ["echo 'every component is as its baseline records it'"]
    nothing = world.repo.cli("component", "graph", "--changed")
    assert (nothing.out, nothing.err) == ("", "every component is as its baseline records it\n")

    world.repo.stage({"src/left/code.txt": "right, too\n"})
    matrices = printed(world.repo, "--format", "github", "--changed")
    affected = [[job["component"] for job in matrix["include"]] for matrix in matrices]
    assert affected == [["left"], ["top"]]
    assert matrices[1]["include"][0]["phase"] == "integration"
    document = printed(world.repo, "--format", "json", "--changed")
    require_valid(document, world.repo.cli("schema", "component-graph").report)
    assert [each["id"] for each in document["components"]] == ["left", "top"]
    assert document["jobs"]["waves"][1][0]["needs"] == ["left:implementation"]
    assert world.repo.cli("component", "graph", "--changed").out.startswith("left\n")


def test_a_graph_with_a_cycle_is_shown_as_json_without_jobs_and_refused_for_an_engine(world: World) -> None:
    world.repo.commit({"contracts/base/interface.json": contract("base", "top")})
    document = printed(world.repo, "--format", "json")
    assert document["jobs"] is None
    jsonschema.validate(document, world.repo.cli("schema", "component-graph").report)
    refused = world.repo.cli("component", "graph", "--format", "gitlab")
    assert (refused.code, "these components depend on each other" in refused.err) == (2, True)


@pytest.mark.parametrize("name", ['"a b"', '"$(id)"', "'a\"b'", '"a:b"', '"-n"', '"../x"', '"a\\nb"'])
def test_an_id_that_a_shell_or_yaml_may_misread_is_refused_by_the_policy(name: str, tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"patchgate.toml": declared("a").replace("[components.a]", f"[components.{name}]")})
    for form in ("github", "gitlab", "json"):
        answer = repo.cli("component", "graph", "--format", form)
        assert answer.code == 2, answer.out


@pytest.mark.parametrize("name", ["no", "null", "1e3", "default", "pages", "merge", "stages"])
def test_an_id_that_is_a_word_of_an_engine_is_only_a_name(name: str, tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"patchgate.toml": declared(name), f"contracts/{name}/interface.json": contract(name)})
    pipeline = printed(repo, "--format", "gitlab")
    require_engine("vendor.gitlab-ci", pipeline, tmp_path)
    assert list(pipeline) == ["stages", f"{name}:implementation", "merge"]
    assert yaml.safe_load(json.dumps(pipeline)) == pipeline
