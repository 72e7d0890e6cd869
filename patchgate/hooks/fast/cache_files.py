"""What a repository keeps for the fast path: its form, and whether it is what this patchgate would make.

Decides the names, the forms and what they are bound to; writes nothing. Below `<git common dir>/patchgate/`:

    fast/active                   MEANING VERSION INTERPRETER, one line
    fast/VERSION/recognise.pyc    the recogniser, compiled
    fast/VERSION/KEY              a compiled policy; KEY names both files of the root that can hold one

What is missing, damaged or of another tool is no fault: the full tier judges then, and makes it anew.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from _imp import source_hash
from collections.abc import Mapping
from dataclasses import dataclass

import patchgate
from patchgate import __version__
from patchgate.git.model import Entry

MEANING = 1
"""What shim and copy mean to each other; a shim that reads another number takes the full tier."""
ACTIVE = "active"
COPY = "recognise.pyc"
_SEAL = 0x7061746368676174
_SEAL_BYTES = 8
# Compiled code whose header binds it to no file's time (PEP 552, an unchecked hash); ours holds a seal there.
_FLAGS = (1).to_bytes(4, "little")
_HEADER_BYTES = 16
_MOST_READ = 1 << 20
_ENTRY = r"(?:none|[0-7]{6}\.(?:[0-9a-f]{64}|[0-9a-f]{40}))"
_POLICY = re.compile(f"{_ENTRY}-{_ENTRY}")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,99}")

Stamp = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Active:
    """What the shim reads: which version's copy is run, and by which interpreter."""

    version: str
    interpreter: str


def place_of(common_dir: str, *names: str) -> str:
    """Name a file or folder of the fast path."""
    return os.path.join(common_dir, "patchgate", "fast", *names)


def is_version(name: str) -> bool:
    """Tell whether a folder's name is that of a version."""
    return _VERSION.fullmatch(name) is not None


def is_policy(name: str) -> bool:
    """Tell whether a file's name is that of a compiled policy."""
    return _POLICY.fullmatch(name) is not None


def active_line(interpreter: str) -> bytes:
    """Write what the shim reads, for this version."""
    return os.fsencode(f"{MEANING} {__version__} {interpreter}\n")


def active_in(common_dir: str) -> Active | None:
    """Read what the shim reads; None where it is not there, or is not in this form.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it could not be read.
    """
    line = os.fsdecode(_content(place_of(common_dir, ACTIVE)))
    words = line.removesuffix("\n").split(" ", 2)
    is_whole = line.endswith("\n") and line.count("\n") == 1 and len(words) == 3
    if not (is_whole and words[0] == str(MEANING) and is_version(words[1]) and words[2].startswith("/")):
        return None
    return Active(words[1], words[2])


def recogniser() -> tuple[str, bytes]:
    """Read the source of the recogniser; give its name within the program, and its bytes.

    Raises:
        OSError: it did not come with this patchgate, or cannot be read.
    """
    name = os.path.join("hooks", "fast", "recognise.py")
    return f"patchgate/{name}", _content(os.path.join(os.path.dirname(_package()), name))


def sealed_copy(source: bytes, code: bytes) -> bytes:
    """Put a header before compiled code, by which `is_whole_copy` knows both again."""
    return _magic() + _FLAGS + source_hash(_SEAL, source + code) + code


def is_whole_copy(content: bytes, magic: bytes | None = None) -> bool:
    """Tell whether this is a copy as it is made from the source that came with this patchgate.

    Args:
        content: the whole file.
        magic: what begins code compiled for the Python that is to run it; None for the one that runs this.

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
    """Tell whether the hooks run the copy that this patchgate makes for this very interpreter.

    Costs three small files that are read.
    """
    try:
        if _content(place_of(common_dir, ACTIVE)) != active_line(sys.executable):
            return False
        return is_whole_copy(read_copy(common_dir, __version__))
    except OSError:
        return False


def tool() -> tuple[str, int, int]:
    """Name what a compiled policy was made by: versions of tool, rules and Python."""
    # Taking the hooks out loads no rules.
    from patchgate.report.rules import RULES_VERSION

    return __version__, RULES_VERSION, sys.hexversion


def stamp() -> Stamp:
    """Name this very installation: a file of it, with time, size and number.

    Raises:
        OSError: the program has no such file.
    """
    return stamp_of(_package())


def stamp_of(place: str) -> Stamp:
    """Name a file by its path, time, size and number.

    Raises:
        OSError: there is none.
    """
    status = os.stat(place)
    return place, status.st_mtime_ns, status.st_size, status.st_ino


def key_of(root: Mapping[bytes, Entry]) -> str:
    """Name the policy of a root folder by the two entries that can hold one."""
    from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE

    entries = (root.get(CONFIG_FILE.raw), root.get(PYPROJECT_FILE.raw))
    return "-".join("none" if entry is None else f"{entry.mode}.{entry.oid}" for entry in entries)


def sealed_policy(held: Mapping[str, object]) -> bytes:
    """Write a compiled policy down.

    Raises:
        ValueError: it holds what cannot be written.
    """
    body = marshal.dumps(dict(held))
    return source_hash(_SEAL, body) + body


def policy_in(common_dir: str, version: str, key: str) -> Mapping[str, object] | None:
    """Read a compiled policy; None where it is damaged.

    Raises:
        FileNotFoundError: there is none.
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
    """Tell whether a compiled policy is there that this very patchgate made."""
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
