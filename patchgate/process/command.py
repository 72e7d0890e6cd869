"""Run a command of the user's to its end, log its output, and leave no process of it running.

It is trusted (the policy names it), so it gets the environment that the caller gives and as much memory as it
wants. But it may hang, flood, fork and hide. Failure, also to start, is a value; others decide what it means.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from patchgate.errors import UndecidedError
from patchgate.process.orphans import Adoption, ProcessIdentity, children, kill_orphans, reap_orphans
from patchgate.process.spool import TAIL, Spool
from patchgate.values import dataclass, replace

_CHUNK = 1 << 16
# A process that cannot be killed (another user's) must not block us for ever.
_PATIENCE = 10.0
# The most that a pipe contains, unless /proc/sys/fs/pipe-max-size was raised.
_PIPE = 1 << 20
# How often to poll if the system cannot report an end.
_GLANCE = 0.05


class StartFault(StrEnum):
    """Why a command was not started."""

    NOT_FOUND = "not-found"
    NOT_EXECUTABLE = "not-executable"
    NOT_A_PROGRAM = "not-a-program"
    TOO_LONG = "too-long"
    REFUSED = "refused"


_FAULTS = {
    errno.ENOENT: StartFault.NOT_FOUND,
    errno.ENOTDIR: StartFault.NOT_FOUND,
    errno.EACCES: StartFault.NOT_EXECUTABLE,
    errno.EPERM: StartFault.NOT_EXECUTABLE,
    errno.EISDIR: StartFault.NOT_EXECUTABLE,
    errno.ENOEXEC: StartFault.NOT_A_PROGRAM,
    errno.E2BIG: StartFault.TOO_LONG,
}


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended.

    `code` is its exit code (negative: the signal), None if it was not started; then `fault` says why, and
    `reason` in the system's words. `tail` is the end of its output (4 KiB), `logged` and `dropped` count the
    bytes of its output, as it is logged, that went into the log and that did not; `has_more_than_tail` is
    whether the tail is only the end of it. `log_fault` says why the log could not be written. `survivors`
    counts the processes that could not be ended. `has_stalled`: it timed out because it wrote nothing for too
    long. If its standard output went into a separate file, all of these are about its errors: `output_fault`
    says why that file could not be written, and `has_flooded` that the command was ended because it wrote
    more than that file may contain.
    """

    code: int | None
    timed_out: bool = False
    fault: StartFault | None = None
    reason: str = ""
    tail: bytes = b""
    has_more_than_tail: bool = False
    seconds: float = 0.0
    logged: int = 0
    dropped: int = 0
    log_fault: str | None = None
    survivors: int = 0
    has_flooded: bool = False
    output_fault: str | None = None
    has_stalled: bool = False

    def followed_by(self, other: ProcessResult) -> ProcessResult:
        """Return how a command ended that was started twice, for one half of its work each time.

        The worse of the two: a fault, the time limit, a signal, the higher exit code.
        """
        worse = max(self, other, key=_badness)
        return replace(
            worse,
            tail=(self.tail + other.tail)[-TAIL:],
            has_more_than_tail=self.has_more_than_tail
            or other.has_more_than_tail
            or len(self.tail) + len(other.tail) > TAIL,
            seconds=self.seconds + other.seconds,
            logged=self.logged + other.logged,
            dropped=self.dropped + other.dropped,
            log_fault=self.log_fault or other.log_fault,
            survivors=self.survivors + other.survivors,
        )


def _badness(ended: ProcessResult) -> tuple[bool, bool, bool, int]:
    code = ended.code or 0
    return ended.fault is not None, ended.timed_out, code < 0, abs(code)


