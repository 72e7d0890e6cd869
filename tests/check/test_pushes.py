"""A push is judged commit by commit: everything that this remote lacks, and nothing else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.errors import UndecidedError
from patchgate.git.pushes import RefUpdate, read_pushed
from patchgate.git.repository import open_repository
from tests.amount import often
from tests.check.push_world import POLICY, WEAK, ZERO, Local, commits, pair, rules, snapshot
from tests.signing import REF, SIGNERS, Key, needs_ssh_keygen, put_note, statement_for
from tests.world import Repo

pytestmark = pytest.mark.turns(3)


@pytest.fixture
def both(tmp_path: Path) -> tuple[Local, Repo]:
    return pair(tmp_path)


@pytest.fixture
def local(both: tuple[Local, Repo]) -> Local:
    return both[0]


@pytest.fixture
def server(both: tuple[Local, Repo]) -> Repo:
    return both[1]


def test_every_commit_that_the_remote_lacks_is_judged_and_no_other(local: Local) -> None:
    made = [local.commit({f"{number}": "x\n"}) for number in range(3)]
    answer = local.push("origin", "main")
    assert (answer.code, answer.verdict) == (0, "accepted")
    assert [change["commit"] for change in answer.changes] == made
    assert {change["source"]["ref"] for change in answer.changes} == {"refs/heads/main"}
    assert answer.report["warnings"] == []


def test_a_push_of_nothing_new_says_nothing_and_writes_nothing(local: Local) -> None:
    before = snapshot(local.path / ".git")
    report = local.judge()
    assert (report.changes, report.warnings) == ((), ())
    assert snapshot(local.path / ".git") == before
    assert local.push("origin", "main").code == 0


def test_a_bad_commit_that_the_next_one_mends_is_refused(local: Local, server: Repo) -> None:
    bad = local.bad()
    local.git("rm", "-q", "-r", "secrets")
    mended = local.commit()
    before = server.ask("rev-parse", "main")
    answer = local.push("origin", "main")
    assert answer.code != 0
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad, mended]
    assert server.ask("rev-parse", "main") == before


def test_of_several_refs_the_second_is_judged_too_and_none_lands(local: Local, server: Repo) -> None:
    local.commit({"good": "x\n"})
    local.git("checkout", "-q", "-b", "side", "HEAD~1")
    bad = local.bad()
    answer = local.push("origin", "main", "side")
    (refused,) = (change for change in answer.changes if change["verdict"] == "rejected")
    assert (refused["commit"], refused["source"]["ref"]) == (bad, "refs/heads/side")
    assert server.ask("for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_branch_that_is_not_checked_out_is_judged_from_its_objects(local: Local) -> None:
    local.git("checkout", "-q", "-b", "side")
    local.bad()
    local.git("checkout", "-q", "main")
    assert local.push("origin", "side").errors == ["deny-prefix"]


def test_a_branch_of_another_worktree_is_judged(local: Local, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    local.git("worktree", "add", "-q", "-b", "side", str(tree))
    Local(tree, local.env).bad()
    assert local.push("origin", "side").errors == ["deny-prefix"]
    assert local.push("origin", "side", cwd=tree).errors == ["deny-prefix"]


def test_what_another_branch_has_is_judged_and_for_a_protected_one_what_another_remote_has(
    local: Local, tmp_path: Path
) -> None:
    bad = local.bad()
    local.git("branch", "other")
    assert local.push("origin", "main:refs/heads/new").errors == ["deny-prefix"]
    fork = tmp_path / "fork.git"
    local.git("init", "-q", "--bare", str(fork))
    local.git("remote", "add", "fork", str(fork))
    local.git("push", "-q", "--no-verify", "fork", "main")
    local.git("fetch", "-q", "fork")
    answer = local.push("origin", "main")
    assert [change["commit"] for change in answer.changes] == [bad]
    assert answer.errors == ["deny-prefix"]
    assert local.push("origin", "main:refs/heads/new").changes == []


def test_a_new_branch_brings_only_what_the_remote_lacks(local: Local) -> None:
    assert local.push("origin", "HEAD:refs/heads/same").changes == []
    fresh = local.commit({"a": "x\n"})
    answer = local.push("origin", "HEAD:refs/heads/new")
    assert [change["commit"] for change in answer.changes] == [fresh]


def test_a_change_for_review_is_judged_by_what_it_adds(local: Local) -> None:
    fresh = local.commit({"a": "x\n"})
    answer = local.push("origin", "HEAD:refs/for/main")
    assert [change["commit"] for change in answer.changes] == [fresh]
    local.bad()
    assert local.push("origin", "HEAD:refs/for/main").errors == ["deny-prefix"]


# What a ref may stand for.


def test_a_tag_whose_commit_is_on_no_branch_is_judged(local: Local) -> None:
    local.git("checkout", "-q", "--detach")
    bad = local.bad()
    local.git("tag", "-a", "-m", "x", "annotated")
    local.git("tag", "-a", "-m", "x", "nested", "annotated")
    local.git("tag", "light")
    local.git("checkout", "-q", "main")
    for name in ("annotated", "nested", "light"):
        answer = local.push("origin", name)
        assert [change["commit"] for change in answer.changes] == [bad], name
        assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"]), name


@pytest.mark.parametrize("what", ["HEAD^{tree}", "HEAD:patchgate.toml"])
def test_a_tag_of_what_is_no_commit_is_undecided(local: Local, what: str) -> None:
    local.git("tag", "-a", "-m", "x", "odd", what)
    answer = local.push("origin", "odd")
    assert (answer.code != 0, answer.verdict) == (True, "undecided")
    assert "only commits" in answer.change["gates"][0]["reason"]
    assert answer.change["source"] == {"kind": "ref", "ref": "refs/tags/odd"}
    assert local.push("--no-verify", "origin", "odd").code == 0
    assert local.push("origin", "--delete", "odd").verdict == "accepted"


def test_an_object_that_is_not_here_is_undecided(local: Local) -> None:
    report = local.judge(f"x {'1' * 40} refs/heads/x {ZERO}")
    assert report.verdict == "undecided"
    assert "incomplete here" in str(report.changes[0].gates[0].reason)


def test_notes_are_judged_as_what_they_are(local: Local) -> None:
    local.git("notes", "add", "-m", "a note", "HEAD")
    answer = local.push("origin", "refs/notes/commits")
    assert (answer.code, answer.verdict, answer.report["warnings"]) == (0, "accepted", [])
    local.git("notes", "add", "-f", "-m", "<<<<<<< HEAD", "HEAD")
    assert local.push("origin", "refs/notes/commits").errors == ["conflict-marker"]


def test_a_mirror_push_judges_every_ref(local: Local, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror.git"
    local.git("init", "-q", "--bare", str(mirror))
    local.git("remote", "add", "--mirror=push", "mirror", str(mirror))
    local.git("checkout", "-q", "--detach")
    bad = local.bad()
    local.git("update-ref", "refs/custom/x", bad)
    local.git("checkout", "-q", "main")
    answer = local.push("mirror")
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad]
    local.git("update-ref", "-d", "refs/custom/x")
    assert local.push("mirror").code == 0


# What is known of the remote.


def test_a_remote_that_is_only_a_url_has_nothing_but_what_git_tells(local: Local, server: Repo) -> None:
    fresh = local.commit({"a": "x\n"})
    local.forget()
    answer = local.push(str(server.path), "main:refs/heads/new")
    assert len(answer.changes) == 2
    answer = local.push(str(server.path), "main")
    assert [change["commit"] for change in answer.changes] == [fresh]


def test_a_url_that_reads_like_tracking_refs_has_none(local: Local, tmp_path: Path) -> None:
    local.policy(POLICY + '[push]\nprotected_refs = ["refs/heads/main"]\n')
    (local.path / "origin").mkdir()
    local.git("init", "-q", "--bare", "origin/sub")
    local.git("push", "-q", "--no-verify", "origin/sub", "main~1:refs/heads/trunk")
    local.git("update-ref", "refs/remotes/origin/sub/main", local.bad())
    answer = local.push("origin/sub", "main")
    assert answer.errors == ["deny-prefix"]
    assert len(answer.changes) == 3


def test_a_folder_that_is_named_like_a_url_is_not_the_remote(local: Local) -> None:
    """A commit can bring such a folder: a repository whose `main` is a name of another branch."""
    bad = local.bad()
    had = local.ask("rev-parse", f"{bad}~1")
    for url in ("https://example.com/x", "me@example.com:x/y"):
        place = local.path / f"{url}.git"
        local.git("init", "-q", "--bare", str(place))
        (place / "objects/info/alternates").write_text(f"{local.path}/.git/objects\n")
        local.git("--git-dir", str(place), "update-ref", "refs/heads/other", had)
        local.git("--git-dir", str(place), "symbolic-ref", "refs/heads/main", "refs/heads/other")
        report = local.judge(f"main {bad} refs/heads/main {had}", remote="origin", url=url)
        assert [change.source.ref for change in report.changes] == ["refs/heads/main"], url
        assert rules(report) == ["deny-prefix"]


def test_tracking_refs_of_a_remote_below_are_not_those_of_the_remote_above(
    local: Local, tmp_path: Path
) -> None:
    local.git("init", "-q", "--bare", str(tmp_path / "below.git"))
    local.git("remote", "add", "origin/below", str(tmp_path / "below.git"))
    bad = local.bad()
    local.git("push", "-q", "--no-verify", "origin/below", "main")
    local.git("fetch", "-q", "origin/below")
    assert local.ask("rev-parse", "refs/remotes/origin/below/main") == bad
    assert local.push("origin", "main").errors == ["deny-prefix"]
    assert local.push("origin/below", "main:refs/heads/y").changes == []


@pytest.mark.parametrize(
    "name", ["we ird", "or*gin", "o'r\"i$(x)gin", "töam/origin", "a.b", "[o]rigin", "UP"]
)
def test_a_remote_may_have_an_odd_name(local: Local, server: Repo, name: str) -> None:
    local.git("config", f"remote.{name}.url", str(server.path))
    local.git("config", f"remote.{name}.fetch", "+refs/heads/*:refs/remotes/x/*")
    bad = local.bad()
    local.git("update-ref", "refs/remotes/orxgin/main", bad)
    local.git("update-ref", "refs/remotes/o/main", bad)
    answer = local.push(name, "main")
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])


def test_a_remote_with_a_slash_in_its_name_has_its_own_tracking_refs(local: Local, server: Repo) -> None:
    local.git("remote", "add", "team/ü", str(server.path))
    local.git("fetch", "-q", "team/ü")
    fresh = local.commit({"a": "x\n"})
    answer = local.push("team/ü", "main:refs/heads/new")
    assert [change["commit"] for change in answer.changes] == [fresh]


def test_another_url_for_pushing_changes_nothing(local: Local, server: Repo) -> None:
    local.git("remote", "set-url", "origin", "short:server.git")
    local.git("config", f"url.{server.path.parent}/.pushInsteadOf", "short:")
    fresh = local.commit({"a": "x\n"})
    answer = local.push("origin", "main")
    assert (answer.code, [change["commit"] for change in answer.changes]) == (0, [fresh])


def test_a_password_in_a_url_is_neither_shown_nor_kept(local: Local) -> None:
    local.commit({"a": "x\n"})
    local.bad()
    url = "https://me:p@hunter2@example.com/x.git"
    head = local.head()
    for tip in (head, f"{head}~1"):
        line = f"x {local.ask('rev-parse', tip)} refs/heads/main {local.ask('rev-parse', 'HEAD~2')}"
        report = local.judge(line, remote=url, url=url)
        assert "hunter2" not in str(report)
    assert "hunter2" not in (local.path / ".git/patchgate/events.jsonl").read_text()


def test_a_force_push_brings_what_the_remote_lacks(local: Local) -> None:
    local.git("checkout", "-q", "-b", "topic")
    local.commit({"a": "x\n"})
    assert local.push("origin", "topic").code == 0
    rewritten = local.commit({"a": "y\n"}, "Again", "--amend")
    answer = local.push("--force", "origin", "topic")
    assert (answer.code, [change["commit"] for change in answer.changes]) == (0, [rewritten])


def test_where_the_remote_has_what_is_not_here_everything_unknown_is_judged(
    local: Local, server: Repo, tmp_path: Path
) -> None:
    other = local.at(tmp_path / "other")
    local.git("clone", "-q", str(server.path), str(other.path))
    other.git("checkout", "-q", "-b", "topic")
    theirs = other.commit({"theirs": "x\n"})
    other.git("push", "-q", "origin", "topic")
    local.git("checkout", "-q", "-b", "topic")
    ours = local.commit({"ours": "x\n"})
    answer = local.push("--force", "origin", "topic")
    assert [change["commit"] for change in answer.changes] == [ours]
    # By the URL alone not even the common commits are known.
    local.forget()
    report = local.judge(f"topic {ours} refs/heads/topic {theirs}", remote="https://example.com/x", url="")
    assert commits(report) == local.ask("rev-list", "--reverse", ours).split()


@pytest.mark.parametrize("arguments", [("origin", "HEAD:refs/heads/new"), ("other", "main")])
def test_a_shallow_history_is_undecided_where_it_is_cut_off(
    local: Local, server: Repo, tmp_path: Path, arguments: tuple[str, str]
) -> None:
    local.commit({"a": "x\n"})
    local.git("push", "-q", "--no-verify", "origin", "main")
    shallow = Local(tmp_path / "shallow", local.env)
    local.git("clone", "-q", "--depth=1", f"file://{server.path}", str(shallow.path))
    local.git("init", "-q", "--bare", str(tmp_path / "other.git"))
    shallow.git("remote", "add", "other", str(tmp_path / "other.git"))
    shallow.hook()
    fresh = shallow.commit({"b": "x\n"})
    if arguments[0] == "other":
        shallow.forget()
    answer = shallow.push(*arguments)
    judged = [change["commit"] for change in answer.changes if change["commit"]]
    assert judged == [fresh]
    if arguments[0] == "origin":
        assert (answer.code, answer.verdict) == (0, "accepted")
        return
    assert (answer.code != 0, answer.verdict) == (True, "undecided")
    (way,) = answer.report["recovery"]
    assert way["command"] == "git fetch --deepen=50 other"
    # The command leads on; here from the remote that has the history.
    shallow.git("fetch", "-q", "--deepen=50", "origin")
    assert shallow.push(*arguments).code == 0


def test_a_shallow_history_does_not_show_whether_a_protected_ref_is_forced(
    local: Local, server: Repo, tmp_path: Path
) -> None:
    shallow = Local(tmp_path / "shallow", local.env)
    local.git("clone", "-q", "--depth=1", f"file://{server.path}", str(shallow.path))
    shallow.hook()
    local.commit({"a": "x\n"})
    local.commit({"b": "x\n"})
    local.git("push", "-q", "--no-verify", "origin", "main")
    shallow.git("fetch", "-q", "--depth=1", "origin")
    shallow.git("reset", "-q", "--hard", "origin/main")
    tip = shallow.commit({"c": "x\n"})
    old = shallow.ask("rev-list", "--all", "--max-parents=0", "--reverse").split()
    assert len(old) == 1
    first = local.ask("rev-list", "--max-parents=0", "main")
    report = shallow.judge(f"main {tip} refs/heads/main {first}")
    assert report.verdict == "undecided"
    assert rules(report) == []
    assert report.recovery[0].command == "git fetch --deepen=50 origin"


# Protected refs.


def test_the_default_branch_may_not_be_deleted(local: Local, server: Repo) -> None:
    server.git("config", "receive.denyDeleteCurrent", "ignore")
    answer = local.push("origin", "--delete", "main")
    assert (answer.code != 0, answer.errors) == (True, ["ref-deleted"])
    assert answer.change["files"] == []
    assert answer.change["base"] == answer.change["after"]
    assert answer.change["source"] == {"kind": "ref", "ref": "refs/heads/main"}
    assert [gate["gate"] for gate in answer.change["gates"]] == ["refs"]
    assert server.ask("for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_the_default_branch_may_not_be_forced(local: Local, server: Repo) -> None:
    before = local.commit({"a": "x\n"})
    assert local.push("origin", "main").code == 0
    local.commit({"a": "y\n"}, "Again", "--amend")
    answer = local.push("--force", "origin", "main")
    assert (answer.code != 0, answer.errors) == (True, ["ref-forced"])
    local.git("reset", "-q", "--hard", "HEAD~1")
    answer = local.push("--force", "origin", "main")
    assert (answer.code != 0, answer.errors) == (True, ["ref-forced"])
    assert server.ask("rev-parse", "main") == before


def test_a_push_over_what_was_not_fetched_is_no_part_of_what_is_there(
    local: Local, server: Repo, tmp_path: Path
) -> None:
    other = local.at(tmp_path / "other")
    local.git("clone", "-q", str(server.path), str(other.path))
    other.commit({"theirs": "x\n"})
    other.git("push", "-q", "origin", "main")
    local.commit({"ours": "x\n"})
    answer = local.push("--force", "origin", "main")
    assert answer.errors == ["ref-forced"]
    assert "not here" in answer.findings[0]["message"]


def test_other_refs_may_be_deleted_and_forced(local: Local) -> None:
    local.git("push", "-q", "--no-verify", "origin", "main:refs/heads/topic", "main:refs/tags/v1")
    local.commit({"a": "x\n"})
    assert local.push("--force", "origin", "main:refs/heads/topic", "main:refs/tags/v1").code == 0
    answer = local.push("origin", "--delete", "topic", "refs/tags/v1")
    assert (answer.code, answer.changes) == (0, [])


def test_the_config_names_protected_refs_by_pattern(tmp_path: Path) -> None:
    text = POLICY + '[push]\nprotected_refs = ["refs/heads/release/*", "refs/tags/v*"]\n'
    local, server = pair(tmp_path, policy=text)
    server.git("config", "receive.denyDeleteCurrent", "ignore")
    names = ("refs/heads/release/1", "refs/tags/v1", "refs/tags/other")
    assert local.push("origin", *(f"main:{name}" for name in names)).code == 0
    assert local.push("origin", "--delete", *names).errors == ["ref-deleted"] * 2
    local.commit({"a": "x\n"})
    # A branch may go on, a tag stays where it is.
    answer = local.push("--force", "origin", *(f"main:{name}" for name in names))
    assert [(finding["rule"], finding["details"]["ref"]) for finding in answer.findings] == [
        ("ref-forced", "refs/tags/v1")
    ]
    assert answer.findings[0]["details"]["key"] == "push.protected_refs[1]"
    # Without its name in the list the default branch is no more than any other.
    assert local.push("origin", "--delete", "main").code == 0


def test_the_protected_refs_are_those_of_the_policy_that_the_remote_has(local: Local) -> None:
    local.policy(POLICY + "[push]\nprotected_refs = []\n")
    assert local.push("origin", "--delete", "main").errors == ["ref-deleted"]


@pytest.mark.parametrize("name", ["main", "master"])
def test_where_nobody_knows_the_default_branch_main_and_master_are_protected(
    local: Local, server: Repo, name: str
) -> None:
    local.git("push", "-q", "--no-verify", "origin", "main:refs/heads/master")
    local.git("remote", "set-head", "origin", "--delete")
    assert local.push("origin", "--delete", name).errors == ["ref-deleted"]
    assert local.push(str(server.path), "--delete", name).errors == ["ref-deleted"]


def test_of_a_remote_that_nothing_is_known_of_the_protected_refs_are_those_that_are_named_here(
    local: Local,
) -> None:
    local.policy(POLICY + '[push]\nprotected_refs = ["refs/heads/release/*"]\n')
    line = f"(delete) {ZERO} refs/heads/release/1 {'1' * 40}"
    assert rules(local.judge(line, remote="https://example.com/x", url="")) == ["ref-deleted"]
    assert rules(local.judge(line)) == []


def test_a_default_branch_of_another_name_leaves_main_unprotected(local: Local, server: Repo) -> None:
    local.git("push", "-q", "--no-verify", "origin", "main:refs/heads/trunk")
    local.git("fetch", "-q", "origin")
    local.git("remote", "set-head", "origin", "trunk")
    server.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert local.push("origin", "--delete", "trunk").errors == ["ref-deleted"]
    assert local.push("origin", "--delete", "main").code == 0


def test_a_level_in_the_policy_holds_for_refs(tmp_path: Path) -> None:
    local, server = pair(tmp_path, policy=POLICY + '[rules]\nref-deleted = "warning"\nref-forced = "off"\n')
    server.git("config", "receive.denyDeleteCurrent", "ignore")
    local.commit({"a": "x\n"})
    assert local.push("origin", "main").code == 0
    local.commit({"a": "y\n"}, "Other", "--amend")
    answer = local.push("--force", "origin", "main")
    assert (answer.code, answer.findings) == (0, [])
    answer = local.push("origin", "--delete", "main")
    assert (answer.code, answer.rules, answer.errors) == (0, ["ref-deleted"], [])


# Whose policy judges.


def test_a_protected_ref_is_judged_by_the_policy_that_the_remote_has(local: Local) -> None:
    start = local.head()
    local.policy(WEAK)
    bad = local.bad()
    answer = local.push("origin", "main")
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad]
    assert {change["policy"]["from"] for change in answer.changes} == {f"{start[:12]}:patchgate.toml"}
    (note,) = answer.report["warnings"]
    assert note.startswith("refs/heads/main ")
    assert all(word in note for word in ("protected", start[:12], "origin"))


def test_another_ref_is_judged_by_the_policy_before_each_commit_and_a_note_says_so(local: Local) -> None:
    local.policy(WEAK)
    local.bad()
    answer = local.push("origin", "main:refs/heads/topic")
    assert (answer.code, answer.verdict) == (0, "accepted")
    (note,) = answer.report["warnings"]
    assert note.startswith("refs/heads/topic: ")
    assert "before each commit" in note
    assert "origin" in note


def test_a_commit_of_two_refs_is_judged_once_where_their_policies_are_alike(local: Local) -> None:
    made = [local.commit({f"{number}": "x\n"}) for number in range(3)]
    local.git("tag", "v1")
    answer = local.push("origin", "main", "v1", "main:refs/heads/topic")
    assert [change["commit"] for change in answer.changes] == made
    assert answer.report["warnings"] == []


def test_a_commit_of_two_refs_is_judged_by_each_policy_where_they_differ(local: Local) -> None:
    first = local.commit({"a": "x\n"})
    weaker = local.policy(WEAK)
    last = local.commit({"b": "x\n"})
    answer = local.push("origin", "main", "main:refs/heads/topic")
    judged = [(change["commit"], change["source"]["ref"]) for change in answer.changes]
    main, topic = "refs/heads/main", "refs/heads/topic"
    assert judged == [(first, main), (weaker, main), (last, main), (last, topic)]


@pytest.mark.parametrize("protected", ["refs/heads/*", "refs/heads/main"])
def test_a_new_branch_is_judged_by_the_policy_where_it_begins_and_a_protected_one_by_that_of_today(
    local: Local, server: Repo, protected: str
) -> None:
    """A ref is made of a line that left the default branch before its policy became strict."""
    server.git("config", "receive.denyNonFastForwards", "false")
    old = local.policy(WEAK + f"[push]\nprotected_refs = ['{protected}']\n")
    local.git("push", "-q", "--no-verify", "origin", "main")
    strict = local.policy(POLICY + f"[push]\nprotected_refs = ['{protected}']\n")
    local.git("push", "-q", "--no-verify", "origin", "main")
    local.git("checkout", "-q", "-b", "topic", old)
    local.bad()
    answer = local.push("origin", "topic")
    expected = (1, {strict[:12]}) if protected.endswith("*") else (0, {old[:12]})
    assert (answer.code, {change["policy"]["from"][:12] for change in answer.changes}) == expected


def test_a_new_protected_ref_without_a_common_history_is_judged_by_the_default_branch(tmp_path: Path) -> None:
    text = POLICY + '[push]\nprotected_refs = ["refs/heads/*"]\n'
    local, _ = pair(tmp_path, policy=text)
    local.git("checkout", "-q", "--orphan", "pages")
    local.git("rm", "-q", "-r", "-f", ".")
    local.commit({"patchgate.toml": WEAK, "secrets/k": "x\n"})
    assert "deny-prefix" in local.push("origin", "pages").errors


def test_the_first_push_to_a_remote_is_judged_by_the_policies_before_each_commit(
    local: Local, tmp_path: Path
) -> None:
    local.git("init", "-q", "--bare", str(tmp_path / "empty.git"))
    local.git("remote", "add", "empty", str(tmp_path / "empty.git"))
    local.forget()
    answer = local.push("empty", "main")
    assert (answer.code, answer.verdict, len(answer.changes)) == (0, "accepted", 1)
    local.bad()
    assert local.push("empty", "main:refs/heads/other").errors == ["deny-prefix"]


def test_a_broken_policy_of_the_remote_can_be_mended_by_a_push(tmp_path: Path) -> None:
    local, server = pair(tmp_path)
    server.git("config", "receive.denyDeleteCurrent", "ignore")
    local.policy("[polizei]\n")
    local.git("push", "-q", "--no-verify", "origin", "main", "main:refs/heads/topic")
    local.commit({"a": "x\n"})
    answer = local.push("origin", "main")
    assert (answer.code != 0, answer.verdict) == (True, "undecided")
    local.git("reset", "-q", "--hard", "HEAD~1")
    # Which refs are protected cannot be read, so none is deleted or forced; the default branch never.
    assert local.push("origin", "--delete", "topic").verdict == "undecided"
    assert local.push("origin", "--delete", "main").errors == ["ref-deleted"]
    local.policy(POLICY)
    later = local.commit({"a": "x\n"})
    answer = local.push("origin", "main")
    assert (answer.code != 0, answer.verdict) == (True, "undecided")
    assert [each["commit"] for each in answer.changes if each["verdict"] == "undecided"] == [later]
    answer = local.push("origin", "main~1:main")
    assert (answer.code, answer.rules) == (0, ["policy-repaired"])
    assert local.push("origin", "main").code == 0


def test_a_trusted_ref_judges_everything(local: Local) -> None:
    local.git("tag", "trusted")
    local.git("config", "patchgate.trustRef", "refs/tags/trusted")
    local.policy(WEAK)
    local.bad()
    answer = local.push("origin", "main:refs/heads/topic")
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])
    assert answer.changes[0]["policy"]["from"] == "refs/tags/trusted:patchgate.toml"


def before_the_policy(folder: Path) -> tuple[Local, Repo]:
    """A repository whose `main`, here and at its remote, has a policy since its second commit."""
    local, server = pair(folder)
    local.git("checkout", "-q", "--orphan", "again")
    local.git("rm", "-q", "-r", "-f", ".")
    local.commit({"plain/a": "a\n"})
    local.policy(POLICY)
    local.git("branch", "-M", "again", "main")
    local.git("push", "-q", "--force", "--no-verify", "origin", "main")
    return local, server


def test_a_branch_from_before_the_policy_does_not_bring_what_it_denies_by_a_merge(tmp_path: Path) -> None:
    """A fast-forward of main, whose line of first parents is the branch's."""
    local, _ = before_the_policy(tmp_path)
    tip = local.ask("rev-parse", "main")
    local.git("checkout", "-q", "-b", "x", "main~1")
    bad = local.bad()
    local.git("merge", "-q", "--no-verify", "-m", "Merge main", "main")
    answer = local.push("origin", "x:main")
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad]
    assert {change["policy"]["from"] for change in answer.changes} == {f"{tip[:12]}:patchgate.toml"}


