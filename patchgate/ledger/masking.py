"""Take out of a text what looks like a secret.

That is: credentials of known forms, values beside the name of a secret (`named_secrets`), passwords in
addresses, and values of an environment.

Decides which stretches of a log, a review or a report become `***`. It does not decide which texts are
masked, and it knows no files. Each search runs once over the text, and every expression is bounded or ends
where the next one may begin, so a long log costs its length.

A value is sought as it is, line by line where it has several, and as `printable` writes it; in the output of
a command also where escapes of a terminal stand between its letters. In an address like
`scheme://user:secret@host` the secret is masked wherever the address stands; one in the environment is a
value to seek as well. What was encoded otherwise (base64, reversed, cut in two) is not found: masking keeps
an accident from spreading, it stops nobody who means to show a secret.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from patchgate.git.quoting import printable, without_controls
from patchgate.ledger.named_secrets import named_values
from patchgate.policy.content import SECRET_FORMS
from patchgate.storage.record import Json

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
# What follows `://`: a user, if any, and a password up to the last @ before the host. It goes over no slash,
# so over no second address either.
_LOGIN = re.compile(rb"[^\s/?#\"<>:@\[]*:([^\s/?#\"<>]+)@")
# The value of a variable is an address as a whole, so there its password may hold anything; a port is none.
_ADDRESS = re.compile(r"[A-Za-z0-9+.-]{1,40}://[^\s/:@\[]*:(?![0-9]{1,5}[/?#])(.+)@", re.DOTALL)
# What follows the first line of a private key, up to its last line or as far as it looks like one.
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}-----")
_KEY_LINES = re.compile(
    rb"(?:(?:\\[nr]|[\s+|>-]|(?:\x1b|\\x1b)\[[0-9;]{0,16}m){1,8}[A-Za-z0-9+/=]{16,256}){1,2000}"
)
# An RSA key of 4,096 bits has 3.2 KB.
_MOST_KEY = 8 << 10


def secret_values(environment: Mapping[str, str]) -> tuple[bytes, ...]:
    """Give the secret values of an environment, in every form that is sought.

    They are the values of the variables whose name says so, and the passwords of those that are addresses.
    """
    found: dict[bytes, None] = {}
    for name, value in environment.items():
        if _NAME.search(name) and name.upper() not in _NAMES_OF_FOLDERS:
            secrets = [value, *_passwords(value)]
        else:
            secrets = list(_passwords(value))
        for secret in secrets:
            found.update(dict.fromkeys(_forms(secret)))
    # The longest first: what holds another one is masked as one stretch.
    return tuple(sorted(found, key=len, reverse=True))


def _passwords(value: str) -> Iterator[str]:
    """Give the passwords of the addresses in a value, as they stand and as they are meant."""
    if "://" not in value or "@" not in value:
        return
    # Loaded here: few environments hold an address with a password.
    from urllib.parse import unquote

    encoded = value.encode("utf-8", "surrogateescape")
    found = [encoded[start:end].decode("utf-8", "surrogateescape") for start, end in _logins(encoded)]
    whole = _ADDRESS.match(value)
    for password in (*found, *([whole[1]] if whole else ())):
        yield password
        yield unquote(password, errors="surrogateescape")


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
        spans = self._spans(content)
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

    def output(self, content: bytes) -> bytes:
        """Mask what a command wrote, also where a secret is hidden by escapes or controls that are not shown.

        A line with a secret that is found only without them is kept without them.
        """
        masked = self.raw(content)
        bare = without_controls(masked)
        spans = [] if bare == masked else self._spans(bare)
        if not spans:
            return masked
        # Escapes end with their line at the latest, so both have the same lines.
        lines, bare_lines = masked.split(b"\n"), bare.split(b"\n")
        starts = [0, *accumulate(len(line) + 1 for line in bare_lines)]
        for start, end in spans:
            for number in range(bisect_right(starts, start) - 1, bisect_right(starts, end - 1)):
                lines[number] = bare_lines[number]
        return self.raw(b"\n".join(lines))

    def stream(self) -> Callable[[bytes], bytes]:
        """Give an `output` for pieces in their order: a private key may go on in the next one.

        Only pieces of whole lines count; one without an end of line is masked as it is.
        """
        room = 0

        def mask(piece: bytes) -> bytes:
            nonlocal room
            if not piece.endswith(b"\n"):
                return self.output(piece)
            bare = without_controls(piece)
            end, goes_on = _rest_of_key(bare, room)
            room = room - len(bare) if goes_on else _room_for_key(bare[end:])
            return MASK + self.output(bare[end:]) if end else self.output(piece)

        return mask

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

    def _spans(self, content: bytes) -> list[tuple[int, int]]:
        return sorted(
            [*_known_forms(content), *_logins(content), *named_values(content), *self._known_values(content)]
        )

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


def _logins(content: bytes) -> Iterator[tuple[int, int]]:
    """Find the passwords in addresses."""
    at = content.find(b"://")
    while at >= 0:
        found = _LOGIN.match(content, at + 3) if content[at - 1 : at].isalnum() else None
        if found is not None and found[1] != MASK:
            yield found.span(1)
        at = content.find(b"://", at + 3)


def _room_for_key(lines: bytes) -> int:
    """Tell how much of a private key that begins in these lines may follow them; 0: all of it is here."""
    start = lines.rfind(b"-----BEGIN ")
    if start < 0 or _KEY_END.search(lines, start) is not None:
        return 0
    goes_on = any(begin == start and not lines[end:].strip() for begin, end in _known_forms(lines))
    return max(0, _MOST_KEY - (len(lines) - start)) if goes_on else 0


def _rest_of_key(lines: bytes, room: int) -> tuple[int, bool]:
    """Find the end of a private key that began before these lines, and tell whether it goes on after them."""
    if room <= 0:
        return 0, False
    last = _KEY_END.search(lines, 0, room)
    if last is not None:
        return last.end(), False
    # Each line of a key is taken to follow the end of another line.
    found = _KEY_LINES.match(b"\n" + lines, 0, room + 1)
    end = 0 if found is None else found.end() - 1
    return end, not lines[end:].strip()


def _end_of_key(content: bytes, start: int) -> int:
    """Find where a private key ends: its last line, or where lines no longer look like one."""
    last = _KEY_END.search(content, start, start + _MOST_KEY)
    if last is not None:
        return last.end()
    lines = _KEY_LINES.match(content, start, start + _MOST_KEY)
    return start if lines is None else lines.end()
