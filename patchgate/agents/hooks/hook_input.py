"""Read what a coding agent sends to its hook: which event, and what its tool is about to do.

One reader for the protocols of Claude Code, Codex, Cursor and Gemini CLI, whose tools have different names.
Fields that are used must have their type; others are ignored. A tool that writes no file and runs no command
is not judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from patchgate.errors import UsageError
from patchgate.values import dataclass

MOST_INPUT = 16 << 20
_Fields = Mapping[str, object]


class HookInputError(UsageError):
    """The input of a hook is not what the agent's documentation says."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message, "git patchgate agent doctor; docs/agents.md has the versions that were read"
        )


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One replacement of a text in a file: where it stands once, or everywhere with `everywhere`."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class FileCall:
    """A tool that changes one file.

    `content` is all of its new text; else `edits` are applied in order; without both, what the tool writes is
    not known (a notebook), or the file is deleted (`deletes`).
    """

    path: str
    content: str | None = None
    edits: tuple[TextEdit, ...] = ()
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class PatchCall:
    """A tool that applies a patch in the envelope of Codex (`*** Begin Patch`)."""

    text: str


@dataclass(frozen=True, slots=True)
class ShellCall:
    """A tool that runs a shell command, in a folder of its own if it names one."""

    command: str
    folder: str = ""


