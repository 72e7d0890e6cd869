"""What doctor says of the environment: which programs the shell, commands and hooks of GUIs find."""

from __future__ import annotations

import json
import re
from pathlib import Path

from patchgate import __version__
from patchgate.hooks.doctor import json_schema
from tests.component_world import declared
from tests.hooks.doctor.test_doctor_findings import installed, write_hook
from tests.schemas import require_valid
from tests.world import Answer, Repo


def program(place: Path, script: str = "exit 0") -> Path:
    """Make a program that runs a line of sh."""
    return write_hook(place, f"#!/bin/sh\n{script}\n")


def with_tool(folder: Path, policy: str) -> Repo:
    """A repository whose tool is in a folder of its own, which no shell has on its PATH."""
    repo = installed(folder, policy=policy)
    program(repo.path / ".tools/own-tool")
    return repo


def without_hooks(folder: Path, policy: str = "[policy]\n") -> Repo:
    """A repository with a policy. Without hooks doctor starts none, and reports that as its only error."""
    repo = Repo.create(folder)
    repo.policy(policy)
    return repo


def errors(answer: Answer) -> list[str]:
    """Give the errors but for the hooks that are not installed."""
    assert answer.code == 1
    found = [line for line in answer.out.splitlines() if line.startswith("  error: ")]
    return [line for line in found if "patchgate is not installed" not in line]


def views(answer: Answer) -> dict[str, dict[str, object]]:
    """Give the environments that the JSON compares, by name."""
    report = answer.report
    require_valid(report, json_schema())
    return {each["name"]: each for each in report["environment"]["views"]}


ENVIRONMENT = '[environment]\nextra_path_dirs = [".tools"]\nrequired_tools = ["own-tool"]\n'


def test_doctor_validates_the_environment_lists_missing_tools_and_every_integration(tmp_path: Path) -> None:
    """Requirement D 4.4, and the success criterion about doctor."""
    lacks = ENVIRONMENT.replace('["own-tool"]', '["own-tool", "no-such-tool", "no-other-tool"]')
    repo = with_tool(tmp_path, lacks + '[analyses.scan]\ncommand = ["no-scanner"]\n')
    repo.write(".pre-commit-config.yaml", "repos: []\n")
    (repo.path / ".git/hooks/pre-push").chmod(0o644)
    answer = repo.cli("doctor")
    assert answer.code == 1
    head, *lines = answer.out.splitlines()
    assert head == f"{repo.path}: 4 of 5 hooks reach patchgate {__version__}"
    found = errors(answer)
    for words in (
        "pre-push: .* is not executable",
        r"\[environment\] \(patchgate.toml:1\) is not complete: no-such-tool, no-other-tool were not found",
        r"\[analyses.scan\] \(patchgate.toml:4\) cannot run: no-scanner was not found",
    ):
        assert sum(bool(re.search(words, line)) for line in found) == 1, words
    assert len(found) == 3
    assert any("install no-such-tool, no-other-tool" in line for line in lines)
    report = repo.cli("doctor", "--format", "json").report
    (worktree,) = report["worktrees"]
    hooks = {each["event"]: each["executable"] for each in worktree["hooks"]}
    assert [event for event, can_run in hooks.items() if not can_run] == ["pre-push"]
    assert report["environment"]["is_complete"] is False


