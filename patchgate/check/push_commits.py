"""The commits that a push adds to each ref, and the protected refs that get them.

What counts as known to a ref depends on its group (`RefGroup`); git walks once for each group that a push
moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from enum import Enum
from functools import cache, partial

from patchgate.check.protected_refs import RefRules
from patchgate.errors import UndecidedError
from patchgate.git.commit_lists import Commit, commits_not_in, count_commits_not_in
from patchgate.git.pushes import NOTES, TAGS, USUAL_BRANCHES, RefUpdate, Remote
from patchgate.git.quoting import in_shell
from patchgate.git.repository import Repository
from patchgate.report.rules import Level
from patchgate.report.verdict import ChangeVerdict, ProtectedRef, Report, Verdict
from patchgate.report.wording import count
from patchgate.values import dataclass, replace


class RefGroup(Enum):
    """Refs that know the same commits; each group knows all that the groups before it know.

    A protected ref knows its own commits, and those of the default branch where neither has owners or signers
    (where that branch is not known, those of protected refs): its policy has judged them, or a maintainer
    accepted them. Another ref's commits may have been judged by another policy, or by none. Any other ref
    knows the commits of all refs but notes, whose commits are judged as notes; at pre-push also those of
    another remote, which are counted.
    """

    PROTECTED = "protected"
    OTHER = "other"
    NOTES = "notes"


@dataclass(frozen=True, slots=True)
class KnownCommits:
    """The commits that refs have already: object ids, and options of git-rev-list for more.

    `elsewhere` are options for commits that the remote lacks and that are still not judged.
    """

    commits: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


class NewCommits:
    """The commits that are new to the refs of one push, and how many more only other remotes have.

    Args:
        commits: the commit of each object.
        is_protected: returns whether a ref counts as protected.
        known_to: returns what a ref of a group knows; called only for refs that the push moves, and once for
            each kind but that of the protected ones.

    Raises:
        UndecidedError: git could not list them.
    """

    def __init__(
        self,
        repository: Repository,
        updates: Sequence[RefUpdate],
        commits: Mapping[str, str | None],
        is_protected: Callable[[str], bool],
        known_to: Callable[[RefGroup, str], KnownCommits],
    ) -> None:
        self._repository = repository
        self.is_protected = is_protected
        self._peeled = commits
        self._new: list[tuple[RefGroup, dict[str, Commit]]] = []
        self._new_to: dict[str, dict[str, Commit]] = {}
        # Parents first, across kinds too: a parent of a commit is never new only to a later kind.
        self.commits: dict[str, Commit] = {}
        self.elsewhere = 0
        for kind in RefGroup:
            refs: dict[KnownCommits, dict[str, list[str]]] = {}
            known_to_kind = cache(partial(known_to, kind))
            for update in updates:
                tip = commits.get(update.new or "")
                if tip and ref_group(update.ref, is_protected) is kind:
                    known = known_to_kind(update.ref if kind is RefGroup.PROTECTED else "")
                    refs.setdefault(known, {}).setdefault(update.ref, []).append(tip)
            for known, tips_of in refs.items():
                tips = [tip for tips in tips_of.values() for tip in tips]
                found = commits_not_in(repository, tips, known.commits, *known.options, *known.elsewhere)
                new = {commit.oid: commit for commit in found}
                if known.elsewhere:
                    self.elsewhere += _count_left_out(repository, tips, new, known)
                self._new.append((kind, new))
                self._new_to |= dict.fromkeys(tips_of, new)
                for oid, commit in new.items():
                    self.commits.setdefault(oid, commit)
            if len(refs) > 1:
                self.commits = _parents_first(self.commits)

    @property
    def notes(self) -> tuple[str, ...]:
        """A note about the commits that are not judged although the remote lacks them."""
        if not self.elsewhere:
            return ()
        return (f"{count(self.elsewhere, 'commit')} not judged again: a remote-tracking branch has them",)

    def has(self, ref: str, commit: str) -> bool:
        """Return whether a commit is new to a ref."""
        return commit in self._new_to.get(ref, ())

    def firsts(
        self,
        updates: Sequence[RefUpdate],
        had: Iterable[str],
        default: str | None,
        known: Sequence[str] | None,
    ) -> frozenset[str]:
        """Find the root commits that begin a history: any in notes, else one, if the remote is empty.

        Args:
            had: the objects that refs of the other side have.
            default: the full name of its default branch.
            known: the commit whose history counts; None: the main line does.

        Raises:
            UndecidedError: git failed, or an object is missing.
        """
        roots = [commit for commit in self.commits.values() if not commit.parents]
        if not roots:
            return frozenset()
        others = [new for kind, new in self._new if kind is not RefGroup.NOTES]
        notes = frozenset(each.oid for each in roots if not any(each.oid in new for new in others))
        if any(self._peeled.get(oid) for oid in had):
            return notes
        # Few pushes bring a root commit.
        from patchgate.git.revisions import FirstCommit

        first = FirstCommit(self._repository, known=known)
        firsts = {each.oid for each in roots if first.matches(each.oid, each.tree)} - notes
        ordered = sorted(updates, key=lambda each: (each.ref != default, each.ref not in USUAL_BRANCHES))
        ends = (self._end(tip) for each in ordered if (tip := self._peeled.get(each.new or "")))
        chosen = next((oid for oid in ends if oid in firsts), None)
        return notes if chosen is None else notes | {chosen}

    def _end(self, tip: str) -> str:
        """Return the last new commit on the first-parent line of a commit."""
        while (commit := self.commits.get(tip)) is not None and commit.parents:
            tip = commit.parents[0]
        return tip

    def first_refs(self, refs: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Map each new commit to the first of these refs that brings it."""
        found: dict[str, str] = {}
        passed: dict[int, set[str]] = {}
        for ref, tip in refs:
            new = self._new_to.get(ref, {})
            seen = passed.setdefault(id(new), set())
            waiting = [tip]
            while waiting:
                oid = waiting.pop()
                if oid in new and oid not in seen:
                    seen.add(oid)
                    found.setdefault(oid, ref)
                    waiting.extend(new[oid].parents)
        return found


