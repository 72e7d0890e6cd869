"""Verify in real repositories: what is compared with what, whose regression it is, when nobody can tell."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from patchgate.git.path import RepoPath
from tests.verify.verify_world import IFS, NEW, Workshop, hours_ago, places

pytestmark = pytest.mark.turns(3)

BAD = "1\nBAD one\n"
IF = "1\nif a\nif b\nif c\n"


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop.open(tmp_path)


def test_without_an_intent_what_is_staged_is_held_against_head(shop: Workshop) -> None:
    # A6: everything is the change's own, and nothing is external.
    shop.stage({"a.py": BAD})
    told = shop.verify()
    assert (told["status"], told["intent"], told["scope"]) == ("violated", None, None)
    assert places(told["intent_regressions"]) == [("a.py", 2)]
    assert told["external_regressions"] == []
    assert told["before"]["tree"] == shop.ask("rev-parse", "HEAD^{tree}")
    assert told["after"]["tree"] == shop.ask("write-tree")


def test_without_an_intent_a_commit_is_held_against_its_first_parent(shop: Workshop) -> None:
    shop.commit({"a.py": BAD})
    shop.commit({"b.py": "2\n"})
    assert shop.verify("HEAD")["status"] == "accepted"
    told = shop.verify("HEAD~1")
    assert told["status"] == "violated"
    assert told["before"]["tree"] == shop.ask("rev-parse", "HEAD~2^{tree}")


def test_a_root_commit_is_held_against_the_empty_tree(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"a.py": BAD})
    told = shop.verify("HEAD")
    assert places(told["intent_regressions"]) == [("a.py", 2)]


def test_a_base_is_compared_without_any_intent(shop: Workshop) -> None:
    first = shop.head()
    shop.commit({"a.py": BAD})
    shop.commit({"b.py": "2\n"})
    shop.declare("b.py")
    told = shop.verify("HEAD", "--base", first)
    assert (told["status"], told["intent"], told["scope"]) == ("violated", None, None)
    assert shop.verify("HEAD")["status"] == "accepted"


def test_a12_an_intent_that_makes_nothing_worse_is_accepted(shop: Workshop) -> None:
    shop.declare("a.py", related="b.py")
    shop.stage({"a.py": "2\n"})
    told = shop.verify()
    assert (told["status"], told["verdict"]) == ("accepted", "accepted")
    assert (told["before_gate"], told["after_gate"]) == (False, False)
    assert told["scope"]["untouched"] == []
    assert told["contract_violations"] == []


def test_an_analysis_that_takes_longer_than_a_second_is_verified_under_an_intent(shop: Workshop) -> None:
    # Progress is reported once a second, and renews the lease.
    name = shop.declare("a.py")
    shop.rewrite(name, seen=hours_ago(0.5))
    (shop.beside / "slow").touch()
    shop.stage({"a.py": "2\n"})
    assert shop.verify()["status"] == "accepted"
    assert not (shop.beside / "slow").exists()


def test_a13_what_somebody_else_brings_is_external_and_named(shop: Workshop) -> None:
    shop.declare("a.py")
    other = shop.commit({"b.py": BAD}, "Somebody else's work")
    shop.stage({"a.py": "2\n"})
    told = shop.verify()
    assert told["status"] == "accepted_with_external_changes"
    assert places(told["external_regressions"]) == [("b.py", 2)]
    assert told["external_commits"] == [{"commit": other, "subject": "Somebody else's work"}]
    assert told["scope"]["is_clean"]
    assert told["gate_worsened"]
    assert not told["intent_caused_gate"]


def test_a14_a_regression_in_its_files_violates_an_intent(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.stage({"a.py": BAD})
    told = shop.verify()
    assert (told["status"], told["verdict"]) == ("violated", "rejected")
    assert "structural_regressions" in told["contract_violations"]


def test_a14_a_threshold_that_an_intent_crosses_violates_it(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.stage({"a.py": IF})
    told = shop.verify()
    assert (told["status"], told["intent_caused_gate"]) == ("violated", True)
    assert told["contract_violations"] == ["gate_failures"]
    assert told["intent_worsened"][0] == {
        "path": "a.py",
        "symbol": "all",
        "metric": "ifs",
        "before": 0,
        "after": 3,
    }


def test_a14_a_file_that_was_not_declared_violates_an_intent(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.stage({"a.py": "2\n", "b.py": "2\n"})
    told = shop.verify()
    assert told["status"] == "violated"
    assert told["scope"]["unexpected_files"] == ["b.py"]
    assert told["contract_violations"] == ["scope_violation"]


def test_somebody_elses_crossing_counts_where_a_metric_rose_in_scope(shop: Workshop) -> None:
    """A10 and A11: a crossing is the intent's where a symbol of its files rose in that metric."""
    shop.declare("a.py")
    shop.commit({"b.py": IF})
    shop.stage({"a.py": "2\n"})
    told = shop.verify()
    assert (told["status"], told["gate_worsened"]) == ("accepted_with_external_changes", True)
    shop.stage({"a.py": "1\nif a\n"})
    told = shop.verify()
    assert (told["status"], told["contract_violations"]) == ("violated", ["gate_failures"])
    assert [each["path"] for each in told["intent_worsened"]] == ["a.py"]
    assert [each["path"] for each in told["external_worsened"]] == ["b.py"]


