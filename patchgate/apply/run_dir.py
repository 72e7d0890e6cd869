"""Where the evidence of one attempt may be kept: `--run-dir`.

Decides that it lies neither among files that are applied to or tested, nor where git or this program reads
its own. What is kept there is `apply/evidence`'s.
"""

from __future__ import annotations

import os

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.repository import ANY_CODE, Repository

# What lies below git's folder `patchgate` is read as what its name says.
_OWN_NAMES = frozenset(
    {"attempts", "events.jsonl", "events.jsonl.head", "approvals.jsonl", "apply.lock", "install.lock"}
    | {"fast", "kept", "policies", "components", "contracts", "receipts", "scratch", "settled", "told"}
    | {"transactions"}
)


def require_outside(repository: Repository, run_dir: str | None) -> None:
    """See to it that no evidence lies among files that are applied to, nor where git reads its own."""
    if run_dir is None:
        return
    place = os.path.realpath(run_dir)
    if any(_is_below(place, folder) for folder in (repository.git_dir, repository.common_dir)):
        own = os.path.join(os.path.realpath(repository.common_dir), "patchgate")
        first = os.path.relpath(place, own).split(os.sep)[0]
        if first in _OWN_NAMES or first in {os.curdir, os.pardir}:
            raise UsageError(
                "the folder of --run-dir lies among git's own folders",
                "name one elsewhere, or one of your own below .git/patchgate/, like .git/patchgate/runs",
            )
        return
    for top in _working_trees(repository):
        # A folder that is not there yet is one only to who looks below it.
        below = os.path.join(place, "artifacts")
        asked = (f"--work-tree={top}", "-C", top, "check-ignore", "-q", "--", below)
        if _is_below(place, top) and (
            place == os.path.realpath(top)
            or repository.git(*asked, in_work_tree=True, answers=ANY_CODE).code != 0
        ):
            raise UsageError(
                "the folder of --run-dir lies in the working tree and is not ignored",
                "name one outside, or one that .gitignore names",
            )


def _is_below(place: str, folder: str) -> bool:
    """Tell whether a resolved path is a folder or below it."""
    top = os.path.realpath(folder)
    return os.path.commonpath([top, place]) == top


def _working_trees(repository: Repository) -> list[str]:
    """Name all working trees of the repository that are there."""
    listed = repository.git("worktree", "list", "--porcelain", "-z", in_work_tree=True, answers=ANY_CODE)
    if listed.code != 0:
        raise UndecidedError("git does not list the working trees", "run git worktree list to see why")
    lines = listed.out.split(b"\0")
    found = [os.fsdecode(line.removeprefix(b"worktree ")) for line in lines if line.startswith(b"worktree ")]
    # Where its git directory lies elsewhere, git lists that one for the main working tree (git 2.39).
    common = repository.common_dir
    asked = (f"--git-dir={common}", "config", "--type=path", "core.worktree")
    told = repository.git(*asked, answers=(0, 1))
    if told.code == 0:
        found.append(os.path.join(common, os.fsdecode(told.out.removesuffix(b"\n"))))
    return [os.path.realpath(each) for each in (repository.work_tree, *found) if each and os.path.isdir(each)]
