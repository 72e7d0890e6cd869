"""What a push brings to which refs: the commits that are new there, and the first ref that brings each.

Decides what counts as known to a ref. To a protected one that is what it has itself and what the default
branch has (where that is not known, what protected refs have): its policy has judged it, or a person let it
in, while what another ref has was judged by another policy, if by any. To any other ref it is what all refs
have, but notes, in which commits are judged as notes; at pre-push also what another remote has, which is
counted. One walk for each kind of ref that a push moves, and for each protected ref that knows others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial

from patchgate.check.ref_terms import USUAL_BRANCHES
from patchgate.git.history import Commit, count_lacking, lacking
from patchgate.git.pushes import NOTES, RefUpdate
from patchgate.git.repository import Repository
from patchgate.report.wording import count


class Kind(Enum):
    """Refs that know the same; whatever those of one kind know, those of the next ones know too."""

    PROTECTED = "protected"
    OTHER = "other"
    NOTES = "notes"


@dataclass(frozen=True, slots=True)
class Known:
    """What refs have already: commits, and options of git-rev-list that name more of them.

    `elsewhere` are such options too, for what is not there and is not judged all the same.
    """

    commits: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


class News:
    """The commits that are new to the refs of one push, and how many more are known only from elsewhere.

    Args:
        commits: the commit that each object stands for.
        is_protected: tells of a ref whether it counts as protected.
        known_to: tells what is known to a ref of a kind; asked only of refs that the push moves, and once for
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
        known_to: Callable[[Kind, str], Known],
    ) -> None:
        self._repository = repository
        self._peeled = commits
        self._new: list[tuple[Kind, dict[str, Commit]]] = []
        self._new_to: dict[str, dict[str, Commit]] = {}
        # Parents first, in this order too: no parent of what is new to a kind is new to a later one only.
        self.commits: dict[str, Commit] = {}
        self.elsewhere = 0
        for kind in Kind:
            refs: dict[Known, dict[str, list[str]]] = {}
            known_to_kind = cache(partial(known_to, kind))
            for update in updates:
                tip = commits.get(update.new or "")
                if tip and kind_of(update.ref, is_protected) is kind:
                    known = known_to_kind(update.ref if kind is Kind.PROTECTED else "")
                    refs.setdefault(known, {}).setdefault(update.ref, []).append(tip)
            for known, tips_of in refs.items():
                tips = [tip for tips in tips_of.values() for tip in tips]
                found = lacking(repository, tips, known.commits, *known.options, *known.elsewhere)
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
        """What is not judged though the other side lacks it, as a sentence."""
        if not self.elsewhere:
            return ()
        return (f"{count(self.elsewhere, 'commit')} not judged again: a remote-tracking branch has them",)

    def has(self, ref: str, commit: str) -> bool:
        """Tell whether a commit is new to a ref."""
        return commit in self._new_to.get(ref, ())

    def firsts(
        self,
        updates: Sequence[RefUpdate],
        had: Iterable[str],
        default: str | None,
        known: Sequence[str] | None,
    ) -> frozenset[str]:
        """Find the root commits that begin a history: in notes any, else one, where there is nothing yet.

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
        others = [new for kind, new in self._new if kind is not Kind.NOTES]
        notes = frozenset(each.oid for each in roots if not any(each.oid in new for new in others))
        if any(self._peeled.get(oid) for oid in had):
            return notes
        # Few pushes bring a root commit.
        from patchgate.git.roots import is_first

        firsts = {
            each.oid for each in roots if is_first(self._repository, each.oid, each.tree, known=known)
        } - notes
        ordered = sorted(updates, key=lambda each: (each.ref != default, each.ref not in USUAL_BRANCHES))
        ends = (self._end(tip) for each in ordered if (tip := self._peeled.get(each.new or "")))
        chosen = next((oid for oid in ends if oid in firsts), None)
        return notes if chosen is None else notes | {chosen}

    def _end(self, tip: str) -> str:
        """Follow the first parents of a commit as far as they are new, to the last of them."""
        while (commit := self.commits.get(tip)) is not None and commit.parents:
            tip = commit.parents[0]
        return tip

    def first_refs(self, refs: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Tell for each new commit which of these refs, each with its commit, is the first to bring it."""
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
    repository: Repository, tips: Sequence[str], new: Mapping[str, Commit], known: Known
) -> int:
    """Count the commits that are not new for the sake of `elsewhere` alone.

    Git walks from below what is new, so that it has nothing to do where that is known (the usual case).
    """
    below = {*tips, *(parent for commit in new.values() for parent in commit.parents)}
    return count_lacking(
        repository, sorted(below - new.keys() - set(known.commits)), known.commits, *known.options
    )


def kind_of(ref: str, is_protected: Callable[[str], bool]) -> Kind:
    """Tell which refs know what a ref knows. Notes are protected in vain: they never become a branch's."""
    if ref.startswith(NOTES):
        return Kind.NOTES
    return Kind.PROTECTED if is_protected(ref) else Kind.OTHER


def is_known_to(kind: Kind, ref: str, is_protected: Callable[[str], bool]) -> bool:
    """Tell whether refs of a kind count as new what only this ref has."""
    if kind is Kind.PROTECTED:
        return kind_of(ref, is_protected) is kind
    return kind is Kind.NOTES or not ref.startswith(NOTES)
