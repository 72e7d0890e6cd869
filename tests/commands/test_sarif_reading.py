"""SARIF read without trust: which results count, where they are, and what is told of a run that fails."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import operator
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands import sarif_reader
from patchgate.commands.analysis_results import AnalysisResult, TreeFiles
from patchgate.commands.json_stream import NotReadError
from patchgate.commands.sarif_reader import read_sarif
from patchgate.git.path import RepoPath
from patchgate.git.quoting import is_printable
from tests.amount import often

ROOT = "/scratch/the tree"
URL = "file:///scratch/the%20tree"
Json = dict[str, Any]


def located(uri: str | None = "a.py", line: int | None = 1, **more: Any) -> Json:
    artifact = {"uri": uri} if uri is not None else {}
    region = {"region": {"startLine": line}} if line is not None else {}
    return {"physicalLocation": {"artifactLocation": artifact | more, **region}}


def result(*locations: Json, **more: Any) -> Json:
    return {"ruleId": "R1", "message": {"text": "it is bad"}, "locations": list(locations)} | more


def run(*results: Json, **more: Any) -> Json:
    return {"tool": {"driver": {"name": "probe"}}, "results": list(results)} | more


def document(*runs: Json) -> Json:
    return {"version": "2.1.0", "runs": list(runs)}


def both(
    found: Json | bytes, root: str = ROOT, **files: bytes
) -> tuple[tuple[AnalysisResult, ...], tuple[AnalysisResult, ...]]:
    """Read a document about files that are named by keywords, `a` being `a.py`; others are empty."""
    raw = found if isinstance(found, bytes) else json.dumps(found).encode()
    lines = {RepoPath(f"{name}.py".encode()): text.split(b"\n") for name, text in files.items()}
    return read_sarif(io.BytesIO(raw), "lint", root, lambda path: lines.get(path, []))


def read(found: Json | bytes, root: str = ROOT, **files: bytes) -> list[AnalysisResult]:
    return list(both(found, root, **files)[0])


def one(*locations: Json, root: str = ROOT, within: Json | None = None, **more: Any) -> AnalysisResult:
    """Read a document of one result."""
    (found,) = read(document(run(result(*locations, **more), **(within or {}))), root)
    return found


def paths(*locations: Json, root: str = ROOT, within: Json | None = None) -> list[bytes]:
    return [path.raw for path in one(*locations, root=root, within=within).paths]


def refusal(found: Json | bytes) -> NotReadError:
    with pytest.raises(NotReadError) as refused:
        read(found)
    assert all(map(is_printable, refused.value.message))
    return refused.value


# ---- what a result says ----------------------------------------------------------------------------------


def test_a_result_has_its_tool_rule_level_message_path_and_line() -> None:
    found = one(located("src/a.py", 7), level="error")
    assert (found.analysis, found.tool, found.rule, found.level) == ("lint", "probe", "R1", "error")
    assert (found.message, found.paths, found.line) == ("it is bad", (RepoPath(b"src/a.py"),), 7)


RULES = [
    {"id": "R0"},
    {
        "id": "R1",
        "defaultConfiguration": {"level": "note"},
        "messageStrings": {"m": {"text": "{0} of {{1}}"}},
    },
]


@pytest.mark.parametrize(
    ("named", "rule", "level"),
    [
        ({"ruleId": "R1"}, "R1", "note"),
        ({"ruleId": "R1/deep/er"}, "R1/deep/er", "note"),
        ({"ruleId": "R0"}, "R0", "warning"),
        ({"ruleId": "R9"}, "R9", "warning"),
        ({"ruleIndex": 1}, "R1", "note"),
        ({"ruleId": "R1", "ruleIndex": 1}, "R1", "note"),
        ({"ruleId": "R0", "ruleIndex": 1}, "R0", "warning"),
        ({"ruleIndex": 2}, "unnamed", "warning"),
        ({"ruleIndex": -1, "rule": {"id": "R1"}}, "R1", "note"),
        ({"rule": {"index": 1}}, "R1", "note"),
        ({"rule": {"index": 0, "toolComponent": {"index": 0}}}, "X0", "error"),
        ({"rule": {"index": 0, "toolComponent": {"name": "more"}}}, "X0", "error"),
        ({"rule": {"id": "X0"}}, "X0", "error"),
        ({"rule": {"index": 0, "toolComponent": {"name": "unknown"}}}, "R0", "warning"),
        ({"ruleId": "R1", "level": "none"}, "R1", "none"),
        ({"ruleId": "R1", "level": "shout"}, "R1", "note"),
        ({"ruleId": None, "rule": None}, "unnamed", "warning"),
    ],
)
@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_rule_is_named_by_id_or_by_its_place_and_gives_its_level(
    named: Json, rule: str, level: str, is_sorted: bool
) -> None:
    more = [{"name": "more", "rules": [{"id": "X0", "defaultConfiguration": {"level": "error"}}]}]
    tool = {"driver": {"name": "probe", "rules": RULES}, "extensions": more}
    told = run({"message": {"text": "m"}, **named}, tool=tool)
    # Sorted by their keys, the results stand before the rules.
    (found,) = read(json.dumps(document(told), sort_keys=is_sorted).encode())
    assert (found.rule, found.level) == (rule, level)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"text": "plain {0}"}, "plain {0}"),
        ({"text": "filled {0} {1} {2}", "arguments": ["a", "b"]}, "filled a b {2}"),
        ({"id": "m", "arguments": ["{1}", "b"]}, "{1} of {1}"),
        ({"id": "common", "arguments": ["x"]}, "all x"),
        ({"id": "nowhere"}, ""),
        ({"markdown": "*bold*"}, "*bold*"),
        ({}, ""),
        (None, ""),
        ({"text": f"cannot open {ROOT}/src/a.py"}, "cannot open src/a.py"),
        ({"text": "\ud800 \x1b[31m \u202e"}, "\ufffd \x1b[31m \u202e"),
        ({"text": "x" * 5000}, "x" * 2000),
        ({"text": "{0}" * 5000, "arguments": ["y" * 5000]}, "y" * 2000),
    ],
)
def test_a_message_is_its_text_or_that_of_its_id_with_its_arguments(message: Json, said: str) -> None:
    driver = {"name": "probe", "rules": RULES, "globalMessageStrings": {"common": {"text": "all {0}"}}}
    assert one(message=message, within={"tool": {"driver": driver}}).message == said


@pytest.mark.parametrize(
    ("more", "level"),
    [
        ({}, "error"),
        ({"kind": "fail"}, "error"),
        ({"kind": "open"}, "note"),
        ({"kind": "review"}, "note"),
        ({"kind": "something new"}, "error"),
        ({"kind": "pass"}, None),
        ({"kind": "notApplicable"}, None),
        ({"kind": "informational"}, None),
        ({"baselineState": "absent"}, None),
        ({"baselineState": "unchanged"}, "error"),
        ({"baselineState": "new"}, "error"),
    ],
)
def test_what_is_no_failure_or_is_gone_is_no_finding(more: Json, level: str | None) -> None:
    found = read(document(run(result(level="error", **more))))
    assert [each.level for each in found] == ([level] if level else [])


@pytest.mark.parametrize(
    ("suppressions", "is_suppressed"),
    [
        ([{"kind": "inSource"}], True),
        ([{"kind": "external", "status": "accepted"}], True),
        ([{"kind": "inSource"}, {"status": "underReview"}], False),
        ([{"status": "rejected"}], False),
        ([], False),
        (None, False),
    ],
)
def test_a_suppressed_result_is_apart_unless_that_is_not_settled(
    suppressions: list[Json] | None, is_suppressed: bool
) -> None:
    results, suppressed = both(document(run(result(suppressions=suppressions))))
    assert (len(results), len(suppressed)) == ((0, 1) if is_suppressed else (1, 0))


def test_results_come_out_in_one_order_however_they_are_told() -> None:
    told = [result(located(f"{name}.py", line)) for name in "bca" for line in (2, 10, 1)]
    first = read(document(run(*told), run(result())))
    assert first == read(document(run(result()), run(*reversed(told))))
    assert [(each.path.raw if each.path else b"", each.line) for each in first] == [
        (b"", None),
        *((f"{name}.py".encode(), line) for name in "abc" for line in (1, 2, 10)),
    ]


# ---- where it is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("a.py", b"a.py"),
        ("./a.py", b"a.py"),
        ("src//./b/../a.py", b"src/a.py"),
        ("a%20b%25.py", b"a b%.py"),
        ("%ff.py", b"\xff.py"),
        ("ä.py", "ä.py".encode()),
        ("%C3%A4.py", "ä.py".encode()),
        ("100%.py", b"100%.py"),
        ("a%0Ab.py", b"a\nb.py"),
        ("a\\b.py", b"a\\b.py"),
        ("./a:b.py", b"a:b.py"),
        ("src%2Fa.py", b"src/a.py"),
        (f"{URL}/src/a.py", b"src/a.py"),
        (f"{URL}/../the%20tree/a.py", b"a.py"),
        ("FILE://localhost/scratch/the%20tree/a.py", b"a.py"),
        ("file:/scratch/the%20tree/a.py", b"a.py"),
        ("/scratch/the tree/a.py", b"a.py"),
        ("%2e%2e/the%20tree/a.py", b"a.py"),
        ("../a.py", None),
        ("%2e%2e/a.py", None),
        ("src/../../a.py", None),
        ("/etc/passwd", None),
        ("file:///etc/passwd", None),
        ("file:///scratch/the%20tree2/a.py", None),
        (f"{URL}/../../etc/passwd", None),
        ("file://host/scratch/the%20tree/a.py", None),
        ("//host/scratch/the%20tree/a.py", None),
        ("file:////scratch/the%20tree/a.py", None),
        ("https://example.com/a.py", None),
        ("file:a.py", None),
        ("C:/a.py", None),
        ("untitled:/scratch/the%20tree/a.py", None),
        ("a.py?raw", None),
        ("a.py#L3", None),
        ("src/", None),
        ("src/.", None),
        (".", None),
        ("", None),
        (URL, None),
        (f"{URL}/", None),
        ("a%00.py", None),
        ("\ud800.py", None),
        (None, None),
    ],
)
def test_a_uri_names_a_path_only_if_it_is_a_file_below_the_root(uri: str | None, path: bytes | None) -> None:
    assert paths(located(uri)) == ([path] if path is not None else [])


SOURCE = {"uri": "src/", "uriBaseId": "ROOT"}


@pytest.mark.parametrize(
    ("bases", "path"),
    [
        (None, b"a.py"),
        ({}, b"a.py"),
        ({"BASE": {}}, b"a.py"),
        ({"BASE": {"uri": f"{URL}/"}}, b"a.py"),
        ({"BASE": {"uri": URL}}, b"a.py"),
        ({"BASE": {"uri": "src/"}}, b"src/a.py"),
        ({"BASE": SOURCE, "ROOT": {"uri": f"{URL}/deep/"}}, b"deep/src/a.py"),
        ({"BASE": SOURCE}, b"src/a.py"),
        ({"BASE": {"uriBaseId": "ROOT"}, "ROOT": {"uri": "src/"}}, b"src/a.py"),
        ({"BASE": {"uri": "file:///elsewhere/"}}, None),
        ({"BASE": {"uri": "../"}}, None),
        ({"BASE": {"uri": "https://example.com/"}}, None),
        ({"BASE": SOURCE, "ROOT": {"uri": "x/", "uriBaseId": "BASE"}}, None),
        ({"BASE": {"uriBaseId": "BASE"}}, None),
    ],
)
def test_a_base_is_followed_to_its_end_and_never_in_a_circle(bases: Json | None, path: bytes | None) -> None:
    found = paths(located("a.py", uriBaseId="BASE"), within={"originalUriBaseIds": bases})
    assert found == ([path] if path is not None else [])


def test_an_absolute_uri_needs_no_base() -> None:
    bases = {"originalUriBaseIds": {"BASE": {"uri": "file:///elsewhere/"}}}
    assert paths(located(f"{URL}/a.py", uriBaseId="BASE"), within=bases) == [b"a.py"]


def test_an_artifact_may_be_named_by_its_number_alone() -> None:
    within = {"artifacts": [{}, {"location": {"uri": "b.py"}}]}
    assert paths(located(None, index=1), within=within) == [b"b.py"]
    assert paths(located("a.py", index=1), within=within) == [b"a.py"]
    assert paths(located(None, index=0), within=within) == []
    assert paths(located(None, index=7), within=within) == []


def in_tree(found: Json, *names: str) -> list[AnalysisResult]:
    """Read a document about a tree of a few files."""
    files = {RepoPath(name.encode()): [b"text"] for name in names}
    return list(read_sarif(io.BytesIO(json.dumps(found).encode()), "lint", ROOT, files.get)[0])


@pytest.mark.parametrize(
    "uri", ["a.py", "src/A.PY", "src/%EF%BF%BD.py", "src", f"{URL}/build/a.py", "src/a.py/x"]
)
def test_a_path_that_is_no_file_of_the_tree_names_none_and_its_uri_is_in_the_mark(uri: str) -> None:
    other = "gone.py"
    first, again, second = (
        in_tree(document(run(result(located(each, line)))), "src/a.py", *more)
        for each, line, more in ((uri, 1, []), (uri, 9, ["new.py"]), (other, 1, []))
    )
    assert [(each.path, each.paths, each.line) for each in (*first, *second)] == [(None, (), None)] * 2
    assert first == again
    assert first[0].mark != second[0].mark


def test_of_several_paths_those_that_are_files_of_the_tree_are_named() -> None:
    told = result(
        located("gone.py", 1), located("b.py", 2), relatedLocations=[located("c.py"), located("d.py")]
    )
    (found,) = in_tree(document(run(told)), "b.py", "d.py")
    assert ([path.raw for path in found.paths], found.line) == ([b"b.py", b"d.py"], 2)


def test_the_root_is_also_known_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for name in ("real", "link"):
        assert paths(located(f"file://{tmp_path}/{name}/a.py"), root=f"{tmp_path}/link") == [b"a.py"]
    assert paths(located(f"file://{tmp_path}/link/a.py"), root=f"{tmp_path}/real") == []


def test_all_files_of_a_result_are_named_once_and_the_first_that_is_in_the_tree_has_its_line() -> None:
    outside, first, second = located("/etc/passwd", 1), located("a.py", 2), located("b.py", 3)
    found = one(outside, first, second, relatedLocations=[located("c.py", 4), located("./a.py", 5)])
    assert ([path.raw for path in found.paths], found.line) == ([b"a.py", b"b.py", b"c.py"], 2)
    found = one(outside, relatedLocations=[second])
    assert ([path.raw for path in found.paths], found.line) == ([b"b.py"], 3)
    found = one({"logicalLocations": [{"name": "f"}]}, {})
    assert (found.paths, found.line) == ((), None)


@pytest.mark.parametrize("line", [0, -1, True, 1.0, "1", None, 1 << 40])
def test_a_line_that_is_none_is_left_out(line: Any) -> None:
    location = {"physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region": {"startLine": line}}}
    assert one(location).line is None


# ---- what stands there -----------------------------------------------------------------------------------


def marks(*results: Json, root: str = ROOT, **files: bytes) -> list[str]:
    return [each.mark for each in read(document(run(*results)), root, **files)]


def test_a_mark_is_that_of_the_stripped_line_wherever_it_stands() -> None:
    before = marks(result(located("a.py", 2)), a=b"top\nx = 1\n")
    assert before == marks(result(located("a.py", 3)), a=b"new\ntop\n\t x = 1 \r\n")
    assert before == marks(result(located("b.py", 2), message={"text": "other"}), b=b"\nx = 1")
    assert before != marks(result(located("a.py", 2)), a=b"top\nx = 2\n")
    assert len(before[0]) == 32


def test_without_a_line_a_mark_is_that_of_the_message() -> None:
    for location in (located("a.py", None), located("a.py", 9), located("gone.py", 1)):
        first, again = (marks(result(location), a=text) for text in (b"one", b"two"))
        assert first == again
        assert first != marks(result(location, message={"text": "other"}), a=b"one")


def test_a_mark_is_not_bound_to_the_folder_that_the_tool_saw() -> None:
    def told(root: str, name: str) -> list[str]:
        message = {"text": f"{root}/{name} has no licence"}
        outside = located(f"file://{root}/sub/", None)
        return marks(result(located(f"file://{root}/{name}", None), message=message), root=root) + marks(
            result(outside), root=root
        )

    assert told("/one", "a.py") == told("/two/three", "a.py")


def test_in_a_notebook_a_mark_is_that_of_the_message() -> None:
    """Its lines are counted in cells, and mean nothing in the file: a new cell on top makes nothing new."""

    def of(name: str, line: int, text: str) -> list[str]:
        said = result(located(name, line), message={"text": text})
        raw = json.dumps(document(run(said))).encode()
        (found,), _ = read_sarif(io.BytesIO(raw), "lint", ROOT, lambda path: [b"{", b'"cells": [', b"1"])
        assert found.line == line
        return [found.mark]

    assert of("n.ipynb", 1, "unused") == of("N.IPYNB", 3, "unused") != of("n.ipynb", 1, "other")
    assert of("n.ipynb.py", 1, "unused") != of("n.ipynb.py", 3, "unused")


def test_without_a_path_a_mark_covers_the_uri() -> None:
    first, second = (marks(result(located(f"https://example.com/{name}"))) for name in "ab")
    assert first != second


def test_what_is_said_of_the_file_as_a_whole_is_not_bound_to_its_first_line() -> None:
    whole = located("a.py")
    whole["physicalLocation"]["region"] = dict.fromkeys(
        ("startLine", "startColumn", "endLine", "endColumn"), 1
    )
    assert marks(result(whole), a=b"one\n") == marks(result(whole), a=b"two\none\n")
    assert marks(result(located("a.py")), a=b"one\n") != marks(result(located("a.py")), a=b"two\none\n")


def test_a_constant_fingerprint_merges_no_findings() -> None:
    constant = {"fingerprints": {"matchBasedId/v1": "requires login"}}
    found = marks(*(result(located("a.py", line), **constant) for line in (1, 2)), a=b"one\ntwo")
    assert len(set(found)) == 2


def test_a_file_is_asked_for_its_lines_once() -> None:
    asked: list[bytes] = []

    def lines(path: RepoPath) -> list[bytes]:
        asked.append(path.raw)
        return [b"text"] * 9

    told = document(run(*(result(located(f"{name}.py", line)) for line in (1, 2, 3) for name in "ab")))
    read_sarif(io.BytesIO(json.dumps(told).encode()), "lint", ROOT, lines)
    assert asked == [b"a.py", b"b.py"]


def test_no_more_text_is_held_than_there_is_room_and_a_file_is_asked_for_twice_at_most() -> None:
    asked: list[bytes] = []

    def lines(path: RepoPath) -> list[bytes] | None:
        asked.append(path.raw)
        return None if path.raw == b"gone" else [b"x" * 100] * 10

    files = TreeFiles(lines, max_cached=2000)
    names = [RepoPath(name) for name in (b"a", b"b", b"gone")]
    assert [files.has(name) for name in names * 2] == [True, True, False] * 2
    assert [len(files.lines(name)) for name in names[:2]] == [10, 10]
    assert asked == [b"a", b"b", b"gone", b"b"]


# ---- what tells nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"All checks passed!\n", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"{}", "no SARIF version"),
        (b'{"version": "2.1.0"}', "no runs"),
        (b'{"version": "2.1.0", "runs": null}', "no runs"),
        (b'{"version": "2.1.0", "runs": []}', "no runs"),
        (b'{"version": "2.1.0", "runs": {}}', "`runs` is not a list"),
        (b'{"version": "2.0.0", "runs": []}', "version 2.0.0"),
        (b'{"version": 2.1, "runs": []}', "no SARIF version"),
        (b'{"version": "2.1.0", "runs": [], "runs": []}', "`runs` twice"),
        (document({"results": []}), "tool.driver.name"),
        (document({"tool": {"driver": {}}, "results": []}), "tool.driver.name"),
        (document({"tool": {"driver": {"name": "probe"}}}), r"runs\[0\].results is missing"),
        (document(run(), run(results=None)), r"runs\[1\].results is missing"),
        (document(run(results={})), r"runs\[0\].results is not a list"),
        (document(run(results=[1])), r"runs\[0\].results\[0\] is not an object"),
        (document(run(result(ruleId=1))), r"results\[0\].ruleId is not a string"),
        (document(run(result(message="text"))), r"results\[0\].message is not an object"),
        (document(run(result(locations={}))), r"results\[0\].locations is not a list"),
        (document(run(result({"physicalLocation": 1}))), r"locations\[0\].physicalLocation is not an object"),
        (document(run(result(located(1)))), r"artifactLocation.uri is not a string"),  # type: ignore[arg-type]
        (document(run(result(suppressions=[1]))), r"suppressions\[0\] is not an object"),
        (document(run(invocations=[{"executionSuccessful": False}])), "did not succeed"),
        (document(run(invocations=[{"executionSuccessful": None}])), "did not succeed"),
        (
            document(run(invocations=[{"executionSuccessful": True}, {"executionSuccessful": 0}])),
            "did not succ",
        ),
        (json.dumps(document(run())).encode()[:-1], "found the end"),
        (json.dumps(document(run())).encode() + b"{}", "expected the end"),
        (b'{"version": "2.1.0", "x": [NaN], "runs": []}', "contains NaN"),
        (json.dumps(document(run())).encode("utf-16"), "not UTF-8"),
        (b'{"version": "2.1.0", "runs": [' + b"[" * 5000, "nested|not JSON|not a JSON object"),
    ],
    ids=lambda each: each if isinstance(each, str) else "told",
)
def test_what_is_no_whole_sarif_tells_nothing(told: Json | bytes, said: str) -> None:
    with pytest.raises(NotReadError, match=said):
        read(told)


@pytest.mark.parametrize("kind", ["toolExecutionNotifications", "toolConfigurationNotifications"])
@pytest.mark.parametrize("level", ["error", "warning", None])
def test_a_notification_of_an_error_tells_that_not_all_was_looked_at(kind: str, level: str | None) -> None:
    notification = {"message": {"text": "syntax error\x1b"}, "level": level, "locations": [located("bad.py")]}
    told = document(run(invocations=[{"executionSuccessful": True, kind: [notification]}]))
    if level != "error":
        assert read(told) == []
        return
    refused = refusal(told)
    assert refused.message.endswith(r": syntax error\x1b (bad.py)")
    assert refused.hint


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (run(result(), result(), result()), " 2 results"),
        (run(tool={"driver": {"name": "p", "rules": [{}, {}, {}]}}), " 2 rules"),
        (run(artifacts=[{}, {}, {}]), " 2 artifacts"),
        (run(originalUriBaseIds={"a": {}, "b": {}, "c": {}}), " 2 bases"),
        (run(tool={"driver": {"name": "p"}, "extensions": [{}, {}, {}]}), " 2 extensions"),
        (
            run(
                tool={
                    "driver": {
                        "name": "p",
                        "rules": [{"messageStrings": {key: {"text": ""} for key in "abc"}}],
                    }
                }
            ),
            " 2 templates",
        ),
    ],
)
def test_each_limit_is_named_in_the_refusal(monkeypatch: pytest.MonkeyPatch, told: Json, said: str) -> None:
    read(document(told))
    monkeypatch.setattr(sarif_reader, "MOST", dict.fromkeys(sarif_reader.MOST, 2))
    assert said in refusal(document(told)).message


def test_a_limit_is_that_of_all_runs_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif_reader, "MOST", sarif_reader.MOST | {"results": 2})
    assert " 2 results" in refusal(document(run(result(), result()), run(result()))).message


def test_messages_that_grow_out_of_one_template_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif_reader, "MAX_MESSAGES", 100)
    told = [result(message={"text": "x" * 30 + "{0}", "arguments": [str(number)]}) for number in range(9)]
    assert len(read(document(run(*told[:3])))) == 3
    assert " 100 characters" in refusal(document(run(*told))).message
    assert len(read(document(run(*told[:1] * 9)))) == 9


def test_a_byte_order_mark_is_read_over() -> None:
    assert len(read(b"\xef\xbb\xbf" + json.dumps(document(run(result()))).encode())) == 1


LARGE = """
import io, resource, sys
limit = 300 << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from patchgate.commands.sarif_reader import read_sarif

