"""Plan what each section of a patch makes of its file: git's effect must equal the plan.

The plan (the place of each hunk, the resulting path, mode and bytes) comes from our own reading alone. git
applies the patch independently, and any difference refuses the patch.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import NamedTuple

from patchgate.git.model import GITLINK, REGULAR
from patchgate.git.path import RepoPath
from patchgate.patches.hunk_mismatch import FitFailure, explain_mismatch
from patchgate.patches.line_ends import FileLines, HunkLines, adapt_line_ends, read_hunk
from patchgate.patches.patch_model import (
    MARKER,
    MAX_FAULTS,
    NEW_INCOMPLETE,
    OLD_INCOMPLETE,
    Detail,
    Fault,
    Hunk,
    PatchFix,
    PatchSection,
    SectionKind,
)
from patchgate.patches.patch_parser import parse
from patchgate.patches.section_fixes import fix_as_new_file, fix_mode, remove_section
from patchgate.values import dataclass, field, replace

_FOLDER = "040000"
_SUBPROJECT = re.compile(rb"[+ ]Subproject commit ([0-9a-f]{40}|[0-9a-f]{64})\n")

# How many lines a section may compare while it looks for hunks elsewhere: a file of equal lines would
# otherwise cost the product of its length and the number of hunks.
_SEARCH_BUDGET = 4_000_000
# For how many hunks the longest run is looked for, each at the cost of one pass over the file.
_SEARCHED = 3
_PIECE = 1 << 20
_INCOMPLETE = OLD_INCOMPLETE | NEW_INCOMPLETE
_CONTEXT, _PLUS, _MINUS = b" +-"


class Placement(NamedTuple):
    """The place of one hunk: its number, its line in the old file, and its distance from the header's line.

    Both count from 1. For a hunk without old lines, `line` is the line before it (0 at the file's
    beginning), as git writes it.
    """

    hunk: int
    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """The whole new file, and the place of each hunk."""

    result: bytes
    placements: tuple[Placement, ...]

    @property
    def moved(self) -> tuple[Placement, ...]:
        """The hunks that are on another line than their header says."""
        return tuple(placement for placement in self.placements if placement.offset)


def fit(section: PatchSection, preimage: bytes) -> Fitted | tuple[Fault, ...]:
    """Apply a section's hunks to a file, with line endings already adapted, or report why they do not fit.

    Args:
        preimage: the old file's bytes; empty for an added file.

    Returns:
        The new file; or a fault for each hunk that does not fit (`hunk-mismatch`, `hunk-ambiguous`), at
        most `MAX_FAULTS`, its details as `hunk_mismatch` says.
    """
    if not section.rows:
        return Fitted(preimage, ())
    whole = _fit_whole_file(section, preimage)
    if whole is not None:
        return whole
    file = FileLines(preimage)
    stated = _fit_as_stated(section, file)
    if stated is not None:
        return stated
    search = _HunkSearch(file)
    pieces: list[bytes] = []
    placements: list[Placement] = []
    faults: list[Fault] = []
    done = drift = 0
    is_complete = file.is_complete
    for number, hunk in enumerate(section.hunks, start=1):
        lines = read_hunk(section, hunk)
        is_sound = hunk.new_position == hunk.old_position + drift
        place = search.place(hunk, lines, done, is_sound=is_sound)
        shift, drift = drift, drift + hunk.added - hunk.removed
        if isinstance(place, FitFailure):
            is_searched = len(faults) < _SEARCHED
            faults.append(
                explain_mismatch(section, number, hunk, lines, file, place, search=is_searched, shift=shift)
            )
            if len(faults) >= MAX_FAULTS:
                break
            continue
        offset = place - hunk.old_position
        placements.append(Placement(number, hunk.old_start + offset, offset))
        pieces += file.lines[done:place]
        pieces += lines.new
        done = place + len(lines.old)
        if done == file.count:
            is_complete = not hunk.new_incomplete
    if faults:
        return tuple(faults)
    pieces += file.lines[done : file.count]
    if is_complete and pieces:
        pieces.append(b"")
    return Fitted(b"\n".join(pieces), tuple(placements))


def _fit_whole_file(section: PatchSection, preimage: bytes) -> Fitted | None:
    """Fit the one hunk that is a whole added or deleted file, without splitting it into lines.

    Measured: as lists of lines, 200 MB of added empty lines took 9 GB.
    """
    if section.kind not in {SectionKind.ADD, SectionKind.DELETE} or len(section.rows) != 1:
        return None
    (hunk,) = section.hunks
    is_incomplete = hunk.new_incomplete if section.kind is SectionKind.ADD else hunk.old_incomplete
    end = hunk.end - (len(MARKER) + 2 if is_incomplete else 0)
    text = _without_signs(section.raw, hunk.body, end, b"\n+" if section.kind is SectionKind.ADD else b"\n-")
    if section.kind is SectionKind.ADD:
        return Fitted(text, (Placement(1, hunk.old_start, 0),)) if not preimage else None
    return Fitted(b"", (Placement(1, hunk.old_start, 0),)) if text == preimage else None


def _fit_as_stated(section: PatchSection, file: FileLines) -> Fitted | None:
    """Fit hunks that all apply on the line that their header says, as nearly always; None for any other.

    The conditions are those of `_HunkSearch.place`; without its values, it takes two thirds of the time.
    """
    raw, lines, count = section.raw, file.lines, file.count
    pieces: list[bytes] = []
    placements: list[Placement] = []
    done = drift = 0
    for old_start, old_count, new_start, new_count, _, _, start, end, form, _ in section.rows:
        place = old_start - 1 if old_count else old_start
        is_sound = (new_start - 1 if new_count else new_start) == place + drift
        if form & _INCOMPLETE or place < done or not is_sound or (place and old_start <= 1):
            return None
        body = raw[raw.index(b"\n", start) + 1 : end - 1].split(b"\n")
        below = place + old_count
        # Only at the file's end may a hunk end without context, and only there the last LF may be missing.
        may_end = file.is_complete if below == count else below < count and body[-1][0] == _CONTEXT
        if not may_end or lines[place:below] != [line[1:] for line in body if line[0] != _PLUS]:
            return None
        placements.append(Placement(len(placements) + 1, old_start, 0))
        pieces += lines[done:place]
        pieces += [line[1:] for line in body if line[0] != _MINUS]
        done = below
        drift += new_count - old_count
    pieces += lines[done:count]
    if file.is_complete and pieces:
        pieces.append(b"")
    return Fitted(b"\n".join(pieces), tuple(placements))


def _without_signs(raw: bytes, start: int, end: int, sign: bytes) -> bytes:
    """Remove the first byte of each line, piece by piece, without a second copy of a large hunk."""
    text = io.BytesIO()
    while start < end:
        stop = min(raw.find(b"\n", min(start + _PIECE, end - 1)) + 1 or end, end)
        text.write(raw[start + 1 : stop].replace(sign, b"\n"))
        start = stop
    return text.getvalue()


class _HunkSearch:
    """Finds the only place of each hunk in the old file."""

    def __init__(self, file: FileLines) -> None:
        self.file = file
        self.budget = _SEARCH_BUDGET

    def place(self, hunk: Hunk, lines: HunkLines, done: int, *, is_sound: bool) -> int | FitFailure:
        """Find the line (from 0) where a hunk applies, or why it applies nowhere.

        Args:
            done: the first old line after the earlier hunks.
            is_sound: its new start agrees with its old start and the hunks before, so git starts its search
                at the same line.
        """
        stated = hunk.old_position
        fits = stated >= done and self._matches(lines, stated) and self._may_apply(hunk, lines, stated)
        if fits and is_sound:
            return stated
        if not lines.old:
            return FitFailure("no-context")
        found = self._occurrences(lines)
        if found is None:
            return FitFailure("too-many")
        if not found:
            return FitFailure("absent")
        if len(found) > 1:
            return FitFailure("ambiguous", tuple(found))
        only = found[0]
        if only < done:
            return FitFailure("order", (only,))
        # git compares only the first bytes of a last line without newline, so it may match too early.
        is_loose = lines.old_incomplete and lines.trailing > 0
        if self._may_apply(hunk, lines, only) and (not is_loose or fits):
            return only
        return FitFailure("beginning" if hunk.old_start <= 1 and only else "end", (only,))

    def _may_apply(self, hunk: Hunk, lines: HunkLines, place: int) -> bool:
        """Return whether git would apply the hunk at a place where its lines match."""
        at_end = place + len(lines.old) == self.file.count
        if hunk.old_start <= 1 and place:
            return False
        if hunk.new_incomplete and not at_end:
            return False
        return at_end or lines.trailing > 0

    def _matches(self, lines: HunkLines, place: int) -> bool:
        """Return whether the old lines are at `place`, newlines included."""
        file, end = self.file, place + len(lines.old)
        if end > file.count or file.lines[place:end] != lines.old:
            return False
        if lines.old_incomplete:
            return end == file.count and not file.is_complete
        return end < file.count or file.is_complete

    def _occurrences(self, lines: HunkLines) -> list[int] | None:
        """Find the places of the old lines in the whole file, at most two; None if the budget is spent."""
        index, candidates = self.file.rarest(lines.old)
        found: list[int] = []
        for candidate in candidates:
            self.budget -= len(lines.old)
            if self.budget < 0:
                return None
            if candidate >= index and self._matches(lines, candidate - index):
                found.append(candidate - index)
                if len(found) > 1:
                    break
        return found


@dataclass(frozen=True, slots=True)
class Preimage:
    """A file before the patch: its mode (six octal digits) and its bytes; for a gitlink, its commit id."""

    mode: str
    content: bytes


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One path after the patch: its mode and bytes; mode None if it is removed."""

    path: RepoPath
    mode: str | None = None
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class SectionPlan:
    """What one section makes: a planned file for each path that it writes or removes, and notes.

    `adapted` is the section with the file's line endings; empty if it needs no change.
    """

    steps: tuple[PlannedFile, ...]
    adapted: bytes = b""
    notes: tuple[Fault, ...] = ()
    copied_from: RepoPath | None = None


