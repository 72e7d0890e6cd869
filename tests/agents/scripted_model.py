"""A model on loopback that answers from a script, and keeps what it was asked.

It speaks the Messages API (Claude Code), the Responses API (Codex) and generateContent (Gemini CLI), and
only what a client needs to run its tools: each request for the main conversation takes the next step of the
script, a tool call or a text; any other request (a title, a count of tokens) gets a short answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class ToolStep:
    """The model calls a tool; with a text, one of Codex that takes no JSON."""

    tool: str
    arguments: dict[str, Any] | str


@dataclass
class ScriptedModel:
    """Serves a script; `results` are the results of tools and the texts of the user that came back."""

    steps: Sequence[ToolStep | str]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def __enter__(self) -> ScriptedModel:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or b"{}")
                raw, kind = model.reply(self.path, body)
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                self.do_HEAD()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self) -> str:
        """Where the model listens."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, path: str, body: dict[str, Any]) -> tuple[bytes, str]:
        """Answer one request."""
        if "count_tokens" in path:
            return b'{"input_tokens": 10}', "application/json"
        step: ToolStep | str = "ok"
        # Models of Codex that run code get their tools in another way.
        if body.get("tools") or path.endswith("/responses"):
            self.asked.append(body)
            number = len(self.asked) - 1
            step = self.steps[number] if number < len(self.steps) else "done"
        if path.endswith("/responses"):
            return _responses(step, len(self.asked)), "text/event-stream"
        if "enerateContent" in path:
            return _generated(step, len(self.asked), is_stream="stream" in path)
        content = (
            {"type": "text", "text": step}
            if isinstance(step, str)
            else {
                "type": "tool_use",
                "id": f"toolu_{len(self.asked):04d}",
                "name": step.tool,
                "input": step.arguments,
            }
        )
        stop = "end_turn" if isinstance(step, str) else "tool_use"
        message = {
            "id": f"msg_{len(self.asked):04d}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "scripted"),
            "content": [content],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }
        if not body.get("stream"):
            return json.dumps(message).encode(), "application/json"
        return _stream(message, content), "text/event-stream"

    def said(self) -> str:
        """Return all that the client has sent in the end: prompts, results of tools, feedback of hooks."""
        keys = ("messages", "system", "input", "contents", "systemInstruction")
        return json.dumps([body.get(key) for body in self.asked[-1:] for key in keys])


def _stream(message: dict[str, Any], content: dict[str, Any]) -> bytes:
    if content["type"] == "text":
        empty, delta = {**content, "text": ""}, {"type": "text_delta", "text": content["text"]}
    else:
        empty = {**content, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {
                "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
                "usage": {"output_tokens": 10},
            },
        ),
        ("message_stop", {}),
    ]
    lines = [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events]
    return "".join(lines).encode()


def _responses(step: ToolStep | str, number: int) -> bytes:
    item: dict[str, Any] = {"id": f"item_{number:04d}"}
    if isinstance(step, str):
        text = {"type": "output_text", "text": step}
        item |= {"type": "message", "role": "assistant", "content": [text]}
    elif isinstance(step.arguments, str):
        item |= {"type": "custom_tool_call", "call_id": f"call_{number:04d}", "name": step.tool}
        item |= {"input": step.arguments}
    else:
        item |= {"type": "function_call", "call_id": f"call_{number:04d}", "name": step.tool}
        item |= {"arguments": json.dumps(step.arguments)}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    answer = {"id": f"resp_{number:04d}"}
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": answer}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": {**answer, "usage": usage}}),
    ]
    lines = [f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in events]
    return "".join(lines).encode()


def _generated(step: ToolStep | str, number: int, *, is_stream: bool) -> tuple[bytes, str]:
    part: dict[str, Any] = {"text": step}
    if isinstance(step, ToolStep):
        part = {"functionCall": {"name": step.tool, "args": step.arguments, "id": f"call_{number:04d}"}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    raw = json.dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"})
    return (
        (f"data: {raw}\r\n\r\n".encode(), "text/event-stream")
        if is_stream
        else (raw.encode(), "application/json")
    )
