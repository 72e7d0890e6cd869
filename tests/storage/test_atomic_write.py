"""Atomic replacement: old or new, never between, and nothing left over."""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchgate.storage import atomic_write
from patchgate.storage.atomic_write import write_atomically
from patchgate.storage.owner import Owner
from tests.faults import Fault, Faults, Kind
from tests.storage.durable_child import Child, run

OLD, NEW = b"the old content\n", b"the new content, which is longer\n"
ERRORS = (Kind.ENOSPC, Kind.EIO, Kind.EACCES)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not tell when a process started"
)


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def _steps(folder: Path, *, exist_ok: bool, old: bytes | None) -> Iterator[int]:
    """Count the steps that an undisturbed write takes, in a folder of its own."""
    folder.mkdir()
    if old is not None:
        (folder / "file").write_bytes(old)
    faults = Faults()
    write_atomically(folder / "file", NEW, exist_ok=exist_ok, faults=faults)
    assert faults.steps >= 6
    yield from range(1, faults.steps + 1)


def test_a_file_is_made_and_replaced_with_its_content_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    previous = os.umask(0o022)
    try:
        write_atomically(path, OLD)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (OLD, 0o644)
        write_atomically(path, NEW, mode=0o755)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (NEW, 0o755)
        write_atomically(path, b"", mode=0o600)
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"", 0o600)
    finally:
        os.umask(previous)
    assert _names(tmp_path) == ["file"]


def test_the_umask_narrows_the_mode(tmp_path: Path) -> None:
    previous = os.umask(0o077)
    try:
        write_atomically(tmp_path / "file", NEW, mode=0o755)
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o700


def test_an_existing_file_is_refused_where_none_may_exist(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, OLD, exist_ok=False)
    with pytest.raises(FileExistsError):
        write_atomically(path, NEW, exist_ok=False)
    assert path.read_bytes() == OLD
    assert _names(tmp_path) == ["file"]


def test_a_symlink_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(OLD)
    (tmp_path / "file").symlink_to("target")
    write_atomically(tmp_path / "file", NEW)
    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "file").read_bytes() == NEW
    assert (tmp_path / "target").read_bytes() == OLD


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "file", NEW)
    assert _names(tmp_path) == ["file"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "file", NEW)


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize(("exist_ok", "old"), [(True, OLD), (True, None), (False, None)])
def test_each_error_at_each_step_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, kind: Kind, exist_ok: bool, old: bytes | None
) -> None:
    for step in _steps(tmp_path / "count", exist_ok=exist_ok, old=old):
        folder = tmp_path / str(step)
        folder.mkdir()
        path = folder / "file"
        if old is not None:
            path.write_bytes(old)
        inode = path.stat().st_ino if old is not None else None
        with pytest.raises(OSError) as caught:
            write_atomically(path, NEW, exist_ok=exist_ok, faults=Faults([Fault(step, kind)]))
        assert caught.value.errno == getattr(errno, kind.value)
        assert _names(folder) == ([] if old is None else ["file"]), step
        if old is not None:
            assert (path.read_bytes(), path.stat().st_ino, path.stat().st_nlink) == (OLD, inode, 1), step


@pytest.mark.parametrize("kind", [Kind.EINTR, Kind.SHORT])
def test_an_interruption_or_a_short_write_at_any_step_changes_nothing(tmp_path: Path, kind: Kind) -> None:
    for step in _steps(tmp_path / "count", exist_ok=True, old=OLD):
        folder = tmp_path / str(step)
        folder.mkdir()
        (folder / "file").write_bytes(OLD)
        write_atomically(folder / "file", NEW, faults=Faults([Fault(step, kind)]))
        assert (folder / "file").read_bytes() == NEW
        assert _names(folder) == ["file"]


