"""The tables `[claims]` and `[placeholders]`: what is used of any value, what is told of it, what is refused.

Requirements C4, C26, C27, C28: every key has a safe default and bounds, and no value stops an adjudication.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchgate.errors import ConfigError
from patchgate.git.quoting import is_printable
from patchgate.policy.claims_settings import BOUNDS, parse_claims, suffix_test
from patchgate.policy.config import json_schema, parse
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.settings import (
    SUFFIXES,
    ClaimsSettings,
    Config,
    MarkerSettings,
    PlaceholdersSettings,
)
from patchgate.policy.settings_loader import settings_from
from patchgate.policy.tree_policies import warnings_of
from tests.amount import often
from tests.schemas import require_valid

FILES = "contradiction_scan_max_files"
TOTAL = "contradiction_scan_max_total_bytes"
FILE = "contradiction_scan_max_file_bytes"
LEAST_FILES = "contradiction_scan_min_files_for_sufficiency"
ENDS = "contradiction_scan_allowed_suffixes"
SECONDS = "contradiction_scan_timeout_seconds"
ENABLED = "contradiction_guard_enabled"
STRICT = "contradiction_guard_strict_coverage"
KEYS = (ENABLED, STRICT, FILES, TOTAL, FILE, LEAST_FILES, ENDS, SECONDS, "markers", "exclude")
FILL_ME = {"name": "fill-me", "pattern": r"FILL[- ]?ME\s*:\s*\S+", "example": "FILL-ME: the price"}
FULL = """
[placeholders]
level = "error"

[claims]
contradiction_guard_enabled = false
contradiction_guard_strict_coverage = false
contradiction_scan_max_files = 1000
contradiction_scan_max_total_bytes = 1024
contradiction_scan_max_file_bytes = 1
contradiction_scan_min_files_for_sufficiency = 100
contradiction_scan_allowed_suffixes = [".go", ""]
contradiction_scan_timeout_seconds = 1.5
exclude = ["docs/**"]

[[claims.markers]]
name = "fill-me"
pattern = 'FILL_ME'
example = "FILL_ME"
"""


def read(text: str) -> Config:
    return parse(text.encode(), "patchgate.toml")


def told(written: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """Give what is told of a table, each key without the table's name."""
    return [(warning.key[1:], warning.message) for warning in parse_claims(written)[1]]


def used(name: str, value: Any) -> Any:
    return getattr(parse_claims({name: value})[0], name)


# ---- what is read -----------------------------------------------------------------------------------------


def test_every_key_is_read_and_survives_being_written_down() -> None:
    """C26: a config that was kept as JSON gives the same values and the same warnings."""
    config = read(FULL)
    marker = MarkerSettings("fill-me", "FILL_ME", "FILL_ME")
    assert config.claims == ClaimsSettings(
        *(False, False, 1000, 1024, 1, 100, (".go", ""), 1.5, (marker,)), ("docs/**",)
    )
    assert (config.placeholders, config.warnings) == (PlaceholdersSettings("error"), ())
    assert settings_from(json.loads(json.dumps(config.written))) == config


def test_without_the_table_the_guard_is_on_and_strict() -> None:
    """C27, C28: both are true by default, and the caps are those of the requirement."""
    config = read("[policy]\n")
    assert (config.claims, config.placeholders.level, config.warnings) == (ClaimsSettings(), None, ())
    claims = config.claims
    assert claims.contradiction_guard_enabled
    assert claims.contradiction_guard_strict_coverage
    assert (claims.contradiction_scan_max_files, claims.contradiction_scan_max_total_bytes) == (80, 2_500_000)
    assert (claims.contradiction_scan_max_file_bytes, claims.contradiction_scan_timeout_seconds) == (
        300_000,
        8,
    )
    assert (claims.contradiction_scan_min_files_for_sufficiency, claims.markers) == (2, ())
    assert not claims.has_unusable_markers


def test_every_default_lies_within_its_bounds() -> None:
    assert told({name: getattr(ClaimsSettings(), name) for name in KEYS}) == []


