"""The chain: nothing lost, nothing between, no byte changed unseen."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.errors import UndecidedError
from patchgate.storage import hash_chain
from patchgate.storage.lock import acquire
from patchgate.storage.record import MAX_LINE, START, Json, line_of
from tests.amount import often
from tests.faults import Fault, Faults, Kind
from tests.storage.durable_child import Child, run

LETTERS = "abcd"


def _chain(folder: Path, letters: str = LETTERS) -> Path:
    path = folder / "events"
    for letter in letters:
        hash_chain.append(path, {"letter": letter, "text": letter * 20})
    return path


def _letters(path: Path) -> str:
    return "".join(str(record.event["letter"]) for record in hash_chain.read(path))


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_records_come_back_in_order_each_naming_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "made" / "events"
    hashes = [hash_chain.append(path, {"n": number}) for number in range(3)]
    records = list(hash_chain.read(path))
    assert [record.hash for record in records] == hashes
    assert [record.previous for record in records] == [START, *hashes[:2]]
    assert [record.event for record in records] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert hash_chain.verify(path) == []


def test_the_form_of_a_record_is_fixed(tmp_path: Path) -> None:
    """The hash is computed here by other means: `sha256sum` of the three lines without a last LF."""
    digest = hash_chain.append(tmp_path / "events", {"b": [1, 2.5, None, True], "a": "é"})
    event = b'{"a":"\\u00e9","b":[1,2.5,null,true]}'
    assert digest == "sha256:ad088f42b78f47d1101a9279f3dd96b97e9008adba149889490518044189ad90"
    expected = b'{"event":%b,"hash":"%b","previous":"%b"}\n' % (event, digest.encode(), START.encode())
    assert (tmp_path / "events").read_bytes() == expected


def test_a_missing_chain_has_no_records_and_no_problems_and_is_not_made(tmp_path: Path) -> None:
    assert list(hash_chain.read(tmp_path / "events")) == []
    assert hash_chain.verify(tmp_path / "events") == []
    assert _names(tmp_path) == []


def test_eight_processes_append_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "events"
    children = [Child("append", path, f"writer-{number}", "6", "") for number in range(8)]
    for child in children:
        child.tell()
    assert [child.end() for child in children] == [0] * 8
    assert hash_chain.verify(path) == []
    events = [(record.event["writer"], record.event["number"]) for record in hash_chain.read(path)]
    assert sorted(events, key=str) == [(f"writer-{w}", n) for w in range(8) for n in range(6)]
    for writer in range(8):
        assert [n for w, n in events if w == f"writer-{writer}"] == list(range(6))
    assert _names(path.parent) == ["events", "events.lock"]


def test_a_chain_that_somebody_writes_to_is_undecided(tmp_path: Path) -> None:
    path = _chain(tmp_path)
    child = Child("hold", tmp_path / "events.lock")
    with pytest.raises(UndecidedError, match=f"process {child.pid}"):
        hash_chain.append(path, {"letter": "x"}, timeout_seconds=0)
    child.tell()
    child.end()
    assert _letters(path) == LETTERS


def test_a_torn_last_line_is_reported_and_set_aside_by_the_next_append(tmp_path: Path) -> None:
    path = _chain(tmp_path)
    whole = path.read_bytes()
    told: list[Path] = []
    for number, torn in enumerate((b'{"event":{"let', b"\0\0\0", b"{"), 1):
        with path.open("ab") as file:
            file.write(torn)
        assert _letters(path) == "abcdxy"[: number + 3]
        assert [(each.line, each.torn) for each in hash_chain.verify(path)] == [(number + 4, True)]
        hash_chain.append(path, {"letter": "xyz"[number - 1]}, on_torn=told.append)
        assert told[-1] == tmp_path / f"events.torn-{number}"
        assert told[-1].read_bytes() == torn
        assert hash_chain.verify(path) == []
    assert _letters(path) == "abcdxyz"
    assert path.read_bytes().startswith(whole)
    assert len(told) == 3


def test_a_chain_that_is_nothing_but_torn_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(b"{" * 100_000)
    hash_chain.append(path, {"letter": "a"})
    assert _letters(path) == "a"
    assert (tmp_path / "events.torn-1").stat().st_size == 100_000


def test_nothing_is_appended_to_a_damaged_last_record(tmp_path: Path) -> None:
    path = _chain(tmp_path)
    damaged = path.read_bytes().replace(b"dddd", b"dddD")
    path.write_bytes(damaged)
    with pytest.raises(UndecidedError, match="line 4") as caught:
        hash_chain.append(path, {"letter": "x"})
    assert caught.value.hint is not None
    assert "mv events events.damaged" in caught.value.hint
    assert path.read_bytes() == damaged
    path.rename(tmp_path / "events.damaged")
    hash_chain.append(path, {"letter": "x"})
    assert _letters(path) == "x"


def _without_line_two(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join(lines[:1] + lines[2:])


def _with_lines_exchanged(content: bytes) -> bytes:
    first, second, third, fourth = content.splitlines(keepends=True)
    return first + third + second + fourth


def _with_line_two_doubled(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    return b"".join([*lines[:2], *lines[1:]])


def _with_line_two_forged(content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    previous = lines[0].split(b'"hash":"')[1][:71].decode()
    return b"".join([lines[0], line_of(b'{"letter":"forged"}', previous)[1], *lines[2:]])


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (_without_line_two, 2),
        (_with_lines_exchanged, 2),
        (_with_line_two_doubled, 3),
        (_with_line_two_forged, 3),
        (lambda content: content.replace(b'{"event":{"letter":"b"', b'{"event": {"letter":"b"'), 2),
        (lambda content: content.replace(b'"letter":"c"', b'"letter":"\\u0063"'), 3),
        (lambda content: content.replace(b"\n", b"\r\n", 1), 1),
        (lambda content: content + b"\n", 5),
        (lambda content: content + b"[" * 5000 + b"\n", 5),
        (lambda content: content + b"9" * 5000 + b"\n", 5),
        (lambda content: content + b" " * (3 * MAX_LINE) + b"\n", 5),
        (lambda content: b"{}\n" + content, 1),
    ],
)
def test_damage_is_found_at_its_line(tmp_path: Path, damage: Callable[[bytes], bytes], line: int) -> None:
    path = _chain(tmp_path)
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert path.read_bytes() != content
    problems = hash_chain.verify(path)
    assert problems[0].line == line
    assert not problems[0].torn
    with pytest.raises(UndecidedError, match=f"line {line} "):
        list(hash_chain.read(path))


def test_any_byte_that_is_changed_dropped_or_added_is_found() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = _chain(Path(folder))
        content = path.read_bytes()

        @settings(max_examples=often(400), deadline=None)
        @given(
            position=st.integers(0, len(content) - 1),
            byte=st.integers(0, 255),
            width=st.sampled_from([0, 1]),
            add=st.booleans(),
        )
        def damage(position: int, byte: int, width: int, add: bool) -> None:
            middle = bytes([byte]) if add else b""
            damaged = content[:position] + middle + content[position + width :]
            path.write_bytes(damaged)
            assert bool(hash_chain.verify(path)) == (damaged != content)

        damage()


_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=often(40), deadline=None)
@given(st.lists(st.dictionaries(st.text(), _VALUES), max_size=3))
def test_any_json_comes_back_as_it_was(events: list[Mapping[str, Json]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events"
        for event in events:
            hash_chain.append(path, event)
        assert [record.event for record in hash_chain.read(path)] == events
        assert hash_chain.verify(path) == []


def _deep(levels: int) -> Json:
    value: Json = None
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), b"bytes", {1: "a number as key"}, {"x": object()}, _deep(65)]
)
def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path, value: Json) -> None:
    with pytest.raises(ValueError):
        hash_chain.append(tmp_path / "events", {"value": value})
    assert _names(tmp_path) == []


def test_a_lone_surrogate_as_an_undecodable_name_gives_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "events"
    hash_chain.append(path, {"path": os.fsdecode(b"caf\xe9")})
    assert [record.event["path"] for record in hash_chain.read(path)] == ["caf\udce9"]
    assert hash_chain.verify(path) == []


def test_the_limit_of_a_record_is_inclusive(tmp_path: Path) -> None:
    path = tmp_path / "events"
    hash_chain.append(path, {"text": ""})
    room = MAX_LINE - path.stat().st_size
    with pytest.raises(UndecidedError, match="limit"):
        hash_chain.append(path, {"text": "x" * (room + 1)})
    for _ in range(2):
        hash_chain.append(path, {"text": "x" * room})
    assert path.stat().st_size == 3 * MAX_LINE - room
    assert hash_chain.verify(path) == []
    assert len(list(hash_chain.read(path))) == 3


def test_several_records_are_appended_in_order_or_none_of_them(tmp_path: Path) -> None:
    path = _chain(tmp_path, "a")
    last = hash_chain.append_all(path, [{"letter": "b"}, {"letter": "c"}], with_head=True)
    assert [record.hash for record in hash_chain.read(path)][-1] == last
    assert _letters(path) == "abc"
    for bad in ({"letter": "e" * MAX_LINE}, {"letter": float("nan")}):
        with pytest.raises((UndecidedError, ValueError)):
            hash_chain.append_all(path, [{"letter": "d"}, bad])
    for kind in (Kind.ENOSPC, Kind.EIO):
        failed = 0
        for step in range(1, 30):
            with contextlib.suppress(OSError):
                hash_chain.append_all(
                    path, [{"letter": "d"}, {"letter": "e"}], faults=Faults([Fault(step, kind)])
                )
                break
            failed += 1
            assert _letters(path) == "abc"
        assert failed > 0
        path.unlink()
        hash_chain.append_all(path, [{"letter": letter} for letter in "abc"])
    assert hash_chain.verify(path) == []


def test_a_last_line_without_bounds_is_refused(tmp_path: Path) -> None:
    path = _chain(tmp_path)
    with path.open("ab") as file:
        file.write(b" " * (10 * MAX_LINE) + b"\n")
    with pytest.raises(UndecidedError, match=r"line 5 .* longer"):
        hash_chain.append(path, {"letter": "x"})


def _count(folder: Path, letters: str, torn: bytes = b"") -> int:
    path = _prepared(folder, letters, torn)
    faults = Faults()
    hash_chain.append(path, {"letter": "x"}, faults=faults)
    return faults.steps


def _prepared(folder: Path, letters: str, torn: bytes = b"") -> Path:
    folder.mkdir()
    path = _chain(folder, letters)
    if torn:
        with path.open("ab") as file:
            file.write(torn)
    return path


CASES = [("", b""), ("ab", b""), ("ab", b'{"event":')]


@pytest.mark.parametrize(("letters", "torn"), CASES)
@pytest.mark.parametrize("kind", [Kind.ENOSPC, Kind.EIO, Kind.EACCES, Kind.EINTR, Kind.SHORT])
def test_each_error_at_each_step_leaves_the_chain_whole(
    tmp_path: Path, kind: Kind, letters: str, torn: bytes
) -> None:
    failed = 0
    for step in range(1, _count(tmp_path / "count", letters, torn) + 1):
        path = _prepared(tmp_path / str(step), letters, torn)
        code = None
        try:
            hash_chain.append(path, {"letter": "x"}, faults=Faults([Fault(step, kind)]))
        except OSError as error:
            code = error.errno
        if code is None:
            assert _letters(path) == letters + "x"
        else:
            failed += 1
            assert code == getattr(errno, kind.value)
            assert _letters(path) == letters
            assert [each for each in hash_chain.verify(path) if not each.torn] == []
        hash_chain.append(path, {"letter": "y"})
        assert hash_chain.verify(path) == []
        assert _letters(path) == letters + ("x" if code is None else "") + "y"
        _nothing_of_it_is_lost(path, torn)
    assert (failed == 0) == (kind in {Kind.EINTR, Kind.SHORT})


@pytest.mark.parametrize(("letters", "torn"), CASES)
def test_a_kill_at_each_step_leaves_old_or_new(tmp_path: Path, letters: str, torn: bytes) -> None:
    seen = set()
    for step in range(1, _count(tmp_path / "count", letters, torn) + 1):
        path = _prepared(tmp_path / str(step), letters, torn)
        seen.add(_after_a_kill(path, letters, f"{step}:kill", torn))
    assert seen == {False, True}


def test_a_kill_in_the_middle_of_the_record_tears_it(tmp_path: Path) -> None:
    path = _prepared(tmp_path / "count", "ab")
    faults = Faults(record=lambda operation: written.append(faults.steps) if operation.content else None)
    written: list[int] = []
    hash_chain.append(path, {"letter": "x"}, faults=faults)
    step = written[-1]
    path = _prepared(tmp_path / "torn", "ab")
    assert not _after_a_kill(path, "ab", f"{step}:short,{step + 1}:kill", b"")
    assert (path.parent / "events.torn-1").read_bytes().startswith(b'{"event":')


def _after_a_kill(path: Path, letters: str, plan: str, torn: bytes) -> bool:
    """Append in a child that is killed, check what is left; say whether the record is there."""
    assert run("append", path, "killed", "1", plan) == -signal.SIGKILL
    events = [record.event for record in hash_chain.read(path)]
    is_new = len(events) > len(letters)
    assert [event["letter"] for event in events[: len(letters)]] == list(letters)
    assert events[len(letters) :] == ([{"writer": "killed", "number": 0}] if is_new else [])
    assert [each for each in hash_chain.verify(path) if not each.torn] == []
    hash_chain.append(path, {"letter": "y"})
    hash_chain.append(path, {"letter": "z"})
    assert hash_chain.verify(path) == []
    assert [record.event for record in hash_chain.read(path)] == [*events, {"letter": "y"}, {"letter": "z"}]
    _nothing_of_it_is_lost(path, torn)
    return is_new


def _nothing_of_it_is_lost(path: Path, torn: bytes) -> None:
    asides = [name for name in _names(path.parent) if ".torn-" in name]
    if torn:
        assert asides == ["events.torn-1"]
        assert (path.parent / asides[0]).read_bytes() == torn
    assert [name for name in _names(path.parent) if name.startswith(".patchgate-")] == []


def test_reading_waits_for_nobody(tmp_path: Path) -> None:
    path = _chain(tmp_path)
    with acquire(tmp_path / "events.lock", timeout_seconds=0):
        assert _letters(path) == LETTERS
        assert hash_chain.verify(path) == []


def test_what_looks_torn_while_somebody_appends_is_undecided_and_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hash_chain, "LOCK_SECONDS", 0.0)
    path = _chain(tmp_path)
    with path.open("ab") as file:
        file.write(b'{"event":')
    with acquire(tmp_path / "events.lock", timeout_seconds=0), pytest.raises(UndecidedError, match="is held"):
        hash_chain.verify(path)
    assert [problem.torn for problem in hash_chain.verify(path)] == [True]
