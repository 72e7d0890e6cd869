"""One child process: start it, feed it, end it.

Belongs here: argument list in, scrubbed environment, time and output limits, one process group, its end.
Does not: which command to run, what its output means. Only here subprocess is imported.

Two kinds of children: git, and what else we run for ourselves (`child`), gets little of everything, and its
overrun is an `UndecidedError`; a command of the user's (`command`) gets what it wants but time, and whatever
becomes of it is a value. Of that one nothing lives on, not even what left its process group.
`command` is imported from its own module: a hook never needs it.
"""

from __future__ import annotations

from patchgate.process.child import (
    DEFAULT_MEMORY,
    DEFAULT_SECONDS,
    Child,
    Completed,
    TimeLimitError,
    allowed_environment,
    run,
)

__all__ = [
    "DEFAULT_MEMORY",
    "DEFAULT_SECONDS",
    "Child",
    "Completed",
    "TimeLimitError",
    "allowed_environment",
    "run",
]
