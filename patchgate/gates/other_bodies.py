"""Which lines of other languages than Python stand for a body that was not written.

Decides it by one line: the languages' own ways to say that something is not implemented. An empty pair of
braces is none: it is often meant. What stands in a comment or a string does nothing, so it is none either.
"""

from __future__ import annotations

import re

from patchgate.gates.text_kinds import kind_of, opening, suffix_of, without_strings

_NEAR = 400
# The text of an error: not "not implemented on this system", which is an answer.
_SAYS = (
    rb"[ \t]?\(?[ \t]?[@$]?[\"'`](?:[^\"'`\r\n]{0,80}?\b(?i:not(?: yet)?(?: been)? implemented(?: yet)?"
    rb"|unimplemented(?=[\"'`!.:;,])"
    rb"|not-implemented|not_implemented)(?! (?:for|on|in|by|under|when|if|unless|with|outside)\b)"
    rb"|(?i:todo|fixme|tbd)\b)"
)
_TYPE = rb"\\?(?:[A-Za-z_][A-Za-z0-9_]{0,60}(?:\.|::|\\)){0,6}"


def _form(expression: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![A-Za-z0-9_])(?:" + expression + rb")")


_THROWN = _form(
    rb"throw[ \t]{1,4}(?:new[ \t]{1,4})?"
    + _TYPE
    + rb"(?:NotImplemented[A-Za-z]{0,20}|UnimplementedError|[A-Za-z_][A-Za-z0-9_]{0,60}"
    + _SAYS
    + rb")"
)
_PANIC = _form(
    rb"(?:panic|fatalError|preconditionFailure|die|croak|error|stop|failwith|NOT_IMPLEMENTED)" + _SAYS
)
_MACRO = _form(rb"(?:(?:todo|unimplemented)![ \t]{0,4}[(\[{]|panic!" + _SAYS + rb")")
_CALL = _form(rb"(?<!\.)TODO\(")
_ERROR = _form(rb"(?:panic|errors\.New|fmt\.Errorf)" + _SAYS)
_RAISED = _form(
    rb"(?:raise|fail)(?:[ \t]{1,4}|\()(?:::)?(?:NotImplementedError|[A-Za-z]{0,40}(?:,[ \t])?" + _SAYS + rb")"
)
_ASSERTED = _form(rb"assert\([ \t]?(?:false[ \t]?&&[ \t]?|![ \t]?)" + _SAYS)
_FORMS = {
    suffix.encode(): forms
    for suffixes, forms in (
        ("rs", (_MACRO,)),
        ("go", (_ERROR,)),
        ("js mjs cjs jsx ts mts cts tsx vue svelte dart java scala groovy cs vb fs php", (_THROWN, _PANIC)),
        ("kt kts", (_CALL, _THROWN)),
        ("rb ex exs cr", (_RAISED,)),
        ("swift lua hs pl pm r ml", (_PANIC,)),
        ("c h cc cpp cxx hh hpp hxx mm m", (_THROWN, _PANIC, _ASSERTED)),
    )
    for suffix in suffixes.split()
}
_SAYS_ABSTRACT = re.compile(rb"(?i)sub-?class|overrid|abstract|init\(coder:\)")


def has_forms(name: bytes) -> bool:
    """Tell whether any line of a file can say so, by its name."""
    return suffix_of(name) in _FORMS


def is_undone(line: bytes, name: bytes) -> bool:
    """Tell whether a line says that what is around it is not implemented.

    Args:
        line: without its LF.
        name: of the file, whose suffix tells the language.
    """
    suffix = suffix_of(name)
    for form in _FORMS.get(suffix, ()):
        found = form.search(line[: 10 * _NEAR])
        if found is None or _SAYS_ABSTRACT.search(line, found.start(), found.start() + _NEAR):
            continue
        before = line[max(0, found.start() - _NEAR) : found.start()]
        if b'"' in without_strings(before):
            continue
        is_comment, _ = opening(before, kind_of(name), suffix, found.start() <= _NEAR)
        if not is_comment:
            return True
    return False
