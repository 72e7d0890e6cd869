"""Parses a declaration: times, a reason and entries as typed become values, or are refused.

`actions` checks it against the worktree and the other intents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from patchgate.check.vague_phrases import vague_phrases
from patchgate.errors import UsageError
from patchgate.git.model import TREE_MODE
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import is_printable, printable
from patchgate.git.repository import Repository
from patchgate.intents.intent import (
    DEFAULT_LEASE,
    DEFAULT_TTL,
    LEAST_LEASE,
    LEAST_TTL,
    MOST_TTL,
    NO_BUDGET,
    IntentBudget,
    IntentScope,
    is_glob,
    matches,
)
from patchgate.policy.file_kinds import is_control_by_name
from patchgate.report.wording import count, show_path, some
from patchgate.values import dataclass

MOST_REASON = 1000
MOST_ENTRIES = 1000

_TIME = re.compile(r"([0-9]{1,7})([smh])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class DeclareOptions:
    """A declaration as typed; a time is None if it was not given."""

    reason: str
    allowed: Sequence[str]
    related: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    ttl: str | None = None
    lease: str | None = None
    queue: bool = False
    budget: IntentBudget = NO_BUDGET


@dataclass(frozen=True, slots=True)
class CheckedDeclaration:
    """A valid declaration; times are in seconds, warnings are sentences that are safe to print."""

    reason: str
    scope: IntentScope
    ttl: int
    lease: int
    warnings: tuple[str, ...] = ()


def check_declaration(
    repository: Repository, objects: Objects, tree: str, request: DeclareOptions
) -> CheckedDeclaration:
    """Parse a declaration.

    Args:
        repository: with a working tree; entries are relative to the current folder.
        objects: reads `tree`.
        tree: the tree of `HEAD`.
        request: the declaration as typed.

    Raises:
        UsageError: it is not valid.
    """
    reason = _reason(request.reason)
    ttl = DEFAULT_TTL if request.ttl is None else parse_seconds(request.ttl, "--ttl", LEAST_TTL, MOST_TTL)
    lease = min(DEFAULT_LEASE, ttl)
    if request.lease is not None:
        lease = parse_seconds(request.lease, "--lease", LEAST_LEASE, ttl)
    if len(request.allowed) + len(request.related) + len(request.forbidden) > MOST_ENTRIES:
        raise UsageError(
            f"an intent has at most {MOST_ENTRIES} entries",
            "use folders (--allow src/), or split the work",
        )
    allowed = _entries(repository, objects, tree, "--allow", request.allowed)
    if not allowed:
        raise UsageError(
            "an intent must allow at least one file",
            "name a file, a folder or a glob that the work will touch: --allow src/a.py",
        )
    related = _entries(repository, objects, tree, "--related", request.related)
    forbidden = _entries(repository, objects, tree, "--forbid", request.forbidden)
    scope = IntentScope(allowed, tuple(each for each in related if each not in allowed), forbidden)
    _require_possible(scope)
    return CheckedDeclaration(reason, scope, ttl, lease, (*_vague(reason), *_globs(repository, scope)))


def parse_seconds(text: str, option: str, least: int, most: int) -> int:
    """Read a time like `90s`, `15m` or `1h` as seconds.

    Raises:
        UsageError: it is malformed, or out of bounds.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{option} {printable(text, 40)} is not a time", f"write it like {option} 90s, 15m or 1h"
        )
    seconds = int(match[1]) * _SECONDS[match[2]]
    if not least <= seconds <= most:
        between = f"from {format_seconds(least)} to {format_seconds(most)}"
        raise UsageError(f"{option} {text} is out of bounds", f"use a time {between}")
    return seconds


def format_seconds(seconds: int) -> str:
    """Format a number of seconds as it would be typed."""
    for unit, size in (("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _reason(text: str) -> str:
    reason = text.strip()
    if not reason:
        raise UsageError("an intent needs a reason", 'add one: -m "retries wait longer each time"')
    if len(reason) > MOST_REASON:
        raise UsageError(f"the reason has more than {MOST_REASON} characters", "shorten it")
    if not all(map(is_printable, reason)):
        raise UsageError("the reason has unprintable characters, or more than one line", "write one line")
    return reason


def _entries(
    repository: Repository, objects: Objects, tree: str, option: str, texts: Sequence[str]
) -> tuple[RepoPath, ...]:
    found = []
    for text in texts:
        if ".." in text.split("/"):
            raise UsageError(
                f"{option} {printable(text, 200)} has .., but entries are relative to the current folder",
                'run it from the root of the repository: git -C "$(git rev-parse '
                '--show-toplevel)" patchgate intent declare …',
            )
        found.append(_entry(repository, objects, tree, text))
    return tuple(dict.fromkeys(found))


def _entry(repository: Repository, objects: Objects, tree: str, text: str) -> RepoPath:
    """Parse an entry: a folder ends in a slash, the whole repository is `*`."""
    if not repository.prefix and set(text.split("/")) <= {"", "."} and text and not text.startswith("/"):
        return RepoPath(b"*")
    path = RepoPath.from_user(text, repository.prefix)
    if text.endswith("/") or _is_folder(repository, objects, tree, path):
        return RepoPath(path.raw + b"/")
    return path


def _is_folder(repository: Repository, objects: Objects, tree: str, path: RepoPath) -> bool:
    """Whether `HEAD`, or else the disk, has a folder there; a submodule is not one."""
    entry = objects.entry(tree, path.raw)
    if entry is not None:
        return entry.mode == TREE_MODE
    place = os.path.join(os.fsencode(repository.work_tree or ""), path.raw)
    is_folder = os.path.isdir(place) and not os.path.islink(place)
    return is_folder and not os.path.lexists(os.path.join(place, b".git"))


def _require_possible(scope: IntentScope) -> None:
    """Refuse a declaration that contradicts the rules, or itself."""
    for path in (*scope.allowed, *scope.related):
        if "path-git-dir" in faults(path):
            raise UsageError(
                f"{show_path(path)} belongs to git and cannot be committed",
                "name files that can be committed",
            )
        if is_control_by_name(path):
            raise UsageError(
                f"{show_path(path)} is a control file, which every intent forbids",
                "change it in a separate commit, before you declare the intent or after you clear it",
            )
        if scope.forbids(path):
            raise UsageError(f"{show_path(path)} is both allowed and forbidden", "remove the wrong entry")


def _vague(reason: str) -> list[str]:
    return [
        f'the reason says "{phrase}", which cannot be checked; say what will change'
        for phrase in dict.fromkeys(name for _, name, _ in vague_phrases(reason))
    ]


def _globs(repository: Repository, scope: IntentScope) -> list[str]:
    """Warn about globs that match no file, and about file names that match others as a glob."""
    entries = [each for each in (*scope.allowed, *scope.related) if is_glob(each)]
    if not entries:
        return []
    listed = repository.output("ls-files", "-z", "--cached")
    files = [RepoPath.from_git(name) for name in dict.fromkeys(listed.split(b"\0")) if name]
    return [warning for each in entries if (warning := _unexpected(each, files)) is not None]


def _unexpected(entry: RepoPath, files: Sequence[RepoPath]) -> str | None:
    others = [path for path in files if path != entry and matches(entry, path)]
    if not others and entry not in files:
        return f"{show_path(entry)} matches no file that git tracks"
    if others and entry in files:
        also = f"{count(len(others), 'other file')} ({some(others, _MOST_NAMED)})"
        return f"{show_path(entry)} is the name of a file, and as a glob also matches {also}"
    return None
