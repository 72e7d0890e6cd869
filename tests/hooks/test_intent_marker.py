"""The marker of an intent: while it is there the shims recognise nothing, and patchgate is asked."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patchgate.intents import worktree_intents as intents
from patchgate.intents.intent_file import MARKER
from tests.hooks.fast.boring_world import HANDED_ON, RECOGNISED, Worlds
from tests.hooks.test_pending_protocol import Session
from tests.world import Repo

SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("worlds"))


def test_the_hooks_look_for_the_file_that_is_written() -> None:
    assert intents.MARKER == MARKER


@pytest.mark.parametrize("shell", SHELLS)
def test_pre_commit_recognises_nothing_while_a_marker_is_there(worlds: Worlds, shell: str) -> None:
    world = worlds()
    world.repo.stage({"a": "2\n"})
    assert world.hook(shell).returncode == RECOGNISED
    (world.git_dir / MARKER).touch()
    assert world.hook(shell).returncode == HANDED_ON
    (world.git_dir / MARKER).unlink()
    assert world.hook(shell).returncode == RECOGNISED


def test_a_marker_of_another_worktree_is_none(worlds: Worlds, tmp_path: Path) -> None:
    world = worlds()
    world.repo.git(
        "-c", "core.hooksPath=/dev/null", "worktree", "add", "-q", "-b", "side", str(tmp_path / "side")
    )
    beside = world.beside(tmp_path / "side")
    (world.git_dir / MARKER).touch()
    beside.repo.stage({"a": "2\n"})
    assert beside.hook().returncode == RECOGNISED
    (beside.git_dir / MARKER).touch()
    assert beside.hook().returncode == HANDED_ON


def test_the_transaction_judges_what_pre_commit_has_judged(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.repo.stage({"a": "2\n"})
    session.leave()
    # As after a kill between the marker and the intent.
    (session.git_dir / MARKER).touch()
    session.commit()
    assert session.recorder.asked == ["reference-transaction prepared"]
    assert session.receipts == ""
    (session.git_dir / MARKER).unlink()
    session.recorder.forget()
    session.repo.stage({"a": "3\n"})
    session.leave()
    session.commit()
    assert session.recorder.asked == []


@pytest.mark.parametrize("shell", SHELLS)
def test_commit_msg_asks_for_the_dullest_message(tmp_path: Path, shell: str) -> None:
    session = Session(tmp_path)
    message = session.repo.path / "message"
    message.write_text("Change a\n")
    hook = session.git_dir / "hooks/commit-msg"
    (session.git_dir / "patchgate").mkdir(exist_ok=True)
    version = session.repo.run("--version").out.split()[-1]
    (session.git_dir / "patchgate-quiet").write_text(f"{version}\n")

    def run() -> list[str]:
        session.recorder.forget()
        subprocess.run([shell, hook, str(message)], cwd=session.repo.path, env=session.repo.env, check=True)
        return session.recorder.asked

    assert run() == []
    (session.git_dir / MARKER).touch()
    assert run() == [f"commit-msg {message}"]


def test_a_worktree_without_a_marker_reads_nothing_of_intents(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n"}, "First")
    repo.stage({"a": "2\n"})
    oid = repo.ask("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Second")
    code = (
        "import os, sys;"
        "from patchgate.git.repository import open_repository;"
        "from patchgate.hooks.pre_commit import judge_commit;"
        "from patchgate.hooks.reference_transaction import judge_transaction;"
        "repository = open_repository(os.environ, '.');"
        "assert not judge_commit(repository, 'pre-commit', os.environ).stops;"
        f"line = b'{'0' * 40} {oid} refs/heads/main\\n';"
        "assert not judge_transaction(repository, line, lambda: '', lambda: '').stops;"
        "print([name for name in sys.modules if 'intent' in name or name == 'patchgate.intents.scope'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo.path, env=repo.env, capture_output=True, check=False
    )
    assert done.stdout.decode().strip() == ("['patchgate.intents', 'patchgate.intents.worktree_intents']"), (
        done.stderr.decode()
    )
