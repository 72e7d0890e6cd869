"""Let the server of `tests/children.py` answer for a hook that git starts.

Python imports this module at its start, because the tests name its folder in `PYTHONPATH`. It acts only with
the usual limits and signals, for `git-patchgate hook NAME` and for scripts that call `run_in_server`. A child
of the server has the streams, folder, environment, umask and parent of this process, which ends as it ends.
"""

import os
import sys


def _hand_over(server: str, arguments: list[str]) -> None:
    import _signal  # type: ignore[import-not-found]
    import marshal
    import resource

    limits = [resource.getrlimit(kind) for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_AS)]
    if limits != [(resource.RLIM_INFINITY, resource.RLIM_INFINITY)] * 2:
        return
    ending = _signal.SIGTERM, _signal.SIGHUP
    if any(_signal.getsignal(each) != _signal.SIG_DFL for each in ending):
        return
    if os.environ.get("LC_ALL") not in {"C", "C.UTF-8"}:
        return
    steering = {name for name in os.environ if name.startswith(("PYTHON", "LC_", "LANG"))}
    if not steering <= {"LC_ALL", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"}:
        return
    import _socket

    try:
        folder = os.getcwd()
    except OSError:
        return
    umask = os.umask(0)
    os.umask(umask)
    # Shells let what they run in the background ignore it.
    ignores = _signal.getsignal(_signal.SIGINT) == _signal.SIG_IGN
    told = marshal.dumps((arguments, folder, dict(os.environ), umask, os.getppid(), ignores))
    asking = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        asking.connect(server)
    except OSError:
        return
    fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(3))
    asking.sendmsg([len(told).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
    asking.sendall(told)
    child = int.from_bytes(asking.recv(8), "big")
    for number in ending if ignores else (*ending, _signal.SIGINT):
        _signal.signal(number, lambda number, _: os.kill(child, number))
    ended = asking.recv(8)
    if len(ended) != 8:
        # The server died: no answer must not look like an acceptance.
        os._exit(70)
    code = int.from_bytes(ended, "big", signed=True)
    if code < 0:
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if sys.orig_argv[2:3] in (["hook"], ["install"]) and (_server := os.environ.get("FORKING_SERVER")):
    _place, _, _program = _server.partition(":")
    if sys.orig_argv[1] == _program:
        _hand_over(_place, sys.orig_argv[2:])


def run_in_server() -> None:
    """Let a child of the server run the script that calls this; returns where none can."""
    if server := os.environ.get("FORKING_SERVER"):
        _hand_over(server.partition(":")[0], ["run-script", os.path.abspath(sys.argv[0]), *sys.argv[1:]])
