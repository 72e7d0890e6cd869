"""Read what a push does to the refs of another repository, and what is known of that repository.

Decides how git's lines are read, what a remote is known to have (by the old values from git and our tracking
refs, never by `--all`), and which commit a tag points to. What may be pushed is decided elsewhere. Source of
the lines: githooks, pre-push and pre-receive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.path import is_ref_format
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository, failed
from patchgate.process.child import Completed
from patchgate.values import dataclass, field

BRANCHES = "refs/heads/"
TAGS = "refs/tags/"
NOTES = "refs/notes/"
USUAL_BRANCHES = (BRANCHES + "main", BRANCHES + "master")
_TRACKING = "refs/remotes/"
_HEX = re.compile(r"[0-9a-f]+")
_ZEROES = ("0" * 40, "0" * 64)
_GLOB = frozenset("*?[\\")
_MOST_LISTED = 500_000
"""How many commits may be listed for single tips, where each has another known commit: some 5 s."""
_EACH = 500
"""As how many commits the processes for one tip count."""
_USER = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/]*@")


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One ref of another repository: its full name there, its old value (None: it is new), and its new value.

    `new` is None if it is deleted. Both are ids of any object, as git gave them.
    """

    ref: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Remote:
    """What is known here of a remote without asking it.

    `had` maps the full names of its branches to their last known values; `default` is the
    full name of its default branch. `is_named` is false if it is only a URL (then the rest is empty).
    """

    name: str
    is_named: bool = False
    had: Mapping[str, str] = field(default_factory=dict)
    default: str | None = None

    @property
    def shown(self) -> str:
        """The name, safe for a terminal; of a URL without user and password."""
        return printable(_USER.sub(r"\1", self.name), 120)


def read_pushed(repository: Repository, lines: bytes) -> list[RefUpdate]:
    """Read the input of pre-push: `<local ref> SP <local oid> SP <remote ref> SP <remote oid> LF`.

    The local name may be any revision, with spaces (`HEAD@{1 day ago}`), so a line is read from the right.

    Raises:
        UndecidedError: a line is not in git's format.
    """
    updates = []
    for line in _lines(lines):
        words = line.rsplit(" ", 3)
        if len(words) != 4:
            raise _unreadable(line)
        _, new, ref, old = words
        updates.append(RefUpdate(ref, _oid(repository, old, line), _oid(repository, new, line)))
    return updates


def read_received(repository: Repository, lines: bytes) -> list[RefUpdate]:
    """Read the input of pre-receive: `<old oid> SP <new oid> SP <ref> LF`.

    A name may be any text of who pushes: git looks at it after this hook (receive-pack, `funny refname`).

    Raises:
        UndecidedError: a line is not in git's format, or a name is none of a ref.
    """
    updates = []
    for line in _lines(lines):
        words = line.split(" ")
        if len(words) != 3:
            raise _unreadable(line)
        old, new, ref = words
        if not ref.startswith("refs/") or not is_ref_format(ref):
            raise UndecidedError(
                f"{printable(ref, 200)} is not the name of a ref", "push full names, like refs/heads/main"
            )
        updates.append(RefUpdate(ref, _oid(repository, old, line), _oid(repository, new, line)))
    return updates


def _lines(raw: bytes) -> list[str]:
    return [line.decode("utf-8", "surrogateescape") for line in raw.split(b"\n") if line]


def _oid(repository: Repository, word: str, line: str) -> str | None:
    """Read an object id; zeroes, of either length, mean none."""
    if word in _ZEROES:
        return None
    if len(word) != len(repository.zero_oid) or not _HEX.fullmatch(word):
        raise _unreadable(line)
    return word


def _unreadable(line: str) -> UndecidedError:
    return UndecidedError(
        f"the list of refs from git has an unreadable line: {printable(line, 120)}",
        "check what else reads or writes the input of this hook: git patchgate doctor",
    )


def remote_of(repository: Repository, name: str) -> Remote:
    """Return what is known here of a remote, by the name (or URL) that git gives to pre-push.

    Raises:
        UndecidedError: git could not list the refs.
    """
    others = _configured(repository)
    if name not in others:
        return Remote(name)
    prefix = f"{_TRACKING}{name}/"
    # The refs of a remote `a/b` are not those of a remote `a`.
    foreign = tuple(f"{_TRACKING}{other}/" for other in others if other.startswith(f"{name}/"))
    default = _symbolic_ref(repository, prefix + "HEAD")
    # No ref has these characters in its name, and for-each-ref would take them for a pattern.
    refs = {} if _GLOB & set(name) else refs_below(repository, prefix.removesuffix("/"))
    had = {
        BRANCHES + ref.removeprefix(prefix): oid
        for ref, oid in refs.items()
        if ref.startswith(prefix) and not ref.startswith(foreign) and ref != prefix + "HEAD"
    }
    is_own = default.startswith(prefix) and not default.startswith(foreign)
    return Remote(
        name=name, is_named=True, had=had, default=BRANCHES + default.removeprefix(prefix) if is_own else None
    )


