"""The gate of refs: a push may not delete or force a protected ref.

`protected_refs` finds which refs are protected and what git says about their history. This gate is not in the
table of the gates of a change, because it examines no change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchgate.check.case import find
from patchgate.git.path import is_ref_format
from patchgate.git.quoting import quote_path
from patchgate.policy.policy import Decision
from patchgate.report.verdict import Finding, Fixer
from patchgate.values import dataclass

GATE = "refs"
_SHORT = 12
_LONGEST = 200
_AS_BRANCH = "git fetch, then merge or rebase onto what is there, and push without force"
_AS_TAG = "give the new tag another name"
_NO_TEXT = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RefMove:
    """What a push would do to one protected ref.

    `old` and `new` are object ids (None: no such ref). `keeps` is whether the new commit contains the old
    one, `is_here` whether the old one is in this repository. `decision` is the entry of
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
        """Return whether it is a tag: tags do not move."""
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
        lost = f"it no longer contains {move.old[:_SHORT]}"
        if not move.is_here:
            lost = f"its commit {move.old[:_SHORT]} is not here, so the new one cannot contain it"
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
        return "list the protected refs in [push] protected_refs (default: the default branch)"
    return f"remove {move.decision.shown} from {move.decision.dotted.rpartition('[')[0]}"


def is_branch_name(name: str) -> bool:
    """Return whether git takes a name for a branch, and it is no option (git-check-ref-format)."""
    return (
        len(name) <= 1000
        and is_ref_format(name)
        and not name.startswith("-")
        and name not in {"@", "HEAD"}
        and _NO_TEXT.search(name) is None
    )
