"""The hooks in sh recognise nothing where a git that they ask dies: the change is handed on, and judged.

The hooks are installed as always, and what would judge is then replaced by a program that ends with 7. So 0
is what was recognised, 7 what was handed on.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cut_git import Call, CutGit
from tests.world import Repo

LONG = bool(os.environ.get("PATCHGATE_LONG"))
POLICY = '[policy]\ndeny_prefixes = ["runs"]\n[content]\ndeny = ["FORBIDDEN"]\n[message]\nlevel = "off"\n'
RECOGNISED, HANDED_ON = 0, 7
CLEAN = {"a.py": "a = 2\n", "lib/b.py": "b = 2\n"}
# What is forbidden is the last that git tells.
BAD = {**CLEAN, "runs/record": "evil\n", "z.py": "# FORBIDDEN\n"}


class World:
    """A clone with hooks and a remote; its last commit is recognised by each hook."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.git = CutGit(folder / "cut")
        repo = self.repo = Repo.create(folder)
        repo.policy(POLICY)
        self.server = folder / "server.git"
        repo.git("init", "-q", "--bare", str(self.server))
        repo.git("remote", "add", "origin", str(self.server))
        repo.install()
        for number in range(2):
            # The first goes to the full tier, which leaves the compiled policy.
            repo.stage({"a.py": f"a = {number}\n", "lib/b.py": "b = 1\n"})
            repo.git("commit", "-q", "-m", "Begin")
        repo.git("push", "-q", "origin", "main")
        self.old = repo.head()
        self.files = files
        judge = folder / "judge"
        judge.write_text(f"#!/bin/sh\nexit {HANDED_ON}\n", encoding="ascii")
        judge.chmod(0o755)
        for hook in (repo.path / ".git" / "hooks").iterdir():
            text = hook.read_text(encoding="utf-8")
            hook.write_text(re.sub(r"(?m)^patchgate=.*$", f"patchgate='{judge}'", text), encoding="utf-8")

    def hook(self, name: str, *words: str, stdin: str = "") -> Callable[[], int]:
        """Prepare a call of an installed hook, as git calls it."""
        env = {**self.repo.env, "GIT_DIR": ".git", "PATH": f"{self.git.path}:{self.repo.env['PATH']}"}

        def ask() -> int:
            done = subprocess.run(
                [self.repo.path / ".git" / "hooks" / name, *words],
                input=stdin.encode(),
                cwd=self.repo.path,
                env=env,
                capture_output=True,
                check=False,
            )
            return done.returncode

        return ask

    def pre_commit(self) -> Callable[[], int]:
        """Stage the change, and ask pre-commit."""
        self.repo.stage(self.files)
        return self.hook("pre-commit")

    def reference_transaction(self) -> Callable[[], int]:
        """Let pre-commit accept a clean change; then commit the files by plumbing, and ask about that."""
        repo = self.repo
        repo.stage(CLEAN)
        assert self.git.keep(self.hook("pre-commit"))[0] == RECOGNISED
        repo.stage(self.files)
        # Without it, only the pending receipt counts.
        (copy,) = (repo.path / ".git/patchgate/fast").glob("*/recognise.pyc")
        copy.unlink()
        commit = repo.ask("commit-tree", repo.ask("write-tree"), "-p", "HEAD", "-m", "Go on")
        return self.hook("reference-transaction", "prepared", stdin=f"{self.old} {commit} refs/heads/main\n")

    def landing(self) -> Callable[[], int]:
        """Commit the files by plumbing without a pending receipt, and ask about that."""
        repo = self.repo
        repo.stage(self.files)
        commit = repo.ask("commit-tree", repo.ask("write-tree"), "-p", "HEAD", "-m", "Go on")
        return self.hook("reference-transaction", "prepared", stdin=f"{self.old} {commit} refs/heads/main\n")

    def pre_push(self) -> Callable[[], int]:
        """Commit the files, with a receipt that says what is not so, and ask pre-push."""
        repo = self.repo
        repo.stage(self.files)
        repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Go on")
        commit, tree = repo.ask("rev-parse", "HEAD", "HEAD^{tree}").split()
        with open(repo.path / ".git" / "patchgate" / "receipts", "a", encoding="ascii") as file:
            file.write(f"{commit} {tree} {self.old}\n")
        line = f"refs/heads/main {commit} refs/heads/main {self.old}\n"
        return self.hook("pre-push", "origin", str(self.server), stdin=line)


HOOKS: dict[str, Callable[[World], Callable[[], int]]] = {
    "pre-commit": World.pre_commit,
    "reference-transaction": World.reference_transaction,
    "reference-transaction of a commit past pre-commit": World.landing,
    "pre-push": World.pre_push,
}


def _cuts(git: CutGit, call: Call) -> list[tuple[Callable[[int, int, Callable[[], int]], int], int]]:
    chance = random.Random(call.arguments)
    ways = (git.kill, git.starve)
    if LONG:
        return [(cut, after) for cut in ways for after in call.cuts]
    return [(chance.choice(ways), after) for after in {0, *call.some_cuts(chance), chance.choice(call.cuts)}]


@pytest.mark.parametrize("name", HOOKS)
def test_a_clean_change_is_handed_on_where_git_dies(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, CLEAN)
    ask = HOOKS[name](world)
    said, calls = world.git.keep(ask)
    assert said == RECOGNISED
    assert calls
    least = min((len(call.output) for call in calls if call.command == "cat-file"), default=0)
    for call in calls:
        for cut, after in _cuts(world.git, call):
            # cat-file has answered every question then, and nobody waits for its end. At a push two of them
            # begin at once, so that the number does not always say which is cut.
            is_whole = call.command == "cat-file" and after >= least
            # Whether the branch only goes back is asked first; without an answer, the commit is looked at.
            is_whole = is_whole or call.command == "rev-list"
            said = cut(call.number, after, ask)
            assert said == HANDED_ON or is_whole, (call.arguments, after, call.output)


@pytest.mark.parametrize("name", HOOKS)
def test_a_forbidden_change_is_never_recognised_where_git_dies(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, BAD)
    ask = HOOKS[name](world)
    said, calls = world.git.keep(ask)
    assert said == HANDED_ON
    assert calls
    for call in calls:
        for cut, after in _cuts(world.git, call):
            assert cut(call.number, after, ask) == HANDED_ON, (call.arguments, after, call.output)


def test_a_file_that_holds_the_mark_of_a_whole_answer_is_not_recognised_where_git_dies_there(
    tmp_path: Path,
) -> None:
    """Git takes a file for text whose first NUL comes late, and shows it; what follows is not read then."""
    mark = "x\n" * 5000 + "\0whole\n# FORBIDDEN\n"
    world = World(tmp_path, {"late.txt": mark})
    ask = HOOKS["pre-commit"](world)
    said, calls = world.git.keep(ask)
    assert said == HANDED_ON
    (call,) = [each for each in calls if each.command == "diff-index"]
    after = call.output.index(b"\0whole") + len(b"\0whole")
    assert world.git.kill(call.number, after, ask) == HANDED_ON