@pytest.mark.parametrize("exist_ok", [True, False])
def test_a_kill_at_each_step_leaves_old_or_new_and_the_next_write_cleans_up(
    tmp_path: Path, exist_ok: bool
) -> None:
    old = OLD if exist_ok else None
    seen = set()
    for step in _steps(tmp_path / "count", exist_ok=exist_ok, old=old):
        folder = tmp_path / str(step)
        folder.mkdir()
        path = folder / "file"
        if old is not None:
            path.write_bytes(old)
        how = "replace" if exist_ok else "publish"
        assert run("write", path, NEW.decode(), how, f"{step}:kill") == -signal.SIGKILL
        content = path.read_bytes() if path.exists() else None
        assert content in {old, NEW}, step
        seen.add(content)
        write_atomically(folder / "other", b"")
        assert _names(folder) == (["other"] if content is None else ["file", "other"]), step
        if content is not None:
            assert (path.read_bytes(), path.stat().st_nlink) == (content, 1)
    assert seen == {old, NEW}


def test_a_kill_while_an_error_is_being_undone_leaves_old_or_new(tmp_path: Path) -> None:
    """The last two steps fail after the rename; the kill comes at each step of the way back."""
    *_, flushing, unlinking = _steps(tmp_path / "count", exist_ok=True, old=OLD)
    for first in (flushing, unlinking):
        for second in range(first + 1, first + 5):
            folder = tmp_path / f"{first}-{second}"
            folder.mkdir()
            path = folder / "file"
            path.write_bytes(OLD)
            run("write", path, NEW.decode(), "replace", f"{first}:EIO,{second}:kill")
            assert path.read_bytes() in {OLD, NEW}
            write_atomically(folder / "other", b"")
            assert _names(folder) == ["file", "other"]


@needs_proc
def test_temporary_files_of_a_running_process_and_foreign_files_stay(tmp_path: Path) -> None:
    child = Child("hold", tmp_path / "lock")
    mine, theirs = Owner.current(), child.pid
    random = "0123456789abcdef"
    started = _start_of(theirs)
    running = f".patchgate-{theirs}-{started}-{mine.boot_id}-{random}.new"
    reused = f".patchgate-{theirs}-{started}1-{mine.boot_id}-{random}.new"
    before = f".patchgate-{theirs}-{started}-{'0' * 36}-{random}.old"
    foreign = f".patchgate-{theirs}-{started}1-{mine.boot_id}-{random}.txt"
    for name in (running, reused, before, foreign):
        (tmp_path / name).write_bytes(b"")
    write_atomically(tmp_path / "file", NEW)
    child.tell()
    child.end()
    assert set(_names(tmp_path)) == {running, foreign, "file", "lock"}


def test_where_hard_links_are_refused_a_file_is_still_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path, faults: Faults) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(atomic_write, "link", refuse)
    path = tmp_path / "file"
    path.write_bytes(OLD)
    write_atomically(path, NEW)
    assert path.read_bytes() == NEW
    assert _names(tmp_path) == ["file"]


def test_a_file_that_another_writer_has_put_there_since_is_not_undone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(OLD)

    class Overtaken(Faults):
        def reach(self) -> bool:
            if self.steps + 1 == flushing:
                write_atomically(path, b"the other writer's")
            return super().reach()

    *_, flushing, _unlinking = _steps(tmp_path / "count", exist_ok=True, old=OLD)
    with pytest.raises(OSError):
        write_atomically(path, NEW, faults=Overtaken([Fault(flushing, Kind.EIO)]))
    assert path.read_bytes() == b"the other writer's"
    assert _names(tmp_path) == ["count", "file"]


def test_of_many_writers_one_whole_content_remains(tmp_path: Path) -> None:
    contents = [letter * 50_000 for letter in "abcd"]
    children = [Child("write", tmp_path / "file", each, "replace", "") for each in contents]
    for child in children:
        child.tell()
    assert [child.end() for child in children] == [0, 0, 0, 0]
    assert (tmp_path / "file").read_text() in contents
    assert _names(tmp_path) == ["file"]


def _start_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
