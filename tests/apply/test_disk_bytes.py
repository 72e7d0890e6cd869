"""Which bytes are written for a judged change: held against what `git apply` writes and what git then sees.

Each case commits the old blobs, makes the patch between old and new blobs where nothing converts, then sets
config and attributes and puts the files on disk. Afterwards `git diff` has to be the patch again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from patchgate.apply.disk_bytes import FileState, PlannedWrites, plan_writes, read_file_state
from patchgate.apply.write_patch import find_stored_otherwise
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UndecidedError
from patchgate.git.model import EXECUTABLE, REGULAR, Entry, FileChange
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.private_store import PrivateStore
from patchgate.git.repository import Repository, open_repository
from patchgate.git.transaction import write_files
from patchgate.git.transaction.entries import FileContent, Write
from patchgate.patches.check_patch import PatchVerdict, judge_patch
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

TEN = b"".join(b"line %d\n" % number for number in range(10))
CHANGED = TEN.replace(b"line 4\n", b"line four\nand a half\n")


def crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


@dataclass
class World:
    """A repository where a patch is about to land, and the patch."""

    repo: Repo
    patch: bytes
    new: str

    @property
    def repository(self) -> Repository:
        return open_repository(self.repo.env, str(self.repo.path))

    @contextmanager
    def judged(
        self, base: str | None = None, *, with_index: bool = False
    ) -> Iterator[tuple[Repository, PatchVerdict, FileState]]:
        """Judge the patch, and read what is on disk."""
        repository = self.repository
        with judge_patch(repository, self.patch, CheckOptions(), base=base) as judged:
            files = judged.verdict.change.files
            assert files, [finding.message for finding in judged.verdict.findings]
            state = read_file_state(repository, judged.objects, judged.store, files, with_index=with_index)
            yield repository, judged, state

    def land(self, base: str | None = None) -> PlannedWrites:
        """Judge the patch, and write what is to be written, by plain means."""
        with self.judged(base) as (repository, judged, state):
            assert not state.differing
            files = judged.verdict.change.files
            made = plan_writes(repository, judged.objects, judged.store, files, state)
        write_files(repository, made.writes, note={}).finish()
        return made

    def land_unjudged(self) -> PlannedWrites:
        """Write the difference of HEAD's tree and the new one, whatever its names are."""
        repository = self.repository
        raw = self.repo.git("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", "HEAD^{tree}", self.new)
        words = raw.split(b"\0")
        files = []
        for about, name in zip(words[0:-1:2], words[1::2], strict=True):
            old_mode, new_mode, old, new, _ = about[1:].decode().split(" ")
            if name != b".gitattributes":
                files.append(FileChange(RepoPath(name), side(old_mode, old), side(new_mode, new)))
        with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
            state = read_file_state(repository, objects, store, files)
            assert not state.differing
            made = plan_writes(repository, objects, store, files, state)
        write_files(repository, made.writes, note={}).finish()
        return made

    def differing(self, base: str | None = None) -> list[bytes]:
        with self.judged(base) as (_, _, state):
            return [path.raw for path in state.differing]

    def applied_by_git(self) -> Repo:
        """Apply the patch to a copy, with `git apply`."""
        copy = self.repo.at(self.repo.path.with_name("copy"))
        shutil.copytree(self.repo.path, copy.path, symlinks=True)
        copy.git("update-index", "-q", "--refresh")
        copy.git("apply", "-p1", "--whitespace=nowarn", stdin=self.patch)
        return copy

    def assert_git_sees_the_patch(self) -> None:
        assert self.repo.git("diff", "--binary", "--full-index", "--no-renames", "HEAD") == self.patch


def side(mode: str, oid: str) -> Entry | None:
    return Entry(mode, oid) if int(mode, 8) else None


def proposed(repo: Repo) -> World:
    """Make a patch of the working tree against HEAD, and put HEAD back."""
    repo.commit(None, "New")
    new = repo.head()
    patch = repo.git("diff", "--binary", "--full-index", "--no-renames", "HEAD~", "HEAD")
    repo.git("reset", "-q", "--hard", "HEAD~")
    return World(repo, patch, new)


