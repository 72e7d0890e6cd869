"""For any change: the resulting tree is git's, and staged, as a commit and as a range it has the same ids."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.amount import often
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

NAMES = ("a", "a/b", "a/b/c", "a.b", "a0", "b", "b/x", "b/y/z", "\u00fc", "new\nline")
CONTENTS = (b"", b"one\n", b"two\n", b"no newline", b"nul\0byte", b"1\n2\n3\n")
MODES = ("100644", "100755", "120000", "160000")
ZEROES = "0" * 40
Tree = dict[str, tuple[str, bytes]]


def without_clashes(tree: Tree) -> Tree:
    """Leave out what lies below another path: a name is a file or a folder."""
    return {name: value for name, value in tree.items() if not any(name.startswith(o + "/") for o in tree)}


trees: st.SearchStrategy[Tree] = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from(MODES), st.sampled_from(CONTENTS)), max_size=6
).map(without_clashes)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """An empty repository that holds every content as a blob."""
    made = Repo.create(tmp_path_factory.mktemp("ids"))
    for content in CONTENTS:
        made.git("hash-object", "-w", "--stdin", stdin=content)
    return made


def entry(mode: str, content: bytes) -> str:
    if mode == "160000":
        return hashlib.sha1(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def fill_index(repo: Repo, tree: Tree) -> None:
    repo.git("read-tree", "--empty")
    listed = b"".join(
        f"{mode} {entry(mode, content)}\t{name}\0".encode() for name, (mode, content) in tree.items()
    )
    repo.git("update-index", "-z", "--index-info", stdin=listed)


def commit_of(repo: Repo, tree: str, parent: str | None) -> str:
    commit = repo.ask("commit-tree", "-m", "x", *(["-p", parent] if parent else []), tree)
    repo.git("update-ref", "refs/heads/main", commit)
    return commit


def ids(change: dict[str, Any]) -> tuple[str, ...]:
    return change["base"], change["after"], change["change_id"], change["id"]


def change_id(repo: Repo, old: str, new: str) -> str:
    """The change id, computed from git's raw diff by the words of its definition."""
    fields = repo.git("diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", old, new).split(b"\0")
    digest = hashlib.sha256(b"patchgate.change/1\n")
    for path, about in sorted(zip(fields[1::2], fields[0:-1:2], strict=True)):
        old_mode, new_mode, old_oid, new_oid, _ = about.removeprefix(b":").split(b" ")
        digest.update(b"%s\0%s %s %s %s\n" % (path, old_mode, old_oid, new_mode, new_oid))
    return "sha256:" + digest.hexdigest()


@settings(max_examples=often(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=trees, after=trees)
def test_ids_are_equal_however_the_change_is_named(repo: Repo, before: Tree, after: Tree) -> None:
    fill_index(repo, before)
    base = repo.ask("write-tree")
    parent = commit_of(repo, base, None)
    fill_index(repo, after)
    staged = repo.check("--cached").change
    written = repo.ask("write-tree")
    commit = commit_of(repo, written, parent)

    assert (staged["base"], staged["after"]) == (base, written)
    assert staged["change_id"] == change_id(repo, base, written)
    assert ids(repo.check(commit).change) == ids(staged)
    assert ids(repo.check(f"{parent}..{commit}").change) == ids(staged)
    assert repo.check(commit).change["files"] == staged["files"]
    assert repo.check(commit).rules == [finding["rule"] for finding in staged["findings"]]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=trees)
def test_ids_of_a_first_commit_are_equal_staged_and_committed(repo: Repo, tree: Tree) -> None:
    repo.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    fill_index(repo, tree)
    staged = repo.check().change
    root = repo.ask("commit-tree", "-m", "x", repo.ask("write-tree"))
    assert ids(repo.check(root).change) == ids(staged)


def test_a_folder_that_becomes_a_file_and_back_has_gits_tree(repo: Repo) -> None:
    one: Tree = {"a/b/c": ("100644", b"one\n"), "a.b": ("100644", b"")}
    two: Tree = {"a": ("100644", b"two\n"), "a.b": ("100644", b"")}
    for before, after in ((one, two), (two, one)):
        fill_index(repo, before)
        commit_of(repo, repo.ask("write-tree"), None)
        repo.git("symbolic-ref", "HEAD", "refs/heads/main")
        fill_index(repo, after)
        assert repo.check().change["after"] == repo.ask("write-tree")


def test_old_group_writable_modes_give_the_tree_that_git_writes(repo: Repo) -> None:
    """Trees of old repositories hold 100664; git reads it as 100644 and writes that."""
    repo.git("symbolic-ref", "HEAD", "refs/heads/main")
    oid = bytes.fromhex(entry("100644", b"one\n"))
    raw = b"100664 old\0" + oid + b"100664 other\0" + oid
    tree = repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw).decode().strip()
    parent = commit_of(repo, tree, None)
    repo.git("read-tree", tree)
    listed = f"100644 {entry('100644', CONTENTS[2])}\tother\0".encode()
    repo.git("update-index", "-z", "--index-info", stdin=listed)
    staged = repo.check().change
    assert [row["path"] for row in staged["files"]] == ["other"]
    assert staged["after"] == repo.ask("write-tree")
    assert repo.check(commit_of(repo, staged["after"], parent)).change["id"] == staged["id"]
