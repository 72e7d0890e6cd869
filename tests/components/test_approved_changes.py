"""An approval allows what one commit does on one ref, and not what others make of the same file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.approvals.owners_world import Team
from tests.approvals.test_owner_attacks import PROTECTED, clean_merge, commit_of, refused
from tests.component_world import (
    BASELINE,
    CONTRACT,
    FILES,
    POLICY,
    TESTS,
    TEXT_OF_TESTS,
    capture,
    contract,
    declared,
    files,
)
from tests.signing import needs_ssh_keygen

pytestmark = [needs_ssh_keygen, pytest.mark.turns(3)]

_TAIL = f'\n{PROTECTED}[governance]\nid = "repository-1"\n'
_STRICT = _TAIL + '[rules]\ndrift-implementation = "error"\n'
_WEAK = TEXT_OF_TESTS.partition("\n\ndef test_side")[0]


@dataclass
class Place:
    """A team whose `main` and `release/1` have a component with its baseline."""

    team: Team
    policy: str
    start: str

    @classmethod
    def make(
        cls, folder: Path, policy: str = POLICY + _TAIL, content: dict[str, str | bytes] | None = None
    ) -> Place:
        team = Team.make(folder, policy)
        team.dev.stage(FILES if content is None else content)
        start = team.dev.commit(capture(team.dev, policy), "Start")
        place = cls(team, policy, start)
        place.have(start, "main", "release/1")
        return place

    def have(self, commit: str, *branches: str) -> None:
        """Let branches of the server have a commit, past its hook."""
        self.team.server.git("fetch", "-q", str(self.team.dev.path), commit)
        for name in branches:
            self.team.server.git("update-ref", f"refs/heads/{name}", commit)
        self.team.dev.git("fetch", "-q", "-f", "origin")

    def change(self, file: str, text: str) -> str:
        """Change a file and its baseline in one commit."""
        self.team.dev.git("checkout", "-q", "--detach", self.start)
        self.team.dev.stage({file: text})
        return self.team.dev.commit(capture(self.team.dev, self.policy), "Change")

    def launder(self, base: str, file: str, text: str) -> str:
        """Change a file while no component is declared, and record it when it is declared again."""
        dev = self.team.dev
        dev.git("checkout", "-q", "--detach", base)
        dev.policy("[policy]\n" + _TAIL)
        dev.git("rm", "-q", BASELINE)
        dev.commit({file: text})
        dev.policy(self.policy)
        dev.stage()
        return dev.commit(capture(dev, self.policy), "Declare")


def test_an_approval_for_another_branch_allows_no_lost_test_here(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    lost, laundered = place.change(TESTS, _WEAK), place.launder(place.start, TESTS, _WEAK)
    answer = place.team.approve("alice", lost, "--for", "refs/heads/release/1", "--policy-from", place.start)
    assert answer.code == 0, answer.err
    rule = "drift-tests-weakened"
    refused(place.team, f"{laundered}:refs/heads/main", rule=rule)
    refused(place.team, f"{laundered}:refs/heads/main", f"{lost}:refs/heads/release/1", rule=rule)
    refused(place.team, f"{laundered}:refs/heads/main", f"{lost}:refs/heads/topic", rule=rule)


def test_an_approved_contract_allows_no_other_contract_after_it(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    reviewed = place.change(CONTRACT, contract(version="1.1.0", description="Reviewed."))
    answer = place.team.approve("alice", reviewed, "--for", "refs/heads/main", "--policy-from", place.start)
    assert answer.code == 0, answer.err
    other = contract(version="9.0.0").replace('"side"', '"other_name"')
    laundered = place.launder(reviewed, CONTRACT, other)
    refused(place.team, f"{laundered}:refs/heads/main", rule="drift-contract-without-tests")
    answer = place.team.push(f"{reviewed}:refs/heads/main")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("is_approved", [True, False])
def test_what_another_branch_has_or_gets_hides_nothing_at_the_tip_of_main(
    tmp_path: Path, is_approved: bool
) -> None:
    """The policy declares more files on one line, and the other adds such a file: their merge drifts."""
    narrow = declared("a") + _STRICT
    wide = narrow.replace('["src/a/**"]', '["src/a/**", "src/*.py"]')
    place = Place.make(tmp_path, narrow, files("a"))
    dev = place.team.dev
    side = commit_of(dev, place.start, {"src/more.py": "x = 1\n"})
    dev.git("checkout", "-q", "--detach", place.start)
    dev.policy(wide)
    declaring = dev.head()
    place.have(declaring, "main", "release/1")
    merge = clean_merge(dev, declaring, side)
    rule = "drift-implementation"
    refused(place.team, f"{merge}:refs/heads/main", rule=rule)
    if is_approved:
        other = commit_of(dev, declaring, {"src/more.py": "x = 2  # reviewed\n"})
        done = place.team.approve("alice", other, "--for", "refs/heads/release/1", "--policy-from", declaring)
        assert done.code == 0, done.err
        refused(place.team, f"{merge}:refs/heads/main", f"{other}:refs/heads/release/1", rule=rule)
        return
    # There the file drifted before this push, so there it is a warning.
    before = commit_of(dev, declaring, {"src/more.py": "x = 1\n"})
    place.have(before, "aaa")
    refused(place.team, f"{merge}:refs/heads/aaa", f"{merge}:refs/heads/main", rule=rule)


def test_an_approved_change_lands_beside_commits_that_leave_the_component_alone(tmp_path: Path) -> None:
    place = Place.make(tmp_path)
    lost = place.change(TESTS, _WEAK)
    done = place.team.approve("alice", lost, "--for", "refs/heads/main", "--policy-from", place.start)
    assert done.code == 0, done.err
    beside = commit_of(place.team.dev, lost, {"notes": "1\n"})
    answer = place.team.push(f"{beside}:refs/heads/main")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize("length", [1, 90])
def test_losses_that_read_alike_are_not_the_same_loss(tmp_path: Path, length: int) -> None:
    """Six lost functions are told as five `and 1 more`, and a long name is cut."""
    names = [f"test_{'x' * length}_{letter}" for letter in "abcdefg"]

    def tests(*lost: str) -> str:
        body = "() -> None:\n    assert shaping.area(1, 3) == 3\n"
        left = (each for each in names if each not in lost)
        return "import shaping\n\n\n" + "\n\n".join(f"def {each}{body}" for each in left)

    place = Place.make(tmp_path, content={**FILES, TESTS: tests()})
    reviewed = place.change(TESTS, tests(*names[:6]))
    done = place.team.approve("alice", reviewed, "--for", "refs/heads/main", "--policy-from", place.start)
    assert done.code == 0, done.err
    laundered = place.launder(reviewed, TESTS, tests(*names[:5], names[6]))
    refused(place.team, f"{laundered}:refs/heads/main", rule="drift-tests-weakened")


@pytest.mark.parametrize("was_so", [True, False])
def test_one_file_that_drifts_hides_no_other_of_its_component(tmp_path: Path, was_so: bool) -> None:
    """A component drifts at its first file; there it is approved, or it was so before."""
    narrow = declared("a") + _STRICT
    wide = narrow.replace('["src/a/**"]', '["src/a/**", "src/*.py"]')
    place = Place.make(tmp_path, narrow, files("a"))
    dev = place.team.dev
    side = commit_of(dev, place.start, {"src/more.py": "x = 1\n"})
    dev.git("checkout", "-q", "--detach", place.start)
    dev.policy(wide)
    declaring = dev.head()
    place.have(declaring, "main")
    reviewed = commit_of(dev, declaring, {"src/a/__init__.py": "reviewed = 1\n"})
    if was_so:
        place.have(reviewed, "main")
    else:
        done = place.team.approve("alice", reviewed, "--for", "refs/heads/main", "--policy-from", declaring)
        assert done.code == 0, done.err
    merge = clean_merge(dev, reviewed, side)
    refused(place.team, f"{merge}:refs/heads/main", rule="drift-implementation")


@pytest.mark.parametrize(
    "lost",
    [
        {"test_shaping_more": [f"test_{number}" for number in range(22)]},
        {"test_shaping_more": ["test_" + "x" * 90]},
        {f"test_shaping_{number}": ["test_it"] for number in range(22)},
    ],
    ids=["tests", "name", "files"],
)
def test_an_approved_loss_of_many_tests_lands(tmp_path: Path, lost: dict[str, list[str]]) -> None:
    many = {
        f"tests/contracts/{name}.py": "".join(map("def {}():\n    assert area(2, 3) == 6\n".format, tests))
        for name, tests in lost.items()
    }
    place = Place.make(tmp_path, content={**FILES, **many})
    commit = commit_of(place.team.dev, place.start, dict.fromkeys(many))
    refused(place.team, f"{commit}:refs/heads/main", rule="drift-tests-weakened")
    assert place.team.approve("alice", commit, "--for", "refs/heads/main").code == 0
    assert place.team.push(f"{commit}:refs/heads/main", is_real=False).code == 0


def test_who_approves_is_shown_each_file_and_test_that_a_finding_only_counts(tmp_path: Path) -> None:
    tests = [f"test_{number}" for number in range(8)]
    many = {
        "tests/contracts/test_shaping_many.py": "".join(
            f"def {name}():\n    assert area(2, 3) == 6\n" for name in tests
        ),
        **{f"src/shaping/part{number:02}.py": f"X = {number}\n" for number in range(25)},
    }
    place = Place.make(tmp_path, content={**FILES, **many})
    dev = place.team.dev
    commit = commit_of(dev, place.start, dict.fromkeys(many))
    shown = place.team.approve("alice", commit, "--for", "refs/heads/main")
    assert shown.code == 0
    assert [name for name in [*tests, *(Path(path).name for path in many)] if name not in shown.err] == []
