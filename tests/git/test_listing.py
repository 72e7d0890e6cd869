"""Listing what is tracked, and reading the beginnings of objects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.objects import Header, Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, open_repository
from patchgate.git.working_tree import (
    differing_from_index,
    entry_of,
    index_names,
    index_records,
    name_of,
    tree_records,
    untracked_names,
)
from tests.world import Repo

ODD = [b"a b.md", b"a/b\xff.md", b"a/line\nfeed.md", b"a0", b"tab\tbed", b"z"]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    made = Repo.create(tmp_path_factory.mktemp("listing"))
    for name in ODD:
        made.write(name, name)
    made.write("many/x", "x")
    made.link("link", "z")
    made.git("add", "-A")
    made.gitlink("module")
    oid = made.git("rev-parse", ":z").strip()
    index = b"".join(b"100644 %s 0\tmany/%05d\0" % (oid, number) for number in range(5000))
    made.git("update-index", "-z", "--index-info", stdin=index)
    made.git("commit", "-q", "--no-verify", "-m", "All")
    return made


@pytest.fixture(scope="module")
def repository(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def test_index_and_tree_are_listed_alike_and_by_bytes(repository: Repository) -> None:
    entries = {name_of(each): entry_of(each) for piece in index_records(repository) for each in piece}
    names = [*entries]
    assert names == sorted(names)
    assert set(ODD) < set(names)
    assert len(names) == len(ODD) + 5003
    in_tree = {name_of(each): entry_of(each) for piece in tree_records(repository, "HEAD") for each in piece}
    assert (in_tree, [*in_tree]) == (entries, names)
    assert [name_of(each) for piece in index_names(repository) for each in piece] == names
    modes = [entries[name].mode for name in (b"link", b"module", b"z")]
    assert modes == ["120000", "160000", "100644"]
    assert entries[b"module"].oid == "1" * 40


def test_what_differs_on_disk_is_found_by_its_content_under_any_name(tmp_path: Path) -> None:
    """Changed, gone, another type, untracked, ignored; not what was only touched, nor a nested repository."""
    made = Repo.create(tmp_path)
    same, changed, gone, linked = b"same.md", b"a/b\xff.md", b"line\nfeed.md", b":(top)*.md"
    made.commit({".gitignore": "ignored\n"})
    for name in (same, changed, gone, linked):
        made.write(name, "x\n")
    made.commit()
    os.utime(made.path / "same.md", (1, 1))
    made.write(changed, "y\n")
    for name in (gone, linked):
        os.unlink(os.path.join(os.fsencode(made.path), name))
    os.symlink(b"same.md", os.path.join(os.fsencode(made.path), linked))
    made.write("ignored", "x\n")
    made.write("new/file.md", "x\n")
    made.git("init", "-q", "nested")
    made.write("nested/a.md")
    repository = open_repository(made.env, str(made.path))
    unlike = {changed, gone, linked, b"ignored", b"new/file.md"}
    asked = [
        RepoPath(name) for name in (*unlike, same, b"new", b"none", b"nested", b"nested/a.md", b"x" * 5000)
    ]
    assert {path.raw for path in differing_from_index(repository, asked)} == unlike
    many = [*asked, *(RepoPath(b"%d" % number) for number in range(300))]
    assert {path.raw for path in differing_from_index(repository, many)} == unlike
    assert differing_from_index(repository, []) == frozenset()
    # Each path alone has the same answer, however many questions it takes.
    for path in (*asked, RepoPath(b".gitignore")):
        assert {each.raw for each in differing_from_index(repository, [path])} == {path.raw} & unlike
    listed = [name_of(each) for piece in untracked_names(repository) for each in piece]
    assert listed == [b"new/file.md"]


def test_what_git_was_told_not_to_look_at_differs_where_it_is_gone(tmp_path: Path) -> None:
    made = Repo.create(tmp_path)
    made.commit({f"{name}.md": "x\n" for name in ("same", "gone", "folder", "sparse")})
    made.git("update-index", "--assume-unchanged", "same.md", "gone.md")
    made.git("update-index", "--skip-worktree", "sparse.md")
    for name in ("gone.md", "folder.md", "sparse.md"):
        (made.path / name).unlink()
    made.write("folder.md/a", "x\n")
    repository = open_repository(made.env, str(made.path))
    for name, is_unlike in (("same.md", False), ("gone.md", True), ("folder.md", True), ("sparse.md", False)):
        assert bool(differing_from_index(repository, [RepoPath(os.fsencode(name))])) == is_unlike, name


def test_where_no_index_can_be_made_it_is_undecided(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(repository.work_tree or "") / "here").write_text("x")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(UndecidedError):
        differing_from_index(repository, [RepoPath(b"here")])


def test_a_listing_may_end_early(repository: Repository) -> None:
    listing = index_records(repository)
    assert name_of(next(listing)[0]) == ODD[0]
    listing.close()
    assert list(listing) == []


def test_what_cannot_be_listed_is_undecided(repository: Repository) -> None:
    with pytest.raises(UndecidedError):
        list(tree_records(repository, "0" * 40))


@pytest.fixture
def objects(repository: Repository) -> Iterator[Objects]:
    with Objects(repository) as opened:
        yield opened


def test_the_head_of_an_object_is_as_long_as_was_asked(repo: Repo, objects: Objects) -> None:
    content = bytes(range(256)) * 100
    oid = repo.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
    for most in (0, 1, 255, len(content) - 1, len(content), len(content) + 1):
        assert objects.head(oid, most) == content[:most]
    # What is left of one is never taken for the next answer.
    assert objects.sizes([oid]) == {oid: len(content)}


def test_of_a_large_object_only_its_head_is_taken(repo: Repo, objects: Objects) -> None:
    content = b"0123456789abcdef" * (1 << 20)
    oid = repo.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
    for _ in range(2):
        assert objects.head(oid, 20) == content[:20]
        assert objects.header(oid) == Header(oid, "blob", len(content))
    with pytest.raises(UndecidedError, match="111111"):
        objects.head("1" * 40, 1)
