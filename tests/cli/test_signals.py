"""Signals that reach a process while git works for it: the right exit code, one sentence, nothing left over.

git is the real one behind a script that stops at a FIFO, so that each test knows where the process is.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.world import EXECUTABLE, Repo

# A test runner in the background may have SIGINT ignored, and a child would inherit that.
PLAINLY = """\
import os, signal, sys
signal.signal(int(sys.argv[1]), signal.SIG_DFL)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [
        (signal.SIGINT, 130, b"interrupted\n"),
        (signal.SIGTERM, 143, b"ended by a signal\n"),
        (signal.SIGHUP, 143, b"ended by a signal\n"),
    ],
)
def test_a_signal_ends_the_command_and_the_git_that_works_for_it(
    tmp_path: Path, number: signal.Signals, code: int, sentence: bytes
) -> None:
    """design 4: 130 for SIGINT, 143 for SIGTERM and SIGHUP."""
    repo = Repo.create(tmp_path)
    repo.stage({"a.py": "one\n"})
    before = repo.git("status", "--porcelain=v2")
    started, blocked = tmp_path / "started", tmp_path / "blocked"
    os.mkfifo(started)
    os.mkfifo(blocked)
    git = shutil.which("git", path=repo.env["PATH"])
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        "#!/bin/sh\n"
        # Once it was asked something, and not before, the process that asked waits for the answer.
        'case "$*" in *cat-file*)\n'
        f"    read question; echo here >'{started}'; read answer <'{blocked}' ;;\n"
        f'esac\nexec "{git}" "$@"\n',
        encoding="utf-8",
    )
    slow.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", PLAINLY, str(int(number)), EXECUTABLE, "check"],
        cwd=repo.path,
        env=repo.env | {"PATH": f"{slow.parent}:{repo.env['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process, open(started, "rb") as stream:
        assert stream.readline() == b"here\n"
        process.send_signal(number)
        out, err = process.communicate()
    # click ends the line on which a terminal shows ^C.
    assert (process.returncode, out, err.lstrip(b"\n")) == (code, b"", sentence)
    with pytest.raises(OSError, match="No such device") as nobody:
        os.close(os.open(blocked, os.O_WRONLY | os.O_NONBLOCK))
    assert nobody.value.errno == errno.ENXIO, "the child still waits"
    assert repo.git("status", "--porcelain=v2") == before
    assert not (repo.path / ".git" / "index.lock").exists()


def test_a_signal_that_a_library_turns_into_an_error_of_its_own_still_ends_us() -> None:
    """What is raised while pydantic builds a model comes out of it as a SchemaError."""
    program = (
        "import os, signal, sys\n"
        "from patchgate.cli import cli, program\n"
        "def call(arguments):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "    except BaseException:\n"
        "        raise ValueError from None\n"
        "cli.call = call\n"
        "sys.argv[1:] = ['check']\n"
        "program.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (143, b"ended by a signal\n")
