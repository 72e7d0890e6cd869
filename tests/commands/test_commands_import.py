"""`git patchgate commands import`: what the configs of other managers become, and what broken ones change."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from patchgate.commands.importing.documents import MAX_BYTES
from patchgate.policy.config import parse, parse_pyproject
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)
PRE_COMMIT = """\
exclude: ^vendor/
repos:
  - repo: https://github.com/astral-sh/ruff-pre-commit
    rev: v0.9.1
    hooks:
      - id: ruff
        args: [--fix, --exit-non-zero-on-fix, --output-format=full, --select, E]
      - id: ruff-format
        args: [--check]
  - repo: https://github.com/pre-commit/pre-commit-hooks
    rev: v5.0.0
    hooks:
      - id: check-merge-conflict
      - id: trailing-whitespace
  - repo: https://github.com/psf/black-pre-commit-mirror
    rev: 25.1.0
    hooks: [{id: black, files: ^src/}]
  - repo: https://github.com/pre-commit/mirrors-mypy
    rev: v1
    hooks: [{id: mypy, additional_dependencies: [types-requests]}]
  - repo: https://github.com/pre-commit/mirrors-prettier
    rev: v3
    hooks: [{id: prettier, types_or: [css, javascript]}]
  - repo: git@github.com:owner/unknown.git
    rev: v1
    hooks: [{id: secret-sauce}]
  - repo: local
    hooks:
      - {id: tests, name: t, entry: pytest -q, language: system, pass_filenames: false, stages: [pre-push]}
      - {id: shape, name: s, entry: ./tools/shape.sh --strict, language: script, files: '\\.(js|jsx)$'}
      - {id: odd, name: o, entry: x, language: system, files: '(?!a)'}
      - {id: message, name: m, entry: x, language: system, stages: [commit-msg]}
      - {id: grep, name: g, entry: TODO, language: pygrep}
"""
LEFTHOOK = """\
pre-commit:
  parallel: true
  commands:
    eslint: {glob: "*.{js,ts}", root: web/, run: "npx eslint --fix {staged_files}", stage_fixed: true}
    style: {glob: "src/*.css", run: "stylelint {staged_files} | tee log", env: {LEVEL: "2"}}
    all: {run: "tool {all_files}"}
  jobs:
    - {name: fmt, glob: "*.go", run: "gofmt -l {staged_files}"}
    - {group: {jobs: []}}
pre-push:
  commands: {tests: {run: cargo test}}
commit-msg:
  commands: {words: {run: "commitlint {1}"}}
"""
PACKAGE = {
    "name": "shop",
    "lint-staged": {"*.{js,ts}": ["eslint --fix", "prettier --write", "git add"], "!(a)*.js": "odd"},
}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a policy that has comments."""
    made = Repo.create(tmp_path)
    made.commit(
        {"patchgate.toml": "# Ours.\n[policy]\nmax_file_bytes = 9 # all\n", "ruff.toml": "", "a.py": ""}
    )
    return made


def imported(repo: Repo, files: dict[str, str], *arguments: str) -> tuple[dict[str, Any], Answer]:
    """Import some configs; give the commands that are in the policy afterwards."""
    for name, text in files.items():
        repo.write(name, text)
    answer = repo.cli("commands", "import", *arguments)
    assert answer.code == 0, answer.err
    raw = (repo.path / "patchgate.toml").read_bytes()
    parse(raw, "patchgate.toml")
    return tomllib.loads(raw.decode()).get("commands", {}), answer


def test_hooks_of_pre_commit_become_commands(repo: Repo) -> None:
    repo.write("tools/shape.sh", "")
    commands, answer = imported(repo, {".pre-commit-config.yaml": PRE_COMMIT})
    assert commands["ruff"] == {
        "kind": "lint",
        "command": [
            *("ruff", "check", "--no-fix", "--output-format", "sarif", "--force-exclude"),
            *("--select", "E", "{files}"),
        ],
        "output": "sarif",
        "new_only": True,
        "files": ["*.py", "*.pyi", "*.ipynb"],
        "exclude": ["/vendor/**"],
        "needs": ["ruff.toml"],
        "on": ["commit"],
        "fix": ["ruff", "check", "--fix-only", "--force-exclude", "--select", "E", "{files}"],
    }
    assert commands["ruff-format"]["command"] == ["ruff", "format", "--force-exclude", "{files}"]
    assert commands["ruff-format"]["kind"] == "format"
    assert commands["trailing-whitespace"]["command"] == ["trailing-whitespace-fixer", "{files}"]
    assert "*.png" in commands["trailing-whitespace"]["exclude"]
    assert commands["black"]["files"] == ["/src/**/*.py", "/src/**/*.pyi"]
    assert commands["mypy"]["scope"] == "tree"
    assert commands["prettier"]["command"] == ["prettier", "--write", "--ignore-unknown", "{files}"]
    assert commands["prettier"]["files"] == ["*.css", "*.js", "*.mjs", "*.cjs"]
    assert commands["tests"] == {
        "kind": "test",
        "command": ["pytest", "-q"],
        "exclude": ["/vendor/**"],
        "scope": "tree",
        "on": ["push"],
    }
    assert commands["shape"]["needs"] == ["tools/shape.sh"]
    assert commands["shape"]["files"] == ["*.js", "*.jsx"]
    assert set(commands) == {
        *("ruff", "ruff-format", "trailing-whitespace", "black", "mypy", "prettier", "tests", "shape")
    }
    for name in ("check-merge-conflict", "secret-sauce", "local odd", "local message", "local grep"):
        assert name in answer.err
    assert "types-requests" in answer.err


