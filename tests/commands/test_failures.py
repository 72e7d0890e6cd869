"""What a command that failed says has failed: tests, findings, or its output without paths and times."""

from __future__ import annotations

import json
from pathlib import Path

from patchgate.commands.test_results import Failures, FailureSource, failures_of
from patchgate.git.path import RepoPath

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
        FailureSource.TESTS,
        ["tests.test_a::test_one", "tests.test_a::test_two"],
    )
    again = read(b"other", REPORT.replace(b"/tmp/1", b"/tmp/2"))
    assert again is not None
    assert again.marks == found.marks


def test_too_little_coverage_is_a_failure_beside_the_tests() -> None:
    tests = read(b"F\n", REPORT)
    assert tests is not None
    for line in (
        b"FAIL Required test coverage of 80% not reached. Total coverage: 75.00%",
        rb"\x1b[31m\x1b[1mFAIL Required test coverage of 80% not reached. Total coverage: 74.00%",
        b"ERROR: Coverage failure: total of 75 is less than fail-under=80",
    ):
        found = read(b"F\n" + line + b"\n1 failed\n", REPORT)
        assert found is not None
        assert [found.names[mark] for mark in found.marks - tests.marks] == ["the coverage"], line


def test_names_within_the_tree_and_addresses_tell_failures_apart(tmp_path: Path) -> None:
    (tmp_path / "real/tree").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    def found(text: str) -> frozenset[str]:
        told = failures_of(text.encode(), None, f"{tmp_path}/link/tree", lambda path: None)
        assert told is not None
        return told.marks

    one, other, outside = (
        found(f"{tmp_path}/{name}:1:8: F401") for name in ("real/tree/a", "real/tree/b", "real/c")
    )
    assert len({one, other, outside}) == 3
    assert one == found("a:1:8: F401") == found(f"{tmp_path}/link/tree/a:1:8: F401")
    assert outside == found(f"{tmp_path}/d:1:8: F401")
    assert found("FAIL GET /no-such-root/login 500") != found("FAIL GET /no-such-root/orders 500")


def test_a_run_that_did_not_come_to_all_of_its_tests_cannot_be_compared() -> None:
    for line in (
        b"!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!!",
        b"!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!!",
        b"!!!!!!!!! xdist.dsession.Interrupted: stopping after 1 failures !!!!!!!!!!",
        # In colour, as the log has it; and where the line has no room.
        rb"\x1b[31m!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!\x1b[0m",
        rb"\x1b[31m\x1b[1m! Interrupted: 1 error during collection !\x1b[0m",
        b"! _pytest.outcomes.Exit: "
        + b"the database that these tests need is not there, or is too old " * 2
        + b"!",
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
    assert (found.form, sorted(found.names.values())) == (FailureSource.FINDINGS, ["f:1: F401", "f:1: F401"])
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
