"""What holds for every reply: print then read, nothing stumbles, linear time, the grammar on paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, SupportsIndex
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.git.quoting import is_printable
from patchgate.patches import reply_grammar
from patchgate.patches.reply_actions import ACTIONS, read_reply
from patchgate.patches.reply_grammar import print_block, read_blocks
from patchgate.report.rules import RULES, Stage
from tests.amount import often

NAMES = st.text(st.characters(exclude_characters='<>"\n', codec="utf-8"), max_size=20)
# Random text hardly ever holds a tag, so tags and their pieces are dealt in.
PIECES = (
    "<function=",
    "<function=noop>",
    "<function=repair>",
    "</function>",
    '<param name="',
    '<param name="reason">',
    '<param name="subplan">',
    '<param name="edits">',
    "</param>",
    "<![CDATA[",
    "]]>",
    "]]",
    "]",
    ">",
    "<",
    "\n",
    "\r\n",
    " ",
    "x",
    "1",
    "{}",
    '["a"]',
    "\x1b",
    "é",
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


@settings(deadline=None, max_examples=often(300))
@given(st.text(min_size=1, max_size=20).filter(lambda name: not set('<>"\n') & set(name)), st.data())
def test_what_is_printed_is_read_again(name: str, data: st.DataObject) -> None:
    """E20: whatever the values hold, CDATA carries it byte for byte."""
    written = data.draw(st.lists(st.tuples(NAMES, TEXTS), max_size=5))
    parameters = [(key, text.encode("utf-8")) for key, text in written]
    for plain in (False, True):
        blocks, faults = read_blocks(print_block(name, parameters, plain=plain))
        assert faults == ()
        (block,) = blocks
        assert block.name == name
        assert [(each.name, each.value) for each in block.parameters] == parameters
        assert block.is_whole


@settings(deadline=None, max_examples=often(300))
@given(TEXTS, TEXTS)
def test_texts_of_a_reply_come_through_cdata_as_they_are(target: str, intent: str) -> None:
    """E20."""
    raw = print_block("memory", [("target", target.encode()), ("intent", intent.encode())])
    reading = read_reply(raw)
    if target.strip(" \t\r\n") and intent.strip(" \t\r\n"):
        assert (reading.params, reading.faults) == ({"target": target, "intent": intent}, ())
    else:
        assert {fault.rule for fault in reading.faults} == {"missing-required-param"}


@settings(deadline=None, max_examples=often(1000))
@given(TEXTS.map(lambda text: text.encode("utf-8")) | st.binary())
def test_no_input_makes_it_stumble_and_every_refusal_is_whole(raw: bytes) -> None:
    """E2-E7: it holds with a known action, or rules of the parse stage say why not, on lines that exist."""
    reading = read_reply(raw)
    if not reading.faults:
        assert reading.action in {action.name for action in ACTIONS}
        return
    assert reading.proposal is None
    for fault in reading.faults:
        assert RULES[fault.rule].stage is Stage.PARSE
        assert fault.line is not None
        assert 1 <= fault.line <= raw.count(b"\n") + 1
        assert all(is_printable(character) or character == "\t" for character in fault.message + fault.hint)


_SPACE = r"[ \t\r\n]*"
_TEXT = r'(?:(?!<!\[CDATA\[|</param>|<param name="|</function>|<function=).)*'
_CDATA = r"<!\[CDATA\[(?:(?!\]\]>).)*\]\]>"
_VALUE = rf"(?:{_TEXT}|{_SPACE}(?:{_CDATA}{_SPACE})+)"
_PARAMETER = rf'<param name="([^"<>\n]*)">{_VALUE}</param>{_SPACE}'
_REPLY = rf"{_SPACE}<function=[^<>\n]*>{_SPACE}((?:{_PARAMETER})*)</function>{_SPACE}"


def plainly(raw: str) -> list[str] | None:
    """Read the names of the parameters by a backtracking expression, the grammar as it stands on paper."""
    found = re.fullmatch(_REPLY, raw, re.DOTALL)
    return None if found is None else re.findall(_PARAMETER, found[1], re.DOTALL)


@st.composite
def nearly_replies(draw: st.DrawFn) -> str:
    """Deal a reply that holds, then put a few pieces in or take some out."""
    texts = st.sampled_from(("", "a", " \n", "<b> ]]", "]]>", "&lt;", "\r\n"))
    section = texts.filter(lambda text: text != "]]>").map(lambda text: ("<![CDATA[", text, "]]>", "\n"))
    value = st.one_of(st.tuples(texts), st.lists(section, max_size=3).map(lambda all_: tuple(chain(*all_))))
    parameter = value.map(lambda pieces: ('<param name="reason">', *pieces, "</param>", "\n"))
    pieces = ["<function=noop>", *chain(*draw(st.lists(parameter, max_size=3))), "</function>"]
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(pieces) - 1))
        if draw(st.booleans()):
            pieces.insert(place, draw(st.sampled_from(PIECES)))
        else:
            pieces[place] = ""
    return "".join(pieces)


@settings(deadline=None, max_examples=often(500))
@given(nearly_replies())
def test_a_form_holds_exactly_where_the_grammar_on_paper_says_so(raw: str) -> None:
    """E2, E3."""
    blocks, faults = read_blocks(raw.encode("utf-8"))
    names = plainly(raw)
    assert (faults == ()) == (names is not None)
    if names is not None:
        (block,) = blocks
        assert [each.name for each in block.parameters] == names


# Time: the bytes that are looked at, counted.


class Counted(bytes):
    """Bytes that count how many of them were searched."""

    looked_at = 0

    def find(self, sub: Any, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /) -> int:
        """Search, and count how far."""
        found = super().find(sub, start, end)
        Counted.looked_at += (len(self) if found < 0 else found) - int(start or 0)
        return found

    def count(self, sub: Any, start: SupportsIndex | None = 0, end: SupportsIndex | None = None, /) -> int:
        """Count, and count how far."""
        Counted.looked_at += max(0, (len(self) if end is None else int(end)) - int(start or 0))
        return super().count(sub, start, end)


class CountedPattern:
    """An expression that counts how many bytes it searched."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern

    def search(self, raw: bytes, start: int = 0, end: int | None = None) -> re.Match[bytes] | None:
        """Search, and count how far."""
        stop = len(raw) if end is None else end
        found = self._pattern.search(raw, start, stop)
        Counted.looked_at += (stop if found is None else found.end()) - start
        return found


