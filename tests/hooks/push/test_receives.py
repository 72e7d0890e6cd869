"""A server judges every commit that is new to it, by the policy that it has, and writes nothing."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.repository import open_repository
from patchgate.hooks.pre_receive import judge_receive
from patchgate.report.verdict import Report
from tests.check.push_world import POLICY, WEAK, ZERO, Local, pair, snapshot, write_hook
from tests.signing import REF, SIGNERS, Key, needs_ssh_keygen, put_note, statement_for
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)


class Server(Repo):
    """A bare repository that judges what it receives."""

    @property
    def hook(self) -> Path:
        """The hook, whose report is kept beside it."""
        return self.path / "hooks" / "pre-receive"

    def receive(self, local: Repo, *arguments: str) -> Answer:
        """Let a repository push to this one; give git's exit code with what the hook here said."""
        said = self.hook.with_name("pre-receive.said")
        said.unlink(missing_ok=True)
        done = local.try_git("push", *arguments)
        text = said.read_text() if said.exists() else ""
        said.unlink(missing_ok=True)
        return Answer(done.returncode, text, done.stderr.decode("utf-8", "backslashreplace"))


def served(folder: Path, *arguments: str, policy: str = POLICY) -> tuple[Local, Server]:
    """Make a repository and the server that it pushes to; only the server judges."""
    local, bare = pair(folder, *arguments, policy=policy)
    (local.hooks / "pre-push").unlink()
    server = Server(bare.path, bare.env)
    write_hook(server.hook, "hooks.pre_receive", "judge_receive")
    server.git("config", "receive.denyDeleteCurrent", "ignore")
    return local, server


@pytest.fixture
def both(tmp_path: Path) -> tuple[Local, Server]:
    return served(tmp_path)


@pytest.fixture
def local(both: tuple[Local, Server]) -> Local:
    return both[0]


@pytest.fixture
def server(both: tuple[Local, Server]) -> Server:
    return both[1]


def test_what_is_good_is_received(local: Local, server: Server) -> None:
    fresh = local.commit({"a": "x\n"})
    answer = server.receive(local, "origin", "main")
    assert (answer.code, answer.verdict) == (0, "accepted")
    assert [change["commit"] for change in answer.changes] == [fresh]
    assert answer.report["warnings"] == []
    assert server.ask("rev-parse", "main") == fresh


def test_what_is_bad_is_refused_and_leaves_no_trace(local: Local, server: Server) -> None:
    local.bad()
    local.git("rm", "-q", "-r", "secrets")
    local.commit()
    before = snapshot(server.path)
    answer = server.receive(local, "origin", "main")
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"] * 2)
    assert snapshot(server.path) == before


def test_nothing_of_ours_is_written_on_the_server(local: Local, server: Server) -> None:
    local.commit({"a": "x\n"})
    assert server.receive(local, "origin", "main").code == 0
    assert not (server.path / "patchgate").exists()


def test_a_merge_is_judged_from_quarantine(local: Local, server: Server) -> None:
    local.git("checkout", "-q", "-b", "side")
    local.commit({"side": "x\n"})
    local.git("checkout", "-q", "main")
    local.commit({"main": "x\n"})
    local.git("merge", "-q", "--no-commit", "side")
    local.stage({"secrets/evil": "x\n"})
    local.git("commit", "-q", "--no-verify", "-m", "Merge side")
    before = snapshot(server.path)
    answer = server.receive(local, "origin", "main")
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])
    assert snapshot(server.path) == before


def test_of_several_refs_the_second_is_judged_too_and_none_lands(local: Local, server: Server) -> None:
    local.commit({"good": "x\n"})
    local.git("checkout", "-q", "-b", "side", "HEAD~1")
    local.bad()
    answer = server.receive(local, "origin", "main", "side")
    assert answer.errors == ["deny-prefix"]
    assert server.ask("for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_commit_that_several_refs_bring_is_judged_once(local: Local, server: Server) -> None:
    fresh = local.commit({"a": "x\n"})
    local.git("tag", "-a", "-m", "x", "v1")
    answer = server.receive(local, "origin", "main", "v1", "main:refs/heads/topic")
    assert (answer.code, [change["commit"] for change in answer.changes]) == (0, [fresh])


def test_a_tag_whose_commit_is_on_no_branch_is_judged(local: Local, server: Server) -> None:
    local.git("checkout", "-q", "--detach")
    bad = local.bad()
    local.git("tag", "-a", "-m", "x", "inner")
    local.git("tag", "-a", "-m", "x", "outer", "inner")
    answer = server.receive(local, "origin", "outer")
    assert (answer.code != 0, [change["commit"] for change in answer.changes]) == (True, [bad])


def test_a_tag_of_a_tree_is_undecided(local: Local, server: Server) -> None:
    local.git("tag", "-a", "-m", "x", "odd", "HEAD^{tree}")
    answer = server.receive(local, "origin", "odd")
    assert (answer.code != 0, answer.verdict) == (True, "undecided")


def test_what_any_ref_of_the_server_reaches_is_not_new(local: Local, server: Server) -> None:
    local.bad()
    server.hook.rename(server.hook.with_name("off"))
    assert server.receive(local, "origin", "main:refs/heads/topic").code == 0
    server.hook.with_name("off").rename(server.hook)
    answer = server.receive(local, "origin", "main:refs/heads/other")
    assert (answer.code, answer.changes) == (0, [])


# Whose policy judges.


def test_a_policy_that_is_weakened_on_the_way_judges_nothing_yet(local: Local, server: Server) -> None:
    start = local.head()
    weaker = local.policy(WEAK)
    bad = local.bad()
    for ref in ("refs/heads/main", "refs/heads/topic", "refs/tags/v1"):
        answer = server.receive(local, "origin", f"main:{ref}")
        assert answer.code != 0, ref
        assert [change["commit"] for change in answer.changes] == [weaker, bad], ref
        assert answer.errors == ["deny-prefix"], ref
        assert answer.changes[0]["policy"]["from"] == f"{start[:12]}:patchgate.toml", ref
    # Once the weaker policy is there, it judges.
    assert server.receive(local, "origin", f"{weaker}:refs/heads/main").code == 0
    assert server.receive(local, "origin", "main").code == 0


def test_a_new_ref_is_judged_by_the_nearest_policy_of_the_default_branch(
    local: Local, server: Server
) -> None:
    before = local.head()
    local.policy(POLICY.replace("secrets", "vault"))
    local.git("push", "-q", "origin", "main")
    local.git("checkout", "-q", "-b", "topic", before)
    local.commit({"vault/x": "x\n"})
    assert server.receive(local, "origin", "topic").code == 0
    local.git("checkout", "-q", "-b", "late", "main")
    local.commit({"vault/x": "x\n"})
    assert server.receive(local, "origin", "late").errors == ["deny-prefix"]


def test_a_branch_without_a_common_history_is_judged_by_the_default_branch(
    local: Local, server: Server
) -> None:
    local.git("checkout", "-q", "--orphan", "pages")
    local.git("rm", "-q", "-r", "-f", ".")
    local.commit({"patchgate.toml": WEAK, "secrets/k": "x\n"})
    assert "deny-prefix" in server.receive(local, "origin", "pages").errors


def test_a_brand_new_server_is_filled_by_the_policies_before_each_commit(tmp_path: Path) -> None:
    local, server = served(tmp_path)
    server.git("update-ref", "-d", "refs/heads/main")
    answer = server.receive(local, "origin", "main")
    assert (answer.code, answer.verdict, len(answer.changes)) == (0, "accepted", 1)
    server.git("update-ref", "-d", "refs/heads/main")
    bad = local.bad()
    answer = server.receive(local, "origin", "main")
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad]


def test_a_server_without_a_policy_gets_its_first_one_and_is_held_to_it(tmp_path: Path) -> None:
    local, server = served(tmp_path)
    local.git("checkout", "-q", "--orphan", "plain")
    local.git("rm", "-q", "-r", "-f", ".")
    local.commit({"a": "x\n"})
    server.hook.rename(server.hook.with_name("off"))
    local.git("push", "-q", "--force", "origin", "plain:main")
    server.hook.with_name("off").rename(server.hook)
    local.policy(POLICY)
    bad = local.bad()
    answer = server.receive(local, "origin", "plain:main")
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad]


def test_a_trusted_ref_judges_everything(local: Local, server: Server) -> None:
    local.git("push", "-q", "origin", "main:refs/heads/policy")
    server.git("config", "patchgate.trustRef", "refs/heads/policy")
    weaker = local.policy(WEAK)
    assert server.receive(local, "origin", "main").code == 0
    local.bad()
    assert server.ask("rev-parse", "main") == weaker
    answer = server.receive(local, "origin", "main")
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])
    assert answer.change["policy"]["from"] == "refs/heads/policy:patchgate.toml"


def test_a_broken_policy_on_the_server_can_be_mended(local: Local, server: Server) -> None:
    server.hook.rename(server.hook.with_name("off"))
    local.policy("[polizei]\n")
    local.git("push", "-q", "origin", "main")
    server.hook.with_name("off").rename(server.hook)
    local.policy(POLICY)
    answer = server.receive(local, "origin", "main")
    assert (answer.code, answer.rules) == (0, ["policy-repaired"])


def test_notes_are_received_though_the_policy_knows_no_such_names(tmp_path: Path) -> None:
    local, server = served(tmp_path, policy='[policy]\nallow_roots = ["src"]\n[message]\nlevel = "off"\n')
    local.git("notes", "add", "-m", "a note", "HEAD")
    assert server.receive(local, "origin", "refs/notes/commits").code == 0
    local.git("notes", "append", "-m", "another", "HEAD")
    assert server.receive(local, "origin", "refs/notes/commits").code == 0
    # What came as notes is new to a branch, where the policy judges it.
    answer = server.receive(local, "origin", "refs/notes/commits:refs/heads/notes")
    assert (answer.code != 0, set(answer.errors)) == (True, {"outside-allow-roots"})


def without_policy(local: Local, server: Server) -> str:
    """Let the server's main begin with a commit that has no policy; give that commit."""
    local.git("checkout", "-q", "--orphan", "again")
    local.git("rm", "-q", "-r", "-f", ".")
    first = local.commit({"plain/a": "a\n"})
    local.policy(POLICY)
    local.git("branch", "-M", "again", "main")
    unjudged(local, server, "--force", "origin", "main")
    return first


def unjudged(local: Local, server: Server, *arguments: str) -> None:
    """Push past the hook."""
    server.hook.rename(server.hook.with_name("off"))
    local.git("push", "-q", *arguments)
    server.hook.with_name("off").rename(server.hook)


@pytest.mark.parametrize("ref", ["main", "dev"])
def test_a_branch_from_before_the_policy_does_not_bring_what_it_denies_by_a_merge(
    local: Local, server: Server, ref: str
) -> None:
    first = without_policy(local, server)
    unjudged(local, server, "origin", "main:dev")
    local.git("checkout", "-q", "-b", "x", first)
    bad = local.bad()
    local.git("merge", "-q", "--no-verify", "-m", "Merge main", "main")
    answer = server.receive(local, "origin", f"x:{ref}")
    assert [change["commit"] for change in answer.changes if change["verdict"] == "rejected"] == [bad]


def test_a_branch_from_before_the_policy_is_judged_by_the_default_branch(
    local: Local, server: Server
) -> None:
    first = without_policy(local, server)
    local.git("checkout", "-q", "-b", "x", first)
    bad = local.bad()
    answer = server.receive(local, "origin", "x:refs/heads/y")
    assert (answer.errors, [change["commit"] for change in answer.changes]) == (["deny-prefix"], [bad])
    # Nor once the ref is there, as it was before the policy.
    assert server.receive(local, "origin", f"{first}:refs/heads/y").code == 0
    assert server.receive(local, "origin", "x:refs/heads/y").errors == ["deny-prefix"]


