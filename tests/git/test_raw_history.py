"""What a walk reads of a history is what git's own diff says."""

from __future__ import annotations

import pytest

from patchgate.git.change_sources import LoadedChange
from patchgate.git.commit_lists import Commit, commits_of
from patchgate.git.diff import Detail
from patchgate.git.history import Walk
from patchgate.git.model import FileChange
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, open_repository
from tests.git.histories import build
from tests.world import Repo

Row = tuple[str, str, str, str, bytes]
LINES = Detail(lines=True, sizes=True, watch=lambda lines: range(len(lines)))
ZEROES = "0" * 40
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A random history of 200 commits."""
    repo = Repo.create(tmp_path_factory.mktemp("history"))
    build(repo, 200, seed=7)
    return repo


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def walked(repo: Repo, revision: str, detail: Detail) -> list[tuple[Commit, LoadedChange]]:
    repository = opened(repo)
    with Objects(repository) as objects:
        commits = commits_of(repository, objects, revision).commits
    with Walk(repository, commits) as walk:
        return list(walk.read(commits, detail))


def row(file: FileChange) -> Row:
    old = (file.old.mode, file.old.oid) if file.old else ("000000", ZEROES)
    new = (file.new.mode, file.new.oid) if file.new else ("000000", ZEROES)
    return old[0], new[0], old[1], new[1], file.path.raw


def raw_rows(repo: Repo, old: str, new: str) -> list[Row]:
    """Git's own raw diff of two trees."""
    fields = repo.git("diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", old, new).split(b"\0")
    rows: list[Row] = []
    for about, path in zip(fields[0:-1:2], fields[1::2], strict=True):
        words = about.decode("ascii").removeprefix(":").split(" ")
        rows.append((words[0], words[1], words[2], words[3], path))
    return sorted(rows, key=lambda each: each[4])


def numbers(repo: Repo, old: str, new: str) -> dict[bytes, tuple[int | None, int | None]]:
    """Git's own count of added and removed lines; None where it says binary."""
    counted: dict[bytes, tuple[int | None, int | None]] = {}
    for record in repo.git("diff-tree", "-r", "--numstat", "-z", "--no-renames", old, new).split(b"\0"):
        if record:
            added, removed, path = record.split(b"\t")
            counted[path] = (None, None) if added == b"-" else (int(added), int(removed))
    return counted


def base_of(repo: Repo, commit: Commit) -> str:
    return commit.parents[0] + "^{tree}" if commit.parents else EMPTY_TREE


@pytest.mark.parametrize("detail", [Detail(), LINES], ids=["names", "lines"])
def test_the_raw_diff_of_every_commit_is_gits(history: Repo, detail: Detail) -> None:
    (root,) = history.ask("rev-list", "--max-parents=0", "main").split()
    seen = walked(history, root, detail) + walked(history, f"{root}..main", detail)
    assert len(seen) >= 190
    for commit, reading in seen:
        assert reading.change.after == commit.tree
        if len(commit.parents) < 2:
            rows = raw_rows(history, base_of(history, commit), commit.tree)
            assert [row(file) for file in reading.change.files] == rows


def test_the_lines_of_every_commit_are_counted_as_git_counts_them(history: Repo) -> None:
    (root,) = history.ask("rev-list", "--max-parents=0", "main").split()
    compared = 0
    for commit, reading in walked(history, f"{root}..main", LINES):
        if len(commit.parents) > 1:
            continue
        counted = numbers(history, base_of(history, commit), commit.tree)
        for file in reading.change.files:
            if file.status.value == "type-changed":
                continue
            expected = counted[file.path.raw]
            if expected == (None, None) and not file.binary:
                # Binary on the old side only, or a deletion: more is known than git says.
                assert b"\0" in history.git("cat-file", "blob", file.old.oid if file.old else "")
                continue
            assert (file.added_lines, file.removed_lines) == expected, (commit.oid, file)
            compared += 1
    assert compared > 300


def test_the_added_lines_of_every_file_are_those_of_its_blob(history: Repo) -> None:
    (root,) = history.ask("rev-list", "--max-parents=0", "main").split()
    compared = 0
    for _, reading in walked(history, f"{root}..main", LINES):
        for file in reading.change.files:
            if file.new is None or not file.new.is_file or file.binary:
                continue
            lines = history.git("cat-file", "blob", file.new.oid).split(b"\n")
            assert len(file.watched) == file.added_lines
            for line in file.watched:
                assert line.text == lines[line.number - 1]
                compared += 1
    assert compared > 300


def test_a_clean_merge_is_compared_with_the_merge_that_git_makes(history: Repo) -> None:
    clean = 0
    (root,) = history.ask("rev-list", "--max-parents=0", "main").split()
    for commit, reading in walked(history, f"{root}..main", LINES):
        if len(commit.parents) != 2:
            continue
        done = history.try_git("merge-tree", "--write-tree", "--allow-unrelated-histories", *commit.parents)
        if done.returncode == 0:
            merged = done.stdout.decode("ascii").strip()
            assert reading.change.base == merged
            assert [row(file) for file in reading.change.files] == raw_rows(history, merged, commit.tree)
            clean += 1
    assert clean > 0


def merged(repo: Repo, first: str, *heads: str) -> tuple[str, set[bytes]]:
    """Git's own merge, head by head: its tree, and the paths that were in conflict."""
    ours, tree, conflicts = first, "", set[bytes]()
    for head in heads:
        done = repo.try_git(
            "merge-tree",
            "--write-tree",
            "--no-messages",
            "--name-only",
            "-z",
            "--allow-unrelated-histories",
            ours,
            head,
        )
        assert done.returncode in {0, 1}
        oid, *names = done.stdout.split(b"\0")
        # A file that was in a folder's way is listed under a name with a mark behind it.
        conflicts |= {each for name in names if name for each in (name, name.partition(b"~")[0])}
        tree = oid.decode("ascii")
        ours = repo.ask("commit-tree", "-m", "step", "-p", ours, "-p", head, tree)
    return tree, conflicts


def test_a_merge_with_conflicts_is_read_from_its_parents_only_where_they_are(history: Repo) -> None:
    conflicted = 0
    (root,) = history.ask("rev-list", "--max-parents=0", "main").split()
    for commit, reading in walked(history, f"{root}..main", LINES):
        if len(commit.parents) < 2:
            continue
        tree, conflicts = merged(history, *commit.parents)
        # Git's combined diff lists the files that were modified from all parents.
        listed = history.git("diff-tree", "-c", "-r", "--no-commit-id", "--name-only", "-z", commit.oid)
        elsewhere = {path for *_, path in raw_rows(history, tree, commit.tree)} - conflicts
        expected = elsewhere | (set(listed.split(b"\0")) & conflicts)
        assert {file.path.raw for file in reading.change.files} == expected
        base = commit.parents[0] + "^{tree}" if conflicts else tree
        assert reading.change.base == history.ask("rev-parse", base)
        conflicted += bool(conflicts)
    assert conflicted > 0
