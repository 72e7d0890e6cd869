"""Custom regular expressions: which are allowed, and which literals every match contains.

`literals_of` returns literals of which one is in every match. They are searched first; the expression runs
only where one is found. There are none if the parse tree of `re` has an unknown node. Source: Russ Cox,
"Regular Expression Matching with a Trigram Index".
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from patchgate.git.quoting import printable
from patchgate.policy.validators import TextError
from patchgate.values import dataclass

MAX_EXPRESSION = 500
# Such a repeat is as slow as an unbounded one: `(a{0,200})*b$` takes 0.4 s on 22 characters, 0.8 s on 23.
MANY_REPEATS = 100
Texts = frozenset[bytes]
MOST = 32
"""The most literals of an expression: each is a separate search."""
_LONGEST = 64
# A literal of this length is rare enough: beyond it, fewer literals are better than longer ones.
_LONG = 8
_NO_LITERALS: Texts = frozenset({b""})


def parse(expression: bytes) -> Any:
    """Parse a regular expression with `re`; the tree depends on the Python version."""
    return import_module("re._parser").parse(expression)


def check_expression(text: str) -> str:
    """Check a regular expression for bytes; see `validators`.

    Back-references and an unbounded repeat within another are refused: both can take exponential time.
    """
    if not text or len(text) > MAX_EXPRESSION:
        raise TextError(
            f"an expression must have 1 to {MAX_EXPRESSION} characters", "an empty one would match every line"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            flags = re.compile(text.encode()).flags
            unread = [(parse(text.encode()), False)]
    except (re.error, OverflowError, RecursionError, Warning) as error:
        reason = printable(str(error), 200)
        raise TextError(
            f"not a regular expression: {reason}", "a \\ before a character makes it literal"
        ) from None
    while unread:
        part, is_repeated = unread.pop()
        for operation, value in part:
            name = str(operation)
            flags |= value[1] if name == "SUBPATTERN" else 0
            if name.startswith("GROUPREF"):
                raise TextError("a back-reference can take exponential time", "repeat the text instead")
            repeats = name.endswith("_REPEAT") and int(value[1]) >= MANY_REPEATS
            if repeats and is_repeated and value[0] != value[1]:
                raise TextError(
                    "an unbounded repeat within another can take exponential time", "bound one of them"
                )
            unread.extend((inner, is_repeated or repeats) for inner in inner_parts(value, type(part)))
    if flags & re.LOCALE:
        raise TextError("the flag L makes an expression depend on the machine", "remove it")
    return text


def inner_parts(value: object, kind: type) -> Iterator[Any]:
    """Yield the parsed parts in the argument of an operation, which nests them in tuples and lists."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, tuple | list):
        for element in value:
            yield from inner_parts(element, kind)


@dataclass(frozen=True, slots=True)
class Literals:
    """The literals of an expression; every line that it matches contains one of them.

    With `ignore_case` they are in lower case, and are searched in lower-case text.
    """

    texts: Texts
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class _RegexPart:
    """A part of an expression: `exact` is everything it can match (None: too much to list).

    One of `needed` is in or next to every match; if one of them is empty, they are useless.
    """

    exact: Texts | None
    needed: Texts = _NO_LITERALS


class _UnknownError(Exception):
    """The parse tree contains an unknown node."""


def literals_of(expression: bytes) -> Literals | None:
    """Return literals of which at least one is in every matching line; None if there are none."""
    try:
        parsed = parse(expression)
        reader = _RegexReader(parsed.state.flags)
        needed = reader.read(parsed).needed
    except (_UnknownError, RecursionError):
        return None
    if b"" in needed or reader.flags & re.LOCALE:
        return None
    # If one part ignores case, treat all parts so: lower case finds more, never less.
    ignore_case = bool(reader.flags & re.IGNORECASE)
    return Literals(frozenset(map(bytes.lower, needed)) if ignore_case else needed, ignore_case)


class _RegexReader:
    """Walks a parsed expression and collects the flags of its groups; the caller handles case."""

    def __init__(self, flags: int) -> None:
        self.flags = flags

    def read(self, items: Iterable[tuple[object, Any]]) -> _RegexPart:
        """Read a sequence of parsed items."""
        return _joined(self._item(str(operation), value) for operation, value in items)

    def _item(self, operation: str, value: Any) -> _RegexPart:
        match operation:
            case "LITERAL":
                return _RegexPart(frozenset({bytes([value])}))
            case "NOT_LITERAL" | "ANY":
                return _RegexPart(None)
            case "IN":
                return _RegexPart(_members(value))
            case "AT" | "ASSERT_NOT":
                return _RegexPart(_NO_LITERALS)
            case "ASSERT":
                # The text of a lookahead is in the line too, though not in the match.
                return _RegexPart(_NO_LITERALS, self.read(value[1]).needed)
            case "SUBPATTERN":
                self.flags |= value[1]
                return self.read(value[3])
            case "ATOMIC_GROUP":
                return self.read(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return _repeated(self.read(value[2]), value[0], value[1])
            case "BRANCH":
                return _either([self.read(branch) for branch in value[1]])
            case _:
                raise _UnknownError(operation)


def _members(elements: Iterable[tuple[object, Any]]) -> Texts | None:
    """List the bytes of a class; None if it is negated, has a category, or is too large."""
    found: set[int] = set()
    for operation, value in elements:
        match str(operation):
            case "LITERAL":
                found.add(value)
            case "RANGE":
                found.update(range(value[0], value[1] + 1))
            case _:
                return None
    return frozenset(bytes([byte]) for byte in found) if len(found) <= MOST else None


def _joined(parts: Iterable[_RegexPart]) -> _RegexPart:
    """Join consecutive parts: `run` is what the last of them match together."""
    is_exact = True
    run = best = _NO_LITERALS
    for part in parts:
        best = _better(best, part.needed)
        if part.exact is not None and len(run) * len(part.exact) <= MOST:
            longer = frozenset(before + after for before in run for after in part.exact)
            if max(map(len, longer)) <= _LONGEST:
                run = longer
                continue
        is_exact = False
        best = _better(best, run)
        run = _NO_LITERALS if part.exact is None else part.exact
    return _RegexPart(run if is_exact else None, _better(best, run))


def _repeated(part: _RegexPart, least: int, most: int) -> _RegexPart:
    if least == 0:
        exact = part.exact | _NO_LITERALS if part.exact is not None and most == 1 else None
        return _RegexPart(exact)
    whole = _joined([part] * min(least, _LONGEST))
    return whole if least == most <= _LONGEST else _RegexPart(None, whole.needed)


def _either(branches: list[_RegexPart]) -> _RegexPart:
    exact: Texts | None = frozenset()
    needed: Texts = frozenset()
    for branch in branches:
        exact = None if exact is None or branch.exact is None else exact | branch.exact
        needed |= branch.needed
    return _RegexPart(
        exact if exact is not None and len(exact) <= MOST else None,
        needed if len(needed) <= MOST else _NO_LITERALS,
    )


def _better(one: Texts, other: Texts) -> Texts:
    """Choose the literals that occur less often by chance: the longer ones, then the fewer."""
    return max(one, other, key=lambda texts: (min(_LONG, *map(len, texts)), -len(texts)))
