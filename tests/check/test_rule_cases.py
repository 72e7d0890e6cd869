"""Every rule of the registry has a case that breaks it and a neighbour that keeps it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from patchgate.check.case import Governance
from patchgate.check.gate import ORDER
from patchgate.git.quoting import is_printable
from patchgate.report.json import finding_documents
from patchgate.report.rules import RULES, Level, Stage
from patchgate.report.verdict import Finding
from tests.check.gate_cases import HOSTILE_NAMES, added, agents, case, findings, modified, path, rules
from tests.check.rule_cases import (
    CASES,
    FAULT,
    KEY,
    ONLY_IN_PATCHES,
    RAISED_BY_PATCHES,
    WITHOUT_PATH,
    RuleCase,
)
from tests.components.component_rule_cases import CONTRACTS, DRIFT

NAMES = (b"name", *HOSTILE_NAMES)
every_rule = pytest.mark.parametrize("given", CASES, ids=lambda given: str(given.rule))


def of_rule(given: RuleCase, name: bytes = b"name") -> list[Finding]:
    """Give what the broken case says of its own rule."""
    return [finding for finding in given.broken(name) if finding.rule == given.rule]


def assert_safe(finding: Finding) -> None:
    """Nothing that a finding says can move a terminal's cursor or forge a line."""
    for text in (finding.message, finding.hint or ""):
        assert all(is_printable(character) for character in text), text


def test_no_rule_lacks_a_case_that_breaks_it_and_a_neighbour_that_keeps_it() -> None:
    covered = {given.rule for given in CASES}
    assert set(RULES) - RAISED_BY_PATCHES <= covered
    assert covered <= set(RULES)
    assert len(covered) == len(CASES)


@every_rule
def test_the_rule_is_raised_by_its_case_whatever_the_names_in_it(given: RuleCase) -> None:
    assert [name for name in NAMES if not of_rule(given, name)] == []


@every_rule
def test_the_neighbour_does_not_raise_the_rule(given: RuleCase) -> None:
    raising = [name for name in NAMES if given.rule in {finding.rule for finding in given.kept(name)}]
    assert raising == []


@every_rule
def test_the_finding_has_its_level_stage_code_hint_and_path(given: RuleCase) -> None:
    for finding in of_rule(given):
        assert finding.level is given.level
        assert finding.definition is RULES[given.rule]
        assert finding.definition.stage in Stage
        assert finding.definition.code == finding.definition.stage.code
        assert finding.message
        assert finding.hint
        (document,) = finding_documents([finding])
        assert isinstance(document, Mapping)
        assert isinstance(document["details"], Mapping)
        assert {"pattern", "limit", "actual"} <= document["details"].keys()
        assert finding.path is not None or given.rule in WITHOUT_PATH


@every_rule
def test_messages_and_hints_hold_no_control_characters(given: RuleCase) -> None:
    for name in NAMES:
        for finding in given.broken(name):
            assert_safe(finding)


def test_hostile_texts_of_a_config_are_shown_without_control_characters() -> None:
    hostile = "[policy]\nallow_roots = ['s\u202erc']\ndeny = ['*\u009b31m']\ndeny_suffixes = ['\u2028x']\n"
    hostile += '[content]\ndeny = ["\\u001b|X|\u202e"]\n'
    given = case(added("a\u009b31m"), added("b\u2028x"), added("c", "X"), toml=hostile)
    found = findings(given)
    assert {finding.rule for finding in found} == {
        "deny-pattern",
        "deny-suffix",
        "deny-content",
        "outside-allow-roots",
    }
    for finding in found:
        assert_safe(finding)


def test_a_very_long_name_makes_no_long_message() -> None:
    for finding in findings(case(added(b"\xff" * 5000))):
        assert len(finding.message) < 300


def test_each_gate_raises_only_rules_that_the_registry_gives_to_it() -> None:
    everything = agents(
        added("C:/.git/\n"),
        added("runs/x", KEY + b"\n" + b"TODO", size=99, lines=9),
        added("todo.py", "# TODO: x"),
        modified("patchgate.toml"),
        toml="policy = {deny_prefixes = ['runs'], max_file_bytes = 1, agent = {max_files = 0}}\n"
        "content.deny = ['TODO']",
    )
    seen: set[str] = set()
    for gate in ORDER:
        for finding in gate.examine(everything):
            assert finding.definition.gate == gate.name
            seen.add(gate.name)
    for name, cases in (("contracts", CONTRACTS), ("drift", DRIFT)):
        for broken, _ in cases.values():
            assert {finding.definition.gate for finding in broken(b"name")} == {name}
        seen.add(name)
    assert seen == {gate.name for gate in ORDER}


@pytest.mark.parametrize(
    "given", [given for given in CASES if RULES[given.rule].invariant], ids=lambda g: g.rule
)
def test_an_invariant_speaks_as_an_error(given: RuleCase) -> None:
    assert {finding.level for finding in of_rule(given)} == {Level.ERROR}


@pytest.mark.parametrize("rule", sorted(ONLY_IN_PATCHES))
def test_what_only_patches_can_break_is_covered_through_text(rule: str) -> None:
    (given,) = (each for each in CASES if each.rule == rule)
    assert of_rule(given)


def test_colons_and_backslashes_are_names_like_others_in_a_commit() -> None:
    assert rules(case(added("ab:c"), added("c\\d"))) == []
    assert rules(agents(added("ab:c"), added("c\\d"), from_text=True)) == ["path-backslash", "path-colon"]


def test_a_control_file_with_a_hostile_name_is_named_safely() -> None:
    name = b".patchgate/a\x1b[2J"
    facts = Governance(frozenset({path(name)}), removed=True, proposed_faults=(FAULT,), repaired=True)
    found = findings(case(modified(name), modified("b\n"), governance=facts))
    assert len(found) >= 4
    for finding in found:
        assert_safe(finding)
