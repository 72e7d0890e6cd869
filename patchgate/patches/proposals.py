"""Read what was sent, in any format, into the one unified diff that is judged from there on.

A unified diff stays as it is, byte for byte, unless it may be repaired. Every other format is read against
the files of the base, and written as git would write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from patchgate.git.path import RepoPath
from patchgate.patches.file_diff import write_file_diff
from patchgate.patches.formats import envelope, search_replace
from patchgate.patches.formats.proposal import (
    MAX_INPUT_BYTES,
    Fence,
    ForbiddenPathError,
    UnreadableProposalError,
    WorkingFiles,
    line_at,
    read_fences,
)
from patchgate.patches.formats.string_edits import find_edit_spans, read_string_edits
from patchgate.patches.formats.whole_files import find_file_spans, name_above, read_whole_files
from patchgate.patches.patch_hunks import strip_carriage_returns
from patchgate.patches.patch_model import Fault
from patchgate.patches.patch_repair import repair_patch
from patchgate.patches.planning import Preimage
from patchgate.values import dataclass, field

PATCH, AUTO = "patch", "auto"
_DIFF = re.compile(rb"^(?:diff --git |--- [^\n]+\n\+\+\+ )", re.MULTILINE)
_BLOCK = re.compile(rb"^<{5,9} SEARCH[ \t]*$", re.MULTILINE)
_STRINGS = re.compile(rb'"(?:old_string|new_string)\\?"|<old_string>|name="old_string">')
_JSON = re.compile(rb"\s*+[{\[]")


@dataclass(frozen=True, slots=True)
class InputFormat:
    """A format that is read into a diff.

    `option` is its name for `--input` and in the policy. `read` enters the changes into the files. `spans`
    says where they are in the text; around them there is nothing of another format.
    """

    option: str
    read: Callable[[bytes, WorkingFiles], None]
    spans: Callable[[bytes], Sequence[tuple[int, int]]]


def _envelope_spans(text: bytes) -> list[tuple[int, int]]:
    span = envelope.find_span(text)
    return [] if span is None or span[1] is None else [(span[0], span[1])]


FORMATS: Mapping[str, InputFormat] = {
    "envelope": InputFormat("envelope", envelope.read_envelope, _envelope_spans),
    "search-replace": InputFormat(
        "search-replace", search_replace.read_search_replace, search_replace.find_spans
    ),
    "string-edits": InputFormat("edits", read_string_edits, find_edit_spans),
    "files": InputFormat("files", read_whole_files, find_file_spans),
}
"""The formats of models besides a unified diff, by the kind that a report names."""


def kind_of(option: str) -> str:
    """Return the kind of an `--input`."""
    kinds = {each.option: kind for kind, each in FORMATS.items()}
    return AUTO if option == AUTO else kinds.get(option, PATCH)


def option_of(kind: str) -> str | None:
    """Return the `--input` of a kind; None if it needs none."""
    if kind == AUTO:
        return AUTO
    return FORMATS[kind].option if kind in FORMATS else None


@dataclass(frozen=True, slots=True)
class ReadProposal:
    """What was read: the diff to judge, the kind that was found, and notes on what was repaired."""

    diff: bytes
    kind: str
    notes: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedProposal:
    """Why nothing could be read; `forbidden` is a path that no change may have, instead of faults."""

    kind: str
    faults: tuple[Fault, ...] = ()
    path: RepoPath | None = None
    forbidden: RepoPath | None = field(default=None)


def read_proposal(
    raw: bytes,
    kind: str,
    lookup: Callable[[RepoPath], Preimage | None],
    *,
    repair: bool,
    root: bytes | None = None,
) -> ReadProposal | RefusedProposal:
    """Read a proposal against the files of a base.

    Args:
        raw: what was sent, byte for byte.
        kind: `patch`, a key of `FORMATS`, or `auto`.
        lookup: reads a file of the base; None if there is none.
        repair: whether mechanical faults of a diff are repaired.
        root: the folder of the working tree; absolute names below it are names of the repository.
    """
    if kind == AUTO and len(raw) > MAX_INPUT_BYTES:
        kind = PATCH
    if kind == AUTO:
        found = detect_kind(raw)
        if isinstance(found, Fault):
            return RefusedProposal(PATCH, (found,))
        kind = found
    if kind == PATCH:
        repaired = repair_patch(raw, lookup) if repair else None
        if isinstance(repaired, Fault):
            return RefusedProposal(PATCH, (repaired,))
        return (
            ReadProposal(raw, PATCH)
            if repaired is None
            else ReadProposal(repaired.patch, PATCH, repaired.notes)
        )
    fault = _find_unreadable(raw)
    if fault is not None:
        return RefusedProposal(kind, (fault,))
    text = strip_carriage_returns(raw)
    files = WorkingFiles(lookup, root)
    try:
        _require_alone(text, FORMATS[kind])
        FORMATS[kind].read(text if text.endswith(b"\n") else text + b"\n", files)
    except UnreadableProposalError as error:
        return RefusedProposal(kind, (error.fault,), error.path)
    except ForbiddenPathError as error:
        return RefusedProposal(kind, forbidden=error.path)
    changed = files.result()
    if not changed:
        message, hint = "the proposal changes nothing", "leave out what is already there"
        return RefusedProposal(kind, (Fault("missing-hunk", None, message, hint=hint),))
    notes: tuple[Fault, ...] = ()
    if text is not raw or files.adapted:
        message = "the lines of the proposal end in CR LF; they were read without the CR"
        notes = (Fault("eol-adapted", 1, message, hint="nothing to do"),)
    return ReadProposal(b"".join(map(write_file_diff, changed)), kind, notes)


def _find_unreadable(raw: bytes) -> Fault | None:
    if len(raw) > MAX_INPUT_BYTES:
        message = f"the proposal has {len(raw)} bytes, more than {MAX_INPUT_BYTES}"
        return Fault("patch-too-large", 1, message, hint="split the change into several proposals")
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        message = "the proposal begins with a byte-order mark"
        return Fault("encoding-unsupported", 1, message, hint="send UTF-8 without a byte-order mark")
    nul = raw.find(b"\0")
    if nul >= 0:
        message, hint = "the proposal contains a NUL byte, which no text file has", "leave binary files out"
        return Fault("binary-payload", line_at(raw, nul), message, hint=hint)
    return None


def _require_alone(text: bytes, own: InputFormat) -> None:
    """Refuse a fence that is not closed around the changes, and changes in another format beside them.

    Raises:
        UnreadableProposalError: there is one.
    """
    pieces: list[bytes] = []
    done = 0
    for start, end in own.spans(text):
        # As many lines as before, so that the numbers stay right.
        pieces += [text[done:start], b"\n" * text.count(b"\n", start, end)]
        done = end
    around = b"".join((*pieces, text[done:]))
    for fence in read_fences(around):
        if fence.closing is None:
            message, hint = "a fence is not closed, so the reply is not whole", "send the whole reply again"
            raise UnreadableProposalError(Fault("patch-truncated", fence.line, message, hint=hint))
    others = [name for name in _list_formats(around) if name != own.option]
    if others and done:
        raise UnreadableProposalError(_report_several([own.option, *others]))


def detect_kind(raw: bytes) -> str | Fault:
    """Find the one format that a text is in; a fault if it is in none, or in several."""
    text = strip_carriage_returns(raw)
    spans: list[tuple[int, int]] = []
    found = _list_formats(text)
    if len(found) > 1:
        # A file may show another format, as this one's documentation does.
        for kind, own in FORMATS.items():
            if own.option in found:
                try:
                    spans = list(own.spans(text))
                except UnreadableProposalError:
                    continue
                if spans and not _list_formats(_without(text, spans)):
                    return kind
        return _report_several(found)
    if found:
        return kind_of(found[0])
    hint = "send a unified diff, or one of the other formats of the policy"
    return Fault("not-a-unified-diff", 1, "the input is in none of the formats that are read", hint=hint)


def _without(text: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end in spans:
        pieces.append(text[done:start])
        done = end
    return b"\n".join((*pieces, text[done:]))


def _list_formats(text: bytes) -> list[str]:
    """List the formats whose signs are in a text, by their names for `--input`."""
    if _JSON.match(text):
        return ["edits"] if _STRINGS.search(text) or b'"content"' in text else []
    found = ["diff"] if _DIFF.search(text) else []
    found += ["envelope"] if envelope.BEGIN.search(text) else []
    found += ["search-replace"] if _BLOCK.search(text) else []
    found += ["edits"] if _STRINGS.search(text) else []
    if not found and any(_is_file(text, fence) for fence in read_fences(text)):
        found.append("files")
    return found


def _is_file(text: bytes, fence: Fence) -> bool:
    """Return whether a fence has text, and the name of a file above it."""
    return name_above(text, fence) is not None and bool(text[fence.content : fence.closing].strip())


def _report_several(found: Sequence[str]) -> Fault:
    message = f"the input has changes in several formats: {', '.join(found)}"
    return Fault("input-invalid", 1, message, hint="send the whole change in one format")
