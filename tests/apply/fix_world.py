"""A repository with a formatter, and random states in which somebody calls `fix`."""

from __future__ import annotations

import os
import random
import stat
from dataclasses import dataclass
from pathlib import Path

from patchgate.apply.fixes.fix import FixOptions, FixResult, fix_staged
from patchgate.apply.fixes.run_fixes import FixEnvironment
from patchgate.git.repository import Repository, open_repository
from patchgate.storage.filesystem import FaultPoints
from tests.world import Repo

FORMAT = """\
for name; do
    sed 's/^\\([a-z0-9]*\\)=/\\1 = /' "$name" >"$name.new" && cat "$name.new" >"$name" && rm "$name.new"
done
"""
POLICY = """\
[commands.format]
kind = "format"
command = ["sh", "tools/format.sh", "{files}"]
files = ["*.py"]
needs = ["tools"]
on = ["commit"]
"""
State = dict[str, tuple[int, bytes]]


def formatted(content: bytes) -> bytes:
    """What the formatter makes of a file."""
    lines = content.splitlines(keepends=True)
    return b"".join(_line(line) for line in lines)


def _line(line: bytes) -> bytes:
    name, equals, value = line.partition(b"=")
    return name + b" = " + value if equals and name.isalnum() else line


def content(*lines: str) -> str:
    """Lines as a file."""
    return "".join(f"{line}\n" for line in lines)


def make(folder: Path, policy: str = POLICY) -> Repo:
    """Make a repository with some files and the formatter."""
    repo = Repo.create(folder)
    numbers = range(1, 13)
    files = {f"src/f{name}.py": content(*(f"w{each} = {name}" for each in numbers)) for name in range(6)}
    crlf = "".join(f"w{each} = 1\r\n" for each in numbers)
    repo.commit(
        {
            **files,
            "src/crlf.py": crlf,
            "notes.txt": "a=1\n",
            "tools/format.sh": FORMAT,
            "patchgate.toml": policy,
        }
    )
    return repo


@dataclass(frozen=True)
class Fixer:
    """Calls `fix` in this process."""

    repo: Repo

    @property
    def repository(self) -> Repository:
        return open_repository(self.repo.env, str(self.repo.path))

    def fix(self, *names: str, faults: FaultPoints | None = None, is_dry: bool = False) -> FixResult:
        environment = FixEnvironment(
            self.repo.env, str(self.repo.path.parent / f"{self.repo.path.name}-cache")
        )
        return fix_staged(self.repository, FixOptions(environment, names, is_dry=is_dry, faults=faults))


def state(repo: Repo) -> State:
    """Everything in the working tree with its mode, and the entries of the index."""
    found: State = {}
    for folder, folders, names in os.walk(repo.path):
        if ".git" in folders:
            folders.remove(".git")
        for name in [*folders, *names]:
            place = Path(folder, name)
            mode = place.lstat().st_mode
            is_link = stat.S_ISLNK(mode)
            data = (
                os.readlink(os.fsencode(place))
                if is_link
                else b""
                if stat.S_ISDIR(mode)
                else place.read_bytes()
            )
            found[str(place.relative_to(repo.path))] = (mode, data)
    found["the index"] = (0, repo.git("ls-files", "--stage"))
    return found


def staged(repo: Repo) -> dict[str, bytes]:
    """The files of the index."""
    names = repo.git("ls-files", "-z").split(b"\0")[:-1]
    return {os.fsdecode(name): repo.git("cat-file", "blob", ":" + os.fsdecode(name)) for name in names}


def mess_up(repo: Repo, chance: random.Random) -> None:
    """Stage some work and leave other work unstaged, at random."""
    names = [f"src/f{number}.py" for number in range(6)] + ["src/crlf.py", "src/new.py", "notes.txt"]
    chosen = chance.sample(names, chance.randint(1, 5))
    for name in chosen:
        _edit(repo, name, chance)
    if chance.random() < 0.2:
        repo.git("mv", "src/f5.py", "src/moved.py")
        _edit(repo, "src/moved.py", chance)
    repo.git("add", "-A")
    for name in chance.sample(names, chance.randint(0, 5)):
        _disturb(repo, name, chance)
    if chance.random() < 0.2:
        repo.write("src/intended.py", "later=1\n")
        repo.git("add", "-N", "src/intended.py")
    if chance.random() < 0.3:
        repo.write("src/untracked.py", "mine=1\n")


def _edit(repo: Repo, name: str, chance: random.Random) -> None:
    place = repo.path / name
    data = place.read_bytes() if place.is_file() else b""
    end = b"\r\n" if b"\r\n" in data else b"\n"
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(lines))
        made = b"w%d%s%d%s" % (at, chance.choice([b"=", b" = "]), chance.randint(10, 99), end)
        lines[at : at + chance.choice([0, 1, 1, 2])] = [made] * chance.randint(0, 2)
    made_of = b"".join(lines)
    if chance.random() < 0.1:
        made_of = made_of.removesuffix(b"\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(made_of)


def _disturb(repo: Repo, name: str, chance: random.Random) -> None:
    """Change a file further, without staging it."""
    place = repo.path / name
    what = chance.random()
    if not os.path.lexists(place):
        return
    if what < 0.7:
        _edit(repo, name, chance)
    elif what < 0.8:
        place.unlink()
    elif what < 0.9:
        place.chmod(0o755)
    else:
        place.unlink()
        place.symlink_to("f0.py")
