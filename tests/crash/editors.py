"""An editor that saves a target while a patch is applied: at every instant, what it wrote must survive.

Decides when and how it saves. The program is stopped (SIGSTOP, by strace) after a chosen call, reading ones
included, the editor saves in place or by rename, and the program goes on: so the instant between the last
look and the rename is one of the points. What an editor saved may stand at its place, or be kept elsewhere if
the program says where.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.crash.aftermath import told
from tests.crash.cases import Case, Place
from tests.crash.comparer import State, litter, state_of
from tests.crash.kill_points import Point, injecting, kill
from tests.crash.programs import Program, ended, ours, started
from tests.world import Answer

HOWS = ("in place", "by rename")
MARK = b"what a person wrote just now\n"


def targets(case: Case) -> list[str]:
    """Name the files that the patch changes, removes or makes, where an editor can save."""
    old, new = case.old.tree, case.new.tree
    names = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
    folders = {name for tree in (old, new) for name, (mode, _) in tree.items() if mode & 0o170000 == 0o040000}
    return sorted(set(names) - folders)


def save(target: Path, how: str) -> bool:
    """Save as an editor does; say whether it could (the folder may be gone, or not there yet)."""
    try:
        if how == "in place":
            target.write_bytes(MARK)
        else:
            beside = target.with_name(f"{target.name}.swp")
            beside.write_bytes(MARK)
            beside.replace(target)
    except OSError:
        return False
    return True


def saved_at(program: Program, case: Case, place: Place, point: Point, name: str, how: str) -> list[str]:
    """Stop a program after a call, save, let it go on; say what was lost."""
    log = place.folder.with_suffix(".stop")
    log.unlink(missing_ok=True)
    prefix = injecting(point, log, "signal=STOP")
    process = started([*prefix, *program.command(place.patch)], place)
    was_saved = False
    if (tracee := _stopped(process, log)) is not None:
        was_saved = save(place.repo.path / name, how)
        os.kill(tracee, signal.SIGCONT)
    answer = ended(process)
    if not was_saved:
        return []
    problems = lost(place, name, [answer])
    if program.ours:
        problems += _half(case, place, name, answer)
    return problems


def saved_after_a_kill(
    program: Program, case: Case, place: Place, point: Point, name: str, how: str
) -> list[str]:
    """Kill a program at a point, save, recover; say what was lost."""
    if not kill(program, place, point) or not save(place.repo.path / name, how):
        return []
    answers = [ours(place, "recover")] if program.ours else []
    problems = lost(place, name, answers)
    if program.ours:
        if answers[0].code not in {0, 3} or "Traceback" in answers[0].err:
            problems.append(f"recover said {answers[0].code}: {told(answers[0])}")
        elif answers[0].code == 0:
            problems += _half(case, place, name, None)
    return problems


def lost(place: Place, name: str, answers: Sequence[Answer]) -> list[str]:
    """Say that a save is gone, if it is: neither at its place, nor kept where an answer says."""
    target = place.repo.path / name
    if target.is_file() and target.read_bytes() == MARK:
        return []
    said = "".join(answer.out + answer.err for answer in answers)
    kept = [file for file in _files(place.repo.path) if file.read_bytes() == MARK]
    if any(str(file.relative_to(place.repo.path)) in said for file in kept):
        return []
    where = f"it is at {kept[0]}, which nobody said" if kept else "it is nowhere"
    return [f"what was saved at {name!r} is lost: {where}; said: {said.strip()[:400]}"]


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def _half(case: Case, place: Place, name: str, answer: Answer | None) -> list[str]:
    """Demand that everything but the saved file is all old or all new, as the answer says."""
    now = state_of(place.repo)
    others = {
        kind: _without(state, name) == _without(now, name)
        for kind, state in (("old", case.old), ("new", case.new))
    }
    problems = []
    if not any(others.values()):
        wrong = sorted(
            path
            for path in case.old.tree.keys() | case.new.tree.keys() | now.tree.keys()
            if now.tree.get(path) != case.old.tree.get(path) and not _about(path, name)
        )
        problems.append(f"beside {name!r} it is partial; not old: {wrong[:6]}")
    if answer is not None:
        if answer.code not in {0, 1, 3} or "Traceback" in answer.err:
            problems.append(f"exit {answer.code}: {told(answer)}")
        if answer.code != 0 and not others["old"]:
            problems.append(f"exit {answer.code} and not old: {told(answer)}")
        if answer.code == 0 and not others["new"]:
            problems.append("exit 0 and not new")
    problems += [f"left behind: {left}" for left in litter(place.repo, place.temporary)]
    return problems


def _without(state: State, name: str) -> dict[str, tuple[int, bytes]]:
    """Leave out one file, and the folders above it, which stand or fall with it."""
    return {path: content for path, content in state.tree.items() if not _about(path, name)}


def _about(path: str, name: str) -> bool:
    return name == path or name.startswith(f"{path}/") or path == f"{name}.swp"


def _stopped(process: subprocess.Popen[bytes], log: Path) -> int | None:
    """Wait until the traced program has stopped; give its pid, or None if it ended."""
    while process.poll() is None:
        if log.exists() and b"--- stopped by SIGSTOP" in log.read_bytes():
            return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()[0])
        time.sleep(0.001)
    return None


def trial(
    program: Program,
    case: Case,
    place: Place,
    points: Sequence[Point],
    chance: random.Random,
    *,
    killed: bool,
) -> tuple[str, list[str]]:
    """Save once, at one point; give where, and what was lost."""
    point, name, how = chance.choice(points), chance.choice(targets(case)), chance.choice(HOWS)
    do = saved_after_a_kill if killed else saved_at
    return f"{name!r} {how} at {point}", do(program, case, place, point, name, how)