# ---- what cannot be used ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_on_its_bounds_is_used_and_one_beyond_is_clamped_and_told(name: str) -> None:
    """C26: numeric bounds, to the number."""
    least, most = BOUNDS[name]
    whole = {TOTAL: 50_000_000} if name == FILE else {}
    for value, expected in (
        (least, least),
        (most, most),
        (least - 1, least),
        (most + 1, most),
        (-(2**70), least),
    ):
        made, warnings = parse_claims({**whole, name: value})
        assert getattr(made, name) == expected
        assert len(warnings) == (value != expected)
        for warning in warnings:
            assert warning.key == ("claims", name)
            assert warning.message.endswith(f"so {expected} is used")


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("value", [True, "80", None, [], {}, math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_replaced_by_the_default_and_told(name: str, value: Any) -> None:
    """C26: a boolean is no number, however Python sees it."""
    assert used(name, value) == getattr(ClaimsSettings(), name)
    ((key, message),) = told({name: value})
    assert key == (name,)
    assert "number, so" in message


def test_a_number_that_nothing_could_print_is_clamped_too() -> None:
    huge = 10**5000
    assert used(FILES, huge) == 1000
    ((key, message),) = told({SECONDS: -huge})
    assert key == (SECONDS,)
    assert re.search(r"\b64\b.*\b1\b.*\b1\b", message)
    assert used(ENABLED, huge) is True


def test_only_the_timeout_takes_fractions() -> None:
    assert used(SECONDS, 2.5) == 2.5
    ((key, message),) = told({FILES: 2.0})
    assert key == (FILES,)
    assert re.search(r"^2\.0 .*\b80\b", message)


@pytest.mark.parametrize("value", [0, 1, "false", None, [False]])
def test_what_is_no_boolean_never_switches_the_guard_off(value: Any) -> None:
    """C27, C28: only `false` itself does."""
    for name in (ENABLED, STRICT):
        assert used(name, value) is True
        assert [key for key, _ in told({name: value})] == [(name,)]
        assert used(name, False) is False


def test_one_file_may_have_no_more_than_the_total() -> None:
    made, warnings = parse_claims({TOTAL: 2000, FILE: 5000})
    assert made.contradiction_scan_max_file_bytes == 2000
    (warning,) = warnings
    assert re.search(rf"^5000 .*\b{TOTAL}\b.*\b2000\b", warning.message)


def test_a_default_that_is_more_than_the_total_is_brought_down_without_a_word() -> None:
    made, warnings = parse_claims({TOTAL: 2000})
    assert (made.contradiction_scan_max_file_bytes, warnings) == (2000, ())


def test_of_a_total_that_was_clamped_the_clamped_value_counts_for_one_file() -> None:
    made, warnings = parse_claims({TOTAL: 5, FILE: 4000})
    assert (made.contradiction_scan_max_total_bytes, made.contradiction_scan_max_file_bytes) == (1024, 1024)
    assert len(warnings) == 2


@pytest.mark.parametrize(
    "value", [".md", 5, {".md": 1}, [".md", 5], [["a"]], ["a/b"], ["*.md"], ["\0"], ["x" * 256]]
)
def test_a_list_of_suffixes_with_something_else_in_it_is_replaced_whole(value: Any) -> None:
    assert used(ENDS, value) == SUFFIXES
    ((key, message),) = told({ENDS: value})
    assert key[0] == ENDS
    assert "default" in message


def test_a_list_of_suffixes_is_used_as_it_stands_even_if_it_is_empty() -> None:
    assert used(ENDS, [".go", "", "Makefile", ".go"]) == (".go", "", "Makefile")
    assert used(ENDS, []) == ()


# ---- the policy's own markers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marker", "key", "word"),
    [
        (5, (), "not a table"),
        ({}, (), "`name` is missing"),
        (FILL_ME | {"patern": "x"}, (), 'unknown key "patern"'),
        (FILL_ME | {"name": 5}, ("name",), "not a string"),
        (FILL_ME | {"name": "Fill me"}, ("name",), "not a name"),
        (FILL_ME | {"name": "a" * 61}, ("name",), "not a name"),
        (FILL_ME | {"pattern": "("}, ("pattern",), "not a regular expression"),
        (FILL_ME | {"pattern": r"(FILL)\1"}, ("pattern",), "back-reference"),
        (FILL_ME | {"pattern": "(F+)+$"}, ("pattern",), "exponential"),
        (FILL_ME | {"pattern": "(F|F)*$"}, ("pattern",), "too long"),
        (FILL_ME | {"pattern": "(F?F?)*$"}, ("pattern",), "too long"),
        (FILL_ME | {"pattern": "(F{1,99}){1,99}$"}, ("pattern",), "too long"),
        (FILL_ME | {"pattern": "F*" * 200 + "$"}, ("pattern",), "too long"),
        (FILL_ME | {"pattern": "(?:FILL|ME|)"}, ("pattern",), "empty line"),
        (FILL_ME | {"pattern": "FILL\\nME|FILL_ME"}, ("pattern",), "newline"),
        (FILL_ME | {"pattern": "FILL_ME|(?:x(?:y[\n]))"}, ("pattern",), "newline"),
        (FILL_ME | {"pattern": "(?i)fill_me|später"}, ("pattern",), "ASCII letters only"),
        (FILL_ME | {"pattern": "\ud800"}, ("pattern",), "not a regular expression"),
        (FILL_ME | {"example": ""}, ("example",), "one line"),
        (FILL_ME | {"example": "FILL\nME"}, ("example",), "one line"),
        (FILL_ME | {"example": "F" * 101}, ("example",), "one line"),
        (FILL_ME | {"example": "fill me"}, ("example",), "matched"),
    ],
)
def test_a_marker_that_cannot_be_used_is_left_out_told_and_remembered(
    marker: Any, key: Any, word: str
) -> None:
    """C4, C26: markers are data; a typo in one makes nothing weaker, since it is remembered."""
    good = {"name": "other", "pattern": "OTHER", "example": "OTHER"}
    made, warnings = parse_claims({"markers": [good, marker]})
    assert made.markers == (MarkerSettings("other", "OTHER", "OTHER"),)
    assert made.has_unusable_markers
    (warning,) = warnings
    assert warning.key == ("claims", "markers", 1, *key)
    assert word in warning.message
    assert all(map(is_printable, warning.message))


def test_of_two_markers_with_one_name_the_second_is_left_out() -> None:
    made, warnings = parse_claims({"markers": [FILL_ME, FILL_ME]})
    assert (len(made.markers), made.has_unusable_markers) == (1, True)
    assert "another" in warnings[0].message


def test_markers_that_are_no_list_are_unusable() -> None:
    made, warnings = parse_claims({"markers": "FILL_ME"})
    assert (made.markers, made.has_unusable_markers, len(warnings)) == ((), True, 1)


def test_more_than_fifty_markers_are_told_and_those_beyond_are_left_out() -> None:
    many = [FILL_ME | {"name": f"m{number}"} for number in range(51)]
    made, warnings = parse_claims({"markers": many})
    assert (len(made.markers), made.has_unusable_markers, len(warnings)) == (50, True, 1)
    assert parse_claims({"markers": many[:50]})[1] == ()


@pytest.mark.parametrize(
    "pattern",
    [
        r"FILL[- ]?ME\s*:\s*\S+",
        r"(?i)fill (?:me|this) in",
        r"^\s*FILL\b[^\n]*ME",
        "FILL[_-]ME|FILL.ME|später",
    ],
)
def test_an_ordinary_marker_is_used(pattern: str) -> None:
    example = "FILL-ME: the price" if "this" not in pattern else "Fill me in"
    made, warnings = parse_claims({"markers": [{"name": "fill-me", "pattern": pattern, "example": example}]})
    assert (warnings, made.has_unusable_markers, len(made.markers)) == ((), False, 1)


# ---- any value --------------------------------------------------------------------------------------------

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([0, 1, 30, 31, 1000, 1001, 1024])
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from([".md", "", "a/b", "(", "(a|a)*", "fill-me", "FILL_ME", "\ud800", "\x1b[31m"])
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["name", "pattern", "example", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), values, max_size=6))
@example({ENABLED: "\t", "markers": [{"\t": 1}, FILL_ME | {"pattern": "(\t"}]})
@example({"markers": [FILL_ME, FILL_ME, {"name": "a", "pattern": "a", "example": "a"}]})
@settings(max_examples=often(200), deadline=None)
def test_any_value_of_the_table_gives_settings_within_their_bounds(written: Any) -> None:
    """C26: malformed config cannot crash."""
    made, warnings = parse_claims(written)
    assert {type(made.contradiction_guard_enabled), type(made.contradiction_guard_strict_coverage)} == {bool}
    for name, (least, most) in BOUNDS.items():
        value = getattr(made, name)
        assert least <= value <= most
        assert type(value) is int or (name == SECONDS and type(value) is float)
    assert made.contradiction_scan_max_file_bytes <= made.contradiction_scan_max_total_bytes
    assert all(isinstance(each, str) for each in made.contradiction_scan_allowed_suffixes)
    suffix_test(made.contradiction_scan_allowed_suffixes)(b"a/b.md")
    assert len({marker.name for marker in made.markers}) == len(made.markers)
    assert made.has_unusable_markers == any("markers" in warning.key for warning in warnings)
    for warning in warnings:
        assert warning.key[0] == "claims"
        assert all(map(is_printable, warning.message))
        assert len(warning.message) < 300
    # Of what is told, nothing was used as it stood; of what is not told, everything was.
    if isinstance(written, dict):
        named = {warning.key[1] for warning in warnings}
        for name in set(BOUNDS) & set(written):
            assert (getattr(made, name) == written[name] and type(written[name]) is not bool) == (
                name not in named
            )


