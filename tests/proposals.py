"""Patches and edits against real repositories: builders of sections, a check that must write nothing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from tests.world import Answer, Repo

PERMISSIVE = """[policy]
max_file_bytes = "off"

[policy.agent]
max_files = "off"
max_added_lines = "off"
deny_classes = []
deny_new_classes = []
allow_modes = true
allow_symlinks = true
allow_gitlinks = true

[content]
secrets = false
conflict_markers = false
"""
ABC = "a\nb\nc\n"


def change_of(path: bytes = b"f", old: bytes = b"b", new: bytes = b"B") -> bytes:
    """Replace the middle one of three lines (a, b, c)."""
    return b"diff --git a/%b b/%b\n--- a/%b\n+++ b/%b\n@@ -1,3 +1,3 @@\n a\n-%b\n+%b\n c\n" % (
        path,
        path,
        path,
        path,
        old,
        new,
    )


def addition(path: bytes, line: bytes = b"x", mode: bytes = b"100644", ending: bytes = b"") -> bytes:
    """Add a file of one line; `ending` goes behind the hunk."""
    return (
        b"diff --git a/%b b/%b\nnew file mode %b\n--- /dev/null\n+++ b/%b\n@@ -0,0 +1 @@\n+%b\n"
        % (path, path, mode, path, line)
        + ending
    )


def deletion(path: bytes, line: bytes = b"x", mode: bytes = b"100644", ending: bytes = b"") -> bytes:
    """Delete a file of one line."""
    return (
        b"diff --git a/%b b/%b\ndeleted file mode %b\n--- a/%b\n+++ /dev/null\n@@ -1 +0,0 @@\n-%b\n"
        % (path, path, mode, path, line)
        + ending
    )


def moved(old: bytes, new: bytes, word: bytes = b"rename") -> bytes:
    """Rename or copy a file as it is."""
    return b"diff --git a/%b b/%b\nsimilarity index 100%%\n%b from %b\n%b to %b\n" % (
        old,
        new,
        word,
        old,
        word,
        new,
    )


UNENDED = b"\\ No newline at end of file\n"


def snapshot(repo: Repo) -> dict[str, tuple[int, bytes]]:
    """Read every file, folder and link of a repository, `.git` included, our own cache aside."""
    found: dict[str, tuple[int, bytes]] = {}
    for above, folders, files in os.walk(repo.path):
        if "HEAD" in files and "patchgate" in folders:
            folders.remove("patchgate")
        for name in (*folders, *files):
            place = Path(above, name)
            mode = place.lstat().st_mode
            if place.is_symlink():
                found[str(place)] = mode, os.fsencode(os.readlink(place))
            else:
                found[str(place)] = mode, place.read_bytes() if place.is_file() else b""
    return found


def check(repo: Repo, patch: bytes, *arguments: str, option: str = "--patch", **env: str) -> Answer:
    """Judge a patch (or edits); the repository must be the same afterwards, byte for byte."""
    file = repo.path.parent / "proposal"
    file.write_bytes(patch)
    before = snapshot(repo)
    answer = repo.check(option, str(file), *arguments, cwd=None, **env)
    assert snapshot(repo) == before
    assert answer.code in {0, 1, 2, 3}
    assert "patchgate itself failed" not in answer.out
    return answer


def check_edits(repo: Repo, document: object, *arguments: str) -> Answer:
    """Judge structured edits, given as what becomes JSON."""
    raw = document if isinstance(document, bytes) else json.dumps(document).encode("utf-8")
    return check(repo, raw, *arguments, option="--edits")


def edits_of(*edits: tuple[int, int, str], path: str = "f") -> dict[str, Any]:
    """Write edits of one file: start, end, new text."""
    listed = [{"path": path, "start": start, "end": end, "new_text": text} for start, end, text in edits]
    return {"patch": {"edits": listed}, "summary": "Change lines"}


def refusal(answer: Answer) -> tuple[str, str, list[str]]:
    """Give stage, code and the rules of the errors of a rejected change."""
    assert answer.code == 1
    assert answer.verdict == "rejected"
    assert all(finding["hint"] for finding in answer.findings if finding["level"] == "error")
    return answer.change["stage"], answer.change["code"], sorted(answer.errors)


def landed(repo: Repo, patch: bytes) -> Repo:
    """Copy a repository and let `git apply --index` make the patch there."""
    copy = repo.at(repo.path.parent / "landed")
    shutil.rmtree(copy.path, ignore_errors=True)
    shutil.copytree(repo.path, copy.path, symlinks=True)
    copy.try_git("update-index", "-q", "--refresh")
    copy.git("apply", "--index", "--whitespace=nowarn", "-", stdin=patch)
    return copy


def assert_lands_as_judged(repo: Repo, patch: bytes, *arguments: str) -> Answer:
    """Accept a patch, apply it for real in a copy, and demand the very same verdict there (promise 3)."""
    answer = check(repo, patch, *arguments)
    assert (answer.code, answer.verdict) == (0, "accepted"), answer.out
    copy = landed(repo, patch)
    staged = copy.check("--cached", "--profile", "agent").change
    judged = answer.change
    assert copy.ask("write-tree") == judged["after"]
    assert (staged["id"], staged["change_id"]) == (judged["id"], judged["change_id"])
    assert staged["policy"]["digest"] == judged["policy"]["digest"]
    return answer
