"""The repositories and patches of the harness: one, five and fifty files, with every kind of change.

Decides what is applied, and what stands there before and after. It does not know who applies it. What stands
there afterwards is said by git, in a copy and left alone, never by the program under test.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.crash.comparer import Standing, State, standing, state_of
from tests.proposals import PERMISSIVE
from tests.world import Repo, pinned_environment

SIZES = (1, 5, 50)


def text(name: str, lines: int = 40) -> str:
    """Make a file of numbered lines, told from every other file by its name."""
    return "".join(f"{name} {number}\n" for number in range(lines))


def edited(name: str, lines: int = 40) -> str:
    """Make the same file with one line changed and one added."""
    return text(name, lines).replace(f"{name} 7\n", f"{name} seven\nand one more\n")


@dataclass(frozen=True)
class Place:
    """One copy in which one program is broken off once: the repository, its own TMPDIR and HOME."""

    folder: Path
    repo: Repo
    raw_index: bytes = b""

    @property
    def temporary(self) -> Path:
        """Where the program's TMPDIR is: what lies there afterwards was left behind."""
        return self.folder / "tmp"

    @property
    def patch(self) -> Path:
        """The patch, outside the repository."""
        return self.folder / "patch"


@dataclass(frozen=True)
class Case:
    """A template to copy from, and the two states that are allowed."""

    name: str
    template: Path
    old: State
    new: State

    def fresh(self, folder: Path) -> Place:
        """Copy the template to `folder`, which is emptied first."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.template, folder, symlinks=True)
        place = place_in(folder)
        # The copies have new inodes, and `git apply --index` takes such files for changed ones.
        place.repo.try_git("update-index", "-q", "--refresh")
        return replace(place, raw_index=(place.repo.path / ".git" / "index").read_bytes())

    def standing(self, place: Place, *, index: bool) -> Standing:
        """Say how a copy stands now; `index` says whether the index was to change with the working tree."""
        old = replace(self.old, raw_index=place.raw_index)
        return standing(old, self.new, state_of(place.repo), index=index)


def place_in(folder: Path) -> Place:
    """Name the parts of a copy."""
    environment = pinned_environment(folder / "home")
    environment |= {
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(folder / "home" / ".cache"),
        # The same calls in the same order each time.
        "PYTHONHASHSEED": "0",
    }
    (folder / "tmp").mkdir(exist_ok=True)
    return Place(folder, Repo(folder / "repo", environment))


def build(folder: Path, size: int) -> Case:
    """Make the repository of a size (1, 5 or 50 sections), its patch, and both states."""
    before, change = {1: _one, 5: _five, 50: _fifty}[size]()
    return make_case(folder, f"{size} file{'s' * (size > 1)}", before, change, sections=size)


def make_case(
    folder: Path,
    name: str,
    before: dict[str, str | bytes],
    change: Callable[[Repo], None],
    *,
    policy: str = PERMISSIVE,
    sections: int | None = None,
) -> Case:
    """Make a case of some files and of what changes them; the user's own unfinished work lies beside them."""
    folder.mkdir(parents=True)
    place = place_in(folder)
    repo = place.repo
    repo.path.mkdir()
    repo.git("init", "-q", "-b", "main")
    repo.git("config", "gc.auto", "0")
    repo.write("patchgate.toml", policy)
    repo.commit({"dirty.txt": "as committed\n", "run.sh": text("run"), **before})
    repo.write("dirty.txt", "stashed\n")
    repo.git("stash", "push", "-q")
    repo.write("dirty.txt", "not committed\n")
    repo.write("untracked.txt", "not tracked\n")
    _long_ago(repo.path)
    repo.git("update-index", "-q", "--refresh", "--", "run.sh")
    old = state_of(repo)
    # In a copy, for the objects of the new files must not be there beforehand.
    copy = repo.at(folder / "new")
    shutil.copytree(repo.path, copy.path, symlinks=True)
    copy.git("reset", "-q", "--hard")
    copy.git("clean", "-qfd")
    change(copy)
    copy.git("add", "-A")
    after = copy.ask("write-tree")
    place.patch.write_bytes(copy.git("diff-tree", "-p", "-r", "-M", "--full-index", "HEAD", after))
    assert sections in {None, place.patch.read_bytes().count(b"diff --git ")}
    shutil.rmtree(copy.path)
    shutil.copytree(repo.path, copy.path, symlinks=True)
    copy.try_git("update-index", "-q", "--refresh")
    copy.git("apply", "--index", "--whitespace=nowarn", str(place.patch))
    new = state_of(copy)
    shutil.rmtree(copy.path)
    return Case(name, folder, old, new)


def _long_ago(folder: Path) -> None:
    """Give every file an old time: git reads files again that are as new as their index (racy git)."""
    for above, _, files in os.walk(folder):
        for name in files:
            os.utime(Path(above, name), (1_700_000_000, 1_700_000_000), follow_symlinks=False)


def _one() -> tuple[dict[str, str | bytes], Callable[[Repo], None]]:
    def change(repo: Repo) -> None:
        repo.write("src/a.py", edited("a"))

    return {"src/a.py": text("a"), "src/b.py": text("b")}, change


def _five() -> tuple[dict[str, str | bytes], Callable[[Repo], None]]:
    before: dict[str, str | bytes] = {
        "src/a.py": text("a"),
        "src/b.py": text("b"),
        "gone/with/its/folder.txt": text("gone"),
    }

    def change(repo: Repo) -> None:
        repo.write("src/a.py", edited("a"))
        (repo.path / "src" / "b.py").unlink()
        repo.write("lib/b.py", edited("b"))
        shutil.rmtree(repo.path / "gone")
        repo.write("new/deep/made.txt", text("made"))
        (repo.path / "run.sh").chmod(0o755)

    return before, change


def _fifty() -> tuple[dict[str, str | bytes], Callable[[Repo], None]]:
    """24 changes, 8 additions, 6 deletions, 6 renames, 2 modes, and 2 × file ↔ folder."""
    before: dict[str, str | bytes] = {f"src/m{number}.py": text(f"m{number}") for number in range(21)}
    before |= {f"gone/{number // 2}/g.txt{number}": text(f"g{number}") for number in range(6)}
    before |= {f"here/r{number}.py": text(f"r{number}") for number in range(6)}
    before |= {
        "large.txt": text("large", 20_000),
        "dos.txt": text("dos").replace("\n", "\r\n"),
        "unended.txt": text("unended").rstrip("\n"),
        "kept.sh": text("kept"),
        "folder/inner.txt": text("inner"),
        "file": text("file"),
    }

    def change(repo: Repo) -> None:
        for number in range(21):
            repo.write(f"src/m{number}.py", edited(f"m{number}"))
        repo.write("large.txt", edited("large", 20_000))
        repo.write("dos.txt", edited("dos").replace("\n", "\r\n"))
        repo.write("unended.txt", edited("unended").rstrip("\n"))
        for number in range(8):
            repo.write(f"added/{number % 3}/{number}/new.txt", text(f"n{number}"), executable=number == 5)
        shutil.rmtree(repo.path / "gone")
        for number in range(6):
            (repo.path / f"here/r{number}.py").unlink()
            moved = text if number % 2 else edited
            repo.write(f"there/{number % 2}/r{number}.py", moved(f"r{number}"))
        (repo.path / "run.sh").chmod(0o755)
        repo.write("kept.sh", edited("kept"), executable=True)
        shutil.rmtree(repo.path / "folder")
        repo.write("folder", text("a file now"))
        (repo.path / "file").unlink()
        repo.write("file/inner.txt", text("in a folder now"))

    return before, change
