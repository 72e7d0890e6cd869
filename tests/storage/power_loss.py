"""A model of a disk that loses power, and of what is found on it afterwards.

A flushed file has its content, a flushed folder its names. Of the rest, any subset of the changes to names
may have reached the disk (a rename, or an exchange, as a whole or not at all), and of each unflushed file
nothing, the first half, the second half (over NUL bytes or what was there), or all. Folders, links, second
names of one file and exec bits are kept; other permission bits are not.

Source of the model: Pillai et al., “All File Systems Are Not Created Equal”, OSDI 2014.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import Faults, Operation


@dataclass(slots=True, eq=False)
class Content:
    """The bytes of one file, or the target of one link: those that are safe, and those that a reader sees."""

    safe: bytes = b""
    seen: bytes = b""
    mode: int = 0o644
    is_link: bool = False

    def after_power_loss(self) -> set[bytes]:
        pairs = zip(self.safe, self.seen, strict=False)
        start = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        middle = (start + len(self.seen)) // 2
        first_half = self.seen[:middle] + self.safe[middle:]
        second_half = self.safe[:middle].ljust(middle, b"\0") + self.seen[middle:]
        return {self.safe, self.seen, first_half, second_half}

    def copy(self) -> Content:
        return Content(self.safe, self.seen, self.mode, self.is_link)


FOLDER = Content()
Names = dict[Path, Content]


@dataclass(frozen=True, slots=True)
class Thing:
    """What one name means when the power is back; `file` tells which names mean the same file."""

    file: int
    content: bytes = b""
    mode: int = 0o644
    is_link: bool = False
    is_folder: bool = False


Found = dict[Path, Thing]


@dataclass(slots=True, eq=False)
class Change:
    """One change to names, and the folders that have to be flushed until it is safe."""

    names: dict[Path, Content | None]
    folders: set[Path]


@dataclass(slots=True)
class Disk:
    """A model of the folder `root`: the names that are safe, those that are seen, the changes in between."""

    root: Path
    safe: Names = field(default_factory=dict)
    seen: Names = field(default_factory=dict)
    waiting: list[Change] = field(default_factory=list)
    contents: dict[int, Content] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Disk:
        disk = cls(root)
        for path in root.rglob("*"):
            status = path.lstat()
            content = FOLDER
            if path.is_symlink():
                target = os.readlink(os.fsencode(path))
                content = Content(target, target, is_link=True)
            elif not path.is_dir():
                content = Content(path.read_bytes(), path.read_bytes(), status.st_mode & 0o777)
            disk.safe[path] = disk.seen[path] = content
            disk.contents[status.st_ino] = content
        return disk

    def copy(self) -> Disk:
        """Begin again with the same disk, before any operation."""
        copies = {content: content.copy() for content in self.safe.values()} | {FOLDER: FOLDER}
        return Disk(
            self.root,
            {path: copies[content] for path, content in self.safe.items()},
            {path: copies[content] for path, content in self.seen.items()},
            [],
            {inode: copies[content] for inode, content in self.contents.items()},
        )

    def replay(self, operation: Operation) -> None:
        match operation:
            case Operation("open_exclusive", Path() as path, inode=int(inode), size=size):
                self.contents[inode] = Content(mode=0o644 if size is None else size)
                self._change({path: self.contents[inode]})
            case Operation("symlink", Path() as path, content=content):
                self._change({path: Content(content, content, is_link=True)})
            case Operation("make_folder", Path() as path):
                self._change({path: FOLDER})
            case Operation("unlink" | "remove_folder", Path() as path):
                self._change({path: None})
            case Operation("link", Path() as path, Path() as other):
                self._change({other: self.seen[path]})
            case Operation("rename", Path() as path, Path() as other):
                self._change({other: self.seen[path], path: None})
            case Operation("exchange", Path() as path, Path() as other):
                self._change({other: self.seen[path], path: self.seen[other]})
            case Operation("write", inode=int(inode), content=content):
                self.contents[inode].seen += content
            case Operation("truncate", inode=int(inode), size=int(size)):
                self.contents[inode].seen = self.contents[inode].seen[:size]
            case Operation("set_mode", inode=int(inode), size=int(size)):
                self.contents[inode].mode = size
            case Operation("set_mode"):
                pass
            case Operation("flush", inode=int(inode)):
                self.contents[inode].safe = self.contents[inode].seen
            case Operation("flush_folder", Path() as folder):
                self._flush_folder(folder)
            case _:
                raise AssertionError(operation)

    def _change(self, names: dict[Path, Content | None]) -> None:
        self.waiting.append(Change(names, {path.parent for path in names}))
        _apply(self.seen, names)

    def _flush_folder(self, folder: Path) -> None:
        for change in list(self.waiting):
            change.folders.discard(folder)
            if not change.folders:
                _apply(self.safe, change.names)
                before = self.waiting.index(change)
                self.waiting.remove(change)
                # An older change that still waits for another folder no longer decides these names.
                for older in self.waiting[:before]:
                    older.names = {
                        path: each for path, each in older.names.items() if path not in change.names
                    }

    def after_power_loss(self) -> Iterator[Found]:
        for choice in itertools.product([False, True], repeat=len(self.waiting)):
            names = dict(self.safe)
            for change in itertools.compress(self.waiting, choice):
                _apply(names, change.names)
            paths = [path for path in sorted(names) if self._is_reachable(path, names)]
            yield from self._with_contents(paths, names)

    def _is_reachable(self, path: Path, names: Names) -> bool:
        above = path.relative_to(self.root).parents
        return all(names.get(self.root / each) is FOLDER for each in above if each != Path())

    def _with_contents(self, paths: Sequence[Path], names: Names) -> Iterator[Found]:
        files = list(dict.fromkeys(names[path] for path in paths if names[path] is not FOLDER))
        number = {content: position for position, content in enumerate(files, 1)}
        for chosen in itertools.product(*(sorted(each.after_power_loss()) for each in files)):
            yield {
                path: Thing(0, is_folder=True)
                if names[path] is FOLDER
                else Thing(
                    number[names[path]],
                    chosen[number[names[path]] - 1],
                    names[path].mode,
                    names[path].is_link,
                )
                for path in paths
            }


def _apply(names: Names, change: dict[Path, Content | None]) -> None:
    for path, content in change.items():
        if content is None:
            names.pop(path, None)
        else:
            names[path] = content


def lay_out(found: Found, root: Path, target: Path) -> None:
    """Make what was found, in a folder that is emptied first."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    made: dict[int, Path] = {}
    for path in sorted(found):
        thing, copy = found[path], target / path.relative_to(root)
        if thing.is_folder:
            copy.mkdir()
        elif thing.file in made:
            os.link(made[thing.file], copy, follow_symlinks=False)
        elif thing.is_link:
            os.symlink(thing.content, copy)
        else:
            copy.write_bytes(thing.content)
            copy.chmod(thing.mode)
        made.setdefault(thing.file, copy)


