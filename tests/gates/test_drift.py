"""The drift gate on states of one component: each row of what can differ, at its level, and not more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from patchgate.change.path import RepoPath
from patchgate.change.quoting import is_printable
from patchgate.declared.baseline import BaselineFault
from patchgate.declared.component import Role
from patchgate.errors import UndecidedError
from patchgate.gates import drift
from patchgate.gates.component_case import ComponentsNear, ComponentState
from patchgate.gates.drift_comparison import compare
from patchgate.verdict.rules import RULES, Level
from patchgate.verdict.rules.drift import DRIFT_RULES
from tests.gates.drift_cases import (
    CODE,
    CONTRACT,
    DRIFT_CASES,
    PLACE,
    TESTS,
    TREE,
    TWO_TESTS,
    DriftCase,
    baseline,
    capture,
    contract,
    entries,
    state,
    told,
)
from tests.gates.gate_cases import HOSTILE_NAMES, case

ERROR, WARNING, NOTE = Level.ERROR, Level.WARNING, Level.NOTE
OTHER_TESTS = TWO_TESTS.replace(b"assert c", b"assert d")
ONE_TEST = TWO_TESTS[: TWO_TESTS.index(b"def test_b")]
FEWER = TWO_TESTS.replace(b"    assert b\n", b"")
TABLE: list[tuple[str, ComponentState, list[tuple[str, Level, bytes]]]] = [
    ("nothing", state(TREE), []),
    ("code", state({**TREE, CODE: b"other"}), [("drift-implementation", WARNING, CODE)]),
    ("code's mode", state(TREE, executable=[CODE]), [("drift-implementation", WARNING, CODE)]),
    ("a new file", state({**TREE, b"s/n": b""}), [("drift-implementation", WARNING, b"s/n")]),
    ("tests", state({**TREE, TESTS: OTHER_TESTS}), [("drift-tests", WARNING, TESTS)]),
    (
        "code and tests",
        state({**TREE, TESTS: OTHER_TESTS, CODE: b"other"}),
        [("drift-implementation", WARNING, CODE)],
    ),
    (
        "contract",
        state({**TREE, CONTRACT: contract("1.1.0")}),
        [("drift-contract-without-tests", ERROR, CONTRACT)],
    ),
    (
        "contract without a version",
        state({**TREE, CONTRACT: contract(about="x")}),
        [("drift-contract-without-tests", ERROR, CONTRACT), ("drift-version", WARNING, CONTRACT)],
    ),
    (
        "contract and code",
        state({**TREE, CONTRACT: contract("1.1.0"), CODE: b"other"}),
        [("drift-contract-without-tests", ERROR, CONTRACT)],
    ),
    ("contract, tests", state({**TREE, CONTRACT: contract("1.0.1"), TESTS: OTHER_TESTS}), []),
    (
        "a lower version",
        state({**TREE, CONTRACT: contract("1.0.0-rc.1"), TESTS: OTHER_TESTS}),
        [("drift-version", WARNING, CONTRACT)],
    ),
    (
        "contract that cannot be read",
        state({**TREE, CONTRACT: b"{", TESTS: OTHER_TESTS}),
        [],
    ),
    (
        "all",
        state({CONTRACT: contract("2"), TESTS: OTHER_TESTS, CODE: b"other"}),
        [("drift-all", NOTE, CONTRACT)],
    ),
    (
        "all without a version",
        state({CONTRACT: contract(about="x"), TESTS: OTHER_TESTS, CODE: b"other"}),
        [("drift-version", WARNING, CONTRACT), ("drift-all", NOTE, CONTRACT)],
    ),
    (
        "moved code",
        state({CONTRACT: contract(), TESTS: TWO_TESTS, b"s/x": b"code"}),
        [("drift-moved", NOTE, b"s/x")],
    ),
    (
        "moved tests do not excuse a contract",
        state({CONTRACT: contract("2"), b"t/x.py": TWO_TESTS, CODE: b"code"}),
        [("drift-contract-without-tests", ERROR, CONTRACT), ("drift-moved", NOTE, b"t/x.py")],
    ),
    (
        "code became a test",
        state({CONTRACT: contract(), TESTS: TWO_TESTS, b"t/x": b"code"}),
        [("drift-missing", ERROR, CODE)],
    ),
    ("code gone", state({CONTRACT: contract(), TESTS: TWO_TESTS}), [("drift-missing", ERROR, CODE)]),
    ("contract gone", state({TESTS: TWO_TESTS, CODE: b"code"}), [("drift-missing", ERROR, CONTRACT)]),
    ("tests gone", state({CONTRACT: contract(), CODE: b"code"}), [("drift-tests-weakened", ERROR, TESTS)]),
    (
        "tests gone, contract changed",
        state({CONTRACT: contract("2"), CODE: b"code"}),
        [("drift-tests-weakened", WARNING, TESTS)],
    ),
    (
        "a function gone",
        state({**TREE, TESTS: ONE_TEST}),
        [("drift-tests-weakened", ERROR, TESTS), ("drift-tests", WARNING, TESTS)],
    ),
    (
        "a function gone, contract changed",
        state({**TREE, TESTS: ONE_TEST, CONTRACT: contract("2")}),
        [("drift-tests-weakened", WARNING, TESTS)],
    ),
    (
        "fewer assertions",
        state({**TREE, TESTS: FEWER}),
        [("drift-tests-weakened", WARNING, TESTS), ("drift-tests", WARNING, TESTS)],
    ),
    (
        "tests that became a symlink",
        state({**TREE, TESTS: b"->x"}),
        [("drift-tests-weakened", ERROR, TESTS), ("drift-tests", WARNING, TESTS)],
    ),
    ("no baseline", state(TREE, None, None), [("no-baseline", NOTE, PLACE)]),
    ("nothing at all", state({}, None, None), []),
    ("deleted", state(TREE, None, TREE, [PLACE]), [("baseline-tampered", ERROR, PLACE)]),
    ("deleted with all", state({}, None, TREE, [PLACE, *TREE]), []),
    ("a recapture alone", state(TREE, TREE, {**TREE, CODE: b"old"}, [PLACE]), []),
    ("a first capture", state(TREE, TREE, None, [PLACE]), []),
    (
        "a recapture with code",
        state({**TREE, CODE: b"x"}, {**TREE, CODE: b"x"}, TREE, [PLACE, CODE]),
        [],
    ),
    (
        "a recapture that launders a contract",
        state(
            {**TREE, CONTRACT: contract() + b" "},
            {**TREE, CONTRACT: contract() + b" "},
            TREE,
            [PLACE, CONTRACT],
        ),
        [("drift-contract-without-tests", ERROR, CONTRACT), ("drift-version", WARNING, CONTRACT)],
    ),
    (
        "a recapture of a contract that changed before",
        state({**TREE, CONTRACT: contract("2")}, {**TREE, CONTRACT: contract("2")}, TREE, [PLACE]),
        [],
    ),
    (
        "a recapture that launders tests",
        state({**TREE, TESTS: ONE_TEST}, {**TREE, TESTS: ONE_TEST}, TREE, [PLACE, TESTS]),
        [("drift-tests-weakened", ERROR, TESTS)],
    ),
    (
        "a recapture of tests that were weakened before",
        state({**TREE, TESTS: ONE_TEST}, {**TREE, TESTS: ONE_TEST}, TREE, [PLACE]),
        [],
    ),
    (
        "a recapture with one test, after another was weakened",
        state(
            {**TREE, TESTS: ONE_TEST, b"t/n.py": b"x"},
            {**TREE, TESTS: ONE_TEST, b"t/n.py": b"x"},
            TREE,
            [PLACE, b"t/n.py"],
        ),
        [],
    ),
    (
        "a baseline of other files",
        state({**TREE, CODE: b"x"}, TREE, TREE, [PLACE, CODE]),
        [("baseline-tampered", ERROR, PLACE), ("drift-implementation", WARNING, CODE)],
    ),
    (
        "a baseline in another layout",
        state(TREE, capture(TREE) + b"\n", TREE, [PLACE]),
        [("baseline-tampered", ERROR, PLACE)],
    ),
    (
        "a baseline that forgets the tests and is brought with what it forgets",
        state({**TREE, TESTS: ONE_TEST}, {CONTRACT: contract(), CODE: b"code"}, TREE, [PLACE, TESTS]),
        [
            ("baseline-tampered", ERROR, PLACE),
            ("drift-tests-weakened", ERROR, TESTS),
            ("drift-tests", WARNING, TESTS),
        ],
    ),
    ("an unreadable baseline", state(TREE, b"{\n\n"), [("baseline-invalid", ERROR, PLACE)]),
    (
        "an unreadable baseline that is brought",
        state(TREE, b"{", TREE, [PLACE]),
        [("baseline-invalid", ERROR, PLACE), ("baseline-tampered", ERROR, PLACE)],
    ),
    (
        "an unreadable baseline is mended",
        state(
            {**TREE, TESTS: ONE_TEST}, {**TREE, TESTS: ONE_TEST}, BaselineFault("x", 1, "y"), [PLACE, TESTS]
        ),
        [],
    ),
]


@pytest.mark.parametrize(("given", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_each_way_to_differ_is_told_at_its_level(
    given: ComponentState, expected: list[tuple[str, Level, bytes]]
) -> None:
    assert told(given) == expected


@pytest.mark.parametrize("name", [b"name", *HOSTILE_NAMES], ids=ascii)
@pytest.mark.parametrize("given", DRIFT_CASES, ids=lambda given: str(given.rule))
def test_each_rule_has_a_case_and_a_neighbour_whatever_the_names_in_it(given: DriftCase, name: bytes) -> None:
    raised = [each for each in given.broken(name) if each.rule == given.rule]
    assert raised
    for each in raised:
        assert each.level is given.level
        assert each.hint
        assert {"pattern", "limit", "actual"} <= set(each.details)
        assert all(is_printable(character) for character in each.message + each.hint)
    assert given.rule not in {each.rule for each in given.kept(name)}


def test_every_rule_of_the_gate_has_a_case() -> None:
    assert {given.rule for given in DRIFT_CASES} == {rule.id for rule in DRIFT_RULES} <= set(RULES)
    assert [rule.id for rule in DRIFT_RULES if rule.invariant] == ["baseline-tampered"]


def test_of_very_many_losses_the_first_are_told_and_a_number() -> None:
    many = {b"s/%04d" % index: b"%d" % index for index in range(500)}
    tests = {b"t/%04d.py" % index: TWO_TESTS for index in range(500)}
    found = list(drift.examine_state(state(TREE, {**TREE, **many, **tests})))
    assert len(found) == 20 + 20 + 1
    assert "(and 480 more files)" in found[19].message
    assert "480 more" in found[40].message
    assert {each.level for each in found} == {ERROR}
    moved = {b"s/moved/%04d" % index: b"%d" % index for index in range(500)}
    moves = list(drift.examine_state(state({**TREE, **moved}, {**TREE, **many})))
    assert [each.rule for each in moves] == ["drift-moved"] * 20
    assert "(and 480 more moves)" in moves[19].message


def test_a_loss_names_the_functions_and_the_line() -> None:
    found = next(iter(drift.examine_state(state({**TREE, TESTS: ONE_TEST}))))
    assert "test_b" in found.message
    (fewer, _) = drift.examine_state(state({**TREE, TESTS: b"\n" + FEWER}))
    assert (fewer.line, "1, not 2" in fewer.message) == (2, True)


def test_an_unreadable_baseline_is_told_with_its_line() -> None:
    text = capture(TREE).replace(b'    "s/', b'<<<<<<< HEAD\n    "s/', 1)
    (found,) = drift.examine_state(state(TREE, text))
    assert (found.rule, found.line) == ("baseline-invalid", 10)


def test_a_file_that_moved_keeps_its_name_where_several_are_alike() -> None:
    old = {CONTRACT: contract(), TESTS: TWO_TESTS, b"s/a/x": b"1", b"s/a/y": b"1"}
    new = {CONTRACT: contract(), TESTS: TWO_TESTS, b"s/b/y": b"1", b"s/z": b"1"}
    found = compare(entries(new), baseline(old))
    assert {new.raw: old.raw for new, old in found.moved.items()} == {b"s/b/y": b"s/a/y", b"s/z": b"s/a/x"}
    assert not found.differs(Role.IMPLEMENTATION)
    assert not found.is_equal


def test_the_gate_looks_at_the_components_near_and_says_what_could_not_be_read() -> None:
    assert list(drift.examine(case())) == []
    near = replace(case(), components=ComponentsNear((state({**TREE, CODE: b"x"}),)))
    assert [each.path for each in drift.examine(near)] == [RepoPath(CODE)]
    unread = replace(case(), components=ComponentsNear(faults={"drift": "an object is missing"}))
    with pytest.raises(UndecidedError, match="an object is missing"):
        list(drift.examine(unread))
