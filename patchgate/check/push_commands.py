"""Run the commands of the policy on what a push brings: on the tip of each ref, or on every new commit.

A branch is compared with what the remote has of it, by the policy from there. What a commit skipped, or no
hook has seen, the push runs too; what is remembered costs nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from patchgate.check import refs
from patchgate.check.judging_policy import BUILT_IN, reference
from patchgate.check.policy_lookup import CheckOptions, trusted_options
from patchgate.errors import ConfigError, UndecidedError
from patchgate.git.model import Change, Source
from patchgate.git.objects import Objects
from patchgate.git.pushes import NOTES, RefUpdate, Remote, common_ancestor
from patchgate.git.repository import Repository
from patchgate.ledger.receipts import Receipts
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import TreePolicies, built_in
from patchgate.report.verdict import (
    ChangeVerdict,
    Finding,
    GateOutcome,
    Outcome,
    PolicyReference,
    Report,
)
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.check.change_commands import CommandOptions
    from patchgate.commands.command_answer import CommandAnswer
    from patchgate.git.private_store import PrivateStore

GATE = "commands"
_SKIPPED = "skipped-commands.json"
_MOST_BYTES = 1 << 16


def skipped_file(common_dir: str) -> str:
    """Return the file with the names of the commands that commits here have skipped since the last push."""
    return os.path.join(common_dir, "patchgate", _SKIPPED)


def read_skipped(common_dir: str) -> tuple[str, ...]:
    """Read which commands commits here have skipped since the last push."""
    try:
        with open(skipped_file(common_dir), "rb") as file:
            names = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(each for each in names if isinstance(each, str)) if isinstance(names, list) else ()


def add_skipped(common_dir: str, names: Sequence[str]) -> str | None:
    """Note what a commit skipped, so that the next push runs it; return a warning if that fails."""
    from patchgate.storage.atomic_write import write_atomically

    known = dict.fromkeys((*read_skipped(common_dir), *names))
    try:
        os.makedirs(os.path.join(common_dir, "patchgate"), mode=0o700, exist_ok=True)
        write_atomically(Path(skipped_file(common_dir)), json.dumps(list(known)).encode("ascii"), mode=0o600)
    except OSError as error:
        return f"the skipped commands could not be noted for the push: {error.strerror or error}"
    return None


def with_push_commands(
    repository: Repository,
    remote: Remote,
    updates: Sequence[RefUpdate],
    brought: Mapping[str, Sequence[str]],
    report: Report,
    options: Callable[[], CommandOptions],
) -> Report:
    """Run the commands of a push, and add their answers to the report.

    Args:
        brought: the new commits of each ref, parents first.
        options: how they are run; called only if some are.

    Raises:
        PatchgateError: a tree, a policy or the environment cannot be used.
    """
    moved = [each for each in updates if each.new and each.new != each.old and not each.ref.startswith(NOTES)]
    skipped = read_skipped(repository.common_dir)
    if not moved:
        return report
    asked = trusted_options(repository)
    receipts = Receipts(repository.common_dir)
    changes = list(report.changes)
    with Objects(repository) as objects:
        wanted, has_failed = [], False
        for update in moved:
            commits = brought.get(update.ref, ())
            try:
                found = _find(objects, remote, update, commits, asked, skipped, receipts)
            except (ConfigError, UndecidedError) as error:
                # One ref without a usable policy does not hide the report on the others.
                has_failed = True
                gate = GateOutcome(GATE, Outcome.UNDECIDED, error.sentence)
                place = reference(built_in(), BUILT_IN, Profile.COMMIT)
                add_to_ref(changes, update, place, objects.empty_tree, (gate,), ())
                continue
            if found is not None:
                wanted.append(found)
    if wanted:
        from patchgate.git.private_store import PrivateStore

        with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
            for each in wanted:
                gates, findings = _run(objects, store, each, options(), asked)
                has_failed |= any(gate.outcome is not Outcome.PASS for gate in gates)
                place = reference(each.policy, each.place, Profile.COMMIT)
                add_to_ref(changes, each.update, place, objects.empty_tree, gates, findings)
    if skipped and not has_failed:
        with suppress(OSError):
            os.unlink(skipped_file(repository.common_dir))
    return replace(report, changes=tuple(changes))


@dataclass(frozen=True, slots=True)
class _PushedTip:
    """A ref with commands to run: on its tip since `before`, and on each of some commits."""

    update: RefUpdate
    policy: Policy
    place: str
    before: str
    tip: str
    names: tuple[str, ...]
    each: tuple[str, ...]
    commits: tuple[str, ...]


def _find(
    objects: Objects,
    remote: Remote,
    update: RefUpdate,
    commits: Sequence[str],
    asked: CheckOptions,
    skipped: Sequence[str],
    receipts: Receipts,
) -> _PushedTip | None:
    """Find which commands a ref needs; None if it needs none, or is not a commit."""
    from patchgate.check.change_commands import policy_of_commands

    tip, tree = objects.header(f"{update.new}^{{commit}}"), objects.header(f"{update.new}^{{tree}}")
    if tip is None or tree is None:
        return None
    before = _before(objects, remote, update, tip.oid)
    policies = TreePolicies(objects)
    found = policies.at(policies.key(before))
    # Before the first policy there is none: that of the tip counts, and must be trusted like any other.
    is_first = found.policy is None or not found.policy.config.commands
    policy = policy_of_commands(objects, asked, tree.oid if is_first else before)
    commands = policy.config.commands
    # What no hook has seen has skipped everything.
    is_unseen = any(not receipts.has(oid) for oid in commits)
    names, each = [], []
    for name, settings in commands.items():
        if settings.kind == "author":
            continue
        if "push" in settings.on and settings.each_commit:
            each.append(name)
        elif "push" in settings.on or ("commit" in settings.on and (is_unseen or name in skipped)):
            names.append(name)
    if not (names or each):
        return None
    place = asked.place or (update.ref if is_first else remote.shown)
    return _PushedTip(update, policy, place, before, tip.oid, tuple(names), tuple(each), tuple(commits))


def _before(objects: Objects, remote: Remote, update: RefUpdate, tip: str) -> str:
    """Return the tree of what the remote has of a branch: its old value, or where it left the others."""
    known = [update.old] if update.old else list(remote.had.values())
    there = [oid for oid in known if objects.header(f"{oid}^{{commit}}") is not None]
    ancestor = common_ancestor(objects.repository, tip, *there) if there else None
    header = None if ancestor is None else objects.header(f"{ancestor}^{{tree}}")
    return objects.empty_tree if header is None else header.oid


def _run(
    objects: Objects, store: PrivateStore, pushed: _PushedTip, options: CommandOptions, asked: CheckOptions
) -> tuple[tuple[GateOutcome, ...], tuple[Finding, ...]]:
    from patchgate.check.change_commands import run_on_change
    from patchgate.check.command_changes import tree_change
    from patchgate.commands.command_answer import finding_of, gates_of

    answers: list[CommandAnswer] = []
    findings: list[Finding] = []

    def run(before: str, after: str, commit: str, names: Sequence[str]) -> None:
        change = tree_change(objects, before, after)
        own = run_on_change(
            objects,
            store,
            change,
            pushed.policy,
            None,
            replace(options, names=names),
            asked,
            commit=commit,
        )
        answers.extend(own)
        for each in own:
            if (found := finding_of(each)) is not None:
                message = f"{found.message} (commit {commit[:SHORT_OID]})"
                findings.append(replace(found, message=message))

    if pushed.each:
        for commit in pushed.commits:
            run(_tree(objects, f"{commit}^1"), _tree(objects, commit), commit, pushed.each)
    if pushed.names:
        run(pushed.before, _tree(objects, pushed.tip), pushed.tip, pushed.names)
    return gates_of(answers), tuple(findings)


def _tree(objects: Objects, revision: str) -> str:
    header = objects.header(f"{revision}^{{tree}}")
    return objects.empty_tree if header is None else header.oid


def _is_of(verdict: ChangeVerdict, ref: str) -> bool:
    return verdict.source.kind == "ref" and verdict.source.ref == ref


def add_to_ref(
    changes: list[ChangeVerdict],
    update: RefUpdate,
    policy: PolicyReference,
    empty: str,
    gates: Sequence[GateOutcome],
    findings: Sequence[Finding],
) -> None:
    """Add outcomes to the verdict on a ref, or to a new verdict; nothing if all is well and nothing is said.

    Args:
        empty: the empty tree.
    """
    if not findings and all(each.outcome in {Outcome.PASS, Outcome.NOT_APPLICABLE} for each in gates):
        return
    own = (index for index, each in enumerate(changes) if _is_of(each, update.ref))
    index = next(own, None)
    if index is None:
        index = 0
        change = Change.of(empty, empty, ())
        passed = (GateOutcome(refs.GATE, Outcome.PASS),)
        source = Source("ref", ref=update.ref)
        changes.insert(0, ChangeVerdict(change, source, Profile.COMMIT.value, policy, passed, ()))
    verdict = changes[index]
    changes[index] = replace(
        verdict,
        context_gates=(*verdict.context_gates, *gates),
        findings=(*verdict.findings, *findings),
    )
