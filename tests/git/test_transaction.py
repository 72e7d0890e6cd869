"""Landing in real repositories, of every shape, and what it refuses."""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.path import RepoPath
from patchgate.git.repository import open_repository
from patchgate.git.transaction import (
    ConcurrentChangeError,
    FileContent,
    Write,
    WriteFailedError,
    pending_transactions,
    recover,
    write_files,
)
from patchgate.storage import open_folder as renaming
from patchgate.storage.lock import acquire
from tests.amount import IS_LONG, sample
from tests.faults import Fault, Faults, Kind
from tests.git.test_transaction_concurrent_edits import killed_when_all_is_in_place
from tests.git.transaction_world import (
    FIVE,
    IN_MEMORY,
    KILLED,
    ONE,
    TWENTY,
    Case,
    expected,
    in_child,
    steps_of,
    text,
    world,
)
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

WRITE = Write(RepoPath(b"a"), text("old\n"), text("new\n"))


def repository(folder: Path, *arguments: str) -> Repo:
    repo = Repo.create(folder, *arguments)
    (repo.path / "a").write_bytes(b"old\n")
    repo.git("add", "-A")
    repo.git("commit", "-qm", "first")
    return repo


def landed(repo: Repo, *writes: Write, index: bytes | None = None) -> None:
    opened = open_repository(repo.env, str(repo.path))
    write_files(opened, writes or [WRITE], note={}, index=index).finish()
    assert pending_transactions(opened) == []
    assert [path for path in repo.path.rglob(".patchgate-*") if ".git" not in path.parts] == []
    assert list(Path(opened.git_dir).glob("*.lock")) == []


