"""Intents in words: what a verb did, one intent in full, a list of one line each.

Decides the layout alone. Every text of an intent is foreign: whoever can write `.git` can put it there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from patchgate.git.path import RepoPath
from patchgate.git.quoting import quote_path
from patchgate.intents.entries import is_folder, may_be_many
from patchgate.intents.intent import Intent, State
from patchgate.intents.outcome import Action, Outcome
from patchgate.intents.states import Standing, Told
from patchgate.policy.control import PYPROJECT_FILE
from patchgate.report.wording import SHORT_OID, count, length, safe, show_path, some

_MOST_FILES = 20
_MOST_ENTRIES = 3
_MOST_PLACE = 4096


def outcome_text(outcome: Outcome) -> list[str]:
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
    if outcome.action is Action.DECLARED and intent is not None:
        lines.append(f"commits here may touch {_what(intent)} until git patchgate intent clear")
    return lines


def _did(outcome: Outcome, told: Told | None) -> str:
    if outcome.action is Action.REFUSED:
        return f"refused: {outcome.reason}"
    if told is None:
        return "cleared"
    name = f"{outcome.action.value} {told.intent.id}"
    if outcome.action is Action.CLEARED:
        return name
    if told.intent.state is State.QUEUED:
        name += (
            "; commits here may touch only what these do not have, until they are cleared"
            if outcome.conflicts
            else "; it waits in the queue"
        )
    return f"{name} ({_until(told)})"


def show_text(told: Told) -> list[str]:
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
    if told.is_gone or told.standing in {Standing.EXPIRED, Standing.DEAD}:
        lines.append(f"  next: git patchgate intent recover {intent.id}, or clear {intent.id}")
    return lines


def _why_controlled(path: RepoPath) -> str:
    if path == PYPROJECT_FILE:
        return "its table [tool.patchgate]"
    return "control files, all but baselines/" if is_folder(path) else "a control file"


def list_text(intents: Sequence[Told]) -> Iterator[str]:
    """Write one line for each intent."""
    for told in intents:
        files = some((*told.intent.scope.allowed, *told.intent.scope.related), _MOST_ENTRIES)
        yield (
            f"{told.intent.id}  {told.standing.value:<7}  {_until(told)}, {_held(told)}; {files}; "
            f"{_where(told)}: {safe(told.intent.reason, 200)}"
        )


def _what(intent: Intent) -> str:
    entries = (*intent.scope.allowed, *intent.scope.related)
    if any(may_be_many(each) for each in entries):
        return some(entries, _MOST_ENTRIES)
    return count(len(entries), "file")


def _where(told: Told) -> str:
    if told.is_here:
        return "here"
    place = safe(quote_path(os.fsencode(told.intent.work_tree)), _MOST_PLACE)
    if told.is_foreign:
        return f"{place}; this repository was moved or copied since"
    return f"{place}, which is gone" if told.is_gone else place


def _held(told: Told) -> str:
    holder = told.intent.holder
    if holder is None:
        return "nobody but its lease"
    return f"process {holder.pid} on {safe(holder.host, 100)}" + ("" if told.is_held else ", which has ended")


def _until(told: Told) -> str:
    """Tell when its time is over: how long that is, and when by the clock on the wall."""
    if told.seconds_left <= 0:
        return "its time is over"
    return f"expires in {length(told.seconds_left)}, at {_local(told.until)}"


def _local(seconds: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return "a time that no clock shows"
