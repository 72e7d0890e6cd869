"""What a refusal proposes: it mends, or it is not said."""

from __future__ import annotations

import random

import pytest

from patchgate.patches.patch_model import MAX_FAULTS, PatchFix
from patchgate.patches.patch_parser import Fault, Patch, parse
from tests.proposals import UNENDED, addition, change_of, deletion, moved

GOOD = (
    change_of(b"src/a.py")
    + addition(b"new file")
    + deletion(b"gone")
    + moved(b"old", b"other")
    + b"diff --git a/two b/two\n--- a/two\n+++ b/two\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n"
    + b"@@ -9 +9,2 @@ def f():\n z\n+y\n"
    + addition(b"unended", ending=UNENDED)
)


def faults_of(raw: bytes) -> tuple[Fault, ...]:
    """Read what is no patch."""
    found = parse(raw)
    assert isinstance(found, tuple)
    return found


def mended(raw: bytes, faults: tuple[Fault, ...]) -> bytes:
    """Do what the faults say: replacements first, then what is left out."""
    lines = raw.split(b"\n")
    texts = [line + b"\n" for line in lines[:-1]] + [lines[-1]]
    fixes = [fault.fix for fault in faults if fault.fix is not None]
    for first, text, last in fixes:
        if text is not None:
            end = b"\n" if texts[last - 1].endswith(b"\n") else b""
            texts[first - 1 : last] = [text.encode() + end, *[b""] * (last - first)]
    for first, text, last in fixes:
        if text is None:
            texts[first - 1 : last] = [b""] * (last - first + 1)
    return b"".join(texts)


def mutate(chance: random.Random, raw: bytes) -> bytes:
    """Do one small harm to a patch, of those that agents and mail do."""
    lines = raw.split(b"\n")[:-1]
    at = chance.randrange(len(lines))
    harm = chance.randrange(8)
    if harm == 0:
        lines.insert(at, chance.choice([b"```diff", b"", b"So:", b"-- ", b"index 1111111..2222222 100644"]))
    elif harm == 1:
        del lines[at]
    elif harm == 2:
        lines[at] = lines[at] + b"\r"
    elif harm == 3:
        lines[at] = lines[at][1:]
    elif harm == 4:
        lines.insert(at, lines[at])
    elif harm == 5:
        lines = [line + b"\r" for line in lines]
    elif harm == 6:
        lines[at] = lines[at].replace(b"1", chance.choice([b"0", b"9", b"..."]))
    else:
        lines[at] = lines[at].replace(b"/dev/null", b"a/x").replace(b"100644", b"100664")
    return b"\n".join(lines) + chance.choice([b"\n", b"\n", b""])


def test_the_patch_that_is_harmed_below_is_a_patch() -> None:
    assert isinstance(parse(GOOD), Patch)


@pytest.mark.parametrize("seed", range(20))
def test_where_every_fault_has_its_mending_the_patch_is_mended_by_them(seed: int) -> None:
    """Unless the counts of a hunk hide the next fault, one step is enough; it never takes more than three."""
    chance = random.Random(seed)
    steps = []
    for _ in range(150):
        raw = mutate(chance, GOOD)
        found = parse(raw)
        taken = 0
        while isinstance(found, tuple) and all(fault.fix for fault in found):
            assert taken < 3, raw
            again = mended(raw, found)
            assert again != raw
            raw, taken = again, taken + 1
            found = parse(raw)
        if taken and not isinstance(found, tuple):
            steps.append(taken)
    assert len(steps) > 40
    assert steps.count(1) >= 0.9 * len(steps)


@pytest.mark.parametrize("seed", range(20))
def test_no_bytes_make_the_mending_fail(seed: int) -> None:
    chance = random.Random(1000 + seed)
    for _ in range(100):
        raw = GOOD
        for _ in range(chance.randrange(1, 12)):
            raw = mutate(chance, raw)
        found = parse(raw)
        if isinstance(found, tuple):
            assert 0 < len(found) <= MAX_FAULTS
            last = raw.count(b"\n") + 1
            for fault in found:
                if fault.fix:
                    assert 1 <= fault.fix.first <= fault.fix.last <= last


def test_a_name_that_is_not_the_one_of_the_other_headers_is_never_chosen() -> None:
    """A second name could slip past what was judged, so it is not for us to say which is meant."""
    for header, other in ((b"--- a/", b"--- a/x"), (b"+++ b/", b"+++ b/x"), (b"--git a/", b"--git a/x")):
        assert all(fault.fix is None for fault in faults_of(change_of().replace(header, other)))


def test_names_without_prefixes_get_them_where_no_other_name_is_possible() -> None:
    """With `diff.noprefix`; `a/f a/f` may be a file in a folder `a`, and two names are a rename."""
    for name in (b"f", b"src/a.py"):
        whole = change_of(name)
        bare = whole.replace(b" a/", b" ").replace(b" b/", b" ")
        assert mended(bare, faults_of(bare)) == whole
    for old, new in ((b"a/f", b"a/f"), (b"b/f", b"b/f"), (b"f", b"g"), (b"/f", b"/f")):
        other = change_of().replace(b"a/f", old).replace(b"b/f", new)
        assert all(fault.fix is None for fault in faults_of(other)), old


def test_a_section_that_differs_from_the_first_of_its_path_is_not_left_out() -> None:
    (fault,) = faults_of(change_of() + change_of(new=b"C"))
    assert (fault.rule, fault.fix) == ("duplicate-section", None)
    (fault,) = faults_of(change_of() + change_of())
    assert fault.fix == PatchFix(9, None, 16)


def test_prose_is_left_out_up_to_the_next_line_of_a_diff() -> None:
    found = faults_of(b"Here:\n\n" + change_of() + b"and\nthen\n" + addition(b"x") + b"Done\n\n")
    assert [fault.fix for fault in found] == [
        PatchFix(1, None, 2),
        PatchFix(11, None, 12),
        PatchFix(19, None, 20),
    ]


def test_a_name_that_is_not_utf_8_has_no_mending_in_text() -> None:
    (fault,) = faults_of(change_of(b"\xff").replace(b"+++ b/\xff\n", b""))
    assert (fault.rule, fault.fix) == ("missing-file-header", None)


def test_a_large_section_is_not_read_again_for_its_fix() -> None:
    lines = b"+x\n" * 400_000
    raw = b"diff --git a/f b/f\nnew file mode 100644\n--- a/f\n+++ b/f\n@@ -0,0 +1,400000 @@\n" + lines
    (fault,) = faults_of(raw)
    assert (fault.rule, fault.fix) == ("invalid-unified-diff", None)


def test_prose_inside_a_hunk_never_takes_lines_of_the_hunk_with_it() -> None:
    """Also where the counts are wrong, so that nothing tells where the hunk ends."""
    inside = change_of().replace(b"-b\n", b"```\n-b\n")
    for raw in (inside, inside.replace(b"-1,3 +1,3", b"-1,5 +1,5")):
        assert faults_of(raw)[0].fix == PatchFix(6, None, 6)
    (fault,) = faults_of(change_of() + b"- a list\n- of changes\nDone\n")
    assert fault.rule == "hunk-count-mismatch"
    (fault,) = faults_of(change_of() + b"So:\n- a list\n- of changes\nDone\n")
    assert fault.fix == PatchFix(9, None, 12)
