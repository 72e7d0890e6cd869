"""What a verb about components looks at: the index or `HEAD`, by the policy that stands in that very content.

Decides where the tree, its policy and its components are read, and what becomes of an id that nobody knows.
Not how a change is judged: that has the policy of before (`check`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchgate.components.names import did_you_mean
from patchgate.errors import UsageError
from patchgate.git.diff import Detail
from patchgate.git.model import Change
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.git.sources import pending_base, staged
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import NONE_DECLARED, TO_DECLARE, Component, Components
from patchgate.policy.control import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policies import Policies, usable
from patchgate.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Content:
    """A tree with the policy that it holds; `name` says which it is: `index` or `HEAD`.

    `staged` is what the index has otherwise than `HEAD`.
    """

    view: TreeView
    policy: Policy
    name: str
    staged: Change | None = None

    @property
    def components(self) -> Components:
        """The components that this content declares."""
        return self.policy.components

    @property
    def place(self) -> str:
        """Where it is, as it is told."""
        return place_of(self.name)


def place_of(name: str) -> str:
    """Write the name of a content as it stands in a sentence."""
    return name if name == "HEAD" else f"the {name}"


def none_declared(name: str) -> str:
    """Say that a content declares no component: only what is in it counts."""
    added = "" if name == "HEAD" else ", and git add it"
    return f"no component is declared in {place_of(name)}: {TO_DECLARE}{added}"


def index_content(repository: Repository, objects: Objects) -> Content:
    """Take what the next commit would hold; in a bare repository `HEAD`.

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: the index holds conflicts, or something cannot be read.
    """
    if repository.work_tree is None:
        return head_content(repository, objects)
    base = pending_base(repository, objects)
    change = staged(repository, objects, base, Detail()).change
    view = TreeView(objects, base.tree, {file.path.raw: file.new for file in change.files})
    return replace(_content(view, "index"), staged=change)


def head_content(repository: Repository, objects: Objects) -> Content:
    """Take what `HEAD` holds; before the first commit, nothing.

    Raises:
        ConfigError: the policy there cannot be used.
        UndecidedError: something cannot be read.
    """
    return _content(TreeView(objects, pending_base(repository, objects).policy_tree), "HEAD")


def _content(view: TreeView, name: str) -> Content:
    policies = Policies(view.objects)
    root = (view.entry(CONFIG_FILE.raw), view.entry(PYPROJECT_FILE.raw))
    return Content(view, usable(policies.at(policies.key_of(*root))), name)


def named(components: Components, ids: Sequence[str], where: str = "") -> tuple[Component, ...]:
    """Find the components of ids that somebody typed, each once.

    Args:
        where: the content that was looked at, if that is worth telling.

    Raises:
        UsageError: there is none of that id.
    """
    found: dict[str, Component] = {}
    for each in ids:
        component = components.get(each)
        if component is None:
            place = f" in {where}" if where else ""
            message = f"there is no component `{printable(each, 80)}`{place}"
            raise UsageError(message, _next(each, components, where))
        found[each] = component
    return tuple(found.values())


def _next(each: str, components: Components, where: str) -> str:
    meant = did_you_mean(each, components.ids)
    if meant is not None:
        return f"did you mean `{meant}`?"
    if where == "HEAD":
        return "commit what declares it first, or say --staged; git patchgate component list shows the index"
    if components:
        return "git patchgate component list shows all"
    return none_declared("index") if where == "the index" else NONE_DECLARED
