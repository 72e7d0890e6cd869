"""Whether a verifier's words say that a placeholder remains: named, and not denied.

Decides over English sentences, clause by clause, by the words near the name (`gates.claim_names`). It does
not decide whether what they say is true. Where it is not clear, nothing is claimed: the verdict then stays as
it was, which is the safe side. It takes linear time, and reads only the beginning of a long text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from patchgate.gates.claim_names import NAME, WORTH_A_LOOK, marked

_MOST_TEXT = 100_000
# A longer line is taken sentence by sentence; a longer sentence is not clear.
_LONG = 2_000
_ENDS = re.compile(r"(?<=[.!?;])\s+")


def asserts_placeholder(texts: Iterable[str]) -> bool:
    """Tell whether one of the texts says that a placeholder remains in the work."""
    left = _MOST_TEXT
    for text in texts:
        read = text[: max(left, 0)]
        left -= len(read)
        if any(_asserts(clause) for clause in _clauses(read)):
            return True
    return False


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BREAKS = re.compile(
    r"(?<=[.!?;])\s+|\s+[-–—]{1,2}\s+|\s*—\s*"
    r"|,?\s+\b(?:but|however|although|though|whereas|while|because(?! of)|since|due to|given that)\b,?\s"
    r"|,\s+(?=(?:and|so|which|as|it|the|there|this|that|he|she|they|we|i|a|an|another|one|section|line|yet)\b)"
)
_PLAIN_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\r": "\n", NAME: " "})


def _clauses(text: str) -> Iterator[str]:
    """Yield what names a placeholder, clause by clause; quotations first, for a stop inside ends nothing."""
    if not WORTH_A_LOOK.search(text):
        return
    for line in text.translate(_PLAIN_QUOTES).split("\n"):
        for sentence in (line,) if len(line) <= _LONG else _ENDS.split(line):
            if len(sentence) <= _LONG:
                for clause in _BREAKS.split(marked(sentence)):
                    if NAME in clause:
                        yield _without_verdict(_without_tail(clause.strip()))


# What follows a name and a colon is quoted from the work, unless it is an answer.
_TAIL = re.compile(
    rf"({NAME}\s*:)(?!\s*(?:none|no|nil|0|n/a|absent|ok|pass|false|zero|clean|all|resolved|removed|gone"
    r"|not (?:found|present|seen|detected|there|any))\b).*"
)
# A denial that is no word about what is there: "not acceptable: TODO in a.md".
_EXISTENCE = re.compile(r"\b(?:found|present|exists?|remain\w*|see|seen|detected|contain\w*|of|for|any)\b")


def _without_tail(clause: str) -> str:
    return _TAIL.sub(r"\1", clause)


def _without_verdict(clause: str) -> str:
    head, colon, rest = clause.partition(": ")
    if colon and NAME in rest and NAME not in head and not _EXISTENCE.search(head):
        return rest
    return clause


_WORDS = re.compile(rf"{NAME}|[\w'-]+|[?,:]")
_DENIES = _set(
    "no not none never nothing without zero neither nor cannot nobody lacks lack lacking absence free nowhere"
)
_DONE = _set(
    "removed replaced resolved fixed filled cleared eliminated addressed deleted completed handled cleaned "
    "implemented substituted finished closed done gone absent"
)
_DO = _set(
    "remove replace resolve fix fill clear eliminate address delete complete handle clean implement "
    "substitute finish"
)
_DOING = _set(
    "removing replacing resolving fixing filling clearing eliminating addressing deleting completing "
    "handling cleaning implementing substituting finishing"
)
_FAILS = _set("fail fails failed failing forgot forgets neglected neglects refused refuses omitted")
# What may stand between a denial and what was not done.
_BETWEEN = _set(
    "to be been being yet actually fully all completely properly have has get gotten successfully the author "
    "even entirely correctly bother manage simply really ever of every each any agent it they he she a "
    "single one"
)
_MUST = _set("must should needs need ought shall has have yet please")
_PERHAPS = _set(
    "? if whether unless ensure ensures verify confirm might may could would suppose any avoid avoids "
    "avoided forbidden prohibited disallowed permitted allowed forbids prohibits claim claims claimed "
    "alleged alleges grep positive positives previously formerly originally earlier"
)
_LOOKS = _set(
    "search searched searches searching check checked checks checking scan scanned scans scanning look "
    "looked looks looking test tested tests watch"
)
# A proposal, or what somebody does in an app.
_ADDS = _set(
    "add insert introduce support allow use create consider put adding creating clicking saving editing "
    "updating toggling marking selecting"
)
_WISHES = _set("have include contain use get show hold")
_HAS = _set("contains has holds includes shows leaves keeps uses retains still")
_STAYS = _set("still remain remains remaining left stays")


def _asserts(clause: str) -> bool:
    """Tell whether a clause with a name says that it is there."""
    words = _WORDS.findall(clause)
    if _is_open(words):
        return False
    denials = [at for at, word in enumerate(words) if _is_denial(words, at)]
    if any(_is_no_denial(words, at) for at in denials):
        return True
    if any(_is_undone(words, at) for at, word in enumerate(words) if word in _FAILS or at in denials):
        return True
    if denials:
        return _goes_on(words, denials)
    if _has_to_be_done(words):
        return True
    if not _DOING.isdisjoint(words) or any(_is_done(words, at) for at in range(len(words))):
        return not _STAYS.isdisjoint(words)
    # "a TODO is missing" names none that is there; "content is missing, TODO" does.
    return not re.search(rf"{NAME}\S* (?:is|are|was|were) missing", clause)


def _is_done(words: list[str], at: int) -> bool:
    # "filled with TODO" is not.
    return words[at] in _DONE and not (words[at + 1 : at + 2] == ["with"] and NAME in words[at:])


def _is_open(words: list[str]) -> bool:
    """Tell whether a clause only asks, supposes, forbids, proposes, or tells where somebody looked."""
    named = words.index(NAME)
    if words[0] in _ADDS and words[1:2] != ["of"]:
        return True
    if any(word in _LOOKS and "for" in words[at : at + 6] for at, word in enumerate(words[:named])):
        return True
    if "make" in words and "sure" in words:
        return True
    if any(
        word in {"should", "must"} and not _WISHES.isdisjoint(words[at + 1 : at + 2]) and "been" not in words
        for at, word in enumerate(words[:named])
    ):
        return True
    return not _PERHAPS.isdisjoint(words) and not (
        # Only the past, or "any", and it is still there.
        {"still", "remains", "must"} & set(words)
        and _PERHAPS & set(words) <= {"any", "earlier", "previously"}
    )


def _is_denial(words: list[str], at: int) -> bool:
    word = words[at]
    if word == "0":
        return NAME in words[at + 1 : at + 3] or words[at - 1] == ":"
    return word in _DENIES or word.endswith("n't")


def _is_no_denial(words: list[str], at: int) -> bool:
    """Tell whether a denial at a place denies nothing: not only, nothing but, not free of."""
    behind = words[at + 1 : at + 4]
    if behind[:1] in (["only"], ["just"], ["merely"], ["simply"]):
        return words[at] != "no"
    if words[at] != "free" and "free" in behind[:2]:
        return True
    rest = words[at + 1 :]
    named = rest.index(NAME) if NAME in rest else 0
    return any(word in {"but", "besides", "except", "beyond"} for word in rest[:named]) or any(
        pair in (["other", "than"], ["more", "than"], ["apart", "from"])
        for pair in (rest[each : each + 2] for each in range(named))
    )


def _is_undone(words: list[str], at: int) -> bool:
    """Tell whether what is denied at a place is that something was done: not removed, failed to replace."""
    if words[at] in {"cannot", "can't"}:
        return False
    for position in range(at + 1, min(at + 8, len(words))):
        word = words[position]
        if word in _DONE or word in _DO or word in _DOING:
            # "no placeholder to replace" has none; "no placeholder was replaced" has.
            between = words[at + 1 : position]
            return NAME not in between or (word in _DONE and word not in {"gone", "absent", "done"})
        if word not in _BETWEEN and word not in {NAME, "was", "were", "is", "are"}:
            return False
    return False


def _goes_on(words: list[str], denials: list[int]) -> bool:
    """Tell whether a clause goes on after a denial of something else: not finished and contains a name."""
    last = denials[-1]
    if words[last] != "not" and not words[last].endswith("n't"):
        return False
    if words[last + 1 : last + 2] in (["one"], ["a"], ["any"], ["single"]):
        return False
    named = max(at for at, word in enumerate(words) if word == NAME)
    return any(word in _HAS for word in words[last + 2 : named])


def _has_to_be_done(words: list[str]) -> bool:
    """Tell whether a clause asks for what a placeholder asks for: it must be replaced, please fill it in."""
    for at, word in enumerate(words):
        if word in _MUST and not {"been"} & set(words[at : at + 3]) - (
            {"been"} if word == "should" else set()
        ):
            behind = words[at + 1 : at + 5]
            if not _DO.isdisjoint(behind) or ("be" in behind and not _DONE.isdisjoint(behind)):
                return True
            if word == "should" and "been" in behind and not _DONE.isdisjoint(behind):
                return True
        if word == "to" and words[at + 1 : at + 2] == ["be"] and words[at + 2 : at + 3]:
            return words[at + 2] in _DONE
    return False
