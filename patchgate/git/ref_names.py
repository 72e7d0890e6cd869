"""Names of refs that mean more as files: those that are one for a file system, and parts of a repository."""

from __future__ import annotations

import os
from collections.abc import Iterable
from unicodedata import is_normalized

from patchgate.errors import UndecidedError
from patchgate.git.path import fold
from patchgate.git.pushes import RefUpdate, refs_below
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository

_HINT = "choose a name that differs in more than case"
# Git refuses a name that is too long for a file only later, and leaves the folders of it behind.
_MOST_BYTES = 1_000


def ignores_case(repository: Repository) -> bool:
    """Return whether refs are files, and `head` is the file `HEAD`, or is there and not listed."""
    place = repository.common_dir
    head, alike = os.path.join(place, "HEAD"), os.path.join(place, "head")
    if os.path.isdir(os.path.join(place, "reftable")) or not os.path.lexists(alike):
        return False
    # On some shared folders two names of one file have different inodes.
    try:
        return "head" not in os.listdir(place) or os.path.samefile(head, alike)
    except OSError:
        return True


def require_plain_names(repository: Repository, updates: Iterable[RefUpdate]) -> None:
    """Refuse new refs whose name alone can make a file that means something else.

    Of a ref `…/HEAD` and others `…/objects/…` and `…/refs/…` git takes the folder for a repository, which has
    no hooks. Below `refs/remotes/` mirrors have such a ref: there, the folder `objects` is refused. Of a
    branch `HEAD/…` a clone would make a folder where the file `refs/remotes/origin/HEAD` must be. A tag
    `refs/tags/refs/…` has the full name of another ref: git takes it where that is missing, else the name is
    ambiguous. A file system that normalises names (ZFS, HFS+) has one file for two that differ in their
    normal form. A name of thousands of folders costs each later push.

    Raises:
        UndecidedError: there is one.
    """
    is_alike = ignores_case(repository)
    for each in updates:
        if each.old is not None:
            continue
        if len(os.fsencode(each.ref)) > _MOST_BYTES:
            raise UndecidedError(
                f"the name {printable(each.ref, 200)} has more than {_MOST_BYTES:,} bytes",
                "choose a shorter name",
            )
        names = (each.ref.upper() if is_alike else each.ref).split("/")
        is_mirrored = each.ref.startswith("refs/remotes/")
        if {"objects", "OBJECTS"} & {*names[:-1]} if is_mirrored else "HEAD" in names:
            raise UndecidedError(
                f"{printable(each.ref, 200)} contains a name that git reserves: "
                f"{'objects' if is_mirrored else 'HEAD'}",
                "choose another name",
            )
        if {"refs", "REFS"} & {*names[2:3]}:
            raise UndecidedError(
                f"git may take {printable(each.ref, 200)} for {printable(each.ref.split('/', 2)[2], 200)}",
                "choose another name: that of a branch or a tag is written without refs/",
            )
        if not is_normalized("NFC", each.ref):
            raise UndecidedError(
                f"a file system may take {printable(each.ref, 200)} for another name: it is not in NFC",
                "choose a name in Unicode's normal form NFC",
            )


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
        if ref not in there and not ref.isascii():
            # Such a file system may drop some characters, and takes others for letters.
            raise UndecidedError(
                f"the file system of this server may take {printable(ref, 200)} for another name",
                "choose a name of ASCII characters",
            )
        for end in range(1, len(names) + 1):
            name = b"/".join(names[:end])
            other = known.setdefault(fold(name), os.fsdecode(name))
            if os.fsencode(other) != name and ref not in there:
                raise UndecidedError(
                    f"for the file system of this server {printable(ref, 200)} and {printable(other, 200)} "
                    "are one name",
                    _HINT,
                )
