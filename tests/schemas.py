"""Validate documents by their JSON schemas. The form of each schema is checked once, for that takes long."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator


def require_valid(document: object, schema: Mapping[str, Any]) -> None:
    """Raise `jsonschema.ValidationError` for a document that its schema does not allow."""
    _validator(json.dumps(schema)).validate(document)


@functools.cache
def _validator(schema: str) -> Draft202012Validator:
    loaded = json.loads(schema)
    Draft202012Validator.check_schema(loaded)
    return Draft202012Validator(loaded)
