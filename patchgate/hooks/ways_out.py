"""How to come back after the reference-transaction hook refused.

Decides by what git is in the middle of, for often it has moved files and index before it asks. Each command
leads back to where one was, keeps what is staged or edited besides, and stands for itself: run it as it is.
Where nothing was moved (a commit, a branch by name) there is nothing to lead back from.
"""

from __future__ import annotations

import os
import shlex

from patchgate.errors import UndecidedError
from patchgate.git.novelty import BRANCHES, Update, value_of
from patchgate.git.progress import Operation, is_past_aborting, operation_in_progress
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.report.verdict import WayOut

_MOVED_FILES = frozenset({"merge", "pull", "reset", "checkout", "switch", "revert", "cherry-pick"})
_UNLIKE_INDEX = ("diff-files", "--ignore-submodules=all", "--name-only", "-z")
_OF_OPERATIONS = frozenset({"", "rebase", "am", "cherry-pick", "revert", "merge", "pull", "commit"})
_ABORT = {
    Operation.REBASE: WayOut("undo the rebase:", "git rebase --abort"),
    Operation.AM: WayOut("take back what git am has applied:", "git am --abort"),
    Operation.CHERRY_PICK: WayOut("undo the cherry-pick:", "git cherry-pick --abort"),
    Operation.REVERT: WayOut("undo the revert:", "git revert --abort"),
    Operation.MERGE: WayOut("give up the merge, with what was resolved in it:", "git merge --abort"),
}
_CONTINUE = WayOut(
    "or amend the last commit (git commit --amend), if that is the bad one, and go on:",
    "git rebase --continue",
)


def ways_out(repository: Repository, update: Update, command: str) -> tuple[WayOut, ...]:
    """Give the commands that lead back from a refused update.

    Args:
        repository: where it happened.
        update: the branch that was refused.
        command: git's command that is at work, empty where it is not known.
    """
    # What has nothing to do with what is in progress (`git branch x`) is no reason to give that up.
    operation = operation_in_progress(repository) if command in _OF_OPERATIONS else None
    if operation is Operation.REBASE and is_past_aborting(repository):
        branch = shlex.quote(printable(update.ref.removeprefix(BRANCHES)))
        return (
            WayOut("leave the rebase, back to the branch:", f"git rebase --quit && git checkout -q {branch}"),
        )
    if operation is not None:
        return (_ABORT[operation], *((_CONTINUE,) if operation is Operation.REBASE else ()))
    head = value_of(repository, "HEAD")
    if command not in _MOVED_FILES or head is None:
        return ()
    try:
        way = _back(repository, head, update.new)
    except UndecidedError:
        # No advice is better than advice that was found from half of what git lists.
        return ()
    return () if way is None else (WayOut("git has moved index or files already; put them back:", way),)


def _back(repository: Repository, head: str, new: str) -> str | None:
    """Find the command that undoes what git did to index and files before it asked; None for nothing."""
    concerned = _names(repository, "diff-tree", "-r", "--name-only", "-z", head, new)
    otherwise = _names(repository, "diff-index", "--cached", "--name-only", "-z", new)
    if not concerned or concerned & otherwise:
        return None
    if concerned & _names(repository, *_UNLIKE_INDEX, in_work_tree=True):
        # Only the index was moved (`git reset REV`); what was staged besides, that command threw away itself.
        return "git reset --quiet"
    if otherwise:
        # Something else is staged, which `git reset --merge` would throw away.
        return f"git read-tree -m -u {new} {head}"
    stashed = os.path.exists(os.path.join(repository.git_dir, "MERGE_AUTOSTASH"))
    return "git reset --merge" + (" && git stash pop --quiet --index" if stashed else "")


def _names(repository: Repository, *command: str, in_work_tree: bool = False) -> frozenset[bytes]:
    done = repository.git(*command, in_work_tree=in_work_tree and repository.work_tree is not None)
    return frozenset(done.out.split(b"\0")) - {b""}


def way_out_of_commit(repository: Repository, hook: str) -> tuple[WayOut, ...]:
    """Give the command that leads back from a commit that was refused in the middle of something."""
    if hook == "pre-merge-commit":
        return (_ABORT[Operation.MERGE],)
    operation = operation_in_progress(repository)
    return () if operation is None else (_ABORT[operation],)
