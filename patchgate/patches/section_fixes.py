"""Mechanical fixes for one section of a patch: its headers, or hunks that do not match their file.

Names are never guessed: every name must be the one name of the `diff --git` line. Text is not guessed either:
a line of context is taken from the file only if all lines around it agree. Headers are proposals, which the
grammar reads again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchgate.git.quoting import DEV_NULL, quote, split_equal_names, unquote
from patchgate.patches.line_ends import FileLines, HunkLines
from patchgate.patches.patch_hunks import is_ellipsis
from patchgate.patches.patch_model import Hunk, PatchFix, PatchSection, SectionKind, hunk_header, make_fix

_MOST_LINES = 200
_CR = b"\r"
_START = b"diff --git "
_FILE_MODE = re.compile(rb"(?:100|0)?([0-7])[0-7]{2}")
_OTHER = {b"100644": b"100755", b"100755": b"100644"}
_PREFIXES = (
    *(b"old mode ", b"new mode ", b"new file mode ", b"deleted file mode ", b"index ", b"--- ", b"+++ "),
    *(b"similarity index ", b"dissimilarity index "),
)


def propose_headers(headers: Sequence[bytes], *, has_hunks: bool) -> Iterator[bytes]:
    """Propose blocks of headers (lines joined by LF, none at the end), the least changed first.

    Args:
        headers: the lines from `diff --git` up to the first hunk, without LF.
        has_hunks: whether a hunk follows; without one, headers that need hunks are never left out.
    """
    texts = [line.rstrip(b"\r") for line in headers]
    if texts != list(headers):
        yield b"\n".join(texts)
    if not has_hunks and any(text.startswith((b"index ", b"--- ", b"+++ ")) for text in texts):
        return
    without_index = [text for text in texts if not text.startswith(b"index ")]
    if without_index != texts:
        yield b"\n".join(without_index)
    name = _only_name(texts)
    if name is not None:
        if not texts[0].startswith((_START + b"a/", _START + b'"a/')):
            texts[0] = _git_line(name)
        yield from _whole_blocks(texts, name, has_hunks=has_hunks)


def _whole_blocks(texts: Sequence[bytes], name: bytes, *, has_hunks: bool) -> Iterator[bytes]:
    """Write the headers again from their values, if each is known and agrees with the others."""
    values = {prefix: _value(texts, prefix) for prefix in _PREFIXES}
    known = all(text in {b"---", b"+++"} or text.startswith(_PREFIXES) for text in texts[1:])
    if not known or not _agrees(values, name):
        return
    modes = _modes(values)
    if modes is None:
        return
    lines = [texts[0], *modes]
    if has_hunks:
        is_new = any(line.startswith(b"new file") for line in modes)
        is_gone = any(line.startswith(b"deleted") for line in modes)
        yield b"\n".join((*lines, *write_name_lines(name, is_new=is_new, is_gone=is_gone)))
    else:
        yield b"\n".join(lines)


def write_section_headers(minus: bytes, plus: bytes, above: Sequence[bytes] = ()) -> bytes | None:
    """Write the headers for `---` and `+++` lines without `diff --git`; None if the names differ.

    Args:
        minus: what follows `--- `, plus: what follows `+++ `; both may lack `a/` and `b/`.
        above: the headers above these lines.
    """
    minus, plus = (_plain_token(token) for token in (minus, plus))
    is_new, is_gone = minus == DEV_NULL, plus == DEV_NULL
    if is_new and is_gone:
        return None
    old, new = minus.removeprefix(b"a/"), plus.removeprefix(b"b/")
    name = new if is_new else old
    if not name or (not is_new and not is_gone and old != new):
        return None
    texts = (_git_line(name), *above, *write_name_lines(name, is_new=is_new, is_gone=is_gone))
    *_, block = (None, *_whole_blocks([text.rstrip(b"\r") for text in texts], name, has_hunks=True))
    return block


def write_name_lines(name: bytes, *, is_new: bool, is_gone: bool) -> tuple[bytes, bytes]:
    """Write the `---` and `+++` lines of a file."""
    tab = b"\t" if b" " in name else b""
    old = DEV_NULL if is_new else quote(b"a/" + name, high=True) + tab
    new = DEV_NULL if is_gone else quote(b"b/" + name, high=True) + tab
    return b"--- " + old, b"+++ " + new


def _git_line(name: bytes) -> bytes:
    return _START + quote(b"a/" + name, high=True) + b" " + quote(b"b/" + name, high=True)


def _only_name(texts: Sequence[bytes]) -> bytes | None:
    """Read the one name of the `diff --git` line, also without `a/` and `b/` (`diff.noprefix`)."""
    halves = split_equal_names(texts[0][len(_START) :])
    if halves is None:
        return None
    old, new = unquote(halves[0]), unquote(halves[1])
    if old is None or new is None:
        return None
    if old == new and not old.startswith((b"a/", b"b/", b"/")):
        return old or None
    if not old.startswith(b"a/") or not new.startswith(b"b/"):
        return None
    return old[2:] if old[2:] == new[2:] and old[2:] else None


def _value(texts: Sequence[bytes], prefix: bytes) -> bytes | None:
    return next((text[len(prefix) :] for text in texts if text.startswith(prefix)), None)


def _agrees(values: dict[bytes, bytes | None], name: bytes) -> bool:
    """Return whether the other names are this one, or absent."""
    for prefix, side in ((b"--- ", b"a/"), (b"+++ ", b"b/")):
        value = values[prefix]
        if value and _plain_token(value) != DEV_NULL and _plain_token(value).removeprefix(side) != name:
            return False
    return True


def _modes(values: dict[bytes, bytes | None]) -> list[bytes] | None:
    """Write the lines of the modes; None if they contradict each other or are unknown."""
    added, gone = values[b"new file mode "], values[b"deleted file mode "]
    minus, plus = values[b"--- "], values[b"+++ "]
    if added is None and gone is None:
        added = b"100644" if minus == DEV_NULL else None
        gone = b"100644" if plus == DEV_NULL else None
    old, new = values[b"old mode "], values[b"new mode "]
    if sum(each is not None for each in (added, gone, old or new)) > 1:
        return None
    for word, mode in ((b"new", added), (b"deleted", gone)):
        if mode is not None:
            known = _canonical(mode)
            return None if known is None else [word + b" file mode " + known]
    if old is None and new is None:
        return []
    old, new = (None if mode is None else _canonical(mode) for mode in (old, new))
    # A file has one of two modes, so one gives the other.
    old, new = old or _OTHER.get(new or b""), new or _OTHER.get(old or b"")
    if old is None or new is None or old == new:
        return None
    return [b"old mode " + old, b"new mode " + new]


def _canonical(mode: bytes) -> bytes | None:
    """Return the mode that git stores: for a file only whether its owner may run it (`create_ce_mode`)."""
    if mode in {b"120000", b"160000"}:
        return mode
    match = _FILE_MODE.fullmatch(mode)
    return None if match is None else (b"100755" if int(match[1]) & 1 else b"100644")


def _plain_token(token: bytes) -> bytes:
    """Read a name as other tools write it: followed by a TAB and a time, or a CR."""
    token = token.rstrip(b"\r").partition(b"\t")[0]
    return unquote(token) or token


def remove_section(section: PatchSection) -> PatchFix:
    """Leave a section out."""
    return PatchFix(section.line, None, _last_line(section))


def fix_as_new_file(section: PatchSection) -> PatchFix | None:
    """Write the headers that turn a section without old lines into a new file; None if it has old lines."""
    if section.kind is not SectionKind.MODIFY or len(section.rows) != 1:
        return None
    (hunk,) = section.hunks
    if hunk.old_count or hunk.new_start != 1:
        return None
    git_line = section.raw[section.start : section.raw.index(b"\n", section.start)]
    names = write_name_lines(section.path.raw, is_new=True, is_gone=False)
    header = hunk_header((0, 0), (1, hunk.new_count))
    return make_fix(section.line, b"\n".join((git_line, b"new file mode 100644", *names, header)), hunk.line)


def fix_mode(section: PatchSection, mode: str) -> PatchFix | None:
    """Write the file's current mode into the headers; remove the mode lines if it is already the new one."""
    stop = section.rows[0][6] if section.rows else section.end
    texts = section.raw[section.start : stop].split(b"\n")[:-1]
    actual = mode.encode("ascii")
    for number, text in enumerate(texts, start=section.line):
        if text.startswith(b"deleted file mode "):
            return make_fix(number, b"deleted file mode " + actual)
        if text.startswith(b"old mode "):
            if section.new_mode != mode:
                return make_fix(number, b"old mode " + actual)
            return PatchFix(number, None, number + 1) if section.rows else remove_section(section)
        if text.startswith(b"index ") and text.count(b" ") == 2:
            return make_fix(number, text.rpartition(b" ")[0] + b" " + actual)
    return None


