"""Write a report to files besides standard output: `--output-file FORMAT=FILE`, and a job's summary.

A file that cannot be written is a warning, and never another verdict.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate.cli.output import FORMATS, render, warn
from patchgate.errors import UsageError
from patchgate.git.quoting import printable

if TYPE_CHECKING:
    from patchgate.git.repository import Repository
    from patchgate.report.verdict import Report

OutputFile = tuple[str, str]
"""The name of a format, and the path of the file that gets the report in it."""


def output_files(values: Sequence[str], directory: str) -> list[OutputFile]:
    """Read the values of `--output-file`; a relative path starts from `directory`.

    Raises:
        UsageError: a value is not `FORMAT=FILE` with a known format.
    """
    known = [name for name, _, _ in FORMATS]
    found: list[OutputFile] = []
    for value in values:
        name, equals, file = value.partition("=")
        if name not in known or not equals or not file or "\0" in file:
            raise UsageError(
                f"--output-file {printable(value, 100)} is not FORMAT=FILE",
                f"write it like sarif=patchgate.sarif; the formats are {', '.join(known)}",
            )
        found.append((name, os.path.join(directory, file)))
    return found


def write_files(report: Report, files: Sequence[OutputFile], repository: Repository, summary: str) -> None:
    """Write a report to its files, each replaced atomically, and append the summary of a job.

    Args:
        summary: the file that the engine shows as the summary of the job; empty if there is none.
    """
    from patchgate.cli.options import with_config_warnings
    from patchgate.storage.atomic_write import write_atomically

    for form, file in files:
        options = {"color": False} if form == "full" else {}
        text = render(with_config_warnings(report, repository, form), form, **options)
        try:
            place = _checked(file, repository)
            if _is_special(place, repository):
                with open(place, "ab", opener=_without_waiting) as stream:
                    stream.write(_encode(text))
            else:
                write_atomically(place, _encode(text))
        except OSError as error:
            _report_unwritten(file, error)
    if summary:
        try:
            # Each step appends to the same file.
            with open(summary, "ab", opener=_without_waiting) as stream:
                stream.write(_encode(render(report, "markdown") + "\n"))
        except (OSError, ValueError) as error:
            _report_unwritten(summary, error)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, and a FIFO that nobody reads not at all."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def _checked(file: str, repository: Repository) -> Path:
    """Return the place of a file, without `..`; one of the working tree must really be there.

    A change can make a folder of the working tree a symlink.

    Raises:
        OSError: its folder leads elsewhere, or is git's own.
    """
    place = Path(os.path.abspath(file))
    if (work_tree := repository.work_tree) is None:
        return place
    root = os.path.realpath(work_tree)
    real = os.path.realpath(place.parent)
    # The outermost one: the working tree may have a symlink to itself.
    for folder in reversed(place.parents):
        if os.path.realpath(folder) == root:
            own = os.path.realpath(repository.git_dir)
            meant = os.path.normpath(os.path.join(root, place.parent.relative_to(folder)))
            if real != meant or _is_in(real, own):
                raise OSError(errno.ELOOP, "its folder is a symlink of the working tree, or git's own")
            break
    return place


def _is_special(place: Path, repository: Repository) -> bool:
    """Return whether a place is a device or a pipe, which no file replaces, such as `/dev/stdout`.

    A symlink of the working tree is not followed: a change can bring it.
    """
    try:
        mode = os.lstat(place).st_mode
        root = repository.work_tree
        if stat.S_ISLNK(mode) and (root is None or not _is_in(str(place), root)):
            mode = os.stat(place).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))


def _is_in(folder: str, root: str) -> bool:
    return os.path.join(folder, "").startswith(os.path.join(root, ""))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _report_unwritten(file: str, error: OSError | ValueError) -> None:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    warn([f"{printable(file, 200)} could not be written: {reason}"])
