"""Make the settings from the checked keys of a config, given as JSON values.

The policy cache stores the written keys and loads them here, so that a commit under a known policy does not
import pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from patchgate.policy.command_settings import CommandSettings, as_command
from patchgate.policy.settings import (
    AgentSettings,
    ApplySettings,
    BaselineSettings,
    ClaimsSettings,
    CommitSettings,
    ComponentSettings,
    Config,
    ConfigWarning,
    ContentSettings,
    DetectionSettings,
    GovernanceSettings,
    HooksSettings,
    IntentsSettings,
    MessageSettings,
    OverrideSettings,
    OwnersSettings,
    PlaceholdersSettings,
    PolicySettings,
    PushSettings,
    ThresholdSettings,
    VerifySettings,
)
from patchgate.values import replace

Values = TypeVar("Values")


def settings_from(written: Mapping[str, Any]) -> Config:
    """Make the settings from checked keys; a key that is not written has its default."""

    def section(kind: type[Values], name: str) -> Values:
        return _filled(kind, written.get(name, {}))

    policy = dict(written.get("policy", {}))
    policy["commit"] = _filled(CommitSettings, policy.get("commit", {}))
    policy["agent"] = _filled(AgentSettings, policy.get("agent", {}))
    shared = written.get("environment", {})
    commands = {name: _command(each, shared) for name, each in written.get("commands", {}).items()}
    analyses = {name: each for name, each in commands.items() if "verify" in each.on}
    claims, warnings = _claims(written)
    for name, each in written.get("analyses", {}).items():
        if name in analyses:
            also = f"[commands.{name}] runs at verify too, and is used instead"
            warnings += (ConfigWarning(("analyses", name), also),)
        else:
            analyses[name] = _command(as_command(each), shared)
    return Config(
        required_version=written.get("required_version"),
        policy=_filled(PolicySettings, policy),
        content=section(ContentSettings, "content"),
        rules=dict(written.get("rules", {})),
        overrides=tuple(_filled(OverrideSettings, each) for each in written.get("overrides", ())),
        owners=tuple(_filled(OwnersSettings, each) for each in written.get("owners", ())),
        governance=section(GovernanceSettings, "governance"),
        profile=section(DetectionSettings, "profile"),
        message=section(MessageSettings, "message"),
        hooks=section(HooksSettings, "hooks"),
        push=section(PushSettings, "push"),
        commands=commands,
        apply=section(ApplySettings, "apply"),
        components={
            name: _filled(ComponentSettings, each) for name, each in written.get("components", {}).items()
        },
        baselines=section(BaselineSettings, "baselines"),
        analyses=analyses,
        thresholds=tuple(_filled(ThresholdSettings, each) for each in written.get("thresholds", ())),
        verify=section(VerifySettings, "verify"),
        intents=section(IntentsSettings, "intents"),
        placeholders=section(PlaceholdersSettings, "placeholders"),
        claims=claims,
        warnings=warnings,
        written=written,
    )


def _claims(written: Mapping[str, Any]) -> tuple[ClaimsSettings, tuple[ConfigWarning, ...]]:
    if "claims" not in written:
        return ClaimsSettings(), ()
    from patchgate.policy.claims_settings import parse_claims

    return parse_claims(written["claims"])


def _command(written: Mapping[str, Any], shared: Mapping[str, Any]) -> CommandSettings:
    """Make the settings of a command, with the variables and tools of `[environment]`."""
    # Only if there is a command: a plain commit does not import the validators.
    from patchgate.policy.validators import seconds

    settings = _filled(CommandSettings, written)
    tools = (*shared.get("required_tools", ()), *settings.required_tools)
    return replace(
        settings,
        timeout=seconds(settings.timeout),
        env={**shared.get("env", {}), **settings.env},
        required_tools=tuple(dict.fromkeys(tools)),
    )


def _filled(kind: type[Values], written: Mapping[str, Any]) -> Values:
    """Make settings from the keys of a table; lists become tuples."""
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
    )
