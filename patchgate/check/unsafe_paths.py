"""The paths gate: names that no tree may gain (`..`, `.git`, control characters, collisions).

In a commit only new names are judged; deleting a bad one is allowed. A patch or an edit may not even name
one. `git.path` has the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from patchgate.check.case import Case, MergedFolder, find
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath, faults, fold
from patchgate.report.rules import RULES
from patchgate.report.verdict import Finding

_SAYS = {
    "path-empty": "an empty component in",
    "path-absolute": "an absolute path:",
    "path-drive-letter": "a drive letter in",
    "path-traversal": "`.` or `..` in",
    "path-git-dir": "an alias of .git in",
    "path-control": "a control character in",
    "path-too-long": "a name that is too long:",
    "path-colon": "a colon in",
    "path-backslash": "a backslash in",
}


def examine(case: Case) -> Iterator[Finding]:
    """Find the names that break a path rule, and those that collide."""
    for path in _named(case):
        for rule in faults(path, from_text=case.from_text):
            yield find(rule, f"{_SAYS[rule]} {_shown(path)}", path, RULES[rule].help)
    for path, blocking in sorted(case.blocked.items()):
        yield find(
            "path-symlink",
            f"{_shown(path)} is below {_shown(blocking)}, which is not a folder of this repository",
            path,
            "change the file at its real path",
            details={"actual": blocking},
        )
    yield from _collisions(case)


def _named(case: Case) -> Iterator[RepoPath]:
    """List the paths to judge: the new ones of a commit, every named one of a patch or edit."""
    for file in case.change.files:
        if case.from_text or file.is_introduced:
            yield file.path
    yield from case.copied


def _shown(path: RepoPath) -> str:
    text = path.quoted
    return text if len(text) <= 120 else f"{text[:60]}…{text[-40:]}"


def _collisions(case: Case) -> Iterator[Finding]:
    """Compare each new name, and each new folder, with its neighbours in the resulting tree."""
    folded: dict[bytes, dict[str, list[bytes]]] = {}
    seen: set[bytes] = set()
    for file in case.change.files:
        if not file.is_introduced:
            continue
        if file.path.is_too_long:
            continue  # it is refused already, and the folders above it were not listed
        for path in _new_names(file.path.raw, seen):
            folder, _, name = path.rpartition(b"/")
            listing = case.folders.get(folder)
            if listing is None:
                if file.path in case.blocked or faults(file.path, from_text=case.from_text):
                    continue  # such a name is refused already, and no tree has a folder for it
                shown = _shown(RepoPath(folder))
                raise UndecidedError(f"the {f'folder {shown}' if folder else 'root folder'} was not listed")
            if folder not in folded:
                folded[folder] = _by_key(listing)
            same = folded[folder].get(fold(name), [])
            other_name = next((other for other in same if other != name), None)
            if other_name is not None:
                other = RepoPath(folder + b"/" + other_name if folder else other_name)
                yield find(
                    "path-collision",
                    f"{_shown(file.path)} and {_shown(other)} are the same name on a file system that "
                    "ignores case or normalises Unicode",
                    file.path,
                    f"rename it, or remove {_shown(other)} in this change",
                    details={"actual": other},
                )

    yield from _merged_collisions(case, seen)


def _merged_collisions(case: Case, judged: Collection[bytes]) -> Iterator[Finding]:
    """Find the names that collide in a merge, and that no parent has both.

    Args:
        judged: the paths of own changes, whose neighbours were compared already.
    """
    for folder in case.merged:
        for same in _by_key(folder.names).values():
            for name in same:
                beside = (other for other in same if other != name and not _has_both(folder, name, other))
                other_name = next(beside, None)
                if other_name is None or name in folder.parents[0]:
                    continue
                start = folder.path + b"/" if folder.path else b""
                path, other = RepoPath(start + name), RepoPath(start + other_name)
                if path.raw not in judged and other.raw not in judged:
                    yield find(
                        "path-collision",
                        f"this merge has {_shown(path)} and {_shown(other)}, which are the same name on a "
                        "file system that ignores case or normalises Unicode",
                        path,
                        f"rename one of the two before the merge, or remove {_shown(path)} in the merge",
                        details={"actual": other},
                    )


def _has_both(folder: MergedFolder, one: bytes, other: bytes) -> bool:
    return any(one in names and other in names for names in folder.parents)


def _new_names(path: bytes, seen: set[bytes]) -> list[bytes]:
    """List a path and the folders above it that were not seen before, the uppermost first."""
    new: list[bytes] = []
    while path and path not in seen:
        seen.add(path)
        new.append(path)
        path = path.rpartition(b"/")[0]
    return new[::-1]


def _by_key(names: Sequence[bytes]) -> dict[str, list[bytes]]:
    """Group the names that collide; a folder without any gives nothing."""
    together = b"\0".join(names)
    # Folders of thousands of ASCII names are common, collisions are not: this costs 0.1 ms for 1,000 names.
    if together.isascii() and len(set(together.lower().split(b"\0"))) == len(names):
        return {}
    keys: dict[str, list[bytes]] = {}
    for name in names:
        keys.setdefault(fold(name), []).append(name)
    for names_of_key in keys.values():
        names_of_key.sort()
    return keys
