"""The report as SARIF 2.1.0, for code scanning and other readers of analysis results.

Decides how findings become results. Sources: OASIS SARIF 2.1.0, sections 3.4 (artifact locations), 3.11
(messages), 3.20 (invocations), 3.27 (results); GitHub's documentation of what its code scanning reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote_from_bytes

from patchgate import __version__
from patchgate.git.path import RepoPath
from patchgate.report import wording
from patchgate.report.json import json_line, path_member
from patchgate.report.rules import RULES, Rule
from patchgate.report.verdict import ChangeVerdict, Finding, Json, Report, fingerprints

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
BASES: Json = {ROOT: {"description": {"text": "The root of the repository."}}}
FINGERPRINT = "patchgate/v1"

_RULE_INDEX = {rule: index for index, rule in enumerate(RULES)}


def render(report: Report) -> str:
    """Write a report as a SARIF log of one run: one line of ASCII, ended by a line feed."""
    driver: Json = {
        "name": "patchgate",
        "version": __version__,
        "rules": [_rule(rule) for rule in RULES.values()],
    }
    run: Json = {
        "tool": {"driver": driver},
        # GitHub takes the text before the last slash as the category: one for each tool.
        "automationDetails": {"id": "patchgate/"},
        "invocations": [_invocation(report)],
        "originalUriBaseIds": BASES,
        "columnKind": "unicodeCodePoints",
        "results": [result for change in report.changes for result in _results(change)],
        "properties": {
            "verdict": report.verdict.value,
            "changes": [
                {
                    "id": change.id,
                    "verdict": change.verdict.value,
                    "commit": change.source.commit,
                    "policy": change.policy.digest,
                }
                for change in report.changes
            ],
            # Accepted without a verdict on each.
            "cleared": report.n_judged - len(report.changes),
        },
    }
    return log_of([run])


def log_of(runs: Sequence[Json]) -> str:
    """Write runs as a SARIF log: one line of ASCII, ended by a line feed."""
    return json_line({"$schema": SCHEMA, "version": "2.1.0", "runs": runs})


def notification(level: str, text: str) -> dict[str, Json]:
    """Write a notification about the run (section 3.58)."""
    return {"level": level, "message": {"text": message_text(text)}}


def _rule(rule: Rule) -> Json:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": f"{rule.summary} {rule.reason}"},
        "help": {"text": f"{rule.help}\nExample: {rule.example}"},
        "defaultConfiguration": {"level": rule.level.value},
        "properties": {
            "stage": rule.stage.value,
            "code": rule.code,
            "gate": rule.gate,
            "invariant": rule.invariant,
        },
    }


def _invocation(report: Report) -> Json:
    """Describe the run itself: it failed where a gate has no outcome, and the notifications name it."""
    notifications: list[Json] = []
    complete = True
    for change in report.changes:
        for gate in wording.gates_without_outcome(change):
            complete = False
            text = f"{wording.name_change(change)}: {wording.describe_gate(gate)}"
            notifications.append({**notification("error", text), "properties": {"gate": gate.gate}})
    notifications += [notification("warning", text) for text in report.warnings]
    return {
        "executionSuccessful": complete,
        "exitCode": report.verdict.exit_code,
        "toolExecutionNotifications": notifications,
    }


def _results(change: ChangeVerdict) -> Iterator[Json]:
    for finding, mark in zip(change.findings, fingerprints(change.findings), strict=True):
        rule = finding.definition
        result: dict[str, Json] = {
            "ruleId": rule.id,
            "ruleIndex": _RULE_INDEX[rule.id],
            "level": finding.level.value,
            "message": {"text": message_text(finding.message)},
            "partialFingerprints": {FINGERPRINT: mark},
            "properties": {
                "stage": rule.stage.value,
                "code": rule.code,
                "hint": wording.hint_of(finding),
                "who_can_fix": finding.who_can_fix.value,
                "side": finding.side,
                "line": finding.line,
                **path_member("path", finding.path),
                "commit": change.source.commit,
                "change": change.id,
            },
        }
        location = _location(finding)
        if location is not None:
            result["locations"] = [location]
        yield result


def _location(finding: Finding) -> Json:
    """Place a finding; a line of the base has no region, for the file as it is now has other lines."""
    if finding.path is None:
        return None
    return location_of(finding.path, finding.line if finding.side == "new" else None)


def location_of(path: RepoPath, line: int | None) -> Json:
    """Write a location; None if a reader that resolves the path as a URI would leave the repository."""
    if not _is_below_root(path):
        return None
    # Bytes outside RFC 3986's unreserved set are escaped, so a colon makes no scheme of the first folder.
    uri = quote_from_bytes(path.raw, safe="/")
    physical: dict[str, Json] = {"artifactLocation": {"uri": uri, "uriBaseId": ROOT}}
    if line is not None:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def _is_below_root(path: RepoPath) -> bool:
    """Return whether a reader that resolves the path as a URI would stay inside the repository."""
    return not {b"", b".", b".."} & set(path.raw.split(b"/"))


def message_text(message: str) -> str:
    """Write a message so that no name in it becomes a link: `](` is what makes one (section 3.11.6)."""
    return message.replace("](", "\\](")
