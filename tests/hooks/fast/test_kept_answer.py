"""What the fast path has asked of git about a large index, and the full check does not ask again.

The answer is left by the real shim; it is read in this process, which stands for the program that it starts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.check.pending import check_pending
from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import open_repository
from patchgate.report.verdict import Report
from tests.hooks.fast.boring_world import HANDED_ON, World, Worlds
from tests.world import EXECUTABLE

pytestmark = pytest.mark.turns(6)

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n[content]\ndeny = ["FORBIDDEN"]\n'
MANY = 12_000


@pytest.fixture(scope="module")
def large(worlds: Worlds) -> World:
    """Commit so many files that git takes long for the index; they are not in the working tree."""
    world = worlds(POLICY)
    oid = world.repo.ask("rev-parse", "HEAD:b")
    lines = "".join(f"100644 {oid}\tmany/{number % 100}/{'n' * 30}{number}\n" for number in range(MANY))
    world.repo.git("update-index", "--index-info", stdin=lines.encode())
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Many")
    world.repo.git("update-ref", "refs/remotes/origin/main", "HEAD")
    return world


@pytest.fixture
def world(large: World) -> World:
    """Begin with nothing staged."""
    large.repo.git("read-tree", "HEAD")
    answer(large).unlink(missing_ok=True)
    return large


def answer(world: World) -> Path:
    return world.git_dir / "patchgate-asked"


def stage(world: World, files: dict[str, bytes | None]) -> None:
    for path, content in files.items():
        if content is None:
            world.repo.git("update-index", "--force-remove", "--", path)
            continue
        oid = world.repo.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
        world.repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{path}")


def judged(world: World) -> Report:
    return check_pending(open_repository(world.repo.env, str(world.repo.path)), CheckOptions())


def keep(world: World) -> bytes:
    """Run the shim, which hands on; let this process be the one for which the answer is left."""
    assert world.hook().returncode == HANDED_ON
    first, _, rest = answer(world).read_bytes().partition(b"\n")
    words = first.split(b" ")
    words[2] = str(os.getppid()).encode()
    answer(world).write_bytes(b" ".join(words) + b"\n" + rest)
    return rest


CHANGES: dict[str, dict[str, bytes | None]] = {
    "a denied path": {"runs/x": b"x\n"},
    "a forbidden text": {"a": b"1\nFORBIDDEN\n2\n", "src/deep/c.py": b"y = 2\n"},
    "a conflict marker and no last line feed": {"a": b"<<<<<<< HEAD\n=======\n>>>>>>> x"},
    "many lines": {"long": b"line\n" * 2500},
    "an empty file": {"runs/none": b""},
    "an odd name": {'runs/a\tb"': b"x\n"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_verdict_is_that_of_a_new_answer(world: World, name: str) -> None:
    stage(world, CHANGES[name])
    asked_again = judged(world)
    keep(world)
    assert judged(world) == asked_again
    assert not answer(world).exists()
    assert asked_again.changes[0].findings


def test_the_answer_is_what_is_read_and_only_once(world: World) -> None:
    stage(world, {"runs/x": b"x\n"})
    keep(world)
    answer(world).write_bytes(answer(world).read_bytes().replace(b"runs/x", b"runs/y"))
    paths = [[str(file.path) for file in judged(world).changes[0].change.files] for _ in range(2)]
    assert paths == [["runs/y"], ["runs/x"]]


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "another process": lambda line: _with(line, 2, b"1"),
    "another version": lambda line: _with(line, 1, b"0.0.0"),
    "another time of the index": lambda line: _with(line, 3, b"1"),
    "another size of the index": lambda line: _with(line, 4, b"1"),
    "another index": lambda line: _with(line, 5, b"1"),
    "another format": lambda line: _with(line, 0, b"patchgate.asked/2"),
}


def _with(line: bytes, place: int, word: bytes) -> bytes:
    words = line.split(b" ")
    words[place] = word
    return b" ".join(words)


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_for_something_else_is_none(world: World, name: str) -> None:
    stage(world, {"runs/x": b"x\n"})
    rest = keep(world)
    first = answer(world).read_bytes().partition(b"\n")[0]
    answer(world).write_bytes(WRONG[name](first) + b"\n" + rest.replace(b"runs/x", b"runs/y"))
    assert [str(file.path) for file in judged(world).changes[0].change.files] == ["runs/x"]


def test_a_damaged_answer_is_asked_again(world: World) -> None:
    stage(world, {"a": b"1\nFORBIDDEN\n"})
    asked_again = judged(world)
    rest = keep(world)
    place = answer(world)
    first = place.read_bytes().partition(b"\n")[0]
    for damaged in (rest[: len(rest) // 2], b":x", rest + b"\0", b"\0" + rest):
        place.write_bytes(first + b"\n" + damaged)
        assert judged(world) == asked_again


@pytest.mark.parametrize(
    "files",
    [{"uv.lock": b"x\n", "b": None}, {"runs/x": b"\0\n"}, {"runs/x": b"x\n" * 200_000}],
    ids=["a deletion", "a binary file", "a long answer"],
)
def test_what_needs_another_answer_is_asked_again(world: World, files: dict[str, bytes | None]) -> None:
    stage(world, files)
    assert world.hook().returncode == HANDED_ON
    assert not answer(world).exists()


def test_a_refused_commit_asks_for_the_difference_once(world: World, tmp_path: Path) -> None:
    git = shutil.which("git")
    heard = tmp_path / "heard"
    program = tmp_path / "bin/git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >>{heard}\nexec {git} "$@"\n', encoding="ascii")
    program.chmod(0o755)
    stage(world, {"runs/x": b"x\n"})
    hook = world.state.parent / "hooks/pre-commit"
    kept = hook.read_bytes()
    own = next(line for line in kept.split(b"\n") if line.startswith(b"patchgate="))
    # Not through the server of the tests, which is another parent.
    started = {"PYTHONPATH": "", "FORKING_SERVER": "", "PATH": f"{program.parent}:{world.repo.env['PATH']}"}
    try:
        hook.write_bytes(kept.replace(own, b"patchgate=" + os.fsencode(EXECUTABLE)))
        done = world.hook(**started)
    finally:
        hook.write_bytes(kept)
    assert done.returncode == 1
    assert heard.read_text().count(" diff-index ") == 1
    assert not answer(world).exists()