ONE = b'{"ruleId":"R","message":{"text":"m"},"properties":{"x":"' + b"p" * 1900 + b'"},"locations":' \\
    b'[{"physicalLocation":{"artifactLocation":{"uri":"a.py"},"region":{"startLine":%d}}}]}'

class Large(io.RawIOBase):
    def __init__(self):
        self.pieces = self.make()
        self.rest = b""
    def make(self):
        yield b'{"runs":[{"results":['
        for number in range(1, 60_000):
            yield ONE % number + b","
        yield ONE % 60_000 + b']'
        yield b',"tool":{"driver":{"name":"large"}}}],"version":"2.1.0"}'
    def read(self, size=-1):
        while len(self.rest) < size:
            piece = next(self.pieces, None)
            if piece is None:
                break
            self.rest += piece
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

print(len(read_sarif(Large(), "lint", "/tree", lambda path: [])[0]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory cannot be limited so")
def test_120_mib_are_read_in_less_memory_than_their_text_takes_twice() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LARGE], capture_output=True, check=False, env=dict(os.environ)
    )
    assert (done.stdout, done.stderr) == (b"60000\n", b"")


# ---- anything at all -------------------------------------------------------------------------------------

KEYS = (
    "version runs tool driver name rules id results ruleId ruleIndex rule index message text arguments level "
    "kind locations relatedLocations physicalLocation artifactLocation uri uriBaseId region startLine "
    "suppressions status invocations executionSuccessful toolExecutionNotifications artifacts location "
    "originalUriBaseIds extensions messageStrings 2.1.0 a.py error fail ../x file:///x % \ud800"
)
WORDS = st.sampled_from(KEYS.split(" "))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=30,
)
FULL = document(
    run(
        result(
            located("a.py", 1, uriBaseId="B", index=0),
            relatedLocations=[located("b.py", 2)],
            suppressions=[{"kind": "inSource", "status": "accepted"}],
            rule={"id": "R", "index": 0, "toolComponent": {"name": "x", "index": 0}},
            message={"text": "t {0}", "id": "m", "arguments": ["x"]},
            kind="fail",
            level="error",
        ),
        tool={"driver": {"name": "p", "rules": RULES}, "extensions": [{"name": "x", "rules": RULES}]},
        originalUriBaseIds={"B": {"uri": "src/", "uriBaseId": "C"}},
        artifacts=[{"location": {"uri": "c.py"}}],
        invocations=[
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "note", "message": {"text": "n"}, "locations": [located()]}
                ],
            }
        ],
    )
)


