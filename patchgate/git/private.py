"""A private place for what git must write to answer a question: objects, an index.

A check writes nothing to the repository. Objects go to a temporary directory that has the repository's own
as an alternate (git, "GIT_ALTERNATE_OBJECT_DIRECTORIES"); it is gone when the question is answered.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType

from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.git.tree_format import TREE_MODE
from patchgate.storage.temporary import TemporaryFolder


class PrivateStore:
    """A context manager: a temporary object directory, and room for a private index beside it."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._place = TemporaryFolder()
        self._folder = self._place.path
        self.index_file = os.path.join(self._folder, "index")
        objects = os.path.join(self._folder, "objects")
        os.mkdir(objects)
        env = repository.environment
        own = env.get("GIT_OBJECT_DIRECTORY") or os.path.join(repository.common_dir, "objects")
        behind = [_listed(own)]
        if more := env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES"):
            behind.append(more)
        self.variables = {
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(behind),
        }

    def write(self, kind: str, content: bytes, object_format: str = "sha1") -> str:
        """Write a loose object (gitformat-loose: zlib of `kind SP size NUL content`); return its id."""
        raw = b"%s %d\0" % (kind.encode("ascii"), len(content)) + content
        oid = hashlib.new(object_format, raw).hexdigest()
        folder = os.path.join(self.variables["GIT_OBJECT_DIRECTORY"], oid[:2])
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, oid[2:]), "wb") as file:
            file.write(zlib.compress(raw, 0))
        return oid

    def copy_index(self) -> dict[str, str]:
        """Copy the index of this moment aside; return the variables under which git uses the copy."""
        if os.path.exists(self._repository.index_file):
            # With its time: git looks again at files that are as new as their index (racy git); under a newer
            # copy, a change of the same length was missed (measured: 1 of 40).
            shutil.copy2(self._repository.index_file, self.index_file)
            # A split index names its shared half by a file beside it.
            for name in os.listdir(self._repository.git_dir):
                if name.startswith("sharedindex."):
                    shared = os.path.join(self._repository.git_dir, name)
                    shutil.copyfile(shared, os.path.join(self._folder, name))
        return {**self.variables, "GIT_INDEX_FILE": self.index_file}

    def bare(self) -> Repository:
        """Make a repository of the same objects that has no attributes, index, refs, or config at all.

        Its children need `variables` too. A merge driver of `.git/config` never runs there (measured: with
        `info/attributes` it did).
        """
        place = os.path.join(self._folder, "git")
        if not os.path.isdir(place):
            os.makedirs(os.path.join(place, "refs"))
            os.mkdir(os.path.join(place, "objects"))
            _write(os.path.join(place, "HEAD"), "ref: refs/heads/none\n")
            if self._repository.object_format != "sha1":
                extension = f"[extensions]\n\tobjectFormat = {self._repository.object_format}\n"
                _write(os.path.join(place, "config"), "[core]\n\trepositoryFormatVersion = 1\n" + extension)
        environment = {
            **self._repository.environment,
            "GIT_COMMON_DIR": place,
            "GIT_INDEX_FILE": os.path.join(place, "index"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_SHALLOW_FILE": os.path.join(self._repository.common_dir, "shallow"),
        }
        return replace(self._repository, git_dir=place, work_tree=None, environment=environment)

    def __enter__(self) -> PrivateStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._place.remove()


def _write(place: str, text: str) -> None:
    with open(place, "w", encoding="ascii") as file:
        file.write(text)


def _listed(path: str) -> str:
    """Write a path as an element of git's list of alternates: quoted where a colon would split it."""
    if os.pathsep not in path and not path.startswith('"'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def seed(
    repository: Repository, entries: Mapping[RepoPath, Entry | None], variables: Mapping[str, str]
) -> str:
    """Fill the private index that the variables name, and nothing else; give the tree of what it holds.

    Raises:
        UndecidedError: git does not take an entry.
    """
    # A patch may be tried twice in one store; the index of the first time holds what it made.
    for left in (variables["GIT_INDEX_FILE"], variables["GIT_INDEX_FILE"] + ".lock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(left)
    listed = b"".join(
        f"{entry.mode} {entry.oid}\t".encode("ascii") + path.raw + b"\0"
        for path, entry in entries.items()
        if entry is not None and entry.mode != TREE_MODE
    )
    # -z: names may hold anything; --info-only: git need not look the objects up.
    repository.output("update-index", "-z", "--index-info", stdin=listed, variables=variables)
    return repository.output("write-tree", "--missing-ok", variables=variables).decode("ascii").strip()