# ---- the document -----------------------------------------------------------------------------------------


def test_what_cannot_be_used_is_no_mistake_and_is_told_with_its_line() -> None:
    """C26: each warning names file, line, key, what stands there, and what is used."""
    text = f"""[claims]
{SECONDS} = nan
{FILES} = 0x{"f" * 9000}
{LEAST_FILES} = 1979-05-27
{ENDS} = [
  ".md",
  5,
]
[[claims.markers]]
name = "fill-me"
pattern = "("
example = "x"
"""
    config = read(text)
    lines = warnings_of(Policy(config, "patchgate.toml", text.encode()))
    assert [line.partition(" ")[0] + line.split(" ")[1] for line in lines] == [
        f"patchgate.toml:2:claims.{SECONDS}:",
        f"patchgate.toml:3:claims.{FILES}:",
        f"patchgate.toml:4:claims.{LEAST_FILES}:",
        f"patchgate.toml:7:claims.{ENDS}[1]:",
        "patchgate.toml:11:claims.markers[0].pattern:",
    ]
    assert re.search(r"\b64\b.*\b1000\b.*\b1000\b", lines[1])
    # It can be digested and kept, whatever stands there.
    assert Policy(config).digest(Profile.COMMIT)
    assert settings_from(json.loads(json.dumps(config.written, allow_nan=False))) == config


