"""Structured edits: JSON that replaces ranges of lines in one file; `edit_diff` makes a diff of them.

An unknown or repeated key, or `true` or `1.0` for a number, is refused; nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise

from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.patches.patch_model import MAX_FAULTS, Fault
from patchgate.values import dataclass

MAX_EDITS_BYTES = 64 * 1024 * 1024
MAX_EDITS = 10_000
_SHAPE = (
    'send {"patch": {"edits": [{"path": "…", "start": 1, "end": 1, "new_text": "…\\n"}]}, "summary": "…"}'
)
_ENCODING, _RANGE, _SIZE = "encoding-unsupported", "range-invalid", "patch-too-large"
_FIELDS = ("path", "start", "end", "new_text")
_ANCHORS = ("old_text", "old_sha256")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace lines `start` to `end` (from 1, inclusive) by `new_text`; `end = start - 1` inserts before.

    The anchors say what these lines contain: `old_text` is the text, `old_sha256` its hexadecimal digest.
    """

    start: int
    end: int
    new_text: bytes
    old_text: bytes | None = None
    old_sha256: str | None = None

    @property
    def is_anchored(self) -> bool:
        """Return whether the edit says what it replaces; an insertion replaces nothing."""
        return self.end >= self.start and (self.old_text is not None or self.old_sha256 is not None)


@dataclass(frozen=True, slots=True)
class Edits:
    """The edits of one file, sorted by line and not overlapping, and what they are for."""

    path: RepoPath
    edits: tuple[Edit, ...]
    summary: str | None


