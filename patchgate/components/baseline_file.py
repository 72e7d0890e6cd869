"""The baseline file: what it records of a component's files, how it is written and strictly read.

Read without pydantic, whose import every commit that touches a component would pay. The layout is that of
JSON formatters with two spaces and sorted keys. Two constant lines separate the entries of two files, so that
git merges edits of different files. Nothing in it depends on the time or the machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK
from patchgate.git.path import RepoPath, faults
from patchgate.git.quoting import printable, unquote
from patchgate.policy.component import Role
from patchgate.values import dataclass

SCHEMA = "patchgate.baseline/1"
MAX_BASELINE_BYTES = 16 << 20
_SHOWN_DIGITS = 12

_SCHEMA = re.compile(r"patchgate\.baseline/([1-9][0-9]{0,8})")
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MODES = frozenset({REGULAR, EXECUTABLE, SYMLINK, GITLINK})
_ROLES = {role.value: role for role in Role}
_TOP = frozenset({"component", "files", "schema"})
_FILE = frozenset({"mode", "oid", "role", "sha256"})
_IMPOSSIBLE = frozenset({"path-empty", "path-absolute", "path-traversal", "path-git-dir"})
# Names without quoting or an alias of `.git`: nearly all. The checks below cost ten times as much.
_BORING = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*", re.ASCII)
_MARKER = re.compile(rb"^(?:<<<<<<<|>>>>>>>|\|\|\|\|\|\|\|)(?: |\r?$)|^=======\r?$", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}:\n]')


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """What a baseline records of one file: role, mode, blob id, and the SHA-256 of its content.

    `sha256` is None for a gitlink: its content is in another repository.
    """

    role: Role
    mode: str
    oid: str
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline that could be read; `files` is sorted by path."""

    component: str
    files: Mapping[RepoPath, RecordedFile]


@dataclass(frozen=True, slots=True)
class BaselineFault:
    """Why a baseline could not be read: one sentence, its line (None: the whole), the next step."""

    message: str
    line: int | None
    hint: str


Recorded = Baseline | BaselineFault


@dataclass(frozen=True, slots=True)
class Hashes:
    """One SHA-256 for each role, in hex; None if the component has no file of that role."""

    contract: str | None = None
    tests: str | None = None
    implementation: str | None = None

    def named(self) -> dict[str, str | None]:
        """Map the JSON key of each hash to its value."""
        return {
            "contract_hash": self.contract,
            "test_hash": self.tests,
            "impl_hash": self.implementation,
        }

    @property
    def shown(self) -> str:
        """Write the first digits of each hash, as text."""
        return ", ".join(f"{name} {(value or '-')[:_SHOWN_DIGITS]}" for name, value in self.named().items())


def write_baseline(component: str, files: Mapping[RepoPath, RecordedFile]) -> bytes:
    """Write a baseline; equal files give equal bytes."""
    document = {
        "component": component,
        "files": {
            path.quoted: {"mode": each.mode, "oid": each.oid, "role": each.role.value, "sha256": each.sha256}
            for path, each in files.items()
        },
        "schema": SCHEMA,
    }
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=True)
    return text.encode("ascii") + b"\n"


def hashes(baseline: Baseline) -> Hashes:
    """Compute the hash of each role: SHA-256 over `path NUL mode SP sha256 LF` in the order of the paths.

    For a gitlink, its commit takes the place of the SHA-256.
    """
    return Hashes(*(_hash(baseline, role) for role in Role))


def _hash(baseline: Baseline, role: Role) -> str | None:
    chosen = sorted((path, each) for path, each in baseline.files.items() if each.role is role)
    if not chosen:
        return None
    digest = hashlib.sha256()
    for path, each in chosen:
        digest.update(path.raw + f"\0{each.mode} {each.sha256 or each.oid}\n".encode("ascii"))
    return digest.hexdigest()


def read_baseline(raw: bytes, component: str) -> Recorded:
    """Read the baseline of a component, of at most 16 MiB; return a fault if it is not valid."""
    if len(raw) > MAX_BASELINE_BYTES:
        return _fault(component, f"this baseline has more than {MAX_BASELINE_BYTES >> 20} MiB", 1)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return _fault(component, "this baseline is not UTF-8", line)
    try:
        # Numbers are not allowed here; parsed as floats, numbers of any length are harmless.
        document = json.loads(text, object_pairs_hook=_pairs, parse_int=float)
    except (ValueError, RecursionError) as error:
        return _unreadable(raw, component, error)
    try:
        return Baseline(component, dict(sorted(_checked(document, component).items())))
    except _WrongError as wrong:
        return _fault(component, wrong.message, _line_of(text, wrong.place, wrong.last), wrong.hint)


class _WrongError(Exception):
    """A mistake at `place` (the keys that lead there); `last`: at the last of several equal keys."""

    def __init__(
        self, place: tuple[str, ...], message: str, hint: str | None = None, *, last: bool = False
    ) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint
        self.last = last


