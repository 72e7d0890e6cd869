"""The chain that an apply without `--retry-of` belongs to, in a long ledger."""

from __future__ import annotations

import random
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from patchgate.apply.attempt_records import (
    ATTEMPTED,
    RESET,
    AttemptRecord,
    ResetRecord,
    TouchedFile,
    record,
    record_reset,
)
from patchgate.apply.retries import OPEN_SECONDS, Chain, open_chain
from patchgate.git.path import RepoPath
from patchgate.ledger.ledger import Ledger
from patchgate.storage import record as durable_record
from tests.apply.test_retries import tried

NOW = 1_800_000_000.0
HERE = "/srv/here"


def refuse(folder: Path, name: str, seconds_ago: float, *paths: str, **changed: Any) -> AttemptRecord:
    """Record a refusal of files, made some time ago."""
    files = tuple(TouchedFile(RepoPath(path.encode()), None, None) for path in paths)
    made = tried(name, changed.pop("chain", name), files=files, work_tree=HERE, patch_sha256=name, **changed)
    assert record(Ledger(str(folder), clock=lambda: NOW - seconds_ago), made) is None
    return made


def found(folder: Path, *paths: str, sent: str = "f" * 64, now: float = NOW) -> Chain:
    """Find the chain of an attempt that changes files."""
    return open_chain(
        Ledger(str(folder)), HERE, now, [sent, None], [RepoPath(path.encode()) for path in paths]
    )


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Collect the lines of ledgers that are parsed."""
    lines: list[bytes] = []
    parse = durable_record.parse_line

    def counting(line: bytes) -> durable_record.Record:
        lines.append(line)
        return parse(line)

    monkeypatch.setattr(durable_record, "parse_line", counting)
    return lines


def test_old_refusals_and_those_of_other_files_are_passed_by(tmp_path: Path, parsed: list[bytes]) -> None:
    for number in range(40):
        refuse(tmp_path, f"a-0{number:03}", OPEN_SECONDS + 100 - number, "f")
    for number in range(3):
        refuse(tmp_path, f"a-1{number:03}", 60, "g")
    parsed.clear()
    assert found(tmp_path, "f") == Chain()
    # Each of the three once: of no chain more than its refusals within the hour is asked.
    assert len(parsed) == 3
    parsed.clear()
    assert found(tmp_path, "g").first == "a-1002"
    assert len(parsed) == 4


def test_of_several_chains_the_one_that_was_refused_last_goes_on(tmp_path: Path) -> None:
    refuse(tmp_path, "a-0001", 90, "f")
    refuse(tmp_path, "a-0002", 60, "f")
    refuse(tmp_path, "a-0003", 30, "g")
    assert found(tmp_path, "f").first == "a-0002"
    refuse(tmp_path, "a-0004", 20, "g", chain="a-0001")
    assert found(tmp_path, "f").first == "a-0001"


@pytest.mark.parametrize(
    ("seconds", "is_open"), [(OPEN_SECONDS + 1, False), (OPEN_SECONDS, True), (0, True), (-90_000, True)]
)
def test_a_refusal_binds_for_an_hour_and_where_the_clock_went_back(
    tmp_path: Path, seconds: float, is_open: bool
) -> None:
    refuse(tmp_path, "a-0001", seconds, "f")
    assert (found(tmp_path, "f").first == "a-0001") is is_open
    # The ledger has whole seconds, the clock has not.
    assert found(tmp_path, "f", now=NOW + 0.5).first == (
        "a-0001" if is_open and seconds < OPEN_SECONDS else None
    )


def test_a_refusal_of_which_nobody_knows_when_it_was_binds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchgate.ledger.ledger.time.strftime", lambda *_: "long ago")
    refuse(tmp_path, "a-0001", 10 * OPEN_SECONDS, "f")
    monkeypatch.undo()
    assert found(tmp_path, "f").first == "a-0001"


def test_what_a_ledger_mentions_is_what_all_its_events_say(tmp_path: Path) -> None:
    """The lines that are passed by unread are those that would be left out."""
    chance = random.Random(3)
    moment = [NOW]
    ledger = Ledger(str(tmp_path), clock=lambda: moment[0])
    for number in range(60):
        moment[0] += chance.choice([-5000, 10, 2000])
        if chance.random() < 0.2:
            assert (
                record_reset(ledger, ResetRecord(f"a-{number:04}", 'say "at":"2020" \\ "counts":true', "me"))
                is None
            )
        else:
            name = f"a-{chance.randrange(8):04}"
            made = tried(f"a-{number:04}", name, counts=chance.random() < 0.5)
            assert record(ledger, made) is None
    with open(ledger.path, "ab") as file:
        file.write(b'{"kind":"attempted" a-0003 is damaged "counts":true\n\n"counts":true')
    whole = list(ledger.find_events({ATTEMPTED, RESET}))
    assert len(whole) == 60
    lines = ledger.path.read_bytes().split(b"\n")
    text_of = dict(zip((each.hash for each in whole), lines, strict=False))
    for kinds, holding in product(
        ({ATTEMPTED, RESET}, {RESET}, {"made"}), ("", "a-0003", '"counts":true', "me", "nowhere")
    ):
        holders = [each for each in whole if each.kind in kinds and holding.encode() in text_of[each.hash]]
        assert [each.hash for each in ledger.find_events(kinds, holding)] == [each.hash for each in holders]
        for since in (NOW - 4000, NOW, NOW + 20_000.5):
            expected = [each.hash for each in holders if each.at >= durable_time(since)]
            assert [each.hash for each in ledger.find_events(kinds, holding, since=since)] == expected


def durable_time(seconds: float) -> str:
    """Write a time as events do."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
