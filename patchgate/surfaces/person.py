"""Whether a person is there, and meant it: what an approval and a reset ask before anything is written.

Decides only that. Standard input and standard error both are terminals, and the answer is the word yes. It
keeps an agent from waving itself through by accident; it stops nobody who builds a terminal for it.
"""

from __future__ import annotations

import sys

from patchgate.errors import UsageError


def require_person(message: str, hint: str) -> None:
    """Make sure that somebody sits at a terminal.

    Raises:
        UsageError: nobody does.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(message, hint)


def is_meant(question: str) -> bool:
    """Ask, on standard error; only the answer yes counts."""
    sys.stderr.write(f"{question} Only the answer yes does: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == "yes"
