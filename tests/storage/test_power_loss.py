"""The power goes out after any operation: what was not flushed is lost, or half there, in any order.

The operations of a real run are recorded and replayed on a model of a disk (`power_loss`). Each disk that
may be found is laid out in a folder and judged by the code itself. Leaving one flush out of the recording
must make the judgement fail: that is the proof of the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.storage import hash_chain
from patchgate.storage.atomic_write import write_atomically
from tests.faults import Faults, Operation
from tests.storage.power_loss import Disk, Judge, Killed, Trial

pytestmark = pytest.mark.turns(3)

OLD, NEW = b"the old content\n", b"the new content, which is longer\n"
TORN = b'{"event":{"letter":"somewhat longer than what comes in its place","text":"' + b"t" * 300


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
        hash_chain.append(root / "a" / "b" / "events", {"letter": letter})
    if torn:
        with (root / "a" / "b" / "events").open("ab") as file:
            file.write(torn)

    def act(root: Path, faults: Faults) -> None:
        text = "t" * (300 if isinstance(faults, Killed) else 0)
        hash_chain.append(root / "a" / "b" / "events", {"letter": "x", "text": text}, faults=faults)

    def judge(root: Path, has_returned: bool) -> bool:
        path = root / "a" / "b" / "events"
        try:
            found = "".join(str(record.event["letter"]) for record in hash_chain.read(path))
            if any(not problem.torn for problem in hash_chain.verify(path)):
                return False
            hash_chain.append(path, {"letter": "y"})
        except UndecidedError:
            return False
        asides = [each.read_bytes() for each in path.parent.glob("events.torn-*")]
        # A run that was killed may have appended its record before the one that returned.
        possible = {letters + "x", letters + "xx"} | (set() if has_returned else {letters})
        return found in possible and hash_chain.verify(path) == [] and (not torn or torn in asides)

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
