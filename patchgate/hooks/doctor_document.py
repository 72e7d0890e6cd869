"""What doctor found, as JSON: `patchgate.doctor/1`, and the schema of it.

Decides the keys alone. Every text of a repository is escaped in it; a path that is not plain has its bytes in
base64 beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate import __version__
from patchgate.git.quoting import printable
from patchgate.hooks.doctor import Diagnosis, Place
from patchgate.hooks.doctor_findings import Finding, Hook
from patchgate.report.json import place_member
from patchgate.report.rules import Level
from patchgate.report.schema import (
    Schema,
    Shape,
    document_schema,
    maybe,
    path_key,
)
from patchgate.report.verdict import Json

DOCTOR_SCHEMA = "patchgate.doctor/1"
_MOST_TEXT = 4000


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
    finding: Shape = {"level": Level, "events": [str], "what": str, "remedy": str | None, "safe": bool}
    hook: Shape = {
        "event": str,
        **path_key("file"),
        "exists": bool,
        "executable": bool,
        "by": str | None,
        "format": int | None,
        "before": maybe({**path_key("file"), "by": str}),
        "displaced": maybe(path_key("file")),
        "reaches": str | None,
        "through": maybe({"by": str, **path_key("config")}),
    }
    config_hook: Shape = {"name": str, "command": str, "events": [str], "scope": str, "enabled": bool}
    worktree: Shape = {
        **path_key("path"),
        "bare": bool,
        "runs": bool,
        **path_key("hooks_folder", str | None),
        "hooks_path": maybe({"value": str, "scope": str, **path_key("file", str | None)}),
        "config_hooks": [config_hook],
        "hooks": [hook],
        "findings": [finding],
    }
    diagnosis: dict[str, Shape] = {
        "tool": {"version": str},
        "git": str,
        "runs": bool,
        "fixed": [str],
        "worktrees": [worktree],
        "findings": [finding],
    }
    return document_schema(DOCTOR_SCHEMA, "Whether the hooks of a repository really run", diagnosis)
