"""Read a CODEOWNERS file: which owners a path has, for the `owner:` line of a refusal. It decides nothing.

Sources: GitHub, "About code owners" (the last line that matches counts; no `!`, no `[ ]`); GitLab, "Code
Owners syntax" (sections, each with a last line that counts, and default owners). In both, `docs/*` means the
files of that folder alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchgate.git.path import RepoPath
from patchgate.policy.glob_matching import PatternSet
from patchgate.policy.glob_syntax import PatternError, parse
from patchgate.values import dataclass, field

PLACES = (
    b".github/CODEOWNERS",
    b".gitlab/CODEOWNERS",
    b"CODEOWNERS",
    b"docs/CODEOWNERS",
)
"""Where the hosts look for the file."""
MOST_BYTES = 3 << 20
_MOST_LINES = 5000
# A file in which so many lines match a path and do not mean it names nobody.
_MOST_TRIES = 50
# Each is a list of patterns from some line on, of up to 1 MB.
_MOST_SETS = 30
_SECTION = re.compile(r"\^?\[([^\]]+)\](?:\[[0-9]+\])?(.*)")
_OWNER = re.compile(r"@?[\w.+-]+(?:[@/][\w./+-]+)*", re.ASCII)


@dataclass(slots=True)
class _Section:
    """The lines of a section, the last one first: patterns and their owners."""

    owners: tuple[str, ...] = ()
    patterns: list[str] = field(default_factory=list)
    owners_of: list[tuple[str, ...]] = field(default_factory=list)
    sets: dict[int, PatternSet] = field(default_factory=dict)


class CodeOwners:
    """The owners of paths, by the bytes of a CODEOWNERS file; a line that cannot be used is skipped."""

    def __init__(self, raw: bytes) -> None:
        self._sections = _sections(raw[:MOST_BYTES].decode("utf-8", "surrogateescape"))

    def of(self, path: RepoPath) -> tuple[str, ...]:
        """Return the owners of a path, each once; none if the file names none."""
        found = (owners for section in self._sections for owners in _last(section, path))
        return tuple(dict.fromkeys(owner for owners in found for owner in owners))


def _sections(text: str) -> Sequence[_Section]:
    found = [_Section()]
    for line in text.split("\n")[:_MOST_LINES]:
        words = line.partition(" #")[0].strip()
        if not words or words.startswith("#"):
            continue
        section = _SECTION.fullmatch(words)
        if section is not None:
            found.append(_Section(_owners(section[2].split())))
            continue
        # A blank in a path is written as `\ `.
        pattern, *owners = re.findall(r"(?:\\.|\S)+", words)
        if pattern.startswith("!") or not _is_usable(pattern):
            continue
        found[-1].patterns.insert(0, pattern)
        found[-1].owners_of.insert(0, _owners(owners))
    return found


def _owners(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in words if _OWNER.fullmatch(word))


def _is_usable(pattern: str) -> bool:
    try:
        parse(pattern, None)
    except PatternError:
        return False
    return True


def _last(section: _Section, path: RepoPath) -> Iterator[tuple[str, ...]]:
    """Yield the owners of the last line of a section that matches a path, if one does."""
    start = 0
    for _ in range(_MOST_TRIES):
        if start not in section.sets:
            if len(section.sets) == _MOST_SETS:
                return
            section.sets[start] = PatternSet(section.patterns[start:], folded=False)
        index = section.sets[start].match(path.raw)
        if index is None:
            return
        start += index
        if _is_meant(section.patterns[start], path):
            yield section.owners_of[start] or section.owners
            return
        start += 1


def _is_meant(pattern: str, path: RepoPath) -> bool:
    """Return whether a pattern that matches a path or a folder above it means the path."""
    above, slash, last = pattern.rstrip("/").rpartition("/")
    if pattern.endswith("/") or not slash or "*" not in last or "**" in above or last == "**":
        return True
    return path.raw.count(b"/") == pattern.strip("/").count("/")