def test_commands_of_lefthook_become_commands(repo: Repo) -> None:
    repo.write("web/node_modules/.bin/eslint", "")
    repo.write("web/eslint.config.js", "")
    commands, answer = imported(repo, {"lefthook.yml": LEFTHOOK})
    assert commands["eslint"] == {
        "kind": "lint",
        "command": ["node_modules/.bin/eslint", "{files}"],
        "files": ["*.js", "*.ts"],
        "root": "web",
        "needs": ["web/eslint.config.js"],
        "provide": ["web/node_modules"],
        "on": ["commit"],
        "fix": ["node_modules/.bin/eslint", "--fix", "{files}"],
    }
    assert commands["style"]["command"] == ["sh", "-c", 'stylelint "$@" | tee log', "sh", "{files}"]
    assert commands["style"]["env"] == {"LEVEL": "2"}
    assert commands["style"]["files"] == ["/src/**/*.css"]
    assert commands["fmt"] == {
        "kind": "format",
        "command": ["gofmt", "-w", "{files}"],
        "files": ["*.go"],
        "on": ["commit"],
    }
    assert commands["tests"]["command"] == ["cargo", "test"]
    assert commands["tests"]["on"] == ["push"]
    assert set(commands) == {"eslint", "style", "fmt", "tests"}
    for name in ("pre-commit all", "commit-msg words"):
        assert name in answer.err


@pytest.mark.parametrize("name", ["package.json", ".lintstagedrc", ".lintstagedrc.yaml"])
def test_tasks_of_lint_staged_become_commands(repo: Repo, name: str) -> None:
    text = json.dumps(PACKAGE if name == "package.json" else PACKAGE["lint-staged"])
    commands, answer = imported(repo, {name: text})
    assert commands["eslint"]["command"] == ["eslint", "{files}"]
    assert commands["eslint"]["fix"] == ["eslint", "--fix", "{files}"]
    assert commands["eslint"]["files"] == ["*.js", "*.ts"]
    assert commands["prettier"]["kind"] == "format"
    assert set(commands) == {"eslint", "prettier"}
    assert "!(a)*.js" in answer.err


def test_the_policy_keeps_its_text_and_a_second_import_adds_nothing(repo: Repo) -> None:
    before = (repo.path / "patchgate.toml").read_text()
    imported(repo, {".pre-commit-config.yaml": PRE_COMMIT})
    once = (repo.path / "patchgate.toml").read_text()
    assert once.startswith(before)
    imported(repo, {})
    assert (repo.path / "patchgate.toml").read_text() == once


def test_another_command_of_that_name_gets_a_number(repo: Repo) -> None:
    repo.write("patchgate.toml", '[commands.ruff]\nkind = "lint"\ncommand = ["other"]\n')
    commands, _ = imported(repo, {".pre-commit-config.yaml": PRE_COMMIT})
    assert commands["ruff"]["command"] == ["other"]
    assert commands["ruff-2"]["command"][0] == "ruff"


def test_a_dry_run_prints_the_lines_and_writes_nothing(repo: Repo) -> None:
    before = (repo.path / "patchgate.toml").read_bytes()
    _, answer = imported(repo, {".pre-commit-config.yaml": PRE_COMMIT}, "--dry-run")
    assert (repo.path / "patchgate.toml").read_bytes() == before
    assert "ruff" in tomllib.loads(answer.out)["commands"]


