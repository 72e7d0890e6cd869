"""Adjudicating claims on real repositories: what is read where, and that nothing is waved through unread.

The pure rules have their own tests (`test_claim_scan`, `test_claim_decision`). Here is what only git and
a disk can show.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.placeholders.claims.claim import ClaimOutcome
from patchgate.placeholders.claims.claim_source import SourceOptions
from tests.placeholders.claims.claim_world import (
    CODE,
    LARGE_LINE,
    MARK,
    adjudged,
    claim,
    make_small,
    make_world,
    places,
    reasons,
    remembered,
    scanned,
    skipped,
)
from tests.world import Repo

UPHELD, CONTRADICTED = ClaimOutcome.UPHELD, ClaimOutcome.CONTRADICTED
UNDECIDED, UNCHANGED, PASSED = ClaimOutcome.UNDECIDED, ClaimOutcome.UNCHANGED, ClaimOutcome.PASSED
WORKTREE = SourceOptions(worktree=True)
UNREAD = "priority_candidate_unscanned:"
CLEAN = ("docs/out.md", "docs/more.md")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The repository that no test changes, but for its ledger."""
    return make_world(tmp_path_factory.mktemp("claims"))


@pytest.fixture
def own(tmp_path: Path) -> Repo:
    """A small repository of one test."""
    return make_small(tmp_path)


# --- the table, and the cases that a naive rule gets wrong -------------------------------------------


def test_a_false_claim_is_contradicted(shared: Repo) -> None:
    """C2, C5, C21, C33: claimed, all of it read, nothing there."""
    found = adjudged(shared, claim(CODE, "docs/out.md", confidence=0.9))
    assert (found.outcome, found.reason_code, found.severity_class) == (
        CONTRADICTED,
        "parse_inconclusive",
        "inconclusive",
    )
    assert (found.passed, found.confidence, found.contradicted_reason_code) == (False, 0.5, CODE)
    assert scanned(found)["docs/out.md"] == "canonical"
    assert found.scan is not None
    assert found.scan.used_fallback
    assert found.read_from == "the index"


def test_a_true_claim_is_upheld_with_its_place(shared: Repo) -> None:
    """C20."""
    found = adjudged(shared, claim(CODE, "build/out.md"))
    assert (found.outcome, found.reason_code, places(found)) == (UPHELD, CODE, ["build/out.md:3"])


def test_a_claim_of_something_else_stays_as_it_was(shared: Repo) -> None:
    """C23."""
    found = adjudged(shared, claim("wrong_answer", "docs/out.md", feedback="The sum is wrong."))
    assert (found.outcome, found.reason_code, found.scan) == (UNCHANGED, "wrong_answer", None)


def test_an_invariant_blocks_whatever_a_scan_says(shared: Repo) -> None:
    """C1."""
    hard = claim(CODE, "docs/out.md", severity_class="hard_invariant")
    for each in (hard, claim("path-traversal", "docs/out.md"), claim("PATCH_POLICY_DENY", "docs/out.md")):
        assert adjudged(shared, each).outcome is UPHELD


@pytest.mark.parametrize(
    "asked", [SourceOptions(), WORKTREE, SourceOptions("HEAD")], ids=["index", "worktree", "tree"]
)
@pytest.mark.parametrize(
    ("name", "place"),
    [("large", f"build/large.md:{LARGE_LINE}"), ("wide", "build/wide.md:2"), ("out", "build/out.md:3")],
    ids=["400 kB, at the end", "UTF-16", "in build"],
)
def test_what_a_naive_scan_misses_is_found(shared: Repo, asked: SourceOptions, name: str, place: str) -> None:
    """C16, C36: over the size cap, UTF-16, in a heavy folder; wherever it is read from."""
    found = adjudged(shared, claim(CODE, f"build/{name}.md"), asked)
    assert (found.outcome, places(found)) == (UPHELD, [place])


