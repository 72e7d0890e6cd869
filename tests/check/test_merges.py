"""A merge is judged by what a person added while merging, under the policy of its first parent."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.check.commits import check_revision
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UndecidedError
from patchgate.git import merge_paths
from patchgate.git.objects import Objects
from patchgate.git.repository import open_repository
from patchgate.values import replace
from tests.git.histories import build
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

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


def test_a_conflict_is_judged_by_what_differs_from_every_parent(repo: Repo) -> None:
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


def test_an_octopus_is_judged_by_what_git_would_not_have_merged(repo: Repo) -> None:
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


def test_an_octopus_under_way_is_judged_as_its_commit_will_be(repo: Repo) -> None:
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


def test_what_git_carries_to_a_moved_file_is_judged_and_costs_no_budget(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    repo.git("mv", "a", "moved")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "".join(f"{number}\n" for number in range(21))})
    repo.git("merge", "-q", "--no-commit", "--no-ff", "side")
    pending = repo.check()
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    for answer in (pending, repo.check("HEAD")):
        assert (answer.verdict, list(answer.files)) == ("accepted", ["moved"])
        # One line, as the file was under its new name before.
        assert answer.files["moved"]["added_lines"] == 1
        assert answer.change["limits"]["max_files"]["used"] == 0


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


SPACED = "[policy]\n" + "# space\n" * 6 + "[rules]\n"


def halves(repo: Repo) -> tuple[str, str]:
    """Make two changes of one policy whose clean merge has a key twice; `main` has the first."""
    base = repo.policy(SPACED)
    one = repo.policy(SPACED.replace("[policy]\n", "[policy]\nmax_file_bytes = 5000\n"))
    repo.git("checkout", "-q", "-b", "other", base)
    other = repo.policy(SPACED.replace("[rules]", "max_file_bytes = 6000\n[rules]"))
    repo.git("checkout", "-q", "main")
    return one, other


def test_a_clean_merge_may_not_make_a_policy_that_cannot_be_read(repo: Repo) -> None:
    one, other = halves(repo)
    assert repo.check(one).verdict == repo.check(other).verdict == "accepted"
    repo.git("merge", "-q", "--no-commit", "--no-ff", "other")
    pending = repo.check()
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    for answer in (pending, repo.check("HEAD"), repo.check("HEAD", "--policy-from", one)):
        assert (answer.code, answer.errors) == (1, ["policy-invalid"])
        assert answer.findings[0]["path"] == "patchgate.toml"


def test_the_merge_of_a_repair_is_accepted_and_nothing_else_beside_it(repo: Repo) -> None:
    halves(repo)
    repo.git("merge", "-q", "--no-edit", "other")
    broken = repo.head()
    repo.git("checkout", "-q", "-b", "repair")
    repo.policy(POLICY)
    repo.git("checkout", "-q", "-b", "beside", broken)
    repo.commit({"beside": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", "repair")
    for arguments in (("HEAD",), (f"{broken}..HEAD", "--policy-from", broken)):
        assert repo.check(*arguments).verdict == "accepted"
    repo.git("merge", "-q", "--no-ff", "--no-edit", "beside")
    assert repo.check(f"{broken}..HEAD", "--policy-from", broken).verdict == "undecided"


def test_a_policy_that_an_evil_merge_weakens_is_refused_together_with_anything_else(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-commit", "side")
    repo.stage({"patchgate.toml": "[policy]\n", "runs/evil": "x\n"})
    staged = repo.check()
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    for answer in (staged, repo.check("HEAD")):
        assert sorted(answer.errors) == ["deny-prefix", "policy-change-not-alone"]


IN_PYPROJECT = '[project]\nname = "x"\n[tool.patchgate.policy]\ndeny_prefixes = [{}]\n'


@pytest.fixture
def moved_on(tmp_path: Path) -> Repo:
    """`main` made the policy in pyproject.toml stricter and named the hook; the branch `old` did not."""
    made = Repo.create(tmp_path)
    made.commit({"pyproject.toml": IN_PYPROJECT.format(""), ".pre-commit-config.yaml": "repos: []\n"})
    made.git("checkout", "-q", "-b", "old")
    made.commit({".pre-commit-config.yaml": "repos: [] # mine\n", "b": "x\n"})
    made.git("checkout", "-q", "main")
    made.commit({"pyproject.toml": IN_PYPROJECT.format('"runs"')})
    made.commit({".pre-commit-config.yaml": "repos:\n- repo: https://example.com/patchgate\n"})
    return made


@pytest.mark.parametrize("onto", ["main", "old"])
@pytest.mark.parametrize("path", ["pyproject.toml", ".pre-commit-config.yaml"])
def test_no_order_of_the_parents_hides_that_a_merge_takes_the_rules_back(
    moved_on: Repo, onto: str, path: str
) -> None:
    moved_on.git("checkout", "-q", "--detach", onto)
    moved_on.try_git("merge", "-q", "--no-commit", "old" if onto == "main" else "main")
    moved_on.git("checkout", "-q", "main", "--", "pyproject.toml", ".pre-commit-config.yaml")
    moved_on.git("checkout", "-q", "old", "--", path)
    moved_on.stage({"evil": "x\n"})
    staged = moved_on.check("--policy-from", "main")
    moved_on.git("commit", "-q", "--no-verify", "-m", "Merge")
    for answer in (staged, moved_on.check("HEAD", "--policy-from", "main")):
        assert answer.errors == ["policy-change-not-alone"]
        assert [finding["path"] for finding in answer.findings] == [path]


@pytest.mark.parametrize("onto", ["main", "old"])
def test_a_merge_that_keeps_the_rules_of_main_may_solve_other_conflicts(moved_on: Repo, onto: str) -> None:
    moved_on.commit({"b": "y\n"})
    moved_on.git("checkout", "-q", onto)
    moved_on.try_git("merge", "-q", "--no-commit", "old" if onto == "main" else "main")
    moved_on.git("checkout", "-q", "main", "--", ".pre-commit-config.yaml")
    moved_on.stage({"b": "z\n"})
    staged = moved_on.check("--policy-from", "main")
    moved_on.git("commit", "-q", "--no-verify", "-m", "Merge")
    for answer in (staged, moved_on.check("HEAD", "--policy-from", "main")):
        assert (answer.verdict, answer.errors) == ("accepted", [])


def test_an_old_merge_is_no_change_of_the_rules_because_main_has_changed_them_since(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    text = "[project]\n" + "".join(f"k{number} = 1\n" for number in range(9)) + "{}[tool.patchgate.policy]\n"
    repo.commit({"pyproject.toml": text.format(""), "b": "b\n"})
    repo.git("checkout", "-q", "-b", "old")
    repo.commit({"pyproject.toml": text.format("").replace("k0 = 1", "k0 = 2"), "b": "c\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"pyproject.toml": text.format("k = 1\n"), "b": "d\n"})
    repo.git("checkout", "-q", "old")
    repo.try_git("merge", "-q", "main")
    repo.commit({"b": "e\n"}, "Merge")
    repo.git("checkout", "-q", "main")
    repo.commit({"pyproject.toml": text.format("k = 1\n") + 'deny_prefixes = ["runs"]\n'})
    answer = repo.check("main..old", "--policy-from", "main")
    # The last one is the merge into main that will be: another host may join other lines of the policy.
    assert [change["verdict"] for change in answer.changes] == ["accepted", "accepted", "undecided"]


def joined_lines(repo: Repo, files: int) -> str:
    """Merge two lines that each add many files, and join the text of one; then merge two such merges."""
    for line in ("one", "two"):
        repo.git("checkout", "-q", "-B", line, "main")
        repo.commit(
            {f"{line}/f{number}": f"{line} {number}\n" for number in range(files)} | {"c": f"{line}\n"}
        )
    merges = []
    for first, second in (("one", "two"), ("two", "one")):
        repo.git("checkout", "-q", "--detach", first)
        assert repo.try_git("merge", "-q", "--no-commit", second).returncode == 1
        repo.stage({"c": "both\n"})
        repo.git("commit", "-q", "--no-verify", "-m", "Merge")
        merges.append(repo.head())
    repo.git("merge", "-q", "--no-ff", "-m", "Again", merges[0])
    return repo.head()


def test_what_both_sides_and_the_merge_agree_about_is_not_looked_up_file_by_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[int, int] = {}
    real = Objects.entry

    def counted(self: Objects, tree: str, path: bytes) -> object:
        asked[files] += 1
        return real(self, tree, path)

    monkeypatch.setattr(Objects, "entry", counted)
    for files in (3, 12):
        repo = Repo.create(tmp_path / str(files))
        repo.policy('[policy]\ndeny_prefixes = ["runs"]\n[policy.commit]\nmax_files = "off"\n')
        tip = joined_lines(repo, files)
        asked[files] = 0
        assert repo.check(f"main..{tip}", "--policy-from", "main").verdict == "accepted"
    assert asked[12] == asked[3] > 0


def test_what_takes_too_long_to_find_in_merges_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[policy]\ndeny_prefixes = ["runs"]\n')
    tip = joined_lines(repo, 3)
    monkeypatch.setattr(merge_paths, "SECONDS", 0)
    monkeypatch.setattr(merge_paths, "_MORE_EACH", 0)
    answer = repo.check(f"main..{tip}", "--policy-from", "main")
    assert (answer.code, answer.verdict) == (3, "undecided")
    undecided = [change for change in answer.changes if change["verdict"] == "undecided"]
    assert [change["source"]["kind"] for change in undecided] == ["merge", "merge"]
    for change in undecided:
        (reason,) = [gate["reason"] for gate in change["gates"] if gate["outcome"] == "undecided"]
        parents = repo.ask("rev-parse", *(f"{change['commit']}^{number}" for number in (1, 2))).split()
        assert all(each[:12] in reason for each in parents)


def test_budgets_do_not_count_what_a_merge_made_by_itself(repo: Repo) -> None:
    repo.git("checkout", "-q", "side")
    repo.commit({f"many/{number}": "x\n" for number in range(60)})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "side")
    assert repo.check("HEAD").change["limits"]["max_files"]["used"] == 0


@pytest.mark.parametrize("level", ["warning", "off"])
def test_budgets_count_what_a_merge_adds_where_not_everybody_may(tmp_path: Path, level: str) -> None:
    repo = Repo.create(tmp_path)
    text = '[policy]\nallow_roots = ["src"]\n[policy.commit]\nmax_files = 3\nmax_added_lines = 20\n'
    rules = f'[rules]\nmax-files = "error"\nmax-added-lines = "error"\noutside-allow-roots = "{level}"\n'
    repo.policy(text + rules)
    base = repo.commit({"src/a": "1\n"})
    repo.git("branch", "docs")
    side = repo.commit({"src/b": "1\n"})
    repo.git("reset", "-q", "--hard", base)
    repo.git("merge", "-q", "--no-commit", "--no-ff", side)
    repo.stage({f"docs/{number}": "x\n" * 10 for number in range(4)})
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    evil = repo.check("HEAD", "--policy-from", base)
    assert evil.errors == repo.check("HEAD").errors == ["max-files", "max-added-lines"]
    used = {name: each["used"] for name, each in evil.change["limits"].items()}
    assert (used["max_files"], used["max_added_lines"]) == (4, 40)
    # What somebody else committed there is counted in that commit, not in the merge.
    repo.git("checkout", "-q", "docs")
    repo.commit({f"docs/{number}": "x\n" for number in range(3)})
    other = repo.commit({f"docs/{number}": "x\n" for number in range(3, 6)})
    repo.git("checkout", "-q", "--detach", side)
    repo.git("merge", "-q", "--no-commit", "--no-ff", other)
    repo.stage({"docs/own": "x\n"})
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    answer = repo.check("HEAD", "--policy-from", side)
    assert (answer.errors, answer.change["limits"]["max_files"]["used"]) == ([], 1)


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


PROTECTED = '[policy]\ndeny_prefixes = ["protected"]\n'


@pytest.fixture
def guarded(tmp_path: Path) -> Repo:
    """Both change `plain`; `main` alone changes and adds to `protected`, `side` alone deletes there."""
    made = Repo.create(tmp_path)
    made.commit(
        {"plain": "0\n", "protected/policy": "old\n", "protected/both": "0\n", "protected/leak": "leak\n"}
    )
    made.policy(PROTECTED)
    made.git("checkout", "-q", "-b", "side")
    (made.path / "protected" / "leak").unlink()
    made.commit({"plain": "side\n", "protected/both": "side\n", "side": "x\n"})
    made.git("checkout", "-q", "main")
    made.commit(
        {"plain": "main\n", "protected/policy": "new\n", "protected/new": "x\n", "protected/both": "main\n"}
    )
    return made


def begin(repo: Repo, **resolved: str) -> None:
    """Merge `side` into conflict; solve each by our side, or as told."""
    assert repo.try_git("merge", "side").returncode == 1
    repo.git("checkout", "-q", "--ours", "plain", "protected/both")
    repo.stage(resolved)


def staged_and_committed(repo: Repo) -> Answer:
    """Judge the merge under way and then its commit, which must come to the same."""
    staged, whole = repo.check(), repo.check("--worktree")
    repo.git("commit", "-q", "--no-verify", "--no-edit")
    committed = repo.check("HEAD")
    for pending in (staged, whole):
        assert pending.files == committed.files
        assert pending.errors == committed.errors
        for same in ("id", "change_id", "base", "after", "verdict"):
            assert pending.change[same] == committed.change[same]
    return committed


def statuses(answer: Answer) -> dict[str, str]:
    """What happened to each file."""
    return {path: row["status"] for path, row in answer.files.items()}


def test_a_file_that_only_our_side_changed_is_not_reverted_behind_a_conflict(guarded: Repo) -> None:
    begin(guarded)
    guarded.git("checkout", "-q", "side", "--", "protected/policy")
    answer = staged_and_committed(guarded)
    assert (statuses(answer), answer.errors) == ({"protected/policy": "modified"}, ["deny-prefix"])


def test_a_file_that_only_our_side_added_is_not_deleted_behind_a_conflict(guarded: Repo) -> None:
    begin(guarded)
    guarded.git("rm", "-q", "-f", "protected/new")
    answer = staged_and_committed(guarded)
    assert (statuses(answer), answer.errors) == ({"protected/new": "deleted"}, ["deny-prefix"])


def test_a_file_that_the_other_side_deleted_is_not_put_back_behind_a_conflict(guarded: Repo) -> None:
    begin(guarded)
    guarded.git("checkout", "-q", "main", "--", "protected/leak")
    answer = staged_and_committed(guarded)
    assert (statuses(answer), answer.errors) == ({"protected/leak": "added"}, ["deny-prefix"])


def test_a_file_that_is_put_back_is_seen_by_the_gates_that_look_around_it(repo: Repo) -> None:
    # What the merge adds anew is no change of HEAD: its neighbours must be known all the same.
    repo.commit({"deep/a/Name": "x\n", "deep/a/name": "y\n"})
    repo.git("checkout", "-q", "-b", "other")
    repo.git("rm", "-q", "deep/a/Name")
    repo.commit({"b": "other\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"b": "main\n"})
    assert repo.try_git("merge", "other").returncode == 1
    repo.git("checkout", "-q", "HEAD", "--", "deep/a/Name")
    repo.stage({"b": "both\n"})
    answer = staged_and_committed(repo)
    assert answer.errors == ["path-collision"]
    assert statuses(answer) == {"b": "modified", "deep/a/Name": "added"}


def test_an_honest_merge_with_conflicts_is_accepted(guarded: Repo) -> None:
    begin(guarded, plain="both\n")
    answer = staged_and_committed(guarded)
    assert (statuses(answer), answer.verdict) == ({"plain": "modified"}, "accepted")
    assert answer.change["base"] == guarded.ask("rev-parse", "HEAD^1^{tree}")


@pytest.mark.parametrize("side", ["main", "side"])
def test_a_conflict_in_a_denied_path_may_be_solved_by_taking_one_side(guarded: Repo, side: str) -> None:
    begin(guarded)
    guarded.git("checkout", "-q", side, "--", "protected/both")
    answer = staged_and_committed(guarded)
    assert (answer.files, answer.verdict) == ({}, "accepted")


@pytest.mark.parametrize("third", ["both\n", None])
def test_a_conflict_in_a_denied_path_is_not_solved_by_something_else(
    guarded: Repo, third: str | None
) -> None:
    begin(guarded)
    if third is None:
        (guarded.path / "protected" / "both").unlink()
    guarded.stage({"protected/both": third} if third else {})
    answer = staged_and_committed(guarded)
    assert (list(answer.files), answer.errors) == (["protected/both"], ["deny-prefix"])
    # As a change of the first parent, not of what git wrote between markers.
    assert answer.files["protected/both"]["removed_lines"] == 1


def test_a_large_file_beside_a_conflicted_merge_is_judged_alike(guarded: Repo) -> None:
    begin(guarded)
    guarded.stage({"blob": b"\0" * 3000, "plain": "both\n", "zlob": b"\0binary"})
    answer = staged_and_committed(guarded)
    assert {path: row["binary"] for path, row in answer.files.items()} == {
        "blob": True,
        "plain": False,
        "zlob": True,
    }


def renamed_and_deleted(repo: Repo) -> None:
    """`side` moves `protected/policy`, `main` deletes it; the merge of both is begun."""
    repo.git("checkout", "-q", "-B", "main", "main~1")
    repo.git("checkout", "-q", "-B", "side", "main")
    repo.git("mv", "protected/policy", "protected/moved")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.git("rm", "-q", "protected/policy")
    repo.commit()
    assert repo.try_git("merge", "side").returncode == 1


def test_of_a_rename_against_a_deletion_the_renamed_file_may_be_kept(guarded: Repo) -> None:
    renamed_and_deleted(guarded)
    guarded.git("add", "protected/moved")
    assert staged_and_committed(guarded).files == {}


def test_of_a_rename_against_a_deletion_a_protected_file_may_not_go(guarded: Repo) -> None:
    # Neither side deleted it under its new name, and the old one may be a copy that somebody made for this.
    renamed_and_deleted(guarded)
    guarded.git("rm", "-q", "protected/moved")
    answer = staged_and_committed(guarded)
    assert (statuses(answer), answer.errors) == ({"protected/moved": "deleted"}, ["deny-prefix"])


def test_of_a_rename_against_a_deletion_nothing_else_may_be_taken(guarded: Repo) -> None:
    renamed_and_deleted(guarded)
    guarded.git("rm", "-q", "protected/moved")
    guarded.stage({"protected/policy": "old\n"})
    answer = staged_and_committed(guarded)
    assert (statuses(answer), set(answer.errors)) == ({"protected/policy": "renamed"}, {"deny-prefix"})


def file_and_folder(repo: Repo, onto: str = "main") -> None:
    """`side` makes a file of the folder `protected/d`, where `main` changes one; the merge is begun."""
    repo.git("checkout", "-q", "-B", "main", "main~1")
    repo.commit({"protected/d/f": "0\n"})
    repo.git("checkout", "-q", "-B", "side", "main")
    repo.git("rm", "-q", "-r", "protected/d")
    repo.commit({"protected/d": "file\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"protected/d/f": "1\n"})
    repo.git("checkout", "-q", onto)
    assert repo.try_git("merge", "side" if onto == "main" else "main").returncode == 1


def take(repo: Repo, side: str) -> None:
    """Solve every conflict, and all else, as one side has it."""
    repo.git("read-tree", side)
    repo.git("checkout", "-q", "-f", side, "--", ".")
    repo.git("clean", "-q", "-f", "-d")


@pytest.mark.parametrize("onto", ["main", "side"])
@pytest.mark.parametrize("side", ["main", "side"])
def test_of_a_file_against_a_folder_either_may_be_taken(guarded: Repo, side: str, onto: str) -> None:
    file_and_folder(guarded, onto)
    take(guarded, side)
    answer = staged_and_committed(guarded)
    assert (answer.files, answer.verdict) == ({}, "accepted")


def test_of_a_file_against_a_folder_the_file_may_not_take_along_what_was_never_in_conflict(
    guarded: Repo,
) -> None:
    file_and_folder(guarded)
    guarded.git("merge", "--abort")
    guarded.commit({"protected/d/new": "x\n"})
    assert guarded.try_git("merge", "side").returncode == 1
    take(guarded, "side")
    answer = staged_and_committed(guarded)
    assert (statuses(answer), answer.errors) == ({"protected/d/new": "deleted"}, ["deny-prefix"])


def test_a_name_like_that_of_a_file_against_a_folder_opens_nothing(guarded: Repo) -> None:
    guarded.git("checkout", "-q", "side")
    guarded.git("rm", "-q", "protected/policy")
    side = guarded.commit()
    fake = f"protected/leak~{side}"
    guarded.git("checkout", "-q", "-B", "main", "main~1")
    guarded.git("mv", "protected/policy", fake)
    guarded.commit()
    # A rename against a deletion: the new name is in conflict, and looks as if git had made it.
    assert guarded.try_git("merge", "side").returncode == 1
    guarded.git("checkout", "-q", "main", "--", "protected/leak")
    guarded.git("add", fake)
    answer = staged_and_committed(guarded)
    assert (statuses(answer), answer.errors) == ({"protected/leak": "added"}, ["deny-prefix"])


def test_every_merge_of_a_random_history_is_judged_alike_before_and_after_it_is_committed(
    tmp_path: Path,
) -> None:
    repo = Repo.create(tmp_path)
    build(repo, 120, seed=11)
    merges = repo.ask("rev-list", "--merges", "main").split()
    assert len(merges) > 5
    for merge in merges:
        first, *others = repo.ask("rev-parse", f"{merge}^@").split()
        repo.git("update-ref", "--no-deref", "HEAD", first)
        repo.write(".git/MERGE_HEAD", "".join(f"{other}\n" for other in others))
        repo.git("read-tree", merge)
        staged, committed = repo.check(), repo.check(merge)
        assert staged.files == committed.files
        assert staged.errors == committed.errors
        for same in ("id", "change_id", "base", "after", "verdict"):
            assert staged.change[same] == committed.change[same]


def octopus(repo: Repo, tree: str, *parents: str) -> str:
    """Make a merge commit by plumbing."""
    named = [part for parent in parents for part in ("-p", parent)]
    return repo.ask("commit-tree", "-m", "Octopus", *named, tree)


def without(repo: Repo, revision: str, *paths: str) -> str:
    """Make the tree of a revision, less some paths."""
    repo.git("read-tree", revision)
    repo.git("rm", "-q", "--cached", "--", *paths)
    tree = repo.ask("write-tree")
    repo.git("read-tree", "HEAD")
    return tree


def roots(repo: Repo) -> tuple[str, str]:
    """Make two root commits with a harmless file each."""
    made: list[str] = []
    for name in ("one", "two"):
        blob = repo.git("hash-object", "-w", "--stdin", stdin=name.encode()).decode().strip()
        tree = repo.git("mktree", stdin=f"100644 blob {blob}\t{name}\n".encode()).decode().strip()
        made.append(repo.ask("commit-tree", "-m", name, tree))
    return made[0], made[1]


def test_an_octopus_deletes_no_protected_file(guarded: Repo) -> None:
    one, two = roots(guarded)
    tree = without(guarded, "main", "protected/policy")
    answer = guarded.check(octopus(guarded, tree, "main", one, two))
    assert statuses(answer) == {"protected/policy": "deleted", "one": "deleted", "two": "deleted"}
    assert answer.errors == ["deny-prefix"]


def test_an_octopus_that_git_would_make_changes_nothing_of_its_own(guarded: Repo) -> None:
    one, two = roots(guarded)
    guarded.git("read-tree", "main")
    for root, name in ((one, "one"), (two, "two")):
        blob = guarded.ask("rev-parse", f"{root}:{name}")
        guarded.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    tree = guarded.ask("write-tree")
    answer = guarded.check(octopus(guarded, tree, "main", one, two))
    assert (answer.files, answer.verdict) == ({}, "accepted")
    assert answer.change["base"] == answer.change["after"] == tree


def test_an_octopus_with_a_conflict_is_judged_elsewhere_by_what_git_merges(guarded: Repo) -> None:
    one, _ = roots(guarded)
    for order in (("main", "side", one), ("main", one, "side"), (one, "main", "side")):
        kept = guarded.check(octopus(guarded, "main^{tree}", *order), "--policy-from", "main")
        # Nothing that is protected differs from what main has.
        assert (statuses(kept), kept.errors) == ({"side": "deleted", "one": "deleted"}, [])
        tree = without(guarded, "main", "protected/leak")
        evil = guarded.check(octopus(guarded, tree, *order), "--policy-from", "main")
        assert statuses(evil) == {"protected/leak": "deleted", "side": "deleted", "one": "deleted"}
        assert evil.errors == ["deny-prefix"]


def test_a_parent_that_is_no_side_of_a_conflict_lends_nothing(guarded: Repo) -> None:
    old = guarded.ask("rev-parse", "main~1")
    guarded.git("read-tree", without(guarded, "main", "protected/leak"))
    blob, side = guarded.ask("rev-parse", f"{old}:protected/both"), guarded.ask("rev-parse", "side:side")
    guarded.git("update-index", "--cacheinfo", f"100644,{blob},protected/both")
    guarded.git("update-index", "--add", "--cacheinfo", f"100644,{side},side")
    tree = guarded.ask("write-tree")
    for order in (("main", "side", old), (old, "main", "side"), ("main", old, "side")):
        answer = guarded.check(octopus(guarded, tree, *order))
        assert ("protected/both" in answer.files, answer.errors) == (True, ["deny-prefix"])


def test_a_merge_of_nothing_but_ours_under_way_needs_no_tree_that_git_never_wrote(repo: Repo) -> None:
    repo.git("merge", "-q", "--no-commit", "-s", "ours", "side")
    assert sorted(repo.check().files) == ["runs/log", "side"]
    assert sorted(staged_and_committed(repo).files) == ["runs/log", "side"]


def test_a_merge_that_is_named_in_the_environment_is_judged_alike(guarded: Repo) -> None:
    # At pre-merge-commit there is no MERGE_HEAD yet; a strategy's option solved what is in conflict.
    guarded.git("merge", "-q", "--no-commit", "-X", "ours", "side")
    guarded.git("rm", "-q", "-f", "protected/new")
    head = guarded.path / ".git" / "MERGE_HEAD"
    side = head.read_text().strip()
    head.unlink()
    named = Repo(guarded.path, guarded.env | {f"GITHEAD_{side}": "side"}).run("hook", "pre-merge-commit")
    assert named.code == 1
    assert "deletes protected/new" in named.out
    # Only of the commit that comes along: in the merge it is as one side has it.
    assert named.out.count("modifies protected/both") == 1
    head.write_text(side + "\n")
    assert staged_and_committed(guarded).errors == ["deny-prefix"]


def test_no_line_of_gitmodules_hides_a_submodule_that_a_merge_carries(guarded: Repo) -> None:
    guarded.git("checkout", "-q", "-b", "other", "main")
    guarded.write(".gitmodules", '[submodule "s"]\n\tpath = lib/s\n\turl = ./s\n\tignore = all\n')
    guarded.stage()
    guarded.gitlink("lib/s", "1" * 40)
    guarded.git("commit", "-q", "--no-verify", "-m", "A submodule")
    start = guarded.head()
    guarded.gitlink("lib/s", "2" * 40)
    guarded.git("commit", "-q", "--no-verify", "-m", "Move on")
    bumped = guarded.head()
    guarded.git("checkout", "-q", "-f", "-B", "main", start)
    guarded.git("rm", "-q", "--cached", "lib/s")
    guarded.gitlink("protected/s", "1" * 40)
    guarded.git("commit", "-q", "--no-verify", "-m", "Move")
    guarded.gitlink("protected/s", "2" * 40)
    tree = guarded.ask("write-tree")
    merge = guarded.ask("commit-tree", tree, "-p", guarded.head(), "-p", bumped, "-m", "Merge")
    answer = guarded.check("--policy-from", "main", merge)
    assert ("protected/s" in answer.files, answer.errors) == (True, ["deny-prefix"])


def test_findings_without_end_are_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[content]\ndeny = ["evil"]\n')
    repo.commit({"a": "evil\n" * 3})
    repo.commit({"b": "evil\n" * 3})
    opened = open_repository(repo.env, str(repo.path))
    limited = replace(opened, trusts_caches=False)
    monkeypatch.setattr("patchgate.check.commits.MOST_FINDINGS", 5)
    assert len(check_revision(opened, "HEAD~2..HEAD", CheckOptions()).changes) == 2
    with pytest.raises(UndecidedError, match="findings"):
        check_revision(limited, "HEAD~2..HEAD", CheckOptions())
    monkeypatch.setattr("patchgate.check.gate.MOST_FINDINGS", 2)
    (content,) = (each for each in repo.check("HEAD").change["gates"] if each["gate"] == "content")
    assert content["outcome"] == "undecided"