def _parents_first(commits: Mapping[str, Commit]) -> dict[str, Commit]:
    found: dict[str, Commit] = {}
    for oid in commits:
        waiting = [oid]
        while waiting:
            commit = commits[waiting[-1]]
            before = [each for each in commit.parents if each in commits and each not in found]
            if before:
                waiting.extend(before)
            else:
                found.setdefault(waiting.pop(), commit)
    return found


def _count_left_out(
    repository: Repository, tips: Sequence[str], new: Mapping[str, Commit], known: KnownCommits
) -> int:
    """Count the commits that are known only through `elsewhere`.

    git walks from below the new commits, so it has nothing to do in the usual case.
    """
    below = {*tips, *(parent for commit in new.values() for parent in commit.parents)}
    return count_commits_not_in(
        repository, sorted(below - new.keys() - set(known.commits)), known.commits, *known.options
    )


def ref_group(ref: str, is_protected: Callable[[str], bool]) -> RefGroup:
    """Return the group of a ref. Notes are never protected: they never become commits of a branch."""
    if ref.startswith(NOTES):
        return RefGroup.NOTES
    return RefGroup.PROTECTED if is_protected(ref) else RefGroup.OTHER


def is_known_to(kind: RefGroup, ref: str, is_protected: Callable[[str], bool]) -> bool:
    """Return whether what a ref has is known to the refs of a group."""
    if kind is RefGroup.PROTECTED:
        return ref_group(ref, is_protected) is kind
    return kind is RefGroup.NOTES or not ref.startswith(NOTES)


def protected_refs(terms: RefRules, updates: Sequence[RefUpdate]) -> tuple[ProtectedRef, ...]:
    """List the refs of a push whose changes need the approvals of owners."""
    found = []
    pending = _not_landed(terms, updates)
    for update in updates:
        tip = terms.commits.get(update.new or "")
        if tip is None or not terms.is_owned(update.ref):
            continue
        old = terms.commits.get(terms.destination.had.get(update.ref, ""))
        had = base = old or terms.default_tip
        if old is None and had is not None:
            base = terms.first_parents.nearest(tip, had)
        found.append(
            ProtectedRef(
                ref=update.ref,
                commit=had,
                policy=terms.owners_place(update.ref, had),
                repository=terms.repository_of(update.ref, had),
                tip=tip,
                base=base,
                is_new=old is None,
                is_forced=old is not None and not terms.reaches(tip, old),
                been=tuple(terms.destination.been.get(update.ref, ())),
                is_past=terms.destination.is_past,
                has_landed=old is None and update.ref.startswith(TAGS) and tip not in pending,
            )
        )
    return tuple(found)


