"""What is literal in a gitignore pattern, so that most paths are ruled out by plain comparisons of text.

Decides only what is surely in a path that the pattern matches, folded, if that path is plain ASCII; whether
it does match, `patterns` decides. The tests hold the two against each other.
"""

from __future__ import annotations

import re
from itertools import takewhile

from patchgate.policy.glob import Segment, Single, readings

Check = tuple[str, str]
"""How a text is looked for in a folded path, and the text. An empty text is found in every path.

`prefixes`: the path or a folder above it; `names`: a whole component; `beginnings`, `endings`, `parts`: of
any component.
"""

# A class of more characters is as good as a `?`; ten digits are few enough.
_MOST = 12
# Folding leaves no others in a plain name.
_CHARACTERS = tuple(character for character in map(chr, range(128)) if character == character.lower())


def checks_of(pattern: str) -> list[Check]:
    """Choose checks of which one holds for every path that a pattern matches: those with the longest text.

    None is needed for a pattern that asks for a letter which folds to no ASCII.

    Raises:
        PatternError: the pattern can match nothing or is not supported.
    """
    found: dict[Check, None] = {}
    for segments in readings(pattern, folded=True):
        found.update(dict.fromkeys(_checks(segments)))
    return list(found)


def _checks(segments: list[Segment]) -> list[Check]:
    """Choose checks of which one holds for every path that these components match."""
    if not all(piece.isascii() for each in segments for piece in each.pieces if isinstance(piece, str)):
        return []
    plain = [each.written for each in takewhile(lambda each: each.plain == each.written, segments)]
    best: list[Check] = [("prefixes", "/".join(plain))]
    # A lone folder at the top may hold nearly everything, so that its name weighs less than others.
    weight = len(best[0][1]) / (3 if len(plain) == 1 else 1)
    for segment in segments[len(plain) :]:
        checks = _segment_checks(segment)
        length = len(checks[0][1])
        if length > weight:
            best, weight = checks, length
    return best


def _segment_checks(segment: Segment) -> list[Check]:
    """Choose checks of which one holds for every component that a segment matches.

    Between its wildcards stand runs of text; a small class gives one run for each of its characters. All
    texts of a run have one length.
    """
    runs = [[""]]
    for piece in segment.pieces:
        texts = [piece] if isinstance(piece, str) else _characters(piece) if isinstance(piece, Single) else []
        if texts and len(runs[-1]) * len(texts) <= _MOST:
            runs[-1] = [before + after for before in runs[-1] for after in texts]
        else:
            runs.append([""])
    longest = max(range(len(runs)), key=lambda position: len(runs[position][0]))
    field = "parts"
    if len(runs) == 1:
        field = "names"
    elif longest in {0, len(runs) - 1}:
        field = "endings" if longest else "beginnings"
    checks = [(field, text) for text in runs[longest]]
    if "[" in segment.written or "\\" in segment.written:
        # A component with a class or an escape also matches its own text.
        checks.append(("names", segment.written))
    return checks


def _characters(single: Single) -> list[str]:
    """List the plain characters that a class matches, folded; none for a negated one.

    `[!a]` matches an A in the reading that does not fold, and an A is an `a` here.
    """
    if "[^" in single.expression:
        return []
    expression = re.compile(single.expression, re.DOTALL)
    return [character for character in _CHARACTERS if expression.fullmatch(character)]
