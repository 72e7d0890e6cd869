"""The ledger: every event kept once, by however many writers; and memory that never changes a verdict."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import patchgate
from patchgate.errors import UndecidedError
from patchgate.ledger.ledger import Event, Ledger
from patchgate.storage import hash_chain
from patchgate.storage.hash_chain import ChainProblem
from patchgate.storage.lock import acquire
from tests.amount import often
from tests.ledger.ledger_child import finish, start

ABOUT = {"hook": "pre-commit", "ref": "refs/heads/main", "commit": None, "rules": ["secret"]}


def ledger_of(folder: Path, count: int = 0) -> Ledger:
    ledger = Ledger(str(folder), clock=lambda: 1_700_000_000, patience_seconds=0)
    for number in range(count):
        assert ledger.record("pushed", {"remote": "origin", "commits": number}) is None
    return ledger


def numbers(ledger: Ledger) -> list[object]:
    return [event.about["commits"] for event in ledger.events()]


def test_nothing_is_made_before_the_first_event(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    assert (list(ledger.events()), ledger.verify()) == ([], [])
    assert os.listdir(tmp_path) == []


def test_an_event_comes_back_as_it_was_recorded(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    assert ledger.record("refused", ABOUT) is None
    (event,) = ledger.events()
    assert (event.kind, event.about, event.at) == ("refused", ABOUT, "2023-11-14T22:13:20Z")
    assert ledger.path == tmp_path / "patchgate" / "events.jsonl"
    assert event.hash in ledger.path.read_text(encoding="ascii")
    assert ledger.verify() == []


def test_recording_loads_nothing_that_costs_more_than_the_record(tmp_path: Path) -> None:
    """At a push this is nearly all that a hook does."""
    package = str(Path(patchgate.__file__).parent.parent)
    script = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from patchgate.ledger.ledger import Ledger\n"
        "print(Ledger(sys.argv[2]).record('pushed', {'commits': 1}), *sys.modules, sep='\\n')\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", script, package, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    warning, *loaded = done.stdout.splitlines()
    assert warning == "None"
    assert numbers(ledger_of(tmp_path)) == [1]
    ours = sorted(name for name in loaded if name.startswith("patchgate."))
    assert ours == [
        *("patchgate.errors", "patchgate.exit_codes", "patchgate.ledger", "patchgate.ledger.ledger"),
        *("patchgate.storage", "patchgate.storage.filesystem", "patchgate.storage.hash_chain"),
        *("patchgate.storage.lock", "patchgate.storage.owner", "patchgate.storage.record"),
    ]
    heavy = {
        "dataclasses",
        "inspect",
        "pathlib",
        "random",
        "secrets",
        "signal",
        "tempfile",
        "typing",
        "urllib",
    }
    assert heavy.isdisjoint(loaded)


def test_six_processes_record_at_once_and_every_event_is_kept_once(tmp_path: Path) -> None:
    names = [f"writer-{number}" for number in range(6)]
    printed = finish(*(start("events", str(tmp_path), name, "8") for name in names))
    assert printed == [[""] * 8] * 6
    ledger = ledger_of(tmp_path)
    assert ledger.verify() == []
    kept = [(event.about["hook"], event.about["commits"]) for event in ledger.events()]
    assert sorted(kept, key=str) == [(name, number) for name in names for number in range(8)]


def test_a_full_disk_costs_a_warning_and_nothing_that_was_recorded(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, 3)
    whole = ledger.path.read_bytes()
    (printed,) = finish(start("--most", str(len(whole) + 40), "events", str(tmp_path), "late", "2"))
    assert len(printed) == 2
    for warning in printed:
        assert "not recorded" in warning
        assert "File too large" in warning
    assert ledger.path.read_bytes() == whole
    assert ledger.record("pushed", {"commits": 3}) is None
    assert numbers(ledger) == [0, 1, 2, 3]
    assert ledger.verify() == []


def test_a_full_disk_before_the_first_event_costs_a_warning(tmp_path: Path) -> None:
    (printed,) = finish(start("--most", "0", "events", str(tmp_path), "late", "1"))
    assert "not recorded" in printed[0]
    ledger = ledger_of(tmp_path, 1)
    assert (numbers(ledger), ledger.verify()) == ([0], [])


def test_a_folder_that_cannot_be_made_costs_a_warning(tmp_path: Path) -> None:
    """A file stands where the folder should be, which stops root too."""
    (tmp_path / "patchgate").write_bytes(b"")
    warning = ledger_of(tmp_path).record("refused", ABOUT)
    assert warning is not None
    assert "not recorded" in warning
    assert "events.jsonl" in warning
    assert "\n" not in warning


def test_a_folder_that_is_read_only_costs_a_warning(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "patchgate").mkdir(mode=0o555)
    warning = ledger_of(tmp_path).record("refused", ABOUT)
    assert warning is not None
    assert "Permission denied" in warning


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.lock"])
def test_a_symlink_is_not_followed(tmp_path: Path, name: str) -> None:
    (tmp_path / "patchgate").mkdir()
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    (tmp_path / "patchgate" / name).symlink_to(outside)
    assert ledger_of(tmp_path).record("refused", ABOUT) is not None
    assert outside.read_bytes() == b"precious"


def test_a_lock_that_is_held_costs_a_warning_that_names_the_holder(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, 1)
    with acquire(tmp_path / "patchgate" / "events.jsonl.lock", timeout_seconds=0):
        warning = ledger.record("refused", ABOUT)
    assert warning is not None
    assert "this process" in warning
    assert numbers(ledger) == [0]


def test_a_stuck_writer_is_waited_for_once_and_not_for_each_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience: list[object] = []

    def append(*_: object, timeout_seconds: float, **__: object) -> str:
        patience.append(timeout_seconds)
        raise UndecidedError("the lock is held", None)

    monkeypatch.setattr(hash_chain, "append", append)
    ledger = Ledger(str(tmp_path), patience_seconds=2.5)
    warnings = [ledger.record("refused", ABOUT) for _ in range(3)]
    assert [str(each).endswith(": the lock is held") for each in warnings] == [True] * 3
    assert patience == [2.5, 0.0, 0.0]


def test_a_damaged_last_line_costs_a_warning_that_says_how_to_go_on(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, 2)
    damaged = ledger.path.read_bytes().replace(b'"commits":1', b'"commits":9')
    ledger.path.write_bytes(damaged)
    warning = ledger.record("refused", ABOUT)
    assert warning is not None
    assert "line 2 of" in warning
    assert "mv events.jsonl events.jsonl.damaged" in warning
    assert ledger.path.read_bytes() == damaged


def test_a_torn_last_line_is_set_aside_and_told_and_the_event_is_recorded(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, 2)
    with ledger.path.open("ab") as file:
        file.write(b'{"event":{"kin')
    assert [problem.torn for problem in ledger.verify()] == [True]
    assert numbers(ledger) == [0, 1]
    warning = ledger.record("pushed", {"commits": 2})
    assert str(warning).endswith(" events.jsonl.torn-1")
    assert (numbers(ledger), ledger.verify()) == ([0, 1, 2], [])
    assert (ledger.path.parent / "events.jsonl.torn-1").read_bytes() == b'{"event":{"kin'


def test_an_event_that_one_record_cannot_hold_is_recorded_in_parts(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    commits = [f"{number:064x}" for number in range(20_000)]
    assert ledger.record("skipped", {"reason": "an import", "commits": commits}) is None
    kept = list(ledger.events())
    assert len(kept) == 2
    assert [each for event in kept for each in _list(event.about["commits"])] == commits


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def test_reading_lines_goes_on_behind_damage_where_reading_events_stops(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, 4)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    ledger.path.write_bytes(b"".join([lines[0], b"\xff\n", *lines[2:]]))
    found = list(ledger.lines())
    assert [type(each) for each in found] == [Event, ChainProblem, Event, Event]
    seen: list[object] = []
    with pytest.raises(UndecidedError, match="line 2"):
        seen.extend(event.about["commits"] for event in ledger.events())
    assert seen == [0]
    assert [problem.line for problem in ledger.verify()] == [2]


def test_any_byte_that_is_flipped_is_found() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = ledger_of(Path(folder), 3)
        content = ledger.path.read_bytes()

        @settings(max_examples=often(300), deadline=None)
        @given(position=st.integers(0, len(content) - 1), bits=st.integers(1, 255))
        def flip(position: int, bits: int) -> None:
            flipped = content[position] ^ bits
            ledger.path.write_bytes(content[:position] + bytes([flipped]) + content[position + 1 :])
            problems = ledger.verify()
            assert problems
            assert problems[0].line == content.count(b"\n", 0, position) + 1

        flip()


@settings(max_examples=often(60), deadline=None)
@given(cut=st.integers(0, 10_000))
def test_wherever_a_crash_cut_it_the_whole_events_are_read_and_the_next_one_is_kept(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = ledger_of(Path(folder), 3)
        content = ledger.path.read_bytes()[: cut % 1_000]
        ledger.path.write_bytes(content)
        whole = content.count(b"\n")
        assert numbers(ledger) == list(range(whole))
        is_torn = not content.endswith(b"\n") and content != b""
        assert (ledger.record("pushed", {"commits": "next"}) is not None) == is_torn
        assert numbers(ledger) == [*range(whole), "next"]
        assert ledger.verify() == []


def test_a_ledger_that_cannot_be_read_mentions_nothing_but_to_who_must_know(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    assert list(ledger.find_events({"pushed"}, strict=True)) == []
    ledger.path.mkdir(parents=True)
    assert list(ledger.find_events({"pushed"})) == []
    with pytest.raises(UndecidedError, match="cannot be read") as told:
        list(ledger.find_events({"pushed"}, strict=True))
    assert told.value.hint
