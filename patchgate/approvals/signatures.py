"""Sign an approval with an SSH key, and check who signed one.

A signature counts if ssh-keygen finds a principal of `.patchgate/allowed_signers` who may sign now
(ssh-keygen(1), ALLOWED SIGNERS). The program is the one on PATH: `gpg.ssh.program` is a repository's to set.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping

from patchgate.approvals.approvals import SignedStatement, Statement
from patchgate.approvals.signers import is_gpg_key
from patchgate.check.judging_policy import BUILT_IN, OWN_POLICY
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import ALLOWED_SIGNERS
from patchgate.process.child import Completed, run
from patchgate.report.verdict import ChangeVerdict
from patchgate.values import dataclass

_NAMESPACE = "patchgate"
_MAGIC = b"SSHSIG"
_SSH_KEYGEN = "ssh-keygen"
_SECONDS = 30.0
_LEAST_SECONDS = 0.1
_MOST_PRINCIPALS = 20
# One that is not looked at may be who tells two people apart.
_TOO_MANY = f"{ALLOWED_SIGNERS.quoted} has more than {_MOST_PRINCIPALS} principals for its key"
_PATTERN = re.compile(r"[*?!]")
_BYTE_PATTERN = re.compile(rb"[*?]")
_PRINCIPALS = re.compile(rb'[ \t]*("[^"]*"|[^ \t"]+)(?=[ \t])')
# The last word: other words may be those of a principal. Source: OpenSSH, sig_verify of ssh-keygen.c.
_FINGERPRINT = re.compile(rb" key (SHA256:[A-Za-z0-9+/]{43})\s*\Z")
_ADDRESS = re.compile(r"<([^<>\s]+)>$")
_HINT = "git config user.signingKey ~/.ssh/id_ed25519.pub (a path, or key:: and the public key)"
_KINDS = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


@dataclass(frozen=True, slots=True)
class SignatureCheck:
    """The result of a signature check: the principal who made it, or None and the reason.

    `key` is the fingerprint of the key, of a certificate that of the key which it certifies. `principals` are
    all that the signers' file names for it; none for a pattern, which names nobody.
    """

    principal: str | None
    why: str = ""
    key: str = ""
    principals: tuple[str, ...] = ()


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


def check_signature(
    signed: SignedStatement, signers: bytes, environment: Mapping[str, str], seconds: float = _SECONDS
) -> SignatureCheck:
    """Find the principal who made a signature.

    Args:
        signed: the statement and its signature.
        signers: the content of `.patchgate/allowed_signers` of the base.
        environment: the repository's; a child gets it without git's variables.
        seconds: how long it may take.

    Raises:
        UndecidedError: ssh-keygen is missing, did not end in time, or does not name the key.
    """
    end = time.monotonic() + seconds
    env = _without_git(environment)
    # Imported where it is used, as below: a refusal without any approval needs neither.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        lists = (("signers", signers), ("exact", _without_patterns(signers)))
        for name, content in (*lists, ("signature", signed.signature.encode("ascii"))):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)

        def ask(*arguments: str, file: str = "signers") -> Completed:
            files = ("-s", "signature", "-f", file)
            return run(
                [_SSH_KEYGEN, "-Y", *arguments, *files],
                cwd=folder,
                env=env,
                stdin=signed.statement.to_bytes(),
                seconds=max(end - time.monotonic(), _LEAST_SECONDS),
                max_output=1 << 20,
            )

        found = ask("find-principals")
        principals = [line for line in found.out.decode("utf-8", "surrogateescape").split("\n") if line]
        if found.code != 0 or not principals:
            return SignatureCheck(None, _not_good(found))
        why = f"{ALLOWED_SIGNERS.quoted} has only patterns for its key, so the signer is not known"
        exact = {name for each in principals for name in each.split(",") if not _PATTERN.search(name)}
        valid, named, key = list[str](), list[str](), ""
        candidates = _candidates(signed.statement.by, principals)
        if len(candidates) > _MOST_PRINCIPALS:
            return SignatureCheck(None, _TOO_MANY)
        for principal in candidates:
            done = ask("verify", "-n", _NAMESPACE, "-I", principal)
            if done.code != 0:
                why = _not_good(done)
                continue
            key = _fingerprint(done)
            valid.append(principal)
            # A line with a pattern may allow what the line that names the person does not.
            is_named = principal in exact
            if is_named and ask("verify", "-n", _NAMESPACE, "-I", principal, file="exact").code == 0:
                named.append(principal)
        return SignatureCheck(valid[0], "", key, tuple(named)) if valid else SignatureCheck(None, why)


def _without_patterns(signers: bytes) -> bytes:
    """Return the lines of a file of signers without the principals that are patterns."""
    lines = []
    for line in signers.split(b"\n"):
        # In quotes, a comment would be a line.
        found = None if line.lstrip().startswith(b"#") else _PRINCIPALS.match(line)
        names = found[1].strip(b'"').split(b",") if found is not None else []
        kept = [name for name in names if name.startswith(b"!") or not _BYTE_PATTERN.search(name)]
        if found is not None and any(not name.startswith(b"!") for name in kept):
            lines.append(b'"' + b",".join(kept) + b'"' + line[found.end() :])
    return b"".join(line + b"\n" for line in lines)


def public_key_of(signature: str) -> bytes:
    """Return the public key in a signature whose form is right; empty if it has none.

    Source: OpenSSH, PROTOCOL.sshsig: the magic word, a version, then the key as a string with its length.
    """
    import base64

    try:
        raw = base64.b64decode("".join(signature.split("\n")[1:-2]), validate=True)
    except ValueError:
        return b""
    start = len(_MAGIC) + 8
    length = int.from_bytes(raw[len(_MAGIC) + 4 : start], "big")
    key = raw[start : start + length]
    return key if raw.startswith(_MAGIC) and len(key) == length else b""


def _fingerprint(verified: Completed) -> str:
    """Return the fingerprint of the key of a good signature, as ssh-keygen names it: one key has one.

    What a signature says of its key is not signed, and may be written in several ways.

    Raises:
        UndecidedError: ssh-keygen names none.
    """
    found = _FINGERPRINT.search(verified.out)
    if found is None:
        raise UndecidedError("ssh-keygen does not say which key made a good signature", "update OpenSSH")
    return found[1].decode("ascii")


def _candidates(by: str, principals: list[str]) -> list[str]:
    """List the principals to verify; for a pattern only the address in the statement."""
    address = _ADDRESS.search(by)
    exact = [name for each in principals for name in each.split(",") if not _PATTERN.search(name)]
    own = [address.group(1)] if address is not None and len(exact) < len(principals) else []
    return list(dict.fromkeys([*exact, *own]))


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
        UsageError: as for `sign_bytes`.
        UndecidedError: as for `sign_bytes`.
    """
    made = sign_bytes(repository, statement.to_bytes(), _NAMESPACE, agent)
    try:
        return SignedStatement(statement, made)
    except ValueError as error:
        raise UndecidedError(f"ssh-keygen failed: {error}", _HINT) from error


