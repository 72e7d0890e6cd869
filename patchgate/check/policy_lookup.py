"""Find the policy that judges: `--policy-from`, the trusted ref, the main line; and what it needs read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from patchgate.check.features import ScopedCommits, watched
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.diff import Detail, Glance, Watch
from patchgate.git.objects import Objects
from patchgate.git.pushes import (
    BRANCHES,
    NOTES,
    USUAL_BRANCHES,
    default_branch,
    remote_names,
    remote_of,
    remote_of_ref,
    usual_remote,
)
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.git.revisions import NAME_ONE, resolve, tree_named
from patchgate.policy.policy import Policy, Profile
from patchgate.policy.tree_policies import FoundPolicy, Key, TreePolicies, old_table_notes, require_usable
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, field, replace

TRUST_KEY = "patchgate.trustRef"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How to judge, as the caller asked; None leaves it to the change.

    `policy_from` is the revision whose policy judges, `policy_name` its name before it was resolved to an
    object id; `policy` is a policy that is not in the repository yet. `fallback` is the revision whose policy
    judges commits that had none before them. `firsts` are the root commits that count as the first of their
    repository; None: find out. `since` is the commit before a range: its policy judges a root in the range,
    which is not the first. `scoped_commits` are those made under the intents of this worktree. `in_full`
    counts lines and computes patch ids even if the policy does not need them, for a JSON report. `target` is
    the full name (refs/heads/…) of the branch in which the change lands, where that is known, and `default`
    what the default branch there has (empty: not known), which may name the repository. `branches` are
    what the branches have that get the commits; without them, it is what `policy_from` has. `counted` is
    called after every hundred commits, or files of a patch, with how many are judged, and of how many.
    `environ` is the environment of a commit that is about to be made, which can say that an agent makes it.
    `profile_reason` says why `profile` is an agent's: then what refuses people counts, too.
    `in_bulk` is whether commits about which no rule can say anything need no verdict of their own,
    `remembers` whether an earlier check of the same commits counts.
    """

    policy_from: str | None = None
    profile: Profile | None = None
    profile_reason: str = ""
    policy: Policy | None = None
    fallback: str | None = None
    firsts: frozenset[str] | None = None
    scoped_commits: ScopedCommits | None = None
    policy_name: str | None = None
    since: str | None = None
    in_full: bool = False
    target: str | None = None
    default: str | None = None
    branches: tuple[str, ...] = ()
    counted: Callable[[int, int], None] | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    in_bulk: bool = False
    remembers: bool = False

    @property
    def place(self) -> str | None:
        """The name of the policy's revision, for messages; None if the change decides."""
        return self.policy_name or self.policy_from

    @property
    def branch(self) -> str | None:
        """What the branch has in which a range lands: by default the revision whose policy judges."""
        return self.branches[0] if self.branches else self.policy_from

    def branch_of(self, tree: str) -> dict[str, tuple[str, ...]]:
        """Map the tree of that branch to its commit, where that is known."""
        return {tree: () if self.branch is None else (self.branch,)}


def requested_policy(objects: Objects, policies: TreePolicies, asked: CheckOptions) -> FoundPolicy | None:
    """Read the policy of `--policy-from REV`; it may have a fault.

    Raises:
        UsageError: there is no such revision, or its name is ambiguous.
    """
    if asked.policy is not None:
        return FoundPolicy(asked.policy)
    if asked.policy_from is None:
        return None
    named = tree_named(objects, asked.policy_from)
    if named is None:
        raise _unknown_policy()
    tree, _ = named
    return replace(policies.at(policies.key(tree)), tree=tree)


def history_root(objects: Objects, asked: CheckOptions) -> list[str] | None:
    """Name the commit whose first commit counts as that of the repository: the one whose policy judges.

    Empty if the revision is not a commit, None if the main line decides.

    Raises:
        UsageError: the name is ambiguous.
        UndecidedError: git could not answer.
    """
    if asked.policy_from is None:
        return None if asked.since is None else [asked.since]
    named = tree_named(objects, asked.policy_from)
    return [named[1]] if named is not None and named[1] is not None else []


