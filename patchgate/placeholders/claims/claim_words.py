"""Whether a verifier's words say that a placeholder remains: named, and not denied.

Decides over English sentences, clause by clause, by the words near the name
(`placeholders.claims.placeholder_names`). It does not decide whether what they say is true. Where it is not
clear, nothing is claimed: the verdict then stays as it was, which is the safe side. A text that is no more
than a name ("TODO") may be a category, a file or a heading, and claims nothing. It takes linear time, and
reads only the beginning of a long text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from patchgate.placeholders.claims.placeholder_names import NAME, WORTH_A_LOOK, marked

MOST_TEXT = 100_000
"""How many characters of all texts together are read."""
LONG = 2_000
"""A longer line is taken sentence by sentence; a longer sentence is not clear."""
_ENDS = re.compile(r"(?<=[.!?;]) ")
_LONG_NAME = 60


def asserts_placeholder(texts: Iterable[str]) -> bool:
    """Tell whether one of the texts says that a placeholder remains in the work."""
    left = MOST_TEXT
    for text in texts:
        read = text[: max(left, 0)]
        left -= len(read)
        if not WORTH_A_LOOK.search(read) or is_mere_name(read):
            continue
        if any(asserts(clause) for sentence in sentences_of(read) for clause in clauses_of(sentence)):
            return True
    return False


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_BREAKS = re.compile(
    r"(?<=[.!?;]) | [-–—]{1,2} | ?— ?"
    r"|,? \b(?:but|however|although|though|whereas|while|because(?! of)|since|due to|given that)\b,? "
    r"|, (?=(?:and|so|which|as|it|the|there|this|that|he|she|they|we|i|a|an|another|one|section|line|yet)\b)"
)
_BLANKS = re.compile(r"\s+")
_PLAIN_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\r": "\n", NAME: " "})
_PART_OF_NAME = _set(
    "a an the and or text content marker markers comment comments note notes value values token tokens "
    ", : ? -"
)
# "[TODO: describe it]" is no heading.
_FILLED_BRACKET = re.compile(r"\[\w+:? \w")


def is_mere_name(text: str) -> bool:
    """Tell whether a text only names a placeholder, and says nothing of it."""
    plain = _BLANKS.sub(" ", text.translate(_PLAIN_QUOTES)).strip()
    if len(plain) > _LONG_NAME or _FILLED_BRACKET.search(plain):
        return False
    words = _WORDS.findall(marked(plain))
    return NAME in words and all(word == NAME or word in _PART_OF_NAME for word in words)


def sentences_of(text: str) -> Iterator[str]:
    """Yield what is read at a time: a line, or each sentence of a long one; one blank wherever some were."""
    for line in text.translate(_PLAIN_QUOTES).split("\n"):
        plain = _BLANKS.sub(" ", line).strip()
        yield from (plain,) if len(plain) <= LONG else _ENDS.split(plain)


def clauses_of(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence; quotations first, for a stop inside ends nothing."""
    if len(sentence) <= LONG:
        for clause in _BREAKS.split(marked(sentence)):
            yield _TAIL.sub(r"\1", clause.strip())


# What follows a name and a colon is quoted from the work, unless it is an answer.
_TAIL = re.compile(
    rf"({NAME}\s*:)(?!\s*(?:none|no|nil|0|n/a|absent|ok|pass|false|zero|clean|all|resolved|removed|gone"
    r"|not (?:found|present|seen|detected|there|any))\b).*"
)
# A denial that is no word about what is there: "not acceptable: TODO in a.md".
_EXISTENCE = re.compile(r"\b(?:found|present|exists?|remain\w*|see|seen|detected|contain\w*|of|for|any)\b")


def _without_verdict(clause: str) -> str:
    head, colon, rest = clause.partition(": ")
    if not colon or NAME not in rest or NAME in head or _EXISTENCE.search(head):
        return clause
    return "" if _PRAISE.issuperset(_WORDS.findall(head)) else rest


