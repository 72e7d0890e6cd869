"""Numbered fault points: at which step something fails, and what was done up to there.

Decides how a planned fault shows itself. It does not know files: `storage.filesystem` makes the calls and
asks here before each. Nothing is read from the environment; who wants faults builds a `Faults`.
"""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from patchgate.errors import UsageError
from patchgate.storage.filesystem import FaultPoints


class Kind(StrEnum):
    """What happens in the place of a step."""

    KILL = "kill"
    SHORT = "short"
    ENOSPC = "ENOSPC"
    EIO = "EIO"
    EACCES = "EACCES"
    EINTR = "EINTR"


@dataclass(frozen=True, slots=True)
class Fault:
    """One planned fault: `kind` at `step`, counted from 1 over everything that one `Faults` sees.

    The step's call is not made: the process gets SIGKILL, or the errno is raised. `short` writes half of
    what was asked, and means nothing at a step that is no write.
    """

    step: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Operation:
    """One call that was made and succeeded, as a replay needs it.

    `name` is that of the function in `filesystem` (each single `write` of a `write_all`). `other` is the
    second path of a rename or link. `inode` says which open file was written, cut to `size` bytes or flushed;
    `content` is what one write really added to the file's end.
    """

    name: str
    path: Path | None = None
    other: Path | None = None
    inode: int | None = None
    content: bytes = b""
    size: int | None = None


class Faults(FaultPoints):
    """Counts the steps of one piece of work, fails where it is planned, records for replay.

    Without arguments it is inert. Not for use by two threads at once: their steps would have no order.

    Args:
        plan: the faults, at most one for each step.
        record: is called after each successful operation.
    """

    __slots__ = ("_plan", "_record", "steps")

    def __init__(self, plan: Iterable[Fault] = (), record: Callable[[Operation], None] | None = None) -> None:
        self._plan = {fault.step: fault.kind for fault in plan}
        self._record = record
        self.steps = 0

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Read a plan such as `3:ENOSPC,5:kill`; an empty text is an empty plan.

        Raises:
            UsageError: a step is not a number from 1, or the kind is unknown.
        """
        plan = []
        for part in filter(None, text.split(",")):
            step, _, kind = part.partition(":")
            if not re.fullmatch(r"[1-9][0-9]{0,8}", step) or kind not in list(Kind):
                raise UsageError(
                    f"{part!r} is not a planned fault", f"write STEP:KIND with one of {', '.join(Kind)}"
                )
            plan.append(Fault(int(step), Kind(kind)))
        return cls(plan)

    @property
    def records(self) -> bool:
        """Tell whether somebody wants the operations."""
        return self._record is not None

    def reach(self) -> bool:
        """Count one step and let its fault happen; say whether a write is to be short.

        Raises:
            OSError: the planned errno (as its own class: `InterruptedError`, `PermissionError`).
        """
        self.steps += 1
        kind = self._plan.get(self.steps)
        if kind is None:
            return False
        if kind is Kind.SHORT:
            return True
        if kind is Kind.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        code: int = getattr(errno, kind.value)
        raise OSError(code, os.strerror(code))

    def done(
        self,
        name: str,
        path: str | os.PathLike[str] | None = None,
        other: str | os.PathLike[str] | None = None,
        *,
        inode: int | None = None,
        content: bytes = b"",
        size: int | None = None,
    ) -> None:
        """Hand one successful operation to the recorder, if there is one."""
        if self._record is not None:
            first, second = (None if each is None else Path(each) for each in (path, other))
            self._record(Operation(name, first, second, inode, content, size))
