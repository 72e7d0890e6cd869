"""The rules of drift: what a component's files may not become unseen, beside what was recorded of them."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _rule(
    name: str, level: Level, what: str, why: str, example: str, fix: str, *, invariant: bool = False
) -> Rule:
    return Rule(name, Stage.DRIFT, "drift", level, what, why, example, fix, invariant=invariant)


DRIFT_RULES = (
    _rule(
        "drift-contract-without-tests",
        Level.ERROR,
        "The contract of a component promises something else than its baseline records, and none of its "
        "tests changed. Modes, comments in Python and files without a test do not count.",
        "A promise that no test was changed for is a promise that nothing holds.",
        "interface.json promises another output; tests/contracts/ is as it was",
        "Change the tests along with the contract, or put the contract back.",
    ),
    _rule(
        "drift-tests-weakened",
        Level.ERROR,
        "Tests of a component lost a file or all that was in it, a test function or assertions, or are "
        "skipped. Fewer assertions alone, a skip, and all of it in the change that makes the contract "
        "promise something else (than its `version`) are only a warning.",
        "A test that is taken out so that the rest passes changes what is promised, unseen.",
        "test_it_is_sorted is gone from tests/contracts/test_shaping.py",
        "Put the test back; if the promise itself changed, change the contract in the same commit.",
    ),
    _rule(
        "drift-missing",
        Level.ERROR,
        "A file of the contract or the implementation that the baseline records is gone; a contract also "
        "where the change records the component without it.",
        "What others rely on is not there any more.",
        "src/shaping/core.py was deleted, its component is still declared and recorded",
        "Put the file back; if the implementation is meant to be so, record the component anew: git "
        "patchgate baseline capture ID; if the component is to go, its declaration goes first.",
    ),
    _rule(
        "drift-version",
        Level.WARNING,
        "The contract differs from the recorded one, be it in its mode or layout, and its version is not "
        "higher; or the declaration names another file.",
        "Who depends on a contract reads its version to learn that it changed.",
        "a function was added to interface.json, and version is still 1.2.0",
        "Raise `version` in the contract; if it promises the same, record the component anew.",
    ),
    _rule(
        "drift-implementation",
        Level.WARNING,
        "The implementation differs from the baseline, under the version of the contract that was recorded; "
        "or the declaration leaves out a file of it that is still there.",
        "Nobody has said since that the tests pass with what stands there now.",
        "src/shaping/core.py changed after the last capture",
        "Run the tests and record it: git patchgate baseline capture ID.",
    ),
    _rule(
        "drift-tests",
        Level.WARNING,
        "The tests of a component differ from the baseline, its contract and implementation do not; or the "
        "declaration leaves out a test that is still there.",
        "Tests that change alone hold the component to another word than before.",
        "tests/contracts/test_shaping.py expects another result",
        "Look whether they still ask what the contract says; then: git patchgate baseline capture ID.",
    ),
    _rule(
        "drift-moved",
        Level.NOTE,
        "A file of a component has another path than the baseline records, and is otherwise the same; a test "
        "has a name of the same kind.",
        "A move is no drift, but the baseline names the old path.",
        "src/shaping/core.py became src/shaping/inner/core.py",
        "Record the component anew: git patchgate baseline capture ID.",
    ),
    _rule(
        "drift-all",
        Level.NOTE,
        "Contract and tests of a component both differ from its baseline, with or without its "
        "implementation.",
        "That is how a component is meant to change; what was recorded is of the past.",
        "a new version of a component with all that belongs to it",
        "Record the component anew: git patchgate baseline capture ID.",
    ),
    _rule(
        "component-undeclared",
        Level.WARNING,
        "A change of the policy declares a component no longer, and its baseline stays; or a push does so, "
        "and files of the component stay.",
        "From then on its contract, its tests and its implementation may drift apart unseen.",
        "[components.shaping] is gone from patchgate.toml, .patchgate/baselines/shaping.json is not",
        "Put the declaration back; or, if it is meant, remove the baseline in a change of its own: the files "
        "are nobody's then, and may go in the same change.",
    ),
    _rule(
        "no-baseline",
        Level.NOTE,
        "A component has no baseline.",
        "Without one nobody can see that it drifts.",
        "[components.shaping] was declared and never captured",
        "Record it once its tests pass: git patchgate baseline capture ID.",
    ),
    _rule(
        "baseline-invalid",
        Level.ERROR,
        "A baseline cannot be read: no JSON, another form, conflict markers, of a newer patchgate.",
        "What cannot be read cannot be compared with.",
        "a line `<<<<<<< HEAD` in .patchgate/baselines/shaping.json",
        "Take the file out and record the component anew: git patchgate baseline capture ID.",
    ),
    _rule(
        "baseline-tampered",
        Level.ERROR,
        "A change brings a baseline that no capture of its files would write, or deletes that of a component "
        "that is declared.",
        "A baseline that is written by hand, or is gone, would hide every drift.",
        "an object id in .patchgate/baselines/shaping.json was edited",
        "Stage the files, then record them: git patchgate baseline capture ID; then stage the baseline. If "
        "the component is to go, take its declaration out first, in a change of its own.",
        invariant=True,
    ),
)
