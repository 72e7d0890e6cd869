"""The rules of components: contracts, what they need of the tree, drift, and the age of baselines.

Staleness is a circumstance: the date is no part of a change.
"""

from __future__ import annotations

from functools import partial

from patchgate.report.rules.rule import Level, Rule, Stage

_contract = partial(Rule, stage=Stage.CONTRACTS, gate="contracts")
_drift = partial(Rule, stage=Stage.DRIFT, gate="drift")
_staleness = partial(Rule, stage=Stage.DRIFT, gate="staleness", level=Level.WARNING)

DEPENDENCY_RULES = (
    _contract(
        "contract-missing",
        "A component is declared, and the tree has no file where its contract should be.",
        "Without a contract nobody can tell what the component promises, nor when it changed.",
        'contract = "contracts/shaping/interface.json", and no such file',
        "Write the contract (`git patchgate schema contract` has its keys), or mend its path in the config.",
        level=Level.WARNING,
    ),
    _contract(
        "dependency-unknown",
        "An entry of a contract's `dependencies` is no component, and no module or path of the tree; or it "
        "is a module or path of another component.",
        "A dependency that names nothing is checked by nobody.",
        '"dependencies": ["schemsa"] beside a component `schemas`',
        "Write the id of a component, or take the entry out.",
        level=Level.WARNING,
    ),
    _contract(
        "dependency-corrected",
        "An entry of a contract's `dependencies` is written otherwise than the component's id, and was "
        "matched all the same: without case, with its words in another order, without what all ids share, or "
        "with a prefix or suffix that only one id has more or less.",
        "What was read must be seen, or a wrong match would stay hidden.",
        '"dependencies": ["schemas_shaping"] for the component `shaping_schemas`',
        "Write the id as it is declared.",
        level=Level.WARNING,
    ),
    _contract(
        "dependency-without-contract",
        "A contract depends on a component whose contract is not in the tree.",
        "Nobody can rely on what was never promised.",
        '"dependencies": ["schemas"], and contracts/schemas/interface.json is not there',
        "Write that component's contract first, or take the dependency out.",
    ),
    _contract(
        "external-missing",
        "An entry of a contract's `external_dependencies` is no module and no path under `source_roots` in "
        "the tree that is judged.",
        "The contract relies on code that this change takes away, or that never was there.",
        '"external_dependencies": ["shaping.tools"] without src/shaping/tools.py or a folder of that name',
        "Restore what is named, or mend the entry. Only what this repository holds is named there.",
    ),
    _contract(
        "dependency-cycle",
        "Components depend on each other in a circle, shown as a path.",
        "None of them can be understood, tested or changed without all the others.",
        "shaping depends on schemas, and schemas on shaping",
        "Take one of the dependencies out; what both need becomes a component of its own.",
    ),
    _contract(
        "dependency-across",
        "A contract depends on a component in another part of the component tree. Parents, children, "
        "siblings and a parent's siblings are free.",
        "Such dependencies tie parts together that were meant to change alone.",
        "agents/shaping depends on storage/disk",
        "Depend on the other part's parent, or move one of the two.",
        level=Level.WARNING,
    ),
    _contract(
        "budget-unasserted",
        "A contract promises a performance budget, and no test of the component asserts it: a test function "
        "that names the function, with an assertion that names the measure or the limit. Not asked where no "
        "test is in Python.",
        "A limit that nothing measures is a wish.",
        '"performance_budget": {"p95_latency_ms": 50}, and tests without any latency',
        "Write such a test; `git patchgate component tests ID` prints one.",
        level=Level.WARNING,
    ),
    _contract(
        "component-empty-glob",
        "A pattern of a component's files matches no file of the tree.",
        "The component watches less than its declaration says.",
        'implementation = ["src/shapping/**"], and the folder is src/shaping',
        "Mend the pattern, or take it out.",
        level=Level.WARNING,
    ),
    _contract(
        "component-shared-file",
        "Two components claim one file.",
        "A change to it would be drift of both, and nobody could say whose.",
        'implementation = ["src/**"] in one and ["src/shaping/**"] in another',
        "Narrow one of the patterns.",
    ),
)

