"""Files before and after, the pairing of exact renames, and the change id."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.git.model import (
    EXECUTABLE,
    GITLINK,
    REGULAR,
    SYMLINK,
    Change,
    Entry,
    FileChange,
    Line,
    Status,
    change_id,
)
from patchgate.git.path import RepoPath

A, B = "a" * 40, "b" * 40
BASE, AFTER = "1" * 40, "2" * 40
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def file(name: str, old: Entry | None, new: Entry | None) -> FileChange:
    return FileChange(RepoPath(name.encode()), old, new)


def added(name: str, oid: str = A, mode: str = REGULAR) -> FileChange:
    return file(name, None, Entry(mode, oid))


def deleted(name: str, oid: str = A, mode: str = REGULAR) -> FileChange:
    return file(name, Entry(mode, oid), None)


def pairs(*files: FileChange) -> dict[bytes, bytes]:
    renames = Change.of(BASE, AFTER, files, EMPTY).renames
    return {new.raw: old.raw for new, old in renames.items()}


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (None, Entry(REGULAR, A), Status.ADDED),
        (Entry(REGULAR, A), None, Status.DELETED),
        (Entry(REGULAR, A), Entry(REGULAR, B), Status.MODIFIED),
        (Entry(REGULAR, A), Entry(EXECUTABLE, B), Status.MODIFIED),
        (Entry(REGULAR, A), Entry(EXECUTABLE, A), Status.MODE_CHANGED),
        (Entry(REGULAR, A), Entry(SYMLINK, A), Status.TYPE_CHANGED),
        (Entry(SYMLINK, A), Entry(GITLINK, B), Status.TYPE_CHANGED),
        (Entry(GITLINK, A), Entry(GITLINK, B), Status.MODIFIED),
    ],
)
def test_the_status_of_a_file(old: Entry | None, new: Entry | None, status: Status) -> None:
    change = file("a", old, new)
    assert change.status is status
    assert change.is_introduced == (old is None)


@pytest.mark.parametrize(
    ("mode", "is_file"), [(REGULAR, True), (EXECUTABLE, True), (SYMLINK, False), (GITLINK, False)]
)
def test_only_regular_files_are_files(mode: str, is_file: bool) -> None:
    assert Entry(mode, A).is_file == is_file


def test_a_change_holds_its_files_in_the_order_of_their_bytes() -> None:
    names = ["b", "a/b", "a.b", "é", "Z"]
    change = Change.of(BASE, AFTER, [added(name, B) for name in names])
    assert [each.path.raw for each in change.files] == sorted(name.encode() for name in names)


def test_a_copy_with_a_size_is_equal_in_all_else() -> None:
    whole = FileChange(
        RepoPath(b"a"), Entry(REGULAR, A), Entry(REGULAR, B), 3, 2, 1, True, 5, (Line(1, b"x"),), b"target"
    )
    assert whole.with_size(7) == dataclasses.replace(whole, size=7)


# ---- renames ----------------------------------------------------------------------------------------------


def test_a_deletion_and_an_addition_of_the_same_blob_and_mode_are_a_rename() -> None:
    assert pairs(deleted("a"), added("b")) == {b"b": b"a"}


def test_another_blob_or_mode_is_no_rename() -> None:
    assert pairs(deleted("a"), added("b", B)) == {}
    assert pairs(deleted("a"), added("b", A, EXECUTABLE)) == {}


def test_empty_files_are_not_paired() -> None:
    assert pairs(deleted("a", EMPTY), added("b", EMPTY)) == {}


def test_changed_files_are_no_side_of_a_rename() -> None:
    assert pairs(file("a", Entry(REGULAR, A), Entry(REGULAR, B)), added("b", A)) == {}
    assert pairs(deleted("a"), file("b", Entry(REGULAR, B), Entry(REGULAR, A))) == {}


def test_each_side_is_used_once_in_the_order_of_the_paths() -> None:
    assert pairs(deleted("a"), added("x"), added("y")) == {b"x": b"a"}
    assert pairs(deleted("a"), deleted("b"), added("x")) == {b"x": b"a"}
    assert pairs(deleted("b"), deleted("a"), added("y"), added("x")) == {b"x": b"a", b"y": b"b"}


@given(st.lists(st.sampled_from("abcdef"), unique=True, max_size=6), st.data())
def test_pairs_do_not_depend_on_the_order_in_which_files_are_given(
    names: list[str], data: st.DataObject
) -> None:
    files = [
        (deleted if data.draw(st.booleans()) else added)(name, data.draw(st.sampled_from([A, B])))
        for name in names
    ]
    turned = data.draw(st.permutations(files))
    assert Change.of(BASE, AFTER, turned, EMPTY) == Change.of(BASE, AFTER, files, EMPTY)


# ---- change id --------------------------------------------------------------------------------------------


def test_the_change_id_is_made_of_paths_modes_and_object_ids() -> None:
    files = [
        file("m", Entry(REGULAR, A), Entry(EXECUTABLE, B)),
        added("n", B, SYMLINK),
        deleted("d", A, GITLINK),
    ]
    nothing = "0" * 40
    text = (
        b"patchgate.change/1\n"
        + f"d\x00160000 {A} 000000 {nothing}\n".encode()
        + f"m\x00100644 {A} 100755 {B}\n".encode()
        + f"n\x00000000 {nothing} 120000 {B}\n".encode()
    )
    expected = "sha256:" + hashlib.sha256(text).hexdigest()
    assert change_id(Change.of(BASE, AFTER, files)) == expected


def test_the_change_id_survives_a_rebase() -> None:
    files = [added("a"), deleted("b", B)]
    assert change_id(Change.of(BASE, AFTER, files)) == change_id(Change.of("3" * 40, "4" * 40, files[::-1]))


def test_the_id_of_a_merge_names_its_tree_and_what_it_joins_too() -> None:
    ids = {
        change_id(Change.of(BASE, after, [added("a")]), parents=parents)
        for after in (AFTER, "4" * 40)
        for parents in ((), ("5" * 40, "6" * 40), ("6" * 40, "5" * 40), ("5" * 40, "7" * 40))
    }
    # That of a plain commit names no tree.
    assert len(ids) == 7


def test_the_zeroes_of_a_missing_side_are_as_long_as_the_object_ids() -> None:
    text = b"patchgate.change/1\na\x00000000 " + b"0" * 64 + b" 100644 " + b"a" * 64 + b"\n"
    change = Change.of("1" * 64, "2" * 64, [added("a", "a" * 64)])
    assert change_id(change) == "sha256:" + hashlib.sha256(text).hexdigest()


def test_the_change_id_does_not_cover_what_was_only_counted() -> None:
    one = added("a")
    counted = dataclasses.replace(one, added_lines=3, size=9, binary=True)
    assert change_id(Change.of(BASE, AFTER, [one])) == change_id(Change.of(BASE, AFTER, [counted]))


@pytest.mark.parametrize(
    "other",
    [
        added("b"),
        added("a", B),
        added("a", A, EXECUTABLE),
        deleted("a"),
        file("a", Entry(REGULAR, B), Entry(REGULAR, A)),
    ],
)
def test_whatever_else_changes_has_another_id(other: FileChange) -> None:
    assert change_id(Change.of(BASE, AFTER, [added("a")])) != change_id(Change.of(BASE, AFTER, [other]))


def test_a_change_of_nothing_has_an_id() -> None:
    assert (
        change_id(Change.of(BASE, BASE, []))
        == "sha256:" + hashlib.sha256(b"patchgate.change/1\n").hexdigest()
    )
