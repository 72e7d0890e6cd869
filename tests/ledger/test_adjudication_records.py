"""The record of adjudications: what was written comes back, and what is foreign in it tells nothing."""

from __future__ import annotations

from typing import Any

import pytest

from patchgate.git.path import RepoPath
from patchgate.ledger.adjudications import KIND, AdjudicationRecord, read_adjudications
from patchgate.ledger.ledger import Event
from patchgate.values import fields, replace

FULL = AdjudicationRecord(
    at="2026-01-02T03:04:05Z",
    outcome="passed",
    subject="task-1",
    reason_code="other",
    is_placeholder_claim=True,
    contradiction_marker_found=True,
    contradiction_detected=True,
    contradiction_detected_no_downgrade=True,
    corroborated=True,
    cap_exhausted=True,
    coverage_sufficient=False,
    coverage_insufficient_reason="no_files_scanned",
    guard_enabled=False,
    strict_coverage=False,
    strict_outcome="undecided",
    strict_insufficient_reason="no_files_scanned",
    read_from="the index",
    scan_mode="targeted_only",
    scanned_file_count=1,
    scanned_total_bytes=2,
    matched_file_count=3,
    places_total=4,
    candidate_source_counts={"canonical": 1},
    skipped_counts={"missing": 2},
    skipped_samples=({"path": "b.md", "tier": "canonical", "reason": "missing"},),
    samples=("a.md:1",),
    changed_files=(RepoPath(b"a.md"), RepoPath(b"\xff\n.md")),
)


def event(about: dict[str, Any], at: str = FULL.at) -> Event:
    return Event(KIND, about, at)


def test_every_field_comes_back() -> None:
    """C25: none is forgotten in the reading."""
    empty = AdjudicationRecord()
    assert all(getattr(FULL, each.name) != getattr(empty, each.name) for each in fields(FULL))
    assert read_adjudications([event(FULL.about())]) == [FULL]


@pytest.mark.parametrize("name", sorted(FULL.about().keys() - {"id", "samples", "changed_files"}))
def test_a_value_of_another_type_tells_nothing(name: str) -> None:
    default: Any = getattr(AdjudicationRecord(), name)
    values: list[Any] = [None, [], {}, 1.5, 7 if isinstance(getattr(FULL, name), str | bool) else True]
    for odd in values:
        (read,) = read_adjudications([event({**FULL.about(), name: odd})])
        assert read == replace(FULL, **{name: default})


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "a.md",
        {},
        {"path": 1},
        {"path": ""},
        {"path": "a\0b"},
        {"path": "a", "path_b64": "é"},
        {"path": "a", "path_b64": "!"},
        {"path": "a", "path_b64": ""},
        {"path": "\ud800"},
    ],
)
def test_what_is_no_path_is_left_out(odd: object) -> None:
    about = FULL.about()
    files = [odd, *about["changed_files"]]  # type: ignore[misc]
    assert read_adjudications([event({**about, "changed_files": files})]) == [FULL]


@pytest.mark.parametrize("part", [None, [], [2], [2, "2"], "2/2", [True, 2]])
def test_what_no_part_is_named_for_stands_for_itself(part: object) -> None:
    first, odd = ({**FULL.about(), "part": each} for each in ([1, 2], part))
    assert read_adjudications([event(first), event(odd)]) == [FULL, FULL]


def test_parts_are_joined_also_where_one_is_missing() -> None:
    """C32."""
    about = FULL.about()
    parts = [
        event({**about, "part": [number, 3], "changed_files": [{"path": f"{number}.md"}]})
        for number in (1, 2, 3)
    ]
    (read,) = read_adjudications(
        [parts[0], event(replace(FULL, subject="x").about()), parts[1], parts[2]][::2]
    )
    assert [path.quoted for path in read.changed_files] == ["1.md", "2.md"]
    (read,) = read_adjudications([parts[0], parts[2]])
    assert [path.quoted for path in read.changed_files] == ["1.md", "3.md"]
