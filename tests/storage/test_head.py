"""The head file of a chain: a cut is seen, a crash never looks like one, an append pays no flush for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from patchgate.storage import hash_chain
from patchgate.storage.record import (
    AT_END,
    BEFORE_END,
    CONTRADICTED,
    MAX_HEAD_SIZE,
    NO_HEAD,
    Head,
    compare_head,
    read_head,
)
from tests.faults import Fault, Faults, Kind, Operation
from tests.storage.durable_child import Child, run
from tests.storage.power_loss import Disk, Killed, Trial

# The child writes a head file for a chain of this name.
NAME = "headed"


def _grown(folder: Path, letters: str = "abc") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    for letter in letters:
        hash_chain.append(path, {"letter": letter}, with_head=True)
    return path


def _head_of(path: Path) -> Path:
    return path.with_name(path.name + ".head")


def _state(path: Path) -> str:
    return compare_head(str(path)).state


def test_it_names_the_last_record_and_the_size_of_the_chain(tmp_path: Path) -> None:
    path = _grown(tmp_path)
    *_, last = hash_chain.read(path)
    assert read_head(str(path)) == Head(path.stat().st_size, last.hash)
    assert _state(path) == AT_END


def _without_last_line(content: bytes) -> bytes:
    return content[: content.rfind(b"\n", 0, -1) + 1]


@pytest.mark.parametrize(
    "cut",
    [
        _without_last_line,
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:-40] + b"\n",
        lambda content: content[content.index(b"\n") + 1 :],
        lambda content: content[content.index(b"\n") + 1 :] * 2,
    ],
)
def test_a_chain_that_was_cut_is_seen_and_stays_seen_while_it_grows(
    tmp_path: Path, cut: Callable[[bytes], bytes]
) -> None:
    path = _grown(tmp_path)
    path.write_bytes(cut(path.read_bytes()))
    assert _state(path) == CONTRADICTED
    kept = _head_of(path).read_bytes()
    with suppress(Exception):  # a damaged last line takes no record
        for letter in "defghi":
            hash_chain.append(path, {"letter": letter}, with_head=True)
    assert _state(path) == CONTRADICTED
    assert _head_of(path).read_bytes() == kept


def test_a_chain_that_was_deleted_is_seen_and_a_new_one_in_its_place_too(tmp_path: Path) -> None:
    path = _grown(tmp_path)
    path.unlink()
    assert _state(path) == CONTRADICTED
    hash_chain.append(path, {"letter": "x"}, with_head=True)
    assert _state(path) == CONTRADICTED
    # Who means it puts both away.
    path.unlink()
    _head_of(path).unlink()
    assert _state(_grown(tmp_path)) == AT_END


def test_a_chain_from_before_the_head_file_raises_no_alarm_and_gets_one(tmp_path: Path) -> None:
    path = tmp_path / NAME
    hash_chain.append(path, {"letter": "a"})
    assert _state(path) == NO_HEAD
    hash_chain.append(path, {"letter": "b"}, with_head=True)
    assert _state(path) == AT_END
    # An older version that goes on writing leaves the head behind, which is no alarm either.
    for number in range(3):
        hash_chain.append(path, {"n": number})
    assert compare_head(str(path)).behind == 3
    assert _state(path) == BEFORE_END
    hash_chain.append(path, {"letter": "c"}, with_head=True)
    assert _state(path) == AT_END


@pytest.mark.parametrize(
    ("content", "state"),
    [(b"", NO_HEAD), (b"\0" * 90, NO_HEAD), (b"57 sha256:00", NO_HEAD), (b"not a head\n", NO_HEAD)],
)
def test_a_head_file_that_a_crash_spoiled_names_nothing_and_is_written_on(
    tmp_path: Path, content: bytes, state: str
) -> None:
    path = _grown(tmp_path)
    _head_of(path).write_bytes(content)
    assert _state(path) == state
    hash_chain.append(path, {"letter": "d"}, with_head=True)
    assert _state(path) == AT_END


def test_a_cut_line_of_the_head_file_leaves_the_one_before_in_force(tmp_path: Path) -> None:
    path = _grown(tmp_path)
    content = _head_of(path).read_bytes()
    for size in range(len(content)):
        _head_of(path).write_bytes(content[:size])
        assert _state(path) in {NO_HEAD, BEFORE_END}
        assert (compare_head(str(path)).behind or 3) == 3 - content[:size].count(b"\n")
    hash_chain.append(path, {"letter": "d"}, with_head=True)
    assert _state(path) == AT_END


def _steps(folder: Path, letters: str, padding: int = 0) -> int:
    path = _padded(_grown(folder, letters), padding)
    faults = Faults()
    hash_chain.append(path, {"letter": "x"}, with_head=True, faults=faults)
    return faults.steps


def _padded(path: Path, padding: int) -> Path:
    """Make the head file so long that the next append shortens it."""
    if padding:
        content = _head_of(path).read_bytes()
        _head_of(path).write_bytes(b"1 sha256:" + b"0" * 64 + b"\n" + b"\n" * padding + content)
    return path


CASES = [("", 0), ("ab", 0), ("ab", MAX_HEAD_SIZE)]


@pytest.mark.parametrize(("letters", "padding"), CASES)
def test_a_kill_at_each_step_is_no_alarm_and_a_cut_after_it_is_one(
    tmp_path: Path, letters: str, padding: int
) -> None:
    seen = set()
    for step in range(1, _steps(tmp_path / "count", letters, padding) + 1):
        path = _padded(_grown(tmp_path / str(step), letters), padding)
        assert run("append", path, "killed", "1", f"{step}:kill") == -signal.SIGKILL
        seen.add(_state(path))
        hash_chain.append(path, {"letter": "y"}, with_head=True)
        assert _state(path) == AT_END
        path.write_bytes(_without_last_line(path.read_bytes()))
        assert _state(path) == CONTRADICTED
    assert CONTRADICTED not in seen
    assert AT_END in seen


@pytest.mark.parametrize(("letters", "padding"), CASES)
@pytest.mark.parametrize("kind", [Kind.ENOSPC, Kind.EIO, Kind.EACCES, Kind.EINTR, Kind.SHORT])
def test_an_error_at_each_step_is_no_alarm_and_costs_no_record_that_is_on_the_disk(
    tmp_path: Path, kind: Kind, letters: str, padding: int
) -> None:
    for step in range(1, _steps(tmp_path / "count", letters, padding) + 1):
        path = _padded(_grown(tmp_path / str(step), letters), padding)
        with suppress(OSError):
            hash_chain.append(path, {"letter": "x"}, with_head=True, faults=Faults([Fault(step, kind)]))
        assert _state(path) != CONTRADICTED
        hash_chain.append(path, {"letter": "y"}, with_head=True)
        assert _state(path) == AT_END
        assert hash_chain.verify(path) == []
        assert list(path.parent.glob(".patchgate-*")) == []


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("letters", ["", "ab"])
def test_a_power_loss_after_each_operation_is_no_alarm(tmp_path: Path, letters: str, killed: bool) -> None:
    path = _grown(tmp_path / "disk", letters)
    count = _steps(tmp_path / "count", letters)
    for step in range(1, count + 1) if killed else (0,):
        folder = tmp_path / f"{step}"
        path = _grown(folder / "disk", letters)
        before = Disk.of(path.parent)
        operations: list[Operation] = []
        if step:
            with suppress(OSError):
                hash_chain.append(
                    path, {"letter": "k"}, with_head=True, faults=Killed(step, operations.append)
                )
        hash_chain.append(path, {"letter": "x"}, with_head=True, faults=Faults(record=operations.append))

        def judge(root: Path, has_returned: bool) -> bool:
            return _state(root / NAME) != CONTRADICTED

        assert Trial(before, operations, judge, folder / "after").failures() == []


def test_without_the_records_flush_the_head_would_lead(tmp_path: Path) -> None:
    """The proof of the proof above: the order of record, flush, head is what keeps it quiet."""
    path = _grown(tmp_path / "disk", "ab")
    before, operations = Disk.of(path.parent), list[Operation]()
    hash_chain.append(path, {"letter": "x"}, with_head=True, faults=Faults(record=operations.append))
    trial = Trial(before, operations, lambda root, _: _state(root / NAME) != CONTRADICTED, tmp_path / "after")
    assert any(trial.failures(without=flush) for flush in trial.flushes)


def test_an_append_flushes_no_more_than_without_it(tmp_path: Path) -> None:
    def flushes(path: Path, with_head: bool) -> int:
        operations: list[Operation] = []
        hash_chain.append(path, {"letter": "x"}, with_head=with_head, faults=Faults(record=operations.append))
        return sum(each.name.startswith("flush") for each in operations)

    plain, headed = tmp_path / "plain", tmp_path / NAME
    assert [flushes(plain, False) for _ in range(3)] == [flushes(headed, True) for _ in range(3)]


def test_it_stays_short_and_right_over_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchgate.storage.record.MAX_HEAD_SIZE", 500)
    path = tmp_path / NAME
    for number in range(40):
        hash_chain.append(path, {"n": number}, with_head=True)
        assert _state(path) == AT_END
        assert _head_of(path).stat().st_size < 700


def test_four_processes_append_at_once_and_it_names_the_last(tmp_path: Path) -> None:
    path = tmp_path / NAME
    children = [Child("append", path, str(number), "8", "") for number in range(4)]
    for child in children:
        child.tell()
    assert [child.end() for child in children] == [0] * 4
    assert len(list(hash_chain.read(path))) == 32
    assert _state(path) == AT_END
    assert len(_head_of(path).read_bytes().splitlines()) == 32


@pytest.mark.parametrize("obstacle", ["folder", "symlink", "read-only"])
def test_a_head_file_that_cannot_be_written_costs_no_record(tmp_path: Path, obstacle: str) -> None:
    path = tmp_path / NAME
    place = _head_of(path)
    if obstacle == "folder":
        place.mkdir()
    elif obstacle == "symlink":
        place.symlink_to(tmp_path / "elsewhere")
    else:
        if os.geteuid() == 0:
            pytest.skip("root may write everything")
        place.touch(mode=0o400)
    hash_chain.append(path, {"letter": "a"}, with_head=True)
    assert len(list(hash_chain.read(path))) == 1
    assert not (tmp_path / "elsewhere").exists()
