"""The report as JSON, `patchgate.report/2`, and what every JSON document shares: plain values, paths as text.

If a path is not UTF-8 or has control characters, `path` is as git quotes it, and `path_b64` has its bytes.
If a list `files` has such a path, a list `files_b64` is next to it, with null for all other paths. In
`details`, where lists can be nested, null is also the entry for a list of exact paths.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from patchgate import __version__
from patchgate.errors import ConfigError, PatchgateError, ended_attempt
from patchgate.git.model import GITLINK, FileChange, Status
from patchgate.git.path import RepoPath
from patchgate.git.quoting import exact_text, quote_path, safe_json
from patchgate.report import wording
from patchgate.report.rules import RULES_VERSION
from patchgate.report.schema import ERROR_SCHEMA, REPORT_SCHEMA
from patchgate.report.verdict import (
    REPAIR_RULE,
    Attempt,
    ChangeVerdict,
    Detail,
    Finding,
    GateOutcome,
    Json,
    Report,
    Retry,
    Verdict,
    fingerprints,
)
from patchgate.values import dataclass


def path_member(key: str, path: RepoPath | None) -> dict[str, Json]:
    """Write a path of a repository under a key."""
    if path is None:
        return {key: None}
    encoded = _encoded(path.raw)
    return {key: as_text(path)} if encoded is None else {key: as_text(path), f"{key}_b64": encoded}


def place_member(key: str, place: str | None) -> dict[str, Json]:
    """Write a place of the file system under a key."""
    return path_member(key, None if place is None else RepoPath(place.encode("utf-8", "surrogateescape")))


def path_list(key: str, paths: Sequence[RepoPath]) -> dict[str, Json]:
    """Write paths of a repository under a key, in their order."""
    encoded: list[Json] = [_encoded(path.raw) for path in paths]
    found: dict[str, Json] = {key: [as_text(path) for path in paths]}
    return {**found, f"{key}_b64": encoded} if any(encoded) else found


def with_paths(details: Mapping[str, Detail]) -> dict[str, Json]:
    """Write the paths among the details of a finding, at any depth; everything else stays."""
    found: dict[str, Json] = {}
    for key, value in details.items():
        found[key], encoded = _written(value)
        if encoded is not None:
            found[f"{key}_b64"] = encoded
    return found


def _written(value: Detail) -> tuple[Json, Json]:
    """Write a detail, with the bytes of its paths; None if the text is exact."""
    if isinstance(value, RepoPath):
        return as_text(value), _encoded(value.raw)
    if isinstance(value, Mapping):
        return with_paths(value), None
    if isinstance(value, Sequence) and not isinstance(value, str):
        both = [_written(item) for item in value]
        beside = [encoded for _, encoded in both]
        return [text for text, _ in both], beside if any(beside) else None
    return value, None


def as_text(path: RepoPath) -> str:
    """Write a path as text alone, for a format that has no place for its bytes."""
    text = exact_text(path.raw)
    return quote_path(path.raw) if text is None else text


def _encoded(raw: bytes) -> str | None:
    return None if exact_text(raw) is not None else b2a_base64(raw, newline=False).decode("ascii")


def render(report: Report) -> str:
    """Write a report as one line of JSON, ended by a line feed."""
    return safe_json(json.dumps(document(report))) + "\n"


def error_document(error: PatchgateError) -> str:
    """Write what ended a command without a verdict as one line of JSON; a config error lists its mistakes."""
    body: dict[str, Json] = {"kind": error.kind, "message": error.message, "hint": error.hint}
    ended = ended_attempt(error)
    if isinstance(error, ConfigError):
        keys = ("file", "line", "key", "message", "hint")
        body["mistakes"] = [{key: getattr(each, key) for key in keys} for each in error.mistakes]
    attempt = (
        None
        if ended is None
        else Attempt(
            id=ended.id, dir=ended.dir, applied=False, fallback_reason=error.kind, temp_path=ended.temp_path
        )
    )
    whole = {"schema": ERROR_SCHEMA, "error": body, "attempt": _attempt(attempt)}
    return json_line(whole)


def document(report: Report) -> dict[str, Json]:
    """Build the object that `render` writes, of plain dicts and lists."""
    changes = [_change(change) for change in report.changes]
    return {
        "schema": REPORT_SCHEMA,
        "tool": {"version": __version__, "rules": RULES_VERSION},
        "verdict": report.verdict.value,
        "changes": changes,
        "attempt": _attempt(report.attempt),
        "failure": _failure(report, changes),
        "retry": _retry(report.retry),
        "warnings": [plain_json(warning) for warning in report.warnings],
        "recovery": [
            {"message": plain_json(way.message), "command": plain_json(way.command)}
            for way in report.recovery
        ],
        "approve": plain_json(report.approve),
    }


def _attempt(attempt: Attempt | None) -> Json:
    if attempt is None:
        return None
    return {
        "id": attempt.id,
        **place_member("dir", attempt.dir),
        "applied": attempt.applied,
        "fallback_reason": attempt.fallback_reason,
        **place_member("temp_path", attempt.temp_path),
    }


def _failure(report: Report, changes: Sequence[Mapping[str, Json]]) -> Json:
    """Return why the first refused or undecided change was not accepted, for telemetry."""
    if report.verdict is Verdict.ACCEPTED:
        return None
    number = next(at for at, each in enumerate(report.changes) if each.verdict is report.verdict)
    plain, stats = changes[number], changes[number]["stats"]
    assert isinstance(stats, Mapping)
    return {
        "stage": plain["stage"],
        "code": plain["code"],
        "fallback_reason": report.changes[number].fallback_reason,
        **{name: stats[name] for name in ("patch_id", "n_hunks", "added_lines", "removed_lines")},
        **place_member("temp_path", report.attempt.temp_path if report.attempt else None),
    }


def _retry(retry: Retry | None) -> Json:
    if retry is None:
        return None
    return {
        "allowed": retry.allowed,
        "number": retry.number,
        "of": retry.of,
        "command": plain_json(retry.command),
        "chain": plain_json(retry.chain),
        "reason": plain_json(retry.reason),
    }


def json_line(value: Json) -> str:
    """Write a value as one line of JSON in pure ASCII, ended by a line feed."""
    return safe_json(json.dumps(plain_json(value))) + "\n"


def plain_json(value: Json) -> Json:
    """Turn a value into plain dicts, lists and valid Unicode; a number that JSON lacks becomes null.

    A lone surrogate (a byte that is not UTF-8) becomes a visible escape.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(plain_json(key)): plain_json(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain_json(item) for item in value]
    return value