def run_command(
    argv: Sequence[bytes | str],
    *,
    cwd: str,
    env: Mapping[str, str],
    seconds: float,
    executable: str | None = None,
    log: int | None = None,
    max_log: int = 8 << 20,
    output: int | None = None,
    max_output: int = 128 << 20,
    grace: float = 2.0,
    mask: Callable[[bytes], bytes] | None = None,
    clean: Callable[[bytes], bytes] | None = None,
    tick: Callable[[float], None] | None = None,
    stdin: bytes | None = None,
    stall: float | None = None,
    is_alone: bool = True,
) -> ProcessResult:
    """Run a command to its end.

    The command ends when the process that was started ends; what it leaves running is killed. An exception
    meanwhile (from a signal, from `tick`) ends the command too, and is raised again. Start no other child
    meanwhile: it would count as the command's, unless `run_together` started both.

    Args:
        argv: the program and its arguments; no shell.
        cwd: its working directory.
        env: its whole environment.
        seconds: after this time it gets SIGTERM; `grace` seconds later it is killed.
        executable: the program's file, where `argv` has only its name; else PATH of `env` is searched.
        log: a descriptor that gets its output and errors as they come, at most `max_log` bytes.
        output: a descriptor that gets its standard output instead, as it is, without a mask.
        max_output: how many bytes of it at most; a command that writes more is ended.
        mask: is applied to whole lines (or 64 KiB of a longer one) before they are logged or stored.
        clean: is then applied to the log, but not to the tail.
        tick: called about once a second with the seconds since the start.
        stdin: what it can read; it need not read all of it. None: nothing.
        stall: after so many seconds without output it is ended, as after `seconds`; None: never.
        is_alone: false within `run_together`, which ends what all of its commands leave running.

    Raises:
        UndecidedError: the working directory is not there.
    """
    spool = Spool(log=log, most=max_log, mask=mask, clean=clean)
    own = None if output is None else Spool(output, max_output)
    with Adoption() if is_alone else contextlib.nullcontext():
        run = _ProcessRun(before=children() if is_alone else None, spool=spool, own=own, stdin=stdin)
        try:
            fault = run.start(argv, cwd, env, executable)
            if fault is None:
                run.watch(seconds, grace, tick, stall)
        finally:
            # A second signal may raise inside; the end is then repeated, and the signal passed on.
            try:
                run.end()
            finally:
                run.end()
    spool.close()
    return fault or run.result()


