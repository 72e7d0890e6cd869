"""pre-receive: check what a server's repository is about to receive.

Writes nothing: no ledger, no cache, and git's guard against ref updates is on. Reads the new objects from
git's quarantine. `check.pushes` decides what is refused, and by which policy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from patchgate.approvals.signers import has_signers, read_server_signers
from patchgate.check.hook_decision import ApprovalSources, with_approvals
from patchgate.check.policy_lookup import CheckOptions, trusted_options
from patchgate.check.protected_refs import Destination
from patchgate.check.pushes import judge_received
from patchgate.errors import UndecidedError
from patchgate.git.notes import APPROVALS_REF
from patchgate.git.objects import Objects
from patchgate.git.pushes import (
    BRANCHES,
    NOTES,
    USUAL_BRANCHES,
    RefUpdate,
    default_branch,
    read_received,
    refs_below,
)
from patchgate.git.quoting import printable
from patchgate.git.ref_names import require_own_files, require_plain_names
from patchgate.git.refs import follow_symbolic_refs, symbolic_refs_for
from patchgate.git.repository import QUARANTINE, Repository
from patchgate.git.revisions import has_commits
from patchgate.policy.file_kinds import ALLOWED_SIGNERS
from patchgate.policy.tree_policies import TreePolicies
from patchgate.process.cpu_limit import RECEIVE_SECONDS, CpuBudget
from patchgate.report.verdict import Report, Verdict
from patchgate.report.wording import SHORT_OID
from patchgate.values import replace

# With more refs than this, all refs are listed: an argument list is limited.
_MOST_NAMED = 100


def judge_receive(
    repository: Repository, lines: bytes, now: float | None = None, *, in_bulk: bool = False
) -> Report:
    """Check every commit that is new to a repository, and the updates of its protected refs.

    Args:
        repository: opened with the environment that git gives to pre-receive.
        lines: git's input: old value, new value and name of each ref.
        now: seconds since the epoch; None: this moment.
        in_bulk: whether boring commits need no verdict of their own.

    Raises:
        PatchgateError: it could not be read.
    """
    updates = read_received(repository, lines)
    if not updates:
        return Report(())
    # With this variable git refuses to update refs, and no policy is cached.
    guard = {QUARANTINE: os.path.join(repository.common_dir, "objects")}
    repository = replace(
        repository,
        environment={**guard, **repository.environment},
        expression_time=CpuBudget(RECEIVE_SECONDS),
    )
    _require_whole_repository(repository)
    symbolic = symbolic_refs_for(repository, updates)
    updates, said = follow_symbolic_refs(updates, symbolic)
    head = default_branch(repository)
    named = [update.ref for update in updates]
    require_plain_names(repository, updates)
    require_own_files(repository, named, head)
    known = [*USUAL_BRANCHES, *([head] if head else []), *named]
    had = refs_below(repository, *(known if len(named) <= _MOST_NAMED else ()))
    _require_old_values(updates, had)
    # If HEAD names no branch, one of the usual names may exist.
    default = head if head in had and head.startswith(BRANCHES) else None
    signers = read_server_signers(repository)
    asked = replace(trusted_options(repository), in_bulk=in_bulk)
    if default is None:
        _require_no_owners(repository, updates, head, asked, is_signed=bool(signers))
    here = Destination(
        "this repository",
        default,
        had,
        judges_all=True,
        symbolic=symbolic,
        is_empty=default is None and not has_commits(repository),
    )
    report = judge_received(repository, here, updates, asked, now).report
    report = replace(report, warnings=(*report.warnings, *said))
    notes = _approvals(updates)
    sources = ApprovalSources(local=False, notes=notes, signers=signers, is_final=True, now=now)
    report = with_approvals(repository, report, sources)
    if report.verdict is Verdict.ACCEPTED:
        judging = {head: had.get(head or ""), asked.policy_name: asked.policy_from}
        _require_same_rules(repository, head, {ref: oid for ref, oid in judging.items() if ref}, signers)
        if default is None:
            _require_no_owners(repository, updates, head, asked, is_signed=bool(signers))
    return report


def _require_same_rules(
    repository: Repository, head: str | None, judging: Mapping[str, str | None], signers: bytes
) -> None:
    """Refuse a push if the rules that judged it have changed by now: it may have taken minutes.

    Args:
        head: the ref that HEAD named.
        judging: what each ref had whose policy and signers count for other refs, too.
        signers: whom the server named.

    Raises:
        UndecidedError: they are others now.
    """
    tips = refs_below(repository, *judging) if judging else {}
    is_same = default_branch(repository) == head and read_server_signers(repository) == signers
    moved = [(oid, tips.get(ref)) for ref, oid in judging.items() if tips.get(ref) != oid]
    if moved:
        with Objects(repository) as objects:
            is_same = is_same and all(_rules(objects, had) == _rules(objects, has) for had, has in moved)
    if not is_same:
        raise UndecidedError("the rules have changed while this push was judged", "push again")


def _rules(objects: Objects, oid: str | None) -> tuple[object, ...] | None:
    """Return what tells the policy and the signers of a commit from others; None if there is no commit."""
    header = objects.header(oid + "^{tree}") if oid is not None else None
    if header is None:
        return None
    return TreePolicies(objects).key(header.oid), objects.entry(header.oid, ALLOWED_SIGNERS.raw)


def _require_old_values(updates: Sequence[RefUpdate], had: Mapping[str, str]) -> None:
    """Refuse a push whose old values are wrong: the client sends them.

    Git compares them only after this hook, when it writes a ref, and never for a command without a change, or
    that deletes what was not there: it would delete what somebody makes meanwhile.

    Args:
        had: the value here of each ref that the push names.

    Raises:
        UndecidedError: a ref has another value, is named twice, or is deleted but not there.
    """
    seen: set[str] = set()
    for update in updates:
        ref = printable(update.ref, 200)
        if update.ref in seen:
            raise UndecidedError(f"this push updates {ref} twice", "push each ref once")
        seen.add(update.ref)
        if update.old is None and update.new is None:
            raise UndecidedError(f"this push deletes {ref}, which is not here", "push without it")
        old = had.get(update.ref)
        if old != update.old:
            has, says = (oid[:SHORT_OID] if oid else "nothing" for oid in (old, update.old))
            raise UndecidedError(
                f"{ref} is at {has} here, but this push expects {says}", "git fetch, then push again"
            )


def _require_no_owners(
    repository: Repository,
    updates: Sequence[RefUpdate],
    head: str | None,
    asked: CheckOptions,
    *,
    is_signed: bool,
) -> None:
    """Refuse a push where HEAD names no branch, and a branch has owners: they are those of the default one.

    Args:
        updates: what is pushed; notes have no owners.
        head: the ref that HEAD names, which is missing or no branch; None: it names none.
        asked: the trusted ref counts, too.
        is_signed: whether the server names signers: then every branch has owners.

    Raises:
        UndecidedError: there is such a branch.
    """
    if all(each.ref.startswith(NOTES) for each in updates):
        return
    branches = dict.fromkeys(refs_below(repository, BRANCHES.rstrip("/")).values())
    has_owners = is_signed and bool(branches)
    with Objects(repository) as objects:
        policies = TreePolicies(objects)
        for oid in () if has_owners else filter(None, (asked.policy_from, *branches)):
            header = objects.header(oid + "^{tree}")
            if header is None:
                continue
            found = policies.at(policies.key(header.oid))
            has_table = found.policy is not None and bool(found.policy.config.owners)
            has_owners = found.fault is not None or has_table or has_signers(objects, header.oid)
            if has_owners:
                break
    if has_owners:
        # It names no branch: that with a policy may be anybody's.
        raise UndecidedError(
            f"HEAD names {_shown(head)}: it is not known whose owners must approve what",
            f"an administrator names the default branch, on the server: git symbolic-ref HEAD {BRANCHES}NAME",
        )


def _shown(head: str | None) -> str:
    if head is None:
        return "no branch"
    why = "is missing" if head.startswith(BRANCHES) else "is no branch"
    return f"{printable(head, 200)}, which {why}"


def _require_whole_repository(repository: Repository) -> None:
    """Refuse a push that sees only a part of the repository, or would cut off its history.

    Raises:
        UndecidedError: it goes into a namespace, where git names refs like others of this repository, or to
            the path of a linked worktree, which has its own HEAD; or it would make this a shallow clone.
    """
    if repository.namespace:
        name = printable(repository.namespace)
        raise UndecidedError(
            f"this push goes into the namespace {name}, whose refs patchgate cannot check",
            "push to the repository without a namespace (GIT_NAMESPACE, git --namespace)",
        )
    if os.path.realpath(repository.git_dir) != os.path.realpath(repository.common_dir):
        raise UndecidedError(
            "this push goes by the path of a worktree, whose HEAD may name another default branch",
            "push to the path of the repository itself",
        )
    # Git keeps what a shallow clone sends in such a file until the push has ended.
    if any(name.startswith("shallow_") for name in os.listdir(repository.common_dir)):
        asked = ("config", "--type=bool", "--get", "receive.shallowUpdate")
        if repository.git(*asked, answers=(0, 1)).out.strip() == b"true":
            raise UndecidedError(
                "this push comes from a shallow clone, and would cut off the history here: this server has "
                "receive.shallowUpdate",
                "git fetch --unshallow, then push again; or an administrator unsets receive.shallowUpdate",
            )


def _approvals(updates: list[RefUpdate]) -> tuple[str, ...]:
    """Return where signed approvals are: in this repository, and in this push."""
    coming = tuple(each.new for each in updates if each.ref == APPROVALS_REF and each.new is not None)
    return (APPROVALS_REF, *coming)
