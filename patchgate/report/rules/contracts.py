"""The rules of components: contracts, their dependencies, drift, and the age of baselines.

Staleness is a gate of the context: the date is not part of a change.
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
        "A component is declared, but the tree has no file at the path of its contract.",
        "Without a contract nobody can see what the component promises, or when that changed.",
        'contract = "contracts/shaping/interface.json", and no such file',
        "Write the contract (`git patchgate schema contract` has its keys), or fix its path in the config.",
        level=Level.WARNING,
    ),
    _contract(
        "dependency-unknown",
        "An entry of a contract's `dependencies` is not a component, a module or a path of the tree; or it "
        "is a module or path of another component.",
        "A dependency that names nothing cannot be checked.",
        '"dependencies": ["schemsa"] beside a component `schemas`',
        "Write the id of a component, or remove the entry.",
        level=Level.WARNING,
    ),
    _contract(
        "dependency-corrected",
        "An entry of a contract's `dependencies` is not spelled like the component's id, but was matched to "
        "it: ignoring case, the order of its words, what all ids share, or a prefix or suffix that only one "
        "id has or lacks.",
        "The match is a guess and may be wrong.",
        '"dependencies": ["schemas_shaping"] for the component `shaping_schemas`',
        "Write the id as it is declared.",
        level=Level.WARNING,
    ),
    _contract(
        "dependency-without-contract",
        "A contract depends on a component whose contract is not in the tree.",
        "A component without a contract promises nothing to rely on.",
        '"dependencies": ["schemas"], and contracts/schemas/interface.json does not exist',
        "Write that component's contract first, or remove the dependency.",
    ),
    _contract(
        "external-missing",
        "An entry of a contract's `external_dependencies` is not a module or a path under `source_roots` in "
        "the tree.",
        "The contract relies on code that this change removes, or that never existed.",
        '"external_dependencies": ["shaping.tools"] without src/shaping/tools.py or a folder of that name',
        "Restore what the entry names, or fix the entry. Name only what this repository contains.",
    ),
    _contract(
        "dependency-cycle",
        "Components depend on each other in a cycle, shown as a path.",
        "None of them can be understood, tested or changed without all the others.",
        "shaping depends on schemas, and schemas on shaping",
        "Remove one of the dependencies; move what both need into a third component.",
    ),
    _contract(
        "dependency-across",
        "A contract depends on a component in another part of the component tree. Parents, children, "
        "siblings and a parent's siblings are allowed.",
        "Such dependencies tie together parts that were meant to change separately.",
        "agents/shaping depends on storage/disk",
        "Depend on the other part's parent, or move one of the two.",
        level=Level.WARNING,
    ),
    _contract(
        "budget-unasserted",
        "A contract promises a performance budget, and no test of the component asserts it: a test function "
        "that names the function, with an assertion that names the measure or the limit. Not checked where "
        "no test is in Python.",
        "No test measures this limit.",
        '"performance_budget": {"p95_latency_ms": 50}, and tests without any latency',
        "Write such a test; `git patchgate component tests ID` prints one.",
        level=Level.WARNING,
    ),
    _contract(
        "component-empty-glob",
        "A pattern of a component's files matches no file of the tree.",
        "The component covers less than its declaration says.",
        'implementation = ["src/shapping/**"], and the folder is src/shaping',
        "Fix the pattern, or remove it.",
        level=Level.WARNING,
    ),
    _contract(
        "component-shared-file",
        "Two components claim the same file.",
        "A change to the file would be drift of both components.",
        'implementation = ["src/**"] in one and ["src/shaping/**"] in another',
        "Narrow one of the patterns.",
    ),
)

CONTENT_OF_CONTRACT_RULES = (
    _contract(
        "contract-invalid",
        "A contract cannot be read: it is not JSON or not a regular file, is too large, has an unknown, "
        "missing or repeated key, a value of the wrong type, a repeated name, or another component's id.",
        "A contract that cannot be read cannot be checked.",
        '"functons": [] in interface.json',
        "Fix what the finding names; `git patchgate schema contract` lists what each key accepts.",
    ),
    _contract(
        "contract-outdated",
        "A side effect is a plain string, as in older contracts. Its first word is read as the kind, or "
        "mutates_state where that is not a kind.",
        "Text cannot be compared with what the function does; a kind and a target can.",
        '"side_effects": ["writes the report"]',
        'Write an object: {"kind": "writes_file", "target": "report.txt", "description": "the report"}.',
        level=Level.WARNING,
    ),
    _contract(
        "contract-type-unknown",
        "A type in a contract is not a type, or not a known one: Python's usual types, those that other "
        "languages share (like string, number or Promise<void>), names declared in `types`, and names with "
        "their module are known.",
        "Users of the contract cannot know what the type means.",
        '"output": {"type": "Ordr"} beside a type `Order`',
        "Fix the name, declare the type in `types`, or write its module before it, like decimal.Decimal.",
    ),
    _contract(
        "contract-vague",
        "A description, invariant, condition or side effect in a contract has a phrase of `message-vague`. "
        "Here the phrases count everywhere, also in quotation marks and between backticks.",
        "A promise that cannot be checked is useless.",
        '"description": "Handles all inputs as needed."',
        "Say what can be checked, or leave the words out.",
        level=Level.WARNING,
    ),
    _contract(
        "side-effects-empty",
        "A function in a contract names no side effects.",
        "It is not clear whether it has none or they were forgotten.",
        '"side_effects": []',
        'Name each one, or write [{"kind": "none"}].',
    ),
    _contract(
        "side-effects-mixed",
        "A function's side effects contain `none` and others.",
        "Both cannot be true.",
        '"side_effects": [{"kind": "none"}, {"kind": "logging", "target": "stderr"}]',
        "Remove `none`, or the others.",
    ),
    _contract(
        "side-effects-idempotent",
        "A function in a contract is idempotent and writes a file.",
        "A second call writes the file again, and equal results do not prove that the file is the same.",
        '"idempotent": true beside {"kind": "writes_file", "target": "report.txt"}',
        "If a second call leaves the same file, say so in the description; otherwise remove one of the two.",
        level=Level.WARNING,
    ),
)

DRIFT_RULES = (
    _drift(
        "drift-contract-without-tests",
        "The contract of a component no longer promises what its baseline records, and none of its tests "
        "changed. Modes, comments in Python and files without a test do not count.",
        "No test covers the new promise.",
        "interface.json promises another output; tests/contracts/ did not change",
        "Change the tests together with the contract, or restore the contract.",
    ),
    _drift(
        "drift-tests-weakened",
        "Tests of a component lost a file or all of its content, a test function or assertions, or are "
        "skipped. Fewer assertions alone, a skip, and any of these in the change that makes the contract "
        "promise something else (other than its `version`) are only a warning.",
        "A test that is removed so that the rest passes changes what the component promises.",
        "test_it_is_sorted was removed from tests/contracts/test_shaping.py",
        "Restore the test; if the promise itself changed, change the contract in the same commit.",
    ),
    _drift(
        "drift-missing",
        "A file of the contract or the implementation that the baseline records was deleted; for a contract "
        "also where the change records the component without it.",
        "Others rely on the file.",
        "src/shaping/core.py was deleted, and its component is still declared and recorded",
        "Restore the file; if it was removed on purpose, record the component again: git patchgate baseline "
        "capture ID; to remove the component, remove its declaration first.",
    ),
    _drift(
        "drift-version",
        "The contract differs from the recorded one, also if only in mode or layout, and its version is not "
        "higher; or the declaration names another file.",
        "Users of a contract see by its version that it changed.",
        "a function was added to interface.json, and version is still 1.2.0",
        "Raise `version` in the contract; if it promises the same, record the component again.",
        level=Level.WARNING,
    ),
    _drift(
        "drift-implementation",
        "The implementation differs from the baseline, and the contract still has the recorded version; or "
        "the declaration leaves out a file of it that still exists.",
        "The tests have not been recorded as passing with this implementation.",
        "src/shaping/core.py changed after the last capture",
        "Run the tests and record it: git patchgate baseline capture ID.",
        level=Level.WARNING,
    ),
    _drift(
        "drift-tests",
        "The tests of a component differ from the baseline, but its contract and implementation do not; or "
        "the declaration leaves out a test that still exists.",
        "The tests may now check something that the contract does not promise.",
        "tests/contracts/test_shaping.py expects another result",
        "Check that they still test what the contract says, then run: git patchgate baseline capture ID.",
        level=Level.WARNING,
    ),
    _drift(
        "drift-moved",
        "A file of a component has another path than the baseline records, and is otherwise the same. A "
        "moved test must still have the name of a test.",
        "A move is not drift, but the baseline names the old path.",
        "src/shaping/core.py became src/shaping/inner/core.py",
        "Record the component again: git patchgate baseline capture ID.",
        level=Level.NOTE,
    ),
    _drift(
        "drift-all",
        "Contract and tests of a component both differ from its baseline, with or without its "
        "implementation.",
        "A component should change like this, but the baseline is now out of date.",
        "a new version of a component with all its files",
        "Record the component again: git patchgate baseline capture ID.",
        level=Level.NOTE,
    ),
    _drift(
        "component-undeclared",
        "A change of the policy removes the declaration of a component, and its baseline stays; or a push "
        "does so, and files of the component stay.",
        "From then on nothing checks its contract, tests and implementation against each other.",
        "[components.shaping] was removed from patchgate.toml, .patchgate/baselines/shaping.json was not",
        "Restore the declaration; or, to remove the component, delete its baseline in a separate commit: its "
        "files then belong to no component, and can be deleted in the same commit.",
        level=Level.WARNING,
    ),
    _drift(
        "no-baseline",
        "A component has no baseline.",
        "Drift is only visible against a baseline.",
        "[components.shaping] was declared and never captured",
        "Record it once its tests pass: git patchgate baseline capture ID.",
        level=Level.NOTE,
    ),
    _drift(
        "baseline-invalid",
        "A baseline cannot be read: it is not JSON, has another format or conflict markers, or is from a "
        "newer patchgate.",
        "Drift cannot be checked against it.",
        "a line `<<<<<<< HEAD` in .patchgate/baselines/shaping.json",
        "Delete the file and record the component again: git patchgate baseline capture ID.",
    ),
    _drift(
        "baseline-tampered",
        "A change adds a baseline that no capture of its files would write, or deletes the baseline of a "
        "component that is declared.",
        "A baseline that is edited by hand, or deleted, hides drift.",
        "an object id in .patchgate/baselines/shaping.json was edited",
        "Stage the files, record them with git patchgate baseline capture ID, then stage the baseline. To "
        "remove the component, remove its declaration first, in a separate commit.",
        invariant=True,
    ),
)

_VERIFY_AGAIN = (
    "Run `git patchgate baseline capture ID --reverify`, add `--commit-note` if others need to know, then "
    "`git push origin refs/notes/patchgate-verified`."
)

STALENESS_RULES = (
    _staleness(
        "baseline-stale",
        "A component was last verified more than `staleness_window_days` ago. The last day of the window "
        "still counts. An error where `require_fresh`.",
        "Its tests passed then, but what they run on may have changed.",
        "a baseline whose newest commit is 91 days old, with a window of 90",
        _VERIFY_AGAIN,
    ),
    _staleness(
        "baseline-aging",
        "A component that this one depends on has another contract or implementation than when this one was "
        "verified, or was removed. An error where `require_fresh`.",
        "Its tests passed with another version of that component.",
        "a commit changes src/agents/, and the tests of what builds on it were not run since",
        _VERIFY_AGAIN,
    ),
    _staleness(
        "baseline-unknown",
        "It is not known when a component was verified: the history is shallow, or the date is in the "
        "future. An error where `require_fresh`.",
        "An unknown date does not count as fresh.",
        "git clone --depth 1, then git patchgate baseline status",
        "Fetch the history (`git fetch --unshallow`), or verify it again: `git patchgate baseline capture ID "
        "--reverify`.",
    ),
)
