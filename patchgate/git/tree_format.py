"""The form of a tree object: parsed strictly, and written.

Of a malformed tree each reader sees another tree: of two entries of one name `git show` takes the first,
`git checkout` the last (measured). Such a tree is never read. Forms that every reader reads alike, but git no
longer writes (a mode `040000`, an object id of zeroes), are read, and no change may bring them; that mode may
be in history from before the policy.
Sources: gitformat-pack (tree), git's fsck.c (`fsck_tree`) and tree-walk.c (`decode_tree_entry`).
"""

from __future__ import annotations

import operator
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from patchgate.errors import UndecidedError
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, Entry
from patchgate.git.quoting import quote_path

TREE_MODE = "040000"
_MODES = {
    mode.lstrip("0").encode("ascii"): mode for mode in (TREE_MODE, REGULAR, EXECUTABLE, SYMLINK, GITLINK)
}
# Git wrote this mode in 2005, fsck accepts it, and such commits are in histories that are still pushed.
_GROUP_WRITABLE = b"100664"
# Hosts wrote this mode until about 2012; fsck warns of it, and every reader takes it for a folder.
_PADDED_FOLDER = b"040000"
_ENTRY = {size: re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{%d})" % size, re.DOTALL) for size in (20, 32)}
_HINT = (
    "git fsck lists malformed trees; make the commit again from its files: "
    "git reset --mixed HEAD~1, git add -A, git commit"
)


class MalformedTreeError(UndecidedError):
    """A tree object that readers do not agree about; `oid` names it, `fault` says what is wrong with it."""

    def __init__(self, oid: str, fault: str, where: str = "") -> None:
        super().__init__(f"the tree {oid[:12]}{where and f' ({where})'} is malformed: {fault}", _HINT)
        self.oid = oid
        self.fault = fault

    def at(self, where: str) -> MalformedTreeError:
        """Give the same error with the place of the tree."""
        return MalformedTreeError(self.oid, self.fault, where)


@dataclass(frozen=True, slots=True)
class TreeObject:
    """One tree object whose entries have one meaning: sorted, no name twice.

    `rows` holds mode, name and object id of each entry, as they are in the object.
    """

    oid: str
    rows: Sequence[tuple[bytes, bytes, bytes]]

    @classmethod
    def parse(cls, raw: bytes, oid: str) -> TreeObject:
        """Read a tree object: entries of `mode SP name NUL oid`.

        Raises:
            MalformedTreeError: it is damaged, not sorted as git sorts, or holds a name twice.
        """
        size = len(oid) // 2
        # One expression is ten times as fast as a loop: some folders have thousands of names.
        rows = _ENTRY[size].findall(raw)
        if sum(len(mode) + len(name) for mode, name, _ in rows) + len(rows) * (size + 2) != len(raw):
            raise MalformedTreeError(oid, "an entry is cut off, or git writes no such mode or name")
        folders = {mode for mode in {mode for mode, _, _ in rows} if _mode(mode) == TREE_MODE}
        keys = [name + b"/" if mode in folders else name for mode, name, _ in rows]
        if len({name for _, name, _ in rows}) != len(rows):
            raise MalformedTreeError(oid, f"it holds {_twice(rows)} twice")
        if not all(map(operator.lt, keys, islice(keys, 1, None))):
            raise MalformedTreeError(oid, "its entries are not sorted")
        return cls(oid, rows)

    @property
    def names(self) -> tuple[bytes, ...]:
        """The names of its entries, in git's order."""
        return tuple([name for _, name, _ in self.rows])

    def entries(self) -> dict[bytes, Entry]:
        """The entries by their names; modes as git reads them."""
        return {name: Entry(_mode(mode), oid.hex()) for mode, name, oid in self.rows}

    def require_current_form(self, *, is_past: bool = False) -> None:
        """Refuse what git no longer writes.

        Args:
            is_past: whether the tree is from before the policy, where a folder may have the mode `040000`.

        Raises:
            MalformedTreeError: a mode has another form than git writes, or an object id is all zeroes.
        """
        odd = {mode for mode, _, _ in self.rows} - _MODES.keys() - {_GROUP_WRITABLE}
        odd -= {_PADDED_FOLDER} if is_past else set()
        if odd:
            raise MalformedTreeError(self.oid, f"it holds the mode {min(odd).decode('ascii')}")
        nothing = bytes(len(self.oid) // 2)
        for _, name, oid in self.rows:
            if oid == nothing:
                raise MalformedTreeError(self.oid, f"{quote_path(name)} has an object id of zeroes")


def _twice(rows: Sequence[tuple[bytes, bytes, bytes]]) -> str:
    seen: set[bytes] = set()
    for _, name, _ in rows:
        if name in seen:
            return quote_path(name)
        seen.add(name)
    return "a name"


def parse_tree(raw: bytes, oid: str) -> dict[bytes, Entry]:
    """Read the entries of a tree object by their names.

    Raises:
        MalformedTreeError: it is damaged, not sorted as git sorts, or holds a name twice.
    """
    return TreeObject.parse(raw, oid).entries()


def _mode(mode: bytes) -> str:
    """Read a mode as git does (`canon_mode`): trees of old repositories hold 100664, git writes 100644."""
    known = _MODES.get(mode)
    if known is not None:
        return known
    number = int(mode, 8)
    if stat.S_ISREG(number):
        return EXECUTABLE if number & stat.S_IXUSR else REGULAR
    if stat.S_ISLNK(number):
        return SYMLINK
    return TREE_MODE if stat.S_ISDIR(number) else GITLINK


def print_tree(entries: Mapping[bytes, Entry]) -> bytes:
    """Write a tree object, entries in git's order: a folder sorts as if its name ended in a slash."""

    def order(item: tuple[bytes, Entry]) -> bytes:
        return item[0] + (b"/" if item[1].mode == TREE_MODE else b"")

    return b"".join(
        entry.mode.lstrip("0").encode("ascii") + b" " + name + b"\0" + bytes.fromhex(entry.oid)
        for name, entry in sorted(entries.items(), key=order)
    )
