"""The test functions of a Python file, by a lexer of its own: names, assertions, skips.

Decides what a test function is (`def test…`, async too, at the top or in classes), what counts as an
assertion in it, and whether it is skipped. Python's own parser is not asked: its answer would depend on the
version that runs, and a file for a newer one would have no tests. One pass, linear in the size; no Python
has no tests.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<string>[A-Za-z]{0,2}(?:\"{3}|'{3}|"|'))
    |(?P<name>[^\W\d]\w*+)
    |(?P<space>[ \t\f]++|\\\r?\n|\#[^\n]*+)
    |(?P<newline>\r?\n)
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<other>\d[\w.]*+|.)""",
    re.VERBOSE | re.DOTALL,
)
_STRING_ENDS = {
    '"': re.compile(r'(?:[^"\\\n]|\\.)*+"?', re.DOTALL),
    "'": re.compile(r"(?:[^'\\\n]|\\.)*+'?", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*+(?:""")?', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*+(?:''')?", re.DOTALL),
}
_ASSERTING = frozenset({"raises", "warns", "fail", "deprecated_call"})
_SKIPPING = frozenset(
    {"skip", "skipif", "skipIf", "skipUnless", "skipTest", "SkipTest", "xfail", "expectedFailure"}
    | {"importorskip"}
)
_TRUE = re.compile(r"\(*(?:True|[1-9][0-9]*|not (?:False|0|None))\)*(?:,.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PythonTest:
    """One test function.

    Args:
        name: with the classes that it stands in: `TestShape.test_is_round`.
        line: of its `def`, from 1.
        assertions: how many; one that is true whatever happens (`assert True`) is none.
        is_skipped: it, its class or its file has a mark that skips it or expects it to fail, or it leaves or
            skips at its top.
        body: the SHA-256 of all of it but its name and its marks; comments and layout are no part of it.
        statements: its lines, the signature first, without comments, with spaces only where they must be.
    """

    name: str
    line: int
    assertions: int
    is_skipped: bool
    body: str
    statements: tuple[str, ...]

    @property
    def text(self) -> bytes:
        """The statements, one on each line."""
        return "\n".join(self.statements).encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class PythonTests:
    """The test functions of a file, and the number of assertions that stand outside of them."""

    functions: tuple[PythonTest, ...]
    elsewhere: int


@dataclass(slots=True)
class _Scope:
    """A class or function that is open: where it is indented, its name, what was found in it."""

    indent: int
    name: str
    is_class: bool
    is_skipped: bool
    line: int
    within: tuple[_Scope, ...]
    is_test: bool = False
    assertions: int = 0
    has_begun: bool = False
    statements: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """One logical line: its indentation, the number of its first line, its tokens."""

    indent: int
    number: int
    tokens: Sequence[str]


def read_tests(content: bytes) -> PythonTests:
    """Find the test functions of a Python file; of two with one name in one class the last counts."""
    reader = _Reader()
    for line in _logical_lines(content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")):
        reader.take(line)
    return reader.finish()


def tests_of(content: bytes) -> dict[str, PythonTest]:
    """Find the test functions of a Python file by their names."""
    return {test.name: test for test in read_tests(content).functions}


class _Reader:
    """Takes logical lines and sorts them into functions."""

    def __init__(self) -> None:
        self._open: list[_Scope] = []
        self._found: dict[str, _Scope] = {}
        self._marks: list[str] = []
        self._elsewhere = 0
        self._is_file_skipped = False

    def take(self, line: _Line) -> None:
        """Look at one more line."""
        while self._open and line.indent <= self._open[-1].indent:
            self._open.pop()
        test = next((scope for scope in self._open if scope.is_test), None)
        if test is not None:
            _add(test, line.tokens)
        elif line.tokens[0] == "@":
            self._marks.extend(line.tokens)
        else:
            self._outside(line)

    def finish(self) -> PythonTests:
        """Give what was found."""
        functions = tuple(
            PythonTest(
                name,
                scope.line,
                scope.assertions,
                self._is_file_skipped or any(each.is_skipped for each in (scope, *scope.within)),
                hashlib.sha256("\n".join(scope.statements).encode("utf-8", "surrogateescape")).hexdigest(),
                tuple(scope.statements),
            )
            for name, scope in self._found.items()
        )
        return PythonTests(functions, self._elsewhere)

    def _outside(self, line: _Line) -> None:
        """Look at a line that is in no test function: a definition, or something else."""
        tokens = line.tokens[1:] if line.tokens[0] == "async" and len(line.tokens) > 1 else line.tokens
        marks, self._marks = self._marks, []
        if tokens[0] in {"def", "class"} and len(tokens) > 1:
            self._define(line, tokens, marks)
            return
        self._elsewhere += _assertions(line.tokens)
        in_function = any(not scope.is_class for scope in self._open)
        if not in_function and _skips_all(line.tokens):
            if self._open:
                self._open[-1].is_skipped = True
            else:
                # Whatever stands above it was not run either; `if` before it makes it a condition.
                self._is_file_skipped = self._is_file_skipped or line.indent == 0

    def _define(self, line: _Line, tokens: Sequence[str], marks: Sequence[str]) -> None:
        name = tokens[1]
        is_class = tokens[0] == "class"
        skipped = not _SKIPPING.isdisjoint(marks)
        scope = _Scope(line.indent, self._qualified(name), is_class, skipped, line.number, tuple(self._open))
        in_classes = all(each.is_class for each in self._open)
        self._open.append(scope)
        if is_class:
            return
        signature, body = _split_definition(tokens[2:])
        if not (in_classes and name.startswith("test")):
            self._elsewhere += _assertions(tokens[2:])
            return
        scope.is_test = True
        scope.statements.append(_packed(signature))
        self._found.pop(scope.name, None)
        self._found[scope.name] = scope
        if body:
            _add(scope, body)

    def _qualified(self, name: str) -> str:
        above = next((scope.name for scope in reversed(self._open) if scope.is_class), None)
        return name if above is None else f"{above}.{name}"


def _add(test: _Scope, tokens: Sequence[str]) -> None:
    """Add a line to a test function; at its top it may skip all that follows."""
    test.statements.append(_packed(tokens))
    if not test.has_begun and not all(_is_string(token) for token in tokens):
        test.has_begun = True
        test.is_skipped |= tokens[0] == "return" or _calls_skip(tokens)
    test.assertions += _assertions(tokens)


def _assertions(tokens: Sequence[str]) -> int:
    """Count the names that assert something."""
    if not tokens or tokens[0] in {"import", "from"}:
        return 0
    found = sum(token.startswith("assert") or token in _ASSERTING for token in tokens)
    if found and tokens[0] == "assert" and _TRUE.fullmatch(_packed(tokens[1:])):
        found -= 1
    return found


def _packed(tokens: Sequence[str]) -> str:
    """Write tokens with a space only where two would become one."""
    pieces: list[str] = []
    after_word = False
    for token in tokens:
        if after_word and (token[0].isalnum() or token[0] in "_\"'"):
            pieces.append(" ")
        pieces.append(token)
        after_word = token[-1].isalnum() or token[-1] == "_"
    return "".join(pieces)


def _calls_skip(tokens: Sequence[str]) -> bool:
    """Tell whether a line without a condition skips: `pytest.skip(…)`, `raise unittest.SkipTest`."""
    return tokens[0] in {"pytest", "raise", "self", "unittest", *_SKIPPING} and not _SKIPPING.isdisjoint(
        tokens
    )


def _skips_all(tokens: Sequence[str]) -> bool:
    """Tell whether a line in a file or class skips everything in it: `pytestmark = pytest.mark.skip`."""
    if tokens[0] == "__test__":
        return tokens[-1] in {"False", "0", "None"}
    return _calls_skip(tokens) or (tokens[0] == "pytestmark" and not _SKIPPING.isdisjoint(tokens))


def _split_definition(tokens: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split what follows a function's name: the signature with its colon, and a body on the same line."""
    depth = 0
    for index, token in enumerate(tokens):
        if token in {"(", "[", "{"}:
            depth += 1
        elif token in {")", "]", "}"}:
            depth -= 1
        elif token == ":" and depth == 0:
            return tokens[: index + 1], tokens[index + 1 :]
    return tokens, ()


def _is_string(token: str) -> bool:
    return token[-1:] in {'"', "'"}


def _logical_lines(text: str) -> list[_Line]:
    """Cut a text into logical lines; brackets and backslashes join some, comments are left out."""
    lines: list[_Line] = []
    tokens: list[str] = []
    position, number, first, indent, depth = 0, 1, 1, 0, 0
    at_start = True
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None
        kind, token = match.lastgroup, match[0]
        position = match.end()
        if kind == "string":
            closed = _STRING_ENDS[token.lstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")]
            ended = closed.match(text, position)
            assert ended is not None
            token, position = token + ended[0], ended.end()
        if kind == "newline":
            if depth == 0:
                if tokens:
                    lines.append(_Line(indent, first, tokens))
                    tokens = []
                at_start, indent = True, 0
        elif kind == "space":
            if at_start and token[0] in " \t\f":
                indent = len(token.replace("\f", "").expandtabs(8))
        else:
            if not tokens:
                first = number
            at_start = False
            depth = max(0, depth + (kind == "open") - (kind == "close"))
            tokens.append(token)
        number += token.count("\n")
    if tokens:
        lines.append(_Line(indent, first, tokens))
    return lines
