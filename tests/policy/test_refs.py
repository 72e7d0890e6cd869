"""Names of refs and patterns of them."""

from __future__ import annotations

import fnmatch
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.policy.glob_matching import matches_ref
from patchgate.policy.validators import check_ref


@pytest.mark.parametrize("text", ["refs/heads/main", "refs/heads/wip/*", "refs/*/x", "refs/heads/*-draft"])
def test_a_full_name_or_a_pattern_of_one_is_given_back(text: str) -> None:
    assert check_ref(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "main",
        "heads/main",
        "refs/main",
        "refs/heads/",
        "refs/heads/a b",
        "refs/heads/a..b",
        "refs/heads/a?",
        "refs/heads/release/*\u200b",
        "refs/heads/a\u00a0b",
    ],
)
def test_what_no_ref_can_be_called_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ref|sees"):
        check_ref(text)


def test_a_star_stands_for_any_characters_and_nothing_else_is_special() -> None:
    assert matches_ref(["refs/heads/wip/*"], "refs/heads/wip/a/b")
    assert not matches_ref(["refs/heads/wip/*"], "refs/heads/wip")
    assert not matches_ref(["refs/heads/main"], "refs/heads/main2")
    for listed, name in itertools.product(("gro\u0308\u00dfe", "gr\u00f6\u00dfe"), repeat=2):
        assert matches_ref([f"refs/heads/{listed}/*"], f"refs/heads/{name}/1")
    assert not matches_ref([], "refs/heads/main")


@given(st.text("ab/*", max_size=8), st.text("ab/", max_size=10))
def test_patterns_match_as_fnmatch_does(pattern: str, name: str) -> None:
    expected = re.fullmatch(fnmatch.translate("refs/" + pattern), "refs/" + name) is not None
    assert matches_ref(["refs/" + pattern], "refs/" + name) == expected
