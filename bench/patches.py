"""Print what judging a patch costs, as ratios to what git needs for the same.

    python -m bench.patches [--rounds 9] [--files 100000] [--megabytes 100] [--write FILE]

Each row compares whole processes that ran in the same round:

- *check --patch, like for like*: a patch of 100 MB over 10,000 files, under a policy whose agent profile has
  no limits (files, added lines, sizes, classes, modes) and no content rules, against what git alone needs for
  the effect: a private index of the touched files, a private object directory with the repository's as
  alternate, `git -c core.looseCompression=0 apply --cached`, `git diff-index --cached --raw`; both throw the
  private folder away at the end. Ours also reads the files on disk and plans every section by itself.
- *the same, laid on a commit*: with `--base HEAD`, where no file on disk is read.
- *the same, lines and content on*: with a (high) budget of lines, sizes, and every content rule.
- *the grammar alone*: a Python that reads the patch and parses it, less one that only reads it, against
  `git apply --numstat`. Python's start is not counted.
- *a one-file patch*: `check --patch` in a repository of 100,000 files against a Python that imports every
  module which that command loads (found once by `-X importtime`), then `git apply --check`.
- *tiny sections*: the memory that Python allocates to parse a patch of 100,000 sections, with the patch
  itself, against its bytes.

PYTHONDONTWRITEBYTECODE is not passed on, and one round before the first does not count: without .pyc files
imports take several times as long.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import tracemalloc
from collections.abc import Iterator
from typing import IO

from bench.measurement import Measurement, joined, run_alone
from bench.pairs import Command, Rounds, Spread
from bench.tables import Row
from bench.worlds import Prose, World, make_wide, write_commit
from patchgate.patches.patch_model import Patch
from patchgate.patches.patch_parser import parse

_FILES = 10_000
_TINY = 100_000
_POLICY = b"""[policy]
max_file_bytes = "off"

[policy.agent]
max_files = "off"
max_added_lines = "off"
deny_classes = []
allow_modes = true

[content]
secrets = false
conflict_markers = false

[placeholders]
level = "off"
"""
_STRICT = b"""[policy]
max_file_bytes = 1000000

[policy.agent]
max_files = 1000000
max_added_lines = 100000000

