"""Verifications: a baseline whose tests passed once more; what is kept of it, and what counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from patchgate.components import attestations
from patchgate.components.attestations import (
    VERIFIED_REF,
    Attestation,
    VerifiedNotes,
    find_attestations,
    record_attestations,
)
from patchgate.components.capture_run import CaptureResult
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.notes import add_line
from patchgate.git.objects import Objects
from patchgate.ledger.ledger import Ledger
from patchgate.storage.record import Json
from tests.component_world import capture, opened
from tests.components.capture_world import BASELINE, CODE, NOW, baseline, captured, policy, shaping
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

DIGEST = "sha256:" + "0" * 64
OID = "1" * 40
DAY = 24 * 3600
WHO = {f"GIT_{role}_{key}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one component whose baseline is committed."""
    made = shaping(tmp_path)
    made.commit(capture(made, policy()))
    return made


def found(repo: Repo, baselines: Mapping[str, str] | None = None, now: float = NOW) -> dict[str, Attestation]:
    opened_here = opened(repo)
    if baselines is None:
        baselines = {"shaping": repo.ask("rev-parse", f":0:{BASELINE}")}
    with Objects(opened_here) as objects:
        return find_attestations(opened_here, VerifiedNotes(objects, now), baselines)


def made(seconds: int = NOW, oid: str = OID, component: str = "shaping") -> Attestation:
    return Attestation(component, oid, seconds, {"cutting": DIGEST}, "ledger")


def test_what_is_recorded_is_found_again_in_the_ledger(repo: Repo) -> None:
    assert record_attestations(opened(repo), [made()], repo.env, with_note=False) == ()
    assert found(repo, {"shaping": OID}) == {"shaping": made()}
    assert found(repo, {"shaping": "2" * 40, "cutting": OID}) == {}
    assert repo.try_git("rev-parse", "--verify", "-q", VERIFIED_REF).returncode == 1


def test_a_note_counts_where_only_it_has_come(repo: Repo, tmp_path: Path) -> None:
    record_attestations(opened(repo), [made(), made(NOW + 5)], repo.env, with_note=True)
    repo.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = repo.at(tmp_path / "clone")
    assert found(clone, {"shaping": OID}) == {}
    clone.git("fetch", "-q", "origin", f"{VERIFIED_REF}:{VERIFIED_REF}")
    (only,) = found(clone, {"shaping": OID}).values()
    assert (only.where, only.seconds, only.dependencies) == ("note", NOW + 5, {"cutting": DIGEST})


def test_notes_of_two_sides_join_as_git_joins_them(repo: Repo) -> None:
    record_attestations(opened(repo), [made()], repo.env, with_note=True)
    repo.git("update-ref", "refs/notes/other", VERIFIED_REF)
    for seconds, ref in ((NOW + 1, VERIFIED_REF), (NOW + 2, "refs/notes/other")):
        line = made(seconds).to_line()
        add_line(opened(repo), ref, OID, line, message="Verify", identity=WHO)
    repo.git("notes", "--ref", VERIFIED_REF, "merge", "-q", "-s", "cat_sort_uniq", "refs/notes/other")
    assert found(repo, {"shaping": OID})["shaping"].seconds == NOW + 2


def test_the_newest_counts_and_nothing_more_than_a_day_ahead(repo: Repo) -> None:
    times = (NOW, NOW - DAY, NOW + DAY, NOW + DAY + 1)
    record_attestations(opened(repo), [made(each) for each in times], repo.env, with_note=True)
    assert found(repo, {"shaping": OID})["shaping"].seconds == NOW + DAY
    assert found(repo, {"shaping": OID}, NOW - DAY - 1)["shaping"].seconds == NOW - DAY
    assert found(repo, {"shaping": OID}, NOW - 3 * DAY) == {}


BAD = [
    b"no json\n",
    b"[" * 100_000 + b"\n",
    b"{}\n",
    json.dumps({"at": NOW}).encode() + b"\n",
    made().to_line().replace(b'"shaping"', b'"cutting"'),
    made().to_line().replace(DIGEST.encode(), b"sha256:0"),
    made().to_line().replace(str(NOW).encode(), b"true"),
    made().to_line().replace(str(NOW).encode(), b"1e9"),
    made().to_line().replace(str(NOW).encode(), b"-1"),
    made().to_line().replace(b"verified/1", b"verified/2"),
    made().to_line().replace(b"{", b'{"more":1,', 1),
]


@pytest.mark.parametrize("line", BAD)
def test_a_line_that_is_no_verification_counts_for_nothing(repo: Repo, line: bytes) -> None:
    add_line(opened(repo), VERIFIED_REF, OID, line, message="Verify", identity=WHO)
    assert found(repo, {"shaping": OID}) == {}
    add_line(opened(repo), VERIFIED_REF, OID, made(NOW - 1).to_line(), message="Verify", identity=WHO)
    assert found(repo, {"shaping": OID})["shaping"].seconds == NOW - 1


def test_a_note_too_large_to_read_makes_nothing_fresher(repo: Repo) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"x" * (2 << 20)).decode().strip()
    repo.git("notes", "--ref", VERIFIED_REF, "add", "-C", blob, repo.ask("rev-parse", f"HEAD:{BASELINE}"))
    assert found(repo) == {}


