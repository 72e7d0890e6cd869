"""Install the hooks into the settings of a coding agent, and uninstall them so that nothing is left.

A record beside the ledger (of a project) or in the user's state folder says where text was inserted: while
the file is as it was left, uninstalling restores its very bytes. It has no text of the settings. A file that
is broken, or reached through a link, is refused before anything is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from patchgate.agents.settings import settings_text
from patchgate.agents.settings.clients import CODEX_CONFIG, SECONDS, AgentClient
from patchgate.agents.settings.settings_text import SettingsError
from patchgate.errors import UsageError
from patchgate.git.quoting import printable
from patchgate.storage.atomic_write import write_atomically
from patchgate.values import dataclass

_MOST_SETTINGS = 1 << 20
_MOST_RECORD = 1 << 20


@dataclass(frozen=True, slots=True)
class AgentScope:
    """Where settings are: below `base`, the root of a project or the home folder; `record` is our own file.

    `folders` are the folders that agents have instead of the one below `base`, by the client's name.
    """

    base: str
    record: str
    folders: Mapping[str, str]

    def file_of(self, client: AgentClient) -> str:
        """Return the settings file of a client; for Codex its TOML, if that has hooks already.

        Raises:
            SettingsError: the TOML cannot be read.
        """
        if client.name == "codex":
            config = self._below(client, CODEX_CONFIG)
            text = read_settings(config, self.base)
            if text is not None and (settings_text.has_hooks(text)):
                return config
        return self._below(client, client.file)

    def _below(self, client: AgentClient, file: str) -> str:
        folder = self.folders.get(client.name)
        return os.path.join(folder, os.path.basename(file)) if folder else os.path.join(self.base, file)


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """What happens to a settings file: its text before and after; None for no file.

    `inserted` is where text was added, None if the text was not only added to. `kept` is what an uninstall
    leaves even if it is empty.
    """

    path: str
    before: str | None
    after: str | None
    inserted: settings_text.Ranges | None = None
    kept: Sequence[str] = ()

    @property
    def is_change(self) -> bool:
        """Whether the file becomes another one."""
        return self.before != self.after


def plan_install(
    client: AgentClient, scope: AgentScope, *, fail_open: bool = False, seconds: float = SECONDS
) -> SettingsChange:
    """Plan to add the entries of a client; entries of an earlier install are replaced.

    Raises:
        SettingsError: the settings cannot be edited.
    """
    path = scope.file_of(client)
    entries = client.entries(fail_open=fail_open, seconds=seconds)
    before = read_settings(path, scope.base)
    text = before
    if text is not None and settings_text.has_entries(text, is_toml=_is_toml(path)):
        text = _removed(path, text, scope)
    kept: Sequence[str] = ()
    inserted: settings_text.Ranges | None = None
    if text is None:
        after = settings_text.new_settings(client, entries)
    elif not text.strip():
        made = settings_text.new_settings(client, entries)
        after, inserted = made + text, [(0, len(made))]
    elif _is_toml(path):
        after, inserted = settings_text.add_to_toml(text, entries)
    else:
        after, inserted = settings_text.add_to_json(text, client, entries)
        kept = [each for each in settings_text.kept_parts(text) if each == "hooks" or each in entries]
    return SettingsChange(path, before, after, inserted, kept)


def plan_uninstall(client: AgentClient, scope: AgentScope) -> SettingsChange:
    """Plan to remove the entries of a client.

    Raises:
        SettingsError: the settings cannot be edited.
    """
    path = scope.file_of(client)
    before = read_settings(path, scope.base)
    if before is None or not settings_text.has_entries(before, is_toml=_is_toml(path)):
        return SettingsChange(path, before, before)
    return SettingsChange(path, before, _removed(path, before, scope))


def _removed(path: str, text: str, scope: AgentScope) -> str | None:
    """Return settings without our entries; None where there was no file before we made it."""
    known = _records(scope.record).get(path)
    if isinstance(known, dict) and known.get("sha256") == _digest(text):
        ranges = known.get("inserted")
        if ranges is None:
            return None
        return settings_text.without(text, [(int(start), int(length)) for start, length in ranges])
    if _is_toml(path):
        return settings_text.remove_from_toml(text)
    kept = known.get("kept", ()) if isinstance(known, dict) else ()
    return settings_text.remove_from_json(text, kept if isinstance(kept, list) else ())


def carry_out(change: SettingsChange, scope: AgentScope) -> None:
    """Write a planned change, and the record that lets it be undone exactly.

    Raises:
        UsageError: the system refuses to write.
    """
    place = Path(change.path)
    known = _records(scope.record).get(change.path)
    made_folder = isinstance(known, dict) and known.get("made_folder") is True
    try:
        if change.after is None:
            place.unlink(missing_ok=True)
            if made_folder and not os.listdir(place.parent):
                place.parent.rmdir()
        elif change.is_change:
            made_folder |= not place.parent.is_dir()
            place.parent.mkdir(parents=True, exist_ok=True)
            mode = stat.S_IMODE(place.stat().st_mode) if change.before is not None else 0o644
            write_atomically(place, change.after.encode("utf-8"), mode=mode)
            if change.before is not None:
                place.chmod(mode)
        _record(change, scope.record, made_folder=made_folder)
    except OSError as error:
        why = printable(error.strerror or str(error))
        raise UsageError(
            f"{printable(change.path)} could not be written: {why}", "check its folder"
        ) from error


def _record(change: SettingsChange, record: str, *, made_folder: bool) -> None:
    records = dict(_records(record))
    records.pop(change.path, None)
    if change.after is not None and settings_text.has_entries(change.after, is_toml=_is_toml(change.path)):
        ranges = None if change.inserted is None else [list(each) for each in change.inserted]
        # A file that we made has no ranges: it goes as a whole.
        known: dict[str, object] = {
            "sha256": _digest(change.after),
            "inserted": ranges,
            "made_folder": made_folder,
        }
        known["kept"] = list(change.kept)
        records[change.path] = known
    if not records:
        Path(record).unlink(missing_ok=True)
        return
    os.makedirs(os.path.dirname(record), mode=0o700, exist_ok=True)
    write_atomically(Path(record), json.dumps(records, sort_keys=True).encode("utf-8"), mode=0o600)


def record_of(common_dir: str) -> str:
    """Return the file that records what was installed into the settings of a project."""
    return os.path.join(common_dir, "patchgate", "agents.json")


def is_as_installed(path: str, record: str) -> bool:
    """Return whether a settings file still has the very text that an install left."""
    known = _records(record).get(path)
    try:
        text = read_settings(path, "")
    except SettingsError:
        return False
    return isinstance(known, dict) and text is not None and known.get("sha256") == _digest(text)


def _records(record: str) -> Mapping[str, object]:
    """Read the record; empty if it is missing or damaged, which only costs exactness."""
    try:
        with open(record, "rb") as file:
            found = json.loads(file.read(_MOST_RECORD))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _is_toml(path: str) -> bool:
    return path.endswith(".toml")


def read_settings(path: str, base: str) -> str | None:
    """Read a settings file; None if there is none.

    Raises:
        SettingsError: it, or a folder between `base` and it, is a link or something else than a file; or it
            is too large, unreadable, or not UTF-8.
    """
    shown = printable(path)
    above = os.path.dirname(path)
    for each in (above, path):
        if os.path.islink(each) and each != base:
            raise SettingsError(
                f"{printable(each)} is a symbolic link; settings are not changed through one",
                "install into the file that it names, or replace the link",
            )
    if not os.path.lexists(path):
        return None
    if not os.path.isfile(path):
        raise SettingsError(f"{shown} is not a file", "move it away, then install again")
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST_SETTINGS + 1)
        if len(raw) > _MOST_SETTINGS:
            raise SettingsError(f"{shown} is larger than {_MOST_SETTINGS >> 20} MiB", "make it smaller")
        return raw.decode("utf-8")
    except OSError as error:
        raise SettingsError(f"{shown} cannot be read: {error.strerror}", "check its permissions") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{shown} is not UTF-8", "fix the file, then try again") from error
