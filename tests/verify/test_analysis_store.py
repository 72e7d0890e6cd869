"""The store of runs: what was told comes back as it was; what is damaged or foreign counts for nothing."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from patchgate.commands.analysis_results import AnalysisOutcome, AnalysisResult, AnalysisRun, Measurement
from patchgate.git.path import RepoPath
from patchgate.verify import analysis_runner as analysis_store
from patchgate.verify.analysis_runner import AnalysisStore, canonical_run

KEYS = [f"{number:064x}" for number in range(20)]
NOW = 1_700_000_000.0


def result(
    line: int | None = 1, path: bytes = b"a.py", rule: str = "F401", mark: str = "0" * 32
) -> AnalysisResult:
    paths = (RepoPath(path),) if path else ()
    return AnalysisResult("ruff", "ruff", rule, "warning", f"{rule} says", paths, line, mark)


def run(*results: AnalysisResult, key: str = KEYS[0]) -> AnalysisRun:
    outcome = AnalysisOutcome.FINDINGS if results else AnalysisOutcome.CLEAN
    return AnalysisRun("ruff", key, "", outcome, "/bin/ruff", results=results, warnings=("a warning",))


def store(tmp_path: Path, now: float = NOW) -> AnalysisStore:
    return AnalysisStore(str(tmp_path), now)


def entry(tmp_path: Path, key: str = KEYS[0]) -> Path:
    return tmp_path / "patchgate" / "analyses" / key


def test_what_was_kept_is_found_by_its_key_alone(tmp_path: Path) -> None:
    first = store(tmp_path)
    kept = first.keep(run(result(), result(2)))
    assert first.find(KEYS[0]) == kept
    assert store(tmp_path).find(KEYS[0]) == kept
    assert store(tmp_path).find(KEYS[1]) is None
    assert (entry(tmp_path).exists(), entry(tmp_path, KEYS[1]).exists()) == (True, False)
    assert entry(tmp_path).stat().st_mode & 0o077 == 0


texts = some.text(max_size=8)
paths = some.builds(RepoPath, some.binary(min_size=1, max_size=8))
results = some.builds(
    AnalysisResult,
    some.just("ruff"),
    texts,
    texts,
    some.sampled_from(["error", "warning", "note", "none"]),
    texts,
    some.lists(paths, max_size=3).map(tuple),
    some.none() | some.integers(1, 5),
    some.text("0123456789abcdef", min_size=32, max_size=32),
)
numbers = some.floats(allow_nan=False, allow_infinity=False)
measurements = some.builds(Measurement, some.just("ruff"), paths, texts, texts, numbers)
runs = some.builds(
    AnalysisRun,
    some.just("ruff"),
    some.just(KEYS[0]),
    some.just(""),
    some.sampled_from([AnalysisOutcome.CLEAN, AnalysisOutcome.FINDINGS]),
    texts,
    results=some.lists(results, max_size=6).map(tuple),
    suppressed=some.lists(results, max_size=3).map(tuple),
    measurements=some.lists(measurements, max_size=4).map(tuple),
    warnings=some.lists(texts, max_size=2).map(tuple),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@given(run=runs, seed=some.integers(0, 100))
def test_a_run_comes_back_with_all_that_it_told_in_one_order(
    place: Path, run: AnalysisRun, seed: int
) -> None:
    kept = store(place).keep(run)
    assert store(place).find(KEYS[0]) == kept
    assert kept.digest.startswith("sha256:")
    assert sorted(map(repr, kept.results)) == sorted(map(repr, run.results))
    assert sorted(map(repr, kept.suppressed)) == sorted(map(repr, run.suppressed))
    assert sorted(map(repr, kept.measurements)) == sorted(map(repr, run.measurements))
    assert (kept.outcome, kept.tool, kept.warnings) == (run.outcome, run.tool, run.warnings)
    mixed = list(run.results)
    random.Random(seed).shuffle(mixed)
    assert canonical_run(replace(run, results=tuple(mixed))) == kept
    assert canonical_run(kept) == kept


def test_the_digest_is_of_what_was_told_and_not_of_where_it_ran() -> None:
    told = canonical_run(run(result(), result(2)))
    elsewhere = replace(run(result(2), result()), key=KEYS[1], tool="/usr/bin/ruff", warnings=())
    assert canonical_run(elsewhere).digest == told.digest
    others = (
        run(),
        replace(run(), outcome=AnalysisOutcome.FINDINGS),
        run(result()),
        replace(run(result()), results=(), suppressed=(result(),)),
        replace(run(result()), suppressed=(result(2),)),
        run(result(), result(3)),
        run(result(), result(2), result(2)),
        replace(run(), measurements=(Measurement("ruff", RepoPath(b"a"), "f", "complexity", 3),)),
    )
    assert len({told.digest, *(canonical_run(other).digest for other in others)}) == len(others) + 1


def test_results_are_ordered_by_place_and_line(tmp_path: Path) -> None:
    given = [
        result(10, b"b.py"),
        result(9, b"b.py"),
        result(None, b""),
        result(11, b"a.py"),
        result(None, b"b.py"),
    ]
    places = [(each.path and each.path.raw, each.line) for each in store(tmp_path).keep(run(*given)).results]
    assert places == [(None, None), (b"a.py", 11), (b"b.py", None), (b"b.py", 9), (b"b.py", 10)]


def test_what_could_not_be_evaluated_is_never_kept(tmp_path: Path) -> None:
    broken = AnalysisRun("ruff", KEYS[0], "", AnalysisOutcome.NOT_EVALUATED, reason="it ended by a signal")
    assert store(tmp_path).keep(broken) == broken
    assert store(tmp_path).find(KEYS[0]) is None
    assert not entry(tmp_path).exists()


@pytest.mark.parametrize("at", [0, 30, 64, 65, 90, -1])
def test_a_damaged_entry_counts_for_nothing_and_is_written_anew(tmp_path: Path, at: int) -> None:
    kept = store(tmp_path).keep(run(result()))
    raw = bytearray(entry(tmp_path).read_bytes())
    raw[at] ^= 1
    entry(tmp_path).write_bytes(bytes(raw))
    assert store(tmp_path).find(KEYS[0]) is None
    assert store(tmp_path).keep(run(result())) == kept
    assert store(tmp_path).find(KEYS[0]) == kept


def test_an_entry_that_is_cut_off_empty_or_a_folder_counts_for_nothing(tmp_path: Path) -> None:
    kept = store(tmp_path).keep(run(result()))
    raw = entry(tmp_path).read_bytes()
    for damaged in (b"", raw[:64], raw[:65], raw[:-1], raw + b"\n", b"\n" + raw):
        entry(tmp_path).write_bytes(damaged)
        assert store(tmp_path).find(KEYS[0]) is None
    entry(tmp_path).unlink()
    entry(tmp_path).mkdir()
    assert store(tmp_path).find(KEYS[0]) is None
    assert store(tmp_path).keep(run(result())) == kept


def test_an_entry_under_the_name_of_another_counts_for_nothing(tmp_path: Path) -> None:
    store(tmp_path).keep(run(result()))
    entry(tmp_path, KEYS[1]).write_bytes(entry(tmp_path).read_bytes())
    assert store(tmp_path).find(KEYS[1]) is None


def test_of_too_many_entries_the_longest_unused_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis_store, "MOST_ENTRIES", 3)
    for number in range(3):
        store(tmp_path, NOW + number).keep(run(result(), key=KEYS[number]))
    assert store(tmp_path, NOW + 10_000).find(KEYS[0]) is not None
    store(tmp_path, NOW + 20_000).keep(run(result(), key=KEYS[3]))
    assert [entry(tmp_path, key).exists() for key in KEYS[:4]] == [True, False, True, True]


def test_of_too_many_bytes_the_longest_unused_go_and_the_newest_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path).keep(run(result(), key=KEYS[0]))
    size = entry(tmp_path).stat().st_size
    monkeypatch.setattr(analysis_store, "MOST_BYTES", 2 * size)
    store(tmp_path, NOW + 1).keep(run(result(), key=KEYS[1]))
    store(tmp_path, NOW + 2).keep(run(result(), key=KEYS[2]))
    assert [entry(tmp_path, key).exists() for key in KEYS[:3]] == [False, True, True]
    monkeypatch.setattr(analysis_store, "MOST_BYTES", 1)
    store(tmp_path, NOW + 3).keep(run(result(), key=KEYS[3]))
    assert [entry(tmp_path, key).exists() for key in KEYS[:4]] == [False, False, False, True]


def test_the_files_of_others_stay_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis_store, "MOST_ENTRIES", 1)
    store(tmp_path).keep(run(result()))
    mine = entry(tmp_path).with_name("notes.txt")
    mine.write_text("mine")
    os.utime(mine, (1, 1))
    store(tmp_path, NOW + 1).keep(run(result(), key=KEYS[1]))
    assert sorted(each.name for each in mine.parent.iterdir()) == sorted([KEYS[1], "notes.txt"])


def test_a_time_that_goes_back_keeps_the_entry_readable(tmp_path: Path) -> None:
    kept = store(tmp_path, NOW + 1e6).keep(run(result()))
    assert store(tmp_path, NOW).find(KEYS[0]) == kept
    assert entry(tmp_path).stat().st_mtime == NOW


def test_where_nothing_can_be_written_the_run_is_given_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "patchgate").write_text("a file where the folder would be")
    kept = store(tmp_path).keep(run(result()))
    assert kept == canonical_run(run(result()))
    assert store(tmp_path).find(KEYS[0]) is None
