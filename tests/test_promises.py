"""Each promise of the policy page and the threat model, and each requirement, names a test that shows it.

In `docs/threat-model.md` it is named in the last column of the tables that end in `tested by`; in
`docs/policy.md` in a comment behind the promise; in `tests/requirements.md` in the last column. Names are
relative to `tests/`: `FILE` or `FILE::TEST`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
POLICY = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
THREAT_MODEL = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
REQUIREMENTS = (TESTS / "requirements.md").read_text(encoding="utf-8")
RANGES = {"A": 20, "B": 22, "C": 41, "E": 25}
COMPONENTS = (
    *(
        "D 1.1",
        "D 1.2",
        "D 1.3",
        "D 1.4",
        "D 1.5",
        "D 2.1",
        "D 2.2",
        "D 2.3",
        "D 2.4",
        "D 4.1",
        "D 4.2",
        "D 4.3",
        "D 4.4",
    ),
    *("D 3.1", "D 3.2", "D 3.3"),
    *("D 5.1", "D 5.2", "D 5.3", "D 6.1", "D 6.2", "D 6.3", "D 6.4", "D 6.5", "D 6.6"),
)
_COMMENT = re.compile(r"<!-- tested by: (.*?) -->", re.DOTALL)


@cache
def functions_of(name: str) -> frozenset[str]:
    """Name the tests of a file; none where there is no such file."""
    place = TESTS / name
    if not place.is_file():
        return frozenset()
    tree = ast.parse(place.read_text(encoding="utf-8"))
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))


def is_there(name: str) -> bool:
    """Tell whether `FILE` or `FILE::TEST` names a test."""
    file, _, test = name.partition("::")
    found = {each for each in functions_of(file) if each.startswith("test_")}
    return test in found if test else bool(found)


def promised() -> Iterator[tuple[str, list[str]]]:
    """List the promises, each with the tests that it names."""
    for row in re.findall(r"^\|.*\| tested by \|\n\|[- |]+\|\n((?:\|.*\|\n)+)", THREAT_MODEL, re.MULTILINE):
        for line in row.splitlines():
            yield line, re.findall(r"`([\w/]+\.py(?:::\w+)?)`", line.strip("| ").rpartition("|")[2])
    for bullet in re.findall(r"^- .*(?:\n {2}.*)*", POLICY, re.MULTILINE):
        names = [name.strip() for found in _COMMENT.findall(bullet) for name in found.split(",")]
        yield bullet, names


def test_every_promise_names_a_test_that_is_there() -> None:
    promises = list(promised())
    untested = [promise for promise, names in promises if not names]
    missing = [name for _, names in promises for name in names if not is_there(name)]
    assert (untested, missing) == ([], [])
    assert len(promises) >= 50


def test_a_promise_that_names_nothing_would_be_found() -> None:
    assert not is_there("test_promises.py::test_of_nothing")
    assert not is_there("nowhere.py")
    assert is_there("test_promises.py::test_every_promise_names_a_test_that_is_there")


def test_every_requirement_works_or_differs_for_a_reason_and_names_tests_that_are_there() -> None:
    rows = re.findall(r"^\| ([A-E] ?\d.*?) \| (.*?) \| (.*?) \| (.*?) \|$", REQUIREMENTS, re.MULTILINE)
    numbered = [f"{part}{at}" for part, last in RANGES.items() for at in range(1, last + 1)]
    assert sorted(identity for identity, *_ in rows) == sorted([*numbered, *COMPONENTS])
    for identity, rule, state, tests in rows:
        assert 0 < len(rule.split()) <= 10, identity
        assert re.fullmatch(r"works|differs: \S.*\.", state), identity
        names = re.findall(r"`(.*?)`", tests)
        assert names, identity
        assert [name for name in names if "::" not in name or not is_there(name)] == [], identity
