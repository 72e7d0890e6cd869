"""Intents as text and as JSON (`patchgate.intent/*`, `patchgate.intents/*`), and the schemas of both.

Every JSON key is always present; null means nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence

from patchgate.git.path import RepoPath
from patchgate.git.quoting import quote_path
from patchgate.intents.intent import Intent, Moment, State, can_match_many, is_folder
from patchgate.intents.intent_status import IntentAction, IntentInfo, IntentOutcome, IntentStatus
from patchgate.ledger.ledger import iso
from patchgate.ledger.timestamps import iso_if_any
from patchgate.policy.file_kinds import PYPROJECT_FILE
from patchgate.report.json import json_line, path_list, path_member, place_member
from patchgate.report.schema import (
    COUNT,
    Schema,
    Shape,
    about,
    document_schema,
    map_of,
    maybe,
    path_key,
    path_keys,
)
from patchgate.report.verdict import Json
from patchgate.report.wording import SHORT_OID, count, format_duration, safe, show_path, some

_MOST_FILES = 20
_MOST_ENTRIES = 3
_MOST_PLACE = 4096


def outcome_text(outcome: IntentOutcome) -> list[str]:
    """Describe what an action did, and for a refusal the intents that block it."""
    intent = outcome.intent
    lines = [_did(outcome, outcome.info)]
    lines += [
        f"  {each.intent.id} has {some(each.entries, _MOST_ENTRIES)}: {safe(each.intent.reason, 200)} "
        f"({_where(each.info)}; {_until(each.info)})"
        for each in outcome.conflicts
    ]
    lines += [
        f"{each.id} is active now: {safe(each.reason, 200)}"
        for each in outcome.promoted
        if intent is None or each.id != intent.id
    ]
    if outcome.action is IntentAction.DECLARED and intent is not None:
        lines.append(f"commits here may touch only {_what(intent)} until git patchgate intent clear")
    return lines


def _did(outcome: IntentOutcome, info: IntentInfo | None) -> str:
    if outcome.action is IntentAction.REFUSED:
        return f"refused: {outcome.reason}"
    if info is None:
        return "cleared"
    name = f"{outcome.action.value} {info.intent.id}"
    if outcome.action is IntentAction.CLEARED:
        return name
    if info.intent.state is State.QUEUED:
        name += (
            "; until these are cleared, commits here may touch only files that they do not have"
            if outcome.conflicts
            else "; waits in the queue"
        )
    return f"{name} ({_until(info)})"


def show_text(info: IntentInfo) -> list[str]:
    """Write one intent in full."""
    intent = info.intent
    lines = [f"{intent.id} ({info.status.value}): {safe(intent.reason)}", f"  time: {_until(info)}"]
    lines += [
        f"  {name}: {show_path(path)}"
        for name, paths in (
            ("allowed", intent.scope.allowed),
            ("related", intent.scope.related),
            ("forbidden", intent.scope.forbidden),
        )
        for path in paths
    ]
    lines += [f"  forbidden: {show_path(path)} ({_why_controlled(path)})" for path in info.controls]
    lines += [f"  budget: {left}" for left in info.budget]
    lines.append(f"  worktree: {_where(info)}")
    lines.append(f"  began on: {'no commit' if intent.base is None else intent.base[:SHORT_OID]}")
    lines.append(f"  owner: {_owner(info)}")
    if intent.renewed is not None:
        lines.append(f"  renewed: {_local(intent.renewed.wall)}")
    lines.append(f"  before-report: {'none' if intent.before is None else safe(intent.before)}")
    dirty = sorted(intent.dirty)
    lines += [f"  dirty before: {show_path(path)}" for path in dirty[:_MOST_FILES]]
    if len(dirty) > _MOST_FILES:
        lines.append(f"  and {len(dirty) - _MOST_FILES} more dirty before")
    if info.is_gone or info.status in {IntentStatus.EXPIRED, IntentStatus.DEAD}:
        lines.append(
            f"  next: git patchgate intent recover {intent.id}, or git patchgate intent clear {intent.id}"
        )
    return lines


def _why_controlled(path: RepoPath) -> str:
    if path == PYPROJECT_FILE:
        return "its table [tool.patchgate]"
    return "control files, all except baselines/" if is_folder(path) else "a control file"


def list_text(intents: Sequence[IntentInfo]) -> Iterator[str]:
    """Write one line for each intent."""
    for info in intents:
        files = some((*info.intent.scope.allowed, *info.intent.scope.related), _MOST_ENTRIES)
        yield (
            f"{info.intent.id}  {info.status.value:<7}  {_until(info)}, {_owner(info)}; {files}; "
            f"{_where(info)}: {safe(info.intent.reason, 200)}"
        )


def _what(intent: Intent) -> str:
    entries = (*intent.scope.allowed, *intent.scope.related)
    if any(can_match_many(each) for each in entries):
        return some(entries, _MOST_ENTRIES)
    return count(len(entries), "file")


def _where(info: IntentInfo) -> str:
    if info.is_in_current_worktree:
        return "this worktree"
    place = safe(quote_path(os.fsencode(info.intent.work_tree)), _MOST_PLACE)
    if info.is_foreign:
        return f"{place}; this repository was moved or copied since"
    return f"{place} (gone)" if info.is_gone else place


def _owner(info: IntentInfo) -> str:
    owner = info.intent.owner
    if owner is None:
        return "none, only its lease"
    return f"process {owner.pid} on {safe(owner.host, 100)}" + (
        "" if info.is_owner_running else ", which has ended"
    )


def _until(info: IntentInfo) -> str:
    """Describe when an intent expires: in how long, and at what time."""
    if info.seconds_left <= 0:
        return "expired"
    return f"expires in {format_duration(info.seconds_left)}, at {_local(info.until)}"


def _local(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "an impossible time"


INTENT_SCHEMA = "patchgate.intent/2"
INTENTS_SCHEMA = "patchgate.intents/2"


def outcome_json(outcome: IntentOutcome) -> str:
    """Write what an action did as one JSON document, ended by a line feed."""
    value: dict[str, Json] = {
        "schema": INTENT_SCHEMA,
        "action": outcome.action.value,
        "intent": None if outcome.info is None else _intent(outcome.info),
        "conflicts": [
            {
                "id": each.intent.id,
                "reason": each.intent.reason,
                **place_member("worktree", each.intent.work_tree),
                **path_list("entries", each.entries),
                "expires_at": _iso(each.info.until),
            }
            for each in outcome.conflicts
        ],
        "promoted": [each.id for each in outcome.promoted],
        "reason": outcome.reason,
        "hint": outcome.hint,
        "warnings": list(outcome.warnings),
    }
    return json_line(value)


def list_json(intents: Sequence[IntentInfo], warnings: Iterable[str] = ()) -> str:
    """Write a list as one JSON document, ended by a line feed; `warnings` are about intents that cannot be
    read.
    """
    value: dict[str, Json] = {
        "schema": INTENTS_SCHEMA,
        "intents": [_intent(each) for each in intents],
        "warnings": list(warnings),
    }
    return json_line(value)


def _intent(info: IntentInfo) -> dict[str, Json]:
    intent = info.intent
    return {
        "id": intent.id,
        "state": info.status.value,
        "stored_state": intent.state.value,
        "reason": intent.reason,
        **path_list("allowed", intent.scope.allowed),
        **path_list("related", intent.scope.related),
        **path_list("forbidden", (*intent.scope.forbidden, *info.controls)),
        **path_list("control_files", info.controls),
        **place_member("worktree", intent.work_tree),
        "current_worktree": info.is_in_current_worktree,
        "worktree_missing": info.is_gone,
        "base": intent.base,
        "tree": intent.tree,
        "analyses_digest": intent.analyses,
        "before_digest": intent.before,
        "digest": intent.digest,
        "declared_at": _iso(intent.declared.wall),
        "renewed_at": _at(intent.renewed),
        "last_seen_at": _at(intent.seen),
        "expires_at": _iso(info.until),
        "seconds_left": max(0, int(info.seconds_left)),
        "ttl": intent.ttl,
        "lease": intent.lease,
        "budget": dict(intent.budget.written),
        "owner": _holder(intent, info),
        "dirty": [
            {**path_member("path", path), "oids": [*oids]} for path, oids in sorted(intent.dirty.items())
        ],
    }


def _holder(intent: Intent, info: IntentInfo) -> Json:
    owner = intent.owner
    return (
        None if owner is None else {"host": owner.host, "pid": owner.pid, "is_running": info.is_owner_running}
    )


def _at(moment: Moment | None) -> str | None:
    return None if moment is None else _iso(moment.wall)


def _iso(seconds: float) -> str:
    """Write a time in UTC (ISO 8601); outside years of four digits, the epoch."""
    return iso_if_any(seconds) or iso(0)


def intent_schema() -> Schema:
    """Build the JSON Schema of what `intent declare`, `renew`, `clear` and `recover` write."""
    conflict: Shape = {
        "id": str,
        "reason": str,
        **path_key("worktree"),
        **path_keys("entries"),
        "expires_at": str,
    }
    outcome: dict[str, Shape] = {
        "action": IntentAction,
        "intent": maybe(_INTENT),
        "conflicts": [conflict],
        "promoted": [str],
        "reason": str | None,
        "hint": str | None,
        "warnings": [str],
    }
    return document_schema(INTENT_SCHEMA, "What a command did with an intent, or why nothing", outcome)


def intents_schema() -> Schema:
    """Build the JSON Schema of what `intent list` and `intent show` write."""
    listed: dict[str, Shape] = {"intents": [_INTENT], "warnings": [str]}
    return document_schema(INTENTS_SCHEMA, "Intents, the oldest first", listed)


_INTENT: Shape = {
    "id": str,
    "reason": str,
    **path_key("worktree"),
    **dict.fromkeys(("tree", "analyses_digest", "digest", "declared_at", "expires_at"), str),
    **dict.fromkeys(("base", "before_digest", "renewed_at", "last_seen_at"), str | None),
    **path_keys("allowed", "related", "forbidden", "control_files"),
    **dict.fromkeys(("current_worktree", "worktree_missing"), bool),
    **dict.fromkeys(("seconds_left", "ttl", "lease"), COUNT),
    "budget": map_of(COUNT),
    "state": IntentStatus,
    "stored_state": State,
    "owner": maybe({"host": str, "pid": COUNT, "is_running": bool}),
    "dirty": [{**path_key("path"), "oids": about([str | None], minItems=1)}],
}
