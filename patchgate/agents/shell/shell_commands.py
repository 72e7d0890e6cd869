"""The simple commands of a shell: words, assignments, redirections, and what is known of their input.

`shell_text` makes them. What only a running shell knows is `UNKNOWN` in a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchgate.agents.shell.shell_words import SPLIT, UNKNOWN, WordPart, words_of
from patchgate.values import dataclass, field

OPENING = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
HEREDOCS = frozenset({"<<", "<<-"})
_MOST_PIPES = 20


@dataclass(frozen=True, slots=True)
class ShellRedirection:
    """One redirection: its operator without the descriptor (`>`, `>>`, `<<`), and its target.

    `text` is that of a here-document, one entry if there is one.
    """

    operator: str
    target: str
    text: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A command with its words (the first is its name), the assignments before it, and redirections.

    `source` is the command whose output is its input; `is_piped`: it has one, which may be a group.
    """

    words: tuple[str, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    redirections: tuple[ShellRedirection, ...] = ()
    source: SimpleCommand | None = None
    is_piped: bool = False

    @property
    def is_interactive(self) -> bool:
        """Whether its input is that of the whole text: a terminal, or nothing."""
        return not self.is_piped and not any(each.operator.startswith("<") for each in self.redirections)

    def input_text(self, depth: int = 0) -> str | None:
        """Return what it reads from its standard input; None if that is not written out."""
        for redirection in reversed(self.redirections):
            if redirection.operator in HEREDOCS:
                return redirection.text[0] if redirection.text else None
            if redirection.operator == "<<<":
                return redirection.target + "\n"
            if redirection.operator.startswith("<"):
                return None
        return None if self.source is None or depth > _MOST_PIPES else self.source.output_text(depth + 1)

    def output_text(self, depth: int = 0) -> str | None:
        """Return what it prints: the words of `echo`, each word of `printf` in a line, the input of `cat`."""
        name, rest = self.words[:1], self.words[1:]
        if any(each.operator.startswith((">", "&>")) for each in self.redirections):
            return None
        if name == ("cat",) and set(rest) <= {"-"}:
            return self.input_text(depth)
        if name == ("echo",):
            first = next((at for at, each in enumerate(rest) if each not in {"-n", "-e", "-E"}), len(rest))
            text = " ".join(rest[first:])
        elif name == ("printf",):
            text = "\n".join(rest).replace("%s", "").replace("\\n", "\n")
        else:
            return None
        return None if "\\" in text else text + "\n"


@dataclass(slots=True)
class CommandDraft:
    """A simple command while it is read."""

    words: list[str] = field(default_factory=list)
    assignments: list[tuple[str, str]] = field(default_factory=list)
    redirections: list[ShellRedirection] = field(default_factory=list)
    source: SimpleCommand | None = None
    is_piped: bool = False

    def add(self, parts: Sequence[WordPart], name: str) -> None:
        """Add a word, or the assignment to `name` that it is."""
        if not self.words and name:
            word = as_one(parts)
            self.assignments.append((name, word[len(name) :].removeprefix("+").removeprefix("=")))
            return
        for word in words_of(parts):
            if self.words or word not in OPENING:
                self.words.append(word)

    def finished(self) -> SimpleCommand | None:
        if not (self.words or self.assignments or self.redirections):
            return None
        return SimpleCommand(
            tuple(self.words),
            tuple(self.assignments),
            tuple(self.redirections),
            self.source,
            self.is_piped,
        )


def as_one(parts: Sequence[WordPart]) -> str:
    """Join the parts of a word where a shell does not split it."""
    return "".join(each if isinstance(each, str) else UNKNOWN for each in parts).replace(SPLIT, " ")
