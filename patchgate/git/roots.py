"""Commits without a parent: which one is the first commit of a repository, and where its main line is.

A root commit is the first one where no ref reaches a commit that is not below it. Where refs reach several
roots, it is the one at the end of the main line's first parents. Nobody who can push chooses that line: not
by a date, and not by a tag or a branch that answers to the name of another ref. Where nothing tells which of
several lines it is, no root is the first. Notes and refs of patchgate have roots of their own, which belong
to no history.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.git.pushes import BRANCHES, TAGS
from patchgate.git.repository import Repository

_NO_HISTORY = ("--exclude=refs/notes/*", "--exclude=refs/patchgate/*", "--exclude=refs/replace/*")
_REMOTE = "refs/remotes/origin/"
_USUAL = (BRANCHES + "main", BRANCHES + "master", _REMOTE + "main", _REMOTE + "master")
_ROOTS = ("rev-list", "--max-parents=0", "--format=%H %T", "--no-commit-header")


def has_commits(repository: Repository) -> bool:
    """Tell whether any ref reaches a commit.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    return bool(repository.output("rev-list", "--max-count=1", *_NO_HISTORY, "--all"))


def is_first(
    repository: Repository,
    root: str,
    tree: str,
    replaces: str | None = None,
    known: Sequence[str] | None = None,
) -> bool:
    """Tell whether a root commit is the first commit of a repository.

    A root with the very tree of the first commit adds nothing to it (the same commit with another message).

    Args:
        tree: the root's tree.
        replaces: the value of the ref that gets the commit; where it is all that the repository has, the
            first commit is being amended.
        known: the commit whose history counts, whatever refs there are. An empty list: no history is known,
            and only a root beside which there is no other is the first. None: the main line counts.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    walk = (*_NO_HISTORY, "--all")
    if replaces is not None:
        few = repository.output("rev-list", "--max-count=2", *walk).decode("ascii").split()
        if few == [replaces]:
            return True
    if not known:
        if not _pairs(repository.output(*_ROOTS, *walk)).keys() - {root}:
            return True
        known = [] if known is not None else [commit for _, commit in _lines(repository)]
    ends = _ends(repository, known)
    return len(ends) == 1 and (root in ends or tree in ends.values())


def main_lines(repository: Repository) -> list[str]:
    """Name the tip of the default branch, as far as it is known here; else of each branch that may be it.

    Empty where no branch and no tag has a commit.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    lines = _lines(repository)
    usual = [commit for ref, commit in lines if ref in _USUAL]
    if usual and len(_ends(repository, usual)) == 1:
        return usual[:1]
    return list(dict.fromkeys(commit for _, commit in lines))


def _lines(repository: Repository) -> list[tuple[str, str]]:
    """List the refs that may be the main line, each with its object.

    One ref, where the HEAD of a bare repository or of `origin` names it; else those of the usual names, else
    every branch, else every tag. A ref `refs/remotes/origin/HEAD` that is not symbolic is a branch `HEAD`
    that somebody pushed.
    """
    refs = _listed(repository, BRANCHES, "refs/remotes/")
    for is_head, ref, oid, target in refs:
        if ref == _REMOTE + "HEAD" and target.startswith(_REMOTE):
            return [(ref, oid)]
        if is_head and repository.work_tree is None:
            return [(ref, oid)]
    named = {ref: oid for _, ref, oid, _ in refs}
    usual = [(ref, named[ref]) for ref in _USUAL if ref in named]
    if usual or named:
        return usual or list(named.items())
    return [(ref, oid) for _, ref, oid, _ in _listed(repository, TAGS)]


def _listed(repository: Repository, *folders: str) -> list[tuple[bool, str, str, str]]:
    """List refs: whether HEAD names it, its full name, its object, and the ref that a symbolic one names."""
    written = "%(if)%(HEAD)%(then)*%(else)-%(end) %(refname) %(objectname) %(symref)"
    raw = repository.output("for-each-ref", f"--format={written}", *(each.rstrip("/") for each in folders))
    lines = (line.split(" ") for line in raw.decode("utf-8", "surrogateescape").split("\n") if line)
    return [(head == "*", ref, oid, target) for head, ref, oid, target in lines]


def _ends(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    """Map the commits at which the first parents of some commits end, to their trees."""
    if not commits:
        return {}
    stdin = "".join(f"{commit}\n" for commit in commits).encode("ascii")
    return _pairs(repository.output(*_ROOTS, "--first-parent", "--stdin", stdin=stdin))


def _pairs(raw: bytes) -> dict[str, str]:
    lines = (line.partition(" ") for line in raw.decode("ascii").splitlines())
    return {commit: tree for commit, _, tree in lines}
