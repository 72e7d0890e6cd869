"""Throw-away repositories for the benchmarks: deterministic, made by `git fast-import`, gone at the end.

Decides what is measured on: a wide repository with ten staged files, a long history of small edits, a wide
rewrite that gives a large patch. Nothing of the user's configuration or repositories is read or touched.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import IO

_WORDS = (
    "core",
    "api",
    "store",
    "web",
    "parse",
    "index",
    "queue",
    "report",
    "tools",
    "tests",
    "docs",
    "util",
)
_ENDINGS = (".py", ".c", ".h", ".ts", ".go", ".rs", ".md", ".json")
POLICY = (
    b'[policy]\ndeny_prefixes = ["runs", "vault"]\ndeny = ["*.pem", "secret*/"]\ndeny_suffixes = [".key"]\n'
)


class World:
    """A temporary folder with an environment of its own; a context manager that removes both.

    `python` and `patchgate` are this interpreter and the `git-patchgate` beside it.

    Args:
        patchgate: another `git-patchgate`.
    """

    def __init__(self, patchgate: str | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        self.path = self._folder.name
        self.python = sys.executable
        self.patchgate = patchgate or os.path.join(os.path.dirname(sys.executable), "git-patchgate")
        if not os.path.exists(self.patchgate):
            raise SystemExit(f"there is no git-patchgate beside {sys.executable}: install patchgate there")
        self.env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self.path,
            # Both sides of a comparison write on the disk that `TMPDIR` names here.
            "TMPDIR": self.path,
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            # PYTHONDONTWRITEBYTECODE is left out: without .pyc files imports take several times as long,
            # on both sides of a ratio. The round that does not count writes them.
        }

    def __enter__(self) -> World:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def place(self, name: str) -> str:
        """Name a path in the temporary folder."""
        return os.path.join(self.path, name)

    def git(self, directory: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git in a folder; it must succeed."""
        argv = ("git", *arguments)
        return subprocess.run(
            argv, cwd=directory, env=self.env, input=stdin, stdout=subprocess.PIPE, check=True
        ).stdout

    def make(self, name: str, write: Callable[[IO[bytes]], None]) -> str:
        """Make a repository whose branch `main` is what `write` sends to `git fast-import`; pack it."""
        directory = self.place(name)
        self.git(self.path, "init", "-q", "-b", "main", directory)
        argv = ("git", "fast-import", "--quiet", "--done")
        with subprocess.Popen(argv, cwd=directory, env=self.env, stdin=subprocess.PIPE) as child:
            assert child.stdin is not None
            write(child.stdin)
            child.stdin.write(b"done\n")
        if child.returncode:
            raise SystemExit(f"git fast-import ended with {child.returncode}")
        self.git(directory, "gc", "-q", "--prune=now")
        self.git(directory, "read-tree", "HEAD")
        return directory

    def stage(self, directory: str, files: dict[str, bytes], index: str = "index") -> None:
        """Put files into one index of a repository, beside the working tree."""
        listed = b""
        for path, content in files.items():
            oid = self.git(directory, "hash-object", "-w", "--stdin", stdin=content).strip()
            listed += b"100644 %b\t%b\0" % (oid, path.encode())
        argv = ("git", "update-index", "-z", "--index-info")
        env = {**self.env, "GIT_INDEX_FILE": os.path.join(directory, ".git", index)}
        subprocess.run(argv, cwd=directory, env=env, input=listed, check=True)


