"""The pending receipt: what pre-commit judged, so that nothing is judged twice in one commit.

Decides its bytes, which the shim of reference-transaction compares in sh with what git commits in the end:

    patchgate.pending/2 VERSION accepted|told TREE
    HEAD-OID BRANCH
    POLICY-SPEC BLOB                      (- - where HEAD's own policy judged: HEAD pins it)
    the raw bytes of a pinned `git diff-index --cached --raw -z`, built from the change that was judged

TREE is the tree that git writes for this change. The bytes of the difference are not enough: git can keep a
malformed tree beside the index and commit it, and show no difference. `told` is a refusal that does not hold
here (observed, or on a draft ref): it passes, and gets no receipt.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from patchgate import __version__
from patchgate.git.model import NO_MODE, Change, Entry, FileChange
from patchgate.git.repository import Repository
from patchgate.storage.replace import write_atomically

_NAME = "patchgate-pending"
_QUIET = "patchgate-quiet"
_KIND = slice(0, 3)


def leave_pending(
    repository: Repository, change: Change, *, status: str, head: str, branch: str, policy: tuple[str, str]
) -> str | None:
    """Leave a pending receipt in this worktree; return a warning where it could not be written.

    Args:
        status: `accepted` or `told`.
        head: HEAD's commit, zeroes where it is unborn.
        branch: the full name of the branch that HEAD names.
        policy: a revision and path, and the blob that was read there; `-` and `-` for HEAD's own.
    """
    result = f"patchgate.pending/2 {__version__} {status} {change.after}\n"
    header = f"{result}{head} {branch}\n{policy[0]} {policy[1]}\n"
    body = os.fsencode(header) + raw_diff(change, repository.zero_oid)
    try:
        write_atomically(_place(repository), body, mode=0o600)
    except OSError as error:
        drop_pending(repository)
        return f"the pending receipt could not be written ({error.strerror}); the commit is judged once more"
    return None


def drop_pending(repository: Repository) -> None:
    """Remove what an earlier commit left."""
    for name in (_NAME, _QUIET):
        with suppress(OSError):
            Path(repository.git_dir, name).unlink(missing_ok=True)


def leave_quiet(repository: Repository) -> None:
    """Tell the shim of commit-msg that the policy says nothing of messages, so that it ends in sh."""
    with suppress(OSError):
        write_atomically(Path(repository.git_dir, _QUIET), f"{__version__}\n".encode(), mode=0o600)


def raw_diff(change: Change, zero_oid: str) -> bytes:
    """Write a change as `git diff-tree -r --raw -z --no-renames --no-abbrev` does."""
    return b"".join(_record(file, zero_oid) for file in change.files)


def _record(file: FileChange, zero_oid: str) -> bytes:
    nothing = Entry(NO_MODE, zero_oid)
    old, new = file.old or nothing, file.new or nothing
    if file.old is None:
        status = "A"
    elif file.new is None:
        status = "D"
    else:
        status = "M" if old.mode[_KIND] == new.mode[_KIND] else "T"
    about = f":{old.mode} {new.mode} {old.oid} {new.oid} {status}\0"
    return about.encode("ascii") + file.path.raw + b"\0"


def _place(repository: Repository) -> Path:
    return Path(repository.git_dir, _NAME)
