"""Which root commit is the first commit of a repository, and which commit its main line has."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.git.repository import Repository, open_repository
from patchgate.git.revisions import FirstCommit, has_commits, main_lines
from tests.world import Repo


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def asked(repo: Repo, commit: str, replaces: str | None = None) -> bool:
    tree = repo.ask("rev-parse", f"{commit}^{{tree}}")
    return FirstCommit(opened(repo), replaces).matches(commit, tree)


def test_an_empty_repository_has_no_commit_and_no_main_line(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    assert not has_commits(opened(repo))
    assert main_lines(opened(repo)) == []
    first = repo.commit({"a": "x\n"})
    assert (has_commits(opened(repo)), main_lines(opened(repo))) == (True, [first])
    assert asked(repo, first)


def test_a_root_beside_others_is_not_the_first_but_that_of_the_main_line_is(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    repo.commit({"b": "x\n"})
    other = repo.ask("commit-tree", repo.ask("write-tree"), "-m", "Other")
    assert not asked(repo, other)
    repo.git("update-ref", "refs/heads/other", other)
    assert (asked(repo, first), asked(repo, other)) == (True, False)
    # Nor is it where the main line holds both.
    merge = repo.ask("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-p", other, "-m", "Join")
    repo.git("update-ref", "refs/heads/main", merge)
    assert (asked(repo, first), asked(repo, other)) == (True, False)


def test_notes_are_nobodys_history(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    repo.git("notes", "add", "-m", "x")
    assert asked(repo, first)
    repo.git("update-ref", "-d", "refs/heads/main")
    assert not has_commits(opened(repo))


def test_the_only_commit_may_be_replaced_and_one_of_several_may_not(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    repo.stage({"b": "x\n"})
    other = repo.ask("commit-tree", repo.ask("write-tree"), "-m", "Amended")
    assert asked(repo, other, first)
    assert not asked(repo, other)
    same = repo.ask("commit-tree", f"{first}^{{tree}}", "-m", "Said otherwise")
    assert asked(repo, same)
    second = repo.commit({"c": "x\n"})
    assert not asked(repo, other, second)


def test_the_main_line_is_the_remotes_default_branch_else_the_usual_one_else_the_only_one(
    tmp_path: Path,
) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    second = repo.commit({"b": "x\n"})
    repo.git("update-ref", "refs/remotes/origin/trunk", first)
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert main_lines(opened(repo)) == [first]
    repo.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    assert main_lines(opened(repo)) == [second]
    repo.git("update-ref", "-d", "refs/remotes/origin/trunk")
    repo.git("branch", "-m", "trunk")
    assert main_lines(opened(repo)) == [second]


def test_neither_a_tag_nor_a_branch_of_that_name_answers_for_the_remotes_head(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    other = repo.ask("commit-tree", repo.ask("write-tree"), "-m", "Other")
    for name in ("refs/tags/refs/remotes/origin/HEAD", "refs/remotes/origin/HEAD"):
        repo.git("update-ref", name, other)
        assert main_lines(opened(repo)) == [first]
        assert asked(repo, first)
        repo.git("update-ref", "-d", name)
    repo.git("update-ref", "refs/tags/refs/heads/main", other)
    assert main_lines(opened(repo)) == [first]


@pytest.mark.parametrize("date", ["2000-01-01T00:00:00Z", "2090-01-01T00:00:00Z"])
def test_where_branches_part_no_date_chooses_one(tmp_path: Path, date: str) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    repo.git("branch", "-m", "trunk")
    repo.stage({"b": "x\n"})
    made = repo.git("commit-tree", repo.ask("write-tree"), "-m", "Other", GIT_COMMITTER_DATE=date)
    other = made.decode("ascii").strip()
    repo.git("update-ref", "refs/heads/other", other)
    assert sorted(main_lines(opened(repo))) == sorted([first, other])
    assert (asked(repo, first), asked(repo, other)) == (False, False)
    # A branch that takes a usual name is not the main line of what parts from it.
    repo.git("update-ref", "refs/heads/main", other)
    repo.git("update-ref", "refs/remotes/origin/master", first)
    assert (asked(repo, first), asked(repo, other)) == (False, False)


def test_a_root_is_the_first_of_the_history_that_is_named(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    second = repo.commit({"b": "x\n"})
    other = repo.ask("commit-tree", repo.ask("write-tree"), "-m", "Other")
    same = repo.ask("commit-tree", f"{first}^{{tree}}", "-m", "Said otherwise")
    # No ref tells of the named history.
    repo.git("update-ref", "refs/heads/other", other)
    repo.git("update-ref", "-d", "refs/heads/main")
    for root, is_it in ((first, True), (same, True), (other, False)):
        tree = repo.ask("rev-parse", f"{root}^{{tree}}")
        assert FirstCommit(opened(repo), known=[second]).matches(root, tree) is is_it
        assert FirstCommit(opened(repo), known=[]).matches(root, tree) is (root == other)


def test_what_has_the_tree_of_another_branchs_root_is_not_the_first(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "x\n"})
    repo.stage({"b": "x\n"})
    other = repo.ask("commit-tree", repo.ask("write-tree"), "-m", "Other")
    repo.git("update-ref", "refs/heads/other", other)
    assert not asked(repo, repo.ask("commit-tree", f"{other}^{{tree}}", "-m", "Again"))


def test_the_default_branch_of_a_bare_repository_is_its_head(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    repo.git("branch", "-m", "trunk")
    bare = repo.at(tmp_path / "bare.git")
    repo.git("clone", "-q", "--bare", str(repo.path), str(bare.path))
    repo.git("checkout", "-q", "--orphan", "main")
    other = repo.commit({"b": "x\n"})
    repo.git("push", "-q", str(bare.path), "main")
    assert main_lines(opened(bare)) == [first]
    assert (asked(bare, first), asked(bare, other)) == (True, False)


def test_without_a_branch_a_tag_tells_of_the_history(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    repo.git("tag", "-a", "-m", "x", "v1")
    repo.git("checkout", "-q", "--detach")
    repo.git("branch", "-D", "main")
    assert main_lines(opened(repo)) == [repo.ask("rev-parse", "v1")]
    assert asked(repo, first)
