"""What a signed approval is bound to besides change and policy: repository, branch, state of the rules.

The approver reads the branch as the remote has it; the server compares with what it has itself.
"""

from __future__ import annotations

import hashlib

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, commits_at, default_branch, remote_of
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import resolve
from patchgate.policy.file_kinds import CONTROLS_BY_NAME, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.verdict import ChangeVerdict
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass

_BASELINES = b".patchgate/baselines/"


@dataclass(frozen=True, slots=True)
class Binding:
    """What a signed approval is bound to besides the change and the policy; None: not bound.

    `repository` is its id, `ref` the branch that gets the change, `rules` the digest of the commits there
    that have changed control files, `expires` a time in ISO 8601.
    """

    repository: str | None = None
    ref: str | None = None
    rules: str | None = None
    expires: str | None = None


NOT_BOUND = Binding()


def bind(repository: Repository, change: ChangeVerdict, branch: str | None, expires: str | None) -> Binding:
    """Find what a signed approval of a change must be bound to.

    Args:
        branch: the branch that gets the change, as a full name; None: the default branch, if the change
            needs one.
        expires: when it ends, in ISO 8601; None: never.

    Raises:
        UsageError: that branch is not here, or it is not known which one gets the change.
        UndecidedError: git could not answer, or the clone is shallow.
    """
    is_policy = any(owned.is_policy for owned in change.owned)
    rules = None
    if branch is not None or is_policy:
        branch, commit = _branch(repository, branch)
        if is_policy:
            with Objects(repository) as objects:
                rules = rules_state(objects, commit).digest
    return Binding(change.policy.repository, branch, rules, expires)


def _branch(repository: Repository, branch: str | None) -> tuple[str, str]:
    """Find a branch and its commit: as the remote has it, or here if there is no remote."""
    remotes = repository.git("remote").out.decode("utf-8", "surrogateescape").split()
    remote = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else None
    if branch is None:
        branch = remote_of(repository, remote).default if remote is not None else default_branch(repository)
    if branch is None:
        raise UsageError("it is not known which branch gets this change", "name it: --for refs/heads/main")
    if not branch.startswith("refs/"):
        branch = BRANCHES + branch
    is_branch = remote is not None and branch.startswith(BRANCHES)
    place = f"refs/remotes/{remote}/{branch.removeprefix(BRANCHES)}" if is_branch else branch
    with Objects(repository) as objects:
        found = resolve(objects, place)
        if found is None and remote is not None:
            # The rules of a new branch are those of the default one.
            default = remote_of(repository, remote).default or ""
            found = resolve(objects, f"refs/remotes/{remote}/{default.removeprefix(BRANCHES)}")
    if found is None:
        shown = printable(place, 200)
        hint = "name a branch" if remote is None else f"git fetch {in_shell(remote, 'REMOTE')}"
        raise UsageError(f"there is no {shown} here", hint)
    return branch, found.oid


@dataclass(frozen=True, slots=True)
class RulesState:
    """Which commits of a branch have changed control files: their digest, and the newest (None: none has)."""

    digest: str
    newest: str | None


def rules_state(objects: Objects, commit: str | None) -> RulesState:
    """Find the commits reachable from a commit that have changed control files.

    All of them count, not the last on some line: a merge can change which line is the first.

    Raises:
        UndecidedError: git failed, an object is missing, or the history is cut off.
    """
    found = [] if commit is None else _rules_commits(objects, commit)
    text = "".join(f"{oid}\n" for oid in sorted(found))
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return RulesState(f"sha256:{digest}", found[0] if found else None)


def rules_commits(objects: Objects, commit: str) -> set[str]:
    """List the commits reachable from a commit that have changed control files.

    Raises:
        UndecidedError: git failed, an object is missing, or the history is cut off.
    """
    return set(_rules_commits(objects, commit))


def _rules_commits(objects: Objects, commit: str) -> list[str]:
    """List them, the newest first."""
    repository = objects.repository
    if repository.shallow:
        raise UndecidedError(
            "this clone is shallow, so it is not known which commits have changed the rules",
            "git fetch --unshallow",
        )
    policies = TreePolicies(objects)

    def tree_of(revision: str) -> str | None:
        header = objects.header(revision + "^{tree}")
        return None if header is None else header.oid

    tree = tree_of(commit)
    if tree is None:
        raise UndecidedError(f"commit {commit[:SHORT_OID]} is missing here", "git fetch")
    paths = [path.raw.rstrip(b"/") for path in CONTROLS_BY_NAME]
    if policies.at(policies.key(tree)).from_pyproject:
        paths.append(PYPROJECT_FILE.raw)
    found = commits_at(repository, commit, paths, but=[_BASELINES])

    def names(revision: str) -> bool:
        tree = tree_of(revision)
        return tree is not None and policies.names_patchgate(tree)

    # This file is a control file as long as it names patchgate: what changed it then counts for ever.
    maybe = [oid for oid in commits_at(repository, commit, [PRE_COMMIT_FILE.raw]) if oid not in found]
    return found + [oid for oid in maybe if names(oid) or any(map(names, _parents(repository, oid)))]


def _parents(repository: Repository, commit: str) -> list[str]:
    return repository.output("rev-parse", commit + "^@").decode("ascii").split()
