"""Events: flat objects that say when and what, shared out where one record cannot hold them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate import __version__
from patchgate.ledger.ledger import KINDS, Event, written_forms
from patchgate.storage.record import MAX_LINE, START, Json, canonical_event, line_of
from tests.amount import often

NOON = 1_700_000_000.9


def written(kind: str = "refused", **about: Json) -> list[dict[str, Json]]:
    return list(written_forms(kind, about, NOON))


def test_an_event_is_a_flat_object_with_kind_time_and_version() -> None:
    assert written("refused", hook="pre-commit", rules=["secret"]) == [
        {
            "kind": "refused",
            "at": "2023-11-14T22:13:20Z",
            "version": __version__,
            "hook": "pre-commit",
            "rules": ["secret"],
        }
    ]


def test_every_kind_can_be_recorded_and_no_other() -> None:
    assert all(written(kind)[0]["kind"] == kind for kind in KINDS)
    with pytest.raises(ValueError, match="'refuse'"):
        written("refuse")


@pytest.mark.parametrize("key", ["at", "version", "hash", "schema", "part"])
def test_the_keys_that_every_event_has_cannot_be_given(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        written("refused", **{key: "mine"})


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="bytes"):
        list(written_forms("refused", {"ref": b"refs/heads/x"}, NOON))


def test_a_list_that_one_record_cannot_hold_is_shared_out_and_none_of_it_is_lost() -> None:
    commits = [f"{number:040x}" for number in range(60_000)]
    parts = written("skipped", hook="pre-commit", reason="an import", commits=commits, empty=[])
    assert len(parts) > 2
    assert [part["part"] for part in parts] == [[number, len(parts)] for number in range(1, len(parts) + 1)]
    together: list[str] = []
    for part in parts:
        line_of(canonical_event(part), START)
        assert (part["reason"], part["hook"], part["empty"]) == ("an import", "pre-commit", [])
        assert isinstance(part["commits"], list)
        together += part["commits"]
    assert together == commits


def test_a_text_that_one_record_cannot_hold_is_cut_and_says_so() -> None:
    (only,) = written("skipped", reason="x" * (2 * MAX_LINE), hook="pre-commit")
    line_of(canonical_event(only), START)
    assert isinstance(only["reason"], str)
    assert only["reason"].endswith("x…")
    assert only["hook"] == "pre-commit"


def test_an_event_of_any_length_near_the_limit_fits() -> None:
    for size in range(MAX_LINE - 700, MAX_LINE + 50, 25):
        (only,) = written("skipped", reason="x" * size)
        line_of(canonical_event(only), START)
    (whole,) = written("skipped", reason="x" * (MAX_LINE - 700))
    assert whole["reason"] == "x" * (MAX_LINE - 700)


@settings(max_examples=often(60), deadline=None)
@given(count=st.integers(0, 3_000), width=st.integers(0, 1_000), letter=st.sampled_from("xé\udce9"))
def test_however_long_its_list_is_every_part_fits_and_they_hold_each_item_once(
    count: int, width: int, letter: str
) -> None:
    items = [f"{number} {letter * width}" for number in range(count)]
    parts = written("pushed", remote="origin", without_receipt=items)
    together: list[Json] = []
    for part in parts:
        line_of(canonical_event(part), START)
        assert isinstance(part["without_receipt"], list)
        together += part["without_receipt"]
    assert together == items
    assert ("part" in parts[0]) == (len(parts) > 1)


@pytest.mark.parametrize("foreign", [None, 7, ["refused"], {"a": 1}])
def test_an_event_from_elsewhere_is_read_as_far_as_it_says_something(foreign: Json) -> None:
    event = Event.from_record(
        {"kind": foreign, "at": foreign, "version": foreign, "hash": "mine"}, "sha256:1"
    )
    assert (event.kind, event.at, event.version, event.hash) == ("", "", "", "sha256:1")
    assert event.plain()["hash"] == "sha256:1"
