"""Where each key of a TOML document stands, against documents whose lines are known from their making."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.policy.toml_lines import Excess, Key, excess, lines
from tests.amount import often

SCALARS = [
    "1",
    "-1_000.5e3",
    "true",
    "inf",
    "0xFF",
    "1979-05-27 07:32:00.5+01:00",
    "07:32:00.999",
    '""',
    "''",
    '"a # [b] = {c}, \\" \\\\"',
    "'C:\\x\"#'",
    '"""one"""',
    '"""\n[not.a.table]\nkey = 1 # no comment \\"""\n"""',
    '""""quoted""""',
    '"""""two quotes"""""',
    '"""a \\\n   b"""',
    "'''\nkey = [\n'''",
    "''''quoted''''",
]


class Printer:
    """Writes TOML while noting the line of every key and element; `draw` decides on the style."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.expected: dict[Key, int] = {}
        self.made = 0

    def line(self) -> int:
        return self.text.count("\n") + 1

    def filler(self) -> None:
        """Put what has no meaning between two lines."""
        self.text += self.draw(st.sampled_from(["", "\n", '# [x] = "\n', "   \t\n", "\r\n"]))

    def name(self) -> tuple[str, str]:
        """Make a new key: what it is, and how it is written."""
        self.made += 1
        bare = f"k-{self.made}"
        return self.draw(
            st.sampled_from(
                [
                    (bare, bare),
                    (bare, f'"{bare}"'),
                    (bare, f"'{bare}'"),
                    (f"{bare}.é [", f'"{bare}.\\u00e9 ["'),
                    (f"{bare}#=\\", f"'{bare}#=\\'"),
                ]
            )
        )

    def dotted(self, above: Key) -> Key:
        names = [self.name() for _ in range(self.draw(st.integers(1, 3)))]
        for name, _ in names:
            above = (*above, name)
            self.expected[above] = self.line()
        self.text += self.draw(st.sampled_from([".", " . "])).join(written for _, written in names)
        return above

    def pair(self, above: Key, depth: int) -> None:
        key = self.dotted(above)
        self.text += self.draw(st.sampled_from(["=", " = "]))
        self.value(key, depth)

    def value(self, key: Key, depth: int) -> None:
        kind = self.draw(st.sampled_from(["scalar", "scalar", "list", "table"] if depth else ["scalar"]))
        count = self.draw(st.integers(0, 3))
        if kind == "scalar":
            self.text += self.draw(st.sampled_from(SCALARS))
        elif kind == "table":
            self.text += "{ "
            for index in range(count):
                self.text += ", " if index else ""
                self.pair(key, depth - 1)
            self.text += " }"
        else:
            self.text += "["
            for index in range(count):
                self.filler()
                self.expected[*key, index] = self.line()
                self.value((*key, index), depth - 1)
                self.text += self.draw(st.sampled_from([",", " , # ]\n"])) if index < count - 1 else ""
            self.text += self.draw(st.sampled_from(["]", "\n]"]))

    def pairs(self, table: Key) -> None:
        for _ in range(self.draw(st.integers(0, 3))):
            self.filler()
            self.text += self.draw(st.sampled_from(["", "  "]))
            self.pair(table, 2)
            self.text += self.draw(st.sampled_from(["\n", " # = 1\n", "\r\n"]))

    def header(self) -> None:
        self.filler()
        self.text += "["
        table = self.dotted(())
        self.text += "]\n"
        self.pairs(table)

    def array(self) -> None:
        """Write an array of tables, each with a table below it."""
        name, written = self.name()
        for index in range(self.draw(st.integers(1, 3))):
            self.filler()
            self.expected.setdefault((name,), self.line())
            self.expected[name, index] = self.line()
            self.text += f"[[ {written} ]]\n"
            self.pairs((name, index))
            below, below_written = self.name()
            self.expected[name, index, below] = self.line()
            self.text += f"[{written}.{below_written}] # below\n"
            self.pairs((name, index, below))


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[Key, int]]:
    printer = Printer(draw)
    printer.pairs(())
    for part in draw(st.lists(st.sampled_from([printer.header, printer.array]), max_size=3)):
        part()
    return printer.text, printer.expected


def paths(value: Any, key: Key = ()) -> Iterator[Key]:
    """Find every key path in what tomllib read."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for part, below in inner:
        yield (*key, part)
        yield from paths(below, (*key, part))