def remove_hunk(section: PatchSection, hunk: Hunk) -> PatchFix:
    """Leave a hunk out, and its section if it has no other."""
    if section.n_hunks == 1:
        return remove_section(section)
    return PatchFix(hunk.line, None, hunk.line + section.body(hunk).count(b"\n"))


def fix_new_start(hunk: Hunk, shift: int) -> PatchFix | None:
    """Write the header of a hunk whose old line number is right, with `shift` lines added above it."""
    place = hunk.old_position + shift
    new_start = place + 1 if hunk.new_count else place
    if new_start < 0 or new_start == hunk.new_start:
        return None
    old, new = (hunk.old_start, hunk.old_count), (new_start, hunk.new_count)
    return make_fix(hunk.line, hunk_header(old, new, hunk.section_text))


def fix_context(
    section: PatchSection, hunk: Hunk, lines: HunkLines, file: FileLines, index: int, patch_line: int
) -> PatchFix | None:
    """Take one line of context from the file, if every other old line is where the hunk says.

    Args:
        index: which old line differs, from 0.
        patch_line: its line in the patch, from 1.
    """
    start = hunk.old_position
    have = file.lines[start : start + len(lines.old)]
    others = [each for each in range(len(lines.old)) if each != index]
    if len(others) < 2 or len(have) != len(lines.old):
        return None
    if any(have[each] != lines.old[each] for each in others):
        return None
    body = section.body(hunk).split(b"\n")
    text = body[patch_line - hunk.line - 1]
    if text != b" " + lines.old[index] or have[index] == lines.old[index]:
        return None
    # A removed or added line without its sign, or an ellipsis, is not context.
    if have[index] == b" " + lines.old[index] or is_ellipsis(lines.old[index]):
        return None
    return make_fix(patch_line, b" " + have[index])


