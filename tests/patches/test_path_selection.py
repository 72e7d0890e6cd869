"""A patch narrowed to some paths: whole sections, byte for byte."""

from __future__ import annotations

import random

import pytest

from patchgate.errors import UsageError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import quote
from patchgate.patches.patch_parser import Patch, parse
from patchgate.patches.path_selection import choose_paths, find_unnamed_paths, read_path_option, select_paths
from tests.proposals import addition, change_of, deletion, moved

RENAME = moved(b"old", b"new")
COPY = moved(b"source", b"target", b"copy")


def read(raw: bytes) -> Patch:
    """Parse what is a patch."""
    patch = parse(raw)
    assert isinstance(patch, Patch)
    return patch


def paths(*names: bytes) -> list[RepoPath]:
    """Make paths of names."""
    return [RepoPath.from_patch(name) for name in names]


def test_the_sections_of_the_paths_stay_byte_for_byte_and_in_their_order() -> None:
    one, two, three = change_of(b"b"), addition(b"a"), deletion(b"c")
    patch = read(b"\n\n" + one + two + three)
    assert select_paths(patch, paths(b"c", b"b")) == one + three
    assert select_paths(patch, paths(b"a")) == two
    assert select_paths(patch, paths(b"a", b"b", b"c")) == one + two + three


def test_a_folder_stands_for_all_that_lies_below_it_and_for_no_neighbour() -> None:
    inside, deeper, beside = change_of(b"src/a"), change_of(b"src/x/b"), change_of(b"srcs/a")
    patch = read(inside + beside + deeper)
    assert select_paths(patch, paths(b"src")) == inside + deeper
    assert select_paths(patch, paths(b"src/x")) == deeper
    assert select_paths(patch, paths(b"src/a/below")) == b""


@pytest.mark.parametrize("name", [b"old", b"new"])
def test_a_rename_goes_whole_by_either_name(name: bytes) -> None:
    assert select_paths(read(RENAME + change_of()), paths(name)) == RENAME


@pytest.mark.parametrize("name", [b"source", b"target"])
def test_a_copy_goes_whole_by_either_name(name: bytes) -> None:
    assert select_paths(read(change_of() + COPY), paths(name)) == COPY


def test_no_section_is_no_bytes_and_the_paths_that_nothing_speaks_of_are_named() -> None:
    patch = read(change_of(b"src/a") + RENAME)
    assert select_paths(patch, paths(b"absent")) == b""
    assert find_unnamed_paths(patch, paths(b"src", b"src/a", b"old", b"new")) == ()
    assert find_unnamed_paths(patch, paths(b"sr", b"new", b"src/a/b")) == (
        RepoPath(b"sr"),
        RepoPath(b"src/a/b"),
    )


def test_any_parts_of_a_patch_together_are_the_patch() -> None:
    chance = random.Random(5)
    sections = [change_of(b"f%d" % number) for number in range(40)] + [RENAME, COPY]
    for _ in range(50):
        chance.shuffle(sections)
        patch = read(b"".join(sections))
        one = [section.path for section in patch.sections if chance.random() < 0.5]
        other = [section.path for section in patch.sections if section.path not in one]
        parts = [select_paths(patch, part) for part in (one, other)]
        assert (
            sorted(parts[0].split(b"diff ") + parts[1].split(b"diff "))[2:]
            == sorted(patch.raw.split(b"diff "))[1:]
        )
        for part in parts:
            assert not part or read(part)


def test_a_path_is_read_as_it_is_and_as_git_quotes_it() -> None:
    for raw in (
        b"src/a b.py",
        b"a\tb",
        b'q"uote',
        b'"whole"',
        b"back\\slash",
        b"\xff\xfe",
        "ä".encode(),
        "\u202ex".encode(),
    ):
        patch = read(
            addition(b"placeholder")
            .replace(b"a/placeholder", quote(b"a/" + raw, high=True))
            .replace(b"b/placeholder", quote(b"b/" + raw, high=True))
        )
        for text in (raw.decode("utf-8", "surrogateescape"), RepoPath(raw).quoted):
            assert choose_paths(patch, [read_path_option(text)]) == (RepoPath(raw),)
    assert read_path_option("./src//a/") == (RepoPath(b"src/a"),)


def test_a_path_that_the_patch_alone_explains_has_two_readings() -> None:
    assert read_path_option('"a\\"b"') == (RepoPath(b'"a\\"b"'), RepoPath(b'a"b'))
    assert read_path_option('"a\\q"') == (RepoPath(b'"a\\q"'),)
    assert read_path_option('"') == (RepoPath(b'"'),)


@pytest.mark.parametrize("text", ["", "/etc", "../x", ".", "./"])
def test_a_path_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_path_option(text)


@pytest.mark.parametrize("text", ['"', '"a\\q"', '"\\000"', '"../x"', '"/x"', '""'])
def test_a_quoted_path_that_is_none_is_none_of_the_patch(text: str) -> None:
    with pytest.raises(UsageError, match="does not name"):
        choose_paths(read(change_of()), [read_path_option(text)])
