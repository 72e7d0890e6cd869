"""`component validate`: what it asks of which contents, and that the hook finds the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.components.validate import validate
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.repository import BIG_FILE
from patchgate.report.verdict import Verdict
from tests.component_world import contract, declared, opened
from tests.components.contract_desk import BASE, MID, world
from tests.world import Repo


def found_by(repo: Repo, *ids: str, everything: bool = False, fail_fast: bool = False) -> list[str]:
    (verdict,) = validate(opened(repo), ids, everything=everything, fail_fast=fail_fast).report.changes
    return [finding.rule for finding in verdict.findings]


def test_the_verb_judges_the_index_by_its_own_policy(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.write(MID, contract("mid", "bose"))
    assert found_by(repo, everything=True) == []
    repo.git("add", "-A")
    assert (
        found_by(repo) == found_by(repo, "mid") == found_by(repo, everything=True) == ["dependency-unknown"]
    )
    assert found_by(repo, "base") == []
    repo.write(
        "patchgate.toml",
        declared("base", "mid", "top") + '[rules]\ndependency-unknown = "error"\n',
    )
    repo.git("add", "-A")
    report = validate(opened(repo), [], everything=True).report
    assert report.verdict is Verdict.REJECTED
    assert report.changes[0].policy.origin == "index:patchgate.toml"
    assert report.changes[0].change.after == repo.ask("write-tree")


def test_fail_fast_ends_with_the_first_error_and_not_with_a_warning(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.stage(
        {
            BASE: contract("base", "bose", external_dependencies=["not.here", "nor.here"]),
            MID: "{",
        }
    )
    assert found_by(repo, everything=True, fail_fast=True) == ["dependency-unknown", "external-missing"]
    assert len(found_by(repo, everything=True)) >= 4


def asked_by_both(repo: Repo) -> list[str]:
    """Ask the verb what is staged; the hook finds the same."""
    found = sorted(found_by(repo))
    assert found == sorted(each["rule"] for each in repo.check().findings if each["stage"] == "contracts")
    return found


@pytest.mark.parametrize("before", ["", "[rules]\nno-such-rule = true\n"])
def test_the_verb_asks_what_a_staged_declaration_alone_changes(tmp_path: Path, before: str) -> None:
    repo = world(tmp_path)
    good = (repo.path / "patchgate.toml").read_text()
    repo.commit({BASE: contract("base", external_dependencies=["not.here"])})
    repo.policy(before)
    repo.stage({"patchgate.toml": good})
    assert found_by(repo) == ["external-missing"]
    if not before:
        assert asked_by_both(repo) == ["external-missing"]


def test_the_verb_asks_only_those_that_are_declared_otherwise_and_what_needs_them(tmp_path: Path) -> None:
    repo = world(tmp_path)
    missing = contract("base", external_dependencies=["not.here"])
    repo.commit({BASE: missing, MID: contract("mid", "Base")})
    text = (repo.path / "patchgate.toml").read_text()
    repo.stage({"patchgate.toml": text.replace("src/top/**", "src/none/**")})
    assert asked_by_both(repo) == ["component-empty-glob"]
    repo.stage({"patchgate.toml": text.replace("src/base/**", "src/none/**")})
    assert asked_by_both(repo) == ["component-empty-glob", "dependency-corrected", "external-missing"]
    repo.stage({"patchgate.toml": declared("mid", "top")})
    assert asked_by_both(repo) == ["dependency-unknown"]
    repo.stage({"patchgate.toml": '[baselines]\nsource_roots = ["docs"]\n' + text})
    assert asked_by_both(repo) == ["dependency-corrected", "external-missing"]


def test_a_contract_that_is_too_large_is_a_finding_whoever_asks(tmp_path: Path) -> None:
    repo = world(tmp_path)
    # More than is read of any blob, so nobody may try.
    repo.stage({BASE: b" " * (BIG_FILE + 1)})
    (finding,) = (each for each in repo.check().findings if each["rule"] == "contract-invalid")
    size = f"{BIG_FILE + 1:,}"
    assert f" {size} bytes" in finding["message"]
    assert " 1,048,576" in finding["message"]
    assert "contract-invalid" in found_by(repo, everything=True)
    listed = repo.cli("component", "list", "--format", "json")
    assert [each["contract"]["state"] for each in listed.report["components"]] == [
        "unreadable",
        "readable",
        "readable",
    ]
    assert repo.cli("component", "graph").code == 0
    told = repo.cli("component", "tests", "base", "--cached")
    assert (told.code, size in told.err, "Traceback" in told.err) == (2, True, False)
    repo.git("commit", "-q", "--no-verify", "-m", "Make it large")
    status = repo.cli("baseline", "status")
    assert (status.code, status.err) == (0, "")


@pytest.mark.parametrize(
    ("name", "size", "is_asked"),
    [
        ("small.py", 100, True),
        ("large.py", 4 << 20, False),
        ("large.js", 4 << 20, True),
        ("l.js", 16 << 20, False),
    ],
)
def test_budgets_are_not_looked_for_in_tests_that_nobody_writes_by_hand(
    tmp_path: Path, name: str, size: int, is_asked: bool
) -> None:
    repo = world(tmp_path)
    budget = {"name": "area", "side_effects": [{"kind": "none"}], "performance_budget": {"p95_latency_ms": 5}}
    repo.stage({BASE: contract("base", functions=[budget]), f"tests/base/{name}": "#" * size + "\n"})
    assert found_by(repo, everything=True) == ["budget-unasserted"] * is_asked


def test_an_unknown_component_is_a_usage_error_with_the_one_that_was_meant(tmp_path: Path) -> None:
    repo = world(tmp_path)
    with pytest.raises(UsageError) as told:
        found_by(repo, "bas")
    assert "base" in str(told.value.hint)


def test_a_bare_repository_validates_its_head(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.commit({MID: contract("mid", "bose")})
    repo.git("clone", "-q", "--bare", str(repo.path), str(tmp_path / "bare.git"))
    bare = repo.at(tmp_path / "bare.git")
    assert found_by(bare, everything=True) == ["dependency-unknown"]
    with pytest.raises(UsageError):
        found_by(bare)


def test_before_the_first_commit_the_index_is_validated_all_the_same(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.stage({"patchgate.toml": declared("base"), BASE: contract("base", "nothing")})
    told = found_by(repo)
    assert told == found_by(repo, everything=True)
    assert sorted(told) == ["component-empty-glob", "component-empty-glob", "dependency-unknown"]


def test_an_index_with_conflicts_is_undecided(tmp_path: Path) -> None:
    repo = world(tmp_path)
    repo.git("checkout", "-qb", "other")
    repo.commit({"docs/notes.md": "one\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"docs/notes.md": "two\n"})
    assert repo.try_git("merge", "other").returncode != 0
    with pytest.raises(UndecidedError):
        found_by(repo, everything=True)
