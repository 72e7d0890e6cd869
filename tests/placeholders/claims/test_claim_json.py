"""An adjudication as JSON: the verifier's own document comes back, amended and with what was scanned."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from patchgate.git.path import RepoPath
from patchgate.placeholders.claims.claim import (
    MOST_SAMPLES,
    Adjudication,
    ClaimOutcome,
    Coverage,
    Skipped,
    SkipReason,
    Tier,
)
from patchgate.placeholders.claims.claim_json import document, json_schema, render
from tests.placeholders.claims.adjudications import (
    CLAIM,
    CODE,
    CONTRADICTED,
    EVERY,
    PASSED,
    UNDECIDED,
    UPHELD,
    WRITTEN,
    candidate,
    place,
)

VALIDATOR = Draft202012Validator(json_schema())
SIX = ("passed", "outcome", "reason_code", "severity_class", "confidence", "contradicted_reason_code")


def told(adjudication: Adjudication, *doubts: str) -> dict[str, Any]:
    text = render(adjudication, doubts)
    assert text.isascii()
    assert text.endswith("}\n")
    value = json.loads(text)
    VALIDATOR.validate(value)
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("outcome", ClaimOutcome)
def test_every_outcome_is_as_the_schema_says(outcome: ClaimOutcome) -> None:
    value = told(EVERY[outcome])
    assert value["outcome"] == outcome
    assert value["passed"] is (outcome is ClaimOutcome.PASSED)
    Draft202012Validator.check_schema(json_schema())


def test_the_verifiers_keys_come_first_in_their_order_and_ours_after_them() -> None:
    """C39."""
    value = told(UPHELD)
    assert list(value)[: len(WRITTEN)] == list(WRITTEN)
    assert list(value)[len(WRITTEN) :] == ["outcome", "contradicted_reason_code", "metadata"]
    assert {key: value[key] for key in WRITTEN} == WRITTEN
    assert value["contradicted_reason_code"] is None


def test_a_contradicted_claim_is_inconclusive_and_keeps_what_it_was() -> None:
    """C21."""
    value = told(CONTRADICTED)
    assert [value[key] for key in SIX] == [
        *(False, "contradicted", "parse_inconclusive", "inconclusive", 0.5),
        CODE,
    ]
    data = value["metadata"]
    assert (data["contradiction_detected"], data["contradiction_marker_found"]) == (True, False)
    assert data["contradiction_detected_no_downgrade"] is False
    assert (data["coverage_sufficient"], data["coverage_insufficient_reason"]) == (True, None)


def test_an_upheld_claim_tells_its_places_without_what_stands_there() -> None:
    """C20, C38."""
    data = told(UPHELD)["metadata"]
    assert (data["contradiction_detected"], data["contradiction_marker_found"]) == (False, True)
    assert (data["samples"], data["places_total"], data["matched_file_count"]) == (["docs/out.md:3"], 1, 1)
    assert data["scan_mode"] == "targeted_only"
    assert "TBD" not in json.dumps(data)


def test_an_undecided_claim_is_as_it_was_and_says_what_was_not_scanned() -> None:
    """C19, C22, C24: each file is counted once, by its reason."""
    value = told(UNDECIDED)
    assert {key: value[key] for key in WRITTEN} == WRITTEN
    data = value["metadata"]
    assert data["contradiction_detected"] is False
    assert data["contradiction_detected_no_downgrade"] is True
    assert data["coverage_sufficient"] is False
    assert data["coverage_insufficient_reason"] == (
        "priority_candidate_unscanned:missing;priority_candidate_unscanned:outside"
    )
    assert data["scan_mode"] == "targeted_plus_fallback"
    assert data["candidate_source_counts"] == {
        "canonical": 1,
        "current_attempt": 2,
        "prior_attempt": 0,
        "evidence_artifact": 1,
        "fallback": 0,
    }
    assert {key: times for key, times in data["skipped_counts"].items() if times} == {
        "missing": 1,
        "binary": 1,
        "outside": 1,
        "suffix": 12,
        "excluded": 2,
    }
    assert list(data["skipped_counts"]) == [each.value for each in SkipReason]
    assert data["skipped_samples"] == [
        {"path": "docs/out.md", "tier": "canonical", "reason": "missing"},
        {"path": "../x", "tier": "current_attempt", "reason": "outside"},
        {"path": "log.bin", "tier": "evidence_artifact", "reason": "binary"},
    ]


def test_where_nothing_was_scanned_nothing_is_known_of_the_coverage() -> None:
    data = told(PASSED)["metadata"]
    assert (data["scan_mode"], data["coverage_sufficient"], data["read_from"]) == (None, None, None)
    assert (data["scanned_file_count"], data["samples"]) == (0, [])


def test_samples_are_few_and_the_counts_are_of_all() -> None:
    """C38."""
    assert UPHELD.scan is not None
    names = [f"{number:02}.md" for number in range(15)]
    scan = replace(
        UPHELD.scan,
        placeholders=tuple(place(name, line) for name in names for line in (1, 2)),
        skipped=tuple(Skipped(candidate(f"x{number}", Tier.PRIOR), SkipReason.CAP) for number in range(40)),
    )
    data = told(replace(UPHELD, scan=scan, coverage=Coverage(False, ("no_files_scanned",))))["metadata"]
    assert (data["places_total"], data["matched_file_count"]) == (30, 15)
    assert data["samples"][:3] == ["00.md:1", "00.md:2", "01.md:1"]
    assert len(data["samples"]) == len(data["skipped_samples"]) == MOST_SAMPLES
    assert data["skipped_counts"]["cap"] == 40


def test_paths_that_are_no_plain_text_are_quoted_as_git_does() -> None:
    assert UPHELD.scan is not None
    odd = replace(place("x"), path=RepoPath.from_git(b"a\xff\n.md"))
    value = told(replace(UPHELD, scan=replace(UPHELD.scan, placeholders=(odd,))))
    assert value["metadata"]["samples"] == ['"a\\377\\n.md":3']


def test_a_path_of_the_options_that_is_not_utf_8_is_valid_unicode_in_the_answer() -> None:
    odd = "\udcff.md"
    written = {**WRITTEN, "deliverables": [odd], odd: {odd: [odd]}}
    value = told(replace(UPHELD, claim=replace(CLAIM, written=written)))
    assert value["deliverables"] == ["\\udcff.md"]
    json.dumps(value, ensure_ascii=False).encode("utf-8")


def test_metadata_of_the_verifier_is_kept_and_ours_is_added() -> None:
    """C39."""
    written = {"metadata": {"model": "m-1", "tokens": [1, 2]}, **WRITTEN}
    value = told(replace(UPHELD, claim=replace(CLAIM, written=written)))
    assert next(iter(value)) == "metadata"
    assert list(value["metadata"])[:2] == ["model", "tokens"]
    assert (value["metadata"]["tokens"], value["metadata"]["places_total"]) == ([1, 2], 1)


def test_a_verdict_that_is_adjudicated_again_gets_the_same_answer() -> None:
    first = document(UPHELD)
    assert document(replace(UPHELD, claim=replace(CLAIM, written=first))) == first
    once = document(CONTRADICTED)
    again = document(replace(UPHELD, claim=replace(CLAIM, written=once), contradicted_reason_code=None))
    assert (again["outcome"], again["contradicted_reason_code"]) == ("upheld", None)


def test_a_confidence_is_left_as_it_was_written_where_nothing_changed() -> None:
    written = {**WRITTEN, "confidence": 1}
    same = replace(UPHELD, claim=replace(CLAIM, confidence=1.0, written=written), confidence=1.0)
    assert json.dumps(told(same)["confidence"]) == "1"


def test_warnings_of_the_config_and_of_the_ledger_are_there_once() -> None:
    warned = replace(UPHELD, warnings=("this was not recorded in the ledger", "two"))
    assert told(warned, "two", "three")["metadata"]["warnings"] == [
        "this was not recorded in the ledger",
        "two",
        "three",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OURS = {*SIX, "metadata"}


@given(st.dictionaries(st.text().filter(lambda key: key not in OURS), JSON, max_size=5))
def test_whatever_else_a_verifier_wrote_comes_back_as_it_was(unknown: dict[str, Any]) -> None:
    """C39."""
    value = json.loads(render(replace(CONTRADICTED, claim=replace(CLAIM, written={**unknown, **WRITTEN}))))
    assert {key: value[key] for key in unknown if key not in WRITTEN} == {
        key: each for key, each in unknown.items() if key not in WRITTEN
    }
    assert list(value)[: len(unknown)] == list({**unknown, **WRITTEN})[: len(unknown)]
