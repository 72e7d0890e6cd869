"""A ledger that was cut, emptied or deleted is seen by `log --verify`, `log`, `claim stats` and `doctor`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Ledger
from patchgate.storage import hash_chain
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository whose ledger has four events."""
    made = Repo.create(tmp_path)
    made.commit({"a.py": "one\n"})
    ledger = Ledger(str(made.path / ".git"))
    for number in range(4):
        assert ledger.record("pushed", {"commits": number}) is None
    return made


def _ledger(repo: Repo) -> Path:
    return repo.path / ".git" / "patchgate" / "events.jsonl"


def _head(repo: Repo) -> Path:
    return _ledger(repo).with_name("events.jsonl.head")


def _cut(keep: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:keep]))

    return damage


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_cut(3), " cut short"),
        (_cut(1), " cut short"),
        (_cut(0), " missing or empty"),
        (Path.unlink, " missing or empty"),
    ],
    ids=["the last event", "all but one", "emptied", "deleted"],
)
def test_a_cut_ledger_is_seen_everywhere_and_stays_seen(
    repo: Repo, damage: Callable[[Path], None], said: str
) -> None:
    damage(_ledger(repo))
    for _ in range(2):
        verified = repo.cli("log", "--verify")
        assert verified.code == 1
        assert said in verified.out.splitlines()[0]
        assert "\nhelp: " in verified.out
        assert "events.jsonl.head" in verified.out.split("\nhelp: ")[1]
        (document,) = map(json.loads, repo.cli("log", "--verify", "--format", "json").out.splitlines())
        assert (document["is_intact"], document["head"]["state"]) == (False, "contradicted")
        for arguments in (["log"], ["claim", "stats"]):
            shown = repo.cli(*arguments)
            assert shown.code == 3
            assert "missing" in shown.err
            assert "nothing has been recorded" not in shown.err
        assert said.split(",", maxsplit=1)[0] in repo.cli("doctor").out
        # The next event does not cover it up.
        assert Ledger(str(repo.path / ".git")).record("pushed", {"commits": 9}) is None
        said = "the ledger was cut"
    command = repo.cli("log", "--verify").out.splitlines()[-1]
    subprocess.run(["sh", "-c", command], check=True, env=repo.env)
    assert Ledger(str(repo.path / ".git")).record("pushed", {"commits": 10}) is None
    assert repo.cli("log", "--verify").code == 0
    assert _head(repo).with_name("events.jsonl.head.damaged-1").exists()


def test_a_ledger_that_was_written_anew_is_seen(repo: Repo) -> None:
    _ledger(repo).unlink()
    for number in range(40):
        hash_chain.append(_ledger(repo), {"kind": "pushed", "n": number})
    answer = repo.cli("log", "--verify")
    assert answer.code == 1
    first = answer.out.splitlines()[0]
    assert " rewritten" in first
    assert "events.jsonl.head" in first


def test_verify_says_what_it_proves_and_what_it_does_not(repo: Repo) -> None:
    first, second = repo.cli("log", "--verify").out.splitlines()
    assert " intact" in first
    assert ": 4 events; the last is sha256:" in first
    assert second.startswith("events.jsonl.head names the same ")
    # As an older version leaves it.
    hash_chain.append(_ledger(repo), {"kind": "pushed"})
    first, second = repo.cli("log", "--verify").out.splitlines()
    assert ": 5 events" in first
    assert second.startswith("events.jsonl.head names an earlier ")
    assert " 1 event before " in second
    _head(repo).unlink()
    answer = repo.cli("log", "--verify")
    assert answer.code == 0
    assert " no events.jsonl.head" in answer.out.splitlines()[1]
    assert "events.jsonl.head" not in repo.cli("doctor").out
    # Whoever writes both can forge both; no document says otherwise.
    _cut(2)(_ledger(repo))
    assert repo.cli("log", "--verify").code == 0


def test_every_worktree_sees_the_cut_of_the_common_ledger(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    common = repo.at(tmp_path / "side").git("rev-parse", "--git-common-dir").decode().strip()
    assert Ledger(common).record("pushed", {}) is None
    assert repo.cli("log", "--verify", cwd=tmp_path / "side").code == 0
    _cut(4)(_ledger(repo))
    assert repo.cli("log", "--verify", cwd=tmp_path / "side").code == 1


def test_a_damaged_ledger_is_put_away_together_with_its_head(repo: Repo) -> None:
    content = _ledger(repo).read_bytes()
    _ledger(repo).write_bytes(content.replace(b'"commits":3', b'"commits":4'))
    warning = Ledger(str(repo.path / ".git")).record("pushed", {})
    assert warning is not None
    assert "mv events.jsonl.head events.jsonl.head.damaged" in warning
    command = repo.cli("log", "--verify").out.splitlines()[-1]
    subprocess.run(["sh", "-c", command], check=True, env=repo.env)
    assert Ledger(str(repo.path / ".git")).record("pushed", {}) is None
    assert repo.cli("log", "--verify").code == 0


def test_a_head_file_that_cannot_be_read_is_undecided_in_one_sentence(repo: Repo) -> None:
    _head(repo).unlink()
    _head(repo).mkdir()
    for arguments in (["log"], ["log", "--verify"]):
        answer = repo.cli(*arguments)
        assert answer.code == 3
        assert ": Is a directory" in answer.err
