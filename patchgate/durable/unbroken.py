"""Work that SIGINT, SIGTERM and SIGHUP do not break: they wait until it is done, or undone.

Decides which signals wait, and for how long: the length of a `with` block. It does not decide what the
program does when they come through afterwards. SIGKILL does not wait; that is what the journal is for.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WAITING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@contextmanager
def unbroken() -> Iterator[None]:
    """Hold those signals back in this thread; one that came meanwhile is delivered when the block ends.

    A child that is started inside inherits the mask. Blocks may be nested.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_asked_to_end() -> bool:
    """Tell whether one of those signals waits, so that work which only waits for others can stop early."""
    return not _WAITING.isdisjoint(signal.sigpending())
