"""What Python or pytest would never run is no test and no assertion; an honest one counts however written."""

from __future__ import annotations

import random

import pytest

from patchgate.components import python_tests
from patchgate.components.python_tests import read_tests
from patchgate.components.weakened_tests import Loss, find_weakenings
from patchgate.git.path import RepoPath

FILE = RepoPath(b"tests/test_shape.py")
WHOLE = """\
import pytest


class TestShape:
    def test_side(self):
        x = side()
        assert x == 2
        assert x < 3


def test_area():
    with pytest.raises(ValueError):
        area(-1)
    assert area(2) == 4
"""
SIDE, AREA = ("TestShape.test_side",), ("test_area",)
BOTH = SIDE + AREA
LESS, SKIPPED, GONE = Loss.ASSERTIONS, Loss.SKIPPED, Loss.FUNCTION


def lost(old: str, new: str) -> list[tuple[Loss, tuple[str, ...]]]:
    found = find_weakenings({FILE: old.encode()}, {FILE: new.encode()})
    return [(each.loss, each.functions) for each in found]


def changed(*changes: tuple[str, str]) -> str:
    text = WHOLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def body_of_area(*lines: str) -> str:
    """Write `test_area` anew."""
    return WHOLE[: WHOLE.index("    with pytest")] + "".join(f"    {line}\n" for line in lines)


WITH = "with pytest.raises(ValueError): area(-1)"
ASSERT = "assert area(2) == 4"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class TestShape", "class Shape"),
        ("class TestShape", "class Shape()"),
        ("class TestShape", "class Shape(object)"),
        ("class TestShape", "class Shape(metaclass=Meta)"),
        ("class TestShape:", "class TestShape:\n    def __init__(self): self.x = 1\n"),
        ("class TestShape:", "class TestShape(Base):\n    def __init__(self): self.x = 1\n"),
        ("\n\ndef test_area", "\n    def __new__(cls): pass\n\n\ndef test_area"),
        ("\n\ndef test_area", "\nclass TestShape: pass\n\n\ndef test_area"),
        ("class TestShape", "if False:\n  class TestShape"),
        ("class TestShape", "while 0:\n  class TestShape"),
        ("class TestShape", "if True: pass\nelse:\n  class TestShape"),
        ("    def test_side", "    @pytest.fixture(scope='module')\n    def test_side"),
        ("    def test_side", "    @fixture\n    def test_side"),
        ("    def test_side", "    def f(self):\n        x = 1\n        \\\n    def test_side"),
    ],
)
def test_what_is_not_collected_is_no_test(old: str, new: str) -> None:
    assert lost(WHOLE, changed((old, new))) == [(GONE, SIDE)]


@pytest.mark.parametrize(
    "body",
    [
        ("x = 1", "return", WITH, ASSERT),
        ("pass; return", WITH, ASSERT),
        ("pass;return None;" + ASSERT, WITH),
        ("if True: return", WITH, ASSERT),
        ("if 1:", "    return", WITH, ASSERT),
        ("if False: pass", "else: return", WITH, ASSERT),
        ("'''Why.'''", "x = 1", "pytest.skip('x')", WITH, ASSERT),
        ("x = 1", "skip('x')", WITH, ASSERT),
        ("x = 1", "raise unittest.SkipTest('x')", WITH, ASSERT),
        ("x = 1", "raise pytest.skip.Exception", WITH, ASSERT),
        ("return pytest.skip('x')",),
        (WITH, ASSERT, "yield"),
        ("x = yield 1", WITH, ASSERT),
        (WITH, ASSERT, "if False: yield"),
    ],
)
def test_a_body_that_leaves_before_it_asserts_is_skipped(body: tuple[str, ...]) -> None:
    assert (SKIPPED, AREA) in lost(WHOLE, body_of_area(*body))


def test_what_follows_a_module_that_may_be_missing_still_counts() -> None:
    new = body_of_area("pytest.importorskip('x')", WITH, ASSERT)
    assert lost(WHOLE, new) == [(SKIPPED, AREA)]
    assert lost(new, body_of_area("pytest.importorskip('x')", WITH)) == [(LESS, AREA)]
    assert lost(WHOLE, body_of_area("x = pytest.importorskip('x')", WITH, ASSERT)) == []


