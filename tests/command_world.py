"""Commands of a policy, made in tests."""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.policy.command_settings import AnalysisFormat, CommandSettings


def analysis(
    command: tuple[str, ...],
    output: AnalysisFormat = "sarif",
    timeout: float = 600,
    env: Mapping[str, str] | None = None,
    required_tools: tuple[str, ...] = (),
) -> CommandSettings:
    """Make a command of `verify`."""
    return CommandSettings(
        kind="lint",
        command=command,
        timeout=timeout,
        env=dict(env or {}),
        required_tools=required_tools,
        output=output,
        on=("verify",),
    )
