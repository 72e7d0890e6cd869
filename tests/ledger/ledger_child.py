"""A process of its own for the tests of the ledger: it writes events or receipts once it is told to.

`events COMMON NAME COUNT` and `receipts COMMON NAME COUNT`; before them perhaps `--most BYTES`, beyond which
no file of this process may grow (what a full disk does to a write). It says `ready`, waits for a line, and
prints one line for each: the warning, or nothing.
"""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys

from patchgate.ledger.ledger import Ledger
from patchgate.ledger.receipts import Receipts

Triple = tuple[str, str, str | None]


def receipt(name: str, number: int) -> Triple:
    """Make up one receipt; every id of it is its own."""
    commit, tree, parent = (hashlib.sha1(f"{name} {number} {part}".encode()).hexdigest() for part in "ctp")
    return commit, tree, parent if number else None


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start a child, up to its `ready`."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.ledger.ledger_child", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def finish(*children: subprocess.Popen[str]) -> list[list[str]]:
    """Let all of them write at once; give what each of them printed."""
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    printed = [child.communicate()[0].splitlines() for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return printed


def _act(what: str, common_dir: str, name: str, count: str) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        if what == "events":
            ledger = Ledger(common_dir, patience_seconds=60)
            warning = ledger.record("pushed", {"hook": name, "commits": number})
        else:
            warning = Receipts(common_dir).add([receipt(name, number)])
        print(warning or "", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "--most":
        most = int(arguments[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        arguments = arguments[2:]
    _act(*arguments)
