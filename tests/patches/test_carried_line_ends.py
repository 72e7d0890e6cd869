"""Line ends of a file on disk, carried over to what it becomes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.patches.line_ends import carry_line_ends, is_same_but_ends
from tests.amount import often

WORDS = st.lists(st.sampled_from([b"", b"a", b"b", b"c"]), max_size=12)


def ended(lines: list[bytes], ends: list[bool], rest: bytes) -> bytes:
    pairs = zip(lines, ends, strict=False)
    return b"".join(line + (b"\r\n" if crlf else b"\n") for line, crlf in pairs) + rest


def test_a_file_of_one_line_end_keeps_it_in_new_lines() -> None:
    assert carry_line_ends(b"a\r\nb\r\n", b"a\nb\n", b"a\nnew\nb\n") == b"a\r\nnew\r\nb\r\n"
    assert carry_line_ends(b"a\r\nb", b"a\nb", b"a\nb\nnew") == b"a\r\nb\r\nnew"


def test_in_a_mixed_file_lines_that_stay_keep_theirs_and_new_ones_get_the_usual_end() -> None:
    disk = b"a\r\nb\nc\r\nd\r\ne\n"
    old = b"a\nb\nc\nd\ne\n"
    assert carry_line_ends(disk, old, b"a\nb\nx\nd\ne\n") == b"a\r\nb\nx\r\nd\r\ne\n"
    assert carry_line_ends(disk, old, b"x\nb\nc\ny\nd\n") == b"x\r\nb\nc\r\ny\r\nd\r\n"
    assert carry_line_ends(b"a\r\nb\nc\n", b"a\nb\nc\n", b"a\nx\nc\n") == b"a\r\nx\nc\n"


def test_the_last_line_without_an_end_gets_one_when_another_follows() -> None:
    assert carry_line_ends(b"a\r\nb\r\nc\nd", b"a\nb\nc\nd", b"a\nb\nc\nd\ne") == b"a\r\nb\r\nc\nd\r\ne"


def test_a_file_that_differs_in_more_than_line_ends_has_no_form() -> None:
    assert carry_line_ends(b"A\r\n", b"a\n", b"a\nb\n") is None


def test_a_large_change_of_a_mixed_file_is_not_compared_line_by_line() -> None:
    old = b"".join(b"%d\n" % number for number in range(3000))
    new = b"".join(b"%d\n" % (number * 2) for number in range(3000))
    disk = old.replace(b"\n", b"\r\n").replace(b"2999\r\n", b"2999\n")
    # The usual end for all lines but those at the head that stay.
    assert carry_line_ends(disk, old, new) == new.replace(b"\n", b"\r\n")


@settings(max_examples=often(200), deadline=None, derandomize=True)
@given(WORDS, WORDS, st.lists(st.booleans(), min_size=12, max_size=12), st.sampled_from([b"", b"z"]))
def test_what_is_carried_is_the_new_text_but_for_its_ends(
    old: list[bytes], new: list[bytes], ends: list[bool], rest: bytes
) -> None:
    plain = [False] * 12
    before, after = ended(old, plain, rest), ended(new, plain, rest)
    disk = ended(old, ends, rest)
    carried = carry_line_ends(disk, before, after)
    assert carried is not None
    assert is_same_but_ends(carried, after)
    assert carry_line_ends(disk, before, before) == disk
