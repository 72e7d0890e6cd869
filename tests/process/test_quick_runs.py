"""Short programs of the fast path: nothing survives them, and whatever is not a plain end is an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: it reaps every child.
PROGRAM = """
import os, sys
from patchgate.process.quick_runs import QuickTask, run_all
tasks = [
    QuickTask("/bin/sh", [b"sh", b"-c", os.fsencode(text)], sys.argv[1], dict(os.environ), 1000)
    for text in sys.argv[3:]
]
try:
    run_all(tasks, float(sys.argv[2]))
except ValueError:
    print("handed on")
else:
    print([(task.code, task.output) for task in tasks])
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("alone")
print(os.getcwd())
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has what it needs")


def ran(folder: Path, *texts: str, seconds: float = 30.0) -> str:
    argv = [sys.executable, "-c", PROGRAM, str(folder), str(seconds), *texts]
    done = subprocess.run(argv, cwd=os.sep, capture_output=True, check=True, text=True)
    assert done.stdout.endswith("alone\n/\n")
    return done.stdout.partition("\n")[0]


def test_each_runs_in_its_folder_and_its_end_and_output_are_known(tmp_path: Path) -> None:
    said = ran(tmp_path, "pwd", "echo no; exit 3", "kill -9 $$", "echo error >&2; cat; exec >&- ; true")
    assert said == str([(0, os.fsencode(f"{tmp_path}\n")), (3, b"no\n"), (-9, b""), (0, b"")])


def test_it_is_in_a_session_of_its_own_without_our_files_or_a_core(tmp_path: Path) -> None:
    said = ran(
        tmp_path, 'ulimit -c; cut -d" " -f6 /proc/$$/stat >s; echo $$ >p; cmp s p; ls /proc/$$/fd; true'
    )
    # `ls` lists the shell's, which has one more while it reads a script or makes a pipe.
    assert said == str([(0, b"0\n0\n1\n2\n")])


def test_what_leaves_its_group_is_ended(tmp_path: Path) -> None:
    assert ran(tmp_path, "setsid sh -c 'echo $$ >pid; exec sleep 60' & while ! test -s pid; do :; done") == (
        str([(0, b"")])
    )
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(
    ("text", "seconds"), [("sleep 60", 0.1), ("exec >&-; sleep 60", 0.1), ("head -c 2000 /dev/zero", 30.0)]
)
def test_one_that_takes_too_long_or_says_too_much_is_ended_and_handed_on(
    tmp_path: Path, text: str, seconds: float
) -> None:
    assert ran(tmp_path, "true", text, seconds=seconds) == "handed on"
