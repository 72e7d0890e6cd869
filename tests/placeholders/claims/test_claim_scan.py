"""The bounded scan: tiers, caps to the byte, what is not read and why, the fallback, determinism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from patchgate.git.path import RepoPath
from patchgate.placeholders.claims.claim import Candidate, Claim, ClaimOutcome, ScanResult, SkipReason, Tier
from patchgate.placeholders.claims.claim_decision import decide
from patchgate.placeholders.claims.claim_scan import HEAVY_FOLDERS, PathInfo, ScanCaps, caps_of, scan
from patchgate.placeholders.placeholder_matches import find_matches, to_utf8
from patchgate.policy.placeholder_markers import Markers
from patchgate.policy.settings import ClaimsSettings, MarkerSettings
from tests.amount import often
from tests.placeholders.claims.claim_trees import (
    CLEAN,
    MARKERS,
    ROOMY,
    TODO,
    Tree,
    canonical,
    current,
    evidence,
    names,
    places,
    prior,
    scanned,
    skips,
)

CLAIM = Claim(False, "incomplete_deliverable_placeholder")


def test_the_tiers_are_read_in_their_order_and_inside_one_as_they_were_named() -> None:
    """C6, C7: the caller says what counts most, so that a cap does not let the alphabet decide."""
    tree = Tree(dict.fromkeys(("e.md", "p.md", "b.md", "a.md", "z.md"), TODO))
    wanted = [*evidence("e.md"), *prior("p.md"), *current("b.md", "a.md"), *canonical("z.md")]
    for candidates, first in ((wanted, ["b.md", "a.md"]), (wanted[::-1], ["a.md", "b.md"])):
        tree.asked.clear()
        found = scanned(tree, candidates)
        assert names(found) == tree.read_names == ["z.md", *first, "p.md", "e.md"]
        assert places(found) == [f"{name}:1" for name in tree.read_names]
    (kept,) = names(scanned(tree, canonical("z.md", "a.md"), replace(ROOMY, max_files=1)))
    assert kept == "z.md"


def test_the_first_tier_that_names_a_file_owns_it_and_nothing_is_read_twice() -> None:
    """C7, C30."""
    tree = Tree({"a.md": CLEAN, "b.md": CLEAN})
    found = scanned(tree, [*current("b.md", "a.md", "a.md"), *canonical("a.md"), *prior("a.md", "b.md")])
    assert tree.read_names == ["a.md", "b.md"]
    assert [each.tier for each in found.scanned] == [Tier.CANONICAL, Tier.CURRENT]
    assert found.source_counts == {
        Tier.CANONICAL: 1,
        Tier.CURRENT: 1,
        Tier.PRIOR: 0,
        Tier.EVIDENCE: 0,
        Tier.FALLBACK: 0,
    }
    assert found.used_fallback


@pytest.mark.parametrize("tier", [Tier.CANONICAL, Tier.CURRENT, Tier.PRIOR, Tier.EVIDENCE])
def test_a_placeholder_in_any_tier_is_found_with_its_place(tier: Tier) -> None:
    """C31, C32: a changed file that is no deliverable, and a file of a prior attempt, count."""
    tree = Tree({"a.md": CLEAN, "b.md": CLEAN + CLEAN + TODO})
    found = scanned(tree, [*canonical("a.md"), Candidate(tier, RepoPath(b"b.md"))])
    assert places(found) == ["b.md:3"]
    assert found.placeholders[0].tier is tier
    assert found.placeholders[0].rule == "placeholder-word"


def test_all_tiers_are_read_to_their_end_after_a_match() -> None:
    tree = Tree({"a.md": TODO + TODO, "b.md": TODO, "c.md": CLEAN})
    found = scanned(tree, [*canonical("a.md"), *current("b.md"), *evidence("c.md")])
    assert places(found) == ["a.md:1", "a.md:2", "b.md:1"]
    assert names(found) == ["a.md", "b.md", "c.md"]


def test_the_fallback_is_not_even_listed_where_a_tier_shows_a_placeholder() -> None:
    """C8, C41."""
    tree = Tree({"a.md": TODO, "other.md": TODO})
    found = scanned(tree, canonical("a.md"))
    assert not found.used_fallback
    assert not tree.was_listed


def test_the_fallback_reads_the_tracked_files_by_their_paths_until_one_holds_a_placeholder() -> None:
    """C8, C15, C41: no further file is read after the first match."""
    tree = Tree({"z.md": CLEAN, "b.md": TODO, "a.md": CLEAN, "sub/c.md": TODO})
    found = scanned(tree, canonical("z.md"))
    assert names(found) == tree.read_names == ["z.md", "a.md", "b.md"]
    assert places(found) == ["b.md:1"]
    assert found.used_fallback
    assert found.source_counts[Tier.FALLBACK] == 2
    assert tree.was_closed


def test_hidden_and_heavy_folders_are_passed_by_in_the_fallback_alone() -> None:
    """C13: a deliverable in `build/` is read, and so is a hidden file."""
    hidden = {f"{folder.decode()}/x.md": TODO for folder in HEAVY_FOLDERS}
    files = {".git/x.md": TODO, ".venv/x.md": TODO, "a/.tox/b/x.md": TODO, "a/node_modules/b/x.md": TODO}
    tree = Tree({**hidden, **files, "build/y.md": CLEAN, "buildings/y.md": CLEAN, ".y.md": CLEAN})
    found = scanned(tree, canonical("build/y.md"))
    assert names(found) == ["build/y.md", ".y.md", "buildings/y.md"]
    assert found.fallback_skipped == {SkipReason.EXCLUDED: len(hidden) + len(files)}
    assert scanned(tree, canonical("build/x.md")).placeholders
    assert scanned(tree, evidence(".venv/x.md")).placeholders


def test_other_suffixes_are_skipped_and_counted() -> None:
    """C12: a `.go` file, or one without a suffix, is never taken for read."""
    tree = Tree({"a.go": TODO, "Makefile": TODO, "b.MD": CLEAN, "c.exe": TODO, "d.exe": TODO})
    found = scanned(tree, canonical("a.go", "Makefile", "b.MD"))
    assert skips(found) == {"a.go": SkipReason.SUFFIX, "Makefile": SkipReason.SUFFIX}
    assert found.fallback_skipped == {SkipReason.SUFFIX: 2}
    assert names(found) == ["b.MD"]
    allowed = replace(ROOMY, suffixes=(".go", ""))
    assert places(scanned(tree, canonical("a.go", "Makefile"), allowed)) == ["a.go:1", "Makefile:1"]


@pytest.mark.parametrize("fault", [SkipReason.MISSING, SkipReason.SYMLINK, SkipReason.OUTSIDE])
def test_what_is_no_file_of_the_tree_is_told_and_never_read(fault: SkipReason) -> None:
    """C14, C37."""
    tree = Tree({"b.md": CLEAN}, {"a.md": fault, "x.md": fault})
    found = scanned(tree, canonical("a.md", "b.md"))
    assert skips(found) == {"a.md": fault}
    assert found.fallback_skipped == {fault: 1}
    assert tree.read_names == ["b.md"]


def test_what_lies_outside_is_told_once() -> None:
    """C14, C29: `../` and an absolute path have no place in the tree."""
    outside = [Candidate(tier, None, "../x.md") for tier in (Tier.PRIOR, Tier.CANONICAL)]
    found = scanned(Tree(), [*outside, Candidate(Tier.CANONICAL, None, "/etc/passwd")])
    assert skips(found) == {"../x.md": SkipReason.OUTSIDE, "/etc/passwd": SkipReason.OUTSIDE}
    assert found.source_counts[Tier.CANONICAL] == 2
    assert found.source_counts[Tier.PRIOR] == 0


def test_a_fault_is_told_before_the_suffix_and_the_suffix_before_a_cap() -> None:
    tree = Tree({"a.go": CLEAN, "b.md": CLEAN}, {"c.go": SkipReason.SYMLINK})
    found = scanned(tree, canonical("a.go", "b.md", "c.go", "d.go"), replace(ROOMY, max_files=0))
    assert skips(found) == {
        "a.go": SkipReason.SUFFIX,
        "b.md": SkipReason.CAP,
        "c.go": SkipReason.SYMLINK,
        "d.go": SkipReason.MISSING,
    }


def test_binary_files_are_skipped_and_their_bytes_count() -> None:
    """C36."""
    tree = Tree({"a.md": b"TODO: x\0", "b.md": b"\xff TODO: x", "c.md": CLEAN, "d.md": b"\0"})
    found = scanned(tree, [*canonical("a.md"), *current("b.md", "c.md")])
    assert skips(found) == {"a.md": SkipReason.BINARY, "b.md": SkipReason.BINARY}
    assert found.fallback_skipped == {SkipReason.BINARY: 1}
    assert found.total_bytes == 8 + 9 + len(CLEAN) + 1
    assert not found.placeholders


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_text_with_a_byte_order_mark_is_read(encoding: str) -> None:
    tree = Tree({"a.md": "fine\nTODO: ü\n".encode(encoding)})
    assert places(scanned(tree, canonical("a.md"))) == ["a.md:2"]


def test_markers_of_the_policy_are_searched_too() -> None:
    """C4: data, not code."""
    markers = Markers((MarkerSettings("ticket", "ABC-0{4}", "ABC-0000"),))
    tree = Tree({"a.md": b"see ABC-0000\n"})
    found = scanned(tree, canonical("a.md"), markers=markers)
    assert [(each.rule, each.marker) for each in found.placeholders] == [("placeholder-marker", "ticket")]
    assert not scanned(tree, canonical("a.md")).placeholders


def test_no_more_files_are_read_than_the_cap_says() -> None:
    """C9, C35: three changed files, a cap of two."""
    tree = Tree(dict.fromkeys(("a.md", "b.md", "c.md"), CLEAN))
    found = scanned(tree, current("a.md", "b.md", "c.md"), replace(ROOMY, max_files=2))
    assert names(found) == ["a.md", "b.md"]
    assert skips(found) == {"c.md": SkipReason.CAP}
    assert not found.used_fallback
    assert not skips(scanned(tree, current("a.md", "b.md", "c.md"), replace(ROOMY, max_files=3)))


def test_the_total_is_kept_to_the_byte() -> None:
    """C10, C35."""
    tree = Tree({"a.md": CLEAN, "b.md": CLEAN, "c.md": b""})
    candidates = canonical("a.md", "b.md", "c.md")
    exact = scanned(tree, candidates, replace(ROOMY, max_total_bytes=2 * len(CLEAN)))
    assert names(exact) == ["a.md", "b.md", "c.md"]
    assert exact.total_bytes == 2 * len(CLEAN)
    short = scanned(tree, candidates, replace(ROOMY, max_total_bytes=2 * len(CLEAN) - 1))
    assert names(short) == ["a.md", "c.md"]
    assert skips(short) == {"b.md": SkipReason.CAP}
    assert short.total_bytes == 2 * len(CLEAN) - 1


def test_a_deliverable_over_the_size_cap_is_read_to_its_end() -> None:
    """C11: 400 kB, and the mark in its last line."""
    tree = Tree({"a.md": CLEAN * 25_000 + TODO, "b.md": CLEAN})
    found = scanned(tree, canonical("a.md"))
    assert places(found) == ["a.md:25001"]
    assert names(found) == ["a.md"]
    assert not found.skipped


@pytest.mark.parametrize("tier", [Tier.CURRENT, Tier.PRIOR])
def test_changed_files_of_both_attempts_are_read_over_the_size_cap(tier: Tier) -> None:
    tree = Tree({"a.md": CLEAN * 3 + TODO})
    caps = replace(ROOMY, max_file_bytes=len(CLEAN))
    assert places(scan(tree, [Candidate(tier, RepoPath(b"a.md"))], caps, MARKERS)) == ["a.md:4"]


def test_evidence_and_the_fallback_over_the_size_cap_are_not_read() -> None:
    """C11, C36."""
    tree = Tree({"a.md": CLEAN, "b.md": CLEAN + b"\n", "c.md": CLEAN + b"\n", "d.md": CLEAN})
    found = scanned(tree, evidence("a.md", "b.md"), replace(ROOMY, max_file_bytes=len(CLEAN)))
    assert names(found) == ["a.md", "d.md"]
    assert skips(found) == {"b.md": SkipReason.TOO_LARGE}
    assert found.fallback_skipped == {SkipReason.TOO_LARGE: 1}


def test_what_could_never_fit_is_read_as_far_as_the_total_allows_and_told_too_large() -> None:
    tree = Tree({"a.md": TODO + CLEAN * 10, "b.md": CLEAN})
    caps = replace(ROOMY, max_total_bytes=len(TODO) + 20, max_file_bytes=10)
    found = scanned(tree, [*canonical("a.md"), *current("b.md")], caps)
    assert places(found) == ["a.md:1"]
    assert skips(found) == {"a.md": SkipReason.TOO_LARGE, "b.md": SkipReason.CAP}
    assert found.total_bytes == len(TODO) + 20
    assert not found.scanned


def test_what_the_rest_of_the_total_is_too_small_for_is_read_in_part_and_told_as_a_cap() -> None:
    tree = Tree({"a.md": CLEAN * 4, "b.md": TODO + CLEAN + TODO, "c.md": TODO})
    caps = replace(ROOMY, max_total_bytes=4 * len(CLEAN) + len(TODO) + 5)
    found = scanned(tree, current("a.md", "b.md", "c.md"), caps)
    assert places(found) == ["b.md:1"]
    assert skips(found) == {"b.md": SkipReason.CAP, "c.md": SkipReason.CAP}
    assert tree.read_names == ["a.md", "b.md"]


def test_a_line_that_a_cap_cut_off_tells_nothing() -> None:
    tree = Tree({"a.md": b"# TODO app is what we sell\n"})
    assert not scanned(tree, canonical("a.md")).placeholders
    found = scanned(tree, canonical("a.md"), replace(ROOMY, max_total_bytes=6))
    assert not found.placeholders
    assert skips(found) == {"a.md": SkipReason.TOO_LARGE}


def test_a_part_of_a_text_may_end_inside_a_character() -> None:
    tree = Tree({"a.md": TODO + "ü".encode()})
    found = scanned(tree, canonical("a.md"), replace(ROOMY, max_total_bytes=len(TODO) + 1))
    assert places(found) == ["a.md:1"]


def test_the_fallback_ends_at_the_first_file_that_does_not_fit() -> None:
    """C15."""
    tree = Tree({"a.md": CLEAN, "b.md": CLEAN, "c.md": CLEAN * 2, "d.md": b"x"})
    found = scanned(tree, canonical("a.md"), replace(ROOMY, max_total_bytes=3 * len(CLEAN)))
    assert names(found) == ["a.md", "b.md"]
    assert found.fallback_skipped == {SkipReason.CAP: 1}
    assert tree.was_closed


def test_the_fallback_ends_at_the_cap_without_listing_everything() -> None:
    """C3, C15: a large repository costs no more than a small one."""
    tree = Tree({f"f{number:05}.md": CLEAN for number in range(5_000)})
    found = scanned(tree, canonical("f00000.md"))
    assert len(found.scanned) == len(tree.asked) == 80
    assert found.source_counts[Tier.FALLBACK] == 79
    assert tree.listed <= 200
    assert tree.was_closed


def test_a_file_that_gives_less_than_it_said_is_not_taken_for_read() -> None:
    class Shrinking(Tree):
        def read(self, path: RepoPath, most: int) -> bytes | None:
            return self.files[str(path)][: most - 1]

    found = scanned(Shrinking({"a.md": TODO + CLEAN}), canonical("a.md"))
    assert skips(found) == {"a.md": SkipReason.UNREADABLE}
    assert places(found) == ["a.md:1"]


class Guarded(Tree):
    """A tree in which nobody may read what is called `secret`, and one file is found out only when it is."""

    def inspect(self, paths: Sequence[RepoPath]) -> Mapping[RepoPath, PathInfo]:
        looked = dict(super().inspect(paths))
        return looked | {
            path: PathInfo(fault=SkipReason.UNREADABLE) for path in paths if b"secret" in path.raw
        }

    def read(self, path: RepoPath, most: int) -> bytes | None:
        return None if path.raw == b"moved.md" else super().read(path, most)


@pytest.mark.parametrize("name", ["secret.md", "moved.md"])
def test_what_cannot_be_read_holds_nothing_up_and_is_told(name: str) -> None:
    """C2, C20: a true claim is upheld beside it, and one that needs it stands."""
    tree = Guarded({"a.md": TODO, "b.md": CLEAN, "c.md": CLEAN, name: TODO})
    found = scanned(tree, [*canonical("a.md"), *evidence(name)])
    assert (places(found), skips(found)) == (["a.md:1"], {name: SkipReason.UNREADABLE})
    assert decide(CLAIM, found, ClaimsSettings()).outcome is ClaimOutcome.UPHELD
    clean = Guarded({"b.md": CLEAN, "c.md": CLEAN, name: TODO})
    judged = decide(CLAIM, scanned(clean, [*canonical("b.md", name), *current("c.md")]), ClaimsSettings())
    assert judged.outcome is ClaimOutcome.UNDECIDED
    assert judged.coverage is not None
    assert judged.coverage.reasons == ("priority_candidate_unscanned:unreadable",)
    found = scanned(clean, canonical("b.md"))
    assert found.fallback_skipped == {SkipReason.UNREADABLE: 1}
    assert decide(CLAIM, found, ClaimsSettings()).outcome is ClaimOutcome.CONTRADICTED


class Clock:
    """A clock that is over after so many questions, and counts them."""

    def __init__(self, answers: int) -> None:
        self.left = answers

    def __call__(self) -> bool:
        self.left -= 1
        assert self.left >= -1, "once it is over it is not asked again"
        return self.left < 0


def test_what_the_time_was_too_short_for_is_told() -> None:
    """C3: asked before the look, before the first file and after it, before the second."""
    tree = Tree({"a.md": CLEAN, "b.md": CLEAN, "c.go": CLEAN, "d.md": CLEAN})
    found = scan(tree, [*canonical("a.md", "b.md", "c.go"), *evidence("d.md")], ROOMY, MARKERS, Clock(3))
    assert names(found) == ["a.md"]
    assert skips(found) == {"b.md": SkipReason.TIMEOUT, "c.go": SkipReason.SUFFIX, "d.md": SkipReason.TIMEOUT}
    assert found.timed_out
    assert not found.used_fallback


@pytest.mark.parametrize(
    ("answers", "read", "used_fallback"),
    [(0, 0, False), (1, 0, False), (2, 0, False), (3, 1, False), (6, 2, False), (7, 3, False), (8, 3, True)],
)
def test_the_time_may_end_anywhere_and_never_unseen(answers: int, read: int, used_fallback: bool) -> None:
    """C3: also before the look, inside a file, after the last one; the fallback was used where it began."""
    files = dict.fromkeys(("a.md", "b.md", "c.md"), CLEAN)
    found = scan(Tree(files), canonical("a.md", "b.md", "c.md"), ROOMY, MARKERS, Clock(answers))
    assert len(found.scanned) == read
    assert [each.reason for each in found.skipped] == [SkipReason.TIMEOUT] * (3 - read)
    assert found.used_fallback == used_fallback
    assert found.timed_out != used_fallback
    outcome = decide(CLAIM, found, ClaimsSettings()).outcome
    assert outcome is (ClaimOutcome.CONTRADICTED if used_fallback else ClaimOutcome.UNDECIDED)


def test_the_time_ends_inside_a_file() -> None:
    """C3: what was found until then counts, and the file was not scanned whole."""
    many = TODO * 5_000
    found = scan(Tree({"a.md": many, "b.md": TODO}), canonical("a.md", "b.md"), ROOMY, MARKERS, Clock(10))
    assert 0 < len(found.placeholders) < 5_000
    assert skips(found) == {"a.md": SkipReason.TIMEOUT, "b.md": SkipReason.TIMEOUT}


def test_so_many_paths_are_not_all_looked_at_where_the_time_is_over() -> None:
    """C3: a verdict may name a million."""
    wanted = canonical(*(f"{number}.md" for number in range(5_000)))
    found = scan(Tree(), wanted, ROOMY, MARKERS, Clock(2))
    reasons = [each.reason for each in found.skipped]
    assert 0 < reasons.count(SkipReason.MISSING) < 2_000
    assert reasons.count(SkipReason.MISSING) + reasons.count(SkipReason.TIMEOUT) == 5_000


def test_an_empty_tree_and_no_candidates_are_no_trouble() -> None:
    found = scanned(Tree(), [])
    assert found == ScanResult(source_counts=dict.fromkeys(Tier, 0), used_fallback=True)


def test_one_file_has_no_more_room_than_all() -> None:
    settings = ClaimsSettings(contradiction_scan_max_total_bytes=1024, contradiction_scan_max_file_bytes=5000)
    assert caps_of(settings) == ScanCaps(80, 1024, 1024, settings.contradiction_scan_allowed_suffixes)


READABLE = ["a.md", "b.md", "c.txt", "build/f.md", ".h/g.md", "sub/h.py", "sub/i.md"]
NAMES = st.sampled_from([*READABLE, *READABLE, "d.go", "e", "link.md", "gone.md"])
FINE = st.sampled_from(
    [CLEAN, b"", b"a TODO app\n", b"def f():\n    return 1\n", "fine\n".encode("utf-16"), CLEAN * 3]
)
PARTS = [CLEAN, TODO, b"[TBD]\n", b"x", b"\0", b"\n", b"\xff", b"def f():\n    pass\n"]
MIXED = st.one_of(
    FINE,
    st.lists(st.sampled_from(PARTS), max_size=6).map(b"".join),
    st.just("TODO: x\n".encode("utf-16")),
)


def tree_of(files: dict[str, bytes]) -> Tree:
    faults = {"link.md": SkipReason.SYMLINK} if "link.md" in files else {}
    return Tree({name: files[name] for name in files if name not in {"link.md", "gone.md"}}, faults)


# Most are clean where a scan looks first, else hardly any would be contradicted; what it cannot read is not.
HIDDEN = {"d.go": TODO, "e": TODO, "c.txt": CLEAN * 4 + TODO}
TREES = st.one_of(
    st.dictionaries(NAMES, FINE, max_size=9).map(tree_of),
    st.dictionaries(NAMES, FINE, max_size=5).map(lambda files: tree_of({**files, **HIDDEN})),
    st.dictionaries(NAMES, MIXED, max_size=9).map(tree_of),
)
TIERS = st.sampled_from([Tier.CANONICAL, Tier.CURRENT, Tier.PRIOR, Tier.EVIDENCE])
ODD = st.sampled_from(["d.go", "e", "link.md", "gone.md"])
STRANGE = st.one_of(
    st.builds(lambda tier, name: Candidate(tier, RepoPath(name.encode()), name), TIERS, ODD),
    st.builds(lambda tier: Candidate(tier, None, "../x"), TIERS),
)


@st.composite
def works(draw: st.DrawFn) -> tuple[Tree, list[Candidate]]:
    """A tree, and candidates that are mostly there."""
    tree = draw(TREES)
    there = [name for name in tree.files if name in READABLE or name in HIDDEN]
    own = st.builds(
        lambda tier, name: Candidate(tier, RepoPath(name.encode()), name), TIERS, st.sampled_from(there)
    )
    candidates = draw(st.lists(own, max_size=6)) if there else []
    return tree, candidates + draw(st.one_of(st.just([]), st.lists(STRANGE, min_size=1, max_size=1)))


ROOM = st.one_of(st.just(100_000), st.integers(0, 60))
CAPS = st.builds(
    ScanCaps,
    st.one_of(st.just(80), st.integers(0, 6)),
    ROOM,
    ROOM,
    st.sampled_from([(".md", ".txt", ".py"), (".md", ".go", ".py", ".txt", ""), (".md",)]),
)


@settings(max_examples=often(200), deadline=None)
@given(works(), CAPS, st.integers(1, 3))
def test_what_is_contradicted_holds_no_placeholder_in_any_file_that_counts(
    work: tuple[Tree, list[Candidate]], caps: ScanCaps, fewest: int
) -> None:
    """C2, C3, C5, C15, C30: and two runs give one answer, no cap is exceeded, nothing is read twice."""
    tree, candidates = work
    found = scanned(tree, candidates, caps)
    assert found.total_bytes == sum(most for _, most in tree.asked) <= caps.max_total_bytes
    assert len(tree.asked) <= caps.max_files
    assert len(set(tree.read_names)) == len(tree.asked)
    assert scanned(Tree(tree.files, tree.faults), [*candidates, *candidates[:1]], caps) == found
    config = ClaimsSettings(contradiction_scan_min_files_for_sufficiency=fewest)
    claim = Claim(False, "incomplete_deliverable_placeholder")
    outcome = decide(claim, found, config).outcome
    event(outcome)
    if outcome is not ClaimOutcome.CONTRADICTED:
        return
    for candidate in candidates:
        if candidate.tier.is_high_priority:
            assert candidate.path is not None
            text = to_utf8(tree.files[str(candidate.path)])
            assert text is not None
            assert not find_matches(text, candidate.path.raw, MARKERS)
    assert any(each.tier in {Tier.CANONICAL, Tier.CURRENT} for each in candidates)


READ_WHOLE = st.one_of(
    *(st.dictionaries(st.sampled_from(READABLE), content, min_size=1) for content in (FINE, FINE, MIXED))
)


@settings(max_examples=often(100), deadline=None)
@given(READ_WHOLE, st.data())
def test_with_room_and_no_fault_the_outcome_is_that_of_a_search_by_hand(
    files: dict[str, bytes], data: st.DataObject
) -> None:
    """C2, C5, C15: contradicted exactly where there is nothing, which is so in about half of the trees."""
    own = st.builds(
        lambda tier, name: Candidate(tier, RepoPath(name.encode()), name), TIERS, st.sampled_from([*files])
    )
    candidates = [*canonical(min(files)), *data.draw(st.lists(own, max_size=5))]
    counting = {str(each.path) for each in candidates if each.tier.is_high_priority}
    seen = {str(each.path) for each in candidates} | {name for name in files if name[:2] not in {"bu", ".h"}}
    texts = {name: to_utf8(files[name]) for name in seen}
    config = ClaimsSettings(contradiction_scan_min_files_for_sufficiency=1)
    outcome = decide(CLAIM, scanned(Tree(files), candidates), config).outcome
    event(outcome)
    if any(text and find_matches(text, name.encode(), MARKERS) for name, text in texts.items()):
        assert outcome is ClaimOutcome.UPHELD
    elif any(texts[name] is None for name in counting):
        assert outcome is ClaimOutcome.UNDECIDED
    else:
        assert outcome is ClaimOutcome.CONTRADICTED


@settings(max_examples=often(60), deadline=None)
@given(works())
def test_with_room_for_all_every_placeholder_of_the_tiers_is_found(
    work: tuple[Tree, list[Candidate]],
) -> None:
    tree, candidates = work
    expected = set()
    for name in {str(each.path) for each in candidates if each.path is not None}:
        text = to_utf8(tree.files.get(name, b""))
        if text is not None and name.endswith((".md", ".txt", ".py")):
            expected |= {f"{name}:{each.line}" for each in find_matches(text, name.encode(), MARKERS)}
    found = scanned(tree, candidates)
    assert {
        place for place in places(found) if place.rpartition(":")[0] in map(str, _paths(candidates))
    } == expected


def _paths(candidates: list[Candidate]) -> set[RepoPath]:
    return {each.path for each in candidates if each.path is not None}
