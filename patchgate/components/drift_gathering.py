"""Gather the facts of the drift gate: a component's files, its baselines, the contents that differ.

Reads names and object ids always; contents only of contracts and tests that differ (of tests in other
languages only small ones, which may be blank); SHA-256 only if a change brings a baseline. All from the
object database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from patchgate.components.baseline_file import (
    MAX_BASELINE_BYTES,
    Baseline,
    BaselineFault,
    Recorded,
    RecordedFile,
    read_baseline,
    write_baseline,
)
from patchgate.components.component_facts import ComponentState
from patchgate.components.drift_comparison import DriftComparison, Files, compare, is_python
from patchgate.errors import UndecidedError
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, Entry
from patchgate.git.objects import Header, Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import BIG_FILE, FETCH_MISSING
from patchgate.git.tree_view import TreeView
from patchgate.policy.component import Component, Components, Role
from patchgate.values import replace

_AT_ONCE = 16 << 20
# Larger files count as not blank.
_MAY_BE_BLANK = 64 << 10
_AS_RECORDED, _AS_IT_IS, _AS_IT_WAS = " as it was recorded", "", " as it was before"


def component_states(
    components: Components,
    near: Mapping[str, set[RepoPath]],
    view: TreeView,
    old: Mapping[RepoPath, Entry | None],
    *,
    is_merge: bool = False,
) -> tuple[ComponentState, ...]:
    """Gather the components that a change touches, in the order of their ids.

    Args:
        near: for each component, its paths (and its baseline's) that the change touches.
        view: the tree that the change results in.
        old: the entry before the change at every path that it touches.
        is_merge: the change is that of a merge.

    Raises:
        UndecidedError: an object is missing, or too large.
    """
    return tuple(
        _state(components[name], frozenset(near[name]), view, old, is_merge)
        for name in sorted(near)
        if components.get(name) is not None
    )


def state_of(component: Component, view: TreeView) -> ComponentState:
    """Gather one component of a tree, without a change."""
    return _state(component, frozenset(), view, {}, False)


def state_over(
    component: Component,
    changed: frozenset[RepoPath],
    view: TreeView,
    old: Mapping[RepoPath, Entry | None],
    recorded: Entry,
    *,
    more: Files | None = None,
    asks_all: bool = False,
) -> ComponentState:
    """Gather one component after several changes, with the baseline from before the first of them.

    Args:
        changed: its paths that differ between the two trees.
        view: the tree after the last change.
        old: what was at those paths before the first change.
        recorded: the baseline from before the first change.
        more: additional files that count as the component's.
        asks_all: whether files that are equal in both trees are also compared with the baseline.

    Raises:
        UndecidedError: an object is missing, or too large.
    """
    files = {**files_of(component, view), **(more or {})}
    now, written = _read(component, view.entry(component.baseline.raw), view.objects)
    before = recorded_at(component, recorded, view.objects)
    state = ComponentState(
        component=component,
        files=files,
        recorded=now,
        before=before,
        changed=changed,
        written=written,
        is_merge=asks_all,
        unclaimed=_unclaimed(files, view, before),
        old={path: old.get(path) for path in changed},
    )
    return _with_texts(state, [before], view.objects)


def is_forged(recorded: Recorded | None, before: Recorded | None, objects: Objects) -> bool:
    """Return whether a baseline records a checksum that does not match its blob.

    Checksums that the previous baseline also has are not computed again.

    Raises:
        UndecidedError: a blob is missing.
    """
    if not isinstance(recorded, Baseline):
        return False
    known = before.files.values() if isinstance(before, Baseline) else ()
    stated = {(each.oid, each.sha256) for each in recorded.files.values() if each.mode != GITLINK}
    new = stated - {(each.oid, each.sha256) for each in known}
    sums = _sums(objects, sorted({oid for oid, _ in new}))
    return any(sums[oid] != sha256 for oid, sha256 in new)


def files_of(component: Component, view: TreeView) -> dict[RepoPath, tuple[Role, Entry]]:
    """List the files of a component in a tree, with their roles, sorted by path."""
    found: dict[RepoPath, tuple[Role, Entry]] = {}
    for folder in component.folders:
        for path, entry in view.below(folder).items():
            role = component.role(path)
            if role is not None:
                found[path] = (role, entry)
    return dict(sorted(found.items()))


def recorded_at(component: Component, entry: Entry | None, objects: Objects) -> Recorded | None:
    """Read the baseline of a component from what a tree holds at its path; None if there is nothing."""
    return _read(component, entry, objects)[0]


def record(files: Files, objects: Objects) -> dict[RepoPath, RecordedFile]:
    """Return what a capture would record of a component's files; all of them are read."""
    sums = _sums(objects, sorted({entry.oid for _, entry in files.values() if entry.mode != GITLINK}))
    return {
        path: RecordedFile(
            role, entry.mode, entry.oid, sums.get(entry.oid) if entry.mode != GITLINK else None
        )
        for path, (role, entry) in files.items()
    }


def _state(
    component: Component,
    changed: frozenset[RepoPath],
    view: TreeView,
    old: Mapping[RepoPath, Entry | None],
    is_merge: bool,
) -> ComponentState:
    objects, place = view.objects, component.baseline
    files = files_of(component, view)
    recorded, written = _read(component, view.entry(place.raw), objects)
    before = recorded_at(component, old.get(place), objects) if place in changed else recorded
    state = ComponentState(
        component=component,
        files=files,
        recorded=recorded,
        before=before,
        changed=changed,
        is_merge=is_merge,
        unclaimed=_unclaimed(files, view, recorded, before),
        old={path: old.get(path) for path in changed},
    )
    if place not in changed:
        return _with_texts(state, [recorded], objects)
    # Recorded checksums are not trusted.
    capture = write_baseline(component.id, record(files, objects)) if recorded is not None else None
    state = replace(state, capture=capture, written=written)
    is_asked = is_merge or component.contract in changed or capture != written
    beside = [recorded if capture == written else None, before if is_asked or state.touches_tests else None]
    return _with_texts(state, beside, objects)


def _unclaimed(files: Files, view: TreeView, *recorded: Recorded | None) -> frozenset[RepoPath]:
    """Return the recorded files that are in the tree, but not in the component."""
    named = {path for each in recorded if isinstance(each, Baseline) for path in each.files}
    return frozenset(path for path in named if path not in files and view.entry(path.raw) is not None)


def _read(
    component: Component, entry: Entry | None, objects: Objects
) -> tuple[Recorded | None, bytes | None]:
    """Read a baseline; also return its bytes, if they can be read."""
    if entry is None:
        return None, None
    again = f"delete it, then record the component again: git patchgate baseline capture {component.id}"
    if entry.mode != REGULAR:
        return BaselineFault(f"this baseline is not a regular file (mode {entry.mode})", 1, again), None
    header = objects.header(entry.oid)
    if header is not None and header.size > MAX_BASELINE_BYTES:
        fault = f"this baseline has more than {MAX_BASELINE_BYTES >> 20} MiB"
        return BaselineFault(fault, 1, again), None
    content = objects.read(entry.oid)
    return read_baseline(content, component.id), content


def _with_texts(state: ComponentState, beside: Iterable[Recorded | None], objects: Objects) -> ComponentState:
    """Read the contents that are needed to compare a component with some baselines."""
    compared: list[DriftComparison] = []
    earlier: list[DriftComparison] = []
    for baseline in beside:
        if not isinstance(baseline, Baseline):
            continue
        found = compare(state.files, baseline, state.unclaimed)
        compared.append(found)
        is_promised = bool(found.old(Role.CONTRACT) or found.new(Role.CONTRACT))
        recorded = found.old(Role.TESTS)
        # A changed promise excuses lost tests only in the same change; what was lost before is not lost now.
        is_asked = is_promised or not state.changed.issuperset(recorded)
        if recorded and is_asked and state.touches_tests and not state.is_merge:
            earlier.append(compare(state.files_before, baseline, state.unclaimed))
    contracts: dict[str, tuple[RepoPath, str]] = {}
    place = state.component.contract
    if earlier and (was := state.old.get(place)) is not None and place in state.files:
        contracts |= _readable({place: state.files[place][1]}, _AS_IT_IS, Role.CONTRACT)
        contracts |= _readable({place: was}, _AS_IT_WAS, Role.CONTRACT)
    return replace(state, texts=_texts(state.component, compared, earlier, contracts, objects))


def _texts(
    component: Component,
    compared: Iterable[DriftComparison],
    earlier: Iterable[DriftComparison],
    contracts: Mapping[str, tuple[RepoPath, str]],
    objects: Objects,
) -> dict[str, bytes]:
    """Read the contracts and the Python tests that differ, on both sides, and new tests that may be blank.

    Args:
        earlier: how the tree before the change differs; too large files of it are not read.
        contracts: contracts before and after the change, by blob id.
    """
    asked: dict[str, tuple[RepoPath, str]] = {}
    optional = dict(contracts)
    new: set[str] = set()
    for found in earlier:
        recorded, now = found.old(Role.TESTS), found.new(Role.TESTS)
        for side, files in ((_AS_RECORDED, recorded), (_AS_IT_WAS, now)):
            optional |= _readable(files, side, Role.TESTS)
        new |= {entry.oid for entry in now.values() if entry.is_file}
    for found in compared:
        for role in (Role.CONTRACT, Role.TESTS):
            recorded, now = found.old(role), found.new(role)
            # A first contract has nothing to compare with; first tests matter if the contract changed.
            if not recorded and (role is Role.CONTRACT or not found.differs(Role.CONTRACT)):
                continue
            if role is Role.CONTRACT and not now:
                continue
            for side, files in ((_AS_RECORDED, recorded), (_AS_IT_IS, now)):
                asked |= _readable(files, side, role)
            new |= {entry.oid for entry in now.values() if entry.is_file}
            if role is Role.TESTS and now and found.differs(Role.CONTRACT):
                # An added file may be an excluded one under another name.
                optional |= _readable(found.left_out_of(role), _AS_RECORDED, role)
    headers = _headers(component, optional | asked, objects)
    for oid, (path, side) in asked.items():
        if headers[oid].size > BIG_FILE:
            raise _too_large(component, path, side)
    sizes = objects.sizes(sorted(new - asked.keys() - optional.keys()))
    small = [oid for oid, size in sizes.items() if size <= _MAY_BE_BLANK]
    few = [oid for oid in optional if headers[oid].size <= BIG_FILE]
    return {oid: objects.read(oid) for oid in dict.fromkeys((*asked, *few, *small))}


def _readable(
    files: Mapping[RepoPath, RecordedFile] | Mapping[RepoPath, Entry], side: str, role: Role
) -> dict[str, tuple[RepoPath, str]]:
    """Choose the contracts and the Python tests among some files, by blob id."""
    return {
        each.oid: (path, side)
        for path, each in files.items()
        if each.mode in {REGULAR, EXECUTABLE} and (role is Role.CONTRACT or is_python(path))
    }


def _headers(
    component: Component, asked: Mapping[str, tuple[RepoPath, str]], objects: Objects
) -> dict[str, Header]:
    """Look up what will be read.

    Raises:
        UndecidedError: an object is missing.
    """
    found: dict[str, Header] = {}
    for oid, header in zip(asked, objects.headers(list(asked)), strict=True):
        if header is None:
            path, side = asked[oid]
            raise UndecidedError(
                f"{path.quoted}{side} ({oid[:12]}) is not in this repository",
                f"{FETCH_MISSING}; if no clone has it, record the component in a separate commit: "
                f"git patchgate baseline capture {component.id}",
            )
        found[oid] = header
    return found


def _too_large(component: Component, path: RepoPath, side: str) -> UndecidedError:
    keep_out = f"exclude it from component {component.id} in its declaration, in a separate commit"
    return UndecidedError(
        f"{path.quoted}{side} has more than {BIG_FILE >> 20} MiB, so it cannot be compared",
        keep_out if side == _AS_RECORDED else f"make it smaller, or {keep_out}",
    )


def _sums(objects: Objects, oids: list[str]) -> dict[str, str]:
    """Compute the SHA-256 of the contents of many blobs; the large ones are read in pieces."""
    sizes = objects.sizes(oids)
    large = [oid for oid in oids if sizes[oid] > BIG_FILE]
    found = {oid: objects.sha256(oid) for oid in large}
    left = [oid for oid in oids if oid not in found]
    while left:
        contents = objects.read_some(left, BIG_FILE + _AT_ONCE)
        found |= {oid: hashlib.sha256(content).hexdigest() for oid, content in contents.items()}
        left = left[len(contents) :]
    return found
