"""What has to be so before anything else of the program is loaded: an interrupt ends it in silence.

Python's own answer to SIGINT is a traceback of whatever was being imported. `program.main` takes over later.
The command line loads this first; the names come from `_signal`, for `signal` itself takes a while to load.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

_IS_ALONE = os.path.basename(sys.argv[0]) in {"git-patchgate", "patchgate"}
if _IS_ALONE and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