def test_a_threshold_that_failed_before_refuses_only_what_makes_it_worse(tmp_path: Path) -> None:
    """A9: without an intent the difference is judged."""
    shop = Workshop.open(tmp_path, {"a.py": IF}, thresholds=(IFS,))
    told = shop.verify("HEAD", "--base", "HEAD")
    assert (told["status"], told["thresholds"][0]["preexisting"]) == ("accepted", True)
    for files, status in (
        ({"b.py": "2\n"}, "accepted"),
        ({"a.py": IF + "if d\n"}, "violated"),
        # As high as the highest, in another place.
        ({"b.py": IF}, "violated"),
    ):
        shop.stage(dict(files))
        told = shop.verify()
        assert (told["status"], told["before_gate"], told["after_gate"]) == (status, True, True)
        assert told["thresholds"][0]["preexisting"] is (status == "accepted")
        shop.git("reset", "-q", "--hard")
    shop.stage({"b.py": "2\n"})
    assert "few-ifs: ifs 3 → 3, at most 2: fails " in shop.cli("verify").out


def test_preexisting_refuse_counts_every_threshold_that_fails(tmp_path: Path) -> None:
    absolute = '[verify]\npreexisting = "refuse"\n'
    shop = Workshop.open(tmp_path, {"a.py": IF}, thresholds=(IFS,), more=absolute)
    assert shop.verify("HEAD", "--base", "HEAD")["status"] == "accepted"
    shop.stage({"b.py": "2\n"})
    told = shop.verify()
    assert (told["status"], told["contract_violations"]) == ("violated", ["gate_failures"])
    shop.declare("b.py")
    assert shop.verify()["status"] == "accepted"


def test_a_new_file_over_the_threshold_counts(shop: Workshop) -> None:
    shop.declare("new.py")
    shop.stage({"new.py": IF})
    told = shop.verify()
    assert told["status"] == "violated"
    assert told["intent_worsened"][0]["before"] is None


def test_a_finding_that_also_names_a_file_of_the_intent_is_its_own(shop: Workshop) -> None:
    # A2.
    shop.declare("a.py")
    shop.commit({"b.py": "1\nBAD also a.py\n"})
    told = shop.verify()
    assert told["intent_regressions"][0]["paths"] == ["b.py", "a.py"]
    assert told["status"] == "violated"


def test_a_finding_without_a_file_is_the_intents(shop: Workshop) -> None:
    # A5.
    shop.declare("a.py")
    shop.commit({"b.py": "1\nBAD nowhere\n"})
    told = shop.verify()
    assert places(told["intent_regressions"]) == [(None, None)]


def test_a15_a_tool_that_fails_afterwards_leaves_it_unverified(shop: Workshop) -> None:
    shop.declare("a.py", "stop")
    shop.stage({"stop": "x\n"})
    told = shop.verify()
    assert (told["status"], told["verdict"]) == ("unverified", "undecided")
    assert ": this tool stops here " in told["reason"]
    assert "after" in told["reason"]
    assert told["next_step"]
    assert not told["after"]["is_evaluated"]


def test_a15_a_tool_that_failed_before_leaves_it_unverified(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"stop": "x\n"})
    shop.stage({"a.py": "2\n"})
    (shop.path / "stop").unlink()
    shop.stage()
    told = shop.verify()
    assert told["status"] == "unverified"
    assert not told["before"]["is_evaluated"]
    assert told["after"]["is_evaluated"]


