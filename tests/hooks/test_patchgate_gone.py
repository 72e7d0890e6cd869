"""The shims where patchgate is gone: nothing passes unjudged, nobody is stranded, and the way on is told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hooks.hook_world import Recorder, install, without_patchgate
from tests.world import Repo


class Stranded:
    """A clone with hooks, of a remote that is ahead of it."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo.create(folder)
        self.recorder = Recorder(folder)
        self.repo.commit({"a": "1\n"}, "First")
        self.repo.git("clone", "-q", "--bare", ".", str(folder / "remote.git"))
        self.remote = self.repo.at(folder / "remote.git")
        self.repo.git("remote", "add", "origin", str(self.remote.path))
        self.first = self.repo.head()
        self.second = self.repo.commit({"a": "2\n"}, "Second")
        self.repo.git("push", "-q", "origin", "main:ahead")
        self.repo.git("branch", "side")
        self.repo.git(
            "branch", "keep", self.repo.ask("commit-tree", "-p", "HEAD", "-m", "Kept", "HEAD^{tree}")
        )
        self.dropped = self.repo.commit({"a": "3\n"}, "Third, which no remote has")
        self.repo.git("reset", "-q", "--hard", self.first)
        self.repo.git("fetch", "-q", "origin")
        install(self.repo, self.recorder)
        self.hooks = self.repo.path / ".git" / "hooks"

    def lose_patchgate(self) -> None:
        """Remove the program that installed the hooks, and every other one on PATH."""
        self.recorder.remove()
        self.repo.env["PATH"] = without_patchgate(self.repo.env)

    def new_commit(self) -> str:
        """Make a commit that no branch has and no hook has seen."""
        return self.repo.ask("commit-tree", "-p", "HEAD", "-m", "New", "HEAD^{tree}")


@pytest.fixture
def stranded(tmp_path: Path) -> Stranded:
    """Patchgate has just gone."""
    made = Stranded(tmp_path)
    made.lose_patchgate()
    return made


def refused(done: subprocess.CompletedProcess[bytes], hook: str, what: str, mend: str = "install") -> None:
    """Assert that a hook refused: what is gone, the command that brings it back, every file to remove."""
    lines = [line.removeprefix("remote: ").rstrip() for line in done.stderr.decode().splitlines()]
    start = next(
        number for number, line in enumerate(lines) if line.startswith("error: patchgate is missing")
    )
    assert lines[start].count("git-patchgate") == 2
    assert " PATH" in lines[start]
    assert lines[start].endswith(f", {what}")
    assert lines[start + 1].startswith("help: install patchgate ")
    assert lines[start + 1].endswith(f": git patchgate {mend}")
    assert lines[start + 2] == "help: to remove patchgate:"
    ways = [line for line in lines[start + 3 :] if line.startswith("  rm /")]
    assert any(line.endswith(f"/hooks/{hook}") for line in ways)
    assert len(ways) == len(set(ways))
    assert done.returncode != 0


def test_pre_commit_refuses(stranded: Stranded) -> None:
    stranded.repo.stage({"b": "1\n"})
    done = stranded.repo.try_git("commit", "-q", "-m", "x")
    refused(done, "pre-commit", "so this commit is refused")
    assert stranded.repo.head() == stranded.first


def test_commit_msg_refuses(stranded: Stranded) -> None:
    (stranded.hooks / "pre-commit").unlink()
    stranded.repo.stage({"b": "1\n"})
    done = stranded.repo.try_git("commit", "-q", "-m", "x.")
    refused(done, "commit-msg", "so this commit is refused")


def test_pre_merge_commit_refuses(stranded: Stranded) -> None:
    done = stranded.repo.try_git("merge", "-q", "--no-ff", "-m", "x", "side")
    refused(done, "pre-merge-commit", "so this merge is refused")


def test_pre_push_refuses_and_a_push_of_nothing_passes(stranded: Stranded) -> None:
    done = stranded.repo.try_git("push", "-q", "origin", "side:new")
    refused(done, "pre-push", "so this push is refused")
    stranded.repo.git("push", "-q", "origin", "side:ahead")


def test_pre_receive_refuses_and_names_the_command_for_servers(stranded: Stranded) -> None:
    (stranded.hooks / "pre-push").unlink()
    recorder = Recorder(stranded.repo.path.parent / "server")
    install(stranded.remote, recorder, is_server=True)
    recorder.remove()
    done = stranded.repo.try_git("push", "-q", "origin", "side:new")
    refused(done, "pre-receive", "so this push is refused", "install --server")


