"""What must never be refused: other people's commits, upkeep, looking at anything.

Each test runs the same commands in twin repositories, with hooks and without, and compares working tree,
index entries, refs, logs, stash and config byte for byte.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.twins import BAD, WORSE, Household, Twins, said_by, state_of

pytestmark = pytest.mark.turns(3)

GOOD = {"plain/new": "new\n"}
EDIT = {"plain/c": "c\nedited\n"}


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    """Twins that have nothing to tell yet."""
    return Twins(tmp_path)


def bad_upstream(twins: Twins) -> list[str]:
    """Let the remote's main get two commits that break the local policy; give their ids."""
    twins.both(lambda each: each.upstream(BAD))
    twins.both(lambda each: each.upstream(WORSE))
    return twins.gated.other.ask("rev-list", "HEAD~2..HEAD").split()


def write(twins: Twins, files: dict[str, str]) -> None:
    """Write files into both working trees."""
    for each in (twins.gated, twins.plain):
        for name, content in files.items():
            each.repo.write(name, content)


def commit(twins: Twins, files: dict[str, str], message: str = "Change a file") -> None:
    """Make an ordinary commit in both, through the hooks where there are some."""
    write(twins, files)
    twins.git("add", "-A")
    twins.git("commit", "-q", "-m", message)


def edit(twins: Twins) -> None:
    """Leave an unstaged edit, a staged one and an untracked file in both."""
    write(twins, {"plain/b": "b\nstaged\n"})
    twins.git("add", "plain/b")
    write(twins, {"plain/c": "c\nedited\n", "untracked": "u\n"})


def names_all(said: str, commits: list[str]) -> bool:
    """Tell whether every commit is named, by at least seven digits of its id."""
    return all(each[:7] in said for each in commits)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("form", ["--ff-only", "--rebase", "--no-rebase"])
@pytest.mark.parametrize("ahead", [False, True])
def test_a_pull_of_commits_that_break_the_policy(twins: Twins, form: str, ahead: bool) -> None:
    bad = bad_upstream(twins)
    if ahead and form == "--ff-only":
        pytest.skip("that cannot be fast-forwarded")
    if ahead:
        commit(twins, GOOD)
        commit(twins, EDIT, "Change another file")
    said = twins.git("pull", "-q", form, "--no-edit" if form == "--no-rebase" else "-q")
    assert names_all(said, bad), said
    assert "need not" in said


def test_a_pull_of_what_follows_the_policy_says_nothing(twins: Twins) -> None:
    twins.both(lambda each: each.upstream(GOOD))
    assert twins.git("pull", "-q", "--ff-only") == ""


def test_a_pull_with_autostash_puts_the_edits_back(twins: Twins) -> None:
    bad = bad_upstream(twins)
    commit(twins, GOOD)
    edit(twins)
    assert names_all(twins.git("pull", "-q", "--rebase", "--autostash"), bad)


def test_a_fetch(twins: Twins) -> None:
    bad_upstream(twins)
    edit(twins)
    twins.git("fetch", "-q")
    twins.git("fetch", "-q", "--all", "--prune", "--tags")


@pytest.mark.parametrize("option", ["--no-atomic", "--atomic"])
def test_a_fetch_into_a_branch_that_is_not_checked_out(twins: Twins, option: str) -> None:
    bad = bad_upstream(twins)
    twins.git("switch", "-q", "-c", "topic")
    said = twins.git("fetch", "-q", option, "origin", "main:main")
    assert names_all(said, bad), said


def test_a_clone(twins: Twins) -> None:
    bad_upstream(twins)
    twins.both(lambda each: each.plant(BAD))
    twins.git("clone", "-q", "../remote.git", "../clone")
    twins.same("clone")
    twins.git("clone", "-q", ".", "../copy")
    twins.same("copy")


def test_a_clone_whose_hooks_come_from_a_template(twins: Twins) -> None:
    bad_upstream(twins)
    template = twins.gated.folder / "template"
    template.mkdir()
    (template / "hooks").symlink_to(twins.gated.repo.path / ".git/hooks")
    twins.gated.repo.env["GIT_TEMPLATE_DIR"] = str(template)
    twins.plain.repo.env["GIT_TEMPLATE_DIR"] = ""
    twins.git("clone", "-q", "../remote.git", "../clone")
    assert (twins.gated.folder / "clone/.git/hooks/reference-transaction").exists()
    twins.git("switch", "-q", "-c", "x", "origin/main", where="clone")
    assert state_of(twins.gated.repo.at(twins.gated.folder / "clone")).files == files_of_main(twins)


