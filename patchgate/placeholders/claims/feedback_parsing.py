"""Parses the words of a verifier: which ones name a placeholder, and whether they say that it remains.

It reads English sentences, clause by clause. If a sentence is not clear, nothing is claimed and the verdict
is kept, the safe side. It takes linear time: repeated blanks are removed first, and only the beginning of a
long text is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

NAME = "\x00"
"""Replaces each name of a placeholder that was found; the text cannot contain it."""
MAY_NAME_PLACEHOLDER = re.compile(
    r"(?i:todo|fixme|tbd|xxx|place-?holder|\[insert|\[missing|lorem|filler|dummy|template|boilerplate|unfilled"
    r"|to.be.determined|to be filled|stub|notimplemented|unimplemented!)"
)
"""Matches in every text that names a placeholder."""


def _any(forms: str) -> str:
    return f"(?:{'|'.join(forms.split(', '))})"


_UPPER = r"(?:TODO|FIXME|TBD|XXX|PLACEHOLDER)S?"
_AROUND = r"(?<![\w./:@#$-])"
_SLASHES = re.compile(r"(?<=TODO|IXME)s?/(?=[A-Z])|(?<=TBD|XXX)s?/(?=[A-Z])|(?<=HOLDER)/(?=[A-Z])")
# Words that make the name a thing that is not a placeholder: an app, a file, an attribute of a form.
_APP = _any(
    r"apps?, applications?, lists?, pages?, views?, models?, apis?, endpoints?, routes?, components?, "
    r"stores?, services?, managers?, trackers?, boards?, entit(?:y|ies), class(?:es)?, tables?, "
    r"databases?, crud, tutorials?, examples?, demos?, projects?, widgets?, controllers?, tasks?, titles?, "
    r"ids?, routers?, schemas?, frontends?, backends?, mvc, items?, files?, tests?, users?, states?, "
    r"entr(?:y|ies), columns?, lanes?, cards?, status(?:es)?, buttons?"
)
_TOOL = _any(
    r"checks?, checkers?, scans?, scanners?, gates?, detection, detectors?, rules?, polic(?:y|ies), lint, "
    r"linters?, guards?, claims?, patterns?, regex(?:es)?, handling, substitutions?, replacements?, "
    r"parsers?, parsing, syntax, expansion, resolution, support, logic, features?, styles?, conventions?, "
    r"generators?, generation"
)
_OF_A_FORM = _any(
    r"attributes?, attrs?, props?, propert(?:y|ies), selectors?, pseudo\S*, colou?rs?, opacity, contrast, "
    r"css, styling, font, images?, icons?, avatars?, logos?, thumbnails?, pictures?, photos?, parameters?, "
    r"arguments?, args?, variables?, names?, types?, nodes?, packages?, translations?, keys?, shimmer, "
    r"skeletons?, animations?, prop\S*, labels?, hints?"
)
_FIELD = _any(
    r"inputs?, text ?box(?:es)?, text ?areas?, search, forms?, drop-?downs?, combo ?box(?:es)?, selects?, "
    r"email, password, user ?name, login, query, quer(?:y|ies), sql, statements?, bind, prepared, format "
    r"strings?, f-strings?, printf, log(?:ging)? messages?, url"
)
_UI = re.compile(
    rf"placeholders?['\"`]?\s+(?:{_OF_A_FORM}|{_TOOL})\b"
    rf"|placeholders?\s+(?:(?:text|value|string|copy)s?\s+)?(?:of|in|for|on|inside)\s+"
    rf"(?:(?:the|an|a|this|that|each|every|all|its|our)\s+)?(?:[\w-]+\s+)?{_FIELD}\b"
    rf"|\b{_FIELD}(?:\s+(?:field|box|bar|string))?(?:'s)?\s+placeholders?\b"
    rf"|\b(?:named|positional|numbered|i18n|icu|interpolation|parameter|jinja|django)\s+placeholders?\b"
    rf"|\b(?:\?|%s|:id|\$1)['\"`]?\s+placeholders?\b"
    r"|placeholder's (?!(?:still|left|there|in|on|not)\b)"
    r"|(?:::?|\.|_|-|<|@|\$|#)placeholder|placeholder(?:[_=(]|-(?!text|value|section|content)|\.\w)"
)
_TODO_THING = re.compile(
    rf"\bto-?dos?['\"`]?\s+(?:{_APP}|{_TOOL})\b|\bto-do\b|[\w./:@#$-]todos?\b|\btodos?(?:[/_(=]|\.\w|::|-\w)"
)
_UPPER_THING = re.compile(
    rf"{_AROUND}['\"`]?(?:TODO|FIXME|TBD|XXX)S?s?['\"`]?\s+"
    r"(?!(?:items?|lists?)\b[^.]{0,100}\b(?:remain|still|left|unresolved))"
    rf"(?i:{_APP}|{_TOOL})\b|(?:TODO|FIXME|TBD|XXX)s?(?:[/_=]|\((?![\w .@-]{{1,40}}\):)|\.\w|::)"
    r"|[\w./@#$-](?:TODO|FIXME|TBD|XXX)\b"
    r"|(?i:\bthe (?:word|string|keyword|token|constant|literal)) "
    r"['\"`]?(?:TODO|FIXME|TBD|XXX)['\"`]? (?:is|are)\b"
    r"|[=!]= ?['\"`]?(?:TODO|FIXME|TBD|XXX)\b"
    r"|(?i:\b(?:codes?|status|numbers?|versions?|tickets?|issues?|ports?|digits?)) XXX\b"
)
# A note of the verifier begins like this, except where a location follows: "FIXME: line 12 of a.c".
_NOTE = re.compile(
    r"(?:^|(?<=[.!?;] ))[-*>#\d.) ]{0,9}(?:TODO|FIXME|XXX|Todo|todo)(?: for [\w ]{1,40})?:(?= )"
    r"(?! (?:(?:in|on|at|line|still|remains?|found|present|left|see)\b|\S+:\d))"
)
_BRACKET = re.compile(r"\[(?:TBD|TODO|FIXME|INSERT|PLACEHOLDER|MISSING)\b[^\]\n]{0,80}\](?!\()")
_UPPER_NAME = re.compile(
    rf"{_AROUND}{_UPPER}s?(?:\([\w .@-]{{1,40}}\)(?=:))?(?![\w/])(?!-(?!mark|comment|note|item|style|text))"
)
_LOWER_NAME = re.compile(
    rf"\b(?:lorem ipsum|(?:filler|dummy|template|boilerplate) (?:text|holes?))\b(?! (?:{_TOOL}|{_APP})\b)"
    r"|\bunfilled (?:template|hole|field|section|value)s?\b"
    r"|\bto be (?:determined|filled in)\b|\bto-be-determined\b"
    r"|\bstubbed(?: out)?\b|\bstub (?:implementation|function|method|bod(?:y|ie)|section)s?\b"
    r"|\b(?:just|only|merely|still|as) (?:an? )?(?:empty )?stubs?\b"
    r"|\b(?:todo|fixme|tbd)s?(?= (?:comment|marker|note|placeholder|tag)s?\b)"
    r"|(?<=\ba )(?:todo|fixme|tbd)\b|(?<=\bleftover )(?:todo|fixme|tbd)s?\b"
    r"|\b(?:todo|fixme|tbd)s?(?= (?:is |are |was |were )?(?:still |all )?(?:remain|left|unresolved|in the ))"
    r"|\bplace-?holders?\b"
)
# In a test, and as a replacement in one, a stub is intended.
_TESTS = r"\b(?:tests?|mock(?:s|ed)?|fakes?|fixtures?)\b"
_TEST_STUB = re.compile(rf"\bstub\w*\b(?=[^.;!?]{{0,100}}{_TESTS})|{_TESTS}[^.;!?]{{0,100}}?\bstub\w*\b")
_RAISES = re.compile(
    r"(?:expect\w*|catch\w*|except|handles?|handling)\s+(?:an? |the )?[`'\"]?NotImplemented\w+"
    r"|NotImplemented\w+[`'\"]? (?:for|when|whenever|where|if|unless|with|instead|rather|on (?!line))"
    r"|(NotImplemented(?:Error|Exception)|unimplemented!\(|todo!\()"
)
# An error message names a key or a name of the program.
_ERROR_OF = re.compile(r"\b(?!NotImplemented)\w*(?:Error|Exception): ['\"`][\w-]{1,40}['\"`]")
_QUOTES = re.compile(r"`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|(?<!\w)'[^'\n]{1,400}'(?!\w)|«[^»\n]{1,400}»")

_NO_NAME = "quotation"


def mark_names(text: str) -> str:
    """Replace every name of a placeholder by `NAME`, and what only looks like one by "thing"."""
    text = _ERROR_OF.sub("thing", text)
    text = _QUOTES.sub(_quoted, text)
    text = _SLASHES.sub(", ", text)
    text = _NOTE.sub(" thing:", text)
    text = _BRACKET.sub(NAME, text)
    text = _RAISES.sub(lambda found: NAME if found[1] else "thing", text)
    text = _UPPER_THING.sub(" thing ", text)
    text = _UPPER_NAME.sub(NAME, text)
    text = text.lower()
    text = _UI.sub(" thing ", text)
    text = _TODO_THING.sub(" thing ", text)
    text = _TEST_STUB.sub(" thing ", text)
    return _LOWER_NAME.sub(NAME, text)


def quotations(text: str) -> Iterator[str]:
    """Yield the quotations of a text that do not name a placeholder."""
    for found in _QUOTES.finditer(text):
        if _quoted(found) == _NO_NAME:
            yield found[0][1:-1]


def _quoted(found: re.Match[str]) -> str:
    """Keep only the names of a quotation: its words come from the work, and deny nothing."""
    inner = found[0][1:-1]
    if re.fullmatch(r"(?i:[\w-]{1,40})", inner):
        return inner
    if re.match(r"(?i:remov|replac|resolv|delet|drop|fix|clean)", inner):
        return _NO_NAME
    bare = _UPPER_THING.sub("", inner)
    if _BRACKET.search(bare) or _UPPER_NAME.search(bare) or re.search(r"(?i)lorem ipsum", bare):
        return "[TODO]"
    if re.search(r"NotImplemented(?:Error|Exception)|(?:unimplemented|todo)!\(", bare):
        return "[TODO]"
    return _NO_NAME


MOST_TEXT = 100_000
"""The most characters that are read of all texts together."""
LONG = 2_000
"""A longer line is read sentence by sentence; a longer sentence counts as not clear."""
_ENDS = re.compile(r"(?<=[.!?;]) ")
_LONG_NAME = 60


def asserts_placeholder(texts: Iterable[str]) -> bool:
    """Return whether a text says that a placeholder remains in the work."""
    left = MOST_TEXT
    for text in texts:
        read = text[: max(left, 0)]
        left -= len(read)
        if not MAY_NAME_PLACEHOLDER.search(read) or is_mere_name(read):
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
# "[TODO: describe it]" is not a mere name.
_FILLED_BRACKET = re.compile(r"\[\w+:? \w")


def is_mere_name(text: str) -> bool:
    """Return whether a text only names a placeholder, and says nothing about it."""
    plain = _BLANKS.sub(" ", text.translate(_PLAIN_QUOTES)).strip()
    if len(plain) > _LONG_NAME or _FILLED_BRACKET.search(plain):
        return False
    words = _WORDS.findall(mark_names(plain))
    return NAME in words and all(word == NAME or word in _PART_OF_NAME for word in words)


def sentences_of(text: str) -> Iterator[str]:
    """Yield the lines of a text, and the sentences of a long line, with single blanks."""
    for line in text.translate(_PLAIN_QUOTES).split("\n"):
        plain = _BLANKS.sub(" ", line).strip()
        yield from (plain,) if len(plain) <= LONG else _ENDS.split(plain)


def clauses_of(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence; a full stop in a quotation ends none."""
    if len(sentence) <= LONG:
        for clause in _BREAKS.split(mark_names(sentence)):
            yield _TAIL.sub(r"\1", clause.strip())


