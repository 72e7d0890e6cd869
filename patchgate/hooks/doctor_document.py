"""What doctor found, as JSON: `patchgate.doctor/1`, and the schema of it.

Decides the keys alone. Every text of a repository is escaped in it; a path that is not plain has its bytes in
base64 beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from patchgate import __version__
from patchgate.git.quoting import printable
from patchgate.hooks.doctor import Diagnosis, Place
from patchgate.hooks.doctor_findings import Finding, Hook
from patchgate.report.json import BASE64, place_member
from patchgate.report.rules import Level
from patchgate.report.verdict import Json

DOCTOR_SCHEMA = "patchgate.doctor/1"
_MOST_TEXT = 4000

_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}

Schema = dict[str, Any]


def document(diagnosis: Diagnosis, fixed: Sequence[str] = ()) -> dict[str, Json]:
    """Write down a diagnosis; `fixed` are the sentences that say what was mended before it."""
    return {
        "schema": DOCTOR_SCHEMA,
        "tool": {"version": __version__},
        "git": ".".join(str(part) for part in diagnosis.git),
        "runs": diagnosis.runs,
        "fixed": [*fixed],
        "worktrees": [_worktree(place) for place in diagnosis.places],
        "findings": [_finding(finding) for finding in diagnosis.findings],
    }


def _worktree(place: Place) -> dict[str, Json]:
    worktree, setting = place.worktree, place.worktree.hooks_path
    hooks_path: Json = None
    if setting is not None:
        hooks_path = {
            "value": _text(setting.value),
            "scope": setting.scope,
            **place_member("file", setting.file),
        }
    return {
        **place_member("path", worktree.path),
        "bare": worktree.is_bare,
        "runs": place.runs,
        **place_member("hooks_folder", worktree.folder or None),
        "hooks_path": hooks_path,
        "config_hooks": [
            {
                "name": _text(hook.name),
                "command": _text(hook.command),
                "events": [_text(event) for event in hook.events],
                "scope": hook.scope,
                "enabled": hook.is_enabled,
            }
            for hook in worktree.config_hooks
        ],
        "hooks": [_hook(hook) for hook in place.hooks],
        "findings": [_finding(finding) for finding in place.findings],
    }


def _hook(hook: Hook) -> dict[str, Json]:
    before, moved, answer = hook.previous, hook.displaced, hook.answer
    through = hook.managed if hook.is_through_manager else None
    return {
        "event": hook.event,
        **place_member("file", hook.file.path),
        "exists": hook.file.exists,
        "executable": hook.file.is_executable,
        "by": hook.file.writer or None,
        "format": hook.file.format,
        "before": None if before is None else {**place_member("file", before.path), "by": before.writer},
        "displaced": None if moved is None else place_member("file", moved.path),
        "reaches": None if answer is None or answer.version is None else _text(answer.version),
        "through": None if through is None else {"by": through.by, **place_member("config", through.config)},
    }


def _finding(finding: Finding) -> dict[str, Json]:
    return {
        "level": finding.level.value,
        "events": [*finding.events],
        "what": finding.what,
        "remedy": finding.remedy,
        "safe": finding.is_mended_by_install or finding.is_mended_by_renewal,
    }


def _text(text: str) -> str:
    return printable(text, _MOST_TEXT)


def json_schema() -> Schema:
    """Build the JSON Schema of `patchgate.doctor/1`."""
    finding = _object(
        {
            "level": {"enum": [level.value for level in Level]},
            "events": _list(_TEXT),
            "what": _TEXT,
            "remedy": _MAYBE_TEXT,
            "safe": _FLAG,
        }
    )
    hook = _object(
        {
            "event": _TEXT,
            "file": _TEXT,
            "exists": _FLAG,
            "executable": _FLAG,
            "by": _MAYBE_TEXT,
            "format": {"type": ["integer", "null"]},
            "before": _maybe(_object({"file": _TEXT, "by": _TEXT}, {"file_b64": BASE64})),
            "displaced": _maybe(_object({"file": _TEXT}, {"file_b64": BASE64})),
            "reaches": _MAYBE_TEXT,
            "through": _maybe(_object({"by": _TEXT, "config": _TEXT}, {"config_b64": BASE64})),
        },
        {"file_b64": BASE64},
    )
    hooks_path = _object({"value": _TEXT, "scope": _TEXT, "file": _MAYBE_TEXT}, {"file_b64": BASE64})
    named = {"name": _TEXT, "command": _TEXT, "events": _list(_TEXT), "scope": _TEXT, "enabled": _FLAG}
    worktree = _object(
        {
            "path": _TEXT,
            "bare": _FLAG,
            "runs": _FLAG,
            "hooks_folder": _MAYBE_TEXT,
            "hooks_path": _maybe(hooks_path),
            "config_hooks": _list(_object(named)),
            "hooks": _list(hook),
            "findings": _list(finding),
        },
        {"path_b64": BASE64, "hooks_folder_b64": BASE64},
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:patchgate:doctor:1",
        "title": "Whether the hooks of a repository really run",
        **_object(
            {
                "schema": {"const": DOCTOR_SCHEMA},
                "tool": _object({"version": _TEXT}),
                "git": _TEXT,
                "runs": _FLAG,
                "fixed": _list(_TEXT),
                "worktrees": _list(worktree),
                "findings": _list(finding),
            }
        ),
    }


def _object(properties: Schema, optional: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _maybe(value: Schema) -> Schema:
    return {"anyOf": [value, {"type": "null"}]}