def files_of_main(twins: Twins) -> object:
    """The files that the remote's main holds."""
    return state_of(twins.plain.other).files


@pytest.mark.parametrize("command", ["gc -q", "gc -q --prune=now", "pack-refs --all --prune", "repack -qad"])
def test_upkeep(twins: Twins, command: str) -> None:
    twins.both(lambda each: each.plant_branch("side", BAD, WORSE))
    twins.both(lambda each: each.plant(BAD))
    edit(twins)
    twins.git(*command.split())
    twins.git("fsck", "--strict")


@pytest.mark.parametrize("files", [{}, BAD, WORSE])
def test_a_stash_and_its_pop(twins: Twins, files: dict[str, str]) -> None:
    edit(twins)
    write(twins, files)
    twins.git("add", "-A")
    write(twins, {"plain/c": "c\nedited again\n"})
    twins.git("stash")
    twins.git("stash", "pop", "--index")
    twins.git("stash", "--include-untracked")
    twins.git("stash", "pop")
    twins.git("stash", "push", "-m", "Later", "plain/c")
    twins.git("stash", "apply")
    twins.git("stash", "drop")


def test_a_stash_made_into_a_branch(twins: Twins) -> None:
    edit(twins)
    twins.git("stash")
    twins.git("stash", "branch", "later")


def test_a_bisect_through_commits_that_break_the_policy(twins: Twins) -> None:
    bad_upstream(twins)
    twins.both(lambda each: each.upstream(GOOD))
    twins.git("pull", "-q", "--ff-only")
    twins.both(lambda each: each.plant(BAD | {"plain/secret": "x\n"}))
    twins.git("bisect", "start")
    twins.git("bisect", "bad")
    twins.git("bisect", "good", "HEAD~4")
    twins.git("bisect", "bad")
    twins.git("bisect", "good")
    twins.git("bisect", "reset")
    twins.git("bisect", "start", "HEAD", "HEAD~4")
    twins.git("bisect", "run", "sh", "-c", "test ! -e plain/bad")
    twins.git("bisect", "reset")


def test_a_worktree_of_each_kind(twins: Twins) -> None:
    bad_upstream(twins)
    twins.both(lambda each: each.plant(BAD))
    twins.git("fetch", "-q")
    twins.git("worktree", "add", "-q", "-b", "one", "../one")
    twins.git("worktree", "add", "-q", "-b", "two", "../two", "origin/main")
    twins.git("worktree", "add", "-q", "--detach", "../three", "origin/main")
    twins.git("worktree", "add", "-q", "../four", "HEAD~1")
    for name in ("one", "two", "three", "four"):
        twins.same(name)
    twins.git("worktree", "remove", "../one")


def test_a_branch_forced_to_where_it_is(twins: Twins) -> None:
    twins.both(lambda each: each.plant_branch("side", BAD, WORSE))
    twins.git("branch", "-f", "side", "side")
    twins.git("update-ref", "refs/heads/side", "side")
    twins.git("update-ref", "refs/heads/side", "side", "side")


def test_a_branch_put_back_to_what_it_was(twins: Twins) -> None:
    twins.both(lambda each: each.plant(BAD))
    twins.both(lambda each: each.plant(WORSE))
    old = twins.gated.repo.head()
    twins.git("reset", "-q", "--hard", "HEAD~2")
    twins.git("reset", "-q", "--hard", "ORIG_HEAD")
    twins.git("branch", "-f", "unused", "HEAD~2")
    twins.git("reset", "-q", "--hard", "HEAD~1")
    twins.git("reset", "-q", "--hard", old)


def test_a_branch_renamed_and_copied(twins: Twins) -> None:
    twins.both(lambda each: each.plant_branch("side", BAD, WORSE))
    twins.git("branch", "-c", "side", "copy")
    twins.git("branch", "-m", "side", "other")
    twins.git("branch", "-q", "third", "other~1")
    twins.git("switch", "-q", "-c", "fourth", "copy")
    twins.git("switch", "-q", "main")
    twins.git("branch", "-q", "-D", "copy", "other", "third", "fourth")


def test_a_hard_reset_to_the_remote(twins: Twins) -> None:
    bad = bad_upstream(twins)
    commit(twins, GOOD)
    edit(twins)
    twins.git("fetch", "-q")
    assert names_all(twins.git("reset", "-q", "--hard", "origin/main"), bad)


