"""What an approval does to a verdict, and which ones count: of the right change, policy, rule and signer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from patchgate.approvals import grants
from patchgate.approvals.apply_approvals import LOCAL, PUSH, apply_approvals, apply_grants, approve_command
from patchgate.approvals.approvals import SignedStatement
from patchgate.approvals.grants import Grant
from patchgate.check.commits import check_revision
from patchgate.check.hook_decision import ApprovalSources
from patchgate.check.pending import check_pending
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UndecidedError
from patchgate.git.model import Source
from patchgate.git.notes import add_line, anchor_of, read_notes
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, open_repository
from patchgate.report.rules import Level
from patchgate.report.schema import json_schema
from patchgate.report.verdict import ChangeVerdict, GateOutcome, Outcome, Report, Verdict
from tests.signing import (
    REF,
    SIGNERS,
    Key,
    anchor,
    approve_here,
    commit_note,
    elsewhere,
    needs_ssh_keygen,
    put_note,
    statement_for,
)
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

POLICY = '[policy]\ndeny_prefixes = ["vendor"]\ndeny_suffixes = [".exe"]\n'


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository that denies `vendor/` and `.exe`, with a change to `vendor/` staged."""
    made = Repo.create(tmp_path)
    made.policy(POLICY)
    made.commit({"a": "a\n"})
    made.stage({"vendor/x": "x\n"})
    return made


def opened(repo: Repo, **env: str) -> Repository:
    return open_repository(repo.env | env, str(repo.path))


def judged(repo: Repo) -> ChangeVerdict:
    """The verdict on what is staged, without any approval."""
    (change,) = check_pending(opened(repo), CheckOptions()).changes
    return change


def granted(repo: Repo, *rules: str, **other: Any) -> Grant:
    return Grant(statement_for(repo.check().change, rules, **other), "somebody", False)


# What an approval does to a verdict.


def test_an_approved_finding_becomes_a_note_that_says_by_whom_and_why(repo: Repo) -> None:
    before = repo.check().change
    approve_here(repo, statement_for(before))
    answer = repo.check()
    (finding,) = answer.findings
    assert (answer.code, answer.verdict) == (0, "accepted")
    assert (finding["rule"], finding["level"], finding["path"]) == ("deny-prefix", "note", "vendor/x")
    assert finding["details"]["approved"] == {
        "by": "A U Thor <author@example.com>",
        "reason": "vendored from upstream",
        "signed": False,
    }
    added = finding["message"].removeprefix(before["findings"][0]["message"])
    assert added.startswith("; ")
    assert added.endswith(": vendored from upstream")
    assert " A U Thor <author@example.com> " in added
    assert finding["details"]["pattern"] == before["findings"][0]["details"]["pattern"]
    assert finding["fingerprint"] == before["findings"][0]["fingerprint"]
    assert finding["hint"] is None
    jsonschema.Draft202012Validator(json_schema()).validate(answer.report)


def test_the_gate_passes_and_the_circumstances_name_the_approval_but_the_ids_stay(repo: Repo) -> None:
    before = repo.check().change
    approve_here(repo, statement_for(before))
    after = repo.check().change
    assert {"gate": "policy", "outcome": "fail"} in before["gates"]
    assert {"gate": "policy", "outcome": "pass"} in after["gates"]
    assert before["context_gates"] == []
    (gate,) = after["context_gates"]
    assert (gate["gate"], gate["outcome"]) == ("approvals", "pass")
    assert gate["reason"].startswith("deny-prefix ")
    assert gate["reason"].endswith(": vendored from upstream")
    assert " A U Thor <author@example.com> " in gate["reason"]
    for key in ("id", "change_id", "policy", "base", "after"):
        assert before[key] == after[key]


