"""Commits that were made while no hook ran: told by the next gate, once, with their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.ledger.ledger import Ledger
from tests.sessions.test_commit_hooks import POLICY, events, guarded, receipts, said
from tests.world import Repo

NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


def sneak(repo: Repo, name: str, content: str = "x\n") -> str:
    """Commit while no hook runs."""
    repo.stage({name: content})
    repo.git(*NO_HOOKS, "commit", "-q", "-m", name)
    return repo.head()


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
    assert receipts(repo) == [good, repo.head()]


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


def told(repo: Repo) -> dict[str, str]:
    place = repo.path / ".git" / "patchgate" / "told"
    lines = place.read_text().splitlines() if place.exists() else []
    return {branch: oid for oid, branch in (line.split(" ") for line in lines)}


def commit(repo: Repo, name: str) -> str:
    """Commit something harmless; give what the hooks said."""
    repo.stage({name: name + "\n"})
    done = repo.try_git("commit", "-q", "-m", name)
    assert done.returncode == 0, said(done)
    return said(done)


def skipped(repo: Repo) -> str:
    """Let a bad commit through with a reason, and one on top of it that is accepted."""
    repo.stage({"secrets/k": "k\n"})
    repo.git("commit", "-q", "-m", "bad", PATCHGATE_SKIP="a vendor's test key")
    bad = repo.head()
    assert commit(repo, "above") == ""
    return bad


def test_a_branch_is_noted_up_to_where_it_was_told(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    assert commit(repo, "a") == ""
    bad = skipped(repo)
    assert told(repo) == {"refs/heads/main": bad}


def test_a_commit_on_what_was_told_asks_nobody_again(tmp_path: Path) -> None:
    """Whoever asked would find that the ledger knows of another branch alone, and tell it a second time."""
    repo = guarded(tmp_path)
    bad = skipped(repo)
    assert commit(repo, "b") == ""
    common = repo.path / ".git"
    (common / "patchgate" / "events.jsonl").unlink()
    assert Ledger(str(common)).record("skipped", {"ref": "refs/heads/x", "commits": [bad]}) is None
    assert commit(repo, "c") == ""
    (common / "patchgate" / "told").unlink()
    assert bad[:12] in commit(repo, "d")


def anew(repo: Repo) -> None:
    repo.git("branch", "-q", "-D", "other")
    repo.git("switch", "-q", "-c", "other")


def by_a_new_branch(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "third")


def by_a_reset(repo: Repo) -> None:
    repo.git(*NO_HOOKS, "switch", "-q", "other")
    repo.git(*NO_HOOKS, "reset", "-q", "--hard", "main")


def by_a_fast_forward(repo: Repo) -> None:
    repo.git(*NO_HOOKS, "switch", "-q", "other")
    repo.git(*NO_HOOKS, "merge", "-q", "--ff-only", "main")


def by_a_merge(repo: Repo) -> None:
    repo.git(*NO_HOOKS, "switch", "-q", "other")
    repo.git(*NO_HOOKS, "commit", "-q", "--allow-empty", "-m", "apart")
    repo.git(*NO_HOOKS, "merge", "-q", "--no-edit", "main")


def by_renaming_over_it(repo: Repo) -> None:
    repo.git("branch", "-q", "-M", "other")


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "come", [anew, by_a_new_branch, by_a_reset, by_a_fast_forward, by_a_merge, by_renaming_over_it]
)
def test_every_branch_that_comes_to_hold_it_is_told_once(
    tmp_path: Path, come: Callable[[Repo], None]
) -> None:
    repo = guarded(tmp_path)
    assert commit(repo, "a") == ""
    # The other branch has been told of all that it holds before it comes to hold more.
    repo.git("switch", "-q", "-c", "other")
    sneak(repo, "plain")
    assert commit(repo, "o") == ""
    assert "refs/heads/other" in told(repo)
    repo.git("switch", "-q", "main")
    repo.git(*NO_HOOKS, "merge", "-q", "--ff-only", "other")
    bad = skipped(repo)
    assert commit(repo, "on top") == ""
    come(repo)
    assert bad[:12] in commit(repo, "first")
    assert commit(repo, "second") == ""
    assert commit(repo, "third") == ""
    assert told(repo)[repo.ask("symbolic-ref", "HEAD")] == repo.ask("rev-parse", "HEAD~3")


def test_what_a_merge_brought_in_is_told_where_another_branch_begins_on_the_merge(tmp_path: Path) -> None:
    """The merge has a receipt, and its first parents lead past what came in by the second."""
    repo = guarded(tmp_path, POLICY + '[hooks]\ndraft_refs = ["refs/heads/draft"]\n')
    repo.git("switch", "-q", "-c", "side")
    bad = sneak(repo, "secrets/k")
    repo.git(*NO_HOOKS, "switch", "-q", "-c", "draft", "main")
    assert commit(repo, "d") == ""
    done = repo.try_git("merge", "-q", "--no-edit", "side")
    assert done.returncode == 0, said(done)
    assert receipts(repo)[-1] == repo.head()
    assert commit(repo, "on draft") == ""
    repo.git("switch", "-q", "-c", "keen")
    assert bad[:12] in commit(repo, "on keen")
    assert commit(repo, "again") == ""


def test_what_could_not_be_recorded_is_told_again(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    bad = sneak(repo, "secrets/k")
    ledger = repo.path / ".git" / "patchgate" / "events.jsonl"
    ledger.unlink(missing_ok=True)
    ledger.symlink_to(tmp_path / "nowhere")
    first = commit(repo, "a")
    assert "not recorded" in first
    assert bad[:12] in first
    assert told(repo) == {}
    ledger.unlink()
    repo.git(*NO_HOOKS, "commit", "-q", "--allow-empty", "-m", "no receipt")
    assert bad[:12] in commit(repo, "b")
    assert commit(repo, "c") == ""


def test_two_worktrees_are_told_each_for_its_branch(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    bad = skipped(repo)
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    other = repo.at(tmp_path / "other")
    assert bad[:12] in commit(other, "o")
    assert commit(repo, "m") == ""
    assert commit(other, "p") == ""
    assert sorted(told(repo)) == ["refs/heads/main", "refs/heads/other"]