def test_of_a_pyproject_the_lines_are_those_of_its_table() -> None:
    raw = f"[project]\nname = 'x'\n[tool.patchgate.claims]\n{FILES} = 0\n".encode()
    from patchgate.policy.config import parse_pyproject

    config = parse_pyproject(raw, "pyproject.toml")
    assert config is not None
    (line,) = warnings_of(Policy(config, "pyproject.toml", raw))
    assert re.search(rf"^pyproject\.toml:4: claims\.{FILES}: 0 .*\b1\b.*\b1\b", line)


def test_of_many_warnings_ten_are_told_and_the_others_counted() -> None:
    text = "[claims]\nmarkers = [" + "5," * 30 + "]\n"
    lines = warnings_of(Policy(read(text), "patchgate.toml", text.encode()))
    assert len(lines) == 11
    assert lines[-1].startswith("patchgate.toml: 20 ")


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ('[placeholders]\nlevel = "loud"', "placeholders.level", 'expected "error", "warning"'),
        ("[placeholders]\nlevels = 1", "placeholders.levels", "unknown key"),
    ],
)
def test_a_key_that_nobody_knows_is_a_mistake_as_in_every_table(text: str, key: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    (mistake,) = caught.value.mistakes
    assert mistake.key == key
    assert said in mistake.message
    assert mistake.line
    assert mistake.hint


@pytest.mark.parametrize("text", ["claims = 5", "[[claims]]", 'claims = "on"', "claims = 2026-01-01"])
def test_what_is_no_table_is_told_and_nothing_is_contradicted(text: str) -> None:
    """C26: malformed config stops no adjudication, and makes nothing weaker."""
    config = read(text)
    assert config.claims == ClaimsSettings(has_unusable_markers=True)
    (warning,) = config.warnings
    assert warning.key == ("claims",)
    assert "table" in warning.message


@pytest.mark.parametrize("value", ["5", "nan", "2026-01-01", "[{ a = inf }]", "0x" + "f" * 9000])
def test_a_key_that_nobody_knows_is_a_warning_and_the_right_one_is_suggested(value: str) -> None:
    """C26: of any value; what is kept of the config makes the same settings and warnings again."""
    config = read(f"[claims]\n{FILES} = 5\ncontradiction_scan_max_fils = {value}")
    assert config.claims == ClaimsSettings(contradiction_scan_max_files=5)
    (warning,) = config.warnings
    assert warning.key == ("claims", "contradiction_scan_max_fils")
    assert f"`claims.{FILES}`" in warning.message
    assert settings_from(json.loads(json.dumps(config.written, allow_nan=False))) == config
    (warning,) = read("[claims]\nabc = 1").warnings
    assert "?" not in warning.message


@pytest.mark.parametrize(
    ("value", "used", "places"),
    [
        (["docs/**", "a"], ("docs/**", "a"), []),
        (["!a", "b", 3], ("b",), [0, 2]),
        ("docs/**", (), [None]),
        ([""], (), [0]),
    ],
)
def test_a_pattern_that_cannot_be_used_excludes_nothing_and_is_a_warning(
    value: Any, used: tuple[str, ...], places: list[int | None]
) -> None:
    made, warnings = parse_claims({"exclude": value})
    assert (made, made.has_unusable_markers) == (ClaimsSettings(exclude=used), False)
    told_of = [("claims", "exclude", *(() if place is None else (place,))) for place in places]
    assert [warning.key for warning in warnings] == told_of


def test_the_schema_says_what_each_key_takes() -> None:
    """C26: type, bounds, default and description of every key."""
    schema = json_schema()
    require_valid(tomllib.loads(FULL), schema)
    table = schema["$defs"]["ClaimsTable"]["properties"]
    assert set(table) == set(KEYS)
    for name, (least, most) in BOUNDS.items():
        assert (table[name]["minimum"], table[name]["maximum"]) == (least, most)
        assert table[name]["default"] == getattr(ClaimsSettings(), name)
    for bad in (
        f"[claims]\n{FILES} = 0",
        f"[claims]\n{FILES} = 2.5",
        f"[claims]\n{ENABLED} = 1",
        f'[claims]\n{ENDS} = ["a/b"]',
        f"[claims]\n{SECONDS} = 31",
        "[claims]\nexclude = [1]",
        "[claims]\nunknown = 1",
        '[[claims.markers]]\nname = "Fill me"\npattern = "x"\nexample = "x"',
        '[placeholders]\nlevel = "loud"',
    ):
        with pytest.raises(jsonschema.ValidationError):
            require_valid(tomllib.loads(bad), schema)


# ---- suffixes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "suffixes", "expected"),
    [
        (b"docs/a.md", (".md",), True),
        (b"docs/A.MD", (".md",), True),
        (b"a.md", (".MD",), True),
        (b"a.mdx", (".md",), False),
        (b"a.md/b", (".md",), False),
        (b"a.tar.gz", (".tar.gz",), True),
        (b"a.tar.gz", (".gz",), True),
        (b"main.go", (".md", ".py"), False),
        (b"bin/run", (".md",), False),
        (b"bin/run", ("",), True),
        (b".gitignore", ("",), True),
        (b"a.py", ("",), False),
        (b"v1.0/run", ("",), True),
        (b"GNUmakefile", ("Makefile",), True),
        (b"a.md", (), False),
        (b"\xff.md", (".md",), True),
        ("a.ä".encode(), (".ä",), True),
        (b"", ("",), True),
    ],
)
def test_a_file_has_a_suffix_by_the_end_of_its_name(
    name: bytes, suffixes: tuple[str, ...], expected: bool
) -> None:
    assert suffix_test(suffixes)(name) is expected
