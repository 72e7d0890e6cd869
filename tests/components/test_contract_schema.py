"""The published schemas of the files of a component, as the command prints them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from patchgate.components.baseline_file import RecordedFile, write_baseline
from patchgate.git.path import RepoPath
from patchgate.policy.component import Role
from tests.components.contract_world import GOOD, good, with_value
from tests.world import Repo


def printed(repo: Repo, name: str) -> jsonschema.Draft202012Validator:
    schema: dict[str, Any] = json.loads(repo.cli("schema", name).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path / "repo")


def test_the_schema_of_a_contract_takes_good_ones_and_refuses_the_rest(repo: Repo) -> None:
    schema = printed(repo, "contract")
    schema.validate(GOOD)
    schema.validate({"component_id": "a", "version": "1"})
    schema.validate(with_value("functions.1.side_effects", ["writes_file: out"]))
    for path, value in (
        ("colour", 1),
        ("version", "new"),
        ("component_id", ""),
        ("functions.0.name", "a b"),
        ("functions.0.side_effects", []),
        ("functions.0.side_effects.0", {"kind": "logging"}),
        ("functions.0.examples.0.inputs", {"a b": 1}),
        ("functions.0.performance_budget.p95_latency_ms", 0.5),
    ):
        assert not schema.is_valid(with_value(path, value)), path
    without = good()
    del without["functions"][0]["side_effects"]
    assert not schema.is_valid(without)


def test_the_schema_of_a_baseline_takes_what_is_written(repo: Repo) -> None:
    schema = printed(repo, "baseline")
    files = {
        RepoPath(b"src/a.py"): RecordedFile(Role.IMPLEMENTATION, "100644", "a" * 40, "b" * 64),
        RepoPath(b"src/\xff"): RecordedFile(Role.IMPLEMENTATION, "160000", "a" * 64, None),
    }
    written = json.loads(write_baseline("shaping", files))
    schema.validate(written)
    schema.validate(json.loads(write_baseline("shaping", {})))
    for key, value in (("mode", "100600"), ("oid", "a"), ("role", "docs"), ("sha256", "b"), ("time", 1)):
        wrong = json.loads(json.dumps(written))
        wrong["files"]["src/a.py"][key] = value
        assert not schema.is_valid(wrong), key
    assert not schema.is_valid({**written, "schema": "patchgate.baseline/2"})