def test_a_method_that_skips_itself_is_skipped() -> None:
    assert (SKIPPED, SIDE) in lost(WHOLE, changed(("x = side()", "self.skipTest('x')")))


@pytest.mark.parametrize(
    "body",
    [
        (WITH, ASSERT, "return"),
        (WITH, ASSERT, "return x"),
        (WITH, ASSERT, "if x: return", "x()"),
        ("if windows: return", WITH, ASSERT),
        ("if windows:", "    pytest.skip('x')", WITH, ASSERT),
        ("for x in range(3):", "    if x: return", WITH, ASSERT),
        ("try: x()", "except E: return", WITH, ASSERT),
        ("def inner():", "    return 1", "    yield 2", "x = inner()", WITH, ASSERT),
        ("def inner(): " + ASSERT, "inner()", WITH),
        ("async def inner(): " + ASSERT, "run(inner())", WITH),
        ("@app.get('/')", "def view(): " + ASSERT, WITH),
        ("class Fake:", "    def __call__(self): " + ASSERT, WITH, "use(Fake)"),
        ("if True:", "    " + WITH, "    " + ASSERT),
        ("if False: pass", "else:", "    " + WITH, "    " + ASSERT),
        ("parser.skip(2); x = skip", WITH, ASSERT),
        ("x = 1;" + ASSERT + ";y = 2", WITH),
        (WITH, "assert (area(2) == 4), ('x', 1)"),
        (WITH, "assert (area(2)) == (4)"),
        (WITH, "assert area(2) == 4 and True"),
        (WITH, "assert True is area(2)"),
        (WITH, "assert True if area(2) else False"),
        (WITH, "assert area(2) in (4, 5)"),
        (WITH, "assert (area(2), 1) == (4, 1)"),
        (WITH, "assert f() == f()"),
        (WITH, "if x := area(2): " + ASSERT),
        (WITH, "assert False, 'x'"),
        (WITH, "assert 0"),
        (WITH, "assert not (area(2) or 0)"),
        (WITH, "check.assert_area(2)"),
        (WITH, "assert_area(2)"),
        (WITH, "pytest.fail('x')"),
        (WITH, "[self.assertTrue(x) for x in area(2)]"),
    ],
)
def test_a_body_that_asserts_as_much_lost_nothing(body: tuple[str, ...]) -> None:
    assert lost(WHOLE, body_of_area(*body)) == []


@pytest.mark.parametrize(
    "body",
    [
        (WITH, "if False:", "    " + ASSERT),
        (WITH, "if 0: " + ASSERT),
        (WITH, "if (None):", "    if x:", "        " + ASSERT),
        (WITH, "if not True: " + ASSERT),
        (WITH, "if False and x: " + ASSERT),
        (WITH, "while False: " + ASSERT),
        (WITH, "if x: pass", "elif 0: " + ASSERT),
        (WITH, "if True: pass", "else: " + ASSERT),
        (WITH, "if 1: pass", "elif x: pass", "else: " + ASSERT),
        (WITH, "def inner():", "    " + ASSERT),
        (WITH, "def inner(): " + ASSERT),
        (WITH, "async def inner(): " + ASSERT),
        (WITH, "class Inner:", "    def __call__(self): " + ASSERT),
        (WITH, "def inner():", "    def deeper(): " + ASSERT, "    deeper()"),
        (WITH, "if False: inner()", "def inner(): " + ASSERT),
        (WITH, "x()", "if x: pytest.skip('x')", "return", ASSERT),
        (WITH, "assert (area(2) == 4, 'x')"),
        (WITH, "assert(area(2) == 4, )"),
        (WITH, "assert ((area(2), 4)), 'x'"),
        (WITH, "assert True"),
        (WITH, "assert ((True))"),
        (WITH, "assert not False"),
        (WITH, "assert 1"),
        (WITH, "assert 0.5"),
        (WITH, "assert 1 == 1"),
        (WITH, "assert 'area(2) == 4'"),
        (WITH, "assert ('area'", "  ' is 4')"),
        (WITH, "assert area(2) == 4 or True"),
        (WITH, "assert (area(2) == 4 or 1), 'x'"),
        (WITH, "assertion = area(2) == 4"),
        (WITH, "assert_area"),
        (WITH, "x(area(2), assert_=4)"),
        (WITH, "area(2, raises=4)"),
        (WITH, "def raises(): pass"),
    ],
)
def test_assertions_that_never_run_or_always_hold_are_none(body: tuple[str, ...]) -> None:
    assert lost(WHOLE, body_of_area(*body)) == [(LESS, AREA)]


