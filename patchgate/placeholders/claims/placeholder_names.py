"""Which words of a verifier name a placeholder: TODO is one, a TODO app and a form's placeholder are none.

Decides over one line of English. Whether what is named is said to remain, `placeholders.claims.claim_words`
decides. In doubt it is taken for something else. Blanks come one at a time: each expression is then linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NAME = "\x00"
"""What stands for a name of a placeholder once it was found; the text cannot hold it."""
WORTH_A_LOOK = re.compile(
    r"(?i:todo|fixme|tbd|xxx|place-?holder|\[insert|\[missing|lorem|filler|dummy|template|boilerplate|unfilled"
    r"|to.be.determined|to be filled|stub|notimplemented|unimplemented!)"
)
"""What a text that names one holds."""


def _any(*words: str) -> str:
    return "(?:" + "|".join(words) + ")"


_UPPER = r"(?:TODO|FIXME|TBD|XXX|PLACEHOLDER)S?"
_AROUND = r"(?<![\w./:@#$-])"
_SLASHES = re.compile(r"(?<=TODO|IXME)s?/(?=[A-Z])|(?<=TBD|XXX)s?/(?=[A-Z])|(?<=HOLDER)/(?=[A-Z])")
# What makes a thing of the name that is no placeholder: an app, a file, an attribute of a form.
_APP = _any(
    *("apps?", "applications?", "lists?", "pages?", "views?", "models?", "apis?", "endpoints?", "routes?"),
    *("components?", "stores?", "services?", "managers?", "trackers?", "boards?", "entit(?:y|ies)"),
    *("class(?:es)?", "tables?", "databases?", "crud", "tutorials?", "examples?", "demos?", "projects?"),
    *("widgets?", "controllers?", "tasks?", "titles?", "ids?", "routers?", "schemas?", "frontends?"),
    *("backends?", "mvc", "items?", "files?", "tests?", "users?", "states?", "entr(?:y|ies)"),
    *("columns?", "lanes?", "cards?", "status(?:es)?", "buttons?"),
)
_TOOL = _any(
    *("checks?", "checkers?", "scans?", "scanners?", "gates?", "detection", "detectors?", "rules?"),
    *("polic(?:y|ies)", "lint", "linters?", "guards?", "claims?", "patterns?", "regex(?:es)?", "handling"),
    *("substitutions?", "replacements?", "parsers?", "parsing", "syntax", "expansion", "resolution"),
    *("support", "logic", "features?", "styles?", "conventions?", "generators?", "generation"),
)
_OF_A_FORM = _any(
    *("attributes?", "attrs?", "props?", "propert(?:y|ies)", "selectors?", "pseudo\\S*", "colou?rs?"),
    *("opacity", "contrast", "css", "styling", "font", "images?", "icons?", "avatars?", "logos?"),
    *("thumbnails?", "pictures?", "photos?", "parameters?", "arguments?", "args?", "variables?"),
    *("names?", "types?", "nodes?", "packages?", "translations?", "keys?", "shimmer", "skeletons?"),
    *("animations?", "prop\\S*", "labels?", "hints?"),
)
_FIELD = _any(
    *("inputs?", "text ?box(?:es)?", "text ?areas?", "search", "forms?", "drop-?downs?", "combo ?box(?:es)?"),
    *("selects?", "email", "password", "user ?name", "login", "query", "quer(?:y|ies)", "sql", "statements?"),
    *("bind", "prepared", "format strings?", "f-strings?", "printf", "log(?:ging)? messages?", "url"),
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
# What begins so is a note of the verifier's own, but where it goes on with a place: "FIXME: line 12 of a.c".
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
# In a test, and of what stands in for another thing there, a stub is what it ought to be.
_TESTS = r"\b(?:tests?|mock(?:s|ed)?|fakes?|fixtures?)\b"
_TEST_STUB = re.compile(rf"\bstub\w*\b(?=[^.;!?]{{0,100}}{_TESTS})|{_TESTS}[^.;!?]{{0,100}}?\bstub\w*\b")
_RAISES = re.compile(
    r"(?:expect\w*|catch\w*|except|handles?|handling)\s+(?:an? |the )?[`'\"]?NotImplemented\w+"
    r"|NotImplemented\w+[`'\"]? (?:for|when|whenever|where|if|unless|with|instead|rather|on (?!line))"
    r"|(NotImplemented(?:Error|Exception)|unimplemented!\(|todo!\()"
)
# What an error names is a key or a name of the program.
_ERROR_OF = re.compile(r"\b(?!NotImplemented)\w*(?:Error|Exception): ['\"`][\w-]{1,40}['\"`]")
_QUOTES = re.compile(r"`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|(?<!\w)'[^'\n]{1,400}'(?!\w)|«[^»\n]{1,400}»")


_NO_NAME = "quotation"


def marked(text: str) -> str:
    """Put `NAME` for every name of a placeholder; what only looks like one becomes a thing."""
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
    """Yield what is quoted in a text and names no placeholder."""
    for found in _QUOTES.finditer(text):
        if _quoted(found) == _NO_NAME:
            yield found[0][1:-1]


def _quoted(found: re.Match[str]) -> str:
    """Keep of a quotation what it names: the words in it are the work's, and deny nothing."""
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
