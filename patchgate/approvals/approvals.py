"""Approvals of one change under one policy: statements, SSH signatures, and the local store.

A line of a note is `{"signature": …, "statement": {…}}` in canonical JSON, so that `git notes merge -s
cat_sort_uniq` joins notes; any other line does not count. A signature counts where ssh-keygen finds
a principal of `.patchgate/allowed_signers` who may sign now (ssh-keygen(1), ALLOWED SIGNERS). The program is
the one on PATH: `gpg.ssh.program` is a repository's to set.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchgate.check.judging_policy import BUILT_IN, OWN_POLICY
from patchgate.check.message import MOST_REASON
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import is_printable, printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.policy.file_kinds import ALLOWED_SIGNERS
from patchgate.process import Completed, run
from patchgate.report.verdict import ChangeVerdict
from patchgate.storage import hash_chain
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
_NAMESPACE = "patchgate"
_SSH_KEYGEN = "ssh-keygen"
_MOST_SIGNERS = 1 << 20
_SECONDS = 30.0
_MOST_PRINCIPALS = 20
_PATTERN = re.compile(r"[*?!]")
_ADDRESS = re.compile(r"<([^<>\s]+)>$")
_HINT = "git config user.signingKey ~/.ssh/id_ed25519.pub (a path, or key:: and the public key)"
_KINDS = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")
_IDENTITY = tuple(f"GIT_{role}_{key}" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL"))
_STAMP = re.compile(r" -?\d+ [+-]\d{4}$")


@dataclass(frozen=True, slots=True)
class Statement:
    """A maintainer's exception: these rules do not refuse this change under this policy.

    `change_id` and `policy` are digests (`sha256:…`), `by` is the claimed author (`Name <address>`), `at`
    is in UTC, ISO 8601, whole seconds.

    Raises:
        ValueError: a value is wrong; the message says which.
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
                raise ValueError(f"{name} is not a digest")
        if not self.rules or len(self.rules) > _MOST_RULES or not all(map(_RULE.fullmatch, self.rules)):
            raise ValueError("rules are not names of rules")
        if tuple(sorted(set(self.rules))) != self.rules:
            raise ValueError("rules are not sorted, each once")
        for name, text, most in (("reason", self.reason, MOST_REASON), ("by", self.by, _MOST_WHO)):
            if not 0 < len(text) <= most or not all(map(is_printable, text)) or text != text.strip():
                raise ValueError(f"{name} is empty, too long, or cannot be printed")
        if not _AT.fullmatch(self.at):
            raise ValueError("at is not a time")

    def plain(self) -> dict[str, Json]:
        """Return it as a JSON object."""
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
        """Read one from a JSON object.

        Raises:
            ValueError: it is not a statement.
        """
        if not isinstance(value, Mapping) or set(value) != _KEYS or value["schema"] != SCHEMA:
            raise ValueError("it is not a statement of this version")
        rules = value["rules"]
        texts = [value[name] for name in ("change_id", "policy", "reason", "by", "at")]
        if not isinstance(rules, list) or not all(isinstance(text, str) for text in [*rules, *texts]):
            raise ValueError("a value is not text")
        change_id, policy, reason, by, at = texts
        return cls(change_id=change_id, policy=policy, rules=tuple(rules), reason=reason, by=by, at=at)


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


@dataclass(frozen=True, slots=True)
class SignatureCheck:
    """The result of a signature check: the principal who made it, or None and the reason."""

    principal: str | None
    why: str = ""


def base_tree(objects: Objects, change: ChangeVerdict) -> str | None:
    """Find the tree whose signers count for a change; None where that is not known.

    It is the tree of the policy that judged, or at a push that of a commit which the remote has already.

    Raises:
        UndecidedError: git could not answer.
    """
    if change.policy.tree is not None:
        return change.policy.tree
    commit = change.source.base_commit
    place = change.policy.origin.rpartition(":")[0] or change.policy.origin
    # A policy of another revision has its tree. Do not guess: the parent's signers may be in the same push.
    if commit is None or place not in {"HEAD", commit[:12], OWN_POLICY, BUILT_IN}:
        return None
    header = objects.header(commit + "^{tree}")
    return header.oid if header is not None else None


def signers_of(objects: Objects, tree: str) -> bytes | None:
    """Read the signers that a tree names; None where it names none.

    Raises:
        UndecidedError: an object is missing, or the file has more than 1 MiB.
    """
    entry = objects.entry(tree, ALLOWED_SIGNERS.raw)
    return objects.read(entry.oid, _MOST_SIGNERS) if entry is not None and entry.is_file else None


