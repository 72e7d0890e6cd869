"""The output of a command: logged as it comes, up to a limit, its end kept.

Decides how much is kept and where a line is taken to end. A log that cannot be written does not end the
command: the fault is kept, and whoever asked for the log tells of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

TAIL = 4096
_LINE = 1 << 16


class Spool:
    """Takes in output piece by piece.

    Args:
        log: a descriptor that is written to, or None.
        most: how many bytes of output are logged; one line then says that more was dropped.
        mask: what is done to whole lines, their ends included, before they are logged or kept.
    """

    def __init__(self, log: int | None, most: int, mask: Callable[[bytes], bytes] | None = None) -> None:
        self._log = log
        self._most = most
        self._mask = mask
        self._partial = bytearray()
        self._end = bytearray()
        self.logged = 0
        self.dropped = 0
        self.fault: str | None = None

    @property
    def tail(self) -> bytes:
        """The last 4 KiB."""
        return bytes(self._end[-TAIL:])

    def add(self, data: bytes) -> None:
        """Take in a piece."""
        if self._mask is None:
            self._keep(data)
            return
        self._partial += data
        # Only whole lines can be masked; one that does not end is taken in pieces.
        whole = self._partial.rfind(b"\n") + 1
        if whole == 0 and len(self._partial) >= _LINE:
            whole = len(self._partial)
        if whole:
            lines = bytes(self._partial[:whole])
            del self._partial[:whole]
            self._keep(self._mask(lines))

    def close(self) -> None:
        """Take in the last line, which has no end."""
        if self._mask is not None and self._partial:
            last = bytes(self._partial)
            self._partial.clear()
            self._keep(self._mask(last))

    def _keep(self, data: bytes) -> None:
        self._end += data[-TAIL:]
        if len(self._end) > 4 * TAIL:
            del self._end[:-TAIL]
        room = 0 if self._log is None else self._most - self.logged
        taken = data[:room]
        self._write(taken)
        if self.fault is not None:
            taken = b""
        self.logged += len(taken)
        if len(taken) < len(data):
            if self.dropped == 0 and self.fault is None:
                self._write(b"\npatchgate: the log ends here, at its limit of %d bytes\n" % self._most)
            self.dropped += len(data) - len(taken)

    def _write(self, data: bytes) -> None:
        if self._log is None or self.fault is not None:
            return
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._log, rest) :]
        except OSError as error:
            self.fault = error.strerror or str(error)
