"""Whether a person is there, and meant it: what an approval and a reset ask before anything is written.

Decides only that. Standard input and standard error both are terminals, no coding agent has put its marker
into the environment, and the answer is yes. It stops accidents: an agent that wants to can build a terminal
and remove its marker. The authority is a signature.
"""

from __future__ import annotations

import os
import sys

from patchgate.errors import UsageError

AGENT_MARKERS = {
    "CLAUDECODE": "Claude Code",
    "CURSOR_AGENT": "Cursor",
    "CODEX_SANDBOX": "Codex",
    "GEMINI_CLI": "Gemini CLI",
}
"""The variables by which coding agents mark what they start, and whose they are."""


def refuse_agents(what: str) -> None:
    """Make sure that no coding agent runs this.

    Raises:
        UsageError: the environment has the marker of one.
    """
    for name, agent in AGENT_MARKERS.items():
        if os.environ.get(name):
            raise UsageError(
                f"{what} is for people, and {name} says that {agent} runs this", "run it in your own terminal"
            )


def require_person(message: str, hint: str) -> None:
    """Make sure that somebody sits at a terminal.

    Raises:
        UsageError: nobody does.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(message, hint)


def is_meant(question: str) -> bool:
    """Ask, on standard error; without an answer it is no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