@dataclass(frozen=True, slots=True)
class PatchTargets:
    """The files that a patch applies to (None: no file at that path), and the paths that it removes."""

    preimages: Mapping[RepoPath, Preimage | None]
    removed: frozenset[RepoPath] = field(default_factory=frozenset)


def list_removed_paths(sections: tuple[PatchSection, ...]) -> frozenset[RepoPath]:
    """Return the paths that a patch removes, by deletion or by rename."""
    return frozenset(
        section.old_path
        for section in sections
        if section.old_path is not None and section.kind in {SectionKind.DELETE, SectionKind.RENAME}
    )


def plan_section(section: PatchSection, targets: PatchTargets) -> SectionPlan | tuple[Fault, ...]:
    """Plan one section, or report why it does not match its file.

    Returns:
        The plan; or the faults `target-missing`, `already-exists`, `effect-mismatch`, or those of `fit`.
    """
    faults = _misplaced(section, targets)
    if faults:
        return faults
    old = targets.preimages.get(section.old_path) if section.old_path is not None else None
    if GITLINK in {section.new_mode, old.mode if old else None}:
        return _plan_gitlink(section, old)
    preimage = old.content if old is not None else b""
    adapted, section_now = adapt_line_ends(section, preimage), section
    notes: list[Fault] = []
    if adapted is not None:
        again = parse(adapted)
        if isinstance(again, tuple):
            return again
        message = f"the lines of the patch for {section.path.quoted} were given the line endings of the file"
        notes.append(Fault("eol-adapted", section.line, message, hint="nothing to do"))
        section_now = again.sections[0]
    fitted = fit(section_now, preimage)
    if isinstance(fitted, tuple):
        if adapted is not None:
            # A fix of the adapted lines would bring their line ends into the patch that was sent.
            fitted = tuple(replace(fault, fix=_without_lines(fault.fix)) for fault in fitted)
        return tuple(_at(fault, section.line - section_now.line) for fault in fitted)
    notes.extend(_moved(section, each) for each in fitted.moved)
    return SectionPlan(
        steps=_steps(section, section.new_mode or (old.mode if old else REGULAR), fitted.result),
        adapted=adapted or b"",
        notes=tuple(notes),
        copied_from=section.old_path if section.kind is SectionKind.COPY else None,
    )


