"""Receipts of accepted changes, the tips that were settled at install, and the announced tip of each branch.

Decides the format of the three files; lines of another format are ignored. Callers decide what a receipt is
used for. The files are neither locked nor flushed: what a crash loses is checked again.
"""

from __future__ import annotations

import os
from contextlib import suppress

from patchgate.storage import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Final

_HEX = b"0123456789abcdef"
_WIDTHS = (40, 64)
_APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o644
_FOLDER_MODE = 0o700
# Finding one commit among 100,000 receipts takes 1 ms, making a set of them all 120 ms.
_MOST_SEARCHES = 64
_MERGE = b"merge"
# Some 500 receipts; the fast path looks at no fewer.
_TAIL = 64 << 10
_FILE_MODE = 0o600
_MOST_BRANCHES = 200
_MOST_BYTES = 64 << 10


class Receipt(Value):
    """One accepted change; full ids; `parent` is None for a root commit, and the first parent of a merge."""

    __slots__ = ("commit", "is_merge", "parent", "tree")

    def __init__(self, commit: str, tree: str, parent: str | None, is_merge: bool) -> None:
        self.commit: Final = commit
        self.tree: Final = tree
        self.parent: Final = parent
        self.is_merge: Final = is_merge


class Receipts:
    """The receipts of one repository, shared by its worktrees; read once, on first use.

    A receipt is `<commit> <tree> <parent>` and LF, `-` for the parent of a root commit: the change from
    parent to commit was *accepted*. That of a merge has a fourth word, `merge`: it says nothing about the
    other parents, so `AnnouncedTips.covers` stops there. The shim of reference-transaction adds a receipt
    by `printf`, in one write; for a merge, only the one that pre-merge-commit has judged.

    Args:
        common_dir: git's common directory; nothing is created in it before the first receipt.
    """

    def __init__(self, common_dir: str) -> None:
        self.path = os.path.join(common_dir, "patchgate", "receipts")
        self._raw: bytes | None = None
        self._commits: set[str] | None = None
        self._searches = 0

    def has(self, commit: str) -> bool:
        """Return whether a commit was accepted here, as the change from its first parent."""
        if self._commits is None and self._searches < _MOST_SEARCHES:
            self._searches += 1
            return any(found.commit == commit for found in self._containing(f"{commit} "))
        return commit in self._all()

    def commits(self) -> set[str]:
        """Return every commit that has a receipt."""
        return set(self._all())

    def by_tree(self, tree: str) -> list[tuple[str, str | None]]:
        """Return commit and parent of every receipt for one resulting tree, oldest first."""
        found = (each for each in self._containing(f" {tree} ") if each.tree == tree)
        return list(dict.fromkeys((each.commit, each.parent) for each in found))

    def recent_parents(self) -> dict[str, str | None]:
        """Return commit and parent of the receipts in the last 64 KiB of the file, without merges."""
        lines = _read(self.path, _TAIL).split(b"\n")[:-1]
        found = [receipt for receipt in map(_parse, lines) if receipt is not None]
        return {each.commit: each.parent for each in found if not each.is_merge}

    def add(self, lines: Iterable[tuple[str, str, str | None]], merges: Collection[str] = ()) -> str | None:
        """Add receipts (commit, tree, parent or None) in one write; return None, or the text of a warning.

        Args:
            lines: the accepted changes.
            merges: the commits that have several parents.

        Raises:
            ValueError: an id is not valid; a programming error.
        """
        texts = [
            f"{commit} {tree} {'-' if parent is None else parent}{' merge' if commit in merges else ''}"
            for commit, tree, parent in lines
        ]
        written = [text.encode("utf-8", "replace") for text in texts]
        if not all(map(_parse, written)):
            raise ValueError("a receipt is three object ids of one length")
        if not written:
            return None
        try:
            os.makedirs(os.path.dirname(self.path), mode=_FOLDER_MODE, exist_ok=True)
            _append(self.path, b"\n".join(written) + b"\n")
        except OSError as error:
            return f"no receipt was written ({error.strerror or error}), so this will be checked again"
        finally:
            self._raw = self._commits = None
        return None

    def _all(self) -> set[str]:
        if self._commits is None:
            import re

            raw = self._content()
            found: list[bytes] = []
            for width in _WIDTHS:
                # One expression for the whole file is four times as fast as one line at a time.
                form = b"^([0-9a-f]{%d}) [0-9a-f]{%d} (?:[0-9a-f]{%d}|-)(?: merge)?\n" % (width, width, width)
                if len(found) != raw.count(b"\n"):
                    found += re.findall(form, raw, re.MULTILINE)
            self._commits = {commit.decode("ascii") for commit in found}
        return self._commits

    def _containing(self, needle: str) -> Iterator[Receipt]:
        """Find the receipts whose line contains a text; an unfinished last line is ignored."""
        raw, sought = self._content(), needle.encode("utf-8", "replace")
        at = raw.find(sought)
        while at >= 0:
            end = raw.find(b"\n", at)
            if end < 0:
                return
            found = _parse(raw[raw.rfind(b"\n", 0, at) + 1 : end])
            if found is not None:
                yield found
            at = raw.find(sought, end)

    def _content(self) -> bytes:
        if self._raw is None:
            self._raw = _read(self.path)
        return self._raw


