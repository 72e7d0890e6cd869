"""Translate patterns of paths into those of the policy: regular expressions, file types and globs.

The result matches the same paths or is None: no pattern is widened to make it fit. Regular expressions are
searched in the path from the root (pre-commit's `files`); of them literal text, groups of alternatives, `.*`,
`[^/]*` and anchors are understood.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

MOST_PATTERNS = 60
_MOST_EXPRESSION = 2_000
_MOST_NESTING = 10
_ANY, _WITHIN = "\0any", "\0within"
# The one that matches nothing, as pre-commit's default for `exclude`.
NOTHING = "^$"
TYPES = {
    "python": ("*.py", "*.pyi"),
    "pyi": ("*.pyi",),
    "cython": ("*.pyx", "*.pxd"),
    "jupyter": ("*.ipynb",),
    "javascript": ("*.js", "*.mjs", "*.cjs"),
    "jsx": ("*.jsx",),
    "ts": ("*.ts", "*.mts", "*.cts"),
    "tsx": ("*.tsx",),
    "vue": ("*.vue",),
    "svelte": ("*.svelte",),
    "css": ("*.css",),
    "scss": ("*.scss",),
    "less": ("*.less",),
    "html": ("*.html", "*.htm"),
    "json": ("*.json",),
    "json5": ("*.json5",),
    "yaml": ("*.yaml", "*.yml"),
    "toml": ("*.toml",),
    "xml": ("*.xml",),
    "markdown": ("*.md", "*.markdown"),
    "rst": ("*.rst",),
    "shell": ("*.sh", "*.bash"),
    "sh": ("*.sh",),
    "bash": ("*.bash",),
    "go": ("*.go",),
    "rust": ("*.rs",),
    "c": ("*.c", "*.h"),
    "c++": ("*.cc", "*.cpp", "*.cxx", "*.hh", "*.hpp", "*.hxx"),
    "java": ("*.java",),
    "kotlin": ("*.kt", "*.kts"),
    "ruby": ("*.rb",),
    "php": ("*.php",),
    "lua": ("*.lua",),
    "swift": ("*.swift",),
    "proto": ("*.proto",),
    "sql": ("*.sql",),
    "terraform": ("*.tf", "*.tfvars"),
    "dockerfile": ("Dockerfile", "*.Dockerfile"),
}
"""The file types of pre-commit that the end of a name decides."""
EVERY_TYPE = frozenset({"file", "text", "non-executable"})
"""Types that name no language."""
NOT_TEXT = tuple(
    f"*.{ending}"
    for ending in (
        *(
            "png",
            "jpg",
            "jpeg",
            "gif",
            "ico",
            "webp",
            "pdf",
            "zip",
            "gz",
            "xz",
            "woff",
            "woff2",
            "ttf",
            "otf",
        ),
        *("mp3", "mp4", "so", "pyc", "npy", "sqlite"),
    )
)
"""Names of files that are not text, for tools that would change them."""


def patterns_of_types(types: Sequence[str], either: Sequence[str]) -> tuple[str, ...] | None:
    """Translate pre-commit's `types` (all of them) and `types_or` (one of them); empty means every file."""
    named = [each for each in types if each not in EVERY_TYPE]
    if len(named) > 1 or (named and either):
        return None
    wanted = named or ([] if EVERY_TYPE & set(either) else list(either))
    if any(each not in TYPES for each in wanted):
        return None
    return tuple(dict.fromkeys(itertools.chain.from_iterable(TYPES[each] for each in wanted)))


def patterns_of_expression(expression: str) -> tuple[str, ...] | None:
    """Translate a regular expression; empty means every path."""
    if len(expression) > _MOST_EXPRESSION:
        return None
    text = expression.strip()
    if text.startswith("(?x)"):
        text = re.sub(r"(?<!\\)#.*|(?<!\\)\s", "", text[4:])
    if text in {"", ".*", "^.*$", "^.*"}:
        return ()
    try:
        branches = _Expression(text).branches()
        found = [pattern for branch in branches for pattern in _patterns_of_branch(branch)]
    except (_UntranslatableError, IndexError):
        return None
    unique = tuple(dict.fromkeys(found))
    return unique if unique and len(unique) <= MOST_PATTERNS else None


class _UntranslatableError(Exception):
    """A part of an expression that is not understood."""


