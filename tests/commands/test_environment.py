"""The environment that everything of a policy shares: its PATH, its Python, its tools, checked once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from patchgate.commands.environment import (
    find_programs,
    prepare_environment,
    shared_environment,
    validate_environment,
)
from patchgate.commands.programs import NO_TREE, command_environment, find_program
from patchgate.commands.runner import CommandStatus, run
from patchgate.components.capture_run import CaptureResult
from patchgate.errors import UndecidedError
from patchgate.policy.command_settings import CommandSettings
from patchgate.policy.run_settings import EnvironmentSettings
from tests.components.capture_world import captured, shaping
from tests.proposals import ABC, change_of
from tests.verify.analysis_world import REPORT, Desk
from tests.world import Repo

PYTEST = (("python", "-m", "pytest", "-q", "{tests}"),)


def program(place: Path, script: str = "exit 0") -> Path:
    """Make a program that runs a line of sh."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    place.chmod(0o755)
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A working tree with a virtual environment, and folders of programs beside it."""
    made = tmp_path / "root"
    program(made / ".venv/bin/python")
    program(made / ".venv/bin/ruff")
    program(tmp_path / "shell/python3")
    program(tmp_path / "shell/shell-tool")
    program(tmp_path / "extra/extra-tool")
    return made


def path_of(root: Path, settings: EnvironmentSettings, path: str | None = None) -> list[str]:
    """Give the folders of PATH that a command sees."""
    environ = {"PATH": path or str(root.parent / "shell"), "GIT_DIR": "x", "HOME": str(root)}
    made = command_environment(shared_environment(environ, settings, str(root)), {}, NO_TREE)
    assert "GIT_DIR" not in made
    return made["PATH"].split(":")


def lacking(
    root: Path,
    settings: EnvironmentSettings,
    test_commands: Iterable[tuple[str, ...]] = (),
    **environ: str,
) -> tuple[str, str]:
    """Give message and hint of the one error about an environment."""
    around = {"PATH": str(root.parent / "shell"), **environ}
    with pytest.raises(UndecidedError) as raised:
        validate_environment(around, settings, str(root), test_commands=test_commands)
    assert raised.value.exit_code == 3
    return raised.value.message, raised.value.hint or ""


# ---- what programs see -----------------------------------------------------------------------------------


def test_path_has_the_callers_folders_and_then_the_extra_ones(root: Path, tmp_path: Path) -> None:
    """Requirement D 4.4."""
    settings = EnvironmentSettings(extra_path_dirs=(f"{tmp_path}/extra", "node_modules/.bin"))
    assert path_of(root, settings) == [f"{tmp_path}/shell", f"{tmp_path}/extra", f"{root}/node_modules/.bin"]
    made = shared_environment({"PATH": f"{tmp_path}/shell"}, settings, None)
    assert made["PATH"] == f"{tmp_path}/shell:{tmp_path}/extra"


def test_without_the_callers_folders_only_those_of_the_system_and_the_extra_ones_count(
    root: Path, tmp_path: Path
) -> None:
    """Requirement D 4.4."""
    settings = EnvironmentSettings(inherit_path=False, extra_path_dirs=(f"{tmp_path}/extra",))
    assert path_of(root, settings) == ["/usr/bin", "/bin", f"{tmp_path}/extra"]


def test_the_folder_of_a_python_that_is_a_path_comes_first(root: Path, tmp_path: Path) -> None:
    for path in (".venv/bin/python", f"{root}/.venv/bin/python"):
        settings = EnvironmentSettings(path, extra_path_dirs=(".venv/bin",))
        assert path_of(root, settings) == [f"{root}/.venv/bin", f"{tmp_path}/shell"]
    assert path_of(root, EnvironmentSettings("python3.99")) == [f"{tmp_path}/shell"]


def test_a_folder_in_the_scratch_tree_never_counts(root: Path, tmp_path: Path) -> None:
    settings = EnvironmentSettings(extra_path_dirs=("bin", str(tmp_path / "scratch/bin")))
    shared = shared_environment({"PATH": "relative:"}, settings, str(root))
    made = command_environment(shared, {}, str(tmp_path / "scratch"))
    assert made["PATH"] == f"{root}/bin"


def test_the_variables_of_a_command_win_over_those_of_the_environment_and_of_the_caller() -> None:
    settings = EnvironmentSettings(env={"A": "shared", "B": "shared", "C": "\u00e4"})
    shared = shared_environment({"A": "caller", "B": "caller", "D": "caller", "PATH": "/bin"}, settings, None)
    made = command_environment(shared, {"B": "own", "PATH": "/own"}, NO_TREE)
    assert [made[name] for name in "ABD"] == ["shared", "own", "caller"]
    assert os.fsencode(made["C"]) == "\u00e4".encode()
    assert made["PATH"] == "/own"


def test_without_the_section_nothing_is_added_and_nothing_is_checked(root: Path) -> None:
    environ = {"PATH": "", "PYTHONPATH": "src"}
    assert prepare_environment(environ, EnvironmentSettings(), str(root)) is environ
    assert command_environment(environ, {}, NO_TREE)["PYTHONPATH"] == "src"


def test_a_command_finds_its_program_in_an_extra_folder(root: Path, tmp_path: Path) -> None:
    settings = EnvironmentSettings(extra_path_dirs=(".venv/bin",))
    (tmp_path / "tree").mkdir()
    for environ, status in (
        ({"PATH": "/usr/bin:/bin"}, CommandStatus.NOT_STARTED),
        (shared_environment({"PATH": "/usr/bin:/bin"}, settings, str(root)), CommandStatus.PASSED),
    ):
        outcome = run(
            "probe",
            CommandSettings("lint", ("ruff",)),
            place=str(tmp_path / "tree"),
            files=(),
            environ=environ,
            log_path=str(tmp_path / "log"),
        )
        assert outcome.status is status


# ---- what is checked -------------------------------------------------------------------------------------


def test_a_python_that_cannot_be_found_is_an_error_with_suggestions(root: Path, tmp_path: Path) -> None:
    """Requirement D 4.4."""
    message, hint = lacking(root, EnvironmentSettings("python3.99"))
    assert message.endswith(f"python_path python3.99 was not found on PATH ({tmp_path}/shell)")
    assert 'set [environment] python_path = "python3"' in hint
    assert "git patchgate doctor" in hint
    message, _ = lacking(root, EnvironmentSettings(".venv/bin/python3.99"))
    assert message.endswith("python_path .venv/bin/python3.99 is not a program")
    for path in ("python3", ".venv/bin/python", f"{root}/.venv/bin/python"):
        settings = EnvironmentSettings(path)
        validate_environment({"PATH": str(tmp_path / "shell")}, settings, str(root))


def test_all_that_is_missing_is_one_error_with_where_it_was_looked_for_and_what_to_do(
    root: Path, tmp_path: Path
) -> None:
    """Requirement D 4.4."""
    settings = EnvironmentSettings(
        "python3.99", required_tools=("shell-tool", "ruff", "extra-tool", "no\u202esuch")
    )
    message, hint = lacking(root, settings)
    names = "python_path python3.99, ruff, extra-tool, no\\u202esuch were not found"
    assert message.endswith(f"{names} on PATH ({tmp_path}/shell)")
    assert f"ruff is in {root}/.venv/bin: add it to [environment] extra_path_dirs" in hint
    assert "install extra-tool, no\\u202esuch" in hint
    assert "shell-tool" not in message + hint
    fixed = EnvironmentSettings(required_tools=("ruff",), extra_path_dirs=(".venv/bin",))
    validate_environment({"PATH": str(tmp_path / "shell")}, fixed, str(root))


def test_a_folder_of_the_shell_that_is_not_inherited_is_suggested(root: Path, tmp_path: Path) -> None:
    settings = EnvironmentSettings(".venv/bin/python", inherit_path=False, required_tools=("shell-tool",))
    _, hint = lacking(root, settings)
    assert f"shell-tool is in {tmp_path}/shell" in hint


def test_pytest_must_be_importable_where_the_default_test_command_runs_it(root: Path, tmp_path: Path) -> None:
    """Requirement D 4.4: the module counts, as `python -m pytest` needs no program of that name."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/python").symlink_to(sys.executable)
    real = {"PATH": f"{tmp_path}/real:{tmp_path}/shell"}
    # Through a link, Python does not find the modules of its virtual environment.
    modules = str(Path(pytest.__file__).parents[1])
    settings = EnvironmentSettings()
    validate_environment(real | {"PYTHONPATH": modules}, settings, str(root), test_commands=PYTEST)
    assert "python was not found" in lacking(root, settings, PYTEST)[0]
    program(tmp_path / "shell/python", "exit 1")
    message, hint = lacking(root, settings, PYTEST)
    assert message.endswith(f"{tmp_path}/shell/python cannot import pytest")
    assert "install pytest" in hint
    # Any other command may find pytest elsewhere.
    validate_environment(
        {"PATH": f"{tmp_path}/shell"}, settings, str(root), test_commands=[("make", "{tests}")]
    )