def test_a_forced_protected_ref_keeps_its_policy_where_the_new_line_has_none(tmp_path: Path) -> None:
    local, server = before_the_policy(tmp_path)
    server.git("config", "receive.denyNonFastForwards", "false")
    local.policy(POLICY + '[rules]\nref-forced = "off"\n')
    local.git("push", "-q", "--no-verify", "origin", "main")
    local.git("checkout", "-q", "-b", "x", "main~2")
    local.bad()
    assert local.push("--force", "origin", "x:main").errors == ["deny-prefix"]


def test_a_branch_that_never_had_a_policy_is_judged_by_the_default_branch(tmp_path: Path) -> None:
    local, _ = before_the_policy(tmp_path)
    tip = local.ask("rev-parse", "main")
    local.git("checkout", "-q", "-b", "old", "main~1")
    good = local.commit({"plain/b": "x\n"})
    bad = local.bad()
    answer = local.push("origin", "old")
    judged = [(change["commit"], change["verdict"]) for change in answer.changes]
    assert judged == [(good, "accepted"), (bad, "rejected")]
    assert {change["policy"]["from"] for change in answer.changes} == {f"{tip[:12]}:patchgate.toml"}
    local.git("checkout", "-q", "--orphan", "pages")
    local.git("rm", "-q", "-r", "-f", ".")
    local.bad()
    assert local.push("origin", "pages").errors == ["deny-prefix"]


