"""Random pairs of branches that change one component, merged by git: does the baseline merge by itself?

    python -m tests.baseline_merges --pairs 1000 [--seed S]

Two branches edit different files of a component, contents and modes, each with its baseline captured. The
merge must not conflict, and the merged baseline must be what a capture of the merged tree writes. The test
suite runs some of the same pairs. Of branches that also add or delete files only numbers are told, for git
can't know the order of two things that were put into one place.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from patchgate.components.baseline_file import Baseline, read_baseline, write_baseline
from patchgate.components.drift_gathering import files_of, record
from patchgate.git.objects import Objects
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component
from patchgate.policy.settings import ComponentSettings
from tests.component_world import opened, recorded
from tests.world import Repo

COMPONENT = Component(
    "shaping",
    ComponentSettings("shaping/interface.json", ("shaping/tests/**",), ("shaping/src/**",)),
)
PLACE = COMPONENT.baseline.raw
NAMES = ("a", "b", "ab", "a-b", "a_b", "B", "z", "é", 'q"', "t\tt", "1", "10", "2", "x y", "[id]", "__init__")
Files = dict[bytes, tuple[str, bytes]]

EDITS, ADDITIONS, DELETIONS, ALL = "edits", "additions", "deletions", "all of these"


@dataclass(frozen=True)
class Pair:
    """What two branches began with, and what each made of it."""

    base: Files
    ours: Files
    theirs: Files


@dataclass
class Count:
    """How the merges of some pairs ended.

    `elsewhere` conflicted in the files themselves; `disordered` says what a capture would, in another order;
    `unequal` says something else.
    """

    pairs: int = 0
    conflicts: int = 0
    elsewhere: int = 0
    disordered: int = 0
    unequal: int = 0


def random_name(chance: random.Random) -> bytes:
    """Make a path of the component; siblings and shared folders are common."""
    folder = chance.choice(["src", "src", "src/deep", "tests"])
    name = "".join(chance.choices(NAMES, k=chance.randrange(1, 3)))
    return f"shaping/{folder}/{name}.py".encode()


def random_file(chance: random.Random) -> tuple[str, bytes]:
    """Make a mode and a content; some contents come again and again, so that equal lines abound."""
    content = chance.randbytes(8).hex().encode()
    if chance.random() < 0.4:
        content = b"same %d\n" % chance.randrange(4)
    return chance.choice(["100644", "100644", "100755"]), content


def edited(chance: random.Random, file: tuple[str, bytes]) -> tuple[str, bytes]:
    """Change the mode, the content, or both."""
    mode, content = file
    kind = chance.randrange(3)
    if kind != 0:
        content = random_file(chance)[1]
    if kind != 1 or content == file[1]:
        mode = "100755" if mode == "100644" else "100644"
    return mode, content


def random_pair(chance: random.Random, kind: str) -> Pair:
    """Make two branches that touch different files."""
    base = {random_name(chance): random_file(chance) for _ in range(chance.choice([1, 3, 8, 30, 120]))}
    base[b"shaping/interface.json"] = random_file(chance)
    sides: tuple[Files, Files] = (dict(base), dict(base))
    share = chance.choice([0.1, 0.5, 1.0])
    for path, file in base.items():
        if chance.random() < share:
            side = chance.choice(sides)
            if kind in {DELETIONS, ALL} and chance.random() < 0.15:
                del side[path]
            else:
                side[path] = edited(chance, file)
    if kind in {ADDITIONS, ALL}:
        for _ in range(chance.randrange(1, 4)):
            path = random_name(chance)
            if not any(path in files for files in (base, *sides)):
                chance.choice(sides)[path] = random_file(chance)
    return Pair(base, *sides)


def measure(folder: Path, kind: str, number: int, seed: int) -> Count:
    """Merge some random pairs in a repository of their own."""
    chance = random.Random(f"{kind} {seed}")
    pairs = [random_pair(chance, kind) for _ in range(number)]
    repo = Repo.create(folder)
    repo.git("config", "gc.auto", "0")
    count = Count()
    with Objects(opened(repo)) as objects:
        repo.git("fast-import", "--quiet", stdin=b"".join(_stream(objects, pairs)))
        for index in range(number):
            _merge(repo, objects, index, count)
    return count


def _merge(repo: Repo, objects: Objects, index: int, count: Count) -> None:
    count.pairs += 1
    repo.git("checkout", "-q", "-f", "--detach", f"ours-{index}")
    done = repo.try_git("merge", "-q", "--no-edit", "-m", "Merge", f"theirs-{index}")
    if done.returncode != 0:
        unmerged = {
            line.partition(b"\t")[2] for line in repo.git("ls-files", "-z", "-u").split(b"\0") if line
        }
        assert unmerged, done.stderr
        count.conflicts += PLACE in unmerged
        count.elsewhere += PLACE not in unmerged
        repo.git("merge", "--abort")
        return
    view = TreeView(objects, repo.ask("rev-parse", "HEAD^{tree}"))
    merged = view.entry(PLACE)
    assert merged is not None
    files = record(files_of(COMPONENT, view), view.objects)
    raw = objects.read(merged.oid)
    if raw != write_baseline(COMPONENT.id, files):
        is_equal = read_baseline(raw, COMPONENT.id) == Baseline(COMPONENT.id, files)
        count.disordered += is_equal
        count.unequal += not is_equal


def _stream(objects: Objects, pairs: Sequence[Pair]) -> Iterator[bytes]:
    """Write the commits of all pairs for git fast-import, baselines included."""
    for index, pair in enumerate(pairs):
        yield from _commit(objects, f"base-{index}", None, pair.base)
        yield from _commit(objects, f"ours-{index}", f"base-{index}", pair.ours)
        yield from _commit(objects, f"theirs-{index}", f"base-{index}", pair.theirs)


def _commit(objects: Objects, branch: str, above: str | None, files: Files) -> Iterator[bytes]:
    yield f"commit refs/heads/{branch}\ncommitter A <a@example.com> 1700000000 +0000\ndata 1\nx\n".encode()
    if above is not None:
        yield f"from refs/heads/{above}\n".encode()
    yield b"deleteall\n"
    for path, (mode, content) in files.items():
        yield _file(path, mode, content)
    yield _file(PLACE, "100644", _captured(objects, files))


def _file(path: bytes, mode: str, content: bytes) -> bytes:
    name = b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    return b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), name, len(content), content)


def _captured(objects: Objects, files: Files) -> bytes:
    """Write the baseline of some files, without git: their ids follow from their contents."""
    return recorded(
        COMPONENT,
        ((raw, mode, objects.hash("blob", text), text) for raw, (mode, text) in files.items()),
    )


def main() -> int:
    """Measure each kind of pair and print how the merges ended."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--pairs", type=int, default=1000)
    reader.add_argument("--seed", type=int, default=1)
    options = reader.parse_args()
    failed = False
    for kind in (EDITS, ADDITIONS, DELETIONS, ALL):
        with tempfile.TemporaryDirectory() as folder:
            count = measure(Path(folder), kind, options.pairs, options.seed)
        print(
            f"{kind}: {count.pairs} pairs, {count.conflicts} conflicts in the baseline, "
            f"{count.elsewhere} elsewhere; merged: {count.disordered} in another order than a capture, "
            f"{count.unequal} to something else",
            flush=True,
        )
        if kind == EDITS:
            failed |= any((count.conflicts, count.elsewhere, count.disordered, count.unequal))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
