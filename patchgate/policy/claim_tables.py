"""The sections of the config about placeholders and claims: `config_tables` puts them in.

`[placeholders]` is as strict as every table. In `[claims]` a key and a value of any kind are taken as they
stand, and `claims.claims_from` makes what is used of them.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeAlias

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from patchgate.policy.claims import BOUNDS, MARKER_NAME, MAX_EXAMPLE, MAX_MARKERS, MAX_NAME, MAX_SUFFIX
from patchgate.policy.expressions import MAX_EXPRESSION
from patchgate.policy.settings import ClaimsSettings, MessageLevel
from patchgate.policy.table import Section

_DEFAULTS = ClaimsSettings()
_BEYOND = 2**63


class PlaceholdersTable(Section):
    """How loud the placeholder gate speaks of added lines; `[rules]` goes before it."""

    level: MessageLevel | None = Field(
        None,
        description="The level of every placeholder rule; without this key, `warning` for agents and `off` "
        "for people.",
    )


class MarkerTable(Section):
    """A placeholder of the repository's own, found besides the built-in ones."""

    name: str = Field(
        description="Its name, unique: small letters, digits and hyphens.",
        json_schema_extra={"pattern": f"^{MARKER_NAME}$", "maxLength": MAX_NAME},
    )
    pattern: str = Field(
        description="A regular expression (Python, for bytes) that a line matches which holds it; with few "
        "repeats, so that none takes long.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_EXPRESSION},
    )
    example: str = Field(
        description="A line that it finds.", json_schema_extra={"minLength": 1, "maxLength": MAX_EXAMPLE}
    )


def _plain(value: Any) -> Any:
    """Make of what TOML knows and JSON does not (dates, nan, huge numbers) what is no less wrong."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, int):
        # Python refuses to write a number of over 4,300 digits; TOML may hold one in base 16.
        return value if -_BEYOND < value < _BEYOND else _BEYOND if value > 0 else -_BEYOND
    is_plain = isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


def _within(name: str, kind: str = "integer") -> WithJsonSchema:
    least, most = BOUNDS[name]
    return WithJsonSchema({"type": kind, "minimum": least, "maximum": most})


Anything: TypeAlias = Annotated[Any, BeforeValidator(_plain)]
Flag: TypeAlias = Annotated[Anything, WithJsonSchema({"type": "boolean"})]
_SUFFIX = {"type": "string", "maxLength": MAX_SUFFIX, "pattern": "^[^/*\\u0000]*$"}


class ClaimsTable(Section):
    """How a claim that a placeholder remains is held against the files.

    A number beyond its bounds is brought within them, a value of the wrong type is replaced by the default,
    and an unknown key changes nothing. Every command that reads the policy warns of it: nothing here stops an
    adjudication.
    """

    # The schema forbids unknown keys all the same, so that an editor shows them.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    contradiction_guard_enabled: Flag = Field(
        _DEFAULTS.contradiction_guard_enabled,
        description="Whether a claim is held against the files at all; if not, every claim stands.",
    )
    contradiction_guard_strict_coverage: Flag = Field(
        _DEFAULTS.contradiction_guard_strict_coverage,
        description="Whether every file that matters has to be read whole before a claim is contradicted; "
        "`false` is for an emergency: any file that was read is enough.",
    )
    contradiction_scan_max_files: Annotated[Anything, _within("contradiction_scan_max_files")] = Field(
        _DEFAULTS.contradiction_scan_max_files, description="How many files are read at most: 1 to 1000."
    )
    contradiction_scan_max_total_bytes: Annotated[Anything, _within("contradiction_scan_max_total_bytes")] = (
        Field(
            _DEFAULTS.contradiction_scan_max_total_bytes,
            description="How many bytes are read at most, of all files together: 1024 to 50000000.",
        )
    )
    contradiction_scan_max_file_bytes: Annotated[Anything, _within("contradiction_scan_max_file_bytes")] = (
        Field(
            _DEFAULTS.contradiction_scan_max_file_bytes,
            description="How large a file may be that is read besides deliverables and changed files: 1 to "
            "10000000, and no more than the total.",
        )
    )
    contradiction_scan_min_files_for_sufficiency: Annotated[
        Anything, _within("contradiction_scan_min_files_for_sufficiency")
    ] = Field(
        _DEFAULTS.contradiction_scan_min_files_for_sufficiency,
        description="How many files have to be read before a claim is contradicted, unless there is one "
        "deliverable alone: 1 to 100.",
    )
    contradiction_scan_allowed_suffixes: Annotated[
        Anything, WithJsonSchema({"type": "array", "items": _SUFFIX})
    ] = Field(
        _DEFAULTS.contradiction_scan_allowed_suffixes,
        description='Ends of the names of files that are read, in any case; `""` stands for names without a '
        "suffix. It replaces the default list.",
    )
    contradiction_scan_timeout_seconds: Annotated[
        Anything, _within("contradiction_scan_timeout_seconds", "number")
    ] = Field(
        _DEFAULTS.contradiction_scan_timeout_seconds,
        description="After how many seconds reading ends, and the claim stands: 1 to 30.",
    )
    markers: Annotated[
        Anything,
        WithJsonSchema({"type": "array", "items": MarkerTable.model_json_schema(), "maxItems": MAX_MARKERS}),
    ] = Field(
        (),
        description=f"Placeholders of the repository's own, at most {MAX_MARKERS}; one that cannot be used "
        "finds nothing, and until it is mended no claim is contradicted.",
    )
    exclude: Annotated[Anything, WithJsonSchema({"type": "array", "items": {"type": "string"}})] = Field(
        (),
        description="Patterns of files that are not read besides those of the claim: what they hold neither "
        "upholds nor contradicts one.",
    )


def _any_table(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Read a table; what is none is taken as it stands, and told of by `claims_from`."""
    if not isinstance(value, dict):
        return _plain(value)
    known = ClaimsTable.model_fields
    return read({name: each if name in known else _plain(each) for name, each in value.items()})


Claims: TypeAlias = Annotated[SerializeAsAny[ClaimsTable], WrapValidator(_any_table)]
