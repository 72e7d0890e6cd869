"""Real SSH keys, real terminals and hand-made notes, for the tests of approvals."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from patchgate.approvals.approvals import LocalApprovals, SignedStatement, Statement
from tests.world import EXECUTABLE, Answer, Repo

needs_ssh_keygen = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="this machine has no ssh-keygen"
)

BY = "A U Thor <author@example.com>"
AT = "2024-05-06T07:08:09Z"
REF = "refs/notes/patchgate-approvals"
SIGNERS = ".patchgate/allowed_signers"


@dataclass(frozen=True)
class Key:
    """A key in a file of its own."""

    path: Path

    @classmethod
    def make(cls, folder: Path, name: str = "key", passphrase: str = "", kind: str = "ed25519") -> Key:
        path = folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", path], check=True)
        return cls(path)

    @property
    def public(self) -> str:
        """The public key as one line: kind and base64."""
        text = self.path.with_name(self.path.name + ".pub").read_text(encoding="ascii")
        return " ".join(text.split()[:2])

    def allowed(self, principal: str = "author@example.com", options: str = "") -> str:
        """A line of an allowed_signers file for this key."""
        return " ".join(part for part in (principal, options, self.public) if part) + "\n"

    def sign(self, statement: Statement, namespace: str = "patchgate") -> SignedStatement:
        done = subprocess.run(
            ["ssh-keygen", "-Y", "sign", "-q", "-n", namespace, "-f", self.path],
            input=statement.to_bytes(),
            capture_output=True,
            check=True,
        )
        return SignedStatement(statement, done.stdout.decode("ascii"))


def statement_for(change: Mapping[str, Any], rules: Sequence[str] = (), **other: Any) -> Statement:
    """State that every error of a change, as a report has it in JSON, is approved."""
    refused = {each["rule"] for each in change["findings"] if each["level"] == "error"}
    made = Statement(
        change["change_id"],
        change["policy"]["digest"],
        tuple(sorted(rules or refused)),
        "vendored from upstream",
        BY,
        AT,
    )
    return replace(made, **other)


def approve_here(repo: Repo, statement: Statement) -> None:
    """Let a statement without a signature lie on this machine."""
    assert LocalApprovals(repo.common_dir).add(statement) is None


def elsewhere(repo: Repo, *arguments: str, **env: Any) -> Answer:
    """Check where approvals without a signature do not count."""
    return repo.check(*arguments, CI="true", **env)


def anchor(repo: Repo, change_id: str) -> str:
    """The object that notes about a change hang on, as git itself computes it."""
    return (
        repo.git("hash-object", "--stdin", stdin=f"patchgate.change {change_id}\n".encode()).decode().strip()
    )


def commit_note(repo: Repo, path: str, content: bytes, *, parent: str | None = None, **env: Any) -> str:
    """Make a commit of notes with one note at a path, by git's plumbing; return its id."""
    oid = repo.git("hash-object", "-w", "--stdin", stdin=content, **env).decode().strip()
    kind = "blob"
    mode = "100644"
    for name in reversed(path.split("/")):
        entry = f"{mode} {kind} {oid}\t{name}\n".encode()
        oid = repo.git("mktree", stdin=entry, **env).decode().strip()
        kind, mode = "tree", "040000"
    parents = ["-p", parent] if parent else []
    return repo.git("commit-tree", oid, *parents, "-m", "Notes", **env).decode().strip()


def put_note(repo: Repo, change_id: str, content: bytes, *, fanout: int = 0, ref: str = REF) -> str:
    """Put a note about a change under a ref that has no other; return its commit."""
    name = anchor(repo, change_id)
    parts = [name[2 * each : 2 * each + 2] for each in range(fanout)]
    commit = commit_note(repo, "/".join([*parts, name[2 * fanout :]]), content)
    repo.git("update-ref", ref, commit)
    return commit


def at_terminal(repo: Repo, *arguments: str, typed: bytes = b"yes\n", **env: Any) -> Answer:
    """Run `git-patchgate` with a terminal as standard input and error; what the terminal shows is `err`."""
    person, program = os.openpty()
    try:
        os.write(person, typed)
        done = subprocess.run(
            [EXECUTABLE, *arguments],
            cwd=repo.path,
            env=repo.env | env,
            stdin=program,
            stderr=program,
            stdout=subprocess.PIPE,
            check=False,
        )
        os.close(program)
        shown = b""
        try:
            while data := os.read(person, 65536):
                shown += data
        except OSError:
            # What Linux says instead of an end, when the other side of a terminal is closed.
            pass
    finally:
        os.close(person)
    text = shown.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return Answer(done.returncode, done.stdout.decode("utf-8"), text)