def _misplaced(section: PatchSection, targets: PatchTargets) -> tuple[Fault, ...]:
    """Find what prevents a section from applying, before any line is compared."""
    found = (_old_misplaced(section, targets), _new_misplaced(section, targets))
    return tuple(fault for fault in found if fault is not None)


def _old_misplaced(section: PatchSection, targets: PatchTargets) -> Fault | None:
    if section.old_path is None:
        return None
    old = targets.preimages.get(section.old_path)
    if old is None or old.mode == _FOLDER:
        hint = "name a file that exists; a new file needs `new file mode 100644` and --- /dev/null"
        fix = fix_as_new_file(section)
        if section.kind is SectionKind.DELETE:
            hint, fix = "leave the section out; there is nothing to delete", remove_section(section)
        message = f"{section.old_path.quoted} does not exist"
        return Fault("target-missing", section.line, message, hint=hint, fix=fix)
    if section.old_mode is None or section.old_mode == old.mode:
        return None
    name, details = section.old_path.quoted, {"expected": section.old_mode, "actual": old.mode}
    message = f"the patch says that {name} has mode {section.old_mode}, but it has {old.mode}"
    hint, fix = "make the patch from the file as it is: git diff", fix_mode(section, old.mode)
    return Fault("effect-mismatch", section.line, message, hint=hint, fix=fix, details=details)


