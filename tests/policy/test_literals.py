"""Literals of regular expressions: one of them stands in every line that matches."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from patchgate.policy.content_rules import SECRET_FORMS
from patchgate.policy.regular_expressions import MOST, check_expression, literals_of
from patchgate.policy.validators import TextError
from tests.amount import often


def texts_of(expression: bytes) -> set[bytes] | None:
    found = literals_of(expression)
    if found is None:
        return None
    assert not found.ignore_case
    return set(found.texts)


# ---- expression by expression -----------------------------------------------------------------------------

# No two begin with the same letter: `re` reads `word1|word2` as `word(?:1|2)`.
WORDS = [b"%cword" % (64 + number) for number in range(MOST + 1)]
WORDS[MOST - 5 :] = [b"%cword" % (97 + number) for number in range(6)]

CASES: list[tuple[bytes, set[bytes] | None]] = [
    (b"TODO", {b"TODO"}),
    (rb"\bTODO\b|FIXME", {b"TODO", b"FIXME"}),
    (rb"console\.(log|debug)\(", {b"console.log(", b"console.debug("}),
    (rb"https?://internal", {b"http://internal", b"https://internal"}),
    (rb"password\s*=\s*\S+", {b"password"}),
    (rb"[\w.]+@corp\.example", {b"@corp.example"}),
    (rb"^[ \t]*import pdb", {b"import pdb"}),
    (rb"(?P<name>ab)[^x](cd)e", {b"cde"}),
    (rb"(?>ab|cd)x++y", {b"ab", b"cd"}),
    (rb"(?<=secret=)\S+", {b"secret="}),
    (rb"a(?!b)c(?<!d)e", {b"ace"}),
    (rb"(?x) a b  # c", {b"ab"}),
    (rb"foo+bar", {b"bar"}),
    (rb"(ab){2}c", {b"ababc"}),
    (rb"x{2,5}y", {b"xx"}),
    (rb"(?:abc)+?d", {b"abc"}),
    (rb"[sr]k_live_", {b"sk_live_", b"rk_live_"}),
    (rb"v[0-9].[0-9]-rc", {b"%d-rc" % digit for digit in range(10)}),
    (rb"long-enough[0-9]", {b"long-enough%d" % digit for digit in range(10)}),
    (rb"longenough\d+verylongtext[0-9]", {b"longenough"}),
    (rb"\t", {b"\t"}),
    (rb"\r$", {b"\r"}),
    (rb"verylongtext[0-9].*longenough", {b"longenough"}),
    (b"a{512}", {b"a" * 64}),
    (b"a{4000000000}", {b"a" * 64}),
    (b"x" * 70 + b".", {b"x" * 64}),
    (rb"x(abc|)", {b"x", b"xabc"}),
    (rb"(?:)", None),
    (rb"^$", None),
    (rb"\s+$", None),
    (rb"[^a]b?c*", None),
    (rb"(abc)?", None),
    (rb"x{0}", None),
    (rb"abc|.", None),
    (rb"(?!)", None),
    (rb"(?P<n>a)(?P=n)", None),
    (rb"(a)?(?(1)b|c)ddd", None),
    (rb"(?L)abc", None),
    (b"|".join(WORDS[:MOST]), set(WORDS[:MOST])),
    (b"|".join(WORDS), None),
    (b"(" + b"|".join(WORDS) + b")x", {b"x"}),
    (b"[A-Z0-9]x", {b"x"}),
    (b"[A-Z0-9]", None),
]


@pytest.mark.parametrize(("expression", "texts"), CASES, ids=[repr(each[0])[:40] for each in CASES])
def test_the_longest_texts_that_every_match_holds_are_found(
    expression: bytes, texts: set[bytes] | None
) -> None:
    assert texts_of(expression) == texts


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        (b"(?i)Api[_-]?Key", {b"apikey", b"api_key", b"api-key"}),
        (b"Foo(?i:Bar)Baz", {b"foobarbaz"}),
        (b"(?i:X).LongerText", {b"longertext"}),
        (b"(?i)(?-i:Foo)", {b"foo"}),
    ],
)
def test_where_any_part_ignores_case_the_texts_are_in_lower_case(
    expression: bytes, texts: set[bytes]
) -> None:
    found = literals_of(expression)
    assert found is not None
    assert found.ignore_case
    assert found.texts == texts


def test_an_expression_that_is_nested_too_deep_names_nothing() -> None:
    assert literals_of(b"(" * 5000 + b"abc" + b")" * 5000) is None


def test_no_expression_stands_for_more_texts_than_may_be_searched() -> None:
    for expression, _ in CASES:
        assert len(texts_of(expression) or ()) <= MOST


def test_every_form_of_secret_needs_something() -> None:
    assert [form.name for form in SECRET_FORMS if not texts_of(form.expression.pattern)] == []


# ---- whatever matches holds one of them -------------------------------------------------------------------

LETTERS = st.sampled_from(["a", "b", "ab", "aB", "TODO", "x-y", "=", "0"])
CLASSES = st.sampled_from(
    [".", r"\d", r"\w", "[ab]", "[^ab]", "[a-c]", "[A-Za-z]", r"[\da]", r"\S", "[aB-D]", r"\t", r"\."]
)
EDGES = st.sampled_from([r"\b", r"\B"])
REPEATS = st.sampled_from(
    ["?", "*", "+", "{2}", "{0}", "{1,3}", "{0,2}", "{2,}", "??", "*?", "+?", "{1,2}?", "?+", "*+", "++"]
)
GROUPS = st.sampled_from(["(%s)", "(?:%s)", "(?i:%s)", "(?>%s)", "(?s:%s)", "(?=%s)", "(?!%s)", "(?-i:%s)"])
ATOMS = st.one_of(LETTERS, LETTERS, LETTERS, CLASSES, EDGES)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join).map("(?:{})".format),
        st.tuples(GROUPS, inner).map(lambda pair: pair[0] % pair[1]),
        st.tuples(inner, REPEATS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(LETTERS, REPEATS).map("".join),
    )


EXPRESSIONS = st.tuples(
    st.sampled_from(["", "", "(?i)", "(?x)", "(?s)", "(?m)"]),
    st.sampled_from(["", "", "", "^", r"\A"]),
    st.lists(st.recursive(ATOMS, grown, max_leaves=8), min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "", "", "$", r"\Z"]),
).map("".join)


def checked(text: str) -> re.Pattern[bytes] | None:
    try:
        return re.compile(check_expression(text).encode())
    except TextError:
        return None


COMPILED = EXPRESSIONS.map(checked).filter(lambda found: found is not None)
LINES = st.lists(
    st.sampled_from(["a", "b", "aB", "AB", "todo", "TODO", "x-y", "X-Y", "=", "0", " ", "\t", "c", "."]),
    max_size=10,
).map(lambda parts: "".join(parts).encode())


@settings(
    max_examples=often(500),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(st.data(), COMPILED)
def test_a_line_that_matches_holds_one_of_the_texts(
    data: st.DataObject, expression: re.Pattern[bytes]
) -> None:
    line = data.draw(st.from_regex(expression) | LINES).replace(b"\n", b"")
    literals = literals_of(expression.pattern)
    if expression.search(line) is None or literals is None:
        return
    event("matches, and has literals")
    text = line.lower() if literals.ignore_case else line
    assert any(literal in text for literal in literals.texts), (line, literals)


@settings(max_examples=often(300))
@given(st.text(string.ascii_letters + string.digits + "-_=", min_size=1, max_size=64))
def test_plain_text_stands_for_itself(text: str) -> None:
    assert texts_of(text.encode()) == {text.encode()}