# The text after a name and a colon is quoted from the work, unless it is an answer.
_TAIL = re.compile(
    rf"({NAME}\s*:)(?!\s*(?:none|no|nil|0|n/a|absent|ok|pass|false|zero|clean|all|resolved|removed|gone"
    r"|not (?:found|present|seen|detected|there|any))\b).*"
)
# A denial that is not about existence: "not acceptable: TODO in a.md".
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
_THIS_CHANGE = (
    r"(?:this|that|the|these|your|my|our|his|her|its|any) "
    r"(?:change|commit|attempt|patch|diff|work|task|pr|branch|edit|pull request)s?"
)
# Phrases that mean the same as one word.
_PHRASES = (
    (r"\b(?:taken care of|dealt with|(?:taken|sorted) out|gotten rid of|(?:tick|cross)ed off)\b", "removed"),
    (rf"(?<={NAME}) (?:(?:has|have|had) )?(?:become|became|turned into)\b", " was removed:"),
    (rf"(?<={NAME}) (?:has|have|had)(?:n't| not) become\b", " was not removed:"),
    (r"\b(?:already there|there already|pre-?existing|predates?|pre-?dated)\b", "earlier"),
    (rf"\bbefore {_THIS_CHANGE}\b", "earlier"),
    (rf"\b(?:instead of|rather than|in place of|unlike) (?:[\w-]+ ){{0,3}}(?={NAME})", "unlike "),
)
_DO = _set(
    "remove replace resolve fix fill clear eliminate address delete complete handle clean implement "
    "substitute finish"
)
_DOES = frozenset(f"{verb}es" if verb.endswith(("s", "sh", "x")) else f"{verb}s" for verb in _DO)
_DOING = frozenset(f"{verb.removesuffix('e')}ing" for verb in _DO)
_DONE = frozenset(f"{verb.removesuffix('e')}ed" for verb in _DO) | _set("closed done gone absent")
_FAILS = _set("fail fails failed failing forgot forgets neglected neglects refused refuses omitted")
# Words that may be between a denial and what was not done.
_BETWEEN = _set(
    "to be been being yet actually fully all completely properly have has get gotten successfully the author "
    "even entirely correctly bother manage simply really ever of every each any agent it they he she a "
    "single one"
)
_ACTS = _DO | _DOES | _DOING | _DONE
_LACKING = re.compile(rf"{NAME}[^\s{NAME}]* (?:is|are|was|were) missing")
_MUST = _set("must should needs need ought shall has have yet please")
_PERHAPS = _set(
    "? if whether unless ensure ensures verify confirm might may could would suppose any avoid avoids "
    "avoided forbidden prohibited disallowed permitted allowed forbids prohibits claim claims claimed "
    "alleged alleges grep positive positives previously formerly originally earlier unlike unrelated "
    "irrelevant harmless intentional intended intentionally deliberate acceptable fine ok okay masked "
    "redacted obscured anonymized anonymised censored"
)
_PAST = _set("any earlier previously")
_STILL = _set("still remains must")
# Before a name these words suppose it, or describe what a program does with it.
_TREATS = _set(
    "when whenever once until misses ignores ignored skips skipped overlooks overlooked expects expected "
    "expect got gets parses rejects accepts matches recognises recognizes treats converts asserts dragging "
    "moving how explains describes strips highlights counts card cards kanban regex tokenizer parser"
)
# After a name these words complain about something else.
_COMPLAINS = _set(
    "wrong wrongly broken incorrect incorrectly crashes crash breaks broke fails slow misses misspelled "
    "twice misleading flaky unused ambiguous case-sensitive"
)
_PRAISE = _set("good great nice fine ok okay pass passed positive improved better now all well") | _DONE
_LOOKS = _set(
    "search searched searches searching check checked checks checking scan scanned scans scanning look "
    "looked looks looking test tested tests watch"
)
# A proposal, or an action in an app.
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
    """Return whether one of `clauses_of` names a placeholder and says that it exists."""
    if NAME not in clause:
        return False
    clause = _without_verdict(clause)
    for phrase, word in _PHRASES:
        clause = re.sub(phrase, word, clause)
    words = _WORDS.findall(clause)
    names = [at for at, word in enumerate(words) if word == NAME]
    if not names:
        return False
    denials = [at for at in range(len(words)) if _is_denial(words, at)]
    said = _Clause(text=clause, words=words, ahead=words[: names[0]], last=names[-1], denials=denials)
    return next((answer for is_so, answer in _RULES if is_so(said)), True)


