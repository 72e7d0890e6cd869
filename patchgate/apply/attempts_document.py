"""Attempts as JSON: `patchgate.attempts/1`, a list, and `patchgate.attempt/1`, one; and their schemas.

Decides the keys alone. Every key is always there, null where nobody knows: of an attempt that was cut short
the ledger says nothing, and the marker in its folder little.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from patchgate.apply.attempt_list import STATES, Told, chain_of, log_tails
from patchgate.apply.attempts import AttemptRecord
from patchgate.apply.evidence_folders import contents
from patchgate.git.repository import Repository
from patchgate.report.json import place_member, plain_json
from patchgate.report.schema import (
    COUNT,
    Schema,
    Shape,
    document_schema,
    one_of,
    path_key,
)
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


_ENTRY: dict[str, Shape] = {
    "attempt": str,
    "state": one_of(*STATES),
    "is_recorded": bool,
    **dict.fromkeys(("chain", "retry_of", "verdict", "source", "patch_sha256", "patch_id"), str | None),
    **dict.fromkeys(("base", "after", "policy", "stage", "code"), str | None),
    **path_key("dir", str | None),
    **path_key("work_tree", str | None),
    **dict.fromkeys(("at", "recovered", "fallback_reason", "temp_path"), str | None),
    **dict.fromkeys(("applied", "counts", "dry_run"), bool | None),
    **dict.fromkeys(("number", "n_hunks", "added_lines", "removed_lines"), int | None),
    "rules": [str],
    "files": [
        {
            "path": str,
            **dict.fromkeys(("old_mode", "old_oid", "new_mode", "new_oid"), str | None),
            "path_b64?": str,
        }
    ],
}


def list_schema() -> Schema:
    """Build the JSON Schema of `attempts list --format json`."""
    return document_schema(LIST_SCHEMA, "What was tried, the newest first", {"attempts": [_ENTRY]})


def show_schema() -> Schema:
    """Build the JSON Schema of `attempts show --format json`."""
    shown: dict[str, Shape] = {
        **_ENTRY,
        "attempts_of_chain": [str],
        "evidence": [{"name": str, "bytes": COUNT}],
        "logs": [{"name": str, "tail": str}],
    }
    return document_schema(ATTEMPT_SCHEMA, "One attempt, its chain and its evidence", shown)
