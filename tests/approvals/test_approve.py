"""`git patchgate approve`: who may grant an exception, for which change, and what becomes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patchgate.check.message_rules import check_reason
from patchgate.check.profiles import MARKERS
from patchgate.errors import UsageError
from patchgate.ledger.ledger import Ledger
from patchgate.storage import hash_chain
from tests.signing import (
    REF,
    SIGNERS,
    Key,
    anchor,
    approve_here,
    at_terminal,
    elsewhere,
    needs_ssh_keygen,
    statement_for,
)
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)

POLICY = '[policy]\ndeny_prefixes = ["vendor"]\ndeny_suffixes = [".exe"]\n'
WHY = ("--reason", "vendored on purpose")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository that denies `vendor/` and `.exe`, with a change to `vendor/` staged."""
    made = Repo.create(tmp_path)
    made.policy(POLICY)
    made.commit({"a": "a\n"})
    made.stage({"vendor/x": "x\n"})
    return made


def approve(repo: Repo, *arguments: str, **env: Any) -> Answer:
    """Approve at a terminal, and say yes."""
    return at_terminal(repo, "approve", *arguments, *WHY, **env)


def refuse(repo: Repo, *arguments: str) -> Answer:
    """Ask for what is refused before anybody is asked or signs; nothing may be written."""
    answer = repo.cli("approve", "--sign", *arguments)
    assert answer.out == ""
    assert "\nreason: " not in answer.err
    assert not (repo.path / ".git" / "patchgate" / "approvals.jsonl").exists()
    assert repo.try_git("rev-parse", "-q", "--verify", REF).returncode != 0
    return answer


def written(repo: Repo) -> list[dict[str, object]]:
    """The statements that lie on this machine."""
    place = repo.path / ".git" / "patchgate" / "approvals.jsonl"
    return [json.loads(line)["event"]["statement"] for line in place.read_bytes().splitlines()]


def refused_event(repo: Repo, answer: Answer, kind: str = "refused", **other: Any) -> None:
    """Record a refusal as the hooks do."""
    change = answer.change
    about = {
        "hook": "pre-commit",
        "ref": None,
        "commit": change["commit"],
        "source": change["source"]["kind"],
        "change_id": change["change_id"],
        "verdict_id": change["id"],
        "policy": change["policy"]["digest"],
        "rules": answer.errors,
        "verdict": "rejected",
    }
    assert Ledger(str(repo.path / ".git")).record(kind, {**about, **other}) is None


# Who may.


def test_a_person_at_a_terminal_sees_what_it_is_and_says_yes(repo: Repo) -> None:
    change = repo.check().change
    answer = approve(repo, "@staged")
    assert answer.code == 0
    head, rule, *rest = answer.err.splitlines()[-6:]
    assert head.endswith(f"staged change ({change['change_id'][:19]}), refused by HEAD:patchgate.toml:")
    assert rule.startswith("  deny-prefix: ")
    assert rest[:3] == [
        "    vendor/x",
        "reason: vendored on purpose",
        "by: A U Thor <author@example.com>",
    ]
    assert rest[3].endswith("? [y/N] ")
    assert answer.out.startswith("approved: deny-prefix ")
    assert f" ({change['change_id'][:19]}), " in answer.out
    assert repo.check().verdict == "accepted"
    (statement,) = written(repo)
    at = statement.pop("at")
    assert isinstance(at, str)
    assert statement == {
        "schema": "patchgate.approval/1",
        "change_id": change["change_id"],
        "policy": change["policy"]["digest"],
        "rules": ["deny-prefix"],
        "reason": "vendored on purpose",
        "by": "A U Thor <author@example.com>",
    }


@pytest.mark.sweep(3)
@pytest.mark.parametrize("typed", [b"no\n", b"n\n", b"yes please\n", b"\n", b"\x04"])
def test_any_other_answer_approves_nothing(repo: Repo, typed: bytes) -> None:
    answer = at_terminal(repo, "approve", "@staged", *WHY, typed=typed)
    assert (answer.code, answer.out) == (1, "")
    assert "nothing was approved" in answer.err
    assert not (repo.path / ".git" / "patchgate" / "approvals.jsonl").exists()
    assert repo.check().verdict == "rejected"


def test_nobody_at_a_terminal_can_approve_nothing(repo: Repo) -> None:
    answer = repo.run("approve", "@staged", *WHY, stdin=b"yes\n")
    assert (answer.code, answer.out) == (2, "")
    error, help_line = answer.err.splitlines()
    assert (error.startswith("error: "), "terminal" in error) == (True, True)
    assert (help_line.startswith("help: "), "--sign" in help_line) == (True, True)


