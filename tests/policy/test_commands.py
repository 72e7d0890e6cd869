"""The sections `[commands.NAME]` and `[apply]`: what they take, every mistake, what comes of them."""

from __future__ import annotations

import json
import re
import tomllib

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.errors import ConfigError, Mistake
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, Entry, FileChange
from patchgate.git.path import RepoPath
from patchgate.policy.command import ordered_commands
from patchgate.policy.command_files import expand, files_of, needs_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.config import json_schema, parse
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.settings import Config
from patchgate.policy.settings_loader import settings_from
from tests.amount import often

FULL = """
[commands.unit-tests]
kind = "test"
command = ["python", "-m", "pytest", "-q"]
timeout = "1.5h"

[commands.ruff]
kind = "lint"
command = ["ruff", "check", "{files}", "--quiet"]
scope = "files"
timeout = 90
env = {CI = "1", EMPTY = ""}
required_tools = ["ruff"]

[commands.2_types]
kind = "lint"
command = ["./scripts/types.sh", "{}", "a{b}", "{1}"]

[apply]
max_attempts = 100
"""


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


def command(line: str) -> str:
    """Write a command that is right but for one line."""
    lines = {"kind": 'kind = "lint"', "command": 'command = ["ruff"]'}
    lines[re.split(r"[ .]", line)[0]] = line
    return "[commands.a]\n" + "\n".join(lines.values())


# ---- what is accepted ------------------------------------------------------------------------------------


def test_without_any_there_are_no_commands_and_five_attempts() -> None:
    empty = read("")
    assert (empty.commands, empty.apply.max_attempts) == ({}, 5)


def test_every_key_of_a_command_is_read() -> None:
    full = read(FULL)
    assert list(full.commands) == ["unit-tests", "ruff", "2_types"]
    assert full.commands["ruff"] == CommandSettings(
        kind="lint",
        command=("ruff", "check", "{files}", "--quiet"),
        scope="files",
        timeout=90.0,
        env={"CI": "1", "EMPTY": ""},
        required_tools=("ruff",),
    )
    tests = full.commands["unit-tests"]
    assert (tests.kind, tests.scope, tests.timeout, tests.env) == ("test", None, 5400.0, {})
    assert full.commands["2_types"].timeout == 600
    assert full.apply.max_attempts == 100


def test_a_config_that_was_kept_as_written_is_made_again() -> None:
    full = read(FULL)
    again = settings_from(json.loads(json.dumps(full.written)))
    assert again == full
    assert list(again.commands) == list(full.commands)
    assert full.written == tomllib.loads(FULL)
    assert isinstance(hash(again.commands["ruff"]), int)


def test_a_policy_with_another_command_has_another_digest() -> None:
    one, other = (Policy(read(command(f'command = ["{tool}"]'))) for tool in ("ruff", "true"))
    assert one.digest(Profile.AGENT) != other.digest(Profile.AGENT)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 1),
        ("0.5", 0.5),
        ("86400", 86400),
        ('"90s"', 90),
        ('"5m"', 300),
        ('"1h"', 3600),
        ('"24h"', 86400),
        ('"0.25m"', 15),
    ],
)
def test_a_timeout_is_a_number_of_seconds_or_a_text_with_a_unit(text: str, seconds: float) -> None:
    assert read(command(f"timeout = {text}")).commands["a"].timeout == seconds


@pytest.mark.parametrize("name", ["a", "0", "ruff-check", "unit_tests", "x" * 41])
def test_an_ordinary_name_is_accepted(name: str) -> None:
    assert list(read(f'[commands.{name}]\nkind = "test"\ncommand = ["true"]').commands) == [name]


# ---- mistakes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["A", "-a", "_a", "a b", "a.b", "../a", "", "x" * 42, "é", "a\\n"])
def test_a_name_that_could_not_name_a_log_is_a_mistake(name: str) -> None:
    found = mistake(f'[commands."{name}"]\nkind = "test"\ncommand = ["true"]')
    assert "name" in found.message
    assert (found.line, found.hint is not None) == (1, True)


TIME = "timeout 0 24 hours"