def test_a_protected_ref_is_judged_though_another_ref_of_the_remote_has_it(local: Local) -> None:
    weaker = local.policy(WEAK)
    bad = local.bad()
    assert local.push("origin", "main:refs/heads/work").code == 0
    assert local.ask("rev-parse", "origin/work") == bad
    answer = local.push("origin", "main")
    assert [change["commit"] for change in answer.changes] == [weaker, bad]
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])
    # Another branch that is not protected gets nothing new.
    assert local.push("origin", "main:refs/heads/other").changes == []


def test_a_commit_that_is_new_to_a_protected_ref_only_is_not_lost_behind_another_ref(local: Local) -> None:
    local.policy(WEAK)
    bad = local.bad()
    assert local.push("origin", "main:refs/heads/work").code == 0
    local.commit({"a": "x\n"})
    answer = local.push("origin", "main:refs/heads/aaa", "main:refs/heads/main", "main:refs/heads/zzz")
    refused = {(change["commit"], change["source"]["ref"]) for change in answer.changes if change["findings"]}
    assert refused == {(bad, "refs/heads/main")}


def test_what_another_protected_ref_has_is_judged_again_for_the_default_branch(tmp_path: Path) -> None:
    text = POLICY + '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    local, _ = pair(tmp_path, policy=text)
    fresh = local.commit({"a": "x\n"})
    answer = local.push("origin", "main:refs/heads/release/1")
    assert [change["commit"] for change in answer.changes] == [fresh]
    answer = local.push("origin", "main", "main:refs/heads/release/2")
    assert (answer.code, [change["commit"] for change in answer.changes]) == (0, [fresh])


