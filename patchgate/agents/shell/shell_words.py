r"""What a shell makes of a word that is written out: `$'...'` decoded, braces expanded, known values put in.

Follows "Dollar-Single-Quotes" of POSIX (XCU 2.2.4), and "ANSI-C Quoting" and "Brace Expansion" of bash. Only
what does not depend on anything but the text is computed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from patchgate.values import dataclass, field

UNKNOWN = "\0"
"""Stands in a word for text that only a running shell knows."""
SPLIT = "\1"
"""Stands in a word where the shell splits the value of an unquoted variable."""
MOST_WORDS = 64
_MOST_MADE = 100_000

_ESCAPE = re.compile(
    r"(?s)\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))"
)
_PLAIN = {"a": "\a", "b": "\b", "e": "\33", "E": "\33", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FOLDERS = {
    "--git-dir": ".git",
    "--git-common-dir": ".git",
    "--absolute-git-dir": ".git",
    "--show-toplevel": ".",
}

WordPart = str | tuple[str, ...]
"""A text, or the alternatives of a brace expansion."""


def decode_ansi(text: str) -> str:
    """Decode the inside of `$'...'`; a character that there is not, or that ends the word, is not known."""
    return _ESCAPE.sub(_character, text)


def _character(found: re.Match[str]) -> str:
    small, short, long, octal, control, plain = found.groups()
    if plain is not None:
        return _PLAIN.get(plain, plain if plain in "\\'\"?" else "\\" + plain)
    if control is not None:
        number = ord(control) & 31
    else:
        number = int(octal, 8) & 255 if octal else int(small or short or long, 16)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else UNKNOWN


@dataclass(slots=True)
class KnownVariables:
    """Values of variables, and how much text may still be made of them: a short text stays short."""

    values: dict[str, str]
    _room: list[int] = field(default_factory=lambda: [_MOST_MADE])

    def copy(self) -> KnownVariables:
        """Copy them for a subshell."""
        return KnownVariables(dict(self.values), self._room)

    def value(self, name: str, *, is_quoted: bool) -> str:
        """Return the value of a variable, as it stands in a word."""
        value = self.values.get(name)
        if value is None or not self._takes(len(value)):
            return UNKNOWN
        return value if is_quoted else SPLIT.join(value.split())

    def alternatives(self, inside: str) -> WordPart:
        """Return what the inside of braces stands for."""
        parts = tuple(inside.split(","))
        is_list = 1 < len(parts) <= MOST_WORDS and "\\" not in inside
        return parts if is_list and self._takes(_MOST_MADE // 200) else UNKNOWN

    def _takes(self, size: int) -> bool:
        self._room[0] -= size + 10
        return self._room[0] >= 0


def words_of(parts: Sequence[WordPart]) -> list[str]:
    """Return the words that the parts of one word become."""
    choices = [(each,) if isinstance(each, str) else each for each in parts]
    made = ["".join(each) for each in itertools.islice(itertools.product(*choices), MOST_WORDS)]
    return [word for each in made for word in (each.split(SPLIT) if SPLIT in each else [each])]


def printed_by(words: Sequence[str]) -> str:
    """Return what a command in `$(...)` prints, if its words tell; the folders of git as seen from here."""
    if words[:2] == ("git", "rev-parse"):
        asked = [each for each in words[2:] if not each.startswith("--path-format=")]
        if len(asked) == 2 and asked[0] == "--git-path":
            return f".git/{asked[1]}"
        return _FOLDERS.get(asked[0], UNKNOWN) if len(asked) == 1 else UNKNOWN
    if words == ("pwd",):
        return "."
    text = " ".join(words[1:])
    if "\\" in text or text.startswith("-"):
        return UNKNOWN
    is_plain = words[:1] == ("echo",) or (words[:1] == ("printf",) and len(words) == 2 and "%" not in text)
    return text if is_plain else UNKNOWN
