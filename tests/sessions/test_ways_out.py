"""Every command that a refused ref transaction prints as a way out, run as it stands, leads back.

One row for each operation; each printed command is run in a fresh copy of the same situation. Back means the
same HEAD, branches, stash, index and files as before the operation; what was edited but not staged is kept
where git keeps it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sessions.twins import BAD, OFF, Household, said_by, state_of

OTHER = {"GIT_COMMITTER_NAME": "Other"}
EDIT_FIRST = {"GIT_SEQUENCE_EDITOR": "sed -i.old -e '1s/^pick/edit/'"}


def side(each: Household) -> None:
    """Make a branch `side` of a good and a bad commit ahead of main."""
    each.plant_branch("side", {"plain/s": "s\n"}, BAD | {"plain/a": "changed\n"})


def apart(each: Household) -> None:
    """Make the same branch, and let main go on."""
    side(each)
    each.plant({"plain/m": "m\n"})


def lost(each: Household) -> None:
    """Make the same commits, and leave them on no branch: `refs/keep` holds them."""
    side(each)
    each.repo.git(*OFF, "update-ref", "refs/keep", "side")
    each.repo.git(*OFF, "branch", "-q", "-D", "side")


def topic(each: Household) -> None:
    """Stand on the bad branch, with main gone on."""
    apart(each)
    each.repo.git(*OFF, "switch", "-q", "side")


def topic_behind(each: Household) -> None:
    """Stand on the bad branch, with the remote's main gone on."""
    topic(each)
    each.upstream({"plain/u": "u\n"})
    each.repo.git(*OFF, "fetch", "-q")


def stack(each: Household) -> None:
    """Stand on the bad branch, with another one in its middle."""
    topic(each)
    each.repo.git(*OFF, "branch", "-q", "middle", "side~1")


def mails(each: Household) -> None:
    """Write the bad branch as mails."""
    apart(each)
    each.repo.git("format-patch", "-q", "-2", "side", "-o", "../mail")


def somebody(each: Household) -> None:
    """Let somebody have a bad branch."""
    each.other.git("switch", "-q", "-c", "bad")
    each.other.commit(BAD | {"plain/a": "changed\n"})


def somebody_apart(each: Household) -> None:
    """Let somebody have a bad branch, and let main go on."""
    somebody(each)
    each.plant({"plain/m": "m\n"})


def deleted(each: Household) -> None:
    """Have a commit that removes what nobody may add."""
    each.plant(BAD | {"plain/a": "changed\n"})
    each.repo.git(*OFF, "rm", "-q", "secrets/key")
    each.repo.write("plain/a", "changed back\n")
    each.repo.git(*OFF, "commit", "-q", "-a", "-m", "Remove the key")


def staged(each: Household) -> None:
    """Have something bad staged."""
    for name, content in BAD.items():
        each.repo.write(name, content)
    each.repo.git("add", "-A")


def side_and_other(each: Household) -> None:
    """Make the bad branch, and another one that is not checked out."""
    side(each)
    each.repo.git("branch", "other")


def submodule(each: Household) -> None:
    """Make a bad branch that moves a submodule on, too."""
    each.repo.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", "../other", "plain/sub")
    each.repo.git(*OFF, "commit", "-q", "-m", "Add a submodule")
    each.repo.git(*OFF, "switch", "-q", "-c", "side")
    each.other.commit({"plain/o": "o\n"})
    each.repo.git("fetch", "-q", "../../../other", cwd=each.repo.path / "plain/sub")
    each.repo.git("checkout", "-q", "FETCH_HEAD", cwd=each.repo.path / "plain/sub")
    each.plant({**BAD, "plain/a": "changed\n"})
    each.repo.git(*OFF, "commit", "-q", "-a", "-m", "Move the submodule on")
    each.repo.git(*OFF, "switch", "-q", "main")
    each.repo.git(*OFF, "submodule", "-q", "update")


def in_a_merge(each: Household) -> None:
    """Stop in the middle of a merge, with commits elsewhere that are on no branch."""
    lost(each)
    each.plant_branch("theirs", {"plain/b": "theirs\n"})
    each.plant({"plain/b": "ours\n"})
    assert each.repo.try_git("merge", "-q", "theirs").returncode == 1


