"""`fix` in random dirty states: no byte of the working tree is lost, also not by a kill in the middle."""

from __future__ import annotations

import random
import shutil
import signal
import stat
from collections import Counter
from pathlib import Path

import pytest

from patchgate.apply.recovery import recover_pending
from tests.amount import sample
from tests.apply.fix_world import Fixer, State, formatted, make, mess_up, staged, state
from tests.faults import Fault, Faults, Kind
from tests.git.transaction_world import in_child
from tests.world import Repo

STATES = 300
pytestmark = pytest.mark.turns(3)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The repository that each state begins from."""
    return make(tmp_path_factory.mktemp("origin"))


def copied(repo: Repo, folder: Path) -> Repo:
    """Copy a repository, with the times of its files."""
    shutil.copytree(repo.path, folder, symlinks=True)
    return repo.at(folder)


def lines(content: bytes) -> Counter[bytes]:
    return Counter(content.splitlines(keepends=True))


@pytest.mark.parametrize("number", sample(STATES, 8, "fix"))
def test_a_fix_loses_no_byte_of_the_working_tree(origin: Repo, tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    dirty = copied(origin, tmp_path / "dirty")
    mess_up(dirty, chance)
    fixed, killed = copied(dirty, tmp_path / "fixed"), copied(dirty, tmp_path / "killed")
    before, was_staged = state(fixed), staged(fixed)
    steps = Faults()
    result = Fixer(fixed).fix(faults=steps)
    after, is_staged = state(fixed), staged(fixed)

    no_byte_is_lost(before, after, was_staged)
    touched = {path.raw.decode() for path in result.paths}
    changed = set(fixed.ask("diff", "--cached", "--name-only", "HEAD").split("\n"))
    for name, content in was_staged.items():
        should = name in changed and name.endswith(".py") and name != "src/intended.py"
        assert is_staged[name] == (formatted(content) if should else content)
        assert (name in touched) == (is_staged[name] != content)
    assert not result.report
    assert fixed.git("stash", "list") == b""
    assert not list(fixed.path.rglob(".patchgate-*"))
    assert Fixer(fixed).fix().paths == ()

    if steps.steps == 0:
        assert before == after
        return
    step = chance.randint(1, steps.steps)
    ended = in_child(lambda: Fixer(killed).fix(faults=Faults([Fault(step, Kind.KILL)])))
    assert ended == -signal.SIGKILL
    recover_pending(Fixer(killed).repository)
    assert state(killed) in (before, after)
    assert not list(killed.path.rglob(".patchgate-*"))
    assert not (killed.path / ".git" / "index.lock").exists()


def no_byte_is_lost(before: State, after: State, was_staged: dict[str, bytes]) -> None:
    """Require that each file is there as before, but for formatting of lines that were staged so."""
    assert before.keys() == after.keys()
    for name, (mode, content) in before.items():
        if name == "the index":
            continue
        now_mode, now = after[name]
        assert now_mode == mode
        if now == content:
            continue
        assert stat.S_ISREG(mode)
        assert name in was_staged
        assert formatted(now) == formatted(content)
        unstaged = lines(content) - lines(was_staged[name])
        assert not unstaged - lines(now), name
