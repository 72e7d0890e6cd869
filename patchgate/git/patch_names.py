"""Names in the headers of a patch: git's C-style quoting, read strictly and written canonically.

Decides how a token becomes the bytes of a name and back. A name is read only in the one form that git
writes (git's `quote.c`, `quote_c_style`), in either setting of `core.quotePath`; whatever else would
decode is refused, because another reader may decode it differently.
"""

from __future__ import annotations

import re

_SHORT = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
_FROM_SHORT = {letter[0]: bytes([code]) for code, letter in _SHORT.items()}
_BARE = re.compile(rb'[^\x00-\x1f\x7f"\\]*+')
_BARE_ASCII = re.compile(rb'[^\x00-\x1f\x7f-\xff"\\]*+')
_QUOTED = re.compile(rb'"((?:[^\x00-\x1f\x7f"\\]|\\[abtnvfr"\\]|\\[0-3][0-7][0-7])*)"')
_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))", re.DOTALL)

DEV_NULL = b"/dev/null"


def _escape(code: int, *, high: bool) -> bytes:
    if code in _SHORT:
        return b"\\" + _SHORT[code]
    if code < 0x20 or code == 0x7F or (high and code >= 0x80):
        return b"\\%03o" % code
    return bytes([code])


_ESCAPES = {high: [_escape(code, high=high) for code in range(256)] for high in (False, True)}


def quote(name: bytes, *, high: bool) -> bytes:
    """Write a name as git does; `high` escapes bytes above 0x7f (`core.quotePath`, git's default)."""
    if (_BARE_ASCII if high else _BARE).fullmatch(name):
        return name
    escapes = _ESCAPES[high]
    return b'"' + b"".join([escapes[code] for code in name]) + b'"'


def unquote(token: bytes) -> bytes | None:
    """Read a name from its token, quoted or bare; None where git would not have written that token.

    The closing quote must end the token; octal 000, octal above 377 and unknown escapes are refused.
    """
    if not token.startswith(b'"'):
        return token if _BARE.fullmatch(token) else None
    match = _QUOTED.fullmatch(token)
    if match is None:
        return None
    name = _ESCAPE.sub(_unescape, match[1])
    return None if b"\0" in name else name


def _unescape(match: re.Match[bytes]) -> bytes:
    octal, letter = match.groups()
    return bytes([int(octal, 8)]) if octal else _FROM_SHORT[letter[0]]


def split_equal_names(git_line: bytes) -> tuple[bytes, bytes] | None:
    """Split `a/NAME b/NAME`, where both names are the same, into its two tokens.

    Only equal names are resolved, because only then does the line's length say where to split. None where
    the halves do not fit, and also where a bare name itself holds ` b/`: other readers split there.
    """
    middle, odd = divmod(len(git_line), 2)
    if not odd or git_line[middle] != 0x20:
        return None
    old, new = git_line[:middle], git_line[middle + 1 :]
    if not old.startswith(b'"') and b" b/" in old:
        return None
    return old, new


def strip_tab(token: bytes) -> tuple[bytes, bool]:
    """Take off the one TAB that git puts behind a name with a space in it; tell whether it was there."""
    if token.endswith(b"\t") and b" " in token:
        return token[:-1], True
    return token, False
