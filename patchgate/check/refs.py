"""The gate of refs: what a push may not do to a ref that is protected.

Decides from what was found out about one ref; which refs are protected and what git says of their history is
found out elsewhere. Not in the order of the gates of a change, for it looks at no change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from patchgate.check.case import find
from patchgate.git.quoting import quote_path
from patchgate.policy.policy import Decision
from patchgate.report.verdict import Finding, Fixer

GATE = "refs"
_SHORT = 12
_LONGEST = 200
_AS_BRANCH = "git fetch, then merge or rebase onto what is there, and push without force"
_AS_TAG = "give the new one a name of its own"


@dataclass(frozen=True, slots=True)
class RefMove:
    """What would become of one protected ref.

    `old` and `new` are object ids (None: there is none), `keeps` tells whether what the ref has is a part of
    what it gets; `is_here` whether what it has is in this repository. `decision` is the entry of
    `protected_refs` that names it, None for a default branch.
    """

    ref: str
    old: str | None
    new: str | None
    keeps: bool = True
    is_here: bool = True
    decision: Decision | None = None

    @property
    def is_tag(self) -> bool:
        """Tell whether it is a tag, which stays where it is."""
        return self.ref.startswith("refs/tags/")


def examine(move: RefMove) -> Iterator[Finding]:
    """Find what a push may not do to a protected ref."""
    if move.old is None:
        return
    name = show_ref(move.ref)
    details = {"ref": name, "old": move.old, "new": move.new}
    if move.new is None:
        yield find(
            "ref-deleted",
            f"{name} is protected and would be deleted",
            None,
            f"leave the deletion out of the push, or {_unprotect(move)}",
            decision=move.decision,
            who=Fixer.PERSON,
            details=details,
        )
    elif not move.keeps:
        lost = f"{move.old[:_SHORT]} would not be a part of it any more"
        if not move.is_here:
            lost = f"what it has ({move.old[:_SHORT]}) is not here, so it cannot be a part of what it gets"
        yield find(
            "ref-forced",
            f"{name} is protected and would be forced to {move.new[:_SHORT]}: {lost}",
            None,
            _AS_TAG if move.is_tag else _AS_BRANCH,
            decision=move.decision,
            details=details,
        )


def show_ref(ref: str) -> str:
    """Write the name of a ref as git quotes paths, cut where it is very long."""
    raw = ref.encode("utf-8", "surrogateescape")
    return quote_path(raw[:_LONGEST]) + ("…" if len(raw) > _LONGEST else "")


def _unprotect(move: RefMove) -> str:
    if move.decision is None:
        return "name the protected refs in [push] protected_refs; without it the default branch is one"
    return f"take {move.decision.shown} out of {move.decision.dotted.rpartition('[')[0]}"
