"""Compiles the commands of a commit into plain values: their settings, and what must be trusted."""

from __future__ import annotations

from patchgate.commands.trusted_commands import definition_text, programs_of
from patchgate.policy.command import ordered_commands, settings_text
from patchgate.policy.policy import Policy
from patchgate.policy.run_settings import EnvironmentSettings
from patchgate.values import asdict

Compiled = tuple[dict[str, object], ...]


def compile_commands(policy: Policy) -> Compiled | None:
    """Compile the commands that run at a commit, in their order; None if only the full check can run them.

    Of each: `settings` and `text` (what its answers are known by), `definition` without the files of the
    tree, and `programs`, the paths of these files; where there are some, `table` is what the config says.
    """
    config = policy.config
    if config.environment != EnvironmentSettings():
        # What it names must be there: the full check reports it.
        return None
    written = config.written.get("commands", {})
    environment = config.written.get("environment", {})
    found = []
    for name, settings in ordered_commands(config.commands, "commit"):
        table = written.get(name)
        if table is None:
            return None
        programs = programs_of(table)
        compiled: dict[str, object] = {
            "name": name,
            "settings": asdict(settings) | {"env": dict(settings.env)},
            "text": settings_text(settings),
            "definition": definition_text(name, table, environment, {}),
            "programs": programs,
            # A slow hook is recorded by the full check.
            "may_run": config.hooks.budget_ms is None,
        }
        if programs:
            compiled |= {"table": _plain(table), "environment": _plain(environment)}
        found.append(compiled)
    return tuple(found)


def _plain(value: object) -> object:
    """Copy a value of the config without the types that marshal does not know."""
    if hasattr(value, "items"):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
