"""`allow_symlinks = "inside"` means where a link leads, through other links, in the tree that results."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.world import Answer, Repo

POLICY = '[policy.commit]\nallow_symlinks = "inside"\nallow_gitlinks = true\n'
AGENTS = POLICY + '[policy.agent]\nallow_symlinks = "inside"\n'


def made(tmp_path: Path, policy: str = POLICY) -> Repo:
    repo = Repo.create(tmp_path)
    repo.policy(policy)
    repo.commit({"README": "x\n", "a/b/file": "x\n", "d/file": "x\n"})
    return repo


def judged(repo: Repo) -> list[Answer]:
    """Judge what is in the working tree at every door that reads it, and as a commit."""
    base = repo.head()
    answers = [repo.check("--worktree")]
    repo.git("add", "-A")
    answers.append(repo.check())
    patch = repo.path.parent / "change.patch"
    patch.write_bytes(repo.git("diff", "--cached", "--binary", "HEAD"))
    if b"agent" in repo.git("show", "HEAD:patchgate.toml"):
        answers.append(repo.check("--patch", str(patch), "--base", "HEAD"))
    head = repo.commit()
    answers += [repo.check("HEAD"), repo.check(f"{base}..{head}"), repo.check("--policy-from", base, "HEAD")]
    answers.append(repo.check("--all"))
    return answers


def refused(answers: list[Answer]) -> None:
    assert [(each.code, sorted(set(each.errors))) for each in answers] == [(1, ["symlink"])] * len(answers)


def accepted(answers: list[Answer]) -> None:
    assert [(each.code, each.errors) for each in answers] == [(0, [])] * len(answers)


def test_a_link_through_a_link_that_leaves_is_refused_at_every_door(tmp_path: Path) -> None:
    repo = made(tmp_path, AGENTS)
    repo.link("a/b/c/l", "../../../d")
    repo.link("x", "a/b/c/l/../../etc/passwd")
    answers = judged(repo)
    refused(answers)
    told = answers[0].findings[0]
    assert told["path"] == "x"
    assert told["rule"] == "symlink"
    assert " leaves " in told["message"]


@pytest.mark.parametrize(
    "links",
    [
        {"x": "y", "y": "x"},
        {"x": "x"},
        {"x": "a/up/../..", "a/up": "../d"},
        {"x": "module/file"},
        {"x": "a/here/.git/config", "a/here": ".."},
        {"x": "a/git", "a/git": "../.GIT/hooks"},
        {**{f"l{number}": f"l{number + 1}" for number in range(41)}, "l41": "d"},
        {"x": "DEEP/../etc", "deep": "."},
    ],
    ids=[
        "a pair",
        "itself",
        "up twice",
        "a submodule",
        ".git by a link",
        "an alias",
        "41 links",
        "case",
    ],
)
def test_what_leaves_or_cannot_be_told_is_refused(tmp_path: Path, links: dict[str, str]) -> None:
    repo = made(tmp_path)
    repo.gitlink("module")
    repo.git("commit", "-q", "--no-verify", "-m", "Add a submodule")
    (repo.path / "module").mkdir()
    for name, target in links.items():
        repo.link(name, target)
    refused([repo.check("--worktree")])


def test_links_that_stay_inside_are_accepted_also_where_nothing_is(tmp_path: Path) -> None:
    repo = made(tmp_path)
    repo.link("a/link", "../d")
    repo.link("through", "a/link/../README")
    repo.link("dangling", "not/there/../yet")
    repo.link("behind/a", "../README/../d")
    accepted(judged(repo))


@pytest.mark.parametrize(
    "turn",
    [
        "a folder becomes a link",
        "a link is added",
        "a link goes",
        "a link leads elsewhere",
        "a new submodule",
    ],
)
def test_a_link_that_leaves_because_of_another_change_is_refused(tmp_path: Path, turn: str) -> None:
    repo = made(tmp_path)
    repo.commit({"p/q/file": "x\n", "e/f/file": "x\n"})
    repo.link("turned", "p/q")
    repo.commit()
    targets = {
        "a folder becomes a link": "a/b/../../README",
        "a link is added": "new/b/../../README",
        "a link goes": "e/../turned/../../README",
        "a link leads elsewhere": "turned/../../README",
        "a new submodule": "mod/x",
    }
    repo.link("x", targets[turn])
    repo.commit()
    if turn == "a folder becomes a link":
        repo.git("rm", "-rq", "a/b")
        repo.link("a/b", "../d")
    elif turn == "a link is added":
        repo.link("new/b", "../d")
    elif turn == "a link goes":
        (repo.path / "turned").unlink()
    elif turn == "a link leads elsewhere":
        (repo.path / "turned").unlink()
        repo.link("turned", "d")
    else:
        repo.gitlink("mod")
    repo.git("add", "-A", "--", ".", ":!mod")
    staged_answer = repo.check()
    repo.git("commit", "-q", "--no-verify", "-m", "Turn")
    refused([staged_answer, repo.check("HEAD")])
    assert "symlink x le" in staged_answer.findings[0]["message"]


def test_a_link_that_left_before_is_no_fault_of_another_link(tmp_path: Path) -> None:
    repo = made(tmp_path)
    repo.link("x", "d/../../outside")
    repo.link("y", "/etc/passwd")
    repo.commit()
    repo.link("z", "d")
    assert repo.check("--worktree").errors == []
    (repo.path / "x").unlink()
    repo.git("add", "-A")
    accepted([repo.check()])
