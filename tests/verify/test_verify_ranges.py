"""What is compared with what, and what belongs to the work: trees, rewritten branches, merges, bases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.verify.verify_world import NEW, Workshop, places

pytestmark = pytest.mark.turns(3)

BAD = "1\nBAD one\n"
SUPPRESSIONS = '[verify]\nsuppressions = ["lists/known.json"]\n'


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop.open(tmp_path)


# A tree has no scope


def tagged(shop: Workshop) -> str:
    shop.git("tag", "-a", "-m", "a tree", "a-tree", "HEAD^{tree}")
    return "a-tree"


@pytest.mark.parametrize("name", ["HEAD^{tree}", "a-tree"])
def test_under_an_intent_a_bare_tree_is_refused_for_nobody_knows_its_scope(shop: Workshop, name: str) -> None:
    tagged(shop)
    intent = shop.declare("a.py")
    for arguments in ([name], [name, "--intent", intent]):
        done = shop.cli("verify", *arguments)
        assert done.code == 2
        assert " tree" in done.err.splitlines()[0]
        assert "help: " in done.err
        assert "commit" in done.err
        assert ("--base" in done.err) == (len(arguments) == 1)
    assert shop.verify(name, "--base", "HEAD")["status"] == "accepted"


def test_what_is_staged_may_be_named_and_has_its_scope(shop: Workshop) -> None:
    shop.commit({"b.py": BAD})
    shop.stage({"a.py": "2\n"})
    assert shop.verify("staged")["status"] == "accepted"
    shop.declare("a.py")
    shop.stage({"b.py": "2\n"})
    assert shop.verify("staged")["scope"]["unexpected_files"] == ["b.py"]


# What is undone


def test_what_an_amend_takes_back_is_touched(shop: Workshop) -> None:
    shop.commit({"b.py": "5\n"}, "Mend b")
    name = shop.declare("a.py")
    shop.stage({"a.py": "2\n", "b.py": "1\n"})
    shop.git("commit", "-q", "--amend", "-m", f"Change a\n\nPatchgate-Intent: {name}")
    told = shop.verify("HEAD")
    assert told["status"] == "violated"
    assert told["scope"]["unexpected_files"] == ["b.py"]


@pytest.mark.parametrize("how", ["--soft", "--mixed", "--hard"])
def test_what_a_reset_takes_back_is_touched(shop: Workshop, how: str) -> None:
    shop.commit({"b.py": "5\n", "c.py": "1\n", "patchgate.toml": shop.policy_text(NEW) + "# more\n"})
    shop.declare("a.py")
    shop.git("reset", "-q", how, "HEAD~1")
    shop.git("reset", "-q")
    told = shop.verify()
    assert told["status"] == "violated"
    assert told["scope"]["unexpected_files"] == ["b.py", "c.py"]
    assert told["scope"]["forbidden_touched"] == ["patchgate.toml"]


def test_what_a_reset_leaves_staged_is_as_it_was_and_not_touched_by_it(shop: Workshop) -> None:
    shop.commit({"b.py": "5\n"})
    shop.declare("b.py")
    shop.git("reset", "-q", "--soft", "HEAD~1")
    told = shop.verify()
    assert told["status"] == "accepted"
    assert any("contain" in each for each in told["warnings"])


def test_a_rebase_is_not_blamed_for_what_the_others_did_meanwhile(shop: Workshop) -> None:
    shop.git("branch", "theirs")
    shop.commit({"c.py": "1\n"}, "Before the intent")
    name = shop.declare("a.py")
    shop.commit({"a.py": "2\n"}, f"Mine\n\nPatchgate-Intent: {name}")
    shop.git("checkout", "-q", "theirs")
    shop.commit({"b.py": BAD}, "Theirs")
    shop.git("checkout", "-q", "main")
    shop.git("rebase", "-q", "theirs")
    told = shop.verify("HEAD")
    assert told["status"] == "accepted_with_external_changes"
    assert [each["subject"] for each in told["external_commits"]] == ["Theirs", "Before the intent"]
    # A rebase that leaves out what was committed before undoes it.
    shop.git("rebase", "-q", "--onto", "HEAD~2", "HEAD~1")
    assert shop.verify("HEAD")["scope"]["unexpected_files"] == ["c.py"]


def test_on_a_branch_without_a_commit_everything_that_is_gone_is_touched(shop: Workshop) -> None:
    shop.git("config", "patchgate.trustRef", "refs/heads/main")
    shop.declare("a.py")
    shop.git("checkout", "-q", "--orphan", "fresh")
    shop.git("rm", "-q", "--cached", "b.py")
    told = shop.verify()
    assert "b.py" in told["scope"]["unexpected_files"]


# What was committed before the intent


def test_a_revision_from_before_the_intent_is_verified_without_it(shop: Workshop) -> None:
    shop.commit({"a.py": BAD})
    shop.commit({"a.py": "3\n"})
    name = shop.declare("a.py")
    told = shop.verify("HEAD~1")
    assert (told["intent"], told["scope"]) == (None, None)
    assert told["before"]["tree"] == shop.ask("rev-parse", "HEAD~2^{tree}")
    (warning,) = told["warnings"]
    assert ("before" in warning, name in warning) == (True, True)
    done = shop.cli("verify", "HEAD~1", "--intent", name)
    assert done.code == 2
    assert ("before" in done.err, name in done.err) == (True, True)
    assert "--intent" in done.err
    assert shop.verify("HEAD")["intent"] == name


# What a merge is about to bring


def test_the_commits_of_a_merge_that_is_staged_are_named(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.git("checkout", "-q", "-b", "theirs")
    theirs = shop.commit({"b.py": BAD}, "Theirs")
    mine = shop.commit({"a.py": "2\n"}, f"Mine\n\nPatchgate-Intent: {name}")
    shop.git("checkout", "-q", "main")
    shop.git("merge", "-q", "--no-ff", "--no-commit", "theirs")
    told = shop.verify()
    assert told["external_commits"] == [{"commit": theirs, "subject": "Theirs"}]
    assert told["scope"]["untouched"] == []
    assert places(told["external_regressions"]) == [("b.py", 2)]
    assert mine not in str(told["external_commits"])
    # HEAD itself brings nothing.
    assert shop.verify("HEAD")["external_commits"] == []


# With a base


def branched(shop: Workshop) -> str:
    """Let main mend a finding after a branch left it; give the commit where they part."""
    fork = shop.commit({"a.py": BAD})
    shop.git("checkout", "-q", "-b", "feature")
    shop.commit({"b.py": "2\n"})
    shop.git("checkout", "-q", "main")
    shop.commit({"a.py": "3\n"}, "Mend it")
    shop.git("checkout", "-q", "feature")
    return fork


def test_a_base_that_went_on_is_compared_at_the_commit_where_the_two_part(shop: Workshop) -> None:
    fork = branched(shop)
    told = shop.verify("HEAD", "--base", "main")
    assert (told["status"], told["base"]) == ("accepted", fork)
    assert told["before"]["tree"] == shop.ask("rev-parse", f"{fork}^{{tree}}")
    assert f"  base {fork[:12]}\n" in shop.cli("verify", "HEAD", "--base", "main").out
    shop.commit({"b.py": BAD})
    assert places(shop.verify("HEAD", "--base", "main")["intent_regressions"]) == [("b.py", 2)]


def test_what_is_staged_is_compared_where_head_leaves_the_base(shop: Workshop) -> None:
    fork = branched(shop)
    shop.stage({"b.py": BAD})
    told = shop.verify("--base", "main")
    assert told["base"] == fork
    assert places(told["intent_regressions"]) == [("b.py", 2)]
    assert shop.verify()["base"] is None


def test_the_policy_is_that_of_the_base_and_not_that_of_where_they_part(shop: Workshop) -> None:
    branched(shop)
    shop.commit({"a.py": BAD + "BAD two\n"})
    shop.git("checkout", "-q", "main")
    shop.commit({"patchgate.toml": shop.policy_text((*NEW[:2], 7))})
    shop.git("checkout", "-q", "feature")
    assert shop.verify("HEAD", "--base", "main")["thresholds"][0]["max"] == 7
    assert shop.verify("HEAD")["thresholds"][0]["max"] == 0


def test_where_no_commit_is_in_common_the_base_itself_is_compared(shop: Workshop) -> None:
    other = shop.ask("commit-tree", "HEAD^{tree}", "-m", "Another root")
    shop.commit({"b.py": BAD})
    told = shop.verify("HEAD", "--base", other)
    assert (told["base"], told["warnings"]) == (other, [])
    assert places(told["intent_regressions"]) == [("b.py", 2)]


def test_a_shallow_clone_that_does_not_show_where_they_part_says_so(shop: Workshop, tmp_path: Path) -> None:
    fork = branched(shop)
    where = str(tmp_path / "shallow")
    shop.git("clone", "-q", "--depth", "1", "--no-single-branch", f"file://{shop.path}", where)
    shallow = Workshop(tmp_path / "shallow", shop.env)
    told = shallow.verify("HEAD", "--base", "origin/main")
    assert told["base"] == shop.ask("rev-parse", "main")
    (warning,) = told["warnings"]
    assert "shallow" in warning
    shallow.git("fetch", "-q", "--unshallow")
    told = shallow.verify("HEAD", "--base", "origin/main")
    assert (told["base"], told["warnings"]) == (fork, [])


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        (["nope"], ["commit", "branch", "tag", "staged"]),
        (["HEAD", "--base", "nope"], ["commit", "branch", "tag"]),
        (["HEAD", "--base", "staged"], ["commit", "branch", "tag"]),
        (["HEAD", "--base", "worktree"], ["commit", "branch", "tag"]),
    ],
)
def test_a_hint_names_only_what_is_taken(shop: Workshop, arguments: list[str], kinds: list[str]) -> None:
    done = shop.cli("verify", *arguments)
    assert done.code == 2
    assert named(done.err) == kinds


def named(err: str) -> list[str]:
    """Give the kinds of revisions that a hint names, in its order."""
    (hint,) = (line for line in err.splitlines() if line.startswith("help: "))
    return re.findall(r"\b(commit|branch|tag|staged|worktree)\b", hint)


def test_what_verify_does_not_take_is_told_with_what_to_type(shop: Workshop) -> None:
    done = shop.cli("verify", "worktree")
    (hint,) = (line for line in done.err.splitlines() if line.startswith("help: "))
    assert (done.code, "git add" in hint, hint.endswith(" git patchgate verify")) == (2, True, True)


def test_the_hint_of_analyze_names_all_that_it_takes(shop: Workshop) -> None:
    done = shop.cli("analyze", "--tree", "nope")
    assert named(done.err) == ["commit", "branch", "tag", "staged", "worktree"]


# Baselines that are no files


def listed(tmp_path: Path) -> Workshop:
    return Workshop.open(tmp_path, {"lists/known.json": '["x"]\n'}, more=SUPPRESSIONS)


def test_a_baseline_that_becomes_a_link_has_grown(tmp_path: Path) -> None:
    shop = listed(tmp_path)
    (shop.path / "lists/known.json").rename(shop.path / "lists/more.json")
    (shop.path / "lists/known.json").symlink_to("more.json")
    shop.stage()
    assert shop.verify()["baseline_abuse"]["suppression_files"] == ["lists/known.json"]
    shop.git("commit", "-q", "-m", "A link")
    shop.stage({"a.py": "2\n"})
    assert shop.verify()["baseline_abuse"]["detected"] is False
    (shop.path / "lists/known.json").unlink()
    (shop.path / "lists/known.json").symlink_to("other.json")
    shop.stage()
    assert shop.verify()["baseline_abuse"]["suppression_files"] == ["lists/known.json"]


def test_a_baseline_that_becomes_a_folder_or_lies_behind_a_link_has_grown(tmp_path: Path) -> None:
    shop = listed(tmp_path)
    (shop.path / "lists/known.json").unlink()
    shop.stage({"lists/known.json/a.json": '["x", "y"]\n'})
    assert shop.verify()["baseline_abuse"]["suppression_files"] == ["lists/known.json"]
    shop.git("reset", "-q", "--hard")
    (shop.path / "lists").rename(shop.path / "elsewhere")
    (shop.path / "lists").symlink_to("elsewhere")
    shop.stage()
    assert shop.verify()["baseline_abuse"]["suppression_files"] == ["lists/known.json"]


def test_a_file_that_is_control_by_what_it_holds_is_no_code_beside_a_baseline(tmp_path: Path) -> None:
    hooks, other = "repos: []  # patchgate\n", "repos: []  # patchgate, and more\n"
    shop = Workshop.open(
        tmp_path, {"lists/known.json": "[]\n", ".pre-commit-config.yaml": hooks}, more=SUPPRESSIONS
    )
    shop.stage({"lists/known.json": '["x"]\n', ".pre-commit-config.yaml": other})
    assert shop.verify()["baseline_abuse"]["triggers"] == ["baseline_updated_without_intent"]
    shop.stage({"a.py": "2\n"})
    assert "baseline_changed_with_functional_code" in shop.verify()["baseline_abuse"]["triggers"]


def test_a_baseline_that_is_gone_has_not_grown_nor_one_that_becomes_a_file(tmp_path: Path) -> None:
    shop = listed(tmp_path)
    shop.git("rm", "-q", "lists/known.json")
    assert shop.verify()["baseline_abuse"]["detected"] is False
