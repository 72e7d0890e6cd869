"""What a patch is applied to: the working files, or a commit whose result is merged with HEAD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.base_files import base_files_of_tree, base_files_on_disk, staged_files
from patchgate.git.change_sources import LoadedChange, fill_in_details, pending_base
from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import Change, FileChange, Source
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.pushes import is_ancestor
from patchgate.git.quoting import printable
from patchgate.git.repository import ANY_CODE, Repository, failed
from patchgate.git.revisions import commit_named, head_commit
from patchgate.git.trees import Listing, TreeCheck, folders_between, resulting_tree
from patchgate.patches.patch_model import Patch
from patchgate.patches.planning import PatchTargets, list_removed_paths, plan_section
from patchgate.patches.proposed_files import Preimages, list_paths
from patchgate.report.verdict import Finding, Fixer
from patchgate.values import dataclass

_TRIED_COMMITS = 30
_TRIED_SECTIONS = 20
_SIDE_LINES = 10
_MERGING = tuple(
    part
    for setting in ("merge.renames=true", "merge.directoryRenames=conflict", "merge.renameLimit=7000")
    for part in ("-c", setting)
)


@dataclass(frozen=True, slots=True)
class PatchBase:
    """What a patch is applied to.

    `tree` is the base tree; if `on_disk`, the files on disk replace those in it. `policy_tree` has the policy
    that judges. `head` is HEAD's commit if the result is merged with it, else None. `lands` is whether the
    result will be written to the working tree.
    """

    tree: str
    commit: str | None
    policy_tree: str
    policy_place: str = "HEAD"
    on_disk: bool = False
    head: str | None = None
    lands: bool = False

    @property
    def merges(self) -> bool:
        """Whether the result is merged with HEAD."""
        return self.head is not None


@dataclass(frozen=True, slots=True)
class ExistingFiles:
    """What already exists where a change based on a commit would be written.

    `index` is the tree of the index, `blocked` the new paths that cannot be created, `taken` those that
    exist, `folders` the content that the folders of the others would have, with staged entries.
    """

    index: str
    blocked: dict[RepoPath, RepoPath]
    taken: tuple[RepoPath, ...]
    folders: dict[bytes, Listing]


def find_patch_base(
    repository: Repository, objects: Objects, base: str | None, *, lands: bool = False
) -> PatchBase:
    """Decide what a patch is applied to.

    Args:
        lands: the result will be written. Then HEAD must contain the base: otherwise other files of HEAD
            would be overwritten that were never judged.

    Raises:
        UsageError: the revision is unknown, HEAD does not contain it and the result is to be written, or a
            bare repository was given no base.
    """
    if base is None:
        if repository.work_tree is None:
            raise UsageError("a bare repository has no files for the patch", "name a commit: --base REV")
        here = pending_base(repository, objects)
        tip = here.policy_tree
        return PatchBase(tree=tip, commit=here.commit, policy_tree=tip, on_disk=True)
    commit = commit_named(objects, base)
    tree = objects.header(commit + "^{tree}")
    head = head_commit(objects)
    if tree is None:
        raise UndecidedError(f"the tree of {commit[:12]} is not here", "fetch it")
    if lands and (head is None or not _contains(repository, head, commit)):
        raise UsageError(
            f"HEAD does not contain {printable(base)}, so a patch for it cannot be applied here",
            "make the patch from HEAD or an ancestor of it; check --patch --base judges it",
        )
    if repository.work_tree is None or head is None:
        return PatchBase(tree=tree.oid, commit=commit, policy_tree=tree.oid, policy_place=base)
    head_tree = objects.header(head + "^{tree}")
    if head_tree is None:
        raise UndecidedError("HEAD's tree is not here", "run git fsck")
    is_older = head != commit and (lands or _contains(repository, head, commit))
    later = head if is_older else None
    return PatchBase(tree=tree.oid, commit=commit, policy_tree=head_tree.oid, head=later, lands=lands)


def _contains(repository: Repository, head: str, commit: str) -> bool:
    return head == commit or is_ancestor(repository, commit, head)


def find_existing(
    repository: Repository,
    store: PrivateStore,
    objects: Objects,
    patch_base: PatchBase,
    files: Sequence[FileChange],
) -> ExistingFiles | None:
    """Look up the new names of a change to HEAD's tree in the index and on disk; None if it has none.

    Raises:
        UndecidedError: the index cannot be read, or a path is a special file.
    """
    made = [file.path for file in files if file.is_introduced]
    if not made:
        return None
    tree = patch_base.policy_tree
    removed = frozenset(file.path for file in files if file.new is None)
    ground = base_files_on_disk(repository, objects, store, tree, made, removed)
    staged = staged_files(repository, tree)
    taken = tuple(path for path in made if ground.entries[path] is not None and path not in ground.blocked)
    closed = {*taken, *ground.blocked}
    touched = {file.path for file in files}
    # HEAD's names count as well as staged ones: a staged removal is not committed.
    beside = [file for path, file in staged.items() if file.new is not None and path not in touched]
    free = [file for file in files if file.path not in closed]
    folders = resulting_tree(objects, tree, [*beside, *free]).folders
    index = compute_index_tree(objects, tree, staged)
    return ExistingFiles(index=index, blocked=dict(ground.blocked), taken=taken, folders=folders)


def compute_index_tree(objects: Objects, tree: str, staged: Mapping[RepoPath, FileChange]) -> str:
    """Return the tree of the index: HEAD's with what is staged."""
    return resulting_tree(objects, tree, staged.values()).tree


