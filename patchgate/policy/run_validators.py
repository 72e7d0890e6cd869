"""Check what a config says of runs: authors, the time limits of their roles, the shared environment.

Like `validators`: each check returns its value or raises `TextError`. It is apart because a commit needs none
of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, Protocol, get_args

from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import printable
from patchgate.policy.validators import (
    MAX_SECONDS,
    TIMEOUT,
    TextError,
    check_variable,
    seconds,
    without_nul,
)

AuthorRole = Literal["decomposer", "contract_author", "test_author", "code_author", "trace_analyst"]
PhaseName = Literal["interview", "shaping", "contract", "tests", "implementation", "integration"]

MAX_COST = 10**9

_LEAST_SECONDS = 30.0
_LIKE = 'write it like "python3", ".venv/bin/python" or "/opt/python/bin/python3"'


class AuthorTable(Protocol):
    """What the checks read of a table `[commands.NAME]`."""

    @property
    def kind(self) -> str: ...
    @property
    def role(self) -> str | None: ...
    @property
    def phase(self) -> str | None: ...


def check_authors(tables: Mapping[str, AuthorTable]) -> Mapping[str, AuthorTable]:
    """Check that no phase has two authors.

    Raises:
        TextError: two commands are authors for the same phase.
    """
    known: dict[str, str] = {}
    for name, table in tables.items():
        if table.kind != "author" or table.phase is None:
            continue
        other = known.setdefault(table.phase, name)
        if other != name:
            raise TextError(
                f"`{other}` and `{name}` are both authors for the phase {table.phase}",
                "remove one of them, or let one command run the other",
            )
    return tables


def check_role(text: str) -> str:
    """Check the name of a role."""
    roles = get_args(AuthorRole)
    if text not in roles:
        raise TextError(
            f"unknown role `{printable(text, 60)}`; the roles are {', '.join(roles)}", choices=roles
        )
    return text


def check_role_timeout(value: float | str) -> float | str:
    """Check the time limit of a role as written in the config: 30 seconds to 24 hours."""
    if isinstance(value, str) and not re.fullmatch(TIMEOUT, value):
        raise TextError(
            f'"{printable(value, 40)}" is not a duration', 'write it as seconds, or like "90s", "5m" or "1h"'
        )
    # Written so that NaN is refused too.
    if not _LEAST_SECONDS <= seconds(value) <= MAX_SECONDS:
        raise TextError(
            "the time limit of a role must be 30 seconds to 24 hours", 'write it like "90s", "5m" or "1h"'
        )
    return value


def check_phase(text: str) -> str:
    """Check the name of a phase."""
    phases = get_args(PhaseName)
    if text not in phases:
        raise TextError(
            f"unknown phase `{printable(text, 60)}`; the phases are {', '.join(phases)}", choices=phases
        )
    return text


def check_cost(value: float) -> float:
    """Check an amount of money."""
    # Written so that NaN is refused too.
    if not 0 <= value <= MAX_COST:
        raise TextError(f"an amount must be from 0 to {MAX_COST:,}", "write it like 25.0")
    return value


def check_questions_file(text: str) -> str:
    """Check the path of a file of questions: a plain path from the root."""
    if not text or text.endswith("/") or faults(RepoPath(text.encode("utf-8", "surrogateescape"))):
        shown = printable(text, 80)
        raise TextError(
            f"`{shown}` is not a file path from the repository root", "write it like questions.json"
        )
    return text


def check_share(value: float) -> float:
    """Check a share, or a confidence."""
    if not 0 <= value <= 1:
        raise TextError("it must be from 0 to 1", "write 60 % as 0.6")
    return value


class BudgetTable(Protocol):
    """The keys of `[run]` that limit what it costs."""

    @property
    def total_cost(self) -> float | None: ...
    @property
    def phase_caps(self) -> Mapping[str, float]: ...
    @property
    def shaping_budget_pct(self) -> float | None: ...


def check_budget(table: BudgetTable) -> BudgetTable:
    """Check that shares are shares of something, and that none is given twice.

    Raises:
        TextError: there is no `total_cost`, or the share of shaping has two values.
    """
    is_capped = bool(table.phase_caps) or table.shaping_budget_pct is not None
    if is_capped and table.total_cost is None:
        raise TextError("phase_caps are shares of total_cost, which is not set", "set total_cost")
    if table.shaping_budget_pct is not None and "shaping" in table.phase_caps:
        raise TextError("the share of shaping has two values", "remove shaping_budget_pct")
    return table


def check_shared_variable(text: str) -> str:
    """Check the name of a variable of `[environment]`; PATH has keys of its own."""
    check_variable(text)
    if text == "PATH":
        raise TextError(
            "PATH is made by other keys", "use `extra_path_dirs`, and `inherit_path = false` to replace it"
        )
    return text


def check_program(text: str) -> str:
    """Check `python_path`: a name on PATH, or the path of a file."""
    _check_path(text, _LIKE)
    if text.endswith("/"):
        raise TextError("this is a folder, not a program", _LIKE)
    return text


def check_path_folder(text: str) -> str:
    """Check a folder for PATH: absolute, or relative to the repository's root."""
    return _check_path(text, 'write it like "/opt/tools/bin" or ".venv/bin"')


def _check_path(text: str, like: str) -> str:
    without_nul(text)
    if not text:
        raise TextError("an empty path names nothing", like)
    if ":" in text:
        raise TextError("PATH cannot contain a folder with a colon", "name another folder")
    if ".." in text.split("/"):
        raise TextError('a path cannot contain ".."', "write the absolute path")
    if text.startswith("~"):
        raise TextError("no shell expands `~`", "write the absolute path")
    return text
