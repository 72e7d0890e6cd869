"""`check --worktree` judges what a commit of everything would hold: git's own `add -A` is the oracle."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with files in folders."""
    made = Repo.create(tmp_path)
    made.commit(
        {"a": "a\n", "dir/b": "b\n", "dir/c": "c\n", "deep/er/d": "d\n", ".gitignore": "*.log\n/out/\n"}
    )
    return made


def equals_add_all(repo: Repo) -> set[str]:
    """Assert that the check sees exactly what `git add -A` would stage; give the paths."""
    answer = repo.check("--worktree")
    assert "changes" in answer.report, answer.out
    shutil.copy2(repo.path / ".git" / "index", repo.path / ".git" / "private")
    private = Repo(repo.path, {**repo.env, "GIT_INDEX_FILE": str(repo.path / ".git" / "private")})
    private.git("add", "-A")
    assert answer.change["after"] == private.ask("write-tree")
    (repo.path / ".git" / "private").unlink()
    return set(answer.files)


def test_untracked_files_are_judged_and_ignored_ones_are_not(repo: Repo) -> None:
    repo.write("new", "n\n")
    repo.write("x.log")
    repo.write("out/y")
    repo.write("dir/new/z")
    assert equals_add_all(repo) == {"new", "dir/new/z"}


def test_a_tracked_file_is_judged_although_it_is_ignored(repo: Repo) -> None:
    repo.write("kept.log", "one\n")
    repo.git("add", "-f", "kept.log")
    repo.git("commit", "-q", "-m", "x")
    repo.write("kept.log", "two\n")
    assert equals_add_all(repo) == {"kept.log"}


def test_changes_deletions_and_modes_are_judged(repo: Repo) -> None:
    repo.write("a", "changed\n")
    (repo.path / "dir/b").unlink()
    repo.write("dir/c", "c\n", executable=True)
    shutil.rmtree(repo.path / "deep")
    assert equals_add_all(repo) == {"a", "dir/b", "dir/c", "deep/er/d"}


def test_what_is_staged_counts_where_the_file_did_not_change_since(repo: Repo) -> None:
    repo.stage({"staged": "s\n"})
    repo.write("a", "not staged\n")
    assert equals_add_all(repo) == {"staged", "a"}


def test_what_was_staged_and_then_changed_counts_as_it_is_now(repo: Repo) -> None:
    repo.stage({"a": "staged\n", "gone": "x\n"})
    repo.write("a", "a\n")
    (repo.path / "gone").unlink()
    assert equals_add_all(repo) == set()


def test_a_file_that_became_a_folder_is_judged(repo: Repo) -> None:
    (repo.path / "a").unlink()
    repo.write("a/inside", "x\n")
    assert equals_add_all(repo) == {"a", "a/inside"}


def test_a_folder_that_became_a_file_is_judged(repo: Repo) -> None:
    shutil.rmtree(repo.path / "dir")
    repo.write("dir", "x\n")
    assert equals_add_all(repo) == {"dir", "dir/b", "dir/c"}


def test_a_folder_that_became_a_symlink_is_judged(repo: Repo) -> None:
    (repo.path / "dir").rename(repo.path / "moved")
    repo.link("dir", "moved")
    # The files that moved are listed once, under their new names.
    assert equals_add_all(repo) == {"dir", "moved/b", "moved/c"}


def test_a_symlink_is_judged_by_its_target_and_not_followed(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("x")
    repo.link("link", str(tmp_path / "outside"))
    assert equals_add_all(repo) == {"link"}
    assert repo.check("--worktree").errors == ["symlink"]


def test_a_nested_repository_is_a_gitlink(repo: Repo) -> None:
    nested = repo.at(repo.path / "nested")
    nested.path.mkdir()
    nested.git("init", "-q", "-b", "main")
    nested.commit({"inside": "x\n"})
    answer = repo.check("--worktree")
    assert answer.files["nested"]["new_mode"] == "160000"
    assert answer.errors == ["gitlink"]
    assert equals_add_all(repo) == {"nested"}


def test_a_nested_repository_without_a_commit_is_undecided_as_git_cannot_add_it(repo: Repo) -> None:
    nested = repo.at(repo.path / "nested")
    nested.path.mkdir()
    nested.git("init", "-q", "-b", "main")
    assert repo.try_git("add", "-A", "--dry-run").returncode != 0
    assert repo.check("--worktree").code == 3


def test_a_submodule_that_moved_on_is_a_bump(repo: Repo) -> None:
    nested = repo.at(repo.path / "nested")
    nested.path.mkdir()
    nested.git("init", "-q", "-b", "main")
    nested.commit({"inside": "x\n"})
    repo.stage()
    repo.git("commit", "-q", "-m", "x")
    nested.write("untracked")
    assert equals_add_all(repo) == set()
    nested.commit({"inside": "y\n"})
    repo.git("config", "submodule.nested.ignore", "all")
    answer = repo.check("--worktree")
    assert {path: row["status"] for path, row in answer.files.items()} == {"nested": "modified"}
    assert answer.verdict == "accepted"


def test_from_a_subfolder_the_whole_working_tree_is_judged(repo: Repo) -> None:
    repo.write("new", "n\n")
    repo.write("dir/new", "n\n")
    assert set(repo.check("--worktree", cwd=repo.path / "dir").files) == {"new", "dir/new"}


def test_in_a_linked_worktree_its_own_files_are_judged(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = repo.at(tmp_path / "linked")
    linked.write("only-here", "x\n")
    assert set(linked.check("--worktree").files) == {"only-here"}
    assert repo.check("--worktree").files == {}


def test_content_is_converted_as_git_converts_it(repo: Repo) -> None:
    repo.commit({".gitattributes": "*.txt text eol=crlf\n"})
    repo.write("new.txt", "one\r\ntwo\r\n")
    assert equals_add_all(repo) == {"new.txt"}


def test_a_file_that_became_a_broken_repository_is_judged_as_git_adds_it(repo: Repo) -> None:
    (repo.path / "a").unlink()
    repo.write("a/.git", "gitdir: nowhere\n")
    assert equals_add_all(repo) == {"a"}


def test_a_pipe_or_socket_in_the_working_tree_is_no_file(repo: Repo) -> None:
    os.mkfifo(repo.path / "pipe")
    assert equals_add_all(repo) == set()


def test_an_empty_index_counts_everything(repo: Repo) -> None:
    (repo.path / ".git" / "index").unlink()
    assert repo.check("--worktree").files == {}


@pytest.mark.parametrize("seed", range(12))
def test_random_working_trees_are_judged_as_git_would_add_them(repo: Repo, seed: int) -> None:
    chance = random.Random(seed)
    names = ["a", "a/x", "dir/b", "dir/b/y", "dir/c", "new", "deep", "deep/er", "deep/er/d", "x.log", "n w"]
    for _ in range(12):
        place = repo.path / chance.choice(names)
        if chance.random() < 0.6:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            elif place.is_symlink() or place.exists():
                place.unlink()
        if chance.random() < 0.7:
            for parent in reversed(place.relative_to(repo.path).parents):
                above = repo.path / parent
                if above.is_symlink() or above.is_file():
                    above.unlink()
                above.mkdir(exist_ok=True)
            if place.is_dir():
                continue
            if chance.random() < 0.2:
                place.unlink(missing_ok=True)
                place.symlink_to("a")
            elif not place.is_symlink():
                place.write_text(chance.choice(["", "one\n", "two\n"]))
                place.chmod(chance.choice([0o644, 0o755]))
        if chance.random() < 0.2:
            repo.git("add", "-A")
    equals_add_all(repo)
