"""Declare, renew, clear, recover and find intents.

Two live intents never allow the same file: a queued one allows only files that no other has, and a dead one
may be taken over. Every change happens under one lock, and is in the ledger before it is stored.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence

from patchgate.check.policy_lookup import policy_of_analyses
from patchgate.check.profiles import MARKERS
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.change_sources import pending_base, read_staged, read_worktree
from patchgate.git.diff import Detail
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.intents.declaration import DeclareOptions, check_declaration
from patchgate.intents.intent import Intent, IntentOwner, Moment, State, can_match_many, overlapping_entries
from patchgate.intents.intent_file import marked_ids
from patchgate.intents.intent_status import (
    Caller,
    Conflict,
    IntentAction,
    IntentInfo,
    IntentOutcome,
    hooks_missing,
)
from patchgate.intents.queue import IntentQueue, explain_move, require_intent
from patchgate.intents.stored_intents import (
    IntentEvent,
    StoredIntents,
    host_name,
    is_alive,
    is_foreign,
    is_gone,
    owns_files,
)
from patchgate.policy.command import analyses_digest
from patchgate.policy.policy import Profile
from patchgate.process.child import run
from patchgate.report.wording import count, some
from patchgate.storage.owner import Owner, parent_of
from patchgate.values import dataclass, replace

OWNER_VARIABLE = "PATCHGATE_OWNER"
_MOST_ANCESTORS = 64
_ID_BYTES = 5


@dataclass(frozen=True, slots=True)
class WorktreeSnapshot:
    """The state of a worktree when an intent is declared, as in `Intent`.

    `most_files` is how many files one commit may touch under an intent; None: any number.
    """

    base: str | None
    tree: str
    dirty: Mapping[RepoPath, tuple[str | None, ...]]
    analyses: str
    most_files: int | None = None


def take_snapshot(repository: Repository) -> WorktreeSnapshot:
    """Read the state of a worktree.

    A dirty file is stored as staged and as in the working tree: either may be committed next.

    Raises:
        ConfigError: the policy of `HEAD` cannot be used.
        UndecidedError: the index has conflicts, or something cannot be read.
    """
    with PrivateStore(repository) as queue, Objects(repository, queue.variables) as objects:
        # Also during a merge: what it brought is in the files, and was there before.
        base = pending_base(repository, objects)
        in_index = read_staged(repository, objects, base, Detail()).change
        on_disk = read_worktree(repository, objects, base, Detail(), queue).change
        policy, _ = policy_of_analyses(repository, objects)
        return WorktreeSnapshot(
            base=base.commit,
            tree=base.tree,
            dirty=_oids((*in_index.files, *on_disk.files)),
            analyses=analyses_digest(policy.config.analyses),
            most_files=policy.limits(Profile.AGENT, None).max_files,
        )


def _oids(files: Iterable[FileChange]) -> dict[RepoPath, tuple[str | None, ...]]:
    found: dict[RepoPath, dict[str | None, None]] = {}
    for file in files:
        found.setdefault(file.path, {})[None if file.new is None else file.new.oid] = None
    return {path: tuple(oids) for path, oids in found.items()}


def find_owner_process(environ: Mapping[str, str]) -> IntentOwner | None:
    """Find the process that owns a new intent: PATCHGATE_OWNER, else the nearest ancestor that is not git.

    The parent of `git patchgate` is git, which ends with it. None if the system shows no such process (a
    parent in another pid namespace); then only the lease counts.

    Raises:
        UsageError: PATCHGATE_OWNER is not a running process.
    """
    named = environ.get(OWNER_VARIABLE, "")
    if named:
        owner = Owner.of(int(named)) if named.isascii() and named.isdigit() and len(named) < 11 else None
        if owner is None:
            raise UsageError(
                f"{OWNER_VARIABLE} is {printable(named, 40)}, which is not a running process",
                "set it to the process that does the work, or unset it",
            )
    else:
        owner = Owner.of(_caller(environ))
    return None if owner is None else IntentOwner(host_name(), owner.pid, owner.boot_id, owner.started)


def _caller(environ: Mapping[str, str]) -> int:
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        above = parent_of(pid) or _ask_ps(pid, environ)
        if above is None or above[1] != "git":
            return pid
        pid = above[0]
    return pid


def _ask_ps(pid: int, environ: Mapping[str, str]) -> tuple[int, str] | None:
    """Ask `ps` (POSIX) for the parent and program of a process, if there is no /proc."""
    try:
        done = run(["ps", "-o", "ppid=,comm=", "-p", str(pid)], cwd=None, env=dict(environ))
    except PatchgateError:
        return None
    parent, _, name = done.out.decode("utf-8", "replace").strip().partition(" ")
    return (int(parent), os.path.basename(name.strip())) if parent.isdigit() else None


def declare(repository: Repository, request: DeclareOptions, caller: Caller) -> IntentOutcome:
    """Declare an intent; it becomes active, is queued, or is refused for a conflict.

    Raises:
        UsageError: the declaration is not valid.
        ConfigError: the policy of `HEAD` cannot be used.
        UndecidedError: the worktree, an intent or the ledger cannot be read, or something cannot be written.
    """
    work_tree = _require_work_tree(repository)
    with Objects(repository) as objects:
        checked = check_declaration(repository, objects, pending_base(repository, objects).tree, request)
    owner = find_owner_process(caller.environ)
    queue = IntentQueue(repository, caller.now)
    snapshot = take_snapshot(repository)
    with queue.lock():
        promoted, warnings = queue.promote()
        warnings = [*checked.warnings, *warnings]
        known = queue.intents.all()
        intent = Intent(
            id=f"i-{secrets.token_hex(_ID_BYTES)}",
            reason=checked.reason,
            scope=checked.scope,
            work_tree=work_tree,
            git_dir=repository.git_dir,
            base=snapshot.base,
            tree=snapshot.tree,
            declared=caller.now,
            ttl=checked.ttl,
            lease=checked.lease,
            dirty=snapshot.dirty,
            analyses=snapshot.analyses,
            budget=request.budget,
            seen=caller.now,
            owner=owner,
        )
        warnings += [
            *_warn_of_started_work(intent),
            *_warn_of_budget(intent, snapshot),
            *_warn_of_abandoned(queue, intent, known),
        ]
        blocking = queue.conflicts_of(intent, known)
        action = IntentAction.QUEUED if blocking else IntentAction.DECLARED
        if blocking and not request.queue:
            hint = "wait until it is cleared, declare other files, or add --queue to wait in the queue"
            if all(each.intent.git_dir == repository.git_dir for each in blocking):
                own = blocking[0].intent.id
                hint = (
                    f"it is of this worktree: continue under it, clear it (git patchgate intent clear {own}),"
                    " or add --queue to wait in the queue"
                )
            return replace(_refuse(None, blocking, hint), promoted=promoted, warnings=tuple(warnings))
        if blocking:
            intent = replace(intent, state=State.QUEUED)
        warnings += queue.save(intent, IntentEvent.DECLARED)
        warnings += hooks_missing(repository, caller.environ)
        info = queue.describe(intent)
        return IntentOutcome(action, info, blocking, promoted=promoted, warnings=tuple(warnings))


def refreshed(
    repository: Repository, outcome: IntentOutcome, warnings: Sequence[str], caller: Caller
) -> IntentOutcome:
    """Return an outcome with its intent as stored now, and with more warnings."""
    queue = IntentQueue(repository, caller.now)
    stored = None if outcome.intent is None else queue.intents.get(outcome.intent.id)
    info = outcome.info if stored is None else queue.describe(stored)
    return replace(outcome, info=info, warnings=(*outcome.warnings, *warnings))


def renew(repository: Repository, name: str | None, caller: Caller) -> IntentOutcome:
    """Restart the time of an intent: the named one, or this worktree's.

    Raises:
        UsageError: the intent is unknown, or the worktree has several.
        UndecidedError: an intent or the ledger cannot be read or written.
    """
    queue = IntentQueue(repository, caller.now)
    with queue.lock():
        intent = _select_intent(queue, name)
        refusal = _why_not_renewed(repository, intent, caller.now)
        if refusal is not None:
            reason, hint = refusal
            return IntentOutcome(IntentAction.REFUSED, queue.describe(intent), reason=reason, hint=hint)
        renewed = replace(intent, renewed=caller.now, seen=caller.now)
        warnings = queue.save(renewed, IntentEvent.RENEWED)
        promoted, more = queue.promote()
        now = next((each for each in promoted if each.id == renewed.id), renewed)
        return IntentOutcome(
            IntentAction.RENEWED, queue.describe(now), promoted=promoted, warnings=(*warnings, *more)
        )


def _why_not_renewed(repository: Repository, intent: Intent, now: Moment) -> tuple[str, str] | None:
    """Return why an intent cannot be renewed, and the next step; None if it can."""
    hint = f"git patchgate intent recover {intent.id} makes it active again; clear ends it"
    if intent.is_over(now):
        return f"{intent.id} has expired, and cannot be renewed", hint
    if is_foreign(intent, repository):
        return explain_move(intent)
    if is_gone(intent, repository):
        return f"the worktree of {intent.id} is gone", hint
    if not is_alive(intent, now):
        return f"{intent.id} is dead: its owner has ended, and its lease is over", hint
    return None


def clear(repository: Repository, name: str | None, caller: Caller) -> IntentOutcome:
    """End an intent: the named one, readable or not, or this worktree's; promote the next in the queue.

    Raises:
        UsageError: the intent is unknown, or the worktree has several.
        UndecidedError: another intent or the ledger cannot be read or written.
    """
    queue = IntentQueue(repository, caller.now)
    with queue.lock():
        intent: Intent | None = None
        info: IntentInfo | None = None
        warnings: list[str] = []
        try:
            intent = _select_intent(queue, name)
        except UndecidedError as error:
            if name is None:
                raise
            stored, warnings = name, [f"{error.message}; it was removed"]
        else:
            _require_person(intent, caller.environ)
            stored, info = intent.id, queue.describe(intent)
            if not (info.is_in_current_worktree or info.is_gone) and is_alive(intent, caller.now):
                warnings.append(f"{intent.id} was still active in the worktree {printable(intent.work_tree)}")
        warnings += queue.remove(stored, intent)
        promoted, more = queue.promote()
        return IntentOutcome(IntentAction.CLEARED, info, promoted=promoted, warnings=(*warnings, *more))


def _require_person(intent: Intent, environ: Mapping[str, str]) -> None:
    """Refuse to let an agent end an intent with a budget: it could declare another one.

    Raises:
        UsageError: the environment has the variable of an agent.
    """
    agent = next((agent for name, agent in MARKERS.items() if environ.get(name)), None)
    if intent.budget.written and agent is not None:
        raise UsageError(
            f"{intent.id} has a budget, and {agent} runs this: only a maintainer ends it",
            f"git patchgate intent clear {intent.id}, in your own terminal",
        )


def recover(repository: Repository, name: str, caller: Caller) -> IntentOutcome:
    """Take over an intent that is dead or expired: it becomes active, with a new owner and time.

    It stays in its worktree, or moves to this one if that is gone.

    Raises:
        UsageError: the intent is unknown.
        UndecidedError: an intent, a worktree or the ledger cannot be read, or something cannot be written.
    """
    owner = find_owner_process(caller.environ)
    queue = IntentQueue(repository, caller.now)
    with queue.lock():
        intent = _select_intent(queue, name)
        info = queue.describe(intent)
        if is_alive(intent, caller.now) and not info.is_gone:
            return IntentOutcome(
                IntentAction.REFUSED,
                info,
                reason=f"{intent.id} is alive: its owner runs, or was active within {intent.lease} s",
                hint="wait until its lease or its time is over, or clear it",
            )
        active = replace(intent, state=State.ACTIVE, renewed=caller.now, seen=caller.now, owner=owner)
        blocking = queue.conflicts_of(active, queue.intents.all())
        if blocking:
            return _refuse(info, blocking, "wait until it is cleared, then recover this one")
        active = _moved_here(repository, intent, active)
        warnings = queue.save(active, IntentEvent.RECOVERED)
        promoted, more = queue.promote()
        info = queue.describe(active)
        return IntentOutcome(IntentAction.RECOVERED, info, promoted=promoted, warnings=(*warnings, *more))


def find_intents(repository: Repository, name: str | None, caller: Caller) -> tuple[Intent, ...]:
    """Return the intent of an id, or all of this worktree, whose leases it renews.

    Raises:
        UsageError: the id is unknown.
        UndecidedError: one of them cannot be read.
    """
    intents = StoredIntents(repository.common_dir)
    if name is not None:
        return (require_intent(intents, name),)
    found = intents.of(repository.git_dir)
    for intent in found:
        intents.touch(intent, caller.now)
    return found


def all_intents(repository: Repository) -> tuple[tuple[Intent, ...], tuple[UndecidedError, ...]]:
    """Return all intents, oldest first, and the errors of those that cannot be read.

    Raises:
        UndecidedError: the folder cannot be read.
    """
    intents = StoredIntents(repository.common_dir)
    found: list[Intent] = []
    damaged: list[UndecidedError] = []
    for name in intents.names():
        try:
            intent = intents.get(name)
        except UndecidedError as error:
            damaged.append(error)
        else:
            found += [] if intent is None else [intent]
    found.sort(key=lambda intent: (intent.declared.wall, intent.id))
    return tuple(found), tuple(damaged)


def _require_work_tree(repository: Repository) -> str:
    if repository.work_tree is None:
        raise UsageError(
            "an intent needs a working tree, and this is a bare repository", "run it in a working tree"
        )
    return repository.work_tree


def _refuse(info: IntentInfo | None, blocking: tuple[Conflict, ...], hint: str) -> IntentOutcome:
    """Refuse an intent whose files another one has."""
    entries = {entry for each in blocking for entry in each.entries}
    reason = f"another intent has {'these files' if len(entries) > 1 else 'this file'}"
    return IntentOutcome(IntentAction.REFUSED, info, blocking, reason=reason, hint=hint)


def _warn_of_started_work(intent: Intent) -> list[str]:
    """Warn if declared files are dirty: what is in them already is not verified."""
    begun = sorted(path for path in intent.dirty if intent.scope.covers(path))
    if not begun:
        return []
    be, it = ("is", "it") if len(begun) == 1 else ("are", "them")
    named = some(begun, 3)
    what = f"{named} {be} dirty, and what is in {it} now is not attributed to {intent.id}"
    return [f"{what}: commit or stash {it} first to have {it} verified"]


def _warn_of_budget(intent: Intent, snapshot: WorktreeSnapshot) -> list[str]:
    """Warn if one commit cannot touch all allowed files."""
    entries = (*intent.scope.allowed, *intent.scope.related)
    number = sum(not can_match_many(each) for each in entries)
    if snapshot.most_files is None or number <= snapshot.most_files:
        return []
    most = count(snapshot.most_files, "file")
    return [
        f"{number} files are allowed, but one commit may touch only {most} (max-files): make several commits"
    ]


def _warn_of_abandoned(queue: IntentQueue, intent: Intent, known: Sequence[Intent]) -> list[str]:
    """Warn about dead intents that allow the same files: they could be recovered."""
    return [
        f"{each.id} allows the same files and is dead; clear it if its work is given up"
        for each in known
        if each.state is State.ACTIVE
        and not owns_files(each, queue.repository, queue.now)
        and overlapping_entries(intent.scope, each.scope)
    ]


def _select_intent(queue: IntentQueue, name: str | None) -> Intent:
    """Find the intent of an id; without an id this worktree's active one, else its queued one."""
    if name is not None:
        return require_intent(queue.intents, name)
    found = queue.intents.of(queue.repository.git_dir)
    chosen = [each for each in found if each.state is State.ACTIVE] or list(found)
    if not chosen:
        raise UsageError(
            "this worktree has no intent", "git patchgate intent list shows those of all worktrees"
        )
    if len(chosen) > 1:
        names = ", ".join(each.id for each in chosen)
        raise UsageError("this worktree has several intents", f"name one of: {names}")
    return chosen[0]


def _moved_here(repository: Repository, intent: Intent, active: Intent) -> Intent:
    """Move a recovered intent to this worktree if its own is gone; its base stays the same."""
    moves = is_gone(intent, repository)
    if moves:
        work_tree = _require_work_tree(repository)
        active = replace(active, work_tree=work_tree, git_dir=repository.git_dir)
    if moves and intent.id not in marked_ids(repository.git_dir):
        # What is dirty here is not of that work, unless the worktree was moved with its repository: then the
        # marker has moved too.
        active = replace(active, dirty=take_snapshot(repository).dirty)
    return active
