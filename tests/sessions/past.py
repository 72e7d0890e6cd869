"""A project of 300 commits that never heard of patchgate: merges, renames, submodules, old mistakes.

It is made once by `git fast-import`, and copied for each test: a clone, and its bare upstream.
"""

from __future__ import annotations

import atexit
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.world import Repo, pinned_environment

COMMITS = 300
MODULES = ("cart", "price", "stock", "tax", "user")
SUBMODULE = "docs/_themes"
SYMLINK = "docs/readme"
MARKERS = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> side\n"


class _Stream:
    """What `git fast-import` reads; each commit says what it changes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def commit(self, message: str, *changes: str, parent: int | None = None, merge: int | None = None) -> int:
        """Add a commit on the one before or on a given one; return its mark."""
        before = parent or self.count
        self.count += 1
        self.lines += ["commit refs/heads/main", f"mark :{self.count}"]
        self.lines += [f"committer A <a@example.com> {1_600_000_000 + self.count * 3600} +0000"]
        self.lines += [f"data {len(message) + 1}", f"{message}\n"]
        self.lines += [f"from :{before}"] if before else []
        self.lines += [f"merge :{merge}"] if merge else []
        self.lines += changes
        return self.count


def _file(path: str, text: str, mode: str = "100644") -> str:
    return f"M {mode} inline {path}\ndata {len(text)}\n{text}"


def _gitlink(path: str, digit: str) -> str:
    return f"M 160000 {digit * 40} {path}"


def _module(name: str, version: int) -> str:
    functions = (f"def {name}_{number}(n):\n    return n + {number}\n" for number in range(version % 7 + 3))
    return f'"""The {name}s."""\n\n\n' + "\n\n".join(functions)


def _history() -> bytes:
    stream = _Stream()
    modules = f'[submodule "themes"]\n\tpath = {SUBMODULE}\n\turl = https://example.com/themes\n'
    stream.commit(
        "Start the shop",
        _file("README.md", "# shop\n"),
        _file("src/shop/__init__.py", ""),
        *(_file(f"src/{name}.py", _module(name, 1)) for name in MODULES),
    )
    # All that a policy of today refuses lies further back than the rehearsal looks.
    mistakes = {
        5: ("Add the themes", _file(".gitmodules", modules), _gitlink(SUBMODULE, "1")),
        12: ("Update the themes", _gitlink(SUBMODULE, "2")),
        20: ("Add a link", _file(SYMLINK, "../README.md", "120000")),
        25: ("Add notes", _file("docs/notes.md", MARKERS)),
        26: ("Finish the notes", _file("docs/notes.md", "Both.\n")),
        30: ("Add a cache by mistake", _file("src/cart.pyc", "x\n")),
        31: ("Remove the cache", "D src/cart.pyc"),
        40: ("Move the themes", f"R {SUBMODULE} docs/themes"),
        41: ("Move the themes back", f"R docs/themes {SUBMODULE}"),
        50: ("Move the modules into the package", *(f"R src/{n}.py src/shop/{n}.py" for n in MODULES)),
        80: ("Drop the themes", "D .gitmodules", f"D {SUBMODULE}"),
    }
    while stream.count < COMMITS - 1:
        number = stream.count + 1
        name = MODULES[number % len(MODULES)]
        folder = "src" if number < 50 else "src/shop"
        if number in mistakes:
            message, *changes = mistakes[number]
            stream.commit(message, *changes)
        elif number > 50 and number % 10 == 1:
            tip = stream.count
            side = stream.commit(
                f"Describe release {number}", _file(f"docs/{number}.md", f"{number}\n"), parent=tip - 2
            )
            described = _file(f"docs/{number}.md", f"{number}\n")
            stream.commit(f"Merge branch 'release-{number}'", described, parent=tip, merge=side)
        elif number > 100 and number % 20 == 5:
            page = f"{number - number % 10 - 9}.md"
            stream.commit(f"Move a page ({number})", f"R docs/{page} docs/old/{page}")
        else:
            stream.commit(
                f"Change the {name} ({number})", _file(f"{folder}/{name}.py", _module(name, number))
            )
    stream.commit("Release", _file("CHANGES.md", "Released.\n"))
    return ("\n".join(stream.lines) + "\n").encode()


@functools.cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="past"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    repo = Repo.create(folder)
    repo.git("fast-import", "--quiet", stdin=_history())
    repo.git("clone", "-q", "--bare", ".", "../upstream.git")
    repo.git("remote", "add", "origin", "../upstream.git")
    repo.git("fetch", "-q", "origin")
    repo.git("remote", "set-head", "origin", "main")
    repo.git("reset", "-q", "--hard")
    repo.git("branch", "-q", "-u", "origin/main")
    return folder


def clone(folder: Path) -> Repo:
    """Copy the clone and its upstream into a folder."""
    shutil.copytree(_made(), folder, dirs_exist_ok=True, symlinks=True)
    repo = Repo(folder / "repo", pinned_environment(folder / "home"))
    repo.git("update-index", "-q", "--refresh")
    return repo


def told(done: subprocess.CompletedProcess[bytes]) -> tuple[bool, list[tuple[str, str]]]:
    """Give whether a command of git went well, and each error that its hooks printed: rule and place."""
    said = (done.stdout + done.stderr).decode()
    assert "Traceback" not in said
    found = re.findall(r"^error\[([a-z-]+)\]: .*(?:\n --> (\S+))?", said, re.MULTILINE)
    return done.returncode == 0, found