@pytest.mark.parametrize(
    ("line", "key", "words"),
    [
        ('kind = "lnt"', "kind", '"lint" "test" "lnt"'),
        ("kind = 1", "kind", '"lint" "test" integer'),
        ('scope = "file"', "scope", '"files" "tree" "file"'),
        ("command = []", "command", "program"),
        ('command = [""]', "command", "program"),
        ('command = ["{files}"]', "command", "program"),
        (
            'command = "ruff check"',
            "command",
            "list shell string",
        ),
        ("command = 1", "command", "list strings integer"),
        ('command = ["a", 1]', "command[1]", "string integer"),
        ('command = ["a", "{files}", "{files}"]', "command", "`{files}` once"),
        ('command = ["a", "--in={files}"]', "command[1]", "`{files}` whole"),
        ('command = ["a", "{files} "]', "command[1]", "`{files}` whole"),
        ('command = ["a", "{file}"]', "command[1]", "unknown placeholder `{file}`"),
        ('command = ["a", "{FILES}"]', "command[1]", "unknown placeholder `{FILES}`"),
        ('command = ["a", "\\u0000"]', "command[1]", "NUL"),
        ("timeout = 0", "timeout", TIME),
        ("timeout = -1", "timeout", TIME),
        ("timeout = 86401", "timeout", TIME),
        ("timeout = inf", "timeout", TIME),
        ("timeout = nan", "timeout", TIME),
        ('timeout = "0s"', "timeout", TIME),
        ('timeout = "25h"', "timeout", TIME),
        ('timeout = "5 m"', "timeout", '"5 m" duration'),
        ('timeout = "5"', "timeout", '"5" duration'),
        ('timeout = "-5m"', "timeout", '"-5m" duration'),
        ('timeout = "٥m"', "timeout", '"٥m" duration'),
        ("timeout = true", "timeout", "number string boolean"),
        ("timeout = [1]", "timeout", "number string list"),
        (f"timeout = {'9' * 400}", "timeout", "number string integer"),
        ('env = {GIT_DIR = "x"}', "env.GIT_DIR", "git variables"),
        ('env = {"A=B" = "x"}', 'env."A=B"', "variable empty `=`"),
        ('env = {"" = "x"}', 'env.""', "variable empty `=`"),
        ('env = {"A\\u0000" = "x"}', 'env."A\\x00"', "NUL"),
        ('env = {A = "\\u0000"}', "env.A", "NUL"),
        ("env = {A = 1}", "env.A", "string integer"),
        ('env = ["A=1"]', "env", "table list"),
        (
            'required_tools = ["bin/ruff"]',
            "required_tools[0]",
            "program PATH folder",
        ),
        (
            'required_tools = ["a", ""]',
            "required_tools[1]",
            "program PATH folder",
        ),
        ('required_tools = "ruff"', "required_tools", "list strings string"),
        ("tools = []", "tools", "unknown `tools`"),
    ],
)
def test_a_mistake_in_a_command_is_told_with_its_key_and_fault(line: str, key: str, words: str) -> None:
    found = mistake(command(line))
    assert found.key == f"commands.a.{key}"
    assert re.search(".*".join(map(re.escape, words.split())), found.message)
    assert found.line == [each.startswith(line) for each in command(line).split("\n")].index(True) + 1
    assert found.hint


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        ("[command.a]", "unknown `command`", "`commands`"),
        ("[comands.a]", "unknown `comands`", "`commands`"),
        (command("required_tool = []"), "unknown `required_tool`", "`required_tools`"),
        (command('kind = "tests"'), '"lint" "test" "tests"', "`test`"),
        ("timeout = 5", "unknown `timeout`", "[commands.NAME] or [analyses.NAME]"),
        ("[apply]\ntimeout = 5", "unknown `timeout`", "[commands.NAME] or [analyses.NAME]"),
        ("max_attempts = 5", "unknown `max_attempts`", "[apply]"),
        ("[apply]\nmax_attempt = 1", "unknown `max_attempt`", "`max_attempts`"),
        ("[apply]\nmax_attempts = 0", "whole number 1 100 0", None),
        ("[apply]\nmax_attempts = 101", "whole number 1 100 101", None),
        ("[apply]\nmax_attempts = 1.0", "whole number 1 100 float", None),
        ("[apply]\nmax_attempts = true", "whole number 1 100 boolean", None),
        (
            '[apply]\nmax_attempts = "5"',
            "whole number 1 100 string",
            "quotes",
        ),
        ("[commands]\nruff = ['ruff']", "table list", None),
        ("[[commands]]\nkind = 'lint'", "table list", None),
    ],
)
def test_a_mistake_says_what_was_probably_meant(text: str, words: str, hint: str | None) -> None:
    found = mistake(text)
    assert re.search(".*".join(map(re.escape, words.split())), found.message)
    assert found.hint
    assert hint is None or hint in found.hint


