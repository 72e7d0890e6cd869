"""Print bytes of a repository safely, and quote the names in patch headers as git does.

`quote_path` quotes as git does (`core.quotePath=false`), and escapes what can deceive a reader ("Trojan
Source", CVE-2021-42574): C1 and bidirectional controls, Unicode line separators. A name in a patch is read
only in the form that git writes (`quote_c_style`): other readers may decode other forms differently.
"""

from __future__ import annotations

import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    Item = TypeVar("Item")

_LETTERS = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}
_FROM_SHORT = {letter[0]: bytes([code]) for code, letter in _LETTERS.items()}
_BARE = re.compile(rb'[^\x00-\x1f\x7f"\\]*+')
_BARE_ASCII = re.compile(rb'[^\x00-\x1f\x7f-\xff"\\]*+')
_QUOTED = re.compile(rb'"((?:[^\x00-\x1f\x7f"\\]|\\[abtnvfr"\\]|\\[0-3][0-7][0-7])*)"')
_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))", re.DOTALL)

DEV_NULL = b"/dev/null"
LOG_COMMANDS = ("##[", "##vso[", "##teamcity[")
"""What build logs run anywhere in a line: GitHub's first command syntax (actions/runner,
ActionCommand.TryParse), Azure Pipelines, TeamCity. `::` counts only where a line begins with it."""


def _escaped_byte(code: int, *, high: bool) -> bytes:
    if code in _LETTERS:
        return b"\\" + _LETTERS[code]
    if code < 0x20 or code == 0x7F or (high and code >= 0x80):
        return b"\\%03o" % code
    return bytes([code])


_ESCAPES = {high: [_escaped_byte(code, high=high) for code in range(256)] for high in (False, True)}


def quote(name: bytes, *, high: bool) -> bytes:
    """Write a name as git does; `high` escapes bytes above 0x7f (`core.quotePath`, git's default)."""
    if (_BARE_ASCII if high else _BARE).fullmatch(name):
        return name
    escapes = _ESCAPES[high]
    return b'"' + b"".join([escapes[code] for code in name]) + b'"'


def unquote(token: bytes) -> bytes | None:
    """Read a name from its token, quoted or bare; None if git would not write that token.

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
    the halves differ, and also if a bare name contains ` b/`: other readers split there.
    """
    middle, odd = divmod(len(git_line), 2)
    if not odd or git_line[middle] != 0x20:
        return None
    old, new = git_line[:middle], git_line[middle + 1 :]
    if not old.startswith(b'"') and b" b/" in old:
        return None
    return old, new


def strip_tab(token: bytes) -> tuple[bytes, bool]:
    """Remove the TAB that git puts after a name with a space; return whether it was there."""
    if token.endswith(b"\t") and b" " in token:
        return token[:-1], True
    return token, False


_SHORT = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SEPARATORS = frozenset("\u2028\u2029\ufeff")
_PLAIN = frozenset(range(0x20, 0x7F)) - {34, 92}

# ECMA-48: colours and other controls of a terminal (CSI), and strings such as titles (DCS, SOS, OSC, PM, APC)
# up to their end; the introducers also as C1 controls in UTF-8. None of them crosses the end of a line.
_STRING = (
    rb"(?:\x1b[PX\]^_]|\xc2[\x90\x98\x9d-\x9f])"
    rb"[^\x07\x1b\n\xc2]*(?:\xc2(?!\x9c)[^\x07\x1b\n\xc2]*)*(?:\x07|\x1b\\|\xc2\x9c)?"
)
_TERMINAL = re.compile(
    _STRING + rb"|(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]|\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)
# Controls without an introducer: they are invisible, and may be between letters.
_UNSEEN = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8b-\x8f\xaa-\xae]|\xe2\x81[\xa0\xa6-\xa9]|\xef\xbb\xbf"
)
# `neutral` checks this first: most output has none of it.
_SUSPECT = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f-\xff]")
# What `is_printable` rejects, except lone surrogates.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
    "|\r(?!\n)"
)


