"""The JSON Schema of a component's baseline, `.patchgate/baselines/<component>.json`."""

from __future__ import annotations

from patchgate.components.baseline import SCHEMA
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK
from patchgate.policy.component import Role
from patchgate.policy.texts import COMPONENT_ID
from patchgate.report.schema import HEX, OID, Schema, Shape, about, document_schema, map_of, maybe, one_of


def json_schema() -> Schema:
    """Give the JSON Schema of a baseline."""
    file: Shape = {
        "mode": one_of(REGULAR, EXECUTABLE, SYMLINK, GITLINK),
        "oid": OID,
        "role": Role,
        "sha256": about(maybe(HEX), "of the content; null for a gitlink"),
    }
    files = about(map_of(file), "by path; one that is not plain is written as git quotes it")
    baseline: dict[str, Shape] = {
        "component": Schema(type="string", pattern=f"^{COMPONENT_ID}$"),
        "files": Schema(files, propertyNames={"minLength": 1}),
    }
    schema = document_schema(SCHEMA, "The baseline of a component", baseline)
    # The file is written with its keys in this order.
    return Schema(schema, required=sorted(schema["required"]))
