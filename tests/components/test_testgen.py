"""The tests that are made of a contract: they run, pass where it is kept, fail where it is broken."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.components.contract_facts import BudgetPromise
from patchgate.components.contract_reading import read_contract
from patchgate.components.contracts import BudgetTests
from patchgate.components.testgen import Origin, ValueKinds, as_comment, as_literal, module_text, modules_of
from patchgate.git.path import RepoPath
from patchgate.policy.component import Component
from patchgate.policy.settings import ComponentSettings
from tests.amount import often
from tests.component_world import declared
from tests.components.capture_world import QUICK
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

Json = dict[str, Any]
PLACE = "tests/contracts/test_shaping.py"
CONTRACT = "contracts/shaping/interface.json"
POLICY = declared("shaping", tests=[PLACE])
NO_EFFECT = [{"kind": "none"}]
ORIGIN = Origin("shaping", CONTRACT, ("src", "."), ("shaping",))


def contract(*functions: Json, **more: Any) -> Json:
    return {"component_id": "shaping", "version": "1.2.0", "functions": list(functions), **more}


def function(name: str = "shape", inputs: str = "text: str; width: int", **more: Any) -> Json:
    pairs = [each.partition(": ") for each in inputs.split("; ") if each]
    named = [{"name": before, "type": after} for before, _, after in pairs]
    return {"name": name, "inputs": named, "side_effects": NO_EFFECT, **more}


SHAPE = function(
    output={"type": "str"},
    idempotent=True,
    examples=[{"inputs": {"text": "a", "width": 3}, "output": "a  "}],
    error_cases=[
        {"error": "ValueError", "condition": "the width is negative", "inputs": {"text": "a", "width": -1}},
        {"error": "TooWide", "condition": "it does not fit", "inputs": {"text": "a", "width": 1000}},
        {"error": "OSError", "condition": "the disk is full\nimport os"},
    ],
    performance_budget={"p95_latency_ms": 60000, "max_memory_mb": 4.5, "complexity": "O(n)"},
)
PROMISED = contract(SHAPE)
RIGHT = """
class TooWide(Exception):
    pass


def shape(text, width):
    if width < 0:
        raise ValueError(width)
    if width > 999:
        raise TooWide(width)
    return text.ljust(width)
"""


def made(repo: Repo, document: Json = PROMISED, code: str = RIGHT, policy: str = POLICY) -> str:
    """Commit a component, make its tests, write them where they belong; give their text."""
    repo.commit({"patchgate.toml": policy, CONTRACT: json.dumps(document), "src/shaping/core.py": code})
    answer = repo.cli("component", "tests", "shaping")
    assert answer.code == 0, answer.err
    repo.write(PLACE, answer.out)
    return answer.out


def ran(repo: Repo) -> dict[str, str]:
    """Run the tests as a user would; give what became of each, and the whole output as `output`."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--color=no", PLACE],
        cwd=repo.path,
        env=QUICK | repo.env,
        capture_output=True,
        text=True,
        check=False,
    )
    words = [line.split() for line in done.stdout.splitlines() if f" {PLACE}::" in line]
    ends = {each[1].partition("::")[2]: each[0] for each in words if each[0] in {"PASSED", "FAILED", "ERROR"}}
    assert done.returncode == (0 if set(ends.values()) == {"PASSED"} else 1), done.stdout + done.stderr
    return {**ends, "output": done.stdout}


