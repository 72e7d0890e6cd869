"""Finds Python functions that do nothing: they raise NotImplementedError, or are only `...` or `pass`.

It uses the statements of `python_tokens` and not Python's own parser, whose result depends on the running
version. Abstract and overridden methods, overloads, methods of a Protocol and code for type checkers do not
count. A file is tokenized only if one of its lines may be such a body.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from itertools import accumulate, islice, takewhile
from typing import NamedTuple

from patchgate.check.python_tokens import LETTERS, SourceStatement, statements_of
from patchgate.check.python_tokens import text_of as text_for_python
from patchgate.policy.placeholder_markers import EMPTY_BODY, NOT_IMPLEMENTED

_RAISED = re.compile(rb"(?:\braise\b[^#\"']{0,200}?|^[ \t(]*(?:\w{1,60}\.){0,6})\bNotImplemented(?:Error)?\b")
# The head of a statement that is not a function: a body below it needs no closer check.
_OTHER_HEAD = re.compile(
    rb"(?:(?:if|elif|for|while|with|except|class|case|match|async[ \t]+(?:for|with))\b[^\"'#]*"
    rb"|else[ \t]*|try[ \t]*|finally[ \t]*|except[ \t]*):[ \t]*(?:#.*)?"
)
_WHOLE = re.compile(rb"(?:pass|\.\.\.)(?:[ \t]*#.*)?")
_MOST_ABOVE = 20
_LONGEST = 400
# The number of statements after which the clock is read.
_STEP = 256
_ABSTRACT = frozenset(
    {"abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod", "overload"}
    # These decorators use the name, the signature or the docstring of a function, not its body.
    | {"singledispatch", "singledispatchmethod", "hookspec"}
)
# The same for functions without parameters: groups of commands.
_GROUPS = frozenset({"group", "callback"})
_NO_OP_NAMES = frozenset({"noop", "no_op", "nop", "do_nothing"})
_NO_BODIES = frozenset({"class", "except", "for", "while"})
_NAMES = frozenset({"NotImplementedError", "NotImplemented"})
_QUOTE = re.compile(rb"\"|'")
_LINE_END = re.compile(rb"\r\n|\r|\n")


def no_timeout() -> bool:
    """Return that the time is not up."""
    return False


class EmptyFunction(NamedTuple):
    """A function that does nothing: the lines of its body and of its header, and the marker.

    `key` stays the same where the function moves or its signature changes: its name and the kind of its body.
    """

    line: int
    head: int
    marker: str
    key: bytes


def find_empty_functions(text: bytes, is_time_up: Callable[[], bool] = no_timeout) -> Iterator[EmptyFunction]:
    """Yield the functions of a file that do nothing.

    Args:
        text: UTF-8. Lines are counted from 1, by LF.
        is_time_up: called every few hundred statements; the search ends where it returns True.
    """
    suspects = _suspects(text, is_time_up)
    if not suspects or is_time_up():
        return
    statements: list[SourceStatement] = []
    for statement in statements_of(text_for_python(text)):
        statements.append(statement)
        if len(statements) % _STEP == 0 and is_time_up():
            return
    if not statements:
        return
    file = _File(statements)
    lines = _lines_of_git(text, file.statements)
    steps = 0
    for line in suspects:
        # A statement can begin before its line, and share it with others.
        first = lines[max(0, bisect_right(lines, line) - 1)]
        for index in range(bisect_left(lines, first), bisect_right(lines, first)):
            steps += 1
            if steps % _STEP == 0 and is_time_up():
                return
            if (found := file.body_of(index)) is not None:
                marker, header = found
                kind, name = file.statements[index].tokens[0], _name(file.statements[header].tokens)
                key = f"{name}\0{kind}".encode("utf-8", "surrogateescape")
                yield EmptyFunction(line=line, head=lines[header], marker=marker, key=key)


def _suspects(text: bytes, is_time_up: Callable[[], bool]) -> list[int] | None:
    """Find the lines that may be such a body; None if the time is up."""
    found: set[int] = set()
    steps = 0
    for literal, expression in (
        (b"pass", EMPTY_BODY.expression),
        (b"...", EMPTY_BODY.expression),
        (b"NotImplemented", _RAISED),
    ):
        number, counted, place = 1, 0, text.find(literal)
        while place >= 0:
            start = text.rfind(b"\n", 0, place) + 1
            end = text.find(b"\n", place)
            end = end if end >= 0 else len(text)
            line = text[start:end]
            steps += 1
            if steps % (16 * _STEP) == 0 and is_time_up():
                return None
            if expression.search(line) and not _is_under_other_head(text, start, line):
                number += text.count(b"\n", counted, start)
                counted = start
                found.add(number)
            place = text.find(literal, end)
    return sorted(found)


def _is_under_other_head(text: bytes, start: int, line: bytes) -> bool:
    """Return whether a line that is one whole statement belongs to a head that is not of a function.

    The head is the line above, without empty lines and comments.
    """
    if not _WHOLE.fullmatch(line.strip()):
        return False
    for _ in range(_MOST_ABOVE):
        if start == 0:
            return False
        begin = text.rfind(b"\n", 0, start - 1) + 1
        above = text[max(begin, start - _LONGEST) : start - 1].strip()
        if above and not (above.startswith(b"#") and _QUOTE.search(above) is None):
            return _OTHER_HEAD.fullmatch(above) is not None and _is_one_head(text, begin, above)
        start = begin
    return False


def _is_one_head(text: bytes, begin: int, above: bytes) -> bool:
    """Return whether a line is a whole head, and not the last line of a longer one, as of a function."""
    is_paired = all(
        above.count(one) == above.count(other) for one, other in ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
    )
    return is_paired and not text[max(0, begin - 3) : begin].rstrip(b"\r\n").endswith(b"\\")


def _lines_of_git(text: bytes, statements: list[SourceStatement]) -> list[int]:
    """Number the lines of statements by LF only; in Python a lone CR also ends a line."""
    if b"\r" not in text or text.count(b"\r") == text.count(b"\r\n"):
        return [statement.line for statement in statements]
    numbers = [1, *accumulate((end[0] != b"\r" for end in _LINE_END.finditer(text)), initial=1)]
    return [numbers[min(statement.line, len(numbers) - 1)] for statement in statements]


class _File:
    """The statements of a file, each with its parent."""

    def __init__(self, statements: list[SourceStatement]) -> None:
        self.statements = statements
        self._parents: list[int | None] = []
        self._children: dict[int | None, list[int]] = {}
        open_heads: list[int] = []
        for index, statement in enumerate(statements):
            while open_heads and statements[open_heads[-1]].indent >= statement.indent:
                open_heads.pop()
            parent = open_heads[-1] if open_heads else None
            self._parents.append(parent)
            self._children.setdefault(parent, []).append(index)
            open_heads.append(index)
        self._reported: set[int] = set()
        # Each answer about a function or a class is computed once.
        self._is_effective = cache(self._has_effect)
        self._is_exempt = cache(self._is_intended)
        self._is_interface = cache(self._is_interface_head)
        self._overridden: dict[tuple[str, str], bool] = {}
        self._knows_interfaces = any(
            statement.tokens[0] == "from" and statement.tokens[1:2] == ["zope"] for statement in statements
        )

    @cached_property
    def _subclasses(self) -> dict[str, set[int]]:
        """The classes whose heads name a base class, by its name."""
        found: dict[str, set[int]] = {}
        for index, statement in enumerate(self.statements):
            if statement.tokens[0] == "class":
                for token in statement.tokens[2:]:
                    found.setdefault(token, set()).add(index)
        return found

    @cached_property
    def _owners_by_method(self) -> dict[str, set[int]]:
        """The classes that have a method, by the name of the method."""
        found: dict[str, set[int]] = {}
        for parent, statement in zip(self._parents, self.statements, strict=True):
            if (
                parent is not None
                and _is_function(statement.tokens)
                and self.statements[parent].tokens[0] == "class"
            ):
                found.setdefault(_name(statement.tokens), set()).add(parent)
        return found

    def body_of(self, index: int) -> tuple[str, int] | None:
        """Return the marker and the function's head if a statement is the empty body of a function.

        Each function is reported once.
        """
        tokens = self.statements[index].tokens
        if _is_no_op(tokens):
            marker = EMPTY_BODY.name
        elif tokens[0] == "raise" and _raised(tokens) in _NAMES:
            marker = NOT_IMPLEMENTED.name
        else:
            return None
        owner = self._function(index)
        if owner is None or owner in self._reported or self._is_exempt(owner):
            return None
        if marker == EMPTY_BODY.name and (self._parents[index] != owner or self._is_effective(owner)):
            return None
        self._reported.add(owner)
        return marker, owner

    def _function(self, index: int) -> int | None:
        """Find the function of a statement; None inside a class, a handler or a loop."""
        above = self._parents[index]
        while above is not None and not _is_function(self.statements[above].tokens):
            if self.statements[above].tokens[0] in _NO_BODIES or self.statements[above].tokens[:2] == [
                "async",
                "for",
            ]:
                return None
            above = self._parents[above]
        return above

    def _has_effect(self, owner: int) -> bool:
        """Return whether a function has a statement that does something."""
        return any(
            not _is_no_op(tokens)
            and not _is_text(tokens)
            and tokens[0] not in {"del", "import", "from", "global", "nonlocal"}
            for tokens in (self.statements[child].tokens for child in self._children.get(owner, []))
        )

    def _is_intended(self, owner: int) -> bool:
        """Return whether a function is empty on purpose: abstract, for type checkers only, or by its name."""
        return (
            _name(self.statements[owner].tokens).strip("_") in _NO_OP_NAMES
            or self._is_marked(owner)
            or self._is_declared(owner)
            or self._is_overridden(owner)
        )

    def _is_marked(self, owner: int) -> bool:
        """Return whether a decorator makes a function abstract, or its body unnecessary."""
        siblings = self._children[self._parents[owner]]
        for place in range(bisect_left(siblings, owner) - 1, -1, -1):
            tokens = self.statements[siblings[place]].tokens
            if tokens[0] != "@":
                return False
            path = list(takewhile(lambda token: token != "(", tokens))
            if not _ABSTRACT.isdisjoint(path) or path[1:2] == ["abc"]:
                return True
            if path[-1] in _GROUPS and (path[1] == "click" or self._takes_nothing(owner)):
                return True
        return False

    def _takes_nothing(self, owner: int) -> bool:
        tokens = self.statements[owner].tokens
        place = tokens.index("(") if "(" in tokens else len(tokens)
        return tokens[place + 1 : place + 2] == [")"]

    def _is_declared(self, owner: int) -> bool:
        """Return whether a function is in a Protocol, or in code for type checkers only."""
        above = self._parents[owner]
        while above is not None:
            if self._is_interface(above):
                return True
            above = self._parents[above]
        return False

    def _is_interface_head(self, index: int) -> bool:
        tokens = self.statements[index].tokens
        if tokens[0] == "class":
            return "Protocol" in tokens[2:] or (self._knows_interfaces and "Interface" in tokens[2:])
        return tokens[0] == "if" and "TYPE_CHECKING" in tokens and "not" not in tokens

    def _is_overridden(self, owner: int) -> bool:
        """Return whether a subclass in the same file overrides a method."""
        above = self._parents[owner]
        if above is None or self.statements[above].tokens[0] != "class":
            return False
        name, base = _name(self.statements[owner].tokens), _name(self.statements[above].tokens)
        if (base, name) not in self._overridden:
            # `isdisjoint` iterates over the smaller set.
            made = self._subclasses.get(base, set())
            self._overridden[base, name] = not made.isdisjoint(self._owners_by_method.get(name, set()))
        return self._overridden[base, name]


def _raised(tokens: list[str]) -> str:
    """Return the last part of the name that is raised."""
    last = ""
    for token in islice(tokens, 1, None):
        if token.isidentifier() and token != "from":
            last = token
        elif token != "." and (token != "(" or last):
            break
    return last


def _is_function(tokens: list[str]) -> bool:
    return tokens[0] == "def" or tokens[:2] == ["async", "def"]


def _name(tokens: list[str]) -> str:
    """Return the name of a function or class from its head."""
    return "".join(tokens[2:3] if tokens[0] == "async" else tokens[1:2])


def _is_no_op(tokens: list[str]) -> bool:
    return tokens in (["pass"], [".", ".", "."])


def _is_text(tokens: list[str]) -> bool:
    return all(token[-1] in "\"'" and token.lstrip(LETTERS)[0] in "\"'" for token in tokens)
