"""The drift gate on states of one component: each row of what can differ, at its level, and not more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from patchgate.components import drift
from patchgate.components.baseline_file import Baseline, BaselineFault
from patchgate.components.component_facts import ComponentFacts, ComponentState
from patchgate.components.drift_comparison import compare
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.policy.component import Role
from patchgate.report.rules import Level
from patchgate.report.rules.contracts import DRIFT_RULES
from tests.check.gate_cases import case
from tests.components.drift_cases import (
    CODE,
    CONTRACT,
    OTHER_TESTS,
    PLACE,
    TESTS,
    TREE,
    TWO_TESTS,
    baseline,
    capture,
    contract,
    entries,
    state,
    told,
    undeclared,
)

ERROR, WARNING, NOTE = Level.ERROR, Level.WARNING, Level.NOTE
ONE_TEST = TWO_TESTS[: TWO_TESTS.index(b"def test_b")]
FEWER = TWO_TESTS.replace(b"    assert b\n", b"")
NOT_TESTS = b"import a\n\n\ndef make():\n    return a\n"
SHELL, LEFT, LEFT_TESTS, OLD = b"t/check.sh", b"s/left.py", b"t/test_left.py", b"c/old.json"
PROMISES_MORE = {**TREE, CONTRACT: contract("2")}
PROMISED = contract("2", "More.")
PROMISED_WITH_TESTS = {**TREE, CONTRACT: PROMISED, TESTS: OTHER_TESTS}
ALL_DIFFER = ("drift-all", NOTE, CONTRACT)
WITHOUT_TESTS = ("drift-contract-without-tests", ERROR, CONTRACT)
VERSION = ("drift-version", WARNING, CONTRACT)
WEAKER, WEAKENED = ("drift-tests-weakened", ERROR, TESTS), ("drift-tests-weakened", WARNING, TESTS)
ALONE = ("drift-tests", WARNING, TESTS)
TAMPERED, MISSING = ("baseline-tampered", ERROR, PLACE), ("drift-missing", ERROR, CONTRACT)


def _moved_files(found: Baseline, old: bytes, new: bytes) -> Baseline:
    """Let a baseline name a file elsewhere."""
    names = {RepoPath(old): RepoPath(new)}
    return replace(found, files={names.get(path, path): each for path, each in found.files.items()})


CONTRACT_WAS_ELSEWHERE = _moved_files(baseline(TREE), CONTRACT, OLD)


def _reversed(document: bytes) -> bytes:
    return json.dumps(dict(reversed(json.loads(document).items()))).encode()


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
    ("contract, tests", state({**TREE, CONTRACT: contract("1.0.1"), TESTS: OTHER_TESTS}), [ALL_DIFFER]),
    (
        "a lower version",
        state({**TREE, CONTRACT: contract("1.0.0-rc.1"), TESTS: OTHER_TESTS}),
        [("drift-version", WARNING, CONTRACT)],
    ),
    (
        "contract that cannot be read",
        state({**TREE, CONTRACT: b"{", TESTS: OTHER_TESTS}),
        [ALL_DIFFER],
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
        state({CONTRACT: contract("2"), b"t/test_x.py": TWO_TESTS, CODE: b"code"}),
        [WITHOUT_TESTS, ("drift-moved", NOTE, b"t/test_x.py")],
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
        state({CONTRACT: PROMISED, CODE: b"code"}),
        [("drift-tests-weakened", WARNING, TESTS)],
    ),
    (
        "a function gone",
        state({**TREE, TESTS: ONE_TEST}),
        [("drift-tests-weakened", ERROR, TESTS), ("drift-tests", WARNING, TESTS)],
    ),
    (
        "a function gone, contract changed",
        state({**TREE, TESTS: ONE_TEST, CONTRACT: PROMISED}),
        [("drift-tests-weakened", WARNING, TESTS)],
    ),
    (
        "a function gone, only the version of the contract changed",
        state({**TREE, TESTS: ONE_TEST, CONTRACT: contract("2")}),
        [WEAKER],
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
    ("deleted", state(TREE, None, TREE, [PLACE]), [TAMPERED]),
    ("deleted with all", state({}, None, TREE, [PLACE, *TREE]), [TAMPERED]),
    (
        "deleted with nearly all",
        state({TESTS: TWO_TESTS}, None, TREE, [PLACE, *TREE]),
        [TAMPERED, MISSING, ("drift-missing", ERROR, CODE)],
    ),
    ("unreadable, and deleted", state(TREE, None, BaselineFault("x", 1, "y"), [PLACE]), [TAMPERED]),
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
            {**TREE, CONTRACT: contract(about="x")},
            {**TREE, CONTRACT: contract(about="x")},
            TREE,
            [PLACE, CONTRACT],
        ),
        [WITHOUT_TESTS, VERSION],
    ),
    (
        "a recapture of a contract in another layout",
        state(
            {**TREE, CONTRACT: contract() + b" "},
            {**TREE, CONTRACT: contract() + b" "},
            TREE,
            [PLACE, CONTRACT],
        ),
        [],
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
    # What the contract promises: not its mode, not its blanks.
    ("a contract's mode", state(TREE, executable=[CONTRACT]), [VERSION]),
    ("a contract's blanks", state({**TREE, CONTRACT: b"\n" + contract() + b"\n"}), [VERSION]),
    ("a contract's keys in another order", state({**TREE, CONTRACT: _reversed(contract())}), [VERSION]),
    (
        "a contract's mode does not excuse weaker tests",
        state({**TREE, TESTS: ONE_TEST}, executable=[CONTRACT]),
        [WEAKER, VERSION, ALONE],
    ),
    (
        "a contract's blanks do not excuse weaker tests",
        state({**TREE, TESTS: ONE_TEST, CONTRACT: contract() + b" "}),
        [WEAKER, VERSION, ALONE],
    ),
    (
        "nor do they with a recapture",
        state(
            {**TREE, TESTS: ONE_TEST, CONTRACT: contract() + b" "},
            {**TREE, TESTS: ONE_TEST, CONTRACT: contract() + b" "},
            TREE,
            [PLACE, TESTS, CONTRACT],
        ),
        [WEAKER],
    ),
    (
        "a contract that cannot be read excuses nothing",
        state({**TREE, TESTS: ONE_TEST, CONTRACT: b"{"}),
        [WEAKER],
    ),
    (
        "a contract that cannot be read is another",
        state({**TREE, CONTRACT: b"{"}),
        [WITHOUT_TESTS],
    ),
    (
        "true is not 1",
        state(
            {**TREE, CONTRACT: b'{"version": "1", "x": true}'},
            {**TREE, CONTRACT: b'{"version": "1", "x": 1}'},
        ),
        [WITHOUT_TESTS, VERSION],
    ),
    (
        "implementation and a contract's blanks",
        state({**TREE, CODE: b"x", CONTRACT: contract() + b" "}),
        [VERSION, ("drift-implementation", WARNING, CODE)],
    ),
    # Which tests count as changed along with a contract.
    ("tests' mode", state(PROMISES_MORE, executable=[TESTS]), [WITHOUT_TESTS]),
    ("a comment in tests", state({**PROMISES_MORE, TESTS: b"# x\n" + TWO_TESTS}), [WITHOUT_TESTS]),
    (
        "another indentation of tests",
        state({**PROMISES_MORE, TESTS: TWO_TESTS.replace(b"    ", b"\t")}),
        [WITHOUT_TESTS],
    ),
    (
        "a comment in tests, and all else",
        state({**PROMISES_MORE, TESTS: b"# x\n" + TWO_TESTS, CODE: b"x"}),
        [WITHOUT_TESTS],
    ),
    ("code outside of test functions", state({**PROMISES_MORE, TESTS: TWO_TESTS + b"x = 1\n"}), [ALL_DIFFER]),
    ("an empty file of tests", state({**PROMISES_MORE, b"t/x.py": b""}), [WITHOUT_TESTS]),
    ("a file of tests without any", state({**PROMISES_MORE, b"t/x.py": NOT_TESTS}), [WITHOUT_TESTS]),
    ("a file of tests", state({**PROMISES_MORE, b"t/x.py": OTHER_TESTS}), [ALL_DIFFER]),
    ("a blank test in a shell", state({**PROMISES_MORE, SHELL: b" \n"}), [WITHOUT_TESTS]),
    ("a test in a shell", state({**PROMISES_MORE, SHELL: b"exit 0\n"}), [ALL_DIFFER]),
    ("a link as a test", state({**PROMISES_MORE, SHELL: b"->x"}), [ALL_DIFFER]),
    (
        "tests that moved with a comment",
        state({CONTRACT: contract("2"), b"t/test_x.py": b"# x\n" + TWO_TESTS, CODE: b"code"}),
        [WITHOUT_TESTS],
    ),
    (
        "an empty file of tests is gone",
        state(PROMISES_MORE, {**TREE, b"t/__init__.py": b""}),
        [WITHOUT_TESTS, ("drift-tests-weakened", ERROR, b"t/__init__.py")],
    ),
    (
        "a recapture of a contract with a comment in tests",
        state(
            {**PROMISES_MORE, TESTS: b"# x\n" + TWO_TESTS},
            {**PROMISES_MORE, TESTS: b"# x\n" + TWO_TESTS},
            TREE,
            [PLACE, CONTRACT, TESTS],
        ),
        [WITHOUT_TESTS],
    ),
    # A contract excuses lost tests in the change that changes what it promises, and there alone.
    (
        "a function goes with its promise",
        state({**PROMISED_WITH_TESTS, TESTS: ONE_TEST}, changed=[CONTRACT, TESTS]),
        [WEAKENED],
    ),
    (
        "a function goes after its promise",
        state({**PROMISED_WITH_TESTS, TESTS: ONE_TEST}, changed=[TESTS], earlier=PROMISED_WITH_TESTS),
        [WEAKER],
    ),
    (
        "a function goes after its promise, beside a higher version",
        state(
            {CONTRACT: contract("3", "More."), TESTS: ONE_TEST, CODE: b"code"},
            changed=[CONTRACT, TESTS],
            earlier=PROMISED_WITH_TESTS,
        ),
        [WEAKER],
    ),
    (
        "a function goes after its promise, with a recapture",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
            TREE,
            [PLACE, TESTS],
            earlier=PROMISED_WITH_TESTS,
        ),
        [WEAKER],
    ),
    (
        "a function goes with its promise and a recapture",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
            TREE,
            [PLACE, CONTRACT, TESTS],
        ),
        [WEAKENED],
    ),
    (
        "a function that went before, and code",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST, CODE: b"x"},
            changed=[CODE],
            earlier={**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
        ),
        [WEAKENED, ALL_DIFFER],
    ),
    (
        "a function that went before, and another line in its file",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST + b"    assert z\n"},
            changed=[TESTS],
            earlier={**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
        ),
        [WEAKENED],
    ),
    (
        "a function that went before, and the rest of its file",
        state(
            {CONTRACT: PROMISED, CODE: b"code"},
            changed=[TESTS],
            earlier={**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
        ),
        [WEAKER],
    ),
    (
        "a function that was only skipped before",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
            changed=[TESTS],
            earlier={**PROMISED_WITH_TESTS, TESTS: TWO_TESTS.replace(b"def test_b", b"@skip\ndef test_b")},
        ),
        [WEAKER],
    ),
    (
        "a file in a shell that was empty before, and is gone now",
        state(
            PROMISED_WITH_TESTS,
            {**TREE, SHELL: b"exit 1\n"},
            changed=[SHELL],
            earlier={**PROMISED_WITH_TESTS, SHELL: b""},
        ),
        [("drift-tests-weakened", WARNING, SHELL)],
    ),
    (
        "a function that another file lost before",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST, LEFT_TESTS: TWO_TESTS},
            {**TREE, LEFT_TESTS: TWO_TESTS},
            changed=[TESTS, LEFT_TESTS],
            earlier={**PROMISED_WITH_TESTS, TESTS: TWO_TESTS, LEFT_TESTS: ONE_TEST},
        ),
        [WEAKER],
    ),
    (
        "a promise that goes back to the recorded one excuses nothing",
        state({**TREE, TESTS: ONE_TEST}, changed=[CONTRACT, TESTS], earlier=PROMISED_WITH_TESTS),
        [WEAKER, ALONE],
    ),
    (
        "a contract that could not be read before excuses nothing",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
            changed=[CONTRACT, TESTS],
            earlier={**TREE, CONTRACT: b"{"},
        ),
        [WEAKER],
    ),
    (
        "a merge after its promise",
        state(
            {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
            changed=[TESTS],
            earlier=PROMISED_WITH_TESTS,
            is_merge=True,
        ),
        [WEAKENED],
    ),
    # A contract that goes with a recapture.
    (
        "a recapture without the contract",
        state({TESTS: TWO_TESTS, CODE: b"code"}, {TESTS: TWO_TESTS, CODE: b"code"}, TREE, [PLACE, CONTRACT]),
        [MISSING],
    ),
    (
        "a recapture where the contract went before",
        state({TESTS: TWO_TESTS, CODE: b"code"}, {TESTS: TWO_TESTS, CODE: b"code"}, TREE, [PLACE]),
        [],
    ),
    (
        "a recapture without a file of the implementation",
        state({**TREE}, {**TREE}, {**TREE, b"s/more": b"more"}, [PLACE, b"s/more"]),
        [],
    ),
    # Names that nobody runs, and files that hold nothing.
    (
        "tests that move to a name that is no Python",
        state({CONTRACT: contract(), b"t/test_c.txt": TWO_TESTS, CODE: b"code"}),
        [WEAKER, ("drift-tests", WARNING, b"t/test_c.txt")],
    ),
    (
        "tests that move to a name that is no test's",
        state({CONTRACT: contract(), b"t/x.py": TWO_TESTS, CODE: b"code"}),
        [WEAKER, ("drift-tests", WARNING, b"t/x.py")],
    ),
    (
        "tests that move to the other name of tests",
        state({CONTRACT: contract(), b"t/c_test.py": TWO_TESTS, CODE: b"code"}),
        [("drift-moved", NOTE, b"t/c_test.py")],
    ),
    (
        "tests in a shell that move",
        state({**TREE, b"t/new.sh": b"exit 1\n"}, {**TREE, SHELL: b"exit 1\n"}),
        [("drift-moved", NOTE, b"t/new.sh")],
    ),
    (
        "code that moves to any name",
        state({CONTRACT: contract(), TESTS: TWO_TESTS, b"s/test_x.txt": b"code"}),
        [("drift-moved", NOTE, b"s/test_x.txt")],
    ),
    (
        "tests in a shell, emptied",
        state({**TREE, SHELL: b"\n"}, {**TREE, SHELL: b"exit 1\n"}),
        [("drift-tests-weakened", ERROR, SHELL), ("drift-tests", WARNING, SHELL)],
    ),
    (
        "tests in a shell, emptied with a recapture",
        state({**TREE, SHELL: b""}, {**TREE, SHELL: b""}, {**TREE, SHELL: b"exit 1\n"}, [PLACE, SHELL]),
        [("drift-tests-weakened", ERROR, SHELL)],
    ),
    ("tests, emptied", state({**TREE, TESTS: b""}), [WEAKER, ALONE]),
    (
        "an empty file that stays so",
        state({**TREE, b"t/__init__.py": b"\n"}, {**TREE, b"t/__init__.py": b""}),
        [("drift-tests", WARNING, b"t/__init__.py")],
    ),
    (
        "tests, emptied into another file",
        state({**TREE, TESTS: b"", b"t/test_d.py": TWO_TESTS}),
        [ALONE],
    ),
    # Merges bring what their other side did.
    (
        "a merge with a recapture of weaker tests",
        state({**TREE, TESTS: ONE_TEST}, {**TREE, TESTS: ONE_TEST}, TREE, [PLACE], is_merge=True),
        [WEAKER],
    ),
    (
        "a merge with a recapture of a contract",
        state(PROMISES_MORE, PROMISES_MORE, TREE, [PLACE], is_merge=True),
        [WITHOUT_TESTS],
    ),
    (
        "a merge with a recapture without the contract",
        state(
            {TESTS: TWO_TESTS, CODE: b"code"}, {TESTS: TWO_TESTS, CODE: b"code"}, TREE, [PLACE], is_merge=True
        ),
        [MISSING],
    ),
    (
        "a merge with a recapture of code",
        state({**TREE, CODE: b"x"}, {**TREE, CODE: b"x"}, TREE, [PLACE], is_merge=True),
        [],
    ),
    # What is still there and the declaration leaves out is not gone.
    (
        "implementation that is left out",
        state(TREE, {**TREE, LEFT: b"more"}, unclaimed=[LEFT]),
        [("drift-implementation", WARNING, LEFT)],
    ),
    (
        "implementation that is left out, and other that differs",
        state({**TREE, CODE: b"x"}, {**TREE, LEFT: b"more"}, unclaimed=[LEFT]),
        [("drift-implementation", WARNING, CODE), ("drift-implementation", WARNING, LEFT)],
    ),
    (
        "implementation that is left out, and other that is gone",
        state({CONTRACT: contract(), TESTS: TWO_TESTS}, {**TREE, LEFT: b"more"}, unclaimed=[LEFT]),
        [("drift-missing", ERROR, CODE), ("drift-implementation", WARNING, LEFT)],
    ),
    (
        "tests that are left out",
        state({CONTRACT: contract(), CODE: b"code"}, unclaimed=[TESTS]),
        [ALONE],
    ),
    (
        "tests that are left out beside other implementation",
        state({CONTRACT: contract(), CODE: b"x"}, unclaimed=[TESTS]),
        [("drift-implementation", WARNING, CODE), ALONE],
    ),
    (
        "tests that are left out, and others that are weaker",
        state({**TREE, TESTS: ONE_TEST}, {**TREE, LEFT_TESTS: OTHER_TESTS}, unclaimed=[LEFT_TESTS]),
        [WEAKER, ALONE, ("drift-tests", WARNING, LEFT_TESTS)],
    ),
    (
        "tests that are left out are no tests that changed with a contract",
        state({CONTRACT: contract("2"), CODE: b"code"}, unclaimed=[TESTS]),
        [WITHOUT_TESTS, ALONE],
    ),
    (
        "nor are they where copies of them came",
        state(
            {**PROMISES_MORE, LEFT_TESTS: OTHER_TESTS},
            {**TREE, b"t/old.py": OTHER_TESTS},
            unclaimed=[b"t/old.py"],
        ),
        [WITHOUT_TESTS, ("drift-tests", WARNING, b"t/old.py")],
    ),
    (
        "but others that came are",
        state({CONTRACT: contract("2"), CODE: b"code", LEFT_TESTS: OTHER_TESTS}, unclaimed=[TESTS]),
        [ALONE],
    ),
    (
        "a contract that is declared elsewhere",
        state(TREE, CONTRACT_WAS_ELSEWHERE, unclaimed=[OLD]),
        [("drift-version", WARNING, OLD)],
    ),
    (
        "a contract that is declared elsewhere, and promises something else there",
        state(PROMISES_MORE, CONTRACT_WAS_ELSEWHERE, unclaimed=[OLD]),
        [WITHOUT_TESTS, ("drift-version", WARNING, OLD)],
    ),
    (
        "a contract that is declared where nothing is",
        state({CODE: b"code", TESTS: TWO_TESTS}, CONTRACT_WAS_ELSEWHERE, unclaimed=[OLD]),
        [("drift-version", WARNING, OLD)],
    ),
    (
        "a recapture without what the declaration left out",
        state(
            {CONTRACT: contract(), b"t/n.py": b"x", CODE: b"code"},
            {CONTRACT: contract(), b"t/n.py": b"x", CODE: b"code"},
            {**TREE, LEFT: b"more"},
            [PLACE, b"t/n.py"],
            unclaimed=[TESTS, LEFT],
        ),
        [],
    ),
    (
        "a merge with such a recapture",
        state(
            {CONTRACT: contract(), CODE: b"code"},
            {CONTRACT: contract(), CODE: b"code"},
            TREE,
            [PLACE],
            is_merge=True,
            unclaimed=[TESTS],
        ),
        [],
    ),
]


@pytest.mark.parametrize(("given", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_each_way_to_differ_is_told_at_its_level(
    given: ComponentState, expected: list[tuple[str, Level, bytes]]
) -> None:
    assert told(given) == expected


def test_tests_that_were_too_large_to_be_read_before_count_as_lost_now() -> None:
    given = state(
        {**PROMISED_WITH_TESTS, TESTS: ONE_TEST},
        changed=[TESTS],
        earlier={**PROMISED_WITH_TESTS, TESTS: b"# large"},
    )
    assert told(given) == [WEAKENED]
    texts = {each: text for each, text in given.texts.items() if text != b"# large"}
    assert told(replace(given, texts=texts)) == [WEAKER]


@pytest.mark.parametrize("tree", [{b"s/x.py": b""}, {b"t/test_x.py": b""}, {}])
def test_a_contract_without_tests_is_told_how_tests_are_made_where_they_can_be(
    tree: dict[bytes, bytes],
) -> None:
    recorded = {CONTRACT: contract(), **tree, b"s/code": b"code"}
    (found,) = drift.examine_state(state({**recorded, CONTRACT: contract("2")}, recorded))
    assert found.rule == "drift-contract-without-tests"
    assert ("git patchgate component tests shaping --staged" in (found.hint or "")) is bool(tree)


def test_a_contract_and_tests_that_differ_are_told_with_the_way_to_record_them() -> None:
    (found,) = drift.examine_state(state(PROMISED_WITH_TESTS))
    assert found.details["component"] == "shaping"
    assert {"contract", "tests"} <= set(found.message.split())
    assert "implementation" not in found.message
    assert "git patchgate baseline capture shaping" in (found.hint or "")


def test_a_forged_baseline_alone_is_an_error_whatever_the_policy_says() -> None:
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
    assert (fewer.line, "1 instead of 2" in fewer.message) == (2, True)


def test_what_the_declaration_leaves_out_is_told_once_with_the_way_to_record_it() -> None:
    more = {b"s/%d.py" % index: b"%d" % index for index in range(3)}
    (found,) = drift.examine_state(state(TREE, {**TREE, **more}, unclaimed=more))
    assert "s/0.py and 2 more" in found.message
    assert "declar" in found.message
    assert found.hint is not None
    assert "git patchgate baseline capture shaping" in found.hint


def test_a_baseline_that_stays_is_told_with_the_way_to_take_it_out_and_the_files() -> None:
    (found,) = undeclared(RepoPath(PLACE))
    assert found.hint is not None
    assert PLACE.decode() in found.hint
    assert "files" in found.hint
    assert "separate commit" in found.hint


def test_names_of_tests_are_cut_in_messages_and_details() -> None:
    long = b"test_" + b"x" * 200_000
    tests = TWO_TESTS + b"def %s():\n    assert a\n" % long
    for given in (
        state(TREE, {**TREE, TESTS: tests}),
        state({CONTRACT: contract(), CODE: b"code"}, {**TREE, TESTS: tests}),
    ):
        found = next(each for each in drift.examine_state(given) if each.rule == "drift-tests-weakened")
        assert len(found.message) < 500
        assert len(json.dumps(found.details["functions"])) < 500


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
    near = replace(case(), facts={"components": ComponentFacts((state({**TREE, CODE: b"x"}),))})
    assert [each.path for each in drift.examine(near)] == [RepoPath(CODE)]
    unread = replace(case(), facts={"components": ComponentFacts(faults={"drift": "an object is missing"})})
    with pytest.raises(UndecidedError, match="an object is missing"):
        list(drift.examine(unread))
