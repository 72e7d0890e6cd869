"""Which files a patch names, and the part of a patch for some paths (`--only`), byte for byte.

That part is a patch with a different hash, and is judged like any other. A section is never split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress

from patchgate.errors import UsageError
from patchgate.git.model import folders_above
from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import exact_text, split_equal_names, strip_tab, unquote
from patchgate.patches.edits import Edits, parse_edits
from patchgate.patches.patch_model import Patch, PatchSection

MAX_NAMES = 200
_MOST_BYTES = 4 * 1024 * 1024
_NAMES = re.compile(
    rb"^(?:diff --git ([^\n]+)|(?:---|\+\+\+) ([^\n]+)|rename (?:from|to) ([^\n]+))$", re.MULTILINE
)


def list_named_paths(raw: bytes) -> tuple[RepoPath, ...]:
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


def select_paths(patch: Patch, paths: Sequence[RepoPath]) -> bytes:
    """Keep the sections whose old or new path is one of the paths, or below one.

    Both names of a rename or copy count. Order and bytes of the sections do not change.

    Returns:
        The narrowed patch; empty if no section names any of the paths.
    """
    wanted = {path.raw for path in paths}
    kept = (section for section in patch.sections if _touches(section, wanted))
    return b"".join([patch.raw[section.start : section.end] for section in kept])


def find_unnamed_paths(patch: Patch, paths: Iterable[RepoPath]) -> tuple[RepoPath, ...]:
    """List the paths that no section names: mostly typing errors."""
    touched = {path for section in patch.sections for path in _paths(section)}
    named = folders_above(touched) | {path.raw for path in touched}
    return tuple(path for path in paths if path.raw not in named)


def read_path_option(text: str) -> tuple[RepoPath, ...]:
    """Read a path of `--only`, from the repository's root: as it is, and unquoted if it is quoted as by git.

    A name may begin with a quote, so only the patch decides which of the two is meant.

    Raises:
        UsageError: the path is empty, absolute, or leaves the repository.
    """
    found = [RepoPath.from_user(text)]
    name = unquote(text.encode("utf-8", "surrogateescape")) if text.startswith('"') else None
    if name is not None:
        with suppress(UsageError):
            found.append(RepoPath.from_user(name.decode("utf-8", "surrogateescape")))
    return tuple(dict.fromkeys(found))


def choose_paths(patch: Patch, wanted: Sequence[Sequence[RepoPath]]) -> tuple[RepoPath, ...]:
    """Choose for each path the reading that the patch names.

    Raises:
        UsageError: the patch names none of the readings of a path, or several.
    """
    absent = frozenset(find_unnamed_paths(patch, (path for found in wanted for path in found)))
    return tuple(_choose(found, absent) for found in wanted)


def _choose(found: Sequence[RepoPath], absent: Set[RepoPath]) -> RepoPath:
    named = [path for path in found if path not in absent]
    if not named:
        raise UsageError(
            f"the patch does not name {found[-1].quoted}",
            "name paths of the patch with --only, as they are or as git quotes them",
        )
    if len(named) > 1:
        exact, unquoted = named
        raise UsageError(
            "that path means two files of the patch: as it is, and unquoted",
            f"name {exact_text(unquoted.raw) or 'its folder'} or {exact.quoted}",
        )
    return named[0]


def _paths(section: PatchSection) -> tuple[RepoPath, ...]:
    return tuple(path for path in (section.old_path, section.new_path) if path is not None)


def _touches(section: PatchSection, wanted: set[bytes]) -> bool:
    return any(above in wanted for path in _paths(section) for above in _and_above(path))


def _and_above(path: RepoPath) -> tuple[bytes, ...]:
    """Return a path and the folders above it, without the root."""
    return (path.raw, *(folder for folder in path.parents() if folder))