class _Doubled(dict[str, Any]):
    """A JSON object with a key that occurs twice."""

    __slots__ = ("key",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        self.key = ""
        for key, _ in pairs:
            if key in seen:
                self.key = key
            seen.add(key)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object; a plain dictionary unless a key occurs twice, because there are many."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Doubled(pairs)


_KINDS: dict[type, str] = {bool: "truth value", float: "number", list: "list", dict: "object"}


def _checked(document: object, component: str) -> dict[RepoPath, RecordedFile]:
    top = _object(document, ())
    schema = top.get("schema")
    version = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if version is not None and int(version[1]) > 1:
        raise _WrongError(
            ("schema",),
            f"this baseline was written by a newer patchgate ({printable(version[0], 40)})",
            "update patchgate, then try again",
        )
    _keys(top, (), _TOP)
    if version is None:
        raise _WrongError(("schema",), f'the schema of a baseline is "{SCHEMA}", not {_shown(schema)}')
    if top["component"] != component:
        raise _WrongError(
            ("component",), f"this is the baseline of {_shown(top['component'])}, not `{component}`"
        )
    files = {
        _path(name): _file(each, ("files", name)) for name, each in _object(top["files"], ("files",)).items()
    }
    if len({len(each.oid) for each in files.values()}) > 1:
        raise _WrongError(("files",), "the object ids of this baseline differ in length")
    return files


def _file(value: object, place: tuple[str, ...]) -> RecordedFile:
    found = _object(value, place)
    if found.keys() != _FILE:
        _keys(found, place, _FILE)
    mode, oid, role, sha256 = found["mode"], found["oid"], found["role"], found["sha256"]
    if not isinstance(mode, str) or mode not in _MODES:
        raise _WrongError((*place, "mode"), f"{_shown(mode)} is not a file mode of git")
    if not isinstance(oid, str) or not _OID.fullmatch(oid):
        raise _WrongError((*place, "oid"), f"{_shown(oid)} is not an object id")
    if not isinstance(role, str) or role not in _ROLES:
        raise _WrongError(
            (*place, "role"), f"{_shown(role)} is not a role: contract, tests or implementation"
        )
    if mode == GITLINK:
        if sha256 is not None:
            raise _WrongError((*place, "sha256"), "a gitlink has no SHA-256: it must be null")
    elif not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise _WrongError((*place, "sha256"), f"{_shown(sha256)} is not a SHA-256")
    return RecordedFile(_ROLES[role], mode, oid, sha256)


def _path(name: str) -> RepoPath:
    """Read a path, which has exactly one valid form."""
    if _BORING.fullmatch(name):
        return RepoPath(name.encode("ascii"))
    try:
        raw = name.encode("utf-8")
    except UnicodeEncodeError:
        raise _WrongError(("files", name), f"{_shown(name)} is not a path as git quotes it") from None
    unquoted = unquote(raw) if raw.startswith(b'"') else raw
    path = RepoPath(unquoted or b"")
    if unquoted is None or path.quoted != name:
        raise _WrongError(("files", name), f"{_shown(name)} is not a path as git quotes it")
    # Names that a change may not introduce may exist already; they are recorded as they are.
    if not _IMPOSSIBLE.isdisjoint(faults(path)):
        raise _WrongError(("files", name), f"{_shown(name)} is not a path of a file in this repository")
    return path


def _object(value: object, place: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        where = f"`{printable(place[-1], 80)}`" if place else "a baseline"
        raise _WrongError(place, f"{where} must be a JSON object")
    if isinstance(value, _Doubled):
        raise _WrongError((*place, value.key), f"the key {_shown(value.key)} occurs twice", last=True)
    return value


def _keys(found: Mapping[str, object], place: tuple[str, ...], wanted: frozenset[str]) -> None:
    for name in found:
        if name not in wanted:
            raise _WrongError((*place, name), f"unknown key {_shown(name)}")
    for name in sorted(wanted):
        if name not in found:
            raise _WrongError(place, f'the key "{name}" is missing')


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{printable(value, 80)}"'
    return "null" if value is None else f"this {_KINDS.get(type(value), 'value')}"


def _unreadable(raw: bytes, component: str, error: Exception) -> BaselineFault:
    marker = _MARKER.search(raw)
    if marker is not None:
        line = raw.count(b"\n", 0, marker.start()) + 1
        return _fault(component, "this baseline contains conflict markers", line)
    if raw.startswith(b"\xef\xbb\xbf"):
        return _fault(component, "this baseline begins with a byte-order mark", 1)
    if isinstance(error, json.JSONDecodeError):
        what = error.msg[:1].lower() + error.msg[1:]
        return _fault(component, f"this baseline is not JSON: {what}", error.lineno)
    return _fault(component, "this baseline is not readable JSON: it is nested too deeply", 1)


def _fault(component: str, message: str, line: int, hint: str | None = None) -> BaselineFault:
    again = f"delete the file, then record the component again: git patchgate baseline capture {component}"
    return BaselineFault(message, line, hint or again)


def _line_of(text: str, place: Iterable[str], last: bool) -> int:
    """Find the line of a key in JSON that could be read; of the innermost key on the way that is there.

    Arrays are not allowed in a baseline; keys within one count as keys of the enclosing object.
    """
    wanted = tuple(place)
    line, started, best, depth = 1, 1, (0, 1), -1
    above: list[str] = []
    key = ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n":
            line += 1
        elif token == "{":
            depth += 1
            del above[max(depth - 1, 0) :]
            if depth:
                above.append(key)
        elif token == "}":
            depth -= 1
            del above[max(depth, 0) :]
        elif token == ":":
            here = (*above, key)
            if here == wanted[: len(here)] and (len(here) > best[0] or (last and len(here) == best[0])):
                best = (len(here), started)
        else:
            key, started = json.loads(token), line
    return best[1]