def prepare(
    folder: Path,
    old: Mapping[str, bytes],
    new: Mapping[str, bytes | None],
    *,
    config: Mapping[str, str] | None = None,
    attributes: Mapping[str, str] | None = None,
    disk: Mapping[str, bytes] | None = None,
    init: tuple[str, ...] = (),
) -> World:
    """Commit `old`; make the patch to `new` (None: deleted); check out, and put `disk` there.

    Args:
        attributes: the attributes file of each folder.
    """
    repo = Repo.create(folder, *init)
    # Attributes of the files themselves count only when the patch is made.
    plain = repo.write(".git/info/attributes", "* -text -ident -filter !working-tree-encoding\n")
    repo.commit({"first": b"first\n", **old})
    for name in (name for name, content in new.items() if content is None):
        repo.git("rm", "-q", "--", name)
    for name, content in new.items():
        if content is not None:
            repo.write(name, content)
    world = proposed(repo)
    plain.unlink()
    for key, value in (config or {}).items():
        repo.git("config", key, value)
    if attributes:
        named = [
            str(repo.write(f"{folder}.gitattributes", text)) for folder, text in attributes.items() if text
        ]
        # Not `add -A`: it would look at the other files with the new attributes.
        repo.git("add", *named)
        repo.git("commit", "-q", "--allow-empty", "-m", "Attributes")
    for name in old:
        (repo.path / name).unlink()
    if old:
        repo.git("checkout", "-q", "--", *map(os.fsencode, old), GIT_LITERAL_PATHSPECS="1")
    for name, content in (disk or {}).items():
        repo.write(name, content)
    return world


ROT = {
    "filter.rot.clean": "tr a-z n-za-m",
    "filter.rot.smudge": "tr a-z n-za-m",
    "filter.rot.required": "true",
}
LATIN = "caf\u00e9\n"
UTF16 = "working-tree-encoding=UTF-16LE-BOM"


def utf16(text: bytes) -> bytes:
    return b"\xff\xfe" + text.decode("utf-8").encode("utf-16-le")


@dataclass(frozen=True)
class Case:
    """A file before and after: its blobs, what is on disk, what must be there in the end.

    `disk` None: as git checks it out; `expected` None: the new blob itself. `like_git`: `git apply` does it
    the same way.
    """

    old: bytes | None
    new: bytes
    expected: bytes | None = None
    disk: bytes | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    attributes: str = ""
    like_git: bool = True

    def expected_by(self, kind: str) -> bytes:
        """Give the bytes in the end; `OID` in them is that of the new blob."""
        expected = self.new if self.expected is None else self.expected
        oid = hashlib.new(kind, b"blob %d\0" % len(self.new) + self.new).hexdigest()
        return expected.replace(b"OID", oid.encode())


