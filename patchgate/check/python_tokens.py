"""A lexer that splits Python source into statements, with their indentation and tokens.

Python's own parser is not used: its result depends on the running version, and it cannot read files for a
newer one. One pass, linear in the size, for any bytes. `python_statements` says what statements mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchgate.values import dataclass

_TOKEN = re.compile(
    r"""(?P<string>[A-Za-z]{0,2}(?:\"{3}|'{3}|"|'))
    |(?P<name>[^\W\d]\w*+)
    |(?P<space>[ \t\f]++|\\\n|\#[^\n]*+)
    |(?P<newline>\n)
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<other>\d[\w.]*+|.)""",
    re.VERBOSE | re.DOTALL,
)
# What ends a string, or hides what would: by its quotes. No possessive groups: Python 3.11.2 misreads them.
_STOPS = {
    quotes: re.compile(rf"\\.|{quotes}" + (r"|\n" if len(quotes) == 1 else ""), re.DOTALL)
    for quotes in ('"', "'", '"""', "'''")
}
# The same in the text of a formatted string, where braces begin an expression, and what counts in that.
_FORMATTED_STOPS = {
    quotes: re.compile(
        rf"\\[^{{}}]|\{{\{{|\}}\}}|\{{|{quotes}" + (r"|\n" if len(quotes) == 1 else ""), re.DOTALL
    )
    for quotes in _STOPS
}
_IN_BRACES = re.compile(r"[A-Za-z]{0,2}(?:\"{3}|'{3}|[\"'])|[{}]")
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# https://peps.python.org/pep-0263/: in the first line, or in the second where the first has no statement.
_ENCODING = re.compile(r"(?:[ \t\f]*+(?:#[^\n]*+)?\n)?[ \t\f]*+#[^\n]*?coding[:=][ \t]*+([-\w.]++)", re.ASCII)
_READ = re.compile(
    r"(?:utf-?8(?:-sig)?|latin-?1|iso-?8859-1|iso-latin-1|(?:us-)?ascii)(?:-(?:unix|dos|mac))?"
)
_OPENING = frozenset(
    {"if", "elif", "else", "for", "while", "try", "except", "finally", "with", "def", "class"}
)
_SOFT = frozenset({"match", "case"})


@dataclass(frozen=True, slots=True)
class SourceStatement:
    """One statement, or the head of a compound one.

    Args:
        indent: its indentation; statements with more belong to the head above, also on the same line.
        line: of its first token, from 1.
        tokens: at least one; comments and spaces are none.
        is_head: it may have a body.
    """

    indent: int
    line: int
    tokens: list[str]
    is_head: bool


def text_of(content: bytes) -> str:
    """Return a file as Python reads it, with one kind of line end."""
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def is_readable(text: str) -> bool:
    """Return whether a file's declared encoding keeps ASCII as it is; in UTF-7 a comment can be code."""
    found = _ENCODING.match(text)
    return found is None or _READ.fullmatch(found[1].lower().replace("_", "-")) is not None


def statements_of(text: str) -> Iterator[SourceStatement]:
    """Cut a text into statements."""
    for indent, line, tokens in _logical_lines(text):
        # Twice, so that a body on the line of its head is between the head and the next indentation.
        under, rest = 2 * indent, tokens
        if end := _end_of_head(tokens):
            yield SourceStatement(under, line, tokens[:end], True)
            under, rest = under + 1, tokens[end:]
        for part in split(rest, ";"):
            if part:
                yield SourceStatement(under, line, part, False)


def split(tokens: list[str], separator: str) -> list[list[str]]:
    """Split tokens at a separator outside brackets; at least one part."""
    parts: list[list[str]] = []
    depth = start = 0
    for index, token in enumerate(tokens):
        depth = deeper(depth, token)
        if token == separator and depth == 0:
            parts.append(tokens[start:index])
            start = index + 1
    parts.append(tokens[start:])
    return parts


def deeper(depth: int, token: str) -> int:
    """Return the depth of brackets after a token."""
    if token in {"(", "[", "{"}:
        return depth + 1
    return max(0, depth - 1) if token in {")", "]", "}"} else depth


def packed(tokens: list[str]) -> str:
    """Write tokens with a space only where two would become one."""
    pieces: list[str] = []
    after_word = False
    for token in tokens:
        if after_word and (token[0].isalnum() or token[0] in "_\"'"):
            pieces.append(" ")
        pieces.append(token)
        after_word = token[-1].isalnum() or token[-1] == "_"
    return "".join(pieces)


def _end_of_head(tokens: list[str]) -> int:
    """Count the tokens of a compound statement's head with its colon; 0 for another statement."""
    keyword = tokens[1] if tokens[0] == "async" and len(tokens) > 1 else tokens[0]
    if keyword not in _OPENING and keyword not in _SOFT:
        return 0
    depth = 0
    for index, token in enumerate(tokens):
        depth = deeper(depth, token)
        if token == ":" and depth == 0 and tokens[index + 1 : index + 2] != ["="]:
            # `match: int` is a name.
            return 0 if keyword in _SOFT and index == 1 else index + 1
    return 0


def _logical_lines(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Cut a text into logical lines (indentation, number, tokens); brackets and backslashes join some."""
    tokens: list[str] = []
    position, number, first, indent, depth = 0, 1, 1, 0, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None
        kind, token = match.lastgroup, match[0]
        position = match.end()
        if kind == "string":
            ended = _end_of_string(text, position, token)
            token, position = token + text[position:ended], ended
        if kind == "newline":
            if depth == 0:
                if tokens:
                    yield indent, first, tokens
                tokens, indent = [], 0
        elif kind == "space":
            # Where a backslash joins an empty line to the next, the first spaces count.
            if not tokens and indent == 0 and token[0] in " \t\f":
                indent = len(token.replace("\f", "").expandtabs(8))
        else:
            if not tokens:
                first = number
            depth = deeper(depth, token)
            tokens.append(token)
        number += token.count("\n")
    if tokens:
        yield indent, first, tokens


def _end_of_string(text: str, position: int, opening: str) -> int:
    """Find the place behind a string; one that is never closed ends with its line, or with the text."""
    quotes = opening.lstrip(LETTERS)
    if not {"f", "t"}.isdisjoint(opening[: -len(quotes)].lower()):
        return _end_of_formatted(text, position, quotes)
    for found in _STOPS[quotes].finditer(text, position):
        if found[0] == "\n":
            return found.start()
        if found[0] == quotes:
            return found.end()
    return len(text)


def _end_of_formatted(text: str, position: int, quotes: str) -> int:
    """Find the end of a formatted string, whose expressions may contain strings with the same quotes."""
    # The quotes of each string that is open, and an empty text for each open brace.
    within = [quotes]
    while within:
        found = (_FORMATTED_STOPS[within[-1]] if within[-1] else _IN_BRACES).search(text, position)
        if found is None:
            return len(text)
        token, position = found[0], found.end()
        if token == "{":
            within.append("")
        elif token == "}" or token == within[-1]:
            within.pop()
        elif token == "\n":
            return found.start()
        elif not within[-1]:
            inner = token.lstrip(LETTERS)
            if {"f", "t"}.isdisjoint(token[: -len(inner)].lower()):
                position = _end_of_string(text, position, token)
            else:
                within.append(inner)
    return position
