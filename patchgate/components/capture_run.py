"""Run a component's tests in a scratch tree, and decide whether they really ran and passed.

Decides which files `{tests}` means, what the tests see, and which runs count: exit code 0 and at least one
test that passed. A failing or empty run is a refusal; one that could not start, or timed out, is undecided.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from patchgate.commands.runner import CommandOutcome, CommandStatus, report_options, runs_pytest
from patchgate.commands.test_results import (
    MOST_REPORT,
    ReportCounts,
    is_broken_off,
    read_report,
    why_nothing_ran,
)
from patchgate.components.baseline_file import Hashes
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.command_files import FILES
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.component import Component
from patchgate.policy.validators import TESTS
from patchgate.values import dataclass, field

MOST_SECONDS = 3600.0
# pytest: no tests; an internal error, an error of usage. Of the system: not executable, not found.
_NONE_COLLECTED = 5
_NOT_RUN = frozenset({3, 4, 126, 127})
_MOST_LOG = 4 << 20
_EMPTY = (
    "a baseline needs a test that passes: write one, or fix `tests` or `test_command`, "
    "which is pytest by default"
)


CAPTURE_AGAIN = ", then capture again"
"""How a hint ends that names what to correct first."""


class Ending(StrEnum):
    """How a run of a component's tests ended; `REFUSED`: it would prove nothing, so it was not started."""

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"
    EMPTY = "empty"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True)
class TestRun:
    """The result of a run: `reason` follows the component's name in a sentence; `tail` is safe to print.

    `counts` is None if the command reported none. `exit_code` and `timed_out` are those of the command,
    `missing` the programs and modules that it lacked.
    """

    ending: Ending
    reason: str
    hint: str | None = None
    counts: ReportCounts | None = None
    seconds: float = 0.0
    tail: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    exit_code: int | None = None
    timed_out: bool = False
    missing: tuple[str, ...] = ()


NO_TEST_FILES = TestRun(
    Ending.EMPTY, "it has no test files", "add its tests, or fix its `tests` in the policy"
)


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What to capture, and from where: the index, or the working tree (`from_disk`)."""

    ids: tuple[str, ...]
    from_disk: bool = False
    reverify: bool = False
    with_note: bool = False


@dataclass(frozen=True, slots=True)
class CaptureEnvironment:
    """Inputs from outside: environment variables, cache folder, time, progress callback, time limit.

    `seconds` is how long the tests of one component may take; None: an hour.
    """

    environ: Mapping[str, str]
    cache: str
    now: float
    report: Callable[[str, float], None]
    seconds: float | None = None


class CaptureResult(StrEnum):
    """The result for one component."""

    RECORDED = "recorded"
    UNCHANGED = "unchanged"
    VERIFIED = "verified"
    REFUSED = "refused"
    UNDECIDED = "undecided"
    NOT_RECORDED = "not-recorded"


@dataclass(frozen=True, slots=True)
class CapturedComponent:
    """One component: `reason` follows its name in a sentence; `run` is None if no test was started.

    `mistakes` are the first of its contract, one line each, safe to print. `is_staged`: whether the index
    has exactly this baseline; `is_committed`: whether `HEAD` has it.
    """

    component: Component
    result: CaptureResult
    reason: str
    hint: str | None = None
    run: TestRun | None = None
    hashes: Hashes = field(default_factory=Hashes)
    is_staged: bool = False
    is_committed: bool = False
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capture:
    """All named components, and the warnings.

    `has_notes`: whether verifications were also written as notes. `to_add` are files that were recorded
    from the working tree and are staged differently.
    """

    components: tuple[CapturedComponent, ...]
    warnings: tuple[str, ...] = ()
    has_notes: bool = False
    to_add: tuple[RepoPath, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 if all were captured, 1 if one was refused, 3 if one could not be tested."""
        results = {each.result for each in self.components}
        if CaptureResult.REFUSED in results:
            return 1
        return 3 if CaptureResult.UNDECIDED in results else 0


