"""Finds the placeholders of a change: which files are read, and which placeholders only move.

Reads the new texts with a suspicious added line, and, only if one of them has a placeholder, the old texts
that lost lines. Files above the size that git diffs, and a patch whose result could not be built, are
checked by their lines only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.binary_files import is_binary, split_lines
from patchgate.git.model import Change, Entry, FileChange, Line
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.repository import BIG_FILE
from patchgate.placeholders.placeholder_gate import (
    AddedPlaceholder,
    PlaceholderFacts,
    begins_function,
    is_suspicious,
)
from patchgate.policy.placeholder_markers import FUNCTIONS, Markers
from patchgate.policy.policy import Policy, Profile
from patchgate.values import dataclass, replace

if TYPE_CHECKING:
    from patchgate.placeholders.placeholder_matches import Match

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_AT_ONCE = 200
_AHEAD_BYTES = 4 << 20
_SHOWN_LINE = 1 << 16


def read_sides(
    objects: Objects, sides: Sequence[tuple[FileChange, Entry | None]]
) -> Iterator[tuple[FileChange, bytes | None]]:
    """Read one side of each file, in batches; None for a file above the size that git diffs."""
    waiting = [(file, entry.oid) for file, entry in sides if entry is not None and entry.is_file]
    sizes = objects.sizes(oid for _, oid in waiting if oid.strip("0"))
    ahead: dict[str, bytes] = {}
    for at, (file, oid) in enumerate(waiting):
        if sizes.get(oid, BIG_FILE + 1) > BIG_FILE:
            yield file, None
            continue
        if oid not in ahead:
            following = dict.fromkeys(each for _, each in waiting[at : at + _AT_ONCE])
            known = [each for each in following if sizes.get(each, BIG_FILE + 1) <= BIG_FILE]
            ahead = objects.read_some(known, _AHEAD_BYTES) or {oid: objects.read(oid)}
        yield file, ahead[oid]


def starts_as_utf_16(objects: Objects, entry: Entry | None) -> bool:
    """Return whether a file of any size begins with a byte-order mark of UTF-16."""
    return entry is not None and objects.head(entry.oid, 2) in UTF_16


def readable_text(content: bytes) -> bytes:
    """Convert a text to UTF-8, also where no claim is checked against it: broken UTF-16, and bytes of an
    older encoding, in which markers are ASCII too.
    """
    from patchgate.placeholders.placeholder_matches import to_utf8

    text = to_utf8(content)
    if text is None and content.startswith(UTF_16):
        # The byte-order mark decides between the two byte orders.
        text = content.decode("utf-16", "replace").replace("\0", " ").encode("utf-8", "replace")
    return content if text is None else text


def _find_matches(text: bytes, name: bytes, markers: Markers) -> list[Match]:
    """Find the placeholders of one text; most changes have no suspicious line, and load no expression."""
    from patchgate.placeholders.placeholder_matches import find_matches

    return find_matches(text, name, markers)


def suspicious_lines(markers: Markers, lines: Sequence[bytes]) -> list[int]:
    """Return the indexes of the lines for which a text is read: they may have a placeholder, begin a Python
    function, or are UTF-16.
    """
    found = set(markers.suspects(lines))
    found.update(index for index, line in enumerate(lines) if b"\0" in line or begins_function(line))
    return sorted(found)


def may_have_suspicious_line(markers: Markers, text: bytes, start: int, stop: int) -> bool:
    """Return quickly whether `suspicious_lines` may select a line between two offsets of a text."""
    is_sure = any(text.find(sign, start, stop) >= 0 for sign in (b"\0", *FUNCTIONS))
    return is_sure or markers.may_suspect(text, start, stop)


def gather_placeholders(
    objects: Objects, change: Change, policy: Policy, profile: Profile, *, is_made: bool = True
) -> PlaceholderFacts | None:
    """Find the placeholders of a change; None if the policy does not check them.

    Args:
        objects: reads the objects of the change, also new ones.
        change: its added lines were watched for `suspicious_lines`.
        is_made: whether the new objects exist; false for a patch whose result could not be built.
    """
    if not policy.judges_placeholders(profile):
        return None
    try:
        return _ChangeSearch(objects=objects, change=change, markers=policy.markers, is_made=is_made).facts()
    except PatchgateError as error:
        return PlaceholderFacts(fault=error.sentence)


@dataclass(frozen=True, slots=True)
class _TextResult:
    """The result for one new text: the placeholders on its added lines, and the number of each key in it."""

    added: tuple[AddedPlaceholder, ...]
    keys: Counter[bytes]


class _ChangeSearch:
    """One search through one change."""

    def __init__(self, objects: Objects, change: Change, markers: Markers, is_made: bool) -> None:
        self._objects = objects
        self._markers = markers
        self._is_made = is_made
        # Both sides of an exact rename are equal; they need not be read.
        moved = {*change.renames, *change.renames.values()}
        self._files = [file for file in change.files if file.path not in moved]

    def facts(self) -> PlaceholderFacts:
        """Read the suspicious texts, and count the same placeholders in the others."""
        asked = [file for file in self._files if file.has_new_content and self._is_suspicious(file)]
        read = {file.path: found for file, found in self._new_texts(asked)}
        wanted = {each.match.key for found in read.values() for each in found.added}
        gained: Counter[bytes] = Counter()
        if wanted:
            gained.update(each.match.key for found in read.values() for each in found.added)
            for path, lost in self._lost(read, wanted):
                here = Counter(each.match.key for each in read[path].added) if path in read else Counter()
                gained.subtract({key: lost[key] + here[key] for key in wanted})
        return PlaceholderFacts({path: found.added for path, found in read.items()}, gained)

    def _is_suspicious(self, file: FileChange) -> bool:
        is_wide = file.binary or any(b"\0" in line.text for line in file.watched)
        return is_wide or is_suspicious(self._markers, file)

    def _new_texts(self, files: Sequence[FileChange]) -> Iterator[tuple[FileChange, _TextResult]]:
        if not self._is_made:
            yield from ((file, self._by_lines(file)) for file in files)
            return
        for file, content in read_sides(self._objects, [(file, file.new) for file in files]):
            if content is not None:
                yield file, self._by_text(file, content)
            elif file.binary and starts_as_utf_16(self._objects, file.new):
                raise UndecidedError(
                    f"{file.path.quoted} is UTF-16 of more than {BIG_FILE >> 20} MiB, which is not read",
                    "store it as UTF-8, or split it",
                )
            else:
                yield file, self._by_lines(file)

    def _by_text(self, file: FileChange, content: bytes) -> _TextResult:
        if content.startswith(UTF_16):
            return self._by_growth(file, readable_text(content))
        if file.binary:
            return _TextResult((), Counter())
        matches = _find_matches(readable_text(content), file.path.raw, self._markers)
        lines = {line.number: line for line in file.watched}
        numbers = sorted(lines)
        added: list[AddedPlaceholder] = []
        for match in matches:
            # The body itself, or else the first added line above it, down from the function's header.
            first = match.line if match.line in lines or match.head is None else match.head
            index = bisect_left(numbers, first)
            if index < len(numbers) and numbers[index] <= match.line:
                added.append(AddedPlaceholder(match, lines[numbers[index]]))
        return _TextResult(tuple(added), Counter(match.key for match in matches))

    def _by_growth(self, file: FileChange, text: bytes) -> _TextResult:
        """Count the last placeholders of each key as added, as many as there are more than before."""
        matches = _find_matches(text, file.path.raw, self._markers)
        keys = Counter(match.key for match in matches)
        before: Counter[bytes] = Counter()
        if matches and file.old is not None and file.old.is_file:
            ((_, content),) = read_sides(self._objects, [(file, file.old)])
            before = self._keys(file.path, content or b"")
        lines = split_lines(text)
        left, added = Counter(keys), []
        for match in matches:
            if left[match.key] <= keys[match.key] - before[match.key]:
                added.append(AddedPlaceholder(match, Line(match.line, lines[match.line - 1][:_SHOWN_LINE])))
            left[match.key] -= 1
        return _TextResult(tuple(added), keys)

    def _by_lines(self, file: FileChange) -> _TextResult:
        added = tuple(
            AddedPlaceholder(replace(match, line=line.number), line)
            for line in file.watched
            for match in _find_matches(line.text, file.path.raw, self._markers)
        )
        return _TextResult(added, Counter(each.match.key for each in added))

    def _lost(
        self, read: Mapping[RepoPath, _TextResult], wanted: Collection[bytes]
    ) -> Iterator[tuple[RepoPath, Counter[bytes]]]:
        """Yield each file that had wanted keys, with how many it lost of each."""
        losing = [(file, file.old) for file in self._files if self._loses_lines(file)]
        had_keys: list[tuple[FileChange, Counter[bytes]]] = []
        for file, content in read_sides(self._objects, losing):
            keys = self._keys(file.path, content or b"")
            if not keys.keys().isdisjoint(wanted):
                had_keys.append((file, keys))
        unread = [(file, file.new) for file, _ in had_keys if file.path not in read and self._is_made]
        current = {path: found.keys for path, found in read.items()}
        for file, content in read_sides(
            self._objects, [(file, new) for file, new in unread if file.has_new_content]
        ):
            current[file.path] = self._keys(file.path, content or b"")
        for file, keys in had_keys:
            # Of a patch that was not built only the added lines are known; they count against what it lost.
            now = current.get(file.path, Counter())
            yield file.path, Counter({key: keys[key] - now[key] for key in wanted})

    def _loses_lines(self, file: FileChange) -> bool:
        """Return whether a text may lose lines; True if they were not counted (UTF-16)."""
        if file.old is None or not file.old.is_file or file.old == file.new:
            return False
        return file.new is None or file.removed_lines != 0 or starts_as_utf_16(self._objects, file.old)

    def _keys(self, path: RepoPath, content: bytes) -> Counter[bytes]:
        if is_binary(content) and not content.startswith(UTF_16):
            return Counter()
        return Counter(match.key for match in _find_matches(readable_text(content), path.raw, self._markers))
