"""Paths as bytes: constructors, faults and the aliases of `.git`, with git itself as the oracle."""

from __future__ import annotations

import os
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchgate.errors import UsageError
from patchgate.git.path import RepoPath, faults, fold, is_git_alias, is_ref_format
from tests.amount import often

# ---- git as the oracle ------------------------------------------------------------------------------------


class GitIndex:
    """A real repository with nothing in it, asked whether a name may stand in an index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_INDEX_FILE": str(folder / ".git" / "one-index"),
        }
        self.run("init", "--quiet", "--template=", ".")
        for key in ("core.protectHFS", "core.protectNTFS"):
            self.run("config", key, "true")
        blob = self.run("hash-object", "-w", "--stdin")
        self.blob = os.fsdecode(blob.stdout.strip())

    def run(self, *arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=self.environment,
            input=b"",
            capture_output=True,
            check=False,
        )

    def refuses(self, name: bytes) -> bool:
        """Tell whether git refuses this name for a regular file."""
        (self.folder / ".git" / "one-index").unlink(missing_ok=True)
        done = self.run("update-index", "--add", "--cacheinfo", b"100644," + self.blob.encode() + b"," + name)
        return done.returncode != 0


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> GitIndex:
    return GitIndex(tmp_path_factory.mktemp("names"))


ALIASES = [
    b".git",
    b".GIT",
    b".Git",
    b".git ",
    b".git.",
    b".git . .",
    b".git::$INDEX_ALLOCATION",
    b".git:x",
    b".git \\x",
    b"git~1",
    b"GIT~1",
    b"git~1.",
    b"git~1:x",
    ".g\u200cit".encode(),
    "\u200d.git".encode(),
    ".git\ufeff".encode(),
    ".GI\u202eT".encode(),
    ".g\u206aIt".encode(),
    b"x\\.git",
    b"x\\git~1\\y",
    b".git\xff",
    b".GIT\xed\xa0\x80x",
    ".git\uffffx".encode(),
]
NO_ALIASES = [
    b"git",
    b".github",
    b".gitignore",
    b".gitmodules",
    b"x.git",
    b"..git",
    b"git~",
    b"git~x",
    b".gi\xfft",
    b".gitx\xff",
]

PIECES = st.sampled_from(
    [*ALIASES, *NO_ALIASES, b"", b".", b"..", b"...", b"a", b"a b", b"a:b", b"\\", b"C:"]
)
BYTES = st.binary(min_size=1, max_size=6).map(lambda raw: raw.replace(b"\0", b"0"))


@settings(max_examples=often(150), deadline=None)
@given(st.lists(PIECES | BYTES, min_size=1, max_size=4).map(b"/".join))
@example(b"/")
@example(b"a/")
@example(b".git\\\\")
def test_every_name_that_git_refuses_has_a_fault(git: GitIndex, name: bytes) -> None:
    if git.refuses(name):
        assert faults(RepoPath.from_git(name))


def test_git_refuses_enough_for_the_comparison_to_mean_something(git: GitIndex) -> None:
    refused = [b".git/config", b"a/.GIT/x", b"a/../b", b"a//b", b"/a", b"a/", b"git~1/x", b".git. /x"]
    assert all(git.refuses(name) for name in refused)
    assert not any(git.refuses(name) for name in [b"a", b".github/x", b"a b", b"...", b"a\nb"])


# ---- aliases of .git --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ALIASES, b"git~2", b"git~10", ".\u200e\u200fgit".encode()], ids=ascii)
def test_an_alias_of_git_is_refused_in_any_component(name: bytes) -> None:
    assert is_git_alias(name)
    for path in (name, b"a/" + name, name + b"/hooks", b"a/" + name + b"/b"):
        assert "path-git-dir" in faults(RepoPath(path))
        assert "path-git-dir" in faults(RepoPath(path), from_text=True)


@pytest.mark.parametrize("name", NO_ALIASES, ids=ascii)
def test_a_name_that_only_looks_like_git_is_none(name: bytes) -> None:
    assert not is_git_alias(name)
    assert faults(RepoPath(b"a/" + name + b"/b")) == ()


# ---- faults -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"src/a.py", ()),
        (b"a b/[id].tsx", ()),
        ("größe/日本".encode(), ()),
        (b"\xff", ()),
        (b"-rf", ()),
        (b".hidden", ()),
        (b"a.", ()),
        (b"a~1", ()),
        (b"", ("path-empty",)),
        (b"/", ("path-absolute", "path-empty")),
        (b"/etc", ("path-absolute",)),
        (b"//a", ("path-absolute", "path-empty")),
        (b"a/", ("path-empty",)),
        (b"a//b", ("path-empty",)),
        (b".", ("path-traversal",)),
        (b"a/..", ("path-traversal",)),
        (b"../a", ("path-traversal",)),
        (b"c:", ("path-drive-letter",)),
        (b"C:/a", ("path-drive-letter",)),
        (b"a\nb", ("path-control",)),
        (b"a\x7f", ("path-control",)),
        (b"a/\x1b[2J", ("path-control",)),
        (b"a\0b", ("path-control",)),
        (b"/../.git//\n", ("path-absolute", "path-traversal", "path-empty", "path-git-dir", "path-control")),
    ],
    ids=ascii,
)
def test_the_faults_of_a_name(name: bytes, expected: tuple[str, ...]) -> None:
    assert faults(RepoPath(name)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"a:b", ("path-drive-letter",)),
        (b"ab:c", ("path-colon",)),
        (b"a\\b", ("path-backslash",)),
        (b"C:\\a", ("path-drive-letter", "path-backslash")),
        (b"ab:\\c", ("path-colon", "path-backslash")),
    ],
    ids=ascii,
)
def test_names_from_text_may_hold_neither_colon_nor_backslash(name: bytes, expected: tuple[str, ...]) -> None:
    assert faults(RepoPath.from_patch(name), from_text=True) == expected
    assert set(faults(RepoPath.from_git(name))) <= {"path-drive-letter"}


@pytest.mark.parametrize(
    ("name", "is_long"),
    [
        (b"x" * 255, False),
        (b"x" * 256, True),
        (b"a/" + b"x" * 256 + b"/b", True),
        ("é".encode() * 128, True),
        (b"/".join([b"x" * 127] * 32), False),
        (b"/".join([b"x" * 127] * 32) + b"/x", True),
    ],
    ids=["255", "256", "a folder of 256", "256 bytes of 128 letters", "4,095", "4,097"],
)
def test_components_have_255_bytes_and_paths_4096_at_most(name: bytes, is_long: bool) -> None:
    assert ("path-too-long" in faults(RepoPath(name))) == is_long


def test_a_path_of_exactly_4096_bytes_is_not_too_long() -> None:
    name = b"x/" * 2047 + b"yy"
    assert len(name) == 4096
    assert faults(RepoPath(name)) == ()
    assert faults(RepoPath(name + b"y")) == ("path-too-long",)


@settings(max_examples=often(200))
@given(st.binary(max_size=12))
def test_no_name_breaks_the_rules_that_judge_it(name: bytes) -> None:
    found = faults(RepoPath(name), from_text=True)
    assert len(set(found)) == len(found)
    assert set(faults(RepoPath(name))) <= set(found)


# ---- what users type --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "prefix", "expected"),
    [
        ("src/a.py", "", b"src/a.py"),
        ("a.py", "src/", b"src/a.py"),
        ("../a.py", "src", b"a.py"),
        ("./x//y/", "", b"x/y"),
        ("x/../y", "", b"y"),
        ("é", "", "é".encode()),
        ("caf\udce9", "", b"caf\xe9"),
    ],
    ids=ascii,
)
def test_a_typed_path_is_taken_relative_to_the_folder(text: str, prefix: str, expected: bytes) -> None:
    assert RepoPath.from_user(text, prefix).raw == expected


@pytest.mark.parametrize(
    ("text", "prefix", "says"),
    [
        ("/etc/passwd", "", "absolute"),
        ("/a\x1b[2J", "", "absolute"),
        ("..", "", "leaves"),
        ("a/../../b", "", "leaves"),
        ("../../x", "src", "leaves"),
        ("", "", "itself"),
        (".", "", "itself"),
        ("..", "src", "itself"),
    ],
    ids=ascii,
)
def test_a_typed_path_that_is_no_file_of_the_repository_is_refused(text: str, prefix: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        RepoPath.from_user(text, prefix)
    assert caught.value.hint
    assert "\x1b" not in caught.value.message


# ---- parts of a path --------------------------------------------------------------------------------------


def test_the_parts_of_a_path() -> None:
    deep, top = RepoPath(b"a/b/c.py"), RepoPath(b"c.py")
    assert (deep.name, deep.parent, list(deep.parents())) == (b"c.py", b"a/b", [b"", b"a", b"a/b"])
    assert (top.name, top.parent, list(top.parents())) == (b"c.py", b"", [b""])


def test_a_path_lies_within_itself_and_the_folders_above() -> None:
    path = RepoPath(b"a/b/c")
    assert all(path.is_within(folder) for folder in (b"a", b"a/b", b"a/b/c"))
    assert not any(path.is_within(folder) for folder in (b"a/b/", b"b", b"a/b/c/d", b"a/bc"))
    assert not RepoPath(b"ab").is_within(b"a")


def test_paths_are_ordered_by_their_bytes_as_git_orders_them() -> None:
    names = [b"a/b", b"a.b", b"a", b"\xff", b"Z", "é".encode()]
    assert [path.raw for path in sorted(map(RepoPath, names))] == sorted(names)


@pytest.mark.parametrize(
    ("name", "is_plain"), [(b"a b", True), ("é".encode(), True), (b"a\n", False), (b'"', False)]
)
def test_a_plain_path_is_shown_as_it_is(name: bytes, is_plain: bool) -> None:
    path = RepoPath(name)
    assert path.is_plain == is_plain
    assert str(path) == path.quoted
    assert (path.quoted == name.decode()) == is_plain


# ---- folding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("README", "readme"),
        ("straße", "STRASSE"),
        ("É", "é"),
        (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")),
        ("ς", "Σ"),
    ],
)
def test_names_that_are_one_to_a_folding_file_system_fold_alike(one: str, other: str) -> None:
    assert fold(one.encode()) == fold(other.encode())
    assert RepoPath(one.encode()).folded == fold(one.encode())


def test_bytes_that_are_not_utf_8_stay_apart() -> None:
    assert fold(b"\xff") != fold(b"\xfe")
    assert fold(b"\xffA") == fold(b"\xffa")


@settings(max_examples=often(300))
@given(st.text(max_size=6) | st.binary(max_size=6).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass") if not any("\udc80" <= c <= "\udcff" for c in text) else None
    if raw is None:
        raw = text.encode("utf-8", "surrogateescape")
    once = fold(raw)
    assert fold(once.encode("utf-8", "surrogateescape")) == once


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"src/a.py", "src/a.py"),
        (b"$(touch here)", "'$(touch here)'"),
        (b"it's", "'it'\"'\"'s'"),
        (b"-f", "./-f"),
        (b":(top)a", "'./:(top)a'"),
        (b"a\nb", "PATH"),
        (b"\xff", "PATH"),
    ],
)
def test_a_path_in_a_command_is_one_word_that_runs_nothing(raw: bytes, word: str) -> None:
    assert RepoPath(raw).in_shell == word


_PARTS = (
    "a",
    "/",
    ".",
    "-",
    "@",
    "{",
    "}",
    ".lock",
    "~",
    "^",
    ":",
    "?",
    "*",
    "[",
    "\\",
    " ",
    "\n",
    "\x7f",
    "é",
)


@given(st.lists(st.sampled_from(_PARTS), max_size=6))
@settings(max_examples=often(2_000), deadline=None)
def test_what_may_be_a_ref_is_what_git_says(parts: list[str]) -> None:
    name = "refs/" + "".join(parts)
    done = subprocess.run(["git", "check-ref-format", name], check=False)
    assert is_ref_format(name) == (done.returncode == 0)
