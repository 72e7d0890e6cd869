"""The evidence of one attempt: where it is, in which order it is written, what a failed write means.

It is in `<git common dir>/patchgate/attempts/<id>/`; with `--run-dir` only the marker `attempt.json` is,
locked while the attempt runs. The candidate is flushed to disk, because it cannot be made again; the rest is
not (the ledger's event is). Secrets are masked in all but the candidate; logs have no terminal controls.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

from patchgate.apply.evidence_folders import (
    BUNDLE,
    CANDIDATE,
    EVIDENCE_SCHEMA,
    FEEDBACK,
    FOLDERS,
    MARKER,
    REPORT,
    REVIEW,
    SENT,
    UNFINISHED,
    archive,
    attempts_folder,
    empty_folder,
    evidence_files,
    read_evidence,
)
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import neutral, printable
from patchgate.ledger.masking import Masks
from patchgate.storage.filesystem import (
    FaultPoints,
    flush,
    flush_folder,
    make_folder,
    open_exclusive,
    rename,
    unlink,
    write_all,
)
from patchgate.storage.record import Json

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600
# Two bytes are four digits, short enough to type; more if those ids are taken.
_WIDTHS = (2, 3, 4, 8, 16)
_PLAIN_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def open_evidence(
    common_dir: str,
    candidate: bytes,
    *,
    chance: Callable[[int], bytes],
    is_known: Callable[[str], bool],
    at: str,
    about: Mapping[str, Json],
    run_dir: str | None = None,
    masks: Masks | None = None,
    faults: FaultPoints | None = None,
) -> Evidence:
    """Create the folder of a new attempt and write its candidate there, flushed to disk on return.

    After an error nothing of it remains.

    Args:
        chance: returns that many random bytes.
        is_known: whether an id was used before, even if its folder is gone.
        at: now, in UTC, ISO 8601, whole seconds.
        about: what else the marker says, in case the attempt is interrupted.
        run_dir: the caller's folder, absolute: missing or empty.

    Raises:
        UsageError: `run_dir` is not empty, is not a folder, or has no parent folder.
        UndecidedError: it cannot be written.
    """
    faults = faults or FaultPoints()
    place = run_dir
    with ExitStack() as undo:
        try:
            name, own = _make_own(common_dir, chance, is_known, undo, faults)
            place = own if run_dir is None else _make_given(os.path.normpath(run_dir), undo, faults)
            lock = _mark(own, {"attempt": name, "at": at, "dir": place, **about}, undo, faults)
            undo.callback(os.close, lock)
            for folder in FOLDERS:
                _make(os.path.join(place, folder), undo, faults)
            _keep_candidate(place, candidate, undo, faults)
            for folder in dict.fromkeys((place, own, os.path.dirname(place), os.path.dirname(own))):
                flush_folder(folder, faults)
        except OSError as error:
            if run_dir is not None and isinstance(error, FileExistsError):
                raise _not_empty(run_dir) from error
            raise UndecidedError(
                f"the evidence of this attempt cannot be written, so nothing was judged:"
                f" {printable(str(error.filename or place or common_dir))}: {error.strerror or error}",
                "free disk space, fix the folder's permissions, or use another folder: --run-dir DIR",
            ) from error
        undo.pop_all()
    return Evidence(name=name, folder=place, own=own, lock=lock, masks=masks or Masks(), faults=faults)


class Evidence:
    """The evidence of a running attempt; as a context manager it is closed with the block.

    `id` is the attempt's, `dir` the folder that contains everything.
    """

    def __init__(
        self, name: str, folder: str, own: str, lock: int, masks: Masks, faults: FaultPoints
    ) -> None:
        self.id = name
        self.dir = folder
        self.masks = masks
        self._own = own
        self._lock: int | None = lock
        self._faults = faults

    def __enter__(self) -> Evidence:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def log_path(self, name: str) -> str:
        """Return the path of the file for a command's output; it does not exist yet."""
        stem = _PLAIN_NAME.sub("_", name)[:80].lstrip(".-") or "_"
        taken = set(os.listdir(os.path.join(self.dir, "logs")))
        number, free = 1, f"{stem}.log"
        while free in taken:
            number += 1
            free = f"{stem}-{number}.log"
        return os.path.join(self.dir, "logs", free)

    def replace_candidate(self, sent: bytes, candidate: bytes) -> None:
        """Keep what was sent beside the diff that was made of it, which is the candidate from now on.

        Raises:
            UndecidedError: it cannot be written.
        """
        try:
            self._write(SENT, sent, is_flushed=True)
            self._write(CANDIDATE + UNFINISHED, candidate, is_flushed=True)
            place = os.path.join(self.dir, CANDIDATE)
            rename(place + UNFINISHED, place, self._faults)
            flush_folder(os.path.dirname(place), self._faults)
        except OSError as error:
            raise UndecidedError(
                f"the evidence of this attempt cannot be written: {error.strerror or error}",
                "free disk space, or use another folder: --run-dir DIR",
            ) from error

    def keep(
        self,
        report: Json,
        review: str,
        feedback: str,
        events: Sequence[Mapping[str, Json]] | None = None,
    ) -> str | None:
        """Mask and clean the logs, write report, review, feedback, and after a refusal the bundle of all.

        Returns None, or a warning; what can be written is written. `events` are the ledger's about the
        attempt; None if it was not refused.
        """
        failed = self._mask_logs()
        texts = (
            (REPORT, json.dumps(self.masks.document(report), indent=1) + "\n"),
            (REVIEW, self.masks.text(review)),
            (FEEDBACK, self.masks.text(feedback)),
        )
        for name, text in texts:
            try:
                self._write(name, text.encode("utf-8", "backslashreplace"))
            except OSError as error:
                failed.append(f"{name}: {error.strerror or error}")
        if events is not None:
            try:
                self._bundle(events)
            except OSError as error:
                failed.append(f"{BUNDLE}: {error.strerror or error}")
        return f"the evidence of {self.id} is incomplete: {'; '.join(failed)}" if failed else None

    def discard(self) -> None:
        """Remove everything again, if nothing was judged; what cannot be removed stays."""
        with suppress(OSError):
            empty_folder(self.dir)
        if self.dir != self._own:
            with suppress(OSError):
                os.rmdir(self.dir)
        with suppress(OSError):
            unlink(os.path.join(self._own, MARKER), self._faults)
            os.rmdir(self._own)
        self.close()

    def close(self) -> None:
        """Release the lock: the attempt has ended."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _write(self, name: str, content: bytes, *, is_flushed: bool = False) -> None:
        """Write a file whole, or remove it."""
        path = os.path.join(self.dir, name)
        descriptor = open_exclusive(path, _FILE_MODE, self._faults)
        try:
            write_all(descriptor, content, self._faults)
            if is_flushed:
                flush(descriptor, self._faults)
        except OSError:
            with suppress(OSError):
                unlink(path, self._faults)
            raise
        finally:
            os.close(descriptor)

    def _mask_logs(self) -> list[str]:
        """Remove secrets and terminal controls from the logs; a log for which that fails is deleted.

        Each line was masked and cleaned when it was logged. This also finds secrets of several lines.
        """
        failed: list[str] = []
        for name in evidence_files(self.dir):
            if not name.startswith("logs/"):
                continue
            path = os.path.join(self.dir, name)
            try:
                content = read_evidence(self.dir, name)
                masked = neutral(self.masks.output(content))
                if masked is not content:
                    self._write(name + UNFINISHED, masked)
                    rename(path + UNFINISHED, path, self._faults)
            except OSError as error:
                failed.append(f"{name}: {error.strerror or error}")
                with suppress(OSError):
                    unlink(path, self._faults)
        return failed

    def _bundle(self, events: Sequence[Mapping[str, Json]]) -> None:
        """Write the files of the attempt and its events into one archive, atomically."""
        lines = [json.dumps(self.masks.document(event), sort_keys=True) + "\n" for event in events]
        content = archive(self.dir, {"events.jsonl": "".join(lines).encode("ascii")})
        new = BUNDLE + UNFINISHED
        self._write(new, content)
        rename(os.path.join(self.dir, new), os.path.join(self.dir, BUNDLE), self._faults)


def _make_own(
    common_dir: str,
    chance: Callable[[int], bytes],
    is_known: Callable[[str], bool],
    undo: ExitStack,
    faults: FaultPoints,
) -> tuple[str, str]:
    """Create a folder with a new id, exclusively."""
    above = attempts_folder(common_dir)
    for folder in (os.path.dirname(above), above):
        with suppress(FileExistsError):
            make_folder(folder, _FOLDER_MODE, faults)
            flush_folder(os.path.dirname(folder), faults)
    if os.path.islink(above):
        raise UndecidedError(
            f"{printable(above)} is a symlink, so the evidence of this attempt would be written elsewhere",
            "replace it with a folder, or use --run-dir DIR for this attempt",
        )
    for width in _WIDTHS:
        name = f"a-{chance(width).hex()}"
        if is_known(name):
            continue
        with suppress(FileExistsError):
            _make(os.path.join(above, name), undo, faults)
            return name, os.path.join(above, name)
    raise UndecidedError("no free id was found for this attempt", "run the command again")


def _make_given(run_dir: str, undo: ExitStack, faults: FaultPoints) -> str:
    """Create the caller's folder, or check that it is empty."""
    parent = os.path.dirname(run_dir)
    if not os.path.isdir(parent):
        raise UsageError(f"the folder above --run-dir does not exist: {printable(parent)}", "create it first")
    try:
        _make(run_dir, undo, faults)
    except FileExistsError:
        try:
            held = os.listdir(run_dir)
        except NotADirectoryError as error:
            raise UsageError(
                f"{printable(run_dir)} is not a folder", "name another one with --run-dir"
            ) from error
        if held:
            raise _not_empty(run_dir) from None
    return run_dir


