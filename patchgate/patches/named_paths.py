"""Which files a proposal names that cannot be read as a whole.

Decides only what to remember of a refused proposal, so that the next one can be compared with it. It judges
nothing: a name that is written oddly is left out, and nothing is done to the files.
"""

from __future__ import annotations

import re

from patchgate.git.patch_names import split_equal_names, strip_tab, unquote
from patchgate.git.path import RepoPath, faults
from patchgate.patches.edits import Edits, parse_edits

MAX_NAMES = 200
_MOST_BYTES = 4 * 1024 * 1024
_NAMES = re.compile(
    rb"^(?:diff --git ([^\n]+)|(?:---|\+\+\+) ([^\n]+)|rename (?:from|to) ([^\n]+))$", re.MULTILINE
)


def named_paths(raw: bytes) -> tuple[RepoPath, ...]:
    """List the files that a patch, or the JSON of edits, names; each once, the first `MAX_NAMES`."""
    if raw.lstrip()[:1] == b"{":
        edits = parse_edits(raw)
        return (edits.path,) if isinstance(edits, Edits) and not faults(edits.path, from_text=True) else ()
    found: dict[RepoPath, None] = {}
    for match in _NAMES.finditer(raw[:_MOST_BYTES]):
        for name in _names(*(group and group.rstrip(b"\r") for group in match.groups())):
            path = RepoPath.from_patch(name)
            if not faults(path, from_text=True):
                found[path] = None
        if len(found) >= MAX_NAMES:
            break
    return tuple(found)


def _names(git_line: bytes | None, side: bytes | None, moved: bytes | None) -> list[bytes]:
    tokens = [moved] if moved else []
    if git_line:
        tokens += split_equal_names(git_line) or ()
    if side:
        tokens.append(strip_tab(side)[0])
    read = [unquote(token) for token in tokens]
    names = [name for name in read if name]
    return names if moved else [name[2:] for name in names if name[:2] in {b"a/", b"b/"}]