def test_where_each_program_is_can_be_asked_for(root: Path, tmp_path: Path) -> None:
    environ = {"PATH": f"{tmp_path}/shell:{tmp_path}/extra"}
    settings = EnvironmentSettings(required_tools=("extra-tool",))
    places = find_programs(environ, settings, str(root), tools=["ruff"])
    assert places.python == find_program("python3", environ) == f"{tmp_path}/shell/python3"
    assert places.tools == {"extra-tool": f"{tmp_path}/extra/extra-tool", "ruff": None}
    assert places.missing_tools == ("ruff",)


# ---- who uses it -----------------------------------------------------------------------------------------

SHARED = '[environment]\nextra_path_dirs = [".tools"]\n'
COMMANDS = (
    '[commands.a]\nkind = "lint"\ncommand = ["extra-tool"]\n[commands.b]\nkind = "test"\ncommand = ["sh"]\n'
)


def test_apply_checks_the_environment_before_its_first_command(tmp_path: Path) -> None:
    """Requirement D 4.4: once, so that no command runs where another one could not."""
    repo = Repo.create(tmp_path)
    repo.commit({"f": ABC})
    repo.policy(f'{SHARED}required_tools = ["extra-tool", "other-tool"]\n{COMMANDS}')
    program(repo.path / ".tools/extra-tool", f"echo ran >>{tmp_path}/ran")
    answer = repo.run("apply", "-", "--format", "json", stdin=change_of())
    assert (answer.code, answer.verdict, answer.errors) == (3, "undecided", [])
    (said,) = {gate["reason"] for gate in answer.change["gates"] if gate["gate"] in {"lint", "test"}}
    assert "other-tool was not found on PATH" in said
    assert not (tmp_path / "ran").exists()
    program(repo.path / ".tools/other-tool")
    answer = repo.run("apply", "-", "--format", "json", stdin=change_of())
    assert (answer.code, (tmp_path / "ran").read_text()) == (0, "ran\n")


