"""`baseline status`, and what is said of the components of a branch that is pushed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import jsonschema
import pytest

from patchgate.git.objects import Objects
from patchgate.git.repository import open_repository
from patchgate.git.tree_paths import TreePaths
from patchgate.operations.judge.policies import Policies
from patchgate.operations.judge.receives import judge_receive
from patchgate.operations.judge.standing import alike
from patchgate.operations.land.at_push import judge_push
from patchgate.operations.tell.baselines import baselines_of_head, text
from patchgate.operations.tell.baselines_document import json_schema
from patchgate.verdict.verdict import ChangeVerdict, Report
from tests.operations.component_world import Componented, componented, contract_of

TEN = "[baselines]\nstaleness_window_days = 10\n"
STRICT = "[baselines]\nstaleness_window_days = 10\nrequire_fresh = true\n"
ZERO = "0" * 40
CONTRACT = "contracts/a/interface.json"
CODE = "src/a/__init__.py"


def found(repo: Componented, day: float = 0) -> dict[str, list[str]]:
    """The rules that are raised about each component, looked at twice: what is remembered says the same."""
    first = baselines_of_head(repo.opened, repo.at_day(day))
    assert baselines_of_head(repo.opened, repo.at_day(day)) == first
    return {each.standing.component.id: [one.rule for one in each.findings] for each in first.components}


def test_status_tells_drift_by_rule_and_ends_with_1_where_it_is_an_error(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b")
    assert found(repo) == {"a": [], "b": []}
    repo.on(1, {CODE: "def run(text):\n    return str(text)\n"})
    assert found(repo, 1)["a"] == ["drift-implementation"]
    assert repo.cli("baseline", "status").code == 0
    repo.on(2, {CONTRACT: contract_of("a", version="2.0")})
    assert "drift-contract-without-tests" in found(repo, 2)["a"]
    answer = repo.cli("baseline", "status")
    assert answer.code == 1
    assert "error[drift-contract-without-tests]" in answer.out


def test_a_level_of_the_config_counts_in_status(tmp_path: Path) -> None:
    rules = '[rules]\ndrift-contract-without-tests = "note"\ndrift-version = "off"\nbaseline-stale = "off"\n'
    repo = componented(tmp_path, "a", more=rules)
    repo.on(1, {CONTRACT: contract_of("a", description="Another text.")})
    assert found(repo, 1)["a"] == ["drift-contract-without-tests"]
    assert repo.cli("baseline", "status").code == 0


def test_status_reads_head_and_not_the_working_tree_nor_the_index(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    repo.stage({CODE: "x = 1\n", "patchgate.toml": "not a config"})
    (repo.path / CONTRACT).unlink()
    assert found(repo) == {"a": []}


def test_a_mode_of_a_file_is_drift(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    assert found(repo) == {"a": []}
    repo.git("update-index", "--chmod=+x", CODE)
    repo.git("commit", "-q", "-m", "Mode")
    assert found(repo)["a"] == ["drift-implementation"]


def test_another_declaration_is_not_taken_for_what_was_equal(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    wide = repo.declare("a")
    narrow = wide.replace('["src/a/**"]', '["src/a/*.py"]')
    repo.on(0, {"patchgate.toml": narrow, "src/a/notes.txt": "text\n"})
    assert found(repo) == {"a": []}
    # The folders are the same, and so is everything in them.
    repo.on(0, {"patchgate.toml": wide})
    assert found(repo)["a"] == ["drift-implementation"]


def test_what_drifted_without_a_finding_is_not_taken_for_equal(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    raised = {
        CONTRACT: contract_of("a", version="2.0"),
        "tests/a/test_more.py": "def test_x():\n    assert 1\n",
    }
    repo.on(1, raised)
    assert found(repo, 1) == {"a": []}
    for _ in range(2):
        (told,) = baselines_of_head(repo.opened, repo.at_day(1)).components
        assert told.standing.has_drifted


def test_another_baseline_is_not_taken_for_what_was_equal(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    assert found(repo) == {"a": []}
    place = repo.path / ".patchgate/baselines/a.json"
    place.write_text(place.read_text().replace('"100644"', '"100755"', 1))
    repo.on(0, {})
    assert found(repo)["a"] != []


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 100, b"0" * 64 + b"\n{}", b"\n"])
def test_a_damaged_cache_is_no_cache(tmp_path: Path, damage: bytes) -> None:
    repo = componented(tmp_path, "a")
    found(repo)
    cache = repo.path / ".git/patchgate/components"
    good = cache.read_bytes()
    for written in (damage, good[:-1], good.replace(b'"equal"', b'"EQUAL"'), good + b" "):
        cache.write_bytes(written)
        repo.git("commit", "-q", "--allow-empty", "-m", "More")
        assert found(repo) == {"a": []}
        assert cache.read_bytes() != written


def test_what_is_remembered_spares_the_files_of_a_component(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b")
    assert found(repo) == {"a": [], "b": []}
    baseline = repo.ask("rev-parse", "HEAD:.patchgate/baselines/a.json")
    (repo.path / ".git/objects" / baseline[:2] / baseline[2:]).unlink()
    # It is not even read: ids of objects tell that it is what it was.
    assert found(repo) == {"a": [], "b": []}
    (repo.path / ".git/patchgate/components").unlink()
    answer = repo.cli("baseline", "status")
    assert (answer.code, "Traceback" in answer.err) == (3, False)


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    (repo.path / ".git/patchgate").write_text("in the way")
    assert found(repo) == {"a": []}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_remembered_is_what_would_be_found(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    names = ["a", "b", "c"]
    repo = componented(tmp_path, *names)
    cache = repo.path / ".git/patchgate/components"
    for day in range(12):
        name = random.choice(names)
        place = f"src/{name}/{random.choice('xyz')}.py"
        match random.randrange(7):
            case 0 | 1:
                repo.write(place, f"x = {random.random()}\n", executable=random.random() < 0.3)
            case 2:
                (repo.path / place).unlink(missing_ok=True)
            case 3:
                repo.write(f"contracts/{name}/interface.json", contract_of(name, random.choice(names)))
            case 4:
                for path, content in repo.captured(name).items():
                    repo.write(path, content)
            case 5:
                repo.write("patchgate.toml", repo.declare(*random.sample(names, random.randint(1, 3))))
            case 6:
                (repo.path / f".patchgate/baselines/{name}.json").unlink(missing_ok=True)
        repo.on(day, {})
        now = repo.at_day(random.randrange(150))
        remembered = baselines_of_head(repo.opened, now)
        cache.rename(cache.with_suffix(".aside"))
        assert baselines_of_head(repo.opened, now) == remembered
        # Sometimes what is remembered is of long ago, sometimes of just now.
        if random.random() < 0.5 or not cache.exists():
            cache.with_suffix(".aside").rename(cache)


def test_hashes_and_dates_are_told_to_programs(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b")
    answer = repo.cli("baseline", "status", "--format", "json")
    jsonschema.validate(answer.report, json_schema())
    first, second = answer.report["components"]
    assert [first["id"], second["id"]] == ["a", "b"]
    assert second["dependencies"] == ["a"]
    assert first["staleness"] == "stale"
    assert first["verified_by"] == "commit"
    assert first["verified_commit"] == repo.ask("rev-parse", "HEAD")
    assert len({first["contract_hash"], first["test_hash"], first["impl_hash"]}) == 3
    # A name of the implementation is not in its hash alone: the other's differs by its paths.
    assert first["impl_hash"] != second["impl_hash"]
    # What is remembered says the same, and hashes are those of the baseline, not of what drifted.
    repo.on(0, {CODE: "x = 1\n"})
    again = repo.cli("baseline", "status", "--format", "json").report["components"][0]
    assert again["impl_hash"] == first["impl_hash"]
    assert (first["drifted"], again["drifted"]) == (False, True)


def test_every_finding_and_state_fits_the_schema(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b")
    repo.on(1, {"patchgate.toml": repo.declare("a", "b", "c"), **repo.component("c", "a")})
    repo.on(1, {".patchgate/baselines/b.json": "{}\n", ".patchgate/baselines/old.json": "{}\n"})
    answer = repo.cli("baseline", "status", "--format", "json")
    jsonschema.validate(answer.report, json_schema())
    assert answer.code == 1
    assert answer.report["strays"] == [".patchgate/baselines/old.json"]
    states = {each["id"]: each["staleness"] for each in answer.report["components"]}
    assert states == {"a": "stale", "b": "stale", "c": None}


def test_baselines_without_a_component_are_named_safely(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    repo.on(0, {".patchgate/baselines/\x1b[31mred.json": "{}\n", ".patchgate/baselines/x": "\n"})
    lines = text(baselines_of_head(repo.opened, repo.at_day(0)))
    named = [line for line in lines if "no component" in line]
    assert len(named) == 2
    assert not any("\x1b" in line for line in lines)


def test_a_repository_without_components_or_commits_says_so(tmp_path: Path) -> None:
    repo = componented(tmp_path / "one")
    answer = repo.cli("baseline", "status")
    assert (answer.code, answer.out.startswith("no component is declared")) == (0, True)
    empty = Componented(tmp_path / "two", repo.env)
    empty.path.mkdir()
    empty.git("init", "-q")
    assert empty.cli("baseline", "status").code == 2
    repo.on(0, {"patchgate.toml": "what is this"})
    assert repo.cli("baseline", "status").code == 2


def test_a_bare_repository_has_a_status(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare"))
    answer = Componented(tmp_path / "bare", repo.env).cli("baseline", "status", "--format", "json")
    assert [each["drifted"] for each in answer.report["components"]] == [False]


class Pushed:
    """A repository and its server, which has what was there when this was made."""

    def __init__(self, folder: Path, *names: str, more: str = TEN) -> None:
        self.repo = componented(folder, *names, more=more)
        self.server = Componented(folder / "server.git", self.repo.env)
        self.repo.git("clone", "-q", "--bare", str(self.repo.path), str(self.server.path))
        self.repo.git("remote", "add", "origin", str(self.server.path))
        self.repo.git("fetch", "-q", "origin")
        self.repo.git("remote", "set-head", "origin", "main")
        self.old = self.repo.ask("rev-parse", "HEAD")

    def line(self, ref: str, tip: str, old: str) -> str:
        """What git tells pre-push of one ref."""
        return f"{ref} {tip} {ref} {old}\n"

    def push(self, day: float, ref: str = "refs/heads/main", old: str | None = None) -> Report:
        """Judge what pre-push would, on a day."""
        head = self.repo.ask("rev-parse", "HEAD")
        lines = self.line(ref, head, self.old if old is None else old).encode()
        return judge_push(self.repo.opened, "origin", str(self.server.path), lines, self.repo.at_day(day))

    def receive(self, day: float, *more: str) -> Report:
        """Judge what pre-receive would, on a day."""
        refs = ["HEAD:refs/staging/new", *more]
        self.repo.git("push", "-q", str(self.server.path), *refs)
        head = self.repo.ask("rev-parse", "HEAD")
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
    assert [(each.gate, each.outcome.value) for each in change.circumstances] == [("staleness", "pass")]


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
    from patchgate.operations.judge.verifications import VERIFIED_REF, Verification

    pushed = Pushed(tmp_path, "a", more=STRICT)
    repo = pushed.repo
    repo.on(5, {"README": "text\n"})
    oid = repo.ask("rev-parse", "HEAD:.patchgate/baselines/a.json")
    line = Verification("a", oid, int(repo.at_day(20)), {}, "note").to_line().decode().rstrip("\n")
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
    contract, tests = contract_of("a", version="2.0"), "tests/a/test_a.py"
    text = repo.ask("show", f"HEAD:{tests}") + "\n"
    repo.git("checkout", "-q", "-b", "side")
    repo.on(1, {CONTRACT: contract, tests: text.replace("def test_run", "def run")})
    repo.git("checkout", "-q", "main")
    repo.on(1, {CONTRACT: contract, tests: f"import os\n\n\n{text}"})
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


def test_what_was_so_before_a_push_does_not_refuse_it(tmp_path: Path) -> None:
    pushed = Pushed(tmp_path, "a")
    repo = pushed.repo
    pushed.old = repo.on(1, {CONTRACT: contract_of("a", version="2.0")})
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
    assert any("before this push" in note for note in change.findings[0].notes)


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
        policies = Policies(objects)
        new, old = (policies.at(policies.key(tree)).policy for tree in trees)
        assert new is not None
        assert old is not None
        known = old.config.components
        assert alike(TreePaths(objects), trees[0], trees[1], new, known) == set()
        assert alike(TreePaths(objects), trees[0], trees[1], old, known) == {"a"}
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


def test_the_schema_is_printed(tmp_path: Path) -> None:
    repo = componented(tmp_path)
    answer = repo.cli("schema", "baselines")
    assert json.loads(answer.out) == json_schema()
