"""No rule is added without a thought for the fast path, which would not know of it."""

from __future__ import annotations

from patchgate.check.gate import ORDER
from patchgate.report.rules import RULES
from patchgate.report.rules.scope import PLACEHOLDER_RULES
from tests.components.component_rule_cases import CONTRACTS, DRIFT

# Why a boring change cannot raise a rule: what the recogniser asks, or what the compiled policy makes it ask.
COVERED = {
    "path-empty": "names are plain",
    "path-absolute": "names are plain",
    "path-drive-letter": "names are plain",
    "path-traversal": "names are plain",
    "path-git-dir": "names are plain",
    "path-control": "names are plain",
    "path-symlink": "regular files only; only patches name a path behind a link",
    "path-collision": "collisions",
    "path-colon": "names are plain",
    "path-backslash": "names are plain",
    "path-too-long": "names are plain",
    "outside-allow-roots": "roots",
    "deny-prefix": "prefixes",
    "deny-pattern": "prefixes, names, endings, beginnings, parts",
    "agent-settings": "only under the agent profile, which a commit without an intent does not have here",
    "deny-suffix": "endings, names",
    "deny-class": "names and endings of the denied classes, reads_contents",
    "lock-without-manifest": "names of lock files",
    "max-files": "max_files",
    "max-added-lines": "max_added_lines",
    "max-file-bytes": "max_file_bytes",
    "mode-change": "modes are kept",
    "symlink": "regular files only",
    "gitlink": "regular files only",
    "policy-change-not-alone": "control files",
    "policy-removed": "control files",
    "policy-invalid": "control files",
    "policy-repaired": "control files",
    "secret": "texts",
    "conflict-marker": "texts",
    "deny-content": "texts, small_texts",
}
# All of these speak of a change of a component's own file, its declaration or its baseline, or of a deletion.
COMPONENTS = "prefixes, names, endings, beginnings, parts of the components' patterns; has_components"
COVERED |= dict.fromkeys([*CONTRACTS, *DRIFT], COMPONENTS)
# Off for people unless a policy says otherwise; then what is in every match is searched for.
COVERED |= {rule.id: "texts, small_texts" for rule in PLACEHOLDER_RULES}


def test_every_rule_that_a_change_can_raise_is_covered_by_what_is_asked() -> None:
    gates = {gate.name for gate in ORDER}
    raised = {rule for rule, definition in RULES.items() if definition.gate in gates}
    assert raised == set(COVERED), (
        "teach policy/compiled_policy.py or hooks/fast/recognise.py to hand it on, then say how"
    )
