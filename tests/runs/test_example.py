"""The example of a run: its components and answers are right; in the long form its whole script runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.amount import IS_LONG
from tests.world import Repo

EXAMPLE = Path(__file__).parents[2] / "examples" / "run"
NAMES = sorted(path.stem for path in (EXAMPLE / "shop" / "contracts").iterdir())


def shop(folder: Path, *answers: str) -> Repo:
    """Make the repository of the example, with these answers as the implementations."""
    repo = Repo.create(folder)
    shutil.copytree(EXAMPLE / "shop", repo.path, dirs_exist_ok=True)
    (repo.path / "src").mkdir()
    for answer in answers:
        shutil.copy(
            EXAMPLE / "answers" / f"{answer}.py", repo.path / "src" / f"{answer.partition('.')[0]}.py"
        )
    repo.stage()
    repo.git("commit", "-q", "-m", "the shop")
    return repo


def run_tests(repo: Repo) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unittest", *(f"test_{name}" for name in NAMES)],
        cwd=repo.path,
        env={**repo.env, "PYTHONPATH": f"src{os.pathsep}tests"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_contracts_of_the_example_are_valid_and_its_answers_pass_the_tests(tmp_path: Path) -> None:
    repo = shop(tmp_path, *NAMES)
    assert len(NAMES) == 6
    assert repo.cli("component", "validate", "--all").code == 0
    assert run_tests(repo).returncode == 0


def test_the_first_answer_for_the_cart_fails_its_test_alone(tmp_path: Path) -> None:
    answers = {name: name for name in NAMES} | {"cart": "cart.first"}
    done = run_tests(shop(tmp_path, *answers.values()))
    assert done.returncode == 1
    assert {"test_cart", "test_checkout"} == set(re.findall(r"\((test_\w+)\.", done.stderr))


@pytest.mark.skipif(not IS_LONG, reason="PATCHGATE_LONG=1: it takes half a minute")
def test_the_example_is_killed_resumed_paused_and_resumed_and_ends_as_it_says(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    done = subprocess.run(
        ["sh", EXAMPLE / "try.sh"],
        cwd=repo.path,
        env=repo.env | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.count(": completed\n")) == (0, 2), done.stderr
    assert done.stdout.index(" interrupted: ") < done.stdout.index(": completed\n")
    assert ": paused\n" in done.stdout
    assert "shop-test is not on the PATH of hooks; run git patchgate doctor" in done.stdout
    assert list(tmp_path.glob("patchgate-run*")) == []
