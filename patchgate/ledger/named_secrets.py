"""Values beside a name that says that they are secret: `password=x`, `"token": "x"`, `--secret x`.

Decides where such a value begins and ends. A name counts by how it ends, in any case: `DB_PASSWORD` and
`accessToken` count. A value is masked unless it is shorter than four characters or plainly no value: a
constant (`None`), a placeholder (`<...>`, `***`, `$VAR`, `${{ secrets.X }}`), a name that ends in the same
word (`self.token = token`), an attribute of a usual object, or a call (`next(tokens)`). Everything else is
masked, so that source code loses a word here and there, but no password stays.

Every expression is bounded and is tried only where a name was found. What was masked is not searched again,
so the cost grows with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LEAST_VALUE = 4
MOST_VALUE = 16 << 10
_MOST_LOOK = 200
# Searching for these is fast; the expression after them is tried at their places alone.
_STEMS = (b"passw", b"passphrase", b"pwd", b"_pass", b"token", b"secret", b"key", b"auth", b"cookie")
_NAME = re.compile(
    rb"(?P<word>passw(?:or)?d|passphrase|pwd|_pass|token|secret|key|auth(?:orization)?|cookie)_?[0-9]{0,3}"
)
# Of keys only these are secret. Sought in the letters before `key`.
_KEY_OF = re.compile(rb"(?:api|access|private|secret|signing|encryption|auth|account)[_. -]?\Z")
_MOST_KEY_OF = 12
_CLOSE = rb"(?:\\{0,7}[\"'`]\]?)?"
_TYPE = rb"(?:optional\[)?(?:str|string|bytes|secretstr|any)\]?(?:[ \t]?\|[ \t]?(?:none|null|undefined))?"
_ASSIGNS = re.compile(
    _CLOSE
    + rb"[ \t]{0,8}(?P<sign>:[ \t]{0,4}"
    + _TYPE
    + rb"[ \t]{0,4}=|:=|=>|(?:[=!+?]|\|\|)?={1,2}|:(?!:))[ \t]{0,8}"
)
_FOLLOWS = re.compile(rb"(?:[\"'][ \t]{0,4},[ \t]{0,4}(?=[\"'])|[\"']?[ \t]{1,8}(?=[^\s-]))")
_OPTION = re.compile(rb"--[a-z0-9_-]{0,40}\Z")
_WORD_BEFORE = re.compile(rb"[a-z0-9_$]{0,60}\Z")
_QUOTE = re.compile(rb"[frbu]{0,2}(?P<quote>\\{0,7}(?:\"\"\"|'''|[\"'`]))")
_INSIDE = {
    quote: re.compile(rb"(?:[^%b\\\n]|\\[^\n]){0,%d}" % (quote, MOST_VALUE)) for quote in (b'"', b"'", b"`")
}
_SCHEME = re.compile(rb"(?:bearer|basic|digest|negotiate|token|apikey)[ \t]{1,8}")
# A backslash before a quote, or for the end of a line in JSON, ends a bare value.
_BARE = re.compile(rb"(?:[^\s\"'`\\<]|\\(?![\\nrt\"'`])){1,%d}" % MOST_VALUE)
_HEADER = re.compile(rb"(?:[^\r\n\"'`\\]|\\(?![\\nrt\"'`])){1,%d}" % MOST_VALUE)
_TRAILING = b",;:)]}>.\\"

_CONSTANTS = frozenset(
    b"""
    none null nil undefined true false void self this string bytes boolean integer number object optional
    required secretstr missing empty invalid expired unknown wrong incorrect must should cannot expected
    unexpected failed failure passed error success permission denied await async lambda yield typeof hidden
    redacted masked removed identifier anonymous default pass
    """.split()
)
_PLACEHOLDER = re.compile(
    rb"\*+|\.{3,}|x{4,}|-{3,}|\[?(?:redacted|masked|filtered|hidden)\]?|<[^<>\n]{0,200}>?"
    rb"|\$\{\{[^\n]{0,200}|\$?\{{1,2}[ \t]{0,4}[\w.:\[\]]{0,80}(?:[ \t]{0,4}\}{1,2})?|\$\([^\n]{0,200}"
    rb"|%(?:\([\w.]{0,80}\))?[srdq]|%\w{1,80}%",
    re.IGNORECASE,
)
_SHELL_NAME = re.compile(rb"\$[A-Z_][A-Z0-9_]{0,80}")
_PATH = re.compile(rb"[&*$@]{0,2}(?P<first>[a-z_]\w{0,80})(?:(?:\.|->|::)[a-z_]\w{0,80}){0,8}", re.IGNORECASE)
_OBJECTS = frozenset(
    b"""
    self cls this args kwargs argv os settings config conf cfg request req response options opts env environ
    process ctx context params data user client session app module obj
    """.split()
)
_CALL = re.compile(
    rb"[a-z_][\w.]{0,80}(?:\([^\n]{0,%d}?\)|\[[^\n]{0,%d}?\])(?=[\s.,;:)\]}\"']|\Z)"
    % (_MOST_LOOK, _MOST_LOOK),
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Name:
    """A name in a text: the word at its end, the whole word, the sign after it, where its value begins."""

    word: bytes
    whole: bytes
    sign: bytes
    value: int


def named_values(content: bytes) -> Iterator[tuple[int, int]]:
    """Find the values of secret names, each as a stretch of the text; some may overlap."""
    lower = content.lower()
    for stem in _STEMS:
        at = lower.find(stem)
        while at >= 0:
            name = _name_at(lower, at)
            end = at + len(stem)
            if name is not None:
                span = _value_of(content, lower, name)
                if span is not None:
                    yield span
                    end = span[1]
            at = lower.find(stem, end)


def _name_at(lower: bytes, at: int) -> _Name | None:
    """Read the name that ends with the word at a place, up to where its value begins."""
    named = _NAME.match(lower, at)
    if named is None:
        return None
    word = named["word"]
    if word == b"key" and _KEY_OF.search(lower[max(0, at - _MOST_KEY_OF) : at]) is None:
        return None
    follows = _ASSIGNS.match(lower, named.end())
    before = lower[max(0, at - 60) : at]
    if follows is None:
        if b"--" not in before or _OPTION.search(before) is None:
            return None
        follows = _FOLLOWS.match(lower, named.end())
        if follows is None:
            return None
        sign = b" "
    else:
        sign = follows["sign"]
    prefix = _WORD_BEFORE.search(before)
    whole = (prefix[0] if prefix is not None else b"") + named[0]
    return _Name(word, whole, sign, follows.end())


def _value_of(content: bytes, lower: bytes, name: _Name) -> tuple[int, int] | None:
    """Give the stretch of a name's value; None where it is plainly no value."""
    quoted = _QUOTE.match(lower, name.value)
    start = name.value if quoted is None else quoted.end()
    scheme = _SCHEME.match(lower, start)
    if quoted is not None:
        end = _end_of_quoted(content, start, quoted["quote"])
    elif name.sign in {b"==", b"===", b"!=", b"!=="}:
        # Of comparisons only the texts in quotes are masked.
        return None
    else:
        is_header = name.sign == b":" and name.word in {b"authorization", b"cookie"}
        is_header = is_header or name.word == b"passphrase"
        start = start if scheme is None else scheme.end()
        bare = (_HEADER if is_header else _BARE).match(content, start)
        end = start if bare is None else bare.end()
    start = start if scheme is None or scheme.end() > end else scheme.end()
    # What ends a sentence, a list or a call after a bare value is none of it.
    end = end if quoted is not None else start + len(content[start:end].rstrip(_TRAILING + b" \t"))
    if end - start < LEAST_VALUE or _is_readable(content, start, end, name, is_bare=quoted is None):
        return None
    return start, end


