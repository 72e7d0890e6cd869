"""What the answer to a call of a client is made of: its arguments, the repository, findings in short."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from patchgate.check.policy_lookup import CheckOptions, trusted_options
from patchgate.errors import UsageError
from patchgate.git.repository import Repository
from patchgate.policy.policy import Profile
from patchgate.report import agent_text, wording
from patchgate.report.verdict import Finding, Report, Verdict
from patchgate.values import dataclass, replace

MOST_FINDINGS = 50
MOST_NUMBER = 1_000_000
CHECK_AGAIN = "call check, and give the digest that it returns"


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where a call is answered: the repository, and inputs from outside; `client` is who calls."""

    repository: Repository
    environ: Mapping[str, str]
    cache: str
    client: str
    now: float


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The arguments of a call, by name."""

    values: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """Return a text; None if it was not given.

        Raises:
            UsageError: it is something else.
        """
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or not _is_unicode(value):
            raise UsageError(f"`{name}` is not a text of Unicode characters", "send it as a string")
        return value

    def required(self, name: str) -> str:
        """Return a text that must be given.

        Raises:
            UsageError: it is missing, or something else.
        """
        value = self.text(name)
        if value is None:
            raise UsageError(f"`{name}` is missing", "send it as a string")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; empty if it was not given.

        Raises:
            UsageError: it is something else.
        """
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(
            isinstance(each, str) and _is_unicode(each) for each in value
        ):
            raise UsageError(f"`{name}` is not a list of texts", "send it as a list of strings")
        return tuple(value)

    def flag(self, name: str) -> bool:
        """Return whether a flag is set."""
        return self.values.get(name) is True

    def number(self, name: str) -> int | None:
        """Return a whole number above 0; None if it was not given.

        Raises:
            UsageError: it is something else.
        """
        value = self.values.get(name)
        if value is not None and (type(value) is not int or not 0 < value <= MOST_NUMBER):
            raise UsageError(f"`{name}` is not a number from 1 to {MOST_NUMBER:,}", "send it as a number")
        return value


def _is_unicode(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair."""
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


def agent_options(repository: Repository) -> CheckOptions:
    """Return how to judge what an agent asks for: by the trusted ref, under the agent profile."""
    return replace(trusted_options(repository), profile=Profile.AGENT)


def judged(report: Report) -> dict[str, Any]:
    """Return the verdict of a report, its findings in short, and its text for an agent."""
    findings = [each for change in report.changes for each in change.findings]
    return {
        "verdict": report.verdict.value,
        "findings": [_finding(each) for each in findings[:MOST_FINDINGS]],
        "more": max(0, len(findings) - MOST_FINDINGS),
        "text": agent_text.render(report),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    hint = wording.hint_of(finding)
    return {
        "rule": finding.rule,
        "level": finding.level.value,
        "place": wording.show_place(finding) or None,
        "message": wording.safe(finding.message),
        "help": None if hint is None else wording.safe(hint),
    }


def digest_of(report: Report, source: str, raw: bytes = b"") -> str | None:
    """Return the digest by which a change is asked for that was checked; None if nothing may follow.

    It binds the bytes that were sent, what git makes of them on which tree, and the policy.
    """
    if report.verdict is not Verdict.ACCEPTED:
        return None
    ids = "\n".join(change.id for change in report.changes)
    text = f"patchgate.mcp/1\n{source}\n{hashlib.sha256(raw).hexdigest()}\n{ids}\n"
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()
