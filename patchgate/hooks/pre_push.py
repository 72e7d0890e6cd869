"""pre-push: check every commit that the remote lacks, also those with a receipt.

Records the push in the ledger, and warns about commits that no hook has checked here, with the reason if
hooks were skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from patchgate.check.hook_decision import decide
from patchgate.check.policy_lookup import trusted_options
from patchgate.check.pushes import PushVerdict, judge_push_to
from patchgate.check.refs import show_ref
from patchgate.git.commit_lists import commits_not_in
from patchgate.git.new_commits import ref_value
from patchgate.git.pushes import (
    BRANCHES,
    NOTES,
    TAGS,
    RefUpdate,
    Remote,
    read_pushed,
    refs_below,
    remote_of,
)
from patchgate.git.quoting import first_of, printable
from patchgate.git.refs import (
    describe_symbolic_refs,
    follow_symbolic_refs,
    is_default_at,
    is_empty_at,
    symbolic_refs_at,
)
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Event, Ledger
from patchgate.ledger.receipts import Receipts, settled
from patchgate.report.verdict import Report
from patchgate.report.wording import SHORT_OID, count
from patchgate.values import replace

_HOOK = "pre-push"
_NAMED = 5
_MOST_RECORDED = 100


AddFindings = Callable[[Remote, Sequence[RefUpdate], Mapping[str, Sequence[str]], Report], Report]
"""Adds findings about these refs, with their new commits, to the report on a push."""


def judge_push(
    repository: Repository,
    remote: str,
    url: str,
    lines: bytes,
    now: float | None = None,
    *,
    add_findings: AddFindings | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    in_bulk: bool = False,
) -> Report:
    """Check a push, from what git gives pre-push.

    Args:
        repository: the repository that pushes.
        remote: the remote's name, or the URL if it has none.
        url: where the push goes. It may contain a password, so it is neither shown nor stored.
        lines: git's input: local name and value, remote name and value of each ref.
        now: seconds since the epoch; None: this moment.
        add_findings: what judges its refs as well.
        on_progress: called now and then with the number of judged commits, and of all.
        in_bulk: whether boring commits need no verdict of their own.

    Raises:
        PatchgateError: it could not be read.
    """
    updates = read_pushed(repository, lines)
    if not updates:
        return Report(())
    known = remote_of(repository, remote)
    symbolic = symbolic_refs_at(repository, url)
    updates, notes = follow_symbolic_refs(updates, symbolic)
    notes += describe_symbolic_refs(repository, _local_branches(lines))
    default = known.default or ""
    is_new = known.default is None and not known.had and all(each.old is None for each in updates)
    push = judge_push_to(
        repository,
        known,
        updates,
        replace(trusted_options(repository), counted=on_progress, in_bulk=in_bulk, remembers=in_bulk),
        now=now,
        symbolic=symbolic,
        is_empty=is_new and is_empty_at(repository, url),
        is_confirmed=default in known.had and is_default_at(repository, url, default, known.had[default]),
    )
    push = replace(push, report=replace(push.report, warnings=(*push.report.warnings, *notes)))
    if add_findings is not None:
        push = replace(push, report=add_findings(known, updates, push.brought, push.report))
    report, stops = _decide(repository, push)
    if not stops:
        moved = [each.ref for each in updates if each.new is None or each.ref in push.brought]
        report = _record_push(repository, known, report, {ref: push.brought.get(ref, ()) for ref in moved})
    return report


def _local_branches(lines: bytes) -> list[str]:
    """Return the local branches of a push; each line starts with the local name."""
    names = [line.split(b" ")[0] for line in lines.split(b"\n")]
    return [os.fsdecode(name) for name in names if name.startswith(b"refs/heads/")]


def judge_unpushed(
    repository: Repository,
    remote: str,
    known_refs: Mapping[str, str] = MappingProxyType({}),
    *,
    add_findings: AddFindings | None = None,
    in_bulk: bool = False,
) -> Report:
    """Check every local branch and tag that a remote lacks, when a framework does not say what is pushed.

    Args:
        repository: the repository that pushes.
        remote: the remote's name, or the URL if it has none.
        known_refs: what is known of the push: full names at the remote, with their new values.
        add_findings: what judges the refs that bring commits as well.
        in_bulk: as for `judge_push`.

    Raises:
        PatchgateError: it could not be read.
    """
    known = remote_of(repository, remote)
    refs = refs_below(repository, BRANCHES.rstrip("/"), TAGS.rstrip("/"))
    # A commit may be pushed that is on no branch: a named one, or a detached HEAD.
    pairs = [*known_refs.items(), *refs.items(), ("HEAD", ref_value(repository, "HEAD"))]
    updates = [RefUpdate(ref, known.had.get(ref), oid) for ref, oid in pairs if known.had.get(ref) != oid]
    asked = replace(trusted_options(repository), in_bulk=in_bulk, remembers=in_bulk)
    push = judge_push_to(repository, known, updates, asked, moves=False)
    if not (push.brought or push.report.changes):
        return push.report
    if add_findings is not None:
        bringing = [each for each in updates if each.ref in push.brought]
        push = replace(push, report=add_findings(known, bringing, push.brought, push.report))
    report, stops = _decide(repository, push)
    notes = (
        "the framework passes on only the first ref: every local branch and tag with commits that "
        f"{known.shown} lacks was checked ({count(len(push.brought), 'ref')})"
    )
    report = replace(report, warnings=(*report.warnings, notes))
    if not stops:
        every = [oid for commits in push.brought.values() for oid in commits]
        report = _record_push(repository, known, report, {None: every})
    return report


def _decide(repository: Repository, push: PushVerdict) -> tuple[Report, bool]:
    # Not every refusal of a large push needs a record.
    judged = decide(repository, _HOOK, push.report, None, local=False, most=_MOST_RECORDED)
    return judged.report, judged.stops


def _record_push(
    repository: Repository, remote: Remote, report: Report, brought: Mapping[str | None, Sequence[str]]
) -> Report:
    """Record a push that is accepted, and warn about its commits that no hook has checked here."""
    ours = [commits for ref, commits in brought.items() if ref is None or not ref.startswith(NOTES)]
    unchecked = _without_receipt(repository, [oid for commits in ours for oid in commits])
    ledger = Ledger(repository.common_dir)
    warnings = list(_unchecked_warnings(ledger, unchecked)) if unchecked else []
    for ref, commits in brought.items():
        about = {
            "remote": remote.shown,
            "ref": None if ref is None else show_ref(ref),
            "commits": len(commits),
            "without_receipt": [oid for oid in commits if oid in unchecked],
        }
        warning = ledger.record("pushed", about)
        warnings += [warning] if warning else []
    return replace(report, warnings=tuple(dict.fromkeys((*report.warnings, *warnings))))


def _without_receipt(repository: Repository, commits: Sequence[str]) -> dict[str, None]:
    """Find the commits that no hook has checked, though one should have; in their order.

    None if the hooks were never installed. Leaves out what a remote has, and what was there at the install.
    """
    receipts = Receipts(repository.common_dir)
    missing = dict.fromkeys(oid for oid in commits if not receipts.has(oid))
    if not missing:
        return {}
    tips = settled(repository.common_dir)
    if not (tips or receipts.commits()):
        return {}
    own = {commit.oid for commit in commits_not_in(repository, list(missing), tips, "--remotes")}
    return dict.fromkeys(oid for oid in missing if oid in own)


def _unchecked_warnings(ledger: Ledger, unchecked: Mapping[str, None]) -> Iterator[str]:
    """Warn about commits without a receipt, with the reasons for which hooks were skipped."""
    yield f"{count(len(unchecked), 'commit')} without a receipt: {_named(list(unchecked))}"
    skipped: dict[str, list[str]] = {}
    is_damaged = False
    try:
        for line in ledger.lines():
            if not isinstance(line, Event):
                is_damaged |= not line.torn
            elif line.kind == "skipped":
                commits = line.about.get("commits")
                listed = commits if isinstance(commits, Sequence) else ()
                reason = printable(str(line.about.get("reason")), 200)
                skipped.setdefault(reason, []).extend(str(oid) for oid in listed if oid in unchecked)
    except OSError:
        is_damaged = True
    for reason, oids in skipped.items():
        if oids:
            yield f"skipped ({reason}): {_named(list(dict.fromkeys(oids)))}"
    if is_damaged:
        yield "the ledger is damaged, so reasons may be missing: git patchgate log --verify"


def _named(oids: Sequence[str]) -> str:
    return first_of(oids, _NAMED, lambda oid: oid[:SHORT_OID], " ")