@contextlib.contextmanager
def _no_cores() -> Iterator[None]:
    """Disable core files of children started in this block: they would stay in the scratch tree."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


class _ProcessRun:
    """One run of a command, from its start to the end of all its processes."""

    def __init__(
        self,
        *,
        before: frozenset[ProcessIdentity] | None,
        spool: Spool,
        own: Spool | None,
        stdin: bytes | None,
    ) -> None:
        self._before = before
        self._began = time.monotonic()
        self._spool = spool
        self._own = own
        self._input = None if stdin is None else memoryview(stdin)
        self._pipes: dict[int, Spool] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._exit: int | None = None
        self._group_lives = False
        self._is_over = False
        self.timed_out = False
        self.has_stalled = False
        self.survivors = 0

    @property
    def code(self) -> int | None:
        """The exit code; that of a kill if the process could not be reaped."""
        assert self._child is not None
        return -signal.SIGKILL if self._child.returncode is None else self._child.returncode

    def start(
        self, argv: Sequence[bytes | str], cwd: str, env: Mapping[str, str], executable: str | None
    ) -> ProcessResult | None:
        """Start it; return why that failed."""
        try:
            with _no_cores():
                self._child = child = subprocess.Popen(
                    argv,
                    executable=executable,
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL if self._input is None else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if self._own is None else subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                )
        except OSError as error:
            if not os.path.isdir(cwd):
                raise UndecidedError(
                    "the working directory of a command does not exist", "try again"
                ) from error
            fault = _FAULTS.get(error.errno or 0, StartFault.REFUSED)
            return ProcessResult(
                None, fault=fault, reason=os.strerror(error.errno) if error.errno else str(error)
            )
        self._group_lives = True
        with contextlib.suppress(OSError, AttributeError):
            self._exit = os.pidfd_open(child.pid)
        assert child.stdout is not None
        self._pipes[child.stdout.fileno()] = self._own or self._spool
        if child.stderr is not None:
            self._pipes[child.stderr.fileno()] = self._spool
        for number in self._pipes:
            os.set_blocking(number, False)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
        return None

    def watch(
        self, seconds: float, grace: float, tick: Callable[[float], None] | None, stall: float | None
    ) -> None:
        """Read its output until it ends, or until its grace period after SIGTERM is over.

        One that writes too much gets no grace period.
        """
        assert self._child is not None
        over = self._began + seconds
        deadline = over if stall is None else min(over, self._began + stall)
        next_tick = self._began + 1
        while True:
            now = time.monotonic()
            if now >= deadline:
                if self.timed_out:
                    return
                self.timed_out = True
                self.has_stalled = now < over
                deadline = now + grace
                self._signal_group(signal.SIGTERM)
            if now >= next_tick:
                next_tick = now + 1
                if self._before is not None:
                    reap_orphans(self._before, self._child.pid)
                if tick is not None:
                    tick(now - self._began)
            ready = self._wait(min(deadline, next_tick) - time.monotonic())
            received = self._received
            for number in [each for each in ready if each in self._pipes]:
                if _drain(number, self._pipes[number], _CHUNK):
                    del self._pipes[number]
            if stall is not None and not self.timed_out and self._received > received:
                deadline = min(over, time.monotonic() + stall)
            self._feed(ready)
            if self._has_ended(ready) or (self._own is not None and self._own.dropped):
                return

    @property
    def _received(self) -> int:
        return self._spool.received + (0 if self._own is None else self._own.received)

    def _feed(self, ready: Sequence[int]) -> None:
        """Write to its standard input what fits; close it after the last byte, or if nobody reads it."""
        assert self._child is not None
        pipe = self._child.stdin
        if pipe is None or pipe.closed or self._input is None or pipe.fileno() not in ready:
            return
        try:
            self._input = self._input[os.write(pipe.fileno(), self._input[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = self._input[:0]
        if not self._input:
            pipe.close()

    def _wait(self, seconds: float) -> list[int]:
        """Wait for output, for an end (if the system reports it), or for the time limit."""
        watched = [*self._pipes, *([] if self._exit is None else [self._exit])]
        seconds = max(0.0, seconds if self._exit is not None else min(seconds, _GLANCE))
        poll = select.poll()
        for number in watched:
            poll.register(number, select.POLLIN)
        assert self._child is not None
        if self._child.stdin is not None and not self._child.stdin.closed:
            poll.register(self._child.stdin.fileno(), select.POLLOUT)
        return [number for number, _ in poll.poll(seconds * 1000)]

    def _has_ended(self, ready: Sequence[int]) -> bool:
        if self._exit is not None:
            return self._exit in ready
        assert self._child is not None
        return self._child.poll() is not None

    def _signal_group(self, number: signal.Signals) -> None:
        assert self._child is not None
        # Not yet reaped if the system reports ends, so the group id is still its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)

    def result(self) -> ProcessResult:
        """Return how it ended; its time is that up to now."""
        spool, own = self._spool, self._own
        return ProcessResult(
            self.code,
            timed_out=self.timed_out,
            tail=spool.tail,
            has_more_than_tail=spool.has_more_than_tail,
            seconds=time.monotonic() - self._began,
            logged=spool.logged,
            dropped=spool.dropped,
            log_fault=spool.fault,
            survivors=self.survivors,
            has_flooded=own is not None and own.dropped > 0 and own.fault is None,
            output_fault=own.fault if own is not None else None,
            has_stalled=self.has_stalled,
        )

    def end(self) -> None:
        """End everything that was started, and read the rest of its output; calling it twice is safe."""
        if self._is_over:
            return
        if self._group_lives:
            self._signal_group(signal.SIGKILL)
            # From here on the group id may be reused.
            self._group_lives = False
        unreaped = None
        if (child := self._child) is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_PATIENCE)
            unreaped = child.pid if child.returncode is None else None
        self.survivors = int(unreaped is not None)
        if self._before is not None:
            self.survivors += kill_orphans(self._before, _PATIENCE, spared=unreaped)
        for number, spool in self._pipes.items():
            _drain(number, spool, _PIPE)
        self._pipes.clear()
        for pipe in (child.stdin, child.stdout, child.stderr) if child is not None else ():
            if pipe is not None:
                pipe.close()
        if self._exit is not None:
            number, self._exit = self._exit, None
            os.close(number)
        self._is_over = True


def _drain(output: int, spool: Spool, most: int) -> bool:
    """Read what is in a pipe, about `most` bytes; return whether its end was reached."""
    while most > 0:
        try:
            data = os.read(output, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            return True
        spool.add(data)
        most -= len(data)
    return False
