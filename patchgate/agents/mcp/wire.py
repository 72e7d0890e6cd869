"""Answers on the wire where the SDK gives none: a message that it cannot read gets an error with a sentence.

A client that waits for the answer to its call would wait for ever. No content is repaired: a patch with half
of a surrogate pair is not the patch that was meant.
"""

import contextvars
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

_NOT_JSON = "the message is not JSON: send one object in one line of UTF-8"
_NOT_UNICODE = (
    "the message has half of a surrogate pair, which no text has: send the characters themselves, "
    "or both halves of the pair"
)
_NO_CALL = "the message is no request of JSON-RPC 2.0 (jsonrpc, id, method, params), or is nested too deeply"


def answer_to_unreadable(error: Exception) -> JSONRPCError | None:
    """Make the answer to a message that could not be read; None if the client waits for none."""
    message = _message_of(error)
    if message is None:
        return _error(None, PARSE_ERROR, _NOT_JSON)
    if "id" not in message or "method" not in message:
        return None
    asked = message["id"]
    is_id = (isinstance(asked, int) and not isinstance(asked, bool)) or (
        isinstance(asked, str) and _is_unicode(asked)
    )
    if _is_unicode_throughout(message):
        return _error(asked if is_id else None, INVALID_REQUEST, _NO_CALL)
    return _error(asked if is_id else None, INVALID_PARAMS, _NOT_UNICODE)


def _error(asked: int | str | None, code: int, sentence: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=asked, error=ErrorData(code=code, message=sentence))


def _is_unicode_throughout(message: Mapping[str, Any]) -> bool:
    try:
        return _is_unicode(json.dumps(message, ensure_ascii=False))
    except RecursionError:
        return True


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _message_of(error: Exception) -> Mapping[str, Any] | None:
    """Return the object that a client sent; None if it was none."""
    if not isinstance(error, ValidationError):
        return None
    for each in error.errors(include_url=False, include_context=False):
        found = each["input"]
        if isinstance(found, str | bytes):
            try:
                found = json.loads(found)
            except (ValueError, RecursionError):
                return None
        if isinstance(found, dict):
            return found
    return None


class AnsweringStream:
    """What comes from a client, without the messages that cannot be read, which are answered here."""

    def __init__(
        self, inner: ReadStream[SessionMessage | Exception], answers: WriteStream[SessionMessage]
    ) -> None:
        self._inner, self._answers = inner, answers

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context of who sent the last message."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message that can be read."""
        while True:
            item = await self._inner.receive()
            if not isinstance(item, Exception):
                return item
            answer = answer_to_unreadable(item)
            if answer is not None:
                await self._answers.send(SessionMessage(answer))

    async def aclose(self) -> None:
        """Close it."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


async def serve_on_wire(server: Any) -> None:
    """Serve one client of a low-level server on standard input and output until it leaves."""
    async with stdio_server() as (messages, answers):
        options = server.create_initialization_options()
        await server.run(AnsweringStream(messages, answers), answers, options)
