"""The verbs of an intent: declare, renew, clear, recover; and which there are.

Decides who gets which files: two live intents never allow the same one, a queued one owns nothing until what
stands in its way is gone, a dead one may be taken over. Every change happens under one lock, and is on record
in the ledger before it is stored. How a declaration is read `request` decides, what is there when work
begins `pins`, how an answer reads `document` and `texts`.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from patchgate.change.quoting import printable
from patchgate.declared.intent import Intent, Moment, State, conflicts
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, open_repository
from patchgate.git.sources import pending_base
from patchgate.ledger.intents import Intents, is_live
from patchgate.operations.hold.intents.holder import holder_of
from patchgate.operations.hold.intents.outcome import Action, Caller, Conflict, Outcome
from patchgate.operations.hold.intents.pins import Pins, pins_of
from patchgate.operations.hold.intents.request import Request, checked
from patchgate.operations.hold.intents.store import Store, is_gone

_ID_BYTES = 5


def declare(repository: Repository, request: Request, caller: Caller) -> Outcome:
    """Declare what a piece of work will touch; it is active at once, queued, or refused for a conflict.

    Raises:
        UsageError: something that was typed cannot stand.
        ConfigError: the policy of `HEAD` cannot be used.
        UndecidedError: the worktree, an intent or the ledger cannot be read, or something cannot be written.
    """
    work_tree = _require_work_tree(repository)
    with Objects(repository) as objects:
        said = checked(repository, objects, pending_base(repository, objects).tree, request)
    holder = holder_of(caller.environ)
    store = Store(repository, caller.now)
    pins = pins_of(repository)
    with store.lock():
        promoted, warnings = _promote(store, caller)
        warnings = [*said.warnings, *warnings]
        known = store.intents.all()
        intent = Intent(
            f"i-{secrets.token_hex(_ID_BYTES)}",
            said.reason,
            said.scope,
            work_tree,
            repository.git_dir,
            pins.base,
            pins.tree,
            caller.now,
            said.ttl,
            said.lease,
            pins.dirty,
            pins.analyses,
            seen=caller.now,
            holder=holder,
        )
        warnings += _left_behind(intent, known, caller.now)
        blocking = _blocking(intent, known, caller.now)
        action = Action.QUEUED if blocking else Action.DECLARED
        if blocking and not request.queue:
            reason = f"another piece of work has declared {'these files' if _many(blocking) else 'this file'}"
            hint = "wait until it is cleared, declare other files, or add --queue to be next"
            return Outcome(Action.REFUSED, None, blocking, promoted, tuple(warnings), reason, hint)
        if blocking:
            intent = replace(intent, state=State.QUEUED)
        warnings += store.put(intent, "declared")
        return Outcome(action, intent, blocking, promoted, tuple(warnings))


def renew(repository: Repository, name: str | None, caller: Caller) -> Outcome:
    """Let the time of an intent begin anew: of the one named, or of this worktree's.

    Raises:
        UsageError: there is no such intent, or several could be meant.
        UndecidedError: an intent or the ledger cannot be read or written.
    """
    store = Store(repository, caller.now)
    with store.lock():
        intent = _named(store, name, caller.now)
        if intent.is_over(caller.now):
            return Outcome(
                Action.REFUSED,
                intent,
                reason=f"the time of {intent.id} is over, and what is over is not renewed",
                hint=f"git patchgate intent recover {intent.id} takes it up again; clear ends it",
            )
        renewed = replace(intent, renewed=caller.now, seen=caller.now)
        warnings = store.put(renewed, "renewed")
        promoted, more = _promote(store, caller)
        now = next((each for each in promoted if each.id == renewed.id), renewed)
        return Outcome(Action.RENEWED, now, (), promoted, (*warnings, *more))


def clear(repository: Repository, name: str | None, caller: Caller) -> Outcome:
    """End an intent: the one named, readable or not, or this worktree's; the next in the queue are promoted.

    Raises:
        UsageError: there is no such intent, or several could be meant.
        UndecidedError: another intent or the ledger cannot be read or written.
    """
    store = Store(repository, caller.now)
    with store.lock():
        intent: Intent | None = None
        warnings: list[str] = []
        try:
            intent = _named(store, name, caller.now)
        except UndecidedError as error:
            if name is None:
                raise
            stored, warnings = name, [f"{error.message}; it is removed"]
        else:
            stored = intent.id
        if intent is not None and intent.git_dir != repository.git_dir and is_live(intent, caller.now):
            warnings.append(f"{intent.id} was alive, in the worktree {printable(intent.work_tree)}")
        warnings += store.take_out(stored, intent)
        promoted, more = _promote(store, caller)
        return Outcome(Action.CLEARED, intent, (), promoted, (*warnings, *more))


def recover(repository: Repository, name: str, caller: Caller) -> Outcome:
    """Take over an intent that nobody holds any more, or whose time is over: active, new owner, new time.

    It stays in its worktree, and comes into this one where that is gone.

    Raises:
        UsageError: there is no such intent.
        UndecidedError: an intent, a worktree or the ledger cannot be read, or something cannot be written.
    """
    holder = holder_of(caller.environ)
    store = Store(repository, caller.now)
    with store.lock():
        intent = _named(store, name, caller.now)
        if is_live(intent, caller.now):
            return Outcome(
                Action.REFUSED,
                intent,
                reason=f"{intent.id} is alive: it is held, or was seen less than {intent.lease} seconds ago",
                hint="wait until its lease or its time is over, or clear it",
            )
        active = replace(intent, state=State.ACTIVE, renewed=caller.now, seen=caller.now, holder=holder)
        promoted: tuple[Intent, ...] = ()
        blocking = _blocking(active, store.intents.all(), caller.now)
        if blocking:
            reason = f"another piece of work has declared {'these files' if _many(blocking) else 'this file'}"
            hint = "wait until it is cleared, then recover this one"
            return Outcome(Action.REFUSED, intent, blocking, reason=reason, hint=hint)
        active = _settled(repository, intent, active, caller)
        warnings = store.put(active, "recovered")
        promoted, more = _promote(store, caller)
        return Outcome(Action.RECOVERED, active, (), promoted, (*warnings, *more))


def here(repository: Repository, name: str | None, caller: Caller) -> tuple[Intent, ...]:
    """Give the intent of an id, or all of this worktree, which is an activity of those.

    Raises:
        UsageError: there is no intent of that id.
        UndecidedError: one of them cannot be read.
    """
    intents = Intents(repository.common_dir)
    if name is not None:
        return (_existing(intents, name),)
    found = intents.of(repository.git_dir)
    for intent in found:
        if not intent.is_over(caller.now):
            intents.touch(intent, caller.now)
    return found


def everywhere(repository: Repository) -> tuple[tuple[Intent, ...], tuple[UndecidedError, ...]]:
    """Give all intents, the oldest first, and what is wrong with those that cannot be read.

    Raises:
        UndecidedError: the folder cannot be read.
    """
    intents = Intents(repository.common_dir)
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
            "a bare repository has no working tree, and an intent is of one", "go to a working tree"
        )
    return repository.work_tree


def _many(blocking: Sequence[Conflict]) -> bool:
    return len({entry for each in blocking for entry in each.entries}) > 1


def _blocking(intent: Intent, known: Sequence[Intent], now: Moment) -> tuple[Conflict, ...]:
    """Name the live active intents that allow a file which this one allows."""
    found = [
        Conflict(each, conflicts(intent.scope, each.scope))
        for each in known
        if each.state is State.ACTIVE and is_live(each, now)
    ]
    return tuple(each for each in found if each.entries)


def _left_behind(intent: Intent, known: Sequence[Intent], now: Moment) -> list[str]:
    """Warn of intents that nobody holds, and that allow the same files: they could come to life again."""
    return [
        f"{each.id} allows the same files and nobody holds it; clear it, if its work is given up"
        for each in known
        if each.state is State.ACTIVE and not is_live(each, now) and conflicts(intent.scope, each.scope)
    ]


def _existing(intents: Intents, name: str) -> Intent:
    intent = intents.get(name)
    if intent is None:
        raise UsageError(
            f"there is no intent {printable(name, 60)}", "git patchgate intent list shows all of them"
        )
    return intent


def _named(store: Store, name: str | None, now: Moment) -> Intent:
    """Find the intent of an id; without one this worktree's active one, else the one that waits there."""
    if name is not None:
        return _existing(store.intents, name)
    found = store.intents.of(store.repository.git_dir)
    chosen = [each for each in found if each.state is State.ACTIVE] or list(found)
    if not chosen:
        raise UsageError(
            "this worktree has no intent", "git patchgate intent list shows those of all worktrees"
        )
    if len(chosen) > 1:
        names = ", ".join(each.id for each in chosen)
        raise UsageError("this worktree has several intents", f"name one of: {names}")
    return chosen[0]


