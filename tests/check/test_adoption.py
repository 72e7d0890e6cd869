"""A repository that adopts a policy brings its past along: what was there before is not refused.

Each relaxation has its counterpart here: something evil in the same place that is refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.repository import open_repository
from patchgate.hooks.pre_receive import judge_receive
from patchgate.report.verdict import Report
from tests.check.push_world import POLICY, WEAK, ZERO, Local, commits, rules
from tests.malformed import FILE, FOLDER, MODULE, blob, commit_of, ordered, rows_of, tree
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

MARKER = "<<<<<<< HEAD\n"
MAIN = "refs/heads/main"
TOPIC = "refs/heads/topic"


class Adopter(Local):
    """A repository with a past that the built-in rules refuse."""

    def old(self, name: str = "old") -> str:
        """Commit what the built-in rules refuse."""
        return self.commit({name: MARKER}, "Left-over markers")

    def bare(self, name: str) -> Repo:
        """Make an empty bare repository beside this one."""
        place = self.at(self.path.parent / name)
        self.git("init", "-q", "--bare", "-b", "main", str(place.path))
        return place

    def server(self, **branches: str) -> Repo:
        """Make a bare repository that has all objects of this one, and these branches."""
        number = len(list(self.path.parent.glob("*.git")))
        place = self.bare(f"server{number}.git")
        (place.path / "objects/info/alternates").write_text(f"{self.path}/.git/objects\n")
        for name, revision in branches.items():
            place.git("update-ref", f"refs/heads/{name}", self.ask("rev-parse", revision))
        return place

    def told(self, *refs: str, old: str = ZERO, new: str = "HEAD") -> list[str]:
        """Write what git tells pre-push of refs that all get one commit."""
        return [f"{ref} {self.ask('rev-parse', new)} {ref} {old}" for ref in refs]

    def pushed(self, *refs: str, remote: str = "fork", old: str = ZERO, new: str = "HEAD") -> Report:
        """Judge a push of one commit to refs of a remote, as the hook does."""
        return self.judge(*self.told(*refs, old=old, new=new), remote=remote, url="https://example.com/x")

    def received(self, server: Repo, *refs: str, old: str = ZERO, new: str = "HEAD") -> Report:
        """Judge what a server is about to receive, that has the objects of this repository."""
        tip = self.ask("rev-parse", new)
        text = "".join(f"{old} {tip} {ref}\n" for ref in refs)
        return judge_receive(open_repository(server.env, str(server.path)), text.encode())


@pytest.fixture
def local(tmp_path: Path) -> Adopter:
    """A clone of a project without a policy, whose second commit the built-in rules refuse."""
    made = Repo.create(tmp_path)
    local = Adopter(made.path, made.env)
    local.commit({"a": "a\n"})
    local.old()
    local.commit({"b": "b\n"})
    server = local.bare("origin.git")
    local.git("push", "-q", str(server.path), "main")
    local.git("remote", "add", "origin", str(server.path))
    local.git("fetch", "-q", "origin")
    local.git("remote", "set-head", "origin", "main")
    local.git("config", "remote.fork.url", "https://example.com/x")
    return local


def adopted(local: Adopter) -> str:
    """Adopt a policy on a branch of its own."""
    local.git("checkout", "-q", "-b", "topic")
    return local.policy(POLICY)


def refused(report: Report) -> list[str | None]:
    """The commits that were refused, in order."""
    return [each.source.commit for each in report.changes if each.verdict == "rejected"]


# What a remote-tracking ref reaches.


def test_what_another_remote_has_is_not_judged_again_and_one_note_gives_the_number(local: Adopter) -> None:
    adopting = adopted(local)
    for remote in ("fork", "https://example.com/x"):
        report = local.pushed(TOPIC, remote=remote)
        assert (report.verdict, commits(report)) == ("accepted", [adopting]), remote
        (note,) = report.warnings
        assert "3 commits" in note
    # What this very remote has is nothing to speak of.
    assert local.pushed(TOPIC, remote="origin").warnings == ()
    assert local.pushed("refs/tags/v1", "refs/notes/x").verdict == "accepted"
    report = local.judge_unpushed("fork")
    assert (report.verdict, commits(report)) == ("accepted", [adopting])


def test_a_commit_that_no_remote_has_is_refused_beside_the_old_ones(local: Adopter) -> None:
    local.git("checkout", "-q", "-b", "topic")
    evil = local.old("evil")
    local.policy(POLICY)
    bad = local.bad()
    report = local.pushed(TOPIC)
    assert report.verdict == "rejected"
    assert [each.source.commit for each in report.changes if each.verdict == "rejected"] == [evil, bad]


def test_what_a_remote_has_is_judged_for_a_protected_ref_under_any_policy(local: Adopter) -> None:
    """A remote-tracking ref is anybody's to make: no protected ref is ever reached by way of one."""
    first = adopted(local)
    bad = local.bad()
    local.git("update-ref", "refs/remotes/forged/main", bad)
    assert local.pushed(TOPIC).verdict == "accepted"
    # By its own policy, and by that of the default branch; new and existing.
    local.git("update-ref", "refs/remotes/fork/main", first)
    local.git("symbolic-ref", "refs/remotes/fork/HEAD", "refs/remotes/fork/main")
    assert rules(local.pushed(MAIN, old=first)) == ["deny-prefix"]
    protecting = local.policy(POLICY + '[push]\nprotected_refs = ["refs/heads/*"]\n')
    local.git("update-ref", "refs/remotes/forged/main", protecting)
    local.git("update-ref", "refs/remotes/fork/main", protecting)
    local.git("checkout", "-q", "-B", "side", first)
    bad = local.bad("other")
    local.git("update-ref", "refs/remotes/forged/main", bad)
    assert rules(local.pushed("refs/heads/release/1")) == ["deny-prefix"]
    # Where nothing is known of the remote its default branch may have a policy.
    local.git("checkout", "-q", "topic")
    bad = local.bad("more")
    local.git("update-ref", "refs/remotes/forged/main", bad)
    local.git("update-ref", "-d", "refs/remotes/fork/HEAD")
    local.git("update-ref", "-d", "refs/remotes/fork/main")
    assert "deny-prefix" in rules(local.pushed("refs/heads/release/1"))
    # An old value that is not here may have one as well.
    assert "deny-prefix" in rules(local.pushed(MAIN, old="1" * 40))


