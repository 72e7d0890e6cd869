"""Whether a verifier's words name a failure that is no placeholder: tests that fail, a sum that is wrong.

Decides over the same sentences and clauses as `placeholders.claims.claim_words`. A verdict with a reason of
its own, whose words also name a placeholder, may be contradicted only where a placeholder is all that it
complains of; in doubt there is another failure, and the verdict stays as it was. It does not decide whether
there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchgate.placeholders.claims.claim_words import LONG, MOST_TEXT, asserts, clauses_of, sentences_of
from patchgate.placeholders.claims.placeholder_names import NAME, quotations

_FAILURE = re.compile(
    r"(?:fail|error|wrong|crash|broke|breaks|breaking|incorrect|exception|segfault|segmentation|regress|invalid"
    r"|mismatch|missing|misses|lost|loses|leak|vulnerab|bugs?$|buggy|flak|hangs?$|hung|deadlock|violat|insecur"
    r"|unsafe|corrupt|panic|traceback|overflow|timeout|timed|unexpected|inconsisten|undefined|conflict|typo"
    r"|insufficien|unhandled|uncaught|unsupported|malformed|misspel|inaccura|faulty?$|defect|differs?$|untested"
    r"|red$)|(?:\w*[a-z])?error$|(?:\w*[a-z])?exception$"
)
# A file that is named for an error is none.
_FILE = re.compile(
    r"\.(?:py|js|tsx?|jsx|c|cc|cpp|h|go|rs|java|kt|rb|md|txt|rst|log|csv|json|ya?ml|toml|ini|cfg|xml|html?|css|sh|sql)$"
)
_WORDS = re.compile(rf"{NAME}|[\w'-]+(?:[./][\w'-]+)*|[:,]")
_DENIES = {"no", "not", "without", "zero", "0", "never", "none", "nor", "neither", "nothing", "cannot"}
_NOTHING = {"0", "no", "none", "zero"}
_AUXILIARY = re.compile(
    r"do|does|did|can|could|will|would|is|are|was|were|has|have|had|should|must|may|might"
)
# "not finished", "cannot be accepted", "did not find more" are no failure of another kind.
_GENERAL = re.compile(
    r"finds?|found|seen?|detect(?:ed)?|noticed?|finished|completed?|done|ready|accept(?:ed|able)?|approved?"
    r"|final|only|just"
)
_REACH = 4
_PIECES = re.compile(r",| (?:and|or|nor|so|then|yet) ")


def names_other_failure(texts: Iterable[str]) -> bool:
    """Tell whether one of the texts names a failure that is no placeholder; what is not read may name one."""
    left = MOST_TEXT
    for text in texts:
        if len(text) > left:
            return True
        left -= len(text)
        if any(_fails_elsewhere(sentence) for sentence in sentences_of(text)):
            return True
    return False


def _fails_elsewhere(sentence: str) -> bool:
    if len(sentence) > LONG:
        return any(_fails(word) for word in _WORDS.findall(sentence.lower()))
    if any(_is_failure(inner.lower()) for inner in quotations(sentence)):
        return True
    for clause in clauses_of(sentence):
        # Beside "a placeholder remains" another half may complain of something else.
        pieces = [each for each in _PIECES.split(clause) if NAME not in each] if asserts(clause) else [clause]
        if any(_is_failure(piece) for piece in pieces):
            return True
    return False


def _is_failure(clause: str) -> bool:
    words = _WORDS.findall(clause)
    is_about_name = NAME in words
    return any(
        _is_named(words, at) or (not is_about_name and _is_not_so(words, at)) for at in range(len(words))
    )


def _is_named(words: list[str], at: int) -> bool:
    """Tell whether a word names a failure, and none that is denied: no error, never fails, errors: 0."""
    if not _fails(words[at]):
        return False
    is_counted = words[at + 1 : at + 2] == [":"] and not _NOTHING.isdisjoint(words[at + 2 : at + 3])
    return not is_counted and not any(_denies(word) for word in words[max(at - _REACH, 0) : at])


def _is_not_so(words: list[str], at: int) -> bool:
    """Tell whether a word says that something is not as it should be: does not return, can't be read."""
    is_not = words[at] == "not" and at > 0 and _AUXILIARY.fullmatch(words[at - 1])
    if not is_not and words[at] != "cannot" and not words[at].endswith("n't"):
        return False
    behind = words[at + 1 : at + 1 + _REACH]
    return not any(_GENERAL.fullmatch(word) or _fails(word) for word in behind)


def _fails(word: str) -> bool:
    return not _FILE.search(word) and any(_FAILURE.match(part) for part in re.split(r"[./]", word))


def _denies(word: str) -> bool:
    return word in _DENIES or word.endswith("n't")
