"""Whose a signal is: this piece of work's own, or external.

Decides it by the files that a finding or a metric names, and by nothing else: own is what names any file of
the scope (A2), and what names none (A5). Cuts nothing, and does not decide what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TypeAlias, TypeVar

from patchgate.change.path import RepoPath
from patchgate.declared.intent import Scope
from patchgate.verdict.comparison import Result, Worsened

Signal = TypeVar("Signal", Result, Worsened)
IsOwn: TypeAlias = Callable[[Result | Worsened], bool]


def own_of(scope: Scope, dirty: Set[RepoPath] = frozenset()) -> IsOwn:
    """Make what tells of each signal whether it is a scope's own; make it once, for it remembers paths.

    Args:
        scope: what the work declared.
        dirty: files that are as they were changed before the work began: the scope's or not, none is its own.
    """
    known: dict[RepoPath, bool] = {}

    def is_within(path: RepoPath) -> bool:
        # Thousands of signals lie in a few files, and each pattern is tried on each path.
        if path not in known:
            known[path] = path not in dirty and scope.covers(path)
        return known[path]

    def is_own(signal: Result | Worsened) -> bool:
        paths = (signal.path,) if isinstance(signal, Worsened) else signal.paths
        return not paths or any(map(is_within, paths))

    return is_own


def part(signals: Iterable[Signal], is_own: IsOwn | None) -> tuple[tuple[Signal, ...], tuple[Signal, ...]]:
    """Part signals into the work's own and external ones; without a scope (None) all are its own (A6)."""
    own: list[Signal] = []
    external: list[Signal] = []
    for signal in signals:
        (own if is_own is None or is_own(signal) else external).append(signal)
    return tuple(own), tuple(external)