def test_a_mirror_of_protected_refs_is_judged_once(tmp_path: Path) -> None:
    text = POLICY + '[push]\nprotected_refs = ["refs/heads/*"]\n'
    local, _ = pair(tmp_path, policy=text)
    made = [local.commit({f"{number}": "x\n"}) for number in range(3)]
    local.git("branch", "other", "HEAD~1")
    local.git("init", "-q", "--bare", str(tmp_path / "mirror.git"))
    local.git("remote", "add", "--mirror=push", "mirror", str(tmp_path / "mirror.git"))
    local.forget()
    answer = local.push("mirror")
    assert (answer.code, [change["commit"] for change in answer.changes][1:]) == (0, made)


# Whose signers.


def approved(local: Local, key: Key, change: Mapping[str, Any]) -> None:
    """Let a key sign an approval of a change that was refused."""
    signed = key.sign(statement_for(change))
    put_note(local, signed.statement.change_id, signed.to_line())


@needs_ssh_keygen
def test_signers_of_the_same_push_stand_for_nothing(local: Local, tmp_path: Path) -> None:
    key = Key.make(tmp_path)
    signers = local.commit({SIGNERS: key.allowed()}, "Add signers")
    local.bad()
    (change,) = (each for each in local.push("origin", "main:work").changes if each["findings"])
    approved(local, key, change)
    answer = local.push("origin", "main:work")
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])
    assert any("no signature" in warning for warning in answer.report["warnings"])
    # Once they are there, on whichever branch this one comes from, they do.
    assert local.push("origin", f"{signers}:refs/heads/work").code == 0
    assert local.push("origin", "main:work").code == 0


