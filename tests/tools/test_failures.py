"""What a command that failed says has failed: tests, findings, or its output without paths and times."""

from __future__ import annotations

import json

from patchgate.change.path import RepoPath
from patchgate.tools.failures import Failures, Form, failures_of

PLACE = "/home/x/.cache/patchgate/trees/1/tree"
REPORT = b"""<testsuites><testsuite name="pytest" tests="3">
<testcase classname="tests.test_a" name="test_one"><failure message="x">/tmp/1</failure></testcase>
<testcase classname="tests.test_a" name="test_two"><error message="x"></error></testcase>
<testcase classname="tests.test_a" name="test_three"></testcase>
</testsuite></testsuites>"""


def read(log: bytes, report: bytes | None = None) -> Failures | None:
    return failures_of(log, report, PLACE, lambda path: (b"one", b"two") if path == RepoPath(b"f") else None)


def marks(log: bytes) -> frozenset[str]:
    found = read(log)
    assert found is not None
    return found.marks


def test_tests_are_known_by_their_names() -> None:
    found = read(b"whatever", REPORT)
    assert found is not None
    assert (found.form, sorted(found.names.values())) == (
        Form.TESTS,
        ["tests.test_a::test_one", "tests.test_a::test_two"],
    )
    again = read(b"other", REPORT.replace(b"/tmp/1", b"/tmp/2"))
    assert again is not None
    assert again.marks == found.marks


def test_a_run_that_did_not_come_to_all_of_its_tests_cannot_be_compared() -> None:
    for line in (
        b"!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        b"!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!!",
        b"!!!!!!!!! xdist.dsession.Interrupted: stopping after 1 failures !!!!!!!!!!",
    ):
        assert read(b"F\n" + line + b"\n1 failed in 0.02s\n", REPORT) is None, line
    unnamed = REPORT.replace(b"</testsuite>", b"<testcase></testcase></testsuite>")
    assert read(b"F\n", unnamed) is None
    assert read(b"F\n", REPORT[:-20]) is None


def test_findings_are_known_by_rule_file_line_and_how_often_they_occur() -> None:
    def sarif(*lines: int, rule: str = "F401") -> bytes:
        results = [
            {
                "ruleId": rule,
                "message": {"text": "unused"},
                "locations": [
                    {
                        "physicalLocation": {
                            "artifactLocation": {"uri": "f"},
                            "region": {"startLine": line},
                        }
                    }
                ],
            }
            for line in lines
        ]
        run = {"tool": {"driver": {"name": "ruff"}}, "results": results}
        return json.dumps({"version": "2.1.0", "runs": [run]}).encode()

    found = read(sarif(1, 1))
    assert found is not None
    assert (found.form, sorted(found.names.values())) == (Form.FINDINGS, ["f:1: F401", "f:1: F401"])
    assert marks(sarif(1)) < found.marks
    assert not marks(sarif(2)) & found.marks
    assert not marks(sarif(1, rule="E501")) & found.marks
    # Findings are all that such a document says: without one nothing is known.
    assert read(sarif()) is None


def test_output_is_compared_without_what_differs_from_run_to_run() -> None:
    first = f"""\
{PLACE}/src/a.py:3:7: error in /home/x/.local/lib/m.py at 0x7f1234567890
2026-11-23T03:17:46.123Z started, 10:20:30 ended ({PLACE})
--- 1 failed, 2 passed in 0.21s ---
""".encode()
    second = b"""\
src/a.py:3:7: error in /opt/m.py at 0x7fffffff0000\r
2026-11-24 started, 11:00:00.5 ended (.)\r
----- 1 failed, 2 passed in 12.05s -----
"""
    assert marks(first) == marks(second)
    for old, new in (
        (b"src/a.py", b"src/b.py"),
        (b":3:7", b":4:7"),
        (b"1 failed", b"2 failed"),
        (b"error", b"warning"),
    ):
        assert marks(first) != marks(first.replace(old, new)), new
    assert marks(b"f:10:20:30: bad\n") != marks(b"f:10:20:31: bad\n")
    assert marks(b"{not json}\n") == marks(b"{not json}\n")
    for silence in (b"", b"\n \n", b"----\n"):
        assert read(silence) is None
