"""The sections `[analyses.NAME]`, `[[thresholds]]` and `[verify]`: what they take, every mistake."""

from __future__ import annotations

import tomllib

import jsonschema
import pytest

from patchgate.errors import ConfigError
from patchgate.policy.config import json_schema, parse
from patchgate.policy.settings import Config, ThresholdSettings, VerifySettings
from patchgate.policy.settings_loader import settings_from
from tests.command_world import analysis
from tests.schemas import require_valid

FULL = """
[analyses.ruff]
command = ["ruff", "check", "--output-format", "sarif", "--exit-zero", "."]
timeout = "90s"
required_tools = ["ruff"]
env = {CI = "1"}

[analyses.complexity]
command = ["./measure.sh", "{}"]
format = "metrics"

[[thresholds]]
name = "no-new-findings"
metric = "findings:new"
max = 0

[[thresholds]]
name = "complexity"
metric = "complexity"
max = 10.5

[verify]
on_push = true
strictness = "relaxed"
preexisting = "refuse"
suppressions = ["ruff-baseline.json"]
"""


def read(text: str) -> Config:
    return parse(text.encode(), "patchgate.toml")


def test_every_key_is_read_and_survives_being_written_down() -> None:
    config = read(FULL)
    ruff = analysis(
        ("ruff", "check", "--output-format", "sarif", "--exit-zero", "."), "sarif", 90, {"CI": "1"}, ("ruff",)
    )
    assert config.analyses == {
        "ruff": ruff,
        "complexity": analysis(("./measure.sh", "{}"), "metrics"),
    }
    assert config.thresholds == (
        ThresholdSettings("no-new-findings", "findings:new", 0),
        ThresholdSettings("complexity", "complexity", 10.5),
    )
    assert config.verify == VerifySettings(True, "relaxed", "refuse", ("ruff-baseline.json",))
    assert settings_from(config.written) == config


def test_without_the_sections_nothing_is_analysed() -> None:
    config = read("[policy]\n")
    assert (config.analyses, config.thresholds, config.verify) == ({}, (), VerifySettings())


def test_the_schema_takes_what_is_read_and_refuses_what_is_not() -> None:
    schema = json_schema()
    require_valid(tomllib.loads(FULL), schema)
    for bad in (
        '[analyses.X]\ncommand = ["a"]',
        "[analyses.x]\ncommand = []",
        '[verify]\nstrictness = "lax"',
    ):
        with pytest.raises(jsonschema.ValidationError):
            require_valid(tomllib.loads(bad), schema)


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("[analyses.ruff]\n", "analyses.ruff.command", "`command`"),
        ('[analyses.Ruff]\ncommand = ["a"]', "analyses.Ruff", "valid name"),
        (
            '[analyses.x]\ncommand = "ruff check"',
            "analyses.x.command",
            "list of arguments",
        ),
        ("[analyses.x]\ncommand = []", "analyses.x.command", "program"),
        ('[analyses.x]\ncommand = ["a", "{files}"]', "analyses.x.command[1]", "unknown placeholder"),
        ('[analyses.x]\ncommand = ["a"]\nformat = "xml"', "analyses.x.format", 'expected "sarif"'),
        ('[analyses.x]\ncommand = ["a"]\ntimeout = 0', "analyses.x.timeout", " 0 "),
        (
            '[[thresholds]]\nname = "a"\nmetric = "findings:old"\nmax = 0',
            "thresholds[0].metric",
            "not a metric",
        ),
        ('[[thresholds]]\nname = "a"\nmetric = "x"\nmax = -1', "thresholds[0].max", " 0 "),
        ('[[thresholds]]\nname = "a"\nmetric = "x"\nmax = nan', "thresholds[0].max", " 0 "),
        ('[[thresholds]]\nname = "a b"\nmetric = "x"\nmax = 1', "thresholds[0].name", "valid name"),
        (
            '[[thresholds]]\nname = "a"\nmetric = "x"\nmax = 1\n' * 2,
            "thresholds",
            "two thresholds",
        ),
        ('[verify]\nsuppressions = ["../x.json"]', "verify.suppressions[0]", "not a file path"),
        ('[verify]\nsuppressions = ["folder/"]', "verify.suppressions[0]", "not a file path"),
        ("[verify]\non_psh = true", "verify.on_psh", "unknown key"),
    ],
)
def test_a_mistake_is_told_with_its_key(text: str, key: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    (mistake,) = caught.value.mistakes
    assert mistake.key == key
    assert said in mistake.message
    assert mistake.line
    assert mistake.hint