def without_escapes(raw: bytes) -> bytes:
    """Remove escape sequences; each line stays a line."""
    return _TERMINAL.sub(b"", raw) if b"\x1b" in raw or b"\xc2" in raw else raw


def without_controls(raw: bytes) -> bytes:
    """Remove escape sequences and all invisible characters, except tabs and line ends."""
    return _UNSEEN.sub(b"", without_escapes(raw))


def neutral(raw: bytes) -> bytes:
    """Escape controls as `printable` does, so no terminal executes them; tabs, LF and CRLF stay.

    Works on each character alone, so pieces that end between two characters give what the whole gives.
    """
    if _SUSPECT.search(raw) is None:
        return raw
    return _CONTROL.sub(_escaped, raw.decode("utf-8", "surrogateescape")).encode("utf-8")


def _escaped(found: re.Match[str]) -> str:
    return _escape(ord(found[0]))


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def is_printable(character: str) -> bool:
    """Return whether one character may reach a terminal as it is."""
    code = ord(character)
    if code < 0x20 or 0x7F <= code <= 0x9F or 0xD800 <= code <= 0xDFFF:
        return False
    return character not in _BIDIRECTIONAL and character not in _SEPARATORS


def quote_path(raw: bytes) -> str:
    """Write a path as git quotes it: bare if every byte is harmless, otherwise in double quotes.

    Bytes that are not UTF-8 and characters that may not be printed become octal escapes of their bytes.
    """
    if _PLAIN.issuperset(raw):
        return raw.decode("ascii")
    pieces: list[str] = []
    quoted = False
    for character in raw.decode("utf-8", "surrogateescape"):
        code = ord(character)
        if code in _SHORT:
            pieces.append(_SHORT[code])
            quoted = True
        elif is_printable(character):
            pieces.append(character)
        else:
            pieces.extend(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
            quoted = True
    text = "".join(pieces)
    return f'"{text}"' if quoted else text


def exact_text(raw: bytes) -> str | None:
    """Decode a path that is plain text: UTF-8 without controls; None for any other.

    Controls are also those of the direction of text. `quote_path` quotes more: quotes and backslashes.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS.search(text) else text


def without_log_commands(text: str, mark: str = "\\x23") -> str:
    """Escape what a build log would run as a command.

    Args:
        mark: how the text writes a number sign otherwise; in JSON `\\u0023`.
    """
    if "##" in text:
        for command in LOG_COMMANDS:
            text = text.replace(command, f"#{mark}{command[2:]}")
    return text


def safe_json(text: str) -> str:
    """Escape in a JSON document, in its strings, what a build log would run as a command."""
    return without_log_commands(text, "\\u0023")


def printable(raw: bytes | str, limit: int = 400) -> str:
    """Write untrusted text on one line, with unprintable characters escaped, cut at `limit` characters.

    A tab stays a tab; a line feed becomes `\\n`. Bytes that are not UTF-8 become `\\xNN`.
    """
    if isinstance(raw, bytes):
        raw = raw[: limit * 4 + 4].decode("utf-8", "surrogateescape")
    cut = len(raw) > limit
    pieces: list[str] = []
    for character in raw[:limit]:
        code = ord(character)
        if character == "\t" or is_printable(character):
            pieces.append(character)
        elif code == 10:
            pieces.append("\\n")
        else:
            pieces.append(_escape(code))
    return "".join(pieces) + ("…" if cut else "")


def in_shell(text: str, instead: str) -> str:
    """Write untrusted text as one word of a command for a shell; `instead` if it must be escaped for a
    terminal.
    """
    return shlex.quote(text) if printable(text) == text else instead


def first_of(items: Sequence[Item], most: int, show: Callable[[Item], str] = str, between: str = ", ") -> str:
    """Show the first of some items, and count the others: `a, b and 3 more`."""
    more = len(items) - most
    return between.join(map(show, items[:most])) + (f" and {more} more" if more > 0 else "")
