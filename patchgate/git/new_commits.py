"""Find the new commits that an update of a branch brings in.

Known are the branch's own commits, those of remote-tracking refs, the tips at install; for a new branch those
of any branch or FETCH_HEAD too. `HEAD` and `--all` are not used: at the last step of a rebase, `HEAD` has the
new commits. Commits fetched from this repository, or made here by this worktree's reflog, are its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence

from patchgate.git.commit_lists import Commit, commits_not_in
from patchgate.git.refs import commits_made_in, git_dirs, target_of, work_trees
from patchgate.git.repository import Repository, failed
from patchgate.values import dataclass

BRANCHES = "refs/heads/"
_MOST_REMOTES = 20
# What show-ref prints for a missing ref; it has no exit code for that alone (builtin/show-ref.c).
_NO_REF = b"not a valid ref"


@dataclass(frozen=True, slots=True)
class BranchUpdate:
    """A branch by its full name, its value now (None: it is being created), and its new commit."""

    ref: str
    old: str | None
    new: str


@dataclass(frozen=True, slots=True)
class UpdateCommits:
    """The commits that an update brings, parents first.

    `own` are only in this repository; `upstream` a remote has already; `fetched` came by a fetch that
    makes this very branch.
    """

    own: list[Commit]
    upstream: list[Commit]
    fetched: list[Commit]


def ref_value(repository: Repository, ref: str) -> str | None:
    """Ask git for the value of HEAD, or of a ref by its full name.

    The value in a hook's input may differ: zeroes mean "any". Looked up by its exact name, because
    rev-parse takes the tag `refs/tags/refs/heads/x` for a branch `refs/heads/x` that is missing (measured).
    """
    if ref == "HEAD":
        done = repository.git("rev-parse", "--quiet", "--verify", ref, answers=(0, 1))
    else:
        done = repository.git("show-ref", "--verify", "--hash", "--", ref, answers=(0, 128))
        if done.code != 0 and _NO_REF not in done.err:
            raise failed("show-ref", done)
    return done.out.decode("ascii").strip() if done.code == 0 else None


def current_branch(repository: Repository) -> str | None:
    """Return the full name of HEAD's branch; None if HEAD is detached."""
    done = repository.git("symbolic-ref", "--quiet", "HEAD", answers=(0, 1))
    return done.out.decode("utf-8", "surrogateescape").rstrip("\n") if done.code == 0 else None


def had_value(repository: Repository, update: BranchUpdate) -> bool:
    """Return whether the branch had this value before, by its reflog: going back to it is never refused."""
    # By its exact name first: a tag `refs/heads/x` has a reflog too, and rev-list would take it.
    if update.old is None or repository.git("reflog", "exists", update.ref, answers=(0, 1)).code != 0:
        return False
    done = repository.git("rev-list", "--walk-reflogs", "--ignore-missing", update.ref, answers=(0, 128))
    return done.code == 0 and update.new.encode("ascii") in done.out.split()


