"""Gather what the drift gate looks at: the files of components in a tree, their baselines, what differs.

Decides what is read: names and object ids always, contents only of contracts and tests that differ, SHA-256
only where a change brings a baseline. Everything comes from the object database, never from the disk. What
is said of it is for `gates.drift`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from patchgate.change.model import GITLINK, REGULAR, Entry
from patchgate.change.path import RepoPath
from patchgate.declared.baseline import (
    MAX_BASELINE_BYTES,
    Baseline,
    BaselineFault,
    Recorded,
    RecordedFile,
    read_baseline,
    write_baseline,
)
from patchgate.declared.component import Component, Components, Role
from patchgate.errors import UndecidedError
from patchgate.gates.component_case import ComponentState
from patchgate.gates.drift import is_python, touches_tests
from patchgate.gates.drift_comparison import Comparison, compare
from patchgate.git.objects import Objects
from patchgate.git.repository import BIG_FILE
from patchgate.git.tree_view import TreeView

_AT_ONCE = 16 << 20

Files = Mapping[RepoPath, tuple[Role, Entry]]


def component_states(
    components: Components,
    near: Mapping[str, set[RepoPath]],
    view: TreeView,
    old: Mapping[RepoPath, Entry | None],
) -> tuple[ComponentState, ...]:
    """Gather the components near a change, in the order of their ids.

    Args:
        near: for each the paths of it that the change touches, its baseline's among them.
        view: the tree that the change results in.
        old: what stood before at every path that the change touches.

    Raises:
        UndecidedError: an object is missing, or too large.
    """
    return tuple(
        _state(components[name], frozenset(near[name]), view, old)
        for name in sorted(near)
        if components.get(name) is not None
    )


def state_of(component: Component, view: TreeView) -> ComponentState:
    """Gather one component of a tree that no change is asked about."""
    return _state(component, frozenset(), view, {})


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
    """Read the baseline of a component from what a tree holds at its path; None where nothing is."""
    return _read(component, entry, objects)[0]


def record(
    component: Component,
    view: TreeView,
    files: Files | None = None,
    known: Mapping[str, str] | None = None,
) -> dict[RepoPath, RecordedFile]:
    """Say what a capture of a component would record of its files.

    Args:
        files: its files, where they are known already.
        known: the SHA-256 of some contents by blob id; these are not read again.
    """
    chosen = files_of(component, view) if files is None else files
    sums = dict(known or {})
    wanted = {entry.oid for _, entry in chosen.values() if entry.mode != GITLINK} - sums.keys()
    sums |= _sums(view.objects, sorted(wanted))
    return {
        path: RecordedFile(role, entry.mode, entry.oid, None if entry.mode == GITLINK else sums[entry.oid])
        for path, (role, entry) in chosen.items()
    }


def _state(
    component: Component, changed: frozenset[RepoPath], view: TreeView, old: Mapping[RepoPath, Entry | None]
) -> ComponentState:
    objects, place = view.objects, component.baseline
    files = files_of(component, view)
    recorded, written = _read(component, view.entry(place.raw), objects)
    if place not in changed:
        compared = [compare(files, recorded)] if isinstance(recorded, Baseline) else []
        texts = _texts(component, compared, objects)
        return ComponentState(component, files, recorded, recorded, changed, texts)
    before = recorded_at(component, old.get(place), objects)
    capture = _capture(component, view, files, before, written) if recorded is not None else None
    compared = []
    if isinstance(recorded, Baseline) and capture == written:
        compared.append(compare(files, recorded))
    is_asked = component.contract in changed or capture != written
    state = ComponentState(component, files, recorded, before, changed, {}, capture, written)
    if isinstance(before, Baseline) and (is_asked or touches_tests(state)):
        compared.append(compare(files, before))
    texts = _texts(component, compared, objects)
    return ComponentState(component, files, recorded, before, changed, texts, capture, written)


def _capture(
    component: Component, view: TreeView, files: Files, before: Recorded | None, written: bytes | None
) -> bytes:
    """Write what a capture would; what was recorded before is believed first, and read where that differs."""
    if isinstance(before, Baseline):
        known = {each.oid: each.sha256 for each in before.files.values() if each.sha256 is not None}
        believed = write_baseline(component.id, record(component, view, files, known))
        if believed == written:
            return believed
    return write_baseline(component.id, record(component, view, files))


def _read(
    component: Component, entry: Entry | None, objects: Objects
) -> tuple[Recorded | None, bytes | None]:
    """Read a baseline; give its bytes too, where they can be read."""
    if entry is None:
        return None, None
    again = f"take it out, then record it anew: git patchgate baseline capture {component.id}"
    if entry.mode != REGULAR:
        return BaselineFault("this baseline is no plain file (mode " + entry.mode + ")", 1, again), None
    header = objects.header(entry.oid)
    if header is not None and header.size > MAX_BASELINE_BYTES:
        fault = f"this baseline has more than {MAX_BASELINE_BYTES >> 20} MiB"
        return BaselineFault(fault, 1, again), None
    content = objects.read(entry.oid)
    return read_baseline(content, component.id), content


def _texts(component: Component, compared: Iterable[Comparison], objects: Objects) -> dict[str, bytes]:
    """Read the contracts and the Python tests that differ, on both sides."""
    wanted: dict[str, RepoPath] = {}
    for found in compared:
        for role in (Role.CONTRACT, Role.TESTS):
            recorded, now = found.old(role), found.new(role)
            if not recorded or (role is Role.CONTRACT and not now):
                continue
            for path, each in recorded.items():
                if each.mode.startswith("100"):
                    wanted.setdefault(each.oid, path)
            for path, entry in now.items():
                if entry.is_file:
                    wanted.setdefault(entry.oid, path)
    asked = {oid: path for oid, path in wanted.items() if path == component.contract or is_python(path)}
    headers = dict(zip(asked, objects.headers(list(asked)), strict=True))
    for oid, path in asked.items():
        if headers[oid] is None:
            raise UndecidedError(
                f"{path.quoted} as it was recorded ({oid[:12]}) is not in this repository",
                "git fetch --refetch (or --unshallow) brings what a partial or shallow clone left out; if "
                f"nobody has it, record the component in a commit of its own: "
                f"git patchgate baseline capture {component.id}",
            )
    return {oid: objects.read(oid) for oid in asked}


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