CONTENT_OF_CONTRACT_RULES = (
    _contract(
        "contract-invalid",
        "A contract cannot be read: it is not JSON or no regular file, is too large, has a key that is "
        "unknown, missing or doubled, a value of the wrong kind, a name twice, or another component's id.",
        "What cannot be read holds nobody to anything.",
        '"functons": [] in interface.json',
        "Mend the place that the finding names; `git patchgate schema contract` tells what each key takes.",
    ),
    _contract(
        "contract-outdated",
        "A side effect is a plain string, as older contracts have it. It is read as its first word says, and "
        "as mutates_state where that is no kind.",
        "A sentence cannot be compared with what the function does; a kind and a target can.",
        '"side_effects": ["writes the report"]',
        'Write an object: {"kind": "writes_file", "target": "report.txt", "description": "the report"}.',
        level=Level.WARNING,
    ),
    _contract(
        "contract-type-unknown",
        "A type in a contract is neither one of Python's usual ones, nor one that other languages share "
        "(like string, number or Promise<void>), nor declared in `types`, nor written with its module, or it "
        "is no type at all.",
        "Whoever builds on the contract cannot know what is meant.",
        '"output": {"type": "Ordr"} beside a type `Order`',
        "Mend the name, declare the type in `types`, or write its module before it, like decimal.Decimal.",
    ),
    _contract(
        "contract-vague",
        "A description, invariant, condition or side effect in a contract holds a phrase of `message-vague`. "
        "Here they count wherever they are, also in quotation marks and between backticks.",
        "A promise that nobody can check is none.",
        '"description": "Handles all inputs as needed."',
        "Say what can be checked, or leave the words out.",
        level=Level.WARNING,
    ),
    _contract(
        "side-effects-empty",
        "A function in a contract names no side effects.",
        "Nobody can tell whether it has none or they were forgotten.",
        '"side_effects": []',
        'Name each one, or write [{"kind": "none"}].',
    ),
    _contract(
        "side-effects-mixed",
        "A function's side effects name `none` beside others.",
        "Both cannot be true.",
        '"side_effects": [{"kind": "none"}, {"kind": "logging", "target": "stderr"}]',
        "Take `none` out, or the others.",
    ),
    _contract(
        "side-effects-idempotent",
        "A function in a contract is idempotent and writes a file.",
        "A second call writes again: whether the file is the same then is not told by equal results.",
        '"idempotent": true beside {"kind": "writes_file", "target": "report.txt"}',
        "See whether a second call leaves the same file, and say so in the description; else take one out.",
        level=Level.WARNING,
    ),
)

