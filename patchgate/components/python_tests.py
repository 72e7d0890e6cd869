"""The test functions of a Python file: names, assertions, skips; a file that is not Python has none.

Decides what a test function is (`def test…`, async too, at the top or in classes that are collected), which
of its statements can run, and whether it is skipped. It reads only this file, and trusts a name
from elsewhere and a condition that no literal decides. One pass, linear in the size.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from patchgate.check.python_tokens import SourceStatement, is_readable, packed, statements_of, text_of
from patchgate.components.python_statements import (
    assertions,
    bases,
    calls_skip,
    is_fixture,
    is_own,
    mark_skips,
    names_taken,
    skips_all,
    truth,
)
from patchgate.values import dataclass, field, replace

_LONGEST_NAME = 200
_CONSTRUCTORS = frozenset({"__init__", "__new__"})
_SPOILING = _CONSTRUCTORS | {"__test__", "pytestmark"}


@dataclass(frozen=True, slots=True)
class PythonTest:
    """One test function.

    Args:
        name: with its enclosing classes: `TestShape.test_is_round`.
        line: of its `def`, from 1.
        assertions: how many can run and fail.
        is_skipped: it, its class or its file has a mark that skips it or expects it to fail, its name is
            taken later, or it leaves before it asserts.
        body: the SHA-256 of all of it except its name, its marks, comments and layout.
        statements: those that can run, the signature first, without comments, with spaces only where they
            must be.
    """

    name: str
    line: int
    assertions: int
    is_skipped: bool
    body: str
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PythonTests:
    """The test functions of a file, and the number of assertions outside of them."""

    functions: tuple[PythonTest, ...]
    elsewhere: int


@dataclass(slots=True)
class _Class:
    """A class, or the file as the outermost one; `name` is the prefix of the names in it."""

    name: str
    above: _Class | None
    may_construct: bool = True
    is_collected: bool = True
    is_skipped: bool = False


@dataclass(slots=True)
class _Inner:
    """A function or class in a test: it counts if the test names it, or a decorator takes it."""

    name: str
    above: _Inner | None
    is_used: bool


@dataclass(slots=True)
class _Test:
    """A test function while it is read."""

    name: str
    line: int
    owner: _Class
    is_skipped: bool
    may_yield: bool
    has_asserted: bool = False
    has_left: bool = False
    names: Counter[str] = field(default_factory=Counter)
    inners: list[_Inner] = field(default_factory=list)
    statements: list[tuple[str, int, _Inner | None]] = field(default_factory=list)

    def finished(self) -> PythonTest:
        """Return the finished test."""
        for inner in self.inners:
            inner.is_used = inner.is_used or self.names[inner.name] > 0
            inner.is_used = inner.is_used and (inner.above is None or inner.above.is_used)
        running = [(text, count) for text, count, inner in self.statements if inner is None or inner.is_used]
        texts = tuple(text for text, _ in running)
        # A function that moves into a class gets a `self` and stays the same.
        body = hashlib.sha256("\n".join(texts[1:]).encode("utf-8", "surrogateescape")).hexdigest()
        is_skipped = self.is_skipped or self.owner.is_skipped
        return PythonTest(self.name, self.line, sum(count for _, count in running), is_skipped, body, texts)


@dataclass(frozen=True, slots=True)
class _OpenBlock:
    """An open block: what applies to the statements in it.

    `is_dead`: nothing in it ever runs; `is_sure`: it runs whenever the function around it does; `condition`:
    the known truth of its head, an `if`, `elif` or `while`. `test` and `inner` are those around it.
    """

    indent: int
    owner: _Class
    is_dead: bool = False
    is_sure: bool = True
    is_in_function: bool = False
    test: _Test | None = None
    inner: _Inner | None = None
    is_class: bool = False
    condition: bool | None = None


def read_tests(content: bytes) -> PythonTests:
    """Find the test functions of a Python file; of two with one name in a class the last counts."""
    text = text_of(content)
    reader = _TestReader(is_skipped=not is_readable(text))
    for statement in statements_of(text):
        reader.take(statement)
    return reader.finish()


def tests_of(content: bytes) -> dict[str, PythonTest]:
    """Find the test functions of a Python file by their names."""
    return {test.name: test for test in read_tests(content).functions}


class _TestReader:
    """Takes statements and sorts them into functions."""

    def __init__(self, *, is_skipped: bool) -> None:
        file = _Class("", None, is_skipped=is_skipped)
        self._open = [_OpenBlock(-1, file)]
        self._classes = [file]
        self._class_by_name: dict[str, _Class] = {}
        self._found: dict[str, _Test] = {}
        self._marks: list[list[str]] = []
        self._elsewhere = 0

    def take(self, statement: SourceStatement) -> None:
        closed: _OpenBlock | None = None
        while statement.indent <= self._open[-1].indent:
            closed = self._open.pop()
        scope = self._open[-1]
        self._look(scope, statement)
        if statement.tokens[0] == "@":
            self._marks.append(statement.tokens)
            return
        marks, self._marks = self._marks, []
        if statement.is_head:
            before = closed if closed is not None and closed.indent == statement.indent else None
            self._open.append(replace(self._below(scope, statement, marks, before), indent=statement.indent))

    def finish(self) -> PythonTests:
        for each in self._classes[1:]:
            assert each.above is not None
            each.is_collected = each.is_collected and each.above.is_collected
            each.is_skipped = each.is_skipped or each.above.is_skipped
        tests = [(test.finished(), test.owner.is_collected) for test in self._found.values()]
        lost = sum(test.assertions for test, is_collected in tests if not is_collected)
        return PythonTests(tuple(test for test, is_it in tests if is_it), self._elsewhere + lost)

    def _look(self, scope: _OpenBlock, statement: SourceStatement) -> None:
        if scope.test is not None:
            _add(scope.test, scope, statement)
        elif not scope.is_dead:
            self._elsewhere += assertions(statement.tokens)
            if not (scope.is_in_function or statement.is_head or statement.tokens[0] == "@"):
                self._take_names(scope.owner, statement.tokens)

    def _below(
        self, scope: _OpenBlock, statement: SourceStatement, marks: list[list[str]], before: _OpenBlock | None
    ) -> _OpenBlock:
        """Return the block that a head opens; `before` is the block that ended there."""
        tokens = statement.tokens[1:] if statement.tokens[0] == "async" else statement.tokens
        if tokens[0] not in {"def", "class"}:
            return _block(scope, tokens, before)
        if scope.test is not None:
            return _inner(scope, scope.test, tokens, marks)
        if scope.is_dead or scope.is_in_function:
            return replace(scope, is_sure=False, is_in_function=True, is_class=False)
        if tokens[0] == "class":
            return _OpenBlock(0, self._define_class(scope.owner, tokens, marks), is_class=True)
        test = self._define(scope.owner, statement.line, tokens, marks)
        return _OpenBlock(0, scope.owner, is_in_function=True, test=test)

    def _define_class(self, owner: _Class, tokens: list[str], marks: list[list[str]]) -> _Class:
        name, parents = _joined(owner.name, tokens[1]), bases(tokens)
        is_case = any(parent[-1].endswith("TestCase") for parent in parents)
        is_named = tokens[1].startswith("Test")
        for parent in parents:
            # Its tests are run where they are inherited.
            if len(parent) == 1 and (known := self._class_by_name.get(_joined(owner.name, parent[0]))):
                known.is_collected = True
        if name in self._class_by_name:
            self._class_by_name[name].is_collected = False
        # It is the prefix of all names in it.
        is_long = len(name) > _LONGEST_NAME
        short = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest() if is_long else name
        found = _Class(short, owner, is_case or not is_named, is_named or bool(parents))
        found.is_skipped = any(map(mark_skips, marks))
        self._classes.append(found)
        self._class_by_name[name] = found
        return found

    def _define(self, owner: _Class, line: int, tokens: list[str], marks: list[list[str]]) -> _Test | None:
        if tokens[1] in _CONSTRUCTORS and not owner.may_construct:
            owner.is_collected = False
        name = _joined(owner.name, tokens[1])
        self._found.pop(name, None)
        if not tokens[1].startswith("test") or any(map(is_fixture, marks)):
            return None
        may_yield = any(map(is_own, marks))
        test = self._found[name] = _Test(name, line, owner, any(map(mark_skips, marks)), may_yield)
        test.statements.append((packed(tokens[2:]), 0, None))
        return test

    def _take_names(self, owner: _Class, tokens: list[str]) -> None:
        """Handle a simple statement of the file or a class: it may skip all, or rebind a test's name."""
        if skips_all(tokens):
            owner.is_skipped = True
            return
        for path in names_taken(tokens):
            around: _Class | None = owner
            for index, part in enumerate(path):
                if around is None:
                    break
                name = _joined(around.name, part)
                if name in self._found:
                    self._found[name].is_skipped = True
                around = self._class_by_name.get(name)
                if around is not None and (len(path) == index + 1 or path[index + 1] in _SPOILING):
                    around.is_skipped = True