UNREADABLE = {
    "src/main.go": "suffix",
    "Makefile": "suffix",
    "build/binary.md": "binary",
    "docs/never.md": "missing",
    "docs/never/written.md": "missing",
    "docs/out.md/below.md": "missing",
    "docs": "missing",
    "docs/passwd.md": "symlink",
    "docs/linked/out.md": "symlink",
    "../../etc/passwd": "outside",
    "/etc/passwd": "outside",
    "C:\\docs\\out.md": "outside",
    ".git/config": "outside",
    "docs/.GIT/config": "outside",
    "docs/..": "outside",
}


@pytest.mark.parametrize(("name", "reason"), UNREADABLE.items())
def test_what_was_not_read_contradicts_nobody(shared: Repo, name: str, reason: str) -> None:
    """C14, C19, C22, C34, C36, C37: each stays a candidate, and the reason is told."""
    found = adjudged(shared, claim(CODE, name, changed_files=[*CLEAN]))
    assert (found.outcome, found.reason_code) == (UNDECIDED, CODE)
    assert reasons(found) == (UNREAD + reason,)
    assert skipped(found) == {name: reason}
    assert found.scan is not None
    assert not found.scan.placeholders


@pytest.mark.parametrize("asked", [WORKTREE, SourceOptions("HEAD")], ids=["worktree", "tree"])
def test_disk_and_tree_tell_the_same_of_what_cannot_be_read(shared: Repo, asked: SourceOptions) -> None:
    """C14, C36, C37."""
    found = adjudged(shared, claim(CODE, *UNREADABLE, changed_files=[*CLEAN]), asked)
    assert (found.outcome, skipped(found)) == (UNDECIDED, UNREADABLE)
    told = ("binary", "suffix", "missing", "symlink", "outside")
    assert reasons(found) == tuple(UNREAD + reason for reason in told)


def test_a_submodule_is_outside(shared: Repo) -> None:
    """C14."""
    for asked in (SourceOptions(), SourceOptions("HEAD")):
        for name in ("docs/module", "docs/module/out.md"):
            assert reasons(adjudged(shared, claim(CODE, name, changed_files=[*CLEAN]), asked)) == (
                UNREAD + "outside",
            )


@pytest.mark.parametrize(
    "given",
    [
        "build\\out.md",
        "./build//out.md",
        "docs/../build\\out.md",
        "build\\.\\..\\build/out.md",
        "{root}/build/out.md",
        "{root}\\docs\\..\\build\\out.md",
    ],
)
def test_mixed_separators_name_the_same_file(shared: Repo, given: str) -> None:
    """C29: also an absolute path into the working tree."""
    found = adjudged(shared, claim(CODE, given.replace("{root}", str(shared.path))))
    assert places(found) == ["build/out.md:3"]


def test_a_file_is_read_once_whatever_it_is_called(shared: Repo) -> None:
    """C7, C30: the first tier that names it owns it."""
    names = ["docs/more.md", "docs\\more.md", "./docs/out.md"]
    found = adjudged(shared, claim(CODE, "docs/out.md", changed_files=names, evidence_files=["docs/out.md"]))
    assert scanned(found)["docs/out.md"] == "canonical"
    assert scanned(found)["docs/more.md"] == "current_attempt"
    assert found.scan is not None
    assert len(found.scan.scanned) == len({each.path for each in found.scan.scanned})


def test_three_changed_files_and_a_cap_of_two(own: Repo) -> None:
    """C3, C9, C15, C18, C35: what no cap let through is named, and the claim stands."""
    own.policy("[claims]\ncontradiction_scan_max_files = 2\n")
    own.stage({"z.md": MARK})
    files = ["docs/out.md", "docs/more.md", "z.md"]
    found = adjudged(own, claim(changed_files=files))
    assert found.outcome is UNDECIDED
    assert reasons(found) == ("cap_exhausted_before_priority_scan", UNREAD + "cap")
    assert len(scanned(found)) == 2
    assert skipped(found) == {"z.md": "cap"}
    assert remembered(own)[-1].cap_exhausted
    own.policy("[claims]\ncontradiction_scan_max_files = 3\n")
    assert places(adjudged(own, claim(changed_files=files))) == ["z.md:1"]


