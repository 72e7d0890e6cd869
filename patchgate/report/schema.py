"""JSON Schemas (draft 2020-12) of documents: how each is written down, and those of the report and of errors.

A shape looks like its document: a dict is an object of these keys alone (`key?` may be absent), a list of one
shape an array of it; `str`, `bool`, `int`, `float` and enumerations are values, also null with `| None`. A
`Schema` means itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import Any, TypeAlias, get_args

from patchgate.git.model import Status
from patchgate.report.rules import RULES, Level, Stage
from patchgate.report.verdict import Fixer, Outcome, Verdict

REPORT_SCHEMA = "patchgate.report/2"
ERROR_SCHEMA = "patchgate.error/1"
SOURCES = (
    *(
        "staged",
        "worktree",
        "commit",
        "merge",
        "patch",
        "edits",
        "envelope",
        "search-replace",
        "string-edits",
    ),
    *("files", "all", "message", "ref", "range"),
)
DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Schema(dict[str, Any]):
    """A JSON Schema itself; a plain dict is the shape of an object."""


Shape: TypeAlias = "Schema | type | UnionType | Mapping[str, Shape] | Sequence[Shape]"
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def document_schema(name: str, title: str, shape: Mapping[str, Shape]) -> Schema:
    """Build the schema of a document, `patchgate.report/2`; its first key, `schema`, has the name."""
    urn = "urn:" + name.replace(".", ":").replace("/", ":")
    written = schema_of({"schema": Schema(const=name), **shape})
    return Schema({"$schema": DRAFT, "$id": urn, "title": title, **written})


def schema_of(shape: Shape) -> Schema:
    """Build the schema that a shape means."""
    if isinstance(shape, Schema):
        return shape
    if isinstance(shape, UnionType):
        return or_null(get_args(shape)[0])
    if isinstance(shape, type) and issubclass(shape, Enum):
        return one_of(*(each.value for each in shape))
    if isinstance(shape, type):
        return Schema(type=_TYPES[shape])
    if isinstance(shape, Mapping):
        return Schema(
            type="object",
            properties={key.removesuffix("?"): schema_of(value) for key, value in shape.items()},
            required=[key for key in shape if not key.endswith("?")],
            additionalProperties=False,
        )
    (items,) = shape
    return Schema(type="array", items=schema_of(items))


def about(shape: Shape, description: str | None = None, **rules: Any) -> Schema:
    """Describe a value, with further constraints (`minItems=1`)."""
    said = {} if description is None else {"description": description}
    return Schema(schema_of(shape), **said, **rules)


def one_of(*words: str | None) -> Schema:
    """Allow these words alone."""
    return Schema(enum=list(words))


def maybe(shape: Shape) -> Schema:
    """Allow null as an alternative."""
    return Schema(anyOf=[schema_of(shape), {"type": "null"}])


def or_null(shape: Shape) -> Schema:
    """Allow null as one more type, or as one more word of an enumeration."""
    schema = schema_of(shape)
    if "enum" in schema:
        return Schema(schema, enum=[*schema["enum"], None])
    return Schema(schema, type=[schema["type"], "null"])


def map_of(shape: Shape) -> Schema:
    """Allow an object of any keys."""
    return Schema(type="object", additionalProperties=schema_of(shape))


COUNT = Schema(type="integer", minimum=0)
MAYBE_COUNT = or_null(COUNT)
ORDINAL = Schema(type="integer", minimum=1)
HEX = Schema(type="string", pattern="^[0-9a-f]{64}$")
DIGEST = Schema(type="string", pattern="^sha256:[0-9a-f]{64}$")
OID = Schema(type="string", pattern="^[0-9a-f]{40}([0-9a-f]{24})?$")
BASE64 = Schema(type="string", contentEncoding="base64")


def path_key(key: str, text: Shape = str) -> dict[str, Shape]:
    """Return the keys that `report.json.path_member` writes; `text`: `str | None` if there may be no path."""
    return {key: text, f"{key}_b64?": BASE64}


def path_keys(*keys: str) -> dict[str, Shape]:
    """Return the keys that `report.json.path_list` writes for each of these lists."""
    beside = Schema(type="array", items=or_null(BASE64))
    return {name: shape for key in keys for name, shape in ((key, [str]), (f"{key}_b64?", beside))}


_MODE = or_null(Schema(type="string", pattern="^[0-7]{6}$"))
_CODE = one_of(*sorted(stage.code for stage in Stage))
_COUNTS: dict[str, Shape] = {"n_hunks": COUNT, "added_lines": MAYBE_COUNT, "removed_lines": MAYBE_COUNT}
_GATE: Shape = {"gate": str, "outcome": Outcome, "reason?": str}
_FILE: Shape = {
    **path_key("path", about(str, "quoted as git does, where path_b64 is present")),
    **path_key("old_path", str | None),
    "status": Status,
    "old_mode": _MODE,
    "new_mode": _MODE,
    "added_lines": MAYBE_COUNT,
    "removed_lines": MAYBE_COUNT,
    "binary": bool,
}
_CHANGE: Shape = {
    "id": DIGEST,
    "change_id": DIGEST,
    "verdict": Verdict,
    "source": {"kind": one_of(*SOURCES), "ref": str | None},
    "profile": str,
    "profile_reason": str | None,
    "base": OID,
    "after": OID,
    "commit": maybe(OID),
    "base_commit": maybe(OID),
    "policy": {"digest": DIGEST, "from": str},
    "stage": maybe(Stage),
    "code": maybe(_CODE),
    "stats": {"files": COUNT, **_COUNTS, "patch_id": str | None},
    "limits": map_of({"limit": MAYBE_COUNT, "used": COUNT}),
    "files": [Schema({"$ref": "#/$defs/file"})],
    "gates": [Schema({"$ref": "#/$defs/gate"})],
    "context_gates": [Schema({"$ref": "#/$defs/gate"})],
    "findings": [Schema({"$ref": "#/$defs/finding"})],
    "repaired": [{"patch_line": or_null(ORDINAL), "message": str}],
}
# Each rule has its own details; these are the keys that all have, and those that some share.
_DETAILS = Schema(
    type="object",
    properties={
        "pattern": True,
        "limit": True,
        "actual": True,
        "split": schema_of([[str]]),
        "too_large": schema_of([str]),
        "worktree": schema_of(str),
    },
    patternProperties={
        "_b64$": {
            "type": ["string", "array"],
            "contentEncoding": "base64",
            "description": "the bytes of the paths of the key without _b64; null where the text is exact",
        }
    },
    required=["pattern", "limit", "actual"],
)
_FIX: Shape = {
    "applicability": str,
    "patch_line": ORDINAL,
    "last_patch_line": ORDINAL,
    "replace_with": about(str | None, "null leaves the lines out"),
}
FINDING = schema_of(
    {
        "rule": one_of(*sorted(RULES)),
        "stage": Stage,
        "code": _CODE,
        "level": Level,
        **path_key("path", str | None),
        "line": or_null(ORDINAL),
        "side": one_of("new", "old"),
        "message": str,
        "hint": str | None,
        "who_can_fix": Fixer,
        "fix": maybe(_FIX),
        "details": _DETAILS,
        "fingerprint": HEX,
    }
)
_ATTEMPT = maybe(
    {
        "id": str,
        **path_key("dir", str | None),
        "applied": bool,
        "fallback_reason": str | None,
        **path_key("temp_path", str | None),
    }
)
_FAILURE: Shape = {
    "stage": maybe(Stage),
    "code": maybe(_CODE),
    "fallback_reason": about(str | None, "the rule, else the gate without an answer"),
    "patch_id": str | None,
    **_COUNTS,
    **path_key("temp_path", str | None),
}
_RETRY: Shape = {
    "allowed": bool,
    "number": COUNT,
    "of": MAYBE_COUNT,
    "command": str | None,
    "chain": str | None,
    "reason": str | None,
}


def json_schema() -> Schema:
    """Build the JSON Schema of `patchgate.report/2`."""
    report: dict[str, Shape] = {
        "tool": {"version": str, "rules": ORDINAL},
        "verdict": Verdict,
        "changes": [Schema({"$ref": "#/$defs/change"})],
        "attempt": _ATTEMPT,
        "failure": maybe(_FAILURE),
        "retry": maybe(_RETRY),
        "warnings": [str],
        "recovery": [{"message": str, "command": str}],
        "approve": str | None,
    }
    defined = {"change": _CHANGE, "file": _FILE, "gate": _GATE, "finding": FINDING}
    schema = document_schema(REPORT_SCHEMA, "What patchgate says about one or more changes", report)
    return Schema({**schema, "$defs": {name: schema_of(shape) for name, shape in defined.items()}})


def error_schema() -> Schema:
    """Build the JSON Schema of `patchgate.error/1`, which ends a command without a verdict."""
    mistake: Shape = {
        "file": str,
        "line": or_null(ORDINAL),
        "key": str | None,
        "message": str,
        "hint": str | None,
    }
    kind = one_of("config", "internal", "undecided", "usage")
    error: Shape = {"kind": kind, "message": str, "hint": str | None, "mistakes?": [mistake]}
    title = "What ended a command of patchgate without a verdict"
    return document_schema(ERROR_SCHEMA, title, {"error": error, "attempt": _ATTEMPT})
