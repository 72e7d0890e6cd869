"""Eight published ways to lose or to mix work at a commit, each a small function on a `Place`.

Each leaves a repository as somebody has it who commits a part of their work: something is staged, something
is not. `reported` is where that way was published. What the manager then does is for the runner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.bypass_place import Place

NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_FILES = ("src/a.py", "src/gone.py", "src/other.py")


@dataclass(frozen=True, slots=True)
class Case:
    """One row: its number and text, where it was published, and what makes the state.

    `killed` asks that the manager and its tool are killed while the tool runs.
    """

    number: int
    what: str
    reported: str
    make: Callable[[Place], None]
    killed: bool = False


CASES: list[Case] = []


def _case(
    number: int, what: str, reported: str, *, killed: bool = False
) -> Callable[[Callable[[Place], None]], Callable[[Place], None]]:
    def keep(make: Callable[[Place], None]) -> Callable[[Place], None]:
        CASES.append(Case(number, what, reported, make, killed))
        return make

    return keep


def _text(name: str) -> str:
    return "".join(f"{word} = '{name} {number}'\n" for number, word in enumerate(NAMES))


def _base(place: Place) -> None:
    place.plant("Source", {name: _text(name) for name in _FILES})


def _edit(place: Place, name: str, edits: dict[str, str]) -> None:
    """Give lines of a file another value; a value that begins with `=` leaves the line unformatted."""
    lines = []
    for line in (place.path / name).read_text(encoding="utf-8").splitlines():
        word = line.partition("=")[0].strip()
        value = edits.get(word)
        lines.append(line if value is None else f"{word}{value}" if value[0] == "=" else f"{word} = {value}")
    place.write(name, "\n".join(lines) + "\n")


def _stage_part(place: Place, *, meets: bool = False) -> None:
    """Stage an unformatted line of a file, then edit another line of it, or the same one, without staging."""
    _edit(place, "src/a.py", {"two": "='staged, unformatted'"})
    place.git("add", "src/a.py")
    _edit(place, "src/a.py", {"two" if meets else "eleven": "'edited afterwards, not staged'"})


@_case(1, "an unstaged deletion", "lint-staged #561")
def _deletion(place: Place) -> None:
    _base(place)
    _stage_part(place)
    (place.path / "src/gone.py").unlink()


@_case(2, "an unstaged hunk that meets a fix, and an edit elsewhere", "lefthook #1480, pre-commit #176")
def _hunk(place: Place) -> None:
    _base(place)
    _stage_part(place, meets=True)
    _edit(place, "src/other.py", {"six": "'work in another file, not staged'"})


@_case(3, "a merge in progress, resolved in part", "lint-staged #756, #1713")
def _merge(place: Place) -> None:
    _base(place)
    side = _text("src/a.py").replace("four = 'src/a.py 3'", "four = 'theirs'")
    place.plant_branch("side", {"src/a.py": side, "src/new.py": _text("src/new.py")})
    place.plant("Ours", {"src/a.py": side.replace("theirs", "ours")})
    place.run(("git", "-c", "core.hooksPath=/dev/null", "merge", "-q", "side"), check=False)
    place.write("src/a.py", side.replace("theirs", "both"))
    place.git("add", "src/a.py")
    _edit(place, "src/a.py", {"four": "'edited afterwards, not staged'"})
    _edit(place, "src/other.py", {"six": "'work in another file, not staged'"})


@_case(4, "a file that `git add -N` announced", "prek #2142, pre-commit #881, lint-staged #990")
def _intended(place: Place) -> None:
    _base(place)
    _stage_part(place, meets=True)
    place.write("src/new.py", "new = 'a file that is not staged yet'\n")
    place.git("add", "-N", "src/new.py")


@_case(5, "a symlink that became a file, and a file that became a symlink", "lint-staged #1318")
def _symlink(place: Place) -> None:
    (place.path / "src").mkdir()
    (place.path / "src/link").symlink_to("a.py")
    _base(place)
    _stage_part(place)
    (place.path / "src/link").unlink()
    place.write("src/link", "link = 'a file now, not staged'\n")
    (place.path / "src/other.py").unlink()
    (place.path / "src/other.py").symlink_to("a.py")


@_case(6, "a submodule with edits and a newer commit, not staged", "overcommit #148, hk #1283")
def _submodule(place: Place) -> None:
    source = place.folder / "source"
    place.git("init", "-q", "-b", "main", str(source))
    place.plant("Inner", {"inner.py": _text("inner.py")}, source)
    place.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "sub")
    _base(place)
    place.plant("Newer", {"inner.py": _text("newer.py")}, place.path / "sub")
    place.write("sub/inner.py", _text("newer.py") + "inner = 'edited, not committed'\n")
    _stage_part(place)


@_case(7, "a kill while the tool runs", "lint-staged #583, #1311; pre-commit #2694", killed=True)
def _kill(place: Place) -> None:
    _base(place)
    _stage_part(place)
    _edit(place, "src/other.py", {"six": "'work in another file, not staged'"})


@_case(8, "a mode change that is not staged", "hk #1283")
def _mode(place: Place) -> None:
    _base(place)
    _stage_part(place)
    for name in ("src/a.py", "src/other.py"):
        (place.path / name).chmod(0o755)
