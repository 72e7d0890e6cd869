"""What a merge makes of its sides is judged, also where each side was accepted and nothing is its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from patchgate.git.repository import open_repository
from patchgate.operations.judge.receives import judge_receive
from tests.world import Content, Repo

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
        assert repo.check(tip).files == {}


def test_the_hooks_refuse_an_octopus_with_markers(repo: Repo) -> None:
    sides = [line(repo, f"s{number}", {"value": f"{number}\n"}) for number in (1, 2, 3)]
    bad = octopus(repo, with_file(repo, sides[0], "value", torn(repo, sides)), *sides)
    repo.git("checkout", "-q", "-f", "main")
    repo.install()
    done = repo.try_git("update-ref", "refs/heads/main", bad)
    assert done.returncode != 0
    assert b"conflict-marker" in done.stderr
