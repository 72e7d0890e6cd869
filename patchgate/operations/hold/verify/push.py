"""Verify what a push brings to each branch, where the policy asks for it (`[verify] on_push`).

Decides which branches are verified (those that get another commit), what each is compared with (the tree
that an active intent of this worktree began on, where the branch holds that commit; else what the remote has
of it, whose policy then names the analyses), and that it becomes a circumstance of the branch: it is no part
of a change's id. Never on a server, where nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from patchgate.change.model import Change, Source
from patchgate.declared.intent import Intent
from patchgate.declared.policy import Policy, Profile
from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.gates import refs
from patchgate.gates.gate import levelled
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, RefUpdate, Remote, is_ancestor, peel
from patchgate.git.repository import Repository, failed
from patchgate.operations.hold.verify.content import Analysed, analysis_policy
from patchgate.operations.judge.cases import reference
from patchgate.operations.judge.intents import active_here
from patchgate.operations.judge.terms import trusted
from patchgate.verdict.rules import Level
from patchgate.verdict.verdict import ChangeVerdict, Finding, GateOutcome, Outcome, Report

if TYPE_CHECKING:
    from patchgate.operations.hold.verify.analyses import Around
    from patchgate.operations.hold.verify.verify import Scene

GATE = "verify"


def verify_pushed(
    repository: Repository,
    remote: Remote,
    updates: Sequence[RefUpdate],
    report: Report,
    around: Callable[[], Around],
) -> Report:
    """Give the report on a push with what its branches make of the analyses.

    It costs little where the policy does not ask for it.

    Args:
        remote: what is known of the other side.
        report: what the push was judged as.
        around: what only a mouth knows; asked only where something is verified.
    """
    branches = [
        each for each in updates if each.ref.startswith(BRANCHES) and each.new and each.new != each.old
    ]
    if not branches:
        return report
    with Objects(repository) as objects:
        policy = _asking(repository, objects)
    if policy is None:
        return report
    # Most policies do not ask for it.
    from patchgate.git.private import PrivateStore
    from patchgate.operations.hold.verify.verify import Scene

    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        scene = Scene(repository, objects, store, policy, around())
        told = [_told(scene, remote, each) for each in branches]
    changes = list(report.changes)
    for update, (outcome, findings) in zip(branches, told, strict=True):
        _join(changes, update, policy, scene, outcome, findings)
    return replace(report, changes=tuple(changes))


def _asking(repository: Repository, objects: Objects) -> Policy | None:
    """Find the policy that asks for it; one that cannot be used is told elsewhere."""
    try:
        policy = analysis_policy(repository, objects)
    except (UsageError, ConfigError, UndecidedError):
        return None
    return policy if policy.config.verify.on_push else None


def _told(scene: Scene, remote: Remote, update: RefUpdate) -> tuple[GateOutcome, list[Finding]]:
    try:
        return _verified(scene, remote, update)
    except (UsageError, UndecidedError) as error:
        reason = error.message if error.hint is None else f"{error.message}; {error.hint}"
        return GateOutcome(GATE, Outcome.UNDECIDED, reason), []


def _verified(scene: Scene, remote: Remote, update: RefUpdate) -> tuple[GateOutcome, list[Finding]]:
    from patchgate.gates.verification_findings import findings_of
    from patchgate.operations.hold.verify.intent import intent_of_commit
    from patchgate.operations.hold.verify.verify import compared, held_against

    repository, objects = scene.repository, scene.objects
    tip = objects.header(f"{update.new}^{{commit}}")
    tree = objects.header(f"{update.new}^{{tree}}")
    if tip is None or tree is None:
        # What is no commit, or not here, is told by what judges the ref itself.
        return GateOutcome(GATE, Outcome.NOT_APPLICABLE), []
    after = Analysed(tree.oid, tip.oid)
    here = active_here(repository)
    intent = intent_of_commit(here, lambda each: _holds(repository, each, tip.oid)) if here else None
    if intent is not None:
        found = held_against(scene, intent, after, with_staged=False)
    else:
        before = _had(scene, remote, update, tip.oid)
        policy = analysis_policy(repository, objects, before)
        found = compared(replace(scene, policy=policy), before, after)
    findings = [
        told
        for finding in findings_of(found)
        if (told := levelled(scene.policy, Profile.COMMIT, finding)) is not None
    ]
    errors = [finding for finding in findings if finding.level is Level.ERROR]
    if not errors:
        return GateOutcome(GATE, Outcome.PASS), findings
    is_undecided = all(finding.definition.undecided for finding in errors)
    return GateOutcome(GATE, Outcome.UNDECIDED if is_undecided else Outcome.FAIL), findings


def _holds(repository: Repository, intent: Intent, tip: str) -> bool:
    return intent.base is None or is_ancestor(repository, intent.base, tip)


def _had(scene: Scene, remote: Remote, update: RefUpdate, tip: str) -> Analysed:
    """Find what a branch is compared with: where it leaves what the remote has of it, or else of anything.

    Raises:
        UndecidedError: git failed.
    """
    repository, objects = scene.repository, scene.objects
    own = [update.old] if update.old is not None else []
    commits = peel(objects, [*own, *remote.had.values()])
    known = [oid for each in own if (oid := commits[each])]
    known = known or list(dict.fromkeys(oid for each in remote.had.values() if (oid := commits[each])))
    if known:
        done = repository.git("merge-base", tip, *known)
        if done.code not in {0, 1}:
            raise failed("merge-base", done)
        base = done.out.decode("ascii").strip()
        tree = objects.header(base + "^{tree}") if base else None
        if tree is not None:
            return Analysed(tree.oid, base)
    if repository.shallow:
        raise UndecidedError(
            "this clone is shallow, and does not show where the branch begins", "git fetch --deepen=50"
        )
    return Analysed(objects.empty_tree, None)


def _join(
    changes: list[ChangeVerdict],
    update: RefUpdate,
    policy: Policy,
    scene: Scene,
    outcome: GateOutcome,
    findings: Sequence[Finding],
) -> None:
    """Put what was found with the branch: into the verdict on the ref, or into one of its own."""
    if outcome.outcome in {Outcome.PASS, Outcome.NOT_APPLICABLE} and not findings:
        return
    index = next(_places(changes, update.ref), None)
    if index is None:
        index = 0
        empty = scene.objects.empty_tree
        changes.insert(
            0,
            ChangeVerdict(
                Change.of(empty, empty, ()),
                Source("ref", ref=update.ref),
                Profile.COMMIT.value,
                reference(policy, trusted(scene.repository).policy_from or "HEAD", Profile.COMMIT),
                (GateOutcome(refs.GATE, Outcome.PASS),),
                (),
            ),
        )
    verdict = changes[index]
    changes[index] = replace(
        verdict,
        circumstances=(*verdict.circumstances, outcome),
        findings=(*verdict.findings, *findings),
    )


def _places(changes: Sequence[ChangeVerdict], ref: str) -> Iterator[int]:
    for index, each in enumerate(changes):
        if each.source.kind == "ref" and each.source.ref == ref:
            yield index