@pytest.mark.parametrize("track", ["--track", "--no-track"])
def test_a_branch_made_from_the_remote(twins: Twins, track: str) -> None:
    bad_upstream(twins)
    edit(twins)
    twins.git("fetch", "-q")
    twins.git("switch", "-q", "-c", "x", track, "origin/main")
    twins.git("branch", "-q", track, "y", "origin/main")
    twins.git("branch", "-q", "older", "origin/main~1")
    twins.git("checkout", "-q", "-b", "z", "origin/main")
    twins.git("switch", "-q", "main")
    twins.git("branch", "-q", "-m", "z", "zz")
    twins.git("branch", "-q", "-c", "zz", "zzz")
    twins.git("branch", "-q", "-D", "x", "y", "zz", "zzz", "older")


def test_a_detached_look_at_anything(twins: Twins) -> None:
    twins.both(lambda each: each.plant_branch("side", BAD))
    edit(twins)
    twins.git("switch", "-q", "--detach", "side")
    twins.git("switch", "-q", "main")
    twins.git("switch", "-q", "side")
    twins.git("switch", "-q", "-")


def test_a_tag_and_a_note_on_anything(twins: Twins) -> None:
    twins.both(lambda each: each.plant_branch("side", BAD))
    twins.git("tag", "v1", "side")
    twins.git("tag", "-a", "-m", "Version 2", "v2", "side")
    twins.git("notes", "add", "-m", "BAD", "side")


# Fetching what somebody else has.


def somebody(twins: Twins) -> None:
    """Let somebody who is no remote here have a branch `bad`."""

    def make(each: Household) -> str:
        each.other.git("switch", "-q", "-c", "bad")
        each.other.commit(BAD, "Add a key")
        return each.other.commit(WORSE, "Say what is bad")

    twins.both(make)


@pytest.mark.parametrize("option", ["--no-atomic", "--atomic"])
def test_somebodys_branch_can_be_fetched_to_look_at_it(twins: Twins, option: str) -> None:
    somebody(twins)
    edit(twins)
    said = twins.git("fetch", "-q", option, "../other", "bad:look")
    (line,) = [line for line in said.splitlines() if "git patchgate check" in line]
    judge = line[line.index("git patchgate check") :].split()
    judged = twins.gated.repo.run(*judge[2:])
    assert judged.code == 1
    assert "deny-prefix" in judged.out
    assert "deny-content" in judged.out
    twins.git("switch", "-q", "look")
    twins.git("switch", "-q", "main")


@pytest.mark.parametrize("option", ["--no-tags", "--atomic"])
def test_a_branch_of_a_configured_remote_gives_the_same_note(twins: Twins, option: str) -> None:
    somebody(twins)
    edit(twins)
    twins.git("remote", "add", "other", "../other")
    said = twins.git("fetch", "-q", option, "other", "bad:look")
    (line,) = [line for line in said.splitlines() if "git patchgate check" in line]
    judged = twins.gated.repo.run(*line[line.index("git patchgate check") :].split()[2:])
    assert judged.code == 1
    assert "deny-prefix" in judged.out
    # What the remote has is no news: the next branch of it is made without a word.
    assert "git patchgate check" not in twins.git("branch", "-q", "again", "other/bad")


def test_a_branch_made_of_what_was_fetched(twins: Twins) -> None:
    somebody(twins)
    twins.git("fetch", "-q", "../other", "bad")
    assert "git patchgate check" in twins.git("switch", "-q", "-c", "look", "FETCH_HEAD")
    twins.git("switch", "-q", "--detach", "FETCH_HEAD~1")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("merge", ["merge look", "merge --no-ff --no-edit look", "pull ../other bad"])
@pytest.mark.parametrize("ahead", [False, True])
def test_merging_what_was_fetched_is_judged(twins: Twins, merge: str, ahead: bool) -> None:
    somebody(twins)
    twins.git("fetch", "-q", "../other", "bad:look")
    if ahead:
        commit(twins, GOOD)
        merge = merge.replace("pull", "pull --no-rebase --no-edit")
    before = twins.gated.repo.ask("rev-parse", "main")
    done = twins.gated.repo.try_git(*merge.split())
    assert done.returncode != 0
    assert "deny-prefix" in said_by(done)
    assert twins.gated.repo.ask("rev-parse", "main") == before
