"""Judge a push: for each ref every commit that the remote lacks.

Which policy judges which commit; a commit that several refs bring is judged once for each policy.
`push_commits` decides what is new to a ref, `protected_refs` whether it may move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType

from patchgate.check.commits import CommitHistory, judge_each
from patchgate.check.commits_before_policy import allow_commits_before_policy, commits_before_policy
from patchgate.check.features import feature_functions
from patchgate.check.policy_lookup import CheckOptions, history_root
from patchgate.check.protected_refs import Destination, RefRules
from patchgate.check.push_commits import (
    KnownCommits,
    NewCommits,
    RefGroup,
    is_known_to,
    protected_refs,
    with_fetch,
    with_protected_refs,
)
from patchgate.check.push_groups import (
    JudgedAlike,
    PushGroup,
    RepeatedTooLongError,
    RepeatLimit,
    notes_on_policies,
    under,
)
from patchgate.check.ref_verdicts import judge_move, verdict_on_ref
from patchgate.git.commit_lists import AT_ONCE, Commit
from patchgate.git.history import Walk
from patchgate.git.objects import Objects
from patchgate.git.pushes import NOTES, RefUpdate, Remote, peel, refs_below
from patchgate.git.quoting import in_shell
from patchgate.git.repository import Repository
from patchgate.policy.tree_policies import Key, built_in
from patchgate.report.verdict import ChangeVerdict, ClearedCommits, RecoveryStep, Report, Verdict
from patchgate.report.wording import SHORT_OID
from patchgate.values import dataclass, replace

_MOST_APART = 1_000
"""So many times at most a merge of a push is compared with one open branch; more often with all together."""


@dataclass(frozen=True, slots=True)
class PushVerdict:
    """The report on a push, and the commits that each ref adds, parents first.

    A commit that several refs add is listed under the first.
    """

    report: Report
    brought: Mapping[str, Sequence[str]]


def judge_push_to(
    repository: Repository,
    remote: Remote,
    updates: Sequence[RefUpdate],
    asked: CheckOptions,
    *,
    moves: bool = True,
    now: float | None = None,
    symbolic: Mapping[str, str] = MappingProxyType({}),
    is_empty: bool = False,
    is_confirmed: bool = False,
) -> PushVerdict:
    """Judge a push to a remote, whose refs are known here in part.

    Args:
        remote: what is known of it.
        updates: what git reports; the commit of an existing ref counts as known.
        asked: the options, with the trusted policy if there is one.
        moves: whether the refs would really be moved so, or only their commits are to be judged.
        now: seconds since the epoch; None: this moment.
        symbolic: what is known of its symbolic refs; `updates` name what git writes.
        is_empty: whether it is known to have no commit yet.
        is_confirmed: whether it says itself what is known of its default branch.

    Raises:
        PatchgateError: it could not be read.
    """
    with Objects(repository) as objects:
        commits = _peeled(objects, updates, remote.had)
        reported = {update.ref: update.old for update in updates if update.old is not None}
        # A ref that has moved since: its old commit is known too.
        here = {ref: oid for ref, oid in reported.items() if commits[oid] is not None}
        destination = Destination(
            remote.shown,
            remote.default,
            {**reported, **remote.had, **here},
            symbolic=symbolic,
            is_empty=is_empty,
            reported=reported,
            is_confirmed=is_confirmed,
        )
        terms = RefRules(
            repository=repository, objects=objects, destination=destination, commits=commits, asked=asked
        )

        @cache
        def all_known_to(kind: RefGroup) -> KnownCommits:
            had = (oid for ref, oid in destination.had.items() if is_known_to(kind, ref, terms.is_protected))
            # Anybody can make a remote-tracking ref here, so none counts where a policy protects.
            elsewhere = () if kind is RefGroup.PROTECTED else ("--remotes",)
            return KnownCommits(tuple(commit for oid in had if (commit := commits[oid])), elsewhere=elsewhere)

        def known_to(kind: RefGroup, ref: str) -> KnownCommits:
            answered = terms.answered_for(ref) if kind is RefGroup.PROTECTED else ()
            return KnownCommits(tuple(answered)) if answered else all_known_to(kind)

        governed = {update.ref for update in updates if terms.is_governed(update)}
        push = _judge(terms, updates, governed.__contains__, known_to, now=now, moves=moves)
        push = replace(push, report=with_fetch(repository, remote, updates, commits, push.report))
    return _with_deepen_hint(repository, remote, push)


def _with_deepen_hint(repository: Repository, remote: Remote, push: PushVerdict) -> PushVerdict:
    """Add `git fetch --deepen` where a ref is undecided because this clone is shallow."""
    refs = [change for change in push.report.changes if change.source.kind == "ref"]
    if not repository.shallow or all(change.verdict is not Verdict.UNDECIDED for change in refs):
        return push
    named = " " + in_shell(remote.name, "REMOTE") if remote.is_named else ""
    way = RecoveryStep("fetch more of the history, then push again:", f"git fetch --deepen=50{named}")
    return replace(push, report=replace(push.report, recovery=(way,)))


def judge_received(
    repository: Repository,
    destination: Destination,
    updates: Sequence[RefUpdate],
    asked: CheckOptions,
    now: float | None = None,
) -> PushVerdict:
    """Judge a push as the repository does that receives it, by its own policies.

    Args:
        repository: has what is pushed, and what is there.
        destination: what is there.
        updates: what git reports.
        asked: the options, with the trusted policy if there is one.
        now: seconds since the epoch; None: this moment.

    Raises:
        PatchgateError: it could not be read.
    """
    reported = {update.ref: update.old for update in updates if update.old is not None}
    destination = replace(destination, had={**destination.had, **reported})
    with Objects(repository) as objects:
        commits = _peeled(objects, updates, destination.had)
        terms = RefRules(
            repository=repository, objects=objects, destination=destination, commits=commits, asked=asked
        )

        @cache
        def protected() -> KnownCommits:
            here = refs_below(repository)
            oids = [
                oid for ref, oid in here.items() if is_known_to(RefGroup.PROTECTED, ref, terms.is_protected)
            ]
            return KnownCommits(
                tuple(commit for commit in peel(objects, oids).values() if commit is not None)
            )

        def known_to(kind: RefGroup, ref: str) -> KnownCommits:
            if kind is not RefGroup.PROTECTED:
                return KnownCommits(
                    options=("--all",) if kind is RefGroup.NOTES else (f"--exclude={NOTES}*", "--all")
                )
            answered = terms.answered_for(ref)
            return KnownCommits(tuple(answered)) if answered or terms.is_beginning else protected()

        return _judge(terms, updates, terms.is_owned, known_to, now=now, moves=True)


def _judge(
    terms: RefRules,
    updates: Sequence[RefUpdate],
    is_protected: Callable[[str], bool],
    known_to: Callable[[RefGroup, str], KnownCommits],
    *,
    now: float | None,
    moves: bool,
) -> PushVerdict:
    """Judge the new commits of a push; `known_to` names what a ref's repository has already."""
    news = NewCommits(
        repository=terms.repository,
        updates=updates,
        commits=terms.commits,
        is_protected=is_protected,
        known_to=known_to,
    )
    check = _PushCheck(
        objects=terms.objects,
        destination=terms.destination,
        commits=terms.commits,
        asked=terms.asked,
        terms=terms,
        news=news,
        now=now,
    )
    return check.judge(updates, moves=moves)