def test_the_name_of_the_file_that_was_there_before_is_told(stranded: Stranded) -> None:
    previous = stranded.hooks / "pre-commit.patchgate-prev"
    previous.write_text("#!/bin/sh\n", encoding="utf-8")
    stranded.repo.stage({"b": "1\n"})
    done = stranded.repo.try_git("commit", "-q", "-m", "x")
    place = stranded.hooks / "pre-commit"
    assert f"  mv {place}.patchgate-prev {place}\n" in done.stderr.decode()


def test_what_is_printed_to_do_without_it_takes_every_hook_out_at_once(tmp_path: Path) -> None:
    made = Stranded(tmp_path / "a place with blanks")
    previous = made.hooks / "pre-push.patchgate-prev"
    previous.write_text("#!/bin/sh\n", encoding="utf-8")
    made.lose_patchgate()
    made.repo.stage({"b": "1\n"})
    said = made.repo.try_git("commit", "-q", "-m", "x").stderr.decode()
    ways = [line for line in said.split("\n") if line.startswith(("  rm ", "  mv "))]
    assert len(ways) == 5
    subprocess.run(["sh", "-e"], input="\n".join(ways).encode(), cwd=tmp_path, check=True)
    assert not [each for each in made.hooks.iterdir() if b"patchgate hook" in each.read_bytes()]
    assert (made.hooks / "pre-push").read_text() == "#!/bin/sh\n"
    made.repo.git("commit", "-q", "-m", "x")


def test_new_commits_of_a_branch_are_refused(stranded: Stranded) -> None:
    stranded.repo.stage({"b": "1\n"})
    done = stranded.repo.try_git("commit", "-q", "-n", "-m", "x")
    refused(done, "reference-transaction", "so the new commits of a branch are refused")
    assert stranded.repo.head() == stranded.first
    new = stranded.new_commit()
    assert stranded.repo.try_git("branch", "made", new).returncode != 0
    assert stranded.repo.try_git("update-ref", "refs/heads/side", new).returncode != 0


def many(stranded: Stranded) -> None:
    new = stranded.new_commit()
    lines = "".join(f"create refs/tags/t{number} {new}\n" for number in range(200))
    stranded.repo.git("update-ref", "--stdin", stdin=lines.encode())


def unchanged_without_reflogs(stranded: Stranded) -> None:
    shutil.rmtree(stranded.repo.path / ".git/logs")
    stranded.repo.git("config", "core.logAllRefUpdates", "false")
    tip = stranded.repo.ask("commit-tree", "-p", "HEAD", "-m", "New", "HEAD^{tree}")
    stranded.hooks.rename(stranded.hooks.with_name("away"))
    stranded.repo.git("update-ref", "refs/heads/side", tip)
    stranded.hooks.with_name("away").rename(stranded.hooks)
    lines = f"update refs/heads/side {tip}\nupdate refs/heads/main {stranded.first}\n"
    stranded.repo.git("update-ref", "--stdin", stdin=lines.encode())


PASSING: dict[str, Callable[[Stranded], object]] = {
    "a tag": lambda it: it.repo.git("tag", "t", it.new_commit()),
    "many refs": many,
    "a note": lambda it: it.repo.git("notes", "add", "-m", "x"),
    "a stash": lambda it: (
        it.repo.write("a", "changed\n"),
        it.repo.git("stash"),
        it.repo.git("stash", "pop"),
    ),
    "a fetch": lambda it: it.repo.git("fetch", "-q", "--refetch", "origin", "+refs/heads/*:refs/remotes/o/*"),
    "a detached commit": lambda it: it.repo.git("checkout", "-q", "--detach"),
    "a deletion": lambda it: it.repo.git("branch", "-q", "-D", "side"),
    "an unchanged branch": lambda it: it.repo.git("branch", "-f", "side", "side"),
    "two unchanged branches": unchanged_without_reflogs,
    "a reset to HEAD": lambda it: it.repo.git("reset", "-q", "--hard", "HEAD"),
    "a value that it had": lambda it: it.repo.git("reset", "-q", "--hard", it.dropped),
    "what the remote has": lambda it: it.repo.git("merge", "-q", "--ff-only", "origin/ahead"),
    "a branch of the remote's": lambda it: it.repo.git("switch", "-q", "-c", "mine", "origin/ahead"),
    "what the remote reaches": lambda it: it.repo.git("branch", "old", it.first),
    "a branch of another's tip": lambda it: (
        it.repo.git("branch", "again", "keep"),
        it.repo.git("switch", "-q", "-c", "more", "keep"),
    ),
    "a worktree": lambda it: it.repo.git("worktree", "add", "-q", "-b", "there", "../there", "origin/ahead"),
    "a repack of refs": lambda it: it.repo.git("pack-refs", "--all"),
    "gc": lambda it: it.repo.git("gc", "-q"),
}


