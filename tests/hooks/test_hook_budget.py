"""`[hooks] budget_ms`: a hook that took longer is recorded and reported, and nothing is stopped by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from patchgate.hooks.doctor_repository import DoctorContext, slow_findings
from patchgate.ledger.ledger import Ledger
from tests.component_world import opened
from tests.world import Repo

DAY = 86_400
NOW = 1_767_268_800


def slow(repo: Repo) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in repo.cli("log", "--kind", "slow", "--format", "json").out.splitlines()
    ]


def test_a_hook_that_takes_longer_than_its_budget_is_in_the_log_and_in_doctor(tmp_path: Path) -> None:
    """Requirement D 5.3: accepted or refused, by the policy that judged it; without a budget nothing is."""
    repo = Repo.create(tmp_path)
    for budget, expected in (("", 0), ("[hooks]\nbudget_ms = 3600000\n", 0), ("[hooks]\nbudget_ms = 1\n", 1)):
        repo.policy('[policy]\ndeny_prefixes = ["vault"]\n' + budget)
        repo.stage({"a.py": f"one = {len(budget)}\n"})
        assert repo.cli("hook", "pre-commit").code == 0
        assert len(slow(repo)) == expected, budget
    (event,) = slow(repo)
    assert (event["hook"], event["budget_ms"]) == ("pre-commit", 1)
    assert event["ms"] > 1
    repo.stage({"vault/x": "x\n"})
    assert repo.cli("hook", "pre-commit").code == 1
    assert len(slow(repo)) == 2
    assert f"slow pre-commit: {event['ms']} ms (budget: 1 ms)" in repo.cli("log").out
    (line,) = (each for each in repo.cli("doctor").out.splitlines() if "budget_ms" in each)
    assert all(part in line for part in ("pre-commit", "[hooks] budget_ms", " 2 times ", " 7 days"))


def test_what_is_long_ago_or_foreign_is_not_reported(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    for days, hook, milliseconds in (
        (8, "pre-push", 5),
        (6, "pre-push", 900),
        (1, "\x1b[31m", 7),
        (0, "x", "y"),
    ):
        ledger = Ledger(str(repo.path / ".git"), clock=lambda days=days: NOW - days * DAY)  # type: ignore[misc]
        assert ledger.record("slow", {"hook": hook, "ms": milliseconds, "budget_ms": 1}) is None
    scene = DoctorContext(repository=opened(repo), environ={}, git="git", worktree_hooks=(), now=NOW)
    found = [finding for _, finding in slow_findings(scene)]
    assert [each.what.count("1 time ") for each in found] == [1, 1]
    assert all(each.what.isprintable() for each in found)
    assert "900 ms" in found[1].what
    assert all(line.isprintable() for line in repo.cli("log", "--kind", "slow").out.splitlines())
