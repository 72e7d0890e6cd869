"""Real disks that refuse: full ones, folders that may not be written, files that may not grow.

Decides what is refused. Afterwards, without recover: exit 0 and all new, or a refusal and all old, nothing
left behind; and with room again, the same patch lands.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.crash.aftermath import Aftermath, look, told
from tests.crash.cases import Case, Place
from tests.crash.comparer import Kind
from tests.crash.programs import Program, ended, started
from tests.world import Answer

# Root, but held to the permissions of its own files as everybody is (capabilities(7)).
WITHOUT_POWER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@cache
def why_no_mount() -> str | None:
    """Say why no small disk can be made here; None where it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root can mount a small disk"
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
        )
        if made.returncode:
            return "mount is not allowed here"
        subprocess.run(["umount", folder], check=True)
    return None


@cache
def why_not_closed() -> str | None:
    """Say why a folder cannot refuse this process; None where it can."""
    if os.geteuid() != 0:
        return None
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        try:
            tried = subprocess.run([*WITHOUT_POWER, "touch", f"{folder}/x"], capture_output=True, check=False)
        except FileNotFoundError:
            return "root may write everywhere, and setpriv is not installed"
    return "root may write everywhere here" if b"Permission denied" not in tried.stderr else None


@contextmanager
def small_disk(case: Case, size: int) -> Iterator[Place]:
    """Mount a disk of `size` bytes, with a copy of the case on it."""
    folder = Path(tempfile.mkdtemp(prefix="crash-disk-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield case.fresh(folder / "here")
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def filled(place: Place, free: int) -> Path:
    """Fill the disk up to so many free bytes; give what fills it."""
    ballast = place.folder.parent / "ballast"
    stat = os.statvfs(place.folder)
    fill = stat.f_bavail * stat.f_frsize - free
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(fill, 1))
    return ballast


def on_a_full_disk(program: Program, case: Case, free: int) -> tuple[Answer, Aftermath]:
    """Apply with so many bytes free; then with room, where it was refused."""
    with small_disk(case, 24 << 20) as place:
        ballast = filled(place, free)
        answer = program.run(place)
        # Looking needs room itself.
        ballast.unlink()
        found = look(case, place, program, recovering=False)
        return answer, held(answer, found, _retried(program, case, place, answer))


def under_a_file_limit(program: Program, case: Case, place: Place, limit: int) -> tuple[Answer, Aftermath]:
    """Apply where no file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A child inherits it; nothing else writes meanwhile.
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        process = program.popen(place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    answer = ended(process)
    found = look(case, place, program, recovering=False)
    return answer, held(answer, found, _retried(program, case, place, answer))


def folders(place: Place) -> list[str]:
    """Name the folders of a copy that can be closed: those of the working tree, and those of `.git`."""
    repo = place.repo.path
    return sorted(
        str(Path(above).relative_to(repo))
        for above, _, _ in os.walk(repo)
        if "objects/" not in above and "hooks" not in above
    )


def with_a_closed_folder(program: Program, case: Case, place: Place, name: str) -> tuple[Answer, Aftermath]:
    """Apply where one folder may not be written."""
    closed = place.repo.path / name
    was = closed.stat().st_mode
    prefix = WITHOUT_POWER if os.geteuid() == 0 else ()
    closed.chmod(0o555)
    answer = ended(started([*prefix, *program.command(place.patch)], place))
    closed.chmod(was)
    if answer.code == 0:
        _remove_empty(closed)
    found = look(case, place, program, recovering=False)
    return answer, held(answer, found, _retried(program, case, place, answer))


def _remove_empty(closed: Path) -> None:
    """Remove the folders that could not be, and what is empty above them: as with git, such a one stays."""
    inside = [above for above, _, _ in os.walk(closed, topdown=False) if ".git" not in Path(above).parts]
    for folder in inside:
        # Refused where anything is in it.
        with suppress(OSError):
            os.removedirs(folder)


def _retried(program: Program, case: Case, place: Place, answer: Answer) -> list[str]:
    """Apply again, with room, what was refused for want of it."""
    if answer.code == 0 or not program.ours:
        return []
    again = program.run(place)
    if again.code == 0 and case.standing(place, index=program.index).kind is Kind.NEW:
        return []
    return [f"with room again it said {again.code}: {told(again)}"]


def held(answer: Answer, found: Aftermath, more: list[str]) -> Aftermath:
    """Hold the answer against what was found: 0 means all new, anything else all old, with a sentence."""
    wanted = Kind.OLD if answer.code else Kind.NEW
    problems = [*found.failures, *more]
    if found.at_once.kind is not wanted:
        problems.append(
            f"said {answer.code} and left {found.at_once.kind} {found.at_once.what}: {told(answer)}"
        )
    if answer.code not in {0, 3} or "Traceback" in answer.err or "patchgate itself failed" in answer.err:
        problems.append(f"exit {answer.code}: {told(answer)}")
    return replace(found, failures=tuple(problems))
