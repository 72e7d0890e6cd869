"""The steps of one piece of work: each call that changes a disk is one, and says so here.

Decides what becomes of a step where nobody plans a fault and nobody records: nothing. `faults` is the other
answer, and only who wants faults loads it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike


class Steps:
    """Steps that nobody asks about."""

    __slots__ = ()

    @property
    def records(self) -> bool:
        """Tell whether somebody wants the operations."""
        return False

    def reach(self) -> bool:
        """Come to one step; say whether a write is to be short.

        Raises:
            OSError: a planned one.
        """
        return False

    def done(
        self,
        name: str,
        path: str | PathLike[str] | None = None,
        other: str | PathLike[str] | None = None,
        *,
        inode: int | None = None,
        content: bytes = b"",
        size: int | None = None,
    ) -> None:
        """Hear of one operation that succeeded: the fields of `faults.Operation`."""
