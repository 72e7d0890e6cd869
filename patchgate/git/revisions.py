"""Resolve a revision once, to a ref and an object id; find the first commit and the main line.

Git takes the first ref that matches a short name, and a tag comes before a remote-tracking branch: whoever
may push a tag `origin/main` chooses what `origin/main` means. Here a name that matches more than one ref is
refused, and a pusher cannot choose the main line by a date or a name. Source: gitrevisions(7).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property

from patchgate.errors import UsageError
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, TAGS
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.values import dataclass

_NO_HISTORY = ("--exclude=refs/notes/*", "--exclude=refs/patchgate/*", "--exclude=refs/replace/*")
_REMOTE = "refs/remotes/origin/"
_USUAL = (BRANCHES + "main", BRANCHES + "master", _REMOTE + "main", _REMOTE + "master")
_ROOTS = ("rev-list", "--max-parents=0", "--format=%H %T", "--no-commit-header")


def has_commits(repository: Repository) -> bool:
    """Return whether any ref reaches a commit.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    return bool(repository.output("rev-list", "--max-count=1", *_NO_HISTORY, "--all"))


class FirstCommit:
    """Recognises the first commit of a repository among root commits; git walks the history once for all.

    A root with the same tree as the first commit counts too (another message).

    Args:
        replaces: the value of the ref that gets the roots; if it is all that the repository has, the first
            commit is being amended.
        known: the commit whose history counts, regardless of refs. An empty list: no history is known,
            and only a single root is the first. None: the main line counts.
    """

    def __init__(
        self, repository: Repository, replaces: str | None = None, known: Sequence[str] | None = None
    ) -> None:
        self._repository = repository
        self._replaces = replaces
        self._known = known

    def matches(self, root: str, tree: str) -> bool:
        """Return whether a root commit with this tree is the first commit.

        Raises:
            UndecidedError: git failed, or an object is missing.
        """
        if self._is_amended or (not self._known and self._roots <= {root}):
            return True
        return len(self._ends) == 1 and (root in self._ends or tree in self._ends.values())

    @cached_property
    def _is_amended(self) -> bool:
        if self._replaces is None:
            return False
        few = self._repository.output("rev-list", "--max-count=2", *_NO_HISTORY, "--all")
        return few.decode("ascii").split() == [self._replaces]

    @cached_property
    def _roots(self) -> set[str]:
        return set(_pairs(self._repository.output(*_ROOTS, *_NO_HISTORY, "--all")))

    @cached_property
    def _ends(self) -> dict[str, str]:
        known = self._known
        if known is None:
            known = [commit for _, commit in _lines(self._repository)]
        return _ends(self._repository, known)


def root_commits(repository: Repository, commit: str) -> list[str]:
    """List the commits without parents that a commit descends from, sorted; empty in a shallow clone.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    return [] if repository.shallow else sorted(_pairs(repository.output(*_ROOTS, commit)))


def main_lines(repository: Repository) -> list[str]:
    """Return the tip of the default branch if it is known; otherwise the tips of all candidates.

    Empty if no branch and no tag has a commit.

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

    One ref, if the HEAD of a bare repository or of `origin` names it; otherwise those of the usual names,
    then every branch, then every tag. A ref `refs/remotes/origin/HEAD` that is not symbolic is a pushed
    branch `HEAD`.
    """
    refs = _refs_below(repository, BRANCHES, "refs/remotes/")
    for is_head, ref, oid, target in refs:
        if ref == _REMOTE + "HEAD" and target.startswith(_REMOTE):
            return [(ref, oid)]
        if is_head and repository.work_tree is None:
            return [(ref, oid)]
    named = {ref: oid for _, ref, oid, _ in refs}
    usual = [(ref, named[ref]) for ref in _USUAL if ref in named]
    if usual or named:
        return usual or list(named.items())
    return [(ref, oid) for _, ref, oid, _ in _refs_below(repository, TAGS)]


def _refs_below(repository: Repository, *folders: str) -> list[tuple[bool, str, str, str]]:
    """List refs: whether HEAD names it, its full name, its object, and the ref that a symbolic one names."""
    written = "%(if)%(HEAD)%(then)*%(else)-%(end) %(refname) %(objectname) %(symref)"
    raw = repository.output("for-each-ref", f"--format={written}", *(each.rstrip("/") for each in folders))
    lines = (line.split(" ") for line in raw.decode("utf-8", "surrogateescape").split("\n") if line)
    return [(head == "*", ref, oid, target) for head, ref, oid, target in lines]


def _ends(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    """Map the roots of the first-parent lines of some commits to their trees."""
    if not commits:
        return {}
    stdin = "".join(f"{commit}\n" for commit in commits).encode("ascii")
    return _pairs(repository.output(*_ROOTS, "--first-parent", "--stdin", stdin=stdin))


def _pairs(raw: bytes) -> dict[str, str]:
    lines = (line.partition(" ") for line in raw.decode("ascii").splitlines())
    return {commit: tree for commit, _, tree in lines}


NAME_ONE = "name a commit, a branch or a tag"
_RULES = ("refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
# What comes before the first `^`, `~`, `:` or `@{`: no name of a ref has these.
_BASE = re.compile(r"(?:(?!@\{)[^\^~:])*")
_PRIOR = re.compile(r"@\{-[0-9]+\}")
# An abbreviated object id, alone or at the end of what git-describe writes.
_SHORT_ID = re.compile(r"(?:.*-g)?([0-9a-f]{4,64})", re.IGNORECASE | re.DOTALL)
# No name of a ref has these, and for-each-ref would take them for a pattern.
_GLOB = frozenset("*?[\\")
_LONGEST = 4096


@dataclass(frozen=True, slots=True)
class Revision:
    """What a name was resolved to: an object's id and type, and the full name of the ref, if it is one."""

    oid: str
    type: str
    ref: str | None = None


