"""Put the entries of a client into the text of its settings, and take them out again.

Works on JSON, and on the TOML of Codex, where a block between two comments is added at the end. Pure: the
files are read and written elsewhere.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence

from patchgate.agents.settings.clients import MARK, AgentClient, Entries
from patchgate.agents.settings.json_text import JsonNode, JsonText, JsonTextError, parse
from patchgate.errors import UsageError

Ranges = Sequence[tuple[int, int]]
"""Where text was inserted: start and length, in order."""
_BEGIN = "# patchgate begin: git patchgate agent uninstall removes this block"
_END = "# patchgate end"
_HOOKS = "hooks"


class SettingsError(UsageError):
    """Settings that cannot be edited; nothing was changed."""


def new_settings(client: AgentClient, entries: Entries) -> str:
    """Write settings that hold nothing else."""
    lists = {event: [entry] for event, entry in entries.items()}
    return json.dumps({**(client.root or {}), _HOOKS: lists}, indent=2) + "\n"


def add_to_json(text: str, client: AgentClient, entries: Entries) -> tuple[str, Ranges]:
    """Add entries to settings; return the new text, and where text was inserted.

    Raises:
        SettingsError: it is not JSON, or `hooks` has another form.
    """
    edited = JsonText(text)
    root = _object(_parsed(edited.text), "the settings")
    for key, value in (client.root or {}).items():
        if key not in root:
            edited.append(_parsed(edited.text), value, key)
    hooks = root.get(_HOOKS)
    if hooks is None:
        edited.append(_parsed(edited.text), {event: [each] for event, each in entries.items()}, _HOOKS)
        return edited.text, edited.inserted
    for event, entry in entries.items():
        node = _object(_parsed(edited.text), "the settings")[_HOOKS]
        known = _object(node, "hooks").get(event)
        if known is None:
            edited.append(node, [entry], event)
        elif known.items is None:
            raise SettingsError(f"hooks.{event} of the settings is not a list", "fix it, then install again")
        else:
            edited.append(known, entry)
    return edited.text, edited.inserted


def kept_parts(text: str) -> Sequence[str]:
    """Name what of `hooks` is in settings before anything is added: `hooks` itself, and its lists.

    Raises:
        SettingsError: they are not JSON.
    """
    hooks = (_parsed(text).members or {}).get(_HOOKS)
    return [] if hooks is None else [_HOOKS, *(hooks.members or {})]


def remove_from_json(text: str, kept: Sequence[str] = ()) -> str:
    """Take every entry of patchgate out of settings, and the lists and objects that it leaves empty.

    Args:
        text: the settings.
        kept: what was there before, by `kept_parts`, and stays even if it is empty.

    Raises:
        SettingsError: it is not JSON.
    """
    edited = JsonText(text)
    while (found := next(_ours(_parsed(edited.text)), None)) is not None:
        path = list(found)
        hooks = path[1]
        stays = [each for name, each in (hooks.members or {}).items() if name in kept]
        stays += [hooks] if _HOOKS in kept else []
        # What would be empty goes as a whole: an entry without another handler, a list, `hooks`.
        while (
            not any(path[-2] is each for each in stays)
            and len(path) > 2
            and (len(path[-2].parts) == 1 or (len(path) == 5 and path[-1].items is not None))
        ):
            path.pop()
        edited.cut(path[-2], path[-1])
    return edited.text


def _ours(root: JsonNode) -> Iterator[Sequence[JsonNode]]:
    """Yield the path of nodes to each of our handlers, from the root."""
    hooks = (root.members or {}).get(_HOOKS)
    if hooks is None:
        return
    for event in (hooks.members or {}).values():
        for entry in event.items or []:
            handlers = (entry.members or {}).get(_HOOKS)
            if handlers is None:
                found = [(root, hooks, event, entry)] if _is_ours(entry) else []
                yield from found
                continue
            for handler in filter(_is_ours, handlers.items or []):
                yield root, hooks, event, entry, handlers, handler


def _is_ours(handler: JsonNode) -> bool:
    command = handler.value.get("command") if isinstance(handler.value, dict) else None
    return isinstance(command, str) and MARK in command


def has_entries(text: str, *, is_toml: bool = False) -> bool:
    """Return whether settings have an entry of patchgate; empty ones have none.

    Raises:
        SettingsError: they cannot be read.
    """
    if not text.strip():
        return False
    if is_toml:
        return MARK in json.dumps(_toml(text).get(_HOOKS, {}))
    return next(_ours(_parsed(text)), None) is not None


def add_to_toml(text: str, entries: Entries) -> tuple[str, Ranges]:
    """Add entries to the TOML of Codex as a block at the end; return as `add_to_json` does.

    Raises:
        SettingsError: it is not TOML, or `hooks` has another form.
    """
    before = _toml(text)
    lines = [_BEGIN]
    for event, entry in entries.items():
        lines.append(f"[[hooks.{event}]]")
        handlers = entry.get(_HOOKS)
        lines += [f"{key} = {json.dumps(value)}" for key, value in entry.items() if key != _HOOKS]
        for handler in handlers if isinstance(handlers, list) else ():
            lines.append(f"[[hooks.{event}.hooks]]")
            lines += [f"{key} = {json.dumps(value)}" for key, value in handler.items()]
    lines.append(_END)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    block = gap + newline.join(lines) + newline
    try:
        after = _toml(text + block)
    except SettingsError:
        raise SettingsError(
            "hooks of the settings is not a table of lists", "fix it, then install again"
        ) from None
    if {**after, _HOOKS: None} != {**before, _HOOKS: None}:
        raise SettingsError("the settings end inside of a text", "fix them, then install again")
    return text + block, [(len(text), len(block))]


def remove_from_toml(text: str) -> str:
    """Take the block of patchgate out of the TOML of Codex.

    Raises:
        SettingsError: it is not TOML, or entries of patchgate are outside of the block.
    """
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    begin = next((at for at, line in enumerate(lines) if line.strip() == _BEGIN), None)
    end = next((at for at, line in enumerate(lines) if line.strip() == _END), None)
    if begin is not None and end is not None and begin < end:
        if begin > 0 and not lines[begin - 1].strip():
            begin -= 1
        text = "".join(lines[:begin] + lines[end + 1 :])
    if has_entries(text, is_toml=True):
        raise SettingsError(
            "an entry of patchgate is outside of its block", "remove it from the file by hand"
        )
    return text


def without(text: str, ranges: Ranges) -> str:
    """Cut inserted ranges out of a text."""
    for start, length in sorted(ranges, reverse=True):
        text = text[:start] + text[start + length :]
    return text


def has_hooks(text: str) -> bool:
    """Return whether the TOML of Codex has hooks of its own, so that ours belong there too.

    Raises:
        SettingsError: it is not TOML.
    """
    return bool(_toml(text).get(_HOOKS))


def switches_hooks_off(text: str) -> bool:
    """Return whether the TOML of Codex switches all hooks off (`[features] hooks = false`)."""
    features = _toml(text).get("features")
    return isinstance(features, dict) and features.get("hooks", features.get("codex_hooks")) is False


def _toml(text: str) -> Mapping[str, object]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError("the settings are not TOML", "fix the file, then try again") from error


def _parsed(text: str) -> JsonNode:
    try:
        return parse(text)
    except JsonTextError as error:
        where = f"the settings are not JSON (line {error.line})"
        raise SettingsError(where, "fix the file, then try again") from error


def _object(node: JsonNode, what: str) -> Mapping[str, JsonNode]:
    if node.members is None:
        raise SettingsError(f"{what} is not an object", "fix the file, then try again")
    return node.members
