"""Intents in a repository of a test: declared as the command stores them, but at a chosen time and state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from patchgate.git.path import RepoPath
from patchgate.intents.intent import Intent, IntentScope, Moment, State
from patchgate.intents.intent_file import add_to_marker
from patchgate.intents.stored_intents import StoredIntents, current_moment
from patchgate.ledger.ledger import Ledger
from tests.world import Repo

FIRST, SECOND = "i-0000000001", "i-0000000002"


def git_dir(repo: Repo) -> str:
    """Git's folder of this worktree."""
    return repo.git_dir


def common_dir(repo: Repo) -> str:
    """Git's folder that all worktrees share."""
    return repo.common_dir


def paths(names: Sequence[str]) -> tuple[RepoPath, ...]:
    """Name paths of a repository."""
    return tuple(RepoPath(name.encode("utf-8")) for name in names)


def intent_of(
    repo: Repo,
    *allowed: str,
    name: str = FIRST,
    related: Sequence[str] = (),
    forbidden: Sequence[str] = (),
    state: State = State.ACTIVE,
    ago: float = 0.0,
    dirty: Mapping[str, str | None] | None = None,
) -> Intent:
    """Describe an intent of this worktree on its HEAD, declared so many seconds ago, for an hour."""
    now = current_moment()
    head = repo.try_git("rev-parse", "--quiet", "--verify", "HEAD").stdout.decode().strip() or None
    tree = (
        repo.ask("rev-parse", "HEAD^{tree}") if head else repo.ask("hash-object", "-t", "tree", "/dev/null")
    )
    return Intent(
        name,
        "Make the sum right",
        IntentScope(paths(allowed), paths(related), paths(forbidden)),
        str(repo.path),
        git_dir(repo),
        head,
        tree,
        Moment(now.wall - ago, now.boot_id, now.boot - ago),
        ttl=3600,
        lease=300,
        dirty={RepoPath(path.encode("utf-8")): (oid,) for path, oid in (dirty or {}).items()},
        state=state,
    )


def keep(repo: Repo, intent: Intent) -> Intent:
    """Store an intent and mark its worktree, in the order in which the command does."""
    Path(common_dir(repo), "patchgate").mkdir(exist_ok=True)
    add_to_marker(intent.git_dir, intent.id)
    StoredIntents(common_dir(repo)).write(intent)
    return intent


def declare(repo: Repo, *allowed: str, **more: Any) -> Intent:
    """Describe an intent and store it."""
    return keep(repo, intent_of(repo, *allowed, **more))


def later(intent: Intent, seconds: float) -> Intent:
    """Describe the same, declared so much earlier."""
    began = intent.declared
    return replace(intent, declared=Moment(began.wall - seconds, began.boot_id, began.boot - seconds))


def made(repo: Repo) -> list[tuple[str, tuple[str, ...]]]:
    """List what the ledger saw made: the intent, and the commits."""
    events = [each.about for each in Ledger(common_dir(repo)).events() if each.kind == "made"]
    return [(str(each["intent"]), tuple(json.loads(json.dumps(each["commits"])))) for each in events]


def seen(repo: Repo, name: str = FIRST) -> float:
    """Tell when something of an intent was last seen, by the wall."""
    intent = StoredIntents(common_dir(repo)).get(name)
    assert intent is not None
    return 0.0 if intent.seen is None else intent.seen.wall
