"""What is shown of a verdict: the same that is kept, without secrets.

Decides which texts of a verdict are masked. Paths, ids, rules and numbers stay, for who reads the report acts
by them. It does not decide what is a secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchgate.ledger.masking import Masks
from patchgate.report.verdict import ChangeVerdict, Detail, Finding, Fix, GateOutcome

_SECRET = "secret"


def without_secrets(verdict: ChangeVerdict, masks: Masks) -> ChangeVerdict:
    """Mask what the findings and the gates of a verdict say."""
    return replace(
        verdict,
        gates=tuple(_gate(each, masks) for each in verdict.gates),
        circumstances=tuple(_gate(each, masks) for each in verdict.circumstances),
        findings=tuple(_finding(each, masks) for each in verdict.findings),
    )


def _gate(gate: GateOutcome, masks: Masks) -> GateOutcome:
    return gate if gate.reason is None else replace(gate, reason=masks.text(gate.reason))


def _finding(finding: Finding, masks: Masks) -> Finding:
    excerpt = finding.excerpt
    # The line of a `secret` is never shown, and its fingerprint is to be the one that a check gives.
    if excerpt is not None and finding.rule != _SECRET:
        excerpt = masks.raw(excerpt)
    return replace(
        finding,
        message=masks.text(finding.message),
        hint=None if finding.hint is None else masks.text(finding.hint),
        details={key: _detail(value, masks) for key, value in finding.details.items()},
        notes=tuple(masks.text(note) for note in finding.notes),
        fix=_fix(finding.fix, masks),
        excerpt=excerpt,
    )


def _detail(value: Detail, masks: Masks) -> Detail:
    if isinstance(value, str):
        return masks.text(value)
    if isinstance(value, Mapping):
        return {key: _detail(item, masks) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_detail(item, masks) for item in value]
    return value


def _fix(fix: Fix | None, masks: Masks) -> Fix | None:
    """Leave a fix out whose text holds a secret: with the mask in it, it would mend nothing."""
    if fix is None or fix.replace_with is None or masks.text(fix.replace_with) == fix.replace_with:
        return fix
    return None
