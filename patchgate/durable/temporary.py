"""A temporary folder that goes at the end, whatever happens: by its owner, or after a kill by the next one.

Decides how a folder says that its owner lives: by the lock on a file in it, which the kernel drops at the
owner's end. Only a folder that has such a file, unlocked, and belongs to this user is ever swept. It does not
decide what lies in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from types import TracebackType

from patchgate.durable.unbroken import unbroken

_PREFIX = "patchgate-"
_MARK = ".patchgate-owner"
_SAYS = b"patchgate removes this folder when nobody holds this file's lock\n"
_MARKING = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOKING = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class TemporaryFolder:
    """A context manager: a folder of this process where the system has such; sweeps what killed ones left.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self) -> None:
        sweep_temporary_folders()
        with unbroken():
            self.path = tempfile.mkdtemp(prefix=_PREFIX)
            try:
                self._held = os.open(os.path.join(self.path, _MARK), _MARKING, 0o600)
                fcntl.flock(self._held, fcntl.LOCK_EX)
                os.write(self._held, _SAYS)
            except OSError:
                shutil.rmtree(self.path, ignore_errors=True)
                raise

    def __enter__(self) -> TemporaryFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A signal in the middle would leave the rest of it.
        with unbroken():
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._held)


def sweep_temporary_folders() -> None:
    """Remove the temporary folders whose owners have ended; what cannot be looked at or removed stays."""
    above = tempfile.gettempdir()
    with contextlib.suppress(OSError), os.scandir(above) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with contextlib.suppress(OSError):
                    _sweep(entry.path)


def _sweep(folder: str) -> None:
    found = os.lstat(folder)
    if found.st_uid != os.getuid() or not os.path.isdir(folder) or os.path.islink(folder):
        return
    mark = os.open(os.path.join(folder, _MARK), _LOOKING)
    try:
        # Its maker writes under the lock: what is locked, or does not say so yet, is somebody's.
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.read(mark, len(_SAYS) + 1) == _SAYS:
            with unbroken():
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(mark)
