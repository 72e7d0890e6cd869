"""Receipts: lines that sh and Python append at once, of which nothing but a whole one counts."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from patchgate.ledger.receipts import Receipts, settle, settled
from tests.amount import often
from tests.ledger.ledger_child import Triple, finish, receipt, start

# What the shim of reference-transaction does, fifty times.
SHELL = 'read go; i=0; while [ $i -lt 50 ]; do cat "$1/landing" >> "$1/receipts"; i=$((i + 1)); done'

short_ids = st.integers(0, 16**40 - 1).map(lambda number: f"{number:040x}")
long_ids = st.integers(0, 16**64 - 1).map(lambda number: f"{number:064x}")
triples = st.one_of(
    *(st.tuples(ids, ids, st.none() | ids) for ids in (short_ids, long_ids)),
)


def line_of(triple: Triple) -> bytes:
    commit, tree, parent = triple
    return f"{commit} {tree} {parent or '-'}\n".encode()


def receipts_with(folder: Path | str, content: bytes) -> Receipts:
    place = Path(folder, "patchgate", "receipts")
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(content)
    return Receipts(str(folder))


def test_a_receipt_that_was_added_is_there_for_this_object_and_the_next(tmp_path: Path) -> None:
    mine, root = receipt("mine", 1), receipt("mine", 0)
    receipts = Receipts(str(tmp_path))
    assert (receipts.has(mine[0]), receipts.commits()) == (False, set())
    assert os.listdir(tmp_path) == []
    assert receipts.add([mine, root]) is None
    for each in (receipts, Receipts(str(tmp_path))):
        assert each.has(mine[0])
        assert not each.has(mine[1])
        assert each.commits() == {mine[0], root[0]}
        assert each.by_tree(mine[1]) == [(mine[0], mine[2])]
        assert each.by_tree(root[1]) == [(root[0], None)]
    assert (tmp_path / "patchgate" / "receipts").read_bytes() == line_of(mine) + line_of(root)


def test_what_is_no_receipt_cannot_be_added(tmp_path: Path) -> None:
    commit, tree, parent = receipt("mine", 1)
    receipts = Receipts(str(tmp_path))
    for wrong in (
        (commit, tree, ""),
        (commit.upper(), tree, parent),
        (commit[:39], tree, parent),
        (commit, tree * 2, parent),
        (commit, tree, f"{parent}\n{commit} {tree} {parent}"),
        ("", "", None),
    ):
        with pytest.raises(ValueError, match="object ids"):
            receipts.add([(commit, tree, parent), wrong])
    assert receipts.add([]) is None
    assert os.listdir(tmp_path) == []


def test_a_merge_s_receipt_counts_as_any_other_and_says_that_it_is_one(tmp_path: Path) -> None:
    merge, plain = receipt("mine", 1), receipt("mine", 2)
    receipts = Receipts(str(tmp_path))
    assert receipts.add([merge, plain], {merge[0]}) is None
    raw = (tmp_path / "patchgate" / "receipts").read_bytes()
    assert raw == line_of(merge)[:-1] + b" merge\n" + line_of(plain)
    assert receipts.has(merge[0])
    assert receipts.commits() == {merge[0], plain[0]}
    assert receipts.by_tree(merge[1]) == [(merge[0], merge[2])]
    assert receipts.by_tree(str(merge[2])) == []
    assert receipts.recent_parents() == {plain[0]: plain[2]}


def test_only_the_end_of_the_file_is_looked_at_for_recent_ones(tmp_path: Path) -> None:
    triples = [receipt("mine", number) for number in range(700)]
    receipts = Receipts(str(tmp_path))
    receipts.add(triples)
    whole = (64 << 10) // len(line_of(triples[1]))
    assert receipts.recent_parents() == {commit: parent for commit, _, parent in triples[-whole:]}


@settings(max_examples=often(200), deadline=None)
@given(valid=st.lists(triples, min_size=1, max_size=4), cut=st.integers(1, 250), begin=st.integers(0, 250))
def test_a_receipt_of_which_an_end_is_missing_is_no_recent_one(
    valid: list[Triple], cut: int, begin: int
) -> None:
    raw = b"".join(map(line_of, valid))[begin:]
    with tempfile.TemporaryDirectory() as folder:
        found = receipts_with(folder, raw[:-cut]).recent_parents().items()
        ends = [raw.find(line_of(each)) + len(line_of(each)) for each in valid]
        whole = {
            (commit, parent)
            for (commit, _, parent), end in zip(valid, ends, strict=True)
            if line_of((commit, _, parent)) in raw and end <= len(raw) - cut
        }
        assert set(found) <= {(commit, parent) for commit, _, parent in valid}
        assert len({commit for commit, _, _ in valid}) < len(valid) or set(found) == whole


def test_every_receipt_for_a_tree_is_given_once(tmp_path: Path) -> None:
    (first, tree, parent), (second, _, _) = receipt("mine", 1), receipt("mine", 2)
    lines = [(first, tree, parent), (second, tree, None), (first, tree, parent)]
    receipts = Receipts(str(tmp_path))
    receipts.add(lines)
    assert receipts.by_tree(tree) == [(first, parent), (second, None)]
    assert receipts.by_tree(first) == []


def test_many_questions_get_the_same_answers_as_few(tmp_path: Path) -> None:
    triples = [receipt("mine", number) for number in range(200)]
    receipts = Receipts(str(tmp_path))
    receipts.add(triples[::2])
    assert [receipts.has(commit) for commit, _, _ in triples] == [True, False] * 100
    assert [Receipts(str(tmp_path)).has(commit) for commit, _, _ in triples] == [True, False] * 100


def test_processes_in_python_and_sh_append_at_once_and_no_receipt_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "patchgate"
    folder.mkdir()
    landing = receipt("shell", 1)
    (folder / "landing").write_bytes(line_of(landing))
    shells = [
        subprocess.Popen(["sh", "-c", SHELL, "sh", str(folder)], stdin=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    children = [start("receipts", str(tmp_path), name, "50") for name in ("one", "two", "three")]
    for shell in shells:
        assert shell.stdin is not None
        shell.stdin.write("go\n")
        shell.stdin.flush()
    assert finish(*children) == [[""] * 50] * 3
    for shell in shells:
        shell.communicate()
        assert shell.returncode == 0
    expected = {receipt(name, number)[0] for name in ("one", "two", "three") for number in range(50)}
    assert Receipts(str(tmp_path)).commits() == {*expected, landing[0]}
    assert (folder / "receipts").read_bytes().count(line_of(landing)) == 150


@settings(max_examples=often(200), deadline=None)
@given(
    valid=st.lists(triples, max_size=4), garbage=st.lists(st.binary(max_size=200), min_size=1), data=st.data()
)
def test_garbage_lines_are_no_receipts_and_hide_none(
    valid: list[Triple], garbage: list[bytes], data: st.DataObject
) -> None:
    lines = data.draw(st.permutations([*map(line_of, valid), *(each + b"\n" for each in garbage)]))
    with tempfile.TemporaryDirectory() as folder:
        receipts = receipts_with(folder, b"".join(lines))
        assert receipts.commits() == {commit for commit, _, _ in valid}
        for commit, tree, parent in valid:
            assert receipts.has(commit)
            assert (commit, parent) in receipts.by_tree(tree)


@settings(max_examples=often(200), deadline=None)
@given(
    valid=st.lists(triples, min_size=1, max_size=4),
    cut=st.integers(0, 200),
    appender=st.booleans(),
    late=triples,
)
def test_a_line_that_a_crash_cut_short_is_no_receipt_and_takes_none_with_it(
    valid: list[Triple], cut: int, appender: bool, late: Triple
) -> None:
    """Python starts a new line behind it; `cat` glues its own to it, which is lost, and none is made up."""
    last = line_of(valid[-1])
    assume(cut < len(last))
    assume(len({commit for commit, _, _ in [*valid, late]}) > len(valid))
    with tempfile.TemporaryDirectory() as folder:
        receipts = receipts_with(folder, b"".join(map(line_of, valid[:-1])) + last[:cut])
        whole = {commit for commit, _, _ in valid[:-1]}
        assert receipts.commits() == whole
        assert receipts.has(valid[-1][0]) == (valid[-1][0] in whole)
        if appender:
            assert receipts.add([late]) is None
            # All but its line's end may have been there; then the new line makes it whole.
            assert receipts.commits() == {*whole, late[0], *([valid[-1][0]] if cut == len(last) - 1 else [])}
        else:
            with open(receipts.path, "ab") as file:
                file.write(line_of(late))
            again = Receipts(folder)
            assert again.commits() == ({*whole, late[0]} if cut == 0 else whole)
            assert again.has(late[0]) == (cut == 0)


@pytest.mark.parametrize("widths", [(64, 64, 40), (64, 40, 64), (40, 64, 64), (40, 40, 64), (40, 40, 41)])
def test_a_line_with_ids_of_two_lengths_is_no_receipt(tmp_path: Path, widths: tuple[int, int, int]) -> None:
    ids = [letter * width for letter, width in zip("abc", widths, strict=True)]
    receipts = receipts_with(tmp_path, " ".join(ids).encode() + b"\n")
    assert (receipts.has(ids[0]), receipts.by_tree(ids[1]), receipts.commits()) == (False, [], set())


@pytest.mark.parametrize("end", [b"", b"0", b"\r\n", b" \n", b" main\n", b"\0\n"])
def test_a_line_that_ends_otherwise_is_no_receipt(tmp_path: Path, end: bytes) -> None:
    commit, tree, parent = receipt("mine", 1)
    receipts = receipts_with(tmp_path, line_of((commit, tree, parent))[:-1] + end)
    assert (receipts.has(commit), receipts.by_tree(tree), receipts.commits()) == (False, [], set())


@settings(max_examples=often(200), deadline=None)
@given(triple=triples, position=st.integers(0, 200), byte=st.integers(0, 255))
def test_a_line_with_one_byte_changed_is_another_receipt_or_none(
    triple: Triple, position: int, byte: int
) -> None:
    line = line_of(triple)
    assume(position < len(line))
    changed = line[:position] + bytes([byte]) + line[position + 1 :]
    with tempfile.TemporaryDirectory() as folder:
        found = receipts_with(folder, changed).commits()
        is_form = chr(byte) in "0123456789abcdef" and chr(line[position]) in "0123456789abcdef"
        assert found == ({changed[: len(triple[0])].decode()} if is_form or changed == line else set())


def test_a_folder_that_cannot_be_made_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "patchgate").write_bytes(b"")
    receipts = Receipts(str(tmp_path))
    warning = receipts.add([receipt("mine", 1)])
    assert warning is not None
    assert "receipt" in warning
    assert receipts.commits() == set()
    assert settled(str(tmp_path)) == []
    assert settle(str(tmp_path), ["1" * 40]) is not None


def test_a_full_disk_costs_a_warning_and_no_earlier_receipt(tmp_path: Path) -> None:
    receipts = Receipts(str(tmp_path))
    receipts.add([receipt("early", 1)])
    size = os.path.getsize(receipts.path)
    (printed,) = finish(start("--most", str(size + 60), "receipts", str(tmp_path), "late", "2"))
    assert all("receipt" in warning for warning in printed)
    assert len(printed) == 2
    assert Receipts(str(tmp_path)).commits() == {receipt("early", 1)[0]}
    assert receipts.add([receipt("later", 1)]) is None
    assert receipts.commits() == {receipt("early", 1)[0], receipt("later", 1)[0]}


def test_a_symlink_in_the_place_of_the_receipts_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    (tmp_path / "patchgate").mkdir()
    (tmp_path / "patchgate" / "receipts").symlink_to(outside)
    assert Receipts(str(tmp_path)).add([receipt("mine", 1)]) is not None
    assert outside.read_bytes() == b"precious"


def test_settled_tips_add_up_and_are_kept_once(tmp_path: Path) -> None:
    common = str(tmp_path)
    assert settled(common) == []
    assert settle(common, ["b" * 40, "a" * 40]) is None
    assert settle(common, ["a" * 40, "c" * 64]) is None
    assert settled(common) == ["b" * 40, "a" * 40, "c" * 64]
    content = (tmp_path / "patchgate" / "settled").read_text(encoding="ascii")
    assert content == "".join(f"{oid}\n" for oid in settled(common))


def test_only_object_ids_are_settled(tmp_path: Path) -> None:
    common = str(tmp_path)
    for wrong in ("HEAD", "a" * 39, "a" * 40 + "\n", "A" * 40, ""):
        with pytest.raises(ValueError, match="object id"):
            settle(common, ["b" * 40, wrong])
    assert settled(common) == []
    (tmp_path / "patchgate").mkdir()
    (tmp_path / "patchgate" / "settled").write_bytes(b"\xff\n--all\n" + b"a" * 40 + b"\n" + b"b" * 41 + b"\n")
    assert settled(common) == ["a" * 40]