def test_main_is_not_reached_by_way_of_another_branch(local: Local, server: Server) -> None:
    start = local.head()
    local.git("checkout", "-q", "-b", "dev")
    local.policy(WEAK)
    assert server.receive(local, "origin", "dev").code == 0
    bad = local.bad()
    assert server.receive(local, "origin", "dev").code == 0
    local.policy(POLICY)
    assert server.receive(local, "origin", "dev").code == 0
    answer = server.receive(local, "origin", "dev:main")
    assert (answer.code != 0, answer.errors) == (True, ["deny-prefix"])
    assert [change["commit"] for change in answer.changes if change["findings"]] == [bad]
    assert len(answer.changes) == 3
    assert server.ask("rev-parse", "main") == start


def test_what_another_protected_ref_has_is_judged_again_for_the_default_branch(tmp_path: Path) -> None:
    text = POLICY + '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    local, server = served(tmp_path, policy=text)
    fresh = local.commit({"a": "x\n"})
    answer = server.receive(local, "origin", "main:refs/heads/release/1")
    assert [change["commit"] for change in answer.changes] == [fresh]
    answer = server.receive(local, "origin", "main", "main:refs/heads/release/2")
    assert (answer.code, [change["commit"] for change in answer.changes]) == (0, [fresh])


def test_a_branch_that_was_judged_is_judged_once_more_where_it_comes_to_main(
    local: Local, server: Server
) -> None:
    local.git("checkout", "-q", "-b", "topic")
    made = [local.commit({f"{number}": "x\n"}) for number in range(3)]
    assert server.receive(local, "origin", "topic").code == 0
    local.git("checkout", "-q", "main")
    local.git("merge", "-q", "--no-ff", "--no-verify", "-m", "Merge topic", "topic")
    answer = server.receive(local, "origin", "main")
    merged = local.head()
    assert (answer.code, [change["commit"] for change in answer.changes]) == (0, [*made, merged])


def test_what_came_as_protected_notes_is_new_to_a_protected_branch(tmp_path: Path) -> None:
    protected = '[push]\nprotected_refs = ["refs/notes/*", "refs/heads/*"]\n'
    text = '[policy]\nallow_roots = ["src"]\n[message]\nlevel = "off"\n' + protected
    local, server = served(tmp_path, policy=text)
    local.git("notes", "add", "-m", "a note", "HEAD")
    assert server.receive(local, "origin", "refs/notes/commits").code == 0
    local.git("notes", "append", "-m", "another", "HEAD")
    assert server.receive(local, "origin", "refs/notes/commits").code == 0
    answer = server.receive(local, "origin", "refs/notes/commits:refs/heads/notes")
    assert (answer.code != 0, set(answer.errors)) == (True, {"outside-allow-roots"})


@needs_ssh_keygen
def test_main_has_its_own_signers_whoever_signed_on_another_branch(
    local: Local, server: Server, tmp_path: Path
) -> None:
    key = Key.make(tmp_path)
    local.git("checkout", "-q", "-b", "dev")
    local.commit({SIGNERS: key.allowed()}, "Add signers")
    assert server.receive(local, "origin", "dev").code == 0
    local.bad()
    signed = key.sign(statement_for(server.receive(local, "origin", "dev").changes[0]))
    put_note(local, signed.statement.change_id, signed.to_line())
    assert server.receive(local, "origin", "dev", REF).code == 0
    answer = server.receive(local, "origin", "dev:main")
    assert (answer.code != 0, sorted(answer.errors)) == (True, ["deny-prefix", "owner-approval-missing"])


