"""Which functions of a Python file do nothing, and what only looks like one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from textwrap import dedent
from typing import Any

import pytest

from patchgate.check.python_tokens import SourceStatement, statements_of
from patchgate.placeholders.empty_functions import _File, find_empty_functions
from patchgate.placeholders.placeholder_matches import find_matches
from patchgate.policy.placeholder_markers import Markers

EMPTY, UNDONE = "empty-body", "not-implemented"


def bodies(text: str) -> list[tuple[int, str]]:
    return [(each.line, each.marker) for each in find_empty_functions(dedent(text).encode())]


def by_rule(text: str, name: str) -> list[int]:
    found = find_matches(dedent(text).encode(), name.encode(), Markers())
    return [match.line for match in found if match.rule == "placeholder-body"]


PLACEHOLDERS = {
    "on one line": ("def f(): pass", [(1, EMPTY)]),
    "dots on one line": ("def f(): ...", [(1, EMPTY)]),
    "raised on one line": ("def f(): raise NotImplementedError", [(1, UNDONE)]),
    "on the next line": ("def f():\n    pass\n", [(2, EMPTY)]),
    "without a last LF": ("def f():\n    ...", [(2, EMPTY)]),
    "with a comment": ("def f():\n    pass  # more\n", [(2, EMPTY)]),
    "with a semicolon": ("def f():\n    pass;\n", [(2, EMPTY)]),
    "twice": ("def f():\n    ...\n    pass\n", [(2, EMPTY)]),
    "behind a docstring": ('def f():\n    """Do it."""\n    pass\n', [(3, EMPTY)]),
    "behind a long docstring": ('def f():\n    """Do.\n\n    it\n    """\n\n    ...\n', [(7, EMPTY)]),
    "behind a comment": ("def f():\n    # more\n\n    pass\n", [(4, EMPTY)]),
    "under a long head": (
        "def f(\n    a: int,\n    b=(1, 2),\n) -> dict[str, int]:\n    pass\n",
        [(5, EMPTY)],
    ),
    "behind a backslash": ("def f(): \\\n    pass\n", [(2, EMPTY)]),
    "async": ("async def f():\n    pass\n", [(2, EMPTY)]),
    "a method": ("class A:\n    def f(self):\n        pass\n", [(3, EMPTY)]),
    "a method that is decorated": ("class A:\n    @property\n    def f(self):\n        ...\n", [(4, EMPTY)]),
    "within a function": ("def f():\n    def g():\n        pass\n    return g\n", [(3, EMPTY)]),
    "under a condition": ("if x:\n    def f():\n        pass\n", [(3, EMPTY)]),
    "two": ("def f():\n    pass\ndef g():\n    ...\n", [(2, EMPTY), (4, EMPTY)]),
    "raised": ("def f():\n    raise NotImplementedError\n", [(2, UNDONE)]),
    "raised as a call": ("def f():\n    raise NotImplementedError()\n", [(2, UNDONE)]),
    "raised with a text": ('def f():\n    raise NotImplementedError("later")\n', [(2, UNDONE)]),
    "raised over lines": (
        'def f():\n    raise NotImplementedError(\n        "later"\n    )\n',
        [(2, UNDONE)],
    ),
    "raised from": ("def f():\n    raise NotImplementedError from None\n", [(2, UNDONE)]),
    "the wrong name": ("def f():\n    raise NotImplemented\n", [(2, UNDONE)]),
    "raised behind a docstring": ('def f():\n    """Do."""\n    raise NotImplementedError\n', [(3, UNDONE)]),
    "raised behind del": ("def f(x):\n    del x\n    raise NotImplementedError\n", [(3, UNDONE)]),
    "raised before the rest": ("def f():\n    raise NotImplementedError\n    return 1\n", [(2, UNDONE)]),
    "a branch that says so": (
        'def f(x):\n    if x:\n        raise NotImplementedError("not implemented yet")\n    return 1\n',
        [(3, UNDONE)],
    ),
    "a branch with a TODO": (
        'def f(x):\n    if x:\n        return 1\n    raise NotImplementedError("todo")\n',
        [(4, UNDONE)],
    ),
    "a method of an abstract base without a decorator": (
        "class A(ABC):\n    def f(self):\n        pass\n",
        [(3, EMPTY)],
    ),
    "one overload too many": ("@overload\ndef f(): ...\ndef f(): ...\n", [(3, EMPTY)]),
    "of a class that uses a protocol": ("class A:\n    def f(self, x: Protocol): pass\n", [(2, EMPTY)]),
    "beside type checking": ("if TYPE_CHECKING:\n    import x\ndef f(): pass\n", [(3, EMPTY)]),
    "where checkers do not look": ("if not TYPE_CHECKING:\n    def f(): pass\n", [(2, EMPTY)]),
    "an answer to the rest": (
        "def f(x):\n    if x:\n        return 1\n    raise NotImplementedError(x)\n",
        [(4, UNDONE)],
    ),
    "a branch": (
        "def f(x):\n    if x > 1:\n        raise NotImplementedError\n    return 1\n",
        [(3, UNDONE)],
    ),
    "a message that excuses it": (
        'class A:\n    def f(self):\n        raise NotImplementedError("subclasses do it")\n',
        [(3, UNDONE)],
    ),
    "a docstring that excuses it": (
        'class A:\n    def f(self):\n        """Override this."""\n        pass\n',
        [(4, EMPTY)],
    ),
    "a class whose name excuses it": (
        "class AbstractA:\n    def f(self): raise NotImplementedError\n",
        [(2, UNDONE)],
    ),
    "a class whose docstring excuses it": (
        'class A:\n  """An abstract A."""\n  def f(self): raise NotImplementedError\n',
        [(3, UNDONE)],
    ),
    "a docstring that says it is so": ('def f():\n    """Do nothing."""\n    pass\n', [(3, EMPTY)]),
    "a comment that excuses it": ("def f():\n    pass  # nothing to close\n", [(2, EMPTY)]),
    "nothing so far": ("def f():\n    pass  # nothing to do yet\n", [(2, EMPTY)]),
    "a file of a newer Python": ("type X[T] = list[T]\ndef f[T](x: T): ...\n", [(2, EMPTY)]),
    "a file that is no Python": ("def f(:\n    pass\n", []),
    "behind a text with a head in it": ('def f():\n    """Do\n    if x:"""\n    pass\n', [(4, EMPTY)]),
    "under a parameter that is called match": (
        "def f(\n    match: str) -> None:\n    pass\n",
        [(3, EMPTY)],
    ),
    "under a parameter that is called case": (
        "def f(a,\n      case: dict[str, int]) -> None:\n    ...\n",
        [(3, EMPTY)],
    ),
    "under a condition that is a type": ("def f() -> x \\\n  if y else z:\n    pass\n", [(3, EMPTY)]),
    "behind a text with a comment in it": (
        'def f():\n    """Do\n    if x:\n    # it"""\n    pass\n',
        [(5, EMPTY)],
    ),
    "a callback that is given something": ("@app.callback(x)\ndef f(x):\n    pass\n", [(3, EMPTY)]),
    "a route that is called group": ('@router.group("/x")\ndef f(x): pass\n', [(2, EMPTY)]),
    "an interface of one's own": ("class A(Interface):\n    def f(self): pass\n", [(2, EMPTY)]),
    "overridden elsewhere": (
        "class A:\n  def f(self): raise NotImplementedError\nclass B(C):\n  def f(self): g()\n",
        [(2, UNDONE)],
    ),
    "raised by its module": ("def f():\n    raise exceptions.NotImplementedError\n", [(2, UNDONE)]),
    "raised in parentheses": ("def f():\n    raise(NotImplementedError)\n", [(2, UNDONE)]),
    "raised in parentheses with a text": (
        'def f():\n    raise(NotImplementedError("x"))\n',
        [(2, UNDONE)],
    ),
    "raised on the next line": ("def f():\n    raise \\\n        NotImplementedError\n", [(3, UNDONE)]),
    "after CRLF": ("def f():\r\n    pass\r\n", [(2, EMPTY)]),
}

