"""A check writes nothing: not to the working tree, the index, the refs, the objects or the stash."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from tests.world import Repo

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'
FORMS = (
    (),
    ("--cached",),
    ("--worktree",),
    ("--all",),
    ("HEAD",),
    ("HEAD~3..HEAD",),
    ("--policy-from", "HEAD~1", "--profile", "agent"),
    ("no-such-revision",),
)

Snapshot = dict[str, tuple[int, int, str]]


def snapshot(folder: Path) -> Snapshot:
    """Every file and folder below, with its mode and the digest of its bytes.

    In the working tree the time of the last change (ns) too; git itself freshens the time of objects and
    shared indexes that it reads. Our own folder of caches is left out.
    """
    taken: Snapshot = {}
    for place in sorted(folder.rglob("*")):
        name = place.relative_to(folder)
        if name.parts[:2] == (".git", "patchgate"):
            continue
        about = os.lstat(place)
        content = b""
        if stat.S_ISLNK(about.st_mode):
            content = os.fsencode(os.readlink(place))
        elif stat.S_ISREG(about.st_mode):
            content = place.read_bytes()
        time = 0 if name.parts[0] == ".git" else about.st_mtime_ns
        taken[str(name)] = (about.st_mode, time, hashlib.sha256(content).hexdigest())
    return taken


def messy(folder: Path) -> Repo:
    """A repository with a merge, a stash, staged and unstaged changes, and times that git would refresh."""
    repo = Repo.create(folder)
    repo.policy(POLICY)
    repo.commit({"a": "a\n", "dir/b": "b\n", "same": "same\n"}, "First")
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"side": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"main": "x\n"})
    repo.git("merge", "-q", "--no-edit", "side")
    repo.write("a", "stashed\n")
    repo.git("stash", "-q")
    repo.write("runs/x", "x\n")
    repo.git("add", "runs/x")
    repo.write("a", "unstaged\n")
    repo.write("untracked", "u\n")
    repo.link("link", "a")
    # Same bytes, another time: a refresh would rewrite the index.
    os.utime(repo.path / "same", ns=(1, 1))
    return repo


def unchanged_by_checks(repo: Repo, *forms: tuple[str, ...]) -> None:
    before = snapshot(repo.path)
    for form in forms:
        repo.check(*form)
        assert snapshot(repo.path) == before, form


def test_no_form_of_the_check_writes_anything(tmp_path: Path) -> None:
    unchanged_by_checks(messy(tmp_path), *FORMS)


def test_no_form_of_the_check_writes_with_a_split_index(tmp_path: Path) -> None:
    repo = messy(tmp_path)
    repo.git("config", "core.splitIndex", "true")
    repo.git("update-index", "--split-index")
    unchanged_by_checks(repo, (), ("--worktree",), ("--all",))


def test_no_form_of_the_check_writes_with_a_cache_of_untracked_files(tmp_path: Path) -> None:
    repo = messy(tmp_path)
    repo.git("config", "core.untrackedCache", "true")
    repo.git("update-index", "--untracked-cache")
    repo.git("status")
    unchanged_by_checks(repo, (), ("--worktree",), ("--all",))


def test_no_form_of_the_check_writes_in_the_middle_of_a_merge(tmp_path: Path) -> None:
    repo = messy(tmp_path)
    repo.git("reset", "-q", "--hard")
    repo.git("checkout", "-q", "-b", "other", "HEAD~1")
    repo.commit({"more": "x\n"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-commit", "other")
    assert (repo.path / ".git/MERGE_HEAD").exists()
    unchanged_by_checks(repo, (), ("--worktree",))


def test_no_form_of_the_check_writes_where_there_are_conflicts(tmp_path: Path) -> None:
    repo = messy(tmp_path)
    repo.git("reset", "-q", "--hard")
    repo.git("checkout", "-q", "-b", "other")
    repo.commit({"a": "other\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "main\n"})
    assert repo.try_git("merge", "other").returncode == 1
    unchanged_by_checks(repo, (), ("--worktree",), ("--all",))


def test_hooks_filters_and_monitors_of_the_repository_do_not_run(tmp_path: Path) -> None:
    repo = messy(tmp_path)
    trap = tmp_path / "ran"
    script = repo.write(".git/trap", f"#!/bin/sh\necho x >> '{trap}'\ncat\n", executable=True)
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        repo.write(f".git/hooks/{hook}", script.read_bytes(), executable=True)
    settings = {
        "core.fsmonitor": str(script),
        "core.pager": str(script),
        "core.sshCommand": str(script),
        "diff.external": str(script),
        "diff.x.textconv": str(script),
        "diff.x.command": str(script),
        "merge.x.driver": str(script),
        "alias.diff-index": f"!{script}",
    }
    for key, value in settings.items():
        repo.git("config", key, value)
    repo.write(".git/info/attributes", "* diff=x merge=x\n")
    trap.unlink(missing_ok=True)
    for form in FORMS:
        repo.check(*form)
    assert not trap.exists()


def test_nothing_is_left_in_the_folder_of_temporary_files(tmp_path: Path) -> None:
    repo = messy(tmp_path)
    place = tmp_path / "temporary"
    place.mkdir()
    for form in (("--worktree",), ("HEAD",)):
        assert repo.run("check", *form, TMPDIR=str(place)).code in {0, 1}
        assert list(place.iterdir()) == []


def test_a_repository_that_cannot_be_written_is_judged(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    repo = messy(tmp_path)
    for place in (repo.path, repo.path / ".git", repo.path / ".git" / "objects"):
        place.chmod(0o555)
    try:
        assert repo.check("--worktree").errors == ["deny-prefix"]
    finally:
        for place in (repo.path, repo.path / ".git", repo.path / ".git" / "objects"):
            place.chmod(0o755)
