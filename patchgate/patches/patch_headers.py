"""The headers of one section: everything from `diff --git` to the line before the first `@@`.

Decides which headers a section may have, in which order, and that each agrees with every other. The
`diff --git` line is never taken at its word: it is rebuilt from the other headers and must be equal byte
for byte. What is wrong with a header that does not even match is told by `patch`.
"""

from __future__ import annotations

import re

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
from patchgate.patches.patch_model import Fault, Kind, Row, Section, mend

# One expression is the whole closed grammar: git's headers, in git's order (diff.c, builtin_diff and
# fill_metainfo), each at most once. Each part begins with a word of its own and none must follow, so
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
_PLAIN_NAME = re.compile(rb'[^\x00-\x20\x7f-\xff"\\]++')
_EMPTY_BLOBS = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
_ONLY_HEADERS = "send the headers exactly as `git diff` writes them"


def read_section(match: re.Match[bytes], rows: tuple[Row, ...], line: int, end: int) -> Section | Fault:
    """Build a section from its matched headers and its hunks, or say which header contradicts another.

    Args:
        match: `SECTION` at the section's start.
        rows: its hunks, already sound by themselves.
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
    old, new, high, old_tab, new_tab = names
    fault = _contradiction(groups, kind, line) or _wrong_side(kind, rows)
    if fault:
        return fault
    old_path = RepoPath.from_patch(old)
    new_path = old_path if new == old else RepoPath.from_patch(new)
    before, after = old_mode or deleted_mode or index_mode, new_mode or added_mode or index_mode
    return Section(
        kind=kind,
        old_path=None if kind is Kind.ADD else old_path,
        new_path=None if kind is Kind.DELETE else new_path,
        old_mode=None if before is None or kind is Kind.ADD else before.decode("ascii"),
        new_mode=None if after is None or kind is Kind.DELETE else after.decode("ascii"),
        old_oid=None if old_oid is None else old_oid.decode("ascii"),
        new_oid=None if new_oid is None else new_oid.decode("ascii"),
        similarity=None if similarity is None else int(similarity),
        dissimilarity=None if dissimilarity is None else int(dissimilarity),
        line=line,
        start=match.start(),
        end=end,
        rows=rows,
        raw=match.string,
        quotes_high=high,
        old_tab=old_tab,
        new_tab=new_tab,
    )


def _kind(
    added: bytes | None, deleted: bytes | None, word: bytes | None, old_mode: bytes | None, has_text: bool
) -> Kind:
    if added:
        return Kind.ADD
    if deleted:
        return Kind.DELETE
    if word:
        return Kind(word.decode("ascii"))
    return Kind.MODE if old_mode and not has_text else Kind.MODIFY


def _find_missing(
    kind: Kind,
    rows: tuple[Row, ...],
    minus: bytes | None,
    line: int,
    old_oid: bytes | None,
    new_oid: bytes | None,
    similarity: bytes | None,
) -> Fault | None:
    """Say what a section lacks: its `---` and `+++` lines, or its hunks."""
    if rows and minus is None:
        return Fault(
            "missing-file-header",
            rows[0][5],
            "the hunk has no `---` and `+++` lines above it",
            "write `--- a/…` and `+++ b/…` (or /dev/null) under `diff --git`",
        )
    if rows:
        return None
    complete = {
        Kind.MODIFY: False,
        Kind.MODE: True,
        Kind.ADD: new_oid is None
        or new_oid.decode().startswith(tuple(o[: len(new_oid)] for o in _EMPTY_BLOBS)),
        Kind.DELETE: old_oid is None
        or old_oid.decode().startswith(tuple(o[: len(old_oid)] for o in _EMPTY_BLOBS)),
        Kind.RENAME: old_oid is None and similarity in {None, b"100"},
        Kind.COPY: old_oid is None and similarity in {None, b"100"},
    }[kind]
    if complete and minus is None:
        return None
    return Fault(
        "missing-hunk",
        line,
        "the section announces a change of content, but has no hunk",
        "write the `@@ … @@` hunks that belong to it",
    )


def _read_names(
    kind: Kind,
    git_line: bytes,
    source: bytes | None,
    target: bytes | None,
    minus: bytes | None,
    plus: bytes | None,
    line: int,
) -> tuple[bytes, bytes, bool, bool, bool] | Fault:
    """Resolve both names, `a/` and `b/` taken off; equal names for an added or deleted file."""
    if minus is not None and plus is not None and kind is Kind.MODIFY:
        name = minus[2:]
        if (
            _PLAIN_NAME.fullmatch(name)
            and minus == b"a/" + name
            and plus == b"b/" + name
            and git_line == minus + b" " + plus
        ):
            return name, name, True, False, False
    tokens = [token for token in (git_line, source, target, minus, plus) if token is not None]
    high = all(token.isascii() for token in tokens)
    old_tab = new_tab = False
    if minus is not None and plus is not None:
        minus, old_tab = strip_tab(minus)
        plus, new_tab = strip_tab(plus)
        fault = _dev_null_fault(kind, git_line, minus, plus, line)
        if fault:
            return fault
        old = _read_side(minus if kind is not Kind.ADD else plus, b"b/" if kind is Kind.ADD else b"a/")
        new = _read_side(plus if kind is not Kind.DELETE else minus, b"a/" if kind is Kind.DELETE else b"b/")
    elif source is not None and target is not None:
        old, new = unquote(source), unquote(target)
    else:
        halves = split_equal_names(git_line)
        old = None if halves is None else _read_side(halves[0], b"a/")
        new = None if halves is None else _read_side(halves[1], b"b/")
    if old is None or new is None:
        if b"" in tokens:
            return _name_missing(line)
        return Fault(
            "invalid-unified-diff",
            line,
            f"the names of the section cannot be read without guessing: {printable(git_line, 120)}",
            "write names as git does: `a/` and `b/` before them, quoted where they hold quotes or controls",
        )
    if not old or not new:
        return _name_missing(line)
    written = [quote(b"a/" + old, high=high) + b" " + quote(b"b/" + new, high=high)]
    if source is not None:
        written += [quote(old, high=high), quote(new, high=high)]
    if minus is not None:
        written.append(DEV_NULL if kind is Kind.ADD else quote(b"a/" + old, high=high))
        written.append(DEV_NULL if kind is Kind.DELETE else quote(b"b/" + new, high=high))
    given = [token for token in (git_line, source, target, minus, plus) if token is not None]
    if written != given:
        wrong = next(token for token, right in zip(given, written, strict=True) if token != right)
        return Fault(
            "invalid-unified-diff",
            line,
            f"the headers name different files: {printable(wrong, 120)} does not fit the others",
            "`diff --git`, `---`, `+++` and rename lines must name the same file, written as git writes it",
            details={"old": RepoPath.from_patch(old), "new": RepoPath.from_patch(new)},
        )
    if kind not in {Kind.RENAME, Kind.COPY} and old != new:
        return Fault(
            "invalid-unified-diff",
            line,
            f"the section turns {quote_path(old)} into {quote_path(new)} without saying that it is a rename",
            "add `rename from` and `rename to`, or name one file",
        )
    return old, new, high, old_tab, new_tab


def _name_missing(line: int) -> Fault:
    return Fault("path-missing", line, "a header names no file", "name the file after `a/` and `b/`")


def _read_side(token: bytes, prefix: bytes) -> bytes | None:
    name = unquote(token)
    return name[2:] if name is not None and name.startswith(prefix) else None


def _dev_null_fault(kind: Kind, git_line: bytes, minus: bytes, plus: bytes, line: int) -> Fault | None:
    """Refuse `/dev/null` where the modes do not say the same: git would write to a file `dev/null`."""
    for side, wanted, header in ((minus, Kind.ADD, "new"), (plus, Kind.DELETE, "deleted")):
        if side == DEV_NULL and kind is not wanted:
            mended = b"diff --git %b\n%b file mode 100644" % (git_line, header.encode("ascii"))
            return Fault(
                "missing-file-header",
                line,
                f"/dev/null says that the file is {header}, but `{header} file mode` is missing",
                f"add the line `{header} file mode 100644` under `diff --git`",
                mend(line, mended),
            )
        if side != DEV_NULL and kind is wanted:
            return Fault(
                "invalid-unified-diff",
                line,
                f"the file is {header}, but the headers name a file where /dev/null belongs",
                "write `/dev/null` on the side where the file does not exist",
            )
    return None


def _contradiction(groups: tuple[bytes | None, ...], kind: Kind, line: int) -> Fault | None:
    """Find values that cannot be true together: modes, object ids, similarity."""
    _, old_mode, new_mode, _, _, similarity, word, source, target, dissimilarity = groups[:10]
    old_oid, new_oid, index_mode = groups[10:13]
    what = ""
    if old_mode and old_mode == new_mode:
        what = "`old mode` and `new mode` are the same"
    elif old_mode and {old_mode, new_mode} != _FILE_MODES:
        what = "one section cannot turn a file into a link or a submodule, or back"
    elif index_mode and (old_mode or kind in {Kind.ADD, Kind.DELETE}):
        what = "the `index` line repeats a mode that another line tells"
    elif word and source == target:
        what = f"the {kind} has the same name on both sides"
    elif similarity and not word:
        what = "`similarity index` belongs to a rename or a copy"
    elif dissimilarity and kind is not Kind.MODIFY:
        what = "`dissimilarity index` belongs to a rewritten file"
    elif old_oid and new_oid:
        zero_old, zero_new = not old_oid.strip(b"0"), not new_oid.strip(b"0")
        if zero_old != (kind is Kind.ADD) or zero_new != (kind is Kind.DELETE):
            what = "the zeroes of the `index` line do not fit: they stand for a side that does not exist"
    if not what:
        return None
    hint = "leave the `index` line out" if "`index` line" in what else _ONLY_HEADERS
    return Fault("invalid-unified-diff", line, what, hint)


def _wrong_side(kind: Kind, rows: tuple[Row, ...]) -> Fault | None:
    """Refuse a hunk that gives an added file an old side, or a deleted file a new one."""
    if not rows or kind not in {Kind.ADD, Kind.DELETE}:
        return None
    old_start, old_count, new_start, new_count = rows[0][:4]
    absent, present = (old_start, old_count), (new_start, new_count)
    if kind is Kind.DELETE:
        absent, present = present, absent
    if absent == (0, 0) and present[0] == 1 and len(rows) == 1:
        return None
    side = "old" if kind is Kind.ADD else "new"
    wanted = "-0,0 +1,N" if kind is Kind.ADD else "-1,N +0,0"
    return Fault(
        "range-invalid",
        rows[0][5],
        f"the file has no {side} side, but its hunks have lines there",
        f"write one hunk with the range `@@ {wanted} @@`",
    )
