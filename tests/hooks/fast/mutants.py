"""Every condition of the recogniser, and the program without it.

Found in the source, so a condition that is added is found too: what `require` is given (each operand of its
`and`, each link of a chain, each element where two rows are compared), what a function that answers yes or no
returns, what is kept as a yes or no, what ends a search early, each kind of record that is looked for, and
what narrows the things that are looked at. Which case shows that a condition is needed stands in `cases`.
"""

from __future__ import annotations

import ast
import copy
import marshal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from patchgate.hooks.fast.cache_files import recogniser, sealed_copy

# Equal to whatever it is compared with.
_ANYTHING = ast.parse("type('_', (), {'__eq__': lambda self, other: True})()", mode="eval").body
_LISTS = ("RECORDED",)


@dataclass(frozen=True)
class Mutant:
    """A condition by its function and its text; `of`, `place` and `number` say where it is."""

    condition: str
    of: ast.Module
    place: int
    number: int

    @property
    def program(self) -> ast.Module:
        """The whole program in which the condition always holds; making it costs 30 ms."""
        changed = copy.deepcopy(self.of)
        function, node = _nodes(changed)[self.place]
        _, drop = list(_changes(node, function))[self.number]
        drop()
        return changed

    def write(self, place: Path) -> Path:
        """Compile it as the copy is compiled."""
        return write_copy(place, self.program)


def source() -> ast.Module:
    """Read the recogniser as it came with this patchgate."""
    return ast.parse(recogniser()[1])


def write_copy(place: Path, program: ast.Module) -> Path:
    """Compile a program as the copy is compiled."""
    code = compile(ast.fix_missing_locations(program), "recognise.py", "exec", dont_inherit=True)
    place.write_bytes(sealed_copy(recogniser()[1], marshal.dumps(code)))
    return place


def mutants(program: ast.Module) -> list[Mutant]:
    """List every condition with the program that does without it."""
    found: dict[str, Mutant] = {}
    for place, (function, node) in enumerate(_nodes(program)):
        for number, (text, _) in enumerate(_changes(node, function)):
            name = f"{function}: {text}"
            while name in found:
                name += " (again)"
            found[name] = Mutant(name, program, place, number)
    return list(found.values())


def _nodes(program: ast.Module) -> list[tuple[str, ast.AST]]:
    """List all nodes in order, each with the function that it stands in."""
    return [
        (statement.name if isinstance(statement, ast.FunctionDef) else "module", node)
        for statement in program.body
        for node in ast.walk(statement)
    ]


def _changes(node: ast.AST, function: str) -> Iterator[tuple[str, _Change]]:
    """Say what there is to drop at a node itself: the text of the condition, and how it is dropped."""
    match node:
        case ast.Call(func=ast.Name("require"), args=[asked]):
            yield from _operands(asked, node.args, 0, ast.And)
        case ast.FunctionDef(returns=ast.Name("bool")):
            last = node.body[-1]
            assert isinstance(last, ast.Return)
            assert last.value is not None
            for either in _parts(last.value, ast.Or):
                yield f"return … {ast.unparse(either)}", _Change(last, "value", ast.Constant(True))
        case ast.Assign(targets=[ast.Name(name)], value=ast.Compare()):
            yield f"{name} = {ast.unparse(node.value)}", _Change(node, "value", ast.Constant(True))
        case ast.Assign(targets=[ast.Name(name)], value=ast.BoolOp(op=ast.Or(), values=values)):
            for place, either in enumerate(values):
                yield f"{name} if {ast.unparse(either)}", _Change(values, place, ast.Constant(False))
        case ast.If(body=[ast.Return(value=None)]):
            yield f"return if {ast.unparse(node.test)}", _Change(node, "test", ast.Constant(True))
        case ast.While(test=ast.Compare(ops=[ast.NotIn()])):
            yield f"while {ast.unparse(node.test)}", _Change(node, "test", ast.Constant(False))
        case ast.Assign(targets=[ast.Name(name)], value=ast.Tuple(elts=rows)) if name in _LISTS:
            for place, row in enumerate(rows):
                yield f"{name} has {ast.unparse(row)}", _Change(rows, place, None)
        case ast.Assign(value=ast.IfExp(orelse=orelse)) if ast.unparse(orelse) in {"{}", "()", "[]", "b''"}:
            yield f"{ast.unparse(node.value)}", _Change(node, "value", orelse)
        case ast.Assign(targets=[ast.Name(name)], value=value) if isinstance(value, ast.ListComp | ast.Call):
            for inner in (each for each in ast.walk(value) if isinstance(each, ast.comprehension)):
                for place, wanted in enumerate(inner.ifs):
                    # What is looked at is narrowed in main; elsewhere, what counts as an answer.
                    text = f"{name} if {ast.unparse(wanted)}"
                    yield text, _Change(inner.ifs, place, ast.Constant(function != "recognise"))


@dataclass(frozen=True)
class _Change:
    """One place in the tree, and what is put there (None: what is there is taken away)."""

    holder: ast.AST | list[ast.expr]
    place: str | int
    new: ast.expr | None

    def __call__(self) -> None:
        if isinstance(self.holder, ast.AST):
            assert isinstance(self.place, str)
            setattr(self.holder, self.place, self.new)
        elif self.new is None:
            assert isinstance(self.place, int)
            del self.holder[self.place]
        else:
            assert isinstance(self.place, int)
            self.holder[self.place] = self.new


def _parts(value: ast.expr, joint: type[ast.boolop]) -> list[ast.expr]:
    return value.values if isinstance(value, ast.BoolOp) and isinstance(value.op, joint) else [value]


def _operands(
    asked: ast.expr, holder: list[ast.expr], place: int, joint: type[ast.boolop]
) -> Iterator[tuple[str, _Change]]:
    if isinstance(asked, ast.BoolOp) and isinstance(asked.op, joint):
        for number, value in enumerate(asked.values):
            yield from _operands(value, asked.values, number, joint)
    elif isinstance(asked, ast.Compare) and len(asked.ops) > 1:
        yield from _links(asked, holder, place)
    elif isinstance(asked, ast.Compare) and isinstance(asked.ops[0], ast.Eq) and _row(asked) is not None:
        row = _row(asked)
        assert row is not None
        for number, element in enumerate(row):
            yield (
                f"{ast.unparse(asked)}, element {number + 1} ({ast.unparse(element)})",
                _Change(row, number, copy.deepcopy(_ANYTHING)),
            )
    else:
        yield ast.unparse(asked), _Change(holder, place, ast.Constant(True))


def _row(asked: ast.Compare) -> list[ast.expr] | None:
    """Give the elements that the other side is held against."""
    right = asked.comparators[0]
    return right.elts if isinstance(right, ast.Tuple | ast.List) else None


def _links(asked: ast.Compare, holder: list[ast.expr], place: int) -> Iterator[tuple[str, _Change]]:
    terms = [asked.left, *asked.comparators]
    links = [
        ast.Compare(terms[number], [operator], [terms[number + 1]])
        for number, operator in enumerate(asked.ops)
    ]
    for number, link in enumerate(links):
        others = [copy.deepcopy(each) for each in (*links[:number], *links[number + 1 :])]
        kept: ast.expr = others[0] if len(others) == 1 else ast.BoolOp(ast.And(), list(others))
        yield ast.unparse(link), _Change(holder, place, kept)
