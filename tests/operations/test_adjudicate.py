"""Adjudicating claims on real repositories: what is read where, and that nothing is waved through unread.

The pure rules have their own tests (`tests/gates/test_claim_scan.py`, `test_claims.py`); here stands what
only git and a disk can show.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchgate.change.path import RepoPath
from patchgate.errors import ConfigError, UndecidedError, UsageError
from patchgate.git.objects import Objects
from patchgate.ledger.adjudications import KIND, Adjudicated
from patchgate.ledger.ledger import Ledger
from patchgate.operations.hold.claims.adjudicate import Asked
from patchgate.operations.hold.claims.disk import DiskSnapshot
from patchgate.operations.hold.claims.judged import judged_of
from patchgate.verdict.claim import ClaimOutcome, Unscanned
from tests.operations.claim_world import (
    CODE,
    LARGE_LINE,
    MARK,
    adjudged,
    claim,
    make_world,
    opened,
    places,
    reasons,
    remembered,
    scanned,
    skipped,
)
from tests.world import Repo

UPHELD, CONTRADICTED = ClaimOutcome.UPHELD, ClaimOutcome.CONTRADICTED
UNDECIDED, UNCHANGED, PASSED = ClaimOutcome.UNDECIDED, ClaimOutcome.UNCHANGED, ClaimOutcome.PASSED
WORKTREE = Asked(worktree=True)
UNREAD = "priority_candidate_unscanned:"
CLEAN = ("docs/out.md", "docs/more.md")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The repository that no test changes, but for its ledger."""
    return make_world(tmp_path_factory.mktemp("claims"))


@pytest.fixture
def own(tmp_path: Path) -> Repo:
    """A small repository of one test."""
    repo = Repo.create(tmp_path)
    repo.commit({"docs/out.md": "# Report\n", "docs/more.md": "# More\n", "notes.md": "# Notes\n"})
    return repo


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


@pytest.mark.parametrize("asked", [Asked(), WORKTREE, Asked("HEAD")], ids=["index", "worktree", "tree"])
@pytest.mark.parametrize(
    ("name", "place"),
    [("large", f"build/large.md:{LARGE_LINE}"), ("wide", "build/wide.md:2"), ("out", "build/out.md:3")],
    ids=["400 kB, at the end", "UTF-16", "in build"],
)
def test_what_a_naive_scan_misses_is_found(shared: Repo, asked: Asked, name: str, place: str) -> None:
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
    assert not found.scan.places


@pytest.mark.parametrize("asked", [WORKTREE, Asked("HEAD")], ids=["worktree", "tree"])
def test_disk_and_tree_tell_the_same_of_what_cannot_be_read(shared: Repo, asked: Asked) -> None:
    """C14, C36, C37."""
    found = adjudged(shared, claim(CODE, *UNREADABLE, changed_files=[*CLEAN]), asked)
    assert (found.outcome, skipped(found)) == (UNDECIDED, UNREADABLE)
    told = ("binary", "suffix", "missing", "symlink", "outside")
    assert reasons(found) == tuple(UNREAD + reason for reason in told)


def test_a_submodule_is_outside(shared: Repo) -> None:
    """C14."""
    for asked in (Asked(), Asked("HEAD")):
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
        own.policy(f"[claims]\ncontradiction_scan_max_total_bytes = {total}\n")
        found = adjudged(own, claim(CODE, "docs/out.md"))
        assert found.outcome is outcome
        assert found.scan is not None
        assert found.scan.total_bytes == total


def test_two_runs_and_two_orders_give_equal_answers(shared: Repo) -> None:
    """C15: the order of a list says nothing."""
    files = ["docs/more.md", "build/out.md", "src/main.go", "build/wide.md", "../x"]
    one, again = (adjudged(shared, claim(CODE, *files, issues=["z", "a"])) for _ in range(2))
    other = adjudged(shared, claim(CODE, *reversed(files), issues=["z", "a"]))
    assert one == again
    assert (one.scan, one.coverage, one.why) == (other.scan, other.coverage, other.why)


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


# --- the tiers ---------------------------------------------------------------------------------------