@pytest.mark.sweep(8)
@pytest.mark.parametrize("name", PASSING)
def test_what_needs_no_judgement_passes(stranded: Stranded, name: str) -> None:
    PASSING[name](stranded)


def test_one_new_branch_among_others_is_refused_with_them(stranded: Stranded) -> None:
    lines = f"create refs/heads/x {stranded.second}\ncreate refs/heads/y {stranded.new_commit()}\n"
    done = stranded.repo.try_git("update-ref", "--stdin", stdin=lines.encode())
    assert done.returncode != 0
    assert stranded.repo.try_git("rev-parse", "--verify", "-q", "refs/heads/x").returncode != 0


def test_what_pre_commit_judged_before_it_went_still_lands(tmp_path: Path) -> None:
    """The pending receipt is compared in sh; whoever wrote it has judged."""
    stranded = Stranded(tmp_path)
    real = stranded.repo.install()
    assert "installed" in real.out
    stranded.repo.stage({"b": "1\n"})
    stranded.repo.git("commit", "-q", "-m", "Add b")
    assert stranded.repo.ask("log", "-1", "--format=%s") == "Add b"


@pytest.mark.parametrize("is_there", [False, True])
def test_a_program_on_path_serves_where_the_recorded_one_does_not_start(
    tmp_path: Path, is_there: bool
) -> None:
    stranded = Stranded(tmp_path)
    other = Recorder(tmp_path / "other")
    stranded.lose_patchgate()
    if is_there:
        stranded.recorder.program.parent.mkdir()
        stranded.recorder.program.write_text("#!/no/such/python\n", encoding="utf-8")
        stranded.recorder.program.chmod(0o755)
    stranded.repo.env["PATH"] = f"{other.program.parent}:{stranded.repo.env['PATH']}"
    stranded.repo.stage({"b": "1\n"})
    stranded.repo.git("commit", "-q", "-m", "x.")
    assert other.asked == ["pre-commit", "commit-msg .git/COMMIT_EDITMSG", "reference-transaction prepared"]


def test_the_recorded_program_serves_where_path_is_bare(tmp_path: Path) -> None:
    stranded = Stranded(tmp_path)
    stranded.repo.env["PATH"] = "/usr/bin:/bin"
    stranded.repo.stage({"b": "1\n"})
    stranded.repo.git("commit", "-q", "-m", "x")
    assert stranded.recorder.asked[0] == "pre-commit"


def test_a_program_whose_interpreter_is_gone_is_gone(tmp_path: Path) -> None:
    stranded = Stranded(tmp_path)
    stranded.repo.env["PATH"] = without_patchgate(stranded.repo.env)
    stranded.recorder.program.write_text("#!/no/such/python\n", encoding="utf-8")
    stranded.repo.stage({"b": "1\n"})
    done = stranded.repo.try_git("commit", "-q", "-m", "x")
    refused(done, "pre-commit", "so this commit is refused")
    done = stranded.repo.try_git("commit", "-q", "-n", "-m", "x")
    refused(done, "reference-transaction", "so the new commits of a branch are refused")
    stranded.repo.git("branch", "old", stranded.first)


def test_the_hook_says_how_it_is_removed_by_hand(stranded: Stranded) -> None:
    for name in ("pre-commit", "pre-merge-commit", "commit-msg", "pre-push", "reference-transaction"):
        text = (stranded.hooks / name).read_text(encoding="utf-8")
        assert text.split("\n")[1] == "# patchgate hook 1"
        assert "git patchgate uninstall" in text
        assert "By hand" in text
        (stranded.hooks / name).unlink()
    stranded.repo.stage({"b": "1\n"})
    stranded.repo.git("commit", "-q", "-m", "x")
