"""Print what it costs to read through libgit2 in process, and through git's own children.

    python -m bench.git_access REPOSITORY [--commits 1000] [--rounds 5]

Reads the newest commits of an existing repository and writes nothing there. Each task is a process of its
own, as a hook is; a round runs both ways, one after the other, and both count what they read. The last tasks
are those of pre-receive: the commits are in quarantine, beside a bare repository that lacks them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

_CHILD = """
import os, subprocess, sys
def git(*arguments, stdin=b""):
    return subprocess.run(["git", *arguments], input=stdin, stdout=subprocess.PIPE, check=True).stdout
commits = sys.stdin.buffer.read()
"""
_LIBRARY = """
import os, sys
import pygit2
repository = pygit2.Repository(".")
if quarantine := os.environ.get("GIT_QUARANTINE_PATH"):
    # libgit2 reads none of git's variables by itself.
    repository.odb.add_disk_alternate(quarantine)
commits = sys.stdin.read().split()
def against_parent(name):
    commit = repository[name]
    if commit.parents:
        return commit.parents[0].tree.diff_to_tree(commit.tree, context_lines=0, swap=False)
    return commit.tree.diff_to_tree(context_lines=0, swap=True)
"""
_RAW_LINES = r'print(sum(line[:1] == ":" for line in raw.decode("latin-1").split("\0")))'
_BLOBS = """
def blobs(tree):
    for entry in tree:
        if entry.type_str == "tree":
            yield from blobs(entry)
        elif entry.type_str == "blob":
            yield entry.id
oids = list(blobs(repository[commits[0]].tree))
"""
TASKS = {
    "nothing but the start": (_CHILD + "print(0)", _LIBRARY + "print(0)"),
    "changed paths of each commit": (
        _CHILD + 'raw = git("diff-tree", "--stdin", "-r", "--raw", "-z", "--root", "--no-renames", '
        '"--no-commit-id", "-m", "--diff-merges=first-parent", stdin=commits)\n' + _RAW_LINES,
        _LIBRARY + "print(sum(len(against_parent(name)) for name in commits))",
    ),
    "changed lines of each commit": (
        _CHILD + 'raw = git("diff-tree", "--stdin", "-r", "-p", "-U0", "--root", "--no-renames", '
        '"--no-commit-id", "-m", "--diff-merges=first-parent", "--text", stdin=commits)\n'
        'print(sum(line[:2] == b"@@" for line in raw.split(b"\\n")))',
        _LIBRARY + "def hunks(name):\n"
        "    found = against_parent(name)\n"
        "    return sum(len(patch.hunks) for patch in found if patch is not None)\n"
        "print(sum(map(hunks, commits)))",
    ),
    "every blob of the newest tree": (
        _CHILD + 'oids = git("ls-tree", "-r", "--format=%(objecttype) %(objectname)", commits.split()[0])\n'
        'oids = b"\\n".join(line[5:] for line in oids.split(b"\\n") if line[:4] == b"blob")\n'
        'raw = git("cat-file", "--batch", "--buffer", stdin=oids)\n'
        "print(len(oids.split()))",
        _LIBRARY + _BLOBS + "print(sum(repository.read(oid)[1] is not None for oid in oids))",
    ),
    "the same, one question at a time": (
        _CHILD + 'oids = git("ls-tree", "-r", "--format=%(objecttype) %(objectname)", commits.split()[0])\n'
        'oids = [line[5:] for line in oids.split(b"\\n") if line[:4] == b"blob"]\n'
        'child = subprocess.Popen(["git", "cat-file", "--batch"], stdin=-1, stdout=-1)\n'
        "for oid in oids:\n"
        '    child.stdin.write(oid + b"\\n")\n'
        "    child.stdin.flush()\n"
        "    child.stdout.read(int(child.stdout.readline().split()[2]) + 1)\n"
        "print(len(oids))",
        _LIBRARY + _BLOBS + "print(sum(repository.read(oid)[1] is not None for oid in oids))",
    ),
}


RECEIVED = ("changed paths of each commit", "changed lines of each commit")


def git(folder: str | Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git; what it printed."""
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True).stdout


def receive(repository: str, listed: bytes, folder: Path) -> tuple[Path, Mapping[str, str]]:
    """Put commits into the quarantine of a bare repository that lacks them, as receive-pack does.

    Source: git-receive-pack, “Quarantine environment”.
    """
    server = folder / "server.git"
    oldest = listed.split()[-1].decode("ascii")
    base = git(repository, "rev-parse", oldest + "^").strip().decode("ascii")
    form = git(repository, "rev-parse", "--show-object-format").strip().decode("ascii")
    git(repository, "init", "-q", "--bare", f"--object-format={form}", str(server))
    git(repository, "push", "-q", "--no-verify", str(server), f"{base}:refs/heads/main")
    quarantine = server / "objects" / "tmp_objdir-incoming-bench"
    (quarantine / "pack").mkdir(parents=True)
    named = git(repository, "rev-list", "--objects", listed.split()[0].decode("ascii"), "^" + base)
    pack = git(repository, "pack-objects", "-q", "--stdout", stdin=named)
    environ = {
        "GIT_QUARANTINE_PATH": str(quarantine),
        "GIT_OBJECT_DIRECTORY": str(quarantine),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(server / "objects"),
    }
    command = ["git", "-C", str(server), "index-pack", "--stdin"]
    subprocess.run(command, input=pack, stdout=subprocess.DEVNULL, check=True, env=os.environ | environ)
    return server, environ


def timed(
    repository: str | Path, script: str, commits: bytes, environ: Mapping[str, str]
) -> tuple[float, int]:
    """Run one task as a process; its seconds, and what it counted."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=repository,
        input=commits,
        stdout=subprocess.PIPE,
        check=True,
        env=os.environ | environ,
    )
    return time.perf_counter() - start, int(done.stdout)


def measure(
    name: str, place: str | Path, listed: bytes, rounds: int, environ: Mapping[str, str] | None = None
) -> None:
    """Measure one task both ways, and print its line."""
    shown = name + (", received" if environ else "")
    runs = [[timed(place, script, listed, environ or {}) for script in TASKS[name]] for _ in range(rounds)]
    children, library = (statistics.median(each[way][0] for each in runs) for way in (0, 1))
    counts = " ".join(str(count) for _, count in runs[0])
    print(f"{shown:<42} {children * 1e3:>6.0f} ms {library * 1e3:>6.0f} ms  {counts}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository")
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    limit = f"--max-count={arguments.commits}"
    listed = git(arguments.repository, "rev-list", "--first-parent", limit, "HEAD")
    print(f"{len(listed.split())} commits")
    print(f"{'':<42} {'children':>9} {'libgit2':>9}  counted")
    for name in TASKS:
        measure(name, arguments.repository, listed, arguments.rounds)
    # The last commit of a list that is too short has no parent to begin from.
    if len(listed.split()) == arguments.commits:
        with tempfile.TemporaryDirectory(prefix="patchgate-bench-") as folder:
            server, environ = receive(arguments.repository, listed, Path(folder))
            for name in RECEIVED:
                measure(name, server, listed, arguments.rounds, environ)


if __name__ == "__main__":
    main()
