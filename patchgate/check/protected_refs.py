"""Which refs of a remote are protected, and whose policy judges what they get.

Protected are `[push] protected_refs` of the remote's policy, or else its default branch. Anybody can write
the refs of this clone that name that branch, but what git reports of a ref comes from the remote. Where
that commit has a policy, only it counts as known to the ref.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from patchgate.check.judging_policy import BUILT_IN
from patchgate.check.policy_lookup import CheckOptions
from patchgate.check.repository_ids import repository_id
from patchgate.errors import ConfigError
from patchgate.git.objects import Objects
from patchgate.git.pushes import (
    BRANCHES,
    NOTES,
    TAGS,
    USUAL_BRANCHES,
    FirstParentLines,
    RefUpdate,
    is_ancestor,
)
from patchgate.git.quoting import printable
from patchgate.git.refs import missing_targets
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import ALLOWED_SIGNERS
from patchgate.policy.glob_matching import matches_ref
from patchgate.policy.policy import Decision, Policy
from patchgate.policy.tree_policies import FoundPolicy, Key, TreePolicies, built_in
from patchgate.values import dataclass, field

_SHARED_BRANCHES = tuple(
    BRANCHES + name
    for name in (
        *("main", "master", "trunk", "mainline", "default", "develop", "development", "dev", "next"),
        *("stable", "staging", "production", "prod", "release", "release/*", "releases/*", "stable/*"),
    )
)


@dataclass(frozen=True, slots=True)
class Destination:
    """The remote that a push goes to, and what is known of it here.

    `name` is safe for messages; `default` is the full name of the default branch, None if it is not known;
    `had` maps refs to the objects that they have there. `judges_all` is true on a server, where the policy
    that is there judges every ref, not only the protected ones. `symbolic` maps symbolic refs to the refs
    that git writes for them. `is_empty` is true if it is known that no ref there reaches a commit.
    `reported` maps the refs of a push to what git says that they have there. `is_confirmed` is true if the
    remote itself names the default branch and its commit. `protects` are refs that its host protects. `been`
    maps refs, of which not each move is known, to commits that they may have had after what they had.
    `is_past` is true if this is how it was before the push, which has landed by now.
    """

    name: str
    default: str | None
    had: Mapping[str, str]
    judges_all: bool = False
    symbolic: Mapping[str, str] = field(default_factory=dict)
    is_empty: bool = False
    reported: Mapping[str, str] = field(default_factory=dict)
    is_confirmed: bool = False
    protects: Set[str] = frozenset()
    been: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_past: bool = False


@dataclass(frozen=True, slots=True)
class GoverningPolicy:
    """The policy that names the protected refs, its place, and its error."""

    policy: Policy
    place: str
    fault: ConfigError | None = None


class RefRules:
    """Whether the refs of one remote are protected, and whose policy judges them.

    Args:
        commits: the commit of each object; None if it has none, or is not here.
        asked: the options, with the trusted policy if there is one.
    """

    def __init__(
        self,
        repository: Repository,
        objects: Objects,
        destination: Destination,
        commits: Mapping[str, str | None],
        asked: CheckOptions,
    ) -> None:
        self.repository = repository
        self.objects = objects
        self.destination = destination
        self.commits = commits
        self.asked = asked
        self.policies = TreePolicies(objects)
        self._defaults = _default_refs(destination)
        self._aliases: dict[str, list[str]] = {}
        for alias, target in destination.symbolic.items():
            self._aliases.setdefault(target, []).append(alias)
        self.governing = self._find_governing()
        listed = self.governing.policy.config.push.protected_refs if destination.judges_all else None
        for alias, target in missing_targets(repository, listed or (), destination.symbolic).items():
            self._aliases.setdefault(target, []).append(alias)
        self._repositories: dict[tuple[str | None, ...], str | None] = {}
        self._ancestry: dict[tuple[str, str], bool] = {}
        self.first_parents = FirstParentLines(repository, commits.values(), self.default_tip)

    @property
    def default_policy(self) -> Policy | None:
        """The policy of the remote's default branch, if it is known and can be read."""
        return self._at(self.default_tip).policy

    @property
    def name(self) -> str:
        """The remote's name, for messages."""
        return self.destination.name

    def is_protected(self, ref: str) -> bool:
        """Return whether a ref of the remote is protected, also by its own policy."""
        return self._protection(ref) is not None or self._names_itself(ref, USUAL_BRANCHES)

    def is_owned(self, ref: str) -> bool:
        """Return whether a ref has owners: the default branch and the trusted ref have them, too."""
        if ref.startswith(NOTES):
            return False
        lists = self.destination.judges_all and self._lists(self.destination.had.get(ref), ref)
        names = {ref, *self._aliases.get(ref, ())}
        # Where a server has no default branch, or an unreadable policy, each branch may have owners.
        may_have = self.governing.fault is not None or (ref.startswith(BRANCHES) and self.is_beginning)
        named = bool(names & {*self._defaults, self.asked.policy_name})
        return lists or named or may_have or self.is_protected(ref)

    def _lists(self, oid: str | None, ref: str, unlisted: Sequence[str] = USUAL_BRANCHES) -> bool:
        """Return whether the policy of an object protects a ref; without a list it protects `unlisted`."""
        if ref.startswith(NOTES):
            # One among the notes does not count.
            return False
        found = self._at(self.commits.get(oid or ""))
        named = found.policy.config.push.protected_refs if found.policy is not None else None
        listed = () if found.is_absent else unlisted if named is None else named
        is_listed = any(matches_ref(listed, name) for name in (ref, *self._aliases.get(ref, ())))
        # On a server, a policy that cannot be read may protect it.
        return is_listed or (found.fault is not None and self.destination.judges_all)

    @property
    def is_beginning(self) -> bool:
        """Whether this is a server without a default branch."""
        return self.destination.judges_all and self.default_tip is None

    def has_owners(self, revision: str) -> bool:
        """Return whether the policy of a revision names owners, or may, because it cannot be read."""
        found = self._at(revision)
        return found.fault is not None or (found.policy is not None and bool(found.policy.config.owners))

    def _protection(self, ref: str) -> Decision | bool | None:
        """Find what protects a ref, by any name: an entry of the config, or (True) a default branch."""
        names = [ref, *self._aliases.get(ref, ())]
        listed = self.governing.policy.config.push.protected_refs
        for number, pattern in enumerate(listed or ()):
            if any(matches_ref([pattern], name) for name in names):
                return Decision(("push", "protected_refs", number), pattern)
        kept = {*self.destination.protects, *(self._defaults if listed is None else ())}
        is_usual = listed is None and not {*USUAL_BRANCHES}.isdisjoint(names)
        is_usual = is_usual and (self._names_itself(ref, USUAL_BRANCHES) or self._would_name_itself(ref))
        return True if is_usual or not kept.isdisjoint(names) else None

    def protection_of(self, update: RefUpdate) -> Decision | bool | None:
        """Find what keeps a ref from being deleted or forced; on a server also owners and its own policy."""
        return self._protection(update.ref) or self._owners_protect(update) or None

    def _owners_protect(self, update: RefUpdate) -> bool:
        """Return whether a server keeps a ref: it has owners or signers, is trusted, or lists itself."""
        old = self.commits.get(update.old or "")
        places = [each for each in (old, self.owners_place(update.ref, old)) if each is not None]
        has_owners = any(self.has_owners(each) or self.signers_of(each) is not None for each in places)
        is_kept = has_owners and self.is_owned(update.ref)
        is_trusted = self.asked.policy_name in {update.ref, *self._aliases.get(update.ref, ())}
        lists_itself = self._lists(self.destination.had.get(update.ref), update.ref, ())
        return self.destination.judges_all and (is_kept or is_trusted or lists_itself)

    def owners_place(self, ref: str, had: str | None) -> str | None:
        """Name the revision whose policy names the owners of a ref that has a commit; None if none does."""
        if self.asked.policy_from is not None:
            return self.asked.policy_from
        places = self._in_order(ref, had, self.default_tip)
        return next((each for each in places if not self.has_no_policy(each)), self.default_tip or had)

    def repository_of(self, ref: str, had: str | None) -> str | None:
        """Return the id of the repository for a ref that has a commit; None if nothing names one."""
        own, *others = *self._in_order(ref, had, self.default_tip), None
        places = (own, self.asked.policy_from, *others)
        if places not in self._repositories:
            self._repositories[places] = repository_id(self.objects, self.policies, places)
        return self._repositories[places]

    def _in_order(self, ref: str, had: str | None, default: str | None) -> list[str]:
        """List what may judge a ref, the first before the second.

        A tag may begin at any commit of the default branch, with the rules of then: those of today judge it.
        """
        places = (default, had) if ref.startswith(TAGS) else (had, default)
        return [each for each in places if each is not None]

    def _answers_alone(self, ref: str, had: str) -> bool:
        """Return whether owners or signers are named where a ref is, or for it, or on the default branch."""
        places = {had, self.owners_place(ref, had), self.default_tip}
        return any(self.has_owners(each) or self.signers_of(each) is not None for each in places if each)

    def _names_itself(self, ref: str, unlisted: Sequence[str]) -> bool:
        """Return whether the policy of the commit that git reports for a ref protects the ref.

        Args:
            unlisted: the names that count where that policy names no protected refs.
        """
        unlisted = () if self.destination.is_confirmed else unlisted
        return self._lists(self.destination.reported.get(ref), ref, unlisted)

    def _would_name_itself(self, ref: str) -> bool:
        """Return whether a ref on a server has no policy yet, which protects it as soon as it is there."""
        tip = self.default_tip if self.destination.judges_all else None
        had = self.commits.get(self.destination.had.get(ref, ""))
        is_open = had is None or self.has_no_policy(had)
        return is_open and tip is not None and not self.has_no_policy(tip)

    def is_unseen(self, ref: str) -> bool:
        """Return whether the commit that git reports for a ref is not here."""
        reported = self.destination.reported.get(ref)
        return reported is not None and self.commits.get(reported) is None

    def _is_shared(self, ref: str) -> bool:
        """Return whether a ref may be a default branch by its name, and has or may have a policy."""
        if self.is_unseen(ref):
            return not self.destination.is_confirmed and matches_ref(_SHARED_BRANCHES, ref)
        return self._names_itself(ref, _SHARED_BRANCHES)

    def is_governed(self, update: RefUpdate) -> bool:
        """Return whether a ref is protected, and a policy judges or may judge what it gets.

        That is the trusted one, the ref's own or the default branch's; where one of the two is not known
        here, there may be one. A branch that has a policy, and the name of a default branch, may be that.
        """
        if not self.is_protected(update.ref):
            return self._is_shared(update.ref)
        is_known = self.destination.is_empty or self.default_tip is not None
        return not (is_known and self._has_no_policy([update]))

    def is_before_policy(self, updates: Sequence[RefUpdate]) -> bool:
        """Return whether neither the default branch nor any ref of a push has a policy yet, for certain."""
        if self.destination.default is None and not self.destination.is_empty:
            return False
        return (self.destination.is_empty or self.default_tip is not None) and self._has_no_policy(updates)

    def has_no_policy(self, revision: str) -> bool:
        """Return whether a revision has no policy, not even a broken one."""
        return self._at(revision).is_absent

    def _has_no_policy(self, updates: Sequence[RefUpdate]) -> bool:
        """Return whether there is no trusted policy, and the default branch and these refs have none."""
        if self.asked.policy_from is not None:
            return False
        is_certain = self.destination.judges_all or self.destination.is_confirmed
        names = dict.fromkeys((*self._defaults, *(() if is_certain else USUAL_BRANCHES)))
        places = [self.destination.had[ref] for ref in names if ref in self.destination.had]
        places += [update.old for update in updates if update.old is not None]
        found = [self.commits.get(place) for place in places]
        return all(commit is not None and self.has_no_policy(commit) for commit in found)

    def _find_governing(self) -> GoverningPolicy:
        place = self.asked.policy_from or self.default_tip
        if place is None and not self.destination.judges_all:
            # Nothing is known of the remote: take the protected refs of this repository.
            place = "HEAD"
        found = self._at(place)
        if found.policy is not None and place is not None:
            named = self.asked.place
            shown = printable(named) if named is not None else place[:12] if place != "HEAD" else place
            return GoverningPolicy(found.policy, shown)
        return GoverningPolicy(built_in(), BUILT_IN, found.fault)

    @property
    def default_tip(self) -> str | None:
        """The commit of the default branch there, where it is known and here.

        Where a server trusts one of its branches, HEAD's counts only if that one's policy lists it: whoever
        may set HEAD would say what new protected refs begin with.
        """
        trusted = self.asked.policy_name if self.destination.judges_all else None
        if trusted is not None and trusted.startswith(BRANCHES):
            listed = self.governing.policy.config.push.protected_refs or ()
            if not any(matches_ref(listed, ref) for ref in self._defaults):
                return self.asked.policy_from
        for ref in self._defaults:
            tip = self.commits.get(self.destination.had.get(ref, ""))
            if tip is not None:
                return tip
        return None

    def answered_for(self, ref: str) -> list[str]:
        """List the commits whose ancestors a protected ref knows; none without a default branch.

        They are what the ref itself has, and the default branch's where neither has owners or signers. Not
        what other protected refs have: a new one may have been judged by the policy of long ago, from where
        it forks; nor, where a host protects it, what may have come with the same push. What this clone
        alone says of a remote does not count for a ref that has a policy there.
        """
        tip = self.default_tip
        had = self.commits.get(self.destination.had.get(ref, ""))
        if tip is None:
            return [had] if had is not None else []
        there = self.destination
        own = had if there.judges_all else self.commits.get(there.reported.get(ref, ""))
        if own is None:
            return [tip]
        is_sure = there.judges_all or there.is_confirmed or self.has_no_policy(own)
        is_apart = ref in there.been or self._answers_alone(ref, own)
        return [tip, own] if is_sure and not is_apart else [own]

    def _at(self, revision: str | None) -> FoundPolicy:
        """Read the policy of a revision; absent where there is none."""
        return self.policies.at(self.key_of(revision)) if revision else FoundPolicy()

    def key_of(self, revision: str) -> Key:
        """Name the policy that a revision has; equal keys have equal policies."""
        header = self.objects.header(revision + "^{tree}")
        return self.policies.key(header.oid) if header else (None, None)

    def signers_of(self, revision: str) -> str | None:
        """Return the object of the signers of a revision; None if it has none."""
        header = self.objects.header(revision + "^{tree}")
        entry = self.objects.entry(header.oid, ALLOWED_SIGNERS.raw) if header else None
        return entry.oid if entry is not None and entry.is_file else None

    def judged_by(self, update: RefUpdate) -> str | None:
        """Name the revision whose policy judges every commit that a ref gets; None: each one's parent's.

        Where the new commit contains the old one, the old one's policy judges. The closest ancestor on the
        first-parent line would be a hole: the old commit can be the second parent of a merge whose first
        parents branched off before the policy. It is used only where a ref that is not protected is new or
        forced; otherwise, and where that ancestor has no policy, what the ref had or the default branch has.
        No policy judges notes: they have a history of their own, with paths that none is about.
        """
        if update.ref.startswith(NOTES):
            return None
        if self.asked.policy_from is not None:
            return self.asked.policy_from
        if not (self.destination.judges_all or self.is_protected(update.ref)):
            return None
        return next((each for each in self._in_question(update) if not self._at(each).is_absent), None)

    def _in_question(self, update: RefUpdate) -> Iterator[str]:
        """Name the commits whose policy may judge what a ref gets: the first that has one does."""
        tip = self.commits.get(update.new or "")
        old = self.commits.get(self.destination.had.get(update.ref, "")) if update.old is not None else None
        base = old or self.default_tip
        if tip is None or base is None:
            return
        # Where a protected branch begins is the author's choice, and so what was the policy there.
        lists_itself = self._lists(self.destination.had.get(update.ref), update.ref, ())
        is_chosen = not (self.is_protected(update.ref) or lists_itself or update.ref in self._defaults)
        if is_chosen and (old is None or not self.reaches(tip, old)):
            nearest = self.first_parents.nearest(tip, base)
            if nearest is not None:
                yield nearest
        yield from self._in_order(update.ref, old, self.default_tip)

    def reaches(self, commit: str, ancestor: str) -> bool:
        """Return whether one commit reaches another; asks git once."""
        pair = (ancestor, commit)
        if pair not in self._ancestry:
            self._ancestry[pair] = is_ancestor(self.repository, ancestor, commit)
        return self._ancestry[pair]


def _default_refs(destination: Destination) -> tuple[str, ...]:
    """Name the default branch; where it is not known, the usual names that exist."""
    if destination.default is not None:
        return (destination.default,)
    return tuple(ref for ref in USUAL_BRANCHES if ref in destination.had)
