"""What is said of the components of a branch that is pushed, of its tip and not of a commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from patchgate.components import push_tips
from patchgate.components.attestations import VERIFIED_REF, Attestation
from patchgate.components.baseline_status import unchanged_components
from patchgate.git.objects import Objects
from patchgate.git.repository import open_repository
from patchgate.git.tree_view import TreePaths
from patchgate.hooks.pre_push import judge_push
from patchgate.hooks.pre_receive import judge_receive
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.verdict import ChangeVerdict, Report
from tests.approvals.test_owner_attacks import commit_of
from tests.component_world import contract
from tests.components.dated_components import Componented, componented

pytestmark = pytest.mark.turns(3)

TEN = "[baselines]\nstaleness_window_days = 10\n"
STRICT = "[baselines]\nstaleness_window_days = 10\nrequire_fresh = true\n"
ZERO = "0" * 40
CONTRACT = "contracts/a/interface.json"
CODE = "src/a/__init__.py"


class Pushed:
    """A repository and its server, which has what was there when this was made."""

    def __init__(self, folder: Path, *names: str, more: str = TEN) -> None:
        self.repo = componented(folder, *names, more=more)
        self.server = Componented(folder / "server.git", self.repo.env)
        self.repo.git("clone", "-q", "--bare", str(self.repo.path), str(self.server.path))
        self.repo.git("remote", "add", "origin", str(self.server.path))
        self.repo.git("fetch", "-q", "origin")
        self.repo.git("remote", "set-head", "origin", "main")
        self.old = self.repo.head()

    def line(self, ref: str, tip: str, old: str) -> str:
        """What git tells pre-push of one ref."""
        return f"{ref} {tip} {ref} {old}\n"

    def push(self, day: float, ref: str = "refs/heads/main", old: str | None = None) -> Report:
        """Judge what pre-push would, on a day."""
        head = self.repo.head()
        lines = self.line(ref, head, self.old if old is None else old).encode()
        return judge_push(self.repo.opened, "origin", str(self.server.path), lines, self.repo.at_day(day))

    def receive(self, day: float, *more: str) -> Report:
        """Judge what pre-receive would, on a day."""
        refs = ["HEAD:refs/staging/new", *more]
        self.repo.git("push", "-q", str(self.server.path), *refs)
        head = self.repo.head()
        lines = f"{self.old} {head} refs/heads/main\n".encode()
        opened = open_repository(self.repo.env, str(self.server.path))
        return judge_receive(opened, lines, self.repo.at_day(day))


def of_ref(report: Report) -> ChangeVerdict | None:
    """What is said of the one ref itself."""
    refs = [change for change in report.changes if change.source.kind == "ref"]
    assert len(refs) <= 1
    return refs[0] if refs else None


def rules_of(change: ChangeVerdict | None) -> Sequence[tuple[str, str]]:
    return [] if change is None else [(each.rule, each.level.value) for each in change.findings]


def test_a_stale_component_is_told_at_the_push_as_a_circumstance(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    pushed.repo.on(5, {"README": "text\n"})
    assert of_ref(pushed.push(10)) is None
    report = pushed.push(11)
    change = of_ref(report)
    assert rules_of(change) == [("baseline-stale", "warning")]
    assert report.verdict == "accepted"
    assert change is not None
    assert [(each.gate, each.outcome.value) for each in change.context_gates] == [("staleness", "pass")]


def test_what_is_not_fresh_refuses_a_push_where_that_is_required(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a", "b", more=STRICT)
    pushed.repo.on(5, {"README": "text\n"})
    assert pushed.push(10).verdict == "accepted"
    report = pushed.push(11)
    assert report.verdict == "rejected"
    assert rules_of(of_ref(report)) == [("baseline-stale", "error")] * 2
    assert pushed.receive(11).verdict == "rejected"
    assert pushed.receive(10).verdict == "accepted"


def test_a_push_cannot_take_back_that_freshness_is_required(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a", more=STRICT)
    pushed.repo.on(5, {"patchgate.toml": pushed.repo.declare("a", more=TEN)})
    assert rules_of(of_ref(pushed.push(11))) == [("baseline-stale", "error")]


def test_a_component_that_ages_is_told_at_the_push(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a", "b")
    pushed.repo.on(1, {CODE: "def run(text):\n    return str(text)\n"})
    report = pushed.push(2)
    # The drift of a is told of the commit, and not a second time.
    assert rules_of(of_ref(report)) == [("baseline-aging", "warning")]
    assert [each.rule for change in report.changes for each in change.findings] == [
        "baseline-aging",
        "drift-implementation",
    ]


def test_pre_receive_takes_a_note_that_comes_with_the_push(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a", more=STRICT)
    repo = pushed.repo
    repo.on(5, {"README": "text\n"})
    oid = repo.ask("rev-parse", "HEAD:.patchgate/baselines/a.json")
    line = Attestation("a", oid, int(repo.at_day(20)), {}, "note").to_line().decode().rstrip("\n")
    repo.git("notes", f"--ref={VERIFIED_REF}", "add", "-m", line, oid)
    assert pushed.push(21).verdict == "accepted"
    assert pushed.receive(21).verdict == "rejected"
    assert pushed.receive(21, f"{VERIFIED_REF}:{VERIFIED_REF}").verdict == "accepted"


def test_a_merge_whose_sides_are_well_and_that_drifts_is_told_of_the_tip(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    repo = pushed.repo
    repo.git("checkout", "-q", "-b", "side")
    # On this side the file is nobody's; on the other one it would be the component's, and is not there.
    repo.on(1, {"src/more.py": "x = 1\n"})
    repo.git("checkout", "-q", "main")
    config = repo.declare("a", more=TEN).replace('["src/a/**"]', '["src/a/**", "src/*.py"]')
    repo.on(1, {"patchgate.toml": config})
    assert of_ref(pushed.push(1)) is None
    repo.git("merge", "-q", "-m", "Join", "side")
    report = pushed.push(2)
    assert rules_of(of_ref(report)) == [("drift-implementation", "warning")]
    told = [
        change.source.kind for change in report.changes for each in change.findings if "drift" in each.rule
    ]
    assert told == ["ref"]


def test_an_error_of_the_tip_is_told_though_a_commit_of_the_push_warned_of_the_same(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    repo = pushed.repo
    raised, tests = contract("a", version="2.0", description="More."), "tests/a/test_a.py"
    text = repo.ask("show", f"HEAD:{tests}") + "\n"
    repo.git("checkout", "-q", "-b", "side")
    repo.on(1, {CONTRACT: raised, tests: text.replace("def test_side", "def side")})
    repo.git("checkout", "-q", "main")
    repo.on(1, {CONTRACT: raised, tests: f"import os\n\n\n{text}"})
    repo.on(1, repo.captured("a"))
    repo.git("merge", "-q", "-m", "Join", "side")
    report = pushed.push(2)
    levels = [
        (change.source.kind, each.level.value)
        for change in report.changes
        for each in change.findings
        if each.rule == "drift-tests-weakened"
    ]
    assert sorted(levels) == [("commit", "warning"), ("ref", "error")]
    assert report.verdict == "rejected"


def circle(folder: Path) -> Pushed:
    """Merge two good branches that make a circle of contracts together; nothing of them is pushed."""
    pushed = Pushed(folder, "a", "b")
    repo = pushed.repo
    none = {name: contract(name, version="2.0") for name in ("a", "b")}
    test = {name: repo.ask("show", f"HEAD:tests/{name}/test_{name}.py") + "\n\n\nx = 1\n" for name in "ab"}
    # b depends on a from the start; here a comes to depend on b, there b no longer does.
    repo.on(1, {"contracts/b/interface.json": none["b"], "tests/b/test_b.py": test["b"]})
    pushed.old = repo.on(1, repo.captured("a", "b"))
    repo.git("push", "-q", "--no-verify", "origin", "main")
    repo.git("fetch", "-q", "origin")
    repo.git("checkout", "-q", "-b", "side")
    back = contract("b", "a", version="3.0")
    repo.on(2, {"contracts/b/interface.json": back, "tests/b/test_b.py": test["b"] + "y = 2\n"})
    repo.on(2, repo.captured("b"))
    repo.git("checkout", "-q", "main")
    there = contract("a", "b", version="2.0")
    repo.on(2, {CONTRACT: there, "tests/a/test_a.py": test["a"]})
    repo.on(2, repo.captured("a"))
    assert pushed.push(3).verdict == "accepted"
    repo.git("merge", "-q", "-m", "Join", "side")
    return pushed


def test_a_circle_that_two_good_branches_make_together_is_told_of_the_tip(tmp_path: Path) -> None:
    report = circle(tmp_path).push(3)
    change = of_ref(report)
    assert rules_of(change)[0] == ("dependency-cycle", "error")
    assert change is not None
    assert [gate.gate for gate in change.gates if gate.outcome.value == "fail"] == ["contracts"]
    assert report.verdict == "rejected"


def test_one_commit_that_many_branches_get_is_examined_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = Pushed(tmp_path, "a")
    head = pushed.repo.on(1, {CONTRACT: contract("a", version="2.0")})
    examined: list[str] = []
    real = push_tips._examine_tip

    def counting(objects: Objects, tip: Any, *rest: Any, **named: Any) -> Any:
        examined.append(tip.update.ref)
        return real(objects, tip, *rest, **named)

    monkeypatch.setattr(push_tips, "_examine_tip", counting)
    refs = [f"refs/heads/{name}" for name in ("x", "y", "z")]
    lines = "".join(pushed.line(ref, head, ZERO) for ref in refs).encode()
    report = judge_push(pushed.repo.opened, "origin", str(pushed.server.path), lines, pushed.repo.at_day(30))
    told = {each.source.ref or "": rules_of(each) for each in report.changes if each.source.kind == "ref"}
    assert (examined, sorted(told)) == (refs[:1], refs)
    assert len(set(map(tuple, told.values()))) == 1


def test_one_note_of_a_baseline_is_read_once_for_all_branches_and_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = Pushed(tmp_path, "a")
    repo = pushed.repo
    oid = repo.ask("rev-parse", "HEAD:.patchgate/baselines/a.json")
    old = commit_of(repo, None, {oid: "junk\n"})
    new = commit_of(repo, old, {f"{oid[:2]}/{oid[2:]}": "junk\n"})
    pushed.server.git("fetch", "-q", str(repo.path), f"{old}:{VERIFIED_REF}", f"{new}:refs/staging/notes")
    lines = f"{old} {new} {VERIFIED_REF}\n"
    for number in range(3):
        head = repo.on(1, {"README": f"{number}\n"})
        repo.git("push", "-q", str(pushed.server.path), f"HEAD:refs/staging/x{number}")
        lines += f"{ZERO} {head} refs/heads/x{number}\n"
    read: list[str] = []
    real = Objects.read

    def counted(self: Objects, oid: str, *rest: Any, **named: Any) -> bytes:
        read.append(oid)
        return real(self, oid, *rest, **named)

    monkeypatch.setattr(Objects, "read", counted)
    judge_receive(open_repository(repo.env, str(pushed.server.path)), lines.encode(), repo.at_day(11))
    assert read.count(repo.ask("rev-parse", f"{old}:{oid}")) == 1


def test_what_was_so_before_a_push_does_not_refuse_it(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    repo = pushed.repo
    pushed.old = repo.on(1, {CONTRACT: contract("a", version="2.0")})
    repo.git("push", "-q", "--no-verify", "origin", "main")
    repo.git("fetch", "-q", "origin")
    repo.on(2, {"README": "text\n"})
    assert of_ref(pushed.push(3)) is None
    # A line from before it, which a merge brings: no commit of the push is told of the contract, the tip is.
    repo.git("checkout", "-q", "-b", "side", "HEAD~2")
    repo.on(2, {"src/a/more.py": "x = 1\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "-m", "Join", "side")
    report = pushed.push(3)
    change = of_ref(report)
    assert rules_of(change) == [("drift-contract-without-tests", "warning")]
    assert change is not None
    assert any("before" in note for note in change.findings[0].notes)


def test_a_server_looks_at_the_components_that_a_push_touches(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a", "b")
    pushed.repo.on(1, {"src/b/__init__.py": "x = 1\n"})
    baseline = pushed.server.ask("rev-parse", "HEAD:.patchgate/baselines/a.json")
    report = pushed.receive(11)
    assert rules_of(of_ref(report)) == [("baseline-stale", "warning")] * 2
    # What is as it was is not even read; what differs is, and nothing is written.
    (pushed.server.path / "objects" / baseline[:2] / baseline[2:]).unlink()
    assert rules_of(of_ref(pushed.receive(11))) == [("baseline-stale", "warning")] * 2
    assert not (pushed.server.path / "patchgate").exists()
    pushed.repo.on(2, {CODE: "x = 1\n"})
    change = of_ref(pushed.receive(11))
    assert change is not None
    assert change.verdict == "undecided"


def test_a_server_looks_at_what_is_declared_otherwise(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    repo = pushed.repo
    wide = repo.declare("a", more=TEN)
    narrow = wide.replace('["src/a/**"]', '["src/a/*.py"]')
    pushed.old = repo.on(1, {"patchgate.toml": narrow, "src/a/notes.txt": "text\n"})
    repo.git("push", "-q", "--no-verify", "origin", "main")
    repo.git("checkout", "-q", "-b", "side")
    repo.on(1, {"patchgate.toml": wide})
    repo.git("checkout", "-q", "main")
    repo.on(1, {"README": "text\n"})
    repo.git("merge", "-q", "-m", "Join", "side")
    with Objects(repo.opened) as objects:
        trees = [repo.ask("rev-parse", f"{each}^{{tree}}") for each in ("HEAD", pushed.old)]
        policies = TreePolicies(objects)
        new, old = (policies.at(policies.key(tree)).policy for tree in trees)
        assert new is not None
        assert old is not None
        known = old.config.components
        assert unchanged_components(TreePaths(objects), trees[0], trees[1], new, known) == set()
        assert unchanged_components(TreePaths(objects), trees[0], trees[1], old, known) == {"a"}
    told = [each.rule for change in pushed.receive(2).changes for each in change.findings]
    assert "drift-implementation" in told


def test_many_findings_at_a_push_are_counted(tmp_path: Path) -> None:
    names = [f"c{number:02}" for number in range(30)]
    pushed = Pushed(tmp_path, *names)
    pushed.repo.on(5, {"README": "text\n"})
    change = of_ref(pushed.push(40))
    assert change is not None
    assert len(change.findings) == 21
    assert change.findings[-1].message.startswith("and 10 more")


def test_tags_notes_and_deletions_say_nothing_of_components(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    pushed.repo.on(5, {"README": "text\n"})
    assert of_ref(pushed.push(40, "refs/tags/v1", ZERO)) is None
    line = f"(delete) {ZERO} refs/heads/topic {pushed.old}\n".encode()
    opened = pushed.repo.opened
    assert judge_push(opened, "origin", str(pushed.server.path), line, pushed.repo.at_day(40)).changes == ()


def test_a_tip_that_cannot_be_read_is_undecided(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a", "b")
    repo = pushed.repo
    repo.on(5, {CODE: "def run(text):\n    return str(text)\n"})
    baseline = repo.ask("rev-parse", "HEAD:.patchgate/baselines/a.json")
    (repo.path / ".git/objects" / baseline[:2] / baseline[2:]).unlink()
    report = pushed.push(6)
    change = of_ref(report)
    assert change is not None
    assert change.verdict == "undecided"


def test_a_real_push_shows_what_is_stale(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    pushed.repo.install()
    pushed.repo.git("commit", "-q", "--allow-empty", "-m", "Add nothing")
    done = pushed.repo.try_git("push", "origin", "main")
    assert done.returncode == 0
    assert b"baseline-stale" in done.stderr + done.stdout
