"""The evidence of an attempt: the candidate byte for byte, refused before where it cannot be kept, masked."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from patchgate.apply.evidence_folders import contents, folders, remove
from patchgate.errors import UndecidedError, UsageError
from patchgate.ledger.masking import Masks
from tests.amount import sample
from tests.apply.attempt_world import AT, CANDIDATE, chances, child, opened
from tests.faults import Fault, Faults, Kind, Operation

pytestmark = pytest.mark.turns(3)

SECRET = "correct-horse-battery"
MASKS = Masks([{"DEPLOY_TOKEN": SECRET}])


def place_of(common: Path) -> Path:
    return common / "patchgate" / "attempts"


def names(common: Path) -> list[str]:
    return sorted(os.listdir(place_of(common))) if place_of(common).exists() else []


@pytest.mark.parametrize(
    "candidate", [CANDIDATE, b"", b"\0" * 10, bytes(range(256)) * 4096, b"x\r\n" * 400_000], ids=len
)
def test_the_candidate_is_kept_byte_for_byte(tmp_path: Path, candidate: bytes) -> None:
    with opened(tmp_path, candidate) as evidence:
        kept = Path(evidence.dir, "artifacts", "diff.patch")
        assert kept.read_bytes() == candidate
        assert evidence.keep({}, "", "", []) is None
        assert kept.read_bytes() == candidate


def test_a_candidate_full_of_secrets_stays_as_it_came(tmp_path: Path) -> None:
    with opened(tmp_path, SECRET.encode(), masks=MASKS) as evidence:
        assert evidence.keep(SECRET, SECRET, SECRET, [{"a": SECRET}]) is None
    assert Path(evidence.dir, "artifacts", "diff.patch").read_bytes() == SECRET.encode()


def test_an_attempt_has_its_own_folders_that_nobody_else_may_read(tmp_path: Path) -> None:
    with opened(tmp_path, chance=chances("7f3a")) as evidence:
        assert evidence.id == "a-7f3a"
        assert evidence.dir == str(place_of(tmp_path) / "a-7f3a")
    for folder, _, files in os.walk(tmp_path / "patchgate"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        for name in files:
            assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) == 0o600
    assert sorted(os.listdir(evidence.dir)) == ["artifacts", "attempt.json", "logs", "outbox", "reviews"]


def test_report_review_and_feedback_lie_where_the_design_says(tmp_path: Path) -> None:
    with opened(tmp_path) as evidence:
        Path(evidence.log_path("ruff")).write_bytes(b"fine\n")
        assert evidence.keep({"verdict": "accepted"}, "# review\n", "short\n") is None
    place = Path(evidence.dir)
    assert json.loads((place / "artifacts" / "report.json").read_bytes()) == {"verdict": "accepted"}
    assert (place / "reviews" / "review_patch.md").read_text() == "# review\n"
    assert (place / "outbox" / "feedback.md").read_text() == "short\n"
    assert contents(evidence.dir) == [
        ("artifacts/diff.patch", len(CANDIDATE)),
        ("artifacts/report.json", 27),
        ("reviews/review_patch.md", 9),
        ("outbox/feedback.md", 6),
        ("logs/ruff.log", 5),
    ]


def test_after_a_refusal_the_bundle_holds_all_of_it_and_the_events(tmp_path: Path) -> None:
    with opened(tmp_path) as evidence:
        Path(evidence.log_path("ruff")).write_bytes(b"E501\n")
        events = [{"kind": "attempted", "attempt": evidence.id}, {"kind": "recovered"}]
        assert evidence.keep({"a": 1}, "review", "feedback", events) is None
    bundle = Path(evidence.dir, "failure_bundle.zip")
    with zipfile.ZipFile(bundle) as archived:
        assert archived.testzip() is None
        held = {name: archived.read(name) for name in archived.namelist()}
    assert held.pop("events.jsonl").splitlines() == [
        json.dumps(each, sort_keys=True).encode() for each in events
    ]
    assert held == {name: Path(evidence.dir, name).read_bytes() for name, _ in contents(evidence.dir)[:-1]}
    assert set(held) == {
        "artifacts/diff.patch",
        "artifacts/report.json",
        "reviews/review_patch.md",
        "outbox/feedback.md",
        "logs/ruff.log",
    }


@pytest.mark.skipif(shutil.which("unzip") is None, reason="this machine has no unzip")
def test_unzip_finds_nothing_wrong_with_the_bundle(tmp_path: Path) -> None:
    with opened(tmp_path, os.urandom(1 << 20)) as evidence:
        assert evidence.keep({"a": 1}, "review", "feedback", []) is None
    done = subprocess.run(
        ["unzip", "-t", os.path.join(evidence.dir, "failure_bundle.zip")], capture_output=True, check=True
    )
    assert b"No errors detected" in done.stdout


# What is masked.


def test_secrets_are_masked_in_everything_but_the_candidate(tmp_path: Path) -> None:
    with opened(tmp_path, masks=MASKS) as evidence:
        log = Path(evidence.log_path("tests"))
        log.write_bytes(b"\xff connecting with " + SECRET.encode() + b"\n")
        Path(evidence.log_path("lint")).write_bytes(b"nothing\n")
        events = [{"reason": f"it said {SECRET}"}]
        assert evidence.keep({"tail": [SECRET]}, f"x {SECRET}", f"y {SECRET}", events) is None
    assert log.read_bytes() == b"\\xff connecting with ***\n"
    for name, _ in contents(evidence.dir):
        if name != "failure_bundle.zip":
            assert SECRET.encode() not in Path(evidence.dir, name).read_bytes(), name
    with zipfile.ZipFile(Path(evidence.dir, "failure_bundle.zip")) as archived:
        for name in archived.namelist():
            assert SECRET.encode() not in archived.read(name), name
        assert archived.read("events.jsonl") == b'{"reason": "it said ***"}\n'
    assert not [name for name, _ in contents(evidence.dir) if name.endswith(".new")]


def test_a_report_that_is_masked_is_json_all_the_same(tmp_path: Path) -> None:
    odd = '","b":"\\'
    with opened(tmp_path, masks=Masks([{"PASSWORD": odd}])) as evidence:
        assert evidence.keep({"a": odd}, "", "") is None
    assert json.loads(Path(evidence.dir, "artifacts", "report.json").read_bytes()) == {"a": "***"}


def test_a_log_that_cannot_be_masked_goes_and_a_sentence_says_so(tmp_path: Path) -> None:
    with opened(tmp_path, masks=MASKS) as evidence:
        log = Path(evidence.log_path("tests"))
        log.write_bytes(SECRET.encode())
        # Where the masked log would be made, something is already.
        Path(f"{log}.new").mkdir()
        warning = evidence.keep({}, "review", "feedback")
    assert warning is not None
    assert f" {evidence.id} " in warning
    assert ": logs/tests.log: " in warning
    assert not log.exists()
    assert Path(evidence.dir, "reviews", "review_patch.md").read_text() == "review"


def test_a_symlink_among_the_logs_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(SECRET.encode())
    with opened(tmp_path, masks=MASKS) as evidence:
        os.symlink(outside, os.path.join(evidence.dir, "logs", "x.log"))
        assert evidence.keep({}, "", "", []) is not None
    assert outside.read_bytes() == SECRET.encode()
    with zipfile.ZipFile(Path(evidence.dir, "failure_bundle.zip")) as archived:
        assert "logs/x.log" not in archived.namelist()


@pytest.mark.parametrize("name", ["ruff", "../../x", "a/b", "", ".", "-", "é\n", "x" * 500])
def test_a_log_has_a_name_that_stays_in_the_folder_of_logs(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as evidence:
        first = Path(evidence.log_path(name))
        first.write_bytes(b"")
        second = Path(evidence.log_path(name))
        assert first.parent == second.parent == Path(evidence.dir, "logs")
        assert first != second
        assert first.name.isascii()


# What is refused before.


def test_two_attempts_at_once_get_two_ids(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: opened(tmp_path, chance=chances("7f3a")), range(8)))
    assert len({each.id for each in made}) == 8
    assert "a-7f3a" in {each.id for each in made}
    for each in made:
        each.close()


def test_an_id_that_was_ever_given_is_not_given_again(tmp_path: Path) -> None:
    with opened(tmp_path, chance=chances("7f3a", "7f3a01"), known=frozenset({"a-7f3a"})) as evidence:
        assert evidence.id == "a-7f3a01"


def test_a_folder_that_has_the_name_is_never_used(tmp_path: Path) -> None:
    (place_of(tmp_path) / "a-7f3a").mkdir(parents=True)
    with opened(tmp_path, chance=chances("7f3a", "012345")) as evidence:
        assert evidence.id == "a-012345"
    assert os.listdir(place_of(tmp_path) / "a-7f3a") == []


def test_where_the_folder_cannot_be_made_it_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "patchgate").write_bytes(b"a file")
    with pytest.raises(UndecidedError, match=r"nothing was judged: .*Not a directory"):
        opened(tmp_path)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that another user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_read_only_folder_is_refused_before_anything(open_to_all: Path) -> None:
    common = open_to_all / "common"
    common.mkdir(mode=0o555)
    said = child(common, options=("--nobody",))
    assert said.startswith("undecided: ")
    assert "evidence" in said
    assert "Permission denied" in said
    assert os.listdir(common) == []


@pytest.mark.parametrize("most", [10, 4096, 100_000])
def test_a_full_disk_is_refused_before_and_nothing_is_left(tmp_path: Path, most: int) -> None:
    """A file that may not grow is what a full disk is to a write (setrlimit(2), RLIMIT_FSIZE)."""
    said = child(tmp_path, options=("--most", str(most)), size=200_000)
    assert said.startswith("undecided: ")
    assert "evidence" in said
    assert "File too large" in said
    assert names(tmp_path) == []


def steps_of(tmp_path: Path, run_dir: Path | None = None) -> int:
    faults = Faults()
    opened(tmp_path, faults=faults, run_dir=run_dir).close()
    return faults.steps


@pytest.mark.parametrize("kind", [Kind.ENOSPC, Kind.EIO, Kind.EACCES])
@pytest.mark.parametrize("is_given", [False, True])
def test_whichever_step_fails_it_is_refused_and_nothing_is_left(
    tmp_path: Path, kind: Kind, is_given: bool
) -> None:
    run_dir = tmp_path / "run" if is_given else None
    (tmp_path / "once").mkdir()
    steps = steps_of(tmp_path / "once", tmp_path / "first" if is_given else None)
    assert steps > 12
    for step in range(1, steps + 1):
        common = tmp_path / f"common-{step}"
        common.mkdir()
        with pytest.raises(UndecidedError, match="nothing was judged"):
            opened(common, run_dir=run_dir, faults=Faults([Fault(step, kind)]))
        assert names(common) == []
        assert run_dir is None or not run_dir.exists()


@pytest.mark.parametrize("kind", [Kind.EINTR, Kind.SHORT])
def test_what_is_only_interrupted_is_done_all_the_same(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "once").mkdir()
    for step in range(1, steps_of(tmp_path / "once") + 1):
        with opened(tmp_path, faults=Faults([Fault(step, kind)])) as evidence:
            assert Path(evidence.dir, "artifacts", "diff.patch").read_bytes() == CANDIDATE


def test_a_kill_at_any_step_leaves_what_is_no_attempt_or_an_interrupted_one(tmp_path: Path) -> None:
    (tmp_path / "once").mkdir()
    for step in sample(steps_of(tmp_path / "once"), 10, "evidence"):
        common = tmp_path / f"common-{step}"
        common.mkdir()
        assert child(common, plan=f"{step}:kill") == ""
        for left in folders(str(common)):
            assert not left.is_running
            if left.says is not None:
                assert (left.at, left.says["kind"]) == (AT, "patch")
                assert remove(left) is None
        assert child(common).startswith("a-")


def test_the_candidate_and_the_names_above_it_are_flushed_before_anything_is_judged(tmp_path: Path) -> None:
    done: list[Operation] = []
    opened(tmp_path, chance=chances("7f3a"), faults=Faults(record=done.append)).close()
    written = next(each for each in done if each.content == CANDIDATE)
    flushed = [each for each in done[done.index(written) :] if each.name in {"flush", "flush_folder"}]
    assert flushed[0].inode == written.inode
    own = place_of(tmp_path) / "a-7f3a"
    assert {each.path for each in flushed[1:]} == {own / "artifacts", own, place_of(tmp_path)}


@pytest.mark.parametrize("kind", [Kind.ENOSPC, Kind.EIO])
def test_a_later_write_that_fails_is_one_sentence_and_no_half_file_is_left(
    tmp_path: Path, kind: Kind
) -> None:
    first = steps_of(tmp_path)
    counted = Faults()
    with opened(tmp_path, faults=counted, masks=MASKS) as evidence:
        Path(evidence.log_path("x")).write_text(SECRET)
        assert evidence.keep({"a": 1}, "review", "feedback", []) is None
    whole = {name for name, _ in contents(evidence.dir)}
    for step in range(first, counted.steps + 1):
        with opened(tmp_path, faults=Faults([Fault(step, kind)]), masks=MASKS) as evidence:
            Path(evidence.log_path("x")).write_text(SECRET)
            warning = evidence.keep({"a": 1}, "review", "feedback", [])
        assert warning is not None, step
        assert f" {evidence.id} " in warning
        left = {name for name, _ in contents(evidence.dir)}
        assert len(whole - left) == 1, step
        assert SECRET not in "".join(
            Path(evidence.dir, name).read_text("latin-1") for name in left if name != "artifacts/diff.patch"
        )
        if "failure_bundle.zip" in left:
            assert zipfile.ZipFile(Path(evidence.dir, "failure_bundle.zip")).testzip() is None


def test_what_nobody_judged_can_be_taken_away_again(tmp_path: Path) -> None:
    for run_dir in (None, tmp_path / "run"):
        with opened(tmp_path, run_dir=run_dir) as evidence:
            evidence.discard()
        assert names(tmp_path) == []
        assert not (tmp_path / "run").exists()


# The caller's own folder.


@pytest.mark.parametrize("exists", [False, True])
def test_a_run_dir_holds_the_evidence_itself(tmp_path: Path, exists: bool) -> None:
    run_dir = tmp_path / "run"
    if exists:
        run_dir.mkdir()
    with opened(tmp_path, run_dir=run_dir) as evidence:
        assert evidence.dir == str(run_dir)
        assert evidence.keep({}, "review", "feedback", []) is None
    assert (run_dir / "artifacts" / "diff.patch").read_bytes() == CANDIDATE
    assert (run_dir / "failure_bundle.zip").exists()
    assert sorted(os.listdir(run_dir)) == ["artifacts", "failure_bundle.zip", "logs", "outbox", "reviews"]
    (folder,) = folders(str(tmp_path))
    assert (folder.id, folder.dir) == (evidence.id, str(run_dir))
    assert os.listdir(folder.path) == ["attempt.json"]


def test_a_run_dir_that_is_not_empty_no_folder_or_nowhere_is_a_wrong_argument(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_bytes(b"mine")
    (tmp_path / "file").write_bytes(b"mine")
    for name, said in (
        ("full", "is not empty"),
        ("file", "is not a folder"),
        ("no/where", "the folder above --run-dir does not exist"),
    ):
        with pytest.raises(UsageError, match=said):
            opened(tmp_path, run_dir=tmp_path / name)
    assert names(tmp_path) == []
    assert (tmp_path / "full" / "notes").read_bytes() == (tmp_path / "file").read_bytes() == b"mine"
    assert not (tmp_path / "no").exists()


def test_of_two_attempts_with_one_run_dir_the_second_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, run_dir=tmp_path / "run"), pytest.raises(UsageError, match="not empty"):
        opened(tmp_path, b"another", run_dir=tmp_path / "run")
    assert (tmp_path / "run" / "artifacts" / "diff.patch").read_bytes() == CANDIDATE
    assert len(names(tmp_path)) == 1


# Whose a folder is.


def test_a_folder_is_known_by_the_marker_in_it_and_held_while_its_attempt_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as evidence:
        (folder,) = folders(str(tmp_path))
        assert folder.is_running
        assert folder.says is not None
        assert "running" in str(remove(folder))
    (folder,) = folders(str(tmp_path))
    assert (folder.id, folder.at, folder.is_running) == (evidence.id, AT, False)
    assert remove(folder) is None
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "marker",
    [
        None,
        b"",
        b"{",
        b"[]",
        b'{"schema": "patchgate.evidence/1"}',
        b'{"schema": "patchgate.evidence/1", "attempt": "a-9999"}',
        b'{"schema": "something/1", "attempt": "a-7f3a"}',
        b"[" * 100_000,
    ],
)
def test_a_folder_with_the_right_name_and_no_marker_of_ours_says_nothing(
    tmp_path: Path, marker: bytes | None
) -> None:
    own = place_of(tmp_path) / "a-7f3a"
    own.mkdir(parents=True)
    if marker is not None:
        (own / "attempt.json").write_bytes(marker)
    (folder,) = folders(str(tmp_path))
    assert folder.says is None


def test_symlinks_files_and_other_names_are_no_folders_of_attempts(tmp_path: Path) -> None:
    (place_of(tmp_path) / "notes").mkdir(parents=True)
    (place_of(tmp_path) / "a-zzzz").mkdir()
    (place_of(tmp_path) / "a-1111").write_bytes(b"")
    os.symlink(tmp_path, place_of(tmp_path) / "a-2222")
    assert folders(str(tmp_path)) == []
    assert folders(str(tmp_path / "nowhere")) == []


def test_what_somebody_else_put_into_a_folder_stays_and_the_folder_with_it(tmp_path: Path) -> None:
    with opened(tmp_path) as evidence:
        assert evidence.keep({}, "", "", []) is None
    mine = Path(evidence.dir, "my notes")
    mine.write_bytes(b"mine")
    (folder,) = folders(str(tmp_path))
    assert str(remove(folder)).endswith(": my notes")
    assert mine.read_bytes() == b"mine"
    assert sorted(os.listdir(evidence.dir)) == ["attempt.json", "my notes"]


def test_removing_follows_no_link_out_of_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"mine")
    with opened(tmp_path) as evidence:
        os.symlink(outside, os.path.join(evidence.dir, "logs", "deep"))
    shutil.rmtree(os.path.join(evidence.dir, "reviews"))
    os.symlink(outside, os.path.join(evidence.dir, "reviews"))
    (folder,) = folders(str(tmp_path))
    assert remove(folder) is not None
    assert (outside / "x").read_bytes() == b"mine"


def test_a_bundle_is_the_same_for_the_same_evidence(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        with opened(tmp_path) as evidence:
            assert evidence.keep({"a": 1}, "review", "feedback", [{"b": 2}]) is None
        made.append(Path(evidence.dir, "failure_bundle.zip").read_bytes())
    assert made[0] == made[1]
    assert zipfile.is_zipfile(io.BytesIO(made[0]))