class Prose:
    """Writes lines that look like a program's, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        pick = self.chance.choice
        self._pool = []
        for number in range(20_000):
            words = " ".join(pick(_WORDS) for _ in range(self.chance.randrange(6)))
            call = f"{pick(_WORDS)}_{number} = {pick(_WORDS)}({pick(_WORDS)}, {self.chance.randrange(9999)})"
            remark = f"  # {words}" if number % 3 == 0 else ""
            self._pool.append(f"{'    ' * self.chance.randrange(4)}{call}{remark}\n".encode())

    def lines(self, count: int) -> list[bytes]:
        """Write so many lines."""
        return self.chance.choices(self._pool, k=count)

    def paths(self, count: int) -> list[str]:
        """Name so many files in folders that are one to five deep, some thirty in each."""
        folders = ["src"]
        while len(folders) < max(2, count // 30):
            parent = self.chance.choice(folders)
            if parent.count("/") < 4:
                folders.append(f"{parent}/{self.chance.choice(_WORDS)}{len(folders)}")
        return [
            f"{folders[number % len(folders)]}/{self.chance.choice(_WORDS)}_{number}"
            f"{self.chance.choice(_ENDINGS)}"
            for number in range(count)
        ]


def write_commit(out: IO[bytes], number: int, changes: Iterator[tuple[str, bytes | None]]) -> None:
    """Send one commit to fast-import: paths with their new content, None for a deletion."""
    out.write(
        b"commit refs/heads/main\ncommitter Bench <bench@example.invalid> %d +0000\n" % (10**9 + number)
    )
    out.write(b"data 7\nchange\n\n")
    for path, content in changes:
        if content is None:
            out.write(b"D %b\n" % path.encode())
        else:
            out.write(b"M 100644 inline %b\ndata %d\n" % (path.encode(), len(content)) + content + b"\n")


@dataclass(frozen=True, slots=True)
class Wide:
    """A repository of many files: its folder, the paths that are changed in it, what lies there in HEAD."""

    directory: str
    changed: tuple[str, ...]
    contents: Mapping[str, bytes]


def make_wide(world: World, files: int, changed: int = 10) -> Wide:
    """Make a repository of so many files under a policy of its own, with `changed` edited ones staged.

    The index `index-refused` holds one more file, which the policy denies. The working tree holds only the
    edited paths, as they are in HEAD: no side of any comparison looks at another one.
    """
    prose = Prose(files)
    paths = prose.paths(files)
    texts = [prose.lines(40) for _ in range(50)]

    def write(out: IO[bytes]) -> None:
        contents: Iterator[tuple[str, bytes | None]] = (
            (path, b"".join(texts[number % 50])) for number, path in enumerate(paths)
        )
        write_commit(out, 0, contents)
        write_commit(out, 1, iter([("patchgate.toml", POLICY)]))

    directory = world.make(f"wide-{files}", write)
    chosen = paths[:: max(1, files // changed)][:changed]
    for path in chosen:
        world.git(directory, "checkout-index", "-f", "--", path)
    edited = {path: b"".join([*prose.lines(3), *texts[paths.index(path) % 50]]) for path in chosen}
    world.stage(directory, edited)
    os.link(os.path.join(directory, ".git", "index"), os.path.join(directory, ".git", "index-refused"))
    world.stage(directory, {"vault/token.txt": b"nothing\n"}, "index-refused")
    return Wide(directory, tuple(chosen), {path: b"".join(texts[paths.index(path) % 50]) for path in chosen})


def make_worst_history(world: World, commits: int, files: int = 3000) -> str:
    """Make the linear history that costs most beside git: each commit adds 12 lines to one file, or in a file
    of their own each tenth time.
    """
    prose = Prose(commits)
    chance = prose.chance
    texts = {path: prose.lines(chance.randrange(20, 60)) for path in prose.paths(files)}
    paths, folders = list(texts), sorted({path.rpartition("/")[0] for path in texts})

    def changed(number: int) -> tuple[str, bytes]:
        if number % 10 == 0:
            paths.append(f"{chance.choice(folders)}/new_{number}.py")
            texts[paths[-1]] = prose.lines(12)
            return paths[-1], b"".join(texts[paths[-1]])
        path = chance.choice(paths)
        start = chance.randrange(len(texts[path]) + 1)
        texts[path][start:start] = prose.lines(12)
        return path, b"".join(texts[path])

    def write(out: IO[bytes]) -> None:
        write_commit(out, 0, ((path, b"".join(lines)) for path, lines in list(texts.items())))
        for number in range(1, commits + 1):
            write_commit(out, number, iter([changed(number)]))

    return world.make("worst-history", write)


def make_history(world: World, commits: int, files: int = 3000, *, policy: bytes | None = None) -> str:
    """Make a linear history of small edits in nested folders, now and then a new file or one less.

    Its first commit holds `policy` too, if there is one.
    """
    prose = Prose(commits)
    chance = prose.chance
    names = iter(prose.paths(files + commits))
    texts = {next(names): prose.lines(chance.randrange(20, 160)) for _ in range(files)}
    paths = list(texts)

    def changes() -> Iterator[tuple[str, bytes | None]]:
        for place in set(chance.choices(range(len(paths)), k=chance.choice((1, 1, 1, 2, 2, 3, 4, 6)))):
            path, luck = paths[place], chance.random()
            if luck < 0.05:
                path = paths[place] = next(names)
                texts[path] = prose.lines(chance.randrange(20, 160))
            elif luck < 0.08 and path in texts:
                del texts[path]
                yield path, None
                continue
            lines = texts.setdefault(path, prose.lines(40))
            for _ in range(chance.randrange(1, 4)):
                start = chance.randrange(len(lines) + 1)
                lines[start : start + chance.randrange(4)] = prose.lines(chance.randrange(1, 6))
            yield path, b"".join(lines)

    def write(out: IO[bytes]) -> None:
        first = [(path, b"".join(lines)) for path, lines in texts.items()]
        write_commit(out, 0, iter(first if policy is None else [*first, ("patchgate.toml", policy)]))
        for number in range(1, commits + 1):
            write_commit(out, number, changes())

    return world.make("history" if policy is None else "history-with-policy", write)


def forget_ranges(git_dir: str) -> None:
    """Remove what patchgate remembers of ranges and pushes, so that the next check is a first one."""
    shutil.rmtree(os.path.join(git_dir, "patchgate", "ranges"), ignore_errors=True)
