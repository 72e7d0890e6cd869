"""A finding about a line of a commit's message, in every form: it has a line, and no file."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from patchgate.git.model import Change, Source
from patchgate.report import json as report_json
from patchgate.report import sarif
from patchgate.report.ci_formats import github, gitlab, junit
from patchgate.report.rules import Level
from patchgate.report.schema import json_schema
from patchgate.report.text import concise, full
from patchgate.report.verdict import ChangeVerdict, Finding, GateOutcome, Outcome, Report
from tests.report.verdict_reports import HOSTILE, POLICY, finding, judged
from tests.schemas import require_valid

SAID = 'the message says "as needed", which cannot be checked'
TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def vague(level: Level = Level.ERROR, excerpt: bytes = b"Mend it as needed") -> Finding:
    """Make a finding about line 3 of a message."""
    about = {"pattern": "as needed"}
    made = finding("message-vague", None, 3, level, SAID, "say what", excerpt, details=about)
    return replace(made, notes=("the message is saved in .git/COMMIT_EDITMSG",))


def report(*findings: Finding) -> Report:
    """Make the report of a commit-msg hook."""
    failed = any(each.level is Level.ERROR for each in findings)
    outcome = GateOutcome("message", Outcome.FAIL if failed else Outcome.PASS)
    change = Change(TREE, TREE, ())
    return Report((ChangeVerdict(change, Source("message"), "commit", POLICY, (outcome,), findings),))


def only_change(given: Report) -> dict[str, Any]:
    """Write a report as JSON, hold it against its schema, and give its only change."""
    made = json.loads(report_json.render(given))
    require_valid(made, json_schema())
    (change,) = made["changes"]
    return dict(change)


def test_people_read_the_line_and_its_words() -> None:
    assert full(report(vague()), color=False) == (
        f"""\
error[message-vague]: {SAID}
 --> message:3
  |
3 | Mend it as needed
  |
  the message is saved in .git/COMMIT_EDITMSG
help: say what

rejected: 1 error (policy HEAD:patchgate.toml)
"""
    )
    assert full(report(), color=False) == "accepted: 0 files, no findings\n"


def test_a_line_for_editors_names_the_message() -> None:
    line = concise(report(vague(Level.WARNING))).splitlines()[0]
    assert line == f"message:3: warning message-vague {SAID}"


def test_the_json_has_a_line_without_a_path_and_fits_its_schema() -> None:
    change = only_change(report(vague()))
    assert (change["stage"], change["code"]) == ("message", "MESSAGE_REFUSED")
    assert change["source"]["kind"] == "message"
    (row,) = change["findings"]
    assert (row["path"], row["line"], row["details"]["pattern"]) == (None, 3, "as needed")


def test_as_a_circumstance_of_a_commit_it_changes_no_verdict_id() -> None:
    plain = judged(commit="c" * 40)
    held = replace(plain, findings=(vague(),), context_gates=(GateOutcome("message", Outcome.FAIL, None),))
    assert held.id == plain.id
    change = only_change(Report((held,)))
    assert change["context_gates"] == [{"gate": "message", "outcome": "fail"}]
    assert change["code"] == "MESSAGE_REFUSED"
    assert "message:3" in full(Report((held, plain)), color=False)


def test_a_refusal_by_a_gate_comes_before_that_of_the_message() -> None:
    assert judged(vague(), finding(), commit="c" * 40).decisive == finding()


def test_sarif_has_a_result_without_a_location() -> None:
    (result,) = json.loads(sarif.render(report(vague())))["runs"][0]["results"]
    assert "locations" not in result
    assert (result["properties"]["line"], result["properties"]["code"]) == (3, "MESSAGE_REFUSED")


def test_build_services_are_told_the_line_in_words() -> None:
    said = github(report(vague())).splitlines()[0]
    assert said == f"::error title=message-vague::message:3: {SAID}%0Ahelp: say what"
    (issue,) = json.loads(gitlab(report(vague())))
    assert issue["location"] == {"path": ".", "lines": {"begin": 1}}


def test_junit_has_a_test_case_of_the_gate() -> None:
    (case,) = ElementTree.fromstring(junit(report(vague()))).iter("testcase")
    assert case.get("name") == "message"
    failure = case.find("failure")
    assert failure is not None
    assert (failure.text or "").startswith("message:3: error message-vague")


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_line_of_a_message_is_shown_escaped(raw: bytes) -> None:
    text = full(report(vague(excerpt=raw)), color=False)
    assert not set(text) & {"\x1b", "\r", "\x07", "\u202e", "\u009b", "\u2028"}
    assert len(text.splitlines()) == len(full(report(vague()), color=False).splitlines())
