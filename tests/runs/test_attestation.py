"""The statement about a run, read by the reference implementation of in-toto."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.runs.test_cost import made
from tests.runs.test_runs import World


def statement(world: World) -> dict[str, Any]:
    answer = world.repo.cli("run", "show", "--format", "in-toto")
    assert answer.code == 0, answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def test_a_statement_names_each_file_of_a_run_with_its_digest(tmp_path: Path) -> None:
    world = made(tmp_path)
    state = world.start("base", "left")
    found = statement(world)
    assert {each["name"]: each["digest"]["sha256"] for each in found["subject"]} == {
        name: hashlib.sha256((world.repo.path / name).read_bytes()).hexdigest()
        for name in ("src/base/code.txt", "src/left/code.txt")
    }
    details = found["predicate"]["runDetails"]
    assert details["metadata"]["invocationId"] == state.id
    assert {each["annotations"]["work"] for each in details["byproducts"]} == {
        f"{state.id}/{name}/implementation" for name in ("base", "left")
    }
    assert (found["predicate"]["patchgate_cost"], found["predicate"]["patchgate_models"]) == (0.5, ["m-1"])


def test_the_statement_is_of_what_landed_whatever_is_on_disk(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.start("base")
    before = statement(world)
    (world.repo.path / "src/base/code.txt").write_text("edited\n")
    (world.repo.path / "src/base/code.txt.meta.json").unlink()
    assert statement(world) == before


def test_a_run_that_made_nothing_has_no_statement(tmp_path: Path) -> None:
    world = World.make(tmp_path, has_author=False, has_code=True)
    world.start("base")
    answer = world.repo.cli("run", "show", "--format", "in-toto")
    assert (answer.code, "has made no file" in answer.err) == (3, True)


def test_the_reference_implementation_accepts_it(tmp_path: Path) -> None:
    module = "in_toto_attestation.v1.statement"
    reference = pytest.importorskip(module, reason="the extra `oracles` is not installed")
    json_format = importlib.import_module("google.protobuf.json_format")
    slsa = importlib.import_module("in_toto_attestation.predicates.provenance.v1.provenance_pb2")
    world = made(tmp_path)
    world.start("base", "left")
    found = statement(world)
    message = json_format.ParseDict(found, reference.spb.Statement())
    reference.Statement.copy_from_pb(message).validate()
    predicate = {name: value for name, value in found["predicate"].items() if "_" not in name}
    # Every other key is one that the specification has.
    provenance = json_format.ParseDict(predicate, slsa.Provenance())
    assert provenance.build_definition.build_type == "urn:patchgate:run:1"
