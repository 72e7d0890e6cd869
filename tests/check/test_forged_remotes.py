"""What this clone says of a remote is anybody's to write; what git says the remote has is not.

Git gives pre-push the value that each ref has there. Each test forges a local ref, and pushes what it would
hide.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.report.verdict import Report
from tests.check.push_world import POLICY, WEAK, ZERO, Local, commits, pair, rules
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

MAIN = "refs/heads/main"
TOPIC = "refs/heads/topic"
URL = "https://example.com/x"
SHARED = ["main", "master", "trunk", "develop", "production", "release/1"]
LISTING = POLICY + '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'


class Clone(Local):
    """A clone whose remote is a host's: nothing is known of it but what git and the local refs say."""

    def has(self, name: str, revision: str) -> None:
        """Write a remote-tracking ref, as anybody can."""
        self.git("update-ref", f"refs/remotes/{name}", revision)

    def set_head(self, branch: str) -> None:
        """Do as `git remote set-head origin BRANCH`, for any name."""
        self.git("symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{branch}")

    def forget_head(self) -> None:
        """Do as `git remote set-head origin --delete`."""
        self.git("update-ref", "--no-deref", "-d", "refs/remotes/origin/HEAD")

    def pushed(self, *refs: str, old: str = ZERO, new: str = "HEAD", remote: str = "origin") -> Report:
        """Judge a push of one commit to refs that all have one value."""
        tip = ZERO if new == ZERO else self.ask("rev-parse", new)
        return self.judge(*(f"{ref} {tip} {ref} {old}" for ref in refs), remote=remote, url=URL)


def made(folder: Path, policy: str = POLICY) -> Clone:
    """Make a clone of a repository whose main has a policy."""
    there, _ = pair(folder, policy=policy)
    local = Clone(there.path, there.env)
    local.git("remote", "set-url", "origin", URL)
    return local


@pytest.fixture
def local(tmp_path: Path) -> Clone:
    return made(tmp_path)


def refused(report: Report) -> list[str | None]:
    """The commits that were refused, in order."""
    return [each.source.commit for each in report.changes if each.findings and each.source.commit]


# Another branch is said to be the default one.


@pytest.mark.parametrize("packed", [False, True])
def test_main_is_judged_whatever_branch_this_clone_takes_for_the_default_one(
    local: Clone, packed: bool
) -> None:
    there = local.head()
    unlisted = local.policy(POLICY + "[push]\nprotected_refs = []\n")
    local.git("checkout", "-q", "--orphan", "without")
    local.git("rm", "-q", "-r", "-f", ".")
    without = local.commit({"a": "x\n"})
    local.git("checkout", "-q", "-B", "side", there)
    bad = local.bad()
    local.has("upstream/any", bad)
    for tip in (there, bad, unlisted, without):
        local.has("origin/feature", tip)
        local.set_head("feature")
        if packed:
            local.git("pack-refs", "--all")
        report = local.pushed(MAIN, old=there)
        assert (rules(report), refused(report)) == (["deny-prefix"], [bad]), tip


def test_a_real_push_of_what_a_forged_ref_reaches_is_refused(tmp_path: Path) -> None:
    local, server = pair(tmp_path)
    there = server.ask("rev-parse", "main")
    local.git("push", "-q", "--no-verify", "origin", "main:feature", "main:trunk")
    local.git("fetch", "-q", "origin")
    local.git("remote", "set-head", "origin", "feature")
    bad = local.bad()
    local.git("update-ref", "refs/remotes/upstream/any", bad)
    for branch in ("main", "trunk"):
        answer = local.push("origin", f"{bad}:{branch}")
        assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])
        assert server.ask("rev-parse", branch) == there
        local.git("remote", "set-head", "origin", "--delete")


def test_the_policy_that_main_has_judges_it_under_another_default_branch(local: Clone) -> None:
    there = local.head()
    local.policy(WEAK + "[push]\nprotected_refs = []\n")
    local.has("origin/feature", "HEAD")
    local.set_head("feature")
    bad = local.bad()
    assert refused(local.pushed(MAIN, old=there)) == [bad]