def test_what_a_remote_has_is_judged_for_a_protected_ref_under_a_trusted_one(local: Adopter) -> None:
    local.git("branch", "trusted", adopted(local))
    local.git("config", "patchgate.trustRef", "refs/heads/trusted")
    local.git("update-ref", "refs/remotes/fork/main", local.ask("rev-parse", "origin/main"))
    local.git("symbolic-ref", "refs/remotes/fork/HEAD", "refs/remotes/fork/main")
    local.git("checkout", "-q", "-b", "side", "origin/main")
    local.git("update-ref", "refs/remotes/forged/main", local.bad())
    assert "deny-prefix" in rules(local.pushed(MAIN, old=local.ask("rev-parse", "fork/main")))


def test_where_no_policy_governs_a_protected_ref_nothing_is_judged_twice(local: Adopter) -> None:
    local.git("update-ref", "refs/remotes/fork/main", "origin/main~2")
    local.git("symbolic-ref", "refs/remotes/fork/HEAD", "refs/remotes/fork/main")
    adopting = adopted(local)
    report = local.pushed(MAIN, old=local.ask("rev-parse", "fork/main"))
    assert (report.verdict, commits(report)) == ("accepted", [adopting])


def test_a_server_knows_no_remote_tracking_refs(local: Adopter) -> None:
    adopting = adopted(local)
    evil = local.bad()
    server = local.server(main=adopting)
    server.git("update-ref", "refs/remotes/forged/main", evil)
    server.git("update-ref", "refs/remotes/forged/more", evil)
    # A ref of the server is a ref of the server, but none excuses what comes to another policy's branch.
    assert refused(local.received(server, MAIN, old=adopting)) == [evil]


def test_a_project_is_adopted_through_real_hooks(local: Adopter) -> None:
    """`init`, one commit, then a push to a fork, to an empty repository and to one that judges."""
    fork, empty, server = (local.bare(f"{name}.git") for name in ("fork", "empty", "judging"))
    local.git("push", "-q", str(fork.path), "main")
    server.install("--server")
    assert local.cli("init", "--yes").code == 0
    local.git("checkout", "-q", "-b", "topic")
    local.git("add", "patchgate.toml")
    local.git("commit", "-q", "-m", "Add a policy for changes")
    for place in (fork, empty, server):
        done = local.try_git("push", str(place.path), "topic", "topic:new")
        assert done.returncode == 0, done.stderr.decode()
        assert "3 commits not" in done.stdout.decode()
        assert place.ask("rev-parse", "new") == local.ask("rev-parse", "topic")
    assert "1 of 3 commits " in done.stderr.decode()
    # Without what is known of another remote the first help is the command that brings it.
    local.forget()
    done = local.try_git("push", "origin", "topic:refs/heads/newer")
    first = next(line for line in done.stdout.decode().splitlines() if line.startswith("help: "))
    assert (done.returncode, first.startswith("help: git fetch origin, ")) == (1, True)
    local.git("fetch", "-q", "origin")
    assert local.try_git("push", "origin", "topic:refs/heads/newer").returncode == 0


