"""What can be done about a refusal by the policy: change less, or change the key that decides.

Decides the words by who reads them. Whoever commits (the commit profile) may change the policy, and gets the
key, its line and the smallest change to it. An agent may not: it is sent to a maintainer.
"""

from __future__ import annotations

import json

from patchgate.check.case import Case
from patchgate.git.model import FileChange, Status
from patchgate.git.path import RepoPath
from patchgate.policy.policy import Decision, Key, Profile

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
    """Name the entry of the policy that decides, and for whoever may change it the smallest change to it."""
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
