"""The command line: arguments in, text and exit code out; the hooks' entry.

Here alone click is imported, the environment read and anything printed; nothing here decides about a change.
A command is imported when it is called: `--help` and `explain RULE` load neither pygit2 nor pydantic, and
`hooks` answers git without click, which costs 25 ms. `quick_push` is a program that a hook starts alone.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

# Before anything else is loaded: an interrupt ends the program in silence, where Python would print a
# traceback of what was being imported. `program.main` takes over later; `signal` takes a while to load.
_IS_ALONE = os.path.basename(sys.argv[0]) in {"git-patchgate", "patchgate"}
if _IS_ALONE and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