@pytest.mark.parametrize("typed", [b"y\n", b"Yes\n"])
def test_y_and_yes_approve(repo: Repo, typed: bytes) -> None:
    assert at_terminal(repo, "approve", "@staged", *WHY, typed=typed).code == 0
    assert repo.check().verdict == "accepted"


def test_where_an_agent_runs_nobody_approves_and_nobody_resets(repo: Repo) -> None:
    """Also with a terminal, and with a key: the agent would have to remove its own marker first."""
    for name in MARKERS:
        marked: dict[str, Any] = {name: "1"}
        for arguments in (["approve", "@staged"], ["approve", "@staged", "--sign"], ["attempts", "reset"]):
            answer = repo.cli(*arguments, *WHY, **marked)
            assert (answer.code, answer.out) == (2, "")
            assert name in answer.err
            assert "terminal" in answer.err
    assert "CLAUDECODE" in at_terminal(repo, "approve", "@staged", *WHY, CLAUDECODE="1").err
    assert repo.check().verdict == "rejected"
    assert not (repo.path / ".git" / "patchgate" / "approvals.jsonl").exists()


@pytest.mark.parametrize("which", ["stdin", "stderr"])
def test_one_terminal_of_the_two_is_not_enough(repo: Repo, which: str) -> None:
    person, program = os.openpty()
    os.write(person, b"yes\n")
    into, out_of = os.pipe()
    os.write(out_of, b"yes\n")
    os.close(out_of)
    done = subprocess.run(
        ["git", "patchgate", "approve", "@staged", *WHY],
        cwd=repo.path,
        env=repo.env,
        stdin=program if which == "stdin" else into,
        stdout=subprocess.PIPE,
        stderr=program if which == "stderr" else subprocess.DEVNULL,
        check=False,
    )
    os.close(into)
    os.close(person)
    os.close(program)
    assert (done.returncode, done.stdout) == (2, b"")
    assert repo.check().verdict == "rejected"


def test_names_in_what_is_shown_are_quoted(repo: Repo) -> None:
    repo.stage({"vendor/\x9b2J\u202eevil": "x\n"})
    answer = approve(repo, "@staged")
    assert answer.code == 0
    assert "\x9b" not in answer.err
    assert "\u202e" not in answer.err
    assert '    "vendor/\\302\\2332J\\342\\200\\256evil"\n' in answer.err


def test_of_very_many_paths_the_first_are_shown(repo: Repo) -> None:
    repo.stage({f"vendor/{number:02}": "x\n" for number in range(30)})
    answer = approve(repo, "@staged")
    assert "vendor/19\n" in answer.err
    assert "vendor/20\n" not in answer.err
    assert "    and 11 more\n" in answer.err


def test_who_it_is_may_come_from_gits_config(repo: Repo) -> None:
    env = {"GIT_COMMITTER_NAME": "", "GIT_COMMITTER_EMAIL": ""}
    repo.git("config", "user.name", "Con\x1bFig")
    repo.git("config", "user.email", "config@example.com")
    assert approve(repo, "@staged", **env).code == 0
    assert written(repo)[0]["by"] == "Con\\x1bFig <config@example.com>"


def test_git_must_know_who_it_is(repo: Repo) -> None:
    repo.git("config", "user.useConfigOnly", "true")
    env = {"GIT_COMMITTER_NAME": "", "GIT_COMMITTER_EMAIL": ""}
    answer = approve(repo, "@staged", **env)
    assert answer.code == 2
    assert "\nhelp: git config user.name" in answer.err


# Why.


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "   ",
        "fix",
        "wip",
        "lgtm",
        "LGTM!",
        "vendored",
        "as discussed",
        "As discussed.",
        "needed",
        "please approve this",
        "it is ok",
        "just do it",
        "WIP: temp fix!!",
        "12 34 56",
        "--- ...",
        "trust me",
        "this works on my machine",
        "it follows best practices",
        "two\nlines of text",
        "red \x1b[31mtext here",
        "mirrored \u202e text here",
        "long " * 300,
        "why",
    ],
)
def test_a_reason_that_says_nothing_is_refused(reason: str) -> None:
    with pytest.raises(UsageError) as told:
        check_reason(reason)
    assert "reason" in told.value.message
    assert told.value.hint
    assert told.value.message.isprintable()