class Killed(Faults):
    """From one step on nothing happens any more, undoing included: what a kill at that step leaves."""

    __slots__ = ("last",)

    def __init__(self, last: int, record: Callable[[Operation], None]) -> None:
        super().__init__(record=record)
        self.last = last

    def reach(self) -> bool:
        super().reach()
        if self.steps >= self.last:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return False


Judge = Callable[[Path, bool], bool]
"""Says whether the disk under a folder is right; true as second argument: the call had returned."""


@dataclass(slots=True)
class Trial:
    """One piece of work on a folder, as recorded, and how to judge what is left of it."""

    before: Disk
    operations: list[Operation]
    judge: Judge
    target: Path
    restart: int = 0

    def failures(self, without: int | None = None, *, most: int | None = None) -> list[str]:
        """Judge every disk after every operation.

        Args:
            without: leaves one operation out; what was found before it was judged without leaving it out.
            most: is enough failures to stop.
        """
        disk = self.before.copy()
        failures: list[str] = []
        judged: set[tuple[bool, frozenset[tuple[Path, Thing]]]] = set()
        for number in range(len(self.operations) + 1):
            if number and number - 1 != without:
                disk.replay(self.operations[number - 1])
            has_returned = number == len(self.operations)
            if without is not None and number <= without:
                continue
            for found in disk.after_power_loss():
                key = (has_returned, frozenset(found.items()))
                if key in judged:
                    continue
                judged.add(key)
                lay_out(found, disk.root, self.target)
                if not self.judge(self.target, has_returned):
                    names = sorted(str(path.relative_to(disk.root)) for path in found)
                    failures.append(f"after operation {number}: {names}")
                    if len(failures) == most:
                        return failures
        return failures

    @property
    def flushes(self) -> list[int]:
        return [number for number, each in enumerate(self.operations) if each.name.startswith("flush")]
