"""Run a few short programs at once, for the fast path: no threads, no `subprocess`, whose import takes 10 ms.

As with `run_command` no process survives, but there is one bound of time for all, and no log. Whatever is
not a plain end is an error: the full check starts the program again. Only Linux has what this needs.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import resource
import select
import time

from patchgate.process.orphans import Adoption, kill_orphans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

_CHUNK = 1 << 16
_PATIENCE = 10.0
# What Python itself ignores; `subprocess` restores these too.
_RESTORED = ("SIGPIPE", "SIGXFSZ")


class QuickTask:
    """One program: its file, its arguments, its working directory, its whole environment.

    Afterwards `output` is its standard output, of at most `most_output` bytes; its errors go nowhere.
    """

    def __init__(
        self, program: str, argv: Sequence[bytes], cwd: str, env: Mapping[str, str], most_output: int
    ) -> None:
        self.program: Final = program
        self.argv: Final = list(argv)
        self.cwd: Final = cwd
        self.env: Final = dict(env)
        self.most_output: Final = most_output
        self.output = b""
        self.code = -1


class _QuickRun:
    """A started task: its process, what reports its end, and the pipe of its output."""

    def __init__(self, task: QuickTask) -> None:
        self.task = task
        self.output, says = os.pipe()
        os.set_blocking(self.output, False)
        self.pid = _spawn(task, says)
        os.close(says)
        self.ended = os.pidfd_open(self.pid)
        self.is_open = True

    def read(self) -> None:
        """Take what it wrote, up to the end of the pipe.

        Raises:
            ValueError: it is more than it may be.
        """
        while True:
            try:
                piece = os.read(self.output, _CHUNK)
            except BlockingIOError:
                return
            if not piece:
                self.is_open = False
                return
            self.task.output += piece
            if len(self.task.output) > self.task.most_output:
                raise ValueError

    def end(self) -> None:
        """End its whole group, and note how it ended."""
        # Not reaped yet, so both ids are still its own.
        for kill in (os.killpg, os.kill):
            try:  # noqa: SIM105 - contextlib takes 2 ms to import
                kill(self.pid, _signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.task.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.output)
        os.close(self.ended)


def _spawn(task: QuickTask, says: int) -> int:
    """Start a program in a session of its own, as `subprocess` does; return its process id.

    `fork` would copy the memory of this process (2 ms). Nothing else runs here, so the working directory can
    be changed for a moment.
    """
    here = os.open(".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.chdir(task.cwd)
        return os.posix_spawn(
            task.program,
            task.argv,
            task.env,
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, says, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ),
            setsid=True,
            setsigdef=[getattr(_signal, name) for name in _RESTORED],
        )
    finally:
        os.fchdir(here)
        os.close(here)


def _prepare() -> None:
    """Let no program have a core file, which would stay in its tree, or a file that is open here."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if number > 2 and os.get_inheritable(number):
                os.set_inheritable(number, False)
        except OSError:
            # The one with which the folder was read.
            continue


def run_all(tasks: Sequence[QuickTask], seconds: float) -> None:
    """Run tasks at the same time, as many as there are processors, until all have ended.

    Raises:
        ValueError: they took longer, one wrote too much, or a process could not be ended.
        OSError: one could not be started.
    """
    _reap_all()
    _prepare()
    waiting, running = list(tasks), dict[int, _QuickRun]()
    most = len(os.sched_getaffinity(0))
    deadline = time.monotonic() + seconds
    with Adoption() as adoption:
        if not adoption.is_possible:
            raise ValueError
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    started = _QuickRun(waiting.pop(0))
                    running[started.ended] = started
                _wait(running, deadline)
        finally:
            for each in running.values():
                each.end()
            # Without any child there is no orphan either: the kernel tells at once.
            if not _has_no_child() and kill_orphans(frozenset(), _PATIENCE):
                raise ValueError


def _wait(running: dict[int, _QuickRun], deadline: float) -> None:
    """Wait for output or an end; take out of `running` what has ended."""
    poll = select.poll()
    for each in running.values():
        poll.register(each.ended, select.POLLIN)
        if each.is_open:
            poll.register(each.output, select.POLLIN)
    left = deadline - time.monotonic()
    ready = {number for number, _ in poll.poll(max(0.0, left) * 1000)}
    if not ready:
        raise ValueError
    for ended, each in list(running.items()):
        if each.is_open:
            each.read()
        if ended in ready:
            del running[ended]
            each.end()


def _reap_all() -> None:
    """Reap the children that were started before: git, which ends with its input."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return


def _has_no_child() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False