@needs_ssh_keygen
def test_a_line_without_a_policy_has_the_signers_of_the_default_branch(tmp_path: Path) -> None:
    local, _ = before_the_policy(tmp_path)
    key, other = Key.make(tmp_path), Key.make(tmp_path, "other")
    local.commit({SIGNERS: key.allowed()}, "Add signers")
    local.git("push", "-q", "--no-verify", "origin", "main")
    local.git("checkout", "-q", "--orphan", "pages")
    local.git("rm", "-q", "-r", "-f", ".")
    local.commit({"plain/a": "x\n"})
    local.bad()
    (change,) = (each for each in local.push("origin", "pages").changes if each["findings"])
    approved(local, other, change)
    assert local.push("origin", "pages").errors == ["deny-prefix"]
    local.git("update-ref", "-d", REF)
    approved(local, key, change)
    assert local.push("origin", "pages").code == 0


@needs_ssh_keygen
def test_nobody_is_believed_where_nothing_is_known_of_the_remote(local: Local, tmp_path: Path) -> None:
    key = Key.make(tmp_path)
    local.commit({SIGNERS: key.allowed()}, "Add signers")
    local.bad()
    local.git("init", "-q", "--bare", str(tmp_path / "empty.git"))
    change = local.push("../empty.git", "main:work").changes[-1]
    approved(local, key, change)
    assert local.push("../empty.git", "main:work").errors == ["deny-prefix"]


