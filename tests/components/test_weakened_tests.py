"""What tests lose is seen, whatever they are written around; what only moved or was renamed is not lost."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from patchgate.components import python_tests
from patchgate.components.python_tests import PythonTest, read_tests
from patchgate.components.weakened_tests import Loss, Weakening, find_weakenings
from patchgate.git.path import RepoPath
from tests.amount import IS_LONG

A, B = RepoPath(b"tests/test_a.py"), RepoPath(b"tests/test_b.py")
TWO = b"""\
def test_one():
    assert 1 == one()
    assert 2 == two()

def test_two():
    with pytest.raises(ValueError):
        two("x")
"""
ONE, _, SECOND = TWO.partition(b"\n\ndef test_two")
SECOND = b"def test_two" + SECOND


def functions_of(content: bytes) -> dict[str, PythonTest]:
    return python_tests.tests_of(content)


def losses(
    before: dict[RepoPath, bytes | None], after: dict[RepoPath, bytes | None], *gone: RepoPath
) -> list[Weakening]:
    return list(find_weakenings(before, after, gone=frozenset(gone)))


def lost(old: bytes, new: bytes) -> list[tuple[Loss, tuple[str, ...]]]:
    """Compare one file before and after."""
    return [(each.loss, each.functions) for each in losses({A: old}, {A: new})]


def test_equal_files_in_another_layout_lost_nothing() -> None:
    other = TWO.replace(b"    ", b"\t").replace(b"\n", b"  # a comment\r\n")
    assert lost(TWO, other) == []
    assert [each.body for each in functions_of(TWO).values()] == [
        each.body for each in functions_of(other).values()
    ]


@pytest.mark.parametrize(
    ("old", "new", "loss"),
    [
        (TWO, ONE, [(Loss.FUNCTION, ("test_two",))]),
        (TWO, b"", [(Loss.FUNCTION, ("test_one", "test_two"))]),
        (TWO, TWO.replace(b"def test_two", b"def check_two"), [(Loss.FUNCTION, ("test_two",))]),
        (
            TWO,
            TWO.replace(b"def test_two", b"def outer():\n  def test_two"),
            [(Loss.FUNCTION, ("test_two",))],
        ),
        (TWO, b'"""' + TWO + b'"""\n', [(Loss.FUNCTION, ("test_one", "test_two"))]),
        (TWO, b"if x(\n" + TWO, [(Loss.FUNCTION, ("test_one", "test_two"))]),
        (TWO, TWO.replace(b"assert 2", b"# assert 2"), [(Loss.ASSERTIONS, ("test_one",))]),
        (TWO, TWO.replace(b"assert 2 ==", b'"assert"'), [(Loss.ASSERTIONS, ("test_one",))]),
        (TWO, TWO.replace(b"assert 2 == two()", b"assert True"), [(Loss.ASSERTIONS, ("test_one",))]),
        (TWO, TWO.replace(b"assert 2 == two()", b"assert (1), 'x'"), [(Loss.ASSERTIONS, ("test_one",))]),
        (TWO, TWO.replace(b"pytest.raises(ValueError)", b"suppress(E)"), [(Loss.ASSERTIONS, ("test_two",))]),
        (TWO, TWO + b"def test_one():\n    pass\n", [(Loss.ASSERTIONS, ("test_one",))]),
        (TWO, b"@pytest.mark.skip\n" + TWO, [(Loss.SKIPPED, ("test_one",))]),
        (TWO, b"@pytest.mark.xfail(\n  reason='x')\n" + TWO, [(Loss.SKIPPED, ("test_one",))]),
        (
            TWO,
            TWO.replace(b"    with", b"    '''x'''\n    return\n    with"),
            [(Loss.SKIPPED, ("test_two",))],
        ),
        (TWO, TWO.replace(b"    with", b"    pytest.skip('x')\n    with"), [(Loss.SKIPPED, ("test_two",))]),
        (TWO, b"pytestmark = [pytest.mark.skip]\n" + TWO, [(Loss.SKIPPED, ("test_one", "test_two"))]),
        (TWO, TWO + b"__test__ = False\n", [(Loss.SKIPPED, ("test_one", "test_two"))]),
        (
            TWO,
            TWO + b"pytest.skip('x', allow_module_level=True)\n",
            [(Loss.SKIPPED, ("test_one", "test_two"))],
        ),
        (b"def check(x):\n    assert x\n" + TWO, b"def check(x):\n    pass\n" + TWO, [(Loss.ASSERTIONS, ())]),
        (TWO, TWO.replace(b"def test_one", b"async def test_one"), []),
        (TWO, TWO.replace(b"test_one", b"test_first"), []),
        (TWO, SECOND + b"\n" + ONE, []),
        (
            b"def test_one() -> None:\n    assert one(1)\n",
            b"class TestOne:\n    def test_first(self, tmp_path):\n        assert one(1)\n",
            [],
        ),
        (TWO, TWO + b"def test_three(): assert three()\n", []),
        (TWO, TWO.replace(b"    with", b"    if windows: pytest.skip('x')\n    with"), []),
        (TWO, b"from x import assert_all\n" + TWO, []),
        (b"from x import assert_all\n" + TWO, TWO, []),
        (b"@pytest.mark.skip\n" + TWO, b"@pytest.mark.xfail\n" + TWO, []),
    ],
)
def test_a_loss_is_told_with_the_functions_concerned(
    old: bytes, new: bytes, loss: list[tuple[Loss, tuple[str, ...]]]
) -> None:
    assert lost(old, new) == loss


def test_classes_are_part_of_a_name_and_their_marks_hold_for_all_in_them() -> None:
    text = b"class TestA(Base):\n    def test_x(self): self.assertEqual(1, x)\n    class TestB:\n"
    text += b"        def test_y(self):\n            assert y\n    def test_z(self):\n        assert z\n"
    assert list(functions_of(text)) == ["TestA.test_x", "TestA.TestB.test_y", "TestA.test_z"]
    assert [each.assertions for each in functions_of(text).values()] == [1, 1, 1]
    assert all(each.is_skipped for each in functions_of(b"@unittest.skip('x')\n" + text).values())
    marked = text + b"    pytestmark = pytest.mark.skip\n"
    assert all(each.is_skipped for each in functions_of(marked).values())
    assert lost(text, text.replace(b"TestB", b"TestC")) == []
    assert lost(text, text.replace(b"        def test_y", b"        def y")) == [
        (Loss.FUNCTION, ("TestA.TestB.test_y",))
    ]


def test_a_function_that_moved_to_another_file_is_not_gone() -> None:
    assert losses({A: TWO}, {A: ONE, B: SECOND}) == []
    assert losses({A: TWO}, {B: TWO + b"\n"}, A) == []
    assert [each.loss for each in losses({A: TWO, B: SECOND}, {A: TWO, B: b""})] == [Loss.FUNCTION]


def test_a_file_that_is_gone_is_told_once_with_what_was_in_it() -> None:
    assert losses({A: TWO}, {B: SECOND}, A) == [Weakening(Loss.FILE, A, None, ("test_one",))]
    assert losses({A: None}, {}, A) == [Weakening(Loss.FILE, A)]
    assert losses({A: b"x = 1\n"}, {}, A) == [Weakening(Loss.FILE, A)]


def test_what_became_no_python_file_has_no_tests() -> None:
    assert [each.loss for each in losses({A: TWO}, {A: None})] == [Loss.FUNCTION]


def test_a_loss_of_assertions_tells_how_many_and_where() -> None:
    (found,) = losses({A: TWO}, {A: b"\n\n" + TWO.replace(b"    assert 2 == two()\n", b"")})
    assert (found.path, found.line, found.before, found.after) == (A, 3, 2, 1)


def test_the_lexer_agrees_with_pythons_own_parser_on_the_tests_of_this_project() -> None:
    looked_at = 0
    places = sorted(Path(__file__).parent.parent.rglob("*.py"))
    for place in places if IS_LONG else places[::6]:
        content = place.read_bytes()
        expected: dict[str, tuple[int, int]] = {}

        def walk(body: list[ast.stmt], above: str, found: dict[str, tuple[int, int]]) -> None:
            for node in body:
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{above}{node.name}.", found)
                elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                    asserts = sum(isinstance(each, ast.Assert) for each in ast.walk(node))
                    found[above + node.name] = (node.lineno, asserts)

        walk(ast.parse(content).body, "", expected)
        found = functions_of(content)
        assert {name: each.line for name, each in found.items()} == {
            name: line for name, (line, _) in expected.items()
        }
        assert all(found[name].assertions >= asserts for name, (_, asserts) in expected.items()), place
        looked_at += len(found)
    assert looked_at > (500 if IS_LONG else 200)


def test_any_bytes_are_read_without_an_error_and_in_one_pass() -> None:
    chooser = random.Random(5)
    pieces = [b'"""', b"'", b'"', b"\\", b"\n", b"\r\n", b"    ", b"\t", b"#", b"(", b"]", b"def ", b"class "]
    pieces += [
        b"test_x",
        b":",
        b"@",
        b"async",
        b"assert ",
        b"f",
        b"rb",
        b"1.5e",
        b"\xff",
        "ä".encode(),
        b"\0",
    ]
    for _ in range(2000):
        read_tests(b"".join(chooser.choices(pieces, k=40)))
    for piece in pieces:
        read_tests(piece * 50_000)
