"""Private objects and indexes, for what git must write to answer a question.

Objects go to a temporary directory that has the repository's own as an alternate
("GIT_ALTERNATE_OBJECT_DIRECTORIES" in git(1)), and that is removed afterwards. Such questions are: which
tree a patch results in, and which patch id a change has.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import zlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from patchgate.errors import UndecidedError
from patchgate.git.diff import RAW, DiffReader
from patchgate.git.model import TREE_MODE, Entry, FileChange, index_info, staged_records
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, finish
from patchgate.git.trees import resulting_tree
from patchgate.storage.temporary_folder import TemporaryFolder
from patchgate.values import replace


class PrivateStore:
    """A context manager: a temporary object directory, and a private index next to it."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._temporary = TemporaryFolder()
        self._folder = self._temporary.path
        self.index_file = os.path.join(self._folder, "index")
        objects = os.path.join(self._folder, "objects")
        os.mkdir(objects)
        env = repository.environment
        own = env.get("GIT_OBJECT_DIRECTORY") or os.path.join(repository.common_dir, "objects")
        alternates = [_listed(own)]
        if more := env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES"):
            alternates.append(more)
        self.variables = {
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(alternates),
        }

    def write(self, kind: str, content: bytes) -> str:
        """Write a loose object (gitformat-loose: zlib of `kind SP size NUL content`); return its id."""
        raw = b"%s %d\0" % (kind.encode("ascii"), len(content)) + content
        oid = hashlib.new(self._repository.object_format, raw).hexdigest()
        folder = os.path.join(self.variables["GIT_OBJECT_DIRECTORY"], oid[:2])
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, oid[2:]), "wb") as file:
            file.write(zlib.compress(raw, 0))
        return oid

    def copy_index(self) -> dict[str, str]:
        """Copy the current index; return the variables by which git uses the copy."""
        if os.path.exists(self._repository.index_file):
            # With its time: git looks again at files that are as new as their index (racy git); under a newer
            # copy, a change of the same length was missed (measured: 1 of 40).
            shutil.copy2(self._repository.index_file, self.index_file)
            # A split index names its shared half by a file next to it.
            for name in os.listdir(self._repository.git_dir):
                if name.startswith("sharedindex."):
                    shared = os.path.join(self._repository.git_dir, name)
                    shutil.copyfile(shared, os.path.join(self._folder, name))
        return {**self.variables, "GIT_INDEX_FILE": self.index_file}

    def bare(self, attributes: str = "") -> Repository:
        """Make a repository of the same objects without attributes, index, refs or config.

        Its children need `variables` too. A merge driver of `.git/config` never runs there (measured: with
        `info/attributes` it did).

        Args:
            attributes: those that it has for all paths, such as `* merge=union`.
        """
        git_dir = os.path.join(self._folder, f"git-{len(attributes)}" if attributes else "git")
        if not os.path.isdir(git_dir):
            os.makedirs(os.path.join(git_dir, "refs"))
            os.mkdir(os.path.join(git_dir, "objects"))
            if attributes:
                os.mkdir(os.path.join(git_dir, "info"))
                _write(os.path.join(git_dir, "info", "attributes"), attributes + "\n")
            _write(os.path.join(git_dir, "HEAD"), "ref: refs/heads/none\n")
            if self._repository.object_format != "sha1":
                extension = f"[extensions]\n\tobjectFormat = {self._repository.object_format}\n"
                _write(os.path.join(git_dir, "config"), "[core]\n\trepositoryFormatVersion = 1\n" + extension)
        environment = {
            **self._repository.environment,
            "GIT_COMMON_DIR": git_dir,
            "GIT_INDEX_FILE": os.path.join(git_dir, "index"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_SHALLOW_FILE": os.path.join(self._repository.common_dir, "shallow"),
        }
        return replace(self._repository, git_dir=git_dir, work_tree=None, environment=environment)

    def __enter__(self) -> PrivateStore:
        return self

    def __exit__(self, *error: object) -> None:
        self._temporary.remove()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _listed(path: str) -> str:
    """Write a path as an element of git's list of alternates: quoted where a colon would split it."""
    if os.pathsep not in path and not path.startswith('"'):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def fill_index(
    repository: Repository, entries: Mapping[RepoPath, Entry | None], variables: Mapping[str, str]
) -> str:
    """Fill the private index that the variables name, and nothing else; return its tree.

    Raises:
        UndecidedError: git refuses an entry.
    """
    # A patch may be tried twice in one store; remove the index of the first time.
    for left in (variables["GIT_INDEX_FILE"], variables["GIT_INDEX_FILE"] + ".lock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(left)
    listed = index_info((path, entry) for path, entry in entries.items() if entry and entry.mode != TREE_MODE)
    repository.output("update-index", "-z", "--index-info", stdin=listed, variables=variables)
    return repository.output("write-tree", "--missing-ok", variables=variables).decode("ascii").strip()


# A mere warning of `git add` must not keep a file from being read.
READING = ("-c", "core.looseCompression=0", "-c", "core.safecrlf=false")
_NOTHING: Mapping[RepoPath, FileChange] = MappingProxyType({})


def add_files(
    repository: Repository,
    store: PrivateStore,
    name: str,
    known: Mapping[RepoPath, Entry],
    paths: Iterable[RepoPath],
    *options: str,
) -> dict[RepoPath, Entry]:
    """Let git add files on disk to a private index; return their entries.

    Args:
        name: distinguishes this index from others of the store.
        known: their entries in the index: a file that is CR LF there stays so under `core.autocrlf`, and
            without `core.fileMode` a file keeps its mode.
        options: more options of `git update-index`.

    Raises:
        UndecidedError: git failed.
    """
    index_file = f"{store.index_file}-{name}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(index_file)
    variables = {**store.variables, "GIT_INDEX_FILE": index_file}
    if known:
        stdin = index_info(known.items())
        repository.output("update-index", "-z", "--index-info", stdin=stdin, variables=variables)
    names = b"".join(path.raw + b"\0" for path in paths)
    arguments = (*READING, "update-index", "--add", *options, "-z", "--stdin")
    repository.git(*arguments, stdin=names, variables=variables, in_work_tree=True)
    listed = repository.output("ls-files", "-z", "--stage", variables=variables)
    return {path: entry for path, entry, _ in staged_records(listed)}


def tree_with_change(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    head_tree: str,
    files: Iterable[FileChange],
    pending: Mapping[RepoPath, FileChange] = _NOTHING,
) -> str:
    """Make the tree of HEAD, what is staged, what differs on disk, and the judged change; return its id.

    New trees and blobs are in the private store, where git finds them with `store.variables`.

    Args:
        objects: reads through `store`.
        head_tree: HEAD's tree.
        files: the judged change; it wins over all else. Its blobs are in `store`.
        pending: what else is known to differ from HEAD's tree; it wins over what is found on disk.

    Raises:
        UndecidedError: the index is in conflict or unreadable, or a file cannot be read.
    """
    changes: dict[RepoPath, FileChange] = {}
    if repository.work_tree is not None:
        # Both read only the index, and git's scan of the disk takes longer: run them in parallel.
        with repository.child("diff-index", "--cached", "--ita-invisible-in-index", *RAW, head_tree) as child:
            child.close_input()
            unstaged = _unstaged(repository, store)
            records = DiffReader(child).records()
            finish(child, "diff-index")
        changes |= {record.path: record for record in records}
        changes |= unstaged
    changes |= pending
    changes |= {file.path: file for file in files}

    tree = resulting_tree(objects, head_tree, changes.values(), store.write).tree
    if tree == objects.empty_tree:
        store.write("tree", b"")
    return tree


def paths_changed_since(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    head_tree: str,
    files: Iterable[FileChange],
    tried: str,
) -> list[RepoPath]:
    """List the paths in which the tree to try now differs from the tried one.

    Args:
        tried: what `tree_with_change` gave for the same change, with the same `store`.

    Raises:
        UndecidedError: as in `tree_with_change`.
    """
    now = tree_with_change(repository, objects, store, head_tree, files)
    if now == tried:
        return []
    arguments = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", tried, now)
    listed = repository.output(*arguments, variables=store.variables)
    return [RepoPath.from_git(name) for name in listed.split(b"\0")[:-1]]


def _unstaged(repository: Repository, store: PrivateStore) -> dict[RepoPath, FileChange]:
    """Read what differs on disk from the index; a file with only a newer time does not."""
    done = repository.git("diff-files", "-z", "--raw", "--ignore-submodules=all", in_work_tree=True)
    gone: list[RepoPath] = []
    known: dict[RepoPath, Entry] = {}
    there: list[RepoPath] = []
    words = done.out.split(b"\0")
    for about, name in zip(words[0:-1:2], words[1::2], strict=True):
        mode, _, oid, _, status = about[1:].decode("ascii").split(" ")
        path = RepoPath.from_git(name)
        if status == "U":
            raise UndecidedError(
                f"{path.quoted} has an unresolved merge conflict",
                "resolve the conflict, then git add the file",
            )
        if status == "D":
            gone.append(path)
            continue
        there.append(path)
        if status != "A":
            known[path] = Entry(mode, oid)
    found = {path: FileChange(path, None, None) for path in gone}
    if there:
        # --remove: a file that was deleted since git listed it just counts as deleted.
        added = add_files(repository, store, "unstaged", known, there, "--remove", "--replace")
        found |= {path: FileChange(path, None, added.get(path)) for path in there}
    return found


_DIFF = ("diff-tree", "-r", "-p", "-M", "--no-color", "--no-ext-diff", "--no-textconv")
_CHUNK = 1 << 16


def patch_ids_of(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    """Return the ids of commits with at most one parent; a commit without one is left out.

    Raises:
        UndecidedError: git failed.
    """
    if not commits:
        return {}
    feed = "".join(f"{commit}\n" for commit in commits).encode("ascii")
    words = _ids(repository, ("--root", "--stdin"), feed)
    return {commit: found for found, _, commit in (line.partition(" ") for line in words)}


def patch_id_of(repository: Repository, store: PrivateStore, files: Sequence[FileChange]) -> str | None:
    """Return the id of a change, whose objects git finds in the repository or in the private store.

    Raises:
        UndecidedError: git failed, for instance on a path that it refuses.
    """
    variables = {**store.variables, "GIT_INDEX_FILE": store.index_file}
    old = fill_index(repository, {file.path: file.old for file in files}, variables)
    new = fill_index(repository, {file.path: file.new for file in files}, variables)
    words = _ids(repository, (old, new), b"", variables)
    return words[0].partition(" ")[0] if words else None


def _ids(
    repository: Repository,
    arguments: Sequence[str],
    stdin: bytes,
    variables: Mapping[str, str] | None = None,
) -> list[str]:
    """Pipe the output of a diff to `git patch-id`, and return its lines: an id and a commit."""
    # Without an index: its attributes would select parts of the user's config.
    variables = {**(variables or {}), "GIT_INDEX_FILE": repository.git_dir + "/no-index"}
    with (
        repository.child(*_DIFF, *arguments, variables=variables) as diff,
        repository.child("patch-id", "--stable") as ids,
    ):
        diff.feed(stdin)
        ids.feed(iter(lambda: diff.out.read(_CHUNK), b""))
        said = b"".join(iter(lambda: ids.out.read(_CHUNK), b""))
        finish(diff, "diff-tree")
        finish(ids, "patch-id")
    return said.decode("ascii").splitlines()
