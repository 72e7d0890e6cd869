"""Import commands: find the configs, read them, and add what they give to the policy's file.

The new text is parsed as a policy before it is written, so what was written loads. The old text stays as it
is, comments included: the new tables are added at its end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from patchgate.commands.importing import lefthook_config, lint_staged_config, pre_commit_config
from patchgate.commands.importing.documents import Value, read_document
from patchgate.commands.importing.draft import (
    ImportDraft,
    ImportedCommand,
    Omission,
    Surroundings,
    only_valid,
    without_repetition,
)
from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.policy.config import parse, parse_pyproject
from patchgate.values import dataclass

_Reader = Callable[[Mapping[str, Value], str, Surroundings], ImportDraft]
READERS: tuple[tuple[tuple[str, ...], _Reader], ...] = (
    (pre_commit_config.NAMES, pre_commit_config.read_pre_commit),
    (lefthook_config.NAMES, lefthook_config.read_lefthook),
    (lint_staged_config.NAMES, lint_staged_config.read_lint_staged),
)
"""The names of the configs, and what reads each."""
_POLICY, _PYPROJECT = "patchgate.toml", "pyproject.toml"
_NAMED = ", ".join((pre_commit_config.NAMES[0], lefthook_config.NAMES[0], "package.json", ".lintstagedrc"))


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """What an import adds, and to which file.

    `text` are the new tables; empty if there is nothing to add. `sources` are the configs that were read.
    """

    file: str
    sources: tuple[str, ...]
    draft: ImportDraft
    text: str
    _old: bytes | None
    _place: Path

    @property
    def commands(self) -> Sequence[ImportedCommand]:
        """The new commands."""
        return self.draft.commands

    def write(self) -> None:
        """Add the tables to the file.

        Raises:
            UsageError: the result would be no policy, or the file was changed in the meantime.
            UndecidedError: it could not be written.
        """
        from patchgate.storage.atomic_write import write_atomically

        new = _joined(self._old, self.text)
        _require_loads(new, self.file)
        if _read(self._place) != self._old:
            raise UsageError(f"{self.file} was changed in the meantime", "run the command again")
        mode = 0o666 if self._old is None else stat.S_IMODE(os.stat(self._place).st_mode)
        try:
            write_atomically(self._place, new, mode=mode)
        except OSError as error:
            raise UndecidedError(f"{self.file} could not be written: {error.strerror}") from error


def plan_import(root: str, policy_file: str | None, names: Sequence[str] = ()) -> PlannedImport:
    """Read the configs of other managers, and make the tables that say the same.

    Args:
        root: the working tree.
        policy_file: the file of the working tree with a policy; None if there is none, and it will be made.
        names: the configs, from the root; empty for those that are there.

    Raises:
        UsageError: a config cannot be read, or there is none.
        ConfigError: the policy's file has mistakes.
    """
    file = policy_file or _POLICY
    place = Path(root, file)
    if place.is_symlink():
        raise UsageError(f"{file} is a symbolic link; nothing was changed", "replace it by the file itself")
    old = _read(place)
    known = _commands(old, file)
    around = _surroundings(root)
    draft, sources = ImportDraft(), []
    for name, reader in _chosen(root, names):
        document, _ = read_document(root, name)
        draft += reader(document, name, around)
        sources.append(name)
    programs = [each for each in lint_staged_config.PROGRAMS if os.path.lexists(os.path.join(root, each))]
    omissions = tuple(Omission(each, "it is a program; write its commands by hand") for each in programs)
    draft += ImportDraft((), omissions)
    if not sources and not programs:
        raise UsageError("there is no config of another hook manager here", f"name it; known are {_NAMED}")
    draft = without_repetition(only_valid(draft), known)
    table = "tool.patchgate.commands" if file == _PYPROJECT else "commands"
    text = "\n".join(each.toml(table) for each in draft.commands)
    if old is not None and b"\r\n" in old:
        text = text.replace("\n", "\r\n")
    return PlannedImport(file, tuple(sources), draft, text, old, place)


def _chosen(root: str, names: Sequence[str]) -> list[tuple[str, _Reader]]:
    if names:
        return [(name, _reader_of(name)) for name in names]
    known = [(name, reader) for names, reader in READERS for name in names]
    return [
        (name, reader)
        for name, reader in known
        if os.path.lexists(os.path.join(root, name)) and _has_config(root, name)
    ]


def _has_config(root: str, name: str) -> bool:
    """Whether a `package.json` has a config of lint-staged; every other file is one."""
    if name != lint_staged_config.PACKAGE:
        return True
    try:
        return "lint-staged" in read_document(root, name)[0]
    except UsageError:
        # Not ours to report: nobody named it.
        return False


def _reader_of(name: str) -> _Reader:
    last = name.rpartition("/")[2]
    for known, reader in READERS:
        if last in known:
            return reader
    raise UsageError(f"{printable(name)} is not the config of a known hook manager", f"known are {_NAMED}")


def _surroundings(root: str) -> Surroundings:
    def is_inside(path: str) -> bool:
        return bool(path) and not path.startswith(("/", "-")) and ".." not in path.split("/")

    return Surroundings(
        lambda path: is_inside(path) and os.path.isfile(os.path.join(root, path)),
        lambda path: is_inside(path) and os.path.isdir(os.path.join(root, path)),
    )


def _read(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{place.name} cannot be read: {error.strerror}", "make it readable") from error


def _commands(raw: bytes | None, file: str) -> Mapping[str, Sequence[str]]:
    if raw is None:
        return {}
    config = parse_pyproject(raw, file) if file == _PYPROJECT else parse(raw, file)
    return {} if config is None else {name: each.command for name, each in config.commands.items()}


def _joined(old: bytes | None, text: str) -> bytes:
    before = old or b""
    end = b"\r\n" if b"\r\n" in before else b"\n"
    if before and not before.endswith(b"\n"):
        before += end
    return before + (end if before.strip() else b"") + text.encode("utf-8")


def _require_loads(raw: bytes, file: str) -> None:
    """Require that the new text is a policy.

    Raises:
        UsageError: it is not.
    """
    try:
        if file == _PYPROJECT:
            parse_pyproject(raw, file)
        else:
            parse(raw, file)
    except ConfigError as error:
        raise UsageError(
            f"the commands do not fit into {file}: {error.mistakes[0].message}; nothing was changed",
            "print them with --dry-run, and add them by hand",
        ) from error
