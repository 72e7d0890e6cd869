"""The new index, made aside: held against what git itself makes of a copy, and never the user's own."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.model import REGULAR, Entry, FileChange
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository, open_repository
from patchgate.git.staging import (
    StagedIndex,
    index_entries,
    new_index,
    paths_unlike_index,
    refresh_index,
    store_objects,
)
from tests.faults import Fault, Faults, Kind, Operation
from tests.world import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path)


def opened(repo: Repo) -> Repository:
    return open_repository(repo.env, str(repo.path))


class Staging:
    """A change by hand, its new blobs in a private store."""

    def __init__(self, repo: Repo, store: PrivateStore, repository: Repository) -> None:
        self.repo = repo
        self.store = store
        self.repository = repository
        self.files: list[FileChange] = []

    def change(self, name: bytes, new: bytes | None, mode: str = REGULAR) -> None:
        """Change what the index holds at a path (nothing: add it; None: delete it)."""
        path = RepoPath(name)
        old = index_entries(self.repository, [path]).get(path)
        entry = None
        if new is not None:
            entry = Entry(mode, self.store.write("blob", new))
        self.files.append(FileChange(path, old, entry))

    def differing(self) -> list[bytes]:
        return [path.raw for path in paths_unlike_index(self.repository, self.files)]

    def made(self) -> StagedIndex:
        return new_index(self.repository, self.store, self.files)

    def put(self, staged: StagedIndex) -> None:
        """Put the new index in its place, as the transaction would."""
        place = Path(self.repository.index_file)
        place.with_name("index.new").write_bytes(staged.content)
        place.with_name("index.new").rename(place)


@contextmanager
def staging(repo: Repo) -> Iterator[Staging]:
    repository = opened(repo)
    with PrivateStore(repository) as store:
        yield Staging(repo, store, repository)


def listed(repo: Repo) -> dict[str, str]:
    """List the index: name to mode, oid and stage."""
    records = repo.git("ls-files", "-z", "--stage").decode("utf-8", "surrogateescape").split("\0")[:-1]
    return {name: about for about, _, name in (record.partition("\t") for record in records)}


def tree(repo: Repo, index: StagedIndex, store: PrivateStore) -> str:
    """Write the tree of a new index, privately."""
    place = repo.path.parent / "other-index"
    place.write_bytes(index.content)
    return Repo(repo.path, {**repo.env, **store.variables, "GIT_INDEX_FILE": str(place)}).ask("write-tree")


def entry(repo: Repo, content: bytes) -> str:
    return f"{REGULAR} {repo.git('hash-object', '--stdin', stdin=content).decode().strip()} 0"


KINDS = {
    "plain": ((), {}, ()),
    "SHA-256": (("--object-format=sha256",), {}, ()),
    "version 4": ((), {}, (("update-index", "--index-version=4"),)),
    "split": ((), {"core.splitIndex": "true"}, (("update-index", "--split-index"),)),
    "untracked cache": ((), {}, (("update-index", "--untracked-cache"), ("status",))),
    "sparse": ((), {}, (("sparse-checkout", "set", "--cone", "--sparse-index", "in"),)),
}


@pytest.mark.parametrize(("init", "config", "commands"), KINDS.values(), ids=KINDS.keys())
def test_the_new_index_is_the_old_one_with_the_touched_entries_set(
    tmp_path: Path,
    init: tuple[str, ...],
    config: dict[str, str],
    commands: tuple[tuple[str, ...], ...],
) -> None:
    repo = Repo.create(tmp_path, *init)
    repo.commit(
        {"in/f": "f\n", "in/gone": "x\n", "out/g": "g\n", "other/h": "h\n", "to/file/x": "x\n", "e": "e\n"}
    )
    for key, value in config.items():
        repo.git("config", key, value)
    for command in commands:
        repo.git(*command)
    repo.write("in/staged", "mine\n")
    repo.write("in/intended", "mine\n")
    repo.git("add", "in/staged")
    if not any("--sparse-index" in command for command in commands):
        repo.git("add", "-N", "in/intended")
    before = Path(opened(repo).index_file).read_bytes()
    held = listed(repo)
    names = os.listdir(repo.path / ".git")
    with staging(repo) as change:
        change.change(b"in/f", b"new\n")
        change.change(b"in/gone", None)
        change.change(b"in/run", b"#!\n", "100755")
        change.change(b"out/g", b"out\n")
        change.change(b"to/file/x", None)
        change.change(b"to/file", b"file\n")
        change.change(b"odd\n\xff,name", b"odd\n")
        assert change.differing() == []
        staged = change.made()
        assert Path(opened(repo).index_file).read_bytes() == before
        assert sorted(os.listdir(repo.path / ".git")) == sorted(names)
        assert staged.is_current(change.repository)
        store_objects(change.repository, change.store, change.files)
        change.put(staged)
        assert not staged.is_current(change.repository)
    for name in ("in/gone", "to/file/x"):
        del held[name]
    held |= {
        "in/f": entry(repo, b"new\n"),
        "in/run": entry(repo, b"#!\n").replace("100644", "100755"),
        "out/g": entry(repo, b"out\n"),
        "to/file": entry(repo, b"file\n"),
        "odd\n\udcff,name": entry(repo, b"odd\n"),
    }
    assert listed(repo) == held
    # What was only intended still is: it is not staged as an empty file.
    assert "in/intended" not in repo.ask("diff", "--cached", "--name-only").split("\n")
    repo.git("write-tree")
    repo.git("fsck", "--strict")


def test_a_sparse_index_that_git_would_not_read_back_is_undecided(repo: Repo) -> None:
    """git 2.39 stumbles over what is only intended to be added; a newer one need not."""
    repo.commit(dict.fromkeys(("in/f", "out/g", "other/h", "e"), "x\n"))
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    repo.write("in/intended", "mine\n")
    repo.git("add", "-N", "in/intended")
    held = listed(repo)
    with staging(repo) as change:
        change.change(b"in/f", b"new\n")
        with contextlib.suppress(UndecidedError):
            change.put(change.made())
            held["in/f"] = entry(repo, b"new\n")
    assert listed(repo) == held


def test_the_new_index_is_what_git_apply_would_leave(repo: Repo, tmp_path: Path) -> None:
    repo.commit({"f": "a\nb\n", "gone": "x\n", "same": "s\n"})
    copy = repo.at(tmp_path / "copy")
    shutil.copytree(repo.path, copy.path)
    patch = (
        b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
        b"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        b"diff --git a/d/n b/d/n\nnew file mode 100755\n--- /dev/null\n+++ b/d/n\n@@ -0,0 +1 @@\n+n\n"
    )
    copy.git("update-index", "-q", "--refresh")
    copy.git("apply", "--index", stdin=patch)
    with staging(repo) as change:
        change.change(b"f", b"a\nB\n")
        change.change(b"gone", None)
        change.change(b"d/n", b"n\n", "100755")
        assert tree(repo, change.made(), change.store) == copy.ask("write-tree")


def test_an_index_that_does_not_hold_what_was_judged_is_named(repo: Repo) -> None:
    repo.commit({"f": "f\n", "g": "g\n", "run": "r\n"})
    with staging(repo) as change:
        for name in (b"f", b"g", b"run"):
            change.change(name, b"new\n")
        change.change(b"new", b"new\n")
        change.change(b"folder", b"new\n")
        change.change(b"fine", b"new\n")
        assert change.differing() == []
        repo.stage({"f": "staged\n", "new": "staged\n", "folder/x": "staged\n"})
        repo.git("update-index", "--chmod=+x", "run")
        repo.git("rm", "-q", "--cached", "g")
        assert change.differing() == [b"f", b"g", b"run", b"new", b"folder"]


def test_many_paths_are_looked_up_as_few_are(repo: Repo) -> None:
    repo.commit({f"d{number % 7}/{number}": "x\n" for number in range(300)})
    repo.stage({"d1/1": "staged\n", "new/below": "staged\n"})
    with staging(repo) as change:
        oid = repo.ask("rev-parse", "HEAD:d0/0")
        old = Entry(REGULAR, oid)
        change.files = [
            FileChange(RepoPath(f"d{number % 7}/{number}".encode()), old, None) for number in range(300)
        ]
        change.files.append(FileChange(RepoPath(b"new"), None, old))
        assert change.differing() == [b"d1/1", b"new"]
        change.files = [file for file in change.files if file.path.raw not in {b"d1/1", b"new"}]
        staged = change.made()
        change.put(staged)
    assert sorted(listed(repo)) == ["d1/1", "new/below"]


def test_a_path_in_conflict_is_undecided_and_a_conflict_elsewhere_stays(repo: Repo) -> None:
    repo.commit({"f": "f\n", "g": "g\n"})
    oid = repo.ask("rev-parse", "HEAD:f")
    stages = "".join(f"100644 {oid} {stage}\tf\n" for stage in (1, 2, 3))
    repo.git("update-index", "--index-info", stdin=f"0 {'0' * 40}\tf\n{stages}".encode())
    with staging(repo) as change:
        change.change(b"g", b"new\n")
        staged = change.made()
        change.files.append(FileChange(RepoPath(b"f"), Entry(REGULAR, oid), None))
        with pytest.raises(UndecidedError, match=r"^f .*conflict"):
            change.differing()
        change.put(staged)
    assert repo.ask("ls-files", "--unmerged").count("\n") == 2


@pytest.mark.parametrize("name", [b"f/below", b"d"])
def test_nothing_that_is_staged_makes_room_silently(repo: Repo, name: bytes) -> None:
    repo.commit({"f": "f\n", "d/x": "x\n"})
    before = listed(repo)
    with staging(repo) as change:
        change.files.append(
            FileChange(RepoPath(name), None, Entry(REGULAR, change.store.write("blob", b"new")))
        )
        with pytest.raises(UndecidedError, match="update-index failed"):
            change.made()
    assert listed(repo) == before


def test_where_there_is_no_index_one_is_made(repo: Repo) -> None:
    with staging(repo) as change:
        change.change(b"f", b"new\n")
        assert change.differing() == []
        staged = change.made()
        assert staged.made_from is None
        assert staged.is_current(change.repository)
        change.put(staged)
        store_objects(change.repository, change.store, change.files)
    assert listed(repo) == {"f": entry(repo, b"new\n")}


def test_an_index_left_by_the_trial_of_the_patch_is_not_taken_for_the_users(repo: Repo) -> None:
    with staging(repo) as change:
        change.change(b"f", b"new\n")
        variables = {**change.store.variables, "GIT_INDEX_FILE": change.store.index_file}
        seed = f"{REGULAR} {'1' * 40}\tother\n".encode()
        Repo(repo.path, {**repo.env, **variables}).git("update-index", "--index-info", stdin=seed)
        change.put(change.made())
    assert list(listed(repo)) == ["f"]


def test_a_file_as_new_as_the_index_is_not_taken_for_unchanged(repo: Repo) -> None:
    """The index that replaces it is newer, so git has to look when it writes that one (racy git)."""
    repo.git("config", "core.trustctime", "false")
    repo.write("f", "one\n")
    repo.write("g", "one\n")
    moment = 1_600_000_000
    os.utime(repo.path / "f", (moment, moment))
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "One")
    (repo.path / "f").write_bytes(b"two\n")
    os.utime(repo.path / "f", (moment, moment))
    os.utime(repo.path / ".git/index", (moment, moment))
    with staging(repo) as change:
        change.change(b"g", b"new\n")
        change.put(change.made())
    assert repo.ask("diff-files", "--name-only").split("\n") == ["f", "g"]


def test_objects_are_the_repositorys_own_and_flushed_before_an_index_names_them(repo: Repo) -> None:
    repo.commit({"f": "f\n", "known": "known\n"})
    repo.git("repack", "-q", "-a", "-d")
    done: list[Operation] = []
    with staging(repo) as change:
        change.change(b"f", b"new\n")
        change.change(b"large", bytes(1 << 20) + os.urandom(1 << 16))
        change.change(b"g", b"known\n")
        change.change(b"gone", None)
        change.files.append(FileChange(RepoPath(b"module"), None, Entry("160000", "1" * 40)))
        store_objects(change.repository, change.store, change.files, faults=Faults(record=done.append))
        oids = [file.new.oid for file in change.files[:3] if file.new is not None]
        loose = [oid for oid in oids if (repo.path / ".git/objects" / oid[:2] / oid[2:]).exists()]
    assert [repo.ask("cat-file", "-t", oid) for oid in oids] == ["blob"] * 3
    assert set(oids[:2]) <= set(loose)
    objects = repo.path / ".git/objects"
    folders = {objects, *(objects / oid[:2] for oid in loose)}
    assert {operation.path for operation in done if operation.name == "flush_folder"} == folders
    inodes = {(objects / oid[:2] / oid[2:]).stat().st_ino for oid in loose}
    assert {operation.inode for operation in done if operation.name == "flush"} == inodes
    repo.git("fsck", "--strict")


def test_a_disk_that_refuses_to_flush_is_undecided(repo: Repo) -> None:
    repo.commit({"f": "f\n"})
    with staging(repo) as change:
        change.change(b"f", b"new\n")
        with pytest.raises(UndecidedError, match="flushed"):
            store_objects(change.repository, change.store, change.files, faults=Faults([Fault(1, Kind.EIO)]))


def test_a_change_without_blobs_keeps_nothing(repo: Repo) -> None:
    repo.commit({"f": "f\n"})
    with staging(repo) as change:
        change.change(b"f", None)
        store_objects(change.repository, change.store, change.files)


def test_a_refresh_learns_times_and_stages_nothing(repo: Repo) -> None:
    repo.commit({"f": "f\n", "g": "g\n", "h": "h\n", "a[1]": "x\n"})
    with staging(repo) as change:
        for name in (b"f", b"g", b"a[1]"):
            change.change(name, b"new\n")
        store_objects(change.repository, change.store, change.files)
        change.put(change.made())
    for place, text in (("f", "new\n"), ("g", "theirs\n"), ("a[1]", "new\n")):
        repo.write(place, text)
    held = listed(repo)
    assert refresh_index(opened(repo), [RepoPath(b"f"), RepoPath(b"g"), RepoPath(b"a[1]")])
    assert listed(repo) == held
    # diff-files refreshes nothing: what it names, git would have to read.
    assert repo.ask("diff-files", "--name-only") == "g"
    assert refresh_index(opened(repo), [])


def test_a_refresh_that_cannot_be_made_is_no_fault(repo: Repo) -> None:
    repo.commit({"f": "f\n"})
    (repo.path / ".git/index.lock").touch()
    assert not refresh_index(opened(repo), [RepoPath(b"f")])
