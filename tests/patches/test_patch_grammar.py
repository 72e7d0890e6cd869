"""The grammar of patches: the corpus, real git's patches, damaged bytes, and input made to hurt."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchgate.git.path import RepoPath
from patchgate.patches import patch_model
from patchgate.patches.patch_headers import glance_at_names
from patchgate.patches.patch_model import PatchFix
from patchgate.patches.patch_parser import Patch, SectionKind, parse, print_patch
from patchgate.patches.planning import Fitted, fit, list_removed_paths
from patchgate.patches.proposed_files import list_paths
from tests.amount import often
from tests.patches.patch_world import CORPUS, HEAD, PatchWorld, accepted, refused

ACCEPTED = sorted((CORPUS / "accepted").glob("*.patch"))
REFUSED = sorted((CORPUS / "refused").glob("*.patch"))
MODIFY = (CORPUS / "accepted" / "modify-one-file.patch").read_bytes()

_REAL_GIT = settings(
    max_examples=often(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PatchWorld:
    return PatchWorld(tmp_path_factory.mktemp("grammar"))


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_the_corpus_of_good_patches_is_accepted_and_means_what_is_written_beside_it(path: Path) -> None:
    """B2, B3."""
    raw = path.read_bytes()
    patch = accepted(raw)
    wanted = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert [patch.n_hunks, patch.added_lines, patch.removed_lines] == [
        wanted["hunks"],
        wanted["added"],
        wanted["removed"],
    ]
    assert [
        {
            "kind": str(section.kind),
            "old": section.old_path and section.old_path.quoted,
            "new": section.new_path and section.new_path.quoted,
            "old_mode": section.old_mode,
            "new_mode": section.new_mode,
        }
        for section in patch.sections
    ] == wanted["sections"]
    assert print_patch(patch) == raw


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_the_line_of_a_section_is_right_behind_any_other_section(path: Path) -> None:
    raw = path.read_bytes()
    assert accepted(raw + MODIFY.replace(b"src/a.py", b"zz")).sections[-1].line == raw.count(b"\n") + 1


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_git_counts_the_same_lines_in_the_corpus_of_good_patches(path: Path, world: PatchWorld) -> None:
    raw = path.read_bytes()
    counted = world.git("apply", "--numstat", "-z", "-", stdin=raw).stdout.split(b"\0")[:-1]
    rows = [row.split(b"\t", 2) for row in counted]
    assert [(int(added), int(removed), name) for added, removed, name in rows] == [
        (section.added_lines, section.removed_lines, section.path.raw) for section in accepted(raw).sections
    ]


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_the_corpus_of_bad_patches_is_refused_with_the_rule_and_line_beside_it(path: Path) -> None:
    """B4, B5, E13, E15."""
    wanted = json.loads(path.with_suffix(".json").read_text("utf-8"))
    first = refused(path.read_bytes())[0]
    assert {"rule": first.rule, "line": first.line} == wanted
    assert first.message
    assert first.hint


def test_a_blank_context_line_is_refused_with_the_line_to_put_there() -> None:
    (fault,) = refused(HEAD + b"@@ -1,3 +1,3 @@\n a\n\n-x\n+y\n")
    assert (fault.rule, fault.line, fault.fix) == ("blank-context-line", 6, PatchFix(6, " ", 6))


def test_every_blank_context_line_of_a_hunk_is_told_at_once() -> None:
    faults = refused(HEAD + b"@@ -1,5 +1,5 @@\n a\n\n-x\n+y\n\n b\n")
    assert [(fault.rule, fault.line) for fault in faults] == [
        ("blank-context-line", 6),
        ("blank-context-line", 9),
    ]


def test_counts_that_are_too_small_are_refused_with_the_header_that_would_be_right() -> None:
    raw = HEAD + b"@@ -7,2 +7 @@ def f():\n a\n-x\n+y\n+z\n b\n"
    (fault,) = refused(raw)
    assert (fault.rule, fault.fix) == ("hunk-count-mismatch", PatchFix(4, "@@ -7,3 +7,4 @@ def f():", 4))
    mended = raw.replace(b"@@ -7,2 +7 @@ def f():", b"@@ -7,3 +7,4 @@ def f():")
    assert accepted(mended).added_lines == 2


def test_a_hunk_that_promises_more_than_follows_is_cut_off_and_has_no_fix() -> None:
    """At the end of the input, before a fence that ends it, or with an ellipsis; elsewhere lines are lost."""
    new = (
        b"diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,60 @@\n" + b"+x\n" * 9
    )
    hunk = b"@@ -1,9 +1,9 @@\n a\n-b\n+B\n c\n"
    for raw, told in (
        (new, [("patch-truncated", 5)]),
        (HEAD + hunk, [("patch-truncated", 4)]),
        (HEAD + b"@@ -1,3 +1,3 @@\n", [("patch-truncated", 4)]),
        (HEAD + b"@@ -1,5 +1,5 @@\n a\n-b\n+B\n...\n", [("patch-truncated", 8)]),
        (HEAD + b"@@ -1,5 +1,5 @@\n a\n-b\n+B\n ...\n d\n", [("patch-truncated", 8)]),
        (
            HEAD + b"@@ -1,2 +1,2 @@\n a\n-b\n+B\n...\n d\n" + hunk,
            [("patch-truncated", 8), ("patch-truncated", 10)],
        ),
        (new + b"\n\n", [("blank-context-line", 15), ("blank-context-line", 16), ("patch-truncated", 5)]),
        (HEAD + hunk + b"@@ -20 +20 @@\n-y\n+Y\n", [("hunk-count-mismatch", 4)]),
    ):
        faults = refused(raw)
        assert sorted((fault.rule, fault.line) for fault in faults) == sorted(told)
        assert all(fault.fix is None for fault in faults if fault.rule != "blank-context-line")
    fenced = refused(new + b"```\n")
    assert [(fault.rule, fault.fix) for fault in fenced] == [
        ("patch-truncated", None),
        ("prose-around-patch", PatchFix(15, None, 15)),
    ]
    assert accepted(new.replace(b"1,60", b"1,9")).added_lines == 9


def test_what_is_cut_within_its_headers_has_no_fix_that_says_less() -> None:
    for raw in (
        HEAD,
        HEAD.replace(b"+++ b/f\n", b""),
        b"diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n",
        b"diff --git a/f b/f\nnew file mode 100644\nindex 0000000..1234567\n",
        b"diff --git a/f b/f\nnew file mode 100644\nind\n",
        b"diff --git a/f b/f\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n",
    ):
        assert all(fault.fix is None for fault in refused(raw)), raw


def test_all_faults_of_all_hunks_of_a_section_are_told_at_once_each_with_its_fix() -> None:
    raw = HEAD + (
        b"@@ -1,2 +1,2 @@\n a\n-b\n+B\n c\n@@ -7 +7 @@\n-g\n+G\n@@ -20,3 +20,3 @@\n x\n-y\n+Y\nz\n"
        b"@@ ... @@\n a\n@@ -30,4 +30,3 @@\n k\n\n-l\n"
    )
    assert [(fault.rule, fault.line, fault.fix is not None) for fault in refused(raw)] == [
        ("hunk-count-mismatch", 4, True),
        ("invalid-unified-diff", 16, True),
        ("range-invalid", 17, False),
        ("patch-truncated", 19, False),
        ("blank-context-line", 21, True),
    ]


def test_context_that_has_lost_its_space_is_told_at_once_wherever_it_stands_in_a_hunk() -> None:
    raw = HEAD + b"@@ -1,7 +1,7 @@\na\nb\n-c\n+C\nd\n\ne\n-f\n+F\n@@ -20,3 +20,3 @@\ng\n-h\n+H\ni\n"
    faults = refused(raw)
    assert [(fault.rule, fault.fix) for fault in faults] == [
        ("invalid-unified-diff", PatchFix(5, " a\n b", 6)),
        ("invalid-unified-diff", PatchFix(9, " d", 9)),
        ("blank-context-line", PatchFix(10, " ", 10)),
        ("invalid-unified-diff", PatchFix(11, " e", 11)),
        ("invalid-unified-diff", PatchFix(15, " g", 15)),
        ("invalid-unified-diff", PatchFix(18, " i", 18)),
    ]
    (fault,) = refused(raw[: raw.index(b"@@ -20")].replace(b"1,7", b"1,9"))
    assert (fault.line, fault.fix) == (5, None)


def test_a_missing_last_newline_is_told_together_with_the_other_faults() -> None:
    """A fix is there where the last line can be held against the file: an added one may have been cut."""
    faults = refused(HEAD + b"@@ -1,9 +1 @@\n-x\n+y")
    assert [(fault.rule, fault.fix) for fault in faults] == [
        ("patch-truncated", None),
        ("newline-missing", None),
    ]
    (fault,) = refused(HEAD + b"@@ -1,2 +1,2 @@\n-x\n+y\n z")
    assert (fault.rule, fault.fix) == ("newline-missing", PatchFix(7, " z\n", 7))


def test_faults_of_several_sections_are_told_at_once_in_the_order_of_their_lines() -> None:
    bad = HEAD + b"@@ -1,9 +1 @@\n-x\n+y\n"
    faults = refused(b"Here:\n" + bad + bad.replace(b"/f", b"/g"))
    assert [(fault.rule, fault.line) for fault in faults] == [
        ("prose-around-patch", 1),
        ("hunk-count-mismatch", 5),
        ("patch-truncated", 11),
    ]


def test_no_more_faults_are_told_than_a_person_would_read() -> None:
    bad = b"".join(
        b"diff --git a/%d b/%d\nnew file mode 040000\n" % (number, number) for number in range(500)
    )
    assert len(refused(bad)) == patch_model.MAX_FAULTS


def test_dev_null_without_a_mode_is_refused_because_git_would_write_to_dev_null(world: PatchWorld) -> None:
    """B3: git takes `+++ /dev/null` without `deleted file mode` as a rename to `dev/null`."""
    raw = b"diff --git a/f b/f\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    (fault,) = refused(raw)
    assert fault.rule == "missing-file-header"
    assert fault.fix == PatchFix(1, "diff --git a/f b/f\ndeleted file mode 100644", 1)
    world.put({b"f": ("100644", b"x\n")})
    assert world.apply(raw)
    assert b"dev/null" in world.files()


@pytest.mark.parametrize(
    "name",
    [b"/etc/passwd", b"../x", b".git/config", b"C:/x", b"a//b", b"x\\y", b"a/./b", b"x" * 5000],
)
def test_hostile_names_are_kept_as_values_for_the_path_rules(name: bytes) -> None:
    """B7: the parser reads them; `path.faults` judges them."""
    quoted = b'"%b"' if b"\\" in name else b"%b"
    old, new = (
        quoted % (b"a/" + name.replace(b"\\", b"\\\\")),
        quoted % (b"b/" + name.replace(b"\\", b"\\\\")),
    )
    raw = b"diff --git %b %b\n--- %b\n+++ %b\n@@ -1 +1 @@\n-x\n+y\n" % (old, new, old, new)
    (section,) = accepted(raw).sections
    assert section.path == RepoPath(name)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("120000", "symlink"), ("160000", "gitlink")],
)
def test_modes_of_links_are_kept_as_values_for_the_policy(mode: str, kind: str) -> None:
    headers = f"diff --git a/{kind} b/{kind}\nnew file mode {mode}\n--- /dev/null\n+++ b/{kind}\n"
    (section,) = accepted(headers.encode() + b"@@ -0,0 +1 @@\n+x\n").sections
    assert (section.kind, section.new_mode) == (SectionKind.ADD, mode)


_NAMES = st.one_of(
    st.sampled_from(
        [b"f", b"b/f", b"a b/c", b"x y", b"-- a", b"caf\xe9", b'q"', b"t\tx y", b"\xc3\xbc", b"dev/null"]
    ),
    st.binary(min_size=1, max_size=6).filter(lambda name: not set(name) & set(b"\0/.")),
)
_LINES = st.sampled_from(
    [
        b"a",
        b"b",
        b"c",
        b"",
        b" ",
        b"-- x",
        b"++ y",
        b"@@ -1 +1 @@",
        b"diff --git a/f b/f",
        b"\\ No",
        b"r\r",
        b"\x0c",
    ]
)
_CONTENTS = st.builds(
    lambda lines, ended: b"\n".join(lines) + (b"\n" if ended and lines else b""),
    st.lists(_LINES, max_size=14),
    st.booleans(),
)
_FILES = st.tuples(st.sampled_from(["100644", "100644", "100755", "120000"]), _CONTENTS)
_TREES = st.dictionaries(_NAMES, _FILES, max_size=4).filter(
    lambda files: not any(one != other and other.startswith(one + b"/") for one in files for other in files)
)
_OPTIONS = st.sampled_from(
    [(), ("-M",), ("-C", "--find-copies-harder"), ("-U0",), ("-U1", "--full-index"), ("-B", "-M")]
)


def _without_type_changes(
    before: dict[bytes, tuple[str, bytes]], after: dict[bytes, tuple[str, bytes]]
) -> dict[bytes, tuple[str, bytes]]:
    """Keep a link a link: a type change is two sections of one path, which is refused."""
    return {name: (before[name][0] if name in before else mode, text) for name, (mode, text) in after.items()}


def _assert_a_glance_shows_its_names(patch: Patch) -> None:
    """Demand that the headers alone give the names of a patch, unless it has links or submodules."""
    seen = glance_at_names(patch.raw)
    modes = {mode for section in patch.sections for mode in (section.old_mode, section.new_mode)}
    if seen is None:
        assert modes & {"120000", "160000"} or b"\r" in patch.raw, patch.raw
    else:
        assert seen == (list_paths(patch), list_removed_paths(patch.sections))


@_REAL_GIT
@given(before=_TREES, after=_TREES, options=_OPTIONS, quote=st.booleans())
def test_what_git_writes_is_accepted_and_printed_back_byte_for_byte(
    world: PatchWorld,
    before: dict[bytes, tuple[str, bytes]],
    after: dict[bytes, tuple[str, bytes]],
    options: tuple[str, ...],
    quote: bool,
) -> None:
    """print∘parse is the identity; where git itself breaks a file in two, `duplicate-section` says so."""
    trees = world.put(before), world.put(_without_type_changes(before, after))
    raw = world.diff(*trees, *options, quote=quote)
    patch = parse(raw)
    if isinstance(patch, Patch):
        assert print_patch(patch) == raw
        _assert_a_glance_shows_its_names(patch)
        starts = [0, *(raw.count(b"\n", 0, section.end) for section in patch.sections)]
        assert [section.line for section in patch.sections] == [start + 1 for start in starts[:-1]]
    elif raw:
        allowed = {"duplicate-section"} if options[:1] in {("-B",), ("-M",), ("-C",)} else set()
        allowed |= (
            {"invalid-unified-diff"} if b" b/" in raw.replace(b"\n", b"").replace(b" b/", b"", 1) else set()
        )
        assert {fault.rule for fault in patch} <= allowed, (patch, raw)


@_REAL_GIT
@given(before=_TREES, after=_TREES, options=_OPTIONS)
def test_what_is_accepted_git_accepts_too(
    world: PatchWorld,
    before: dict[bytes, tuple[str, bytes]],
    after: dict[bytes, tuple[str, bytes]],
    options: tuple[str, ...],
) -> None:
    """B12: and the result of our own parts is byte for byte what git makes."""
    after = _without_type_changes(before, after)
    trees = world.put(before), world.put(after)
    raw = world.diff(*trees, *options)
    patch = parse(raw)
    if not isinstance(patch, Patch) or "-U0" in options:
        return
    world.put(before)
    assert world.apply(raw)
    assert world.files() == _effect(patch, before) == after


def _effect(patch: Patch, before: dict[bytes, tuple[str, bytes]]) -> dict[bytes, tuple[str, bytes]] | None:
    """Make the files that a patch describes; None where a hunk does not fit or a file is not there."""
    result = dict(before)
    for section in patch.sections:
        if section.old_path is not None and section.kind is not SectionKind.COPY:
            result.pop(section.old_path.raw, None)
    for section in patch.sections:
        mode, text = "100644", b""
        if section.old_path is not None:
            if section.old_path.raw not in before:
                return None
            mode, text = before[section.old_path.raw]
        fitted = fit(section, text)
        if not isinstance(fitted, Fitted):
            return None
        if section.new_path is not None:
            result[section.new_path.raw] = section.new_mode or mode, fitted.result
    return result


_DAMAGES = st.tuples(
    st.sampled_from(["replace", "insert", "delete"]),
    st.integers(0, 10**6),
    st.sampled_from(list(b'\n\r\t +-\\@019abd/"\x00\xff')),
)
_SAMPLE = {
    b"f": ("100644", b"".join(b"%d\n" % number for number in range(1, 15)) + b"end"),
    b"my file": ("100644", b"one\ntwo\n"),
    b"r": ("100755", b"1\n2\n3\n4\n5\n6\n"),
}
_SAMPLE_AFTER = {
    b"f": (
        "100644",
        b"".join(b"%d\n" % number for number in (1, 3, 4, 5, 66, 7, 8, 9, 10, 11, 12, 13, 14)) + b"END",
    ),
    b"my file": ("100755", b"one\ntoo\n"),
    b"n": ("100644", b"new"),
    b"s": ("100755", b"1\n2\n3\n4\n5\n6\n7\n"),
}


@settings(_REAL_GIT, max_examples=often(120))
@given(damage=_DAMAGES)
def test_any_single_damaged_byte_is_refused_or_harmless(
    world: PatchWorld, damage: tuple[str, int, int]
) -> None:
    """Harmless: what git makes of the damaged patch is what our own parts make of it."""
    trees = world.put(_SAMPLE), world.put(_SAMPLE_AFTER)
    raw = world.diff(*trees, "-M")
    how, place, byte = damage
    place %= len(raw)
    inserted = b"" if how == "delete" else bytes([byte])
    damaged = raw[:place] + inserted + raw[place + (how != "insert") :]
    patch = parse(damaged)
    if not isinstance(patch, Patch):
        return
    assert print_patch(patch) == damaged
    _assert_a_glance_shows_its_names(patch)
    effect = _effect(patch, _SAMPLE)
    world.put(_SAMPLE)
    if effect is not None and world.apply(damaged):
        assert world.files() == effect


@settings(max_examples=often(300), deadline=None)
@given(
    raw=st.one_of(
        st.binary(max_size=200), st.lists(st.sampled_from(MODIFY.split(b"\n")), max_size=30).map(b"\n".join)
    )
)
def test_any_bytes_are_a_patch_or_faults_never_an_exception(raw: bytes) -> None:
    patch = parse(raw)
    glance_at_names(raw)
    if isinstance(patch, Patch):
        assert print_patch(patch) == raw
    else:
        lines = raw.count(b"\n") + 1
        assert all(fault.line is not None and 1 <= fault.line <= lines for fault in patch)


def test_an_order_of_sections_changes_no_section() -> None:
    one, other = MODIFY, MODIFY.replace(b"src/a.py", b"src/b.py")
    forward, backward = accepted(one + other), accepted(other + one)
    assert [each.path for each in forward.sections] == [each.path for each in reversed(backward.sections)]
    assert [print_patch(Patch(each.raw, (each,))) for each in forward.sections] == [one, other]


@pytest.mark.parametrize(
    ("name", "limit", "raw"),
    [
        ("MAX_PATCH_BYTES", 100, MODIFY),
        ("MAX_LINE_BYTES", 50, HEAD + b"@@ -1 +1 @@\n-x\n+" + b"y" * 60 + b"\n"),
        ("MAX_SECTIONS", 1, MODIFY + MODIFY.replace(b"src/a.py", b"src/b.py")),
        ("MAX_HUNKS", 2, HEAD + b"".join(b"@@ -%d +%d @@\n-x\n+y\n" % (line, line) for line in (1, 3, 5))),
    ],
)
def test_what_is_past_a_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, limit: int, raw: bytes
) -> None:
    accepted(raw)
    monkeypatch.setattr(f"patchgate.patches.patch_parser.{name}", limit)
    assert [fault.rule for fault in refused(raw)] == ["patch-too-large"]


def _peak(raw: bytes) -> int:
    tracemalloc.start()
    try:
        parse(raw)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


_TINY = b"".join(
    b"diff --git a/%d b/%d\nold mode 100644\nnew mode 100755\n" % (number, number) for number in range(3_000)
)
_BIG_HUNK = HEAD + b"@@ -1,60000 +1,60001 @@\n" + b" some line of context\n" * 60_000 + b"+x\n"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(MODIFY + b"\n" * 1_000_000, id="empty-lines-behind"),
        pytest.param(b"prose\n" * 200_000, id="prose"),
        pytest.param(_BIG_HUNK, id="one-huge-hunk"),
        pytest.param(_BIG_HUNK[:-3], id="one-huge-hunk-with-wrong-counts"),
        pytest.param(HEAD + b"@@ -1 +1 @@\n-x\n+" + b"y" * 3_000_000 + b"\n", id="a-huge-line"),
        pytest.param(MODIFY.replace(b"src/a.py", b"x/" * 900_000), id="a-huge-path"),
    ],
)
def test_input_made_to_hurt_takes_memory_below_the_size_of_the_patch(raw: bytes) -> None:
    """With the patch itself: at most twice the patch."""
    assert _peak(raw) < len(raw) + 65_536


def test_a_path_of_100_kilobytes_is_refused_before_it_is_read() -> None:
    assert [fault.rule for fault in refused(MODIFY.replace(b"src/a.py", b"x/" * 50_000))] == [
        "patch-too-large"
    ]


def test_many_tiny_sections_take_memory_in_proportion() -> None:
    assert _peak(_TINY) < 16 * len(_TINY)


def test_a_patch_of_ordinary_hunks_takes_memory_below_the_size_of_the_patch() -> None:
    hunk = (
        b"@@ -%d,8 +%d,8 @@ def function(argument):\n"
        + b" a line of context that is as long as lines are\n" * 7
    )
    hunks = b"".join(hunk % (line, line) + b"-old\n+new\n" for line in range(1, 27_000, 9))
    assert accepted(HEAD + hunks).n_hunks == 3_000
    assert _peak(HEAD + hunks) < len(hunks)
