"""Several at once: two to eight applies, a commit that races, a lock that somebody holds.

Decides who starts together, and what a serial result is. Each patch changes one line of its own in each of
its files, so every order of the same winners gives the same files; two that want the same line cannot both
win.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.crash.aftermath import told
from tests.crash.cases import Case, Place, make_case
from tests.crash.comparer import Kind, content_of, litter, state_of
from tests.crash.programs import Program, ended
from tests.world import Answer, Repo

FILES, LINES = 12, 120


@dataclass(frozen=True)
class Wish:
    """One patch: the line that it changes in each of its files, and to what."""

    number: int
    lines: Mapping[str, int]

    def patch(self) -> bytes:
        """Write it as git would."""
        parts = []
        for name, line in sorted(self.lines.items()):
            first, last = line - 3, line + 3
            body = "".join(
                f"-{old_line(name, at)}\n+{self.text(name)}\n" if at == line else f" {old_line(name, at)}\n"
                for at in range(first, last + 1)
            )
            hunk = f"@@ -{first},7 +{first},7 @@\n"
            parts.append(f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n{hunk}{body}")
        return "".join(parts).encode("ascii")

    def text(self, name: str) -> str:
        """Give the line that it writes."""
        return f"{name} by {self.number}"


def old_line(name: str, line: int) -> str:
    """Give a line, counted from 1, as it is before."""
    return f"{name} line {line}"


def build(folder: Path) -> Case:
    """Make the repository in which several write; its own patch touches files that no wish does."""
    before: dict[str, str | bytes] = {
        f"d{number % 3}/f{number}.txt": "".join(
            f"{old_line(f'd{number % 3}/f{number}.txt', line)}\n" for line in range(1, LINES + 1)
        )
        for number in range(FILES)
    }
    before |= {f"c{number}.txt": "as it was\n" for number in range(20)}

    def change(repo: Repo) -> None:
        for number in range(20):
            repo.write(f"c{number}.txt", "as the patch has it\n")

    return make_case(folder, "several", before, change)


def wishes(number: int, how: str, chance: random.Random) -> list[Wish]:
    """Make so many patches: `disjoint`, `overlapping` (in the same files) or `same` (the same line)."""
    names = [f"d{each % 3}/f{each}.txt" for each in range(FILES)]
    chance.shuffle(names)
    if how == "disjoint":
        return [Wish(each, dict.fromkeys(names[each::number], 50)) for each in range(number)]
    step = 0 if how == "same" else 10
    return [
        Wish(each, dict.fromkeys(chance.sample(names, FILES // 2), 20 + step * each))
        for each in range(number)
    ]


def together(commands: Sequence[Sequence[str]], place: Place) -> list[Answer]:
    """Start commands at one moment (each waits for one pipe to close), and wait for all."""
    reading, writing = os.pipe()
    waiting = ["sh", "-c", 'read go; exec "$@"', "sh"]
    processes = [
        subprocess.Popen(
            [*waiting, *command],
            cwd=place.repo.path,
            env=place.repo.env,
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for command in commands
    ]
    os.close(reading)
    os.close(writing)
    return [ended(process) for process in processes]


def applied_together(program: Program, place: Place, wanted: Sequence[Wish]) -> list[Answer]:
    """Let a program apply every wish at once."""
    files = []
    for wish in wanted:
        file = place.folder / f"wish{wish.number}"
        file.write_bytes(wish.patch())
        files.append(file)
    return together([program.command(file) for file in files], place)


def not_serial(
    case: Case, place: Place, program: Program, wanted: Sequence[Wish], answers: Sequence[Answer]
) -> list[str]:
    """Say in which way the result is not that of the winners, one after the other in some order."""
    problems = []
    won = [wish for wish, answer in zip(wanted, answers, strict=True) if answer.code == 0]
    lines: dict[tuple[str, int], Wish] = {}
    for wish in won:
        for name, line in wish.lines.items():
            if (other := lines.setdefault((name, line), wish)) is not wish:
                problems.append(f"{other.number} and {wish.number} both won line {line} of {name}")
    expected = dict(case.old.tree)
    for name in {name for name, _ in lines}:
        content = "".join(
            f"{lines[name, at].text(name) if (name, at) in lines else old_line(name, at)}\n"
            for at in range(1, LINES + 1)
        )
        expected[name] = (expected[name][0], content.encode("ascii"))
    now = state_of(place.repo)
    numbers = [wish.number for wish in won]
    problems += [
        f"{name} is not what the winners {numbers} make of it"
        for name in sorted(expected.keys() | now.tree.keys())
        if expected.get(name) != now.tree.get(name)
    ]
    # Porcelain, which looks into a file whose time alone differs.
    if program.index and place.repo.try_git("diff", "--quiet", "--", "d0", "d1", "d2").returncode:
        problems.append("the index is not that of the working tree")
    if program.ours:
        problems += _ill_told(answers)
        problems += [f"left behind: {name}" for name in litter(place.repo, place.temporary)]
        if not won:
            problems.append("nobody won")
    return problems


def _ill_told(answers: Sequence[Answer]) -> list[str]:
    """Demand of every loser a rejection or undecided, with a sentence."""
    problems = []
    for answer in answers:
        if answer.code not in {0, 1, 3} or "Traceback" in answer.err:
            problems.append(f"exit {answer.code}: {told(answer)}")
        elif answer.code and not told(answer):
            problems.append(f"exit {answer.code} without a word")
    return problems


def commit_races(program: Program, case: Case, place: Place, seconds: float) -> list[str]:
    """Apply the case's patch while `git commit -a` starts `seconds` later; demand commits without a half."""
    head = place.repo.head()
    allowed = _whole_trees(program, case, place)
    process = program.popen(place)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        place.repo.try_git("commit", "-q", "--no-verify", "-a", "-m", "Race")
    answer = ended(process)
    problems = []
    tree = place.repo.ask("rev-parse", "HEAD^{tree}")
    if place.repo.head() != head and tree not in allowed:
        names = place.repo.ask("diff", "--name-only", head, "HEAD").split()
        problems.append(f"the commit has half a patch: {len(names)} files")
    now = state_of(place.repo)
    kind = Kind.OLD if now.tree == case.old.tree else Kind.NEW if now.tree == case.new.tree else Kind.PARTIAL
    if kind is Kind.PARTIAL or (answer.code == 0) != (kind is Kind.NEW):
        problems.append(f"exit {answer.code} and the working tree is {kind}: {told(answer)}")
    if program.ours:
        problems += _ill_told([answer])
        problems += [f"left behind: {name}" for name in litter(place.repo, place.temporary)]
    return problems


