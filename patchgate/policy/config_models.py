"""The pydantic models that check a config, generated from the annotations in `settings`.

To add a section or a key, change `settings` and, for a new type, `config_types`. Only `[claims]` is lax: it
accepts any key and value, and `claims_settings.parse_claims` decides what is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    create_model,
)

from patchgate.policy import command_settings, config_types, run_settings, settings
from patchgate.policy.claims_settings import BOUNDS
from patchgate.policy.command_settings import AnalysisSettings, CommandSettings
from patchgate.policy.command_validators import check_command, check_command_key
from patchgate.policy.config_types import ConfigSection, RoleTimeouts, Timeout
from patchgate.policy.run_validators import check_authors, check_budget
from patchgate.policy.settings import (
    ClaimsSettings,
    ComponentSettings,
    Config,
    MarkerSettings,
    OwnersSettings,
    ThresholdSettings,
)
from patchgate.policy.validators import COMPONENT_ID, MAX_MARKERS, MAX_SUFFIX, NAME, TextError, refuse_circle
from patchgate.values import MISSING, fields, is_dataclass

MAX_THRESHOLDS = 100
MAX_OWNERS = 100
_BEYOND = 2**63
_NAMES = {**vars(settings), **vars(command_settings), **vars(run_settings), "types": config_types}


def check_components(tables: Mapping[str, ComponentSettings]) -> Mapping[str, ComponentSettings]:
    """Return the components.

    Raises:
        ValueError: two baselines would share a file on some systems, or the parents form a cycle.
    """
    folded: dict[str, str] = {}
    for name in tables:
        other = folded.setdefault(name.lower(), name)
        if other != name:
            raise TextError(f"`{other}` and `{name}` differ only in case", "rename one of them")
    refuse_circle({name: table.parent for name, table in tables.items()})
    return tables


def check_thresholds(tables: Sequence[ThresholdSettings]) -> Sequence[ThresholdSettings]:
    """Return the thresholds.

    Raises:
        ValueError: there are too many, or two have the same name.
    """
    if len(tables) > MAX_THRESHOLDS:
        raise TextError(f"there are {len(tables)} thresholds; the limit is {MAX_THRESHOLDS}")
    names = [table.name for table in tables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TextError(f"two thresholds are named `{twice}`", "rename one of them")
    return tables


def check_owners(tables: Sequence[OwnersSettings]) -> Sequence[OwnersSettings]:
    """Return the tables of owners.

    Raises:
        ValueError: there are too many, or one asks for more approvals than it names signers.
    """
    if len(tables) > MAX_OWNERS:
        raise TextError(f"there are {len(tables)} tables of owners; the limit is {MAX_OWNERS}")
    for table in tables:
        if table.signers and len(set(table.signers)) < table.approvals:
            raise TextError(
                f"approvals = {table.approvals}, but only {len(set(table.signers))} signers are named",
                "name more signers, or lower `approvals`",
            )
    return tables


def _named(pattern: str, **more: Any) -> Any:
    return Field(json_schema_extra={"propertyNames": {"pattern": f"^{pattern}$"}, **more})


_WHOLE: dict[str, tuple[Any, ...]] = {
    "commands": (_named(NAME), AfterValidator(check_authors)),
    "analyses": (_named(NAME, deprecated=True),),
    "components": (_named(COMPONENT_ID), AfterValidator(check_components)),
    "thresholds": (AfterValidator(check_thresholds),),
    "owners": (AfterValidator(check_owners),),
    "environment": (Field(),),
    "run": (AfterValidator(check_budget),),
}
"""The checks on all tables of a kind together."""
_OLD_ANALYSES: Any = Annotated[
    Mapping[config_types.AnalysisName, AnalysisSettings], "The old form of commands of `verify`, by name."
]


def _fits_kind(name: str) -> AfterValidator:
    """Check a key of a command against the keys that are declared before it, like its kind."""

    def check(value: Any, info: ValidationInfo) -> Any:
        return check_command_key(name, value, info.data)

    return AfterValidator(check)


def _table(kind: type) -> type[ConfigSection]:
    """Make the model of a settings class: its keys, its defaults, its docstring."""
    hints = get_type_hints(kind, _NAMES, include_extras=True)
    keys: dict[str, Any] = {}
    for each in fields(kind):
        if not each.metadata.get("is_key", True):
            continue
        hint = _of_table(hints[each.name])
        if kind is ClaimsSettings:
            hint = Annotated[_lax_type(each.name), get_args(hint)[-1]]
        elif each.name == "timeout":
            hint = Timeout
        elif each.name == "role_timeouts":
            hint = RoleTimeouts
        if kind is CommandSettings and each.name != "kind":
            hint = Annotated[hint, _fits_kind(each.name)]
        if kind is Config and each.name in _WHOLE:
            hint = Annotated[hint, *_WHOLE[each.name]]
        default = ... if each.default is MISSING else each.default
        if each.default_factory is not MISSING:
            default = each.default_factory()
        keys[each.name] = (hint, _table_of(type(default))() if is_dataclass(default) else default)
    if kind is Config:
        keys |= {
            name: (Annotated[_table_of(each), *_WHOLE[name]], _table_of(each)())
            for name, each in run_settings.SECTIONS.items()
        }
        keys["analyses"] = (Annotated[_of_table(_OLD_ANALYSES), *_WHOLE["analyses"]], {})
    name = (
        "BaselinesTable" if kind is settings.BaselineSettings else kind.__name__.replace("Settings", "Table")
    )
    base = _LaxConfigSection if kind is ClaimsSettings else ConfigSection
    return create_model(name, __base__=base, __doc__=kind.__doc__, __module__=__name__, **keys)


_table_of: Callable[[Any], Any] = cache(_table)


def _of_table(hint: Any) -> Any:
    """Replace settings by models in an annotation; a plain string in it is the description of the key."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        more = (Field(description=each) if isinstance(each, str) else each for each in arguments[1:])
        hint = Annotated[_of_table(arguments[0]), *more]
    elif hint is ClaimsSettings:
        hint = Annotated[_table_of(hint), SerializeAsAny(), WrapValidator(_any_table)]  # type: ignore[type-arg]
    elif hint is CommandSettings:
        hint = Annotated[_table_of(hint), AfterValidator(check_command)]
    elif is_dataclass(hint):
        hint = _table_of(hint)
    elif origin is tuple and is_dataclass(arguments[0]):
        hint = Annotated[GenericAlias(tuple, (_table_of(arguments[0]), ...)), Field(strict=False)]
    elif origin is Mapping:
        hint = GenericAlias(dict, (arguments[0], _of_table(arguments[1])))
    return hint


