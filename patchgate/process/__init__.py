"""A floor stone: start one child.

Belongs here: argument list in, scrubbed environment, time and output limits, one process group, its end.
Does not: which command to run, what its output means. The only room that imports subprocess.
"""

from __future__ import annotations

from patchgate.process.child import DEFAULT_MEMORY, Child, Completed, run
from patchgate.process.environment import allowed_environment

__all__ = ["DEFAULT_MEMORY", "Child", "Completed", "allowed_environment", "run"]
