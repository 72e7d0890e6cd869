"""Which files a claim is about: what stands in for lists that were not given, and what nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.git.path import RepoPath
from patchgate.ledger.adjudications import KIND, AdjudicationRecord
from patchgate.ledger.ledger import Ledger
from patchgate.placeholders.claims.claim import ClaimOutcome
from patchgate.placeholders.claims.claim_source import SourceOptions
from patchgate.placeholders.claims.snapshots import path_forms
from tests.placeholders.claims.claim_world import (
    CODE,
    MARK,
    adjudged,
    claim,
    make_small,
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
UNDECIDED, PASSED = ClaimOutcome.UNDECIDED, ClaimOutcome.PASSED
WORKTREE = SourceOptions(worktree=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """The repository that no test changes, but for its ledger."""
    return make_world(tmp_path_factory.mktemp("claims"))


@pytest.fixture
def own(tmp_path: Path) -> Repo:
    """A small repository of one test."""
    return make_small(tmp_path)


def test_what_is_staged_is_the_current_attempt(own: Repo) -> None:
    """C6, C31: removed files are no candidates of a list that nobody gave."""
    own.stage({"docs/more.md": "# More\n\n" + MARK})
    own.git("rm", "-q", "notes.md")
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
    own.git("checkout", "-q", "--", "docs/out.md")
    assert adjudged(own, claim(CODE, "docs/out.md")).outcome is CONTRADICTED


def test_of_a_revision_its_own_change_is_the_current_attempt(own: Repo) -> None:
    """C6: against its first parent; of a root commit all is new; of a bare tree nobody can tell."""
    own.commit({"docs/more.md": "# More\n\n" + MARK})
    own.commit({"docs/more.md": "# More\n"})
    assert places(adjudged(own, claim(CODE, "docs/out.md"), SourceOptions("HEAD~1"))) == ["docs/more.md:3"]
    found = adjudged(own, claim(CODE, "docs/out.md"), SourceOptions("HEAD~2"))
    assert found.outcome is CONTRADICTED
    assert found.read_from == "HEAD~2"
    assert scanned(found)["notes.md"] == "current_attempt"
    found = adjudged(own, claim(CODE, "docs/out.md"), SourceOptions("HEAD~1^{tree}"))
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
    assert places(adjudged(own, claim(CODE, "docs/out.md"), SourceOptions("HEAD"))) == ["docs/more.md:3"]
    found = adjudged(own, claim(CODE, "docs/out.md"), SourceOptions("HEAD~1"))
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
    of_another = AdjudicationRecord(
        outcome="upheld", subject="task-1", changed_files=(RepoPath(b"notes.md"),)
    )
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


def test_what_was_staged_before_an_intent_is_its_work_once_it_is_committed(own: Repo) -> None:
    """C6, C31: what was dirty at the declaration is left out only while it differs from HEAD."""
    own.policy('[claims]\ncontradiction_scan_max_files = 1\nexclude = ["*"]\n')
    own.stage({"new.md": MARK})
    done = own.run("intent", "declare", "-m", "write the docs", "--allow", "docs/out.md")
    assert done.code == 0, done.err
    for asked in (SourceOptions(), WORKTREE):
        assert adjudged(own, claim(CODE, "docs/out.md"), asked).outcome is CONTRADICTED
    own.git("commit", "-q", "--no-verify", "-m", "New")
    for asked in (SourceOptions(), WORKTREE, SourceOptions("HEAD")):
        found = adjudged(own, claim(CODE, "docs/out.md"), asked)
        assert (found.outcome, skipped(found)) == (UNDECIDED, {"new.md": "cap"})
    own.git("rm", "-q", "-f", "new.md")
    assert adjudged(own, claim(CODE, "docs/out.md")).outcome is CONTRADICTED


def garbled(content: bytes) -> bytes:
    return b"x" + content


def cut(content: bytes) -> bytes:
    return content.replace(b"}\n", b"\n", 1)


def of_another_kind(content: bytes) -> bytes:
    return content.replace(b'"kind":"adjudicated"', b'"kind":"adjudicXted"', 1)


def of_another_file(content: bytes) -> bytes:
    return content.replace(b"p.md", b"q.md", 1)


def without_the_first_line(content: bytes) -> bytes:
    return content.partition(b"\n")[2]


@pytest.mark.parametrize("damage", [garbled, cut, of_another_kind, of_another_file, without_the_first_line])
def test_where_the_ledger_is_damaged_the_claim_stands(own: Repo, damage: Callable[[bytes], bytes]) -> None:
    """C2, C32: nobody can tell which files earlier attempts of the subject changed."""
    own.commit({"p.md": MARK})
    own.policy('[claims]\ncontradiction_scan_max_files = 2\nexclude = ["*"]\n')
    for subject in ("task-1", "task-2"):
        adjudged(own, claim(None, passed=True, subject=subject, changed_files=["p.md"]))
    known = claim(CODE, "docs/out.md", subject="task-1", changed_files=["docs/more.md"])
    assert skipped(adjudged(own, known)) == {"p.md": "cap"}
    ledger = own.path / ".git" / "patchgate" / "events.jsonl"
    ledger.write_bytes(damage(ledger.read_bytes()))
    found = adjudged(own, known)
    assert (found.outcome, found.reason_code) == (UNDECIDED, CODE)
    assert skipped(found)["the record of earlier attempts"] == "unreadable"
    assert "priority_candidate_unscanned:unreadable" in reasons(found)
    assert any("git patchgate log --verify" in warning for warning in found.warnings)
    without = claim(CODE, "docs/out.md", changed_files=["docs/more.md"])
    given = claim(
        CODE,
        "docs/out.md",
        subject="task-1",
        changed_files=["docs/more.md"],
        prior_changed_files=["notes.md"],
    )
    assert adjudged(own, without).outcome is CONTRADICTED
    assert skipped(adjudged(own, given)) == {"notes.md": "cap"}


def test_where_the_ledger_cannot_be_read_the_claim_stands(own: Repo) -> None:
    """C2, C32; one that was never written says that there is nothing to know."""
    known = claim(CODE, "docs/out.md", subject="task-1")
    assert adjudged(own, known).outcome is CONTRADICTED
    ledger = own.path / ".git" / "patchgate" / "events.jsonl"
    ledger.unlink()
    ledger.mkdir()
    found = adjudged(own, known)
    assert (found.outcome, skipped(found)) == (UNDECIDED, {"the record of earlier attempts": "unreadable"})
    assert any("git patchgate log --verify" in warning for warning in found.warnings)


def test_a_line_that_a_crash_cut_short_was_never_recorded(own: Repo) -> None:
    adjudged(own, claim(None, passed=True, subject="task-1", changed_files=["notes.md"]))
    ledger = own.path / ".git" / "patchgate" / "events.jsonl"
    ledger.write_bytes(ledger.read_bytes() + b'{"event":{"at":"')
    found = adjudged(own, claim(CODE, "docs/out.md", subject="task-1"))
    assert (found.outcome, scanned(found)["notes.md"]) == (CONTRADICTED, "prior_attempt")


def test_a_true_claim_is_upheld_beside_a_damaged_ledger(own: Repo) -> None:
    """C20: also by a file that a line after the damage names."""
    own.commit({"p.md": MARK})
    adjudged(own, claim(None, passed=True, subject="task-2", changed_files=["notes.md"]))
    adjudged(own, claim(None, passed=True, subject="task-1", changed_files=["p.md"]))
    ledger = own.path / ".git" / "patchgate" / "events.jsonl"
    ledger.write_bytes(garbled(ledger.read_bytes()))
    found = adjudged(own, claim(CODE, "docs/out.md", subject="task-1"))
    assert (found.outcome, places(found)) == (UPHELD, ["p.md:1"])


def test_an_absolute_path_is_taken_by_its_text_and_by_the_folder_where_that_does_not_tell(
    own: Repo, tmp_path: Path
) -> None:
    """C14, C29: what follows the folder stays as it was written, a link inside too."""
    assert path_forms("/nowhere/tree/docs/../a.md", "/nowhere/tree").plain == RepoPath(b"a.md")
    assert path_forms("/nowhere/treetop/a.md", "/nowhere/tree").plain is None
    (tmp_path / "alias").symlink_to(own.path)
    own.link("loop", ".")
    for above in (str(own.path), str(tmp_path / "alias")):
        assert path_forms(f"{above}/docs/out.md", str(own.path)).plain == RepoPath(b"docs/out.md")
        assert path_forms(f"{above}/loop/docs/out.md", str(own.path)).plain == RepoPath(b"loop/docs/out.md")
    assert path_forms(f"{own.path}/a.md", str(tmp_path / "alias")).plain == RepoPath(b"a.md")
    assert path_forms(f"{tmp_path}/nothing/a.md", str(own.path)).plain is None
