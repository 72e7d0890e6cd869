"""Which placeholders of a change are new, how loud they are, and how a line allows one with a reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.check.case import Case, Governance
from patchgate.git.model import EXECUTABLE, SYMLINK, Entry, FileChange, Line
from patchgate.placeholders.placeholder_gate import AddedPlaceholder, PlaceholderFacts
from patchgate.placeholders.placeholder_matches import Match
from patchgate.policy.policy import Profile
from patchgate.report.rules import RULES, Level
from patchgate.report.rules.scope import PLACEHOLDER_RULES
from patchgate.report.verdict import Outcome, Verdict
from tests.check.gate_cases import (
    added,
    agents,
    binary,
    case,
    chmod,
    deleted,
    findings,
    modified,
    moved,
    oid,
    only,
    outcome,
    path,
    policy,
    rules,
    symlink,
    verdict,
)

TODO = "# TODO: read the file"
LOUD = 'placeholders.level = "error"'
# In pieces, so that no line of this file allows anything.
ALLOW = "patchgate: " + "allow "


def marked(*keys: bytes, rule: str = "placeholder-word") -> tuple[AddedPlaceholder, ...]:
    """Make placeholders on the lines from 1, each with its key."""
    return tuple(
        AddedPlaceholder(Match(number, rule, "todo", key), Line(number, b"# " + key))
        for number, key in enumerate(keys, start=1)
    )


def told(
    files: dict[str, tuple[AddedPlaceholder, ...]], gained: dict[bytes, int]
) -> list[tuple[str, int | None]]:
    """Judge files with these placeholders; give path and line of what is told."""
    facts = PlaceholderFacts({path(name): found for name, found in files.items()}, gained)
    given = agents_with(facts, *[added(name) for name in files])
    return [(str(each.path), each.line) for each in findings(given) if each.rule == "placeholder-word"]


def agents_with(facts: PlaceholderFacts, *files: FileChange) -> Case:
    return case(*files, profile=Profile.AGENT, placeholders=facts)


# ---- levels -----------------------------------------------------------------------------------------------


def test_agents_are_warned_and_people_hear_nothing_by_default() -> None:
    finding = only(agents(added("a.py", TODO)))
    assert (finding.rule, finding.level, finding.line) == ("placeholder-word", Level.WARNING, 1)
    assert finding.definition.code == "PLACEHOLDER_FOUND"
    given = case(added("a.py", TODO))
    assert outcome(given, "placeholders").outcome is Outcome.NOT_APPLICABLE
    assert rules(given) == []
    assert verdict(agents(added("a.py", TODO))).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize("level", ["error", "warning", "note"])
def test_the_level_of_the_table_is_that_of_both_profiles(level: str) -> None:
    toml = f'placeholders.level = "{level}"'
    for make in (agents, case):
        judged = make(added("a.py", TODO), toml=toml)
        assert only(judged).level is Level(level)
        failed = outcome(judged, "placeholders").outcome is Outcome.FAIL
        assert failed == (level == "error")


def test_a_level_in_the_table_of_rules_speaks_first() -> None:
    toml = 'placeholders.level = "off"\nrules.placeholder-word = "error"'
    lines = added("a.md", "- TODO\nOwner: [TBD]")
    assert [(each.rule, each.level) for each in findings(agents(lines, toml=toml))] == [
        ("placeholder-word", Level.ERROR)
    ]
    assert rules(case(lines, toml='rules.placeholder-bracket = "note"')) == ["placeholder-bracket"]


def test_the_gate_applies_only_where_some_rule_speaks() -> None:
    silent = "\n".join(f'rules.{rule.id} = "off"' for rule in PLACEHOLDER_RULES)
    for toml in ('placeholders.level = "off"', silent):
        judged = policy(toml)
        assert not judged.judges_placeholders(Profile.AGENT)
        given = agents(added("a.py", TODO), toml=toml)
        assert outcome(given, "placeholders").outcome is Outcome.NOT_APPLICABLE
    assert policy().judges_placeholders(Profile.AGENT)
    assert not policy().judges_placeholders(Profile.COMMIT)
    assert policy('rules.placeholder-body = "note"').judges_placeholders(Profile.COMMIT)


def test_lines_are_read_where_a_placeholder_rule_speaks() -> None:
    quiet = (
        "content = {secrets = false, conflict_markers = false}\n"
        'policy.commit = {max_added_lines = "off", deny_classes = []}\n'
    )
    assert not policy(quiet).needs_lines(Profile.COMMIT)
    assert policy(quiet + LOUD).needs_lines(Profile.COMMIT)


def test_a_refusal_by_placeholders_alone_has_their_code() -> None:
    given = verdict(agents(added("a.py", TODO), toml=LOUD))
    assert given.verdict is Verdict.REJECTED
    assert given.decisive is not None
    assert given.decisive.definition.code == "PLACEHOLDER_FOUND"


# ---- what is looked at ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "file",
    [
        replace(deleted("a.py"), watched=(Line(1, TODO.encode()),)),
        replace(symlink("a.py", b"b"), watched=(Line(1, TODO.encode()),)),
        replace(chmod("a.py", EXECUTABLE), watched=(Line(1, TODO.encode()),)),
    ],
    ids=["deletion", "symlink", "mode"],
)
def test_only_new_text_of_regular_files_is_judged(file: FileChange) -> None:
    assert "placeholder-word" not in rules(agents(file))


def test_a_file_in_the_place_of_a_symlink_is_judged() -> None:
    assert rules(agents(added("a.py", TODO, old=Entry(SYMLINK, oid("b"))))) == ["placeholder-word"]


def test_control_files_are_exempt_and_their_baselines_are_not() -> None:
    assert rules(agents(modified("patchgate.toml", TODO))) == ["agent-settings"]
    assert rules(agents(modified(".patchgate/baselines/core.json", TODO))) == ["placeholder-word"]
    hooks = ".pre-commit-config.yaml"
    alone = Governance(frozenset({path(hooks)}))
    assert rules(case(modified(hooks, TODO), toml=LOUD)) == ["placeholder-word"]
    assert rules(case(modified(hooks, TODO), toml=LOUD, governance=alone)) == []


def test_a_file_that_is_moved_as_it_is_brings_nothing_new_and_a_copy_does() -> None:
    old, new = moved("a.py", "b.py")
    new = replace(new, watched=(Line(1, TODO.encode()),))
    assert rules(agents((old, new))) == []
    assert rules(agents(new)) == ["placeholder-word"]


def test_what_was_suspected_and_not_read_leaves_the_verdict_undecided() -> None:
    nothing = PlaceholderFacts()
    for file in (added("a\x1b.py", TODO), replace(added("a\x1b.py"), added_lines=None)):
        ended = outcome(agents_with(nothing, file), "placeholders")
        assert ended.outcome is Outcome.UNDECIDED
        assert "\x1b" not in str(ended.reason)
    assert outcome(agents_with(nothing, added("a.py", "x = 1")), "placeholders").outcome is Outcome.PASS
    broken = PlaceholderFacts(fault="object 9af3 is missing; fetch it")
    ended = outcome(agents_with(broken, added("a.py")), "placeholders")
    assert (ended.outcome, ended.reason) == (Outcome.UNDECIDED, "object 9af3 is missing; fetch it")
    assert verdict(agents_with(broken, added("a.py"))).verdict is Verdict.UNDECIDED


def test_a_binary_file_has_nothing_to_say() -> None:
    given = agents(binary("a.bin"), toml="policy.agent.deny_classes = []")
    assert outcome(given, "placeholders").outcome is Outcome.PASS


def test_a_marker_of_the_policy_names_its_key() -> None:
    """C4: the markers are data of the policy."""
    toml = 'claims.markers = [{name = "ticket", pattern = "ABC-0{4}", example = "ABC-0000"}]'
    finding = only(agents(added("a.md", "see ABC-0000"), toml=toml))
    assert (finding.rule, finding.details["pattern"]) == ("placeholder-marker", "ABC-0{4}")
    assert finding.details["key"] == "claims.markers[0]"
    assert finding.details["marker"] == "ticket"


@pytest.mark.parametrize("rule", [rule.id for rule in PLACEHOLDER_RULES])
def test_the_hint_is_the_next_step_of_the_rule(rule: str) -> None:
    facts = PlaceholderFacts({path("a.py"): marked(b"x", rule=rule)}, {b"x": 1})
    finding = only(agents_with(facts, added("a.py")))
    assert finding.hint is not None
    assert finding.hint == RULES[rule].hint


def test_a_body_that_is_not_whole_is_told_as_such() -> None:
    text = 'def f(x):\n    if x:\n        raise NotImplementedError("x")\n    return x'
    message = only(agents(added("a.py", text))).message
    assert "unfinished" in message
    assert message.endswith(" a.py (not-implemented)")


def test_a_function_whose_header_is_added_and_whose_text_was_not_read_is_undecided() -> None:
    nothing = PlaceholderFacts()
    assert (
        outcome(agents_with(nothing, added("a.py", "def f():")), "placeholders").outcome is Outcome.UNDECIDED
    )
    assert outcome(agents_with(nothing, added("a.md", "def f():")), "placeholders").outcome is Outcome.PASS


# ---- moved is not new -------------------------------------------------------------------------------------


def test_as_many_are_told_as_the_change_has_more_than_before() -> None:
    here, there = marked(b"x", b"y", b"x"), marked(b"x")
    files = {"a.py": here, "b.py": there}
    assert told(files, {b"x": 3, b"y": 1}) == [("a.py", 1), ("a.py", 2), ("a.py", 3), ("b.py", 1)]
    assert told(files, {b"x": 1, b"y": 0}) == [("b.py", 1)]
    assert told(files, {b"x": 0, b"y": -1}) == []


def test_what_control_files_hold_takes_no_place_of_what_is_told() -> None:
    files = {"a.py": marked(b"x"), "patchgate.toml": marked(b"x")}
    assert told(files, {b"x": 2}) == [("a.py", 1)]


KEYS = st.sampled_from([b"x", b"y", b"z"])


@given(st.lists(st.tuples(st.sampled_from(["a.py", "b.py", "c.py"]), KEYS), max_size=12), st.data())
def test_of_each_key_no_more_and_no_less_is_told_than_was_gained(
    places: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    files = {
        name: marked(*[key for place, key in places if place == name]) for name in ("a.py", "b.py", "c.py")
    }
    held = Counter(key for _, key in places)
    gained = {key: data.draw(st.integers(-1, count)) for key, count in held.items()}
    keys = [files[name][line - 1].match.key for name, line in told(files, gained) if line]
    assert Counter(keys) == Counter({key: count for key, count in gained.items() if count > 0})


# ---- inline suppression -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("placeholder-word", "# TODO: read it"),
        ("placeholder-bracket", "Owner: [TBD]"),
        ("placeholder-hole", "Dear <your name>,"),
        ("placeholder-filler", "lorem ipsum"),
    ],
)
def test_a_line_can_allow_a_placeholder_with_a_reason_and_the_verdict_shows_it(rule: str, text: str) -> None:
    assert RULES[rule].inline
    given = case(added("a.md", f"{text} # {ALLOW}{rule} waits for the release"), toml=LOUD)
    finding = only(given)
    assert (finding.rule, finding.level) == (rule, Level.NOTE)
    assert finding.details["suppressed"] == "waits for the release"
    assert verdict(given).verdict is Verdict.ACCEPTED


def test_without_a_reason_nothing_is_allowed_and_agents_allow_nothing() -> None:
    bare = only(case(added("a.py", f"{TODO} {ALLOW}placeholder-word"), toml=LOUD))
    assert bare.level is Level.ERROR
    assert str(bare.hint).endswith("patchgate: " + "allow placeholder-word REASON")
    finding = only(agents(added("a.py", f"{TODO} {ALLOW}placeholder-word because"), toml=LOUD))
    assert finding.level is Level.ERROR
    assert "suppressed" not in finding.details


def test_people_are_told_how_a_line_allows_it_and_agents_are_not() -> None:
    people, machines = (only(make(added("a.py", TODO), toml=LOUD)) for make in (case, agents))
    assert ALLOW + "placeholder-word REASON" in str(people.hint)
    assert "patchgate:" not in str(machines.hint)
