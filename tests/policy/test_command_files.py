"""The usual forms of patterns, matched without pathspec: exactly as the others."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.policy.command_files import CommandFiles, quick_matcher
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.glob_matching import PatternError, PatternSet
from tests.amount import often

NAMES = st.sampled_from(["a", "b", "a.py", "b.py", ".py", "c.md", "a.b", "x-1"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = st.sampled_from(
    ["a", "b", "a.py", "*", "**", "*.py", "*.md", ".", "..", "", "a*", "x**", "[a]", "!a"]
)
PATTERNS = st.lists(PIECES, min_size=1, max_size=4).map("/".join)
USUAL = (
    *("a", "a.py", "a/", "/a", "a/b", "a/b/", "/a/b", "a/**", "a/b/**"),
    *("*.py", "a/*.py", "/*.py", "a/**/*.py", "**/*.py"),
)


@settings(max_examples=often(3000))
@given(st.one_of(PATTERNS, st.sampled_from(USUAL)), st.lists(PATHS, min_size=1, max_size=8))
def test_a_usual_pattern_matches_what_git_matches(pattern: str, paths: list[str]) -> None:
    matches = quick_matcher(pattern)
    if matches is None:
        return
    try:
        expected = PatternSet([pattern], folded=False, exact=True)
    except PatternError:
        return
    for path in paths:
        assert matches(path.encode()) == (expected.match(path.encode()) is not None), (pattern, path)


@pytest.mark.parametrize("pattern", USUAL)
def test_the_forms_that_policies_have_are_usual(pattern: str) -> None:
    assert quick_matcher(pattern) is not None


@pytest.mark.parametrize("pattern", ["a*", "[ab].py", "a?", "a/*/b", "x**/*.py", "a\\b", "é", "*", "**"])
def test_other_forms_are_left_to_pathspec_and_are_an_error_where_that_is_too_slow(pattern: str) -> None:
    assert quick_matcher(pattern) is None
    table = CommandSettings("lint", ("x",), files=(pattern,))
    assert CommandFiles(table).endings is None
    with pytest.raises(ValueError, match=r"^$"):
        CommandFiles(table, is_quick=True)
