"""Run one child to its end, or talk to one while it runs; end its process group and its orphans.

A child gets an environment from an allow-list, and limits. If it cannot start, or exceeds its time or output,
that is an `UndecidedError`: it says nothing about the change that is judged.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from patchgate.errors import UndecidedError
from patchgate.process.child_input import open_input
from patchgate.values import dataclass

_CHUNK = 1 << 16
_STDERR_KEPT = 1 << 16
_WIDE_PIPE = 1 << 20
_PATIENCE = 5.0
DEFAULT_SECONDS = 300.0
DEFAULT_OUTPUT = 256 << 20
DEFAULT_MEMORY = 1 << 30


@dataclass(frozen=True, slots=True)
class Completed:
    """A child that ended: exit code (negative: the signal), output, the first 64 KiB of its stderr."""

    code: int
    out: bytes
    err: bytes


class TimeLimitError(UndecidedError):
    """A child exceeded its time limit."""


class OutputLimitError(UndecidedError):
    """A child wrote too much."""


def run(
    argv: Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str],
    stdin: bytes = b"",
    seconds: float = DEFAULT_SECONDS,
    max_output: int = DEFAULT_OUTPUT,
    memory: int = DEFAULT_MEMORY,
) -> Completed:
    """Run a command to its end.

    Args:
        argv: the program and its arguments; no shell.
        cwd: its working directory.
        env: its whole environment.
        stdin: what it reads.
        seconds: it is killed after this time.
        max_output: it is killed after this many bytes on stdout.
        memory: how many bytes it may allocate (on Linux).

    Raises:
        UndecidedError: it could not start, took too long (`TimeLimitError`), or wrote too much
            (`OutputLimitError`).
    """
    deadline = time.monotonic() + seconds
    child = _start(argv, cwd, env, subprocess.PIPE if stdin else subprocess.DEVNULL, memory)
    try:
        out, err = _converse(child, stdin, deadline, max_output)
        # It may have closed its output and still run.
        return Completed(child.wait(max(0.0, deadline - time.monotonic())), out, err)
    except subprocess.TimeoutExpired as error:
        raise TimeLimitError(f"{argv[0]} took longer than {seconds:g} s and was ended") from error
    except _TooMuchError as error:
        raise OutputLimitError(f"{argv[0]} wrote more than {max_output >> 20} MiB and was ended") from error
    finally:
        _end(child)


def _start(
    argv: Sequence[str], cwd: str | None, env: Mapping[str, str], stdin: int, memory: int
) -> subprocess.Popen[bytes]:
    try:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise UndecidedError(f"{argv[0]} was not found", f"install {argv[0]}, or put it on PATH") from error
    except OSError as error:
        raise UndecidedError(f"{argv[0]} could not be started: {error.strerror}") from error
    # Linux counts what a process allocates, not the packs that it maps; other systems have no prlimit.
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(child.pid, resource.RLIMIT_DATA, (memory, memory))
            resource.prlimit(child.pid, resource.RLIMIT_CORE, (0, 0))
    return child


class _TooMuchError(Exception):
    """A child exceeded its output limit."""


def _converse(
    child: subprocess.Popen[bytes], stdin: bytes, deadline: float, max_output: int
) -> tuple[bytes, bytes]:
    out, err = bytearray(), bytearray()
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for stream, into in ((child.stdout, out), (child.stderr, err)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, into)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired("", 0)
            for key, _ in selector.select(left):
                if key.data is None:
                    rest = _feed(child, rest, selector)
                    continue
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data is out or len(err) < _STDERR_KEPT:
                    key.data.extend(data)
                if len(out) > max_output:
                    raise _TooMuchError
    return bytes(out), bytes(err)


def _feed(child: subprocess.Popen[bytes], rest: memoryview, selector: selectors.BaseSelector) -> memoryview:
    assert child.stdin is not None
    try:
        rest = rest[os.write(child.stdin.fileno(), rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        rest = rest[:0]
    if not rest:
        selector.unregister(child.stdin)
        child.stdin.close()
    return rest


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child's group, and reap it."""
    _kill_group(child)
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child's group, even if the child has ended: what it started may still run."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


