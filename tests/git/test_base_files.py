"""What a patch is laid on: the index, with the touched paths as they are on disk; or a tree."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.base_files import BaseFiles, base_files_of_tree, base_files_on_disk
from patchgate.git.model import EXECUTABLE, GITLINK, REGULAR, SYMLINK, TREE_MODE, Entry
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import open_repository
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path)


def ground(repo: Repo, *names: bytes, removed: tuple[bytes, ...] = (), on_disk: bool = True) -> BaseFiles:
    """Look names up as a patch would meet them."""
    repository = open_repository(repo.env, str(repo.path))
    gone = frozenset(map(RepoPath.from_patch, removed))
    paths = [RepoPath.from_patch(name) for name in names]
    tree = repo.ask("rev-parse", "HEAD^{tree}")
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        if not on_disk:
            return base_files_of_tree(objects, tree, paths, gone)
        return base_files_on_disk(repository, objects, store, tree, paths, gone)


def entry(repo: Repo, name: bytes) -> Entry | None:
    return ground(repo, name).entries[RepoPath.from_patch(name)]


def blob(repo: Repo, content: bytes) -> str:
    return repo.git("hash-object", "--stdin", stdin=content).decode().strip()


def test_a_file_is_met_as_it_is_on_disk_and_what_differs_from_head_is_pending(repo: Repo) -> None:
    repo.commit({"f": "one\n", "g": "one\n"})
    repo.write("f", "two\n")
    repo.write("g", "staged\n")
    repo.git("add", "g")
    found = ground(repo, b"f")
    assert found.entries == {RepoPath(b"f"): Entry(REGULAR, blob(repo, b"two\n"))}
    assert {path.raw: change.new for path, change in found.pending.items()} == {
        b"f": Entry(REGULAR, blob(repo, b"two\n")),
        b"g": Entry(REGULAR, blob(repo, b"staged\n")),
    }


def test_a_file_that_is_gone_from_disk_or_was_never_there_is_met_as_nothing(repo: Repo) -> None:
    repo.commit({"f": "one\n"})
    (repo.path / "f").unlink()
    found = ground(repo, b"f", b"nowhere/at/all")
    assert found.entries == {RepoPath(b"f"): None, RepoPath(b"nowhere/at/all"): None}
    assert [path.raw for path in found.pending] == [b"f"]


def test_modes_and_links_on_disk_count(repo: Repo) -> None:
    repo.commit({"f": "one\n", "g": "one\n"})
    (repo.path / "f").chmod(0o755)
    (repo.path / "g").unlink()
    repo.link("g", "f")
    assert entry(repo, b"f") == Entry(EXECUTABLE, blob(repo, b"one\n"))
    assert entry(repo, b"g") == Entry(SYMLINK, blob(repo, b"f"))


def test_without_core_file_mode_a_file_keeps_the_mode_of_the_index(repo: Repo) -> None:
    repo.commit({"f": "one\n"})
    repo.git("config", "core.fileMode", "false")
    (repo.path / "f").chmod(0o755)
    assert entry(repo, b"f") == Entry(REGULAR, blob(repo, b"one\n"))
    assert not ground(repo, b"f").pending


@pytest.mark.parametrize(("setting", "value"), [("core.autocrlf", "true"), ("core.autocrlf", "input")])
def test_a_file_that_is_crlf_in_the_index_stays_so_as_under_git_add(
    repo: Repo, setting: str, value: str
) -> None:
    repo.commit({"f": "one\r\n"})
    repo.git("config", setting, value)
    assert not ground(repo, b"f").pending


def test_a_file_that_is_lf_in_the_index_and_crlf_on_disk_is_read_as_lf(repo: Repo) -> None:
    repo.commit({"f": "one\n", ".gitattributes": "f text eol=crlf\n"})
    repo.write("f", "one\r\n")
    assert not ground(repo, b"f").pending


def test_core_safecrlf_does_not_keep_a_file_from_being_read(repo: Repo) -> None:
    repo.commit({"f": "one\n"})
    repo.git("config", "core.autocrlf", "input")
    repo.git("config", "core.safecrlf", "true")
    repo.write("f", "one\r\ntwo\n")
    assert entry(repo, b"f") == Entry(REGULAR, blob(repo, b"one\ntwo\n"))


@pytest.mark.parametrize("name", [b'"f"', b'"f', b"-n", b" f ", b"#f", b"f\xff", b"f\\n", b'"a\\"'])
def test_a_file_is_read_by_its_own_name_however_odd(repo: Repo, name: bytes) -> None:
    repo.write("f", "another\n")
    repo.write(name, "mine\n")
    repo.commit()
    assert entry(repo, name) == Entry(REGULAR, blob(repo, b"mine\n"))


def test_a_file_that_a_sparse_checkout_leaves_out_is_met_as_in_the_index(repo: Repo) -> None:
    repo.commit({"f": "one\n"})
    repo.git("update-index", "--skip-worktree", "f")
    (repo.path / "f").unlink()
    assert entry(repo, b"f") == Entry(REGULAR, blob(repo, b"one\n"))


def test_a_folder_of_the_index_stands_in_the_way_also_where_it_is_not_on_disk(repo: Repo) -> None:
    repo.commit({"d/x": "one\n", "g": "one\n"})
    (repo.path / "d" / "x").unlink()
    (repo.path / "d").rmdir()
    found = entry(repo, b"d")
    assert found is not None
    assert found.mode == TREE_MODE


def test_what_lies_behind_a_file_or_submodule_of_the_index_or_a_link_on_disk_is_blocked(repo: Repo) -> None:
    repo.commit({"f": "one\n", "g": "one\n"})
    repo.gitlink("module")
    repo.git("commit", "-q", "-m", "Add a module")
    (repo.path / "f").unlink()
    repo.link("outside", "/tmp")
    (repo.path / "nested" / ".git").mkdir(parents=True)
    names = (b"f/x", b"g/x", b"module/x", b"module/deep/x", b"outside/x", b"nested/x", b"free/x")
    found = ground(repo, *names)
    assert {path.raw: behind.raw for path, behind in found.blocked.items()} == {
        b"f/x": b"f",
        b"g/x": b"g",
        b"module/x": b"module",
        b"module/deep/x": b"module",
        b"outside/x": b"outside",
        b"nested/x": b"nested",
    }


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_file_that_is_removed_makes_room_for_a_folder_and_the_other_way_round(
    repo: Repo, on_disk: bool
) -> None:
    repo.commit({"f": "one\n", "d/x": "one\n", "d/deep/y": "one\n"})
    found = ground(repo, b"f/x", b"d", removed=(b"f", b"d/x", b"d/deep/y"), on_disk=on_disk)
    assert not found.blocked
    assert found.entries == {RepoPath(b"f/x"): None, RepoPath(b"d"): None}
    kept = ground(repo, b"d", removed=(b"d/x",), on_disk=on_disk).entries[RepoPath(b"d")]
    assert kept is not None
    assert kept.mode == TREE_MODE


def test_a_folder_that_holds_an_untracked_file_makes_no_room(repo: Repo) -> None:
    repo.commit({"d/x": "one\n"})
    repo.write("d/untracked")
    kept = ground(repo, b"d", removed=(b"d/x",)).entries[RepoPath(b"d")]
    assert kept is not None
    assert kept.mode == TREE_MODE


def test_a_link_that_is_removed_makes_no_room(repo: Repo) -> None:
    repo.link("l", "/tmp")
    repo.commit({"g": "one\n"})
    for on_disk in (True, False):
        found = ground(repo, b"l/x", removed=(b"l",), on_disk=on_disk)
        assert found.blocked == {RepoPath(b"l/x"): RepoPath(b"l")}


def test_a_submodule_is_met_as_its_entry(repo: Repo) -> None:
    repo.commit({"g": "one\n"})
    repo.gitlink("module", "2" * 40)
    repo.git("commit", "-q", "-m", "Add a module")
    (repo.path / "module").mkdir()
    assert entry(repo, b"module") == Entry(GITLINK, "2" * 40)
    assert ground(repo, b"module", on_disk=False).entries[RepoPath(b"module")] == Entry(GITLINK, "2" * 40)


def test_many_dirty_files_are_read_together(repo: Repo) -> None:
    names = [b"%d" % number for number in range(300)]
    repo.commit({os.fsdecode(name): "one\n" for name in names})
    for name in names[:200]:
        repo.write(name, b"two " + name)
    found = ground(repo, *names).entries
    assert found[RepoPath(b"7")] == Entry(REGULAR, blob(repo, b"two 7"))
    assert found[RepoPath(b"299")] == Entry(REGULAR, blob(repo, b"one\n"))


def put_special(place: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(place)
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(place))


@pytest.mark.parametrize("kind", ["fifo", "socket"])
@pytest.mark.parametrize("name", ["f", "new", ".gitattributes", "d/.gitattributes"])
def test_a_special_file_is_told_and_never_opened(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    """Who opens a FIFO waits for ever: git did, and stayed when we were ended."""
    repo.commit({"f": "one\n", "d/x": "one\n"})
    (repo.path / name).unlink(missing_ok=True)
    monkeypatch.chdir(repo.path)
    put_special(repo.path / name, kind)
    with pytest.raises(UndecidedError, match=f"{name} .*special"):
        ground(repo, b"f", b"new", b"d/x")


def test_what_lies_behind_a_special_file_is_blocked(repo: Repo) -> None:
    repo.commit({"f": "one\n"})
    os.mkfifo(repo.path / "way")
    assert ground(repo, b"way/x").blocked == {RepoPath(b"way/x"): RepoPath(b"way")}
