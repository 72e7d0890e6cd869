"""A tree object is read as git wrote it, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.git.model import (
    EXECUTABLE,
    GITLINK,
    REGULAR,
    SYMLINK,
    TREE_MODE,
    Entry,
    MalformedTreeError,
    TreeObject,
    parse_tree,
    print_tree,
)

OID, OTHER, NAME = "1" * 40, "2" * 40, "f" * 40
MODES = (REGULAR, EXECUTABLE, SYMLINK, GITLINK, TREE_MODE)

names = st.binary(min_size=1, max_size=4).map(lambda raw: raw.replace(b"\0", b"0").replace(b"/", b"-"))
trees = st.dictionaries(names, st.builds(Entry, st.sampled_from(MODES), st.sampled_from((OID, OTHER))))


def raw(*rows: tuple[bytes, bytes]) -> bytes:
    return b"".join(mode + b" " + name + b"\0" + bytes.fromhex(OID) for mode, name in rows)


@given(entries=trees)
def test_what_is_printed_is_read_again(entries: dict[bytes, Entry]) -> None:
    content = print_tree(entries)
    assert parse_tree(content, NAME) == entries
    TreeObject.parse(content, NAME).require_current_form()


@given(entries=trees.filter(lambda tree: len(tree) > 1), data=st.data())
def test_in_any_other_order_it_is_malformed(entries: dict[bytes, Entry], data: st.DataObject) -> None:
    ordered = [print_tree({name: entries[name]}) for name in entries]
    shuffled = b"".join(data.draw(st.permutations(ordered)))
    if shuffled == print_tree(entries):
        assert parse_tree(shuffled, NAME) == entries
    else:
        with pytest.raises(MalformedTreeError, match="not sorted"):
            parse_tree(shuffled, NAME)


@given(entries=trees.filter(bool), cut=st.integers(min_value=1, max_value=20))
def test_what_is_cut_off_is_malformed(entries: dict[bytes, Entry], cut: int) -> None:
    with pytest.raises(MalformedTreeError):
        parse_tree(print_tree(entries)[:-cut], NAME)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (raw((b"100644", b"a"), (b"100644", b"a")), " a twice"),
        (raw((b"100644", b"a"), (b"100644", b"a.b"), (b"40000", b"a")), " a twice"),
        (raw((b"40000", b"a"), (b"100644", b"a.b")), "not sorted"),
        (raw((b"100644", b"")), "incomplete"),
        (raw((b"100644", b"a/b")), "incomplete"),
        (raw((b"0", b"a")), "incomplete"),
        (raw((b"0100644", b"a")), "incomplete"),
        (raw((b"100644", b"\x1b[31m"), (b"100644", b"\x1b[31m")), r'"\\033\[31m" twice'),
    ],
)
def test_a_malformed_tree_is_never_read(content: bytes, fault: str) -> None:
    with pytest.raises(MalformedTreeError, match=fault):
        parse_tree(content, NAME)


@pytest.mark.parametrize("content", [raw((b"040000", b"a")), raw((b"060000", b"a")), raw((b"100600", b"a"))])
def test_an_old_form_is_read_and_not_brought(content: bytes) -> None:
    tree = TreeObject.parse(content, NAME)
    assert list(tree.entries()) == [b"a"]
    with pytest.raises(MalformedTreeError):
        tree.require_current_form()


def test_an_object_id_of_zeroes_is_not_brought() -> None:
    tree = TreeObject.parse(b"160000 a\0" + bytes(20), NAME)
    with pytest.raises(MalformedTreeError, match="zeroes"):
        tree.require_current_form()
