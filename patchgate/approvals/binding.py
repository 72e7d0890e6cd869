"""What a signed approval is bound to besides change and policy: repository, branch, state of the rules.

The approver reads the branch as the remote has it; the server compares with what it has itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from patchgate.approvals.signers import has_signers
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.refs import is_branch_name, show_ref
from patchgate.check.repository_ids import policy_at, repository_id
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.pushes import (
    BRANCHES,
    commits_at,
    default_branch,
    is_ancestor,
    nearest_first_parent,
    parents_of,
    remote_names,
    remote_of,
    remote_of_ref,
    usual_remote,
)
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import BIG_FILE, Repository
from patchgate.git.revisions import Revision, resolve
from patchgate.git.trees import entries_at
from patchgate.policy.file_kinds import ALLOWED_SIGNERS, CONTROLS_BY_NAME, PRE_COMMIT_FILE, PYPROJECT_FILE
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies
from patchgate.report.verdict import ChangeVerdict
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace

_BASELINES = b".patchgate/baselines/"
_MOST_BYTES = BIG_FILE


@dataclass(frozen=True, slots=True)
class Binding:
    """What a signed approval is bound to besides the change and the policy; None: not bound.

    `repository` is its id, `ref` the branch that gets the change, `rules` the digest of the commits there
    that have changed control files, `expires` a time in ISO 8601. `warnings` are for who approves.
    """

    repository: str | None = None
    ref: str | None = None
    rules: str | None = None
    expires: str | None = None
    warnings: tuple[str, ...] = ()


NOT_BOUND = Binding()


def with_branch(repository: Repository, asked: CheckOptions, branch: str, commit: str | None) -> CheckOptions:
    """Let a merge be compared with the branch that gets it, also where another one's policy judges it.

    Args:
        branch: its full name.
        commit: the commit to approve.

    Raises:
        UsageError: that branch is not here.
        UndecidedError: git could not answer.
    """
    tip = _Remotes(repository, asked.place).tip(branch, commit)
    had = None if tip is None else _before_landing(repository, commit, tip, asked.policy_from)
    return replace(asked, branches=() if had is None else (had,))


def full_name(branch: str) -> str:
    """Return the full name of a ref that `--for` names.

    Raises:
        UsageError: git takes it for no ref, or it is a remote-tracking one.
    """
    name = branch if branch.startswith("refs/") else BRANCHES + branch
    if not is_branch_name(name) or name.count("/") < 2 or name.startswith("refs/remotes/"):
        raise UsageError(
            f"--for {printable(branch, 100)} names no ref that a push can move",
            "name it as the remote has it: --for refs/heads/main",
        )
    return name


def bind(
    repository: Repository,
    change: ChangeVerdict,
    branch: str | None,
    expires: str | None,
    asked: CheckOptions,
    wanted: str | None = None,
) -> Binding:
    """Find what a signed approval of a change must be bound to.

    Args:
        branch: the branch that gets the change, as a full name; None: the default branch, if the change
            needs one.
        expires: when it ends, in ISO 8601; None: never.
        asked: has the commit of `--policy-from`, and its name. Where that is a remote-tracking branch, the
            branch is the one of that remote. Of a change that has landed, the rules are those from there, or
            its first parent's where that is another line: CI asks for its approval afterwards.
        wanted: the id of the repository that it must be for; None: that of the remote.

    Raises:
        UsageError: that branch is not here, it is not known which one gets the change, or the policy that
            judges names another repository than the one that is wanted, the default branch or that branch.
        UndecidedError: git could not answer, or the clone is shallow.
    """
    is_policy = any(owned.is_policy for owned in change.owned)
    rules: str | None = None
    warnings: tuple[str, ...] = ()
    remotes = _Remotes(repository, asked.place)
    named = remotes.repository(change, wanted, branch)
    if branch is not None or is_policy:
        branch = remotes.branch(branch)
        landed = change.source.commit
        tip = remotes.tip(branch, landed)
        if tip is not None:
            tip = _before_landing(repository, landed, tip, asked.policy_from)
        warnings = tuple(remotes.warnings(branch, is_policy=is_policy))
        with Objects(repository) as objects:
            # A tag may have begun with an id of long ago: that of the default branch counts.
            if tip is not None and branch.startswith(BRANCHES):
                _require_same_repository(objects, change, show_ref(branch), tip, named)
            if is_policy:
                state = rules_state(objects, tip)
                rules = state.digest
                if state.lacks is not None:
                    warnings += (
                        f"{show_ref(branch)} lacks {state.lacks}, so this counts only until it moves",
                    )
    return Binding(named, branch, rules, expires, warnings)


def _require_same_repository(
    objects: Objects, change: ChangeVerdict, name: str, tip: str, named: str | None
) -> None:
    """Refuse to name another repository than the one that a branch names.

    Args:
        named: the id that the approval is for.
    """
    own = repository_id(objects, TreePolicies(objects), [tip])
    if own not in {None, named}:
        raise _another_repository(change, name)


def _another_repository(change: ChangeVerdict, name: str) -> UsageError:
    return UsageError(
        f"the policy that judges ({change.policy.origin}) has another [governance] id than {name}: the "
        "approval would be for another repository",
        "judge by what the branch has, as with --policy-from refs/remotes/origin/main",
    )


def _before_landing(repository: Repository, landed: str | None, tip: str, before: str | None) -> str:
    """Name the commit of a branch whose rules count: what it has, or had before a change that has landed."""
    if before is None or landed is None or not is_ancestor(repository, landed, tip):
        return tip
    if is_ancestor(repository, landed, before):
        return tip
    is_below = nearest_first_parent(repository, landed, before) == before
    return before if is_below else next(iter(parents_of(repository, [landed])[landed]), before)


class _Remotes:
    """The branches that an approval may be for: those of a remote, or the own ones if there is none."""

    def __init__(self, repository: Repository, judged_by: str | None) -> None:
        """Choose the remote: that of the remote-tracking branch that judges, else origin, else the only one.

        Args:
            judged_by: the name of the revision whose policy judges.
        """
        self._repository = repository
        self._all = remote_names(repository)
        self._chosen = None if judged_by is None else _remote_named(repository, judged_by)
        self._name = self._chosen or usual_remote(repository)

    def repository(self, change: ChangeVerdict, wanted: str | None, branch: str | None) -> str | None:
        """Return the id that the default branch names; what judges must not name another.

        Others may have pushed what judges, and any other branch that gets the change. Where the default
        branch has no policy that can be read, its first one, or the repair, names the repository itself.
        """
        named = self._named(change, branch)
        if wanted is not None and named != wanted:
            has = "no [governance] id" if named is None else f"the [governance] id {printable(named, 100)}"
            raise UsageError(
                f"the policy that judges ({change.policy.origin}) has {has}, not {printable(wanted, 100)}",
                "approve it in a clone of that repository, by a policy that its branches have",
            )
        return named

    def _named(self, change: ChangeVerdict, branch: str | None) -> str | None:
        default = self._default()
        if default is None and self._name is not None and remote_of(self._repository, self._name).had:
            raise UsageError(
                f"it is not known which branch of {printable(self._name, 100)} is the default one: its "
                "policy says for which repository an approval is",
                f"git remote set-head {self._in_shell} --auto",
            )
        # A bare clone has the branches of its remote as its own.
        place = "HEAD" if default is None else self._place(default)
        is_meant = branch in {None, default or default_branch(self._repository)}
        names_itself = is_meant and any(owned.is_policy for owned in change.owned)
        found = change.policy.repository
        with Objects(self._repository) as objects:
            tip = resolve(objects, place)
            policies = TreePolicies(objects)
            named = None if tip is None else repository_id(objects, policies, [tip.oid])
            known = FoundPolicy() if tip is None else policy_at(objects, policies, tip.oid)
        if known.is_absent and found is not None and not names_itself:
            raise UsageError(
                f"{show_ref(place)} has no policy, so it names no repository",
                "first land the policy; then approve what it refuses",
            )
        if named is None and known.policy is None and names_itself:
            return found
        if found not in {None, named}:
            raise _another_repository(change, show_ref(place))
        return named

    def branch(self, named: str | None) -> str:
        """Return the full name of a branch; of the default one where none is named."""
        found = self._default() if named is None else named
        if found is None:
            raise UsageError(
                "it is not known which branch gets this change", "name it: --for refs/heads/main"
            )
        return full_name(found)

    def tip(self, branch: str, approved: str | None) -> str | None:
        """Find the commit of a branch; of one that is new, that of the default branch, whose rules it has.

        Of a remote that has no branch yet it is None.

        A clone does not know which tags the remote has. A tag here that has the approved commit is about to
        be pushed and counts as new, as if it were not here; another counts as what the remote has. So the
        approval of a change for a tag that moves is given before the tag is moved here.
        """
        place = self._place(branch)
        hint = "name a branch" if self._name is None else f"git fetch {self._in_shell}"
        with Objects(self._repository) as objects:
            found = resolve(objects, place)
            if found is not None and self._name is not None and self._is_moved_here(branch, approved, found):
                found, place = None, f"refs/remotes/{self._name}/HEAD"
                hint = f"git remote set-head {self._in_shell} --auto"
            if found is None and self._name is not None:
                found = resolve(objects, self._tracking(self._name, self._default() or ""))
        if found is None and (self._name is None or remote_of(self._repository, self._name).had):
            raise UsageError(f"there is no {printable(place, 200)} here", hint)
        return None if found is None else found.oid

    def warnings(self, branch: str, *, is_policy: bool) -> Iterator[str]:
        """Yield what an approver must know: that a branch is new, or that another remote has other rules."""
        if not branch.startswith(BRANCHES):
            return
        place = self._place(branch)
        with Objects(self._repository) as objects:
            known = resolve(objects, place)
            if known is None:
                yield f"there is no {show_ref(branch)} here: the approval is for a branch that is new"
                return
            for remote in self._all if is_policy and self._chosen is None else ():
                other = self._tracking(remote, branch)
                found = resolve(objects, other)
                if found is not None and found.oid != known.oid:
                    yield (
                        f"{show_ref(place)} and {show_ref(other)} differ; the approval is for the rules of "
                        f"the first, and for those of the other with --policy-from {in_shell(other, 'REF')}"
                    )

    @property
    def _in_shell(self) -> str:
        return in_shell(self._name or "", "REMOTE")

    def _default(self) -> str | None:
        if self._name is None:
            return default_branch(self._repository)
        return remote_of(self._repository, self._name).default

    def _place(self, branch: str) -> str:
        is_there = branch.startswith(BRANCHES) and self._name is not None
        return self._tracking(self._name or "", branch) if is_there else branch

    def _tracking(self, remote: str, branch: str) -> str:
        return f"refs/remotes/{remote}/{branch.removeprefix(BRANCHES)}"

    def _is_moved_here(self, ref: str, approved: str | None, found: Revision) -> bool:
        """Return whether a tag has the approved commit already."""
        if ref.startswith(BRANCHES) or approved is None:
            return False
        return is_ancestor(self._repository, approved, found.oid)


def _remote_named(repository: Repository, name: str) -> str | None:
    """Find the remote whose remote-tracking branch a revision names."""
    with Objects(repository) as objects:
        found = resolve(objects, name)
    return None if found is None or found.ref is None else remote_of_ref(repository, found.ref)


@dataclass(frozen=True, slots=True)
class RulesState:
    """Which commits of a branch have changed control files, their digest, and the newest (None: none has).

    `lacks` is what it has not yet: signers, or a `[governance] id`. Then it may get the rules and the history
    of another repository from anybody who may push, so the digest is that of its newest commit.
    """

    digest: str
    newest: str | None
    commits: frozenset[str] = frozenset()
    lacks: str | None = None


def rules_state(objects: Objects, commit: str | None) -> RulesState:
    """Find the commits reachable from a commit that have changed control files.

    All of them count, not the last on some line: a merge can change which line is the first.

    Raises:
        UndecidedError: git failed, an object is missing, or the history is cut off.
    """
    if commit is None:
        return _state([], [])
    if objects.repository.shallow:
        raise UndecidedError(
            "this clone is shallow, so it is not known which commits have changed the rules",
            "git fetch --unshallow",
        )
    header = objects.header(commit + "^{tree}")
    if header is None:
        raise UndecidedError(f"commit {commit[:SHORT_OID]} is missing here", "git fetch")
    policy = policy_at(objects, TreePolicies(objects), commit)
    found = _rules_commits(objects, commit, policy)
    unnamed = None if policy.id is not None else "a [governance] id (init writes one)"
    lacks = unnamed if has_signers(objects, header.oid) else ALLOWED_SIGNERS.quoted
    return _state(found, sorted(found) if lacks is None else [commit], lacks)


def _state(found: Sequence[str], counting: Sequence[str], lacks: str | None = None) -> RulesState:
    text = "".join(f"{oid}\n" for oid in counting)
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return RulesState(f"sha256:{digest}", found[0] if found else None, frozenset(found), lacks)


def _rules_commits(objects: Objects, commit: str, policy: FoundPolicy) -> list[str]:
    """List them, the newest first."""
    repository = objects.repository
    paths = [path.raw.rstrip(b"/") for path in CONTROLS_BY_NAME]
    if policy.from_pyproject:
        paths.append(PYPROJECT_FILE.raw)
    found = commits_at(repository, commit, paths, but=[_BASELINES])
    known = set(found)
    maybe = [oid for oid in commits_at(repository, commit, [PRE_COMMIT_FILE.raw]) if oid not in known]
    return found + _naming(objects, maybe)


def _naming(objects: Objects, commits: Sequence[str]) -> list[str]:
    """Choose the commits whose `.pre-commit-config.yaml` names patchgate, or that of a parent.

    This file is a control file as long as it names patchgate: what changed it then counts for ever.

    Args:
        commits: the newest first.
    """
    sides = {oid: [oid, *parents] for oid, parents in parents_of(objects.repository, commits).items()}
    # The oldest first: what is too much for the limit stays so.
    listed = list(dict.fromkeys(each for oid in reversed(commits) for each in reversed(sides[oid])))
    headers = objects.headers([f"{oid}^{{tree}}" for oid in listed])
    trees = {oid: header.oid for oid, header in zip(listed, headers, strict=True) if header is not None}
    entries = entries_at(objects, dict.fromkeys(trees.values()), PRE_COMMIT_FILE.raw)
    named = _with_name(objects, [entry.oid for entry in entries.values() if entry.is_file])
    naming = {tree for tree, entry in entries.items() if entry.is_file and entry.oid in named}
    return [oid for oid in commits if any(trees.get(side) in naming for side in sides[oid])]


def _with_name(objects: Objects, blobs: Iterable[str]) -> set[str]:
    """Choose the blobs that name patchgate; those that are too large to read them all count too."""
    left = _MOST_BYTES
    found = set()
    for oid, size in objects.sizes(blobs).items():
        if size > left:
            found.add(oid)
            continue
        left -= size
        if b"patchgate" in objects.read(oid):
            found.add(oid)
    return found
