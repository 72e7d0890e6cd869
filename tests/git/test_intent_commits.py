"""What trailers name, which commits are made here alone, and which are replays of what was there."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.git.intent_commits import (
    changes_of,
    commits_with_ids,
    made_here,
    replays,
    undone_by,
    with_ids,
)
from patchgate.git.new_commits import BranchUpdate
from patchgate.git.repository import Repository, open_repository
from tests.world import Repo

LINES = "".join(f"{number}\n" for number in range(40))
MAIN = "refs/heads/main"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"a": LINES, "b": LINES, "c": b"\0\1"}, "First")
    return made


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


def test_the_commits_of_a_range_come_with_what_their_trailers_name(repo: Repo) -> None:
    base = repo.head()
    texts = {
        "One": (),
        "Two\n\nPatchgate-Intent: i-1\nA: b": ("i-1",),
        "Three\n\npatchgate-intent: i-1\nPatchgate-Intent:i-2": ("i-1", "i-2"),
        "Four \x1b[31m\n\nPatchgate-Intent: i-1\n more": ("i-1 more",),
        "Five\n\nPatchgate-Intent: i-1\n\nThat was a quotation.": (),
        "Six\n\nPatchgate-Run: r-1": (),
    }
    oids = [repo.commit({}, text) for text in texts]
    found = commits_with_ids(opened(repo), ["HEAD"], [base])
    assert [(each.oid, each.ids) for each in found] == list(zip(oids, texts.values(), strict=True))
    assert [each.subject for each in found] == [text.split("\n")[0] for text in texts]
    assert [each.parents for each in found] == [(parent,) for parent in (base, *oids[:-1])]
    assert with_ids(opened(repo), [oids[2], oids[0]]) == [found[2], found[0]]
    assert len(commits_with_ids(opened(repo), ["HEAD"])) == len(texts) + 1
    assert commits_with_ids(opened(repo), [base], [base]) == with_ids(opened(repo), []) == []


def test_settings_of_the_user_hide_no_trailer(repo: Repo) -> None:
    repo.git("config", "core.commentChar", "P")
    repo.git("config", "trailer.separators", "=")
    repo.git("config", "i18n.logOutputEncoding", "UTF-16")
    oid = repo.commit({}, "Word\n\nPatchgate-Intent: i-1", "--cleanup=verbatim")
    assert with_ids(opened(repo), [oid])[0].ids == ("i-1",)


def test_a_merge_has_its_own_change_alone(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "side")
    repo.commit({"b": LINES + "side\n"}, "Side")
    repo.git("switch", "-q", "main")
    repo.commit({"a": LINES + "main\n"}, "Main")
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    repo.stage({"new": "of the merge\n"})
    repo.git("mv", "c", "d")
    repo.git("commit", "-q", "-m", "Merge")
    found = {
        commit.subject: [file.path.raw for file in change.files]
        for commit, change in changes_of(opened(repo), commits_with_ids(opened(repo), ["HEAD"], ["HEAD~2"]))
    }
    assert found == {"Side": [b"b"], "Main": [b"a"], "Merge": [b"c", b"d", b"new"]}


def test_only_what_nobody_else_has_is_made_here(repo: Repo) -> None:
    old = repo.head()

    def commit_on(parent: str, name: str) -> str:
        return repo.ask("commit-tree", "HEAD^{tree}", "-p", parent, "-m", name)

    of_branch = commit_on(old, "of another branch")
    of_remote = commit_on(of_branch, "of a remote")
    fetched = commit_on(of_remote, "fetched")
    mine = commit_on(fetched, "mine")
    # A name that ends like ours, and one that begins like it, are other branches.
    for name in ("other/main", "main2"):
        repo.git("update-ref", f"refs/heads/{name}", of_branch)
        update = BranchUpdate(MAIN, old, mine)
        assert made_here(opened(repo), update, [], []) == {of_remote, fetched, mine}
        repo.git("update-ref", "-d", f"refs/heads/{name}")
    assert made_here(opened(repo), update, [], []) == {of_branch, of_remote, fetched, mine}
    repo.git("update-ref", "refs/remotes/x/main", of_remote)
    assert made_here(opened(repo), update, [], []) == {fetched, mine}
    (repo.path / ".git/FETCH_HEAD").write_text(f"{mine}\t\t.\n{fetched}\t\t/elsewhere\n")
    assert made_here(opened(repo), update, [], []) == {mine}
    assert made_here(opened(repo), update, [mine], []) == set()
    assert made_here(opened(repo), update, [], [mine]) == set()
    assert made_here(opened(repo), BranchUpdate("refs/heads/new", None, mine), [], []) == {mine}
    # What the very branch has by now is still what it is about to get.
    repo.git("update-ref", MAIN, mine)
    assert made_here(opened(repo), update, [], []) == {mine}


def rebased(repo: Repo, *files: dict[str, str | bytes]) -> tuple[BranchUpdate, list[str]]:
    """Rebase a commit for each of these on something else; give the update, and the new commits."""
    first = repo.head()
    for number, each in enumerate(files):
        repo.commit(dict(each), f"Number {number}")
    old = repo.head()
    repo.git("switch", "-q", "--detach", first)
    repo.commit({"a": "upstream\n" + LINES, "z": "z\n"}, "Upstream")
    repo.git("cherry-pick", "--keep-redundant-commits", f"{first}..{old}")
    new = repo.ask("rev-list", "--reverse", f"--max-count={len(files)}", "HEAD").split("\n")
    return BranchUpdate(MAIN, old, new[-1]), new


def test_a_commit_that_was_rebased_is_a_replay_of_what_it_replaces(repo: Repo) -> None:
    update, new = rebased(repo, {"a": LINES + "end\n"}, {"c": b"\0\2"}, {"n": "1\n"})
    old = repo.ask("rev-list", "--reverse", "--max-count=3", update.old or "").split("\n")
    assert replays(opened(repo), update, new) == dict(zip(new, old, strict=True))
    assert replays(opened(repo), update, new[1:2]) == {new[1]: old[1]}
    assert replays(opened(repo), BranchUpdate(MAIN, None, new[-1]), new) == {}


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("top\n" + LINES, "top \n" + LINES),
        ("top\n" + LINES, " top\n" + LINES),
        ("top\n" + LINES, "other\n" + LINES),
        (b"\0\2", b"\0\3"),
        (LINES + "no end", LINES + "no end\n"),
        ("", "\n"),
    ],
)
def test_another_byte_makes_another_change(repo: Repo, was: str | bytes, becomes: str | bytes) -> None:
    first = repo.head()
    old = repo.commit({"b": was}, "It")
    repo.git("switch", "-q", "--detach", first)
    new = repo.commit({"b": becomes}, "It")
    assert replays(opened(repo), BranchUpdate(MAIN, old, new), [new]) == {}
    same = repo.ask("commit-tree", f"{old}^{{tree}}", "-p", first, "-m", "Other words")
    assert replays(opened(repo), BranchUpdate(MAIN, old, same), [same]) == {same: old}


def test_a_mode_and_a_name_are_a_part_of_the_change(repo: Repo) -> None:
    first = repo.head()
    old = repo.commit({"n": "1\n"}, "It")
    for name, is_executable in (("n", True), ("m", False)):
        repo.git("checkout", "-q", "--detach", first)
        repo.write(name, "1\n", executable=is_executable)
        new = repo.commit({}, "It")
        assert replays(opened(repo), BranchUpdate(MAIN, old, new), [new]) == {}


def test_nothing_is_no_replay_of_nothing(repo: Repo) -> None:
    first = repo.head()
    old = repo.commit({}, "Empty")
    new = repo.ask("commit-tree", "HEAD^{tree}", "-p", first, "-m", "Also empty")
    assert replays(opened(repo), BranchUpdate(MAIN, old, new), [new]) == {}


def test_what_takes_the_place_of_the_tip_undoes_what_it_has_otherwise(repo: Repo) -> None:
    root = repo.head()
    repo.commit({"a": "2\n", "b": "2\n", "n": "2\n"}, "The tip")
    old = repo.head()
    repo.git("switch", "-q", "--detach", root)
    first = repo.commit({"a": "2\n", "c": "3\n"}, "In its place")
    then = repo.commit({"b": "2\n"}, "On top")
    (tip,) = with_ids(opened(repo), [old])

    def undone(new: str, *oids: str) -> dict[str, list[tuple[bytes, bool]]]:
        listed = with_ids(opened(repo), oids)
        found = undone_by(opened(repo), BranchUpdate(MAIN, old, new), listed, tip)
        return {oid: [(file.path.raw, file.new is None) for file in files] for oid, files in found.items()}

    assert undone(first, first) == {first: [(b"b", False), (b"c", False), (b"n", True)]}
    # What comes back on top of it is not undone.
    assert undone(then, first, then) == {first: [(b"c", False), (b"n", True)]}
    # The same tree again undoes nothing, and what has other parents takes nobody's place.
    again = repo.ask("commit-tree", f"{old}^{{tree}}", "-p", root, "-m", "In other words")
    aside = repo.ask("commit-tree", f"{first}^{{tree}}", "-m", "Another root")
    assert undone(again, again) == undone(aside, aside) == {}


@pytest.mark.parametrize("at", [8, 11, 12])
def test_what_stands_around_a_change_is_no_part_of_it(repo: Repo, at: int) -> None:
    update, new = rebased(repo, {"a": LINES.replace("\n10\n", "\nten\n")})
    base = repo.ask("rev-parse", f"{new[0]}^")
    nearby = LINES.replace("\n10\n", "\nten\n").replace(f"\n{at}\n", "\nnearby\n")
    without = LINES.replace(f"\n{at}\n", "\nnearby\n")
    repo.git("switch", "-q", "--detach", base)
    repo.commit({"a": without}, "Nearby")
    again = repo.commit({"a": nearby}, "Again")
    assert [*replays(opened(repo), BranchUpdate(MAIN, update.old, again), [again])] == [again]


def test_what_a_tag_reaches_is_made_here_where_the_reflog_shows_it(repo: Repo) -> None:
    old = repo.head()
    theirs = repo.ask("commit-tree", "HEAD^{tree}", "-p", old, "-m", "of somebody else")
    repo.git("tag", "v1", theirs)
    assert made_here(opened(repo), BranchUpdate(MAIN, old, theirs), [], []) == set()
    assert made_here(opened(repo), BranchUpdate("refs/heads/look", None, theirs), [], []) == set()
    repo.git("switch", "-q", "--detach", theirs)
    mine = repo.commit({"n": "1\n"}, "Mine")
    above = repo.ask("commit-tree", "HEAD^{tree}", "-p", mine, "-m", "of nobody")
    repo.git("tag", "-m", "Mine", "v2", mine)
    assert made_here(opened(repo), BranchUpdate(MAIN, old, above), [], []) == {mine, above}
    (repo.path / ".git/FETCH_HEAD").write_text(f"{above}\t\t/elsewhere\n")
    assert made_here(opened(repo), BranchUpdate(MAIN, old, above), [], []) == {mine}


def stop_with(repo: Repo, folder: str, name: str, *lines: str) -> None:
    place = repo.path / ".git" / folder
    place.mkdir(exist_ok=True)
    (place / name).write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("folder", "name"), [("rebase-merge", "rewritten-list"), ("rebase-apply", "rewritten")]
)
def test_git_knows_what_a_person_made_anew_in_a_rebase(repo: Repo, folder: str, name: str) -> None:
    first = repo.head()
    other = repo.commit({"b": "one\n"}, "One")
    old = repo.commit({"a": "one\n"}, "Two")
    repo.git("switch", "-q", "--detach", first)
    new = repo.commit({"a": "solved\n"}, "One")
    wider = repo.commit({"a": "more\n", "n": "1\n"}, "Two")
    update = BranchUpdate(MAIN, old, wider)
    assert replays(opened(repo), update, [new]) == {}
    stop_with(repo, folder, name, f"{old} {new}", "damage", "x y", f"{old}")
    assert replays(opened(repo), update, [new]) == {new: old}
    # One that touches more than the other is more than that.
    stop_with(repo, folder, name, f"{old} {wider}")
    assert replays(opened(repo), update, [wider]) == {}
    # Of several nobody knows which part is whose; one that stays is not replaced.
    stop_with(repo, folder, name, f"{old} {new}", f"{other} {new}")
    assert replays(opened(repo), update, [new]) == {}
    stop_with(repo, folder, name, f"{first} {new}")
    assert replays(opened(repo), update, [new]) == {}
