"""A commit that git cannot read whole is undecided at every door, never "accepted: 0 files".

Seven levels of folders, ten in each, are eight small objects; a difference that lists their hundred million
files needs more memory than a child may have. Git then dies behind the line that names the commit. Here a
child may have 12 MiB, so that it dies soon; with `PATCHGATE_LONG=1` it has what the product allows.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from tests.cut_git import CutGit
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

LONG = bool(os.environ.get("PATCHGATE_LONG"))
_KIBIBYTES = 12 << 10
POLICY = """\
[policy]
deny_prefixes = ["runs"]
[message]
level = "off"
"""


class World:
    """A branch `main` with a policy, and commits on top of it that no ref names."""

    def __init__(self, folder: Path) -> None:
        self.git = CutGit(folder / "cut")
        repo = self.repo = Repo.create(folder)
        self.start = repo.commit({"patchgate.toml": POLICY, "runs/record": "good\n"})
        self.bomb = self._bomb()

    def _bomb(self) -> str:
        blob = self.repo.git("hash-object", "-w", "--stdin", stdin=b"x\n").decode().strip()
        tree = self.mktree(*(f"100644 blob {blob}\tf{number}" for number in range(10)))
        for _ in range(7):
            tree = self.mktree(*(f"040000 tree {tree}\td{number}" for number in range(10)))
        return tree

    def mktree(self, *entries: str) -> str:
        """Write a tree."""
        lines = "".join(f"{entry}\n" for entry in entries)
        return self.repo.git("mktree", stdin=lines.encode()).decode().strip()

    def commit(self, parent: str, files: dict[str, str] | None = None, *, bombed: bool = False) -> str:
        """Make a commit with these files beside those of its parent, and with the bomb if it is asked for."""
        index = str(self.repo.path / ".git" / "other-index")
        self.repo.git("read-tree", self.start, GIT_INDEX_FILE=index)
        for name, content in (files or {}).items():
            blob = self.repo.git("hash-object", "-w", "--stdin", stdin=content.encode()).decode().strip()
            self.repo.git(
                "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", GIT_INDEX_FILE=index
            )
        tree = self.repo.git("write-tree", GIT_INDEX_FILE=index).decode().strip()
        if bombed:
            listed = self.repo.ask("ls-tree", tree).split("\n")
            tree = self.mktree(*listed, f"040000 tree {self.bomb}\tzz")
        return self.repo.ask("commit-tree", tree, "-p", parent, "-m", "Add some files")

    def line(self, count: int, bombed: int, *, stays: bool = False) -> str:
        """Make so many commits in a row; one of them brings the bomb, the next takes it away or keeps it."""
        tip = self.start
        for number in range(count):
            has_bomb = number == bombed or (stays and number > bombed)
            tip = self.commit(tip, {"a": f"{number}\n"}, bombed=has_bomb)
        return tip

    def ask(self, *arguments: str, stdin: str = "") -> Answer:
        """Ask the command line, while git may have only so much memory."""

        def asked() -> Answer:
            path = self.repo.env["PATH"] if LONG else f"{self.git.path}:{self.repo.env['PATH']}"
            with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))):
                return self.repo.cli(*arguments, PATH=path)

        return self.git.limit(_KIBIBYTES, asked)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("bomb"))


def test_the_limit_lets_an_ordinary_change_be_judged(world: World) -> None:
    fine = world.commit(world.start, {"a": "1\n"})
    assert world.ask("check", fine).code == 0
    bad = world.commit(world.start, {"runs/record": "evil\n"})
    assert world.ask("check", bad).code == 1


@pytest.mark.parametrize("files", [{}, {"runs/record": "evil\n"}], ids=["bomb alone", "with a denied file"])
@pytest.mark.parametrize("words", [[], ["--policy-from", "main"]], ids=["own policy", "policy-from"])
def test_a_commit_that_needs_too_much_memory_is_undecided(
    world: World, files: dict[str, str], words: list[str]
) -> None:
    bad = world.commit(world.start, files, bombed=True)
    done = world.ask("check", *words, bad)
    assert done.code == 3, done.out
    assert "more memory" in done.err
    assert "accepted" not in done.out
    # A revert needs as much, and is no more judged.
    assert world.ask("check", *words, world.commit(bad, files)).code == 3


@pytest.mark.sweep(3)
@pytest.mark.parametrize("place", [0, 2, 4], ids=["first", "middle", "last"])
@pytest.mark.parametrize("words", [[], ["--policy-from", "main"]], ids=["own policy", "policy-from"])
def test_a_range_with_such_a_commit_is_undecided(world: World, place: int, words: list[str]) -> None:
    done = world.ask("check", *words, f"main..{world.line(5, place)}")
    assert (done.code, "accepted" in done.out) == (3, False)


@pytest.mark.parametrize("place", [63, 64])
def test_such_a_commit_is_not_lost_between_two_batches(world: World, place: int) -> None:
    """A walk hands commits on by 64: the last of them was empty where git died behind its header."""
    done = world.ask("check", f"main..{world.line(66, place, stays=True)}")
    assert (done.code, "accepted" in done.out) == (3, False)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "middle", "last"])
@pytest.mark.parametrize("hook", ["pre-receive", "pre-push", "reference-transaction"])
def test_a_hook_refuses_a_commit_that_needs_too_much_memory(world: World, hook: str, place: int) -> None:
    tip = world.line(3, place)
    words, lines = {
        "pre-receive": ((), f"{world.start} {tip} refs/heads/main\n"),
        "pre-push": (("origin", "nowhere"), f"refs/heads/main {tip} refs/heads/main {world.start}\n"),
        "reference-transaction": (("prepared",), f"{world.start} {tip} refs/heads/main\n"),
    }[hook]
    done = world.ask("hook", hook, *words, stdin=lines)
    assert done.code == 3, done.err
    assert "more memory" in done.err


@pytest.mark.skipif(not LONG, reason="git takes seven seconds for each push")
def test_two_pushes_do_not_carry_a_denied_file_past_the_server(tmp_path: Path) -> None:
    """As it was found: the first push brings bomb and denied file, the second takes the bomb away."""
    world = World(tmp_path)
    server = tmp_path / "server.git"
    world.repo.git("clone", "-q", "--bare", str(world.repo.path), str(server))
    world.repo.at(server).install("--server")
    world.repo.git("remote", "add", "origin", str(server))
    first = world.commit(world.start, {"runs/record": "evil\n"}, bombed=True)
    second = world.commit(first, {"runs/record": "evil\n"})
    for commit in (first, second):
        done = world.repo.try_git("push", "-q", "origin", f"{commit}:refs/heads/main")
        assert done.returncode != 0
        assert b"more memory" in done.stderr
    assert world.repo.at(server).ask("rev-parse", "main") == world.start
