"""The files of a component beside those of a baseline: what differs, is gone, only moved, or was left out.

Decides by role, mode, object id and name alone; no content is read, so line endings on disk and untracked
files can't matter. A file that stays in its place and lost its role did not change, its declaration did.
Which contents are worth reading follows from it: what they come to is decided in `drift_contents`, what is
said of it in `drift`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from patchgate.components.baseline import Baseline, RecordedFile
from patchgate.git.model import Entry
from patchgate.git.path import RepoPath
from patchgate.policy.component import Role

Files = Mapping[RepoPath, tuple[Role, Entry]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the files of a component differ from its baseline, each sorted by path.

    `changed` are there on both sides and differ in content or mode; `moved` maps new paths to old ones;
    `left_out` are still in the tree, and no longer what they were recorded as: the declaration says so.
    """

    changed: Mapping[RepoPath, tuple[RecordedFile, tuple[Role, Entry]]]
    added: Mapping[RepoPath, tuple[Role, Entry]]
    gone: Mapping[RepoPath, RecordedFile]
    moved: Mapping[RepoPath, RepoPath]
    left_out: Mapping[RepoPath, RecordedFile] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Tell whether nothing differs at all."""
        return not (self.changed or self.added or self.gone or self.moved or self.left_out)

    def differs(self, role: Role) -> bool:
        """Tell whether any file of a role changed, was added or is gone; not one that was left out."""
        return role in self.arrived_roles or any(each.role is role for each in self.gone.values())

    @property
    def arrived_roles(self) -> frozenset[Role]:
        """The roles of which some file changed or was added."""
        files = *self.added.values(), *(now for _, now in self.changed.values())
        return frozenset(role for role, _ in files)

    def old(self, role: Role) -> dict[RepoPath, RecordedFile]:
        """Give what the baseline says of the files of a role that differ or are gone.

        A contract that was left out is among them: it was promised. Tests that were are nobody's.
        """
        found = {path: recorded for path, (recorded, _) in self.changed.items() if recorded.role is role}
        found |= {path: recorded for path, recorded in self.gone.items() if recorded.role is role}
        if role is Role.CONTRACT:
            found |= self.left_out_of(role)
        return dict(sorted(found.items()))

    def left_out_of(self, role: Role) -> dict[RepoPath, RecordedFile]:
        """Give what the baseline says of the files that are no longer of a role by the declaration."""
        return {path: recorded for path, recorded in self.left_out.items() if recorded.role is role}

    def new(self, role: Role) -> dict[RepoPath, Entry]:
        """Give what is now there of the files of a role that differ or were added."""
        found = {path: entry for path, (_, (now, entry)) in self.changed.items() if now is role}
        found |= {path: entry for path, (now, entry) in self.added.items() if now is role}
        return dict(sorted(found.items()))


def is_python(path: RepoPath) -> bool:
    """Tell whether the test functions of a file can be told."""
    return path.raw.endswith(b".py")


def is_named_as_test(path: RepoPath) -> bool:
    """Tell whether a file has a name by which runners find tests: `test_*.py`, `*_test.py`."""
    return is_python(path) and (path.name.startswith(b"test_") or path.name.endswith(b"_test.py"))


def compare(files: Files, baseline: Baseline, unclaimed: Collection[RepoPath] = ()) -> Comparison:
    """Compare the files of a component with a baseline.

    Args:
        unclaimed: what is recorded, lies in the tree and is no file of the component.
    """
    changed: dict[RepoPath, tuple[RecordedFile, tuple[Role, Entry]]] = {}
    added: dict[RepoPath, tuple[Role, Entry]] = {}
    missing = {path: recorded for path, recorded in baseline.files.items() if path not in files}
    left_out = {path: recorded for path, recorded in missing.items() if path in unclaimed}
    gone = {path: recorded for path, recorded in missing.items() if path not in unclaimed}
    for path, (role, entry) in files.items():
        recorded = baseline.files.get(path)
        if recorded is not None and recorded.role is not role:
            left_out[path] = recorded
        if recorded is None or recorded.role is not role:
            added[path] = (role, entry)
        elif recorded.oid != entry.oid or recorded.mode != entry.mode:
            changed[path] = (recorded, (role, entry))
    moved = dict(_moves(gone, added)) if gone and added else {}
    for new, old in moved.items():
        del gone[old], added[new]
    return Comparison(
        changed,
        dict(sorted(added.items())),
        dict(sorted(gone.items())),
        moved,
        dict(sorted(left_out.items())),
    )


def _moves(
    gone: Mapping[RepoPath, RecordedFile], added: Mapping[RepoPath, tuple[Role, Entry]]
) -> Iterator[tuple[RepoPath, RepoPath]]:
    """Pair what is gone with what was added of equal content, mode and role: by names, then in order.

    A test under a name that nobody runs has not moved: both names are of one kind.
    """

    def key(path: RepoPath, role: Role, each: RecordedFile | Entry) -> tuple[object, ...]:
        kind = (is_python(path), is_named_as_test(path)) if role is Role.TESTS else ()
        return each.oid, each.mode, role, kind

    waiting: dict[tuple[object, ...], list[RepoPath]] = {}
    for path in sorted(gone):
        waiting.setdefault(key(path, gone[path].role, gone[path]), []).append(path)
    left: list[tuple[RepoPath, list[RepoPath]]] = []
    for path in sorted(added):
        role, entry = added[path]
        candidates = waiting.get(key(path, role, entry), [])
        same = next((old for old in candidates if old.name == path.name), None)
        if same is None:
            left.append((path, candidates))
        else:
            candidates.remove(same)
            yield path, same
    for path, candidates in left:
        if candidates:
            yield path, candidates.pop(0)
