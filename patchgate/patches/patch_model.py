"""The values that a patch is read into: sections, hunks, faults; and the limits.

`patch_parser` reads bytes into them and prints them again. A hunk stores offsets into the patch, not its
lines, so a patch of 100 MB needs little more memory than its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from patchgate.git.path import RepoPath
from patchgate.values import dataclass, field

Detail: TypeAlias = "bool | int | str | RepoPath | Sequence[Detail] | Mapping[str, Detail] | None"

MAX_PATCH_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024 * 1024
# Room for six names of 4,096 bytes, each written as octal escapes.
MAX_HEADER_BYTES = 128 * 1024
MAX_SECTIONS = 200_000
MAX_HUNKS = 500_000
MAX_FAULTS = 20

MARKER = b"\\ No newline at end of file"

OLD_INCOMPLETE, NEW_INCOMPLETE, OLD_ONE_WRITTEN, NEW_ONE_WRITTEN = 1, 2, 4, 8


class PatchFix(NamedTuple):
    """A mechanical fix of a patch: lines `first` to `last` (from 1) are replaced by `text`.

    `text` has no final LF, and an LF inside it separates two lines; None leaves the lines out.
    """

    first: int
    text: str | None
    last: int


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a patch or an edit, or with how it meets the file.

    `line` counts from 1 in the patch; None if there is no line (a field of an edit). `message` and `hint` are
    safe for a terminal. `fix` is a mechanical fix, if there is one; with it the patch is judged again.
    """

    rule: str
    line: int | None
    message: str
    hint: str
    fix: PatchFix | None = None
    details: Mapping[str, Detail] = field(default_factory=dict)


class SectionKind(StrEnum):
    """What a section does to its file; `mode` is a change of mode only."""

    MODIFY = "modify"
    ADD = "add"
    DELETE = "delete"
    RENAME = "rename"
    COPY = "copy"
    MODE = "mode"


# The fields of a hunk without `body`, as the reader stores them: plain tuples of numbers are cheap.
Row: TypeAlias = "tuple[int, int, int, int, bytes, int, int, int, int, int]"


class Hunk(NamedTuple):
    """One hunk: the numbers of its `@@` header, and where it is in the patch.

    `section_text` is what follows the second `@@`, its leading space included. `line` counts from 1 in the
    patch; `start`, `body` and `end` are offsets into the patch: of the header, of the first line under it,
    and past the last one. `form` is a bit set that the properties spell out; `lines` counts all but markers.
    """

    # A named tuple, not a dataclass: 100,000 of them cost 0.05 s instead of 0.2.
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section_text: bytes
    line: int
    start: int
    end: int
    form: int
    lines: int
    body: int

    @property
    def added(self) -> int:
        """How many lines begin with `+`."""
        return self.lines - self.old_count

    @property
    def removed(self) -> int:
        """How many lines begin with `-`."""
        return self.lines - self.new_count

    @property
    def old_position(self) -> int:
        """How many lines of the old file precede the hunk."""
        return self.old_start - 1 if self.old_count else self.old_start

    @property
    def new_position(self) -> int:
        """How many lines of the new file precede the hunk."""
        return self.new_start - 1 if self.new_count else self.new_start

    @property
    def old_incomplete(self) -> bool:
        """Whether the hunk contains the old file's last line, without a newline."""
        return bool(self.form & OLD_INCOMPLETE)

    @property
    def new_incomplete(self) -> bool:
        """Whether the hunk contains the new file's last line, without a newline."""
        return bool(self.form & NEW_INCOMPLETE)

    @property
    def header(self) -> bytes:
        """The `@@` line as it was written, without LF."""
        old = range_text(self.old_start, self.old_count, written=bool(self.form & OLD_ONE_WRITTEN))
        new = range_text(self.new_start, self.new_count, written=bool(self.form & NEW_ONE_WRITTEN))
        return b"@@ -%b +%b @@%b" % (old, new, self.section_text)


def make_fix(first: int, text: bytes, last: int | None = None) -> PatchFix | None:
    """Make a fix of one line, or of lines up to `last`; None if the text is not UTF-8."""
    try:
        return PatchFix(first, text.decode("utf-8"), last or first)
    except UnicodeDecodeError:
        return None


def range_text(start: int, count: int, *, written: bool = False) -> bytes:
    """Write one side of a hunk header; git leaves a count of 1 out, unless it was `written`."""
    return b"%d" % start if count == 1 and not written else b"%d,%d" % (start, count)


def hunk_header(old: tuple[int, int], new: tuple[int, int], section_text: bytes = b"") -> bytes:
    """Write a hunk's header for the start and the count of each side, without LF."""
    return b"@@ -%b +%b @@%b" % (range_text(*old), range_text(*new), section_text)


@dataclass(frozen=True, slots=True)
class PatchSection:
    """What a patch says about one file.

    `old_path` is None if the file is added, `new_path` where it is deleted. Modes are git's six octal
    digits, None if the patch is silent; object ids are abbreviations as the `index` line has them, None
    without one. `similarity` and `dissimilarity` are per cent. `line` counts from 1 in the patch; `start`
    and `end` are offsets into `raw`, the whole patch.
    """

    kind: SectionKind
    old_path: RepoPath | None
    new_path: RepoPath | None
    old_mode: str | None
    new_mode: str | None
    old_oid: str | None
    new_oid: str | None
    similarity: int | None
    dissimilarity: int | None
    line: int
    start: int
    end: int
    rows: tuple[Row, ...] = field(repr=False)
    raw: bytes = field(repr=False, compare=False)
    quotes_high: bool = True
    old_tab: bool = False
    new_tab: bool = False

    @property
    def path(self) -> RepoPath:
        """The path that the section is about: the new one, or the old one of a deletion."""
        path = self.new_path or self.old_path
        assert path is not None
        return path

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """The hunks in their order; built at each call, so take them once."""
        return tuple(self._materialise())

    @property
    def n_hunks(self) -> int:
        """How many hunks the section has, without building them."""
        return len(self.rows)

    @property
    def added_lines(self) -> int:
        """How many lines the section adds."""
        return sum(row[9] - row[1] for row in self.rows)

    @property
    def removed_lines(self) -> int:
        """How many lines the section removes."""
        return sum(row[9] - row[3] for row in self.rows)

    def _materialise(self) -> Iterator[Hunk]:
        find = self.raw.index
        for row in self.rows:
            yield Hunk(*row, find(b"\n", row[6]) + 1)

    def body(self, hunk: Hunk) -> bytes:
        """Slice the lines under a hunk's header out of the patch, markers included, LF at the end."""
        return self.raw[hunk.body : hunk.end]


@dataclass(frozen=True, slots=True)
class Patch:
    """A whole patch: its bytes, its sections in order, and the number of empty lines before them."""

    raw: bytes = field(repr=False)
    sections: tuple[PatchSection, ...]
    blank_lines: int = 0

    @property
    def n_hunks(self) -> int:
        """How many hunks all sections have."""
        return sum(section.n_hunks for section in self.sections)

    @property
    def added_lines(self) -> int:
        """How many lines all sections add."""
        return sum(section.added_lines for section in self.sections)

    @property
    def removed_lines(self) -> int:
        """How many lines all sections remove."""
        return sum(section.removed_lines for section in self.sections)
