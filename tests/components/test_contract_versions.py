"""Versions of contracts: what is one, and which is higher."""

from __future__ import annotations

from itertools import pairwise

import pytest

from patchgate.components.contract_versions import is_higher, is_version, version_of

ASCENDING = (
    "0.9",
    "1.0.0-1",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.2",
    "1.0.0-alpha.10",
    "1.0.0-beta",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2",
    "1.10",
    "2.0rc1",
    "2.0rc2",
    "2",
    "10",
)


def test_the_order_is_that_of_semantic_versioning() -> None:
    for lower, higher in pairwise(ASCENDING):
        assert is_higher(higher, lower), (higher, lower)
        assert not is_higher(lower, higher), (higher, lower)


@pytest.mark.parametrize(
    ("one", "other"), [("1", "1.0.0"), ("1.2", "1.2.0"), ("1.0+a", "1.0+b"), ("01", "1")]
)
def test_equal_versions_are_not_higher(one: str, other: str) -> None:
    assert not is_higher(one, other)
    assert not is_higher(other, one)


@pytest.mark.parametrize("text", ["", "x", "v1", "1.", ".1", "1..2", "1 ", "1\n", "1.2.x!", "1" * 10, "١"])
def test_what_is_no_version_is_refused(text: str) -> None:
    assert not is_version(text)
    with pytest.raises(ValueError, match="not a version"):
        is_higher(text, "1")


def test_the_version_is_found_even_in_a_wrong_contract() -> None:
    assert version_of(b'{"version": "1.2.0", "nonsense": []}') == "1.2.0"
    assert version_of(b'{"version": 1}') is None
    assert version_of(b'{"version": "new"}') is None
    assert version_of(b"[]") is None
    assert version_of(b"{") is None
