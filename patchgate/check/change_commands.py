"""Run the commands of the policy on a change at a commit, at a push or by hand, and add what they answer.

Decides which policy declares them, and whether they are trusted: at a commit and a push only a command runs
whose definition is also in the trusted ref, or was allowed on this machine. `check` alone, pre-receive and
`--policy-from` start none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from patchgate.check.policy_lookup import CheckOptions, requested_policy
from patchgate.commands.trusted_commands import CommandTrust, read_allowed
from patchgate.git.model import Change
from patchgate.git.new_commits import ref_value
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, USUAL_BRANCHES
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.git.revisions import tree_named
from patchgate.policy.command import ordered_commands
from patchgate.policy.command_settings import CommandSettings, Occasion
from patchgate.policy.policy import Policy
from patchgate.policy.tree_policies import TreePolicies, require_usable
from patchgate.report.verdict import ChangeVerdict
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.commands.command_answer import CommandAnswer
    from patchgate.commands.command_target import CommandTarget
    from patchgate.commands.trusted_commands import EntryOf
    from patchgate.git.private_store import PrivateStore


@dataclass(frozen=True, slots=True)
class StagedAnswers:
    """The answers on a change, with the policy that declares the commands; `commit` is the base commit."""

    policy: Policy
    change: Change
    commit: str | None
    answers: tuple[CommandAnswer, ...]


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """How commands are run.

    `environ` are the caller's variables, `cache` is the folder for scratch trees, `report_progress` is called
    about once a second for each running command. `names` are the only commands to run; None: all.
    `left_out` are skipped. `needs_trust`: whether a command must be trusted to run.
    """

    environ: Mapping[str, str]
    cache: str
    report_progress: Callable[[str, float], None]
    names: Sequence[str] | None = None
    left_out: Sequence[str] = ()
    needs_trust: bool = True


def policy_of_commands(objects: Objects, asked: CheckOptions, tree: str) -> Policy:
    """Return the policy whose commands run: that of the trusted ref, else that of a tree.

    Args:
        asked: `trusted_options`, or `CheckOptions()`.
        tree: the tree before the change.

    Raises:
        ConfigError: it cannot be used.
        UndecidedError: it cannot be read.
    """
    policies = TreePolicies(objects)
    found = requested_policy(objects, policies, asked)
    return require_usable(policies.at(policies.key(tree)) if found is None else found)


def run_on_staged(
    repository: Repository,
    options: CommandOptions,
    asked: CheckOptions,
    occasion: Occasion | None = "commit",
    *,
    change: Change | None = None,
    heads: Sequence[str] = (),
) -> StagedAnswers:
    """Run the commands of the policy on what `git commit` would commit now.

    Args:
        asked: `trusted_options`.
        occasion: which of them run; None: all but authors.
        change: the staged change, if the caller has read it; that of a merge is read again.
        heads: what is being merged, where git names it in a hook's environment only.

    Raises:
        PatchgateError: the index, the policy or the environment cannot be used.
    """
    from patchgate.git.change_sources import is_merging, pending_base, read_staged
    from patchgate.git.diff import Detail
    from patchgate.git.private_store import PrivateStore

    is_merge = bool(heads) or is_merging(repository)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        base = pending_base(repository, objects, store if is_merge else None, heads)
        if change is None or is_merge:
            change = read_staged(repository, objects, base, Detail()).change
        policy = policy_of_commands(objects, asked, base.policy_tree)
        answers = run_on_change(
            objects,
            store,
            change,
            policy,
            occasion,
            options,
            asked,
            commit=base.commit,
            is_merge=is_merge,
        )
    return StagedAnswers(policy, change, base.commit, tuple(map(_naming_fix, answers)))


def _naming_fix(answer: CommandAnswer) -> CommandAnswer:
    """Name `git patchgate fix` where it helps: for what is staged."""
    if answer.rule != "lint-failed":
        return answer
    fix = f"git patchgate fix {answer.name}"
    if answer.settings.kind == "format" and answer.changed:
        return replace(answer, hint=fix)
    return (
        answer
        if answer.settings.fix is None
        else replace(answer, hint=f"{answer.hint}; {fix} fixes what it can")
    )


def trust_of(objects: Objects, policy: Policy, entry_of: EntryOf, asked: CheckOptions) -> CommandTrust:
    """Find out which commands of a policy may run: by the trusted ref, and by what this machine allowed.

    Args:
        entry_of: gives the entry of a path in the tree that they run on.
        asked: `trusted_options`.

    Raises:
        UndecidedError: the trusted ref cannot be read.
    """
    repository = objects.repository
    place, tree = _trusted_tree(objects, asked)
    trusted = None
    if tree is not None:
        policies = TreePolicies(objects)
        found = policies.at(policies.key(tree)).policy
        trusted = None if found is None else (found.config, partial(objects.entry, tree))
    # Where others may have written to git's folder, what it allows counts for nothing.
    allowed = read_allowed(repository.common_dir) if repository.trusts_caches else {}
    return CommandTrust(policy.config, entry_of, trusted, place, allowed)


def _trusted_tree(objects: Objects, asked: CheckOptions) -> tuple[str, str | None]:
    """Return the name and the tree of `trustRef`, else of the default branch of `origin`.

    The remote of the current branch does not count: it may be a stranger's. Without `origin`, the only remote
    counts.
    """
    if asked.policy_from is not None:
        named = tree_named(objects, asked.policy_from)
        return asked.place or asked.policy_from, None if named is None else named[0]
    for remote in _remotes(objects.repository):
        for branch in ("HEAD", *(name.removeprefix(BRANCHES) for name in USUAL_BRANCHES)):
            ref = f"refs/remotes/{remote}/{branch}"
            # Of a missing ref git takes a tag with its full name, which anybody may have pushed.
            oid = ref_value(objects.repository, ref)
            header = objects.header(oid + "^{tree}") if oid is not None else None
            if header is not None:
                return f"{remote}/{branch}", header.oid
    return "the default branch of origin", None


def _remotes(repository: Repository) -> list[str]:
    listed = repository.git(
        "config", "-z", "--name-only", "--get-regexp", r"^remote\..*\.url$", answers=ANY_CODE
    )
    names = {os.fsdecode(each)[len("remote.") : -len(".url")] for each in listed.out.split(b"\0") if each}
    return ["origin"] if "origin" in names else list(names) if len(names) == 1 else []


def run_on_change(
    objects: Objects,
    store: PrivateStore,
    change: Change,
    policy: Policy,
    occasion: Occasion | None,
    options: CommandOptions,
    asked: CheckOptions,
    *,
    commit: str | None,
    is_merge: bool = False,
) -> tuple[CommandAnswer, ...]:
    """Run the commands of an occasion on a change.

    Args:
        objects: reads through `store`.
        policy: declares the commands.
        occasion: which of them run; None: all but authors.
        commit: what HEAD is for a command that runs git.
        is_merge: whether the change is what a merge itself does.

    Raises:
        PatchgateError: the change, the trusted ref or the environment cannot be used.
    """
    chosen = _chosen(policy, occasion, options)
    if not chosen:
        return ()
    # Imported here: most changes have no commands.
    from patchgate.commands.command_target import CommandTarget

    target = CommandTarget(objects, store, change, commit, is_merge)
    chosen = [each for each in chosen if target.concerns(each[1])]
    return _answers(target, policy, chosen, options, asked) if chosen else ()


def _answers(
    target: CommandTarget,
    policy: Policy,
    chosen: Sequence[tuple[str, CommandSettings]],
    options: CommandOptions,
    asked: CheckOptions,
) -> tuple[CommandAnswer, ...]:
    from patchgate.commands.command_checks import CommandChecks
    from patchgate.commands.command_plan import CommandEnvironment
    from patchgate.commands.environment import prepare_environment
    from patchgate.ledger.masking import Masks

    repository = target.repository
    trust = trust_of(target.objects, policy, target.entry, asked) if options.needs_trust else None
    environ = prepare_environment(options.environ, policy.config.environment, repository.work_tree)
    environment = CommandEnvironment(
        environ=environ,
        cache=options.cache,
        logs=log_folder(repository),
        mask_of=lambda own: Masks([environ, own]).stream(),
        report_progress=options.report_progress,
    )
    checks = CommandChecks(
        target, environment, policy.config.thresholds, None if trust is None else trust.is_trusted
    )
    return checks.run(chosen)


def _chosen(
    policy: Policy, occasion: Occasion | None, options: CommandOptions
) -> list[tuple[str, CommandSettings]]:
    """Choose the commands of an occasion, in the order they run."""
    commands = policy.config.commands
    if occasion is not None:
        wanted = ordered_commands(commands, occasion)
    else:
        every = [each for each in commands.items() if each[1].kind != "author"]
        wanted = sorted(every, key=lambda named: named[1].kind == "test")
    return [
        (name, settings)
        for name, settings in wanted
        if name not in options.left_out and (options.names is None or name in options.names)
    ]


def log_folder(repository: Repository) -> str:
    """Return the folder with the logs of the last run of each command in this worktree."""
    return os.path.join(repository.git_dir, "patchgate-logs")


def with_answers(verdict: ChangeVerdict, answers: Sequence[CommandAnswer]) -> ChangeVerdict:
    """Add the answers of commands to the verdict on a change."""
    from patchgate.commands.command_answer import finding_of, gates_of

    findings = tuple(found for each in answers if (found := finding_of(each)) is not None)
    return replace(
        verdict,
        context_gates=(*verdict.context_gates, *gates_of(answers)),
        findings=(*verdict.findings, *findings),
    )