@contextmanager
def counting() -> Iterator[None]:
    Counted.looked_at = 0
    with (
        mock.patch.object(reply_grammar, "_TAG", CountedPattern(reply_grammar._TAG)),
        mock.patch.object(reply_grammar, "_TEXT", CountedPattern(reply_grammar._TEXT)),
    ):
        yield


HEAD = b'<function=noop><param name="reason">'
HOSTILE = {
    "tags that do not end": (b"", b"<function="),
    "blocks": (b"", b"<function=noop></function>"),
    "parameters": (b"<function=noop>", b'<param name="reason"></param>'),
    "parameters that do not end": (b"<function=noop>", b'<param name="reason">'),
    "sections": (HEAD, b"<![CDATA[]]>"),
    "sections that end in brackets": (HEAD, b"<![CDATA[]]]]>"),
    "sections that do not end": (HEAD, b"<![CDATA["),
    "sections outside": (b"<function=noop>x", b"<![CDATA[]]>"),
    "a section of brackets": (HEAD + b"<![CDATA[", b"]]"),
    "sections with space between": (HEAD, b"<![CDATA[]]> \n"),
    "a value of brackets": (HEAD, b"<"),
    "blocks in a value": (HEAD, b"<function=a>"),
    "ends": (b"<function=noop>", b"</param>"),
    "space": (b"", b" \n"),
    "space inside": (b"<function=noop>", b"\r\n"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("tail", [b"", b"</param></function>"], ids=["open", "closed"])
def test_no_byte_is_looked_at_more_than_a_few_times(name: str, tail: bytes) -> None:
    """E2: linear time, whatever was sent."""
    head, unit = HOSTILE[name]
    size = 300_000
    raw = Counted(head + unit * (size // len(unit)) + tail)
    with counting():
        read_blocks(raw)
    assert 0 < Counted.looked_at <= 6 * len(raw)


def test_the_largest_reply_of_the_worst_kind_is_read() -> None:
    """E2."""
    section = b"<![CDATA[]]]]>"
    room = reply_grammar.MAX_REPLY_BYTES - len(HEAD) - len(b"</param></function>")
    raw = HEAD + section * (room // len(section)) + b"</param></function>"
    assert read_reply(raw).params == {"reason": "]]" * (room // len(section))}
