"""Work that SIGINT, SIGTERM and SIGHUP do not break: they wait until it is done, or undone.

Decides which signals wait, and for how long: the length of a `with` block. It does not decide what the
program does when they come through afterwards. SIGKILL does not wait; that is what the journal is for.

A mask alone holds back one thread: where another one lives (each child that is spoken with has two), the
system delivers there, and Python runs the handler in the main thread all the same. So the handlers are
exchanged as well.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_WAITING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Signals belong to the process, and so does what is known of those that wait.
_asked: list[int] = []


@contextmanager
def unbroken() -> Iterator[None]:
    """Hold those signals back; one that came meanwhile is delivered when the outermost block ends.

    In another thread than the main one, to which Python gives signals, it holds back nothing but the system.
    A child that is started inside inherits the mask. Blocks may be nested.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)
    try:
        if threading.current_thread() is threading.main_thread():
            with _deferred():
                yield
        else:
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _deferred() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in _WAITING}
    if any(handler is _wait for handler in handlers.values()):
        # Within another block, which delivers.
        yield
        return
    changed = {number: it for number, it in handlers.items() if it not in {signal.SIG_IGN, None}}
    try:
        for number in changed:
            signal.signal(number, _wait)
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)
        came = list(dict.fromkeys(_asked))
        _asked.clear()
        for waiting in came:
            # The mask still holds: it comes through with the others when that is gone.
            signal.raise_signal(waiting)


def _wait(number: int, frame: FrameType | None) -> None:
    _asked.append(number)


def is_asked_to_end() -> bool:
    """Tell whether one of those signals waits, so that work which only waits for others can stop early."""
    pending = signal.sigpending().intersection(_WAITING)
    # One that is ignored is pending too while it is held back (Linux).
    return bool(_asked) or any(signal.getsignal(number) is not signal.SIG_IGN for number in pending)
