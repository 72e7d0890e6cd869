"""Which files of a tree are claimed by more than one component.

Only folders are listed in which the patterns of two components can meet, so components that keep apart cost
nothing, however many files they have.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator

from patchgate.git.path import RepoPath
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component, Components


def shared_files(
    components: Components, view: TreeView, ids: Collection[str]
) -> dict[RepoPath, tuple[str, ...]]:
    """Find the files that some components share with others, each with all that claim it.

    Raises:
        UndecidedError: an object is missing.
    """
    if not ids:
        return {}
    starts = sorted((folder, name) for name in components.ids for folder in components[name].folders)
    chosen: list[bytes] = []
    for place in sorted({each for name in ids for each in _meetings(components[name], starts)}):
        if not any(not above or RepoPath(place).is_within(above) for above in chosen):
            chosen.append(place)
    found: dict[RepoPath, tuple[str, ...]] = {}
    for place in chosen:
        for path in view.below(place):
            claims = tuple(component.id for component, _ in components.claims(path))
            if len(claims) > 1 and any(name in ids for name in claims):
                found[path] = claims
    return found


def _meetings(component: Component, starts: list[tuple[bytes, str]]) -> Iterator[bytes]:
    """Yield the folders at or below which files of a component and of another one can lie."""
    for folder in component.folders:
        for above in {*RepoPath(folder).parents(), folder}:
            at = bisect_left(starts, (above, ""))
            while at < len(starts) and starts[at][0] == above:
                if starts[at][1] != component.id:
                    yield folder
                    break
                at += 1
        inside = folder + b"/" if folder else b""
        at = bisect_left(starts, (inside, ""))
        while at < len(starts) and starts[at][0].startswith(inside):
            if starts[at][1] != component.id:
                yield starts[at][0]
            at += 1
