"""Odd changes at four doors: a commit with its hooks, the full tier, pre-receive, and `--policy-from`.

    python -m tests.sessions.four_doors --changes 2000 [--seed N] [--only CHANGE]

Each change gets one verdict at every door, and none that the oracle of `odd_changes` forbids is accepted. The
fast path is a real `git commit` with the installed hooks, of a sample of what an index can hold.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from patchgate.check.commits import check_revision
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import PatchgateError
from patchgate.git.repository import open_repository
from patchgate.hooks.pre_receive import judge_receive
from patchgate.report.verdict import Report
from tests.sessions.odd_changes import Odd, made_in
from tests.world import Repo

MAIN = "refs/heads/main"
SEED = 18
_EXITS = {0: "accepted", 1: "rejected", 3: "undecided"}


@dataclass
class Tried:
    """What was tried: verdicts by door, what was done, how many the oracle forbids, and what went wrong."""

    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    forbidden: int = 0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        doors = sorted({door for door, _ in self.verdicts})
        rows = (
            f"{door}: " + ", ".join(f"{self.verdicts[door, said]:,} {said}" for said in _EXITS.values())
            for door in doors
        )
        return "; ".join([*rows, f"{self.forbidden:,} forbidden, {len(self.failures)} failures"])


class Doors:
    """A server's repository and a developer's, over the same objects, and what each door says of a change."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._repo = Repo.create(folder)
        self._git_dir = self._repo.path / ".git"
        self.maker = made_in(self._git_dir, random.Random(seed))
        self._repo.git("update-ref", MAIN, self.maker.base)
        self._repo.git("update-ref", "refs/remotes/origin/main", self.maker.base)
        self._repo.git("read-tree", MAIN)
        self._repo.install()
        self._server = self._repo.at(folder / "server.git")
        self._server.path.mkdir()
        self._server.git("init", "-q", "--bare", "-b", "main")
        alternates = self._server.path / "objects" / "info" / "alternates"
        alternates.write_text(f"{self._git_dir / 'objects'}\n")
        self._server.git("update-ref", MAIN, self.maker.base)
        self._opened = open_repository(self._repo.env, str(self._repo.path))
        self._received = open_repository(self._server.env, str(self._server.path))

    def verdicts(self, change: Odd, *, staged: bool) -> dict[str, str]:
        """Say what each door says of one change."""
        base = self.maker.base
        line = f"{base} {change.tip} {MAIN}\n".encode()
        found = {
            "pre-receive": _said(lambda: judge_receive(self._received, line)),
            "--policy-from": self._checked(f"{base}..{change.tip}", CheckOptions(policy_from=MAIN)),
        }
        if change.is_single:
            found["full tier"] = self._checked(change.tip, CheckOptions())
            if staged and (hook := self._hooked(change)) is not None:
                found["fast path"] = hook
        elif "change_policy" not in change.done:
            # Here each commit is judged by its parent's policy, which is the same as long as none changes it.
            found["full tier"] = self._checked(f"{base}..{change.tip}", CheckOptions())
        return found

    def _checked(self, revision: str, asked: CheckOptions) -> str:
        return _said(lambda: check_revision(self._opened, revision, asked))

    def _hooked(self, change: Odd) -> str | None:
        """Let git commit the change with the real hooks; None where an index makes another tree of it."""
        index = str(self._git_dir / "odd-index")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(index)
        tree = f"{change.tip}^{{tree}}"
        if self._repo.try_git("read-tree", tree, GIT_INDEX_FILE=index).returncode != 0:
            return None
        done = self._repo.try_git("commit", "-q", "--allow-empty", "-m", "Change", GIT_INDEX_FILE=index)
        if done.returncode != 0:
            return "rejected"
        made = self._repo.ask("rev-parse", "HEAD^{tree}")
        self._repo.git("update-ref", MAIN, self.maker.base)
        return "accepted" if made == self.maker.trees[change.tip] else None


def _said(judge: Callable[[], Report]) -> str:
    """Give a verdict as its word; what could not be judged is undecided, as the exit code says."""
    try:
        return judge().verdict.value
    except PatchgateError as error:
        return _EXITS[error.exit_code]


def problem(change: Odd, verdicts: dict[str, str]) -> str | None:
    """Say what is wrong with the verdicts on a change."""
    accepted = sorted(door for door, said in verdicts.items() if said == "accepted")
    if change.forbidden and accepted:
        return f"accepted at {accepted}, though {change.forbidden}"
    if accepted and len(accepted) < len(verdicts):
        return f"not the same at every door: {verdicts}"
    return None


def try_many(seed: int, count: int, *, every: int = 1, only: int | None = None) -> Tried:
    """Try `count` changes; one in `every` that can be staged is committed with the real hooks as well."""
    tried = Tried()
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        doors = Doors(Path(folder), seed)
        for number in range(count):
            change = doors.maker.make()
            if only not in {None, number}:
                continue
            verdicts = doors.verdicts(change, staged=number % every == 0)
            tried.verdicts.update(verdicts.items())
            tried.done.update(change.done)
            tried.forbidden += change.forbidden is not None
            if (wrong := problem(change, verdicts)) is not None:
                tried.failures.append(f"--seed {seed} --only {number}: {', '.join(change.done)}: {wrong}")
                print(tried.failures[-1], file=sys.stderr, flush=True)
    return tried


def main() -> int:
    """Try as many changes as are asked for, and say what was seen."""
    reader = argparse.ArgumentParser(prog="python -m tests.sessions.four_doors")
    reader.add_argument("--changes", type=int, default=2000)
    reader.add_argument("--seed", type=int, default=SEED)
    reader.add_argument("--only", type=int, help="try this one change")
    options = reader.parse_args()
    tried = try_many(options.seed, options.changes, only=options.only)
    print(tried)
    print(dict(tried.done.most_common()))
    return 1 if tried.failures else 0


if __name__ == "__main__":
    sys.exit(main())
