"""One holder at a time, named for the others, gone with its process."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.storage.lock import acquire
from patchgate.storage.owner import Owner
from tests.faults import Fault, Faults, Kind
from tests.storage.durable_child import Child

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not tell when a process started"
)


def test_a_lock_that_another_process_holds_is_refused_with_its_name_and_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = Child("hold", path)
    with pytest.raises(UndecidedError) as caught, acquire(path, timeout_seconds=0):
        pass
    assert f"process {child.pid}" in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.hint is not None
    assert f"ps -p {child.pid}" in caught.value.hint
    child.tell()
    assert child.end() == 0
    with acquire(path, timeout_seconds=0):
        assert Owner.from_bytes(path.read_bytes()) == Owner.current()
    assert path.read_bytes() == b""


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = Child("hold", path)
    child.kill()
    assert path.read_bytes() != b""
    with acquire(path, timeout_seconds=0):
        pass


def test_waiting_ends_when_the_holder_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = Child("hold", path)
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        child.tell()
        child.end()

    with acquire(path, timeout_seconds=5, clock=lambda: 0.0, pause=pause):
        assert len(waited) == 1


def test_waiting_ends_with_the_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    now = [100.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    with (
        acquire(path, timeout_seconds=0),
        pytest.raises(UndecidedError, match="this process"),
        acquire(path, timeout_seconds=0.05, clock=lambda: now[0], pause=pause),
    ):
        pass
    assert now[0] == pytest.approx(100.05)


@pytest.mark.parametrize(
    "record", [b"", b"{", b"[]", b'{"pid":true,"boot_id":"","started":""}', b"[" * 4000, b"\xff"]
)
def test_a_holder_without_a_readable_name_is_still_a_holder(tmp_path: Path, record: bytes) -> None:
    path = tmp_path / "lock"
    path.write_bytes(record)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UndecidedError, match="record"), acquire(path, timeout_seconds=0):
            pass


@needs_proc
def test_a_process_that_got_the_same_pid_later_is_not_the_owner(tmp_path: Path) -> None:
    mine = Owner.current()
    path = tmp_path / "lock"
    path.write_bytes(Owner(mine.pid, mine.boot_id, mine.started + "1").to_bytes())
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(UndecidedError) as caught, acquire(path, timeout_seconds=0):
            pass
    assert str(mine.pid) not in caught.value.message.replace(str(path), "")


@needs_proc
def test_an_owner_is_running_only_in_its_boot_with_its_start_and_not_as_a_zombie() -> None:
    mine = Owner.current()
    assert mine.is_running()
    assert Owner.from_bytes(mine.to_bytes()) == mine
    assert not Owner(mine.pid, "another boot", mine.started).is_running()
    assert not Owner(mine.pid, mine.boot_id, mine.started + "1").is_running()
    for pid in (0, -1, 2**40):
        assert not Owner(pid, mine.boot_id, mine.started).is_running()


@needs_proc
def test_an_owner_that_has_ended_is_not_running_before_its_parent_took_notice(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = Child("hold", path)
    owner = Owner.from_bytes(path.read_bytes())
    assert owner is not None
    assert owner.is_running()
    child.process.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not owner.is_running()
    child.end()
    assert not owner.is_running()


def test_missing_folders_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    with acquire(tmp_path / "a" / "b" / "lock", timeout_seconds=0):
        pass
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(FileExistsError), acquire(tmp_path / "a" / "lock", timeout_seconds=0):
        pass


def test_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "lock").symlink_to("precious")
    with pytest.raises(OSError) as caught, acquire(tmp_path / "lock", timeout_seconds=0):
        pass
    assert caught.value.errno in {errno.ELOOP, errno.EMLINK}
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_a_lock_file_that_was_removed_while_it_was_awaited_is_not_mistaken_for_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file goes between its opening and its locking: the lock on it would exclude nobody."""
    path = tmp_path / "lock"
    path.write_bytes(b"")
    real = fcntl.flock
    calls: list[int] = []

    def flock(descriptor: int, operation: int) -> None:
        if not calls:
            path.unlink()
        calls.append(operation)
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with acquire(path, timeout_seconds=5, clock=lambda: 0.0, pause=lambda _seconds: None):
        monkeypatch.undo()
        with pytest.raises(UndecidedError), acquire(path, timeout_seconds=0):
            pass


def test_an_error_in_the_block_releases_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(KeyboardInterrupt), acquire(path, timeout_seconds=0):
        raise KeyboardInterrupt
    with acquire(path, timeout_seconds=0):
        pass


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    """A second descriptor of the same open file, as fork leaves one in the child."""
    path = tmp_path / "lock"
    with acquire(path, timeout_seconds=0):
        inode = path.stat().st_ino
        copies = [os.dup(each) for each in _descriptors() if os.fstat(each).st_ino == inode]
    assert len(copies) == 1
    with acquire(path, timeout_seconds=0):
        pass
    os.close(copies[0])


@pytest.mark.parametrize("kind", [Kind.ENOSPC, Kind.EIO, Kind.EACCES, Kind.EINTR, Kind.SHORT])
def test_after_each_error_at_each_step_the_lock_is_free(tmp_path: Path, kind: Kind) -> None:
    counted = Faults()
    with acquire(tmp_path / "count" / "lock", timeout_seconds=0, faults=counted):
        pass
    assert counted.steps == 7
    for step in range(1, counted.steps + 1):
        path = tmp_path / str(step) / "lock"
        faults = Faults([Fault(step, kind)])
        # The last step takes the name off again, and the first flushes a folder that was there before and
        # perhaps may not be read: that they failed is nobody's loss.
        is_passed_over = step == counted.steps or (step == 1 and kind is Kind.EACCES)
        if kind in {Kind.EINTR, Kind.SHORT} or is_passed_over:
            with acquire(path, timeout_seconds=0, faults=faults):
                pass
        else:
            with pytest.raises(OSError) as caught, acquire(path, timeout_seconds=0, faults=faults):
                pass
            assert caught.value.errno == getattr(errno, kind.value)
        with acquire(path, timeout_seconds=0):
            pass


def _descriptors() -> list[int]:
    found = []
    for number in range(3, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found
