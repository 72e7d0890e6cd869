"""The summary in Markdown: short whatever comes in, refusals first, and nothing of a repository is markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from patchgate.report.markdown import MOST_LINES, code, render
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, Report
from tests.report.verdict_reports import BLIND, finding, hostile, judged, report
from tests.report.verdict_reports import HOSTILE as NAMES

# As GitHub reads it: tables, strikethrough and links without brackets too.
PARSER = MarkdownIt("gfm-like", {"linkify": False, "html": True})
OURS = {"paragraph", "heading", "bullet_list", "list_item", "inline", "text", "code_inline", "strong"}
HOSTILE = (
    "`",
    "``` \n# x",
    "a|b|c",
    "<img src=x onerror=alert(1)>",
    "</code><script>alert(1)</script>",
    "[x](https://evil.example)",
    "https://evil.example",
    "@everyone",
    "#1 !2 &amp; &#64;x",
    "a\nb\r\n\n- c",
    "`@x`",
    " `` ` ",
    "\\",
    "\\`",
    "---",
    "$(id)",
    "\x1b[31m\u202e\u2028",
    "~~a~~ **b** __c__",
    "<!-- -->",
    "|---|",
)
TEXT = st.text(max_size=40) | st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join)


def tokens(text: str) -> list[Token]:
    return [inner for outer in PARSER.parse(text) for inner in (outer, *(outer.children or []))]


def kinds(text: str) -> set[str]:
    return {token.type.removesuffix("_open").removesuffix("_close") for token in tokens(text)}


def found(text: str = "m", level: Level = Level.ERROR, name: bytes = b"a") -> Finding:
    return finding(name=name, level=level, message=text, hint=text or None)


@given(TEXT)
def test_a_code_span_is_one_token_that_shows_the_text(text: str) -> None:
    (paragraph,) = [token for token in PARSER.parse(f"x {code(text)} y") if token.type == "inline"]
    first, span, last = paragraph.children or []
    assert (first.type, first.content, span.type, last.content) == ("text", "x ", "code_inline", " y")
    if text.isascii() and text.isprintable() and text.strip() and "##" not in text and len(text) < 300:
        assert span.content.strip() == text.strip()


@given(TEXT, TEXT, TEXT)
def test_nothing_of_a_repository_becomes_markup(message: str, name: str, warning: str) -> None:
    raw = name.encode("utf-8", "surrogateescape").replace(b"\0", b"").replace(b"/", b"_")
    made = report(found(message, name=raw or b"a"))
    text = render(replace(made, warnings=(warning,), approve=warning))
    assert kinds(text) <= OURS
    ours = "".join(token.content for token in tokens(text) if token.type == "text")
    assert not any(each in ours for each in ("evil", "@", "<", "[x]"))


@pytest.mark.parametrize("bad", [*HOSTILE, *NAMES.values()])
def test_a_hostile_name_or_message_stays_inside_its_code_span(bad: str | bytes) -> None:
    text = render(hostile(bad.encode() if isinstance(bad, str) else bad))
    assert kinds(text) <= OURS
    assert [token.tag for token in tokens(text) if token.type == "heading_open"] == ["h3"]


@pytest.mark.parametrize("number", [0, 1, 40, 41, 5000])
def test_a_summary_is_short_and_counts_what_it_leaves_out(number: int) -> None:
    every = [found(f"m{at}", Level.WARNING) for at in range(number)] + [found("refused")] * number
    warnings = tuple(f"w{at}" for at in range(number))
    ranged = Report((judged(*every), judged(gates=BLIND)), warnings)
    assert render(replace(ranged, approve="x")).count("\n") <= MOST_LINES
    text = render(replace(report(*every), warnings=warnings, approve="x"))
    assert text.count("\n") <= MOST_LINES
    assert text.count("- **") == min(2 * number, 40)
    if number > 40:
        assert f"{number:,} warnings" in text
        assert "m0" not in text


def test_refusals_come_first_then_what_could_not_be_decided_then_warnings() -> None:
    others = judged(found("w", Level.WARNING), found("n", Level.NOTE), found("e"))
    text = render(Report((judged(gates=BLIND), others)))
    order = [text.index(f"**{word}**") for word in ("error", "undecided", "warning", "note")]
    assert order == sorted(order)
    assert text.startswith("### patchgate: rejected\n")


def test_a_line_with_a_secret_is_not_in_the_summary() -> None:
    assert "AKIA" not in render(report(finding("secret", excerpt=b"AKIA-secret")))