AUTO = {"core.autocrlf": "true"}
INPUT = {"core.autocrlf": "input"}
MIXED = b"a\r\nb\nc\r\nd\r\ne\nf\r\n"
CASES = {
    "LF": Case(TEN, CHANGED),
    "CR LF in the blob": Case(crlf(TEN), crlf(CHANGED)),
    "mixed in the blob": Case(MIXED, MIXED.replace(b"d", b"D\r\nx")),
    "a byte-order mark": Case(b"\xef\xbb\xbf" + TEN, b"\xef\xbb\xbf" + CHANGED),
    "no last newline": Case(TEN[:-1], CHANGED[:-1]),
    "the last newline comes": Case(TEN[:-1], TEN),
    "an empty file is filled": Case(b"", TEN),
    "a file is emptied": Case(TEN, b""),
    "a new file": Case(None, TEN),
    "a new empty file": Case(None, b""),
    "autocrlf": Case(TEN, CHANGED, crlf(CHANGED), config=AUTO),
    "autocrlf, LF on disk": Case(TEN, CHANGED, CHANGED, disk=TEN, config=AUTO, like_git=False),
    "autocrlf, a new file": Case(None, TEN, crlf(TEN), config=AUTO),
    "autocrlf, an empty file is filled": Case(b"", TEN, crlf(TEN), config=AUTO),
    "autocrlf, no last newline": Case(TEN[:-1], CHANGED[:-1], crlf(CHANGED[:-1]), config=AUTO),
    "autocrlf, CR LF in the blob": Case(crlf(TEN), crlf(CHANGED), config=AUTO),
    "autocrlf, CR LF in the blob goes": Case(crlf(TEN), TEN, config=AUTO, like_git=False),
    "autocrlf, mixed on disk": Case(
        b"a\nb\nc\nd\ne\nf\n",
        b"a\nb\nc\nD\nx\ne\nf\n",
        b"a\r\nb\nc\r\nD\r\nx\r\ne\nf\r\n",
        disk=MIXED,
        config=AUTO,
        like_git=False,
    ),
    "autocrlf=input": Case(TEN, CHANGED, config=INPUT),
    "autocrlf=input, CR LF on disk": Case(
        TEN, CHANGED, crlf(CHANGED), disk=crlf(TEN), config=INPUT, like_git=False
    ),
    "autocrlf=input, a new file": Case(None, TEN, config=INPUT),
    "eol=crlf": Case(TEN, CHANGED, crlf(CHANGED), attributes="* text eol=crlf\n"),
    "eol=crlf, LF on disk": Case(TEN, CHANGED, CHANGED, disk=TEN, attributes="f eol=crlf\n", like_git=False),
    "eol=crlf, a new file": Case(None, TEN, crlf(TEN), attributes="f eol=crlf\n"),
    "eol=lf, CR LF on disk": Case(
        TEN, CHANGED, crlf(CHANGED), disk=crlf(TEN), attributes="f eol=lf\n", like_git=False
    ),
    "text=auto": Case(TEN, CHANGED, attributes="* text=auto\n"),
    "text=auto eol=crlf": Case(TEN, CHANGED, crlf(CHANGED), attributes="* text=auto eol=crlf\n"),
    "-text under autocrlf": Case(TEN, CHANGED, config=AUTO, attributes="f -text\n"),
    "ident": Case(b"$Id$\n" + TEN, b"$Id$\n" + CHANGED, b"$Id: OID $\n" + CHANGED, attributes="f ident\n"),
    "ident under autocrlf, LF on disk": Case(
        TEN, CHANGED, CHANGED, disk=TEN, config=AUTO, attributes="f ident\n", like_git=False
    ),
    "ident under autocrlf, CR LF in the blob goes": Case(
        crlf(TEN), TEN, config=AUTO, attributes="f ident\n", like_git=False
    ),
    "autocrlf, a lone CR goes": Case(b"a\rb\nc\n", b"b\nc\n", config=AUTO, like_git=False),
    "ident under autocrlf, a lone CR goes": Case(
        b"a\rb\nc\n", b"b\nc\n", config=AUTO, attributes="f ident\n", like_git=False
    ),
    "an encoding": Case(TEN, CHANGED, utf16(CHANGED), attributes=f"f {UTF16}\n"),
    "an encoding with CR LF": Case(
        TEN, CHANGED, utf16(crlf(CHANGED)), attributes=f"f text eol=crlf {UTF16}\n"
    ),
    "an encoding, a new file": Case(None, TEN, utf16(TEN), attributes=f"f {UTF16}\n"),
    "an encoding that is ASCII so far": Case(
        TEN,
        TEN + LATIN.encode(),
        TEN + LATIN.encode("latin-1"),
        attributes="f working-tree-encoding=ISO-8859-1\n",
    ),
    "a filter": Case(b"abc\n", b"abc\nnop\n", b"nop\nabc\n", config=ROT, attributes="f filter=rot\n"),
    "a filter, a new file": Case(None, b"abc\n", b"nop\n", config=ROT, attributes="f filter=rot\n"),
}


GROUPS = {
    "no config": ((), {}),
    "a SHA-256 repository": (("--object-format=sha256",), {}),
    "autocrlf=true": ((), AUTO),
    "autocrlf=input": ((), INPUT),
    "filters": ((), ROT),
}


