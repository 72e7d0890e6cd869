"""Find in git what a CI engine builds: the commits to judge, and the revision whose policy judges them.

A base is `refs/remotes/origin/NAME`, read by its full name, so no tag or branch can take its place. What
the engine claims is compared with what is here; what is missing is undecided, with the `git fetch` for it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from patchgate.check.ci_environment import CiEvent, EventKind
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.protected_refs import USUAL_BRANCHES
from patchgate.check.refs import is_branch_name
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.pushes import (
    BRANCHES,
    TAGS,
    RefUpdate,
    first_parents_at,
    is_ancestor,
    nearest_first_parent,
    peel,
)
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import head_commit, resolve
from patchgate.policy.file_kinds import ALLOWED_SIGNERS, CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.glob_matching import matches_ref
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies
from patchgate.report.verdict import Report
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace

_REMOTE = "refs/remotes/origin/"
# Each change of the rules since an earlier build costs a check of what came after it.
_MOST_RULES = 16
_UNSHALLOW = "git fetch --unshallow origin"
_FETCH_ALL = "git fetch origin '+refs/heads/*:refs/remotes/origin/*' && git remote set-head origin --auto"


@dataclass(frozen=True, slots=True)
class CiRange:
    """What to judge: the commits of a range, by the policy of a commit, as they land in a branch.

    `policy_from` is None where nothing comes before: then all commits of `head` are judged, as a server does
    that has none, and `revision` is None. `policy_name` is the ref of that commit, if it was found by one.
    `branch` is what the branch has, where that has no policy, so that the default branch's judges.
    `forced_from` is what a forced push took from the ref; `pushed` is what it put there, where that is an
    annotated tag. After each of `also_after` the head is judged too: in a merge queue after the entry that
    lands before this one, else after what has changed the rules since an earlier build. `is_merged` is
    whether a host merges the head, if it lacks commits of the branch, and `is_new` whether the push made a
    protected ref, which has the default branch's rules. `default` is the commit of the default branch, where
    it is here. `notes` are sentences for the report.
    """

    head: str
    target: str
    policy_from: str | None = None
    revision: str | None = None
    policy_name: str | None = None
    branch: str | None = None
    forced_from: str | None = None
    pushed: str | None = None
    also_after: tuple[str, ...] = ()
    is_merged: bool = True
    is_new: bool = False
    default: str | None = None
    notes: tuple[str, ...] = ()


def find_ranges(repository: Repository, event: CiEvent) -> tuple[CiRange, ...]:
    """Find the range that an engine's event means, and those that begin later (`CiRange.also_after`).

    Raises:
        UsageError: no commit is checked out.
        UndecidedError: something is missing here, or differs from what the engine says.
    """
    with Objects(repository) as objects:
        finder = _Finder(repository, objects, event)
        found = finder.find()
        later = (CiRange(found.head, found.target, at, f"{at}..{found.head}") for at in found.also_after)
        return tuple(finder.with_default(each) for each in (found, *later))


def with_move(repository: Repository, found: CiRange, report: Report) -> Report:
    """Add to the report on a push what pre-receive would have said of a protected ref that is new or forced.

    Raises:
        UndecidedError: git could not answer.
    """
    if found.is_new and found.policy_from is not None:
        fork = nearest_first_parent(repository, found.head, found.policy_from)
        made = tuple(replace(each, base=fork, other_bases=(), is_new=True) for each in report.lands_on)
        return replace(report, lands_on=made)
    if found.forced_from is None:
        return report
    from patchgate.check.protected_refs import Destination, RefRules

    old, new, ref = found.forced_from, found.pushed or found.head, found.target
    with Objects(repository) as objects:
        had = peel(objects, [old])[old]
        update, commits = RefUpdate(ref, old, new), {old: had, new: found.head}
        moved = None
        # First what a server says, by its default branch; the host may protect what that does not.
        own = had if found.branch is None else None
        for governing, is_default in ((found.default, False), (found.default, True), (own, True)):
            if governing is None or (is_default and not ref.startswith(BRANCHES)):
                continue
            has = {ref: old} if is_default else {ref: old, "HEAD": governing}
            there = Destination("origin", default=ref if is_default else "HEAD", had=has, judges_all=True)
            asked = CheckOptions(policy_from=governing if is_default else None)
            rules = RefRules(repository, objects, there, {**commits, governing: governing}, asked)
            moved = rules.verdict_on(update)
            if moved is not None or rules.is_protected(ref):
                break
    landing = tuple(
        replace(each, commit=had, base=had, other_bases=(), is_forced=had != found.head)
        for each in report.lands_on
    )
    changes = report.changes if moved is None else (moved, *report.changes)
    return replace(report, changes=changes, lands_on=landing)


@dataclass(slots=True)
class _Finder:
    repository: Repository
    objects: Objects
    event: CiEvent
    head: str = ""
    shown: str = "HEAD"

    def find(self) -> CiRange:
        event = self.event
        self._find_head()
        if event.kind is EventKind.PROPOSAL and not event.is_open:
            return self._against(event.branch or "")
        default = event.default or self._default_of_origin()
        is_protected = event.branch == default or event.is_protected
        if event.branch is not None and not is_protected:
            is_protected = self._is_listed(BRANCHES + event.branch, default)
        if event.kind is EventKind.PROPOSAL and is_protected:
            return self._against(event.branch or "")
        if event.kind is EventKind.PROPOSAL:
            # The result counts for the head, which may be proposed for another branch afterwards.
            note = f"{printable(event.branch or '')} is not protected: compared with {printable(default)}"
            return replace(self._against(default), notes=(note,))
        if event.kind is EventKind.TAG:
            found = self._against(default)
            if event.tag is not None and self._is_listed(TAGS + event.tag, default):
                if event.claimed is not None:
                    self._require_commit(event.claimed)
                pushed = event.checked_out[-1] if event.checked_out else None
                found = replace(found, target=TAGS + event.tag, is_merged=False, pushed=pushed)
                return replace(found, is_new=event.claimed is None, forced_from=event.claimed)
            listed = self._protected_refs(found.policy_from or "") or ()
            return replace(found, is_merged=not self._is_on_branch_of(listed))
        if event.kind is EventKind.CLONE or event.branch is None:
            return self._against(default)
        if not is_protected:
            return self._against(default)
        if event.kind is EventKind.RERUN:
            return self._newest(event.branch, "this run has no push: ")
        if event.is_new and event.branch != default:
            return replace(
                self._against(default), target=BRANCHES + event.branch, is_merged=False, is_new=True
            )
        if event.is_new:
            note = f"{printable(event.branch)} is new: each commit was checked by the policy before it"
            return self._everything(event.branch, note)
        if event.claimed is None:
            return self._newest(
                event.branch, f"{event.engine} does not say what {printable(event.branch)} had before: "
            )
        return self._pushed(event.branch, event.claimed)

    def with_default(self, found: CiRange) -> CiRange:
        """Name the default branch, whose policy judges what lands in a branch without one, as in
        pre-receive.
        """
        branch = found.policy_from
        try:
            name = self.event.default or self._default_of_origin()
            if found.forced_from is not None and found.target == BRANCHES + name:
                # It has what was pushed.
                return found
            found = replace(found, default=self._tip_of(name))
        except UndecidedError:
            # A conflict is joined as any default branch may ask; whether a branch may be forced, it must say.
            if found.forced_from is not None:
                raise
        if branch is None or not self._has_no_policy(branch):
            return found
        default = self.event.default or self._default_of_origin()
        ref = _REMOTE + default
        if found.target == BRANCHES + default:
            return found
        tip = self._tip_of(default)
        if self._has_no_policy(tip):
            return found
        return replace(found, policy_from=tip, policy_name=ref, branch=branch)

    def _policy(self, commit: str) -> FoundPolicy | None:
        """Read the policy of a commit; None if that is not here."""
        policies = TreePolicies(self.objects)
        header = self.objects.header(commit + "^{tree}")
        return None if header is None else policies.at(policies.key(header.oid))

    def _has_no_policy(self, commit: str) -> bool:
        found = self._policy(commit)
        return found is not None and found.is_absent

    def _is_listed(self, ref: str, default: str) -> bool:
        """Return whether the policy of the default branch lists a ref, or that of what the ref had, or may,
        because it cannot be read. Not every host says what it protects, and each may protect others.
        """
        if matches_ref(self._protected_refs(self._tip_of(default)) or (), ref):
            return True
        had = self.event.claimed
        if had is None or self._has_no_policy(had):
            return False
        listed = self._protected_refs(had)
        return matches_ref(USUAL_BRANCHES if listed is None else listed, ref)

    def _protected_refs(self, judging: str) -> Sequence[str] | None:
        """Return the protected refs that the policy of a commit lists; all where it cannot be read."""
        found = self._policy(judging)
        if found is not None and found.fault is not None:
            return ("*",)
        return found.policy.config.push.protected_refs if found is not None and found.policy else None

    def _is_on_branch_of(self, listed: Sequence[str]) -> bool:
        """Return whether the head is on a branch that a list of protected refs has."""
        if not listed:
            return False
        arguments = ("for-each-ref", f"--contains={self.head}", "--format=%(refname)", _REMOTE)
        names = self.repository.output(*arguments).decode("utf-8", "surrogateescape").splitlines()
        return any(matches_ref(listed, BRANCHES + name.removeprefix(_REMOTE)) for name in names)

    def _find_head(self) -> None:
        """Find the commit to judge: the one that is checked out, or that the engine names instead."""
        event = self.event
        found = head_commit(self.objects)
        if found is None:
            raise UsageError("no commit is checked out", "check out the commit that the engine builds")
        if event.head is not None:
            self._require_commit(event.head)
            self.head = self.shown = event.head
        else:
            self.head = found
            # Of an annotated tag, an engine may name the tag itself.
            named = self.objects.headers([oid + "^{commit}" for oid in event.checked_out])
            if event.checked_out and found not in {header.oid for header in named if header is not None}:
                raise UndecidedError(
                    f"{event.engine} builds {event.checked_out[0][:SHORT_OID]}, but "
                    f"{found[:SHORT_OID]} is checked out",
                    f"git checkout --detach {event.checked_out[0]}",
                )
        if event.includes is not None and event.includes != self.head:
            self._require_commit(event.includes)
            if not is_ancestor(self.repository, event.includes, self.head):
                raise UndecidedError(
                    f"{event.engine} names {event.includes[:SHORT_OID]} as the head, but it is not in the "
                    f"history of {self.head[:SHORT_OID]}",
                    "run the pipeline again",
                )

    def _against(self, branch: str) -> CiRange:
        """Judge what a branch lacks, by its policy; the engine's claim must fit."""
        event = self.event
        ref = _REMOTE + branch
        tip = self._tip_of(branch)
        self._require_history(tip)
        if event.branch == branch and event.kind is EventKind.PROPOSAL and event.claimed is not None:
            self._require_claim(branch, tip, event.claimed)
        after = () if event.claimed in (None, tip) or not event.is_queued else (event.claimed,)
        return CiRange(self.head, BRANCHES + branch, tip, f"{ref}..{self.shown}", ref, also_after=after)

    def _tip_of(self, branch: str) -> str:
        """Return the commit that a branch of origin has, by its full name."""
        ref = _REMOTE + branch
        found = resolve(self.objects, ref)
        if found is None or found.type != "commit":
            raise UndecidedError(f"{printable(ref)} is not in this clone", self._fetch(branch))
        if self.repository.git("symbolic-ref", "--quiet", ref, answers=(0, 1, 128)).code == 0:
            raise UndecidedError(
                f"{printable(ref)} is a symbolic ref, which names another branch",
                f"git symbolic-ref --delete {in_shell(ref, 'REF')} && {self._fetch(branch)}",
            )
        return found.oid

    def _require_claim(self, branch: str, base: str, claimed: str) -> None:
        """Require that the base is what the engine says: its claim is in the history of the base.

        In a queue the claim is the entry before, which has not landed; then it is in that of the head.
        """
        event = self.event
        self._require_commit(claimed, self._fetch(branch))
        where, known = (self.shown, self.head) if event.is_queued else (_REMOTE + branch, base)
        if not is_ancestor(self.repository, claimed, known):
            raise UndecidedError(
                f"{event.engine} says that {printable(branch)} was at {claimed[:SHORT_OID]}, "
                f"which is not in the history of {printable(where)}",
                f"{self._fetch(branch)}, or run the pipeline again",
            )

    def _pushed(self, branch: str, before: str) -> CiRange:
        """Judge what a push brought, by the policy that the branch had before it."""
        self._require_commit(before)
        self._require_history(before)
        found = CiRange(self.head, BRANCHES + branch, before, f"{before}..{self.shown}")
        if not is_ancestor(self.repository, before, self.head):
            if self.event.is_forced is False:
                raise UndecidedError(
                    f"{self.event.engine} says that the push was not forced, but {before[:SHORT_OID]} "
                    f"is not in the history of {self.head[:SHORT_OID]}",
                    "run the pipeline again",
                )
            note = f"the push was forced: {printable(branch)} lost commits of {before[:SHORT_OID]}"
            return replace(found, forced_from=before, is_merged=False, notes=(note,))
        if not self.event.is_of_build:
            return found
        return replace(found, also_after=tuple(self._rules_changed(before)))

    def _rules_changed(self, before: str) -> list[str]:
        """List the commits of the branch before the head that have changed the rules since a commit."""
        paths = [each.raw for each in (CONFIG_FILE, PYPROJECT_FILE, ALLOWED_SIGNERS)]
        found = [
            commit
            for commit in first_parents_at(self.repository, self.head, before, paths)
            if commit != self.head and not self._has_rules_of(commit, commit + "^1")
        ]
        if len(found) > _MOST_RULES:
            raise UndecidedError(
                f"the rules have changed {len(found)} times since the build of {before[:SHORT_OID]}",
                "build the commits between first",
            )
        return found

    def _has_rules_of(self, commit: str, other: str) -> bool:
        """Return whether two commits have the same policy, as it is written, and the same signers."""
        one, two = self._policy(commit), self._policy(other)
        if one is None or two is None or one.policy is None or two.policy is None:
            return False
        signers = {
            self.objects.header(f"{each}:{ALLOWED_SIGNERS.raw.decode('ascii')}") for each in (commit, other)
        }
        return one.policy.is_written_as(two.policy) and len(signers) == 1

    def _newest(self, branch: str, why: str) -> CiRange:
        """Judge the newest change of a branch, by the policy before it: what its first parent lacks.

        Whoever starts a run by hand may name a commit that the branch does not have: that is a proposal.
        """
        tip = resolve(self.objects, _REMOTE + branch)
        if tip is None or not is_ancestor(self.repository, self.head, tip.oid):
            note = f"{self.shown[:SHORT_OID]} is not on {printable(branch)}: compared with it"
            return replace(self._against(branch), notes=(note,))
        before = self.objects.header(self.head + "^1^{commit}")
        if before is None:
            return self._everything(branch, f"{why}the first commit was checked")
        self._require_history(before.oid)
        note = f"{why}only the newest change of {printable(branch)} was checked"
        return CiRange(self.head, BRANCHES + branch, before.oid, f"{before.oid}..{self.shown}", notes=(note,))

    def _everything(self, branch: str, note: str) -> CiRange:
        if self.repository.shallow:
            raise self._cut_off()
        return CiRange(self.head, BRANCHES + branch, notes=(note,))

    def _default_of_origin(self) -> str:
        """Find the default branch by `refs/remotes/origin/HEAD`; nobody can push that as a symbolic ref."""
        done = self.repository.git("symbolic-ref", "--quiet", _REMOTE + "HEAD", answers=(0, 1, 128))
        name = os.fsdecode(done.out.rstrip(b"\n")).removeprefix(_REMOTE)
        if not is_branch_name(name) or name.startswith("refs/"):
            raise UndecidedError("the default branch of origin is not known here", _FETCH_ALL)
        return name

    def _require_commit(self, oid: str, fetch: str | None = None) -> None:
        """Require that a commit, or a tag of one, is here, by its whole id in this repository's format."""
        is_own = self.repository.is_oid(oid.encode("ascii"))
        if is_own and self.objects.header(oid + "^{commit}") is not None:
            return
        if self.repository.shallow:
            raise self._cut_off()
        hint = fetch or f"git fetch origin {oid}"
        raise UndecidedError(f"the commit {oid[:SHORT_OID]} is not in this clone", hint)

    def _require_history(self, base: str) -> None:
        """Require that no history is cut off between the base and the head."""
        shallow = self.repository.shallow
        if not shallow:
            return
        between = self.repository.output("rev-list", self.head, "^" + base).decode("ascii").split()
        if not between or not shallow.isdisjoint(between):
            raise self._cut_off()

    def _cut_off(self) -> UndecidedError:
        event = self.event
        branch = event.branch if event.kind is EventKind.PROPOSAL else event.default
        is_missing = branch is not None and resolve(self.objects, _REMOTE + branch) is None
        hint = self._fetch(branch) if branch is not None and is_missing else _UNSHALLOW
        return UndecidedError("this clone is shallow: the history that must be checked is missing", hint)

    def _fetch(self, branch: str) -> str:
        """Return the command that brings a base branch, and the missing history with it."""
        refspec = in_shell(f"+{BRANCHES}{branch}:{_REMOTE}{branch}", "REFSPEC")
        return f"{_UNSHALLOW if self.repository.shallow else 'git fetch origin'} {refspec}"
