"""The shims where the machine fails them: what sh could not read or keep is never taken for nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.world import Repo

_POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'
_NO_ROOM = """#!/bin/bash
trap '' XFSZ
ulimit -f 0
export BASH_COMPAT=50
exec /bin/bash "$0.real" "$@"
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with hooks and a bad commit that no branch has, tagged."""
    made = Repo.create(tmp_path)
    made.policy(_POLICY)
    base = made.head()
    bad = made.commit({"runs/x": "1\n"}, "Bad")
    made.git("reset", "-q", "--hard", base)
    made.git("tag", "bad", bad)
    made.install()
    return made


def _has(repo: Repo, branch: str) -> bool:
    return repo.try_git("show-ref", "--verify", "--quiet", f"refs/heads/{branch}").returncode == 0


def _path_of_git_alone(repo: Repo, folder: Path) -> str:
    folder.mkdir()
    git = shutil.which("git", path=repo.env["PATH"])
    assert git is not None
    (folder / "git").symlink_to(git)
    return str(folder)


def _creating(repo: Repo, number: int, commit: str) -> bytes:
    good = repo.head()
    lines = [f"create refs/tags/t{each} {good}" for each in range(number)]
    return "\n".join([*lines, f"create refs/heads/new {commit}", ""]).encode()


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="there is no bash here")
def test_a_shell_that_has_no_room_for_a_here_document_lets_no_bad_commit_pass(repo: Repo) -> None:
    hook = repo.path / ".git" / "hooks" / "reference-transaction"
    hook.rename(hook.with_name(f"{hook.name}.real"))
    hook.write_text(_NO_ROOM, encoding="utf-8")
    hook.chmod(0o755)
    repo.try_git("update-ref", "refs/heads/new", "bad")
    assert not _has(repo, "new")


def test_a_long_transaction_is_judged_where_path_names_git_alone(repo: Repo, tmp_path: Path) -> None:
    bad = repo.ask("rev-parse", "bad")
    path = _path_of_git_alone(repo, tmp_path / "bin")
    repo.try_git("update-ref", "--stdin", stdin=_creating(repo, 20, bad), PATH=path)
    assert not _has(repo, "new")


def test_a_push_is_judged_where_path_names_git_alone(repo: Repo, tmp_path: Path) -> None:
    repo.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    repo.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    path = _path_of_git_alone(repo, tmp_path / "bin")
    repo.try_git("push", "-q", "origin", "bad^{commit}:refs/heads/new", PATH=path)
    remote = repo.at(tmp_path / "remote.git")
    assert not _has(remote, "new")


def test_where_there_is_room_and_a_path_the_same_is_refused(repo: Repo) -> None:
    done = repo.try_git("update-ref", "--stdin", stdin=_creating(repo, 20, repo.ask("rev-parse", "bad")))
    assert done.returncode != 0
    assert b"deny-prefix" in done.stderr
    done = repo.try_git("update-ref", "--stdin", stdin=_creating(repo, 20, repo.head()))
    assert done.returncode == 0
    assert _has(repo, "new")