NONE = {
    "a class": "class A: pass\nclass B:\n    pass\nclass C(Exception): ...\n",
    "a class in a function": "def f():\n    class A:\n        pass\n    return A\n",
    "a handler": "def f():\n    try:\n        g()\n    except E:\n        pass\n",
    "raised in a handler": "def f():\n  try: g()\n  except E:\n    raise NotImplementedError\n",
    "a handler of many": "def f():\n    try:\n        g()\n    except (\n        A\n    ):\n        pass\n",
    "a loop": "def f():\n    for x in y:\n        pass\n",
    "a while": "def f():\n    while g(): pass\n",
    "a condition": "def f():\n    if x:\n        pass\n    else:\n        ...\n",
    "a with": "def f():\n    with g() as x:  # try it\n        pass\n",
    "a match": "def f(x):\n    match x:\n        case 1:\n            pass\n",
    "a finally": "try:\n    f()\nfinally:\n    pass\n",
    "the module": "pass\n...\n",
    "with something else": "def f():\n    pass\n    return 1\n",
    "before something else": "def f():\n    g()\n    pass\n",
    "only a docstring": 'def f():\n    """Do nothing."""\n',
    "a value": "def f():\n    return ...\ndef g():\n    x = ...\n    return x\n",
    "a tuple": "def f(x: tuple[int, ...]) -> int:\n    return x[...]\n",
    "a text": 'def f():\n    """\n    pass\n    """\n    return 1\n',
    "a function in a text": 'X = """\ndef f():\n    pass\n"""\n',
    "caught": "def f():\n    try:\n        g()\n    except NotImplementedError:\n        return 1\n",
    "asked": "def f(e):\n    return isinstance(e, NotImplementedError)\n",
    "returned": "def __eq__(self, other):\n    return NotImplemented\n",
    "raised by the module": "raise NotImplementedError\n",
    "abstract": "class A(ABC):\n    @abstractmethod\n    def f(self): ...\n",
    "abstract by its module": "class A(abc.ABC):\n    @abc.abstractmethod\n    def f(self):\n        pass\n",
    "abstract under another": "class A:\n    @property\n    @abstractmethod\n    def f(self): pass\n",
    "abstract before another": "class A:\n    @abstractmethod\n    @cached(1)\n    def f(self): pass\n",
    "abstract that raises": "class A:\n    @abstractmethod\n    def f(self): raise NotImplementedError\n",
    "an overload": "@overload\ndef f(x: int) -> int: ...\n@typing.overload\ndef f(x: str) -> str: ...\n",
    "a protocol": "class A(Protocol):\n    def f(self) -> int: ...\n",
    "a generic protocol": "class A(typing.Protocol[T]):\n    def f(self) -> int:\n        pass\n",
    "a protocol that raises": "class A(Protocol):\n    def f(self):\n        raise NotImplementedError\n",
    "for checkers": "if TYPE_CHECKING:\n    def f(): ...\n",
    "for checkers by the module": "if typing.TYPE_CHECKING:\n    class A:\n        def f(self): ...\n",
    "overridden": "class A:\n  def f(self): raise NotImplementedError\nclass B(A):\n  def f(self): g()\n",
    "by its name": "def noop(*args): pass\ndef _do_nothing(): ...\n",
    "a group of commands": "@click.group()\ndef main():\n    pass\n",
    "a group of commands with a context": "@click.group()\n@click.pass_context\ndef main(ctx): pass\n",
    "a group in a group": "@main.group()\ndef more():\n    pass\n",
    "a callback of commands": "@app.callback()\ndef main():\n    pass\n",
    "an interface of zope": (
        "from zope.interface import Interface\nclass A(Interface):\n    def f(self): pass\n"
    ),
    "raised from it": "def f():\n    raise ValueError from NotImplementedError\n",
    "a dispatcher": "@singledispatch\ndef f(x):\n    raise NotImplementedError\n",
}