ToolCall = FileCall | PatchCall | ShellCall


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event: `kind` is `session`, `tool` or `stop`; `name` is the agent's own name for it.

    `folder` is where the agent works, empty if it does not say; `call` is None for a tool that is not
    judged. `is_repeated`: the agent is still working because a hook refused its stop before.
    """

    kind: str
    name: str
    folder: str = ""
    call: ToolCall | None = None
    is_repeated: bool = False


# Each protocol: its names of the events, and what each is to us.
EVENTS: Mapping[str, Mapping[str, str]] = {
    "claude": {"SessionStart": "session", "PreToolUse": "tool", "Stop": "stop", "SubagentStop": "stop"},
    "codex": {"SessionStart": "session", "PreToolUse": "tool", "Stop": "stop", "SubagentStop": "stop"},
    "cursor": {
        "sessionStart": "session",
        "preToolUse": "tool",
        "beforeShellExecution": "tool",
        "stop": "stop",
    },
    "gemini": {"SessionStart": "session", "BeforeTool": "tool", "AfterAgent": "stop"},
}


def read_event(protocol: str, raw: bytes) -> HookEvent:
    """Read the input of a hook.

    Raises:
        HookInputError: it is too large, no JSON object, or a field that is used is missing or has a wrong
            type; or the event is unknown.
    """
    if len(raw) > MOST_INPUT:
        raise HookInputError(f"the input of the hook is larger than {MOST_INPUT >> 20} MiB")
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        raise HookInputError("the input of the hook is not JSON") from None
    if not isinstance(fields, dict):
        raise HookInputError("the input of the hook is not a JSON object")
    name = _text(fields, "hook_event_name")
    kind = EVENTS[protocol].get(name)
    if kind is None:
        known = ", ".join(EVENTS[protocol])
        raise HookInputError(f"the hook does not know this event; it knows {known}")
    call: ToolCall | None = None
    if kind == "tool":
        if name == "beforeShellExecution":
            call = _shell(fields)
        else:
            call = _read_tool(_text(fields, "tool_name"), fields)
    folder = _folder(fields)
    require_name(folder)
    return HookEvent(kind, name, folder, call, _is_repeated(fields))


def require_name(text: str) -> None:
    """Require that a text can be the name of a file, or a command.

    Raises:
        HookInputError: it has a zero byte or a lone surrogate.
    """
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise HookInputError(
            "a name or a command in the input of the hook has a character that none can have"
        )


def _folder(fields: _Fields) -> str:
    """Return where the agent works; Cursor leaves `cwd` empty, and lists the roots of its workspace."""
    folder = _optional(fields, "cwd")
    roots = fields.get("workspace_roots")
    if not folder and isinstance(roots, list) and roots and isinstance(roots[0], str):
        return roots[0]
    return folder


def _is_repeated(fields: _Fields) -> bool:
    count = fields.get("loop_count")
    return fields.get("stop_hook_active") is True or (isinstance(count, int) and count > 0)


def _read_tool(name: str, fields: _Fields) -> ToolCall | None:
    read = _TOOLS.get(name)
    if read is None:
        return None
    arguments = fields.get("tool_input")
    if not isinstance(arguments, dict):
        raise HookInputError(f"the input of the hook has no arguments for the tool {name}")
    return read(arguments)


def _shell(arguments: _Fields) -> ToolCall:
    folders = ("directory", "dir_path", "working_directory", "cwd")
    call = ShellCall(_text(arguments, "command"), _only(arguments, *folders) or "")
    require_name(call.command)
    require_name(call.folder)
    return call


def _file(arguments: _Fields) -> ToolCall:
    path = _path(arguments, "file_path", "path", "target_file", "notebook_path")
    content = _only(arguments, "content", "contents")
    if sum((content is not None, "edits" in arguments, "old_string" in arguments)) > 1:
        raise HookInputError("the tool says in two ways what it writes")
    if content is not None:
        return FileCall(path, content)
    edits = arguments.get("edits")
    if isinstance(edits, list):
        if not all(isinstance(each, dict) for each in edits):
            raise HookInputError("an edit in the input of the hook is not an object")
        return FileCall(path, edits=tuple(_edit(each) for each in edits))
    if "old_string" in arguments:
        return FileCall(path, edits=(_edit(arguments),))
    return FileCall(path)


def _edit(arguments: _Fields) -> TextEdit:
    many = arguments.get("expected_replacements")
    everywhere = (
        arguments.get("replace_all") is True
        or arguments.get("allow_multiple") is True
        or (isinstance(many, int) and many > 1)
    )
    return TextEdit(_text(arguments, "old_string"), _text(arguments, "new_string"), everywhere)


def _notebook(arguments: _Fields) -> ToolCall:
    return FileCall(_path(arguments, "notebook_path", "target_notebook", "file_path", "path"))


def _delete(arguments: _Fields) -> ToolCall:
    return FileCall(_path(arguments, "file_path", "path", "target_file"), deletes=True)


def _patch(arguments: _Fields) -> ToolCall:
    text = _only(arguments, "command", "input", "patch")
    if text is None:
        raise HookInputError("the tool has no patch")
    return PatchCall(text)


_TOOLS: Mapping[str, Callable[[_Fields], ToolCall]] = {
    # Claude Code
    "Bash": _shell,
    "Edit": _file,
    "MultiEdit": _file,
    "NotebookEdit": _notebook,
    "Write": _file,
    # Codex calls its shell Bash as well.
    "apply_patch": _patch,
    # Cursor calls its writing tool Write as well.
    "ApplyPatch": _patch,
    "Delete": _delete,
    "EditNotebook": _notebook,
    "Shell": _shell,
    "StrReplace": _file,
    "TabWrite": _file,
    # Gemini CLI
    "replace": _file,
    "run_shell_command": _shell,
    "write_file": _file,
}


def _text(fields: _Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise HookInputError(f"the input of the hook has no text {name}")
    return value


def _optional(fields: _Fields, name: str) -> str:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise HookInputError(f"{name} in the input of the hook is not a text")
    return value or ""


def _path(fields: _Fields, *names: str) -> str:
    path = _only(fields, *names)
    if not path:
        raise HookInputError("the tool names no file")
    require_name(path)
    return path


def _only(fields: _Fields, *names: str) -> str | None:
    """Return the text of those of some fields that are there: nobody knows which of two the tool takes."""
    found: Sequence[str] = [name for name in names if name in fields]
    if len({_text(fields, name) for name in found}) > 1:
        raise HookInputError(f"the tool has {' and '.join(found)}, which differ")
    return _text(fields, found[0]) if found else None
