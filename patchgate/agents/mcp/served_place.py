"""Where an MCP server serves: which repository, and the processes that answer its calls.

Each call has a process of its own, so that it can be ended in time, and whatever it prints stays out of the
protocol. Does not import the SDK.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.git.repository import open_repository
from patchgate.process.child import Child
from patchgate.process.child_environment import own_program
from patchgate.values import dataclass

MOST_ROOTS = 50
MOST_ANSWER = 32 << 20
NO_REPOSITORY = (
    "start it with --repository DIR, in a working directory that is in a repository, or give it a root"
)
_NEEDED = "mcp.server.mcpserver.resolve"
_GRACE = 30.0
# The commands of a call have no limit of memory, as those of `apply`.
_MEMORY = 1 << 46


def require_mcp() -> None:
    """Require the SDK, of a version that this server can use.

    Raises:
        UsageError: it is not installed.
    """
    try:
        is_there = importlib.util.find_spec(_NEEDED) is not None
    except ImportError:
        is_there = False
    if not is_there:
        raise UsageError("the MCP server needs the MCP SDK (mcp 2.3)", 'pip install "patchgate[mcp]"')


@dataclass(slots=True)
class ServerPlace:
    """The repository of a server: the one of a directory, else the first of the client's roots.

    Args:
        environ: the environment of the processes that answer.
        directory: the working directory, or the one that was named.
        is_named: whether it was named; then the client's roots do not count.
    """

    environ: Mapping[str, str]
    directory: str
    is_named: bool = False
    _found: str | None = None
    _fault: str = "there is no repository"

    def look(self) -> bool:
        """Look for the repository of the directory once; return whether one is known."""
        if self._found is None:
            self._try(self.directory)
        return self._found is not None

    def look_in_roots(self, uris: Sequence[str]) -> None:
        """Take the first root (a file URI, RFC 8089) that is in a repository; any other URI is skipped."""
        for uri in uris[:MOST_ROOTS]:
            folder = _folder_of(uri)
            if folder is not None and self._found is None:
                self._try(folder)

    def _try(self, folder: str) -> None:
        try:
            open_repository(self.environ, folder)
        except PatchgateError as error:
            self._fault = error.message
        else:
            self._found = folder

    def require(self) -> str:
        """Return the folder of the repository.

        Raises:
            UsageError: none is known.
        """
        if self._found is None:
            raise UsageError(f"no repository: {self._fault}", NO_REPOSITORY)
        return self._found

    def start(self, seconds: float) -> AnsweringProcess:
        """Start a process that answers one call in at most so many seconds."""
        argv = [*own_program(self.environ), "-C", self.require(), "agent", "call", "--format", "json"]
        child = Child(argv, cwd=None, env=self.environ, seconds=seconds + _GRACE, memory=_MEMORY)
        return AnsweringProcess(child)


def _folder_of(uri: str) -> str | None:
    """Return the folder that a file URI names; None if it names none."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    folder = unquote(parts.path, errors="surrogateescape")
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"} or "\0" in folder:
        return None
    return folder if os.path.isabs(folder) and os.path.isdir(folder) else None


@dataclass(slots=True)
class AnsweringProcess:
    """A process that answers one call."""

    child: Child

    def ask(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Send the call, and return the answer; it waits, so it belongs in a thread.

        Raises:
            PatchgateError: the call was refused, or there was no answer.
        """
        self.child.feed(json.dumps(call).encode("ascii"))
        with os.fdopen(os.dup(self.child.out.fileno()), "rb") as stream:
            raw = stream.read(MOST_ANSWER + 1)
        if len(raw) > MOST_ANSWER:
            raise UndecidedError(f"the answer has more than {MOST_ANSWER >> 20} MiB", "ask for less")
        done = self.child.finish()
        try:
            answer = json.loads(raw)
        except ValueError as error:
            said = printable(done.err.strip().rpartition(b"\n")[2], 300)
            raise UndecidedError(f"there was no answer: {said or f'exit code {done.code}'}") from error
        if "error" in answer:
            raise _error_of(answer["error"])
        return dict(answer)

    def stop(self) -> None:
        """Ask it to end, and end it; what it was applying is recovered by the next command."""
        self.child.terminate()
        self.child.end()


def _error_of(said: Mapping[str, Any]) -> PatchgateError:
    made = UsageError if said.get("kind") in {"usage", "config"} else UndecidedError
    hint = said.get("hint")
    return made(str(said.get("message")), None if hint is None else str(hint))
