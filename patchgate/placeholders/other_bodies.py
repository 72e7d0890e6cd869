"""Which lines of other languages than Python stand for a body that was not written.

Decides it by one line, and by the one above where an open parenthesis ends that: the languages' own ways to
say that something is not implemented. An empty pair of braces is none: it is often meant. What stands in a
comment or a string does nothing, so it is none either; and no message or comment excuses what is thrown.
"""

from __future__ import annotations

import re

from patchgate.placeholders.text_kinds import Around, Language, is_in_string, opening

_NEAR = 400
# The text of an error: not "not implemented on this system", which is an answer.
_UNDONE = (
    rb"\b(?i:not(?: yet)?(?: been)? implemented(?: yet)?|unimplemented(?=[\"'`!.:;,])"
    rb"|not-implemented|not_implemented|implement me\b)"
    rb"(?! (?:for|on|in|by|under|when|if|unless|with|outside)\b)"
)
_TODO = rb"(?i:todo|fixme|tbd)\b"
_SAYS = (
    rb"[ \t]?\(?[ \t]?[@$]?(?:"
    + b"|".join(
        quote + rb"(?:[^" + quote + rb"\r\n]{0,80}?" + _UNDONE + b"|" + _TODO + b")"
        for quote in (rb"\"", b"'", b"`")
    )
    + rb")"
)
_TYPE = rb"\\?(?:[A-Za-z_][A-Za-z0-9_]{0,60}(?:\.|::|\\)){0,6}"


def _form(expression: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![A-Za-z0-9_])(?:" + expression + rb")")


_THROWN = _form(
    rb"throw"
    + _SAYS
    + rb"|throw[ \t]{1,4}(?:new[ \t]{1,4})?"
    + _TYPE
    + rb"(?:NotImplemented[A-Za-z]{0,20}|UnimplementedError|[A-Za-z_][A-Za-z0-9_]{0,60}"
    + _SAYS
    + rb")"
)
_PANIC = _form(
    rb"(?:panic|fatalError|preconditionFailure|die|croak|error|stop|failwith|NOT_IMPLEMENTED)" + _SAYS
)
_REJECTED = _form(rb"reject\([ \t]?new[ \t]{1,4}" + _TYPE + rb"[A-Za-z_][A-Za-z0-9_]{0,60}" + _SAYS)
_MACRO = _form(rb"(?:(?:todo|unimplemented)![ \t]{0,4}[(\[{]|panic!" + _SAYS + rb")")
_CALL = _form(rb"(?<!\.)TODO\(")
_ERROR = _form(rb"(?:panic|errors\.New|fmt\.Errorf|log\.(?:Fatal|Panic)(?:f|ln)?)" + _SAYS)
_RAISED = _form(
    rb"(?:raise|fail)(?:[ \t]{1,4}|\()(?:::)?(?:NotImplementedError|[A-Za-z]{0,40}(?:,[ \t])?" + _SAYS + rb")"
)
_ASSERTED = _form(rb"assert\([ \t]?(?:false[ \t]?&&[ \t]?|![ \t]?)" + _SAYS)
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
# What a compiler asks for, and nobody calls.
_REQUIRED = b"init(coder:)"
_TEXT = re.compile(rb"[ \t]*[@$]?[\"'`]")


def has_forms(language: Language) -> bool:
    """Tell whether any line of a file can say so."""
    return language.suffix in _FORMS


def undone_in(line: bytes, language: Language, around: Around) -> bytes | None:
    """Find what says on a line that what is around it is not implemented; None if nothing does.

    Args:
        line: without its LF.
        language: of the file.
        around: where it stands.
    """
    said = _said(line, 0, language)
    if said is None and _TEXT.match(line) and (above := around.before).endswith(b"("):
        return _said(above + line.lstrip(), len(above), language)
    return said


def _said(line: bytes, after: int, language: Language) -> bytes | None:
    """Find what says so on a line, and ends behind a place of it."""
    for form in _FORMS.get(language.suffix, ()):
        found = form.search(line[: 10 * _NEAR])
        if found is None or found.end() <= after:
            continue
        if _REQUIRED in line[found.start() : found.start() + _NEAR]:
            continue
        before = line[max(0, found.start() - _NEAR) : found.start()]
        is_comment, _ = opening(before, language, found.start() <= _NEAR, b"")
        if not is_comment and not is_in_string(before, line[found.end() :][:_NEAR]):
            return found[0]
    return None