# What is from before the first policy.


def test_a_server_takes_the_past_of_a_project_that_adopts_a_policy(local: Adopter) -> None:
    adopted(local)
    for ref in (MAIN, TOPIC):
        report = local.received(local.server(), ref)
        assert (report.verdict, len(report.changes), rules(report)) == ("accepted", 4, [])
        (note,) = report.warnings
        assert "1 of 3 commits " in note
        assert "conflict-marker" in note


def test_the_past_that_a_server_has_in_part_is_taken(local: Adopter) -> None:
    adopted(local)
    server = local.server(main="main~2")
    for ref, old in ((MAIN, local.ask("rev-parse", "main~2")), (TOPIC, ZERO)):
        report = local.received(server, ref, old=old)
        assert (report.verdict, len(report.changes), rules(report)) == ("accepted", 3, [])


def test_pre_push_lets_the_past_go_where_the_remote_is_known_to_have_no_policy(local: Adopter) -> None:
    adopted(local)
    local.git("update-ref", "refs/remotes/fork/main", "origin/main~2")
    local.git("symbolic-ref", "refs/remotes/fork/HEAD", "refs/remotes/fork/main")
    old = local.ask("rev-parse", "fork/main")
    for name in ("main", "HEAD"):
        local.git("update-ref", "--no-deref", "-d", f"refs/remotes/origin/{name}")
    report = local.pushed(MAIN, old=old)
    assert (report.verdict, len(report.changes), len(report.warnings)) == ("accepted", 3, 1)
    assert local.pushed(TOPIC).verdict == "accepted"
    # What only the ref has counts too, and so does what is not here.
    local.git("checkout", "-q", "--orphan", "governed")
    local.git("rm", "-q", "-r", "-f", ".")
    governed = local.policy(POLICY)
    for there in (governed, "1" * 40):
        report = local.pushed(TOPIC, old=there, new="topic")
        assert refused(report) == [local.ask("rev-parse", "main~1")]
    local.git("checkout", "-q", "topic")
    # Of a remote whose default branch nobody knows, all of it is judged.
    local.git("update-ref", "--no-deref", "-d", "refs/remotes/fork/HEAD")
    for ref, had in ((MAIN, old), (TOPIC, ZERO)):
        assert rules(local.pushed(ref, old=had)) == ["conflict-marker"]


def test_a_history_of_its_own_that_was_merged_before_the_first_policy_is_of_the_past(local: Adopter) -> None:
    """Its first commit has no parent, so the policy of the branch that is here judges it."""
    local.git("checkout", "-q", "--orphan", "other")
    local.git("rm", "-q", "-r", "-f", ".")
    root = local.bad()
    local.git("checkout", "-q", "main")
    local.git("merge", "-q", "--allow-unrelated-histories", "-m", "Merge", "other")
    local.git("rm", "-q", "-r", "secrets")
    local.commit()
    local.policy(POLICY)
    local.forget()
    empty = str(local.bare("empty.git").path)
    assert refused(local.judge(*local.told(MAIN), remote=empty, url=empty)) == []
    assert refused(local.received(local.server(), MAIN)) == []
    # The same behind the policy is refused.
    local.git("reset", "-q", "--hard", "main~3")
    local.policy(POLICY)
    local.git("merge", "-q", "--no-verify", "--allow-unrelated-histories", "-m", "Merge", "other")
    assert root in refused(local.judge(*local.told(MAIN), remote=empty, url=empty))
    adopting = local.ask("rev-parse", "main^1")
    assert root in refused(local.received(local.server(main=adopting), MAIN, old=adopting))