def test_what_is_staged_is_the_current_attempt(own: Repo) -> None:
    """C6, C31: removed files are no candidates of a list that nobody gave."""
    own.stage({"docs/more.md": "# More\n\n" + MARK})
    own.git("rm", "-q", "notes.md")
    own.write("docs/out.md", MARK)
    found = adjudged(own, claim(CODE, "docs/out.md"))
    assert (found.outcome, places(found)) == (UPHELD, ["docs/more.md:3"])
    assert scanned(found) == {"docs/out.md": "canonical", "docs/more.md": "current_attempt"}
    assert skipped(found) == {}


def test_the_working_tree_has_what_is_not_staged_and_not_tracked(own: Repo) -> None:
    """C6: against HEAD, ignored files left out unless they are named."""
    own.commit({".gitignore": "*.tmp.md\n"})
    own.write("docs/out.md", "# Report\n\n" + MARK)
    own.write("new.md", "# New\n")
    own.write("x.tmp.md", MARK)
    found = adjudged(own, claim(CODE, "docs/more.md"), WORKTREE)
    assert places(found) == ["docs/out.md:3"]
    assert scanned(found)["new.md"] == "current_attempt"
    assert "x.tmp.md" not in scanned(found)
    assert places(adjudged(own, claim(CODE, "x.tmp.md"), WORKTREE)) == ["x.tmp.md:1", "docs/out.md:3"]
    assert adjudged(own, claim(CODE, "docs/out.md")).outcome is CONTRADICTED


def test_of_a_revision_its_own_change_is_the_current_attempt(own: Repo) -> None:
    """C6: against its first parent; of a root commit all is new; of a bare tree nobody can tell."""
    own.commit({"docs/more.md": "# More\n\n" + MARK})
    own.commit({"docs/more.md": "# More\n"})
    assert places(adjudged(own, claim(CODE, "docs/out.md"), Asked("HEAD~1"))) == ["docs/more.md:3"]
    found = adjudged(own, claim(CODE, "docs/out.md"), Asked("HEAD~2"))
    assert found.outcome is CONTRADICTED
    assert found.read_from == "HEAD~2"
    assert scanned(found)["notes.md"] == "current_attempt"
    found = adjudged(own, claim(CODE, "docs/out.md"), Asked("HEAD~1^{tree}"))
    assert places(found) == ["docs/more.md:3"]
    assert scanned(found)["docs/more.md"] == "fallback"


def test_an_active_intent_tells_what_the_attempt_changed(own: Repo) -> None:
    """C6: committed and staged since its declaration; what was dirty before is not its work."""
    own.stage({"notes.md": "# Notes\n\nnearly\n"})
    done = own.run(
        "intent", "declare", "-m", "write the docs", "--allow", "docs/more.md", "--allow", "new.md"
    )
    assert done.code == 0, done.err
    own.write("docs/more.md", "# More\n\n" + MARK)
    own.git("commit", "-q", "--no-verify", "-m", "More", "--", "docs/more.md")
    own.stage({"new.md": "# New\n"})
    found = adjudged(own, claim(CODE, "docs/out.md"))
    assert places(found) == ["docs/more.md:3"]
    tiers = {"docs/out.md": "canonical", "docs/more.md": "current_attempt", "new.md": "current_attempt"}
    assert scanned(found) == tiers
    # The work is in HEAD, and nothing of it in what was there before.
    assert places(adjudged(own, claim(CODE, "docs/out.md"), Asked("HEAD"))) == ["docs/more.md:3"]
    found = adjudged(own, claim(CODE, "docs/out.md"), Asked("HEAD~1"))
    assert (found.outcome, scanned(found)["notes.md"]) == (CONTRADICTED, "current_attempt")


def test_a_passed_verdict_leaves_its_files_to_later_ones_of_its_subject(own: Repo) -> None:
    """C32: given or derived, also names that are no text; another subject has others."""
    own.write(b"docs/\xff\n.md", "# Odd\n\n" + MARK)
    own.git("add", "-A")
    done = adjudged(own, claim(None, passed=True, subject="task-1"))
    assert (done.outcome, done.passed, done.warnings) == (PASSED, True, ())
    assert remembered(own)[-1].changed_files == (RepoPath(b"docs/\xff\n.md"),)
    own.commit()
    given = ["docs\\more.md", "../x", "gone.md"]
    adjudged(own, claim(None, passed=True, subject="task-2", changed_files=given))
    assert remembered(own)[-1].changed_files == (RepoPath(b"docs/more.md"), RepoPath(b"gone.md"))
    found = adjudged(own, claim(CODE, "docs/out.md", subject="task-1"))
    assert places(found) == ['"docs/\\377\\n.md":3']
    found = adjudged(own, claim(CODE, "docs/out.md", subject="task-2"))
    assert scanned(found)["docs/more.md"] == "prior_attempt"
    assert skipped(found) == {"gone.md": "missing"}
    found = adjudged(own, claim(CODE, "docs/out.md", subject="task-3"))
    assert "prior_attempt" not in scanned(found).values()


