"""Attacks on the hooks that once went through."""

from __future__ import annotations

from pathlib import Path

from tests.sessions.test_commit_hooks import guarded, said
from tests.world import Repo


def planted(repo: Repo) -> str:
    """Make a bad commit on top of HEAD by plumbing; no ref names it."""
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"k\n").decode().strip()
    index = str(repo.path / ".git" / "planted")
    repo.git("read-tree", "HEAD", GIT_INDEX_FILE=index)
    entry = f"100644,{blob},secrets/k"
    repo.git("update-index", "--add", "--cacheinfo", entry, GIT_INDEX_FILE=index)
    tree = repo.git("write-tree", GIT_INDEX_FILE=index).decode().strip()
    return repo.ask("commit-tree", "-p", "HEAD", "-m", "planted", tree)


def test_a_tag_with_a_branch_s_full_name_hides_no_new_branch(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    bad = planted(repo)
    repo.git("tag", "refs/heads/new", bad)
    done = repo.try_git("branch", "new", bad)
    assert done.returncode != 0
    assert "deny-prefix" in said(done)


def test_a_message_that_was_refused_is_refused_without_its_hook_too(tmp_path: Path) -> None:
    """pre-commit has accepted the tree, but its pending receipt may not speak for the message."""
    repo = guarded(tmp_path, '[message]\nlevel = "error"\n')
    repo.stage({"a": "a\n"})
    for form in ((), ("-n",)):
        done = repo.try_git("commit", "-q", "-m", "Properly handle all of it, etc.", *form)
        assert done.returncode != 0
        assert "message-vague" in said(done)
    repo.git("commit", "-q", "-m", "Add a")


def test_an_orphan_branch_brings_nothing_that_no_policy_has_judged(tmp_path: Path) -> None:
    """Where nothing before a commit had a policy, that of the main line counts, then that of the branch."""
    repo = guarded(tmp_path)
    repo.git("checkout", "-q", "--orphan", "orphan")
    repo.git("rm", "-q", "-r", "--cached", ".")
    (repo.path / "patchgate.toml").unlink()
    repo.stage({"secrets/k": "k\n"})
    for form in ((), ("--no-verify",)):
        done = repo.try_git("commit", "-q", "-m", "Begin again", *form)
        assert done.returncode != 0
        assert "deny-prefix" in said(done)
    repo.git("commit", "-q", "-m", "Begin again", PATCHGATE_SKIP="to have it")
    repo.git("switch", "-q", "-f", "main")
    done = repo.try_git("merge", "-q", "--allow-unrelated-histories", "-m", "Merge", "orphan")
    assert done.returncode != 0
    assert "deny-prefix" in said(done)


def test_a_fork_from_before_the_policy_is_judged_by_it_when_it_comes_back(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "a\n"})
    repo.git("branch", "old")
    repo.policy("[policy]\ndeny_prefixes = ['secrets']\n")
    repo.install()
    repo.git("switch", "-q", "old")
    repo.stage({"secrets/k": "k\n"})
    repo.git("commit", "-q", "-m", "Fine there")
    repo.git("switch", "-q", "main")
    for form in (("--no-ff", "-m", "Merge"), ("--no-verify", "--no-ff", "-m", "Merge")):
        done = repo.try_git("merge", "-q", *form, "old")
        assert done.returncode != 0
        assert "deny-prefix" in said(done)
        repo.git("merge", "--abort")


def test_no_variable_makes_a_branch_s_creation_a_fetch(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    done = repo.try_git("branch", "new", planted(repo), GIT_REFLOG_ACTION="fetch")
    assert done.returncode != 0
    done = repo.try_git("-c", "a.b= fetch", "branch", "new", planted(repo))
    assert done.returncode != 0


def test_no_variable_makes_a_push_a_framework_s(tmp_path: Path) -> None:
    repo = guarded(tmp_path)
    remote = tmp_path / "remote.git"
    repo.git("init", "-q", "--bare", str(remote))
    repo.git("remote", "add", "origin", str(remote))
    done = repo.try_git("push", "origin", f"{planted(repo)}:refs/heads/x", PRE_COMMIT="1")
    assert done.returncode != 0
    assert "deny-prefix" in said(done)


def test_what_was_told_on_a_draft_is_told_again_on_another_branch(tmp_path: Path) -> None:
    repo = guarded(
        tmp_path, "[policy]\ndeny_prefixes = ['secrets']\n[hooks]\ndraft_refs = ['refs/heads/wip']\n"
    )
    repo.git("switch", "-q", "-c", "wip")
    repo.stage({"secrets/k": "k\n"})
    repo.git("commit", "-q", "-m", "A draft")
    bad = repo.head()
    repo.stage({"a": "a\n"})
    repo.git("commit", "-q", "-m", "Good, with a receipt")
    repo.git("branch", "-M", "wip", "main")
    repo.stage({"b": "b\n"})
    assert bad[:12] in said(repo.try_git("commit", "-q", "-m", "b"))


def test_a_remote_is_known_by_the_url_that_git_writes_down(tmp_path: Path) -> None:
    """`git fetch origin main:main` moves main before the remote-tracking ref; FETCH_HEAD tells."""
    repo = guarded(tmp_path)
    remote = tmp_path / "remote.git"
    repo.git("init", "-q", "--bare", str(remote))
    repo.git("config", f"url.{tmp_path}/.insteadOf", "there:")
    repo.git("remote", "add", "origin", "there:remote.git")
    repo.git("push", "-q", "--no-verify", "origin", f"{planted(repo)}:refs/heads/main")
    repo.git("update-ref", "-d", "refs/remotes/origin/main")
    repo.git("switch", "-q", "-c", "elsewhere")
    done = repo.try_git("fetch", "-q", "origin", "main:main")
    assert done.returncode == 0, said(done)
    assert "need not" in said(done)
