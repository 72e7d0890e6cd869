"""Masks secrets in a text: known forms, named values, logins, values of an environment.

Decides which parts of a log, a review or a report become `***`, not which texts are masked. Every
expression is bounded or ends where the next may begin, so the time is linear. Encoded secrets (base64,
reversed, cut) are not found: masking limits accidents only.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from patchgate.git.quoting import printable, without_controls
from patchgate.policy.content_rules import SECRET_FORMS
from patchgate.storage.record import Json
from patchgate.values import dataclass

_LEAST_NAMED = 4
MOST_VALUE = 16 << 10
_MOST_LOOK = 200
# A search for these is fast; the expression below is tried only where one was found.
_STEMS = (b"passw", b"passphrase", b"pwd", b"_pass", b"token", b"secret", b"key", b"auth", b"cookie")
_ENDING = re.compile(
    rb"(?P<word>passw(?:or)?d|passphrase|pwd|_pass|token|secret|key|auth(?:orization)?|cookie)_?[0-9]{0,3}"
)
# Only these keys are secret. Searched in the letters before `key`.
_KEY_OF = re.compile(rb"(?:api|access|private|secret|signing|encryption|auth|account)[_. -]?\Z")
_MOST_KEY_OF = 12
_CLOSE = rb"(?:\\{0,7}[\"'`]\]?)?"
_TYPE = rb"(?:optional\[)?(?:str|string|bytes|secretstr|any)\]?(?:[ \t]?\|[ \t]?(?:none|null|undefined))?"
_ASSIGNS = re.compile(
    _CLOSE
    + rb"[ \t]{0,8}(?P<sign>:[ \t]{0,4}"
    + _TYPE
    + rb"[ \t]{0,4}=|:=|=>|(?:[=!+?]|\|\|)?={1,2}|:(?!:))[ \t]{0,8}"
)
_FOLLOWS = re.compile(rb"(?:[\"'][ \t]{0,4},[ \t]{0,4}(?=[\"'])|[\"']?[ \t]{1,8}(?=[^\s-]))")
_OPTION = re.compile(rb"--[a-z0-9_-]{0,40}\Z")
_WORD_BEFORE = re.compile(rb"[a-z0-9_$]{0,60}\Z")
_QUOTE = re.compile(rb"[frbu]{0,2}(?P<quote>\\{0,7}(?:\"\"\"|'''|[\"'`]))")
_INSIDE = {
    quote: re.compile(rb"(?:[^%b\\\n]|\\[^\n]){0,%d}" % (quote, MOST_VALUE)) for quote in (b'"', b"'", b"`")
}
_SCHEME = re.compile(rb"(?:bearer|basic|digest|negotiate|token|apikey)[ \t]{1,8}")
# A backslash before a quote, or of an escaped line end in JSON, ends a bare value.
_BARE = re.compile(rb"(?:[^\s\"'`\\<]|\\(?![\\nrt\"'`])){1,%d}" % MOST_VALUE)
_HEADER = re.compile(rb"(?:[^\r\n\"'`\\]|\\(?![\\nrt\"'`])){1,%d}" % MOST_VALUE)
_TRAILING = b",;:)]}>.\\"

_CONSTANTS = frozenset(
    b"""
    none null nil undefined true false void self this string bytes boolean integer number object optional
    required secretstr missing empty invalid expired unknown wrong incorrect must should cannot expected
    unexpected failed failure passed error success permission denied await async lambda yield typeof hidden
    redacted masked removed identifier anonymous default pass
    """.split()
)
_PLACEHOLDER = re.compile(
    rb"\*+|\.{3,}|x{4,}|-{3,}|\[?(?:redacted|masked|filtered|hidden)\]?|<[^<>\n]{0,200}>?"
    rb"|\$\{\{[^\n]{0,200}|\$?\{{1,2}[ \t]{0,4}[\w.:\[\]]{0,80}(?:[ \t]{0,4}\}{1,2})?|\$\([^\n]{0,200}"
    rb"|%(?:\([\w.]{0,80}\))?[srdq]|%\w{1,80}%",
    re.IGNORECASE,
)
_SHELL_NAME = re.compile(rb"\$[A-Z_][A-Z0-9_]{0,80}")
_PATH = re.compile(rb"[&*$@]{0,2}(?P<first>[a-z_]\w{0,80})(?:(?:\.|->|::)[a-z_]\w{0,80}){0,8}", re.IGNORECASE)
_OBJECTS = frozenset(
    b"""
    self cls this args kwargs argv os settings config conf cfg request req response options opts env environ
    process ctx context params data user client session app module obj
    """.split()
)
_CALL = re.compile(
    rb"[a-z_][\w.]{0,80}(?:\([^\n]{0,%d}?\)|\[[^\n]{0,%d}?\])(?=[\s.,;:)\]}\"']|\Z)"
    % (_MOST_LOOK, _MOST_LOOK),
    re.IGNORECASE,
)
MASK = b"***"
LEAST_VALUE = 6
"""Shorter values of the environment are not searched: they would be found in ordinary words."""
_LEAST_LINE = 8
_MOST_VALUE = 64 << 10
_NAME = re.compile(
    r"(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|API_?KEYS?|(?:ACCESS|PRIVATE|AUTH|SIGNING|ENCRYPTION)_?KEYS?"
    r"|CREDENTIALS?|_PWD|_PASS)(?:_|[0-9]*$)",
    re.IGNORECASE,
)
_NAMES_OF_FOLDERS = frozenset({"OLD_PWD", "INIT_PWD"})
# The text after `://`: a user, if any, and a password up to the last @ before the host. It contains no slash,
# so it ends before a second address.
_LOGIN = re.compile(rb"[^\s/?#\"<>:@\[]*:([^\s/?#\"<>]+)@")
# The whole value of a variable is an address, so its password may contain anything; a port is not one.
_ADDRESS = re.compile(r"[A-Za-z0-9+.-]{1,40}://[^\s/:@\[]*:(?![0-9]{1,5}[/?#])(.+)@", re.DOTALL)
# The lines after the first one of a private key, up to its last line or as long as they look like one.
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}-----")
_KEY_LINES = re.compile(
    rb"(?:(?:\\[nr]|[\s+|>-]|(?:\x1b|\\x1b)\[[0-9;]{0,16}m){1,8}[A-Za-z0-9+/=]{16,256}){1,2000}"
)
# An RSA key of 4,096 bits has 3.2 KB.
_MOST_KEY = 8 << 10


@dataclass(frozen=True, slots=True)
class _Name:
    """A name in a text: the word at its end, the whole word, the sign after it, where its value begins."""

    word: bytes
    whole: bytes
    sign: bytes
    value: int


def named_values(content: bytes) -> Iterator[tuple[int, int]]:
    """Find the values of secret names (`password=x`, `"token": "x"`, `--secret x`); some may overlap.

    The end of a name decides, in any case: `DB_PASSWORD` and `accessToken` count. What is clearly not a
    secret (`_is_readable`) stays, everything else is masked: source code may lose a word, but no password
    stays. Masked text is not searched again, so the time is linear.
    """
    lower = content.lower()
    for stem in _STEMS:
        at = lower.find(stem)
        while at >= 0:
            name = _name_at(lower, at)
            end = at + len(stem)
            if name is not None:
                span = _value_of(content, lower, name)
                if span is not None:
                    yield span
                    end = span[1]
            at = lower.find(stem, end)


def _name_at(lower: bytes, at: int) -> _Name | None:
    """Read the name that ends with the word at a place, up to where its value begins."""
    named = _ENDING.match(lower, at)
    if named is None:
        return None
    word = named["word"]
    if word == b"key" and _KEY_OF.search(lower[max(0, at - _MOST_KEY_OF) : at]) is None:
        return None
    follows = _ASSIGNS.match(lower, named.end())
    before = lower[max(0, at - 60) : at]
    if follows is None:
        if b"--" not in before or _OPTION.search(before) is None:
            return None
        follows = _FOLLOWS.match(lower, named.end())
        if follows is None:
            return None
        sign = b" "
    else:
        sign = follows["sign"]
    prefix = _WORD_BEFORE.search(before)
    whole = (prefix[0] if prefix is not None else b"") + named[0]
    return _Name(word=word, whole=whole, sign=sign, value=follows.end())


def _value_of(content: bytes, lower: bytes, name: _Name) -> tuple[int, int] | None:
    """Return the span of a name's value; None if it is clearly not a value."""
    quoted = _QUOTE.match(lower, name.value)
    start = name.value if quoted is None else quoted.end()
    scheme = _SCHEME.match(lower, start)
    if quoted is not None:
        end = _end_of_quoted(content, start, quoted["quote"])
    elif name.sign in {b"==", b"===", b"!=", b"!=="}:
        # In comparisons only quoted texts are masked.
        return None
    else:
        is_header = name.sign == b":" and name.word in {b"authorization", b"cookie"}
        is_header = is_header or name.word == b"passphrase"
        start = start if scheme is None else scheme.end()
        bare = (_HEADER if is_header else _BARE).match(content, start)
        end = start if bare is None else bare.end()
    start = start if scheme is None or scheme.end() > end else scheme.end()
    # The end of a sentence, a list or a call is not part of a bare value.
    end = end if quoted is not None else start + len(content[start:end].rstrip(_TRAILING + b" \t"))
    if end - start < _LEAST_NAMED or _is_readable(content, start, end, name, is_bare=quoted is None):
        return None
    return start, end


