"""Commits that were made while no hook ran: told by the next gate, once, with their names."""

from __future__ import annotations

from pathlib import Path

from tests.sessions.test_commit_hooks import POLICY, events, guarded, receipts, said
from tests.world import Repo

NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


def sneak(repo: Repo, name: str, content: str = "x\n") -> str:
    """Commit while no hook runs."""
    repo.stage({name: content})
    repo.git(*NO_HOOKS, "commit", "-q", "-m", name)
    return repo.ask("rev-parse", "HEAD")


def test_the_next_commit_tells_of_a_bad_one_by_its_name_and_only_once(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    bad = sneak(repo, "secrets/k")
    repo.stage({"a": "a\n"})
    first = repo.try_git("commit", "-q", "-m", "a")
    assert first.returncode == 0
    assert bad[:12] in said(first)
    assert "deny-prefix" in said(first)
    repo.stage({"b": "b\n"})
    assert bad[:12] not in said(repo.try_git("commit", "-q", "-m", "b"))
    (event,) = [each for each in events(repo) if each["kind"] == "unjudged"]
    assert event["commits"] == [bad]


def test_a_good_one_gets_its_receipt_and_nothing_is_said(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    good = sneak(repo, "g")
    repo.stage({"a": "a\n"})
    done = repo.try_git("commit", "-q", "-m", "a")
    assert said(done) == ""
    assert receipts(repo) == [good, repo.ask("rev-parse", "HEAD")]


def test_a_transaction_tells_it_where_pre_commit_does_not_run(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.git("switch", "-q", "-c", "side")
    repo.stage({"s": "s\n"})
    repo.git("commit", "-q", "-m", "s")
    repo.git("switch", "-q", "main")
    bad = sneak(repo, "secrets/k")
    done = repo.try_git("cherry-pick", "side")
    assert done.returncode == 0
    assert bad[:12] in said(done)


def test_what_was_skipped_with_a_reason_is_not_told_again(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"secrets/k": "k\n"})
    repo.git("commit", "-q", "-m", "bad", PATCHGATE_SKIP="a vendor's test key")
    repo.stage({"a": "a\n"})
    assert said(repo.try_git("commit", "-q", "-m", "a")) == ""


def test_what_is_observed_is_recorded_without_a_word(tmp_path: Path) -> None:
    repo = guarded(tmp_path, POLICY + '[hooks]\nmode = "observe"\n')
    bad = sneak(repo, "secrets/k")
    repo.stage({"a": "a\n"})
    assert said(repo.try_git("commit", "-q", "-m", "a")) == ""
    assert [each["commits"] for each in events(repo) if each["kind"] == "observed"] == [[bad]]


def test_what_was_there_at_install_is_settled(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    repo.commit({"secrets/old": "k\n"})
    repo.install()
    repo.stage({"a": "a\n"})
    assert said(repo.try_git("commit", "-q", "-m", "a")) == ""


def test_a_damaged_ledger_costs_only_that_it_is_told_again(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    bad = sneak(repo, "secrets/k")
    place = repo.path / ".git" / "patchgate" / "events.jsonl"
    place.write_bytes(b"\xff garbage\n" + (place.read_bytes() if place.exists() else b""))
    repo.stage({"a": "a\n"})
    done = repo.try_git("commit", "-q", "-m", "a")
    assert done.returncode == 0, said(done)
    assert bad[:12] in said(done)