def test_an_analysis_runs_in_the_shared_environment_and_is_checked_first(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path)
    script = f'echo ran >>{tmp_path}/ran; test "$KEY" = value && cat {REPORT}'
    program(desk.path / ".tools/scan", script)
    shared = SHARED + 'env = {KEY = "value"}\n'
    scan = '[analyses.scan]\ncommand = ["scan"]\n'
    desk.policy(f'{shared}required_tools = ["no-such-tool"]\n{scan}')
    answer = desk.run("analyze")
    assert answer.code == 3
    assert "no-such-tool was not found on PATH" in answer.err
    assert not (tmp_path / "ran").exists()
    desk.policy(shared + scan)
    assert desk.run("analyze").code == 0
    assert desk.run("verify").code == 0
    desk.policy(shared.replace('"value"', '"other"') + scan)
    assert desk.run("analyze").code == 3


def test_the_tests_of_a_component_run_in_the_shared_environment(tmp_path: Path) -> None:
    more = '[environment]\nenv = {KEY = "value"}\nextra_path_dirs = [".tools"]\n'
    repo = shaping(tmp_path, "sh", "-c", 'test "$KEY" = value && extra-tool', "{tests}", more=more)
    program(repo.path / ".tools/extra-tool")
    assert captured(repo).components[0].result is CaptureResult.RECORDED


def test_a_capture_without_pytest_is_one_error_before_any_test(tmp_path: Path) -> None:
    repo = shaping(tmp_path, more='[environment]\ninherit_path = false\nextra_path_dirs = ["bin"]\n')
    program(repo.path / "bin/python", f"echo $* >>{tmp_path}/started; exit 1")
    with pytest.raises(UndecidedError, match="bin/python cannot import pytest"):
        captured(repo)
    assert "-m pytest" not in (tmp_path / "started").read_text()


def test_the_policy_in_force_shows_where_a_command_has_its_variables_and_tools_from(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(
        '[environment]\nenv = {KEY = "value", OTHER = "1"}\nrequired_tools = ["tool"]\n'
        '[run]\nmax_retries = 1\n[commands.a]\nkind = "lint"\ncommand = ["a"]\nenv = {OTHER = "2"}\n'
    )
    lines = repo.cli("policy", "show").out.splitlines()
    for line in (
        'environment.env.KEY = "value"  (patchgate.toml:2)',
        'environment.python_path = "python3"  (default)',
        "run.max_retries = 1  (patchgate.toml:5)",
        'run.impatience = "normal"  (default)',
        'commands.a.env.KEY = "value"  (patchgate.toml:2)',
        'commands.a.env.OTHER = "2"  (patchgate.toml:9)',
        'commands.a.required_tools = ["tool"]  (patchgate.toml:3)',
        "commands.a.role = null  (default)",
    ):
        assert f"  {line}" in lines, line
