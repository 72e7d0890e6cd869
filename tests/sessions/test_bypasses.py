"""The 26 ways past a gate, with the hooks installed: each is caught or seen, and its harmless twin lands.

The cases are those that `bench/bypasses.py` does to other hook managers too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bench.bypass_cases import CASES, Case
from bench.bypass_managers import patchgate
from bench.bypass_place import REASON, Place
from tests.world import EXECUTABLE, server_variables

# What the refusal has to name: its rules, and the path or ref.
NAMED = {
    **dict.fromkeys((1, 5, 6, 7, 8, 13, 14, 15, 16, 18, 19, 20), ("deny-prefix", "secrets/k")),
    **dict.fromkeys((21, 23, 24, 25), ("deny-prefix", "secrets/k")),
    **dict.fromkeys((2, 3, 22), ("deny-content", "plain/a")),
    4: ("deny-prefix", r'"protected/new\nline"', r'"protected/quo\"te"', "protected/größe"),
    9: ("deny-prefix", "protected/policy.txt"),
    10: ("deny-prefix", "protected/x"),
    11: ("deny-prefix", "protected/x"),
    12: ("deny-prefix", "protected/sub"),
    26: ("refs/heads/release",),
}
BY_NUMBER = {case.number: case for case in CASES}


def place(folder: Path, case: Case, *, bad: bool = True) -> Place:
    """Make a case's world with patchgate installed."""
    variables = {"PYTHONDONTWRITEBYTECODE": "1", **server_variables()}
    return Place(folder, patchgate(EXECUTABLE.parent), bad=bad, merges=case.merges, **variables)


def test_there_are_26_cases() -> None:
    assert [case.number for case in CASES] == list(range(1, 27))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}: {case.what}")
def test_a_way_past_the_gate_is_caught_or_seen(tmp_path: Path, case: Case) -> None:
    here = place(tmp_path / "case", case)
    result = case.run(here)
    assert result.word == case.patchgate, here.said
    for name in NAMED.get(case.number, ()):
        assert name in here.said
    assert "Traceback" not in here.said


@pytest.mark.sweep(9)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}: {case.what}")
def test_the_same_with_something_harmless_lands(tmp_path: Path, case: Case) -> None:
    here = place(tmp_path / "case", case, bad=False)
    result = case.run(here)
    assert result.landed, here.said
    assert not result.refused, here.said
    assert "rejected" not in here.said
    assert "undecided" not in here.said


def test_what_the_hooks_did_not_see_is_named_and_refused_at_the_push(
    tmp_path: Path,
) -> None:
    here = place(tmp_path / "case", BY_NUMBER[17])
    BY_NUMBER[17].run(here)
    missed = here.git("rev-parse", "HEAD~1")
    here.said = ""
    assert not here.push_lands("origin", "main", ref="refs/heads/main")
    assert missed[:7] in here.said
    assert "deny-prefix" in here.said


def test_what_the_hooks_did_not_see_is_named_at_a_push_that_passes(tmp_path: Path) -> None:
    here = place(tmp_path / "case", BY_NUMBER[17], bad=False)
    missed = here.plant("Work unseen", {"plain/b": "b\n"})
    assert here.push_lands("origin", "main", ref="refs/heads/main")
    assert "1 commit without" in here.said
    assert missed[:7] in here.said


def test_hooks_that_do_not_run_are_told_by_doctor_with_the_setting(tmp_path: Path) -> None:
    here = place(tmp_path / "case", BY_NUMBER[17])
    assert here.doctor_notices() is False, here.said
    here.git("config", "core.hooksPath", "/dev/null")
    here.said = ""
    assert here.doctor_notices() is True
    assert "core.hooksPath" in here.said


def events(here: Place) -> list[dict[str, Any]]:
    """Read the ledger as `log` shows it."""
    done = here.run(("git", "patchgate", "log", "--format", "json"))
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]


def test_a_skip_is_recorded_with_its_reason_and_commit_and_judged_at_the_push(tmp_path: Path) -> None:
    here = place(tmp_path / "case", BY_NUMBER[19])
    BY_NUMBER[19].run(here)
    skipped = here.git("rev-parse", "HEAD")
    (event,) = [each for each in events(here) if each["kind"] == "skipped"]
    assert REASON in json.dumps(event)
    assert skipped in json.dumps(event)
    assert skipped[:7] in here.said
    done = here.run(("git", "patchgate", "log", "--verify"))
    assert done.returncode == 0


def test_an_empty_reason_skips_nothing(tmp_path: Path) -> None:
    here = place(tmp_path / "case", BY_NUMBER[19])
    here.write("plain/a", "a\n")
    assert not here.commit_lands("-a", PATCHGATE_SKIP="")
    assert not here.commit_lands("-a", "-n", PATCHGATE_SKIP=" ")
    assert not [each for each in events(here) if each["kind"] == "skipped"]
    assert "PATCHGATE_SKIP" in here.said


def test_a_branch_of_another_worktree_cannot_get_a_bad_commit_there(tmp_path: Path) -> None:
    here = place(tmp_path / "case", BY_NUMBER[23])
    linked = here.folder / "linked"
    here.git("worktree", "add", "-q", "-b", "side", str(linked), "main")
    here.write("secrets/k", "key\n", linked)
    here.run(("git", "add", "-A"), cwd=linked)
    assert here.run(("git", "commit", "-qm", "x"), cwd=linked, check=False).returncode != 0
    assert here.run(("git", "commit", "-qnm", "x"), cwd=linked, check=False).returncode != 0
    assert os.path.exists(linked / "secrets/k")
    assert here.value("refs/heads/side") == here.value("refs/heads/main")