def in_a_rebase(each: Household) -> None:
    """Stop in the middle of a rebase, with commits elsewhere that are on no branch."""
    lost(each)
    each.plant({"plain/b": "ours\n"})
    assert shell(each, "git rebase -q -i HEAD~1", **EDIT_FIRST).returncode == 0


def edits(each: Household) -> None:
    """Edit a file and leave it unstaged; have an untracked one."""
    each.repo.write("plain/c", "c\nedited\n")
    each.repo.write("untracked", "u\n")


def untracked(each: Household) -> None:
    """Have an untracked file."""
    each.repo.write("untracked", "u\n")


def edits_and_staged(each: Household) -> None:
    """Have something good staged besides, part of it edited again."""
    each.repo.write("plain/b", "b\nstaged\n")
    each.repo.write("plain/new", "new\n")
    each.repo.git("add", "plain/b", "plain/new")
    each.repo.write("plain/new", "new\nedited\n")
    edits(each)


@dataclass(frozen=True)
class Operation:
    """What is done, in which situation, and what else lies in index and working tree."""

    command: str
    prepare: Callable[[Household], None]
    beside: Callable[[Household], None] = edits
    env: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.command}, {self.prepare.__name__}, {self.beside.__name__}"


OPERATIONS = [
    Operation("git merge -q side", side),
    Operation("git merge -q side", side, edits_and_staged),
    Operation("git merge -q --no-ff --no-edit --no-verify side", side),
    Operation("git merge -q --no-edit --no-verify side", apart),
    Operation("git merge -q --no-edit side", apart),
    Operation("git pull -q ../other bad", somebody),
    Operation("git pull -q ../other bad", somebody, edits_and_staged),
    Operation("git pull -q --no-rebase --no-edit ../other bad", somebody_apart),
    Operation("git pull -q --no-rebase --no-edit --no-verify ../other bad", somebody_apart),
    Operation("git cherry-pick side", apart),
    Operation("git cherry-pick side~1 side", apart),
    Operation("git cherry-pick side side~1", apart),
    Operation("git revert --no-edit HEAD", deleted),
    Operation("git revert --no-edit HEAD HEAD~1", deleted),
    Operation("git rebase -q main", topic, untracked),
    Operation("git rebase -q --apply main", topic, untracked),
    Operation("git rebase -q --autostash main", topic),
    Operation("git rebase -q main side", topic, untracked),
    Operation("git rebase -q --update-refs main", stack, untracked),
    Operation("git rebase -q --root --force-rebase", topic, untracked, OTHER),
    Operation("git rebase -q side", apart, untracked),
    Operation(
        "git rebase -q -i main; echo e >>plain/s; git commit -qan --amend --no-edit; git rebase --continue",
        topic,
        untracked,
        EDIT_FIRST,
    ),
    Operation("git pull -q --rebase origin main", topic_behind, untracked),
    Operation("git pull -q --rebase ../other bad", somebody_apart, untracked),
    Operation("git am -q ../mail/*", mails),
    Operation("git am -q ../mail/0002*", mails),
    Operation("git am -q -3 ../mail/0002*", mails),
    Operation("git commit -q -n -m More", staged),
    Operation("git commit -q -n -a -m More", staged),
    Operation("git commit -q -n --amend --no-edit", staged),
    Operation("git commit -q -n --amend --no-edit -a", staged),
    Operation("git commit -q -n -m More secrets/key", staged, edits_and_staged),
    Operation("git reset -q --hard side", side, untracked),
    Operation("git reset -q --keep side", side),
    Operation("git reset -q --merge side", side),
    Operation("git reset -q --soft side", side),
    Operation("git reset -q side", side),
    Operation("git switch -q -c x refs/keep", lost),
    Operation("git switch -q -c x refs/keep", lost, edits_and_staged),
    Operation("git switch -q -C main refs/keep", lost),
    Operation("git checkout -q -b x refs/keep", lost),
    Operation("git checkout -q -B main side", side),
    Operation("git merge -q side", submodule, untracked),
    Operation("git reset -q --hard side", submodule, untracked),
    Operation("git merge -q --autostash side", side),
    Operation("git pull -q --ff-only --autostash ../other bad", somebody),
    Operation("git branch x refs/keep", lost),
    Operation("git branch x refs/keep", in_a_merge, untracked),
    Operation("git branch x refs/keep", in_a_rebase, untracked),
    Operation("git update-ref refs/heads/x refs/keep", in_a_merge, untracked),
    Operation("git switch -q --detach && git branch -f main side; git switch -q main", side),
    Operation("git update-ref refs/heads/main side", side),
    Operation("git update-ref refs/heads/x refs/keep", lost),
    Operation("git fetch -q . side:other", side_and_other),
    Operation("git worktree add -q -b x ../x refs/keep", lost),
    Operation("git push -q . side:other", side_and_other),
]


