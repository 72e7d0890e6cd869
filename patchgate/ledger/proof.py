"""What the ledger proves: order and content by its chain, its end by the head file beside it.

Decides what is said of a damaged line, of events that are missing at the end, and of what cannot be proven.
Whoever can write `.git` can write both files anew, and no sentence here says otherwise.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from patchgate.errors import UndecidedError
from patchgate.git.repository import Repository
from patchgate.ledger.event import Event
from patchgate.ledger.ledger import Ledger
from patchgate.report.wording import count, safe
from patchgate.storage.chain import Problem
from patchgate.storage.head import AT_END, BEFORE_END, CONTRADICTED, Comparison, path_of

VERIFIED_SCHEMA = "patchgate.ledger/1"

_HEAD = "events.jsonl.head"
_MOST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check found: the events of the chain, the hash of the last, the bad lines, the head file."""

    events: int
    last: str | None
    problems: Sequence[Problem]
    path: Path
    exists: bool
    comparison: Comparison

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing speaks against the ledger: no line, and not the head file."""
        return not self.problems and self.comparison.state != CONTRADICTED

    def as_json(self) -> str:
        """Write it as one line of JSON, without the line's end."""
        problems = [{"line": each.line, "message": each.message, "torn": each.torn} for each in self.problems]
        head = self.comparison.head
        value = {
            "schema": VERIFIED_SCHEMA,
            "whole": self.is_whole,
            "events": self.events,
            "last": self.last,
            "problems": problems,
            "head": {
                "state": self.comparison.state,
                "hash": head and head.hash,
                "behind": self.comparison.behind,
            },
        }
        return json.dumps(value)

    def as_text(self) -> list[str]:
        """Write it for people: what is proven and what is not, or the first fault and the next step."""
        if self.is_whole:
            last = f"; the last is {self.last}" if self.last else ""
            return [
                f"the chain is whole, which proves order and content: {count(self.events, 'event')}{last}",
                _what_the_head_proves(self.comparison),
            ]
        more = len(self.problems) - 1
        is_damaged = any(not each.torn for each in self.problems)
        lines = [
            describe(each) + (f" (and {count(more, 'more bad line')})" if more else "")
            for each in self.problems[:1]
        ]
        head = self.comparison.head
        if self.comparison.state == CONTRADICTED:
            # What stands at the head's place is damaged: the line says so already.
            if not is_damaged or (head is not None and self.comparison.size < head.size):
                lines.append(describe_contradiction(self.comparison))
        elif all(each.torn for each in self.problems):
            return [*lines, "help: nothing is to be done; the next event sets it aside"]
        return [*lines, *self._next_step(is_damaged)]

    def _next_step(self, is_damaged: bool) -> list[str]:
        """Name the commands that keep what is wrong, and let the next event start anew."""
        beside = Path(path_of(str(self.path)))
        moved = [self.path] if is_damaged else []
        if beside.exists():
            moved.append(beside)
        names = [" ".join(shlex.quote(str(path)) for path in (each, _free_name(each))) for each in moved]
        what = (
            "keep it for whoever looks into it; the next event then starts a new ledger"
            if is_damaged
            else f"restore the ledger, or, if you changed it yourself, put {beside.name} away;"
            " the next event then writes a new one"
        )
        return [f"help: {what}", safe("    " + " && ".join(f"mv {each}" for each in names), 8 * _MOST_PATH)]


def verified(repository: Repository) -> Verified:
    """Check every line of the ledger, the chain, and whether events are missing at the end.

    Raises:
        UndecidedError: the ledger cannot be read, or a writer kept the lock so that nothing is certain.
    """
    ledger = Ledger(repository.common_dir)
    events, last = 0, None
    try:
        problems = ledger.verify()
        for found in ledger.lines():
            if isinstance(found, Event):
                events, last = events + 1, found.hash
        comparison = ledger.compare_head()
        return Verified(events, last, problems, ledger.path, ledger.path.exists(), comparison)
    except OSError as error:
        raise unreadable(ledger, error) from error


def describe(problem: Problem) -> str:
    """Say in half a sentence what is wrong with a line of the ledger."""
    return f"line {problem.line} of the ledger {problem.message}"


def describe_contradiction(comparison: Comparison) -> str:
    """Say how the ledger contradicts its head file: it is missing, was cut, or was written anew."""
    head = comparison.head
    named = f"{_HEAD} names an event that ends at byte {head.size if head else 0}"
    if comparison.size == 0:
        return f"the ledger is missing or empty, and {named}: events were lost"
    if head is not None and comparison.size < head.size:
        return f"the ledger was cut: it has {comparison.size} bytes, and {named}"
    return f"the ledger was cut or written anew: {named}, and the ledger does not have it there"


def _what_the_head_proves(comparison: Comparison) -> str:
    """Say in a sentence whether a cut at the end of the ledger would have been seen."""
    if comparison.state == AT_END:
        return f"{_HEAD} names the same last event: none was cut off, unless somebody changed both files"
    if comparison.state == BEFORE_END:
        behind = count(comparison.behind, "event")
        return (
            f"{_HEAD} names an earlier event, {behind} before the end: a cut after that one cannot be seen;"
            " the next event brings it up to date"
        )
    return (
        f"there is no {_HEAD}, and from the ledger alone a cut at its end cannot be seen;"
        " the next event writes one"
    )


def require_all(problems: Sequence[Problem], comparison: Comparison) -> None:
    """Require that nothing is missing: a torn last line may, because no event was recorded with it.

    Raises:
        UndecidedError: a line is damaged, or the head file names an event that is not there.
    """
    faults = [describe(each) for each in problems if not each.torn]
    if comparison.state == CONTRADICTED:
        faults.append(describe_contradiction(comparison))
    if faults:
        raise UndecidedError(
            f"{faults[0]}, so what was shown is not proven to be all", "git patchgate log --verify says more"
        )


def _free_name(path: Path) -> Path:
    """Find a name for a damaged ledger under which none is kept yet."""
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return kept


def unreadable(ledger: Ledger, error: OSError) -> UndecidedError:
    """Say that the ledger, or its head file, cannot be read."""
    return UndecidedError(
        f"the ledger {str(ledger.path)!r} cannot be read: {error.strerror or error}",
        f"it and {_HEAD} are plain files that belong to whoever commits here; correct their name and mode",
    )
