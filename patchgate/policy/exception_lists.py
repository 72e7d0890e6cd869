"""Which files are lists of exceptions: findings that a tool knows and leaves out.

Decides by names that tools give such a list by themselves. What a change of one means is decided in
`verify.abuse`, and only for files that the policy lists.
"""

from __future__ import annotations

import re

from patchgate.git.path import RepoPath
from patchgate.policy.control import is_control_by_name

# detect-secrets, gitleaks, RuboCop and its kin, PHPStan, Psalm, detekt, ktlint, Android lint, mypy-baseline,
# ruff, ESLint, Betterer, bandit; basedpyright's is found by its folder.
_NAMES = re.compile(
    rb"\.secrets\.baseline|\.gitleaksignore|\.betterer\.results|eslint-suppressions\.json"
    rb"|\.[a-z_-]{1,40}_todo\.yml|phpstan-baseline\.(?:neon|php)|mypy-baseline\.txt|\.ruff-baseline.{0,200}"
    rb"|.{1,200}-baseline\.(?:json|xml|ya?ml)"
)
_PATHS = re.compile(
    rb"(?:.*/)?(?:\.basedpyright/baseline\.json|config/(?:detekt|ktlint)/baseline\.xml)", re.DOTALL
)


def is_exception_list(path: RepoPath) -> bool:
    """Tell whether a file is a list of exceptions by its name; what is patchgate's own is none."""
    if is_control_by_name(path) or path.raw.startswith(b".patchgate/"):
        return False
    return bool(_NAMES.fullmatch(path.name) or _PATHS.fullmatch(path.raw))
