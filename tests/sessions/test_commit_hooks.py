"""The hooks around a commit: what is judged where, once, and what is left to the transaction."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.world import Repo

POLICY = """
[policy]
deny_prefixes = ["secrets", "protected"]
[policy.commit]
max_files = 2
[rules]
max-files = "error"
[content]
deny = ["BAD"]
"""


def guarded(folder: Path, policy: str = POLICY) -> Repo:
    """A repository with a policy and the hooks."""
    repo = Repo.create(folder)
    repo.policy(policy)
    repo.install()
    return repo


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode()


def receipts(repo: Repo) -> list[str]:
    place = repo.path / ".git" / "patchgate" / "receipts"
    return [line.split(" ")[0] for line in place.read_text().splitlines()] if place.exists() else []


def events(repo: Repo) -> list[dict[str, Any]]:
    return [json.loads(line) for line in repo.run("log", "--format", "json").out.splitlines()]


def test_an_accepted_commit_gets_its_receipt_without_a_second_judgement(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"a": "a\n"})
    # Once pre-commit is through, nothing that could judge is in reach: the shim alone must do.
    hook = repo.path / ".git" / "hooks" / "prepare-commit-msg"
    moved = repo.path / ".git" / "hooks" / "judged"
    hook.write_text(f"#!/bin/sh\nls .git/patchgate-pending >{moved}\n")
    hook.chmod(0o755)
    repo.git("commit", "-q", "-m", "a")
    assert moved.read_text() == ".git/patchgate-pending\n"
    assert receipts(repo) == [repo.head()]
    assert (repo.path / ".git" / "patchgate-pending").read_bytes() == b""
    assert (repo.path / ".git" / "patchgate-landing").read_bytes() == b""


def test_a_refused_commit_leaves_no_receipt_and_is_in_the_ledger(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    head = repo.head()
    repo.stage({"secrets/k": "k\n"})
    done = repo.try_git("commit", "-q", "-m", "bad")
    assert done.returncode == 1
    assert "deny-prefix" in said(done)
    assert "approve: git patchgate approve @staged" in said(done)
    assert repo.head() == head
    assert receipts(repo) == []
    (event,) = [each for each in events(repo) if each["kind"] == "refused"]
    assert event["hook"] == "pre-commit"
    assert event["rules"] == ["deny-prefix"]


def test_a_commit_with_an_agent_s_trailer_is_judged_as_an_agent_s(tmp_path: Path) -> None:
    repo = guarded(tmp_path, "[policy.agent]\nmax_added_lines = 1\n")
    repo.stage({"a": "1\n2\n3\n"})
    done = repo.try_git("commit", "-q", "-m", "work\n\nPatchgate-Run: 7\n")
    assert done.returncode == 128
    assert "max-added-lines" in said(done)
    repo.git("commit", "-q", "-m", "work")


def test_commit_n_is_judged_by_the_transaction(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"a": "BAD\n"})
    done = repo.try_git("commit", "-q", "-n", "-m", "bad")
    assert done.returncode == 128
    assert "deny-content" in said(done)
    assert repo.ask("status", "--porcelain") == "A  a"


def test_what_a_later_hook_smuggles_into_the_commit_is_seen(tmp_path: Path) -> None:
    """A pending receipt is of what was judged; another tree has none."""
    repo = guarded(tmp_path)
    hook = repo.path / ".git" / "hooks" / "prepare-commit-msg"
    hook.write_text("#!/bin/sh\nmkdir -p secrets && echo k >secrets/k && git add secrets/k\n")
    hook.chmod(0o755)
    repo.stage({"a": "a\n"})
    done = repo.try_git("commit", "-q", "-m", "a")
    if done.returncode == 0:
        assert "secrets/k" not in repo.ask("ls-tree", "-r", "--name-only", "HEAD")
    else:
        assert "deny-prefix" in said(done)


def test_an_amend_may_take_back_what_head_itself_brought_in(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"secrets/k": "k\n", "a": "a\n"})
    repo.git("commit", "-q", "-m", "oops", PATCHGATE_SKIP="to be mended at once")
    repo.git("rm", "-q", "--cached", "secrets/k")
    plain = repo.try_git("commit", "-q", "-m", "remove it")
    assert plain.returncode == 128
    assert "deny-prefix" in said(plain)
    repo.git("commit", "-q", "--amend", "-m", "mended")
    assert repo.ask("ls-tree", "-r", "--name-only", "HEAD").split() == ["a", "patchgate.toml"]
    assert receipts(repo) == [repo.head()]


def test_deleting_what_head_did_not_bring_in_is_refused_at_once(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"protected/p": "p\n"})
    repo.policy(POLICY)
    repo.install()
    repo.git("rm", "-q", "protected/p")
    done = repo.try_git("commit", "-q", "-m", "gone")
    assert done.returncode == 1
    assert "deny-prefix" in said(done)


def test_budgets_wait_for_the_transaction_while_a_rebase_is_under_way(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    for name in ("a", "b"):
        repo.stage({f"{name}1": "x\n", f"{name}2": "x\n"})
        repo.git("commit", "-q", "-m", name)
    script = "sed -i.old '1s/pick/edit/' "
    repo.git("rebase", "-q", "-i", "HEAD~2", GIT_SEQUENCE_EDITOR=script, GIT_EDITOR=":")
    # Three more files are over the budget of this commit alone, and the parts are sorted out later.
    repo.stage({"c1": "x\n", "c2": "x\n", "c3": "x\n"})
    repo.git("commit", "-q", "-m", "three")
    done = repo.try_git("rebase", "--continue", GIT_EDITOR=":")
    assert done.returncode != 0
    assert "max-files" in said(done)
    assert "git rebase --abort" in said(done).splitlines()
    repo.git("rebase", "--abort")
    assert repo.ask("log", "--format=%s", "-n", "2") == "b\na"


@pytest.mark.parametrize("form", [("-a",), ("--", "a"), ("-i", "a"), ("--only", "a")])
def test_every_form_of_commit_is_judged_by_what_it_commits(tmp_path: Path, form: tuple[str, ...]) -> None:
    repo = guarded(tmp_path)
    repo.stage({"a": "a\n"})
    repo.git("commit", "-q", "-m", "a")
    repo.write("a", "BAD\n")
    done = repo.try_git("commit", "-q", "-m", "bad", *form)
    assert done.returncode == 1
    assert "deny-content" in said(done)
    repo.write("a", "good\n")
    repo.git("commit", "-q", "-m", "good", *form)
    assert receipts(repo)[-1] == repo.head()


def test_a_merge_is_judged_with_the_commits_that_it_brings(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.git("switch", "-q", "-c", "side")
    repo.stage({"secrets/k": "k\n"})
    repo.git("commit", "-q", "-m", "bad", PATCHGATE_SKIP="to have one")
    repo.git("rm", "-q", "secrets/k")
    repo.git("commit", "-q", "-m", "gone", PATCHGATE_SKIP="to have one")
    repo.git("switch", "-q", "main")
    repo.stage({"b": "b\n"})
    repo.git("commit", "-q", "-m", "b")
    done = repo.try_git("merge", "-q", "-m", "merge", "side")
    assert done.returncode == 1
    assert "deny-prefix" in said(done)
    assert "git merge --abort" in said(done).splitlines()
    repo.git("merge", "--abort")
    assert repo.ask("status", "--porcelain") == ""


def test_a_skip_needs_a_reason_and_is_in_the_ledger_with_its_commit(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"secrets/k": "k\n"})
    for reason in ("", "  ", "...", "x", "quick fix"):
        assert repo.try_git("commit", "-q", "-m", "bad", PATCHGATE_SKIP=reason).returncode != 0
        done = repo.try_git("commit", "-q", "-n", "-m", "bad", PATCHGATE_SKIP=reason)
        assert done.returncode != 0
        assert "PATCHGATE_SKIP" in said(done)
    repo.git("commit", "-q", "-m", "bad", PATCHGATE_SKIP="the vendor's test key")
    (event,) = [each for each in events(repo) if each["kind"] == "skipped"]
    assert event["reason"] == "the vendor's test key"
    assert event["commits"] == [repo.head()]
    assert receipts(repo) == []


def test_observe_tells_and_records_and_lets_go(tmp_path: Path) -> None:
    repo = guarded(tmp_path, POLICY + '[hooks]\nmode = "observe"\n')
    repo.stage({"secrets/k": "k\n"})
    done = repo.try_git("commit", "-q", "-m", "bad")
    assert done.returncode == 0
    assert said(done).count("error[deny-prefix]") == 1
    (event,) = [each for each in events(repo) if each["kind"] == "observed"]
    assert event["rules"] == ["deny-prefix"]
    assert receipts(repo) == []


def test_on_a_draft_ref_a_refusal_is_told_only_and_elsewhere_it_holds(tmp_path: Path) -> None:
    repo = guarded(tmp_path, POLICY + '[hooks]\ndraft_refs = ["refs/heads/wip/*"]\n')
    repo.git("switch", "-q", "-c", "wip/x")
    repo.stage({"secrets/k": "k\n"})
    done = repo.try_git("commit", "-q", "-m", "bad")
    assert done.returncode == 0
    assert "deny-prefix" in said(done)
    repo.git("switch", "-q", "main")
    merge = repo.try_git("merge", "-q", "wip/x")
    assert merge.returncode != 0
    assert "deny-prefix" in said(merge)


def test_a_pending_receipt_of_a_draft_does_not_serve_another_branch(tmp_path: Path) -> None:
    repo = guarded(tmp_path, POLICY + '[hooks]\ndraft_refs = ["refs/heads/wip"]\n')
    repo.git("switch", "-q", "-c", "wip")
    repo.stage({"secrets/k": "k\n"})
    abandoned = repo.try_git("commit", "-q", "-m", "", GIT_EDITOR="false")
    assert abandoned.returncode != 0
    assert (repo.path / ".git" / "patchgate-pending").exists()
    repo.git("symbolic-ref", "HEAD", "refs/heads/main")
    done = repo.try_git("commit", "-q", "-n", "-m", "bad")
    assert done.returncode == 128
    assert "deny-prefix" in said(done)


def test_an_identical_tree_after_a_rewrite_is_not_judged_as_new_at_the_push(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    remote = tmp_path / "remote.git"
    repo.git("init", "-q", "--bare", str(remote))
    repo.git("remote", "add", "origin", str(remote))
    repo.git("push", "-q", "origin", "main")
    repo.stage({"a": "a\n"})
    repo.git("commit", "-q", "-m", "a")
    repo.git("commit", "-q", "--amend", "-m", "b")
    done = repo.try_git("push", "-q", "origin", "main")
    assert done.returncode == 0
    assert "no receipt" not in said(done)


def test_commit_msg_ends_in_sh_where_the_policy_says_nothing_of_messages(tmp_path: Path) -> None:
    repo = guarded(tmp_path, '[message]\nlevel = "off"\n')
    repo.stage({"a": "a\n"})
    hook = repo.path / ".git" / "hooks" / "commit-msg"
    # Nothing that could judge is in its reach.
    hook.write_text(hook.read_text().replace("patchgate=", "patchgate=/nowhere#", 1))
    repo.git("commit", "-q", "-m", "Properly handle all of it, etc.", PATH="/usr/bin:/bin")
    repo.policy('[message]\nlevel = "warning"\n')
    repo.stage({"b": "b\n"})
    done = repo.try_git("commit", "-q", "-m", "Properly handle all of it, etc.", PATH="/usr/bin:/bin")
    assert done.returncode != 0
    assert "patchgate is missing" in said(done)


def test_an_amend_may_put_back_what_head_changed_or_deleted(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"protected/p": "p\n", "protected/q": "q\n"})
    repo.policy(POLICY)
    repo.install()
    repo.git("rm", "-q", "protected/p")
    repo.stage({"protected/q": "changed\n", "a": "a\n"})
    repo.git("commit", "-q", "-m", "oops", PATCHGATE_SKIP="to be mended at once")
    repo.git("checkout", "-q", "HEAD~1", "--", "protected")
    plain = repo.try_git("commit", "-q", "-m", "put them back")
    assert plain.returncode == 128
    assert "deny-prefix" in said(plain)
    repo.git("commit", "-q", "--amend", "-m", "mended")
    assert repo.ask("diff", "--name-only", "HEAD~1", "HEAD") == "a"


def test_under_a_framework_nothing_is_left_to_a_transaction_that_does_not_come(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    repo.stage({"secrets/k": "k\n"})
    repo.git("commit", "-q", "-m", "oops", PATCHGATE_SKIP="to be mended at once")
    repo.git("rm", "-q", "secrets/k")
    assert repo.run("hook", "pre-commit").code == 0
    assert repo.run("hook", "pre-commit", PRE_COMMIT="1").code == 1
    assert not (repo.path / ".git" / "patchgate-pending").exists()