def _not_landed(terms: RefRules, updates: Sequence[RefUpdate]) -> set[str]:
    """List the commits of protected tags that the default branch lacks; git walks once for all."""
    tags = [each for each in updates if each.ref.startswith(TAGS) and terms.is_owned(each.ref)]
    tips = [terms.commits.get(update.new or "") for update in tags]
    named = sorted({tip for tip in tips if tip is not None})
    if not named or terms.default_tip is None:
        return set(named)
    return {each.oid for each in commits_not_in(terms.repository, named, [terms.default_tip])}


def with_protected_refs(
    refs: Sequence[ProtectedRef],
    news: NewCommits,
    changes: Sequence[ChangeVerdict],
    counts_for: Sequence[Set[str]],
) -> list[ChangeVerdict]:
    """Name for each change that needs an approval every protected ref that gets it, not only the first.

    Args:
        counts_for: the refs for which each verdict counts: others have another on the same commit.
    """
    asking = [bool(change.owned) or change.verdict is Verdict.REJECTED for change in changes]
    if not any(asking):
        return list(changes)
    lands_on: dict[str, list[ProtectedRef]] = {}
    for each in refs:
        for oid in news.first_refs([(each.ref or "", each.tip or "")]):
            lands_on.setdefault(oid, []).append(each)
    return [
        replace(
            change,
            lands_on=tuple(each for each in lands_on.get(change.source.commit or "", ()) if each.ref in own),
        )
        if is_asking
        else change
        for change, is_asking, own in zip(changes, asking, counts_for, strict=True)
    ]


def with_fetch(
    repository: Repository,
    remote: Remote,
    updates: Sequence[RefUpdate],
    commits: Mapping[str, str | None],
    report: Report,
) -> Report:
    """Put `git fetch REMOTE` first in the help of refusals that it may resolve.

    Args:
        remote: where the push goes; a URL without a name has no remote-tracking refs to fetch.
        commits: the commit of each object; None if it has none, or is not here.
    """
    refused = [
        change.source.commit
        for change in report.changes
        if change.verdict is Verdict.REJECTED and change.source.commit is not None
    ]
    if not refused or not remote.is_named:
        return report
    unheard = not remote.had or any(each.old is not None and commits[each.old] is None for each in updates)
    foreign = _foreign(repository, refused) if unheard else _tracked(repository, refused)
    if not foreign:
        return report
    hint = (
        f"git fetch {in_shell(remote.name, 'REMOTE')}, then push again: what {remote.shown} has already "
        "is not judged again"
    )
    changes = (_hinted(each, hint) if each.source.commit in foreign else each for each in report.changes)
    return replace(report, changes=tuple(changes))


def _tracked(repository: Repository, commits: Sequence[str]) -> set[str]:
    """Find those of some commits that a remote-tracking ref reaches."""
    return set(commits) - {each.oid for each in commits_not_in(repository, commits, (), "--remotes")}


def _foreign(repository: Repository, commits: Sequence[str]) -> set[str]:
    """Find those of some commits that are older than the hooks, or were not made here by the reflogs."""
    # Only where something is refused.
    from patchgate.git.refs import commits_made_in, git_dirs
    from patchgate.ledger.receipts import settled

    later = {each.oid for each in commits_not_in(repository, commits, settled(repository.common_dir))}
    # For a commit that may be new, no advice is better than wrong advice.
    with suppress(UndecidedError):
        later &= {oid for folder in git_dirs(repository) for oid in commits_made_in(folder, 0)}
    return set(commits) - later


def _hinted(change: ChangeVerdict, hint: str) -> ChangeVerdict:
    findings = (
        replace(each, hint=hint) if each.level is Level.ERROR and not each.definition.invariant else each
        for each in change.findings
    )
    return replace(change, findings=tuple(findings))