def find_new_commits(
    repository: Repository, update: BranchUpdate, settled: Sequence[str], arriving: Sequence[str] = ()
) -> UpdateCommits:
    """List the commits that an update brings.

    Args:
        repository: the repository of the branch.
        update: the branch and its values.
        settled: the tips that were there when the hooks were installed.
        arriving: tips of remotes that no remote-tracking ref has yet (`arriving_tips`).

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if update.old is not None:
        own = commits_not_in(repository, [update.new], [update.old, *settled, *arriving], "--remotes")
        every = commits_not_in(repository, [update.new], [update.old, *settled])
        known = {commit.oid for commit in own}
        return UpdateCommits(own, [commit for commit in every if commit.oid not in known], [])
    every = commits_not_in(repository, [update.new], settled, "--remotes", "--branches")
    heads = fetched_tips(repository) if every else []
    if not (heads or (every and arriving)):
        return UpdateCommits(every, [], [])
    own = commits_not_in(repository, [update.new], [*settled, *arriving, *heads], "--remotes", "--branches")
    known = {commit.oid for commit in own}
    if len(known) < len(every):
        # Commits from a configured remote belong to it, even if they were made here.
        left = commits_not_in(repository, [update.new], [*settled, *arriving], "--remotes", "--branches")
        known |= commits_made_in(repository.git_dir, 0).keys() & {commit.oid for commit in left}
    return _divided(every, known)


def attribute_to_fetch(repository: Repository, update: BranchUpdate, brought: UpdateCommits) -> UpdateCommits:
    """Count the commits of a branch that a running fetch creates as fetched, except those made here.

    With `--atomic` git writes FETCH_HEAD after the transaction, so the fetched commits are not listed
    anywhere yet.

    Raises:
        UndecidedError: the reflog cannot be read.
    """
    if any(head.is_own and head.oid == update.new for head in _fetched_heads(repository)):
        return brought
    made = commits_made_in(repository.git_dir, 0).keys()
    own = {commit.oid for commit in brought.own if commit.oid in made}
    return _divided([*brought.fetched, *brought.own], own)


def _divided(commits: Sequence[Commit], own: Collection[str]) -> UpdateCommits:
    """Divide the commits of a created branch into those of this repository and those of a fetch."""
    return UpdateCommits(
        [commit for commit in commits if commit.oid in own],
        [],
        [commit for commit in commits if commit.oid not in own],
    )


def arriving_tips(repository: Repository, lines: bytes) -> list[str]:
    """List the commits that remote-tracking refs are about to get: `git fetch origin main:main` moves `main`
    first.

    Read from the transaction's own lines (`fetch --atomic`), and from FETCH_HEAD if it names a branch of a
    remote that is configured here.
    """
    words = [line.split(b" ") for line in lines.split(b"\n")]
    # A symbolic ref's line comes with the line of the branch that git writes.
    tips = [
        each[1].decode("ascii", "replace")
        for each in words
        if _is_tracking(each) and target_of(repository, os.fsdecode(each[2])) is None
    ]
    heads = [head for head in _fetched_heads(repository) if head.url and not head.is_own]
    if heads:
        urls = {_bare_url(url) for url in _configured_urls(repository)}
        tips += [head.oid for head in heads if head.url in urls]
    whole = len(repository.zero_oid)
    return [tip for tip in tips if len(tip) == whole and tip.strip("0")]


def _is_tracking(words: Sequence[bytes]) -> bool:
    return len(words) == 3 and words[2].startswith(b"refs/remotes/")


def _configured_urls(repository: Repository) -> list[str]:
    """Ask git for the URLs of the remotes, rewritten as it uses them (`url.<base>.insteadOf`)."""
    asked = ("config", "-z", "--name-only", "--get-regexp", r"^remote\..*\.url$")
    found = repository.git(*asked, answers=(0, 1)).out
    keys = [os.fsdecode(each) for each in found.split(b"\0") if each]
    names = list(dict.fromkeys(key.removeprefix("remote.").removesuffix(".url") for key in keys))
    urls = [repository.output("ls-remote", "--get-url", "--", name) for name in names[:_MOST_REMOTES]]
    return [os.fsdecode(each.rstrip(b"\n")) for each in urls]


def _bare_url(url: str) -> str:
    """Write a URL as FETCH_HEAD does: without user, slashes and `.git` at its end (git, builtin/fetch.c)."""
    url = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/]*@", r"\1", url)
    return url.rstrip("/").removesuffix(".git")


def commits_merged_in(repository: Repository, heads: Sequence[str], settled: Sequence[str]) -> list[Commit]:
    """List the commits that a merge of `heads` into HEAD brings and that no remote has."""
    base = ref_value(repository, "HEAD")
    return commits_not_in(repository, heads, [*([base] if base else []), *settled], "--remotes")


def unpublished_commits(repository: Repository, tip: str, settled: Sequence[str], most: int) -> list[Commit]:
    """List the last commits of `tip` that no remote has and that were not there at install, parents first."""
    return commits_not_in(repository, [tip], settled, "--remotes", most=most)


def fetched_tips(repository: Repository) -> list[str]:
    """List the tips of the last fetch, branches or not, except those from this repository."""
    return [head.oid for head in _fetched_heads(repository) if not head.is_own]


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A line of FETCH_HEAD: the commit, and the URL of its branch; empty if it is not a branch.

    `is_own` is whether this repository fetched from itself.
    """

    oid: str
    url: str
    is_own: bool


def _fetched_heads(repository: Repository) -> list[_Fetched]:
    """Read what the last fetch brought (git-fetch: oid TAB note TAB `branch 'x' of URL`)."""
    try:
        with open(os.path.join(repository.git_dir, "FETCH_HEAD"), "rb") as file:
            lines = [line.rstrip(b"\n") for line in file]
    except FileNotFoundError:
        return []
    found: list[_Fetched] = []
    folders: frozenset[str] | None = None
    for line in lines:
        oid, _, rest = line.partition(b"\t")
        if repository.is_oid(oid):
            about = rest.rpartition(b"\t")[2]
            # No ref name contains a blank; for `HEAD` there is only the URL.
            kind, is_named, after = about.partition(b"' of ")
            source = os.fsdecode(after if is_named else about)
            folders = _own_folders(repository) if folders is None else folders
            is_own = not folders.isdisjoint(_meant(repository, source))
            url = source if is_named and kind.startswith(b"branch '") else ""
            found.append(_Fetched(oid.decode("ascii"), url, is_own))
    return found


def _own_folders(repository: Repository) -> frozenset[str]:
    """Name the folders by which this very repository can be fetched from, those of its worktrees included."""
    found = {repository.git_dir, repository.common_dir, *git_dirs(repository)}
    return frozenset(os.path.realpath(each) for each in found) | work_trees(repository)


def _meant(repository: Repository, source: str) -> Iterator[str]:
    """Name the folders that a URL in FETCH_HEAD can mean; it has lost the slashes and `.git` at its end."""
    if source.startswith("file://"):
        from urllib.parse import unquote_to_bytes

        source = os.fsdecode(unquote_to_bytes(os.fsencode("/" + source[7:].partition("/")[2])))
    if "\0" in source:
        return
    for each in (source, source + ".git"):
        yield os.path.realpath(os.path.join(repository.work_tree or repository.git_dir, each))
