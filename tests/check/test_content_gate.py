"""What added lines may not hold, and how a line allows it with a reason (sections 5 and 8)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchgate.check.case import Governance
from patchgate.git.model import EXECUTABLE, SYMLINK, Entry, Line
from patchgate.report.rules import RULES, Level
from patchgate.report.verdict import Fixer, Outcome, Verdict
from tests.check.gate_cases import (
    added,
    agents,
    binary,
    case,
    chmod,
    deleted,
    findings,
    gitlink,
    modified,
    moved,
    oid,
    only,
    outcome,
    path,
    rules,
    symlink,
    verdict,
)
from tests.check.rule_cases import KEY, MARKER

TODO = 'content.deny = ["TODO"]'
# In pieces, so that no line of this file allows anything.
ALLOW = b"patchgate: " + b"allow "


# ---- what is looked at ------------------------------------------------------------------------------------


def test_a_finding_names_the_line_and_keeps_it_for_the_renderer() -> None:
    finding = only(case(modified("src/a.py", b"one\n" + KEY)))
    assert (finding.rule, finding.path, finding.line) == ("secret", path("src/a.py"), 2)
    assert finding.excerpt == KEY
    assert finding.who_can_fix is Fixer.PERSON
    assert "private key" in finding.message
    assert KEY.decode() not in finding.message


def test_one_line_can_break_all_three_rules() -> None:
    text = MARKER + b" " + KEY + b" TODO"
    assert rules(case(added("a", text), toml=TODO)) == ["conflict-marker", "deny-content", "secret"]


def test_the_first_expression_that_matches_is_named() -> None:
    finding = only(case(added("a", "x TODO FIXME"), toml='content.deny = ["NEVER", "FIXME", "TODO"]'))
    assert finding.details["pattern"] == "FIXME"
    assert finding.details["key"] == "content.deny[1]"
    assert "content.deny[1] (FIXME)" in finding.message


def test_each_rule_can_be_switched_off_in_the_config() -> None:
    given = (added("a", KEY), added("b", MARKER))
    assert rules(case(*given, toml="content.secrets = false")) == ["conflict-marker"]
    assert rules(case(*given, toml="content.conflict_markers = false")) == ["secret"]


def test_without_content_rules_the_gate_does_not_apply() -> None:
    given = case(added("a", KEY), toml="content = {secrets = false, conflict_markers = false}")
    assert outcome(given, "content").outcome is Outcome.NOT_APPLICABLE


def test_with_content_rules_a_clean_change_passes() -> None:
    assert outcome(case(added("a", "fine")), "content").outcome is Outcome.PASS


def test_control_files_are_exempt() -> None:
    assert rules(case(modified("patchgate.toml", "deny = TODO"), toml=TODO)) == []
    assert rules(case(modified(".patchgate/notes", KEY))) == []
    hooks = ".pre-commit-config.yaml"
    assert rules(case(modified(hooks, KEY))) == ["secret"]
    assert rules(case(modified(hooks, KEY), governance=Governance(frozenset({path(hooks)})))) == []


def test_baselines_are_not_exempt() -> None:
    assert rules(case(modified(".patchgate/baselines/core.json", KEY))) == ["secret"]


@pytest.mark.parametrize(
    "file",
    [
        replace(deleted("a"), watched=(Line(1, KEY),)),
        replace(symlink("a", b"b"), watched=(Line(1, KEY),)),
        replace(gitlink("a", gitlink("a").new), watched=(Line(1, KEY),)),
        replace(chmod("a", EXECUTABLE), watched=(Line(1, KEY),)),
    ],
    ids=["deletion", "symlink", "gitlink", "mode"],
)
def test_only_new_text_of_regular_files_is_judged(file: object) -> None:
    assert rules(case(file)) == []  # type: ignore[arg-type]


def test_a_file_in_the_place_of_a_symlink_is_judged() -> None:
    assert rules(case(added("a", KEY, old=Entry(SYMLINK, oid("b"))))) == ["secret"]


def test_a_file_that_is_moved_as_it_is_brings_no_new_lines() -> None:
    old, new = moved("a", "b")
    assert rules(case((old, replace(new, watched=(Line(1, KEY),))))) == []
    assert rules(case((old, replace(new, added_lines=None)))) == []


def test_a_file_that_is_copied_brings_its_lines() -> None:
    _, new = moved("a", "b")
    assert rules(case(replace(new, watched=(Line(1, KEY),)))) == ["secret"]


def test_text_that_was_not_read_leaves_the_verdict_undecided() -> None:
    given = case(replace(added("a\x1b"), added_lines=None), toml='policy.commit.max_added_lines = "off"')
    ended = outcome(case(replace(added("src/a.py"), added_lines=None)), "content")
    assert ended.outcome is Outcome.UNDECIDED
    assert "src/a.py" in str(ended.reason)
    assert "\x1b" not in str(outcome(given, "content").reason)
    assert verdict(case(replace(added("a"), added_lines=None))).verdict is Verdict.UNDECIDED


def test_binary_files_and_exempt_ones_need_not_be_read() -> None:
    control = replace(modified("patchgate.toml"), added_lines=None)
    given = case(binary("a.bin"), control, toml='policy.commit.max_added_lines = "off"', governance=None)
    assert outcome(given, "content").outcome is Outcome.PASS


def test_content_rules_have_levels() -> None:
    assert only(case(added("a", KEY), toml='rules.secret = "warning"')).level is Level.WARNING
    assert rules(case(added("a", KEY), toml='rules.secret = "off"')) == []


# ---- inline suppression -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "text"),
    [("secret", KEY), ("conflict-marker", MARKER), ("deny-content", b"TODO")],
)
def test_a_line_can_allow_a_content_rule_with_a_reason_and_the_verdict_shows_it(
    rule: str, text: bytes
) -> None:
    given = case(added("a", text + b" # " + ALLOW + rule.encode() + b" a test vector"), toml=TODO)
    finding = only(given)
    assert (finding.rule, finding.level) == (rule, Level.NOTE)
    assert finding.details["suppressed"] == "a test vector"
    assert finding.message.endswith("; allowed on the line")
    assert finding.hint is None
    assert verdict(given).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize("reason", [b"", b" ", b" \t ", b" */", b" -->", b" ...", b": because"])
def test_without_a_reason_nothing_is_allowed_and_the_hint_says_so(reason: bytes) -> None:
    finding = only(case(added("a", b"TODO " + ALLOW + b"deny-content" + reason), toml=TODO))
    assert finding.level is Level.ERROR
    assert str(finding.hint).endswith("patchgate: " + "allow deny-content REASON")


@pytest.mark.parametrize("reason", ["weil es ein Test ist", "причина", "理由", "#42"])
def test_a_reason_may_be_in_any_language(reason: str) -> None:
    text = b"TODO " + ALLOW + b"deny-content " + reason.encode() + b"\r"
    assert only(case(added("a", text), toml=TODO)).details["suppressed"] == reason


def test_allowing_one_rule_allows_no_other() -> None:
    text = KEY + b" TODO " + ALLOW + b"secret a test vector"
    found = {finding.rule: finding.level for finding in findings(case(added("a", text), toml=TODO))}
    assert found == {"secret": Level.NOTE, "deny-content": Level.ERROR}
    other = KEY + b" " + ALLOW + b"secrets a test vector"
    assert only(case(added("a", other))).level is Level.ERROR


def test_a_line_allows_only_itself() -> None:
    text = ALLOW + b"deny-content a reason\nTODO"
    assert only(case(added("a", text), toml=TODO)).level is Level.ERROR


def test_agents_cannot_allow_anything_on_the_line() -> None:
    toml = f'{TODO}\nplaceholders.level = "off"'
    finding = only(agents(added("a", b"TODO " + ALLOW + b"deny-content a reason"), toml=toml))
    assert finding.level is Level.ERROR
    assert "suppressed" not in finding.details


@pytest.mark.parametrize("rule", ["deny-prefix", "max-added-lines", "path-control"])
def test_only_content_rules_can_be_allowed_on_a_line(rule: str) -> None:
    assert not RULES[rule].inline
    text = ALLOW + rule.encode() + b" a reason\nsecond line"
    toml = 'policy = {deny_prefixes = ["runs"], commit = {max_added_lines = 1}}'
    given = case(added("runs/a\n", text), toml=toml)
    assert rules(given) == ["deny-prefix", "max-added-lines", "path-control"]
    assert all("suppressed" not in finding.details for finding in findings(given))


def test_a_rule_that_is_off_says_nothing_of_what_a_line_allows() -> None:
    text = b"TODO " + ALLOW + b"deny-content a reason"
    assert rules(case(added("a", text), toml=f'{TODO}\nrules.deny-content = "off"')) == []


def test_a_suppressed_finding_stays_a_note_whatever_the_level() -> None:
    text = b"TODO " + ALLOW + b"deny-content a reason"
    assert only(case(added("a", text), toml=f'{TODO}\nrules.deny-content = "error"')).level is Level.NOTE
