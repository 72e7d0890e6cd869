"""Temporary folders: gone at the end, swept after a kill, and never somebody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from patchgate.storage.owner import Owner
from patchgate.storage.temporary_folder import TemporaryFolder, sweep_temporary_folders

NOBODYS = "00000000-0000-0000-0000-000000000000"
ME = Owner.current()
MINE = f"{ME.pid}-{ME.started}-{ME.boot_id}"
HOLDS = """\
import sys
from patchgate.storage.temporary_folder import TemporaryFolder
with TemporaryFolder() as folder:
    open(folder.path + "/file", "w").close()
    print(folder.path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def held(place: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_there_in_the_block_and_gone_after_it(place: Path) -> None:
    with TemporaryFolder() as folder:
        Path(folder.path, "file").write_text("x")
        assert list(place.iterdir()) == [Path(folder.path)]
    assert list(place.iterdir()) == []


def test_what_a_killed_owner_left_is_swept_by_the_next_one(place: Path) -> None:
    process, folder = held(place)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (folder / "file").exists()
    with TemporaryFolder():
        assert not folder.exists()


def test_the_folder_of_a_living_owner_stays(place: Path) -> None:
    process, folder = held(place)
    sweep_temporary_folders()
    assert (folder / "file").exists()
    process.communicate()
    assert not folder.exists()


@pytest.mark.parametrize("name", [".patchgate-owner", "file"])
def test_a_folder_is_never_swept_by_its_name_alone(place: Path, name: str) -> None:
    other = place / f"patchgate-{os.getpid()}-1-{NOBODYS}-abcdefgh"
    other.mkdir()
    (other / name).write_bytes(b"somebody's\n")
    (place / "patchgate-abcdefgh").mkdir()
    sweep_temporary_folders()
    assert other.exists()
    assert (place / "patchgate-abcdefgh").exists()


@pytest.mark.parametrize("is_marked", [True, False])
def test_what_was_killed_before_it_could_say_anything_is_swept(place: Path, is_marked: bool) -> None:
    living, ended = (place / f"patchgate-{of}-abcdefgh" for of in (MINE, f"{os.getpid()}-1-{NOBODYS}"))
    for folder in (living, ended):
        folder.mkdir()
        if is_marked:
            (folder / ".patchgate-owner").touch()
    sweep_temporary_folders()
    assert living.exists()
    assert not ended.exists()


def test_one_that_no_block_has_taken_over_is_removed_too(place: Path) -> None:
    folder = TemporaryFolder()
    assert list(place.iterdir()) == [Path(folder.path)]
    del folder
    assert list(place.iterdir()) == []


def test_a_link_to_a_folder_that_may_go_is_not_followed(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    process, folder = held(elsewhere)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (place / folder.name).symlink_to(folder)
    sweep_temporary_folders()
    assert (folder / "file").exists()


def test_a_folder_that_was_never_made_is_removed_in_silence() -> None:
    unmade = TemporaryFolder.__new__(TemporaryFolder)
    unmade.remove()
    assert unmade.path == ""


def test_what_a_time_limit_interrupts_is_not_closed_twice(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its alarm is raised wherever it comes, also between the call and what follows it."""
    close = os.close

    def interrupted(descriptor: int) -> None:
        close(descriptor)
        raise TimeoutError

    folder = TemporaryFolder()
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", interrupted)
        with pytest.raises(TimeoutError):
            folder.remove()
    folder.remove()
