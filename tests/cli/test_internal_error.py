"""An internal error: one sentence, its traceback in a file that it names, and none on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchgate.ledger.traces import MOST_FILES, traces_folder
from tests.world import Repo

SECRET = "hunter2-hunter2"


def _refused(arguments: list[str]) -> int:
    raise PermissionError(13, "Permission denied", "somewhere")


def _fail(arguments: list[str]) -> int:
    raise RecursionError(f"too deep, \x1b[31m{SECRET}")


def test_of_a_gate_that_fails_the_traceback_is_kept_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(case: object) -> None:
        raise RecursionError(f"too deep, {SECRET}")

    monkeypatch.setattr("patchgate.placeholders.placeholder_gate.examine", crash)
    repo = Repo.create(tmp_path)
    repo.commit({"a.py": "1\n"})
    repo.stage({"a.py": "2\n"})
    done = repo.check("--profile", "agent", MY_PASSWORD=SECRET)
    assert (done.code, done.verdict) == (3, "undecided")
    (kept,) = Path(traces_folder(str(repo.path / ".git"))).iterdir()
    assert str(kept) in done.err
    assert "in crash" in kept.read_text()
    assert SECRET not in kept.read_text() + done.out + done.err


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    # Nothing that a user can do is known to fail so.
    monkeypatch.setattr("patchgate.cli.cli.call", _fail)
    return Repo.create(tmp_path)


def test_the_traceback_of_an_internal_error_is_in_a_file_that_the_message_names(repo: Repo) -> None:
    folder = Path(traces_folder(str(repo.path / ".git")))
    below = repo.write("src/a.py").parent
    for number, (arguments, cwd) in enumerate(
        [(["check"], repo.path), (["-C", str(repo.path), "check"], repo.path.parent), (["check"], below)], 1
    ):
        done = repo.cli(*arguments, cwd=cwd, MY_PASSWORD=SECRET)
        assert done.code == 3
        assert "Traceback" not in done.err + done.out
        kept = sorted(folder.iterdir())
        assert str(kept[-1]) in done.err
        text = kept[-1].read_text()
        assert "RecursionError: too deep" in text
        assert "in _fail" in text
        assert SECRET not in text
        assert kept[-1].stat().st_mode & 0o077 == 0
        kept[-1].rename(folder / f"0{number}")


def test_json_names_the_file_too_and_debug_prints_the_traceback_in_printable_form(repo: Repo) -> None:
    done = repo.cli("check", "--format", "json", PATCHGATE_DEBUG="1")
    document = json.loads(done.out)
    assert document["schema"] == "patchgate.error/1"
    (kept,) = Path(traces_folder(str(repo.path / ".git"))).iterdir()
    assert str(kept) in document["error"]["message"]
    assert "in _fail" in done.err
    assert "\x1b" not in done.err


def test_without_a_repository_that_can_be_written_the_file_is_elsewhere(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (repo.path / ".git" / "patchgate").write_text("in the way")
    for cwd in (repo.path, tmp_path):
        said = repo.cli("check", cwd=cwd).err
        (kept,) = tmp_path.glob("patchgate-trace-*/*.txt")
        assert str(kept) in said
        kept.unlink()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert "PATCHGATE_DEBUG=1" in repo.cli("check", cwd=tmp_path).err


def test_what_the_system_refuses_leaves_a_traceback_too(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchgate.cli.cli.call", _refused)
    done = repo.cli("check")
    assert (done.code, "Permission denied" in done.err) == (3, True)
    (kept,) = Path(traces_folder(str(repo.path / ".git"))).iterdir()
    assert "somewhere" in kept.read_text()


def test_only_the_newest_traces_are_kept(repo: Repo) -> None:
    folder = Path(traces_folder(str(repo.path / ".git")))
    folder.mkdir(parents=True)
    for number in range(MOST_FILES + 5):
        (folder / f"20200101T0000{number:02}Z-1.txt").touch()
    repo.cli("check")
    kept = sorted(each.name for each in folder.iterdir())
    assert len(kept) == MOST_FILES
    assert kept[0] == "20200101T000006Z-1.txt"
