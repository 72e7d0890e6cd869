"""What stands on disk, and git's conversions between a file's bytes and its blob."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git import conversion
from patchgate.git.conversion import (
    BlockedPath,
    CheckoutConverter,
    ContentAttributes,
    hash_as_stored,
    is_switched_off,
    read_worktree_file,
)
from patchgate.git.model import EXECUTABLE, REGULAR, SYMLINK
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository, open_repository
from patchgate.git.transaction.entries import FileContent
from tests.world import Repo

UTF16 = "working-tree-encoding=UTF-16BE\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path)


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def at(repo: Repo, name: bytes) -> FileContent | BlockedPath | None:
    return read_worktree_file(opened(repo), RepoPath(name))


def checked_out(repo: Repo, *asked: tuple[bytes, bytes]) -> list[bytes]:
    """Store blobs in private, and ask what a checkout would write for them."""
    repository = opened(repo)
    with PrivateStore(repository) as store:
        oids = [(RepoPath(name), store.write("blob", blob)) for name, blob in asked]
        with CheckoutConverter(repository, store) as git:
            return [git.convert(path, oid) for path, oid in oids]


def stored(repo: Repo, *asked: tuple[bytes, bytes]) -> list[str]:
    repository = opened(repo)
    with PrivateStore(repository) as store:
        return hash_as_stored(repository, store, [(RepoPath(name), content) for name, content in asked])


def blob(repo: Repo, content: bytes) -> str:
    return repo.git("hash-object", "--stdin", stdin=content).decode().strip()


def test_files_and_links_are_read_as_they_stand(repo: Repo) -> None:
    repo.write("d/f", b"a\r\n\0")
    repo.write("run", b"", executable=True)
    repo.link("link", "d")
    repo.write(b"\xff\n", b"x")
    assert at(repo, b"d/f") == FileContent(REGULAR, b"a\r\n\0")
    assert at(repo, b"run") == FileContent(EXECUTABLE, b"")
    assert at(repo, b"link") == FileContent(SYMLINK, b"d")
    assert at(repo, b"\xff\n") == FileContent(REGULAR, b"x")
    assert at(repo, b"nothing") is None
    assert at(repo, b"nothing/at/all") is None


def test_no_link_is_followed_and_nothing_but_files_is_read(repo: Repo) -> None:
    repo.write("d/f", b"x")
    repo.write("module/.git", "gitdir: elsewhere\n")
    repo.link("link", "d")
    os.mkfifo(repo.path / "fifo")
    assert at(repo, b"link/f") == BlockedPath(RepoPath(b"link"), False)
    assert at(repo, b"d/f/x") == BlockedPath(RepoPath(b"d/f"), False)
    assert at(repo, b"module/f") == BlockedPath(RepoPath(b"module"), False)
    assert at(repo, b"fifo") == BlockedPath(RepoPath(b"fifo"), False)
    assert at(repo, b"d") == BlockedPath(RepoPath(b"d"), True)


def test_a_file_that_is_too_large_is_undecided(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.write("f", b"12345")
    monkeypatch.setattr(conversion, "MOST_BYTES", 5)
    assert at(repo, b"f") == FileContent(REGULAR, b"12345")
    monkeypatch.setattr(conversion, "MOST_BYTES", 4)
    with pytest.raises(UndecidedError, match="f has 0 MiB"):
        at(repo, b"f")


def test_one_child_gives_the_forms_of_many_blobs_whatever_their_content(repo: Repo) -> None:
    repo.write(
        ".gitattributes",
        '*.crlf eol=crlf\n*.utf16 working-tree-encoding=UTF-16BE\n*.id ident\n" blank" eol=crlf\n',
    )
    text = b"a\nb\n"
    tricky = b"\npatchgate-00 missing\n" * 3
    oid = blob(repo, b"$Id$").encode()
    assert checked_out(
        repo,
        (b"a.crlf", text),
        (b"a", text),
        (b"a.utf16", text),
        (b"empty.crlf", b""),
        (b"tricky", tricky),
        (b"\xff\nodd.crlf", text),
        (b" blank", text),
        (b"a.id", b"$Id$"),
    ) == [
        b"a\r\nb\r\n",
        text,
        text.decode().encode("utf-16-be"),
        b"",
        tricky,
        b"a\r\nb\r\n",
        b"a\r\nb\r\n",
        b"$Id: " + oid + b" $",
    ]


def test_a_large_form_comes_whole(repo: Repo) -> None:
    repo.write(".gitattributes", "f eol=crlf\n")
    large = b"0123456789\n" * 500_000
    assert checked_out(repo, (b"f", large)) == [large.replace(b"\n", b"\r\n")]


def test_a_blob_that_is_not_here_is_undecided(repo: Repo) -> None:
    repository = opened(repo)
    with (
        PrivateStore(repository) as store,
        CheckoutConverter(repository, store) as git,
        pytest.raises(UndecidedError, match="111111"),
    ):
        git.convert(RepoPath(b"f"), "1" * 40)


def test_files_of_the_same_attributes_are_asked_for_together_and_each_gets_its_own_blob(repo: Repo) -> None:
    repo.write(".gitattributes", "*.crlf eol=crlf\n*.bin -text\n*.name filter=name\n")
    repo.git("config", "filter.name.clean", "cat; echo %f")
    assert stored(
        repo,
        (b"a.crlf", b"1\r\n"),
        (b"b.bin", b"2\r\n"),
        (b"c.crlf", b"3\r\n"),
        (b"d.name", b"4\n"),
        (b"e.name", b"4\n"),
        (b'"f\n.crlf', b"5\r\n"),
    ) == [
        blob(repo, content) for content in (b"1\n", b"2\r\n", b"3\n", b"4\nd.name\n", b"4\ne.name\n", b"5\n")
    ]
    assert stored(repo, (b'"f\n.crlf', b"5\r\n")) == [blob(repo, b"5\n")]
    assert stored(repo) == []


def test_a_filter_runs_in_the_root_of_the_working_tree(repo: Repo) -> None:
    repo.write("tools/turn", "#!/bin/sh\nexec tr a-z n-za-m\n", executable=True)
    repo.write(".gitattributes", "*.turned filter=turn\n")
    repo.git("config", "filter.turn.clean", "tools/turn")
    repo.git("config", "filter.turn.smudge", "./tools/turn")
    name = b"deep/f.turned"
    assert checked_out(repo, (name, b"abc\n")) == [b"nop\n"]
    assert stored(repo, (name, b"nop\n"), (b"g", b"nop\n")) == [blob(repo, b"abc\n"), blob(repo, b"nop\n")]


def test_a_conversion_that_cannot_be_undone_is_no_reason_to_stop(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.safecrlf", "true")
    assert stored(repo, (b"f", b"a\r\nb\n")) == [blob(repo, b"a\nb\n")]


def test_a_filter_that_is_required_and_fails_is_undecided(repo: Repo) -> None:
    repo.write(".gitattributes", "f filter=broken\n")
    repo.git("config", "filter.broken.clean", "false")
    repo.git("config", "filter.broken.required", "true")
    with pytest.raises(UndecidedError, match="hash-object failed"):
        stored(repo, (b"f", b"x"))


@pytest.mark.parametrize(
    ("place", "text", "reached", "not_reached"),
    [
        (".gitattributes", "* text=auto eol=crlf\n", [], [b"f", b"d/f"]),
        ("d/.gitattributes", "f filter=lfs\n", [b"d/f", b"d/e/f"], [b"f", b"e/f"]),
        (".gitattributes", "[attr]x ident\n", [b"f", b"d/f"], []),
        (".git/info/attributes", "* working-tree-encoding=UTF-16\n", [b"f", b"d/f"], []),
    ],
)
def test_attributes_that_change_more_than_line_ends_are_seen_where_they_reach(
    repo: Repo, place: str, text: str, reached: list[bytes], not_reached: list[bytes]
) -> None:
    repo.write(place, text)
    attributes = ContentAttributes(opened(repo))
    assert [name for name in reached + not_reached if attributes.may_convert(RepoPath(name))] == reached


def test_an_attributes_file_that_cannot_be_read_counts_as_if_it_held_everything(repo: Repo) -> None:
    repo.link(".gitattributes", "elsewhere")
    assert ContentAttributes(opened(repo)).may_convert(RepoPath(b"f"))


def test_what_the_config_switches_off(repo: Repo) -> None:
    assert not is_switched_off(opened(repo), "core.fileMode")
    repo.git("config", "core.fileMode", "off")
    assert is_switched_off(opened(repo), "core.fileMode")
    assert not is_switched_off(opened(repo), "core.symlinks")