def _not_empty(run_dir: str) -> UsageError:
    return UsageError(
        f"the folder of --run-dir is not empty: {printable(run_dir)}",
        "each attempt needs its own folder: name one that is empty or does not exist",
    )


def _make(folder: str, undo: ExitStack, faults: FaultPoints) -> None:
    make_folder(folder, _FOLDER_MODE, faults)
    undo.callback(_take_back, os.rmdir, folder)


def _mark(own: str, says: Mapping[str, Json], undo: ExitStack, faults: FaultPoints) -> int:
    """Write the marker and return its locked descriptor: the kernel releases the lock when we end."""
    path = os.path.join(own, MARKER)
    descriptor = open_exclusive(path, _FILE_MODE, faults)
    undo.callback(_take_back, os.unlink, path)
    with ExitStack() as closing:
        closing.callback(os.close, descriptor)
        # A process that checks whether the attempt runs has the lock for an instant.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        write_all(descriptor, json.dumps({"schema": EVIDENCE_SCHEMA, **says}).encode("ascii") + b"\n", faults)
        closing.pop_all()
    return descriptor


def _keep_candidate(place: str, candidate: bytes, undo: ExitStack, faults: FaultPoints) -> None:
    path = os.path.join(place, CANDIDATE)
    descriptor = open_exclusive(path, _FILE_MODE, faults)
    undo.callback(_take_back, os.unlink, path)
    try:
        write_all(descriptor, candidate, faults)
        flush(descriptor, faults)
    finally:
        os.close(descriptor)
    flush_folder(os.path.dirname(path), faults)


def _take_back(remove: Callable[[str], None], path: str) -> None:
    with suppress(OSError):
        remove(path)
