"""The placeholder gate: what the added lines of a change leave for later.

Decides which of the placeholders that were found are new: those on added lines, and bodies whose function
begins on one, but for those that the change only moves. Control files are exempt. What a placeholder looks
like, `placeholder_matches` decides; what was suspected and not read is never taken for clean.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from patchgate.check.case import Case, find
from patchgate.check.content import suppressed
from patchgate.errors import UndecidedError
from patchgate.git.model import FileChange, Line
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.placeholders.placeholder_matches import Match, is_python
from patchgate.policy.placeholder_markers import FUNCTIONS, Markers
from patchgate.policy.policy import Decision, Policy, Profile
from patchgate.report.rules import RULES
from patchgate.report.verdict import Finding

_MESSAGES = {
    "placeholder-word": "a placeholder is left in",
    "placeholder-bracket": "a placeholder is left in",
    "placeholder-hole": "a hole of a template is left in",
    "placeholder-filler": "filler text is left in",
    "placeholder-body": "a function is not written, or not whole, in",
    "placeholder-marker": "a placeholder of the policy is left in",
}
# A line that begins a function of Python, also behind a lone CR.
_HEADER = re.compile(rb"(?:^|[\r;:])[ \t\f]*(?:async[ \t\f\\]+)?def[ \t\f\\]")


def begins_function(line: bytes) -> bool:
    """Tell whether a line begins a function where it is Python."""
    return any(sign in line for sign in FUNCTIONS) and _HEADER.search(line) is not None


def is_suspicious(markers: Markers, file: FileChange) -> bool:
    """Tell whether a text has to be read: a line that was added may hold a placeholder, or begins a function
    whose body was there before.
    """
    lines = [line.text for line in file.watched]
    return bool(markers.suspects(lines)) or (is_python(file.path.raw) and any(map(begins_function, lines)))


@dataclass(frozen=True, slots=True)
class AddedPlaceholder:
    """A placeholder on an added line: its own, or else one between it and the header of its function."""

    match: Match
    line: Line


@dataclass(frozen=True, slots=True)
class PlaceholderFacts:
    """What was found in a change, and how much of it is only moved.

    `marked` has every file that was read, with the placeholders on its added lines in their order (none: it
    is clean). `gained` tells, for each of their keys, how many more of it the new sides of all files hold
    than the old ones. `fault` says why they could not be read.
    """

    marked: Mapping[RepoPath, tuple[AddedPlaceholder, ...]] = field(default_factory=dict)
    gained: Mapping[bytes, int] = field(default_factory=dict)
    fault: str | None = None

    def concerns(self, gate: str) -> bool:
        """Tell whether a gate has anything to look at: every change was read."""
        return True


def examine(case: Case) -> Iterator[Finding]:
    """Find the placeholders that the change brings."""
    facts = case.facts.get("placeholders")
    if not isinstance(facts, PlaceholderFacts):
        return
    if facts.fault is not None:
        raise UndecidedError(facts.fault)
    judged = [(file, marked) for file in case.change.files if (marked := _added_in(case, facts, file))]
    is_new = _are_new(facts, [each for _, marked in judged for each in marked])
    for file, marked in judged:
        for each in marked:
            if next(is_new):
                yield suppressed(case, _finding(case, file.path, each), each.line)


def _added_in(case: Case, facts: PlaceholderFacts, file: FileChange) -> tuple[AddedPlaceholder, ...]:
    if not file.has_new_content or file.path in case.change.renames or case.is_control(file.path):
        return ()
    if file.added_lines is None and not file.binary:
        raise UndecidedError(f"the added lines of {file.path.quoted} were not read")
    marked = facts.marked.get(file.path)
    if marked is None and is_suspicious(case.policy.markers, file):
        raise UndecidedError(f"the text of {file.path.quoted} was not read")
    return marked or ()


def _are_new(facts: PlaceholderFacts, marked: list[AddedPlaceholder]) -> Iterator[bool]:
    """Tell of one after the other whether it is new: with one key, the last as many as there are more."""
    left = Counter(each.match.key for each in marked)
    for each in marked:
        key = each.match.key
        yield left[key] <= facts.gained.get(key, 0)
        left[key] -= 1


def _finding(case: Case, path: RepoPath, marked: AddedPlaceholder) -> Finding:
    match = marked.match
    fix = RULES[match.rule].help
    hint = fix[:1].lower() + fix[1:].removesuffix(".")
    if case.profile is Profile.COMMIT:
        hint += f"; or say on the line why it stays: patchgate: allow {match.rule} REASON"
    return find(
        match.rule,
        f"{_MESSAGES[match.rule]} {path.quoted} ({printable(match.marker, 80)})",
        path,
        hint,
        line=marked.line.number,
        excerpt=marked.line.text,
        decision=_decision(case.policy, match),
        details={"marker": printable(match.marker, 80)},
    )


def _decision(policy: Policy, match: Match) -> Decision | None:
    """Name the key of a marker of the policy's own."""
    if match.rule != "placeholder-marker":
        return None
    for index, own in enumerate(policy.config.claims.markers):
        if own.name == match.marker:
            return Decision(("claims", "markers", index), own.pattern)
    return None
