"""Finish or undo what killed attempts left, and remove their temporary files.

A killed attempt is undone unless all its files had been written. Nothing written since is overwritten.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.git.quoting import printable
from patchgate.git.repository import Repository, has_pending_transactions
from patchgate.storage.atomic_write import sweep
from patchgate.storage.filesystem import FaultPoints
from patchgate.storage.temporary_folder import sweep_temporary_folders
from patchgate.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchgate.git.transaction import RecoveredTransaction
    from patchgate.storage.record import Json

FIX = "fix"
"""The key of a journal's note that names the commands of a fix instead of an attempt."""
_LEFT = {
    "interrupted": "was interrupted while it was applied",
    "landed": "was applied but not recorded",
    "undone": "was undone but not recorded",
}


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What was finished or undone, one sentence each, and warnings."""

    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def recover_pending(repository: Repository, *, keep: bool = False) -> RecoveryResult:
    """Finish or undo what earlier applies left; if there is nothing, this is cheap.

    Args:
        keep: do not touch files that were changed since; undo the rest.

    Raises:
        UndecidedError: an apply is running, or a file is neither the old nor the new one.
    """
    _sweep(repository)
    if not has_pending_transactions(repository.common_dir):
        return RecoveryResult()
    # Loaded here (40 ms): every command that writes calls this, and there is hardly ever anything to recover.
    from patchgate.apply.attempt_records import RecoveredRecord, record_landed, record_recovered
    from patchgate.git.transaction import recover
    from patchgate.ledger.ledger import Ledger

    lines: list[str] = []
    warnings: list[str | None] = []
    ledger = Ledger(repository.common_dir)
    for each in recover(repository, keep=keep):
        lines.append(_said(each))
        if FIX in each.note:
            # The index has it or has not; there is no attempt to record.
            each.finish()
            continue
        if each.outcome == "landed":
            warnings.append(record_landed(ledger, each.note))
        unrecorded = record_recovered(ledger, RecoveredRecord(_name(each.note), each.outcome))
        warnings.append(unrecorded)
        if unrecorded is None:
            each.finish()
    return RecoveryResult(tuple(lines), tuple(warning for warning in warnings if warning))


def _sweep(repository: Repository) -> None:
    """Remove temporary files of killed processes; files that cannot be removed are ignored."""
    from pathlib import Path

    sweep_temporary_folders()
    for cache in ("contracts", "policies"):
        sweep(Path(repository.common_dir, "patchgate", cache), FaultPoints())


def pending_warnings(repository: Repository) -> tuple[str, ...]:
    """Return a warning for each thing that a killed apply left; changes nothing."""
    if not has_pending_transactions(repository.common_dir):
        return ()
    from patchgate.git.transaction import pending_transactions

    return tuple(
        f"{_what(each.note)} {_LEFT[each.state]}: run git patchgate recover"
        for each in pending_transactions(repository)
        if not each.is_running
    )


def _said(each: RecoveredTransaction) -> str:
    what = "was applied, and is now recorded" if each.outcome == "landed" else "is undone"
    kept = f"; unchanged: {', '.join(path.quoted for path in each.kept)}" if each.kept else ""
    return f"{_what(each.note)} {what}{kept}"


def _what(note: Mapping[str, Json]) -> str:
    commands = note.get(FIX)
    return f"the fix of {printable(commands, 80)}" if isinstance(commands, str) else f"attempt {_name(note)}"


def _name(note: Mapping[str, Json]) -> str:
    named = note.get("attempt")
    return printable(named, 40) if isinstance(named, str) and named else "(no id)"
