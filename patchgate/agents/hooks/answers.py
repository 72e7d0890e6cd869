"""Write the answer of a hook as each agent reads it: exit code, standard output, standard error.

Claude Code, Codex and Gemini CLI take exit code 2 as a refusal, with the reason on standard error; Cursor
takes JSON. A session start cannot be refused by any of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from patchgate.agents.hooks.hook_input import HookEvent
from patchgate.values import dataclass

REFUSED = 2
MOST_TEXT = 4000


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """What is answered to an event.

    `refusal` is why it is refused, empty if it is not; `notes` go to the model beside an event that is
    allowed; `context` is what a session begins with.
    """

    refusal: str = ""
    notes: tuple[str, ...] = ()
    context: str = ""


@dataclass(frozen=True, slots=True)
class HookOutput:
    """What the process of a hook leaves: exit code, standard output, standard error."""

    code: int = 0
    out: str = ""
    err: str = ""


def write_answer(protocol: str, event: HookEvent, answer: EventAnswer) -> HookOutput:
    """Write the answer to an event."""
    if protocol == "cursor":
        return HookOutput(out=_line(_for_cursor(event, answer)))
    if answer.refusal:
        return HookOutput(REFUSED, err=_cut(answer.refusal) + "\n")
    # A context has a limit of its own, and says what it leaves out.
    text = answer.context or _cut("\n".join(answer.notes))
    if not text:
        return HookOutput()
    if event.kind == "stop" or (protocol == "gemini" and event.kind == "tool"):
        return HookOutput(out=_line({"systemMessage": text}))
    output = {"hookEventName": event.name, "additionalContext": text}
    return HookOutput(out=_line({"hookSpecificOutput": output}))


def _for_cursor(event: HookEvent, answer: EventAnswer) -> Mapping[str, object]:
    refusal = _cut(answer.refusal)
    if event.kind == "session":
        return {"additional_context": answer.context} if answer.context else {}
    if event.kind == "stop":
        return {"followup_message": refusal} if refusal else {}
    if refusal:
        return {"permission": "deny", "user_message": refusal, "agent_message": refusal}
    notes = {"agent_message": _cut("\n".join(answer.notes))} if answer.notes else {}
    return {"permission": "allow", **notes}


def write_failure(protocol: str, event: HookEvent | None, sentence: str, *, fail_open: bool) -> HookOutput:
    """Write that no answer was found: a refusal, wherever the protocol has one.

    Args:
        event: None if not even the input could be read.
        fail_open: whether the installer chose to let the agent go on.
    """
    line = _cut(f"patchgate: undecided: {' '.join(sentence.split())}")
    if event is not None and (event.kind == "session" or (event.kind == "stop" and event.is_repeated)):
        said = EventAnswer(context=line) if event.kind == "session" else EventAnswer(notes=(line,))
        done = write_answer(protocol, event, said)
        return HookOutput(done.code, done.out, line + "\n")
    if fail_open:
        out = _line({"permission": "allow"}) if protocol == "cursor" else ""
        return HookOutput(out=out, err=f"{line}; it was not stopped (--fail-open)\n")
    if protocol != "cursor":
        return HookOutput(REFUSED, err=line + "\n")
    if event is not None and event.kind == "stop":
        return HookOutput(out=_line({"followup_message": line}), err=line + "\n")
    denied = {"permission": "deny", "user_message": line, "agent_message": line}
    return HookOutput(REFUSED, _line(denied), line + "\n")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 2].rstrip() + " …"


def _line(fields: Mapping[str, object]) -> str:
    return json.dumps(fields) + "\n"