@pytest.mark.parametrize(
    "end",
    [
        "test_area = None",
        "test_area: object = None",
        "x = test_area = None",
        "x, test_area = None, None",
        "del test_area",
        "del x, test_area",
        "test_area.__test__ = False",
        "test_area.pytestmark = [pytest.mark.skip]",
        "if x: test_area = None",
        "x = 1; del test_area",
    ],
)
def test_a_test_whose_name_is_taken_at_the_top_of_the_file_is_skipped(end: str) -> None:
    assert lost(WHOLE, WHOLE + end + "\n") == [(SKIPPED, AREA)]
    assert lost(WHOLE, f"{end}\n{WHOLE}") == []


@pytest.mark.parametrize(
    "end",
    [
        "TestShape = None",
        "del TestShape",
        "TestShape.test_side = None",
        "del TestShape.test_side",
        "TestShape.__test__ = False",
        "TestShape.pytestmark = [pytest.mark.skip]",
        "TestShape.__init__ = f",
    ],
)
def test_so_is_one_whose_class_is_taken_away(end: str) -> None:
    assert lost(WHOLE, WHOLE + end + "\n") == [(SKIPPED, SIDE)]


def test_and_one_whose_name_its_class_takes() -> None:
    taken = changed(("\n\ndef test_area", "    test_side = None\n\n\ndef test_area"))
    assert lost(WHOLE, taken) == [(SKIPPED, SIDE)]


@pytest.mark.parametrize(
    "end",
    [
        "table[test_area] = 1",
        "table[test_area.name] = TestShape",
        "x = test_area",
        "x: test_area = 1",
        "match: test_area = 1",
        "TestShape.limit = 1",
        "print(test_area == 1)",
        "test_area == 1",
        "if False: test_area = None",
        "def f():\n    test_area = None",
        "if __name__ == '__main__': test_area()",
        "test_cases = [1]",
    ],
)
def test_a_name_that_is_only_used_is_not_taken(end: str) -> None:
    assert lost(WHOLE, WHOLE + end + "\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "if True: pytest.skip('x', allow_module_level=True)",
        "if x:\n    pytest.skip('x', allow_module_level=True)",
        "try: pytestmark = pytest.mark.skip\nfinally: pass",
        "x = 1; pytestmark = [pytest.mark.skip('x')]",
        "pytestmark: list = [pytest.mark.skip('x')]",
        "pytestmark = pytest.mark.parametrize('x', [])",
        "raise unittest.SkipTest",
        "if x: __test__ = False",
    ],
)
def test_a_file_that_skips_itself_in_any_block_is_skipped(line: str) -> None:
    assert lost(WHOLE, f"{line}\n{WHOLE}") == [(SKIPPED, BOTH)]
    assert lost(WHOLE, f"def f():\n    {line.splitlines()[0]}\n{WHOLE}") == []
    assert lost(WHOLE, f"if False:\n  {line.splitlines()[0]}\n{WHOLE}") == []


