"""Which files belong to a component, and where they can begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.git.path import RepoPath
from patchgate.policy.component import Components, Role, literal_start
from patchgate.policy.settings import ComponentSettings
from patchgate.policy.validators import TextError, check_pattern

PIECES = st.sampled_from(["a", "b", "/", "*", "**", ".", "x.py", "[ab]", "[id].tsx", "\\*", "?", " ", "src/"])
GLOBS = st.lists(PIECES, min_size=1, max_size=5).map("".join)
PATHS = st.lists(st.sampled_from(["a", "b", "x.py", "ab", "src", "[id].tsx", "*"]), min_size=1, max_size=4)


def is_pattern(text: str) -> bool:
    try:
        check_pattern(text)
    except TextError:
        return False
    return True


@given(GLOBS.filter(is_pattern), PATHS.map("/".join))
def test_every_file_of_a_component_lies_where_its_patterns_begin(glob: str, path: str) -> None:
    one = Components({"one": ComponentSettings("c", ("t",), (glob,))})
    found = RepoPath(path.encode())
    role = one["one"].role(found)
    assert [(each.id, said) for each, said in one.claims(found)] == ([("one", role)] if role else [])
    if role is Role.IMPLEMENTATION:
        start = literal_start(glob)
        assert not start or found.is_within(start)


@pytest.mark.parametrize(
    ("glob", "start"),
    [
        ("src/shaping/**", b"src/shaping"),
        ("/src/a*/x", b"src"),
        ("src/a.py", b"src/a.py"),
        ("src/", b"src"),
        ("*.py", b""),
        ("app/[id].tsx", b"app"),
        ("src/a ", b"src/a"),
    ],
)
def test_a_pattern_begins_where_its_first_wildcard_stands(glob: str, start: bytes) -> None:
    assert literal_start(glob) == start


def test_a_file_has_one_role_in_a_component() -> None:
    one = Components({"one": ComponentSettings("src/i.json", ("src/tests/**",), ("src/**",))})["one"]
    roles = {
        name: one.role(RepoPath(name)) for name in (b"src/i.json", b"src/tests/t.py", b"src/a.py", b"a.py")
    }
    assert list(roles.values()) == [Role.CONTRACT, Role.TESTS, Role.IMPLEMENTATION, None]