def resolve_policy_from(repository: Repository, policy_from: str) -> CheckOptions:
    """Resolve the revision of `--policy-from` for a command that judges more than once.

    Raises:
        UsageError: there is no such revision, or its name is ambiguous.
    """
    with Objects(repository) as objects:
        found = resolve(objects, policy_from)
    if found is None:
        raise _unknown_policy()
    ref = found.ref
    if ref is not None and ref.endswith("/HEAD"):
        done = repository.git("symbolic-ref", "--quiet", ref, answers=(0, 1, 128))
        ref = os.fsdecode(done.out.rstrip(b"\n")) or None
    return CheckOptions(
        found.oid,
        policy_name=policy_from,
        target=_branch_of(repository, ref),
        default=_default_beside(repository, ref),
    )


def _default_beside(repository: Repository, ref: str | None) -> str:
    """Return the commit of the default branch beside a ref, or a commit without a name.

    That is the remote's, also for what is in this clone alone; a bare one may be a mirror, and has its own.
    Without a remote it is main or master. It is empty where that is not known.
    """
    remote = None if ref is None else remote_of_ref(repository, ref)
    if remote is None and (repository.work_tree is None or not remote_names(repository)):
        names = USUAL_BRANCHES if repository.work_tree is not None else [default_branch(repository)]
        with Objects(repository) as objects:
            found = (resolve(objects, name) for name in names if name is not None)
            return next((each.oid for each in found if each is not None), "")
    remote = remote or usual_remote(repository)
    if remote is None:
        return ""
    # Its symbolic ref alone: somebody may push a branch with the name HEAD.
    there = remote_of(repository, remote)
    return "" if there.default is None else there.had.get(there.default, "")


def _branch_of(repository: Repository, ref: str | None) -> str | None:
    """Return the branch that a full name means: itself, or that of a remote; None if it means no branch."""
    if ref is None or ref.startswith(BRANCHES):
        return ref
    remote = remote_of_ref(repository, ref)
    return None if remote is None else BRANCHES + ref.removeprefix(f"refs/remotes/{remote}/")


def _unknown_policy() -> UsageError:
    return UsageError("unknown revision for --policy-from", NAME_ONE)


def policy_of_analyses(
    repository: Repository, objects: Objects, before: str | None = None
) -> tuple[Policy, str]:
    """Find the policy whose analyses count, and say which revision's it is: the trusted ref's, else HEAD's.

    Args:
        before: the tree that a change is compared with; its policy comes before that of HEAD, unless it names
            no analysis, as before the first.

    Raises:
        ConfigError: it cannot be used.
        UndecidedError: it cannot be read.
    """
    from patchgate.git.change_sources import pending_base

    policies = TreePolicies(objects)
    asked = trusted_options(repository)
    found = requested_policy(objects, policies, asked)
    if found is None and before is not None:
        found = policies.at(policies.key(before))
        if found.fault is None and (found.policy is None or not found.policy.config.analyses):
            found = None
    if found is None:
        found = policies.at(policies.key(pending_base(repository, objects).policy_tree))
    policy = require_usable(found)
    repository.config_notes[:] = old_table_notes(policy)
    return policy, asked.place or "HEAD"


def trusted_options(repository: Repository) -> CheckOptions:
    """Read which ref's policy this repository trusts above all (`install --trust-ref REF`), if any.

    Git reads its config, with includes and the global and worktree files. The ref is resolved here, once.

    Raises:
        UndecidedError: that ref is not here, or a file that the repository tracks names it.
    """
    done = repository.git("config", "-z", "--show-origin", "--get", TRUST_KEY, answers=(0, 1))
    if done.code == 1:
        return CheckOptions()
    origin, _, rest = os.fsdecode(done.out).partition("\0")
    ref = rest.rstrip("\0\n")
    if not ref:
        return CheckOptions()
    if ref.startswith(NOTES):
        # They are judged without it, so anybody may push what judges.
        raise UndecidedError(
            f"the policy is read from {printable(ref)}, and notes have no owners",
            f"git config {TRUST_KEY} refs/heads/main",
        )
    _require_untracked(repository, origin.removeprefix("file:"))
    found = repository.git("show-ref", "--verify", "--hash", "--", ref, answers=ANY_CODE)
    if found.code != 0:
        remote, _, name = ref.removeprefix("refs/remotes/").partition("/")
        hint = (
            f"git fetch {in_shell(remote, 'REMOTE')} {in_shell(name, 'BRANCH')}"
            if ref.startswith("refs/remotes/")
            else f"git config {TRUST_KEY} REF"
        )
        raise UndecidedError(f"the policy is read from {printable(ref)}, but there is no such ref here", hint)
    return CheckOptions(found.out.decode("ascii").strip(), policy_name=ref)


