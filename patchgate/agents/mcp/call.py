"""Answer one call of an MCP client, in a process of its own: read it, dispatch it, write the answer as JSON.

The server has checked the arguments against its schema; they are read here as what they are for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

from patchgate.agents.mcp.arguments import CallArguments, CallPlace
from patchgate.agents.mcp.changes import CHANGES
from patchgate.agents.mcp.resources import RESOURCES
from patchgate.agents.mcp.tools import TOOLS
from patchgate.errors import UsageError
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.values import dataclass, replace

MOST_CLIENT = 100


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call: `kind` is resource, tool, preview (of a change) or change; `client` is the caller's name."""

    kind: str
    name: str
    arguments: CallArguments
    client: str

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.kind == "change"


def read_call(raw: bytes) -> ClientCall:
    """Read a call as the server writes it.

    Raises:
        UsageError: it is none.
    """
    try:
        said = json.loads(raw)
        kind, name, client = (str(said[key]) for key in ("kind", "name", "client"))
        arguments = CallArguments(dict(said["arguments"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError("this is no call of a client", "git patchgate agent mcp") from error
    return ClientCall(kind, name, arguments, printable(client, MOST_CLIENT) or "unknown client")


def answer(repository: Repository, call: ClientCall, environ: Mapping[str, str], cache: str) -> str:
    """Answer a call with one line of JSON.

    Raises:
        UsageError: there is no such tool or resource, or an argument is wrong.
        PatchgateError: as for what it does.
    """
    place = CallPlace(
        # Paths of a client start at the root, wherever the server was started.
        repository=replace(repository, prefix=""),
        environ=environ,
        cache=cache,
        client=call.client,
        now=time.time(),
    )
    arguments = call.arguments
    if call.kind == "resource" and call.name in RESOURCES:
        return json.dumps({"content": RESOURCES[call.name](place, arguments)}) + "\n"
    if call.kind == "tool" and call.name in TOOLS:
        return json.dumps(TOOLS[call.name](place, arguments)) + "\n"
    if call.kind in {"preview", "change"} and call.name in CHANGES:
        change = CHANGES[call.name]
        summary = change.preview(place, arguments)
        if call.kind == "preview":
            return json.dumps({"summary": summary}) + "\n"
        return json.dumps(change.make(place, arguments)) + "\n"
    raise UsageError(f"there is no {printable(call.kind, 40)} {printable(call.name, 80)}", "list the tools")
