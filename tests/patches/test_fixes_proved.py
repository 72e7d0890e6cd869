"""Every fix is proved by applying it: whole patches are damaged, and what their fixes make is compared.

A damaged patch that its own fixes make fit has the result of the whole patch. What was lost is never guessed:
a patch that was cut fits again only where whole hunks are left, which no reader can tell from a whole patch.
Not among the harms: a line that was written twice, and a new file's mode, which are patches of their own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping

import pytest

from patchgate.git.model import REGULAR
from patchgate.git.path import RepoPath
from patchgate.patches.patch_parser import Fault, Patch, parse
from patchgate.patches.patch_repair import repair_patch
from patchgate.patches.planning import PatchTargets, Preimage, list_removed_paths, plan_section
from tests.amount import often
from tests.patches.patch_world import PatchWorld
from tests.patches.test_patch_fixes import mended

Files = dict[bytes, tuple[str, bytes]]
RUN = "100755"
# A fix may show the next fault; so many steps are taken.
STEPS = 4


def text_of(*numbers: int | str, end: bytes = b"\n") -> bytes:
    """Write a file with a line for each number; the lines repeat nothing but a blank one."""
    return b"".join(b"" + str(each).encode() + end for each in numbers)


LONG = ["def f():", *(f"    x{number} = {number}" for number in range(12)), "", *(f"y{n}" for n in range(12))]
BEFORE: Files = {
    b"src/long.py": (REGULAR, text_of(*LONG)),
    b"tool.sh": (RUN, text_of("one", "two", "three", "four")),
    b"gone": (REGULAR, text_of("a", "b")),
    b"here/old name": (REGULAR, text_of(*range(20, 34))),
    b"unended": (REGULAR, text_of("p", "q") + b"r"),
    b"crlf": (REGULAR, text_of("k", "l", "m", end=b"\r\n")),
}
AFTER: Files = {
    b"src/long.py": (
        REGULAR,
        text_of(*LONG[:2], "    z = 0", "    + 2", "", *LONG[4:15], "y1 = 2", "y1 = 3", *LONG[16:]),
    ),
    b"tool.sh": (REGULAR, text_of("one", "2", "three", "four")),
    b"new": (REGULAR, text_of("n1", "", "n2", "    n3")),
    b"there/new name": (REGULAR, text_of(*range(20, 33), "changed")),
    b"unended": (REGULAR, text_of("p", "Q") + b"R"),
    b"crlf": (REGULAR, text_of("k", "L", "m", end=b"\r\n")),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Let git write the whole patch."""
    world = PatchWorld(tmp_path_factory.mktemp("whole"))
    return world.diff(world.put(BEFORE), world.put(AFTER), "-M")


def apply(raw: bytes) -> Mapping[bytes, tuple[str, bytes] | None] | tuple[Fault, ...]:
    """Say what a patch makes of each path, by our own reading; else its faults."""
    found = parse(raw)
    if not isinstance(found, Patch):
        return found
    standing = {RepoPath.from_git(name): Preimage(*file) for name, file in BEFORE.items()}
    named = {each for section in found.sections for each in (section.old_path, section.new_path)}
    preimages = {path: standing.get(path) for path in named if path is not None}
    targets = PatchTargets(preimages, list_removed_paths(found.sections))
    made: dict[bytes, tuple[str, bytes] | None] = {}
    faults: list[Fault] = []
    for section in found.sections:
        plan = plan_section(section, targets)
        if isinstance(plan, tuple):
            faults.extend(plan)
        else:
            made |= {each.path.raw: (each.mode, each.content) if each.mode else None for each in plan.steps}
    return tuple(faults) or made


def fixed(raw: bytes) -> tuple[Mapping[bytes, tuple[str, bytes] | None] | None, bytes]:
    """Do what the fixes say, for as long as there are some; give what comes of it, None for a refusal."""
    for _ in range(STEPS):
        found = apply(raw)
        if not isinstance(found, tuple):
            return found, raw
        if not any(fault.fix for fault in found):
            break
        raw = mended(raw, found)
    return None, raw


def lines_of(raw: bytes) -> list[bytes]:
    return raw.splitlines(keepends=True)


def one_line_each(raw: bytes) -> Iterator[bytes]:
    """Lose a line, its first or last byte, or the white space around it; send it with CR LF."""
    lines = lines_of(raw)
    for at, line in enumerate(lines):
        above, below = b"".join(lines[:at]), b"".join(lines[at + 1 :])
        if not line.startswith((b"new file mode", b"old mode", b"new mode", b"rename", b"similarity", b"\\")):
            # Without one of these a patch is another whole patch.
            yield above + below
        for changed in (line[1:], line[:-2] + b"\n", line[:-1] + b"\r\n", line.strip() + b"\n"):
            yield above + changed + below


def between_lines(raw: bytes) -> Iterator[bytes]:
    """Put text, fences or an ellipsis between two lines, or an ellipsis in the place of some."""
    lines = lines_of(raw)
    for at in range(len(lines) + 1):
        above, below = b"".join(lines[:at]), b"".join(lines[at:])
        for text in (b"```\n", b"Then, as asked:\n", b"\n", b"...\n", b" ...\n"):
            yield above + text + below
        for length in (1, 2, 5):
            for text in (b"...\n", b" ...\n", b"    ...\n", "…\n".encode()):
                yield above + text + b"".join(lines[at + length :])


def other_numbers(raw: bytes) -> Iterator[bytes]:
    """Write other numbers into the headers of the hunks."""
    for match in re.finditer(rb"(?m)^@@ .*?[0-9]+(?:,([0-9]+))? \+[0-9]+(?:,([0-9]+))? @@", raw):
        for group in (1, 2):
            if match[group] is None:
                continue
            for number in (0, 1, 2, 3, 5, 9, 60):
                start, end = match.span(group)
                yield raw[:start] + b"%d" % number + raw[end:]
        yield raw[: match.start()] + b"@@ ... @@" + raw[match.end() :]