@pytest.mark.parametrize(
    ("mark", "is_skipped"),
    [
        ("@pytest.mark.parametrize('x', [])", True),
        ("@pytest.mark.parametrize(('x', 'y'), ())", True),
        ("@pytest.mark.parametrize('x', argvalues=[],)", True),
        ("@pytest.mark.parametrize(\n  'x', # why\n  [\n  ],\n)", True),
        ("@pytest.mark.parametrize('x', [1], ids=[])", False),
        ("@pytest.mark.parametrize('x', [[], ()])", False),
        ("@pytest.mark.parametrize('x', [f(1, [])])", False),
        ("@pytest.mark.parametrize('x', [] + CASES)", False),
        ("@pytest.mark.parametrize('x', [1, 2])\n@own(1, [])", False),
        ("@given(skip=booleans())", False),
        ("@pytest.mark.asyncio", False),
        ("@own", False),
        ("@pytest.mark.usefixtures('fixture')", False),
        ("@mark.skip", True),
        ("@skipIf(x, 'y')", True),
    ],
)
def test_a_mark_without_any_case_skips(mark: str, is_skipped: bool) -> None:
    new = changed(("def test_area", f"{mark}\ndef test_area"))
    assert lost(WHOLE, new) == ([(SKIPPED, AREA)] if is_skipped else [])


def test_a_generator_with_a_decorator_of_ones_own_is_run_by_it() -> None:
    new = body_of_area("yield x", WITH, ASSERT)
    assert lost(WHOLE, new.replace("def test_area", "@gen_test\ndef test_area")) == []
    assert lost(WHOLE, new.replace("def test_area", "@pytest.mark.x\ndef test_area")) == [(SKIPPED, AREA)]


@pytest.mark.parametrize(
    "text",
    [
        "class ShapeTests(TestCase):\n    def test_x(self): pass\n",
        "class ShapeTests(unittest.TestCase):\n    def __init__(self): pass\n    def test_x(self): pass\n",
        "class TestA(TestCase):\n    def __init__(self): pass\n    def test_x(self): pass\n",
        "class Shapes:\n    def test_x(self): pass\nclass TestSquare(Shapes, Other): pass\n",
        "class TestA:\n  class TestB:\n    async def test_x(self): pass\n",
        "if windows:\n    def test_x(): pass\n",
        "if 0:\n    pass\nelse:\n    def test_x(): pass\n",
        "if (0, 1):\n    def test_x(): pass\n",
        "test_x = None\ndef test_x(): pass\n",
        "class TestA:\n\n  \\\n  def test_x(self): pass\n",
        "match x:\n    case {'a': 1}:\n        def test_x(): pass\n",
        "if x := 3: y = 1\ndef test_x(): pass\n",
    ],
)
def test_these_are_tests(text: str) -> None:
    (found,) = read_tests(text.encode()).functions
    assert found.name.endswith("test_x")
    assert not found.is_skipped


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_all_of_pythons_line_ends_end_a_line(end: str) -> None:
    text = WHOLE.replace("\n", end)
    assert lost(WHOLE, text) == []
    assert [each.line for each in read_tests(text.encode()).functions] == [5, 11]
    assert lost(WHOLE, f"{WHOLE}# why{end}test_area = None\n") == [(SKIPPED, AREA)]
    assert lost(WHOLE, f"{WHOLE}x = 'why{end}test_area = None\n") == [(SKIPPED, AREA)]


@pytest.mark.parametrize(
    ("head", "is_skipped"),
    [
        ("# coding: utf-7\n", True),
        ("#!/bin/python\n# vim: set fileencoding=raw_unicode_escape :\n", True),
        ("\n# -*- coding: cp037 -*-\n", True),
        ("# coding=utf-16\r", True),
        ("# -*- coding: utf-8 -*-\n", False),
        ("# coding: UTF_8\n", False),
        ("# -*- coding: latin-1-unix -*-\n", False),
        ("# coding: iso-8859-1\n", False),
        ("# coding: us-ascii\n", False),
        ("x = 1\n# coding: utf-7\n", False),
        ("\n\n# coding: utf-7\n", False),
        ("'# coding: utf-7'\n", False),
    ],
)
def test_a_file_in_another_encoding_is_skipped(head: str, is_skipped: bool) -> None:
    assert lost(WHOLE, head + WHOLE) == ([(SKIPPED, BOTH)] if is_skipped else [])


