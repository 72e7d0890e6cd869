"""The ledger's record of attempts: what is recorded comes back, and what is foreign is left out."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.apply.attempt_records import (
    AttemptRecord,
    RecoveredRecord,
    ResetRecord,
    events_of,
    find,
    is_known,
    list_chain_since_reset,
    list_events,
    record,
    record_landed,
    record_recovered,
    record_reset,
    records,
)
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.ledger.ledger import Ledger
from patchgate.storage.lock import acquire
from patchgate.storage.record import START, Json, canonical_event, line_of
from tests.amount import often
from tests.apply.attempt_world import AT, attempt, touched

pytestmark = pytest.mark.turns(2)

HOSTILE = (b"a\nb", b"caf\xe9", "na\u202eme".encode(), b'"quoted"', b"\\", b"tab\t", b"plain \xc3\xa9")


def ledger_of(folder: Path, *made: AttemptRecord | ResetRecord | RecoveredRecord) -> Ledger:
    """A ledger that holds these, in this order."""
    ledger = Ledger(str(folder), clock=lambda: 1_700_000_000, patience_seconds=0)
    for each in made:
        if isinstance(each, AttemptRecord):
            assert record(ledger, each) is None
        elif isinstance(each, ResetRecord):
            assert record_reset(ledger, each) is None
        else:
            assert record_recovered(ledger, each) is None
    return ledger


def forge(folder: Path, *events: dict[str, Json]) -> Ledger:
    """Write a ledger by hand, as whoever can write .git could: a whole chain of anything."""
    previous, lines = START, []
    for event in events:
        previous, line = line_of(canonical_event(event), previous)
        lines.append(line)
    place = folder / "patchgate" / "events.jsonl"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"".join(lines))
    return Ledger(str(folder))


def test_an_attempt_comes_back_as_it_was_recorded(tmp_path: Path) -> None:
    files = (
        *(touched(name) for name in HOSTILE),
        touched("new", old=None),
        touched("gone", new=None),
    )
    one = attempt(files=files, dir="/x/caf\udce9", retry_of="a-0001", chain="a-0001", number=2)
    two = attempt("a-0002", verdict="accepted", applied=True, counts=False, rules=(), stage=None, code=None)
    ledger = ledger_of(tmp_path, one, two)
    first, second = records(ledger)
    assert (first.at, second.at) == (AT, AT)
    assert first.plain() == one.plain()
    assert first.files == one.files
    assert second.plain() == two.plain()


def test_the_event_holds_the_keys_that_others_read(tmp_path: Path) -> None:
    (event,) = ledger_of(tmp_path, attempt(files=(touched(b"caf\xe9", old=None),))).events()
    assert event.kind == "attempted"
    assert set(event.about) == {
        "attempt", "chain", "retry_of", "number", "verdict", "applied", "counts", "dry_run", "source",
        "patch_sha256", "patch_id", "base", "after", "policy", "stage", "code", "rules", "n_hunks",
        "added_lines", "removed_lines", "files", "dir", "work_tree", "fallback_reason", "temp_path",
        "run",
    }  # fmt: skip
    assert event.about["files"] == [
        {
            "path": '"caf\\351"',
            "path_b64": "Y2Fm6Q==",
            "old_mode": None,
            "old_oid": None,
            "new_mode": "100644",
            "new_oid": "b" * 40,
        }
    ]


def test_resets_and_recoveries_stand_between_the_attempts_in_their_order(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path,
        attempt("a-0001"),
        ResetRecord("a-0001", "why not", "A <a@b>"),
        RecoveredRecord("a-0002", "undone"),
        attempt("a-0003"),
    )
    assert [type(each).__name__ for each in list_events(ledger)] == [
        "AttemptRecord",
        "ResetRecord",
        "RecoveredRecord",
        "AttemptRecord",
    ]
    assert list_events(ledger)[1:3] == [
        ResetRecord("a-0001", "why not", "A <a@b>", AT),
        RecoveredRecord("a-0002", "undone", AT),
    ]


def test_a_chain_begins_again_where_a_person_said_so(tmp_path: Path) -> None:
    def tried(name: str, chain: str = "a-0001") -> AttemptRecord:
        return attempt(name, chain=chain)

    ledger = ledger_of(
        tmp_path,
        tried("a-0001"),
        tried("a-0002"),
        tried("a-0009", "a-0009"),
        ResetRecord("a-0009", "another chain", "me"),
        tried("a-0003"),
    )
    assert [each.attempt for each in list_chain_since_reset(ledger, "a-0001")] == [
        "a-0001",
        "a-0002",
        "a-0003",
    ]
    record_reset(ledger, ResetRecord("a-0001", "why not", "me"))
    assert list_chain_since_reset(ledger, "a-0001") == []
    record(ledger, tried("a-0004"))
    assert [each.attempt for each in list_chain_since_reset(ledger, "a-0001")] == ["a-0004"]


def test_an_attempt_is_found_by_its_id_and_by_a_beginning_that_only_one_has(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, *(attempt(name) for name in ("a-7f3a", "a-7f3a01", "a-71ff", "a-8000")))

    def found(text: str) -> str | None:
        one = find(ledger, text)
        return one.attempt if one else None

    assert found("a-7f3a") == "a-7f3a"
    assert found("a-7f3a0") == "a-7f3a01"
    assert found("a-8") == "a-8000"
    for wrong in ("a-7", "a-", "a", "", "7f3a", "a-9", "a-7f3a011", "a-7f3a\n", "A-8000"):
        assert found(wrong) is None, wrong


def test_an_id_is_known_wherever_the_ledger_speaks_of_it(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, attempt("a-7f3a", chain="a-0001"), RecoveredRecord("a-0002", "undone"))
    assert [is_known(ledger)(name) for name in ("a-7f3a", "a-0001", "a-0002")] == [True] * 3
    assert [is_known(ledger)(name) for name in ("a-7f3", "a-7f3a0", "a-9999")] == [False] * 3


def test_holding_gives_the_same_as_looking_at_all(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, *(attempt(f"a-{n:04x}", patch_id=f"{n % 7:040x}") for n in range(60)))
    sought = f"{3:040x}"
    assert records(ledger, sought) == [each for each in records(ledger) if each.patch_id == sought]
    assert len(records(ledger, sought)) == 9


def test_the_events_of_an_attempt_are_its_own(tmp_path: Path) -> None:
    ledger = ledger_of(
        tmp_path, attempt("a-0001"), attempt("a-0002", retry_of="a-0001"), RecoveredRecord("a-0001", "undone")
    )
    found = events_of(ledger, "a-0001")
    assert [(each["kind"], each["attempt"]) for each in found] == [
        ("attempted", "a-0001"),
        ("recovered", "a-0001"),
    ]
    assert {"schema", "hash", "at", "version"} < set(found[0])


def many(count: int) -> tuple[Any, ...]:
    return tuple(touched(f"{'d' * 200}/{number}") for number in range(count))


def test_a_list_of_files_that_one_record_cannot_hold_comes_back_whole(tmp_path: Path) -> None:
    one = attempt("a-0001", files=many(6_000))
    ledger = ledger_of(tmp_path, one, attempt("a-0002"))
    assert len(list(ledger.events())) > 2
    assert [each.plain() for each in records(ledger)] == [one.plain(), attempt("a-0002").plain()]


def test_parts_of_two_attempts_that_were_recorded_at_once_are_told_apart(tmp_path: Path) -> None:
    parts = []
    for name in ("a-0001", "a-0002"):
        place = tmp_path / name
        parts.append([event.plain() for event in ledger_of(place, attempt(name, files=many(6_000))).events()])
    mixed = [
        {key: value for key, value in event.items() if key not in {"schema", "hash"}}
        for pair in zip(*parts, strict=True)
        for event in pair
    ]
    first, second = records(forge(tmp_path, *mixed))
    assert (first.attempt, second.attempt) == ("a-0001", "a-0002")
    assert first.files == second.files == many(6_000)


def test_of_a_list_of_which_a_part_is_missing_nothing_is_concluded(tmp_path: Path) -> None:
    events = [
        {key: value for key, value in event.plain().items() if key not in {"schema", "hash"}}
        for event in ledger_of(tmp_path / "x", attempt(files=many(9_000))).events()
    ]
    assert len(events) > 2
    for left_out in range(len(events)):
        ledger = forge(tmp_path, *events[:left_out], *events[left_out + 1 :])
        (one,) = records(ledger)
        assert (one.attempt, one.counts) == ("a-7f3a", True)
        assert (one.files, one.patch_id) == ((), None)


WRONG: list[dict[str, Json]] = [
    {},
    {"attempt": "a-7f3a"},
    attempt().plain() | {"attempt": "../../x"},
    attempt().plain() | {"attempt": 7},
    attempt().plain() | {"chain": "a-xyz"},
    attempt().plain() | {"number": True},
    attempt().plain() | {"number": "1"},
    attempt().plain() | {"applied": 1},
    attempt().plain() | {"rules": "secret"},
    attempt().plain() | {"rules": [1]},
    attempt().plain() | {"files": {}},
    attempt().plain() | {"files": ["a"]},
    attempt().plain() | {"files": [{"path": "a", "path_b64": "!"}]},
    attempt().plain() | {"files": [{"path": "a", "old_mode": "1"}]},
    attempt().plain() | {"files": [{"path": "a", "old_mode": "100644", "old_oid": "zz"}]},
    attempt().plain() | {"files": [{"path": "\ud800"}]},
    attempt().plain() | {"patch_sha256": None},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_not_ours_is_left_out_and_the_rest_is_read(tmp_path: Path, wrong: dict[str, Json]) -> None:
    ours: dict[str, Json] = {"kind": "attempted", **attempt("a-0001").plain()}
    newer = ours | {"attempt": "a-0002", "a new key": [1]}
    ledger = forge(tmp_path, ours, {"kind": "attempted", **wrong}, newer)
    assert [each.attempt for each in records(ledger)] == ["a-0001", "a-0002"]


@settings(max_examples=often(150), deadline=None)
@given(
    events=st.lists(
        st.dictionaries(
            st.sampled_from(
                ["kind", "attempt", "chain", "part", "outcome", "files", "rules", "reason", "by"]
            ),
            st.recursive(
                st.none() | st.integers() | st.text() | st.sampled_from(["attempted", "reset", "a-7f3a"]),
                lambda inner: st.lists(inner, max_size=3),
                max_leaves=5,
            ),
        ).map(lambda each: attempt().plain() | {"kind": "attempted"} | each),
        max_size=5,
    )
)
def test_no_forged_event_makes_reading_fail(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Json]]
) -> None:
    ledger = forge(tmp_path_factory.mktemp("forged"), *events)
    for each in list_events(ledger):
        assert isinstance(each, AttemptRecord | ResetRecord | RecoveredRecord)
    find(ledger, "a-7f3a")
    events_of(ledger, "a-7f3a")


def test_what_landed_before_a_kill_is_recorded_as_applied_once(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path)
    note = json.loads(json.dumps(attempt(verdict="accepted", applied=True, counts=False).plain()))
    assert record_landed(ledger, {"attempt": "a-7f3a"}) is None
    assert record_landed(ledger, {}) is None
    assert records(ledger) == []
    assert record_landed(ledger, note) is None
    (one,) = records(ledger)
    assert (one.applied, one.verdict, one.counts) == (True, "accepted", False)
    assert record_landed(ledger, note) is None
    assert len(records(ledger)) == 1


# Whether anything could be recorded.


def test_a_ledger_that_can_be_written_is_made_and_says_nothing(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    assert ledger.require_writable() is None
    assert ledger.path.read_bytes() == b""
    assert record(ledger, attempt()) is None
    before = ledger.path.read_bytes()
    assert ledger.require_writable() is None
    assert ledger.path.read_bytes() == before


def test_a_torn_last_line_is_set_aside_and_told(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, attempt())
    with ledger.path.open("ab") as file:
        file.write(b'{"event')
    assert str(ledger.require_writable()).endswith(" events.jsonl.torn-1")
    assert ledger.require_writable() is None


def test_a_ledger_that_cannot_be_written_is_refused_with_the_next_step(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), patience_seconds=0)
    (tmp_path / "patchgate").mkdir()
    ledger.path.mkdir()
    with pytest.raises(UndecidedError, match=r"written.*Is a directory") as found:
        ledger.require_writable()
    assert found.value.hint
    os.rmdir(ledger.path)
    ledger.path.write_bytes(b"damaged\n")
    with pytest.raises(UndecidedError, match=r"line 1 .* JSON"):
        ledger.require_writable()
    ledger.path.unlink()
    with (
        acquire(ledger.path.with_name("events.jsonl.lock"), timeout_seconds=0),
        pytest.raises(UndecidedError, match="this process"),
    ):
        ledger.require_writable()


def test_a_path_that_is_no_utf_8_survives_the_ledger(tmp_path: Path) -> None:
    (one,) = records(ledger_of(tmp_path, attempt(files=(touched(b"\xff\xfe"),))))
    assert one.files[0].path == RepoPath(b"\xff\xfe")
    assert sys.getfilesystemencoding() == "utf-8"
