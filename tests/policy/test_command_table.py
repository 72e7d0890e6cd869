"""One table for every tool: its newer keys, what they refuse, which files it gets, and its old form."""

from __future__ import annotations

import pytest

from patchgate.errors import ConfigError
from patchgate.git.path import RepoPath
from patchgate.policy.command import analyses_digest, ordered_commands
from patchgate.policy.command_files import CommandFiles, batches, expand, matching_files
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.config import parse
from patchgate.policy.policy import Policy
from patchgate.policy.settings import Config
from patchgate.policy.tree_policies import old_table_notes
from tests.command_world import analysis

FULL = """
[commands.ruff]
kind = "lint"
command = ["ruff", "check", "--no-fix", "--output-format", "sarif", "{files}"]
output = "sarif"
new_only = true
files = ["*.py", "*.pyi"]
exclude = ["vendor/**"]
root = "services/api"
needs = ["pyproject.toml", "config/"]
provide = ["node_modules"]
on = ["commit", "push", "apply", "verify"]
fix = ["ruff", "check", "--fix-only", "{files}"]
optional = true
version = ">=0.9"
version_command = ["ruff", "version"]
remember = false
per_file = true
each_commit = true
jobs = 4

[commands.format]
kind = "format"
command = ["ruff", "format", "{files}"]
on = ["commit"]

[commands.tests]
kind = "test"
command = ["pytest"]
"""


def read(text: str) -> Config:
    return parse(text.encode(), "patchgate.toml")


def paths(*names: str) -> list[RepoPath]:
    return [RepoPath(name.encode()) for name in names]


def test_every_key_of_the_table_is_read() -> None:
    config = read(FULL)
    ruff = config.commands["ruff"]
    assert (ruff.output, ruff.new_only, ruff.files, ruff.exclude) == (
        "sarif",
        True,
        ("*.py", "*.pyi"),
        ("vendor/**",),
    )
    assert (ruff.root, ruff.needs, ruff.provide) == (
        "services/api",
        ("pyproject.toml", "config"),
        ("node_modules",),
    )
    assert (ruff.optional, ruff.version, ruff.version_command) == (True, ">=0.9", ("ruff", "version"))
    assert (ruff.remember, ruff.per_file, ruff.each_commit, ruff.jobs) == (False, True, True, 4)
    assert ruff.fix == ("ruff", "check", "--fix-only", "{files}")
    assert config.commands["tests"].on == ("apply",)


def test_each_occasion_runs_its_own_commands_and_tests_come_last() -> None:
    commands = read(FULL).commands
    assert [name for name, _ in ordered_commands(commands, "commit")] == ["ruff", "format"]
    assert [name for name, _ in ordered_commands(commands)] == ["ruff", "tests"]
    assert [name for name, _ in ordered_commands(commands, "push")] == ["ruff"]
    assert list(read(FULL).analyses) == ["ruff"]


@pytest.mark.parametrize(
    ("lines", "key", "said"),
    [
        ('kind = "format"\noutput = "sarif"', "commands.x", "formatter"),
        ('kind = "lint"\non = ["verify"]', "commands.x", "verify"),
        ('kind = "lint"\nnew_only = true', "commands.x", "new_only"),
        ('kind = "lint"\nper_file = true', "commands.x", "per_file"),
        ('kind = "lint"\njobs = 2', "commands.x", "jobs"),
        ('kind = "lint"\njobs = 0', "commands.x.jobs", "1 to 64"),
        ('kind = "lint"\neach_commit = true', "commands.x", "each_commit"),
        ('kind = "lint"\nversion_command = ["a"]', "commands.x", "version_command"),
        ('kind = "lint"\nversion = "new"', "commands.x.version", "new"),
        ('kind = "lint"\non = ["merge"]', "commands.x.on[0]", '"commit"'),
        ('kind = "lint"\non = []', "commands.x.on", "empty"),
        ('kind = "lint"\non = ["push", "push"]', "commands.x.on", "twice"),
        ('kind = "lint"\nroot = "../x"', "commands.x.root", "below"),
        ('kind = "lint"\nneeds = ["/etc/passwd"]', "commands.x.needs[0]", "below"),
        ('kind = "lint"\nprovide = [".git"]', "commands.x.provide[0]", "below"),
        ('kind = "lint"\nfiles = ["!a"]', "commands.x.files[0]", "negation"),
        ('kind = "lint"\nfix = []', "commands.x.fix", "program"),
        (
            'kind = "author"\nrole = "code_author"\nphase = "implementation"\nfiles = ["a"]',
            "commands.x.files",
            "author",
        ),
    ],
)
def test_keys_that_do_not_fit_are_named(lines: str, key: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f'[commands.x]\n{lines}\ncommand = ["tool"]')
    (mistake,) = caught.value.mistakes
    assert mistake.key == key
    assert said in mistake.message
    assert mistake.line
    assert mistake.hint