@pytest.mark.parametrize(
    "reason",
    [
        "vendored on purpose",
        "false positive",
        "  upstream zlib 1.3, unchanged ",
        "供应商代码故意如此",
        "Größe geändert",
    ],
)
def test_a_reason_that_says_something_is_taken(reason: str) -> None:
    assert check_reason(reason) == reason.strip()


@pytest.mark.parametrize("reason", [(), ("--reason", ""), ("--reason", "as discussed")])
def test_an_approval_without_a_reason_is_none(repo: Repo, reason: tuple[str, ...]) -> None:
    answer = refuse(repo, "@staged", *reason)
    assert (answer.code, "reason" in answer.err) == (2, True)


# What.


def test_the_last_refusal_of_a_staged_change(repo: Repo) -> None:
    refused_event(repo, repo.check())
    assert approve(repo, "--last").code == 0
    assert repo.check().verdict == "accepted"


def test_the_last_refusal_of_a_commit(repo: Repo) -> None:
    commit = repo.commit()
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.stage({"vendor/other": "x\n"})
    refused_event(repo, repo.check())
    refused_event(repo, repo.check(commit))
    answer = approve(repo, "--last")
    assert answer.code == 0
    assert f"commit {commit[:12]}" in answer.err
    assert (repo.check(commit).verdict, repo.check().verdict) == ("accepted", "rejected")


def test_what_was_only_observed_is_not_what_was_refused_last(repo: Repo) -> None:
    refused_event(repo, repo.check())
    commit = repo.commit({"vendor/z": "z\n"})
    refused_event(repo, repo.check(commit), "observed")
    repo.git("reset", "-q", "--soft", "HEAD~1")
    repo.git("rm", "-q", "--cached", "vendor/z")
    assert "staged change" in approve(repo, "--last").err


def test_nothing_was_refused_last(repo: Repo) -> None:
    answer = refuse(repo, "--last", *WHY)
    assert (answer.code, "nothing was refused" in answer.err) == (2, True)


def test_what_was_refused_last_is_not_staged_any_more(repo: Repo) -> None:
    refused_event(repo, repo.check())
    repo.stage({"vendor/x": "another\n"})
    answer = refuse(repo, "--last", *WHY)
    assert answer.code == 2
    assert "no longer staged\nhelp: git add " in answer.err
    assert "then: git patchgate approve @staged " in answer.err


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"commit": "1" * 40}, "no longer exists here"),
        ({"change_id": None}, "which change"),
        ({"change_id": "sha256:" + "0" * 64}, "the change sha256:000000000000"),
    ],
)
def test_an_event_that_does_not_fit_approves_nothing(repo: Repo, other: dict[str, Any], says: str) -> None:
    commit = repo.commit()
    refused_event(repo, repo.check(commit), **other)
    answer = refuse(repo, "--last", *WHY)
    assert answer.code == 2
    assert says in answer.err


def test_with_a_damaged_ledger_nobody_knows_what_was_last(repo: Repo) -> None:
    refused_event(repo, repo.check())
    refused_event(repo, repo.check())
    place = repo.path / ".git" / "patchgate" / "events.jsonl"
    place.write_bytes(place.read_bytes().replace(b"pre-commit", b"pre-commix"))
    assert refuse(repo, "--last", *WHY).code == 3
    assert approve(repo, "@staged").code == 0


@pytest.mark.sweep(3)
@pytest.mark.parametrize("length", [8, 16, 64])
@pytest.mark.parametrize("prefix", ["", "sha256:"])
def test_a_change_id_or_its_first_digits(repo: Repo, length: int, prefix: str) -> None:
    digits = repo.check().change["change_id"].removeprefix("sha256:")
    answer = approve(repo, prefix + digits[:length])
    assert answer.code == 0, answer.err
    assert repo.check().verdict == "accepted"


def test_the_line_for_the_working_tree_works_as_it_stands(repo: Repo) -> None:
    repo.git("reset", "-q")
    repo.write("vendor/untracked")
    line = repo.check("--worktree").report["approve"]
    assert line.endswith(' --reason "..."')
    words = line.removeprefix("git patchgate ").removesuffix(' --reason "..."').split(" ")
    assert at_terminal(repo, *words, *WHY).code == 0
    assert repo.check("--worktree").verdict == "accepted"
    repo.stage()
    assert repo.check().verdict == "accepted"