def _joined(above: str, name: str) -> str:
    return f"{above}.{name}" if above else name


def _add(test: _Test, scope: _OpenBlock, statement: SourceStatement) -> None:
    """Add a statement to a test: it asserts, or it may leave before anything did."""
    tokens = statement.tokens
    if scope.inner is None and "yield" in tokens and not test.may_yield:
        # One that never runs makes a generator as well.
        test.is_skipped = True
    if scope.is_dead or test.has_left:
        test.is_skipped |= test.has_left and not test.has_asserted
        return
    count = assertions(tokens)
    test.statements.append((packed(tokens), count, scope.inner))
    test.has_asserted |= count > 0
    is_definition = statement.is_head and not {"def", "class"}.isdisjoint(tokens[:2])
    test.names.update(tokens[3 if tokens[0] == "async" else 2 :] if is_definition else tokens)
    if scope.inner is None and scope.is_sure and not statement.is_head:
        skips = calls_skip(tokens)
        test.is_skipped |= skips and not test.has_asserted
        # Where the module is there, what follows `importorskip` runs.
        test.has_left = tokens[0] == "return" or (skips and "importorskip" not in tokens)


def _inner(scope: _OpenBlock, test: _Test, tokens: list[str], marks: list[list[str]]) -> _OpenBlock:
    """Open a function or class in a test; a method is its class's."""
    is_class = tokens[0] == "class"
    if scope.is_class:
        return replace(scope, is_class=is_class)
    inner = _Inner(tokens[1], scope.inner, bool(marks))
    test.inners.append(inner)
    return replace(scope, inner=inner, is_class=is_class)


def _block(scope: _OpenBlock, tokens: list[str], before: _OpenBlock | None) -> _OpenBlock:
    """Open a block; if its condition is a literal, it is known whether it runs."""
    keyword = tokens[0]
    before_it = before.condition if before is not None and keyword in {"elif", "else"} else None
    condition = truth(tokens[1:-1]) if keyword in {"if", "elif", "while"} else None
    never = before_it is True or condition is False
    always = (keyword == "if" and condition is True) or (keyword == "else" and before_it is False)
    if keyword == "elif" and condition is not True and condition is not before_it:
        # For the branches after it: true if an earlier one is.
        condition = before_it or None
    return replace(
        scope, is_dead=scope.is_dead or never, is_sure=scope.is_sure and always, condition=condition
    )
