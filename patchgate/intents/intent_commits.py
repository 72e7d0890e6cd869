"""The commits of an update that are made under intents: which intent binds each, and what each touches.

A commit with the same change as another (a rebase), or that changes nothing of the branch (an amended
message), stays with the intent of the commit that it replaces. It does not touch what the branch already
has; one that replaces the tip touches what it takes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from patchgate.intents.worktree_intents import TouchedFiles, WorktreeIntents
from patchgate.policy.policy import Policy, Profile
from patchgate.report.verdict import ChangeVerdict
from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.git.model import FileChange
    from patchgate.git.new_commits import BranchUpdate
    from patchgate.git.objects import Objects
    from patchgate.git.path import RepoPath
    from patchgate.git.repository import Repository
    from patchgate.intents.intent import Intent


@dataclass(slots=True)
class IntentCommits:
    """The commits of a branch update that are made in this worktree under its intents.

    `ids` are these commits, each with the ids in its trailers; `replayed` those whose change the branch
    already had; `origins` the active intent of the commit that one replaces; `undone` the files in which a
    commit that replaces the tip differs from it. `bound` collects the commits that each intent binds.
    """

    here: WorktreeIntents
    update: BranchUpdate
    ids: Mapping[str, tuple[str, ...]]
    replayed: frozenset[str] = frozenset()
    origins: Mapping[str, str] = field(default_factory=dict)
    undone: Mapping[str, Sequence[FileChange]] = field(default_factory=dict)
    bound: dict[str, list[str]] = field(default_factory=dict)
    _old_tree: str | None = None

    @property
    def binds(self) -> bool:
        """Whether an intent binds them, or may."""
        return self.here.binds

    @property
    def counts_lines(self) -> bool:
        """Whether an intent limits the lines that its work adds."""
        return self.here.counts_lines

    def check_scope(
        self,
        verdict: ChangeVerdict,
        policy: Policy,
        profile: Profile,
        controls: Set[RepoPath],
        objects: Objects,
    ) -> ChangeVerdict:
        """Check a commit against the intent that binds it."""
        commit = verdict.source.commit or ""
        had = self._had(verdict, objects)
        undone = self.undone.get(commit, ())
        if undone:
            from patchgate.check.judging_policy import controls_of

            paths = [file.path for file in undone]
            controls = controls | controls_of(objects, self._before(objects), verdict.change.after, paths)
        files = [*(file for file in verdict.change.files if file.path not in had), *undone]
        intent = self._whose(commit, files, verdict.change.files)
        # For a replayed commit, the trailer was checked before.
        ids = None if commit in self.replayed else self.ids[commit]
        touched = TouchedFiles(verdict, policy, profile, objects, files, controls)
        judged = self.here.check(touched, intent, ids=ids)
        if intent is not None and self.here.fault is None:
            self.bound.setdefault(intent.id, []).append(commit)
        return judged

    def bind_all(self, repository: Repository) -> None:
        """Find the intent that binds each commit, without checking any.

        Raises:
            UndecidedError: git failed, or an object is missing.
        """
        from patchgate.git.intent_commits import changes_of, with_ids

        for commit, change in changes_of(repository, with_ids(repository, [*self.ids])):
            files = () if commit.oid in self.replayed else change.files
            intent = self._whose(commit.oid, files, change.files)
            if intent is not None:
                self.bound.setdefault(intent.id, []).append(commit.oid)

    def _whose(self, commit: str, files: Sequence[FileChange], every: Sequence[FileChange]) -> Intent | None:
        """Choose the intent that binds a commit: by its files, or else by the commit that it replaces."""
        if files:
            return self.here.choose_binding_intent(files)
        # An empty commit only has its message.
        names = (self.origins.get(commit), *(self.ids[commit] if not every else ()))
        own = {intent.id: intent for intent in self.here.own}
        named = next((own[name] for name in names if name in own), None)
        return named or self.here.choose_binding_intent(every)

    def _had(self, verdict: ChangeVerdict, objects: Objects) -> frozenset[RepoPath]:
        """Return the files of a commit that the branch already has, as when the commit is amended."""
        if verdict.source.commit in self.replayed:
            return frozenset(file.path for file in verdict.change.files)
        old = self.update.old
        if old is None or old == verdict.source.base_commit:
            return frozenset()
        tree = self._before(objects)
        return frozenset(
            file.path for file in verdict.change.files if objects.entry(tree, file.path.raw) == file.new
        )

    def _before(self, objects: Objects) -> str:
        """Return the tree of the branch before the update."""
        if self._old_tree is None:
            header = objects.header(f"{self.update.old}^{{tree}}") if self.update.old else None
            self._old_tree = objects.empty_tree if header is None else header.oid
        return self._old_tree


def find_intent_commits(
    repository: Repository,
    here: WorktreeIntents | None,
    update: BranchUpdate,
    fresh: Sequence[str],
    *,
    settled: Sequence[str] = (),
    arriving: Sequence[str] = (),
) -> IntentCommits | None:
    """Find the commits of an update that are made in this worktree under its intents; None: there are none.

    A commit that replaces one with the same change (a rebase) belongs to the same intent, and is not checked
    against it again.

    Args:
        fresh: the unchecked commits of the update.
        settled: the tips at the time of the install.
        arriving: tips of remotes that no remote-tracking ref has yet.

    Raises:
        UndecidedError: git failed, or objects are missing.
    """
    if here is None or not fresh or not (here.binds or here.others or here.unreadable):
        return None
    from patchgate.git.intent_commits import made_here, replays, undone_by, with_ids

    own = made_here(repository, update, settled, arriving)
    made = [oid for oid in fresh if oid in own]
    if not made:
        return None
    listed = with_ids(repository, made if update.old is None else [*made, update.old])
    made_anew = dict(replays(repository, update, made))
    replaced = frozenset(made_anew)
    if update.old is not None:
        tip = listed[-1]
        made_anew |= {each.oid: tip.oid for each in listed[:-1] if each.parents == tip.parents}
    origins = _origins(repository, here, made_anew) if made_anew and here.own and here.fault is None else {}
    kept = [
        each
        for each in listed[: len(made)]
        if here.fault is not None or each.oid not in replaced or each.oid in origins
    ]
    if not kept:
        return None
    undone = {} if update.old is None else undone_by(repository, update, kept, listed[-1])
    ids = {each.oid: each.ids for each in kept}
    return IntentCommits(here, update, ids, replaced, origins, undone)


def _origins(repository: Repository, here: WorktreeIntents, made_anew: Mapping[str, str]) -> dict[str, str]:
    """Map each commit to the active intent of the commit that it replaces."""
    owners = intents_of(repository, here.own, list(dict.fromkeys(made_anew.values())))
    return {new: owners[old] for new, old in made_anew.items() if old in owners}


def intents_of(repository: Repository, intents: Sequence[Intent], oids: Sequence[str]) -> dict[str, str]:
    """Map commits to the intent under which they were made: by the ledger, else by their trailers.

    Raises:
        UndecidedError: the ledger cannot be read, or git failed.
    """
    from patchgate.git.intent_commits import with_ids

    names = {intent.id for intent in intents}
    makers = recorded_intents(repository)
    found: dict[str, str] = {}
    for each in with_ids(repository, oids):
        named = [name for name in (*each.ids, *makers.get(each.oid, ())) if name in names]
        found |= {each.oid: named[-1]} if named else {}
    return found


def recorded_intents(repository: Repository, name: str = "") -> dict[str, list[str]]:
    """Map commits to the intents under which they were made, according to the ledger; the newest last.

    Args:
        name: only commits of the intent of this id; empty: of any.

    Raises:
        UndecidedError: the ledger cannot be read.
    """
    from patchgate.ledger.ledger import Ledger

    found: dict[str, list[str]] = {}
    for event in Ledger(repository.common_dir).find_events({"made"}, name, strict=True):
        intent, commits = event.about.get("intent"), event.about.get("commits")
        if not isinstance(intent, str) or isinstance(commits, str) or not isinstance(commits, Sequence):
            continue
        for each in commits if name in {"", intent} else ():
            if isinstance(each, str):
                found.setdefault(each, []).append(intent)
    return found