def run_tests(
    component: Component,
    files: Sequence[RepoPath],
    source_roots: Sequence[str],
    *,
    place: str,
    beside: str,
    environ: Mapping[str, str],
    tick: Callable[[float], None],
    seconds: float | None = None,
) -> TestRun:
    """Run the tests of a component in a scratch tree.

    Args:
        files: the regular files of its tests, at least one.
        source_roots: the folders of the tree that go on PYTHONPATH, before the caller's.
        place: the scratch tree, an absolute path.
        beside: an empty folder outside it, for log and report.
        environ: the caller's.
        seconds: how long they may take; None: an hour.

    Raises:
        UndecidedError: the log cannot be made.
    """
    from patchgate.commands.runner import run
    from patchgate.ledger.masking import Masks

    is_pytest = runs_pytest(component.settings.test_command)
    report = os.path.join(beside, "report.xml")
    log = os.path.join(beside, "log")
    outcome = run(
        component.id,
        _settings(component, seconds),
        place=place,
        files=files_to_collect(files) if is_pytest else files,
        environ={**_environment(environ, source_roots, place), **report_options(environ, report)},
        log_path=log,
        mask=Masks([environ]).stream(),
        tick=tick,
    )
    # Of a longer log the end is enough: runners print their summary there.
    printed = _read(log, _MOST_LOG)
    said = "\n".join(outcome.tail).encode("utf-8", "surrogateescape") if printed is None else printed
    ending, reason, hint, counts = _classify(component, outcome, is_pytest, _counts(report), said)
    tail = () if ending is Ending.PASSED else outcome.tail
    if ending is not Ending.PASSED and not tail and outcome.exit_code is not None:
        hint = f"{hint}; this command printed nothing: {outcome.shown}"
    warnings = outcome.warnings
    if ending is Ending.PASSED and counts is None:
        warnings += (f"the tests of `{component.id}` were not counted: its command wrote no report",)
    return _describe_run(outcome, (ending, reason, hint), counts, tail, warnings)


def collect_tests(
    component: Component,
    files: Sequence[RepoPath],
    source_roots: Sequence[str],
    *,
    place: str,
    beside: str,
    environ: Mapping[str, str],
    tick: Callable[[float], None],
    seconds: float | None = None,
) -> TestRun:
    """Let a component's pytest collect its tests without running them.

    Arguments and errors are those of `run_tests`; the command of the component runs pytest.
    """
    from patchgate.commands.runner import run
    from patchgate.ledger.masking import Masks

    options = " ".join([*filter(None, [environ.get("PYTEST_ADDOPTS")]), "--collect-only"])
    outcome = run(
        component.id,
        _settings(component, seconds),
        place=place,
        files=files_to_collect(files),
        environ={**_environment(environ, source_roots, place), "PYTEST_ADDOPTS": options},
        log_path=os.path.join(beside, "log"),
        mask=Masks([environ]).stream(),
        tick=tick,
    )
    code, missing = outcome.exit_code, _missing(outcome)
    hint: str | None = f"fix test_command of `{component.id}`, or install what it needs"
    if code is None or outcome.status is CommandStatus.TIMED_OUT:
        ending, reason = Ending.NOT_RUN, f"its tests could not be collected: the command {outcome.reason}"
    elif missing or code in _NOT_RUN:
        ending, reason = Ending.NOT_RUN, f"its tests could not be collected: exit code {code}"
    elif code == _NONE_COLLECTED:
        ending, reason, hint = Ending.EMPTY, "0 tests were collected", _EMPTY
    elif code != 0:
        ending, reason = Ending.FAILED, f"its tests could not be collected: exit code {code}"
        hint = "fix what the output shows"
    else:
        ending, reason, hint = Ending.PASSED, "its tests are collected", None
    tail = () if ending is Ending.PASSED else outcome.tail
    return _describe_run(outcome, (ending, reason, hint), None, tail)


def _describe_run(
    outcome: CommandOutcome,
    said: tuple[Ending, str, str | None],
    counts: ReportCounts | None,
    tail: tuple[str, ...],
    warnings: tuple[str, ...] = (),
) -> TestRun:
    ending, reason, hint = said
    return TestRun(
        ending=ending,
        reason=reason,
        hint=hint,
        counts=counts,
        seconds=outcome.seconds,
        tail=tail,
        warnings=warnings,
        exit_code=outcome.exit_code,
        timed_out=outcome.status is CommandStatus.TIMED_OUT,
        missing=_missing(outcome),
    )


def _settings(component: Component, seconds: float | None) -> CommandSettings:
    words = tuple(FILES if word == TESTS else word for word in component.settings.test_command)
    return CommandSettings("test", words, "tree", MOST_SECONDS if seconds is None else seconds)


def _missing(outcome: CommandOutcome) -> tuple[str, ...]:
    """Name the programs that a command lacked, or pytest if its Python does not have it."""
    return outcome.missing or (("pytest",) if _lacks_pytest(outcome) else ())


def _lacks_pytest(outcome: CommandOutcome) -> bool:
    return any("No module named pytest" in line for line in outcome.tail)


