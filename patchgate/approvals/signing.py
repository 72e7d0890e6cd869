"""Sign a statement by the SSH key that git signs with.

Decides which key that is: `user.signingKey`, a path or the public key itself (`key::…`), whose private half
ssh-agent holds. Only the plain `ssh-keygen` on PATH runs: `gpg.ssh.program` and `gpg.ssh.defaultKeyCommand`
of a repository's config name programs, and are not read. Source: git-config, `user.signingKey`.
"""

from __future__ import annotations

import os
import tempfile

from patchgate.approvals.approvals import Signed, Statement
from patchgate.approvals.signers import NAMESPACE, SSH_KEYGEN, without_git
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.process import run

AGENT = "SSH_AUTH_SOCK"
_HINT = "git config user.signingKey ~/.ssh/id_ed25519.pub (a path, or key:: and the public key)"
_KINDS = ("ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-")


def sign(repository: Repository, statement: Statement, agent: str | None) -> Signed:
    """Sign a statement in the namespace `patchgate`.

    Args:
        repository: whose config names the key.
        statement: what is signed.
        agent: the socket of ssh-agent, if there is one.

    Raises:
        UsageError: no key is named, or there is no such file.
        UndecidedError: ssh-keygen is missing, or could not sign.
    """
    named = _key(repository)
    environment = without_git(repository.environment)
    if agent:
        environment[AGENT] = agent
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
            [SSH_KEYGEN, "-Y", "sign", "-n", NAMESPACE, "-f", place],
            cwd=folder,
            env=environment,
            stdin=statement.to_bytes(),
            max_output=1 << 16,
        )
    if done.code == 0:
        try:
            return Signed(statement, done.out.decode("ascii", "replace").replace("\r\n", "\n"))
        except ValueError as error:
            raise UndecidedError(f"ssh-keygen answered with something else: {error}", _HINT) from error
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
        raise UsageError("git is told no key to sign with", _HINT)
    if _literal(named) is not None:
        return named
    # As for git, a relative path starts at the top of the working tree.
    return os.path.join(repository.work_tree or repository.git_dir, named)


def _literal(named: str) -> str | None:
    """Give the public key that a setting holds itself; None where it is a path."""
    if named.startswith("key::"):
        return named.removeprefix("key::")
    return named if named.startswith(_KINDS) and " " in named else None
