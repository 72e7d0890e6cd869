"""Finds the placeholders of one text, each with a key that stays the same when its line moves.

Decides what is text, which lines have a placeholder, when brackets are a link, a subscript, a list or a usage
line, and which lines mean "not implemented" in languages other than Python. It reads no file and knows no
change. The caller supplies the clock, and the search can stop at any line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator

from patchgate.placeholders.comment_syntax import (
    CONTEXT_BYTES,
    Language,
    LineContext,
    TextKind,
    detect_comment,
    is_in_string,
    language_of,
    without_strings,
)
from patchgate.placeholders.empty_functions import find_empty_functions, no_timeout
from patchgate.placeholders.todo_context import OTHER_MARK
from patchgate.placeholders.todo_words import find_todo
from patchgate.policy.placeholder_markers import (
    BODY,
    BRACKET,
    FILLER,
    HOLE,
    OWN,
    WORD,
    Bodies,
    Marker,
    Markers,
    is_python,
)
from patchgate.values import dataclass

_SIGNS = (
    *(b":", b"-", b"!", b"?", b". ", b"..", b";"),
    *(b"\xe2\x80\xa6", b"\xe2\x80\x93", b"\xe2\x80\x94", b"\xef\xbc\x9a"),
)
# SQL in a usage line: a table, and perhaps its values.
_INTO = re.compile(rb"[ \t]+INTO[ \t]+[\w.\"`]+[ \t]*(?:$|\(|VALUES\b|SELECT\b|SET\b)")
_NAMES = re.compile(rb"(?:,[ \t]*[\"']?[A-Z][A-Z0-9_]{1,40}[\"']?[ \t]*){1,40},?")
_LINK = re.compile(
    rb"\([ \t]*(?:<[^<>]{0,200}>|[^ \t()]{0,200}(?:\([^ \t()]{0,100}\)[^ \t()]{0,100})?)"
    rb"(?:[ \t]+[\"'(].{0,200})?[ \t]*\)"
)
_TARGET = re.compile(rb":[ \t]*(?:<[^<>]{0,200}>|(?P<bare>[^ \t]{1,500}))(?:[ \t]+[\"'(].{0,200})?[ \t\r]*")
_OF_ADDRESS = re.compile(rb"[/.#:][^ \t]")
_LISTED = re.compile(rb"(?:[=(,+|&?:]|\b(?:return|in|yield))[ \t]*$")
_AFTER_NAME = frozenset({b"", b",", b";", b")", b"]", b"}", b":", b"#", b"/", b"\r"})
_EXPRESSION = re.compile(rb"[ \t]+(?:for|if|and|or|not|in|is|as|else)\b")
# The end of a name in code: `cache_of(x)`, `test_it::case`, `a.b`.
_CODE_ENDS = re.compile(rb"(?:_|::|->|\(\)|[A-Za-z0-9]\.[A-Za-z])[\w.:/()$>-]{0,60}$")
_NAME_ENDS = re.compile(rb"[A-Za-z0-9_)\]]$")


def find_bracket(line: bytes, language: Language, marker: Marker) -> bytes | None:
    """Find the first placeholder in brackets on a line; return the line from there on, or None.

    Args:
        line: as `placeholder_matches` reads it.
        language: that of the file.
        marker: that of brackets.
    """
    for found in marker.expression.finditer(line):
        if _is_placeholder(found, language):
            return line[found.start() :]
    return None


def _is_placeholder(found: re.Match[bytes], language: Language) -> bool:
    rest = found["rest"].rstrip(b"\\ \t")
    if not _is_asked(found["word"], rest):
        return False
    line = found.string
    before, after = (
        line[max(0, found.start() - CONTEXT_BYTES) : found.start()],
        line[found.end() : found.end() + CONTEXT_BYTES],
    )
    if language.kind in {TextKind.PROSE, TextKind.TABLE, TextKind.DATA} and not language.is_script:
        return _is_in_text(before, after)
    if language.kind is TextKind.MARKUP and not language.is_jsx:
        return (
            not before.endswith(b"]") and not re.search(rb"[A-Za-z_]$", before) and _is_in_text(before, after)
        )
    return _is_in_program(before, after, rest, language, found.start() <= CONTEXT_BYTES)


def _is_asked(word: bytes, rest: bytes) -> bool:
    """Return whether the word stays a placeholder before the rest of its brackets."""
    if not rest or rest == b"." or rest.startswith(_SIGNS):
        return True
    sign, more = rest[:1], rest.lstrip()
    if sign == b",":
        # Names in upper case make a list; TBD is not a name.
        return word == b"TBD" or not _NAMES.fullmatch(rest)
    if more[:1] in {b"/", b"|"}:
        other = OTHER_MARK.match(more[1:].lstrip())
        return other is not None and _is_asked(word, more[1:].lstrip()[other.end() :])
    if sign == b"(":
        return True
    if sign not in {b" ", b"\t", b"\n"} or b"|" in rest:
        return False
    return not (word == b"INSERT" and _INTO.match(rest)) and more[:1] not in {b"=", b"&", b"+"}


def _is_in_text(before: bytes, after: bytes) -> bool:
    """Return whether brackets are neither a link nor quoted code."""
    if _NAME_ENDS.search(before) and (
        before.endswith(b"]") or before.count(b"`") % 2 or _CODE_ENDS.search(before)
    ):
        return False
    if after.startswith(b"("):
        return _LINK.match(after) is None
    if after.startswith(b"["):
        return OTHER_MARK.match(after[1:].lstrip()) is not None
    if after.startswith(b":") and not before.strip(b" \t>"):
        target = _TARGET.fullmatch(after)
        return target is None or (target["bare"] is not None and not _OF_ADDRESS.search(target["bare"]))
    return True


def _is_in_program(
    before: bytes, after: bytes, rest: bytes, language: Language, has_line_start: bool
) -> bool:
    """Return the same for code, where comments and strings are text."""
    is_comment, _ = detect_comment(before, language, has_line_start, after)
    if is_comment or any(quote in without_strings(before) for quote in (b'"', b"'", b"`")):
        return not before.endswith(b"\\") and not _NAME_ENDS.search(before) and _is_in_text(before, after)
    if re.search(rb"[A-Za-z0-9_)\]\\$#!@]$", before) or after[:1] in {b"(", b"[", b":", b"{"}:
        return False
    if rest:
        return rest[:1] not in {b",", b".", b"(", b";", b"!", b"?"} and not _EXPRESSION.match(rest)
    return language.is_script or not (_LISTED.search(before) and after.lstrip()[:1] in _AFTER_NAME)


_NEAR = 400
# The text of an error; "not implemented on this system" is not a placeholder.
_NOT_IMPLEMENTED = (
    rb"\b(?i:not(?: yet)?(?: been)? implemented(?: yet)?|unimplemented(?=[\"'`!.:;,])"
    rb"|not-implemented|not_implemented|implement me\b)"
    rb"(?! (?:for|on|in|by|under|when|if|unless|with|outside)\b)"
)
_TODO_TEXT = rb"(?i:todo|fixme|tbd)\b"
_WITH_MESSAGE = rb"[ \t]?\(?[ \t]?[@$]?(?:%b)" % b"|".join(
    rb"%b(?:[^%b\r\n]{0,80}?%b|%b)" % (quote, quote, _NOT_IMPLEMENTED, _TODO_TEXT)
    for quote in (rb"\"", b"'", b"`")
)
_TYPE = rb"\\?(?:[A-Za-z_][A-Za-z0-9_]{0,60}(?:\.|::|\\)){0,6}"


def _form(expression: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![A-Za-z0-9_])(?:" + expression + rb")")


_THROWN = _form(
    rb"throw%b|throw[ \t]{1,4}(?:new[ \t]{1,4})?%b"
    rb"(?:NotImplemented[A-Za-z]{0,20}|UnimplementedError|[A-Za-z_][A-Za-z0-9_]{0,60}%b)"
    % (_WITH_MESSAGE, _TYPE, _WITH_MESSAGE)
)
_PANIC = _form(
    rb"(?:panic|fatalError|preconditionFailure|die|croak|error|stop|failwith|NOT_IMPLEMENTED)" + _WITH_MESSAGE
)
_REJECTED = _form(rb"reject\([ \t]?new[ \t]{1,4}" + _TYPE + rb"[A-Za-z_][A-Za-z0-9_]{0,60}" + _WITH_MESSAGE)
_MACRO = _form(rb"(?:(?:todo|unimplemented)![ \t]{0,4}[(\[{]|panic!" + _WITH_MESSAGE + rb")")
_CALL = _form(rb"(?<!\.)TODO\(")
_ERROR = _form(rb"(?:panic|errors\.New|fmt\.Errorf|log\.(?:Fatal|Panic)(?:f|ln)?)" + _WITH_MESSAGE)
_RAISED = _form(
    rb"(?:raise|fail)(?:[ \t]{1,4}|\()(?:::)?(?:NotImplementedError|[A-Za-z]{0,40}(?:,[ \t])?"
    + _WITH_MESSAGE
    + rb")"
)
_ASSERTED = _form(rb"assert\([ \t]?(?:false[ \t]?&&[ \t]?|![ \t]?)" + _WITH_MESSAGE)
_FORMS = {
    suffix.encode(): forms
    for suffixes, forms in (
        ("rs", (_MACRO,)),
        ("go", (_ERROR,)),
        ("js mjs cjs jsx ts mts cts tsx vue svelte", (_THROWN, _PANIC, _REJECTED)),
        ("dart java scala groovy cs vb fs php", (_THROWN, _PANIC)),
        ("kt kts", (_CALL, _THROWN)),
        ("rb ex exs cr", (_RAISED,)),
        ("swift lua hs pl pm r ml", (_PANIC,)),
        ("c h cc cpp cxx hh hpp hxx mm m", (_THROWN, _PANIC, _ASSERTED)),
    )
    for suffix in suffixes.split()
}
# Required by a compiler, and never called.
_REQUIRED = b"init(coder:)"
_TEXT = re.compile(rb"[ \t]*[@$]?[\"'`]")


def has_not_implemented_forms(language: Language) -> bool:
    """Return whether the language has a form of "not implemented"."""
    return language.suffix in _FORMS


def find_not_implemented(line: bytes, language: Language, line_context: LineContext) -> bytes | None:
    """Find the text on a line that says "not implemented"; None if there is none.

    Args:
        line: without its LF.
        language: that of the file.
        line_context: the line in its text.
    """
    said = _not_implemented_after(line, 0, language)
    if said is None and _TEXT.match(line) and (above := line_context.before).endswith(b"("):
        return _not_implemented_after(above + line.lstrip(), len(above), language)
    return said


def _not_implemented_after(line: bytes, after: int, language: Language) -> bytes | None:
    """Find such a text that ends after an offset of the line."""
    for form in _FORMS.get(language.suffix, ()):
        found = form.search(line[: 10 * _NEAR])
        if found is None or found.end() <= after:
            continue
        if _REQUIRED in line[found.start() : found.start() + _NEAR]:
            continue
        before = line[max(0, found.start() - _NEAR) : found.start()]
        is_comment, _ = detect_comment(before, language, found.start() <= _NEAR, b"")
        if not is_comment and not is_in_string(before, line[found.end() :][:_NEAR]):
            return found[0]
    return None


_RULES = (WORD, BRACKET, HOLE, FILLER, BODY, OWN)
# https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md: it is shorter than 1024 bytes.
_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST_POINTER = 1023
# One step is a suspicious line, or this many bytes of one.
_STEP_BYTES = 64
_STEPS = 256
# The bytes of a text that are searched at once.
_BLOCK = 1 << 20
# Spaces outside ASCII, and invisible characters.
_BLANKS = re.compile(
    rb"\xc2\xa0|\xe2\x80[\x80-\x8d\xaf]|\xe2\x81[\x9f\xa0]|\xe3\x80\x80|\xef\xbb\xbf|\xe1\x9a\x80"
)
_SEPARATORS = bytes.maketrans(b"\v\f", b"  ")
# Escaped line breaks and tabs in strings, also in strings inside strings.
_BREAKS = re.compile(rb"\\{1,4}(?:[nr]|u000[aAdD])(?:\\{1,4}n)?")
# What ends a line, also escaped in a string; blanks and the end of a comment.
_LINE_END = re.compile(rb"[\r\n]")
_CLOSERS = re.compile(rb"(?:[ \t\r]|\*+/|--+>|\"\"\"|'''|\*+\)|-\}|[#!-]*\}\}?|--%>|%>)+\Z")
_CLOSING_BYTES = 64
_TABS = re.compile(rb"\\{1,4}(?:t|u0009)")


@dataclass(frozen=True, slots=True)
class Match:
    """A placeholder: its line from 1 (as git counts: by LF), its rule and its marker.

    `key` stays the same when the line moves, or when the text before the mark changes: the rest of the line
    without the end of a comment; for a function its name and the kind of its body; for a marker of the policy
    the line. `head` is the line of the function's header, where that is known.
    """

    line: int
    rule: str
    marker: str
    key: bytes
    head: int | None = None


def to_utf8(content: bytes, is_whole: bool = True) -> bytes | None:
    """Return a file's text in UTF-8, from UTF-8 or from UTF-16 with a byte-order mark; None for other bytes,
    and for a pointer of Git LFS.

    Args:
        content: the file, or its first part.
        is_whole: if not, a character may be cut off at the end.
    """
    if is_whole and content.startswith(_POINTER) and len(content) <= _LONGEST_POINTER:
        # Git LFS stores this in place of the file; the text is elsewhere.
        return None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        name = "utf-16-le" if content.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
        try:
            text = codecs.getincrementaldecoder(name)().decode(content[2:], is_whole)
            found = text.encode("utf-8")
        except UnicodeError:
            return None
        return None if b"\0" in found else found
    if b"\0" in content:
        return None
    if not content.isascii():
        try:
            codecs.getincrementaldecoder("utf-8")().decode(content, is_whole)
        except UnicodeError:
            return None
    return content


def find_matches(
    text: bytes, name: bytes, markers: Markers, is_time_up: Callable[[], bool] = no_timeout
) -> list[Match]:
    """Find the placeholders of a text, in order; at most one of each rule on a line.

    Args:
        text: UTF-8, as `to_utf8` gives it.
        name: the path, or its last component: the suffix chooses the language. The policy's own markers are
            not searched in the file that defines them.
        markers: what is searched.
        is_time_up: whether the time is up; called every few hundred steps. Then the search ends with
            what it has found; the caller must check the time itself.
    """
    text = text.removeprefix(codecs.BOM_UTF8)
    language = language_of(name)
    bodies = Bodies.SAID if has_not_implemented_forms(language) else Bodies.NONE
    search = _TextSearch(
        text=text, language=language, markers=markers, is_policy=_defines_markers(text, name)
    )
    steps = 0
    for number, start, end, bits in _suspicious(text, markers, bodies):
        steps += 1 + (end - start) // _STEP_BYTES
        if steps >= _STEPS:
            if is_time_up():
                return search.found()
            steps = 0
        search.search(number, start, end, bits)
    if is_python(name):
        for body in find_empty_functions(text, is_time_up):
            search.add(body.line, BODY, body.marker, body.key, body.head)
    return search.found()


def _defines_markers(text: bytes, name: bytes) -> bool:
    """Return whether a text is a policy, where every marker would find its own example."""
    return name == b"patchgate.toml" or (name == b"pyproject.toml" and b"[tool.patchgate" in text)


def _rest(line: bytes) -> bytes:
    """Remove the end of the line, and the end of a comment."""
    line = _LINE_END.split(line, maxsplit=1)[0].rstrip()
    # Only its end is searched: the expression is tried at each position.
    return line[:-_CLOSING_BYTES] + _CLOSERS.sub(b"", line[-_CLOSING_BYTES:])


def _suspicious(text: bytes, markers: Markers, bodies: Bodies) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, start, end and marker bits of the lines that may have a placeholder, block by block."""
    number = 1
    begin = 0
    while begin < len(text):
        stop = text.find(b"\n", begin + _BLOCK) + 1 or len(text)
        lines = markers.lines_of(text[begin:stop], bodies)
        before = begin
        for offset in sorted(lines):
            start = begin + offset
            number += text.count(b"\n", before, start)
            before = start
            end = text.find(b"\n", start)
            yield number, start, end if end >= 0 else len(text), lines[offset]
        number += text.count(b"\n", before, stop)
        begin = stop


