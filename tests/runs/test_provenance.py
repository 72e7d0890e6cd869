"""Beside each file that a run made it is written where the file came from, and nobody has to believe it."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from patchgate.git.path import RepoPath
from patchgate.runs.cost import record_spend
from patchgate.runs.phase_task import PhaseOutcome, PhaseResult
from patchgate.runs.phases import Phase
from patchgate.runs.provenance import Provenance, read_provenance
from tests.runs.phase_world import BASELINE, CODE, CONTRACT, RIGHT, TESTS, WRONG, Desk, new_file
from tests.runs.test_cost import REPORT, made, reporting, spent
from tests.runs.test_phase_work import family
from tests.runs.test_runs import Killed

pytestmark = pytest.mark.turns(4)

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


def test_what_the_integration_of_parts_has_changed_is_a_composition(tmp_path: Path) -> None:
    desk = family(tmp_path)
    assert desk.perform(component="leaf", phase=Phase.IMPLEMENTATION).outcome is PhaseOutcome.PASSED
    assert desk.perform().outcome is PhaseOutcome.PASSED
    assert (meta(desk)["kind"], meta(desk)["phase"]) == ("composition", "integration")


def test_the_files_of_a_work_that_failed_have_it_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path, WRONG, script=reporting(REPORT))
    result = desk.perform()
    assert (result.outcome, result.files) == (PhaseOutcome.WAITING, (CODE,))
    assert (meta(desk)["attempt"], meta(desk)["author"]) == (result.attempts[0], "writer")


def test_the_author_is_named_without_a_report_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.perform()
    found = meta(desk)
    assert (found["author"], found["model"], found["cost"]) == ("writer", None, None)
    said = desk.repo.cli("explain", "--path", CODE).out
    assert "made by writer in run r-1" in said
    assert "does not confirm" not in said


def test_what_a_person_added_by_hand_is_no_call_of_the_work(tmp_path: Path) -> None:
    world = made(tmp_path)
    world.start("base")
    words = ("--phase", "implementation", "--component", "base", "--model", "mine")
    assert world.repo.cli("run", "cost", "add", "9", *words).code == 0
    before = world.repo.cli("explain", "--path", "src/base/code.txt").out
    assert ("(m-1)" in before, "0.25" in before, "does not confirm" in before) == (True, True, False)


def test_a_kill_after_the_landing_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))

    def check(*_: object) -> PhaseResult:
        if (desk.repo.path / CODE).exists():
            raise Killed
        return PhaseResult(PhaseOutcome.FAILED, "calc: the code is missing")

    monkeypatch.setattr("patchgate.runs.phase_work.check_phase", check)
    with pytest.raises(Killed):
        desk.perform()
    assert (meta(desk)["author"], meta(desk)["cost"]) == ("writer", 0.25)


@pytest.mark.parametrize("damage", ["", "{", "\0" * 40, "another schema"])
def test_a_damaged_one_is_written_again(tmp_path: Path, damage: str) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.perform()
    before = meta(desk)
    changed = json.dumps({**before, "run": 1}) if damage == "another schema" else damage
    (desk.repo.path / META).write_text(changed)
    assert desk.perform().warnings == ()
    assert meta(desk) == before


@pytest.mark.parametrize("foreign", ["{}", "no json", "[" * 10_000, "link", "tracked"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, foreign: str) -> None:
    desk = Desk(tmp_path, RIGHT)
    place = desk.repo.path / META
    place.parent.mkdir(parents=True, exist_ok=True)
    (desk.repo.path / ".git/info/exclude").write_text("*.meta.json\n")
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
    # Nor is it hidden from git.
    exclude = desk.repo.path / ".git/info/exclude"
    assert not exclude.exists() or META not in exclude.read_text()


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
    assert desk.repo.cli("explain", "--path", CODE).code == 0


@pytest.mark.parametrize("cost", ["1" + "0" * 400, "NaN", "Infinity", "-5", "1e999", "true", '"1"'])
def test_a_cost_that_is_none_is_not_printed(tmp_path: Path, cost: str) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))
    desk.perform()
    text = (desk.repo.path / META).read_text()
    (desk.repo.path / META).write_text(text.replace('"cost": 0.25', f'"cost": {cost}'))
    answer = desk.repo.cli("explain", "--path", CODE)
    assert (answer.code, "made by" in answer.out) == (0, False), answer.err


@pytest.mark.parametrize("kind", ["fifo", "device", "link", "folder", "missing"])
def test_a_file_that_is_none_any_more_is_told_and_not_read(tmp_path: Path, kind: str) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.perform()
    place = desk.repo.path / CODE
    (tmp_path / "same").write_bytes(place.read_bytes())
    place.unlink()
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind != "missing":
        place.symlink_to("/dev/zero" if kind == "device" else tmp_path / "same")
    answer = desk.repo.cli("explain", "--path", CODE)
    said = "removed since" if kind == "missing" else "changed since"
    assert (answer.code, said in answer.out) == (0, True), answer.out


def test_explain_and_attempts_show_print_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))
    result = desk.perform()
    (attempt,) = result.attempts
    said = desk.repo.cli("explain", "--path", CODE).out
    work = "implementation of calc in the phase implementation"
    expected = f"made by writer (m-1) in run r-1: {work}, attempt {attempt}, 0.25"
    shown = desk.repo.cli("attempts", "show", attempt).out
    for each in (said, shown):
        assert expected in each
        assert "changed since" not in each
        assert "confirm" not in each
    (desk.repo.path / CODE).write_text("other\n")
    assert "changed since" in desk.repo.cli("explain", "--path", CODE).out
    assert "changed since" in desk.repo.cli("attempts", "show", attempt).out
    assert "run: r-1/calc/implementation" in shown


@pytest.mark.parametrize(
    "edit",
    [
        {"author": "somebody"},
        {"model": "another"},
        {"cost": 0.01},
        {"output_tokens": 1},
        {"run": "r-2"},
        {"phase": "tests"},
        {"component": "other"},
        {"attempt": "a-00000000"},
        {"sha256": "0" * 64},
        {"at": "2020-01-01T00:00:00Z"},
        {"kind": "contract"},
        {"author": None, "model": None, "input_tokens": 0, "output_tokens": 0, "cost": None},
    ],
    ids=" ".join,
)
def test_what_was_edited_is_not_confirmed(tmp_path: Path, edit: dict[str, Any]) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))
    desk.perform()
    assert "does not confirm" not in desk.repo.cli("explain", "--path", CODE).out
    (desk.repo.path / META).write_text(json.dumps({**meta(desk), **edit}))
    assert "the ledger does not confirm it" in desk.repo.cli("explain", "--path", CODE).out


def test_one_of_another_file_is_not_confirmed(tmp_path: Path) -> None:
    twin = CODE.replace(".txt", ".md")
    desk = Desk(tmp_path, RIGHT + new_file(twin, "twin\n"))
    desk.perform()
    assert "does not confirm" not in desk.repo.cli("explain", "--path", twin).out
    (desk.repo.path / (twin + ".meta.json")).write_text((desk.repo.path / META).read_text())
    assert "the ledger does not confirm it" in desk.repo.cli("explain", "--path", twin).out
    (desk.repo.path / "README.md.meta.json").write_text((desk.repo.path / META).read_text())
    assert "the ledger does not confirm it" in desk.repo.cli("explain", "--path", "README.md").out


def test_later_calls_of_a_work_deny_nothing_that_was_written_before(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT, script=reporting(REPORT))
    desk.perform()
    record_spend(desk.repo.common_dir, "r-1", spent(0.5), lambda: 0.0)
    assert "does not confirm" not in desk.repo.cli("explain", "--path", CODE).out


def test_the_terminal_gets_nothing_of_it_raw(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    desk.perform()
    place = desk.repo.path / META
    place.write_text(json.dumps({**meta(desk), "model": "a\x1b[31m\nb", "author": "\u202ex"}))
    said = desk.repo.cli("explain", "--path", CODE).out
    assert "\x1b" not in said
    assert "\u202e" not in said
