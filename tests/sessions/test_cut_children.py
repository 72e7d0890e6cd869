"""A git child that dies is never an answer: wherever its output is cut, the verdict is undecided.

Every question is asked once undisturbed. Then each call of git that it took is killed, one at a time: before
it wrote anything, within and between its records, and behind the last one. The change is forbidden, and what
is forbidden comes last, so that a reader that loses a record accepts. Only two answers are right: undecided,
or the very answer of the undisturbed run, where the child had answered every question.

`PATCHGATE_LONG=1` cuts at every boundary and in the middle of every record.
"""

from __future__ import annotations

import io
import json
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests import component_world
from tests.cut_git import Call, CutGit
from tests.verify.verify_world import Workshop
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

LONG = bool(os.environ.get("PATCHGATE_LONG"))
POLICY = """\
[policy]
deny_prefixes = ["runs"]
[content]
deny = ["FORBIDDEN"]
[message]
level = "off"
"""
BAD = {"a.py": "a = 2\n", "lib/b.py": "b = 2\n", "runs/record": "evil\n", "z.py": "# FORBIDDEN\n"}
# `rev-parse` and `version`.
_OPENING = 2
# `verify` asks git fifty times.
_MOST_CALLS = 20
_FORBIDDEN = ("runs/record", "z.py")


Cut = Callable[[int, int, Callable[[], Answer]], Answer]


def _cuts(git: CutGit, call: Call, name: str) -> list[tuple[Cut, int]]:
    chance = random.Random(f"{name} {call.number} {call.command}")
    if LONG:
        return [(cut, after) for cut in (git.kill, git.starve) for after in call.cuts]
    return [(chance.choice((git.kill, git.starve)), after) for after in call.some_cuts(chance)]


def _is_more(said: Answer, whole: Answer) -> bool:
    """Tell whether all that was refused still is, and something more is undecided."""
    if not said.code == whole.code == 1:
        return False
    (_, changes), (_, expected) = _essence(said), _essence(whole)
    extra = [each for each in changes if each not in expected]
    return [each for each in changes if each in expected] == expected and all(
        verdict == "undecided" for verdict, *_ in extra
    )


def _essence(answer: Answer) -> tuple[int, list[Any]]:
    """What may not become less: the code, and each change with its files and rules."""
    try:
        report = json.loads(answer.out)
    except json.JSONDecodeError:
        # A hook says it in sentences.
        return answer.code, [(name,) for name in _FORBIDDEN if name in answer.err]
    if "changes" not in report:
        return answer.code, [(str(report),)]
    return answer.code, [
        (
            change["verdict"],
            [row["path"] for row in change["files"]],
            [each["rule"] for each in change["findings"]],
        )
        for change in report["changes"]
    ]


def _is_rejected_in_part(said: Answer, whole: Answer) -> bool:
    """What one gate found refuses, whatever another one could not see; that one says so."""
    if (said.code, whole.code) != (1, 1) or not said.out.startswith("{"):
        return False
    gates = [gate for change in said.changes for gate in (*change["gates"], *change["context_gates"])]
    found, all_of_it = _essence(said)[1], _essence(whole)[1]
    are_some = all(set(one[-1]) <= set(other[-1]) for one, other in zip(found, all_of_it, strict=False))
    return are_some and any(gate["outcome"] == "undecided" for gate in gates)


def sweep(git: CutGit, name: str, ask: Callable[[], Answer], *, code: int = 1) -> dict[str, int]:
    """Kill each call of git in turn; give how often each command was killed."""
    whole, calls = git.keep(ask)
    assert whole.code == code, (whole.code, whole.out, whole.err)
    assert calls
    killed: dict[str, int] = {}
    wrong = []
    if not LONG and len(calls) > _MOST_CALLS:
        calls = random.Random(name).sample(calls, _MOST_CALLS)
    for call in calls:
        if call.number <= _OPENING and not (LONG or name == "commit"):
            # How a repository is opened is the same for all.
            continue
        for cut, after in _cuts(git, call, name):
            said = cut(call.number, after, ask)
            killed[call.command] = killed.get(call.command, 0) + 1
            is_whole = _essence(said) == _essence(whole) or _is_more(said, whole)
            if said.code != 3 and not is_whole and not _is_rejected_in_part(said, whole):
                wrong.append(
                    (call.command, after, len(call.output), said.code, said.out[-200:], said.err[-200:])
                )
    assert not wrong, "\n".join(map(repr, wrong))
    return killed


