"""Run `git-patchgate` in a child process without the start of the interpreter and the imports.

A server process imports the package once, and forks one child per request. The child has its own process id,
streams, folder and environment, and runs the function `main` of the installed script. A real start costs 110
ms of CPU time, a fork 20. `Repo.run` asks the server; hooks that git starts ask it through `tests/start`.
Tests about the start (imports, interpreter, signals, limits) start the script itself, and so do all tests
with `PATCHGATE_LONG=1`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import marshal
import os
import pkgutil
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

# The interpreter and the loader read these at the start.
_STARTING = ("PYTHON", "LC_", "LANG", "MALLOC_", "LD_")
_LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU)
# A pipe buffers this much.
_PIPE = 1 << 16
_START = Path(__file__).parent / "start"


def steering(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change how the interpreter starts."""
    return {key: value for key, value in env.items() if key.startswith(_STARTING)}


class Server:
    """The server process. It ends when this process ends.

    `variables` let the hooks in an environment find the server.
    """

    def __init__(self, script: Path, env: Mapping[str, str]) -> None:
        self._folder = tempfile.mkdtemp(prefix="s")
        place = os.path.join(self._folder, "s")
        self.variables = {"PYTHONPATH": str(_START), "FORKING_SERVER": f"{place}:{script}"}
        self._env = {**env, **self.variables}
        self._limits = [resource.getrlimit(kind) for kind in _LIMITS]
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(place)
            listening.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(script), str(listening.fileno())],
                cwd="/",
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[listening.fileno()],
            )
        self._place = place
        atexit.register(self._end)

    def _end(self) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)

    def can_run(self, env: Mapping[str, str], stdin: bytes) -> bool:
        """Return whether a forked child behaves like a started one for this request."""
        return (
            steering(env) == steering(self._env)
            and len(stdin) <= _PIPE
            and self._limits == [resource.getrlimit(kind) for kind in _LIMITS]
            and self._process.poll() is None
        )

    def run(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the script like `subprocess.run` with `capture_output`."""
        umask = os.umask(0o022)
        os.umask(umask)
        ignores = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        asked = marshal.dumps(([*arguments], str(cwd), dict(env), umask, os.getpid(), ignores))
        pipes = [os.pipe() for _ in range(3)]
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(self._place)
            passed = [pipes[0][0], pipes[1][1], pipes[2][1]]
            socket.send_fds(asking, [len(asked).to_bytes(8, "big")], passed)
            asking.sendall(asked)
            for fd in passed:
                os.close(fd)
            with contextlib.suppress(BrokenPipeError):
                os.write(pipes[0][1], stdin)
            os.close(pipes[0][1])
            out, err = _read_both(pipes[1][0], pipes[2][0])
            asking.recv(8)
            ended = asking.recv(8)
            assert len(ended) == 8, "the server of the tests died"
            code = int.from_bytes(ended, "big", signed=True)
        return subprocess.CompletedProcess([*arguments], code, out, err)


def _read_both(*fds: int) -> list[bytes]:
    found: dict[int, list[bytes]] = {fd: [] for fd in fds}
    with selectors.DefaultSelector() as ready:
        for fd in fds:
            ready.register(fd, selectors.EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select():
                if read := os.read(key.fd, _PIPE):
                    found[key.fd].append(read)
                else:
                    ready.unregister(key.fd)
                    os.close(key.fd)
    return [b"".join(found[fd]) for fd in fds]


class _Serving:
    """Forks one child per connection and sends back its process id, and at its end its exit code."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._waiting: dict[int, socket.socket] = {}
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._ready = selectors.DefaultSelector()
        for each in (listening, self._woken, 0):
            self._ready.register(each, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until the tests close the standard input."""
        while True:
            for key, _ in self._ready.select():
                if key.fileobj == 0:
                    return
                if key.fileobj == self._woken:
                    os.read(self._woken, _PIPE)
                    self._report()
                elif key.fileobj == self._listening:
                    self._fork(self._listening.accept()[0])
                elif key.data in self._waiting:
                    # Who asked was killed.
                    self._ready.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)

    def _fork(self, asking: socket.socket) -> None:
        head, fds, _, _ = socket.recv_fds(asking, 8, 3)
        told = b""
        while head and len(told) < int.from_bytes(head, "big"):
            told += asking.recv(int.from_bytes(head, "big") - len(told))
        pid = os.fork() if len(fds) == 3 else -1
        if pid == 0:
            _become(told, fds)
        for fd in fds:
            os.close(fd)
        if pid < 0:
            asking.close()
            return
        asking.sendall(pid.to_bytes(8, "big"))
        self._waiting[pid] = asking
        self._ready.register(asking, selectors.EVENT_READ, pid)

    def _report(self) -> None:
        while self._waiting:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with self._waiting.pop(pid) as asking:
                with contextlib.suppress(KeyError):
                    self._ready.unregister(asking)
                with contextlib.suppress(OSError):
                    asking.sendall(os.waitstatus_to_exitcode(status).to_bytes(8, "big", signed=True))


def _become(told: bytes, fds: list[int]) -> None:
    """Run the script in this child; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        os.closerange(3, 1024)
        sys.argv[1:], folder, env, umask, parent, ignores = marshal.loads(told)
        if not ignores:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        os.umask(umask)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        # The process that waits for this one, as for a started script.
        os.getppid = lambda: parent
        import pygit2

        # libgit2 has read the home of the server.
        for level in pygit2.enums.ConfigLevel:
            if 0 < level <= pygit2.enums.ConfigLevel.GLOBAL:
                pygit2.option(pygit2.enums.Option.SET_SEARCH_PATH, level, None)
        if sys.argv[1:2] == ["run-script"]:
            _run_script()
        else:
            from patchgate.cli.program import main

            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter prints it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_script() -> None:
    """Run a script that has called `run_in_server`; it must not do so again."""
    import runpy

    import sitecustomize  # type: ignore[import-not-found]

    sitecustomize.run_in_server = lambda: None
    sys.argv[:] = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")


def _import_everything() -> None:
    import patchgate

    # The package imports these inside functions.
    for name in ("pygit2", "tomllib"):
        importlib.import_module(name)
    for found in pkgutil.walk_packages(patchgate.__path__, "patchgate."):
        if not found.name.endswith(".__main__"):
            importlib.import_module(found.name)
    # A hook whose Python ignores PYTHONPATH would not find this server.
    vars(importlib.import_module("patchgate.hooks.install"))["isolated_interpreter"] = lambda *_: ""


if __name__ == "__main__":
    # As in the script: its own name, and the package that is installed with it.
    _, script, fd = sys.argv
    sys.argv[:] = [script]
    sys.path[0] = str(Path(script).parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_everything()
    gc.disable()
    gc.freeze()
    _Serving(socket.socket(fileno=int(fd))).serve()


@functools.cache
def server(script: Path) -> Server | None:
    """Return the server of this process; the first call starts it. With `PATCHGATE_LONG=1` there is none."""
    if os.environ.get("PATCHGATE_LONG"):
        return None
    return Server(script, {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"})
