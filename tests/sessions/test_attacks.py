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
