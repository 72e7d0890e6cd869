"""What a rule means, as text, by the registry alone.

What the policy knows of a rule besides is in `policy.rule_details`; which line decides about a path, in
`check.effective_policy`.
"""

from __future__ import annotations

import difflib
import textwrap

from patchgate.errors import UsageError
from patchgate.report.rules import RULES, Rule

DETAILED = frozenset({"deny-class", "secret"})
"""The rules of which the policy knows more."""
_LISTED = 68


def rule_text(name: str) -> str:
    """Write what a rule means: level, reason, example, next step, and how it is turned off.

    Raises:
        UsageError: there is no such rule.
    """
    rule = RULES.get(name)
    if rule is None:
        close = difflib.get_close_matches(name, RULES, n=1)
        raise UsageError(
            "unknown rule",
            f"did you mean {close[0]}?" if close else "git patchgate explain lists all rules",
        )
    about = f"{rule.level.value}, stage {rule.stage.value}, code {rule.code}, gate {rule.gate}"
    lines = [
        f"{rule.id} ({about})",
        "",
        rule.summary,
        "",
        f"why:     {rule.reason}",
        f"example: {rule.example}",
        f"help:    {rule.help}",
    ]
    return "\n".join(lines) + "\n" + _more_on(rule)


def _more_on(rule: Rule) -> str:
    text = ""
    if rule.gate == "owners":
        text += (
            "\nThis rule is an invariant: no level turns it off, only the approvals of owners satisfy it.\n"
        )
    elif rule.invariant:
        text += "\nThis rule is an invariant: no policy, level, approval or suppression can turn it off.\n"
    else:
        text += f'\nSet its level: [rules] {rule.id} = "error", "warning", "note" or "off".\n'
    if rule.inline:
        text += (
            f"Allow one line (commit profile only) by a comment on it: patchgate: allow {rule.id} REASON\n"
        )
    return text


def list_rules() -> str:
    """Write one line for each rule, by stage."""
    width = max(len(name) for name in RULES)
    stages: dict[str, list[str]] = {}
    for rule in RULES.values():
        lines = stages.setdefault(f"{rule.stage.value} ({rule.code})", [])
        what = textwrap.shorten(rule.summary, _LISTED, placeholder=" …")
        lines.append(f"  {rule.id:<{width}}  {rule.level.value:<7}  {what}\n")
    listed = "\n".join(f"{stage}\n{''.join(lines)}" for stage, lines in stages.items())
    return f"{listed}\ngit patchgate explain RULE explains one\n"
