"""What the system refuses to write, by its own means: all is old again, or the answer says what is where."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply.test_apply import apply, attempt_of, status
from tests.proposals import ABC, addition, change_of, deletion
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(2)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "sub/g": ABC, "sub/h": "x\n"})
    return made


@contextlib.contextmanager
def flagged(place: Path, flag: str) -> Iterator[None]:
    """Set a flag of the file system (`i`: nothing changes, `a`: a folder only gets new names); else skip."""
    done = subprocess.run(["chattr", f"+{flag}", place], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this file system or user has no chattr +{flag}: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["chattr", f"-{flag}", place], check=True)


def left(repo: Repo) -> list[Path]:
    """List what a landing may leave beside files, and its journals."""
    return [*repo.path.rglob(".patchgate-*"), *(repo.path / ".git/patchgate").glob("transactions/*")]


def test_what_may_not_be_written_is_write_failed_and_everything_is_as_it_was(repo: Repo) -> None:
    """E16: an immutable file, an immutable folder, the second file of two, a new and a deleted file."""
    two = change_of() + change_of(b"sub/g")
    for patch, place in [
        (change_of(), "f"),
        (change_of(), "."),
        (two, "sub"),
        (two, "sub/g"),
        (addition(b"sub/new"), "sub"),
        (deletion(b"sub/h"), "sub"),
        (deletion(b"sub/h"), "sub/h"),
    ]:
        with flagged(repo.path / place, "i"):
            answer = apply(repo, patch)
        assert (answer.code, answer.verdict, answer.errors) == (3, "undecided", ["write-failed"]), place
        attempt = answer.report["attempt"]
        assert (attempt["applied"], attempt["fallback_reason"]) == (False, "write-failed")
        assert answer.findings[0]["who_can_fix"] == "environment"
        assert answer.report["retry"] is None
        assert (status(repo), left(repo)) == ("", []), place
    # The same patch again, once it may be written.
    assert apply(repo, two).code == 0
    assert status(repo) == " M f\n M sub/g\n"


def test_a_folder_without_rights_is_write_failed(repo: Repo) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (repo.path / "sub").chmod(0o555)
    try:
        assert apply(repo, change_of() + change_of(b"sub/g")).errors == ["write-failed"]
    finally:
        (repo.path / "sub").chmod(0o755)
    assert status(repo) == ""


def test_a_file_that_may_not_grow_so_long_is_write_failed(repo: Repo) -> None:
    """The file is longer on disk than in git: git can make the result, and only the last write fails."""
    lines = "a\nb\nc\n" + "x\n" * 30_000
    repo.commit({".gitattributes": "big text eol=crlf\n", "big": lines})
    (repo.path / "big").unlink()
    repo.git("checkout", "-q", "big")
    before = (repo.path / "big").read_bytes()
    assert len(before) == len(lines) * 3 // 2
    patch = repo.path.parent / "patch"
    patch.write_bytes(change_of(b"big"))
    limited = ["sh", "-c", 'ulimit -f 150; exec "$@"', "sh", str(EXECUTABLE)]
    done = subprocess.run(
        [*limited, "apply", str(patch), "--format", "json"],
        cwd=repo.path,
        env=repo.env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert b'"write-failed"' in done.stdout
    assert b"ulimit -f" in done.stdout
    assert ((repo.path / "big").read_bytes(), status(repo), left(repo)) == (before, "", [])


def test_where_the_way_back_is_refused_too_it_is_dirty_workspace_and_recover_finishes(repo: Repo) -> None:
    """E16: a folder that gets new names and lets none go takes the new content, and no way back either."""
    repo.commit({'sub/"h"': ABC})
    quoted = change_of(b"sub/h").replace(b"a/sub/h", rb'"a/sub/\"h\""').replace(b"b/sub/h", rb'"b/sub/\"h\""')
    with flagged(repo.path / "sub", "a"):
        answer = apply(repo, change_of() + quoted + change_of(b"sub/g"))
        assert (answer.code, answer.verdict, answer.errors) == (3, "undecided", ["dirty-workspace"])
        (finding,) = answer.findings
        assert finding["who_can_fix"] == "person"
        assert finding["details"]["paths"] == ["f", 'sub/"h"', "sub/g"]
        assert "git patchgate recover" in finding["hint"]
        assert "dirty-workspace" in (attempt_of(answer) / "reviews/review_patch.md").read_text()
        # Nothing else lands meanwhile, and nothing of anybody is overwritten.
        assert apply(repo, change_of(new=b"C")).code == 3
        assert (repo.path / "sub/g").read_text() == ABC
        assert repo.run("recover").code == 3
    assert repo.run("recover").code == 0
    assert (status(repo), left(repo)) == ("", [])
    assert apply(repo, change_of()).code == 0
