"""What an import makes: commands of the policy as TOML, what was left out and why, and notes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from patchgate.errors import ConfigError
from patchgate.git.quoting import printable
from patchgate.policy.command_files import FILES
from patchgate.values import dataclass, field, replace

_LONGEST_NAME = 41

Key: TypeAlias = "str | bool | tuple[str, ...] | Mapping[str, str]"
_ORDER = (
    *("kind", "command", "output", "new_only", "files", "exclude", "root", "needs", "provide", "scope"),
    *("timeout", "env", "on", "fix"),
)


@dataclass(frozen=True, slots=True)
class ImportedCommand:
    """One command: its name in the policy, its keys, and where it was (`.pre-commit-config.yaml: ruff`)."""

    name: str
    keys: Mapping[str, Key]
    origin: str

    @property
    def program(self) -> str:
        """The first word of its command."""
        command = self.keys["command"]
        assert isinstance(command, tuple)
        return command[0]

    def toml(self, table: str) -> str:
        """Write it as a table, with a comment that says where it is from.

        Args:
            table: the name of the table of commands, `commands` or `tool.patchgate.commands`.
        """
        lines = [f"# From {printable(self.origin, 100)}", f"[{table}.{self.name}]"]
        lines += [f"{name} = {_toml(self.keys[name])}" for name in _ORDER if self.keys.get(name)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Omission:
    """What was left out: its name in the other config, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ImportDraft:
    """The commands that one config gives, what was left out, and what the reader should know of the rest."""

    commands: tuple[ImportedCommand, ...] = ()
    omissions: tuple[Omission, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: ImportDraft) -> ImportDraft:
        return ImportDraft(
            self.commands + other.commands, self.omissions + other.omissions, self.notes + other.notes
        )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a reader may ask about the repository: whether a file or folder is in the working tree."""

    is_file: Callable[[str], bool]
    is_folder: Callable[[str], bool]

    def below(self, root: str) -> Surroundings:
        """Ask about a folder of the repository as if it were the repository."""
        if not root:
            return self
        return Surroundings(
            lambda path: self.is_file(f"{root}/{path}"), lambda path: self.is_folder(f"{root}/{path}")
        )


@dataclass(slots=True)
class DraftWriter:
    """Collects a draft while a config is read."""

    source: str
    commands: list[ImportedCommand] = field(default_factory=list)
    omissions: list[Omission] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def leave_out(self, what: str, why: str) -> None:
        self.omissions.append(Omission(what, why))

    def add(self, name: str, keys: Mapping[str, Key], origin: str) -> None:
        self.commands.append(ImportedCommand(command_name(name), keys, f"{self.source}: {origin}"))

    @property
    def draft(self) -> ImportDraft:
        return ImportDraft(tuple(self.commands), tuple(self.omissions), tuple(self.notes))


def command_name(text: str) -> str:
    """Make a name for a command out of any text."""
    name = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")
    return name[:_LONGEST_NAME].rstrip("-_") or "command"


def only_valid(draft: ImportDraft) -> ImportDraft:
    """Leave out commands that no policy can have: a pattern, a path or an argument is not allowed there."""
    # Imported here: only a whole import needs the models.
    from patchgate.policy.config import parse

    commands, omissions = [], list(draft.omissions)
    for each in draft.commands:
        try:
            parse(each.toml("commands").encode("utf-8"), "patchgate.toml")
        except ConfigError as error:
            omissions.append(Omission(each.origin, error.mistakes[0].message))
        else:
            commands.append(each)
    return ImportDraft(tuple(commands), tuple(omissions), draft.notes)


def without_repetition(draft: ImportDraft, known: Mapping[str, Sequence[str]]) -> ImportDraft:
    """Leave out commands that are there already, and give each of the others a name of its own.

    Args:
        known: the commands of the policy, by name.
    """
    taken = {name: tuple(words) for name, words in known.items()}
    commands, omissions = [], list(draft.omissions)
    for each in draft.commands:
        command = each.keys["command"]
        same = next((name for name, words in taken.items() if words == command), None)
        if same is not None:
            omissions.append(Omission(each.origin, f"[commands.{same}] does the same already"))
            continue
        name = _free_name(each.name, taken)
        assert isinstance(command, tuple)
        taken[name] = command
        commands.append(replace(each, name=name))
    return ImportDraft(tuple(commands), tuple(omissions), draft.notes)


def _free_name(name: str, taken: Iterable[str]) -> str:
    names, number, free = set(taken), 1, name
    while free in names:
        number += 1
        suffix = f"-{number}"
        free = name[: _LONGEST_NAME - len(suffix)] + suffix
    return free


def with_files(words: Sequence[str]) -> tuple[str, ...]:
    """Add `{files}` at the end of a command."""
    return (*words, FILES)


def _toml(value: Key) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _toml_text(value)
    if isinstance(value, Mapping):
        pairs = (f"{_toml_text(name)} = {_toml_text(each)}" for name, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return "[" + ", ".join(map(_toml_text, value)) + "]"


def _toml_text(text: str) -> str:
    # A JSON string is also a basic string of TOML, but for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