def resolve(objects: Objects, text: str) -> Revision | None:
    """Resolve a revision; None if there is none.

    A full object id, `HEAD` and `@` are unambiguous. Any other name is looked up under each of git's
    rules, through the child that runs already; another child runs only if more than one of them fits.

    Raises:
        UsageError: the name fits more than one ref, or a ref and an object.
        UndecidedError: git could not answer.
    """
    if not is_name(text):
        return None
    prior = _PRIOR.match(text)
    if prior is not None:
        # `@{-1}` is a branch's short name, which a tag can have too.
        done = objects.repository.git("check-ref-format", "--branch", prior[0], answers=ANY_CODE)
        branch = os.fsdecode(done.out.rstrip(b"\n"))
        return resolve(objects, branch + text[prior.end() :]) if done.code == 0 and branch else None
    match = _BASE.match(text)
    base = match[0] if match is not None else ""
    suffix = text[len(base) :]
    if base in {"@", "HEAD"} and head_commit(objects) is None:
        return None
    start = None if base in {"", "@", "HEAD"} or _is_oid(objects, base) else _ref_of(objects, base)
    if start is None and base.startswith("refs/"):
        return None
    if start is None or suffix.startswith("@{"):
        # The log or the upstream of a ref is found by its name, which means one ref only.
        header = objects.header(text)
    else:
        header = objects.header(start[1] + suffix)
    if header is None:
        return None
    return Revision(header.oid, header.type, start[0] if start is not None and not suffix else None)


def commit_named(objects: Objects, text: str) -> str:
    """Resolve a revision that must name a commit, and return its id.

    Raises:
        UsageError: there is no such commit, or the name is ambiguous.
        UndecidedError: git could not answer.
    """
    if not is_name(text):
        raise UsageError(f"{printable(text)} is not a revision", NAME_ONE)
    found = resolve(objects, text)
    header = objects.header(found.oid + "^{commit}") if found is not None else None
    if header is None:
        raise UsageError(f"unknown revision {printable(text)}", f"{NAME_ONE}; git log shows them")
    return header.oid


def tree_named(objects: Objects, text: str) -> tuple[str, str | None] | None:
    """Find the tree that a revision names, and the commit if it names one; None if it names neither.

    Raises:
        UsageError: the name is ambiguous.
        UndecidedError: git could not answer.
    """
    found = resolve(objects, text)
    # `REV:PATH` names a folder: no policy and no analysis begins there.
    if found is None or ":" in text:
        return None
    commit = objects.header(found.oid + "^{commit}")
    tree = objects.header((commit.oid if commit else found.oid) + "^{tree}")
    return (tree.oid, commit.oid if commit else None) if tree else None


