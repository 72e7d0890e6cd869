"""Read which fault the output of a command, or an exception, shows.

Output never shows a permanent fault: whoever writes it could end the whole run. A wrong guess costs a few
more tries, or a pause. Samples come from output that is masked already.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from patchgate.commands.test_results import why_nothing_ran
from patchgate.errors import ConfigError, OutOfTimeError, UsageError
from patchgate.git.quoting import printable, without_escapes
from patchgate.runs.phases import Phase
from patchgate.runs.triage import MOST_SAMPLE, FaultKind, RunFault

TEMPORARY_EXIT = 75
"""EX_TEMPFAIL of sysexits.h: “the user is invited to retry”."""
_NOT_FOUND_EXIT = 127
"""A shell did not find a program (POSIX, 2.8.2)."""
_NOTHING_EXIT = 5
"""pytest collected no tests; with `-qq` nothing else says so."""
MOST_OUTPUT = 1 << 20
_MOST_SUBJECT = 80
_LEAST_NAME = 2
# As logs have them, where they are escaped.
_COLOUR = re.compile(rb"\\x1b\[[0-?]*[ -/]*[@-~]")

_IMPORTS = re.compile(
    rb"""^(?:E\ {1,7})?ModuleNotFoundError:\ No\ module\ named\ '([^'\n]{1,200})'
    | ^(?:E\ {1,7})?ImportError:\ cannot\ import\ name\ '([^'\n]{1,200})'
      \ from\ (?:partially\ initialized\ module\ )?'([^'\n]{1,200})'
    | ^(?:E\ {1,7})?ImportError:\ ([^\s:]{1,200}\.(?:so|dylib)[.\d]*):\ cannot\ open
    | \bCannot\ find\ (?:module|package)\ '([^'\n]{1,200})'
    | \bno\ required\ module\ provides\ package\ ([^\s:;]{1,200})
    | ^error\[E0463\]:\ can't\ find\ crate\ for\ `([^`\n]{1,200})`""",
    re.MULTILINE | re.VERBOSE,
)
_MODULE_TOOL = re.compile(
    rb"^[^\s:]{0,400}(?:python|pypy)[\d.]{0,8}: No module named ([\w.]{1,200})$", re.MULTILINE
)
_TOOLS = re.compile(
    rb"""^[^\s:]{1,200}:\ (?:line\ )?(?:\d{1,6}:\ )?([^\s:]{1,200}):\ (?:command\ )?not\ found$
    | ^(?:/\S{1,200}/)?env:\ [^\w\n]{1,3}([^\s:]{1,200}?)[^\w\n]{1,3}:\ No\ such\ file\ or\ directory$
    | ^g?make(?:\[\d{1,3}\])?:\ ([^\s:]{1,200}):\ No\ such\ file\ or\ directory$
    | ^zsh:(?:\d{1,6}:)?\ command\ not\ found:\ (\S{1,200})$""",
    re.MULTILINE | re.VERBOSE,
)
_LOCKS = re.compile(
    rb"""\bUnable\ to\ create\ '(?:[^'\n]{0,400}/)?([^'/\n]{1,200}\.lock)':\ File\ exists
    | \b(database)\ is\ locked\b
    | \bCould\ not\ get\ lock\ (?:\S{0,400}/)?([^\s/]{1,200}?)[.,;:]?(?:\s|$)""",
    re.VERBOSE,
)
_CONNECTIONS = re.compile(
    rb"""^(?:E\ {1,7})?(?:\w{1,60}\.){0,6}
      (?:Connection(?:|Refused|Reset|Aborted)Error|ConnectError|NewConnectionError|MaxRetryError)(?:$|[\s:(])
    | \b(?:Connection\ (?:refused|reset\ by\ peer|timed\ out)|Could\ not\ resolve\ host
      |Temporary\ failure\ in\ name\ resolution|Name\ or\ service\ not\ known|Network\ is\ unreachable
      |No\ route\ to\ host|Couldn't\ connect\ to\ server)\b
    | \b(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT)\b""",
    re.MULTILINE | re.VERBOSE,
)
_BUSY_SERVICES = re.compile(
    rb"\b429 Too Many Requests\b|\brate[ _-]limit(?:[ _-]error|ed| exceeded)\b|\boverloaded_error\b"
    rb"|\b503 Service (?:Temporarily )?Unavailable\b",
    re.IGNORECASE,
)
_TIME_OUTS = re.compile(
    rb"^(?:E {1,7})?(?:\w{1,60}\.){0,6}(?:TimeoutError|TimeoutExpired|ReadTimeout|ConnectTimeout)(?:$|[\s:(])"
    rb"|^(?:E {1,7})?Failed: Timeout [>(]",
    re.MULTILINE,
)
# What differs from one component, try and machine to the next.
_VARIES = re.compile(r"\S*/\S*|\b[0-9a-f]{7,64}\b|\d+|'[^']*'|\"[^\"]*\"|`[^`]*`")


