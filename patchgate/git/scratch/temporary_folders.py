"""Temporary folders outside the repository: recorded before they are made, and removed by their record.

After a kill, a folder is removed only if the owner in its record has ended and it is the same folder (device
and inode), under the record's token in a cache folder's `touched` or `kept`; never by its name alone. Records
are in `<common dir>/patchgate/scratch/`; after a power cut a folder may remain without one.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterator

from patchgate.errors import UndecidedError
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.scratch_record import FolderRecord, claim_folder, identity_of
from patchgate.storage.owner import Owner

_RECORD = re.compile(r"place-[0-9a-f]{16}\.json")
_PARENTS = {"touched", "kept"}
_MOST_BYTES = 1 << 16
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def records_folder(repository: Repository) -> str:
    """Return the folder of the records; it is created if missing."""
    folder = os.path.join(repository.common_dir, "patchgate", "scratch")
    with translate_errors("cannot write the records of scratch trees"):
        os.makedirs(folder, 0o700, exist_ok=True)
    return folder


def require_outside(repository: Repository, cache: str) -> str:
    """Return the real path of the cache folder, which must be outside the working tree and git's folder.

    Raises:
        UndecidedError: it is inside.
    """
    real = os.path.realpath(cache)
    for inside in (repository.work_tree, repository.git_dir, repository.common_dir):
        if inside is not None and _is_within(real, os.path.realpath(inside)):
            raise UndecidedError(
                f"the folder for scratch trees is inside the repository: {printable(cache)}",
                "set XDG_CACHE_HOME to a folder outside it",
            )
    return real


def _is_within(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


@contextlib.contextmanager
def temporary(repository: Repository, parent: str, *, keep: bool = False) -> Iterator[str]:
    """Make a fresh folder, mode 0700, and remove it at the end unless it is kept.

    Args:
        repository: has the record of the folder.
        parent: the cache folder's `touched` or `kept`.
        keep: whether it stays.

    Raises:
        UndecidedError: it cannot be made.
    """
    records = records_folder(repository)
    with translate_errors("cannot create a folder for the scratch tree"):
        path, file = claim_folder(records, parent, keep=keep)
    try:
        yield path
    finally:
        # What stays (files of another user) is tried again and reported by the next sweep.
        if not keep and remove(path):
            with contextlib.suppress(OSError):
                os.unlink(file)


def sweep_folders(repository: Repository, cache: str) -> list[str]:
    """Remove what killed processes left in this cache folder; return the folders that could not be removed.

    A record of a folder in another cache folder waits until that one is swept.
    """
    folder = records_folder(repository)
    stuck: list[str] = []
    for name, record in _records(folder):
        if record is not None and record.owner.is_running():
            continue
        if record is not None and _is_ours(name, record) and os.path.lexists(record.path):
            if record.kept or os.path.dirname(os.path.dirname(record.path)) != cache:
                continue
            if not _remove_recorded(record):
                stuck.append(record.path)
                continue
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))
    return stuck


def kept_folders(repository: Repository) -> list[str]:
    """List the kept scratch trees that still exist."""
    found = _records(records_folder(repository))
    return sorted(
        each.path
        for name, each in found
        if each is not None and each.kept and _is_ours(name, each) and os.path.lexists(each.path)
    )


def _is_ours(name: str, record: FolderRecord) -> bool:
    """Return whether a record names a folder as `temporary` makes them, by the record's token."""
    above, token = os.path.split(record.path)
    is_right = name == f"place-{token}.json" and os.path.basename(above) in _PARENTS
    return is_right and os.path.realpath(above) == above


def _remove_recorded(record: FolderRecord) -> bool:
    """Remove a folder if it is the recorded one; return whether none of ours is left there."""
    if record.identity is None:
        # Its owner was killed before it recorded its folder: only an empty one counts as that.
        with contextlib.suppress(OSError):
            os.rmdir(record.path)
        return True
    found = identity_of(record.path)
    # Device numbers may change after a restart.
    is_same_boot = record.owner.boot_id == Owner.current().boot_id
    if found is None or found[1] != record.identity[1] or (is_same_boot and found != record.identity):
        return True
    return remove(record.path)


def _records(folder: str) -> list[tuple[str, FolderRecord | None]]:
    """Read every record; None for a file that is not one (half written by a killed process)."""
    found: list[tuple[str, FolderRecord | None]] = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):
            if _RECORD.fullmatch(name):
                with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                    found.append((name, FolderRecord.from_bytes(file.read(_MOST_BYTES))))
    return found


def remove(path: str | bytes, *, within: int | None = None) -> bool:
    """Remove a folder and its contents, following no link, even if a command removed permissions.

    Args:
        within: a descriptor of the folder that `path` is a name in.

    Returns:
        Whether it is gone.
    """
    for _ in range(2):
        try:
            shutil.rmtree(path, dir_fd=within)
        except FileNotFoundError:
            return True
        except (OSError, RecursionError):
            with contextlib.suppress(OSError):
                _flatten(path, within)
        else:
            return True
    return False


def _flatten(path: str | bytes, within: int | None) -> None:
    """Make every folder below `path` accessible, and move each of them directly into it.

    `rmtree` enters a folder within a folder by recursion, and git accepts 2,000 of them.
    """
    top = _open_folder(path, within)
    try:
        with os.scandir(top) as entries:
            waiting = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        number = 0
        while waiting:
            descriptor = _open_folder(waiting.pop(), top)
            try:
                with os.scandir(descriptor) as entries:
                    folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
                for name in folders:
                    number += 1
                    moved = f".patchgate-{os.getpid()}-{number}"
                    with contextlib.suppress(OSError):
                        os.chmod(name, 0o700, dir_fd=descriptor)
                    os.rename(name, moved, src_dir_fd=descriptor, dst_dir_fd=top)
                    waiting.append(moved)
            finally:
                os.close(descriptor)
    finally:
        os.close(top)


def _open_folder(path: str | bytes, within: int | None) -> int:
    """Open a folder, not through a link, and return its owner all permissions."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(path, dir_fd=within).st_mode):
            os.chmod(path, 0o700, dir_fd=within)
    descriptor = os.open(path, _FOLDER, dir_fd=within)
    try:
        os.fchmod(descriptor, 0o700)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Turn an OSError into an UndecidedError with one sentence.

    Raises:
        UndecidedError: instead of an OSError.
    """
    try:
        yield
    except OSError as error:
        name = error.filename if isinstance(error.filename, str | bytes) else ""
        where = f" ({printable(name)})" if name else ""
        said = error.strerror or type(error).__name__
        raise UndecidedError(
            f"{what}: {said}{where}", "free some space or make that folder writable, then try again"
        ) from error