@needs_ssh_keygen
def test_the_signers_of_a_ref_do_not_stand_for_another_of_the_same_push(
    local: Local, server: Server, tmp_path: Path
) -> None:
    key = Key.make(tmp_path)
    local.git("checkout", "-q", "-b", "dev")
    local.commit({SIGNERS: key.allowed()}, "Add signers")
    assert server.receive(local, "origin", "dev").code == 0
    bad = local.bad()
    signed = key.sign(statement_for(server.receive(local, "origin", "dev").changes[0]))
    put_note(local, signed.statement.change_id, signed.to_line())
    answer = server.receive(local, "origin", "dev", "dev:main", REF)
    assert (answer.code != 0, sorted(answer.errors)) == (True, ["deny-prefix", "owner-approval-missing"])
    refused = [each["source"]["ref"] for each in answer.changes if each["verdict"] == "rejected"]
    assert set(refused) == {"refs/heads/main"}
    assert [each["commit"] for each in answer.changes].count(bad) == 2


# Protected refs.


def test_the_default_branch_is_neither_deleted_nor_forced(local: Local, server: Server) -> None:
    before = local.commit({"a": "x\n"})
    assert server.receive(local, "origin", "main").code == 0
    local.commit({"a": "y\n"}, "Again", "--amend")
    answer = server.receive(local, "--force", "origin", "main")
    assert (answer.code != 0, answer.errors) == (True, ["ref-forced"])
    answer = server.receive(local, "origin", "--delete", "main")
    assert (answer.code != 0, answer.errors) == (True, ["ref-deleted"])
    assert server.ask("rev-parse", "main") == before


def test_the_default_branch_is_the_one_that_head_names(local: Local, server: Server) -> None:
    assert server.receive(local, "origin", "main:refs/heads/trunk").code == 0
    server.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert server.receive(local, "origin", "--delete", "main").code == 0
    assert server.receive(local, "origin", "--delete", "trunk").errors == ["ref-deleted"]


@pytest.mark.parametrize("head", ["refs/heads/nothing", None])
def test_where_head_names_no_branch_the_usual_names_are_protected(
    local: Local, server: Server, head: str | None
) -> None:
    if head is not None:
        server.git("symbolic-ref", "HEAD", head)
    else:
        server.git("update-ref", "--no-deref", "HEAD", "refs/heads/main")
    assert server.receive(local, "origin", "--delete", "main").errors == ["ref-deleted"]
    local.policy(WEAK)
    local.bad()
    assert server.receive(local, "origin", "main:refs/heads/new").errors == ["deny-prefix"]


def test_the_config_names_protected_refs_by_pattern(tmp_path: Path) -> None:
    text = POLICY + '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    local, server = served(tmp_path, policy=text)
    assert server.receive(local, "origin", "main:refs/heads/release/1", "main:refs/heads/topic").code == 0
    assert server.receive(local, "origin", "--delete", "release/1", "topic").errors == ["ref-deleted"]
    assert server.receive(local, "origin", "--delete", "topic").code == 0


def test_what_a_mirror_push_deletes_is_seen_on_the_server(local: Local, server: Server) -> None:
    """Git tells no pre-push hook what a mirror push deletes."""
    local.git("branch", "-m", "main", "trunk")
    answer = server.receive(local, "--mirror", "origin")
    assert (answer.code != 0, answer.errors) == (True, ["ref-deleted"])


def test_a_sha256_server_judges(tmp_path: Path) -> None:
    local, server = served(tmp_path, "--object-format=sha256")
    local.commit({"a": "x\n"})
    assert server.receive(local, "origin", "main").verdict == "accepted"
    local.bad()
    assert server.receive(local, "origin", "main").errors == ["deny-prefix"]
    assert server.receive(local, "origin", "--delete", "main").errors == ["ref-deleted"]