def fault_of_output(
    output: bytes, *, component: str, phase: Phase, exit_code: int | None, plain: FaultKind
) -> RunFault:
    """Read the fault of a command that did not succeed, or ran no test.

    Args:
        output: what it wrote, masked; of more than 1 MiB the end is read.
        exit_code: None if it has none.
        plain: the fault if the output shows no other: `TESTS_FAILED`, `CHECK_FAILED` or `AUTHOR_FAILED`.
            Only for tests it is a fault that nothing was collected.
    """
    text = _COLOUR.sub(b"", without_escapes(output[-MOST_OUTPUT:])).replace(b"\r\n", b"\n")
    kind, subject, sample = _read(text, exit_code, plain)
    if not sample:
        sample = _last_line(text) or (f"exit code {exit_code}" if exit_code is not None else "")
    # The expressions below take time with the square of its length.
    sample = sample.strip()[: MOST_SAMPLE + 1]
    if kind is FaultKind.AUTHOR_FAILED:
        subject = " ".join(_VARIES.sub("*", _without_name(sample, component)).split())
    return RunFault(component, phase, kind, printable(subject, _MOST_SUBJECT), printable(sample, MOST_SAMPLE))


def fault_of_error(error: BaseException, *, component: str, phase: Phase) -> RunFault | None:
    """Read the fault that an exception, or what caused it, shows; None if it shows none.

    What is none of these is a fault of patchgate, or says nothing about its cause.
    """
    sample = printable(str(error) or type(error).__name__, MOST_SAMPLE)
    for each in _causes(error):
        kind = _kind_of(each)
        if kind is not None:
            return RunFault(component, phase, kind, sample=sample)
    return None


def _without_name(sample: str, component: str) -> str:
    """Leave out the name of the component; a short one may be a word of any sentence."""
    if len(component) < _LEAST_NAME:
        return sample
    return re.sub(rf"(?<!\w){re.escape(component)}(?!\w)", "*", sample)


def _read(text: bytes, exit_code: int | None, plain: FaultKind) -> tuple[FaultKind, str, str]:
    """Return the kind, its subject, and the line that shows it, which may be empty."""
    if exit_code == TEMPORARY_EXIT:
        return FaultKind.TEMPORARY, f"exit code {TEMPORARY_EXIT}", _last_line(text)
    is_test = plain is FaultKind.TESTS_FAILED
    if found := _MODULE_TOOL.search(text):
        tool = f"python -m {_decoded(found[1])}"
        return FaultKind.NOTHING_COLLECTED if is_test else FaultKind.MISSING_TOOL, tool, _line(text, found)
    if found := _IMPORTS.search(text):
        return FaultKind.IMPORT_ERROR, _imported(found), _line(text, found)
    # Output of tests may say it of a program that a test calls.
    if (exit_code == _NOT_FOUND_EXIT or b"Error 127" in text) and (found := _TOOLS.search(text)):
        kind = FaultKind.NOTHING_COLLECTED if is_test else FaultKind.MISSING_TOOL
        return kind, _subject(found), _line(text, found)
    if found := _LOCKS.search(text):
        return FaultKind.LOCKED, _subject(found), _line(text, found)
    if found := _CONNECTIONS.search(text):
        return FaultKind.CONNECTION, "", _line(text, found)
    if plain is FaultKind.AUTHOR_FAILED and (found := _BUSY_SERVICES.search(text)):
        return FaultKind.TEMPORARY, "busy service", _line(text, found)
    if found := _TIME_OUTS.search(text):
        return FaultKind.TIME_OUT, "", _line(text, found)
    if is_test and (reason := _why_nothing(text, exit_code)):
        return FaultKind.NOTHING_COLLECTED, "", reason
    return plain, "", ""


def _why_nothing(text: bytes, exit_code: int | None) -> str | None:
    """Return what says that no test was collected; a test file that cannot be read is another fault."""
    if exit_code == _NOTHING_EXIT and not text.strip():
        return f"pytest ended with exit code {_NOTHING_EXIT}: no tests collected"
    reason = why_nothing_ran(text)
    return None if reason is None or re.search(r"/ \d+ errors?\b", reason) else reason


def _imported(found: re.Match[bytes]) -> str:
    if found[2] is not None:
        return f"{_decoded(found[3])}.{_decoded(found[2])}"
    return _subject(found)


def _subject(found: re.Match[bytes]) -> str:
    return _decoded(next(each for each in found.groups() if each is not None))


def _line(text: bytes, found: re.Match[bytes]) -> str:
    begin = text.rfind(b"\n", 0, found.start()) + 1
    end = text.find(b"\n", found.end())
    return _decoded(text[begin : end if end >= 0 else len(text)])


def _last_line(text: bytes) -> str:
    return _decoded(text.rstrip()[text.rstrip().rfind(b"\n") + 1 :])


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those that caused it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__


def _kind_of(error: BaseException) -> FaultKind | None:
    if isinstance(error, ConfigError | UsageError):
        return FaultKind.CONFIG
    if isinstance(error, OutOfTimeError | TimeoutError):
        return FaultKind.TIME_OUT
    if isinstance(error, ConnectionError):
        return FaultKind.CONNECTION
    if isinstance(error, BlockingIOError):
        return FaultKind.LOCKED
    if isinstance(error, FileNotFoundError):
        return FaultKind.MISSING_FILE
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return FaultKind.DISK_FULL
    return None