class _Clause(NamedTuple):
    """A clause that names a placeholder; `ahead` are the words before the first name, `last` is the last
    index.
    """

    text: str
    words: list[str]
    ahead: list[str]
    last: int
    denials: list[int]

    def has(self, some: frozenset[str]) -> bool:
        """Return whether it has one of some words."""
        return not some.isdisjoint(self.words)


def _is_denial(words: list[str], at: int) -> bool:
    word = words[at]
    if word == "0":
        return NAME in words[at + 1 : at + 3] or words[at - 1] == ":"
    return word in _DENIES or word.endswith("n't")


def _wishes(said: _Clause) -> bool:
    return "been" not in said.words and any(
        word in {"should", "must"} and not _WISHES.isdisjoint(said.words[at + 1 : at + 2])
        for at, word in enumerate(said.ahead)
    )


def _supposes(said: _Clause) -> bool:
    supposed = _PERHAPS.intersection(said.words)
    # With only the past, or "any", it may still exist.
    return bool(supposed) and not (supposed <= _PAST and said.has(_STILL))


def _denies_nothing(said: _Clause) -> bool:
    """Return whether a denial denies nothing: not only, not free of, nothing but, no more than."""
    is_named = is_excepted = False
    for at in range(len(said.words) - 1, -1, -1):
        word, behind = said.words[at], said.words[at + 1 : at + 4]
        if _is_denial(said.words, at):
            if is_named and is_excepted:
                return True
            is_only = behind[:1] in (["only"], ["just"], ["merely"], ["simply"])
            if word != "no" if is_only else word != "free" and "free" in behind[:2]:
                return True
        if word == NAME:
            is_named, is_excepted = True, False
        elif word in {"but", "besides", "except", "beyond"} or [word, *behind[:1]] in _EXCEPT:
            is_excepted = True
    return False