def fix_line_ends(section: PatchSection, hunk: Hunk, lines: HunkLines, file: FileLines) -> PatchFix | None:
    """Give a hunk's old lines the file's line endings; added lines get those of the line above."""
    start = hunk.old_position
    have = file.lines[start : start + len(lines.old)]
    if len(have) != len(lines.old) or hunk.lines > _MOST_LINES or hunk.form & 3:
        return None
    if any(
        one.removesuffix(_CR) != other.removesuffix(_CR) for one, other in zip(have, lines.old, strict=True)
    ):
        return None
    texts = _with_ends(section.body(hunk).split(b"\n")[:-1], have)
    return make_fix(hunk.line + 1, b"\n".join(texts), hunk.line + hunk.lines)


def _with_ends(body: Sequence[bytes], have: Sequence[bytes]) -> list[bytes]:
    texts: list[bytes] = []
    seen = 0
    for text in body:
        if text.startswith(b"+"):
            end = _CR if have[max(seen - 1, 0)].endswith(_CR) else b""
            texts.append(text.removesuffix(_CR) + end)
        else:
            texts.append(text[:1] + have[seen])
            seen += 1
    return texts


def _last_line(section: PatchSection) -> int:
    return section.line + section.raw.count(b"\n", section.start, section.end) - 1
