"""The JSON Schema of a component's baseline, `.patchgate/baselines/<component>.json`."""

from __future__ import annotations

from typing import Any

from patchgate.components.baseline import SCHEMA
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK
from patchgate.policy.component import Role
from patchgate.policy.component_texts import COMPONENT_ID


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of a baseline."""
    file = {
        "mode": {"enum": [REGULAR, EXECUTABLE, SYMLINK, GITLINK]},
        "oid": {"type": "string", "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$"},
        "role": {"enum": [role.value for role in Role]},
        "sha256": {
            "anyOf": [{"type": "string", "pattern": "^[0-9a-f]{64}$"}, {"type": "null"}],
            "description": "of the content; null for a gitlink",
        },
    }
    properties = {
        "component": {"type": "string", "pattern": f"^{COMPONENT_ID}$"},
        "files": {
            "type": "object",
            "description": "by path; one that is not plain is written as git quotes it",
            "propertyNames": {"minLength": 1},
            "additionalProperties": _object(file),
        },
        "schema": {"const": SCHEMA},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:patchgate:baseline:1",
        "title": "The baseline of a component",
        **_object(properties),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
