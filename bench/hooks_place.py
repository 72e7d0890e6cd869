"""The repositories in which hooks are timed: installed, warm, ten files staged, the same before every run.

Decides what a hook meets: the environment and folder that git gives it, HEAD with a receipt, two of the ten
files added, and an index that is put back when another program wrote it. It also decides whether the fast
path answers at all: then a hook says yes, and leaves its pending receipt, where git-patchgate cannot start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.pairs import Command
from bench.worlds import POLICY, Wide, World, make_wide

OFF = ("-c", "core.hooksPath=/dev/null")
_MODIFIED = 8
_ADDED = 2
_PROGRAM = re.compile(rb"^patchgate=.*$", re.MULTILINE)
_NOWHERE = b"/nonexistent/git-patchgate"


class Place:
    """A repository of a world; `base` is HEAD once it is ready, and its index is kept then."""

    def __init__(self, world: World, directory: str) -> None:
        self.world = world
        self.directory = directory
        self.base = ""
        self._index = self.inside("index")
        self._mark: tuple[int, ...] = ()
        self._staged = ""
        path = os.pathsep.join((world.git(world.path, "--exec-path").decode().strip(), world.env["PATH"]))
        # What git 2.39 passes to a hook of `git commit -m`.
        self.env = {
            **world.env,
            "PATH": path,
            "GIT_EDITOR": ":",
            "GIT_EXEC_PATH": path.partition(os.pathsep)[0],
            "GIT_INDEX_FILE": ".git/index",
            "GIT_PREFIX": "",
        }
        own = ("GIT_EDITOR", "GIT_INDEX_FILE")
        self.push_env = {name: value for name, value in self.env.items() if name not in own}

    def inside(self, *names: str) -> str:
        """Name a path in the git directory."""
        return os.path.join(self.directory, ".git", *names)

    def git(self, *arguments: str) -> str:
        """Run git without any hook; it must succeed."""
        return self.world.git(self.directory, *OFF, *arguments).decode().strip()

    def copy(self, name: str) -> Place:
        """Copy it, before any hook is installed."""
        directory = self.world.place(name)
        shutil.copytree(self.directory, directory, symlinks=True)
        return Place(self.world, directory)

    def install(self, *, without: tuple[str, ...] = ()) -> None:
        """Install the default set of hooks, but for those that are named."""
        self._run(self.world.patchgate, "install")
        for name in without:
            os.unlink(self.inside("hooks", name))

    def commit(self, files: Mapping[str, bytes]) -> None:
        """Commit files as a user does, with the hooks that are there."""
        self._add(files)
        self._run("git", "commit", "-q", "-m", "Change what a commit changes")

    def make_ready(self, files: Mapping[str, bytes]) -> None:
        """Stage files, and keep the index as it is now for every run."""
        self._add(files)
        # Until the clock has moved on, git can't trust what it knows of a file, and reads it again.
        time.sleep(1.1)
        argv = ("git", *OFF, "update-index", "-q", "--refresh", "--force-write-index")
        subprocess.run(argv, cwd=self.directory, env=self.world.env, stdout=subprocess.DEVNULL, check=False)
        self.base = self.git("rev-parse", "HEAD")
        self._staged = self._difference()
        shutil.copyfile(self._index, self._index + "-kept")
        self._mark = self._index_mark()

    def put_back(self) -> None:
        """Put the index back if anything wrote it."""
        if self._index_mark() != self._mark:
            shutil.copyfile(self._index + "-kept", self._index + "-copy")
            os.replace(self._index + "-copy", self._index)
            self._mark = self._index_mark()

    def is_unchanged(self) -> bool:
        """Tell whether the very same change is staged as when it was made ready."""
        return self._difference() == self._staged

    def at_commit(self, *argv: str, **env: str) -> Command:
        """Time a program as git runs pre-commit: in the top folder, with its variables, on the kept index."""
        return Command(argv, self.directory, {**self.env, **env}, before=self.put_back)

    def at_push(self, *argv: str, stdin: str, **env: str) -> Command:
        """Time a program as git runs pre-push, with what git says to it in a file."""
        return Command(argv, self.directory, {**self.push_env, **env}, stdin, before=self.put_back)

    def interpreter(self) -> str:
        """Give the Python that the hooks start; this one where they start none by themselves."""
        try:
            with open(self.inside("patchgate", "fast", "active"), encoding="utf-8") as file:
                return file.readline().rstrip("\n").split(" ", 2)[2]
        except (OSError, IndexError):
            return sys.executable

    def has_receipt(self) -> bool:
        """Tell whether HEAD was accepted here."""
        with open(self.inside("patchgate", "receipts"), encoding="ascii") as file:
            return any(line.startswith(self.git("rev-parse", "HEAD")) for line in file)

    def is_fast(self, hook: Command) -> bool:
        """Tell whether an installed hook says yes where git-patchgate cannot be started.

        Raises:
            SystemExit: it says so even where it is told to take no fast path: then this proves nothing.
        """
        self.put_back()
        with self.without_patchgate() as found:
            env = {**hook.env, "PATH": found["PATH"]}
            if exit_code(hook, {**env, "PATCHGATE_FULL": "1"}) == 0:
                raise SystemExit(f"{hook.argv[0]} said yes without any judge: this benchmark proves nothing")
            pending = Path(self.inside("patchgate-pending"))
            pending.unlink(missing_ok=True)
            code = exit_code(hook, env)
        return code == 0 and (pending.exists() or "pre-commit" not in hook.argv[0])

    def commits_fast(self, message: str) -> bool:
        """Tell whether `git commit` lands what is staged where git-patchgate cannot be started."""
        with self.without_patchgate() as found:
            argv = ("git", "commit", "-q", "-m", message)
            env = {**self.world.env, "PATH": found["PATH"]}
            done = subprocess.run(argv, cwd=self.directory, env=env, stderr=subprocess.DEVNULL, check=False)
        landed = self.git("rev-parse", "HEAD") != self.base
        return done.returncode == 0 and landed and self.has_receipt()

    def start_over(self) -> None:
        """Go back to the base with the files staged, as before the commit."""
        self.git("update-ref", "refs/heads/main", self.base)
        self.put_back()

    @contextmanager
    def without_patchgate(self) -> Iterator[dict[str, str]]:
        """Give an environment in which no hook can start git-patchgate; put the hooks back at the end."""
        texts = {}
        for path in Path(self.inside("hooks")).iterdir():
            raw = path.read_bytes()
            if raw.startswith(b"#!/bin/sh\n# patchgate hook ") and _PROGRAM.search(raw):
                texts[path] = raw
        if not texts:
            raise SystemExit("no installed hook names its git-patchgate: this benchmark does not know them")
        folders = [
            folder
            for folder in self.env["PATH"].split(os.pathsep)
            if not os.path.exists(os.path.join(folder, "git-patchgate"))
        ]
        try:
            for path, raw in texts.items():
                path.write_bytes(calling(raw, _NOWHERE))
            yield {**self.env, "PATH": os.pathsep.join(folders)}
        finally:
            for path, raw in texts.items():
                path.write_bytes(raw)

    def _add(self, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            path = Path(self.directory, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if files:
            self._run("git", *OFF, "add", "--", *files)

    def _run(self, *argv: str) -> None:
        done = subprocess.run(
            argv,
            cwd=self.directory,
            env=self.world.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            said = done.stdout.decode("utf-8", "backslashreplace")
            raise SystemExit(f"{os.path.basename(argv[0])} {argv[1]} ended with {done.returncode}: {said}")

    def _difference(self) -> str:
        return self.git("diff", "--cached", "--raw", "--no-abbrev", self.base)

    def _index_mark(self) -> tuple[int, ...]:
        found = os.stat(self._index)
        return found.st_ino, found.st_size, found.st_mtime_ns


def exit_code(command: Command, env: Mapping[str, str]) -> int:
    """Run a command once in another environment, unseen."""
    quiet = subprocess.DEVNULL
    with open(command.stdin, "rb") as stdin:
        return subprocess.run(
            command.argv, cwd=command.cwd, env=env, stdin=stdin, stdout=quiet, stderr=quiet, check=False
        ).returncode


def calling(hook: bytes, program: bytes) -> bytes:
    """Let the text of an installed hook call another git-patchgate; the path needs no quotes."""
    return _PROGRAM.sub(lambda _: b"patchgate=" + program, hook, count=1)


def make_base(world: World, size: int, *, checkout: bool) -> tuple[Place, Wide]:
    """Make a repository of so many files under a few rules, without hooks and with nothing staged.

    Args:
        checkout: whether every file is in the working tree; peers look at all of them, our hooks at none.
    """
    wide = make_wide(world, size)
    place = Place(world, wide.directory)
    for key, value in (("user.name", "Bench"), ("user.email", "bench@example.invalid")):
        place.git("config", key, value)
    place.git("read-tree", "HEAD")
    if checkout:
        place.git("checkout-index", "-a", "-u", "-f", "-q")
    return place, wide


def make_warm(place: Place, wide: Wide) -> None:
    """Commit twice with the hooks that are there, and stage ten files, two of them new."""
    place.commit(ten_files(wide, 1))
    place.commit(ten_files(wide, 2))
    place.make_ready(ten_files(wide, 3))


def silence_messages(place: Place) -> None:
    """Commit a policy that says nothing of messages, before any hook is there."""
    place.commit({"patchgate.toml": POLICY + b'\n[message]\nlevel = "off"\n'})


def ten_files(wide: Wide, number: int) -> dict[str, bytes]:
    """Write eight files of HEAD with three lines more, and two new ones."""
    files = {
        path: b"".join(b"edited_%d = %d\n" % (number, line) for line in range(3)) + wide.contents[path]
        for path in wide.changed[:_MODIFIED]
    }
    for path in wide.changed[_MODIFIED:][:_ADDED]:
        stem, ending = os.path.splitext(path)
        files[f"{stem}_{number}{ending}"] = b"new = %d\n" % number + wide.contents[path]
    return files