@needs_ssh_keygen
def test_the_line_that_is_printed_leads_to_an_approval_that_counts(tmp_path: Path) -> None:
    local, _ = pair(tmp_path)
    key = Key.make(tmp_path)
    start = local.commit({SIGNERS: key.allowed()}, "Add signers")
    local.git("push", "-q", "--no-verify", "origin", "main")
    local.git("config", "user.signingKey", str(key.path))
    local.policy(WEAK)
    bad = local.bad()
    (local.hooks / "pre-push").write_text('#!/bin/sh\nexec git-patchgate hook pre-push "$@"\n')
    done = local.try_git("push", "-q", "origin", "main")
    (line,) = re.findall(r"approve: git patchgate (.*)", (done.stdout + done.stderr).decode())
    assert line == f'approve {bad} --policy-from {start} --for refs/heads/main --reason "..." --sign'
    # What the ledger remembers is not needed for it.
    (local.path / ".git/patchgate/events.jsonl").unlink()
    line = line.replace('"..."', '"vendored from upstream"')
    assert local.cli(*shlex.split(line)).code == 0
    assert local.try_git("push", "-q", "origin", "main").returncode == 0


# What is told only.


def test_observing_tells_the_truth_and_lets_the_push_through(tmp_path: Path) -> None:
    local, _ = pair(
        tmp_path, policy=POLICY + '[hooks]\nmode = "observe"\ndraft_refs = ["refs/heads/wip/*"]\n'
    )
    local.bad()
    tip, old = local.head(), local.ask("rev-parse", "HEAD~1")
    report = local.judge(f"x {tip} refs/heads/x {old}", f"(delete) {ZERO} refs/heads/main {old}")
    assert (report.verdict, rules(report)) == ("rejected", ["ref-deleted", "deny-prefix"])
    assert all(change.policy.observes for change in report.changes)
    assert events(local) == ["observed", "observed", "pushed", "pushed"]


