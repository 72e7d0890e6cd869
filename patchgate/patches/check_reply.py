"""Check an agent's raw reply: first against the protocol, then what it proposes, as `check` does.

A reply that breaks the protocol is refused by its rules, and its patch is not read. Nothing is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from patchgate.patches.patch_model import Fault
from patchgate.patches.reply_actions import DESCRIBE_SCHEMA, read_reply
from patchgate.patches.reply_grammar import ParameterKind, ParsedReply
from patchgate.report.json import document, finding_documents, plain_json
from patchgate.report.schema import COUNT, Schema, Shape, about, document_schema, maybe
from patchgate.report.schema import json_schema as report_schema
from patchgate.report.verdict import Finding, Json, Report, Verdict
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.git.repository import Repository

REPLY_SCHEMA = "patchgate.reply/2"


@dataclass(frozen=True, slots=True)
class ReplyVerdict:
    """What was read, the findings of the protocol, and the report on the proposed change, if any."""

    reading: ParsedReply
    refusals: tuple[Finding, ...]
    report: Report | None

    @property
    def verdict(self) -> Verdict:
        """Rejected if the protocol is broken, else the report's verdict; accepted if nothing is proposed."""
        if self.refusals:
            return Verdict.REJECTED
        return self.report.verdict if self.report is not None else Verdict.ACCEPTED


def check_reply(
    raw: bytes, here: Callable[[], Repository], *, base: str | None = None, now: float | None = None
) -> ReplyVerdict:
    """Check a raw reply against the protocol, and what it proposes against the policy.

    Args:
        raw: the reply, byte for byte.
        here: opens the repository; called only for a valid reply that proposes a change.
        base: the revision that the change was made for; None applies it to the files on disk.
        now: seconds since the epoch.

    Raises:
        UsageError: there is no repository, or the revision is unknown.
        UndecidedError: something could not be read.
    """
    reading = read_reply(raw)
    refusals = tuple(finding_of(fault) for fault in reading.faults)
    if refusals or reading.proposal is None:
        return ReplyVerdict(reading, refusals, None)
    repository = here()
    from patchgate.check.policy_lookup import trusted_options
    from patchgate.patches.check_patch import check_patch

    raw, kind = reading.proposal.raw, reading.proposal.kind
    asked = replace(trusted_options(repository), in_full=True)
    report = check_patch(repository, raw, asked, base=base, kind=kind, now=now)
    return ReplyVerdict(reading, (), report)


def finding_of(fault: Fault) -> Finding:
    """Turn a fault of a reply into a finding; `details.reply_line` is its line, counted from 1."""
    details = {**fault.details, "reply_line": fault.line}
    message = fault.message if fault.line is None else f"reply line {fault.line}: {fault.message}"
    return Finding.of(fault.rule, message, hint=fault.hint, details=details)


def reply_document(judged: ReplyVerdict) -> dict[str, Json]:
    """Write `patchgate.reply/2`; `findings` are the protocol's, or else those of the report."""
    report = None if judged.report is None else document(judged.report)
    changes = () if judged.report is None else judged.report.changes
    findings = (*judged.refusals, *(finding for change in changes for finding in change.findings))
    return {
        "schema": REPLY_SCHEMA,
        "verdict": judged.verdict.value,
        "action": judged.reading.action,
        "params": plain_json(judged.reading.params),
        "notes": list(judged.reading.notes),
        "findings": finding_documents(findings),
        "report": report,
    }


def json_schema() -> Schema:
    """Build the JSON Schema of `patchgate.reply/2`."""
    report = report_schema()
    body = {key: report[key] for key in ("type", "properties", "required", "additionalProperties")}
    reply: dict[str, Shape] = {
        "verdict": Verdict,
        "action": about(str | None, "null where it is unknown"),
        "params": Schema(type="object", description="what could be read, defaults included"),
        "notes": [str],
        "findings": [Schema({"$ref": "#/$defs/finding"})],
        "report": maybe(Schema(body)),
    }
    schema = document_schema(REPLY_SCHEMA, "What patchgate says about an agent's reply", reply)
    return Schema(schema, **{"$defs": report["$defs"]})


def actions_schema() -> Schema:
    """Build the JSON Schema of `agent reply --describe --format json`."""
    parameter: Shape = {
        "name": str,
        "kind": ParameterKind,
        "json": about(bool, "the value is JSON"),
        "required": bool,
        "default": Schema(),
        "minimum": int | None,
        "maximum": int | None,
        "description": str,
    }
    action: Shape = {
        "name": str,
        "description": str,
        "parameters": [parameter],
        "one_of": about([[str]], "of each list exactly one parameter must be given"),
        "example": str,
    }
    actions: dict[str, Shape] = {"max_bytes": COUNT, "actions": [action]}
    return document_schema(DESCRIBE_SCHEMA, "The actions that an agent's reply may take", actions)
