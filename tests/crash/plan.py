"""What is broken off, part by part: the tasks of a run, chosen by its seed.

Decides how many points each part has, short and long. It performs none of them.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.crash import cases, disks, editors, kill_points, random_signals, writers
from tests.crash.aftermath import Aftermath, look, works_again
from tests.crash.cases import SIZES, Case, Place
from tests.crash.kill_points import Point
from tests.crash.programs import Program
from tests.world import EXECUTABLE

PARTS = ("kill", "child", "recover", "signal", "together", "commit", "editor", "disk", "limit", "closed")
# None: the program ended before it came to the point, and there is nothing to count.
Found = Aftermath | list[str] | None
RECOVER = [str(EXECUTABLE), "recover"]


@dataclass(frozen=True)
class Task:
    """One thing to break off: the row that it counts in, and how to do it in a folder of its own."""

    row: str
    where: str
    do: Callable[[Path], Found]


class Plan:
    """Makes the tasks of each part for one program."""

    def __init__(self, program: Program, folder: Path, seed: int, *, is_long: bool) -> None:
        self.program = program
        self.folder = folder
        self.chance = random.Random(f"{seed} {program.name}")
        self.is_long = is_long
        self.built: dict[str, Case] = {}

    def case(self, size: int) -> Case:
        """Build a case once."""
        name = str(size)
        if name not in self.built:
            self.built[name] = cases.build(self.folder / name, size)
        return self.built[name]

    def several(self) -> Case:
        """Build the repository in which several write."""
        if "several" not in self.built:
            self.built["several"] = writers.build(self.folder / "several")
        return self.built["several"]

    def points(self, size: int, *, reading: bool = False) -> list[Point]:
        """Trace a run."""
        return kill_points.points(self.program, self.case(size), self.folder / "traced", reading=reading)

    def number(self, many: int, few: int) -> int:
        """Choose by the length of the run."""
        return many if self.is_long else few

    def kill(self) -> Iterable[Task]:
        """Kill at every call that changes something."""
        for size in SIZES if self.is_long or not self.program.ours else SIZES[1:2]:
            case, found = self.case(size), self.points(size)
            chosen = kill_points.spread(
                found, self.number(len(found), 2 if self.program.ours else 4), self.chance
            )
            for step, point in enumerate(chosen):
                yield self._task(f"kill, {case.name}", point, self._killed(case, point, again=step % 10 == 0))

    def child(self) -> Iterable[Task]:
        """Kill each git at every call of its own that changes something."""
        if not self.program.ours:
            return
        case = self.case(5)
        found = kill_points.children(
            self.program, case, self.folder / "traced", self.chance, None if self.is_long else 1
        )
        for point in kill_points.spread(found, self.number(len(found), 2), self.chance):
            yield self._task(f"kill its git, {case.name}", point, self._killed(case, point, again=False))

    def recover(self) -> Iterable[Task]:
        """Kill, kill recover, kill the second recover, recover."""
        if not self.program.ours:
            return
        for size in SIZES[1:] if self.is_long else SIZES[1:2]:
            case = self.case(size)
            for point in kill_points.spread(self.points(size), self.number(100, 1), self.chance):
                seed = self.chance.random()
                yield self._task(
                    f"kill, kill recover twice, {case.name}", point, self._deeper(case, point, seed)
                )

    def signal(self) -> Iterable[Task]:
        """Send a signal at any time."""
        for size in SIZES if self.is_long else SIZES[1:2]:
            case = self.case(size)
            found = [] if kill_points.why_not() else self.points(size)
            seconds = random_signals.seconds_of_a_run(self.program, case.fresh(self.folder / "timed"))
            for step in range(self.number(100, 1)):
                chance = random.Random(f"{self.chance.random()}")

                def do(
                    folder: Path,
                    case: Case = case,
                    found: Sequence[Point] = found,
                    seconds: float = seconds,
                    chance: random.Random = chance,
                ) -> Found:
                    where, after = random_signals.trial(
                        self.program, case, case.fresh(folder), found, seconds, chance
                    )
                    return _placed(after, where)

                yield Task(f"signal, {case.name}", f"trial {step}", do)

    def together(self) -> Iterable[Task]:
        """Let two to eight apply at once."""
        case = self.several()
        for how in ("disjoint", "overlapping", "same"):
            for step in range(self.number(67, int(how == "overlapping"))):
                wanted = writers.wishes(self.chance.choice([2, 3, 5, 8]), how, self.chance)

                def do(folder: Path, wanted: Sequence[writers.Wish] = wanted) -> Found:
                    place = case.fresh(folder)
                    answers = writers.applied_together(self.program, place, wanted)
                    return writers.not_serial(case, place, self.program, wanted, answers)

                yield Task(f"2 to 8 at once, {how}", f"trial {step}, {len(wanted)} at once", do)

    def commit(self) -> Iterable[Task]:
        """Let `git commit -a` race, and somebody hold the lock."""
        case = self.several()
        seconds = random_signals.seconds_of_a_run(self.program, case.fresh(self.folder / "timed"))
        for step in range(self.number(100, 1)):
            moment = self.chance.uniform(0, seconds)

            def do(folder: Path, moment: float = moment) -> Found:
                return writers.commit_races(self.program, case, case.fresh(folder), moment)

            yield Task("git commit -a races", f"trial {step}, after {moment:.3f} s", do)
        yield Task(
            "index.lock is held",
            "a left lock",
            lambda folder: writers.against_a_lock(self.program, case, case.fresh(folder)),
        )

    def editor(self) -> Iterable[Task]:
        """Let a person save a target."""
        case = self.case(5)
        for killed, found in ((False, self.points(5, reading=True)), (True, self.points(5))):
            for point in (self.chance.choice(found) for _ in range(self.number(300, 1))):
                chance = random.Random(f"{self.chance.random()}")

                def do(
                    folder: Path, point: Point = point, chance: random.Random = chance, killed: bool = killed
                ) -> Found:
                    where, problems = editors.trial(
                        self.program, case, case.fresh(folder), [point], chance, killed=killed
                    )
                    return [f"{where}: {problem}" for problem in problems]

                yield self._task("an editor saves" + " after a kill" * killed, point, do)

    def disk(self) -> Iterable[Task]:
        """Apply on disks that fill at different points."""
        case = self.case(50)
        for free in self._steps(0, 1200 << 10, 8 << 10):

            def do(_: Path, free: int = free) -> Found:
                return disks.on_a_full_disk(self.program, case, free)[1]

            yield Task("a full disk", f"{free >> 10} KiB free", do)

    def limit(self) -> Iterable[Task]:
        """Apply where no file may grow beyond a size."""
        case = self.case(50)
        for limit in self._steps(0, 400 << 10, 4 << 10):

            def do(folder: Path, limit: int = limit) -> Found:
                return disks.under_a_file_limit(self.program, case, case.fresh(folder), limit)[1]

            yield Task("RLIMIT_FSIZE", f"{limit >> 10} KiB", do)

    def closed(self) -> Iterable[Task]:
        """Apply where one folder may not be written."""
        case = self.case(50)
        names = disks.folders(case.fresh(self.folder / "timed"))
        for name in names if self.is_long else self.chance.sample(names, 1):

            def do(folder: Path, name: str = name) -> Found:
                return disks.with_a_closed_folder(self.program, case, case.fresh(folder), name)[1]

            yield Task("a folder may not be written", name, do)

    def why_not(self, part: str) -> str | None:
        """Say why this machine cannot do a part."""
        if part in {"kill", "child", "recover", "editor"}:
            return kill_points.why_not()
        if part == "disk":
            return disks.why_no_mount()
        return disks.why_not_closed() if part == "closed" else None

    def _steps(self, low: int, high: int, step: int) -> list[int]:
        every = list(range(low, high, step))
        return every if self.is_long else sorted(self.chance.sample(every, 2))

    def _task(self, row: str, point: Point, do: Callable[[Path], Found]) -> Task:
        return Task(row, str(point), do)

    def _killed(self, case: Case, point: Point, *, again: bool) -> Callable[[Path], Found]:
        def do(folder: Path) -> Found:
            place = case.fresh(folder)
            if not kill_points.kill(self.program, place, point):
                return None
            found = look(case, place, self.program)
            if not (again and self.program.ours):
                return found
            more = works_again(case, place, self.program, found.afterwards)
            return Aftermath(found.at_once, found.left, found.afterwards, (*found.failures, *more))

        return do

    def _deeper(self, case: Case, point: Point, seed: float) -> Callable[[Path], Found]:
        return lambda folder: killed_three_times(
            self.program, case, case.fresh(folder), point, random.Random(seed)
        )


def killed_three_times(
    program: Program, case: Case, place: Place, point: Point, chance: random.Random
) -> Aftermath:
    """Kill an apply, then twice the recover of what is left, each at a point of its own; recover and look."""
    kill_points.kill(program, place, point)
    spare = place.folder.with_name(f"{place.folder.name}-spare")
    for _ in range(2):
        # The points are those of a recover of this very state, traced in a copy that is put back afterwards.
        shutil.rmtree(spare, ignore_errors=True)
        shutil.copytree(place.folder, spare, symlinks=True)
        found = kill_points.points_of(RECOVER, place)
        shutil.rmtree(place.folder)
        spare.rename(place.folder)
        if not found:
            break
        kill_points.kill(program, place, chance.choice(found), command=RECOVER)
    return look(case, place, program)


def _placed(found: Aftermath, where: str) -> Aftermath:
    failures = tuple(f"{where}: {failure}" for failure in found.failures)
    return Aftermath(found.at_once, found.left, found.afterwards, failures)
