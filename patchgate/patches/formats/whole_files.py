"""Whole new files: the name of each alone on a line, and its text in a fence below.

Only for files that do not exist. A fence for a shell is prose, any other one without a name is refused. A
text that has fences itself needs a longer one around it.
"""

from __future__ import annotations

import re

from patchgate.patches.formats.proposal import Fence, WorkingFiles, line_at, read_fences, read_label, refuse

_SHELLS = {b"bash", b"console", b"sh", b"shell", b"shell-session", b"zsh", b"powershell"}
_INNER = re.compile(rb"^(`{3,}+|~{3,}+)[ \t]*+[^\s`][^\n`]*+$", re.MULTILINE)
_MARK = re.compile(rb"`+|~+")
_BLOCK = re.compile(rb"^<{5,9} SEARCH[ \t]*$", re.MULTILINE)
_FORM = "write the name of each file on a line, and its whole text in a fence below"


def read_whole_files(text: bytes, files: WorkingFiles) -> None:
    """Read the fences of a text into new files."""
    count = 0
    for fence in read_fences(text):
        line = fence.line
        if fence.closing is None:
            message = "the fence is not closed, so the file is not whole"
            raise refuse(
                "patch-truncated", line, message, "send the whole file again, with its closing fence"
            )
        if fence.info.lower() in _SHELLS:
            continue
        name = name_above(text, fence)
        if name is None:
            raise refuse("path-missing", line, "no line above the fence names its file", _FORM)
        mark = _MARK.match(text, fence.start)
        found = _INNER.finditer(text, fence.content, fence.closing)
        inner = next((each for each in found if mark is not None and each[1].startswith(mark[0])), None)
        if inner is not None:
            message = "the text of the file has a fence as long as the one around it"
            hint = "put a longer fence around the file: four backticks"
            raise refuse("input-invalid", line_at(text, inner.start()), message, hint)
        if _BLOCK.search(text, fence.content, fence.closing):
            message, hint = "the fence has SEARCH/REPLACE blocks", "send them with --input search-replace"
            raise refuse("input-invalid", line, message, hint)
        files.add(files.path_of(name, line), text[fence.content : fence.closing], line)
        count += 1
    if not count:
        raise refuse("input-invalid", 1, "there is no fence with the name of a file above it", _FORM)


def find_file_spans(text: bytes) -> list[tuple[int, int]]:
    """Find where the fences of a text are that are closed."""
    return [(each.start, each.end) for each in read_fences(text) if each.end is not None]


def name_above(text: bytes, fence: Fence) -> bytes | None:
    """Read the name on the line above a fence; None if that line is empty or is a sentence."""
    above = text[max(0, fence.start - (16 << 10)) : fence.start].rstrip(b"\n")
    if above and text[max(0, fence.start - 3) : fence.start] == b"\n\n\n":
        return None
    label = above.rpartition(b"\n")[2].strip()
    name = read_label(label)
    is_name = b"." in name or b"/" in name or name != label
    return name if name and b" " not in name and is_name else None
