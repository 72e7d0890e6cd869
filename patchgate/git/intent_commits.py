"""Commits as intents see them: their trailers, which are new, and how a trailer gets into a message.

A commit is new if no branch, remote or fetch has it. It is a replay if it adds and removes the same lines,
whitespace included, as a commit that the update replaces. Where a conflict was resolved, git's map of the
rebase in progress names the replaced commit, if it touches no other files. `intents` decides what follows.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from patchgate.git.commit_lists import Commit, commits_not_in, may_have_trailers, trailers_of
from patchgate.git.diff import Detail, read_difference
from patchgate.git.history import Walk
from patchgate.git.model import Change, FileChange
from patchgate.git.new_commits import BRANCHES, BranchUpdate, fetched_tips
from patchgate.git.objects import Objects
from patchgate.git.refs import commits_made_in
from patchgate.git.repository import Repository, failed
from patchgate.process.child import run
from patchgate.values import dataclass

# The comment character for a message without comments: git needs one byte, and no line begins with this.
_NO_COMMENT = b"\x01"


def with_trailer(repository: Repository, raw: bytes, trailer: str, comment: bytes | None) -> bytes | None:
    """Add a trailer to a message; None if git would not take it, and as it is where it has it
    already.

    Args:
        raw: the file of a message, as a hook finds it.
        trailer: `Key: value`, plain ASCII.
        comment: the prefix of comment lines; None: there are none.

    Raises:
        UndecidedError: git could not be started, took too long, or was killed.
    """
    sign = os.fsdecode(comment or _NO_COMMENT)
    key = "core.commentChar" if len(comment or _NO_COMMENT) == 1 else "core.commentString"
    environment = {
        name: repository.environment[name]
        for name in ("PATH", "LC_ALL", "TMPDIR")
        if name in repository.environment
    }
    # Without HOME no user config is read.
    environment["GIT_CONFIG_NOSYSTEM"] = "1"
    nowhere = os.path.join(repository.git_dir, "no-repository")
    settings = ("-c", f"{key}={sign}", "-c", "trailer.separators=:")
    how = ("--no-divider", "--where", "end", "--if-exists", "addIfDifferent", "--if-missing", "add")
    command = ["git", f"--git-dir={nowhere}", *settings, "interpret-trailers", *how, "--trailer", trailer]
    # Without its last LF git does not take one line for a paragraph, and appends the trailer to the subject.
    whole = raw if raw.endswith(b"\n") else raw + b"\n"
    done = run(command, cwd=repository.git_dir, env=environment, stdin=whole)
    if done.code < 0:
        raise failed("interpret-trailers", done)
    if done.code != 0:
        return None
    return _inserted(raw, done.out, trailer.encode("ascii"))


def _inserted(raw: bytes, made: bytes, trailer: bytes) -> bytes | None:
    """Insert the trailer where git put it, and keep every other line.

    Git copies what follows (comments and scissors) byte for byte, which shows the position.
    """
    before, after = raw.removesuffix(b"\n").split(b"\n"), made.removesuffix(b"\n").split(b"\n")
    if before.count(trailer) == after.count(trailer):
        return raw
    for at in reversed([index for index, line in enumerate(after) if line == trailer]):
        below = after[at + 1 :]
        start = len(before) - len(below)
        if start < 1 or before[start:] != below:
            continue
        is_apart = at > 0 and not after[at - 1].strip() and before[start - 1].strip()
        gap = [b""] if is_apart else []
        return b"\n".join([*before[:start], *gap, trailer, *below]) + b"\n"
    return None


_TRAILERS = "%(trailers:key=Patchgate-Intent,valueonly,unfold,separator=%x1F)"
_FORMAT = "%H %T %P%x00%s%x00%B%x00"
_NAME = re.compile(rb"patchgate-intent", re.IGNORECASE)
_FIELDS = 3
_PATCH = (
    "--stdin",
    "-r",
    "--root",
    "-p",
    # The lines around a change are not part of it: upstream may have changed them.
    "--unified=0",
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
# Reading patches costs time; a larger replay needs its own intent.
_MOST_REPLAYED = 500
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class IntentCommit:
    """One commit: ids of itself, its tree and its parents, its subject, and what its trailers name.

    `subject` and `ids` are untrusted text; the caller makes them printable.
    """

    oid: str
    tree: str
    parents: tuple[str, ...]
    subject: str
    ids: tuple[str, ...]


def commits_with_ids(
    repository: Repository, tips: Sequence[str], known: Sequence[str] = ()
) -> list[IntentCommit]:
    """List the commits that any of `tips` reaches and none of `known` does, parents first.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    return _listed(repository, ["--topo-order", "--reverse", *tips, *("^" + oid for oid in known)])


def with_ids(repository: Repository, oids: Sequence[str]) -> list[IntentCommit]:
    """Read these commits, in their order.

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
    starts = range(0, len(fields) - _FIELDS, _FIELDS)
    names = [fields[at].decode("ascii").split() for at in starts]
    messages = [fields[at + 2] for at in starts]
    asked = [
        own[0]
        for own, message in zip(names, messages, strict=True)
        if _NAME.search(message) and may_have_trailers(own[0], message)
    ]
    trailers = trailers_of(repository, asked, _TRAILERS)
    found: list[IntentCommit] = []
    for at, (oid, tree, *parents) in zip(starts, names, strict=True):
        subject = fields[at + 1].decode("utf-8", "surrogateescape")
        ids = tuple(word for each in trailers.get(oid, "").split("\x1f") if (word := each.strip()))
        found.append(IntentCommit(oid=oid, tree=tree, parents=tuple(parents), subject=subject, ids=ids))
    return found


def changes_of(
    repository: Repository, commits: Sequence[IntentCommit]
) -> Iterator[tuple[IntentCommit, Change]]:
    """Read what each commit changed itself (a merge: its difference from git's merge); no lines.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    plain = [
        Commit(
            oid=each.oid,
            tree=each.tree,
            parents=each.parents,
            trailers=tuple(f"Patchgate-Intent: {name}" for name in each.ids),
        )
        for each in commits
    ]
    with Walk(repository, plain) as walk:
        for commit, (_, reading) in zip(commits, walk.read(plain, Detail()), strict=True):
            yield commit, reading.change