@pytest.mark.parametrize("case", PLACEHOLDERS)
def test_a_function_that_does_nothing_is_told(case: str) -> None:
    text, expected = PLACEHOLDERS[case]
    assert bodies(text) == expected


@pytest.mark.parametrize("case", NONE)
def test_what_has_a_body_or_needs_none_is_not_told(case: str) -> None:
    assert bodies(NONE[case]) == []


@pytest.mark.parametrize("case", PLACEHOLDERS)
def test_every_such_line_is_suspected(case: str) -> None:
    text, expected = PLACEHOLDERS[case]
    suspected = Markers().suspects(text.encode().split(b"\n"))
    assert {line - 1 for line, _ in expected} <= set(suspected)


@pytest.mark.parametrize("case", PLACEHOLDERS)
def test_indentation_and_what_stands_around_change_nothing(case: str) -> None:
    text, expected = PLACEHOLDERS[case]
    if "\\" in text or '"""' in text:
        return
    lines = text.replace("\r", "").split("\n")
    deeper = "if x:\n" + "\n".join(f"    {line}" if line else line for line in lines) + "\nx = 1\n"
    assert bodies(deeper) == [(line + 1, marker) for line, marker in expected]


def test_only_python_is_read_so_and_no_stub() -> None:
    text = "def f():\n    pass\n"
    assert by_rule(text, "a.py") == by_rule(text, "x/A.PY") == by_rule(text, "a.pyw") == [2]
    assert by_rule(text, "a.pyi") == by_rule(text, "a.md") == by_rule(text, "py") == []


