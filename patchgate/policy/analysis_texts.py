"""What the texts of `[analyses.NAME]`, `[[thresholds]]` and `[verify]` may be.

Decides the names, arguments, metrics and paths that the config takes. What an analysis says is read by
`commands`, what a threshold means is decided in `verify`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import printable
from patchgate.policy.command import NAME, without_nul
from patchgate.policy.texts import TextError

if TYPE_CHECKING:
    from patchgate.policy.analysis_tables import ThresholdTable

FINDINGS, NEW_FINDINGS = "findings", "findings:new"
METRIC = "[A-Za-z_][A-Za-z0-9_.:/-]{0,99}"
MAX_THRESHOLDS = 100
_LIKE = '["ruff", "check", "--no-fix", "--output-format", "sarif", "--exit-zero", "."]'


def check_analysis(text: str) -> str:
    """Give the name of an analysis, or of a threshold, back.

    Raises:
        ValueError: it is no such name.
    """
    if not re.fullmatch(NAME, text):
        raise TextError(
            f"`{printable(text, 60)}` is no name",
            "a name has up to 41 of a-z, 0-9, - and _, and begins with a letter or digit",
        )
    return text


def check_analysis_argument(text: str) -> str:
    """Give one argument of an analysis back.

    Raises:
        ValueError: the system does not allow it, or it is a placeholder.
    """
    without_nul(text)
    if re.fullmatch(r"\{[A-Za-z_]+\}", text):
        raise TextError(
            f"unknown placeholder `{printable(text, 60)}`",
            "an analysis looks at the whole tree: name `.`, or the folders",
        )
    return text


def check_analysis_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give the arguments of an analysis back.

    Raises:
        ValueError: they name no program.
    """
    if not words or not words[0]:
        raise TextError("a command begins with its program", f"like {_LIKE}")
    return words


def check_metric(text: str) -> str:
    """Give what a threshold limits back: `findings`, `findings:new`, or the name of a metric.

    Raises:
        ValueError: it is none of these.
    """
    if not re.fullmatch(METRIC, text) or (text.startswith("findings:") and text != NEW_FINDINGS):
        raise TextError(
            f"`{printable(text, 60)}` is no metric",
            f'write "{NEW_FINDINGS}", "{FINDINGS}", or the name of a metric that an analysis tells',
        )
    return text


def check_most(value: float) -> float:
    """Give the limit of a threshold back.

    Raises:
        ValueError: it is no number that anything can be compared with.
    """
    if not (math.isfinite(value) and value >= 0):
        raise TextError("a limit is a number of 0 or more", "write it like 0, 10 or 2.5")
    return value


def check_thresholds(tables: Sequence[ThresholdTable]) -> Sequence[ThresholdTable]:
    """Give the thresholds back.

    Raises:
        ValueError: there are too many, or two have one name.
    """
    if len(tables) > MAX_THRESHOLDS:
        raise TextError(f"there are {len(tables)} thresholds, and at most {MAX_THRESHOLDS} are read")
    names = [table.name for table in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TextError(f"two thresholds are named `{twice}`", "give each a name of its own")
    return tables


def check_baseline_file(text: str) -> str:
    """Give the path of a file back whose growth is suspicious.

    Raises:
        ValueError: it is no plain path of a file from the root.
    """
    if not text or text.endswith("/") or faults(RepoPath(text.encode("utf-8", "surrogateescape"))):
        raise TextError(
            f"`{printable(text, 80)}` is no path of a file from the root", "like ruff-baseline.json"
        )
    return text
