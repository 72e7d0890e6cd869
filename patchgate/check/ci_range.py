"""Find in git what a CI engine builds: the commits to judge, and the revision whose policy judges them.

A base is `refs/remotes/origin/NAME`, read by its full name, so no tag or branch can take its place. What
the engine claims is compared with what is here; what is missing is undecided, with the `git fetch` for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from patchgate.check.ci_clone import REMOTE, CiClone
from patchgate.check.ci_event import CiEvent, EventKind
from patchgate.check.ci_moves import MovesBetween, moves_between
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.pushes import BRANCHES, TAGS, RefUpdate, is_ancestor
from patchgate.git.quoting import in_shell, printable
from patchgate.git.repository import Repository
from patchgate.git.revisions import resolve
from patchgate.policy.glob_matching import matches_ref
from patchgate.policy.tree_policies import TreePolicies
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace


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
    `policy_from` is whose policy judges, if not what the ref had. `named` is the commit with the policy that
    judges, for who approves. `is_kept` is whether more than the policy of what it had protects the ref.
    `notes` are sentences for the report.
    """

    head: str
    update: RefUpdate
    had: Mapping[str, str]
    default: str | None
    notes: tuple[str, ...] = ()
    policy_from: str | None = None
    been: Sequence[str] = ()
    is_kept: bool = True
    named: str | None = None

    @property
    def base(self) -> str | None:
        """What the ref had, or else the default branch."""
        return self.update.old or self.had.get(self.default or "")


def _by_itself(found: CiRange | CiPush) -> CiRange | CiPush:
    return replace(found, is_kept=False) if isinstance(found, CiPush) else found


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
        found = [*finder.find(), *finder.find_others()]
        return tuple(finder.with_default(each) if isinstance(each, CiRange) else each for each in found)