def _peeled(objects: Objects, updates: Sequence[RefUpdate], had: Mapping[str, str]) -> dict[str, str | None]:
    oids = [oid for update in updates for oid in (update.old, update.new) if oid is not None]
    return peel(objects, [*oids, *had.values()])


class _PushCheck:
    """Judges one push."""

    def __init__(
        self,
        objects: Objects,
        destination: Destination,
        commits: Mapping[str, str | None],
        asked: CheckOptions,
        terms: RefRules,
        news: NewCommits,
        now: float | None,
    ) -> None:
        self._repository = objects.repository
        self._objects = objects
        self._destination = destination
        self._commits = commits
        self._asked = asked
        self._terms = terms
        self._news = news
        self._now = now
        self._signer_trees: dict[str, str] = {}

    def judge(self, updates: Sequence[RefUpdate], *, moves: bool) -> PushVerdict:
        """Judge the refs, then the commits that are new to them."""
        fresh, shallow = self._news.commits, self._repository.shallow
        groups = self._groups(updates)
        first = self._news.first_refs([each for group in groups for each in group.refs])
        cut = {first[oid]: oid for oid in fresh if oid in shallow}
        changes = [each for update in updates if (each := self._of_ref(update, cut, moves=moves))]
        warnings = dict.fromkeys(self._news.notes)
        past = commits_before_policy(self._repository, self._terms, self._news, self._commits, updates)
        whole = [
            replace(commit, is_past=True) if commit.oid in past.commits else commit
            for commit in fresh.values()
            if commit.oid not in shallow
        ]
        try:
            found, counts_for, cleared = self._judge_groups(groups, whole, updates, warnings)
        except RepeatedTooLongError:
            # Compare merges with all open branches at once then; protected branches stay apart.
            groups = self._groups(updates, together=True)
            found, counts_for, cleared = self._judge_groups(groups, whole, updates, warnings)
        counts_for = [set[str]() for _ in changes] + counts_for
        changes += found
        changes, notes = allow_commits_before_policy(past, changes)
        warnings |= dict.fromkeys(notes)
        protected = protected_refs(self._terms, updates)
        changes = with_protected_refs(protected, self._news, changes, counts_for)
        tips = {update.ref: self._commits.get(update.new or "") for update in updates}
        judged = list(zip(changes, counts_for, strict=True))

        def judged_for(ref: str) -> list[ChangeVerdict]:
            new = self._news.first_refs([(ref, tip)] if (tip := tips.get(ref)) else [])
            return [each for each, refs in judged if ref in refs and each.source.commit in new]

        for _, with_push in feature_functions("with_push"):
            changes = with_push(
                self._objects, self._terms, self._commits, updates, changes, judged_for, self._now
            )
        brought: dict[str, list[str]] = {}
        for oid in fresh:
            brought.setdefault(first[oid], []).append(oid)
        report = Report(tuple(changes), tuple(warnings), lands_on=protected, cleared=cleared)
        return PushVerdict(report, brought)

    def _judge_groups(
        self,
        groups: Sequence[PushGroup],
        commits: Sequence[Commit],
        updates: Sequence[RefUpdate],
        warnings: dict[str, None],
    ) -> tuple[list[ChangeVerdict], list[set[str]], ClearedCommits | None]:
        """Judge the new commits of each group; return the verdicts, the refs for which each counts, and the
        commits without a verdict.
        """
        if len(groups) == 1 and self._asked.in_bulk:
            return self._judge_in_bulk(groups[0], commits, updates, warnings)
        alike = JudgedAlike(self._terms, self._news.commits)
        known = history_root(self._objects, self._asked)
        firsts = self._news.firsts(updates, self._destination.had.values(), self._destination.default, known)
        judged: list[tuple[ChangeVerdict, PushGroup]] = []
        limit = RepeatLimit()
        # One walk: git repeats each merge once, however many branches get it.
        with Walk(self._repository, commits if groups else ()) as walk:
            for group in groups:
                ref_of = self._news.first_refs(group.refs)
                chosen = [each for each in commits if each.oid in ref_of and not alike.has(each, group)]
                if not chosen:
                    continue
                asked = self._asked_for(group, firsts)
                found = [
                    under(each, ref_of[each.source.commit or ""], group.place)
                    for each in limit.watched(judge_each(walk, chosen, asked))
                ]
                if group.place is None:
                    found = [self._with_signers(each) for each in found]
                if len(groups) > 1:
                    alike.add(found, group)
                notes = notes_on_policies(group, self._terms, found)
                warnings |= dict.fromkeys([*self._repository.limits, *notes])
                judged += [(each, group) for each in found]
        counts_for = [alike.refs_of(change.source.commit or "", group) for change, group in judged]
        return [change for change, _ in judged], counts_for, None

    def _judge_in_bulk(
        self,
        group: PushGroup,
        commits: Sequence[Commit],
        updates: Sequence[RefUpdate],
        warnings: dict[str, None],
    ) -> tuple[list[ChangeVerdict], list[set[str]], ClearedCommits | None]:
        """Judge the new commits of the only group, the boring ones in bulk."""
        # Every commit of a push has one policy then, and is judged once.
        from patchgate.check.bulk_check import BulkCheck, count, count_on, may_clear
        from patchgate.check.range_memory import RangeMemory

        known = history_root(self._objects, self._asked)
        firsts = self._news.firsts(updates, self._destination.had.values(), self._destination.default, known)
        asked = self._asked_for(group, firsts)
        ref_of = self._news.first_refs(group.refs)
        chosen = [each for each in commits if each.oid in ref_of]
        bulk = BulkCheck(self._repository, asked, ref_of)
        ends = [tip for _, tip in group.refs] + [*group.branches, group.place, group.fallback]
        is_possible = bulk.is_possible and may_clear(
            self._objects, [each for each in ends if each is not None]
        )
        words = [*(word for pair in group.refs for word in pair), *(each.oid for each in chosen)]
        memory = RangeMemory(self._repository, asked, words)
        memory.look_at(chosen)
        is_usable = is_possible and not any(each.is_past for each in chosen)
        if is_usable and (remembered := memory.load()) is not None:
            notes = notes_on_policies(group, self._terms, (), remembered.digests)
            warnings |= dict.fromkeys([*self._repository.limits, *notes])
            return [], [], remembered.cleared
        found: list[ChangeVerdict] = []
        for start in range(0, len(chosen), AT_ONCE):
            some = chosen[start : start + AT_ONCE]
            with Walk(self._repository, some) as walk:
                history = CommitHistory(walk, asked)
                rest: Sequence[Commit] = some
                if is_possible:
                    rest = bulk.rest(walk, history, some, partial(count, asked, start, len(chosen)))
                counting = count_on(asked, start + len(some) - len(rest), len(chosen))
                judged = judge_each(walk, rest, counting, history)
                found += [under(each, ref_of[each.source.commit or ""], group.place) for each in judged]
            count(asked, start, len(chosen), len(some))
        if group.place is None:
            found = [self._with_signers(each) for each in found]
        if is_usable:
            memory.store(found, bulk.cleared, bulk.digests)
        notes = notes_on_policies(group, self._terms, found, bulk.digests)
        warnings |= dict.fromkeys([*self._repository.limits, *notes])
        return found, [set(group.names) for _ in found], bulk.cleared

    def _asked_for(self, group: PushGroup, firsts: frozenset[str]) -> CheckOptions:
        asked = replace(self._asked, branches=tuple(group.branches), firsts=firsts)
        policy = built_in() if group.is_notes else self._asked.policy
        return replace(asked, policy_from=group.place, fallback=group.fallback, policy=policy)

    def _groups(self, updates: Sequence[RefUpdate], *, together: bool = False) -> list[PushGroup]:
        """Group the refs with new commits by the policy that judges them; those without one come last."""
        groups: dict[tuple[Key | None, str | None, str | None, str, bool], PushGroup] = {}
        merges = sum(len(commit.parents) > 1 for commit in self._news.commits.values())
        are_apart = not together and 0 < merges * len(updates) <= _MOST_APART
        for update in updates:
            tip = self._commits.get(update.new or "")
            if tip is None or not self._news.has(update.ref, tip):
                continue
            place = self._terms.judged_by(update)
            key = signers = fallback = None
            is_notes = update.ref.startswith(NOTES)
            if place is not None:
                # Where policies are alike, who may approve can still be another.
                key, signers = self._terms.key_of(place), self._terms.signers_of(place)
            elif not is_notes:
                fallback = self._terms.default_tip
            had = self._commits.get(self._destination.had.get(update.ref, "")) or self._terms.default_tip
            # What a merge brings is compared with what its branch has; of many open ones, with what each has.
            # Also where no policy judges, but the built-in rules.
            is_compared = self._news.is_protected(update.ref) and (had or place) is not None
            alone = update.ref if is_compared else ""
            if not alone and place is not None and are_apart:
                alone = had or ""
            group = groups.setdefault(
                (key, signers, fallback, alone, is_notes),
                PushGroup(place=place, key=key, signers=signers, fallback=fallback, is_notes=is_notes),
            )
            group.refs.append((update.ref, tip))
            if place is not None or is_compared:
                group.branches.extend(oid for oid in (had or place,) if oid is not None)
        return sorted(groups.values(), key=lambda group: group.place is None)

    def _with_signers(self, change: ChangeVerdict) -> ChangeVerdict:
        """Find the tree whose signers count for a change that its parent's policy refuses.

        That is the nearest commit on its line of first parents that this push does not bring, or else the
        default branch's; where neither is known, the empty tree, which names none.
        """
        is_asked = change.verdict is not Verdict.ACCEPTED or bool(change.owned)
        if not is_asked or change.policy.tree is not None:
            return change
        passed = []
        oid = change.source.commit or ""
        while oid in self._news.commits and oid not in self._signer_trees:
            passed.append(oid)
            oid = next(iter(self._news.commits[oid].parents), "")
        tree = self._signer_trees.get(oid)
        if tree is None:
            revision = oid or self._terms.default_tip
            header = self._objects.header(revision + "^{tree}") if revision else None
            tree = header.oid if header is not None else self._objects.empty_tree
        self._signer_trees |= dict.fromkeys(passed, tree)
        return replace(change, policy=replace(change.policy, tree=tree))

    def _of_ref(self, update: RefUpdate, cut: Mapping[str, str], *, moves: bool) -> ChangeVerdict | None:
        reason = None
        if update.ref in cut:
            reason = f"the parents of {cut[update.ref][:SHORT_OID]} are cut off: this clone is shallow"
        if moves:
            return judge_move(self._terms, update, reason)
        return verdict_on_ref(self._terms, update, reason) if reason else None