DRIFT_RULES = (
    _drift(
        "drift-contract-without-tests",
        "The contract of a component promises something else than its baseline records, and none of its "
        "tests changed. Modes, comments in Python and files without a test do not count.",
        "A promise that no test was changed for is a promise that nothing holds.",
        "interface.json promises another output; tests/contracts/ is as it was",
        "Change the tests along with the contract, or put the contract back.",
    ),
    _drift(
        "drift-tests-weakened",
        "Tests of a component lost a file or all that was in it, a test function or assertions, or are "
        "skipped. Fewer assertions alone, a skip, and all of it in the change that makes the contract "
        "promise something else (than its `version`) are only a warning.",
        "A test that is taken out so that the rest passes changes what is promised, unseen.",
        "test_it_is_sorted is gone from tests/contracts/test_shaping.py",
        "Put the test back; if the promise itself changed, change the contract in the same commit.",
    ),
    _drift(
        "drift-missing",
        "A file of the contract or the implementation that the baseline records is gone; a contract also "
        "where the change records the component without it.",
        "What others rely on is not there any more.",
        "src/shaping/core.py was deleted, its component is still declared and recorded",
        "Put the file back; if the implementation is meant to be so, record the component anew: git "
        "patchgate baseline capture ID; if the component is to go, its declaration goes first.",
    ),
    _drift(
        "drift-version",
        "The contract differs from the recorded one, be it in its mode or layout, and its version is not "
        "higher; or the declaration names another file.",
        "Who depends on a contract reads its version to learn that it changed.",
        "a function was added to interface.json, and version is still 1.2.0",
        "Raise `version` in the contract; if it promises the same, record the component anew.",
        level=Level.WARNING,
    ),
    _drift(
        "drift-implementation",
        "The implementation differs from the baseline, under the version of the contract that was recorded; "
        "or the declaration leaves out a file of it that is still there.",
        "Nobody has said since that the tests pass with what stands there now.",
        "src/shaping/core.py changed after the last capture",
        "Run the tests and record it: git patchgate baseline capture ID.",
        level=Level.WARNING,
    ),
    _drift(
        "drift-tests",
        "The tests of a component differ from the baseline, its contract and implementation do not; or the "
        "declaration leaves out a test that is still there.",
        "Tests that change alone hold the component to another word than before.",
        "tests/contracts/test_shaping.py expects another result",
        "Look whether they still ask what the contract says; then: git patchgate baseline capture ID.",
        level=Level.WARNING,
    ),
    _drift(
        "drift-moved",
        "A file of a component has another path than the baseline records, and is otherwise the same; a test "
        "has a name of the same kind.",
        "A move is no drift, but the baseline names the old path.",
        "src/shaping/core.py became src/shaping/inner/core.py",
        "Record the component anew: git patchgate baseline capture ID.",
        level=Level.NOTE,
    ),
    _drift(
        "drift-all",
        "Contract and tests of a component both differ from its baseline, with or without its "
        "implementation.",
        "That is how a component is meant to change; what was recorded is of the past.",
        "a new version of a component with all that belongs to it",
        "Record the component anew: git patchgate baseline capture ID.",
        level=Level.NOTE,
    ),
    _drift(
        "component-undeclared",
        "A change of the policy declares a component no longer, and its baseline stays; or a push does so, "
        "and files of the component stay.",
        "From then on its contract, its tests and its implementation may drift apart unseen.",
        "[components.shaping] is gone from patchgate.toml, .patchgate/baselines/shaping.json is not",
        "Put the declaration back; or, if it is meant, remove the baseline in a change of its own: the files "
        "are nobody's then, and may go in the same change.",
        level=Level.WARNING,
    ),
    _drift(
        "no-baseline",
        "A component has no baseline.",
        "Without one nobody can see that it drifts.",
        "[components.shaping] was declared and never captured",
        "Record it once its tests pass: git patchgate baseline capture ID.",
        level=Level.NOTE,
    ),
    _drift(
        "baseline-invalid",
        "A baseline cannot be read: no JSON, another form, conflict markers, of a newer patchgate.",
        "What cannot be read cannot be compared with.",
        "a line `<<<<<<< HEAD` in .patchgate/baselines/shaping.json",
        "Take the file out and record the component anew: git patchgate baseline capture ID.",
    ),
    _drift(
        "baseline-tampered",
        "A change brings a baseline that no capture of its files would write, or deletes that of a component "
        "that is declared.",
        "A baseline that is written by hand, or is gone, would hide every drift.",
        "an object id in .patchgate/baselines/shaping.json was edited",
        "Stage the files, then record them: git patchgate baseline capture ID; then stage the baseline. If "
        "the component is to go, take its declaration out first, in a change of its own.",
        invariant=True,
    ),
)

_MEND = (
    "Run `git patchgate baseline capture ID --reverify`, add `--commit-note` if others need to know, then "
    "`git push origin refs/notes/patchgate-verified`."
)

STALENESS_RULES = (
    _staleness(
        "baseline-stale",
        "A component was verified longer ago than `staleness_window_days`. The last day of the window still "
        "counts. An error where `require_fresh`.",
        "Its tests passed once; what they run on has changed since, unseen.",
        "a baseline whose newest commit is 91 days old, with a window of 90",
        _MEND,
    ),
    _staleness(
        "baseline-aging",
        "A component that this one depends on has another contract or implementation than when this one was "
        "verified, or is gone. An error where `require_fresh`.",
        "Its tests passed with something else below them.",
        "a commit changes src/agents/, and nobody has run the tests of what builds on it",
        _MEND,
    ),
    _staleness(
        "baseline-unknown",
        "Nobody can tell when a component was verified: the history is shallow, or the date lies in the "
        "future. An error where `require_fresh`.",
        "What is not known is never taken for fresh.",
        "git clone --depth 1, then git patchgate baseline status",
        "Fetch the history (`git fetch --unshallow`), or verify it again: `git patchgate baseline capture ID "
        "--reverify`.",
    ),
)
