"""Signals wait for work that they shall not break, also where another thread could take them."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from patchgate.storage.signals import defer_signals, is_signal_pending

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class Came(BaseException):
    """A signal came through."""


@pytest.fixture
def threaded() -> Iterator[None]:
    """Let a thread live that does not hold signals back, as the readers of children do."""
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.fixture(params=NUMBERS)
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    def come(number: int, frame: FrameType | None) -> None:
        raise Came

    before = signal.signal(request.param, come)
    yield request.param
    signal.signal(request.param, before)


def settle() -> None:
    """Give another thread and Python's own check of signals time to act."""
    for _ in range(200):
        threading.Event().wait(0.0001)


def test_a_signal_waits_for_the_end_of_the_outermost_block(threaded: None, number: signal.Signals) -> None:
    done: list[str] = []

    def work() -> None:
        with defer_signals():
            with defer_signals():
                assert not is_signal_pending()
                os.kill(os.getpid(), number)
                settle()
                done.append("inner")
            settle()
            assert is_signal_pending()
            done.append("outer")
        settle()
        done.append("after")

    with pytest.raises(Came):
        work()
    assert done == ["inner", "outer"]
    assert not is_signal_pending()


def test_without_a_signal_nothing_changes(number: signal.Signals) -> None:
    handler = signal.getsignal(number)
    with defer_signals():
        pass
    assert signal.getsignal(number) is handler
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def test_a_signal_that_was_ignored_stays_ignored(threaded: None, number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    with defer_signals():
        os.kill(os.getpid(), number)
        settle()
        assert not is_signal_pending()
    settle()
    assert signal.getsignal(number) is signal.SIG_IGN


def test_in_another_thread_it_does_no_harm() -> None:
    done: list[bool] = []

    def work() -> None:
        with defer_signals():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]
