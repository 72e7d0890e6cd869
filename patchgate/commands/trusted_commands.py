"""Whose commands may run at a commit: those of the trusted ref, and those allowed on this machine.

A branch of a stranger that is checked out must not run code at the next commit. So the whole definition of a
command counts: its table, `[environment]`, and the script of the tree that its command line runs. What a tool
itself runs (a plugin, a script of package.json) is not part of it.
"""

from __future__ import annotations

import os
import posixpath

from patchgate.storage.digest import sha256_text
from patchgate.values import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from patchgate.git.model import Entry
    from patchgate.policy.settings import Config

    EntryOf = Callable[[bytes], Entry | None]

_FORM = "patchgate.allowed-commands/1"
# How `allow` writes the file: the fast path reads no other JSON.
_HEAD, _BETWEEN, _END = f'{{"form": "{_FORM}", "allowed": [', ", ", "]}"
_MOST_BYTES = 4 << 20
_MOST_ENTRIES = 200

_SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
_INTERPRETERS = frozenset({"python", "pypy", "ruby", "perl", "php", "node", "bun", "deno", "lua"})
# What follows is code, or a module.
_INLINE = frozenset({"-c", "-m", "-e"})


def definition(name: str, config: Config, entry_of: EntryOf) -> str | None:
    """Write the whole definition of a command as JSON with one key a line; None if there is no such command.

    Args:
        config: the config that declares it.
        entry_of: gives the entry of a path in the tree that the command runs on.
    """
    table = config.written.get("commands", {}).get(name)
    if table is None:
        return None
    files = {}
    for path in programs_of(table):
        entry = entry_of(path.encode("utf-8", "surrogateescape"))
        if entry is not None and not entry.mode.startswith("04"):
            files[path] = f"{entry.mode} {entry.oid}"
    return definition_text(name, table, config.written.get("environment", {}), files)


def definition_text(
    name: str, table: Mapping[str, Any], environment: Mapping[str, Any], files: Mapping[str, str]
) -> str:
    """Write a definition.

    Args:
        table: the command as the config has it.
        environment: `[environment]` as the config has it.
        files: mode and object id of each file of the tree that its command lines run.
    """
    # 6 ms to import: the fast path has the texts already.
    import json

    whole = {"name": name, "command": table, "environment": environment, "files": files}
    return json.dumps(whole, sort_keys=True, indent=1)


def programs_of(table: Mapping[str, Any]) -> list[str]:
    """List the paths in the tree that the command lines of a table may run."""
    root = str(table.get("root", "")).rstrip("/")
    found: dict[str, None] = {}
    for key in ("command", "version_command", "fix"):
        for word in _programs(table.get(key, ())):
            path = posixpath.normpath(posixpath.join(root, word))
            if not path.startswith(("/", "..")):
                found[path] = None
    return list(found)


def _programs(words: Sequence[str]) -> Iterator[str]:
    """Name what a command line runs that may be in the tree: the program, or an interpreter's script."""
    if not words:
        return
    if "/" in words[0]:
        yield words[0]
    program = words[0].rpartition("/")[2]
    if program not in _SHELLS and program.rstrip("0123456789.") not in _INTERPRETERS:
        return
    for word in words[1:]:
        if word in _INLINE:
            return
        if word and not word.startswith("-"):
            yield word
            return


def digest_of(text: str) -> str:
    """Return the digest of a definition."""
    return sha256_text(text.encode())


@dataclass(frozen=True, slots=True)
class CommandTrust:
    """Decides which commands of a config may run.

    `trusted` is the config of the trusted ref, with the entries of its tree; None if there is none. `place`
    names it. `allowed` are the definitions allowed on this machine.
    """

    config: Config
    entry_of: EntryOf
    trusted: tuple[Config, EntryOf] | None
    place: str
    allowed: Mapping[str, str]

    def is_trusted(self, name: str) -> bool:
        """Whether a command may run without being asked for."""
        text = definition(name, self.config, self.entry_of)
        return text is not None and (text == self.trusted_text(name) or digest_of(text) in self.allowed)

    def trusted_text(self, name: str) -> str | None:
        """Return the definition in the trusted ref; None if it has none."""
        return None if self.trusted is None else definition(name, *self.trusted)

    def difference(self, name: str) -> list[str]:
        """Show what is new in a definition: against the trusted ref, else against what was allowed last."""
        # Imported here: only `commands trust` shows it.
        import difflib
        import json

        from patchgate.git.quoting import printable

        text = definition(name, self.config, self.entry_of) or ""
        known = self.trusted_text(name)
        if known is None:
            earlier = (each for each in self.allowed.values() if json.loads(each).get("name") == name)
            known = next(iter(reversed(list(earlier))), "")
        lines = difflib.unified_diff(known.splitlines(), text.splitlines(), lineterm="", n=1)
        return [printable(line, 300) for line in list(lines)[2:]]


def allowed_file(common_dir: str) -> str:
    """Return the file with the definitions that were allowed on this machine."""
    return os.path.join(common_dir, "patchgate", "allowed-commands.json")


def read_allowed(common_dir: str) -> dict[str, str]:
    """Read what was allowed on this machine, by digest; a file that cannot be used allows nothing."""
    import json

    try:
        kept: Any = json.loads(_content(common_dir))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict) or kept.get("form") != _FORM or not isinstance(kept.get("allowed"), list):
        return {}
    texts = [each for each in kept["allowed"] if isinstance(each, str)]
    return {digest_of(text): text for text in texts if _is_definition(text)}


def is_surely_allowed(common_dir: str, text: str) -> bool:
    """Whether a definition was allowed on this machine, in a file that `allow` wrote; else false."""
    # Of the module json only this is needed, in C; json itself takes 6 ms to import.
    from _json import scanstring

    try:
        content = _content(common_dir).decode("ascii")
    except (OSError, ValueError):
        return False
    if not content.startswith(_HEAD) or not content.endswith(_END):
        return False
    found, at = False, len(_HEAD)
    try:
        while content[at] == '"':
            each, at = scanstring(content, at + 1)
            found = found or each == text
            if content[at:] == _END:
                return found
            if not content.startswith(_BETWEEN, at):
                return False
            at += len(_BETWEEN)
    except (ValueError, IndexError):
        return False
    return False


def _content(common_dir: str) -> bytes:
    descriptor = os.open(allowed_file(common_dir), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return file.read(_MOST_BYTES)


def _is_definition(text: str) -> bool:
    import json

    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def allow(common_dir: str, texts: list[str]) -> None:
    """Allow definitions on this machine, in git's own folder, which no commit and no clone contains.

    Raises:
        UndecidedError: the file cannot be written.
    """
    import json
    from pathlib import Path

    from patchgate.errors import UndecidedError
    from patchgate.git.quoting import printable
    from patchgate.storage.atomic_write import write_atomically

    known = {text: None for text in read_allowed(common_dir).values() if text not in texts}
    kept = [*known, *texts][-_MOST_ENTRIES:]
    file = allowed_file(common_dir)
    try:
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        content = f"{_HEAD}{_BETWEEN.join(map(json.dumps, kept))}{_END}"
        write_atomically(Path(file), content.encode("ascii"), mode=0o600)
    except OSError as error:
        raise UndecidedError(
            f"{printable(file)} cannot be written: {error.strerror or error}", "make its folder writable"
        ) from error