def test_what_failed_leaves_no_files(own: Repo) -> None:
    """C6: only earlier attempts that had passed count."""
    adjudged(own, claim(CODE, "docs/out.md", subject="task-1", changed_files=["docs/more.md"]))
    adjudged(own, claim("PATCH_X", passed=True, subject="task-1", changed_files=["notes.md"]))
    assert [each.changed_files for each in remembered(own)] == [(), ()]
    of_another = Adjudicated(outcome="upheld", subject="task-1", changed_files=(RepoPath(b"notes.md"),))
    Ledger(opened(own).common_dir).record(KIND, of_another.about())
    found = adjudged(own, claim(CODE, "docs/out.md", subject="task-1"))
    assert "prior_attempt" not in scanned(found).values()


def test_evidence_is_read_and_may_be_missing(shared: Repo) -> None:
    """C6: a text beside the work is no part of it."""
    evidence = ["docs/last.md", "docs/never.md", "src/main.go"]
    found = adjudged(shared, claim(CODE, "docs/out.md", evidence_files=evidence))
    assert scanned(found)["docs/last.md"] == "evidence_artifact"
    assert found.outcome is CONTRADICTED
    assert skipped(found) == {"docs/never.md": "missing", "src/main.go": "suffix"}


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
    assert reasons(adjudged(own, deliverable, Asked("HEAD"))) == (UNREAD + "suffix",)
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
    found = adjudged(repo, claim(CODE, "a.md"), Asked("HEAD"))
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


def test_conflicts_and_missing_objects_are_undecided(own: Repo) -> None:
    """C2: what cannot be read contradicts nobody; in the working tree a conflict is text like any other."""
    base = own.ask("rev-parse", "HEAD")
    own.commit({"docs/out.md": "# One\n"})
    own.git("checkout", "-q", "-b", "other", base)
    own.commit({"docs/out.md": "# Other\n"})
    assert own.try_git("merge", "-q", "main").returncode
    with pytest.raises(UndecidedError):
        adjudged(own, claim(CODE, "docs/out.md"))
    assert adjudged(own, claim("wrong_answer", "docs/out.md")).outcome is UNCHANGED
    own.git("merge", "--abort")
    oid = own.ask("rev-parse", "HEAD:docs/out.md")
    os.unlink(own.path / ".git" / "objects" / oid[:2] / oid[2:])
    with pytest.raises(UndecidedError, match="is not in this repository"):
        adjudged(own, claim(CODE, "docs/out.md"))


def test_a_shallow_clone_does_not_make_a_root_of_its_oldest_commit(own: Repo, tmp_path: Path) -> None:
    own.commit({"docs/out.md": "# Two\n"})
    own.git("clone", "-q", "--depth", "1", f"file://{own.path}", str(tmp_path / "shallow"))
    with pytest.raises(UndecidedError, match="parent of commit"):
        adjudged(own.at(tmp_path / "shallow"), claim(CODE, "docs/out.md"), Asked("HEAD"))


def test_a_bare_repository_is_asked_for_a_revision(shared: Repo, tmp_path: Path) -> None:
    shared.git("clone", "-q", "--bare", str(shared.path), str(tmp_path / "bare"))
    bare = shared.at(tmp_path / "bare")
    for asked in (Asked(), WORKTREE, Asked("nowhere"), Asked("--all"), Asked("HEAD", worktree=True)):
        with pytest.raises(UsageError):
            adjudged(bare, claim(CODE, "docs/out.md"), asked)
    assert adjudged(bare, claim(CODE, "docs/out.md"), Asked("HEAD")).outcome is CONTRADICTED


# --- the working tree --------------------------------------------------------------------------------


