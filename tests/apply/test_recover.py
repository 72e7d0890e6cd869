"""What a killed apply leaves: told by check, settled by recover or by the next command that writes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_signals import PLAINLY
from tests.proposals import ABC, addition, change_of, deletion
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

ROOT = Path(__file__).parents[2]
PATCH = change_of() + addition(b"new/h") + deletion(b"gone")

# Applies in a process of its own that is killed at the step of a number (`durable` counts them).
KILLED = """\
import os, sys
from tests.faults import Faults
from patchgate.git.repository import open_repository
from patchgate.check.policy_lookup import CheckOptions
from patchgate.apply.apply import apply
from patchgate.apply.apply_run import ApplyEnvironment, ApplyRequest
place = ApplyEnvironment(dict(os.environ), sys.argv[1], faults=Faults.parse(sys.argv[2]))
request = ApplyRequest(sys.stdin.buffer.read(), CheckOptions())
report = apply(open_repository(os.environ, os.getcwd()), request, place)
print(place.faults.steps)
"""


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "gone": "x\n"})
    return made


def run_apply(repo: Repo, plan: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(repo.path.parent / "cache"), plan],
        input=PATCH,
        cwd=repo.path,
        env=repo.env | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )


def count_steps(repo: Repo) -> int:
    """Count the steps of an apply that goes well, in a copy."""
    copy = repo.at(repo.path.parent / "copy")
    shutil.copytree(repo.path, copy.path)
    return int(run_apply(copy, "").stdout)


def killed_at(repo: Repo, step: int) -> int:
    return run_apply(repo, f"{step}:kill").returncode


def state(repo: Repo) -> str:
    """Say whether all is old or all is new; anything else fails."""
    files = {
        name: (repo.path / name).read_text() if (repo.path / name).exists() else None
        for name in ("f", "new/h", "gone")
    }
    old = {"f": ABC, "new/h": None, "gone": "x\n"}
    new = {"f": "a\nB\nc\n", "new/h": "x\n", "gone": None}
    assert files in (old, new)
    assert not list(repo.path.rglob(".patchgate-*"))
    assert not (repo.path / ".git/index.lock").exists()
    assert (repo.path / "new").exists() is (files == new)
    return "old" if files == old else "new"


def leave_half_done(repo: Repo) -> None:
    """Find a step at which a kill leaves the files half done, and leave them so."""
    total = count_steps(repo)
    for step in range(total // 2, total, 2):
        assert killed_at(repo, step) == -signal.SIGKILL
        if (repo.path / "f").read_text() != ABC:
            return
        assert repo.run("recover").code == 0
    raise AssertionError("no kill left anything")


def test_a_killed_apply_is_told_by_check_and_undone_by_recover(repo: Repo) -> None:
    leave_half_done(repo)
    (warning,) = repo.check().report["warnings"]
    assert "git patchgate recover" in warning
    done = repo.run("recover")
    assert (done.code, done.out.endswith(" is undone\n")) == (0, True)
    assert state(repo) == "old"
    assert repo.run("recover").out == "nothing to recover\n"
    assert repo.check().report["warnings"] == []
    assert "undone" in repo.run("log", "--verbose").out


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "arguments", [("apply", "-"), ("install",), ("init", "--yes"), ("attempts", "prune")]
)
def test_the_next_command_that_writes_settles_it_first(repo: Repo, arguments: tuple[str, ...]) -> None:
    leave_half_done(repo)
    done = repo.run(*arguments, stdin=PATCH)
    assert done.code == 0, done.err
    assert "is undone" in done.err
    assert state(repo) == ("new" if arguments[0] == "apply" else "old")


def test_what_had_landed_is_finished_recorded_and_known_as_a_duplicate(repo: Repo) -> None:
    """E17: it survives the process that was killed before it could record it."""
    total = count_steps(repo)
    for step in range(total, total // 2, -1):
        copy = repo.at(repo.path.parent / f"copy-{step}")
        shutil.copytree(repo.path, copy.path)
        assert killed_at(copy, step) == -signal.SIGKILL
        # Its last steps are taken after it was recorded.
        if not copy.run("attempts", "list").out.count("applied"):
            break
    done = copy.run("recover")
    assert (done.code, "now recorded" in done.out) == (0, True)
    assert state(copy) == "new"
    repo = copy
    (applied,) = [line for line in repo.run("attempts", "list").out.splitlines() if "applied" in line]
    again = repo.run("apply", "-", "--format", "json", stdin=PATCH)
    assert again.errors == ["duplicate-patch"]
    assert applied.split()[0] in again.findings[0]["message"]


def test_a_file_that_a_person_wrote_since_is_never_overwritten(repo: Repo) -> None:
    leave_half_done(repo)
    repo.write("f", "a person's\n")
    stuck = repo.run("recover")
    assert (stuck.code, "f" in stuck.err, "--keep" in stuck.err) == (3, True, True)
    assert (repo.path / "f").read_text() == "a person's\n"
    assert repo.run("apply", "-", stdin=PATCH).code == 3
    kept = repo.run("recover", "--keep")
    assert (kept.code, "unchanged: f" in kept.out) == (0, True)
    assert (repo.path / "f").read_text() == "a person's\n"
    assert (repo.path / "gone").read_text() == "x\n"
    assert not (repo.path / "new").exists()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_while_a_command_runs_ends_it_and_writes_nothing(
    repo: Repo, number: signal.Signals, code: int
) -> None:
    """design 4: 130 for SIGINT, 143 for SIGTERM and SIGHUP."""
    told = repo.path.parent / "told"
    os.mkfifo(told)
    repo.policy(f'[commands.t]\nkind = "test"\ncommand = ["sh", "-c", "echo >{told}; exec sleep 600.25"]\n')
    process = subprocess.Popen(
        [sys.executable, "-c", PLAINLY, str(int(number)), EXECUTABLE, "apply", "-"],
        cwd=repo.path,
        env=repo.env,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(PATCH)
    process.stdin.close()
    process.stdin = None
    told.read_text()
    process.send_signal(number)
    process.communicate()
    assert process.returncode == code
    assert state(repo) == "old"
    assert subprocess.run(["pgrep", "-f", "sleep 600.25"], stdout=subprocess.PIPE, check=False).stdout == b""
    assert "interrupted" in repo.run("attempts", "list").out
