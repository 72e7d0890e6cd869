"""Record that a component's tests passed on what its baseline records: at a capture, or once more.

Decides where that is kept: in the ledger of this machine, and where asked as a note that can be pushed. What
such a record looks like, and what it counts for, is told in `components.verifications`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.approvals.approve import identity
from patchgate.components.verifications import (
    CAPTURED,
    KIND,
    MOST_LINE,
    VERIFIED_REF,
    Verification,
)
from patchgate.errors import UndecidedError
from patchgate.git.notes import add_line
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger


def record_captures(repository: Repository, made: Sequence[Verification]) -> tuple[str, ...]:
    """Keep in the ledger that tests passed on what was recorded now; give what to warn of.

    The baseline itself holds neither time nor numbers, so that branches merge; no verdict needs this record.
    """
    told = (_ledger(repository, each).record(CAPTURED, each.about()) for each in made)
    return tuple(each for each in told if each is not None)


def _ledger(repository: Repository, made: Verification) -> Ledger:
    return Ledger(repository.common_dir, clock=lambda: float(made.seconds))


def record_verifications(
    repository: Repository, made: Sequence[Verification], environ: Mapping[str, str], *, with_note: bool
) -> tuple[str, ...]:
    """Keep verifications in the ledger, and with `with_note` in the notes too; give what to warn of.

    Args:
        made: just now; each at its own time.
        environ: the caller's: whom git names as the author of the notes.

    Raises:
        UndecidedError: one could not be kept; those before it were, and its own note may be.
    """
    warnings: list[str] = []
    for each in made:
        line = each.to_line()
        if len(line) > MOST_LINE:
            raise UndecidedError(
                f"`{each.component}` has so many dependencies that its verification cannot be kept",
                "give its contract fewer dependencies",
            )
        if with_note:
            # First, for it can fail in more ways, and then nothing of this one is kept anywhere.
            message, who = f"Verify {each.component}", identity(environ)
            add_line(repository, VERIFIED_REF, each.baseline_oid, line, message=message, identity=who)
        ledger = _ledger(repository, each)
        told = ledger.record(KIND, each.about())
        if told is not None:
            if not _is_recorded(ledger, each):
                raise UndecidedError(told, "make room, or mend the mode of that file, then verify again")
            warnings.append(told)
    return tuple(warnings)


def _is_recorded(ledger: Ledger, made: Verification) -> bool:
    return any(event.about == made.about() for event in ledger.mentions({KIND}, made.baseline_oid))
