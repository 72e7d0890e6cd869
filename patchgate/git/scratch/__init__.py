"""Scratch trees: where the policy's commands try a patch.

`trees` hands them out: the touched files alone in a fresh folder, or the whole tree, which `kept` keeps and
moves at the cost of the change. `checkout` is our own index and git for it, the repository that the
commands see there, and what finds names that nobody wrote for us; `places` are the records by which a
killed attempt's folders are swept, never by their name alone. Public: what stands below.
"""

from __future__ import annotations

from patchgate.git.scratch.temporary_folders import kept_places
from patchgate.git.scratch.trees import Scratch, sweep, touched_files, whole_tree

__all__ = ["Scratch", "kept_places", "sweep", "touched_files", "whole_tree"]
