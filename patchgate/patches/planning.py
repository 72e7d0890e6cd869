"""What each section of a patch would make of the file that it meets: the plan that git's effect must equal.

Decides, for one section and the file as it is, the resulting path, mode and bytes, or what is wrong. The
plan comes from our own reading alone; `git` makes the effect independently, and any difference refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from patchgate.git.model import GITLINK, REGULAR
from patchgate.git.path import RepoPath
from patchgate.patches.fitting import fit
from patchgate.patches.line_ends import adapt_line_ends
from patchgate.patches.misfit_mending import as_new_file, with_mode, without_section
from patchgate.patches.patch import parse
from patchgate.patches.patch_model import Fault, Kind, Mending, Section

_FOLDER = "040000"
_SUBPROJECT = re.compile(rb"[+ ]Subproject commit ([0-9a-f]{40}|[0-9a-f]{64})\n")


@dataclass(frozen=True, slots=True)
class Preimage:
    """A file as a section meets it: its mode (six octal digits) and its bytes; those of a gitlink its id."""

    mode: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one path: its mode and bytes, or (None) it is gone."""

    path: RepoPath
    mode: str | None = None
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Planned:
    """What one section makes: a step for each path that it writes or removes, the bytes to apply, notes."""

    steps: tuple[Step, ...]
    section: bytes
    notes: tuple[Fault, ...] = ()
    copied_from: RepoPath | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The files that a patch meets: what stands at a path (None: nothing), and which paths it removes."""

    preimages: Mapping[RepoPath, Preimage | None]
    removed: frozenset[RepoPath] = field(default_factory=frozenset)


def removed_by(sections: tuple[Section, ...]) -> frozenset[RepoPath]:
    """Name the paths that a patch removes, by deletion or by renaming them away."""
    return frozenset(
        section.old_path
        for section in sections
        if section.old_path is not None and section.kind in {Kind.DELETE, Kind.RENAME}
    )


def plan_section(section: Section, around: Surroundings) -> Planned | tuple[Fault, ...]:
    """Plan one section, or say why it does not meet its file.

    Returns:
        The plan; or the faults `target-missing`, `already-exists`, `effect-mismatch`, or those of `fit`.
    """
    faults = _misplaced(section, around)
    if faults:
        return faults
    old = around.preimages.get(section.old_path) if section.old_path is not None else None
    if GITLINK in {section.new_mode, old.mode if old else None}:
        return _plan_gitlink(section, old)
    preimage = old.content if old is not None else b""
    raw = section.raw[section.start : section.end]
    adapted = adapt_line_ends(section, preimage)
    notes: list[Fault] = []
    if adapted is not None:
        again = parse(adapted)
        if isinstance(again, tuple):
            return again
        notes.append(_adapted(section))
        section_now, raw = again.sections[0], adapted
    else:
        section_now = section
    fitted = fit(section_now, preimage)
    if isinstance(fitted, tuple):
        if adapted is not None:
            # A mending of the adapted lines would bring their line ends into the patch that was sent.
            fitted = tuple(replace(fault, fix=_without_lines(fault.fix)) for fault in fitted)
        return tuple(_at(fault, section.line - section_now.line) for fault in fitted)
    if len(fitted.moved) > 0:
        notes.extend(_moved(section, each.hunk, each.line, each.offset) for each in fitted.moved)
    return Planned(
        _steps(section, section.new_mode or (old.mode if old else REGULAR), fitted.result),
        raw,
        tuple(notes),
        section.old_path if section.kind is Kind.COPY else None,
    )


def _misplaced(section: Section, around: Surroundings) -> tuple[Fault, ...]:
    """Find what keeps a section from its file before any line is compared."""
    found: list[Fault] = []
    if section.old_path is not None:
        old = around.preimages.get(section.old_path)
        if old is None or old.mode == _FOLDER:
            found.append(
                Fault(
                    "target-missing",
                    section.line,
                    f"{section.old_path.quoted} does not exist",
                    "leave the section out; there is nothing to delete"
                    if section.kind is Kind.DELETE
                    else "name a file that exists; a new file needs `new file mode 100644` and --- /dev/null",
                    without_section(section) if section.kind is Kind.DELETE else as_new_file(section),
                )
            )
        elif section.old_mode is not None and section.old_mode != old.mode:
            found.append(
                Fault(
                    "effect-mismatch",
                    section.line,
                    f"the patch says that {section.old_path.quoted} has mode {section.old_mode}, "
                    f"but it has {old.mode}",
                    "make the patch from the file as it is: git diff",
                    with_mode(section, old.mode),
                    {"expected": section.old_mode, "actual": old.mode},
                )
            )
    is_new_name = section.new_path is not None and section.new_path != section.old_path
    if (
        is_new_name
        and section.new_path is not None
        and around.preimages.get(section.new_path) is not None
        and section.new_path not in around.removed
    ):
        is_there = _is_made(section, around.preimages[section.new_path])
        found.append(
            Fault(
                "already-exists",
                section.line,
                f"{section.new_path.quoted} exists already" + (", just as the patch makes it" * is_there),
                "leave the section out"
                if is_there
                else "change the existing file instead, or give the new one another name",
                without_section(section) if is_there else None,
            )
        )
    return tuple(found)


def _is_made(section: Section, standing: Preimage | None) -> bool:
    """Tell whether what an added file would be is what stands there."""
    if section.kind is not Kind.ADD or standing is None or standing.mode != section.new_mode:
        return False
    fitted = fit(section, b"")
    return not isinstance(fitted, tuple) and fitted.result == standing.content


def _steps(section: Section, mode: str, content: bytes) -> tuple[Step, ...]:
    """Say what becomes of the paths of a section whose result is known."""
    if section.new_path is None:
        assert section.old_path is not None
        return (Step(section.old_path),)
    made = Step(section.new_path, mode, content)
    if section.kind is Kind.RENAME and section.old_path is not None:
        return (Step(section.old_path), made)
    return (made,)


def _plan_gitlink(section: Section, old: Preimage | None) -> Planned | tuple[Fault, ...]:
    """Plan a submodule's entry: its content is the commit's id, written as one line of text."""
    raw = section.raw[section.start : section.end]
    if section.new_path is None:
        return Planned(_steps(section, GITLINK, b""), raw)
    found = _SUBPROJECT.findall(raw)
    if section.n_hunks == 0 and old is not None:
        return Planned(_steps(section, section.new_mode or old.mode, old.content), raw)
    if len(found) != 1:
        fault = Fault(
            "effect-mismatch",
            section.line,
            f"{section.path.quoted} is a submodule's entry, but the patch names no commit for it",
            "leave the submodule out of the patch",
            without_section(section),
        )
        return (fault,)
    return Planned(_steps(section, section.new_mode or GITLINK, found[0]), raw)


def _without_lines(fix: Mending | None) -> Mending | None:
    """Keep a mending that brings no line of a file: a header, or lines that are left out."""
    return fix if fix is None or fix.text is None or fix.text.startswith("@@ ") else None


def _at(fault: Fault, shift: int) -> Fault:
    """Tell a fault of an adapted section at the line of the patch that was sent."""
    if not shift:
        return fault
    details = dict(fault.details)
    if isinstance(details.get("patch_line"), int):
        details["patch_line"] = int(str(details["patch_line"])) + shift
    line = None if fault.line is None else fault.line + shift
    fix = fault.fix and Mending(fault.fix.first + shift, fault.fix.text, fault.fix.last + shift)
    return Fault(fault.rule, line, fault.message, fault.hint, fix, details)


def _adapted(section: Section) -> Fault:
    return Fault(
        "eol-adapted",
        section.line,
        f"the lines of the patch for {section.path.quoted} were given the line ends of the file",
        "nothing to do",
    )


def _moved(section: Section, hunk: int, line: int, offset: int) -> Fault:
    return Fault(
        "hunk-offset",
        section.line,
        f"hunk {hunk} of {section.path.quoted} stands at line {line}, {offset:+d} from where it says",
        "nothing to do",
        details={"hunk": hunk, "found_at": [line]},
    )
