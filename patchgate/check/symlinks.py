"""Find where the symlinks of a change lead in the resulting tree.

Where a change adds, changes or removes a symlink or a submodule, every other link is followed too, because it
may lead through the changed one. That lists the whole tree, once for many commits (16 ms for 100,000 files).
A merge is refused for a link that leaves the repository in none of its parents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.check.case import LinkFacts
from patchgate.errors import PatchgateError
from patchgate.git.change_sources import LoadedChange
from patchgate.git.model import GITLINK, SYMLINK, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.policy.policy import Policy, Profile
from patchgate.values import dataclass

if TYPE_CHECKING:
    from patchgate.git.symlinks import Links
    from patchgate.git.tree_view import TreeView


def gather_links(
    objects: Objects, reading: LoadedChange, policy: Policy, profile: Profile
) -> LinkFacts | None:
    """Follow the links that a change adds or redirects; None if there are none, or no resulting tree.

    Args:
        objects: reads the objects of the change, also new ones.
    """
    if reading.is_proposed and reading.overlay is None:
        return None
    files = reading.change.files
    tree, over = reading.overlay or (reading.change.base, {file.path.raw: file.new for file in files})
    return _followed(
        objects,
        _LinkTree(tree=tree, over=over, after=reading.change.after, parents=reading.parents),
        files,
        policy,
        profile,
    )


def gather_all_links(
    objects: Objects, files: Sequence[FileChange], policy: Policy, profile: Profile
) -> LinkFacts | None:
    """Follow all links of a tree of these files, each as if it were new."""
    over = {file.path.raw: file.new for file in files}
    return _followed(objects, _LinkTree(objects.empty_tree, over), files, policy, profile)


@dataclass(frozen=True, slots=True)
class _LinkTree:
    """A tree with changes on top; for a merge also its own tree and those of its parents."""

    tree: str
    over: Mapping[bytes, Entry | None]
    after: str = ""
    parents: tuple[str, ...] = ()


def _followed(
    objects: Objects,
    ground: _LinkTree,
    files: Sequence[FileChange],
    policy: Policy,
    profile: Profile,
) -> LinkFacts | None:
    own = {file.path.raw for file in files if file.old != file.new and _redirects(file)}
    if not (own or ground.parents) or all(each.allow_symlinks is True for each in policy.all_limits(profile)):
        return None
    # 5 ms to import, and few changes have links.
    from patchgate.git.symlinks import Links, list_links, read_targets
    from patchgate.git.tree_view import TreeView

    try:
        turned = own | _brought(objects, ground)
        if not turned:
            return None
        view = TreeView(objects, ground.tree, ground.over)
        there = list_links(view, ground.over)
        links = Links(view, read_targets(objects, {entry.oid for entry in there.values()}))
        escapes: dict[RepoPath, str] = {}
        suspects: list[tuple[bytes, bytes, str]] = []
        for path in sorted(there):
            route = links.follow(path)
            if route.escape is None:
                continue
            if path in own:
                escapes[RepoPath(path)] = route.escape
            elif through := route.passed & turned:
                suspects.append((min(through - {path}, default=path), path, route.escape))
        redirected = []
        if suspects:
            # A link that left the repository before is not the fault of this change.
            before = _before(objects, ground, files)
            redirected = [each for each in suspects if not _left(before, each[1], there[each[1]])]
        return LinkFacts(
            escapes, tuple((RepoPath(turn), RepoPath(link), why) for turn, link, why in redirected)
        )
    except PatchgateError as error:
        return LinkFacts(fault=error.sentence)


def _brought(objects: Objects, ground: _LinkTree) -> set[bytes]:
    """List the links and submodules that a merge adds to its first parent or removes."""
    if not ground.parents:
        return set()
    # Most changes are not merges.
    from patchgate.git.tree_view import differing_links

    return differing_links(objects, ground.after, ground.parents[0])


def _before(objects: Objects, ground: _LinkTree, files: Sequence[FileChange]) -> list[tuple[TreeView, Links]]:
    """Return the tree before a change, and its links; for a merge the trees of all parents."""
    from patchgate.git.symlinks import Links
    from patchgate.git.tree_view import TreeView

    old = {file.path.raw: file.old for file in files}
    views = [TreeView(objects, parent) for parent in ground.parents] or [
        TreeView(objects, ground.tree, {**ground.over, **old})
    ]
    return [(view, Links(view, {})) for view in views]


def _left(before: Sequence[tuple[TreeView, Links]], path: bytes, link: Entry) -> bool:
    """Return whether the same link left the repository before."""
    return any(view.entry(path) == link and links.follow(path).escape is not None for view, links in before)


def _redirects(file: FileChange) -> bool:
    return any(side is not None and side.mode in {SYMLINK, GITLINK} for side in (file.old, file.new))