def policy_before(
    objects: Objects, policies: TreePolicies, asked: CheckOptions, commit: str | None, base: tuple[str, str]
) -> tuple[FoundPolicy, str, bool]:
    """Find the policy that judges a change to a tree, the name of its revision, and whether it is borrowed:
    that of the main line, if the change starts a branch without a parent.

    Args:
        commit: the commit of the tree; None if there is none yet.
        base: the tree, and the name of its revision.

    Raises:
        PatchgateError: it cannot be read.
    """
    found = requested_policy(objects, policies, asked)
    if found is not None:
        return found, asked.place or base[1], False
    beside = main_line_policy(objects, policies) if commit is None else None
    if beside is not None:
        return beside[0], beside[1][:SHORT_OID], True
    return policies.at(policies.key(base[0])), base[1], False


def main_line_policy(objects: Objects, policies: TreePolicies) -> tuple[FoundPolicy, str] | None:
    """Find the policy for a branch that starts without a parent, and its commit: that of the main line.

    None if no branch has a commit: then the change is the first one.

    Raises:
        UndecidedError: git failed, an object is missing, or it is not known which of several branches is the
            main line, and their policies are not alike.
    """
    # A commit without a parent is rare.
    from patchgate.git.revisions import main_lines

    commits = main_lines(objects.repository)
    headers = objects.headers([commit + "^{tree}" for commit in commits])
    found: dict[Key, tuple[FoundPolicy, str]] = {}
    for commit, header in zip(commits, headers, strict=True):
        if header is not None:
            key = policies.key(header.oid)
            found.setdefault(key, (replace(policies.at(key), tree=header.oid), commit))
    # A branch without a policy (such as gh-pages) does not count beside those that have one.
    alike = [each for each in found.values() if not each[0].is_absent] or list(found.values())
    if len(alike) > 1:
        raise _no_main_line(objects.repository, [commit for _, commit in alike])
    return next(iter(alike), None)


def _no_main_line(repository: Repository, commits: Sequence[str]) -> UndecidedError:
    named = " and ".join(commit[:SHORT_OID] for commit in commits[:2])
    is_bare = repository.work_tree is None
    step = "git symbolic-ref HEAD refs/heads/NAME" if is_bare else "git remote set-head origin --auto"
    return UndecidedError(
        f"the policies of several branches differ ({named}), and it is not known which branch is the "
        "main line, whose policy judges a commit without a parent",
        f"{step}; or name the policy: git patchgate check --policy-from REV, or install --trust-ref REF",
    )


def _require_untracked(repository: Repository, file: str) -> None:
    """Refuse a trusted ref that a file of a working tree names: a change could replace it."""
    from patchgate.git.refs import work_trees

    place = os.path.realpath(os.path.join(repository.git_dir, file))
    git_dir = os.path.realpath(repository.common_dir)
    if _is_below(place, git_dir):
        return
    for folder in work_trees(repository):
        if _is_below(place, folder):
            raise UndecidedError(
                f"{TRUST_KEY} is set in {printable(place)}, which a change to this repository can replace",
                f"remove it from that file, and run git config {TRUST_KEY} REF",
            )


def _is_below(place: str, folder: str) -> bool:
    return place.startswith(folder.rstrip("/") + "/")


def detail_for(judging: Sequence[Policy], *profiles: Profile, in_full: bool = False) -> Detail:
    """Return how much must be read for these policies, under one profile or several.

    Args:
        in_full: lines are counted also where no rule needs them.
    """
    watching: list[tuple[Watch, Glance]] = [
        (policy.content.suspects, policy.content.may_suspect) for policy in judging if policy.content
    ]
    for policy in judging:
        watching += watched(policy, profiles)
    watch, glance = _joined(watching)
    return Detail(
        lines=in_full or any(policy.needs_lines(profile) for policy in judging for profile in profiles),
        sizes=any(policy.needs_sizes(profile) for policy in judging for profile in profiles),
        watch=watch,
        glance=glance,
    )


def _joined(watching: Sequence[tuple[Watch, Glance]]) -> tuple[Watch, Glance] | tuple[None, None]:
    """Join what several rules search for; None if they search for nothing."""
    if len(watching) < 2:
        return watching[0] if watching else (None, None)

    def watch(lines: Sequence[bytes]) -> list[int]:
        return sorted({index for suspects, _ in watching for index in suspects(lines)})

    def glance(text: bytes, start: int, stop: int) -> bool:
        return any(may_suspect(text, start, stop) for _, may_suspect in watching)

    return watch, glance
