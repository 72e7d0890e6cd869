"""Approvals of one change under one policy: statements, signed statements, and the local store.

A line of a note is `{"signature": …, "statement": {…}}` in canonical JSON, so that `git notes merge -s
cat_sort_uniq` joins notes; any other line does not count. `signatures` makes and checks the signature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from patchgate.check.message_rules import MOST_REASON
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import is_printable, printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.storage import hash_chain
from patchgate.storage.record import Json
from patchgate.values import dataclass

SCHEMA = "patchgate.approval/1"
BOUND_SCHEMA = "patchgate.approval/2"
MOST_LINE = 64 << 10
MOST_LINES = 1000

_MOST_WHO = 300
_MOST_RULES = 200
_KEYS = frozenset({"at", "by", "change_id", "policy", "reason", "rules", "schema"})
_BOUND = ("repository", "ref", "rules_state", "expires")
_MOST_BOUND = 300
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_RULE = re.compile(r"[a-z][a-z0-9-]{0,63}")
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
# RFC 4716's form as ssh-keygen writes it (PROTOCOL.sshsig); a signature by the largest RSA key has 3 KiB.
_SIGNATURE = re.compile(
    r"-----BEGIN SSH SIGNATURE-----\n(?:[A-Za-z0-9+/=]{1,76}\n){1,200}-----END SSH SIGNATURE-----\n"
)
_IDENTITY = tuple(f"GIT_{role}_{key}" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL"))
_STAMP = re.compile(r" -?\d+ [+-]\d{4}$")


@dataclass(frozen=True, slots=True)
class Statement:
    """A maintainer's exception: these rules do not refuse this change under this policy.

    `change_id` and `policy` are digests (`sha256:…`), `by` is the claimed author (`Name <address>`), `at`
    and `expires` are in UTC, ISO 8601, whole seconds. `repository` is the `[governance] id`, `ref` the full
    name of the branch that gets the change, `rules_state` the digest of the commits there that have changed
    control files. None: the approval is not bound to it; one bound to nothing has the form's first version.

    Raises:
        ValueError: a value is wrong; the message says which.
    """

    change_id: str
    policy: str
    rules: tuple[str, ...]
    reason: str
    by: str
    at: str
    repository: str | None = None
    ref: str | None = None
    rules_state: str | None = None
    expires: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("change_id", self.change_id), ("policy", self.policy)):
            if not _DIGEST.fullmatch(text):
                raise ValueError(f"{name} is not a digest")
        if not self.rules or len(self.rules) > _MOST_RULES or not all(map(_RULE.fullmatch, self.rules)):
            raise ValueError("rules are not names of rules")
        if tuple(sorted(set(self.rules))) != self.rules:
            raise ValueError("rules are not sorted, each once")
        for name, text, most in (("reason", self.reason, MOST_REASON), ("by", self.by, _MOST_WHO)):
            if not 0 < len(text) <= most or not all(map(is_printable, text)) or text != text.strip():
                raise ValueError(f"{name} is empty, too long, or cannot be printed")
        for name, at in (("at", self.at), ("expires", self.expires or self.at)):
            if not _AT.fullmatch(at):
                raise ValueError(f"{name} is not a time")
        for bound in (self.repository, self.ref, self.rules_state):
            if bound is not None and (not 0 < len(bound) <= _MOST_BOUND or not all(map(is_printable, bound))):
                raise ValueError("what it is bound to is empty, too long, or cannot be printed")

    def is_for(self, ref: str | None) -> bool:
        """Return whether it may count for a branch, by its full name; None is an unknown one."""
        return self.ref in (None, ref)

    def plain(self) -> dict[str, Json]:
        """Return it as a JSON object."""
        bound = {name: getattr(self, name) for name in _BOUND}
        is_bound = any(value is not None for value in bound.values())
        return {
            **(bound if is_bound else {}),
            "schema": BOUND_SCHEMA if is_bound else SCHEMA,
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
        """Read one from a JSON object.

        Raises:
            ValueError: it is not a statement.
        """
        if not isinstance(value, Mapping):
            raise ValueError("it is not a statement")
        is_bound = value.get("schema") == BOUND_SCHEMA
        keys = _KEYS | set(_BOUND) if is_bound else _KEYS
        if set(value) != keys or value["schema"] != (BOUND_SCHEMA if is_bound else SCHEMA):
            raise ValueError("it is not a statement of a known version")
        bound = {name: value[name] for name in _BOUND} if is_bound else {}
        if not all(each is None or isinstance(each, str) for each in bound.values()):
            raise ValueError("a value is not text")
        rules = value["rules"]
        texts = [value[name] for name in ("change_id", "policy", "reason", "by", "at")]
        if not isinstance(rules, list) or not all(isinstance(text, str) for text in [*rules, *texts]):
            raise ValueError("a value is not text")
        change_id, policy, reason, by, at = texts
        return cls(
            change_id=change_id, policy=policy, rules=tuple(rules), reason=reason, by=by, at=at, **bound
        )


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A statement with an SSH signature (armoured, as `ssh-keygen -Y sign` writes it), not yet verified.

    Raises:
        ValueError: the signature has not that form.
    """

    statement: Statement
    signature: str

    def __post_init__(self) -> None:
        if not _SIGNATURE.fullmatch(self.signature):
            raise ValueError("the signature is not an SSH signature")

    def to_line(self) -> bytes:
        """Write it as one line of a note, LF included."""
        return _canonical({"statement": self.statement.plain(), "signature": self.signature}) + b"\n"


