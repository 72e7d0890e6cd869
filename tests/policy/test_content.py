"""Secrets, conflict markers and the policy's own expressions: what matches, and the nearest that does not.

Every token here is made from pieces when the test runs, so that this repository holds none.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.policy.content_rules import SECRET_FORMS, ContentRules, is_conflict_marker
from tests.amount import often

ALL = ContentRules(True, True, ())
LETTERS = "aB3dE5gH7jK9" * 30


def with_expressions(*expressions: bytes) -> ContentRules:
    return ContentRules(False, False, tuple(re.compile(each) for each in expressions))


# ---- secrets ----------------------------------------------------------------------------------------------

UPPER = "ABCDEFGHIJKLMNOP"
DIGITS = "123456789012"
# For each form: pieces of tokens, and pieces of the nearest texts that are none.
TOKENS: dict[str, tuple[list[tuple[str, ...]], list[tuple[str, ...]]]] = {
    "private key": (
        [
            ("-----BEGIN ", "PRIVATE KEY", "-----"),
            ("-----BEGIN ", "RSA PRIVATE KEY", "-----"),
            ("-----BEGIN ", "OPENSSH PRIVATE KEY", "-----"),
            ("-----BEGIN ", "ENCRYPTED PRIVATE KEY", "-----"),
            ("-----BEGIN ", "PGP PRIVATE KEY BLOCK", "-----"),
        ],
        [
            ("-----BEGIN ", "PUBLIC KEY", "-----"),
            ("-----END ", "PRIVATE KEY", "-----"),
            ("BEGIN ", "PRIVATE KEY"),
        ],
    ),
    "AWS access key": (
        [("AK", "IA", UPPER), ("AS", "IA", UPPER[:10], "234567"), ("key=AK", "IA", UPPER, ";")],
        [
            ("AK", "IA", UPPER[:15]),
            ("AK", "IA", UPPER, "Q"),
            ("XAK", "IA", UPPER),
            ("AK", "IA", UPPER[:15], "8"),
        ],
    ),
    "GitHub token": (
        [
            *[(f"gh{kind}", "_", LETTERS[:36]) for kind in "pousr"],
            ("github", "_pat_", LETTERS[:22], "_", LETTERS[:59]),
        ],
        [
            ("ghp", "_", LETTERS[:35]),
            ("ghx", "_", LETTERS[:36]),
            ("xghp", "_", LETTERS[:36]),
            ("github", "_pat_", LETTERS[:22], "-", LETTERS[:59]),
        ],
    ),
    "GitLab token": (
        [("glp", "at-", LETTERS[:20])],
        [("glp", "at-", LETTERS[:19]), ("xglp", "at-", LETTERS[:20])],
    ),
    "Slack token": (
        [("xox", f"{kind}-", DIGITS, "-", LETTERS[:24]) for kind in "abeoprs"],
        [("xox", "b-", "1234567", "-", LETTERS[:24]), ("xox", "z-", DIGITS, "-", LETTERS[:24])],
    ),
    "Slack webhook": (
        [("https://hooks.slack", ".com/services/", "T12345678/", "B12345678/", LETTERS[:20])],
        [
            ("https://hooks.slack", ".com/services/", "T12345678/", "B12345678/", LETTERS[:19]),
            ("https://hooks.slack", ".com/services/", "TEAM/", "BOT/", "TOKEN"),
        ],
    ),
    "Stripe key": (
        [("sk", "_live_", LETTERS[:20]), ("rk", "_live_", LETTERS[:24])],
        [("sk", "_test_", LETTERS[:20]), ("sk", "_live_", LETTERS[:19]), ("pk", "_live_", LETTERS[:20])],
    ),
    "Google API key": (
        [("AI", "za", LETTERS[:35])],
        [("AI", "za", LETTERS[:34]), ("xAI", "za", LETTERS[:35])],
    ),
    "npm token": ([("np", "m_", LETTERS[:36])], [("np", "m_", LETTERS[:35]), ("np", "m_", LETTERS[:37])]),
    "PyPI token": (
        [("py", "pi-AgEI", LETTERS[:60])],
        [("py", "pi-AgEI", LETTERS[:59]), ("py", "pi-XgEI", LETTERS[:60])],
    ),
    "SendGrid key": (
        [("S", "G.", LETTERS[:22], ".", LETTERS[:43])],
        [("S", "G.", LETTERS[:21], ".", LETTERS[:43]), ("S", "G.", LETTERS[:22], ".", LETTERS[:42])],
    ),
    "OpenAI key": (
        [
            ("s", "k-", LETTERS[:20], "T3Blbk", "FJ", LETTERS[:20]),
            ("s", "k-proj-", "T3Blbk", "FJ", LETTERS[:20]),
        ],
        [
            ("s", "k-", LETTERS[:40]),
            ("s", "k-", "T3Blbk", "FJ", LETTERS[:19]),
            ("x", "T3Blbk", "FJ", LETTERS[:40]),
        ],
    ),
    "Anthropic key": (
        [("sk-", "ant-", f"{kind}03-", LETTERS[:80]) for kind in ("api", "admin", "sid")],
        [("sk-", "ant-", "api03-", LETTERS[:79]), ("sk-", "ant-", "api3-", LETTERS[:80])],
    ),
    "Vault token": ([("hv", "s.", LETTERS[:24])], [("hv", "s.", LETTERS[:23]), ("hv", "b.", LETTERS[:24])]),
    "Azure storage key": (
        [("Account", "Key=", LETTERS[:86], "==")],
        [("Account", "Key=", LETTERS[:85], "=="), ("Account", "Key=", LETTERS[:86], "=;")],
    ),
}
POSITIVES = [(form, "".join(pieces)) for form, (positive, _) in TOKENS.items() for pieces in positive]
NEAR_MISSES = [(form, "".join(pieces)) for form, (_, near) in TOKENS.items() for pieces in near]


def test_every_form_of_secret_has_a_token_and_a_near_miss_here() -> None:
    assert [form.name for form in SECRET_FORMS] == list(TOKENS)
    assert all(positive and near for positive, near in TOKENS.values())


def number(cases: list[tuple[str, str]]) -> list[str]:
    """Name cases without the tokens in them, which a test's report would print."""
    return [f"{form} {position}" for position, (form, _) in enumerate(cases)]


