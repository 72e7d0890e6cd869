"""The sections `[run]` and `[environment]`, and authors in `[commands.NAME]`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping

import jsonschema
import pytest

from patchgate.errors import ConfigError, Mistake
from patchgate.policy.command import analyses_digest, author_of, ordered_commands
from patchgate.policy.config import json_schema, parse
from patchgate.policy.run_settings import EnvironmentSettings, RunSettings
from patchgate.policy.settings import Config
from patchgate.policy.settings_loader import settings_from

FULL = """
[commands.coder]
phase = "implementation"
role = "code_author"
command = ["python", "tools/author.py"]
kind = "author"
timeout = "10m"

[commands.tester]
kind = "author"
command = ["sh", "tools/tests.sh"]
role = "test_author"
phase = "tests"
env = {MODEL = "small"}

[commands.ruff]
kind = "lint"
command = ["ruff", "check", "{files}"]
scope = "files"

[analyses.scan]
command = ["scan", "."]

[environment]
python_path = ".venv/bin/python"
inherit_path = false
extra_path_dirs = ["/opt/tools/bin", "node_modules/.bin"]
required_tools = ["ruff"]
env = {CI = "1", MODEL = "large"}

[run]
scheduling = "wavefront"
max_concurrent = 64
max_retries = 0
systemic_threshold = 2
impatience = "patient"
role_timeouts = {code_author = 600, trace_analyst = "1.5m"}
"""
AUTHOR = {"kind": '"author"', "command": '["x"]', "role": '"code_author"', "phase": '"tests"'}


def read(text: str) -> Config:
    return parse(text.encode(), "patchgate.toml")


def mistakes(text: str) -> tuple[Mistake, ...]:
    """Give every mistake in a text that must have some."""
    with pytest.raises(ConfigError) as raised:
        read(text)
    return raised.value.mistakes


def mistake(text: str) -> Mistake:
    """Give the one mistake in a text."""
    (found,) = mistakes(text)
    return found


def author(name: str = "a", keys: Mapping[str, str | None] | None = None) -> str:
    """Write an author that is right but for some keys; None leaves a key out."""
    lines = {key: value for key, value in {**AUTHOR, **(keys or {})}.items() if value is not None}
    return f"[commands.{name}]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())


def test_without_the_sections_the_defaults_apply() -> None:
    empty = read("")
    assert empty.environment == EnvironmentSettings("python3", True, (), (), {})
    assert empty.run == RunSettings("phased", 4, 3, 3, "normal", {})


def test_every_key_of_a_run_and_of_the_environment_is_read() -> None:
    full = read(FULL)
    assert full.run == RunSettings(
        "wavefront", 64, 0, 2, "patient", {"code_author": 600, "trace_analyst": 90}
    )
    assert full.environment == EnvironmentSettings(
        ".venv/bin/python",
        False,
        ("/opt/tools/bin", "node_modules/.bin"),
        ("ruff",),
        {"CI": "1", "MODEL": "large"},
    )
    again = settings_from(json.loads(json.dumps(full.written)))
    assert (again, again.run, again.environment) == (full, full.run, full.environment)
    assert isinstance(hash((again.run, again.environment)), int)
    jsonschema.Draft202012Validator(json_schema()).validate(tomllib.loads(FULL))


def test_an_author_is_found_by_its_phase_and_is_no_command_for_a_patch() -> None:
    full = read(FULL)
    found = author_of(full.commands, "implementation")
    assert found is not None
    assert (found[0], found[1].role, found[1].timeout) == ("coder", "code_author", 600)
    assert author_of(full.commands, "contract") is None
    assert [name for name, _ in ordered_commands(full.commands)] == ["ruff"]


def test_a_command_has_what_the_environment_gives_and_its_own_variables_have_priority() -> None:
    full = read(FULL)
    assert full.commands["tester"].env == {"CI": "1", "MODEL": "small"}
    assert full.commands["ruff"].env == full.analyses["scan"].env == {"CI": "1", "MODEL": "large"}
    assert full.commands["ruff"].required_tools == full.analyses["scan"].required_tools == ("ruff",)
    other = read(FULL.replace('"large"', '"huge"'))
    assert analyses_digest(other.analyses) != analyses_digest(full.analyses)


@pytest.mark.parametrize(
    ("keys", "key", "words"),
    [
        ({"role": None}, "", "author needs `role`"),
        ({"phase": None}, "", "author needs `phase`"),
        ({"role": None, "phase": None}, "", "author needs `role` and `phase`"),
        ({"role": '"coder"'}, "role", '"decomposer" "trace_analyst" "coder"'),
        ({"phase": '"test"'}, "phase", '"interview" "integration" "test"'),
        ({"scope": '"tree"'}, "scope", "no `scope`"),
        ({"side_effects": '"none"'}, "side_effects", "no `side_effects`"),
        ({"command": '["x", "{files}"]'}, "command", "no `{files}`"),
    ],
)
def test_an_author_says_what_it_does_and_nothing_that_only_checks_have(
    keys: dict[str, str | None], key: str, words: str
) -> None:
    found = mistake(author(keys=keys))
    assert found.key == f"commands.a.{key}".rstrip(".")
    assert re.search(".*".join(map(re.escape, words.split())), found.message)
    assert found.hint


@pytest.mark.parametrize("kind", ["lint", "test"])
def test_only_an_author_has_a_role_and_a_phase(kind: str) -> None:
    found = mistakes(author(keys={"kind": f'"{kind}"'}))
    assert [(each.key, each.message) for each in found] == [
        ("commands.a.role", "`role` is only for authors"),
        ("commands.a.phase", "`phase` is only for authors"),
    ]


def test_two_authors_for_a_phase_are_refused_with_both_names() -> None:
    found = mistake(author("one") + author("other"))
    assert found.message == "`one` and `other` are both authors for the phase tests"
    assert len(read(author("one") + author("other", {"phase": '"contract"'})).commands) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('scheduling = "waves"', '"phased" "wavefront" "waves"'),
        ("max_concurrent = 0", "1 to 64"),
        ("max_concurrent = 65", "1 to 64"),
        ("max_retries = -1", "0 to 20"),
        ("max_retries = 21", "0 to 20"),
        ("systemic_threshold = 1", "2 to 100"),
        ("systemic_threshold = 101", "2 to 100"),
        ('impatience = "calm"', '"patient" "normal" "impatient" "calm"'),
        ("role_timeouts = {coder = 60}", "unknown role `coder` decomposer code_author"),
        ("role_timeouts = {code_author = 29.9}", "30 seconds to 24 hours"),
        ('role_timeouts = {code_author = "25h"}', "30 seconds to 24 hours"),
        ("role_timeouts = {code_author = nan}", "30 seconds to 24 hours"),
        ('role_timeouts = {code_author = "soon"}', '"soon" duration'),
        ("role_timeouts = {code_author = []}", "number string list"),
        ("total_cost = -1", "amount from 0"),
        ("total_cost = nan", "amount from 0"),
        ("total_cost = 1\nphase_caps = {code = 0.5}", "unknown phase `code` implementation"),
        ("total_cost = 1\nphase_caps = {tests = 60}", "from 0 to 1"),
        ("least_confidence = 1.5", "from 0 to 1"),
        ("least_confidence = nan", "from 0 to 1"),
        ('questions = "../q.json"', "file path"),
    ],
)
def test_a_mistake_in_run_is_reported_with_what_is_allowed(line: str, words: str) -> None:
    text = f"[run]\n{line}\n"
    found = mistake(text)
    assert found.key.startswith(f"run.{line.splitlines()[-1].split(' ', maxsplit=1)[0]}")
    assert re.search(".*".join(map(re.escape, words.split())), found.message)
    if "nan" not in line and "25h" not in line and "../" not in line:
        assert not jsonschema.Draft202012Validator(json_schema()).is_valid(tomllib.loads(text))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('python_path = ""', "empty"),
        ('python_path = "bin/"', "folder"),
        ('python_path = "~/bin/python"', "`~`"),
        ('python_path = "a:b/python"', "colon"),
        ('extra_path_dirs = ["../bin"]', '".."'),
        ('extra_path_dirs = ["/a:/b"]', "colon"),
        ('extra_path_dirs = [""]', "empty"),
        ('extra_path_dirs = ["~/bin"]', "`~`"),
        ('extra_path_dirs = ["a\\u0000"]', "NUL"),
        ('extra_path_dirs = "bin"', "list of strings"),
        ('required_tools = ["bin/ruff"]', "program"),
        ('env = {PATH = "/bin"}', "PATH"),
        ('env = {GIT_DIR = "x"}', "git's variables"),
        ('inherit_path = "no"', "true or false"),
    ],
)
def test_a_mistake_in_the_environment_is_reported_with_its_key(line: str, words: str) -> None:
    found = mistake(f"[environment]\n{line}\n")
    assert found.key.startswith(f"environment.{line.split(' ', maxsplit=1)[0]}")
    assert words in found.message
    assert found.hint


def test_a_known_policy_of_runs_is_loaded_without_pydantic_and_the_sections_when_asked_for() -> None:
    program = (
        "import json, sys; from patchgate.policy.settings_loader import settings_from; "
        "found = settings_from(json.loads(sys.argv[1])); "
        "assert 'patchgate.policy.run_settings' not in sys.modules; "
        "assert found.environment.env and found.run.max_retries == 0; "
        "assert not {'pydantic', 'patchgate.policy.run_validators'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, json.dumps(read(FULL).written)], check=True)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("phase_caps = {tests = 0.5}", "total_cost, which is not set"),
        ("shaping_budget_pct = 0.5", "total_cost, which is not set"),
        ("total_cost = 1\nshaping_budget_pct = 0.5\nphase_caps = {shaping = 0.5}", "two values"),
    ],
)
def test_a_share_is_a_share_of_something_and_given_once(lines: str, words: str) -> None:
    found = mistake(f"[run]\n{lines}\n")
    assert (found.key, words in found.message) == ("run", True), found
