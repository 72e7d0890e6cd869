"""An intent: what one piece of work declared that it will touch, and for how long.

Entries are read as git's pathspecs: the path itself; all below a folder, which ends in `/`; what a glob
matches, where `*` and `?` also match a `/`. A name with brackets is that name first: `[id].tsx` is a file of
Next.js. Reads no clock and no files.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase, translate

from patchgate.git.path import RepoPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchgate.git.model import FileChange

_STAR, _ANY = "**", "??"
# As `fnmatch` reads a class: a `]` right after `[` or `[!` is a member, and without an end `[` is itself.
_TOKEN = re.compile(r"(?P<star>\*+)|(?P<any>\?)|(?P<class>\[!?+\]?+[^\]]*+\])|.", re.DOTALL)


def is_folder(entry: RepoPath) -> bool:
    """Tell whether an entry takes what is below a folder."""
    return entry.raw.endswith(b"/")


def is_glob(entry: RepoPath) -> bool:
    """Tell whether an entry could match, as a glob, anything else than itself."""
    return any(sign in entry.raw for sign in (b"*", b"?", b"["))


def can_match_many(entry: RepoPath) -> bool:
    """Tell whether an entry could take another path than itself."""
    return is_folder(entry) or is_glob(entry)


def matches(entry: RepoPath, path: RepoPath) -> bool:
    """Tell whether an entry takes a path."""
    if entry == path:
        return True
    if is_folder(entry) and path.raw.startswith(entry.raw):
        return True
    return is_glob(entry) and fnmatchcase(_text(path), _glob(entry))


def path_matcher(entries: Iterable[RepoPath]) -> Callable[[RepoPath], bool]:
    """Make what tells of each path whether any of some entries takes it; of many files it costs little."""
    exact = frozenset(entries)
    folders = tuple(each.raw for each in exact if is_folder(each))
    globs = [translate(_glob(each)) for each in sorted(exact) if is_glob(each)]
    matches = re.compile("|".join(globs)).match if globs else None

    def is_taken(path: RepoPath) -> bool:
        if path in exact or path.raw.startswith(folders):
            return True
        return matches is not None and matches(_text(path)) is not None

    return is_taken


def can_overlap(one: RepoPath, other: RepoPath) -> bool:
    """Tell whether two entries can take the same path; of two classes of characters it is assumed."""
    return any(
        _tokens_overlap(left, right) for left in _tokenizations(one) for right in _tokenizations(other)
    )


def _text(path: RepoPath) -> str:
    return path.raw.decode("utf-8", "surrogateescape")


def _glob(entry: RepoPath) -> str:
    return _text(entry) + "*" * is_folder(entry)


def _tokenizations(entry: RepoPath) -> list[list[str]]:
    """Part an entry as it is written, and as a glob: single characters, classes, and what stands for any."""
    found = [[*_text(entry), *[_STAR] * is_folder(entry)]]
    if is_glob(entry):
        found.append([_token(each) for each in _TOKEN.finditer(_glob(entry))])
    return found


def _token(found: re.Match[str]) -> str:
    return {"star": _STAR, "any": _ANY}.get(found.lastgroup or "", found[0])


def _tokens_overlap(one: list[str], other: list[str]) -> bool:
    """Tell whether some text matches both; each pair of places is looked at once."""
    known: set[tuple[int, int]] = set()
    waiting = [(0, 0)]
    while waiting:
        place = waiting.pop()
        if place in known:
            continue
        known.add(place)
        left, right = place
        here = one[left] if left < len(one) else ""
        there = other[right] if right < len(other) else ""
        if not here and not there:
            return True
        if here == _STAR:
            waiting.append((left + 1, right))
            waiting += [(left, right + 1)] if there else []
        elif there == _STAR:
            waiting.append((left, right + 1))
            waiting += [(left + 1, right)] if here else []
        elif here and there and _tokens_match(here, there):
            waiting.append((left + 1, right + 1))
    return False


def _tokens_match(one: str, other: str) -> bool:
    """Tell whether two tokens for one character can stand for the same."""
    if one == other or _ANY in {one, other}:
        return True
    if len(one) == len(other) == 1:
        return False
    # Of two classes nobody asks further.
    return min(len(one), len(other)) > 1 or fnmatchcase(*sorted((one, other), key=len))


DEFAULT_TTL, LEAST_TTL, MOST_TTL = 3600, 60, 86400
DEFAULT_LEASE, LEAST_LEASE = 300, 1
_SAME_TIME = 60


class State(StrEnum):
    """Whether an intent owns its files, or waits for another to be cleared."""

    ACTIVE = "active"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class IntentScope:
    """The files that a piece of work may touch, those that go with them, and those that it may not touch.

    Entries are paths, folders and globs (`entries`), as they were typed, from the root.
    """

    allowed: tuple[RepoPath, ...]
    related: tuple[RepoPath, ...] = ()
    forbidden: tuple[RepoPath, ...] = ()
    _takers: tuple[Callable[[RepoPath], bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        each = ((*self.allowed, *self.related), self.allowed, self.forbidden)
        object.__setattr__(self, "_takers", tuple(map(path_matcher, each)))

    def covers(self, path: RepoPath) -> bool:
        """Tell whether the work may touch a path, so that what is found there is its own (A7, A8)."""
        return self._takers[0](path)

    def allows(self, path: RepoPath) -> bool:
        """Tell whether a path is one of the files that the work is about, and not only goes with them."""
        return self._takers[1](path)

    def forbids(self, path: RepoPath) -> bool:
        """Tell whether the declaration itself forbids a path; control files others add."""
        return self._takers[2](path)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time: `wall` are seconds since the epoch, `boot` those since the boot of this id (0: unknown)."""

    wall: float
    boot_id: str = ""
    boot: float = 0.0

    def until(self, now: Moment) -> float | None:
        """Count the seconds up to `now`, by the clock that tells more; None where the clock went back.

        Within one boot a clock that is set back, or on, cannot make the time shorter than it was. Two
        processes look at the clock before they take turns: a little earlier is the same time.
        """
        wall = now.wall - self.wall
        if self.boot_id and self.boot_id == now.boot_id:
            return max(wall, now.boot - self.boot, 0.0)
        return max(wall, 0.0) if wall >= -_SAME_TIME else None