@pytest.mark.parametrize(("form", "token"), POSITIVES, ids=number(POSITIVES))
def test_a_token_is_found_wherever_it_stands_in_a_line(form: str, token: str) -> None:
    for line in (token, f'password = "{token}"', f"\t{token}\r", "x " * 5000 + token + " y" * 5000):
        found = ALL.secret_in(line.encode())
        assert found is not None
        assert found.name == form
        assert ALL.suspects([b"fine", line.encode()]) == [1]


@pytest.mark.parametrize(("form", "text"), NEAR_MISSES, ids=number(NEAR_MISSES))
def test_what_only_resembles_a_token_is_none(form: str, text: str) -> None:
    assert ALL.secret_in(text.encode()) is None
    assert ALL.secret_in(f'password = "{text}"'.encode()) is None


@pytest.mark.parametrize(("form", "token"), POSITIVES, ids=number(POSITIVES))
def test_each_form_holds_one_of_its_literals(form: str, token: str) -> None:
    (found,) = (each for each in SECRET_FORMS if each.name == form)
    assert any(literal in token.encode() for literal in found.literals)


def test_secrets_can_be_switched_off() -> None:
    off = ContentRules(False, True, ())
    assert off.secret_in(POSITIVES[0][1].encode()) is None
    assert off.suspects([POSITIVES[0][1].encode()]) == []


def test_the_files_of_this_test_hold_no_secret() -> None:
    with open(__file__, "rb") as file:
        assert [line for line in file if ALL.secret_in(line)] == []


# ---- conflict markers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", "<>|")
@pytest.mark.parametrize(
    ("after", "is_marker"), [("", True), (" HEAD", True), ("\r", True), ("x", False), ("\t", False)]
)
def test_seven_of_a_kind_then_nothing_or_a_space_are_a_conflict_marker(
    sign: str, after: str, is_marker: bool
) -> None:
    assert is_conflict_marker((sign * 7 + after).encode()) == is_marker


@pytest.mark.parametrize(
    "line", [b"<" * 6, b"<" * 8, b" " + b"<" * 7, b"=" * 7, b"======= x", b"<" * 6 + b">", b""]
)
def test_what_only_resembles_a_conflict_marker_is_none(line: bytes) -> None:
    assert not is_conflict_marker(line)


