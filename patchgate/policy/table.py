"""What the tables of a config have in common: how strict they are, and the types of what a command takes."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from patchgate.policy.command_texts import (
    MAX_SECONDS,
    TIMEOUT,
    check_timeout,
    check_tool,
    check_value,
    check_variable,
)


class Section(BaseModel):
    """A table of the config: strict, frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Timeout: TypeAlias = Annotated[
    float | str,
    AfterValidator(check_timeout),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_SECONDS},
                {"type": "string", "pattern": f"^{TIMEOUT}$"},
            ]
        }
    ),
]
Variables: TypeAlias = dict[
    Annotated[str, AfterValidator(check_variable)], Annotated[str, AfterValidator(check_value)]
]
Tools: TypeAlias = Annotated[tuple[Annotated[str, AfterValidator(check_tool)], ...], Field(strict=False)]
TIMEOUT_TEXT = 'In seconds, or like "90s", "5m", "1h"; at most a day.'
ENV_TEXT = "Variables that its environment has besides those of the caller."
TOOLS_TEXT = "Programs that must be on PATH; without one, the command is not started."
