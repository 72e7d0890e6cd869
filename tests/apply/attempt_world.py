"""Attempts for the tests: records as `apply` makes them, evidence as it keeps it; and a process that does so.

As a program: `COMMON RUN_DIR PLAN CANDIDATE_BYTES` opens the evidence of one attempt under a plan of faults
(`5:kill`), perhaps after `--most BYTES`, beyond which no file of the process may grow, or `--nobody`, after
which it is no longer root. It says the attempt's id, or what went wrong.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from patchgate.apply.attempt_records import AttemptRecord, TouchedFile
from patchgate.apply.evidence import Evidence, open_evidence
from patchgate.errors import PatchgateError
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.ledger.masking import Masks
from patchgate.storage.filesystem import FaultPoints
from tests.faults import Faults

CANDIDATE = b"diff --git a/a b/a\n\x00\xff\r\nno newline at the end"
AT = "2023-11-14T22:13:20Z"


def touched(name: bytes | str = "src/a.py", old: str | None = "a", new: str | None = "b") -> TouchedFile:
    """Make a touched file; the sides are digits, of which the object ids consist."""
    raw = name.encode() if isinstance(name, str) else name
    sides = [None if digit is None else Entry("100644", digit * 40) for digit in (old, new)]
    return TouchedFile(RepoPath.from_git(raw), sides[0], sides[1])


def attempt(name: str = "a-7f3a", **other: Any) -> AttemptRecord:
    """Make the record of an attempt that was refused, the first of its chain."""
    made = AttemptRecord(
        name,
        chain=name,
        retry_of=None,
        number=1,
        verdict="rejected",
        applied=False,
        counts=True,
        dry_run=False,
        kind="patch",
        patch_sha256="sha256:" + hashlib.sha256(CANDIDATE).hexdigest(),
        patch_id="f" * 40,
        base="1" * 40,
        after="2" * 40,
        policy="sha256:" + "5" * 64,
        stage="policy",
        code="PATCH_POLICY_DENY",
        rules=("deny-prefix",),
        n_hunks=1,
        added_lines=3,
        removed_lines=1,
        files=(touched(),),
        dir=None,
        work_tree="/home/you/tree",
    )
    return replace(made, **other)


def chances(*values: str) -> Callable[[int], bytes]:
    """Make a source of randomness of which the digits are known, then of real ones."""
    left = list(values)

    def chance(size: int) -> bytes:
        if left:
            given = bytes.fromhex(left.pop(0))
            assert len(given) == size
            return given
        return os.urandom(size)

    return chance


def opened(
    common: Path,
    candidate: bytes = CANDIDATE,
    *,
    chance: Callable[[int], bytes] = os.urandom,
    run_dir: Path | None = None,
    masks: Masks | None = None,
    faults: FaultPoints | None = None,
    known: frozenset[str] = frozenset(),
    at: str = AT,
) -> Evidence:
    """Open the evidence of an attempt, as `apply` does."""
    return open_evidence(
        str(common),
        candidate,
        chance=chance,
        is_known=known.__contains__,
        at=at,
        about={"kind": "patch", "patch_sha256": "sha256:0", "chain": None, "retry_of": None},
        run_dir=None if run_dir is None else str(run_dir),
        masks=masks,
        faults=faults,
    )


def child(
    common: Path, *, options: tuple[str, ...] = (), run_dir: str = "", plan: str = "", size: int = 50
) -> str:
    """Open the evidence in a process of its own; give what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.apply.attempt_world", *options, str(common), run_dir, plan, str(size)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def _act(arguments: list[str]) -> None:
    while arguments[0].startswith("--"):
        if arguments[0] == "--most":
            most = int(arguments[1])
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            arguments = arguments[2:]
        else:
            if os.getuid() == 0:
                os.setuid(65534)
            arguments = arguments[1:]
    common, run_dir, plan, size = arguments
    try:
        with opened(
            Path(common),
            b"x" * int(size),
            run_dir=Path(run_dir) if run_dir else None,
            faults=Faults.parse(plan),
        ) as evidence:
            print(evidence.id)
    except PatchgateError as error:
        print(f"{error.kind}: {error.message}")


if __name__ == "__main__":
    _act(sys.argv[1:])