@given(documents())
@settings(max_examples=often(150), deadline=None)
def test_every_key_of_a_printed_document_stands_where_it_was_printed(
    document: tuple[str, dict[Key, int]],
) -> None:
    text, expected = document
    assert set(paths(tomllib.loads(text))) == set(expected)
    assert lines(text) == expected


leaves = st.integers() | st.booleans() | st.text(max_size=8) | st.dates() | st.floats(allow_nan=False)
tables = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
    st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.", max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@given(tables)
@settings(max_examples=often(60), deadline=None)
def test_the_lines_name_exactly_the_keys_that_tomllib_finds(table: dict[str, Any]) -> None:
    text = tomlkit.dumps(table)
    found = lines(text)
    assert set(found) == set(paths(tomllib.loads(text)))
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


def test_a_table_that_is_written_after_its_subtable_stands_at_its_own_header() -> None:
    assert lines("[a.b]\n[a]\nx = 1\n") == {("a",): 2, ("a", "b"): 1, ("a", "x"): 3}


def test_dotted_keys_that_share_a_table_name_it_at_the_first() -> None:
    assert lines("a.b = 1\na.c = 2\n") == {("a",): 1, ("a", "b"): 1, ("a", "c"): 2}


def test_a_table_below_an_array_of_tables_belongs_to_its_last_element() -> None:
    text = "[[a]]\n[[a.b]]\n[[a.b]]\nx = 1\n[[a]]\n[[a.b]]\n[a.b.c]\n"
    found = lines(text)
    assert found["a", 0, "b", 1, "x"] == 4
    assert found["a", 1, "b", 0, "c"] == 7
    assert set(found) == set(paths(tomllib.loads(text)))


def test_an_empty_document_has_no_keys() -> None:
    assert lines("") == {}
    assert lines("# nothing") == {}


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("x = 1\ny = " + "[" * 5, 2, "deep"),
        ("y = " + "{a = " * 5, 1, "deep"),
        ("y = [\n[\n[\n[\n[", 5, "deep"),
        ("x = 1\na.b.c.d.e = 1", 2, "parts"),
        ("[a . b . 'c' . \"d\" . e]", 1, "parts"),
        ("a=1\n" * 11, 11, "keys"),
        ("[a]\n" * 11, 11, "keys"),
        ("x = {" + "a=1," * 11, 1, "keys"),
    ],
)
def test_a_text_above_a_limit_is_told_with_its_line(text: str, line: int, word: str) -> None:
    found = excess(text, depth=4, parts=4, keys=10)
    assert isinstance(found, Excess)
    assert (found.line, word in found.message) == (line, True)


@pytest.mark.parametrize(
    "text",
    [
        "y = [[[[1]]]]",
        "a.b.c.d = 1",
        "".join(f"k{number}=1\n" for number in range(10)),
        'x = "a.b.c.d.e.f [[[[[[[["',
        "x = '''\n[[[[[[\na.b.c.d.e.f = 1\n" + "=\n" * 20 + "'''",
        "# a.b.c.d.e.f [[[[[[[[ " + "= " * 20,
        "x = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]",
    ],
)
def test_a_text_within_the_limits_is_let_through(text: str) -> None:
    assert tomllib.loads(text) is not None
    assert excess(text, depth=4, parts=4, keys=10) is None


@given(documents())
@settings(max_examples=often(40), deadline=None)
def test_a_document_never_has_more_than_all_that_it_has(document: tuple[str, dict[Key, int]]) -> None:
    text, expected = document
    assert excess(text, depth=9, parts=9, keys=len(expected) + 1) is None


@pytest.mark.parametrize(
    "piece", ['"""\\', "'''", '"""  \\"""  ', "a='", '"\\', "\\", "[]", "{}", "'\"", "#\n"]
)
def test_a_text_that_is_no_toml_is_counted_without_an_error(piece: str) -> None:
    found = excess(piece * 5000, depth=32, parts=32, keys=4000)
    assert found is None or found.line >= 1
