"""A process of its own for the tests of `durable`: one action, in step with its parent over pipes.

Run as a program it says `ready`, waits for a line, acts, and says `done`. `hold` says `ready` once it has
the lock, and gives it back after the line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import patchgate
from patchgate.storage import hash_chain
from patchgate.storage.atomic_write import write_atomically
from patchgate.storage.lock import acquire
from patchgate.storage.record import Json
from tests.faults import Faults


class Child:
    """A child process that runs this file with the given arguments, up to its `ready`."""

    def __init__(self, *arguments: str | Path) -> None:
        root = str(Path(patchgate.__file__).resolve().parents[1])
        self.process = subprocess.Popen(
            [sys.executable, __file__, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )
        assert self.hear() == "ready"

    @property
    def pid(self) -> int:
        return self.process.pid

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Wait for the end and return the exit status, negative for a signal."""
        self.process.communicate()
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.end()


def run(*arguments: str | Path) -> int:
    """Let a child act at once; return its exit status."""
    child = Child(*arguments)
    child.tell()
    return child.end()


def _act(action: str, path: Path, *rest: str) -> None:
    if action == "hold":
        with acquire(path, timeout_seconds=0):
            _in_step()
        return
    _in_step()
    if action == "write":
        content, exist_ok, plan = rest
        write_atomically(path, content.encode(), exist_ok=exist_ok == "replace", faults=Faults.parse(plan))
    elif action == "append":
        name, count, plan = rest
        faults = Faults.parse(plan)
        for number in range(int(count)):
            event: dict[str, Json] = {"writer": name, "number": number}
            with_head = path.name == "headed"
            hash_chain.append(path, event, timeout_seconds=60, with_head=with_head, faults=faults)


def _in_step() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    _act(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
    print("done", flush=True)
