"""The numbered fault points, and that nothing in the room gets around them."""

from __future__ import annotations

import ast
import errno
import os
from pathlib import Path

import pytest

import patchgate.storage
from patchgate.errors import UsageError
from patchgate.storage import filesystem
from tests.faults import Fault, Faults, Kind, Operation

CHANGING = {"ftruncate", "fsync", "link", "mkdir", "makedirs", "remove", "rename", "replace", "rmdir"}
CHANGING |= {
    "symlink",
    "truncate",
    "unlink",
    "write",
    "write_bytes",
    "write_text",
    "chmod",
    "fchmod",
    "touch",
}


def test_only_three_modules_change_what_has_to_outlive_a_crash() -> None:
    room = Path(patchgate.storage.__file__).parent
    offenders = [
        f"{module.name}:{node.lineno}"
        for module in sorted(room.glob("*.py"))
        if module.name not in {"filesystem.py", "open_folder.py", "temporary_folder.py"}
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in CHANGING
    ]
    assert offenders == []


def test_without_a_plan_nothing_fails_and_nothing_is_recorded(tmp_path: Path) -> None:
    faults = Faults()
    os.close(filesystem.open_exclusive(tmp_path / "a", 0o644, faults))
    assert faults.steps == 1
    assert not faults.records


def test_a_plan_is_read_from_text() -> None:
    faults = Faults.parse("1:short,2:ENOSPC")
    assert faults.reach()
    with pytest.raises(OSError) as caught:
        faults.reach()
    assert caught.value.errno == errno.ENOSPC
    assert not faults.reach()
    assert not Faults.parse("").reach()


@pytest.mark.parametrize(
    "text", ["1", "0:kill", "-1:kill", "x:EIO", "1:EPERM", "1:eio", "²:EIO", "1:EIO;2:EIO"]
)
def test_a_plan_that_cannot_be_read_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        Faults.parse(text)


def test_a_planned_errno_is_raised_as_its_own_class() -> None:
    with pytest.raises(PermissionError):
        Faults([Fault(1, Kind.EACCES)]).reach()


def test_short_and_interrupted_writes_are_carried_on_until_all_is_written(tmp_path: Path) -> None:
    operations: list[Operation] = []
    faults = Faults(
        [Fault(2, Kind.SHORT), Fault(3, Kind.EINTR), Fault(4, Kind.SHORT)], record=operations.append
    )
    descriptor = filesystem.open_exclusive(tmp_path / "a", 0o644, faults)
    filesystem.write_all(descriptor, b"12345678", faults)
    os.close(descriptor)
    assert (tmp_path / "a").read_bytes() == b"12345678"
    assert [each.content for each in operations if each.name == "write"] == [b"1234", b"56", b"78"]


def test_a_file_is_never_made_through_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        filesystem.open_exclusive(tmp_path / "link", 0o644, Faults())
    with pytest.raises(OSError) as caught:
        filesystem.open_existing(tmp_path / "link")
    assert caught.value.errno in {errno.ELOOP, errno.EMLINK, errno.ENOENT}
    assert not (tmp_path / "elsewhere").exists()


def test_a_failed_operation_is_not_recorded(tmp_path: Path) -> None:
    operations: list[Operation] = []
    faults = Faults(record=operations.append)
    with pytest.raises(FileNotFoundError):
        filesystem.unlink(tmp_path / "missing", faults)
    assert operations == []
    assert faults.steps == 1
