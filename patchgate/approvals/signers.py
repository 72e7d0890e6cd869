"""Who made a signature: asked of `ssh-keygen`, against the signers that a tree names.

Decides that a signature counts where ssh-keygen, run as git runs it for signed commits, finds a principal of
`.patchgate/allowed_signers` who may sign in the namespace `patchgate` at this moment. The time is now and not
the statement's own, which its signer could have dated back. Sources: ssh-keygen(1), ALLOWED SIGNERS.

Only the plain `ssh-keygen` on PATH is run; `gpg.ssh.program` is a repository's to set, and is not read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from patchgate.approvals.approvals import Signed
from patchgate.check.cases import BUILT_IN, OWN_POLICY
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.policy.control import ALLOWED_SIGNERS
from patchgate.process import Completed, run
from patchgate.report.verdict import ChangeVerdict

NAMESPACE = "patchgate"
SSH_KEYGEN = "ssh-keygen"
_MOST_SIGNERS = 1 << 20
_SECONDS = 30.0
_MOST_PRINCIPALS = 20
_PATTERN = re.compile(r"[*?!]")
_ADDRESS = re.compile(r"<([^<>\s]+)>$")


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a signature: the principal who made it, or None and half a sentence on why not."""

    principal: str | None
    why: str = ""


def base_tree(objects: Objects, change: ChangeVerdict) -> str | None:
    """Find the tree whose signers count for a change; None where that is not known.

    It is the one that holds the policy which judged, or at a push that of a commit which is there already.

    Raises:
        UndecidedError: git could not answer.
    """
    if change.policy.tree is not None:
        return change.policy.tree
    commit = change.source.base_commit
    place = change.policy.origin.rpartition(":")[0] or change.policy.origin
    # A policy from elsewhere names its tree. Never guess: the parent's signers may be in the same push.
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


def check_signature(signed: Signed, signers: bytes, environment: Mapping[str, str]) -> Checked:
    """Find the principal who made a signature.

    Args:
        signed: the statement and its signature.
        signers: the content of `.patchgate/allowed_signers` of the base.
        environment: the repository's, of which a child gets what has nothing to do with git.

    Raises:
        UndecidedError: there is no ssh-keygen, or it did not end.
    """
    env = without_git(environment)
    with tempfile.TemporaryDirectory(prefix="patchgate-") as folder:
        for name, content in (("signers", signers), ("signature", signed.signature.encode("ascii"))):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)

        def ask(*arguments: str) -> Completed:
            files = ("-s", "signature", "-f", "signers")
            return run(
                [SSH_KEYGEN, "-Y", *arguments, *files],
                cwd=folder,
                env=env,
                stdin=signed.statement.to_bytes(),
                seconds=_SECONDS,
                max_output=1 << 20,
            )

        found = ask("find-principals")
        principals = [line for line in found.out.decode("utf-8", "surrogateescape").split("\n") if line]
        if found.code != 0 or not principals:
            return Checked(None, _not_good(found))
        why = f"{ALLOWED_SIGNERS.quoted} names only patterns for its key, and not who says it"
        for principal in _candidates(signed.statement.by, principals):
            done = ask("verify", "-n", NAMESPACE, "-I", principal)
            if done.code == 0:
                return Checked(principal)
            why = _not_good(done)
        return Checked(None, why)


def _candidates(by: str, principals: list[str]) -> list[str]:
    """Name whom to verify; of a pattern only the address that the statement names, or nobody is named."""
    address = _ADDRESS.search(by)
    exact = [each for each in principals if not _PATTERN.search(each)]
    own = [address.group(1)] if address is not None and len(exact) < len(principals) else []
    return [*own, *exact][:_MOST_PRINCIPALS]


def without_git(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out what is git's: ssh-keygen gets the path, the home and the locale."""
    return {name: text for name, text in environment.items() if not name.startswith("GIT_")}


def _not_good(done: Completed) -> str:
    """Say why a signature is not good: the first line of ssh-keygen's complaint, the others only repeat."""
    lines = [line for line in (done.err + b"\n" + done.out).split(b"\n") if line.strip()]
    said = printable(lines[0].strip(), 200) if lines else f"exit code {done.code}"
    return f"its signature is not good by {ALLOWED_SIGNERS.quoted} ({said})"


def complained(error: UndecidedError) -> str:
    """Tell an error of running ssh-keygen as half a sentence."""
    return error.message if error.hint is None else f"{error.message}; {error.hint}"
