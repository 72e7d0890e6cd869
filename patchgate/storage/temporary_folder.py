"""A temporary folder that is always removed: by its owner, or after a kill by the next process.

The owner keeps a lock on a file in it, which the kernel drops when the owner ends. Only a folder of this user
with such a file, unlocked, is removed; and an empty one whose name names a process that has ended before it
could write. Nothing here must survive a crash, so nothing is a numbered step.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile

from patchgate.storage.owner import Owner
from patchgate.storage.signals import defer_signals

_NAME = re.compile(r"patchgate-(?P<pid>[0-9]{1,10})-(?P<started>[0-9]*)-(?P<boot_id>[0-9a-f-]*)-[^-]+")
_MARK = ".patchgate-owner"
_SAYS = b"patchgate removes this folder when nobody holds this file's lock\n"
_MARKING = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOKING = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class TemporaryFolder:
    """A context manager: a folder of this process in the system's temporary folder; removes those of killed
    processes.

    Raises:
        OSError: it cannot be made.
    """

    # A signal may come before the folder is made.
    path = ""
    _lock: int | None = None

    def __init__(self) -> None:
        sweep_temporary_folders()
        owner = Owner.current()
        with defer_signals():
            self.path = tempfile.mkdtemp(prefix=f"patchgate-{owner.pid}-{owner.started}-{owner.boot_id}-")
            try:
                self._lock = os.open(os.path.join(self.path, _MARK), _MARKING, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                os.write(self._lock, _SAYS)
            except OSError:
                self.remove()
                raise

    def __enter__(self) -> TemporaryFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __del__(self) -> None:
        # A signal may come after it was made and before a block has begun.
        self.remove()

    def remove(self) -> None:
        """Remove the folder; doing it twice changes nothing."""
        # A signal in the middle would leave the rest of it.
        with defer_signals():
            if self.path:
                _remove(self.path)
            # The alarm of a time limit is not deferred: what it interrupts is not closed twice.
            lock, self._lock = self._lock, None
            if lock is not None:
                os.close(lock)


def sweep_temporary_folders() -> None:
    """Remove the temporary folders whose owners have ended; what cannot be read or removed stays."""
    above = tempfile.gettempdir()
    with contextlib.suppress(OSError), os.scandir(above) as entries:
        for entry in entries:
            named = _NAME.fullmatch(entry.name) if entry.name.startswith("patchgate-") else None
            if named is not None:
                with contextlib.suppress(OSError):
                    _sweep(entry.path, Owner(int(named["pid"]), named["boot_id"], named["started"]))


def _sweep(folder: str, owner: Owner) -> None:
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or os.path.islink(folder) or not os.path.isdir(folder):
        return
    try:
        mark = os.open(os.path.join(folder, _MARK), _LOOKING)
    except FileNotFoundError:
        if not owner.is_running():
            os.rmdir(folder)
        return
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The owner writes under the lock; an empty file belongs to a process between two calls.
        said = os.read(mark, len(_SAYS) + 1)
        if said == _SAYS or (not said and not owner.is_running()):
            with defer_signals():
                _remove(folder)
    finally:
        os.close(mark)


def _remove(folder: str) -> None:
    """Remove a folder, its mark last: a kill in the middle leaves what the next one may sweep."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            elif name != _MARK:
                os.unlink(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, _MARK))
        os.rmdir(folder)
