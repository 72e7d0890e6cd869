"""What a gate is given: a change, the policy that judges it, and what is known around it.

What can be done about a refusal by the policy: change less, or change the key that decides.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from patchgate.check.features import Facts
from patchgate.errors import Mistake
from patchgate.git.model import Change, FileChange, Status
from patchgate.git.path import RepoPath
from patchgate.policy.policy import Decision, Key, Policy, Profile
from patchgate.report.verdict import Detail, Finding, Fixer


@dataclass(frozen=True, slots=True)
class Governance:
    """What a change does to the rules themselves.

    `controls` are the control files it touches; `alone` is whether the rule that they stand alone holds
    here (not for the first commit, nor where nothing before had a policy). `removed`, `repaired` and
    `proposed_faults` (every mistake of the proposed policy) tell what becomes of the policy.
    """

    controls: frozenset[RepoPath] = frozenset()
    must_be_own_commit: bool = True
    removed: bool = False
    repaired: bool = False
    proposed_faults: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """Where symlinks lead in the resulting tree, followed through other links.

    `escapes` says of each link that the change adds or changes why it does not stay in the repository.
    `redirected` names what the change turns into something else, a link that it does not touch and that no
    longer stays inside because of that, and why; for a link that a merge brings, both can be the link.
    `fault` says why none of it is known.
    """

    escapes: Mapping[RepoPath, str] = field(default_factory=dict)
    redirected: tuple[tuple[RepoPath, RepoPath, str], ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class MergedFolder:
    """A folder that a merge has as none of its parents: its path, its names, the names in each parent."""

    path: bytes
    names: Sequence[bytes]
    parents: Sequence[Collection[bytes]]


@dataclass(frozen=True, slots=True)
class Case:
    """One change before the gates.

    `folders` lists the resulting tree's folders above each new name. `from_text` is true for what a patch
    or edits proposed, `copied`, `behind` and `together` are as in `git.sources.Reading`. `has_budgets` is
    false for the first commit, and where all tracked files are judged. `facts` are what the features have
    gathered, each under its name (`features`). `links` says where symlinks lead; None where the change has
    none, or no tree results from it. `merged` lists the folders that a merge has as none of its parents.
    """

    change: Change
    policy: Policy
    profile: Profile
    governance: Governance = field(default_factory=Governance)
    folders: Mapping[bytes, Sequence[bytes]] = field(default_factory=dict)
    from_text: bool = False
    copied: tuple[RepoPath, ...] = ()
    behind: Mapping[RepoPath, RepoPath] = field(default_factory=dict)
    together: tuple[tuple[RepoPath, RepoPath], ...] = ()
    has_budgets: bool = True
    facts: Mapping[str, Facts] = field(default_factory=dict)
    links: LinkFacts | None = None
    merged: Sequence[MergedFolder] = ()

    def is_control(self, path: RepoPath) -> bool:
        """Tell whether a path is a control file in this change."""
        return path in self.governance.controls


def find(
    rule: str,
    message: str,
    path: RepoPath | None,
    hint: str,
    *,
    decision: Decision | None = None,
    line: int | None = None,
    side: str = "new",
    who: Fixer = Fixer.AGENT,
    excerpt: bytes | None = None,
    details: Mapping[str, Detail] | None = None,
) -> Finding:
    """Make a finding at the rule's own level; `judge` sets the level that the policy chose."""
    known = {} if decision is None else {"pattern": decision.text, "key": decision.dotted}
    return Finding.of(
        rule,
        message,
        path,
        line=line,
        side=side,
        hint=hint,
        who_can_fix=who,
        details={**known, **(details or {})},
        excerpt=excerpt,
    )


_BY_MAINTAINER = ", or have a maintainer commit it"


def undo(file: FileChange, came_from: RepoPath | None = None, *, is_moved: bool = False) -> str:
    """Say how the change leaves a path alone, by what it does to that path.

    Args:
        file: the path and what becomes of it.
        came_from: the old path, where the file is moved to this one.
        is_moved: the file is moved away from this path.
    """
    path = file.path.quoted
    if came_from is not None:
        return f"leave {came_from.quoted} where it is"
    if file.status is Status.ADDED:
        return f"leave {path} out of the change"
    if is_moved:
        return f"leave {path} where it is"
    return f"keep {path}" if file.status is Status.DELETED else f"leave {path} as it was"


def decided_by(case: Case, decision: Decision, change: str) -> str:
    """Name the entry of the policy that decides, and for whoever may change it the smallest change to it.

    An agent may not change the policy, and is sent to a maintainer instead.
    """
    place = case.policy.line_of(decision.key)
    said = f"; {decision.dotted}{f' in {place}' if place else ''} denies it"
    return f"{said}. {change}" if change and case.profile is Profile.COMMIT else said


def or_set(case: Case, key: Key, value: object) -> str:
    """Say that a key may be set to a value, where it is set now, or that its default decides."""
    if case.profile is not Profile.COMMIT:
        return _BY_MAINTAINER
    return f", or set {Decision(key, '').dotted} = {json.dumps(value)} {_where(case, key)}"


def or_raise(case: Case, key: Key) -> str:
    """Say that a limit may be raised, and where it is set."""
    who = "" if case.profile is Profile.COMMIT else "have a maintainer "
    return f", or {who}raise {Decision(key, '').dotted} {_where(case, key)}"


def or_take_out(case: Case, key: Key, name: str) -> str:
    """Say that a name may be taken out of a list, and where that list is."""
    if case.profile is not Profile.COMMIT:
        return _BY_MAINTAINER
    if case.policy.is_written(key):
        return f", or take {json.dumps(name)} out of {Decision(key, '').dotted} {_where(case, key)}"
    left = sorted(case.policy.limits(case.profile, None).deny_classes - {name})
    return or_set(case, key, left)


def or_add(case: Case, key: Key, path: RepoPath) -> str:
    """Say that a path may be added to a list, and where that list is."""
    if case.profile is not Profile.COMMIT:
        return f", or have a maintainer add it to {Decision(key, '').dotted}"
    return f", or add {path.quoted} to {Decision(key, '').dotted} {_where(case, key)}"


def _where(case: Case, key: Key) -> str:
    policy = case.policy
    if policy.is_written(key):
        return f"({policy.line_of(key)})"
    if not policy.file:
        return "in patchgate.toml (git patchgate init writes one)"
    table = "[tool.patchgate] of " if policy.file == "pyproject.toml" else ""
    return f"in {table}{policy.file} (not set: the default decides)"
