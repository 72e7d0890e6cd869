"""Why a hunk does not match its file, and where its lines are now.

The first line that differs is defined at the stated place: with `p` lines of the old file stated before the
hunk, it is the least `i` for which line `p + i` of the file does not exist, has other bytes than old line
`i` of the hunk (one that begins with a space or `-`), or differs from it in whether a newline ends it.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.git.quoting import printable
from patchgate.patches.line_ends import FileLines, HunkLines, patch_line_of_old
from patchgate.patches.patch_hunks import PatchLine, is_ellipsis, report_ellipsis
from patchgate.patches.patch_model import Detail, Fault, Hunk, PatchFix, PatchSection, hunk_header, make_fix
from patchgate.patches.section_fixes import fix_context, fix_line_ends, fix_new_start, remove_hunk
from patchgate.values import dataclass

MAX_PLACES = 10
# The longest run is looked for among this many old lines; the automaton takes some 500 bytes for each.
MAX_RUN_LINES = 5_000
_SHOWN = 160
_NO_NEWLINE = "`\\ No newline at end of file`"
_MISPLACED = {
    "no-context": (
        "has no context, so its place is not certain",
        "add three lines of context around the change",
    ),
    "beginning": (
        "begins on line 1, but its lines are elsewhere in the file",
        "write the line number where the text is",
    ),
    "end": (
        "has no context after its change, so it fits only at the end of the file",
        "add the lines that follow the change as context",
    ),
    "order": (
        "overlaps an earlier hunk or comes before it",
        "sort the hunks by line; join those that touch the same lines",
    ),
    "ambiguous": (
        "has line numbers that disagree, and its lines occur in the file more than once",
        "give the right line numbers in the hunk header, or more context",
    ),
}


@dataclass(frozen=True, slots=True)
class FitFailure:
    """Why a hunk matches nowhere, and the places (from 0) where its old lines are.

    `reason` is absent, ambiguous, too-many, order (an earlier hunk overlaps it or comes after it), beginning
    (its header says line 1), end (its change has no context after it, but the file has more lines) or
    no-context.
    """

    reason: str
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchingRun:
    """The longest run of a hunk's old lines that the file has: its length, its first old line, its places.

    All count from 0; `length` is 0 if no line with text is found.
    """

    length: int
    first: int
    places: tuple[int, ...]


def find_first_difference(lines: HunkLines, file: FileLines, stated: int) -> int | None:
    """Find the first old line, from 0, that differs at the stated place; None where all are there."""
    last = len(lines.old) - 1
    for index, text in enumerate(lines.old):
        place = stated + index
        if place >= file.count or file.lines[place] != text:
            return index
        lacks_newline = place == file.count - 1 and not file.is_complete
        if lacks_newline != (index == last and lines.old_incomplete):
            return index
    return None


def explain_mismatch(
    section: PatchSection,
    number: int,
    hunk: Hunk,
    lines: HunkLines,
    file: FileLines,
    failure: FitFailure,
    *,
    search: bool = True,
    shift: int = 0,
) -> Fault:
    """Explain why a hunk does not match the current file.

    Args:
        number: the hunk's number in its section, from 1.
        failure: why its lines match nowhere.
        search: if its lines are absent, look for its longest run of lines, in one pass over the file.
        shift: how many lines the hunks before it add.

    Returns:
        A fault whose details have `patch_line`, `hunk`, `file_line`, `expected`, `actual`, `found_at` (lines
        of the file from 1) and `found_lines` (how many lines of the hunk are there).
    """
    stated = hunk.old_position
    index = find_first_difference(lines, file, stated)
    run = _find_run(lines, file, failure, search=search)
    details: dict[str, Detail] = {
        "patch_line": hunk.line,
        "hunk": number,
        "file_line": stated + 1,
        "expected": None,
        "actual": None,
        "found_at": [place + 1 for place in run.places],
        "found_lines": run.length,
    }
    if index is None:
        return _explain_place(hunk, number, failure, details, shift)
    expected, place = lines.old[index], stated + index
    patch_line = patch_line_of_old(section, hunk, index)
    if failure.reason == "absent" and is_ellipsis(expected):
        return report_ellipsis(PatchLine(patch_line, expected))
    actual = file.lines[place] if place < file.count else None
    details |= {"patch_line": patch_line, "file_line": place + 1, "expected": printable(expected, _SHOWN)}
    details["actual"] = None if actual is None else printable(actual, _SHOWN)
    rule = "hunk-ambiguous" if failure.reason == "ambiguous" else "hunk-mismatch"
    difference = _compare(expected, actual, place, file.count)
    hint = _about_end(file, place) if actual == expected else _where_now(run, len(lines.old), failure)
    fix = fix_context(section, hunk, lines, file, index, patch_line)
    if actual is not None and actual != expected and actual.rstrip(b"\r") == expected.rstrip(b"\r"):
        rule, ends = "eol-mixed", "CR LF" if actual.endswith(b"\r") else "LF"
        difference = f"line {place + 1} of the file ends in {ends}, the line of the patch does not"
        hint = "give each line of the hunk the line ending that the file has"
        fix = fix_line_ends(section, hunk, lines, file)
    elif file.lines[stated : stated + len(lines.new)] == lines.new and lines.new:
        hint = "the file already has the result of this hunk: leave the hunk out"
        fix = remove_hunk(section, hunk)
    if failure.reason in {"beginning", "end"} and len(failure.places) == 1:
        fix = _moved_header(hunk, failure.places[0])
    message = f"hunk {number} does not fit: {difference}"
    return Fault(rule, patch_line, message, hint=hint, fix=fix, details=details)


def render_mismatch(fault: Fault) -> tuple[str, ...]:
    """Write a mismatch for a terminal: a few short lines, what the patch has above what the file has."""
    details = fault.details
    lines = [fault.message]
    if details.get("expected") is not None:
        actual = details.get("actual")
        lines.append(f"  patch line {details['patch_line']}: {details['expected']}")
        found = "(the file ends before this line)" if actual is None else actual
        lines.append(f"  file line {details['file_line']}: {found}")
    lines.append(f"  {fault.hint}")
    return tuple(lines)


def _explain_place(
    hunk: Hunk, number: int, failure: FitFailure, details: dict[str, Detail], shift: int
) -> Fault:
    """Explain why a hunk must not be applied where all its lines are."""
    message, hint = _MISPLACED.get(
        failure.reason, ("does not fit at its line", "make the patch again from the current file")
    )
    rule = "hunk-ambiguous" if failure.reason == "ambiguous" else "hunk-mismatch"
    fix = fix_new_start(hunk, shift) if failure.reason == "ambiguous" else None
    return Fault(rule, hunk.line, f"hunk {number} {message}", hint=hint, fix=fix, details=details)


def _compare(expected: bytes, actual: bytes | None, place: int, count: int) -> str:
    if actual is None:
        return f"the patch has `{printable(expected, 80)}`, but the file ends at line {count}"
    if actual == expected:
        return f"line {place + 1} of the file and of the patch differ in the final newline"
    have, want = printable(actual, 80), printable(expected, 80)
    spaces = "; they differ in white space only" if actual.split() == expected.split() else ""
    return f"line {place + 1} of the file is `{have}`, the patch has `{want}`{spaces}"


def _about_end(file: FileLines, place: int) -> str:
    """Say what to do about a line that differs in the final newline only."""
    is_missing = place + 1 == file.count and not file.is_complete
    return f"{'write' if is_missing else 'leave out'} {_NO_NEWLINE} below that line"


def _where_now(run: MatchingRun, wanted: int, failure: FitFailure) -> str:
    places = " and ".join(str(place + 1) for place in run.places[:3])
    if failure.reason == "ambiguous":
        return f"its lines are at line {places}: give the right line number, or more context"
    if run.length == wanted:
        return f"all its lines are at line {places} now: put that number into the hunk header"
    if run.length:
        part = f"{run.length} of its {wanted} lines are at line {places} now"
        return f"{part}: make the patch from the current file"
    return "make the patch again from the current file"


def _moved_header(hunk: Hunk, place: int) -> PatchFix | None:
    """Write the correct hunk header for `place`."""
    shift = place - hunk.old_position
    old, new = hunk.old_start + shift, max(hunk.new_start + shift, 0)
    return make_fix(hunk.line, hunk_header((old, hunk.old_count), (new, hunk.new_count), hunk.section_text))


def _find_run(lines: HunkLines, file: FileLines, failure: FitFailure, *, search: bool) -> MatchingRun:
    if failure.places:
        places = find_places(lines.old, file)
        return MatchingRun(len(lines.old), 0, places or failure.places)
    return (
        find_longest_run(lines.old, file) if search and failure.reason == "absent" else MatchingRun(0, 0, ())
    )


def find_places(wanted: Sequence[bytes], file: FileLines) -> tuple[int, ...]:
    """Find the first `MAX_PLACES` places, from 0, where a file has these lines in a row."""
    if not wanted:
        return ()
    index, candidates = file.rarest(wanted)
    found: list[int] = []
    wanted = list(wanted)
    # At most a thousand tries: a file of equal lines must not cost its length times the hunk's.
    for candidate in candidates[:1000]:
        start = candidate - index
        if start >= 0 and file.lines[start : start + len(wanted)] == wanted:
            found.append(start)
            if len(found) == MAX_PLACES:
                break
    return tuple(found)


def find_longest_run(old: Sequence[bytes], file: FileLines) -> MatchingRun:
    """Find the longest run of old lines that the file has; of several, the first in the file.

    A run of nothing but blank lines does not count. Time is linear: a suffix automaton of the old lines
    reads the file once.
    """
    automaton = _Automaton(old[:MAX_RUN_LINES])
    best = best_end = best_state = 0
    state = length = 0
    last_text = -1
    for number, line in enumerate(file.lines):
        state, length = automaton.step(state, length, line)
        if line.strip():
            last_text = number
        if length > best and last_text > number - length:
            best, best_end, best_state = length, number, state
    if not best:
        return MatchingRun(0, 0, ())
    first = automaton.ends[best_state] - best + 1
    start = best_end - best + 1
    return MatchingRun(best, first, find_places(old[first : first + best], file) or (start,))


class _Automaton:
    """The suffix automaton of a list of lines: reads text and knows the longest run that ends there."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self.follow: list[dict[bytes, int]] = [{}]
        self.links = [-1]
        self.lengths = [0]
        self.ends = [-1]
        last = 0
        for number, line in enumerate(lines):
            last = self._extend(last, number, line)

    def _add(self, length: int, end: int, follow: dict[bytes, int], link: int) -> int:
        self.lengths.append(length)
        self.ends.append(end)
        self.follow.append(follow)
        self.links.append(link)
        return len(self.lengths) - 1

    def _extend(self, last: int, number: int, line: bytes) -> int:
        current = self._add(self.lengths[last] + 1, number, {}, 0)
        state = last
        while state >= 0 and line not in self.follow[state]:
            self.follow[state][line] = current
            state = self.links[state]
        if state < 0:
            return current
        target = self.follow[state][line]
        if self.lengths[target] == self.lengths[state] + 1:
            self.links[current] = target
            return current
        clone = self._add(
            self.lengths[state] + 1, self.ends[target], dict(self.follow[target]), self.links[target]
        )
        while state >= 0 and self.follow[state].get(line) == target:
            self.follow[state][line] = clone
            state = self.links[state]
        self.links[target] = self.links[current] = clone
        return current

    def step(self, state: int, length: int, line: bytes) -> tuple[int, int]:
        """Read one line: the state and the length of the longest run that ends with it."""
        while state and line not in self.follow[state]:
            state = self.links[state]
            length = self.lengths[state]
        if line in self.follow[state]:
            return self.follow[state][line], length + 1
        return 0, 0
