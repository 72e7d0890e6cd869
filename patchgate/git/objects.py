"""Read objects through one long-lived child: revisions, sizes, blobs, trees.

Every question and answer is bounded, so neither side of the pipe can block the other. Source of the protocol:
git-cat-file, `--batch-command`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from patchgate.errors import UndecidedError
from patchgate.git.model import TREE_MODE, Entry, TreeObject, parse_tree
from patchgate.git.quoting import printable
from patchgate.git.repository import BIG_FILE, FETCH_MISSING, Repository, failed
from patchgate.values import dataclass

# 400 questions and their answers stay below the 64 KiB of a pipe.
_AT_ONCE = 400
# Git looks for a NUL in so many bytes of a file (buffer_is_binary, xdiff-interface.c).
SNIFFED = 8000
_MOST_KNOWN = 100_000
# The rest of a partly read object is skipped up to this many bytes.
_DRAINED = 8 << 20
_TREE_BYTES = 4 << 20
# How many trees are cached: more than a path can have folders. A few bytes make a tree of very many names.
_KEPT_TREES = 4096
_KEPT_NAMES = 400_000


@dataclass(frozen=True, slots=True)
class Header:
    """An object without its content: full id, type, size in bytes."""

    oid: str
    type: str
    size: int


class Objects:
    """The reader of one repository's objects; a context manager that owns one git child."""

    def __init__(self, repository: Repository, variables: Mapping[str, str] | None = None) -> None:
        self.repository = repository
        self.variables = variables
        self._child = repository.child("cat-file", "--batch-command", variables=variables)
        self._buffer, self._at = b"", 0
        self._n_owed = 0
        self._trees: dict[str, dict[bytes, Entry]] = {}
        self._n_names = 0
        self._texts: dict[str, bool] = {}
        # Of some trees, for `symlinks.list_links`.
        self.links: dict[str, dict[bytes, Entry]] = {}
        self.link_steps = 0
        self.empty_tree = self.hash("tree", b"")
        self.empty_blob = self.hash("blob", b"")

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *error: object) -> None:
        self._child.end()

    def hash(self, kind: str, content: bytes) -> str:
        """Compute the id that git would give an object; nothing is written."""
        digest = hashlib.new(self.repository.object_format, b"%s %d\0" % (kind.encode(), len(content)))
        digest.update(content)
        return digest.hexdigest()

    def header(self, name: str) -> Header | None:
        """Look up a revision or an object id; None if there is none (or more than one).

        Raises:
            UndecidedError: git could not answer, for instance in a partial clone.
        """
        return self.headers([name])[0]

    def headers(self, names: Sequence[str]) -> list[Header | None]:
        """Look up many names in a few round trips."""
        found: list[Header | None] = []
        for start in range(0, len(names), _AT_ONCE):
            batch = names[start : start + _AT_ONCE]
            self._ask([b"info %s\n" % _one_line(name) for name in batch])
            found.extend(map(_header, self._answers(len(batch))))
        return found

    def sizes(self, oids: Iterable[str]) -> dict[str, int]:
        """Look up the sizes in bytes of many blobs.

        Raises:
            UndecidedError: one of them is missing.
        """
        wanted = list(dict.fromkeys(oids))
        found: dict[str, int] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            batch = wanted[start : start + _AT_ONCE]
            self._ask([b"info %s\n" % oid.encode("ascii") for oid in batch])
            for oid, line in zip(batch, self._answers(len(batch)), strict=True):
                size = line.rpartition(b" ")[2]
                if not size.isdigit():
                    raise _missing(oid)
                found[oid] = int(size)
        return found

    def read(self, oid: str, limit: int = BIG_FILE, kind: str | None = None) -> bytes:
        """Read an object's content of at most `limit` bytes.

        Args:
            kind: the type that the object must have; None takes any.

        Raises:
            UndecidedError: it is missing, larger, or of another type.
        """
        header = self.header(oid)
        if header is None:
            raise _missing(oid)
        _require_type(header, kind)
        if header.size > limit:
            raise UndecidedError(
                f"object {oid[:12]} has {header.size} bytes; patchgate reads at most {limit}"
            )
        self._ask([b"contents %s\n" % oid.encode("ascii")])
        self._next_header(oid)
        return self._content(header.size)

    def read_some(self, oids: Sequence[str], most_bytes: int, kind: str | None = None) -> dict[str, bytes]:
        """Read the first of some objects, as many as together have at most `most_bytes`, in one round trip.

        Args:
            kind: the type that each must have; None takes any.

        Raises:
            UndecidedError: one of them is missing, or of another type.
        """
        chosen: list[str] = []
        left = most_bytes
        for oid, size in self.sizes(oids[:_AT_ONCE]).items():
            left -= size
            if left < 0:
                break
            chosen.append(oid)
        self._ask([b"contents %s\n" % oid.encode("ascii") for oid in chosen])
        found: dict[str, bytes] = {}
        headers: list[Header] = []
        for oid in chosen:
            header = _header(self._line())
            if header is None:
                self._n_owed -= 1
                continue
            headers.append(header)
            found[oid] = self._content(header.size)
        # Only now: an answer that is not read would be taken for that of the next question.
        for header in headers:
            _require_type(header, kind)
        for oid in chosen:
            if oid not in found:
                raise _missing(oid)
        return found

    def without_text(self, oids: Iterable[str]) -> set[str]:
        """Find the blobs that are not known to be text: with a NUL in the first 8,000 bytes, or too large.

        Answers are cached: in a walk the new side of one commit is the old side of a later one.

        Raises:
            UndecidedError: one of them is missing.
        """
        wanted = set(oids)
        if len(self._texts) > _MOST_KNOWN:
            self._texts.clear()
        sizes = self.sizes(oid for oid in wanted if oid not in self._texts)
        self._texts.update((oid, False) for oid, size in sizes.items() if size > BIG_FILE)
        asked = [oid for oid, size in sizes.items() if size <= BIG_FILE]
        for start in range(0, len(asked), _AT_ONCE):
            batch = asked[start : start + _AT_ONCE]
            self._ask([b"contents %s\n" % oid.encode("ascii") for oid in batch])
            for oid in batch:
                header = self._next_header(oid)
                self.know_text(oid, self._content(header.size))
        return {oid for oid in wanted if not self._texts[oid]}

    def know_text(self, oid: str, content: bytes) -> None:
        """Remember whether a blob is text, for `without_text`, because its content is known."""
        self._texts[oid] = len(content) <= BIG_FILE and content.find(b"\0", 0, SNIFFED) < 0

    def head(self, oid: str, most: int) -> bytes:
        """Read the first `most` bytes of an object of any size, all where it has no more.

        Raises:
            UndecidedError: it is missing.
        """
        self._ask([b"contents %s\n" % oid.encode("ascii")])
        header = self._next_header(oid)
        found = self._take(min(most, header.size))
        left = header.size - len(found) + 1
        if left > _DRAINED:
            # A new child costs less than skipping the rest of a large object.
            self._child.end()
            self._child = self.repository.child("cat-file", "--batch-command", variables=self.variables)
            self._buffer, self._at, self._n_owed = b"", 0, 0
            return found
        self._content(left - 1)
        return found

    def sha256(self, oid: str) -> str:
        """Compute the SHA-256 of an object's content, of any size: it is read in pieces.

        Raises:
            UndecidedError: it is missing.
        """
        self._ask([b"contents %s\n" % oid.encode("ascii")])
        header = self._next_header(oid)
        digest, left = hashlib.sha256(), header.size
        while left:
            piece = self._take(min(left, 1 << 20))
            digest.update(piece)
            left -= len(piece)
        self._content(0)
        return digest.hexdigest()

    def tree(self, oid: str) -> dict[bytes, Entry]:
        """List one tree: name to entry. Trees are cached, up to a small limit.

        Raises:
            UndecidedError: it is missing, malformed, or not a tree.
        """
        listed = self._trees.get(oid)
        if listed is None:
            listed = {} if oid == self.empty_tree else parse_tree(self.read(oid, kind="tree"), oid)
            if len(self._trees) >= _KEPT_TREES or self._n_names > _KEPT_NAMES:
                self._trees.clear()
                self._n_names = 0
            self._trees[oid] = listed
            self._n_names += len(listed)
        return listed

    def trees(self, oids: Sequence[str]) -> Iterator[TreeObject]:
        """Read many trees, a few at once; none is cached.

        Raises:
            UndecidedError: one is missing, malformed, or not a tree.
        """
        missing = oids
        while missing:
            # A tree larger than the batch limit is read alone.
            read = self.read_some(missing, _TREE_BYTES, "tree") or {
                missing[0]: self.read(missing[0], kind="tree")
            }
            missing = missing[len(read) :]
            for oid, raw in read.items():
                yield TreeObject.parse(raw, oid)

    def list_tree(self, tree: str) -> bytes:
        """List every file, symlink and gitlink of a tree, as `git ls-tree -r -z` does.

        Raises:
            UndecidedError: git failed.
        """
        if tree == self.empty_tree:
            return b""
        return self.repository.output("ls-tree", "-r", "-z", "--full-tree", tree, variables=self.variables)

    def entry(self, tree: str, path: bytes) -> Entry | None:
        """Find the entry of a tree at a path; None if there is none."""
        *folders, name = path.split(b"/")
        for folder in folders:
            step = self.tree(tree).get(folder)
            if step is None or step.mode != TREE_MODE:
                return None
            tree = step.oid
        return self.tree(tree).get(name)

    def file_at(self, tree: str, path: bytes) -> Entry | None:
        """Find the file, symlink or submodule at a path of a tree; None if there is none."""
        entry = self.entry(tree, path)
        return None if entry is not None and entry.mode == TREE_MODE else entry

    def _ask(self, questions: Sequence[bytes]) -> None:
        if self._n_owed:
            # Who was interrupted has left an answer unread: it would be taken for that of the next question.
            raise UndecidedError("an answer of git was interrupted, so no further one is read")
        self._n_owed = len(questions)
        self._child.write(b"".join(questions))

    def _answers(self, count: int) -> list[bytes]:
        """Read the answers of one line each."""
        lines = self._lines(count)
        self._n_owed -= count
        return lines

    def _content(self, size: int) -> bytes:
        """Read the content of an answer, or what is left of it, to its end."""
        content = self._take(size + 1)[:-1]
        self._n_owed -= 1
        return content

    def _next_header(self, oid: str) -> Header:
        """Read the header line of a requested content."""
        header = _header(self._line())
        if header is None:
            self._n_owed -= 1
            raise _missing(oid)
        return header

    def _take(self, size: int) -> bytes:
        have = len(self._buffer) - self._at
        if have < size:
            pieces = [self._buffer[self._at :]]
            while have < size:
                data = os.read(self._child.out.fileno(), min(1 << 20, max(1 << 16, size - have)))
                if not data:
                    raise failed("cat-file", self._child.finish())
                pieces.append(data)
                have += len(data)
            self._buffer, self._at = b"".join(pieces), 0
        start, self._at = self._at, self._at + size
        return self._buffer[start : self._at]

    def _line(self) -> bytes:
        """Read one line of an answer; what follows it in the buffer is not copied."""
        end = self._buffer.find(b"\n", self._at)
        if end < 0:
            return self._lines(1)[0]
        start, self._at = self._at, end + 1
        return self._buffer[start:end]

    def _lines(self, count: int) -> list[bytes]:
        """Read so many lines of an answer."""
        pieces = [self._buffer[self._at :]]
        have = pieces[0].count(b"\n")
        while have < count:
            data = os.read(self._child.out.fileno(), 1 << 16)
            if not data:
                raise failed("cat-file", self._child.finish())
            pieces.append(data)
            have += data.count(b"\n")
        *lines, self._buffer = b"".join(pieces).split(b"\n", count)
        self._at = 0
        return lines


def _header(line: bytes) -> Header | None:
    words = line.split(b" ")
    if len(words) == 3 and words[2].isdigit():
        return Header(words[0].decode("ascii"), words[1].decode("ascii"), int(words[2]))
    return None


def _require_type(header: Header, kind: str | None) -> None:
    if kind is not None and header.type != kind:
        raise UndecidedError(
            f"object {header.oid[:12]} is a {header.type}, but its tree lists a {kind}",
            "run git fsck, then recreate the commit that adds it",
        )


def _one_line(name: str) -> bytes:
    if "\n" in name or "\0" in name:
        raise UndecidedError(f"{printable(name)} is not an object name")
    return name.encode("utf-8", "surrogateescape")


def _missing(oid: str) -> UndecidedError:
    return UndecidedError(
        f"object {printable(oid)} is not in this repository",
        FETCH_MISSING,
    )
