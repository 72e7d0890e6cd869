"""The trailer that commit-msg adds, in every way in which git takes a message."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.intent_world import FIRST, declare, made
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

TRAILER = f"Patchgate-Intent: {FIRST}"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with the hooks, an intent, and a staged change that it allows."""
    repo = Repo.create(tmp_path)
    repo.commit({"a": "1\n"}, "First")
    repo.install()
    declare(repo, "a")
    repo.stage({"a": "2\n"})
    return repo


def editor(folder: Path, *lines: str) -> str:
    """Write an editor that puts lines on top of the file."""
    program = folder / "editor"
    text = "".join(f"{line}\n" for line in lines)
    program.write_text(
        f'#!/bin/sh\n{{ printf %s {shlex.quote(text)}; cat "$1"; }} >"$1.x" && mv "$1.x" "$1"\n'
    )
    program.chmod(0o755)
    return str(program)


def raw_text(repo: Repo) -> bytes:
    return repo.git("cat-file", "commit", "HEAD").partition(b"\n\n")[2]


@pytest.mark.sweep(5)
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-v"],
        ["--cleanup=scissors"],
        ["--cleanup=scissors", "-v"],
        ["--cleanup=strip"],
        ["-s"],
        ["--status"],
    ],
)
@pytest.mark.parametrize(
    "config",
    [
        [],
        ["core.commentChar=;"],
        ["core.commentChar=auto"],
        ["commit.verbose=true"],
        ["commit.cleanup=scissors"],
    ],
)
def test_with_an_editor(repo: Repo, tmp_path: Path, options: list[str], config: list[str]) -> None:
    settings = [word for each in config for word in ("-c", each)]
    for each in config:
        repo.git("config", *each.split("="))
    repo.git(*settings, "commit", *options, GIT_EDITOR=editor(tmp_path, "Change a"))
    lines = raw_text(repo).decode().splitlines()
    assert lines[:2] == ["Change a", ""]
    assert sorted(lines[2:]) == sorted(
        [TRAILER, *(["Signed-off-by: A U Thor <author@example.com>"] * ("-s" in options))]
    )


def test_a_comment_character_of_the_command_line_is_found_in_gits_own_hints(
    repo: Repo, tmp_path: Path
) -> None:
    repo.git(
        "-c", "core.commentChar=;", "commit", GIT_EDITOR=editor(tmp_path, "Change a", "", "# no comment")
    )
    assert raw_text(repo).decode() == f"Change a\n\n# no comment\n\n{TRAILER}\n"


@pytest.mark.parametrize(
    "options", [["-m", "Change a"], ["-F", "-"], ["-m", "Change a", "--cleanup=verbatim"]]
)
def test_without_an_editor(repo: Repo, options: list[str]) -> None:
    repo.git("commit", "-q", *options, stdin=b"Change a\n")
    assert raw_text(repo).decode() == f"Change a\n\n{TRAILER}\n"


def test_what_looks_like_a_comment_stays_where_no_editor_is_opened(repo: Repo) -> None:
    repo.git("commit", "-q", "-m", "Change a", "-m", "# Heading\nFixes:x")
    assert raw_text(repo).decode() == f"Change a\n\n# Heading\nFixes:x\n\n{TRAILER}\n"


def test_a_trailer_that_somebody_wrote_is_not_doubled(repo: Repo) -> None:
    repo.git("commit", "-q", "-m", "Change a", "--trailer", TRAILER)
    assert raw_text(repo).decode() == f"Change a\n\n{TRAILER}\n"


def test_a_message_that_git_refuses_as_empty_stays_empty(repo: Repo, tmp_path: Path) -> None:
    for arguments, program in (
        (["commit"], "true"),
        (["commit", "-v"], "true"),
        (["commit", "-s"], "true"),
        (["commit"], editor(tmp_path, "# only a comment", "   ")),
        (["commit", "-m", ""], ":"),
        (["commit", "-m", "  "], ":"),
    ):
        done = repo.try_git(*arguments, GIT_EDITOR=program)
        assert done.returncode != 0, arguments
        assert b"empty commit message" in done.stderr
    assert repo.ask("log", "-1", "--format=%s") == "First"


def test_a_template_that_nobody_edited_is_refused_as_ever(repo: Repo, tmp_path: Path) -> None:
    template = tmp_path / "home/template"
    template.write_text("Why:\n\n# What is this for?\nHow\n")
    repo.git("config", "commit.template", "~/template")
    done = repo.try_git("commit", GIT_EDITOR=editor(tmp_path))
    assert b"you did not edit the message" in done.stderr
    done = repo.try_git("commit", "-v", GIT_EDITOR=editor(tmp_path))
    assert b"you did not edit the message" in done.stderr
    repo.git("commit", GIT_EDITOR=editor(tmp_path, "Change a", ""))
    assert raw_text(repo).decode() == f"Change a\n\nWhy:\n\nHow\n\n{TRAILER}\n"


def test_an_empty_message_that_is_wanted_stays_empty_and_the_commit_is_recorded(repo: Repo) -> None:
    repo.git("commit", "-q", "--allow-empty-message", "-m", "")
    assert raw_text(repo) == b""
    assert made(repo) == [(FIRST, (repo.head(),))]


def test_other_encodings_stay_as_they_are(repo: Repo) -> None:
    repo.git("config", "i18n.commitEncoding", "ISO-8859-1")
    repo.git("commit", "-q", "-F", "-", stdin="Ändern\n".encode("latin-1"))
    assert raw_text(repo) == "Ändern\n\n".encode("latin-1") + TRAILER.encode() + b"\n"


def test_the_message_is_judged_with_its_trailer_under_the_profile_of_agents(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy('[message]\nlevel = "error"\n')
    repo.install()
    declare(repo, "a")
    repo.stage({"a": "2\n"})
    done = repo.try_git("commit", "-q", "-m", "Change a and more.")
    assert b"error[message-subject-period]" in done.stderr
    repo.git("commit", "-q", "-m", "Change a")
    file = repo.path / ".git/COMMIT_EDITMSG"
    said = repo.run("hook", "commit-msg", str(file))
    assert said.code == 0
    assert file.read_text().count(TRAILER) == 1


def test_in_a_worktree_without_an_intent_no_message_is_touched(repo: Repo, tmp_path: Path) -> None:
    linked = repo.at(tmp_path / "linked")
    repo.git("worktree", "add", "-q", "-b", "side", str(linked.path))
    linked.stage({"a": "3\n"})
    linked.git("commit", "-q", "-m", "Change a")
    assert raw_text(linked).decode() == "Change a\n"


def test_a_merge_and_an_empty_commit_get_theirs(repo: Repo) -> None:
    repo.git("commit", "-q", "-m", "Change a")
    repo.git("commit", "-q", "--allow-empty", "-m", "Nothing")
    assert raw_text(repo).decode() == f"Nothing\n\n{TRAILER}\n"
