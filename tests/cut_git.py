"""A real git that dies: one call is killed after it has written so many bytes.

A small sh script stands before git on PATH. It numbers the calls, and runs git itself for each. In a first
run it keeps what each call wrote, which tells where the records end. In a later run it lets the first bytes
of one call through. Then it kills that call with SIGKILL, as the kernel does where memory runs out, or ends
it as git ends where it may allocate no more.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from patchgate.git.repository import known_versions

_SCRIPT = """\
#!/bin/sh
folder='{folder}'
set -C
number=1
while ! {{ printf '' >"$folder/call.$number"; }} 2>/dev/null; do
    number=$((number + 1))
done
set +C
printf '%s\\n' "$*" >"$folder/call.$number"
read -r how chosen bytes <"$folder/plan"
case $how in
keep)
    {{ '{git}' "$@"; printf '%s\\n' "$?" >"$folder/code.$number"; }} | tee "$folder/out.$number"
    read -r code <"$folder/code.$number"
    exit "$code"
    ;;
esac
case $chosen in
all | "$number") ;;
*) exec '{git}' "$@" ;;
esac
case $how:$* in
kill:* | starve:*' cat-file --batch'*)
    '{git}' "$@" | {{
        dd bs=1 count="$bytes" 2>/dev/null
        [ "$how" = kill ] || printf 'fatal: Out of memory, malloc failed\n' >&2
        kill -KILL "$$"
    }}
    ;;
starve:*)
    '{git}' "$@" | dd bs=1 count="$bytes" 2>/dev/null
    printf 'fatal: Out of memory, malloc failed\n' >&2
    exit 128
    ;;
limit:*)
    # The caller has set a limit already; this one is lower.
    ulimit -d "$bytes"
    exec '{git}' "$@"
    ;;
end:*)
    '{git}' "$@" | dd bs=1 count="$bytes" 2>/dev/null
    exit 0
    ;;
esac
"""
_END = re.compile(rb"[\n\0]")
_Said = TypeVar("_Said")


@dataclass(frozen=True)
class Call:
    """One call of git: its number, its arguments, and all that it wrote."""

    number: int
    arguments: str
    output: bytes

    @property
    def command(self) -> str:
        """The name of git's command."""
        words = iter(self.arguments.split(" "))
        for word in words:
            if word in {"-c", "-C"}:
                next(words, None)
            elif not word.startswith("-"):
                return word
        return ""

    @property
    def cuts(self) -> list[int]:
        """Every place to cut: before, between, within and behind the records."""
        ends = [0, *(found.end() for found in _END.finditer(self.output)), len(self.output)]
        within = [(low + high) // 2 for low, high in pairwise(ends)]
        return sorted({*ends, *within})

    def some_cuts(self, chance: random.Random) -> list[int]:
        """Nothing or everything, and one place between them."""
        return sorted({chance.choice((0, len(self.output))), chance.choice(self.cuts)})


class CutGit:
    """The git that dies, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        git = shutil.which("git")
        assert git is not None
        place = folder / "bin" / "git"
        place.parent.mkdir()
        place.write_text(_SCRIPT.format(folder=folder, git=git), encoding="utf-8")
        place.chmod(0o755)
        self.path = str(place.parent)

    def keep(self, ask: Callable[[], _Said]) -> tuple[_Said, list[Call]]:
        """Ask something undisturbed; give the answer, and the calls of git that it took."""
        said = self._with("keep 0 0", ask)
        return said, list(self._calls())

    def kill(self, call: int, after: int, ask: Callable[[], _Said]) -> _Said:
        """Ask something while one call is killed after so many bytes."""
        return self._with(f"kill {call} {after}", ask)

    def starve(self, call: int, after: int, ask: Callable[[], _Said]) -> _Said:
        """Ask something while one call runs out of memory after so many bytes, and says so."""
        return self._with(f"starve {call} {after}", ask)

    def end(self, call: int, after: int, ask: Callable[[], _Said]) -> _Said:
        """Ask something while one call ends after so many bytes as if all were well; no real git does."""
        return self._with(f"end {call} {after}", ask)

    def limit(self, kibibytes: int, ask: Callable[[], _Said]) -> _Said:
        """Ask something while no call may allocate more than this."""
        return self._with(f"limit all {kibibytes}", ask)

    def _with(self, plan: str, ask: Callable[[], _Said]) -> _Said:
        for place in self.folder.glob("*.*"):
            place.unlink()
        (self.folder / "plan").write_text(f"{plan}\n", encoding="ascii")
        # So that the numbers of the calls are the same each time.
        known_versions.clear()
        return ask()

    def _calls(self) -> Iterator[Call]:
        number = 1
        while (place := self.folder / f"call.{number}").exists():
            kept = self.folder / f"out.{number}"
            # One that was ended before it was asked anything has written nothing.
            output = kept.read_bytes() if kept.exists() else b""
            yield Call(number, place.read_text(encoding="utf-8", errors="replace").strip(), output)
            number += 1
