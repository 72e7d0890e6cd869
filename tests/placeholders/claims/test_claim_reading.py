"""Reading what is judged: of git's objects and of the disk, what is no file, and what cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.model import Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.working_tree import tree_records
from patchgate.placeholders.claims.claim import ClaimOutcome, SkipReason
from patchgate.placeholders.claims.claim_source import SourceOptions, disk_snapshot, open_source
from patchgate.placeholders.claims.snapshots import ObjectSnapshot
from tests.placeholders.claims.claim_world import (
    CODE,
    MARK,
    adjudged,
    claim,
    make_small,
    opened,
    places,
    reasons,
    skipped,
)
from tests.world import Repo

UPHELD, CONTRADICTED, UNDECIDED = ClaimOutcome.UPHELD, ClaimOutcome.CONTRADICTED, ClaimOutcome.UNDECIDED
WORKTREE = SourceOptions(worktree=True)
UNREAD = "priority_candidate_unscanned:"
NOBODY = 65534


@pytest.fixture
def own(tmp_path: Path) -> Repo:
    """A small repository of one test."""
    return make_small(tmp_path)


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
        "a/in.md": SkipReason.MISSING,
        "b": SkipReason.SYMLINK,
        "b/in.md": SkipReason.SYMLINK,
        "c": SkipReason.MISSING,
        "d": SkipReason.MISSING,
        "d/e": SkipReason.OUTSIDE,
        "d/e/in.md": SkipReason.OUTSIDE,
        "f": SkipReason.MISSING,
        "g.md": SkipReason.MISSING,
    }
    contents = {"a": b"now a file", "c/in.md": b"in c", "f/in.md": b"in f"}
    with Objects(opened(repo)) as objects:
        judged, _ = open_source(opened(repo), objects, SourceOptions())
        with judged.snapshot() as snapshot:
            looked = snapshot.inspect([RepoPath(name.encode()) for name in (*faults, *contents)])
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


@contextmanager
def without_rights() -> Iterator[None]:
    """Be somebody who may not read everything: root reads what no mode allows."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_nobody_may_read_on_disk_is_told_and_the_rest_is_read(own: Repo) -> None:
    """C2: a file without rights, and a folder."""
    own.path.chmod(0o755)
    (own.path / "docs").chmod(0o755)
    (own.path / "docs/more.md").chmod(0)
    own.write("closed/a.md", MARK)
    (own.path / "closed").chmod(0)
    inside, closed, fine = (RepoPath(name) for name in (b"docs/more.md", b"closed/a.md", b"docs/out.md"))
    with disk_snapshot(opened(own)) as snapshot, without_rights():
        looked = snapshot.inspect([inside, closed, fine])
        assert {path: each.fault for path, each in looked.items()} == {
            inside: None,
            closed: SkipReason.UNREADABLE,
            fine: None,
        }
        assert snapshot.read(inside, 3) is None
        assert snapshot.read(fine, 3) == b"# R"


def test_a_file_that_changes_while_it_is_read_gives_nothing(own: Repo) -> None:
    """C2."""
    path = RepoPath(b"docs/out.md")
    with disk_snapshot(opened(own)) as snapshot:
        size = snapshot.inspect([path])[path].size
        assert size is not None
        assert snapshot.read(path, size) == b"# Report\n"
        own.write("docs/out.md", "# Report, longer\n")
        assert snapshot.read(path, size) is None
        (own.path / "docs/out.md").unlink()
        assert snapshot.read(path, size) is None
        own.link("docs/out.md", "../notes.md")
        assert snapshot.read(path, size) is None
        (own.path / "docs").rename(own.path / "moved")
        own.link("docs", "moved")
        assert snapshot.read(path, size) is None


def test_a_claim_about_a_file_that_changes_meanwhile_stands(own: Repo) -> None:
    """C2, C20: and a true one about another file is upheld."""
    own.write("notes.md", MARK)

    def judged(*names: str, **keys: list[str]) -> tuple[ClaimOutcome, dict[str, str]]:
        own.write("docs/out.md", "# Report\n")
        asked = count()

        def clock() -> float:
            # The last question before the first file is read.
            if next(asked) == 2:
                own.write("docs/out.md", "# Report, longer\n")
            return 0.0

        found = adjudged(own, claim(CODE, *names, **keys), WORKTREE, clock=clock)
        return found.outcome, skipped(found)

    gone = {"docs/out.md": "unreadable"}
    assert judged("docs/out.md", changed_files=["docs/more.md"], prior_changed_files=["docs/more.md"]) == (
        UPHELD,
        gone,
    )
    own.git("checkout", "-q", "notes.md")
    assert judged("docs/out.md", changed_files=["docs/more.md", "patchgate.toml"]) == (
        UNDECIDED,
        {**gone, "patchgate.toml": "missing"},
    )


