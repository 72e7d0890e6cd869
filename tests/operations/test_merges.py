"""A merge is judged by what a person added while merging, under the policy of its first parent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.world import Repo

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Two branches: `side` adds to the denied folder, `main` adds elsewhere; no conflict."""
    made = Repo.create(tmp_path)
    made.policy(POLICY)
    made.commit({"a": "".join(f"{number}\n" for number in range(20)), "b": "b\n"}, "First")
    made.git("checkout", "-q", "-b", "side")
    made.commit({"runs/log": "x\n", "side": "x\n"})
    made.git("checkout", "-q", "main")
    made.commit({"main": "x\n"})
    return made


def test_an_ordinary_merge_changes_nothing_of_its_own(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-edit", "side")
    answer = repo.check("HEAD")
    assert (answer.change["source"]["kind"], answer.files, answer.verdict) == ("merge", {}, "accepted")
    assert answer.change["base"] == answer.change["after"] == repo.ask("rev-parse", "HEAD^{tree}")
    assert answer.change["base_commit"] == repo.ask("rev-parse", "HEAD^1")


def test_what_an_evil_merge_smuggles_in_is_seen(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-commit", "side")
    repo.stage({"runs/evil": "x\n", "b": "evil\n"})
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    committed = repo.check("HEAD")
    for answer in (staged, committed):
        assert sorted(answer.files) == ["b", "runs/evil"]
        assert answer.errors == ["deny-prefix"]
    assert staged.change["id"] == committed.change["id"]


def test_what_an_evil_merge_leaves_out_is_seen(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-commit", "side")
    repo.git("rm", "-q", "-f", "runs/log")
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    answer = repo.check("HEAD")
    assert {path: row["status"] for path, row in answer.files.items()} == {"runs/log": "deleted"}
    assert answer.errors == ["deny-prefix"]


def test_a_merge_that_only_keeps_our_side_shows_all_that_it_drops(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-edit", "-s", "ours", "side")
    assert sorted(repo.check("HEAD").files) == ["runs/log", "side"]


def test_a_clean_merge_under_way_is_judged_as_its_commit_will_be(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-commit", "side")
    staged = repo.check()
    assert (staged.change["source"]["kind"], staged.files) == ("merge", {})
    assert repo.check("--worktree").files == {}
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    assert repo.check("HEAD").change["id"] == staged.change["id"]


def conflicted(repo: Repo) -> None:
    """Bring both branches into conflict over `a`, and begin the merge."""
    repo.git("checkout", "-q", "side")
    repo.commit({"a": "side\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "main\n"})
    assert repo.try_git("merge", "side").returncode == 1


def test_of_a_conflicted_merge_only_what_differs_from_every_parent_is_judged(repo: Repo) -> None:
    conflicted(repo)
    repo.stage({"a": "main\nside\n"})
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    committed = repo.check("HEAD")
    for answer in (staged, committed):
        assert list(answer.files) == ["a"]
        assert answer.verdict == "accepted"
    assert staged.change["id"] == committed.change["id"]
    assert staged.change["after"] == repo.ask("rev-parse", "HEAD^{tree}")


def test_a_conflict_that_is_solved_by_taking_one_side_changes_nothing_of_its_own(repo: Repo) -> None:
    conflicted(repo)
    repo.git("checkout", "-q", "--theirs", "a")
    repo.git("add", "a")
    assert repo.check().files == {}
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    assert repo.check("HEAD").files == {}


def test_what_is_smuggled_into_a_conflicted_merge_is_seen(repo: Repo) -> None:
    conflicted(repo)
    repo.stage({"a": "both\n", "runs/evil": "x\n", "runs/log": "evil\n"})
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    for answer in (staged, repo.check("HEAD")):
        assert sorted(answer.files) == ["a", "runs/evil", "runs/log"]
        assert answer.errors == ["deny-prefix", "deny-prefix"]


def test_left_over_markers_of_a_conflict_are_refused(repo: Repo) -> None:
    conflicted(repo)
    repo.git("add", "a")
    assert set(repo.check().errors) == {"conflict-marker"}


def test_an_octopus_is_judged_by_what_differs_from_every_parent(repo: Repo) -> None:
    for name in ("one", "two"):
        repo.git("checkout", "-q", "-b", name, "HEAD~1")
        repo.commit({f"runs/{name}": "x\n"})
        repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "one", "two")
    assert len(repo.ask("rev-parse", "HEAD^@").split()) == 3
    ordinary = repo.check("HEAD")
    assert (ordinary.files, ordinary.verdict) == ({}, "accepted")
    repo.stage({"runs/evil": "x\n"})
    tree = repo.ask("write-tree")
    parents = [part for parent in repo.ask("rev-parse", "HEAD^@").split() for part in ("-p", parent)]
    evil = repo.ask("commit-tree", "-m", "evil", *parents, tree)
    assert list(repo.check(evil).files) == ["runs/evil"]
    assert repo.check(evil).errors == ["deny-prefix"]


def test_an_octopus_under_way_is_judged_by_what_differs_from_every_parent(repo: Repo) -> None:
    for name in ("one", "two"):
        repo.git("checkout", "-q", "-b", name, "HEAD~1")
        repo.commit({f"runs/{name}": "x\n"})
        repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-commit", "one", "two")
    assert repo.check().files == {}
    repo.stage({"runs/evil": "x\n"})
    staged = repo.check()
    assert list(staged.files) == ["runs/evil"]
    repo.git("commit", "-q", "--no-verify", "-m", "x")
    assert repo.check("HEAD").change["id"] == staged.change["id"]


def test_unrelated_histories_are_merged_like_others(repo: Repo) -> None:
    repo.git("checkout", "-q", "--orphan", "other")
    repo.git("rm", "-q", "-rf", ".")
    repo.commit({"other": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "--allow-unrelated-histories", "other")
    assert repo.check("HEAD").files == {}


def test_a_file_that_was_moved_on_one_side_and_changed_on_the_other_is_no_own_change(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    repo.git("mv", "a", "moved")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "".join(f"{number}\n" for number in range(21))})
    repo.git("merge", "-q", "--no-edit", "side")
    assert repo.check("HEAD").files == {}


@pytest.mark.parametrize("setting", ["merge.renames=false", "merge.directoryRenames=true", "merge.ff=only"])
def test_no_setting_changes_the_merge_that_is_the_base(repo: Repo, setting: str) -> None:
    repo.git("checkout", "-q", "side")
    repo.git("mv", "a", "moved")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "".join(f"{number}\n" for number in range(21))})
    repo.git("merge", "-q", "--no-edit", "side")
    plain = repo.check("HEAD").changes
    key, _, value = setting.partition("=")
    repo.git("config", key, value)
    assert repo.check("HEAD").changes == plain


def test_the_policy_of_the_first_parent_judges_a_merge(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    repo.policy('[policy]\ndeny_prefixes = ["runs", "secret"]\n')
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-commit", "side")
    repo.stage({"secret/x": "x\n"})
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    answer = repo.check("HEAD")
    assert answer.verdict == "accepted"
    assert answer.change["policy"]["from"] == f"{repo.ask('rev-parse', 'HEAD^1')[:12]}:patchgate.toml"


def test_a_policy_that_a_merge_brings_along_is_no_change_of_its_own(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    repo.policy("[policy]\n")
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "side")
    assert repo.check("HEAD").verdict == "accepted"


def test_a_policy_that_an_evil_merge_weakens_is_refused_together_with_anything_else(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-commit", "side")
    repo.stage({"patchgate.toml": "[policy]\n", "runs/evil": "x\n"})
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    for answer in (staged, repo.check("HEAD")):
        assert sorted(answer.errors) == ["deny-prefix", "policy-change-not-alone"]


def test_budgets_do_not_count_what_a_merge_made_by_itself(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    repo.commit({f"many/{number}": "x\n" for number in range(60)})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "side")
    assert repo.check("HEAD").change["limits"]["max_files"]["used"] == 0


@pytest.mark.parametrize("place", [".gitattributes", ".git/info/attributes"])
@pytest.mark.parametrize("attribute", ["merge=trap", "merge=union", "-merge"])
def test_attributes_do_not_change_the_merge_that_is_the_base(
    repo: Repo, tmp_path: Path, place: str, attribute: str
) -> None:
    repo.git("checkout", "-q", "side")
    repo.commit({"a": "".join(f"{number}\n" for number in range(-1, 20)), "b": "side\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "".join(f"{number}\n" for number in range(21)), "b": "main\n"})
    assert repo.try_git("merge", "side").returncode == 1
    repo.stage({"b": "both\n"})
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    plain = repo.check("HEAD").changes
    trap = repo.write(".git/trap", f"#!/bin/sh\necho x >> '{tmp_path}/ran'\nexit 0\n", executable=True)
    repo.git("config", "merge.trap.driver", f"{trap} %A")
    repo.write(place, f"* {attribute}\n")
    if place == ".gitattributes":
        repo.git("add", place)
    assert repo.check("HEAD").changes == plain
    assert not (tmp_path / "ran").exists()


def test_a_merge_of_a_tree_that_is_missing_is_undecided(repo: Repo) -> None:
    parents = [part for parent in ("main", "side") for part in ("-p", parent)]
    tree = repo.ask("rev-parse", "main^{tree}")
    merge = repo.ask("commit-tree", "-m", "x", *parents, tree)
    side = repo.ask("rev-parse", "side^{tree}")
    (repo.path / ".git" / "objects" / side[:2] / side[2:]).unlink()
    answer = repo.check(merge)
    assert answer.code == 3
    assert answer.error["message"].startswith("git merge-tree failed")


def test_a_merge_of_sha256_objects_is_judged_alike(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--object-format=sha256")
    repo.commit({"a": "a\n"})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"side": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"main": "x\n"})
    repo.git("merge", "-q", "--no-commit", "side")
    repo.stage({"evil": "x\n"})
    staged = repo.check()
    assert list(staged.files) == ["evil"]
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    assert repo.check("HEAD").change["id"] == staged.change["id"]


def test_a_merge_in_a_linked_worktree_is_judged_alike(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "work", str(tmp_path / "linked"))
    linked = repo.at(tmp_path / "linked")
    linked.git("merge", "-q", "--no-commit", "side")
    linked.stage({"runs/evil": "x\n"})
    staged = linked.check()
    assert list(staged.files) == ["runs/evil"]
    linked.git("commit", "-q", "--no-verify", "--no-edit")
    assert repo.check("work").change["id"] == staged.change["id"]


def test_a_merge_in_a_shallow_clone_is_judged_alike_where_its_base_is_there(
    repo: Repo, tmp_path: Path
) -> None:
    repo.git("merge", "-q", "--no-edit", "side")
    repo.git("clone", "-q", "--depth=3", repo.path.as_uri(), str(tmp_path / "shallow"))
    shallow = repo.at(tmp_path / "shallow")
    assert shallow.ask("rev-parse", "--is-shallow-repository") == "true"
    assert shallow.check("HEAD").change["id"] == repo.check("HEAD").change["id"]
