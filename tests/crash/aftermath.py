"""What is found after something was broken off, and what `git patchgate recover` makes of it.

Decides what counts as a failure of a program that claims to land whole or not at all: partial, anything left
behind, an exit code that is not told, a damaged ledger or object store, a recover that changes something the
second time, a repository in which the next apply does not work.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.crash.cases import Case, Place
from tests.crash.comparer import Kind, Standing, everything, litter
from tests.crash.programs import Program, ours
from tests.world import Answer


@dataclass(frozen=True)
class Aftermath:
    """How a copy stood at once, and after recover; `failures` is empty where everything held."""

    at_once: Standing
    left: tuple[str, ...]
    afterwards: Standing
    failures: tuple[str, ...] = ()


@dataclass
class Counts:
    """A row of the table: how many points there were, and how they ended."""

    name: str
    points: int = 0
    at_once: Counter[Kind] = field(default_factory=Counter)
    with_litter: int = 0
    afterwards: Counter[Kind] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, point: str, found: Aftermath) -> None:
        """Count one point."""
        self.points += 1
        self.at_once[found.at_once.kind] += 1
        self.with_litter += bool(found.left)
        self.afterwards[found.afterwards.kind] += 1
        self.failures += [f"{self.name}, {point}: {failure}" for failure in found.failures]


def look(case: Case, place: Place, program: Program, *, recovering: bool = True) -> Aftermath:
    """Look at a copy, recover it if the program can, and look again."""
    at_once = case.standing(place, index=program.index)
    left = tuple(litter(place.repo, place.temporary))
    if not program.ours:
        return Aftermath(at_once, left, at_once)
    if not recovering:
        return Aftermath(at_once, left, at_once, tuple(_problems(place, at_once, left)))
    failures = []
    first = ours(place, "recover")
    if first.code != 0:
        failures.append(f"recover said {first.code}: {told(first)}")
    afterwards = case.standing(place, index=program.index)
    if at_once.kind is not Kind.PARTIAL and not left and afterwards.kind is not at_once.kind:
        failures.append(f"recover made {afterwards.kind} of {at_once.kind}")
    failures += _problems(place, afterwards, tuple(litter(place.repo, place.temporary)))
    before = everything(place.folder)
    second = ours(place, "recover")
    if second.code != 0:
        failures.append(f"the second recover said {second.code}: {told(second)}")
    after = everything(place.folder)
    if before != after:
        names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        failures.append(f"the second recover changed {names}")
    return Aftermath(at_once, left, afterwards, tuple(failures))


def _problems(place: Place, stands: Standing, left: tuple[str, ...]) -> list[str]:
    """Hold a copy against what must be true of it once everything is over."""
    problems = []
    if stands.kind is Kind.PARTIAL:
        problems.append(f"partial: {'; '.join(stands.what)}")
    if left:
        problems.append(f"left behind: {', '.join(left)}")
    fsck = place.repo.try_git("fsck", "--strict", "--no-dangling", "--no-progress")
    if fsck.returncode or fsck.stderr:
        problems.append(f"git fsck: {fsck.stderr.decode('utf-8', 'replace').strip()}")
    chain = ours(place, "log", "--verify")
    if chain.code != 0:
        problems.append(f"log --verify said {chain.code}: {told(chain)}")
    return problems


def works_again(case: Case, place: Place, program: Program, stands: Standing) -> list[str]:
    """Apply the same patch once more: it must land, or be told as one that has."""
    answer = program.run(place)
    now = case.standing(place, index=program.index)
    wanted = 0 if stands.kind is Kind.OLD else 1
    if answer.code == wanted and now.kind is Kind.NEW:
        return []
    return [f"the next apply said {answer.code} and left {now.kind} {now.what}: {told(answer)}"]


def told(answer: Answer) -> str:
    """Put what a command said on one line."""
    return " / ".join(line.strip() for line in (answer.err + answer.out).splitlines() if line.strip())[:600]