def test_lines_are_those_of_git_where_a_lone_cr_ends_one_for_python() -> None:
    assert bodies("x = 1\rdef f():\r    pass\rdef g(): return 1\r\ndef h():\n    pass\n") == [
        (1, EMPTY),
        (3, EMPTY),
    ]


class Counted(list[SourceStatement]):
    """Statements that count how often one of them is looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        self.looks += 1
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[SourceStatement]:
        self.looks += len(self)
        return super().__iter__()


def looks_at(text: str) -> tuple[int, int]:
    """Count the statements of a text, and how often one is looked at where each may be a body."""
    statements = Counted(statements_of(text))
    file = _File(statements)
    for index in range(len(statements)):
        file.body_of(index)
    return len(statements), statements.looks


MANY: dict[str, Callable[[int], str]] = {
    "functions": lambda n: "def f(): pass\n" * n,
    "methods": lambda n: "class A:\n" + "    def f(self):\n        pass\n" * n,
    "classes": lambda n: "class A:\n    def f(self):\n        raise NotImplementedError\n" * n,
    "classes of one": lambda n: "".join(f"class A{i}(B):\n    def f(self): pass\n" for i in range(n)),
    "classes of each other": lambda n: "".join(
        f"class A{i + 1}(A{i}):\n    def f(self): pass\n" for i in range(n)
    ),
    "classes made from one": lambda n: "class A:\n    def f(self): pass\n" + "class B(A): x = 1\n" * n,
    "bodies of one": lambda n: "def f():\n    g()\n" + "    pass\n" * n,
    "bodies on one line": lambda n: "def f(): " + "pass;" * n + "g()",
    "raised by one": lambda n: "def f():\n" + "    raise NotImplementedError\n" * n,
    "decorators": lambda n: "@a\n" * n + "def f():\n" + "    pass\n" * n + "    g()\n",
    "deeper and deeper": lambda n: "".join(f"{' ' * i}def f():\n" for i in range(n)) + " " * n + "pass",
}


@pytest.mark.parametrize("case", MANY)
def test_twice_as_many_statements_are_looked_at_twice_as_often(case: str) -> None:
    text = MANY[case]
    few, looks = looks_at(text(100))
    many, more = looks_at(text(200))
    assert many > few >= 100
    assert more <= 2.2 * looks
    assert looks <= 20 * few


def test_the_search_ends_where_the_time_does() -> None:
    text = b"def f(): pass\n" * 2000
    for most in (1, 3, 12, 20):
        asked = count(1)
        found = list(find_empty_functions(text, lambda: next(asked) > most))  # noqa: B023
        assert next(asked) == most + 2
        assert (len(found) > 0) is (most > 15)
        assert len(found) < 2000
    asked = count()
    assert len(list(find_empty_functions(text, lambda: next(asked) < 0))) == 2000
    assert next(asked) > 20


def test_a_file_without_a_statement_holds_no_body() -> None:
    assert bodies("# raise NotImplementedError\n") == bodies("#:...") == bodies("# pass\n\n") == []