def _change(verdict: ChangeVerdict) -> dict[str, Json]:
    change = verdict.change
    decisive = verdict.decisive
    rows = list(_rows(verdict))
    return {
        "id": verdict.id,
        "change_id": verdict.change_id,
        "verdict": verdict.verdict.value,
        "source": {"kind": verdict.source.kind, "ref": plain_json(verdict.source.ref)},
        "profile": verdict.profile,
        "profile_reason": verdict.profile_reason or None,
        "base": change.base,
        "after": change.after,
        "commit": verdict.source.commit,
        "base_commit": verdict.source.base_commit,
        "policy": {"digest": verdict.policy.digest, "from": plain_json(verdict.policy.origin)},
        "stage": decisive.definition.stage.value if decisive else None,
        "code": decisive.definition.code if decisive else None,
        "stats": {
            "files": len(rows),
            "n_hunks": verdict.n_hunks if verdict.n_hunks is not None else sum(row.n_hunks for row in rows),
            "added_lines": _total([row.added_lines for row in rows if row.counts]),
            "removed_lines": _total([row.removed_lines for row in rows if row.counts]),
            "patch_id": verdict.patch_id,
        },
        "limits": {name: {"limit": it.limit, "used": it.used} for name, it in verdict.limits.items()},
        "files": [row.json for row in rows],
        "gates": [_gate(gate) for gate in verdict.gates],
        "context_gates": [_gate(gate) for gate in verdict.context_gates],
        "findings": finding_documents(verdict.findings),
        "repaired": [
            {"patch_line": plain_json(with_paths(each.details).get("patch_line")), "message": each.message}
            for each in verdict.findings
            if each.rule == REPAIR_RULE
        ],
    }


def finding_documents(findings: Sequence[Finding]) -> list[Json]:
    """Build the objects of `findings`, each with its fingerprint among them."""
    marks = fingerprints(findings)
    return [_finding(finding, mark) for finding, mark in zip(findings, marks, strict=True)]


@dataclass(frozen=True, slots=True)
class _Row:
    """One entry of `files`. `counts` is false if the entry has no lines (binary files, submodules)."""

    json: Json
    n_hunks: int
    added_lines: int | None
    removed_lines: int | None
    counts: bool


def _rows(verdict: ChangeVerdict) -> Iterator[_Row]:
    """Return the entries of `files`: an exact rename is one, under its new path."""
    renames = verdict.change.renames
    moved = set(renames.values())
    for file in verdict.change.files:
        if file.path in moved and file.new is None:
            continue
        yield _row(file, renames.get(file.path))


def _row(file: FileChange, old_path: RepoPath | None) -> _Row:
    # A diff without rename detection counts every line of a moved file; an exact rename changes none.
    added, removed, hunks = file.added_lines, file.removed_lines, file.n_hunks
    if file.binary:
        added = removed = None
    elif old_path is not None:
        added = removed = hunks = 0
    old_mode = file.old.mode if file.old else None
    new_mode = file.new.mode if file.new else None
    value: Json = {
        **path_member("path", file.path),
        **path_member("old_path", old_path),
        "status": (file.status if old_path is None else Status.RENAMED).value,
        "old_mode": old_mode if old_path is None else new_mode,
        "new_mode": new_mode,
        "added_lines": added,
        "removed_lines": removed,
        "binary": file.binary,
    }
    counts = not file.binary and GITLINK not in {old_mode, new_mode}
    return _Row(value, n_hunks=hunks, added_lines=added, removed_lines=removed, counts=counts)


def _total(numbers: Sequence[int | None]) -> int | None:
    """Add up counts of lines; a missing one makes the sum unknown, because zero would be a claim."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _gate(gate: GateOutcome) -> dict[str, Json]:
    reason = {} if gate.reason is None else {"reason": plain_json(gate.reason)}
    return {"gate": gate.gate, "outcome": gate.outcome.value, **reason}


def _finding(finding: Finding, fingerprint: str) -> dict[str, Json]:
    rule = finding.definition
    fix: Json = None
    if finding.fix is not None:
        fix = {
            "applicability": finding.fix.applicability,
            "patch_line": finding.fix.patch_line,
            "last_patch_line": finding.fix.last_patch_line or finding.fix.patch_line,
            "replace_with": plain_json(finding.fix.replace_with),
        }
    return {
        "rule": rule.id,
        "stage": rule.stage.value,
        "code": rule.code,
        "level": finding.level.value,
        **path_member("path", finding.path),
        "line": finding.line,
        "side": finding.side,
        "message": plain_json(finding.message),
        "hint": plain_json(wording.hint_of(finding)),
        "who_can_fix": finding.who_can_fix.value,
        "fix": fix,
        "details": plain_json(
            {"pattern": None, "limit": None, "actual": None, **with_paths(finding.details)}
        ),
        "fingerprint": fingerprint,
    }
