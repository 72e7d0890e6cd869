"""What a protected branch has learned of a component is not unlearned by a push of several commits.

Each story is one push (or one pull request) on top of `shaping`, whose tests and baseline the server has. It
is judged by the server, by pre-push and by `check --policy-from`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.git.repository import open_repository
from patchgate.hooks.pre_push import judge_push
from patchgate.hooks.pre_receive import judge_receive
from patchgate.report.verdict import Report
from tests.component_world import (
    BASELINE,
    CODE,
    CONTRACT,
    FILES,
    POLICY,
    TESTS,
    TEXT_OF_CODE,
    TEXT_OF_TESTS,
    capture,
    contract,
    declared,
    make,
)
from tests.signing import approve_here, statement_for
from tests.world import Content

pytestmark = pytest.mark.turns(3)

ZERO = "0" * 40
MAIN = "refs/heads/main"
EMPTY = "[policy]\n"
WEAK = TEXT_OF_TESTS.partition("\n\ndef test_side")[0]
OTHER = TEXT_OF_TESTS.replace("area(0, 3) == 0", "area(3, 0) == 0")
LATER = contract(version="2.0.0", description="More.")
NARROW = POLICY.replace("test_shaping*.py", "test_shaping_not.py")
MOVED = "tests/shapes/test_shapes.py"
RENAMED = declared("shapes")


class Shared:
    """A repository of `shaping`, and the server that has all of it."""

    def __init__(self, folder: Path, policy: str = POLICY, files: dict[str, Content] | None = None) -> None:
        self.repo = make(folder, policy, files)
        self.server = self.repo.at(folder / "server.git")
        self.repo.git("clone", "-q", "--bare", str(self.repo.path), str(self.server.path))
        self.repo.git("remote", "add", "origin", str(self.server.path))
        self.repo.git("fetch", "-q", "origin")
        self.repo.git("remote", "set-head", "origin", "main")

    @property
    def old(self) -> str:
        """What the server has."""
        return self.server.ask("rev-parse", MAIN)

    def captured(self, policy: str = POLICY) -> str:
        """Record what is there, in a commit of its own."""
        self.repo.stage()
        return self.repo.commit(capture(self.repo, policy), "Record")

    def removed(self, *paths: str) -> str:
        """Commit that some files go."""
        self.repo.git("rm", "-q", "-r", "--", *paths)
        return self.repo.commit(message="Remove")

    def receive(self, *refs: str) -> Report:
        """Judge what pre-receive would of refs that get HEAD; of main, where none is named."""
        self.repo.git("push", "-q", "--no-verify", "-f", str(self.server.path), "HEAD:refs/staging/new")
        head = self.repo.head()
        lines = "".join(f"{self.old if ref == MAIN else ZERO} {head} {ref}\n" for ref in refs or (MAIN,))
        return judge_receive(open_repository(self.server.env, str(self.server.path)), lines.encode())

    def push(self) -> Report:
        """Judge what pre-push would."""
        lines = f"{MAIN} {self.repo.ask('rev-parse', 'HEAD')} {MAIN} {self.old}\n".encode()
        repository = open_repository(self.repo.env, str(self.repo.path))
        return judge_push(repository, "origin", str(self.server.path), lines)

    def doors(self) -> list[tuple[str, list[str]]]:
        """Judge at every door; give the verdict of each, and the rules of its errors."""
        found = []
        for report in (self.receive(), self.push()):
            raised = [each for change in report.changes for each in change.findings]
            errors = sorted({each.rule for each in raised if each.level == "error"})
            found.append((report.verdict.value, errors))
        answer = self.repo.check(
            "--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD"
        )
        return [*found, (answer.verdict, sorted(set(answer.errors)))]


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(tmp_path)


def out_and_in(shared: Shared, between: Callable[[], object], *, away: str = EMPTY) -> str:
    """Take the declaration out, do something, declare it again, record it."""
    shared.repo.policy(away)
    between()
    shared.repo.policy(POLICY)
    return shared.captured()


def lose_a_function(shared: Shared) -> str:
    shared.repo.git("rm", "-q", BASELINE)
    return shared.repo.commit({TESTS: WEAK})


Story = Callable[[Shared], object]
LAUNDERED: dict[str, tuple[Story, str]] = {
    "the four commits of the finding": (
        lambda shared: out_and_in(shared, lambda: lose_a_function(shared)),
        "drift-tests-weakened",
    ),
    "the baseline stays meanwhile": (
        lambda shared: out_and_in(shared, lambda: (shared.repo.commit({TESTS: WEAK}), shared.captured())),
        "drift-tests-weakened",
    ),
    "the test file goes": (
        lambda shared: out_and_in(shared, lambda: shared.removed(TESTS, BASELINE)),
        "drift-tests-weakened",
    ),
    "the contract changes without tests": (
        lambda shared: out_and_in(
            shared, lambda: (shared.removed(BASELINE), shared.repo.commit({CONTRACT: LATER}))
        ),
        "drift-contract-without-tests",
    ),
    "the patterns are narrowed meanwhile": (
        lambda shared: out_and_in(
            shared, lambda: (shared.repo.commit({TESTS: WEAK}), shared.captured(NARROW)), away=NARROW
        ),
        "drift-tests-weakened",
    ),
    "the whole policy goes meanwhile": (
        lambda shared: (
            shared.removed("patchgate.toml"),
            lose_a_function(shared),
            shared.repo.policy(POLICY),
            shared.captured(),
        ),
        "drift-tests-weakened",
    ),
    "the patterns stay narrow": (
        lambda shared: (
            shared.repo.policy(NARROW),
            shared.repo.commit({TESTS: WEAK}),
            shared.captured(NARROW),
        ),
        "drift-tests-weakened",
    ),
    "the baseline goes and is not recorded again": (
        lambda shared: (shared.repo.policy(EMPTY), shared.removed(BASELINE), shared.repo.policy(POLICY)),
        "baseline-tampered",
    ),
    "the declaration does not come back": (
        lambda shared: (shared.repo.policy(EMPTY), lose_a_function(shared)),
        "drift-tests-weakened",
    ),
    "it comes back under another name": (
        lambda shared: (
            shared.repo.policy(EMPTY),
            lose_a_function(shared),
            shared.repo.policy(POLICY.replace("components.shaping", "components.shapes")),
        ),
        "drift-tests-weakened",
    ),
    "a promise is made to lose the tests, and taken back": (
        lambda shared: (
            shared.repo.commit({CONTRACT: LATER, TESTS: WEAK}),
            shared.captured(),
            shared.repo.commit({CONTRACT: contract(), TESTS: WEAK.replace("(0, 3) == 0", "(3, 0) == 0")}),
            shared.captured(),
        ),
        "drift-tests-weakened",
    ),
    "the rule is off meanwhile": (
        lambda shared: (
            shared.repo.policy(POLICY + '[rules]\ndrift-tests-weakened = "off"\n'),
            shared.repo.commit({TESTS: WEAK}),
            shared.captured(),
            shared.repo.policy(POLICY),
        ),
        "drift-tests-weakened",
    ),
}


@pytest.mark.sweep(5)
@pytest.mark.parametrize("story", LAUNDERED)
def test_what_one_commit_may_not_do_several_may_not(shared: Shared, story: str) -> None:
    act, rule = LAUNDERED[story]
    act(shared)
    for verdict, errors in shared.doors():
        assert (verdict, rule in errors) == ("rejected", True), errors


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_test_that_has_moved_is_not_lost_from_where_it_is_now(tmp_path: Path, is_lost: bool) -> None:
    """The move was not recorded, so the baseline has it where it was; the change that removes it records."""
    old, new = "tests/contracts/test_shaping_two.py", "tests/contracts/test_shaping_three.py"
    two = "import shaping\n\n\ndef test_two() -> None:\n    assert shaping.side(9) == 3\n"
    shared = Shared(tmp_path, files={**FILES, old: two})
    repo = shared.repo
    repo.git("mv", old, new)
    repo.commit()
    repo.git("push", "-q", "--no-verify", "origin", "main")
    repo.git("fetch", "-q", "origin")
    if is_lost:
        (repo.path / new).unlink()
    else:
        repo.write(new, two + "    assert shaping.side(4) == 2\n")
    shared.captured()
    for verdict, errors in shared.doors():
        expected = ("rejected", ["drift-tests-weakened"]) if is_lost else ("accepted", [])
        assert (verdict, errors) == expected


def moves(shared: Shared) -> None:
    """Rename the component as the documentation says: out, moved, declared anew, recorded."""
    repo = shared.repo
    repo.policy(EMPTY)
    repo.git("rm", "-q", BASELINE)
    for old, new in (
        (CONTRACT, "contracts/shapes/interface.json"),
        (TESTS, MOVED),
        (CODE, "src/shapes/a.py"),
    ):
        (repo.path / new).parent.mkdir(parents=True, exist_ok=True)
        repo.git("mv", old, new)
    repo.git("mv", "src/shaping/more.py", "src/shapes/more.py")
    repo.commit({"contracts/shapes/interface.json": contract("shapes")})
    repo.policy(RENAMED)
    repo.commit({MOVED: TEXT_OF_TESTS.replace("shaping", "shapes")})
    shared.captured(RENAMED)


def moves_its_tests(shared: Shared) -> None:
    repo, new = shared.repo, "tests/more/test_shaping.py"
    both = POLICY.replace("tests = [", 'tests = ["tests/more/*.py", ')
    repo.policy(both)
    (repo.path / new).parent.mkdir(parents=True)
    repo.git("mv", TESTS, new)
    repo.commit(message="Move")
    shared.captured(both)
    last = both.replace(', "tests/contracts/test_shaping*.py"', "")
    repo.policy(last)
    shared.captured(last)


LEGITIMATE: dict[str, Story] = {
    "another promise with fewer tests, recorded later": lambda shared: (
        shared.repo.commit({CONTRACT: LATER, TESTS: WEAK}),
        shared.repo.commit({CODE: TEXT_OF_CODE + "\n"}),
        shared.captured(),
    ),
    "a baseline that lags behind": lambda shared: (
        shared.repo.commit({CODE: TEXT_OF_CODE + "\n"}),
        shared.captured(),
        shared.repo.commit({CODE: TEXT_OF_CODE + "\n\n"}),
    ),
    "a change that is taken back": lambda shared: (
        shared.repo.commit({CONTRACT: LATER, TESTS: WEAK}),
        shared.captured(),
        shared.repo.git("checkout", "-q", "refs/remotes/origin/main", "--", "."),
        shared.repo.commit(),
    ),
    "other tests, recorded": lambda shared: (shared.repo.commit({TESTS: OTHER}), shared.captured()),
    "the declaration goes": lambda shared: shared.repo.policy(EMPTY),
    "the component goes with all of its files": lambda shared: (
        shared.repo.policy(EMPTY),
        shared.removed("contracts", "tests", "src", BASELINE),
    ),
    "the component is renamed": moves,
    "its tests move": moves_its_tests,
    "it is declared otherwise and back": lambda shared: (
        shared.repo.policy(EMPTY),
        shared.repo.policy(POLICY),
    ),
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("story", LEGITIMATE)
def test_work_that_each_commit_may_do_lands_as_a_whole(shared: Shared, story: str) -> None:
    LEGITIMATE[story](shared)
    assert shared.doors() == [("accepted", [])] * 3


UNDECLARED = '\n[rules]\ncomponent-undeclared = "error"\n'


def test_the_removal_of_a_declaration_alone_lands_with_a_warning(shared: Shared) -> None:
    shared.repo.policy(EMPTY)
    answer = shared.repo.check("--policy-from", "refs/remotes/origin/main", "refs/remotes/origin/main..HEAD")
    assert (answer.verdict, answer.rules) == ("accepted", ["component-undeclared"])
    # The next push finds nothing recorded on the protected side: this one was the moment to object.
    shared.repo.git("push", "-q", "--no-verify", "origin", "main")
    shared.repo.git("fetch", "-q", "origin")
    lose_a_function(shared)
    assert shared.doors() == [("accepted", [])] * 3


@pytest.mark.parametrize("brings", ["", '\n[rules]\ncomponent-undeclared = "off"\n'])
def test_a_policy_may_require_an_approval_for_it_and_the_push_cannot_take_that_back(
    tmp_path: Path, brings: str
) -> None:
    shared = Shared(tmp_path, POLICY + UNDECLARED)
    shared.repo.policy(EMPTY + brings)
    assert shared.doors() == [("rejected", ["component-undeclared"])] * 3
    shared.repo.stage({"patchgate.toml": POLICY + UNDECLARED})
    shared.repo.commit()
    shared.repo.stage({"patchgate.toml": EMPTY + brings})
    # The staged change is judged by the policy before it, too.
    assert shared.repo.check().errors == ["component-undeclared"]


def test_a_declaration_that_comes_back_is_compared_with_the_baseline_that_stayed(shared: Shared) -> None:
    shared.repo.policy(EMPTY)
    shared.repo.commit({TESTS: WEAK})
    for ref in ("origin", "."):
        shared.repo.git("push", "-q", "--no-verify", ref, "HEAD:refs/heads/main")
    shared.repo.git("fetch", "-q", "origin")
    shared.captured()
    shared.repo.policy(POLICY)
    assert shared.doors() == [("rejected", ["drift-tests-weakened"])] * 3


def test_a_merge_that_brings_the_steps_is_refused(shared: Shared) -> None:
    shared.repo.git("checkout", "-q", "-b", "side")
    LAUNDERED["the four commits of the finding"][0](shared)
    shared.repo.git("checkout", "-q", "main")
    shared.repo.commit({"README.md": "other\n"})
    shared.repo.git("merge", "-q", "--no-ff", "-m", "Join", "side")
    for verdict, errors in shared.doors():
        assert (verdict, "drift-tests-weakened" in errors) == ("rejected", True)


def test_of_several_refs_each_protected_one_is_compared(tmp_path: Path) -> None:
    tail = '\n[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    shared = Shared(tmp_path, POLICY + tail)
    shared.repo.policy("[policy]\n" + tail)
    lose_a_function(shared)
    shared.repo.policy(POLICY + tail)
    shared.captured()
    for refs in (["refs/heads/release/1"], ["refs/heads/topic", "refs/heads/release/1"], [MAIN]):
        report = shared.receive(*refs)
        refused = [change.source.ref for change in report.changes if change.verdict == "rejected"]
        assert refused == [refs[-1]]
    assert shared.receive("refs/heads/topic").verdict == "accepted"


def test_a_range_that_left_long_ago_is_compared_as_it_would_be_merged(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    repo = shared.repo
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"README.md": "other\n"})
    repo.git("checkout", "-q", "main")
    more = TEXT_OF_TESTS + "\n\ndef test_more() -> None:\n    assert shaping.side(4) == 2\n"
    repo.commit({TESTS: more})
    shared.captured()
    repo.git("push", "-q", "--no-verify", "origin", "main")
    repo.git("fetch", "-q", "origin")
    repo.git("checkout", "-q", "side")
    base = "refs/remotes/origin/main"
    # Nothing is lost that only the other side has.
    assert repo.check("--policy-from", base, f"{base}..HEAD").verdict == "accepted"
    LAUNDERED["the four commits of the finding"][0](shared)
    answer = repo.check("--policy-from", base, f"{base}..HEAD")
    assert (answer.verdict, "drift-tests-weakened" in answer.errors) == ("rejected", True)


def test_a_part_of_the_range_is_compared_with_the_same_revision(shared: Shared) -> None:
    LAUNDERED["the four commits of the finding"][0](shared)
    base = "refs/remotes/origin/main"
    for part in ("HEAD~1..HEAD", "HEAD", "HEAD~2..HEAD"):
        assert shared.repo.check("--policy-from", base, part).errors == ["drift-tests-weakened"]
    assert shared.repo.check("HEAD~1..HEAD").verdict == "accepted"
    shared.repo.commit({"README.md": "other\n"})
    assert shared.repo.check("--policy-from", base, "HEAD~1..HEAD").verdict == "accepted"


def test_an_approval_of_the_commit_that_loses_a_test_counts_for_the_push(shared: Shared) -> None:
    shared.repo.stage({TESTS: WEAK})
    lost = shared.captured()
    base = "refs/remotes/origin/main"
    refused = shared.repo.check("--policy-from", base, lost)
    assert [change["source"]["kind"] for change in refused.changes] == ["commit"]
    approve_here(shared.repo, statement_for(refused.change))
    shared.repo.commit({"README.md": "more\n"})
    assert shared.repo.check("--policy-from", base, f"{base}..HEAD").verdict == "accepted"
    # It allows what that commit does, and nothing else.
    shared.repo.commit({TESTS: WEAK + "\n"})
    assert shared.repo.check("--policy-from", base, f"{base}..HEAD").verdict == "rejected"


def test_a_forged_checksum_is_found_though_no_commit_was_asked(shared: Shared) -> None:
    text = (shared.repo.path / BASELINE).read_text(encoding="utf-8")
    forged = re.sub(r'"sha256": "[0-9a-f]{64}"', f'"sha256": "{"0" * 64}"', text, count=1)
    assert forged != text
    shared.repo.policy(EMPTY)
    shared.repo.commit({BASELINE: forged})
    shared.repo.policy(POLICY)
    assert shared.doors() == [("rejected", ["baseline-tampered"])] * 3


def test_a_loss_from_before_the_push_is_not_counted_again(shared: Shared) -> None:
    shared.repo.commit({TESTS: WEAK})
    shared.repo.git("push", "-q", "--no-verify", "origin", "main")
    shared.repo.git("fetch", "-q", "origin")
    shared.captured()
    shared.repo.commit({TESTS: WEAK + "\n\ndef test_new() -> None:\n    assert shaping.side(4) == 2\n"})
    shared.captured()
    assert shared.doors() == [("accepted", [])] * 3


def test_a_contract_broken_on_the_way_is_refused(shared: Shared) -> None:
    shared.repo.policy('[policy]\n[rules]\ncontract-invalid = "off"\n')
    shared.repo.git("rm", "-q", BASELINE)
    shared.repo.commit({CONTRACT: '{"component_id": "shaping"}\n', TESTS: OTHER})
    shared.repo.policy(POLICY + '[rules]\ncontract-invalid = "off"\n')
    shared.repo.policy(POLICY)
    for verdict, errors in shared.doors():
        assert (verdict, "contract-invalid" in errors) == ("rejected", True)


def test_without_components_no_trees_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Shared(tmp_path, EMPTY)
    shared.repo.commit({TESTS: WEAK})

    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("patchgate.components.push_tips.judge_cumulative", never)
    monkeypatch.setattr("patchgate.components.cumulative_drift.judge_cumulative", never)
    assert shared.doors() == [("accepted", [])] * 3


def test_the_refusal_says_what_was_compared_and_what_to_do(shared: Shared) -> None:
    LAUNDERED["the declaration does not come back"][0](shared)
    base = "refs/remotes/origin/main"
    said = shared.repo.cli("check", "--policy-from", base, f"{base}..HEAD").out
    assert f"compared with {shared.old[:12]}, " in said
    assert "all commits together" in said
    assert "push the removal" in said


@pytest.mark.parametrize("how", [["--ff-only"], ["--no-ff", "-m", "Join"]])
def test_a_local_merge_of_all_steps_is_refused_by_the_hooks(shared: Shared, how: list[str]) -> None:
    repo = shared.repo
    repo.install()
    repo.git("checkout", "-q", "-b", "side")
    LAUNDERED["the four commits of the finding"][0](shared)
    repo.git("checkout", "-q", "main")
    done = repo.try_git("merge", "-q", *how, "side")
    assert done.returncode != 0
    assert b"drift-tests-weakened" in done.stderr
    assert repo.ask("rev-parse", "main") == shared.old
    # A branch that nobody protects gets them all the same.
    repo.git("reset", "-q", "--merge")
    repo.git("checkout", "-q", "-b", "other", "main")
    repo.git("merge", "-q", *how, "side")
