"""The entries of an intent: each is a path, a folder or a glob, and means the same wherever it is read.

Decides which paths an entry takes, as git's pathspecs do: the path itself; all below a folder, which ends in
`/`; what a glob matches, where `*` and `?` also match a `/`. A name with brackets is that name first:
`[id].tsx` is a file of Next.js. Also decides whether two entries can take the same path, so that two intents
never allow one file. Reads no files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase, translate

from patchgate.git.path import RepoPath

_STAR, _ANY = "**", "??"
# As `fnmatch` reads a class: a `]` right after `[` or `[!` is a member, and without an end `[` is itself.
_TOKEN = re.compile(r"(?P<star>\*+)|(?P<any>\?)|(?P<class>\[!?+\]?+[^\]]*+\])|.", re.DOTALL)


def is_folder(entry: RepoPath) -> bool:
    """Tell whether an entry takes what is below a folder."""
    return entry.raw.endswith(b"/")


def is_glob(entry: RepoPath) -> bool:
    """Tell whether an entry could match, as a glob, anything else than itself."""
    return any(sign in entry.raw for sign in (b"*", b"?", b"["))


def may_be_many(entry: RepoPath) -> bool:
    """Tell whether an entry could take another path than itself."""
    return is_folder(entry) or is_glob(entry)


def takes(entry: RepoPath, path: RepoPath) -> bool:
    """Tell whether an entry takes a path."""
    if entry == path:
        return True
    if is_folder(entry) and path.raw.startswith(entry.raw):
        return True
    return is_glob(entry) and fnmatchcase(_text(path), _glob(entry))


def taker_of(entries: Iterable[RepoPath]) -> Callable[[RepoPath], bool]:
    """Make what tells of each path whether any of some entries takes it; of many files it costs little."""
    exact = frozenset(entries)
    folders = tuple(each.raw for each in exact if is_folder(each))
    globs = [translate(_glob(each)) for each in sorted(exact) if is_glob(each)]
    matches = re.compile("|".join(globs)).match if globs else None

    def is_taken(path: RepoPath) -> bool:
        if path in exact or path.raw.startswith(folders):
            return True
        return matches is not None and matches(_text(path)) is not None

    return is_taken


def meet(one: RepoPath, other: RepoPath) -> bool:
    """Tell whether two entries can take the same path; of two classes of characters it is assumed."""
    return any(_meet(left, right) for left in _readings(one) for right in _readings(other))


def _text(path: RepoPath) -> str:
    return path.raw.decode("utf-8", "surrogateescape")


def _glob(entry: RepoPath) -> str:
    return _text(entry) + "*" * is_folder(entry)


def _readings(entry: RepoPath) -> list[list[str]]:
    """Part an entry as it is written, and as a glob: single characters, classes, and what stands for any."""
    found = [[*_text(entry), *[_STAR] * is_folder(entry)]]
    if is_glob(entry):
        found.append([_token(each) for each in _TOKEN.finditer(_glob(entry))])
    return found


def _token(found: re.Match[str]) -> str:
    return {"star": _STAR, "any": _ANY}.get(found.lastgroup or "", found[0])


def _meet(one: list[str], other: list[str]) -> bool:
    """Tell whether some text matches both; each pair of places is looked at once."""
    known: set[tuple[int, int]] = set()
    waiting = [(0, 0)]
    while waiting:
        place = waiting.pop()
        if place in known:
            continue
        known.add(place)
        left, right = place
        here = one[left] if left < len(one) else ""
        there = other[right] if right < len(other) else ""
        if not here and not there:
            return True
        if here == _STAR:
            waiting.append((left + 1, right))
            waiting += [(left, right + 1)] if there else []
        elif there == _STAR:
            waiting.append((left, right + 1))
            waiting += [(left + 1, right)] if here else []
        elif here and there and _share(here, there):
            waiting.append((left + 1, right + 1))
    return False


def _share(one: str, other: str) -> bool:
    """Tell whether two tokens for one character can stand for the same."""
    if one == other or _ANY in {one, other}:
        return True
    if len(one) == len(other) == 1:
        return False
    # Of two classes nobody asks further.
    return min(len(one), len(other)) > 1 or fnmatchcase(*sorted((one, other), key=len))
