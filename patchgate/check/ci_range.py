"""Find in git what a CI engine builds: the commits to judge, and the revision whose policy judges them.

A base is `refs/remotes/origin/NAME`, read by its full name, so no tag or branch can take its place. What
the engine claims is compared with what is here; what is missing is undecided, with the `git fetch` for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from patchgate.check.ci_environment import CiEvent, EventKind
from patchgate.check.ci_moves import moves_between
from patchgate.check.protected_refs import USUAL_BRANCHES
from patchgate.check.refs import is_branch_name
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, TAGS, RefUpdate, is_ancestor
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import head_commit, resolve
from patchgate.policy.glob_matching import matches_ref
from patchgate.policy.tree_policies import FoundPolicy, TreePolicies
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace

_REMOTE = "refs/remotes/origin/"
_UNSHALLOW = "git fetch --unshallow origin"
_FETCH_ALL = "git fetch origin '+refs/heads/*:refs/remotes/origin/*' && git remote set-head origin --auto"


@dataclass(frozen=True, slots=True)
class CiRange:
    """The commits of a range to judge by the policy of a commit, as what is proposed for a branch.

    `policy_name` is the ref of that commit, if it was found by one. `branch` is what the branch has, where
    that has no policy, so that the default branch's judges. `is_merged` is whether a host merges the head, if
    it lacks commits of the branch. `default` is the commit of the default branch, where it is here. `notes`
    are sentences for the report.
    """

    head: str
    target: str
    policy_from: str
    revision: str
    policy_name: str | None = None
    branch: str | None = None
    is_merged: bool = True
    default: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CiPush:
    """The move of a protected ref, to judge as a server does that has not received it yet.

    `had` are the refs that matter there, with their objects, and `default` is the default branch, in full;
    both are empty on a server that has no commit. `been` are commits that the ref may have had since.
    `policy_from` is whose policy judges, if not what the ref had. `is_listed` is whether more than the policy
    of what it had protects the ref. `notes` are sentences for the report.
    """

    head: str
    update: RefUpdate
    had: Mapping[str, str]
    default: str | None
    notes: tuple[str, ...] = ()
    policy_from: str | None = None
    been: Sequence[str] = ()
    is_listed: bool = True

    @property
    def base(self) -> str | None:
        """What the ref had, or else the default branch."""
        return self.update.old or self.had.get(self.default or "")


def _by_itself(found: CiRange | CiPush) -> CiRange | CiPush:
    return replace(found, is_listed=False) if isinstance(found, CiPush) else found


def find_ranges(repository: Repository, event: CiEvent) -> tuple[CiRange | CiPush, ...]:
    """Find what an engine's event means: one range or push, or several that begin one after the other.

    Of an entry of a merge queue the second begins at the entry before it, which may not have landed yet. Of
    what came since an earlier build, the further ones begin where the branch may have been meanwhile.

    Raises:
        UsageError: no commit is checked out.
        UndecidedError: something is missing here, or differs from what the engine says.
    """
    with Objects(repository) as objects:
        finder = _Finder(repository, objects, event, TreePolicies(objects))
        return tuple(
            finder.with_default(each) if isinstance(each, CiRange) else each for each in finder.find()
        )


@dataclass(slots=True)
class _Finder:
    repository: Repository
    objects: Objects
    event: CiEvent
    policies: TreePolicies
    head: str = ""
    shown: str = "HEAD"

    def find(self) -> Sequence[CiRange | CiPush]:
        event = self.event
        self._find_head()
        if event.kind is EventKind.PROPOSAL and not event.is_open:
            return self._proposed(event.branch or "")
        default = event.default or self._default_of_origin()
        if event.kind is EventKind.TAG:
            return self._tagged(event.tag, default)
        if event.kind is EventKind.CLONE or event.branch is None:
            # What the default branch has already may have been pushed just now.
            why = "no engine is known: " if event.engine == "git" else f"{event.engine} names no branch: "
            return [self._newest(default, default, why)]
        ref = BRANCHES + event.branch
        is_protected = event.is_protected or event.branch == default or self._is_listed(ref, default)
        if event.kind is EventKind.PROPOSAL:
            return self._proposed(event.branch) if is_protected else self._proposed_openly(ref, default)
        if not is_protected:
            return self._pushed_openly(ref, default)
        if event.kind is EventKind.RERUN:
            return self._unnamed(event.branch, default, "this run has no push: ")
        if event.is_new:
            return [self._new(event.branch, default)]
        if event.claimed is None:
            why = f"{event.engine} does not say what {printable(event.branch)} had before: "
            return self._unnamed(event.branch, default, why)
        return self._pushed(event.branch, default, event.claimed)

    def _unnamed(self, branch: str, default: str, why: str) -> Sequence[CiRange | CiPush]:
        """Judge the newest change where it is not known what was pushed; and where only a list protects the
        branch, what the default branch lacks, as if the branch were new.
        """
        newest = self._newest(branch, default, why)
        is_known = self.event.is_protected or branch == default
        return [newest] if is_known else [newest, self._new(branch, default)]

    def _proposed_openly(self, ref: str, default: str) -> Sequence[CiRange | CiPush]:
        """Judge what is proposed for a branch that nobody protects, or only its own policy, for that too.

        The result counts for the head, which may be proposed for another branch afterwards.
        """
        branch = ref.removeprefix(BRANCHES)
        note = f"{printable(branch)} is not protected: compared with {printable(default)}"
        found = [replace(self._against(default), notes=(note,))]
        head = self.event.includes
        if head is not None and head != self.head:
            # What is built may be its merge with that branch.
            self._require_commit(head)
            found.append(CiRange(head, found[0].target, found[0].policy_from, f"{_REMOTE}{default}..{head}"))
        tip = resolve(self.objects, _REMOTE + branch)
        lists_itself = tip is not None and self._lists(tip.oid, ref)
        return [*found, *(self._proposed(branch) if lists_itself else ())]

    def _pushed_openly(self, ref: str, default: str) -> Sequence[CiRange | CiPush]:
        """Judge a push of such a branch as what may be proposed for the default one, and as a push."""
        found, had = replace(self._against(default), notes=self._unknown()), self.event.claimed
        branch = ref.removeprefix(BRANCHES)
        if had is not None:
            moves = self._pushed(branch, default, had) if self._lists(had, ref) else ()
            return [found, *map(_by_itself, moves)]
        if self.event.is_new:
            return [found]
        # What a push brought may have taken the list away.
        named = [resolve(self.objects, each) for each in (_REMOTE + branch, f"{self.head}^1")]
        if not any(each is not None and self._lists(each.oid, ref) for each in named):
            return [found]
        return [found, self._newest(branch, default, f"{self.event.engine} names no push: ")]

    def _tagged(self, tag: str | None, default: str) -> Sequence[CiRange | CiPush]:
        """Judge a tag: a listed one as it moves, another one as what is proposed for the default branch."""
        found, old = self._against(default), self.event.claimed
        moved: list[CiRange | CiPush] = []
        if tag is not None and (self._is_listed(TAGS + tag, default) or self._lists(old, TAGS + tag)):
            if old is not None:
                self._require_commit(old)
            moved.append(self._push(TAGS + tag, default, old, pushed=self._tag_object(tag, old)))
            if self._is_listed(TAGS + tag, default):
                return moved
        listed = self._protected_refs(found.policy_from) or ()
        is_merged = not self._is_on_branch_of(listed)
        return [replace(found, is_merged=is_merged, notes=self._unknown()), *moved]

    def _unknown(self) -> tuple[str, ...]:
        """Say where it is not known whether what a ref had protects it: a forced push took that away."""
        had = self.event.claimed
        if had is None or self._policy(had) is not None:
            return ()
        what = f"{had[:SHORT_OID]}, which this ref had, is not in this clone"
        return (f"{what}: whether its policy protects the ref is not known",)

    def _tag_object(self, tag: str, old: str | None) -> str:
        """Name what a tag got: the tag itself where it is an annotated one, and here, else the head."""
        for named in reversed(self.event.checked_out):
            commit, before = self.objects.headers([f"{named}^{{commit}}", f"{old or named}^{{commit}}"])
            if commit is not None and commit.oid == self.head:
                return named
            if commit is None and before is not None and before.oid == self.head:
                # Another tag of the same commit is a move too.
                self._require_commit(named, f"git fetch origin {in_shell(TAGS + tag, 'REF')}")
        return self.head

    def _push(
        self, ref: str, default: str, old: str | None, *notes: str, pushed: str | None = None
    ) -> CiPush:
        """Judge the move of a protected ref from what it had."""
        name = BRANCHES + default
        had = {} if old is None else {ref: old}
        if name != ref:
            had[name] = self._tip_of(default)
        return CiPush(self.head, RefUpdate(ref, old, pushed or self.head), had, name, notes)

    def with_default(self, found: CiRange) -> CiRange:
        """Name the default branch, whose policy judges what is proposed for a branch without one."""
        branch = found.policy_from
        # A conflict is joined as any default branch may ask.
        with suppress(UndecidedError):
            name = self.event.default or self._default_of_origin()
            found = replace(found, default=self._tip_of(name))
        if not self._has_no_policy(branch):
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
        header = self.objects.header(commit + "^{tree}")
        return None if header is None else self.policies.at(self.policies.key(header.oid))

    def _has_no_policy(self, commit: str) -> bool:
        found = self._policy(commit)
        return found is not None and found.is_absent

    def _is_listed(self, ref: str, default: str) -> bool:
        """Return whether the policy of the default branch lists a ref. Not every host says what it protects,
        and each may protect others.

        While it cannot be read, every other ref is an open one: judged by that policy, and so undecided.
        """
        found = self._policy(self._tip_of(default))
        policy = None if found is None else found.policy
        return policy is not None and matches_ref(policy.config.push.protected_refs or (), ref)

    def _lists(self, had: str | None, ref: str) -> bool:
        """Return whether the policy of what a ref had lists it, as on a server."""
        found = None if had is None else self._policy(had)
        if had is None or found is None or found.is_absent:
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
        # A train may have rebased or squashed what it builds.
        if event.includes not in (None, self.head) and not event.is_queued:
            self._require_commit(event.includes)
            if not is_ancestor(self.repository, event.includes, self.head):
                raise UndecidedError(
                    f"{event.engine} names {event.includes[:SHORT_OID]} as the head, but it is not in the "
                    f"history of {self.head[:SHORT_OID]}",
                    "run the pipeline again",
                )

    def _proposed(self, branch: str) -> list[CiRange | CiPush]:
        """Judge what is proposed for a branch; an entry of a merge queue also as it comes after another."""
        found, after = self._against(branch), self.event.claimed
        if not self.event.is_queued or after in (None, found.policy_from):
            return [found]
        return [found, CiRange(self.head, found.target, after, f"{after}..{self.head}")]

    def _against(self, branch: str) -> CiRange:
        """Judge what a branch lacks, by its policy; the engine's claim must fit."""
        event = self.event
        ref = _REMOTE + branch
        tip = self._tip_of(branch)
        self._require_history(tip)
        if event.branch == branch and event.kind is EventKind.PROPOSAL and event.claimed is not None:
            self._require_claim(branch, tip, event.claimed)
        return CiRange(self.head, BRANCHES + branch, tip, f"{ref}..{self.shown}", ref)

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

    def _new(self, branch: str, default: str) -> CiPush:
        """Judge the first push of a branch: of the default one as a server does that has no commit."""
        if branch != default:
            self._require_history(self._tip_of(default))
            return self._push(BRANCHES + branch, default, None)
        return self._first_push(branch, f"{printable(branch)} is new: all its commits were checked")

    def _first_push(self, branch: str, note: str) -> CiPush:
        if self.repository.shallow:
            raise self._cut_off()
        return CiPush(self.head, RefUpdate(BRANCHES + branch, None, self.head), {}, None, (note,))

    def _pushed(self, branch: str, default: str, before: str) -> Sequence[CiRange | CiPush]:
        """Judge what a push brought to what the branch had before it."""
        event, ref = self.event, BRANCHES + branch
        self._require_commit(before)
        self._require_history(before)
        if is_ancestor(self.repository, before, self.head):
            whole = self._push(ref, default, before)
            if not event.is_of_build:
                return [whole]
            between = moves_between(self.objects, self.policies, before, self.head)
            further = [
                replace(self._push(ref, default, old, pushed=new), policy_from=rules)
                for old, new, rules in between.moves
            ]
            return [replace(whole, been=between.been), *further]
        tip = resolve(self.objects, _REMOTE + branch)
        is_older = event.is_of_build and is_ancestor(self.repository, self.head, before)
        if is_older and tip is not None and is_ancestor(self.repository, before, tip.oid):
            return [self._newest(branch, default, f"this is older than {before[:SHORT_OID]}: ")]
        if event.is_forced is False:
            raise UndecidedError(
                f"{event.engine} says that the push was not forced, but {before[:SHORT_OID]} "
                f"is not in the history of {self.head[:SHORT_OID]}",
                "run the pipeline again",
            )
        note = f"the push was forced: {printable(branch)} lost commits of {before[:SHORT_OID]}"
        return [self._push(ref, default, before, note)]

    def _newest(self, branch: str, default: str, why: str) -> CiRange | CiPush:
        """Judge the newest change of a branch, by the policy before it: what its first parent lacks.

        Whoever starts a run by hand may name a commit that the branch does not have: that is a proposal.
        """
        tip = resolve(self.objects, _REMOTE + branch)
        if tip is None or not is_ancestor(self.repository, self.head, tip.oid):
            note = f"{self.shown[:SHORT_OID]} is not on {printable(branch)}: compared with it"
            return replace(self._against(branch), notes=(note,))
        before = self.objects.header(self.head + "^1^{commit}")
        if before is None and branch != default:
            return self._new(branch, default)
        if before is None:
            return self._first_push(branch, f"{why}the first commit was checked")
        self._require_history(before.oid)
        note = f"{why}only the newest change of {printable(branch)} was checked"
        return self._push(BRANCHES + branch, default, before.oid, note)

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
