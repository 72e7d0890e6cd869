"""Read a shell command: split it into simple commands, each with its words, assignments and redirections.

Follows "Token Recognition" and "Shell Grammar" of POSIX (XCU 2.3, 2.10) and the quoting of bash. What only a
running shell knows becomes `UNKNOWN` in a word; the commands inside `$(...)`, backquotes and subshells are
read as commands too. Loops and conditions are not interpreted.
"""

from __future__ import annotations

from patchgate.agents.shell.shell_commands import (
    HEREDOCS,
    CommandDraft,
    ShellRedirection,
    SimpleCommand,
    as_one,
)
from patchgate.agents.shell.shell_words import (
    SPLIT,
    UNKNOWN,
    KnownVariables,
    WordPart,
    decode_ansi,
    printed_by,
)
from patchgate.values import dataclass

MOST_CHARACTERS = 100_000
MOST_DEPTH = 20
_TOO_DEEP = "its commands are nested too deeply"
_MOST_BRACES = 1000
_MOST_ARITHMETIC = 2000

_BLANKS = " \t"
_SEPARATORS = ("&&", "||", ";;&", ";;", ";&", "|&", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS = ("&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", ">", "<")
_NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_NAME = _NAME_START | frozenset("0123456789")
_PARAMETERS = frozenset("@*#?-$!0123456789")
_DECLARING = frozenset({"declare", "export", "local", "readonly", "typeset"})
_SETTING = frozenset({"for", "getopts", "mapfile", "printf", "read", "readarray", "select", "unset"})


@dataclass(frozen=True, slots=True)
class ShellText:
    """The simple commands of a text in the order in which they begin, and why the rest was not read."""

    commands: tuple[SimpleCommand, ...]
    unread: tuple[str, ...] = ()


class _UnreadableError(Exception):
    """The text ends inside a quote or an expansion, or is nested too deeply."""


def read_shell(text: str, depth: int = 0, known: KnownVariables | None = None) -> ShellText:
    """Split a shell command into its simple commands.

    Args:
        text: the command.
        depth: how deeply it is nested in others.
        known: values of variables, to which those are added that the text itself sets; with it, the words are
            what a shell makes of them if nothing else sets one. None: no variable is known.
    """
    if len(text) > MOST_CHARACTERS:
        return ShellText((), (f"it is longer than {MOST_CHARACTERS:,} characters",))
    if depth > MOST_DEPTH:
        return ShellText((), (_TOO_DEEP,))
    reader = _ShellReader(text, depth, known)
    try:
        reader.read_commands("")
    except _UnreadableError as error:
        return ShellText(tuple(reader.commands), (*reader.unread, str(error)))
    return ShellText(tuple(reader.commands), tuple(reader.unread))


class _ShellReader:
    """Reads one text from its start; commands inside of expansions are read by further readers."""

    def __init__(self, text: str, depth: int, known: KnownVariables | None) -> None:
        if depth > MOST_DEPTH:
            raise _UnreadableError(_TOO_DEEP)
        self.text, self.at, self.depth, self.known = text, 0, depth, known
        self.commands: list[SimpleCommand] = []
        self.unread: list[str] = []
        self._delimiters: list[tuple[ShellRedirection, bool]] = []

    def read_commands(self, until: str) -> None:
        """Read commands up to the end, or up to the `)` that ends an expansion."""
        draft, open_groups = CommandDraft(), 0
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
                before = self._finish(draft)
                is_piped = separator in {"|", "|&"}
                draft = CommandDraft(source=before if is_piped else None, is_piped=is_piped)
                if separator == "\n":
                    self._skip_heredocs()
            elif not self._take_redirection(draft):
                draft.add(*self._word())

    def _finish(self, draft: CommandDraft) -> SimpleCommand | None:
        command = draft.finished()
        if command is not None:
            self.commands.append(command)
            self._learn(command)
        return command

    def _learn(self, command: SimpleCommand) -> None:
        """Note the variables that a command sets, and forget those whose value it hides."""
        name, rest = command.words[:1], command.words[1:]
        if self.known is None:
            return
        pairs = list(command.assignments) if not name else []
        if name and name[0] in _DECLARING:
            pairs = [(each.partition("=")[0], each.partition("=")[2]) for each in rest if "=" in each]
        elif name == ("for",) and rest[1:2] == ("in",):
            # One of its values: that which is most likely to matter.
            chosen = sorted(rest[2:], key=lambda each: not each.startswith(("-", ".")))[:1]
            pairs = [(rest[0], each) for each in chosen or [UNKNOWN]]
        elif name and name[0] in _SETTING:
            pairs = [(each, UNKNOWN) for each in rest]
        for variable, value in pairs:
            if UNKNOWN in value:
                self.known.values.pop(variable, None)
            else:
                self.known.values[variable] = value

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

    def _take_redirection(self, draft: CommandDraft) -> bool:
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
        target = as_one(self._word()[0])
        made = ShellRedirection(operator, target)
        if operator in HEREDOCS:
            is_literal = any(mark in self.text[before : self.at] for mark in "'\"\\")
            if UNKNOWN in target:
                # The shell expands nothing in it.
                made = ShellRedirection(operator, self.text[before : self.at])
                self.unread.append("the end of a here-document has an expansion")
            self._delimiters.append((made, is_literal))
        draft.redirections.append(made)
        return True

    def _skip_heredocs(self) -> None:
        """Skip the texts of here-documents, which are input of a command; their expansions are commands."""
        for redirection, is_literal in self._delimiters:
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : len(self.text) if end < 0 else end]
                self.at = len(self.text) if end < 0 else end + 1
                if redirection.operator == "<<-":
                    line = line.lstrip("\t")
                if line == redirection.target:
                    break
                lines.append(line)
            text = "".join(f"{line}\n" for line in lines)
            redirection.text.append(text if is_literal else self._read_quoted(text))
        self._delimiters.clear()

    def _read_quoted(self, text: str) -> str:
        """Read the commands inside of a text that is expanded as in double quotes; return what it becomes."""
        inner = _ShellReader(text, self.depth + 1, self.known)
        parts: list[str] = []
        try:
            while inner.at < len(text):
                # A double quote is no special character here.
                parts.append('\\"' if text.startswith('\\"', inner.at) else "")
                parts.append(inner.part_in_quotes().removeprefix('"' if parts[-1] else ""))
        except _UnreadableError:
            inner.unread.append("a here-document has an expansion that does not end")
            parts.append(UNKNOWN)
        self._join(inner)
        return "".join(parts)

    def _join(self, inner: _ShellReader) -> None:
        self.commands += inner.commands
        self.unread += inner.unread

    def _word(self) -> tuple[list[WordPart], str]:
        """Read a word; return its parts without quotes, and the name that it assigns to, if it does."""
        parts: list[WordPart] = []
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
        return parts, name

    def _assigned_name(self) -> str:
        """Return NAME where the text goes on with `NAME=` or `NAME+=`; empty where it does not."""
        end = self.at
        while end < len(self.text) and self.text[end] in _NAME:
            end += 1
        is_name = end > self.at and self.text[self.at] in _NAME_START
        return self.text[self.at : end] if is_name and self.text.startswith(("=", "+="), end) else ""

    def _part(self, letter: str) -> WordPart:
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
            return self._expansion(is_quoted=False)
        if letter in "<>":
            self.at += 1
            self._substitution()
            return UNKNOWN
        if letter == "{" and (inside := self._skip_braces()):
            return UNKNOWN if self.known is None else self.known.alternatives(inside)
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
            return self._expansion(is_quoted=True)
        self.at += 1
        return letter

    def _skip_braces(self) -> str:
        """Skip a brace expansion (`{a,b}`, `{1..9}`) of bash; return its inside, empty where it is none."""
        end = self.text.find("}", self.at, self.at + _MOST_BRACES)
        inside = self.text[self.at + 1 : max(end, 0)]
        if (
            end < 0
            or not ("," in inside or ".." in inside)
            or any(each in inside for each in " \t\n;&|'\"$`")
        ):
            return ""
        self.at = end + 1
        return inside

    def _expansion(self, *, is_quoted: bool) -> str:
        """Read an expansion, whose value only a shell knows, unless the text tells it."""
        if self.text[self.at] == "`":
            return self._printed(self._backquoted(), is_quoted=is_quoted)
        if self._arithmetic("$"):
            pass
        elif self.text.startswith("$(", self.at):
            self.at += 1
            return self._printed(self._substitution(), is_quoted=is_quoted)
        elif self.text.startswith("${", self.at):
            start = self.at + 2
            self._skip_parameter()
            return self._value(self.text[start : self.at - 1], is_quoted=is_quoted)
        elif self.text.startswith("$'", self.at):
            return self._ansi_quoted()
        elif self.text.startswith('$"', self.at):
            self.at += 1
            return self._double_quoted()
        else:
            return self._plain_parameter(is_quoted=is_quoted)
        return UNKNOWN

    def _value(self, name: str, *, is_quoted: bool) -> str:
        return UNKNOWN if self.known is None else self.known.value(name, is_quoted=is_quoted)

    def _printed(self, commands: list[SimpleCommand], *, is_quoted: bool) -> str:
        """Return what the commands of a substitution print."""
        if self.known is None or len(commands) != 1 or commands[0].redirections:
            return UNKNOWN
        printed = printed_by(commands[0].words)
        return printed if is_quoted else SPLIT.join(printed.split())

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

    def _plain_parameter(self, *, is_quoted: bool) -> str:
        self.at += 1
        if self.text[self.at : self.at + 1] in _PARAMETERS:
            self.at += 1
            return UNKNOWN
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _NAME:
            self.at += 1
        if self.at == start:
            return "$"
        return self._value(self.text[start : self.at], is_quoted=is_quoted)

    def _ansi_quoted(self) -> str:
        r"""Read `$'...'`, in which `\x6e` is a character."""
        self.at += 2
        start = self.at
        while self.at < len(self.text) and self.text[self.at] != "'":
            self.at += 2 if self.text[self.at] == "\\" else 1
        if self.at >= len(self.text):
            raise _UnreadableError("it ends inside of a quote")
        found = self.text[start : self.at]
        self.at += 1
        return decode_ansi(found)

    def _substitution(self) -> list[SimpleCommand]:
        """Read the commands of `(...)`; the position is at the bracket."""
        inner = _ShellReader(self.text, self.depth + 1, None if self.known is None else self.known.copy())
        inner.at = self.at + 1
        try:
            inner.read_commands(")")
        finally:
            self._join(inner)
        self.at = inner.at
        return inner.commands

    def _backquoted(self) -> list[SimpleCommand]:
        end = self.at + 1
        while end < len(self.text) and self.text[end] != "`":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise _UnreadableError("it ends inside of backquotes")
        inside = self.text[self.at + 1 : end]
        for escaped in ("\\`", "\\$", "\\\\"):
            inside = inside.replace(escaped, escaped[1])
        known = None if self.known is None else self.known.copy()
        found = read_shell(inside, self.depth + 1, known) if self.depth < MOST_DEPTH else ShellText(())
        self.commands += found.commands
        self.unread += found.unread
        self.at = end + 1
        return list(found.commands)

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