def test_a_command_without_its_keys_is_told_at_once_with_all_others() -> None:
    found = mistakes("[commands.a]\ntimeout = 0\n[apply]\nmax_attempts = 0\n[commands.B]\nkind = 'lint'\n")
    assert [(each.line, each.key) for each in found] == [
        (1, "commands.a.kind"),
        (1, "commands.a.command"),
        (2, "commands.a.timeout"),
        (4, "apply.max_attempts"),
        (5, "commands.B"),
        (5, "commands.B.command"),
    ]


# ---- the schema ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '[commands."A b"]\nkind = "lint"\ncommand = ["a"]',
        "[commands.a]",
        command("command = []"),
        command('command = "a"'),
        command("timeout = 0"),
        command("timeout = 86401"),
        command('timeout = "5x"'),
        command("env = {A = 1}"),
        command("tools = []"),
        "[apply]\nmax_attempts = 0",
        "[apply]\nmax_attempts = 101",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(text: str) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    assert validator.is_valid(tomllib.loads(FULL))
    assert mistakes(text)
    assert not validator.is_valid(tomllib.loads(text))


# ---- what comes of a command -----------------------------------------------------------------------------


def test_lint_commands_come_before_tests_each_as_they_are_written() -> None:
    names = [name for name, _ in ordered_commands(read(FULL).commands)]
    assert names == ["ruff", "2_types", "unit-tests"]


def test_the_files_of_a_command_are_those_that_stand_there_afterwards() -> None:
    def file(name: bytes, old: str | None, new: str | None) -> FileChange:
        old_side, new_side = (Entry(mode, "0" * 40) if mode else None for mode in (old, new))
        return FileChange(RepoPath.from_git(name), old_side, new_side)

    changes = [
        file(b"added", None, REGULAR),
        file(b"changed", REGULAR, REGULAR),
        file(b"deleted", REGULAR, None),
        file(b"gitlink", None, GITLINK),
        file(b"link", REGULAR, SYMLINK),
        file(b"mode", REGULAR, EXECUTABLE),
        file(b"unlinked", SYMLINK, REGULAR),
    ]
    assert [path.raw for path in files_of(changes)] == [b"added", b"changed", b"mode", b"unlinked"]


paths = st.lists(
    st.binary(min_size=1, max_size=8).filter(lambda raw: not {0, 0x2F} & set(raw)), max_size=6
).map(lambda names: [RepoPath.from_git(name) for name in names])


@given(paths, st.integers(1, 3))
@settings(max_examples=often(200), deadline=None)
def test_files_stand_where_the_placeholder_stands_and_are_never_options(
    files: list[RepoPath], position: int
) -> None:
    words = ["tool", "a", "b"]
    words.insert(position, "{files}")
    settings_of_it = CommandSettings("lint", tuple(words))
    assert needs_files(settings_of_it)
    expanded = expand(settings_of_it, files)
    before, put, after = (
        expanded[:position],
        expanded[position:][: len(files)],
        expanded[position + len(files) :],
    )
    assert before == [word.encode() for word in words[:position]]
    assert after == [word.encode() for word in words[position + 1 :]]
    assert sorted(raw.removeprefix(b"./") for raw in put) == sorted(path.raw for path in files)
    assert all(raw.startswith(b"./") for raw in put)


def test_a_command_without_the_placeholder_gets_no_files() -> None:
    plain = CommandSettings("lint", ("make", "é"))
    assert not needs_files(plain)
    assert expand(plain, [RepoPath.from_git(b"a")]) == [b"make", "é".encode()]