def test_a_total_cap_counts_to_the_byte(own: Repo) -> None:
    """C10: a deliverable of just so many bytes is read whole, one byte more is not."""
    own.stage({"docs/out.md": "x" * 2047 + "\n"})
    for total, outcome in ((2048, CONTRADICTED), (2047, UNDECIDED)):
        own.policy(f'[claims]\ncontradiction_scan_max_total_bytes = {total}\nexclude = ["*"]\n')
        found = adjudged(own, claim(CODE, "docs/out.md"))
        assert found.outcome is outcome
        assert found.scan is not None
        assert found.scan.total_bytes == total


def test_two_runs_give_equal_answers_and_two_orders_the_same_outcome(shared: Repo) -> None:
    """C7, C15: the order of a list is that of the reading, and of nothing else."""
    files = ["docs/more.md", "build/out.md", "src/main.go", "build/wide.md", "../x"]
    one, again = (adjudged(shared, claim(CODE, *files, issues=["z", "a"])) for _ in range(2))
    other = adjudged(shared, claim(CODE, *reversed(files), issues=["z", "a"]))
    assert one == again
    assert (one.outcome, one.coverage, set(places(one))) == (
        other.outcome,
        other.coverage,
        set(places(other)),
    )
    assert places(one) == places(other)[::-1] == ["build/out.md:3", "build/wide.md:2"]


def test_one_of_two_spellings_hides_no_file(own: Repo) -> None:
    """C29: where a file is really called so, it and the one in the folder are both read."""
    own.stage({"docs\\out.md": "# Clean\n", "docs/out.md": "# Report\n\n" + MARK, "a\\b.md": "# Clean\n"})
    found = adjudged(own, claim(CODE, "docs\\out.md", changed_files=["notes.md"]))
    assert (found.outcome, places(found)) == (UPHELD, ["docs/out.md:3"])
    assert scanned(found) == {
        '"docs\\\\out.md"': "canonical",
        "docs/out.md": "canonical",
        "notes.md": "current_attempt",
    }
    found = adjudged(own, claim(CODE, "a\\b.md", changed_files=["notes.md"]))
    assert '"a\\\\b.md"' in scanned(found)
    assert not skipped(found)


# --- whose policy, and what cannot be read -----------------------------------------------------------


def test_no_change_chooses_its_own_measure(own: Repo) -> None:
    """C26: what is staged, or in the judged commit, has no say; the commit before it has."""
    deliverable = claim(CODE, "main.go", changed_files=["docs/out.md", "docs/more.md"])
    own.stage(
        {
            "main.go": MARK,
            "patchgate.toml": '[claims]\ncontradiction_scan_allowed_suffixes = [".go", ".md"]\n',
        }
    )
    assert reasons(adjudged(own, deliverable)) == (UNREAD + "suffix",)
    own.commit()
    assert reasons(adjudged(own, deliverable, SourceOptions("HEAD"))) == (UNREAD + "suffix",)
    assert places(adjudged(own, deliverable)) == ["main.go:1"]
    own.git("config", "patchgate.trustRef", "refs/heads/trusted")
    own.git("branch", "trusted", "HEAD~1")
    assert reasons(adjudged(own, deliverable)) == (UNREAD + "suffix",)


def test_a_root_commit_is_judged_by_its_own_policy(tmp_path: Path) -> None:
    """C26, C27: there was none before; where nothing is committed the built-in one holds."""
    repo = Repo.create(tmp_path)
    repo.stage({"patchgate.toml": "[claims]\ncontradiction_guard_enabled = false\n", "a.md": "# A\n"})
    assert adjudged(repo, claim(CODE, "a.md")).outcome is CONTRADICTED
    repo.commit()
    found = adjudged(repo, claim(CODE, "a.md"), SourceOptions("HEAD"))
    assert (found.outcome, found.guard_enabled) == (UNCHANGED, False)