def as_a_whole(raw: bytes) -> Iterator[bytes]:
    """Do to all of it what mail, chats, editors and settings of git do."""
    yield re.sub(
        rb"(?m)^((?:diff --git|---|\+\+\+) .*)$", lambda line: re.sub(rb" [ab]/", b" ", line[1]), raw
    )
    sections = re.split(rb"(?m)^(?=diff --git )", raw)[1:]
    binary = (
        b"diff --git a/x.png b/x.png\nnew file mode 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n"
    )
    yield raw.removesuffix(b"\n")
    yield raw.replace(b"\n", b"\r\n")
    yield b"\xef\xbb\xbf" + raw
    yield b"```diff\n" + raw + b"```\n"
    yield b"Subject: [PATCH] x\n\n---\n f | 2 +-\n\n" + raw + b"-- \n2.39.5\n"
    yield re.sub(rb"(?m)[ \t]+$", b"", raw)
    yield re.sub(rb"(?m)^ +$", b"", raw)
    yield re.sub(rb"(?m)^ (?=[^ \n])", b"", raw)
    yield re.sub(rb"(?m)^index .*\n", b"", raw)
    yield re.sub(rb"(?m)^diff --git .*\n(?=---)", b"", raw)
    yield raw.replace(b"100644", b"100664")
    for number, section in enumerate(sections):
        above, below = b"".join(sections[:number]), b"".join(sections[number + 1 :])
        yield above + section + section + below
        yield above + binary + section + below
        hunks = re.split(rb"(?m)^(?=@@ )", section)
        yield above + b"".join((hunks[0], *reversed(hunks[1:]))) + below


@pytest.mark.parametrize("damage", [one_line_each, between_lines, other_numbers, as_a_whole])
def test_what_its_fixes_make_of_a_damaged_patch_is_what_the_whole_one_makes(
    whole: bytes, damage: object
) -> None:
    assert callable(damage)
    wanted = apply(whole)
    assert isinstance(wanted, dict)
    assert wanted == {name: AFTER.get(name) for name in BEFORE.keys() | AFTER.keys()}
    damaged = [raw for raw in damage(whole) if isinstance(apply(raw), tuple)]
    assert len(damaged) > 5
    n_fixed = 0
    for raw in random.Random(1).sample(damaged, min(len(damaged), often(1_000))):
        made, sent = fixed(raw)
        assert made is None or made == wanted, (raw.decode(), sent.decode())
        n_fixed += made is not None
    assert n_fixed > 5


@pytest.mark.parametrize("is_head", [True, False])
def test_a_patch_that_was_cut_anywhere_never_lands_with_half_a_hunk(whole: bytes, is_head: bool) -> None:
    """What lands is what whole sections and hunks make, which no reader can tell from a whole patch."""

    # A diff without its `diff --git` line says nothing of modes.
    text = whole if is_head else re.sub(rb"(?m)^(?:old|new) mode .*\n", b"", whole)

    def part(at: int) -> bytes:
        return text[:at] if is_head else text[at:]

    starts = [match.start() for match in re.finditer(rb"(?m)^", text)]
    possible = [made for made in (apply(part(at)) for at in starts) if not isinstance(made, tuple)]
    offsets = [at for at in range(1, len(text)) if isinstance(apply(part(at)), tuple)]
    for at in random.Random(2).sample(offsets, min(len(offsets), often(2_000))):
        made, sent = fixed(part(at))
        assert made is None or made in possible, (part(at).decode(), sent.decode())


def look_up(path: RepoPath) -> Preimage | None:
    return Preimage(*BEFORE[path.raw]) if path.raw in BEFORE else None


def repaired(raw: bytes) -> Mapping[bytes, tuple[str, bytes] | None] | None:
    """Do what `--repair` does; give what comes of it, None for a refusal."""
    found = repair_patch(raw, look_up)
    if isinstance(found, Fault):
        return None
    made = apply(raw if found is None else found.patch)
    return None if isinstance(made, tuple) else made


@pytest.mark.parametrize("damage", [one_line_each, between_lines, other_numbers, as_a_whole])
def test_what_the_repair_makes_of_a_damaged_patch_is_what_the_whole_one_makes(
    whole: bytes, damage: object
) -> None:
    assert callable(damage)
    wanted = apply(whole)
    # A hunk that has lost an added line, with a header below it, cannot be told from one that is miscounted.
    lines = lines_of(whole)
    lost = {b"".join((*lines[:at], *lines[at + 1 :])) for at, line in enumerate(lines) if line[:1] == b"+"}
    damaged = [raw for raw in damage(whole) if isinstance(apply(raw), tuple) and raw not in lost]
    n_repaired = 0
    for raw in random.Random(3).sample(damaged, min(len(damaged), often(1_000))):
        made = repaired(raw)
        assert made is None or made == wanted, raw.decode()
        n_repaired += made is not None
    assert n_repaired > 3


def test_the_repair_of_what_was_cut_anywhere_is_never_half_a_hunk(whole: bytes) -> None:
    starts = [match.start() for match in re.finditer(rb"(?m)^", whole)]
    possible = [made for made in (apply(whole[:at]) for at in starts) if not isinstance(made, tuple)]
    offsets = [at for at in range(1, len(whole)) if isinstance(apply(whole[:at]), tuple)]
    for at in random.Random(4).sample(offsets, min(len(offsets), often(2_000))):
        for raw in (whole[:at], b"```diff\n" + whole[:at], b"Here:\n\n" + whole[:at]):
            made = repaired(raw)
            assert made is None or made in possible, raw.decode()
