"""Make scratch trees, where the policy's commands try a patch, never in the user's working tree.

Some commands need only the touched files, in a fresh folder; others the whole tree with a repository, which
is cached and updated, or separate. None shares a file with the user's. A command can still write elsewhere by
an absolute path, or through a symlink of the tree.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from patchgate.errors import UndecidedError
from patchgate.git.model import TREE_MODE, Entry, folders_above, index_info
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository
from patchgate.git.scratch.checkout import Checkout, let_time_pass
from patchgate.git.scratch.temporary_folders import (
    remove,
    require_outside,
    sweep_folders,
    temporary,
    translate_errors,
)
from patchgate.git.scratch.tree_cache import (
    MOST_TREES,
    CachedTree,
    cache_folder_of,
    sweep_cached_trees,
)
from patchgate.git.scratch_record import identity_of
from patchgate.storage.lock import acquire
from patchgate.values import dataclass

# The settings that decide how git compares files; the rest of the user's config is left out.
_TAKEN = r"^core\.(autocrlf|eol|ignorecase|precomposeunicode|symlinks)$"
_FORMAT = "%(objectname) %(refname)"
_POLL_SECONDS = 0.05


def make_git_dir(
    repository: Repository, store: PrivateStore, root: str, commit: str | None, *, copies: bool
) -> None:
    """Make `.git` in a scratch tree, still without an index.

    Args:
        store: has the objects of the tried tree that the repository does not.
        commit: HEAD's commit; None for an unborn branch.
        copies: whether the objects of `store` are copied, for a tree that outlives it.

    Raises:
        OSError: it cannot be written.
        UndecidedError: git could not list the refs.
    """
    folder = os.path.join(root, ".git")
    os.mkdir(folder)
    for name in ("refs", "refs/heads", "objects", "objects/info", "info"):
        os.mkdir(os.path.join(folder, name))
    _write(folder, "HEAD", os.fsencode(commit or "ref: refs/heads/main") + b"\n")
    _write(folder, "config", _config(repository))
    listed = repository.output("for-each-ref", f"--format={_FORMAT}")
    refs = [line for line in listed.splitlines(keepends=True) if not line.endswith(b" refs/stash\n")]
    _write(folder, "packed-refs", b"".join(refs))
    objects = store.variables["GIT_OBJECT_DIRECTORY"]
    # The list in the environment is split by colons, the one in the file by lines.
    alternates = [os.path.join(repository.common_dir, "objects")]
    if copies:
        shutil.copytree(objects, os.path.join(folder, "objects"), dirs_exist_ok=True)
    else:
        alternates.append(objects)
    _write(folder, "objects/info/alternates", b"".join(_line(os.fsencode(each)) for each in alternates))
    if repository.shallow:
        _write(folder, "shallow", "".join(f"{oid}\n" for oid in sorted(repository.shallow)).encode("ascii"))


def copy_index(root: str, index: str) -> None:
    """Copy the index of the files with its time, which git compares with theirs."""
    shutil.copy2(index, os.path.join(root, ".git", "index"))


def _write(folder: str, name: str, content: bytes) -> None:
    with open(os.path.join(folder, name), "wb") as file:
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
    # No background work: it would outlive the command, and write where the next one runs.
    lines += ["[gc]", "\tauto = 0", "[maintenance]", "\tauto = false"]
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _line(path: bytes) -> bytes:
    """Write a path as a line of `objects/info/alternates`, quoted if git would read it differently."""
    if not path.startswith((b'"', b"#")) and b"\n" not in path:
        return path + b"\n"
    quoted = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + quoted + b'"\n'


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch tree while it is used; `path` is the folder in which commands run."""

    path: str
    _checkout: Checkout
    _identity: tuple[int, int] | None
    _restore: Callable[[], None]

    def changed(self) -> list[RepoPath]:
        """List the tracked files that a command changed, removed or replaced.

        Raises:
            UndecidedError: the tree itself is gone, or git failed.
        """
        self._require()
        return self._checkout.changed()

    def restore_files(self) -> None:
        """Restore the tracked files for the next command.

        Raises:
            UndecidedError: the tree itself is gone, or git failed.
        """
        self._require()
        with translate_errors("cannot restore what a command changed in the scratch tree"):
            self._restore()

    def _require(self) -> None:
        # git would follow a symlink if a command replaced the tree with one.
        if self._identity is None or identity_of(self.path) != self._identity:
            raise UndecidedError(
                "a command removed or replaced the scratch tree itself",
                "let it write only inside its working directory",
            )