def test_a15_other_analyses_than_at_the_declaration_leave_it_unverified(shop: Workshop) -> None:
    shop.declare("a.py")
    text = (shop.path / "patchgate.toml").read_text()
    shop.commit({"patchgate.toml": text.replace("[commands.told]", "[commands.told]\ntimeout = 60")})
    told = shop.verify()
    assert told["status"] == "unverified"
    assert "analyses" in told["reason"]
    assert "changed" in told["reason"]


def test_other_thresholds_alone_leave_it_verified(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.commit({"patchgate.toml": shop.policy_text(NEW, (*IFS[:2], 7))})
    assert shop.verify()["status"] == "accepted"


def test_a_queued_intent_leaves_it_unverified(shop: Workshop, tmp_path: Path) -> None:
    shop.declare("a.py")
    shop.git("worktree", "add", "-q", str(tmp_path / "other"))
    other = Workshop(tmp_path / "other", shop.env)
    done = other.cli("intent", "declare", "-m", "Round prices", "--allow", "a.py", "--queue")
    assert done.code == 0, done.err
    told = other.verify()
    assert (told["status"], told["verdict"]) == ("unverified", "undecided")
    assert "waits" in told["reason"]
    # Its work begins with the declaration, and so does its before-report.
    (queued,) = [each for each in shop.intents.all() if each.state == "queued"]
    assert queued.before is not None


def test_a16_another_before_report_than_was_captured_expires_the_intent(shop: Workshop) -> None:
    shop.declare("a.py")
    assert shop.verify()["status"] == "accepted"
    shutil.rmtree(shop.path / ".git" / "patchgate" / "analyses")
    (shop.beside / "extra").write_text("the tool tells something else of the same tree")
    told = shop.verify()
    assert (told["status"], told["verdict"]) == ("expired", "undecided")
    assert "before-report" in told["reason"]
    assert "declare" in told["next_step"]


def test_a16_a_before_report_that_the_ledger_does_not_know_expires_the_intent(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.verify()
    shop.rewrite(name, before="sha256:" + "0" * 64)
    told = shop.verify()
    assert told["status"] == "expired"
    assert "before-report" in told["reason"]
    assert "ledger" in told["reason"]


def test_a_before_report_that_was_taken_out_of_the_intent_is_known_to_the_ledger(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.verify()
    shop.rewrite(name, before=None)
    shutil.rmtree(shop.path / ".git" / "patchgate" / "analyses")
    (shop.beside / "extra").write_text("another report")
    assert shop.verify()["status"] == "expired"


def test_an_intent_that_is_not_what_was_declared_is_expired(shop: Workshop) -> None:
    name = shop.declare("a.py")
    intent = shop.intents.get(name)
    assert intent is not None
    wider = replace(intent.scope, allowed=(*intent.scope.allowed, RepoPath.from_git(b"b.py")))
    shop.rewrite(name, scope=wider)
    shop.stage({"b.py": "2\n"})
    told = shop.verify()
    assert (told["status"], told["verdict"]) == ("expired", "undecided")
    assert "declaration" in told["reason"]


def test_an_intent_that_the_ledger_never_saw_is_expired(shop: Workshop) -> None:
    shop.declare("a.py")
    (shop.path / ".git" / "patchgate" / "events.jsonl").unlink()
    told = shop.verify()
    assert told["status"] == "expired"
    assert "ledger" in told["reason"]
    assert "record" in told["reason"]


def test_an_intent_whose_time_is_over_is_expired_and_its_scope_is_told(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.rewrite(name, renewed=hours_ago(2))
    shop.stage({"b.py": BAD})
    told = shop.verify()
    assert told["status"] == "expired"
    assert {name, "expired"} <= set(told["reason"].split())
    assert told["scope"]["unexpected_files"] == ["b.py"]
    assert told["intent_regressions"] == []


def test_a_clock_that_goes_back_leaves_no_time(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.rewrite(name, renewed=hours_ago(-2))
    assert shop.verify()["status"] == "expired"


def test_the_scope_goes_before_what_could_not_be_verified(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.stage({"stop": "x\n"})
    told = shop.verify()
    assert told["status"] == "violated"
    assert told["reason"].startswith("stop ")
    assert told["scope"]["unexpected_files"] == ["stop"]
    assert not told["after"]["is_evaluated"]


def test_relaxed_tells_regressions_and_never_touches_the_scope(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, more='[verify]\nstrictness = "relaxed"\n')
    shop.declare("a.py")
    shop.stage({"a.py": BAD})
    told = shop.verify()
    assert told["verdict"] == "accepted"
    assert told["reported"] == ["structural_regressions", "gate_failures"]
    assert places(told["intent_regressions"]) == [("a.py", 2)]
    shop.stage({"b.py": "2\n"})
    assert shop.verify()["contract_violations"] == ["scope_violation"]


def test_a_commit_with_the_trailer_is_the_intents_own(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.commit({"b.py": "2\n"}, f"Change b\n\nPatchgate-Intent: {name}")
    told = shop.verify()
    assert told["scope"]["unexpected_files"] == ["b.py"]
    assert told["external_commits"] == []


def test_a_commit_of_the_range_may_be_named_after_the_work(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.commit({"a.py": "2\n"}, f"Change a\n\nPatchgate-Intent: {name}")
    shop.stage({"b.py": "2\n"})
    assert shop.verify("HEAD")["status"] == "accepted"
    assert shop.verify()["status"] == "violated"


def test_a_file_that_is_put_back_to_what_it_was_before_somebody_else_is_touched(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.commit({"b.py": "2\n"}, "Somebody else's")
    shop.commit({"b.py": "1\n"}, f"Put it back\n\nPatchgate-Intent: {name}")
    assert shop.verify("HEAD")["scope"]["unexpected_files"] == ["b.py"]


def test_where_nothing_is_changed_nothing_got_worse(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"a.py": BAD})
    told = shop.verify()
    assert (told["status"], told["unchanged"]) == ("accepted", 1)
    shop.declare("a.py")
    assert shop.verify("HEAD")["status"] == "accepted"


def test_the_merge_of_somebody_elses_branch_brings_only_external_files(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.git("checkout", "-q", "-b", "theirs")
    shop.commit({"b.py": "2\n"}, "Theirs")
    shop.git("checkout", "-q", "main")
    shop.commit({"a.py": "2\n"}, f"Mine\n\nPatchgate-Intent: {name}")
    shop.git("merge", "-q", "--no-ff", "-m", f"Merge\n\nPatchgate-Intent: {name}", "theirs")
    told = shop.verify("HEAD")
    assert told["status"] == "accepted"
    assert [each["subject"] for each in told["external_commits"]] == ["Theirs"]


def test_an_amended_commit_of_before_brings_only_what_is_new_in_it(shop: Workshop) -> None:
    shop.commit({"b.py": "2\n"}, "Before")
    name = shop.declare("a.py")
    shop.stage({"a.py": "2\n"})
    shop.git("commit", "-q", "--amend", "-m", f"Amended\n\nPatchgate-Intent: {name}")
    told = shop.verify("HEAD")
    assert told["status"] == "accepted", told["reason"]
    assert any("contain" in each for each in told["warnings"])
    shop.stage({"b.py": "3\n"})
    shop.git("commit", "-q", "--amend", "--no-edit")
    assert shop.verify("HEAD")["scope"]["unexpected_files"] == ["b.py"]


def test_both_sides_of_a_rename_are_touched(shop: Workshop) -> None:
    shop.declare("new.py")
    shop.git("mv", "a.py", "new.py")
    assert shop.verify()["scope"]["unexpected_files"] == ["a.py"]


def test_a_renamed_file_keeps_its_findings(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"old.py": "1\n2\n3\nBAD one\n"})
    shop.git("mv", "old.py", "new.py")
    told = shop.verify()
    assert (told["status"], told["unchanged"], told["fixed"]) == ("accepted", 1, 0)


def test_lines_on_top_make_nothing_new_and_fix_nothing(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"a.py": BAD})
    shop.stage({"a.py": "0\n0\n" + BAD})
    told = shop.verify()
    assert (told["status"], told["unchanged"], told["fixed"]) == ("accepted", 1, 0)


def test_a_file_that_was_dirty_before_is_not_blamed_as_long_as_it_is_so(shop: Workshop) -> None:
    # Names that git quotes, and a folder that nobody tracks.
    dirty = {'say "hi" -> ü.py': "2\n", "loose/x.py": "2\n", "b.py": "2\n"}
    for name, text in dirty.items():
        shop.write(name, text)
    (shop.path / "patchgate.toml").write_text((shop.path / "patchgate.toml").read_text() + "# dirty\n")
    shop.declare("a.py")
    shop.stage({"a.py": "2\n"})
    told = shop.verify()
    assert told["status"] == "accepted", told["reason"]
    assert told["dirty_before"] == ["b.py", "loose/x.py", "patchgate.toml", 'say "hi" -> ü.py']
    shop.stage({"b.py": "3\n"})
    told = shop.verify()
    assert told["scope"]["unexpected_files"] == ["b.py"]


def test_what_was_dirty_and_is_not_staged_is_not_named(shop: Workshop) -> None:
    # Of one the content was changed, of the other the mode alone.
    shop.write("b.py", "2\n")
    (shop.path / "patchgate.toml").chmod(0o755)
    shop.declare("a.py")
    assert shop.verify()["dirty_before"] == []


def test_a_control_file_is_forbidden_though_it_was_allowed_by_name(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"pyproject.toml": "[project]\nname = 'shop'\n"})
    shop.declare("pyproject.toml")
    shop.stage({"pyproject.toml": "[project]\nname = 'store'\n"})
    assert shop.verify()["status"] == "accepted"
    # Now it speaks of the rules; and so does the other one, whatever it holds.
    shop.stage({"pyproject.toml": "[tool.patchgate.policy]\n", "patchgate.toml": shop.policy_text()})
    assert shop.verify()["scope"]["forbidden_touched"] == ["patchgate.toml", "pyproject.toml"]


def test_the_change_does_not_choose_its_own_measure(shop: Workshop) -> None:
    shop.stage({"patchgate.toml": shop.policy_text((*NEW[:2], 99)), "a.py": BAD})
    told = shop.verify()
    assert told["status"] == "violated"
    assert told["thresholds"][0]["max"] == 0


@pytest.mark.parametrize("entry", ["src/*.py", "src", "src/deep/", "src/deep/a.py"])
def test_an_entry_means_the_same_to_scope_and_attribution(shop: Workshop, entry: str) -> None:
    # A7, A8.
    shop.commit({"src/b.md": "1\n"})
    shop.declare(entry)
    shop.stage({"src/deep/a.py": BAD, "other/deep/a.py": BAD})
    told = shop.verify()
    assert told["scope"]["unexpected_files"] == ["other/deep/a.py"]
    assert places(told["intent_regressions"]) == [("src/deep/a.py", 2)]
    assert places(told["external_regressions"]) == [("other/deep/a.py", 2)]


def test_suppressions_that_grow_beside_code_are_abuse(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.stage({"a.py": "1\nHID one\n"})
    told = shop.verify()
    assert told["status"] == "violated"
    abuse = told["baseline_abuse"]
    assert (abuse["detected"], abuse["triggers"], abuse["suppression_files"]) == (
        True,
        ["baseline_changed_with_functional_code"],
        [],
    )
    assert places(abuse["suppressed"]) == [("a.py", 2)]
    assert told["contract_violations"] == ["baseline_abuse:baseline_changed_with_functional_code"]


def test_a_baseline_that_grows_while_somebody_else_regresses_is_abuse(tmp_path: Path) -> None:
    # A19, A20: repository-wide, and an external regression is enough.
    shop = Workshop.open(
        tmp_path, {"known.json": '["x"]\n'}, more='[verify]\nsuppressions = ["known.json"]\n'
    )
    shop.declare("known.json")
    shop.commit({"b.py": BAD}, "Somebody else's")
    shop.stage({"known.json": '["x", "y"]\n'})
    told = shop.verify()
    assert told["status"] == "violated"
    assert "baseline_updated_while_regressions_present" in told["baseline_abuse"]["triggers"]
    assert told["baseline_abuse"]["suppression_files"] == ["known.json"]
    assert places(told["external_regressions"]) == [("b.py", 2)]


def test_any_change_of_a_baseline_is_abuse_while_something_got_worse(tmp_path: Path) -> None:
    """A20: shrunk, reordered, gone or made executable; while nothing got worse only growth is."""
    listed = '[verify]\nsuppressions = ["debt.json"]\n'
    shop = Workshop.open(tmp_path, {"debt.json": '{"a": 1, "b": 2}\n'}, thresholds=(), more=listed)
    shop.declare("a.py", "debt.json")
    for content in ('{"a": 1}\n', '{"b": 2, "a": 1}\n', None):
        for bad, is_abuse in ((BAD, True), ("1\n", False)):
            if content is None:
                (shop.path / "debt.json").unlink(missing_ok=True)
            shop.stage({"a.py": bad, **({} if content is None else {"debt.json": content})})
            told = shop.verify()["baseline_abuse"]
            assert told["detected"] is is_abuse
            assert told["suppression_files"] == (["debt.json"] if is_abuse else [])


def test_a_baseline_that_shrinks_is_none(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"known": "x\ny\n"}, more='[verify]\nsuppressions = ["known"]\n')
    shop.stage({"known": "y\n", "a.py": "2\n"})
    assert shop.verify()["baseline_abuse"]["detected"] is False


def test_the_same_tree_is_never_analysed_twice(shop: Workshop) -> None:
    shop.declare("a.py")
    shop.stage({"a.py": "2\n"})
    shop.verify()
    once = shop.runs
    assert once == 4
    shop.git("commit", "-q", "-m", "Change a")
    shop.verify("HEAD")
    shop.verify()
    assert shop.runs == once


def test_verify_writes_nothing_to_the_repository(shop: Workshop) -> None:
    shop.stage({"a.py": BAD, "loose.py": "1\n"})
    shop.write("b.py", "not staged\n")
    before = shop.git("status", "--porcelain"), (shop.path / ".git" / "index").read_bytes()
    objects = shop.git("count-objects", "-v")
    shop.verify()
    assert (shop.git("status", "--porcelain"), (shop.path / ".git" / "index").read_bytes()) == before
    assert shop.git("count-objects", "-v") == objects


def test_the_lease_is_renewed_by_a_verification(shop: Workshop) -> None:
    name = shop.declare("a.py")
    shop.rewrite(name, seen=hours_ago(0.5))
    shop.verify()
    intent = shop.intents.get(name)
    assert intent is not None
    assert intent.seen is not None
    assert intent.seen.wall > hours_ago(0.1).wall


def test_a16_the_before_report_is_captured_at_the_declaration_once_unless_lazy(shop: Workshop) -> None:
    for more, runs in ((("--lazy",), 0), ((), 2)):
        done = shop.cli(
            "intent", "declare", "-m", "Round prices", "--format", "json", "--allow", "a.py", *more
        )
        said = json.loads(done.out)["intent"]
        assert (done.code, shop.runs, said["before_digest"] is None) == (0, runs, bool(more))
        told = shop.verify()
        intent = shop.intents.get(said["id"])
        assert intent is not None
        assert said["before_digest"] in {None, intent.before}
        assert intent.before == told["before"]["digest"]
        events = (shop.path / ".git" / "patchgate" / "events.jsonl").read_text()
        assert events.count('"action":"captured"') == 1 + (not more)
        shop.cli("intent", "clear")
        for kept in (shop.path / ".git" / "patchgate" / "analyses").iterdir():
            kept.unlink()
        (shop.beside / "runs").unlink()


def test_a16_a_before_report_that_is_another_at_the_first_verify_expires_the_intent(shop: Workshop) -> None:
    shop.declare("a.py")
    for kept in (shop.path / ".git" / "patchgate" / "analyses").iterdir():
        kept.unlink()
    (shop.beside / "extra").write_text("it says more now")
    shop.stage({"a.py": "2\n"})
    assert shop.verify()["status"] == "expired"


def test_a_before_report_of_a_tool_that_failed_is_not_kept(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path, {"stop": "x\n"})
    done = shop.cli("intent", "declare", "-m", "Round prices", "--allow", "a.py")
    assert done.code == 0
    assert "before-report" in done.err
    assert "`counted`" in done.err
    assert shop.verify()["status"] == "unverified"
    (intent,) = shop.intents.all()
    assert intent.before is None


def test_of_two_intents_the_one_that_allows_all_files_is_meant(shop: Workshop) -> None:
    first = shop.declare("a.py")
    second = shop.declare("b.py")
    shop.stage({"a.py": "2\n"})
    assert shop.verify()["intent"] == first
    assert shop.verify("--intent", second)["scope"]["unexpected_files"] == ["a.py"]
    shop.git("reset", "-q", "--hard")
    assert shop.verify()["intent"] == second
    shop.commit({"a.py": "2\n"})
    assert shop.verify("HEAD")["intent"] == first


def test_the_intent_of_another_worktree_may_be_named(shop: Workshop, tmp_path: Path) -> None:
    name = shop.declare("a.py")
    shop.git("worktree", "add", "-q", str(tmp_path / "other"))
    other = Workshop(tmp_path / "other", shop.env)
    assert other.verify()["intent"] is None
    other.stage({"a.py": BAD})
    assert other.answer("--intent", name).code == 2
    other.git("commit", "-q", "-n", "-m", f"Change a\n\nPatchgate-Intent: {name}")
    told = other.verify("HEAD", "--intent", name)
    assert (told["intent"], told["status"]) == (name, "violated")


def test_an_intent_of_an_unborn_branch_begins_on_nothing(shop: Workshop) -> None:
    shop.git("config", "patchgate.trustRef", "refs/heads/main")
    shop.git("checkout", "-q", "--orphan", "fresh")
    shop.git("rm", "-rq", "--cached", ".")
    name = shop.declare("a.py")
    shop.git("add", "a.py")
    told = shop.verify()
    assert (told["intent"], told["status"]) == (name, "accepted")
    assert told["before"]["tree"] == shop.ask("hash-object", "-t", "tree", "/dev/null")
    shop.stage({"a.py": BAD, "b.py": "2\n"})
    told = shop.verify()
    assert places(told["intent_regressions"]) == [("a.py", 2)]
    assert "b.py" in told["scope"]["unexpected_files"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base", "HEAD", "--intent", "i-00000000"], "together"),
        (["--intent", "i-00000000"], "intent i-00000000"),
        (["--intent", "\x1b[2J"], r"intent \\x1b[2J"),
        (["nothing"], "revision nothing"),
        (["--base", "nothing"], "revision nothing"),
        (["--base", "staged"], "revision staged"),
        (["worktree"], "what is staged"),
        (["HEAD^{tree}"], "no parent"),
    ],
)
def test_wrong_arguments_end_with_two_and_a_next_step(
    shop: Workshop, arguments: list[str], said: str
) -> None:
    done = shop.cli("verify", *arguments)
    assert done.code == 2
    assert said in done.err.replace("\\", "\\\\") or said in done.err
    assert "help: " in done.err
    assert done.out == ""


def test_a_policy_without_analyses_says_what_to_write(tmp_path: Path) -> None:
    shop = Workshop.open(tmp_path)
    shop.commit({"patchgate.toml": "[policy]\n"})
    done = shop.cli("verify")
    assert done.code == 2
    assert "[commands." in done.err


def test_a16_a_damaged_intent_is_expired_with_a_next_step(shop: Workshop) -> None:
    name = shop.declare("a.py")
    (shop.path / ".git" / "patchgate" / "intents" / f"{name}.json").write_bytes(b"\0garbage")
    told = shop.verify()
    assert (told["status"], told["intent"]) == ("expired", name)
    assert " read" in told["reason"]
    assert name in told["next_step"]
    assert shop.verify("--intent", name)["status"] == "expired"
    assert shop.cli("verify").out.splitlines()[-1] == "undecided: unverified"
    (shop.path / ".git" / "patchgate-intents").write_bytes(b"\0garbage")
    told = shop.verify()
    assert (told["status"], told["intent"]) == ("expired", None)


def test_a_conflicted_index_is_undecided(shop: Workshop) -> None:
    shop.git("checkout", "-q", "-b", "theirs")
    shop.commit({"a.py": "theirs\n"})
    shop.git("checkout", "-q", "main")
    shop.commit({"a.py": "mine\n"})
    assert shop.try_git("merge", "-q", "theirs").returncode == 1
    assert shop.answer().code == 3


def test_a_shallow_commit_without_its_parent_is_undecided(shop: Workshop, tmp_path: Path) -> None:
    shop.commit({"a.py": "2\n"})
    shop.git("clone", "-q", "--depth", "1", f"file://{shop.path}", str(tmp_path / "shallow"))
    shallow = Workshop(tmp_path / "shallow", shop.env)
    done = shallow.answer("HEAD")
    assert done.code == 3
    assert "shallow" in done.error["message"]
    assert "--base" in done.error["hint"]
