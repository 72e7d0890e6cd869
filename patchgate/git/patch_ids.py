"""The patch ids of changes that did not come as a patch: `git patch-id --stable` of what git's diff writes.

Decides which diff that is: `git diff-tree -p -M`, so that a commit has the id of the patch that `git diff`
made of it. A change without lines has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.git.model import FileChange
from patchgate.git.private import PrivateStore, seed
from patchgate.git.repository import Repository, failed

_DIFF = ("diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv")
_CHUNK = 1 << 16


def patch_ids_of(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    """Give the ids of commits with at most one parent; a commit without one is left out.

    Raises:
        UndecidedError: git failed.
    """
    if not commits:
        return {}
    feed = "".join(f"{commit}\n" for commit in commits).encode("ascii")
    words = _ids(repository, ("--root", "--stdin"), feed)
    return {commit: found for found, _, commit in (line.partition(" ") for line in words)}


def patch_id_of(repository: Repository, store: PrivateStore, files: Sequence[FileChange]) -> str | None:
    """Give the id of a change, whose objects git finds in the repository or in the private store.

    Raises:
        UndecidedError: git failed, as it does on a path that it does not take.
    """
    variables = {**store.variables, "GIT_INDEX_FILE": store.index_file}
    old = seed(repository, {file.path: file.old for file in files}, variables)
    new = seed(repository, {file.path: file.new for file in files}, variables)
    words = _ids(repository, (old, new), b"", variables)
    return words[0].partition(" ")[0] if words else None


def _ids(
    repository: Repository,
    arguments: Sequence[str],
    stdin: bytes,
    variables: Mapping[str, str] | None = None,
) -> list[str]:
    """Hand the output of a diff on to `git patch-id`, and give its lines: an id and a commit."""
    # Without an index: git reads attributes from it, which choose what of a user's config counts.
    variables = {**(variables or {}), "GIT_INDEX_FILE": repository.git_dir + "/no-index"}
    with (
        repository.child(*_DIFF, *arguments, variables=variables) as diff,
        repository.child("patch-id", "--stable") as ids,
    ):
        diff.feed(stdin)
        ids.feed(iter(lambda: diff.out.read(_CHUNK), b""))
        said = b"".join(iter(lambda: ids.out.read(_CHUNK), b""))
        for name, child in (("diff-tree", diff), ("patch-id", ids)):
            ended = child.finish()
            if ended.code != 0:
                raise failed(name, ended)
    return said.decode("ascii").splitlines()