@contextlib.contextmanager
def touched_files(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    tree: str,
    paths: Iterable[RepoPath],
    *,
    cache: str,
    keep: bool = False,
) -> Iterator[Scratch]:
    """Write some files of a tree into a fresh folder, as a checkout would.

    Args:
        objects: reads through `store`.
        tree: what is tried.
        paths: the touched paths; those that `tree` does not have are left out.
        cache: the folder for scratch trees; created if missing.
        keep: whether the folder stays as the commands left it.

    Raises:
        UndecidedError: it cannot be written, or a blob is missing.
    """
    cache = require_outside(repository, cache)
    with temporary(repository, os.path.join(cache, "kept" if keep else "touched"), keep=keep) as folder:
        root = os.path.join(folder, "tree")
        checkout = _small(repository, objects, store, tree, paths, folder)
        with translate_errors("cannot create the scratch tree"):
            os.mkdir(root)
        identity = identity_of(root)

        def write() -> None:
            checkout.write()
            let_time_pass(os.path.join(folder, "probe"))
            os.utime(checkout.index)

        def again() -> None:
            os.chmod(root, 0o700)
            for name in os.listdir(root):
                path = os.path.join(root, name)
                if identity_of(path) is None:
                    os.unlink(path)
                elif not remove(path):
                    raise PermissionError(1, "not permitted to remove it", path)
            write()

        with translate_errors("cannot write the scratch tree"):
            write()
        yield Scratch(path=root, _checkout=checkout, _identity=identity, _restore=again)


def _small(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    tree: str,
    paths: Iterable[RepoPath],
    parent: str,
) -> Checkout:
    """Make an index of some paths of a tree, with the attributes files that apply to them."""
    return small_checkout(
        repository, partial(objects.entry, tree), paths, parent, tree=tree, variables=store.variables
    )


def small_checkout(
    repository: Repository,
    entry_of: Callable[[bytes], Entry | None],
    paths: Iterable[RepoPath],
    parent: str,
    *,
    tree: str,
    variables: Mapping[str, str],
) -> Checkout:
    """Make an index of some paths, with the attributes files that apply to them; its root is `parent/tree`.

    Args:
        entry_of: gives the entry of a path in the tree that is tried.
        variables: how git finds the objects of that tree.

    Raises:
        UndecidedError: git failed.
    """
    wanted = {path: entry_of(path.raw) for path in paths}
    names = frozenset(path for path, entry in wanted.items() if entry is not None and entry.mode != TREE_MODE)
    for folder in folders_above(names):
        path = RepoPath((folder + b"/" if folder else b"") + b".gitattributes")
        wanted.setdefault(path, entry_of(path.raw))
    seed = index_info((path, entry) for path, entry in wanted.items() if entry and entry.mode != TREE_MODE)
    index = os.path.join(parent, "index")
    own = {**variables, "GIT_INDEX_FILE": index}
    repository.output("update-index", "-z", "--index-info", stdin=seed, variables=own)
    root = os.path.join(parent, "tree")
    return Checkout(
        repository=repository,
        root=root,
        index=index,
        spare=parent,
        variables=variables,
        tree=tree,
        names=names,
    )


