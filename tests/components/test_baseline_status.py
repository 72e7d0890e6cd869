"""`baseline status`: drift and staleness of what HEAD declares, and what is remembered of it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from patchgate.components.baseline_status import baselines_of_head, status_text
from patchgate.components.component_output import baselines_schema
from tests.component_world import contract, files
from tests.components.dated_components import Componented, componented
from tests.schemas import require_valid

pytestmark = pytest.mark.turns(3)

CONTRACT = "contracts/a/interface.json"
CODE = "src/a/__init__.py"


def found(repo: Componented, day: float = 0) -> dict[str, list[str]]:
    """The rules that are raised about each component, looked at twice: what is remembered says the same."""
    first = baselines_of_head(repo.opened, repo.at_day(day))
    assert baselines_of_head(repo.opened, repo.at_day(day)) == first
    return {each.status.component.id: [one.rule for one in each.findings] for each in first.components}


def test_status_tells_drift_by_rule_and_ends_with_1_where_it_is_an_error(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", "b")
    assert found(repo) == {"a": [], "b": []}
    repo.on(1, {CODE: "def run(text):\n    return str(text)\n"})
    assert found(repo, 1)["a"] == ["drift-implementation"]
    assert repo.cli("baseline", "status").code == 0
    repo.on(2, {CONTRACT: contract("a", version="2.0")})
    assert "drift-contract-without-tests" in found(repo, 2)["a"]
    answer = repo.cli("baseline", "status")
    assert answer.code == 1
    assert "error[drift-contract-without-tests]" in answer.out


def test_a_level_of_the_config_counts_in_status(tmp_path: Path) -> None:
    rules = '[rules]\ndrift-contract-without-tests = "note"\ndrift-version = "off"\nbaseline-stale = "off"\n'
    repo = componented(tmp_path, "a", more=rules)
    repo.on(1, {CONTRACT: contract("a", description="Another text.")})
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


@pytest.mark.parametrize(("folder", "rule"), [("src/a", "drift-implementation"), ("tests/a", "drift-tests")])
def test_another_declaration_is_not_taken_for_what_was_equal(tmp_path: Path, folder: str, rule: str) -> None:
    repo = componented(tmp_path, "a")
    wide = repo.declare("a")
    narrow = wide.replace(f'["{folder}/**"]', f'["{folder}/*.py"]')
    repo.on(0, {"patchgate.toml": narrow, f"{folder}/notes.txt": "text\n"})
    assert found(repo) == {"a": []}
    # The folders are the same, and so is everything in them.
    repo.on(0, {"patchgate.toml": wide})
    assert found(repo)["a"] == [rule]


def test_what_drifted_without_a_finding_is_not_taken_for_equal(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a", more='[rules]\ndrift-all = "off"\n')
    raised = {
        CONTRACT: contract("a", version="2.0"),
        "tests/a/test_more.py": "def test_x():\n    assert 1\n",
    }
    repo.on(1, raised)
    assert found(repo, 1) == {"a": []}
    for _ in range(2):
        (told,) = baselines_of_head(repo.opened, repo.at_day(1)).components
        assert told.status.has_drifted


def test_what_drifted_is_never_called_fresh(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    assert status_text(baselines_of_head(repo.opened, repo.at_day(0)))[0].startswith(
        "a: no drift; fresh, verified"
    )
    repo.on(0, {CODE: "x = 1\n"})
    first = status_text(baselines_of_head(repo.opened, repo.at_day(0)))[0]
    assert first.startswith("a: drifted; verified today (commit ")
    assert status_text(baselines_of_head(repo.opened, repo.at_day(200)))[0].startswith(
        "a: drifted; stale, verified"
    )


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
    cache = repo.path / ".git/patchgate/contracts/standing"
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
    (repo.path / ".git/patchgate/contracts/standing").unlink()
    answer = repo.cli("baseline", "status")
    assert (answer.code, "Traceback" in answer.err) == (3, False)


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    (repo.path / ".git/patchgate").write_text("in the way")
    assert found(repo) == {"a": []}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("seed", range(4))
def test_what_is_remembered_is_what_would_be_found(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    names = ["a", "b", "c"]
    repo = componented(tmp_path, *names)
    cache = repo.path / ".git/patchgate/contracts/standing"
    for day in range(12):
        name = random.choice(names)
        place = f"src/{name}/{random.choice('xyz')}.py"
        match random.randrange(7):
            case 0 | 1:
                repo.write(place, f"x = {random.random()}\n", executable=random.random() < 0.3)
            case 2:
                (repo.path / place).unlink(missing_ok=True)
            case 3:
                repo.write(f"contracts/{name}/interface.json", contract(name, random.choice(names)))
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
    require_valid(answer.report, baselines_schema())
    first, second = answer.report["components"]
    assert [first["id"], second["id"]] == ["a", "b"]
    assert second["dependencies"] == ["a"]
    assert first["staleness"] == "stale"
    assert first["verified_source"] == "commit"
    assert first["verified_commit"] == repo.head()
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
    repo.on(1, {"patchgate.toml": repo.declare("a", "b", "c"), **files("c", "a")})
    repo.on(1, {".patchgate/baselines/b.json": "{}\n", ".patchgate/baselines/old.json": "{}\n"})
    answer = repo.cli("baseline", "status", "--format", "json")
    require_valid(answer.report, baselines_schema())
    assert answer.code == 1
    assert answer.report["orphans"] == [".patchgate/baselines/old.json"]
    states = {each["id"]: each["staleness"] for each in answer.report["components"]}
    assert states == {"a": "stale", "b": "stale", "c": None}


def test_baselines_without_a_component_are_named_safely(tmp_path: Path) -> None:
    repo = componented(tmp_path, "a")
    repo.on(0, {".patchgate/baselines/\x1b[31mred.json": "{}\n", ".patchgate/baselines/x": "\n"})
    lines = status_text(baselines_of_head(repo.opened, repo.at_day(0)))
    named = [line for line in lines if "no declared component" in line]
    assert len(named) == 2
    assert not any("\x1b" in line for line in lines)


def test_a_repository_without_components_or_commits_says_so(tmp_path: Path) -> None:
    repo = componented(tmp_path / "one")
    answer = repo.cli("baseline", "status")
    assert (answer.code, answer.out.startswith("no component ")) == (0, True)
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


def test_the_schema_is_printed(tmp_path: Path) -> None:
    repo = componented(tmp_path)
    answer = repo.cli("schema", "baselines")
    assert json.loads(answer.out) == baselines_schema()