def sign_bytes(repository: Repository, content: bytes, namespace: str, agent: str | None) -> str:
    """Sign bytes with `user.signingKey`; return the armoured signature (OpenSSH, PROTOCOL.sshsig).

    Args:
        repository: whose config names the key.
        content: what is signed.
        namespace: what the signature is for.
        agent: the socket of ssh-agent, if there is one.

    Raises:
        UsageError: no key is configured, or its file does not exist.
        UndecidedError: ssh-keygen is missing, or could not sign.
    """
    named = _key(repository)
    environment = _without_git(repository.environment)
    if agent:
        environment["SSH_AUTH_SOCK"] = agent
    import tempfile

    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        place = named
        if (literal := _literal(named)) is not None:
            place = os.path.join(folder, "key.pub")
            with open(place, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(literal + "\n")
        elif is_gpg_key(named) and not os.path.isfile(place):
            raise UsageError("user.signingKey names a key of GPG; patchgate signs with SSH keys", _HINT)
        elif not os.path.isfile(place):
            raise UsageError(f"user.signingKey names no file: {printable(named, 200)}", _HINT)
        # Without a file's name it signs what it reads. It has no terminal, so it cannot ask for a passphrase.
        done = run(
            [_SSH_KEYGEN, "-Y", "sign", "-n", namespace, "-f", place],
            cwd=folder,
            env=environment,
            stdin=content,
            max_output=1 << 16,
        )
    if done.code == 0:
        return done.out.decode("ascii", "replace").replace("\r\n", "\n")
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
    """Return the public key in a setting; None if the setting is a path."""
    if named.startswith("key::"):
        return named.removeprefix("key::")
    return named if named.startswith(_KINDS) and " " in named else None
