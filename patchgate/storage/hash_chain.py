"""An append-only file of JSON lines, each with the hash of the one before.

Decides how a record is appended once, complete and flushed, while others append too, and how a crash or a
damaged byte shows afterwards. It does not know what the events mean. The chain proves order and content, not
length; the head file (`record`) has the position of the last record.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress

from patchgate.errors import UndecidedError
from patchgate.storage import Value
from patchgate.storage.filesystem import (
    FaultPoints,
    flush,
    flush_folder,
    folder_of,
    open_exclusive,
    open_existing,
    truncate,
    write_all,
)
from patchgate.storage.lock import acquire
from patchgate.storage.record import (
    MAX_LINE,
    START,
    Head,
    Json,
    Record,
    advance_head,
    canonical_event,
    head_path_of,
    line_of,
    link_of,
    parse_line,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from io import BufferedReader
    from pathlib import Path
    from typing import Final

    from patchgate.storage.filesystem import AnyPath

LOCK_SECONDS = 10.0
_LOCK = ".lock"
_MODE = 0o644
_FIRST_LOOK = 8192
_UNWRITTEN = b"\0"


class ChainProblem(Value):
    """What is wrong with one line, counted from 1; `torn` is a last line that was cut short by a crash.

    It has no end, or contains NUL bytes, which no record does: what some file systems show, after a power
    cut, for blocks that were never written.
    """

    __slots__ = ("line", "message", "torn")

    def __init__(self, line: int, message: str, torn: bool = False) -> None:
        self.line: Final = line
        self.message: Final = message
        self.torn: Final = torn


def append(
    path: AnyPath,
    event: Mapping[str, Json],
    *,
    timeout_seconds: float = LOCK_SECONDS,
    on_torn: Callable[[Path], None] | None = None,
    with_head: bool = False,
    faults: FaultPoints | None = None,
) -> str:
    """Add one record, on disk when this returns, and return its hash.

    The file and its folder are created if missing; the lock file is `<name>.lock`. After an error
    the chain is as it was, unless undoing the append fails too. After a kill it is as it was, or has
    the record, or a torn line that the next append sets aside.

    Args:
        path: the chain.
        event: what happened.
        timeout_seconds: how long to wait for other writers.
        on_torn: is called with the file, `<name>.torn-<n>`, that got a torn last line.
        with_head: also write to `<name>.head` where the record ended.
        faults: numbered fault points.

    Raises:
        UndecidedError: the lock is held, the last record is damaged, or this one is longer than 1 MiB.
        ValueError: the event is not JSON.
        OSError: as the system gave it.
    """
    return append_all(
        path, [event], timeout_seconds=timeout_seconds, on_torn=on_torn, with_head=with_head, faults=faults
    )


def append_all(
    path: AnyPath,
    events: Sequence[Mapping[str, Json]],
    *,
    timeout_seconds: float = LOCK_SECONDS,
    on_torn: Callable[[Path], None] | None = None,
    with_head: bool = False,
    faults: FaultPoints | None = None,
) -> str:
    """Add several records as `append` does, by one write, and return the hash of the last.

    After an error none of them is there; after a kill there may be the first few of them.

    Raises:
        UndecidedError: as for `append`.
        ValueError: an event is not JSON.
        OSError: as the system gave it.
    """
    faults = faults or FaultPoints()
    path = os.fspath(path)
    encoded = [canonical_event(event) for event in events]
    with (
        acquire(path + _LOCK, timeout_seconds=timeout_seconds, faults=faults),
        ExitStack() as closing,
        ExitStack() as undo,
    ):
        descriptor = _open(path, faults)
        closing.callback(os.close, descriptor)
        size, previous = _settle_end(path, descriptor, on_torn, faults)
        digest, lines = previous, []
        for each in encoded:
            digest, line = line_of(each, digest)
            lines.append(line)
        undo.callback(_undo_append, descriptor, size, faults)
        whole = b"".join(lines)
        write_all(descriptor, whole, faults)
        flush(descriptor, faults)
        undo.pop_all()
        if with_head:
            after = Head(size + len(whole), digest)
            advance_head(path, descriptor, (size, previous), after, faults)
        return digest


def require_appendable(
    path: AnyPath,
    *,
    timeout_seconds: float = LOCK_SECONDS,
    on_torn: Callable[[Path], None] | None = None,
    faults: FaultPoints | None = None,
) -> None:
    """Do what `append` does without the record: acquire the lock, open the file, repair its end.

    Raises:
        UndecidedError: the lock is held, or the last record is damaged.
        OSError: as the system gave it.
    """
    faults = faults or FaultPoints()
    path = os.fspath(path)
    with (
        acquire(path + _LOCK, timeout_seconds=timeout_seconds, faults=faults),
        ExitStack() as closing,
    ):
        descriptor = _open(path, faults)
        closing.callback(os.close, descriptor)
        _settle_end(path, descriptor, on_torn, faults)


def read(path: AnyPath) -> Iterator[Record]:
    """Yield the records in order, each checked; a missing file has none, and a torn last line is left out.

    Raises:
        UndecidedError: a line is damaged; the records before it have been yielded.
        OSError: the file cannot be read.
    """
    for found in scan(path):
        if isinstance(found, Record):
            yield found
        elif not found.torn:
            raise _damaged(os.fspath(path), found)


def verify(path: AnyPath) -> list[ChainProblem]:
    """List the problems of a chain, line by line; empty for an intact or a missing one.

    Raises:
        UndecidedError: there seems to be a problem, but a writer has the lock, so it is not confirmed.
        OSError: the file cannot be read.
    """
    problems = [found for found in scan(path) if isinstance(found, ChainProblem)]
    if not problems:
        return []
    # A running append looks torn; what is still wrong under the lock is wrong.
    with ExitStack() as held:
        # If no lock file can be made (a read-only copy), the unlocked reading is reported.
        with suppress(OSError):
            held.enter_context(acquire(os.fspath(path) + _LOCK, timeout_seconds=LOCK_SECONDS))
        return [found for found in scan(path) if isinstance(found, ChainProblem)]


def _open(path: str, faults: FaultPoints) -> int:
    """Open the chain, made if missing, and flush what a killed process may have left unflushed.

    That is the name of an empty chain, so that one with content always has a name that survives; else the
    content, so that after a power cut only the last line can be torn. A flush of a clean file costs 50 µs
    besides the 160 µs of the append.
    """
    try:
        descriptor = open_existing(path)
    except FileNotFoundError:
        descriptor = open_exclusive(path, _MODE, faults)
    with ExitStack() as undo:
        undo.callback(os.close, descriptor)
        if os.fstat(descriptor).st_size == 0:
            flush_folder(folder_of(path), faults)
        else:
            flush(descriptor, faults)
        undo.pop_all()
    return descriptor


def _settle_end(
    path: str, descriptor: int, on_torn: Callable[[Path], None] | None, faults: FaultPoints
) -> tuple[int, str]:
    """Set a torn last line aside; return the size of what is left and the hash of its last record."""
    size = os.fstat(descriptor).st_size
    last, torn = _end_of(path, descriptor, size)
    if last is not None and _UNWRITTEN in last:
        torn = last + b"\n" + torn
        last, _ = _end_of(path, descriptor, size - len(torn))
    previous = START
    if last is not None:
        try:
            previous = parse_line(last).hash
        except ValueError as error:
            raise _damaged(path, ChainProblem(_lines_before(path, size - len(torn)), str(error))) from None
    if torn:
        aside = _set_aside(path, torn, faults)
        size -= len(torn)
        truncate(descriptor, size, faults)
        flush(descriptor, faults)
        if on_torn is not None:
            on_torn(aside)
    return size, previous


def _end_of(path: str, descriptor: int, size: int) -> tuple[bytes | None, bytes]:
    """Return the last complete line without its LF (None if there is none), and what follows it."""
    span = _FIRST_LOOK
    while True:
        start = max(0, size - span)
        block = os.pread(descriptor, size - start, start)
        end = block.rfind(b"\n")
        begin = block.rfind(b"\n", 0, max(end, 0))
        if begin >= 0 or start == 0:
            return (block[begin + 1 : end] if end >= 0 else None), block[end + 1 :]
        if span > 2 * MAX_LINE:
            number = _lines_before(path, size) + (end < 0)
            raise _damaged(path, ChainProblem(number, f"is longer than {MAX_LINE} bytes"))
        span *= 4


def _lines_before(path: str, position: int) -> int:
    """Count the lines that end before a position."""
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in _blocks(file, position))


def _blocks(file: BufferedReader, limit: int) -> Iterator[bytes]:
    while limit > 0 and (block := file.read(min(limit, MAX_LINE))):
        limit -= len(block)
        yield block


def _set_aside(path: str, torn: bytes, faults: FaultPoints) -> Path:
    """Write the torn bytes to the first free `<name>.torn-<n>`, unless the last one has them.

    A kill between this and the cutting makes the next append come here again with the same bytes; they were
    flushed before they got the name, but the name perhaps was not.
    """
    # Imported here, because this is rare, and hooks append.
    from pathlib import Path

    from patchgate.storage.atomic_write import write_atomically

    number = 1
    while True:
        aside = Path(f"{path}.torn-{number}")
        try:
            write_atomically(aside, torn, mode=_MODE, exist_ok=False, faults=faults)
        except FileExistsError:
            if aside.read_bytes() == torn:
                flush_folder(folder_of(path), faults)
                return aside
            number += 1
        else:
            return aside


def _undo_append(descriptor: int, size: int, faults: FaultPoints) -> None:
    with suppress(OSError):
        truncate(descriptor, size, faults)


def scan(path: AnyPath, marks: Sequence[bytes] = ()) -> Iterator[Record | ChainProblem]:
    """Yield a record or a problem for each line; after a damaged line the next one's link is not judged.

    With `marks`, a line that contains none of them is not yielded if its bytes and its link are right; its
    JSON is not read.

    A last line that looks torn may be one that is being written; `verify` reads it again under the lock.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        yield from scan_file(file, marks)


