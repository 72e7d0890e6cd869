"""The shortcuts of the tests give what the real thing gives: forked children and repeated steps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.seeds import repeat
from tests.world import EXECUTABLE, Repo

COMMANDS: list[tuple[list[str], bytes]] = [
    (["check", "--format", "json"], b""),
    (["hook", "pre-commit"], b""),
    (["hook", "no-such-hook"], b""),
    (["hook", "reference-transaction", "prepared"], b"0" * 40 + b" " + b"1" * 40 + b" refs/heads/x\n"),
    (["log"], b""),
    (["explain", "deny-prefix"], b""),
    (["no-such-command"], b""),
]


def guarded(folder: Path) -> Repo:
    repo = Repo.create(folder)
    repo.policy('[policy]\ndeny_prefixes = ["secrets"]\n')
    repo.install()
    return repo


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Read all files but the index, which holds inodes and times, and the ledger, which holds times."""
    return {
        str(place.relative_to(folder)): (place.lstat().st_mode, place.read_bytes())
        for place in sorted(folder.rglob("*"))
        if place.is_file() and place.name not in {"index", "events.jsonl"}
    }


@pytest.mark.parametrize(("arguments", "stdin"), COMMANDS, ids=lambda each: str(each)[:40])
def test_a_forked_child_answers_as_a_started_one(tmp_path: Path, arguments: list[str], stdin: bytes) -> None:
    repo = guarded(tmp_path)
    repo.stage({"secrets/k": "k\n"})
    started = subprocess.run(
        [EXECUTABLE, *arguments], input=stdin, cwd=repo.path, env=repo.env, capture_output=True, check=False
    )
    forked = repo.run(*arguments, stdin=stdin)
    assert (forked.code, forked.err) == (started.returncode, started.stderr.decode())
    assert forked.out == started.stdout.decode()


def test_a_hook_answers_the_same_with_and_without_the_server(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"secrets/k": "k\n"})
    forked = repo.try_git("commit", "-q", "-m", "x")
    started = repo.try_git("commit", "-q", "-m", "x", FORKING_SERVER="")
    assert (forked.returncode, forked.stderr) == (started.returncode, started.stderr)
    assert b"error[deny-prefix]" in forked.stderr
    gone = repo.try_git("commit", "-q", "-m", "x", FORKING_SERVER=f"/no/such/socket:{EXECUTABLE}")
    assert (gone.returncode, gone.stderr) == (started.returncode, started.stderr)


def test_a_repeated_step_leaves_what_the_step_left(tmp_path: Path) -> None:
    repos = [guarded(tmp_path / name) for name in ("one", "two")]
    made = [repo.commit({"a": "1\n"}) for repo in repos]
    assert made[0] == made[1]
    assert files(tmp_path / "one") == files(tmp_path / "two")
    for repo in repos:
        assert repo.git("diff-files") == repo.git("status", "--porcelain") == b""
        repo.git("fsck", "--strict")


def test_a_step_is_not_repeated_where_anything_differs(tmp_path: Path) -> None:
    runs: list[str] = []

    def step(name: str, given: str, *arguments: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "given").write_text(given)

        def run() -> None:
            runs.append(name)
            (folder / "made").write_text("made")

        repeat(folder, ("step", *arguments), run)
        assert (folder / "made").read_text() == "made"

    step("first", "same")
    step("again", "same")
    step("other bytes", "other")
    step("other arguments", "same", "more")
    assert [each for each in runs if each != "again"] == ["first", "other bytes", "other arguments"]
