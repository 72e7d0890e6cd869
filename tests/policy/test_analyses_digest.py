"""The digest of declared analyses: every setting counts, and how it is written does not."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from patchgate.policy.command import analyses_digest, canonical_text
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.config import parse
from patchgate.values import fields, replace
from tests.command_world import analysis

RUFF = analysis(("ruff", "check", "."))
OTHER: dict[str, Any] = {
    "command": ("ruff", "check", "src"),
    "output": "metrics",
    "files": ("*.py",),
    "exclude": ("vendor/**",),
    "root": "src",
    "timeout": 30.0,
    "env": {"A": "b"},
    "required_tools": ("git",),
}


# What changes no answer of `verify`, or is for other occasions.
ELSEWHERE = {
    *("kind", "scope", "side_effects", "role", "phase", "new_only", "needs", "provide", "on", "fix"),
    *("optional", "version", "version_command", "remember", "per_file", "each_commit", "jobs"),
}


def test_every_setting_has_another_value_here() -> None:
    assert set(OTHER) | ELSEWHERE == {field.name for field in fields(CommandSettings)}


@pytest.mark.parametrize("name", sorted(OTHER))
def test_another_value_of_a_setting_is_another_digest(name: str) -> None:
    assert analyses_digest({"ruff": RUFF}) != analyses_digest({"ruff": replace(RUFF, **{name: OTHER[name]})})


def test_the_name_counts_and_the_order_does_not() -> None:
    one, other = replace(RUFF, env={"A": "1", "B": "2"}), replace(RUFF, env={"B": "2", "A": "1"})
    assert analyses_digest({"a": one, "b": RUFF}) == analyses_digest({"b": RUFF, "a": other})
    assert analyses_digest({"a": RUFF}) != analyses_digest({"b": RUFF})
    assert analyses_digest({"a": RUFF, "b": RUFF}) != analyses_digest({"a": RUFF})


def test_one_argument_is_not_two_and_a_line_feed_makes_no_second_analysis() -> None:
    assert canonical_text("a", replace(RUFF, command=("x", "y"))) != canonical_text(
        "a", replace(RUFF, command=("x y",))
    )
    assert "\n" not in canonical_text("a", replace(RUFF, command=("x\n{}",)))


def test_a_default_that_is_written_out_changes_nothing() -> None:
    short = '[analyses.ruff]\ncommand = ["ruff"]\n'
    long = short + 'format = "sarif"\ntimeout = "10m"\nenv = {}\nrequired_tools = []\n'
    digests = {analyses_digest(parse(text.encode(), "patchgate.toml").analyses) for text in (short, long)}
    assert len(digests) == 1
    assert digests.pop() == analyses_digest({"ruff": analysis(("ruff",))})


def test_the_digest_is_what_it_was() -> None:
    """It stands in intents that were declared: who changes it makes all of them unverified."""
    text = (
        b"patchgate.analyses/1\n"
        b'{"command":["ruff","check","."],"env":{"NAME":"\\u00e4"},"format":"sarif","name":"ruff",'
        b'"required_tools":[],"timeout":600.0}\n'
    )
    digest = analyses_digest({"ruff": replace(RUFF, env={"NAME": "\u00e4"})})
    assert digest == "sha256:" + hashlib.sha256(text).hexdigest()