def test_main_is_neither_deleted_nor_forced_under_another_default_branch(local: Clone) -> None:
    there = local.commit({"a": "x\n"})
    local.has("origin/feature", "HEAD~1")
    local.set_head("feature")
    assert rules(local.pushed(MAIN, old=there, new=ZERO)) == ["ref-deleted"]
    assert rules(local.pushed(MAIN, old=there, new="HEAD~1")) == ["ref-forced"]
    # A branch that never had a policy is left behind by a change of names.
    local.git("checkout", "-q", "--orphan", "without")
    local.git("rm", "-q", "-r", "-f", ".")
    assert rules(local.pushed(MAIN, old=local.commit({"a": "x\n"}), new=ZERO)) == []


@pytest.mark.parametrize("head", ["", "feature"])
@pytest.mark.parametrize("name", SHARED)
def test_a_shared_branch_is_judged_from_what_the_remote_has_there(local: Clone, name: str, head: str) -> None:
    there = local.head()
    bad = local.bad()
    local.has("upstream/any", bad)
    local.has("origin/feature", bad)
    local.set_head(head) if head else local.forget_head()
    assert refused(local.pushed(f"refs/heads/{name}", old=there)) == [bad]
    # By any name of the remote, and by a URL.
    local.git("config", "remote.again.url", URL)
    local.git("config", "remote.pushDefault", "again")
    for remote in ("again", URL):
        assert refused(local.pushed(f"refs/heads/{name}", old=there, remote=remote)) == [bad]


def test_the_past_is_judged_where_main_has_a_policy_under_another_default_branch(local: Clone) -> None:
    local.git("checkout", "-q", "--orphan", "without")
    local.git("rm", "-q", "-r", "-f", ".")
    start = local.commit({"a": "x\n"})
    old = local.commit({"old": "<<<<<<< HEAD\n"}, "Left-over markers")
    local.policy(POLICY)
    local.has("origin/feature", start)
    local.set_head("feature")
    assert refused(local.pushed(TOPIC)) == [old]
    local.git("update-ref", "-d", "refs/remotes/origin/main")
    assert refused(local.pushed(TOPIC)) == []


# The default branch is said to have more than it has.


def test_a_protected_branch_knows_only_what_the_remote_has_there(tmp_path: Path) -> None:
    local = made(tmp_path, LISTING)
    there = local.head()
    bad = local.bad()
    local.has("origin/main", bad)
    assert refused(local.pushed("refs/heads/release/1", old=there)) == [bad]
    # Of one ref of the push git says what it has, of the other nothing.
    for refs in ((MAIN, "refs/heads/release/2"), ("refs/heads/release/2", MAIN)):
        lines = [f"x {bad} {ref} {there if ref == MAIN else ZERO}" for ref in refs]
        assert bad in refused(local.judge(*lines, url=URL)), refs
        local.has("origin/feature", bad)
        local.set_head("feature")
        assert bad in refused(local.judge(*lines, url=URL)), refs


def test_each_of_several_protected_branches_is_judged_from_its_own_value(tmp_path: Path) -> None:
    local = made(tmp_path, LISTING)
    first = local.head()
    second, third = local.commit({"a": "x\n"}), local.commit({"b": "x\n"})
    lines = [f"x {third} {MAIN} {second}", f"x {third} refs/heads/release/1 {first}"]
    for told in (lines, lines[::-1]):
        report = local.judge(*told, url=URL)
        assert (report.verdict, set(commits(report))) == ("accepted", {second, third})
    local.has("origin/main", second)
    report = local.pushed(MAIN, old=second)
    assert commits(report) == [third]


def test_a_value_that_is_not_here_is_fetched_first(tmp_path: Path) -> None:
    local = made(tmp_path, POLICY + '[rules]\nref-forced = "off"\n')
    local.has("upstream/any", local.bad())
    local.has("origin/main", "HEAD")
    for ref in (MAIN, "refs/heads/trunk"):
        report = local.pushed(ref, old="1" * 40)
        assert report.verdict == "undecided", ref
        assert "git fetch origin" in str(report.changes[0].gates[0].reason)


# Who is honest is not held up.


