"""The reader of git's diff sees the same wherever the pipe breaks its bytes apart."""

from __future__ import annotations

import socket
from typing import cast

import pytest

from patchgate.git.diff import DiffReader, Glance
from patchgate.git.model import FileChange
from patchgate.process.child import Child

_OIDS = ("1" * 40, "2" * 40)
_PAIR = f"{'3' * 40} {'4' * 40}\n".encode()
_RECORDS = b"".join(
    f":100644 100644 {_OIDS[0]} {_OIDS[1]} M\0".encode() + name + b"\0" for name in (b"one", b"two", b"bin")
)
_MARKER = b"\\ No newline at end of file\n"
_HEADERS = b"diff --git a/%b b/%b\nindex 1..2 100644\n--- a/%b\n+++ b/%b\n"
_PATCH = (
    _HEADERS.replace(b"%b", b"one")
    + b"@@ -1,2 +1 @@\n---- a/x\n-b\n+++++ c\n"
    + b"@@ -9 +8,2 @@ def f():\n-old\n"
    + _MARKER
    + b"+new\n+\\ last\n"
    + _MARKER
    + _HEADERS.replace(b"%b", b"two")
    + b"@@ -3,2 +2,0 @@\n-gone\n-gone too\n"
    + _MARKER
    + b"diff --git a/bin b/bin\nindex 1..2 100644\nBinary files a/bin and b/bin differ\n"
)
_STREAM = _PAIR + _RECORDS + b"\0" + _PATCH + _PAIR


class _Pieces:
    """Stands for a child whose output arrives in pieces: a packet socket gives one of them to each read."""

    def __init__(self, *pieces: bytes) -> None:
        self.out, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with writer:
            for piece in pieces:
                if piece:
                    writer.send(piece)


def _read(
    *pieces: bytes, glance: Glance | None = None, at_once: int = 1
) -> tuple[list[FileChange], set[int]]:
    child = _Pieces(*pieces)
    with child.out:
        reader = DiffReader(cast(Child, child), glance, at_once)
        assert reader.line() == _PAIR[:-1]
        records = reader.records()
        binary = reader.patches(records, lambda file: lambda lines: range(len(lines)))
        assert reader.line() == _PAIR[:-1]
    return records, binary


@pytest.mark.skipif(not hasattr(socket, "SOCK_SEQPACKET"), reason="no packet sockets here")
def test_a_diff_reads_the_same_wherever_it_is_broken_in_two() -> None:
    """A marker for a missing newline that was cut in two was taken for the end of its section."""
    whole, binary = _read(_STREAM)
    assert [(file.added_lines, file.removed_lines, file.n_hunks) for file in whole[:2]] == [
        (3, 3, 2),
        (0, 2, 1),
    ]
    assert [line.text for line in whole[0].watched] == [b"++++ c", b"new", b"\\ last"]
    assert binary == {2}
    for place in range(1, len(_STREAM)):
        assert _read(_STREAM[:place], _STREAM[place:]) == (whole, binary), place
    for size in (1, 2, 3, 7, 13):
        pieces = [_STREAM[start : start + size] for start in range(0, len(_STREAM), size)]
        if len(pieces) < 200:
            assert _read(*pieces) == (whole, binary), size


@pytest.mark.skipif(not hasattr(socket, "SOCK_SEQPACKET"), reason="no packet sockets here")
def test_only_what_is_cleared_at_a_glance_is_not_watched() -> None:
    """The glance is given each run of added lines, whole and with nothing else."""
    runs: list[bytes] = []

    def glance(text: bytes, start: int, stop: int) -> bool:
        runs.append(text[start:stop])
        return b"new" in runs[-1]

    seen, _ = _read(_STREAM, glance=glance)
    assert runs == [b"+++++ c\n", b"+new\n+\\ last\n"]
    assert [(line.number, line.text) for line in seen[0].watched] == [(8, b"new"), (9, b"\\ last")]
    assert seen[0].added_lines == 3


@pytest.mark.skipif(not hasattr(socket, "SOCK_SEQPACKET"), reason="no packet sockets here")
def test_a_reader_that_waits_for_more_at_once_reads_the_same() -> None:
    pieces = [_STREAM[start : start + 40] for start in range(0, len(_STREAM), 40)]
    assert all(_read(*pieces, at_once=size) == _read(_STREAM) for size in (2, 100, 1 << 20))
