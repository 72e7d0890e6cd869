"""Commits as intents see them: what their trailers name, which are new here, which were there already.

Decides which commits of a range name an intent, which of those that an update brings were made by nobody
else (no branch, no remote and no fetch has them), and which are replays: the same change as one that the
update replaces, as after a rebase. What follows from it is decided in `operations`.

A change counts as the same where every byte of its patch is, but for the numbers of lines: whitespace counts,
so that nothing slips through as a replay.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchgate.change.model import Change
from patchgate.git.diff import Detail
from patchgate.git.history import Commit, Walk, lacking
from patchgate.git.novelty import BRANCHES, Update, fetched_tips
from patchgate.git.repository import Repository

_TRAILERS = "%(trailers:key=Patchgate-Intent,valueonly,unfold,separator=%x1F)"
_FORMAT = f"%H %T %P%x00%s%x00{_TRAILERS}%x00"
_FIELDS = 3
_PATCH = (
    "--stdin",
    "-r",
    "--root",
    "-p",
    "--no-renames",
    "--full-index",
    "--ignore-submodules=none",
    "-O/dev/null",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-indent-heuristic",
    "--diff-algorithm=myers",
    "--submodule=short",
)
_OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Reading patches costs time; who replays more than this is asked for an intent of his own.
_MOST_REPLAYED = 500


@dataclass(frozen=True, slots=True)
class IntentCommit:
    """One commit: ids of itself, its tree and its parents, its subject, and what its trailers name.

    `subject` and `ids` are foreign text, to be made printable by whoever shows them.
    """

    oid: str
    tree: str
    parents: tuple[str, ...]
    subject: str
    ids: tuple[str, ...]


def commits_with_ids(repository: Repository, tip: str, base: str | None = None) -> list[IntentCommit]:
    """List the commits that `tip` reaches and `base` does not, parents first.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    behind = [] if base is None else ["^" + base]
    return _listed(repository, ["--topo-order", "--reverse", tip, *behind])


def with_ids(repository: Repository, oids: Sequence[str]) -> list[IntentCommit]:
    """Read these very commits, in their order.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if not oids:
        return []
    stdin = "".join(f"{oid}\n" for oid in oids).encode("ascii")
    return _listed(repository, ["--no-walk=unsorted", "--stdin"], stdin)


def _listed(repository: Repository, chosen: Sequence[str], stdin: bytes = b"") -> list[IntentCommit]:
    arguments = ("rev-list", f"--format={_FORMAT}", "--no-commit-header", *chosen)
    fields = repository.output(*arguments, stdin=stdin).split(b"\0")
    found: list[IntentCommit] = []
    for at in range(0, len(fields) - _FIELDS, _FIELDS):
        oid, tree, *parents = fields[at].decode("ascii").split()
        subject, named = (each.decode("utf-8", "surrogateescape") for each in fields[at + 1 : at + _FIELDS])
        ids = tuple(word for each in named.split("\x1f") if (word := each.strip()))
        found.append(IntentCommit(oid, tree, tuple(parents), subject, ids))
    return found


def changes_of(
    repository: Repository, commits: Sequence[IntentCommit]
) -> Iterator[tuple[IntentCommit, Change]]:
    """Read what each commit changed itself (a merge: what it has otherwise than git's own); no lines.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    plain = [Commit(each.oid, each.tree, each.parents, bool(each.ids)) for each in commits]
    with Walk(repository, plain) as walk:
        for commit, (_, reading) in zip(commits, walk.read(plain, Detail()), strict=True):
            yield commit, reading.change


def made_here(
    repository: Repository, update: Update, settled: Sequence[str], arriving: Sequence[str]
) -> set[str]:
    """Name the commits that an update brings and that nobody else has: no other branch, no remote, no fetch.

    Args:
        settled: the tips that were there when the hooks were installed.
        arriving: tips of remotes that no remote-tracking ref has yet.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    known = [*([update.old] if update.old else []), *settled, *arriving, *fetched_tips(repository)]
    # Git takes the pattern below `refs/heads/` (git-rev-list, --exclude).
    own = f"--exclude={update.ref.removeprefix(BRANCHES)}"
    return {commit.oid for commit in lacking(repository, [update.new], known, "--remotes", own, "--branches")}


def replays(repository: Repository, update: Update, among: Sequence[str]) -> dict[str, str]:
    """Map commits of an update to the one that it replaces with the very same change.

    Args:
        among: the new commits in question.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if update.old is None or not among or len(among) > _MOST_REPLAYED:
        return {}
    replaced = [commit.oid for commit in lacking(repository, [update.old], [update.new], most=_MOST_REPLAYED)]
    if not replaced:
        return {}
    marks = _marks(repository, [*replaced, *among])
    by_mark = {marks[oid]: oid for oid in replaced if oid in marks}
    return {oid: by_mark[mark] for oid in among if (mark := marks.get(oid)) in by_mark}


def _marks(repository: Repository, oids: Sequence[str]) -> dict[str, str]:
    """Digest the patch of each commit that changes anything; of a merge there is none."""
    stdin = "".join(f"{oid}\n" for oid in oids).encode("ascii")
    digests: dict[str, hashlib._Hash] = {}
    digest = hashlib.sha256()
    index = b""
    output = repository.output("diff-tree", *_PATCH, stdin=stdin)
    for line in output.removesuffix(b"\n").split(b"\n"):
        # A line of a file has a sign before it.
        if _OID.fullmatch(line):
            digest = digests[line.decode("ascii")] = hashlib.sha256()
        elif line.startswith(b"index "):
            index = line
        elif line.startswith(b"Binary files "):
            digest.update(index + b"\n" + line + b"\n")
        else:
            digest.update(b"@@\n" if line.startswith(b"@@ ") else line + b"\n")
    return {oid: each.hexdigest() for oid, each in digests.items()}
