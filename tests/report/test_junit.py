"""The report as JUnit XML: what counts as failed, an error and skipped, and that it stays XML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from patchgate.report.ci_formats import junit
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, GateOutcome, Outcome, Report
from tests.report.verdict_reports import BLIND, HOSTILE, commits, finding, hostile, judged, report


def parse(given: Report) -> ElementTree.Element:
    """Read the XML back, and check that the counts are those of the elements."""
    text = junit(given)
    assert text.isascii()
    root = ElementTree.fromstring(text)
    for element in (root, *root.iter("testsuite")):
        for count, tag in (
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ):
            assert element.get(count) == str(len(list(element.iter(tag))))
    return root


def cases(given: Report) -> dict[str | None, list[str]]:
    return {case.get("name"): [child.tag for child in case] for case in parse(given).iter("testcase")}


def test_a_clean_change_is_a_suite_of_passing_gates() -> None:
    root = parse(report())
    assert [suite.get("name") for suite in root] == ["staged change"]
    assert cases(report()) == {"paths": [], "policy": []}


def test_a_gate_with_errors_is_one_failure_that_tells_them_all() -> None:
    given = report(finding(), finding("deny-suffix", "a.exe", message="a.exe is denied", hint="h"))
    assert cases(given) == {"paths": [], "policy": ["failure"]}
    (failure,) = parse(given).iter("failure")
    assert (failure.get("type"), failure.get("message")) == ("deny-prefix", "2 errors: runs/ is denied")
    assert failure.text == (
        "runs/x: error deny-prefix runs/ is denied\n  help: leave it unchanged\n"
        "a.exe: error deny-suffix a.exe is denied\n  help: h"
    )


def test_warnings_fail_nothing_and_are_told() -> None:
    given = report(finding(level=Level.WARNING, hint=None))
    assert cases(given) == {"paths": [], "policy": ["system-out"]}
    (told,) = parse(given).iter("system-out")
    assert told.text == "runs/x: warning deny-prefix runs/ is denied"


def test_a_gate_that_gave_no_answer_is_an_error_and_one_that_does_not_apply_is_skipped() -> None:
    gates = (*BLIND, GateOutcome("governance", Outcome.NOT_APPLICABLE))
    given = Report((judged(gates=gates),))
    assert cases(given) == {"paths": [], "content": ["error"], "shape": ["error"], "governance": ["skipped"]}
    assert next(parse(given).iter("error")).get("message") == (
        "content could not decide (object 9af3 is missing)"
    )


def test_a_change_that_no_gate_looked_at_does_not_read_as_passed() -> None:
    whole = judged()
    unseen = ChangeVerdict(whole.change, whole.source, whole.profile, whole.policy, (), ())
    assert cases(Report((unseen,))) == {"judge": ["error"]}


def test_a_gate_that_was_not_needed_after_a_refusal_is_skipped() -> None:
    gates = (GateOutcome("policy", Outcome.FAIL), GateOutcome("shape", Outcome.NOT_RUN))
    assert cases(Report((judged(finding(), gates=gates),))) == {"policy": ["failure"], "shape": ["skipped"]}


def test_a_finding_whose_gate_is_not_listed_fails_all_the_same() -> None:
    assert cases(report(finding("secret", "a", 1)))["content"] == ["failure"]


def test_a_range_has_a_suite_for_each_commit() -> None:
    root = parse(commits((), (finding(),)))
    assert [suite.get("name") for suite in root] == ["commit 100000000000", "commit 200000000000"]
    assert [suite.get("failures") for suite in root] == ["0", "1"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_stays_text(name: str) -> None:
    given, harmless = hostile(HOSTILE[name]), hostile(b"harmless")
    assert [element.tag for element in parse(given).iter()] == [
        element.tag for element in parse(harmless).iter()
    ]


def test_characters_that_xml_forbids_are_left_out() -> None:
    text = junit(report(finding(message="a\ufffeb\uffffc]]>")))
    assert "abc]]&gt;" in text
    assert "&#65534;" not in text
