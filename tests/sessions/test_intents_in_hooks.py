"""Commits under an intent, by real hooks and real git: what is refused, what lands, what it is called."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from patchgate.intents.intent import State
from patchgate.intents.stored_intents import StoredIntents
from tests.intent_world import FIRST, SECOND, common_dir, declare, git_dir, keep, later, made, seen
from tests.signing import at_terminal
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

TRAILER = f"Patchgate-Intent: {FIRST}"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with the hooks, two files, and an intent that allows the first and a test."""
    made_here = Repo.create(tmp_path)
    made_here.commit({"a": "1\n", "b": "1\n", "far/c": "1\n"}, "First")
    made_here.install()
    declare(made_here, "a", "new", related=["tests/a"])
    return made_here


def text_of(repo: Repo, commit: str = "HEAD") -> str:
    return repo.ask("log", "-1", "--format=%B", commit)


def head(repo: Repo) -> str:
    return repo.head()


def refused(repo: Repo, *command: str, rule: str = "scope-unexpected") -> str:
    """Run a git command that the scope refuses; HEAD's branch stays where it is."""
    branch = repo.ask("symbolic-ref", "HEAD") if repo.try_git("symbolic-ref", "-q", "HEAD").stdout else "HEAD"
    before = repo.ask("rev-parse", branch)
    done = repo.try_git(*command)
    said = done.stderr.decode()
    assert done.returncode != 0, said
    assert f"error[{rule}]" in said
    assert repo.ask("rev-parse", branch) == before
    return said


def test_a_commit_in_scope_lands_with_its_trailer_and_is_recorded(repo: Repo) -> None:
    repo.stage({"a": "2\n", "tests/a": "t\n"})
    done = repo.try_git("commit", "-q", "-m", "Change a")
    assert (done.returncode, done.stderr) == (0, b"")
    assert text_of(repo) == f"Change a\n\n{TRAILER}"
    assert made(repo) == [(FIRST, (head(repo),))]


def test_every_form_of_commit_out_of_scope_is_refused(repo: Repo) -> None:
    repo.write("b", "2\n")
    refused(repo, "commit", "-q", "-a", "-m", "Change b")
    refused(repo, "commit", "-q", "-m", "Change b", "b")
    repo.git("add", "b")
    said = refused(repo, "commit", "-q", "-m", "Change b")
    assert "--> b" in said
    assert "git restore --staged b" in said
    refused(repo, "commit", "-q", "--no-verify", "-m", "Change b")
    refused(repo, "commit", "-q", "--amend", "--no-edit")
    refused(repo, "commit", "-q", "--no-verify", "--amend", "--no-edit")
    assert made(repo) == []
    assert repo.ask("status", "--porcelain", "b") == "M  b"


def test_what_git_itself_takes_of_an_index_with_both_is_judged(repo: Repo) -> None:
    repo.stage({"a": "2\n", "b": "2\n"})
    refused(repo, "commit", "-q", "-m", "Both")
    repo.git("commit", "-q", "-m", "A alone", "a")
    assert repo.ask("show", "--format=", "--name-only") == "a"


def test_both_sides_of_a_rename_are_touched(repo: Repo) -> None:
    repo.git("mv", "b", "new")
    said = refused(repo, "commit", "-q", "-m", "Move b away")
    assert "--> b" in said
    assert "--> new" not in said