@pytest.mark.parametrize(("init", "config"), GROUPS.values(), ids=GROUPS.keys())
def test_files_keep_their_form_and_git_then_sees_the_patch_and_nothing_else(
    tmp_path: Path, init: tuple[str, ...], config: Mapping[str, str]
) -> None:
    """Each case is a file in a folder of its own, with attributes of its own."""
    kind = "sha256" if init else "sha1"
    cases = {f"{name}/f": case for name, case in CASES.items() if case.config == config}
    assert len(cases) > 1
    world = prepare(
        tmp_path,
        {name: case.old for name, case in cases.items() if case.old is not None},
        {name: case.new for name, case in cases.items()},
        config=config,
        attributes={name.removesuffix("f"): case.attributes for name, case in cases.items()},
        disk={name: case.disk for name, case in cases.items() if case.disk is not None},
        init=init,
    )
    copy = world.applied_by_git()
    made = world.land()
    assert not made.unstable
    assert {name: (world.repo.path / name).read_bytes() for name in cases} == {
        name: case.expected_by(kind) for name, case in cases.items()
    }
    by_git = {name: (copy.path / name).read_bytes() for name in cases}
    assert {name: by_git[name] == case.expected_by(kind) for name, case in cases.items()} == {
        name: case.like_git for name, case in cases.items()
    }
    world.repo.git("add", *(name for name, case in cases.items() if case.old is None))
    world.assert_git_sees_the_patch()


def test_a_filter_may_be_set_by_a_macro(tmp_path: Path) -> None:
    world = prepare(
        tmp_path,
        {"deep/f": b"abc\n"},
        {"deep/f": b"nop\n"},
        config=ROT,
        attributes={"": "[attr]turned filter=rot\n", "deep/": "f turned\n"},
    )
    world.land()
    assert (world.repo.path / "deep/f").read_bytes() == b"abc\n"
    world.assert_git_sees_the_patch()


STRANGE = dict.fromkeys(("line\nfeed", "\udcff\udcfe", " \tblank", '"quoted"', "-x", ":(top)", "a[1]"), TEN)


def test_ten_files_in_folders_that_come_and_go_land_as_git_apply_does_it(tmp_path: Path) -> None:
    old = {"gone/a": TEN, "gone/deep/b": TEN, "stays": TEN, "to/file/x": TEN, "to-folder": TEN, "e": b""}
    new: dict[str, bytes | None] = {
        "gone/a": None,
        "gone/deep/b": None,
        "stays": CHANGED,
        "to/file/x": None,
        "to/file": TEN,
        "to-folder": None,
        "to-folder/y": CHANGED,
        "fresh/deep/c": TEN,
        "e": None,
    }
    world = prepare(tmp_path, old, new)
    copy = world.applied_by_git()
    assert len(world.land().writes) == 9
    world.repo.git("add", "-A")
    world.assert_git_sees_the_patch()
    assert tree_of(world.repo.path) == tree_of(copy.path)


@pytest.mark.parametrize(
    "attributes", ["", "* text eol=crlf\n", "* ident filter=rot\n.gitattributes !filter\nfirst !filter\n"]
)
def test_names_may_hold_anything(tmp_path: Path, attributes: str) -> None:
    """A patch may not have all of them, but a merge with HEAD may touch them."""
    world = prepare(
        tmp_path,
        STRANGE,
        dict.fromkeys(STRANGE, CHANGED),
        attributes={"": attributes},
        config=ROT if attributes else {},
    )
    copy = world.repo.at(tmp_path / "copy")
    shutil.copytree(world.repo.path, copy.path)
    copy.git(
        "restore",
        "-q",
        f"--source={world.new}",
        "--worktree",
        "--",
        *map(os.fsencode, STRANGE),
        GIT_LITERAL_PATHSPECS="1",
    )
    assert len(world.land_unjudged().writes) == len(STRANGE)
    world.assert_git_sees_the_patch()
    assert tree_of(world.repo.path) == tree_of(copy.path)


def tree_of(root: Path) -> dict[bytes, tuple[bytes, bool]]:
    found = {}
    for above, folders, names in os.walk(os.fsencode(root)):
        if b".git" in folders:
            folders.remove(b".git")
        for name in names:
            place = os.path.join(above, name)
            content = os.readlink(place) if os.path.islink(place) else Path(os.fsdecode(place)).read_bytes()
            found[os.path.relpath(place, os.fsencode(root))] = content, os.access(place, os.X_OK)
    return found


