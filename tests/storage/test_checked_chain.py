"""A chain is checked quickly: all of it once, then what is new, and any damage is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.storage import checked_chain
from patchgate.storage.checked_chain import damaged_line
from patchgate.storage.hash_chain import append, scan
from patchgate.storage.record import Record, link_of


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(checked_chain, "WORTH_REMEMBERING", 1)
    place = tmp_path / "events.jsonl"
    for number in range(6):
        append(place, {"number": number})
    return place


def check(chain: Path) -> int | None:
    return damaged_line(str(chain), chain.read_bytes())


def damage(chain: Path, line: int) -> bytes:
    lines = chain.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"number":', b'"mumber":')
    return b"".join(lines)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("line", [1, 3, 6])
def test_a_damaged_line_is_found_whether_or_not_it_was_whole_before(
    chain: Path, line: int, is_known: bool
) -> None:
    if is_known:
        assert check(chain) is None
    chain.write_bytes(damage(chain, line))
    assert check(chain) == line


def test_a_line_that_is_missing_is_found_at_the_next_one(chain: Path) -> None:
    assert check(chain) is None
    lines = chain.read_bytes().splitlines(keepends=True)
    chain.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    assert check(chain) == 3


def test_only_what_is_new_is_checked_again(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(chain) is None
    append(chain, {"number": 6})
    seen: list[bytes] = []

    def note(line: bytes) -> tuple[str, str]:
        seen.append(line)
        return link_of(line)

    monkeypatch.setattr(checked_chain, "link_of", note)
    assert check(chain) is None
    assert len(seen) == 1
    chain.write_bytes(damage(chain, 7))
    assert check(chain) is not None


def test_an_empty_chain_and_one_whose_last_line_is_being_written_are_whole(chain: Path) -> None:
    assert damaged_line(str(chain), b"") is None
    whole = chain.read_bytes()
    assert damaged_line(str(chain), whole + b'{"event":') is None


def test_what_is_remembered_wrongly_is_not_believed(chain: Path) -> None:
    assert check(chain) is None
    place = chain.with_name(chain.name + ".whole")
    for text in (b"", b"999999 0 x\n", place.read_bytes().replace(b" ", b" 1", 1), b"\xff" * 900):
        place.write_bytes(text)
        assert check(chain) is None
        chain.write_bytes(damage(chain, 2))
        assert check(chain) == 2
        chain.write_bytes(chain.read_bytes().replace(b'"mumber":', b'"number":'))


def test_lines_without_a_mark_are_checked_and_not_yielded(chain: Path) -> None:
    found = list(scan(chain, [b'"number":4']))
    assert [each.event for each in found if isinstance(each, Record)] == [{"number": 4}]
    chain.write_bytes(damage(chain, 2))
    assert [getattr(each, "line", None) for each in scan(chain, [b'"number":4'])] == [2, None]
