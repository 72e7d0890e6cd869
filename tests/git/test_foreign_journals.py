"""Journals that this repository did not write for the tree that it has now: nothing is done by them."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, open_repository
from patchgate.git.transaction import Write, pending_transactions, recover, write_files
from patchgate.storage.open_folder import OpenFolder
from patchgate.storage.record import START, canonical_event, line_of
from tests.faults import Fault, Faults, Kind
from tests.git.test_transaction import repository
from tests.git.test_transaction_concurrent_edits import killed_when_all_is_in_place
from tests.git.transaction_world import (
    CASES,
    FIVE,
    KILLED,
    ONE,
    TWENTY,
    Case,
    State,
    World,
    in_child,
    text,
    world,
)
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

Events = list[dict[str, Any]]
NEW = Write(RepoPath(b"n"), None, text("new\n"))


def opened(repo: Repo, path: Path | None = None) -> Repository:
    return open_repository(repo.env, str(path or repo.path))


def record_of(git: Path) -> Path:
    states = {"journal", "landed", "undone"}
    (found,) = (each for each in git.glob("patchgate/transactions/*/*") if each.name in states)
    return found


def events_of(journal: Path) -> Events:
    return [json.loads(line)["event"] for line in journal.read_bytes().splitlines()]


def rewritten(journal: Path, events: Events) -> None:
    """Write a journal whose every hash is right."""
    previous, lines = START, []
    for event in events:
        previous, line = line_of(canonical_event(event), previous)
        lines.append(line)
    journal.write_bytes(b"".join(lines))


def everything(folder: Path) -> State:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b"",
        )
        for path in folder.rglob("*")
        if path.name != "apply.lock"
    }


def kill(repo: Repo, path: Path | None = None) -> Path:
    """Leave a transaction half done, its new file in place; give its journal."""
    tree, environment = path or repo.path, opened(repo, path)
    for step in range(10, 40):
        faults = Faults([Fault(step, Kind.KILL)])
        writing = partial(write_files, environment, [NEW], note={}, faults=faults)
        assert in_child(writing) == KILLED
        if (tree / "n").exists():
            journal = record_of(Path(environment.common_dir))
            assert journal.name == "journal"
            return journal
        for each in recover(environment):
            each.finish()
    raise AssertionError("no kill left the file in place")


def refused(environment: Repository, words: str = "belongs to another working tree") -> UndecidedError:
    with pytest.raises(UndecidedError, match=words) as caught:
        recover(environment)
    assert "remove" in (caught.value.hint or "")
    assert "transactions/" in caught.value.message + (caught.value.hint or "")
    return caught.value


def test_a_copy_of_the_repository_is_told_and_neither_tree_is_touched(tmp_path: Path) -> None:
    repo, copy = repository(tmp_path), tmp_path / "copy"
    journal = kill(repo)
    shutil.copytree(repo.path, copy, symlinks=True)
    for each in recover(opened(repo)):
        each.finish()
    write_files(opened(repo), [NEW], note={}).finish()
    repo.git("add", "-A")
    repo.git("commit", "-qm", "the new file")
    original, before = everything(repo.path), everything(copy)
    refused(opened(repo, copy))
    assert everything(repo.path) == original
    assert everything(copy) == before
    shutil.rmtree(copy / journal.parent.relative_to(repo.path))
    assert recover(opened(repo, copy)) == []


def test_a_landed_record_is_not_tidied_from_a_copy(tmp_path: Path) -> None:
    repo, copy = repository(tmp_path), tmp_path / "copy"
    write_files(opened(repo), [NEW], note={})
    shutil.copytree(repo.path, copy, symlinks=True)
    kept = repo.path / os.fsdecode(events_of(record_of(repo.path / ".git"))[1]["aside"])
    kept.write_bytes(b"new\n")
    refused(opened(repo, copy))
    assert kept.exists()


def test_a_repository_that_was_moved_is_recovered_where_it_is_now(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    kill(repo)
    moved = tmp_path / "moved"
    repo.path.rename(moved)
    (done,) = recover(opened(repo, moved))
    done.finish()
    assert done.outcome == "undone"
    assert sorted(path.name for path in moved.iterdir()) == [".git", "a"]
    assert not (moved / ".git/index.lock").exists()


def test_a_linked_working_tree_that_was_moved_is_recovered_from_the_main_one(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    kill(repo, tmp_path / "linked")
    repo.git("worktree", "move", "../linked", "../moved")
    for each in recover(opened(repo)):
        each.finish()
    assert sorted(path.name for path in (tmp_path / "moved").iterdir()) == [".git", "a"]


def test_a_whole_repository_that_was_put_back_from_a_copy_is_recovered(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    kill(repo)
    shutil.copytree(repo.path, tmp_path / "copy", symlinks=True)
    repo.path.rename(tmp_path / "aside")
    (tmp_path / "copy").rename(repo.path)
    for each in recover(opened(repo)):
        each.finish()
    assert not (repo.path / "n").exists()
    assert (tmp_path / "aside/n").exists()


def test_a_linked_working_tree_that_was_made_anew_is_not_the_one_that_was_written(tmp_path: Path) -> None:
    repo, linked = repository(tmp_path), tmp_path / "linked"
    repo.git("worktree", "add", "-q", "../linked")
    kill(repo, linked)
    linked.rename(tmp_path / "aside")
    repo.git("worktree", "remove", "--force", "../linked")
    repo.git("worktree", "add", "-q", "--force", "../linked", "linked")
    (linked / "n").write_bytes(b"new\n")
    refused(opened(repo))
    assert (linked / "n").exists()


def test_another_repository_at_that_place_is_not_the_one_that_was_written(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    kill(repo, tmp_path / "linked")
    (tmp_path / "linked/.git").unlink()
    repo.git("init", "-q", str(tmp_path / "linked"))
    refused(opened(repo))
    assert (tmp_path / "linked/n").exists()


def test_a_working_tree_that_is_gone_is_told(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    kill(repo, tmp_path / "linked")
    shutil.rmtree(tmp_path / "linked")
    refused(opened(repo), "does not exist")


def test_an_index_elsewhere_is_written_only_for_who_names_it_again(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    index = tmp_path / "their-index"
    index.write_bytes(b"old")
    theirs = open_repository({**repo.env, "GIT_INDEX_FILE": str(index)}, str(repo.path))
    assert (
        in_child(
            lambda: write_files(theirs, [NEW], note={}, index=b"new", faults=Faults([Fault(25, Kind.KILL)]))
        )
        == KILLED
    )
    with pytest.raises(UndecidedError, match="index") as caught:
        recover(opened(repo))
    assert "GIT_INDEX_FILE" in (caught.value.hint or "")
    for each in recover(theirs):
        each.finish()
    assert (index.read_bytes(), (repo.path / "n").exists()) == (b"old", False)


Change = Callable[[Events], None]
ASIDE = ".patchgate-" + "a" * 16


def place(**fields: object) -> Change:
    return lambda events: events[1].update(fields)


def head(**fields: object) -> Change:
    return lambda events: events[0].update(fields)


BAD_PATHS = [
    "../victim/secret", "/tmp/secret", "", ".", "..", "a/../b", "a//b", "a/", "./a",
    ".git/hooks/post-commit", ".GIT/x", "git~1/x", "a/.git/x", "a\0b",
]  # fmt: skip
BAD_ASIDES = [
    "../victim/secret", "/tmp/x", "a", "", ASIDE + ".part", ASIDE + "\n", ASIDE[:-1], ASIDE.upper()
]  # fmt: skip
FORGED: dict[str, Change] = {
    **{f"path {path!r}": place(path=path) for path in BAD_PATHS},
    **{f"aside {name!r}": place(aside=name) for name in BAD_ASIDES},
    **{f"lock_aside {name!r}": head(lock_aside=name) for name in BAD_ASIDES},
    **{f"folder {name!r}": place(folder=name) for name in ("../victim", "/tmp", ".", ".git", "b", "a")},
    **{f"made {name!r}": head(made=[name]) for name in (*BAD_PATHS, "b")},
    **{f"vanishing {name!r}": head(vanishing=[[name, 0o755]]) for name in (*BAD_PATHS, "b")},
    **{f"prefix {name!r}": head(prefix=name) for name in ("..", "/", "a/../b", "a\0")},
    **{f"id {name!r}": head(id=name) for name in ("../x", "0" * 16, "")},
    **{
        f"index {name!r}": head(index_file=name) for name in ("", "config", "../index", "hooks/index", "HEAD")
    },
    "index outside": head(index_file="/tmp/index"),
    "an index place that is another file": place(is_index=True, path="config"),
    "an index place below a folder": place(is_index=True, path="hooks/index"),
    "bits of a folder": head(vanishing=[["a", 0o17777]]),
    "a note that is no table": head(note="x"),
    "a mode": place(new=["040000", 0, ""]),
    "a size": place(new=["100644", -1, "0" * 64]),
    "the same place twice": lambda events: events.append(dict(events[1], aside=ASIDE)),
    "the same name aside twice": lambda events: events.append(dict(events[1], path="b")),
    "the lock's name aside": lambda events: events[1].update(aside=events[0]["lock_aside"]),
    "no identity": head(tree=""),
    "text for a list": head(made="a"),
}


@contextmanager
def half_done(case: Case = ONE) -> Iterator[tuple[World, Path, Events]]:
    with world(case) as here:
        killed_when_all_is_in_place(here)
        journal = record_of(here.git)
        yield here, journal, events_of(journal)


def test_a_journal_that_is_written_anew_as_it_was_is_believed() -> None:
    for case in (ONE, FIVE, TWENTY):
        with half_done(case) as (here, journal, events):
            whole = journal.read_bytes()
            rewritten(journal, events)
            assert journal.read_bytes() == whole
            assert here.recover() == ["undone"]
            here.assert_settled(here.old)


@pytest.mark.sweep(60)
@pytest.mark.parametrize("state", ["journal", "landed"])
@pytest.mark.parametrize("name", FORGED)
def test_a_name_that_no_journal_of_ours_has_is_refused_and_nothing_is_touched(name: str, state: str) -> None:
    with half_done() as (here, journal, events):
        victim = here.root.parent / "victim"
        victim.mkdir()
        (victim / "secret").write_bytes(b"new\n")
        FORGED[name](events)
        events[0]["places"] = len(events) - 1
        rewritten(journal, events)
        journal.rename(journal.with_name(state))
        before = everything(here.root.parent)
        with pytest.raises(UndecidedError, match=r"damaged|another|index"):
            here.recover()
        assert everything(here.root.parent) == before
        assert len(pending_transactions(here.repository)) == 1


def test_a_working_tree_that_is_none_of_this_repository_is_refused() -> None:
    with half_done() as (here, journal, events):
        victim = here.root.parent / "victim"
        victim.mkdir()
        (victim / "a").write_bytes(b"new\n")
        status = victim.stat()
        identity = f"{status.st_dev}:{status.st_ino}"
        rewritten(journal, [dict(events[0], work_tree=str(victim), tree=identity), *events[1:]])
        before = everything(here.root.parent)
        refused(here.repository)
        assert everything(here.root.parent) == before


@pytest.mark.parametrize("state", ["journal", "landed", "undone"])
@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_a_journal_that_is_no_file_is_damaged(kind: str, state: str) -> None:
    with half_done() as (here, journal, _):
        journal.rename(journal.with_name("journal.new"))
        place = journal.with_name(state)
        if kind == "folder":
            place.mkdir()
        elif kind == "link":
            place.symlink_to("journal.new")
        else:
            os.mkfifo(place)
        before = everything(here.root)
        with pytest.raises(UndecidedError, match=rf"transactions/[0-9a-f]+/{state} .*is damaged"):
            here.recover()
        assert everything(here.root) == before


@pytest.mark.parametrize("name", [b"", b".", b"..", b"a/b", b"/a", b"../a"])
def test_an_open_folder_takes_single_names_only(name: bytes, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "a").write_bytes(b"outside")
    with OpenFolder.open(str(tmp_path / "in")) as folder:
        folder.write(b"own", b"", mode=0o600)
        calls: list[Callable[[], object]] = [
            lambda: folder.status(name),
            lambda: folder.read(name),
            lambda: folder.read_link(name),
            lambda: folder.write(name, b"", mode=0o600),
            lambda: folder.symlink(name, b"a"),
            lambda: folder.link(b"own", folder, name),
            lambda: folder.link(name, folder, b"free"),
            lambda: folder.rename(b"own", name),
            lambda: folder.rename(name, b"free"),
            lambda: folder.move(b"own", folder, name),
            lambda: folder.move(name, folder, b"free"),
            lambda: folder.exchange(b"own", folder, name),
            lambda: folder.exchange(name, folder, b"own"),
            lambda: folder.unlink(name),
            lambda: folder.make(name),
            lambda: folder.remove(name),
        ]
        for call in calls:
            with pytest.raises(OSError, match="single"):
                call()
        if name and name != b"a/b":
            with pytest.raises(OSError, match="single"):
                folder.child(name)
        assert folder.names() == [b"own"]
    assert (tmp_path / "a").read_bytes() == b"outside"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_journal_that_is_written_can_be_read(case: Case) -> None:
    with half_done(case) as (here, _, events):
        assert len(events) > 1
        assert [each.state for each in pending_transactions(here.repository)] == ["interrupted"]
        assert here.recover() == ["undone"]


def test_a_new_content_does_not_get_rights_that_the_old_one_was_trusted_with(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    (repo.path / "a").chmod(0o6744)
    write_files(
        opened(repo), [Write(RepoPath(b"a"), text("old\n", "100755"), text("new\n", "100755"))], note={}
    )
    assert stat.S_IMODE((repo.path / "a").stat().st_mode) == 0o755
