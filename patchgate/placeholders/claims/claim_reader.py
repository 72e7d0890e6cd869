"""Reads a claim: a verifier's verdict as JSON, or the options of a command line.

Decides which keys a verdict must have and their types; all mistakes are reported at once. Unknown keys are
kept. Not: whether it is a claim about placeholders, and which files its paths name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patchgate.errors import UsageError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.placeholders.claims.claim import Claim
from patchgate.placeholders.claims.claim_decision import is_hard_invariant
from patchgate.policy.strict_json import JsonDocument, JsonFault, JsonPath, dotted, read_json

MOST_BYTES = 8 << 20
MOST_NAME = 1000
"""The most characters of a subject, a reason code and a severity class: they are written to the ledger."""
LISTS = ("deliverables", "changed_files", "prior_changed_files", "evidence_files")
_TEXTS = ("reason_code", "severity_class", "feedback", "subject")
_NAMES = frozenset({"reason_code", "severity_class", "subject"})
_MOST_MISTAKES = 10
# The keys of an issue whose values describe the problem in words.
_DESCRIPTION_KEY = re.compile(
    r"(?i:messages?|msg|texts?|titles?|descriptions?|details?|summary|body|issues?|problems?|comments?"
    r"|feedback|reasons?|explanation|findings?|notes?)"
)
_PASSED = frozenset(
    {"pass", "passed", "ok", "okay", "none", "fixed", "resolved", "closed", "done", "success", "clean", "no"}
)
_ABSENT = frozenset({False, "false", "no", "none", "0", "zero", "not found"})
_RESOLVED_VALUES: Mapping[str, frozenset[Any]] = {
    **dict.fromkeys(("status", "state", "result", "outcome", "verdict", "severity"), _PASSED),
    **dict.fromkeys(
        ("passed", "pass", "ok", "resolved", "fixed", "success"), frozenset({True, "true", "yes"})
    ),
    **dict.fromkeys(("found", "present", "failed", "count", "matches", "occurrences", "remaining"), _ABSENT),
}
_HINT = 'a verdict is an object like {"passed": false, "reason_code": "…", "deliverables": ["docs/out.md"]}'
_TYPES: Mapping[type, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


# The known keys of a verdict, and their types, also in words; only `passed` may not be null.
_MEMBERS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "passed": ((bool,), "true or false"),
    **dict.fromkeys(_TEXTS, ((str,), "a string")),
    "confidence": ((int, float), "a number"),
    "metadata": ((dict,), "an object"),
    **dict.fromkeys((*LISTS, "issues"), ((list,), "a list")),
}


def read_claim(raw: bytes, name: str) -> Claim:
    """Read a verdict.

    Args:
        raw: the whole document, or its first `MOST_BYTES` + 1 bytes.
        name: the file, for messages.

    Raises:
        UsageError: it is not a valid verdict; lists every mistake.
    """
    read = read_json(raw, MOST_BYTES)
    if isinstance(read, JsonFault):
        raise UsageError(_at(name, read.line, read.message), read.hint)
    if not isinstance(read.value, dict):
        raise UsageError(
            _at(name, read.line_of(()), f"a verdict must be an object, not {_kind(read.value)}"), _HINT
        )
    mistakes = sorted(set(_mistakes(read)))
    if mistakes:
        lines = [_at(name, line, message) for line, message in mistakes[:_MOST_MISTAKES]]
        if len(mistakes) > _MOST_MISTAKES:
            lines.append(f"and {len(mistakes) - _MOST_MISTAKES} more")
        raise UsageError("; ".join(lines), _HINT)
    return _claim(read.value)


def claim_of(
    *,
    reason_code: str,
    deliverables: Sequence[str] = (),
    changed: Sequence[str] = (),
    prior: Sequence[str] = (),
    evidence: Sequence[str] = (),
    subject: str | None = None,
    feedback: str = "",
    prefix: str = "",
) -> Claim:
    """Build a claim from options: not passed, for this reason.

    Args:
        prefix: the current folder; relative paths start there.

    Raises:
        UsageError: an option is not valid.
    """
    if not reason_code.strip():
        raise UsageError("--reason is empty", "give the verifier's reason code")
    for option, text in (("--reason", reason_code), ("--subject", subject or ""), ("--feedback", feedback)):
        if option != "--feedback" and len(text) > MOST_NAME:
            raise UsageError(f"{option} has more than {MOST_NAME} characters", "shorten it")
        if not text.isascii() and text.encode("utf-8", "replace").decode("utf-8") != text:
            raise UsageError(f"{option} {printable(text, 40)} is not UTF-8", "write it as UTF-8 text")
    written: dict[str, Any] = {"passed": False, "reason_code": reason_code}
    written |= {"feedback": feedback} if feedback else {}
    written |= {"subject": subject} if subject else {}
    options = (("--deliverable", deliverables), ("--changed", changed), ("--prior", prior))
    for key, (option, paths) in zip(LISTS, (*options, ("--evidence", evidence)), strict=True):
        if any(not path or "\0" in path for path in paths):
            raise UsageError(f"{option} has an empty path", "give the path of a file")
        if paths:
            written[key] = [_from_root(path, prefix) for path in paths]
    return _claim(written)


def _from_root(path: str, prefix: str) -> str:
    is_absolute = path.startswith(("/", "\\")) or path[1:2] == ":"
    return path if is_absolute or not prefix else f"{prefix}/{path}"


def _claim(written: Mapping[str, Any]) -> Claim:
    """Build the claim from a checked verdict; null counts as absent."""
    return Claim(
        passed=written["passed"],
        reason_code=written.get("reason_code"),
        severity_class=written.get("severity_class"),
        feedback=written.get("feedback") or "",
        issues=tuple(_texts(written.get("issues"))),
        confidence=written.get("confidence"),
        subject=written.get("subject") or None,
        has_hard_invariant=_has_hard_invariant(written),
        written=written,
        **{key: tuple(written.get(key) or ()) for key in LISTS},
    )


def _has_hard_invariant(written: Mapping[str, Any]) -> bool:
    """Return whether a key or a value of the document, its metadata or an issue names a failed invariant.

    A key does unless its value denies it; an issue that is marked as resolved does not.
    """
    waiting: list[Any] = [written, written.get("metadata"), written.get("issues")]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, dict) and not (
            each is not written and any(_is_resolved(key, answer) for key, answer in each.items())
        ):
            words = (value for value in each.values() if isinstance(value, str))
            keys = (key for key, value in each.items() if not _denies(value))
            if any(map(is_hard_invariant, words)) or any(map(is_hard_invariant, keys)):
                return True
    return False


def _denies(value: Any) -> bool:
    plain = value.strip().lower() if isinstance(value, str) else value
    return not plain or (isinstance(plain, str) and plain in _ABSENT)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of the issues, in their order, without recursion.

    Of an object only the descriptions are read: its other texts are names, categories and answers, and
    "placeholder" among them says nothing about the work. An object that is marked as resolved has none.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, list):
            waiting.extend(reversed(each))
        elif isinstance(each, dict) and not any(_is_resolved(key, answer) for key, answer in each.items()):
            texts = [text for key, text in each.items() if _DESCRIPTION_KEY.fullmatch(key.strip())]
            waiting.extend(reversed(texts or _single_words(each)))


def _single_words(issue: Mapping[str, Any]) -> list[str]:
    """List the single words of an issue without a description, for "fail" is a failure."""
    return [text for text in issue.values() if isinstance(text, str) and len(text.split()) == 1]


def _is_resolved(key: str, answer: Any) -> bool:
    """Return whether a value marks an issue as resolved: passed, found false, count 0."""
    plain = answer.strip().lower() if isinstance(answer, str) else answer
    return isinstance(plain, str | int) and plain in _RESOLVED_VALUES.get(key.strip().lower(), ())


def _mistakes(read: JsonDocument) -> Iterator[tuple[int, str]]:
    verdict = read.value
    if "passed" not in verdict:
        yield read.line_of(()), "`passed` is missing"
    for place, line in read.doubled:
        yield line, f"`{dotted(place)}` occurs twice"
    for key, value in verdict.items():
        for place, message in _faults(key, value):
            yield read.line_of(place), f"`{dotted(place)}` {message}"


def _faults(key: str, value: Any) -> Iterator[tuple[JsonPath, str]]:
    kinds, wanted = _MEMBERS.get(key, ((), ""))
    if not kinds or (value is None and key != "passed"):
        return
    if type(value) not in kinds:
        yield (key,), f"is {_kind(value)}, not {wanted}"
    elif key in _NAMES and len(value) > MOST_NAME:
        yield (key,), f"has more than {MOST_NAME} characters"
    for index, each in enumerate(value if isinstance(value, list) else ()):
        if key == "issues":
            if not isinstance(each, str | dict | list):
                yield (key, index), f"is {_kind(each)}, not a string, an object or a list"
        elif not isinstance(each, str):
            yield (key, index), f"is {_kind(each)}, not a path"
        elif not each:
            yield (key, index), "is an empty path"
        elif "\0" in each:
            yield (key, index), f"contains a NUL byte, which no path can: {RepoPath(each.encode()).quoted}"


def _kind(value: Any) -> str:
    return _TYPES[type(value)]


def _at(name: str, line: int | None, message: str) -> str:
    place = printable(name, 200)
    return f"{place}: {message}" if line is None else f"{place}:{line}: {message}"
