"""At a push: commands run on the tip of each ref or on each new commit, and so does what was skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.check.push_commands import read_skipped
from tests.command_world import Tools, tool
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

SEEN = 'printf "%s\\n" "$0 $*" >>"$RUNS"'


def pushing(tmp_path: Path, policy: str) -> Tools:
    """Make a repository with hooks and a server that has its first commit."""
    repo = Tools.with_commands(tmp_path, policy, {"a": "0\n"})
    server = Repo.create(tmp_path / "server", "--bare")
    repo.git("remote", "add", "origin", str(server.path))
    repo.git("push", "-q", "origin", "main")
    assert repo.install().code == 0
    return repo


def commit(repo: Tools, content: str, only: str | None = None) -> None:
    """Commit; `only` is what PATCHGATE_SKIP_ONLY says."""
    repo.stage({"a": content})
    skipped = {} if only is None else {"PATCHGATE_SKIP_ONLY": only}
    Tools(repo.path, {**repo.env, **skipped}).git("commit", "-qm", f"Change a to {content.strip()}")


def test_the_tip_of_a_push_is_run_and_refused_as_a_commit_is(tmp_path: Path) -> None:
    repo = pushing(tmp_path, tool("x", f'{SEEN}; ! grep bad "$1"', on='["push"]'))
    commit(repo, "bad\n")
    commit(repo, "worse\n")
    assert repo.runs == []
    repo.git("push", "-q", "origin", "main")
    assert repo.runs == ["x ./a"]
    commit(repo, "bad again\n")
    done = repo.try_git("push", "origin", "main")
    assert done.returncode != 0
    assert b"lint-failed" in done.stdout + done.stderr
    assert repo.ask("ls-remote", "origin", "main").split()[0] != repo.head()


def test_each_new_commit_is_run_if_the_command_says_so(tmp_path: Path) -> None:
    repo = pushing(tmp_path, tool("x", 'cat "$1" >>"$RUNS"', on='["push"]', more="each_commit = true\n"))
    commit(repo, "1\n")
    commit(repo, "2\n")
    repo.git("push", "-q", "origin", "main")
    assert repo.runs == ["1", "2"]


def test_what_the_commit_accepted_is_remembered_at_the_push(tmp_path: Path) -> None:
    repo = pushing(tmp_path, tool("x", SEEN, on='["commit", "push"]'))
    commit(repo, "1\n")
    repo.git("push", "-q", "origin", "main")
    assert repo.runs == ["x ./a"]


def test_what_a_commit_skipped_runs_at_the_push_until_it_passes(tmp_path: Path) -> None:
    repo = pushing(tmp_path, tool("x", f'{SEEN}; ! grep -q bad "$1"') + tool("y", SEEN))
    commit(repo, "bad\n", only="x: the linter is broken today")
    assert (repo.runs, read_skipped(repo.common_dir)) == (["y ./a"], ("x",))
    assert repo.try_git("push", "origin", "main").returncode != 0
    assert read_skipped(repo.common_dir) == ("x",)
    commit(repo, "good\n")
    repo.git("push", "-q", "origin", "main")
    assert repo.runs[:2] == ["y ./a", "x ./a"]
    assert sorted(repo.runs[2:]) == ["x ./a", "y ./a"]
    assert read_skipped(repo.common_dir) == ()


def test_a_commit_that_skipped_all_hooks_is_run_at_the_push(tmp_path: Path) -> None:
    repo = pushing(tmp_path, tool("x", SEEN))
    repo.stage({"a": "1\n"})
    skipping = Tools(repo.path, {**repo.env, "PATCHGATE_SKIP": "the linter is broken today"})
    skipping.git("commit", "-qm", "Change a to one")
    assert repo.runs == []
    repo.try_git("push", "origin", "main")
    assert repo.runs == ["x ./a"]


def test_a_stranger_s_command_does_not_run_at_a_push(tmp_path: Path) -> None:
    repo = pushing(tmp_path, tool("x", "true", on='["push"]'))
    Path(repo.common_dir, "patchgate", "allowed-commands.json").unlink()
    repo.git("commit", "-q", "--allow-empty", "-m", "Say nothing at all")
    commit(repo, "1\n")
    # The default branch of the remote has it.
    repo.git("push", "-q", "origin", "main")
    repo.commit({"patchgate.toml": tool("x", SEEN, on='["push"]')})
    repo.git("push", "-q", "origin", "main:other")
    commit(repo, "2\n")
    done = repo.try_git("push", "origin", "main:other")
    assert done.returncode != 0
    assert b"command-not-trusted" in done.stdout + done.stderr
    assert repo.runs == []
