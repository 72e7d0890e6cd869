"""Run several commands at the same time, each in a thread that watches it, and leave nothing running.

An orphan may be any command's, so what they leave is ended when all of them have ended. An exception in the
caller's thread (a signal) ends all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

from patchgate.process.orphans import Adoption, children, kill_orphans

Result = TypeVar("Result")
_PATIENCE = 10.0
_GLANCE = 0.2


class TaskEndedError(Exception):
    """Raised by the `check` of a task to end it, because another one has failed or a signal came."""


def run_together(
    tasks: Sequence[Callable[[Callable[[], None]], Result]], most: int
) -> tuple[list[Result], int]:
    """Run tasks in threads, at most so many at the same time; return their results in order.

    Also return how many processes could not be ended.

    Args:
        tasks: each calls `run_command` with `is_alone=False` and gets a function to call now and then, which
            raises `TaskEndedError` if it must end.
        most: the most at the same time.

    Raises:
        BaseException: what the first failed task, or a signal, raised.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(tasks)):
        waiting.put(number)
    results: dict[int, Result] = {}
    failures: list[BaseException] = []
    stopped = threading.Event()

    def check() -> None:
        if stopped.is_set():
            raise TaskEndedError

    def work() -> None:
        while not stopped.is_set():
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            try:
                results[number] = tasks[number](check)
            except TaskEndedError:
                return
            except BaseException as error:  # noqa: BLE001 (it is raised in the caller's thread)
                failures.append(error)
                stopped.set()
                return

    with Adoption():
        before = children()
        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(most, len(tasks)))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(_GLANCE)
        finally:
            stopped.set()
            for thread in threads:
                thread.join()
            survivors = kill_orphans(before, _PATIENCE)
    if failures:
        raise failures[0]
    return [results[number] for number in range(len(tasks))], survivors