@dataclass(frozen=True, slots=True)
class IntentOwner:
    """The process that owns an intent: host, pid, boot and start time, so that a reused pid is not it."""

    host: str
    pid: int
    boot_id: str
    started: str


@dataclass(frozen=True, slots=True)
class Intent:
    """One declaration, as it is stored; `ttl` and `lease` are in seconds.

    `work_tree` and `git_dir` name the worktree. `base` is the commit that it began on (None: unborn), `tree`
    that commit's tree. `dirty` are the files that were changed then, with the object ids that each could have
    been committed with (None: deleted): as it was staged, and as the working tree had it. `analyses` is the
    digest of the analyses that were declared then.
    `digest` is that of all this. Not covered by it: `state`, `renewed` (when the time began anew), `seen`
    (the last activity), `owner`, and `before` (the digest of the before-report once there is one).
    """

    id: str
    reason: str
    scope: IntentScope
    work_tree: str
    git_dir: str
    base: str | None
    tree: str
    declared: Moment
    ttl: int
    lease: int
    dirty: Mapping[RepoPath, tuple[str | None, ...]] = field(default_factory=dict, hash=False)
    analyses: str = ""
    state: State = State.ACTIVE
    renewed: Moment | None = None
    seen: Moment | None = None
    owner: IntentOwner | None = None
    before: str | None = None

    @property
    def digest(self) -> str:
        """The digest of what was declared: `sha256:…`."""
        text = json.dumps(declared_values(self), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return "sha256:" + hashlib.sha256(b"patchgate.intent/1\n" + text.encode("ascii")).hexdigest()

    def is_as_before(self, path: RepoPath, oid: str | None) -> bool:
        """Tell whether a file was changed to just this (None: deleted) before the declaration already.

        Modes do not count: to make a file that was dirty executable is nobody's work.
        """
        return oid in self.dirty.get(path, ())

    def unchanged_dirt(self, files: Iterable[FileChange]) -> frozenset[RepoPath]:
        """Name the files of a change that were just so before the declaration."""
        return frozenset(
            file.path
            for file in files
            if self.is_as_before(file.path, None if file.new is None else file.new.oid)
        )

    def seconds_left(self, now: Moment) -> float:
        """Count the seconds until its time is over; 0 or less: it is over, also where the clock went back."""
        since = (self.renewed or self.declared).until(now)
        return 0.0 if since is None else self.ttl - since

    def is_over(self, now: Moment) -> bool:
        """Tell whether its time is over."""
        return self.seconds_left(now) <= 0

    def has_lease(self, now: Moment) -> bool:
        """Tell whether something of it was seen so lately that nobody else may take it over."""
        since = (self.seen or self.declared).until(now)
        return since is not None and since <= self.lease


def declared_values(intent: Intent) -> dict[str, object]:
    """Give what the digest of an intent covers, as plain values for JSON; paths are hexadecimal."""
    scope = intent.scope
    return {
        "id": intent.id,
        "reason": intent.reason,
        "allowed": [path.raw.hex() for path in scope.allowed],
        "related": [path.raw.hex() for path in scope.related],
        "forbidden": [path.raw.hex() for path in scope.forbidden],
        "work_tree": intent.work_tree,
        "git_dir": intent.git_dir,
        "base": intent.base,
        "tree": intent.tree,
        "declared": [intent.declared.wall, intent.declared.boot_id, intent.declared.boot],
        "ttl": intent.ttl,
        "lease": intent.lease,
        "dirty": {path.raw.hex(): [*oids] for path, oids in intent.dirty.items()},
        "analyses": intent.analyses,
    }


def overlapping_entries(one: IntentScope, other: IntentScope) -> tuple[RepoPath, ...]:
    """Name the entries of `one` by which two scopes can allow the same file."""
    theirs = (*other.allowed, *other.related)
    return tuple(
        entry for entry in (*one.allowed, *one.related) if any(can_overlap(entry, each) for each in theirs)
    )


def choose_binding_intent(
    intents: Iterable[Intent],
    touched: Callable[[Intent], Iterable[RepoPath]],
    may_touch: Callable[[Intent, RepoPath], bool],
) -> Intent | None:
    """Choose the intent that binds a commit: the newest that allows all its files, or else the newest.

    One that is active goes before one that waits.

    Args:
        intents: those of one worktree whose time is not over.
        touched: tells which files of the commit count for an intent.
        may_touch: tells whether an intent allows a file now.
    """
    newest = sorted(
        intents,
        key=lambda intent: (intent.state is State.ACTIVE, intent.declared.wall, intent.id),
        reverse=True,
    )
    for intent in newest:
        if all(may_touch(intent, path) for path in touched(intent)):
            return intent
    return newest[0] if newest else None


@dataclass(frozen=True, slots=True)
class ScopeCheck:
    """What a piece of work touched, held against what it declared.

    `unexpected` are files that it declared nowhere, `forbidden` those that it may not touch; `controls` are
    those of them that no entry forbids: control files are forbidden whatever was declared. `expanded` are the
    related files that it touched, and the baselines of its components; `untouched` the allowed entries of
    which it touched nothing. `taken` are those unexpected files that it declared and another intent has, with
    the id of that one.
    """

    unexpected: tuple[RepoPath, ...] = ()
    forbidden: tuple[RepoPath, ...] = ()
    expanded: tuple[RepoPath, ...] = ()
    untouched: tuple[RepoPath, ...] = ()
    controls: tuple[RepoPath, ...] = ()
    taken: tuple[tuple[RepoPath, str], ...] = ()

    @property
    def is_clean(self) -> bool:
        """Tell whether it kept to what it declared."""
        return not self.unexpected and not self.forbidden
