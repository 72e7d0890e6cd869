"""Which change an approval is about: the staged one, the last that was refused, or one by its id.

Decides how a name becomes a change that is judged anew. What the ledger remembers only says where to look
and under which policy it was refused: what is approved is what is there now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from patchgate.check.commits import check_revision
from patchgate.check.pending import check_pending
from patchgate.check.terms import Asked, trusted
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.model import change_id
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.ledger.ledger import Event, Ledger
from patchgate.policy.policies import Policies, built_in
from patchgate.policy.policy import Profile
from patchgate.report.verdict import ChangeVerdict, Json, Report

STAGED = "@staged"
_ID = re.compile(r"(sha256:)?([0-9a-f]{8,64})")
_NAMES = "name @staged, --last, a change id, or a commit"
_LOOKED_AT = 200


def last_refused(repository: Repository, asked: Asked) -> ChangeVerdict:
    """Judge again what was refused last, by the ledger.

    Raises:
        UsageError: nothing was refused here, or it is not there any more.
        PatchgateError: it could not be read.
    """
    refused = [event for event in Ledger(repository.common_dir).events() if event.kind == "refused"]
    if not refused:
        raise UsageError("nothing was refused here", _NAMES)
    return _again(repository, refused[-1], asked)


def named(repository: Repository, name: str, asked: Asked) -> ChangeVerdict:
    """Judge the change that a name means: `@staged`, a change id or the start of one, a commit.

    Raises:
        UsageError: it means nothing, or more than one change.
        PatchgateError: it could not be read.
    """
    if name == STAGED:
        return _only(check_pending(repository, _or_trusted(repository, asked)))
    if ".." in name:
        raise UsageError(f"{printable(name, 100)} is a range: one change is approved at a time", _NAMES)
    written = _ID.fullmatch(name)
    commit = None if written is not None and written.group(1) else _commit(repository, name)
    digits = written.group(2) if written is not None else None
    events = _events_about(repository, digits, commit)
    others = [event for event in events if commit is None or event.about.get("commit") != commit]
    ids = {event.about.get("change_id") for event in others}
    if len(ids) + (commit is not None) > 1:
        raise UsageError(
            f"{printable(name, 100)} means more than one change",
            "write the commit's full id, or sha256: and more of the change's",
        )
    if commit is not None:
        return _committed(repository, commit, asked, events[-1].about.get("policy") if events else None)
    if others:
        return _again(repository, others[-1], asked)
    pending = _pending(repository, digits, asked) if digits is not None else None
    if pending is None:
        raise UsageError(f"{printable(name, 100)} is no change and no commit that is known here", _NAMES)
    return pending


def _or_trusted(repository: Repository, asked: Asked) -> Asked:
    if asked.policy_from is not None:
        return asked
    return replace(trusted(repository), profile=asked.profile)


def _only(report: Report) -> ChangeVerdict:
    (change,) = report.changes
    return change


def _commit(repository: Repository, name: str) -> str | None:
    with Objects(repository) as objects:
        _, commit = tree_named(objects, name) or (None, None)
    return commit


def _events_about(repository: Repository, digits: str | None, commit: str | None) -> list[Event]:
    """Find the refusals of a commit, and of changes whose id begins so; a damaged ledger ends early."""
    start = None if digits is None else "sha256:" + digits
    found: list[Event] = []
    with suppress(UndecidedError, OSError):
        for event in Ledger(repository.common_dir).events():
            is_of_commit = commit is not None and event.about.get("commit") == commit
            about = event.about.get("change_id")
            is_named = start is not None and isinstance(about, str) and about.startswith(start)
            if event.kind in {"refused", "observed"} and (is_of_commit or is_named):
                found.append(event)
    return found


def _again(repository: Repository, event: Event, asked: Asked) -> ChangeVerdict:
    """Judge again what an event tells of; it must still be that very change."""
    commit, wanted = event.about.get("commit"), event.about.get("change_id")
    if not isinstance(wanted, str):
        raise UsageError("the ledger does not say which change was refused", _NAMES)
    short = printable(wanted[: len("sha256:") + 12])
    if isinstance(commit, str):
        if _commit(repository, commit) is None:
            raise UsageError(f"commit {printable(commit[:12])} is not here any more", _NAMES)
        change = _committed(repository, commit, asked, event.about.get("policy"))
        if change_id(change.change) == wanted:
            return change
        raise UsageError(f"commit {printable(commit[:12])} is not the change {short} any more", _NAMES)
    change_now = _pending(repository, wanted.removeprefix("sha256:"), asked)
    if change_now is None:
        raise UsageError(
            f"the change {short} is not staged any more",
            'git add what is meant, then: git patchgate approve @staged --reason "..."',
        )
    return change_now


def _pending(repository: Repository, digits: str, asked: Asked) -> ChangeVerdict | None:
    """Judge what is staged, or else the working tree, if its change id begins so."""
    if repository.work_tree is None:
        return None
    terms = _or_trusted(repository, asked)
    for whole_tree in (False, True):
        with suppress(UndecidedError):
            change = _only(check_pending(repository, terms, whole_tree=whole_tree))
            if change_id(change.change).startswith("sha256:" + digits):
                return change
    return None


def _committed(repository: Repository, commit: str, asked: Asked, digest: Json) -> ChangeVerdict:
    """Judge a commit, by the policy under which it was refused if that can be found."""
    change = _only(check_revision(repository, commit, _or_trusted(repository, asked)))
    if not isinstance(digest, str) or asked.policy_from is not None or change.policy.digest == digest:
        return change
    place = _place_of(repository, commit, digest, Profile(change.profile))
    if place is None:
        # The policy has changed since; what judges now is what an exception is needed from.
        return change
    return _only(check_revision(repository, commit, replace(asked, policy_from=place)))


def _place_of(repository: Repository, commit: str, digest: str, profile: Profile) -> str | None:
    """Find a commit with this policy: a push is judged by one that the remote has, behind this or a ref."""
    with Objects(repository) as objects:
        policies = Policies(objects)
        for place in _places(repository, commit):
            header = objects.header(place + "^{tree}")
            if header is None:
                continue
            with suppress(PatchgateError):
                found = policies.at(policies.key(header.oid))
                policy = built_in() if found.is_absent else found.policy
                if policy is not None and policy.digest(profile) == digest:
                    return place
    return None


def _places(repository: Repository, commit: str) -> Iterator[str]:
    count = f"--max-count={_LOOKED_AT}"
    behind = repository.git("rev-list", "--first-parent", "--skip=1", count, commit)
    refs = repository.git("for-each-ref", f"--count={_LOOKED_AT}", "--format=%(objectname)", "refs/remotes")
    for done in (behind, refs):
        yield from dict.fromkeys(done.out.decode("ascii", "replace").split())
