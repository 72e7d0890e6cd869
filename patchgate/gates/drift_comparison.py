"""The files of a component beside those of a baseline: what differs, what is gone, what only moved.

Decides by role, mode and object id alone; no content is read, so line endings on disk and untracked files
can't matter. Which contents are worth reading follows from it. What is said of it is told in `drift`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchgate.change.model import Entry
from patchgate.change.path import RepoPath
from patchgate.declared.baseline import Baseline, RecordedFile
from patchgate.declared.component import Role

Files = Mapping[RepoPath, tuple[Role, Entry]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the files of a component differ from its baseline, each sorted by path.

    `changed` are there on both sides and differ in content, mode or role; `moved` maps new paths to old ones.
    """

    changed: Mapping[RepoPath, tuple[RecordedFile, tuple[Role, Entry]]]
    added: Mapping[RepoPath, tuple[Role, Entry]]
    gone: Mapping[RepoPath, RecordedFile]
    moved: Mapping[RepoPath, RepoPath]

    @property
    def is_equal(self) -> bool:
        """Tell whether nothing differs at all."""
        return not (self.changed or self.added or self.gone or self.moved)

    def differs(self, role: Role) -> bool:
        """Tell whether any file of a role changed, was added or is gone."""
        return role in self.arrived_roles or any(each.role is role for each in self.gone.values())

    @property
    def arrived_roles(self) -> frozenset[Role]:
        """The roles of which some file changed or was added."""
        found = {role for role, _ in self.added.values()}
        for recorded, (role, _) in self.changed.values():
            found |= {recorded.role, role}
        return frozenset(found)

    def old(self, role: Role) -> dict[RepoPath, RecordedFile]:
        """Give what the baseline says of the files of a role that differ or are gone."""
        found = {path: recorded for path, (recorded, _) in self.changed.items() if recorded.role is role}
        found |= {path: recorded for path, recorded in self.gone.items() if recorded.role is role}
        return dict(sorted(found.items()))

    def new(self, role: Role) -> dict[RepoPath, Entry]:
        """Give what is now there of the files of a role that differ or were added."""
        found = {path: entry for path, (_, (now, entry)) in self.changed.items() if now is role}
        found |= {path: entry for path, (now, entry) in self.added.items() if now is role}
        return dict(sorted(found.items()))


def compare(files: Files, baseline: Baseline) -> Comparison:
    """Compare the files of a component with a baseline."""
    changed: dict[RepoPath, tuple[RecordedFile, tuple[Role, Entry]]] = {}
    added: dict[RepoPath, tuple[Role, Entry]] = {}
    gone = {path: recorded for path, recorded in baseline.files.items() if path not in files}
    for path, (role, entry) in files.items():
        recorded = baseline.files.get(path)
        if recorded is None:
            added[path] = (role, entry)
        elif recorded.oid != entry.oid or recorded.mode != entry.mode or recorded.role is not role:
            changed[path] = (recorded, (role, entry))
    moved = dict(_moves(gone, added)) if gone and added else {}
    for new, old in moved.items():
        del gone[old], added[new]
    return Comparison(changed, dict(sorted(added.items())), dict(sorted(gone.items())), moved)


def _moves(
    gone: Mapping[RepoPath, RecordedFile], added: Mapping[RepoPath, tuple[Role, Entry]]
) -> Iterator[tuple[RepoPath, RepoPath]]:
    """Pair what is gone with what was added of equal content, mode and role: by names, then in order."""
    waiting: dict[tuple[str, str, Role], list[RepoPath]] = {}
    for path in sorted(gone):
        recorded = gone[path]
        waiting.setdefault((recorded.oid, recorded.mode, recorded.role), []).append(path)
    left: list[tuple[RepoPath, list[RepoPath]]] = []
    for path in sorted(added):
        role, entry = added[path]
        candidates = waiting.get((entry.oid, entry.mode, role), [])
        same = next((old for old in candidates if old.name == path.name), None)
        if same is None:
            left.append((path, candidates))
        else:
            candidates.remove(same)
            yield path, same
    for path, candidates in left:
        if candidates:
            yield path, candidates.pop(0)