def shell(each: Household, line: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line as somebody would who types it."""
    everything = {**each.repo.env, "GIT_EDITOR": "true", **env}
    return subprocess.run(
        ["sh", "-c", line], cwd=each.repo.path, env=everything, capture_output=True, check=False
    )


def ways_in(said: str) -> list[str]:
    """Find the commands in what was printed: each alone on the line after `help: …:`."""
    lines = said.splitlines()
    return [
        lines[number + 1]
        for number, line in enumerate(lines)
        if line.startswith("help: ") and line.endswith(":")
    ]


def refuse(folder: Path, operation: Operation) -> tuple[Household, tuple[object, ...], list[str]]:
    """Make the situation and do the operation; give the state before it and the ways out it printed."""
    each = Household(folder)
    each.repo.git("patchgate", "install")
    operation.prepare(each)
    operation.beside(each)
    before = state_of(each.repo).lasting
    done = shell(each, operation.command, **operation.env)
    said = said_by(done)
    assert "rejected: " in said, said
    assert "deny-prefix" in said
    assert "Traceback" not in said
    return each, before, ways_in(said)


def ordinary_work_goes_on(each: Household) -> None:
    """Make a harmless commit through the hooks."""
    each.repo.git(*OFF, "reset", "-q", "--hard")
    each.repo.write("plain/later", "later\n")
    each.repo.git("add", "plain/later")
    each.repo.git("commit", "-q", "-m", "Work on")


@pytest.mark.sweep(6)
@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_each_way_out_leads_back(tmp_path: Path, operation: Operation) -> None:
    each, before, ways = refuse(tmp_path / "first", operation)
    # Where nothing was moved there is nothing to lead back from.
    assert bool(ways) == (state_of(each.repo).lasting != before)
    for number, way in enumerate(ways):
        if number:
            each, before, ways = refuse(tmp_path / str(number), operation)
        done = shell(each, way)
        if way.endswith("--continue"):
            # Nothing was mended: it is refused again, and the way back is still there.
            assert done.returncode != 0
            done = shell(each, ways[0])
        assert done.returncode == 0, said_by(done)
        assert state_of(each.repo).lasting == before
    ordinary_work_goes_on(each)


@pytest.mark.parametrize("form", ["", "--autostash"])
def test_a_refused_rebase_goes_on_once_it_is_mended(tmp_path: Path, form: str) -> None:
    operation = Operation(f"git rebase -q {form} main", topic, untracked)
    each, _, ways = refuse(tmp_path, operation)
    each.repo.git("rm", "-q", "--cached", "secrets/key")
    (each.repo.path / "secrets/key").unlink()
    each.repo.git("commit", "-q", "--amend", "--no-edit")
    (way,) = [way for way in ways if way.endswith("--continue")]
    done = shell(each, way)
    assert done.returncode == 0, said_by(done)
    assert each.repo.ask("symbolic-ref", "HEAD") == "refs/heads/side"
    assert each.repo.ask("log", "--format=%s", "main..side").splitlines() == ["side 1", "side 0"]
    assert each.repo.ask("ls-tree", "-r", "--name-only", "side", "secrets") == ""