def test_the_line_for_a_commit_works_as_it_stands(repo: Repo) -> None:
    commit = repo.commit()
    repo.commit({"b": "b\n"})
    line = repo.check("HEAD~2..HEAD").report["approve"]
    assert approve(repo, line.split(" ")[3]).code == 0
    assert repo.check(commit).verdict == "accepted"
    assert repo.check("HEAD~2..HEAD").report["approve"] is None


def test_a_change_id_from_the_ledger_leads_to_its_commit(repo: Repo) -> None:
    commit = repo.commit()
    answer = repo.check(commit)
    refused_event(repo, answer)
    repo.git("reset", "-q", "--hard", "HEAD~1")
    assert approve(repo, answer.change["change_id"][7:19]).code == 0
    assert repo.check(commit).verdict == "accepted"


def test_a_name_of_a_commit(repo: Repo) -> None:
    commit = repo.commit()
    for name in ("HEAD", commit, commit[:8], "main", "main^{commit}"):
        assert f"commit {commit[:12]} (" in at_terminal(repo, "approve", name, *WHY, typed=b"no\n").err


def test_a_name_that_means_two_changes_is_refused(repo: Repo) -> None:
    commit = repo.commit()
    refused_event(repo, repo.check(commit), commit=None, change_id="sha256:" + commit[:12] + "0" * 52)
    assert "more than one change" in refuse(repo, commit[:12], *WHY).err
    assert approve(repo, commit).code == 0


def test_the_first_digits_of_two_changes_are_refused(repo: Repo) -> None:
    for last in "12":
        refused_event(repo, repo.check(), change_id="sha256:" + "0123456789abcdef" * 3 + last * 16)
    assert "more than one change" in refuse(repo, "sha256:0123456789", *WHY).err


@pytest.mark.parametrize(
    "name",
    [
        "none",
        "-x",
        "--",
        "HEAD..main",
        "main...main",
        "0" * 40,
        "sha256:" + "0" * 64,
        "a\nb",
        "1234567",
        "@nothing",
        "",
    ],
)
def test_a_name_that_means_nothing_is_refused(repo: Repo, name: str) -> None:
    answer = refuse(repo, *WHY, "--", name)
    assert answer.code == 2
    assert "error: " in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("arguments", [[], ["@staged", "--last"]])
def test_one_change_is_approved_at_a_time(repo: Repo, arguments: list[str]) -> None:
    answer = refuse(repo, *arguments, *WHY)
    assert (answer.code, "one change" in answer.err) == (2, True)


# What cannot be approved.


