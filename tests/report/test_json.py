"""The report as JSON: every key, what a rename and a strange name become, and its own JSON Schema."""

from __future__ import annotations

import base64
import json as standard_json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from patchgate import __version__
from patchgate.errors import ConfigError, Mistake, UndecidedError
from patchgate.git.model import Change, FileChange, Source
from patchgate.report import json
from patchgate.report.rules import Level
from patchgate.report.schema import json_schema
from patchgate.report.verdict import ChangeVerdict, Finding, Fix, Json, Report, fingerprints
from tests.report.verdict_reports import (
    AFTER,
    BASE,
    BLIND,
    COMMIT,
    HOSTILE,
    PARENT,
    commits,
    entry,
    finding,
    hostile,
    judged,
    modified,
    path,
    report,
)

VALIDATOR = Draft202012Validator(json_schema())


def read(given: Report) -> Any:
    """Render, check what holds for every report, and read it back."""
    text = json.render(given)
    assert text.isascii()
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    value = standard_json.loads(text)
    VALIDATOR.validate(value)
    standard_json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def only_change(given: Report) -> Any:
    (change,) = read(given)["changes"]
    return change


def renamed(old: bytes, new: bytes) -> tuple[FileChange, FileChange]:
    return (
        FileChange(path(new), None, entry(), added_lines=90, removed_lines=0, n_hunks=1),
        FileChange(path(old), entry(), None, added_lines=0, removed_lines=90, n_hunks=1),
    )


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())


def test_a_report_has_every_key_of_the_design() -> None:
    refusal = finding(hint="leave it", details={"pattern": "runs/"})
    given = report(refusal)
    assert read(given) == {
        "schema": "patchgate.report/2",
        "tool": {"version": __version__, "rules": 1},
        "verdict": "rejected",
        "changes": [
            {
                "id": given.changes[0].id,
                "change_id": given.changes[0].change_id,
                "verdict": "rejected",
                "source": {"kind": "staged", "ref": None},
                "profile": "commit",
                "profile_reason": None,
                "base": BASE,
                "after": AFTER,
                "commit": None,
                "base_commit": PARENT,
                "policy": {"digest": "sha256:" + "5" * 64, "from": "HEAD:patchgate.toml"},
                "stage": "policy",
                "code": "PATCH_POLICY_DENY",
                "stats": {"files": 1, "n_hunks": 1, "added_lines": 3, "removed_lines": 1, "patch_id": None},
                "limits": {
                    "max_files": {"limit": 50, "used": 1},
                    "max_added_lines": {"limit": None, "used": 3},
                },
                "files": [
                    {
                        "path": "src/a.py",
                        "old_path": None,
                        "status": "modified",
                        "old_mode": "100644",
                        "new_mode": "100644",
                        "added_lines": 3,
                        "removed_lines": 1,
                        "binary": False,
                    }
                ],
                "gates": [{"gate": "paths", "outcome": "pass"}, {"gate": "policy", "outcome": "fail"}],
                "context_gates": [],
                "findings": [
                    {
                        "rule": "deny-prefix",
                        "stage": "policy",
                        "code": "PATCH_POLICY_DENY",
                        "level": "error",
                        "path": "runs/x",
                        "line": None,
                        "side": "new",
                        "message": "runs/ is denied",
                        "hint": "leave it",
                        "who_can_fix": "agent",
                        "fix": None,
                        "details": {"pattern": "runs/", "limit": None, "actual": None},
                        "fingerprint": fingerprints([refusal])[0],
                    }
                ],
                "repaired": [],
            }
        ],
        "attempt": None,
        "failure": {
            "stage": "policy",
            "code": "PATCH_POLICY_DENY",
            "fallback_reason": "deny-prefix",
            "patch_id": None,
            "n_hunks": 1,
            "added_lines": 3,
            "removed_lines": 1,
            "temp_path": None,
        },
        "retry": None,
        "warnings": [],
        "recovery": [],
        "approve": None,
    }


def test_an_accepted_change_has_no_stage_and_an_empty_range_no_changes() -> None:
    change = only_change(report(finding(level=Level.WARNING)))
    assert (change["verdict"], change["stage"], change["code"]) == ("accepted", None, None)
    empty = read(Report((), ("a note",)))
    assert (empty["verdict"], empty["changes"], empty["warnings"]) == ("accepted", [], ["a note"])


def test_a_range_has_one_change_for_each_commit() -> None:
    changes = read(commits((), (finding(),), ()))["changes"]
    assert [change["verdict"] for change in changes] == ["accepted", "rejected", "accepted"]
    assert len({change["commit"] for change in changes}) == 3


def test_a_gate_that_could_not_decide_gives_its_reason() -> None:
    change = only_change(Report((judged(gates=BLIND, commit=COMMIT),)))
    assert change["verdict"] == "undecided"
    assert change["gates"][1:] == [
        {"gate": "content", "outcome": "undecided", "reason": "object 9af3 is missing."},
        {"gate": "shape", "outcome": "not-run"},
    ]


def test_an_exact_rename_is_one_entry_that_changes_no_line() -> None:
    change = only_change(report(files=renamed(b"old/a.py", b"new/a.py")))
    assert change["files"] == [
        {
            "path": "new/a.py",
            "old_path": "old/a.py",
            "status": "renamed",
            "old_mode": "100644",
            "new_mode": "100644",
            "added_lines": 0,
            "removed_lines": 0,
            "binary": False,
        }
    ]
    assert change["stats"] == {
        "files": 1,
        "n_hunks": 0,
        "added_lines": 0,
        "removed_lines": 0,
        "patch_id": None,
    }


