"""How many tests really ran: the reports and summaries of real runners, and what is no report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands.test_results import ReportCounts, is_broken_off, read_report, why_nothing_ran
from tests.amount import often

pytestmark = pytest.mark.turns(3)

MIXED = """
import pytest
def test_good(): pass
def test_bad(): assert False
@pytest.fixture
def broken(): raise OSError
def test_error(broken): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected(): assert False
"""


# Other plugins say nothing here, and take long to import.
PLAIN = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def case(inner: str = "") -> bytes:
    return f'<testcase classname="test_it" name="test_a">{inner}</testcase>'.encode()


def reported(folder: Path, module: str, *options: str) -> ReportCounts:
    """Run the real pytest on a module, and read its report."""
    (folder / "test_it.py").write_text(module)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml"]
    subprocess.run(
        [*command, *options, "test_it.py"], cwd=folder, env=PLAIN, capture_output=True, check=False
    )
    return read_report((folder / "report.xml").read_bytes())


def test_every_way_to_end_is_counted_as_pytest_reports_it(tmp_path: Path) -> None:
    assert reported(tmp_path, MIXED) == ReportCounts(passed=1, failed=1, errors=1, skipped=2)


def test_a_collection_that_runs_nothing_has_no_test(tmp_path: Path) -> None:
    assert reported(tmp_path, MIXED, "--collect-only") == ReportCounts()


def test_a_module_that_cannot_be_imported_is_an_error(tmp_path: Path) -> None:
    assert reported(tmp_path, "import nothing_of_that_name") == ReportCounts(errors=1)


def test_a_module_that_is_skipped_as_a_whole_has_no_test_that_passed(tmp_path: Path) -> None:
    module = "import pytest\npytest.skip('no', allow_module_level=True)\ndef test_it(): pass\n"
    counts = reported(tmp_path, module)
    assert (counts.passed, counts.failed, counts.errors) == (0, 0, 0)


def test_a_test_that_fails_and_cannot_be_taken_down_counts_once() -> None:
    twice = case("<failure/><error/>")
    assert read_report(b"<testsuite>" + twice + case() + b"</testsuite>") == ReportCounts(passed=1, failed=1)


def test_what_a_test_printed_is_no_element_of_the_report() -> None:
    raw = b"<testsuite>" + case("<system-out><failure/></system-out>") + b"</testsuite>"
    assert read_report(raw) == ReportCounts(passed=1)


BROKEN_OFF = """
import pytest
def test_good(): pass
def test_it(): pytest.exit("stop", 0)
def test_bad(): assert False
"""


def test_a_test_that_breaks_the_run_off_is_an_error_and_not_one_that_passed(tmp_path: Path) -> None:
    assert reported(tmp_path, BROKEN_OFF) == ReportCounts(passed=1, errors=1, is_broken_off=True)


def test_tests_that_were_only_set_up_did_not_pass(tmp_path: Path) -> None:
    assert reported(tmp_path, "def test_it(): assert False\n", "--setup-only").is_broken_off


@pytest.mark.parametrize("attributes", ["", 'name="a"', 'classname="b"', 'name="" classname="b"', 'time="0"'])
def test_a_test_without_a_name_or_a_class_never_ended(attributes: str) -> None:
    raw = f"<testsuite>{case().decode()}<testcase {attributes}/></testsuite>"
    assert read_report(raw.encode()) == ReportCounts(passed=1, errors=1, is_broken_off=True)


def test_a_suite_that_counts_fewer_tests_than_it_holds_was_broken_off() -> None:
    two = case() + case()
    raw = b'<testsuites><testsuite tests="2">' + two + b'</testsuite><testsuite tests="1">' + two
    counts = read_report(raw + b"</testsuite></testsuites>")
    assert counts == ReportCounts(passed=3, errors=1, is_broken_off=True)
    # A test that fails and cannot be taken down is two cases, and counted once.
    failed = read_report(b'<testsuite tests="1">' + case("<failure/>") + case("<error/>") + b"</testsuite>")
    assert failed == ReportCounts(failed=1, errors=1)


def test_parts_of_a_test_that_are_counted_as_tests_do_not_matter(tmp_path: Path) -> None:
    assert read_report(b'<testsuite tests="8">' + case() + b"</testsuite>") == ReportCounts(passed=1)
    module = "import unittest\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n"
    module += "        for number in range(3):\n            with self.subTest(number=number): pass\n"
    assert reported(tmp_path, module) == ReportCounts(passed=1)


def pytest_said(folder: Path, module: str, *options: str) -> bytes:
    (folder / "test_it.py").write_text(module)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "test_it.py"]
    done = subprocess.run(command, cwd=folder, env=PLAIN, capture_output=True, check=False)
    return done.stdout


OPTIONS = pytest.mark.parametrize("options", [(), ("-qqq",), ("--color=yes", "--no-summary")])


@pytest.mark.sweep(4)
@OPTIONS
@pytest.mark.parametrize("reason", ["stop", "", "one\\ntwo"])
def test_a_run_that_is_broken_off_between_tests_says_so_in_its_output(
    tmp_path: Path, reason: str, options: tuple[str, ...]
) -> None:
    """Neither the exit code nor the report tell of it."""
    module = f"import pytest\n@pytest.fixture\ndef it(): pytest.exit('{reason}', 0)\n"
    module += "def test_good(): pass\ndef test_it(it): pass\n"
    assert is_broken_off(pytest_said(tmp_path, module, *options))


@OPTIONS
def test_what_a_test_prints_is_no_end(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert not is_broken_off(pytest_said(tmp_path, "def test_it(): print('!! Exit !!')", "-s", *options))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no xml",
        b"<testsuite><testcase>",
        b"<html/>",
        b"<html><testsuite><testcase/></testsuite></html>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><testsuite><testcase/></testsuite>',
    ],
)
def test_what_is_no_whole_report_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_report(raw)


@settings(max_examples=often(300), deadline=None)
@given(st.binary(max_size=200))
def test_bytes_that_are_no_report_end_in_one_kind_of_error(raw: bytes) -> None:
    for content in (raw, b"<testsuite>" + raw + b"</testsuite>"):
        try:
            counts = read_report(content)
        except ValueError as error:
            assert str(error)  # noqa: PT017
        else:
            assert counts.total >= 0


def unittest_said(folder: Path, body: str) -> bytes:
    (folder / "test_it.py").write_text(f"import unittest\nclass Test(unittest.TestCase):\n{body}\n")
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "test_it"], cwd=folder, capture_output=True, check=False
    )
    return done.stdout + done.stderr


def test_unittest_without_tests_or_with_skipped_ones_alone_ran_nothing(tmp_path: Path) -> None:
    assert why_nothing_ran(unittest_said(tmp_path, "    pass")) is not None
    skipped = "    @unittest.skip('no')\n    def test_a(self): pass"
    assert why_nothing_ran(unittest_said(tmp_path, skipped)) is not None
    both = skipped + "\n    def test_b(self): pass"
    assert why_nothing_ran(unittest_said(tmp_path, both)) is None


@pytest.mark.parametrize(
    "said",
    [
        b"no tests ran in 0.01s",
        b"===== no tests ran in 0.01s =====",
        b"1 skipped in 0.02s",
        b"=== 1 skipped, 2 deselected in 0.02s ===",
        b"running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        b"running 2 tests\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out",
        b"?   \texample.com/a\t[no test files]",
        b"ok  \texample.com/a\t0.001s [no tests to run]",
        b"No tests found, exiting with code 0",
        b"Tests:       3 skipped, 3 total",
        b"\x1b[1mTests:\x1b[22m       3 skipped, 3 total",
        b" Tests  2 skipped (2)",
        b"No test files found, exiting with code 0",
        b"  0 passing (1ms)",
        b"TAP version 13\n1..0",
        b"# tests 0\n# pass 0\n# fail 0",
        "ℹ tests 0\nℹ pass 0".encode(),
        b"Test project /x\nNo tests were found!!!",
    ],
)
def test_a_runner_that_says_that_nothing_ran_is_understood(said: bytes) -> None:
    assert why_nothing_ran(b"before\n" + said + b"\n") is not None


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"all is well",
        b"3 passed in 0.02s",
        b"=== 3 passed, 1 skipped in 0.02s ===",
        b"Ran 3 tests in 0.001s\n\nOK",
        b"Ran 3 tests in 0.001s\n\nOK (skipped=2)",
        b"test result: ok. 0 passed; 0 failed\ntest result: ok. 4 passed; 0 failed",
        b"?   \texample.com/a\t[no test files]\nok  \texample.com/b\t(cached)",
        b"ok  \texample.com/b\t0.004s\tcoverage: 3.0% of statements",
        b"Tests:       1 skipped, 3 passed, 4 total",
        b" Tests  2 passed (2)",
        b"  12 passing (1ms)",
        b"1..3\nok 1\nok 2\nok 3",
        b"# tests 2\n# pass 2",
    ],
)
def test_a_runner_that_ran_something_is_believed(said: bytes) -> None:
    assert why_nothing_ran(said + b"\n") is None


def test_one_runner_that_ran_something_outweighs_one_that_ran_nothing() -> None:
    assert why_nothing_ran(b"No tests found\nRan 2 tests in 0.1s\n\nOK\n") is None
