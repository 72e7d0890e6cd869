"""Compute what a tool of a coding agent makes of its files, from its arguments and the files' bytes.

The envelope of Codex (`*** Begin Patch`) is read as its grammar says (apply_patch_tool_instructions.md).
Texts must match exactly: where they don't, an agent's own tool may still find a place, so what it writes is
not known, and only the names of the files can be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from patchgate.agents.hooks.hook_input import FileCall, HookInputError, PatchCall, TextEdit, require_name
from patchgate.values import dataclass, field

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _END_OF_FILE = "*** Move to: ", "*** End of File"


@dataclass(frozen=True, slots=True)
class FileEffect:
    """What a file becomes: its bytes, or None for no file; `is_known`: not only its name is known."""

    path: str
    content: bytes | None
    is_known: bool = True


Reader = Callable[[str], bytes | None]
"""Reads the file at a path as it is now; None if there is none."""


def effects_of(call: FileCall | PatchCall, read: Reader) -> list[FileEffect]:
    """Compute what a call makes of each of its files.

    Raises:
        HookInputError: a patch names no file, or does not say clearly which.
    """
    if isinstance(call, PatchCall):
        found: dict[str, FileEffect] = {}
        for section in (part for each in _sections(call.text) for part in _parts(each)):
            # A later section of a file goes on from what an earlier one made of it.
            effect = _effect_of_section(
                section, lambda path: found[path].content if path in found else read(path)
            )
            found[effect.path] = effect
        if not found:
            raise HookInputError("the patch has no section that names a file")
        return list(found.values())
    if call.deletes:
        return [FileEffect(call.path, None)]
    if call.content is not None:
        return [FileEffect(call.path, encoded(call.content))]
    before = read(call.path)
    if not call.edits:
        return [_unknown(call.path, before)]
    after = _edited(before or b"", call.edits, is_new=not before)
    return [_unknown(call.path, before) if after is None else FileEffect(call.path, after)]


def encoded(text: str) -> bytes:
    """Encode a text as UTF-8; a lone surrogate becomes U+FFFD, as in the agents' JavaScript."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def _unknown(path: str, before: bytes | None) -> FileEffect:
    return FileEffect(path, (before or b"") + b"\n", is_known=False)


def _edited(content: bytes, edits: Sequence[TextEdit], *, is_new: bool) -> bytes | None:
    """Apply edits in order; None if the text of one does not stand there exactly once."""
    has_crlf = b"\r\n" in content
    for edit in edits:
        old, new = encoded(edit.old), encoded(edit.new)
        if not old:
            if not (is_new and len(edits) == 1):
                return None
            return new
        if has_crlf and old not in content:
            # The agents read such a file with LF, and write it back with CR LF.
            old, new = (each.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for each in (old, new))
        found = content.count(old)
        if found == 0 or (found > 1 and not edit.everywhere):
            return None
        content = content.replace(old, new)
    return content


@dataclass(slots=True)
class _EnvelopeSection:
    """One file of an envelope: what happens to it, its path, the new path, and its lines."""

    what: str
    path: str
    target: str = ""
    lines: list[str] = field(default_factory=list)


def _sections(text: str) -> Iterator[_EnvelopeSection]:
    section: _EnvelopeSection | None = None
    for line in text.replace("\r\n", "\n").split("\n"):
        # Codex strips a header; one with a space before it may also be a line of the file that is updated.
        header = line.strip()
        start = next((each for each in (_ADD, _DELETE, _UPDATE) if header.startswith(each)), None)
        is_in_hunk = section is not None and section.what == _UPDATE and bool(section.lines)
        if start is not None and is_in_hunk and not line.startswith("*"):
            raise HookInputError("the patch has a line that may be a header or a line of a file")
        if start is not None or (header in {_BEGIN, _END} and not (is_in_hunk and line.startswith(" "))):
            if section is not None:
                yield section
            section = None if start is None else _EnvelopeSection(start, _named(header[len(start) :]))
        elif section is not None and header.startswith(_MOVE) and not section.lines:
            section.target = _named(header[len(_MOVE) :])
        elif section is not None:
            section.lines.append(line)
    if section is not None:
        yield section


def _named(path: str) -> str:
    if path != path.strip():
        raise HookInputError("the patch names a file with a space before its name")
    require_name(path)
    return path


def _parts(section: _EnvelopeSection) -> Iterator[_EnvelopeSection]:
    """Part a move into the content of one file and the deletion of the other."""
    yield section
    if section.target and section.target != section.path:
        yield _EnvelopeSection(_DELETE, section.path)


def _effect_of_section(section: _EnvelopeSection, read: Reader) -> FileEffect:
    if section.what == _DELETE:
        return FileEffect(section.path, None)
    target = section.target or section.path
    if section.what == _ADD:
        lines = [line[1:] for line in section.lines if line.startswith("+")]
        return FileEffect(target, encoded("".join(f"{line}\n" for line in lines)))
    before = read(section.path)
    after = None if before is None else _patched(before, section.lines)
    return _unknown(target, before) if after is None else FileEffect(target, after)


def _patched(before: bytes, patch: Sequence[str]) -> bytes | None:
    """Apply the hunks of an update; None if the lines of one do not stand in the file in this order."""
    try:
        lines = before.decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        return None
    if lines[-1] == "":
        lines.pop()
    made: list[str] = []
    at = 0
    for anchors, old, new in _hunks(patch):
        for anchor in anchors:
            if anchor not in lines[at:]:
                return None
            at_anchor = lines.index(anchor, at) + 1
            made += lines[at:at_anchor]
            at = at_anchor
        place = _find(lines, old, at)
        if place is None:
            return None
        made += [*lines[at:place], *new]
        at = place + len(old)
    end = "\r\n" if b"\r\n" in before else "\n"
    return encoded("".join(line + end for line in [*made, *lines[at:]]))


def _hunks(patch: Sequence[str]) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Yield of each hunk the lines after its `@@`, the lines that it replaces, and the new ones."""
    anchors: list[str] = []
    old: list[str] = []
    new: list[str] = []
    for line in patch:
        if line.startswith("@@"):
            if old or new:
                yield anchors, old, new
                anchors, old, new = [], [], []
            if line[2:].strip():
                anchors.append(line[2:].removeprefix(" "))
        elif line[:1] in {" ", ""} and line != _END_OF_FILE:
            old.append(line[1:])
            new.append(line[1:])
        elif line[:1] == "-":
            old.append(line[1:])
        elif line[:1] == "+":
            new.append(line[1:])
    if old or new:
        yield anchors, old, new


def _find(lines: list[str], sought: Sequence[str], start: int) -> int | None:
    """Return where some lines stand in a row; at the end of the file if none are sought."""
    if not sought:
        return len(lines)
    last = len(lines) - len(sought)
    return next(
        (at for at in range(start, last + 1) if list(lines[at : at + len(sought)]) == list(sought)), None
    )
