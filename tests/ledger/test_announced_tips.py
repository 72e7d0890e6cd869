"""How far each branch has been told of: a line of receipts is followed, and never past what is unknown."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as rounds
from hypothesis import strategies as st

from patchgate.ledger.receipts import AnnouncedTips, Receipts, settle
from tests.amount import often

MAIN, SIDE = "refs/heads/main", "refs/heads/side"


def oid(number: int, width: int = 40) -> str:
    return f"{number:0{width}x}"


def line_of_commits(folder: Path | str, count: int, *, merges: set[str] | None = None) -> Receipts:
    """Receipts of the commits 1 to `count`, each on top of the one before; 0 has none."""
    receipts = Receipts(str(folder))
    lines = [(oid(number), oid(1000 + number), oid(number - 1)) for number in range(1, count + 1)]
    assert receipts.add(lines, merges or set()) is None
    return receipts


def place(folder: Path) -> Path:
    return folder / "patchgate" / "told"


def test_a_line_of_receipts_leads_to_the_commit_that_the_branch_was_told_of(tmp_path: Path) -> None:
    receipts, told = line_of_commits(tmp_path, 5), AnnouncedTips(str(tmp_path))
    assert not told.covers(MAIN, oid(5), receipts)
    told.record(MAIN, oid(0))
    assert told.covers(MAIN, oid(5), receipts)
    assert told.covers(MAIN, oid(0), receipts)


def test_a_branch_is_not_answered_for_by_what_another_was_told(tmp_path: Path) -> None:
    receipts, told = line_of_commits(tmp_path, 5), AnnouncedTips(str(tmp_path))
    told.record(MAIN, oid(0))
    assert not told.covers(SIDE, oid(5), receipts)
    assert not told.covers("refs/heads/mai", oid(5), receipts)


def test_a_branch_that_was_moved_away_is_not_covered_by_where_it_was(tmp_path: Path) -> None:
    receipts, told = line_of_commits(tmp_path, 5), AnnouncedTips(str(tmp_path))
    told.record(MAIN, oid(99))
    assert not told.covers(MAIN, oid(5), receipts)


def test_what_was_settled_at_install_and_a_root_commit_end_the_line(tmp_path: Path) -> None:
    receipts, told = line_of_commits(tmp_path, 3), AnnouncedTips(str(tmp_path))
    receipts.add([(oid(50), oid(1050), None), (oid(51), oid(1051), oid(50))])
    assert told.covers(MAIN, oid(51), receipts)
    assert not told.covers(MAIN, oid(3), receipts)
    assert settle(str(tmp_path), [oid(0)]) is None
    assert told.covers(MAIN, oid(3), receipts)


def test_no_line_leads_through_a_merge(tmp_path: Path) -> None:
    """Its receipt says nothing of what came in by the other parents."""
    receipts, told = line_of_commits(tmp_path, 5, merges={oid(3)}), AnnouncedTips(str(tmp_path))
    told.record(MAIN, oid(0))
    assert told.covers(MAIN, oid(2), receipts)
    assert not told.covers(MAIN, oid(3), receipts)
    assert not told.covers(MAIN, oid(5), receipts)
    told.record(MAIN, oid(3))
    assert told.covers(MAIN, oid(5), receipts)


def test_receipts_that_lead_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    receipts = Receipts(str(tmp_path))
    receipts.add([(oid(1), oid(9), oid(2)), (oid(2), oid(9), oid(1))])
    assert not AnnouncedTips(str(tmp_path)).covers(MAIN, oid(1), receipts)


def test_a_receipt_that_has_left_the_end_of_the_file_leads_nowhere(tmp_path: Path) -> None:
    receipts, told = line_of_commits(tmp_path, 600), AnnouncedTips(str(tmp_path))
    told.record(MAIN, oid(0))
    assert not told.covers(MAIN, oid(600), receipts)
    told.record(MAIN, oid(200))
    assert told.covers(MAIN, oid(600), receipts)


def test_the_file_holds_a_line_for_each_branch_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    line_of_commits(tmp_path, 1)
    told = AnnouncedTips(str(tmp_path))
    told.record(MAIN, oid(1))
    told.record(SIDE, oid(2, 64))
    told.record(MAIN, oid(3))
    assert place(tmp_path).read_text() == f"{oid(2, 64)} {SIDE}\n{oid(3)} {MAIN}\n"
    assert stat.S_IMODE(place(tmp_path).stat().st_mode) == 0o600
    assert sorted(os.listdir(place(tmp_path).parent)) == ["receipts", "told"]


def test_what_is_known_is_not_written_again(tmp_path: Path) -> None:
    line_of_commits(tmp_path, 1)
    told = AnnouncedTips(str(tmp_path))
    told.record(MAIN, oid(1))
    before = place(tmp_path).stat()
    told.record(MAIN, oid(1))
    assert place(tmp_path).stat() == before


def test_a_name_that_is_not_utf_8_is_kept_as_git_has_it(tmp_path: Path) -> None:
    line_of_commits(tmp_path, 1)
    branch = b"refs/heads/\xff\xc3\xa9".decode("utf-8", "surrogateescape")
    AnnouncedTips(str(tmp_path)).record(branch, oid(1))
    assert place(tmp_path).read_bytes() == oid(1).encode() + b" refs/heads/\xff\xc3\xa9\n"
    assert AnnouncedTips(str(tmp_path)).tips() == {branch: oid(1)}


def test_the_branches_that_were_noted_long_ago_are_forgotten(tmp_path: Path) -> None:
    line_of_commits(tmp_path, 1)
    told = AnnouncedTips(str(tmp_path))
    for number in range(205):
        told.record(f"refs/heads/{number}", oid(number))
    assert list(told.tips()) == [f"refs/heads/{number}" for number in range(5, 205)]


def test_the_file_never_gets_longer_than_is_read(tmp_path: Path) -> None:
    line_of_commits(tmp_path, 1)
    told = AnnouncedTips(str(tmp_path))
    for number in range(8):
        branch = f"refs/heads/{number}" + "x" * 20_000
        told.record(branch, oid(number))
        assert told.tips()[branch] == oid(number)
        assert place(tmp_path).stat().st_size <= 64 << 10


def test_a_failure_to_write_is_silent_and_makes_nothing(tmp_path: Path) -> None:
    AnnouncedTips(str(tmp_path)).record(MAIN, oid(1))
    assert os.listdir(tmp_path) == []
    place(tmp_path).mkdir(parents=True)
    AnnouncedTips(str(tmp_path)).record(MAIN, oid(1))
    assert os.listdir(place(tmp_path).parent) == ["told"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\x00garbage\n",
        f"{oid(0)} {MAIN}".encode(),
        f"{oid(0)[1:]} {MAIN}\n".encode(),
        f"{oid(0).replace('0', 'G')} {MAIN}\n".encode(),
        f"{MAIN}\n{oid(0)}\n".encode(),
        f"{oid(0)} {MAIN}\n".encode() * 2000,
    ],
    ids=["empty", "garbage", "torn", "short", "no digits", "another form", "too long"],
)
def test_a_file_that_is_damaged_answers_for_nothing(tmp_path: Path, content: bytes) -> None:
    receipts, told = line_of_commits(tmp_path, 2), AnnouncedTips(str(tmp_path))
    place(tmp_path).write_bytes(content)
    assert not told.covers(MAIN, oid(2), receipts)
    told.record(MAIN, oid(0))
    assert told.covers(MAIN, oid(2), receipts)


def test_of_two_writers_one_may_win_and_what_stands_there_is_true(tmp_path: Path) -> None:
    line_of_commits(tmp_path, 1)
    first, second = AnnouncedTips(str(tmp_path)), AnnouncedTips(str(tmp_path))
    first.record(MAIN, oid(1))
    second.record(SIDE, oid(2))
    first.record(MAIN, oid(3))
    assert second.tips() == {SIDE: oid(2), MAIN: oid(3)}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[int]], set[int], int, set[int]]:
    """Parents of each commit, those that have a receipt, one that the branch was told of, those settled."""
    size = draw(st.integers(2, 14))
    parents: list[list[int]] = []
    for number in range(size):
        before = st.integers(max(0, number - 3), number - 1) if number else st.nothing()
        most = min(number, draw(st.sampled_from([0, 1, 1, 1, 1, 2])))
        parents.append(draw(st.lists(before, min_size=most, max_size=most, unique=True)) if most else [])
    numbers = st.integers(0, size - 1)
    unanswered = draw(st.sets(numbers, max_size=3))
    return parents, set(range(size)) - unanswered, draw(numbers), draw(st.sets(numbers, max_size=1))


@rounds(max_examples=often(600), deadline=None)
@given(history=histories())
def test_whatever_is_covered_has_nothing_below_it_that_nobody_answered_for(
    history: tuple[list[list[int]], set[int], int, set[int]],
) -> None:
    parents, answered, noted, installed = history
    with tempfile.TemporaryDirectory() as folder:
        receipts, told = Receipts(folder), AnnouncedTips(folder)
        receipts.add(
            [
                (oid(number), oid(1000 + number), oid(above[0]) if above else None)
                for number, above in enumerate(parents)
                if number in answered
            ],
            {oid(number) for number, above in enumerate(parents) if len(above) > 1},
        )
        settle(folder, map(oid, installed))
        told.record(MAIN, oid(noted))
        known = below(parents, {noted, *installed})
        is_line = all(above == [number - 1] for number, above in enumerate(parents) if number)
        for tip in range(len(parents)):
            if told.covers(MAIN, oid(tip), receipts):
                assert below(parents, {tip}) - known <= answered
            elif is_line and tip not in known:
                assert below(parents, {tip}) - known - answered


def below(parents: list[list[int]], tips: set[int]) -> set[int]:
    found: set[int] = set()
    waiting = list(tips)
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += parents[at]
    return found
