"""Find when each component was verified, and which of its dependencies changed since.

A verification is the newest of: the commit that wrote the baseline, a note, an event of this machine's
ledger. Decides what a dependency's digest covers and which dependencies are gone; `staleness` decides how
many days count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from patchgate.components.attestations import Attestation, VerifiedNotes, find_attestations
from patchgate.components.component_cache import (
    ComponentCache,
    FactsCache,
    facts_at,
    key_of,
    key_of_declaration,
    key_of_entries,
)
from patchgate.components.component_names import ComponentNames, resolve_dependencies
from patchgate.components.drift_gathering import files_of
from patchgate.components.external_dependencies import ExternalDependencies
from patchgate.components.staleness import DAY, LastVerified
from patchgate.errors import UndecidedError
from patchgate.git.file_history import FileCommit, newest_commits
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.tree_view import TreePaths, TreeView
from patchgate.policy.component import BASELINES, Component, Components, Role
from patchgate.policy.policy import Policy
from patchgate.policy.tree_policies import TreePolicies
from patchgate.values import dataclass, replace

_CUT_OFF = "this clone is shallow, and its history ends before that commit"
_NEVER = "no commit in the history wrote this baseline"
_AHEAD = "the commit of its baseline is dated in the future"
# As many as the reported findings about a contract.
_MOST_UNKNOWN = 100
_OF_OTHERS = frozenset({Role.CONTRACT, Role.IMPLEMENTATION})
_NameScope = tuple[ComponentNames, ExternalDependencies]


@dataclass(frozen=True, slots=True)
class RecordedComponent:
    """A component with its baseline's entry, its dependencies, and unknown names in its contract."""

    component: Component
    baseline: Entry
    dependencies: tuple[str, ...]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _NewestVerification:
    """The newest verification of a component; `note` is None if it is a commit, or unknown."""

    recorded: RecordedComponent
    verified: LastVerified
    note: Attestation | None = None


