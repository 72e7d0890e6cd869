"""Which files no agent may write: those of the policy, and its user's settings of agents and of git.

The settings of a project are known by their names (`policy.file_kinds`). Does not import the pipeline.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

_BASELINES = ".patchgate/baselines/"
_PYPROJECT, _PRE_COMMIT = "pyproject.toml", ".pre-commit-config.yaml"


def is_policy_by_name(path: str) -> bool:
    """Return whether a path below the root of a working tree is of the policy, whatever it contains."""
    small = path.casefold()
    return small == "patchgate.toml" or (
        f"{small}/".startswith(".patchgate/") and not f"{small}/".startswith(_BASELINES)
    )


def changes_policy(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Return whether a file is of the policy and changes.

    Args:
        path: from the root of the working tree.
        before: what it is; None for no file.
        after: what it becomes.
    """
    small, both = path.casefold(), (before or b"") + (after or b"")
    if before == after:
        return False
    if small == _PRE_COMMIT:
        return b"patchgate" in both
    if small == _PYPROJECT:
        is_named = b"patchgate" in both or b"\\" in both
        return is_named and _table(before) != _table(after)
    return is_policy_by_name(path)


def _table(content: bytes | None) -> object:
    """Return the table of patchgate in a pyproject.toml; its bytes where it cannot be read."""
    import tomllib

    try:
        tool = tomllib.loads((content or b"").decode("utf-8")).get("tool", {})
    except (ValueError, RecursionError):
        return content
    return tool.get("patchgate") if isinstance(tool, dict) else None


def use_of_settings(path: str, environ: Mapping[str, str]) -> str | None:
    """Say what reads its hooks from an absolute path in the home folder; None if nothing does."""
    home = environ.get("HOME", "")
    config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    gits = [f"{home}/.gitconfig", f"{config}/git/config", "/etc/gitconfig"]
    claude = environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    codex = environ.get("CODEX_HOME") or f"{home}/.codex"
    files = [f"{claude}/settings.json", f"{claude}/settings.local.json", f"{home}/.cursor/hooks.json"]
    files += [f"{codex}/config.toml", f"{codex}/hooks.json", f"{home}/.gemini/settings.json"]
    if _is_one_of(path, files):
        return "where a coding agent reads its hooks"
    return "where git reads which hooks run" if _is_one_of(path, gits) else None


def _is_one_of(path: str, files: Sequence[str]) -> bool:
    kept = [each for file in files if os.path.isabs(file) for each in (os.path.normpath(file), _real(file))]
    return path.casefold() in {each.casefold() for each in kept}


def _real(path: str) -> str:
    return os.path.realpath(path) if "\0" not in path else path
