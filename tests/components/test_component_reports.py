"""What `component` and `baseline` report: corrected names, drift, budgets that nothing measures, results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.component_world import BASELINE, CODE, CONTRACT, TESTS, contract, declared, make
from tests.components.capture_world import QUICK, shaping
from tests.world import Repo


def validated(repo: Repo, *arguments: str) -> tuple[int, list[str]]:
    answer = repo.cli("component", "validate", *arguments, "--format", "json")
    return answer.code, answer.rules


def test_a_dependency_with_a_prefix_of_its_own_is_a_warning_and_counts(tmp_path: Path) -> None:
    """Requirement D 2.3: `my_schemas` is `schemas`; what is ambiguous is none."""
    repo = Repo.create(tmp_path)
    repo.commit(
        {
            "patchgate.toml": declared("schemas", "routing"),
            "contracts/schemas/interface.json": contract("schemas"),
            "contracts/routing/interface.json": contract("routing", "my_schemas"),
        }
    )
    findings = repo.cli("component", "validate", "routing", "--format", "json").findings
    (finding,) = (each for each in findings if each["rule"].startswith("dependency"))
    assert (finding["rule"], finding["level"]) == ("dependency-corrected", "warning")
    assert finding["message"].index("`my_schemas`") < finding["message"].index("`schemas`")
    graph = repo.cli("component", "graph").out
    assert "-> schemas (written as my_schemas)" in graph
    repo.stage({"contracts/schemas/interface.json": contract("schemas", "routing_v2")})
    assert "dependency-cycle" in validated(repo, "--all")[1]


def test_what_a_contract_needs_is_looked_for_in_the_tree_and_among_its_relatives(tmp_path: Path) -> None:
    """Requirement D 2.1, D 2.4: at the commit; what exists, and what is related, is no finding."""
    repo = Repo.create(tmp_path)
    tables = (
        declared("near"),
        declared("own", parent="near"),
        declared("far"),
        declared("cousin", parent="far"),
    )
    place = "contracts/own/interface.json"
    others = ("near", "far", "cousin")
    texts = {f"contracts/{name}/interface.json": contract(name) for name in others}
    repo.commit({"patchgate.toml": "\n".join(tables), "tools/paths.py": "", **texts, place: contract("own")})

    def asked(*needs: str, **more: Any) -> list[tuple[str, str]]:
        repo.stage({place: contract("own", *needs, **more)})
        found = [(each["rule"], each["level"]) for each in repo.check().findings]
        return [each for each in found if each[0].startswith(("dependency", "external"))]

    assert asked("near", "far", external_dependencies=["tools.paths"]) == []
    assert asked("tools.paths") == []
    assert asked("nowhere") == [("dependency-unknown", "warning")]
    assert asked(external_dependencies=["tools.none"]) == [("external-missing", "error")]
    assert asked("cousin") == [("dependency-across", "warning")]
    repo.stage({"contracts/cousin/interface.json": contract("cousin", "own")})
    assert ("dependency-cycle", "error") in asked("cousin")
    repo.git("rm", "-q", "-f", "contracts/far/interface.json")
    assert ("dependency-without-contract", "error") in asked("far")


def test_validate_reports_drift(tmp_path: Path) -> None:
    """Requirement D 6.2: of those that are asked, as a commit would, and at the levels of the policy."""
    repo = make(tmp_path)
    assert validated(repo, "--all") == validated(repo, "shaping") == (0, [])
    repo.stage({CODE: "def area(width, height):\n    return height * width\n"})
    for arguments in ((), ("--all",), ("shaping",)):
        assert validated(repo, *arguments) == (0, ["drift-implementation"]), arguments
    repo.commit()
    assert validated(repo) == (0, [])
    assert validated(repo, "--all") == (0, ["drift-implementation"])
    repo.stage({CONTRACT: contract(version="2.0.0"), TESTS: "def test_nothing():\n    pass\n"})
    code, rules = validated(repo)
    assert (code, rules) == (1, [rule for rule in repo.check().rules if rule.startswith("drift")])
    assert validated(repo, "--fail-fast") == (1, rules[:1])
    status = repo.cli("baseline", "status", "--format", "json")
    assert status.code == 0
    assert repo.cli("component", "validate", "--all").err.endswith(
        "1 contract validated, 1 baseline compared\n"
    )


def test_a_baseline_that_is_no_baseline_is_reported_by_validate(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.stage({BASELINE: "{"})
    assert validated(repo)[0] == 1
    assert "baseline-invalid" in validated(repo, "--all")[1]


def test_a_budget_without_an_example_is_a_warning_when_tests_are_made(tmp_path: Path) -> None:
    """Requirement D 5.3: the module has no test for it, and who makes it hears so."""
    budget = {
        "performance_budget": {"p95_latency_ms": 100, "max_memory_mb": 5},
        "side_effects": [{"kind": "none"}],
    }
    given: dict[str, Any] = {"inputs": [{"name": "order", "type": "int"}]}
    functions = [
        {"name": "bare", **budget, **given},
        {"name": "shown", **budget, **given, "examples": [{"inputs": {"order": 1}, "output": 2}]},
        {"name": "without_inputs", **budget},
    ]
    repo = Repo.create(tmp_path)
    text = contract("shaping", functions=functions)
    repo.commit({"patchgate.toml": declared("shaping"), "contracts/shaping/interface.json": text})
    made = repo.cli("component", "tests", "shaping")
    assert (made.code, "test_shown_p95_latency_ms" in made.out) == (0, True)
    assert "test_bare_p95_latency_ms" not in made.out
    assert [line.split("`")[1] for line in made.err.splitlines()] == ["bare", "bare"]
    assert ["p95_latency_ms" in made.err, "max_memory_mb" in made.err] == [True, True]


def test_the_results_of_a_capture_are_in_its_event_and_in_the_status(tmp_path: Path) -> None:
    """Requirement D 6.2: passed, failed, skipped and the time; the tracked file has neither."""
    repo = shaping(tmp_path)
    more = "import pytest\n\n@pytest.mark.skip\ndef test_later():\n    pass\n"
    test = repo.path / "tests/test_shaping.py"
    repo.commit({"tests/test_shaping.py": more + test.read_text()})
    repo.env |= QUICK
    assert repo.cli("baseline", "capture", "shaping").code == 0
    tests = {"passed": 1, "failed": 0, "errors": 0, "skipped": 1}
    event = json.loads(repo.cli("log", "--kind", "captured", "--format", "json").out)
    assert (event["component"], event["tests"]) == ("shaping", tests)
    assert repo.cli("log", "-n", "1").out == f"{event['at']} captured component shaping\n"
    written = (repo.path / ".patchgate/baselines/shaping.json").read_text()
    assert "skipped" not in written
    assert event["at"][:4] not in written
    repo.commit()
    assert event["baseline"] == repo.ask("rev-parse", f"HEAD:{BASELINE}")
    status = repo.cli("baseline", "status", "--format", "json").report
    Draft202012Validator(repo.cli("schema", "baselines").report).validate(status)
    (row,) = status["components"]
    assert (row["tests"], row["tests_at"], row["tests_source"]) == (tests, event["at"], "ledger")
    # A capture is no verification of later: only its commit makes the baseline fresh.
    assert row["verified_source"] == "commit"
    assert "tests: 1 passed, 0 failed, 1 skipped on " in repo.cli("baseline", "status").out
    repo.cli("baseline", "capture", "shaping", "--reverify", "--commit-note")
    (note,) = repo.ask("notes", "--ref", "patchgate-verified", "show", event["baseline"]).splitlines()
    assert json.loads(note)["tests"] == tests
    assert json.loads(repo.cli("log", "--kind", "verified", "--format", "json").out)["tests"] == tests
    (repo.path / ".git/patchgate/events.jsonl").unlink()
    (row,) = repo.cli("baseline", "status", "--format", "json").report["components"]
    assert (row["tests"], row["tests_source"]) == (tests, "note")
    # Whoever may push notes may write anything there.
    forged = json.loads(note) | {"tests": {"passed": "\x1b[31m"}}
    repo.git("notes", "--ref", "patchgate-verified", "add", "-f", "-m", json.dumps(forged), event["baseline"])
    (row,) = repo.cli("baseline", "status", "--format", "json").report["components"]
    assert (row["tests"], row["tests_at"]) == (None, None)