def _end_of_quoted(content: bytes, start: int, quote: bytes) -> int:
    """Find the end of a quoted text: its closing quote, or else the end of the line."""
    if quote in _INSIDE:
        inside = _INSIDE[quote].match(content, start)
        return start if inside is None else inside.end()
    stop = min(len(content), start + MOST_VALUE)
    at = content.find(quote, start, stop)
    # In JSON inside JSON a quote of the value has more backslashes than the one that ends it.
    while at > start and content[at - 1 : at] == b"\\":
        at = content.find(quote, at + 1, stop)
    if at >= 0 and len(quote.lstrip(b"\\")) == 3:
        return at
    line = content.find(b"\n", start, at if at >= 0 else stop)
    return line if line >= 0 else at if at >= 0 else stop


def _is_readable(content: bytes, start: int, end: int, name: _Name, *, is_bare: bool) -> bool:
    """Return whether the text after a name is clearly not the secret."""
    if end - start > _MOST_LOOK:
        return False
    value = content[start:end]
    if name.word == b"pwd" and value.startswith((b"/", b"~")):
        return True
    if value.lower() in _CONSTANTS or _PLACEHOLDER.fullmatch(value) or _SHELL_NAME.fullmatch(value):
        return True
    path = _PATH.fullmatch(value)
    if path is not None and _means_the_same(value, name):
        return True
    if not is_bare:
        return False
    if path is not None and path["first"].lower() in _OBJECTS and path["first"] != value:
        return True
    return _CALL.match(content, start, start + 2 * _MOST_LOOK) is not None