def test_a_control_file_is_forbidden_and_so_is_what_the_intent_forbids(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n"}, "First")
    repo.install()
    declare(repo, "a", "patchgate.toml", "pyproject.toml", "no/x", forbidden=["no/*"])
    for name, text in (
        ("patchgate.toml", "[policy]\n"),
        ("pyproject.toml", "[tool.patchgate.policy]\n"),
        ("no/x", ""),
    ):
        repo.stage({name: text})
        assert f"--> {name}" in refused(repo, "commit", "-q", "-m", "Change it", rule="scope-forbidden")
        repo.git("rm", "-q", "-f", name)
    repo.stage({"pyproject.toml": "[project]\n"})
    repo.git("commit", "-q", "-m", "A project without rules of ours")


def test_commits_are_judged_under_the_profile_of_agents_also_without_a_message_hook(repo: Repo) -> None:
    StoredIntents(common_dir(repo)).write(declare(repo, *(f"f{number}" for number in range(7)), "x.lock"))
    repo.stage({f"f{number}": "1\n" for number in range(6)})
    refused(repo, "commit", "-q", "-m", "Six files", rule="max-files")
    said = refused(repo, "commit", "-q", "-n", "-m", "Six files", rule="max-files")
    assert "git patchgate approve" not in said
    assert repo.check().change["profile"] == "agent"


def test_a_person_may_approve_what_the_profile_of_agents_refuses_but_not_the_scope(repo: Repo) -> None:
    StoredIntents(common_dir(repo)).write(declare(repo, *(f"f{number}" for number in range(7))))
    repo.stage({f"f{number}": "1\n" for number in range(6)})
    refused(repo, "commit", "-q", "-n", "-m", "Six files", rule="max-files")
    oid = json.loads(repo.cli("log", "-n", "1", "--format", "json").out)["commit"]
    approved = at_terminal(repo, "approve", oid, "--profile", "agent", "--reason", "All of one kind")
    assert approved.code == 0, approved.err
    repo.git("commit", "-q", "-m", "Six files")
    repo.stage({"b": "2\n"})
    assert "git patchgate approve" not in refused(repo, "commit", "-q", "-m", "Change b")
    assert at_terminal(repo, "approve", "@staged", "--reason", "I want it").code != 0
    refused(repo, "commit", "-q", "-m", "Change b")


def test_the_check_says_what_the_hook_says(repo: Repo) -> None:
    repo.stage({"a": "2\n"})
    clean = repo.check()
    assert clean.verdict == "accepted"
    assert clean.change["context_gates"] == [{"gate": "scope", "outcome": "pass"}]
    plain = clean.change["id"]
    repo.write("b", "2\n")
    assert repo.check().change["id"] == plain
    assert repo.check("--worktree").errors == ["scope-unexpected"]
    repo.git("add", "b")
    wrong = repo.check()
    assert (wrong.code, wrong.verdict, wrong.errors) == (1, "rejected", ["scope-unexpected"])
    assert (wrong.change["stage"], wrong.change["code"]) == ("scope", "SCOPE_VIOLATED")
    assert wrong.change["context_gates"] == [{"gate": "scope", "outcome": "fail"}]
    assert not any(gate["gate"] == "scope" for gate in wrong.change["gates"])


def test_the_rules_of_the_policy_choose_the_level(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[rules]\nscope-unexpected = "warning"\n')
    repo.commit({"a": "1\n", "b": "1\n"}, "First")
    repo.install()
    declare(repo, "a")
    repo.stage({"b": "2\n"})
    done = repo.try_git("commit", "-q", "-m", "Change b")
    assert done.returncode == 0
    assert b"warning[scope-unexpected]" in done.stderr
    assert made(repo) == [(FIRST, (head(repo),))]


# What was there before


def test_a_file_that_was_dirty_before_is_not_blamed_while_it_is_as_it_was(repo: Repo) -> None:
    repo.write("b", "dirty\n")
    repo.write("gone with it", "x\n")
    oid = repo.ask("hash-object", "b")
    declare(repo, "a", dirty={"b": oid, "far/c": None, "gone with it": "1" * 40})
    (repo.path / "far/c").unlink()
    (repo.path / "gone with it").unlink()
    repo.stage({"a": "2\n"})
    said = repo.check()
    assert said.verdict == "accepted"
    (gate,) = said.change["context_gates"]
    assert (gate["gate"], gate["outcome"]) == ("scope", "pass")
    assert f" {FIRST}, " in gate["reason"]
    assert gate["reason"].endswith(": b, far/c")
    repo.git("commit", "-q", "-m", "All of it")
    repo.stage({"b": "other\n"})
    refused(repo, "commit", "-q", "-m", "And more of b")


def test_dirt_that_was_edited_since_is_the_intents(repo: Repo) -> None:
    repo.write("b", "dirty\n")
    declare(repo, "a", dirty={"b": repo.ask("hash-object", "b")})
    repo.stage({"b": "dirty\nand mine\n"})
    refused(repo, "commit", "-q", "-m", "Change b")


# Amend, rebase, cherry-pick, revert


def test_an_amend_does_not_double_the_trailer(repo: Repo) -> None:
    repo.stage({"a": "2\n"})
    repo.git("commit", "-q", "-m", "Change a")
    first = head(repo)
    repo.git("commit", "-q", "--amend", "--no-edit")
    repo.stage({"a": "3\n"})
    repo.git("commit", "-q", "--amend", "--no-edit")
    repo.git("commit", "-q", "--amend", "-m", "In other words")
    assert text_of(repo) == f"In other words\n\n{TRAILER}"
    commits = [oid for _, oids in made(repo) for oid in oids]
    assert commits[0] == first
    assert commits[-1] == head(repo)


def test_what_a_commit_had_before_the_intent_is_not_blamed_on_its_amend(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n", "b": "1\n", "c": "1\n"}, "First")
    repo.install()
    repo.stage({"b": "2\n"})
    repo.git("commit", "-q", "-m", "Before the intent")
    declare(repo, "a")
    repo.stage({"a": "2\n"})
    repo.git("commit", "-q", "--amend", "--no-edit")
    assert repo.ask("show", "--format=", "--name-only") == "a\nb"
    repo.stage({"c": "2\n"})
    refused(repo, "commit", "-q", "-n", "--amend", "--no-edit")
    refused(repo, "commit", "-q", "--amend", "--no-edit")


@pytest.fixture
def both(tmp_path: Path) -> Repo:
    """A repository with the hooks, whose last commit changed two files and a policy."""
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n", "b": "1\n"}, "First")
    repo.install()
    files: dict[str, str | bytes] = {"a": "2\n", "b": "2\n", "patchgate.toml": "[policy]\n"}
    repo.stage(files)
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Both")
    return repo


def test_an_amend_touches_what_it_takes_back_out(both: Repo) -> None:
    declare(both, "a")
    both.git("restore", "--source=HEAD~1", "--staged", "--worktree", "b")
    said = refused(both, "commit", "-q", "--amend", "--no-edit")
    assert "--> b" in said
    assert "--> a" not in said
    refused(both, "commit", "-q", "-n", "--amend", "--no-edit")
    refused(both, "commit", "-q", "--amend", "--allow-empty", "-m", "Again", "-a")
    declare(both, "b")
    both.git("commit", "-q", "--amend", "--no-edit")
    assert both.ask("show", "--format=", "--name-only") == "a\npatchgate.toml"
    assert made(both) == [(FIRST, (head(both),))]


def test_an_amend_that_takes_a_control_file_back_out_is_forbidden(both: Repo) -> None:
    declare(both, "a", "patchgate.toml")
    both.git("rm", "-q", "patchgate.toml")
    said = refused(both, "commit", "-q", "--amend", "--no-edit", rule="scope-forbidden")
    assert "--> patchgate.toml" in said


def test_what_was_taken_back_in_the_working_tree_before_is_not_blamed_on_an_amend(both: Repo) -> None:
    both.write("b", "1\n")
    declare(both, "a", dirty={"b": both.ask("hash-object", "b")})
    both.git("commit", "-q", "-a", "--amend", "--no-edit")
    assert "b" not in both.ask("show", "--format=", "--name-only").split("\n")


def test_a_commit_of_before_that_is_split_undoes_nothing(both: Repo) -> None:
    declare(both, "a")
    old = head(both)
    both.git("switch", "-q", "--detach", "HEAD~1")
    nowhere = ("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m")
    for name in ("a", "b", "patchgate.toml"):
        both.git("restore", f"--source={old}", "--staged", "--worktree", name)
        both.git(*nowhere, f"{name} alone")
    both.git("update-ref", "refs/heads/main", head(both))
    # With one part left out it does, whatever comes on top.
    both.git("update-ref", "refs/heads/main", old, PATCHGATE_SKIP="back to the old commit")
    both.git("reset", "-q", "--hard", "HEAD~2")
    both.git(*nowhere, "a anew", "--amend")
    both.git(*nowhere, "Nothing", "--allow-empty")
    assert "--> b" in refused_update(both, head(both))


def refused_update(repo: Repo, commit: str) -> str:
    """Let the branch get a commit, which the scope refuses."""
    done = repo.try_git("update-ref", "refs/heads/main", commit)
    assert done.returncode != 0
    return done.stderr.decode()


def upstream(repo: Repo, tmp_path: Path, files: dict[str, str]) -> Repo:
    """Let a clone be the remote, and commit something there."""
    other = repo.at(tmp_path / "upstream")
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "upstream.git"))
    repo.git("clone", "-q", str(tmp_path / "upstream.git"), str(other.path))
    repo.git("remote", "add", "origin", str(tmp_path / "upstream.git"))
    repo.git("fetch", "-q", "origin")
    repo.git("branch", "-q", "--set-upstream-to=origin/main")
    other.commit(files, "Of somebody else")
    other.git("push", "-q")
    return other


LINES = "".join(f"{number}\n" for number in range(40))


@pytest.fixture
def far(tmp_path: Path) -> Repo:
    """A repository with a remote that has gone on, and a commit of its own from before its intent."""
    repo = Repo.create(tmp_path)
    repo.commit({"a": LINES, "b": LINES, "c": LINES, "img.png": b"\0\1"}, "First")
    repo.install()
    upstream(repo, tmp_path, {"b": LINES + "more\n", "c": LINES + "more\n"})
    repo.stage({"b": "before\n" + LINES, "img.png": b"\0\2"})
    repo.git("commit", "-q", "-m", "Before the intent")
    declare(repo, "a")
    return repo


@pytest.mark.parametrize("how", ["--rebase", "--no-rebase"])
def test_a_pull_brings_what_others_did_and_replays_what_was_before(far: Repo, how: str) -> None:
    done = far.try_git("pull", "-q", how, "--no-edit")
    assert done.returncode == 0, done.stderr
    assert b"error" not in done.stderr
    assert far.ask("status", "--porcelain") == ""
    commits = [oid for _, oids in made(far) for oid in oids]
    # The merge is made here, and has nothing of its own; what was replayed is nobody's work of now.
    assert commits == ([] if how == "--rebase" else [head(far)])


def test_a_rebase_keeps_what_is_the_intents_and_tells_its_new_name(far: Repo) -> None:
    far.stage({"a": "mine\n" + LINES})
    far.git("commit", "-q", "-n", "-m", "Mine, past the message hook")
    far.git("pull", "-q", "--rebase")
    assert made(far)[-1] == (FIRST, (head(far),))


def test_a_rebase_holds_no_commit_against_the_intent_a_second_time(far: Repo) -> None:
    far.stage({"a": "mine\n" + LINES})
    far.git("commit", "-q", "--amend", "--no-edit")
    assert far.ask("show", "--format=", "--name-only") == "a\nb\nimg.png"
    far.git("pull", "-q", "--rebase")
    assert made(far)[-1] == (FIRST, (head(far),))


def test_whitespace_is_enough_to_make_a_replay_another_change(far: Repo) -> None:
    far.git("fetch", "-q")
    old = head(far)
    replayed = far.ask("log", "-1", "--format=%T", old)
    far.write("b", " before\n" + LINES + "more\n")
    far.git("read-tree", "origin/main")
    far.git("add", "b")
    tree = far.ask("write-tree")
    assert tree != replayed
    commit = far.ask("commit-tree", tree, "-p", "origin/main", "-m", "Before the intent")
    refused(far, "update-ref", "refs/heads/main", commit)


def test_a_conflict_that_is_resolved_outside_the_scope_is_the_intents(far: Repo, tmp_path: Path) -> None:
    other = far.at(tmp_path / "upstream")
    other.commit({"b": "theirs\n" + LINES, "a": "theirs\n" + LINES}, "At the same place")
    other.git("push", "-q")
    assert far.try_git("pull", "-q", "--no-rebase").returncode != 0
    far.stage({"b": "neither\n" + LINES})
    said = refused(far, "commit", "-q", "--no-edit")
    assert "--> b" in said
    assert "--> a" not in said
    far.stage({"b": "theirs\n" + LINES})
    far.git("commit", "-q", "--no-edit")
    assert far.ask("log", "-1", "--format=%(trailers:only)") == TRAILER


@pytest.mark.parametrize("solved", ["before\n", "neither\n"])
def test_a_conflict_that_is_solved_in_a_rebase_leaves_a_commit_whose_it_was(
    far: Repo, tmp_path: Path, solved: str
) -> None:
    other = far.at(tmp_path / "upstream")
    other.commit({"b": "theirs\n" + LINES}, "At the same place")
    other.git("push", "-q")
    assert far.try_git("pull", "-q", "--rebase").returncode != 0
    far.stage({"b": solved + LINES})
    # What is committed here may be no work of the intent's; pre-commit does not see that.
    far.git("commit", "-q", "-m", "Before the intent")
    done = far.try_git("rebase", "--continue")
    assert (done.returncode, done.stderr) == (0, b"")
    assert far.ask("symbolic-ref", "HEAD") == "refs/heads/main"
    assert made(far) == []


def test_a_merge_of_a_local_branch_is_not_blamed_for_what_it_brings(repo: Repo) -> None:
    nowhere = ("-c", "core.hooksPath=/dev/null")
    repo.git("switch", "-q", "-c", "side")
    repo.stage({"b": "2\n"})
    repo.git(*nowhere, "commit", "-q", "-m", "On the side")
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-edit", "side")
    assert text_of(repo) == f"Merge branch 'side'\n\n{TRAILER}"
    assert made(repo) == [(FIRST, (head(repo),))]
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.git("merge", "-q", "--ff-only", "side")
    assert made(repo) == [(FIRST, (made(repo)[0][1]))]


def test_what_is_cherry_picked_or_reverted_out_of_scope_is_refused(repo: Repo) -> None:
    repo.git("branch", "side", repo.ask("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Nothing"))
    repo.git("-c", "core.hooksPath=/dev/null", "switch", "-q", "side")
    nowhere = ("-c", "core.hooksPath=/dev/null", "commit", "-q", "-a", "-m", "Of the side")
    for name in ("b", "a"):
        repo.write(name, "2\n")
        repo.git(*nowhere)
    foreign, fine = repo.ask("rev-parse", "HEAD~1"), head(repo)
    repo.git("-c", "core.hooksPath=/dev/null", "switch", "-q", "main")
    refused(repo, "cherry-pick", foreign)
    repo.git("cherry-pick", "--abort")
    repo.git("cherry-pick", fine)
    assert made(repo)[-1] == (FIRST, (head(repo),))
    repo.git("revert", "--no-edit", "HEAD")
    assert repo.ask("status", "--porcelain") == ""


# Who is told what


def test_a_commit_past_the_hooks_is_recorded_and_its_missing_trailer_is_a_note(repo: Repo) -> None:
    repo.stage({"a": "2\n"})
    done = repo.try_git("commit", "-q", "--no-verify", "-m", "Past the hooks")
    assert done.returncode == 0
    assert b"note[intent-trailer]" in done.stderr
    assert text_of(repo) == "Past the hooks"
    assert made(repo) == [(FIRST, (head(repo),))]


def test_a_copied_trailer_proves_nothing(repo: Repo) -> None:
    repo.stage({"a": "2\n"})
    done = repo.try_git("commit", "-q", "-n", "-m", f"Past the hooks\n\nPatchgate-Intent: {SECOND}")
    assert b"note[intent-trailer]: " in done.stderr
    assert f" {FIRST} but {SECOND}".encode() in done.stderr
    repo.stage({"b": "2\n"})
    refused(repo, "commit", "-q", "-n", "-m", f"Change b\n\n{TRAILER}")
    assert [each for each, _ in made(repo)] == [FIRST]


def test_what_a_person_skips_the_hooks_for_is_made_under_the_intent_all_the_same(repo: Repo) -> None:
    repo.stage({"b": "2\n"})
    repo.git("commit", "-q", "-m", "Skipped", PATCHGATE_SKIP="a person says so")
    assert text_of(repo) == "Skipped"
    assert made(repo) == [(FIRST, (head(repo),))]


def test_each_of_two_worktrees_has_its_own_intents(repo: Repo, tmp_path: Path) -> None:
    linked = repo.at(tmp_path / "linked")
    repo.git("worktree", "add", "-q", "-b", "side", str(linked.path))
    linked.stage({"b": "2\n"})
    linked.git("commit", "-q", "-m", "Nothing was declared here")
    assert text_of(linked) == "Nothing was declared here"
    declare(linked, "far/c", name=SECOND)
    linked.stage({"a": "2\n"})
    refused(linked, "commit", "-q", "-m", "That is of the other")
    linked.git("reset", "-q", "--hard")
    linked.stage({"far/c": "2\n"})
    linked.git("commit", "-q", "-m", "Change c")
    assert text_of(linked) == f"Change c\n\nPatchgate-Intent: {SECOND}"
    assert made(repo) == [(SECOND, (head(linked),))]
    repo.git("merge", "-q", "--ff-only", "side")
    assert len(made(repo)) == 1


def test_of_two_intents_the_one_that_allows_all_binds_else_the_newest(repo: Repo) -> None:
    keep(repo, later(declare(repo, "a"), 60))
    declare(repo, "b", "far/c", name=SECOND)
    for name, files in ((FIRST, {"a": "2\n"}), (SECOND, {"b": "2\n", "far/c": "2\n"})):
        repo.stage(files)
        repo.git("commit", "-q", "-m", "Change it")
        assert text_of(repo) == f"Change it\n\nPatchgate-Intent: {name}"
        repo.git("commit", "-q", "--amend", "--no-edit")
        assert text_of(repo) == f"Change it\n\nPatchgate-Intent: {name}"
        assert made(repo)[-1] == (name, (head(repo),))
    repo.stage({"a": "3\n", "b": "3\n"})
    said = refused(repo, "commit", "-q", "-m", "Both")
    assert re.search(rf"^error\[scope-unexpected\]: {SECOND} does not allow .*\n --> a$", said, re.MULTILINE)


def test_an_intent_whose_time_is_over_binds_nothing_and_is_told(repo: Repo) -> None:
    keep(repo, later(declare(repo, "a"), 3601))
    repo.stage({"b": "2\n"})
    done = repo.try_git("commit", "-q", "-m", "Change b")
    assert done.returncode == 0
    assert b"warning[intent-expired]" in done.stderr
    assert text_of(repo) == "Change b"
    assert made(repo) == []
    repo.stage({"b": "3\n"})
    report = repo.check()
    assert (report.change["profile"], report.rules) == ("commit", ["intent-expired"])


def test_an_intent_that_waits_binds_what_is_committed_and_is_reported(repo: Repo) -> None:
    declare(repo, "a", state=State.QUEUED)
    repo.stage({"b": "2\n"})
    report = repo.check()
    assert (report.change["profile"], report.rules) == ("agent", ["scope-unexpected", "intent-queued"])


def test_a_damaged_intent_lets_nothing_pass_until_it_is_cleared(repo: Repo) -> None:
    Path(common_dir(repo), "patchgate/intents", f"{FIRST}.json").write_text("{}")
    repo.stage({"a": "2\n"})
    for arguments in (["commit", "-q", "-m", "Change a"], ["commit", "-q", "-n", "-m", "Change a"]):
        done = repo.try_git(*arguments)
        assert done.returncode != 0
        assert f"{FIRST}.json".encode() in done.stderr
        assert f"git patchgate intent clear {FIRST}".encode() in done.stderr
        assert b"Traceback" not in done.stderr
    assert (repo.check().code, repo.check().verdict) == (3, "undecided")
    repo.git("reset", "-q", "--hard")
    assert repo.run("intent", "clear", FIRST).code == 0
    repo.stage({"a": "2\n"})
    repo.git("commit", "-q", "-m", "Change a")


def test_going_back_is_never_refused(repo: Repo) -> None:
    repo.stage({"a": "2\n"})
    repo.git("commit", "-q", "-m", "Change a")
    Path(common_dir(repo), "patchgate/intents", f"{FIRST}.json").write_text("{}")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.git("reset", "-q", "--hard", "HEAD@{1}")
    repo.git("switch", "-q", "-c", "another")


def test_each_commit_is_a_sign_of_life(repo: Repo) -> None:
    assert seen(repo) == 0.0
    repo.stage({"a": "2\n"})
    repo.check()
    first = seen(repo)
    assert first > 0.0
    old = Path(common_dir(repo), "patchgate/intents", f"{FIRST}.seen")
    old.unlink()
    repo.git("commit", "-q", "--no-verify", "-m", "Change a")
    assert seen(repo) >= first


def test_the_first_commit_of_all_is_held_against_the_intent_too(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.install()
    declare(repo, "a")
    repo.stage({"b": "1\n"})
    done = repo.try_git("commit", "-q", "-m", "First")
    assert b"error[scope-unexpected]" in done.stderr
    repo.git("rm", "-q", "-f", "b")
    repo.stage({"a": "1\n"})
    repo.git("commit", "-q", "-m", "First")
    assert text_of(repo) == f"First\n\n{TRAILER}"
    assert made(repo) == [(FIRST, (head(repo),))]


def test_what_was_made_on_a_detached_head_is_judged_where_a_branch_gets_it(repo: Repo) -> None:
    repo.git("switch", "-q", "--detach")
    repo.stage({"b": "2\n"})
    repo.git("commit", "-q", "-n", "-m", "On no branch")
    done = repo.try_git("branch", "kept")
    assert b"error[scope-unexpected]" in done.stderr
    # A fetch from here into here makes it nobody else's.
    repo.git("fetch", "-q", ".", "HEAD")
    refused(repo, "update-ref", "refs/heads/main", head(repo))


def test_observed_refusals_land_and_are_the_intents(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[hooks]\nmode = "observe"\n')
    repo.install()
    declare(repo, "a")
    repo.stage({"b": "1\n"})
    done = repo.try_git("commit", "-q", "-m", "Change b")
    assert done.returncode == 0
    assert b"error[scope-unexpected]" in done.stderr
    assert made(repo) == [(FIRST, (head(repo),))]


def test_the_whole_story_by_the_command(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n", "b": "1\n"}, "First")
    repo.install()
    repo.write("b", "dirty\n")
    assert repo.run("intent", "declare", "-m", "Make the sum right", "--allow", "a").code == 0
    name = StoredIntents(common_dir(repo)).all()[0].id
    repo.write("a", "2\n")
    repo.git("commit", "-q", "-a", "-m", "Change a")
    assert text_of(repo) == f"Change a\n\nPatchgate-Intent: {name}"
    repo.write("b", "other\n")
    refused(repo, "commit", "-q", "-a", "-m", "Change b")
    assert repo.run("intent", "clear").code == 0
    repo.git("commit", "-q", "-a", "-m", "Change b")
    assert text_of(repo) == "Change b"
    assert made(repo) == [(name, (repo.ask("rev-parse", "HEAD~1"),))]
    assert not os.path.exists(os.path.join(git_dir(repo), "patchgate-intents"))
