"""What stands in a repository, and which of the two allowed states it is.

Decides between all old, all new and partial, and what counts as left behind. It does not know who wrote it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.world import Repo

OURS = ".patchgate-"


class Kind(StrEnum):
    """How a repository stands after something was broken off."""

    OLD = "all old"
    NEW = "all new"
    PARTIAL = "partial"


@dataclass(frozen=True)
class State:
    """Everything of a user's that an apply may not leave half done.

    `tree` has every file, folder and link of the working tree with its mode and bytes, what is ours by name
    aside; `entries` is the index as `git ls-files -s` prints it, `raw_index` its bytes; `refs` are `HEAD`,
    all refs, the stash included, and every reflog.
    """

    tree: Mapping[str, tuple[int, bytes]]
    entries: bytes
    raw_index: bytes
    refs: bytes


@dataclass(frozen=True)
class Standing:
    """A state that was held against the two allowed ones."""

    kind: Kind
    what: tuple[str, ...] = ()


def state_of(repo: Repo) -> State:
    """Read a repository's state; a held or left lock does not matter to that."""
    tree: dict[str, tuple[int, bytes]] = {}
    for above, folders, files in os.walk(repo.path):
        if above == str(repo.path):
            folders.remove(".git")
        for name in (*folders, *files):
            if name.startswith(OURS):
                continue
            place = Path(above, name)
            tree[str(place.relative_to(repo.path))] = content_of(place)
        folders[:] = [name for name in folders if not name.startswith(OURS)]
    git_dir = repo.path / ".git"
    refs = [(git_dir / "HEAD").read_bytes(), repo.git("for-each-ref")]
    refs += [file.read_bytes() for file in sorted((git_dir / "logs").rglob("*")) if file.is_file()]
    return State(tree, repo.git("ls-files", "-s", "-z"), (git_dir / "index").read_bytes(), b"".join(refs))


def content_of(place: Path) -> tuple[int, bytes]:
    """Read the mode and bytes of what stands at a place, links as such."""
    mode = place.lstat().st_mode
    if stat.S_ISLNK(mode):
        return mode, os.fsencode(os.readlink(place))
    return mode, place.read_bytes() if stat.S_ISREG(mode) else b""


def standing(old: State, new: State, now: State, *, index: bool) -> Standing:
    """Say how a repository stands; `index` says whether the index was to change with the working tree."""
    new_entries = new.entries if index else old.entries
    problems = []
    if now.refs != old.refs:
        problems.append("refs, HEAD or a reflog changed")
    if now.entries == old.entries and now.raw_index != old.raw_index:
        problems.append("the index has the same entries and other bytes")
    if not problems and now.tree == old.tree and now.entries == old.entries:
        return Standing(Kind.OLD)
    if not problems and now.tree == new.tree and now.entries == new_entries:
        return Standing(Kind.NEW)
    if now.entries not in {old.entries, new_entries}:
        problems.append("the index is neither old nor new")
    elif index and now.tree == new.tree:
        problems.append("the working tree is new and the index old")
    elif index and now.tree == old.tree:
        problems.append("the working tree is old and the index new")
    problems += _differences(old, new, now)
    return Standing(Kind.PARTIAL, tuple(problems))


def _differences(old: State, new: State, now: State) -> list[str]:
    """Name the paths that are neither, or how many are old and how many new."""
    olds, news, found = 0, 0, []
    for name in sorted(old.tree.keys() | new.tree.keys() | now.tree.keys()):
        was, becomes, stands = (state.tree.get(name) for state in (old, new, now))
        if was == becomes == stands:
            continue
        if stands == was:
            olds += 1
        elif stands == becomes:
            news += 1
        else:
            found.append(f"{name!r} is {_told(stands)}, neither old nor new")
    if olds and news:
        found.insert(0, f"{news} of {olds + news + len(found)} paths are new")
    return found


def _told(stands: tuple[int, bytes] | None) -> str:
    if stands is None:
        return "missing"
    return f"{stat.filemode(stands[0])} with {len(stands[1])} bytes"


def litter(repo: Repo, temporary: Path) -> list[str]:
    """Name what a program left behind: temporary files, locks that block git, journals, scratch places.

    Lock files of our own stay where they are by design (the kernel keeps the lock), and so does evidence.
    """
    found = []
    git_dir = repo.path / ".git"
    for above, folders, files in os.walk(repo.path):
        for name in (*folders, *files):
            inside = Path(above).is_relative_to(git_dir)
            # `tmp_obj_…` is not named: git leaves such where a disk is full, and `git gc` removes them.
            gits_own = inside and name.endswith(".lock")
            ours = Path(above).is_relative_to(git_dir / "patchgate")
            if name.startswith(OURS) or (gits_own and not ours):
                found.append(str(Path(above, name).relative_to(repo.path)))
    transactions = git_dir / "patchgate" / "transactions"
    if transactions.is_dir():
        found += [f"transaction {entry.name}" for entry in transactions.iterdir() if entry.suffix != ".lock"]
    if temporary.is_dir():
        found += [f"TMPDIR/{entry.name}" for entry in temporary.iterdir() if not _is_probe(entry)]
    return sorted(found)


def _is_probe(entry: Path) -> bool:
    """Tell whether it is what Python itself writes to see if it can write there (tempfile)."""
    return entry.is_file() and entry.read_bytes() in {b"", b"blat"} and len(entry.name) == 8


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Read every file, folder and link below a folder, `.git` included, to be compared with later."""
    return {
        str(Path(above, name)): content_of(Path(above, name))
        for above, folders, files in os.walk(folder)
        for name in (*folders, *files)
    }
