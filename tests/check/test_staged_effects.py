"""What a staged change does to a denied path is seen, however it is done; what is harmless passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.world import Answer, Repo

POLICY = '[policy]\ndeny_prefixes = ["vault"]\ndeny = ["*.key"]\ndeny_suffixes = [".min.js"]\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with files below `vault/`, which is denied, and with a file of a denied suffix."""
    made = Repo.create(tmp_path)
    made.commit({"vault/a": "a\n", "vault/b": "b\n", "free/c": "c\n", "x.key": "k\n", "lib.min.js": "m\n"})
    made.policy(POLICY)
    return made


def judged(repo: Repo) -> Answer:
    """Stage everything, judge it; as a commit it must be judged alike."""
    repo.git("add", "-A")
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "x")
    committed = repo.check("HEAD")
    assert (committed.change["id"], committed.rules) == (staged.change["id"], staged.rules)
    return staged


def test_adding_changing_and_deleting_what_is_denied_is_refused(repo: Repo) -> None:
    repo.write("vault/new")
    repo.write("vault/a", "changed\n")
    (repo.path / "vault/b").unlink()
    assert judged(repo).errors == ["deny-prefix"] * 3


def test_a_rename_out_of_a_denied_folder_is_refused(repo: Repo) -> None:
    repo.git("mv", "vault/a", "free/a")
    answer = judged(repo)
    assert answer.errors == ["deny-prefix"]
    assert answer.files["free/a"]["old_path"] == "vault/a"


def test_a_rename_into_a_denied_folder_is_refused(repo: Repo) -> None:
    repo.git("mv", "free/c", "vault/c")
    assert judged(repo).errors == ["deny-prefix"]


def test_a_rename_to_another_case_of_a_denied_folder_is_refused(repo: Repo) -> None:
    repo.write("Vault/new")
    assert "deny-prefix" in judged(repo).errors


def test_turning_a_denied_folder_into_a_symlink_is_refused(repo: Repo) -> None:
    repo.git("rm", "-q", "-r", "vault")
    repo.link("vault", "free")
    assert judged(repo).errors == ["deny-prefix"] * 3


def test_turning_a_denied_file_into_a_symlink_or_a_gitlink_is_refused(repo: Repo) -> None:
    (repo.path / "vault/a").unlink()
    repo.link("vault/a", "b")
    assert judged(repo).errors == ["deny-prefix"]
    repo.git("rm", "-q", "--cached", "vault/a")
    (repo.path / "vault/a").unlink()
    repo.gitlink("vault/a")
    assert "deny-prefix" in repo.check().errors


def test_a_mode_that_changes_below_a_denied_folder_is_refused(repo: Repo) -> None:
    repo.git("update-index", "--chmod=+x", "vault/a")
    answer = repo.check()
    assert answer.errors == ["deny-prefix"]
    assert answer.files["vault/a"]["status"] == "mode-changed"


def test_an_exact_move_of_three_hundred_files_is_accepted(repo: Repo) -> None:
    repo.commit({f"old/{number}": f"{number}\n" * 20 for number in range(300)})
    repo.git("mv", "old", "new")
    answer = judged(repo)
    assert (answer.verdict, answer.rules, len(answer.files)) == ("accepted", [], 300)
    assert {row["status"] for row in answer.files.values()} == {"renamed"}
    assert {name: budget["used"] for name, budget in answer.change["limits"].items()} == {
        "max_files": 0,
        "max_added_lines": 0,
    }


def test_deleting_a_file_of_a_denied_suffix_is_accepted(repo: Repo) -> None:
    repo.git("rm", "-q", "lib.min.js")
    assert judged(repo).verdict == "accepted"


def test_a_change_of_a_file_of_a_denied_suffix_is_refused(repo: Repo) -> None:
    repo.write("lib.min.js", "changed\n")
    assert judged(repo).errors == ["deny-suffix"]


def test_denied_paths_that_may_be_deleted_may_be(repo: Repo) -> None:
    repo.policy(POLICY + 'allow_delete = ["vault/a"]\n')
    repo.git("rm", "-q", "vault/a")
    assert judged(repo).verdict == "accepted"
    repo.git("rm", "-q", "vault/b")
    assert judged(repo).errors == ["deny-prefix"]


def test_two_names_that_differ_by_case_collide(repo: Repo) -> None:
    repo.write("free/C", "other\n")
    assert judged(repo).errors == ["path-collision"]


def test_a_file_that_takes_the_place_of_another_case_does_not_collide(repo: Repo) -> None:
    repo.git("mv", "free/c", "free/C")
    assert judged(repo).verdict == "accepted"


@pytest.mark.parametrize("name", ["git~1", "sub/.GIT ", ".g\u200cit/x"])
def test_an_alias_of_the_git_directory_is_refused_staged_and_committed(repo: Repo, name: str) -> None:
    repo.git("config", "core.protectNTFS", "false")
    repo.git("config", "core.protectHFS", "false")
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"x").decode().strip()
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    staged = repo.check()
    assert "path-git-dir" in staged.errors
    commit = repo.ask("commit-tree", "-m", "x", "-p", "HEAD", repo.ask("write-tree"))
    assert repo.check(commit).rules == staged.rules


def test_a_tree_with_a_git_directory_or_dots_inside_is_refused(repo: Repo) -> None:
    blob = bytes.fromhex(repo.git("hash-object", "-w", "--stdin", stdin=b"x").decode())
    for name in (b".git", b"..", b"."):
        raw = b"100644 " + name + b"\0" + blob
        tree = repo.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)
        commit = repo.ask("commit-tree", "-m", "x", "-p", "HEAD", tree.decode().strip())
        answer = repo.check(commit)
        assert answer.verdict != "accepted"
        assert set(answer.errors) & {"path-git-dir", "path-traversal"}


def test_a_hook_config_edited_in_a_merge_is_judged_alike_staged_and_committed(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({".pre-commit-config.yaml": "repos: [] # patchgate\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"free/d": "d\n"})
    repo.git("merge", "-q", "--no-commit", "side")
    repo.write(".pre-commit-config.yaml", "repos: []\n")
    repo.write("free/e")
    assert judged(repo).errors == ["policy-change-not-alone"]