def test_a_draft_is_judged_at_the_push(tmp_path: Path) -> None:
    local, _ = pair(tmp_path, policy=POLICY + '[hooks]\ndraft_refs = ["refs/heads/wip/*"]\n')
    local.bad()
    assert local.push("origin", "HEAD:refs/heads/wip/x").errors == ["deny-prefix"]
    assert events(local) == ["refused"]


def events(repo: Repo) -> list[str]:
    """The kinds of the events in the ledger, in order."""
    from patchgate.ledger.ledger import Ledger

    return [event.kind for event in Ledger(str(repo.path / ".git")).events()]


# Other repositories than the plain one.


def test_a_sha256_repository_is_judged(tmp_path: Path) -> None:
    local, _ = pair(tmp_path, "--object-format=sha256")
    assert len(local.commit({"a": "x\n"})) == 64
    assert local.push("origin", "HEAD:refs/heads/new").verdict == "accepted"
    local.bad()
    assert local.push("origin", "HEAD:refs/heads/new").errors == ["deny-prefix"]
    assert local.push("origin", "--delete", "main").errors == ["ref-deleted"]


def test_replaced_objects_and_grafts_hide_nothing(local: Local) -> None:
    start = local.head()
    bad = local.bad()
    local.git("rm", "-q", "-r", "secrets")
    local.commit()
    good = local.git("commit-tree", "-p", start, "-m", "x", f"{start}^{{tree}}").decode().strip()
    local.git("replace", bad, good)
    line = f"main {local.ask('rev-parse', 'HEAD')} refs/heads/main {start}"
    assert rules(local.judge(line)) == ["deny-prefix"] * 2
    local.git("replace", "-d", bad)
    local.write(".git/info/grafts", f"{local.ask('rev-parse', 'HEAD')} {start}\n")
    assert len(commits(local.judge(line))) == 2


