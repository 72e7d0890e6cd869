"""Find out whether the hooks of the coding agents are installed, complete, and really answer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

from patchgate.agents.hooks.hook_input import EVENTS
from patchgate.agents.settings.clients import CODEX_CONFIG, MARK, AgentClient
from patchgate.agents.settings.install import AgentScope, read_settings
from patchgate.agents.settings.settings_text import SettingsError, has_entries, switches_hooks_off
from patchgate.git.quoting import printable
from patchgate.process import run
from patchgate.values import dataclass

_PROGRAM = MARK.split(" ", 1)[0]
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class AgentDiagnosis:
    """What was found about one settings file: whether the hooks are in it, and what is wrong."""

    title: str
    place: str
    is_installed: bool
    problems: tuple[str, ...] = ()


def diagnose(client: AgentClient, scope: AgentScope, environ: Mapping[str, str]) -> AgentDiagnosis:
    """Examine the settings of a client in one scope."""
    try:
        path = scope.file_of(client)
        text = read_settings(path, scope.base)
        is_toml = path.endswith(".toml")
        is_installed = text is not None and has_entries(text, is_toml=is_toml)
    except SettingsError as error:
        return AgentDiagnosis(client.title, client.file, False, (error.sentence,))
    problems: list[str] = []
    if is_installed and text is not None:
        problems += _missing_events(client, text)
        problems += _switched_off(client, scope, text)
        problems += _answer(client, environ)
    return AgentDiagnosis(client.title, path, is_installed, tuple(problems))


def _missing_events(client: AgentClient, text: str) -> Iterator[str]:
    for event in client.matchers:
        if event not in text:
            yield f"the event {event} is missing; install again"


def _switched_off(client: AgentClient, scope: AgentScope, text: str) -> Iterator[str]:
    if client.name == "claude" and '"disableAllHooks": true' in " ".join(text.split()):
        yield "disableAllHooks is true, so no hook runs; remove it"
    if client.name == "codex":
        try:
            config = read_settings(os.path.join(scope.base, CODEX_CONFIG), scope.base)
            is_off = config is not None and switches_hooks_off(config)
        except SettingsError as error:
            yield error.sentence
            return
        if is_off:
            yield "[features] hooks is false in config.toml, so no hook runs; remove it"


def _answer(client: AgentClient, environ: Mapping[str, str]) -> Iterator[str]:
    """Let the program answer a command that must be refused, as the agent would start it."""
    event = next(name for name, kind in EVENTS[client.name].items() if kind == "tool")
    shell = {"claude": "Bash", "codex": "Bash", "cursor": "Shell", "gemini": "run_shell_command"}[client.name]
    command = "git commit --no-verify"
    sent = {
        "hook_event_name": event,
        "tool_name": shell,
        "tool_input": {"command": command},
        "command": command,
        "cwd": "/",
    }
    done = run(
        ["sh", "-c", client.command(seconds=_SECONDS)],
        cwd="/",
        env=environ,
        stdin=json.dumps(sent).encode(),
        seconds=_SECONDS,
    )
    said = done.out + done.err
    if b"command-bypasses-hooks" not in said:
        lines = said.decode("utf-8", "replace").strip().split("\n")
        why = printable(lines[-1], 200) or f"exit code {done.code}"
        yield f"{_PROGRAM} does not answer ({why}); it must be on the agent's PATH"
