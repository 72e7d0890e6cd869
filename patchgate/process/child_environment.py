"""The environment of git and our other helpers: few variables of the caller, by an allow-list.

Also the command that starts another patchgate process, which keeps the caller's variables.
"""

from __future__ import annotations

import os
import sys

import patchgate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_ALLOWED = (
    "HOME",
    "LOGNAME",
    "PATH",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
)


def allowed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Copy the few variables that every child gets; the locale is C, so that messages can be parsed.

    A git child that keeps what a hook inherits (`GIT_DIR`, `GIT_INDEX_FILE`) works on the user's pending
    commit (measured), and `GIT_CONFIG_*`, `GIT_EXTERNAL_DIFF`, `GIT_SSH*` and their like can run programs.
    """
    kept = {name: environ[name] for name in _ALLOWED if name in environ}
    kept["LC_ALL"] = "C"
    return kept


def own_program(environ: Mapping[str, str]) -> list[str]:
    """Return the start of a command of this patchgate, which imports nothing of the working tree.

    `-P`: of the folder in which it is started. `-E`: of a `PYTHONPATH`; left out where this package or its
    Python is found through a variable.
    """
    packages = os.path.realpath(os.path.dirname(os.path.dirname(patchgate.__file__)))
    named = environ.get("PYTHONPATH", "")
    folders = [os.path.realpath(folder) for folder in named.split(os.pathsep)] if named else []
    needs = packages in folders or "PYTHONHOME" in environ or "PYTHONUSERBASE" in environ
    return [sys.executable, *([] if needs else ["-E"]), "-P", "-m", "patchgate"]
