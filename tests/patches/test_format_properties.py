"""A true change in any of the formats is read as exactly that change; a cut one never as half of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.git.model import REGULAR
from patchgate.git.path import RepoPath
from patchgate.patches.file_diff import ProposedFile, write_file_diff
from patchgate.patches.line_matching import match_lines
from tests.amount import often
from tests.patches.format_world import Files, read

NAME = "src/a.py"
LINES = st.lists(
    st.sampled_from(
        [b"", b"    x = 1", b"a", b"b", b"}", b"+c", b"-d", b" e", b"...", b"@@ f", b"=====", b"\\ g"]
    ),
    max_size=30,
)
CHANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), LINES), min_size=1, max_size=4)


@dataclass(frozen=True)
class Change:
    """The lines of a file before and after, and the stretches that differ: old start, old stop, new lines."""

    before: list[bytes]
    after: list[bytes]
    stretches: list[tuple[int, int, list[bytes]]]


def changes_of(before: list[bytes], drawn: list[tuple[int, int, list[bytes]]]) -> Change | None:
    """Replace stretches of lines; None if nothing changes."""
    stretches: list[tuple[int, int, list[bytes]]] = []
    done = 0
    for wanted, length, new in sorted(drawn, key=lambda each: each[0]):
        start = min(max(wanted, done), len(before))
        stop = min(start + length, len(before))
        if before[start:stop] != new[:3]:
            stretches.append((start, stop, new[:3]))
        done = stop + 1
    after, at = [], 0
    for start, stop, new in stretches:
        after += [*before[at:start], *new]
        at = stop
    after += before[at:]
    return None if after == before else Change(before, after, stretches)


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def unique_span(change: Change) -> tuple[int, int, list[bytes]]:
    """Return the stretch from the first change to the last, as one."""
    first, last = change.stretches[0][0], change.stretches[-1][1]
    tail = len(change.before) - last
    return first, last, change.after[first : len(change.after) - tail]


def wide(change: Change) -> tuple[list[bytes], list[bytes]]:
    """Return the old and the new lines of one block with so much context that it is there only once."""
    first, last, _ = unique_span(change)
    text = b"\n" + joined(change.before)
    while True:
        old = change.before[first:last]
        needle = b"\n" + joined(old)
        if old and is_once(needle, text):
            break
        if first == 0 and last == len(change.before):
            break
        first, last = max(first - 1, 0), min(last + 1, len(change.before))
    tail = len(change.before) - last
    return old, change.after[first : len(change.after) - tail]


def is_once(wanted: bytes, text: bytes) -> bool:
    """Return whether a text is in another exactly once; places may overlap."""
    place = text.find(wanted)
    return place >= 0 and text.find(wanted, place + 1) < 0


def as_envelope(change: Change) -> bytes:
    old, new = wide(change)
    kept = match_lines(old, new)
    body, at = [], 0
    for number, line in enumerate(new):
        if number in kept:
            body += [b"-" + each for each in old[at : kept[number]]]
            body.append(b" " + line)
            at = kept[number] + 1
        else:
            body.append(b"+" + line)
    body += [b"-" + each for each in old[at:]]
    return b"*** Begin Patch\n*** Update File: src/a.py\n@@\n" + joined(body) + b"*** End Patch\n"


def as_blocks(change: Change) -> bytes:
    old, new = wide(change)
    mark = b"=" * 7
    return b"src/a.py\n<<<<<<< SEARCH\n%b%b\n%b>>>>>>> REPLACE\n" % (joined(old), mark, joined(new))


def as_strings(change: Change) -> bytes:
    old, new = wide(change)
    edit = {"file_path": NAME, "old_string": joined(old).decode(), "new_string": joined(new).decode()}
    return json.dumps(edit).encode("ascii")


def as_diff(change: Change) -> bytes:
    path = RepoPath.from_patch(NAME.encode())
    return write_file_diff(ProposedFile(path, REGULAR, joined(change.before), joined(change.after)))


def forms(change: Change) -> Iterator[tuple[str, bytes]]:
    yield "patch", as_diff(change)
    yield "envelope", as_envelope(change)
    yield "search-replace", as_blocks(change)
    yield "string-edits", as_strings(change)


@settings(max_examples=often(3000), deadline=None)
@given(before=LINES.filter(bool), drawn=CHANGES)
def test_any_format_of_a_true_change_gives_exactly_that_change(
    before: list[bytes], drawn: list[tuple[int, int, list[bytes]]]
) -> None:
    # A line that the file has only once makes every change one that can be named.
    change = changes_of([b"def first():", *before, b"# the end"], drawn)
    if change is None:
        return
    files: Files = {NAME: joined(change.before), "other": b"x\n"}
    for kind, raw in forms(change):
        if kind == "string-edits" and not is_once(joined(wide(change)[0]), joined(change.before)):
            continue
        wanted = {NAME: joined(change.after), "other": b"x\n"}
        assert read(raw, kind, files) == wanted, (kind, raw)
        if kind != "string-edits":
            sent = b"Here it is:\n\n````\n" + raw + b"````\n\nDone.\n"
            assert read(sent, kind, files, repair=True) == wanted, (kind, sent)


@settings(max_examples=often(1500), deadline=None)
@given(before=LINES.filter(bool), drawn=CHANGES, data=st.data())
def test_what_was_cut_is_never_half_of_the_change(
    before: list[bytes], drawn: list[tuple[int, int, list[bytes]]], data: st.DataObject
) -> None:
    """The closing marker of a format, or the counts of a diff, are what makes it whole."""
    change = changes_of([b"def first():", *before, b"# the end"], drawn)
    if change is None:
        return
    files: Files = {NAME: joined(change.before)}
    for kind, raw in forms(change):
        fenced = b"```diff\n" + raw + b"```\n"
        for text in (raw, fenced) if kind == "patch" else (raw,):
            end = data.draw(st.integers(0, len(text) - 2))
            made = read(text[:end], kind, files, repair=True)
            whole = {NAME: joined(change.after)}
            assert isinstance(made, list) or made == whole or is_whole_hunks(change, made), (kind, text[:end])


def is_whole_hunks(change: Change, made: dict[str, bytes]) -> bool:
    """A diff that was cut between two hunks cannot be told from a whole one."""
    lines = made[NAME].split(b"\n")[:-1]
    return len(change.stretches) > 1 and set(lines) <= {*change.before, *change.after}


@settings(max_examples=often(2000), deadline=None)
@given(old=st.none() | st.binary(max_size=60), new=st.none() | st.binary(max_size=60))
def test_the_diff_of_two_texts_makes_one_of_the_other(old: bytes | None, new: bytes | None) -> None:
    old, new = (None if each is None else each.replace(b"\0", b"").replace(b"\r", b"") for each in (old, new))
    if old == new:
        return
    raw = write_file_diff(ProposedFile(RepoPath.from_patch(NAME.encode()), REGULAR, old, new))
    made = read(raw, "patch", {} if old is None else {NAME: old})
    assert made == ({} if new is None else {NAME: new})


@settings(max_examples=often(500), deadline=None)
@given(
    moved=st.lists(st.integers(0, 39), unique=True),
    before=st.lists(st.integers(0, 2000), max_size=30),
    after=st.lists(st.integers(1600, 2000), max_size=30),
)
def test_lines_that_stay_are_paired_in_order(moved: list[int], before: list[int], after: list[int]) -> None:
    """Also where a text is too long to be compared in full, and lines moved from its beginning to its end."""
    old = [b"%d" % each for each in [*range(1500), *before, 2001]]
    new = [b"%d" % each for each in [*after, *range(40, 1500), *moved, *before[5:], 2002]]
    pairs = sorted(match_lines(old, new).items())
    assert all(old[source] == new[number] for number, source in pairs)
    assert [source for _, source in pairs] == sorted({source for _, source in pairs})
    assert len(pairs) >= 1400
