"""Approvals: what a person said about one change under one policy, and the bytes that stand for it.

Decides the form of a statement, the bytes that a signature covers, how statements lie in a note and in
`approvals.jsonl`, and that whatever is not exactly that is no approval. It does not decide whether a
signature is good, nor what an approval is good for.

A statement's bytes are canonical JSON (sorted keys, no spaces, ASCII). A line of a note is
`{"signature": …, "statement": {…}}` in the same form, so that `git notes merge -s cat_sort_uniq` joins two
notes; the signature covers the canonical bytes of the statement as it was read, never the line's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchgate.check.message import MOST_REASON
from patchgate.errors import UndecidedError
from patchgate.git.quoting import is_printable
from patchgate.storage import chain
from patchgate.storage.record import Json

SCHEMA = "patchgate.approval/1"
MOST_LINE = 64 << 10
MOST_LINES = 1000

_MOST_WHO = 300
_MOST_RULES = 200
_KEYS = frozenset({"at", "by", "change_id", "policy", "reason", "rules", "schema"})
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_RULE = re.compile(r"[a-z][a-z0-9-]{0,63}")
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
# RFC 4716's form as ssh-keygen writes it (PROTOCOL.sshsig); a signature by the largest RSA key has 3 KiB.
_SIGNATURE = re.compile(
    r"-----BEGIN SSH SIGNATURE-----\n(?:[A-Za-z0-9+/=]{1,76}\n){1,200}-----END SSH SIGNATURE-----\n"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A person's exception: these rules shall not refuse this change under this policy.

    `change_id` and `policy` are digests (`sha256:…`), `by` is who says so (`Name <address>`, their own word),
    `at` is in UTC, ISO 8601, whole seconds. What has other text in it cannot be made.

    Raises:
        ValueError: says in half a sentence what is wrong with it.
    """

    change_id: str
    policy: str
    rules: tuple[str, ...]
    reason: str
    by: str
    at: str

    def __post_init__(self) -> None:
        for name, text in (("change_id", self.change_id), ("policy", self.policy)):
            if not _DIGEST.fullmatch(text):
                raise ValueError(f"{name} is no digest")
        if not self.rules or len(self.rules) > _MOST_RULES or not all(map(_RULE.fullmatch, self.rules)):
            raise ValueError("rules are no names of rules")
        if tuple(sorted(set(self.rules))) != self.rules:
            raise ValueError("rules are not sorted, each once")
        for name, text, most in (("reason", self.reason, MOST_REASON), ("by", self.by, _MOST_WHO)):
            if not 0 < len(text) <= most or not all(map(is_printable, text)) or text != text.strip():
                raise ValueError(f"{name} is empty, too long, or cannot be printed")
        if not _AT.fullmatch(self.at):
            raise ValueError("at is no time")

    def plain(self) -> dict[str, Json]:
        """Give the object that stands for it."""
        return {
            "schema": SCHEMA,
            "change_id": self.change_id,
            "policy": self.policy,
            "rules": list(self.rules),
            "reason": self.reason,
            "by": self.by,
            "at": self.at,
        }

    def to_bytes(self) -> bytes:
        """Write the bytes that a signature covers."""
        return _canonical(self.plain())

    @classmethod
    def from_plain(cls, value: object) -> Statement:
        """Read the object that stands for one.

        Raises:
            ValueError: it is none.
        """
        if not isinstance(value, Mapping) or set(value) != _KEYS or value["schema"] != SCHEMA:
            raise ValueError("it is no statement of this version")
        rules = value["rules"]
        texts = [value[name] for name in ("change_id", "policy", "reason", "by", "at")]
        if not isinstance(rules, list) or not all(isinstance(text, str) for text in [*rules, *texts]):
            raise ValueError("a value is no text")
        change_id, policy, reason, by, at = texts
        return cls(change_id, policy, tuple(rules), reason, by, at)


@dataclass(frozen=True, slots=True)
class Signed:
    """A statement with an SSH signature (armoured, as `ssh-keygen -Y sign` writes it), not yet verified.

    Raises:
        ValueError: the signature has not that form.
    """

    statement: Statement
    signature: str

    def __post_init__(self) -> None:
        if not _SIGNATURE.fullmatch(self.signature):
            raise ValueError("the signature is no SSH signature")

    def to_line(self) -> bytes:
        """Write it as one line of a note, LF included."""
        return _canonical({"statement": self.statement.plain(), "signature": self.signature}) + b"\n"


def read_lines(raw: bytes) -> tuple[list[Signed], int]:
    """Read a note: its signed statements, and how many of its lines are none."""
    # Bounded before it is parsed: whoever may push a note may write what they like into it.
    lines = [line for line in raw.split(b"\n") if line.strip()]
    found: list[Signed] = []
    for line in lines[:MOST_LINES]:
        try:
            found.append(_signed(line))
        except (ValueError, RecursionError):
            continue
    return found, len(lines) - len(found)


def _signed(line: bytes) -> Signed:
    if len(line) > MOST_LINE:
        raise ValueError("it is too long")
    value = json.loads(line)
    if not isinstance(value, dict) or set(value) != {"statement", "signature"}:
        raise ValueError("it is no signed statement")
    signature = value["signature"]
    if not isinstance(signature, str):
        raise ValueError("it has no signature")
    return Signed(Statement.from_plain(value["statement"]), signature)


def _canonical(value: Mapping[str, Json]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


class LocalApprovals:
    """The approvals without a signature, which hold on this machine alone: a chain of its own.

    Args:
        common_dir: git's common directory; nothing is made in it before the first approval.
    """

    def __init__(self, common_dir: str) -> None:
        self.path = Path(common_dir, "patchgate", "approvals.jsonl")

    def add(self, statement: Statement) -> str | None:
        """Add one, on the disk when this returns; None, or one sentence to warn with.

        Raises:
            UndecidedError: it could not be written.
        """
        aside: list[Path] = []
        try:
            chain.append(self.path, {"statement": statement.plain()}, on_torn=aside.append)
        except OSError as error:
            raise UndecidedError(
                f"the approval could not be written ({self.path.name}: {error.strerror or error})",
                "make room or mend the folder's permissions, then approve again",
            ) from error
        if aside:
            return f"the last approval was cut short by a crash and is set aside in {aside[0].name}"
        return None

    def read(self) -> tuple[list[Statement], str | None]:
        """Read them, oldest first; beside them one sentence where the file could not be read to its end."""
        found: list[Statement] = []
        try:
            for record in chain.read(self.path):
                try:
                    found.append(Statement.from_plain(record.event.get("statement")))
                except ValueError:
                    continue
        except UndecidedError as error:
            return found, f"some approvals of this machine do not count: {error.message}"
        except OSError as error:
            return found, f"approvals of this machine do not count: {error.strerror or error}"
        return found, None
