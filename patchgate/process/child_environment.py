"""The environment of git and our other helpers: few variables of the caller, by an allow-list."""

from __future__ import annotations

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
