"""The registry of rules: the one place that knows which rule belongs to which stage and code.

`explain`, the JSON Schemas, SARIF's `rules[]` and the reference page are made from it. A rule never changes
its meaning: a new one is a new kebab-case word, and raises `RULES_VERSION`, which every policy digest covers.
Nothing heavy is imported here: `explain` must start as fast as `--help`.
"""

from __future__ import annotations

from patchgate import RULES_VERSION
from patchgate.report.rules.apply import APPLY_RULES, TRY_RULES
from patchgate.report.rules.contracts import (
    CONTENT_OF_CONTRACT_RULES,
    DEPENDENCY_RULES,
    DRIFT_RULES,
    STALENESS_RULES,
)
from patchgate.report.rules.patch import PATCH_RULES, REPLY_RULES
from patchgate.report.rules.policy import CONTENT_RULES, PATH_RULES, POLICY_RULES, REF_RULES
from patchgate.report.rules.rule import Level, Rule, Stage
from patchgate.report.rules.scope import MESSAGE_RULES, PLACEHOLDER_RULES, SCOPE_RULES, VERIFY_RULES

RULES: dict[str, Rule] = {
    rule.id: rule
    for rule in (
        *PATCH_RULES,
        *REPLY_RULES,
        *PATH_RULES,
        *POLICY_RULES,
        *CONTENT_RULES,
        *TRY_RULES,
        *APPLY_RULES,
        *REF_RULES,
        *CONTENT_OF_CONTRACT_RULES,
        *DEPENDENCY_RULES,
        *DRIFT_RULES,
        *STALENESS_RULES,
        *SCOPE_RULES,
        *VERIFY_RULES,
        *PLACEHOLDER_RULES,
        *MESSAGE_RULES,
    )
}

__all__ = ["RULES", "RULES_VERSION", "Level", "Rule", "Stage"]