def _whole_trees(program: Program, case: Case, place: Place) -> set[str]:
    """Make what `git commit -a` commits before and after, in copies."""
    trees = set()
    for new in (False, True):
        copy = replace(place, repo=place.repo.at(place.folder / "copy"))
        shutil.copytree(place.repo.path, copy.repo.path, symlinks=True)
        if new:
            copy.repo.try_git("update-index", "-q", "--refresh")
            copy.repo.git("apply", *["--index"] * program.index, str(place.patch))
        copy.repo.git("commit", "-q", "--no-verify", "-a", "-m", "Race")
        trees.add(copy.repo.ask("rev-parse", "HEAD^{tree}"))
        shutil.rmtree(copy.repo.path)
    return trees


def against_a_lock(program: Program, case: Case, place: Place) -> list[str]:
    """Apply under an `index.lock` that somebody holds: undecided, all old, and the lock is still theirs."""
    lock = place.repo.path / ".git" / "index.lock"
    lock.write_bytes(b"somebody's")
    was = content_of(lock)
    answer = program.run(place)
    problems = []
    if not lock.exists() or content_of(lock) != was:
        problems.append("the lock was taken away")
    lock.unlink(missing_ok=True)
    stands = case.standing(place, index=program.index)
    if answer.code == 0 or stands.kind is not Kind.OLD:
        problems.append(f"exit {answer.code} and {stands.kind} under a held index.lock")
    if program.ours and (answer.code != 3 or "index.lock" not in told(answer)):
        problems.append(f"exit {answer.code}: {told(answer)}")
    return problems
