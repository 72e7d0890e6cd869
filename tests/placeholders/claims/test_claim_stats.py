"""What the ledger tells of adjudications: counts, rates, reversals by name, and since when."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from patchgate.git.path import RepoPath
from patchgate.ledger.adjudications import KIND, AdjudicationRecord
from patchgate.ledger.ledger import Ledger
from patchgate.placeholders.claims.claim_stats import json_schema
from patchgate.storage.record import Json
from tests.world import Answer, Repo

DAY = 86_400
NOW = 1_767_268_800  # 2026-01-01T12:00:00Z
SCANNED: dict[str, Any] = {"is_placeholder_claim": True, "scan_mode": "targeted_only"}


def contradicted(subject: str | None = None, strictly: str = "contradicted") -> AdjudicationRecord:
    return AdjudicationRecord(
        outcome="contradicted",
        subject=subject,
        contradiction_detected=True,
        coverage_sufficient=True,
        strict_outcome=strictly,
        **SCANNED,
    )


def upheld(subject: str | None = None, *, corroborated: bool = True) -> AdjudicationRecord:
    return AdjudicationRecord(
        outcome="upheld",
        subject=subject,
        contradiction_marker_found=True,
        corroborated=corroborated,
        **SCANNED,
    )


def undecided(*, cap: bool = False) -> AdjudicationRecord:
    return AdjudicationRecord(
        outcome="undecided", contradiction_detected_no_downgrade=True, cap_exhausted=cap, **SCANNED
    )


def ledger_of(repo: Repo, at: float = NOW) -> Ledger:
    return Ledger(str(repo.path / ".git"), clock=lambda: at)


def record(repo: Repo, *found: AdjudicationRecord, at: float = NOW) -> None:
    for each in found:
        assert ledger_of(repo, at).record(KIND, each.about()) is None


def stats(repo: Repo, *arguments: str, code: int = 0) -> dict[str, Any]:
    answer = repo.cli("claim", "stats", "--format", "json", *arguments)
    assert answer.code == code
    assert answer.out.isascii()
    value = json.loads(answer.out.splitlines()[0])
    Draft202012Validator(json_schema()).validate(value)
    assert isinstance(value, dict)
    return value


def text(repo: Repo, *arguments: str) -> Answer:
    return repo.cli("claim", "stats", *arguments)


def test_without_a_ledger_everything_is_nothing_and_no_rate_is_known(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    told = text(repo)
    assert (told.code, told.out) == (0, "0 adjudications\n")
    assert told.err.startswith("the ledger is empty: ")
    value = stats(repo)
    assert (value["adjudications"], value["downgrade_rate"], value["reversal_rate"]) == (0, None, None)


def test_counters_and_rates_are_told(tmp_path: Path) -> None:
    """C25, C40."""
    repo = Repo.create(tmp_path)
    record(
        repo,
        *(contradicted("report"), contradicted("manual"), contradicted(strictly="undecided")),
        *(undecided(cap=True), upheld(corroborated=False), upheld("report")),
        *(AdjudicationRecord(outcome="passed", subject="report"), AdjudicationRecord(outcome="unchanged")),
    )
    value = stats(repo)
    assert value["contradiction_downgrade_count"] == 3
    assert value["contradiction_detected_no_downgrade_count"] == 1
    assert value["cap_exhaustion_count"] == 1
    assert (value["corroborated_count"], value["uncorroborated_count"]) == (1, 1)
    assert value["permissive_downgrade_count"] == 1
    assert (value["adjudications"], value["scans"]) == (8, 6)
    assert (value["downgrade_rate"], value["cap_exhaustion_rate"]) == (0.5, 0.166667)
    assert (value["reversal_count"], value["reversal_rate"]) == (1, 0.5)
    assert value["reversals"] == [{"subject": "report", "downgrades": 1, "reversed": 1}]
    assert value["unattributed_downgrade_count"] == 1
    assert value["outcomes"] == {
        "passed": 1,
        "upheld": 2,
        "contradicted": 3,
        "undecided": 1,
        "unchanged": 1,
    }
    assert text(repo).out.splitlines() == [
        "8 adjudications: 1 passed, 2 upheld, 3 contradicted, 1 undecided, 1 unchanged",
        "of 6 scans:",
        "  upheld by a placeholder in the claim's files: 1 (17 %)",
        "  upheld by a placeholder in other files only: 1 (17 %)",
        "  contradicted: 3 (50 %)",
        "    a placeholder was found later: 1 of 2 (50 %)",
        "      report: 1 of 1",
        "    without a subject, so later findings are unknown: 1",
        "    strict coverage, which was off, would not have: 1",
        "  not contradicted because too little was scanned: 1 (17 %)",
        "  a cap left files unread: 1 (17 %)",
    ]


def test_a_downgrade_is_reversed_by_what_was_found_later_and_in_the_same_subject_only(tmp_path: Path) -> None:
    """C40."""
    repo = Repo.create(tmp_path)
    record(
        repo,
        *(upheld("a"), contradicted("a")),  # found before: no reversal
        *(contradicted("b"), upheld("c")),  # found in another subject
        *(contradicted("d"), contradicted("d"), upheld("d"), contradicted("d"), upheld("d")),
        *(contradicted("e"), contradicted("e"), AdjudicationRecord(outcome="passed", subject="e")),
        *(contradicted(), upheld()),
    )
    assert stats(repo)["reversals"] == [{"subject": "d", "downgrades": 3, "reversed": 3}]
    assert stats(repo)["reversal_rate"] == 0.428571


def test_since_counts_what_came_then_and_still_sees_what_was_found_later(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    record(repo, contradicted("old"), at=NOW - 3 * DAY)
    record(repo, contradicted("new"), at=NOW)
    record(repo, upheld("old"), upheld("new"), at=NOW + DAY)
    everything = stats(repo)
    assert (everything["since"], everything["reversal_count"]) == (None, 2)
    for when in ("2026-01-01T12:00:00Z", "2026-01-01T13:00:00+01:00"):
        value = stats(repo, "--since", when)
        assert value["since"] == "2026-01-01T12:00:00Z"
        assert (value["adjudications"], value["contradiction_downgrade_count"]) == (3, 1)
        assert [each["subject"] for each in value["reversals"]] == ["new"]
    assert stats(repo, "--since", "2026-01-01T12:00:01Z")["contradiction_downgrade_count"] == 0
    told = text(repo, "--since", "2026-01-01T12:00:00Z").out
    assert told.startswith("3 adjudications since 2026-01-01T12:00:00Z: 2 upheld, 1 contradicted\n")


def test_a_number_of_units_ago_is_counted_back_from_now(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    record(repo, upheld(), at=1_000_000_000)
    value = stats(repo, "--since", "2 weeks ago")
    assert value["adjudications"] == 0
    assert value["since"] > "2020"


def test_what_is_no_date_is_exit_code_2(tmp_path: Path) -> None:
    told = text(Repo.create(tmp_path), "--since=\x1b[31m")
    assert (told.code, told.out) == (2, "")
    assert " date\nhelp: " in told.err
    assert " 2026-01-31" in told.err
    assert told.err.replace("\n", "").isprintable()


def test_a_long_adjudication_that_was_recorded_in_parts_is_one(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    many = tuple(RepoPath.from_git(b"%06d" % number + b"x" * 200) for number in range(6000))
    record(repo, AdjudicationRecord(outcome="passed", subject="s", changed_files=many), contradicted("s"))
    lines = (repo.path / ".git/patchgate/events.jsonl").read_bytes().splitlines()
    assert len(lines) > 2
    assert stats(repo)["outcomes"]["passed"] == 1
    assert stats(repo)["adjudications"] == 2


def test_a_damaged_line_is_told_after_the_rest_with_exit_code_3(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    record(repo, contradicted("a"), upheld("a"), upheld("b"))
    place = repo.path / ".git/patchgate/events.jsonl"
    lines = place.read_bytes().splitlines(keepends=True)
    place.write_bytes(lines[0] + lines[1].replace(b"upheld", b"passed") + lines[2])
    told = text(repo)
    assert told.code == 3
    assert told.out.startswith("2 adjudications: 1 upheld, 1 contradicted\n")
    assert "line 2 of the ledger" in told.err
    assert "git patchgate log --verify" in told.err
    assert stats(repo, code=3)["is_complete"] is False


def test_a_torn_last_line_is_a_warning(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    record(repo, contradicted("a"), upheld("b"))
    place = repo.path / ".git/patchgate/events.jsonl"
    with place.open("ab") as file:
        file.write(b'{"event":{"kin')
    told = text(repo)
    assert told.code == 0
    assert told.out.startswith("2 adjudications: 1 upheld, 1 contradicted\n")
    assert told.err.startswith("warning: line 3 of the ledger")
    # A whole event that lost its last bytes is no torn one: it had been recorded.
    os.truncate(place, place.stat().st_size - 20)
    assert stats(repo, code=3)["is_complete"] is False


def test_what_somebody_wrote_into_the_ledger_reaches_no_terminal_raw(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    hostile = "\x1b[31m\n::error::##[error]"
    about: dict[str, Json] = {
        "outcome": hostile,
        "subject": hostile,
        "contradiction_detected": True,
        "scan_mode": hostile,
    }
    ledger = ledger_of(repo)
    assert ledger.record(KIND, about) is None
    assert (
        ledger.record(KIND, {"subject": hostile, "contradiction_marker_found": True, "cap_exhausted": "yes"})
        is None
    )
    told = text(repo)
    assert told.code == 0
    assert [line for line in told.out.splitlines() if not line.isprintable()] == []
    assert "##[" not in told.out
    assert not any(line.lstrip().startswith("::") for line in told.out.splitlines())
    value = stats(repo)
    assert value["outcomes"]["unknown"] == 1
    assert value["cap_exhaustion_count"] == 0
