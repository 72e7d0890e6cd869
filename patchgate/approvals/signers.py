"""The signers that a server or the command line of CI names: SSH keys, or files of them.

A file is an allowed_signers file, or a public key as ssh-keygen writes it. Source: ssh-keygen(1), ALLOWED
SIGNERS; RFC 4253, section 6.6, for the form of a key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.policy.file_kinds import ALLOWED_SIGNERS
from patchgate.storage.atomic_write import write_atomically

SERVER_SIGNERS = "patchgate/allowed_signers"
MOST_SIGNERS = 1 << 20
_KINDS = r"(?:ssh-|ecdsa-|sk-ssh-|sk-ecdsa-)[A-Za-z0-9@.-]+"
_KEY = re.compile(rf"({_KINDS})[ \t]+([A-Za-z0-9+/]+=*)(?:[ \t]+(.*))?")
# Principals, options if there are any, then the key; a quoted option may contain blanks.
_LINE = re.compile(rf'[^\s#]+[ \t]+(?:(?!{_KINDS}[ \t])(?:[^\s"]|"[^"]*")+[ \t]+)?({_KINDS}[ \t]+.*)')
_PRINCIPAL = re.compile(r"[^\s,*?!#\"\x00-\x20\x7f]{1,255}")
_GPG = re.compile(r"(?:0x)?[0-9A-Fa-f]{8,40}|-----BEGIN PGP .*", re.DOTALL)
_LIKE = "give a file, or a public key like 'ssh-ed25519 AAAA… alice@example.com'"


def read_signers(named: Sequence[str]) -> bytes:
    """Read keys, several on a line each, and files of them into the form of one allowed_signers file.

    Raises:
        UsageError: one is neither an SSH key nor a file of them.
    """
    return b"".join(_read(text) for text in named)


def read_server_signers(repository: Repository) -> bytes:
    """Read the signers that `install --server --signer` named; empty if it named none.

    Raises:
        UndecidedError: the file cannot be read.
    """
    try:
        with open(os.path.join(repository.common_dir, SERVER_SIGNERS), "rb") as file:
            return file.read(MOST_SIGNERS)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UndecidedError(
            f"the signers of this server cannot be read: {error.strerror}",
            "git patchgate install --server --signer KEY writes them again",
        ) from error


def write_server_signers(repository: Repository, signers: bytes) -> None:
    """Write the signers of this server, instead of those that it had.

    Raises:
        UndecidedError: they cannot be written.
    """
    place = Path(repository.common_dir, SERVER_SIGNERS)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(place, signers)
    except OSError as error:
        raise UndecidedError(
            f"the signers of this server could not be written: {error.strerror}",
            "free disk space or fix the folder's permissions, then install again",
        ) from error


def require_outside(repository: Repository, named: Sequence[str]) -> None:
    """Refuse a file of signers in the working tree: whoever may change it would choose them.

    Args:
        named: the values of --signer.

    Raises:
        UsageError: there is such a file.
    """
    root = repository.work_tree or repository.git_dir
    for text in named:
        if _are_keys(text) or "\0" in text or not os.path.lexists(text):
            continue
        # A symlink of the working tree counts too, wherever it leads.
        places = ((root, os.path.abspath(text)), (os.path.realpath(root), os.path.realpath(text)))
        if any(_is_in(place, above) for above, place in places):
            raise UsageError(
                f"{printable(text, 200)} lies in the working tree, so whoever changes it chooses who signs",
                "give the keys themselves, or a file outside of the repository",
            )


def _is_in(place: str, folder: str) -> bool:
    return place.startswith(os.path.join(folder, ""))


def signers_of(objects: Objects, tree: str) -> bytes | None:
    """Read the signers that a tree names; None if it names none.

    Raises:
        UndecidedError: an object is missing, or the file has more than 1 MiB.
    """
    entry = objects.entry(tree, ALLOWED_SIGNERS.raw)
    return objects.read(entry.oid, MOST_SIGNERS) if entry is not None and entry.is_file else None


def has_signers(objects: Objects, tree: str) -> bool:
    """Return whether a tree names signers."""
    entry = objects.entry(tree, ALLOWED_SIGNERS.raw)
    return entry is not None and entry.is_file


def is_gpg_key(text: str) -> bool:
    """Return whether a text names or is a key of GPG, which cannot sign approvals."""
    return _GPG.fullmatch(text.strip()) is not None


def _are_keys(text: str) -> bool:
    """Return whether a value of --signer has a key, or a line of an allowed_signers file."""
    lines = [line.strip() for line in text.split("\n")]
    return any(_KEY.fullmatch(line) or _LINE.fullmatch(line) for line in lines)


def _read(text: str) -> bytes:
    if _are_keys(text):
        return _lines(text, "--signer")
    if is_gpg_key(text) and not os.path.lexists(text):
        raise _gpg(text)
    try:
        with open(text, "rb") as file:
            raw = file.read(MOST_SIGNERS + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a path"
        raise UsageError(f"the signers {printable(text, 200)} cannot be read: {why}", _LIKE) from error
    name = printable(text, 200)
    if len(raw) > MOST_SIGNERS:
        raise UsageError(f"{name} has more than 1 MiB", _LIKE)
    if raw.lstrip().startswith(b"-----BEGIN PGP"):
        raise _gpg(text)
    found = _lines(raw.decode("utf-8", "surrogateescape"), name)
    if not found:
        raise UsageError(f"{name} names no signer", _LIKE)
    return found


def _lines(text: str, name: str) -> bytes:
    # As ssh-keygen reads it: a comment may have what Python takes for the end of a line.
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), 1))
    named = ((number, line) for number, line in lines if line and not line.startswith("#"))
    return b"".join(_line(line, f"{name}:{number}") for number, line in named)


def _line(text: str, place: str) -> bytes:
    """Return a line of an allowed_signers file; a bare key gets its comment as principal.

    Raises:
        UsageError: it is neither.
    """
    bare = _KEY.fullmatch(text)
    if bare is not None:
        comment = bare[3] or ""
        principal = comment if _PRINCIPAL.fullmatch(comment) else "server"
        text = f"{principal} {bare[1]} {bare[2]}"
    line = _LINE.fullmatch(text)
    key = _KEY.fullmatch(line[1]) if line is not None else None
    if key is None or not _is_key(key[1], key[2]):
        raise UsageError(f"{place}: this is not an SSH key, nor a line of an allowed_signers file", _LIKE)
    return text.encode("utf-8", "surrogateescape") + b"\n"


def _is_key(kind: str, written: str) -> bool:
    """Return whether a key's base64 begins with the name of its kind."""
    import base64

    try:
        raw = base64.b64decode(written, validate=True)
    except ValueError:
        return False
    return raw[4 : 4 + int.from_bytes(raw[:4], "big")] == kind.encode("ascii")


def _gpg(text: str) -> UsageError:
    return UsageError(f"{printable(text, 60)} is a key of GPG, which cannot sign approvals", _LIKE)
