"""The report as SARIF 2.1.0: against a closed description of the standard, and by an independent reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from jsonschema import Draft202012Validator

from patchgate.report import sarif
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Report
from tests.report.verdict_reports import BLIND, HOSTILE, commits, finding, hostile, judged, report


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


# What SARIF 2.1.0 asks of the properties that we write, by the standard's sections; all others are refused.
TEXT = {"type": "string", "minLength": 1}
MESSAGE = closed({"text": TEXT})  # 3.11
BAG = {"type": "object"}  # 3.8
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = closed(  # 3.49
    {
        "id": TEXT,
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": MESSAGE,
        "defaultConfiguration": closed({"level": LEVEL}),
        "properties": BAG,
    }
)
DRIVER = closed(  # 3.19
    {
        "name": TEXT,
        "version": TEXT,
        "rules": {"type": "array", "items": RULE, "uniqueItems": True},
    }
)
NOTIFICATION = closed({"level": LEVEL, "message": MESSAGE}, {"properties": BAG})  # 3.58
INVOCATION = closed(  # 3.20
    {
        "executionSuccessful": {"type": "boolean"},
        "exitCode": {"type": "integer"},
        "toolExecutionNotifications": {"type": "array", "items": NOTIFICATION},
    }
)
ARTIFACT = closed({"uri": {"type": "string", "pattern": "^[A-Za-z0-9._~%/-]+$"}, "uriBaseId": TEXT})  # 3.4
REGION = closed({"startLine": {"type": "integer", "minimum": 1}})  # 3.30
LOCATION = closed({"physicalLocation": closed({"artifactLocation": ARTIFACT}, {"region": REGION})})  # 3.28
RESULT = closed(  # 3.27
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": LEVEL,
        "message": MESSAGE,
        "partialFingerprints": {"type": "object", "additionalProperties": TEXT},
        "properties": BAG,
    },
    {"locations": {"type": "array", "items": LOCATION}},
)
RUN = closed(  # 3.14
    {
        "tool": closed({"driver": DRIVER}),
        "automationDetails": closed({"id": TEXT}),
        "invocations": {"type": "array", "items": INVOCATION},
        "originalUriBaseIds": {"type": "object", "additionalProperties": closed({"description": MESSAGE})},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT},
        "properties": BAG,
    }
)
LOG = Draft202012Validator(  # 3.13
    closed(
        {
            "$schema": {"type": "string", "pattern": "^https://"},
            "version": {"const": "2.1.0"},
            "runs": {"type": "array", "items": RUN, "minItems": 1, "maxItems": 1},
        }
    )
)


def run_of(given: Report) -> Any:
    text = sarif.render(given)
    assert text.isascii()
    assert text.endswith("}\n")
    log = json.loads(text)
    LOG.validate(log)
    json.dumps(log, ensure_ascii=False).encode("utf-8")
    (run,) = log["runs"]
    return run


def test_every_rule_is_declared_once_and_each_result_points_at_its_own() -> None:
    run = run_of(
        report(finding(), finding("secret", "a", 2), finding("max-files", None, level=Level.WARNING))
    )
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning"]


def test_a_result_has_place_line_and_fingerprint() -> None:
    (result,) = run_of(report(finding("secret", "src/[id] ü.py", 12)))["results"]
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "src/%5Bid%5D%20%C3%BC.py", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 12},
            }
        }
    ]
    assert len(result["partialFingerprints"]["patchgate/v1"]) == 64


def test_a_finding_on_the_whole_change_has_no_place() -> None:
    (result,) = run_of(report(finding("max-files", None)))["results"]
    assert "locations" not in result


def test_a_line_of_the_base_is_no_region_of_the_file_as_it_is() -> None:
    (result,) = run_of(report(finding("deny-content", "a", 4, side="old")))["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert (result["properties"]["line"], result["properties"]["side"]) == (4, "old")


@pytest.mark.parametrize("raw", [b"/etc/passwd", b"//host/share", b"a/../../b", b"./a", b"a//b", b""])
def test_a_path_that_a_reader_would_resolve_out_of_the_repository_has_no_place(raw: bytes) -> None:
    (result,) = run_of(report(finding("path-traversal", raw)))["results"]
    assert "locations" not in result
    assert result["properties"]["path"] == raw.decode()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_a_relative_uri_of_its_exact_bytes(name: str) -> None:
    raw = HOSTILE[name]
    for result in run_of(hostile(raw))["results"]:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert unquote_to_bytes(uri) == raw
        parts = urlsplit(uri)
        assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
        assert "](" not in result["message"]["text"].replace("\\](", "")


def test_an_undecided_run_was_no_success_and_names_the_gates() -> None:
    run = run_of(Report((judged(gates=BLIND),), ("the remote's policy differs",)))
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    told = [(each["level"], each["message"]["text"]) for each in invocation["toolExecutionNotifications"]]
    assert told == [
        ("error", "staged change: content could not decide (object 9af3 is missing)"),
        ("error", "staged change: shape was not run"),
        ("warning", "the remote's policy differs"),
    ]
    assert run["properties"]["verdict"] == "undecided"


def test_a_refusal_is_a_run_that_went_well() -> None:
    (invocation,) = run_of(report(finding()))["invocations"]
    assert invocation == {"executionSuccessful": True, "exitCode": 1, "toolExecutionNotifications": []}


def test_a_range_tells_the_commit_of_each_result() -> None:
    given = commits((finding(),), (), (finding(),))
    run = run_of(given)
    assert [result["properties"]["commit"] for result in run["results"]] == [
        given.changes[0].source.commit,
        given.changes[2].source.commit,
    ]
    assert len(run["properties"]["changes"]) == 3


def test_another_implementation_reads_the_same_findings(tmp_path: Path) -> None:
    loader = pytest.importorskip("sarif.loader", reason="the extra `oracles` is not installed")
    log = tmp_path / "report.sarif"
    log.write_text(sarif.render(report(finding(), finding("secret", "src/b.py", 12))), encoding="utf-8")
    records = loader.load_sarif_file(str(log)).get_records()
    assert {(each["Severity"], each["Code"], each["Location"], str(each["Line"])) for each in records} == {
        ("error", "deny-prefix", "runs/x", "1"),
        ("error", "secret", "src/b.py", "12"),
    }


def test_the_source_line_is_left_out_for_it_may_hold_a_secret() -> None:
    assert "ghp_" not in sarif.render(report(finding("secret", "a", 1, excerpt=b"ghp_0123")))
