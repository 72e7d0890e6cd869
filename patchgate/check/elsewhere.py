"""What to do where a refused commit is not of this clone's making: ask the remote first what it has.

Decides which refused commits those are: what another remote-tracking ref reaches, and, where this remote was
never heard of or has a value that is not here, what was here when the hooks were installed, or what no
worktree's reflog shows as made here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from patchgate.errors import UndecidedError
from patchgate.git.history import lacking
from patchgate.git.pushes import RefUpdate, Remote
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, Report, Verdict


def with_fetch(
    repository: Repository,
    remote: Remote,
    updates: Sequence[RefUpdate],
    commits: Mapping[str, str | None],
    report: Report,
) -> Report:
    """Give the report of a push whose refusals begin with `git fetch REMOTE` where that may answer them.

    Args:
        remote: where the push goes; of a URL without a name nothing can be fetched that would count.
        commits: the commit that each object stands for; None where it is none, or not here.
    """
    refused = [
        change.source.commit
        for change in report.changes
        if change.verdict is Verdict.REJECTED and change.source.commit is not None
    ]
    if not refused or not remote.is_named:
        return report
    unheard = not remote.had or any(each.old is not None and commits[each.old] is None for each in updates)
    foreign = _foreign(repository, refused) if unheard else _tracked(repository, refused)
    if not foreign:
        return report
    hint = (
        f"git fetch {printable(shlex.quote(remote.name))}, then push again: what {remote.shown} has already "
        "is not judged again"
    )
    changes = (_hinted(each, hint) if each.source.commit in foreign else each for each in report.changes)
    return replace(report, changes=tuple(changes))


def _tracked(repository: Repository, commits: Sequence[str]) -> set[str]:
    """Find those of some commits that a remote-tracking ref reaches."""
    return set(commits) - {each.oid for each in lacking(repository, commits, (), "--remotes")}


def _foreign(repository: Repository, commits: Sequence[str]) -> set[str]:
    """Find those of some commits that are older than the hooks, or were not made here by the reflogs."""
    # Only where something is refused.
    from patchgate.git.reflog import git_dirs, made_in
    from patchgate.ledger.receipts import settled

    later = {each.oid for each in lacking(repository, commits, settled(repository.common_dir))}
    # Of what may be new no advice is better than a wrong one.
    with suppress(UndecidedError):
        later &= {oid for folder in git_dirs(repository) for oid in made_in(folder, 0)}
    return set(commits) - later


def _hinted(change: ChangeVerdict, hint: str) -> ChangeVerdict:
    findings = (
        replace(each, hint=hint) if each.level is Level.ERROR and not each.definition.invariant else each
        for each in change.findings
    )
    return replace(change, findings=tuple(findings))
