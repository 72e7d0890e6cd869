"""Beside each file that a run made it is written where the file came from, and nobody has to believe it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from patchgate.git.path import RepoPath
from patchgate.runs.phase_task import PhaseOutcome
from patchgate.runs.phases import Phase
from patchgate.runs.provenance import Provenance, read_provenance
from tests.runs.phase_world import BASELINE, CODE, CONTRACT, RIGHT, TESTS, Desk, new_file
from tests.runs.test_cost import REPORT, reporting

META = CODE + ".meta.json"


def meta(desk: Desk, name: str = META) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((desk.repo.path / name).read_text())
    return found


def test_a_file_of_a_run_has_its_origin_beside_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))
    result = desk.perform()
    assert (result.outcome, result.warnings) == (PhaseOutcome.PASSED, ())
    found = meta(desk)
    assert found["sha256"] == hashlib.sha256((desk.repo.path / CODE).read_bytes()).hexdigest()
    assert found["made_from"] == {name: desk.repo.ask("rev-parse", f":{name}") for name in (CONTRACT, TESTS)}
    expected = {
        "component": "calc",
        "kind": "implementation",
        "phase": "implementation",
        "run": "r-1",
        "attempt": result.attempts[0],
        "author": "writer",
        "contract_version": "1.0.0",
        **REPORT,
    }
    assert {key: found[key] for key in expected} == expected


def test_git_does_not_see_it_and_it_is_in_no_commit(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.perform()
    seen = desk.repo.ask("status", "--porcelain", "--untracked-files=all").split()
    assert seen == ["A", BASELINE, "A", CODE]
    assert (desk.repo.path / ".git/info/exclude").read_text().splitlines()[-1] == f"/{META}"


def test_two_files_that_differ_in_their_suffix_have_one_each(tmp_path: Path) -> None:
    twin = CODE.replace(".txt", ".md")
    desk = Desk(tmp_path, RIGHT + new_file(twin, "twin\n"))
    desk.perform()
    assert meta(desk)["sha256"] != meta(desk, twin + ".meta.json")["sha256"]


@pytest.mark.parametrize(
    ("phase", "file", "kind"),
    [(Phase.TESTS, TESTS + ".more", "test_suite"), (Phase.SHAPING, CODE, "implementation")],
)
def test_the_kind_is_that_of_the_file(tmp_path: Path, phase: Phase, file: str, kind: str) -> None:
    desk = Desk(tmp_path, new_file(file, "right\n"), phase=phase, files={CONTRACT: "{}", "README.md": "x\n"})
    desk.perform()
    if (desk.repo.path / file).exists():
        assert meta(desk, file + ".meta.json")["kind"] == kind


def test_after_a_kill_it_is_written_from_the_ledger(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))
    desk.perform()
    before = meta(desk)
    (desk.repo.path / META).unlink()
    desk.perform()
    assert (meta(desk), len(desk.briefs)) == (before, 1)


@pytest.mark.parametrize("foreign", ["{}", "no json", "[" * 10_000, "link", "tracked"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, foreign: str) -> None:
    desk = Desk(tmp_path, RIGHT)
    place = desk.repo.path / META
    place.parent.mkdir(parents=True, exist_ok=True)
    (desk.repo.path / ".git/info/exclude").write_text(f"/{META}\n")
    if foreign == "link":
        (tmp_path / "elsewhere").write_text("kept")
        place.symlink_to(tmp_path / "elsewhere")
    elif foreign == "tracked":
        (desk.repo.path / ".git/info/exclude").unlink()
        desk.repo.commit({META: "mine\n"})
    else:
        place.write_text(foreign)
    before = os.readlink(place) if foreign == "link" else place.read_text()
    result = desk.perform()
    assert result.outcome is PhaseOutcome.PASSED, result
    assert (os.readlink(place) if foreign == "link" else place.read_text()) == before
    assert "was left as it is" in " ".join(result.warnings)


def test_what_is_missing_or_damaged_is_no_error(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    repository, path = desk.repository, RepoPath(CODE.encode())
    assert read_provenance(repository, path) is None
    desk.perform()
    found = read_provenance(repository, path)
    assert found is not None
    assert Provenance.from_plain(found.plain()) == found
    place = desk.repo.path / META
    for text in ("", "{", "[]", json.dumps({**found.plain(), "run": 1}), "x" * (1 << 20)):
        place.write_text(text)
        assert read_provenance(repository, path) is None
        assert desk.repo.cli("explain", "--path", CODE).code == 0
    place.unlink()
    os.mkfifo(place)
    assert read_provenance(repository, path) is None


def test_explain_and_attempts_show_print_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))
    result = desk.perform()
    said = desk.repo.cli("explain", "--path", CODE).out
    assert (
        f"made by writer (m-1) in run r-1: implementation of calc, attempt {result.attempts[0]}, 0.25" in said
    )
    assert "changed since" not in said
    (desk.repo.path / CODE).write_text("other\n")
    assert "changed since" in desk.repo.cli("explain", "--path", CODE).out
    assert "run: r-1/calc/implementation" in desk.repo.cli("attempts", "show", result.attempts[0]).out


def test_the_terminal_gets_nothing_of_it_raw(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.perform()
    place = desk.repo.path / META
    place.write_text(json.dumps({**meta(desk), "model": "a\x1b[31m\nb", "author": "\u202ex"}))
    said = desk.repo.cli("explain", "--path", CODE).out
    assert "\x1b" not in said
    assert "\u202e" not in said