def scan_file(file: BufferedReader, marks: Sequence[bytes] = ()) -> Iterator[Record | ChainProblem]:
    """Yield what `scan` does, of a file that is open."""
    number, previous = 0, START
    known = True
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if marks and not any(mark in line for mark in marks):
            link = _link(line, previous if known else None)
            if link is not None:
                previous, known = link, True
                continue
        found = _check_line(line, number, previous if known else None)
        if isinstance(found, ChainProblem) and _is_torn(file, line):
            found = ChainProblem(number, "was cut short by a crash", torn=True)
        known = isinstance(found, Record)
        if isinstance(found, Record):
            previous = found.hash
        yield found


def _link(line: bytes, previous: str | None) -> str | None:
    """Return the hash of a line whose bytes and link are right; None for any other."""
    if not line.endswith(b"\n") or len(line) > MAX_LINE:
        return None
    with suppress(ValueError):
        digest, before = link_of(line[:-1])
        return digest if previous is None or before == previous else None
    return None


def _check_line(line: bytes, number: int, previous: str | None) -> Record | ChainProblem:
    if not line.endswith(b"\n") or len(line) > MAX_LINE:
        return ChainProblem(number, f"is longer than {MAX_LINE} bytes")
    try:
        record = parse_line(line[:-1])
    except ValueError as error:
        return ChainProblem(number, str(error))
    if previous is not None and record.previous != previous:
        return ChainProblem(number, "does not contain the hash of the line before it")
    return record


def _is_torn(file: BufferedReader, line: bytes) -> bool:
    """Read the rest of a partly read line, and return whether it is a torn last one."""
    is_unwritten = _UNWRITTEN in line
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_LINE)
    return not line or (is_unwritten and not file.peek(1))


def _damaged(path: str, problem: ChainProblem) -> UndecidedError:
    name = os.path.basename(path)
    commands = f"mv {name} {name}.damaged"
    if os.path.lexists(head_path_of(path)):
        beside = head_path_of(name)
        commands += f" && mv {beside} {beside}.damaged"
    return UndecidedError(
        f"line {problem.line} of {path!r} {problem.message}",
        f"keep it for inspection: run `{commands}` in its folder; the next record starts a new chain",
    )
