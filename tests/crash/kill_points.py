"""Kill a program at every system call that changes something, then look.

Decides where. `strace -e inject=CALL:signal=KILL:when=N` kills on entry of the N-th call of one name, so
that the call is not made. It counts for each process by itself: so the program itself is killed without
`-f`, where nothing but its own calls count, and each git that works for it by a `git` on `PATH` that puts
strace before the one child that is meant. One traced run says which N are calls that change the disk in
reach of the apply; the thousand opens with which Python starts are not among them.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests.crash.cases import Case, Place
from tests.crash.programs import Program, ended, started

CHANGING = (
    *("openat", "open", "creat", "write", "writev", "pwrite64", "copy_file_range", "sendfile", "ftruncate"),
    *("truncate", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink"),
    *(
        "unlinkat",
        "mkdir",
        "mkdirat",
        "rmdir",
        "chmod",
        "fchmod",
        "fchmodat",
        "utimensat",
        "fsync",
        "fdatasync",
    ),
)
LOOKING = (
    "newfstatat",
    "lstat",
    "stat",
    "fstat",
    "statx",
    "read",
    "pread64",
    "readlink",
    "readlinkat",
    "close",
)
_LINE = re.compile(r"^(?:(?P<pid>[0-9]+) +)?(?P<name>[a-z0-9_]+)\((?P<rest>.*)$")
_MAKING = re.compile("O_CREAT|O_TRUNC")
# An absolute path counts as itself, not as what lies below the folder that a call would start from.
_AWAY = re.compile(r'AT_FDCWD<[^>]*>, (?="/)| = [0-9]+<.*$')
_OPENING = frozenset({"openat", "open", "creat"})


@cache
def why_not() -> str | None:
    """Say why this machine cannot break off a program at a system call; None where it can."""
    if sys.platform != "linux" or not shutil.which("strace"):
        return "strace is not installed"
    plan = ["-e", "trace=unlink,unlinkat", "-e", "inject=unlink,unlinkat:signal=KILL"]
    tried = subprocess.run(
        ["strace", "-o", "/dev/null", *plan, "rm", "-f", "/nonexistent"], capture_output=True, check=False
    )
    if tried.returncode not in {-signal.SIGKILL, 128 + signal.SIGKILL}:
        return "strace may not trace here, or cannot inject signals"
    return None


@dataclass(frozen=True)
class Point:
    """The `number`-th call of a name: of the program itself, or of the `child`-th git that it starts."""

    name: str
    number: int
    line: str
    child: int = 0

    def __str__(self) -> str:
        where = f"git {self.child}: " if self.child else ""
        return f"{where}{self.name} {self.number} {self.line}"


def points(program: Program, case: Case, folder: Path, *, reading: bool = False) -> list[Point]:
    """Trace one undisturbed run; give each call of the program itself that changes something in the copy."""
    place = case.fresh(folder)
    return points_of(program.command(place.patch), place, reading=reading)


def points_of(command: Sequence[str], place: Place, *, reading: bool = False) -> list[Point]:
    """Trace one run of a command in a copy; give each of its own calls that changes something there.

    With `reading` those that only look are points too, for what happens between a look and a change.
    """
    log = place.folder.with_suffix(".trace")
    names = _known((*CHANGING, *LOOKING) if reading else CHANGING)
    answer = ended(
        started(["strace", "-y", "-s", "0", "-o", str(log), "-e", f"trace={names}", *command], place)
    )
    assert answer.code == 0, answer.err + answer.out
    return list(_changing(log.read_text("utf-8", "replace").splitlines(), place, reading=reading))


@cache
def _known(names: tuple[str, ...]) -> str:
    """Name those of the calls that strace knows on this architecture."""
    known = []
    for name in names:
        tried = subprocess.run(
            ["strace", "-o", "/dev/null", "-e", f"trace={name}", "true"], capture_output=True, check=False
        )
        if tried.returncode == 0:
            known.append(name)
    return ",".join(known)


def _changing(lines: Iterable[str], place: Place, *, reading: bool = False) -> Iterable[Point]:
    """Count the calls by name, and choose those that succeed and change something in the copy."""
    counted: Counter[str] = Counter()
    for line in lines:
        if (match := _LINE.match(line)) is None:
            continue
        name, rest = match["name"], match["rest"]
        counted[name] += 1
        if not reading and (" = -1 " in rest or (name in _OPENING and not _MAKING.search(rest))):
            continue
        # By its handle, or an absolute path, or relative to the root of the working tree, where it stands.
        if str(place.folder) in _AWAY.sub("", rest) or (rest.startswith('"') and not rest.startswith('"/')):
            told = rest.replace(str(place.folder), "").rpartition(" = ")[0].strip()[:120]
            yield Point(name, counted[name], told)


def kill(program: Program, place: Place, point: Point, *, command: Sequence[str] = ()) -> bool:
    """Run a program in a copy and kill it at a point; say whether it was reached."""
    log = place.folder.with_suffix(".kill")
    log.unlink(missing_ok=True)
    prefix = injecting(point, log)
    plain = list(command) or program.command(place.patch)
    if not point.child:
        answer = ended(started([*prefix, *plain], place))
        return answer.code in {-signal.SIGKILL, 128 + signal.SIGKILL}
    ended(started(plain, place, _in_front_of_git(place, point.child, prefix)))
    return log.exists() and "+++ killed by SIGKILL" in log.read_text("utf-8", "replace")


def injecting(point: Point, log: Path, what: str = "signal=KILL") -> list[str]:
    """Write the strace that does something at a point."""
    return [
        *("strace", "-y", "-s", "0", "-o", str(log), "-e", f"trace={point.name}"),
        *("-e", f"inject={point.name}:{what}:when={point.number}"),
    ]


def children(
    program: Program, case: Case, folder: Path, chance: random.Random, most: int | None = None
) -> list[Point]:
    """Trace each git that the program starts, or `most` of them; give their calls that change the copy."""
    place = case.fresh(folder)
    answer = ended(started(program.command(place.patch), place, _in_front_of_git(place, 0, ["true"])))
    assert answer.code == 0, answer.err + answer.out
    numbers = range(1, len((place.folder / "count").read_bytes()) + 1)
    found: list[Point] = []
    for child in numbers if most is None else chance.sample(numbers, len(numbers)):
        place = case.fresh(folder)
        log = place.folder.with_suffix(".trace")
        log.unlink(missing_ok=True)
        tracing = ["strace", "-y", "-s", "0", "-o", str(log), "-e", f"trace={_known(CHANGING)}"]
        ended(started(program.command(place.patch), place, _in_front_of_git(place, child, tracing)))
        lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
        found += [Point(each.name, each.number, each.line, child) for each in _changing(lines, place)]
        if most is not None and len({point.child for point in found}) >= most:
            break
    return found


def _in_front_of_git(place: Place, child: int, prefix: Sequence[str]) -> dict[str, str]:
    """Put a `git` first on `PATH` that counts its starts, and starts the `child`-th behind `prefix`."""
    git = shutil.which("git", path=place.repo.env["PATH"])
    script = place.folder / "bin" / "git"
    script.parent.mkdir()
    quoted = " ".join(f"'{word}'" for word in prefix)
    script.write_text(
        "#!/bin/sh\n"
        f"printf . >>'{place.folder}/count'\n"
        f"if [ $(wc -c <'{place.folder}/count') -eq {child} ]; then exec {quoted} '{git}' \"$@\"; fi\n"
        f"exec '{git}' \"$@\"\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return {"PATH": f"{script.parent}:{place.repo.env['PATH']}"}


def spread(chosen: Sequence[Point], number: int, chance: random.Random) -> list[Point]:
    """Choose so many points, from every stretch of the run."""
    if number >= len(chosen):
        return list(chosen)
    edges = [len(chosen) * step // number for step in range(number + 1)]
    return [chosen[chance.randrange(low, high)] for low, high in pairwise(edges)]
