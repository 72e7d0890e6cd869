"""The whole input of a child as a file in memory, from which it reads without this process.

A thread that feeds a pipe waits 5 ms for Python's lock at each 64 KiB while this process computes (measured:
git had read a patch of 100 MB only when all of it was planned).
"""

from __future__ import annotations

import os


def open_input(data: bytes) -> int | None:
    """Open a nameless file in memory that contains `data`, to be closed by the caller; None if there is none.

    Only Linux has such files; they are not on any disk.
    """
    if not hasattr(os, "memfd_create"):
        return None
    try:
        file = os.memfd_create("input")
    except OSError:
        return None
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.lseek(file, 0, os.SEEK_SET)
    except OSError:
        os.close(file)
        return None
    return file
