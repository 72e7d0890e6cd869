"""Child processes: start one, feed it, end it. Only this folder imports subprocess.

Git and our other helpers (`child`) get narrow limits, and exceeding one is an `UndecidedError`. A command of
the user's (`command`) gets everything but unlimited time; no process of it survives. `command` is imported
from its own module: a hook never needs it. Does not: which command to run, what its output means.
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
