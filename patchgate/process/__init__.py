"""Child processes: start one, feed it, end it.

Belongs here: argument list in, restricted environment, time and output limits, one process group, its end.
Does not: which command to run, what its output means. Only this folder imports subprocess.

Git and our other helpers (`child`) get narrow limits, and exceeding one is an `UndecidedError`. A command
of the user's (`command`) gets everything but unlimited time, and its end is always a value; no process of
it survives. `command` is imported from its own module: a hook never needs it.
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
