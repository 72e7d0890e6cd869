"""The environment that a child gets: an allow-list, so that nothing of the caller's git leaks into it.

A hook inherits `GIT_DIR`, `GIT_INDEX_FILE` and more; a git child that keeps them works on the user's
pending commit (measured: `git worktree add` in such a hook made an empty commit). `GIT_CONFIG_*`,
`GIT_EXTERNAL_DIFF`, `GIT_TRACE*`, `GIT_SSH*` and their like can run programs.
"""

from __future__ import annotations

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
    """Copy the few variables that every child may see; the locale is C, so that messages can be read."""
    kept = {name: environ[name] for name in _ALLOWED if name in environ}
    kept["LC_ALL"] = "C"
    return kept
