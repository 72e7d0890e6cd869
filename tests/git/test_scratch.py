"""Scratch trees: what a command finds there, what it cannot reach, what is left of it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from patchgate.git.model import REGULAR, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore, tree_with_change
from patchgate.git.repository import open_repository
from patchgate.git.scratch import Scratch, kept_folders, separate_tree, sweep, touched_files, whole_tree
from patchgate.git.scratch.checkout import let_time_pass
from patchgate.git.scratch.tree_cache import MOST_TREES
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

Snapshot = dict[str, bytes]


@dataclass
class Trial:
    """A repository, its cache folder, and how a change is tried in it."""

    repo: Repo
    cache: Path

    @contextmanager
    def tree(
        self, files: Mapping[str, bytes | None] | None = None, *, keep: bool = False, patience: float = 0
    ) -> Iterator[Scratch]:
        """Have the whole tree with these files changed (None: removed)."""
        repository = open_repository(self.repo.env, str(self.repo.path))
        with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
            tree = self._tree(objects, store, files or {})
            head = objects.header("HEAD^{commit}")
            commit = head.oid if head else None
            with whole_tree(
                repository,
                store,
                tree,
                cache=str(self.cache),
                commit=commit,
                keep=keep,
                patience_seconds=patience,
            ) as scratch:
                yield scratch

    @contextmanager
    def touched(self, files: Mapping[str, bytes | None], *also: str, keep: bool = False) -> Iterator[Scratch]:
        """Have the touched files alone."""
        repository = open_repository(self.repo.env, str(self.repo.path))
        with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
            tree = self._tree(objects, store, files)
            paths = [RepoPath(os.fsencode(name)) for name in (*files, *also)]
            with touched_files(
                repository, objects, store, tree, paths, cache=str(self.cache), keep=keep
            ) as scratch:
                yield scratch

    @contextmanager
    def separate(self, files: Mapping[str, bytes | None]) -> Iterator[Scratch]:
        """Have a whole tree in a fresh folder."""
        repository = open_repository(self.repo.env, str(self.repo.path))
        with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
            tree, commit = self._tree(objects, store, files), self.repo.head()
            with separate_tree(repository, store, tree, cache=str(self.cache), commit=commit) as scratch:
                yield scratch

    def _tree(self, objects: Objects, store: PrivateStore, files: Mapping[str, bytes | None]) -> str:
        changes = []
        for name, content in files.items():
            new = None
            if content is not None:
                new = Entry(REGULAR, store.write("blob", content))
            changes.append(FileChange(RepoPath(os.fsencode(name)), None, new))
        head = objects.header("HEAD^{tree}")
        base = head.oid if head else objects.empty_tree
        return tree_with_change(objects.repository, objects, store, base, changes)

    def sweep(self) -> list[str]:
        return sweep(open_repository(self.repo.env, str(self.repo.path)), str(self.cache))

    def run(self, scratch: Scratch, command: str) -> str:
        """Run a command as the policy's commands are run."""
        done = subprocess.run(
            ["sh", "-ec", command], cwd=scratch.path, env=self.repo.env, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def homes(self) -> list[Path]:
        return list((self.cache / "trees").iterdir())


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(Repo.create(tmp_path), tmp_path / "cache")


def contents(root: str | Path) -> Snapshot:
    """Everything below a folder but `.git`: kind, exec bit and bytes of each file, every folder."""
    found: Snapshot = {}
    for above, folders, files in os.walk(os.fsencode(root)):
        if above == os.fsencode(root) and b".git" in folders:
            folders.remove(b".git")
        for name in (*folders, *files):
            path = os.path.join(above, name)
            key = os.fsdecode(os.path.relpath(path, os.fsencode(root)))
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[key] = b"link " + os.readlink(path)
            elif stat.S_ISFIFO(mode):
                found[key] = b"pipe"
            elif stat.S_ISDIR(mode):
                found[key] = b"folder %o" % stat.S_IMODE(mode)
            else:
                with open(path, "rb") as file:
                    found[key] = b"%o " % (mode & 0o100) + file.read()
    return found


def fresh_checkout(trial: Trial, scratch: Scratch, place: Path) -> Snapshot:
    """What git itself writes for the tried tree, in a clone with the same config and attributes."""
    tree = trial.run(scratch, "git write-tree").strip()
    subprocess.run(["cp", "-a", trial.repo.path, place], check=True)
    copy = trial.repo.at(place)
    for each in place.iterdir():
        if each.name != ".git":
            subprocess.run(["rm", "-rf", each], check=True)
    (place / ".git" / "index").unlink(missing_ok=True)
    objects = f"{scratch.path}/.git/objects"
    copy.git("read-tree", "--reset", "-u", tree, GIT_ALTERNATE_OBJECT_DIRECTORIES=objects)
    return contents(place)


def everything(repo: Repo) -> Snapshot:
    """The whole original, `.git` with refs, stash, config and index included, but for our own records."""
    found = {
        os.path.relpath(os.path.join(above, name), repo.path): hashlib.sha256(
            Path(above, name).read_bytes()
        ).digest()
        for above, _, files in os.walk(repo.path)
        for name in files
    }
    return {name: digest for name, digest in found.items() if not name.startswith(".git/patchgate/")}


def test_the_tree_is_what_a_checkout_writes_with_uncommitted_work_and_without_untracked_files(
    trial: Trial, tmp_path: Path
) -> None:
    repo = trial.repo
    repo.commit({"a": "a\n", "d/b": "b\n", "staged": "old\n", "gone": "x\n", "same": "same\n"})
    repo.write("run.sh", "#!/bin/sh\n", executable=True)
    repo.link("link", "a")
    repo.write(b"caf\xe9\n", "bytes\n")
    repo.write("Case", "one\n")
    repo.write("case", "two\n")
    repo.gitlink("module")
    repo.git("add", "run.sh", "link", "case", "Case", b"caf\xe9\n")
    repo.git("commit", "-qm", "more")
    repo.write("staged", "new\n")
    repo.git("add", "staged")
    repo.write("a", "unstaged\n")
    (repo.path / "gone").unlink()
    repo.write("intended", "intended\n")
    repo.git("add", "-N", "intended")
    repo.write("untracked", "no\n")
    with trial.tree({"d/b": b"patched\n", "d/e/f": b"added\n"}) as scratch:
        found = contents(scratch.path)
        assert found == fresh_checkout(trial, scratch, tmp_path / "copy")
        assert found["a"] == b"0 unstaged\n"
        assert found["staged"] == b"0 new\n"
        assert found["intended"] == b"0 intended\n"
        assert found["d/b"] == b"0 patched\n"
        assert found["d/e/f"] == b"0 added\n"
        assert found["run.sh"].startswith(b"100 ")
        assert found["link"] == b"link a"
        assert found["caf\udce9\n"] == b"0 bytes\n"
        assert {"Case", "case", "module"} <= set(found)
        assert {"gone", "untracked"}.isdisjoint(found)


def test_filters_and_line_ends_are_those_of_a_checkout_when_it_is_made_and_when_it_is_moved(
    trial: Trial, tmp_path: Path
) -> None:
    repo = trial.repo
    repo.git("config", "filter.shout.smudge", "tr a-z A-Z")
    repo.git("config", "filter.shout.clean", "tr A-Z a-z")
    repo.commit({".gitattributes": "*.txt text eol=crlf\n*.loud filter=shout\n", "n.txt": "a\nb\n"})
    repo.commit({"v.loud": "low\n", "x": "x\n"})
    for number, files in enumerate(({}, {"n.txt": b"c\n", "v.loud": b"lower\n"}, {"x": b"y\n"})):
        with trial.tree(files) as scratch:
            assert contents(scratch.path) == fresh_checkout(trial, scratch, tmp_path / f"copy{number}")
    assert contents(tmp_path / "copy1")["n.txt"] == b"0 c\r\n"
    assert contents(tmp_path / "copy1")["v.loud"] == b"0 LOWER\n"


def test_attributes_that_a_patch_changes_do_not_stay_in_files_of_the_next_one(
    trial: Trial, tmp_path: Path
) -> None:
    trial.repo.commit({"n.txt": "a\n", "d/x": "x\n"})
    with trial.tree({".gitattributes": b"*.txt text eol=crlf\n"}) as scratch:
        assert contents(scratch.path)["n.txt"] == b"0 a\r\n"
        trial.run(scratch, "echo x >> n.txt")
    with trial.tree({"d/x": b"y\n"}) as scratch:
        assert contents(scratch.path) == fresh_checkout(trial, scratch, tmp_path / "copy")
        assert contents(scratch.path)["n.txt"] == b"0 a\n"


def test_a_command_that_uses_git_reaches_nothing_of_the_original(trial: Trial) -> None:
    repo = trial.repo
    repo.commit({"a": "a\n", "b": "b\n"})
    repo.git("branch", "other")
    repo.git("tag", "v1")
    repo.write("a", "stashed\n")
    repo.git("stash")
    repo.write("b", "unstaged\n")
    before = everything(repo)
    with trial.tree({"a": b"patched\n"}) as scratch:
        assert trial.run(scratch, "git describe --tags; git diff --cached --name-only").split() == [
            "v1",
            "a",
            "b",
        ]
        assert trial.run(scratch, "git status --porcelain").split() == ["M", "a", "M", "b"]
        trial.run(
            scratch,
            "git tag evil; git branch -D other; git config user.name Evil; echo z > a; git stash;"
            "git commit -qam done --allow-empty; git update-ref refs/heads/main HEAD; git worktree add ../w;"
            "git gc -q --prune=now; git checkout -q -b new; git hook run nothing --ignore-missing",
        )
        assert everything(repo) == before
    assert everything(repo) == before
    assert repo.ask("worktree", "list").count("\n") == 0
    assert [name.name for name in next(trial.homes()[0].glob("place-*")).iterdir()] == ["tree"]


def test_nothing_that_a_command_did_is_there_for_the_next_one(trial: Trial) -> None:
    trial.repo.commit({"src/a.py": "a\n", "src/deep/b.py": "b\n", "top": "t\n", ".gitignore": "*.pyc\n"})
    trial.repo.gitlink("module")
    trial.repo.git("commit", "-qm", "module")
    trial.repo.path.joinpath("module").mkdir()
    with trial.tree({"top": b"u\n"}) as scratch:
        first = contents(scratch.path)
        place = scratch.path
        trial.run(
            scratch,
            "echo x > new; mkdir -p empty deep/er; echo x > src/a.pyc; git init -q src; echo x > module/in;"
            "rm -rf src/deep; ln -s /tmp src/deep; chmod 700 src; rm top; mkdir top; echo x > top/in;"
            "echo '* text eol=crlf' > src/.gitattributes; echo x >> src/a.py; chmod 500 empty deep;"
            "mkfifo pipe",
        )
    with trial.tree({"top": b"u\n"}) as scratch:
        assert contents(scratch.path) == first
        assert scratch.path == place, "it was cleaned, not made anew"
        assert scratch.changed() == []


def test_what_a_command_left_running_wrote_later_is_not_there_for_the_next_one(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n", "d/b": "b\n"})
    with trial.tree() as scratch:
        first = contents(scratch.path)
    Path(scratch.path, "d", "late").write_text("late\n")
    with trial.tree() as scratch:
        assert contents(scratch.path) == first


def test_a_change_of_what_conversions_depend_on_makes_the_tree_anew(trial: Trial, tmp_path: Path) -> None:
    trial.repo.commit({"a.txt": "a\n"})
    with trial.tree():
        pass
    trial.repo.git("config", "core.autocrlf", "true")
    with trial.tree() as scratch:
        assert contents(scratch.path) == fresh_checkout(trial, scratch, tmp_path / "copy")
        assert contents(scratch.path) == {"a.txt": b"0 a\r\n"}
    (trial.repo.path / ".git/info").mkdir(exist_ok=True)
    (trial.repo.path / ".git/info/attributes").write_text("*.txt -text\n")
    with trial.tree() as scratch:
        assert contents(scratch.path) == {"a.txt": b"0 a\n"}


def test_time_passes_for_the_file_system(tmp_path: Path) -> None:
    for _ in range(5):
        (tmp_path / "before").touch()
        let_time_pass(str(tmp_path / "probe"))
        (tmp_path / "after").touch()
        assert (tmp_path / "before").stat().st_mtime_ns < (tmp_path / "after").stat().st_mtime_ns


def test_a_tree_whose_rights_were_taken_away_is_cleaned_all_the_same(trial: Trial) -> None:
    trial.repo.commit({"d/e/f": "f\n", "g": "g\n"})
    with trial.tree() as scratch:
        first = contents(scratch.path)
        trial.run(scratch, "mkdir -p d/x/y; echo x > d/x/y/z; chmod -R a-w .; chmod 000 d/e d/x")
    with trial.tree() as scratch:
        assert contents(scratch.path) == first


@pytest.mark.parametrize(
    "damage",
    [
        "rm -rf .git",
        "rm -rf ../tree",
        "rm -rf ../tree; ln -s / ../tree",
        "echo x > ../../index",
        "echo x >> ../../folders",
        "rm -rf ../../place-*",
        "git update-index --assume-unchanged a; echo evil > a; cp .git/index ../../index",
        "git config core.hooksPath /x; mkdir -p .git/hooks .git/info; echo '* -text' > .git/info/attributes",
        "rm .git/objects/info/alternates .git/HEAD",
    ],
)
def test_a_damaged_tree_is_made_good_or_made_anew(trial: Trial, damage: str) -> None:
    trial.repo.commit({"a": "a\n", "d/b": "b\n"})
    with trial.tree() as scratch:
        first = contents(scratch.path)
        trial.run(scratch, f"cd /; cd '{scratch.path}'; {damage}")
    with trial.tree() as scratch:
        assert contents(scratch.path) == first
        assert trial.run(scratch, "git status --porcelain; git config core.hooksPath || true") == ""
        assert not Path(scratch.path, ".git/info/attributes").exists()
    assert len([each for each in trial.homes()[0].iterdir() if each.name.startswith("place-")]) == 1


def test_a_tree_that_a_command_replaced_by_a_link_is_not_written_through(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n"})
    other = trial.cache.parent / "other"
    other.mkdir()
    (other / "precious").write_text("mine\n")
    with trial.tree() as scratch:
        trial.run(scratch, f"rm -rf ../tree; ln -s '{other}' ../tree")
        with pytest.raises(UndecidedError, match="replaced"):
            scratch.changed()
        with pytest.raises(UndecidedError, match="replaced"):
            scratch.restore_files()
    assert contents(other) == {"precious": b"0 mine\n"}


def test_what_a_command_changes_is_told_and_put_back_and_what_it_only_touches_is_not_told(
    trial: Trial,
) -> None:
    trial.repo.commit(dict.fromkeys(("a", "b", "c/d", "e", "f", "g"), "text\n"))
    with trial.tree() as scratch:
        first = contents(scratch.path)
        assert scratch.changed() == []
        trial.run(scratch, "touch a; echo text > b; echo x >> c/d; rm e; chmod +x f; echo new > new")
        assert [path.raw for path in scratch.changed()] == [b"c/d", b"e", b"f"]
        scratch.restore_files()
        assert scratch.changed() == []
        assert {**first, "new": b"0 new\n"} == contents(scratch.path)


def test_config_that_hides_changes_from_git_does_not_hide_them_here(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n", "b": "b\n"})
    trial.repo.git("config", "core.fileMode", "false")
    trial.repo.git("config", "core.ignoreStat", "true")
    with trial.tree({"b": b"c\n"}) as scratch:
        trial.run(scratch, "chmod +x a; echo d > b")
        assert [path.raw for path in scratch.changed()] == [b"a", b"b"]
    with trial.tree({"b": b"c\n"}) as scratch:
        assert contents(scratch.path) == {"a": b"0 a\n", "b": b"0 c\n"}


def test_planted_attributes_have_no_say_in_what_is_put_back(trial: Trial) -> None:
    trial.repo.commit({"a.txt": "text\n", "d/b.txt": "text\n", "e/c.txt": "text\n"})
    elsewhere = trial.cache.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".gitattributes").write_text("* text eol=crlf\n")
    with trial.tree() as scratch:
        first = contents(scratch.path)
        trial.run(
            scratch,
            "for f in a.txt d/b.txt; do echo x > $f; done; "
            f"cp '{elsewhere}/.gitattributes' .; cp .gitattributes d; rm -rf e; ln -s '{elsewhere}' e;"
            "echo made > d/made; chmod a-w d",
        )
        assert len(scratch.changed()) == 3
        scratch.restore_files()
        assert contents(scratch.path) == {**first, "d/made": b"0 made\n"}
        assert scratch.changed() == []
    with trial.tree() as scratch:
        assert contents(scratch.path) == first


def test_a_change_of_the_same_length_at_once_after_the_tree_is_handed_out_is_seen(trial: Trial) -> None:
    trial.repo.commit({"a": "one\n"})
    for _ in range(5):
        with trial.tree() as scratch:
            Path(scratch.path, "a").write_text("two\n")
            assert [path.raw for path in scratch.changed()] == [b"a"]
        with trial.tree() as scratch:
            assert Path(scratch.path, "a").read_text() == "one\n"


def test_the_tree_is_moved_and_not_made_anew_and_nothing_grows(trial: Trial) -> None:
    repo = trial.repo
    repo.commit({f"d{number % 7}/f{number}": f"{number}\n" for number in range(40)})
    with trial.tree() as scratch:
        inode = os.lstat(os.path.join(scratch.path, "d1/f1")).st_ino
    objects = repo.git("count-objects", "-v")

    def things() -> int:
        count = sum(len(folders) + len(files) for _, folders, files in os.walk(trial.cache))
        return count + sum(len(files) for _, _, files in os.walk(repo.path / ".git/patchgate"))

    before = things()
    for number in range(30):
        with trial.tree({"d0/f0": b"%d\n" % number, "d0/new": b"%d\n" % number}) as scratch:
            assert Path(scratch.path, "d0/f0").read_bytes() == b"%d\n" % number
            trial.run(scratch, "echo x > left; git add -A; git commit -qm x")
        assert os.lstat(os.path.join(scratch.path, "d1/f1")).st_ino == inode
    with trial.tree():
        pass
    assert things() == before
    assert repo.git("count-objects", "-v") == objects


def test_one_user_too_many_waits_for_a_bounded_time_and_is_told_who_holds_it(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n"})
    with ExitStack() as stack:
        places = {stack.enter_context(trial.tree()).path for _ in range(MOST_TREES)}
        assert len(places) == MOST_TREES
        with pytest.raises(UndecidedError, match="held by"), trial.tree(patience=0.05):
            pass


def test_two_at_once_each_find_their_own_tree(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n", "b": "b\n"})
    with trial.tree():
        pass
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _OTHER, str(trial.repo.path), str(trial.cache), name], env=_env(trial)
        )
        for name in ("one", "two", "three")
    ]
    assert [child.wait() for child in children] == [0, 0, 0]


def test_separate_trees_are_in_use_at_once_and_leave_nothing(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n", "sub/b": "b\n"})
    before = everything(trial.repo)
    with trial.tree(), trial.separate({"a": b"one\n"}) as one, trial.separate({"c": b"two\n"}) as two:
        assert trial.run(one, "cat a sub/b; git status --porcelain") == "one\nb\nM  a\n"
        assert trial.run(two, "cat a sub/b c; git status --porcelain") == "a\nb\ntwo\nA  c\n"
        trial.run(one, "echo more > a; git add -A; git commit -qm more; git gc -q --prune=now")
        assert [path.raw for path in one.changed()] == [b"a"]
        one.restore_files()
        assert (Path(one.path) / "a").read_text() == "one\n"
        assert trial.run(two, "cat a") == "a\n"
    assert everything(trial.repo) == before
    assert list((trial.cache / "touched").iterdir()) == []


_OTHER = """
import os, sys
from pathlib import Path
from tests.git.test_scratch import Trial
from tests.world import Repo
place, cache, name = sys.argv[1:4]
trial = Trial(Repo(Path(place), dict(os.environ)), Path(cache))
for number in range(4):
    with trial.tree({"a": f"{name}{number}\\n".encode()}, patience=120) as scratch:
        for _ in range(20):
            assert Path(scratch.path, "a").read_text() == f"{name}{number}\\n"
        Path(scratch.path, "left").write_text(name)
        assert not Path(scratch.path, "other").exists()
"""

_KILLED = """
import os, sys
from pathlib import Path
from tests.git.test_scratch import Trial
from tests.world import Repo
place, cache, how = sys.argv[1:4]
trial = Trial(Repo(Path(place), dict(os.environ)), Path(cache))
files = {"a": b"killed\\n"}
with (trial.tree(files) if how == "tree" else trial.touched(files)) as scratch:
    Path(scratch.path, "left").write_text("left")
    print(scratch.path, flush=True)
    os.kill(os.getpid(), 9)
"""


def _env(trial: Trial) -> dict[str, str]:
    root = Path(__file__).parent.parent.parent
    return {**trial.repo.env, "PYTHONPATH": str(root), "TMPDIR": str(trial.cache.parent)}


def _kill_in_the_middle(trial: Trial, how: str) -> str:
    argv = [sys.executable, "-c", _KILLED, str(trial.repo.path), str(trial.cache), how]
    done = subprocess.run(argv, env=_env(trial), stdout=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL
    return done.stdout.decode().strip()


def test_a_tree_that_was_in_use_when_its_owner_was_killed_is_made_anew_elsewhere(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n", "b": "b\n"})
    with trial.tree():
        pass
    killed = _kill_in_the_middle(trial, "tree")
    assert Path(killed, "left").exists()
    with trial.tree() as scratch:
        assert contents(scratch.path) == {"a": b"0 a\n", "b": b"0 b\n"}
        assert scratch.path != killed, "what was left running may still write there"
        assert not Path(killed).exists()


def test_a_folder_of_touched_files_is_swept_after_a_kill_and_only_if_it_is_the_same_folder(
    trial: Trial,
) -> None:
    trial.repo.commit({"a": "a\n"})
    records = trial.repo.path / ".git/patchgate/scratch"
    place = Path(_kill_in_the_middle(trial, "files")).parent
    assert (place / "tree" / "left").exists()
    with trial.touched({"a": b"b\n"}) as scratch:
        assert trial.sweep() == []
        assert not place.exists()
        assert Path(scratch.path, "a").exists(), "its owner runs"
    assert list(records.iterdir()) == []
    place = Path(_kill_in_the_middle(trial, "files")).parent
    place.rename(place.with_name("moved"))
    place.mkdir()
    (place / "precious").write_text("mine\n")
    assert trial.sweep() == []
    assert (place / "precious").exists(), "that name belongs to somebody else now"
    assert list(records.iterdir()) == []


def test_a_record_of_a_folder_that_was_not_made_yet_removes_nothing(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n"})
    records = trial.repo.path / ".git/patchgate/scratch"
    records.mkdir(parents=True)
    precious = trial.cache.parent / "precious"
    precious.mkdir()
    (precious / "mine").write_text("mine\n")
    owner = '{\\"pid\\":1,\\"boot_id\\":\\"none\\",\\"started\\":\\"\\"}'
    (records / "place-0123456789abcdef.json").write_text(
        f'{{"path": "{precious}", "owner": "{owner}", "identity": null, "kept": false}}'
    )
    (records / "place-fedcba9876543210.json").write_text("half writ")
    assert trial.sweep() == []
    assert (precious / "mine").exists()
    assert list(records.iterdir()) == []


def _origin(home: Path) -> str:
    place = home / "origin.json"
    return place.read_text() if place.exists() else ""


def test_the_kept_tree_of_a_repository_that_is_gone_is_swept_and_nothing_else(
    trial: Trial, tmp_path: Path
) -> None:
    trial.repo.commit({"a": "a\n"})
    gone = Trial(Repo.create(tmp_path / "gone"), trial.cache)
    gone.repo.commit({"a": "a\n"})
    for each in (trial, gone):
        with each.tree():
            pass
    (trial.cache / "trees" / ("0" * 32)).mkdir()
    (trial.cache / "trees" / "notes").write_text("mine\n")
    (home,) = [each for each in trial.homes() if "gone" in _origin(each)]
    copied, aside = home.with_name("1" * 32), tmp_path / "aside"
    subprocess.run(["cp", "-a", home, copied], check=True)
    subprocess.run(["rm", "-rf", gone.repo.path], check=True)
    home.rename(aside)
    subprocess.run(["cp", "-a", aside, home], check=True)
    assert trial.sweep() == []
    assert home.exists(), "a copy is not what was recorded"
    subprocess.run(["rm", "-rf", home], check=True)
    aside.rename(home)
    assert trial.sweep() == []
    assert not home.exists()
    assert {"0" * 32, "1" * 32, "notes"} <= {each.name for each in trial.homes()}
    assert len(trial.homes()) == 4


def test_a_tree_that_is_kept_stays_and_is_whole_by_itself(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n", "b": "b\n"})
    with trial.tree():
        pass
    with trial.tree({"a": b"patched\n"}, keep=True) as scratch:
        kept = Path(scratch.path)
        trial.run(scratch, "echo x > made; echo y >> b")
        assert [path.raw for path in scratch.changed()] == [b"b"]
    assert trial.sweep() == []
    with trial.tree({"a": b"next\n"}) as scratch:
        assert Path(scratch.path) != kept
    assert contents(kept) == {"a": b"0 patched\n", "b": b"0 b\ny\n", "made": b"0 x\n"}
    assert trial.repo.git("diff", "--cached", "--stat", cwd=kept).split()[0] == b"a"
    assert kept_folders(open_repository(trial.repo.env, str(trial.repo.path))) == [str(kept.parent)]
    with trial.touched({"b": b"c\n"}, keep=True) as scratch:
        touched = Path(scratch.path)
    assert contents(touched) == {"b": b"0 c\n"}
    subprocess.run(["rm", "-rf", kept.parent, touched.parent], check=True)
    assert trial.sweep() == []
    assert kept_folders(open_repository(trial.repo.env, str(trial.repo.path))) == []


def test_touched_files_are_alone_written_as_a_checkout_would_and_outside_of_git(
    trial: Trial, tmp_path: Path
) -> None:
    repo = trial.repo
    repo.commit({"d/.gitattributes": "*.txt eol=crlf\n", "d/n.txt": "a\n", "other": "x\n", "gone": "x\n"})
    repo.write("run.sh", "#!/bin/sh\n", executable=True)
    repo.link("link", "other")
    repo.commit()
    with trial.touched({"d/n.txt": b"b\n", "gone": None, "e/f": b"f\n"}, "run.sh", "link") as scratch:
        found = {name: what for name, what in contents(scratch.path).items() if what[:6] != b"folder"}
        assert found == {
            "d/n.txt": b"0 b\r\n",
            "e/f": b"0 f\n",
            "run.sh": b"100 #!/bin/sh\n",
            "link": b"link other",
        }
        assert not Path(scratch.path).is_relative_to(repo.path)
        assert "/.git/" not in scratch.path + "/"
        assert scratch.changed() == []
        trial.run(
            scratch, "touch run.sh; echo x >> e/f; rm link; echo '* -text' > d/.gitattributes; echo > n"
        )
        assert [path.raw for path in scratch.changed()] == [b"e/f", b"link"]
        scratch.restore_files()
        assert {n: w for n, w in contents(scratch.path).items() if w[:6] != b"folder"} == found
    assert not Path(scratch.path).exists()
    assert list((trial.cache / "touched").iterdir()) == []


@pytest.mark.parametrize("inside", ["cache", ".git/cache"])
def test_a_cache_folder_inside_the_repository_is_refused(trial: Trial, inside: str) -> None:
    trial.repo.commit({"a": "a\n"})
    trial.cache = trial.repo.path / inside
    with pytest.raises(UndecidedError, match="inside"), trial.tree():
        pass
    with pytest.raises(UndecidedError, match="inside"), trial.touched({"a": b"b\n"}):
        pass


def test_a_conflict_is_undecided(trial: Trial) -> None:
    repo = trial.repo
    repo.commit({"a": "a\n"})
    repo.git("checkout", "-qb", "other")
    repo.commit({"a": "b\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "c\n"})
    repo.try_git("merge", "other")
    with pytest.raises(UndecidedError, match="conflict"), trial.tree():
        pass


def test_a_missing_blob_is_undecided_and_the_next_tree_is_whole(trial: Trial) -> None:
    repo = trial.repo
    repo.commit({"a": "a\n", "b": "b\n"})
    blob = repo.ask("rev-parse", "HEAD:b")
    place = repo.path / ".git/objects" / blob[:2] / blob[2:]
    content = place.read_bytes()
    place.unlink()
    with pytest.raises(UndecidedError), trial.tree():
        pass
    place.write_bytes(content)
    with trial.tree() as scratch:
        assert contents(scratch.path) == {"a": b"0 a\n", "b": b"0 b\n"}


@pytest.mark.parametrize("kind", ["sha256", "split", "sparse", "worktree", "unborn", "shallow"])
def test_every_kind_of_repository_has_a_scratch_tree(tmp_path: Path, kind: str) -> None:
    arguments = ["--object-format=sha256"] if kind == "sha256" else []
    repo = Repo.create(tmp_path, *arguments)
    if kind != "unborn":
        repo.commit({"a": "a\n", "in/b": "b\n", "out/c": "c\n"})
        repo.commit({"a": "b\n"})
    else:
        repo.stage({"a": "b\n", "in/b": "b\n", "out/c": "c\n"})
    if kind == "split":
        repo.git("update-index", "--split-index")
    if kind == "sparse":
        repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    if kind == "worktree":
        repo.git("worktree", "add", "-q", "../linked")
        repo = repo.at(tmp_path / "repo/../linked")
    if kind == "shallow":
        repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", "../shallow")
        repo = repo.at(tmp_path / "shallow")
    trial = Trial(repo, tmp_path / "cache")
    for number in range(2):
        with trial.tree({"in/b": b"%d\n" % number}) as scratch:
            found = {name: what for name, what in contents(scratch.path).items() if what[:6] != b"folder"}
            assert found == {"a": b"0 b\n", "in/b": b"0 %d\n" % number, "out/c": b"0 c\n"}
            assert "in/b" in trial.run(scratch, "git status --porcelain; git fsck --no-dangling")
            if kind != "unborn":
                assert trial.run(scratch, "git log -1 --format=%H").strip() == repo.head()
        with trial.touched({"in/b": b"x\n"}) as scratch:
            assert Path(scratch.path, "in/b").read_bytes() == b"x\n"


@pytest.mark.parametrize(
    "writing",
    [
        "echo longer > d/b",
        "printf two > d/b; touch -r a d/b",
        "chmod +x d/b",
        "echo '* text eol=crlf' > .gitattributes",
        "printf two > a",
    ],
)
def test_a_file_that_was_overwritten_in_place_between_two_uses_is_never_handed_out(
    trial: Trial, writing: str, tmp_path: Path
) -> None:
    trial.repo.commit({".gitattributes": "# none\n", "a": "one", "d/b": "one", "e": "one"})
    with trial.tree({"e": b"two"}) as scratch:
        first = contents(scratch.path)
    trial.run(scratch, writing)
    assert contents(scratch.path) != first
    with trial.tree({"e": b"two"}) as scratch:
        assert contents(scratch.path) == first
        assert scratch.changed() == []
    trial.run(scratch, writing)
    with trial.tree({"a": b"six"}) as scratch:
        assert contents(scratch.path) == fresh_checkout(trial, scratch, tmp_path / "copy")


def test_a_file_that_was_put_back_and_then_overwritten_at_once_is_seen(trial: Trial) -> None:
    trial.repo.commit({"a": "one", "b": "one"})
    for _ in range(10):
        with trial.tree() as scratch:
            first = contents(scratch.path)
            trial.run(scratch, "printf two > a")
        Path(scratch.path, "a").write_bytes(b"six")
        with trial.tree() as scratch:
            assert contents(scratch.path) == first


TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    "place", ["victim", "touched/victim", f"{TOKEN}", f"touched/../{TOKEN}", f"link/{TOKEN}"]
)
def test_a_record_that_names_a_folder_we_never_make_removes_nothing(trial: Trial, place: str) -> None:
    trial.repo.commit({"a": "a\n"})
    records = trial.repo.path / ".git/patchgate/scratch"
    records.mkdir(parents=True)
    (trial.cache / "touched").mkdir(parents=True)
    (trial.cache / "elsewhere" / "touched").mkdir(parents=True)
    (trial.cache / "link").symlink_to("elsewhere/touched")
    folder = trial.cache / place
    folder.mkdir()
    (folder / "mine").write_text("mine\n")
    _record(records, folder)
    assert trial.sweep() == []
    assert (folder / "mine").exists()
    assert list(records.iterdir()) == []
    assert kept_folders(open_repository(trial.repo.env, str(trial.repo.path))) == []


def test_a_place_in_another_cache_folder_waits_until_that_is_swept(trial: Trial) -> None:
    trial.repo.commit({"a": "a\n"})
    records = trial.repo.path / ".git/patchgate/scratch"
    records.mkdir(parents=True)
    folder = trial.cache.parent / "other" / "touched" / TOKEN
    folder.mkdir(parents=True)
    _record(records, folder)
    assert trial.sweep() == []
    assert folder.exists()
    assert Trial(trial.repo, trial.cache.parent / "other").sweep() == []
    assert not folder.exists()
    assert list(records.iterdir()) == []


def _record(records: Path, folder: Path) -> None:
    found = folder.stat()
    owner = json.dumps({"pid": 1, "boot_id": "none", "started": ""})
    plain = {"path": str(folder), "owner": owner, "identity": [found.st_dev, found.st_ino], "kept": False}
    (records / f"place-{TOKEN}.json").write_text(json.dumps(plain))
