"""Where hunks stand and what the file becomes, against `git apply` itself."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchgate.patches import planning
from patchgate.patches.line_ends import adapt_line_ends
from patchgate.patches.patch_model import PatchFix
from patchgate.patches.patch_parser import Fault, Patch, parse
from patchgate.patches.planning import Fitted, Placement, fit
from tests.amount import often
from tests.patches.patch_world import HEAD, PatchWorld, accepted, only_section, refused

FILE = b"".join(b"line %d\n" % number for number in range(1, 21))
CHANGE = b"@@ -9,3 +9,3 @@\n line 9\n-line 10\n+line ten\n line 11\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> PatchWorld:
    return PatchWorld(tmp_path_factory.mktemp("fitting"))


def fitted(hunks: bytes, preimage: bytes) -> Fitted:
    result = fit(only_section(hunks), preimage)
    assert isinstance(result, Fitted), result
    return result


def misfits(hunks: bytes, preimage: bytes) -> tuple[Fault, ...]:
    result = fit(only_section(hunks), preimage)
    assert not isinstance(result, Fitted)
    return result


def test_a_hunk_at_its_line_is_put_there() -> None:
    result = fitted(CHANGE, FILE)
    assert result.result == FILE.replace(b"line 10\n", b"line ten\n")
    assert result.placements == (Placement(1, 9, 0),)
    assert result.moved == ()


def test_a_hunk_that_stands_elsewhere_once_is_put_there_and_said_to_have_moved() -> None:
    result = fitted(CHANGE, b"first\nsecond\n" + FILE)
    assert result.result == b"first\nsecond\n" + FILE.replace(b"line 10\n", b"line ten\n")
    assert result.moved == (Placement(1, 11, 2),)


def test_a_hunk_that_stands_elsewhere_twice_is_ambiguous() -> None:
    (fault,) = misfits(CHANGE, b"x\n" + FILE + FILE)
    assert fault.rule == "hunk-ambiguous"
    assert fault.details["found_at"] == [10, 30]


def test_a_hunk_at_its_line_is_put_there_though_its_text_stands_elsewhere_too() -> None:
    assert fitted(CHANGE, FILE + FILE).result == FILE.replace(b"line 10\n", b"line ten\n") + FILE


def test_a_hunk_whose_new_start_disagrees_must_be_unique_because_git_searches_from_there() -> None:
    askew = CHANGE.replace(b"+9,3", b"+29,3")
    assert fitted(askew, FILE).result == FILE.replace(b"line 10\n", b"line ten\n")
    (fault,) = misfits(askew, FILE + FILE)
    assert fault.rule == "hunk-ambiguous"


def test_a_hunk_that_stands_nowhere_is_a_mismatch() -> None:
    """E14."""
    (fault,) = misfits(CHANGE, FILE.replace(b"line 10\n", b"other\n"))
    assert fault.rule == "hunk-mismatch"


def test_a_hunk_that_says_line_1_may_not_move_and_gets_the_right_header(world: PatchWorld) -> None:
    hunk = b"@@ -1,3 +1,3 @@\n line 9\n-line 10\n+line ten\n line 11\n"
    world.put({b"f": ("100644", FILE)})
    assert not world.apply(HEAD + hunk)
    (fault,) = misfits(hunk, FILE)
    assert (fault.rule, fault.fix) == ("hunk-mismatch", PatchFix(4, "@@ -9,3 +9,3 @@", 4))
    assert fitted(hunk.replace(b"@@ -1,3 +1,3 @@", b"@@ -9,3 +9,3 @@"), FILE).placements == (
        Placement(1, 9, 0),
    )


def test_a_hunk_without_context_behind_its_change_only_fits_at_the_end(world: PatchWorld) -> None:
    hunk = b"@@ -9,2 +9,2 @@\n line 9\n-line 10\n+line ten\n"
    world.put({b"f": ("100644", FILE)})
    assert not world.apply(HEAD + hunk)
    (fault,) = misfits(hunk, FILE)
    assert fault.rule == "hunk-mismatch"
    assert "context" in fault.message
    end = b"@@ -19,2 +19,2 @@\n line 19\n-line 20\n+line twenty\n"
    assert fitted(end, FILE).result.endswith(b"line 19\nline twenty\n")


def test_a_hunk_behind_which_an_earlier_one_was_moved_is_refused() -> None:
    hunks = b"@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n@@ -9,3 +9,3 @@\n line 9\n-line 10\n+line ten\n line 11\n"
    (fault,) = misfits(hunks, FILE + b"a\nb\nc\n")
    assert (fault.rule, fault.details["hunk"]) == ("hunk-mismatch", 2)


@pytest.mark.parametrize(
    ("preimage", "hunks", "result"),
    [
        (b"a\nb", b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", b"a\nb\n"),
        (b"a\nb\n", b"@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", b"a\nb"),
        (b"a\nb", b"@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", b"A\nb"),
        (b"a\nb", b"@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n", b"a\n"),
        (b"a", b"@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n", b""),
        (b"", b"@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", b"a"),
        (b"a\n", b"@@ -1 +0,0 @@\n-a\n", b""),
        (b"a\n", b"@@ -1 +1,2 @@\n a\n+\n", b"a\n\n"),
    ],
)
def test_the_missing_newline_is_kept_exactly_as_git_keeps_it(
    world: PatchWorld, preimage: bytes, hunks: bytes, result: bytes
) -> None:
    world.put({b"f": ("100644", preimage)})
    assert world.apply(HEAD + hunks)
    assert world.files()[b"f"][1] == fitted(hunks, preimage).result == result


@pytest.mark.parametrize(
    ("preimage", "hunks"),
    [
        (b"a\nb\n", b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"),
        (b"a\nb", b"@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        (b"a\nb\nc\n", b"@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"),
        (b"a\nb", b"@@ -2,0 +3 @@\n+c\n"),
    ],
)
def test_a_newline_that_differs_is_a_mismatch(preimage: bytes, hunks: bytes) -> None:
    assert {fault.rule for fault in misfits(hunks, preimage)} == {"hunk-mismatch"}


def test_a_hunk_that_ends_in_a_line_without_newline_may_not_move_because_git_may_stop_too_early(
    world: PatchWorld,
) -> None:
    """git compares that line by its first bytes, so it also stops where a newline follows."""
    hunks = b"@@ -4,2 +4,2 @@\n-a\n+b\n foo\n\\ No newline at end of file\n"
    preimage = b"1\n2\na\nfoo\nz\na\nfoo"
    world.put({b"f": ("100644", preimage)})
    assert world.apply(HEAD + hunks)
    assert world.files()[b"f"][1] == b"1\n2\nb\nfooz\na\nfoo"
    (fault,) = misfits(hunks, preimage)
    assert (fault.rule, fault.fix) == ("hunk-mismatch", PatchFix(4, "@@ -6,2 +6,2 @@", 4))


def test_a_section_without_hunks_leaves_the_file_as_it_is() -> None:
    (section,) = accepted(b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n").sections
    assert fit(section, b"x") == Fitted(b"x", ())


def test_ten_thousand_misplaced_hunks_in_a_file_of_equal_lines_are_judged_within_a_budget() -> None:
    hunks = b"".join(
        b"@@ -%d,3 +%d,3 @@\n same\n-other\n+new\n same\n" % (line, line) for line in range(2, 40_000, 4)
    )
    faults = misfits(hunks, b"same\n" * 100_000)
    assert {fault.rule for fault in faults} == {"hunk-mismatch"}
    assert misfits(hunks.replace(b"other", b"same"), b"x\n" + b"same\n" * 10)[0].rule == "hunk-ambiguous"


def test_a_hunk_whose_new_start_forgets_the_hunks_above_is_searched_for() -> None:
    """git starts its search at the new start, so among equal lines it would find another place."""
    first = b"@@ -2,2 +2,3 @@\n same\n+new\n same\n"
    second = b"@@ -20,2 +%d,3 @@\n same\n+other\n same\n"
    assert fitted(first + second % 21, b"same\n" * 40).moved == ()
    assert [fault.rule for fault in misfits(first + second % 20, b"same\n" * 40)] == ["hunk-ambiguous"]


_LINES = st.sampled_from(
    [b"a", b"b", b"c", b"", b"-- x", b"++ y", b"r\r", b"@@ -1 +1 @@", b"u1", b"u2", b"u3"]
)
_TEXTS = st.builds(
    lambda lines, ended: b"\n".join(lines) + (b"\n" if ended and lines else b""),
    st.lists(_LINES, max_size=25),
    st.booleans(),
)
_EDITS = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 2), st.lists(_LINES, max_size=2)), max_size=3)


def _edited(text: bytes, edits: list[tuple[int, int, list[bytes]]]) -> bytes:
    lines = text.split(b"\n")
    for place, removed, added in edits:
        lines[place : place + removed] = added
    return b"\n".join(lines)


@settings(max_examples=often(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=_TEXTS, edits=_EDITS, drift=_EDITS, context=st.sampled_from([0, 1, 3, 3]))
def test_what_fits_git_applies_to_the_same_bytes(
    world: PatchWorld,
    old: bytes,
    edits: list[tuple[int, int, list[bytes]]],
    drift: list[tuple[int, int, list[bytes]]],
    context: int,
) -> None:
    """B12: the file has drifted since the patch was made; what we place, git places there too."""
    trees = world.put({b"f": ("100644", old)}), world.put({b"f": ("100644", _edited(old, edits))})
    raw = world.diff(*trees, f"-U{context}")
    patch = parse(raw)
    if not isinstance(patch, Patch):
        assert not raw
        return
    base = _edited(old, drift)
    result = fit(patch.sections[0], base)
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(planning, "_fit_as_stated", lambda *_: None)
        assert fit(patch.sections[0], base) == result, "the short way gives what the search gives"
    if isinstance(result, Fitted):
        world.put({b"f": ("100644", base)})
        assert world.apply(raw)
        assert world.files()[b"f"][1] == result.result


CRLF = FILE.replace(b"\n", b"\r\n")


def _adapted(hunks: bytes, preimage: bytes) -> bytes | None:
    return adapt_line_ends(only_section(hunks), preimage)


def test_a_section_of_lf_is_adapted_to_a_file_of_crlf(world: PatchWorld) -> None:
    """E20."""
    adapted = _adapted(CHANGE, CRLF)
    assert adapted is not None
    (section,) = accepted(adapted).sections
    result = fit(section, CRLF)
    assert isinstance(result, Fitted)
    assert result.result == CRLF.replace(b"line 10\r\n", b"line ten\r\n")
    world.put({b"f": ("100644", CRLF)})
    assert world.apply(adapted)


def test_a_section_of_crlf_is_adapted_to_a_file_of_lf() -> None:
    head, _, lines = CHANGE.partition(b"\n")
    assert _adapted(head + b"\n" + lines.replace(b"\n", b"\r\n"), FILE) == HEAD + CHANGE


def test_a_line_without_newline_is_left_alone_when_line_ends_are_adapted() -> None:
    hunk = b"@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"
    adapted = _adapted(hunk, b"a\r\nb")
    assert adapted == HEAD + b"@@ -1,2 +1,2 @@\n-a\r\n+A\r\n b\n\\ No newline at end of file\n"


@pytest.mark.parametrize(
    ("hunks", "preimage"),
    [
        pytest.param(CHANGE, FILE, id="both-lf"),
        pytest.param(CHANGE, FILE.replace(b"1\n", b"1\r\n"), id="file-mixed"),
        pytest.param(CHANGE.replace(b"+line ten\n", b"+line ten\r\n"), FILE, id="section-mixed"),
        pytest.param(b"@@ -0,0 +1 @@\n+x\r\n", b"", id="file-empty"),
    ],
)
def test_line_ends_are_left_alone_unless_both_sides_are_of_one_kind(hunks: bytes, preimage: bytes) -> None:
    assert _adapted(hunks, preimage) is None


def test_mixed_line_ends_are_refused_with_the_line() -> None:
    (fault,) = misfits(CHANGE.replace(b" line 9\n", b" line 9\r\n"), CRLF)
    assert (fault.rule, fault.line, fault.details["file_line"]) == ("eol-mixed", 6, 10)


def test_a_refused_patch_is_never_fitted() -> None:
    assert refused(HEAD + CHANGE[:-1])
