"""The markers themselves: names, literals, and which lines are worth a look."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bench.claims import EXTENDED_EXPRESSION
from patchgate.policy.placeholder_markers import MARKERS, Bodies, Marker, Markers
from patchgate.policy.settings import MarkerSettings
from patchgate.report.rules import RULES
from tests.placeholders.marker_cases import MUST

ALL = Markers()
BLIND = Markers((MarkerSettings("digits", r"\d+", "1"),))
TODO = MARKERS[0]
OWN = Markers((MarkerSettings("ours", r"QQQ|Später", "QQQ"),))


def test_every_marker_has_a_name_of_its_own_a_rule_and_literals() -> None:
    assert len({marker.name for marker in MARKERS}) == len(MARKERS)
    for marker in MARKERS:
        assert re.fullmatch("[a-z]+(-[a-z]+)*", marker.name)
        assert marker.rule in RULES
        assert marker.literals
        assert not marker.ignore_case or all(literal == literal.lower() for literal in marker.literals)


def test_what_an_expression_finds_holds_one_of_its_literals() -> None:
    for marker in MARKERS:
        for _, _, texts in MUST:
            for text in texts:
                for line in text.encode().split(b"\n"):
                    if marker.found_in(line):
                        where = line.lower() if marker.ignore_case else line
                        assert any(literal in where + b"\n" for literal in marker.literals), (
                            marker.name,
                            line,
                        )


def test_a_marker_whose_bit_is_not_set_finds_nothing_on_the_line() -> None:
    for _, _, texts in MUST:
        for text in texts:
            content = text.encode()
            lines = ALL.lines_of(content)
            for number, line in enumerate(content.split(b"\n")):
                bits = lines.get(sum(len(each) + 1 for each in content.split(b"\n")[:number]), 0)
                silent = [marker for place, marker in enumerate(ALL.all) if not bits >> place & 1]
                assert [marker.name for marker in silent if marker.found_in(line)] == [], line


def parsed(expression: bytes) -> Any:
    return import_module("re._parser").parse(expression)


def repeats(items: Any, most: list[int], found: list[int]) -> list[int]:
    """Multiply how often each part can be repeated within others."""
    for operation, value in items:
        if str(operation).endswith("_REPEAT"):
            times = 1 if value[1] == 1 else int(value[1])
            found.append(times * most[-1])
            repeats(value[2], [*most, times * most[-1]], found)
        elif str(operation) == "SUBPATTERN":
            repeats(value[3], most, found)
        elif str(operation) == "BRANCH":
            for branch in value[1]:
                repeats(branch, most, found)
        elif str(operation) in {"ASSERT", "ASSERT_NOT"}:
            repeats(value[1], most, found)
    return found


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: marker.name)
def test_no_expression_repeats_without_a_bound(marker: Marker) -> None:
    """A line is searched whole or in windows, so a repeat without an end could take the square of it."""
    found = repeats(parsed(marker.expression.pattern), [1], [0])
    # An empty body takes blanks; they are at the beginning of a statement or behind its one word.
    assert max(found) <= (2**32 if marker.name == "empty-body" else 200 * 80)


def test_clean_lines_are_not_suspected() -> None:
    lines = [b"x = 1", b"Pass the salt, and wait", b"your name", b"missing", b"", b"insert a coin"]
    assert ALL.suspects(lines) == []
    block = b"\n".join(lines)
    assert not ALL.may_suspect(block, 0, len(block))


def test_the_positions_of_suspected_lines_are_told_in_their_order() -> None:
    assert ALL.suspects([b"", b"# TODO", b"x", b"    pass", b"", b"[TBD] [TBD]", b"..."]) == [1, 3, 5, 6]
    assert ALL.suspects([b"todo"]) == [0]
    assert ALL.suspects([]) == []


def test_only_the_asked_piece_is_looked_at() -> None:
    text = b"# TODO\nx = 1\n# FIXME"
    assert not ALL.may_suspect(text, 7, 13)
    assert ALL.may_suspect(text, 7, len(text))
    assert ALL.may_suspect(text, 0, 7)
    assert ALL.may_suspect(b"    pass", 0, 8)


def test_an_expression_without_literals_makes_every_line_suspicious() -> None:
    assert BLIND.literals_of_all() is None
    assert BLIND.suspects([b"a", b"b"]) == [0, 1]
    assert BLIND.may_suspect(b"a", 0, 1)
    assert sorted(BLIND.lines_of(b"a\nb\n\nc")) == [0, 2, 4, 5]
    assert sorted(BLIND.lines_of(b"a\n")) == [0]
    assert [bool(bits >> MARKERS.index(TODO) & 1) for bits in BLIND.lines_of(b"a\n# todo").values()] == [
        True,
        False,
    ]


def test_the_literals_of_the_policy_come_to_the_built_in_ones() -> None:
    own = Markers((MarkerSettings("ticket", "ABC-0+", "ABC-0"), MarkerSettings("end", "(?i)LATER$", "later")))
    built_in, found = ALL.literals_of_all(), own.literals_of_all()
    assert built_in is not None
    assert found is not None
    assert set(found[0]) == {*built_in[0], b"ABC-"}
    assert set(found[1]) == {*built_in[1], b"later"}
    assert own.all[: len(MARKERS)] == MARKERS
    assert [(each.name, each.rule) for each in own.all[len(MARKERS) :]] == [
        ("ticket", "placeholder-marker"),
        ("end", "placeholder-marker"),
    ]


def test_no_literal_holds_another() -> None:
    found = ALL.literals_of_all()
    assert found is not None
    for texts in found:
        assert not [(one, other) for one in texts for other in texts if one != other and one in other]


@given(
    some.lists(
        some.sampled_from([b"x", b"TODO", b"[MISSING]", b"pass", b"...", b"your_", b"\r", b" "]), max_size=12
    )
)
def test_the_beginnings_of_lines_are_those_of_the_lines_that_hold_a_literal(pieces: list[bytes]) -> None:
    lines = b"\n".join(pieces).split(b"\n")
    starts = sorted(ALL.lines_of(b"\n".join([*lines, b""])))
    places = [sum(len(line) + 1 for line in lines[:index]) for index in range(len(lines))]
    assert starts == [places[index] for index in ALL.suspects(lines)]
    assert ALL.lines_of(b"\n".join(lines), Bodies.NONE).keys() <= set(starts)


@pytest.mark.skipif(shutil.which("grep") is None, reason="there is no grep")
def test_the_one_expression_for_grep_finds_nearly_the_same() -> None:
    lines = [text for rule, _, texts in MUST for text in texts if "\n" not in text and "TODO" in text]
    run = subprocess.run(
        ["grep", "-cE", EXTENDED_EXPRESSION], input="\n".join(lines).encode(), capture_output=True, check=True
    )
    assert int(run.stdout) > 0.9 * len(lines)


@pytest.mark.parametrize("markers", [ALL, OWN], ids=["built-in", "custom"])
def test_each_literal_is_suspected_on_its_own(markers: Markers) -> None:
    literals = markers.literals_of_all()
    assert literals is not None
    for literal in (each for texts in literals for each in texts):
        block = b"+x" + literal + b"x\n"
        assert markers.may_suspect(block, 0, len(block)), literal
