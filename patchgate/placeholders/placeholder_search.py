"""Look for placeholders in a change: which files are read for it, and what of them only moves.

Decides which texts are read: the new ones with a suspicious added line, and only where one of these holds a
placeholder the old ones that lost lines. Files above the size that git diffs, and a patch whose effect could
not be made, are judged by their lines alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from patchgate.placeholders.placeholder_matches import find_matches, to_utf8
from patchgate.policy.placeholder_markers import FUNCTIONS, Markers
from patchgate.policy.policy import Policy, Profile

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_AT_ONCE = 200
_AHEAD_BYTES = 4 << 20
_SHOWN_LINE = 1 << 16


def read_sides(
    objects: Objects, sides: Sequence[tuple[FileChange, Entry | None]]
) -> Iterator[tuple[FileChange, bytes | None]]:
    """Read one side of each file, some ahead in one round trip; None for one above the size of a diff."""
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
    """Tell whether a file of any size begins with a byte-order mark of UTF-16."""
    return entry is not None and objects.head(entry.oid, 2) in UTF_16


def readable_text(content: bytes) -> bytes:
    """Give what can be read of a text, and what no claim is held against: UTF-16 with a defect, bytes of an
    older encoding, whose markers are ASCII all the same.
    """
    text = to_utf8(content)
    if text is None and content.startswith(UTF_16):
        # The byte-order mark says which of the two it is.
        text = content.decode("utf-16", "replace").replace("\0", " ").encode("utf-8", "replace")
    return content if text is None else text


def suspicious_lines(markers: Markers, lines: Sequence[bytes]) -> list[int]:
    """Pick the lines for which a text is read: those that may hold a placeholder, those that begin a function
    of Python, and those of UTF-16.
    """
    found = set(markers.suspects(lines))
    found.update(index for index, line in enumerate(lines) if b"\0" in line or begins_function(line))
    return sorted(found)


def may_have_suspicious_line(markers: Markers, text: bytes, start: int, stop: int) -> bool:
    """Tell whether `suspicious_lines` may pick a line between two places of a text, at a glance."""
    is_sure = any(text.find(sign, start, stop) >= 0 for sign in (b"\0", *FUNCTIONS))
    return is_sure or markers.may_suspect(text, start, stop)


def gather_placeholders(
    objects: Objects, change: Change, policy: Policy, profile: Profile, *, is_made: bool = True
) -> PlaceholderFacts | None:
    """Find the placeholders of a change; None where the policy says nothing of any.

    Args:
        objects: reads the objects of the change, also new ones.
        change: its added lines were watched for `suspicious_lines`.
        is_made: whether the new objects are there; false for a patch whose effect could not be made.
    """
    if not policy.judges_placeholders(profile):
        return None
    try:
        return _ChangeSearch(objects, change, policy.markers, is_made).facts()
    except PatchgateError as error:
        return PlaceholderFacts(fault=error.sentence)


@dataclass(frozen=True, slots=True)
class _TextResult:
    """What is known of one new text: the placeholders on its added lines, how many of each key it holds."""

    marked: tuple[AddedPlaceholder, ...]
    keys: Counter[bytes]


class _ChangeSearch:
    """One search through one change."""

    def __init__(self, objects: Objects, change: Change, markers: Markers, is_made: bool) -> None:
        self._objects = objects
        self._markers = markers
        self._is_made = is_made
        # Both sides of an exact rename hold the same; they need not be read.
        moved = {*change.renames, *change.renames.values()}
        self._files = [file for file in change.files if file.path not in moved]

    def facts(self) -> PlaceholderFacts:
        """Read what is suspicious, and count what else holds the same."""
        asked = [file for file in self._files if file.has_new_content and self._is_suspicious(file)]
        read = {file.path: found for file, found in self._new_texts(asked)}
        wanted = {each.match.key for found in read.values() for each in found.marked}
        gained: Counter[bytes] = Counter()
        if wanted:
            gained.update(each.match.key for found in read.values() for each in found.marked)
            for path, lost in self._lost(read, wanted):
                here = Counter(each.match.key for each in read[path].marked) if path in read else Counter()
                gained.subtract({key: lost[key] + here[key] for key in wanted})
        return PlaceholderFacts({path: found.marked for path, found in read.items()}, gained)

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
        matches = find_matches(readable_text(content), file.path.raw, self._markers)
        lines = {line.number: line for line in file.watched}
        numbers = sorted(lines)
        marked: list[AddedPlaceholder] = []
        for match in matches:
            # The body itself, or else the first line above it that was added, up to the function's header.
            first = match.line if match.line in lines or match.head is None else match.head
            place = bisect_left(numbers, first)
            if place < len(numbers) and numbers[place] <= match.line:
                marked.append(AddedPlaceholder(match, lines[numbers[place]]))
        return _TextResult(tuple(marked), Counter(match.key for match in matches))

    def _by_growth(self, file: FileChange, text: bytes) -> _TextResult:
        """Take the last of each key for added, as many as there are more than before."""
        matches = find_matches(text, file.path.raw, self._markers)
        keys = Counter(match.key for match in matches)
        before: Counter[bytes] = Counter()
        if matches and file.old is not None and file.old.is_file:
            ((_, content),) = read_sides(self._objects, [(file, file.old)])
            before = self._keys(file.path, content or b"")
        lines = split_lines(text)
        left, marked = Counter(keys), []
        for match in matches:
            if left[match.key] <= keys[match.key] - before[match.key]:
                marked.append(AddedPlaceholder(match, Line(match.line, lines[match.line - 1][:_SHOWN_LINE])))
            left[match.key] -= 1
        return _TextResult(tuple(marked), keys)

    def _by_lines(self, file: FileChange) -> _TextResult:
        marked = tuple(
            AddedPlaceholder(replace(match, line=line.number), line)
            for line in file.watched
            for match in find_matches(line.text, file.path.raw, self._markers)
        )
        return _TextResult(marked, Counter(each.match.key for each in marked))

    def _lost(
        self, read: Mapping[RepoPath, _TextResult], wanted: Collection[bytes]
    ) -> Iterator[tuple[RepoPath, Counter[bytes]]]:
        """Tell of each file that held something of the wanted how many more it did than it does."""
        losing = [(file, file.old) for file in self._files if self._loses_lines(file)]
        held: list[tuple[FileChange, Counter[bytes]]] = []
        for file, content in read_sides(self._objects, losing):
            keys = self._keys(file.path, content or b"")
            if not keys.keys().isdisjoint(wanted):
                held.append((file, keys))
        unread = [(file, file.new) for file, _ in held if file.path not in read and self._is_made]
        kept = {path: found.keys for path, found in read.items()}
        for file, content in read_sides(
            self._objects, [(file, new) for file, new in unread if file.has_new_content]
        ):
            kept[file.path] = self._keys(file.path, content or b"")
        for file, keys in held:
            # Of a patch that was not made only the added lines are known: no more is told than they exceed.
            now = kept.get(file.path, Counter())
            yield file.path, Counter({key: keys[key] - now[key] for key in wanted})

    def _loses_lines(self, file: FileChange) -> bool:
        """Tell whether lines of a text may go; where they were not counted (UTF-16) they may."""
        if file.old is None or not file.old.is_file or file.old == file.new:
            return False
        return file.new is None or file.removed_lines != 0 or starts_as_utf_16(self._objects, file.old)

    def _keys(self, path: RepoPath, content: bytes) -> Counter[bytes]:
        if is_binary(content) and not content.startswith(UTF_16):
            return Counter()
        return Counter(match.key for match in find_matches(readable_text(content), path.raw, self._markers))