def _is_not_done(words: list[str], at: int) -> bool:
    """Return whether the word at an index denies that something was done: not removed, failed to replace."""
    is_denied = words[at] in _FAILS or _is_denial(words, at)
    if not is_denied or words[at] in {"cannot", "can't"}:
        return False
    for position in range(at + 1, min(at + 8, len(words))):
        word = words[position]
        if word in _ACTS:
            # "no placeholder to replace" has none; "no placeholder was replaced" has.
            is_named = NAME in words[at + 1 : position]
            return not is_named or (word in _DONE and word not in {"gone", "absent", "done"})
        if word not in _BETWEEN and word not in {NAME, "was", "were", "is", "are"}:
            return False
    return False


def _goes_on(said: _Clause) -> bool:
    """Return whether a clause continues after another denial: not finished and contains a name."""
    denied = said.denials[-1] if said.denials else 0
    word, behind = said.words[denied], said.words[denied + 1 : denied + 2]
    if word != "not" and not word.endswith("n't"):
        return False
    is_of_one = behind in (["one"], ["a"], ["any"], ["single"])
    return not is_of_one and not _HAS.isdisjoint(said.words[denied + 2 : said.last])


def _has_to_be_done(said: _Clause) -> bool:
    """Return whether a clause asks for a replacement: it must be replaced, please fill it in."""
    for at, word in enumerate(said.words):
        behind = said.words[at + 1 : at + 5]
        if word in _MUST and (word == "should" or "been" not in behind[:2]):
            is_passive = "be" in behind or (word == "should" and "been" in behind)
            if not (_DO | _DONE if is_passive else _DO).isdisjoint(behind):
                return True
        if word == "to" and behind[:1] == ["be"] and behind[1:]:
            return behind[1] in _DONE
    return False


