"""Whose a signal is: this piece of work's own, or external.

Decides it by the files that a finding or a metric names: own is what names any file of the scope (A2), and
what names none (A5). Of files that are as they were changed before the work began, what was found there then
is nobody's here; what is new there since is the work's. Cuts nothing, and does not decide what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TypeAlias, TypeVar

from patchgate.commands.results import Comparison, Result, Worsened
from patchgate.git.path import RepoPath
from patchgate.intents.intent import Scope

Signal = TypeVar("Signal", Result, Worsened)
IsOwn: TypeAlias = Callable[[Result | Worsened], bool]


def own_of(scope: Scope, dirty: Set[RepoPath] = frozenset(), since: Comparison | None = None) -> IsOwn:
    """Make what tells of each signal whether it is a scope's own; make it once, for it remembers paths.

    Args:
        scope: what the work declared.
        dirty: files that are as they were changed before the work began.
        since: how what is verified differs from the tree that the work began on with these files in it; None:
            nobody knows, and then all that is found in the scope is its own.
    """
    known: dict[RepoPath, bool] = {}
    new = None if since is None else {*since.new, *map(_measured, since.worsened)}

    def is_within(path: RepoPath) -> bool:
        # Thousands of signals lie in a few files, and each pattern is tried on each path.
        if path not in known:
            known[path] = scope.covers(path)
        return known[path]

    def is_own(signal: Result | Worsened) -> bool:
        paths = (signal.path,) if isinstance(signal, Worsened) else signal.paths
        within = [path for path in paths if is_within(path)]
        if not within:
            return not paths
        if new is None or any(path not in dirty for path in within):
            return True
        return (_measured(signal) if isinstance(signal, Worsened) else signal) in new

    return is_own


def _measured(signal: Worsened) -> tuple[RepoPath, str, str]:
    """Name what was measured: the values differ with what is compared."""
    return signal.path, signal.symbol, signal.name


def part(signals: Iterable[Signal], is_own: IsOwn | None) -> tuple[tuple[Signal, ...], tuple[Signal, ...]]:
    """Part signals into the work's own and external ones; without a scope (None) all are its own (A6)."""
    own: list[Signal] = []
    external: list[Signal] = []
    for signal in signals:
        (own if is_own is None or is_own(signal) else external).append(signal)
    return tuple(own), tuple(external)
