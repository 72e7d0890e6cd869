"""What libgit2 stages and commits for the tests is what git would have made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import quick_git
from tests.world import Content, Repo

STEPS: list[dict[str, Content]] = [
    {"a": "a\n", "folder/b.py": "b\n", "folder/deep/c": b"\0\xff"},
    {"a": "changed\n", "folder/ä ö": "x\n"},
    {},
]


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *, long: bool) -> Repo:
    """Make some commits in a new repository, with deletions, an executable file and a symlink."""
    monkeypatch.setenv("PATCHGATE_LONG", "1" if long else "")
    folder.mkdir()
    repo = Repo.create(folder)
    for number, files in enumerate(STEPS):
        repo.commit(files, f"Step {number}")
    repo.write("run.sh", "#!/bin/sh\n", executable=True)
    repo.link("link", "a")
    (repo.path / "folder" / "b.py").unlink()
    repo.commit()
    (repo.path / "a").unlink()
    repo.stage({"staged": "x\n"})
    return repo


def told(repo: Repo) -> list[bytes]:
    asked = [
        ("log", "--format=raw", "-p", "--root"),
        ("reflog", "show", "--date=raw"),
        ("status", "--porcelain=v2", "--branch"),
        ("ls-files", "--stage", "-v"),
        ("fsck", "--strict"),
        ("for-each-ref",),
    ]
    return [repo.git(*arguments) for arguments in asked]


def test_both_make_the_same_commits_index_refs_and_reflogs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = run(tmp_path / "quick", monkeypatch, long=False)
    by_git = run(tmp_path / "git", monkeypatch, long=True)
    assert told(quick) == told(by_git)
    assert (quick.path / ".git/COMMIT_EDITMSG").read_bytes() == (
        by_git.path / ".git/COMMIT_EDITMSG"
    ).read_bytes()


@pytest.mark.parametrize(
    "kind", ["attributes", "ignored", "setting", "hook", "merge", "message", "sha256", "nested", "detached"]
)
def test_what_is_not_plain_is_left_to_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("PATCHGATE_LONG", "")
    repo = Repo.create(tmp_path, *(("--object-format=sha256",) if kind == "sha256" else ()))
    repo.git("commit", "-q", "--allow-empty", "-m", "First")
    message = "Change"
    match kind:
        case "attributes":
            repo.write("folder/.gitattributes", "* text\n")
        case "ignored":
            repo.write(".gitignore", "x\n")
        case "setting":
            repo.git("config", "core.autocrlf", "true")
        case "hook":
            (repo.path / ".git" / "hooks").mkdir(exist_ok=True)
            (repo.path / ".git" / "hooks" / "commit-msg").write_text("#!/bin/sh\nexit 0\n")
        case "merge":
            (repo.path / ".git" / "MERGE_HEAD").write_text(repo.head() + "\n")
        case "message":
            message = "Two\n\nlines"
        case "nested":
            repo.git("init", "-q", str(repo.path / "inner"))
        case "detached":
            repo.git("checkout", "-q", "--detach")
        case _:
            pass
    before = sorted(os.listdir(repo.path / ".git"))
    assert quick_git.commit(repo.path, message) is None
    assert sorted(os.listdir(repo.path / ".git")) == before