def remote_of_ref(repository: Repository, ref: str) -> str | None:
    """Find the remote whose branch a remote-tracking ref is; None if it is none, or of no known remote."""
    rest = ref.removeprefix(_TRACKING)
    if rest == ref or "/" not in rest:
        return None
    first, _, last = rest.partition("/")
    if "/" not in last:
        return first
    known = (each for each in _configured(repository) if rest.startswith(f"{each}/"))
    return max(known, key=len, default=first)


def remote_names(repository: Repository) -> list[str]:
    """List the remotes that git knows."""
    return repository.git("remote").out.decode("utf-8", "surrogateescape").split()


def usual_remote(repository: Repository) -> str | None:
    """Return origin, or the only remote; None if there is none, or several others."""
    names = remote_names(repository)
    return "origin" if "origin" in names else names[0] if len(names) == 1 else None


def _symbolic_ref(repository: Repository, name: str) -> str:
    """Return the target of a symbolic ref; empty if it is not one, or its name is invalid."""
    done = repository.git("symbolic-ref", "--quiet", name, answers=(0, 1, 128))
    if done.code == 128 and b"No such ref" not in done.err:
        raise failed("symbolic-ref", done)
    return done.out.decode("utf-8", "surrogateescape").rstrip("\n") if done.code == 0 else ""


def _configured(repository: Repository) -> set[str]:
    """List the names of the remotes that git's config knows."""
    done = repository.git("config", "-z", "--name-only", "--get-regexp", r"^remote\.", answers=(0, 1))
    keys = done.out.decode("utf-8", "surrogateescape").split("\0")
    return {key.removeprefix("remote.").rpartition(".")[0] for key in keys} - {""}


def refs_below(repository: Repository, *folders: str) -> dict[str, str]:
    """List refs by their full names, with the object that each names.

    Raises:
        UndecidedError: git could not list them.
    """
    raw = repository.output("for-each-ref", "--format=%(objectname) %(refname)", "--", *folders)
    found = {}
    for line in _lines(raw):
        oid, _, ref = line.partition(" ")
        found[ref] = oid
    return found


def default_branch(repository: Repository) -> str | None:
    """Return the branch of this repository's HEAD, even if it has no commit."""
    return _symbolic_ref(repository, "HEAD") or None


def peel(objects: Objects, oids: Iterable[str]) -> dict[str, str | None]:
    """Find the commit that each object is, or that a (nested) tag points to; None if it is not a commit.

    Raises:
        UndecidedError: git could not answer.
    """
    wanted = list(dict.fromkeys(oids))
    headers = objects.headers([f"{oid}^{{commit}}" for oid in wanted])
    return {oid: header.oid if header else None for oid, header in zip(wanted, headers, strict=True)}


def type_of(objects: Objects, oid: str) -> str | None:
    """Return the type of an object, or of what a tag points to; None if it is missing."""
    header = objects.header(f"{oid}^{{}}")
    return header.type if header else None