[content]
secrets = true
conflict_markers = true
"""
_ALONE = "git apply --cached, diff-index"
_EFFECT = """set -e
mkdir -p {private}/objects
export GIT_INDEX_FILE={private}/index GIT_OBJECT_DIRECTORY={private}/objects
export GIT_ALTERNATE_OBJECT_DIRECTORIES={directory}/.git/objects
git update-index -z --index-info < {listed}
git -c core.looseCompression=0 apply --cached -p1 --whitespace=nowarn < {patch}
git diff-index --cached --raw -z --no-renames --no-abbrev HEAD
rm -rf {private}
"""


def make_rewrite(world: World, size: int) -> str:
    """Make a repository of 10,000 files, checked out, and `rewrite.patch`, which changes all: `size` bytes.

    The commit `HEAD` holds the files and the policy without limits; the tag `strict` the other policy.
    """
    prose = Prose(size)
    paths = prose.paths(_FILES)
    # Half of the lines are replaced, in runs of eight: a line of 46 bytes costs 63 bytes of patch.
    count = max(32, round(size / _FILES / 63))
    olds = [prose.lines(count) for _ in paths]

    def rewritten() -> Iterator[tuple[str, bytes | None]]:
        for path, old in zip(paths, olds, strict=True):
            lines = list(old)
            for start in range(prose.chance.randrange(12), count, 16):
                lines[start : start + 8] = prose.lines(min(8, count - start) + prose.chance.randrange(-1, 2))
            yield path, b"".join(lines)

    def write(out: IO[bytes]) -> None:
        write_commit(out, 0, iter([("patchgate.toml", _STRICT)]))
        out.write(b"reset refs/tags/strict\nfrom refs/heads/main\n\n")
        contents: list[tuple[str, bytes | None]] = [
            (path, b"".join(old)) for path, old in zip(paths, olds, strict=True)
        ]
        write_commit(out, 1, iter([("patchgate.toml", _POLICY), *contents]))
        out.write(b"reset refs/tags/base\nfrom refs/heads/main\n\n")
        write_commit(out, 2, rewritten())

    directory = world.make("rewrite", write)
    with open(world.place("rewrite.patch"), "wb") as out:
        argv = ("git", "diff-tree", "-p", "base", "HEAD")
        subprocess.run(argv, cwd=directory, env=world.env, stdout=out, check=True)
    world.git(directory, "update-ref", "HEAD", "base")
    world.git(directory, "read-tree", "HEAD")
    # What the patch makes must be nowhere yet, or git would not write it.
    world.git(directory, "reflog", "expire", "--expire=now", "--all")
    world.git(directory, "gc", "-q", "--prune=now")
    world.git(directory, "checkout-index", "-aqf")
    world.git(directory, "update-index", "-q", "--refresh")
    listed = world.git(directory, "ls-files", "-z", "--stage").replace(b" 0\t", b"\t")
    with open(world.place("listed"), "wb") as out:
        out.write(listed)
    return directory


def rewrite(world: World, size: int) -> Measurement:
    """Make the large patch, and name what is timed with it."""
    directory = make_rewrite(world, size)
    patch = world.place("rewrite.patch")
    names = {"private": world.place("private"), "directory": directory, "listed": world.place("listed")}
    reading = f"raw = open({patch!r}, 'rb').read()"
    grammar = "from patchgate.patches.patch_parser import parse"
    check = (world.patchgate, "check", "-q", "--patch", patch)
    program = f"{grammar}; {reading}; assert not isinstance(parse(raw), tuple)"
    script = _EFFECT.format(patch=patch, **names)
    tasks = {
        _ALONE: Command(("sh", "-c", script), directory, world.env),
        "check --patch": Command(check, directory, world.env),
        "check --patch --base HEAD": Command((*check, "--base", "HEAD"), directory, world.env),
        "check --patch, lines and content": Command(
            (*check, "--policy-from", "strict"), directory, world.env
        ),
        "git apply --numstat": Command(("git", "apply", "--numstat", patch), directory, world.env),
        "read": Command((world.python, "-c", f"{grammar}; {reading}"), directory, world.env),
        "read and parse": Command((world.python, "-c", program), directory, world.env),
    }
    megabytes = os.path.getsize(patch) / 1e6
    against = "the effect by git alone, in private"
    what = f"`check --patch`, {megabytes:.0f} MB in {_FILES:,} files, limits and content off"

    def rows(measured: Rounds) -> list[Row]:
        found = [
            Row(name, against, limit, measured.ratios(ours, _ALONE), reach=reach)
            for name, ours, limit, reach in (
                (what, "check --patch", 1.4, 1.25),
                ("the same with `--base HEAD`", "check --patch --base HEAD", None, None),
                (
                    "the same with budgets of lines, sizes and content rules",
                    "check --patch, lines and content",
                    None,
                    None,
                ),
            )
        ]
        numstat = measured.ratios("read and parse", "git apply --numstat", less="read")
        return [
            *found,
            Row("the grammar alone, without Python's start", "`git apply --numstat`", 4.0, numstat),
            tiny_row(),
        ]

    return Measurement(tasks, rows)


def tiny_row() -> Row:
    """Measure the memory that the grammar takes for a patch of tiny sections."""
    pieces = []
    for number in range(_TINY):
        path = b"src/d%d/file_%d.py" % (number % 1000, number)
        pieces.append(b"diff --git a/%b b/%b\nindex 1234567..89abcde 100644\n" % (path, path))
        pieces.append(b"--- a/%b\n+++ b/%b\n@@ -1 +1 @@\n-one\n+two\n" % (path, path))
    raw = b"".join(pieces)
    tracemalloc.start()
    assert isinstance(parse(raw), Patch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    what = f"the grammar, memory for {_TINY:,} sections of {len(raw) // _TINY} bytes, the patch included"
    return Row(what, "the bytes of the patch", 2.0, Spread.of([1 + peak / len(raw)]))


def loaded_modules(world: World, command: Command) -> list[str]:
    """Name the modules that a command imports when it is run again, in their order."""
    # The first time under a policy it also loads what checks policies; that must not flatter us.
    subprocess.run(command.argv, cwd=command.cwd, env=command.env, stdout=subprocess.DEVNULL, check=True)
    argv = (world.python, "-X", "importtime", *command.argv)
    done = subprocess.run(
        argv, cwd=command.cwd, env=command.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
    )
    tried = re.findall(rb"^import time:[^|]*\|[^|]*\| *(\S+)$", done.stderr, re.MULTILINE)
    return [name for name in map(bytes.decode, tried) if _is_there(name)]


def _is_there(name: str) -> bool:
    """Tell whether a module can be imported; some are only tried (`msvcrt`)."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def small(world: World, files: int) -> Measurement:
    """Make a one-file patch in a repository of so many files, and name what is timed with it."""
    wide = make_wide(world, files)
    path = wide.changed[0]
    patch = world.place("small.patch")
    with open(patch, "wb") as out:
        out.write(world.git(wide.directory, "diff-index", "--cached", "-p", "HEAD", "--", path))
    # Nothing is staged while the patch is judged, as where an agent begins.
    world.git(wide.directory, "read-tree", "HEAD")
    ours = Command((world.patchgate, "check", "-q", "--patch", patch), wide.directory, world.env)
    modules = loaded_modules(world, ours)
    script = f"{world.python} -c 'import {', '.join(modules)}' && git apply --check {patch}"
    tasks = {
        "imports, git apply --check": Command(("sh", "-c", script), wide.directory, world.env),
        "check --patch, one file": ours,
    }
    against = f"a Python that imports the same {len(modules)} modules, then `git apply --check`"
    what = f"`check --patch`, one file, {files:,} files in the repository"

    def rows(measured: Rounds) -> list[Row]:
        return [
            Row(what, against, 1.3, measured.ratios("check --patch, one file", "imports, git apply --check"))
        ]

    return Measurement(tasks, rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be chosen."""
    parser.add_argument("--files", type=int, default=100_000, help="files beside a one-file patch")
    parser.add_argument("--megabytes", type=int, default=100, help="size of the large patch")
    parser.add_argument("--only", choices=["large", "small"], help="measure only these rows")


def prepare(world: World, options: argparse.Namespace) -> Measurement:
    """Make the repositories and patches, and name what is timed with them."""
    parts = []
    if options.only != "small":
        parts.append(rewrite(world, options.megabytes * 10**6))
    if options.only != "large":
        parts.append(small(world, options.files))
    return joined(parts)


def main() -> None:
    """Measure, print, and clean up."""
    run_alone(__doc__, add_options, prepare, 9)


if __name__ == "__main__":
    main()
