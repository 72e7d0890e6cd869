"""The cache files of the fast path: their names and formats, and whether they are current. Writes nothing.

If one is missing, damaged or of another version, the full check runs, and writes it again.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from _imp import source_hash
from collections.abc import Mapping

import patchgate
from patchgate import __version__
from patchgate.git.model import Entry
from patchgate.values import dataclass

# Below `<git common dir>/patchgate/`:
#     fast/active                   MEANING VERSION INTERPRETER, one line
#     fast/VERSION/recognise.pyc    the recogniser, compiled
#     fast/VERSION/KEY              a compiled policy; KEY names both files of the root that can contain one
#     fast/VERSION/KEY-agent        the same, for the agent profile
MEANING = 1
"""The version of the protocol of shim and copy; with another number, a shim uses the full check."""
ACTIVE = "active"
COPY = "recognise.pyc"
_SEAL = 0x7061746368676174
_SEAL_BYTES = 8
# The header of compiled code that is bound to no file time (PEP 552, unchecked hash); ours has a seal there.
_FLAGS = (1).to_bytes(4, "little")
_HEADER_BYTES = 16
_MOST_READ = 1 << 20
_ENTRY = r"(?:none|[0-7]{6}\.(?:[0-9a-f]{64}|[0-9a-f]{40}))"
_POLICY = re.compile(f"{_ENTRY}-{_ENTRY}(?:-agent)?")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,99}")

Stamp = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Active:
    """What the shim reads: the version whose copy runs, and the interpreter."""

    version: str
    interpreter: str


def place_of(common_dir: str, *names: str) -> str:
    """Return the path of a file or folder of the fast path."""
    return os.path.join(common_dir, "patchgate", "fast", *names)


def is_version(name: str) -> bool:
    """Whether the name of a folder is a version."""
    return _VERSION.fullmatch(name) is not None


def is_policy(name: str) -> bool:
    """Whether the name of a file is that of a compiled policy."""
    return _POLICY.fullmatch(name) is not None


def active_line(interpreter: str) -> bytes:
    """Build the line that the shim reads, for this version."""
    return os.fsencode(f"{MEANING} {__version__} {interpreter}\n")


def active_in(common_dir: str) -> Active | None:
    """Read the line that the shim reads; None if it has another format.

    Raises:
        FileNotFoundError: the file is missing.
        OSError: it could not be read.
    """
    line = os.fsdecode(_content(place_of(common_dir, ACTIVE)))
    words = line.removesuffix("\n").split(" ", 2)
    is_whole = line.endswith("\n") and line.count("\n") == 1 and len(words) == 3
    if not (is_whole and words[0] == str(MEANING) and is_version(words[1]) and words[2].startswith("/")):
        return None
    return Active(words[1], words[2])


def recogniser() -> tuple[str, bytes]:
    """Read the source of the recogniser; return its name within the program, and its bytes.

    Raises:
        OSError: it is missing or unreadable.
    """
    name = os.path.join("hooks", "fast", "recognise.py")
    return f"patchgate/{name}", _content(os.path.join(os.path.dirname(_package()), name))


def sealed_copy(source: bytes, code: bytes) -> bytes:
    """Put a header before compiled code, which `is_whole_copy` verifies."""
    return _magic() + _FLAGS + source_hash(_SEAL, source + code) + code


def is_whole_copy(content: bytes, magic: bytes | None = None) -> bool:
    """Whether this is an intact copy, made from the source of this patchgate.

    Args:
        content: the whole file.
        magic: the magic number of the Python that runs the copy; None for the one that runs this.

    Raises:
        OSError: the source cannot be read.
    """
    header, code = content[:_HEADER_BYTES], content[_HEADER_BYTES:]
    if not code or header[:8] != (magic or _magic()) + _FLAGS:
        return False
    return header[8:] == source_hash(_SEAL, recogniser()[1] + code)


def read_copy(common_dir: str, version: str) -> bytes:
    """Read a version's copy.

    Raises:
        FileNotFoundError: there is none.
        OSError: it could not be read.
    """
    return _content(place_of(common_dir, version, COPY))


def is_copy_current(common_dir: str) -> bool:
    """Whether the hooks run the copy of this patchgate and this interpreter; reads three small files."""
    try:
        if _content(place_of(common_dir, ACTIVE)) != active_line(sys.executable):
            return False
        return is_whole_copy(read_copy(common_dir, __version__))
    except OSError:
        return False


def tool() -> tuple[str, int, int]:
    """Return what a compiled policy is bound to: the versions of tool, rules and Python."""
    # Uninstall imports no rules.
    from patchgate.report.rules import RULES_VERSION

    return __version__, RULES_VERSION, sys.hexversion


def stamp() -> Stamp:
    """Identify this installation by one of its files: path, time, size and inode.

    Raises:
        OSError: the file is missing.
    """
    return stamp_of(_package())


def stamp_of(place: str) -> Stamp:
    """Identify a file by its path, time, size and inode.

    Raises:
        OSError: the file is missing.
    """
    status = os.stat(place)
    return place, status.st_mtime_ns, status.st_size, status.st_ino


def key_of(root: Mapping[bytes, Entry]) -> str:
    """Return the key of the policy of a root folder: the two entries that can hold one."""
    from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE

    entries = (root.get(CONFIG_FILE.raw), root.get(PYPROJECT_FILE.raw))
    return "-".join("none" if entry is None else f"{entry.mode}.{entry.oid}" for entry in entries)


def sealed_policy(held: Mapping[str, object]) -> bytes:
    """Serialize a compiled policy.

    Raises:
        ValueError: it has a value that cannot be serialized.
    """
    body = marshal.dumps(dict(held))
    return source_hash(_SEAL, body) + body


def policy_in(common_dir: str, version: str, key: str) -> Mapping[str, object] | None:
    """Read a compiled policy; None if it is damaged.

    Raises:
        FileNotFoundError: it is missing.
        OSError: it could not be read.
    """
    content = _content(place_of(common_dir, version, key))
    seal, body = content[:_SEAL_BYTES], content[_SEAL_BYTES:]
    if seal != source_hash(_SEAL, body):
        return None
    try:
        held = marshal.loads(body)
    except (ValueError, EOFError, TypeError):
        return None
    return held if isinstance(held, dict) else None


def is_policy_current(common_dir: str, key: str) -> bool:
    """Whether this installation has compiled the policy."""
    try:
        held = policy_in(common_dir, __version__, key)
        return held is not None and held.get("tool") == tool() and held.get("stamp") == stamp()
    except OSError:
        return False


def _content(place: str) -> bytes:
    with open(place, "rb") as file:
        return file.read(_MOST_READ)


def _magic() -> bytes:
    from importlib.util import MAGIC_NUMBER

    return MAGIC_NUMBER


def _package() -> str:
    return os.path.abspath(patchgate.__file__)
