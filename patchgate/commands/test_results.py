"""Count the tests that ran, and identify what failed, so that two runs can be compared.

A failure is identified by a test of a JUnit report, a result of a SARIF document, or else the whole output
without what differs from run to run. Sources: `junitxml.py` and `terminal.py` of pytest; the summaries of
unittest, cargo, go, jest, vitest, mocha, node, TAP and ctest.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from xml.parsers import expat

from patchgate.commands.analysis_results import Lines
from patchgate.commands.json_stream import NotReadError
from patchgate.commands.sarif_reader import ToolFailedError, read_sarif
from patchgate.git.quoting import printable
from patchgate.values import dataclass

MOST_REPORT = 64 << 20
_SPOILT = ("failure", "error", "skipped")
# A group contains the number of passed tests; a line without a group means none.
_SUMMARIES = tuple(
    re.compile(text)
    for text in (
        rb"Ran (\d{1,9}) tests? in ",
        rb"test result: ok\. (\d{1,9}) passed;",
        rb" {0,8}Tests:? {1,12}(?:.{0,200}?(\d{1,9}) passed.{0,200}|.{0,200}\b(?:total|skipped).{0,80})$",
        rb" {0,8}(\d{1,9}) passing\b",
        rb"(?:#|\xe2\x84\xb9) pass (\d{1,9})$",
        rb"(?:=+ )?(?:.{1,200}, )?(\d{1,9}) passed\b.{0,200} in [0-9.]{1,12}s",
        rb"(?:=+ )?(?:\d{1,9} (?:skipped|deselected|xfailed|warnings?)(?:, | )){1,4}in [0-9.]{1,12}s",
    )
)
_UNITTEST_SKIPPED = re.compile(rb"(?:OK|NO TESTS RAN) \(.{0,80}?skipped=(\d{1,9})")
_GO_PASSED = re.compile(rb"ok {0,8}\t\S{1,400}\t(?:\(cached\)|[0-9.]{1,12}s)(?:\tcoverage:.{0,80})?$")
_NOTHING = re.compile(
    rb"(?:=+ )?no tests ran\b|NO TESTS RAN|collected 0 items|No tests found|No test files found|"
    rb"No tests were found|.{0,400}\[no test files\]$|.{0,400}\[no tests to run\]$|1\.\.0(?:\s|$)"
)
_LONGEST = 500
# pytest.exit between tests; neither the report nor the exit code shows it.
_BROKEN_OFF = re.compile(rb"!+ _pytest\.outcomes\.Exit\b")
# After the first failures (-x), or if a test module cannot be imported: lines of `!` by pytest. On a narrow
# terminal they have one `!` on each side.
_STOPPED = re.compile(
    rb"!{3,} .{1,400} !{3,}$|!+ (?:\S{0,80}Interrupted|stopping after|_pytest\.outcomes\.Exit)\b"
)
MOST_LOG = 16 << 20
_MOST_NAME = 200
# A name that begins with a slash, at a word start or after a quote, bracket or `=`; see `_without_path`.
_ABSOLUTE = re.compile(rb"(?<![^\s\"'`(\[<=:,])/[^\s\"'`)\]>:,]+")
_VARIES = (
    re.compile(rb"\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)?Z?"),
    re.compile(rb"(?<![\w:.])[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"),
    re.compile(rb"(?<![\w.])[0-9]+(?:\.[0-9]+)? ?(?:ns|us|ms|s|sec|secs|seconds?|minutes?|min|m)\b"),
    re.compile(rb"\b0x[0-9a-fA-F]{6,16}\b"),
)
# As written in a log: escaped, so that no terminal interprets it.
_COLOUR = re.compile(rb"\\x1b\[[0-?]*[ -/]*[@-~]")
# The messages of pytest-cov, in version 6 and since 7; reports do not contain them.
_COVERAGE = re.compile(rb"(?:FAIL Required test coverage|ERROR: Coverage failure)\b")
# Its length depends on the time in the line.
_RULER = re.compile(rb"[-=_]{3,}")


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """How many tests ended in which way; a test with a failure or an error counts once.

    A test that never ended counts as an error, and `is_broken_off` is true.
    """

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    is_broken_off: bool = False

    @property
    def total(self) -> int:
        """The number of tests."""
        return self.passed + self.failed + self.errors + self.skipped

    def named(self) -> dict[str, int]:
        """Return the numbers by name, for documents and records."""
        return {name: getattr(self, name) for name in ("passed", "failed", "errors", "skipped")}


def read_report(raw: bytes) -> ReportCounts:
    """Count the test cases of a JUnit report; expected failures count as skipped, as in pytest.

    Raises:
        ValueError: the report is incomplete; the message is half a sentence.
    """
    reader = _read_cases(raw)
    ended = reader.ended
    # A suite counts the tests that ended. A test that fails in call and teardown is two cases, counted once.
    lost = min(reader.uncounted, ended["passed"]) if not (ended["failed"] or ended["errors"]) else 0
    broken_off = ended["unfinished"] + lost
    return ReportCounts(
        passed=ended["passed"] - lost,
        failed=ended["failed"],
        errors=ended["errors"] + broken_off,
        skipped=ended["skipped"],
        is_broken_off=bool(broken_off),
    )


def _read_cases(raw: bytes) -> _JUnitReader:
    reader = _JUnitReader()
    try:
        reader.parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise ValueError(f"line {error.lineno} is not XML") from error
    if not reader.is_report:
        raise ValueError("it has no test suites")
    return reader


def failed_tests(raw: bytes) -> frozenset[str]:
    """Name the tests of a JUnit report that failed or had an error.

    Raises:
        ValueError: the report is incomplete, or the run was aborted; the message is half a sentence.
    """
    reader = _read_cases(raw)
    if reader.ended["unfinished"]:
        raise ValueError("the run was aborted")
    return frozenset(reader.failed)


class _JUnitReader:
    """Follows the XML elements; their text, which contains the output of tests, is not kept.

    In `ended`, `unfinished` counts the cases that pytest began but did not end: they have no name.
    `uncounted` is the number of named cases beyond the totals of their suites. A total may be higher if
    parts of a test count.
    """

    def __init__(self) -> None:
        self.ended = Counter[str]()
        self.uncounted = 0
        self.failed: set[str] = set()
        self.is_report = False
        self._name = ""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._refuse
        self._open: list[str] = []
        self._marks: set[str] = set()
        self._is_named = False
        # The total of each open suite, and the number of its own named cases.
        self._suites: list[tuple[int | None, int]] = []

    def _refuse(self, *_: object) -> None:
        # No test runner writes one, and entities can expand without bound.
        raise ValueError("it declares a document type")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open:
            self.is_report = name in {"testsuites", "testsuite"}
        if name == "testcase":
            self._marks = set()
            # A test without a class has an empty class name.
            self._name = f"{attributes.get('classname', '')}::{attributes.get('name', '')}"
            self._is_named = bool(attributes.get("name")) and "classname" in attributes
        elif name == "testsuite":
            said = attributes.get("tests", "")
            self._suites.append((int(said) if re.fullmatch("[0-9]{1,9}", said) else None, 0))
        elif name in _SPOILT and self._open[-1:] == ["testcase"]:
            self._marks.add(name)
        self._open.append(name)

    def _end(self, name: str) -> None:
        self._open.pop()
        if name == "testsuite":
            said, held = self._suites.pop()
            self.uncounted += max(0, held - said) if said is not None else 0
        if name != "testcase":
            return
        if self._is_named and self._suites:
            said, held = self._suites[-1]
            self._suites[-1] = said, held + 1
        if self._marks & {"failure", "error"}:
            self.failed.add(self._name)
            self.ended["failed" if "failure" in self._marks else "errors"] += 1
        elif not self._is_named:
            self.ended["unfinished"] += 1
        else:
            self.ended["skipped" if "skipped" in self._marks else "passed"] += 1


def is_broken_off(output: bytes) -> bool:
    """Check whether the output of pytest says that a test ended the whole run."""
    return any(_BROKEN_OFF.match(line) for line in _printed_lines(output))


def has_stopped_early(output: bytes) -> bool:
    """Check whether the output of pytest says that it stopped before the last test."""
    return any(_STOPPED.match(line) for line in _printed_lines(output))


def why_nothing_ran(output: bytes) -> str | None:
    """Return the line of a command's output that says that no test ran; None if there is none.

    A command may call several test runners; one that ran tests is enough. This guards against an empty run
    that succeeds; it does not prove that tests ran.
    """
    passed = 0
    nothing: bytes | None = None
    for line in _printed_lines(output):
        skipped = _UNITTEST_SKIPPED.match(line)
        if skipped:
            passed -= int(skipped[1])
            nothing = line
        elif _GO_PASSED.match(line):
            passed += 1
        elif _NOTHING.match(line):
            nothing = line
        elif (found := _summary(line)) is not None:
            passed += found
            nothing = nothing or (line if not found else None)
    return nothing.decode("utf-8", "replace") if nothing is not None and passed <= 0 else None


def _summary(line: bytes) -> int | None:
    for expression in _SUMMARIES:
        found = expression.match(line)
        if found:
            return int(found[1] or 0) if expression.groups else 0
    return None


def _printed_lines(output: bytes) -> Iterator[bytes]:
    from patchgate.git.quoting import without_escapes

    for line in without_escapes(output).split(b"\n"):
        yield line.rstrip()[:_LONGEST]


class FailureSource(StrEnum):
    """What identifies the failures of a run."""

    TESTS = "tests"
    FINDINGS = "findings"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Failures:
    """What failed in one run: `marks` are digests, `names` their texts, safe for a terminal."""

    form: FailureSource
    marks: frozenset[str]
    names: Mapping[str, str]


def failures_of(log: bytes, report: bytes | None, place: str, lines: Lines) -> Failures | None:
    """Read what failed in a failed run; None if it cannot be compared with another run.

    Args:
        log: the output of the command.
        report: the JUnit report of its tests, if it wrote one.
        place: the scratch tree, an absolute path.
        lines: gives the lines of a file of that tree.
    """
    plain_log = _COLOUR.sub(b"", log)
    if has_stopped_early(plain_log):
        return None
    if report is not None:
        try:
            tests = failed_tests(report)
        except ValueError:
            return None
        if tests:
            failed = {test: printable(test, _MOST_NAME) for test in tests}
            # Too little coverage fails a run like a failing test.
            if any(map(_COVERAGE.match, plain_log.split(b"\n"))):
                failed["coverage"] = "the coverage"
            return _failures(FailureSource.TESTS, failed)
    if (findings := _findings(log, place, lines)) is not None:
        return _failures(FailureSource.FINDINGS, findings) if findings else None
    plain = "\n".join(_plain_lines(plain_log, place.encode("utf-8", "surrogateescape")))
    return _failures(FailureSource.OUTPUT, {plain: "its output"}) if plain.strip("- \n") else None


def _failures(form: FailureSource, failed: Mapping[str, str]) -> Failures:
    marked = {hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest(): text for text in failed}
    return Failures(form, frozenset(marked), {mark: failed[text] for mark, text in marked.items()})


def _findings(log: bytes, place: str, lines: Lines) -> dict[str, str] | None:
    """Read the results of a SARIF document, numbered if they repeat; None if it is not SARIF."""
    if not log.lstrip().startswith(b"{"):
        return None
    try:
        results, _ = read_sarif(io.BytesIO(log), "", place, lines)
    except (NotReadError, ToolFailedError):
        return None
    seen: Counter[str] = Counter()
    found: dict[str, str] = {}
    for each in results:
        paths = "\0".join(path.quoted for path in each.paths)
        key = "\0".join((each.tool, each.rule, paths, each.mark))
        seen[key] += 1
        where = f"{each.paths[0].quoted}:{each.line or 1}: " if each.paths else ""
        found[f"{key}\0{seen[key]}"] = printable(f"{where}{each.rule}", _MOST_NAME)
    return found


def _plain_lines(log: bytes, place: bytes) -> Iterator[str]:
    """Remove paths and times from each line; names within the tree stay."""
    # A program that asks for its folder gets the real path.
    places = sorted({place, os.path.realpath(place)}, key=len, reverse=True)
    for line in log.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n"):
        plain = line
        for each in places:
            plain = plain.replace(each + b"/", b"").replace(each, b".")
        plain = _ABSOLUTE.sub(_without_path, plain)
        for varying in _VARIES:
            plain = varying.sub(b"<time>", plain)
        yield _RULER.sub(b"---", plain).rstrip().decode("utf-8", "surrogateescape")


def _without_path(found: re.Match[bytes]) -> bytes:
    """Replace a path of this machine; other texts (`/login` of a URL) distinguish failures."""
    first = found[0].split(b"/")[1]
    return b"<path>" if first and os.path.lexists(b"/" + first) else found[0]
