"""The JSON Schemas (draft 2020-12) of the report and of errors, made from the enumerations that they use."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from patchgate.git.model import Status
from patchgate.report.rules import RULES, Level, Stage
from patchgate.report.verdict import Fixer, Outcome, Verdict

REPORT_SCHEMA = "patchgate.report/1"
ERROR_SCHEMA = "patchgate.error/1"
SOURCES = ("staged", "worktree", "commit", "merge", "patch", "edits", "all", "message", "ref", "range")

_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_MAYBE_COUNT = {"type": ["integer", "null"], "minimum": 0}
_LINE = {"type": ["integer", "null"], "minimum": 1}
_DIGEST = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_OID = {"type": "string", "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$"}
_MAYBE_OID = {"anyOf": [_OID, {"type": "null"}]}
_MODE = {"type": ["string", "null"], "pattern": "^[0-7]{6}$"}
_BASE64 = {"type": "string", "contentEncoding": "base64"}
_BASE64_DETAIL = {
    "type": ["string", "array"],
    "contentEncoding": "base64",
    "description": "the bytes of the paths of the key without _b64; null where the text is exact",
}

Schema = dict[str, Any]


def json_schema() -> Schema:
    """Build the JSON Schema of `patchgate.report/1`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:patchgate:report:1",
        "title": "What patchgate says about one or more changes",
        **_object(
            {
                "schema": {"const": REPORT_SCHEMA},
                "tool": _object({"version": _TEXT, "rules": {"type": "integer", "minimum": 1}}),
                "verdict": _one_of(Verdict),
                "changes": _list({"$ref": "#/$defs/change"}),
                "attempt": _maybe(_attempt()),
                "failure": _maybe(_failure()),
                "retry": _maybe(_retry()),
                "warnings": _list(_TEXT),
                "ways_out": _list(_object({"message": _TEXT, "command": _TEXT})),
                "approve": _MAYBE_TEXT,
            }
        ),
        "$defs": {"change": _change(), "file": _file(), "gate": _gate(), "finding": _finding()},
    }


def error_schema() -> Schema:
    """Build the JSON Schema of `patchgate.error/1`, which ends a command without a verdict."""
    where = {"file": _TEXT, "line": _LINE, "key": _MAYBE_TEXT}
    mistake = _object({**where, "message": _TEXT, "hint": _MAYBE_TEXT})
    kinds = {"enum": ["config", "internal", "undecided", "usage"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:patchgate:error:1",
        "title": "What ended a command of patchgate without a verdict",
        **_object(
            {
                "schema": {"const": ERROR_SCHEMA},
                "error": _object(
                    {"kind": kinds, "message": _TEXT, "hint": _MAYBE_TEXT}, {"mistakes": _list(mistake)}
                ),
                "attempt": _maybe(_attempt()),
            }
        ),
    }


def _object(properties: Schema, optional: Schema | None = None) -> Schema:
    """Describe an object that has these keys, perhaps the optional ones, and no others."""
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _maybe(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(values: Iterable[StrEnum]) -> Schema:
    return {"enum": [value.value for value in values]}


def _change() -> Schema:
    stats = {"files": _COUNT, "n_hunks": _COUNT, "added_lines": _MAYBE_COUNT, "removed_lines": _MAYBE_COUNT}
    return _object(
        {
            "id": _DIGEST,
            "change_id": _DIGEST,
            "verdict": _one_of(Verdict),
            "source": _object({"kind": {"enum": list(SOURCES)}, "ref": _MAYBE_TEXT}),
            "profile": _TEXT,
            "base": _OID,
            "after": _OID,
            "commit": _MAYBE_OID,
            "base_commit": _MAYBE_OID,
            "policy": _object({"digest": _DIGEST, "from": _TEXT}),
            "stage": _maybe(_one_of(Stage)),
            "code": _maybe({"enum": sorted(stage.code for stage in Stage)}),
            "stats": _object({**stats, "patch_id": _MAYBE_TEXT}),
            "limits": {
                "type": "object",
                "additionalProperties": _object({"limit": _MAYBE_COUNT, "used": _COUNT}),
            },
            "files": _list({"$ref": "#/$defs/file"}),
            "gates": _list({"$ref": "#/$defs/gate"}),
            "circumstances": _list({"$ref": "#/$defs/gate"}),
            "findings": _list({"$ref": "#/$defs/finding"}),
        }
    )


def _file() -> Schema:
    return _object(
        {
            "path": {**_TEXT, "description": "as git quotes it where path_b64 stands beside it"},
            "old_path": _MAYBE_TEXT,
            "status": _one_of(Status),
            "old_mode": _MODE,
            "new_mode": _MODE,
            "added_lines": _MAYBE_COUNT,
            "removed_lines": _MAYBE_COUNT,
            "binary": {"type": "boolean"},
        },
        {"path_b64": _BASE64, "old_path_b64": _BASE64},
    )


def _gate() -> Schema:
    return _object({"gate": _TEXT, "outcome": _one_of(Outcome)}, {"reason": _TEXT})


def _finding() -> Schema:
    details: Schema = {
        "type": "object",
        "properties": {
            "pattern": True,
            "limit": True,
            "actual": True,
            "split": {"type": "array", "items": {"type": "array", "items": _TEXT}},
            "too_large": {"type": "array", "items": _TEXT},
            "worktree": _TEXT,
        },
        "patternProperties": {"_b64$": _BASE64_DETAIL},
        "required": ["pattern", "limit", "actual"],
    }
    line = {"type": "integer", "minimum": 1}
    fix = {
        "applicability": _TEXT,
        "patch_line": line,
        "last_patch_line": line,
        "replace_with": {**_MAYBE_TEXT, "description": "null leaves the lines out"},
    }
    return _object(
        {
            "rule": {"enum": sorted(RULES)},
            "stage": _one_of(Stage),
            "code": {"enum": sorted(stage.code for stage in Stage)},
            "level": _one_of(Level),
            "path": _MAYBE_TEXT,
            "line": _LINE,
            "side": {"enum": ["new", "old"]},
            "message": _TEXT,
            "hint": _MAYBE_TEXT,
            "who_can_fix": _one_of(Fixer),
            "fix": _maybe(_object(fix)),
            "details": details,
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
        {"path_b64": _BASE64},
    )


def _attempt() -> Schema:
    keys = {"id": _TEXT, "dir": _MAYBE_TEXT, "applied": {"type": "boolean"}}
    keys |= {"fallback_reason": _MAYBE_TEXT, "temp_path": _MAYBE_TEXT}
    return _object(keys, {"dir_b64": _BASE64, "temp_path_b64": _BASE64})


def _failure() -> Schema:
    counts = {"n_hunks": _COUNT, "added_lines": _MAYBE_COUNT, "removed_lines": _MAYBE_COUNT}
    return _object(
        {
            "stage": _maybe(_one_of(Stage)),
            "code": _maybe({"enum": sorted(stage.code for stage in Stage)}),
            "fallback_reason": {**_MAYBE_TEXT, "description": "the rule, else the gate without an answer"},
            "patch_id": _MAYBE_TEXT,
            **counts,
            "temp_path": _MAYBE_TEXT,
        },
        {"temp_path_b64": _BASE64},
    )


def _retry() -> Schema:
    keys = {"allowed": {"type": "boolean"}, "number": _COUNT, "of": _MAYBE_COUNT}
    return _object({**keys, "command": _MAYBE_TEXT, "chain": _MAYBE_TEXT, "why": _MAYBE_TEXT})
