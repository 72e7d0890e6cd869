"""What `git patchgate commands` works on: the staged change, every file, or a range; lists of commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from patchgate.check.change_commands import (
    CommandOptions,
    StagedAnswers,
    policy_of_commands,
    run_on_change,
    run_on_staged,
    trust_of,
)
from patchgate.check.policy_lookup import CheckOptions, trusted_options
from patchgate.commands.trusted_commands import definition
from patchgate.errors import UsageError
from patchgate.git.change_sources import pending_base, read_staged
from patchgate.git.diff import Detail, read_difference
from patchgate.git.model import Change
from patchgate.git.objects import Objects
from patchgate.git.private_store import PrivateStore
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import tree_named
from patchgate.git.trees import resulting_tree
from patchgate.policy.command_settings import CommandSettings, Occasion
from patchgate.policy.policy import Policy

if TYPE_CHECKING:
    from patchgate.commands.command_target import CommandTarget

_MOST_SHOWN = 8
_HERE = {"commit", "push"}


def run_by_hand(
    repository: Repository, options: CommandOptions, named: str | None, *, everything: bool
) -> StagedAnswers:
    """Run commands because a person or CI asks for it.

    Args:
        named: a range `A..B`; None: what is staged.
        everything: whether every tracked file counts as changed.

    Raises:
        UsageError: a revision of the range is unknown.
        PatchgateError: the change, the policy or the environment cannot be used.
    """
    if named is None and not everything:
        occasion: Occasion | None = "commit" if options.names is None else None
        return run_on_staged(repository, options, CheckOptions(), occasion)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        if named is not None:
            change, commit, before = _range(objects, named)
        else:
            base = pending_base(repository, objects)
            change, commit, before = _everything(objects), base.commit, base.policy_tree
        policy = policy_of_commands(objects, CheckOptions(), before)
        answers = run_on_change(objects, store, change, policy, None, options, CheckOptions(), commit=commit)
    return StagedAnswers(policy, change, commit, answers)


def _range(objects: Objects, named: str) -> tuple[Change, str | None, str]:
    first, dots, last = named.partition("...") if "..." in named else named.partition("..")
    ends = []
    for name in (first or "HEAD", last or "HEAD"):
        found = tree_named(objects, name)
        if found is None:
            raise UsageError(f"unknown revision {printable(name, 120)}", "name commits, branches or tags")
        ends.append(found)
    (before, old), (after, new) = ends
    if dots == "..." and old is not None and new is not None:
        from patchgate.git.pushes import common_ancestor

        ancestor = common_ancestor(objects.repository, old, new)
        header = None if ancestor is None else objects.header(ancestor + "^{tree}")
        before = before if header is None else header.oid
    return tree_change(objects, before, after), new, before


def tree_change(objects: Objects, before: str, after: str) -> Change:
    """Read what differs between two trees.

    Raises:
        UndecidedError: git failed.
    """
    files, _ = read_difference(
        objects.repository, objects, ("diff-tree", "-r"), [before, after], Detail(), objects.variables
    )
    return Change.of(before, after, files, objects.empty_blob)


def _everything(objects: Objects) -> Change:
    """Read every tracked file of the index as if it were new."""
    command = ("diff-index", "--cached", "--ita-invisible-in-index")
    files, _ = read_difference(
        objects.repository, objects, command, [objects.empty_tree], Detail(), objects.variables
    )
    result = resulting_tree(objects, objects.empty_tree, files)
    return Change.of(objects.empty_tree, result.tree, files)


def list_commands(repository: Repository) -> list[str]:
    """Describe the commands of the policy of HEAD, as lines."""
    lines: list[str] = []
    with _staged_target(repository) as (policy, target):
        trust = trust_of(target.objects, policy, target.entry, trusted_options(repository))
        for name, settings in policy.config.commands.items():
            place = policy.line_of(("commands", name))
            lines.append(f"{name} ({settings.kind}{f', {place}' if place else ''})")
            lines += [f"  {line}" for line in _about(settings, target.needed(settings)[1])]
            if _HERE & set(settings.on) and not trust.is_trusted(name):
                lines.append(f"  does not run at a commit here: git patchgate commands trust {name}")
    return lines


def _about(settings: CommandSettings, missing: Sequence[str]) -> list[str]:
    lines = [f"runs: {printable(' '.join(settings.command), 200)}"]
    if settings.kind != "author":
        lines.append(f"on: {', '.join(settings.on)}")
    if settings.files:
        lines.append(f"files: {first_of(settings.files, _MOST_SHOWN, printable)}")
    if missing:
        lines.append(f"needs, but the tree does not have: {first_of(missing, _MOST_SHOWN, printable)}")
    return lines


def untrusted_commands(
    repository: Repository, names: Sequence[str]
) -> tuple[str, dict[str, tuple[str, list[str]]]]:
    """Return the commands that must be allowed to run at a commit: definition, and what differs in it.

    Args:
        names: the only ones that are asked for; none: all that run at a commit or a push.

    Returns:
        What they are compared with, and the commands by name.

    Raises:
        UsageError: the policy has no such command.
        PatchgateError: the policy or the trusted ref cannot be used.
    """
    wanted: dict[str, tuple[str, list[str]]] = {}
    with _staged_target(repository) as (policy, target):
        for name in names:
            if name not in policy.config.commands:
                raise UsageError(
                    f"the policy has no command {printable(name, 60)}", "git patchgate commands list"
                )
        trust = trust_of(target.objects, policy, target.entry, trusted_options(repository))
        for name, settings in policy.config.commands.items():
            is_asked = name in names if names else bool(_HERE & set(settings.on))
            text = definition(name, policy.config, target.entry)
            if is_asked and text is not None and not trust.is_trusted(name):
                wanted[name] = text, trust.difference(name)
    return trust.place, wanted


@contextmanager
def _staged_target(repository: Repository) -> Iterator[tuple[Policy, CommandTarget]]:
    """Open what is staged for the commands of HEAD's policy, or of the trusted ref's."""
    from patchgate.commands.command_target import CommandTarget

    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        base = pending_base(repository, objects)
        policy = policy_of_commands(objects, trusted_options(repository), base.policy_tree)
        change = read_staged(repository, objects, base, Detail()).change
        yield policy, CommandTarget(objects, store, change, base.commit)
