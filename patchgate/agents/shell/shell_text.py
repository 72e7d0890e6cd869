"""Read a shell command: split it into simple commands, each with its words, assignments and redirections.

Follows "Token Recognition" and "Shell Grammar" of POSIX (XCU 2.3, 2.10) and the quoting of bash. What only a
running shell knows (variables, the output of a command) becomes `UNKNOWN` in a word; the commands inside
`$(...)`, backquotes and subshells are read as commands too. Loops and conditions are not interpreted.
"""

from __future__ import annotations

from patchgate.values import dataclass, field

UNKNOWN = "\0"
"""Stands in a word for text that only a running shell knows."""
MOST_CHARACTERS = 100_000
MOST_DEPTH = 20
_MOST_BRACES = 1000
_MOST_ARITHMETIC = 2000

_BLANKS = " \t"
_SEPARATORS = ("&&", "||", ";;&", ";;", ";&", "|&", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS = ("&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", ">", "<")
_HEREDOCS = frozenset({"<<", "<<-"})
OPENING = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_NAME = _NAME_START | frozenset("0123456789")
_PARAMETERS = frozenset("@*#?-$!0123456789")


@dataclass(frozen=True, slots=True)
class ShellRedirection:
    """One redirection: its operator without the descriptor (`>`, `>>`, `<<`), and its target."""

    operator: str
    target: str


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A command with its words (the first is its name), the assignments before it, and redirections."""

    words: tuple[str, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()
    redirections: tuple[ShellRedirection, ...] = ()


@dataclass(frozen=True, slots=True)
class ShellText:
    """The simple commands of a text in the order in which they begin, and why the rest was not read."""

    commands: tuple[SimpleCommand, ...]
    unread: tuple[str, ...] = ()


class _UnreadableError(Exception):
    """The text ends inside a quote or an expansion, or is nested too deeply."""


def read_shell(text: str, depth: int = 0) -> ShellText:
    """Split a shell command into its simple commands."""
    if len(text) > MOST_CHARACTERS:
        return ShellText((), (f"it is longer than {MOST_CHARACTERS:,} characters",))
    reader = _ShellReader(text, depth)
    try:
        reader.read_commands("")
    except _UnreadableError as error:
        return ShellText(tuple(reader.commands), (*reader.unread, str(error)))
    return ShellText(tuple(reader.commands), tuple(reader.unread))


@dataclass(slots=True)
class _Draft:
    """A simple command while it is read."""

    words: list[str] = field(default_factory=list)
    assignments: list[tuple[str, str]] = field(default_factory=list)
    redirections: list[ShellRedirection] = field(default_factory=list)

    def add(self, word: str, name: str) -> None:
        """Add a word, or the assignment to `name` that it is."""
        if not self.words and name:
            self.assignments.append((name, word[len(name) :].removeprefix("+").removeprefix("=")))
        elif self.words or word not in OPENING:
            self.words.append(word)

    def finished(self) -> SimpleCommand | None:
        if not (self.words or self.assignments or self.redirections):
            return None
        return SimpleCommand(tuple(self.words), tuple(self.assignments), tuple(self.redirections))


class _ShellReader:
    """Reads one text from its start; commands inside of expansions are read by further readers."""

    def __init__(self, text: str, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise _UnreadableError("its commands are nested too deeply")
        self.text, self.at, self.depth = text, 0, depth
        self.commands: list[SimpleCommand] = []
        self.unread: list[str] = []
        self._delimiters: list[tuple[str, bool]] = []

    def read_commands(self, until: str) -> None:
        """Read commands up to the end, or up to the `)` that ends an expansion."""
        draft, open_groups = _Draft(), 0
        while True:
            self._skip_blanks()
            if self.at >= len(self.text):
                self._finish(draft)
                if until:
                    raise _UnreadableError("it ends inside of an expansion")
                return
            if self._arithmetic(""):
                continue
            separator = self._starting(_SEPARATORS)
            if separator and self._starting(("&>",)) is None:
                if separator == until and open_groups == 0:
                    self._finish(draft)
                    self.at += 1
                    return
                open_groups = max(0, open_groups + {"(": 1, ")": -1}.get(separator, 0))
                self.at += len(separator)
                self._finish(draft)
                draft = _Draft()
                if separator == "\n":
                    self._skip_heredocs()
            elif not self._take_redirection(draft):
                word, name = self._word()
                draft.add(word, name)

    def _finish(self, draft: _Draft) -> None:
        command = draft.finished()
        if command is not None:
            self.commands.append(command)

    def _starting(self, words: tuple[str, ...]) -> str | None:
        """Return the first of some operators that is next."""
        return next((each for each in words if self.text.startswith(each, self.at)), None)

    def _skip_blanks(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in _BLANKS:
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _take_redirection(self, draft: _Draft) -> bool:
        """Read a redirection with its target, if one is next."""
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isdigit():
            self.at += 1
        operator = self._starting(_REDIRECTIONS)
        if operator is None or self._starting(("<(", ">(")):
            self.at = start
            return False
        self.at += len(operator)
        self._skip_blanks()
        before = self.at
        target, _ = self._word()
        if operator in _HEREDOCS:
            is_literal = any(mark in self.text[before : self.at] for mark in "'\"\\")
            if UNKNOWN in target:
                # The shell expands nothing in it.
                target = self.text[before : self.at]
                self.unread.append("the end of a here-document has an expansion")
            self._delimiters.append((target, is_literal))
        draft.redirections.append(ShellRedirection(operator, target))
        return True

    def _skip_heredocs(self) -> None:
        """Skip the texts of here-documents, which are input of a command; their expansions are commands."""
        for delimiter, is_literal in self._delimiters:
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : len(self.text) if end < 0 else end]
                self.at = len(self.text) if end < 0 else end + 1
                if line.lstrip("\t") == delimiter:
                    break
                lines.append(line)
            if not is_literal:
                self._read_quoted("\n".join(lines))
        self._delimiters.clear()

    def _read_quoted(self, text: str) -> None:
        """Read the commands inside of a text that is expanded as in double quotes."""
        inner = _ShellReader(text, self.depth + 1)
        try:
            while inner.at < len(text):
                inner.part_in_quotes()
        except _UnreadableError:
            inner.unread.append("a here-document has an expansion that does not end")
        self._join(inner)

    def _join(self, inner: _ShellReader) -> None:
        self.commands += inner.commands
        self.unread += inner.unread

    def _word(self) -> tuple[str, str]:
        """Read a word; return it without its quotes, and the name that it assigns to, if it does."""
        parts: list[str] = []
        name, is_start = "", True
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter in _BLANKS or letter == "\n" or letter in ";&|()":
                break
            if letter in "<>" and not self.text.startswith(("<(", ">("), self.at):
                break
            if is_start:
                is_start = False
                name = self._assigned_name()
            parts.append(self._part(letter))
        return "".join(parts), name

    def _assigned_name(self) -> str:
        """Return NAME where the text goes on with `NAME=` or `NAME+=`; empty where it does not."""
        end = self.at
        while end < len(self.text) and self.text[end] in _NAME:
            end += 1
        is_name = end > self.at and self.text[self.at] in _NAME_START
        return self.text[self.at : end] if is_name and self.text.startswith(("=", "+="), end) else ""

    def _part(self, letter: str) -> str:
        """Read one part of a word: a character, a quoted text, or an expansion."""
        if letter == "\\":
            self.at += 2
            following = self.text[self.at - 1 : self.at]
            return "" if following == "\n" else following
        if letter == "'":
            return self._until_quote()
        if letter == '"':
            return self._double_quoted()
        if letter in "$`":
            return self._expansion()
        if letter in "<>":
            self.at += 1
            self._substitution()
            return UNKNOWN
        if letter == "{" and self._skip_braces():
            return UNKNOWN
        self.at += 1
        return letter

    def _until_quote(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise _UnreadableError("it ends inside of a quote")
        found, self.at = self.text[self.at + 1 : end], end + 1
        return found

    def _double_quoted(self) -> str:
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            if self.text[self.at] == '"':
                self.at += 1
                return "".join(parts)
            parts.append(self.part_in_quotes())
        raise _UnreadableError("it ends inside of a quote")

    def part_in_quotes(self) -> str:
        """Read one part of a text in double quotes."""
        letter = self.text[self.at]
        if letter == "\\":
            self.at += 2
            following = self.text[self.at - 1 : self.at]
            if following == "\n":
                return ""
            return following if following and following in '$`"\\' else letter + following
        if letter in "$`":
            return self._expansion()
        self.at += 1
        return letter

    def _skip_braces(self) -> bool:
        """Skip a brace expansion (`{a,b}`, `{1..9}`) of bash; return false where it is none."""
        end = self.text.find("}", self.at, self.at + _MOST_BRACES)
        inside = self.text[self.at + 1 : max(end, 0)]
        if (
            end < 0
            or not ("," in inside or ".." in inside)
            or any(each in inside for each in " \t\n;&|'\"$`")
        ):
            return False
        self.at = end + 1
        return True

    def _expansion(self) -> str:
        """Read an expansion, whose value only a shell knows."""
        if self.text[self.at] == "`":
            self._backquoted()
        elif self._arithmetic("$"):
            pass
        elif self.text.startswith("$(", self.at):
            self.at += 1
            self._substitution()
        elif self.text.startswith("${", self.at):
            self._skip_parameter()
        elif self.text.startswith("$'", self.at):
            return self._ansi_quoted()
        elif self.text.startswith('$"', self.at):
            self.at += 1
            return self._double_quoted()
        else:
            return self._plain_parameter()
        return UNKNOWN

    def _arithmetic(self, mark: str) -> bool:
        """Skip `((...))` or `$((...))`, whose expansions are read; false where it is something else."""
        if not self.text.startswith(mark + "((", self.at):
            return False
        start = self.at + len(mark) + 2
        at, is_open, quote = start, 2, ""
        while is_open:
            if at >= len(self.text) or at - start > _MOST_ARITHMETIC:
                raise _UnreadableError("it has brackets that do not end, or only far away")
            letter = self.text[at]
            if letter == "\\":
                at += 1
            elif quote:
                quote = "" if letter == quote else quote
            elif letter in "'\"":
                quote = letter
            else:
                is_open += {"(": 1, ")": -1}.get(letter, 0)
                if is_open == 1 and self.text[at + 1 : at + 2] != ")":
                    return False
            at += 1
        self._read_quoted(self.text[start : at - 2])
        self.at = at
        return True

    def _plain_parameter(self) -> str:
        self.at += 1
        if self.text[self.at : self.at + 1] in _PARAMETERS:
            self.at += 1
            return UNKNOWN
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _NAME:
            self.at += 1
        return UNKNOWN if self.at > start else "$"

    def _ansi_quoted(self) -> str:
        r"""Read `$'...'`; one with an escape (`$'\x6e'`) is not decoded."""
        self.at += 2
        start = self.at
        while self.at < len(self.text) and self.text[self.at] != "'":
            self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            raise _UnreadableError("it ends inside of a quote")
        found = self.text[start : self.at]
        self.at += 1
        return UNKNOWN if "\\" in found else found

    def _substitution(self) -> None:
        """Read the commands of `(...)`; the position is at the bracket."""
        inner = _ShellReader(self.text, self.depth + 1)
        inner.at = self.at + 1
        try:
            inner.read_commands(")")
        finally:
            self._join(inner)
        self.at = inner.at

    def _backquoted(self) -> None:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise _UnreadableError("it ends inside of backquotes")
        inside = self.text[self.at + 1 : end]
        for escaped in ("\\`", "\\$", "\\\\"):
            inside = inside.replace(escaped, escaped[1])
        found = read_shell(inside, self.depth + 1) if self.depth < MOST_DEPTH else ShellText(())
        self.commands += found.commands
        self.unread += found.unread
        self.at = end + 1

    def _skip_parameter(self) -> None:
        """Skip `${...}`; the commands inside are read."""
        self.at += 2
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise _UnreadableError("its expansions are nested too deeply")
        while self.at < len(self.text) and self.text[self.at] != "}":
            letter = self.text[self.at]
            if letter in "'\"":
                self._part(letter)
            else:
                self.part_in_quotes()
        self._skip_to("}")
        self.depth -= 1

    def _skip_to(self, end: str) -> None:
        found = self.text.find(end, self.at)
        if found < 0:
            raise _UnreadableError("it ends inside of an expansion")
        self.at = found + len(end)
