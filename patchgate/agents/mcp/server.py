"""The MCP server: its resources and tools, limits on what it takes, and the questions before a change.

Answers are made by processes of their own (`served_place`). No annotation here is a string, because the SDK
reads them as values, those of inner functions too.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

import anyio
import anyio.to_thread
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import (
    CallToolResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ToolAnnotations,
)
from mcp_types.version import is_version_at_least
from pydantic import AnyUrl, ValidationError

from patchgate import __version__
from patchgate.agents.brief import DEFAULT_TOKENS
from patchgate.agents.mcp.parameters import (
    DIFF,
    NO_PATCH,
    NOT_GIVEN,
    Confirm,
    Digest,
    Format,
    Number,
    PatchText,
    Text,
    Texts,
)
from patchgate.agents.mcp.results import (
    ApplyToolResult,
    BriefToolResult,
    CheckToolResult,
    Confirmation,
    DeclareToolResult,
    ExplainToolResult,
    ResumeToolResult,
    StatusToolResult,
    ValidateToolResult,
    VerifyToolResult,
)
from patchgate.agents.mcp.served_place import AnsweringProcess, ServerPlace
from patchgate.agents.mcp.wire import serve_on_wire
from patchgate.errors import PatchgateError
from patchgate.git.quoting import first_of, printable

INSTRUCTIONS = """\
patchgate judges what git will really do, before it lands. Begin with `brief`. `check` a patch before you
send it; a refusal names the rule, the place and the next step. Every claim is specific and testable; every
function declares its side effects."""
_MOST_AT_ONCE = 4
_MOST_FAULTS = 5
_SECONDS = 300.0
_LONG_SECONDS: Mapping[str, float] = {
    "verify": 3600.0,
    "apply": 3600.0,
    "declare_intent": 3600.0,
    "resume": 6 * 3600.0,
}
"""The seconds for what runs commands of the policy; everything else has `_SECONDS`."""
_ROOTS = "roots"
# The first version in which a server asks a client in the answer to its call.
_ANSWERS_ASK = "2026-07-28"


Choice = ElicitationResult[Confirmation]

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def serve(place: ServerPlace, *, allows_changes: bool) -> None:
    """Serve one client on standard input and output until it leaves."""
    build_server(place, allows_changes=allows_changes).run("stdio")


def build_server(place: ServerPlace, *, allows_changes: bool) -> MCPServer[Any]:
    """Build a server; it looks for its repository at the first call."""
    server = _PatchgateServer(place)
    _add_resources(server)
    _add_reading_tools(server)
    if allows_changes:
        _add_changing_tools(server)
    return server


class _PatchgateServer(MCPServer[Any]):
    """A server that asks processes, knows where it serves, and says which arguments are wrong."""

    def __init__(self, place: ServerPlace) -> None:
        super().__init__("patchgate", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
        self._place = place
        self._at_once = anyio.Semaphore(_MOST_AT_ONCE)

    async def run_stdio_async(self) -> None:
        """Serve on standard input and output, with an answer to every message."""
        await serve_on_wire(self._lowlevel_server)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool, after the repository is known and every argument is one of its own."""
        schema = self._tool_input_schema(name)
        if schema is None:
            known = ", ".join(each.name for each in await self.list_tools())
            raise ToolError(f"there is no tool {printable(name, 80)}; there are: {known}")
        if strange := sorted(set(arguments) - set(schema["properties"])):
            known = ", ".join(schema["properties"]) or "none"
            shown = first_of(strange, _MOST_FAULTS, lambda each: printable(each, 80))
            raise ToolError(f"{name} takes no argument {shown}; it takes: {known}")
        if (question := await self._look_for_repository(context)) is not None:
            return question
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            return await super().call_tool(name, given, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_describe(name, error.__cause__)) from None
            raise

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read a resource, after the repository is known."""
        if (question := await self._look_for_repository(context)) is not None:
            return question
        try:
            return await super().read_resource(uri, context)
        except ResourceNotFoundError as error:
            raise ResourceNotFoundError(printable(str(error), 400)) from error

    async def _look_for_repository(self, context: Context[Any, Any] | None) -> InputRequiredResult | None:
        """Look for the repository; return a question to the client where its roots must be known first."""
        if await anyio.to_thread.run_sync(self._place.look) or self._place.is_named or context is None:
            return None
        capabilities = context.client_capabilities
        if capabilities is None or capabilities.roots is None:
            return None
        roots: object = None
        version = context.protocol_version
        if version is not None and is_version_at_least(version, _ANSWERS_ASK):
            roots = (context.input_responses or {}).get(_ROOTS)
            if roots is None:
                return InputRequiredResult(input_requests={_ROOTS: ListRootsRequest()})
        elif context.session.can_send_request:
            roots = await context.session.send_request(ListRootsRequest(), ListRootsResult)
        if isinstance(roots, ListRootsResult):
            uris = [str(root.uri) for root in roots.roots]
            await anyio.to_thread.run_sync(self._place.look_in_roots, uris)
        return None

    async def ask(
        self, kind: str, name: str, arguments: Mapping[str, Any], context: Context[Any, Any] | None = None
    ) -> dict[str, Any]:
        """Ask a process for an answer; it is ended when its time is over, or when the client gives up.

        Raises:
            PatchgateError: the call was refused, or could not be answered.
            ToolError: it took too long.
        """
        call = {"kind": kind, "name": name, "arguments": arguments, "client": _client_of(context)}
        seconds = _LONG_SECONDS.get(name, _SECONDS) if kind != "resource" else _SECONDS
        async with self._at_once:
            process = await anyio.to_thread.run_sync(self._place.start, seconds)
            try:
                with anyio.fail_after(seconds):
                    return await anyio.to_thread.run_sync(process.ask, call, abandon_on_cancel=True)
            except TimeoutError:
                raise ToolError(f"{name} took longer than {seconds:g} s, and was ended") from None
            finally:
                await _stop(process)

    async def tool_answer(
        self, kind: str, name: str, arguments: Mapping[str, Any], context: Context[Any, Any]
    ) -> dict[str, Any]:
        """Ask for the answer of a tool; a refusal is an error that the model reads.

        Raises:
            ToolError: it was refused, or could not be answered.
        """
        try:
            return await self.ask(kind, name, arguments, context)
        except PatchgateError as error:
            raise ToolError(error.sentence) from error

    async def content(self, name: str, **arguments: str) -> str:
        """Ask for the content of a resource.

        Raises:
            ResourceError: it was refused, or could not be answered.
        """
        try:
            return str((await self.ask("resource", name, arguments))["content"])
        except PatchgateError as error:
            raise ResourceError(error.sentence) from error


async def _stop(process: AnsweringProcess) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(process.stop)


def _client_of(context: Context[Any, Any] | None) -> str:
    """Return what the client calls itself."""
    params = None if context is None else context.session.client_params
    if params is None:
        return "unknown client"
    return printable(f"{params.client_info.name} {params.client_info.version}".strip(), 100)


def _describe(name: str, error: ValidationError) -> str:
    """Say in a sentence which arguments are wrong, without their values."""
    faults = [
        f"`{printable('.'.join(map(str, each['loc'])), 80)}`: {printable(each['msg'], 200)}"
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return f"the arguments of {name} are wrong: {first_of(faults, _MOST_FAULTS, str, '; ')}"


_RESOURCES = (
    ("status", "Runs, drift, intents, open attempts, and what comes next."),
    ("policy", "Every key of the policy in effect, with its value and place."),
    ("contracts", "The components of the index, with their contracts."),
    ("budget", "The limits of one change, and what the newest run has spent."),
    ("retrospective", "What the newest run has taught."),
    ("rules", "The rules: level, summary and next step."),
)


def _reader(server: _PatchgateServer, name: str) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        return await server.content(name)

    return read


def _add_resources(server: _PatchgateServer) -> None:
    for name, description in _RESOURCES:
        address = f"patchgate://{name}"
        add = server.resource(address, name=name, description=description, mime_type="application/json")
        add(_reader(server, name))

    @server.resource("patchgate://contract/{id}", name="contract", mime_type="application/json")
    async def contract(id: str) -> str:  # noqa: A002 - the name in the address
        """The contract of a component, as it is in the index."""
        return await server.content("contract", id=id)

    @server.resource("patchgate://intent/{id}", name="intent", mime_type="application/json")
    async def intent(id: str) -> str:  # noqa: A002 - the name in the address
        """An intent: its files, until when it counts, who owns it."""
        return await server.content("intent", id=id)


def _add_reading_tools(server: _PatchgateServer) -> None:
    @server.tool(annotations=_READS)
    async def check(
        ctx: Context[Any, Any],
        patch: PatchText = NOT_GIVEN,
        input: Format = DIFF,  # noqa: A002 - as the option of the command
        source: Literal["staged", "worktree"] = "staged",
    ) -> CheckToolResult:
        """Check a patch, or what is staged or in the working tree, under the limits of an agent."""
        sent = {"patch": None if patch is NO_PATCH else patch, "input": input, "source": source}
        return CheckToolResult(**await server.tool_answer("tool", "check", sent, ctx))

    @server.tool(annotations=_READS)
    async def validate(ctx: Context[Any, Any], components: Texts | None = None) -> ValidateToolResult:
        """Validate the contracts and baselines of components of the index: those named, or all."""
        sent = {"components": components}
        return ValidateToolResult(**await server.tool_answer("tool", "validate", sent, ctx))

    @server.tool(annotations=_READS)
    async def explain(
        ctx: Context[Any, Any], rule: Text | None = None, path: Text | None = None
    ) -> ExplainToolResult:
        """Explain a rule, or which line of the policy decides about a path; else list the rules."""
        sent = {"rule": rule, "path": path}
        return ExplainToolResult(**await server.tool_answer("tool", "explain", sent, ctx))

    @server.tool(annotations=_READS)
    async def verify(
        ctx: Context[Any, Any],
        revision: Text | None = None,
        intent: Text | None = None,
        base: Text | None = None,
    ) -> VerifyToolResult:
        """Compare the analyses of the staged tree, or of a revision, with those from before the work."""
        sent = {"revision": revision, "intent": intent, "base": base}
        return VerifyToolResult(**await server.tool_answer("tool", "verify", sent, ctx))

    @server.tool(annotations=_READS)
    async def brief(
        ctx: Context[Any, Any],
        names: Texts | None = None,
        max_tokens: Number = DEFAULT_TOKENS,
        research: bool = False,
    ) -> BriefToolResult:
        """Say what to know for components, intents or paths; else for the intents of this worktree."""
        sent = {"names": names, "max_tokens": max_tokens, "research": research}
        return BriefToolResult(**await server.tool_answer("tool", "brief", sent, ctx))

    @server.tool(annotations=_READS)
    async def status(ctx: Context[Any, Any]) -> StatusToolResult:
        """Say where the repository stands, and what comes next."""
        return StatusToolResult(**await server.tool_answer("tool", "status", {}, ctx))


async def _confirmation(
    server: _PatchgateServer, name: str, sent: Mapping[str, Any], confirm: bool, ctx: Context[Any, Any]
) -> Confirmation | Elicit[Confirmation]:
    """Check the digest, then ask a person; `confirm` counts only where the client cannot ask.

    Raises:
        ToolError: the digest is that of something else, or nobody confirmed.
    """
    summary = str((await server.tool_answer("preview", name, sent, ctx))["summary"])
    asks = None if ctx.client_capabilities is None else ctx.client_capabilities.elicitation
    if asks is not None and (asks.form is not None or asks.url is None):
        return Elicit(summary, Confirmation)
    if not confirm:
        raise ToolError(
            f"nothing was done: {name} needs confirm = true, for this client cannot ask: {summary}"
        )
    return Confirmation(confirm=True)


async def _make(
    server: _PatchgateServer, name: str, sent: Mapping[str, Any], choice: Choice, ctx: Context[Any, Any]
) -> dict[str, Any]:
    """Do what was confirmed.

    Raises:
        ToolError: it was not, or was refused.
    """
    if not (isinstance(choice, AcceptedElicitation) and choice.data.confirm):
        raise ToolError(f"nothing was done: {name} was not confirmed")
    return await server.tool_answer("change", name, sent, ctx)


def _add_changing_tools(server: _PatchgateServer) -> None:
    _add_declare(server)
    _add_apply(server)
    _add_resume(server)


def _add_declare(server: _PatchgateServer) -> None:
    async def question(
        ctx: Context[Any, Any], reason: str, allow: list[str], digest: str, confirm: bool
    ) -> Confirmation | Elicit[Confirmation]:
        sent = {"reason": reason, "allow": allow, "digest": digest}
        return await _confirmation(server, "declare_intent", sent, confirm, ctx)

    @server.tool(
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
        )
    )
    async def declare_intent(
        ctx: Context[Any, Any],
        choice: Annotated[Choice, Resolve(question)],
        reason: Text,
        allow: Texts,
        digest: Digest,
        related: Texts | None = None,
        forbid: Texts | None = None,
        ttl: Text | None = None,
        max_attempts: Number | None = None,
        max_added_lines: Number | None = None,
        max_minutes: Number | None = None,
        queue: bool = False,
        confirm: Confirm = False,
    ) -> DeclareToolResult:
        """Declare which files your work will touch; `digest` is of check, for the state before it."""
        sent: dict[str, Any] = {"reason": reason, "allow": allow, "digest": digest, "related": related}
        sent |= {"forbid": forbid, "ttl": ttl, "queue": queue, "max_attempts": max_attempts}
        sent |= {"max_added_lines": max_added_lines, "max_minutes": max_minutes}
        return DeclareToolResult(**await _make(server, "declare_intent", sent, choice, ctx))


def _add_apply(server: _PatchgateServer) -> None:
    async def question(
        ctx: Context[Any, Any],
        patch: str,
        digest: str,
        confirm: bool,
        input: str,  # noqa: A002 - as the option of the command
    ) -> Confirmation | Elicit[Confirmation]:
        sent = {"patch": patch, "input": input, "digest": digest}
        return await _confirmation(server, "apply", sent, confirm, ctx)

    @server.tool(
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
        )
    )
    async def apply(
        ctx: Context[Any, Any],
        choice: Annotated[Choice, Resolve(question)],
        patch: PatchText,
        digest: Digest,
        input: Format = DIFF,  # noqa: A002 - as the option of the command
        retry_of: Text | None = None,
        confirm: Confirm = False,
    ) -> ApplyToolResult:
        """Test a patch and apply all of it or nothing; `digest` is what check returned for this patch."""
        sent = {"patch": patch, "input": input, "digest": digest, "retry_of": retry_of}
        return ApplyToolResult(**await _make(server, "apply", sent, choice, ctx))


def _add_resume(server: _PatchgateServer) -> None:
    async def question(
        ctx: Context[Any, Any], digest: str, run: str | None, from_phase: str | None, confirm: bool
    ) -> Confirmation | Elicit[Confirmation]:
        sent = {"digest": digest, "run": run, "from_phase": from_phase}
        return await _confirmation(server, "resume", sent, confirm, ctx)

    @server.tool(
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
        )
    )
    async def resume(
        ctx: Context[Any, Any],
        choice: Annotated[Choice, Resolve(question)],
        digest: Digest,
        run: Text | None = None,
        from_phase: Text | None = None,
        confirm: Confirm = False,
    ) -> ResumeToolResult:
        """Go on with a run, the newest or `run`; `digest` is that of status, or of `run show`."""
        sent = {"digest": digest, "run": run, "from_phase": from_phase}
        return ResumeToolResult(**await _make(server, "resume", sent, choice, ctx))
