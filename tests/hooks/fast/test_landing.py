"""One commit that a branch gets without a pending receipt: an amend, a cherry-pick, a commit past pre-commit.

What the shim of reference-transaction recognises is compared with what the full check says of it.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.git.repository import open_repository
from patchgate.hooks.reference_transaction import judge_transaction
from patchgate.report.verdict import Verdict
from tests.hooks.fast.arrangements import unanswered, with_an_intent
from tests.hooks.fast.boring_world import HANDED_ON, RECOGNISED, World, Worlds

pytestmark = pytest.mark.turns(6)

FORMS: dict[str, Callable[[World], object]] = {
    "an amend": lambda world: world.repo.git("commit", "-q", "--amend", "--no-edit"),
    "an amend of the message": lambda world: world.repo.git("commit", "-q", "--amend", "-m", "Other words"),
    "a commit past pre-commit": lambda world: world.repo.git("commit", "-q", "-n", "-m", "Past pre-commit"),
    "plumbing": lambda world: world.repo.git("update-ref", "refs/heads/main", made(world), "HEAD"),
    "a cherry-pick": lambda world: world.repo.git("cherry-pick", side(world)),
    "a revert": lambda world: (
        world.repo.git("reset", "-q", "--hard"),
        world.repo.git("revert", "--no-edit", "HEAD"),
    ),
    "a squash": lambda world: (
        world.repo.git("reset", "-q", "--hard"),
        world.repo.git("merge", "-q", "--squash", side(world)),
        world.repo.git("commit", "-q", "-m", "Squash"),
    ),
}


def made(world: World, on: str = "HEAD", message: str = "Made by hand") -> str:
    """Make a commit of what is staged that no ref reaches."""
    return world.repo.ask("commit-tree", "-p", on, "-m", message, world.repo.ask("write-tree"))


def side(world: World) -> str:
    """Make a commit of another file on HEAD's parent; nothing stays staged."""
    world.repo.git("reset", "-q", "--hard", "HEAD^")
    world.repo.stage({"b": "other\n"})
    commit = made(world)
    world.repo.git("reset", "-q", "--hard", "HEAD@{1}")
    return commit


def second(worlds: Worlds, policy: str = "") -> World:
    """Commit a second time, and stage a change."""
    world = worlds(policy)
    world.repo.stage({"a": "2\n"})
    world.repo.git("commit", "-q", "-m", "Say two")
    world.repo.stage({"a": "3\n"})
    return world


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_recognised_and_gets_its_receipt(worlds: Worlds, name: str) -> None:
    world = second(worlds)
    # The stub refuses whatever is handed on.
    FORMS[name](world)
    line = world.repo.ask("log", "-1", "--format=%H %T %P")
    assert (world.state / "receipts").read_text(encoding="ascii").splitlines()[-1] == line


@pytest.mark.parametrize("shell", [name for name in ("dash", "bash") if shutil.which(name)])
def test_both_shells_take_the_same_way(worlds: Worlds, shell: str) -> None:
    world = second(worlds)
    assert world.land(made(world), shell).returncode == RECOGNISED
    world.repo.stage({"a": "<<<<<<< HEAD\n"})
    assert world.land(made(world), shell).returncode == HANDED_ON


def test_a_linked_worktree_and_other_ids_are_recognised(worlds: Worlds) -> None:
    world = worlds("", "--object-format=sha256")
    place = world.repo.path.parent / "linked"
    world.repo.git("worktree", "add", "-q", "-b", "linked", str(place))
    linked = world.beside(place).repo
    for number in range(2):
        linked.stage({"a": f"linked {number}\n"})
        linked.git("commit", "-q", "-n", "-m", "Past pre-commit")
    linked.git("commit", "-q", "--amend", "-m", "Other words")


def test_a_rename_costs_no_budget_and_its_text_is_not_read(worlds: Worlds) -> None:
    world = worlds("[policy.commit]\nmax_added_lines = 3\n")
    world.repo.stage({"long": "<<<<<<< HEAD\n" * 40})
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Past the hooks")
    world.repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    world.repo.git("mv", "long", "moved")
    world.repo.stage({"a": "2\n"})
    assert world.hook().returncode == RECOGNISED
    assert world.land(made(world)).returncode == RECOGNISED
    world.repo.write("again", (world.repo.path / "moved").read_text())
    world.repo.stage()
    assert world.hook().returncode == HANDED_ON


def two_at_once(world: World) -> str:
    first = made(world)
    return world.repo.ask("commit-tree", "-p", first, "-m", "Two", "HEAD^{tree}")


def a_merge(world: World) -> str:
    other = made(world)
    return world.repo.ask("commit-tree", "-p", "HEAD", "-p", other, "-m", "Merge", "HEAD^{tree}")


