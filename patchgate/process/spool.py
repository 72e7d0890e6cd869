"""The output of a command, piece by piece: masked, logged up to a limit, its end kept.

A secret is masked wherever a piece of output ends, because only whole lines are masked. Once the log is full,
only the end is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

TAIL = 4096
_LINE = 1 << 16
_OVERLAP = 1 << 14
# If a border would cut a secret, the next one to the left is tried.
_STEP = 509
_TRIES = 24


class Spool:
    """Collects output piece by piece.

    Args:
        log: a descriptor that is written to, or None.
        most: how many bytes are logged; one line then says that more was dropped.
        mask: is applied to whole lines, with their ends, before they are logged or stored.
        clean: is applied to masked text before it is logged; must give the same for pieces.
    """

    def __init__(
        self,
        log: int | None,
        most: int,
        mask: Callable[[bytes], bytes] | None = None,
        clean: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._log = log
        self._most = most
        self._mask = mask
        self._clean = clean
        self._partial = bytearray()
        self._last = bytearray()
        self._is_cut = False
        self._end = bytearray()
        self._taken = 0
        self.received = 0
        self.logged = 0
        self.dropped = 0
        self.fault: str | None = None

    @property
    def tail(self) -> bytes:
        """The last 4 KiB."""
        return bytes(self._end[-TAIL:])

    @property
    def has_more_than_tail(self) -> bool:
        """Return whether there was output before the tail."""
        return self._taken > TAIL

    def add(self, data: bytes) -> None:
        """Add a piece."""
        self.received += len(data)
        if self._mask is None and self._clean is None:
            self._keep(data)
            return
        if self.dropped:
            self._pass_over(data)
            return
        before = len(self._partial)
        self._partial += data
        # Only whole lines can be masked; an unfinished one is split into pieces.
        whole = data.rfind(b"\n") + 1
        if whole:
            lines = bytes(self._partial[: before + whole])
            del self._partial[: before + whole]
            self._keep(self._masked(lines))
        if len(self._partial) >= _LINE:
            self._keep_piece()

    def close(self) -> None:
        """Add the last line, which has no line end."""
        if self._last:
            end = bytes(self._last)
            # Behind a cut, the rest of a line may be that of a secret.
            self._end += self._masked(end[end.find(b"\n") + 1 :] if self._is_cut else end)
            self._last.clear()
        elif self._partial:
            last = bytes(self._partial)
            self._partial.clear()
            self._keep(self._masked(last))

    def _pass_over(self, data: bytes) -> None:
        """Keep the end of output that nobody will see, as it is."""
        self._last += self._partial + data
        self.dropped += len(self._partial)
        self._taken += len(self._partial)
        self._partial.clear()
        if len(self._last) > 8 * _LINE:
            del self._last[:-_LINE]
            self._is_cut = True
        self._taken += len(data)
        self.dropped += len(data)

    def _keep_piece(self) -> None:
        """Store the start of an unfinished line, up to a border that cuts no secret."""
        line = bytes(self._partial)
        masked = self._masked(line)
        for border in _borders(line):
            rest = self._masked(line[border:])
            if masked.endswith(rest):
                del self._partial[:border]
                self._keep(masked[: len(masked) - len(rest)])
                return
        # Secrets are so close that each border would cut one: masked text is not masked again.
        border = next(_borders(masked), 0)
        self._partial[:] = masked[border:]
        self._keep(masked[:border])

    def _masked(self, text: bytes) -> bytes:
        return text if self._mask is None else self._mask(text)

    def _keep(self, data: bytes) -> None:
        self._taken += len(data)
        self._end += data[-TAIL:]
        if len(self._end) > 4 * TAIL:
            del self._end[:-TAIL]
        if self._clean is not None:
            data = self._clean(data)
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


def _borders(line: bytes) -> Iterator[int]:
    """Yield positions between two characters (of UTF-8) where a piece of a line may end, last first."""
    for number in range(_TRIES):
        border = len(line) - _OVERLAP - number * _STEP
        if border <= 0:
            return
        for _ in range(3):
            border -= 0x80 <= line[border] < 0xC0
        yield border
