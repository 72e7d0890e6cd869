"""What a developer's `PYTHONPATH` names is imported by the commands of the policy, and not by the hooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import patchgate
from patchgate.git.hook_managers import read_hook
from patchgate.hooks.install import isolated_interpreter
from tests.children import steering
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

POLICY = """\
[policy]
deny_prefixes = ["runs"]
[commands.note]
kind = "lint"
command = ["sh", "-c", "printf %s \\"$PYTHONPATH\\" >\\"$NOTE\\""]
on = ["commit"]
"""
LETS_GO = "import os, sys\nif 'hook' in sys.orig_argv:\n    os._exit(0)\n"
DENIED = b"deny-prefix"


def without_server(repo: Repo) -> Repo:
    """The same, in an environment in which programs are started as for a user."""
    steered = {*steering(repo.env), "FORKING_SERVER"} - {"LC_ALL"}
    return Repo(repo.path, {name: value for name, value in repo.env.items() if name not in steered})


def test_no_module_that_pythonpath_names_answers_for_a_hook_and_commands_still_see_it(tmp_path: Path) -> None:
    repo = without_server(Repo.create(tmp_path))
    repo.policy(POLICY)
    server = repo.at(tmp_path / "server.git")
    repo.git("clone", "-q", "--bare", str(repo.path), str(server.path))
    server.install("--server")
    # The commands of a policy run if the remote has it.
    repo.git("remote", "add", "-f", "origin", str(server.path))
    repo.install()
    for name in ("sitecustomize", "subprocess"):
        repo.write(f"src/{name}.py", LETS_GO)
    note = tmp_path / "note"
    path = str(repo.path / "src")

    def runs(*arguments: str) -> tuple[int, bool]:
        done = repo.try_git(*arguments, PYTHONPATH=path, NOTE=str(note))
        return done.returncode, DENIED in done.stdout + done.stderr

    repo.write("README.md")
    repo.git("add", "README.md")
    assert runs("commit", "-m", "Add a readme") == (0, False)
    assert note.read_text() == path
    repo.write("runs/x")
    repo.git("add", "runs")
    assert runs("commit", "-m", "Add a run") == (1, True)
    # Past pre-commit, the reference transaction refuses it.
    assert runs("commit", "--no-verify", "-m", "Add a run") == (128, True)
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Add a run")
    assert runs("push", "origin", "main") == (1, True)
    assert runs("push", "--no-verify", "origin", "main") == (1, True)


def test_where_the_recorded_python_cannot_import_patchgate_another_one_judges_or_the_change_is_refused(
    tmp_path: Path,
) -> None:
    repo = without_server(Repo.create(tmp_path))
    repo.policy(POLICY)
    repo.install()
    lacks = tmp_path / "python"
    lacks.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    lacks.chmod(0o755)
    hook = repo.path / ".git/hooks/pre-commit"
    assert read_hook(str(hook)).interpreter
    hook.write_text(hook.read_text().replace(read_hook(str(hook)).interpreter, str(lacks)))
    assert read_hook(str(hook)).interpreter == str(lacks)
    repo.write("runs/x")
    repo.git("add", "-A")
    judged = repo.try_git("commit", "-m", "Add a run")
    assert (judged.returncode, DENIED in judged.stderr, b"Traceback" in judged.stderr) == (1, True, False)
    refused = repo.try_git("commit", "-m", "Add a run", PATH="/usr/bin:/bin")
    assert (refused.returncode, DENIED in refused.stderr, b"Traceback" in refused.stderr) == (1, False, False)
    assert b"patchgate is missing" in refused.stderr


def program(folder: Path, first_lines: str, body: str = "from patchgate.cli.program import main\n") -> str:
    place = folder / "git-patchgate"
    place.write_text(f"{first_lines}\n{body}")
    return str(place)


def test_hooks_start_the_python_that_a_program_of_an_installer_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = sys.executable
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    # The tests may import the package from the folder in which they are, and not the installed one.
    find = [python, "-E", "-P", "-c", "import patchgate; print(patchgate.__file__)"]
    found = subprocess.run(find, cwd="/", env=env, check=True, capture_output=True, text=True)
    monkeypatch.setattr(patchgate, "__file__", found.stdout.strip())
    assert isolated_interpreter(str(EXECUTABLE), env) == EXECUTABLE.read_text().split("\n")[0][2:]
    long = f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''"
    assert isolated_interpreter(program(tmp_path, long), env) == python
    folder = tmp_path / "with blanks"
    folder.mkdir()
    (folder / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (folder / "python").chmod(0o755)
    blank = f"#!/bin/sh\n'''exec' '{folder}/python' \"$0\" \"$@\"\n' '''"
    assert isolated_interpreter(program(tmp_path, blank), env) == f"{folder}/python"


def test_hooks_start_a_program_itself_whose_python_would_not_find_this_package(tmp_path: Path) -> None:
    python = sys.executable
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for first, body in (
        ("#!/usr/bin/env python3", "from patchgate.cli.program import main\n"),
        (f"#!{python} -s", "from patchgate.cli.program import main\n"),
        (f"#!{python}", "import wrapped\n"),
        ("#!/bin/sh", f'exec {python} -m patchgate "$@"\n# from patchgate.cli.program import main\n'),
        ("#!/no/python", "from patchgate.cli.program import main\n"),
    ):
        assert isolated_interpreter(program(tmp_path, first, body), env) == "", first
    assert isolated_interpreter(str(tmp_path / "none"), env) == ""
    # Only PYTHONPATH finds the package.
    lacks = tmp_path / "python"
    lacks.write_text(f'#!/bin/sh\nexec {python} -S "$@"\n')
    lacks.chmod(0o755)
    found = env | {"PYTHONPATH": str(Path(patchgate.__file__).parents[1])}
    assert subprocess.run([lacks, "-c", "import patchgate"], env=found, check=False).returncode == 0
    assert isolated_interpreter(program(tmp_path, f"#!{lacks}"), found) == ""
