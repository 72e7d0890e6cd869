"""Which root commit is the first commit of a repository, and which commit its main line has."""

from __future__ import annotations

from pathlib import Path

from patchgate.git.repository import Repository, open_repository
from patchgate.git.roots import has_commits, is_first, main_line
from tests.world import Repo


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def asked(repo: Repo, commit: str, replaces: str | None = None) -> bool:
    return is_first(opened(repo), commit, repo.ask("rev-parse", f"{commit}^{{tree}}"), replaces)


def test_an_empty_repository_has_no_commit_and_no_main_line(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    assert not has_commits(opened(repo))
    assert main_line(opened(repo)) is None
    first = repo.commit({"a": "x\n"})
    assert (has_commits(opened(repo)), main_line(opened(repo))) == (True, first)
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


def test_the_main_line_is_the_remotes_default_branch_else_the_usual_one_else_the_newest(
    tmp_path: Path,
) -> None:
    repo = Repo.create(tmp_path)
    first = repo.commit({"a": "x\n"})
    second = repo.commit({"b": "x\n"})
    repo.git("update-ref", "refs/remotes/origin/trunk", first)
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    assert main_line(opened(repo)) == first
    repo.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    assert main_line(opened(repo)) == second
    repo.git("branch", "-m", "trunk")
    assert main_line(opened(repo)) == second