_WORDS = re.compile(rf"{NAME}|[\w'-]+|[?,:]")
_DENIES = _set(
    "no not none never nothing without zero neither nor cannot nobody lacks lack lacking absence free nowhere"
)
# Phrases that say what one word says.
_PHRASES = (
    (
        re.compile(
            r"\b(?:taken care of|dealt with|(?:taken|sorted) out|gotten rid of|(?:ticked|crossed) off)\b"
        ),
        "removed",
    ),
    (re.compile(rf"(?<={NAME}) (?:(?:has|have|had) )?(?:become|became|turned into)\b"), " was removed:"),
    (re.compile(rf"(?<={NAME}) (?:has|have|had)(?:n't| not) become\b"), " was not removed:"),
    (re.compile(r"\b(?:already there|there already|pre-?existing|predates?|pre-?dated)\b"), "earlier"),
    (
        re.compile(
            r"\bbefore (?:this|that|the|these|your|my|our|his|her|its|any) "
            r"(?:change|commit|attempt|patch|diff|work|task|pr|branch|edit|pull request)s?\b"
        ),
        "earlier",
    ),
    (re.compile(rf"\b(?:instead of|rather than|in place of|unlike) (?:[\w-]+ ){{0,3}}(?={NAME})"), "unlike "),
)
_DONE = _set(
    "removed replaced resolved fixed filled cleared eliminated addressed deleted completed handled cleaned "
    "implemented substituted finished closed done gone absent"
)
_DO = _set(
    "remove replace resolve fix fill clear eliminate address delete complete handle clean implement "
    "substitute finish"
)
_DOES = _set(
    "removes replaces resolves fixes fills clears eliminates addresses deletes completes handles cleans "
    "implements substitutes finishes"
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
    "alleged alleges grep positive positives previously formerly originally earlier unlike unrelated "
    "irrelevant harmless intentional intended intentionally deliberate acceptable fine ok okay masked "
    "redacted obscured anonymized anonymised censored"
)
# What stands so before a name supposes it, or tells what a program makes of it.
_TREATS = _set(
    "when whenever once until misses ignores ignored skips skipped overlooks overlooked expects expected "
    "expect got gets parses rejects accepts matches recognises recognizes treats converts asserts dragging "
    "moving how explains describes strips highlights counts card cards kanban regex tokenizer parser"
)
# What is said so of a name complains of something else: "the list of TODO comments is wrong".
_COMPLAINS = _set(
    "wrong wrongly broken incorrect incorrectly crashes crash breaks broke fails slow misses misspelled "
    "twice misleading flaky unused ambiguous case-sensitive"
)
_PRAISE = _set("good great nice fine ok okay pass passed positive improved better now all well") | _DONE
_LOOKS = _set(
    "search searched searches searching check checked checks checking scan scanned scans scanning look "
    "looked looks looking test tested tests watch"
)
# A proposal, or what somebody does in an app.
_ADDS = _set(
    "add insert introduce support allow use create consider put adding creating clicking saving editing "
    "updating toggling marking selecting"
)
_EXCEPT = (["other", "than"], ["more", "than"], ["apart", "from"])
_WISHES = _set(
    "have include contain use get show hold match flag report detect find strip count ignore skip accept "
    "reject"
)
_HAS = _set("contains has holds includes shows leaves keeps uses retains still")
_STAYS = _set("still remain remains remaining left stays")


def asserts(clause: str) -> bool:
    """Tell whether one of `clauses_of` names a placeholder and says that it is there."""
    if NAME not in clause:
        return False
    clause = _without_verdict(clause)
    for phrase, word in _PHRASES:
        clause = phrase.sub(word, clause)
    words = _WORDS.findall(clause)
    if NAME not in words or _is_open(words):
        return False
    denials = [at for at, word in enumerate(words) if _is_denial(words, at)]
    excepted = _excepted(words)
    if any(_is_no_denial(words, at) or excepted[at] for at in denials):
        return True
    if any(_is_undone(words, at) for at, word in enumerate(words) if word in _FAILS or _is_denial(words, at)):
        return True
    if denials:
        return _goes_on(words, denials)
    if _has_to_be_done(words):
        return True
    if not _DOING.isdisjoint(words) or not _DOES.isdisjoint(words) or _is_done(words):
        return not _STAYS.isdisjoint(words)
    # "a TODO is missing" names none that is there; "content is missing, TODO" does.
    return not re.search(rf"{NAME}[^\s{NAME}]* (?:is|are|was|were) missing", clause)


def _is_done(words: list[str]) -> bool:
    last = max(at for at, word in enumerate(words) if word == NAME)
    return any(
        # "filled with TODO" is not.
        word in _DONE and not (words[at + 1 : at + 2] == ["with"] and at < last)
        for at, word in enumerate(words)
    )


def _is_open(words: list[str]) -> bool:
    """Tell whether a clause only asks, supposes, forbids, proposes, or tells where somebody looked."""
    named = words.index(NAME)
    if words[0] in _ADDS and words[1:2] != ["of"]:
        return True
    if any(word in _LOOKS and "for" in words[at : at + 6] for at, word in enumerate(words[:named])):
        return True
    if ("make" in words and "sure" in words) or not _TREATS.isdisjoint(words[:named]):
        return True
    if any(word in _COMPLAINS for word in words[named:]) and _MUST.isdisjoint(words):
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
    """Tell whether a denial at a place denies nothing: not only, not free of."""
    behind = words[at + 1 : at + 4]
    if behind[:1] in (["only"], ["just"], ["merely"], ["simply"]):
        return words[at] != "no"
    return words[at] != "free" and "free" in behind[:2]


def _excepted(words: list[str]) -> list[bool]:
    """Tell for each place whether the next name behind it is excepted: nothing but, no more than."""
    answers = [False] * len(words)
    is_named = is_excepted = False
    for at in range(len(words) - 1, -1, -1):
        answers[at] = is_named and is_excepted
        if words[at] == NAME:
            is_named, is_excepted = True, False
        elif words[at] in {"but", "besides", "except", "beyond"} or words[at : at + 2] in _EXCEPT:
            is_excepted = True
    return answers


def _is_undone(words: list[str], at: int) -> bool:
    """Tell whether what is denied at a place is that something was done: not removed, failed to replace."""
    if words[at] in {"cannot", "can't"}:
        return False
    for position in range(at + 1, min(at + 8, len(words))):
        word = words[position]
        if word in _DONE or word in _DO or word in _DOING or word in _DOES:
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