def _end_of_quoted(content: bytes, start: int, quote: bytes) -> int:
    """Find the end of a text in quotes: its closing quote, or where there is none the end of the line."""
    if quote in _INSIDE:
        inside = _INSIDE[quote].match(content, start)
        return start if inside is None else inside.end()
    stop = min(len(content), start + MOST_VALUE)
    at = content.find(quote, start, stop)
    # In JSON inside JSON a quote of the value has more backslashes than the one that ends it.
    while at > start and content[at - 1 : at] == b"\\":
        at = content.find(quote, at + 1, stop)
    if at >= 0 and len(quote.lstrip(b"\\")) == 3:
        return at
    line = content.find(b"\n", start, at if at >= 0 else stop)
    return line if line >= 0 else at if at >= 0 else stop


def _is_readable(content: bytes, start: int, end: int, name: _Name, *, is_bare: bool) -> bool:
    """Tell whether what stands after a name is plainly not the secret."""
    if end - start > _MOST_LOOK:
        return False
    value = content[start:end]
    if name.word == b"pwd" and value.startswith((b"/", b"~")):
        return True
    if value.lower() in _CONSTANTS or _PLACEHOLDER.fullmatch(value) or _SHELL_NAME.fullmatch(value):
        return True
    path = _PATH.fullmatch(value)
    if path is not None and _means_the_same(value, name):
        return True
    if not is_bare:
        return False
    if path is not None and path["first"].lower() in _OBJECTS and path["first"] != value:
        return True
    return _CALL.match(content, start, start + 2 * _MOST_LOOK) is not None


def _means_the_same(value: bytes, name: _Name) -> bool:
    """Tell whether a value is a name for the same: `password=db_password`, `token: apiToken`."""
    last = re.split(rb"\.|->|::|[$@&*]", value)[-1]
    bare = last.lower().rstrip(b"s_")
    word = name.word.lstrip(b"_")
    if bare in {name.whole, name.whole.strip(b"_"), word}:
        return True
    if not bare.endswith(word):
        return False
    border = len(bare) - len(word)
    return last[border - 1 : border] == b"_" or last[border : border + 1].isupper()
