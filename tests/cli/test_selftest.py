"""The contract's own smoke test (E19)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchgate.cli import selftest as room
from patchgate.cli.selftest import CASES, selftest, summary
from patchgate.report.rules import RULES
from tests.golden.messages import recorded, refused
from tests.world import Answer, Repo

# All of them are run once; what is told of a wrong case shows in a few.
FEW = {name: RULES[name] for name in ("deny-prefix", "secret", "conflict-marker", "lint-failed")}


def test_every_rule_of_the_registry_is_raised_by_its_built_in_case() -> None:
    results = list(selftest(os.environ))
    assert [each.rule for each in results] == list(RULES)
    assert [each.rule for each in results if not each.is_raised] == []
    assert summary(results).splitlines()[-1].startswith(f"{len(RULES)} of {len(RULES)} rules raised")
    # `python -m tests.golden.messages` writes the file again.
    assert refused(results)["REFUSALS"] == recorded()["REFUSALS"]


def test_a_rule_without_a_case_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "RULES", FEW)
    monkeypatch.setattr(room, "CASES", tuple(case for case in CASES if case.rule != "deny-prefix"))
    missing = [each.rule for each in selftest(os.environ) if not each.is_raised]
    assert missing == ["deny-prefix"]


def test_a_case_that_breaks_another_rule_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "RULES", FEW)
    kept = tuple(case for case in CASES if case.rule != "secret")
    wrong = next(case for case in CASES if case.rule == "conflict-marker")
    monkeypatch.setattr(room, "CASES", (*kept, type(wrong)("secret", wrong.proposal)))
    results = {each.rule: each for each in selftest(os.environ)}
    assert not results["secret"].is_raised
    assert "secret" in summary(list(results.values()))
    (line,) = (each for each in summary(list(results.values())).splitlines() if "NOT RAISED" in each)
    assert line.index("secret") < line.index("conflict-marker")


def test_the_command_ends_with_1_where_a_rule_is_not_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E19."""
    monkeypatch.setattr(room, "RULES", {"secret": RULES["secret"]})
    repo = Repo.create(tmp_path)
    assert repo.cli("selftest", "-q") == Answer(0, "", "")
    assert repo.cli("selftest", "-v").out.startswith("error[secret]: ")
    monkeypatch.setattr(room, "CASES", ())
    missing = repo.cli("selftest", "-q")
    assert (missing.code, missing.out.splitlines()[-1][:6]) == (1, "0 of 1")