def test_a_push_of_submodules_is_judged_in_each(local: Local, server: Repo, tmp_path: Path) -> None:
    inner, _ = pair(tmp_path / "inner")
    allowed = ("-c", "protocol.file.allow=always")
    local.git(*allowed, "submodule", "add", "-q", str(inner.path.parent / "server.git"), "inner")
    local.git("commit", "-q", "--no-verify", "-m", "Add a submodule")
    local.git("push", "-q", "--no-verify", "origin", "main")
    module = Local(local.path / "inner", local.env)
    module.hook()
    module.bad()
    local.commit(None, "Bump it")
    before = server.ask("rev-parse", "main")
    answer = local.push("--recurse-submodules=on-demand", "origin", "main")
    assert answer.code != 0
    assert "deny-prefix" in (module.hooks / "pre-push.said").read_text()
    assert server.ask("rev-parse", "main") == before


def test_a_merge_brings_its_other_line(local: Local) -> None:
    local.git("checkout", "-q", "-b", "side")
    bad = local.bad()
    local.git("checkout", "-q", "main")
    local.commit({"a": "x\n"})
    local.git("merge", "-q", "--no-verify", "--no-edit", "side")
    answer = local.push("origin", "main")
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad]
    assert [change["source"]["kind"] for change in answer.changes].count("merge") == 1


def test_the_sh_hook_refuses_and_lets_through(local: Local, server: Repo) -> None:
    hook = local.hooks / "pre-push"
    hook.write_text('#!/bin/sh\nexec git-patchgate hook pre-push "$@"\n')
    local.commit({"a": "x\n"})
    done = local.try_git("push", "-q", "origin", "main")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    local.bad()
    done = local.try_git("push", "-q", "origin", "main")
    assert done.returncode != 0
    assert b"error[deny-prefix]" in done.stdout + done.stderr


# How git's lines are read.


names = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=40)
oids = st.text("0123456789abcdef", min_size=40, max_size=40)


@settings(max_examples=often(200), deadline=None)
@given(name=names, new=oids, old=oids)
def test_a_local_name_may_hold_anything_but_a_line_feed(
    tmp_path_factory: pytest.TempPathFactory, name: str, new: str, old: str
) -> None:
    repository = _repository(tmp_path_factory)
    line = f"{name} {new} refs/heads/x {old}\n".encode()
    (update,) = read_pushed(repository, line)
    expected = RefUpdate("refs/heads/x", None if old == ZERO else old, None if new == ZERO else new)
    assert update == expected


_MADE: list[object] = []


def _repository(factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    if not _MADE:
        repo = Repo.create(factory.mktemp("lines"))
        _MADE.append(open_repository(repo.env, str(repo.path)))
    return _MADE[0]


def test_lines_are_read_strictly_from_the_right(local: Local) -> None:
    repository = open_repository(local.env, str(local.path))
    one, two, long = "1" * 40, "2" * 40, "0" * 64
    assert read_pushed(repository, f"HEAD@{{1 day ago}} {one} refs/heads/x {two}\n".encode()) == [
        RefUpdate("refs/heads/x", two, one)
    ]
    assert read_pushed(repository, f"(delete) {long} refs/heads/x {two}".encode()) == [
        RefUpdate("refs/heads/x", two, None)
    ]
    assert read_pushed(repository, f"x {one} refs/heads/x {ZERO}\n".encode())[0].old is None
    odd = f"x {one} ".encode() + b"refs/heads/\xff" + f" {ZERO}\n".encode()
    assert read_pushed(repository, odd)[0].ref == "refs/heads/\udcff"


@pytest.mark.parametrize(
    "line",
    [
        "nothing",
        f"x {'1' * 40} refs/heads/x",
        f"x {'1' * 39} refs/heads/x {ZERO}",
        f"x {'1' * 64} refs/heads/x {ZERO}",
        f"x {'G' * 40} refs/heads/x {ZERO}",
        f"x {'A' * 40} refs/heads/x {ZERO}",
        f"x {'1' * 40} refs/heads/x {ZERO} ",
        f"x {'1' * 40} refs/heads/x {'0' * 50}",
    ],
)
def test_a_line_that_git_did_not_write_is_undecided(local: Local, line: str) -> None:
    with pytest.raises(UndecidedError, match="unreadable line"):
        local.judge(line)
