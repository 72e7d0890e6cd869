"""The notation of schemas: what each shape means to a validator, and that every printed schema is one."""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from patchgate.cli.explain import SCHEMAS
from patchgate.git.path import RepoPath
from patchgate.report.json import path_list, path_member
from patchgate.report.schema import (
    COUNT,
    Shape,
    about,
    document_schema,
    map_of,
    maybe,
    one_of,
    or_null,
    path_key,
    path_keys,
    schema_of,
)

ODD = RepoPath(b"\xff.py")


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


def takes(shape: Shape, value: Any) -> bool:
    schema = schema_of(shape)
    Draft202012Validator.check_schema(schema)
    return bool(Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        pytest.param(str, ["", "a"], [1, None, []], id="a text"),
        pytest.param(bool, [True], ["true", 1, None], id="a flag"),
        pytest.param(int, [-1, 2], [1.5, "1", None], id="a whole number"),
        pytest.param(float, [1, 1.5], ["1", None], id="a number"),
        pytest.param(COUNT, [0, 7], [-1, 0.5], id="a count"),
        pytest.param(str | None, ["a", None], [1], id="a text or null"),
        pytest.param(Colour, ["red"], ["green", None], id="one of an enumeration"),
        pytest.param(Colour | None, ["blue", None], ["green"], id="one of an enumeration or null"),
        pytest.param(one_of("a", None), ["a", None], ["b"], id="one of some words"),
        pytest.param([str], [[], ["a"]], [["a", 1], "a"], id="a list"),
        pytest.param({"a": str, "b?": str}, [{"a": ""}, {"a": "", "b": ""}], [{}, {"b": ""}], id="an object"),
        pytest.param({"a": str}, [{"a": ""}], [{"a": "", "c": 1}, None], id="an object of these keys alone"),
        pytest.param(maybe({"a": str}), [{"a": ""}, None], [{}], id="an object or null"),
        pytest.param(or_null({"a": str}), [{"a": ""}, None], [{}, []], id="an object or null, as one type"),
        pytest.param(map_of(COUNT), [{}, {"x": 1}], [{"x": -1}], id="an object of any keys"),
        pytest.param(about([str], "a few", maxItems=1), [["a"]], [["a", "b"]], id="a rule besides"),
    ],
)
def test_a_shape_takes_what_it_looks_like(shape: Shape, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if not takes(shape, value)] == []
    assert [value for value in bad if takes(shape, value)] == []


@pytest.mark.parametrize("path", [RepoPath(b"a.py"), ODD], ids=["plain", "odd"])
def test_the_keys_of_paths_are_those_that_are_written(path: RepoPath) -> None:
    assert takes(path_key("path"), path_member("path", path))
    assert takes(path_keys("files"), path_list("files", [path, RepoPath(b"b.py")]))
    assert takes(path_key("path", str | None), path_member("path", None))
    assert not takes(path_key("path"), path_member("path", None))


def test_a_document_has_its_name_as_its_first_key() -> None:
    schema = document_schema("patchgate.thing/1", "A thing", {"size": COUNT})
    assert schema["$id"] == "urn:patchgate:thing:1"
    assert schema["required"] == ["schema", "size"]
    assert takes(schema, {"schema": "patchgate.thing/1", "size": 0})
    assert not takes(schema, {"schema": "patchgate.thing/2", "size": 0})


@pytest.mark.parametrize(
    ("module", "function"), [each[1:] for each in SCHEMAS], ids=[each[0] for each in SCHEMAS]
)
def test_every_schema_that_is_printed_is_one(module: str, function: str) -> None:
    Draft202012Validator.check_schema(getattr(importlib.import_module(f"patchgate.{module}"), function)())