def skipped_below(world: World) -> str:
    unanswered(world)
    return made(world)


def shown_before(world: World) -> str:
    (world.git_dir / "patchgate-shown").write_text("x\n", encoding="ascii")
    return made(world)


def under_an_intent(world: World) -> str:
    (world.git_dir / "patchgate-intents").write_text("", encoding="ascii")
    return made(world)


def reserved(world: World) -> str:
    with_an_intent(world)
    return made(world)


HANDED: dict[str, Callable[[World], str]] = {
    "two commits": two_at_once,
    "a merge": a_merge,
    "a root": lambda world: world.repo.ask("commit-tree", "-m", "Root", "HEAD^{tree}"),
    "a commit below that nobody has judged": skipped_below,
    "what an earlier hook has shown": shown_before,
    "an intent": under_an_intent,
    "an intent of another worktree": reserved,
}


@pytest.mark.parametrize("name", HANDED)
def test_what_is_not_one_boring_commit_is_handed_on_and_leaves_nothing(worlds: Worlds, name: str) -> None:
    world = second(worlds)
    commit = HANDED[name](world)
    assert world.land(commit).returncode == HANDED_ON
    assert not world.landing()


@pytest.mark.parametrize("variable", ["PATCHGATE_FULL", "PATCHGATE_SKIP", "CLAUDECODE"])
def test_who_asks_for_the_full_tier_gets_it(worlds: Worlds, variable: str) -> None:
    world = second(worlds)
    commit = made(world)
    if variable == "CLAUDECODE":
        assert world.land(commit, **{variable: "1"}).returncode == HANDED_ON
        return
    # The stub lets the full check decide, which refuses a reason that says nothing.
    world.land(commit, **{variable: "1"})
    assert not world.landing()


TEXTS = ("x\n", "y\n" * 8, "<<<<<<< HEAD\n", "FORBIDDEN\n", "plain words\n", "")
PATHS = ("a", "b", "src/deep/c.py", "src/New/d.py", "new", "runs/x", "uv.lock", "SRC/e", "src/deep/more/f")
POLICY = (
    '[policy]\ndeny_prefixes = ["runs"]\n[policy.commit]\nmax_added_lines = 6\nmax_files = 3\n'
    '[content]\ndeny = ["FORBIDDEN"]\n'
)


def some_commit(world: World, chance: random.Random) -> str:
    """Make some commit for main: usually on HEAD or its parent, and usually of a few plain files."""
    world.repo.git("read-tree", chance.choice(["HEAD", "HEAD", "HEAD^"]))
    files = {path: chance.choice(TEXTS) for path in chance.sample(PATHS, chance.choice([0, 1, 1, 2, 4]))}
    for path, text in files.items():
        oid = world.repo.git("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
        mode = chance.choice(["100644"] * 9 + ["100755"])
        if world.repo.try_git("update-index", "--add", "--cacheinfo", f"{mode},{oid},{path}").returncode:
            continue
    if chance.random() < 0.3:
        entry = world.repo.ask("ls-files", "-s", "b").split()
        if entry:
            world.repo.git("update-index", "--force-remove", "--", "b")
            world.repo.git("update-index", "--add", "--cacheinfo", f"{entry[0]},{entry[1]},moved")
    message = chance.choice(["Do it", "Do it", "Do it\n\nPatchgate-Run: r", "as needed, and more."])
    return made(world, chance.choice(["HEAD", "HEAD", "HEAD^", "HEAD^^"]), message)


def test_what_is_recognised_the_full_check_accepts_in_silence(worlds: Worlds) -> None:
    chance = random.Random(1)
    world = second(worlds, POLICY)
    world.repo.git("commit", "-q", "-m", "Say three")
    repository = open_repository(world.repo.env, str(world.repo.path))
    receipts = (world.state / "receipts").read_bytes()
    recognised = 0
    for _ in range(60):
        (world.state / "receipts").write_bytes(receipts if chance.random() < 0.9 else b"")
        kept = (world.state / "receipts").read_bytes()
        commit = some_commit(world, chance)
        if world.land(commit).returncode == HANDED_ON:
            assert not world.landing()
            continue
        recognised += 1
        left = world.landing()
        line = f"{world.repo.ask('rev-parse', 'main')} {commit} refs/heads/main\n".encode("ascii")
        decision = judge_transaction(repository, line, str, str)
        assert not decision.stops
        assert decision.report.verdict is Verdict.ACCEPTED
        assert not decision.report.warnings
        assert not [each for change in decision.report.changes for each in change.findings]
        # A commit that the branch has, or had, gets no receipt.
        if left is not None and decision.report.changes:
            assert (world.state / "receipts").read_bytes() == kept + left
        Path(world.git_dir, "patchgate-landing").unlink(missing_ok=True)
    assert recognised >= 5
