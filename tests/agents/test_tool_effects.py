"""What a tool makes of its files: exactly what the tool would write, or only the name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.agents.hooks.hook_input import FileCall, HookInputError, PatchCall, TextEdit
from patchgate.agents.hooks.tool_effects import FileEffect, effects_of
from tests.amount import often

BEFORE = {"a": b"one\ntwo\nthree\n", "crlf": b"one\r\ntwo\r\n", "twice": b"x\nx\n", "empty": b""}


def effects(call: FileCall | PatchCall, files: Mapping[str, bytes] = BEFORE) -> list[FileEffect]:
    return effects_of(call, files.get)


def edited(path: str, *edits: TextEdit) -> FileEffect:
    (found,) = effects(FileCall(path, edits=edits))
    return found


def patched(*lines: str) -> list[FileEffect]:
    return effects(PatchCall("\n".join(["*** Begin Patch", *lines, "*** End Patch"])))


def test_a_write_is_its_content() -> None:
    assert effects(FileCall("a", "new\n")) == [FileEffect("a", b"new\n")]


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert effects(FileCall("a", "x\ud800")) == [FileEffect("a", "x\ufffd".encode())]


def test_an_edit_replaces_the_one_place() -> None:
    assert edited("a", TextEdit("two", "2")).content == b"one\n2\nthree\n"


def test_edits_are_applied_in_order() -> None:
    assert edited("a", TextEdit("two", "2"), TextEdit("2\nthree", "23")).content == b"one\n23\n"


def test_replace_all_replaces_every_place() -> None:
    assert edited("twice", TextEdit("x", "y", everywhere=True)).content == b"y\ny\n"


@pytest.mark.parametrize(
    ("path", "edit"),
    [("twice", TextEdit("x", "y")), ("a", TextEdit("four", "4")), ("a", TextEdit("", "4"))],
    ids=["several places", "no place", "an empty text in a file"],
)
def test_an_edit_without_one_place_is_only_known_by_its_name(path: str, edit: TextEdit) -> None:
    assert not edited(path, edit).is_known


def test_an_edit_of_an_empty_text_makes_a_new_file() -> None:
    assert edited("new", TextEdit("", "x\n")) == FileEffect("new", b"x\n")


def test_an_edit_with_lf_fits_a_file_with_cr_lf_and_keeps_its_line_ends() -> None:
    assert edited("crlf", TextEdit("one\ntwo", "1\n2")).content == b"1\r\n2\r\n"


def test_a_notebook_is_only_known_by_its_name() -> None:
    (found,) = effects(FileCall("a"))
    assert not found.is_known


def test_a_deletion_leaves_no_file() -> None:
    assert effects(FileCall("a", deletes=True)) == [FileEffect("a", None)]


def test_an_envelope_adds_updates_moves_and_deletes() -> None:
    found = patched(
        *("*** Add File: new", "+x", "+y"),
        *("*** Update File: a", "@@", " one", "-two", "+2", " three"),
        *("*** Update File: twice", "*** Move to: other", "@@", "-x", "+y"),
        "*** Delete File: crlf",
    )
    assert found == [
        FileEffect("new", b"x\ny\n"),
        FileEffect("a", b"one\n2\nthree\n"),
        FileEffect("other", b"y\nx\n"),
        FileEffect("twice", None),
        FileEffect("crlf", None),
    ]


def test_an_anchor_of_an_envelope_chooses_the_place() -> None:
    files = {"a": b"def f():\n    x\ndef g():\n    x\n"}
    patch = "*** Begin Patch\n*** Update File: a\n@@ def g():\n-    x\n+    y\n*** End Patch"
    assert effects(PatchCall(patch), files) == [FileEffect("a", b"def f():\n    x\ndef g():\n    y\n")]


def test_two_sections_of_one_file_follow_each_other() -> None:
    found = patched("*** Update File: a", "-one", "+1", "*** Update File: a", "-1", "+I")
    assert found == [FileEffect("a", b"I\ntwo\nthree\n")]


@pytest.mark.parametrize(
    "lines", [("-four", "+4"), ("@@ four", "-one", "+1"), ("-three", "+3", "@@", "-one")]
)
def test_an_envelope_that_does_not_fit_is_only_known_by_its_names(lines: tuple[str, ...]) -> None:
    (found,) = patched("*** Update File: a", *lines)
    assert (found.path, found.is_known) == ("a", False)


LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=6)


@settings(max_examples=often(1000), deadline=None)
@given(LINES, LINES, LINES, LINES)
def test_an_edit_made_from_a_change_gives_that_change(
    start: list[str], old: list[str], new: list[str], end: list[str]
) -> None:
    before, after = ("".join(f"{line}\n" for line in (*start, "<", *each, ">", *end)) for each in (old, new))
    changed = ["<", *old, ">"], ["<", *new, ">"]
    edit = TextEdit("\n".join(changed[0]), "\n".join(changed[1]))
    (found,) = effects(FileCall("f", edits=(edit,)), {"f": before.encode()})
    assert found == FileEffect("f", after.encode())
    removed, added = ([sign + line for line in each] for sign, each in zip("-+", changed, strict=True))
    patch = "\n".join(["*** Begin Patch", "*** Update File: f", "@@", *removed, *added, "*** End Patch"])
    (found,) = effects(PatchCall(patch), {"f": before.encode()})
    assert found == FileEffect("f", after.encode())


@pytest.mark.parametrize("before", [" ", "\t ", "\u3000"])
def test_a_header_with_spaces_around_it_is_a_header_as_for_codex(before: str) -> None:
    found = patched(f"{before}*** Add File: new  ", "+x", f"{before}*** Delete File: a")
    assert found == [FileEffect("new", b"x\n"), FileEffect("a", None)]
    moved = patched("*** Update File: a", f"{before}*** Move to: b ", "@@", "-two", "+2")
    assert [each.path for each in moved] == ["b", "a"]


@pytest.mark.parametrize(
    "lines",
    [
        ("+x",),
        ("*** Add File:  new", "+x"),
        ("*** Update File: a", "@@", " *** Add File: b", "+x"),
        ("*** Add File: x\ud800",),
    ],
)
def test_a_patch_that_does_not_say_clearly_which_files_it_changes_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(HookInputError):
        patched(*lines)