def test_of_notes_that_are_too_large_together_the_rest_is_not_read(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    oids = {"cutting": "2" * 40, "shaping": OID}
    every = [made(oid=oid, component=name) for name, oid in oids.items()]
    record_attestations(opened(repo), every, repo.env, with_note=True)
    (Path(opened(repo).common_dir) / "patchgate" / "events.jsonl").unlink()
    for most, seconds, expected in (
        (10_000, 5.0, ["cutting", "shaping"]),
        (10, 5.0, ["cutting"]),
        (10_000, 0.0, []),
    ):
        monkeypatch.setattr(attestations, "_MOST_BYTES_IN_ALL", most)
        monkeypatch.setattr(attestations, "_MOST_SECONDS_IN_ALL", seconds)
        assert sorted(found(repo, oids)) == expected


def test_events_that_others_wrote_into_the_ledger_count_only_if_they_are_whole(repo: Repo) -> None:
    ledger = Ledger(opened(repo).common_dir, clock=lambda: float(NOW))
    whose: dict[str, Json] = {"component": "shaping", "baseline": OID}
    for about in ({}, {**whose, "component": 1}, whose, {**whose, "dependencies": {"cutting": 1}}):
        ledger.record("verified", about)
    assert found(repo, {"shaping": OID}) == {}


def test_a_verification_is_kept_in_the_ledger_and_nothing_is_written(repo: Repo) -> None:
    done = captured(repo, reverify=True, now=NOW + 100)
    assert (done.exit_code, done.components[0].result) == (0, CaptureResult.VERIFIED)
    kept = found(repo)["shaping"]
    assert (kept.where, kept.seconds, kept.dependencies) == ("ledger", NOW + 100, {})
    assert repo.ask("status", "--porcelain") == ""


def test_with_a_note_it_is_kept_there_too_beside_the_baseline(repo: Repo) -> None:
    assert captured(repo, reverify=True, with_note=True).exit_code == 0
    oid = repo.ask("rev-parse", f"HEAD:{BASELINE}")
    said = json.loads(repo.git("notes", "--ref", VERIFIED_REF, "show", oid))
    assert (said["component"], said["at"]) == ("shaping", NOW)
    (Path(opened(repo).common_dir) / "patchgate" / "events.jsonl").unlink()
    assert found(repo)["shaping"].where == "note"


def test_a_component_that_differs_from_its_baseline_is_not_verified(repo: Repo, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    repo.stage({CODE: f"def double(number):\n    open({str(witness)!r}, 'w')\n    return number + number\n"})
    done = captured(repo, reverify=True)
    assert (done.exit_code, done.components[0].result) == (1, CaptureResult.REFUSED)
    assert "differs" in done.components[0].reason
    assert not witness.exists()
    assert found(repo) == {}


def test_a_component_without_a_baseline_is_not_verified(repo: Repo) -> None:
    repo.git("rm", "-q", BASELINE)
    done = captured(repo, reverify=True)
    assert (done.exit_code, done.components[0].hint) == (1, "git patchgate baseline capture shaping")


def test_a_verification_whose_tests_fail_is_not_kept(repo: Repo, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "conftest.py").write_text("raise OSError\n")
    done = captured(repo, reverify=True, PYTEST_ADDOPTS="-p conftest", PYTHONPATH=str(broken))
    assert done.exit_code in {1, 3}
    assert found(repo) == {}


def test_a_ledger_that_cannot_be_written_is_told_before_the_tests(repo: Repo) -> None:
    place = Path(opened(repo).common_dir) / "patchgate" / "events.jsonl"
    place.parent.mkdir(exist_ok=True)
    place.mkdir()
    with pytest.raises(UndecidedError, match="ledger"):
        captured(repo, reverify=True)


def test_a_note_needs_somebody_whom_git_knows_and_asks_before_the_tests(repo: Repo) -> None:
    repo.git("config", "user.useConfigOnly", "true")
    with pytest.raises(UsageError, match="who"):
        captured(repo, reverify=True, with_note=True, GIT_COMMITTER_NAME="", GIT_COMMITTER_EMAIL="")
    assert found(repo) == {}


@pytest.mark.parametrize("kind", ["blob", "tree", "symbolic"])
def test_a_note_needs_a_ref_that_can_hold_it_and_asks_before_the_tests(
    repo: Repo, tmp_path: Path, kind: str
) -> None:
    if kind == "symbolic":
        repo.git("symbolic-ref", VERIFIED_REF, "refs/notes/nowhere")
        repo.git("update-ref", "refs/notes/nowhere", repo.ask("rev-parse", "HEAD^{tree}"))
    else:
        target = f"HEAD:{BASELINE}" if kind == "blob" else "HEAD^{tree}"
        repo.git("update-ref", VERIFIED_REF, repo.ask("rev-parse", target))
    with pytest.raises(UndecidedError, match=VERIFIED_REF):
        captured(repo, reverify=True, with_note=True)
    here = made(oid=repo.ask("rev-parse", f"HEAD:{BASELINE}"))
    with pytest.raises(UndecidedError):
        record_attestations(opened(repo), [here], repo.env, with_note=True)
    assert found(repo) == {}
    assert captured(repo, reverify=True).exit_code == 0


def test_a_ref_of_notes_that_is_damaged_is_told_before_the_tests(repo: Repo) -> None:
    place = Path(opened(repo).common_dir) / VERIFIED_REF
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("1" * 40 + "\n")
    with pytest.raises(UndecidedError, match="patchgate-verified"):
        captured(repo, reverify=True, with_note=True)
    assert found(repo) == {}


def test_options_that_do_not_go_together_are_refused(repo: Repo) -> None:
    with pytest.raises(UsageError, match="--commit-note"):
        captured(repo, with_note=True)
    with pytest.raises(UsageError, match="--reverify"):
        captured(repo, reverify=True, from_disk=True)


def test_a_plain_capture_verifies_nothing_by_itself(repo: Repo) -> None:
    before = baseline(repo)
    assert captured(repo).components[0].result is CaptureResult.UNCHANGED
    assert (baseline(repo), found(repo)) == (before, {})