def test_the_exec_bit_stays_comes_and_goes(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    for name, executable in (("stays", True), ("comes", False), ("goes", True), ("changed", False)):
        repo.write(name, TEN, executable=executable)
    repo.commit()
    repo.write("stays", CHANGED, executable=True)
    (repo.path / "comes").chmod(0o755)
    (repo.path / "goes").chmod(0o644)
    repo.write("changed", CHANGED, executable=True)
    world = proposed(repo)
    copy = world.applied_by_git()
    made = {each.path.raw: each.new for each in world.land().writes}
    assert made == {
        b"changed": FileContent(EXECUTABLE, CHANGED),
        b"comes": FileContent(EXECUTABLE, TEN),
        b"goes": FileContent(REGULAR, TEN),
        b"stays": FileContent(EXECUTABLE, CHANGED),
    }
    world.assert_git_sees_the_patch()
    assert tree_of(repo.path) == tree_of(copy.path)


def test_symlinks_come_go_and_take_a_files_place(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"f": "target", "g": TEN, "x": "text"})
    repo.link("old", "g")
    repo.link("other", "g")
    repo.commit()
    for name in ("old", "other", "f", "g"):
        (repo.path / name).unlink()
    repo.link("f", "target")
    repo.link("new", "nowhere")
    repo.link("other", "x")
    repo.write("old", TEN)
    world = proposed(repo)
    copy = world.applied_by_git()
    world.land_unjudged()
    repo.git("add", "-A")
    world.assert_git_sees_the_patch()
    assert os.readlink(repo.path / "f") == "target"
    assert tree_of(repo.path) == tree_of(copy.path)


def test_a_mode_that_the_disk_cannot_be_trusted_with_stays_on_disk(tmp_path: Path) -> None:
    world = prepare(tmp_path, {"f": TEN}, {"f": CHANGED}, config={"core.fileMode": "false"})
    (world.repo.path / "f").chmod(0o755)
    assert [each.new for each in world.land().writes] == [FileContent(EXECUTABLE, CHANGED)]
    world.assert_git_sees_the_patch()


def test_a_symlink_without_symlinks_is_undecided(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"f": TEN})
    repo.link("new", "f")
    world = proposed(repo)
    repo.git("config", "core.symlinks", "false")
    with pytest.raises(UndecidedError, match=r"core\.symlinks"), world.judged():
        pass