def failed(ends: dict[str, str]) -> list[str]:
    return sorted(name for name, end in ends.items() if end == "FAILED")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository without a commit."""
    return Repo.create(tmp_path)


def test_the_tests_of_a_contract_pass_against_an_implementation_that_keeps_it(repo: Repo) -> None:
    text = made(repo)
    ends = ran(repo)
    ends.pop("output")
    assert ends == dict.fromkeys(
        [
            "test_shape_is_there",
            "test_shape_example_1",
            "test_shape_error_1",
            "test_shape_error_2",
            "test_shape_is_idempotent",
            "test_shape_p95_latency_ms",
            "test_shape_max_memory_mb",
        ],
        "PASSED",
    )
    assert "# - error case 3, OSError: no inputs say when (the disk is full\\nimport os)\n" in text


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("code", "broken"),
    [
        (RIGHT.replace("ljust", "rjust"), ["test_shape_example_1"]),
        (RIGHT.replace("raise ValueError(width)", "return text"), ["test_shape_error_1"]),
        (RIGHT.replace("raise TooWide", "raise KeyError"), ["test_shape_error_2"]),
        (RIGHT + "made = []\nright = shape\ndef shape(text, width):\n    made.append(1)\n"
         "    return right(text, width) + '!' * (len(made) - 1)\n", ["test_shape_is_idempotent"]),
        (RIGHT.replace("return text", "bytearray(8 << 20)\n    return text"), ["test_shape_max_memory_mb"]),
    ],
    ids=["another result", "no error", "another error", "not idempotent", "too much memory"],
)  # fmt: skip
def test_each_broken_promise_fails_the_test_of_it(repo: Repo, code: str, broken: list[str]) -> None:
    made(repo, code=code)
    assert failed(ran(repo)) == broken


def test_an_implementation_that_is_too_slow_fails_the_test_of_its_budget(repo: Repo) -> None:
    """Requirement D 5.3: a budget is asserted by a test that runs."""
    slow = function(inputs="", examples=[], performance_budget={"p95_latency_ms": 1})
    made(repo, contract(slow), "def shape():\n    return sum(range(300_000))\n")
    assert failed(ran(repo)) == ["test_shape_p95_latency_ms"]


def test_a_function_that_is_missing_is_told_in_a_sentence_and_proves_no_error_case(repo: Repo) -> None:
    promised = function(
        "gone", error_cases=[{"error": "Exception", "inputs": {"text": "", "width": 0}}], examples=[]
    )
    made(repo, contract(promised), "import nowhere_at_all\n")
    ends = ran(repo)
    assert failed(ends) == ["test_gone_error_1", "test_gone_is_there"]
    assert "no function gone in or below shaping. shaping.core: ModuleNotFoundError" in ends["output"]


def test_a_function_is_found_below_the_package_though_a_module_is_broken_and_a_main_is_not_run(
    repo: Repo,
) -> None:
    repo.stage(
        {
            "src/shaping/__init__.py": "from json import loads as shape\n",
            "src/shaping/a_broken.py": "import nowhere_at_all\n",
            "src/shaping/__main__.py": "raise SystemExit('ran')\n",
            "src/shaping/deep/__init__.py": "",
            "src/shaping/deep/core.py": RIGHT,
        }
    )
    made(repo, code="")
    assert failed(ran(repo)) == []


def test_nothing_more_is_imported_than_it_takes_to_find_the_function(repo: Repo) -> None:
    repo.stage({"src/shaping/zz.py": "raise SystemExit('it was imported')\n"})
    made(repo)
    assert failed(ran(repo)) == []


def test_what_json_cannot_say_is_made_of_the_types_and_results_are_compared_by_what_they_hold(
    repo: Repo,
) -> None:
    point = {"x": 1, "tags": ["b", "a"]}
    move = function(
        "move",
        "points: list[Point]; raw: bytes | None; size: tuple[int, int]",
        output={"type": "Point"},
        idempotent=True,
        examples=[
            {
                "inputs": {"points": [point], "raw": "abc", "size": [1, 2]},
                "output": {"x": 2, "tags": ["a", "b"]},
            },
            {"inputs": {"points": [], "raw": None, "size": [0, 0]}, "output": None},
        ],
    )
    later = function("later", "n: int", examples=[{"inputs": {"n": 3}, "output": [0, 0.1, 0.3]}])
    each = function("each", "n: int", examples=[{"inputs": {"n": 2}, "output": [[0, True], [1, True]]}])
    types = [
        {"name": "Point", "fields": [{"name": "x", "type": "int"}, {"name": "tags", "type": "set[str]"}]}
    ]
    code = """
