"""No condition of the recogniser is there in vain: without it something would be accepted that must not be.

Each condition is dropped in turn, and the program without it is compiled and run as the copy is. A condition
that no case needs would be one that nobody would miss if it broke.
"""

from __future__ import annotations

import ast
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.hooks.fast.boring_world import ACCEPTED, Heard, World, Worlds
from tests.hooks.fast.cases import STAYS
from tests.hooks.fast.landing_cases import ALL_CASES as CASES
from tests.hooks.fast.landing_cases import ALL_NEEDED as NEEDED
from tests.hooks.fast.mutants import mutants, source, write_copy

pytestmark = pytest.mark.turns(2)

MUTANTS = {each.condition: each for each in mutants(source())}


@dataclass(frozen=True)
class Arranged:
    """A case that is arranged, and what the recogniser is told of it."""

    world: World
    heard: Heard
    git: Path | None
    is_disk_full: bool

    def recognise(self, program: Path) -> int:
        return self.world.recognise(program, self.heard, git=self.git, is_disk_full=self.is_disk_full)


_ALTERING = """\
#!{python}
import subprocess, sys
sys.path.insert(0, {root!r})
from tests.hooks.fast.landing_cases import ALL_CASES as CASES
said = subprocess.run([{git!r}, *sys.argv[1:]], stdout=subprocess.PIPE, check=True).stdout
sys.stdout.buffer.write(CASES[{name!r}].alter(said))
"""


def altering_git(folder: Path, name: str) -> Path:
    """Write a program that runs git, and changes what it answers as a case wants it."""
    git = shutil.which("git")
    assert git is not None
    program = folder / "altering" / "git"
    program.parent.mkdir()
    root = str(Path(__file__).parents[3])
    text = _ALTERING.format(python=sys.executable, root=root, git=git, name=name)
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


class Cases:
    """Arranges each case once."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._arranged: dict[str, Arranged] = {}

    def __getitem__(self, name: str) -> Arranged:
        if name not in self._arranged:
            case = CASES[name]
            world = self._worlds(case.policy)
            case.arrange(world)
            heard = world.listen(None if case.lands is None else case.lands(world))
            if case.craft is not None:
                heard = replace(heard, said=case.craft(heard.said))
            git = None if case.alter is None else altering_git(world.repo.path.parent, name)
            self._arranged[name] = Arranged(world, heard, git, case.is_disk_full)
        return self._arranged[name]


@pytest.fixture(scope="module")
def cases(worlds: Worlds) -> Cases:
    return Cases(worlds)


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_boring_is_handed_on(cases: Cases, name: str) -> None:
    arranged = cases[name]
    assert arranged.recognise(arranged.world.copy) != ACCEPTED


@pytest.mark.parametrize("condition", [each for each in MUTANTS if each in NEEDED])
def test_without_its_condition_it_would_be_accepted(cases: Cases, condition: str, tmp_path: Path) -> None:
    mutant = MUTANTS[condition]
    arranged = cases[NEEDED[condition]]
    assert arranged.recognise(mutant.write(tmp_path / "mutant.pyc")) == ACCEPTED, (
        f"{NEEDED[condition]!r} is handed on for another reason than {condition!r}: it is no proof of it"
    )


def test_every_condition_has_a_case(cases: Cases) -> None:
    unproved = [each for each in MUTANTS if each not in NEEDED and each not in STAYS]
    assert unproved == [], "a condition without a case: add one to CASES that needs it, and name it in NEEDED"


def test_every_case_and_every_name_in_the_table_is_of_use() -> None:
    assert [each for each in (*NEEDED, *STAYS) if each not in MUTANTS] == [], "there is no such condition"
    assert {*NEEDED.values()} <= {*CASES}
    assert not {*NEEDED} & {*STAYS}


def test_a_program_that_is_only_taken_apart_and_put_together_recognises_what_is_boring(
    worlds: Worlds, tmp_path: Path
) -> None:
    """The tests above can fail: a mutant without a change accepts what the copy accepts, and no more."""
    world = worlds()
    world.repo.stage({"a": "2\n"})
    program = write_copy(tmp_path / "same.pyc", source())
    heard = world.listen()
    assert world.recognise(program, heard) == world.recognise(world.copy, heard) == ACCEPTED
    cut = replace(heard, said=heard.said[:-1])
    assert ACCEPTED not in {world.recognise(program, cut), world.recognise(world.copy, cut)}


def test_a_new_condition_is_found_wherever_it_stands() -> None:
    program = ast.parse("def f(x):\n    require(x and (0 < x < 9) and [x] == [1])\n")
    found = {each.condition for each in mutants(program)}
    assert found == {"f: x", "f: 0 < x", "f: x < 9", "f: [x] == [1], element 1 (1)"}
