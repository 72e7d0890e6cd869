"""Patterns of paths in other configs mean the same as patterns of the policy, or are not translated."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands.importing.path_patterns import (
    both,
    patterns_of_expression,
    patterns_of_globs,
    patterns_of_types,
)
from patchgate.commands.importing.shell_words import read_command_line
from patchgate.policy.glob_matching import PatternSet
from tests.amount import often

EXPRESSIONS = {
    r"\.py$": ("*.py",),
    r"^src/": ("/src/**",),
    r"^(docs|tests)/": ("/docs/**", "/tests/**"),
    r"\.(js|jsx)$": ("*.js", "*.jsx"),
    r"^src/.*\.py$": ("/src/**/*.py",),
    r"^setup\.py$": ("/setup.py",),
    "(?x)^(\n    a/b\\.py |  # why\n    vendor/.*\n)$": ("/a/b.py", "/vendor/**"),
    r"\.pyi?$": ("*.pyi", "*.py"),
    r"^vendor": ("/vendor*",),
    r"^src.*\.py$": ("/src*.py", "/src*/**/*.py"),
    r"migrations/": ("**/*migrations/**",),
    r"^[^/]*\.txt$": ("/*.txt",),
    "": (),
}


@pytest.mark.parametrize(("expression", "patterns"), EXPRESSIONS.items())
def test_an_expression_of_paths_becomes_patterns(expression: str, patterns: tuple[str, ...]) -> None:
    assert patterns_of_expression(expression) == patterns


@pytest.mark.parametrize(
    "expression",
    [
        r"(?i)\.PY$",
        r"^(?!vendor)",
        r"[ab]\.py$",
        r"a+\.py",
        r"\d",
        r"a{2}",
        r"(a",
        r"a)",
        r"^a.b$",
        "x" * 3000,
        r"(a|b)*",
        "(" * 40 + "a" + ")" * 40,
        r"a.*b.*c",
        r"a\\",
        "|".join(f"n{number}" for number in range(100)),
    ],
)
def test_an_expression_that_is_not_understood_is_not_translated(expression: str) -> None:
    assert patterns_of_expression(expression) is None


SEGMENT = st.sampled_from(
    ["a", "b", "src", "vendor", "x.py", "vendored", "test_x", "a.txt", "b.js", "z.pyi", "srcx"]
)
PATH = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)
LITERAL = st.sampled_from(["a", "src", "src/", "vendor", "/a", "test_", r"\.py", r"\.js", "a/b", "x", "/"])
GAP = st.sampled_from(["", ".*", "[^/]*"])
BRANCH = st.tuples(
    st.sampled_from(["", "^", "^.*"]),
    LITERAL,
    GAP,
    st.one_of(st.just(""), LITERAL),
    st.sampled_from(["", "$"]),
)
EXPRESSION = st.lists(BRANCH.map("".join), min_size=1, max_size=2).map("|".join)


@settings(max_examples=often(3000))
@given(EXPRESSION, st.lists(PATH, min_size=1, max_size=8))
def test_a_translated_expression_matches_the_same_paths(expression: str, paths: list[str]) -> None:
    patterns = patterns_of_expression(expression)
    if patterns is None:
        return
    chosen = PatternSet(patterns, folded=False, exact=True)
    for path in paths:
        # A pattern also matches what is in a folder of that name; names that end like files are files here.
        if any("." in part for part in path.split("/")[:-1]):
            continue
        expected = re.search(expression, path) is not None
        in_a_folder = any(re.search(expression, above) for above in _folders(path))
        matches = not patterns or chosen.match(path.encode()) is not None
        assert matches == expected or (matches and in_a_folder), (patterns, path)


def _folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


def test_types_become_endings_and_an_unknown_type_none() -> None:
    assert patterns_of_types(["python"], []) == ("*.py", "*.pyi")
    assert patterns_of_types(["file", "text"], []) == ()
    assert patterns_of_types([], ["javascript", "jsx"]) == ("*.js", "*.mjs", "*.cjs", "*.jsx")
    assert patterns_of_types([], ["text", "python"]) == ()
    assert patterns_of_types(["executable"], []) is None
    assert patterns_of_types(["python"], ["executable"]) is None


def test_a_folder_and_a_type_become_one_pattern() -> None:
    assert both(("/src/**",), ("*.py",)) == ("/src/**/*.py",)
    assert both(("/src/a.py",), ("*.py",)) == ("/src/a.py",)
    assert both(("/vendor*",), ("*.py",)) is None
    assert both((), ("*.py",)) == ("*.py",)


def test_globs_become_patterns_or_are_not_translated() -> None:
    assert patterns_of_globs(["*.{js,ts}"], crosses_folders=False) == ("*.js", "*.ts")
    assert patterns_of_globs(["src/*.ts"], crosses_folders=False) == ("/src/*.ts",)
    assert patterns_of_globs(["src/*.ts"], crosses_folders=True) == ("/src/**/*.ts",)
    assert patterns_of_globs(["**/*.md", "src/**"], crosses_folders=True) == ("**/*.md", "/src/**")
    for glob in ("!*.js", "*.+(js|ts)", "[ab].js", "a\\*.js", "src/*/x.js"):
        assert patterns_of_globs([glob], crosses_folders=True) is None


def test_a_command_line_that_needs_a_shell_gets_one_and_the_files_as_words() -> None:
    files = {"{staged_files}": True, "{all_files}": False}
    plain = read_command_line("npx eslint --fix {staged_files}", files)
    assert plain is not None
    assert (plain.words, plain.takes_files) == (("npx", "eslint", "--fix"), True)
    piped = read_command_line("a '{staged_files}' | b", files)
    assert piped is not None
    assert (piped.words, piped.takes_files) == (("sh", "-c", 'a "$@" | b', "sh"), True)
    lonely = read_command_line("make lint", files)
    assert lonely is not None
    assert (lonely.words, lonely.takes_files) == (("make", "lint"), False)
    for text in ("", "a 'b", "x {all_files}", "x {unknown} {staged_files}"):
        assert read_command_line(text, files) is None