def files_to_collect(files: Sequence[RepoPath]) -> list[RepoPath]:
    """Choose the files that pytest collects, without those that only support tests (`conftest.py`, data).

    Without any test module, pytest gets all files and reports the result itself.
    """
    helping = {b"conftest.py", b"__init__.py"}
    modules = [path for path in files if path.name.endswith(b".py") and path.name not in helping]
    return modules or list(files)


def _environment(environ: Mapping[str, str], source_roots: Sequence[str], place: str) -> dict[str, str]:
    if os.pathsep in place:
        raise UndecidedError(
            "PYTHONPATH cannot name the scratch tree: its path contains a colon",
            "set XDG_CACHE_HOME to a folder without one",
        )
    roots = [os.path.normpath(os.path.join(place, os.fsdecode(root.encode()))) for root in source_roots]
    path = [*roots, *filter(None, [environ.get("PYTHONPATH")])]
    return {**environ, "PYTHONPATH": os.pathsep.join(path)}


def _read(place: str, most: int) -> bytes | None:
    """Read a file that a command wrote; None if it is missing, not a regular file, or too large."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            raw = file.read(most + 1)
    except OSError:
        return None
    return raw if len(raw) <= most else None


def _counts(report: str) -> ReportCounts | str | None:
    """Read the counts; a sentence if the report is damaged, None if there is none."""
    if not os.path.lexists(report):
        return None
    raw = _read(report, MOST_REPORT)
    if raw is None:
        return "it cannot be read, or is too large"
    try:
        return read_report(raw)
    except ValueError as error:
        return printable(str(error))


def _classify(
    component: Component,
    outcome: CommandOutcome,
    is_pytest: bool,
    counts: ReportCounts | str | None,
    said: bytes,
) -> tuple[Ending, str, str | None, ReportCounts | None]:
    hint = f"fix test_command of `{component.id}`, or install what it needs"
    again = f"fix {'what the output shows' if outcome.tail else 'the tests'}{CAPTURE_AGAIN}"
    known = counts if isinstance(counts, ReportCounts) else None
    if outcome.status in {CommandStatus.NOT_STARTED, CommandStatus.TIMED_OUT}:
        return Ending.NOT_RUN, f"its tests could not be run: the command {outcome.reason}", hint, known
    code = outcome.exit_code or 0
    has_failed = known is not None and known.failed + known.errors > known.is_broken_off
    is_counted = known is not None or is_pytest
    if not has_failed and ((known and known.is_broken_off) or (is_counted and is_broken_off(said))):
        hint = f"remove pytest.exit from the tests, let the command run all of them{CAPTURE_AGAIN}"
        return Ending.FAILED, "its tests stopped before all of them had run", hint, known
    if known is not None and (bad := known.failed + known.errors):
        some = "its only test" if known.total == 1 else f"{bad} of its {known.total} tests"
        return Ending.FAILED, f"{some} failed", again, known
    if isinstance(counts, str):
        return Ending.NOT_RUN, f"the report of its tests cannot be used: {counts}", hint, None
    if (known is None and is_pytest and (code in _NOT_RUN or _lacks_pytest(outcome))) or code in {126, 127}:
        return Ending.NOT_RUN, f"its tests could not be run: exit code {code}", hint, known
    empty = _why_empty(known, is_pytest, code, said)
    if empty is not None:
        return Ending.EMPTY, empty, _EMPTY, known
    if code != 0:
        ended = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        return Ending.FAILED, f"its tests failed: {ended}", again, known
    if known is None and is_pytest:
        hint = "let pytest write its report where PYTEST_ADDOPTS says: remove --junitxml from the command"
        return Ending.EMPTY, "pytest exited with 0 and reported no tests", hint, None
    return Ending.PASSED, _passed_text(known), None, known


def _why_empty(counts: ReportCounts | None, is_pytest: bool, code: int, said: bytes) -> str | None:
    if counts is not None:
        if not counts.total:
            return "none of its tests ran: 0 were collected"
        if not counts.passed:
            return f"none of its tests passed: all {counts.total} were skipped, or expected to fail"
        return None
    if is_pytest:
        return "none of its tests ran: 0 were collected" if code == _NONE_COLLECTED else None
    line = why_nothing_ran(said)
    return None if line is None else f"none of its tests ran: `{printable(line, 120)}`"


def _passed_text(counts: ReportCounts | None) -> str:
    if counts is None:
        return "its test command exited with 0 and reported no counts"
    tests = f"{counts.passed} {'test' if counts.passed == 1 else 'tests'} passed"
    return f"{tests}, {counts.skipped} skipped" if counts.skipped else tests
