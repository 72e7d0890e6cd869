"""Commits without a parent: which one is the first commit of a repository, and where its main line is.

Decides that a root commit is the first one where no ref reaches a commit that is not below it. Where refs
reach several roots, it is the one at the end of the main line's first parents. Notes and refs of ours have
roots of their own, which are nobody's history.
"""

from __future__ import annotations

from patchgate.git.pushes import BRANCHES
from patchgate.git.repository import Repository

_NO_HISTORY = ("--exclude=refs/notes/*", "--exclude=refs/patchgate/*", "--exclude=refs/replace/*")
_USUAL = ("refs/remotes/origin/HEAD", BRANCHES + "main", BRANCHES + "master")


def has_commits(repository: Repository) -> bool:
    """Tell whether any ref reaches a commit.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    return bool(repository.output("rev-list", "--max-count=1", *_NO_HISTORY, "--all"))


def is_first(repository: Repository, root: str, tree: str, replaces: str | None = None) -> bool:
    """Tell whether a root commit is the first commit of a repository.

    A root with the very tree of another adds nothing to it (the first commit with another message).

    Args:
        tree: the root's tree.
        replaces: the value of the ref that gets the commit; where it is all that the repository has, the
            first commit is being amended.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    walk = (*_NO_HISTORY, "--all")
    if replaces is not None:
        few = repository.output("rev-list", "--max-count=2", *walk).decode("ascii").split()
        if few == [replaces]:
            return True
    raw = repository.output("rev-list", "--max-parents=0", "--format=%H %T", "--no-commit-header", *walk)
    trees = dict(line.split(" ") for line in raw.decode("ascii").splitlines())
    if not trees.keys() - {root} or tree in {each for oid, each in trees.items() if oid != root}:
        return True
    main = main_line(repository) if root in trees else None
    return main is not None and _first_of(repository, main) == root


def main_line(repository: Repository) -> str | None:
    """Name the commit of the default branch, as far as it is known here; else of the newest branch.

    None where there is no branch.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    for ref in _USUAL:
        done = repository.git("rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}", answers=(0, 1))
        if done.code == 0:
            return done.out.decode("ascii").strip()
    newest = repository.output(
        "for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(objectname)", BRANCHES.rstrip("/")
    )
    return newest.decode("ascii").strip() or None


def _first_of(repository: Repository, commit: str) -> str:
    raw = repository.output("rev-list", "--first-parent", "--max-parents=0", commit)
    return raw.decode("ascii").strip()
