"""What a person does about attempts: take old evidence away, let the retries of a chain begin again.

Decides which folders of evidence go (never the ledger's events, never what an attempt in progress uses, never
what only has the right name, never what lies outside), and to which chain a reset belongs. Who the person is
and whether they meant it, the surface asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchgate.apply.attempts import (
    AttemptRecord,
    ResetRecord,
    age,
    chain_since_reset,
    past,
    pick,
    record_reset,
    records,
)
from patchgate.apply.evidence_folders import Folder, folders, remove
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.report.wording import count

KEPT = 100
"""How many attempts keep their evidence where nothing else is said."""

_AGE = re.compile(r"([0-9]{1,6})([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


@dataclass(frozen=True, slots=True)
class Pruned:
    """What prune did, or would do: whose evidence goes, how many keep it, and why some of it stays."""

    removed: tuple[str, ...]
    kept: int
    warnings: tuple[str, ...]


def seconds_of(text: str) -> int:
    """Read an age, like `30d`: a number and s, m, h, d or w.

    Raises:
        UsageError: it is none.
    """
    match = _AGE.fullmatch(text)
    if match is None:
        raise UsageError(f"{printable(text, 40)} is no age", "write a number and s, m, h, d or w, like 30d")
    return int(match[1]) * _SECONDS[match[2]]


def prune(
    repository: Repository,
    *,
    keep: int | None = None,
    older_than: int | None = None,
    now: float,
    dry_run: bool = False,
) -> Pruned:
    """Remove the evidence of old attempts.

    Args:
        repository: where.
        keep: the evidence of so many attempts stays, the newest; `KEPT` where neither is given.
        older_than: only what is older than so many seconds goes.
        now: seconds since the epoch.
        dry_run: only say what would go.

    Raises:
        UndecidedError: the folder of all evidence cannot be read.
    """
    ours = _ours(repository)
    if older_than is not None:
        old = [each for each in ours if age(each.at, now) > older_than]
    else:
        old = ours[KEPT if keep is None else keep :]
    going = [each for each in old if not each.is_held]
    removed: list[str] = []
    warnings: list[str] = []
    for each in reversed(going):
        why = None if dry_run else remove(each)
        if why is None:
            removed.append(each.id)
        else:
            warnings.append(f"the evidence of {each.id} stays: {printable(why)}")
    return Pruned(tuple(removed), len(ours) - len(removed), tuple(warnings))


def _ours(repository: Repository) -> list[Folder]:
    """List the folders that a marker in them, or the ledger, names as an attempt's, the newest first."""
    recorded = {each.attempt: each for each in records(Ledger(repository.common_dir))}
    try:
        lying = folders(repository.common_dir)
    except OSError as error:
        raise UndecidedError(
            f"the evidence of the attempts cannot be read: {error.strerror or error}",
            "mend the mode of the folder patchgate/attempts in the git directory",
        ) from error
    ours: list[Folder] = []
    for each in lying:
        record = recorded.get(each.id)
        if each.says is not None:
            ours.append(each)
        elif record is not None and record.dir == each.path:
            ours.append(replace(each, at=record.at))
    # Of the same second, the ledger knows the order; what it does not know yet is the newest.
    order = {name: number for number, name in enumerate(recorded)}
    return sorted(ours, key=lambda each: (each.at, order.get(each.id, len(order))), reverse=True)


def chain_to_reset(repository: Repository, text: str | None) -> str:
    """Find the chain whose retries are to begin again: of an attempt, or of the one that was refused last.

    Raises:
        UsageError: there is no such attempt, or nothing in its chain was refused since.
    """
    ledger = Ledger(repository.common_dir)
    known = records(ledger)
    if text is not None:
        chosen = pick(known, text)
    else:
        chosen = next((each for each in reversed(known) if each.counts), None)
    if chosen is None:
        what = "no attempt was refused" if text is None else f"there is no attempt {printable(text, 60)}"
        raise UsageError(what, "git patchgate attempts list shows them")
    if not any(each.counts for each in chain_since_reset(ledger, chosen.chain)):
        raise UsageError(
            f"nothing was refused in the chain {chosen.chain} since it began", "go on with --retry-of"
        )
    return chosen.chain


def refused_in(repository: Repository, chain: str) -> Sequence[AttemptRecord]:
    """List the refusals in a chain that a reset would set aside, oldest first."""
    return [each for each in chain_since_reset(Ledger(repository.common_dir), chain) if each.counts]


def reset(repository: Repository, chain: str, reason: str, by: str) -> str | None:
    """Let the retries of a chain begin again.

    None, or one sentence to warn with.

    Raises:
        UndecidedError: the ledger cannot be written, so that nothing would begin again.
    """
    ledger = Ledger(repository.common_dir)
    before = _resets(ledger, chain)
    warning = record_reset(ledger, ResetRecord(chain, reason, by))
    if _resets(ledger, chain) == before:
        raise UndecidedError(f"nothing was reset: {warning}", "mend that, then reset again")
    return warning


def _resets(ledger: Ledger, chain: str) -> int:
    return sum(isinstance(each, ResetRecord) and each.chain == chain for each in past(ledger, chain))


def said(pruned: Pruned, *, dry_run: bool) -> str:
    """Say in a line what prune did."""
    what = "would remove" if dry_run else "removed"
    return f"{what} the evidence of {count(len(pruned.removed), 'attempt')}; {pruned.kept} kept"