def test_a_submodule_changes_in_the_index_alone(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.commit({"f": TEN})
    repo.gitlink("module")
    repo.git("commit", "-q", "-m", "Module")
    repo.gitlink("module", "2" * 40)
    repo.git("commit", "-q", "-m", "Bump")
    patch = repo.git("diff", "--full-index", "HEAD~", "HEAD")
    repo.git("reset", "-q", "--hard", "HEAD~")
    (repo.path / "module").mkdir(exist_ok=True)
    world = World(repo, patch, repo.head())
    with pytest.raises(UndecidedError, match="only the index"), world.judged():
        pass
    with world.judged(with_index=True) as (repository, judged, state):
        files = judged.verdict.change.files
        assert not state.differing
        assert plan_writes(repository, judged.objects, judged.store, files, state) == PlannedWrites((), ())


def test_what_a_sparse_checkout_leaves_out_is_written_but_cannot_be_deleted(tmp_path: Path) -> None:
    world = prepare(tmp_path, {"in/f": TEN, "out/g": TEN}, {"out/g": CHANGED})
    world.repo.git("sparse-checkout", "set", "in")
    assert not (world.repo.path / "out").exists()
    (only,) = world.land().writes
    assert only == Write(RepoPath(b"out/g"), None, FileContent(REGULAR, CHANGED))
    world.assert_git_sees_the_patch()
    world = prepare(tmp_path / "more", {"in/f": TEN, "out/g": TEN}, {"out/g": None})
    world.repo.git("sparse-checkout", "set", "in")
    with pytest.raises(UndecidedError, match="sparse checkout"), world.judged():
        pass
    with world.judged(with_index=True) as (_, _, state):
        assert not state.differing


def test_the_patchs_own_attributes_count_only_afterwards(tmp_path: Path) -> None:
    """As with `git apply`."""
    world = prepare(tmp_path, {"f": TEN}, {"f": CHANGED, ".gitattributes": b"* text eol=crlf\n"})
    copy = world.applied_by_git()
    world.land()
    assert (world.repo.path / "f").read_bytes() == CHANGED
    assert tree_of(world.repo.path) == tree_of(copy.path)


def otherwise_after(world: World, base: str | None = None) -> list[bytes]:
    """Land the patch; give what it said that git will store otherwise, and hold that against `git add`."""
    with world.judged(base) as (repository, judged, state):
        files = judged.verdict.change.files
        made = plan_writes(repository, judged.objects, judged.store, files, state)
        found = [path.raw for path in find_stored_otherwise(repository, files, made.writes)]
    write_files(world.repository, made.writes, note={}).finish()
    # The attributes first: in one go, git would look at those of the index for some of the files.
    repo = world.repo
    repo.git(
        "add", "-A", "--", *(name for name in (".gitattributes", "sub/.gitattributes") if named(repo, name))
    )
    repo.git("add", "-A")
    judged_tree = repo.git("ls-tree", "-r", "-z", "--name-only", world.new)
    names = [name for name in judged_tree.split(b"\0") if name]
    assert sorted(found) == [
        name
        for name in sorted(names)
        if repo.git("rev-parse", b":" + name) != repo.git("rev-parse", world.new.encode() + b":" + name)
    ]
    return found


def named(repo: Repo, name: str) -> bool:
    return (repo.path / name).exists() or bool(repo.git("ls-files", name))


UP = {"filter.up.clean": "tr a-z A-Z", "filter.up.smudge": "cat"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {".gitattributes": b"*.txt filter=up\n", "n.txt": b"hello\n", "m": b"x\n"}, [b"n.txt"]),
        ({}, {".gitattributes": b"*.txt filter=up\n", "n.txt": b"HELLO\n"}, []),
        ({}, {".gitattributes": b"*.txt text\n", "n.txt": crlf(TEN), "m": crlf(TEN)}, [b"n.txt"]),
        ({"f": TEN}, {".gitattributes": b"f filter=up\n", "f": CHANGED}, [b"f"]),
        ({"f": crlf(TEN)}, {".gitattributes": b"f text=auto\n", "f": crlf(CHANGED)}, []),
        (
            {"sub/f": TEN, "sub/g": TEN},
            {"sub/.gitattributes": b"f filter=up\n", "sub/f": CHANGED},
            [b"sub/f"],
        ),
        ({"f": TEN}, {".gitattributes": b"*.x text\n", "f": CHANGED, "new/deep/x": TEN}, []),
    ],
)
def test_what_git_will_store_otherwise_by_the_patchs_own_attributes_is_told(
    tmp_path: Path, old: dict[str, bytes], new: dict[str, bytes | None], expected: list[bytes]
) -> None:
    world = prepare(tmp_path, old, new, config=UP)
    assert otherwise_after(world) == expected


@pytest.mark.parametrize("goes", [None, b"*.txt -text\n"])
def test_attributes_that_the_patch_takes_away_count_no_more(tmp_path: Path, goes: bytes | None) -> None:
    old = {".gitattributes": b"n.txt filter=up\n", "x": TEN}
    world = prepare(tmp_path, old, {".gitattributes": goes, "n.txt": b"HELLO\n"}, config=UP)
    assert otherwise_after(world) == []


def test_a_filter_that_the_patch_names_finds_the_files_of_the_working_tree(tmp_path: Path) -> None:
    config = {"filter.own.clean": "sh tools/clean.sh", "filter.own.required": "true"}
    old = {"tools/clean.sh": b"tr a-z A-Z\n", "sub/.gitattributes": b"*.b filter=own\n"}
    new: dict[str, bytes | None] = {".gitattributes": b"*.a filter=own\n", "n.a": b"x\n", "sub/m": b"x\n"}
    world = prepare(tmp_path, old, new, config=config)
    assert otherwise_after(world) == [b"n.a"]


def test_what_git_cannot_store_at_all_by_the_patchs_own_attributes_is_undecided(tmp_path: Path) -> None:
    new = {".gitattributes": b"*.txt working-tree-encoding=UTF-16\n", "n.txt": b"hello\n"}
    world = prepare(tmp_path, {}, new)
    with world.judged() as (repository, judged, state):
        files = judged.verdict.change.files
        made = plan_writes(repository, judged.objects, judged.store, files, state)
        with pytest.raises(UndecidedError, match=r"could not store .*n\.txt"):
            find_stored_otherwise(repository, files, made.writes)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("base", [None, "HEAD"])