class World:
    """A repository with a forbidden change at every place where a change can be."""

    def __init__(self, folder: Path) -> None:
        self.git = CutGit(folder / "cut")
        repo = self.repo = Repo.create(folder)
        self.start = repo.commit({"patchgate.toml": POLICY, "a.py": "a = 1\n", "lib/b.py": "b = 1\n"})
        repo.git("switch", "-q", "-c", "side")
        repo.commit({"a.py": "a = 3\n", "side.py": "s = 1\n"})
        repo.git("switch", "-q", "-c", "topic", "main")
        repo.commit({"lib/c.py": "c = 1\n", "a.py": "a = 4\n"})
        repo.try_git("merge", "-q", "--no-commit", "side")
        self.merge = repo.commit({"a.py": "a = 5\n"}, "Merge")
        self.bad = repo.commit(BAD, "Add some files")
        self.patch = folder / "bad.patch"
        self.patch.write_bytes(repo.git("diff", "-p", f"{self.bad}^", self.bad))
        repo.git("switch", "-q", "main")
        repo.git("update-ref", "refs/remotes/origin/main", self.start)
        repo.git("config", "remote.origin.url", str(folder / "nowhere"))

    def ask(self, *arguments: str, stdin: str = "") -> Callable[[], Answer]:
        """Prepare a call of the command line, which finds the git that dies."""
        path = f"{self.git.path}:{self.repo.env['PATH']}"

        def asked() -> Answer:
            with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))):
                return self.repo.cli(*arguments, PATH=path)

        return asked

    def check(self, *arguments: str) -> Callable[[], Answer]:
        """Prepare a `check`."""
        return self.ask("check", "--format", "json", *arguments)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("cut"))


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "form",
    ["commit", "range", "merge", "policy-from", "patch", "patch-base"],
)
def test_a_revision_or_a_patch_is_undecided_where_a_child_dies(world: World, form: str) -> None:
    arguments = {
        "commit": [world.bad],
        "range": [f"{world.start}..{world.bad}"],
        "merge": [f"{world.merge}^..{world.bad}"],
        "policy-from": ["--policy-from", world.start, f"{world.start}..{world.bad}"],
        "patch": ["--patch", str(world.patch)],
        "patch-base": ["--patch", str(world.patch), "--base", world.start],
    }[form]
    if form == "patch":
        world.repo.git("switch", "-q", "--detach", f"{world.bad}^")
    try:
        killed = sweep(world.git, form, world.check(*arguments))
    finally:
        world.repo.git("switch", "-q", "main")
    assert killed["cat-file"] > 1


@pytest.mark.sweep(2)
@pytest.mark.parametrize("form", ["staged", "worktree", "all", "trusted", "merging"])
def test_what_is_not_committed_is_undecided_where_a_child_dies(tmp_path: Path, form: str) -> None:
    world = World(tmp_path)
    if form == "trusted":
        # The trusted policy alone forbids it.
        world.repo.policy('[message]\nlevel = "off"\n')
        world.repo.git("config", "patchgate.trustRef", "refs/remotes/origin/main")
    if form == "merging":
        world.repo.commit({"a.py": "a = 6\n"})
        world.repo.try_git("merge", "-q", "--no-commit", "side")
    if form == "worktree":
        for name, content in BAD.items():
            world.repo.write(name, content)
    else:
        world.repo.stage(BAD)
    arguments = {"worktree": ["--worktree"], "all": ["--all"]}.get(form, [])
    killed = sweep(world.git, form, world.check(*arguments))
    assert killed["cat-file"] > 1


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "form", ["pre-commit", "commit-msg", "reference-transaction", "pre-push", "pre-receive"]
)
def test_a_hook_is_undecided_where_a_child_dies(tmp_path: Path, form: str) -> None:
    world = World(tmp_path)
    repo = world.repo
    old, new = world.start, world.bad
    lines = {
        "reference-transaction": f"{old} {new} refs/heads/main\n",
        "pre-push": f"refs/heads/topic {new} refs/heads/main {old}\n",
        "pre-receive": f"{old} {new} refs/heads/main\n",
    }.get(form, "")
    words = {
        "reference-transaction": ["prepared"],
        "pre-push": ["origin", str(tmp_path / "nowhere")],
    }.get(form, [])
    if form == "commit-msg":
        message = tmp_path / "message"
        message.write_text("Properly handle all of it, etc.\n", encoding="utf-8")
        words = [str(message)]
        repo.policy('[message]\nlevel = "error"\n')
    if form == "pre-commit":
        repo.stage(BAD)
    sweep(world.git, form, world.ask("hook", form, *words, stdin=lines))


