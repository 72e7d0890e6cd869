"""Attempts as JSON: `patchgate.attempts/1`, a list, and `patchgate.attempt/1`, one; and their schemas.

Decides the keys alone. Every key is always there, null where nobody knows: of an attempt that was cut short
the ledger says nothing, and the marker in its folder little.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from patchgate.apply.attempt_list import STATES, Told, chain_of, log_tails
from patchgate.apply.attempts import AttemptRecord
from patchgate.apply.evidence_folders import contents
from patchgate.git.repository import Repository
from patchgate.report.json import BASE64, place_member, plain_json
from patchgate.report.verdict import Json

LIST_SCHEMA = "patchgate.attempts/1"
ATTEMPT_SCHEMA = "patchgate.attempt/1"


def list_json(known: Sequence[Told]) -> str:
    """Write the list as one JSON document, ended by a line feed."""
    return json.dumps({"schema": LIST_SCHEMA, "attempts": [_entry(each) for each in known]}) + "\n"


def show_json(repository: Repository, told: Told) -> str:
    """Write one attempt as one JSON document, ended by a line feed."""
    place = told.dir
    kept = contents(place) if place is not None else []
    value: dict[str, Json] = {
        "schema": ATTEMPT_SCHEMA,
        **_entry(told),
        "attempts_of_chain": [
            each.attempt for each in chain_of(repository, told) if isinstance(each, AttemptRecord)
        ],
        "evidence": [{"name": plain_json(name), "bytes": size} for name, size in kept],
        "logs": [
            {"name": plain_json(name), "tail": plain_json("\n".join(tail))}
            for name, tail in (log_tails(place, kept) if place is not None else [])
        ],
    }
    return json.dumps(value) + "\n"


_LACKING = AttemptRecord("", "", None, 0, "", False, False, False, "", "")


def _entry(told: Told) -> dict[str, Json]:
    """Give the keys of one attempt, every one of them present; null is what nobody knows."""
    plain = (told.record or _LACKING).plain()
    if told.record is None:
        says = dict(told.folder.says or {}) if told.folder is not None else {}
        plain = {**dict.fromkeys(plain), "rules": [], "files": []}
        says["source"] = says.get("kind")
        known = ("chain", "retry_of", "source", "patch_sha256", "work_tree")
        plain |= {key: each for key in known if isinstance(each := says.get(key), str)}
    plain |= {"attempt": told.id, "dir": told.dir}
    entry: dict[str, Json] = {
        "state": told.state,
        "at": told.at or None,
        "recovered": told.recovered,
        "is_recorded": told.record is not None,
    }
    work_tree = plain.get("work_tree")
    entry = plain | entry | place_member("dir", told.dir)
    entry |= place_member("work_tree", work_tree if isinstance(work_tree, str) else None)
    return {key: plain_json(value) for key, value in entry.items()}


_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_MAYBE_FLAG: dict[str, Any] = {"type": ["boolean", "null"]}
_PLACES: dict[str, Any] = {"dir_b64": BASE64, "work_tree_b64": BASE64}
_MAYBE_COUNT: dict[str, Any] = {"type": ["integer", "null"]}


def list_schema() -> dict[str, Any]:
    """Build the JSON Schema of `attempts list --format json`."""
    entry = _object(_entry_schema(), _PLACES)
    listed = {"schema": {"const": LIST_SCHEMA}, "attempts": {"type": "array", "items": entry}}
    return _document("attempts", "What was tried, the newest first", listed)


def show_schema() -> dict[str, Any]:
    """Build the JSON Schema of `attempts show --format json`."""
    kept = _object({"name": _TEXT, "bytes": {"type": "integer", "minimum": 0}})
    shown = {
        "schema": {"const": ATTEMPT_SCHEMA},
        **_entry_schema(),
        "attempts_of_chain": {"type": "array", "items": _TEXT},
        "evidence": {"type": "array", "items": kept},
        "logs": {"type": "array", "items": _object({"name": _TEXT, "tail": _TEXT})},
    }
    return _document("attempt", "One attempt, its chain and its evidence", shown, _PLACES)


def _document(
    name: str, title: str, properties: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:patchgate:{name}:1"}
    return {**first, "title": title, **_object(properties, optional)}


def _entry_schema() -> dict[str, Any]:
    sides = ("old_mode", "old_oid", "new_mode", "new_oid")
    file = _object({"path": _TEXT, **dict.fromkeys(sides, _MAYBE_TEXT)}, {"path_b64": _TEXT})
    texts = ("chain", "retry_of", "verdict", "source", "patch_sha256", "patch_id", "base", "after", "policy")
    more = ("stage", "code", "dir", "work_tree", "at", "recovered", "fallback_reason", "temp_path")
    return {
        "attempt": _TEXT,
        "state": {"enum": list(STATES)},
        "is_recorded": {"type": "boolean"},
        **dict.fromkeys((*texts, *more), _MAYBE_TEXT),
        **dict.fromkeys(("applied", "counts", "dry_run"), _MAYBE_FLAG),
        **dict.fromkeys(("number", "n_hunks", "added_lines", "removed_lines"), _MAYBE_COUNT),
        "rules": {"type": "array", "items": _TEXT},
        "files": {"type": "array", "items": file},
    }


def _object(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }
