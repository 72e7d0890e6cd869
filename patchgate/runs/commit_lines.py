"""The commands that commit what a run made: all of it, or each component alone."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from patchgate.apply.attempt_records import records
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.policy.component import BASELINES

TRAILER = "Patchgate-Run"
"""Names the run in the message of a commit of what it made."""
_MOST_COMMANDS = 20
_MOST_PATHS = 20
_MOST_SHOWN = 400


def commit_lines(repository: Repository, run: str) -> list[str]:
    """Say in lines how to commit what a run made and captured; a limit on files may refuse all at once."""
    commit = f'git commit --trailer "{TRAILER}: {run}"'
    lines = [f"what it made is staged: {commit}"]
    made = _made(repository, run)
    if len(made) > 1:
        lines.append("  or one component at a time, each with its baseline, where max_files refuses that:")
        for component, paths in sorted(made.items())[:_MOST_COMMANDS]:
            lines.append(f"  {commit} -- {_shown(repository, component, paths)}")
        if len(made) > _MOST_COMMANDS:
            lines.append(f"  and so on, for {len(made) - _MOST_COMMANDS} more")
    return lines


def _made(repository: Repository, run: str) -> dict[str, set[RepoPath]]:
    """Find the files that a run has landed here, before a kill too, by component."""
    found: dict[str, set[RepoPath]] = {}
    for each in records(Ledger(repository.common_dir), f'"{run}/'):
        parts = (each.run or "").split("/")
        if each.applied and parts[0] == run and len(parts) > 1 and each.work_tree == repository.work_tree:
            found.setdefault(parts[1], set()).update(file.path for file in each.files)
    return found


def _shown(repository: Repository, component: str, paths: Iterable[RepoPath]) -> str:
    baseline = RepoPath(BASELINES + component.encode("utf-8") + b".json")
    place = os.path.join(os.fsencode(repository.work_tree or ""), baseline.raw)
    named = [*sorted(paths), *([baseline] if os.path.lexists(place) else [])]
    shown = [printable(shlex.quote(os.fsdecode(each.raw)), _MOST_SHOWN) for each in named[:_MOST_PATHS]]
    return " ".join([*shown, *(["…"] if len(named) > _MOST_PATHS else [])])