@contextlib.contextmanager
def whole_tree(
    repository: Repository,
    store: PrivateStore,
    tree: str,
    *,
    cache: str,
    commit: str | None = None,
    keep: bool = False,
    patience_seconds: float = 300.0,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Scratch]:
    """Check a whole tree out, in a folder that is cached for the next time.

    Only one process at a time uses it; others use another one, up to a few. Afterwards it is restored,
    without what the commands left.

    Args:
        store: has the objects of `tree` that the repository does not; it outlives the block.
        cache: the folder for scratch trees; created if missing.
        commit: HEAD's commit for commands that call git; None for an unborn branch.
        keep: whether this tree stays as the commands leave it, in a separate folder; the next use then
            makes another.
        patience_seconds: how long to wait while other processes use all of them.
        pause: waits for so many seconds; called repeatedly.

    Raises:
        UndecidedError: it cannot be written, a blob is missing, or others use it for too long.
    """
    cache = require_outside(repository, cache)
    with contextlib.ExitStack() as stack:
        with translate_errors("cannot lock the scratch tree"):
            home = _lock_a_tree(stack, repository, cache, patience_seconds, pause)
        with translate_errors("cannot create the scratch tree"):
            kept = CachedTree(repository=repository, store=store, home=home, tree=tree)
            kept.prepare()
        if keep:
            folder = stack.enter_context(temporary(repository, os.path.join(cache, "kept"), keep=True))
            with translate_errors("cannot keep the scratch tree"):
                kept.detach(os.path.join(folder, "tree"))
        else:
            stack.callback(kept.reset_tree)
        checkout = kept.checkout
        with translate_errors("cannot create the scratch tree"):
            # The index is copied after its time is set, and the folders are marked after `.git` is there.
            make_git_dir(repository, store, checkout.root, commit, copies=keep)
            kept.mark()
            copy_index(checkout.root, checkout.index)
        yield Scratch(
            path=checkout.root,
            _checkout=checkout,
            _identity=identity_of(checkout.root),
            _restore=kept.restore_files,
        )


def _lock_a_tree(
    stack: contextlib.ExitStack,
    repository: Repository,
    cache: str,
    patience_seconds: float,
    pause: Callable[[float], None],
) -> str:
    """Lock the first cached tree that nobody uses, until the stack is closed; return its folder."""
    homes = [cache_folder_of(repository, cache, number) for number in range(MOST_TREES)]
    deadline = time.monotonic() + patience_seconds
    while True:
        for home in homes:
            try:
                stack.enter_context(acquire(os.path.join(home, "lock"), timeout_seconds=0))
            except UndecidedError:
                if home is homes[-1] and time.monotonic() >= deadline:
                    raise
                continue
            return home
        pause(_POLL_SECONDS)


@contextlib.contextmanager
def separate_tree(
    repository: Repository, store: PrivateStore, tree: str, *, cache: str, commit: str | None = None
) -> Iterator[Scratch]:
    """Check a whole tree out in a fresh folder, so that several may be in use at once.

    It costs a whole checkout each time (1.1 s for 5,000 files), and `whole_tree` only the change.

    Args:
        store: has the objects of `tree` that the repository does not; it outlives the block.
        cache: the folder for scratch trees; created if missing.
        commit: HEAD's commit for commands that call git; None for an unborn branch.

    Raises:
        UndecidedError: it cannot be written, or a blob is missing.
    """
    cache = require_outside(repository, cache)
    with temporary(repository, os.path.join(cache, "touched")) as folder:
        root, index = os.path.join(folder, "tree"), os.path.join(folder, "index")
        checkout = Checkout(
            repository=repository,
            root=root,
            index=index,
            spare=folder,
            variables=store.variables,
            tree=tree,
        )
        with translate_errors("cannot create the scratch tree"):
            os.mkdir(root)
            checkout.write()
            make_git_dir(repository, store, root, commit, copies=False)
            copy_index(root, index)
        yield Scratch(path=root, _checkout=checkout, _identity=identity_of(root), _restore=checkout.write)


def sweep(repository: Repository, cache: str) -> list[str]:
    """Remove what killed processes left, and the cached trees of deleted repositories.

    Returns:
        The folders that could not be removed.

    Raises:
        UndecidedError: the folder of the records cannot be made.
    """
    real = os.path.realpath(cache)
    return [*sweep_folders(repository, real), *sweep_cached_trees(real)]
