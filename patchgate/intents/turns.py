"""Whose turn it is: who stands in the way of an intent, and when one that waits begins.

Decides that only intents which have their files block another one, that of those that wait the oldest which
somebody holds comes first, and that its base stays that of the declaration: what is committed while it waits
is its work too. Who asks for what, and under which lock, the verbs decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.repository import Repository
from patchgate.intents.intent import Intent, Moment, State, conflicts
from patchgate.intents.intents import Recorded, is_live
from patchgate.intents.marker import marked
from patchgate.intents.outcome import Caller, Conflict
from patchgate.intents.reservations import has_files, is_gone
from patchgate.intents.states import Told, told_of
from patchgate.intents.store import Store


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

    Their time begins now; base, dirty files and analyses stay those of the declaration, so that nothing which
    was done meanwhile goes unverified. One whose time is over, whose worktree is gone, or whom nobody holds,
    waits for somebody to recover it.
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
            active = replace(intent, state=State.ACTIVE, renewed=caller.now, seen=caller.now)
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
        and not _blocking(store, intent, known, caller.now)
    )


def _blocking(store: Store, intent: Intent, known: Sequence[Intent], now: Moment) -> list[Intent]:
    """Name the intents that have a file which this one allows."""
    return [
        each
        for each in known
        if each.id != intent.id
        and has_files(each, store.repository, now)
        and conflicts(intent.scope, each.scope)
    ]


def in_the_way(store: Store, intent: Intent, known: Sequence[Intent], caller: Caller) -> tuple[Conflict, ...]:
    """Tell of those in the way of an intent, and by which of its entries."""
    return tuple(
        Conflict(told_here(store, each, caller), conflicts(intent.scope, each.scope))
        for each in _blocking(store, intent, known, caller.now)
    )


def told_here(store: Store, intent: Intent, caller: Caller) -> Told:
    """Say how an intent stands, seen from where one stands."""
    return told_of(intent, caller.now, store.repository, store.controls)
