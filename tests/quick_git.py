"""Stage and commit in this process, through libgit2, where git would do exactly the same.

Thousands of tests begin with commits that are about nothing special, and git needs three children for
each. Only plain repositories in their pinned world qualify, and only plain messages; git makes all others.
With `PATCHGATE_LONG=1` git does it all. `tests/test_quick_git.py` compares the two.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pygit2

_CONFIG = re.compile(
    rb"\[core\]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    rb"\tlogallrefupdates = true\n"
    rb'(?:\[(?:remote|branch) "[a-z]+"\]\n(?:\t(?:url|fetch|remote|merge) = [^\n\\"]+\n)+)*'
)
_MESSAGE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_REF = re.compile(r"ref: (refs/heads/[A-Za-z0-9_-]+)\n")
# What git leaves in the middle of something, and what changes how it stores.
_STATES = (
    *("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer"),
    *("BISECT_LOG", "shallow", "commondir", "config.worktree", "index.lock", "HEAD.lock"),
    *("info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout", "objects/info/alternates"),
    *("worktrees", "modules", "refs/replace", "packed-refs"),
)
_NOT_PLAIN = {".gitattributes", ".gitmodules", ".gitignore"}
_WHO = pygit2.Signature("A U Thor", "author@example.com", 1_700_000_000, 0)


def _is_plain(work_tree: Path) -> bool:
    """Return whether git would read nothing here but the files themselves."""
    git_dir = work_tree / ".git"
    try:
        config = (git_dir / "config").read_bytes()
    except OSError:
        return False
    if not _CONFIG.fullmatch(config) or any(os.path.lexists(git_dir / name) for name in _STATES):
        return False
    return all(
        not (_NOT_PLAIN.intersection(files) or (folder != str(work_tree) and ".git" in {*folders, *files}))
        for folder, folders, files in _walk(work_tree)
    )


def _walk(work_tree: Path) -> list[tuple[str, list[str], list[str]]]:
    found = []
    for folder, folders, files in os.walk(work_tree):
        found.append((folder, list(folders), files))
        if folder == str(work_tree):
            folders.remove(".git")
    return found


def _index(work_tree: Path) -> tuple[pygit2.Repository, pygit2.Index] | None:
    """Open a plain repository and its index; None if it is not plain."""
    if os.environ.get("PATCHGATE_LONG") or not _is_plain(work_tree):
        return None
    repository = pygit2.Repository(str(work_tree))
    return repository, repository.index


def stage(work_tree: Path) -> bool:
    """Do what `git add -A` does; return whether it was done."""
    try:
        if (found := _index(work_tree)) is None:
            return False
        _, index = found
        index.add_all()
        index.write()
    except (pygit2.GitError, OSError, ValueError):
        return False
    return True


def commit(work_tree: Path, message: str) -> str | None:
    """Do what `git add -A` and `git commit -m MESSAGE` do; return the commit, None if nothing was done."""
    if not _MESSAGE.fullmatch(message):
        return None
    git_dir = work_tree / ".git"
    try:
        head = _REF.fullmatch((git_dir / "HEAD").read_text())
        if head is None or ((git_dir / "hooks").is_dir() and any((git_dir / "hooks").iterdir())):
            return None
        if (found := _index(work_tree)) is None:
            return None
        repository, index = found
        place = git_dir / head[1]
        old = place.read_text().strip() if place.exists() else None
        index.add_all()
        tree = index.write_tree()
        parents = [] if old is None else [pygit2.Oid(hex=old)]
        made = str(repository.create_commit(None, _WHO, _WHO, message + "\n", tree, parents))
        index.write()
    except (pygit2.GitError, OSError, ValueError):
        return None
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(made + "\n")
    (git_dir / "COMMIT_EDITMSG").write_text(message + "\n")
    kind = "commit (initial)" if old is None else "commit"
    line = f"{old or '0' * 40} {made} A U Thor <author@example.com> 1700000000 +0000\t{kind}: {message}\n"
    for log in (git_dir / "logs" / "HEAD", git_dir / "logs" / head[1]):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as stream:
            stream.write(line)
    return made
