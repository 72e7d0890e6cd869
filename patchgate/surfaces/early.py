"""What has to be so before anything else of the program is loaded: an interrupt ends it in silence.

Python's own answer to SIGINT is a traceback of whatever was being imported. `program.main` takes over later.
"""

from __future__ import annotations

import os
import signal
import sys

_IS_ALONE = os.path.basename(sys.argv[0]) in {"git-patchgate", "patchgate"}
if _IS_ALONE and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
