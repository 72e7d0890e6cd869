"""`check --patch --base REV`: judged against a commit, merged with what came after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import open_repository
from patchgate.patches.check_patch import is_as_judged, judge_patch
from tests.proposals import ABC, addition, assert_lands_as_judged, change_of, check, moved, refusal
from tests.world import Answer, Repo

TWENTY = "".join(f"{number}\n" for number in range(20))
FIRST = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-0\n+zero\n 1\n 2\n"
TENTH = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -9,5 +9,5 @@\n 8\n 9\n-10\n+TEN\n 11\n 12\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path)


def two_commits(repo: Repo) -> str:
    """Make a file, then change its tenth line; give the first commit."""
    base = repo.commit({"f": TWENTY})
    repo.commit({"f": TWENTY.replace("10\n", "ten\n")})
    return base


def test_a_patch_for_an_older_commit_is_merged_and_the_result_is_judged(repo: Repo) -> None:
    base = two_commits(repo)
    answer = check(repo, FIRST, "--base", base)
    assert (answer.code, answer.rules, list(answer.files)) == (0, [], ["f"])
    assert answer.change["base"] == repo.ask("rev-parse", "HEAD^{tree}")
    repo.stage({"f": TWENTY.replace("10\n", "ten\n").replace("0\n", "zero\n", 1)})
    staged = repo.check("--cached", "--profile", "agent").change
    assert (staged["after"], staged["id"]) == (answer.change["after"], answer.change["id"])


def test_a_conflict_with_what_came_after_is_refused_with_both_sides(repo: Repo) -> None:
    base = two_commits(repo)
    answer = check(repo, TENTH, "--base", base)
    assert refusal(answer) == ("git_check", "PATCH_GIT_CHECK_FAIL", ["base-conflict"])
    (finding,) = answer.findings
    assert finding["path"] == "f"
    assert (finding["details"]["ours"], finding["details"]["theirs"]) == (["ten"], ["TEN"])


def test_a_refusal_names_the_commit_that_the_patch_fits(repo: Repo) -> None:
    base = two_commits(repo)
    (finding,) = check(repo, TENTH).findings
    assert finding["hint"].endswith(f" --base {base[:12]}")


def test_a_refusal_that_fits_nowhere_names_no_commit_also_beside_a_submodule(repo: Repo) -> None:
    """The commit of a submodule is not in the repository, and must not be looked for."""
    two_commits(repo)
    repo.gitlink("module")
    repo.git("commit", "-q", "-m", "Add a module")
    (repo.path / "module").mkdir()
    module = (
        b"diff --git a/module b/module\nindex 1111111..2222222 160000\n--- a/module\n+++ b/module\n"
        b"@@ -1 +1 @@\n-Subproject commit " + b"1" * 40 + b"\n+Subproject commit " + b"2" * 40 + b"\n"
    )
    answer = check(repo, TENTH.replace(b"-10", b"-nope") + module)
    assert "hunk-mismatch" in refusal(answer)[2]
    assert "--base" not in answer.findings[0]["hint"]


def test_head_itself_as_base_ignores_index_and_files(repo: Repo) -> None:
    repo.commit({"f": ABC})
    repo.stage({"f": "staged\n"})
    repo.write("f", "on disk\n")
    answer = check(repo, change_of(), "--base", "HEAD")
    assert answer.code == 0
    assert answer.change["base"] == repo.ask("rev-parse", "HEAD^{tree}")
    repo.git("reset", "-q", "--hard")
    assert assert_lands_as_judged(repo, change_of()).change["id"] == answer.change["id"]


def test_a_bare_repository_is_judged_by_the_policy_of_the_base(repo: Repo) -> None:
    repo.commit({"f": ABC})
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n")
    bare = repo.at(repo.path.parent / "bare")
    repo.git("clone", "-q", "--bare", ".", str(bare.path))
    assert check(bare, change_of(), "--base", "main").code == 0
    assert refusal(check(bare, addition(b"runs/x"), "--base", "main"))[2] == ["deny-prefix"]
    answer = check(bare, change_of())
    assert (answer.code, answer.error["hint"].endswith("--base REV")) == (2, True)


@pytest.mark.parametrize(
    "revision", ["nowhere", "--all", "", "HEAD:f", "HEAD^{tree}", "HEAD~9", "a b", "a\nb"]
)
def test_what_names_no_commit_is_a_wrong_argument(repo: Repo, revision: str) -> None:
    repo.commit({"f": ABC})
    assert check(repo, change_of(), "--base", revision).code == 2


def test_a_base_that_is_no_ancestor_is_judged_by_itself(repo: Repo) -> None:
    repo.commit({"f": ABC})
    repo.git("checkout", "-q", "-b", "side")
    side = repo.commit({"f": ABC + "more\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"g": "g\n"})
    answer = check(repo, change_of(), "--base", side)
    assert answer.change["base"] == repo.ask("rev-parse", f"{side}^{{tree}}")


def test_a_merge_driver_neither_runs_nor_decides(repo: Repo) -> None:
    """Measured: a driver of `.git/config` ran in merge-tree, and its result was judged."""
    repo.commit({".gitattributes": "* merge=mine\n"})
    base = two_commits(repo)
    trap = repo.path.parent / "ran"
    repo.git("config", "merge.mine.driver", f"touch '{trap}'")
    repo.git("config", "merge.default", "mine")
    repo.write(".git/info/attributes", "* merge=mine\n")
    assert list(check(repo, FIRST, "--base", base).files) == ["f"]
    assert refusal(check(repo, TENTH, "--base", base))[2] == ["base-conflict"]
    assert not trap.exists()


def test_a_file_that_head_deleted_conflicts_with_its_change(repo: Repo) -> None:
    base = repo.commit({"f": ABC, "g": "g\n"})
    (repo.path / "f").unlink()
    repo.commit()
    assert refusal(check(repo, change_of(), "--base", base))[2] == ["base-conflict"]


def test_policy_judges_the_merged_result(repo: Repo) -> None:
    base = repo.commit({"f": ABC})
    repo.policy("[policy]\ndeny_prefixes = ['runs']\n")
    assert refusal(check(repo, addition(b"runs/x"), "--base", base))[2] == ["deny-prefix"]


def apply(repo: Repo, patch: bytes, *arguments: str) -> Answer:
    return repo.run("apply", "-", "--format", "json", *arguments, stdin=patch)


def refused_whole(repo: Repo, patch: bytes, base: str = "HEAD") -> tuple[int, list[str]]:
    """Apply a patch that must be refused, dry and for real, and see that no file was written."""
    before = repo.git("status", "--porcelain", "--ignored")
    dry = apply(repo, patch, "--base", base, "--dry-run")
    answer = apply(repo, patch, "--base", base)
    assert repo.git("status", "--porcelain", "--ignored") == before
    assert (dry.code, dry.errors) == (answer.code, answer.errors)
    return answer.code, answer.errors


@pytest.mark.parametrize("name", [b"d/f", b"sub/x", b"README.md", b"free"])
def test_a_base_that_head_does_not_contain_can_be_judged_but_not_applied(repo: Repo, name: bytes) -> None:
    """A file that a sparse checkout leaves out, a submodule's folder, a colliding name: all were written."""
    repo.commit({"a": "a\n"})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"z": "z\n"})
    repo.git("checkout", "-q", "main")
    repo.write("d/f", "precious\n")
    repo.write("readme.MD", "x\n")
    repo.gitlink("sub")
    repo.git("add", "d", "readme.MD")
    repo.git("commit", "-q", "-m", "More")
    repo.git("update-index", "--skip-worktree", "d/f")
    (repo.path / "d/f").unlink()
    assert check(repo, addition(name), "--base", "side").code == 0
    before = repo.git("status", "--porcelain")
    for arguments in ((), ("--dry-run",), ("--index",)):
        answer = apply(repo, addition(name), "--base", "side", *arguments)
        assert (answer.code, "contain side" in answer.error["message"]) == (2, True)
    assert repo.git("status", "--porcelain") == before
    assert not (repo.path / name.decode()).exists()


