"""Which commit made a file what it is: in a line, over merges, after reverts, in a shallow clone."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.file_history import FileCommit, newest_commits
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, open_repository
from patchgate.git.tree_view import TreePaths
from tests.world import Repo

DAY = 86_400
FOLDER = b"kept/"


class Dated(Repo):
    """A repository whose commits are dated by the day."""

    def on(self, day: int, files: dict[str, str], *arguments: str) -> str:
        """Commit on a day."""
        self.stage(dict(files))
        self.git(
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            f"Day {day}",
            *arguments,
            GIT_COMMITTER_DATE=f"@{day * DAY + 1} +0000",
        )
        return self.head()

    def merge(self, day: int, other: str, *arguments: str) -> str:
        """Merge on a day."""
        self.git("merge", "-q", "-m", "Join", *arguments, other, GIT_COMMITTER_DATE=f"@{day * DAY + 1} +0000")
        return self.head()

    def opened(self) -> Repository:
        return open_repository(self.env, str(self.path))

    def touches(self, tip: str = "HEAD") -> dict[str, tuple[str, int]]:
        """The newest touch of every file below `kept`, with its day."""
        wanted = {}
        for line in self.git("ls-tree", "-r", "-z", tip, "--", "kept").split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            wanted[path] = about.split(b" ")[2].decode()
        found = newest_commits(self.opened(), self.ask("rev-parse", tip), FOLDER, wanted)
        return {path.decode(): (touch.commit, touch.seconds // DAY) for path, touch in found.items()}


def dated(tmp_path: Path) -> Dated:
    made = Repo.create(tmp_path)
    return Dated(made.path, made.env)


def test_the_newest_commit_that_changed_a_file_is_found(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1", "kept/b": "1"})
    second = repo.on(11, {"kept/a": "2"})
    repo.on(12, {"other": "x"})
    touches = repo.touches()
    assert touches["kept/a"] == (second, 11)
    assert touches["kept/b"] == (repo.ask("rev-parse", "HEAD~2"), 10)


def test_a_change_that_was_taken_back_counts_as_new(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    for day, text in ((10, "1"), (11, "2"), (12, "1")):
        repo.on(day, {"kept/a": text})
    assert repo.touches()["kept/a"][1] == 12


def test_what_a_merge_threw_away_does_not_count(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1"})
    repo.git("checkout", "-q", "-b", "side")
    repo.on(20, {"kept/a": "2"})
    repo.git("checkout", "-q", "main")
    repo.on(12, {"x": "1"})
    repo.merge(21, "side", "-s", "ours")
    assert repo.touches()["kept/a"][1] == 10


def test_what_a_merge_brings_in_counts_from_its_own_commit(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1"})
    repo.git("checkout", "-q", "-b", "side")
    side = repo.on(11, {"kept/a": "2"})
    repo.git("checkout", "-q", "main")
    repo.on(12, {"x": "1"})
    repo.merge(20, "side")
    assert repo.touches()["kept/a"] == (side, 11)


def test_of_two_sides_that_did_the_same_the_newer_one_counts(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1"})
    repo.git("checkout", "-q", "-b", "side")
    side = repo.on(15, {"kept/a": "2"})
    repo.git("checkout", "-q", "main")
    repo.on(11, {"kept/a": "2"})
    repo.on(12, {"x": "1"})
    repo.merge(20, "side")
    assert repo.touches()["kept/a"] == (side, 15)


def test_a_merge_that_joins_two_changes_of_a_file_made_it(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    lines = [f"{number}\n" for number in range(20)]
    repo.on(10, {"kept/a": "".join(lines)})
    repo.git("checkout", "-q", "-b", "side")
    repo.on(11, {"kept/a": "".join(["new\n", *lines])})
    repo.git("checkout", "-q", "main")
    repo.on(12, {"kept/a": "".join([*lines, "new\n"])})
    merge = repo.merge(20, "side")
    assert repo.touches()["kept/a"] == (merge, 20)


def test_a_change_of_mode_alone_is_a_change(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1"})
    repo.git("update-index", "--chmod=+x", "kept/a")
    repo.git("commit", "-q", "-m", "Mode", GIT_COMMITTER_DATE=f"@{15 * DAY} +0000")
    assert repo.touches()["kept/a"][1] == 15


def test_names_with_line_feeds_and_colons_are_no_headers(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    names = ["kept/:a", "kept/\n:100644 100644", 'kept/"q"', "kept/\x01", "kept/" + "1" * 40 + " 5"]
    made = repo.on(10, dict.fromkeys(names, "1"))
    repo.on(11, {"kept/z": "1"})
    touches = repo.touches()
    assert set(touches) == {*names, "kept/z"}
    assert {touches[name] for name in names} == {(made, 10)}


def test_the_users_config_of_log_changes_nothing(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1"})
    repo.git("mv", "kept/a", "kept/b")
    moved = repo.on(11, {})
    before = repo.touches()
    for key, value in (
        ("log.showSignature", "true"),
        ("log.showRoot", "false"),
        ("log.follow", "true"),
        ("log.diffMerges", "first-parent"),
        ("diff.renames", "copies"),
        ("format.pretty", "fuller"),
        ("core.quotePath", "true"),
        ("color.ui", "always"),
        ("log.decorate", "full"),
        ("notes.displayRef", "*"),
        ("core.abbrev", "4"),
        ("diff.external", "false"),
    ):
        repo.git("config", key, value)
    assert repo.touches() == before == {"kept/b": (moved, 11)}


def test_a_file_that_no_commit_made_is_left_out(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    head = repo.on(10, {"kept/a": "1"})
    assert newest_commits(repo.opened(), head, FOLDER, {b"kept/a": "1" * 40, b"kept/none": "2" * 40}) == {}
    assert newest_commits(repo.opened(), head, FOLDER, {}) == {}


def test_the_walk_ends_where_all_are_found(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1"})
    broken = repo.ask("rev-parse", "HEAD^{tree}")
    repo.on(11, {"kept/a": "2"})
    repo.on(12, {"kept/b": "2"})
    (repo.path / ".git" / "objects" / broken[:2] / broken[2:]).unlink()
    wanted = {b"kept/b": repo.ask("rev-parse", "HEAD:kept/b")}
    head = repo.head()
    assert newest_commits(repo.opened(), head, FOLDER, wanted)[b"kept/b"].seconds // DAY == 12
    # What lies beyond cannot be read, and a reader that needs it gets an error.
    with pytest.raises(UndecidedError):
        newest_commits(repo.opened(), head, FOLDER, {**wanted, b"kept/none": "1" * 40})


def test_a_shallow_history_says_where_it_is_cut_off(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"kept/a": "1"})
    cut = repo.on(11, {"kept/b": "1"})
    new = repo.on(12, {"kept/c": "1"})
    repo.git("clone", "-q", "--depth=2", f"file://{repo.path}", str(tmp_path / "clone"))
    clone = Dated(tmp_path / "clone", repo.env)
    wanted = {path: repo.ask("rev-parse", b"HEAD:" + path) for path in (b"kept/a", b"kept/b", b"kept/c")}
    head = clone.head()
    assert newest_commits(clone.opened(), head, FOLDER, wanted) == {
        b"kept/a": FileCommit(cut, 11 * DAY + 1, True),
        b"kept/b": FileCommit(cut, 11 * DAY + 1, True),
        b"kept/c": FileCommit(new, 12 * DAY + 1, False),
    }


def test_many_paths_of_many_trees_are_looked_up_at_once(tmp_path: Path) -> None:
    repo = dated(tmp_path)
    repo.on(10, {"a/b/c": "1", "a/d": "2", "e": "3"})
    first = repo.ask("rev-parse", "HEAD^{tree}")
    repo.write("a/b/c", "4", executable=True)
    repo.on(11, {"f/g": "5"})
    second = repo.ask("rev-parse", "HEAD^{tree}")
    paths = [b"", b"a", b"a/b", b"a/b/c", b"a/b/c/d", b"a/d", b"e", b"f/g", b"g", b"a/x/y"]
    wanted = [(tree, path) for tree in (first, second) for path in paths]
    with Objects(repo.opened()) as objects:
        found = TreePaths(objects).entries(wanted)
        assert found[1:10] + found[11:] == [objects.entry(tree, path) for tree, path in wanted if path]
        assert [entry and entry.oid for entry in (found[0], found[10])] == [first, second]
        assert list(TreePaths(objects).names(second, b"f")) == [b"g"]
        assert TreePaths(objects).names(second, b"e") == TreePaths(objects).names(second, b"no") == {}
        assert TreePaths(objects).entries([(objects.empty_tree, b"a")]) == [None]
        with pytest.raises(UndecidedError):
            TreePaths(objects).entries([("1" * 40, b"a")])
