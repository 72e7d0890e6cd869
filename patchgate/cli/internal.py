"""What becomes of an internal error: a trace file that can be reported, and one sentence that names it."""

from __future__ import annotations

import itertools
import os
import traceback
from collections.abc import Sequence

from patchgate.cli.output import complain
from patchgate.errors import PatchgateError, ended_attempt, name_attempt
from patchgate.git.quoting import printable

DEBUG = "PATCHGATE_DEBUG"
_MOST_LINE = 1000


def internal_error(error: Exception, arguments: Sequence[str]) -> PatchgateError:
    """Keep the traceback of an internal error, and give what to report of it.

    With `PATCHGATE_DEBUG=1` the traceback is printed too.

    Args:
        arguments: the command line; `-C` in it says where the repository is.
    """
    kept = keep("".join(traceback.format_exception(error)), arguments)
    said = f"patchgate itself failed ({type(error).__name__})"
    if isinstance(error, OSError):
        said = f"the system refused: {printable(error.strerror or str(error))}"
    made = PatchgateError(f"{said}; {kept}", "please report it with that file")
    if kept is None:
        made = PatchgateError(said, f"please report it; {DEBUG}=1 prints the traceback")
    name_attempt(made, ended_attempt(error))
    return made


def keep(trace: str, arguments: Sequence[str]) -> str | None:
    """Keep a traceback, and print it under `PATCHGATE_DEBUG=1`; say where it is, None where nowhere."""
    from patchgate.ledger.traces import keep_trace

    if os.environ.get(DEBUG) == "1":
        for line in trace.splitlines():
            complain(printable(line, _MOST_LINE))
    kept = keep_trace(_common_dir(arguments), trace, os.environ)
    return None if kept is None else f"the traceback is in {printable(kept)}"


def _common_dir(arguments: Sequence[str]) -> str | None:
    """Find git's common directory once more; None where that fails too."""
    from patchgate.git.repository import open_repository

    named = [value for option, value in itertools.pairwise(arguments) if option == "-C"]
    try:
        return open_repository(os.environ, os.path.abspath(os.path.join(os.curdir, *named))).common_dir
    except Exception:  # noqa: BLE001 - whatever failed may fail here again, and the first error is reported
        return None
