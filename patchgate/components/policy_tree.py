"""The tree that a command about components reads (HEAD, index or worktree), with the policy in it.

Resolves component ids too. A change is judged by the policy from before it instead (`check`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patchgate.components.component_names import (
    did_you_mean,
)
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.change_sources import pending_base, read_staged, read_worktree
from patchgate.git.diff import Detail
from patchgate.git.model import Change
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import NONE_DECLARED, TO_DECLARE, Component, Components
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Policy
from patchgate.policy.tree_policies import TreePolicies, require_usable
from patchgate.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class CapturableTree:
    """A whole tree that tests can run in, its policy, and its parent commit.

    `unstaged` are the files that differ between working tree and index, sorted.
    """

    view: TreeView
    policy: Policy
    commit: str | None
    store: PrivateStore
    unstaged: tuple[RepoPath, ...] = ()

    @property
    def tree(self) -> str:
        """The id of the tree; its new objects are in `store`."""
        return self.view.tree


def tree_to_capture(
    repository: Repository, objects: Objects, store: PrivateStore, *, from_disk: bool
) -> CapturableTree:
    """Write the tree of the index, or of the working tree, into the private store.

    Args:
        objects: reads through `store`.
        from_disk: whether to include everything in the working tree that is not ignored.

    Raises:
        UsageError: there is no working tree.
        UndecidedError: the index has a conflict, or git failed.
        ConfigError: the policy in that tree cannot be used.
    """
    if repository.work_tree is None:
        message = "a bare repository has neither index nor working tree"
        raise UsageError(message, "capture in a clone, and push it")
    _require_merged(repository)
    base = pending_base(repository, objects)
    variables = store.copy_index()
    unstaged = _unstaged(repository, variables)
    if from_disk:
        read_worktree(repository, objects, base, Detail(), store)
    # `git add --intent-to-add` files are not part of it, as in the next commit.
    view = TreeView(objects, repository.output("write-tree", variables=variables).decode("ascii").strip())
    policies = TreePolicies(objects)
    policy = require_usable(policies.at(policies.key(view.tree)))
    return CapturableTree(view=view, policy=policy, commit=base.commit, store=store, unstaged=unstaged)


def _unstaged(repository: Repository, variables: Mapping[str, str]) -> tuple[RepoPath, ...]:
    """List what `git add --all` would add to a private index: changed, gone and untracked files."""
    # This hides files with only a new timestamp; exit code 1 means that others changed.
    refresh = ("update-index", "-q", "--refresh")
    repository.git(*refresh, variables=variables, in_work_tree=True, answers=(0, 1))
    found: set[bytes] = set()
    for command in (
        ("diff-files", "-z", "--name-only", "--ignore-submodules=dirty"),
        ("ls-files", "-z", "--others", "--exclude-standard"),
    ):
        done = repository.git(*command, variables=variables, in_work_tree=True)
        # A repository nested in this one is listed as a folder.
        found.update(name.rstrip(b"/") for name in done.out.split(b"\0") if name)
    return tuple(RepoPath.from_git(name) for name in sorted(found))


def _require_merged(repository: Repository) -> None:
    unmerged = repository.output("ls-files", "-z", "--unmerged")
    if unmerged:
        path = RepoPath.from_git(unmerged.split(b"\0")[0].partition(b"\t")[2])
        raise UndecidedError(
            f"{path.quoted} is not merged: the index has a conflict",
            "resolve the conflict, then git add the file",
        )


@dataclass(frozen=True, slots=True)
class PolicyTree:
    """A tree with the policy in it; `name` is `index` or `HEAD`.

    `staged` is the difference between `HEAD` and the index.
    """

    view: TreeView
    policy: Policy
    name: str
    staged: Change | None = None

    @property
    def components(self) -> Components:
        """The components that this policy declares."""
        return self.policy.components

    @property
    def place(self) -> str:
        """The name of the tree in a message."""
        return _place_of(self.name)


def _place_of(name: str) -> str:
    return name if name == "HEAD" else f"the {name}"


def no_components_message(name: str) -> str:
    """Write that a tree declares no component: only the policy in it counts."""
    added = "" if name == "HEAD" else ", and git add it"
    return f"no component is declared in {_place_of(name)}: {TO_DECLARE}{added}"


def index_tree(repository: Repository, objects: Objects) -> PolicyTree:
    """Return the tree of the next commit; in a bare repository that of `HEAD`.

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: the index has conflicts, or something cannot be read.
    """
    if repository.work_tree is None:
        return head_tree(repository, objects)
    base = pending_base(repository, objects)
    change = read_staged(repository, objects, base, Detail()).change
    view = TreeView(objects, base.tree, {file.path.raw: file.new for file in change.files})
    return replace(_policy_tree(view, "index"), staged=change)


def head_tree(repository: Repository, objects: Objects) -> PolicyTree:
    """Return the tree of `HEAD`; before the first commit the empty tree.

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: something cannot be read.
    """
    return _policy_tree(TreeView(objects, pending_base(repository, objects).policy_tree), "HEAD")


def _policy_tree(view: TreeView, name: str) -> PolicyTree:
    policies = TreePolicies(view.objects)
    root = (view.entry(CONFIG_FILE.raw), view.entry(PYPROJECT_FILE.raw))
    return PolicyTree(view, require_usable(policies.at(policies.key_of(*root))), name)


def resolve_components(components: Components, ids: Sequence[str], where: str = "") -> tuple[Component, ...]:
    """Find components by the ids that the user typed, each once.

    Args:
        where: the tree that was read, if the message should name it.

    Raises:
        UsageError: there is no component with that id.
    """
    found: dict[str, Component] = {}
    for each in ids:
        component = components.get(each)
        if component is None:
            place = f" in {where}" if where else ""
            message = f"there is no component `{printable(each, 80)}`{place}"
            raise UsageError(message, _hint_for_unknown(each, components, where))
        found[each] = component
    return tuple(found.values())


def _hint_for_unknown(each: str, components: Components, where: str) -> str:
    meant = did_you_mean(each, components.ids)
    if meant is not None:
        return f"did you mean `{meant}`?"
    if where == "HEAD":
        return "commit its declaration first, or add --staged; git patchgate component list shows the index"
    if components:
        return "git patchgate component list shows them"
    return no_components_message("index") if where == "the index" else NONE_DECLARED