def check_signature(
    signed: SignedStatement, signers: bytes, environment: Mapping[str, str]
) -> SignatureCheck:
    """Find the principal who made a signature.

    Args:
        signed: the statement and its signature.
        signers: the content of `.patchgate/allowed_signers` of the base.
        environment: the repository's, of which a child gets what has nothing to do with git.

    Raises:
        UndecidedError: ssh-keygen is missing, or did not end.
    """
    env = _without_git(environment)
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        for name, content in (("signers", signers), ("signature", signed.signature.encode("ascii"))):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)

        def ask(*arguments: str) -> Completed:
            files = ("-s", "signature", "-f", "signers")
            return run(
                [_SSH_KEYGEN, "-Y", *arguments, *files],
                cwd=folder,
                env=env,
                stdin=signed.statement.to_bytes(),
                seconds=_SECONDS,
                max_output=1 << 20,
            )

        found = ask("find-principals")
        principals = [line for line in found.out.decode("utf-8", "surrogateescape").split("\n") if line]
        if found.code != 0 or not principals:
            return SignatureCheck(None, _not_good(found))
        why = f"{ALLOWED_SIGNERS.quoted} has only patterns for its key, so the signer is not known"
        for principal in _candidates(signed.statement.by, principals):
            done = ask("verify", "-n", _NAMESPACE, "-I", principal)
            if done.code == 0:
                return SignatureCheck(principal)
            why = _not_good(done)
        return SignatureCheck(None, why)


def _candidates(by: str, principals: list[str]) -> list[str]:
    """List the principals to verify; for a pattern only the address in the statement."""
    address = _ADDRESS.search(by)
    exact = [each for each in principals if not _PATTERN.search(each)]
    own = [address.group(1)] if address is not None and len(exact) < len(principals) else []
    return [*own, *exact][:_MOST_PRINCIPALS]


def _without_git(environment: Mapping[str, str]) -> dict[str, str]:
    """Remove git's variables: ssh-keygen gets the path, the home and the locale."""
    return {name: text for name, text in environment.items() if not name.startswith("GIT_")}


def _not_good(done: Completed) -> str:
    """Say why a signature is not valid: the first line of ssh-keygen's error; the others only repeat it."""
    lines = [line for line in (done.err + b"\n" + done.out).split(b"\n") if line.strip()]
    said = printable(lines[0].strip(), 200) if lines else f"exit code {done.code}"
    return f"its signature is not valid by {ALLOWED_SIGNERS.quoted} ({said})"


def sign(repository: Repository, statement: Statement, agent: str | None) -> SignedStatement:
    """Sign a statement in the namespace `patchgate`.

    Args:
        repository: whose config names the key.
        statement: what is signed.
        agent: the socket of ssh-agent, if there is one.

    Raises:
        UsageError: no key is configured, or its file does not exist.
        UndecidedError: ssh-keygen is missing, or could not sign.
    """
    named = _key(repository)
    environment = _without_git(repository.environment)
    if agent:
        environment["SSH_AUTH_SOCK"] = agent
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        place = named
        if (literal := _literal(named)) is not None:
            place = os.path.join(folder, "key.pub")
            with open(place, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(literal + "\n")
        elif not os.path.isfile(place):
            raise UsageError(f"user.signingKey names no file: {printable(named, 200)}", _HINT)
        # Without a file's name it signs what it reads. It has no terminal, so it cannot ask for a passphrase.
        done = run(
            [_SSH_KEYGEN, "-Y", "sign", "-n", _NAMESPACE, "-f", place],
            cwd=folder,
            env=environment,
            stdin=statement.to_bytes(),
            max_output=1 << 16,
        )
    if done.code == 0:
        try:
            return SignedStatement(statement, done.out.decode("ascii", "replace").replace("\r\n", "\n"))
        except ValueError as error:
            raise UndecidedError(f"ssh-keygen failed: {error}", _HINT) from error
    said = [line.strip() for line in done.err.split(b"\n") if line.strip()]
    why = printable(said[-1], 200) if said else f"exit code {done.code}"
    raise UndecidedError(
        f"ssh-keygen could not sign: {why}",
        "load the key first: ssh-add FILE; or name another: git config user.signingKey FILE",
    )


def _key(repository: Repository) -> str:
    done = repository.git("config", "--type=path", "--null", "--get", "user.signingKey", answers=(0, 1))
    named = os.fsdecode(done.out.rstrip(b"\0"))
    if done.code != 0 or not named:
        raise UsageError("user.signingKey is not set", _HINT)
    if _literal(named) is not None:
        return named
    # As for git, a relative path starts at the top of the working tree.
    return os.path.join(repository.work_tree or repository.git_dir, named)


def _literal(named: str) -> str | None:
    """Return the public key in a setting; None where the setting is a path."""
    if named.startswith("key::"):
        return named.removeprefix("key::")
    return named if named.startswith(_KINDS) and " " in named else None


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
