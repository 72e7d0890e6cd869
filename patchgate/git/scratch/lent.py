"""The repository that a command finds in its scratch tree: one of its own, made anew for each use.

Decides what `git` sees there: HEAD detached at the commit, the refs as they are now, the tried tree in the
index, objects through `objects/info/alternates`. It shares no file with the user's repository: a linked
worktree would share refs, config and stash, so that `git tag` or `git branch -D` in a test reached them.
What a command writes into it is thrown away with it. Hooks, remotes and filters are left out.
"""

from __future__ import annotations

import os
import shutil

from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository

# What git's own look at files depends on; the rest of the user's config stays at home.
_TAKEN = r"^core\.(autocrlf|eol|ignorecase|precomposeunicode|symlinks)$"
_FORMAT = "%(objectname) %(refname)"


def lend(repository: Repository, store: PrivateStore, root: str, commit: str | None, *, copies: bool) -> None:
    """Make `.git` in a scratch tree that has none; its index is yet missing.

    Args:
        store: where the objects of the tried tree are that the repository does not have.
        commit: what HEAD names; None for an unborn branch.
        copies: whether the objects of `store` are copied, for a tree that outlives it.

    Raises:
        OSError: it cannot be written.
        UndecidedError: git could not list the refs.
    """
    place = os.path.join(root, ".git")
    os.mkdir(place)
    for folder in ("refs", "refs/heads", "objects", "objects/info", "info"):
        os.mkdir(os.path.join(place, folder))
    _write(place, "HEAD", os.fsencode(commit or "ref: refs/heads/main") + b"\n")
    _write(place, "config", _config(repository))
    listed = repository.output("for-each-ref", f"--format={_FORMAT}")
    refs = [line for line in listed.splitlines(keepends=True) if not line.endswith(b" refs/stash\n")]
    _write(place, "packed-refs", b"".join(refs))
    objects = store.variables["GIT_OBJECT_DIRECTORY"]
    # The list in the environment is split by colons, the one in the file by lines.
    behind = [os.path.join(repository.common_dir, "objects")]
    if copies:
        shutil.copytree(objects, os.path.join(place, "objects"), dirs_exist_ok=True)
    else:
        behind.append(objects)
    _write(place, "objects/info/alternates", b"".join(_line(os.fsencode(each)) for each in behind))
    if repository.shallow:
        _write(place, "shallow", "".join(f"{oid}\n" for oid in sorted(repository.shallow)).encode("ascii"))


def lend_index(root: str, index: str) -> None:
    """Copy the index that knows the files, with its time, which git compares with theirs."""
    shutil.copy2(index, os.path.join(root, ".git", "index"))


def _write(place: str, name: str, content: bytes) -> None:
    with open(os.path.join(place, name), "wb") as file:
        file.write(content)


def _config(repository: Repository) -> bytes:
    is_sha1 = repository.object_format == "sha1"
    lines = [
        "[core]",
        f"\trepositoryFormatVersion = {0 if is_sha1 else 1}",
        "\tbare = false",
        "\tfileMode = true",
        "\tlogAllRefUpdates = true",
    ]
    taken = repository.git("config", "--get-regexp", _TAKEN, answers=(0, 1)).out.decode("utf-8", "replace")
    for line in taken.splitlines():
        name, _, value = line.partition(" ")
        if value.isalnum():
            lines.append(f"\t{name.removeprefix('core.')} = {value}")
    if not is_sha1:
        lines += ["[extensions]", f"\tobjectFormat = {repository.object_format}"]
    # Nothing in the background: it would go on after the command, and write where the next one runs.
    lines += ["[gc]", "\tauto = 0", "[maintenance]", "\tauto = false"]
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _line(path: bytes) -> bytes:
    """Write a path as a line of `objects/info/alternates`, quoted where it would be read otherwise."""
    if not path.startswith((b'"', b"#")) and b"\n" not in path:
        return path + b"\n"
    quoted = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + quoted + b'"\n'
