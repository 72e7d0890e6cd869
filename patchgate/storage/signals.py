"""Defer SIGINT, SIGTERM and SIGHUP while files are written, and deliver them afterwards."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


_WAITING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Signals belong to the process, so the list of deferred ones does too.
_received: list[int] = []


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer SIGINT, SIGTERM and SIGHUP; one that arrives is delivered when the outermost block ends.

    A mask alone covers one thread: if another one runs (each `Child` has two), the
    system delivers there, and Python runs the handler in the main thread all the same. So the handlers are
    exchanged as well; outside the main thread only the mask is set. SIGKILL does not
    wait. A child that is started inside inherits the mask. Blocks may be nested.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)
    try:
        if threading.current_thread() is threading.main_thread():
            with _exchanged_handlers():
                yield
        else:
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _exchanged_handlers() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in _WAITING}
    if any(handler is _record for handler in handlers.values()):
        # Inside another block, which delivers.
        yield
        return
    changed = {number: it for number, it in handlers.items() if it not in {signal.SIG_IGN, None}}
    try:
        for number in changed:
            signal.signal(number, _record)
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)
        came = list(dict.fromkeys(_received))
        _received.clear()
        for waiting in came:
            # The mask still applies: it is delivered with the others when that ends.
            signal.raise_signal(waiting)


def _record(number: int, frame: FrameType | None) -> None:
    _received.append(number)


def is_signal_pending() -> bool:
    """Return whether one of those signals is pending, so that waiting work can stop early."""
    pending = signal.sigpending().intersection(_WAITING)
    # An ignored signal is pending too while it is masked (Linux).
    return bool(_received) or any(signal.getsignal(number) is not signal.SIG_IGN for number in pending)