def spots(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(spot for key, each in inner for spot in spots(each, (*at, key)))]


SPOTS = spots(FULL)[1:]


@settings(max_examples=often(500), deadline=None)
@given(st.sampled_from(SPOTS), ANYTHING, st.sampled_from(SPOTS), ANYTHING)
def test_whatever_stands_in_a_document_it_is_read_or_refused_in_words(
    first: tuple[Any, ...], one_value: Any, second: tuple[Any, ...], other_value: Any
) -> None:
    changed: Any = copy.deepcopy(FULL)
    for spot, value in ((first, one_value), (second, other_value)):
        # The second may lie in what the first has taken the place of.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            functools.reduce(operator.getitem, spot[:-1], changed)[spot[-1]] = value
    require_read_or_refused(json.dumps(changed).encode())


@settings(max_examples=often(300), deadline=None)
@given(
    st.binary(max_size=100)
    | ANYTHING.map(lambda value: json.dumps(value).encode())
    | st.builds(
        lambda cut, change: json.dumps(FULL).encode()[:cut] + change,
        st.integers(0, 1500),
        st.binary(max_size=3),
    )
)
def test_any_bytes_are_read_or_refused_in_words(raw: bytes) -> None:
    require_read_or_refused(raw)


def require_read_or_refused(raw: bytes) -> None:
    try:
        found = both(raw, a=b"text")
    except NotReadError as error:
        found, told = ((), ()), error.message
    else:
        told = ""
    assert all(map(is_printable, told))
    for each in (*found[0], *found[1]):
        assert each.level in {"error", "warning", "note", "none"}
        assert len(each.mark) == 32
        assert each.rule
        (each.message + each.rule + each.tool).encode()
        assert all(path.raw and not path.raw.startswith((b"/", b"../")) for path in each.paths)


def test_a_tab_that_is_quoted_moves_no_cursor() -> None:
    require_read_or_refused(b'{"version":"\\t"}')