def head_commit(objects: Objects) -> str | None:
    """Find HEAD's commit; None if it has none. Git would then take a tag `HEAD`, which is wrong.

    Raises:
        UndecidedError: git could not answer.
    """
    own, *others = objects.headers(["HEAD^{commit}", *(rule.format("HEAD") for rule in _RULES)])
    if own is None or not any(others):
        return own.oid if own is not None else None
    repository = objects.repository
    branch = os.fsdecode(repository.git("symbolic-ref", "--quiet", "HEAD", answers=(0, 1)).out.rstrip(b"\n"))
    if not branch:
        return own.oid
    exact = ("show-ref", "--verify", "--quiet", "--", branch)
    return own.oid if repository.git(*exact, answers=(0, 1)).code == 0 else None


def is_name(text: str) -> bool:
    """Return whether a text can be looked up: it is one line, and not an option."""
    return bool(text) and not text.startswith("-") and "\n" not in text and "\0" not in text


def _is_oid(objects: Objects, text: str) -> bool:
    """Return whether a text is a whole object id, which git never takes for the name of a ref."""
    return len(text) == len(objects.repository.zero_oid) and not text.strip("0123456789abcdefABCDEF")


def _ref_of(objects: Objects, base: str) -> tuple[str, str] | None:
    """Find the one ref that a name matches, with its object id; None if there is none.

    Raises:
        UsageError: it fits more than one.
    """
    if len(base) > _LONGEST:
        return None
    names = [rule.format(base) for rule in _RULES]
    own, *others = objects.headers([base, *names])
    fits = [(name, found) for name, found in zip(names, others, strict=True) if found is not None]
    if base.startswith("refs/"):
        if fits:
            # A tag `refs/heads/main` answers to `refs/heads/main` too. A full name means that ref alone.
            return next(_listed(objects, [base]), None)
        return (base, own.oid) if own is not None else None
    if not fits:
        return None
    if len(fits) == 1 and _SHORT_ID.fullmatch(base) is None:
        name, found = fits[0]
        # Git takes these names for short ones as well: the ref exists only if none of them answers.
        deeper = objects.headers([rule.format(name) for rule in _RULES])
        if own is not None and own.oid == found.oid and not any(deeper):
            return name, found.oid
    return _exact_ref(objects, base, names)


def _exact_ref(objects: Objects, base: str, names: list[str]) -> tuple[str, str] | None:
    """Look up refs by their exact names only; `names` are what git's rules make of `base`."""
    found = dict(_listed(objects, names))
    short = _SHORT_ID.fullmatch(base)
    meant = list(found)
    if found:
        if _is_pseudo_ref(objects, base):
            meant.insert(0, f".git/{base}")
        elif short is not None:
            done = objects.repository.git("rev-parse", f"--disambiguate={short[1]}")
            meant += [f"the object {oid}" for oid in done.out.decode("ascii", "replace").split()[:1]]
        elif (own := objects.header(base)) is not None and own.oid not in found.values():
            meant.insert(0, f"the object {own.oid}")
    if len(meant) > 1:
        shown = ", ".join(printable(name) for name in meant[:-1]) + f" and {printable(meant[-1])}"
        full = next((name for name in reversed(meant) if name.startswith("refs/")), meant[-1])
        raise UsageError(
            f"{printable(base)} is ambiguous: it matches {shown}",
            f"write the full name of the one you mean, like {printable(full)}",
        )
    return next(iter(found.items()), None)


def _listed(objects: Objects, names: list[str]) -> Iterator[tuple[str, str]]:
    if any(_GLOB & set(name) for name in names):
        return
    raw = objects.repository.output("for-each-ref", "--format=%(objectname) %(refname)", *names)
    lines = (line.partition(" ") for line in raw.decode("utf-8", "surrogateescape").split("\n"))
    found = {name: oid for oid, _, name in lines}
    yield from ((name, found[name]) for name in names if name in found)


def _is_pseudo_ref(objects: Objects, base: str) -> bool:
    """Return whether git would read a ref from a file of this name in its own folder, like FETCH_HEAD."""
    repository = objects.repository
    for folder in (repository.git_dir, repository.common_dir):
        with suppress(OSError), open(os.path.join(folder, base), "rb") as file:
            word = file.read(len(repository.zero_oid))
            if repository.is_oid(word) or word.startswith(b"ref:"):
                return True
    return False
