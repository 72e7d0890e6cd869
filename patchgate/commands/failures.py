"""What a command that failed says has failed, so that two runs of it can be compared.

Decides what identifies a failure: a test of a JUnit report, a result of a SARIF document, or else all of the
output, without what differs from run to run (paths of this machine, times, addresses). A run that was broken
off, or that says nothing, cannot be compared. Runs nothing, and does not decide what follows from it.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from patchgate.commands.json_stream import NotReadError
from patchgate.commands.junit import failed_tests, said_stopped
from patchgate.commands.sarif_file import read_sarif
from patchgate.commands.sarif_run import FailedError
from patchgate.commands.tree_files import Lines
from patchgate.git.quoting import printable

MOST_LOG = 16 << 20
_MOST_NAME = 200
# A name that a slash begins, in a word or behind a quote, bracket or `=`; `_without_path` asks what it is.
_ABSOLUTE = re.compile(rb"(?<![^\s\"'`(\[<=:,])/[^\s\"'`)\]>:,]+")
_VARIES = (
    re.compile(rb"\b[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)?Z?"),
    re.compile(rb"(?<![\w:.])[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?"),
    re.compile(rb"(?<![\w.])[0-9]+(?:\.[0-9]+)? ?(?:ns|us|ms|s|sec|secs|seconds?|minutes?|min|m)\b"),
    re.compile(rb"\b0x[0-9a-fA-F]{6,16}\b"),
)
# As a log has it: written out, so that no terminal obeys it.
_COLOUR = re.compile(rb"\\x1b\[[0-?]*[ -/]*[@-~]")
# What pytest-cov says beside the tests, in version 6 and from 7 on; no report has it.
_COVERAGE = re.compile(rb"(?:FAIL Required test coverage|ERROR: Coverage failure)\b")
# As long as the room that the time leaves.
_RULER = re.compile(rb"[-=_]{3,}")


class Form(StrEnum):
    """What identifies the failures of a run."""

    TESTS = "tests"
    FINDINGS = "findings"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Failures:
    """What has failed in one run: `marks` are digests, `names` their words, safe for a terminal."""

    form: Form
    marks: frozenset[str]
    names: Mapping[str, str]


def failures_of(log: bytes, report: bytes | None, place: str, lines: Lines) -> Failures | None:
    """Read what failed in a run that did not end well; None where it cannot be compared with another run.

    Args:
        log: all that the command wrote.
        report: the JUnit report of its tests, where it wrote one.
        place: the scratch tree, an absolute path.
        lines: gives the lines of a file of that tree.
    """
    plain_log = _COLOUR.sub(b"", log)
    if said_stopped(plain_log):
        return None
    if report is not None:
        try:
            tests = failed_tests(report)
        except ValueError:
            return None
        if tests:
            failed = {test: printable(test, _MOST_NAME) for test in tests}
            return _made(Form.TESTS, failed | _coverage(plain_log))
    if (findings := _findings(log, place, lines)) is not None:
        return _made(Form.FINDINGS, findings) if findings else None
    plain = _plain_output(plain_log, place)
    return _made(Form.OUTPUT, {plain: "its output"}) if plain.strip("- \n") else None


def _made(form: Form, failed: Mapping[str, str]) -> Failures:
    marked = {hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest(): text for text in failed}
    return Failures(form, frozenset(marked), {mark: failed[text] for mark, text in marked.items()})


def _coverage(log: bytes) -> dict[str, str]:
    """Say that less was covered than is asked for, which fails a run as a test does."""
    lines = log.split(b"\n")
    return {"coverage": "the coverage"} if any(map(_COVERAGE.match, lines)) else {}


def _findings(log: bytes, place: str, lines: Lines) -> dict[str, str] | None:
    """Read the results of a SARIF document, each with how often it came before; None where it is none."""
    if not log.lstrip().startswith(b"{"):
        return None
    try:
        results, _ = read_sarif(io.BytesIO(log), "", place, lines)
    except (NotReadError, FailedError):
        return None
    seen: Counter[str] = Counter()
    found: dict[str, str] = {}
    for each in results:
        paths = "\0".join(path.quoted for path in each.paths)
        key = "\0".join((each.tool, each.rule, paths, each.mark))
        seen[key] += 1
        where = f"{each.paths[0].quoted}:{each.line or 1}: " if each.paths else ""
        found[f"{key}\0{seen[key]}"] = printable(f"{where}{each.rule}", _MOST_NAME)
    return found


def _plain_output(log: bytes, place: str) -> str:
    return "\n".join(_plain_lines(log, place.encode("utf-8", "surrogateescape")))


def _plain_lines(log: bytes, place: bytes) -> Iterator[str]:
    """Take out of each line what says where and when it was written; names within the tree stay."""
    # Programs that ask where they run are told the folder behind links.
    places = sorted({place, os.path.realpath(place)}, key=len, reverse=True)
    for line in log.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n"):
        plain = line
        for each in places:
            plain = plain.replace(each + b"/", b"").replace(each, b".")
        plain = _ABSOLUTE.sub(_without_path, plain)
        for varying in _VARIES:
            plain = varying.sub(b"<time>", plain)
        yield _RULER.sub(b"---", plain).rstrip().decode("utf-8", "surrogateescape")


def _without_path(found: re.Match[bytes]) -> bytes:
    """Take out a path of this machine; what is none (`/login` of a URL) tells one failure from another."""
    first = found[0].split(b"/")[1]
    return b"<path>" if first and os.path.lexists(b"/" + first) else found[0]
