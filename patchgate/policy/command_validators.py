"""Check what a config says of a command: keys that do not fit its kind, its output or each other.

Like `validators`: each check returns its value or raises `TextError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import printable
from patchgate.policy.command_files import FILES
from patchgate.policy.validators import TextError, without_nul

OCCASIONS = ("commit", "push", "apply", "verify")
_OF_AUTHORS = frozenset({"role", "phase"})
_FOR_AUTHORS = frozenset({"kind", "command", "timeout", "env", "required_tools"}) | _OF_AUTHORS
_COMPARES = "compares findings or metrics, and this command has none"
_TEXT = 'output = "sarif" or "metrics"'


class CommandTable(Protocol):
    """What the checks read of a table `[commands.NAME]`."""

    @property
    def kind(self) -> str: ...
    @property
    def command(self) -> tuple[str, ...]: ...
    @property
    def role(self) -> str | None: ...
    @property
    def phase(self) -> str | None: ...
    @property
    def output(self) -> str: ...
    @property
    def new_only(self) -> bool: ...
    @property
    def on(self) -> tuple[str, ...]: ...
    @property
    def per_file(self) -> bool: ...
    @property
    def each_commit(self) -> bool: ...
    @property
    def jobs(self) -> int: ...
    @property
    def scope(self) -> str | None: ...
    @property
    def version(self) -> str | None: ...
    @property
    def version_command(self) -> tuple[str, ...]: ...


def check_command_key(name: str, value: Any, before: Mapping[str, Any]) -> Any:
    """Check that a written key of a command fits its kind: some are only for authors, some never.

    Args:
        name: the key.
        value: its checked value, which is returned.
        before: the checked keys that are declared before it.

    Raises:
        TextError: the key does not fit.
    """
    kind = before.get("kind")
    if kind is None:
        return value
    if kind != "author" and name in _OF_AUTHORS:
        raise TextError(f"`{name}` is only for authors", 'remove it, or write kind = "author"')
    if kind == "author" and name == "scope":
        raise TextError("an author has no `scope`: it always works in the whole tree", "remove this line")
    if kind == "author" and name == "side_effects":
        raise TextError("an author has no `side_effects`: its answer is the patch", "remove this line")
    if kind == "author" and name not in _FOR_AUTHORS:
        raise TextError(f"an author has no `{name}`: only a run starts it", "remove this line")
    if kind == "author" and name == "command" and FILES in value:
        raise TextError(f"an author gets no `{FILES}`: its brief names them", f'remove "{FILES}"')
    return value


def check_command(table: CommandTable) -> CommandTable:
    """Check the keys of a command against each other.

    Raises:
        TextError: an author lacks `role` or `phase`, or two keys contradict each other.
    """
    if table.kind == "author":
        missing = [f"`{name}`" for name in ("role", "phase") if getattr(table, name) is None]
        if missing:
            raise TextError(
                f"an author needs {' and '.join(missing)}",
                'write them like role = "code_author" and phase = "implementation"',
            )
        return table
    is_read = table.output in {"sarif", "metrics"}
    if table.kind == "format" and table.output != "text":
        raise TextError("a formatter is judged by what it changes, so it has no `output`", "remove `output`")
    if "verify" in table.on and not is_read:
        raise TextError(f"`verify` {_COMPARES}", f"write {_TEXT}")
    if table.new_only and not is_read:
        raise TextError(f"`new_only` {_COMPARES}", f"write {_TEXT}")
    if table.per_file and (FILES not in table.command or table.scope == "tree"):
        raise TextError(
            "`per_file` means that it reads only the files that it gets",
            f'add "{FILES}" to its command, and remove scope = "tree"',
        )
    if table.jobs > 1 and FILES not in table.command:
        raise TextError("`jobs` divides the files, and this command gets none", f'add "{FILES}" to it')
    if table.each_commit and "push" not in table.on:
        raise TextError("`each_commit` is for a push", 'add "push" to `on`')
    if table.version_command and table.version is None:
        raise TextError("`version_command` asks for what nothing requires", 'write version = ">=1.0"')
    return table


def check_occasions(names: tuple[str, ...]) -> tuple[str, ...]:
    """Check when a command runs: at least one occasion, each once."""
    if not names:
        raise TextError("the list must not be empty", 'write it like ["commit", "apply"]')
    if len(set(names)) != len(names):
        raise TextError("an occasion is named twice", "remove one of them")
    return names


def check_command_root(text: str) -> str:
    """Check the folder in which a command runs: a plain path from the root; empty is the root."""
    return text and _check_inner(text.rstrip("/"), "write it like services/api")


def check_needed(text: str) -> str:
    """Check what a command reads besides the changed files: a file or folder, as a path from the root."""
    return _check_inner(text.rstrip("/"), "write it like pyproject.toml, or like config for a folder")


def check_provided(text: str) -> str:
    """Check a folder of the working tree that is linked: a plain path from the root."""
    return _check_inner(text.rstrip("/"), "write it like node_modules, or like web/node_modules")


def _check_inner(text: str, like: str) -> str:
    without_nul(text)
    if not text or faults(RepoPath(text.encode("utf-8", "surrogateescape"))):
        raise TextError(f"`{printable(text, 80)}` is not a path below the repository root", like)
    return text