def test_a_default_branch_stays_protected_where_a_child_dies(tmp_path: Path) -> None:
    """What becomes of a ref is found from its name, the remote's HEAD and ancestry, by other children."""
    world = World(tmp_path)
    forced = f"{world.bad} {world.start} refs/heads/trunk\n"
    repo = world.repo
    repo.git("branch", "-q", "trunk", world.bad)
    repo.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    sweep(world.git, "force", world.ask("hook", "pre-receive", stdin=forced))
    repo.git("update-ref", "refs/remotes/origin/trunk", world.bad)
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
    lines = f"refs/heads/main {world.start} refs/heads/trunk {world.bad}\n"
    sweep(world.git, "push", world.ask("hook", "pre-push", "origin", str(tmp_path / "nowhere"), stdin=lines))


def _is_whole(repo: Repo, files: dict[str, str]) -> bool:
    return all((repo.path / name).read_text(encoding="utf-8") == text for name, text in files.items())


def test_apply_writes_all_or_nothing_where_a_child_dies(tmp_path: Path) -> None:
    world = World(tmp_path)
    repo, old = world.repo, {"a.py": "a = 1\n", "lib/b.py": "b = 1\n"}
    new = {"a.py": "a = 9\n", "lib/b.py": "b = 9\n"}
    patch = tmp_path / "good.patch"
    commit = repo.commit(new)
    patch.write_bytes(repo.git("diff", "-p", world.start, commit))
    ask = world.ask("apply", "--format", "json", str(patch))

    def afresh() -> Answer:
        repo.git("reset", "-q", "--hard", world.start)
        return ask()

    whole, calls = world.git.keep(afresh)
    assert whole.code == 0, whole.out
    for call in calls[_OPENING:]:
        for cut, after in _cuts(world.git, call, "apply"):
            said = cut(call.number, after, afresh)
            place = (call.arguments, after, len(call.output), said.code, said.out[-300:])
            assert _is_whole(repo, new if said.code == 0 else old), place
            assert said.code in (0, 3), place
            if said.code == 0:
                assert _essence(said) == _essence(whole), place


@pytest.mark.parametrize("form", ["verify", "status", "validate"])
def test_verify_and_components_are_undecided_where_a_child_dies(tmp_path: Path, form: str) -> None:
    words, code = {
        "verify": (("verify", "--base", "HEAD^", "HEAD"), 1),
        "status": (("baseline", "status"), 0),
        "validate": (("component", "validate", "--all"), 1),
    }[form]
    repo: Repo
    if form == "verify":
        repo = Workshop.open(tmp_path)
        repo.commit({"b.py": "BAD\n"})
    else:
        repo = component_world.make(tmp_path)
        repo.commit({component_world.TESTS: "# nothing is tested\n", component_world.CONTRACT: "{}\n"})
    git = CutGit(tmp_path / "cut")

    def ask() -> Answer:
        return repo.cli(*words, "--format", "json", PATH=f"{git.path}:{repo.env['PATH']}")

    sweep(git, form, ask, code=code)
