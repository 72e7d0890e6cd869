"""`check --ci`: read the engine's environment and event file, and check the commits that they mean."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from patchgate.check.ci_environment import (
    EVENT_FILE,
    MAX_EVENT,
    CiEvent,
    EventKind,
    is_github,
    read_event,
)
from patchgate.check.ci_range import CiRange, find_ranges, with_move
from patchgate.cli.output import write_error
from patchgate.cli.progress import Progress
from patchgate.errors import UsageError
from patchgate.git.quoting import printable
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.check.policy_lookup import CheckOptions
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import Report


def check_ci(
    repository: Repository,
    asked: CheckOptions,
    environ: Mapping[str, str],
    check_commits: Callable[..., Report],
    *,
    quiet: bool,
) -> tuple[list[tuple[Report, CheckOptions]], CiEvent]:
    """Check what a CI engine builds; return each report with the options that judged it, and the event.

    There are two of an entry of a merge queue: as it lands in the branch, and after the entry before it.

    Args:
        check_commits: checks the commits of a range, and the range as one change.

    Raises:
        PatchgateError: the environment is unclear, or something is missing in this clone.
    """
    _require_no_submodule(repository)
    document = _read_event_file(environ) if is_github(environ) else None
    event = read_event(environ, document)
    judged = []
    for number, found in enumerate(find_ranges(repository, event)):
        asked = replace(
            asked,
            policy_from=found.policy_from,
            policy_name=found.policy_name,
            target=found.target,
            branches=() if found.branch is None else (found.branch,),
        )
        if not quiet and number == 0:
            by = asked.place or "each parent"
            write_error(
                f"{event.engine}, {event.kind.value}: checking {printable(found.revision or found.head)} "
                f"by the policy of {printable(by)}"
            )
        if found.revision is None:
            report = _check_first_push(repository, found, asked, quiet=quiet)
        else:
            report = check_commits(
                repository,
                found.revision,
                asked,
                is_whole=True,
                quiet=quiet,
                is_merged=found.is_merged,
                is_of_branch=found.is_merged or event.kind is not EventKind.TAG,
                attributes_from=found.default or "",
            )
            report = with_move(repository, found, report)
        judged.append((replace(report, warnings=(*found.notes, *report.warnings)), asked))
    return judged, event


def _require_no_submodule(repository: Repository) -> None:
    """Refuse to check a submodule: its URL, so what its branches are, is from the head that CI builds.

    Raises:
        UsageError: this is one.
    """
    if repository.work_tree is None:
        return
    above = repository.git("rev-parse", "--show-superproject-working-tree", in_work_tree=True).out
    if above.strip():
        raise UsageError(
            "this is a submodule, and CI builds the repository around it",
            "run git patchgate check --ci in the root of the clone",
        )


def _check_first_push(repository: Repository, found: CiRange, asked: CheckOptions, *, quiet: bool) -> Report:
    """Check all commits of a branch that had nothing before, as a server does that has no commit."""
    from patchgate.check.pushes import judge_received
    from patchgate.git.pushes import RefUpdate

    first = RefUpdate(found.target, None, found.head)
    with Progress(quiet=quiet) as progress:
        asked = replace(asked, counted=progress.count)
        return judge_received(repository, {}, None, [first], asked, is_empty=True).report


def _read_event_file(environ: Mapping[str, str]) -> bytes | None:
    """Read the event file, at most one byte more than allowed; None if it is not a regular file."""
    try:
        descriptor = os.open(environ.get(EVENT_FILE) or "", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            with open(descriptor, "rb", closefd=False) as file:
                return file.read(MAX_EVENT + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return None