def test_a_branch_of_ones_own_goes_on_from_what_another_remote_has(local: Clone) -> None:
    """A fork of a project that has no policy: a topic adds one, and is rebased."""
    local.git("checkout", "-q", "--orphan", "upstream")
    local.git("rm", "-q", "-r", "-f", ".")
    start = local.commit({"a": "a\n"})
    local.policy(POLICY)
    old = local.head()
    local.git("checkout", "-q", "--detach", start)
    local.commit({"old": "<<<<<<< HEAD\n"}, "Left-over markers")
    local.has("upstream/main", "HEAD")
    adopting = local.policy(POLICY)
    local.has("origin/main", start)
    for head in ("main", "gone"):
        local.set_head(head)
        report = local.pushed(TOPIC, old=old)
        assert (report.verdict, commits(report)) == ("accepted", [adopting])
        (note,) = report.warnings
        assert "1 commit not" in note


def test_a_shared_branch_without_a_policy_takes_what_the_default_branch_has(local: Clone) -> None:
    """It got a policy, with a past that nobody can change; now it is released."""
    local.git("checkout", "-q", "--orphan", "again")
    local.git("rm", "-q", "-r", "-f", ".")
    start = local.commit({"a": "a\n"})
    local.commit({"old": "<<<<<<< HEAD\n"}, "Left-over markers")
    local.policy(POLICY + '[push]\nprotected_refs = ["refs/heads/*"]\n')
    local.has("origin/main", "HEAD")
    local.set_head("main")
    fresh = local.commit({"b": "b\n"})
    for name in ("production", "release/1", "topic"):
        report = local.pushed(f"refs/heads/{name}", old=start)
        assert (report.verdict, commits(report)) == ("accepted", [fresh])


def test_what_the_policy_of_a_branch_leaves_out_is_no_shared_branch(tmp_path: Path) -> None:
    local = made(tmp_path, POLICY + '[push]\nprotected_refs = ["refs/heads/release/*"]\n')
    there = local.head()
    local.has("upstream/any", local.bad())
    for ref in (MAIN, "refs/heads/trunk", TOPIC):
        report = local.pushed(ref, old=there)
        assert (report.verdict, commits(report)) == ("accepted", [])


def test_a_repository_in_a_folder_says_itself_which_its_default_branch_is(tmp_path: Path) -> None:
    local, server = pair(tmp_path, policy=POLICY)
    there = local.head()
    local.git("push", "-q", "--no-verify", "origin", "main:refs/heads/trunk")
    local.git("fetch", "-q", "origin")
    local.git("remote", "set-head", "origin", "trunk")
    assert local.push("origin", "--delete", "main").errors == ["ref-deleted"]
    server.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert local.push("origin", "--delete", "main").code == 0
    # What the default branch has there counts for another one; what is only said of it here does not.
    local.policy(POLICY + '[push]\nprotected_refs = ["refs/heads/*"]\n')
    local.git("push", "-q", "--no-verify", "origin", "main:trunk")
    server.git("update-ref", "refs/heads/release/1", there)
    assert local.push("origin", "main:release/1").changes == []
    server.git("update-ref", "refs/heads/release/1", there)
    bad = local.bad()
    local.git("update-ref", "refs/remotes/origin/trunk", bad)
    assert local.push("origin", "main:release/1").errors == ["deny-prefix"]


def test_of_a_new_branch_only_this_clone_says_what_the_remote_has(tmp_path: Path) -> None:
    """The limit of what a clone can know: git says nothing of the other refs of a remote."""
    local = made(tmp_path, LISTING)
    bad = local.bad()
    local.has("upstream/any", bad)
    assert refused(local.pushed("refs/heads/release/1")) == [bad]
    local.has("origin/main", bad)
    assert local.pushed("refs/heads/release/1").verdict == "accepted"


def test_the_server_reads_no_forged_ref(tmp_path: Path) -> None:
    made_here, server = pair(tmp_path)
    local = Clone(made_here.path, made_here.env)
    Repo(server.path, server.env).install("--server")
    local.bad()
    local.has("origin/feature", "HEAD")
    local.set_head("feature")
    assert local.try_git("push", "-q", "--no-verify", "origin", "main").returncode != 0
