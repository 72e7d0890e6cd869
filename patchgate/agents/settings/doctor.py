"""Find out whether the hooks of the coding agents are installed, complete, and really answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from patchgate import __version__
from patchgate.agents.hooks.hook_input import EVENTS
from patchgate.agents.settings.clients import CODEX_CONFIG, MARK, AgentClient
from patchgate.agents.settings.install import AgentScope, read_settings
from patchgate.agents.settings.settings_text import SettingsError, has_entries, switches_hooks_off
from patchgate.git.quoting import printable
from patchgate.process.child import run
from patchgate.report.json import place_member
from patchgate.report.schema import Schema, Shape, about, document_schema, path_key
from patchgate.report.verdict import Json
from patchgate.values import dataclass

_PROGRAM = MARK.split(" ", 1)[0]
_SECONDS = 30.0
_OFF_IN_GEMINI = re.compile(
    rf'"hooksConfig"\s*:\s*{{[^{{}}]*(?:"enabled"\s*:\s*false|"disabled"\s*:\s*\[[^\]]*{re.escape(MARK)})'
)
AGENT_DOCTOR_SCHEMA = "patchgate.agent-doctor/1"


@dataclass(frozen=True, slots=True)
class AgentDiagnosis:
    """What was found about one settings file: whether the hooks are in it, and what is wrong.

    `scope` is `project` or `user`.
    """

    name: str
    title: str
    scope: str
    place: str
    is_installed: bool
    problems: tuple[str, ...] = ()


def diagnose(
    client: AgentClient, scope_name: str, scope: AgentScope, environ: Mapping[str, str]
) -> AgentDiagnosis:
    """Examine the settings of a client in one scope."""
    about = (client.name, client.title, scope_name)
    try:
        path = scope.file_of(client)
        text = read_settings(path, scope.base)
        is_toml = path.endswith(".toml")
        is_installed = text is not None and has_entries(text, is_toml=is_toml)
    except SettingsError as error:
        return AgentDiagnosis(*about, client.file, False, (error.sentence,))
    problems: list[str] = []
    if is_installed and text is not None:
        problems += _missing_events(client, text)
        problems += _switched_off(client, scope, text)
        problems += _answer(client, environ)
    return AgentDiagnosis(*about, path, is_installed, tuple(problems))


def document(found: Sequence[AgentDiagnosis]) -> dict[str, Json]:
    """Build the JSON document."""
    return {
        "schema": AGENT_DOCTOR_SCHEMA,
        "tool": {"version": __version__},
        "works": not any(each.problems for each in found),
        "agents": [
            {
                "agent": each.name,
                "scope": each.scope,
                **place_member("file", each.place),
                "installed": each.is_installed,
                "problems": [*each.problems],
            }
            for each in found
        ],
    }


def json_schema() -> Schema:
    """Build the JSON Schema of `patchgate.agent-doctor/1`."""
    agent: Shape = {
        "agent": str,
        "scope": about(str, "project, or user for the settings below the home folder"),
        **path_key("file"),
        "installed": bool,
        "problems": [str],
    }
    return document_schema(
        AGENT_DOCTOR_SCHEMA,
        "Whether the hooks of coding agents are installed, and answer",
        {
            "tool": {"version": str},
            "works": about(bool, "false: a hook is not complete, switched off, or does not answer"),
            "agents": [agent],
        },
    )


def _missing_events(client: AgentClient, text: str) -> Iterator[str]:
    for event in client.matchers:
        if event not in text:
            yield f"the event {event} is missing; install again"


def _switched_off(client: AgentClient, scope: AgentScope, text: str) -> Iterator[str]:
    if client.name == "claude" and '"disableAllHooks": true' in " ".join(text.split()):
        yield "disableAllHooks is true, so no hook runs; remove it"
    if client.name == "gemini" and _OFF_IN_GEMINI.search(text):
        yield "hooksConfig switches the hooks off; remove that"
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
