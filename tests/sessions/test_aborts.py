"""Git's own `--abort` leads back after any refusal in the middle of something, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sessions.twins import BAD, OFF, Household, said_by, state_of
from tests.world import Repo

Step = Callable[[Household], object]


def refused(repo: Repo, *arguments: str) -> str:
    """Run git, which must be stopped by a refusal; give what it said."""
    done = repo.try_git(*arguments, GIT_EDITOR="true")
    assert done.returncode != 0, said_by(done)
    assert "rejected: " in said_by(done), said_by(done)
    return said_by(done)


def conflict(each: Household) -> None:
    """Make a branch of one good, one bad and one conflicting commit, and a commit here that conflicts."""
    each.plant_branch("side", {"plain/s": "s\n"}, BAD, {"plain/a": "theirs\n"})
    each.plant({"plain/a": "ours\n"})


def merge_refused(each: Household) -> None:
    each.plant_branch("side", BAD)
    each.plant({"plain/m": "m\n"})


def resolve_badly(each: Household, *go_on: str) -> None:
    """Resolve a conflict with what the policy denies, and try to go on."""
    each.repo.write("plain/a", "BAD\n")
    each.repo.git("add", "plain/a")
    refused(each.repo, *go_on)


def merge_before_the_commit(each: Household) -> None:
    refused(each.repo, "merge", "--no-edit", "side")


def merge_with_a_conflict(each: Household) -> None:
    assert each.repo.try_git("merge", "--no-edit", "side").returncode == 1
    resolve_badly(each, "commit", "--no-edit")


def merge_unverified(each: Household) -> None:
    refused(each.repo, "merge", "--no-edit", "--no-verify", "side")


def pick_with_a_conflict(each: Household) -> None:
    assert each.repo.try_git("cherry-pick", "side").returncode == 1
    resolve_badly(each, "cherry-pick", "--continue")


def pick_of_several(each: Household) -> None:
    refused(each.repo, "cherry-pick", "side~2", "side~1", "side")


def revert_with_a_conflict(each: Household) -> None:
    each.plant({"plain/a": "ours again\n"})
    assert each.repo.try_git("revert", "--no-edit", "HEAD~1").returncode == 1
    resolve_badly(each, "revert", "--continue")


def rebase_to_its_end(each: Household) -> None:
    each.repo.git(*OFF, "switch", "-q", "side")
    refused(each.repo, "rebase", "-X", "theirs", "main")


def rebase_with_a_conflict(each: Household) -> None:
    each.repo.git(*OFF, "switch", "-q", "side")
    assert each.repo.try_git("rebase", "main").returncode == 1
    resolve_badly(each, "rebase", "--continue")


def rebase_with_a_stop(each: Household) -> None:
    each.repo.git(*OFF, "switch", "-q", "side")
    editor = "sed -i.old -e '1s/^pick/edit/'"
    each.repo.git("rebase", "-q", "-i", "-X", "theirs", "main", GIT_SEQUENCE_EDITOR=editor)
    each.repo.write("secrets/other", "x\n")
    each.repo.git("add", "-A")
    refused(each.repo, "commit", "-m", "More")


def mail(each: Household) -> None:
    each.repo.git("format-patch", "-q", "-3", "side", "-o", "../mail")
    mails = sorted(str(mail) for mail in (each.folder / "mail").iterdir())
    refused(each.repo, "am", "-q", *mails)


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("prepare", "refuse", "abort"),
    [
        (merge_refused, merge_before_the_commit, "merge"),
        (conflict, merge_with_a_conflict, "merge"),
        (conflict, pick_with_a_conflict, "cherry-pick"),
        (conflict, pick_of_several, "cherry-pick"),
        (conflict, revert_with_a_conflict, "revert"),
        (conflict, rebase_to_its_end, "rebase"),
        (conflict, rebase_with_a_conflict, "rebase"),
        (conflict, rebase_with_a_stop, "rebase"),
        (conflict, mail, "am"),
    ],
)
def test_an_abort_after_a_refusal_leads_back(tmp_path: Path, prepare: Step, refuse: Step, abort: str) -> None:
    each = Household(tmp_path / "gated")
    each.repo.git("patchgate", "install")
    prepare(each)
    before = state_of(each.repo)
    branch = refuse.__name__.startswith("rebase") and "side"
    refuse(each)
    each.repo.git(abort, "--abort")
    if branch:
        each.repo.git(*OFF, "switch", "-q", "main")
    if refuse is revert_with_a_conflict:
        each.repo.git(*OFF, "reset", "-q", "--hard", "HEAD~1")
    assert state_of(each.repo).lasting == before.lasting
    assert not [
        name for name in state_of(each.repo).extra if name.startswith(("rebase", "sequencer", "MERGE"))
    ]
