"""The headers of one section: everything from `diff --git` to the line before the first `@@`.

All must agree. The `diff --git` line is not trusted: it is rebuilt from the other headers and must be equal
byte for byte. `patch_parser` explains headers that do not match the expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from patchgate.git.path import RepoPath
from patchgate.git.quoting import (
    DEV_NULL,
    printable,
    quote,
    quote_path,
    split_equal_names,
    strip_tab,
    unquote,
)
from patchgate.patches.patch_model import Fault, PatchSection, Row, SectionKind, make_fix

# One expression is the whole closed grammar: git's headers, in git's order (diff.c, builtin_diff and
# fill_metainfo), each at most once. Each part begins with a different word and is optional, so
# nothing is read twice. No group is possessive: CPython before 3.11.5 misreads those that can backtrack
# (gh-106052).
_MODE = rb"(100644|100755|120000|160000)"
_REST = rb"([^\n]*+)"
_PER_CENT = rb"(0|[1-9][0-9]?|100)%"
_OID = rb"([0-9a-f]{4,64})"
SECTION = re.compile(
    rb"diff --git " + _REST + rb"\n"
    rb"(?:old mode " + _MODE + rb"\nnew mode " + _MODE + rb"\n"
    rb"|new file mode " + _MODE + rb"\n|deleted file mode " + _MODE + rb"\n)?"
    rb"(?:similarity index " + _PER_CENT + rb"\n)?"
    rb"(?:(rename|copy) from " + _REST + rb"\n\7 to " + _REST + rb"\n)?"
    rb"(?:dissimilarity index " + _PER_CENT + rb"\n)?"
    rb"(?:index " + _OID + rb"\.\." + _OID + rb"(?: " + _MODE + rb")?\n)?"
    rb"(?:--- " + _REST + rb"\n\+\+\+ " + _REST + rb"\n)?"
)
# Not from `model`: its import of hashlib is a tenth of what starting the grammar costs.
_FILE_MODES = {b"100644", b"100755"}
_OTHER_MODES = {b"120000", b"160000"}
# One text for each mode: 100,000 sections would have 200,000, as much as half of their bytes.
_MODES: dict[bytes | None, str] = {
    mode.encode("ascii"): mode for mode in ("100644", "100755", "120000", "160000")
}
_PLAIN_NAME = re.compile(rb'[^\x00-\x20\x7f-\xff"\\]++')
_EMPTY_BLOBS = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
ONLY_HEADERS = "send the headers exactly as `git diff` writes them"


class HeaderNames(NamedTuple):
    """Both names of a section without `a/` and `b/`, and how they were written: quoted, ended by a TAB."""

    old: bytes
    new: bytes
    quotes_high: bool = True
    old_tab: bool = False
    new_tab: bool = False


class PatchNames(NamedTuple):
    """The paths that a patch names, each once, in its order, and those of them that it removes."""

    paths: list[RepoPath]
    removed: frozenset[RepoPath]


def glance_at_names(raw: bytes) -> PatchNames | None:
    """Read the names of a patch from its headers alone, in a quarter of the time that reading it takes.

    Nothing is checked: if the patch can be read, these are its names. None for a patch that has links,
    submodules, CR in headers, or what is certainly no patch.
    """
    paths: dict[RepoPath, None] = {}
    removed: list[RepoPath] = []
    position = len(raw) - len(raw.lstrip(b"\n")) if raw.startswith(b"\n") else 0
    while position < len(raw):
        match = SECTION.match(raw, position)
        if match is None or b"\r" in match[0]:
            return None
        groups = match.groups()
        git_line, old_mode, new_mode, added, deleted, _, word, source, target, _ = groups[:10]
        minus, plus = groups[13:]
        kind = _kind(added, deleted, word, old_mode, minus is not None)
        names = _read_names(kind, git_line, source, target, minus, plus, 1)
        if isinstance(names, Fault) or not _OTHER_MODES.isdisjoint((old_mode, new_mode, added, groups[12])):
            return None
        old = RepoPath.from_patch(names.old)
        if kind is not SectionKind.ADD:
            paths[old] = None
        if kind is not SectionKind.DELETE:
            paths[old if names.new == names.old else RepoPath.from_patch(names.new)] = None
        if kind is SectionKind.DELETE or kind is SectionKind.RENAME:
            removed.append(old)
        position = match.end()
        if raw.startswith(b"@@ -", position):
            position = raw.find(b"\ndiff --git ", position) + 1 or len(raw)
    return PatchNames(list(paths), frozenset(removed))


def read_section(match: re.Match[bytes], rows: tuple[Row, ...], line: int, end: int) -> PatchSection | Fault:
    """Build a section from its matched headers and its hunks, or report a header that contradicts another.

    Args:
        match: `SECTION` at the section's start.
        rows: its hunks, each already checked.
        line: the line of `diff --git`, from 1.
        end: the offset past the section.
    """
    groups = match.groups()
    git_line, old_mode, new_mode, added_mode, deleted_mode, similarity, word = groups[:7]
    source, target, dissimilarity, old_oid, new_oid, index_mode, minus, plus = groups[7:]
    kind = _kind(added_mode, deleted_mode, word, old_mode, bool(rows or minus))
    fault = _find_missing(kind, rows, minus, line, old_oid, new_oid, similarity)
    if fault:
        return fault
    names = _read_names(kind, git_line, source, target, minus, plus, line)
    if isinstance(names, Fault):
        return names
    fault = _contradiction(groups, kind, line) or _wrong_side(kind, rows)
    if fault:
        return fault
    old_path = RepoPath.from_patch(names.old)
    new_path = old_path if names.new == names.old else RepoPath.from_patch(names.new)
    return PatchSection(
        kind=kind,
        old_path=None if kind is SectionKind.ADD else old_path,
        new_path=None if kind is SectionKind.DELETE else new_path,
        old_mode=None if kind is SectionKind.ADD else _MODES.get(old_mode or deleted_mode or index_mode),
        new_mode=None if kind is SectionKind.DELETE else _MODES.get(new_mode or added_mode or index_mode),
        old_oid=_text(old_oid),
        new_oid=_text(new_oid),
        similarity=None if similarity is None else int(similarity),
        dissimilarity=None if dissimilarity is None else int(dissimilarity),
        line=line,
        start=match.start(),
        end=end,
        rows=rows,
        raw=match.string,
        quotes_high=names.quotes_high,
        old_tab=names.old_tab,
        new_tab=names.new_tab,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("ascii")


def _kind(
    added: bytes | None, deleted: bytes | None, word: bytes | None, old_mode: bytes | None, has_text: bool
) -> SectionKind:
    if added:
        return SectionKind.ADD
    if deleted:
        return SectionKind.DELETE
    if word:
        return SectionKind(word.decode("ascii"))
    return SectionKind.MODE if old_mode and not has_text else SectionKind.MODIFY


def _find_missing(
    kind: SectionKind,
    rows: tuple[Row, ...],
    minus: bytes | None,
    line: int,
    old_oid: bytes | None,
    new_oid: bytes | None,
    similarity: bytes | None,
) -> Fault | None:
    """Report missing `---` and `+++` lines, or missing hunks."""
    if rows and minus is None:
        message = "the hunk has no `---` and `+++` lines above it"
        hint = "write `--- a/…` and `+++ b/…` (or /dev/null) under `diff --git`"
        return Fault("missing-file-header", rows[0][5], message, hint=hint)
    if rows:
        return None
    is_same = old_oid is None and similarity in {None, b"100"}
    complete = {
        SectionKind.MODIFY: False,
        SectionKind.MODE: True,
        SectionKind.ADD: _may_be_empty(new_oid),
        SectionKind.DELETE: _may_be_empty(old_oid),
        SectionKind.RENAME: is_same,
        SectionKind.COPY: is_same,
    }[kind]
    if complete and minus is None:
        return None
    message = "the section changes content, but has no hunk"
    return Fault("missing-hunk", line, message, hint="write the `@@ … @@` hunks that belong to it")


def _may_be_empty(oid: bytes | None) -> bool:
    return oid is None or oid.decode().startswith(tuple(blob[: len(oid)] for blob in _EMPTY_BLOBS))


def _read_names(
    kind: SectionKind,
    git_line: bytes,
    source: bytes | None,
    target: bytes | None,
    minus: bytes | None,
    plus: bytes | None,
    line: int,
) -> HeaderNames | Fault:
    """Resolve both names; they are equal for an added or deleted file."""
    if (
        kind is SectionKind.MODIFY
        and minus is not None
        and plus is not None
        and _is_plain(git_line, minus, plus)
    ):
        return HeaderNames(minus[2:], minus[2:])
    given = [token for token in (git_line, source, target, minus, plus) if token is not None]
    old_tab = new_tab = False
    if minus is not None and plus is not None:
        minus, old_tab = strip_tab(minus)
        plus, new_tab = strip_tab(plus)
        fault = _dev_null_fault(kind, git_line, minus, plus, line)
        if fault:
            return fault
        old, new = _names_of_sides(kind, minus, plus)
    elif source is not None and target is not None:
        old, new = unquote(source), unquote(target)
    else:
        old, new = _names_of_git_line(git_line)
    if not old or not new:
        is_missing = b"" in given or (old is not None and new is not None)
        return report_missing_name(line) if is_missing else _unreadable(git_line, line)
    high = all(token.isascii() for token in given)
    names = HeaderNames(old, new, quotes_high=high, old_tab=old_tab, new_tab=new_tab)
    return _disagreement(kind, names, (git_line, source, target, minus, plus), line) or names


def _is_plain(git_line: bytes, minus: bytes, plus: bytes) -> bool:
    """Return whether all three lines have one name that needs no quotes, as in most sections."""
    name = minus[2:]
    return (
        _PLAIN_NAME.fullmatch(name) is not None
        and minus == b"a/" + name
        and plus == b"b/" + name
        and git_line == minus + b" " + plus
    )


def _names_of_sides(kind: SectionKind, minus: bytes, plus: bytes) -> tuple[bytes | None, bytes | None]:
    """Read the names of `---` and `+++`; for an added or deleted file both are its one name."""
    old = _read_side(plus, b"b/") if kind is SectionKind.ADD else _read_side(minus, b"a/")
    new = _read_side(minus, b"a/") if kind is SectionKind.DELETE else _read_side(plus, b"b/")
    return old, new


def _names_of_git_line(git_line: bytes) -> tuple[bytes | None, bytes | None]:
    """Read the names from the `diff --git` line alone: they must be equal."""
    halves = split_equal_names(git_line)
    return (None, None) if halves is None else (_read_side(halves[0], b"a/"), _read_side(halves[1], b"b/"))


def _read_side(token: bytes, prefix: bytes) -> bytes | None:
    name = unquote(token)
    return name[2:] if name is not None and name.startswith(prefix) else None


def _disagreement(
    kind: SectionKind, names: HeaderNames, tokens: Sequence[bytes | None], line: int
) -> Fault | None:
    """Find a header that is not byte for byte what git writes for these names."""
    _, source, _, minus, _ = tokens
    old, new, high = names[:3]
    old_side, new_side = quote(b"a/" + old, high=high), quote(b"b/" + new, high=high)
    written = [old_side + b" " + new_side]
    if source is not None:
        written += [quote(old, high=high), quote(new, high=high)]
    if minus is not None:
        written.append(DEV_NULL if kind is SectionKind.ADD else old_side)
        written.append(DEV_NULL if kind is SectionKind.DELETE else new_side)
    given = [token for token in tokens if token is not None]
    if written != given:
        wrong = next(token for token, right in zip(given, written, strict=True) if token != right)
        return Fault(
            "invalid-unified-diff",
            line,
            f"the headers name different files: {printable(wrong, 120)} does not match the others",
            hint="`diff --git`, `---`, `+++` and rename lines must name the same file, as git writes it",
            details={"old": RepoPath.from_patch(old), "new": RepoPath.from_patch(new)},
        )
    if kind not in {SectionKind.RENAME, SectionKind.COPY} and old != new:
        turned = f"{quote_path(old)} to {quote_path(new)}"
        message = f"the section renames {turned} without rename headers"
        hint = "add `rename from` and `rename to`, or name one file"
        return Fault("invalid-unified-diff", line, message, hint=hint)
    return None


def _unreadable(git_line: bytes, line: int) -> Fault:
    message = f"the names in the headers are ambiguous: {printable(git_line, 120)}"
    hint = "write names as git does: `a/` and `b/` before them, quoted if they contain quotes or controls"
    return Fault("invalid-unified-diff", line, message, hint=hint)


def report_missing_name(line: int) -> Fault:
    """Report a header without a name."""
    return Fault("path-missing", line, "a header has no file name", hint="name the file after `a/` and `b/`")


def _dev_null_fault(kind: SectionKind, git_line: bytes, minus: bytes, plus: bytes, line: int) -> Fault | None:
    """Refuse `/dev/null` if the modes do not agree: git would write to a file `dev/null`."""
    for side, wanted, header in ((minus, SectionKind.ADD, "new"), (plus, SectionKind.DELETE, "deleted")):
        if side == DEV_NULL and kind is not wanted:
            fixed = b"diff --git %b\n%b file mode 100644" % (git_line, header.encode("ascii"))
            message = f"/dev/null says that the file is {header}, but `{header} file mode` is missing"
            hint = f"add the line `{header} file mode 100644` under `diff --git`"
            return Fault("missing-file-header", line, message, hint=hint, fix=make_fix(line, fixed))
        if side != DEV_NULL and kind is wanted:
            message = f"the file is {header}, but the headers name a file where /dev/null belongs"
            hint = "write `/dev/null` on the side where the file does not exist"
            return Fault("invalid-unified-diff", line, message, hint=hint)
    return None


def _contradiction(groups: tuple[bytes | None, ...], kind: SectionKind, line: int) -> Fault | None:
    """Find values that contradict each other: modes, object ids, similarity."""
    _, old_mode, new_mode, _, _, similarity, word, source, target, dissimilarity = groups[:10]
    old_oid, new_oid, index_mode = groups[10:13]
    what = ""
    if old_mode and old_mode == new_mode:
        what = "`old mode` and `new mode` are the same"
    elif old_mode and {old_mode, new_mode} != _FILE_MODES:
        what = "one section cannot change a file into a link or a submodule, or back"
    elif index_mode and (old_mode or kind in {SectionKind.ADD, SectionKind.DELETE}):
        what = "the `index` line repeats a mode that another header gives"
    elif word and source == target:
        what = f"the {kind} has the same name on both sides"
    elif similarity and not word:
        what = "`similarity index` belongs to a rename or a copy"
    elif dissimilarity and kind is not SectionKind.MODIFY:
        what = "`dissimilarity index` belongs to a rewritten file"
    elif old_oid and new_oid:
        zero_old, zero_new = not old_oid.strip(b"0"), not new_oid.strip(b"0")
        if zero_old != (kind is SectionKind.ADD) or zero_new != (kind is SectionKind.DELETE):
            what = "the zeros of the `index` line are wrong: they mean a side that does not exist"
    if not what:
        return None
    hint = "leave the `index` line out" if "`index` line" in what else ONLY_HEADERS
    return Fault("invalid-unified-diff", line, what, hint=hint)


def _wrong_side(kind: SectionKind, rows: tuple[Row, ...]) -> Fault | None:
    """Refuse a hunk that gives an added file an old side, or a deleted file a new one."""
    if not rows or (kind is not SectionKind.ADD and kind is not SectionKind.DELETE):
        return None
    old_start, old_count, new_start, new_count = rows[0][:4]
    absent, present = (old_start, old_count), (new_start, new_count)
    if kind is SectionKind.DELETE:
        absent, present = present, absent
    if absent == (0, 0) and present[0] == 1 and len(rows) == 1:
        return None
    side = "old" if kind is SectionKind.ADD else "new"
    wanted = "-0,0 +1,N" if kind is SectionKind.ADD else "-1,N +0,0"
    message = f"the file has no {side} side, but its hunks have lines there"
    return Fault("range-invalid", rows[0][5], message, hint=f"write one hunk with the range `@@ {wanted} @@`")
