"""What a merge makes of its sides is judged, also where each side was accepted and nothing is its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from patchgate.git.repository import open_repository
from patchgate.hooks.pre_receive import judge_receive
from tests.world import Content, Repo

pytestmark = pytest.mark.turns(3)

POLICY = "[policy]\n[message]\nlevel = 'off'\n"
START: dict[str, Content] = {"README": "x\n", "value": "0\n", "d/file": "x\n"}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.policy(POLICY)
    made.commit(START)
    made.git("branch", "base")
    return made


def line(repo: Repo, name: str, files: dict[str, Content] | None = None, *links: tuple[str, str]) -> str:
    """Commit files and links on a new line that leaves the base."""
    repo.git("checkout", "-q", "-f", "-B", name, "base")
    for place, target in links:
        repo.link(place, target)
    return repo.commit(files)


def octopus(repo: Repo, tree: str, *parents: str) -> str:
    named = [part for parent in parents for part in ("-p", parent)]
    return repo.ask("commit-tree", "-m", "Octopus", *named, tree)


def doors(repo: Repo, tip: str) -> dict[str, list[str]]:
    """Say at each door that reads commits which rules a commit and what came to the base with it break."""
    base = repo.ask("rev-parse", "base")
    answers = {
        "REV": repo.check(tip),
        "A..B": repo.check(f"base..{tip}"),
        "--policy-from": repo.check("--policy-from", "base", f"base..{tip}"),
    }
    server = repo.at(repo.path.parent / "server.git")
    if not server.path.exists():
        repo.git("init", "-q", "--bare", "-b", "main", str(server.path))
        alternates = server.path / "objects" / "info" / "alternates"
        alternates.write_text(f"{repo.path / '.git' / 'objects'}\n")
        server.git("update-ref", "refs/heads/main", base)
    moved = f"{base} {tip} refs/heads/main\n".encode()
    report = judge_receive(open_repository(server.env, str(server.path)), moved)
    said = {door: sorted(set(answer.errors)) for door, answer in answers.items()}
    assert {door: answer.code for door, answer in answers.items()} == {
        door: 1 if errors else 0 for door, errors in said.items()
    }
    found = [each for change in report.changes for each in change.findings if each.level == "error"]
    return {**said, "pre-receive": sorted({each.rule for each in found})}


def refused(repo: Repo, tip: str, *rules: str) -> None:
    said = doors(repo, tip)
    assert said == {door: list(rules) for door in said}


def accepted(repo: Repo, tip: str) -> None:
    refused(repo, tip)


# --- an octopus, whose steps can be in conflict at one path


def with_file(repo: Repo, onto: str, path: str, blob: str, *without: str) -> str:
    """Make the tree of a revision with a file in it, and without some others."""
    repo.git("read-tree", onto)
    for each in without:
        repo.git("rm", "-q", "--cached", "--", each)
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
    return repo.ask("write-tree")


def torn(repo: Repo, sides: Sequence[str], path: str = "value") -> str:
    """Give the text with markers that git makes of a path between the first two of some lines."""
    tree = repo.try_git("merge-tree", "--write-tree", "--no-messages", *sides[:2]).stdout.split()[0].decode()
    text = repo.git("cat-file", "blob", f"{tree}:{path}")
    assert text.startswith(b"<<<<<<<")
    return repo.ask("rev-parse", f"{tree}:{path}")


def test_markers_of_an_earlier_step_are_no_side_of_an_octopus(repo: Repo) -> None:
    sides = [line(repo, f"s{number}", {"value": f"{number}\n"}) for number in (1, 2, 3)]
    tree = with_file(repo, sides[0], "value", torn(repo, sides))
    refused(repo, octopus(repo, tree, *sides), "conflict-marker")
    refused(repo, octopus(repo, tree, *sides[:2]), "conflict-marker")


def test_markers_of_an_earlier_step_are_not_carried_to_another_name(repo: Repo) -> None:
    text = "".join(f"line {number}\n" for number in range(30))
    repo.commit({"value": "0\n" + text})
    repo.git("branch", "-f", "base")
    sides = [line(repo, f"s{number}", {"value": f"{number}\n" + text}) for number in (1, 2)]
    repo.git("checkout", "-q", "-b", "s3", "base")
    repo.git("mv", "value", "moved")
    sides.append(repo.commit())
    tree = with_file(repo, sides[0], "moved", torn(repo, sides), "value")
    refused(repo, octopus(repo, tree, *sides), "conflict-marker")


def test_an_octopus_may_take_a_side_of_each_conflict(repo: Repo) -> None:
    sides = [line(repo, f"s{number}", {"value": f"{number}\n", f"n{number}": "x\n"}) for number in (1, 2, 3)]
    for side in sides:
        repo.git("read-tree", sides[0])
        for number in (2, 3):
            blob = repo.ask("rev-parse", f"s{number}:n{number}")
            repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},n{number}")
        blob = repo.ask("rev-parse", f"{side}:value")
        repo.git("update-index", "--cacheinfo", f"100644,{blob},value")
        tip = octopus(repo, repo.ask("write-tree"), *sides)
        accepted(repo, tip)
        # Git makes no octopus with a conflict, so which side was taken is a change.
        assert list(repo.check(tip).files) == ["value"]


@pytest.mark.parametrize("number", [2, 4, 5, 17])
def test_a_merge_of_many_carries_nothing_out_of_where_it_is_allowed(repo: Repo, number: int) -> None:
    """One side changes a file where an override allows it, another side moves the file."""
    text = "".join(f"line {each}\n" for each in range(30))
    denied = '[policy]\nmax_file_bytes = 500\n[rules]\nmax-file-bytes = "error"\n'
    allowed = '[[overrides]]\npaths = ["vendor/**"]\nmax_file_bytes = 100000\n'
    repo.git("checkout", "-q", "-B", "main", "base")
    repo.policy(denied + allowed)
    start = repo.commit({"vendor/f": text, "src/o": "o\n"})
    repo.git("branch", "-f", "base", start)
    large = repo.commit({"vendor/f": text + "more\n" * 100})
    repo.git("checkout", "-q", "--detach", start)
    repo.git("mv", "vendor/f", "src/f")
    heads = [repo.commit(), large]
    for each in range(number - 2):
        repo.git("checkout", "-q", "--detach", start)
        heads.append(repo.commit({f"src/x{each}": "x\n"}))
    repo.git("checkout", "-q", "--detach", heads[0])
    for head in heads[1:]:
        repo.git("merge", "-q", "--no-verify", "-m", "Merge", head)
    refused(repo, octopus(repo, repo.ask("rev-parse", "HEAD^{tree}"), *heads), "max-file-bytes")


def test_the_hooks_refuse_an_octopus_with_markers(repo: Repo) -> None:
    sides = [line(repo, f"s{number}", {"value": f"{number}\n"}) for number in (1, 2, 3)]
    bad = octopus(repo, with_file(repo, sides[0], "value", torn(repo, sides)), *sides)
    repo.git("checkout", "-q", "-f", "main")
    repo.install()
    done = repo.try_git("update-ref", "refs/heads/main", bad)
    assert done.returncode != 0
    assert b"conflict-marker" in done.stderr


# --- a link that leaves the repository in the merge only

LEADING = ("x", "p/q/../../README")
TURNING = ("p/q", "..")


def merge(repo: Repo, onto: str, *others: str) -> str:
    """Merge other lines into one, and give the commit."""
    repo.git("checkout", "-q", "-f", onto)
    repo.git("merge", "-q", "--no-ff", "--no-verify", "-m", "Merge", *others)
    return repo.head()


@pytest.mark.parametrize("onto", ["one", "two"])
def test_a_link_that_leaves_by_what_the_other_side_brings_is_refused(repo: Repo, onto: str) -> None:
    for side in (line(repo, "one", None, LEADING), line(repo, "two", None, TURNING)):
        accepted(repo, side)
    tip = merge(repo, onto, "two" if onto == "one" else "one")
    refused(repo, tip, "symlink")
    answer = repo.check(tip)
    assert answer.files == {}
    (found,) = answer.findings
    assert found["path"] == ("p/q" if onto == "one" else "x")
    assert "symlink x leaves " in found["message"]


def test_a_link_that_leaves_in_a_merge_with_a_conflict_is_refused(repo: Repo) -> None:
    line(repo, "one", {"value": "1\n"}, LEADING)
    line(repo, "two", {"value": "2\n"}, TURNING)
    repo.git("checkout", "-q", "one")
    assert repo.try_git("merge", "two").returncode == 1
    repo.stage({"value": "both\n"})
    pending = [repo.check(), repo.check("--worktree")]
    assert [each.errors for each in pending] == [["symlink"]] * 2
    refused(repo, repo.commit(), "symlink")


def test_a_link_that_leaves_by_three_parents_is_refused(repo: Repo) -> None:
    line(repo, "one", None, ("x", "p/q/r/../../../README"))
    line(repo, "two", None, ("p/q", "../d/e"))
    line(repo, "three", None, ("d/e/r", "../.."))
    tip = merge(repo, "one", "two", "three")
    refused(repo, tip, "symlink")


def test_a_link_that_left_in_a_parent_is_no_fault_of_the_merge(repo: Repo) -> None:
    line(repo, "one", None, LEADING, TURNING)
    line(repo, "two", {"other": "x\n"}, ("y", "README"))
    for onto, other in (("one", "two"), ("two", "one")):
        tip = merge(repo, onto, other)
        for answer in (repo.check(tip), repo.check("--policy-from", "base", tip)):
            assert (answer.code, answer.errors) == (0, [])
        repo.git("reset", "-q", "--hard", "HEAD^1")


def test_links_that_stay_inside_are_merged(repo: Repo) -> None:
    line(repo, "one", None, ("x", "p/q/../README"))
    line(repo, "two", None, ("p/q", "../d"))
    accepted(repo, merge(repo, "one", "two"))


# --- names that collide in the merge only


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "names", [("Foo", "foo"), ("deep/in/Foo", "deep/in/foo"), ("Foo/a", "foo/b"), ("\u00c5", "A\u030a")]
)
@pytest.mark.parametrize("onto", ["one", "two"])
def test_names_that_collide_in_a_merge_are_refused(repo: Repo, names: tuple[str, str], onto: str) -> None:
    for branch, name in zip(("one", "two"), names, strict=True):
        accepted(repo, line(repo, branch, {name: f"{branch}\n"}))
    tip = merge(repo, onto, "two" if onto == "one" else "one")
    refused(repo, tip, "path-collision")
    assert repo.check(tip).files == {}


def test_names_that_collide_in_a_merge_with_a_conflict_are_refused(repo: Repo) -> None:
    line(repo, "one", {"value": "1\n", "Foo": "x\n"})
    line(repo, "two", {"value": "2\n", "foo": "x\n"})
    repo.git("checkout", "-q", "one")
    assert repo.try_git("merge", "two").returncode == 1
    repo.stage({"value": "both\n"})
    pending = [repo.check(), repo.check("--worktree")]
    assert [each.errors for each in pending] == [["path-collision"]] * 2
    refused(repo, repo.commit(), "path-collision")


def test_a_merge_that_removes_one_of_two_names_is_accepted(repo: Repo) -> None:
    line(repo, "one", {"Foo": "x\n"})
    line(repo, "two", {"foo": "x\n"})
    repo.git("checkout", "-q", "one")
    repo.git("merge", "-q", "--no-commit", "two")
    repo.git("rm", "-q", "-f", "foo")
    assert repo.check().errors == []
    accepted(repo, repo.commit())


def test_names_that_collide_in_a_parent_are_no_fault_of_the_merge(repo: Repo) -> None:
    line(repo, "one", {"deep/Foo": "x\n", "deep/foo": "y\n"})
    line(repo, "two", {"deep/other": "x\n"})
    for onto, other in (("one", "two"), ("two", "one")):
        tip = merge(repo, onto, other)
        for answer in (repo.check(tip), repo.check("--policy-from", "base", tip)):
            assert (answer.code, answer.errors) == (0, [])
        repo.git("reset", "-q", "--hard", "HEAD^1")


# --- the hooks


def test_the_hooks_refuse_a_merge_and_the_server_its_push(repo: Repo) -> None:
    line(repo, "link", None, LEADING)
    line(repo, "turn", None, TURNING)
    line(repo, "Foo", {"Foo": "x\n"})
    line(repo, "foo", {"foo": "x\n"})
    line(repo, "plain", {"plain": "x\n"})
    server = repo.at(repo.path.parent / "srv.git")
    repo.git("clone", "-q", "--bare", str(repo.path), str(server.path))
    server.install("--server")
    repo.install()
    for onto, other, rule in (("link", "turn", b"symlink"), ("Foo", "foo", b"path-collision")):
        repo.git("checkout", "-q", "-f", onto)
        done = repo.try_git("merge", "-m", "Merge", other)
        assert done.returncode == 1
        assert rule in done.stderr + done.stdout
        repo.git("merge", "--abort")
        done = repo.try_git("merge", "--no-verify", "-m", "Merge", other)
        assert done.returncode != 0
        assert rule in done.stderr + done.stdout
        repo.git("reset", "-q", "--hard")
        tree = repo.ask("merge-tree", "--write-tree", onto, other)
        tip = octopus(repo, tree, onto, other)
        done = repo.try_git("push", "--no-verify", str(server.path), f"{tip}:refs/heads/main")
        assert done.returncode != 0
        assert rule in done.stderr
        repo.git("merge", "-q", "-m", "Merge", "plain")
        repo.git("push", "-q", str(server.path), onto)