def test_replaced_objects_and_grafts_of_the_server_hide_nothing(local: Local, server: Server) -> None:
    start = server.ask("rev-parse", "main")
    bad = local.bad()
    local.git("rm", "-q", "-r", "secrets")
    tip = local.commit()
    (server.path / "info").mkdir(exist_ok=True)
    (server.path / "info" / "grafts").write_text(f"{tip} {start}\n")
    server.git("update-ref", f"refs/replace/{bad}", start)
    assert server.receive(local, "origin", "main").errors == ["deny-prefix"] * 2


def test_the_sh_hook_refuses_in_short_lines(local: Local, server: Server) -> None:
    server.hook.write_text("#!/bin/sh\nexec git-patchgate hook pre-receive\n")
    local.bad()
    done = local.try_git("push", "-q", "origin", "main")
    assert done.returncode != 0
    assert b"remote: patchgate: " in done.stderr
    assert b"deny-prefix" in done.stderr
    local.git("reset", "-q", "--hard", "HEAD~1")
    local.commit({"a": "x\n"})
    done = local.try_git("push", "-q", "origin", "main")
    assert (done.returncode, b"reject" in done.stderr) == (0, False)


def test_git_itself_may_update_no_ref_while_a_push_is_judged(server: Server) -> None:
    """Also where a test, or a person, calls it without git's quarantine."""
    head = server.ask("rev-parse", "main")
    repository = open_repository(server.env, str(server.path))
    assert judge_receive(repository, f"{ZERO} {head} refs/heads/new\n".encode()).verdict == "accepted"
    assert not (server.path / "patchgate").exists()
    assert judge_receive(repository, b"").changes == ()


@pytest.mark.parametrize("line", ["nothing", f"{ZERO} {'1' * 39} refs/heads/x", f"{ZERO} {'1' * 40} a b"])
def test_a_line_that_git_did_not_write_is_undecided(server: Server, line: str) -> None:
    repository = open_repository(server.env, str(server.path))
    with pytest.raises(UndecidedError, match="unreadable line"):
        judge_receive(repository, f"{line}\n".encode())


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_branch_that_its_own_policy_lists_is_neither_deleted_nor_forced(
    server: Server, is_listed: bool
) -> None:
    head = server.ask("rev-parse", "HEAD")
    listed = "refs/heads/rel" if is_listed else "refs/heads/other"
    text = f'[policy]\n[push]\nprotected_refs = ["{listed}"]\n'.encode()
    blob = server.git("hash-object", "-w", "--stdin", stdin=text).decode().strip()
    tree = server.git("mktree", stdin=f"100644 blob {blob}\tpatchgate.toml\n".encode()).decode().strip()
    own = server.ask("commit-tree", tree, "-p", head, "-m", "Own")
    server.git("update-ref", "refs/heads/rel", own)
    for new in (ZERO, head):
        answer = server.answer_hook("pre-receive", f"{own} {new} refs/heads/rel\n".encode())
        assert answer.code == int(is_listed)


def test_a_push_that_takes_too_long_is_undecided_whatever_its_gates_do_with_errors(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swallow(*arguments: object, **named: object) -> Report:
        # Only from here on: a child that is just being started would be left to the garbage collector.
        signal.setitimer(signal.ITIMER_REAL, 0.001, 1)
        with suppress(PatchgateError):
            while True:
                pass
        return Report(())

    monkeypatch.setattr("patchgate.hooks.pre_receive.judge_receive", swallow)
    answer = server.answer_hook("pre-receive", b"")
    assert (answer.code, "took longer" in answer.out + answer.err) == (3, True)


def test_a_branch_with_a_thousand_folders_stops_no_later_push(server: Server) -> None:
    head = server.ask("rev-parse", "HEAD")
    deep = "refs/heads/" + "a/" * 1100 + "b"
    server.git("update-ref", deep, head)
    answer = server.answer_hook("pre-receive", f"{ZERO} {head} refs/heads/x\n".encode())
    # What removes the folder of a test calls itself for each folder below it.
    subprocess.run(["rm", "-r", server.path / "refs" / "heads" / "a"], check=True)
    assert answer.code == 0