@pytest.mark.parametrize("asked", [SourceOptions(), SourceOptions("HEAD")], ids=["index", "tree"])
def test_a_file_whose_object_is_not_here_is_unreadable(own: Repo, asked: SourceOptions) -> None:
    """C2, C20: the claim stands, and beside it a true one is upheld."""
    own.commit({"build/a.md": MARK, "z.md": "# Z\n"})
    own.commit()
    for name in ("docs/more.md", "z.md"):
        oid = own.ask("rev-parse", f"HEAD:{name}")
        os.unlink(own.path / ".git" / "objects" / oid[:2] / oid[2:])
    found = adjudged(own, claim(CODE, "docs/more.md", changed_files=["docs/out.md", "notes.md"]), asked)
    assert (found.outcome, reasons(found)) == (UNDECIDED, (UNREAD + "unreadable",))
    assert found.scan is not None
    assert found.scan.fallback_skipped[SkipReason.UNREADABLE] == 1
    found = adjudged(own, claim(CODE, "docs/out.md", evidence_files=["z.md"]), asked)
    assert (found.outcome, skipped(found)) == (CONTRADICTED, {"z.md": "unreadable"})
    found = adjudged(own, claim(CODE, "build/a.md", "docs/more.md"), asked)
    assert (found.outcome, places(found)) == (UPHELD, ["build/a.md:1"])


def test_a_tree_that_is_not_here_is_undecided(own: Repo) -> None:
    """C2: nobody can tell what is in it."""
    oid = own.ask("rev-parse", "HEAD:docs")
    os.unlink(own.path / ".git" / "objects" / oid[:2] / oid[2:])
    with pytest.raises(UndecidedError):
        adjudged(own, claim(CODE, "docs/out.md", changed_files=["notes.md"]), SourceOptions("HEAD"))


class Laid(dict[bytes, Entry | None]):
    """What lies over a tree, counting how often it is asked."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


def test_a_walk_down_ends_where_nothing_is_any_more(own: Repo) -> None:
    """C3: one path of a verdict costs no more than its folders that are there."""
    laid = Laid({b"new/folder/a.md": Entry("100644", own.ask("rev-parse", "HEAD:notes.md"))})
    repository = opened(own)
    with Objects(repository) as objects:
        tree = own.ask("rev-parse", "HEAD^{tree}")
        snapshot = ObjectSnapshot(objects, tree, laid, partial(tree_records, repository, tree))

        def look(name: bytes) -> tuple[SkipReason | None, int]:
            laid.asked = 0
            return snapshot.inspect([RepoPath(name)])[RepoPath(name)].fault, laid.asked

        missing = SkipReason.MISSING
        assert look(b"a/" * 1_000 + b"b.md") == (missing, 1)
        assert look(b"docs/" + b"a/" * 1_000 + b"b.md") == (missing, 2)
        assert look(b"docs/out.md/" + b"a/" * 1_000) == (missing, 2)
        assert look(b"new/folder/" + b"a/" * 1_000) == (missing, 3)
        assert look(b"new/folder/a.md") == (None, 3)
        # 4,096 bytes, and 255 in one component, are the most that a path has.
        assert look(b"a/" * 2_047 + b"ab") == (missing, 1)
        assert look(b"a/" * 2_048 + b"a") == (missing, 0)
        assert look(b"a" * 255 + b"/b.md") == (missing, 1)
        assert look(b"a" * 256 + b"/b.md") == (missing, 0)


@pytest.mark.parametrize(
    "asked", [SourceOptions(), WORKTREE, SourceOptions("HEAD")], ids=["index", "worktree", "tree"]
)
def test_a_path_that_no_file_can_have_is_missing(own: Repo, asked: SourceOptions) -> None:
    """C3, C37: however long it is, with a `.git` in it too; with enough `..` it is an ordinary one."""
    long = "a/" * 200_000 + "b.md"
    names = [long, "docs\\" * 2_000 + ".git\\x.md", "x" * 256 + ".md"]
    found = adjudged(own, claim(CODE, *names, changed_files=["docs/out.md", "docs/more.md"]), asked)
    assert (found.outcome, reasons(found)) == (UNDECIDED, (UNREAD + "missing",))
    assert found.scan is not None
    assert len(found.scan.skipped) == 3
    there = adjudged(own, claim(CODE, "docs/../" * 1_000 + "docs/out.md"), asked)
    assert there.outcome is CONTRADICTED