@pytest.mark.parametrize("name", ["f", "d/.gitattributes", ".gitattributes"])
def test_a_special_file_keeps_nobody_waiting(tmp_path: Path, name: str, base: str | None) -> None:
    """Measured: git opened the FIFO, and waited for ever."""
    world = prepare(tmp_path, {"f": TEN, "d/g": TEN}, {"f": CHANGED, "d/g": CHANGED}, config=AUTO)
    (world.repo.path / name).unlink(missing_ok=True)
    os.mkfifo(world.repo.path / name)
    file = tmp_path / "patch"
    file.write_bytes(world.patch)
    options = () if base is None else ("--base", base)
    for arguments in (("--dry-run",), ()):
        answer = world.repo.run("apply", str(file), "--format", "json", *arguments, *options)
        told = "base-conflict" if base and name == "f" else "is a special file on disk"
        assert (answer.code in {1, 3}, told in answer.out) == (True, True)
    checked = world.repo.run("check", "--patch", str(file), "--format", "json", *options)
    assert checked.code == (0 if base else 3)


@pytest.mark.parametrize("attributes", [{}, {"": "f ident\n"}])
@pytest.mark.parametrize(("old", "new"), [(None, crlf(TEN)), (TEN, TEN + b"x\r\n"), (TEN, crlf(TEN))])
def test_a_line_end_that_git_will_not_keep_is_told(
    tmp_path: Path, attributes: dict[str, str], old: bytes | None, new: bytes
) -> None:
    """It is written as it was judged, all the same."""
    before = {} if old is None else {"f": old}
    config = AUTO if old else INPUT
    world = prepare(tmp_path, before, {"f": new}, config=config, attributes=attributes, disk=before)
    assert world.land().unstable == (RepoPath(b"f"),)
    assert (world.repo.path / "f").read_bytes() == new


def test_where_the_index_holds_carriage_returns_a_new_file_gets_none(tmp_path: Path) -> None:
    """`git add` would keep them, and store another blob than was judged."""
    world = prepare(tmp_path, {"x": TEN}, {"f": TEN}, config=AUTO)
    repo = world.repo
    repo.write("f", crlf(TEN))
    repo.git("-c", "core.autocrlf=false", "add", "f")
    (repo.path / "f").unlink()
    world.land()
    assert (repo.path / "f").read_bytes() == TEN
    repo.git("add", "f")
    world.assert_git_sees_the_patch()


def test_a_form_that_git_would_store_as_something_else_is_undecided(tmp_path: Path) -> None:
    lossy = {"filter.lossy.clean": "tr a-z A-Z", "filter.lossy.smudge": "cat"}
    world = prepare(
        tmp_path, {"f": b"ABC\n"}, {"f": b"ABC\nx\n"}, config=lossy, attributes={"": "f filter=lossy\n"}
    )
    with world.judged() as (repository, judged, state):
        files = judged.verdict.change.files
        with pytest.raises(UndecidedError, match="what was judged"):
            plan_writes(repository, judged.objects, judged.store, files, state)


def test_a_filter_that_fails_is_undecided(tmp_path: Path) -> None:
    world = prepare(tmp_path, {"x": TEN}, {"f": TEN}, config=ROT, attributes={"": "f filter=rot\n"})
    world.repo.git("config", "filter.rot.smudge", "false")
    with world.judged() as (repository, judged, state):
        files = judged.verdict.change.files
        with pytest.raises(UndecidedError, match="cat-file"):
            plan_writes(repository, judged.objects, judged.store, files, state)


@dataclass
class Disturbed:
    """A change that was judged, and a disk where somebody does something before the look."""

    repo: Repo
    files: tuple[FileChange, ...]

    @classmethod
    def judged(cls, world: World) -> Disturbed:
        with judge_patch(world.repository, world.patch, CheckOptions()) as judged:
            return cls(world.repo, judged.verdict.change.files)

    def differing(self) -> list[bytes]:
        repository = open_repository(self.repo.env, str(self.repo.path))
        with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
            return [path.raw for path in read_file_state(repository, objects, store, self.files).differing]


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Disturbed:
    old = {"f": TEN, "d/g": TEN, "to/file/x": TEN}
    new = {"f": CHANGED, "d/g": CHANGED, "new": TEN, "n/new": TEN, "to/file/x": None, "to/file": TEN}
    return Disturbed.judged(prepare(tmp_path_factory.mktemp("disturbed"), old, new))