def test_an_emergency_is_told(own: Repo) -> None:
    """C28: without strict coverage any file that was read is enough, and the answer says so."""
    own.policy("[claims]\ncontradiction_guard_strict_coverage = false\n")
    found = adjudged(own, claim(CODE, "docs/never.md"))
    assert (found.outcome, found.strict_coverage) == (CONTRADICTED, False)


def test_a_broken_policy_is_told_and_a_doubtful_value_stops_nothing(own: Repo) -> None:
    """C26."""
    own.policy("[claims]\ncontradiction_scan_max_files = 100000\ncontradiction_scan_timeout_seconds = []\n")
    assert adjudged(own, claim(CODE, "docs/out.md")).outcome is CONTRADICTED
    own.policy("[claims\n")
    with pytest.raises(ConfigError):
        adjudged(own, claim(CODE, "docs/out.md"))


def test_where_the_time_is_over_the_claim_stands(shared: Repo) -> None:
    """C3: by a clock that is far on after the first look."""
    clock: Iterator[float] = iter([0.0, 0.0])
    found = adjudged(
        shared, claim(CODE, "docs/out.md", changed_files=[*CLEAN]), clock=lambda: next(clock, 99.0)
    )
    assert found.outcome is UNDECIDED
    assert UNREAD + "timeout" in reasons(found)


def test_conflicts_are_undecided(own: Repo) -> None:
    """C2: what cannot be read contradicts nobody; in the working tree a conflict is text like any other."""
    base = own.head()
    own.commit({"docs/out.md": "# One\n"})
    own.git("checkout", "-q", "-b", "other", base)
    own.commit({"docs/out.md": "# Other\n"})
    assert own.try_git("merge", "-q", "main").returncode
    with pytest.raises(UndecidedError):
        adjudged(own, claim(CODE, "docs/out.md"))
    assert adjudged(own, claim("wrong_answer", "docs/out.md")).outcome is UNCHANGED


def test_a_shallow_clone_does_not_make_a_root_of_its_oldest_commit(own: Repo, tmp_path: Path) -> None:
    own.commit({"docs/out.md": "# Two\n"})
    own.git("clone", "-q", "--depth", "1", f"file://{own.path}", str(tmp_path / "shallow"))
    with pytest.raises(UndecidedError, match="parent of commit"):
        adjudged(own.at(tmp_path / "shallow"), claim(CODE, "docs/out.md"), SourceOptions("HEAD"))


def test_a_bare_repository_is_asked_for_a_revision(shared: Repo, tmp_path: Path) -> None:
    shared.git("clone", "-q", "--bare", str(shared.path), str(tmp_path / "bare"))
    bare = shared.at(tmp_path / "bare")
    for asked in (
        SourceOptions(),
        WORKTREE,
        SourceOptions("nowhere"),
        SourceOptions("--all"),
        SourceOptions("HEAD", worktree=True),
    ):
        with pytest.raises(UsageError):
            adjudged(bare, claim(CODE, "docs/out.md"), asked)
    assert adjudged(bare, claim(CODE, "docs/out.md"), SourceOptions("HEAD")).outcome is CONTRADICTED


# --- the fallback, and what is written ----------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", [SourceOptions(), WORKTREE, SourceOptions("HEAD")], ids=["index", "worktree", "tree"]
)
def test_the_fallback_passes_by_whole_folders_and_counts_each_file_once(
    tmp_path: Path, asked: SourceOptions
) -> None:
    """C13, C30, C41: what a tier had named is not counted again, wherever it lies."""
    repo = Repo.create(tmp_path)
    folders = (".hidden", "build", "buildx", "src/vendor/deep", "src/vendor-x", "z")
    repo.commit({f"{folder}/{name}": MARK for folder in folders[:2] for name in ("a.md", "b.go", "c.md")})
    repo.commit({f"{folder}/{name}": "# x\n" for folder in folders[2:] for name in ("a.md", "b.go", "c.md")})
    repo.commit()
    named = [
        "z/a.md",
        "z/b.go",
        "src/vendor/deep/a.md",
        "build/b.go",
        "build/none.md",
        "src/vendor/deep/a.md",
    ]
    found = adjudged(repo, claim(CODE, *named), asked)
    assert found.scan is not None
    assert {each.value: number for each, number in found.scan.fallback_skipped.items()} == {
        "suffix": 2,
        "excluded": 7,
    }
    fallback = {name for name, tier in scanned(found).items() if tier == "fallback"}
    assert fallback == {"buildx/a.md", "buildx/c.md", "src/vendor-x/a.md", "src/vendor-x/c.md", "z/c.md"}