def settle(common_dir: str, oids: Iterable[str]) -> str | None:
    """Add tips to the settled ones; return None, or the text of a warning.

    Raises:
        ValueError: one of them is not an object id; a programming error.
    """
    from pathlib import Path

    from patchgate.storage.atomic_write import write_atomically

    tips = list(dict.fromkeys([*settled(common_dir), *oids]))
    if not all(is_oid(tip.encode("utf-8", "replace")) for tip in tips):
        raise ValueError("a settled tip is an object id")
    path = _settled(common_dir)
    try:
        os.makedirs(os.path.dirname(path), mode=_FOLDER_MODE, exist_ok=True)
        write_atomically(Path(path), "".join(f"{tip}\n" for tip in tips).encode("ascii"), mode=_MODE)
    except OSError as error:
        return f"the existing tips were not recorded as settled ({error.strerror or error})"
    return None


def settled(common_dir: str) -> list[str]:
    """Return the tips that were settled at install, in order; invalid lines are skipped."""
    return [line.decode("ascii") for line in _read(_settled(common_dir)).split(b"\n") if is_oid(line)]


def _settled(common_dir: str) -> str:
    return os.path.join(common_dir, "patchgate", "settled")


def _parse(line: bytes) -> Receipt | None:
    """Parse a line without its LF; None if it is not a receipt."""
    words = line.split(b" ")
    is_merge = words[3:] == [_MERGE]
    if len(words) != 3 + is_merge:
        return None
    commit, tree, parent = words[:3]
    ids = [commit, tree] if parent == b"-" else [commit, tree, parent]
    if not all(map(is_oid, ids)) or len({len(each) for each in ids}) > 1:
        return None
    above = None if parent == b"-" else parent.decode("ascii")
    return Receipt(commit=commit.decode("ascii"), tree=tree.decode("ascii"), parent=above, is_merge=is_merge)


def is_oid(word: bytes) -> bool:
    """Return whether these bytes are a full object id."""
    return len(word) in _WIDTHS and not word.translate(None, _HEX)


def _read(path: str, most: int | None = None) -> bytes:
    """Read a file, or its last bytes; empty if it cannot be read."""
    with suppress(OSError), open(path, "rb") as file:
        if most is not None:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read()
    return b""


def _append(path: str, raw: bytes) -> None:
    """Append whole lines in one write, after a line feed where a crash left an unfinished line.

    Raises:
        OSError: from the system, or where only a part was written.
    """
    descriptor = os.open(path, _APPENDING, _MODE)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            raw = b"\n" + raw
        if os.write(descriptor, raw) != len(raw):
            raise OSError("only a part of it was written")
    finally:
        os.close(descriptor)


class AnnouncedTips:
    """The commit up to which each branch was reported, shared by the worktrees; it saves a question to git.

    A line of the file is `<commit> <branch>` and LF, with the full name of the branch: everything below that
    commit was reported there. An old line stays true, so of two writers at once either may win. Without the
    file, or with a damaged one, git is asked. The fast path reads the same files.

    Args:
        common_dir: git's common directory; nothing is created in it.
    """

    def __init__(self, common_dir: str) -> None:
        self.path = os.path.join(common_dir, "patchgate", "told")
        self._common_dir = common_dir

    def covers(self, branch: str, tip: str, receipts: Receipts) -> bool:
        """Return whether everything below a commit was accepted or reported on a branch, without git.

        True if a line of commits, each with a receipt and none a merge, leads from it to a commit below
        which nothing is left: reported on that branch, settled at install, or a root commit.
        """
        stops = {self.tips().get(branch), *settled(self._common_dir)}
        parents = receipts.recent_parents()
        at: str | None = tip
        while at is not None and at not in stops:
            if at not in parents:
                return False
            # Removed, so that forged receipts cannot form an endless loop.
            at = parents.pop(at)
        return True

    def tips(self) -> dict[str, str]:
        """Return the announced tip of each branch, the latest ones last."""
        found: dict[str, str] = {}
        for line in self._lines():
            oid, _, branch = line.partition(b" ")
            if branch and is_oid(oid):
                found[branch.decode("utf-8", "surrogateescape")] = oid.decode("ascii")
        return found

    def record(self, branch: str, tip: str) -> None:
        """Record that everything below a commit was reported on a branch; a failure costs only a question."""
        tips = self.tips()
        if tips.pop(branch, None) == tip:
            return
        tips[branch] = tip
        lines = [f"{oid} {name}\n".encode("utf-8", "surrogateescape") for name, oid in tips.items()]
        content = b"".join(lines[-_MOST_BRANCHES:])
        if len(content) > _MOST_BYTES:
            content = lines[-1]
        from pathlib import Path

        from patchgate.storage.atomic_write import write_atomically

        with suppress(OSError):
            write_atomically(Path(self.path), content, mode=_FILE_MODE)

    def _lines(self) -> list[bytes]:
        """Read the whole lines; none if the file cannot be read, or is longer than it can be."""
        with suppress(OSError), open(self.path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
            if len(content) <= _MOST_BYTES:
                return content.split(b"\n")[:-1]
        return []
