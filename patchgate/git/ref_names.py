"""Names of refs that are one file where the file system ignores case: git 2.39 takes one for the other."""

from __future__ import annotations

import os
from collections.abc import Iterable

from patchgate.errors import UndecidedError
from patchgate.git.path import fold
from patchgate.git.pushes import refs_below
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository

_HINT = "choose a name that differs in more than case"


def ignores_case(repository: Repository) -> bool:
    """Return whether refs are files, and `head` is the file `HEAD`."""
    if os.path.isdir(os.path.join(repository.common_dir, "reftable")):
        return False
    try:
        return os.path.samefile(*(os.path.join(repository.common_dir, name) for name in ("HEAD", "head")))
    except OSError:
        return False


def require_own_files(repository: Repository, refs: Iterable[str], head: str | None) -> None:
    """Refuse refs whose file, or a folder of it, would be that of another one.

    Args:
        refs: what a push would write.
        head: the ref that HEAD names, which may be missing.

    Raises:
        UndecidedError: there is one.
    """
    if not ignores_case(repository):
        return
    known: dict[str, str] = {}
    there = dict.fromkeys([*refs_below(repository), *([head] if head else [])])
    for ref in (*there, *refs):
        names = os.fsencode(ref).split(b"/")
        for end in range(1, len(names) + 1):
            name = b"/".join(names[:end])
            other = known.setdefault(fold(name), os.fsdecode(name))
            if os.fsencode(other) != name and ref not in there:
                raise UndecidedError(
                    f"for the file system of this server {printable(ref, 200)} and {printable(other, 200)} "
                    "are one name",
                    _HINT,
                )