def test_nothing_of_the_repository_is_written_but_the_ledger(own: Repo) -> None:
    """C39: neither index, refs, objects nor working tree."""
    own.stage({"docs/out.md": "# Staged\n"})
    own.write("docs/out.md", "# Not staged\n")

    def state() -> dict[str, str]:
        return {
            str(place): hashlib.sha256(place.read_bytes()).hexdigest()
            for place in sorted(own.path.rglob("*"))
            if place.is_file() and ".git/patchgate" not in str(place)
        }

    before = state()
    for asked in (SourceOptions(), WORKTREE, SourceOptions("HEAD")):
        adjudged(own, claim(CODE, "docs/out.md", subject="s"), asked)
    assert state() == before


# --- the record --------------------------------------------------------------------------------------


def test_each_adjudication_is_remembered_without_content(shared: Repo) -> None:
    """C24, C25, C38: counts and places."""
    start = len(remembered(shared))
    adjudged(shared, claim(CODE, "build/out.md", "build/wide.md", subject="s", feedback="secret words"))
    adjudged(shared, claim(CODE, "docs/out.md", changed_files=["docs/out.md"]))
    adjudged(shared, claim(CODE, "src/main.go", changed_files=[*CLEAN]))
    adjudged(shared, claim("other"))
    upheld, contradicted, undecided, unchanged = remembered(shared)[start:]
    assert (upheld.outcome, upheld.subject, upheld.reason_code) == ("upheld", "s", CODE)
    assert (upheld.contradiction_marker_found, upheld.scan_mode, upheld.samples) == (
        True,
        "targeted_only",
        ("build/out.md:3", "build/wide.md:2"),
    )
    assert (upheld.matched_file_count, upheld.scanned_file_count, upheld.is_placeholder_claim) == (2, 2, True)
    assert (contradicted.contradiction_detected, contradicted.coverage_sufficient) == (True, True)
    assert contradicted.scan_mode == "targeted_plus_fallback"
    assert (undecided.contradiction_detected_no_downgrade, undecided.coverage_sufficient) == (True, False)
    assert undecided.coverage_insufficient_reason == UNREAD + "suffix"
    assert (unchanged.outcome, unchanged.coverage_sufficient, unchanged.scan_mode) == (
        "unchanged",
        None,
        None,
    )
    ledger = (shared.path / ".git" / "patchgate" / "events.jsonl").read_text()
    assert "secret words" not in ledger
    assert "write this" not in ledger


def test_a_long_list_is_recorded_in_parts_and_comes_back_whole(own: Repo) -> None:
    """C32."""
    names = [f"d/{'x' * 200}{number:06}.md" for number in range(8000)]
    adjudged(own, claim(None, passed=True, subject="many", changed_files=names))
    lines = (own.path / ".git" / "patchgate" / "events.jsonl").read_text().splitlines()
    assert len([line for line in lines if json.loads(line)["event"]["kind"] == "adjudicated"]) > 1
    (only,) = remembered(own)
    assert [path.quoted for path in only.changed_files] == names
    (own.path / ".git" / "patchgate" / "events.jsonl").write_text("".join(f"{line}\n" for line in lines[1:]))
    (rest,) = remembered(own)
    assert 0 < len(rest.changed_files) < len(names)


def test_a_ledger_that_cannot_be_written_is_a_warning(own: Repo) -> None:
    (own.path / ".git" / "patchgate").write_text("in the way\n")
    found = adjudged(own, claim(CODE, "docs/out.md"))
    assert found.outcome is CONTRADICTED
    assert any("not recorded" in warning for warning in found.warnings)
