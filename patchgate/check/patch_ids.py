"""The patch ids of a report that a program reads: computed where nobody needed them for the verdict.

Decides which changes have one. What git does not give an id for has none, and nothing else follows from that.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from patchgate.errors import UndecidedError
from patchgate.git.patch_ids import patch_id_of, patch_ids_of
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.report.verdict import Report


def with_ids_of_commits(repository: Repository, report: Report) -> Report:
    """Add the patch ids of commits, of merges those of what they do themselves.

    One whose parent this clone lacks has none, nor has a merge that changes what git merges anew.
    """
    commits = [
        each.source.commit
        for each in report.changes
        if each.source.kind == "commit"
        and each.source.commit
        and each.source.commit not in repository.shallow
    ]
    try:
        known = patch_ids_of(repository, commits)
    except UndecidedError:
        return report
    changes = []
    for each in report.changes:
        found = known.get(each.source.commit or "")
        if each.source.kind == "merge" and each.change.files:
            with PrivateStore(repository) as store, suppress(UndecidedError):
                found = patch_id_of(repository, store, each.change.files)
        changes.append(replace(each, patch_id=found))
    return replace(report, changes=tuple(changes))


def with_id_of_change(repository: Repository, store: PrivateStore, report: Report) -> Report:
    """Add the patch id of the only change, whose objects may be in the private store."""
    (verdict,) = report.changes
    try:
        known = patch_id_of(repository, store, verdict.change.files)
    except UndecidedError:
        return report
    return replace(report, changes=(replace(verdict, patch_id=known),))
