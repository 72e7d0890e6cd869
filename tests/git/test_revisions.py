"""A revision is resolved once, in full: one ref, one object; more than one that fits is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.errors import UsageError
from patchgate.git.objects import Objects
from patchgate.git.repository import open_repository
from patchgate.git.revisions import Revision, resolve
from tests.world import Repo

MAIN = "refs/heads/main"
THERE = "refs/remotes/origin/main"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A branch of two commits, and a remote-tracking branch with the first."""
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n"})
    repo.git("update-ref", THERE, "HEAD")
    repo.git("symbolic-ref", "refs/remotes/origin/HEAD", THERE)
    repo.commit({"a": "2\n"})
    return repo


def asked(repo: Repo, text: str) -> Revision | None:
    with Objects(open_repository(repo.env, str(repo.path))) as objects:
        return resolve(objects, text)


def refused(repo: Repo, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        asked(repo, text)
    assert caught.value.hint is not None
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "ref", "same"),
    [
        ("main", MAIN, "main"),
        ("heads/main", MAIN, "main"),
        (MAIN, MAIN, "main"),
        ("origin/main", THERE, THERE),
        ("origin", "refs/remotes/origin/HEAD", THERE),
        (THERE, THERE, THERE),
        ("HEAD", None, "main"),
        ("@", None, "main"),
        ("HEAD~1", None, THERE),
        ("main~1", None, THERE),
        ("main^{tree}", None, "main^{tree}"),
        ("main:a", None, "main:a"),
        ("main@{0}", None, "main"),
        ("@{0}", None, "main"),
        ("ORIG_HEAD", None, THERE),
        (":/Change", None, "main"),
    ],
)
def test_a_name_that_fits_one_thing_is_resolved_as_git_does(
    repo: Repo, text: str, ref: str | None, same: str
) -> None:
    repo.git("update-ref", "ORIG_HEAD", THERE)
    found = asked(repo, text)
    assert found is not None
    assert (found.oid, found.ref) == (repo.ask("rev-parse", same), ref)


def test_object_ids_and_the_branch_before_are_resolved(repo: Repo) -> None:
    head = repo.head()
    for text in (head, head[:10], head.upper(), f"v1-3-g{head[:10]}"):
        assert asked(repo, text) == Revision(head, "commit"), text
    repo.git("switch", "-q", "-c", "other")
    assert asked(repo, "@{-1}") == Revision(head, "commit", MAIN)
    assert asked(repo, "@{-1}~1") == Revision(repo.ask("rev-parse", THERE), "commit")


@pytest.mark.parametrize(
    "text", ["", "-x", "--all", "nothing", "a\nb", "a\0b", "main~9", "main:none", "refs/x"]
)
def test_what_names_nothing_is_nothing(repo: Repo, text: str) -> None:
    assert asked(repo, text) is None


PAIRS = {
    "tag and branch": ("main", "refs/tags/main", MAIN),
    "tag and remote": ("origin/main", "refs/tags/origin/main", THERE),
    "branch and remote": ("origin/main", "refs/heads/origin/main", THERE),
    "a ref below refs": ("main", "refs/main", MAIN),
    "a remote's HEAD": ("origin", "refs/heads/origin", "refs/remotes/origin/HEAD"),
}


@pytest.mark.sweep(12)
@pytest.mark.parametrize("suffix", ["", "~1", "^{tree}", "^0", ":a", "@{0}"])
@pytest.mark.parametrize("case", PAIRS)
def test_two_refs_that_fit_are_both_named(repo: Repo, case: str, suffix: str) -> None:
    text, other, own = PAIRS[case]
    # Also where both have the same object: the next fetch can move one of them.
    repo.git("update-ref", other, "HEAD")
    said = refused(repo, text + suffix)
    assert other in said
    assert own in said
    repo.git("update-ref", other, f"{own}~0")
    assert other in refused(repo, text + suffix)


def test_a_full_name_means_that_ref_alone(repo: Repo) -> None:
    repo.git("update-ref", f"refs/tags/{THERE}", "HEAD")
    found = asked(repo, THERE)
    assert found is not None
    assert (found.oid, found.ref) == (repo.ask("rev-parse", "HEAD~1"), THERE)
    repo.git("symbolic-ref", "-d", "refs/remotes/origin/HEAD")
    repo.git("update-ref", "-d", THERE)
    for suffix in ("", "~0", "^{tree}", "@{0}"):
        assert asked(repo, THERE + suffix) is None
    # Short, it fits neither: git would not take it either.
    assert asked(repo, "origin/main") is None


def test_a_file_in_git_s_folder_is_a_ref_too(repo: Repo) -> None:
    repo.git("update-ref", "main", "HEAD~1")
    said = refused(repo, "main")
    assert ".git/main" in said
    assert MAIN in said


def test_a_branch_that_reads_like_an_object_id_is_refused(repo: Repo) -> None:
    short = repo.ask("rev-parse", "--short=8", "HEAD~1")
    repo.git("update-ref", f"refs/heads/{short}", "HEAD")
    assert f"refs/heads/{short}" in (said := refused(repo, short))
    assert repo.ask("rev-parse", THERE) in said
    # One of a word that is no object here is only a branch.
    repo.git("update-ref", "refs/heads/facade", "HEAD")
    found = asked(repo, "facade")
    assert found is not None
    assert found.ref == "refs/heads/facade"


def test_the_branch_before_is_refused_where_a_tag_has_its_name(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "other")
    repo.git("tag", "main", "HEAD~1")
    assert "refs/tags/main" in refused(repo, "@{-1}")


def test_a_tag_called_head_is_not_taken_for_a_branch_without_a_commit(repo: Repo) -> None:
    repo.git("update-ref", "refs/tags/HEAD", "HEAD~1")
    found = asked(repo, "HEAD")
    assert found is not None
    assert found.oid == repo.ask("rev-parse", MAIN)
    repo.git("checkout", "-q", "--orphan", "fresh")
    for text in ("HEAD", "@", "HEAD~0", "HEAD^{tree}"):
        assert asked(repo, text) is None
    # What is staged starts from nothing, whatever the tag holds.
    assert repo.check().change["files"][0]["status"] == "added"
    repo.git("switch", "-q", "--discard-changes", "--detach", "main")
    assert asked(repo, "HEAD") == Revision(repo.ask("rev-parse", MAIN), "commit")


def test_no_child_is_started_for_a_name_that_fits_one_ref(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = open_repository(repo.env, str(repo.path))
    with Objects(repository) as objects:
        monkeypatch.setattr(type(repository), "git", None)
        for text in ("main", "origin/main", THERE, "HEAD", "HEAD~1", repo.head()):
            assert resolve(objects, text) is not None
