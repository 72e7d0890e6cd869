"""Exceptions that end a command without a verdict.

A refusal is a value (`report.verdict`), not an exception. Each exception has one sentence and the next
step, so that the command line never shows a traceback.
"""

from __future__ import annotations

from patchgate.exit_codes import UNDECIDED, USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class PatchgateError(Exception):
    """The base of every error that ends a command without a verdict.

    Args:
        message: one sentence, already safe for a terminal.
        hint: the smallest next step, or None if there is none.
    """

    kind = "internal"
    exit_code = UNDECIDED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def sentence(self) -> str:
        """The message with the next step, for places with room for one sentence only."""
        return self.message if self.hint is None else f"{self.message}; {self.hint}"


class EndedAttempt:
    """The attempt that an error ended: its id, its evidence folder, and a kept scratch tree."""

    __slots__ = ("dir", "id", "temp_path")

    def __init__(self, name: str, folder: str, temp_path: str | None) -> None:
        self.id: Final = name
        self.dir: Final = folder
        self.temp_path: Final = temp_path


_ATTEMPT = "_patchgate_attempt"


def name_attempt(error: BaseException, attempt: EndedAttempt | None) -> None:
    """Attach to an error of any type the attempt that it ended."""
    setattr(error, _ATTEMPT, attempt)


def ended_attempt(error: BaseException) -> EndedAttempt | None:
    """Return the attempt that an error ended; None if there was none."""
    attempt = getattr(error, _ATTEMPT, None)
    return attempt if isinstance(attempt, EndedAttempt) else None


class UsageError(PatchgateError):
    """The arguments are wrong: an unknown revision, a missing file, no repository."""

    kind = "usage"
    exit_code = USAGE


class Mistake:
    """One thing that is wrong in a config file.

    `line` counts from 1 and is None if the fault has no line (a file that is too large);
    `key` is the dotted key (`policy.deny[2]`), empty for the file as a whole.
    """

    # No dataclass: what recording one event loads comes through here (see `patchgate.storage.Value`).
    __slots__ = ("file", "hint", "key", "line", "message")

    def __init__(self, file: str, line: int | None, key: str, message: str, hint: str | None = None) -> None:
        self.file: Final = file
        self.line: Final = line
        self.key: Final = key
        self.message: Final = message
        self.hint: Final = hint

    @property
    def location(self) -> str:
        """The file, with the line where there is one: `patchgate.toml:3`."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mistake) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"Mistake{self._fields()!r}"

    def _fields(self) -> tuple[object, ...]:
        return self.file, self.line, self.key, self.message, self.hint


_MOST_MISTAKES = 20
_LONGEST_HINT = 80


class ConfigError(PatchgateError):
    """A config that cannot be used; `mistakes` names every fault of it at once."""

    kind = "config"
    exit_code = USAGE

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        first = mistakes[0]
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        super().__init__(f"{first.location}: {first.message}{more}", first.hint)
        self.mistakes = mistakes

    @property
    def in_one_line(self) -> str:
        """The first 20 mistakes with their hints, for places with room for one sentence only."""
        lines = [
            f"{each.location}: {each.message}"
            + (f" ({each.hint})" if each.hint and len(each.hint) <= _LONGEST_HINT else "")
            for each in self.mistakes[:_MOST_MISTAKES]
        ]
        more = len(self.mistakes) - _MOST_MISTAKES
        return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


class UndecidedError(PatchgateError):
    """No verdict is possible: something is missing, unreadable, locked, or took too long."""

    kind = "undecided"
    exit_code = UNDECIDED


class DamagedIntentError(UndecidedError):
    """The record of an intent is damaged or was edited; `intent` is its id, None if unknown."""

    def __init__(self, message: str, hint: str | None = None, *, intent: str | None = None) -> None:
        super().__init__(message, hint)
        self.intent = intent


class OutOfTimeError(Exception):
    """Some work has used up its time; the caller knows what it was."""


class Terminated(BaseException):
    """SIGTERM or SIGHUP asked the process to end."""
