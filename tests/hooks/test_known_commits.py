"""A branch that is made at a known commit, or goes back: the shim of reference-transaction decides it in sh.

What sh lets pass is compared with what patchgate says of the same refs: that there is nothing to judge.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.git.repository import open_repository
from patchgate.hooks.reference_transaction import judge_transaction
from tests.hooks.hook_world import Recorder, install
from tests.world import Repo

pytestmark = pytest.mark.turns(6)

JUDGED = ["reference-transaction prepared"]
ZERO = "0" * 40


class World:
    """Three commits on main, one of them on a branch of the remote, and a commit that no ref reaches."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.repo = Repo.create(folder / "re po", *arguments)
        self.recorder = Recorder(folder)
        self.commits = [self.repo.commit({"a": f"{number}\n"}, f"Commit {number}") for number in range(3)]
        self.theirs = self.made("Theirs")
        self.unknown = self.made("Unknown")
        self.repo.git("update-ref", "refs/remotes/origin/topic", self.theirs)
        install(self.repo, self.recorder)
        self.common = Path(self.repo.common_dir)

    def made(self, message: str, parent: str = "HEAD") -> str:
        """Make a commit that no ref reaches."""
        return self.repo.ask("commit-tree", "-p", parent, "-m", message, "HEAD^{tree}")

    def lets_pass(self, line: str, **env: str) -> bool:
        """Whether the shim lets an update pass; then patchgate must have nothing to say of it."""
        self.recorder.forget()
        shim = self.common / "hooks/reference-transaction"
        done = subprocess.run(
            ["sh", str(shim), "prepared"],
            input=f"{line}\n".encode(),
            cwd=self.repo.path,
            env={**self.repo.env, **env},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        passes = self.recorder.asked == []
        if passes:
            self.require_silence(f"{line}\n".encode())
        return passes

    def require_silence(self, lines: bytes) -> None:
        """Require that the full check judges nothing, and warns of nothing."""
        repository = open_repository(self.repo.env, str(self.repo.path))
        decision = judge_transaction(repository, lines, str, str)
        assert not decision.stops
        assert (decision.report.changes, decision.report.warnings) == ((), ())


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Such a repository."""
    return World(tmp_path)


BRANCHES = (
    ("branch", "x"),
    ("branch", "a/b", "HEAD~2"),
    ("branch", '$(exit)é;&"x'),
    ("branch", "--no-track", "theirs", "refs/remotes/origin/topic"),
    ("worktree", "add", "-q", "-b", "w", "../w"),
    ("worktree", "add", "-q", "-b", "v", "../v", "HEAD~1"),
    ("switch", "-q", "-c", "y"),
    ("switch", "-q", "-c", "z", "HEAD~1"),
    ("checkout", "-q", "-b", "topic", "refs/remotes/origin/topic"),
)
BACK = ("reset", "-q", "--hard", "HEAD~1")


@pytest.mark.parametrize("state", ["loose", "packed", "detached"])
def test_git_goes_on_without_patchgate(world: World, state: str) -> None:
    if state == "packed":
        world.repo.git("pack-refs", "--all")
    if state == "detached":
        world.repo.git("checkout", "-q", "--detach")
    for command in BRANCHES:
        world.repo.git(*command)
    world.repo.git(*BACK)
    assert world.recorder.asked == []


def test_a_branch_that_is_only_packed_may_go_back_when_patchgate_has_looked(world: World) -> None:
    world.repo.git("pack-refs", "--all")
    world.repo.git(*BACK)
    assert world.recorder.asked == JUDGED


def test_in_a_linked_worktree_it_is_the_same(world: World) -> None:
    world.repo.git("worktree", "add", "-q", "-b", "side", "../there")
    there = str(world.repo.path.parent / "there")
    for more in (("switch", "-q", "-c", "x"), ("branch", "y", "HEAD~1"), ("reset", "-q", "--hard", "HEAD~1")):
        world.repo.git("-C", there, *more)
    assert world.recorder.asked == []


def test_a_commit_that_nothing_reaches_is_judged(world: World) -> None:
    world.repo.git("branch", "x", world.unknown)
    assert world.recorder.asked == JUDGED


def test_a_commit_that_only_a_tag_or_a_detached_head_reaches_is_judged(world: World) -> None:
    world.repo.git("tag", "t", world.unknown)
    world.repo.git("checkout", "-q", "--detach", world.unknown)
    world.recorder.forget()
    world.repo.git("branch", "x")
    assert world.recorder.asked == JUDGED


def new_at(commit: Callable[[World], str], name: str = "x") -> Callable[[World], str]:
    """A branch that is made at a commit."""
    return lambda world: f"{ZERO} {commit(world)} refs/heads/{name}"


def at_unknown(world: World) -> str:
    return world.unknown


def tip(world: World) -> str:
    return world.commits[-1]


def with_file(text: str, name: str) -> Callable[[World], str]:
    """Write a file of a ref, with the unknown commit for `{}`; then make a branch there."""

    def line(world: World) -> str:
        place = world.common / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.format(world.unknown), encoding="utf-8")
        return new_at(at_unknown)(world)

    return line


def linked(world: World) -> str:
    (world.common / "elsewhere").write_text(world.unknown + "\n", encoding="ascii")
    (world.common / "refs/heads/master").symlink_to("../../elsewhere")
    (world.common / "refs/heads/x").symlink_to("../../missing")
    return new_at(tip)(world)


def superseded(world: World) -> str:
    world.repo.git("update-ref", "refs/heads/old", world.unknown)
    world.repo.git("pack-refs", "--all")
    world.repo.git("update-ref", "refs/heads/old", world.commits[0])
    return new_at(at_unknown)(world)


def packed(world: World, *, many: int = 0) -> str:
    lines = "".join(f"create refs/heads/b{number:03} {world.commits[0]}\n" for number in range(many))
    world.repo.git("update-ref", "--stdin", stdin=lines.encode())
    world.repo.git("update-ref", "refs/heads/x", world.unknown)
    world.repo.git("pack-refs", "--all")
    return new_at(tip)(world)


def symbolic(world: World) -> str:
    world.repo.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    return f"{tip(world)} {world.commits[0]} refs/heads/alias"


def grafted(world: World) -> str:
    (world.common / "info").mkdir(exist_ok=True)
    (world.common / "info/grafts").write_text(f"{tip(world)} {world.unknown}\n", encoding="ascii")
    return new_at(at_unknown)(world)


def replaced(world: World) -> str:
    world.repo.git("replace", "--graft", tip(world), world.unknown)
    return new_at(at_unknown)(world)


def badly_named(world: World) -> str:
    (world.common / "refs/heads/a..b").write_text(world.unknown + "\n", encoding="ascii")
    return with_file("ref: refs/heads/a..b\n", "HEAD")(world)


def shown(world: World) -> str:
    (Path(world.repo.git_dir) / "patchgate-shown").write_text("x\n", encoding="ascii")
    return new_at(tip)(world)


HANDED_ON: dict[str, Callable[[World], str]] = {
    "a branch that is there": lambda world: f"{ZERO} {world.commits[0]} refs/heads/main",
    "a branch that is packed": packed,
    "a branch that is packed among many": lambda world: packed(world, many=80),
    "a link for a branch": linked,
    "another old value": lambda world: f"{world.commits[1]} {world.commits[0]} refs/heads/main",
    "what the branch does not have": lambda world: f"{tip(world)} {world.theirs} refs/heads/main",
    "a symbolic ref": symbolic,
    "a graft": grafted,
    "a replacement": replaced,
    "a packed value that is superseded": superseded,
    "a ref beside the refs": with_file("ref: refs/heads/../../elsewhere\n", "HEAD"),
    "a name that is none": badly_named,
    "a locked ref": with_file("{}\n", "refs/heads/main.lock"),
    "a folder for HEAD's branch": with_file("{}\n", "refs/heads/master/x.lock"),
    "what an earlier hook has shown": shown,
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_what_sh_cannot_know_is_handed_on(world: World, name: str) -> None:
    line = HANDED_ON[name](world)
    assert not world.lets_pass(line)


@pytest.mark.parametrize(
    "variable", ["GIT_COMMON_DIR", "GIT_REFERENCE_BACKEND", "PATCHGATE_FULL", "PATCHGATE_WITNESS"]
)
def test_a_variable_that_asks_for_it_hands_it_on(world: World, variable: str) -> None:
    line = new_at(tip)(world)
    assert world.lets_pass(line)
    assert not world.lets_pass(line, **{variable: str(world.common)})


@pytest.mark.parametrize("variable", ["GIT_GRAFT_FILE", "GIT_SHALLOW_FILE", "GIT_OBJECT_DIRECTORY"])
def test_no_variable_shows_git_another_history(world: World, variable: str) -> None:
    place = world.repo.path / "history"
    place.write_text(f"{tip(world)} {world.unknown}\n", encoding="ascii")
    assert not world.lets_pass(new_at(at_unknown)(world), **{variable: str(place)})
    older = f"{ZERO} {world.commits[0]} refs/heads/x"
    assert world.lets_pass(older, **{variable: str(place)})


def test_with_an_intent_a_known_commit_stays_known(world: World) -> None:
    Path(world.repo.git_dir, "patchgate-intents").write_text("", encoding="ascii")
    assert world.lets_pass(new_at(tip)(world))


def test_other_ids_are_known_too(tmp_path: Path) -> None:
    world = World(tmp_path, "--object-format=sha256")
    world.repo.git("branch", "x")
    world.repo.git("branch", "y", "HEAD~1")
    assert world.recorder.asked == []
    world.repo.git("branch", "z", world.unknown)
    assert world.recorder.asked == JUDGED


@pytest.mark.parametrize("seed", range(4))
def test_what_passes_in_any_refs_is_nothing_to_judge(world: World, seed: int) -> None:
    chance = random.Random(seed)
    made = [*world.commits, world.theirs, world.unknown]
    made += [world.made(f"More {number}", chance.choice(made)) for number in range(3)]
    names = [
        "heads/main",
        "heads/x",
        "heads/y",
        "heads/a/b",
        "remotes/origin/x",
        "remotes/origin/main",
        "tags/x",
    ]
    passed = 0
    for _ in range(10):
        for name in chance.sample(names, 3):
            world.repo.git(
                "-c", "core.hooksPath=/dev/null", "update-ref", f"refs/{name}", chance.choice(made)
            )
        if chance.random() < 0.4:
            world.repo.git("pack-refs", "--all")
        if chance.random() < 0.3:
            ref = chance.choice(["refs/heads/y", "refs/heads/none"])
            world.repo.git("symbolic-ref", "HEAD", ref)
        ref = chance.choice(["x", "y", "z", "main", "x", "a/b"])
        old = world.repo.try_git("rev-parse", "--verify", "-q", f"refs/heads/{ref}").stdout.decode().strip()
        old = old if chance.random() < 0.6 and old else ZERO
        passed += world.lets_pass(f"{old} {chance.choice(made)} refs/heads/{ref}")
    assert passed
