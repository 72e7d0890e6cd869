"""A baseline that goes with the declared files of its component is in scope, in the hooks and in `verify`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component_world import BASELINE, CODE, FILES, POLICY, capture, declared, files, make
from tests.intent_world import FIRST, SECOND, declare, intent_of, keep, later, made
from tests.world import Repo

OTHER = ".patchgate/baselines/other.json"
BOTH = POLICY + "\n" + declared("other")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """Two components with their baselines, and the hooks."""
    repo = make(tmp_path, BOTH, {**FILES, **files("other")})
    repo.install()
    return repo


def change(repo: Repo) -> None:
    """Change a file of each component, and record both anew; stage all of it."""
    repo.stage(
        {CODE: "def area(width, height):\n    return height * width\n\n\ndef side(square):\n    return 3\n"}
    )
    repo.stage(capture(repo, BOTH))


@pytest.mark.parametrize("entry", [CODE, "src/shaping/", "src/*/__init__.py"])
def test_it_is_in_scope_where_the_intent_allows_a_file_of_its_component(repo: Repo, entry: str) -> None:
    declare(repo, entry)
    change(repo)
    assert repo.ask("diff", "--cached", "--name-only").splitlines() == [BASELINE, CODE]
    assert repo.check().errors == []
    done = repo.cli("verify", "--format", "json", "-q")
    assert done.report["scope"]["unexpected_files"] == []
    assert done.report["scope"]["expanded"] == [BASELINE]
    landed = repo.try_git("commit", "-q", "-m", "Change the order of the factors")
    assert (landed.returncode, landed.stderr) == (0, b"")


@pytest.mark.parametrize("entry", ["README.md", "docs/", "src/other/__init__.py"])
def test_it_is_not_where_the_intent_allows_none(repo: Repo, entry: str) -> None:
    declare(repo, entry)
    repo.write(BASELINE, "{}\n")
    repo.git("add", BASELINE)
    assert "scope-unexpected" in repo.check().errors
    assert repo.cli("verify", "--format", "json", "-q").report["scope"]["unexpected_files"] == [BASELINE]


def test_to_take_a_baseline_out_is_no_capture(repo: Repo) -> None:
    declare(repo, CODE)
    repo.git("rm", "-q", BASELINE)
    assert "scope-unexpected" in repo.check().errors


def test_of_two_intents_a_baseline_goes_with_the_one_that_allows_the_file(repo: Repo) -> None:
    keep(repo, later(intent_of(repo, CODE), 60))
    declare(repo, "README.md", name=SECOND)
    change(repo)
    repo.git("commit", "-q", "-m", "Change the order of the factors")
    assert made(repo) == [(FIRST, (repo.head(),))]