def contract_dependencies(
    component: Component, names: ComponentNames, view: TreeView, cache: FactsCache
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the dependencies of a component, and the names in its contract that match no component.

    Both are sorted, and empty if there is no contract.

    Raises:
        UndecidedError: an object is missing.
    """
    facts = facts_at(view, component.contract, cache)
    if facts is None:
        return (), ()
    resolved = resolve_dependencies(facts, names)
    found = {each.id for _, each in resolved if each is not None} - {component.id}
    unknown = {written.name for written, each in resolved if each is None}
    return tuple(sorted(found)), tuple(sorted(unknown)[:_MOST_UNKNOWN])


def dependency_digests(
    component: Component, components: Components, view: TreeView, cache: FactsCache
) -> dict[str, str]:
    """Return, for each dependency of a component, the digest of its contract and implementation.

    Raises:
        UndecidedError: an object is missing.
    """
    needs, _ = contract_dependencies(component, ComponentNames(components.ids), view, cache)
    return {name: _digest(components[name], view) for name in needs}


def _digest(component: Component, view: TreeView) -> str:
    """Hash path, mode and id of a component's contract and implementation files."""
    digest = hashlib.sha256(b"patchgate.dependency/1\n")
    files = files_of(component, view)
    for path in sorted(files, key=lambda each: each.raw):
        role, entry = files[path]
        if role in _OF_OTHERS:
            digest.update(b"%s %s %s\0" % (entry.mode.encode(), entry.oid.encode(), path.raw))
    return "sha256:" + digest.hexdigest()


class StalenessFacts:
    """Finds the verifications of the components in one commit's tree.

    Args:
        objects: reads the repository.
        paths: looks up folders of its trees.
        cache: caches digests and dates.
        policy: that of the tree; its components are used for older trees too.
    """

    def __init__(self, objects: Objects, paths: TreePaths, cache: ComponentCache, policy: Policy) -> None:
        self._objects, self._paths, self._cache, self._policy = objects, paths, cache, policy
        self._policies = TreePolicies(objects)
        self._components = policy.components
        self._here: dict[str, ExternalDependencies] = {}
        self._outside: dict[str, _NameScope | None] = {}
        self._digests: dict[tuple[str, str], str] = {}

    def verified(
        self,
        commit: str,
        tree: str,
        recorded: Sequence[RecordedComponent],
        notes: VerifiedNotes,
    ) -> list[LastVerified]:
        """Find when each component was verified, and what changed below it since.

        Args:
            commit: the full id of the commit whose history is searched.
            tree: its tree.
            recorded: the components to check.
            notes: finds verifications in notes, and knows the time.

        Raises:
            UndecidedError: git failed, or objects are missing.
        """
        touches = self._touches(commit, {each.component.baseline.raw: each.baseline.oid for each in recorded})
        baselines = {each.component.id: each.baseline.oid for each in recorded}
        attested = find_attestations(self._objects.repository, notes, baselines)
        now = notes.now
        chosen = [
            _newest(each, touches.get(each.component.baseline.raw), attested.get(each.component.id), now)
            for each in recorded
        ]
        trees = self._trees_of([each.verified.commit for each in chosen if each.verified.commit is not None])
        then = [trees.get(each.verified.commit or "") for each in chosen]
        pairs = {
            (older, name)
            for each, older in zip(chosen, then, strict=True)
            if older is not None
            for name in each.recorded.dependencies
        }
        unlike = self._unlike(pairs, tree)
        return [
            self._with_changes(each, tree, older, unlike) for each, older in zip(chosen, then, strict=True)
        ]

    def _touches(self, commit: str, wanted: Mapping[bytes, str]) -> dict[bytes, FileCommit]:
        known = self._cache.touches(commit, wanted)
        if known is None:
            known = newest_commits(self._objects.repository, commit, BASELINES, wanted)
            self._cache.keep_touches(commit, wanted, known)
        return known

    def _trees_of(self, commits: Sequence[str]) -> dict[str, str]:
        names = list(dict.fromkeys(commits))
        headers = self._objects.headers([f"{name}^{{tree}}" for name in names])
        found = {name: header.oid for name, header in zip(names, headers, strict=True) if header is not None}
        if len(found) < len(names):
            raise UndecidedError(
                "a commit of this history has no tree in this clone", "git fetch --refetch, then try again"
            )
        return found

    def _unlike(self, pairs: set[tuple[str, str]], tree: str) -> set[tuple[str, str]]:
        """Choose the pairs of an older tree and a component whose folders differ from now."""
        asked = [(pair, folder) for pair in sorted(pairs) for folder in self._components[pair[1]].folders]
        then = [(older, folder) for (older, _), folder in asked]
        entries = self._paths.entries([*then, *((tree, folder) for _, folder in asked)])
        before, now = entries[: len(asked)], entries[len(asked) :]
        return {pair for (pair, _), old, new in zip(asked, before, now, strict=True) if old != new}

    def _with_changes(
        self, newest: _NewestVerification, tree: str, then: str | None, unlike: set[tuple[str, str]]
    ) -> LastVerified:
        """Add what changed since; `then` is the tree of the verifying commit, or None."""
        recorded, note = newest.recorded, newest.note
        if note is not None:
            changed = [
                name
                for name in recorded.dependencies
                if note.dependencies.get(name) != self._digest_at(name, tree)
            ]
        elif then is not None:
            changed = [
                name
                for name in recorded.dependencies
                if (then, name) in unlike and self._digest_at(name, then) != self._digest_at(name, tree)
            ]
        else:
            return newest.verified
        gone = [name for name in recorded.unknown if self._is_gone(name, note, then, tree)]
        return replace(newest.verified, changed=tuple(changed), gone=tuple(gone))

    def _is_gone(self, name: str, note: Attestation | None, then: str | None, tree: str) -> bool:
        """Return whether a name that matches no component is missing now, and existed then."""
        if tree not in self._here:
            self._here[tree] = self._externals(self._policy, tree)
        if self._here[tree].has(name):
            return False
        if note is not None:
            resolved = ComponentNames({*self._components.ids, *note.dependencies}).find(name)
            return resolved is not None and resolved.id in note.dependencies
        assert then is not None
        if then not in self._outside:
            self._outside[then] = self._place(then)
        place = self._outside[then]
        return place is None or place[0].find(name) is not None or place[1].has(name)

    def _place(self, tree: str) -> _NameScope | None:
        """Return what names can mean in an older tree; None if its policy cannot be read."""
        found = self._policies.at(self._policies.key(tree))
        if found.fault is not None:
            return None
        ids = found.policy.components.ids if found.policy is not None else ()
        return ComponentNames(ids), self._externals(found.policy or self._policy, tree)

    def _externals(self, policy: Policy, tree: str) -> ExternalDependencies:
        return ExternalDependencies(policy.config.baselines.source_roots, TreeView(self._objects, tree))

    def _digest_at(self, name: str, tree: str) -> str:
        """Return the digest of a component in a tree; folders that are the same have the same."""
        if (name, tree) not in self._digests:
            component = self._components[name]
            folders = component.folders
            entries = self._paths.entries([(tree, folder) for folder in folders])
            key = key_of("dependency", key_of_declaration(component), key_of_entries(folders, entries))
            digest = self._cache.digest(key)
            if digest is None:
                digest = _digest(component, TreeView(self._objects, tree))
                self._cache.keep_digest(key, digest)
            self._digests[name, tree] = digest
        return self._digests[name, tree]


def _newest(
    recorded: RecordedComponent, touch: FileCommit | None, attested: Attestation | None, now: float
) -> _NewestVerification:
    """Choose the newest verification of a component."""
    name, path = recorded.component.id, recorded.component.baseline
    if touch is None:
        unknown: str | None = _NEVER
    elif touch.is_cut_off:
        unknown = _CUT_OFF
    else:
        unknown = _AHEAD if touch.seconds > now + DAY else None
    if attested is not None and (unknown or touch is None or attested.seconds > touch.seconds):
        return _NewestVerification(
            recorded, LastVerified(name, path, attested.seconds, attested.where), attested
        )
    if touch is None or unknown is not None:
        return _NewestVerification(recorded, LastVerified(name, path, unknown=unknown))
    return _NewestVerification(recorded, LastVerified(name, path, touch.seconds, "commit", touch.commit))