def _new_misplaced(section: PatchSection, targets: PatchTargets) -> Fault | None:
    path = section.new_path
    if path is None or path == section.old_path or path in targets.removed:
        return None
    existing = targets.preimages.get(path)
    if existing is None:
        return None
    message = f"{path.quoted} already exists"
    if _is_made(section, existing):
        message, fix = f"{message}, exactly as the patch makes it", remove_section(section)
        return Fault("already-exists", section.line, message, hint="leave the section out", fix=fix)
    hint = "change the existing file instead, or give the new one another name"
    return Fault("already-exists", section.line, message, hint=hint)


def _is_made(section: PatchSection, existing: Preimage) -> bool:
    """Return whether the existing file is exactly the one that the section adds."""
    if section.kind is not SectionKind.ADD or existing.mode != section.new_mode:
        return False
    fitted = fit(section, b"")
    return not isinstance(fitted, tuple) and fitted.result == existing.content


def _steps(section: PatchSection, mode: str, content: bytes) -> tuple[PlannedFile, ...]:
    """Return the planned files of a section whose result is known."""
    if section.new_path is None:
        assert section.old_path is not None
        return (PlannedFile(section.old_path),)
    made = PlannedFile(section.new_path, mode, content)
    if section.kind is SectionKind.RENAME and section.old_path is not None:
        return (PlannedFile(section.old_path), made)
    return (made,)


def _plan_gitlink(section: PatchSection, old: Preimage | None) -> SectionPlan | tuple[Fault, ...]:
    """Plan a submodule's entry: its content is the commit's id, written as one line of text."""
    if section.new_path is None:
        return SectionPlan(_steps(section, GITLINK, b""))
    found = _SUBPROJECT.findall(section.raw, section.start, section.end)
    if section.n_hunks == 0 and old is not None:
        return SectionPlan(_steps(section, section.new_mode or old.mode, old.content))
    if len(found) != 1:
        message = f"{section.path.quoted} is a submodule, but the patch names no commit for it"
        hint, fix = "leave the submodule out of the patch", remove_section(section)
        return (Fault("effect-mismatch", section.line, message, hint=hint, fix=fix),)
    return SectionPlan(_steps(section, section.new_mode or GITLINK, found[0]))


def _without_lines(fix: PatchFix | None) -> PatchFix | None:
    """Keep a fix only if it adds no line of a file: a header, or lines that are left out."""
    return fix if fix is None or fix.text is None or fix.text.startswith("@@ ") else None


def _at(fault: Fault, shift: int) -> Fault:
    """Move a fault of an adapted section to its line in the patch that was sent."""
    if not shift:
        return fault
    details = dict(fault.details)
    if isinstance(details.get("patch_line"), int):
        details["patch_line"] = int(str(details["patch_line"])) + shift
    line = None if fault.line is None else fault.line + shift
    fix = fault.fix and PatchFix(fault.fix.first + shift, fault.fix.text, fault.fix.last + shift)
    return Fault(fault.rule, line, fault.message, hint=fault.hint, fix=fix, details=details)


def _moved(section: PatchSection, at: Placement) -> Fault:
    details: dict[str, Detail] = {"hunk": at.hunk, "found_at": [at.line]}
    where = f"applies at line {at.line}, {at.offset:+d} from its header"
    message = f"hunk {at.hunk} of {section.path.quoted} {where}"
    return Fault("hunk-offset", section.line, message, hint="nothing to do", details=details)
