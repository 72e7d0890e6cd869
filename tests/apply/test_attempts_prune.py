"""Prune and reset: what is old goes, and never what is not ours, in use, outside, or in the ledger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchgate.apply.attempt_list import KEPT, prune, seconds_of
from patchgate.apply.attempt_records import ResetRecord, list_chain_since_reset, record, record_reset, records
from patchgate.apply.retries import find_chain_to_reset, list_refusals, reset
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.repository import Repository, open_repository
from patchgate.ledger.ledger import Ledger
from tests.apply.attempt_world import attempt, chances, opened
from tests.world import Repo

NOON = 1_700_000_000
DAY = 86_400


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit."""
    made = Repo.create(tmp_path)
    made.commit({"a.py": "one\n"})
    return made


def open_it(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def common(repo: Repo) -> Path:
    return repo.path / ".git"


def lying(repo: Repo) -> list[str]:
    return sorted(os.listdir(common(repo) / "patchgate" / "attempts"))


def tried(repo: Repo, number: int, *, is_recorded: bool = True, run_dir: Path | None = None) -> str:
    """Let an attempt leave its evidence, `number` days after the first; give its id."""
    ledger = Ledger(str(common(repo)), clock=lambda: NOON + number * DAY)
    with opened(
        common(repo),
        chance=chances(f"{number:04x}"),
        run_dir=run_dir,
        at=f"2023-11-{14 + number:02}T22:13:20Z",
    ) as evidence:
        if is_recorded:
            assert record(ledger, attempt(evidence.id, dir=evidence.dir)) is None
        assert evidence.keep({}, "review", "feedback", []) is None
    return evidence.id


def test_the_newest_stay_and_the_rest_goes(repo: Repo) -> None:
    for number in range(5):
        tried(repo, number)
    events = Ledger(str(common(repo))).path.read_bytes()
    would = prune(open_it(repo), keep=2, now=NOON, dry_run=True)
    assert len(lying(repo)) == 5
    done = prune(open_it(repo), keep=2, now=NOON)
    assert done == would
    assert (done.removed, done.kept, done.warnings) == (("a-0000", "a-0001", "a-0002"), 2, ())
    assert lying(repo) == ["a-0003", "a-0004"]
    assert Ledger(str(common(repo))).path.read_bytes() == events
    assert len(records(Ledger(str(common(repo))))) == 5
    assert prune(open_it(repo), keep=2, now=NOON).removed == ()
    assert prune(open_it(repo), keep=0, now=NOON).kept == 0
    assert lying(repo) == []


def test_without_a_word_the_last_hundred_stay(repo: Repo) -> None:
    assert KEPT == 100
    for _ in range(103):
        opened(common(repo)).close()
    assert prune(open_it(repo), now=NOON).kept == 100
    assert len(lying(repo)) == 100


def test_what_is_older_goes_counted_in_seconds(repo: Repo) -> None:
    for number in range(4):
        tried(repo, number)
    assert prune(open_it(repo), older_than=2 * DAY, now=NOON + 3 * DAY).removed == ("a-0000",)
    assert prune(open_it(repo), older_than=2 * DAY - 1, now=NOON + 3 * DAY).removed == ("a-0001",)
    assert lying(repo) == ["a-0002", "a-0003"]


def test_a_repository_where_nothing_was_tried_has_nothing_to_prune(repo: Repo) -> None:
    assert prune(open_it(repo), keep=0, now=NOON).removed == ()
    assert not (common(repo) / "patchgate").exists()


def test_what_only_has_the_name_of_an_attempt_is_never_touched(repo: Repo) -> None:
    tried(repo, 0)
    above = common(repo) / "patchgate" / "attempts"
    (above / "a-beef" / "artifacts").mkdir(parents=True)
    (above / "a-beef" / "artifacts" / "diff.patch").write_bytes(b"mine")
    (above / "a-dead").mkdir()
    (above / "a-dead" / "attempt.json").write_bytes(
        b'{"schema": "patchgate.evidence/1", "attempt": "a-0000"}'
    )
    (above / "notes").mkdir()
    os.symlink(repo.path, above / "a-1234")
    assert prune(open_it(repo), keep=0, now=NOON).removed == ("a-0000",)
    assert lying(repo) == ["a-1234", "a-beef", "a-dead", "notes"]
    assert (above / "a-beef" / "artifacts" / "diff.patch").read_bytes() == b"mine"
    assert (repo.path / "a.py").exists()


def test_a_folder_whose_marker_is_gone_is_ours_if_the_ledger_names_it(repo: Repo) -> None:
    for number in range(2):
        tried(repo, number)
        (common(repo) / "patchgate" / "attempts" / f"a-{number:04x}" / "attempt.json").unlink()
    # Of another place the ledger says nothing.
    record(Ledger(str(common(repo))), attempt("a-0001", dir="/elsewhere/a-0001"))
    assert prune(open_it(repo), keep=0, now=NOON + 9 * DAY).removed == ("a-0000",)
    assert lying(repo) == ["a-0001"]


def test_an_attempt_that_goes_on_keeps_its_evidence_and_one_that_was_killed_does_not(repo: Repo) -> None:
    tried(repo, 0, is_recorded=False)
    with opened(common(repo), chance=chances("0009")) as running:
        would = prune(open_it(repo), keep=0, now=NOON, dry_run=True)
        done = prune(open_it(repo), keep=0, now=NOON)
        assert done == would
        assert (done.removed, done.kept, done.warnings) == (("a-0000",), 1, ())
        assert lying(repo) == ["a-0009"]
    assert running.id == "a-0009"
    assert prune(open_it(repo), keep=0, now=NOON).removed == ("a-0009",)


def test_evidence_in_a_run_dir_is_never_pruned(repo: Repo, tmp_path: Path) -> None:
    tried(repo, 0, run_dir=tmp_path / "run")
    before = sorted(path.relative_to(tmp_path) for path in (tmp_path / "run").rglob("*"))
    assert prune(open_it(repo), keep=0, now=NOON).removed == ("a-0000",)
    assert lying(repo) == []
    assert sorted(path.relative_to(tmp_path) for path in (tmp_path / "run").rglob("*")) == before


def test_what_cannot_be_removed_stays_with_a_reason(repo: Repo) -> None:
    name = tried(repo, 0)
    (common(repo) / "patchgate" / "attempts" / name / "notes\x1b").write_bytes(b"mine")
    done = prune(open_it(repo), keep=0, now=NOON)
    assert (done.removed, done.kept) == ((), 1)
    (warning,) = done.warnings
    assert " a-0000 " in warning
    assert warning.endswith(": notes\\x1b")


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 30 * DAY), ("12h", 43_200), ("2w", 14 * DAY), ("5m", 300), ("0s", 0)]
)
def test_an_age_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "30", "d", "-1d", "1.5d", "30 d", "30D", "1y", "9999999d", "٣d", "1d\n"]
)
def test_any_other_age_is_a_wrong_argument(text: str) -> None:
    with pytest.raises(UsageError, match="an age"):
        seconds_of(text)