def test_the_verdict_in_words_shows_the_approval(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    said = repo.cli("check").out
    assert "note[deny-prefix]: " in said
    assert " A U Thor " in said
    assert said.endswith("accepted: 1 note\n")


def test_a_rule_that_the_approval_does_not_name_still_refuses(repo: Repo) -> None:
    repo.stage({"vendor/tool.exe": "x\n", "other.exe": "x\n"})
    before = repo.check()
    assert set(before.errors) == {"deny-prefix", "deny-suffix"}
    approve_here(repo, statement_for(before.change, ["deny-prefix"]))
    after = repo.check()
    assert (after.verdict, set(after.errors)) == ("rejected", {"deny-suffix"})
    assert {"gate": "policy", "outcome": "fail"} in after.change["gates"]
    assert [each["gate"] for each in after.change["context_gates"]] == ["approvals"]
    approve_here(repo, statement_for(before.change, ["deny-suffix"], reason="the installer needs it"))
    both = repo.check()
    assert both.verdict == "accepted"
    (circumstance,) = both.change["context_gates"]
    assert circumstance["reason"].count("approved by") == 2


def test_warnings_and_notes_are_left_as_they_are(repo: Repo) -> None:
    repo.policy(POLICY + 'max_file_bytes = 1\n[rules]\ndeny-prefix = "warning"\n')
    repo.stage({"vendor/y": "long\n", "b.exe": ""})
    before = repo.check()
    levels = {each["rule"]: each["level"] for each in before.findings}
    assert levels["deny-prefix"] == "warning"
    approve_here(repo, statement_for(before.change, ["deny-prefix", "deny-suffix", "max-file-bytes"]))
    after = {each["rule"]: each["level"] for each in repo.check().findings}
    assert after == levels | {"deny-suffix": "note"}


def test_an_approval_of_another_change_counts_for_nothing(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    repo.stage({"vendor/x": "something else\n"})
    answer = repo.check()
    assert (answer.errors, answer.report["warnings"]) == (["deny-prefix"], [])


def test_a_change_whose_policy_changed_needs_a_new_approval_and_is_told_so(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    assert repo.check().verdict == "accepted"
    repo.git("reset", "-q")
    repo.git("clean", "-q", "-f", "-d")
    repo.policy(POLICY + "max_file_bytes = 100\n")
    repo.stage({"vendor/x": "x\n"})
    answer = repo.check()
    assert answer.verdict == "rejected"
    (warning,) = answer.report["warnings"]
    assert " A U Thor <author@example.com> of 2024-05-06T07:08:09Z " in warning
    assert "another policy" in warning


def test_the_other_profile_is_another_policy(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    assert repo.check().verdict == "accepted"
    assert repo.check("--profile", "agent").verdict == "rejected"


def test_no_approval_touches_an_invariant(repo: Repo) -> None:
    repo.stage({"patchgate.toml": POLICY + "# more\n"})
    before = repo.check()
    assert set(before.errors) == {"deny-prefix", "policy-change-not-alone"}
    approve_here(repo, statement_for(before.change))
    after = repo.check()
    assert (after.verdict, after.errors) == ("rejected", ["policy-change-not-alone"])
    assert after.report["approve"] is None


def test_an_undecided_gate_stays_undecided(repo: Repo) -> None:
    change = judged(repo)
    unsure = GateOutcome("shape", Outcome.UNDECIDED, "an object is missing")
    gates = tuple(unsure if gate.gate == "shape" else gate for gate in change.gates)
    report = apply_grants(Report((replace(change, gates=gates),)), [[granted(repo)]])
    assert report.verdict is Verdict.UNDECIDED
    assert unsure in report.changes[0].gates


@pytest.mark.parametrize("kind", ["message", "ref", "patch", "edits", "all"])
def test_what_can_become_no_commit_is_out_of_reach(repo: Repo, kind: str) -> None:
    report = Report((replace(judged(repo), source=Source(kind)),))
    assert apply_grants(report, [[granted(repo)]]) == report
    assert approve_command(opened(repo), report, place=LOCAL) is None
    approve_here(repo, statement_for(repo.check().change))
    assert apply_approvals(opened(repo), report, ApprovalSources(True)) == report


@pytest.mark.parametrize("rule", ["message-vague", "hunk-mismatch", "not-a-unified-diff"])
def test_what_is_said_about_a_message_or_a_text_is_out_of_reach(repo: Repo, rule: str) -> None:
    change = judged(repo)
    finding = replace(change.findings[0], rule=rule, level=Level.ERROR)
    report = Report((replace(change, findings=(finding,)),))
    assert apply_grants(report, [[granted(repo, rule)]]) == report
    assert approve_command(opened(repo), report, place=LOCAL) is None


def test_a_change_without_files_is_out_of_reach_for_all_of_them_have_one_id(repo: Repo) -> None:
    change = judged(repo)
    empty = replace(change, change=replace(change.change, files=()))
    for each, verdict in ((empty, Verdict.REJECTED), (change, Verdict.ACCEPTED)):
        grant = granted(repo, change_id=each.change_id)
        assert apply_grants(Report((each,)), [[grant]]).verdict is verdict


def test_a_grant_for_another_change_is_not_believed(repo: Repo) -> None:
    report = Report((judged(repo),))
    for other in ({"change_id": "sha256:" + "0" * 64}, {"policy": "sha256:" + "0" * 64}):
        assert apply_grants(report, [[granted(repo, **other)]]) == report


def test_a_signed_approval_is_named_before_one_of_this_machine(repo: Repo) -> None:
    grant = granted(repo)
    signed = Grant(replace(grant.statement, reason="signed for good"), "signer", True)
    report = apply_grants(Report((judged(repo),)), [[grant, signed]])
    assert report.changes[0].findings[0].details["approved"] == {
        "by": "signer",
        "reason": "signed for good",
        "signed": True,
    }


# Where approvals without a signature count.


def test_an_approval_follows_the_change_into_the_commit_a_range_and_the_working_tree(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    assert repo.check("--worktree").verdict == "accepted"
    repo.git("commit", "-q", "-m", "Vendor")
    assert repo.check("HEAD").verdict == "accepted"
    repo.commit({"b": "b\n"})
    answer = repo.check("HEAD~2..HEAD")
    assert answer.verdict == "accepted"
    assert [each["context_gates"] != [] for each in answer.changes] == [True, False]


def test_it_survives_a_rebase_that_leaves_those_files_alone(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    repo.git("checkout", "-q", "-b", "topic")
    old = repo.commit()
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "another\n", "c": "c\n"})
    repo.git("rebase", "-q", "main", "topic")
    new = repo.head()
    assert new != old
    assert repo.check("HEAD").verdict == "accepted"
    assert repo.check("HEAD").change["id"] != repo.check(old).change["id"]


def test_it_does_not_survive_a_rebase_that_changes_what_comes_in(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"vendor/x": "1\n2\n3\n4\n5\n6\n7\n8\n"})
    repo.policy(POLICY)
    repo.git("checkout", "-q", "-b", "topic")
    repo.stage({"vendor/x": "1\n2\n3\n4\n5\n6\n7\nlast\n"})
    approve_here(repo, statement_for(repo.check().change))
    repo.commit()
    assert repo.check("HEAD").verdict == "accepted"
    repo.git("checkout", "-q", "main")
    repo.commit({"vendor/x": "first\n2\n3\n4\n5\n6\n7\n8\n"})
    repo.git("rebase", "-q", "main", "topic")
    assert repo.check("HEAD").verdict == "rejected"


def test_a_merge_is_approved_for_what_a_person_added_to_it(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"side": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"main": "x\n"})
    repo.git("merge", "-q", "--no-commit", "--no-ff", "side")
    repo.stage({"vendor/evil": "x\n"})
    approve_here(repo, statement_for(repo.check().change))
    assert repo.check().verdict == "accepted"
    repo.git("commit", "-q", "--no-edit")
    assert repo.check("HEAD").verdict == "accepted"


@pytest.mark.parametrize("value", ["true", "1", "yes"])
def test_in_ci_it_does_not_count_and_the_way_is_told(repo: Repo, value: str) -> None:
    approve_here(repo, statement_for(repo.check().change))
    answer = repo.check(CI=value)
    assert answer.verdict == "rejected"
    (warning,) = answer.report["warnings"]
    assert " A U Thor <author@example.com> has no signature" in warning
    assert warning.endswith(" --sign")
    assert answer.report["approve"] == 'git patchgate approve @staged --reason "..." --sign'
    assert repo.check(CI="false").verdict == "accepted"


def test_a_patch_and_edits_are_not_approved(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    patch = repo.path.parent / "patch"
    patch.write_bytes(repo.git("diff", "--cached"))
    repo.git("reset", "-q", "--hard")
    answer = repo.check("--patch", str(patch), "--profile", "commit")
    assert (answer.verdict, answer.report["approve"]) == ("rejected", None)


def test_all_tracked_files_are_told_of_as_ever(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    repo.commit()
    answer = repo.check("--all")
    assert (answer.verdict, answer.report["approve"]) == ("rejected", None)


def test_damaged_approvals_of_this_machine_are_told_and_do_not_count(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    place = repo.path / ".git" / "patchgate" / "approvals.jsonl"
    place.write_bytes(place.read_bytes().replace(b"vendored", b"VENDORED"))
    answer = repo.check()
    assert answer.verdict == "rejected"
    assert "do not count: line 1 of " in answer.report["warnings"][0]


def test_an_accepted_change_costs_no_look_at_approvals(repo: Repo) -> None:
    repo.git("reset", "-q", "--hard")
    repo.stage({"b": "b\n"})
    (repo.path / ".git" / "patchgate").mkdir(exist_ok=True)
    (repo.path / ".git" / "patchgate" / "approvals.jsonl").write_bytes(b"damaged\n")
    answer = repo.check()
    assert (answer.verdict, answer.report["warnings"]) == ("accepted", [])
    report = Report((judged(repo),))
    gone = replace(opened(repo), git_dir="/nowhere", common_dir="/nowhere", environment={})
    assert apply_approvals(gone, report, ApprovalSources(True)) is report


# The line at the end of a refusal.


def test_a_refusal_ends_with_the_line_that_approves_it(repo: Repo) -> None:
    assert repo.check().report["approve"] == 'git patchgate approve @staged --reason "..."'
    lines = repo.cli("check").out.splitlines()
    assert lines[-2] == 'approve: git patchgate approve @staged --reason "..."'
    tree = repo.check("--worktree")
    digits = tree.change["change_id"].removeprefix("sha256:")[:16]
    assert tree.report["approve"] == f'git patchgate approve {digits} --reason "..."'
    first = repo.commit()
    repo.commit({"vendor/y": "y\n"})
    expected = f'git patchgate approve {first} --reason "..."'
    assert repo.check(first).report["approve"] == expected
    assert repo.check("HEAD~2..HEAD").report["approve"] == expected


def test_the_line_repeats_what_was_asked_about_policy_and_profile(repo: Repo) -> None:
    repo.git("branch", "it's")
    answer = repo.check("--policy-from", "it's", "--profile", "commit")
    assert answer.report["approve"] == (
        "git patchgate approve @staged --policy-from 'it'\"'\"'s' --profile commit --reason \"...\""
    )


def test_there_is_no_line_where_nobody_can_approve(repo: Repo) -> None:
    change = judged(repo)
    unsure = replace(change, gates=(*change.gates, GateOutcome("drift", Outcome.UNDECIDED, "no baseline")))
    unseen = replace(change, gates=(), findings=())
    assert approve_command(opened(repo), Report((change,)), place=LOCAL) is not None
    for report in (Report(()), Report((unsure,)), Report((change, unsure)), Report((unseen,))):
        assert approve_command(opened(repo), report, place=LOCAL) is None
    assert (
        approve_command(opened(repo), Report((change,)), place=PUSH)
        == 'git patchgate approve @staged --reason "..." --sign'
    )


def test_an_accepted_change_has_no_line(repo: Repo) -> None:
    approve_here(repo, statement_for(repo.check().change))
    assert repo.check().report["approve"] is None


# Signed approvals.


@pytest.fixture
def key(tmp_path: Path) -> Key:
    """The key of a signer."""
    return Key.make(tmp_path)


@pytest.fixture
def signed_repo(repo: Repo, key: Key) -> Repo:
    """The repository, with that signer in the base, and the same change staged."""
    allow(repo, key.allowed())
    return repo


def allow(repo: Repo, signers: str) -> str:
    """Commit who may sign, alone, and stage the change again."""
    repo.git("reset", "-q")
    repo.git("clean", "-q", "-f", "-d")
    commit = repo.commit({SIGNERS: signers})
    repo.stage({"vendor/x": "x\n"})
    return commit


def note_for(repo: Repo, signed: SignedStatement, **options: Any) -> str:
    return put_note(repo, signed.statement.change_id, signed.to_line(), **options)


def refusal(repo: Repo) -> str:
    """The warning with which a signed approval of the staged change is not believed."""
    answer = elsewhere(repo)
    assert answer.errors == ["deny-prefix"]
    (warning,) = answer.report["warnings"]
    return str(warning)


@needs_ssh_keygen
def test_a_signed_approval_counts_everywhere(signed_repo: Repo, key: Key) -> None:
    note_for(signed_repo, key.sign(statement_for(signed_repo.check().change)))
    for answer in (signed_repo.check(), elsewhere(signed_repo)):
        assert (answer.verdict, answer.report["warnings"]) == ("accepted", [])
        assert answer.findings[0]["details"]["approved"] == {
            "by": "author@example.com",
            "reason": "vendored from upstream",
            "signed": True,
        }
    commit = signed_repo.commit()
    assert elsewhere(signed_repo, commit).verdict == "accepted"


@needs_ssh_keygen
@pytest.mark.parametrize("fanout", [0, 1, 2, 3])
def test_notes_are_found_with_every_fan_out(signed_repo: Repo, key: Key, fanout: int) -> None:
    note_for(signed_repo, key.sign(statement_for(signed_repo.check().change)), fanout=fanout)
    assert elsewhere(signed_repo).verdict == "accepted"


@needs_ssh_keygen
def test_a_statement_that_was_changed_after_signing_does_not_count(signed_repo: Repo, key: Key) -> None:
    signed = key.sign(statement_for(signed_repo.check().change, reason="for the tests only"))
    forged = SignedStatement(replace(signed.statement, reason="for everything"), signed.signature)
    note_for(signed_repo, forged)
    warning = refusal(signed_repo)
    assert " A U Thor <author@example.com> does not count: " in warning
    assert warning.endswith(
        " .patchgate/allowed_signers (Signature verification failed: incorrect signature)"
    )


@needs_ssh_keygen
@pytest.mark.parametrize("what", ["change_id", "policy"])
def test_a_signature_over_another_statement_does_not_count(signed_repo: Repo, key: Key, what: str) -> None:
    meant = statement_for(signed_repo.check().change)
    changed: dict[str, Any] = {what: "sha256:" + "0" * 64}
    other = key.sign(replace(meant, **changed))
    note_for(signed_repo, SignedStatement(meant, other.signature))
    assert "does not count" in refusal(signed_repo)


@needs_ssh_keygen
def test_a_signature_in_another_namespace_does_not_count(signed_repo: Repo, key: Key) -> None:
    note_for(signed_repo, key.sign(statement_for(signed_repo.check().change), "git"))
    assert "namespace" in refusal(signed_repo)


@needs_ssh_keygen
def test_a_signature_by_a_stranger_does_not_count(signed_repo: Repo, tmp_path: Path) -> None:
    stranger = Key.make(tmp_path, "stranger")
    note_for(signed_repo, stranger.sign(statement_for(signed_repo.check().change)))
    assert "does not count" in refusal(signed_repo)


@needs_ssh_keygen
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ('valid-before="20200101"', "key has expired"),
        ('valid-after="29990101"', "key is not yet valid"),
        ('namespaces="git"', "not permitted for use in signature namespace"),
        ("cert-authority", "No principal matched"),
    ],
)
def test_a_signer_who_may_not_sign_this_now_does_not_count(
    repo: Repo, key: Key, options: str, why: str
) -> None:
    allow(repo, key.allowed(options=options))
    # The statement says that it is old: the time of the check counts, or a key could be dated back.
    note_for(repo, key.sign(statement_for(repo.check().change, at="2019-01-01T00:00:00Z")))
    assert why in refusal(repo)


@needs_ssh_keygen
@pytest.mark.parametrize(
    ("principals", "by"),
    [
        ("author@example.com,other@example.com", "author@example.com"),
        ("*@example.com", "author@example.com"),
        ("*@example.com,!author@example.com", None),
        ("somebody", "somebody"),
    ],
)
def test_the_principal_who_signed_is_named(repo: Repo, key: Key, principals: str, by: str | None) -> None:
    allow(repo, key.allowed(principals, 'namespaces="git,patchgate",valid-after="20200101"'))
    note_for(repo, key.sign(statement_for(repo.check().change)))
    answer = elsewhere(repo)
    assert (answer.verdict == "accepted") == (by is not None)
    if by is not None:
        assert answer.findings[0]["details"]["approved"]["by"] == by


@needs_ssh_keygen
def test_a_signer_whom_the_change_itself_adds_does_not_count(tmp_path: Path, key: Key) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[policy]\ndeny_prefixes = [".patchgate"]\n')
    repo.stage({SIGNERS: key.allowed()})
    change = repo.check().change
    note_for(repo, key.sign(statement_for(change)))
    assert "no .patchgate/allowed_signers " in refusal(repo)
    repo.commit()
    assert elsewhere(repo, "HEAD").verdict == "rejected"


@needs_ssh_keygen
def test_a_signer_who_is_added_before_counts_only_where_that_policy_judges(repo: Repo, key: Key) -> None:
    base = repo.head()
    allow(repo, key.allowed())
    note_for(repo, key.sign(statement_for(repo.check().change)))
    repo.commit()
    assert elsewhere(repo, f"{base}..HEAD").verdict == "accepted"
    answer = elsewhere(repo, f"{base}..HEAD", "--policy-from", base)
    assert answer.verdict == "rejected"
    assert "no .patchgate/allowed_signers " in answer.report["warnings"][0]
    with_signer = repo.ask("rev-parse", "HEAD~1")
    repo.git("checkout", "-q", "--detach", base)
    repo.stage({"vendor/x": "x\n"})
    assert elsewhere(repo).verdict == "rejected"
    assert elsewhere(repo, "--policy-from", with_signer).verdict == "accepted"


@needs_ssh_keygen
def test_a_branch_named_like_the_base_does_not_bring_signers(repo: Repo, key: Key) -> None:
    base = repo.head()
    commit = repo.commit()
    repo.git("checkout", "-q", "-b", base[:12], base)
    repo.commit({SIGNERS: key.allowed()})
    repo.git("checkout", "-q", "main")
    answer = repo.check(commit)
    assert answer.change["policy"]["from"] == f"{base[:12]}:patchgate.toml"
    note_for(repo, key.sign(statement_for(answer.change)))
    assert elsewhere(repo, commit).verdict == "rejected"


@needs_ssh_keygen
def test_a_policy_from_elsewhere_whose_tree_is_not_named_brings_no_signers(
    signed_repo: Repo, key: Key
) -> None:
    repository = opened(signed_repo)
    report = check_pending(repository, CheckOptions())
    note_for(signed_repo, key.sign(statement_for(signed_repo.check().change)))
    assert apply_approvals(repository, report, ApprovalSources(False)).verdict is Verdict.ACCEPTED
    (change,) = report.changes
    elsewhere = replace(change, policy=replace(change.policy, origin="1234567890ab:patchgate.toml"))
    assert (
        apply_approvals(repository, Report((elsewhere,)), ApprovalSources(False)).verdict is Verdict.REJECTED
    )


@needs_ssh_keygen
def test_what_counts_for_one_change_does_not_count_for_its_twin_on_a_base_without_that_signer(
    repo: Repo, key: Key, tmp_path: Path
) -> None:
    allow(repo, Key.make(tmp_path, "another").allowed())
    plain = repo.commit(None, "Vendor")
    repo.git("checkout", "-q", "-b", "evil", "main~1")
    repo.commit({SIGNERS: key.allowed()})
    repo.stage({"vendor/x": "x\n"})
    change = repo.check().change
    note_for(repo, key.sign(statement_for(change)))
    evil = repo.commit(None, "Vendor")
    repository = opened(repo)
    twins = [check_revision(repository, each, CheckOptions()).changes[0] for each in (evil, plain)]
    assert (
        len({(each["change_id"], each["policy"]["digest"]) for each in (change, repo.check(plain).change)})
        == 1
    )
    for report in (Report(tuple(twins)), Report(tuple(reversed(twins)))):
        done = apply_approvals(repository, report, ApprovalSources(False))
        assert {each.source.commit: each.verdict for each in done.changes} == {
            evil: Verdict.ACCEPTED,
            plain: Verdict.REJECTED,
        }


@needs_ssh_keygen
@pytest.mark.parametrize("how", ["link", "folder"])
def test_signers_that_are_no_file_are_none(repo: Repo, key: Key, how: str) -> None:
    repo.git("reset", "-q", "--hard")
    if how == "link":
        repo.write("signers", key.allowed())
        repo.link(SIGNERS, "../signers")
    else:
        repo.write(SIGNERS + "/file", key.allowed())
    repo.commit()
    repo.stage({"vendor/x": "x\n"})
    note_for(repo, key.sign(statement_for(repo.check().change)))
    assert "no .patchgate/allowed_signers " in refusal(repo)


@needs_ssh_keygen
@pytest.mark.parametrize("signers", ["", "garbage\n", "\0\xff\x1b[2J\n"])
def test_signers_that_cannot_be_read_are_told_safely(repo: Repo, key: Key, signers: str) -> None:
    allow(repo, signers)
    note_for(repo, key.sign(statement_for(repo.check().change)))
    assert "\x1b" not in repo.cli("check", CI="true").out
    assert "does not count" in refusal(repo)


@needs_ssh_keygen
def test_a_good_approval_counts_beside_bad_ones_which_are_told(
    signed_repo: Repo, key: Key, tmp_path: Path
) -> None:
    statement = statement_for(signed_repo.check().change)
    stranger = Key.make(tmp_path, "stranger").sign(statement)
    lines = [stranger.to_line(), b"junk \x1b[2J\n", b'{"statement": {}}\n', key.sign(statement).to_line()]
    put_note(signed_repo, statement.change_id, b"".join(lines))
    answer = elsewhere(signed_repo)
    assert answer.verdict == "accepted"
    assert len(answer.report["warnings"]) == 2
    assert answer.report["warnings"][0].startswith("2 lines ")


@needs_ssh_keygen
def test_of_very_many_signatures_only_some_are_looked_at(signed_repo: Repo, key: Key, tmp_path: Path) -> None:
    stranger = Key.make(tmp_path, "stranger")
    signed = stranger.sign(statement_for(signed_repo.check().change))
    many = [
        SignedStatement(replace(signed.statement, reason=f"reason number {number}"), signed.signature)
        for number in range(50)
    ]
    for place, verdict in ((31, "accepted"), (32, "rejected")):
        lines = [each.to_line() for each in many]
        lines.insert(place, key.sign(signed.statement).to_line())
        put_note(signed_repo, signed.statement.change_id, b"".join(lines))
        answer = elsewhere(signed_repo)
        assert answer.verdict == verdict
        assert any(each.startswith("19 more ") for each in answer.report["warnings"])


@needs_ssh_keygen
def test_an_unsigned_line_in_the_notes_is_junk(signed_repo: Repo) -> None:
    statement = statement_for(signed_repo.check().change)
    put_note(signed_repo, statement.change_id, statement.to_bytes() + b"\n")
    assert refusal(signed_repo).startswith("1 line ")


@needs_ssh_keygen
def test_a_signed_approval_under_another_policy_is_told(signed_repo: Repo, key: Key) -> None:
    statement = statement_for(signed_repo.check().change, policy="sha256:" + "0" * 64)
    note_for(signed_repo, key.sign(statement))
    assert "another policy" in refusal(signed_repo)


@needs_ssh_keygen
def test_no_signature_touches_an_invariant(signed_repo: Repo, key: Key) -> None:
    signed_repo.stage({"patchgate.toml": POLICY + "# more\n"})
    note_for(signed_repo, key.sign(statement_for(signed_repo.check().change)))
    assert signed_repo.check().errors == ["policy-change-not-alone"]


@needs_ssh_keygen
def test_without_ssh_keygen_no_signature_counts_and_it_is_told(
    signed_repo: Repo, key: Key, tmp_path: Path
) -> None:
    note_for(signed_repo, key.sign(statement_for(signed_repo.check().change)))
    answer = elsewhere(signed_repo, PATH=path_without(tmp_path, "ssh-keygen"))
    assert answer.verdict == "rejected"
    warning = answer.report["warnings"][0]
    assert "does not count: " in warning
    assert ": ssh-keygen was not found" in warning


def path_without(folder: Path, missing: str) -> str:
    """A PATH with git alone."""
    tools = folder / f"without-{missing}"
    tools.mkdir()
    git = shutil.which("git")
    assert git is not None
    (tools / "git").symlink_to(git)
    return str(tools)


@needs_ssh_keygen
def test_no_program_of_a_repositorys_config_is_run(signed_repo: Repo, key: Key, tmp_path: Path) -> None:
    trap, trace = tmp_path / "trap", tmp_path / "trace"
    trap.write_text(f"#!/bin/sh\necho run >>{trace}\nexit 0\n", encoding="ascii")
    trap.chmod(0o755)
    for name in ("gpg.ssh.program", "gpg.program", "gpg.ssh.defaultKeyCommand"):
        signed_repo.git("config", name, str(trap))
    stranger = Key.make(tmp_path, "stranger")
    note_for(signed_repo, stranger.sign(statement_for(signed_repo.check().change)))
    assert elsewhere(signed_repo).verdict == "rejected"
    assert not trace.exists()


# Notes: where they are read, and how a line is added.


@needs_ssh_keygen
@pytest.mark.parametrize(
    "make",
    [
        lambda repo, name: commit_note(repo, name, b"\0\xff" * 1000),
        lambda repo, name: commit_note(repo, name, b"x" * (2 << 20)),
        lambda repo, name: commit_note(repo, name + "/inner", b"a folder"),
        lambda repo, name: commit_note(repo, "README", b"no note at all\n"),
        lambda repo, name: commit_note(repo, f"{name[:2]}/{name[2:4]}/{name[4:]}/{name}", b"too deep\n"),
    ],
    ids=["binary", "large", "folder", "no note", "deep"],
)
def test_junk_notes_approve_nothing_and_stop_nothing(
    signed_repo: Repo, key: Key, make: Callable[[Repo, str], str]
) -> None:
    change = signed_repo.check().change
    commit = make(signed_repo, anchor(signed_repo, change["change_id"]))
    signed_repo.git("update-ref", REF, commit)
    assert elsewhere(signed_repo).errors == ["deny-prefix"]
    # Beside a second place with a good one it counts.
    good = note_for(signed_repo, key.sign(statement_for(change)), ref="refs/notes/other")
    report = check_pending(opened(signed_repo), CheckOptions())
    done = apply_approvals(opened(signed_repo), report, ApprovalSources(False, notes=(REF, good)))
    assert done.verdict is Verdict.ACCEPTED


@needs_ssh_keygen
@pytest.mark.parametrize("place", ["refs/notes/none", "0" * 40, "1" * 40, "-x", "a..b", ""])
def test_a_place_of_notes_that_is_not_there_has_none(signed_repo: Repo, place: str) -> None:
    repository = opened(signed_repo)
    report = check_pending(repository, CheckOptions())
    done = apply_approvals(repository, report, ApprovalSources(False, notes=(place,)))
    assert (done.verdict, done.warnings) == (Verdict.REJECTED, report.warnings)


@needs_ssh_keygen
def test_of_notes_that_are_too_large_together_the_rest_is_not_read(
    signed_repo: Repo, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = note_for(signed_repo, key.sign(statement_for(signed_repo.check().change)))
    junk = commit_note(signed_repo, anchor(signed_repo, signed_repo.check().change["change_id"]), b"x" * 2000)
    report = check_pending(opened(signed_repo), CheckOptions())
    for most, seconds, places, expected in (
        (1000, 5.0, (junk, good), Verdict.REJECTED),
        (3000, 5.0, (junk, good), Verdict.ACCEPTED),
        (3000, 0.0, (junk, good), Verdict.REJECTED),
    ):
        monkeypatch.setattr(grants, "_MOST_BYTES_IN_ALL", most)
        monkeypatch.setattr(grants, "_MOST_SECONDS_OF_NOTES", seconds)
        done = apply_approvals(opened(signed_repo), report, ApprovalSources(False, notes=places))
        assert (done.verdict, "too large together" in " ".join(done.warnings)) == (
            expected,
            expected is Verdict.REJECTED,
        )


@needs_ssh_keygen
def test_notes_with_a_missing_object_are_told_and_count_for_nothing(signed_repo: Repo, key: Key) -> None:
    commit = note_for(signed_repo, key.sign(statement_for(signed_repo.check().change)))
    blob = signed_repo.ask("ls-tree", "-r", "--object-only", commit)
    (signed_repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert "do not count: object " in refusal(signed_repo)


@needs_ssh_keygen
def test_two_notes_that_git_merged_by_cat_sort_uniq_both_count(
    signed_repo: Repo, key: Key, tmp_path: Path
) -> None:
    signed_repo.stage({"b.exe": "x\n"})
    change = signed_repo.check().change
    second = Key.make(tmp_path, "second")
    base = signed_repo.head()
    signed_repo.git("stash", "-q")
    signed_repo.commit({SIGNERS: key.allowed() + second.allowed("second@example.com")})
    signed_repo.git("stash", "pop", "-q", "--index")
    assert base != signed_repo.head()
    note_for(signed_repo, key.sign(statement_for(change, ["deny-prefix"])))
    note_for(
        signed_repo, second.sign(statement_for(change, ["deny-suffix"])), ref="refs/notes/theirs", fanout=1
    )
    assert elsewhere(signed_repo).errors == ["deny-suffix"]
    signed_repo.git("notes", "--ref", REF, "merge", "-q", "-s", "cat_sort_uniq", "refs/notes/theirs")
    answer = elsewhere(signed_repo)
    assert (answer.verdict, answer.report["warnings"]) == ("accepted", [])
    assert {each["details"]["approved"]["by"] for each in answer.findings} == {
        "author@example.com",
        "second@example.com",
    }


@needs_ssh_keygen
def test_a_commit_of_notes_in_quarantine_is_read(signed_repo: Repo, key: Key, tmp_path: Path) -> None:
    signed = key.sign(statement_for(signed_repo.check().change))
    quarantine = tmp_path / "incoming"
    quarantine.mkdir()
    own = str(signed_repo.path / ".git" / "objects")
    env = {"GIT_OBJECT_DIRECTORY": str(quarantine), "GIT_ALTERNATE_OBJECT_DIRECTORIES": own}
    name = anchor(signed_repo, signed.statement.change_id)
    commit = commit_note(signed_repo, f"{name[:2]}/{name[2:]}", signed.to_line(), **env)
    report = check_pending(opened(signed_repo), CheckOptions())
    outside = apply_approvals(opened(signed_repo), report, ApprovalSources(False, notes=(commit,)))
    assert outside.verdict is Verdict.REJECTED
    inside = opened(signed_repo, **env, GIT_QUARANTINE_PATH=str(quarantine))
    assert (
        apply_approvals(inside, report, ApprovalSources(False, notes=(commit,))).verdict is Verdict.ACCEPTED
    )


@needs_ssh_keygen
def test_a_sha256_repository_has_signed_approvals_too(tmp_path: Path, key: Key) -> None:
    repo = Repo.create(tmp_path, "--object-format=sha256")
    repo.policy(POLICY)
    allow(repo, key.allowed())
    signed = key.sign(statement_for(repo.check().change))
    repository = opened(repo)
    with Objects(repository) as objects:
        name = anchor_of(objects, signed.statement.change_id)
    assert name == anchor(repo, signed.statement.change_id)
    assert len(name) == 64
    add_line(repository, REF, name, signed.to_line(), message="Approve", identity=who(repo))
    assert elsewhere(repo).verdict == "accepted"


def who(repo: Repo) -> dict[str, str]:
    return {name: text for name, text in repo.env.items() if name.endswith(("_NAME", "_EMAIL"))}


def line_number(number: int) -> bytes:
    return b'{"line": %d}\n' % number


def notes_of(repo: Repo, name: str) -> list[bytes]:
    with Objects(opened(repo)) as objects:
        return list(read_notes(objects, REF, name))


def test_a_note_is_added_where_git_finds_it_and_nothing_else_is_written(repo: Repo) -> None:
    name = anchor(repo, "sha256:" + "1" * 64)
    before = repo.git("status", "--porcelain"), repo.git("for-each-ref"), index_of(repo)
    add_line(opened(repo), REF, name, line_number(2), message="Approve two", identity=who(repo))
    add_line(opened(repo), REF, name, line_number(1), message="Approve one", identity=who(repo))
    add_line(opened(repo), REF, name, line_number(1), message="Again", identity=who(repo))
    assert repo.git("notes", "--ref", REF, "show", name) == line_number(1) + line_number(2)
    assert notes_of(repo, name) == [line_number(1) + line_number(2)]
    log = repo.ask("log", "--format=%s %an %ae", REF).splitlines()
    assert log == [f"{each} A U Thor author@example.com" for each in ("Again", "Approve one", "Approve two")]
    repo.git("update-ref", "-d", REF)
    assert before == (repo.git("status", "--porcelain"), repo.git("for-each-ref"), index_of(repo))


def index_of(repo: Repo) -> bytes:
    return (repo.path / ".git" / "index").read_bytes()


@pytest.mark.parametrize("fanout", [0, 1, 2])
def test_a_note_is_added_to_the_fan_out_that_is_there(repo: Repo, fanout: int) -> None:
    change_id = "sha256:" + "1" * 64
    put_note(repo, change_id, line_number(1), fanout=fanout)
    name = anchor(repo, change_id)
    add_line(opened(repo), REF, name, line_number(2), message="Approve", identity=who(repo))
    assert notes_of(repo, name) == [line_number(1) + line_number(2)]
    assert repo.git("ls-tree", "-r", "--name-only", REF).count(b"\n") == 1
    sibling = name[:-1] + ("0" if name[-1] != "0" else "1")
    add_line(opened(repo), REF, sibling, line_number(3), message="Approve", identity=who(repo))
    assert notes_of(repo, sibling) == [line_number(3)]
    assert notes_of(repo, name) == [line_number(1) + line_number(2)]
    assert repo.git("notes", "--ref", REF, "show", sibling) == line_number(3)


def test_a_fan_out_that_git_chose_itself_is_read(repo: Repo) -> None:
    """So many notes that git splits the tree into folders."""
    names = [anchor(repo, "sha256:" + f"{number:064x}") for number in (1, 2)]
    oids = [*names, *(f"{number * 2654435761 % 2**32:08x}" + "0" * 32 for number in range(1, 600))]
    repo.git("notes", "--ref", REF, "add", "-m", "a note", "HEAD")
    repo.git(
        "notes", "--ref", REF, "copy", "--stdin", stdin="".join(f"HEAD {oid}\n" for oid in oids).encode()
    )
    assert repo.git("ls-tree", REF).count(b" tree ") == 256
    for name in names:
        assert notes_of(repo, name) == [b"a note\n"]


def test_writers_at_once_lose_no_line(repo: Repo) -> None:
    name = anchor(repo, "sha256:" + "1" * 64)

    def write(number: int) -> str:
        return add_line(opened(repo), REF, name, line_number(number), message="Approve", identity=who(repo))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    assert notes_of(repo, name) == [b"".join(map(line_number, range(3)))]


def test_a_symbolic_ref_does_not_lead_the_notes_onto_a_branch(repo: Repo) -> None:
    repo.git("symbolic-ref", REF, "refs/heads/main")
    main = repo.ask("rev-parse", "main")
    name = anchor(repo, "sha256:" + "1" * 64)
    add_line(opened(repo), REF, name, line_number(1), message="Approve", identity=who(repo))
    assert repo.ask("rev-parse", "refs/heads/main") == main
    assert repo.ask("rev-parse", REF) != main


def test_a_held_lock_on_the_ref_is_told_and_nothing_is_lost(repo: Repo) -> None:
    name = anchor(repo, "sha256:" + "1" * 64)
    add_line(opened(repo), REF, name, line_number(1), message="Approve", identity=who(repo))
    lock = repo.path / ".git" / f"{REF}.lock"
    lock.touch()
    with pytest.raises(UndecidedError, match=r"^git update-ref failed: "):
        add_line(opened(repo), REF, name, line_number(2), message="Approve", identity=who(repo))
    lock.unlink()
    assert notes_of(repo, name) == [line_number(1)]


def test_a_tag_in_the_place_of_the_notes_is_named_with_the_way_to_remove_it(repo: Repo) -> None:
    name = anchor(repo, "sha256:" + "1" * 64)
    add_line(opened(repo), REF, name, line_number(1), message="Approve", identity=who(repo))
    repo.git("tag", "-a", "-m", "x", "t", REF)
    repo.git("update-ref", REF, "refs/tags/t")
    with pytest.raises(UndecidedError) as raised:
        add_line(opened(repo), REF, name, line_number(2), message="Approve", identity=who(repo))
    assert f"git update-ref -d {REF}" in str(raised.value.hint)
