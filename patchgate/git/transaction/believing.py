"""Which names a journal may carry; one with any other was not written by this code, or not for this use.

Decides by the rules that `survey` has for what is written: nothing outside the working tree, nothing in a
git directory but the index, and aside nothing but temporary names. It does not decide whose tree it is.
"""

from __future__ import annotations

import os
import re

from patchgate.git.folders import folders_above
from patchgate.git.path import RepoPath, is_git_alias
from patchgate.git.transaction.places import EXECUTABLE, FILE, LINK, Place, Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchgate.git.transaction.journal import Journal

_ID = re.compile(r"[0-9a-f]{16}")
_ASIDE = re.compile(rb"\.patchgate-[0-9a-f]{16}")
_IDENTITY = re.compile(r"[0-9]+:[0-9]+")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_BITS = 0o7777


def refuse_unbelievable(journal: Journal, name: str) -> None:
    """Hold every name of a journal against what a landing writes.

    Args:
        journal: as it was read.
        name: of the folder that holds it.

    Raises:
        ValueError: one is none of ours.
    """
    _require(journal.id == name and _ID.fullmatch(name) is not None)
    _require(
        _IDENTITY.fullmatch(journal.tree) is not None and _IDENTITY.fullmatch(journal.common) is not None
    )
    _require(os.path.isabs(journal.work_tree) and "\0" not in journal.work_tree + journal.index_file)
    index_name = os.path.basename(journal.index_file)
    _require(bool(index_name))
    _require(
        os.path.isabs(journal.index_file) or (index_name == journal.index_file and "index" in index_name)
    )
    _require(not journal.prefix or _is_plain(journal.prefix))
    _require_places(journal, os.fsencode(index_name))
    written = [RepoPath(each.path) for each in journal.places if each.new and not each.is_index]
    above = folders_above(written)
    _require(all(_is_writable(path) and path in above for path in journal.made))
    made_room = {path.raw for path in written}
    for path, bits in journal.vanishing:
        _require(_is_writable(path) and 0 <= bits <= _MOST_BITS)
        _require(path in made_room or not made_room.isdisjoint(RepoPath(path).parents()))


def _require_places(journal: Journal, index_name: bytes) -> None:
    asides = [place.aside for place in journal.places] + [journal.lock_aside]
    _require(all(_ASIDE.fullmatch(each) for each in asides) and len(set(asides)) == len(asides))
    named = {(place.is_index, place.path) for place in journal.places}
    _require(len(named) == len(journal.places))
    for place in journal.places:
        _require(_is_trace(place.old) and _is_trace(place.new))
        if place.is_index:
            _require(place.path == index_name and not place.folder)
        else:
            _require(_is_writable(place.path) and _is_above(place))


def _is_above(place: Place) -> bool:
    return place.folder in RepoPath(place.path).parents()


def _is_trace(trace: Trace | None) -> bool:
    if trace is None:
        return True
    is_kind = trace.mode in {FILE, EXECUTABLE, LINK}
    return is_kind and trace.size >= 0 and _DIGEST.fullmatch(trace.sha256) is not None


def _is_writable(path: bytes) -> bool:
    return _is_plain(path) and not any(is_git_alias(part) for part in path.split(b"/"))


def _is_plain(path: bytes) -> bool:
    return b"\0" not in path and not any(part in {b"", b".", b".."} for part in path.split(b"/"))


def _require(is_so: bool) -> None:
    if not is_so:
        raise ValueError("has a name that no landing writes")
