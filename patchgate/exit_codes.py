"""The exit codes of every command and hook.

Errors (`patchgate.errors`) and verdicts (`patchgate.report.verdict`) carry one of the first four. A process
that a signal ends exits with 128 and the signal's number, as a shell reports it.
"""

from __future__ import annotations

ACCEPTED = 0
REJECTED = 1
# The arguments or the config are wrong.
USAGE = 2
# No verdict could be reached: git failed, an object is missing, patchgate crashed.
UNDECIDED = 3
INTERRUPTED = 130
TERMINATED = 143
