"""Why a hunk does not fit: the first line that differs, and where the text stands now."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.patches.hunk_mismatch import find_first_difference, find_longest_run, render_mismatch
from patchgate.patches.line_ends import FileLines, read_hunk
from patchgate.patches.patch_parser import Fault
from patchgate.patches.planning import Fitted, fit
from tests.amount import often
from tests.patches.patch_world import only_section

FILE = b"".join(b"line %d\n" % number for number in range(1, 41))


def explained(hunks: bytes, preimage: bytes) -> Fault:
    result = fit(only_section(hunks), preimage)
    assert not isinstance(result, Fitted)
    return result[0]


def test_the_first_line_that_differs_is_told_with_both_texts() -> None:
    """E14."""
    fault = explained(b"@@ -9,4 +9,4 @@\n line 9\n line X\n-line 11\n+new\n line 12\n", FILE)
    assert (fault.rule, fault.line) == ("hunk-mismatch", 6)
    assert fault.details == {
        "patch_line": 6,
        "hunk": 1,
        "file_line": 10,
        "expected": "line X",
        "actual": "line 10",
        "found_at": [11],
        "found_lines": 2,
    }
    assert "`line 10`" in fault.message
    assert "`line X`" in fault.message


def test_the_number_of_the_hunk_is_told() -> None:
    hunks = (
        b"@@ -2,3 +2,3 @@\n line 2\n-line 3\n+x\n line 4\n@@ -9,3 +9,3 @@\n line 9\n-nothing\n+y\n line 11\n"
    )
    fault = explained(hunks, FILE)
    assert (fault.details["hunk"], fault.details["patch_line"]) == (2, 11)


def test_a_file_that_ends_too_early_is_told() -> None:
    fault = explained(b"@@ -39,4 +39,4 @@\n line 39\n line 40\n-line 41\n+x\n line 42\n", FILE)
    assert (fault.details["actual"], fault.details["file_line"]) == (None, 41)
    assert "line 40" in fault.message


def test_a_newline_that_differs_is_told() -> None:
    fault = explained(b"@@ -1,2 +1,2 @@\n a\n-b\n+c\n", b"a\nb")
    assert "newline" in fault.message
    assert fault.hint.startswith("write `\\ No newline at end of file`")
    marked = b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
    assert explained(marked, b"a\nb\n").hint.startswith("leave out `\\ No newline")


def test_a_change_that_is_already_there_is_told() -> None:
    fault = explained(b"@@ -9,3 +9,3 @@\n line 9\n-line ten\n+line 10\n line 11\n", FILE)
    assert "already" in fault.hint


def test_the_longest_run_is_named_where_the_whole_is_gone() -> None:
    fault = explained(b"@@ -9,6 +9,5 @@\n line 9\n line 20\n line 21\n line 22\n-line X\n line 24\n", FILE)
    assert (fault.details["found_at"], fault.details["found_lines"]) == ([20], 3)


def test_text_from_the_file_cannot_reach_the_terminal_unescaped() -> None:
    fault = explained(b"@@ -2,3 +2,3 @@\n \x1b[31mred\n-b\n+c\n d\n", b"x\n\x1b]0;title\x07\nb\nd\n")
    assert "\x1b" not in "".join(render_mismatch(fault)) + str(fault.details)


def test_an_explanation_is_short_even_for_long_lines() -> None:
    fault = explained(
        b"@@ -2,3 +2,3 @@\n " + b"w " * 5000 + b"\n-b\n+c\n d\n", b"x " * 5000 + b"\n" + b"y " * 9000 + b"\n"
    )
    lines = render_mismatch(fault)
    assert len(lines) < 25
    assert sum(len(line.split()) for line in lines) < 600
    plain = render_mismatch(explained(b"@@ -2,3 +2,3 @@\n a\n-b\n+c\n d\n", FILE))
    assert sum(len(line.split()) for line in plain) < 60


_LINES = st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b""]), max_size=12)


def _oracle(old: list[bytes], file: list[bytes], stated: int) -> int | None:
    """The definition, word for word; every line carries its own newline."""
    for index, text in enumerate(old):
        if stated + index >= len(file) or file[stated + index] != text:
            return index
    return None


@settings(max_examples=often(300), deadline=None)
@given(
    old=_LINES.filter(bool),
    file=_LINES,
    start=st.integers(1, 10),
    cut_old=st.booleans(),
    cut_file=st.booleans(),
)
def test_the_first_line_that_differs_is_the_one_a_brute_force_finds(
    old: list[bytes], file: list[bytes], start: int, cut_old: bool, cut_file: bool
) -> None:
    marker = b"\\ No newline at end of file\n" if cut_old and old[-1] else b""
    body = b"".join(b"-" + line + b"\n" for line in old) + marker
    section = only_section(b"@@ -%d,%d +%d @@\n" % (start, len(old), start) + body + b"+new\n")
    (hunk,) = section.hunks
    cut = cut_file and bool(file) and bool(file[-1])
    preimage = b"".join(line + b"\n" for line in file)[: -1 if cut else None]
    wanted = _oracle(
        [line + b"\n" for line in old[:-1]] + [old[-1] + (b"" if marker else b"\n")],
        preimage.splitlines(keepends=True),
        start - 1,
    )
    assert find_first_difference(read_hunk(section, hunk), FileLines(preimage), start - 1) == wanted
    result = fit(section, preimage)
    if wanted is not None and not isinstance(result, Fitted):
        assert result[0].details["patch_line"] == 5 + wanted
        assert result[0].details["file_line"] == start + wanted


def _longest(old: list[bytes], file: list[bytes]) -> int:
    best = 0
    for first in range(len(old)):
        for last in range(first + 1, len(old) + 1):
            run = old[first:last]
            if any(run) and any(file[place : place + len(run)] == run for place in range(len(file))):
                best = max(best, len(run))
    return best


@settings(max_examples=often(300), deadline=None)
@given(old=_LINES, file=_LINES)
def test_the_longest_run_is_the_one_a_brute_force_finds(old: list[bytes], file: list[bytes]) -> None:
    lines = FileLines(b"".join(line + b"\n" for line in file))
    run = find_longest_run(old, lines)
    assert run.length == _longest(old, file)
    for place in run.places:
        assert file[place : place + run.length] == old[run.first : run.first + run.length]


def test_a_huge_file_is_searched_in_one_pass() -> None:
    preimage = b"".join(b"%d\n" % (number % 1000) for number in range(200_000))
    fault = explained(b"@@ -9,4 +9,4 @@\n 998\n 999\n-x\n+y\n 0\n", preimage)
    assert fault.details["found_lines"] == 2
    assert len(list(fault.details["found_at"])) == 10  # type: ignore[arg-type]
