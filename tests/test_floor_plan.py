"""The floor plan: imports go down only, the wings never meet, each third party has one home.

Reads the source, so what is imported inside a function, for types alone, or by name counts as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "patchgate"

# Each floor may import what lies below it; the rooms of one floor are wings, and never import each other.
FLOORS = (
    ("errors",),
    ("process", "durable"),
    ("change",),
    ("verdict",),
    ("declared",),
    ("gates", "tools", "git", "ledger"),
    ("runs",),
    ("operations",),
    ("surfaces",),
)
# A room by itself: it is compiled into each repository and runs there alone, so nothing is shared with it.
APART = "fastpath"
APART_IMPORTS = {"posix", "sys", "_imp.source_hash", "marshal.loads", "typing.Any"} | {
    *("_sha1.sha1", "hashlib.sha1", "hashlib.sha256")
}
APART_MOST_LINES = 330
# Inside operations the arrows are hold -> land -> judge; tell only reads, so it may know how judging finds
# a policy, and nobody knows tell.
OPERATIONS = {
    "judge": frozenset[str](),
    "land": frozenset({"judge"}),
    "hold": frozenset({"land", "judge"}),
    "tell": frozenset({"judge"}),
}
HOMES = {
    "pygit2": {"git"},
    "click": {"surfaces"},
    "subprocess": {"process"},
    "pydantic": {"declared", "ledger", "tools", "surfaces"},
    "pydantic_core": {"declared", "ledger", "tools", "surfaces"},
    "pathspec": {"declared"},
}
# Pure rooms know no files, no children, no clock and no chance; `declared` gets bytes too, never a file.
PURE = {"change", "verdict", "gates", "declared"}
IMPURE = {
    "datetime",
    "glob",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
NAMELESS = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "tools_common"}
MOST_LINES = 450
SEEN_BY_MOUTHS_ALONE = {"os.environ", "os.getenv", "sys.argv", "sys.stdin", "sys.stdout", "sys.stderr"}


@dataclass(frozen=True)
class Import:
    """One import: which module says it, on which line, and what it names (`patchgate.git.objects`)."""

    module: str
    line: int
    names: str

    @property
    def room(self) -> str:
        """The room that imports; `__main__` is a mouth."""
        parts = self.module.split(".")
        if len(parts) == 1:
            return ""
        return "surfaces" if parts[1] == "__main__" else parts[1]

    @property
    def target(self) -> str | None:
        """The room of ours that is imported; None for somebody else's module, "" for the package itself."""
        parts = self.names.split(".")
        if parts[0] != "patchgate":
            return None
        return parts[1] if len(parts) > 1 and is_room(parts[1]) else ""

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.names}"