def test_what_comes_after_the_first_policy_is_refused(local: Adopter) -> None:
    """Also by a branch from before it, that is merged after it."""
    local.git("checkout", "-q", "-b", "late")
    late = local.old("evil")
    adopted(local)
    local.git("reset", "-q", "--hard", "main")
    local.policy(POLICY)
    local.git("merge", "-q", "--no-verify", "--no-ff", "-m", "Merge", "late")
    after = local.old("after")
    report = local.received(local.server(), MAIN)
    assert refused(report) == [late, after]


def test_a_change_of_a_policy_that_is_there_adds_none(local: Adopter) -> None:
    """Another branch of the server has the policy already, and a branch from before it is merged there."""
    local.git("checkout", "-q", "-b", "late")
    late = local.old("evil")
    local.git("checkout", "-q", "main")
    adopting = adopted(local)
    local.git("merge", "-q", "--no-verify", "--no-ff", "-m", "Merge", "late")
    local.policy(WEAK)
    server = local.server(main="main", topic=adopting)
    assert refused(local.received(server, "refs/heads/new")) == [late]


def test_what_broke_a_policy_on_its_own_line_is_refused(local: Adopter) -> None:
    """The policy comes to the main line by a merge, with what was committed under it before."""
    adopted(local)
    bad = local.bad()
    local.git("checkout", "-q", "main")
    local.commit({"c": "c\n"})
    local.git("merge", "-q", "--no-verify", "--no-ff", "-m", "Merge", "topic")
    report = local.received(local.server(), MAIN)
    assert bad in refused(report)
    assert local.ask("rev-parse", "main^1~2") not in refused(report)


def test_a_policy_that_was_taken_out_lets_nothing_go_by_coming_again(local: Adopter) -> None:
    adopted(local)
    local.git("rm", "-q", "patchgate.toml")
    removing = local.commit()
    evil = local.old("evil")
    local.policy(POLICY)
    report = local.received(local.server(), MAIN)
    assert refused(report) == [removing, evil]


def test_where_a_policy_is_already_the_past_is_refused(local: Adopter) -> None:
    adopting = adopted(local)
    old = local.ask("rev-parse", "main~1")
    local.git("checkout", "-q", "--orphan", "governed")
    local.git("rm", "-q", "-r", "-f", ".")
    governed = local.policy(POLICY)
    # The default branch has one, only the target has one, nothing tells which is the default branch.
    nowhere = local.server(trunk="main~2")
    for server, had in (
        (local.server(main=governed), ZERO),
        (local.server(main="main~2", topic=governed), governed),
        (nowhere, ZERO),
    ):
        assert old in refused(local.received(server, TOPIC, old=had, new="topic"))
    nowhere.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert refused(local.received(nowhere, TOPIC, new="topic")) == []
    # A ref is trusted above all.
    server = local.server(main="main~2")
    server.git("update-ref", "refs/policies/main", governed)
    server.git("config", "patchgate.trustRef", "refs/policies/main")
    assert old in refused(local.received(server, TOPIC, new="topic"))
    assert adopting not in refused(local.received(server, TOPIC, new="topic"))


def test_a_line_without_any_policy_is_judged_by_the_built_in_rules(local: Adopter) -> None:
    report = local.received(local.server(), MAIN)
    assert (rules(report), refused(report)) == (["conflict-marker"], [local.ask("rev-parse", "main~1")])


def test_invariants_and_malformed_trees_refuse_whenever_they_came(local: Adopter) -> None:
    rows = rows_of(local, "main")
    parent = local.ask("rev-parse", "main")
    named = sorted([*rows, (FILE, b"patchgate.toml", blob(local, POLICY.encode()))], key=lambda row: row[1])
    folder = tree(local, [(FILE, b"GIT~1", blob(local, b"x"))])

    def tip(root: str) -> str:
        again = commit_of(local, tree(local, rows), commit_of(local, root, parent))
        return commit_of(local, tree(local, named), again)

    marked = tree(local, [*rows, (FILE, b"zz", blob(local, MARKER.encode()))])
    assert refused(local.received(local.server(), MAIN, new=tip(marked))) == []
    both = tree(local, [*rows, (FOLDER, b"x", folder), (FILE, b"zz", blob(local, MARKER.encode()))])
    report = local.received(local.server(), MAIN, new=tip(both))
    assert (refused(report), rules(report)) == ([local.ask("rev-parse", f"{tip(both)}~2")], ["path-git-dir"])
    with pytest.raises(UndecidedError, match="malformed"):
        local.received(local.server(), MAIN, new=tip(tree(local, rows[::-1])))


