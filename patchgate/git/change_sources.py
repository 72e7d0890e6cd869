"""Read a change from the index or the working tree, or list everything that is tracked.

Each function finds what git would really commit, as a `Change`. Nothing is written to the repository: objects
that git has to write go to a private store. Commits and ranges are in `history`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.binary_files import binaries_shown_as_text, count_hidden_lines
from patchgate.git.diff import Detail, Records, is_text_candidate, read_difference
from patchgate.git.model import (
    EXECUTABLE,
    GITLINK,
    REGULAR,
    SYMLINK,
    Change,
    Entry,
    FileChange,
    Source,
    staged_records,
)
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository
from patchgate.git.revisions import head_commit
from patchgate.git.trees import Listing, resulting_tree
from patchgate.values import dataclass, field, replace

if TYPE_CHECKING:
    from patchgate.git.merge_paths import CarriedPaths, CarryLimit, Landing
    from patchgate.git.merges import Merged
    from patchgate.git.private_store import PrivateStore

_LINK_BYTES = 4096
# The names of more paths than these bytes would not fit on a command line everywhere.
_MOST_NAMED = 50_000
_MODES = frozenset({REGULAR, EXECUTABLE, SYMLINK, GITLINK})


@dataclass(frozen=True, slots=True)
class LoadedChange:
    """A change as it was read, with the other facts that the gates need.

    `folders` lists the resulting tree's folders above each new name. `root` has the entries of the root
    folder that differ between the index and the base, also those that a merge took from one side. Of what a
    patch or edits proposed (`is_proposed`): `copied` are the sources of copies, which count as touched;
    `blocked` maps a path to what blocks it and is not a folder (a symlink, a submodule);
    `rename_pairs` are the two names of each rename and copy, which must stay in one part of the patch;
    `overlay` is a readable tree with the entries that differ in the resulting one, None if git could not
    make its effect. A merge with conflicts has it as well: the change is only what it did itself.
    `heads` are the parents of a merge, `parents` their trees; then the tree `change.after` can be read.
    `limit` is what is left of the time for the questions about it and other merges. `carried` finds the files
    of a merge that no side made as they are (`git.merge_paths`). `solved` lists how the paths of a merge that
    were in conflict differ from a tree; None without a conflict.
    """

    change: Change
    source: Source
    folders: dict[bytes, Listing] = field(default_factory=dict)
    root: Mapping[bytes, Entry | None] = field(default_factory=dict)
    is_proposed: bool = False
    copied: tuple[RepoPath, ...] = ()
    blocked: Mapping[RepoPath, RepoPath] = field(default_factory=dict)
    rename_pairs: tuple[tuple[RepoPath, RepoPath], ...] = ()
    overlay: tuple[str, Mapping[bytes, Entry | None]] | None = None
    heads: tuple[str, ...] = ()
    limit: CarryLimit | None = field(default=None, compare=False)
    parents: tuple[str, ...] = ()
    carried: Callable[[Landing], Sequence[FileChange]] | None = field(default=None, compare=False)
    solved: Callable[[str], Sequence[FileChange]] | None = field(default=None, compare=False)

    def with_overlay(self, tree: str, files: Iterable[FileChange]) -> LoadedChange:
        """Add the overlay: a readable tree, and the files of the result that differ from it."""
        return replace(self, overlay=(tree, {file.path.raw: file.new for file in files}))


@dataclass(frozen=True, slots=True)
class PendingBase:
    """What a pending change starts from: the tree, HEAD's commit, and HEAD's own tree (where the policy is).

    `heads` are HEAD and what is being merged into it; with a conflict, `tree` is HEAD's and `merged` what git
    made of the merge. Both are read through `store`.
    """

    tree: str
    commit: str | None
    policy_tree: str
    heads: tuple[str, ...] = ()
    merged: Merged | None = None
    store: PrivateStore | None = None


def pending_base(
    repository: Repository, objects: Objects, store: PrivateStore | None = None, heads: Sequence[str] = ()
) -> PendingBase:
    """Find the base of the next commit: HEAD, the empty tree, or the merge that git makes.

    Args:
        store: where a merge is made; None if nothing is being merged.
        heads: what is being merged, if MERGE_HEAD is not written yet (pre-merge-commit).

    Raises:
        UndecidedError: HEAD is broken, or a merged head is missing.
    """
    head = head_commit(objects)
    if head is None:
        _require_unborn(repository)
        return PendingBase(objects.empty_tree, None, objects.empty_tree)
    tree = _tree_of(objects, head)
    merging = list(heads) or merge_heads(repository)
    if not merging or store is None:
        return PendingBase(tree, head, tree)
    from patchgate.git.merges import automatic_merges

    merge = (head, *merging)
    (merged,) = automatic_merges(store, [merge])
    if merged.conflicts:
        return PendingBase(tree=tree, commit=head, policy_tree=tree, heads=merge, merged=merged, store=store)
    return PendingBase(tree=merged.tree, commit=head, policy_tree=tree, heads=merge, merged=None, store=store)


def _require_unborn(repository: Repository) -> None:
    """Refuse a broken HEAD, which must not look like a branch without commits."""
    named = repository.git("symbolic-ref", "-q", "HEAD", answers=(0, 1))
    branch = os.fsdecode(named.out.rstrip(b"\n"))
    # Not by rev-parse: it would take a tag `HEAD`.
    is_there = repository.git("show-ref", "--verify", "--quiet", "HEAD", answers=(0, 1)).code == 0
    if named.code != 0 or is_there or os.path.isfile(os.path.join(repository.common_dir, branch)):
        raise UndecidedError("HEAD points to a commit that is not in this repository", "run git fsck")


def is_merging(repository: Repository) -> bool:
    """Return whether a merge is in progress."""
    return os.path.exists(os.path.join(repository.git_dir, "MERGE_HEAD"))


def merge_heads(repository: Repository) -> list[str]:
    """Read what is being merged into HEAD, by MERGE_HEAD.

    Raises:
        UndecidedError: the file is damaged.
    """
    try:
        with open(os.path.join(repository.git_dir, "MERGE_HEAD"), "rb") as file:
            words = file.read().split()
    except FileNotFoundError:
        return []
    if not all(map(repository.is_oid, words)):
        raise UndecidedError("MERGE_HEAD is damaged", "git merge --abort, or finish the merge")
    return [word.decode("ascii") for word in words]


def _tree_of(objects: Objects, commit: str) -> str:
    header = objects.header(commit + "^{tree}")
    if header is None:
        raise UndecidedError(f"commit {commit[:12]} is not in this repository", "fetch it, then try again")
    return header.oid


def read_staged(repository: Repository, objects: Objects, base: PendingBase, detail: Detail) -> LoadedChange:
    """Read what `git commit` would commit now: the base against the index that git named.

    Raises:
        UndecidedError: the index has conflicts or is damaged, or git failed.
        UsageError: there is no working tree.
    """
    _require_work_tree(repository)
    variables = {} if base.store is None else base.store.variables
    known = None
    is_plain = base.commit is not None and base.store is None
    # Imported here: only a hook may have an answer.
    if is_plain and os.path.exists(os.path.join(repository.git_dir, "patchgate-asked")):
        from patchgate.git.kept_answer import take_difference

        known = take_difference(repository, detail)
    reading = _against_index(repository, objects, base, detail, variables, known)
    kind = "merge" if base.heads else "staged"
    return replace(reading, source=Source(kind, None, base.commit, parents=tuple(base.heads)))


def read_worktree(
    repository: Repository, objects: Objects, base: PendingBase, detail: Detail, store: PrivateStore
) -> LoadedChange:
    """Read what would be committed if everything in the working tree were added; ignored files are left out.

    `objects` must read through `store`, where git puts the blobs of changed files.

    Raises:
        UsageError: there is no working tree.
    """
    _require_work_tree(repository)
    variables = store.copy_index()
    listed = repository.git(
        "ls-files", "-z", "--others", "--exclude-standard", variables=variables, in_work_tree=True
    )
    changed = repository.git(
        "diff-files",
        "-z",
        "--name-status",
        "--ignore-submodules=dirty",
        variables=variables,
        in_work_tree=True,
    )
    gone, fresh = _gone_and_fresh(changed.out)
    # A repository nested in this one is listed as a folder; git would add it as a gitlink.
    fresh += [name.rstrip(b"/") for name in listed.out.split(b"\0") if name]
    # Deleted files first: a file may have replaced a folder, or a folder a file.
    for names, how in ((gone, ("--force-remove",)), (fresh, ("--add", "--remove", "--replace"))):
        if names:
            stdin = b"\0".join(names) + b"\0"
            repository.git(
                "update-index", *how, "-z", "--stdin", stdin=stdin, variables=variables, in_work_tree=True
            )
    reading = _against_index(repository, objects, base, detail, variables)
    return replace(reading, source=Source("worktree", None, base.commit, parents=tuple(base.heads)))


def _gone_and_fresh(changed: bytes) -> tuple[list[bytes], list[bytes]]:
    """Split what `diff-files -z --name-status` lists: the names that are deleted, and the others."""
    words = changed.split(b"\0")
    pairs = list(zip(words[0:-1:2], words[1::2], strict=True))
    gone = [name for status, name in pairs if status == b"D"]
    return gone, [name for status, name in pairs if status != b"D"]


def _require_work_tree(repository: Repository) -> None:
    if repository.work_tree is None:
        raise UsageError("a bare repository has no working tree", "name a revision: git patchgate check REV")


def _against_index(
    repository: Repository,
    objects: Objects,
    base: PendingBase,
    detail: Detail,
    variables: Mapping[str, str],
    known: Records | None = None,
) -> LoadedChange:
    if base.tree == objects.empty_tree:
        _require_index(repository, variables)
    # What is only intended to be added (`git add -N`) is not part of the next commit.
    command = ("diff-index", "--cached", "--ita-invisible-in-index")
    records, binary = known or read_difference(repository, objects, command, [base.tree], detail, variables)
    # The result of a merge is read from its tree, which is not written yet.
    result = resulting_tree(objects, base.tree, records, base.store.write if base.store else None)
    folders, overlay = result.folders, None
    root = {record.path.raw: record.new for record in records if b"/" not in record.path.raw}
    if base.merged is not None:
        from patchgate.git.merges import own_changes

        merged = base.merged.tree
        elsewhere = read_difference(repository, objects, command, [merged], detail, variables)
        folders = {**folders, **resulting_tree(objects, merged, elsewhere[0]).folders}
        sides = partial(_tree_of, objects)
        overlay = base.tree, {file.path.raw: file.new for file in records}
        records, binary = own_changes(objects, base.merged, sides, elsewhere, (records, binary))
    records = fill_in_details(objects, records, binary, detail)
    change = Change.of(base.tree, result.tree, records, objects.empty_blob)
    parents = tuple(_tree_of(objects, head) for head in base.heads)
    loaded = LoadedChange(
        change=change, source=Source("staged"), folders=folders, root=root, overlay=overlay, parents=parents
    )
    if not parents:
        return loaded

    def carried(landing: Landing) -> Sequence[FileChange]:
        from patchgate.git.merge_paths import carried_paths

        heads = list(zip(base.heads, parents, strict=True))
        paths = carried_paths(repository, objects, heads, change.after, variables)
        return carried_files(repository, objects, parents, change, detail, variables, landing, paths)

    return replace(
        loaded,
        heads=base.heads,
        carried=carried,
        solved=solver(repository, objects, base.merged, change.after, detail, variables),
    )


def carried_files(
    repository: Repository,
    objects: Objects,
    parents: Sequence[str],
    own: Change,
    detail: Detail,
    variables: Mapping[str, str],
    landing: Landing,
    paths: CarriedPaths,
) -> list[FileChange]:
    """List the files of a merge that no side made as they are, beside its own change.

    At a restricted path, where also its own change counts, they are compared with the branch that gets the
    merge: the author chose the parents. What a branch has so already is left out there.

    Args:
        parents: the tree of each.
        variables: the environment in which the tree of the merge can be read.
        landing: where it lands.
        paths: where no side made what the merge has.

    Raises:
        UndecidedError: git failed, or an object is missing.
    """
    found: dict[RepoPath, FileChange] = {}

    def add(tree: str, paths: set[RepoPath]) -> None:
        if not paths:
            return
        command, trees = ("diff-tree", "-r"), [tree, own.after]
        records, binary = read_difference(repository, objects, command, trees, detail, variables)
        for file in fill_in_details(objects, records, binary, detail):
            known = found.get(file.path)
            # Compared with a parent that has the file, only what the merge carried there is new.
            if file.path in paths and (known is None or (known.old is None and file.old is not None)):
                found[file.path] = file

    made = {file.path for file in own.files}
    left = paths.on(landing)
    restricted = set(filter(landing.is_restricted, left | made)) if landing.trees else set()
    for tree in landing.trees:
        add(tree, restricted - set(found))
    others = left - made - restricted
    for tree in parents:
        add(tree, others)
    return [file for _, file in sorted(found.items())]


def solver(
    repository: Repository,
    objects: Objects,
    merged: Merged | None,
    after: str,
    detail: Detail,
    variables: Mapping[str, str],
) -> Callable[[str], Sequence[FileChange]] | None:
    """Build the function that lists how the paths in conflict of a merge differ from a tree.

    Args:
        merged: what git made of it.
        after: the tree that its author made.
    """
    if merged is None or not merged.conflicts:
        return None
    paths = sorted({*merged.conflicts, *merged.aside})

    @cache
    def solved(tree: str) -> Sequence[FileChange]:
        other = {RepoPath(path) for path in paths if objects.entry(tree, path) != objects.entry(after, path)}
        if not other:
            return ()
        named = [":(top,literal)" + os.fsdecode(path.raw) for path in sorted(other)]
        only = ["--", *named] if sum(map(len, named)) < _MOST_NAMED else []
        command, trees = ("diff-tree", "-r"), [tree, after, *only]
        records, binary = read_difference(repository, objects, command, trees, detail, variables)
        chosen = [(file, index in binary) for index, file in enumerate(records) if file.path in other]
        marked = {index for index, (_, is_marked) in enumerate(chosen) if is_marked}
        return fill_in_details(objects, [file for file, _ in chosen], marked, detail)

    return solved


def _require_index(repository: Repository, variables: Mapping[str, str]) -> None:
    """Refuse an unreadable index, which must not look like an empty one."""
    repository.output("ls-files", "-z", "--stage", "--", ":(top,literal).patchgate-none", variables=variables)


def fill_in_details(
    objects: Objects, records: list[FileChange], binary: set[int], detail: Detail, *, are_hashed: bool = False
) -> list[FileChange]:
    """Fill in what the diff itself does not say: hidden lines, sizes, the targets of symlinks.

    Which files are binary is decided here, from their bytes.

    Args:
        binary: the positions whose lines the diff does not show, because git calls them binary.
        are_hashed: the ids of new files and links were computed here, from contents, so they are those of
            blobs.
    """
    done = list(records)
    if detail.lines:
        binary = binary | binaries_shown_as_text(objects, records, binary)
    for index in binary:
        record = done[index]
        watch = detail.watch if is_text_candidate(record) else None
        done[index] = count_hidden_lines(objects, record, watch)
    if detail.sizes or not are_hashed or any(file.new and file.new.mode == GITLINK for file in done):
        _fill_in_sizes(objects, done, is_required=detail.sizes)
    for index, file in enumerate(done):
        if file.new is not None and file.new.mode == SYMLINK:
            size = objects.sizes([file.new.oid])[file.new.oid]
            target = objects.read(file.new.oid) if size <= _LINK_BYTES else b"/"
            done[index] = replace(file, link_target=target)
    return done


def _fill_in_sizes(objects: Objects, files: list[FileChange], *, is_required: bool) -> None:
    """Require that each new object has the type that its mode says, and fill in the sizes of new contents.

    Nothing else checks it: git's raw diff names an object without reading it, and to a patch a tree in place
    of a file is binary. What is not here (a partial clone) is left out, unless its size is required.
    """
    fresh = [
        (index, file.new)
        for index, file in enumerate(files)
        if file.new is not None
        and (file.old is None or file.old.oid != file.new.oid or file.old.mode[:3] != file.new.mode[:3])
    ]
    for (index, entry), header in zip(fresh, objects.headers([entry.oid for _, entry in fresh]), strict=True):
        file = files[index]
        if header is None:
            if is_required and file.has_new_content:
                objects.sizes([entry.oid])
            continue
        kind = "commit" if entry.mode == GITLINK else "blob"
        if header.type != kind:
            raise UndecidedError(
                f"{file.path.quoted} has mode {entry.mode}, but its object {entry.oid[:12]} is a "
                f"{header.type}, not a {kind}",
                "run git fsck, then make the change again from its files",
            )
        if is_required and file.has_new_content:
            files[index] = file.with_size(header.size)


def list_tracked(repository: Repository, objects: Objects) -> list[FileChange]:
    """List every tracked file of the index as if it were new.

    Raises:
        UndecidedError: the index has conflicts or is damaged.
        UsageError: there is no working tree.
    """
    _require_work_tree(repository)
    found: list[FileChange] = []
    for path, entry, stage in staged_records(repository.output("ls-files", "-z", "--stage")):
        if stage != "0":
            raise UndecidedError(
                f"{path.quoted} has an unresolved merge conflict",
                "resolve the conflict, then git add the file",
            )
        if entry.mode not in _MODES:
            raise UndecidedError("the index is damaged: it has an unknown file mode", "run git fsck")
        found.append(FileChange(path, None, entry))
    return found
