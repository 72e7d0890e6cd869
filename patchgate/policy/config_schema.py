"""The JSON Schema of `patchgate.toml`, made from the models that read it."""

from __future__ import annotations

from typing import Any

from patchgate.policy.config_tables import ConfigDocument


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of `patchgate.toml`."""
    schema = _without_null(ConfigDocument.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "patchgate.toml"}


def _without_null(node: Any) -> Any:
    """Take null out of a schema, since TOML has none: a key that may be null is one that may be absent.

    The default of a whole table goes too; its keys have theirs.
    """
    if isinstance(node, list):
        return [_without_null(element) for element in node if element != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    kept = {
        name: _without_null(value)
        for name, value in node.items()
        if name != "default" or not (value is None or isinstance(value, dict))
    }
    if len(kept.get("anyOf", ())) == 1:
        (only,) = kept.pop("anyOf")
        return {**only, **kept}
    return kept