# Reset.


def refused(repo: Repo, name: str, chain: str, **more: object) -> None:
    assert record(Ledger(str(common(repo))), attempt(name, chain=chain, **more)) is None


def test_a_reset_is_of_a_chain_named_by_any_of_its_attempts_or_of_the_last_refusal(repo: Repo) -> None:
    refused(repo, "a-0001", "a-0001")
    refused(repo, "a-0002", "a-0001")
    refused(repo, "a-0003", "a-0003")
    refused(repo, "a-0004", "a-0004", counts=False, verdict="undecided")
    here = open_it(repo)
    assert find_chain_to_reset(here, "a-0002") == find_chain_to_reset(here, "a-0001") == "a-0001"
    assert find_chain_to_reset(here, None) == "a-0003"
    assert [each.attempt for each in list_refusals(here, "a-0001")] == ["a-0001", "a-0002"]
    assert reset(here, "a-0001", "another plan", "A U Thor <a@b>") is None
    assert list_chain_since_reset(Ledger(str(common(repo))), "a-0001") == []
    (event,) = Ledger(str(common(repo))).find_events({"reset"})
    assert event.about == {"chain": "a-0001", "reason": "another plan", "by": "A U Thor <a@b>"}


def test_there_is_nothing_to_reset_where_nothing_was_refused_since(repo: Repo) -> None:
    here = open_it(repo)
    with pytest.raises(UsageError, match="no attempt was"):
        find_chain_to_reset(here, None)
    with pytest.raises(UsageError, match="no attempt a-0001"):
        find_chain_to_reset(here, "a-0001")
    refused(repo, "a-0001", "a-0001")
    record_reset(Ledger(str(common(repo))), ResetRecord("a-0001", "why", "me"))
    with pytest.raises(UsageError, match="chain a-0001 "):
        find_chain_to_reset(here, "a-0001")


def test_a_reset_that_is_not_on_record_is_none(repo: Repo) -> None:
    refused(repo, "a-0001", "a-0001")
    place = Ledger(str(common(repo))).path
    # The last line is damaged, so that nothing may follow it.
    place.write_bytes(place.read_bytes() + b'{"a":1}\n')
    before = place.read_bytes()
    with pytest.raises(UndecidedError, match="reset"):
        reset(open_it(repo), "a-0001", "another plan", "me")
    assert place.read_bytes() == before
