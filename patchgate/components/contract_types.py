"""The types in a contract: Python's notation and that of other languages, parsed, never evaluated.

Decides which texts are types and which names are known: those of Python, those shared with other languages
and JSON, the contract's own, and every dotted name. Parameters are in `[]` or `<>`. The names are a fixed
list, so that every Python gives the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from patchgate.git.quoting import printable
from patchgate.values import dataclass, field

MAX_DEPTH = 32

_TYPES = """
Any None NoneType object bool int float complex str bytes bytearray memoryview list dict tuple set
frozenset type range slice List Dict Tuple Set FrozenSet Type Optional Union Literal Annotated Callable
Iterable Iterator Generator AsyncIterable AsyncIterator AsyncGenerator Awaitable Coroutine Sequence
MutableSequence Mapping MutableMapping AbstractSet MutableSet Collection Container Hashable Sized
Reversible Buffer ByteString Final ClassVar Required NotRequired ReadOnly NoReturn Never Self
LiteralString AnyStr TypedDict NamedTuple Protocol Enum IntEnum StrEnum Flag IO TextIO BinaryIO StringIO
BytesIO Pattern Match Path PurePath PosixPath UUID Decimal Fraction Number datetime date time timedelta
timezone tzinfo deque defaultdict OrderedDict Counter ChainMap SimpleNamespace ModuleType FunctionType
MethodType TracebackType ContextManager AsyncContextManager AbstractContextManager
AbstractAsyncContextManager Future Task Logger Queue Lock Event Thread Process array SupportsInt
SupportsFloat SupportsIndex SupportsBytes SupportsAbs SupportsRound PathLike Popen CompletedProcess
IPv4Address IPv6Address IPv4Network IPv6Network Namespace ArgumentParser Element ElementTree Connection
Cursor
"""
_ERRORS = """
BaseException BaseExceptionGroup Exception ExceptionGroup GeneratorExit KeyboardInterrupt SystemExit
ArithmeticError AssertionError AttributeError BlockingIOError BrokenPipeError BufferError
ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError
EOFError EnvironmentError FileExistsError FileNotFoundError FloatingPointError IOError ImportError
IndentationError IndexError InterruptedError IsADirectoryError KeyError LookupError MemoryError
ModuleNotFoundError NameError NotADirectoryError NotImplementedError OSError OverflowError
PermissionError ProcessLookupError RecursionError ReferenceError RuntimeError StopAsyncIteration
StopIteration SyntaxError SystemError TabError TimeoutError TypeError UnboundLocalError
UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError ValueError ZeroDivisionError
Warning BytesWarning DeprecationWarning EncodingWarning FutureWarning ImportWarning
PendingDeprecationWarning ResourceWarning RuntimeWarning SyntaxWarning UnicodeWarning UserWarning
"""
_NEUTRAL = """
string number integer boolean object array null void any unknown undefined bigint char double long byte
Date Promise Record Array Map
"""
KNOWN_TYPES = frozenset(_TYPES.split()) | frozenset(_ERRORS.split()) | frozenset(_NEUTRAL.split())
# What else is said elsewhere.
_MEANT = {
    "text": "str",
    "dictionary": "dict",
    "map": "dict",
    "none": "None",
    "nil": "None",
    "callable": "Callable",
    "function": "Callable",
    "optional": "Optional",
    "union": "Union",
}

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*)
    |(?P<text>[bBuUrR]{0,2}(?:"[^"\\]*"|'[^'\\]*'))
    |(?P<number>-?[0-9][0-9_]*(?:\.[0-9]+)?)
    |(?P<dots>\.\.\.)
    |(?P<mark>[\[\]()<>,|])
    )""",
    re.VERBOSE | re.ASCII,
)


class TypeTextError(ValueError):
    """Why a text is not a type, in a few words."""


@dataclass(slots=True)
class _TypeParser:
    """One pass over a type; `names` are the names in it, without dotted ones."""

    tokens: list[tuple[str, str]]
    depth: int
    names: list[str] = field(default_factory=list)
    at: int = 0

    def union(self) -> None:
        """Read a type, or several with | between them."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TypeTextError(f"it is nested more than {MAX_DEPTH} deep")
        self.one()
        while self.take("|"):
            self.one()
        self.depth -= 1

    def one(self) -> None:
        """Read a type without |."""
        kind, text = self.next()
        if kind == "text":
            inner = _TypeParser(_tokens(text.strip("bBuUrR")[1:-1]), self.depth)
            inner.whole()
            self.names += inner.names
        elif kind == "name":
            if "." not in text:
                self.names.append(text)
            self.parameters(text.rpartition(".")[2])
        elif text == "(":
            self.union()
            self.expect(")")
            self.parameters("")
        else:
            raise TypeTextError(f"`{printable(text, 20)}` is where a type must be")

    def parameters(self, of: str) -> None:
        """Read what may follow a name: as in `list[int]`, `Promise<string>`, `string[][]`."""
        while (close := "]" if self.take("[") else ">" if self.take("<") else None) is not None:
            self.arguments(close, of)

    def arguments(self, close: str, of: str) -> None:
        """Read the contents of brackets, up to the closing one."""
        while not self.take(close):
            self.argument(of)
            if not self.take(","):
                self.expect(close)
                return

    def argument(self, of: str) -> None:
        """Read one type, value, list of types or `...`; only some names take values."""
        kind, text = self.peek()
        has_values = of in {"Literal", "Annotated"}
        is_value = kind in {"text", "number"} or text in {"True", "False"}
        if kind == "dots" or (has_values and is_value):
            self.at += 1
        elif text in {"[", "("}:
            self.at += 1
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise TypeTextError(f"it is nested more than {MAX_DEPTH} deep")
            self.arguments("]" if text == "[" else ")", "")
            self.depth -= 1
        else:
            self.union()

    def whole(self) -> None:
        self.union()
        if self.at < len(self.tokens):
            raise TypeTextError(f"`{printable(self.tokens[self.at][1], 20)}` follows its end")

    def peek(self) -> tuple[str, str]:
        if self.at == len(self.tokens):
            raise TypeTextError("it ends too early")
        return self.tokens[self.at]

    def next(self) -> tuple[str, str]:
        found = self.peek()
        self.at += 1
        return found

    def take(self, mark: str) -> bool:
        """Take a mark if it is next."""
        if self.at == len(self.tokens) or self.tokens[self.at] != ("mark", mark):
            return False
        self.at += 1
        return True

    def expect(self, mark: str) -> None:
        """Take a mark that must be next."""
        if not self.take(mark):
            raise TypeTextError(f"`{printable(self.peek()[1], 20)}` is where `{mark}` must be")


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise TypeTextError(f"`{printable(text[at:].lstrip()[:1], 20)}` cannot be part of a type")
        kind = match.lastgroup or ""
        found.append((kind, match[kind]))
        at = match.end()
    return found


def names_in(text: str) -> list[str]:
    """List the names that a type is made of, without dotted ones.

    Raises:
        TypeTextError: it is not a type.
    """
    reader = _TypeParser(_tokens(text), 0)
    reader.whole()
    return reader.names


def did_you_mean_type(name: str, own: Collection[str]) -> str | None:
    """Guess which known name was meant."""
    if name.lower() in _MEANT:
        return _MEANT[name.lower()]
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, [*own, *sorted(KNOWN_TYPES)], n=1, cutoff=0.75)), None)
