"""Scratch trees, in which the policy's commands try a patch.

`trees` makes them: the touched files or a separate whole tree in a fresh folder, or the whole tree that
`tree_cache` keeps and updates at the cost of the change. `checkout` has an index and finds what a command
changed. A killed attempt's folders are removed by the records of `temporary_folders`, never by name alone.
"""

from __future__ import annotations

from patchgate.git.scratch.copied_trees import CopiedTree, CopiedTrees, copied_trees
from patchgate.git.scratch.temporary_folders import kept_folders
from patchgate.git.scratch.trees import Scratch, separate_tree, sweep, touched_files, whole_tree

__all__ = [
    "CopiedTree",
    "CopiedTrees",
    "Scratch",
    "copied_trees",
    "kept_folders",
    "separate_tree",
    "sweep",
    "touched_files",
    "whole_tree",
]