def _is_acted_on(said: _Clause) -> bool:
    # "filled with TODO" is not done.
    return said.has(_DOING | _DOES) or any(
        word in _DONE and not (said.words[at + 1 : at + 2] == ["with"] and at < said.last)
        for at, word in enumerate(said.words)
    )


# What a clause may say, and whether a placeholder then exists. The first match answers; without one, it does.
_RULES: tuple[tuple[Callable[[_Clause], bool], bool], ...] = (
    # It asks, supposes, forbids, proposes, or describes a search or what a program does with it.
    (lambda said: said.words[0] in _ADDS and said.words[1:2] != ["of"], False),
    (
        lambda said: any(
            word in _LOOKS and "for" in said.words[at : at + 6] for at, word in enumerate(said.ahead)
        ),
        False,
    ),
    (lambda said: "make" in said.words and "sure" in said.words, False),
    (lambda said: not _TREATS.isdisjoint(said.ahead), False),
    # "the list of TODO comments is wrong" complains about something else.
    (lambda said: not _COMPLAINS.isdisjoint(said.words[len(said.ahead) :]) and not said.has(_MUST), False),
    (_wishes, False),
    (_supposes, False),
    # "nothing but TODO", "TODO was not removed", "it is not finished and contains TODO", "no TODO is left".
    (_denies_nothing, True),
    (lambda said: any(_is_not_done(said.words, at) for at in range(len(said.words))), True),
    (_goes_on, True),
    (lambda said: bool(said.denials), False),
    # "TODO must be replaced", "a TODO still remains to be filled", "TODO was removed".
    (_has_to_be_done, True),
    (lambda said: _is_acted_on(said) and said.has(_STAYS), True),
    (_is_acted_on, False),
    # "a TODO is missing" names none that exists; "content is missing, TODO" does.
    (lambda said: _LACKING.search(said.text) is not None, False),
)
