"""What a patch says by itself, where git could not make its effect: its paths, its files, its added lines.

Only for refusals: policy speaks about these paths too, so that all findings come at once. What lands is
judged by its effect alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patchgate.change.model import GITLINK, REGULAR, Entry, FileChange, Line
from patchgate.change.patch_model import Kind, Patch, Section
from patchgate.change.path import RepoPath
from patchgate.change.planning import Preimage
from patchgate.git.diff import Detail
from patchgate.git.objects import TREE_MODE, Objects
from patchgate.git.preimages import Ground

_PREIMAGE_BYTES = 256 << 20


def proposed_files(
    patch: Patch, ground: Ground, planned: Mapping[RepoPath, Entry | None], unknown: str, detail: Detail
) -> list[FileChange]:
    """List the files that a patch says it changes; `unknown` stands for an object id that nobody knows."""
    files: dict[RepoPath, FileChange] = {}
    for section in patch.sections:
        leaves = section.old_path if section.old_path != section.new_path else None
        if leaves is not None and section.kind is not Kind.COPY:
            gone = _old_entry(section, ground, unknown)
            files[leaves] = FileChange(leaves, gone, None, 0, section.removed_lines, section.n_hunks)
        if section.new_path is None:
            continue
        path = section.new_path
        old = _old_entry(section, ground, unknown) if path == section.old_path else None
        mode = section.new_mode or (old.mode if old is not None else REGULAR)
        files[path] = FileChange(
            path,
            old,
            planned.get(path) or Entry(mode, unknown),
            section.added_lines,
            section.removed_lines,
            section.n_hunks,
            size=0,
            watched=_watched(section, detail),
            link_target=b"",
        )
    return list(files.values())


def _old_entry(section: Section, ground: Ground, unknown: str) -> Entry:
    entry = ground.entries.get(section.old_path) if section.old_path is not None else None
    if entry is None or entry.mode == TREE_MODE:
        return Entry(section.old_mode or REGULAR, unknown)
    return entry


class Preimages(Mapping[RepoPath, Preimage | None]):
    """The touched files, read when a section asks for one, so that they are never all held at once."""

    def __init__(self, objects: Objects, entries: Mapping[RepoPath, Entry | None]) -> None:
        self._objects = objects
        self._entries = entries

    def __getitem__(self, path: RepoPath) -> Preimage | None:
        entry = self._entries[path]
        if entry is None:
            return None
        if entry.mode == TREE_MODE:
            return Preimage(entry.mode, b"")
        if entry.mode == GITLINK:
            return Preimage(entry.mode, entry.oid.encode("ascii"))
        return Preimage(entry.mode, self._objects.read(entry.oid, _PREIMAGE_BYTES))

    def __iter__(self) -> Iterator[RepoPath]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def content_of(preimage: Preimage | None) -> bytes | None:
    """Give a file's bytes; None where there is no file."""
    return None if preimage is None or preimage.mode == TREE_MODE else preimage.content


def paths_of(patch: Patch) -> list[RepoPath]:
    """Name every path that a patch speaks of, once."""
    named = (path for section in patch.sections for path in (section.old_path, section.new_path))
    return list(dict.fromkeys(path for path in named if path is not None))


def copied_by(patch: Patch) -> tuple[RepoPath, ...]:
    """Name the sources of a patch's copies."""
    return tuple(
        section.old_path
        for section in patch.sections
        if section.kind is Kind.COPY and section.old_path is not None
    )


def _watched(section: Section, detail: Detail) -> tuple[Line, ...]:
    """Pick the suspicious ones of the lines that a section would add, by their numbers in its new file."""
    if detail.watch is None:
        return ()
    found: list[Line] = []
    for hunk in section.hunks:
        number = hunk.new_position
        added: list[Line] = []
        for text in section.body(hunk).split(b"\n"):
            number += text.startswith((b"+", b" "))
            if text.startswith(b"+"):
                added.append(Line(number, text[1:]))
        found.extend(added[index] for index in detail.watch([line.text for line in added]))
    return tuple(found)