def test_a_complete_environment_is_compared_with_the_shell_and_with_hooks_of_guis(tmp_path: Path) -> None:
    """Requirement D 4.4: doctor shows the environment."""
    repo = with_tool(tmp_path, ENVIRONMENT + 'python_path = ".tools/python"\n')
    python = program(repo.path / ".tools/python")
    shell_tool = program(tmp_path / "shell/own-tool")
    path = f"{tmp_path}/shell:{repo.env['PATH']}"
    answer = repo.cli("doctor", PATH=path)
    assert answer.code == 0, answer.out
    own_tool = repo.path / ".tools/own-tool"
    lines = answer.out.splitlines()
    found = lines[lines.index("environment of the policy's programs:") + 1 :]
    assert found == [
        f"  only on the PATH of commands: {repo.path}/.tools",
        f"  PATH in hooks of GUIs: {repo.path}/.tools, /usr/bin, /bin",
        f"  python_path .tools/python: {python} (shell, commands, hooks of GUIs)",
        f"  own-tool: {shell_tool} (shell); {own_tool} (commands, hooks of GUIs)",
    ]
    seen = views(repo.cli("doctor", "--format", "json", PATH=path))
    assert seen["shell"]["path"] == path.split(":")
    assert seen["commands"]["path"] == [f"{repo.path}/.tools", *dict.fromkeys(path.split(":"))]
    assert seen["bare-path"]["path"] == [f"{repo.path}/.tools", "/usr/bin", "/bin"]
    assert seen["shell"]["tools"] == [{"name": "own-tool", "file": str(shell_tool)}]
    assert [each["missing"] for each in seen.values()] == [[], [], []]


def test_a_python_that_is_not_there_fails_doctor_only_where_one_is_required(tmp_path: Path) -> None:
    repo = without_hooks(tmp_path, '[environment]\npython_path = "python3.99"\n')
    (error,) = errors(repo.cli("doctor"))
    assert "python_path python3.99 was not found on PATH" in error
    repo.policy('[commands.a]\nkind = "lint"\ncommand = ["/bin/sh"]\nrequired_tools = ["sh"]\n')
    (tmp_path / "bin").mkdir()
    for name in ("git", "sh", "sed", "cat", "readlink", "dirname", "env"):
        found = next(Path(folder, name) for folder in ("/usr/bin", "/bin") if Path(folder, name).exists())
        (tmp_path / "bin" / name).symlink_to(found)
    answer = repo.cli("doctor", PATH=str(tmp_path / "bin"))
    assert "python_path" not in answer.out
    assert errors(answer) == []


def test_what_only_a_hook_of_a_gui_lacks_is_a_warning_where_a_hook_runs_analyses(tmp_path: Path) -> None:
    scan = '[analyses.scan]\ncommand = ["shell-tool"]\n'
    repo = without_hooks(tmp_path, scan)
    program(tmp_path / "shell/shell-tool")
    path = f"{tmp_path}/shell:{repo.env['PATH']}"
    assert "warning" not in repo.cli("doctor", PATH=path).out
    repo.policy(scan + "[verify]\non_push = true\n")
    answer = repo.cli("doctor", PATH=path)
    assert errors(answer) == []
    (line,) = (line for line in answer.out.splitlines() if line.startswith("  warning: pre-push: "))
    assert "bare PATH /usr/bin:/bin" in line
    assert line.endswith("shell-tool was not found on PATH (/usr/bin, /bin)")
    assert f"shell-tool is in {tmp_path}/shell: add it to [environment] extra_path_dirs" in answer.out


def test_a_python_of_component_tests_that_cannot_import_pytest_fails_doctor(tmp_path: Path) -> None:
    repo = without_hooks(tmp_path, declared("shaping"))
    python = program(tmp_path / "shell/python", "exit 1")
    answer = repo.cli("doctor", PATH=f"{tmp_path}/shell:{repo.env['PATH']}")
    (error,) = errors(answer)
    assert error.endswith(f"the tests of components cannot run: {python} cannot import pytest")
    assert re.search(rf"  cannot import pytest: {python} \(shell, commands\)", answer.out)


def test_a_policy_that_runs_no_program_has_no_environment_to_show(tmp_path: Path) -> None:
    repo = without_hooks(tmp_path)
    assert "environment" not in repo.cli("doctor").out
    report = json.loads(repo.cli("doctor", "--format", "json").out)
    require_valid(report, json_schema())
    assert report["environment"] is None