def read_lines(raw: bytes) -> tuple[list[SignedStatement], int]:
    """Read a note: its signed statements, and how many of its lines are not statements."""
    # Bounded before it is parsed: a pushed note can contain anything.
    lines = [line for line in raw.split(b"\n") if line.strip()]
    found: list[SignedStatement] = []
    for line in lines[:MOST_LINES]:
        try:
            found.append(_signed(line))
        except (ValueError, RecursionError):
            continue
    return found, len(lines) - len(found)


def _signed(line: bytes) -> SignedStatement:
    if len(line) > MOST_LINE:
        raise ValueError("it is too long")
    value = json.loads(line)
    if not isinstance(value, dict) or set(value) != {"statement", "signature"}:
        raise ValueError("it is not a signed statement")
    signature = value["signature"]
    if not isinstance(signature, str):
        raise ValueError("it has no signature")
    return SignedStatement(Statement.from_plain(value["statement"]), signature)


def _canonical(value: Mapping[str, Json]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


class LocalApprovals:
    """The approvals without a signature, which count only on this machine: a hash chain.

    Args:
        common_dir: git's common directory; nothing is made in it before the first approval.
    """

    def __init__(self, common_dir: str) -> None:
        self.path = Path(common_dir, "patchgate", "approvals.jsonl")

    def add(self, statement: Statement) -> str | None:
        """Add one, on the disk when this returns; return a warning or None.

        Raises:
            UndecidedError: it could not be written.
        """
        aside: list[Path] = []
        try:
            hash_chain.append(self.path, {"statement": statement.plain()}, on_torn=aside.append)
        except OSError as error:
            raise UndecidedError(
                f"the approval could not be written ({self.path.name}: {error.strerror or error})",
                "free disk space or fix the folder's permissions, then approve again",
            ) from error
        if aside:
            return f"a crash cut off the last approval; it was moved to {aside[0].name}"
        return None

    def read(self) -> tuple[list[Statement], str | None]:
        """Read them, oldest first, with a warning where the file could not be read to its end."""
        found: list[Statement] = []
        try:
            for record in hash_chain.read(self.path):
                try:
                    found.append(Statement.from_plain(record.event.get("statement")))
                except ValueError:
                    continue
        except UndecidedError as error:
            return found, f"some approvals of this machine do not count: {error.message}"
        except OSError as error:
            return found, f"approvals of this machine do not count: {error.strerror or error}"
        return found, None


def who_approves(repository: Repository, environ: Mapping[str, str]) -> str:
    """Ask git who commits here: `Name <address>`.

    Raises:
        UsageError: git does not know.
    """
    done = repository.git("var", "GIT_COMMITTER_IDENT", variables=identity(environ), answers=ANY_CODE)
    said = _STAMP.sub("", done.out.decode("utf-8", "surrogateescape").strip())
    who = printable(" ".join(said.split()), 280)
    if done.code != 0 or not who:
        raise UsageError("git does not know who you are", "git config user.name NAME, and user.email")
    return who


def identity(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment with which git names the author of a note."""
    return {name: environ[name] for name in _IDENTITY if environ.get(name)}