def test_a_patch_for_a_commit_cannot_be_applied_before_the_first_one(repo: Repo) -> None:
    repo.commit({"f": ABC})
    repo.git("checkout", "-q", "--orphan", "fresh")
    answer = apply(repo, addition(b"new"), "--base", "main")
    assert (answer.code, "contain main" in answer.error["message"]) == (2, True)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize(
    ("staged", "made"), [("readme.md", b"README.md"), ("Docs/x", b"docs/y"), ("e\u0301", "\u00e9".encode())]
)
def test_a_new_name_collides_with_a_staged_one_also_with_a_base(
    repo: Repo, older: bool, staged: str, made: bytes
) -> None:
    base = two_commits(repo)
    repo.stage({staged: "mine\n"})
    assert refused_whole(repo, addition(made), base if older else "HEAD") == (1, ["path-collision"])


@pytest.mark.parametrize("older", [False, True])
def test_a_new_name_behind_a_link_or_a_staged_submodule_is_refused_also_with_a_base(
    repo: Repo, older: bool
) -> None:
    base = two_commits(repo) if older else "HEAD"
    repo.commit({"g": "g\n"})
    repo.link("link", "/tmp")
    repo.gitlink("module")
    for name in (b"link/x", b"module/x"):
        assert refused_whole(repo, addition(name), base) == (1, ["path-symlink"])


@pytest.mark.parametrize("how", ["on disk", "staged", "left out"])
def test_a_new_file_where_something_stands_is_refused_also_with_a_base(repo: Repo, how: str) -> None:
    two_commits(repo)
    repo.write("new", "mine\n")
    if how != "on disk":
        repo.git("add", "new")
    if how == "left out":
        repo.git("update-index", "--skip-worktree", "new")
        (repo.path / "new").unlink()
    assert refused_whole(repo, addition(b"new")) == (1, ["base-conflict"])


def test_a_name_that_differs_in_case_alone_may_still_be_changed_with_a_base(repo: Repo) -> None:
    repo.commit({"readme.md": "x\n"})
    repo.stage({"other": "staged\n"})
    assert apply(repo, moved(b"readme.md", b"README.md"), "--base", "HEAD").code == 0
    assert sorted(path.name for path in repo.path.glob("[rR]*")) == ["README.md"]


def test_what_is_staged_while_a_patch_for_a_commit_is_tried_is_seen(repo: Repo) -> None:
    two_commits(repo)
    repository = open_repository(repo.env, str(repo.path))
    with judge_patch(repository, addition(b"README.md"), CheckOptions(), base="HEAD", lands=True) as judged:
        repo.git("update-index", "--force-write-index")
        assert is_as_judged(repository, judged)
        repo.stage({"readme.md": "mine\n"})
        assert not is_as_judged(repository, judged)