def _read(line: bytes, language: Language) -> bytes:
    """Normalize a line for the expressions: one kind of space, and an LF for an escaped `\\n`."""
    line = line.removesuffix(b"\r")
    if not line.isascii():
        line = _BLANKS.sub(b" ", line)
    if b"\v" in line or b"\f" in line:
        line = line.translate(_SEPARATORS)
    # In LaTeX they are commands.
    if b"\\" in line and language.suffix != b"tex":
        line = _TABS.sub(b" ", _BREAKS.sub(b"\n", line))
    return line


class _TextSearch:
    """One search through one text, line by line."""

    def __init__(self, text: bytes, language: Language, markers: Markers, is_policy: bool) -> None:
        self._text = text
        self._language = language
        self._markers = markers
        self._all = [(1 << place, marker) for place, marker in enumerate(markers.all)]
        if is_policy:
            self._all = [each for each in self._all if each[1].rule != OWN]
        self._chosen: dict[int, tuple[Marker, ...]] = {}
        self._line_context = LineContext(text)
        self._found: dict[tuple[int, str], Match] = {}

    def add(self, number: int, rule: str, marker: str, what: bytes, head: int | None = None) -> None:
        """Add a placeholder, unless its rule already has one on the line."""
        key = marker.encode("utf-8", "surrogateescape") + b"\0" + what
        match = Match(line=number, rule=rule, marker=marker, key=key, head=head)
        self._found.setdefault((number, rule), match)

    def found(self) -> list[Match]:
        """Return the placeholders, in order."""
        places = sorted(self._found, key=lambda each: (each[0], _RULES.index(each[1])))
        return [self._found[place] for place in places]

    def search(self, number: int, start: int, end: int, bits: int) -> None:
        """Search a line for the markers that it may have."""
        line = self._text[start:end]
        read = _read(line, self._language)
        self._line_context.start, self._line_context.end = start, end
        chosen = self._chosen.get(bits)
        if chosen is None:
            chosen = tuple(marker for bit, marker in self._all if bits & bit)
            self._chosen[bits] = chosen
        for marker in chosen:
            if (what := self._found_on(line, read, marker)) is not None:
                self.add(number, marker.rule, marker.name, what if marker.rule == OWN else _rest(what))

    def _found_on(self, line: bytes, read: bytes, marker: Marker) -> bytes | None:
        rule = marker.rule
        if rule == WORD:
            return find_todo(read, self._line_context, self._language, marker)
        if rule == BRACKET:
            return find_bracket(read, self._language, marker) if b"[" in read else None
        if rule == BODY:
            return find_not_implemented(line, self._language, self._line_context)
        if rule == OWN:
            # The line is searched unchanged.
            return line.strip() if self._markers.own_in(marker, line) else None
        if not marker.found_in(read):
            return None
        found = marker.expression.search(read)
        return read[found.start() :] if found else read.strip()
