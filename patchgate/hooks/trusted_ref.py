"""The ref whose policy a repository trusts above all: `patchgate.trustRef` in its git config.

Decides what may be trusted (a ref that is here and names a commit, by its full name) and writes it down. How
it judges is decided where policies are read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.git.revisions import is_name, resolve

_KEY = "patchgate.trustRef"
_LIKE = "name a branch in full, like refs/remotes/origin/main"


def full_name(repository: Repository, ref: str) -> str:
    """Find the full name of a ref that names a commit.

    Raises:
        UsageError: there is none, or the name is ambiguous.
    """
    shown = printable(ref)
    if not is_name(ref):
        raise UsageError(f"{shown} is no name of a ref", _LIKE)
    with Objects(repository) as objects:
        found = resolve(objects, ref)
        if found is None:
            remote, _, branch = ref.removeprefix("refs/remotes/").partition("/")
            fetch = f"git fetch {remote} {branch}" if branch else "git branch --all lists what there is"
            raise UsageError(f"there is no ref {shown} here", printable(fetch))
        if found.ref is None:
            raise UsageError(f"{shown} is no ref, so it would stay where it is", _LIKE)
        if objects.header(found.oid + "^{commit}") is None:
            raise UsageError(f"{shown} names no commit", _LIKE)
    return found.ref


def trust(repository: Repository, ref: str) -> bool:
    """Write the trusted ref into the repository's config; tell whether it was another before.

    What the other policy has judged for the next commit is judged anew.
    """
    if _trusted(repository) == ref:
        return False
    done = repository.git("config", "--local", "--replace-all", _KEY, ref, answers=ANY_CODE)
    if done.code != 0:
        raise UndecidedError(f"git config could not write {_KEY}", f"git config {_KEY} REF")
    counts = os.fsdecode(repository.git("config", "--get", _KEY, answers=ANY_CODE).out.rstrip(b"\n"))
    if counts != ref:
        raise UndecidedError(
            f"another config file sets {_KEY} to {printable(counts)}, and git reads that one last",
            f"git config --show-origin --get-all {_KEY}",
        )
    drop_every_pending(repository)
    return True


def _trusted(repository: Repository) -> str | None:
    done = repository.git("config", "--local", "--get", _KEY, answers=(0, 1))
    return os.fsdecode(done.out.rstrip(b"\n")) if done.code == 0 else None


def forget(repository: Repository) -> str | None:
    """Take the trusted ref out of the repository's config; return which one it was."""
    ref = _trusted(repository)
    if ref is not None:
        repository.git("config", "--local", "--unset-all", _KEY)
    return ref


def drop_every_pending(repository: Repository) -> None:
    """Remove what pre-commit has left for the transaction, in every worktree."""
    common = Path(repository.common_dir)
    for git_dir in (common, *common.glob("worktrees/*")):
        for name in ("patchgate-pending", "patchgate-landing", "patchgate-shown"):
            with suppress(OSError):
                (git_dir / name).unlink(missing_ok=True)
