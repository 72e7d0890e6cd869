"""Print who loses work: eight published ways, done to pre-commit, prek, lefthook, lint-staged and patchgate.

    python -m bench.lost_work [--peers DIR] [--only 2,7] [--managers patchgate,prek] [--write FILE]

Each case runs in a repository of its own, where a part of the work is staged, and one formatter is set up
in the manager's own words. Then somebody commits. After a refusal they do what the manager proposes (`git
patchgate fix`; for the others `git add` of the file) and commit again. A cell is `LOST / JUDGED / MIXED`,
in bytes: what was in the working tree or in the index and is not there afterwards; what the formatter saw
that was not about to be committed; what was committed without having been staged. Then come other changes.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.bypass_place import Manager, Place
from bench.bypasses import machine
from bench.lost_work_cases import CASES, Case
from bench.lost_work_managers import VERSIONS, patchgate, peers, way_on
from bench.lost_work_measure import Damage, State, damage, judged_bytes

_COMMIT = ("git", "commit", "-q", "-m", "Change a part")


def outcome(case: Case, manager: Manager, folder: Path, **env: str) -> tuple[Damage, Place]:
    """Do one case to one manager."""
    place = Place(folder, manager, bad=True, merges=False, **env)
    case.make(place)
    before = State.of(place)
    refused = False
    if case.killed:
        _commit_and_kill(place)
        # Git's own lock is what everybody removes after a kill.
        (place.path / ".git" / "index.lock").unlink(missing_ok=True)
    else:
        _say(place, _COMMIT)
        refused = place.value("HEAD") == before.head
    first, judged = State.of(place), judged_bytes(place, before)
    if not refused:
        return damage(place, before, first, judged), place
    _say(place, way_on(manager))
    _say(place, _COMMIT)
    return damage(place, before, first, judged, State.of(place)), place


def _say(place: Place, argv: tuple[str, ...]) -> None:
    place.said += place.run(argv, check=False).stdout.decode("utf-8", "backslashreplace")


def _commit_and_kill(place: Place) -> None:
    """Start a commit, wait until the tool runs, and kill everything that was started."""
    home = place.folder / "home"
    for name in ("started", "goes-on"):
        os.mkfifo(home / name)
    child = subprocess.Popen(
        _COMMIT,
        cwd=place.path,
        env=place.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Opened for both, so that a manager that starts no tool does not block this.
    with child, open(os.open(home / "started", os.O_RDWR), "rb", buffering=0) as said:
        if not _is_said(said.fileno(), child):
            raise SystemExit(f"{place.manager.name} started no tool: {place.said}")
        for process in _descendants(child.pid):
            os.kill(process, signal.SIGKILL)
    for name in ("started", "goes-on"):
        (home / name).unlink()


def _is_said(pipe: int, child: subprocess.Popen[bytes]) -> bool:
    while child.poll() is None:
        if select.select([pipe], [], [], 0.2)[0]:
            return True
    return False


def _descendants(process: int) -> list[int]:
    """List a process and all below it."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                text = Path("/proc", name, "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            parents[int(name)] = int(text.rpartition(")")[2].split()[1])
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def table(
    cases: Sequence[Case],
    managers: Sequence[Manager],
    cells: Sequence[Sequence[Damage]],
    missing: Mapping[str, str],
) -> str:
    """Write the markdown table, and the sums."""
    names = [
        f"{each.name} {VERSIONS[each.name]}" if each.name in VERSIONS else each.name for each in managers
    ]
    names += [f"{name} (not run: {why})" for name, why in missing.items()]
    empty = ["–"] * len(missing)
    lines = [
        f"| # | what is there at the commit | {' | '.join(names)} |",
        f"| --- | --- |{' --- |' * len(names)}",
    ]
    for case, row in zip(cases, cells, strict=True):
        shown = [each.cell for each in row] + empty
        lines.append(f"| {case.number} | {case.what} ({case.reported}) | {' | '.join(shown)} |")
    columns = list(zip(*cells, strict=True))
    sums = [_sums(column) for column in columns]
    lines.append(f"| | all | {' | '.join(sums + empty)} |")
    return "\n".join(lines) + "\n"


def _sums(column: Sequence[Damage]) -> str:
    counts = ((each.lost, each.judged, each.mixed) for each in column)
    return " / ".join(str(sum(each)) for each in zip(*counts, strict=True))


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.lost_work")
    parser.add_argument("--peers", type=Path, help="a virtual environment for the peers, kept")
    parser.add_argument("--only", help="the numbers of some cases, by commas")
    parser.add_argument("--managers", help="the names of some managers, by commas")
    parser.add_argument("--write", type=Path, help="write the table to this file too")
    parser.add_argument("--show", action="store_true", help="print what the managers say")
    arguments = parser.parse_args()
    names = arguments.managers.split(",") if arguments.managers else [*VERSIONS, "patchgate"]
    numbers = {int(number) for number in arguments.only.split(",")} if arguments.only else None
    cases = [case for case in CASES if numbers is None or case.number in numbers]
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = Path(temporary).resolve()
        found, missing = (
            peers((arguments.peers or folder / "peers").resolve()) if set(names) - {"patchgate"} else ([], {})
        )
        managers = [*found, *([patchgate()] if "patchgate" in names else [])]
        managers = [manager for manager in managers if manager.name in names]
        missing = {name: why for name, why in missing.items() if name in names}
        cells = []
        for case in cases:
            print(f"case {case.number}: {case.what}", file=sys.stderr)
            row = []
            for manager in managers:
                found_damage, place = outcome(case, manager, folder / f"{manager.name}-{case.number}")
                row.append(found_damage)
                if arguments.show:
                    print(f"--- {manager.name}\n{place.said}", file=sys.stderr)
            cells.append(row)
    text = f"{table(cases, managers, cells, missing)}\n{machine()}"
    print(text, end="")
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
