"""Working trees before and after a transaction, and what may be left of one.

A `World` is a folder with just enough of a git directory for `write_files`: an index file and nothing else.
It is in memory if the system has such a folder, so that thousands of runs with all their flushes are quick.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.git.transaction import (
    FileContent,
    Write,
    WrittenFiles,
    pending_transactions,
    recover,
    write_files,
)
from patchgate.storage.filesystem import FaultPoints
from tests.faults import Faults

Tree = Mapping[str, FileContent]
State = dict[str, tuple[int, bytes]]
NOTE = {"attempt": "a-7f3a"}
IN_MEMORY = "/dev/shm"


def text(words: str, mode: str = "100644") -> FileContent:
    return FileContent(mode, words.encode())


def link(target: str) -> FileContent:
    return FileContent("120000", target.encode())


@dataclass(frozen=True)
class Case:
    """What stands before and after; paths that are in neither `after` nor `before` are nobody's."""

    name: str
    before: Tree
    after: Tree
    index: bytes | None = None

    @property
    def writes(self) -> list[Write]:
        paths = sorted({*self.before, *self.after})
        return [
            Write(RepoPath(path.encode()), self.before.get(path), self.after.get(path))
            for path in paths
            if self.before.get(path) != self.after.get(path)
        ]


ONE = Case("one", {"a": text("old\n"), "b": text("stays\n")}, {"a": text("new\n"), "b": text("stays\n")})
FIVE = Case(
    "five",
    {
        "a": text("old\r\n"),
        "gone/deep/b": text("goes"),
        "script": text("#!/bin/sh\n"),
        "link": link("a"),
        "other": text("stays"),
    },
    {
        "a": text("\ufeffnew, and longer, without an end of line"),
        "made/deep/new": text("new", "100755"),
        "script": text("#!/bin/sh\n", "100755"),
        "link": link("script"),
        "other": text("stays"),
    },
    index=b"the new index",
)
TWENTY = Case(
    "twenty",
    {
        **{f"src/{number}": text(f"old {number}\n" * number) for number in range(6)},
        **{f"src/moved/{number}": text(f"moved {number}\n", "100755") for number in range(4)},
        "file": text("becomes a folder"),
        "folder/a": text("in a folder that becomes a file"),
        "folder/deep/b": text("deep in it"),
        "link": link("src"),
        "turned": link("file"),
        "plain": text("becomes a link"),
        "run": text("run", "100755"),
        "empty": text(""),
    },
    {
        **{f"src/{number}": text(f"new {number}\n" * (number + 1)) for number in range(6)},
        **{f"lib/moved/{number}": text(f"moved {number}\n", "100755") for number in range(4)},
        "file/a": text("now a folder"),
        "file/deep/b": text("deep"),
        "folder": text("now a file"),
        "link/inside": text("the link became a folder"),
        "turned": text("now a file"),
        "plain": link("../elsewhere"),
        "run": text("run"),
        "empty": text("no longer"),
    },
    index=b"the new index",
)
CASES = (ONE, FIVE, TWENTY)


class World:
    """One working tree, as a case has it before."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.root = folder / "tree"
        self.case = case
        self.git = self.root / ".git"
        self.git.mkdir(parents=True)
        (self.git / "index").write_bytes(b"the old index")
        # Left by every command that recorded something; a transaction makes it where it is missing.
        lay_out(self.root, case.before)
        self.repository = Repository(
            str(self.git), str(self.git), str(self.root), "sha1", "", str(self.git / "index"), {}
        )
        self.old = self.state()

    def write(
        self, faults: FaultPoints | None = None, look: Callable[[], None] = lambda: None, patience: float = 0
    ) -> WrittenFiles:
        return write_files(
            self.repository,
            self.case.writes,
            note=NOTE,
            index=self.case.index,
            faults=faults,
            look=look,
            patience_seconds=patience,
        )

    def recover(self, faults: FaultPoints | None = None, *, keep: bool = False) -> list[str]:
        """Recover and finish; give the outcomes."""
        done = recover(self.repository, faults=faults, keep=keep)
        for each in done:
            assert each.note == NOTE
            each.finish()
        return [each.outcome for each in done]

    def state(self) -> State:
        """Everything in the working tree, folders too, with permission bits, and the index."""
        found: State = {}
        for folder, folders, files in os.walk(self.root):
            if Path(folder) == self.root:
                folders.remove(".git")
            for name in [*folders, *files]:
                path = Path(folder) / name
                found[str(path.relative_to(self.root))] = entry(path)
        found[".git/index"] = entry(self.git / "index")
        return found

    def litter(self) -> list[str]:
        """What no transaction may leave."""
        found = [str(path.relative_to(self.root)) for path in self.root.rglob(".patchgate-*")]
        transactions = self.git / "patchgate" / "transactions"
        if transactions.exists():
            found += [f"transactions/{name}" for name in os.listdir(transactions)]
        found += [str(path.relative_to(self.root)) for path in self.git.glob("*.lock")]
        return found

    def assert_settled(self, expected: State | tuple[State, ...]) -> None:
        """Hold the tree against what it may be; nothing is left over, and recovering again does nothing."""
        found = self.state()
        assert found in (expected if isinstance(expected, tuple) else (expected,))
        assert self.litter() == []
        assert pending_transactions(self.repository) == []
        faults = Faults()
        assert recover(self.repository, faults=faults) == []
        assert faults.steps == 0


def lay_out(root: Path, tree: Tree) -> None:
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.mode == "120000":
            os.symlink(content.data, path)
        else:
            path.write_bytes(content.data)
            path.chmod(0o755 if content.mode == "100755" else 0o644)


def entry(path: Path) -> tuple[int, bytes]:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return stat.S_IFLNK, os.readlink(os.fsencode(path))
    return mode, b"" if stat.S_ISDIR(mode) else path.read_bytes()


@contextmanager
def world(case: Case) -> Iterator[World]:
    """Make a world of its own, and remove it."""
    folder = tempfile.mkdtemp(dir=IN_MEMORY if os.path.isdir(IN_MEMORY) else None)
    umask = os.umask(0o022)
    try:
        yield World(Path(folder), case)
    finally:
        os.umask(umask)
        shutil.rmtree(folder)


def expected(case: Case) -> State:
    """Say what the tree is after a transaction that nothing disturbs."""
    with world(Case(case.name, case.after, case.after)) as after:
        if case.index is not None:
            (after.git / "index").write_bytes(case.index)
        return after.state()


def steps_of(case: Case) -> int:
    """Count the steps of an undisturbed transaction."""
    with world(case) as here:
        faults = Faults()
        here.write(faults).finish()
        return faults.steps


def in_child(act: Callable[[], object]) -> int:
    """Do something in a forked child; give how it ended, negative for a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - the child must never come back into the test
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


KILLED = -signal.SIGKILL
