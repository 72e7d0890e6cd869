"""Which paths are control files: the policy itself, and what decides whether the gate runs.

Two of them depend on content (`pyproject.toml`, `.pre-commit-config.yaml`); whoever has the bytes asks.
"""

from __future__ import annotations

from patchgate.git.path import RepoPath

CONFIG_FILE = RepoPath(b"patchgate.toml")
PYPROJECT_FILE = RepoPath(b"pyproject.toml")
PRE_COMMIT_FILE = RepoPath(b".pre-commit-config.yaml")
ALLOWED_SIGNERS = RepoPath(b".patchgate/allowed_signers")
_FOLDER = b".patchgate"
_BASELINES = b".patchgate/baselines/"
_STARTS = (CONFIG_FILE.raw, _FOLDER)
CONTROLS_BY_NAME = (CONFIG_FILE, RepoPath(_FOLDER + b"/"))
"""What names the control files that are so whatever they hold, for people: a file, and a folder."""


def is_control_by_name(path: RepoPath) -> bool:
    """Tell whether a path is a control file whatever it holds; baselines are none."""
    raw = path.raw
    # Asked of every file of a range: most names fail the first comparison of bytes.
    if not raw.startswith(_STARTS):
        return False
    return raw == CONFIG_FILE.raw or (path.is_within(_FOLDER) and not raw.startswith(_BASELINES))
