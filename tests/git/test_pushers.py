"""Which worktree pushes is read off the processes; where that fails, it counts as this repository's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchgate.git.operations import directory_by_lsof, directory_of, options_of, pusher_of
from patchgate.git.repository import Repository, open_repository
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n"})
    return repo


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


@contextmanager
def working(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[int]:
    """Let a process work in a folder that reads like `git push`: a shell that waits for its input."""
    with subprocess.Popen(
        ["git", "-c", "echo; read x", *arguments, "push"],
        executable="/bin/sh",
        cwd=folder,
        env={"PATH": os.defpath, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        # Its arguments are there once it runs.
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


def test_a_worktree_of_this_repository_is_told_from_another_repository(repo: Repo, tmp_path: Path) -> None:
    repository = opened(repo)
    (repo.path / "folder").mkdir()
    repo.git("worktree", "add", "-q", "-b", "work", str(tmp_path / "linked"))
    linked = repo.at(tmp_path / "linked").ask("rev-parse", "--absolute-git-dir")
    repo.git("clone", "-q", ".", "inside")
    for folder, expected in (
        (repo.path, repository.git_dir),
        (repo.path / "folder", repository.git_dir),
        (repo.path / ".git", repository.git_dir),
        (tmp_path / "linked", linked),
        (repo.path / "inside", None),
    ):
        with working(folder) as process:
            found = pusher_of(repository, process)
        assert (found.git_dir if found is not None else None) == expected, folder


def test_what_the_process_was_told_of_its_repository_counts(repo: Repo, tmp_path: Path) -> None:
    repository = opened(repo)
    repo.git("clone", "-q", ".", "../other")
    here, other = str(repo.path / ".git"), str(tmp_path / "other/.git")
    for folder, arguments, env, is_here in (
        (tmp_path / "other", ("--git-dir", here), {}, True),
        (tmp_path / "other", (f"--git-dir={here}",), {}, True),
        (tmp_path / "other", (), {"GIT_DIR": here}, True),
        (tmp_path / "other", (), {"GIT_DIR": "../repo/.git"}, True),
        (tmp_path / "other", ("--git-dir", here), {"GIT_DIR": other}, True),
        (repo.path, ("--git-dir", other), {}, False),
        (repo.path, (), {"GIT_DIR": other}, False),
    ):
        with working(folder, *arguments, env=env) as process:
            assert (pusher_of(repository, process) is not None) is is_here, (folder, arguments, env)


def test_where_nobody_can_tell_it_counts_as_this_repository_s_own(repo: Repo, tmp_path: Path) -> None:
    repository = opened(repo)
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert pusher_of(repository, ended.pid) is repository
    gone = tmp_path / "gone"
    gone.mkdir()
    with working(gone) as process:
        gone.rmdir()
        assert pusher_of(repository, process) is repository


def test_a_push_that_no_process_above_makes_is_another_repository_s(repo: Repo) -> None:
    assert pusher_of(opened(repo), os.getpid()) is None


@pytest.mark.skipif(shutil.which("lsof") is None, reason="there is no lsof")
def test_without_proc_lsof_tells_where_a_process_works(tmp_path: Path) -> None:
    for name in ("plain", "with blanks", "n/x"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        with working(folder) as process:
            assert directory_by_lsof(process) == directory_of(process) == str(folder)


def test_the_options_before_the_command_are_read_with_their_last_values() -> None:
    words = ["git", "-C", "a", "--git-dir=x", "-p", "--git-dir", "y", "push", "--git-dir=z"]
    assert options_of(words) == {"-C": "a", "--git-dir": "y", "-p": ""}
    assert options_of(["git", "--git-dir"]) == {"--git-dir": ""}
