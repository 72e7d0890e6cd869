"""Runs of analyses: never the same twice, each in a tree of its own; what was not seen is not believed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from patchgate.commands.analysis_results import AnalysisOutcome
from patchgate.git import scratch
from patchgate.git.scratch.tree_cache import MOST_TREES, cache_folder_of
from patchgate.storage.lock import acquire
from patchgate.verify.analysis_runner import AnalysisRunner
from tests.verify.analysis_world import REPORT, Desk, sarif
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

ONE = ("R1", "a.py", 2)


def test_the_same_is_never_run_twice_and_comes_back_as_it_was(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE, ("R1", "a.py", 3))
    analyses = desk.analysis()
    first = desk.runs(analyses)
    assert desk.runs(analyses) == first == desk.runs(analyses, "HEAD") == desk.known(analyses)
    assert desk.ran() == 1
    assert [(each.rule, each.line) for each in first.runs["told"].results] == [("R1", 2), ("R1", 3)]
    assert first.runs["told"].outcome is AnalysisOutcome.FINDINGS
    assert first.tree == desk.ask("rev-parse", "HEAD^{tree}")


def test_a_tree_that_comes_back_is_known_and_so_is_it_in_another_worktree(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = desk.analysis()
    first = desk.runs(analyses)
    desk.stage({"a.py": "one\nelse\nthree\n"})
    assert desk.runs(analyses) != first
    assert desk.ran() == 2
    desk.commit()
    desk.git("revert", "-n", "HEAD")
    assert desk.runs(analyses) == first
    desk.git("worktree", "add", "-q", str(tmp_path / "other"), "HEAD~1")
    other = Desk(tmp_path / "other", desk.env)
    assert other.runs(analyses) == first
    assert desk.ran() == 2


def test_other_settings_are_another_run(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    (settings,) = desk.analysis().values()
    for number, other in enumerate(
        (
            settings,
            replace(settings, env={"A": "b"}),
            replace(settings, timeout=30.0),
            replace(settings, command=(*settings.command, "more")),
            replace(settings, required_tools=("git",)),
        )
    ):
        desk.runs({"told": other})
        assert desk.ran() == number + 1
    runs = desk.runs({"named": settings})
    assert desk.ran() == 6
    assert [each.analysis for each in runs.runs["named"].results] == ["named"]


def test_another_version_of_the_program_is_another_run(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    place = tmp_path / "tools"
    place.mkdir()
    program = place / "told"
    program.write_text(f"#!/bin/sh\ncat {REPORT}\n")
    program.chmod(0o755)
    desk.env["PATH"] = f"{place}:{desk.env['PATH']}"
    analyses = {"told": replace(desk.analysis()["told"], command=("told",))}
    first = desk.runs(analyses)
    assert desk.known(analyses) == first
    program.write_text(f"#!/bin/sh\n# 2.0\ncat {REPORT}\n")
    assert desk.known(analyses) is None
    second = desk.runs(analyses)
    assert second.analyses != first.analyses
    assert second.runs["told"].key != first.runs["told"].key
    assert second.digest == first.digest


def test_what_is_kept_is_not_run_again_beside_what_is_not(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = {**desk.analysis(), **desk.analysis(name="second")}
    assert desk.known(analyses) is None
    desk.runs(desk.analysis())
    assert desk.known(analyses) is None
    assert (desk.ran(), desk.ran("second")) == (1, 0)
    assert desk.runs(analyses) == desk.known(analyses)
    assert (desk.ran(), desk.ran("second")) == (1, 1)


def test_a_damaged_entry_is_run_again(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = desk.analysis()
    first = desk.runs(analyses)
    (entry,) = desk.stored()
    entry.write_bytes(entry.read_bytes().replace(b"R1", b"R2"))
    assert desk.known(analyses) is None
    assert desk.runs(analyses) == first
    assert desk.ran() == 2
    assert desk.known(analyses) == first


def test_what_could_not_be_evaluated_is_tried_again(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = desk.analysis(f"test -e {tmp_path}/mended || exit 3; cat {REPORT}")
    assert " code 3" in desk.refusal(analyses)
    assert desk.stored() == []
    assert desk.known(analyses) is None
    (tmp_path / "mended").touch()
    assert desk.run_of(analyses).outcome is AnalysisOutcome.FINDINGS
    assert desk.ran() == 2


def test_a_missing_program_is_told_and_nothing_is_kept(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    (settings,) = desk.analysis().values()
    analyses = {"told": replace(settings, command=("no-such-program",))}
    assert "no-such-program" in desk.refusal(analyses)
    assert desk.known(analyses) is None
    assert (desk.run_of(analyses).key, desk.stored()) == ("", [])


@pytest.mark.parametrize(
    "writing", ["echo more >>a.py", "rm a.py", "mv a.py b.py", "ln -sf report.sarif a.py", "chmod +x a.py"]
)
def test_an_analysis_that_writes_to_tracked_files_was_not_evaluated(tmp_path: Path, writing: str) -> None:
    desk = Desk.begin(tmp_path, ONE)
    assert "changed a.py" in desk.refusal(desk.analysis(f"cat {REPORT}; {writing}"))
    assert desk.stored() == []
    looking = desk.analysis(
        f'test "$(cat a.py)" = "$(printf \'one\\ntwo\\nthree\')" || exit 4; cat {REPORT}', "next"
    )
    assert desk.run_of(looking).outcome is AnalysisOutcome.FINDINGS
    assert (desk.path / "a.py").read_text() == "one\ntwo\nthree\n"


def test_files_that_are_not_tracked_may_be_written_and_the_next_analysis_does_not_see_them(
    tmp_path: Path,
) -> None:
    desk = Desk.begin(tmp_path, ONE)
    first = desk.analysis(f"mkdir cache; echo x >cache/x.py; echo '*' >.gitignore; cat {REPORT}", "first")
    second = desk.analysis(f"test ! -e cache && test ! -e .gitignore || exit 5; cat {REPORT}", "second")
    runs = desk.runs({**first, **second}).runs
    assert [run.outcome for run in runs.values()] == [AnalysisOutcome.FINDINGS] * 2


def test_an_analysis_that_removes_its_tree_was_not_evaluated_and_the_others_are(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = {**desk.analysis(f'cat {REPORT}; rm -rf "$PWD"', "first"), **desk.analysis(name="second")}
    runs = desk.runs(analyses).runs
    assert [run.outcome for run in runs.values()] == [AnalysisOutcome.NOT_EVALUATED, AnalysisOutcome.FINDINGS]
    assert "removed" in (runs["first"].reason or "")


def test_each_analysis_sees_the_tree_alone_and_the_commit_as_head(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    wanted = desk.head()
    desk.commit({"a.py": "committed since\n", "later.py": "later\n"})
    desk.write("untracked.py")
    seen = tmp_path / "seen"
    desk.runs(desk.analysis(f"(ls -A; cat a.py; git rev-parse HEAD) >{seen}; cat {REPORT}"), "HEAD~1")
    assert seen.read_text().split() == [".git", "a.py", REPORT, "one", "two", "three", wanted]


def test_a_finding_is_marked_by_its_line_wherever_that_line_has_moved(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = desk.analysis()
    marks = [desk.run_of(analyses).results[0].mark]
    for text in ("one\n\n  two\nthree\n", "one\n\n  too\nthree\n"):
        desk.stage({"a.py": text, REPORT: sarif(("R1", "a.py", 3))})
        marks.append(desk.run_of(analyses).results[0].mark)
    assert marks[0] == marks[1] != marks[2]


def test_who_waited_for_the_scratch_tree_takes_what_the_other_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = desk.analysis()
    really = scratch.whole_tree
    others: list[object] = []

    @contextlib.contextmanager
    def after_another(*arguments: Any, **named: Any) -> Iterator[scratch.Scratch]:
        monkeypatch.setattr(scratch, "whole_tree", really)
        others.append(desk.runs(analyses))
        with really(*arguments, **named) as made:
            yield made

    monkeypatch.setattr(scratch, "whole_tree", after_another)
    assert desk.runs(analyses) == others[0]
    assert desk.ran() == 1


def test_the_repository_is_as_it_was_but_for_the_store(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    desk.stage({"b.py": "b\n"})

    def everything() -> dict[str, bytes]:
        files = (each for each in desk.path.rglob("*") if each.is_file())
        return {str(each): each.read_bytes() for each in files if "patchgate" not in each.parts}

    before = everything()
    desk.runs(desk.analysis(f"git tag mine; git commit -q --allow-empty -m x; cat {REPORT}"))
    assert desk.ran() == 1
    assert everything() == before


def test_a_bare_repository_has_runs_of_its_revisions(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    desk.git("clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    bare = Desk(tmp_path / "bare", desk.env)
    assert bare.runs(desk.analysis(), "HEAD") == desk.runs(desk.analysis(), "HEAD")


def test_in_a_repository_of_sha256_a_staged_tree_is_analysed(tmp_path: Path) -> None:
    made = Repo.create(tmp_path, "--object-format=sha256")
    desk = Desk(made.path, {**made.env, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    desk.stage({"deep/a.py": "one\n", REPORT: sarif(("R1", "deep/a.py", 1))})
    assert [each.line for each in desk.run_of(desk.analysis()).results] == [1]


def test_no_analyses_are_runs_that_tell_nothing(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path)
    runs = desk.known({})
    assert runs is not None
    assert (runs.runs, runs.is_evaluated) == ({}, True)


def test_what_tells_the_same_twice_is_run_twice_whatever_is_known_and_kept(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    analyses = desk.analysis()
    first, second = desk.twice(analyses)
    assert first == second == desk.known(analyses)
    assert desk.ran() == 2
    desk.twice(analyses)
    assert desk.ran() == 4


def test_what_tells_two_things_is_not_kept(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    count = tmp_path / "calls"
    analyses = desk.analysis(
        f"if test -e {count}; then cat {REPORT}; else cat {tmp_path}/clean; fi; touch {count}"
    )
    (tmp_path / "clean").write_text(sarif())
    first, second = desk.twice(analyses)
    assert [len(each.runs["told"].results) for each in (first, second)] == [0, 1]
    assert first.digest != second.digest
    assert desk.known(analyses) is None


def test_results_in_another_order_are_the_same_digest(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path)
    two = ("R2", "a.py", 3)
    (tmp_path / "one").write_text(sarif(ONE, two, ONE))
    (tmp_path / "other").write_text(sarif(ONE, ONE, two))
    one, other = (desk.run_of(desk.analysis(f"cat {tmp_path}/{name}", name)) for name in ("one", "other"))
    assert [each.rule for each in one.results] == ["R1", "R1", "R2"]
    assert [replace(each, analysis="one") for each in other.results] == list(one.results)
    assert other.digest == one.digest


def test_who_waits_for_the_scratch_tree_is_told_so(tmp_path: Path) -> None:
    desk = Desk.begin(tmp_path, ONE)
    told: list[tuple[str, float]] = []
    with contextlib.ExitStack() as busy, desk.opened() as (repository, objects, store):
        for number in range(MOST_TREES):
            home = cache_folder_of(repository, os.path.realpath(desk.around.cache), number)
            busy.enter_context(acquire(os.path.join(home, "lock"), timeout_seconds=0))

        def tell(what: str, seconds: float) -> None:
            told.append((what, seconds))
            busy.close()

        around = replace(desk.around, report_progress=tell)
        tree = desk.ask("rev-parse", "HEAD^{tree}")
        runs = AnalysisRunner(objects, store, desk.analysis(), around).runs(tree)
    assert runs is not None
    assert runs.is_evaluated
    assert told[0][0].startswith("waiting ")
    assert "scratch tree" in told[0][0]
    assert told[0][1] >= 1
