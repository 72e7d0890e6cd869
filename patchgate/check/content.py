"""The content gate: secrets, conflict markers and denied text in added lines.

Only added lines of regular files count. Control files are exempt, and an exact rename adds no line. A text
file whose lines were not read makes the gate undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchgate.check.case import Case, decided_by, find
from patchgate.errors import UndecidedError
from patchgate.git.model import FileChange, Line
from patchgate.git.quoting import printable
from patchgate.policy.content_rules import is_conflict_marker
from patchgate.policy.policy import Decision, Profile
from patchgate.report.rules import Level
from patchgate.report.verdict import Finding, Fixer
from patchgate.values import replace

_ALLOWED = re.compile(rb"patchgate: allow ([a-z][a-z-]{0,60})(?:[ \t]+([^ \t\r][^\r]{0,400}))?")


def applies(case: Case) -> bool:
    """Return whether the policy has any content rule."""
    return bool(case.policy.content)


def examine(case: Case) -> Iterator[Finding]:
    """Find the added lines that break a content rule."""
    for file in case.change.files:
        if not _is_new_text(file) or file.path in case.change.renames or case.is_control(file.path):
            continue
        if file.added_lines is None and not file.binary:
            raise UndecidedError(f"the added lines of {file.path.quoted} were not read")
        for line in file.watched:
            for finding in _findings(case, file, line):
                yield suppressed(case, finding, line)


def _is_new_text(file: FileChange) -> bool:
    return file.has_new_content


def _findings(case: Case, file: FileChange, line: Line) -> Iterator[Finding]:
    rules = case.policy.content
    if (form := rules.secret_in(line.text)) is not None:
        yield find(
            "secret",
            f"an added line of {file.path.quoted} has what looks like {form.phrase}",
            file.path,
            "remove it, revoke it if it was ever real, and read it from the environment",
            line=line.number,
            who=Fixer.PERSON,
            excerpt=line.text,
            decision=Decision(("content", "secrets"), form.name),
        )
    if rules.conflict_markers and is_conflict_marker(line.text):
        yield find(
            "conflict-marker",
            f"a conflict marker is left in {file.path.quoted}",
            file.path,
            "resolve the conflict and remove the markers",
            line=line.number,
            excerpt=line.text,
        )
    if (index := rules.denied_in(line.text)) is not None:
        text = case.policy.config.content.deny[index]
        decision = Decision(("content", "deny", index), text)
        yield find(
            "deny-content",
            f"an added line of {file.path.quoted} matches content.deny[{index}] ({printable(text, 80)})",
            file.path,
            "remove the matching text" + decided_by(case, decision, "To allow it, remove that entry"),
            line=line.number,
            excerpt=line.text,
            decision=decision,
        )


def suppressed(case: Case, finding: Finding, line: Line) -> Finding:
    """Make a finding a note where its line allows it with a reason."""
    if case.profile is not Profile.COMMIT:
        return finding
    for rule, reason in _ALLOWED.findall(line.text):
        if rule.decode("ascii") != finding.rule:
            continue
        text = reason.decode("utf-8", "replace").strip()
        # The end of a comment (`*/`, `-->`) is not a reason.
        if not any(character.isalnum() for character in text):
            hint = f"give a reason: patchgate: allow {finding.rule} REASON"
            return replace(finding, hint=hint)
        details = {**finding.details, "suppressed": text}
        return replace(
            finding,
            level=Level.NOTE,
            message=f"{finding.message}; allowed on the line",
            hint=None,
            details=details,
        )
    return finding
