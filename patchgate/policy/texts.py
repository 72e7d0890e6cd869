"""What a single text of a config must be: a version clause, a pattern, a prefix, an expression, a rule …

Each check gives the text back or raises `TextError` with the next step. They know nothing of TOML or keys;
what a pattern means is decided by `glob` and `patterns`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from patchgate.git.quoting import printable

MAX_PATTERN = 1000
MAX_STAR_RUNS = 4
MAX_PREFIX = 4096
MAX_EXPRESSION = 500
# A repeat of so many is as good as unbounded: `(a{0,200})*b$` takes 0.4 s on 22 characters, twice that on 23.
MANY_REPEATS = 100


class TextError(ValueError):
    """What is wrong with one text; `choices` are the words that it may have been meant to be."""

    def __init__(self, message: str, hint: str | None = None, choices: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.choices = choices


_NUMBER = "[0-9]{1,9}"
_VERSION = (
    rf"({_NUMBER}(?:\.{_NUMBER}){{0,7}})(?:(a|b|rc)({_NUMBER}))?(?:\.post({_NUMBER}))?(?:\.dev({_NUMBER}))?"
)


def version_satisfies(specifier: str, version: str) -> bool:
    """Tell whether a version lies within a list of clauses such as `>=0.1,<2`.

    The clauses are those of PEP 440, without `===` and local versions. A pre-release counts wherever the
    order puts it; as in PEP 440, `<2` leaves out `2rc1` and `>1` leaves out `1.post1`.

    Raises:
        ValueError: the specifier or the version cannot be read.
    """
    found = re.fullmatch(_VERSION + r"(?:\+[A-Za-z0-9.]+)?", version)
    if not found:
        raise ValueError(f"{printable(version, 60)} is not a version")
    return all(_clause_holds(clause, found.groups()) for clause in _clauses(specifier))


def _clauses(specifier: str) -> list[re.Match[str]]:
    clauses: list[re.Match[str]] = []
    for text in specifier.split(","):
        clause = re.fullmatch(rf"\s*(~=|==|!=|<=|>=|<|>)\s*{_VERSION}(\.\*)?\s*", text)
        if (
            clause is None
            or (clause[7] and (clause[1] not in {"==", "!="} or any(clause.groups()[2:6])))
            or (clause[1] == "~=" and "." not in clause[2])
        ):
            raise TextError(f'"{printable(text, 60)}" is not a version clause', 'write it like ">=0.1,<2"')
        clauses.append(clause)
    return clauses


def _clause_holds(clause: re.Match[str], version: Sequence[str | None]) -> bool:
    sign, wanted = clause[1], clause.groups()[1:6]
    here, there = _order(version), _order(wanted)
    if sign in {"==", "!="}:
        equal = _starts_with(version[0], wanted[0]) if clause[7] else here == there
        return equal is (sign == "==")
    if sign == "~=":
        return here >= there and _starts_with(version[0], clause[2].rpartition(".")[0])
    if sign == ">":
        is_its_post = here[:4] == there[:4] and version[3] and not wanted[3] and not wanted[4]
        return here > there and not is_its_post
    if sign == "<":
        is_early = wanted[1] or wanted[4]
        return here < (there if is_early else _order((*wanted[:4], "0")))
    return here >= there if sign == ">=" else here <= there


def _order(version: Sequence[str | None]) -> tuple[tuple[int, ...], int, str, int, int, bool, int]:
    """Give the key by which PEP 440 orders versions: dev before a, b, rc before the release before post."""
    release, phase, number, post, dev = version
    numbers = tuple(int(part) for part in re.sub(r"(?:\.0+)+$", "", release or "").split("."))
    is_early = -1 if dev and not phase and not post else 0 if phase else 1
    after = int(post) if post else -1
    return numbers, is_early, phase or "", int(number or 0), after, dev is None, int(dev or 0)


def _starts_with(release: str | None, prefix: str | None) -> bool:
    parts, wanted = ([int(part) for part in (text or "").split(".")] for text in (release, prefix))
    return (parts + [0] * len(wanted))[: len(wanted)] == wanted


def check_specifier(text: str) -> str:
    """Give a version specifier back.

    Raises:
        ValueError: it cannot be read.
    """
    _clauses(text)
    return text


def check_pattern(text: str) -> str:
    """Give a gitignore pattern back.

    Source: gitignore(5). What a pattern means, and whether it could ever match, `glob` decides.

    Raises:
        ValueError: the pattern is invalid, too costly, or could never match anything.
    """
    from patchgate.policy.glob import PatternError, parse

    if len(text) > MAX_PATTERN:
        raise TextError(f"the pattern is longer than {MAX_PATTERN} characters", "name a folder above it")
    if "\0" in text or "\n" in text:
        raise TextError("a pattern cannot hold a NUL or a line end", "write each as its own list element")
    if not {".", ".."}.isdisjoint(text.rstrip(" ").split("/")):
        raise TextError('a pattern with "." or ".." as a component matches nothing', "write the plain path")
    if sum(piece[0] == "*" for piece in re.findall(r"\\.|\*+", text)) > MAX_STAR_RUNS:
        raise TextError(f"the pattern has more than {MAX_STAR_RUNS} runs of *", "name a folder above it")
    try:
        parse(text, folded=True)
    except PatternError as error:
        message, _, hint = str(error).partition("; ")
        raise TextError(message, hint or None) from None
    return text


def check_prefix(text: str) -> str:
    """Give a literal path back: relative to the root, of a file or a folder (with or without a last `/`).

    Raises:
        ValueError: no path in a repository could begin like this.
    """
    components = text.removesuffix("/").split("/")
    if not text:
        raise TextError("an empty path names nothing", 'for the whole repository, write "."')
    if text[0] == "/":
        raise TextError("paths are relative to the repository's root", "remove the leading /")
    if not {"", ".."}.isdisjoint(components):
        raise TextError('a path cannot hold "//" or ".."', "write the plain path from the root")
    if "\0" in text or "\n" in text or len(text) > MAX_PREFIX:
        raise TextError(
            f"a path of over {MAX_PREFIX} characters, or with a NUL or a line end", "name a folder above it"
        )
    if "*" in text:
        raise TextError(
            "this takes literal paths, and `*` is none", "name the folder alone; `deny` takes patterns"
        )
    return text


def check_suffix(text: str) -> str:
    """Give the literal end of a file's name back.

    Raises:
        ValueError: no file's name, or every one, ends like this.
    """
    if not text:
        raise TextError("an empty suffix ends every name", "remove it")
    if len(text) > 255 or not {"/", "\0", "\n", "*"}.isdisjoint(text):
        raise TextError("a suffix is the literal end of a file's name", 'write it like ".pem"')
    return text


def check_expression(text: str) -> str:
    """Give a regular expression for bytes back.

    Refused are back-references and an unbounded repeat within another: both can take exponential time.

    Raises:
        ValueError: it does not compile, or could take too long.
    """
    if not text or len(text) > MAX_EXPRESSION:
        raise TextError(
            f"an expression has 1 to {MAX_EXPRESSION} characters", "an empty one would match every line"
        )
    from importlib import import_module

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            flags = re.compile(text.encode()).flags
            unread = [(import_module("re._parser").parse(text.encode()), False)]
    except (re.error, OverflowError, RecursionError, Warning) as error:
        reason = printable(str(error), 200)
        raise TextError(
            f"not a regular expression: {reason}", "a \\ before a character makes it literal"
        ) from None
    while unread:
        part, is_repeated = unread.pop()
        for operation, value in part:
            name = str(operation)
            flags |= value[1] if name == "SUBPATTERN" else 0
            if name.startswith("GROUPREF"):
                raise TextError("a back-reference can take exponential time", "write the text out")
            repeats = name.endswith("_REPEAT") and int(value[1]) >= MANY_REPEATS
            if repeats and is_repeated and value[0] != value[1]:
                raise TextError(
                    "an unbounded repeat within another takes exponential time", "repeat only one of them"
                )
            unread.extend((inner, is_repeated or repeats) for inner in _inner_parts(value, type(part)))
    if flags & re.LOCALE:
        raise TextError("the flag L makes an expression depend on the machine", "leave it out")
    return text


def _inner_parts(value: object, kind: type) -> Iterator[Any]:
    """Find the parsed parts within the argument of an operation, which nests them in tuples and lists."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, tuple | list):
        for element in value:
            yield from _inner_parts(element, kind)


def check_rule(text: str) -> str:
    """Give the id of a rule back whose level may be set.

    Raises:
        ValueError: there is no such rule, or it is an invariant.
    """
    from patchgate.report.rules import RULES

    if text not in RULES:
        raise TextError(f"unknown rule `{printable(text, 60)}`", choices=tuple(RULES))
    if RULES[text].invariant:
        raise TextError(f"`{text}` is an invariant, and invariants cannot be changed", "remove this line")
    return text
