"""Compare a repository before and after a commit: what was lost, what the tool judged, what was mixed.

Counts bytes of whole lines, after formatting both sides, so that no fix counts as a loss. What is in the
working tree before and in the same file no longer is *lost*, and so is what was staged and is neither in
the index nor in the commit. What the tool saw in a file and was not about to be committed was *judged* all
the same; what was not staged and is in the commit is *mixed*.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.bypass_place import Place
from bench.lost_work_tool import contents, formatted

Contents = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class State:
    """A repository at one moment.

    `files` is the working tree, `kinds` the kind and the executable bit of each file; `staged` is what a
    commit would have; `intended` are the files of `git add -N`. `is_merging` says whether a merge is in
    progress.
    """

    head: str
    parents: int
    files: Contents
    kinds: Mapping[str, str]
    staged: Contents
    intended: frozenset[str]
    is_merging: bool

    @classmethod
    def of(cls, place: Place) -> State:
        """Read it with git alone, without a hook and without a change."""
        entries = place.git("ls-files", "-s", "-z").split("\0")
        intended = place.git("diff", "--name-only", "--diff-filter=A", "-z").split("\0")
        return cls(
            place.git("rev-parse", "HEAD"),
            len(place.git("rev-list", "--parents", "-1", "HEAD").split()) - 1,
            _files(place.path),
            _kinds(place.path),
            _blobs(place, (entry for entry in entries if entry), set(intended)),
            frozenset(name for name in intended if name),
            (place.path / ".git" / "MERGE_HEAD").exists(),
        )


def _files(folder: Path) -> Contents:
    return {name: text.encode("latin-1") for name, text in contents(str(folder)).items()}


def _kinds(folder: Path) -> Mapping[str, str]:
    return {name: _kind(folder / name) for name in _files(folder)}


def _kind(place: Path) -> str:
    mode = place.lstat().st_mode
    if stat.S_ISLNK(mode):
        return "120000"
    return "100755" if mode & stat.S_IXUSR else "100644"


def _blobs(place: Place, entries: Iterable[str], without: set[str]) -> Contents:
    """Read the entries of an index: MODE ID STAGE, a tab, the path; of a gitlink the files of its commit."""
    found: dict[str, bytes] = {}
    for entry in entries:
        about, _, name = entry.partition("\t")
        mode, oid, _ = about.split()
        if mode == "160000":
            inner = place.path / name
            listed = place.git("ls-tree", "-r", "-z", oid, cwd=inner).split("\0")
            for each in filter(None, listed):
                path = each.partition("\t")[2]
                found[f"{name}/{path}"] = _blob(inner, each.split()[2])
        elif name not in without:
            found[name] = _blob(place.path, oid)
    return found


def _blob(folder: Path, oid: str) -> bytes:
    argv = ("git", "cat-file", "blob", oid)
    return subprocess.run(argv, cwd=folder, stdout=subprocess.PIPE, check=True).stdout


@dataclass(frozen=True, slots=True)
class Damage:
    """What a commit did, in bytes, and what else changed, in words.

    `mixed` are bytes that were committed although they were not staged. `copied` says whether all that was
    lost is still in a file or an object that the manager left behind.
    """

    lost: int
    judged: int
    mixed: int
    words: tuple[str, ...] = ()
    copied: bool = False

    @property
    def cell(self) -> str:
        """What the table says."""
        saved = " (a copy is left)" if self.lost and self.copied else ""
        return "; ".join((f"{self.lost}{saved} / {self.judged} / {self.mixed}", *self.words))


def judged_bytes(place: Place, before: State) -> int:
    """Count what the tool has seen so far that was not about to be committed."""
    return sum(
        _size(_missing(content, before.staged.get(name)))
        for seen in _records(place)
        for name, content in seen.items()
    )


def damage(place: Place, before: State, after: State, judged: int, repeated: State | None = None) -> Damage:
    """Compare the states before and after a commit.

    Args:
        judged: see `judged_bytes`.
        repeated: if the commit was refused, the state after the next one; what was staged has changed by
        then.
    """
    last = repeated or after
    files = [_missing(content, last.files.get(name)) for name, content in before.files.items()]
    index = [_missing(content, after.staged.get(name)) for name, content in before.staged.items()]
    gone = [line for lines in (*files, *index) for line in lines.elements()]
    mixed = sum(_size(_missing(content, before.staged.get(name))) for name, content in last.staged.items())
    return Damage(
        sum(map(len, gone)),
        judged,
        mixed if last.head != before.head else 0,
        (*_words(before, last, refused=repeated is not None), *_silence(place)),
        all(_is_copied(place, line) for line in gone),
    )


def _missing(before: bytes, after: bytes | None) -> Counter[bytes]:
    """Give the lines that are there before and not after, formatting aside."""
    return Counter(_lines(before)) - Counter(_lines(after or b""))


def _lines(content: bytes) -> list[bytes]:
    return formatted(content).splitlines(keepends=True)


def _size(lines: Counter[bytes]) -> int:
    return sum(map(len, lines.elements()))


def _records(place: Place) -> Iterable[Contents]:
    for name in sorted((place.folder / "home").glob("seen.*")):
        seen = json.loads(name.read_text(encoding="utf-8"))
        yield {path: text.encode("latin-1") for path, text in seen.items()}


def _words(before: State, after: State, *, refused: bool) -> Iterable[str]:
    if refused:
        yield "refused first" if after.head != before.head else "refused twice"
    if after.files.keys() - before.files.keys():
        yield "a deletion undone"
    both = before.kinds.keys() & after.kinds.keys()
    if modes := [name for name in both if before.kinds[name] != after.kinds[name]]:
        yield f"{len(modes)} {'mode' if len(modes) == 1 else 'modes'} changed"
    if before.intended - after.intended:
        yield "intent-to-add lost"
    if before.is_merging and not (after.is_merging or after.parents == 2):
        yield "the merge lost"


def _silence(place: Place) -> Iterable[str]:
    if not list((place.folder / "home").glob("seen.*")):
        yield "the tool did not run"


def _is_copied(place: Place, line: bytes) -> bool:
    """Say whether a line is in a file that was left (a patch), or in an object of git (a stash)."""
    for root in (place.folder / "home", place.path / ".git"):
        for above, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name != "objects"]
            for name in names:
                path = Path(above, name)
                if not name.startswith("seen.") and path.is_file() and line in path.read_bytes():
                    return True
    argv = ("git", "cat-file", "--batch-all-objects", "--batch")
    return line in subprocess.run(argv, cwd=place.path, stdout=subprocess.PIPE, check=True).stdout
