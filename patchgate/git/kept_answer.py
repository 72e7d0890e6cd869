"""Git's answer about a large index that the fast path has asked for, so that git need not answer again.

The fast path leaves it for the full check that the same hook starts next. It counts once, for that process
and the very same index file; whoever can write it can also write the pending receipt.
"""

from __future__ import annotations

import os

from patchgate import __version__
from patchgate.errors import UndecidedError
from patchgate.git.diff import Detail, DiffReader, KeptAnswer, Records, is_text_candidate
from patchgate.git.repository import Repository

NAME = "patchgate-asked"
_FORMAT = "patchgate.asked/1"
_MOST_LINE = 200


def take_difference(repository: Repository, detail: Detail) -> Records | None:
    """Read what is staged on HEAD from the kept answer, which is used up; None if git has to be asked."""
    path = os.path.join(repository.git_dir, NAME)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb", buffering=0) as file:
            os.unlink(path)
            line, _, _ = os.pread(file.fileno(), _MOST_LINE, 0).partition(b"\n")
            length = os.fstat(file.fileno()).st_size - len(line) - 1
            if line != _first_line(repository, length):
                return None
            file.seek(len(line) + 1)
            reader = DiffReader(KeptAnswer(file), detail.glance)
            records = reader.records()
            if detail.lines:
                reader.patches(records, lambda file: detail.watch if is_text_candidate(file) else None)
            return records, set()
    except (OSError, UndecidedError):
        return None


def _first_line(repository: Repository, length: int) -> bytes:
    """Build the line that an answer of so many bytes for this process and this index begins with."""
    status = os.stat(repository.index_file)
    about = (os.getppid(), status.st_mtime_ns, status.st_size, status.st_ino, length)
    return " ".join((_FORMAT, __version__, *map(str, about))).encode("ascii")