def _promote(store: Store, caller: Caller) -> tuple[tuple[Intent, ...], list[str]]:
    """Make those that wait active, the oldest first, where nothing stands in their way any more.

    Their work begins now: base, dirty files, analyses and time are those of this moment. One whose time is
    over, or whose worktree is gone, waits for somebody to recover it.
    """
    promoted: list[Intent] = []
    warnings: list[str] = []
    try:
        known = list(store.intents.all())
    except UndecidedError as error:
        return (), [f"nothing was promoted: {error.message}"]
    for place, intent in enumerate(known):
        if intent.state is not State.QUEUED or intent.is_over(caller.now) or is_gone(intent):
            continue
        if _blocking(intent, known, caller.now):
            continue
        try:
            pins = pins_of(_worktree_of(store.repository, intent, caller))
            active = _pinned(intent, pins)
            active = replace(active, state=State.ACTIVE, renewed=caller.now, seen=caller.now)
            warnings += store.put(active, "promoted")
        except PatchgateError as error:
            warnings.append(f"{intent.id} stays in the queue: {error.message}")
            continue
        known[place] = active
        promoted.append(active)
    return tuple(promoted), warnings


def _pinned(intent: Intent, pins: Pins) -> Intent:
    return replace(
        intent, base=pins.base, tree=pins.tree, dirty=pins.dirty, analyses=pins.analyses, before=None
    )


def _settled(repository: Repository, intent: Intent, active: Intent, caller: Caller) -> Intent:
    """Put an intent that is taken over where its work goes on; work that had not begun begins now."""
    moves = is_gone(intent)
    if moves:
        work_tree = _require_work_tree(repository)
        active = replace(active, work_tree=work_tree, git_dir=repository.git_dir)
    if intent.state is State.QUEUED:
        return _pinned(active, pins_of(_worktree_of(repository, active, caller)))
    if moves:
        # What is dirty here was not made by that work; what it has committed since its base, it has.
        active = replace(active, dirty=pins_of(repository).dirty)
    return active


def _worktree_of(repository: Repository, intent: Intent, caller: Caller) -> Repository:
    """Open the worktree of an intent.

    Raises:
        PatchgateError: it is not where it was.
    """
    if intent.git_dir == repository.git_dir:
        return repository
    environ = {name: value for name, value in caller.environ.items() if not name.startswith("GIT_")}
    found = open_repository(environ, intent.work_tree)
    if found.git_dir != intent.git_dir:
        raise UndecidedError(
            f"the worktree {printable(intent.work_tree)} is another one now", "recover the intent there"
        )
    return found
