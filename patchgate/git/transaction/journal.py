"""The journal of one transaction, by which a later process undoes it or finishes it.

A chain of records (`storage.record`): one for the whole, then one for each entry. Contents are named by their
hash. The file's name is the state: `journal` while it may have to be undone, `landed` once it is applied,
`undone` once it was rolled back. Without one, no file was touched.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patchgate.errors import UndecidedError
from patchgate.git.model import folders_above
from patchgate.git.path import RepoPath, is_git_alias
from patchgate.git.quoting import quote_path
from patchgate.git.transaction.entries import (
    EXECUTABLE,
    FILE,
    LINK,
    Fingerprint,
    JournalEntry,
    remove_if_there,
)
from patchgate.storage.open_folder import OpenFolder
from patchgate.storage.owner import Owner
from patchgate.storage.record import START, Json, canonical_event, line_of, parse_line
from patchgate.values import dataclass

TYPE_CHECKING = False


_ID = re.compile(r"[0-9a-f]{16}")
_ASIDE = re.compile(rb"\.patchgate-[0-9a-f]{16}")
_IDENTITY = re.compile(r"[0-9]+:[0-9]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_BITS = 0o7777


def validate_journal(journal: Journal, name: str) -> None:
    """Check every name of a journal: it must be one that a transaction writes.

    Args:
        journal: as it was read.
        name: of the folder that contains it.

    Raises:
        ValueError: one is not.
    """
    _require(journal.id == name and _ID.fullmatch(name) is not None)
    _require(
        _IDENTITY.fullmatch(journal.tree) is not None and _IDENTITY.fullmatch(journal.common) is not None
    )
    _require(os.path.isabs(journal.work_tree) and "\0" not in journal.work_tree + journal.index_file)
    index_name = os.path.basename(journal.index_file)
    _require(bool(index_name))
    _require(
        os.path.isabs(journal.index_file) or (index_name == journal.index_file and "index" in index_name)
    )
    _require(not journal.prefix or _is_plain(journal.prefix))
    _require_entries(journal, os.fsencode(index_name))
    written = [RepoPath(each.path) for each in journal.entries if each.new and not each.is_index]
    above = folders_above(written)
    _require(all(_is_writable(path) and path in above for path in journal.new_folders))
    made_room = {path.raw for path in written}
    for path, bits in journal.removed_folders:
        _require(_is_writable(path) and 0 <= bits <= _MOST_BITS)
        _require(path in made_room or not made_room.isdisjoint(RepoPath(path).parents()))


def _require_entries(journal: Journal, index_name: bytes) -> None:
    asides = [entry.aside for entry in journal.entries] + [journal.lock_aside]
    _require(all(_ASIDE.fullmatch(each) for each in asides) and len(set(asides)) == len(asides))
    named = {(entry.is_index, entry.path) for entry in journal.entries}
    _require(len(named) == len(journal.entries))
    for entry in journal.entries:
        _require(_is_fingerprint(entry.old) and _is_fingerprint(entry.new))
        if entry.is_index:
            _require(entry.path == index_name and not entry.folder)
        else:
            _require(_is_writable(entry.path) and _is_above(entry))


def _is_above(entry: JournalEntry) -> bool:
    return entry.folder in RepoPath(entry.path).parents()


def _is_fingerprint(fingerprint: Fingerprint | None) -> bool:
    if fingerprint is None:
        return True
    is_kind = fingerprint.mode in {FILE, EXECUTABLE, LINK}
    return is_kind and fingerprint.size >= 0 and _DIGEST.fullmatch(fingerprint.sha256) is not None


def _is_writable(path: bytes) -> bool:
    return _is_plain(path) and not any(is_git_alias(part) for part in path.split(b"/"))


def _is_plain(path: bytes) -> bool:
    return b"\0" not in path and not any(part in {b"", b".", b".."} for part in path.split(b"/"))


def _require(is_so: bool) -> None:
    if not is_so:
        raise ValueError("has a name that no transaction writes")


JOURNAL, APPLIED, UNDONE = b"journal", b"landed", b"undone"
PREPARED = b"prepared"
"""Next to the journal once all new contents are on disk: before that, no file was changed."""
LOCK = b"lock"
_GROWING = b"journal.new"
_FORM = "patchgate.journal/1"
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Journal:
    """One transaction.

    `new_folders` are the folders that it makes, outermost first; `removed_folders` those that it replaces
    with a file, with their permission bits, innermost first. `prefix` is the user's current folder, which
    is never removed. `lock_aside` is a free name in the index's folder. `index_file` is a name alone if the
    index is in the git directory. `tree` and `common` identify the working tree and the repository's common
    directory (`identity_of`).
    """

    id: str
    owner: Owner
    work_tree: str
    index_file: str
    prefix: bytes
    note: Mapping[str, Json]
    new_folders: tuple[bytes, ...]
    removed_folders: tuple[tuple[bytes, int], ...]
    lock_aside: bytes
    entries: tuple[JournalEntry, ...]
    tree: str
    common: str

    @property
    def swaps(self) -> bool:
        """Return whether a path changes from a folder to a file, or back."""
        return bool(self.removed_folders) or any(entry.path in self.new_folders for entry in self.entries)

    def write(self, folder: OpenFolder) -> None:
        """Write the journal to its folder, complete and on disk when this returns."""
        folder.write(_GROWING, b"".join(self._lines()), mode=_MODE)
        folder.rename(_GROWING, JOURNAL)
        folder.flush()

    def _lines(self) -> Iterator[bytes]:
        previous = START
        for event in self._events():
            previous, line = line_of(canonical_event(event), previous)
            yield line

    def _events(self) -> Iterator[dict[str, Json]]:
        yield {
            "form": _FORM,
            "id": self.id,
            "owner": {
                "pid": self.owner.pid,
                "boot_id": self.owner.boot_id,
                "started": self.owner.started,
            },
            "work_tree": self.work_tree,
            "index_file": self.index_file,
            "prefix": _text(self.prefix),
            "note": self.note,
            "made": [_text(each) for each in self.new_folders],
            "vanishing": [[_text(path), bits] for path, bits in self.removed_folders],
            "lock_aside": _text(self.lock_aside),
            "places": len(self.entries),
            "tree": self.tree,
            "common": self.common,
        }
        for entry in self.entries:
            yield {
                "path": _text(entry.path),
                "folder": _text(entry.folder),
                "aside": _text(entry.aside),
                "old": _plain(entry.old),
                "new": _plain(entry.new),
                "is_index": entry.is_index,
            }


def read_journal(folder: OpenFolder) -> tuple[bytes, Journal] | None:
    """Read a transaction's journal and its state; None if there is none (yet, or any more).

    Raises:
        UndecidedError: there is one, and it is damaged.
    """
    for state in (JOURNAL, APPLIED, UNDONE):
        status = folder.status(state)
        if status is None:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise _damaged(folder, state)
        try:
            journal = _parsed(folder.read(state))
            validate_journal(journal, os.fsdecode(os.path.basename(folder.path)))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
            raise _damaged(folder, state) from None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UndecidedError(
                f"cannot read {quote_path(folder.at(state))}: {error.strerror or type(error).__name__}",
                "fix that, then run git patchgate recover",
            ) from error
        return state, journal
    return None


def identity_of(status: os.stat_result) -> str:
    """Identify a file or folder by device and inode."""
    return f"{status.st_dev}:{status.st_ino}"


def discard(above: OpenFolder, name: bytes) -> None:
    """Remove a transaction's folder with our files; a folder with other files stays.

    Nothing outside may depend on it any more. The journal is removed last but one, so a kill leaves it or
    nothing that counts.
    """
    with above.child(name) as folder:
        for each in (_GROWING, PREPARED, JOURNAL, APPLIED, UNDONE, LOCK):
            remove_if_there(folder, each)
        is_empty = not folder.names()
    if is_empty:
        above.remove(name)
        above.flush()


def _parsed(raw: bytes) -> Journal:
    if not raw.endswith(b"\n"):
        raise ValueError("is incomplete")
    events: list[Any] = []
    previous = START
    for line in raw[:-1].split(b"\n"):
        record = parse_line(line)
        if record.previous != previous:
            raise ValueError("does not follow the record before it")
        previous = record.hash
        events.append(record.event)
    head, *entries = events
    owner = head["owner"]
    if head["form"] != _FORM or head["places"] != len(entries):
        raise ValueError("is not in a known format")
    return Journal(
        id=str(head["id"]),
        owner=Owner(int(owner["pid"]), str(owner["boot_id"]), str(owner["started"])),
        work_tree=str(head["work_tree"]),
        index_file=str(head["index_file"]),
        prefix=_raw(head["prefix"]),
        note=dict(head["note"]),
        new_folders=tuple(_raw(each) for each in _list(head["made"])),
        removed_folders=tuple((_raw(path), int(bits)) for path, bits in _list(head["vanishing"])),
        lock_aside=_raw(head["lock_aside"]),
        entries=tuple(_entry(each) for each in entries),
        tree=str(head["tree"]),
        common=str(head["common"]),
    )


def _entry(event: Any) -> JournalEntry:
    return JournalEntry(
        path=_raw(event["path"]),
        folder=_raw(event["folder"]),
        aside=_raw(event["aside"]),
        old=_fingerprint(event["old"]),
        new=_fingerprint(event["new"]),
        is_index=event["is_index"] is True,
    )


def _plain(fingerprint: Fingerprint | None) -> Sequence[Json] | None:
    return None if fingerprint is None else [fingerprint.mode, fingerprint.size, fingerprint.sha256]


def _fingerprint(value: Any) -> Fingerprint | None:
    if value is None:
        return None
    mode, size, digest = value
    return Fingerprint(str(mode), int(size), str(digest))


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("is not a list")
    return value


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _raw(text: Any) -> bytes:
    return str(text).encode("utf-8", "surrogateescape")


def _damaged(folder: OpenFolder, state: bytes) -> UndecidedError:
    return UndecidedError(
        f"the journal {quote_path(folder.at(state))} of an interrupted apply is damaged",
        "run git status to see what it left (.patchgate-* files have old or new contents), repair that by"
        f" hand, then move {quote_path(os.path.normpath(folder.path))} away",
    )
