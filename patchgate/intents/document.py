"""Intents as JSON: `patchgate.intent/1`, what a verb did, and `patchgate.intents/1`, a list; their schemas.

Decides the keys alone. Every key is always there, null where there is nothing.

Intents in words: what a verb did, one intent in full, a list of one line each.
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
from patchgate.report.schema import COUNT, Schema, Shape, about, document_schema, maybe, path_key, path_keys
from patchgate.report.verdict import Json
from patchgate.report.wording import SHORT_OID, count, length, safe, show_path, some

_MOST_FILES = 20
_MOST_ENTRIES = 3
_MOST_PLACE = 4096


def outcome_text(outcome: IntentOutcome) -> list[str]:
    """Say what a verb did; of a refusal, who stands in the way."""
    intent = outcome.intent
    lines = [_did(outcome, outcome.told)]
    lines += [
        f"  {each.intent.id} has {some(each.entries, _MOST_ENTRIES)}: {safe(each.intent.reason, 200)} "
        f"({_where(each.told)}; {_until(each.told)})"
        for each in outcome.conflicts
    ]
    lines += [
        f"{each.id} is active now: {safe(each.reason, 200)}"
        for each in outcome.promoted
        if intent is None or each.id != intent.id
    ]
    if outcome.action is IntentAction.DECLARED and intent is not None:
        lines.append(f"commits here may touch {_what(intent)} until git patchgate intent clear")
    return lines


def _did(outcome: IntentOutcome, told: IntentInfo | None) -> str:
    if outcome.action is IntentAction.REFUSED:
        return f"refused: {outcome.reason}"
    if told is None:
        return "cleared"
    name = f"{outcome.action.value} {told.intent.id}"
    if outcome.action is IntentAction.CLEARED:
        return name
    if told.intent.state is State.QUEUED:
        name += (
            "; commits here may touch only what these do not have, until they are cleared"
            if outcome.conflicts
            else "; it waits in the queue"
        )
    return f"{name} ({_until(told)})"


def show_text(told: IntentInfo) -> list[str]:
    """Write one intent in full."""
    intent = told.intent
    lines = [f"{intent.id} ({told.standing.value}): {safe(intent.reason)}", f"  time: {_until(told)}"]
    lines += [
        f"  {name}: {show_path(path)}"
        for name, paths in (
            ("allowed", intent.scope.allowed),
            ("related", intent.scope.related),
            ("forbidden", intent.scope.forbidden),
        )
        for path in paths
    ]
    lines += [f"  forbidden: {show_path(path)} ({_why_controlled(path)})" for path in told.controls]
    lines.append(f"  worktree: {_where(told)}")
    lines.append(f"  began on: {'no commit' if intent.base is None else intent.base[:SHORT_OID]}")
    lines.append(f"  held by: {_held(told)}")
    if intent.renewed is not None:
        lines.append(f"  time began anew: {_local(intent.renewed.wall)}")
    lines.append(f"  before-report: {'none yet' if intent.before is None else safe(intent.before)}")
    dirty = sorted(intent.dirty)
    lines += [f"  dirty before: {show_path(path)}" for path in dirty[:_MOST_FILES]]
    if len(dirty) > _MOST_FILES:
        lines.append(f"  and {len(dirty) - _MOST_FILES} more dirty before")
    if told.is_gone or told.standing in {IntentStatus.EXPIRED, IntentStatus.DEAD}:
        lines.append(f"  next: git patchgate intent recover {intent.id}, or clear {intent.id}")
    return lines


def _why_controlled(path: RepoPath) -> str:
    if path == PYPROJECT_FILE:
        return "its table [tool.patchgate]"
    return "control files, all but baselines/" if is_folder(path) else "a control file"


def list_text(intents: Sequence[IntentInfo]) -> Iterator[str]:
    """Write one line for each intent."""
    for told in intents:
        files = some((*told.intent.scope.allowed, *told.intent.scope.related), _MOST_ENTRIES)
        yield (
            f"{told.intent.id}  {told.standing.value:<7}  {_until(told)}, {_held(told)}; {files}; "
            f"{_where(told)}: {safe(told.intent.reason, 200)}"
        )


def _what(intent: Intent) -> str:
    entries = (*intent.scope.allowed, *intent.scope.related)
    if any(can_match_many(each) for each in entries):
        return some(entries, _MOST_ENTRIES)
    return count(len(entries), "file")


def _where(told: IntentInfo) -> str:
    if told.is_here:
        return "here"
    place = safe(quote_path(os.fsencode(told.intent.work_tree)), _MOST_PLACE)
    if told.is_foreign:
        return f"{place}; this repository was moved or copied since"
    return f"{place}, which is gone" if told.is_gone else place


def _held(told: IntentInfo) -> str:
    holder = told.intent.holder
    if holder is None:
        return "nobody but its lease"
    return f"process {holder.pid} on {safe(holder.host, 100)}" + ("" if told.is_held else ", which has ended")


def _until(told: IntentInfo) -> str:
    """Tell when its time is over: how long that is, and when by the clock on the wall."""
    if told.seconds_left <= 0:
        return "its time is over"
    return f"expires in {length(told.seconds_left)}, at {_local(told.until)}"


def _local(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "a time that no clock shows"


INTENT_SCHEMA = "patchgate.intent/1"
INTENTS_SCHEMA = "patchgate.intents/1"


def outcome_json(outcome: IntentOutcome) -> str:
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
    return json_line(value)


def list_json(intents: Sequence[IntentInfo], warnings: Iterable[str] = ()) -> str:
    """Write a list as one JSON document, ended by a line feed; `warnings` tell of what cannot be read."""
    value: dict[str, Json] = {
        "schema": INTENTS_SCHEMA,
        "intents": [_intent(each) for each in intents],
        "warnings": list(warnings),
    }
    return json_line(value)


def _intent(told: IntentInfo) -> dict[str, Json]:
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


def _holder(intent: Intent, told: IntentInfo) -> Json:
    holder = intent.holder
    return None if holder is None else {"host": holder.host, "pid": holder.pid, "is_running": told.is_held}


def _at(moment: Moment | None) -> str | None:
    return None if moment is None else _iso(moment.wall)


def _iso(seconds: float) -> str:
    """Write a time in UTC (ISO 8601); a clock that shows no year of four digits shows its first second."""
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
    return document_schema(INTENT_SCHEMA, "What was done with an intent, or why not", outcome)


def intents_schema() -> Schema:
    """Build the JSON Schema of what `intent list` and `intent show` write."""
    listed: dict[str, Shape] = {"intents": [_INTENT], "warnings": [str]}
    return document_schema(INTENTS_SCHEMA, "Intents, the oldest first", listed)


_INTENT: Shape = {
    "id": str,
    "reason": str,
    **path_key("worktree"),
    **dict.fromkeys(("tree", "analyses", "digest", "declared_at", "expires_at"), str),
    **dict.fromkeys(("base", "before", "renewed_at", "seen_at"), str | None),
    **path_keys("allowed", "related", "forbidden", "control_files"),
    **dict.fromkeys(("is_here", "is_worktree_gone"), bool),
    **dict.fromkeys(("seconds_left", "ttl", "lease"), COUNT),
    "state": IntentStatus,
    "stored_state": State,
    "holder": maybe({"host": str, "pid": COUNT, "is_running": bool}),
    "dirty": [{**path_key("path"), "oids": about([str | None], minItems=1)}],
}
