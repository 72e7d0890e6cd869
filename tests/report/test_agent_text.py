"""The report for an agent: bounded whatever was found, errors first, and only what is for agents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.git.quoting import is_printable
from patchgate.report import wording
from patchgate.report.agent_text import MOST_BYTES, MOST_LINES, MOST_OF_FINDING, describe, render
from patchgate.report.rules import Level
from patchgate.report.verdict import Attempt, Finding, Fix, Report, Retry
from tests.report.verdict_reports import BLIND, HOSTILE, finding, judged

HERE = Attempt("a-7f3a", "/x/attempts/a-7f3a", False, "deny-prefix", temp_path="/x/scratch")
NEXT = Retry(True, 2, 5, "git patchgate apply - --retry-of a-7f3a")
TEXT = st.text(max_size=1500)


def refused(*findings: Finding) -> Report:
    return Report(
        (judged(*findings, profile="agent"),), attempt=HERE, retry=NEXT, approve="git patchgate approve"
    )


def with_more(made: Finding, *notes: str, fix: Fix | None = None) -> Finding:
    return replace(made, notes=notes, fix=fix)


def size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def test_a_finding_has_its_rule_place_message_what_is_there_and_was_sent_fix_and_help() -> None:
    made = with_more(
        finding(
            "hunk-mismatch", b"a.py", 1, message="hunk 1 does not fit", hint="make it from the current file"
        ),
        "patch line 5: def f(b):",
        "file line 1: def f(a):",
        fix=Fix("mechanical", 5, " def f(a):"),
    )
    assert describe(made) == [
        "error[hunk-mismatch] a.py:1: hunk 1 does not fit",
        "  patch line 5: def f(b):",
        "  file line 1: def f(a):",
        "fix: replace patch line 5 with ` def f(a):`",
        "help: make it from the current file",
    ]


@given(TEXT, TEXT, st.lists(TEXT, max_size=9), st.none() | TEXT, st.binary(max_size=300))
def test_one_finding_has_at_most_400_bytes(
    message: str, hint: str, notes: list[str], fix: str | None, name: bytes
) -> None:
    made = with_more(
        finding("deny-prefix", name or b"a", 7, message=message, hint=hint),
        *notes,
        fix=None if fix is None else Fix("mechanical", 5, fix),
    )
    assert size(describe(made)) <= MOST_OF_FINDING == 400
    # One of a range says which commit it is.
    assert size(describe(made, f" ({wording.safe(message)})")) <= MOST_OF_FINDING
    assert describe(made)[0].startswith("error[deny-prefix] ")


@pytest.mark.parametrize("length", [5, 150, 2000])
def test_ten_thousand_findings_have_40_lines_and_4_kilobytes(length: int) -> None:
    made = [
        finding("deny-prefix", f"runs/{n}".encode(), message="é" * length, hint="y" * length)
        for n in range(9_990)
    ]
    others = [finding("max-files", None, level=Level.WARNING) for _ in range(10)]
    text = render(refused(*others, *made))
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES == 40
    assert len(text.encode()) <= MOST_BYTES == 4000
    shown = text.count("error[deny-prefix]")
    assert shown >= 8
    assert lines[-2] == f"… and {10_000 - shown:,} more: {9_990 - shown:,} deny-prefix, 10 max-files"
    assert lines[-1].endswith(NEXT.command)
    assert text.count("warning[") == 0


def test_the_verdict_comes_first_then_errors_and_last_what_may_be_sent() -> None:
    text = render(refused(finding("max-files", None, level=Level.WARNING), finding("deny-prefix", b"runs/x")))
    words = [line.split()[0] for line in text.splitlines() if not line.startswith("help")]
    assert words == ["rejected:", "error[deny-prefix]", "warning[max-files]:", "try"]


def test_without_the_next_step_its_last_line_is_about_the_change() -> None:
    whole, without = (
        render(refused(finding("deny-prefix", b"runs/x")), has_next=each) for each in (True, False)
    )
    assert whole.startswith(without)
    assert whole.splitlines()[len(without.splitlines()) :] == [wording.retry_line(NEXT)]


def test_the_room_that_is_left_has_the_end_of_a_commands_output() -> None:
    output = tuple(f"line {n}" for n in range(200))
    text = render(refused(with_more(finding("lint-failed", None, message="ruff failed"), *output)))
    lines = text.splitlines()
    at = lines.index("output:")
    assert lines[at + 1 : -1] == [f"  line {n}" for n in range(200 - (len(lines) - at - 2), 200)]
    assert len(lines) == MOST_LINES


def test_it_has_no_colour_no_approval_and_no_path_of_the_evidence() -> None:
    text = render(refused(finding("deny-prefix", b"runs/x")))
    assert "\x1b" not in text
    assert "approve" not in text
    assert "/x/" not in text


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_printable(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    made = with_more(
        finding("deny-prefix", raw, 1, message=text, hint=text), text, fix=Fix("mechanical", 1, text)
    )
    shown = render(replace(refused(made), warnings=(text,)))
    assert all(is_printable(each) or each == "\n" for each in shown)


def test_what_could_not_be_judged_is_named_and_why() -> None:
    assert "undecided: " in render(Report((judged(gates=BLIND),)))
