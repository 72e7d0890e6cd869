"""Writes the traceback of an internal error to a file, so that it can be reported.

Decides where the file is, what it contains besides the traceback, and that secrets in it are masked. Only the
newest files are kept. Where the repository is not writable, the file is in the temporary folder.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress

from patchgate import __version__

MOST_FILES = 20
_MOST_TEXT = 256 << 10
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def traces_folder(common_dir: str) -> str:
    """Return the folder of the traces of one repository."""
    return os.path.join(common_dir, "patchgate", "traces")


def write_trace(common_dir: str | None, trace: str, environ: Mapping[str, str]) -> str | None:
    """Write a traceback to a new file.

    Args:
        common_dir: git's common directory; None outside a repository.
        trace: the traceback, as Python formats it.
        environ: the environment, whose secrets are masked.

    Returns:
        the path of the file; None if no folder is writable.
    """
    import tempfile

    from patchgate.ledger.masking import Masks

    about = f"patchgate {__version__}, Python {platform.python_version()}, {platform.system()}\n\n"
    # The end of a traceback is the important part.
    content = Masks([environ]).text(about + trace[-_MOST_TEXT:]).encode("utf-8", "backslashreplace")
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.txt"
    if common_dir is not None:
        folder = traces_folder(common_dir)
        with suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            path = _write(os.path.join(folder, name), content)
            _remove_old(folder)
            return path
    with suppress(OSError):
        return _write(os.path.join(tempfile.mkdtemp(prefix="patchgate-trace-"), name), content)
    return None


def _write(path: str, content: bytes) -> str:
    with open(os.open(path, _FLAGS, 0o600), "wb") as file:
        file.write(content)
    return path


def _remove_old(folder: str) -> None:
    """Remove all but the newest files; their names begin with their time."""
    with suppress(OSError):
        for name in sorted(os.listdir(folder))[:-MOST_FILES]:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))
