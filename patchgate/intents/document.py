"""Intents as JSON: `patchgate.intent/1`, what a verb did, and `patchgate.intents/1`, a list; their schemas.

Decides the keys alone. Every key is always there, null where there is nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from patchgate.intents.intent import Intent, Moment, State
from patchgate.intents.outcome import Action, Outcome
from patchgate.intents.states import Standing, Told
from patchgate.report.json import plain_json
from patchgate.report.json_paths import BASE64, BASE64_LIST, path_list, path_member, place_member
from patchgate.report.verdict import Json

INTENT_SCHEMA = "patchgate.intent/1"
INTENTS_SCHEMA = "patchgate.intents/1"


def outcome_json(outcome: Outcome) -> str:
    """Write what a verb did as one JSON document, ended by a line feed."""
    value: dict[str, Json] = {
        "schema": INTENT_SCHEMA,
        "action": outcome.action.value,
        "intent": None if outcome.told is None else _intent(outcome.told),
        "conflicts": [
            {
                "id": each.intent.id,
                "reason": each.intent.reason,
                **place_member("worktree", each.intent.work_tree),
                **path_list("entries", each.entries),
                "expires_at": _iso(each.told.until),
            }
            for each in outcome.conflicts
        ],
        "promoted": [each.id for each in outcome.promoted],
        "reason": outcome.reason,
        "hint": outcome.hint,
        "warnings": list(outcome.warnings),
    }
    return json.dumps(plain_json(value)) + "\n"


def list_json(intents: Sequence[Told], warnings: Iterable[str] = ()) -> str:
    """Write a list as one JSON document, ended by a line feed; `warnings` tell of what cannot be read."""
    value: dict[str, Json] = {
        "schema": INTENTS_SCHEMA,
        "intents": [_intent(each) for each in intents],
        "warnings": list(warnings),
    }
    return json.dumps(plain_json(value)) + "\n"


def _intent(told: Told) -> dict[str, Json]:
    intent = told.intent
    return {
        "id": intent.id,
        "state": told.standing.value,
        "stored_state": intent.state.value,
        "reason": intent.reason,
        **path_list("allowed", intent.scope.allowed),
        **path_list("related", intent.scope.related),
        **path_list("forbidden", (*intent.scope.forbidden, *told.controls)),
        **path_list("control_files", told.controls),
        **place_member("worktree", intent.work_tree),
        "is_here": told.is_here,
        "is_worktree_gone": told.is_gone,
        "base": intent.base,
        "tree": intent.tree,
        "analyses": intent.analyses,
        "before": intent.before,
        "digest": intent.digest,
        "declared_at": _iso(intent.declared.wall),
        "renewed_at": _at(intent.renewed),
        "seen_at": _at(intent.seen),
        "expires_at": _iso(told.until),
        "seconds_left": max(0, int(told.seconds_left)),
        "ttl": intent.ttl,
        "lease": intent.lease,
        "holder": _holder(intent, told),
        "dirty": [
            {**path_member("path", path), "oids": [*oids]} for path, oids in sorted(intent.dirty.items())
        ],
    }


def _holder(intent: Intent, told: Told) -> Json:
    holder = intent.holder
    return None if holder is None else {"host": holder.host, "pid": holder.pid, "is_running": told.is_held}


def _at(moment: Moment | None) -> str | None:
    return None if moment is None else _iso(moment.wall)


def _iso(seconds: float) -> str:
    """Write a time in UTC (ISO 8601); a clock that shows no year of four digits shows its first second."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "1970-01-01T00:00:00Z"


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_FLAG: dict[str, Any] = {"type": "boolean"}
_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


def intent_schema() -> dict[str, Any]:
    """Build the JSON Schema of what `intent declare`, `renew`, `clear` and `recover` write."""
    conflict = _object(
        {"id": _TEXT, "reason": _TEXT, "worktree": _TEXT, "entries": _TEXTS, "expires_at": _TEXT},
        {"worktree_b64": BASE64, "entries_b64": BASE64_LIST},
    )
    value = {
        "schema": {"const": INTENT_SCHEMA},
        "action": {"enum": [each.value for each in Action]},
        "intent": {"anyOf": [_one(), {"type": "null"}]},
        "conflicts": {"type": "array", "items": conflict},
        "promoted": _TEXTS,
        "reason": _MAYBE_TEXT,
        "hint": _MAYBE_TEXT,
        "warnings": _TEXTS,
    }
    return _document("intent", "What was done with an intent, or why not", value)


def intents_schema() -> dict[str, Any]:
    """Build the JSON Schema of what `intent list` and `intent show` write."""
    value = {
        "schema": {"const": INTENTS_SCHEMA},
        "intents": {"type": "array", "items": _one()},
        "warnings": _TEXTS,
    }
    return _document("intents", "Intents, the oldest first", value)


def _one() -> dict[str, Any]:
    holder = _object({"host": _TEXT, "pid": _NUMBER, "is_running": _FLAG})
    oids = {"type": "array", "items": _MAYBE_TEXT, "minItems": 1}
    dirty = _object({"path": _TEXT, "oids": oids}, {"path_b64": BASE64})
    lists = ("allowed", "related", "forbidden", "control_files")
    return _object(
        {
            **dict.fromkeys(("id", "reason", "worktree", "tree", "analyses", "digest"), _TEXT),
            **dict.fromkeys(("declared_at", "expires_at"), _TEXT),
            **dict.fromkeys(("base", "before", "renewed_at", "seen_at"), _MAYBE_TEXT),
            **dict.fromkeys(lists, _TEXTS),
            **dict.fromkeys(("is_here", "is_worktree_gone"), _FLAG),
            **dict.fromkeys(("seconds_left", "ttl", "lease"), _NUMBER),
            "state": {"enum": [each.value for each in Standing]},
            "stored_state": {"enum": [each.value for each in State]},
            "holder": {"anyOf": [holder, {"type": "null"}]},
            "dirty": {"type": "array", "items": dirty},
        },
        {"worktree_b64": BASE64, **{f"{name}_b64": BASE64_LIST for name in lists}},
    )


def _document(name: str, title: str, properties: dict[str, Any]) -> dict[str, Any]:
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:patchgate:{name}:1"}
    return {**first, "title": title, **_object(properties)}


def _object(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }
