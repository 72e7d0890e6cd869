"""The folders with the evidence of attempts, in the git directory: list, read, pack and remove them.

A folder belongs to an attempt if the marker in it has its name; the folder's name alone does not count. It is
not removed while another process has locked the marker.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from patchgate.apply.attempt_records import ID
from patchgate.storage.record import Json
from patchgate.values import dataclass

EVIDENCE_SCHEMA = "patchgate.evidence/1"
MARKER = "attempt.json"
CANDIDATE = "artifacts/diff.patch"
SENT = "artifacts/sent.txt"
"""What was sent, if another diff was made of it."""
REPORT = "artifacts/report.json"
REVIEW = "reviews/review_patch.md"
FEEDBACK = "outbox/feedback.md"
BUNDLE = "failure_bundle.zip"
FOLDERS = ("artifacts", "reviews", "outbox", "logs")
UNFINISHED = ".new"

_READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_MARKER = 64 << 10
_MOST_FILES = 1000


def attempts_folder(common_dir: str) -> str:
    """Return the folder of the evidence of all attempts."""
    return os.path.join(common_dir, "patchgate", "attempts")


@dataclass(frozen=True, slots=True)
class EvidenceFolder:
    """One folder that has the name of an attempt.

    `dir` is where the evidence is, elsewhere for a `--run-dir`. `says` is the marker, None if there is none
    or it has another name. `is_running` is whether the attempt is running.
    """

    id: str
    path: str
    dir: str
    at: str
    says: Mapping[str, Json] | None
    is_running: bool


def folders(common_dir: str) -> list[EvidenceFolder]:
    """List the folders that have the name of an attempt, sorted; symlinks are left out.

    Raises:
        OSError: the folder of them cannot be read.
    """
    # Loaded here: every command that writes asks `recover_pending`, which needs none of it.
    above = attempts_folder(common_dir)
    try:
        with os.scandir(above) as entries:
            names = [
                each.name
                for each in entries
                if ID.fullmatch(each.name) and each.is_dir(follow_symlinks=False)
            ]
    except FileNotFoundError:
        return []
    return [_folder(above, name) for name in sorted(names)]


def _folder(above: str, name: str) -> EvidenceFolder:
    path = os.path.join(above, name)
    says, is_running = None, False
    with suppress(OSError):
        descriptor = os.open(os.path.join(path, MARKER), _READING)
        try:
            says = _marker(name, os.read(descriptor, _MOST_MARKER))
            is_running = _is_locked(descriptor)
        finally:
            os.close(descriptor)
    place, at = (says or {}).get("dir"), (says or {}).get("at")
    return EvidenceFolder(
        id=name,
        path=path,
        dir=place if isinstance(place, str) else path,
        at=at if isinstance(at, str) else "",
        says=says,
        is_running=is_running,
    )


def _marker(name: str, raw: bytes) -> Mapping[str, Json] | None:
    try:
        says = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(says, dict) and says.get("schema") == EVIDENCE_SCHEMA and says.get("attempt") == name
    return says if is_ours else None


def _is_locked(descriptor: int, wanted: int = fcntl.LOCK_SH) -> bool:
    """Lock the marker while the descriptor is open; return whether another process has it locked."""
    try:
        fcntl.flock(descriptor, wanted | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def contents(place: str) -> list[tuple[str, int]]:
    """List the evidence in a folder: each file's name below it and its size in bytes, at most 1,000."""
    found: list[tuple[str, int]] = []
    for name in evidence_files(place):
        with suppress(OSError):
            seen = os.lstat(os.path.join(place, name))
            if stat.S_ISREG(seen.st_mode):
                found.append((name, seen.st_size))
        if len(found) == _MOST_FILES:
            break
    return found


def read_evidence(place: str, name: str, most: int | None = None) -> bytes:
    """Read a file of the evidence, or its last bytes; never through a symlink.

    Raises:
        OSError: it is not a regular file, or cannot be read.
    """
    descriptor = os.open(os.path.join(place, name), _READING)
    with open(descriptor, "rb") as file:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError("it is not a regular file")
        if most is not None:
            file.seek(max(0, seen.st_size - most))
        return file.read()


def archive(place: str, more: Mapping[str, bytes]) -> bytes:
    """Pack the evidence in a folder, and more files, into a zip; what cannot be read is left out."""
    # Loaded here: it costs 15 ms, and only what was refused is packed.
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archived:
        for name in evidence_files(place):
            if name != BUNDLE:
                with suppress(OSError):
                    archived.writestr(zipfile.ZipInfo(name), read_evidence(place, name), zipfile.ZIP_DEFLATED)
        for name, content in more.items():
            archived.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def evidence_files(place: str) -> Iterator[str]:
    """List the files in the evidence's folders, in order; the bundle last."""
    for folder in FOLDERS:
        with suppress(OSError):
            for name in sorted(os.listdir(os.path.join(place, folder))):
                yield f"{folder}/{name}"
    yield BUNDLE


def remove(folder: EvidenceFolder) -> str | None:
    """Remove a folder, unless its attempt is running; returns None, or the reason why it stays.

    Other files in it stay, and the folder with them; evidence elsewhere stays too.
    """
    try:
        with _reserved(folder.path) as is_free:
            if not is_free:
                return "its attempt is still running"
            empty_folder(folder.path)
            left = sorted(set(os.listdir(folder.path)) - {MARKER})
            if left:
                return f"it contains other files: {left[0]}"
            # The marker is removed last: while anything is left, it says what it belongs to.
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder.path, MARKER))
            os.rmdir(folder.path)
    except OSError as error:
        return error.strerror or str(error)
    return None


@contextmanager
def _reserved(path: str) -> Iterator[bool]:
    """Lock the marker, if there is one."""
    try:
        descriptor = os.open(os.path.join(path, MARKER), _READING)
    except FileNotFoundError:
        yield True
        return
    try:
        yield not _is_locked(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


def empty_folder(place: str) -> None:
    """Remove the evidence in a folder, and nothing else there.

    Raises:
        OSError: something cannot be removed.
    """
    import shutil

    for name in FOLDERS:
        # It follows no symlinks.
        with suppress(FileNotFoundError):
            shutil.rmtree(os.path.join(place, name))
    for name in (BUNDLE, BUNDLE + UNFINISHED):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(place, name))
