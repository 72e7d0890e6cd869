"""Commands of the config: when they run and in which order, their files, their arguments, their digests.

Decides which files of a change a command gets, and the argument lists that name them. Two declarations are
equal if their digests are. Does not run anything or look for programs (`commands` does).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from patchgate.values import asdict

if TYPE_CHECKING:
    from patchgate.policy.command_settings import CommandSettings, Occasion
    from patchgate.policy.run_validators import PhaseName

FORM = "patchgate.analyses/1"


def ordered_commands(
    commands: Mapping[str, CommandSettings], occasion: Occasion = "apply"
) -> list[tuple[str, CommandSettings]]:
    """List the commands of an occasion in the order they run: linters and formatters, then all tests.

    Each is in config order. Authors are left out: they write patches, and only a run starts them.
    """
    checks = [each for each in commands.items() if each[1].kind != "author" and occasion in each[1].on]
    return sorted(checks, key=lambda named: named[1].kind == "test")


def author_of(
    commands: Mapping[str, CommandSettings], phase: PhaseName
) -> tuple[str, CommandSettings] | None:
    """Return the author of a phase, with its name; None if the phase has none."""
    return next((each for each in commands.items() if each[1].phase == phase), None)


def analyses_digest(analyses: Mapping[str, CommandSettings]) -> str:
    """Return the digest of analyses, `sha256:…`; their order does not matter."""
    lines = [f"{canonical_text(name, analyses[name])}\n" for name in sorted(analyses)]
    text = f"{FORM}\n" + "".join(lines)
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def canonical_text(name: str, settings: CommandSettings) -> str:
    """Write what an analysis depends on as one line of canonical JSON, in ASCII.

    Keys that are newer than `[commands.NAME] on` are left out where they say nothing: the digests of older
    intents stay.
    """
    # Imported here: most callers write no JSON.
    import json

    plain = {
        "name": name,
        "command": list(settings.command),
        "format": settings.output,
        "timeout": float(settings.timeout),
        "env": dict(settings.env),
        "required_tools": list(settings.required_tools),
        **_written({"files": settings.files, "exclude": settings.exclude, "root": settings.root}),
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def settings_text(settings: CommandSettings) -> str:
    """Write all settings of a command as one text, by which its answers are known."""
    import json

    plain = {**asdict(settings), "timeout": float(settings.timeout)}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _written(keys: Mapping[str, str | tuple[str, ...]]) -> dict[str, str | list[str]]:
    return {name: value if isinstance(value, str) else list(value) for name, value in keys.items() if value}