class _Expression:
    """Reads an expression as alternatives, each a list of literals, anchors, `_ANY` and `_WITHIN`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def branches(self) -> list[list[str]]:
        found = self._alternatives()
        if self._at < len(self._text):
            raise _UntranslatableError
        return found

    def _alternatives(self) -> list[list[str]]:
        self._depth += 1
        if self._depth > _MOST_NESTING:
            raise _UntranslatableError
        found = self._sequence()
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            found += self._sequence()
        self._depth -= 1
        return found

    def _sequence(self) -> list[list[str]]:
        found: list[list[str]] = [[]]
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts = self._part()
            found = [[*before, *part] for before in found for part in parts]
            if len(found) > MOST_PATTERNS:
                raise _UntranslatableError
        return found

    def _part(self) -> list[list[str]]:
        text, at = self._text, self._at
        if text[at] == "(":
            return self._group()
        for written, meaning in ((".*", [_ANY]), ("[^/]*", [_WITHIN]), ("[^/]+", [_WITHIN])):
            if text.startswith(written, at):
                self._at += len(written)
                # `[^/]+` is at least one character, which `*` of a pattern need not be.
                if written.endswith("+") or self._is_repeated():
                    raise _UntranslatableError
                return [meaning]
        return self._literal()

    def _group(self) -> list[list[str]]:
        self._at += 1
        if self._text.startswith("?:", self._at):
            self._at += 2
        elif self._text[self._at] == "?":
            raise _UntranslatableError
        found = self._alternatives()
        if self._text[self._at : self._at + 1] != ")":
            raise _UntranslatableError
        self._at += 1
        return self._optional(found)

    def _literal(self) -> list[list[str]]:
        char = self._text[self._at]
        self._at += 1
        if char in "^$":
            return [[char]]
        if char == "\\":
            char = self._text[self._at]
            self._at += 1
            if char.isalnum():
                raise _UntranslatableError
        elif char in "[]{}*+?.":
            raise _UntranslatableError
        if char in "*?[\\!#\0" or not char.isprintable() or char == " ":
            raise _UntranslatableError
        return self._optional([[char]])

    def _optional(self, found: list[list[str]]) -> list[list[str]]:
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1
            found = [*found, []]
        if self._is_repeated():
            raise _UntranslatableError
        return found

    def _is_repeated(self) -> bool:
        return self._text[self._at : self._at + 1] in {"*", "+", "?", "{"}


def _patterns_of_branch(branch: Sequence[str]) -> Iterator[str]:
    """Write one alternative as patterns: literal text between at most one gap in the middle."""
    parts = list(branch)
    starts = bool(parts) and parts[0] == "^"
    ends = bool(parts) and parts[-1] == "$"
    parts = parts[1 if starts else 0 : len(parts) - 1 if ends else len(parts)]
    if "^" in parts or "$" in parts:
        raise _UntranslatableError
    if not starts or (parts and parts[0] == _ANY):
        starts, parts = False, _without(parts, 0)
    if not ends or (parts and parts[-1] == _ANY):
        ends, parts = False, _without(parts, -1)
    texts = [
        "".join("*" if each == _WITHIN else each for each in group)
        for is_gap, group in itertools.groupby(parts, lambda each: each == _ANY)
        if not is_gap
    ]
    if not texts or len(texts) > 2 or any("**" in text or "//" in text for text in texts):
        raise _UntranslatableError
    first = ("/" if starts else "**/*") + texts[0] if starts or "/" in texts[0] else "*" + texts[0]
    if starts and texts[0].startswith("/"):
        raise _UntranslatableError
    last = "" if ends else "*"
    if len(texts) == 1:
        yield _ended(first, last)
    else:
        yield from _with_gap(first, texts[1], last)


def _without(parts: Sequence[str], place: int) -> list[str]:
    found = list(parts)
    while found and found[place] == _ANY:
        del found[place]
    return found


def _ended(text: str, last: str) -> str:
    """End a pattern at the end of the path, or let anything follow."""
    if last and text.endswith("/"):
        return f"{text}**"
    if text.endswith("/"):
        raise _UntranslatableError
    return text + last


def _with_gap(first: str, second: str, last: str) -> Iterator[str]:
    """Join two texts with anything between them, which may contain slashes."""
    # A pattern without a slash is matched in every folder, and the text after a gap may be in another one.
    if not first.startswith(("/", "**/")):
        first = f"**/{first}"
    if second.startswith("/"):
        if first.endswith("/"):
            raise _UntranslatableError
        yield _ended(f"{first}*{second}", last)
        yield _ended(f"{first}*/**{second}", last)
        return
    if first.endswith("/"):
        yield _ended(f"{first}**/*{second}", last)
        return
    yield _ended(f"{first}*{second}", last)
    yield _ended(f"{first}*/**/*{second}", last)


def both(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...] | None:
    """Give patterns for paths that match one of each; None where that cannot be written."""
    if not first or not second:
        return tuple(first or second)
    if any(not re.fullmatch(r"\*\.[A-Za-z0-9_]+", each) for each in second):
        return None
    endings = tuple(each[1:] for each in second)
    if all(each.endswith(endings) for each in first):
        return tuple(first)
    if all(each.endswith("/**") for each in first):
        return tuple(f"{each}/*{ending}" for each in first for ending in endings)
    return None


def patterns_of_globs(globs: Iterable[str], *, crosses_folders: bool) -> tuple[str, ...] | None:
    """Translate globs with braces; those without a slash match in every folder.

    Args:
        globs: of lint-staged (micromatch) or lefthook.
        crosses_folders: whether `*` also matches slashes, as in lefthook.
    """
    found: list[str] = []
    for glob in globs:
        for each in _expand_braces(glob):
            if each.startswith("!") or re.search(r"[\\(){}\[\]]|\*{3}", each) or len(found) >= MOST_PATTERNS:
                return None
            text = each.removeprefix("./")
            if "/" not in text or text.startswith("**/"):
                found.append(text)
            elif crosses_folders and "*" in text.rpartition("/")[0]:
                return None
            elif crosses_folders and text.rpartition("/")[2] not in {"**", "*"}:
                folder, _, name = text.lstrip("/").rpartition("/")
                found.append(f"/{folder}/**/{name}" if "*" in name else f"/{folder}/{name}")
            else:
                found.append("/" + text.lstrip("/"))
    return tuple(dict.fromkeys(found))


def _expand_braces(glob: str) -> Iterator[str]:
    """Expand `{a,b}`, not nested; at most as many texts as there may be patterns."""
    parts = re.split(r"\{([^{},]*(?:,[^{},]*)+)\}", glob)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    for words in itertools.islice(itertools.product(*choices), MOST_PATTERNS + 1):
        yield "".join(words)