def test_the_index_is_read_where_files_folders_and_links_took_each_others_places(tmp_path: Path) -> None:
    """C14: what HEAD has there says nothing any more."""
    repo = Repo.create(tmp_path)
    repo.write("a/in.md", "in a")
    repo.write("b/in.md", "in b")
    repo.write("c", "file")
    repo.write("d/e/in.md", "in e")
    repo.link("f", "a")
    repo.write("g.md", "gone")
    repo.commit()
    repo.git("rm", "-rqf", ".")
    repo.write("a", "now a file")
    repo.link("b", "elsewhere")
    repo.write("c/in.md", "in c")
    repo.write("f/in.md", "in f")
    repo.stage()
    repo.gitlink("d/e")
    faults = {
        "a/in.md": Unscanned.MISSING,
        "b": Unscanned.SYMLINK,
        "b/in.md": Unscanned.SYMLINK,
        "c": Unscanned.MISSING,
        "d": Unscanned.MISSING,
        "d/e": Unscanned.OUTSIDE,
        "d/e/in.md": Unscanned.OUTSIDE,
        "f": Unscanned.MISSING,
        "g.md": Unscanned.MISSING,
    }
    contents = {"a": b"now a file", "c/in.md": b"in c", "f/in.md": b"in f"}
    with Objects(opened(repo)) as objects:
        judged, _ = judged_of(opened(repo), objects, Asked())
        with judged.snapshot() as snapshot:
            looked = snapshot.look([RepoPath(name.encode()) for name in (*faults, *contents)])
            assert {path.quoted: each.fault for path, each in looked.items() if each.fault} == faults
            read = {path: snapshot.read(path, each.size) for path, each in looked.items() if each.size}
            assert {path.quoted: content for path, content in read.items()} == contents


def test_only_regular_files_of_the_working_tree_are_opened(own: Repo, tmp_path: Path) -> None:
    """C14: no FIFO holds the scan, no link leads out, a repository inside is another one's."""
    (tmp_path / "out.md").write_text(MARK)
    own.link("away", str(tmp_path))
    os.mkfifo(own.path / "pipe.md")
    Repo.create(own.path / "inner").write("in.md", MARK)
    names = {
        "pipe.md": "missing",
        "away/out.md": "symlink",
        "inner/repo/in.md": "outside",
        "inner/repo": "outside",
    }
    found = adjudged(own, claim(CODE, *names, changed_files=["docs/out.md", "docs/more.md"]), WORKTREE)
    assert (found.outcome, skipped(found)) == (UNDECIDED, names)


def test_a_file_that_changes_while_it_is_read_gives_no_answer(own: Repo) -> None:
    """C2."""
    path = RepoPath(b"docs/out.md")
    with DiskSnapshot(opened(own)) as snapshot:
        size = snapshot.look([path])[path].size
        assert size is not None
        assert snapshot.read(path, size) == b"# Report\n"
        own.write("docs/out.md", "# Report, longer\n")
        with pytest.raises(UndecidedError, match="was changed while it was read"):
            snapshot.read(path, size)
        (own.path / "docs/out.md").unlink()
        own.link("docs/out.md", "../notes.md")
        with pytest.raises(UndecidedError, match="cannot be read"):
            snapshot.read(path, size)


@pytest.mark.parametrize("asked", [Asked(), WORKTREE, Asked("HEAD")], ids=["index", "worktree", "tree"])
def test_the_fallback_passes_by_whole_folders_and_counts_each_file_once(tmp_path: Path, asked: Asked) -> None:
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
    assert {each.value: number for each, number in found.scan.passed_by.items()} == {
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
    for asked in (Asked(), WORKTREE, Asked("HEAD")):
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
    assert (upheld.marker_found, upheld.scan_mode, upheld.samples) == (
        True,
        "targeted_only",
        ("build/out.md:3", "build/wide.md:2"),
    )
    assert (upheld.matched_file_count, upheld.scanned_file_count, upheld.is_placeholder_claim) == (2, 2, True)
    assert (contradicted.contradiction_detected, contradicted.coverage_sufficient) == (True, True)
    assert contradicted.scan_mode == "targeted_plus_fallback"
    assert (undecided.no_downgrade, undecided.coverage_sufficient) == (True, False)
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
    assert any("the ledger has no record of this" in warning for warning in found.warnings)
