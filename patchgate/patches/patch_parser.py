"""The strict grammar of patches: bytes in, values out, with the line of each fault.

The grammar is closed: empty lines, then one or more `diff --git` sections; every other line is a fault. It
accepts less than any other reader, so that no two readers disagree on an accepted patch (`git apply` skips
what it does not understand). It checks no names, modes or policy, and reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from patchgate.git.quoting import DEV_NULL, printable, quote
from patchgate.patches.patch_fixes import add_fixes
from patchgate.patches.patch_headers import ONLY_HEADERS, SECTION, read_section, report_missing_name
from patchgate.patches.patch_hunk_faults import explain_hunk
from patchgate.patches.patch_hunks import (
    HEADERS,
    NO_BINARY,
    ONLY_THE_DIFF,
    HunkScan,
    PatchLine,
    lines_of,
    report_carriage_return,
    report_foreign_line,
    report_prose,
    restore_carriage_returns,
    scan_hunks,
    strip_carriage_returns,
)
from patchgate.patches.patch_model import (
    MARKER,
    MAX_FAULTS,
    MAX_HEADER_BYTES,
    MAX_HUNKS,
    MAX_LINE_BYTES,
    MAX_PATCH_BYTES,
    MAX_SECTIONS,
    Fault,
    Hunk,
    Patch,
    PatchSection,
    SectionKind,
    make_fix,
)
from patchgate.values import replace

__all__ = [
    "Fault",
    "Hunk",
    "Patch",
    "PatchSection",
    "SectionKind",
    "parse",
    "print_patch",
    "strip_carriage_returns",
]
_START = b"diff --git "
_HUNK = b"\n@@"
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
# A diff that is indented or quoted, as in a mail.
_PREFIXED = re.compile(rb"^([ \t>|]{1,16})diff --git ", re.MULTILINE)
_BLANK_LINES = re.compile(rb"\n*+")
_OTHER_FORMS = (
    ("the format `*** Begin Patch`", "envelope", re.compile(rb"^\*\*\* Begin Patch", re.MULTILINE)),
    ("a SEARCH/REPLACE block", "search-replace", re.compile(rb"^<{5,9} SEARCH", re.MULTILINE)),
    ("an edit with `old_string`", "edits", re.compile(rb'"old_string"|<old_string>|="old_string">')),
)
# Reading on after a missing last newline copies the patch; above this size the first fault is enough.
_SECOND_LOOK = 1024 * 1024

_MODE = re.compile(rb"(?:100644|100755|120000|160000)")
_PER_CENT = re.compile(rb"(?:0|[1-9][0-9]?|100)%")
_INDEX = re.compile(rb"[0-9a-f]{4,64}\.\.[0-9a-f]{4,64}(?: (?:100644|100755|120000|160000))?")


def explain_headers(places: Iterable[PatchLine]) -> Fault:
    """Report the first header line with a fault; the first of `places` is the `diff --git` line."""
    seen: set[bytes] = set()
    last = -1
    first: PatchLine | None = None
    for place in places:
        if place.text.endswith(b"\r"):
            return report_carriage_return(place)
        if first is None:
            first = place
            continue
        header = next((prefix for prefix in HEADERS if place.text.startswith(prefix)), None)
        if header is None:
            return _explain_foreign(place, follows_names=b"+++ " in seen)
        fault = _value_fault(place, header)
        if fault:
            return fault
        if header in seen or HEADERS.index(header) < last:
            message = f"the header line is repeated or out of order: {printable(place.text, 80)}"
            hint = "write each header once, in git's order"
            return Fault("invalid-unified-diff", place.number, message, hint=hint)
        seen.add(header)
        last = HEADERS.index(header)
    return _explain_pairs(seen, first.number if first else 1)


def _explain_foreign(place: PatchLine, *, follows_names: bool) -> Fault:
    if follows_names and place.text[:1] in {b" ", b"+", b"-"}:
        message = "a hunk has no `@@` header"
        return Fault(
            "missing-hunk", place.number, message, hint="write `@@ -START,COUNT +START,COUNT @@` above them"
        )
    if place.text in {b"---", b"+++"}:
        return report_missing_name(place.number)
    return report_foreign_line(place)


def _value_fault(place: PatchLine, header: bytes) -> Fault | None:
    value = place.text[len(header) :]
    shown = printable(value, 60)
    if header.endswith(b"mode ") and not _MODE.fullmatch(value):
        message, hint = (
            f"{shown} is not a mode that a patch may set",
            "use mode 100644, or 100755 for a program",
        )
    elif header == b"index " and not _INDEX.fullmatch(value):
        message = f"the index line has no object ids: {shown}"
        hint = "leave the `index` line out, or copy it from `git diff`"
    elif header.endswith(b"similarity index ") and not _PER_CENT.fullmatch(value):
        message, hint = f"{shown} is not a percentage", "write a number from 0 to 100 and `%`"
    else:
        return None if value else report_missing_name(place.number)
    return Fault("invalid-unified-diff", place.number, message, hint=hint)


def _explain_pairs(seen: set[bytes], line: int) -> Fault:
    """Report a header without its partner, if each header alone is right."""
    for one, other in (
        (b"--- ", b"+++ "),
        (b"old mode ", b"new mode "),
        (b"rename from ", b"rename to "),
        (b"copy from ", b"copy to "),
    ):
        for present, absent in ((one, other), (other, one)):
            if present in seen and absent not in seen:
                rule = "missing-file-header" if present in {b"--- ", b"+++ "} else "invalid-unified-diff"
                message = f"`{present.decode().strip()}` has no matching `{absent.decode().strip()}` line"
                return Fault(rule, line, message, hint="write both lines of the pair")
    return Fault(
        "invalid-unified-diff", line, "the headers of the section contradict each other", hint=ONLY_HEADERS
    )


def parse(raw: bytes) -> Patch | tuple[Fault, ...]:
    """Read a patch; for bytes that are not a patch, return every fault that is certain, by line.

    At most `MAX_FAULTS`, each with a mechanical fix if there is one. Time and memory are linear. A patch
    whose lines all end in CR LF is read without the CR: its `raw` has none.
    """
    text = strip_carriage_returns(raw)
    found = _read(text)
    if isinstance(found, Patch):
        return found
    whole = text if text.endswith(b"\n") else text + b"\n"
    faults = add_fixes(whole, found, _count_faults)
    return (
        faults
        if text is raw
        else tuple(replace(each, fix=restore_carriage_returns(each.fix)) for each in faults)
    )


def _count_faults(raw: bytes) -> int:
    found = _read(raw)
    return len(found) if isinstance(found, tuple) else 0


def _read(raw: bytes) -> Patch | tuple[Fault, ...]:
    """Read a patch, or return the faults of each hunk and each block of headers."""
    fault = _find_unreadable(raw)
    if fault:
        return (fault,)
    if not raw.endswith(b"\n"):
        rest = _read(raw + b"\n") if len(raw) <= _SECOND_LOOK else ()
        return (_missing_newline(raw), *(rest if isinstance(rest, tuple) else ()))
    blank_lines = _blank_lines(raw)
    faults: list[Fault] = []
    sections: list[PatchSection] = []
    position, line, n_hunks = blank_lines, blank_lines + 1, 0
    if not raw.startswith(_START, position):
        faults.append(_explain_start(raw, position, line))
        position, line = _next_section(raw, position, line)
    while position < len(raw) and len(faults) < MAX_FAULTS:
        found = _read_one(raw, position, line)
        if isinstance(found, tuple):
            section, line = found
            sections.append(section)
            n_hunks += section.n_hunks
            position = section.end
            if len(sections) > MAX_SECTIONS or n_hunks > MAX_HUNKS:
                return (_too_large(f"more than {MAX_SECTIONS} sections or {MAX_HUNKS} hunks", line),)
        else:
            faults.extend(found)
            position, line = _next_section(raw, position, line)
    faults.extend(_find_repeated(sections))
    if faults:
        return tuple(sorted(faults[:MAX_FAULTS], key=lambda each: each.line or 0))
    return Patch(raw, tuple(sections), blank_lines)


def _blank_lines(raw: bytes) -> int:
    # Not `lstrip`: that would copy the patch.
    match = _BLANK_LINES.match(raw)
    return match.end() if match else 0


def _read_one(raw: bytes, position: int, line: int) -> tuple[PatchSection, int] | list[Fault]:
    """Read the section at `position`, a `diff --git` line; return it and the number of the line after it."""
    match = SECTION.match(raw, position)
    if match is None:
        return [explain_headers(lines_of(raw, position, raw.find(b"\n", position) + 1, line))]
    if match.end() - position > MAX_HEADER_BYTES:
        return [_too_large(f"headers of more than {MAX_HEADER_BYTES} bytes for one file", line)]
    if b"\r" in match[0]:
        return [explain_headers(lines_of(raw, position, match.end(), line))]
    first = line + raw.count(b"\n", position, match.end())
    scan = scan_hunks(raw, match.end(), first)
    if scan.is_sound and (scan.position == len(raw) or raw.startswith(_START, scan.position)):
        section = read_section(match, scan.rows, line, scan.position)
        return [section] if isinstance(section, Fault) else (section, scan.line)
    end = raw.find(b"\n" + _START, position) + 1 or len(raw)
    if not scan.is_sound or scan.rows:
        return _hunk_faults(raw, scan, end)
    headers = explain_headers(_header_lines(raw, position, end, line))
    found = raw.find(_HUNK, position, end) + 1
    if not found or headers.rule == "carriage-return-in-header":
        return [headers]
    below = scan_hunks(raw, found, line + raw.count(b"\n", position, found))
    return [headers, *_hunk_faults(raw, below, end)]


def _hunk_faults(raw: bytes, scan: HunkScan, end: int) -> list[Fault]:
    """Report what is wrong with the hunks of a section that ends at `end`, each read separately."""
    faults: list[Fault] = []
    while not (scan.is_sound and scan.position >= end) and len(faults) < MAX_FAULTS:
        start, line, above = scan.position, scan.line, scan.rows
        if scan.is_sound:
            # What follows the last hunk is not part of a section.
            start, line, above = scan.rows[-1][6], scan.rows[-1][5], scan.rows[:-1]
        faults += explain_hunk(raw, start, end, line, above[-1] if above else None)
        found = raw.find(_HUNK, start, end) + 1
        if not found:
            break
        scan = scan_hunks(raw, found, line + raw.count(b"\n", start, found))
    return faults


def _header_lines(raw: bytes, position: int, end: int, line: int) -> Iterator[PatchLine]:
    for place in lines_of(raw, position, end, line):
        if place.text.startswith(b"@@ -"):
            return
        yield place


def _next_section(raw: bytes, position: int, line: int) -> tuple[int, int]:
    """Find the next line that begins a section: its offset and number; the end if there is none."""
    found = raw.find(b"\n" + _START, position) + 1
    if not found:
        return len(raw), line
    return found, line + raw.count(b"\n", position, found)


def _find_unreadable(raw: bytes) -> Fault | None:
    """Refuse what must not be split into lines: too large, a byte-order mark, NUL, empty, a huge line."""
    if len(raw) > MAX_PATCH_BYTES:
        return _too_large(f"{len(raw)} bytes, more than {MAX_PATCH_BYTES}", 1)
    if raw.startswith(_BYTE_ORDER_MARKS):
        hint = "send the patch as plain bytes: UTF-8 without a byte-order mark"
        return Fault("encoding-unsupported", 1, "the patch begins with a byte-order mark", hint=hint)
    nul = raw.find(b"\0")
    if nul >= 0:
        line = raw.count(b"\n", 0, nul) + 1
        return Fault(
            "binary-payload", line, "the patch contains a NUL byte, which no text file has", hint=NO_BINARY
        )
    if not raw or raw.isspace():
        hint = "send a unified diff, as `git diff` writes it"
        return Fault("not-a-unified-diff", 1, "the patch is empty", hint=hint)
    start = 0
    while len(raw) - start > MAX_LINE_BYTES:
        stop = raw.rfind(b"\n", start, start + MAX_LINE_BYTES + 1)
        if stop < 0:
            line = raw.count(b"\n", 0, start) + 1
            return _too_large(f"a line of more than {MAX_LINE_BYTES} bytes", line)
        start = stop + 1
    return None


def _too_large(what: str, line: int) -> Fault:
    return Fault(
        "patch-too-large", line, f"the patch has {what}", hint="split the change into several patches"
    )


def _missing_newline(raw: bytes) -> Fault:
    """Refuse a patch without a final newline; an added line may have been cut, so it gets no fix."""
    start = raw.rfind(b"\n") + 1
    line = raw.count(b"\n") + 1
    last = raw[start:]
    is_known = last.startswith((b" ", b"-")) or last == MARKER
    hint = "end the patch with a newline" + ("" if is_known else ", if its last line is whole")
    fix = make_fix(line, last + b"\n") if is_known and len(last) <= 4096 else None
    return Fault(
        "newline-missing", line, "the last line of the patch has no newline at its end", hint=hint, fix=fix
    )


def _explain_start(raw: bytes, position: int, line: int) -> Fault:
    """Report why the first line is not `diff --git`."""
    place = next(lines_of(raw, position, len(raw), line))
    has_section = raw.find(b"\n" + _START, max(position - 1, 0)) >= 0
    if place.text == _START.rstrip() or place.text.startswith(_START):
        return report_carriage_return(place)
    first = report_foreign_line(place)
    if first.rule in {"combined-diff", "missing-file-header"}:
        return first
    if has_section:
        return report_prose(place)
    for start in (b"\ndiff --cc ", b"\ndiff --combined ", b"\n--- "):
        found = raw.find(start, position) + 1
        if found and (start != b"\n--- " or raw.find(b"\n+++ ", found) >= 0):
            number = line + raw.count(b"\n", position, found)
            return report_foreign_line(next(lines_of(raw, found, len(raw), number)))
    message = "there is no `diff --git` line, so this is not a diff in git's format"
    return Fault("not-a-unified-diff", line, message, hint=_other_form(raw) or ONLY_THE_DIFF)


def _other_form(raw: bytes) -> str | None:
    """Name the format of patch that this is instead, and what to send."""
    for form, name, sign in _OTHER_FORMS:
        if sign.search(raw):
            return f"{form} is for --input {name}, if `[apply] inputs` allows it; else send a unified diff"
    prefixed = _PREFIXED.search(raw)
    if prefixed is not None:
        prefix = prefixed[1].rstrip(b" ") or prefixed[1]
        lines = raw[prefixed.start() :].split(b"\n")
        if all(each.startswith(prefix) for each in lines if each.strip()):
            return f"every line begins with `{printable(prefixed[1], 20)}`: send the diff without it"
    if raw.lstrip().startswith(b"{"):
        return "JSON is not a patch: pass structured edits with --edits, or send a unified diff"
    return None


def _find_repeated(sections: list[PatchSection]) -> list[Fault]:
    """Find paths that more than one section writes: the result would depend on their order."""
    written: dict[bytes, int] = {}
    faults: list[Fault] = []
    for section in sections:
        paths = [section.path]
        if section.kind is SectionKind.RENAME and section.old_path is not None:
            paths.append(section.old_path)
        for path in paths:
            first = written.setdefault(path.raw, section.line)
            if first != section.line and len(faults) < MAX_FAULTS:
                message = f"{path.quoted} is already changed by the section on line {first}"
                hint, details = "put all changes of one path into one section", {"first_line": first}
                faults.append(Fault("duplicate-section", section.line, message, hint=hint, details=details))
    return faults


def print_patch(patch: Patch) -> bytes:
    """Write a patch from its values; for a parsed patch, the very bytes that were read."""
    pieces = [b"\n" * patch.blank_lines]
    for section in patch.sections:
        pieces.extend(_print_headers(section))
        for hunk in section.hunks:
            pieces += (hunk.header, b"\n", section.body(hunk))
    return b"".join(pieces)


def _print_headers(section: PatchSection) -> Iterator[bytes]:
    old, new = (section.old_path or section.path).raw, section.path.raw
    high = section.quotes_high
    old_name, new_name = quote(b"a/" + old, high=high), quote(b"b/" + new, high=high)
    yield b"diff --git %b %b\n" % (old_name, new_name)
    old_mode, new_mode = (section.old_mode or "").encode(), (section.new_mode or "").encode()
    same_mode = b""
    if section.kind is SectionKind.ADD:
        yield b"new file mode %b\n" % new_mode
    elif section.kind is SectionKind.DELETE:
        yield b"deleted file mode %b\n" % old_mode
    elif old_mode != new_mode:
        yield b"old mode %b\nnew mode %b\n" % (old_mode, new_mode)
    elif old_mode:
        same_mode = b" " + old_mode
    if section.similarity is not None:
        yield b"similarity index %d%%\n" % section.similarity
    if section.kind in {SectionKind.RENAME, SectionKind.COPY}:
        word = section.kind.encode()
        yield b"%b from %b\n%b to %b\n" % (word, quote(old, high=high), word, quote(new, high=high))
    if section.dissimilarity is not None:
        yield b"dissimilarity index %d%%\n" % section.dissimilarity
    if section.old_oid is not None and section.new_oid is not None:
        yield b"index %b..%b%b\n" % (section.old_oid.encode(), section.new_oid.encode(), same_mode)
    if section.rows:
        old_name = DEV_NULL if section.kind is SectionKind.ADD else old_name + b"\t" * section.old_tab
        new_name = DEV_NULL if section.kind is SectionKind.DELETE else new_name + b"\t" * section.new_tab
        yield b"--- %b\n+++ %b\n" % (old_name, new_name)
