"""Each promise of the README and of the threat model names a test that fails when it is broken.

In `docs/threat-model.md` it stands in the last column of the tables that end in `held by`; in the README in a
comment behind the promise. Names are relative to `tests/`: `FILE` or `FILE::TEST`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
THREAT_MODEL = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
SECTIONS = ("How a policy judges", "Limits")
_COMMENT = re.compile(r"<!-- held by: (.*?) -->", re.DOTALL)


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
    for row in re.findall(r"^\|.*\| held by \|\n\|[- |]+\|\n((?:\|.*\|\n)+)", THREAT_MODEL, re.MULTILINE):
        for line in row.splitlines():
            yield line, re.findall(r"`([\w/]+\.py(?:::\w+)?)`", line.strip("| ").rpartition("|")[2])
    for section in SECTIONS:
        text = re.split(r"^## ", README.partition(f"\n## {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
        for bullet in re.findall(r"^- .*(?:\n {2}.*)*", text, re.MULTILINE):
            names = [name.strip() for found in _COMMENT.findall(bullet) for name in found.split(",")]
            yield bullet, names


def test_every_promise_names_a_test_that_is_there() -> None:
    promises = list(promised())
    unheld = [promise for promise, names in promises if not names]
    missing = [name for _, names in promises for name in names if not is_there(name)]
    assert (unheld, missing) == ([], [])
    assert len(promises) >= 50


def test_a_promise_that_names_nothing_would_be_found() -> None:
    assert not is_there("test_promises.py::test_of_nothing")
    assert not is_there("nowhere.py")
    assert is_there("test_promises.py::test_every_promise_names_a_test_that_is_there")