def test_an_accepted_change(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    repo.stage({"b": "b\n"})
    answer = refuse(repo, "@staged", *WHY)
    assert (answer.code, "staged change is accepted" in answer.err) == (2, True)


def test_nothing_staged_tells_of_commit_a(repo: Repo) -> None:
    repo.git("reset", "-q")
    answer = refuse(repo, "@staged", *WHY)
    assert answer.code == 2
    assert "changes nothing" in answer.err
    assert "\nhelp: git commit -a and git commit PATH" in answer.err


def test_an_invariant(repo: Repo) -> None:
    repo.stage({"patchgate.toml": POLICY + "# more\n"})
    answer = refuse(repo, "@staged", *WHY)
    assert answer.code == 2
    assert "policy-change-not-alone is an invariant" in answer.err
    assert "\nhelp: " in answer.err
    assert refuse(repo, "@staged", "--rule", "deny-prefix", *WHY).code == 2


def test_a_commit_whose_message_is_refused_too(repo: Repo) -> None:
    repo.git("reset", "-q")
    repo.git("clean", "-q", "-f", "-d")
    repo.policy(POLICY + '[message]\nlevel = "error"\n')
    commit = repo.commit({"vendor/x": "x\n"}, "Follow best practices.")
    assert repo.check(commit).report["approve"] is None
    answer = refuse(repo, commit, *WHY)
    assert answer.code == 2
    assert " its message" in answer.err
    repo.git("commit", "-q", "--amend", "-m", "Vendor the parser")
    assert approve(repo, "HEAD").code == 0


def test_a_change_that_was_not_judged(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    repo.policy('required_version = ">=99"\n' + POLICY)
    repo.stage({"vendor/x": "x\n"})
    assert repo.check().verdict == "undecided"
    answer = refuse(repo, "@staged", *WHY)
    assert answer.code == 3
    assert ": governance " in answer.err


def test_a_rule_that_does_not_refuse_it(repo: Repo) -> None:
    answer = refuse(repo, "@staged", "--rule", "deny-suffix", *WHY)
    assert "error: deny-suffix " in answer.err
    assert ": deny-prefix\n" in answer.err
    assert "no rule deny-\\x1b" in refuse(repo, "@staged", "--rule", "deny-\x1b", *WHY).err
    assert "path-control is an invariant" in refuse(repo, "@staged", "--rule", "path-control", *WHY).err


def test_one_rule_of_two_is_set_aside(repo: Repo) -> None:
    repo.stage({"tool.exe": "x\n"})
    assert approve(repo, "@staged", "--rule", "deny-suffix").code == 0
    assert repo.check().errors == ["deny-prefix"]
    assert approve(repo, "@staged").code == 0
    assert [each["rules"] for each in written(repo)] == [["deny-suffix"], ["deny-prefix"]]
    assert repo.check().verdict == "accepted"


def test_what_is_approved_already(repo: Repo) -> None:
    assert approve(repo, "@staged").code == 0
    answer = approve(repo, "@staged")
    assert (answer.code, "approved already" in answer.err) == (2, True)
    assert len(written(repo)) == 1


def test_after_the_policy_changed_a_new_approval_is_given(repo: Repo) -> None:
    assert approve(repo, "@staged").code == 0
    repo.git("reset", "-q")
    repo.git("clean", "-q", "-f", "-d")
    repo.policy(POLICY + "max_file_bytes = 100\n")
    repo.stage({"vendor/x": "x\n"})
    assert repo.check().verdict == "rejected"
    assert approve(repo, "@staged").code == 0
    assert repo.check().verdict == "accepted"


def test_the_policy_of_another_revision_and_another_profile(repo: Repo) -> None:
    repo.git("tag", "strict")
    repo.git("reset", "-q")
    repo.git("clean", "-q", "-f", "-d")
    repo.policy("[policy]\n")
    repo.stage({"vendor/x": "x\n"})
    asked = ("--policy-from", "strict", "--profile", "agent")
    # An agent reads this refusal, and no command is printed that it could run.
    assert repo.check(*asked).report["approve"] is None
    assert "approve:" not in repo.cli("check", *asked).out
    assert "is accepted" in refuse(repo, "@staged", *WHY).err
    assert approve(repo, "@staged", *asked).code == 0
    assert repo.check(*asked).verdict == "accepted"
    assert repo.check("--policy-from", "strict").verdict == "rejected"


def test_a_commit_that_a_push_refused_is_approved_under_the_policy_that_refused_it(repo: Repo) -> None:
    """The remote has a strict policy; the commits on the way relax it, which the remote does not know yet."""
    repo.git("reset", "-q", "--hard")
    strict = repo.head()
    repo.policy("[policy]\n")
    commit = repo.commit({"vendor/x": "x\n"})
    refused_event(repo, repo.check(commit, "--policy-from", strict))
    assert repo.check(commit).verdict == "accepted"
    for arguments in (["--last"], [commit[:12]]):
        answer = at_terminal(repo, "approve", *arguments, *WHY, typed=b"no\n")
        assert f"refused by {strict}:patchgate.toml" in answer.err
    assert approve(repo, "--last").code == 0
    assert repo.check(commit, "--policy-from", strict).verdict == "accepted"


def test_a_trusted_ref_says_which_policy_refuses(repo: Repo) -> None:
    repo.git("branch", "trusted")
    repo.git("reset", "-q")
    repo.git("clean", "-q", "-f", "-d")
    repo.policy("[policy]\n")
    repo.stage({"vendor/x": "x\n"})
    repo.git("config", "patchgate.trustRef", "refs/heads/trusted")
    assert "refused by refs/heads/trusted:patchgate.toml" in approve(repo, "@staged").err


# What becomes of it.


def test_the_ledger_has_an_event_and_nothing_else_is_touched(repo: Repo) -> None:
    before = state_of(repo)
    change = repo.check().change
    assert approve(repo, "@staged").code == 0
    assert state_of(repo) == before
    (event,) = Ledger(str(repo.path / ".git")).events()
    assert (event.kind, dict(event.about)) == (
        "approved",
        {
            "change_id": change["change_id"],
            "policy": change["policy"]["digest"],
            "rules": ["deny-prefix"],
            "reason": "vendored on purpose",
            "by": "A U Thor <author@example.com>",
            "signed": False,
            "source": "staged",
            "commit": None,
            "verdict_id": change["id"],
        },
    )


def state_of(repo: Repo) -> tuple[bytes, ...]:
    objects = sorted(str(path) for path in (repo.path / ".git" / "objects").rglob("*"))
    return (
        repo.git("status", "--porcelain", "-uall"),
        repo.git("for-each-ref"),
        (repo.path / ".git" / "index").read_bytes(),
        (repo.path / ".git" / "config").read_bytes(),
        "\n".join(objects).encode(),
    )


def test_a_ledger_that_cannot_be_written_is_told_and_the_approval_holds(repo: Repo) -> None:
    events = repo.path / ".git" / "patchgate" / "events.jsonl"
    events.mkdir(parents=True)
    answer = approve(repo, "@staged")
    assert answer.code == 0
    assert "warning: this was not recorded" in answer.err
    assert repo.check().verdict == "accepted"


def test_an_approval_that_cannot_be_written_is_none(repo: Repo) -> None:
    place = repo.path / ".git" / "patchgate" / "approvals.jsonl"
    place.mkdir(parents=True)
    answer = approve(repo, "@staged")
    assert (answer.code, answer.out) == (3, "")
    assert " (approvals.jsonl: " in answer.err
    assert repo.check().verdict == "rejected"


def test_every_worktree_of_the_machine_knows_it(repo: Repo, tmp_path: Path) -> None:
    assert approve(repo, "@staged").code == 0
    other = repo.at(tmp_path / "other")
    repo.git("worktree", "add", "-q", "--detach", str(other.path))
    other.stage({"vendor/x": "x\n"})
    assert other.check().verdict == "accepted"


def test_the_approvals_of_this_machine_are_a_chain(repo: Repo) -> None:
    assert approve(repo, "@staged").code == 0
    repo.stage({"tool.exe": "x\n"})
    assert approve(repo, "@staged").code == 0
    assert hash_chain.verify(repo.path / ".git" / "patchgate" / "approvals.jsonl") == []


# Signed.


@pytest.fixture
def key(tmp_path: Path) -> Key:
    """The key of a signer."""
    return Key.make(tmp_path)


@pytest.fixture
def signing(repo: Repo, key: Key) -> Repo:
    """The repository, where that key may sign and git signs with it."""
    repo.git("reset", "-q")
    repo.git("clean", "-q", "-f", "-d")
    repo.commit({SIGNERS: key.allowed()})
    repo.stage({"vendor/x": "x\n"})
    repo.git("config", "user.signingKey", str(key.path))
    return repo


def sign(repo: Repo, *arguments: str, **env: Any) -> Answer:
    """Approve with a signature; there is no terminal."""
    return repo.run("approve", *(arguments or ["@staged"]), "--sign", *WHY, **env)


@pytest.fixture
def agent(tmp_path: Path, key: Key) -> Iterator[str]:
    """An ssh-agent that holds the key alone; gives its socket."""
    socket = str(tmp_path / "agent")
    started = subprocess.run(["ssh-agent", "-a", socket], capture_output=True, check=True)
    pid = int(started.stdout.split(b"SSH_AGENT_PID=")[1].split(b";")[0])
    try:
        env = {**os.environ, "SSH_AUTH_SOCK": socket}
        subprocess.run(["ssh-add", "-q", key.path], env=env, check=True, capture_output=True)
        yield socket
    finally:
        os.kill(pid, signal.SIGTERM)


@needs_ssh_keygen
def test_a_signed_approval_needs_no_terminal_and_counts_everywhere(signing: Repo) -> None:
    change = signing.check().change
    answer = sign(signing)
    assert answer.code == 0, answer.err
    approved, push = answer.out.splitlines()
    assert approved.startswith("approved: deny-prefix ")
    assert approved.endswith(f" ({change['change_id'][:19]}), signed by author@example.com")
    assert push.endswith(": git push REMOTE BRANCH refs/notes/patchgate-approvals")
    assert "reason: vendored on purpose\n" in answer.err
    assert elsewhere(signing).verdict == "accepted"
    assert not (signing.path / ".git" / "patchgate" / "approvals.jsonl").exists()
    note = signing.git("notes", "--ref", REF, "show", anchor(signing, change["change_id"]))
    (line,) = note.splitlines()
    assert json.loads(line)["statement"]["reason"] == "vendored on purpose"
    (event,) = Ledger(str(signing.path / ".git")).events()
    assert (event.about["by"], event.about["signed"]) == ("author@example.com", True)


@needs_ssh_keygen
def test_it_goes_along_with_the_notes_into_a_clone(signing: Repo, tmp_path: Path) -> None:
    assert sign(signing).code == 0
    signing.commit()
    clone = signing.at(tmp_path / "clone")
    signing.git("clone", "-q", str(signing.path), str(clone.path))
    assert elsewhere(clone, "HEAD").verdict == "rejected"
    clone.git("fetch", "-q", "origin", f"{REF}:{REF}")
    assert elsewhere(clone, "HEAD").verdict == "accepted"


@needs_ssh_keygen
def test_an_approval_without_a_signature_is_signed_later(signing: Repo) -> None:
    assert approve(signing, "@staged").code == 0
    assert sign(signing).code == 0
    answer = sign(signing)
    assert (answer.code, "approved already" in answer.err) == (2, True)
    assert signing.check().findings[0]["details"]["approved"]["signed"] is True


@needs_ssh_keygen
def test_two_people_sign_the_same_change(signing: Repo, tmp_path: Path) -> None:
    second = Key.make(tmp_path, "second")
    signing.git("reset", "-q")
    signing.git("clean", "-q", "-f", "-d")
    first_line = signing.git("show", f"HEAD:{SIGNERS}").decode()
    signing.commit({SIGNERS: first_line + second.allowed("second@example.com")})
    signing.stage({"vendor/x": "x\n", "tool.exe": "x\n"})
    assert sign(signing, "@staged", "--rule", "deny-prefix").code == 0
    signing.git("config", "user.signingKey", str(second.path))
    assert sign(signing).code == 0
    answer = elsewhere(signing)
    assert {each["rule"]: each["details"]["approved"]["by"] for each in answer.findings} == {
        "deny-prefix": "author@example.com",
        "deny-suffix": "second@example.com",
    }
    assert signing.ask("rev-list", "--count", REF) == "2"


@needs_ssh_keygen
def test_the_key_may_be_a_public_one_that_ssh_agent_holds(signing: Repo, key: Key, agent: str) -> None:
    key.path.rename(key.path.with_name("elsewhere"))
    for number, named in enumerate((f"key::{key.public}", key.public, f"{key.path}.pub")):
        signing.git("config", "user.signingKey", named)
        signing.stage({"vendor/x": f"{number}\n"})
        assert sign(signing).code == 3
        answer = sign(signing, SSH_AUTH_SOCK=agent)
        assert answer.code == 0, answer.err
        assert elsewhere(signing).verdict == "accepted"


@needs_ssh_keygen
def test_a_relative_key_starts_at_the_top_of_the_working_tree(signing: Repo) -> None:
    signing.git("config", "user.signingKey", "../key")
    (signing.path / "deep").mkdir()
    answer = signing.run("approve", "@staged", "--sign", *WHY, cwd=signing.path / "deep")
    assert answer.code == 0, answer.err


@needs_ssh_keygen
def test_a_key_below_home(signing: Repo, key: Key) -> None:
    home = Path(signing.env["HOME"])
    (home / ".ssh").mkdir()
    key.path.rename(home / ".ssh" / "id")
    signing.git("config", "user.signingKey", "~/.ssh/id")
    assert sign(signing).code == 0


@needs_ssh_keygen
@pytest.mark.parametrize(
    "named", [None, "", "/nowhere/key", "ABCDEF12", "author@example.com", "-x", "ssh-rsa"]
)
def test_no_key_to_sign_with(signing: Repo, named: str | None) -> None:
    if named is None:
        signing.git("config", "--unset", "user.signingKey")
    else:
        signing.git("config", "user.signingKey", named)
    answer = sign(signing)
    assert (answer.code, answer.out) == (2, "")
    assert "help: git config user.signingKey ~/.ssh/id_ed25519.pub" in answer.err


@needs_ssh_keygen
@pytest.mark.parametrize("named", ["key::junk", "key::", "ssh-ed25519 AAAA"])
def test_a_key_that_is_none(signing: Repo, named: str) -> None:
    signing.git("config", "user.signingKey", named)
    answer = sign(signing)
    assert (answer.code, answer.out) == (3, "")
    assert "error: ssh-keygen " in answer.err


@needs_ssh_keygen
def test_a_key_with_a_passphrase_must_be_in_ssh_agent(signing: Repo, tmp_path: Path) -> None:
    locked = Key.make(tmp_path, "locked", passphrase="a secret")
    signing.git("config", "user.signingKey", str(locked.path))
    answer = sign(signing)
    assert (answer.code, ": ssh-add" in answer.err) == (3, True)


@needs_ssh_keygen
def test_a_signature_that_would_not_count_is_not_kept(signing: Repo, tmp_path: Path) -> None:
    stranger = Key.make(tmp_path, "stranger")
    signing.git("config", "user.signingKey", str(stranger.path))
    answer = sign(signing)
    assert (answer.code, answer.out) == (2, "")
    assert " would not count for HEAD:patchgate.toml: " in answer.err
    assert signing.try_git("rev-parse", "-q", "--verify", REF).returncode != 0
    assert list(Ledger(str(signing.path / ".git")).events()) == []


@needs_ssh_keygen
def test_without_signers_in_the_base_no_signature_counts(repo: Repo, key: Key) -> None:
    repo.git("config", "user.signingKey", str(key.path))
    answer = sign(repo)
    assert answer.code == 2
    assert " no .patchgate/allowed_signers for HEAD:patchgate.toml\nhelp: " in answer.err


@needs_ssh_keygen
def test_without_ssh_keygen_nothing_is_signed(signing: Repo, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("git", "python3"):
        for folder in os.environ["PATH"].split(":"):
            if os.access(f"{folder}/{tool}", os.X_OK) and not (tools / tool).exists():
                (tools / tool).symlink_to(f"{folder}/{tool}")
    answer = signing.run("approve", "@staged", "--sign", *WHY, PATH=str(tools))
    assert (answer.code, answer.out) == (3, "")
    assert "error: ssh-keygen was not found\nhelp: " in answer.err


@needs_ssh_keygen
def test_no_program_of_a_repositorys_config_is_run(signing: Repo, tmp_path: Path) -> None:
    trap, trace = tmp_path / "trap", tmp_path / "trace"
    trap.write_text(f"#!/bin/sh\necho run >>{trace}\nexit 1\n", encoding="ascii")
    trap.chmod(0o755)
    for name in ("gpg.ssh.program", "gpg.program", "gpg.ssh.defaultKeyCommand", "core.editor"):
        signing.git("config", name, str(trap))
    signing.git("config", "commit.gpgSign", "true")
    hook = signing.path / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes(trap.read_bytes())
    hook.chmod(0o755)
    assert sign(signing, EDITOR=str(trap), SSH_ASKPASS=str(trap), DISPLAY=":0").code == 0
    assert not trace.exists()


@needs_ssh_keygen
def test_a_commit_is_approved_in_a_bare_repository(signing: Repo, tmp_path: Path) -> None:
    commit = signing.commit()
    bare = signing.at(tmp_path / "bare.git")
    signing.git("clone", "-q", "--bare", str(signing.path), str(bare.path))
    bare.git("config", "user.signingKey", str(tmp_path / "key"))
    answer = sign(bare, commit)
    assert answer.code == 0, answer.err
    assert elsewhere(bare, commit).verdict == "accepted"
    unknown = sign(bare, "sha256:" + "1" * 64)
    assert (unknown.code, "sha256:" + "1" * 64 in unknown.err) == (2, True)


@needs_ssh_keygen
def test_signing_touches_no_branch_no_index_and_no_file(signing: Repo) -> None:
    before = state_of(signing)
    assert sign(signing).code == 0
    signing.git("update-ref", "-d", REF)
    assert state_of(signing)[:4] == before[:4]


@needs_ssh_keygen
def test_a_statement_made_elsewhere_is_no_word_of_this_machine(signing: Repo, key: Key) -> None:
    """What lies in approvals.jsonl counts unsigned, what lies in the notes only signed."""
    statement = statement_for(signing.check().change)
    approve_here(signing, statement)
    assert signing.check().findings[0]["details"]["approved"]["signed"] is False
    assert elsewhere(signing).verdict == "rejected"


def test_help_is_told_without_a_repository(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    for option in ("-h", "--help"):
        answer = repo.cli("approve", option, cwd=tmp_path)
        assert answer.code == 0
        assert "Usage: git patchgate approve" in answer.out


@pytest.mark.parametrize("is_policy", [False, True])
def test_no_tag_has_the_name_of_a_commit_that_is_not_here(repo: Repo, is_policy: bool) -> None:
    """Who refuses prints the beginning of an id, and a tag comes with a fetch."""
    repo.git("tag", "0124a8c7cacf")
    where = ("--policy-from", "0124a8c7cacf") if is_policy else ()
    answer = repo.cli("approve", "HEAD" if is_policy else "0124a8c7cacf", *WHY, "--sign", *where)
    assert (answer.code, "0124a8c7cacf" in answer.err) == (2, True), answer.err