def test_a_folder_mode_of_old_hosts_is_taken_from_the_past_and_from_nowhere_else(local: Adopter) -> None:
    """Every reader takes `040000` for a folder; only fsck warns of it."""
    rows, parent = rows_of(local, "main"), local.ask("rev-parse", "main")
    folder = tree(local, [(FILE, b"x", blob(local, b"x"))])
    padded = tree(local, [*rows, (b"040000", b"x", folder)])
    policy = (FILE, b"patchgate.toml", blob(local, POLICY.encode()))
    old = commit_of(local, padded, parent)
    adding = commit_of(local, tree(local, ordered([*rows, policy, (FOLDER, b"x", folder)])), old)
    report = local.received(local.server(), MAIN, new=adding)
    assert (report.verdict, len(report.changes)) == ("accepted", 5)
    worse = tree(local, ordered([*rows, policy, (b"040000", b"x", folder)]))
    evil, itself = commit_of(local, worse, adding), commit_of(local, worse, parent)
    for tip, server in (
        (old, local.server()),
        (evil, local.server()),
        (itself, local.server()),
        (adding, local.server(main=local.policy(POLICY))),
    ):
        with pytest.raises(UndecidedError, match="malformed"):
            local.received(server, TOPIC, new=tip)
    for row in ((b"060000", b"x", folder), (MODULE, b"x", "0" * 40)):
        worse = commit_of(local, tree(local, [*rows, row]), parent)
        tip = commit_of(local, tree(local, ordered([*rows, policy])), worse)
        with pytest.raises(UndecidedError, match="malformed"):
            local.received(local.server(), MAIN, new=tip)


def test_pre_push_lets_the_past_go_to_a_folder_without_any_commit(local: Adopter) -> None:
    """A project that has no remote yet, and a first one."""
    adopted(local)
    local.policy(POLICY + '[push]\nprotected_refs = ["refs/heads/*"]\n')
    local.forget()
    empty = local.bare("empty.git")
    for url in (str(empty.path), f"file://{empty.path}"):
        report = local.judge(*local.told(MAIN, TOPIC), remote=url, url=url)
        assert (report.verdict, len(report.changes), len(report.warnings)) == ("accepted", 5, 1)
    # What comes after the policy is judged there too, and so is everything where anything is there already.
    bad = local.bad()
    assert refused(local.judge(*local.told(MAIN), remote=url, url=url)) == [bad]
    local.git("push", "-q", str(empty.path), "main~2:refs/heads/trunk")
    old = local.ask("rev-parse", "main~1")
    assert refused(local.judge(*local.told(MAIN), remote=url, url=url)) == [old, bad]
    assert old in refused(local.pushed(MAIN))


# Where a refused commit may be there already.


def test_the_first_help_is_to_fetch_where_the_remote_may_have_the_commit(local: Adopter) -> None:
    adopted(local)
    for name in ("main", "HEAD"):
        local.git("update-ref", "--no-deref", "-d", f"refs/remotes/origin/{name}")
    (local.path / ".git/logs/HEAD").unlink()
    evil = local.bad()
    report = local.pushed(TOPIC)
    hints = {each.source.commit: each.findings[0].hint for each in report.changes if each.findings}
    assert str(hints.pop(local.ask("rev-parse", "main~1"))).startswith("git fetch fork, ")
    assert "git fetch" not in str(hints.pop(evil))
    # Which really leads on.
    local.git("update-ref", "refs/remotes/fork/main", "main")
    assert refused(local.pushed(TOPIC)) == [evil]
    # A URL has nothing that could be fetched into a remote-tracking branch.
    report = local.pushed(TOPIC, remote="https://example.com/x")
    assert "git fetch" not in str([each.findings for each in report.changes])


def test_the_first_help_is_to_fetch_where_another_remote_has_the_commit(local: Adopter) -> None:
    first = adopted(local)
    local.git("update-ref", "refs/remotes/fork/main", first)
    local.git("symbolic-ref", "refs/remotes/fork/HEAD", "refs/remotes/fork/main")
    local.git("update-ref", "refs/remotes/upstream/main", local.bad())
    bad = local.bad("more")
    report = local.pushed(MAIN, old=first)
    hints = [str(each.findings[0].hint) for each in report.changes]
    assert [hint.startswith("git fetch fork, ") for hint in hints] == [True, False]
    assert refused(report)[-1] == bad
