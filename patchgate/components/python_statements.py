"""What one Python statement means for a test: assertions, skips, conditions, bound names.

Decided by the statement's tokens alone: names are not resolved. `python_tests` handles the enclosing blocks.
"""

from __future__ import annotations

import re
from itertools import pairwise

from patchgate.check.python_tokens import LETTERS, deeper, split

_ASSERTING = frozenset({"raises", "warns", "fail", "deprecated_call"})
_SKIPPING = frozenset(
    {"skip", "skipif", "skipIf", "skipUnless", "skipTest", "SkipTest", "xfail", "expectedFailure"}
    | {"importorskip"}
)
_ZERO = re.compile(r"0[xXoObB]?[0_.]*(?:[eEjJ].*)?", re.DOTALL)
_EMPTY = frozenset({("[", "]"), ("(", ")"), ("{", "}")})


def assertions(tokens: list[str]) -> int:
    """Count assertions: `assert` statements and calls, without those that are always true."""
    calls = sum(
        after == "(" and (name in _ASSERTING or (name.startswith("assert") and name != "assert"))
        for before, name, after in zip(("", *tokens), tokens, tokens[1:], strict=False)
        if before not in {"def", "class"}
    )
    if tokens[0] == "assert":
        calls += truth(split(tokens[1:], ",")[0]) is not True
    return calls


def truth(condition: list[str]) -> bool | None:
    """Return whether a condition is always true or always false; None if it depends."""
    inner = _unwrapped(condition)
    if _is_tuple(condition, inner):
        return bool(inner)
    parts = [_conjunction(part) for part in split(inner, "or")]
    if True in parts:
        return True
    return None if None in parts else False


def calls_skip(tokens: list[str]) -> bool:
    """Return whether a statement skips whenever it runs: `pytest.skip(…)`, `raise unittest.SkipTest`."""
    if tokens[0] == "return":
        tokens = tokens[1:]
    path = _path(tokens[1:] if tokens[:1] == ["raise"] else tokens)
    if _SKIPPING.isdisjoint(path):
        return False
    if tokens[0] == "raise":
        return True
    is_known = len(path) == 1 or path[0] in {"pytest", "unittest"} or path[-1] == "skipTest"
    return is_known and tokens[2 * len(path) - 1 : 2 * len(path)] == ["("]


def skips_all(tokens: list[str]) -> bool:
    """Return whether a statement skips its whole file or class: `pytestmark = pytest.mark.skip`."""
    if tokens[0] == "__test__":
        return tokens[-1] in {"False", "0", "None"}
    return calls_skip(tokens) or (
        tokens[0] == "pytestmark" and (not _SKIPPING.isdisjoint(tokens) or has_no_case(tokens))
    )


def mark_skips(mark: list[str]) -> bool:
    """Return whether a decorator skips, expects a failure, or has no case to run."""
    marks = any(name in _SKIPPING and before in {"@", "."} for before, name in pairwise(mark))
    return marks or has_no_case(mark)


def has_no_case(tokens: list[str]) -> bool:
    """Return whether a `parametrize` in them has an empty list of values."""
    within = [False]
    for index, token in enumerate(tokens):
        if token in {")", "]", "}"}:
            if len(within) > 1:
                within.pop()
        elif token in {"(", "[", "{"}:
            before, after = tokens[max(0, index - 2) : index], tokens[index + 1 : index + 3]
            is_argument = before[-1:] == [","] or before == ["argvalues", "="]
            if within[-1] and is_argument and (token, *after[:1]) in _EMPTY and after[-1] in {",", ")"}:
                return True
            within.append(token == "(" and before[-1:] == ["parametrize"])
    return False


def is_fixture(mark: list[str]) -> bool:
    """Return whether a decorator makes a fixture: `@pytest.fixture(…)`."""
    return _path(mark[1:])[-1:] == ["fixture"]


def is_own(mark: list[str]) -> bool:
    """Return whether a decorator is not one of pytest's marks."""
    return mark[1:2] not in (["pytest"], ["mark"])


def names_taken(tokens: list[str]) -> list[list[str]]:
    """Return what a statement binds or deletes, as parts of dotted names: `test_x`, `TestA.test_x`."""
    if tokens[0] == "del":
        end = len(tokens)
    else:
        depth = end = 0
        for index, token in enumerate(tokens):
            depth = deeper(depth, token)
            if token == "=" and depth == 0 and tokens[index - 1] not in {"=", "<", ">", "!"}:
                if tokens[index + 1 : index + 2] == ["="]:
                    break
                end = index
    taken: list[list[str]] = []
    depth, before = 0, ""
    for token in tokens[:end]:
        depth = deeper(depth, token)
        if token == ":" and depth == 0:
            break
        if depth == 0 and token.isidentifier():
            if before == "." and taken:
                taken[-1].append(token)
            else:
                taken.append([token])
        before = token
    return taken


def bases(head: list[str]) -> list[list[str]]:
    """Return the base classes of a `class` statement, without `object`."""
    if "(" not in head:
        return []
    inside = head[head.index("(") + 1 : -2]
    return [base for base in split(inside, ",") if base and "=" not in base and base != ["object"]]


def _path(tokens: list[str]) -> list[str]:
    """Return the parts of the dotted name that tokens begin with."""
    path: list[str] = []
    for index, token in enumerate(tokens):
        if index % 2:
            if token != ".":
                break
        elif token.isidentifier():
            path.append(token)
        else:
            break
    return path


def _conjunction(tokens: list[str]) -> bool | None:
    parts = [_literal(part) for part in split(tokens, "and")]
    if False in parts:
        return False
    return None if None in parts else True


def _literal(tokens: list[str]) -> bool | None:
    """Return the truth of a literal, of its negation, of a tuple, or of a literal compared with itself."""
    is_negated = False
    start = 0
    while start < len(tokens) and tokens[start] == "not":
        is_negated = not is_negated
        start += 1
    found = _plain(tokens[start:])
    return found if found is None else found is not is_negated


def _plain(tokens: list[str]) -> bool | None:
    inner = _unwrapped(tokens)
    if _is_tuple(tokens, inner):
        return bool(inner)
    if inner and all(_is_string(token) for token in inner):
        return any(token.lstrip(LETTERS).strip("\"'") for token in inner)
    if len(inner) == 4 and inner[1:3] == ["=", "="] and inner[0] == inner[3]:
        return None if _plain_token(inner[0]) is None else True
    return _plain_token(inner[0]) if len(inner) == 1 else None


def _plain_token(token: str) -> bool | None:
    if token in {"True", "False", "None"}:
        return token == "True"
    if token[0].isdecimal():
        return _ZERO.fullmatch(token) is None
    return True if _is_string(token) else None


def _is_string(token: str) -> bool:
    return token[-1] in {'"', "'"}


def _is_tuple(tokens: list[str], inner: list[str]) -> bool:
    return len(inner) < len(tokens) and (not inner or len(split(inner, ",")) > 1)


def _unwrapped(tokens: list[str]) -> list[str]:
    """Remove the parentheses around the whole expression."""
    start, end = 0, len(tokens)
    while start < end and tokens[start] == "(":
        start += 1
    while end > start and tokens[end - 1] == ")":
        end -= 1
    lowest = depth = start
    for token in tokens[start:end]:
        depth = deeper(depth, token)
        lowest = min(lowest, depth)
    around = min(lowest, len(tokens) - end)
    return tokens[around : len(tokens) - around]