def test_git_sees_what_landed_and_its_repository_is_whole(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    made = Write(RepoPath("größe/neu".encode()), None, text("x", "100755"))
    landed(repo, WRITE, made, Write(RepoPath(b"\xff"), None, FileContent("120000", b"\xfe")))
    assert repo.git("status", "--porcelain", "-z", "-uall") == b" M a\0?? gr\xc3\xb6\xc3\x9fe/neu\0?? \xff\0"
    repo.git("fsck", "--strict")
    repo.git("commit", "-qam", "goes on")


def test_an_index_is_replaced_with_the_files(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    other = tmp_path / "index"
    (repo.path / "a").write_bytes(b"new\n")
    repo.git("add", "a", GIT_INDEX_FILE=str(other))
    (repo.path / "a").write_bytes(b"old\n")
    landed(repo, index=other.read_bytes())
    assert repo.git("diff", "--cached", "--name-only") == b"a\n"
    assert repo.git("diff", "--name-only") == b"", "the new index and the new file agree"


def test_a_linked_worktree_and_a_separate_git_directory(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    linked = repo.at(tmp_path / "linked")
    landed(linked)
    assert (linked.path / "a").read_bytes() == b"new\n"
    assert (repo.path / "a").read_bytes() == b"old\n"
    assert linked.ask("status", "--porcelain") == "M a"

    apart = repository(tmp_path / "other", f"--separate-git-dir={tmp_path / 'apart.git'}")
    landed(apart)
    assert apart.ask("status", "--porcelain") == "M a"


def test_a_kill_in_a_linked_worktree_is_recovered_from_the_main_one(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    repo.git("worktree", "add", "-q", "../linked")
    opened = open_repository(repo.env, str(tmp_path / "linked"))
    code = in_child(
        lambda: write_files(opened, [WRITE], note={"n": 1}, faults=Faults([Fault(25, Kind.KILL)]))
    )
    assert code == KILLED
    (found,) = pending_transactions(open_repository(repo.env, str(repo.path)))
    assert (found.note, found.state, found.is_running) == ({"n": 1}, "interrupted", False)
    assert (Path(opened.git_dir) / "index.lock").exists()
    (done,) = recover(open_repository(repo.env, str(repo.path)))
    done.finish()
    assert (tmp_path / "linked/a").read_bytes() == b"old\n"
    assert not (Path(opened.git_dir) / "index.lock").exists()


@pytest.mark.skipif(not os.path.isdir(IN_MEMORY), reason="there is no second file system")
def test_an_index_on_another_file_system_is_locked_by_name_and_released(tmp_path: Path) -> None:
    with world(ONE) as other:
        repo = repository(tmp_path)
        index = other.root / "their-index"
        index.write_bytes(b"x")
        opened = open_repository({**repo.env, "GIT_INDEX_FILE": str(index)}, str(repo.path))
        steps = Faults()
        write_files(opened, [WRITE], note={}, index=b"y", faults=steps).finish()
        assert (index.read_bytes(), sorted(path.name for path in other.root.glob("*index*"))) == (
            b"y",
            ["their-index"],
        )
        back = [Write(WRITE.path, WRITE.new, WRITE.old)]
        for step in range(1, steps.steps + 1):
            in_child(
                lambda step=step: write_files(
                    opened, back, note={}, index=b"x", faults=Faults([Fault(step, Kind.KILL)])
                )  # type: ignore[misc]
            )
            for each in recover(opened):
                each.finish()
            new = index.read_bytes() == b"x"
            assert (repo.path / "a").read_bytes() == (b"old\n" if new else b"new\n")
            assert not (other.root / "their-index.lock").exists()
            assert [path.name for path in other.root.iterdir() if path.name.startswith(".patchgate")] == []
            if new:
                break


def _unsupported(*_arguments: object) -> None:
    raise renaming.UnsupportedError(errno.EINVAL, os.strerror(errno.EINVAL))


def lack(monkeypatch: pytest.MonkeyPatch, without: str) -> None:
    """Be on a file system that lacks the exchange of names, and perhaps more."""
    monkeypatch.setattr("patchgate.storage.open_folder.exchange", _unsupported)
    if without != "exchange":
        monkeypatch.setattr("patchgate.storage.open_folder.rename_exclusively", _unsupported)
    if without == "links too":
        monkeypatch.setattr(os, "link", _no_link)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("case", [FIVE, TWENTY], ids=lambda case: case.name)
@pytest.mark.parametrize("without", ["exchange", "both", "links too"])
def test_a_file_system_that_cannot_exchange_names_gets_the_same_by_more_steps(
    monkeypatch: pytest.MonkeyPatch, without: str, case: Case
) -> None:
    lack(monkeypatch, without)
    new = expected(case)
    for step in sample(steps_of(case), 8, f"{case.name} {without}"):
        with world(case) as here:
            in_child(lambda here=here, step=step: here.write(Faults([Fault(step, Kind.KILL)])))  # type: ignore[misc]
            outcomes = here.recover()
            here.assert_settled(
                (here.old, new) if not outcomes else new if "landed" in outcomes else here.old
            )
    with world(case) as here:
        here.write().finish()
        here.assert_settled(new)


@pytest.mark.parametrize("kind", [Kind.EIO, Kind.ENOSPC])
@pytest.mark.parametrize("without", ["exchange", "both", "links too"])
def test_an_error_between_those_steps_leaves_everything_as_it_was(
    monkeypatch: pytest.MonkeyPatch, without: str, kind: Kind
) -> None:
    lack(monkeypatch, without)
    new, failed = expected(FIVE), 0
    for step in sample(steps_of(FIVE), 20, without):
        with world(FIVE) as here:
            try:
                here.write(Faults([Fault(step, kind)])).finish()
            except WriteFailedError:
                failed += 1
                here.assert_settled(here.old)
            else:
                here.recover()
                here.assert_settled(new)
    assert failed > (len(FIVE.writes) if IS_LONG else 4)


def test_a_file_that_a_person_made_like_the_new_one_before_anything_was_put_in_stays() -> None:
    """Killed while it waited for the lock: nothing was written, so nothing can be taken back."""
    made = Case("made", {"a": text("old\n")}, {"a": text("new\n"), "b": text("made\n")})
    with world(made) as here:
        held = here.git / "index.lock"
        held.write_bytes(b"git's own")

        class Killed(Faults):
            def reach(self) -> bool:
                if list(here.git.glob("patchgate/transactions/*/journal")):
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().reach()

        assert in_child(lambda: here.write(Killed(), patience=60)) == -signal.SIGKILL
        held.unlink()
        (here.root / "a").write_bytes(b"new\n")
        (here.root / "b").write_bytes(b"made\n")
        assert here.recover() == ["undone"]
        assert (here.root / "a").read_bytes() == b"new\n"
        assert (here.root / "b").read_bytes() == b"made\n"


def _no_link(*_arguments: object, **_options: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def test_permission_bits_stay_and_the_exec_bit_follows_who_may_read() -> None:
    with world(ONE) as here:
        path = here.root / "a"
        path.chmod(0o640)
        here.write().finish()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        write = Write(RepoPath(b"a"), text("new\n"), text("new\n", "100755"))
        write_files(here.repository, [write], note={}).finish()
        assert stat.S_IMODE(path.stat().st_mode) == 0o750
        made = Write(RepoPath(b"made"), None, text("new\n", "100755"))
        os.umask(0o077)
        write_files(here.repository, [made], note={}).finish()
        assert stat.S_IMODE((here.root / "made").stat().st_mode) == 0o700


def test_a_folder_where_the_user_stands_is_not_removed(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    for name in ("stays", "goes"):
        (repo.path / name).mkdir()
        (repo.path / name / "file").write_bytes(b"x")
    opened = open_repository(repo.env, str(repo.path / "stays"))
    gone = [Write(RepoPath(f"{name}/file".encode()), text("x"), None) for name in ("stays", "goes")]
    write_files(opened, gone, note={}).finish()
    assert sorted(os.listdir(repo.path)) == [".git", "a", "stays"]


def _symlinked_parent(root: Path) -> None:
    (root / "folder").symlink_to("elsewhere")


def _file_as_parent(root: Path) -> None:
    (root / "folder").write_bytes(b"")


def _submodule(root: Path) -> None:
    (root / "folder").mkdir()
    (root / "folder/.git").write_bytes(b"gitdir: x")


def _something_there(root: Path) -> None:
    (root / "folder").mkdir()
    (root / "folder/made").write_bytes(b"an edit")


def _folder_there(root: Path) -> None:
    (root / "folder/made/untracked").mkdir(parents=True)
    (root / "folder/made/untracked/file").write_bytes(b"an edit")


def _pipe_there(root: Path) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "folder/made")


@pytest.mark.parametrize(
    "prepare",
    [_symlinked_parent, _file_as_parent, _submodule, _something_there, _folder_there, _pipe_there],
)
def test_nothing_is_written_through_or_over_what_was_not_judged(prepare: Callable[[Path], None]) -> None:
    with world(ONE) as here:
        (here.root / "elsewhere").mkdir()
        prepare(here.root)
        found = here.state() if prepare is not _pipe_there else {}
        writes = [WRITE, Write(RepoPath(b"folder/made"), None, text("new"))]
        with pytest.raises(ConcurrentChangeError, match="folder/made") as caught:
            write_files(here.repository, writes, note={})
        assert [path.raw for path in caught.value.paths] == [b"folder/made"]
        assert here.litter() == []
        if found:
            assert here.state() == found


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(b"other"),
        lambda path: path.chmod(0o755),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.symlink_to("b")),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_a_path_that_is_not_as_it_was_judged_is_named_and_nothing_is_written(
    change: Callable[[Path], object],
) -> None:
    with world(FIVE) as here:
        change(here.root / "a")
        found = here.state()
        with pytest.raises(ConcurrentChangeError) as caught:
            here.write()
        assert [path.raw for path in caught.value.paths] == [b"a"]
        assert here.state() == found
        assert here.litter() == []


@pytest.mark.parametrize("raw", [b"../out", b"/etc/x", b".git/hooks/x", b"a/.GIT/config", b"", b"a//b"])
def test_a_path_that_leads_elsewhere_is_refused_whoever_judged_it(raw: bytes) -> None:
    with world(ONE) as here:
        with pytest.raises(UndecidedError):
            write_files(here.repository, [Write(RepoPath(raw), None, text("x"))], note={})
        assert here.state() == here.old


def test_what_the_second_look_raises_passes_through_and_nothing_was_written() -> None:
    with world(FIVE) as here:

        def look() -> None:
            assert (here.git / "index.lock").exists()
            assert here.state() == here.old
            raise KeyError("the policy changed")

        with pytest.raises(KeyError, match="the policy changed"):
            here.write(look=look)
        here.assert_settled(here.old)


def test_what_changes_during_the_second_look_is_found_before_anything_is_written() -> None:
    with world(FIVE) as here:
        made: list[Path | None] = []
        faults = Faults(record=lambda each: made.append(each.path) if each.name == "open_exclusive" else None)

        def look() -> None:
            (here.root / "a").write_bytes(b"an edit")

        with pytest.raises(ConcurrentChangeError):
            here.write(faults, look=look)
        assert (here.root / "a").read_bytes() == b"an edit"
        assert [path for path in made if path is None or here.git not in path.parents] == []


def test_git_is_shut_out_while_we_write(tmp_path: Path) -> None:
    repo = repository(tmp_path)
    opened = open_repository(repo.env, str(repo.path))
    said: list[bytes] = []
    write_files(opened, [WRITE], note={}, look=lambda: said.append(repo.try_git("add", "a").stderr)).finish()
    assert b"index.lock': File exists" in said[0]
    repo.git("add", "a")


def test_a_lock_of_gits_that_is_held_is_named_and_left_alone() -> None:
    with world(ONE) as here:
        held = here.git / "index.lock"
        held.write_bytes(b"git's own")
        with pytest.raises(UndecidedError, match=r"index\.lock exists") as caught:
            here.write()
        assert caught.value.hint
        assert held.read_bytes() == b"git's own"
        assert here.state() == here.old
        held.unlink()
        here.assert_settled(here.old)


def test_a_lock_of_gits_that_is_taken_after_a_kill_is_not_removed_by_recovering() -> None:
    with world(ONE) as here:
        killed_when_all_is_in_place(here)
        held = here.git / "index.lock"
        held.unlink()
        held.write_bytes(b"git's own")
        with pytest.raises(UndecidedError, match=r"index\.lock exists"):
            recover(here.repository, patience_seconds=0)
        assert held.read_bytes() == b"git's own"
        held.unlink()
        assert here.recover() == ["undone"]
        here.assert_settled(here.old)


def test_our_own_lock_that_is_held_is_undecided() -> None:
    with world(ONE) as here:
        (here.git / "patchgate").mkdir()
        with acquire(here.git / "patchgate/apply.lock", timeout_seconds=0):
            with pytest.raises(UndecidedError, match="this process"):
                here.write()
            (here.git / "patchgate/transactions/left").mkdir(parents=True)
            with pytest.raises(UndecidedError, match="held"):
                recover(here.repository, patience_seconds=0)
        here.recover()
        here.assert_settled(here.old)


def test_nothing_is_written_on_top_of_an_interrupted_transaction() -> None:
    with world(ONE) as here:
        killed_when_all_is_in_place(here)
        with pytest.raises(UndecidedError, match="interrupted") as caught:
            here.write()
        assert "git patchgate recover" in (caught.value.hint or "")
        here.recover()
        here.write().finish()
        here.assert_settled(expected(ONE))


def test_a_damaged_journal_is_told_and_nothing_is_guessed() -> None:
    with world(ONE) as here:
        killed_when_all_is_in_place(here)
        (journal,) = here.git.glob("patchgate/transactions/*/journal")
        whole = journal.read_bytes()
        found = here.state()
        for damaged in (whole[:-2], whole.replace(b'"a"', b'"b"'), b"", whole + whole, b"{}\n"):
            journal.write_bytes(damaged)
            with pytest.raises(UndecidedError, match="is damaged"):
                here.recover()
            assert [each.state for each in pending_transactions(here.repository)] == ["interrupted"]
            assert here.state() == found
        journal.write_bytes(whole)
        here.recover()
        here.assert_settled(here.old)


def test_a_record_that_its_own_process_will_still_finish_is_left_to_it() -> None:
    with world(ONE) as here:
        written = here.write()
        assert in_child(lambda: here.recover() == [] or os._exit(2)) == 0
        assert [(each.state, each.is_running) for each in pending_transactions(here.repository)] == [
            ("landed", True)
        ]
        written.finish()
        here.assert_settled(expected(ONE))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_waits_until_the_patch_has_landed(number: signal.Signals) -> None:
    with world(FIVE) as here:
        heard: list[int] = []
        before = signal.signal(number, lambda *_: heard.append(len(here.litter())))
        try:
            here.write(look=lambda: signal.raise_signal(number)).finish()
        finally:
            signal.signal(number, before)
        assert len(heard) == 1
        here.assert_settled(expected(FIVE))


def test_a_signal_ends_the_wait_for_gits_lock() -> None:
    # A job in the background has SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with world(ONE) as here:
        held = here.git / "index.lock"
        held.write_bytes(b"git's own")

        class Interrupting(Faults):
            def reach(self) -> bool:
                if list(here.git.glob("patchgate/transactions/*/journal")):
                    signal.raise_signal(signal.SIGINT)
                return super().reach()

        try:
            with pytest.raises(KeyboardInterrupt):
                here.write(Interrupting(), patience=60)
        finally:
            signal.signal(signal.SIGINT, before)
        held.unlink()
        here.assert_settled(here.old)


def test_a_bare_repository_has_nothing_to_land_in(tmp_path: Path) -> None:
    bare = Repo.create(tmp_path, "--bare")
    with pytest.raises(UsageError):
        write_files(open_repository(bare.env, str(bare.path)), [WRITE], note={})


def test_one_file_costs_at_most_ten_flushes() -> None:
    with world(ONE) as here:
        here.write().finish()
        flushes: list[str] = []
        faults = Faults(
            record=lambda each: flushes.append(each.name) if each.name.startswith("flush") else None
        )
        write_files(
            here.repository, [Write(WRITE.path, WRITE.new, WRITE.old)], note={}, faults=faults
        ).finish()
        assert len(flushes) <= 10
