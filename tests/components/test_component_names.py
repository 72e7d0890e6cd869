"""Names of components as people write them, and which component they mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.components.component_names import ComponentNames, How, Resolved, did_you_mean

IDS = ("schemas", "shaping", "shaping_schemas", "Store-Disk")
SHARING = ("app_core_api", "app_store_api", "app_shape_tools_api")


@pytest.mark.parametrize(
    ("name", "ids", "found"),
    [
        ("shaping", IDS, Resolved("shaping", How.EXACT)),
        ("Shaping", IDS, Resolved("shaping", How.CASE)),
        ("store-disk", IDS, Resolved("Store-Disk", How.CASE)),
        ("schemas_shaping", IDS, Resolved("shaping_schemas", How.WORDS)),
        ("shaping-schemas", IDS, Resolved("shaping_schemas", How.WORDS)),
        ("disk_Store", IDS, Resolved("Store-Disk", How.WORDS)),
        ("core", SHARING, Resolved("app_core_api", How.AFFIX)),
        ("core_api", SHARING, Resolved("app_core_api", How.AFFIX)),
        ("app_core", SHARING, Resolved("app_core_api", How.AFFIX)),
        ("Tools-Shape", SHARING, Resolved("app_shape_tools_api", How.AFFIX)),
        ("my_schemas", ("schemas", "shaping"), Resolved("schemas", How.PART)),
        ("Schemas-v2", ("schemas", "shaping"), Resolved("schemas", How.PART)),
        ("disk", IDS, Resolved("Store-Disk", How.PART)),
        ("store", IDS, Resolved("Store-Disk", How.PART)),
        ("my_shaping_schemas", ("shaping-schemas", "shaping"), Resolved("shaping-schemas", How.PART)),
        # Each of two could be meant, also where one of them is longer.
        ("my_schemas", (*IDS[:1], "my"), None),
        ("my_shaping_schemas", IDS, None),
        ("schemas", ("a_schemas", "b_schemas", "c"), None),
        ("myschemas", ("schemas", "shaping"), None),
        ("my_", ("schemas", "shaping"), None),
        ("shape_tool", SHARING, None),
        ("schema", IDS, None),
        ("", IDS, None),
        ("_", IDS, None),
        ("app_", SHARING, None),
        # A Kelvin sign is a K to `str.lower`.
        ("dis\u212a_store", IDS, None),
        # A module is no component with other words.
        ("shaping.schemas", IDS, None),
    ],
)
def test_each_step_finds_what_the_one_before_did_not(
    name: str, ids: tuple[str, ...], found: Resolved | None
) -> None:
    """Requirement D 2.3: exact, without case, the same words, without what all share, with a part more."""
    assert ComponentNames(ids).find(name) == found


def test_two_candidates_are_no_match_and_no_later_step_is_asked() -> None:
    """Requirement D 2.3: more than one candidate is none."""
    assert ComponentNames(("a_b_c", "c_b_a")).find("b_a_c") is None
    # The last step alone would find one: "app_a_b" is "b_a" without what all share.
    assert ComponentNames(("app_a_b", "app_b-a")).find("b_a") is None
    assert ComponentNames(("app_a_b", "app_c")).find("b_a") == Resolved("app_a_b", How.AFFIX)


def test_one_component_alone_shares_nothing_and_is_found_by_its_own_part() -> None:
    assert ComponentNames(("app_core",)).find("core") == Resolved("app_core", How.PART)
    assert ComponentNames(("app_core_api",)).find("core") is None
    assert ComponentNames(("core",)).find("_".join("x" * 5000)) is None


def test_a_prefix_ends_at_a_separator() -> None:
    assert ComponentNames(("shaping", "shell")).find("aping") is None


@given(
    st.lists(st.from_regex("[A-Za-z0-9][A-Za-z0-9_.-]{0,6}[a-z0-9]", fullmatch=True), unique_by=str.lower),
    st.text(alphabet="abAB_-.1", max_size=8),
    st.randoms(use_true_random=False),
)
def test_an_answer_is_an_id_whatever_the_order_and_every_id_is_itself(
    ids: list[str], name: str, chance: object
) -> None:
    found = ComponentNames(ids).find(name)
    assert found is None or found.id in ids
    shuffled = sorted(ids, key=lambda each: hash((each, repr(chance))))
    assert ComponentNames(shuffled).find(name) == found
    for each in ids:
        assert ComponentNames(ids).find(each) == Resolved(each, How.EXACT)
        assert ComponentNames(ids).find(each.swapcase()) in {
            Resolved(each, How.CASE),
            Resolved(each, How.EXACT),
        }


def test_a_near_miss_is_suggested_and_a_far_one_is_not() -> None:
    assert did_you_mean("shapping", IDS) == "shaping"
    assert did_you_mean("STORE-DISC", IDS) == "Store-Disk"
    assert did_you_mean("zzz", IDS) is None
    assert did_you_mean("shaping" * 100, IDS) is None