def test_what_never_runs_is_no_part_of_the_statements() -> None:
    text = "def test_x():\n  if 0: assert p95 < 50\n  def inner(): assert p95 < 50\n  assert x\n  return\n"
    text += "  assert p95 < 50\n"
    assert read_tests(text.encode()).functions[0].statements == (
        "():",
        "if 0:",
        "def inner():",
        "assert x",
        "return",
    )


_PIECES = [
    "def test_x():\n", "class TestA:\n", "class TestA(TestA):\n", "if False:\n", "else:\n", "@x\n",
    "return\n", "assert ", "not ", "(", "((", ")", "x or ", "True", "a, ", "x;", "def x():", "if 1:", "x = ",
    "test_x.", "del test_x, ", "parametrize('x', [], ", "parametrize(", "@parametrize(", "\t", " ", "\n",
    "\\\n", "\r", "'", '"""', "f'", "#", "lambda: ", "[]", "skip(", "raise ", "# coding: x\n", "=", ":", "1",
    "\x0c",
]  # fmt: skip


def _stairs(size: int, line: str) -> str:
    """Put lines on lines, each one step further in, again and again."""
    steps = [f"{' ' * depth}{line}\n" for depth in range(200)]
    return "".join(steps) * (size // sum(map(len, steps)) + 1)


@pytest.mark.sweep(7)
@pytest.mark.parametrize(
    "text",
    [
        "def test_x():\n  " + "(" * (1 << 18),
        "def test_x():\n  assert " + "(" * (1 << 17) + ")" * (1 << 17),
        "def test_x():\n  assert " + "not " * (1 << 16),
        "def test_x():\n  assert " + "(x or " * (1 << 15) + ")" * (1 << 15),
        "@pytest.mark." + "parametrize(" * (1 << 14) + ")" * (1 << 14) + "\ndef test_x(): pass\n",
        "def test_x():\n  " + "x;" * (1 << 17),
        "".join(f"{' ' * depth}def test_x():\n" for depth in range(700)) + " " * 700 + "x;" * (1 << 16),
        "".join(f"{' ' * depth}if x:\n" for depth in range(700)) + " " * 700 + "x;" * (1 << 16),
        "".join(f"{' ' * depth}class Test{'x' * 1000}:\n" for depth in range(250))
        + f"{' ' * 250}def test_x(): pass\n" * 500,
        f"class Test{'x' * (1 << 17)}:\n" + "".join(f"  def test_{n}(): x\n" for n in range(1 << 13)),
        "def test_x(): pass\n" + "test_x." * (1 << 15) + "x = 1",
        "def test_x(): pass\n" + "x = " * (1 << 16),
        "def test_x(): pass\n" * (1 << 14),
        "@x\n" * (1 << 16) + "def test_x(): pass\n",
        _stairs(1 << 18, "if False:"),
        _stairs(1 << 18, "class TestA:"),
        _stairs(1 << 18, "def x():"),
        "def test_x():\n" + _stairs(1 << 18, "def x():").replace("\n", "\n "),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_a_large_file_of_anything_is_read_in_one_pass(text: str) -> None:
    """What is not linear in the size takes minutes here."""
    found = read_tests(text.encode())
    assert sum(len(test.name) for test in found.functions) < 20 * len(text)


def test_any_text_is_read_without_an_error() -> None:
    chooser = random.Random(7)
    for _ in range(3000):
        text = "".join(chooser.choices(_PIECES, k=60)).encode()
        assert read_tests(text) == read_tests(text.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


def test_a_formatted_string_may_hold_strings_of_its_own_quotes() -> None:
    """Python 3.12 reads them so (PEP 701); under an older one the file would not run at all."""
    text = (
        b"def test_one():\n"
        b'    assert f"{d["("]}" == 1\n'
        b"    assert f'{x!r:>{width}} {{ {\"a\" if b else 'c'} \\N{DASH}' == 2\n"
        b'    assert rf"\\d{3}(" == f"""{\n        d["x"]} "" ( """\n'
        b"    assert f'' f'{f\"{f'{1}'}\"}' == 4\n"
        b"def test_two():\n    assert 1 == two()\n"
    )
    assert {name: test.assertions for name, test in python_tests.tests_of(text).items()} == {
        "test_one": 4,
        "test_two": 1,
    }