def _means_the_same(value: bytes, name: _Name) -> bool:
    """Return whether a value is only another name: `password=db_password`, `token: apiToken`."""
    last = re.split(rb"\.|->|::|[$@&*]", value)[-1]
    bare = last.lower().rstrip(b"s_")
    word = name.word.lstrip(b"_")
    if bare in {name.whole, name.whole.strip(b"_"), word}:
        return True
    if not bare.endswith(word):
        return False
    border = len(bare) - len(word)
    return last[border - 1 : border] == b"_" or last[border : border + 1].isupper()


def secret_values(environment: Mapping[str, str]) -> tuple[bytes, ...]:
    """Return the secret values of an environment, in every form that is searched.

    They are the values of variables with a secret name, and the passwords in addresses.
    """
    found: dict[bytes, None] = {}
    for name, value in environment.items():
        is_secret = _NAME.search(name) and name.upper() not in _NAMES_OF_FOLDERS
        for secret in (*([value] if is_secret else ()), *_passwords(value)):
            found.update(dict.fromkeys(_forms(secret)))
    # The longest first: a value that contains another one is masked as a whole.
    return tuple(sorted(found, key=len, reverse=True))


def _passwords(value: str) -> Iterator[str]:
    """Yield the passwords of the addresses in a value, literally and unquoted."""
    if "://" not in value or "@" not in value:
        return
    # Loaded here: few environments have an address with a password.
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
    """Masks secrets in texts.

    Args:
        environments: of the caller and of the commands; only variables with a secret name count.
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
            # Spans that overlap or touch are joined, so that no rest of the second one stays.
            if start > masked_to or not pieces:
                pieces += [content[at:start], MASK]
            at = masked_to = end
        return b"".join([*pieces, content[at:]])

    def output(self, content: bytes) -> bytes:
        """Mask the output of a command, also where escapes or control characters hide a secret.

        A line with a secret that is found only without them loses them.
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
        """Build an `output` for consecutive pieces: a private key may continue in the next one.

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
        """Mask a text; bytes that are not UTF-8 stay unchanged."""
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
    """Return how many bytes of a private key that begins in these lines may follow; 0: it ends here."""
    start = lines.rfind(b"-----BEGIN ")
    if start < 0 or _KEY_END.search(lines, start) is not None:
        return 0
    goes_on = any(begin == start and not lines[end:].strip() for begin, end in _known_forms(lines))
    return max(0, _MOST_KEY - (len(lines) - start)) if goes_on else 0


def _rest_of_key(lines: bytes, room: int) -> tuple[int, bool]:
    """Find the end of a private key that began before these lines, and whether it continues after them."""
    if room <= 0:
        return 0, False
    last = _KEY_END.search(lines, 0, room)
    if last is not None:
        return last.end(), False
    # The expression expects the end of a line before each line of a key.
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
