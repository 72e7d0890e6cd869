"""The placeholder gate: reports the placeholders that a change adds.

Decides which of the placeholders that were found are new: those on added lines, and bodies of functions that
begin on one, except those that the change only moves. Control files are exempt. `placeholder_matches` decides
what a placeholder looks like. A suspicious text that was not read never counts as clean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from patchgate.check.case import Case, find
from patchgate.check.content import suppressed
from patchgate.errors import UndecidedError
from patchgate.git.model import FileChange, Line
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.policy.placeholder_markers import FUNCTIONS, Markers, is_python
from patchgate.policy.policy import Decision, Policy, Profile
from patchgate.report.rules import RULES
from patchgate.report.verdict import Finding
from patchgate.values import dataclass, field

if TYPE_CHECKING:
    from patchgate.placeholders.placeholder_matches import Match

_MESSAGES = {
    "placeholder-word": "a placeholder is left in",
    "placeholder-bracket": "a placeholder is left in",
    "placeholder-hole": "an unfilled part of a template is left in",
    "placeholder-filler": "filler text is left in",
    "placeholder-body": "an unfinished function is left in",
    "placeholder-marker": "a placeholder that the policy defines is left in",
}
# A line that begins a Python function, also after a lone CR.
_HEADER = re.compile(rb"(?:^|[\r;:])[ \t\f]*(?:async[ \t\f\\]+)?def[ \t\f\\]")


def begins_function(line: bytes) -> bool:
    """Return whether a line of Python begins a function."""
    return any(sign in line for sign in FUNCTIONS) and _HEADER.search(line) is not None


def is_suspicious(markers: Markers, file: FileChange) -> bool:
    """Return whether a file must be read: an added line may have a placeholder, or begins a function whose
    body was there before.
    """
    lines = [line.text for line in file.watched]
    return bool(markers.suspects(lines)) or (is_python(file.path.raw) and any(map(begins_function, lines)))


@dataclass(frozen=True, slots=True)
class AddedPlaceholder:
    """A placeholder and its added line: its own, or one between it and the header of its function."""

    match: Match
    line: Line


@dataclass(frozen=True, slots=True)
class PlaceholderFacts:
    """The placeholders that were found in a change, and how many of them were only moved.

    `added` has every file that was read, with the placeholders on its added lines in order (none: it is
    clean). `gained` says for each of their keys how many more the new sides of all files have than the old
    sides. `fault` says why the files could not be read.
    """

    added: Mapping[RepoPath, tuple[AddedPlaceholder, ...]] = field(default_factory=dict)
    gained: Mapping[bytes, int] = field(default_factory=dict)
    fault: str | None = None

    def concerns(self, gate: str) -> bool:
        """Always true: the gate reads every change."""
        return True


def examine(case: Case) -> Iterator[Finding]:
    """Report the placeholders that a change adds."""
    facts = case.facts.get("placeholders")
    if not isinstance(facts, PlaceholderFacts):
        return
    if facts.fault is not None:
        raise UndecidedError(facts.fault)
    files = [(file, added) for file in case.change.files if (added := _added_in(case, facts, file))]
    is_new = _are_new(facts, [each for _, added in files for each in added])
    for file, added in files:
        for each in added:
            if next(is_new):
                yield suppressed(case, _finding(case, file.path, each), each.line)


def _added_in(case: Case, facts: PlaceholderFacts, file: FileChange) -> tuple[AddedPlaceholder, ...]:
    if not file.has_new_content or file.path in case.change.renames or case.is_control(file.path):
        return ()
    if file.added_lines is None and not file.binary:
        raise UndecidedError(f"the added lines of {file.path.quoted} were not read")
    added = facts.added.get(file.path)
    if added is None and is_suspicious(case.policy.markers, file):
        raise UndecidedError(f"the text of {file.path.quoted} was not read")
    return added or ()


def _are_new(facts: PlaceholderFacts, added: list[AddedPlaceholder]) -> Iterator[bool]:
    """Yield for each placeholder whether it is new: with one key, the last are, as many as were gained."""
    left = Counter(each.match.key for each in added)
    for each in added:
        key = each.match.key
        yield left[key] <= facts.gained.get(key, 0)
        left[key] -= 1


def _finding(case: Case, path: RepoPath, added: AddedPlaceholder) -> Finding:
    match = added.match
    hint = RULES[match.rule].hint
    if case.profile is Profile.COMMIT:
        hint += f"; if it is intended, add to the line: patchgate: allow {match.rule} REASON"
    return find(
        match.rule,
        f"{_MESSAGES[match.rule]} {path.quoted} ({printable(match.marker, 80)})",
        path,
        hint,
        line=added.line.number,
        excerpt=added.line.text,
        decision=_decision(case.policy, match),
        details={"marker": printable(match.marker, 80)},
    )


def _decision(policy: Policy, match: Match) -> Decision | None:
    """Return the key of a marker that the policy defines."""
    if match.rule != "placeholder-marker":
        return None
    for index, own in enumerate(policy.config.claims.markers):
        if own.name == match.marker:
            return Decision(("claims", "markers", index), own.pattern)
    return None
