"""Two renames that Python does not offer: exchange two names, and rename where no name may be overwritten.

Decides how the system is asked (`renameat2` on Linux, `renameatx_np` on macOS), and nothing else: where it
cannot, the file system or the system says so and the caller goes another way. Neither is a numbered step
here; `folder` makes them steps.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    _Rename: TypeAlias = Callable[[int, bytes, int, bytes, int], int]

# linux/fs.h and macOS's sys/stdio.h.
_NO_REPLACE, _EXCHANGE = (4, 2) if sys.platform == "darwin" else (1, 2)
_NAME = "renameatx_np" if sys.platform == "darwin" else "renameat2"
# What kernels and file systems (NFS, FUSE, 9p) say when they do not know the flag.
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


class UnsupportedError(OSError):
    """The system or the file system does not have this rename; nothing was done."""


def exchange(folder: int, name: bytes, other: int, other_name: bytes) -> None:
    """Exchange what two names mean, in one instant.

    Raises:
        UnsupportedError: it cannot be done here.
        OSError: ENOENT where one of them means nothing.
    """
    _rename(folder, name, other, other_name, _EXCHANGE)


def rename_exclusively(folder: int, name: bytes, other: int, other_name: bytes) -> None:
    """Give a file another name that must be free.

    Raises:
        UnsupportedError: it cannot be done here.
        OSError: EEXIST where anything has that name.
    """
    _rename(folder, name, other, other_name, _NO_REPLACE)


def _rename(folder: int, name: bytes, other: int, other_name: bytes, flag: int) -> None:
    import ctypes

    call = _system_call()
    if call is None:
        raise UnsupportedError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(folder, name, other, other_name, flag) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise UnsupportedError(code, os.strerror(code))
    raise OSError(code, os.strerror(code))


@cache
def _system_call() -> _Rename | None:
    # Loaded here, for only a landing patch needs it (4 ms).
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), _NAME, None)
    if call is None:
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    found: _Rename = call
    return found
