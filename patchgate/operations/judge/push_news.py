"""What a push brings to which refs: the commits that are new there, and the first ref that brings each.

Decides what counts as known to a ref. To a protected one that is what it has itself and what the default
branch has (where that is not known, what protected refs have): its policy has judged it, or a person let it
in, while what another ref has was judged by another policy, if by any. To any other ref it is what all refs
have, but notes, in which commits are judged as notes; at pre-push also what another remote has, which is
counted. One walk for each kind of ref that a push moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from patchgate.git.history import Commit, count_lacking, lacking
from patchgate.git.pushes import NOTES, RefUpdate
from patchgate.git.repository import Repository
from patchgate.operations.judge.ref_terms import USUAL_BRANCHES
from patchgate.verdict.wording import count


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

    commits: Sequence[str] = ()
    options: Sequence[str] = ()
    elsewhere: Sequence[str] = ()


class News:
    """The commits that are new to the refs of one push, and how many more are known only from elsewhere.

    Args:
        commits: the commit that each object stands for.
        is_protected: tells of a ref whether it counts as protected.
        known_to: tells what refs of a kind have; asked only of kinds that the push moves.

    Raises:
        UndecidedError: git could not list them.
    """

    def __init__(
        self,
        repository: Repository,
        updates: Sequence[RefUpdate],
        commits: Mapping[str, str | None],
        is_protected: Callable[[str], bool],
        known_to: Callable[[Kind], Known],
    ) -> None:
        self._repository = repository
        self._peeled = commits
        self._is_protected = is_protected
        self._new: dict[Kind, dict[str, Commit]] = {kind: {} for kind in Kind}
        # Parents first, in this order too: no parent of what is new to a kind is new to a later one only.
        self.commits: dict[str, Commit] = {}
        self.elsewhere = 0
        for kind, new in self._new.items():
            tips = [
                tip
                for update in updates
                if (tip := commits.get(update.new or "")) and kind_of(update.ref, is_protected) is kind
            ]
            if tips:
                known = known_to(kind)
                found = lacking(repository, tips, known.commits, *known.options, *known.elsewhere)
                new.update((commit.oid, commit) for commit in found)
                if known.elsewhere:
                    self.elsewhere += _count_left_out(repository, tips, new, known)
            for oid, commit in new.items():
                self.commits.setdefault(oid, commit)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not judged though the other side lacks it, as a sentence."""
        if not self.elsewhere:
            return ()
        return (f"{count(self.elsewhere, 'commit')} not judged again: a remote-tracking branch has them",)

    def has(self, ref: str, commit: str) -> bool:
        """Tell whether a commit is new to a ref."""
        return commit in self._new[kind_of(ref, self._is_protected)]

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
        others = [new for kind, new in self._new.items() if kind is not Kind.NOTES]
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
        passed: dict[Kind, set[str]] = {kind: set() for kind in Kind}
        for ref, tip in refs:
            kind = kind_of(ref, self._is_protected)
            new, seen = self._new[kind], passed[kind]
            waiting = [tip]
            while waiting:
                oid = waiting.pop()
                if oid in new and oid not in seen:
                    seen.add(oid)
                    found.setdefault(oid, ref)
                    waiting.extend(new[oid].parents)
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
