"""Runs as text and as JSON (`patchgate.run/1`, `patchgate.runs/1`), safe for a terminal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from patchgate.report.json import json_line
from patchgate.report.schema import DIGEST, Schema, Shape, about, document_schema, map_of, one_of
from patchgate.report.wording import count, safe
from patchgate.runs.phases import PHASES, Phase, Scheduling, Work
from patchgate.runs.resume import ResumeStrategy
from patchgate.runs.run_record import STATE_SCHEMA, next_step, plain_state, status_now
from patchgate.runs.run_state import RunState, RunStatus
from patchgate.storage.record import Json

LIST_SCHEMA = "patchgate.runs/1"
_LAST_LINES = 8
_WORK = about(str, "COMPONENT:PHASE")


def list_text(states: Sequence[RunState], now: float) -> list[str]:
    """Write the runs as lines, oldest first."""
    if not states:
        return ["no run yet: git patchgate run start"]
    return [_headline(state, now) for state in states]


def _headline(state: RunState, now: float) -> str:
    works = len(state.plan.works)
    done = f"{len(state.done)} of {count(works, 'phase')} done" if works else "what it had to do is not known"
    line = f"{state.id} {status_now(state, now).value}: {done}"
    return f"{line}, began {state.began}" + (f": {safe(state.reason)}" if state.reason else "")


def show_text(state: RunState, wrong: Sequence[str], now: float) -> list[str]:
    """Write one run: a line for each component with its phases, then what is wrong."""
    lines, status = [_headline(state, now)], status_now(state, now)
    for name in sorted(state.plan.phases):
        words = [
            f"{phase.value} {_word(state, Work(name, phase), status)}"
            for phase in PHASES
            if phase in state.plan.phases[name]
        ]
        lines.append(f"  {safe(name)}: {', '.join(words)}")
        for work, trouble in sorted(state.trouble.items()):
            if work.component == name:
                lines.append(f"    {work.phase.value}: {safe(trouble.reason)}")
                lines += [f"      | {safe(line)}" for line in trouble.tail[-_LAST_LINES:]]
                lines += [f"      help: {safe(trouble.hint)}"] if trouble.hint else []
    lines += [f"warning: {safe(each)}" for each in (*state.warnings, *wrong)]
    if (hint := _hint(state, now)) is not None:
        lines.append(f"help: {safe(hint)}")
    return lines


def _hint(state: RunState, now: float) -> str | None:
    return next_step(state, now) or state.hint


def _word(state: RunState, work: Work, status: RunStatus) -> str:
    if work in state.done:
        return "done"
    if work in state.trouble:
        return state.trouble[work].outcome
    if work not in state.in_flight:
        return "left"
    return "under way" if status is RunStatus.ACTIVE else "interrupted"


def strategy_lines(strategy: ResumeStrategy, from_phase: Phase | None) -> list[str]:
    """Say how a run was resumed; `from_phase` was asked for."""
    plain = strategy.plain()
    done = ", ".join(strategy.completed_components) or "nothing"
    lines = [f"resumed in {plain['resume_phase']}; done already: {done}"]
    again: dict[str, list[str]] = {}
    for work in strategy.cleared:
        again.setdefault(work.component, []).append(work.phase.value)
    if again:
        named = ", ".join(f"{name} ({', '.join(phases)})" for name, phases in again.items())
        why = ", because no baseline records it" if from_phase is None else ""
        lines.append(f"done again{why}: {named}")
    return lines


def show_json(state: RunState, wrong: Sequence[str], now: float) -> str:
    """Write one run as a JSON document."""
    return json_line(_document(state, wrong, now))


def list_json(states: Sequence[RunState], now: float) -> str:
    """Write the runs as a JSON document."""
    return json_line({"schema": LIST_SCHEMA, "runs": [_document(state, (), now) for state in states]})


def _document(state: RunState, wrong: Sequence[str], now: float) -> dict[str, Json]:
    warnings = [*state.warnings, *wrong]
    return {
        **plain_state(state),
        "status": status_now(state, now).value,
        "hint": _hint(state, now),
        "digest": state_digest(state),
        "warnings": warnings,
    }


def state_digest(state: RunState) -> str:
    """Return the digest of what a run has recorded; whoever resumes it by MCP has to name it."""
    text = json.dumps(plain_state(state), sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def run_schema() -> Schema:
    """Return the schema of one run."""
    return document_schema(STATE_SCHEMA, "A run", _run_shape())


def list_schema() -> Schema:
    """Return the schema of the list of runs, oldest first."""
    run: Shape = {"schema": Schema(const=STATE_SCHEMA), **_run_shape()}
    return document_schema(LIST_SCHEMA, "The runs of a repository", {"runs": [run]})


def _run_shape() -> dict[str, Shape]:
    """Return the keys of a run but its schema."""
    trouble: Shape = {
        "outcome": str,
        "reason": str,
        "hint": about(str | None, "the next step"),
        "fault": about(str | None, "the kind of fault"),
        "signature": about(str | None, "what equal faults have in common"),
        "tail": about([str], "the last lines of its output"),
    }
    plan: Shape = {
        "phases": map_of([one_of(*(phase.value for phase in PHASES))]),
        "scheduling": Scheduling,
        "jobs": int,
    }
    return {
        "id": str,
        "status": about(RunStatus, "interrupted: its process has ended"),
        "began": str,
        "last": about(str, "the time of the last event"),
        "work_tree": about(str | None, "null: its first event is damaged"),
        "plan": plan,
        "done": about(map_of(str), "COMPONENT:PHASE, and when it was finished"),
        "in_flight": [_WORK],
        "trouble": about(map_of(trouble), "COMPONENT:PHASE, and why it is not done"),
        "checkpoint": about(str | None, "the last that was finished"),
        "phase": about(str | None, "the newest phase that was begun"),
        "completed_components": [str],
        "reason": about(str | None, "why it is paused or failed"),
        "hint": about(str | None, "the next step"),
        "resumed": about(int, "how often"),
        "digest": about(DIGEST, "of what the run has recorded"),
        "warnings": [str],
    }
