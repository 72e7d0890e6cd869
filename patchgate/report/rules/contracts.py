"""The contract rules: what a contract says, and what it needs of the tree around it."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _rule(name: str, level: Level, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.CONTRACTS, "contracts", level, what, why, example, fix)


DEPENDENCY_RULES = (
    _rule(
        "contract-missing",
        Level.WARNING,
        "A component is declared, and the tree has no file where its contract should be.",
        "Without a contract nobody can tell what the component promises, nor when it changed.",
        'contract = "contracts/shaping/interface.json", and no such file',
        "Write the contract (`git patchgate schema contract` has its keys), or mend its path in the config.",
    ),
    _rule(
        "dependency-unknown",
        Level.WARNING,
        "An entry of a contract's `dependencies` is no component, and no module or path of the tree; or it "
        "is a module or path of another component.",
        "A dependency that names nothing is checked by nobody.",
        '"dependencies": ["schemsa"] beside a component `schemas`',
        "Write the id of a component, or take the entry out.",
    ),
    _rule(
        "dependency-corrected",
        Level.WARNING,
        "An entry of a contract's `dependencies` is written otherwise than the component's id, and was "
        "matched all the same: without case, with its words in another order, without what all ids share, or "
        "with a prefix or suffix that only one id has more or less.",
        "What was read must be seen, or a wrong match would stay hidden.",
        '"dependencies": ["schemas_shaping"] for the component `shaping_schemas`',
        "Write the id as it is declared.",
    ),
    _rule(
        "dependency-without-contract",
        Level.ERROR,
        "A contract depends on a component whose contract is not in the tree.",
        "Nobody can rely on what was never promised.",
        '"dependencies": ["schemas"], and contracts/schemas/interface.json is not there',
        "Write that component's contract first, or take the dependency out.",
    ),
    _rule(
        "external-missing",
        Level.ERROR,
        "An entry of a contract's `external_dependencies` is no module and no path under `source_roots` in "
        "the tree that is judged.",
        "The contract relies on code that this change takes away, or that never was there.",
        '"external_dependencies": ["shaping.tools"] without src/shaping/tools.py or a folder of that name',
        "Restore what is named, or mend the entry. Only what this repository holds is named there.",
    ),
    _rule(
        "dependency-cycle",
        Level.ERROR,
        "Components depend on each other in a circle, shown as a path.",
        "None of them can be understood, tested or changed without all the others.",
        "shaping depends on schemas, and schemas on shaping",
        "Take one of the dependencies out; what both need becomes a component of its own.",
    ),
    _rule(
        "dependency-across",
        Level.WARNING,
        "A contract depends on a component in another part of the component tree. Parents, children, "
        "siblings and a parent's siblings are free.",
        "Such dependencies tie parts together that were meant to change alone.",
        "agents/shaping depends on storage/disk",
        "Depend on the other part's parent, or move one of the two.",
    ),
    _rule(
        "budget-unasserted",
        Level.WARNING,
        "A contract promises a performance budget, and no test of the component asserts it: a test function "
        "that names the function, with an assertion that names the measure or the limit. Not asked where no "
        "test is in Python.",
        "A limit that nothing measures is a wish.",
        '"performance_budget": {"p95_latency_ms": 50}, and tests without any latency',
        "Write such a test; `git patchgate component tests ID` prints one.",
    ),
    _rule(
        "component-empty-glob",
        Level.WARNING,
        "A pattern of a component's files matches no file of the tree.",
        "The component watches less than its declaration says.",
        'implementation = ["src/shapping/**"], and the folder is src/shaping',
        "Mend the pattern, or take it out.",
    ),
    _rule(
        "component-shared-file",
        Level.ERROR,
        "Two components claim one file.",
        "A change to it would be drift of both, and nobody could say whose.",
        'implementation = ["src/**"] in one and ["src/shaping/**"] in another',
        "Narrow one of the patterns.",
    ),
)

CONTENT_OF_CONTRACT_RULES = (
    _rule(
        "contract-invalid",
        Level.ERROR,
        "A contract cannot be read: it is not JSON or no regular file, is too large, has a key that is "
        "unknown, missing or doubled, a value of the wrong kind, a name twice, or another component's id.",
        "What cannot be read holds nobody to anything.",
        '"functons": [] in interface.json',
        "Mend the place that the finding names; `git patchgate schema contract` tells what each key takes.",
    ),
    _rule(
        "contract-outdated",
        Level.WARNING,
        "A side effect is a plain string, as older contracts have it. It is read as its first word says, and "
        "as mutates_state where that is no kind.",
        "A sentence cannot be compared with what the function does; a kind and a target can.",
        '"side_effects": ["writes the report"]',
        'Write an object: {"kind": "writes_file", "target": "report.txt", "description": "the report"}.',
    ),
    _rule(
        "contract-type-unknown",
        Level.ERROR,
        "A type in a contract is neither one of Python's usual ones, nor one that other languages share "
        "(like string, number or Promise<void>), nor declared in `types`, nor written with its module, or it "
        "is no type at all.",
        "Whoever builds on the contract cannot know what is meant.",
        '"output": {"type": "Ordr"} beside a type `Order`',
        "Mend the name, declare the type in `types`, or write its module before it, like decimal.Decimal.",
    ),
    _rule(
        "contract-vague",
        Level.WARNING,
        "A description, invariant, condition or side effect in a contract holds a phrase of `message-vague`. "
        "Here they count wherever they are, also in quotation marks and between backticks.",
        "A promise that nobody can check is none.",
        '"description": "Handles all inputs as needed."',
        "Say what can be checked, or leave the words out.",
    ),
    _rule(
        "side-effects-empty",
        Level.ERROR,
        "A function in a contract names no side effects.",
        "Nobody can tell whether it has none or they were forgotten.",
        '"side_effects": []',
        'Name each one, or write [{"kind": "none"}].',
    ),
    _rule(
        "side-effects-mixed",
        Level.ERROR,
        "A function's side effects name `none` beside others.",
        "Both cannot be true.",
        '"side_effects": [{"kind": "none"}, {"kind": "logging", "target": "stderr"}]',
        "Take `none` out, or the others.",
    ),
    _rule(
        "side-effects-idempotent",
        Level.WARNING,
        "A function in a contract is idempotent and writes a file.",
        "A second call writes again: whether the file is the same then is not told by equal results.",
        '"idempotent": true beside {"kind": "writes_file", "target": "report.txt"}',
        "See whether a second call leaves the same file, and say so in the description; else take one out.",
    ),
)