def is_room(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module: str, path: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{module}:{node.lineno}: a relative import"
            assert node.level == 0, f"{module}:{node.lineno}: a relative import"
            for alias in node.names:
                yield Import(module, node.lineno, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Call) and name_of(node.func) in {"import_module", "__import__"}:
            yield Import(module, node.lineno, constant_start(node.args[0]))


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def constant_start(argument: ast.expr) -> str:
    """Read the name that is imported by a call, or the constant part that an f-string begins with."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    assert isinstance(argument, ast.Constant), ast.dump(argument)
    assert isinstance(argument.value, str), ast.dump(argument)
    return argument.value


MODULES = modules()
IMPORTS = [each for module, path in MODULES.items() for each in imports_of(module, path)]


def floor_of(room: str) -> int:
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), -1)


def test_every_room_is_on_the_floor_plan() -> None:
    rooms = {module.split(".")[1] for module in MODULES if "." in module} - {"__main__"}
    assert [room for room in sorted(rooms) if floor_of(room) < 0] == [APART]


def test_imports_go_down_only_and_wings_never_import_each_other() -> None:
    wrong = [
        str(each)
        for each in IMPORTS
        if each.target and each.target != each.room and floor_of(each.target) >= floor_of(each.room)
    ]
    assert wrong == []


def test_the_fast_path_stands_apart_and_is_small() -> None:
    others = {each.module for each in IMPORTS if each.room != APART and each.target == APART}
    assert others == {"patchgate.surfaces.quick_push"}
    assert {each.names for each in IMPORTS if each.room == APART} <= APART_IMPORTS
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in (PACKAGE / APART).rglob("*.py"))
    assert lines <= APART_MOST_LINES


def test_what_the_fast_path_imports_for_types_is_never_imported() -> None:
    program = ast.parse((PACKAGE / APART / "recognise.py").read_bytes())
    assert "TYPE_CHECKING = False" in map(ast.unparse, program.body)
    for_types = [
        inner
        for each in program.body
        if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"
        for inner in each.body
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    every = [each for each in ast.walk(program) if isinstance(each, ast.Import | ast.ImportFrom)]
    imported = [each for each in every if each not in for_types]
    assert len(every) == len(imported) + len(for_types)
    assert "typing" not in {each.module for each in imported if isinstance(each, ast.ImportFrom)}


def test_inside_operations_hold_imports_land_imports_judge_and_nothing_imports_tell() -> None:
    wrong = []
    for each in IMPORTS:
        source, target = each.module.split("."), each.names.split(".")
        if not (source[1:2] == target[1:2] == ["operations"] and len(source) > 2 and len(target) > 2):
            continue
        if target[2] != source[2] and target[2] not in OPERATIONS[source[2]]:
            wrong.append(str(each))
    assert wrong == []


def test_each_third_party_has_one_home() -> None:
    wrong = [
        str(each)
        for each in IMPORTS
        if each.target is None
        and ((package := each.names.split(".")[0]) in HOMES or package not in sys.stdlib_module_names)
        and each.room not in HOMES.get(package, set())
    ]
    assert wrong == []


def test_pure_rooms_import_no_files_children_clock_or_chance() -> None:
    wrong = [
        str(each)
        for each in IMPORTS
        if each.room in PURE
        and (each.names.split(".")[0] in IMPURE or each.target in {"process", "durable", "git", "ledger"})
    ]
    assert wrong == []


def test_pure_rooms_open_no_file_and_print_nothing() -> None:
    wrong = [
        f"{module}:{node.lineno} calls {node.func.id}"
        for module, path in MODULES.items()
        if "." in module and module.split(".")[1] in PURE
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input", "exec", "eval"}
    ]
    assert wrong == []


def test_only_surfaces_read_the_environment_or_print() -> None:
    wrong = []
    for module, path in MODULES.items():
        room = module.split(".")[1:2]
        if room == ["surfaces"]:
            continue
        # What is run as a program of its own has no mouth but its arguments.
        seen = SEEN_BY_MOUTHS_ALONE - ({"sys.argv"} if room == [APART] else set())
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in seen:
                wrong.append(f"{module}:{node.lineno} reads {ast.unparse(node)}")
            if isinstance(node, ast.Call) and name_of(node.func) in {"print", "getcwd"}:
                wrong.append(f"{module}:{node.lineno} calls {name_of(node.func)}")
    assert wrong == []


def test_a_module_has_a_name_of_its_own_and_says_what_it_does() -> None:
    wrong = []
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > MOST_LINES:
            wrong.append(f"{module} is longer than {MOST_LINES} lines")
        if not NAMELESS.isdisjoint(module.split(".")):
            wrong.append(f"{module} has a name that says nothing")
        if not ast.get_docstring(ast.parse(text)) and module != "patchgate.__main__":
            wrong.append(f"{module} has no docstring")
    assert wrong == []


def test_the_reader_of_imports_sees_every_kind_of_import(tmp_path: Path) -> None:
    """The tests above can fail: an import within a function, for types, or by name is found."""
    place = tmp_path / "sly.py"
    place.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from patchgate.git.objects import Objects\n"
        "def run():\n    import pygit2\n    import importlib\n"
        "    importlib.import_module('patchgate.surfaces.program')\n",
        encoding="utf-8",
    )
    found = {each.names: each.target for each in imports_of("patchgate.gates.sly", place)}
    assert found["patchgate.git.objects.Objects"] == "git"
    assert found["patchgate.surfaces.program"] == "surfaces"
    assert found["pygit2"] is None
    assert floor_of("git") >= floor_of("gates")
