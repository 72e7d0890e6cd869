"""What differs between many pairs of trees: git's output in large blocks, parted at git's own lines alone.

Nothing is parsed here. A pair whose difference is too large, or that git died over, has none: its reader
takes another path.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import chain
from queue import SimpleQueue

from patchgate.errors import UndecidedError
from patchgate.git.diff import PATCH, RAW
from patchgate.git.repository import Repository
from patchgate.process.child import Child

_BLOCK = 1 << 20
# How many pairs each of two children gets in turn: their answers usually fit into a pipe. With fewer, git
# reads more trees twice.
_IN_TURN = 1_024
MOST_BYTES = 4 << 20
"""How large one difference may be."""
# Of a larger one so much is read; then git is ended, for it may write for minutes.
_MOST_SKIPPED = 32 << 20


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

    Patches take git longer than us, so two children make them side by side, each of every other block of
    pairs, if there is a processor for each. It ends early where git does, and at a very large one.

    Args:
        pairs: the ids of two trees each, with a blank between.
        empty_tree: the id of the empty tree.
    """
    blocks = [pairs[start : start + _IN_TURN] for start in range(0, len(pairs), _IN_TURN)]
    number = 2 if with_patch and len(blocks) > 2 and _processors() > 1 else 1
    with ExitStack() as stack:
        children = []
        for turn in range(number):
            own = [*chain.from_iterable(blocks[turn::number])]
            answers = _answers(repository, own, empty_tree, variables, with_patch=with_patch)
            children.append(stack.enter_context(closing(answers)))
            # Let it begin: a generator starts its child when it is first asked.
            next(answers)
        for turn, block in enumerate(blocks):
            for _ in block:
                try:
                    yield next(children[turn % number])
                except StopIteration:
                    return


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _answers(
    repository: Repository,
    pairs: Sequence[str],
    empty_tree: str,
    variables: Mapping[str, str],
    *,
    with_patch: bool,
) -> Generator[bytes | None]:
    """Yield None when the child has begun, and then its answers, as `differences` does.

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
        yield None
        descriptor = child.out.fileno()
        buffer, start = b"", 0
        for number, line in enumerate(lines):
            sought, is_large, scan, skipped = before + line, False, start, 0
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
                    skipped += len(kept)
                    if skipped > _MOST_SKIPPED:
                        return
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
    """Asks git for types and sizes of many objects, while it is not waited for; a context manager that owns
    the child.
    """

    def __init__(self, repository: Repository) -> None:
        form = "--batch-command=%(objecttype) %(objectsize)"
        self._child = repository.child("cat-file", form, "--buffer")
        self._asked: SimpleQueue[bytes | None] = SimpleQueue()
        # Written by a thread, so that a full pipe stops neither git nor this process.
        self._child.feed(iter(self._asked.get, None))
        self._buffer = b""

    def __enter__(self) -> BlobFacts:
        return self

    def __exit__(self, *error: object) -> None:
        self._asked.put(None)
        self._child.end()

    def ask(self, oids: Sequence[bytes]) -> None:
        """Ask about some objects."""
        if oids:
            self._asked.put(b"info " + b"\ninfo ".join(oids) + b"\nflush\n")

    def answers(self, number: int) -> list[bytes]:
        """Return git's next answers, in the order of the questions: `blob 123`; another text where there is
        no such object, or git has died.
        """
        pieces = [self._buffer]
        have = self._buffer.count(b"\n")
        while have < number:
            data = os.read(self._child.out.fileno(), _BLOCK)
            if not data:
                self._buffer = b""
                return [b""] * number
            pieces.append(data)
            have += data.count(b"\n")
        *lines, self._buffer = b"".join(pieces).split(b"\n", number)
        return lines
