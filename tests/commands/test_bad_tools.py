"""Tools that behave badly, in a repository in any state: nothing of it changes, and a sentence says why."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.amount import sample
from tests.apply.fix_world import make, mess_up
from tests.apply.test_fix_states import copied
from tests.command_world import Tools, tool
from tests.commands.test_change_commands import times_of
from tests.crash.disks import why_no_mount
from tests.sessions.test_faults import everything
from tests.world import EXECUTABLE, Repo

STATES = 500
pytestmark = pytest.mark.turns(6)

# What a tool does in its tree. None of it is allowed to reach the repository.
DEEDS = (
    "true",
    "exit 1",
    'for each; do echo changed >>"$each"; done',
    "rm -rf -- * .[a-z]*; echo new >new.py",
    'rm -rf "$PWD"',
    "git add -A; git commit -qm x; git stash -u; git reset -q --hard; git clean -qfdx; true",
    "kill -9 $$",
    "find . -type f -exec touch -d 2001-01-01 {} +",
    "chmod -R 0 . ; true",
    "ln -sf /nonexistent src/f0.py; mv src moved; true",
    'cd "$(git rev-parse --git-dir)" && rm -rf ./*; true',
    "(setsid sh -c 'sleep 0.05; echo late >late' &) ; exit 0",
)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The repository that each state begins from; its tool runs a script beside the repository."""
    folder = tmp_path_factory.mktemp("origin")
    return make(folder, tool("x", 'sh "$DEED" "$@"'))


@pytest.mark.parametrize("number", sample(STATES, 8, "commit"))
def test_a_commit_hook_changes_nothing_in_any_dirty_state(origin: Repo, tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    dirty = copied(origin, tmp_path / "repo")
    deed = tmp_path / "deed"
    deed.write_text("\n".join(chance.sample(DEEDS, chance.choice([1, 1, 2]))), encoding="utf-8")
    repo = Tools(dirty.path, {**dirty.env, "RUNS": str(tmp_path / "runs"), "DEED": str(deed)})
    repo.allow()
    mess_up(repo, chance)
    if chance.random() < 0.2:
        # Not with an intent to add.
        repo.try_git("-c", "user.name=a", "-c", "user.email=a@b.invalid", "stash", "push", "-q")
        mess_up(repo, chance)
    before, times = everything(repo), times_of(repo)
    hook = subprocess.Popen(
        [EXECUTABLE, "hook", "pre-commit"], cwd=repo.path, env=repo.env, stderr=subprocess.PIPE
    )
    is_killed = chance.random() < 0.3
    if is_killed:
        # Somewhere between its start and its end.
        for _ in range(chance.randrange(20_000)):
            os.sched_yield()
        hook.send_signal(chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
    _, said = hook.communicate(timeout=60)
    assert everything(repo) == before
    assert times_of(repo) == times
    # While it starts, Python itself answers an interrupt.
    assert b"Traceback" not in said or b"\nKeyboardInterrupt" in said
    assert is_killed or hook.returncode in {0, 1, 3}


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_tool_may_write_a_gigabyte_and_its_log_is_bounded(tmp_path: Path, stream: str) -> None:
    repo = Tools.with_commands(
        tmp_path, tool("x", f"head -c 1000000000 /dev/zero >&{stream}; exit 1"), {"a": "1\n"}
    )
    repo.stage({"a": "2\n"})
    before = everything(repo)
    answer = repo.pre_commit()
    assert answer.code == 1
    assert "exit code 1" in answer.out
    assert everything(repo) == before
    assert sum(each.stat().st_size for each in tmp_path.rglob("*.log")) < 200 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(why_no_mount() is not None, reason="only root can mount a small disk")
@pytest.mark.parametrize("free", [0, 4096, 65_536, 300_000])
def test_on_a_full_disk_a_commit_is_not_accepted_and_all_is_as_it_was(small_disk: Path, free: int) -> None:
    text = tool("x", "dd if=/dev/zero of=made bs=1M count=1 2>/dev/null")
    repo = Tools.with_commands(small_disk, text, {f"src/{number}": "x\n" * 9000 for number in range(4)})
    repo.env["XDG_CACHE_HOME"] = str(small_disk / "cache")
    repo.stage({f"src/{number}": "y\n" * 9000 for number in range(4)})
    before, times = everything(repo), times_of(repo)
    ballast = small_disk / "ballast"
    stat = os.statvfs(small_disk)
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(stat.f_bavail * stat.f_frsize - free, 1))
    answer = repo.cli("hook", "pre-commit", cwd=None, TMPDIR=str(small_disk))
    # The tool itself had no room, or patchgate had none.
    assert answer.code in {1, 3}
    assert "Traceback" not in answer.err
    ballast.unlink()
    assert everything(repo) == before
    assert times_of(repo) == times
    assert repo.cli("hook", "pre-commit", cwd=None, TMPDIR=str(small_disk)).code == 0
