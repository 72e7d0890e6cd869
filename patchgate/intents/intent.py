"""An intent: the files that one piece of work declares, and for how long. Matches its entries.

Entries are read like git's pathspecs: a path; everything below a folder, which ends in `/`; or a glob,
where `*` and `?` also match `/`. A name with brackets first means itself: `[id].tsx` is a file of Next.js.
Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase, translate

from patchgate.git.path import RepoPath
from patchgate.values import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchgate.git.model import FileChange

_RUN = "run "
_STAR, _ANY = "**", "??"
# Classes as in `fnmatch`: `]` right after `[` or `[!` is a member, and `[` without an end is itself.
_TOKEN = re.compile(r"(?P<star>\*+)|(?P<any>\?)|(?P<class>\[!?+\]?+[^\]]*+\])|.", re.DOTALL)


def reason_of_run(run: str, what: str) -> str:
    """Write the reason of an intent that a run declares."""
    return f"{_RUN}{run}: {what}"


def is_folder(entry: RepoPath) -> bool:
    """Whether an entry is a folder, and matches everything below."""
    return entry.raw.endswith(b"/")


def is_glob(entry: RepoPath) -> bool:
    """Whether an entry could match something else as a glob."""
    return any(sign in entry.raw for sign in (b"*", b"?", b"["))


def can_match_many(entry: RepoPath) -> bool:
    """Whether an entry could match more than one path."""
    return is_folder(entry) or is_glob(entry)


def matches(entry: RepoPath, path: RepoPath) -> bool:
    """Whether an entry matches a path."""
    if entry == path:
        return True
    if is_folder(entry) and path.raw.startswith(entry.raw):
        return True
    return is_glob(entry) and fnmatchcase(_text(path), _glob(entry))


def path_matcher(entries: Iterable[RepoPath]) -> Callable[[RepoPath], bool]:
    """Return a function that tests whether any of the entries matches a path; fast for many paths."""
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
    """Whether two entries can match the same path; assumed of two character classes."""
    return any(
        _tokens_overlap(left, right) for left in _tokenizations(one) for right in _tokenizations(other)
    )


def _text(path: RepoPath) -> str:
    return path.raw.decode("utf-8", "surrogateescape")


def _glob(entry: RepoPath) -> str:
    return _text(entry) + "*" * is_folder(entry)


def _tokenizations(entry: RepoPath) -> list[list[str]]:
    """Split an entry, as written and as a glob, into characters, classes and wildcards."""
    found = [[*_text(entry), *[_STAR] * is_folder(entry)]]
    if is_glob(entry):
        found.append([_token(each) for each in _TOKEN.finditer(_glob(entry))])
    return found


def _token(found: re.Match[str]) -> str:
    return {"star": _STAR, "any": _ANY}.get(found.lastgroup or "", found[0])


def _tokens_overlap(one: list[str], other: list[str]) -> bool:
    """Whether some text matches both; visits each pair of positions once."""
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
    """Whether two tokens for one character can match the same one."""
    if one == other or _ANY in {one, other}:
        return True
    if len(one) == len(other) == 1:
        return False
    # Two classes are assumed to overlap.
    return min(len(one), len(other)) > 1 or fnmatchcase(*sorted((one, other), key=len))


DEFAULT_TTL, LEAST_TTL, MOST_TTL = 3600, 60, 86400
DEFAULT_LEASE, LEAST_LEASE = 300, 1
_SAME_TIME = 60


class State(StrEnum):
    """Whether an intent has its files, or is queued until another one is cleared."""

    ACTIVE = "active"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class IntentScope:
    """The files that a piece of work may touch, those that belong to them, and those that it must not touch.

    Entries are paths, folders and globs, as typed, from the root.
    """

    allowed: tuple[RepoPath, ...]
    related: tuple[RepoPath, ...] = ()
    forbidden: tuple[RepoPath, ...] = ()
    _takers: tuple[Callable[[RepoPath], bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        each = ((*self.allowed, *self.related), self.allowed, self.forbidden)
        object.__setattr__(self, "_takers", tuple(map(path_matcher, each)))

    def covers(self, path: RepoPath) -> bool:
        """Whether the work may touch a path, so that findings there are its own (A7, A8)."""
        return self._takers[0](path)

    def allows(self, path: RepoPath) -> bool:
        """Whether a path is allowed itself, not only related."""
        return self._takers[1](path)

    def forbids(self, path: RepoPath) -> bool:
        """Whether the declaration forbids a path; control files come on top."""
        return self._takers[2](path)


@dataclass(frozen=True, slots=True)
class Moment:
    """A time: `wall` are seconds since the epoch, `boot` those since the boot of this id (0: unknown)."""

    wall: float
    boot_id: str = ""
    boot: float = 0.0

    def until(self, now: Moment) -> float | None:
        """Return the seconds up to `now`, by the larger of the two clocks; None if the clock went back.

        Within one boot, setting the clock cannot make the time shorter. Two processes may read the clock
        before they lock, so a slightly earlier time counts as the same.
        """
        wall = now.wall - self.wall
        if self.boot_id and self.boot_id == now.boot_id:
            return max(wall, now.boot - self.boot, 0.0)
        return max(wall, 0.0) if wall >= -_SAME_TIME else None


@dataclass(frozen=True, slots=True)
class IntentOwner:
    """The process that owns an intent: host, pid, boot and start time, to detect a reused pid."""

    host: str
    pid: int
    boot_id: str
    started: str


@dataclass(frozen=True, slots=True)
class IntentBudget:
    """What all attempts and commits of an intent may take together; None is no limit."""

    max_attempts: int | None = None
    max_added_lines: int | None = None
    max_minutes: int | None = None

    @property
    def written(self) -> dict[str, int]:
        """The limits that are set, by name."""
        limits = {name: getattr(self, name) for name in self.__slots__}
        return {name: limit for name, limit in limits.items() if limit is not None}


NO_BUDGET = IntentBudget()


@dataclass(frozen=True, slots=True)
class Intent:
    """One declaration, as it is stored; `ttl` and `lease` are in seconds.

    `work_tree` and `git_dir` name the worktree. `base` is the commit that it began on (None: unborn), `tree`
    that commit's tree. `dirty` are the files that were changed then, with the object ids that each could have
    been committed with (None: deleted): as it was staged, and as the working tree had it. `analyses` is the
    digest of the analyses that were declared then. `budget` is what the work may take in all.
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
    budget: IntentBudget = NO_BUDGET

    @property
    def run(self) -> str | None:
        """The id of the run that declared it for one of its works (`reason_of_run`); None for others."""
        name, colon, _ = self.reason.removeprefix(_RUN).partition(": ")
        return name if colon and self.reason.startswith(_RUN) else None

    @property
    def digest(self) -> str:
        """The digest of what was declared: `sha256:…`."""
        text = json.dumps(declared_values(self), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return "sha256:" + hashlib.sha256(b"patchgate.intent/1\n" + text.encode("ascii")).hexdigest()

    def is_as_before(self, path: RepoPath, oid: str | None) -> bool:
        """Whether a file had this content (None: deleted) before the declaration; modes are ignored."""
        return oid in self.dirty.get(path, ())

    def unchanged_dirt(self, files: Iterable[FileChange]) -> frozenset[RepoPath]:
        """Return the files of a change that were already so before the declaration."""
        return frozenset(
            file.path
            for file in files
            if self.is_as_before(file.path, None if file.new is None else file.new.oid)
        )

    def seconds_left(self, now: Moment) -> float:
        """Return the seconds until it expires; 0 or less if it has expired, or the clock went back."""
        since = (self.renewed or self.declared).until(now)
        return 0.0 if since is None else self.ttl - since

    def is_over(self, now: Moment) -> bool:
        """Whether it has expired."""
        return self.seconds_left(now) <= 0

    def has_lease(self, now: Moment) -> bool:
        """Whether its last activity is so recent that it may not be taken over."""
        since = (self.seen or self.declared).until(now)
        return since is not None and since <= self.lease


def declared_values(intent: Intent) -> dict[str, object]:
    """Return what the digest of an intent covers, as plain values for JSON; paths are hexadecimal."""
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
        # Intents without a budget keep the digest that they had before there were budgets.
        **({"budget": written} if (written := intent.budget.written) else {}),
    }


def overlapping_entries(one: IntentScope, other: IntentScope) -> tuple[RepoPath, ...]:
    """Return the entries of `one` by which both scopes can allow the same file."""
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

    Active intents come before queued ones.

    Args:
        intents: the unexpired intents of one worktree.
        touched: returns the files of the commit that count for an intent.
        may_touch: whether an intent allows a file now.
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
    """What a piece of work touched, compared with what it declared.

    `unexpected` files were not declared, `forbidden` ones must not be touched; `controls` are the forbidden
    files that no entry forbids: control files are always forbidden. `expanded` are the touched related
    files, and the baselines of its components; `untouched` the allowed entries without a touched file.
    `taken` are the unexpected files that it declared but another intent has, with the id of that one.
    """

    unexpected: tuple[RepoPath, ...] = ()
    forbidden: tuple[RepoPath, ...] = ()
    expanded: tuple[RepoPath, ...] = ()
    untouched: tuple[RepoPath, ...] = ()
    controls: tuple[RepoPath, ...] = ()
    taken: tuple[tuple[RepoPath, str], ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing unexpected or forbidden was touched."""
        return not self.unexpected and not self.forbidden
