"""What differs between many pairs of trees: git's output in large blocks, parted at git's own lines alone.

Nothing is parsed here. A pair whose difference is too large, or that git died over, has none: its reader
takes another path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from patchgate.errors import UndecidedError
from patchgate.git.diff import PATCH, RAW
from patchgate.git.repository import Repository
from patchgate.process.child import Child

_BLOCK = 1 << 20
MOST_BYTES = 4 << 20
"""How large one difference may be."""


def differences(
    repository: Repository,
    pairs: Sequence[str],
    empty_tree: str,
    variables: Mapping[str, str],
    *,
    with_patch: bool,
) -> Iterator[bytes | None]:
    """Yield what git prints for pair after pair: raw records, a NUL and the patch; None if it is
    too large.

    What git printed counts when the line of the next pair has come; after the last an empty one is asked for.
    It ends early where git does. A file could contain the line of a pair only if it was removed from a tree
    with its own id in it; such a line does not begin where git's do, or the records before it are cut.

    Args:
        pairs: the ids of two trees each, with a blank between.
        empty_tree: the id of the empty tree.
    """
    lines = [f"{pair}\n".encode("ascii") for pair in chain(pairs, [f"{empty_tree} {empty_tree}"])]
    # A patch ends in LF, and so does the line of a pair without a difference; a record ends in NUL.
    before = b"\n" if with_patch else b"\0"
    flags = ("-r", *RAW, *(PATCH if with_patch else ()))
    with repository.child("diff-tree", "--stdin", *flags, variables=variables) as child:
        child.feed(b"".join(lines))
        descriptor = child.out.fileno()
        buffer, start = b"", 0
        for number, line in enumerate(lines):
            sought, is_large, scan = before + line, False, start
            while True:
                if not is_large and buffer.startswith(line, start):
                    found = start
                    break
                found = buffer.find(sought, scan) + 1
                if found:
                    break
                data = os.read(descriptor, _BLOCK)
                if not data:
                    return
                kept = buffer[start:]
                if len(kept) > MOST_BYTES:
                    is_large, kept = True, kept[-len(line) - 1 :]
                buffer, start = kept + data, 0
                scan = max(0, len(kept) - len(line) - 1)
            if number == len(pairs) and not _has_ended_well(child):
                return
            if number:
                yield None if is_large else buffer[start:found]
            start = found + len(line)


def _has_ended_well(child: Child) -> bool:
    """Wait for a child's end; the last answer counts only then."""
    with suppress(UndecidedError):
        return child.finish().code == 0
    return False


class BlobFacts:
    """Asks git for types and sizes of many objects at once; a context manager that owns the child."""

    def __init__(self, repository: Repository) -> None:
        form = "--batch-command=%(objecttype) %(objectsize)"
        self._child = repository.child("cat-file", form, "--buffer")

    def __enter__(self) -> BlobFacts:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()

    def of(self, oids: Sequence[bytes]) -> list[bytes]:
        """Return git's answers: `blob 123`; another text where there is no such object, or git has died."""
        if not oids:
            return []
        self._child.write(b"info " + b"\ninfo ".join(oids) + b"\nflush\n")
        pieces: list[bytes] = []
        left = len(oids)
        while left > 0:
            data = os.read(self._child.out.fileno(), _BLOCK)
            if not data:
                return [b""] * len(oids)
            pieces.append(data)
            left -= data.count(b"\n")
        return b"".join(pieces).split(b"\n")[:-1]