@pytest.mark.parametrize(
    ("files", "exclude", "root", "chosen"),
    [
        ((), (), "", "a.py b.txt services/api/c.py services/d.py vendor/e.py"),
        (("*.py",), (), "", "a.py services/api/c.py services/d.py vendor/e.py"),
        (("*.py",), ("vendor/**",), "", "a.py services/api/c.py services/d.py"),
        (("*.py",), (), "services", "services/api/c.py services/d.py"),
        (("/*.py", "*.txt"), (), "", "a.py b.txt"),
        (("services/*.py",), (), "", "services/d.py"),
    ],
)
def test_a_command_is_for_the_files_that_its_patterns_name(
    files: tuple[str, ...], exclude: tuple[str, ...], root: str, chosen: str
) -> None:
    settings = CommandSettings("lint", ("ruff", "{files}"), files=files, exclude=exclude, root=root)
    every = paths("vendor/e.py", "a.py", "b.txt", "services/api/c.py", "services/d.py")
    assert [each.raw.decode() for each in matching_files(settings, every)] == chosen.split()


def test_files_are_relative_to_the_root_and_never_options() -> None:
    settings = CommandSettings("lint", ("tool", "{files}"), root="a b")
    assert expand(settings, paths("a b/-x", "a b/c")) == [b"tool", b"./-x", b"./c"]
    assert not CommandFiles(settings).match(b"a bc/d")


def test_files_are_divided_below_a_length_and_into_jobs() -> None:
    settings = CommandSettings("lint", ("tool", "{files}"))
    files = paths(*(f"{number:03}" for number in range(100)))
    parts = list(batches(settings, files, 200))
    assert [each for part in parts for each in part] == files
    assert all(sum(len(word) + 9 for word in expand(settings, part)) <= 200 + 7 for part in parts)
    assert [
        len(part) for part in batches(CommandSettings("lint", ("t", "{files}"), jobs=3), files, 10**6)
    ] == [
        *(34, 34),
        32,
    ]
    assert list(batches(CommandSettings("lint", ("t",)), files, 1)) == [files]


# ---- the old form ----------------------------------------------------------------------------------------

OLD = '[analyses.ruff]\ncommand = ["ruff", "check"]\nformat = "metrics"\n'


def test_the_old_form_is_a_command_of_verify_and_keeps_its_digest() -> None:
    config = read(OLD)
    assert config.analyses == {"ruff": analysis(("ruff", "check"), "metrics")}
    assert config.commands == {}
    new = read(
        '[commands.ruff]\nkind = "lint"\ncommand = ["ruff", "check"]\noutput = "metrics"\non = ["verify"]'
    )
    assert analyses_digest(config.analyses) == analyses_digest(new.analyses)


def test_the_note_about_the_old_form_gives_place_and_new_lines() -> None:
    both = OLD + '[commands.ruff]\nkind = "lint"\ncommand = ["ruff", "check"]\n'
    for text, line in ((OLD, 'kind = "lint", output = "metrics", on = ["verify"]'), (both, '"verify" in')):
        policy = Policy(read(text), "patchgate.toml", text.encode())
        (note,) = old_table_notes(policy)
        assert "patchgate.toml:1" in note
        assert line in note


def test_a_linter_that_is_declared_in_both_forms_runs_for_both() -> None:
    config = read(OLD + '[commands.ruff]\nkind = "lint"\ncommand = ["ruff", "check", "src"]\n')
    assert config.commands["ruff"].command == ("ruff", "check", "src")
    assert config.analyses["ruff"].command == ("ruff", "check")
    assert config.warnings == ()


def test_two_declarations_for_verify_are_a_warning_and_the_command_counts() -> None:
    new = '[commands.ruff]\nkind = "lint"\ncommand = ["new"]\noutput = "sarif"\non = ["verify"]\n'
    config = read(OLD + new)
    assert config.analyses["ruff"].command == ("new",)
    assert [each.key for each in config.warnings] == [("analyses", "ruff")]
