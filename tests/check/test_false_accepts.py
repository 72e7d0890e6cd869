"""Changes that were once accepted although they should not be; each was found by attacking the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proposals import check
from tests.world import Repo

KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A history in which the policy came after the first commit, and protects `secrets/`."""
    repo = Repo.create(tmp_path)
    repo.commit({"README": "0\n"})
    repo.git("branch", "side")
    repo.commit({"patchgate.toml": '[policy]\ndeny = ["secrets/"]\n'})
    # The key is there before the gate was.
    repo.commit({"secrets/key": "k\n", "README": "m\n"})
    return repo


def test_a_merge_whose_first_parent_had_no_policy_does_not_lose_the_other_ones(repo: Repo) -> None:
    repo.git("checkout", "-q", "--detach", "side")
    repo.commit({"z": "z\n"})
    repo.git("merge", "-q", "--no-commit", "main")
    repo.write("secrets/key", "EVIL\n")
    repo.git("rm", "-qf", "patchgate.toml")
    repo.git("add", "-A")
    assert {"policy-removed", "deny-pattern"} <= set(repo.check("--cached").errors)
    repo.git("commit", "-qm", "merged")
    assert {"policy-removed", "deny-pattern"} <= set(repo.check("HEAD").errors)


def test_a_merge_that_git_cannot_make_does_not_lose_the_policy(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    repo.commit({"README": "s\n"})
    merge = repo.ask("commit-tree", "side^{tree}", "-p", "main", "-p", "side", "-m", "M")
    assert "policy-removed" in repo.check(merge).errors
    assert "policy-removed" in repo.check(merge, "--policy-from", "main").errors


def test_an_octopus_does_not_lose_the_policy(repo: Repo) -> None:
    parents = ("-p", "main", "-p", "main~2", "-p", "main~1")
    merge = repo.ask("commit-tree", "main~2^{tree}", *parents, "-m", "M")
    assert "policy-removed" in repo.check(merge, "--policy-from", "main").errors


def test_a_merge_among_commits_that_had_no_policy_needs_none(repo: Repo) -> None:
    repo.git("checkout", "-q", "-B", "left", "side")
    repo.commit({"a": "a\n"})
    repo.git("checkout", "-q", "-B", "right", "side")
    repo.commit({"b": "b\n"})
    repo.git("merge", "-q", "--no-ff", "-m", "M", "left")
    assert repo.check("HEAD", "--policy-from", "main").verdict == "accepted"


def test_the_source_of_a_copy_is_judged_after_a_merge_with_head_too(repo: Repo) -> None:
    repo.commit({"other": "x\n"})
    copy = b"diff --git a/secrets/key b/pub\nsimilarity index 100%\ncopy from secrets/key\ncopy to pub\n"
    for base in ("HEAD~1", "HEAD"):
        assert check(repo, copy, "--base", base).errors == ["deny-pattern"]


def test_a_symlink_that_becomes_a_file_of_the_same_bytes_brings_its_content(repo: Repo) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", stdin=KEY.encode()).decode().strip()
    repo.git("update-index", "--add", "--cacheinfo", f"120000,{blob},x")
    repo.git("commit", "-qm", "a link")
    repo.git("update-index", "--cacheinfo", f"100644,{blob},x")
    assert repo.check("--cached").errors == ["secret"]


@pytest.mark.parametrize("name", ["MERGE_HEAD", "shallow"])
def test_a_damaged_file_of_git_is_no_crash_of_ours(repo: Repo, name: str) -> None:
    (repo.path / ".git" / name).write_bytes(b"\xff\n")
    answer = repo.check("--cached")
    assert answer.code in {0, 3}
    assert "patchgate itself failed" not in answer.out