class Child:
    """A child that runs while it is written to and read from; a context manager that ends it.

    `out` is its standard output, unbuffered. Its standard error is drained by a thread, so that it never
    blocks. With `stdin`, its whole input, it reads at its own pace, whatever this process does; otherwise its
    input is written or fed.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str],
        stdin: bytes | None = None,
        seconds: float = DEFAULT_SECONDS,
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        self._name = " ".join(argv[:1])
        source = None if stdin is None else open_input(stdin)
        try:
            self._child = _start(argv, cwd, env, subprocess.PIPE if source is None else source, memory)
        finally:
            if source is not None:
                os.close(source)
        self._errors = bytearray()
        self._late = False
        self._ended = False
        self._feeder: threading.Thread | None = None
        self._drain = threading.Thread(target=self._drain_errors, daemon=True)
        self._drain.start()
        self._seconds = seconds
        self._watch = threading.Timer(seconds, self._overrun)
        self._watch.daemon = True
        self._watch.start()
        if stdin is not None and source is None:
            self.feed(stdin)

    def _drain_errors(self) -> None:
        assert self._child.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(self._child.stderr.fileno(), _CHUNK):
                if len(self._errors) < _STDERR_KEPT:
                    self._errors.extend(data)

    def _overrun(self) -> None:
        self._late = True
        _kill_group(self._child)

    @property
    def out(self) -> IO[bytes]:
        """The child's standard output."""
        assert self._child.stdout is not None
        return self._child.stdout

    def write(self, data: bytes) -> None:
        """Send bytes to the child; a child that has ended is noticed when its answer is read."""
        assert self._child.stdin is not None
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[os.write(self._child.stdin.fileno(), view) :]

    def feed(self, data: bytes | Iterable[bytes]) -> None:
        """Send the child's whole input from a thread, while its answers are read here.

        The pipe for the answers is enlarged if possible, so that the child can work ahead.
        """
        with contextlib.suppress(AttributeError, OSError):
            fcntl.fcntl(self.out.fileno(), fcntl.F_SETPIPE_SZ, _WIDE_PIPE)

        def send() -> None:
            with contextlib.suppress(OSError, ValueError):
                for piece in [data] if isinstance(data, bytes) else data:
                    self.write(piece)
                self.close_input()

        self._feeder = threading.Thread(target=send, daemon=True)
        self._feeder.start()

    def close_input(self) -> None:
        """Close the child's input."""
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()

    def finish(self) -> Completed:
        """Wait for the child's end; `out` is empty, because its output was read as it came.

        Raises:
            UndecidedError: it exceeded its time limit.
        """
        code = self._child.wait()
        _kill_group(self._child)
        self._drain.join(timeout=_PATIENCE)
        if self._late:
            raise TimeLimitError(f"{self._name} took longer than {self._seconds:g} s and was ended")
        return Completed(code, b"", bytes(self._errors))

    def terminate(self, seconds: float = _PATIENCE) -> None:
        """Ask the child to end (SIGTERM), and wait so long; what is left is killed when it is ended."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(seconds)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """End the child and everything that it started; doing it twice changes nothing.

        A stream is closed only when no thread uses it any more: its number may be another child's a moment
        later.
        """
        self._watch.cancel()
        if not self._ended:
            self._ended = True
            _kill_group(self._child)
            self._child.wait()
        if _has_finished(self._feeder):
            self._close(self._child.stdin)
        if _has_finished(self._drain):
            self._close(self._child.stderr)
        self._close(self._child.stdout)

    @staticmethod
    def _close(stream: IO[bytes] | None) -> None:
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _has_finished(thread: threading.Thread | None) -> bool:
    """Wait for a thread whose child has ended; an escaped process may keep its pipe open."""
    if thread is not None:
        thread.join(timeout=_PATIENCE)
    return thread is None or not thread.is_alive()
