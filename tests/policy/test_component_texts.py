"""What the config takes as a component: its id, the path of its contract, its parents."""

from __future__ import annotations

import pytest

from patchgate.errors import ConfigError
from patchgate.policy.component import Components
from patchgate.policy.config import parse
from patchgate.policy.settings import ComponentSettings
from patchgate.policy.validators import check_contract, check_id
from tests.component_world import declared

RESERVED = ("con", "PRN", "Aux", "nul", "com1", "COM9", "lpt1", "Lpt9", "con.x", "nul.tar.gz")


@pytest.mark.parametrize("name", RESERVED)
def test_an_id_that_is_reserved_as_a_files_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="baseline"):
        check_id(name)
    with pytest.raises(ConfigError):
        parse(declared("shaping", parent=name).encode(), "patchgate.toml")
    with pytest.raises(ConfigError):
        parse(
            declared(name).replace(f"[components.{name}]", f'[components."{name}"]').encode(),
            "patchgate.toml",
        )


@pytest.mark.parametrize("name", ["icon", "console", "com0", "com10", "lpt", "x.con", "con-x", "null"])
def test_an_id_that_only_looks_like_one_is_taken(name: str) -> None:
    assert check_id(name) == name


@pytest.mark.parametrize(
    "text",
    [
        ".git/x.json",
        ".GIT/x.json",
        "a/.git/x.json",
        "git~1/x.json",
        ".git./x.json",
        ".g\u200cit/x.json",
        ".patchgate/baselines/shaping.json",
        ".Patchgate/x.json",
        ".patchgate",
    ],
)
def test_a_contract_where_git_or_patchgate_keep_their_own_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a contract cannot be in"):
        check_contract(text)
    with pytest.raises(ConfigError):
        parse(declared("shaping", contract=text).encode(), "patchgate.toml")


@pytest.mark.parametrize("text", [".github/x.json", "a/.patchgate/x.json", "x.git/y.json", ".patchgates/x"])
def test_a_contract_beside_them_is_taken(text: str) -> None:
    assert check_contract(text) == text


def chain(parents: dict[str, str]) -> str:
    return "\n".join(declared(name, parent=parent) for name, parent in parents.items())


@pytest.mark.parametrize(
    ("parents", "circle"),
    [
        ({"a": "a"}, "a -> a"),
        ({"a": "b", "b": "a"}, "a -> b -> a"),
        ({"x": "a", "y": "b", "b": "c", "c": "a", "a": "b"}, "b -> c -> a -> b"),
        ({"free": "group", "b": "free", "z": "z"}, "z -> z"),
    ],
)
def test_parents_in_a_circle_are_refused_and_shown(parents: dict[str, str], circle: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(chain(parents).encode(), "patchgate.toml")
    assert f": {circle}" in caught.value.mistakes[0].message


def test_parents_that_meet_again_are_no_circle() -> None:
    parents = {"c": "b", "d": "b", "b": "a", "e": "d", "a": "group"}
    config = parse(chain(parents).encode(), "patchgate.toml")
    above = Components(config.components)
    assert above.ancestors("e") == ("d", "b", "a", "group")
    assert above.ancestors("e") is above.ancestors("e")
    assert above.ancestors("group") == ()


def test_a_circle_that_came_past_the_config_ends() -> None:
    settings = {
        name: ComponentSettings("c.json", (), (), parent)
        for name, parent in {"a": "b", "b": "c", "c": "b"}.items()
    }
    assert Components(settings).ancestors("a") == ("b", "c")
    assert Components(settings).ancestors("b") == ("c", "b")
