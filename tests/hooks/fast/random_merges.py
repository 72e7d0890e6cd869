"""Random merges: what the fast path recognises before a merge is committed, the full check accepts too.

It reports nothing, and both leave the same files. A history is one stream for `git fast-import`; the index is
what git merges, or something else. By hand: `python -m tests.hooks.fast.random_merges --merges 3000`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from patchgate.git.repository import open_repository
from patchgate.hooks.fast.renewal import renew_at_head
from patchgate.hooks.pre_commit import judge_commit
from patchgate.report.verdict import Verdict
from tests.hooks.fast.boring_world import RECOGNISED, World, Worlds

LEFT = ("patchgate-merging", "patchgate-pending", "patchgate-quiet")
POLICIES = (
    "",
    '[policy]\ndeny_prefixes = ["vault"]\n',
    "[policy.commit]\nmax_files = 2\n",
    '[rules]\npath-collision = "warning"\n',
    '[message]\nlevel = "off"\n',
    '[[owners]]\npaths = ["src/"]\nowners = ["a@example.com"]\n',
)
File = tuple[str, str]
Files = dict[str, File]


@dataclass
class History:
    """Commits as a stream for fast-import, by their marks, and the files of each."""

    stream: list[str] = field(default_factory=list)
    files: dict[int, Files] = field(default_factory=dict)
    parents: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def add(self, files: Files, *parents: int) -> int:
        """Add a commit; return its mark."""
        mark = len(self.files) + 1
        lines = [f"commit refs/made/{mark}", f"mark :{mark}", f"committer A <a@b> {1700000000 + mark} +0000"]
        lines += [f"data {len(f'Commit {mark}')}", f"Commit {mark}"]
        lines += [f"{'from' if place == 0 else 'merge'} :{each}" for place, each in enumerate(parents)]
        lines.append("deleteall")
        for path, (mode, text) in sorted(files.items()):
            lines += [f"M {mode} inline {path}", f"data {len(text)}", text]
        self.stream += lines
        self.files[mark], self.parents[mark] = files, parents
        return mark


def lines_of(*numbers: int) -> str:
    """Write a text of lines, of which most are alike: git takes it for the same file after a small change."""
    return "".join(f"line {number}\n" for number in (*range(8), *numbers))


def changed(chance: random.Random, files: Files, most: int) -> Files:
    """Change some files in one commit: mostly plain changes, at times moves, links, modes, odd names."""
    files = dict(files)
    for _ in range(chance.randint(1, most)):
        path = chance.choice(sorted(files))
        mode, text = files[path]
        new = chance.choice(("new", "src/new", "src/deep/new", "lib/new", "SRC/new", "src/NEW", "vault/x"))
        match chance.choice("mmmmmmaaaddrrfxlpgjt"):
            case "m":
                files[path] = mode, f"{text}{chance.randrange(9)}\n"
            case "a":
                files[f"{new}{chance.randrange(3)}"] = "100644", lines_of(chance.randrange(3))
            case "d" if len(files) > 3:
                del files[path]
            case "r":
                files[f"{new}{chance.randrange(3)}"] = files.pop(path)
            case "f":
                folder = path.rpartition("/")[0]
                moved = [each for each in files if folder and each.startswith(folder + "/")]
                for each in moved:
                    files["moved/" + each.rpartition("/")[2]] = files.pop(each)
            case "x":
                files[path] = chance.choice(("100644", "100755")), text
            case "l":
                files["link"] = "120000", chance.choice(("src", "../out", "a"))
            case "p":
                files["patchgate.toml"] = "100644", chance.choice(POLICIES)
            case "g":
                files[".gitattributes"] = "100644", "* merge=union\n"
            case "j":
                files["pyproject.toml"] = "100644", f"[project]\nname = 'x{chance.randrange(3)}'\n"
            case "t":
                files[path] = "100644", "<<<<<<< HEAD\n"
    # No file may be where a folder is.
    return {
        path: each for path, each in files.items() if not any(other.startswith(path + "/") for other in files)
    }


def first_files(chance: random.Random) -> Files:
    """Choose the files of the first commit."""
    names = ("a", "b", "c", "src/d", "src/e", "src/deep/f", "lib/g", "lib/h")
    files = {name: ("100644", lines_of(place)) for place, name in enumerate(names)}
    if chance.random() < 0.4:
        files["patchgate.toml"] = "100644", chance.choice(POLICIES)
    return files


def make_history(chance: random.Random) -> tuple[History, int, int]:
    """Make a history with two heads: the branch, and what is merged into it."""
    history = History()
    root = history.add(first_files(chance))
    base = history.add(changed(chance, history.files[root], 1), root)
    ours = theirs = base
    most = chance.choice((1, 1, 2, 4))
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        ours = history.add(changed(chance, history.files[ours], most), ours)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        theirs = history.add(changed(chance, history.files[theirs], most), theirs)
    if chance.random() < 0.1 and ours != base:
        # Each side merges the other's first commit: two merge bases.
        joined = {**history.files[ours], **history.files[theirs]}
        one, other = history.add(joined, ours, theirs), history.add(joined, theirs, ours)
        ours = history.add(changed(chance, joined, 1), one)
        theirs = history.add(changed(chance, joined, 1), other)
    return history, ours, theirs


class Merges:
    """Tries random merges in one repository."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.counts: Counter[str] = Counter()

    def try_one(self, seed: int) -> None:
        """Judge one merge both ways.

        Raises:
            AssertionError: it is recognised, and the full check has something to say, or leaves other files.
        """
        chance, repo = random.Random(seed), self._world.repo
        history, ours, theirs = make_history(chance)
        stream = [*history.stream, "reset refs/heads/main", f"from :{ours}", "done", ""]
        marks = Path(repo.path, "marks")
        asked = ("fast-import", "--quiet", "--force", "--done", f"--export-marks={marks}")
        repo.git("-c", "core.hooksPath=/dev/null", *asked, stdin="\n".join(stream).encode())
        oids = {int(mark[1:]): oid for mark, oid in map(str.split, marks.read_text().splitlines())}
        listed = repo.ask("log", "--no-walk=unsorted", "--format=%H %T %P", *oids.values()).splitlines()
        receipts = [line if line.count(" ") < 3 else f"{line[:122]} merge" for line in listed]
        receipts = [line.rstrip() + " -" * (line.rstrip().count(" ") == 1) for line in receipts]
        if chance.random() < 0.1:
            receipts.remove(chance.choice(receipts))
        (self._world.state / "receipts").write_text(
            "".join(f"{line}\n" for line in receipts), encoding="ascii"
        )
        self._stage(chance, oids[ours], oids[theirs])
        self._judge(seed, oids[theirs])

    def _stage(self, chance: random.Random, ours: str, theirs: str) -> None:
        """Put what git merges into the index; at times something else."""
        repo = self._world.repo
        done = repo.try_git("-c", "merge.directoryRenames=true", "merge-tree", "--write-tree", ours, theirs)
        tree = (
            done.stdout.split(b"\n")[0].decode("ascii") if done.returncode in (0, 1) else f"{ours}^{{tree}}"
        )
        self.counts["in conflict" if done.returncode else "clean"] += 1
        how = chance.choice(("as it is",) * 7 + ("ours", "theirs", "evil"))
        repo.git("read-tree", {"ours": ours, "theirs": theirs}.get(how, tree))
        if how == "evil":
            blob = repo.git("hash-object", "-w", "--stdin", stdin=b"evil\n").decode().strip()
            name = chance.choice(("evil", "a", "src/d"))
            repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")

    def _judge(self, seed: int, other: str) -> None:
        world = self._world
        for name in LEFT:
            (world.git_dir / name).unlink(missing_ok=True)
        repository = open_repository(world.repo.env, str(world.repo.path))
        renew_at_head(repository)
        done = world.join(other)
        assert done.returncode in (RECOGNISED, 7), done.stderr
        if done.returncode != RECOGNISED:
            return
        self.counts["recognised"] += 1
        left = self._left()
        decision = judge_commit(repository, "pre-merge-commit", world.repo.env, [other])
        report = decision.report
        said = [f"{each.rule}: {each.message}" for change in report.changes for each in change.findings]
        about = (seed, report.verdict, said, report.warnings, left, self._left())
        assert not decision.stops, about
        assert report.verdict is Verdict.ACCEPTED, about
        assert not said, about
        assert not report.warnings, about
        assert left == self._left(), about

    def _left(self) -> dict[str, bytes | None]:
        places = {name: self._world.git_dir / name for name in LEFT}
        return {name: place.read_bytes() if place.exists() else None for name, place in places.items()}


def make_merges(worlds: Worlds) -> Merges:
    """Make a repository whose merges are recognised, or else handed on to a stub."""
    world = worlds()
    worlds.stub(world, "pre-merge-commit")
    return Merges(world)


def main(write: Callable[[str], object] = sys.stdout.write) -> None:
    """Try as many merges as are asked for."""
    reader = argparse.ArgumentParser(prog="python -m tests.hooks.fast.random_merges")
    reader.add_argument("--merges", type=int, default=1000)
    reader.add_argument("--seed", type=int, default=1)
    options = reader.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        merges = make_merges(Worlds(Path(folder)))
        for seed in range(options.seed, options.seed + options.merges):
            merges.try_one(seed)
    write(f"{dict(merges.counts)}, {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main()
