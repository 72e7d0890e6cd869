"""What the ledger saw made, and which paths are control files between two trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.check.judging_policy import controls_of
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, open_repository
from patchgate.intents.intent_commits import recorded_intents
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.ledger.ledger import Ledger
from tests.intent_world import FIRST, SECOND, common_dir, declare, git_dir, paths
from tests.world import Repo

CONTROL = "[tool.patchgate.policy]\n"
HOOKS = "repos:\n- repo: https://example.com/patchgate\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"a": "1\n", "pyproject.toml": "[project]\n"}, "First")
    return made


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def test_commits_are_those_of_one_intent(repo: Repo) -> None:
    ledger = Ledger(common_dir(repo))
    assert recorded_intents(opened(repo), FIRST) == {}
    for name, commits in ((FIRST, ["a", "b"]), (SECOND, ["c", FIRST]), (FIRST, ["d"])):
        ledger.record("made", {"intent": name, "ref": None, "commits": commits})
    ledger.record("intent", {"id": FIRST, "action": "declared", "commits": ["e"]})
    ledger.record("made", {"intent": FIRST, "commits": "f"})
    ledger.record("made", {"intent": FIRST, "commits": [1, None]})
    ledger.record("made", {"intent": FIRST})
    assert recorded_intents(opened(repo), FIRST) == {"a": [FIRST], "b": [FIRST], "d": [FIRST]}
    assert recorded_intents(opened(repo), SECOND) == {"c": [SECOND], FIRST: [SECOND]}
    assert recorded_intents(opened(repo)).keys() == {"a", "b", "c", "d", FIRST}


def test_a_ledger_that_cannot_be_read_does_not_say_that_nothing_was_made(repo: Repo) -> None:
    Ledger(common_dir(repo)).path.mkdir(parents=True)
    with pytest.raises(UndecidedError, match="Is a directory"):
        recorded_intents(opened(repo), FIRST)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"pyproject.toml": "[project]\nname = 'x'\n"}, []),
        ({}, {"pyproject.toml": CONTROL}, ["pyproject.toml"]),
        ({"pyproject.toml": CONTROL}, {"pyproject.toml": "[project]\n"}, ["pyproject.toml"]),
        ({"pyproject.toml": CONTROL}, {"pyproject.toml": CONTROL + "[project]\n"}, []),
        ({}, {".pre-commit-config.yaml": HOOKS}, []),
        ({".pre-commit-config.yaml": HOOKS}, {".pre-commit-config.yaml": ""}, [".pre-commit-config.yaml"]),
        ({}, {"patchgate.toml": "[policy]\n"}, ["patchgate.toml"]),
        (
            {},
            {".patchgate/allowed_signers": "x\n", ".patchgate/baselines/x.json": "{}"},
            [".patchgate/allowed_signers"],
        ),
    ],
)
def test_control_files_are_told_by_name_and_by_content(
    repo: Repo, before: dict[str, str], after: dict[str, str], expected: list[str]
) -> None:
    repo.commit(dict(before), "Before")
    old = repo.ask("rev-parse", "HEAD^{tree}")
    repo.commit(dict(after), "After")
    repository = opened(repo)
    with Objects(repository) as objects:
        new = repo.ask("rev-parse", "HEAD^{tree}")
        found = controls_of(objects, old, new, paths(["a", *after]))
    assert found == frozenset(paths(expected))


def test_without_a_marker_no_intent_is_of_this_worktree(repo: Repo) -> None:
    declare(repo, "a")
    Path(common_dir(repo), "patchgate/intents", f"{FIRST}.json").write_text("damaged")
    here = ScopeGate(opened(repo)).here
    assert here is not None
    assert here.fault is not None
    assert here.binds
    Path(git_dir(repo), "patchgate-intents").unlink()
    here = ScopeGate(opened(repo)).here
    assert here is not None
    assert (here.binds, here.fault, here.others) == (False, None, ())
    assert here.unreadable is not None
    Path(common_dir(repo), "patchgate/intents", f"{FIRST}.json").unlink()
    assert ScopeGate(opened(repo)).here is None


def test_a_marker_alone_is_no_intent_and_a_damaged_one_is_none_that_can_be_told(repo: Repo) -> None:
    marker = Path(git_dir(repo), "patchgate-intents")
    for text in ("", f"{FIRST}\n"):
        marker.write_text(text)
        here = ScopeGate(opened(repo)).here
        assert here is not None
        assert not here.binds
    marker.write_text("what\n")
    here = ScopeGate(opened(repo)).here
    assert here is not None
    assert here.fault is not None
