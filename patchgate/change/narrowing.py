"""A patch made smaller: the sections of some paths, byte for byte.

Decides which sections of a patch speak of which paths. What is left is a patch of its own, with its own hash,
and is judged like any other: nothing of the rest was accepted or refused. A section is never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from patchgate.change.folders import folders_above
from patchgate.change.patch_model import Patch, Section
from patchgate.change.patch_names import unquote
from patchgate.change.path import RepoPath
from patchgate.errors import UsageError


def narrow(patch: Patch, paths: Sequence[RepoPath]) -> bytes:
    """Keep the sections whose old or new path is one of the paths, or lies below one.

    A rename and a copy go whole: both their names count. Order and bytes of the sections stay.

    Returns:
        The narrowed patch; empty where no section speaks of any of the paths.
    """
    wanted = {path.raw for path in paths}
    kept = (section for section in patch.sections if _touches(section, wanted))
    return b"".join([patch.raw[section.start : section.end] for section in kept])


def untouched(patch: Patch, paths: Iterable[RepoPath]) -> tuple[RepoPath, ...]:
    """Name the paths of which no section speaks: most often a slip of the pen."""
    touched = {path for section in patch.sections for path in _paths(section)}
    named = folders_above(touched) | {path.raw for path in touched}
    return tuple(path for path in paths if path.raw not in named)


def path_to_keep(text: str) -> RepoPath:
    """Read a path as `details.split` writes it: from the repository's root, quoted as git quotes.

    Raises:
        UsageError: the path is empty, absolute, or leaves the repository, or its quoting is not git's.
    """
    if not text.startswith('"'):
        return RepoPath.from_user(text)
    name = unquote(text.encode("utf-8", "surrogateescape"))
    if name is None:
        raise UsageError("that path is quoted otherwise than git quotes", "copy it from the refusal")
    return RepoPath.from_user(name.decode("utf-8", "surrogateescape"))


def _paths(section: Section) -> tuple[RepoPath, ...]:
    return tuple(path for path in (section.old_path, section.new_path) if path is not None)


def _touches(section: Section, wanted: set[bytes]) -> bool:
    return any(above in wanted for path in _paths(section) for above in _and_above(path))


def _and_above(path: RepoPath) -> tuple[bytes, ...]:
    """Give a path and the folders above it, the root left out."""
    return (path.raw, *(folder for folder in path.parents() if folder))