def test_markers_are_suspects_only_where_they_begin_a_line() -> None:
    marker = b"<" * 7 + b" HEAD"
    assert ALL.suspects([b"a", marker, b" " + marker, b"x" + marker, marker]) == [1, 4]
    assert ContentRules(True, False, ()).suspects([marker]) == []


# ---- the policy's own expressions -------------------------------------------------------------------------


def test_the_first_expression_that_matches_is_found() -> None:
    rules = with_expressions(b"never", b"FIXME", b"TODO")
    assert rules.denied_in(b"x TODO FIXME") == 1
    assert rules.denied_in(b"x TODO") == 2
    assert rules.denied_in(b"fine") is None
    assert rules.suspects([b"fine", b"TODO", b"FIXME"]) == [1, 2]


@pytest.mark.parametrize("at", [0, 1, 3580, 3584, 4090, 4094, 4096, 7000, 7168, 7676, 8192, 11995])
@pytest.mark.parametrize("length", [4096, 4097, 7680, 7681, 12000])
def test_an_expression_is_found_anywhere_on_a_long_line(at: int, length: int) -> None:
    if at + 4 > length:
        at = length - 4
    line = b"." * at + b"TODO" + b"." * (length - at - 4)
    assert len(line) == length
    assert with_expressions(b"TODO").denied_in(line) == 0


@pytest.mark.parametrize("before", [3583, 3584, 3585, 7168])
def test_an_anchored_expression_matches_only_where_a_long_line_begins(before: int) -> None:
    rules = with_expressions(b"^TODO", rb"\AFIXME", rb"\bNEVER")
    assert rules.denied_in(b"TODO" + b"." * 9000) == 0
    assert rules.denied_in(b"." * before + b"TODO" + b"." * 5000) is None
    assert rules.denied_in(b"." * before + b"FIXME" + b"." * 5000) is None
    assert rules.denied_in(b"x" * before + b"NEVER" + b"." * 5000) is None


@pytest.mark.parametrize("before", [3500, 3584, 3585, 3700, 4000, 7100, 7169])
def test_a_match_of_512_bytes_is_found_across_windows(before: int) -> None:
    assert with_expressions(b"a{512}").denied_in(b"." * before + b"a" * 512 + b"." * 6000) == 0


def test_an_empty_line_is_searched_too() -> None:
    assert with_expressions(b"^$").denied_in(b"") == 0


def test_rules_that_forbid_nothing_are_false() -> None:
    assert not ContentRules(False, False, ())
    assert ContentRules(False, False, (re.compile(b"x"),))
    assert ContentRules(True, False, ())
    assert ContentRules(False, True, ())


PIECES = [
    *(token.encode() for _, token in POSITIVES),
    *(text.encode() for _, text in NEAR_MISSES),
    b"<" * 7,
    b">" * 7 + b" x",
    b"TODO",
    b"x",
    b" ",
    b"\r",
    b"",
]


@settings(max_examples=often(200))
@given(
    st.lists(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=3).map(b"".join), max_size=6)
)
def test_no_line_that_a_rule_objects_to_is_missed_among_the_suspects(lines: list[bytes]) -> None:
    rules = ContentRules(True, True, (re.compile(b"TODO"),))
    lines = [line.replace(b"\n", b"") for line in lines]
    objected = {
        index
        for index, line in enumerate(lines)
        if rules.secret_in(line) or is_conflict_marker(line) or rules.denied_in(line) is not None
    }
    assert objected <= set(rules.suspects(lines))
    run = b"".join(b"+" + line + b"\n" for line in lines)
    assert rules.may_suspect(run, 0, len(run))


@pytest.mark.parametrize("piece", PIECES)
def test_a_glance_at_a_run_of_added_lines_misses_none_that_is_suspect(piece: bytes) -> None:
    rules = ContentRules(True, True, ())
    before, run = b"+clean\n", b"+clean\n+" + piece + b"\n"
    assert rules.may_suspect(before + run, len(before), len(before + run)) or not rules.suspects([piece])
    assert not rules.may_suspect(run + before, len(run), len(run + before))
