"""The input of a gate: a change, the policy that judges it, and facts about it.

Also the words of a hint: change less, or change the key of the policy that decides.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from patchgate.check.features import Facts
from patchgate.errors import Mistake
from patchgate.git.model import Change, FileChange, Status
from patchgate.git.path import RepoPath
from patchgate.policy.policy import Decision, Key, Policy, Profile
from patchgate.report.verdict import Detail, Finding, Fixer
from patchgate.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Governance:
    """What a change does to the policy and the other control files.

    `controls` are the control files that it changes. `must_be_own_commit` is whether they may not change
    together with other files; false for the first commit, and where nothing before had a policy. `removed`,
    `repaired` and `proposed_faults` (every mistake of the proposed policy) say what happens to the policy.
    """

    controls: frozenset[RepoPath] = frozenset()
    must_be_own_commit: bool = True
    removed: bool = False
    repaired: bool = False
    proposed_faults: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """Where symlinks lead in the resulting tree, followed through other links.

    `escapes` maps each link that the change adds or changes, and that leaves the repository, to the reason.
    `redirected` lists a changed path, an unchanged link that leaves the repository because of it, and the
    reason; for a link that a merge adds, both paths can be the link. `fault` is why none of it is known.
    """

    escapes: Mapping[RepoPath, str] = field(default_factory=dict)
    redirected: tuple[tuple[RepoPath, RepoPath, str], ...] = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class MergedFolder:
    """A folder of a merge that differs from each parent's: its path, its names, and those in each parent."""

    path: bytes
    names: Sequence[bytes]
    parents: Sequence[Collection[bytes]]


@dataclass(frozen=True, slots=True)
class Case:
    """One change, as the gates see it.

    `folders` lists the folders of the resulting tree above each new name. `from_text` is true for patches
    and edits. `copied`, `blocked` and `rename_pairs` are as in `git.change_sources.LoadedChange`.
    `has_budgets` is false for the first commit, and where all tracked files are judged. `facts` has what
    each feature gathered, under its name (`features`). `links` says where symlinks lead; None if the
    change has none, or no tree results from it. `merged` lists the folders of a merge that differ from each
    parent's. `carried` maps what a merge brings to a branch to what its author made of it, which is what
    budgets count; None: nothing.
    """

    change: Change
    policy: Policy
    profile: Profile
    governance: Governance = field(default_factory=Governance)
    folders: Mapping[bytes, Sequence[bytes]] = field(default_factory=dict)
    from_text: bool = False
    copied: tuple[RepoPath, ...] = ()
    blocked: Mapping[RepoPath, RepoPath] = field(default_factory=dict)
    rename_pairs: tuple[tuple[RepoPath, RepoPath], ...] = ()
    has_budgets: bool = True
    facts: Mapping[str, Facts] = field(default_factory=dict)
    links: LinkFacts | None = None
    merged: Sequence[MergedFolder] = ()
    carried: Mapping[RepoPath, FileChange | None] = field(default_factory=dict)

    def is_control(self, path: RepoPath) -> bool:
        """Return whether a path is a control file in this change."""
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
    """Make a finding at the rule's own level; `judge` sets the level that the policy has for it."""
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
    """Say how to undo what the change does to a path.

    Args:
        file: the path and its change.
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
    return f"keep {path}" if file.status is Status.DELETED else f"leave {path} unchanged"


def decided_by(case: Case, decision: Decision, change: str) -> str:
    """Name the entry of the policy that denies a path, and the smallest change of the policy that allows it.

    An agent may not change the policy, so it gets no such change.
    """
    place = case.policy.line_of(decision.key)
    said = f"; {decision.dotted}{f' in {place}' if place else ''} denies it"
    return f"{said}. {change}" if change and case.profile is Profile.COMMIT else said


def or_set(case: Case, key: Key, value: object) -> str:
    """Offer to set a key to a value, with the line where it is set now; an agent needs a maintainer."""
    if case.profile is not Profile.COMMIT:
        return _BY_MAINTAINER
    return f", or set {Decision(key, '').dotted} = {json.dumps(value)} {_where(case, key)}"


def or_raise(case: Case, key: Key) -> str:
    """Offer to raise a limit, with the line where it is set."""
    who = "" if case.profile is Profile.COMMIT else "have a maintainer "
    return f", or {who}raise {Decision(key, '').dotted} {_where(case, key)}"


def or_take_out(case: Case, key: Key, name: str) -> str:
    """Offer to remove a name from a list, with the line of the list."""
    if case.profile is not Profile.COMMIT:
        return _BY_MAINTAINER
    if case.policy.is_written(key):
        return f", or remove {json.dumps(name)} from {Decision(key, '').dotted} {_where(case, key)}"
    left = sorted(case.policy.limits(case.profile, None).deny_classes - {name})
    return or_set(case, key, left)


def or_add(case: Case, key: Key, path: RepoPath) -> str:
    """Offer to add a path to a list, with the line of the list."""
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
    return f"in {table}{policy.file} (not set: the default applies)"