class _LaxConfigSection(ConfigSection):
    # The schema forbids unknown keys all the same, so that an editor shows them.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})


def _plain(value: Any) -> Any:
    """Convert values that JSON lacks (dates, nan, huge numbers) to values that are just as invalid."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, int):
        # Python does not print a number of over 4,300 digits; TOML may contain one in base 16.
        return value if -_BEYOND < value < _BEYOND else _BEYOND if value > 0 else -_BEYOND
    is_plain = isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))
    return value if is_plain else str(value)


_Anything: TypeAlias = Annotated[Any, BeforeValidator(_plain)]


def _lax_type(name: str) -> Any:
    """Return the type of a key of `[claims]`: it accepts anything; the schema says what is usable."""
    if name in BOUNDS:
        least, most = BOUNDS[name]
        kind = "number" if name == "contradiction_scan_timeout_seconds" else "integer"
        schema: dict[str, Any] = {"type": kind, "minimum": least, "maximum": most}
    elif name == "contradiction_scan_allowed_suffixes":
        suffix = {"type": "string", "maxLength": MAX_SUFFIX, "pattern": "^[^/*\\u0000]*$"}
        schema = {"type": "array", "items": suffix}
    elif name == "markers":
        marker = _table_of(MarkerSettings).model_json_schema()
        schema = {"type": "array", "items": marker, "maxItems": MAX_MARKERS}
    elif name == "exclude":
        schema = {"type": "array", "items": {"type": "string"}}
    else:
        schema = {"type": "boolean"}
    return Annotated[_Anything, WithJsonSchema(schema)]


def _any_table(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Read a table; anything else is passed on, and `parse_claims` reports it."""
    if not isinstance(value, dict):
        return _plain(value)
    known = _table_of(ClaimsSettings).model_fields
    return read({name: each if name in known else _plain(each) for name, each in value.items()})


ConfigDocument = _table_of(Config)
