"""Builders of reports for the tests of the forms in which a report is written."""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.git.model import Change, Entry, FileChange, Source
from patchgate.git.path import RepoPath
from patchgate.report.rules import Level
from patchgate.report.verdict import (
    Budget,
    ChangeVerdict,
    Finding,
    GateOutcome,
    Json,
    Outcome,
    PolicyReference,
    Report,
)

BASE, AFTER = "1" * 40, "2" * 40
COMMIT, PARENT = "c0ffee" + "0" * 34, "d" * 40
POLICY = PolicyReference("sha256:" + "5" * 64, "HEAD:patchgate.toml")
PASSED = (GateOutcome("paths", Outcome.PASS), GateOutcome("policy", Outcome.PASS))
FAILED = (GateOutcome("paths", Outcome.PASS), GateOutcome("policy", Outcome.FAIL))
BLIND = (
    GateOutcome("paths", Outcome.PASS),
    GateOutcome("content", Outcome.UNDECIDED, "object 9af3 is missing."),
    GateOutcome("shape", Outcome.NOT_RUN),
)

# Names and texts that try to write something else than themselves.
HOSTILE = {
    "newline": b"a\nerror[secret]: forged",
    "escape": b"a\x1b[2J\x1b]0;title\x07b",
    "bidirectional": "a\u202egpj.exe".encode(),
    "invalid utf-8": b"caf\xe9/\xff\xfe",
    "c1 control": "a\u009b31m".encode(),
    "github command": b"::error file=x,line=1::forged",
    "old github command": b"a ##[error]forged",
    "github properties": b"a,line=7:%0Ab",
    "cdata end": b"a]]><b attribute=\"'&",
    "quotes": b'say "hi" \\ there',
    "link": b"[click](mailto:x@y)",
    "carriage return": b"a\rb",
    "not a character": "a\ufffe\uffff".encode(),
    "line separator": "a\u2028b".encode(),
}


def path(raw: bytes | str) -> RepoPath:
    """Make a path as if git had given it."""
    return RepoPath.from_git(raw.encode() if isinstance(raw, str) else raw)


def entry(digit: str = "a", mode: str = "100644") -> Entry:
    """Make one side of a file whose object id is one digit, repeated."""
    return Entry(mode, digit * 40)


def modified(name: bytes | str) -> FileChange:
    """Make a modified file with counted lines."""
    return FileChange(path(name), entry("a"), entry("b"), added_lines=3, removed_lines=1, n_hunks=1)


def finding(
    rule: str = "deny-prefix",
    name: bytes | str | None = "runs/x",
    line: int | None = None,
    level: Level = Level.ERROR,
    message: str = "runs/ is denied",
    hint: str | None = "leave it unchanged",
    excerpt: bytes | None = None,
    side: str = "new",
    details: Mapping[str, Json] | None = None,
) -> Finding:
    """Make a finding, by default that of a denied folder."""
    return Finding(
        rule,
        level,
        message,
        None if name is None else path(name),
        line,
        side,
        hint,
        details={"pattern": "runs/"} if details is None else details,
        excerpt=excerpt,
    )


def judged(
    *findings: Finding,
    files: tuple[FileChange, ...] | None = None,
    gates: tuple[GateOutcome, ...] | None = None,
    commit: str | None = None,
    policy: PolicyReference = POLICY,
    profile: str = "commit",
) -> ChangeVerdict:
    """Make the verdict on a staged change, or on a commit."""
    refused = any(each.level is Level.ERROR for each in findings)
    return ChangeVerdict(
        Change.of(BASE, AFTER, (modified("src/a.py"),) if files is None else files),
        Source("commit" if commit else "staged", commit, PARENT),
        profile,
        policy,
        gates or (FAILED if refused else PASSED),
        findings,
        limits={"max_files": Budget(50, 1), "max_added_lines": Budget(None, 3)},
    )


def report(*findings: Finding, **more: tuple[FileChange, ...]) -> Report:
    """Make a report on one staged change."""
    return Report((judged(*findings, files=more.get("files")),))


def commits(*verdicts: tuple[Finding, ...]) -> Report:
    """Make a report on a range: one commit for each tuple of findings."""
    return Report(
        tuple(
            judged(*findings, commit=f"{number + 1:040x}"[::-1]) for number, findings in enumerate(verdicts)
        )
    )


def hostile(raw: bytes) -> Report:
    """Make a report in which a hostile text stands wherever a foreign text can stand."""
    text = raw.decode("utf-8", "surrogateescape")
    return Report(
        (
            judged(
                finding("conflict-marker", raw, 7, excerpt=raw, message=text, hint=text),
                finding("deny-prefix", raw, None, message=text, hint=text, details={"pattern": text}),
                files=(modified(raw),),
                gates=(
                    GateOutcome("policy", Outcome.FAIL),
                    GateOutcome("content", Outcome.UNDECIDED, text),
                ),
                policy=PolicyReference("sha256:" + "5" * 64, text),
            ),
        ),
        (text,),
    )