def put_fifo(root: Path) -> None:
    (root / "f").unlink()
    os.mkfifo(root / "f")


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("f", lambda root: (root / "f").write_bytes(TEN + b"x\n")),
        ("f", lambda root: (root / "f").unlink()),
        ("f", lambda root: (root / "f").chmod(0o755)),
        ("f", lambda root: ((root / "f").unlink(), (root / "f").symlink_to("first"))),
        ("f", put_fifo),
        ("f", lambda root: ((root / "f").unlink(), (root / "f").mkdir())),
        ("d/g", lambda root: ((root / "d").rename(root / "e"), (root / "d").symlink_to("e"))),
        ("d/g", lambda root: (root / "d/.git").mkdir()),
        ("d/g", lambda root: ((root / "d").rename(root / "e"), (root / "d").write_text("x"))),
        ("new", lambda root: (root / "new").write_text("x")),
        ("new", lambda root: (root / "new").symlink_to("nowhere")),
        ("new", lambda root: (root / "new").mkdir()),
        ("n/new", lambda root: (root / "n").symlink_to(root.parent)),
        ("n/new", lambda root: (root / "n").write_text("x")),
        ("to/file", lambda root: (root / "to/file/y").write_text("x")),
    ],
)
def test_whatever_changed_on_disk_since_the_judgement_is_found(
    tmp_path: Path, disturbed: Disturbed, name: str, act: Callable[[Path], object]
) -> None:
    shutil.copytree(disturbed.repo.path, tmp_path / "repo")
    here = Disturbed(disturbed.repo.at(tmp_path / "repo"), disturbed.files)
    assert here.differing() == []
    act(here.repo.path)
    assert here.differing() == [name.encode()]


def test_a_file_that_git_stores_otherwise_by_now_is_found_among_converted_ones(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    disturbed = Disturbed.judged(
        prepare(
            tmp_path,
            dict.fromkeys(names, TEN),
            dict.fromkeys(names, CHANGED),
            attributes={"": "* text eol=crlf\n"},
        )
    )
    assert disturbed.differing() == []
    disturbed.repo.write("b", crlf(TEN) + b"more\r\n")
    assert disturbed.differing() == [b"b"]


def test_an_index_that_keeps_carriage_returns_is_heard_about_the_old_file(tmp_path: Path) -> None:
    """`hash-object` alone says that another blob would be stored."""
    old = b"$Id$\r\n" + crlf(TEN)
    world = prepare(tmp_path, {"f": old}, {"f": old + b"x\r\n"}, config=AUTO, attributes={"": "f ident\n"})
    world.repo.git("checkout", "-q", "--", "f")
    assert b"$Id: " in (world.repo.path / "f").read_bytes()
    assert world.differing() == []


def test_with_a_base_an_uncommitted_change_differs(tmp_path: Path) -> None:
    world = prepare(tmp_path, {"f": TEN, "g": TEN}, {"f": CHANGED, "g": CHANGED})
    world.repo.write("g", b"mine\n" + TEN)
    assert world.differing("HEAD") == [b"g"]
    world.repo.git("checkout", "-q", "--", "g")
    world.land("HEAD")
    world.assert_git_sees_the_patch()


def test_the_ordinary_case_starts_no_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"f": TEN, "gone": TEN, "deep/g": crlf(TEN)}
    new = {"f": CHANGED, "gone": None, "deep/g": crlf(CHANGED), "deep/unended": b"x"}
    world = prepare(tmp_path, old, new, attributes={"": "* text=auto\n"})
    started: list[tuple[str, ...]] = []

    def note(self: Repository, arguments: tuple[str, ...], **more: object) -> list[str]:
        started.append(arguments)
        return argv(self, arguments, **more)  # type: ignore[arg-type]

    argv = Repository.argv
    repository = world.repository
    with judge_patch(repository, world.patch, CheckOptions()) as judged:
        files = judged.verdict.change.files
        monkeypatch.setattr(Repository, "argv", note)
        state = read_file_state(repository, judged.objects, judged.store, files)
        made = plan_writes(repository, judged.objects, judged.store, files, state)
        assert find_stored_otherwise(repository, files, made.writes) == ()
    assert len(made.writes) == 4
    assert started == []