def test_a_rename_keeps_the_exact_bytes_of_both_names() -> None:
    (file,) = only_change(report(files=renamed(b"old\n", b"new\xff")))["files"]
    assert (file["path"], base64.b64decode(file["path_b64"])) == ('"new\\377"', b"new\xff")
    assert (file["old_path"], base64.b64decode(file["old_path_b64"])) == ('"old\\n"', b"old\n")


def test_each_status_and_the_modes_of_a_missing_side() -> None:
    files = (
        FileChange(path("added"), None, entry("a"), 1, 0),
        FileChange(path("deleted"), entry("b"), None, 0, 1),
        FileChange(path("mode"), entry("c"), entry("c", "100755"), 0, 0),
        FileChange(path("type"), entry("d"), entry("e", "120000"), 1, 1),
    )
    rows = only_change(report(files=files))["files"]
    assert [(row["status"], row["old_mode"], row["new_mode"]) for row in rows] == [
        ("added", None, "100644"),
        ("deleted", "100644", None),
        ("mode-changed", "100644", "100755"),
        ("type-changed", "100644", "120000"),
    ]


def test_the_lines_of_a_binary_file_are_null_and_count_nothing() -> None:
    binary = FileChange(path("logo.png"), entry("a"), entry("b"), binary=True)
    submodule = FileChange(path("sub"), entry("c", "160000"), entry("d", "160000"))
    change = only_change(report(files=(binary, modified("z.py"), submodule)))
    assert (change["files"][0]["added_lines"], change["files"][0]["binary"]) == (None, True)
    assert change["stats"]["added_lines"] == 3


def test_lines_that_nobody_counted_are_null_and_not_zero() -> None:
    uncounted = FileChange(path("b"), entry("a"), entry("b"))
    stats = only_change(report(files=(modified("a"), uncounted)))["stats"]
    assert (stats["added_lines"], stats["removed_lines"], stats["files"]) == (None, None, 2)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_survives_as_valid_unicode(name: str) -> None:
    raw = HOSTILE[name]
    change = only_change(hostile(raw))
    for row in (change["files"][0], change["findings"][0]):
        exact = base64.b64decode(row["path_b64"]) if "path_b64" in row else row["path"].encode("utf-8")
        assert exact == raw


def test_details_keep_their_shape_and_lose_what_json_lacks() -> None:
    details: dict[str, Json] = {
        "actual": float("nan"),
        "limit": 1.5,
        "split": (("a", "b\udcff"), ["c"]),
        "expected": {"k\udc80": True},
    }
    written = only_change(report(finding(details=details)))["findings"][0]["details"]
    assert written == {
        "pattern": None,
        "limit": 1.5,
        "actual": None,
        "split": [["a", "b\\udcff"], ["c"]],
        "expected": {"k\\udc80": True},
    }


def test_the_source_line_is_left_out_for_it_may_hold_a_secret() -> None:
    assert "ghp_" not in json.render(report(finding("secret", "a", 1, excerpt=b"ghp_0123")))


def test_an_error_always_has_a_hint_and_a_note_may_have_none() -> None:
    rows = only_change(report(finding("secret", hint=None), finding(level=Level.NOTE, hint=None)))["findings"]
    assert rows[0]["hint"].startswith("remove it")
    assert rows[1]["hint"] is None


def test_a_mechanical_fix_is_written_out() -> None:
    mended = Finding("deny-prefix", Level.ERROR, "m", fix=Fix("safe", 4, "+x\udcff"))
    assert only_change(report(mended))["findings"][0]["fix"] == {
        "applicability": "safe",
        "patch_line": 4,
        "last_patch_line": 4,
        "replace_with": "+x\\udcff",
    }


def test_the_schema_refuses_a_report_that_lacks_or_adds_a_key() -> None:
    value = read(report(finding()))
    assert VALIDATOR.is_valid(value)
    for broken in (
        {**value, "extra": 1},
        {key: item for key, item in value.items() if key != "retry"},
        {**value, "verdict": "passed"},
        {**value, "changes": [{**value["changes"][0], "id": "1"}]},
    ):
        assert not VALIDATOR.is_valid(broken)


def test_a_hundred_thousand_files_with_strange_names_are_all_given() -> None:
    number = 100_000
    files = tuple(modified(b"%06d\xff" % index) for index in range(number))
    whole = judged()
    many = ChangeVerdict(
        Change(BASE, AFTER, files),
        Source("staged"),
        "commit",
        whole.policy,
        whole.gates,
        tuple(Finding("deny-prefix", Level.ERROR, "m", file.path) for file in files[:1000]),
    )
    (change,) = standard_json.loads(json.render(Report((many,))))["changes"]
    assert len(change["files"]) == change["stats"]["files"] == number
    assert len(change["findings"]) == 1000


def test_an_error_is_a_document_of_its_own() -> None:
    text = json.error_document(UndecidedError("an object is missing", "git fetch --unshallow"))
    assert standard_json.loads(text) == {
        "schema": "patchgate.error/1",
        "error": {"kind": "undecided", "message": "an object is missing", "hint": "git fetch --unshallow"},
        "attempt": None,
    }


def test_a_config_error_lists_every_mistake() -> None:
    mistakes = (
        Mistake("patchgate.toml", 3, "policy.deny[0]", "bad pattern \udc80", "remove it"),
        Mistake("patchgate.toml", None, "", "too large"),
    )
    text = json.error_document(ConfigError(mistakes))
    assert text.isascii()
    error = standard_json.loads(text)["error"]
    assert error["kind"] == "config"
    assert error["mistakes"] == [
        {
            "file": "patchgate.toml",
            "line": 3,
            "key": "policy.deny[0]",
            "message": "bad pattern \\udc80",
            "hint": "remove it",
        },
        {"file": "patchgate.toml", "line": None, "key": "", "message": "too large", "hint": None},
    ]
