"""What changes while a patch is tried, and what a new process knows of an old one."""

from __future__ import annotations

import json
from pathlib import Path

from tests.crash.cases import Case, build, make_case, text
from tests.crash.comparer import litter, state_of
from tests.crash.programs import OURS
from tests.proposals import PERMISSIVE
from tests.world import Repo


def changing(folder: Path, name: str) -> Case:
    """Make a case whose test command writes to a file of the working tree itself, by its absolute path."""
    target = folder / "work" / "repo" / name
    command = ["sh", "-c", f"mkdir -p '{target.parent}'; printf 'a person wrote this\\n' >'{target}'"]
    policy = f"""{PERMISSIVE}
[commands.unit]
kind = "test"
command = {json.dumps(command)}
scope = "tree"
"""

    def change(repo: Repo) -> None:
        repo.write("src/a.py", "changed\n")
        repo.write("made/new.txt", "new\n")
        (repo.path / "gone.txt").unlink()

    return make_case(
        folder / "case", "changing", {"src/a.py": text("a"), "gone.txt": "x\n"}, change, policy=policy
    )


def assert_kept(folder: Path, name: str) -> None:
    """Apply under that command: undecided, the person's bytes stand, everything else is old."""
    case = changing(folder, name)
    place = case.fresh(folder / "work")
    answer = OURS.run(place, "--format", "json")
    assert (answer.code, answer.verdict) == (3, "undecided"), answer.out
    assert answer.errors == ["concurrent-change"]
    assert name in answer.out
    now = dict(state_of(place.repo).tree)
    assert now.pop(name)[1] == b"a person wrote this\n"
    folders = {str(above) for above in Path(name).parents} - {"."}
    old = {path: content for path, content in case.old.tree.items() if path != name}
    assert {path: now[path] for path in now if path not in folders} == {
        path: old[path] for path in old if path not in folders
    }
    assert litter(place.repo, place.temporary) == []


def test_a_file_that_is_changed_during_the_tests_is_not_overwritten(tmp_path: Path) -> None:
    assert_kept(tmp_path, "src/a.py")


def test_a_file_that_is_changed_during_the_tests_is_not_removed(tmp_path: Path) -> None:
    assert_kept(tmp_path, "gone.txt")


def test_a_file_that_is_made_during_the_tests_is_not_overwritten(tmp_path: Path) -> None:
    assert_kept(tmp_path, "made/new.txt")


def test_a_new_process_knows_the_duplicates_of_an_old_one(tmp_path: Path) -> None:
    case = build(tmp_path / "case", 5)
    place = case.fresh(tmp_path / "work")
    first = OURS.run(place, "--format", "json")
    assert first.code == 0, first.out
    assert state_of(place.repo).tree == case.new.tree
    again = OURS.run(place, "--format", "json")
    assert again.code == 1, again.out
    assert again.errors == ["duplicate-patch"]
    assert first.report["attempt"]["id"] in again.out
    assert state_of(place.repo).tree == case.new.tree
