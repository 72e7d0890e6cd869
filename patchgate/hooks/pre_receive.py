"""Judging what a server's repository is about to receive, from pre-receive.

Decides what is known there (its own refs and HEAD) and that nothing is written: no ledger, no cache, and
git's own guard against updates of refs is up. The new objects are read where git keeps them in quarantine.
What is refused, and by which policy, is decided in `pushes` and `protected_refs`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from patchgate.check.hook_decision import with_approvals
from patchgate.check.policy_lookup import trusted_options
from patchgate.check.protected_refs import USUAL_BRANCHES
from patchgate.check.pushes import judge_received
from patchgate.errors import UndecidedError
from patchgate.git.notes import APPROVALS_REF
from patchgate.git.pushes import BRANCHES, RefUpdate, default_branch, read_received, refs_below
from patchgate.git.quoting import printable
from patchgate.git.refs import follow_symbolic_refs, symbolic_refs
from patchgate.git.repository import QUARANTINE, Repository
from patchgate.process.cpu_limit import RECEIVE_SECONDS, CpuBudget
from patchgate.report.verdict import Report
from patchgate.report.wording import SHORT_OID

# Above this, all refs are listed instead of the named ones: an argument list has its limits.
_MOST_NAMED = 100


def judge_receive(repository: Repository, lines: bytes, now: float | None = None) -> Report:
    """Judge every commit that is new to a repository, and what becomes of its protected refs.

    Args:
        repository: opened with the environment that git gives to pre-receive.
        lines: what git tells: old value, new value and name of each ref.
        now: seconds since the epoch; None: this moment.

    Raises:
        PatchgateError: it could not be read.
    """
    updates = read_received(repository, lines)
    if not updates:
        return Report(())
    # With this variable git refuses to update refs, whoever starts it; and no policy is cached.
    guard = {QUARANTINE: os.path.join(repository.common_dir, "objects")}
    repository = replace(
        repository,
        environment={**guard, **repository.environment},
        expression_time=CpuBudget(RECEIVE_SECONDS),
    )
    _require_no_namespace(repository)
    symbolic = symbolic_refs(repository)
    updates, said = follow_symbolic_refs(repository, updates, symbolic)
    default = default_branch(repository)
    named = [update.ref for update in updates]
    had = refs_below(repository, *USUAL_BRANCHES, *([default] if default else []), *named[:_MOST_NAMED])
    if len(named) > _MOST_NAMED:
        had = refs_below(repository)
    _require_old_values(updates, had)
    # A HEAD that names no branch says nothing: one of the usual names may be there.
    default = default if default in had and default.startswith(BRANCHES) else None
    report = judge_received(
        repository, had, default, updates, trusted_options(repository), now, symbolic
    ).report
    report = replace(report, warnings=(*report.warnings, *said))
    return with_approvals(repository, report, local=False, notes=_approvals(updates))


def _require_old_values(updates: Sequence[RefUpdate], had: Mapping[str, str]) -> None:
    """Refuse a push that does not say what its refs have here: the old values are the client's word.

    Git compares them after this hook, when it writes a ref, and never those of a command without a change.

    Args:
        had: what each ref that the push names has here.

    Raises:
        UndecidedError: a ref has something else, or is named twice.
    """
    seen: set[str] = set()
    for update in updates:
        ref = printable(update.ref, 200)
        if update.ref in seen:
            raise UndecidedError(f"this push names {ref} twice", "push each ref once")
        seen.add(update.ref)
        old = had.get(update.ref)
        if old != update.old:
            has, says = (oid[:SHORT_OID] if oid else "nothing" for oid in (old, update.old))
            raise UndecidedError(
                f"{ref} has {has} here, and this push says that it has {says}", "git fetch, then push again"
            )


def _require_no_namespace(repository: Repository) -> None:
    """Refuse a push into a namespace: git tells its refs by names that other refs have here.

    Raises:
        UndecidedError: the push goes into one.
    """
    if repository.namespace:
        name = printable(repository.namespace)
        raise UndecidedError(
            f"this push goes into the namespace {name}, and patchgate cannot judge its refs",
            "push to the repository without a namespace (GIT_NAMESPACE, git --namespace)",
        )


def _approvals(updates: list[RefUpdate]) -> tuple[str, ...]:
    """Name where signed approvals are: those that are here, and those that come with this very push."""
    coming = tuple(each.new for each in updates if each.ref == APPROVALS_REF and each.new is not None)
    return (APPROVALS_REF, *coming)
