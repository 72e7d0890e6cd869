"""The power goes out after any operation: what was not flushed is lost, or half there, in any order.

The operations of a real run are recorded and replayed on a model of a disk. A flushed file has its content,
a flushed folder its names. Of the rest, any subset of the changes to names may have reached the disk, and
of each unflushed file nothing, the first half, the second half (over NUL bytes or what was there), or all.
Each such disk is laid out in a folder and judged by the code itself. Leaving one flush out of the recording
must make the judgement fail: that is the proof of the proof.

Source of the model: Pillai et al., “All File Systems Are Not Created Equal”, OSDI 2014.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from patchgate.durable import chain
from patchgate.durable.faults import Faults, Operation
from patchgate.durable.replace import write_atomically
from patchgate.errors import UndecidedError

OLD, NEW = b"the old content\n", b"the new content, which is longer\n"
TORN = b'{"event":{"letter":"somewhat longer than what comes in its place","text":"' + b"t" * 300


@dataclass(slots=True, eq=False)
class Content:
    """The bytes of one file: those that are safe, and those that a reader sees."""

    safe: bytes = b""
    seen: bytes = b""

    def after_power_loss(self) -> set[bytes]:
        pairs = zip(self.safe, self.seen, strict=False)
        start = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        middle = (start + len(self.seen)) // 2
        first_half = self.seen[:middle] + self.safe[middle:]
        second_half = self.safe[:middle].ljust(middle, b"\0") + self.seen[middle:]
        return {self.safe, self.seen, first_half, second_half}


FOLDER = Content()
Names = dict[Path, Content]
Found = dict[Path, bytes | None]
"""What is found when the power is back: the bytes of each file, None for a folder."""
Judge = Callable[[Path, bool], bool]
"""Says whether the disk under a folder is right; true as second argument: the call had returned."""


@dataclass(slots=True)
class Disk:
    """A model of the folder `root`: the names that are safe, those that are seen, the changes in between."""

    root: Path
    safe: Names = field(default_factory=dict)
    seen: Names = field(default_factory=dict)
    waiting: list[dict[Path, Content | None]] = field(default_factory=list)
    contents: dict[int, Content] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Disk:
        disk = cls(root)
        for path in root.rglob("*"):
            content = FOLDER if path.is_dir() else Content(path.read_bytes(), path.read_bytes())
            disk.safe[path] = disk.seen[path] = content
            disk.contents[path.stat().st_ino] = content
        return disk

    def replay(self, operation: Operation) -> None:
        match operation:
            case Operation("open_exclusive", Path() as path, inode=int(inode)):
                self.contents[inode] = Content()
                self._change({path: self.contents[inode]})
            case Operation("make_folder", Path() as path):
                self._change({path: FOLDER})
            case Operation("unlink", Path() as path):
                self._change({path: None})
            case Operation("link", Path() as path, Path() as other):
                self._change({other: self.seen[path]})
            case Operation("rename", Path() as path, Path() as other):
                self._change({other: self.seen[path], path: None})
            case Operation("write", inode=int(inode), content=content):
                self.contents[inode].seen += content
            case Operation("truncate", inode=int(inode), size=int(size)):
                self.contents[inode].seen = self.contents[inode].seen[:size]
            case Operation("flush", inode=int(inode)):
                self.contents[inode].safe = self.contents[inode].seen
            case Operation("flush_folder", Path() as folder):
                self._flush_folder(folder)
            case _:
                raise AssertionError(operation)

    def _change(self, change: dict[Path, Content | None]) -> None:
        self.waiting.append(change)
        _apply(self.seen, change)

    def _flush_folder(self, folder: Path) -> None:
        for change in [each for each in self.waiting if all(path.parent == folder for path in each)]:
            _apply(self.safe, change)
            self.waiting.remove(change)

    def after_power_loss(self) -> Iterator[Found]:
        for choice in itertools.product([False, True], repeat=len(self.waiting)):
            names = dict(self.safe)
            for change in itertools.compress(self.waiting, choice):
                _apply(names, change)
            paths = [path for path in sorted(names) if self._is_reachable(path, names)]
            yield from self._with_contents(paths, names)

    def _is_reachable(self, path: Path, names: Names) -> bool:
        above = path.relative_to(self.root).parents
        return all(self.root / each in names for each in above if each != Path())

    def _with_contents(self, paths: Sequence[Path], names: Names) -> Iterator[Found]:
        folders = {path for path in paths if names[path] is FOLDER}
        files = [path for path in paths if path not in folders]
        for contents in itertools.product(*(sorted(names[path].after_power_loss()) for path in files)):
            yield dict.fromkeys(folders) | dict(zip(files, contents, strict=True))


def _apply(names: Names, change: dict[Path, Content | None]) -> None:
    for path, content in change.items():
        if content is None:
            names.pop(path, None)
        else:
            names[path] = content


def _lay_out(found: Found, root: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for path in sorted(found):
        content, copy = found[path], target / path.relative_to(root)
        if content is None:
            copy.mkdir()
        else:
            copy.write_bytes(content)


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


@dataclass(slots=True)
class Trial:
    """One piece of work on a folder, as recorded, and how to judge what is left of it."""

    before: Disk
    operations: list[Operation]
    judge: Judge
    target: Path
    restart: int

    def failures(self, without: int | None = None) -> list[str]:
        """Judge every disk after every operation; `without` leaves one operation out."""
        disk = Disk(self.before.root, dict(self.before.safe), dict(self.before.seen))
        copies = {content: Content(content.safe, content.seen) for content in self.before.contents.values()}
        copies[FOLDER] = FOLDER
        disk.safe = {path: copies[content] for path, content in disk.safe.items()}
        disk.seen = {path: copies[content] for path, content in disk.seen.items()}
        disk.contents = {inode: copies[content] for inode, content in self.before.contents.items()}
        failures = []
        judged: set[tuple[bool, frozenset[tuple[Path, bytes | None]]]] = set()
        for number in range(len(self.operations) + 1):
            if number and number - 1 != without:
                disk.replay(self.operations[number - 1])
            has_returned = number == len(self.operations)
            for found in disk.after_power_loss():
                key = (has_returned, frozenset(found.items()))
                if key in judged:
                    continue
                judged.add(key)
                _lay_out(found, disk.root, self.target)
                if not self.judge(self.target, has_returned):
                    names = sorted(str(path.relative_to(disk.root)) for path in found)
                    failures.append(f"after operation {number}: {names}")
        return failures

    @property
    def flushes(self) -> list[int]:
        return [number for number, each in enumerate(self.operations) if each.name.startswith("flush")]


def _trial(folder: Path, act: Callable[[Path, Faults], object], judge: Judge, killed_at: int = 0) -> Trial:
    """Record `act` on `folder / "disk"`; with `killed_at`, a first run that ends there comes before it."""
    root = folder / "disk"
    before = Disk.of(root)
    operations: list[Operation] = []
    if killed_at:
        with suppress(OSError):
            act(root, Killed(killed_at, operations.append))
    restart = len(operations)
    act(root, Faults(record=operations.append))
    return Trial(before, operations, judge, folder / "after", restart)


def _replacing(folder: Path, old: bytes | None, killed_at: int = 0) -> Trial:
    (folder / "disk").mkdir(parents=True)
    if old is not None:
        (folder / "disk" / "file").write_bytes(old)

    def act(root: Path, faults: Faults) -> None:
        write_atomically(root / "file", NEW, exist_ok=old is not None or killed_at > 0, faults=faults)

    def judge(root: Path, has_returned: bool) -> bool:
        path = root / "file"
        content = path.read_bytes() if path.exists() else None
        return content == NEW or (content == old and not has_returned)

    return _trial(folder, act, judge, killed_at)


def _appending(folder: Path, letters: str, torn: bytes, killed_at: int = 0) -> Trial:
    """`letters` are in the chain before, then perhaps torn bytes; `x` is appended."""
    root = folder / "disk"
    root.mkdir(parents=True)
    for letter in letters:
        chain.append(root / "a" / "b" / "events", {"letter": letter})
    if torn:
        with (root / "a" / "b" / "events").open("ab") as file:
            file.write(torn)

    def act(root: Path, faults: Faults) -> None:
        text = "t" * (300 if isinstance(faults, Killed) else 0)
        chain.append(root / "a" / "b" / "events", {"letter": "x", "text": text}, faults=faults)

    def judge(root: Path, has_returned: bool) -> bool:
        path = root / "a" / "b" / "events"
        try:
            found = "".join(str(record.event["letter"]) for record in chain.read(path))
            if any(not problem.torn for problem in chain.verify(path)):
                return False
            chain.append(path, {"letter": "y"})
        except UndecidedError:
            return False
        asides = [each.read_bytes() for each in path.parent.glob("events.torn-*")]
        # A run that was killed may have appended its record before the one that returned.
        possible = {letters + "x", letters + "xx"} | (set() if has_returned else {letters})
        return found in possible and chain.verify(path) == [] and (not torn or torn in asides)

    return _trial(folder, act, judge, killed_at)


@pytest.mark.parametrize("old", [OLD, None])
def test_after_a_power_loss_a_replaced_file_is_old_or_new_and_new_once_the_call_returned(
    tmp_path: Path, old: bytes | None
) -> None:
    assert _replacing(tmp_path, old).failures() == []


@pytest.mark.parametrize("old", [OLD, None])
def test_without_any_one_flush_a_replaced_file_would_not_survive(tmp_path: Path, old: bytes | None) -> None:
    trial = _replacing(tmp_path, old)
    assert len(trial.flushes) == 2
    for flush in trial.flushes:
        assert trial.failures(without=flush) != [], trial.operations[flush]


CASES = [("", b""), ("ab", b""), ("ab", TORN)]


@pytest.mark.parametrize(("letters", "torn"), CASES)
def test_after_a_power_loss_a_chain_has_every_record_whose_append_returned(
    tmp_path: Path, letters: str, torn: bytes
) -> None:
    assert _appending(tmp_path, letters, torn).failures() == []


@pytest.mark.parametrize(("letters", "torn"), CASES)
def test_without_any_one_flush_a_record_or_the_torn_bytes_would_not_survive(
    tmp_path: Path, letters: str, torn: bytes
) -> None:
    trial = _appending(tmp_path, letters, torn)
    # The first flush is for what a killed process may have left; here none has.
    _, *flushes = trial.flushes
    assert len(flushes) == {"": 4, "ab": 4 if torn else 1}[letters]
    for flush in flushes:
        assert trial.failures(without=flush) != [], trial.operations[flush]


def _steps(folder: Path, letters: str, torn: bytes) -> int:
    return len(_appending(folder, letters, torn).operations)


@pytest.mark.parametrize(("letters", "torn"), CASES)
def test_a_power_loss_after_a_kill_loses_nothing_either(tmp_path: Path, letters: str, torn: bytes) -> None:
    is_needed = False
    for killed_at in range(1, _steps(tmp_path / "count", letters, torn) + 1):
        trial = _appending(tmp_path / str(killed_at), letters, torn, killed_at)
        assert trial.failures() == [], killed_at
        first = next(flush for flush in trial.flushes if flush >= trial.restart)
        is_needed = is_needed or trial.failures(without=first) != []
    assert is_needed, "the first flush is for what a killed process may have left"


@pytest.mark.parametrize("old", [OLD, None])
def test_a_power_loss_after_a_kill_leaves_a_replaced_file_old_or_new(
    tmp_path: Path, old: bytes | None
) -> None:
    for killed_at in range(1, len(_replacing(tmp_path / "count", old).operations) + 1):
        assert _replacing(tmp_path / str(killed_at), old, killed_at).failures() == []
