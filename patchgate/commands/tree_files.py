"""Which files the tree has that an analysis ran on, and their lines.

Decides nothing: what is asked of git is kept, as far as there is room. A file is asked for once in a tree of
ordinary size, and at most twice where its text did not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from patchgate.git.path import RepoPath

Lines = Callable[[RepoPath], Sequence[bytes] | None]
"""Gives the lines of a file of the tree; None: no such file, none: one that has no text to be read."""
MOST_HELD = 16 << 20
# What an object of bytes takes besides its text, with its place in a list.
_OF_A_LINE = 41


class TreeFiles:
    """The files of one tree.

    Args:
        lines_of: gives the lines of a file.
        most_held: how many bytes of text are kept.
    """

    def __init__(self, lines_of: Lines, most_held: int = MOST_HELD) -> None:
        self._lines_of = lines_of
        self._room = most_held
        self._is_there: dict[RepoPath, bool] = {}
        self._held: dict[RepoPath, Sequence[bytes]] = {}

    def has(self, path: RepoPath) -> bool:
        """Tell whether there is such a file."""
        if path not in self._is_there:
            self._ask(path)
        return self._is_there[path]

    def lines(self, path: RepoPath) -> Sequence[bytes]:
        """Give the lines of a file; none where there is no text."""
        found = self._held.get(path)
        return found if found is not None else self._ask(path)

    def _ask(self, path: RepoPath) -> Sequence[bytes]:
        lines = self._lines_of(path)
        self._is_there[path] = lines is not None
        size = _OF_A_LINE * len(lines or ()) + sum(map(len, lines or ()))
        if lines is not None and size <= self._room:
            self._room -= size
            self._held[path] = lines
        return lines or ()
