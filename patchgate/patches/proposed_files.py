"""What a patch says it changes, if git could not apply it: paths, files, added lines.

Only for refused patches, so that the policy's findings are reported together with the others. A patch that
is applied is judged by its effect alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from patchgate.git.base_files import BaseFiles
from patchgate.git.diff import Detail
from patchgate.git.model import (
    GITLINK,
    REGULAR,
    SYMLINK,
    TREE_MODE,
    Descent,
    Entry,
    FileChange,
    Line,
    folders_above,
)
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath, faults
from patchgate.patches.patch_model import Patch, PatchSection, SectionKind
from patchgate.patches.planning import Preimage

_PREIMAGE_BYTES = 256 << 20
_PIECE = 1 << 18
_AHEAD_BYTES = 4 << 20
_AT_ONCE = 200


def list_proposed_files(
    patch: Patch, ground: BaseFiles, planned: Mapping[RepoPath, Entry | None], unknown: str, detail: Detail
) -> list[FileChange]:
    """List the files that a patch says it changes; `unknown` is used for an unknown object id."""
    files: dict[RepoPath, FileChange] = {}
    for section in patch.sections:
        leaves = section.old_path if section.old_path != section.new_path else None
        if leaves is not None and section.kind is not SectionKind.COPY:
            gone = _old_entry(section, ground, unknown)
            files[leaves] = FileChange(
                leaves,
                gone,
                None,
                added_lines=0,
                removed_lines=section.removed_lines,
                n_hunks=section.n_hunks,
            )
        if section.new_path is None:
            continue
        path = section.new_path
        old = _old_entry(section, ground, unknown) if path == section.old_path else None
        mode = section.new_mode or (old.mode if old is not None else REGULAR)
        files[path] = FileChange(
            path,
            old,
            planned.get(path) or Entry(mode, unknown),
            added_lines=section.added_lines,
            removed_lines=section.removed_lines,
            n_hunks=section.n_hunks,
            size=0,
            watched=_watched(section, detail),
            link_target=b"",
        )
    return list(files.values())


def _old_entry(section: PatchSection, ground: BaseFiles, unknown: str) -> Entry:
    entry = ground.entries.get(section.old_path) if section.old_path is not None else None
    if entry is None or entry.mode == TREE_MODE:
        return Entry(section.old_mode or REGULAR, unknown)
    return entry


class Preimages(Mapping[RepoPath, Preimage | None]):
    """The touched files, read ahead in the order of the patch, so that few are in memory at once.

    A question to git for each file costs half of the time of a patch over 10,000 files (measured). With
    `knows_texts`, `objects` will know which of them are text, so that none is read again to count lines.
    """

    def __init__(
        self, objects: Objects, entries: Mapping[RepoPath, Entry | None], *, knows_texts: bool = False
    ) -> None:
        self._knows_texts = knows_texts
        self._objects = objects
        self._entries = entries
        blobs = [entry.oid for entry in entries.values() if entry is not None and _is_blob(entry)]
        self._oids = list(dict.fromkeys(blobs))
        self._places = {oid: place for place, oid in enumerate(self._oids)}
        self._ahead: dict[str, bytes] = {}

    def __getitem__(self, path: RepoPath) -> Preimage | None:
        entry = self._entries[path]
        if entry is None:
            return None
        if entry.mode == TREE_MODE:
            return Preimage(entry.mode, b"")
        if entry.mode == GITLINK:
            return Preimage(entry.mode, entry.oid.encode("ascii"))
        if entry.oid not in self._ahead:
            place = self._places[entry.oid]
            self._ahead = self._objects.read_some(self._oids[place : place + _AT_ONCE], _AHEAD_BYTES)
        content = self._ahead.get(entry.oid)
        if content is None:
            content = self._objects.read(entry.oid, _PREIMAGE_BYTES)
            self._ahead = {entry.oid: content}
        if self._knows_texts:
            self._objects.know_text(entry.oid, content)
        return Preimage(entry.mode, content)

    def __iter__(self) -> Iterator[RepoPath]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _is_blob(entry: Entry) -> bool:
    return entry.mode not in {TREE_MODE, GITLINK}


def content_of(preimage: Preimage | None) -> bytes | None:
    """Return a file's bytes; None if there is no file."""
    return None if preimage is None or preimage.mode == TREE_MODE else preimage.content


def list_paths(patch: Patch) -> list[RepoPath]:
    """List every path that a patch names, once."""
    named = (path for section in patch.sections for path in (section.old_path, section.new_path))
    return list(dict.fromkeys(path for path in named if path is not None))


def find_paths_behind_links(patch: Patch) -> dict[RepoPath, RepoPath]:
    """Find the paths that a patch adds below a symlink or gitlink that it also adds."""
    links = {
        section.new_path
        for section in patch.sections
        if section.new_path is not None and section.new_mode in {SYMLINK, GITLINK}
    }
    if not links:
        return {}
    made = [section.new_path for section in patch.sections if section.new_path is not None]

    def nearest(above: RepoPath | None, folder: bytes) -> RepoPath | None:
        return RepoPath(folder) if RepoPath(folder) in links else above

    descent = Descent[RepoPath | None](None, nearest)
    return {path: link for path in made if (link := descent.at(path.parent)) is not None}


def filter_placeable_files(
    files: Iterable[FileChange], blocked: Mapping[RepoPath, RepoPath]
) -> list[FileChange]:
    """Leave out files that cannot be in a tree: below a link, with a forbidden name, above another file."""
    reached = [file for file in files if file.path not in blocked and not faults(file.path, from_text=True)]
    folders = folders_above(file.path for file in reached if file.new is not None)
    return [file for file in reached if file.new is None or file.path.raw not in folders]


def list_copy_sources(patch: Patch) -> tuple[RepoPath, ...]:
    """List the sources of a patch's copies."""
    return tuple(
        section.old_path
        for section in patch.sections
        if section.kind is SectionKind.COPY and section.old_path is not None
    )


def pair_renamed_paths(patch: Patch) -> tuple[tuple[RepoPath, RepoPath], ...]:
    """Pair the two names of each rename and copy."""
    return tuple(
        (section.old_path, section.new_path)
        for section in patch.sections
        if section.kind in {SectionKind.RENAME, SectionKind.COPY}
        and section.old_path is not None
        and section.new_path is not None
    )


def _watched(section: PatchSection, detail: Detail) -> tuple[Line, ...]:
    """Pick the suspicious lines that a section would add, with their numbers in the new file."""
    if detail.watch is None:
        return ()
    found: list[Line] = []
    for hunk in section.hunks:
        number, start = hunk.new_position, hunk.body
        # In pieces: as values, 100 million empty lines took 17 GB (measured).
        while start < hunk.end:
            stop = min(section.raw.find(b"\n", min(start + _PIECE, hunk.end - 1)) + 1, hunk.end)
            added: list[Line] = []
            for text in section.raw[start:stop].split(b"\n"):
                number += text.startswith((b"+", b" "))
                if text.startswith(b"+"):
                    added.append(Line(number, text[1:]))
            found.extend(added[index] for index in detail.watch([line.text for line in added]))
            start = stop
    return tuple(found)