class _RefusedError(Exception):
    """A fault found in the JSON reader's callbacks; never leaves this module."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class LongNumber(str):
    """The digits of a number that is too long to be a line."""

    __slots__ = ()


def parse_edits(raw: bytes) -> Edits | tuple[Fault, ...]:
    """Read structured edits, or return the faults."""
    try:
        return _read_document(_load(raw))
    except _RefusedError as refusal:
        return (refusal.fault,)


def _wrong(
    message: str, hint: str = _SHAPE, *, rule: str = "invalid-patch-schema", line: int | None = None
) -> _RefusedError:
    return _RefusedError(Fault(rule, line, message, hint=hint))


def _load(raw: bytes) -> object:
    if len(raw) > MAX_EDITS_BYTES:
        raise _wrong(f"the edits have {len(raw)} bytes, more than {MAX_EDITS_BYTES}", rule=_SIZE)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _wrong("the edits are not UTF-8", "send JSON in UTF-8", rule=_ENCODING, line=line) from None
    if text.startswith("\ufeff"):
        raise _wrong("the edits begin with a byte-order mark", "send plain UTF-8", rule=_ENCODING, line=1)
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=lambda digits: int(digits) if len(digits) <= 10 else LongNumber(digits),
            parse_float=float,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise _wrong(f"the edits are not JSON: {error.msg}", line=error.lineno) from None
    except RecursionError:
        raise _wrong("the edits are nested too deeply") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _wrong(f"the key `{printable(key, 60)}` occurs twice in one object")
        found[key] = value
    return found


def _refuse_constant(text: str) -> object:
    raise _wrong(f"{text} is not JSON")


def _read_document(document: object) -> Edits | tuple[Fault, ...]:
    top = _object(document, "the edits", {"patch"}, {"summary"})
    summary = top.get("summary")
    if summary is not None and not isinstance(summary, str):
        raise _wrong("`summary` is not a string")
    patch = _object(top["patch"], "`patch`", {"edits"}, set())
    entries = patch["edits"]
    if not isinstance(entries, list):
        raise _wrong("`patch.edits` is not a list")
    if not entries:
        raise _wrong("`patch.edits` is empty")
    if len(entries) > MAX_EDITS:
        raise _wrong(f"there are more than {MAX_EDITS} edits", "send fewer, larger edits", rule=_SIZE)
    faults: list[Fault] = []
    edits: list[Edit] = []
    paths: dict[bytes, None] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            path, edit = _read_edit(entry, number)
        except _RefusedError as refusal:
            faults.append(refusal.fault)
            if len(faults) == MAX_FAULTS:
                break
        else:
            paths[path] = None
            edits.append(edit)
    if len(paths) > 1:
        split = [[RepoPath.from_patch(path)] for path in paths]
        message = f"the edits name more than one file: {split[0][0].quoted} and {split[1][0].quoted}"
        hint = "send one file at a time"
        faults.append(Fault("multi-file-diff", None, message, hint=hint, details={"split": split}))
    if faults:
        return tuple(faults)
    edits.sort(key=lambda edit: (edit.start, edit.end))
    for above, below in pairwise(edits):
        if below.start <= above.end or (below.start, below.end) == (above.start, above.end):
            message = f"the edits of lines {above.start}-{above.end} and {below.start}-{below.end} overlap"
            raise _wrong(message, "join edits that touch the same lines into one", rule=_RANGE)
    return Edits(RepoPath.from_patch(next(iter(paths))), tuple(edits), summary)


def _object(value: object, name: str, required: set[str], optional: set[str]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _wrong(f"{name} is not an object")
    missing = sorted(required - value.keys())
    if missing:
        raise _wrong(f"`{missing[0]}` is missing in {name}")
    unknown = sorted(value.keys() - required - optional)
    if unknown:
        raise _wrong(f"{name} has an unknown key `{printable(unknown[0], 60)}`")
    return value


def _read_edit(entry: object, number: int) -> tuple[bytes, Edit]:
    name = f"edit {number}"
    if isinstance(entry, dict) and entry.get("path", "") == "":
        raise _wrong(
            f"{name} has no path", "name the file, relative to the repository's root", rule="path-missing"
        )
    fields = _object(entry, name, set(_FIELDS), set(_ANCHORS))
    path, start, end, new_text = (fields[field] for field in _FIELDS)
    old_text, digest = (fields.get(field) for field in _ANCHORS)
    if not isinstance(path, str) or not isinstance(new_text, str):
        raise _wrong(f"`path` and `new_text` of {name} must be strings")
    if old_text is not None and not isinstance(old_text, str):
        raise _wrong(f"`old_text` of {name} is not a string", "write the text of the lines that are replaced")
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        raise _wrong(
            f"`old_sha256` of {name} is not a SHA-256 digest", "write 64 hexadecimal digits, or `old_text`"
        )
    for field, value in (("start", start), ("end", end)):
        if isinstance(value, LongNumber):
            raise _wrong(f"`{field}` of {name} is not a line number", "count lines from 1", rule=_RANGE)
        if type(value) is not int:
            hint = 'write a plain number: 1, not true, 1.0 or "1"'
            raise _wrong(f"`{field}` of {name} is not a whole number", hint)
    assert type(start) is int
    assert type(end) is int
    if start < 1 or end < start - 1:
        hint = "count lines from 1; to insert before a line, set `end` to `start - 1`"
        raise _wrong(f"{name} has the range {start} to {end}", hint, rule=_RANGE)
    try:
        raw_path, raw_text = path.encode("utf-8"), new_text.encode("utf-8")
        raw_old = None if old_text is None else old_text.encode("utf-8")
    except UnicodeEncodeError:
        raise _wrong(
            f"{name} contains half a surrogate pair", "send real characters", rule=_ENCODING
        ) from None
    if "\0" in path:
        raise _wrong(f"the path of {name} contains a NUL byte")
    if "\0" in new_text:
        raise _wrong(
            f"the text of {name} contains a NUL byte", "edits are for text files", rule="binary-payload"
        )
    if new_text and not new_text.endswith("\n"):
        raise _wrong(
            f"the text of {name} does not end in a newline", "end `new_text` with \\n", rule="newline-missing"
        )
    old_sha256 = None if digest is None else digest.lower()
    return raw_path, Edit(start=start, end=end, new_text=raw_text, old_text=raw_old, old_sha256=old_sha256)
