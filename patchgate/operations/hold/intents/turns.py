"""Whose turn it is: who stands in the way of an intent, and when one that waits begins.

Decides that only live intents stand in the way, that of those that wait the oldest which somebody holds comes
first, and that its work begins at that moment. Who asks for what, and under which lock, the verbs decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchgate.change.quoting import printable
from patchgate.declared.intent import Intent, Moment, State, conflicts
from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.repository import Repository, open_repository
from patchgate.ledger.intent_marker import marked
from patchgate.ledger.intents import Recorded, is_live
from patchgate.operations.hold.intents.outcome import Caller, Conflict
from patchgate.operations.hold.intents.pins import Pins, pins_of
from patchgate.operations.hold.intents.states import Told, told_of
from patchgate.operations.hold.intents.store import Store, is_gone


def advance(repository: Repository, caller: Caller) -> tuple[tuple[Intent, ...], tuple[str, ...]]:
    """Let those that wait begin, where one of this worktree does and nothing stands in its way any more.

    Returns:
        those that began, and warnings: where nothing can be changed, everything can be looked at.
    """
    store = Store(repository, caller.now)
    try:
        found = store.intents.of(repository.git_dir)
        is_tidy = len(found) == len(marked(repository.git_dir))
    except UndecidedError:
        # Whoever shows them says it.
        return (), ()
    try:
        waiting = [each for each in found if each.state is State.QUEUED]
        known = store.intents.all() if waiting else ()
        if is_tidy and not any(_is_next(store, each, known, caller) for each in waiting):
            return (), ()
        # Under the lock goes what a kill left in the marker, too.
        with store.lock():
            promoted, warnings = promote(store, caller)
    except UndecidedError as error:
        return (), (f"nothing was promoted: {error.message}",)
    return promoted, tuple(warnings)


def promote(store: Store, caller: Caller) -> tuple[tuple[Intent, ...], list[str]]:
    """Make those that wait active, the oldest first, where nothing stands in their way any more.

    Their work begins now: base, dirty files, analyses and time are those of this moment. One whose time is
    over, whose worktree is gone, or whom nobody holds, waits for somebody to recover it.
    """
    promoted: list[Intent] = []
    warnings: list[str] = []
    try:
        known = list(store.intents.all())
    except UndecidedError as error:
        return (), [f"nothing was promoted: {error.message}"]
    for place, intent in enumerate(known):
        if not _is_next(store, intent, known, caller):
            continue
        try:
            pins = pins_of(worktree_of(store.repository, intent, caller))
            active = pinned(intent, pins)
            active = replace(active, state=State.ACTIVE, renewed=caller.now, seen=caller.now)
            warnings += store.put(active, Recorded.PROMOTED)
        except PatchgateError as error:
            warnings.append(f"{intent.id} stays in the queue: {error.message}")
            continue
        known[place] = active
        promoted.append(active)
    return tuple(promoted), warnings


def _is_next(store: Store, intent: Intent, known: Sequence[Intent], caller: Caller) -> bool:
    """Tell whether one that waits may begin: somebody holds it, and nothing stands in its way."""
    return (
        intent.state is State.QUEUED
        and is_live(intent, caller.now)
        and not is_gone(intent, store.repository)
        and not _blocking(intent, known, caller.now)
    )


def _blocking(intent: Intent, known: Sequence[Intent], now: Moment) -> list[Intent]:
    """Name the live active intents that allow a file which this one allows."""
    return [
        each
        for each in known
        if each.id != intent.id
        and each.state is State.ACTIVE
        and is_live(each, now)
        and conflicts(intent.scope, each.scope)
    ]


def in_the_way(store: Store, intent: Intent, known: Sequence[Intent], caller: Caller) -> tuple[Conflict, ...]:
    """Tell of those in the way of an intent, and by which of its entries."""
    return tuple(
        Conflict(told_here(store, each, caller), conflicts(intent.scope, each.scope))
        for each in _blocking(intent, known, caller.now)
    )


def told_here(store: Store, intent: Intent, caller: Caller) -> Told:
    """Say how an intent stands, seen from where one stands."""
    return told_of(intent, caller.now, store.repository)


def pinned(intent: Intent, pins: Pins) -> Intent:
    """Let the work of an intent begin with what is there now."""
    return replace(
        intent, base=pins.base, tree=pins.tree, dirty=pins.dirty, analyses=pins.analyses, before=None
    )


def worktree_of(repository: Repository, intent: Intent, caller: Caller) -> Repository:
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
