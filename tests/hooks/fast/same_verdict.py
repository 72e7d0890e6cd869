"""Whatever the fast path accepts, the full tier accepts, with nothing to say and the same pending receipt.

    python -m tests.hooks.fast.same_verdict --changes 1000000 [--seed N] [--jobs 2] [--only BATCH]

Random changes under random policies, in batches: one repository with one policy, and many children of one
commit. The full tier judges them as a range; the recogniser, in this process, gets the very bytes that git
answers to what hooks/pre-commit asks. Only pipes are replaced: one diff-tree and one cat-file answer for all
changes of a batch, where a hook starts its own. HEAD is published, so that no receipts are asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

from patchgate import __version__
from patchgate.check.commits import judge_commits
from patchgate.check.pending import leave_pending, raw_diff
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.commit_lists import list_commits
from patchgate.git.repository import open_repository
from patchgate.hooks.fast import recognise
from patchgate.hooks.fast.cache_files import place_of
from patchgate.hooks.fast.renewal import renew_all
from patchgate.report.verdict import ChangeVerdict, Verdict
from tests.hooks.fast.random_changes import Near, attributes, random_tree, stream
from tests.hooks.fast.random_policies import Chance, random_root
from tests.hooks.fast.relay import Asking, Relay
from tests.world import pinned_environment

BRANCH = "refs/heads/main"
AT_ONCE = 1000
# What a config may say of diffs, and plumbing must not hear.
_CONFIG = (
    "diff.noprefix=true",
    "diff.mnemonicPrefix=true",
    "diff.renames=copies",
    "diff.algorithm=histogram",
    "diff.context=9",
    "diff.interHunkContext=9",
    "diff.suppressBlankEmpty=true",
    "diff.orderFile=src/main.py",
    "diff.external=false",
    "diff.odd.binary=true",
    "diff.odd.textconv=false",
    "diff.odd.xfuncname=^(.*)$",
    "diff.ignoreSubmodules=all",
    "diff.submodule=log",
    "diff.colorMoved=zebra",
    "diff.wsErrorHighlight=all",
    "diff.relative=true",
    "color.ui=always",
    "core.quotePath=false",
    "core.ignoreCase=true",
    "core.precomposeUnicode=true",
    "core.autocrlf=true",
    "core.abbrev=4",
    "core.attributesFile=.gitattributes",
    "core.bigFileThreshold=1k",
)


class DifferenceError(AssertionError):
    """The fast path accepted what the full tier does not, or left another receipt."""


@dataclass
class Counts:
    """What was tried: changes in all, how many the full tier passes in silence, how many were recognised.

    The same of ordinary changes under ordinary policies. `compared` were staged for the hook's diff-index;
    `why` counts the lines of the recogniser that handed a change on.
    """

    changes: int = 0
    silent: int = 0
    recognised: int = 0
    ordinary_silent: int = 0
    ordinary_recognised: int = 0
    compared: int = 0
    why: Counter[int] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add what another batch tried."""
        for name in ("changes", "silent", "recognised", "ordinary_silent", "ordinary_recognised", "compared"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.why += other.why

    def __str__(self) -> str:
        return (
            f"{self.changes:,} changes: {self.silent:,} accepted in silence, {self.recognised:,} recognised; "
            f"ordinary ones: {self.ordinary_silent:,}, {self.ordinary_recognised:,}; "
            f"{self.compared:,} held against a real index"
        )


def try_batch(seed: int, number: int, count: int) -> Counts:
    """Try `count` random changes under one random policy; the same numbers try the same."""
    chance = random.Random(f"{seed}/{number}")
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        return Batch(chance, Path(folder), count).try_all()


class Batch:
    """One repository with one policy, and many changes of one commit."""

    def __init__(self, chance: Chance, folder: Path, count: int) -> None:
        self._chance = chance
        self._env = pinned_environment(folder / "home")
        self._place = folder / "repo"
        root = random_root(chance)
        self._is_ordinary = root.is_ordinary
        kind = "sha256" if chance.random() < 0.1 else "sha1"
        self._git("init", "-q", "-b", "main", f"--object-format={kind}", str(self._place), cwd=folder)
        self._text = b"".join(content for _, content in root.files.values()).decode()
        tree = random_tree(chance, root.files, kind)
        if chance.random() < 0.15:
            (self._place / ".git" / "info" / "attributes").write_bytes(attributes(chance, tree))
        lines = stream(chance, tree, Near.to(self._text), count, git_like=takes_git_like())
        quick = ("-c", "core.compression=0", "fast-import", "--quiet", "--depth=0")
        self._git(*quick, "--export-marks=marks", stdin=b"".join(lines))
        marks = dict(line.split() for line in (self._place / "marks").read_bytes().splitlines())
        self._base = marks[b":1"].decode()
        self._made = [marks[b":%d" % mark].decode() for mark in range(2, count + 2)]
        for ref in (BRANCH, "refs/remotes/origin/main"):
            self._git("update-ref", ref, self._base)
        self._git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        self._git("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "read-tree", self._base)
        if chance.random() < 0.3:
            for setting in chance.sample(_CONFIG, 6):
                self._git("config", *setting.split("=", 1))
        self._repository = open_repository(self._env, str(self._place))
        self._asking = Asking(self._repository, self._env)

    def _git(self, *arguments: str, stdin: bytes = b"", cwd: Path | None = None) -> bytes:
        asked = ["git", *arguments]
        done = subprocess.run(
            asked, input=stdin, cwd=cwd or self._place, env=self._env, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout

    def try_all(self) -> Counts:
        """Let both judge each change; hold them against each other."""
        os.makedirs(place_of(self._repository.common_dir), mode=0o700)
        prepared = renew_all(self._repository)
        assert prepared.has_copy, prepared.warning
        given = "".join(f"{oid}\n" for oid in self._made).encode()
        commits = list_commits(self._repository, "--no-walk=unsorted", "--stdin", stdin=given)
        assert [commit.oid for commit in commits] == self._made
        report = judge_commits(self._repository, commits, CheckOptions())
        assert report.warnings == self._repository.limits
        counts = Counts()
        sections = self._sections()
        relay = Relay(self._asking, self._repository.git_dir)
        with (
            contextlib.closing(relay),
            mock.patch.multiple(recognise, ask=relay.ask, listen=relay.listen, leave=relay.leave),
            mock.patch("posix.open", relay.open),
        ):
            for verdict, section in zip(report.changes, sections, strict=True):
                relay.start(section + self._asking.ended)
                self._try_one(verdict, relay, counts)
        for place in self._chance.sample(range(len(sections)), min(3, len(sections))):
            oid, section = self._made[place], sections[place]
            counts.compared += self._hold_against_index(oid, section)
        return counts

    def _sections(self) -> list[bytes]:
        """Ask for all differences at once; git says a line that is no object id once more, as it is."""
        end = f"-- {secrets.token_hex(20)}\n"
        asked = "".join(f"{oid}\n{end}" for oid in self._made)
        said = self._asking.run("diff-tree", "--stdin", "-r", *self._asking.flags, stdin=asked.encode())
        parts = said.split(end.encode())
        assert len(parts) == len(self._made) + 1
        return [part.removeprefix(f"{oid}\0".encode()) for oid, part in zip(self._made, parts, strict=False)]

    def _hold_against_index(self, oid: str, section: bytes) -> bool:
        """Require that the hook's own diff-index says the very same of the same change, staged."""
        index = str(self._place / "other-index")
        try:
            self._asking.run("read-tree", oid, index=index)
        except subprocess.CalledProcessError:
            # An index takes no name that is like `.git`.
            return False
        said = self._asking.run("diff-index", *self._asking.index_flags, "HEAD", index=index)
        # What is staged of these counts at once, and the recogniser hands it on.
        if said != section and b".gitattributes" not in section:
            raise DifferenceError(f"diff-index does not say of {oid} what diff-tree says")
        return True

    def _try_one(self, verdict: ChangeVerdict, relay: Relay, counts: Counts) -> None:
        counts.changes += 1
        is_silent = verdict.verdict is Verdict.ACCEPTED and not verdict.findings
        is_ordinary = self._is_ordinary and is_silent and _is_plain(verdict)
        counts.silent += is_silent
        counts.ordinary_silent += is_ordinary
        git_dir, common_dir = self._repository.git_dir, self._repository.common_dir
        try:
            recognise.main(git_dir, common_dir, __version__, BRANCH)
        except Exception as error:  # noqa: BLE001 - whatever ends the recogniser hands the change on
            counts.why[_condition(error)] += 1
            return
        counts.recognised += 1
        counts.ordinary_recognised += is_ordinary
        expected = self._expected(verdict, is_first=counts.recognised == 1)
        if not is_silent or relay.left != expected:
            said = [f"{finding.rule}: {finding.message}" for finding in verdict.findings]
            raise DifferenceError(
                f"recognised, but {verdict.verdict} with {said}\n"
                f"files: {[(file.path.raw, file.old, file.new) for file in verdict.change.files]}\n"
                f"left: {relay.left}\nexpected: {expected}\npolicy:\n{self._text}"
            )

    def _expected(self, verdict: ChangeVerdict, *, is_first: bool) -> dict[str, bytes | None]:
        """Tell what the full tier leaves; the first time by letting it."""
        policy, zero = verdict.policy, self._repository.zero_oid
        assert verdict.source.base_commit == self._base
        pending = f"patchgate.pending/2 {__version__} accepted {verdict.change.after}\n".encode()
        pending += f"{self._base} {BRANCH}\n- -\n".encode()
        pending += raw_diff(verdict.change, zero)
        if is_first:
            place = {"status": "accepted", "head": self._base, "branch": BRANCH}
            assert leave_pending(self._repository, verdict.change, **place, policy=("-", "-")) is None
            assert Path(self._repository.git_dir, "patchgate-pending").read_bytes() == pending
        return {
            "patchgate-pending": None if policy.refuses_messages else pending,
            "patchgate-quiet": None if policy.judges_messages else f"{__version__}\n".encode(),
        }


def _is_plain(verdict: ChangeVerdict) -> bool:
    """Tell whether all names and modes are such as most people's files have."""
    return all(
        re.fullmatch(rb"[\w@.+$\[\]{} '#(),%^=-]+(/[\w@.+$\[\]{} '#(),%^=-]+)*", file.path.raw)
        and (file.new is None or file.new.is_file)
        and (file.old is None or file.old.is_file)
        and (file.new is None or file.new.mode == (file.old.mode if file.old else "100644"))
        for file in verdict.change.files
    )


def _condition(error: Exception) -> int:
    """Name the line of the recogniser that handed a change on."""
    own = recognise.__file__
    lines = [
        frame.lineno or 0
        for frame in traceback.extract_tb(error.__traceback__, limit=None)
        if frame.filename == own and frame.name != "require"
    ]
    return lines[-1]


@cache
def takes_git_like() -> bool:
    """Tell whether this git's fast-import makes trees with names like `.git`; later versions refuse to."""
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        env = pinned_environment(Path(folder, "home"))
        subprocess.run(["git", "init", "-q", folder], env=env, check=True)
        text = b"commit refs/heads/x\ncommitter A <a> 1 +0000\ndata 0\nM 100644 inline .GIT/x\ndata 0\n"
        asked = ["git", "fast-import", "--quiet"]
        done = subprocess.run(asked, input=text, cwd=folder, env=env, capture_output=True, check=False)
        return done.returncode == 0


def try_quietly(asked: tuple[int, int, int]) -> tuple[Counts, str]:
    """Try a batch (seed, number, count); give what was tried, and how it failed."""
    try:
        return try_batch(*asked), ""
    except Exception:  # noqa: BLE001 - whatever failed is told with its numbers
        seed, number, _ = asked
        return Counts(), f"--seed {seed} --only {number}:\n{traceback.format_exc(limit=-3)}"


def try_many(seed: int, batches: Sequence[tuple[int, int]], jobs: int) -> tuple[Counts, list[str]]:
    """Try batches (number and count of each) side by side; give counts, and what failed."""
    total, failures = Counts(), []
    start = last = time.monotonic()
    # A process with threads, as a test's may be, must not fork.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for counts, failure in pool.map(try_quietly, [(seed, *batch) for batch in batches]):
            total.add(counts)
            if failure:
                failures.append(failure)
                print(failure, file=sys.stderr, flush=True)
            if time.monotonic() > last + 30:
                last = time.monotonic()
                print(f"{last - start:.0f} s, {total}", file=sys.stderr, flush=True)
    return total, failures


def main() -> int:
    """Try as many changes as are asked for, and tell what was seen."""
    reader = argparse.ArgumentParser(prog="python -m tests.hooks.fast.same_verdict")
    reader.add_argument("--changes", type=int, default=20_000)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--jobs", type=int, default=2)
    reader.add_argument("--only", type=int, help="try this one batch")
    options = reader.parse_args()
    numbers = range(-(-options.changes // AT_ONCE)) if options.only is None else [options.only]
    start = time.monotonic()
    counts, failures = try_many(options.seed, [(number, AT_ONCE) for number in numbers], options.jobs)
    lines = Path(recognise.__file__).read_text(encoding="utf-8").split("\n")
    for line, often in sorted(counts.why.items()):
        print(f"{often:9,}  {line:3}  {lines[line - 1].strip()}")
    print(counts)
    print(f"{time.monotonic() - start:.0f} s, seed {options.seed}, {len(failures)} batches failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
