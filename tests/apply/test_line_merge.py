"""A fix is carried past unstaged edits: each edit stays whole, each hunk of the fix is there or named."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.apply.fixes.line_merge import LineRange, merge_fix
from tests.amount import often

STAGED = b"".join(b"w%d=%d\n" % (number, number) for number in range(1, 10))
FIXED = STAGED.replace(b"=", b" = ")


def text(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_without_unstaged_edits_the_file_is_the_fixed_one() -> None:
    assert merge_fix(STAGED, FIXED, STAGED).content == FIXED
    assert not merge_fix(STAGED, FIXED, STAGED).left


def test_a_hunk_that_meets_no_edit_is_applied_and_the_edit_stays() -> None:
    staged = text("a=1", "b", "c", "d", "e=5")
    merged = merge_fix(
        staged, text("a = 1", "b", "c", "d", "e = 5"), text("a=1", "b", "mine", "c", "d", "e=5")
    )
    assert merged.content == text("a = 1", "b", "mine", "c", "d", "e = 5")
    assert merged.left == ()


def test_a_hunk_on_an_edited_line_is_left_and_named_by_the_lines_of_the_working_file() -> None:
    staged = text("a", "b", "c=3", "d", "e=5")
    merged = merge_fix(
        staged, text("a", "b", "c = 3", "d", "e = 5"), text("new", "new", "a", "b", "c=4", "d", "e=5")
    )
    assert merged.content == text("new", "new", "a", "b", "c=4", "d", "e = 5")
    assert merged.left == (LineRange(5, 5),)


def test_a_hunk_that_borders_on_an_edit_is_left() -> None:
    merged = merge_fix(text("a=1", "b"), text("a = 1", "b"), text("a=1", "mine", "b"))
    assert merged.content == text("a=1", "mine", "b")
    assert merged.left == (LineRange(1, 2),)


def test_what_was_fixed_in_the_working_file_already_is_not_named() -> None:
    merged = merge_fix(text("a=1", "b"), text("a = 1", "b"), text("a = 1", "b"))
    assert merged.content == text("a = 1", "b")
    assert merged.left == ()


def test_a_missing_newline_at_the_end_is_a_hunk_of_its_own() -> None:
    assert merge_fix(b"a\nb", b"a\nb\n", b"mine\na\nb").content == b"mine\na\nb\n"
    left = merge_fix(b"a\nb", b"a\nb\n", b"a\nb mine")
    assert left.content == b"a\nb mine"
    assert left.left == (LineRange(2, 2),)


LINES = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"c=1\n", b"d=2\n", b"c = 1\n", b"\n", b"x\r\n"]), max_size=12
)


@settings(max_examples=often(2000))
@given(LINES, LINES, LINES, st.booleans())
def test_every_line_of_the_working_file_that_is_not_staged_stays(
    staged: list[bytes], fixed: list[bytes], working: list[bytes], is_unended: bool
) -> None:
    was, wanted, mine = b"".join(staged), b"".join(fixed), b"".join(working)
    if is_unended:
        mine = mine.removesuffix(b"\n")
    merged = merge_fix(was, wanted, mine)
    kept = Counter(merged.content.splitlines(keepends=True))
    own = Counter(mine.splitlines(keepends=True)) - Counter(was.splitlines(keepends=True))
    assert not own - kept
    if mine == was:
        assert merged.content == wanted
    if was == wanted:
        assert merged.content == mine
    if wanted == mine:
        assert merged.content == mine
    for place in merged.left:
        assert 1 <= place.first <= place.last


@settings(max_examples=often(2000))
@given(st.lists(st.booleans(), min_size=12, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_each_hunk_is_in_the_working_file_or_named(fixes: list[bool], edits: list[bool]) -> None:
    staged = [b"line%d=%d\n" % (number, number) for number in range(12)]
    fixed = [
        line.replace(b"=", b" = ") if is_fixed else line for line, is_fixed in zip(staged, fixes, strict=True)
    ]
    working = [
        b"mine %d\n" % at if is_edited else line
        for at, (line, is_edited) in enumerate(zip(staged, edits, strict=True))
    ]
    merged = merge_fix(b"".join(staged), b"".join(fixed), b"".join(working))
    made = merged.content.splitlines(keepends=True)
    named = {line for place in merged.left for line in range(place.first - 1, place.last)}
    for at, is_fixed in enumerate(fixes):
        if edits[at]:
            assert made[at] == working[at]
        elif is_fixed:
            assert made[at] == fixed[at] or at in named
        else:
            assert made[at] == staged[at]
