"""`check --ci`: read the engine's environment and event file, and check the commits that they mean."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from patchgate.check.ci_environment import is_github, read_event
from patchgate.check.ci_event import EVENT_FILE, MAX_EVENT, CiEvent, EventKind
from patchgate.check.ci_range import CiPush, CiRange, find_ranges
from patchgate.check.refs import show_ref
from patchgate.cli.output import write_error
from patchgate.cli.progress import Progress
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.report.wording import SHORT_OID
from patchgate.values import replace

if TYPE_CHECKING:
    from patchgate.check.policy_lookup import CheckOptions
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import Report

# How long it may take to check further ranges, and how many times as long as the first.
_MORE_SECONDS, _TIMES_FIRST = 20.0, 2


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
    begin = first = time.monotonic()
    for number, found in enumerate(find_ranges(repository, event)):
        if number == 0 and not quiet:
            write_error(f"{event.engine}, {event.kind.value}: {_shown(found)}")
        if number == 1:
            first = time.monotonic()
        if time.monotonic() - first > _MORE_SECONDS + _TIMES_FIRST * (first - begin):
            raise UndecidedError(
                "it takes too long to check what was built for each place where the branch may have been",
                "build the commits between first",
            )
        if isinstance(found, CiPush):
            report, terms = _check_push(repository, found, asked, quiet=quiet)
        else:
            branches = () if found.branch is None else (found.branch,)
            terms = replace(
                asked,
                policy_from=found.policy_from,
                policy_name=found.policy_name,
                target=found.target,
                branches=branches,
                default=found.default or "",
            )
            report = check_commits(
                repository,
                found.revision,
                terms,
                is_whole=True,
                quiet=quiet,
                is_merged=found.is_merged,
                is_of_branch=found.is_merged or event.kind is not EventKind.TAG,
                attributes_from=found.default or "",
            )
        judged.append((replace(report, warnings=(*found.notes, *report.warnings)), terms))
    return judged, event


def _shown(found: CiRange | CiPush) -> str:
    """Say what is checked, and by whose policy."""
    if isinstance(found, CiRange):
        return (
            f"checking {printable(found.revision)} by the policy of {found.policy_name or found.policy_from}"
        )
    head, place = found.head[:SHORT_OID], (found.named or "each parent")[:SHORT_OID]
    what = head if found.base is None else f"{found.base[:SHORT_OID]}..{head}"
    return f"checking {what} for {show_ref(found.update.ref)} by the policy of {place}"


def require_own_git(directory: str, environ: Mapping[str, str]) -> None:
    """Refuse a git or ssh-keygen in the checkout: the head could answer for it. Called before git is asked.

    Raises:
        UsageError: PATH finds one there.
    """
    here = os.path.realpath(directory)
    top = here
    while not os.path.lexists(os.path.join(top, ".git")) and top != os.path.dirname(top):
        top = os.path.dirname(top)
    top = here if top == os.path.dirname(top) else top
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    # A relative one is below the folder in which git is started.
    places = [os.path.realpath(os.path.join(above, folder)) for folder in folders for above in (here, top)]
    for name in ("git", "ssh-keygen"):
        found = (each for each in places if os.path.isfile(os.path.join(each, name)))
        place = next((each for each in found if os.access(os.path.join(each, name), os.X_OK)), "")
        if place == top or place.startswith(top + os.sep):
            raise UsageError(
                f"PATH finds {name} in the checkout: {printable(os.path.join(place, name))}",
                "leave the folders of the checkout out of PATH in this step",
            )


def _check_push(
    repository: Repository, found: CiPush, asked: CheckOptions, *, quiet: bool
) -> tuple[Report, CheckOptions]:
    """Check the move of a protected ref as a server does; return its report, and whose signers count."""
    from patchgate.check.protected_refs import Destination
    from patchgate.check.pushes import judge_received

    ref = found.update.ref
    with Progress(quiet=quiet) as progress:
        counted = progress.count if progress.has_line else None
        there = Destination(
            "origin",
            found.default,
            found.had,
            judges_all=True,
            is_empty=not found.had,
            protects=frozenset([ref] if found.is_kept else ()),
            been={ref: found.been},
            is_past=True,
        )
        # Of a first push, a later root is judged by what the branch has now.
        since = None if found.had else found.head
        terms = replace(asked, counted=counted, since=since, policy_from=found.policy_from)
        report = judge_received(repository, there, [found.update], terms).report
        if asked.in_full:
            from patchgate.check.pending import with_ids_of_commits

            report = with_ids_of_commits(repository, report)
    if not report.changes and report.cleared is None:
        head = found.head[:SHORT_OID]
        note = f"nothing to check: {show_ref(ref)} or the default branch had every commit of {head}"
        report = replace(report, warnings=(*report.warnings, note))
    return report, replace(asked, policy_from=found.named, target=ref)


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
