"""What a rule means in detail: the patterns of the classes of files, the forms of secrets."""

from __future__ import annotations

from patchgate.policy.content_rules import SECRET_FORMS
from patchgate.policy.file_kinds import CLASSES


def rule_details(rule: str) -> str:
    """Write what a rule looks for; nothing for most rules."""
    if rule == "deny-class":
        return "".join(f"\n{name}: {' '.join(patterns)}\n" for name, patterns in CLASSES.items())
    if rule == "secret":
        return "\nforms: " + ", ".join(form.name for form in SECRET_FORMS) + "\n"
    return ""