def test_a_policy_in_pyproject_gets_its_commands_there(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"pyproject.toml": "[tool.patchgate.policy]\r\n[tool.other]\r\na = 1\r\n"})
    repo.write(".pre-commit-config.yaml", PRE_COMMIT)
    assert repo.cli("commands", "import").code == 0
    config = parse_pyproject((repo.path / "pyproject.toml").read_bytes(), "pyproject.toml")
    assert config is not None
    assert "ruff" in config.commands
    assert not (repo.path / "patchgate.toml").exists()


def test_a_named_file_is_read_from_the_folder_of_the_caller(repo: Repo) -> None:
    repo.write("web/lefthook.yml", "pre-commit: {commands: {x: {run: x}}}\n")
    answer = repo.cli("commands", "import", "lefthook.yml", cwd=repo.path / "web")
    assert answer.code == 0, answer.err
    assert "x" in tomllib.loads((repo.path / "patchgate.toml").read_text())["commands"]


def test_tools_that_are_not_there_are_named(repo: Repo) -> None:
    _, answer = imported(repo, {"lefthook.yml": "pre-commit: {commands: {x: {run: no-such-tool}}}\n"})
    assert "no-such-tool" in answer.err


BROKEN = {
    "not YAML": "repos: [\n",
    "not a mapping": "- a\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "a tab": "a:\n\t- b\n",
    "a control character": "a: \x01\n",
    "a NUL": 'a: "\\0"\n',
    "half a surrogate": 'a: "\\ud800"\n',
    "an unknown alias": "a: *b\n",
    "a bomb": "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{after}: &{after} [{', '.join([f'*{each}'] * 10)}]\n"
        for each, after in zip("abcdef", "bcdefg", strict=True)
    ),
    "a bomb of merges": "a: &a {x: 1, y: 2}\n"
    + "".join(
        f"{after}: &{after} {{<<: [{', '.join([f'*{each}'] * 10)}]}}\n"
        for each, after in zip("abcdef", "bcdefg", strict=True)
    ),
    "an alias in itself": "a: &a [*a]\n",
    "too deep": "[" * 5000 + "]" * 5000,
    "too deep JSON": '{"a":' * 5000 + "1" + "}" * 5000,
    "too many values": "a: [" + "x, " * 30_000 + "]",
    "10 MB": "a: " + "x" * (10 << 20),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_config_changes_nothing_and_is_one_sentence(repo: Repo, case: str) -> None:
    text = BROKEN[case]
    assert len(text) > MAX_BYTES or case != "10 MB"
    repo.write(".pre-commit-config.yaml", text)
    refused(repo)


def refused(repo: Repo, *arguments: str) -> None:
    """Require that an import is refused with one sentence and changes nothing."""
    before = (repo.path / "patchgate.toml").read_bytes()
    answer = repo.cli("commands", "import", *arguments)
    assert answer.code == 2, answer
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) <= 2, answer.err
    assert (repo.path / "patchgate.toml").read_bytes() == before


def test_a_config_that_is_a_link_or_no_file_changes_nothing(repo: Repo) -> None:
    place = repo.path / ".pre-commit-config.yaml"
    place.symlink_to("a.py")
    refused(repo)
    place.unlink()
    place.mkdir()
    refused(repo)
    place.rmdir()
    os.mkfifo(place)
    refused(repo)
    place.unlink()
    refused(repo)
    refused(repo, "a.py")
    refused(repo, "../outside.yml")


def test_a_policy_that_is_a_link_or_broken_changes_nothing(repo: Repo) -> None:
    repo.write("lefthook.yml", LEFTHOOK)
    repo.write("patchgate.toml", "[polcy]\n")
    refused(repo)
    (repo.path / "patchgate.toml").unlink()
    repo.write("elsewhere.toml", "")
    (repo.path / "patchgate.toml").symlink_to("elsewhere.toml")
    refused(repo)


def test_values_of_other_shapes_are_left_out_without_a_fault(repo: Repo) -> None:
    text = "repos: [a, {repo: local, hooks: [b, {id: [c]}, {id: d}, {id: e, entry: [f]}]}, {hooks: {}}]\n"
    commands, _ = imported(
        repo, {".pre-commit-config.yaml": text, "lefthook.yml": "pre-commit: [a, {b: c}]\n"}
    )
    assert commands == {}


def test_text_of_a_config_reaches_the_policy_only_as_text(repo: Repo) -> None:
    text = 'pre-commit: {commands: {"x]\\n[policy": {run: "a \'\\x1b\\x7f\\"]\' \\n b"}}}\n'
    commands, answer = imported(repo, {"lefthook.yml": text})
    assert len(commands) == 1
    assert "\x1b" not in answer.out + answer.err
