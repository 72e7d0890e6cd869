"""What looks like a secret, taken out of a text: credentials of known forms, and values of an environment.

Decides which stretches of a log, a review or a report become `***`. It does not decide which texts are
masked, and it knows no files. Each search runs once over the text, and every expression is bounded, so a
long log costs its length.

A value is sought as it is, line by line where it has several, and as `printable` writes it. What was encoded
otherwise (base64, reversed, cut in two) is not found: masking keeps an accident from spreading, it stops
nobody who means to show a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from patchgate.change.quoting import printable
from patchgate.declared.content import SECRET_FORMS
from patchgate.durable.record import Json

MASK = b"***"
LEAST_VALUE = 6
"""A shorter value of the environment is not sought: it would be found in every second word."""

_LEAST_LINE = 8
_MOST_VALUE = 64 << 10
_NAME = re.compile(
    r"(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|API_?KEYS?|(?:ACCESS|PRIVATE|AUTH|SIGNING|ENCRYPTION)_?KEYS?"
    r"|CREDENTIALS?|_PWD|_PASS)(?:_|[0-9]*$)",
    re.IGNORECASE,
)
_NAMES_OF_FOLDERS = frozenset({"OLD_PWD", "INIT_PWD"})
# What follows the first line of a private key, up to its last line or as far as it looks like one.
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}-----")
_KEY_LINES = re.compile(rb"(?:(?:\\[nr]|[\s+|>-]){1,8}[A-Za-z0-9+/=]{16,256}){1,2000}")
# An RSA key of 4,096 bits has 3.2 KB.
_MOST_KEY = 8 << 10


def secret_values(environment: Mapping[str, str]) -> tuple[bytes, ...]:
    """Give the values of the variables whose name says that they are secret, in every form that is sought."""
    found: dict[bytes, None] = {}
    for name, value in environment.items():
        if len(value) >= LEAST_VALUE and _NAME.search(name) and name.upper() not in _NAMES_OF_FOLDERS:
            for form in _forms(value):
                found[form] = None
    # The longest first: what holds another one is masked as one stretch.
    return tuple(sorted(found, key=len, reverse=True))


def _forms(value: str) -> Iterator[bytes]:
    lines = [line for line in value.split("\n") if len(line.strip()) >= _LEAST_LINE]
    for part in (value, *(lines if len(lines) > 1 or "\n" in value else ())):
        stripped = part.strip()
        if LEAST_VALUE <= len(stripped) <= _MOST_VALUE:
            yield stripped.encode("utf-8", "surrogateescape")
            yield printable(stripped, _MOST_VALUE).encode("utf-8", "surrogateescape")


class Masks:
    """Takes secrets out of texts.

    Args:
        environments: of the caller and of the commands; only what a variable's name calls secret counts.
    """

    def __init__(self, environments: Iterable[Mapping[str, str]] = ()) -> None:
        self._values = tuple(dict.fromkeys(each for one in environments for each in secret_values(one)))

    def raw(self, content: bytes) -> bytes:
        """Mask bytes: a log, a file."""
        spans = sorted([*_known_forms(content), *self._known_values(content)])
        if not spans:
            return content
        pieces: list[bytes] = []
        at = masked_to = 0
        for start, end in spans:
            if end <= masked_to:
                continue
            # Stretches that overlap or touch are one, for the rest of the second would stand there alone.
            if start > masked_to or not pieces:
                pieces += [content[at:start], MASK]
            at = masked_to = end
        return b"".join([*pieces, content[at:]])

    def text(self, text: str) -> str:
        """Mask a text; a byte that is no UTF-8 stays what it was."""
        encoded = text.encode("utf-8", "surrogatepass")
        masked = self.raw(encoded)
        return text if masked is encoded else masked.decode("utf-8", "surrogatepass")

    def document(self, value: Json) -> Json:
        """Mask every text of a JSON value; keys, numbers and the structure stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.document(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return [self.document(item) for item in value]
        return value

    def _known_values(self, content: bytes) -> Iterator[tuple[int, int]]:
        for value in self._values:
            at = content.find(value)
            while at >= 0:
                yield at, at + len(value)
                at = content.find(value, at + len(value))


def _known_forms(content: bytes) -> Iterator[tuple[int, int]]:
    for form in SECRET_FORMS:
        if not any(literal in content for literal in form.literals):
            continue
        end = 0
        while match := form.expression.search(content, end):
            end = _end_of_key(content, match.end()) if form.name == "private key" else match.end()
            yield match.start(), end


def _end_of_key(content: bytes, start: int) -> int:
    """Find where a private key ends: its last line, or where lines no longer look like one."""
    last = _KEY_END.search(content, start, start + _MOST_KEY)
    if last is not None:
        return last.end()
    lines = _KEY_LINES.match(content, start, start + _MOST_KEY)
    return start if lines is None else lines.end()