def nearest_first_parent(repository: Repository, tip: str, known: str) -> str | None:
    """Find the first commit on the line of first parents of `tip`, itself included, that `known` reaches.

    None if that line ends before.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    return _first_reached(repository, tip, known, _line(repository, tip, known))


def _line(repository: Repository, tip: str, known: str) -> list[list[str]]:
    """List the line of first parents of a tip, each with its parents, to what git sees `known` reach."""
    raw = repository.output("rev-list", "--first-parent", "--parents", tip, f"^{known}")
    return [line.split(" ") for line in raw.decode("ascii").splitlines()]


def _first_reached(
    repository: Repository, tip: str, known: str, chain: Sequence[Sequence[str]]
) -> str | None:
    if not chain:
        return tip
    # With wrong clocks, git may list commits that `known` reaches.
    if is_ancestor(repository, chain[-1][0], known):
        low, high = 0, len(chain) - 1
        while low < high:
            middle = (low + high) // 2
            if is_ancestor(repository, chain[middle][0], known):
                high = middle
            else:
                low = middle + 1
        return chain[low][0]
    return chain[-1][1] if len(chain[-1]) > 1 else None


class FirstParentLines:
    """Finds what `nearest_first_parent` finds, for the tips of a push.

    For a usual known commit, and for one that is asked for again, git lists the lines of all tips once.
    """

    def __init__(self, repository: Repository, tips: Iterable[str | None], usual: str | None) -> None:
        self._repository = repository
        self._tips = tips
        self._usual = usual
        self._asked: set[str] = set()
        self._lists: dict[str, _ListedLines] = {}
        self._listed = 0

    def nearest(self, tip: str, known: str) -> str | None:
        """Find the first commit on the line of one of the tips that `known` reaches; None: there is none.

        Raises:
            UndecidedError: git failed, objects are missing, or there are too many long lines.
        """
        if known not in self._lists:
            # Alone, one line is cheaper than all.
            if known != self._usual and known not in self._asked:
                self._asked.add(known)
                return self._alone(tip, known)
            self._lists[known] = _ListedLines(self._repository, filter(None, self._tips), known)
        listed = self._lists[known]
        # With wrong clocks, git may list commits that the known one reaches.
        return self._alone(tip, known) if listed.is_wrong(tip) else listed.nearest(tip)

    def _alone(self, tip: str, known: str) -> str | None:
        if self._listed > _MOST_LISTED:
            raise UndecidedError(
                "so many branches move to other lines that it takes too long to find where each line begins",
                "push fewer branches at once",
            )
        chain = _line(self._repository, tip, known)
        self._listed += len(chain) + _EACH
        return _first_reached(self._repository, tip, known, chain)


class _ListedLines:
    """The lines of first parents from some tips to what a known commit reaches."""

    def __init__(self, repository: Repository, tips: Iterable[str], known: str) -> None:
        self._repository = repository
        self._known = known
        stdin = "".join(f"{word}\n" for word in dict.fromkeys([*tips, "^" + known])).encode("ascii")
        raw = repository.output("rev-list", "--first-parent", "--parents", "--stdin", stdin=stdin)
        lines = [line.split(" ") for line in raw.decode("ascii").splitlines()]
        self._parents = {oid: parents[0] if parents else None for oid, *parents in lines}
        # For each listed commit the last listed one of its line, and the commit after that.
        self._ends: dict[str, tuple[str, str | None]] = {}
        self._reached: dict[str, bool] = {}

    def nearest(self, tip: str) -> str | None:
        """Find the first commit on the line of a tip that the known commit reaches, unless it is wrong."""
        return tip if tip not in self._parents else self._end_of(tip)[1]

    def is_wrong(self, tip: str) -> bool:
        """Return whether the list of a line has commits that the known one reaches."""
        if tip not in self._parents:
            return False
        last, _ = self._end_of(tip)
        if last not in self._reached:
            self._reached[last] = is_ancestor(self._repository, last, self._known)
        return self._reached[last]

    def _end_of(self, tip: str) -> tuple[str, str | None]:
        line = [tip]
        while line[-1] not in self._ends and (parent := self._parents[line[-1]]) in self._parents:
            line.append(parent or "")
        end = self._ends.get(line[-1]) or (line[-1], self._parents[line[-1]])
        self._ends.update(dict.fromkeys(line, end))
        return end


def first_parents_at(
    repository: Repository, tip: str, known: str | None, paths: Sequence[bytes]
) -> list[str]:
    """List the commits on the line of first parents that touch any of some paths, the oldest first.

    Args:
        known: a commit of that line, after which the list begins; None for the whole line.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    named = [os.fsdecode(path) for path in paths]
    excluded = () if known is None else (f"^{known}",)
    arguments = ("rev-list", "--first-parent", "--topo-order", "--reverse", tip, *excluded, "--", *named)
    raw = repository.output(*arguments, variables={"GIT_LITERAL_PATHSPECS": "1"})
    return raw.decode("ascii").split()


def commits_at(
    repository: Repository, commit: str, paths: Sequence[bytes], but: Sequence[bytes] = ()
) -> list[str]:
    """List the commits that a commit reaches and that touch any of some paths, the newest first.

    A merge is one of them if it chooses or joins: not where it has what the one side has whose history of
    these paths has all of the others'.

    Args:
        but: what is below these paths does not count.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    named = [":(top,literal)" + os.fsdecode(path) for path in paths]
    # With a trailing slash a literal path would also name a submodule of that name.
    named += [f":(top,glob,exclude){os.fsdecode(path)}**" for path in but]
    raw = repository.output("rev-list", "--simplify-merges", commit, "--", *named)
    return raw.decode("ascii").split()


def parents_of(repository: Repository, commits: Sequence[str]) -> dict[str, list[str]]:
    """List the parents of each of some commits.

    Raises:
        UndecidedError: git failed, or a commit is missing.
    """
    if not commits:
        return {}
    stdin = "".join(f"{oid}\n" for oid in commits).encode("ascii")
    raw = repository.output("rev-list", "--no-walk=unsorted", "--parents", "--stdin", stdin=stdin)
    lines = (line.split(" ") for line in raw.decode("ascii").splitlines())
    return {oid: parents for oid, *parents in lines}


def is_ancestor(repository: Repository, ancestor: str, commit: str) -> bool:
    """Return whether one commit reaches another; every commit reaches itself.

    Raises:
        UndecidedError: git has no answer, because an object is missing.
    """
    return _merge_base(repository, "--is-ancestor", ancestor, commit).code == 0


def common_ancestor(repository: Repository, commit: str, *others: str) -> str | None:
    """Find a best common ancestor of a commit and any of others; None if they have none.

    Raises:
        UndecidedError: git has no answer, because an object is missing.
    """
    return next(iter(common_ancestors(repository, commit, *others)), None)


def common_ancestors(repository: Repository, commit: str, *others: str) -> list[str]:
    """List the best common ancestors of a commit and any of others.

    Raises:
        UndecidedError: git has no answer, because an object is missing.
    """
    return _merge_base(repository, "--all", commit, *others).out.decode("ascii").split()


def _merge_base(repository: Repository, *arguments: str) -> Completed:
    done = repository.git("merge-base", *arguments, answers=(0, 1))
    # Git 2.39 answers no if it cannot read a commit between the two, and says why on standard error.
    if b"error:" in done.err:
        raise failed("merge-base", done)
    return done
