"""A clean merge is judged once: pre-merge-commit leaves a receipt that the transaction compares in sh.

The transaction's hook calls a stub, so a merge lands only if sh recognises it; pre-merge-commit is real.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.git.repository import open_repository
from patchgate.hooks.reference_transaction import judge_transaction
from patchgate.report.verdict import Verdict
from tests.hooks.fast.boring_world import HANDED_ON, RECOGNISED, World, Worlds

pytestmark = pytest.mark.turns(6)

OFF = ("-c", "core.hooksPath=/dev/null")


def commit(world: World, files: dict[str, str | bytes], message: str = "Change it", *options: str) -> None:
    world.repo.stage(files)
    world.repo.git(*options, "commit", "-q", "-m", message)


def forked(worlds: Worlds, policy: str = "", *options: str) -> World:
    """Commit on side and on main, both through the hooks (or as `options` say for side)."""
    world = worlds(policy)
    world.repo.git("switch", "-q", "-c", "side")
    commit(world, {"b": "side\n"}, "Change b", *options)
    world.repo.git("switch", "-q", "main")
    commit(world, {"a": "main\n"}, "Change a", *options)
    if options:
        line = world.repo.ask("log", "-1", "--format=%H %T %P")
        with (world.state / "receipts").open("a", encoding="ascii") as file:
            file.write(line + "\n")
    return world


def merging(world: World) -> Path:
    return world.git_dir / "patchgate-merging"


def test_a_clean_merge_lands_with_its_receipt(worlds: Worlds) -> None:
    world = forked(worlds)
    world.repo.git("merge", "-q", "--no-edit", "side")
    line = world.repo.ask("log", "-1", "--format=%H %T %P").rsplit(" ", 1)[0]
    assert (world.state / "receipts").read_text(encoding="ascii").splitlines()[-1] == f"{line} merge"
    # The next commit is recognised on it.
    commit(world, {"a": "again\n"})


def prepared(world: World) -> str:
    """Let pre-merge-commit judge the merge of side; give a merge commit that main is about to get."""
    refused = world.repo.try_git("merge", "-q", "--no-edit", "side")
    assert refused.returncode == 0, refused.stderr
    merge = world.repo.head()
    world.repo.git("update-ref", "refs/kept/merge", merge)
    world.repo.git(*OFF, "update-ref", "refs/heads/main", "HEAD^")
    # What a branch had is not judged again.
    (world.state.parent / "logs/refs/heads/main").unlink()
    return merge


def again(
    world: World, *arguments: str, message: str = "Merge it", tree: str = "", other: str = "side"
) -> str:
    """Make the merge commit again, maybe in another way."""
    oid = tree or world.repo.ask("rev-parse", "refs/kept/merge^{tree}")
    return world.repo.ask(*arguments, "commit-tree", "-p", "main", "-p", other, "-m", message, oid)


CHANGED: dict[str, Callable[[World], str]] = {
    "another tree": lambda world: again(world, tree=world.repo.ask("rev-parse", "side^{tree}")),
    "another parent": lambda world: again(world, other="side^"),
    "a trailer of ours": lambda world: again(world, message="Merge it\n\nPatchgate-Run: r"),
    "another encoding": lambda world: again(world, "-c", "i18n.commitEncoding=latin1"),
    "the parents the other way round": lambda world: world.repo.ask(
        "commit-tree", "-p", "side", "-p", "main", "-m", "Merge", "refs/kept/merge^{tree}"
    ),
}


@pytest.mark.parametrize("shell", [name for name in ("dash", "bash") if shutil.which(name)])
def test_only_the_very_merge_that_was_judged_is_recognised(worlds: Worlds, shell: str) -> None:
    world = forked(worlds)
    prepared(world)
    assert world.land(again(world), shell).returncode == RECOGNISED
    for name, make in CHANGED.items():
        assert world.land(make(world), shell).returncode == HANDED_ON, name
    (world.git_dir / "patchgate-intents").write_text("", encoding="ascii")
    assert world.land(again(world), shell).returncode == HANDED_ON


def test_what_is_recognised_the_full_check_accepts_in_silence_with_the_same_receipt(worlds: Worlds) -> None:
    world = forked(worlds)
    merge = prepared(world)
    assert world.land(merge).returncode == RECOGNISED
    left = world.landing()
    repository = open_repository(world.repo.env, str(world.repo.path))
    receipts = world.state / "receipts"
    kept = b"".join(
        line for line in receipts.read_bytes().splitlines(True) if not line.startswith(merge.encode())
    )
    receipts.write_bytes(kept)
    line = f"{world.repo.ask('rev-parse', 'main')} {merge} refs/heads/main\n".encode("ascii")
    decision = judge_transaction(repository, line, str, str)
    assert not decision.stops
    assert decision.report.verdict is Verdict.ACCEPTED
    assert not decision.report.warnings
    assert not [each for change in decision.report.changes for each in change.findings]
    assert receipts.read_bytes() == kept + (left or b"none")


COMPONENT = "[components.x]\ncontract = 'c'\ntests = ['t']\nimplementation = ['i']\n"


def on_the_remote(world: World) -> None:
    world.repo.git("update-ref", "refs/remotes/origin/side", "side")
    receipts = world.state / "receipts"
    side = world.repo.ask("rev-parse", "side").encode()
    receipts.write_bytes(
        b"".join(each for each in receipts.read_bytes().splitlines(True) if side not in each[:41])
    )


def past_the_hooks(world: World) -> None:
    world.repo.git("switch", "-q", "side")
    commit(world, {"b": "unseen\n"}, "Past", *OFF)
    world.repo.git("switch", "-q", "main")


NOTHING_LEFT: dict[str, tuple[str, Callable[[World], object]]] = {
    "a commit without a receipt": ("", past_the_hooks),
    "a commit of a remote": ("", on_the_remote),
    "components": (COMPONENT, lambda world: None),
    "messages that can be refused": ('[message]\nlevel = "error"\n', lambda world: None),
}


@pytest.mark.parametrize("name", NOTHING_LEFT)
def test_where_the_transaction_has_more_to_say_nothing_is_left(worlds: Worlds, name: str) -> None:
    policy, arrange = NOTHING_LEFT[name]
    world = forked(worlds, policy, *(OFF if policy else ()))
    if policy:
        side = world.repo.ask("log", "-1", "--format=%H %T %P", "side")
        with (world.state / "receipts").open("a", encoding="ascii") as file:
            file.write(side + "\n")
    arrange(world)
    world.repo.try_git("merge", "-q", "--no-edit", "side")
    assert not merging(world).exists()


def test_an_edited_merge_leaves_nothing(worlds: Worlds) -> None:
    world = forked(worlds)
    world.repo.git("merge", "-q", "--no-commit", "--no-ff", "side")
    world.repo.stage({"c": "evil\n"})
    assert world.judge().returncode == 0
    assert not merging(world).exists()
    world.repo.git("rm", "-q", "-f", "c")
    assert world.judge().returncode == 0
    assert merging(world).exists()
