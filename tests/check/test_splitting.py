"""The parts that a change past its budget is split into."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from patchgate.check.case import Case
from patchgate.git.model import FileChange
from patchgate.git.path import RepoPath
from patchgate.report.json import with_paths
from tests.check.gate_cases import added, agents, case, deleted, findings, modified

POLICY = """
[policy]
generated = ["gen/**"]
[policy.agent]
max_files = 3
max_added_lines = 10
deny_classes = []
[[overrides]]
paths = ["docs/**"]
max_files = 2
[[overrides]]
paths = ["big/**"]
max_added_lines = 40
[[overrides]]
paths = ["free/**"]
max_files = "off"
max_added_lines = "off"
"""


def budgets_of(given: Case) -> dict[str, Any]:
    """The details of each budget that is spent, by its rule."""
    return {
        finding.rule: with_paths(finding.details)
        for finding in findings(given)
        if finding.rule in {"max-files", "max-added-lines"}
    }


def part_of(given: Case, part: list[str]) -> Case:
    """What is left of a change when only some paths are taken."""
    files = tuple(file for file in given.change.files if file.path.quoted in part)
    return replace(given, change=type(given.change).of("1" * 40, "2" * 40, files))


def test_every_part_is_within_every_budget_and_all_parts_are_the_whole() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        files: list[FileChange] = []
        for number in range(chance.randrange(4, 30)):
            name = f"{chance.choice(['docs', 'big', 'free', 'gen', 'src', 'lib'])}/{number}"
            lines = chance.choice([0, 1, 3, 7, 10])
            made = chance.choice(["added", "modified", "deleted"])
            if chance.random() < 0.1:
                name += "/uv.lock"
            if made == "deleted":
                files.append(deleted(name))
            else:
                files.append((added if made == "added" else modified)(name, lines=lines))
        paths = [file.path for file in files]
        together = tuple(
            (paths[index], paths[index + 1]) for index in range(0, len(paths) - 1, 2) if chance.random() < 0.3
        )
        given = replace(agents(*files, toml=POLICY), rename_pairs=together)
        found = budgets_of(given)
        for details in found.values():
            split: list[list[str]] = details["split"]
            held = [path for part in split for path in part]
            assert sorted(held + details["too_large"]) == sorted(path.quoted for path in paths)
            for part in split:
                assert not budgets_of(part_of(given, part))
                for one, other in together:
                    assert (one.quoted in part) == (other.quoted in part)
            for path in details["too_large"]:
                pair = next((each for each in together if path in {one.quoted for one in each}), None)
                unit = [path] if pair is None else [one.quoted for one in pair]
                assert budgets_of(part_of(given, unit))


def test_a_file_and_what_lies_below_its_name_stay_together() -> None:
    """`--only a` takes `a/b` too."""
    below = [added(f"a/{number}") for number in range(3)]
    given = agents(*(added(f"Z{number}") for number in range(4)), deleted("a"), *below)
    assert budgets_of(given)["max-files"]["split"] == [["Z0", "Z1", "Z2", "Z3"], ["a", "a/0", "a/1", "a/2"]]


def test_control_files_stand_alone() -> None:
    given = agents(*(added(f"a{number}") for number in range(6)), modified("patchgate.toml"))
    controls = frozenset({RepoPath(b"patchgate.toml")})
    given = replace(given, governance=replace(given.governance, controls=controls))
    assert budgets_of(given)["max-files"]["split"][0] == ["patchgate.toml"]


def test_a_person_is_told_of_a_split_too() -> None:
    given = case(*(added(f"a{number:02}") for number in range(51)))
    assert [len(part) for part in budgets_of(given)["max-files"]["split"]] == [50, 1]