@dataclass(slots=True)
class _Finder(CiClone):
    def find(self) -> Sequence[CiRange | CiPush]:
        event = self.event
        self.require_working_tree()
        self.require_own_files()
        self.require_origin_of_base()
        self.require_default()
        self.find_head()
        if event.kind is EventKind.PROPOSAL and not event.is_open:
            return self._proposed(event.branch or "")
        self.require_queue()
        default = event.default or self.default_of_origin()
        if event.kind is EventKind.TAG:
            return self._tagged(event.tag, default)
        if event.kind is EventKind.CLONE or event.branch is None:
            # What the default branch has already may have been pushed just now.
            why = "no engine is known: " if event.engine == "git" else f"{event.engine} names no branch: "
            return self._newest(default, default, why)
        ref = BRANCHES + event.branch
        is_protected = event.is_protected or event.branch == default or self.is_listed(ref, default)
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

    def find_others(self) -> Iterator[CiRange | CiPush]:
        """Yield the newest change for other protected branches that have the commit, where one is named."""
        event = self.event
        if not event.is_first_of_several:
            return
        default = event.default or self.default_of_origin()
        listed = self.protected_refs(self.tip_of(default)) or ()
        for branch in self.branches_with_head():
            is_protected = branch == default or matches_ref(listed, BRANCHES + branch)
            if branch != event.branch and (is_protected or self._lists_itself(branch)):
                why = f"{event.engine} names one of the branches that have this commit: "
                yield from self._newest(branch, default, why)

    def _unnamed(self, branch: str, default: str, why: str) -> Sequence[CiRange | CiPush]:
        """Judge the newest change where it is not known what was pushed; and where only a list protects the
        branch, what the default branch lacks, as if the branch were new.
        """
        newest = self._newest(branch, default, why)
        is_known = self.event.is_protected or branch == default
        return newest if is_known else [*newest, self._new(branch, default)]

    def _proposed_openly(self, ref: str, default: str) -> Sequence[CiRange | CiPush]:
        """Judge what is proposed for a branch that nobody protects, or only its own policy, for that too.

        The result counts for the head, which may be proposed for another branch afterwards.
        """
        branch = ref.removeprefix(BRANCHES)
        note = f"{printable(branch)} is not protected: compared with {printable(default)}"
        against = self._against(default)
        found: list[CiRange | CiPush] = [replace(against, notes=(note,)), *self._parts(against)]
        head = self.event.includes
        if head is not None and head != self.head:
            # What is built may be its merge with that branch.
            self.require_commit(head)
            found.append(CiRange(head, against.target, against.policy_from, f"{REMOTE}{default}..{head}"))
        tip = resolve(self.objects, REMOTE + branch)
        lists_itself = tip is not None and self.lists(tip.oid, ref)
        return [*found, *(self._proposed(branch) if lists_itself else ())]

    def _pushed_openly(self, ref: str, default: str) -> Sequence[CiRange | CiPush]:
        """Judge a push of such a branch as what may be proposed for the default one, and as a push."""
        first, *others = self._proposed(default)
        found, had = [replace(first, notes=self._unknown()), *others], self.event.claimed
        branch = ref.removeprefix(BRANCHES)
        if had is not None:
            is_asked = self.lists(had, ref) or self.has_fault(default)
            return [*found, *map(_by_itself, self._pushed(branch, default, had) if is_asked else ())]
        if self.event.is_new:
            return [*found, self._new(branch, default)] if self.would_list_itself(ref, default) else found
        if not self._lists_itself(branch):
            return found
        return [*found, *self._newest(branch, default, f"{self.event.engine} names no push: ")]

    def _lists_itself(self, branch: str) -> bool:
        """Return whether the policy of a branch lists it, or did: a push may have taken that away."""
        named = [resolve(self.objects, each) for each in (REMOTE + branch, f"{self.head}^1")]
        return any(each is not None and self.lists(each.oid, BRANCHES + branch) for each in named)

    def _tagged(self, tag: str | None, default: str) -> Sequence[CiRange | CiPush]:
        """Judge a tag: a listed one as it moves, another one as what is proposed for the default branch."""
        found, old = self._against(default), self.event.claimed
        moved: list[CiRange | CiPush] = []
        is_listed = tag is not None and self.is_listed(TAGS + tag, default)
        is_asked = is_listed or self.has_fault(default)
        if tag is not None and (is_asked or self.lists(old, TAGS + tag)):
            if old is not None:
                self.require_commit(old)
            moved.append(self._push(TAGS + tag, default, old, pushed=self._tag_object(tag, old)))
            if is_listed:
                return moved
        listed = self.protected_refs(found.policy_from) or ()
        is_merged = not listed or not any(
            matches_ref(listed, BRANCHES + name) for name in self.branches_with_head()
        )
        whole = replace(found, is_merged=is_merged, notes=self._unknown())
        return [whole, *self._parts(found), *moved]

    def _unknown(self) -> tuple[str, ...]:
        """Say where it is not known whether what a ref had protects it: a forced push took that away."""
        had = self.event.claimed
        if had is None or self.policy_of(had) is not None:
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
                self.require_commit(named, f"git fetch origin {in_shell(TAGS + tag, 'REF')}")
        return self.head

    def _push(
        self, ref: str, default: str, old: str | None, *notes: str, pushed: str | None = None
    ) -> CiPush:
        """Judge the move of a protected ref from what it had."""
        name = BRANCHES + default
        had = {} if old is None else {ref: old}
        if name != ref:
            had[name] = self.tip_of(default)
        places = (had.get(name), old) if ref.startswith(TAGS) else (old, had.get(name))
        known = (each for each in places if each is not None and not self.has_no_policy(each))
        place = next(known, had.get(name))
        return CiPush(
            self.head, RefUpdate(ref, old, pushed or self.head), had, name, notes, named=place or old
        )

    def with_default(self, found: CiRange) -> CiRange:
        """Name the default branch, whose policy judges what is proposed for a branch without one."""
        branch = found.policy_from
        # A conflict is joined as any default branch may ask.
        with suppress(UndecidedError):
            name = self.event.default or self.default_of_origin()
            found = replace(found, default=self.tip_of(name))
        if not self.has_no_policy(branch):
            return found
        default = self.event.default or self.default_of_origin()
        ref = REMOTE + default
        if found.target == BRANCHES + default:
            return found
        tip = self.tip_of(default)
        if self.has_no_policy(tip):
            return found
        return replace(found, policy_from=tip, policy_name=ref, branch=branch)

    def _proposed(self, branch: str) -> list[CiRange | CiPush]:
        """Judge what is proposed for a branch; an entry of a merge queue also as it comes after another.

        What is built may be a merge with what the branch had before. The host makes another one, of the head.
        """
        found, after = self._against(branch), self.event.claimed
        parts = self._parts(found)
        if self.event.is_queued and after is not None and after != found.policy_from:
            return [found, CiRange(self.head, found.target, after, f"{after}..{self.head}"), *parts]
        if self.event.is_queued or is_ancestor(self.repository, found.policy_from, self.head):
            return [found, *parts]
        head = self.event.includes or self._merged_head(found.policy_from)
        if head is None or head == self.head:
            return [found]
        return [found, CiRange(head, found.target, found.policy_from, f"{REMOTE}{branch}..{head}")]

    def _parts(self, found: CiRange) -> list[CiPush]:
        """Judge what comes beside or after a proposed change of the rules as a push onto it.

        The change of the rules may land first. The host may then treat the rest as up to date.
        """
        before, head = found.policy_from, found.head
        if not is_ancestor(self.repository, before, head):
            return []
        between = moves_between(self.objects, self.policies, before, head, is_proposed=True)
        if not between.changing:
            return []
        default = self.event.default or found.target.removeprefix(BRANCHES)
        with suppress(UndecidedError):
            default = self.event.default or self.default_of_origin()
        self.require_same_repository(before, default, between.changing)
        first, *others = self._moves(found.target, default, before, between, been=[before])
        changing = between.changing[0]
        note = (
            f"{changing[:SHORT_OID]} changes the rules and may land first, so what comes with it was also "
            "judged by the new ones: where that is refused, land that first, or approve it with "
            f"--for {in_shell(found.target, 'REF')} --policy-from {changing}, too"
        )
        return [replace(first, notes=(note,)), *others]

    def _moves(
        self, ref: str, default: str, before: str, between: MovesBetween, been: Sequence[str] = ()
    ) -> list[CiPush]:
        """Judge a ref as it may have moved after a commit; `been` are commits that it had at each move."""
        after = [
            replace(self._push(ref, default, each), been=(*been, *between.changing[number:]))
            for number, each in enumerate(between.changing, 1)
        ]
        joined = [
            replace(push, policy_from=rules, been=(before, *between.changing))
            for old, new, rules in between.joined
            for push in [self._push(ref, default, old, pushed=new)]
        ]
        return [*after, *joined]

    def _merged_head(self, base: str) -> str | None:
        """Name the commit that HEAD merges with a commit of the base, where the engine names no head.

        Either parent may be it. The merge may be the engine's or the author's: nothing here tells which, as
        the author chooses which branches have it.
        """
        named = [resolve(self.objects, f"{self.head}^{number}") for number in (1, 2)]
        parents = [each.oid for each in named if each is not None]
        heads = [each for each in parents if not is_ancestor(self.repository, each, base)]
        return heads[0] if (len(parents), len(heads)) == (2, 1) else None

    def _against(self, branch: str) -> CiRange:
        """Judge what a branch lacks, by its policy; the engine's claim must fit."""
        event = self.event
        ref = REMOTE + branch
        tip = self.tip_of(branch)
        self.require_history(tip)
        self.require_no_entry(tip)
        if event.branch == branch and event.kind is EventKind.PROPOSAL:
            if event.claimed is not None:
                self.require_claim(branch, tip, event.claimed)
            self.require_proposal(branch, tip)
        return CiRange(self.head, BRANCHES + branch, tip, f"{ref}..{self.shown}", ref)

    def _new(self, branch: str, default: str) -> CiPush:
        """Judge the first push of a branch: of the default one as a server does that has no commit."""
        if branch != default:
            self.require_history(self.tip_of(default))
            return self._push(BRANCHES + branch, default, None)
        return self._first_push(branch, f"{printable(branch)} is new: all its commits were checked")

    def _first_push(self, branch: str, note: str) -> CiPush:
        if self.repository.shallow:
            raise self.cut_off()
        return CiPush(self.head, RefUpdate(BRANCHES + branch, None, self.head), {}, None, (note,))

    def _pushed(self, branch: str, default: str, before: str) -> Sequence[CiRange | CiPush]:
        """Judge what a push brought to what the branch had before it."""
        event, ref = self.event, BRANCHES + branch
        self.require_commit(before)
        self.require_history(before)
        tip = resolve(self.objects, REMOTE + branch)
        if event.is_of_build and tip is not None and not is_ancestor(self.repository, self.head, tip.oid):
            # A plugin may have made this merge, and names the branch that it has merged with.
            return self._newest(branch, default, "")
        if is_ancestor(self.repository, before, self.head):
            whole = self._push(ref, default, before)
            if not event.is_of_build:
                return [whole]
            between = moves_between(self.objects, self.policies, before, self.head)
            whole = replace(whole, been=(*between.changing, *between.learned))
            return [whole, *self._moves(ref, default, before, between)]
        is_older = event.is_of_build and is_ancestor(self.repository, self.head, before)
        if is_older and tip is not None and is_ancestor(self.repository, before, tip.oid):
            return self._newest(branch, default, f"this is older than {before[:SHORT_OID]}: ")
        if event.is_forced is False:
            raise UndecidedError(
                f"{event.engine} says that the push was not forced, but {before[:SHORT_OID]} "
                f"is not in the history of {self.head[:SHORT_OID]}",
                "run the pipeline again",
            )
        note = f"the push was forced: {printable(branch)} lost commits of {before[:SHORT_OID]}"
        return [self._push(ref, default, before, note)]

    def _newest(self, branch: str, default: str, why: str) -> Sequence[CiRange | CiPush]:
        """Judge the newest change of a branch, by the policy before it: what its first parent lacks.

        Whoever starts a run by hand may name a commit that the branch does not have: that is a proposal.
        """
        tip = resolve(self.objects, REMOTE + branch)
        if tip is None or not is_ancestor(self.repository, self.head, tip.oid):
            note = f"{self.shown[:SHORT_OID]} is not on {printable(branch)}: compared with it"
            found, *others = self._proposed(branch)
            return [replace(found, notes=(note,)), *others]
        before = self.objects.header(self.head + "^1^{commit}")
        if before is None and branch != default:
            return [self._new(branch, default)]
        if before is None:
            return [self._first_push(branch, f"{why}the first commit was checked")]
        self.require_history(before.oid)
        note = f"{why}only the newest change of {printable(branch)} was checked"
        return [self._push(BRANCHES + branch, default, before.oid, note)]