def made_here(
    repository: Repository, update: BranchUpdate, settled: Sequence[str], arriving: Sequence[str]
) -> set[str]:
    """List the commits that an update brings and that no other branch and no remote has.

    A fetched or tagged commit was made elsewhere, unless this worktree's reflog shows it.

    Args:
        settled: the tips that were there when the hooks were installed.
        arriving: tips of remotes that no remote-tracking ref has yet.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    known = [*([update.old] if update.old else []), *settled, *arriving]
    # Git takes the pattern below `refs/heads/` (git-rev-list, --exclude).
    options = ("--remotes", f"--exclude={update.ref.removeprefix(BRANCHES)}", "--branches")
    every = {commit.oid for commit in commits_not_in(repository, [update.new], known, *options)}
    known += fetched_tips(repository)
    found = {commit.oid for commit in commits_not_in(repository, [update.new], known, *options, "--tags")}
    return found if found == every else found | (every & commits_made_in(repository.git_dir, 0).keys())


def replays(repository: Repository, update: BranchUpdate, among: Sequence[str]) -> dict[str, str]:
    """Map commits of an update to those that they replace: by the same change, or by the rebase in progress.

    Args:
        among: the new commits in question.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if update.old is None or not among or len(among) > _MOST_REPLAYED:
        return {}
    replaced = [
        commit.oid for commit in commits_not_in(repository, [update.old], [update.new], most=_MOST_REPLAYED)
    ]
    if not replaced:
        return {}
    marks = _marks(repository, [*replaced, *among])
    by_mark = {marks[oid]: oid for oid in replaced if oid in marks}
    found = {oid: by_mark[mark] for oid in among if (mark := marks.get(oid)) in by_mark}
    pairs = {
        oid: old
        for oid, old in _rewritten(repository).items()
        if oid in among and oid not in found and old in replaced
    }
    if pairs:
        read = changes_of(repository, with_ids(repository, list(dict.fromkeys([*pairs, *pairs.values()]))))
        paths = {each.oid: {file.path for file in change.files} for each, change in read}
        found |= {oid: old for oid, old in pairs.items() if paths[oid] <= paths[old]}
    return found


def _rewritten(repository: Repository) -> dict[str, str]:
    """Map each commit to its copy in the rebase in progress; two that became one are left out.

    Source: git, sequencer.c (`rewritten-list`) and builtin/am.c (`rewritten`): old and new id in a line.
    """
    found: dict[str, set[str]] = {}
    for names in (("rebase-merge", "rewritten-list"), ("rebase-apply", "rewritten")):
        with suppress(OSError), open(os.path.join(repository.git_dir, *names), "rb") as file:
            for line in file.read(_MOST_BYTES).split(b"\n"):
                old, _, new = line.partition(b" ")
                if _OID.fullmatch(old) and _OID.fullmatch(new):
                    found.setdefault(new.decode("ascii"), set()).add(old.decode("ascii"))
    return {new: next(iter(old)) for new, old in found.items() if len(old) == 1}


def undone_by(
    repository: Repository, update: BranchUpdate, commits: Sequence[IntentCommit], old: IntentCommit
) -> dict[str, list[FileChange]]:
    """Map each commit that replaces the branch's tip to the files in which they differ.

    Such a commit has the parents of the tip, as after `commit --amend`: what it reverts of the tip is not
    part of its own change. What a later commit of the update restores is not undone.

    Args:
        commits: those of the update in question.
        old: the tip that is replaced.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    placed = [each for each in commits if each.parents == old.parents and each.tree != old.tree]
    if not placed:
        return {}
    with Objects(repository) as objects:

        def otherwise(tree: str) -> list[FileChange]:
            trees = [old.tree, tree]
            return read_difference(repository, objects, ("diff-tree", "-r"), trees, Detail())[0]

        last = {file.path for file in otherwise(f"{update.new}^{{tree}}")}
        return {each.oid: [file for file in otherwise(each.tree) if file.path in last] for each in placed}


def _marks(repository: Repository, oids: Sequence[str]) -> dict[str, str]:
    """Digest the patch of each commit that changes anything; of a merge there is none."""
    stdin = "".join(f"{oid}\n" for oid in oids).encode("ascii")
    digests: dict[str, hashlib._Hash] = {}
    digest = hashlib.sha256()
    index = b""
    output = repository.output("diff-tree", *_PATCH, stdin=stdin)
    for line in output.removesuffix(b"\n").split(b"\n"):
        # A line of a file has a sign in front.
        if _OID.fullmatch(line):
            digest = digests[line.decode("ascii")] = hashlib.sha256()
        elif line.startswith(b"index "):
            index = line
        elif line.startswith(b"Binary files "):
            digest.update(index + b"\n" + line + b"\n")
        else:
            digest.update(b"@@\n" if line.startswith(b"@@ ") else line + b"\n")
    return {oid: each.hexdigest() for oid, each in digests.items()}