class Point:
    def __init__(self, x, tags):
        self.x, self.tags = x, tags


def move(points, raw, size):
    assert isinstance(size, tuple)
    if not points:
        assert raw is None
        return None
    assert raw == b"abc" and points[0].tags == {"a", "b"}
    points[0].x += 1
    return points.pop()


async def later(n):
    return [0, 0.1, 0.1 + 0.2]


def each(n):
    for number in range(n):
        yield number, True
"""
    made(repo, contract(move, later, each, types=types), code)
    assert failed(ran(repo)) == []
    made(
        repo, contract(move, later, each, types=types), code.replace("yield number, True", "yield number, 1")
    )
    assert failed(ran(repo)) == ["test_each_example_1"]


def test_the_module_is_the_same_bytes_whatever_the_implementation_and_the_machine_are(repo: Repo) -> None:
    first = made(repo)
    assert made(repo, code="raise SystemExit\n") == first
    assert first.isascii()
    again = repo.run("component", "tests", "shaping", LC_ALL="C.UTF-8", PYTHONHASHSEED="7")
    assert again.out == first
    later = made(repo, contract(SHAPE) | {"version": "1.3.0"})
    assert later == first.replace('VERSION = "1.2.0"', 'VERSION = "1.3.0"') != first


def test_the_module_is_made_of_head_and_of_the_index_only_where_that_is_asked_for(repo: Repo) -> None:
    first = made(repo)
    repo.stage({CONTRACT: json.dumps(PROMISED | {"version": "2.0"})})
    repo.write(CONTRACT, "{}")
    answer = repo.cli("component", "tests", "shaping")
    assert (answer.out, answer.err.count("\n"), answer.err.split()[-1]) == (first, 1, "--staged")
    assert " HEAD" in answer.err
    staged = repo.cli("component", "tests", "shaping", "--cached")
    assert staged.out == first.replace('VERSION = "1.2.0"', 'VERSION = "2.0"')
    assert staged.err == ""
    repo.git("rm", "-q", "-f", "--cached", "--", CONTRACT)
    gone = repo.cli("component", "tests", "shaping", "--cached")
    assert (gone.code, gone.out) == (2, "")
    assert "index" in gone.err
    assert CONTRACT in gone.err


AWKWARD: list[Any] = [
    "x" * 200 + "\"'\\\n\u2028\U0001f600é{}",
    {"k" * 90: ["y" * 84, -1e-7, 1e16, 1e300, [], {}, [[]], True, None, {"a": {"b": [1]}}]},
    "it's",
    'say "x"',
    "both ' and \"",
    "\\N{BULLET} \\u0041 \x00\x7f\x85",
    [[1], [[2]], {"": ""}],
    10**200,
]


@pytest.mark.parametrize("length", ["79", "88", "110", "200"])
def test_the_module_is_as_ruff_lays_it_out_under_any_length_of_lines(tmp_path: Path, length: str) -> None:
    point = {"name": "Point", "fields": [{"name": "x", "type": "int"}]}
    named = function(
        "n" * 100,
        "value: Any; point: Point",
        idempotent=True,
        examples=[{"inputs": {"value": each, "point": {"x": 1}}, "output": each} for each in AWKWARD],
        performance_budget={"p95_latency_ms": 1.5, "max_memory_mb": 2},
    )
    for number, document in enumerate(
        [contract(SHAPE), contract(SHAPE, named, types=[point]), contract(function())]
    ):
        read = read_contract(json.dumps(document).encode())
        assert read is not None
        (tmp_path / f"test_{number}.py").write_text(module_text(read, ORIGIN), encoding="ascii")
    ruff = [sys.executable, "-m", "ruff"]
    same = ("format", "--isolated", "--no-cache", "--diff", "--line-length", length)
    clean = ("check", "--isolated", "--no-cache", "--select", "E4,E7,E9,F,I,B,UP,SIM,RUF", "--ignore-noqa")
    # Whatever rules a project has chosen, they are not for what was made; PGH004 is about saying so.
    default = ("check", "--isolated", "--no-cache")
    for arguments in (same, clean, default, (*default, "--select", "ALL", "--ignore", "PGH004")):
        done = subprocess.run(
            [*ruff, *arguments, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_tests_of_head_are_told_of_no_other_contract_where_none_is_staged(repo: Repo, tmp_path: Path) -> None:
    made(repo)
    repo.write(CONTRACT, "{}")
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare"))
    for place in (repo, repo.at(tmp_path / "bare")):
        answer = place.cli("component", "tests", "shaping")
        assert (answer.code, answer.err) == (0, "")
    repo.git("rm", "-q", "-f", "--cached", "--", CONTRACT)
    assert repo.cli("component", "tests", "shaping").err == ""


def test_the_gate_sees_that_a_generated_module_asserts_every_budget() -> None:
    other = function(
        "other", "", performance_budget={"p95_latency_ms": 7}, examples=[{"inputs": {}, "output": 1}]
    )
    read = read_contract(json.dumps(contract(SHAPE, other)).encode())
    assert read is not None
    found = BudgetTests({RepoPath(PLACE.encode()): module_text(read, ORIGIN).encode()})

    def promise(name: str, kind: str, limit: float) -> BudgetPromise:
        return BudgetPromise(name, kind, limit, "functions[0]", 1)

    assert found.asserts(promise("shape", "p95_latency_ms", 60000))
    assert found.asserts(promise("shape", "max_memory_mb", 4.5))
    assert found.asserts(promise("other", "p95_latency_ms", 7))
    assert not found.asserts(promise("other", "max_memory_mb", 9))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@settings(deadline=None)
@given(VALUES)
def test_a_literal_says_its_value_in_ascii(value: Any) -> None:
    text = as_literal(value)
    read = eval(text, {"__builtins__": {}})  # literal_eval knows no -1e999
    assert repr(read) == repr(value)
    assert text.isascii()
    assert text.isprintable() or "\n" in text


@given(st.text())
def test_a_comment_stays_on_its_line(text: str) -> None:
    written = as_comment(text)
    assert written.isascii()
    assert written.isprintable()


NAMES = st.from_regex(r"\A[a-z_]{1,6}\Z")


def unparsed(test: ast.FunctionDef) -> str:
    """Write what stands behind the case; it is the same in every test of its sort."""
    return "\n".join(map(ast.unparse, test.body[1:]))


@settings(max_examples=often(60), deadline=None)
@given(
    st.lists(
        st.tuples(NAMES, st.text(), VALUES, st.booleans()), min_size=1, max_size=3, unique_by=lambda x: x[0]
    )
)
def test_nothing_of_a_contract_becomes_code(functions: list[tuple[str, str, Any, bool]]) -> None:
    document = contract(
        *(
            function(
                name,
                "value: Any",
                description=text,
                examples=[{"inputs": {"value": value}, "output": value}],
                error_cases=[{"error": "ValueError", "condition": text}],
                idempotent=idempotent,
            )
            for name, text, value, idempotent in functions
        )
    )
    read = read_contract(json.dumps(document).encode())
    if read is None:
        return
    module = ast.parse(module_text(read, ORIGIN))
    tests = [each for each in module.body if isinstance(each, ast.FunctionDef) and each.name[:5] == "test_"]
    assert len({each.name for each in tests}) == sum(2 + each[3] for each in functions)
    bodies = {each.name.rpartition("_")[2]: unparsed(each) for each in tests}
    assert set(bodies) <= {"there", "1", "idempotent"}
    for test in tests:
        case = test.body[0]
        assert isinstance(case, ast.AnnAssign)
        inside = {type(node) for node in ast.walk(case.value)} if case.value is not None else set()
        assert inside <= {ast.Dict, ast.List, ast.Constant, ast.UnaryOp, ast.USub, ast.Load}
        assert unparsed(test) == bodies[test.name.rpartition("_")[2]]


@pytest.mark.parametrize(
    ("globs", "roots", "modules"),
    [
        (["src/shaping/**"], ["src", "."], ["shaping"]),
        (["src/shaping/*.py", "src/shaping/deep/**"], ["src", "."], ["shaping", "shaping.deep"]),
        (["src/shaping.py", "src/other/__init__.py"], ["src"], ["shaping", "other"]),
        (["lib/a/core.py"], ["src", "."], ["lib.a.core"]),
        (["lib/a/core.py"], ["src"], []),
        (["packages/one/src/a/**"], [".", "packages/one/src", "packages"], ["a"]),
        (["/src/a/**", "src/a/**"], ["src/"], ["a"]),
        (["src/my-lib/**", "src/class/**", "src/ä/**", "src/**", "src/a[bc]/**"], ["src"], []),
    ],
)
def test_modules_are_read_from_the_patterns_below_the_longest_source_root(
    globs: list[str], roots: list[str], modules: list[str]
) -> None:
    settings = ComponentSettings(CONTRACT, (), tuple(globs))
    assert list(modules_of(Component("shaping", settings), roots)) == modules


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("str", []),
        ("Any", []),
        ("list[int]", []),
        ("bytes", ["bytes"]),
        ("Point", ["Point"]),
        ("Point | None", ["Point"]),
        ("Optional[list[Point]]", ["list", "Point"]),
        ("dict[str, list[Point]]", ["dict", "list", "Point"]),
        ("dict[str, int]", []),
        ("tuple[int, str]", ["tuple"]),
        ("tuple[Point, ...]", ["tuple", "Point"]),
        ("frozenset[str]", ["frozenset"]),
        ("collections.abc.Sequence[Point]", ["list", "Point"]),
        ("str | Point", []),
    ],
)
def test_a_kind_is_read_from_the_outside_in(written: str, kind: list[str]) -> None:
    assert ValueKinds({"Point": {}}).of(written) == kind


def test_a_contract_that_cannot_be_read_is_told_with_its_lines(repo: Repo) -> None:
    document = '{"component_id": "shaping",\n "version": "1.0",\n "surprise": "\\u001b[31m"}\n'
    repo.commit({"patchgate.toml": POLICY, CONTRACT: document})
    answer = repo.cli("component", "tests", "shaping")
    assert (answer.code, answer.out) == (2, "")
    assert f"{CONTRACT}:3: surprise:" in answer.err
    assert "\x1b" not in answer.err


@pytest.mark.parametrize(
    ("document", "glob", "said"),
    [
        (contract(), "src/shaping/**", "has no functions"),
        (contract(SHAPE), "web/**/*.ts", "pattern of shaping "),
        (None, "src/shaping/**", f"HEAD has no {CONTRACT}"),
    ],
)
def test_what_cannot_be_tested_is_refused_with_the_next_step(
    repo: Repo, document: Json | None, glob: str, said: str
) -> None:
    policy = POLICY.replace("src/shaping/**", glob) + '[baselines]\nsource_roots = ["src"]\n'
    repo.commit({"patchgate.toml": policy} | ({CONTRACT: json.dumps(document)} if document else {}))
    answer = repo.cli("component", "tests", "shaping")
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert "\nhelp: " in answer.err


def test_a_contract_that_is_a_symlink_is_not_followed(repo: Repo) -> None:
    repo.write("real.json", json.dumps(contract(SHAPE)))
    repo.link(CONTRACT, "../../real.json")
    repo.commit({"patchgate.toml": POLICY})
    answer = repo.cli("component", "tests", "shaping")
    assert (answer.code, answer.out) == (2, "")
    assert CONTRACT in answer.err
    assert "regular" in answer.err