def report_existing(path: RepoPath) -> Finding:
    """Report that a path, staged or on disk, differs from what the patch was made for."""
    return Finding.of(
        "base-conflict",
        f"{path.quoted} differs from the patch's base",
        path,
        hint="commit or stash that change, then apply the same patch again",
        who_can_fix=Fixer.PERSON,
    )


def merge_onto_head(
    repository: Repository,
    store: PrivateStore,
    objects: Objects,
    patch_base: PatchBase,
    tree: str,
    detail: Detail,
) -> LoadedChange | tuple[Finding, ...]:
    """Merge a patched base with HEAD, and read what that would change in HEAD.

    Returns:
        The change between HEAD's tree and the merge; or a `base-conflict` for each file in conflict.
    """
    who = "patchgate <patchgate> 0 +0000"
    text = f"tree {tree}\nparent {patch_base.commit}\nauthor {who}\ncommitter {who}\n\npatched\n"
    patched = store.write("commit", text.encode("ascii"))
    # In a place without config and attributes: a merge driver would run, and decide the result (measured).
    done = store.bare().git(
        *_MERGING,
        "merge-tree",
        "--write-tree",
        "--no-messages",
        "-z",
        str(patch_base.head),
        patched,
        variables=store.variables,
        answers=(0, 1),
    )
    if b"error:" in done.err:
        raise failed("merge-tree", done)
    merged, *conflicts = done.out.split(b"\0")
    after = merged.decode("ascii").strip()
    if done.code == 1:
        names = dict.fromkeys(word.partition(b"\t")[2] for word in conflicts if b"\t" in word)
        return tuple(_conflict(objects, after, RepoPath.from_git(name)) for name in names)
    head_tree = patch_base.policy_tree
    command = ("diff-tree", "-r")
    records, binary = read_difference(
        repository, objects, command, [head_tree, after], detail, store.variables
    )
    files = fill_in_details(objects, records, binary, detail)
    touched = folders_between(repository, head_tree, after, "the merge with HEAD", store.variables)
    (folders,) = TreeCheck(objects).listings([(touched, files)])
    return LoadedChange(Change.of(head_tree, after, files, objects.empty_blob), Source("patch"), folders)


def _conflict(objects: Objects, tree: str, path: RepoPath) -> Finding:
    """Report a conflict with the first lines of both sides."""
    ours: list[bytes] = []
    theirs: list[bytes] = []
    entry = objects.entry(tree, path.raw)
    line = None
    if entry is not None and entry.is_file:
        side: list[bytes] | None = None
        for number, text in enumerate(objects.read(entry.oid).split(b"\n"), start=1):
            if text.startswith(b"<<<<<<< "):
                side, line = ours, number
            elif text.startswith(b"=======") and side is ours:
                side = theirs
            elif text.startswith(b">>>>>>> ") and side is theirs:
                break
            elif side is not None:
                side.append(text)
    shown = {
        "ours": [printable(text, 160) for text in ours[:_SIDE_LINES]],
        "theirs": [printable(text, 160) for text in theirs[:_SIDE_LINES]],
    }
    notes = (
        *(f"HEAD has:  {text}" for text in shown["ours"][:3]),
        *(f"the patch: {text}" for text in shown["theirs"][:3]),
    )
    return Finding.of(
        "base-conflict",
        f"{path.quoted} was changed after the base in the same place as in the patch",
        path,
        line=line,
        hint="make the patch from the file as HEAD has it",
        details=shown,
        notes=notes,
    )


def suggest_base(repository: Repository, objects: Objects, patch_base: PatchBase, patch: Patch) -> str | None:
    """Suggest a recent commit that a patch fits; None if none of a few dozen does."""
    sections = patch.sections
    if not patch_base.on_disk or patch_base.commit is None or len(sections) > _TRIED_SECTIONS:
        return None
    paths = list_paths(patch)
    listed = repository.git(
        "rev-list",
        f"--max-count={_TRIED_COMMITS}",
        patch_base.commit,
        "--",
        *(path.raw.decode("utf-8", "surrogateescape") for path in paths),
        variables={"GIT_LITERAL_PATHSPECS": "1"},
        # Without the trees of old commits (a partial clone) there is no suggestion; the verdict needs none.
        answers=ANY_CODE,
    )
    for commit in (patch_base.commit, *listed.out.decode("ascii").split()):
        for oid in (commit, commit + "^"):
            tree = objects.header(oid + "^{tree}")
            if tree is not None and _fits(objects, tree.oid, patch, paths):
                named = objects.header(oid + "^{commit}")
                return f"the patch applies cleanly with --base {named.oid[:12]}" if named else None
    return None


def _fits(objects: Objects, tree: str, patch: Patch, paths: list[RepoPath]) -> bool:
    removed = list_removed_paths(patch.sections)
    ground = base_files_of_tree(objects, tree, paths, removed)
    targets = PatchTargets(Preimages(objects, ground.entries), removed)
    return not ground.blocked and not any(
        isinstance(plan_section(section, targets), tuple) for section in patch.sections
    )
