"""SEARCH/REPLACE blocks, as for Aider: the name of a file, then the lines to find and the new ones.

The name stands alone on the line above the block, or above the fence around it; a block without one is for
the file of the block above it. An empty SEARCH writes a new file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchgate.git.path import RepoPath
from patchgate.patches.formats.anchors import find_lines, refuse_place
from patchgate.patches.formats.proposal import MAX_CHANGES, WorkingFiles, line_at, read_label, refuse
from patchgate.patches.line_ends import FileLines
from patchgate.values import dataclass

_MARK = re.compile(rb"^(?:(<{5,9}) SEARCH|(={5,9})|(>{5,9}) REPLACE)[ \t]*$", re.MULTILINE)
_OPENING = re.compile(rb"(?:`{3,}|~{3,})[^`]*")
_FORM = "send PATH, <<<<<<< SEARCH, the lines to find, =======, the new lines, >>>>>>> REPLACE"
_RULE = "input-invalid"


@dataclass(frozen=True, slots=True)
class SearchBlock:
    """One block: where it begins and ends in the text, its two sides, and the line of SEARCH, from 1."""

    start: int
    end: int
    search: bytes
    replacement: bytes
    line: int


def read_blocks(text: bytes) -> Iterator[SearchBlock]:
    """Read the blocks of a text; each marker is as long as the first of its block."""
    opened: re.Match[bytes] | None = None
    divider: re.Match[bytes] | None = None
    line = seen = 0
    for match in _MARK.finditer(text):
        search, middle, replace = match.groups()
        if opened is None:
            if middle:
                continue
            line, seen = line + text.count(b"\n", seen, match.start()), match.start()
            if replace:
                raise refuse(_RULE, line + 1, "this REPLACE has no SEARCH above it", _FORM)
            opened = match
        elif search:
            message = "a SEARCH begins inside another block"
            raise refuse("patch-truncated", line_at(text, match.start()), message, "send every block whole")
        elif len((middle or replace) or b"") != len(opened[1]):
            continue
        elif middle and divider is not None:
            message = "a block has two lines that may divide it"
            hint = "make its three markers longer: <<<<<<<< SEARCH, ========, >>>>>>>> REPLACE"
            raise refuse(_RULE, line_at(text, match.start()), message, hint)
        elif middle:
            divider = match
        elif divider is None:
            raise refuse(_RULE, line_at(text, match.start()), "the block has no line =======", _FORM)
        else:
            old = text[opened.end() + 1 : divider.start()]
            new = text[divider.end() + 1 : match.start()]
            yield SearchBlock(opened.start(), min(match.end() + 1, len(text)), old, new, line + 1)
            opened = divider = None
    if opened is not None:
        message = "a block has no line >>>>>>> REPLACE, so it is not whole"
        raise refuse("patch-truncated", line + 1, message, "send every block whole")


def find_spans(text: bytes) -> list[tuple[int, int]]:
    """Find where the blocks of a text are."""
    return [(block.start, block.end) for block in read_blocks(text)]


def read_search_replace(text: bytes, files: WorkingFiles) -> None:
    """Read the blocks of a text into the files that they change, one after the other."""
    path: RepoPath | None = None
    done = count = 0
    for block in read_blocks(text):
        count += 1
        if count > MAX_CHANGES:
            hint = "split the change into several proposals"
            raise refuse("patch-too-large", block.line, f"there are more than {MAX_CHANGES} blocks", hint)
        name = _name_above(text, done, block.start)
        if name is not None:
            path = _path_of(name, block, files)
        if path is None:
            raise _nameless(block)
        _replace(path, block, files)
        done = block.end
    if not count:
        raise refuse(_RULE, 1, "there is no line `<<<<<<< SEARCH`", _FORM)


def _name_above(text: bytes, start: int, end: int) -> bytes | None:
    """Read the name above a block; None if only fences and empty lines are between it and the one above."""
    begin = max(start, end - (16 << 10))
    lines = [line.strip() for line in text[begin:end].split(b"\n")]
    named = [line for line in lines if line and not _OPENING.fullmatch(line)]
    if not named:
        return None
    # The nearest line with text is the name: directly above, or above the fence.
    return read_label(named[-1])


def _path_of(name: bytes, block: SearchBlock, files: WorkingFiles) -> RepoPath:
    """Read a name; what no file has is a name only if it does not look like a word or a sentence."""
    path = files.path_of(name, block.line)
    if files.exists(path, block.line) or (b" " not in name and (b"." in name or b"/" in name)):
        return path
    raise _nameless(block)


def _nameless(block: SearchBlock) -> Exception:
    message = "no line above the block names its file"
    return refuse("path-missing", block.line, message, "write its name alone on the line above")


def _replace(path: RepoPath, block: SearchBlock, files: WorkingFiles) -> None:
    is_there = files.exists(path, block.line)
    if not block.search.strip(b"\n") and not (is_there and files.content(path, block.line)):
        if is_there:
            files.change(path, block.replacement)
        else:
            files.add(path, block.replacement, block.line)
        return
    content = files.content(path, block.line)
    wanted = block.search.split(b"\n")[:-1]
    if not wanted:
        message = f"the SEARCH of {path.quoted} is empty, but the file has text"
        hint = "copy the lines to change from the file"
        raise refuse("hunk-mismatch", block.line, message, hint, path)
    found = find_lines(content, wanted)
    if len(found.places) != 1:
        raise refuse_place(path, content, wanted, found.places, block.line + 1, "the text of SEARCH")
    files.change(path, replace_lines(content, found.places[0], wanted, block.replacement.split(b"\n")[:-1]))


def replace_lines(content: bytes, place: int, old: list[bytes], new: list[bytes]) -> bytes:
    """Replace whole lines of a text; its last line stays without a newline if it is not changed."""
    file = FileLines(content)
    made = [*file.lines[:place], *new, *file.lines[place + len(old) :]]
    is_kept = place + len(old) < file.count or bool(new and old[-1] == new[-1])
    end = b"\n" if made and (file.is_complete or not is_kept) else b""
    return b"\n".join(made) + end
